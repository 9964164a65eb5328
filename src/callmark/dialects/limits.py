"""Bounds on what a call holds and on its nonce, for both sides: what is written must be read."""

from __future__ import annotations

import re
from typing import Any, Final

from callmark.errors import UsageError

NESTING_LIMIT: Final = 64
"""Brackets inside of each other, the arguments' own among them: what reading's `Limits` are unless others are set."""
LENGTH_LIMIT: Final = 1_048_576
"""Characters of the arguments, with the same default."""
PLAIN_LIMIT: Final = 4096
"""Characters of a raw value up to which reading finds out what it is; what is longer is a string."""
BEHIND_CALL: Final = 8
"""Spaces behind a call that ends by itself, before another that otherwise begins a line."""
_NONCE: Final = re.compile(r"[0-9A-Za-z_\-]{1,64}")


def check_nonce(nonce: Any) -> None:
    """Raise UsageError for what is no nonce."""
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise UsageError(f"nonce: expected 1 to 64 ASCII letters, digits, `_` or `-`, found {nonce!r:.80}")
