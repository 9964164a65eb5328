"""Server-Sent Events, as models' servers write them: what `OpenAIModel` and the proxy read of their answers."""

from __future__ import annotations

from typing import Final

EVENT_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of one event of a stream: a whole answer fits; more is no event but a stream that forgot to end one."""


class EventLimitError(ValueError):
    """An event is longer than EVENT_LIMIT."""


class EventDecoder:
    """Decodes Server-Sent Events, as they come in: `feed` returns the data of those that are complete.

    Names, ids and comments are passed over. Lines may end in LF, CRLF or CR, and where the empty line between two
    events is missing, an object that is complete ends one. Raises EventLimitError for an event longer than EVENT_LIMIT.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # of a line that is not complete
        self._begun = 0  # bytes of it
        self._data: list[bytes] = []  # of an event that is not complete
        self._size = 0  # bytes of it; other lines count while they come, and are over then, comments without end too
        self._returned = False  # whether the last piece ended in CR, of which LF may be the other half

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that `piece` completes."""
        found: list[bytes] = []
        if piece and (self._returned or b"\r" in piece):
            begun = piece[self._returned and piece.startswith(b"\n") :]
            self._returned = piece.endswith(b"\r")
            piece = begun.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in piece:
            self._rest.append(piece)
            self._begun += len(piece)
            self._check()
            return found
        *lines, rest = (b"".join(self._rest) + piece if self._rest else piece).split(b"\n")
        self._rest = [rest] if rest else []
        self._begun = len(rest)
        for line in lines:
            if line.startswith(b"data:"):
                self._line(line[5:].strip(b" "), found)
            elif not line:
                self._end(found)
            elif line.startswith(b"\xef\xbb\xbfdata:"):  # a mark of UTF-8 may stand at the beginning
                self._line(line[8:].strip(b" "), found)
            elif line.startswith(b"error:"):  # llama.cpp, until 2025
                self._line(b'{"error":' + line[6:].strip(b" ") + b"}", found)
        return found

    def finish(self) -> list[bytes]:
        """Return the data of an event that the end of the stream completes, as servers have it that forget a line."""
        found = self.feed(b"\n") if self._rest else []
        self._end(found)
        return found

    def _line(self, data: bytes, found: list[bytes]) -> None:
        if self._data and data[:1] in (b"{", b"[") and self._data[0][:1] == b"{" and self._data[-1][-1:] == b"}":
            self._end(found)  # joined by a line break these would be no JSON
        if data:
            self._data.append(data)
            self._size += len(data)
            self._check()
        if data == b"[DONE]":  # nothing comes behind it, from some servers not even the empty line
            self._end(found)

    def _end(self, found: list[bytes]) -> None:
        if self._data:
            found.append(b"\n".join(self._data))
            self._data.clear()
            self._size = 0

    def _check(self) -> None:
        if self._begun + self._size > EVENT_LIMIT:
            raise EventLimitError(f"expected an event of at most {EVENT_LIMIT} bytes")
