"""Runs a tool's body in a process of its own, which really ends with its time: what no thread does.

A thread can be given up, but code in C that never lets go of the interpreter's lock holds up all the others, and with
them whoever counts the seconds. The price is a process a call: Python starts anew and imports the tool's module, which
takes some tenths of a second, and these count.

The function stands in a module, by its name, where the process finds it; arguments, messages and the caller's fields
are pickled. Of the context it has no signal and no progress. A host that is killed itself leaves it running.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from asyncio import CancelledError
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Final

import msgspec

from callmark.errors import ToolError
from callmark.running.jobs import ProcessEndedError, content_of, told
from callmark.running.signals import Cancel
from callmark.running.threads import Threads
from callmark.running.workers import Delivery, run_body
from callmark.tools.context import Invocation, reviewing
from callmark.tools.foreign import Outcome, attempt
from callmark.tools.results import Failure
from callmark.tools.tool import Body, Tool, place_of, tool

_LOOK_SECONDS: Final = 0.02  # between two looks whether the call was given up
_EXIT_SECONDS: Final = 5.0  # for a process that has answered to end by itself
_LIMIT: Final = 1 << 20  # characters of what comes back; the executor's own limit is smaller

_new = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold


class _Answer(msgspec.Struct):
    data: Any = None
    failure: Failure | None = None
    raised: str = ""  # what an exception says of itself


def in_process(made: Tool) -> Body:
    """Return a body that does what the tool's function does, elsewhere."""
    return partial(_apart, place_of(made))


def _apart(place: tuple[str, str, bool], arguments: dict[str, Any], context: Invocation) -> Any:
    fields = {
        "request_id": context.request_id,
        "idempotency_key": context.idempotency_key,
        "messages": context.messages,
        "caller": context.caller,
        "review": context.review,
    }
    ours, theirs = _new.Pipe(duplex=False)
    task = (theirs, place, arguments, fields, context.remaining_seconds())
    process = _new.Process(target=work, args=task, daemon=True)
    with ours:
        with theirs:
            process.start()
        try:
            while not ours.poll(_LOOK_SECONDS):
                if context.cancelled:
                    process.kill()
                    raise CancelledError
            cancel: Any = context.cancel  # the executor's own, which is a Cancel
            cancel.listen(process.kill)  # a process may hang within its answer, too
            answer = msgspec.json.decode(ours.recv_bytes(), type=_Answer)
        except EOFError:
            message = f"the tool's process ended with {_exit_code(process)}"
            raise ProcessEndedError("process-ended", message) from None
        finally:
            threading.Thread(target=_end, args=(process,), daemon=True).start()
    return _come_back(answer)


def _come_back(answer: _Answer) -> Any:
    """Return or raise here what the body did there."""
    failure = answer.failure
    if failure is None:
        return answer.data
    if not answer.raised:
        raise ToolError(failure.code, failure.message, failure.hint)
    raise type(failure.code or failure.kind, (Exception,), {})(answer.raised)


def _exit_code(process: SpawnProcess) -> int | None:
    """Wait for a process that has ended, and return its code.

    Another thread that starts a process collects those that have ended (multiprocessing does so). Until it has noted
    the code, the system knows of no such process any more, and `join` returns without a code.
    """
    process.join()
    end = time.monotonic() + _EXIT_SECONDS
    while process.exitcode is None and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    return process.exitcode


def _end(process: SpawnProcess) -> None:
    process.join(_EXIT_SECONDS)
    process.kill()
    process.join()  # what has ended stays in the system's table until it is asked for


# In the other process.


def work(
    answers: Connection,
    place: tuple[str, str, bool],
    arguments: dict[str, Any],
    fields: Mapping[str, Any],
    seconds: float | None,
) -> None:
    """Find the body, run it, and send what it did."""
    deadline = None if seconds is None else time.monotonic() + seconds
    context = Invocation(**fields, deadline=deadline, clock=time.monotonic)
    delivery = Delivery(lambda: answers.send_bytes(delivery.content))
    with reviewing(context.review):
        threads = Threads()
        run_body(lambda: _found(*place)(arguments, context), _said, delivery, Cancel(), threads)
        threads.ended()


def _found(module: str, name: str, decorated: bool) -> Body:
    """Return the body that a name leads to: a tool's, or a function."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if decorated and not isinstance(found, Tool):
        found = tool(found)
    body: Body = found.function if isinstance(found, Tool) else found
    return body


def _said(outcome: Outcome) -> bytes:
    content = content_of(outcome, _LIMIT, False)
    raised = (told(attempt(str, outcome.error)) or "…") if content.broke else ""
    return msgspec.json.encode(_Answer(content.data, content.failure, raised))
