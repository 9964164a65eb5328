"""Calls code that someone else wrote: tools, listeners, approvers. The only place where any exception is caught.

Whatever such code raises becomes a value, so that it cannot end the loop that called it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """What foreign code did: the value that it returned, or the exception that it raised (`value` is None then)."""

    value: Any
    error: BaseException | None


def attempt(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Call `function` and return its outcome, `SystemExit` and `KeyboardInterrupt` included."""
    try:
        return Outcome(function(*arguments), None)
    except BaseException as error:  # noqa: BLE001  # a tool that calls sys.exit must not end its host
        return Outcome(None, error)


async def attempt_async(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Call `function`, await what it returns where that is awaitable, and return the outcome.

    What is no `Exception` passes: a cancellation is meant for the caller's own task.
    """
    try:
        value = function(*arguments)
        return Outcome(await value if inspect.isawaitable(value) else value, None)
    except Exception as error:  # noqa: BLE001  # see the module
        return Outcome(None, error)


async def attempt_task(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Do the same as the whole of a task: a cancellation is an outcome too, and nothing can end the event loop."""
    try:
        value = function(*arguments)
        return Outcome(await value if inspect.isawaitable(value) else value, None)
    except BaseException as error:  # noqa: BLE001  # see the module
        return Outcome(None, error)
