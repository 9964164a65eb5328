"""The three guards, each against a model of a few lines, with a clock that the test turns; and in a crowd."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import sys
import threading
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from callmark import UsageError
from callmark.running.breaker import Breaker, BreakerTicket
from callmark.running.bulkhead import Bulkhead, Place
from callmark.running.ledger import Ledger
from callmark.running.loop_guard import Attempt, LoopGuard, LoopTicket
from callmark.tools.results import Failure


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


CROWD = 50
STEPS = settings(stateful_step_count=40)
ticks = st.sampled_from([0.0, 0.5, 9.5, 10.0, 10.5])  # the window is 10: below, at and above its edge

# The loop guard.


class LoopGuardMachine(RuleBasedStateMachine):
    """The model: the times of admitted calls (reads side by side once), and what the turn has used up."""

    @initialize(calls=st.integers(1, 4), rounds=st.integers(1, 6), turn_calls=st.integers(1, 9))
    def start(self, calls, rounds, turn_calls):
        self.clock = Clock()
        self.guard = LoopGuard(
            calls=calls, seconds=10.0, rounds=rounds, turn_calls=turn_calls, repeats=2, clock=self.clock
        )
        self.times: list[float] = []
        self.rounds = self.admitted = 0

    @rule(seconds=ticks)
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def user_says_something(self):
        self.guard.new_turn()
        self.times, self.rounds, self.admitted = [], 0, 0

    @rule(message=st.lists(st.tuples(st.sampled_from(["read", "write"]), st.booleans()), max_size=5))
    def message(self, message):
        # Every call is another one here: repetition has a machine of its own.
        keys = iter(range(100))
        attempts = [Attempt(f"{self.clock.now}/{self.rounds}/{next(keys)}", mode, polls) for mode, polls in message]
        blocked = self.guard.blocked_seconds()
        answers = self.guard.admit(attempts)
        stopped, read_before = self.rounds >= self.guard.rounds, False
        for (mode, _), answer in zip(message, answers, strict=True):
            free = mode == "read" and read_before
            recent = [at for at in self.times if self.clock.now - at < 10.0]
            stopped = (
                stopped or self.admitted >= self.guard.turn_calls or (not free and len(recent) >= self.guard.calls)
            )
            assert isinstance(answer, Failure) is stopped
            if not stopped:
                self.admitted += 1
                self.times += [] if free else [self.clock.now]
                read_before = mode == "read"
            elif answer.retry_after is not None:
                assert self.clock.now + answer.retry_after == self.times[-self.guard.calls] + 10.0
        self.rounds += any(admitted(answers))
        if blocked and message and self.guard.budget_left()[0]:
            assert isinstance(answers[0], Failure)

    @invariant()
    def never_more_than_the_limit_in_any_window(self):
        times = getattr(self, "times", [])
        for first, last in zip(times, times[self.guard.calls :] if times else [], strict=False):
            assert last - first >= 10.0


class RepetitionMachine(RuleBasedStateMachine):
    """The model: the list of calls with their results; one is refused when it goes on with what came twice."""

    def __init__(self):
        super().__init__()
        self.guard = LoopGuard(calls=10**6, rounds=10**6, turn_calls=10**6, repeats=2, clock=lambda: 0.0)
        self.past: list[tuple[str, str]] = []

    @rule(key=st.sampled_from("abcd"), digest=st.sampled_from("xxxy"), polling=st.sampled_from([False, False, True]))
    def call(self, key, digest, polling):
        (answer,) = self.guard.admit([Attempt(key, "read", polling)])
        expected = not polling and any(
            len(self.past) >= 2 * period
            and self.past[-period:] == self.past[-2 * period : -period]
            and self.past[-period][0] == key
            for period in (1, 2, 3, 4)
        )
        assert isinstance(answer, Failure) is expected
        if isinstance(answer, LoopTicket):
            self.guard.settle(answer, digest)
            self.past += [] if polling else [(key, digest)]


TestLoopGuard = LoopGuardMachine.TestCase
TestRepetition = RepetitionMachine.TestCase
TestLoopGuard.settings = TestRepetition.settings = STEPS


def admitted(answers: list[Any]) -> list[bool]:
    return [isinstance(answer, LoopTicket) for answer in answers]


def test_five_calls_in_thirty_seconds_and_the_sixth_exactly_then():
    clock = Clock()
    guard = LoopGuard(clock=clock)
    for second in range(5):
        clock.now = float(second)
        assert admitted(guard.admit([Attempt(str(second))])) == [True]
    clock.now = 29.5
    for _ in range(9):
        (refusal,) = guard.admit([Attempt("x")])
        assert (refusal.kind, refusal.retry_after) == ("loop-guard", 0.5)
    assert guard.blocked_seconds() == 0.5
    clock.now = 30.0
    assert admitted(guard.admit([Attempt("x"), Attempt("y")])) == [True, False]


@pytest.mark.parametrize("period", [1.0, 5.9, 6.0, 60.0])
def test_a_loop_of_any_pace_ends_within_the_budget(period):
    clock = Clock()
    guard = LoopGuard(clock=clock)
    ran = 0
    for number in range(200):
        clock.now += period
        ran += sum(admitted(guard.admit([Attempt(str(number))])))
    assert ran == guard.rounds == 8


def test_parallel_reads_are_one_call_in_the_window_and_many_in_the_budget():
    guard = LoopGuard(calls=2, turn_calls=10, clock=lambda: 0.0)
    reads = [Attempt(str(number), "read") for number in range(8)]
    assert admitted(guard.admit(reads)) == [True] * 8
    assert guard.budget_left() == (7, 2)
    assert admitted(guard.admit([Attempt("w"), Attempt("r", "read"), Attempt("s", "read")])) == [True, False, False]


def test_reads_between_writes_are_not_parallel():
    guard = LoopGuard(clock=lambda: 0.0)
    turns = [Attempt(str(number), ("read", "write")[number % 2]) for number in range(12)]
    assert admitted(guard.admit(turns)) == [True] * 5 + [False] * 7
    guard = LoopGuard(clock=lambda: 0.0)
    pairs = [Attempt(str(number), "write" if number % 3 == 2 else "read") for number in range(12)]  # r r w r r w ...
    assert admitted(guard.admit(pairs)) == [True] * 8 + [False] * 4


def test_a_polling_tool_may_ask_again_and_again():
    guard = LoopGuard(calls=100, rounds=100, turn_calls=100, clock=lambda: 0.0)
    assert [admitted(guard.admit([Attempt("poll", "read", True)])) for _ in range(50)] == [[True]] * 50
    assert [admitted(guard.admit([Attempt("ask", "read")])) for _ in range(4)] == [[True]] * 3 + [[False]]


@pytest.mark.parametrize(("period", "seen"), [(1, True), (2, True), (4, True), (5, False)])
def test_cycles_of_up_to_four_calls_are_seen_and_forgotten_with_the_turn(period, seen):
    guard = LoopGuard(calls=100, rounds=100, turn_calls=100, repeats=2, clock=Clock())
    for key in "abcde"[:period] * 2:
        (ticket,) = guard.admit([Attempt(key)])
        guard.settle(ticket, "the same")
    assert admitted(guard.admit([Attempt("a")])) == [not seen]
    guard.new_turn()
    assert admitted(guard.admit([Attempt("a")])) == [True]


def test_repetition_within_one_message_is_seen():
    guard = LoopGuard(clock=lambda: 0.0)
    assert admitted(guard.admit([Attempt("a", "read")] * 4)) == [True, True, True, False]
    guard = LoopGuard(calls=99, clock=lambda: 0.0)
    cycle = [Attempt("a"), Attempt("b")]
    answers = guard.admit(cycle * 4)
    assert admitted(answers) == [True] * 6 + [False, True]
    assert answers[-2].message == "the same cycle of 2 calls came 3 times without a new result"


@pytest.mark.parametrize("limit", [sys.maxsize, 10**30])
def test_a_limit_of_the_loop_guard_may_be_none_at_all(limit):
    guard = LoopGuard(calls=limit, rounds=limit, turn_calls=limit, repeats=limit, clock=Clock())
    assert all(isinstance(guard.admit([Attempt("a")])[0], LoopTicket) for _ in range(100))
    assert guard.budget_left() == (limit - 100, limit - 100)


def test_a_loop_guard_with_absurd_limits_is_misuse():
    seconds: list[dict[str, Any]] = [{"seconds": each} for each in (0, float("nan"), float("inf"), 1e17)]
    for options in seconds:
        with pytest.raises(UsageError, match=r"Breaker, seconds: .* at most 1,000,000,000, found"):
            Breaker(**options)
    for options in ({"calls": 0}, {"rounds": 0}, {"repeats": 0}, *seconds):
        ((name, value),) = options.items()
        with pytest.raises(UsageError, match=rf"LoopGuard, {name}: expected .*, found {re.escape(str(value))}"):
            LoopGuard(**options)
    for made in (Breaker(seconds=10**9), LoopGuard(seconds=10**9), Breaker(seconds=0.001), LoopGuard(seconds=0.001)):
        assert made.seconds in (10**9, 0.001)


@given(st.floats(0, 1e12), st.floats(0.001, 1e4), st.floats(0, 1))
@example(194146456.1328872, 0.001, 0.0)
def test_who_waits_as_long_as_a_guard_says_is_admitted(start, seconds, passed):
    clock = Clock()
    clock.now = start
    guard = LoopGuard(calls=1, seconds=seconds, clock=clock)
    breaker = Breaker(failures=1, seconds=seconds, clock=clock)
    guard.admit([Attempt("a")])
    breaker.failed(breaker.admit())
    clock.now = asked = start + seconds * passed
    (refusal,), refused = guard.admit([Attempt("b")]), breaker.admit()
    if isinstance(refusal, Failure):
        assert refusal.retry_after == refused.retry_after
        clock.now = asked + refusal.retry_after
        assert admitted(guard.admit([Attempt("b")])) == [True]
        assert isinstance(breaker.admit(), BreakerTicket)


# The breaker.


class BreakerMachine(RuleBasedStateMachine):
    """The model: the state, failures in a row, when it opened, and the ticket of the probe."""

    def __init__(self):
        super().__init__()
        self.clock, self.heard, self.told = Clock(), [], []
        self.breaker = Breaker(failures=2, seconds=10.0, clock=self.clock, listener=self.listen)
        self.state, self.failed, self.opened, self.probe = "closed", 0, 0.0, None
        self.tickets: list[tuple[BreakerTicket, int]] = []
        self.changes = 0

    def listen(self, old, new):
        self.heard.append((old, new))
        raise RuntimeError("a listener that raises")

    def become(self, state):
        if state != self.state:
            self.told.append((self.state, state))
        self.state, self.failed, self.probe, self.opened = state, 0, None, self.clock.now
        self.changes += 1

    def now(self):
        return "half-open" if self.state == "open" and self.clock.now - self.opened >= 10.0 else self.state

    @rule(seconds=ticks)
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def admit(self):
        if self.now() != self.state:
            self.become("half-open")
        answer = self.breaker.admit()
        allowed = self.state == "closed" or (self.state == "half-open" and self.probe is None)
        assert isinstance(answer, BreakerTicket) is allowed
        if isinstance(answer, BreakerTicket):
            self.tickets.append((answer, self.changes))
            self.probe = answer if self.state == "half-open" else None
        elif self.state == "open":
            assert self.clock.now + answer.retry_after == self.opened + 10.0

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def come_back_with_a_ticket(self, data):
        at = data.draw(st.integers(0, len(self.tickets) - 1))
        ticket, changes = self.tickets[at]
        answer = self.breaker.admit(ticket)
        if changes == self.changes:
            assert answer is ticket
            return
        assert answer is not ticket
        if self.now() != self.state:
            self.become("half-open")
        assert isinstance(answer, BreakerTicket) is (
            self.state == "closed" or (self.state == "half-open" and self.probe is None)
        )
        if isinstance(answer, BreakerTicket):
            self.tickets[at] = answer, self.changes
            self.probe = answer if self.state == "half-open" else None

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), outcome=st.sampled_from(["succeeded", "failed", "ignored"]), twice=st.booleans())
    def settle(self, data, outcome, twice):
        ticket, changes = self.tickets.pop(data.draw(st.integers(0, len(self.tickets) - 1)))
        getattr(self.breaker, outcome)(ticket)
        if twice:
            self.breaker.failed(ticket)
        if changes != self.changes:
            return  # stale
        if self.state == "half-open":
            self.probe = None
        self.failed = {"succeeded": 0, "failed": self.failed + 1, "ignored": self.failed}[outcome]
        if self.state == "half-open" and outcome == "succeeded":
            self.become("closed")
        elif self.failed and (self.state == "half-open" or self.failed >= 2):
            self.become("open")

    @rule(state=st.sampled_from(["closed", "open", "half-open"]))
    def force_and_release(self, state):
        self.breaker.force(state)
        self.clock.now += 10.0
        assert self.breaker.state == state
        self.breaker.release()
        self.become(state)
        self.changes += 1

    @invariant()
    def states_agree(self):
        assert self.breaker.state == self.now()
        assert self.heard == self.told


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = STEPS


def half_open(**options: Any) -> Breaker:
    clock = Clock()
    breaker = Breaker(failures=1, seconds=10.0, clock=clock, **options)
    breaker.failed(breaker.admit())
    clock.now = 10.0
    assert breaker.state == "half-open"
    return breaker


def test_of_fifty_threads_one_gets_the_probe():
    breaker = half_open()
    gate, bodies, refused = threading.Barrier(CROWD), [], []

    def call() -> None:
        gate.wait(10)
        answer = breaker.admit()
        (bodies if isinstance(answer, BreakerTicket) else refused).append(answer)

    threads = [threading.Thread(target=call) for _ in range(CROWD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(bodies), len(refused)) == (1, CROWD - 1)
    assert refused[0].retry_after == 10.0
    breaker.ignored(bodies[0])
    assert isinstance(breaker.admit(), BreakerTicket)


def test_of_fifty_tasks_one_gets_the_probe():
    breaker = half_open()

    async def call() -> bool:
        answer = breaker.admit()
        await asyncio.sleep(0)
        return isinstance(answer, BreakerTicket)

    async def crowd() -> list[bool]:
        return await asyncio.gather(*(call() for _ in range(CROWD)))

    assert sum(asyncio.run(crowd())) == 1


def test_a_slow_call_of_before_cannot_close_what_others_opened():
    clock = Clock()
    breaker = Breaker(failures=1, seconds=10.0, clock=clock)
    slow = breaker.admit()
    breaker.failed(breaker.admit())
    breaker.succeeded(slow)
    assert breaker.state == "open"
    clock.now = 10.0
    probe = breaker.admit()
    breaker.succeeded(slow)
    assert breaker.state == "half-open"
    breaker.failed(probe)
    assert breaker.state == "open"


def test_a_ticket_counts_once():
    breaker = Breaker(failures=2, clock=lambda: 0.0)
    ticket = breaker.admit()
    breaker.failed(ticket)
    breaker.failed(ticket)
    assert breaker.state == "closed"
    breaker = half_open()
    probe = breaker.admit()
    breaker.ignored(probe)
    second = breaker.admit()
    breaker.succeeded(probe)
    assert breaker.state == "half-open"
    assert isinstance(breaker.admit(), Failure)  # the second probe still has the permit
    breaker.succeeded(second)
    assert breaker.state == "closed"


def test_a_ticket_that_was_settled_lets_nobody_in_again():
    breaker = Breaker(clock=lambda: 0.0)
    ticket = breaker.admit()
    breaker.succeeded(ticket)
    answer = breaker.admit(ticket)
    assert isinstance(answer, BreakerTicket)
    assert answer is not ticket


def test_only_failures_in_a_row_open_a_breaker():
    breaker = Breaker(failures=2, clock=lambda: 0.0)
    for settle in (breaker.failed, breaker.succeeded, breaker.failed, breaker.ignored):
        settle(breaker.admit())
        assert breaker.state == "closed"
    breaker.failed(breaker.admit())
    assert breaker.state == "open"


def test_one_failed_probe_opens_a_breaker_of_many_failures():
    clock = Clock()
    breaker = Breaker(failures=3, seconds=10.0, clock=clock)
    for _ in range(3):
        breaker.failed(breaker.admit())
    clock.now = 10.0
    breaker.failed(breaker.admit())
    assert breaker.state == "open"


def test_a_ticket_of_the_parent_says_nothing_in_the_child_of_a_fork():
    breaker = Breaker(failures=1, clock=lambda: 0.0)
    ticket = breaker.admit()
    breaker._begin()  # as in the child
    breaker.failed(ticket)
    assert breaker.state == "closed"
    assert breaker.admit(ticket) is not ticket


def test_a_held_breaker_stays_as_it_is():
    heard = []
    breaker = Breaker(failures=1, clock=lambda: 0.0, listener=lambda *change: heard.append(change))
    breaker.force("closed")
    breaker.failed(breaker.admit())
    assert breaker.state == "closed"
    breaker.force("open")
    assert breaker.state == "open"
    assert heard == [("closed", "open")]
    assert breaker.admit().retry_after is None
    with pytest.raises(UsageError, match="found 'ajar'"):
        breaker.force("ajar")  # type: ignore[arg-type]
    for options in ({"failures": 0}, {"seconds": 0.0}):
        ((name, value),) = options.items()
        with pytest.raises(UsageError, match=f"Breaker, {name}: expected .*, found {value}"):
            Breaker(**options)


def test_failures_of_a_held_breaker_count_for_nothing_when_it_is_released():
    breaker = Breaker(failures=2, clock=lambda: 0.0)
    breaker.force("closed")
    for _ in range(2):
        breaker.failed(breaker.admit())
    breaker.release()
    breaker.failed(breaker.admit())
    assert breaker.state == "closed"
    breaker.failed(breaker.admit())
    assert breaker.state == "open"


def test_a_listener_hears_of_each_change():
    clock, heard = Clock(), []
    breaker = Breaker(failures=1, seconds=10.0, clock=clock, listener=lambda *change: heard.append(change))
    breaker.failed(breaker.admit())
    clock.now = 10.0
    probe = breaker.admit()
    breaker.succeeded(probe)
    assert heard == [("closed", "open"), ("open", "half-open"), ("half-open", "closed")]


# The bulkhead.


class BulkheadMachine(RuleBasedStateMachine):
    """The model: for each mode a list in the order of arrival, of which the first so many are inside."""

    def __init__(self):
        super().__init__()
        self.limits = {"read": 2, "write": 1}
        self.bulkhead = Bulkhead(reads=2, writes=1, waiting=3)
        self.places: dict[str, list[Place]] = {"read": [], "write": []}
        self.woken: list[int] = []

    def waiting(self):
        return sum(max(0, len(places) - self.limits[mode]) for mode, places in self.places.items())

    @rule(mode=st.sampled_from(["read", "write"]))
    def enter(self, mode):
        number = len(self.woken)
        self.woken.append(0)
        full = len(self.places[mode]) >= self.limits[mode] and self.waiting() >= 3

        def wake() -> None:
            self.woken[number] += 1

        answer = self.bulkhead.enter(mode, wake)
        assert isinstance(answer, Failure) is full
        if isinstance(answer, Place):
            self.places[mode].append(answer)

    @precondition(lambda self: any(self.places.values()))
    @rule(data=st.data(), twice=st.booleans())
    def leave(self, data, twice):
        mode = data.draw(st.sampled_from([mode for mode, places in self.places.items() if places]))
        place = self.places[mode].pop(data.draw(st.integers(0, len(self.places[mode]) - 1)))
        self.bulkhead.leave(place)
        if twice:
            self.bulkhead.leave(place)

    @invariant()
    def the_first_are_inside(self):
        for mode, places in self.places.items():
            limit = self.limits[mode]
            assert [place.inside for place in places] == [True] * len(places[:limit]) + [False] * len(places[limit:])
            assert self.bulkhead.running(mode) == len(places[:limit])
            assert self.bulkhead.waiting(mode) == len(places[limit:])
        assert max(self.woken, default=0) <= 1


TestBulkhead = BulkheadMachine.TestCase
TestBulkhead.settings = STEPS


def test_one_who_waits_and_raises_takes_nobodys_place():
    bulkhead = Bulkhead(writes=1)
    first, second = bulkhead.enter("write"), bulkhead.enter("write", lambda: 1 // 0)
    bulkhead.leave(first)
    assert second.inside
    bulkhead.leave(second)
    assert bulkhead.running("write") == 0


def test_by_default_guards_allow_what_they_say():
    guard, breaker, bulkhead = LoopGuard(), Breaker(), Bulkhead()
    assert (guard.calls, guard.seconds, guard.rounds, guard.turn_calls, guard.repeats) == (5, 30.0, 8, 16, 3)
    assert (breaker.failures, breaker.seconds) == (5, 30.0)
    places = [bulkhead.enter(mode) for mode in ("read", "write") for _ in range(50)]
    assert (bulkhead.running("read"), bulkhead.running("write")) == (4, 1)
    assert bulkhead.waiting("read") + bulkhead.waiting("write") == 64
    assert sum(isinstance(place, Failure) for place in places) == 100 - 4 - 1 - 64


def test_who_waits_is_woken_and_a_place_of_the_parent_is_none_in_the_child_of_a_fork():
    bulkhead, woken = Bulkhead(), []
    first, second = bulkhead.enter("write"), bulkhead.enter("write", lambda: woken.append("second"))
    bulkhead.leave(first)
    assert woken == ["second"]
    bulkhead._begin()  # as in the child
    bulkhead.enter("write")
    bulkhead.leave(second)
    assert bulkhead.running("write") == 1


def test_in_a_bulkhead_nobody_has_to_wait():
    bulkhead = Bulkhead(waiting=0)
    assert bulkhead.enter("write").inside
    assert isinstance(bulkhead.enter("write"), Failure)


def test_a_bulkhead_without_room_is_misuse():
    for options in ({"reads": 0}, {"writes": 0}, {"waiting": -1}):
        ((name, value),) = options.items()
        with pytest.raises(UsageError, match=f"Bulkhead, {name}: expected at least {value + 1}, found {value}"):
            Bulkhead(**options)


@pytest.mark.parametrize("made", [Breaker(), Bulkhead(), LoopGuard(), Ledger()])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_counts_is_shared_and_not_copied(made, copied):
    """A shallow copy had some of its counts for itself, shared others, and kept its lock for ever behind a fork."""
    with pytest.raises(TypeError, match=f"{type(made).__name__}: expected to be shared"):
        copied(made)
