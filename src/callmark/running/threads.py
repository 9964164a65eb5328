"""`Threads`: where an async tool's own event loop runs what blocks. They end with the tool, or are seen not to.

The threads of `concurrent.futures` do neither: a program waits for them at its end, whatever hangs in them, and nobody
knows of them.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from callmark.tools.foreign import attempt

P = ParamSpec("P")
T = TypeVar("T")

_AT_ONCE: Final = 32  # as many as asyncio's own executor has at most


class Threads(ThreadPoolExecutor):
    """An executor of daemon threads for an event loop, by `loop.set_default_executor`.

    What is submitted runs in the context of who submits it, so it stays under review, and belongs to the body that it
    is a part of, also by `loop.run_in_executor`. Raises RuntimeError where no thread can be started.
    """

    def __init__(self) -> None:
        super().__init__(_AT_ONCE)
        self._changed = threading.Condition()
        self._tasks: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._running = 0
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a thread, as soon as one is free."""
        future: Future[T] = Future()
        body = partial(contextvars.copy_context().run, fn, *args, **kwargs)
        with self._changed:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._running < _AT_ONCE:
                threading.Thread(target=self._work, name="callmark-tool-threads", daemon=True).start()
                self._running += 1
            self._tasks.append((future, body))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing any more."""
        with self._changed:
            self._closed = True
            dropped = list(self._tasks) if cancel_futures else []
        for future, _ in dropped:
            future.cancel()
        if wait:
            self.ended()

    def ended(self, seconds: float | None = None) -> bool:
        """Wait for what runs, so long at most; return whether all of it is over."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._tasks:
                    self._running -= 1
                    self._changed.notify_all()
                    return
                future, body = self._tasks.popleft()
            _fulfil(future, body)
            del future, body  # what they came to is kept by nobody here


def _fulfil(future: Future[Any], body: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    value, error = attempt(body)
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
