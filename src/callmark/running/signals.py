"""What wakes and what stops: `Cancel`, which stops work from any thread, and `Bell`, which wakes one coroutine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable


class Cancel:
    """Says once and for all that nobody waits any more. A child is cancelled with its parent, not the other way round.

    When `set` has returned, nothing begins that asks `begin` first.

    >>> cancel = Cancel()
    >>> work = Cancel(cancel)
    >>> work.begin()
    True
    >>> cancel.set()
    >>> work.begin(), work.is_set()
    (False, True)
    """

    def __init__(self, parent: Cancel | None = None) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._listeners: dict[object, Callable[[], object]] = {}
        self._parent = parent
        self.began = False
        if parent is not None:
            parent.listen(self.set, name=self)

    def set(self) -> None:
        """Cancel: new work does not begin, and listeners are called, once, in this thread."""
        with self._lock:
            self._event.set()
            listeners = list(self._listeners.values())
            self._listeners.clear()
        for listener in listeners:
            listener()

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
        """Call `listener` when it is cancelled, at once where it was already. It must be quick and not raise."""
        with self._lock:
            if not self._event.is_set():
                self._listeners[name or listener] = listener
                return
        listener()

    def leave(self) -> None:
        """Let go of the parent: the work is over."""
        if self._parent is not None:
            with self._parent._lock:
                self._parent._listeners.pop(self, None)


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
