"""JSON values in the body languages of the dialects: the counterpart of what reading does with them.

What is written is read as the very value, with the limits that reading has by default. Where a language cannot say a
value, `Unwritable` is raised, and nothing is written. The rules on plain words are those of `reading.words` seen
from the other side, but stricter: what might be read as something else is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import escape
from math import isfinite
from typing import Any, TypeAlias

from callmark.dialects import derived
from callmark.dialects.limits import LENGTH_LIMIT, NESTING_LIMIT, PLAIN_LIMIT
from callmark.dialects.model import Form, Writing
from callmark.dialects.notation import LONE, anonymous, expand, fill
from callmark.dialects.prefixes import first_characters
from callmark.errors import UsageError
from callmark.toolshapes import BRACKETS, DIGITS_LIMIT, Types, type_of

Declared: TypeAlias = Callable[[str], Types]
"""Gives the declared types of a parameter, none where nothing is declared."""

PYTHON_NAME = re.compile(r"[^\W\d]\w{0,127}")
_BARE_KEY = re.compile(r"[A-Za-z_][0-9A-Za-z_]{0,63}")
_IN_STRINGS = re.compile(r"""[^\w\s{}\[\]:,"\\+.\-]""")  # what JSON has nowhere else
_NO_WORD = re.compile(r"\s*(?:[\[{].*|[-+]?[0-9].*|true|false|null|none)\s*", re.IGNORECASE | re.DOTALL)


class Unwritable(UsageError):  # noqa: N818  # a UsageError to callers, a signal inside this room
    """The dialect has no way to write this value so that it is read as it is."""


def checked(value: Any, depth: int = NESTING_LIMIT, where: str = "arguments") -> Any:
    """Return a JSON value with its tuples as lists. Raises UsageError that says where it is none."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        if LONE.search(value):
            raise UsageError(f"{where}: expected text that UTF-8 can hold, found half of a surrogate pair")
        return value
    if isinstance(value, int):
        if abs(value) >= 10**DIGITS_LIMIT:
            raise UsageError(f"{where}: expected an integer of at most {DIGITS_LIMIT} digits, found one that is longer")
        return value
    if isinstance(value, float):
        if not isfinite(value):
            raise UsageError(f"{where}: expected a finite number, found {value}")
        return value
    if not isinstance(value, dict | list | tuple):
        raise UsageError(f"{where}: expected a JSON value, found {type(value).__name__}")
    if depth == 0:
        raise UsageError(f"{where:.80}: expected at most {NESTING_LIMIT} nested brackets, found more")
    if not isinstance(value, dict):
        return [checked(item, depth - 1, f"{where}[{n}]") for n, item in enumerate(value)]
    for key in value:
        if not isinstance(key, str):
            raise UsageError(f"{where}: expected keys that are strings, found {key!r:.80}")
        checked(key, 0, f"{where}: a key")
    return {key: checked(item, depth - 1, f"{where}.{key:.40}") for key, item in value.items()}


def as_json(value: Any) -> str:
    """Return JSON as models write it: a blank behind commas and colons, characters as they are."""
    return json.dumps(value, ensure_ascii=False)


def in_cdata(value: Any) -> str:
    """Return JSON that does not end a CDATA section: `]>` can only stand in a string, where `>` has an escape."""
    return as_json(value).replace("]>", "]\\u003e")  # not `]]>` alone: so a grammar can say it without look-ahead


def in_whole(value: Any, form: Form, behind: str | None = None) -> str:
    """Return JSON as it stands in the one value that is the whole of the arguments, or a part of it: what would end it,
    or begin a marker or an entity, can only stand in a string, where its first sign has an escape.

    All of the arguments are held against the text `behind` them. Raises Unwritable where they would not end there.
    """
    text = as_json(value)
    for sign in whole_signs(form):
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    found = None if behind is None else _stop(form).search(text + behind)
    if behind is not None and (found is None or found.start() < len(text) or found["end"] is None):
        raise Unwritable("expected arguments that hold no marker and no `value_end`, which follows them, found others")
    return text


def whole_signs(form: Form) -> list[str]:
    """Return the signs that arguments which are the whole of a value hold only as escapes."""
    begins = [first_characters(pattern) or frozenset() for pattern in _stops(form)]
    signs = frozenset("<&" if form.encoding == "xml" else "").union(*begins)
    return sorted(sign for sign in signs if _IN_STRINGS.fullmatch(sign) and sign <= "\uffff")


def as_pairs(arguments: dict[str, Any], declared: Declared) -> str:
    """Return `key=value` pairs with Python's words, or a JSON object where a key is no name or a type would change."""
    pairs = []
    for key, value in arguments.items():
        types = declared(key)
        bare = not isinstance(value, str | dict | list)
        if not PYTHON_NAME.fullmatch(key) or (bare and types and not keeps(value, types)):
            return as_json(arguments)
        pairs.append(f"{key}={as_python(value)}")
    return ", ".join(pairs)


def keeps(value: Any, types: Types) -> bool:
    """Whether a plain word that says `value` is read as `value` where these types are declared."""
    text = as_json(value)
    if value is None:
        return "null" in types
    if text in types.members or as_python(value) in types.members:
        return types.members.get(text) == types.members.get(as_python(value)) == text
    return "string" not in types and (type_of(value) in types or (isinstance(value, int) and "number" in types))


def as_python(value: Any) -> str:
    """Return a JSON value with Python's words."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_json(key)}: {as_python(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_python, value)) + "]"
    if value is None or isinstance(value, bool):
        return repr(value)
    return as_json(value)


def in_braces(value: Any, quote: str) -> str:
    """Return the language `braces`: bare keys, and strings between `quote`, which they cannot hold."""
    if isinstance(value, dict):
        items = (f"{brace_key(key, quote)}:{in_braces(item, quote)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(in_braces(item, quote) for item in value) + "]"
    if isinstance(value, str):
        if (value + quote).index(quote) < len(value):
            raise Unwritable(f"expected strings without {quote}, which ends them, found one that holds it")
        return quote + value + quote
    return as_json(value)


def brace_key(key: str, quote: str) -> str:
    """Return a key of the language `braces`."""
    return key if _BARE_KEY.fullmatch(key) else in_braces(key, quote)


def in_tags(text: str, form: Form) -> str:
    """Return a text as it stands between the tags of a form, or in a tag: with XML's entities where it knows them.

    Quotes are among them where they may end a value, as those of an attribute do.
    """
    if form.encoding == "raw":
        return text
    return escape(text, quote=not {'"', "'"}.isdisjoint(first_characters(form.value_end) or ()))


def in_parameters(
    arguments: dict[str, Any], form: Form, writing: Writing, behind: str, declared: Declared
) -> str:
    """Return one parameter after the other as `writing` says; `behind` is the text that follows the last one.

    A value that would end early, or be read as something else, is written as a JSON string where that is read as the
    string, which it is where nothing is declared.
    """
    stop = _stop(form)
    ended = re.compile(expand(form.value_end))
    followed = re.compile(anonymous(form.value_end) + derived.structure(form))
    result = behind
    for key, value in reversed(arguments.items()):
        ways = _typed_ways(value) if writing.typed else [(way, "") for way in _ways(value, declared(key), key)]
        for text, kind in ways:
            before, tag, after = around_value(form, writing, key, kind)
            closing = ended.search(after + result)  # a look-ahead sees what follows
            spare = (after + result)[: closing.start()] if closing is not None else ""
            first, last = _line_breaks(text, before[tag:], after, spare) if form.trim else ("", "")
            begun = before + first + in_tags(text, form) + last
            written = begun + after + result
            if closing is None or spare not in (("", "\n", "\r\n") if form.trim else ("",)):
                raise Unwritable(f"expected a template that ends a value as `value_end` says, found {after!r:.80}")
            if not followed.match(after + result, closing.start()):
                end, rest = closing[0], (after + result)[closing.end() :]
                raise Unwritable(
                    "expected a template that has the next parameter or the tail directly behind what `value_end` "
                    f"matches, which is {end!r:.80}{' (it only looks ahead)' if not end else ''}, found {rest!r:.80}"
                )
            found = stop.search(written, tag)  # the line break before a value can belong to one
            if found and found.start() == len(begun) + closing.start():  # it is `value_end`, as that comes first
                break
        else:
            raise Unwritable(f"expected no end of a value and no marker in the value of {key!r:.40}, found one")
        result = written
    return result[: len(result) - len(behind)]


def _line_breaks(text: str, before: str, after: str, spare: str) -> tuple[str, str]:
    """Return what keeps the line breaks at the ends of a value from being taken for the markup's: see `Form.trim`.

    `before` and `after` are what the template has at its two ends, and `spare` is the line break before what ends it.
    Where there is one only behind the value, one before makes that the markup's. A lone carriage return is no line
    break.
    """
    breaks = ("\n", "\r\n")
    begun = spare.startswith(breaks) or (text != "" and (text + after).startswith(breaks))
    first = "\n" if not before and begun else ""
    if spare.startswith("\n"):
        return first, "\r" if text.endswith("\r") else ""
    trimmed = (before + first).startswith(breaks) and not spare
    return first, "\n" if trimmed and text.endswith("\n") else ""


def around_value(form: Form, writing: Writing, key: str, kind: str) -> tuple[str, int, str]:
    """Return what stands before a value whose JSON type is `kind`, how much of that the tag is (line breaks may stand
    behind it), and what stands behind the value. Raises Unwritable for its key.
    """
    shown = escape(key) if form.key_encoding == "xml" else key
    head, _, tail = writing.parameter.partition("{value}")
    named = {"key": shown, "is_text": writing.is_text[kind != "string"], "type": kind}
    before = fill(head, named)
    found = re.fullmatch(f"({expand(form.parameter)})[\r\n]*+", before)
    if found is None and _BARE_KEY.fullmatch(key):
        wanted = f"a template of parameters that the form's `parameter`, {form.parameter!r:.160}, reads"
        raise Unwritable(f"expected {wanted}, found {before!r:.80}")
    if found is None or found["key"] != shown:
        raise Unwritable(f"expected keys of 1 to 256 characters that the tag can hold, found {key!r:.80}")
    return before, found.end(1), fill(tail, named)


def _typed_ways(value: Any) -> list[tuple[str, str]]:
    """Return the texts of a value whose kind is told, each with the kind: JSON can say a string that ends early."""
    if isinstance(value, str):
        quoted = _without_tags(as_json(value))
        return [(value, "string"), *([(quoted, "null")] if len(quoted) <= PLAIN_LIMIT else [])]
    text = as_json(value)
    if len(text) > PLAIN_LIMIT and not isinstance(value, dict | list):
        raise Unwritable(f"expected a number of at most {PLAIN_LIMIT} characters, found {len(text)}")
    return [(way, type_of(value).replace("integer", "number")) for way in (text, _without_tags(text))]


def _without_tags(text: str) -> str:
    """Return the same JSON without a `<`, with which closers begin: it can only stand in a string, where it has an
    escape.
    """
    return text.replace("<", "\\u003c")


def _stop(form: Form) -> re.Pattern[str]:
    """Return what ends a raw value, or breaks it."""
    return re.compile("|".join(_stops(form)))


def _stops(form: Form) -> list[str]:
    breaking = (derived.astray(form), derived.breaks_values(form), form.unclosed, *form.broken_by)
    breaks = [anonymous(pattern) for pattern in breaking if pattern]
    return [*derived.value_ends(form), *breaks]


def _ways(value: Any, types: Types, key: str) -> list[str]:
    """Return the raw texts that are read as `value` where these types are declared, the plainest first."""
    if not isinstance(value, str):
        text = as_json(value)
        longest = PLAIN_LIMIT
        if isinstance(value, dict | list):
            kept = not types or type_of(value) in types
            if types and types <= {"object", "array", "null"}:
                longest = LENGTH_LIMIT
        else:
            kept = not types or keeps(value, types)
            kept = kept or (value is not None and "string" not in types and text not in types.members)
        ways = [way for way in (text, _without_tags(text)) if len(way) <= longest]
        if not kept or not ways:
            found = " or ".join(sorted(types)) or f"text, as it is longer than {PLAIN_LIMIT} characters"
            raise Unwritable(
                f"expected for {key!r:.40} a value that is read as it is, found one that is read as {found}"
            )
        return ways
    if len(value) > PLAIN_LIMIT:
        if types and types <= {"object", "array", "null"}:
            raise Unwritable(f"expected {' or '.join(sorted(types))} for {key!r:.40}, found a string")
        return [value]
    if types:
        word = value.strip()
        member = types.members.get(value) or types.members.get(word)
        kept = member == as_json(value) if member else "string" in types or not _NO_WORD.fullmatch(value)
        # Reading takes brackets for what they are before it looks for a member; where none is a string, it mends them.
        brackets = BRACKETS.get(word[:1]) in types
        kept = kept and not (brackets and ("string" not in types or is_json(word)))
        if not kept or ("null" in types and word.lower() in ("null", "none")):
            raise Unwritable(f"expected for {key!r:.40} text that is read as text, found {value!r:.40}")
        return [value]
    quoted = _without_tags(as_json(value))
    plain = [] if is_json(value) else [value]
    return plain + ([quoted] if len(quoted) <= PLAIN_LIMIT else [])


def is_json(text: str) -> bool:
    """Return whether a text is JSON as a whole, as Python's `json` reads it."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
