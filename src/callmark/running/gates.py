"""`Gates`: what one call passes on its way to its body, in this order.

The registry (does the tool exist, do the arguments fit?), the approver, the tool's breaker, the bulkhead; and then, as
it may have waited, whether it is still wanted, offered and let through, and whether its ledger says that it may start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from callmark.errors import ToolError
from callmark.running.bodies import Bodies, inside
from callmark.running.breaker import Breaker
from callmark.running.bulkhead import Bulkhead, Place
from callmark.running.jobs import (
    NESTED,
    NOT_OFFERED,
    STOPPED,
    TOO_LATE,
    UNKNOWN,
    Approval,
    Approver,
    Job,
    stopped,
)
from callmark.running.ledger import Ledger
from callmark.running.rendering import ERROR_LIMIT, cut_text
from callmark.running.signals import Bell, Cancel, unless
from callmark.tools.context import Invocation
from callmark.tools.foreign import attempt
from callmark.tools.registry import Registry, copied
from callmark.tools.results import Failure
from callmark.tools.tool import Tool

NESTING_LIMIT: Final = 8  # tools that call tools: each holds a thread while it waits for the next one
_KINDS: Final = {"ambiguous-tool": "unknown-tool"}  # a registry's code where the kind is not called the same


class Gates:
    """The gates of an executor, whose options these are."""

    def __init__(
        self,
        registry: Registry,
        ledger: Ledger,
        *,
        approve: Approver | None,
        announce: Callable[[Approval], Any] | None,
        breaker: Callable[[], Breaker],
        bulkhead: Bulkhead,
        bodies: Bodies,
        clock: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._ledger = ledger
        self._approve = approve
        self._announce = announce
        self._new_breaker = breaker
        self._breakers: dict[str, Breaker] = {}
        self._bulkhead = bulkhead
        self._bodies = bodies
        self._clock = clock

    def breaker(self, name: str) -> Breaker:
        """Return the breaker of a tool, by its qualified name."""
        return self._breakers.get(name) or self._breakers.setdefault(name, self._new_breaker())

    def guarded(self) -> list[str]:
        """Return the names of the tools that have a breaker by now."""
        return list(self._breakers)  # another thread may add one

    async def passed(self, job: Job, context: Invocation, alone: bool) -> Failure | None:
        """Take a call through the gates; return what stopped it. Its value is in `job.result` otherwise.

        `alone`: who waits has no event loop of its own.
        """
        try:
            found, job.arguments = self._registry.prepared(job.call.name, job.call.arguments)
        except ToolError as error:
            kind = _KINDS.get(error.code, error.code)
            return Failure(kind=kind, message=cut_text(error.message, ERROR_LIMIT), hint=error.hint)
        if job.tool is not found:  # its name meant nothing, or another tool, when this message was judged
            return NOT_OFFERED
        outer = inside.get()
        if outer is not None and outer.depth >= NESTING_LIMIT:
            return NESTED
        asks = found.needs_approval and not (context.review and found.mode == "write")
        message = ""
        if self._announce is not None or (asks and self._approve is not None):
            saying = self._bodies.message(found, job.arguments)
            message = await unless(cancel_of(context), saying, context.remaining_seconds()) or ""
        refused = stopped(context)  # nobody is asked about what will not run any more
        if refused is None and asks:
            refused = await self._consent(found, job.arguments, message, context)
        if refused is not None:
            return refused
        breaker = self.breaker(found.qualified_name)
        ticket = breaker.admit()
        if isinstance(ticket, Failure):
            return ticket
        cancel = Cancel(cancel_of(context))
        bell = Bell()
        queue = self._bulkhead if outer is None else outer.inner(self._bulkhead, found.mode)
        room = queue.enter(found.mode, bell.ring)
        counted: Place | Failure | None = None
        try:
            if isinstance(room, Failure):
                return room
            if not room.inside:
                cancel.listen(bell.ring)
                await bell.wait(context.remaining_seconds())
            if queue is not self._bulkhead:
                counted = self._bulkhead.enter(found.mode)  # it waits for no place there, and takes one that is free
            why = stopped(context)
            if why is None and not room.inside:
                why = TOO_LATE  # the timer went off before the time had come
            if why is None and not self._registry.holds(found):
                why = NOT_OFFERED  # its extension was stopped while the call waited, for consent or a place
            why = why or self._bodies.saturated()
            if why is None:  # the breaker may have opened while the call waited
                admitted = breaker.admit(ticket)
                why, ticket = (admitted, ticket) if isinstance(admitted, Failure) else (None, admitted)
            if why is None and not await self._ledger.soon(self._ledger.start, job.key) and found.mode == "write":
                why = UNKNOWN  # another process took the call over; what only reads may run in both
            if why is not None:
                return why
            if self._announce is not None:
                attempt(self._announce, Approval(found, copied(job.arguments), message, context))
            content = await self._bodies.run(job, found, context, cancel, alone)
            if content.failure is None:
                job.result = job.succeeded(content.data, content.truncated, self._clock())
            if content.broke:
                breaker.failed(ticket)
            elif job.began and content.failure is not STOPPED:
                breaker.succeeded(ticket)
            return content.failure
        finally:
            cancel.leave()
            breaker.ignored(ticket)  # nothing where it was settled
            if isinstance(counted, Place):
                self._bulkhead.leave(counted)
            if isinstance(room, Place):
                queue.leave(room)

    async def _consent(
        self, tool: Tool, arguments: dict[str, Any], message: str, context: Invocation
    ) -> Failure | None:
        if self._approve is None:
            return Failure(kind="denied", message="nobody is there to consent to this call", hint="do without it")
        asking = self._bodies.consent(self._approve, Approval(tool, copied(arguments), message, context))
        answer = await unless(cancel_of(context), asking, context.remaining_seconds())
        why = stopped(context)
        if why is not None or (answer is not None and answer.value is True):
            return why
        return Failure(kind="denied", message="the call was not approved", hint="do without it, or ask the user")


def cancel_of(context: Invocation) -> Cancel | None:
    """Return the signal of a context, where it is one that can be listened to."""
    return context.cancel if isinstance(context.cancel, Cancel) else None
