"""`LoopGuard`: stops a model that calls too fast, too often, or in circles. What it admits is exact, and never more.

The guard is a state machine with a clock handed in; it starts nothing and waits for nothing.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from math import ceil, ulp
from typing import Final, Literal, NamedTuple

from callmark.running.forks import Forking
from callmark.tools.misuse import require, require_seconds, require_whole
from callmark.tools.results import Failure

LONGEST_SECONDS: Final = 10**9  # some thirty years; in much longer times there are no milliseconds to wait for
LONGEST_CYCLE: Final = 4  # calls; longer ones are met by the budget first


class Attempt(NamedTuple):
    """A call that asks to be admitted. `key` is the same for the same call: its name and canonical arguments."""

    key: str
    mode: Literal["read", "write"] = "write"
    polling: bool = False


class LoopTicket:
    """An admitted call; hand it back with the digest of what it came to."""

    __slots__ = ("digest", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self.digest: str | None = None

    def same(self, other: LoopTicket) -> bool:
        """Return whether this was the same call with the same outcome."""
        return self.key == other.key and self.digest == other.digest


class LoopGuard(Forking):
    """Admits the calls of one conversation, message by message.

    calls, seconds   at most so many calls in any window of so many seconds, half-open: a call exactly `seconds` after
                     the one that fills the window is admitted. 5 in 30 stops a runaway, not a person
    rounds           messages with calls in one turn of the user; slow loops stay under any rate
    turn_calls       calls in one turn of the user
    repeats          how often the same call, or the same cycle of two to four calls, may come without a new result;
                     calls of polling tools are left out

    Reads of one message that run side by side, with no write between them, count as one call in the window, and each as
    one in the budget. Of a message that is too much, the first calls are admitted and the rest refused. A refusal costs
    nothing: it does not prolong the wait. Only time and `new_turn` reset anything.

    >>> guard = LoopGuard(calls=1, seconds=30.0, clock=lambda: 0.0)
    >>> [type(answer).__name__ for answer in guard.admit([Attempt("a"), Attempt("b")])]
    ['LoopTicket', 'Failure']

    Threads may share a guard. Cost of a call: some microseconds.
    """

    def __init__(
        self,
        *,
        calls: int = 5,
        seconds: float = 30.0,
        rounds: int = 8,
        turn_calls: int = 16,
        repeats: int = 3,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        require_whole("LoopGuard", 1, calls=calls, rounds=rounds, turn_calls=turn_calls, repeats=repeats)
        require_seconds("LoopGuard", LONGEST_SECONDS, seconds=seconds)
        require("LoopGuard", Callable, "a function", clock=clock)
        self.calls = calls
        self.seconds = seconds
        self.rounds = rounds
        self.turn_calls = turn_calls
        self.repeats = repeats
        self._clock = clock
        super().__init__()
        self._times: deque[float] = deque(maxlen=min(calls, sys.maxsize))
        self._history: deque[LoopTicket] = deque(maxlen=min(LONGEST_CYCLE * repeats, sys.maxsize))
        self._rounds_left = rounds
        self._calls_left = turn_calls

    def new_turn(self) -> None:
        """Begin anew: the user said something."""
        with self._lock:
            self._times.clear()
            self._history.clear()
            self._rounds_left = self.rounds
            self._calls_left = self.turn_calls

    def admit(self, message: Sequence[Attempt]) -> list[LoopTicket | Failure]:
        """Answer the calls of one message, in order: a ticket where it may run, a Failure where it may not."""
        with self._lock:
            now = self._clock()
            answers: list[LoopTicket | Failure] = []
            stopped = self._out_of_rounds()
            reading = False  # whether a read was counted already that this one runs beside
            for attempt in message:
                free = reading and attempt.mode == "read"
                stopped = stopped or self._out_of_budget() or (None if free else self._too_fast(now))
                refused = stopped or (None if attempt.polling else self._in_circles(attempt.key))
                if refused is not None:
                    answers.append(refused)
                    continue
                if not free:
                    self._times.append(now)
                reading = attempt.mode == "read"  # a write waits for what stands before it, what follows for the write
                self._calls_left -= 1
                ticket = LoopTicket(attempt.key)
                if not attempt.polling:
                    self._history.append(ticket)
                answers.append(ticket)
            self._rounds_left -= any(isinstance(answer, LoopTicket) for answer in answers)
            return answers

    def settle(self, ticket: LoopTicket, digest: str) -> None:
        """Say what an admitted call came to, as a digest: the same digest means that nothing is new."""
        with self._lock:
            ticket.digest = digest

    def blocked_seconds(self) -> float:
        """Return for how long the window is full, 0.0 where it is not. Asking changes nothing."""
        with self._lock:
            failure = self._too_fast(self._clock())
            return 0.0 if failure is None else failure.retry_after or 0.0

    def budget_left(self) -> tuple[int, int]:
        """Return how many messages with calls, and how many calls, the turn has left."""
        with self._lock:
            return self._rounds_left, self._calls_left

    def _out_of_rounds(self) -> Failure | None:
        return None if self._rounds_left > 0 else _refusal(f"{self.rounds} rounds of calls in one turn are enough")

    def _out_of_budget(self) -> Failure | None:
        return None if self._calls_left > 0 else _refusal(f"{self.turn_calls} calls in one turn are enough")

    def _too_fast(self, now: float) -> Failure | None:
        if len(self._times) < self.calls or now - self._times[0] >= self.seconds:
            return None
        wait = seconds_left(now, self._times[0], self.seconds)
        return _refusal(f"{self.calls} calls in {self.seconds:g} seconds are the limit", wait)

    def _in_circles(self, key: str) -> Failure | None:
        history = self._history
        for period in range(1, LONGEST_CYCLE + 1):
            first = len(history) - period * self.repeats
            if first < 0 or history[-period].key != key:
                continue
            if all(history[at].same(history[at + period]) for at in range(first, len(history) - period)):
                what = "the same call" if period == 1 else f"the same cycle of {period} calls"
                return _refusal(f"{what} came {self.repeats} times without a new result")
        return None


def seconds_left(now: float, since: float, seconds: float) -> float:
    """Return for how long to wait until `seconds` have passed: in milliseconds, and never too short by a rounding."""
    wait = max(0.0, ceil((seconds - (now - since)) * 1000) / 1000)
    while now + wait - since < seconds:
        wait += max(0.001, ulp(now))
    return wait


def _refusal(why: str, retry_after: float | None = None) -> Failure:
    hint = "answer without tools, from what you know"
    return Failure(kind="loop-guard", message=why, hint=hint, retry_after=retry_after)
