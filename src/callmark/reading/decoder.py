"""Decodes JSON text into the value of a call: strict JSON within the limits, whatever decodes it.

Two C decoders share the work. msgspec (2 GB/s, integers exact, no NaN, no infinities, no lone surrogates) reads a text
whose end is known; that no key is there twice is told by as many colons behind keys as keys. stdlib json (0.9 GB/s)
reads where that does not tell, as it hands over the pairs of each object, and where the text must say itself where its
value ends. What it lets through is checked here. (orjson turns integers past 2**64 into floats; jiter takes 1e400.)
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from math import isfinite
from typing import Any, Final

import msgspec

from callmark.events import JsonValue
from callmark.reading.characters import COMPILED
from callmark.toolshapes import DIGITS_LIMIT

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
COUNTED: Final = 2048
"""Characters up to which all colons are counted first: in a longer text, some stand in strings."""
_FIRST_WINDOW: Final = 16_384  # characters: an error costs stdlib json O(text), so it sees a piece at a time
_COPIED: Final = 16  # characters that are copied in the time in which one is decoded

_SPARSE: Final = 32  # characters for each value from which on a text is sparse: it is mostly strings
_TOKEN: Final = 16  # characters: longer than every token of JSON whose end decides whether it is one

_BLANK_RUN: Final = re.compile(r"[ \t\r\n]*+")
_KEY_COLONS: Final = re.compile(
    r""":(?<=[" \t\r\n]:)(?:(?<=[^\\]":)|(?<=\\\\":)|(?<=[^\\]"[ \t\r\n]:)|(?<=\\\\"[ \t\r\n]:)|(?<=[ \t\r\n]{2}:))"""
).findall
"""Finds every colon behind a key, and some of those in strings. It begins with a literal, to which `re` skips."""
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_PLACE: Final = re.compile(r"([0-9]+)\)?\Z")  # msgspec says "(byte 7)"; a StopIteration holds its index
_TRUNCATED: Final = "Input data was truncated"


class Undecodable(ValueError):  # noqa: N818  # no user meets it
    """The text is no JSON that a call may hold.

    `code` is one of `MALFORMED_CODES`; `cut` tells whether the text only ends early; `reached` is the index up to which
    it was looked at, where that is known (else 0: the whole text); `key` is the one that is there twice.
    """

    def __init__(self, code: str, *, cut: bool = False, reached: int = 0, key: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.key = key
        self.cut = cut
        self.reached = reached


def encode(text: str) -> str:
    """Return a long text, without halves of surrogate pairs, as a JSON string, as stdlib json does: 4 times as fast."""
    return _encode(text).decode()


def decode(text: str, depth_limit: int, *, spares_memory: bool = False) -> JsonValue:
    """Return the value of a JSON text. Raises Undecodable. Linear time; 0.7 microseconds and up.

    `spares_memory`: of a long text, no third copy is made; for that, msgspec does not read it.
    """
    size = len(text)
    if size <= COUNTED or not spares_memory:
        try:
            value = _decode(text)
            kind = type(value)
            if kind is not dict and kind is not list:
                return value
            colons = text.count(":") if size <= COUNTED else -1  # as many as keys, or more; -1: not counted
            if (kind is dict and len(value) == colons) and (
                size <= 2 * depth_limit or colons + text.count("[") < depth_limit
            ):
                return value  # what is nested in it are lists, or empty
            keys = _keys(value, depth_limit)
            if keys == colons or keys == (_key_colons(text) if COMPILED else len(_KEY_COLONS(text))):
                return value  # as many keys as colons behind keys, at most: none can be there twice
        except msgspec.ValidationError:
            pass  # an integer of thousands of digits: where it is negative, stdlib json takes one more
        except (ValueError, RecursionError) as error:
            wrong = _undecodable(error)
            if size > COUNTED:
                wrong.reached = max(wrong.reached, size // _COPIED)
            raise wrong from error
    try:
        value, end = _scan(text, _BLANK_RUN.match(text).end())  # type: ignore[union-attr]  # it matches the empty text too
    except (ValueError, RecursionError, StopIteration) as error:
        raise _undecodable(error) from error
    if _BLANK_RUN.match(text, end).end() != len(text):  # type: ignore[union-attr]
        raise Undecodable("unexpected-text")
    return _checked(value, text, depth_limit)


def _key_colons(text: str) -> int:
    """Return how many colons `_KEY_COLONS` finds: in the compiled engine, a third of its time."""
    count = 0
    colon = text.find(":", 1)
    while colon > 0:
        quote = colon - 1
        before = ord(text[quote])
        if before in (0x20, 0x09, 0x0D, 0x0A) and quote:  # codes: to look at a character by itself takes ten times that
            quote -= 1
            before = ord(text[quote])
            if before in (0x20, 0x09, 0x0D, 0x0A):
                count += 1
        if before == _QUOTE and quote:
            escaped = ord(text[quote - 1]) == _BACKSLASH
            if not escaped or (quote > 1 and ord(text[quote - 2]) == _BACKSLASH):
                count += 1
        colon = text.find(":", colon + 1)
    return count


def decode_at(
    text: str, at: int, depth_limit: int, window: int = _FIRST_WINDOW, closer: str = ""
) -> tuple[JsonValue, int]:
    """Return the value whose JSON text begins at index `at` of `text`, and the index behind it. Raises Undecodable.

    `window` characters are looked at first, then sixteen times as many, and so on: an error costs what was looked at.
    Before more are, the last `closer` in them, which begins with the value's last character, is a guess at its end.
    """
    while True:
        piece = text[at : at + window]
        whole = len(text) <= at + window
        try:
            value, end = _scan(piece, 0)
        except (ValueError, RecursionError, StopIteration) as error:
            cut = _is_cut(error, piece)
            if whole or not cut:
                wrong = _undecodable(error)
                wrong.cut = cut
                if window > _FIRST_WINDOW:
                    wrong.reached = max(wrong.reached, len(piece) // _COPIED)
                raise wrong from error
            end = window
        if whole or end < window:
            return _checked(value, piece[:end], depth_limit), at + end
        last = text.rfind(closer, at + window, at + 16 * window) if closer else -1
        if last >= 0:
            try:
                return decode(text[at : last + 1], depth_limit), last + 1
            except Undecodable:
                pass
        window *= 16


def _is_cut(error: BaseException, piece: str) -> bool:
    """Whether what is wrong may only be that the piece ends: in an open string, or in its last token."""
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
    if isinstance(error, json.JSONDecodeError):
        return Undecodable("unexpected-text", reached=error.pos)
    if isinstance(error, msgspec.DecodeError | UnicodeEncodeError | StopIteration):
        message = str(error)
        place = _PLACE.search(message)
        return Undecodable("unexpected-text", cut=message == _TRUNCATED, reached=int(place[1]) if place else 0)
    return Undecodable("bad-number")  # an integer over 4,300 digits


def _checked(value: JsonValue, source: str, depth_limit: int) -> JsonValue:
    """Return `value`, as stdlib json read it from `source`, if it holds no lone surrogate and is not too deep.

    Where few values stand in a long text, to look at them is cheaper than to count its brackets; else they are counted.
    """
    size = len(source)
    depth, is_ascii = _look_at(value, depth_limit, size // _SPARSE) if size > COUNTED else (-1, True)
    if depth < 0:
        if source.isascii() and "\\u" not in source and source.count("{") + source.count("[") <= depth_limit:
            return value
        depth, is_ascii = _look_at(value, depth_limit, size)
    if depth > depth_limit:
        raise Undecodable("nesting-too-deep")
    if not is_ascii:
        try:
            _encode(value)
        except UnicodeEncodeError as error:
            raise Undecodable("unexpected-text") from error
    return value


def _keys(value: dict[str, Any] | list[Any], depth_limit: int) -> int:
    """Return how many keys there are in a container. Raises Undecodable where containers are nested deeper."""
    if not depth_limit:
        raise Undecodable("nesting-too-deep")
    count = 0
    children: list[Any]
    if isinstance(value, dict):
        count = len(value)
        children = list(value.values())  # a copy: the compiled engine needs no iterator then
    else:
        children = value
    for child in children:
        kind = type(child)
        if kind is dict or kind is list:
            count += _keys(child, depth_limit - 1)
    return count


def _look_at(value: JsonValue, limit: int, most: int) -> tuple[int, bool]:
    """Return how deep containers are nested, at most `limit` + 1, and whether all strings are ASCII.

    The depth is -1 where there are more than `most` values: they were not all looked at.
    """
    depth = 0
    is_ascii = True
    level: list[Any] = [value]
    while level and depth <= limit:
        most -= len(level)
        if most < 0:
            return -1, is_ascii
        below: list[Any] = []
        found = False
        for item in level:
            if isinstance(item, str):
                is_ascii = is_ascii and item.isascii()
            elif isinstance(item, dict):
                found = True
                is_ascii = is_ascii and all(map(str.isascii, item))
                below += item.values()
            elif isinstance(item, list):
                found = True
                below += item
        depth += found
        level = below
    return depth, is_ascii


def has_longer(value: JsonValue, digits: int) -> bool:
    """Return whether an integer in a decoded value, of which none has more than DIGITS_LIMIT digits, has more."""
    if digits >= DIGITS_LIMIT:
        return False
    least = 10**digits
    values: list[Any] = [value]
    for item in values:  # which grows
        if isinstance(item, dict):
            values += item.values()
        elif isinstance(item, list):
            values += item
        elif type(item) is int and abs(item) >= least:
            return True
    return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise Undecodable("duplicate-key", key=key)
    return found


def _finite(number: str) -> float:
    value = float(number)
    if not isfinite(value):
        raise Undecodable("bad-number")
    return value


def _refuse(_: str) -> None:
    raise Undecodable("unexpected-text")


_scan: Callable[[str, int], tuple[JsonValue, int]] = json.JSONDecoder(  # type: ignore[attr-defined]
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse
).scan_once
