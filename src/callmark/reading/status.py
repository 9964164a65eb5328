"""What a reader of a call's body says of itself: its status, and what it expects. All readers share these."""

from __future__ import annotations

from typing import Final

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
