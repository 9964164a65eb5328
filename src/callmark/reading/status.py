"""What readers of a call's body are told, and say of themselves: status, what is expected, faults. All share these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from callmark.dialects import Dialect
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


class Terms(Struct, frozen=True):  # made for each call, in a tenth of the time that a NamedTuple takes
    """On what terms a body is read, in whatever language it is.

    depth_limit  how deep brackets may nest
    parameters   those of the tool that is called, where they are known; `tools`: of all that were given, by their names
    others       rows that are listened for and not registered
    line_heads   patterns of markers that are listened for, begin lines, and look like a key there
    """

    depth_limit: int
    parameters: Parameters | None = None
    tools: Mapping[str, Parameters] | None = None
    others: tuple[Dialect, ...] = ()
    line_heads: tuple[str, ...] = ()


class Mending:
    """What a reader that mends says of itself, whatever it reads.

    status    OPEN, DONE or DEAD; then `code` and `expected` say why
    repairs   what was mended; `faults`: what was passed by
    """

    __slots__ = ("code", "expected", "faults", "repairs", "status")

    def __init__(self, repairs: list[Repair], faults: list[Fault]) -> None:
        """Take the lists that are added to."""
        self.status = OPEN
        self.code = self.expected = ""
        self.repairs = repairs
        self.faults = faults

    def _repair(self, code: str, start: int, end: int) -> None:
        self.repairs.append(Repair(code, Span(start, end)))

    def _fault(self, code: str, expected: str, start: int, end: int) -> None:
        self.faults.append(Fault(code, expected, Span(start, end)))

    def _die(self, code: str, expected: str, at: int) -> int:
        self.status = DEAD
        self.code = code
        self.expected = expected
        return at


class BodyReader(Mending):
    """What a reader of a call's body says of itself besides.

    name, id    what an envelope holds
    out         the arguments as JSON, in pieces: whoever takes them clears it
    sound       position of the last token; `error`: of what is wrong where reading went on behind it, else -1
    start, end  span of the arguments
    """

    __slots__ = ("_depth_limit", "_parameters", "_tolerant", "end", "error", "id", "name", "out", "sound", "start")

    def __init__(self, start: int, terms: Terms, tolerant: bool) -> None:
        """Begin to read at position `start` of the stream."""
        super().__init__([], [])
        self.name: str | None = None
        self.id: str | None = None
        self.out: list[str] = []
        self.sound = self.start = self.end = start
        self.error = -1
        self._depth_limit = terms.depth_limit
        self._parameters = terms.parameters
        self._tolerant = tolerant
