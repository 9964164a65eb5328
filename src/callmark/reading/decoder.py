"""Decodes JSON text into the value of a call: strict JSON within the limits, whatever decodes it.

Two C decoders share the work. msgspec (2 GB/s, integers exact, no NaN, no infinities, no lone surrogates) reads short
texts, where counting the colons is enough to say that no key is there twice. stdlib json (0.9 GB/s) reads the others: it
hands over the pairs of each object, and it reads in place, so that the text itself says where its value ends. What it
lets through is checked here. (orjson would turn integers past 2**64 into floats; jiter takes 1e400.)
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any, Final

import msgspec

from callmark.events import JsonValue

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
SHORT: Final = 2048
"""Characters up to which msgspec and two counts are faster than stdlib json in one pass."""
_FIRST_WINDOW: Final = 4096  # characters; an error costs stdlib json its place in the text, so it sees a piece at a time

_TOKEN: Final = 16  # characters: longer than every token of JSON whose end decides whether it is one

_BLANK = re.compile(r"[ \t\r\n]*+")
_TRUNCATED: Final = "Input data was truncated"


class Undecodable(ValueError):  # noqa: N818  # never leaves reading
    """The text is no JSON that a call may hold; `code` is one of `MALFORMED_CODES`, `cut` whether it only ends early."""

    def __init__(self, code: str, *, cut: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.cut = cut


def decode(text: str, depth_limit: int) -> JsonValue:
    """Return the value of a JSON text. Raises Undecodable. Linear time; 0.7 microseconds and up."""
    if len(text) <= SHORT:
        try:
            value = _decode(text)
        except (ValueError, RecursionError) as error:
            raise _undecodable(error) from error
        if type(value) is not dict and type(value) is not list:
            return value
        if text.count(":") == len(value) and text.count("{") + text.count("[") <= depth_limit and type(value) is dict:
            return value  # as many keys as colons: all of them are its own, and none can be there twice
    try:
        value, end = _scan(text, _BLANK.match(text).end())  # type: ignore[union-attr]  # it matches the empty text too
    except (ValueError, RecursionError, StopIteration) as error:
        raise _undecodable(error) from error
    if _BLANK.match(text, end).end() != len(text):  # type: ignore[union-attr]
        raise Undecodable("unexpected-text")
    return _checked(value, text, depth_limit)


def decode_at(text: str, at: int, depth_limit: int) -> tuple[JsonValue, int]:
    """Return the value whose JSON text begins at index `at` of `text`, and the index behind it. Raises Undecodable."""
    window = _FIRST_WINDOW
    while True:
        piece = text[at : at + window]
        whole = len(text) <= at + window
        try:
            value, end = _scan(piece, 0)
        except (ValueError, RecursionError, StopIteration) as error:
            if whole or not _is_cut(error, piece):
                raise _undecodable(error) from error
            end = window
        if whole or end < window:
            return _checked(value, piece[:end], depth_limit), at + end
        window *= 8


def _is_cut(error: BaseException, piece: str) -> bool:
    """Whether what is wrong may only be that the piece ends: a string that is not over, or an error in its last token."""
    if isinstance(error, StopIteration):
        return int(error.value) >= len(piece) - _TOKEN
    return isinstance(error, json.JSONDecodeError) and (
        error.msg.startswith("Unterminated") or error.pos >= len(piece) - _TOKEN
    )


def _undecodable(error: BaseException) -> Undecodable:
    if isinstance(error, Undecodable):
        return error
    if isinstance(error, RecursionError):  # more brackets than C's stack
        return Undecodable("nesting-too-deep")
    if isinstance(error, msgspec.DecodeError | json.JSONDecodeError | UnicodeEncodeError | StopIteration):
        return Undecodable("unexpected-text", cut=str(error) == _TRUNCATED)
    return Undecodable("bad-number")  # an integer over 4,300 digits


def _checked(value: JsonValue, text: str, depth_limit: int) -> JsonValue:
    """Return `value`, which stdlib json read from `text`, if it holds no half of a surrogate pair and is not too deep."""
    if not text.isascii() or "\\u" in text:
        try:
            _encode(value)
        except UnicodeEncodeError as error:
            raise Undecodable("unexpected-text") from error
        except RecursionError as error:
            raise Undecodable("nesting-too-deep") from error
    if _depth(value, depth_limit) > depth_limit:
        raise Undecodable("nesting-too-deep")
    return value


def _depth(value: JsonValue, limit: int) -> int:
    """Return how deep containers are nested in `value`, at most `limit` + 1: level by level, without recursion."""
    depth = 0
    level = [value] if isinstance(value, dict | list) else []
    while level and depth <= limit:
        depth += 1
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
    return depth


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Undecodable("duplicate-key")
    return found


def _finite(number: str) -> float:
    value = float(number)
    if not isfinite(value):
        raise Undecodable("bad-number")
    return value


def _refuse(_: str) -> None:
    raise Undecodable("unexpected-text")


_scan = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse).scan_once
