"""The fast paths: whole markers that are there to their end, read without the incremental readers.

Each accepts a part of its body language with the same meaning, the same previews included (held to the grammar and to
the readers by properties in `tests/test_laws.py`); for anything else it returns the index at which its attempt ended,
and the reader decides. That is the first character that it does not know, so the attempt costs no more than the
reader's own way there.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import Final, TypeAlias

from callmark.dialects.limits import PLAIN_LIMIT
from callmark.dialects.notation import BLANKS
from callmark.events import JsonValue
from callmark.reading.decoder import COUNTED, Undecodable, decode, decode_at, encode
from callmark.reading.lookahead import KEY_PATTERN
from callmark.reading.matching import Pattern
from callmark.reading.patterns import Patterns, within_blanks
from callmark.reading.plain import (
    BARE,
    CONTAINER,
    DOUBLE,
    PYTHON_CONTAINER,
    SINGLE,
    from_python,
    long_string,
    pair_in_word,
)
from callmark.reading.raw_values import (
    declared,
    elements_in,
    empty_container,
    is_long_json,
    is_sloppy,
    key_of,
    plain_value,
)
from callmark.reading.schemas import Parameters
from callmark.reading.stops import DATA
from callmark.reading.strings import lone_surrogate
from callmark.reading.words import scalar

Read: TypeAlias = tuple[str, str, str, JsonValue, int]
"""Name (of an envelope, else ""), source text of the arguments, their JSON text and value, index behind the marker."""

_OBJECT: Final = re.compile(r'\{[ \t\r\n]*+["}]')
_PAIR_KEY: Final = rf"[ \t\r\n]*+({KEY_PATTERN})[ \t\r\n]*+=[ \t\r\n]*+"
_PAIR_END: Final = r"[ \t\r\n]*+(?:(,)|(?=\)))"
_SIMPLE_PAIR: Final = Pattern(
    rf"{_PAIR_KEY}(?:({DOUBLE}|{CONTAINER})|({SINGLE}|{PYTHON_CONTAINER})|({BARE})){_PAIR_END}"
)
_BEFORE_VALUE: Final = Pattern(_PAIR_KEY)
_BEHIND_VALUE: Final = Pattern(_PAIR_END)
_ENDS: Final = {'"': '"', "{": "}", "[": "]"}
_BEGINS: Final = tuple(_ENDS)
_FIRST_WINDOW: Final = 1024  # characters of a value that are looked at first: few are longer
_CDATA: Final = "<![CDATA["


def read(
    parts: Patterns, buffer: str, at: int, guess: int, depth_limit: int, parameters: Parameters | None
) -> Read | int:
    """Read the body that begins at index `at`, and the tail behind it; `guess` is where it likely ends, or -1.

    Returns the index at which the attempt ended where it was not read.
    """
    body = parts.form.body
    try:
        if body == "parameters":
            return _tags(parts, buffer, at, depth_limit, parameters)
        if body == "braces":
            return at
        if body == "arguments" and buffer[at : at + 1] != "{":
            return _pairs(parts, buffer, at, depth_limit, parameters)
        return _object(parts, buffer, at, guess, depth_limit)
    except Undecodable as error:
        return at + error.reached


def _object(parts: Patterns, buffer: str, at: int, guess: int, depth_limit: int) -> Read | int:
    """Read a JSON object, that of an envelope's arguments where the body is one."""
    begin = parts.begin.match(buffer, at) if parts.begin is not None else None
    if begin is None:
        return at
    envelope = begin.lastgroup == "name"
    name = begin["name"] if envelope else ""
    at = begin.end()
    if buffer[at : at + 2] != '{"' and _OBJECT.match(buffer, at) is None:
        return at
    if guess >= at:
        source = buffer[at:guess]
        if envelope or source[-1:] != "}":
            source = source.rstrip(BLANKS)
            if guess - at - len(source) > parts.blanks:
                source = ""
            if envelope:
                source = source[:-1].rstrip(BLANKS) if source.endswith("}") else ""
        if source[-1:] == "}":
            try:
                return name, source, source, decode(source, depth_limit), guess + len(parts.guess)
            except Undecodable as error:
                if not error.cut:  # cut: the guessed end stands in a string
                    return at + error.reached
    value, end = decode_at(buffer, at, depth_limit, closer="" if envelope else "}" + parts.guess)
    source = buffer[at:end]
    return _closed(parts, buffer, end, name, source, source, value)


def _closed(
    parts: Patterns, buffer: str, at: int, name: str, source: str, json: str, value: JsonValue
) -> Read | int:
    """Return what was read where the marker closes at index `at`."""
    closer = parts.closer
    if closer and buffer[at : at + len(closer)] == closer:  # a third of the time of a match, and as models write it
        return name, source, json, value, at + len(closer)
    if parts.closing is None:
        return name, source, json, value, at
    closing = parts.closing.match(buffer, at)
    return at if closing is None else (name, source, json, value, closing.end())


def _pairs(parts: Patterns, buffer: str, at: int, depth_limit: int, parameters: Parameters | None) -> Read | int:
    """Read `key=value` pairs whose values are JSON, simple Python strings and containers, or bare words."""
    if buffer[at : at + 1] == ")":
        return _closed(parts, buffer, at, "", "", "{}", {})
    pieces: list[str] = []
    longs: dict[int, tuple[str, str, JsonValue]] = {}  # long values are decoded once: key, JSON and value by place
    start = at
    more: str | None = ","
    while more:
        pair = _SIMPLE_PAIR.match(buffer, at)
        if pair is not None:
            key, json, python, bare, more = pair.groups()
            at = pair.end()
            if python is not None:
                if len(python) > _FIRST_WINDOW and python[0] == "'":
                    try:
                        longs[len(pieces)] = key, *long_string(python)
                    except UnicodeEncodeError:
                        return at
                    json = "0"
                else:
                    json = from_python(python)
            elif json is None:
                types = None
                if parameters is not None:
                    if "=" in bare and pair_in_word(bare, parameters.names, key, 0, len(bare)) >= 0:
                        return at
                    types = parameters.declared(key)
                json = scalar(bare.rstrip(" \t"), types)
        else:
            found = _BEFORE_VALUE.match(buffer, at)
            if found is None or not buffer.startswith(_BEGINS, found.end()):
                return at
            key, at = found[1], found.end()
            long, end = decode_at(buffer, at, depth_limit - 1, _FIRST_WINDOW, _ENDS[buffer[at]] + parts.guess)
            json = buffer[at:end]
            separator = _BEHIND_VALUE.match(buffer, end)
            if separator is None:
                return end
            more, at = separator[1], separator.end()
            if len(json) > _FIRST_WINDOW:
                longs[len(pieces)] = key, json, long
                json = "0"
        pieces.append(f',"{key}":')
        pieces.append(json)
    json = _joined(pieces)
    try:
        value = decode(json, depth_limit)
    except Undecodable:
        return at
    if longs:
        for place, (key, json, long) in longs.items():
            pieces[place + 1] = json
            value[key] = long
        json = "".join(pieces)
    return _closed(parts, buffer, at, "", _stripped(buffer, start, at), json, value)


def _stripped(buffer: str, start: int, end: int) -> str:
    """Return what stands between two indexes, without the blanks around it: a long text is copied once."""
    if end - start > COUNTED:
        start, end = within_blanks(buffer, start, end)
    return buffer[start:end].strip(BLANKS)


def _joined(members: list[str]) -> str:
    """Return the JSON of an object: that of its members, each key with a comma before it and a colon behind."""
    members.append("}")
    members[0] = "{" + members[0].removeprefix(",")
    return "".join(members)  # a long value is copied once


def _tags(parts: Patterns, buffer: str, at: int, depth_limit: int, parameters: Parameters | None) -> Read | int:
    """Read values between tags, where nothing in them looks like markup."""
    form, tags = parts.form, parts.values
    if tags is None:
        raise AssertionError("the body of this form is `parameters`")
    pieces: list[str] = []
    values: dict[str, JsonValue] = {}
    start = at
    simple = tags.simple.match
    keyed, holds, items = tags.keyed, tags.holds, form.item != ""  # for each value, a look-up costs more
    told = parameters is not None or tags.typed
    last, behind = None, -1
    while last is None:
        found = simple(buffer, at)
        if found is not None:
            key, text, last = found.group("key", "value", "last")
            if not keyed:
                key = key_of(found, form)
            at = found.end()
            if last is not None:
                behind = at
                at -= len(last)
        else:
            found = tags.between.match(buffer, at)
            if found is None:
                return at
            if found.lastgroup == "tail":
                break
            begin = found.end()
            stop = tags.stop.search(buffer, begin)
            while stop is not None and stop.lastgroup in DATA and stop.lastgroup != "astray":
                if tags.stop.may_match(buffer, stop.start()):  # another end, once more of the text is there
                    return stop.end()
                stop = tags.stop.search(buffer, stop.start() + 1)  # which may stand in it
            if stop is None or stop.lastgroup != "end":
                return len(buffer) if stop is None else stop.end()
            end, at = stop.span()
            if tags.whole:
                try:
                    return _wrapped(parts, buffer[begin:end].strip(BLANKS), buffer, at, depth_limit)
                except Undecodable:
                    return at
            if form.encoding == "xml":
                return at
            if form.trim:
                trimmed = 2 if buffer.startswith("\r\n", begin) else buffer.startswith("\n", begin)
                begin += trimmed
                if end < begin:  # it stands in that line break
                    return at
                if trimmed:
                    end -= 2 if buffer.endswith("\r\n", begin, end) else buffer.endswith("\n", begin, end)
            key, text = key_of(found, form), buffer[begin:end]
        if holds and elements_in(found):
            return at
        if parameters is not None and "\\" in key and parameters.unmarked(key) != key:
            return at
        types, is_json = declared(found, key, parameters) if told else (None, False)
        if items and empty_container(text, types):
            return at
        if len(text) <= PLAIN_LIMIT:
            json, values[key] = plain_value(text, types, depth_limit - 1)
            if told and json[0] == '"' and is_sloppy(text, types, is_json):
                return at
        elif is_long_json(text, types, is_json) or lone_surrogate(text) is not None:
            return at
        else:
            json = encode(text)
            values[key] = text
        pieces.append(f",{quoted(key)}:")
        pieces.append(json)
    source = _stripped(buffer, start, at)
    if 2 * len(values) < len(pieces) or lone_surrogate(source) is not None:
        return at
    json = _joined(pieces)
    if last is not None:
        return "", source, json, values, behind
    return _closed(parts, buffer, at, "", source, json, values)


def _wrapped(parts: Patterns, source: str, buffer: str, at: int, depth_limit: int) -> Read | int:
    """Read a value that is the whole of the arguments as JSON, perhaps in one CDATA section."""
    json = source
    if parts.form.encoding == "xml":
        if source.startswith(_CDATA):
            json = source[len(_CDATA) : -3].strip(BLANKS)
            if not source.endswith("]]>") or "]]>" in json:
                return at
        elif "&" in source or "<![" in source:
            return at
    if not json.startswith("{"):
        return at
    return _closed(parts, buffer, at, "", source, json, decode(json, depth_limit))
