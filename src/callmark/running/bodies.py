"""`Bodies`: runs what tools are made of, each body within its time, and counts what was given up and still runs.

Whatever a body does, who waits for it waits no longer than that. What tools have beside bodies (what they say that they
are about to do, whether they are offered) may hang just as well, and is held to a second; an approver has all the time
that the call has.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final

from callmark.running.bulkhead import Bulkhead
from callmark.running.jobs import CANCELLED, STOPPED, TOO_LATE, Approval, Approver, Content, Job, content_of, told
from callmark.running.ledger import SESSION_DIGITS
from callmark.running.signals import Bell, Cancel, Handed, attempt_here, unless
from callmark.running.workers import Delivery, Workers, off_loop
from callmark.tools.context import Invocation, apart
from callmark.tools.foreign import Outcome, is_async
from callmark.tools.registry import Asked, body_of, copied
from callmark.tools.results import Failure
from callmark.tools.tool import Mode, Tool

ABANDONED_LIMIT: Final = 8  # threads that hang; each keeps its stack and whatever the tool holds
OFFER_SECONDS: Final = 1.0  # for a tool to say whether it is offered
QUESTIONS_LIMIT: Final = 1000  # that wait for a person, who will not live to see them all
MESSAGE_SECONDS: Final = 1.0  # for a tool to say what it is about to do


class Body:
    """A body that runs, in a place of `bulkhead`: what calls that it makes itself belong to."""

    def __init__(self, outer: Body | None, bulkhead: Bulkhead, mode: Mode, context: Invocation) -> None:
        self.depth: int = 1 if outer is None else outer.depth + 1
        self.context = context
        self.over = False
        self._outer = outer
        self._place = (bulkhead, mode)
        self._inner = bulkhead.alike()

    def inner(self, bulkhead: Bulkhead, mode: Mode) -> Bulkhead:
        """Return the bulkhead in which a call that it makes waits for a place of `bulkhead`.

        None may wait for each other in a circle. So reads wait only for those that the same body makes, and a write
        within a write for those that stand within that one: what writes waits for nothing outside of it, and ends.
        """
        holder: Body | None = self
        while mode == "write" and holder is not None and holder._place != (bulkhead, mode):
            holder = holder._outer
        return bulkhead if holder is None else holder._inner


inside: ContextVar[Body | None] = ContextVar("callmark_body", default=None)
_asking: ContextVar[bool] = ContextVar("callmark_asking", default=False)


class Bodies:
    """Runs bodies; the options are those of the `Executor`."""

    def __init__(
        self,
        *,
        timeout_seconds: float,
        result_limit: int,
        error_text: bool,
        abandoned_limit: int,
        bulkhead: Bulkhead,
        clock: Callable[[], float],
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._result_limit = result_limit
        self._error_text = error_text
        self._abandoned_limit = abandoned_limit
        self._bulkhead = bulkhead
        self._clock = clock
        self._workers = Workers()
        self._asides = Workers()  # what tools have beside bodies; where it hangs, bodies still run
        self._approvers = Workers()
        self._questions = Bulkhead(writes=1, waiting=QUESTIONS_LIMIT)  # a person is asked one thing at a time

    @property
    def abandoned(self) -> int:
        """How much of tools, and how many approvers, were given up and still run."""
        return self._workers.abandoned + self._asides.abandoned + self._approvers.abandoned

    def saturated(self) -> Failure | None:
        """Return why nothing new is started, None where there is no reason."""
        number = self._workers.abandoned
        if number < self._abandoned_limit:
            return None
        message = f"{number} calls that were given up are still running"
        return Failure(kind="saturated", message=message, hint="do without it")

    def outer(self, asked: Invocation) -> Body | None:
        """Return the body that makes these calls, None where it is none, or over and done.

        A thread that a body starts knows nothing of it, so it is also told by the context that the body hands on.
        """
        body: Body | None = inside.get() or getattr(asked.cancel, "body", None)
        return None if body is None or (body.over and not body.context.cancelled) else body

    async def run(self, job: Job, tool: Tool, context: Invocation, cancel: Cancel, alone: bool) -> Content:
        """Run a tool's body within its time and return what it came to. `alone`: the caller has no loop of its own."""
        left = context.remaining_seconds()
        seconds = tool.timeout_seconds or self._timeout_seconds
        seconds = seconds if left is None else min(seconds, left)
        until = self._clock() + seconds
        handed = Handed(cancel)
        own = replace(
            context,
            idempotency_key=job.key[SESSION_DIGITS:],  # services need not see which calls are of one session
            cancel=handed,
            clock=self._clock,
            deadline=until,
            messages=apart(list(context.messages)),  # a tool that changes what it is told changes no other's
            caller=apart(context.caller),
        )
        run = body_of(tool, simulate=context.review)
        if tool.runs_in == "process" and run is tool.function:
            from callmark.running.processes import in_process  # with multiprocessing, which few need

            run = in_process(tool)
        bell = Bell()
        cancel.listen(bell.ring)
        delivery = Delivery(bell.ring)
        seen = replace(own, cancel=cancel)  # a tool could write into its own one
        inner = Body(inside.get(), self._bulkhead, tool.mode, seen)
        token = inside.set(inner)
        handed.body = inner
        here = tool.runs_in == "loop" and not alone
        start = self._workers.in_loop if here else self._workers.in_thread
        body = partial(run, job.arguments, own)
        if here and getattr(run, "blocks", False):
            body = partial(off_loop, body)
        try:
            worker = start(body, lambda did: self._content(did, context), delivery, cancel)
        except RuntimeError:
            handed.body = None
            return Content(failure=Failure(kind="saturated", message="no thread can be started", hint="do without it"))
        finally:
            inside.reset(token)
        try:
            await bell.wait(max(0.0, until - self._clock()))  # starting a thread took some of them
        finally:
            job.late_seconds = max(0.0, self._clock() - until)
            inner.over = True
            handed.body = None
            cancelled = cancel.is_set()
            late = delivery.give_up()
            if late:
                cancel.set()  # the tool should stop; and what has not begun by now never does
                self._workers.abandon(worker)
            job.began = cancel.began
        if not late:
            content: Content = delivery.content
            return content
        if cancelled:
            return Content(failure=STOPPED if job.began else CANCELLED)
        if not job.began:  # its thread was late: that says nothing of the tool, and nothing happened
            return Content(failure=TOO_LATE)
        hint = "try something smaller" if tool.mode == "read" else "it may still happen; find out before you try again"
        message = f"the tool did not answer within {seconds:g} seconds"
        return Content(failure=Failure(kind="timeout", message=message, hint=hint), broke=True)

    def _content(self, outcome: Outcome, context: Invocation) -> Content:
        """Return what a body came to. What it raises when it is cancelled says nothing of the tool."""
        content = content_of(outcome, self._result_limit, self._error_text)
        return Content(failure=STOPPED) if content.broke and context.cancelled else content

    # Beside bodies.

    async def message(self, tool: Tool, arguments: dict[str, Any]) -> str:
        """Return what the tool says that it is about to do, "" where it says nothing."""
        if tool.format_message is None:
            return ""
        saying = partial(tool.format_message, copied(arguments))
        return await self._asides.aside(saying, told, MESSAGE_SECONDS, ABANDONED_LIMIT) or ""

    async def is_offered(self, asked: Asked, context: Invocation) -> Outcome:
        """Ask a tool whether it is offered, in this event loop where it is async, else in a thread."""
        answer = _called(self._asides, asked, context, OFFER_SECONDS)
        return await unless(None, answer, OFFER_SECONDS) or Outcome(None, TimeoutError())

    async def consent(self, approve: Approver, approval: Approval) -> Outcome | None:
        """Ask an approver, in this event loop where it is async. Others are asked one after another, in threads."""
        if is_async(approve) or _asking.get():  # an approver that runs calls itself never waits for its own answer
            return await _called(self._approvers, approve, approval, None)
        bell = Bell()
        place = self._questions.enter("write", bell.ring)
        if isinstance(place, Failure):
            return None
        try:
            if not place.inside:
                await bell.wait()
            _asking.set(True)  # in this task, which does nothing else
            return await _called(self._approvers, approve, approval, None)
        finally:
            self._questions.leave(place)


async def _called(
    workers: Workers, function: Callable[[Any], Any], argument: Any, seconds: float | None
) -> Outcome | None:
    """Call what a host wrote, in this event loop where it is async, else in a thread; None where that does not answer.

    What is returned there may be awaited here only: it is wrapped up, so that its thread leaves it alone.
    """
    if is_async(function):
        return await attempt_here(function, argument)
    answer: Outcome | None = await workers.aside(
        lambda: [function(argument)], lambda did: did, seconds, ABANDONED_LIMIT
    )
    return answer if answer is None or answer.error is not None else await attempt_here(answer.value.pop)
