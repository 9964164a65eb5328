"""`Bulkhead`: how many calls run at once. Reads run side by side, writes one after another; the rest waits in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from callmark.running.forks import Forking
from callmark.tools.foreign import attempt
from callmark.tools.misuse import require_whole
from callmark.tools.results import Failure
from callmark.tools.tool import Mode


class Place:
    """A place inside, or in the queue. `inside` says which; `left` that it was given back."""

    __slots__ = ("inside", "left", "mode", "process", "wake")

    def __init__(self, process: object, mode: Mode, wake: Callable[[], object]) -> None:
        self.process = process
        self.mode = mode
        self.wake = wake
        self.inside = False
        self.left = False


class Bulkhead(Forking):
    """Limits calls that run at once, for each mode on its own.

    reads, writes   how many run at once; one write at a time by default, so that no two of them race
    waiting         how many wait beyond that; further ones are refused, since what waits grows without end

    >>> bulkhead = Bulkhead(writes=1)
    >>> first, second = bulkhead.enter("write"), bulkhead.enter("write", lambda: print("the second one is in"))
    >>> bulkhead.leave(first)
    the second one is in

    It starts nothing and blocks nobody: who waits is called back, and what that raises changes nothing. Threads may
    share one.
    """

    def __init__(self, *, reads: int = 4, writes: int = 1, waiting: int = 64) -> None:
        require_whole("Bulkhead", 1, reads=reads, writes=writes)
        require_whole("Bulkhead", 0, waiting=waiting)
        self._limits: dict[Mode, int] = {"read": reads, "write": writes}
        self._waiting_limit = waiting
        super().__init__()

    def _begin(self) -> None:
        super()._begin()
        self._process = object()  # places of another one are none here
        self._running: dict[Mode, int] = {"read": 0, "write": 0}
        self._queues: dict[Mode, deque[Place]] = {"read": deque(), "write": deque()}

    def enter(self, mode: Mode, wake: Callable[[], object] = lambda: None) -> Place | Failure:
        """Return a place: inside, or in the queue until `wake` is called, which must be quick. Failure: it is full."""
        with self._lock:
            place = Place(self._process, mode, wake)
            if self._running[mode] < self._limits[mode]:
                self._running[mode] += 1
                place.inside = True
            elif sum(map(len, self._queues.values())) < self._waiting_limit:
                self._queues[mode].append(place)
            else:
                return Failure(kind="busy", message=f"{self._waiting_limit} calls wait already", hint="try again later")
            return place

    def leave(self, place: Place) -> None:
        """Give a place back, or leave the queue. Doing it twice does nothing."""
        next_one: Place | None = None
        with self._lock:
            if place.left or place.process is not self._process:
                return
            place.left = True
            if not place.inside:
                self._queues[place.mode].remove(place)
            elif self._queues[place.mode]:
                next_one = self._queues[place.mode].popleft()
                next_one.inside = True
            else:
                self._running[place.mode] -= 1
        if next_one is not None:
            attempt(next_one.wake)

    def alike(self) -> Bulkhead:
        """Return another one, with the same limits."""
        reads, writes = self._limits["read"], self._limits["write"]
        return Bulkhead(reads=reads, writes=writes, waiting=self._waiting_limit)

    def running(self, mode: Mode) -> int:
        """Return how many calls of a mode are inside."""
        return self._running[mode]

    def waiting(self, mode: Mode) -> int:
        """Return how many wait."""
        return len(self._queues[mode])
