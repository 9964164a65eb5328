"""Text that comes in small pieces and is wanted whole later."""

from __future__ import annotations

from typing import Final

TOGETHER: Final = 128
"""Pieces that are joined at a time: a list of 4-character strings takes 15 times its text, joined segments 1.1 times,
and joining costs no more than appending does. `text += piece` would copy everything each time."""

STRETCH: Final = 512
"""Characters after which the pieces of a stream are joined, however many they are: to compare positions, which are
known anyway, costs less than to ask for the length of a list."""


class Pieces:
    """A text under construction: `append` in constant time, `take` once.

    Who is in a hurry appends to `recent` himself, and calls `fold` every STRETCH characters.
    """

    __slots__ = ("_segments", "recent")

    def __init__(self) -> None:
        self.recent: list[str] = []
        self._segments: list[str] = []

    def append(self, piece: str) -> None:
        """Add a piece at the end."""
        self.recent.append(piece)
        if len(self.recent) >= TOGETHER:
            self.fold()

    def fold(self) -> None:
        """Join the recent pieces."""
        self._segments.append("".join(self.recent))
        self.recent.clear()

    def text(self) -> str:
        """Return the whole text."""
        if self.recent:
            self.fold()
        if len(self._segments) > 1:
            self._segments = ["".join(self._segments)]
        return self._segments[0] if self._segments else ""

    def take(self) -> str:
        """Return the whole text and forget it."""
        if not self._segments:  # few are longer than a stretch
            text = "".join(self.recent)
            self.recent.clear()
            return text
        text = self.text()
        self._segments.clear()
        return text


def fold(pieces: list[str]) -> None:
    """Join pieces in their list, where nobody takes them; only now and then, so that each costs the same in all."""
    if len(pieces) > TOGETHER and len(pieces) > len(pieces[0]) // 64:
        pieces[:] = ["".join(pieces)]
