"""What a reader of a call's body says of itself: its status, what it expects, and faults. All readers share these."""

from __future__ import annotations

from typing import Final, NamedTuple

from callmark.events import Repair, Span
from callmark.reading.schemas import Parameters

OPEN: Final = 0  # status: it wants more text
DONE: Final = 1  # its value is complete
DEAD: Final = 2  # no continuation could make it one
STUCK: Final = 3  # another reader goes on
HELD: Final = True
"""What a reader's `stops` says of a chunk that it has taken, and of which nothing comes out yet."""

VALUE: Final = 0  # state: what is expected
FIRST_ITEM: Final = 1
ITEM: Final = 2
FIRST_KEY: Final = 3
KEY: Final = 4
COLON: Final = 5
NEXT: Final = 6


class Fault(NamedTuple):
    """Something wrong that cannot be mended, but has an end: reading goes on behind it, and the call is refused.

    `code` is one of `MALFORMED_CODES`, `expected` says what should stand in its place, as a message does.
    """

    code: str
    expected: str
    span: Span


class BodyReader:
    """What a reader that mends says of itself, whatever it reads.

    status      OPEN, DONE or DEAD; then `code` and `expected` say why
    name, id    what an envelope holds
    out         the arguments as JSON, in pieces: whoever takes them clears it
    repairs     what was mended; `faults`: what was passed by
    sound       position of the last token; `error`: of what is wrong where reading went on behind it, else -1
    start, end  span of the arguments
    """

    __slots__ = (
        "_depth_limit", "_parameters", "_tolerant", "code", "end", "error", "expected", "faults", "id", "name", "out",
        "repairs", "sound", "start", "status",
    )  # fmt: skip

    def __init__(self, start: int, depth_limit: int, tolerant: bool, parameters: Parameters | None) -> None:
        """Begin to read at position `start` of the stream."""
        self.status = OPEN
        self.code = self.expected = ""
        self.name: str | None = None
        self.id: str | None = None
        self.out: list[str] = []
        self.repairs: list[Repair] = []
        self.faults: list[Fault] = []
        self.sound = self.start = self.end = start
        self.error = -1
        self._depth_limit = depth_limit
        self._tolerant = tolerant
        self._parameters = parameters

    def _repair(self, code: str, start: int, end: int) -> None:
        self.repairs.append(Repair(code, Span(start, end)))

    def _die(self, code: str, expected: str, at: int) -> int:
        self.status = DEAD
        self.code = code
        self.expected = expected
        return at
