"""What any reader must at least do, timed beside callmark in the same run: figures are ratios to these.

A whole text: find the openers and decode the arguments. A stream: be called once per chunk, and (unless silent)
answer with one event. No floor builds a call, follows quotes, or could lose one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from callmark import ArgumentsDelta, Call, CallStart, Span, Text

_decode = msgspec.json.Decoder().decode


def find_and_decode(
    text: str, opener: str, slices: Sequence[tuple[int, int]] | None, json_texts: Sequence[str]
) -> list[Any]:
    """`str.find` for the opener, and msgspec on each call's arguments, whose place is known beforehand.

    Where a spelling does not write JSON (key=value, XML), the JSON text of the same arguments is decoded instead.
    """
    find = text.find
    found: list[Any] = []
    position = 0
    if slices is None:
        for json_text in json_texts:
            position = find(opener, position) + 1 or len(text)
            found.append(_decode(json_text))
    else:
        for start, end in slices:
            find(opener, position)
            found.append(_decode(text[start:end]))
            position = end
    find(opener, position)
    return found


_SIGNS: Final = tuple(
    (pattern[pattern[0] == "\\"], re.compile(pattern).search) for pattern in (r"\[(?=CALL)", "<(?=tool_)", "`(?=``)")
)


def find_decode_and_tell(
    text: str, opener: str, slices: Sequence[tuple[int, int]] | None, json_texts: Sequence[str]
) -> list[Any]:
    """Do what `find_and_decode` does, and what is asked of callmark besides, in a short loop over parts that are C.

    That is a look, by `re`, at each sign before a call with which a marker of most dialects or a fence may begin, and
    four events for the call with their texts and spans. Where it stands is known beforehand, so nothing is decided.
    It is no bound: it says what these parts cost as callmark uses them, and another way to search may cost less.
    """
    find = text.find
    events: list[Any] = []
    position = looked = 0
    for number, json_text in enumerate(json_texts):
        start = find(opener, looked)
        for sign, search in _SIGNS:
            seen = find(sign, position, start)
            if seen >= 0:
                search(text, seen, start)
        end = start + len(json_text) if slices is None else slices[number][1]
        source = json_text if slices is None else text[slices[number][0] : end]
        events += (
            Text(Span(position, start), text[position:start]),
            CallStart(number, "f", "call"),
            ArgumentsDelta(number, source),
            Call(Span(start, end), text[start:end], number, "f", _decode(source), source, "call", (), None),
        )
        position = end
        looked = start + 1 if slices is None else end
    find(opener, looked)
    events.append(Text(Span(position, len(text)), text[position:]))
    return events


class Silent:
    """The empty floor: a `feed` that does nothing."""

    def feed(self, chunk: str) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""


class Piece(msgspec.Struct, frozen=True, gc=False):
    """The smallest event."""

    text: str


class Emitting:
    """The emit floor: a `feed` that returns one event holding its chunk."""

    def feed(self, chunk: str) -> tuple[Piece, ...]:
        """Return the chunk as one event."""
        return (Piece(chunk),)

    def finish(self) -> None:
        """Do nothing."""
