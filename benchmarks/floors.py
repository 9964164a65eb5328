"""What any reader must at least do, timed beside callmark in the same run: figures are ratios to these.

A whole text: find the openers and decode the arguments. A stream: be called once per chunk, and (unless silent)
answer with one event. No floor builds a call, follows quotes, or could lose one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

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
