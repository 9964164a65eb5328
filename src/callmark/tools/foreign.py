"""Calls code that someone else wrote: tools, listeners, approvers. The only place where what it raises is a value.

So it cannot end the loop that called it. (Plug-ins are such code too: `callmark.dialects` makes a DialectError of it.)
"""

from __future__ import annotations

import inspect
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

YIELDS_LIMIT: Final = 65_536  # values, or characters of texts: more than any result shows, and no danger to memory


class Outcome(NamedTuple):
    """What foreign code did: the value that it returned, or the exception that it raised (`value` is None then)."""

    value: Any
    error: BaseException | None

    def __repr__(self) -> str:
        # A debugging event loop logs a slow task with what it came to.
        return "Outcome(value)" if self.error is None else f"Outcome({type(self.error).__name__})"


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function is async by its definition: then calling it blocks nobody. An object is its method."""
    begins = function if inspect.isroutine(function) or isinstance(function, partial) else type(function).__call__
    return inspect.iscoroutinefunction(begins) or inspect.isasyncgenfunction(begins)


def attempt(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Call `function` and return its outcome, `SystemExit` and `KeyboardInterrupt` included."""
    try:
        return Outcome(function(*arguments), None)
    except BaseException as error:  # noqa: BLE001  # a tool that calls sys.exit must not end its host
        return Outcome(None, error)


async def attempt_async(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Call `function`, await what it returns where that is awaitable, and return the outcome.

    A cancellation passes, which is meant for the caller's own task, and so does a KeyboardInterrupt.
    """
    try:
        value = function(*arguments)
        return Outcome(await value if inspect.isawaitable(value) else value, None)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # see the module
        return Outcome(None, error)


async def _collected(generator: AsyncGenerator[Any, None]) -> list[Any]:
    found: list[Any] = []
    room = YIELDS_LIMIT
    async with aclosing(generator):
        async for value in generator:
            found.append(value)
            room -= len(value) if type(value) in (str, bytes) else 1
            if room < 0:
                break
    return found


async def attempt_task(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Do the same as the whole of a task: a cancellation is an outcome too, and nothing can end the event loop.

    What an async generator yields becomes a list, up to YIELDS_LIMIT: it cannot be read once its loop is over.
    """
    try:
        value: Any = function(*arguments)
        if inspect.isasyncgen(value):
            return Outcome(await _collected(value), None)  # type: ignore[arg-type]  # narrowed to one of nothing
        return Outcome(await value if inspect.isawaitable(value) else value, None)
    except BaseException as error:  # noqa: BLE001  # see the module
        return Outcome(None, error)


@types.coroutine
def overheard(work: Coroutine[Any, Any, T], heard: Callable[[BaseException], None]) -> Generator[Any, Any, T]:
    """Await `work`, and tell `heard` what its task throws into it, before it gets that itself.

    What `heard` raises ends the wait: `work` is closed then, whatever it does about it.
    """
    thrown: BaseException | None = None
    try:
        while True:
            try:
                waits = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as end:
                value: T = end.value
                return value
            thrown = None
            try:
                yield waits
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001  # the loop means it for what is awaited
                heard(error)
                thrown = error
    finally:
        attempt(work.close)
