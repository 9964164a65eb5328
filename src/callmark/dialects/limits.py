"""Bounds on what a call holds, for both sides: what is written must be read."""

from __future__ import annotations

from typing import Final

NESTING_LIMIT: Final = 64
"""Brackets inside of each other, the arguments' own among them: what reading's `Limits` are unless others are set."""
LENGTH_LIMIT: Final = 1_048_576
"""Characters of the arguments, with the same default."""
PLAIN_LIMIT: Final = 4096
"""Characters of a raw value up to which reading finds out what it is; what is longer is a string."""
