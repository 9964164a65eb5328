"""One call on its way through the executor: what is known of it so far, and the words for what became of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from callmark.errors import ToolError
from callmark.events import Call
from callmark.running.loop_guard import LoopTicket
from callmark.running.observing import Record
from callmark.running.rendering import ERROR_LIMIT, NAME_LIMIT, clean, cut_text, rendered
from callmark.tools.context import Invocation
from callmark.tools.foreign import Outcome, attempt
from callmark.tools.results import Failure, Result
from callmark.tools.tool import Tool

TRANSIENT: Final = ("cancelled", "timeout", "busy", "saturated", "loop-guard", "breaker-open")
"""Why a body did not run that may run at the next attempt: a guard's no holds for a time, and is nobody's outcome."""

NO_TOOL: Final = "?"  # in records: a name that a model made up is contents, and there is no end of them

UNKNOWN: Final = Failure(
    kind="outcome-unknown",
    message="this call was begun before and was interrupted; it may have happened or not",
    hint="find out what happened before you call it again",
)
NOT_OFFERED: Final = Failure(
    kind="unknown-tool", message="there is no such tool now", hint="call only tools that are listed"
)
CANCELLED: Final = Failure(kind="cancelled", message="the call was cancelled before it began")
STOPPED: Final = Failure(kind="cancelled", message="the call was cancelled while it ran", hint="it may still happen")
NESTED: Final = Failure(
    kind="loop-guard", message="calls that tools make were nested too deep", hint="do without this tool"
)
TOO_LATE: Final = Failure(kind="timeout", message="there was no time left to begin the call", hint="try again")


def stopped(context: Invocation) -> Failure | None:
    """Return why nothing should begin any more, None where there is no reason."""
    if context.cancelled:
        return CANCELLED
    return TOO_LATE if context.remaining_seconds() == 0.0 else None


@dataclass(slots=True, repr=False)
class Job:
    """A call, the key by which the ledger knows it, and what the gates have found."""

    call: Call
    key: str
    asked: float  # when, by the executor's clock
    tool: Tool | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    ticket: LoopTicket | None = None
    ours: bool = False  # whether the claim in the ledger is ours to finish or to release
    looks: int = 0  # how often another process was found at it
    began: bool = False  # whether the tool's body ran
    late_seconds: float = 0.0  # by which its body was over, or given up, behind its limit
    told: bool = False  # whether the guard and the observers know what it came to
    result: Result | None = None

    def failed(self, failure: Failure, now: float) -> Result:
        """Return the result of a call that came to nothing."""
        return self._result(now, ok=False, error=failure)

    def succeeded(self, data: Any, truncated: bool, now: float) -> Result:
        """Return the result of a call that gave a value."""
        return self._result(now, ok=True, data=data, truncated=truncated)

    def _result(self, now: float, **fields: Any) -> Result:
        stealth = self.tool is not None and self.tool.stealth
        name = clean(self.call.name)  # a server may send any text as one
        seconds = now - self.asked
        return Result(index=self.call.index, id=self._id(), name=name, stealth=stealth, seconds=seconds, **fields)

    def _id(self) -> str | None:
        return None if self.call.id is None else clean(self.call.id)

    def replayed(self, stored: bytes) -> Result:
        """Return the result that the call came to when it ran, for the call as it stands here."""
        result = msgspec.json.decode(stored, type=Result)
        return msgspec.structs.replace(result, replayed=True, index=self.call.index, id=self._id())

    def record(self, result: Result, place: tuple[str, str], at: float, contents: bool) -> Record:
        """Return what observers are told."""
        properties = {} if self.tool is None else self.tool.parameters.get("properties") or {}
        given = self.call.arguments if isinstance(self.call.arguments, dict) else {}
        known = tuple(clean(key) for key in given if key in properties)
        return Record(
            tool=NO_TOOL if self.tool is None else self.tool.qualified_name,
            mode="" if self.tool is None else self.tool.mode,
            session=clean(place[0]),
            message=clean(place[1]),
            index=self.call.index,
            id=self._id(),
            outcome=result.outcome,
            code=result.error.code if result.error is not None else "",
            seconds=result.seconds,
            late_seconds=self.late_seconds,
            at=at,
            argument_names=known,
            other_arguments=len(given) - len(known),
            argument_characters=len(json.dumps(self.call.arguments)),
            result_characters=len(json.dumps(result.data)),
            truncated=result.truncated,
            replayed=result.replayed,
            arguments=rendered(self.call.arguments, sys.maxsize).data if contents else None,
            result=result.for_model() if contents else None,
        )


def groups(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Yield the calls that run side by side: reads do; a write is alone, behind what stands before it."""
    group: list[Job] = []
    for job in jobs:
        if job.result is None and job.tool is not None and job.tool.mode == "write":
            yield group
            yield [job]
            group = []
        else:
            group.append(job)
    yield group


def digest(result: Result) -> str:
    """Return the same text for results that tell a model the same."""
    told = [result.data, None if result.error is None else [result.error.kind, result.error.message]]
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class Approval:
    """A call that waits for consent, or is about to run. Changing `arguments`, a copy, changes nothing that runs."""

    tool: Tool
    arguments: dict[str, Any]
    message: str  # what `format_message` says, or ""
    context: Invocation

    def __repr__(self) -> str:
        return f"Approval({self.tool.qualified_name})"


Approver = Callable[[Approval], Any]


class ProcessEndedError(ToolError):
    """A tool's process died: said to the model as a ToolError is, and a failure of the tool all the same."""


class Content(NamedTuple):
    """What a tool's body came to, as JSON; `broke` says that the tool failed, rather than said that something did."""

    data: Any = None
    truncated: bool = False
    failure: Failure | None = None
    broke: bool = False


def told(outcome: Outcome) -> str:
    """Return the text that foreign code gave, "" where it gave none."""
    return attempt(cut_text, outcome.value, ERROR_LIMIT).value or ""


def content_of(outcome: Outcome, limit: int, error_text: bool) -> Content:
    """Turn what foreign code did into JSON. It asks foreign values what they are, so it runs where the tool ran.

    Whatever they raise, down to the names of their types, becomes a Content too.
    """
    made = attempt(_content, outcome, limit, error_text)
    if isinstance(made.error, Exception) and attempt(isinstance, outcome.value, Iterator).value:
        outcome = Outcome(None, made.error)  # a generator runs as it is read
        made = attempt(_content, outcome, limit, error_text)
    if made.error is not None:
        made = attempt(_unserialisable, made.error) if outcome.error is None else attempt(_raised, outcome.error)
    content: Content = made.value or _unserialisable(None)
    return content


def _content(outcome: Outcome, limit: int, error_text: bool) -> Content:
    error = outcome.error
    if error is None:
        return Content(*rendered(outcome.value, limit))
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:  # of one task in a group of tasks
        (error,) = error.exceptions
    if isinstance(error, ToolError):
        return _said(error)
    return _raised(error, f": {error}" if error_text and str(error) else "")


def _raised(error: BaseException, said: str = "") -> Content:
    """Return what is told of an exception: its type, which is all that is asked of one whose own methods raise."""
    code = _type_name(error)
    message = cut_text(f"the tool raised {code}{said}", ERROR_LIMIT)
    return Content(failure=Failure(kind="tool-error", code=code, message=message), broke=True)


def _said(error: ToolError) -> Content:
    code, message, hint = (cut_text(str(part), ERROR_LIMIT) for part in (error.code, error.message, error.hint))
    failure = Failure(kind="tool-error", code=code, message=message, hint=hint)
    return Content(failure=failure, broke=type(error) is ProcessEndedError)


def _unserialisable(error: BaseException | None) -> Content:
    """Return what is said of a value whose own methods raise; a generator may raise a ToolError as well."""
    if isinstance(error, ToolError):
        return _said(error)
    raised = "" if error is None else f": it raised {_type_name(error)}"
    message = f"what the tool returned could not be turned into JSON{raised}"
    return Content(failure=Failure(kind="unserialisable", message=message), broke=True)


def _type_name(error: BaseException) -> str:
    return cut_text(str(type(error).__name__), NAME_LIMIT)
