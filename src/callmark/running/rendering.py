"""Turns whatever a tool returns into JSON of bounded size, and says where something was cut.

The values are foreign: their methods may raise, hang or exit. So this runs where the tool runs, within its timeout.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
import json
import math
import pathlib
import re
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, MappingView
from dataclasses import fields, is_dataclass
from typing import Any, Final, NamedTuple

import msgspec

from callmark.errors import ToolError
from callmark.events import JsonValue
from callmark.tools.foreign import attempt

RESULT_LIMIT: Final = 16_384  # characters of JSON: some 4,000 tokens, a page that a model can take in
ERROR_LIMIT: Final = 2048  # characters of what a tool says went wrong
NAME_LIMIT: Final = 128  # characters of the name of an exception's type
SMALLEST_LIMIT: Final = 256  # there must be room to say what was cut
_DEPTH_LIMIT: Final = 64  # what every consumer of JSON takes; jsonschema fails at 131
_BITS_LIMIT: Final = 14_000  # of an integer: what CPython still turns into digits
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]++")
_PLAIN = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID, pathlib.PurePath)


class Rendered(NamedTuple):
    """A JSON value, and whether something was cut out of it."""

    data: JsonValue
    truncated: bool


def rendered(value: Any, limit: int = RESULT_LIMIT) -> Rendered:
    """Return `value` as a JSON value whose text has at most `limit` characters.

    Dataclasses, structs and pydantic models become objects, bytes text or base64, what refers to itself "<circular>",
    numbers that JSON has not their names, what an iterator yields a list, exceptions their types, and what is none of
    that its `str`. What is too long is cut visibly; as a whole, to a text with a beginning and an end. Work is bounded
    by `limit`, not by the value. Raises what ends the tool, ToolErrors, and what an iterator raises that is the value.

    >>> rendered({"ratio": float("nan"), "raw": b"abc", 3: {1, 2}})
    Rendered(data={'ratio': 'NaN', 'raw': 'abc', '3': [1, 2]}, truncated=False)
    """
    walk = _Walk(limit)
    data = walk.json(value, ())
    text = json.dumps(data, ensure_ascii=False)
    if len(text) > limit:
        return Rendered(cut_text(data if isinstance(data, str) else text, limit), True)
    return Rendered(data, walk.cut)


def cut_text(text: str, limit: int) -> str:
    """Return `text`, or its beginning and end with a remark between, so that it takes `limit` characters as JSON."""
    text = str.__str__(text)  # a plain one: a subclass may have methods of its own
    keep = limit
    made = clean(text) if len(text) <= limit else None
    while made is None or len(json.dumps(made, ensure_ascii=False)) > limit:
        keep = keep * 3 // 4
        tail = keep // 4
        remark = f" … [{len(text) - keep} of {len(text)} characters cut] … "
        made = clean(text[: keep - tail] + remark + text[len(text) - tail :])
    return made


def clean(text: str) -> str:
    """Return a plain str that UTF-8 can carry: halves of surrogate pairs are joined or replaced."""
    plain = str.__str__(text)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


class _Walk:
    """Goes through a value until it has seen enough of it to fill the limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit  # characters that are still worth collecting
        self.cut = False

    def json(self, value: Any, path: tuple[int, ...]) -> JsonValue:
        """Return a value as JSON. One whose own methods raise is told by its type, and costs no other its place.

        What the tool itself says by raising is no value: a ToolError, what ends it, and what its generator raises.
        """
        made, error = attempt(self._json, value, path)
        if error is None:
            json_value: JsonValue = made
            return json_value
        yields = attempt(isinstance, value, Iterator).value
        if isinstance(error, ToolError) or not isinstance(error, Exception) or (yields and not path):
            raise error
        self.cut = True
        return self._text(f"<{type(value).__name__}>")

    def _json(self, value: Any, path: tuple[int, ...]) -> JsonValue:
        self.left -= 2
        match value:
            case None | bool():
                return value
            case enum.Enum():
                return self.json(value.value, path)
            case str():
                return self._text(value)
            case int():
                bits = int.bit_length(value)
                return int.__int__(value) if bits <= _BITS_LIMIT else f"<integer of {bits} bits>"
            case float():
                return (
                    float.__float__(value) if math.isfinite(value) else {math.inf: "Infinity"}.get(value, _name(value))
                )
            case bytes() | bytearray() | memoryview():
                return self._bytes(bytes(value[: self.limit + 1]), len(value))
            case _ if isinstance(value, _PLAIN):
                return self._text(str(value))
        if id(value) in path:
            return "<circular>"
        if len(path) >= _DEPTH_LIMIT:
            self.cut = True
            return "<nested too deep>"
        inside = (*path, id(value))
        match value:
            case Mapping():
                return self._object(value.items(), len(value), inside)
            case list() | tuple() | deque():
                return self._array(value, inside)
            case set() | frozenset():
                return sorted(self._array(value, inside), key=json.dumps)
            case Iterator() | range() | MappingView():
                return self._array(value, inside)
            case BaseException():
                return self._text(f"<{type(value).__name__}>")  # what it says may hold secrets, as where it is raised
        if is_dataclass(value) and not isinstance(value, type):
            return self._object([(field.name, getattr(value, field.name)) for field in fields(value)], 0, inside)
        if isinstance(value, msgspec.Struct):
            return self._object([(name, getattr(value, name)) for name in value.__struct_fields__], 0, inside)
        if callable(getattr(type(value), "model_dump", None)):
            return self.json(value.model_dump(), inside)
        return self._words(value)

    def _text(self, text: str) -> str:
        text = str.__str__(text)  # as in `cut_text`
        self.left -= len(text)
        if len(text) <= self.limit:
            return clean(text)
        self.cut = True
        return cut_text(text, self.limit)

    def _words(self, value: Any) -> str:
        """Return what an object says of itself, without addresses, which differ each time; its type where it raises.

        It is cut first: some say a hundred million characters, of which few are worth looking at.
        """
        told = attempt(str, value)
        if told.error is not None:
            return self._text(f"<{type(value).__name__}>")
        return _ADDRESS.sub("", self._text(told.value))

    def _bytes(self, data: bytes, length: int) -> JsonValue:
        if length > self.limit:
            self.cut = True
            return f"<{length} bytes>"
        self.left -= length
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode()}

    def _array(self, values: Any, path: tuple[int, ...]) -> list[JsonValue]:
        made: list[JsonValue] = []
        for value in values:
            if self.left <= 0:
                self.cut = True
                made.append(_more(0 if isinstance(values, Iterator) else len(values) - len(made)))
                break
            made.append(self.json(value, path))
        return made

    def _object(self, items: Any, length: int, path: tuple[int, ...]) -> dict[str, JsonValue]:
        made: dict[str, JsonValue] = {}
        for key, value in items:
            if self.left <= 0:
                self.cut = True
                made["…"] = _more(length - len(made)).removeprefix("… ")
                break
            name = self._text(key) if isinstance(key, str) else self._words(key)
            if name in made:
                name = self._another(f"{name} ({type(key).__name__})", made)
            made[name] = self.json(value, path)
        return made

    def _another(self, name: str, made: Mapping[str, JsonValue]) -> str:
        """Return a name that is not there yet: this one, or with a number."""
        found = self._text(name)
        number = len(made)  # where it stands, so that seldom a second is tried
        while found in made:
            found = self._text(f"{name} {number}")
            number += 1
        return found


def _more(number: int) -> str:
    """Say that members were left out, and how many where that is known."""
    return f"… [{number} more]" if number > 0 else "… [more]"


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "-Infinity"
