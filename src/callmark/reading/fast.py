"""The fast paths: whole bodies whose end was guessed, read without the incremental reader.

Each accepts a part of its body language with the same meaning, the same previews included (held to the grammar and to
the reader by properties in `tests/test_fast.py`); for anything else it returns None, and the reader decides.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from callmark.dialects import Form
from callmark.events import JsonValue
from callmark.reading.decoder import Undecodable, decode
from callmark.reading.schemas import Parameters, scalar

Read: TypeAlias = tuple[str, str, str, JsonValue]
"""Name (of an envelope, else ""), source text of the arguments, their JSON text, their value."""

_BLANK = " \t\r\n"
_ENVELOPE = re.compile(
    r'\{[ \t\r\n]*+"name"[ \t\r\n]*+:[ \t\r\n]*+"([^"\\\x00-\x1f\ud800-\udfff]{1,128}+)"[ \t\r\n]*+,'
    r'[ \t\r\n]*+"arguments"[ \t\r\n]*+:[ \t\r\n]*+(?=\{)'
)
_PAIR = re.compile(
    r"[ \t\r\n]*+([^\W\d][\w.\-]{0,127}+)[ \t\r\n]*+=[ \t\r\n]*+"
    r'(?:("(?:[^"\\\x00-\x1f\ud800-\udfff]++|\\["\\/bfnrt])*+")[ \t\r\n]*+'
    r"""|([^\s,()\[\]{}"'=，（）\ud800-\udfff][^,()\[\]{}"，（）\r\n\ud800-\udfff]{0,4000}+))(,|\Z)"""
)


def read(
    form: Form, buffer: str, at: int, end: int, depth_limit: int, parameters: Parameters | None
) -> Read | None:
    """Read the body of `form` that begins at index `at`, if it ends right before the closing literal at `end`."""
    body = form.body
    name = ""
    if body == "envelope":
        head = _ENVELOPE.match(buffer, at, end)
        if head is None or "name" not in form.name_keys or "arguments" not in form.arguments_keys:
            return None
        name = head[1]
        at = head.end()
        source = buffer[at:end].rstrip(_BLANK)
        if not source.endswith("}"):
            return None
        source = source[:-1].rstrip(_BLANK)
    elif body == "json" or (body == "arguments" and buffer.startswith("{", at)):
        source = buffer[at:end].rstrip(_BLANK)
    elif body == "arguments":
        return _pairs(buffer[at:end], parameters, depth_limit)
    else:
        return None
    if not source.endswith("}"):
        return None
    try:
        value = decode(source, depth_limit)
    except Undecodable:
        return None
    return name, source, source, value


def _pairs(source: str, parameters: Parameters | None, depth_limit: int) -> Read | None:
    """Read flat `key=value` pairs."""
    at = 0
    pieces = []
    size = len(source)
    while True:
        pair = _PAIR.match(source, at)
        if pair is None:
            return None
        key, string, bare, comma = pair.groups()
        if string is None:
            bare = bare.rstrip(" \t")
            string = scalar(bare, parameters.declared(key) if parameters is not None else None)
        pieces.append(f'"{key}":{string}')
        at = pair.end()
        if not comma:
            break
    if at != size:
        return None
    json = "{" + ",".join(pieces) + "}"
    try:
        value = decode(json, depth_limit)
    except Undecodable:
        return None
    return "", source.strip(_BLANK), json, value
