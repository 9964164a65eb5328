"""`Breaker`: leaves a tool alone that fails again and again, and tries it with one call before it trusts it again."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import NoneType
from typing import Any, Literal

from callmark.errors import UsageError
from callmark.running.forks import Forking
from callmark.running.loop_guard import LONGEST_SECONDS, seconds_left
from callmark.tools.foreign import attempt
from callmark.tools.misuse import require, require_plain, require_seconds, require_whole
from callmark.tools.results import Failure

State = Literal["closed", "open", "half-open"]


class BreakerTicket:
    """The permit of one call. It counts once, and only in the state that gave it."""

    __slots__ = ("generation", "settled")

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.settled = False


class Breaker(Forking):
    """The breaker of one tool.

        closed      every call may run; `failures` in a row open it
        open        none may, for `seconds`
        half-open   one may, the probe: success closes the breaker, failure opens it for another `seconds`

    >>> breaker = Breaker(failures=1, seconds=30.0, clock=lambda: 0.0)
    >>> breaker.failed(breaker.admit())
    >>> breaker.state, breaker.admit().retry_after
    ('open', 30.0)

    `admit` gives a ticket, and each ticket wants exactly one of `succeeded`, `failed` and `ignored` (it was cancelled,
    say: that gives the permit back and says nothing of the tool). A ticket from before the last change of state is
    stale and counts for nothing, so a slow call cannot close what others opened. `listener(old, new)` is called after
    each change, outside of the lock; what it raises changes nothing. Threads may share a breaker.
    """

    def __init__(
        self,
        *,
        failures: int = 5,
        seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        listener: Callable[[State, State], Any] | None = None,
    ) -> None:
        require_whole("Breaker", 1, failures=failures)
        require_seconds("Breaker", LONGEST_SECONDS, seconds=seconds)
        require("Breaker", Callable, "a function", clock=clock)
        require("Breaker", (Callable, NoneType), "a function", listener=listener)
        require_plain("Breaker", listener=listener)
        self.failures = failures
        self.seconds = seconds
        self._clock = clock
        self._listener = listener
        self._state: State = "closed"
        self._generation = 0
        self._failed = 0  # in a row
        self._opened = 0.0
        self._forced = False
        super().__init__()

    def _begin(self) -> None:
        super()._begin()
        self._generation += 1  # tickets of another process are stale here
        self._probe: BreakerTicket | None = None

    @property
    def state(self) -> State:
        """The state now. Asking takes no permit."""
        with self._lock:
            return "half-open" if self._rested() else self._state

    def admit(self, ticket: BreakerTicket | None = None) -> BreakerTicket | Failure:
        """Return a ticket for a call that may run, a Failure that says why it may not and when to ask again.

        Who had to wait since hands in the `ticket` of then: it is returned where it still counts.
        """
        answer: BreakerTicket | Failure
        with self._lock:
            if ticket is not None and ticket.generation == self._generation and not ticket.settled:
                return ticket
            old = self._state
            if self._rested():
                self._change("half-open")
            if self._state == "closed":
                answer = BreakerTicket(self._generation)
            elif self._state == "half-open" and self._probe is None:
                answer = self._probe = BreakerTicket(self._generation)
            else:
                answer = self._refusal()
            new = self._state
        self._tell(old, new)
        return answer

    def succeeded(self, ticket: BreakerTicket) -> None:
        """Say that the call of a ticket went well."""
        self._settle(ticket, "succeeded")

    def failed(self, ticket: BreakerTicket) -> None:
        """Say that the tool failed."""
        self._settle(ticket, "failed")

    def ignored(self, ticket: BreakerTicket) -> None:
        """Give a permit back: the call says nothing of the tool."""
        self._settle(ticket, "ignored")

    def force(self, state: State) -> None:
        """Hold the breaker in a state, whatever happens, until `release`."""
        if state not in ("closed", "open", "half-open"):
            raise UsageError(f"force: expected closed, open or half-open, found {state!r}")
        with self._lock:
            old = self._state
            self._forced = False
            self._change(state)
            self._forced = True
        self._tell(old, state)

    def release(self) -> None:
        """Let the breaker work by itself again, from the state that it was held in."""
        with self._lock:
            self._forced = False
            self._change(self._state)

    def _rested(self) -> bool:
        return self._state == "open" and not self._forced and self._clock() - self._opened >= self.seconds

    def _settle(self, ticket: BreakerTicket, outcome: Literal["succeeded", "failed", "ignored"]) -> None:
        with self._lock:
            old = self._state
            if not ticket.settled and ticket.generation == self._generation:
                self._count(outcome)
            ticket.settled = True
            new = self._state
        self._tell(old, new)

    def _count(self, outcome: str) -> None:
        probing = self._state == "half-open"
        self._probe = None
        if outcome == "succeeded":
            self._failed = 0
            if probing:
                self._change("closed")
        elif outcome == "failed":
            self._failed += 1
            if probing or self._failed >= self.failures:
                self._change("open")

    def _change(self, state: State) -> None:
        if self._forced:
            return
        self._state = state
        self._generation += 1
        self._failed = 0
        self._probe = None
        if state == "open":
            self._opened = self._clock()

    def _refusal(self) -> Failure:
        wait: float | None = self.seconds
        if self._forced:
            wait = None
        elif self._state == "open":
            wait = seconds_left(self._clock(), self._opened, self.seconds)
        message = "the tool failed several times in a row and is left alone for now"
        return Failure(kind="breaker-open", message=message, hint="do without it", retry_after=wait)

    def _tell(self, old: State, new: State) -> None:
        if self._listener is not None and old != new:
            attempt(self._listener, old, new)
