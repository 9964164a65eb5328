"""JSON inside another language: in a string of JSON, or between tags. What it is written in is decoded by others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from callmark.reading.values import ValueReader

OPEN, DONE, DEAD = 0, 1, 2  # status
HELD: Final = object()
"""What a reader's `stops` says of a chunk that it has taken, and of which nothing comes out yet."""


class Embedded:
    """Feeds decoded text, which comes in pieces, to the reader of its JSON, and keeps what that wants to see again."""

    __slots__ = ("_held", "begun", "reader")

    def __init__(self, reader: ValueReader) -> None:
        self.reader = reader
        self.begun = False  # whether anything but blanks has come
        self._held = ""

    @property
    def broken(self) -> bool:
        """Whether no more text can make it JSON."""
        return self.reader.status == DEAD

    @property
    def whole(self) -> bool:
        """Whether a JSON value has come to its end."""
        return self.reader.status == DONE

    def take(self, piece: str, end: int, out: list[str]) -> int:
        """Read a piece, which ends at position `end`; write its JSON to `out`.

        Returns the position up to which it was read: that of the error, where the reader says that there is one, and
        where something stands behind a whole value.
        """
        self.begun = self.begun or not piece.isspace()
        reader = self.reader
        text = self._held + piece
        base = end - len(text)
        done = 0
        if reader.status == OPEN:
            done = reader.feed(text, 0, base)
            out.extend(reader.out)
            reader.out.clear()
            if reader.status == DEAD:
                return base + done if reader.error < 0 else reader.error
        rest = text[done:]
        self._held = rest if reader.status == OPEN else ""
        if reader.status == DONE and rest.strip(" \t\r\n"):
            return base + done + len(rest) - len(rest.lstrip(" \t\r\n"))
        return end
