"""What a reader of a call's body says of itself: its status, what it expects, and faults. All readers share these."""

from __future__ import annotations

from typing import Final, NamedTuple

from callmark.events import Span

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
