"""What a raw value between tags means: what its tag says of it, and how its text is read, once it is there.

Without state, and so for the fast path and for the incremental reader alike (`fast`, `parameters`).
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import Final

from callmark.dialects import Form
from callmark.dialects.limits import PLAIN_LIMIT
from callmark.dialects.notation import BLANKS
from callmark.events import JsonValue
from callmark.reading.decoder import Undecodable, decode
from callmark.reading.patterns import ENTITY
from callmark.reading.schemas import Parameters
from callmark.reading.words import NUMBER, scalar
from callmark.toolshapes import BRACKETS, Types, type_of

CONTAINERS: Final = frozenset({"object", "array", "null"})
"""Types of which a value that is longer is still read as JSON."""
_TEXT: Final = Types({"string"})
_ENTITY: Final = re.compile(ENTITY)
_BEGINS_JSON: Final = frozenset('{["-0123456789tfn')
_NUMBERS: Final = frozenset({"integer", "number"})
_AROUND_JSON: Final = ('"', "```")
_NEEDS_DECODER: Final = frozenset('{["')
_WORDS: Final = frozenset({"true", "false", "null"})


def key_of(found: re.Match[str], form: Form) -> str:
    """Return the key in what opens a value, "" for an element of a list that has none."""
    key: str = found["key"] if not form.member or "key" in found.re.groupindex else ""
    if form.key_encoding == "raw" or "&" not in key:
        return key
    return _ENTITY.sub(lambda entity: character(entity[0]), key)


def elements_in(found: re.Match[str]) -> str:
    """Return the bracket that ends a value of which the tag says that it holds elements, "" for another one."""
    groups = found.re.groupindex
    if "object" in groups and found["object"] is not None:
        return "}"
    return "]" if "array" in groups and found["array"] is not None else ""


def declared(found: re.Match[str], key: str, parameters: Parameters | None) -> tuple[Types | None, bool]:
    """Return the types of a value, None for open ones, and whether its tag, which goes before a schema, says JSON."""
    groups = found.re.groupindex
    if "text" in groups and found["text"] is not None:
        return _TEXT, False
    if "json" in groups and found["json"] is not None:
        return None, True
    return parameters.declared(key) if parameters is not None else None, False


def is_long_json(text: str, types: Types | None, is_json: bool) -> bool:
    """Whether a value that begins with `text` and is too long to be held is read as JSON, as a container may be."""
    if is_json:
        return text[:PLAIN_LIMIT].lstrip(BLANKS)[:1] in ("{", "[")
    return types is not None and types <= CONTAINERS


def empty_container(text: str, types: Types | None) -> str:
    """Return the JSON of what a value without text or elements can only be: an empty list or object; else ""."""
    containers = {"array": "[]", "object": "{}"}
    if not types or text.strip(BLANKS) or "" in types.members:
        return ""
    return next((json for name, json in containers.items() if types - {"null"} == {name}), "")


def is_sloppy(text: str, types: Types | None, is_json: bool) -> bool:
    """Whether a value, which no JSON reader takes, was meant as JSON: a container where no string is allowed.

    Or, where a schema says so, a value in quotes or in a fence.
    """
    plain = text.lstrip(BLANKS)
    kind = BRACKETS.get(plain[:1])
    if kind is None:
        return types is not None and "string" not in types and plain.startswith(_AROUND_JSON)
    return is_json or (types is not None and "string" not in types and kind in types)


def encoded_twice(plain: str, types: Types, depth_limit: int) -> str:
    """Return the JSON of a value of the declared types that was written as a string of JSON once more; else ""."""
    try:
        json, value = plain_value(str(decode(plain, depth_limit)), types, depth_limit)
    except Undecodable:
        return ""
    kind = type_of(value)
    is_declared = kind in types or (kind in _NUMBERS and not types.isdisjoint(_NUMBERS))
    is_member = kind in BRACKETS.values() or not types.members or json in types.members.values()
    return json if is_declared and is_member else ""


def character(entity: str) -> str:
    """Return the character that an entity of XML stands for; one that XML does not allow stands for itself."""
    name = entity[1:-1]
    if name[0] != "#":
        return {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}[name]
    code = int(name[2:], 16) if name[1] == "x" else int(name[1:])
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code <= 0x10FFFF else entity


def plain_value(text: str, declared: Types | None, depth_limit: int) -> tuple[str, JsonValue]:
    """Return the JSON text of a whole raw value, and the value: see `words` for the rules on plain values.

    A container of a declared type, a string being allowed or not, or without a schema any JSON value, is taken as the
    JSON that it is; everything else is plain. Raises Undecodable where it names a key twice and need not be a string.
    """
    plain = text.strip(BLANKS)
    if not declared and (
        not plain
        or plain[0] not in _BEGINS_JSON
        or (plain[0] not in _NEEDS_DECODER and plain not in _WORDS and NUMBER.fullmatch(plain) is None)
    ):
        return quoted(text), text
    if not declared or BRACKETS.get(plain[:1]) in declared:
        try:
            return plain, decode(plain, depth_limit)
        except Undecodable as error:
            if error.code == "duplicate-key" and "string" not in (declared or ()):
                raise
    json = scalar(text, declared) if declared else quoted(text)
    as_it_is = json.startswith('"') and not (declared and declared.members)  # else it may be a member, without blanks
    return json, text if as_it_is else decode(json, depth_limit)
