"""What wakes and what stops: `Cancel`, which stops work from any thread, and `Bell`, which wakes one coroutine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from callmark.tools.foreign import Outcome, attempt, attempt_async, overheard

T = TypeVar("T")

_LEAVING_SECONDS: Final = 1.0  # to clean up, for what was given up and is told to stop once more


class Cancel:
    """Says once and for all that nobody waits any more. A child is cancelled with a parent, not the other way round.

    When `set` has returned, nothing begins that asks `begin` first.

    >>> cancel = Cancel()
    >>> work = Cancel(cancel)
    >>> work.begin()
    True
    >>> cancel.set()
    >>> work.begin(), work.is_set()
    (False, True)
    """

    def __init__(self, *parents: Cancel | None) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._listeners: dict[object, Callable[[], object]] = {}
        self._parents = [parent for parent in parents if parent is not None]
        self.began = False
        for parent in self._parents:
            parent.listen(self.set, name=self)

    def set(self) -> None:
        """Cancel: new work does not begin, and listeners are called, once, in this thread, whatever one raises."""
        with self._lock:
            self._event.set()
            listeners = list(self._listeners.values())
            self._listeners.clear()
        for listener in listeners:
            attempt(listener)

    def is_set(self) -> bool:
        """Return whether it was cancelled."""
        return self._event.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it is cancelled, or for `timeout` seconds, and return whether it was."""
        return self._event.wait(timeout)

    def begin(self) -> bool:
        """Return whether work may begin; `began` says from then on that it did, also to who cancels at this moment."""
        with self._lock:
            self.began = self.began or not self._event.is_set()
            return not self._event.is_set()

    def listen(self, listener: Callable[[], object], *, name: object = None) -> None:
        """Call `listener` when it is cancelled, at once where it was already. It must be quick."""
        with self._lock:
            if not self._event.is_set():
                self._listeners[name or listener] = listener
                return
        attempt(listener)

    def leave(self) -> None:
        """Let go of the parents: the work is over."""
        for parent in self._parents:
            with parent._lock:
                parent._listeners.pop(self, None)


class Handed(Cancel):
    """A child for code that somebody else wrote: what listens there may hang, so a thread of its own tells it.

    body   that it was handed to, while it runs
    """

    body: Any = None

    def set(self) -> None:
        """Cancel, and call the listeners in another thread."""
        with self._lock:
            self._event.set()
            listened = bool(self._listeners)
        if listened:
            threading.Thread(target=super().set, name="callmark-cancel", daemon=True).start()


class Bell:
    """Wakes the coroutine that made it, from any thread. It rings once."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    def ring(self) -> None:
        """Wake who waits. Does nothing where the loop is gone."""
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            pass  # the loop was closed: nobody waits

    def _set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until it rings, or for so many seconds, and return whether it rang."""
        await asyncio.wait((self._future,), timeout=seconds)
        return self._future.done()


async def unless(cancel: Cancel | None, work: Awaitable[T], seconds: float | None = None) -> T | None:
    """Return what `work` comes to, None where it is cancelled or takes longer: then it is left behind.

    It may cancel itself, as who awaits what a dialog's closing cancels does: that is None too.
    """
    own = Cancel(cancel)
    bell = Bell()
    own.listen(bell.ring)
    task = leavable_task(attempt_here(lambda: work), own.is_set)
    _end_with(task, work)
    stop = asyncio.ensure_future(bell.wait(seconds))
    try:
        await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
        if not task.done() or task.cancelled():
            return None
        value, error = task.result()
    finally:
        own.leave()
        own.set()
        stop.cancel()
        leave_behind(task)
    if error is None or isinstance(error, asyncio.CancelledError):
        done: T | None = value
        return done
    raise error


async def attempt_here(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Do what `attempt_async` does; a cancellation that nobody wants of this task is an outcome too.

    Who awaits what was cancelled elsewhere (a dialog that was closed, say) raises one, and means nobody else's work.
    """
    try:
        return await attempt_async(function, *arguments)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Outcome(None, error)


def leavable_task(work: Coroutine[Any, Any, T], given_up: Callable[[], bool]) -> asyncio.Task[T]:
    """Run in a task of this loop what somebody else wrote, who may refuse to be cancelled for ever.

    Such a task goes on when it was given up. Cancelled again, as `asyncio.run` does at its end, it is over within a
    second: whoever waits for all tasks would wait for ever.
    """

    left = False

    def leave(task: asyncio.Task[Any]) -> None:
        nonlocal left
        if task.cancelling() > 1:  # else it was a time limit of its own
            left = True
            task.cancel()

    def heard(error: BaseException) -> None:
        task = asyncio.current_task()
        if left:
            raise error
        if task is not None and given_up() and task.cancelling() > 1:
            asyncio.get_running_loop().call_later(_LEAVING_SECONDS, leave, task)

    async def run() -> T:
        return await overheard(work, heard)

    task = asyncio.ensure_future(run())
    _end_with(task, work)
    return task


def _end_with(task: asyncio.Task[Any], work: Awaitable[Any]) -> None:
    """Close a coroutine when its task is over: one that is cancelled before its first step has not begun it."""
    if isinstance(work, Coroutine):
        close = work.close  # nothing where it is over
        task.add_done_callback(lambda _: attempt(close))


def leave_behind(task: asyncio.Future[Any]) -> None:
    """Cancel what nobody waits for any more. The loop would log what it raises still, contents and all."""
    task.cancel()  # nothing where it is done
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
