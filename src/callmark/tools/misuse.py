"""What a caller's own arguments must be: a wrong one is told where it is given, not as a TypeError somewhere within."""

from __future__ import annotations

from math import inf
from typing import Any

from callmark.errors import UsageError, number
from callmark.tools.foreign import is_async


def require(where: str, kind: Any, expected: str, **given: Any) -> None:
    """Raise UsageError unless each of `given` is of a kind, or of one of several: True and False are no numbers.

    >>> require("LoopGuard", int, "a whole number", calls=5, rounds=2.5)
    Traceback (most recent call last):
    callmark.errors.UsageError: LoopGuard, rounds: expected a whole number, found 2.5
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for name, value in given.items():
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            found = number(value) if isinstance(value, int | float) else type(value).__name__
            raise UsageError(f"{where}, {name}: expected {expected}, found {found}")


def require_whole(where: str, least: int, **given: Any) -> None:
    """Raise UsageError unless each of `given` is a whole number that is not too small.

    >>> require_whole("LoopGuard", 1, calls=5, rounds=0)
    Traceback (most recent call last):
    callmark.errors.UsageError: LoopGuard, rounds: expected at least 1, found 0
    """
    require(where, int, "a whole number", **given)
    for name, value in given.items():
        if value < least:
            raise UsageError(f"{where}, {name}: expected at least {least}, found {number(value)}")


def require_seconds(where: str, longest: float, **given: Any) -> None:
    """Raise UsageError unless each of `given` is a time to wait for.

    >>> require_seconds("LoopGuard", 10**9, seconds=-1)
    Traceback (most recent call last):
    callmark.errors.UsageError: LoopGuard, seconds: expected more than 0 and at most 1,000,000,000, found -1
    """
    require(where, (int, float), "a number of seconds", **given)
    bound = "" if longest == inf else f" and at most {longest:,}"
    for name, value in given.items():
        if not 0 < value <= longest:
            raise UsageError(f"{where}, {name}: expected more than 0{bound}, found {number(value)}")


def require_plain(where: str, **given: Any) -> None:
    """Raise UsageError for an async function, of which nothing would be done, as nobody awaits what it returns.

    >>> async def tell(record): ...
    >>> require_plain("Executor", announce=tell)
    Traceback (most recent call last):
    callmark.errors.UsageError: Executor, announce: expected a function that is not async, as nobody awaits it
    """
    for name, value in given.items():
        if callable(value) and is_async(value):
            raise UsageError(f"{where}, {name}: expected a function that is not async, as nobody awaits it")
