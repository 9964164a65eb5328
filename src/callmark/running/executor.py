"""`Executor`: runs the calls of a message, each at most once and within its time, and gives results in their order.

Every call is looked up in the ledger (was it run before?) and held against the loop guard; then it passes the `Gates`.
Whatever stops it, and whatever the tool does, becomes a `Result`; nothing that a tool raises comes out of here.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import inf
from types import NoneType
from typing import Any, Final

import msgspec

from callmark.errors import ToolError, UsageError
from callmark.events import Call
from callmark.running.bodies import ABANDONED_LIMIT, Bodies, Body, inside
from callmark.running.breaker import Breaker
from callmark.running.bulkhead import Bulkhead
from callmark.running.gates import Gates, cancel_of
from callmark.running.jobs import (
    CANCELLED,
    NOT_OFFERED,
    STOPPED,
    TRANSIENT,
    UNKNOWN,
    Approval,
    Approver,
    Job,
    digest,
    groups,
    stopped,
)
from callmark.running.ledger import Ledger, LedgerError, call_key
from callmark.running.loop_guard import Attempt, LoopGuard
from callmark.running.observing import Observer, ToolStats, Watch, wall_clock
from callmark.running.rendering import RESULT_LIMIT, SMALLEST_LIMIT, clean
from callmark.running.signals import Bell, Cancel, Handed
from callmark.running.workers import complete, side_by_side
from callmark.tools.context import Invocation, in_review, reviewing
from callmark.tools.foreign import Outcome
from callmark.tools.misuse import require, require_plain, require_seconds, require_whole
from callmark.tools.registry import Asked, Registry
from callmark.tools.results import Failure, Result
from callmark.tools.tool import Tool

TIMEOUT_SECONDS: Final = 30.0
_WIND_UP_SECONDS: Final = 0.05  # of the sync front, for an approver that will not be cancelled
_PAUSE_SECONDS: Final = 0.005  # before another process is looked at again; so much longer each time
_LONGEST_PAUSE_SECONDS: Final = 0.25


class Executor:
    """Runs calls of a registry's tools.

    approve            asked for each call of a tool that needs consent (by default, each that writes); only True is a
                       yes, and without an approver the answer is no. An async one is called in the event loop; any
                       other in a thread, one call after another, so a person may take their time
    announce           told of each call whose body is about to run, with what the tool says of it; must be quick
    timeout_seconds    for tools that have no limit of their own; counted from when the body starts
    result_limit       characters of JSON that a result may have
    error_text         whether the model is told what exceptions say, beside their type; they may hold secrets
    review             tools that write are only simulated, also where another tool calls them, by whatever way; a
                       thread that a tool starts must be handed its context
    ledger             default: one in memory, which grows until its sessions are forgotten (`forget_session`)
    breaker            makes the breaker of a tool; called once for each
    bulkhead           default: four reads at once, one write. Executors whose tools call each other's should share one:
                       writes that hold places of two may wait for each other until their time is over
    abandoned_limit    tools that were given up and still run; where there are as many, nothing new is started, so there
                       are never more than these and what ran at once
    observers          called with a `Record` of each call, so they are quick; `contents` puts what was said into it
    clock              monotonic

    >>> import asyncio
    >>> from callmark import parse, tool
    >>> @tool(mode="read")
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> executor = Executor(Registry([add]))
    >>> results = executor.run_sync(parse("[CALL: add(a=1, b=2)] [CALL: add(a=1)]").calls)
    >>> results[0].data, results[1].error.message
    (3, "arguments: expected the key 'b', found only 'a'")

    An executor may be shared by threads and event loops. Tools may run calls themselves: these end with the call that
    makes them. As many of them run at once as the bulkhead lets, and they wait for each other, not for others: those
    that read always, those that write where what makes them writes.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        approve: Approver | None = None,
        announce: Callable[[Approval], Any] | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        result_limit: int = RESULT_LIMIT,
        error_text: bool = False,
        review: bool = False,
        ledger: Ledger | None = None,
        breaker: Callable[[], Breaker] = Breaker,
        bulkhead: Bulkhead | None = None,
        abandoned_limit: int = ABANDONED_LIMIT,
        observers: Sequence[Observer] = (),
        contents: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        require("Executor", Registry, "a Registry", registry=registry)
        require("Executor", (Callable, NoneType), "a function", approve=approve, announce=announce)
        require_seconds("Executor", inf, timeout_seconds=timeout_seconds)
        require_whole("Executor", SMALLEST_LIMIT, result_limit=result_limit)
        require_whole("Executor", 1, abandoned_limit=abandoned_limit)
        require("Executor", bool, "True or False", error_text=error_text, review=review, contents=contents)
        require("Executor", (Ledger, NoneType), "a Ledger", ledger=ledger)
        require("Executor", Callable, "a function", breaker=breaker, clock=clock)
        require("Executor", (Bulkhead, NoneType), "a Bulkhead", bulkhead=bulkhead)
        require("Executor", Sequence, "a list of functions", observers=observers)
        for observer in observers:
            require("Executor", Callable, "functions", observers=observer)
            require_plain("Executor", observers=observer)
        require_plain("Executor", announce=announce)
        self.registry = registry
        self.ledger = Ledger() if ledger is None else ledger
        self._review = review
        self._bulkhead = Bulkhead() if bulkhead is None else bulkhead
        self._bodies = Bodies(
            timeout_seconds=timeout_seconds,
            result_limit=result_limit,
            error_text=error_text,
            abandoned_limit=abandoned_limit,
            bulkhead=self._bulkhead,
            clock=clock,
        )
        self._gates = Gates(
            registry,
            self.ledger,
            approve=approve,
            announce=announce,
            breaker=breaker,
            bulkhead=self._bulkhead,
            bodies=self._bodies,
            clock=clock,
        )
        self._watch = Watch(tuple(observers))
        self._contents = contents
        self._clock = clock

    # What can be seen.

    @property
    def abandoned(self) -> int:
        """How many tools, and approvers, were given up and still run."""
        return self._bodies.abandoned

    @property
    def running(self) -> int:
        """How many calls are inside the bulkhead."""
        return self._bulkhead.running("read") + self._bulkhead.running("write")

    @property
    def waiting(self) -> int:
        """How many calls wait before the bulkhead."""
        return self._bulkhead.waiting("read") + self._bulkhead.waiting("write")

    @property
    def broken_observers(self) -> int:
        """How often an observer raised."""
        return self._watch.broken_observers

    def breaker(self, name: str) -> Breaker:
        """Return the breaker of a tool, by its qualified name."""
        return self._gates.breaker(name)

    def stats(self) -> dict[str, ToolStats]:
        """Return counts, times, outcomes, recent failures and the breaker's state, by tool."""
        found = self._watch.tools()
        for name in self._gates.guarded():
            found.setdefault(name, ToolStats()).breaker = self.breaker(name).state
        return found

    def __repr__(self) -> str:
        return f"Executor({self.registry!r}, {self.abandoned} abandoned)"

    # Running.

    async def offered(self, context: Invocation, names: Iterable[str] | None = None) -> tuple[Tool, ...]:
        """Return the tools to offer for one request, of all or of those that are named.

        Their `should_register` are asked at the same time: an async one in this event loop, any other in a thread. One
        that does not answer within a second says no.
        """

        async def ask(asked: Sequence[Asked], context: Invocation) -> Sequence[Outcome]:
            return await asyncio.gather(*(self._bodies.is_offered(each, context) for each in asked))

        handed = Handed(cancel_of(context))
        try:
            with reviewing(self._review or context.review):
                shown = replace(context, cancel=handed) if isinstance(context.cancel, Cancel) else context
                return await self.registry.offered(shown, ask=ask, names=names)
        finally:
            handed.leave()

    def run_sync(self, calls: Sequence[Call], context: Invocation | None = None, **options: Any) -> list[Result]:
        """Do what `run` does, from code that is not async; tools run in threads, those of `runs_in="loop"` too.

        Raises UsageError in a thread with a running event loop, which it would block.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return complete(self._run(calls, context, alone=True, **options), _WIND_UP_SECONDS)
        raise UsageError("run_sync: expected a thread without an event loop; await `run` here")

    async def run(
        self,
        calls: Sequence[Call],
        context: Invocation | None = None,
        *,
        session: str = "",
        message: str = "",
        guard: LoopGuard | None = None,
        offered: Iterable[Tool] | None = None,
    ) -> list[Result]:
        """Run the calls of one message and return their results, in their order.

        `session` and `message` say which text the calls stand in: with the same ones, each runs once, whoever asks and
        how often. Without a `message` every time is another one. Reads run side by side; a write waits for what stands
        before it, and what follows waits for the write. `offered`: the only tools that may be called. `context.cancel`
        must be a `Cancel`. Raises UsageError for misuse; what goes wrong with a call is in its Result.
        """
        return await self._run(calls, context, session=session, message=message, guard=guard, offered=offered)

    async def _run(
        self,
        calls: Sequence[Call],
        context: Invocation | None,
        *,
        session: str = "",
        message: str = "",
        guard: LoopGuard | None = None,
        offered: Iterable[Tool] | None = None,
        alone: bool = False,
    ) -> list[Result]:
        require("run", (Invocation, NoneType), "an Invocation", context=context)
        given = context or Invocation()
        if given.deadline is not None and given.clock is None:
            given = replace(given, clock=self._clock)
        require("run", str, "a text", session=session, message=message)
        require("run", (LoopGuard, NoneType), "a LoopGuard", guard=guard)
        require("run", (Cancel, NoneType), "a Cancel", cancel=given.cancel)
        tools = None if offered is None else list(offered)
        for each in tools or ():
            require("run", Tool, "Tools", offered=each)
        if not isinstance(calls, Sequence) or not all(isinstance(call, Call) for call in calls):
            raise UsageError("run: expected Calls, which only reading makes, in a list: `parse(...).calls`, say")
        outer = self._bodies.outer(given)
        asked = given if outer is None else self._within(given, outer)
        place = (session, message or uuid.uuid4().hex)
        allowed = None if tools is None else {each.qualified_name for each in tools}
        with reviewing(self._review or asked.review):
            asked = in_review(asked)
            try:
                return await self._gated(calls, asked, place, guard, allowed, alone, outer)
            finally:
                if outer is not None and isinstance(asked.cancel, Cancel):
                    asked.cancel.leave()

    async def _gated(
        self,
        calls: Sequence[Call],
        asked: Invocation,
        place: tuple[str, str],
        guard: LoopGuard | None,
        allowed: Container[str] | None,
        alone: bool,
        outer: Body | None,
    ) -> list[Result]:
        """Take calls that are well made, in a context that is whole, through the gates."""
        text = (place[0], f"review of {place[1]}" if asked.review else place[1])  # a simulated call did not run
        jobs = [Job(call, call_key(*text, call.index, call.name, call.arguments), self._clock()) for call in calls]
        token = inside.set(outer)
        try:
            for job in jobs:
                await self._claim(job)
            self._admit([job for job in jobs if job.ours and job.result is None], guard)
            for group in groups(jobs):
                await side_by_side(self._finish(job, asked, place, guard, allowed, alone) for job in group)
        finally:
            inside.reset(token)
            with ExitStack() as steps:  # of what is interrupted no claim is left behind, whichever the ledger fails at
                for job in reversed(jobs):  # what is pushed last is done first
                    steps.callback(self._close, job, place, guard)
        return [job.result for job in jobs if job.result is not None]

    def _within(self, asked: Invocation, outer: Body) -> Invocation:
        """Return the context of calls that a body makes: they have no more time than it has itself."""
        seconds = (each for each in (asked.remaining_seconds(), outer.context.remaining_seconds()) if each is not None)
        cancel = Cancel(cancel_of(asked), cancel_of(outer.context))
        deadline = self._clock() + min(seconds)  # a body has one always
        review = asked.review or outer.context.review
        return replace(asked, cancel=cancel, deadline=deadline, clock=self._clock, review=review)

    async def _claim(self, job: Job) -> None:
        """Look the tool up, and ask the ledger whether the call is ours to run."""
        try:
            job.tool = self.registry.get(job.call.name)
        except ToolError:
            job.tool = None  # why, is said in its turn
        repeatable = job.tool is not None and job.tool.mode == "read"
        claim = await self.ledger.soon(self.ledger.claim, job.key, clean(job.call.name), repeatable=repeatable)
        job.ours = claim.state == "mine"
        job.looks += claim.state == "elsewhere"
        if claim.state == "finished":
            try:
                job.result = job.replayed(claim.result)
            except msgspec.MsgspecError as error:
                raise LedgerError(f"ledger: expected the result of {job.call.name!r:.80}, found: {error}") from error
        elif claim.state == "unknown":
            job.result = job.failed(UNKNOWN, self._clock())

    def _admit(self, jobs: list[Job], guard: LoopGuard | None) -> None:
        if guard is None:
            return
        for job, answer in zip(jobs, guard.admit([self._attempt(job) for job in jobs]), strict=True):
            if isinstance(answer, Failure):
                job.result = job.failed(answer, self._clock())
            else:
                job.ticket = answer

    def _attempt(self, job: Job) -> Attempt:
        """Return what the loop guard compares: the tool however it is named, and the arguments that it would get."""
        name = job.call.name if job.tool is None else job.tool.qualified_name
        return Attempt(
            key=call_key("", "", 0, name, self.registry.unreserved(job.call.arguments)),  # wherever it stands
            mode="read" if job.tool is None else job.tool.mode,
            polling=job.tool is not None and job.tool.polling,
        )

    async def _finish(
        self,
        job: Job,
        context: Invocation,
        place: tuple[str, str],
        guard: LoopGuard | None,
        allowed: Container[str] | None,
        alone: bool,
    ) -> None:
        """Bring one call to its result, whoever runs it, and tell everybody."""
        while job.result is None and not job.ours:
            await self._wait_for_other(job, context)
            self._admit([job] if job.ours else [], guard)  # who had it before gave it back
        if job.result is None:
            hidden = job.tool is not None and allowed is not None and job.tool.qualified_name not in allowed
            failure = NOT_OFFERED if hidden else await self._gates.passed(job, context, alone)
            if failure is not None:
                job.result = job.failed(failure, self._clock())
        step = self._last_step(job)
        if step is not None:
            try:
                await self.ledger.soon(*step)
            except asyncio.CancelledError:
                job.ours = True  # `_run` does it then, without waiting for the loop
                raise
        self._close(job, place, guard)

    def _close(self, job: Job, place: tuple[str, str], guard: LoopGuard | None) -> None:
        """Settle a call and tell the guard and the observers, once, whatever ended it: also who cancels the task."""
        step = self._last_step(job)
        if step is not None:
            self.ledger.at_once(*step)
        result = self._came_to(job)
        if job.told:
            return
        job.told = True
        if guard is not None and job.ticket is not None:
            guard.settle(job.ticket, digest(result))
        self._watch.tell(job.record(result, place, wall_clock(), self._contents))

    def _last_step(self, job: Job) -> tuple[Any, ...] | None:
        """Return what writes down what a call came to, once, and its arguments; None where that is not ours to do.

        A call that did not begin for want of time or room, or since a guard said no, is given back.
        """
        if not job.ours:
            return None
        job.ours = False
        result = self._came_to(job)
        if not job.began and result.outcome in TRANSIENT:
            return self.ledger.release, job.key
        return self.ledger.finish, job.key, msgspec.json.encode(result)

    def _came_to(self, job: Job) -> Result:
        if job.result is None:
            job.result = job.failed(STOPPED if job.began else CANCELLED, self._clock())
        return job.result

    async def _wait_for_other(self, job: Job, context: Invocation) -> None:
        """Wait for the attempt that runs the same call, here or in another process, and ask the ledger again."""
        bell = Bell()
        cancel = Cancel(cancel_of(context))
        cancel.listen(bell.ring)
        try:
            left = context.remaining_seconds()
            if self.ledger.watch(job.key, bell.ring):
                await bell.wait(left)
            elif job.looks:
                pause = min(_PAUSE_SECONDS * job.looks, _LONGEST_PAUSE_SECONDS)
                await bell.wait(pause if left is None else min(pause, left))
        finally:
            cancel.leave()
        why = stopped(context)
        if why is None:
            await self._claim(job)
        else:
            job.result = job.failed(why, self._clock())
