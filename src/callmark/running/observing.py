"""What hosts can see of calls: records for observers, counts per tool, and an audit log of JSON Lines.

A record has names, sizes and outcomes. Arguments and results are in it only where a host asks for contents, and an
observer that raises changes nothing.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from os import PathLike
from typing import Any, Final

import msgspec

from callmark.errors import UsageError
from callmark.events import JsonValue
from callmark.running.forks import Forking
from callmark.tools.foreign import attempt

_RECENT: Final = 20  # errors per tool that are kept: what a person looks through


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call that is over.

    tool               the qualified name; "?" where there is no such tool
    session, message, index, id   where the call stands
    outcome            "ok", or the kind of failure; `code` is the tool's own code
    argument_names     the keys that the tool's schema declares; other keys are only counted in `other_arguments`
    argument_characters, result_characters   sizes as JSON
    seconds            how long it took
    late_seconds       by which it was over, or given up, behind its limit: some thousandths, unless somebody kept the
                       interpreter's lock or the event loop; a tool that does so wants `runs_in="process"`
    at                 when it was over, in seconds since 1970
    arguments, result  the contents, where the executor was told to record them
    """

    tool: str
    mode: str
    session: str
    message: str
    index: int
    outcome: str
    seconds: float
    at: float
    id: str | None = None
    late_seconds: float = 0.0
    code: str = ""
    argument_names: tuple[str, ...] = ()
    other_arguments: int = 0
    argument_characters: int = 0
    result_characters: int = 0
    truncated: bool = False
    replayed: bool = False
    arguments: JsonValue = None
    result: JsonValue = None

    def __repr__(self) -> str:
        return f"Record({self.tool}, {self.outcome})"


Observer = Callable[[Record], Any]


class ToolStats(msgspec.Struct, kw_only=True):
    """What is known of one tool: calls by outcome, seconds in all and at most, recent failures, the breaker's state.

    `late_seconds` are the most that a call took beyond its limit: see `Record`.
    """

    calls: int = 0
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    replayed: int = 0
    seconds: float = 0.0
    slowest_seconds: float = 0.0
    late_seconds: float = 0.0
    result_characters: int = 0
    breaker: str = "closed"
    recent_failures: list[str] = msgspec.field(default_factory=list)  # "kind code", the newest last

    def add(self, record: Record) -> None:
        """Count one more call; one that was replayed ran before, and counts as nothing else."""
        if record.replayed:
            self.replayed += 1
            return
        self.calls += 1
        self.outcomes[record.outcome] = self.outcomes.get(record.outcome, 0) + 1
        self.seconds += record.seconds
        self.slowest_seconds = max(self.slowest_seconds, record.seconds)
        self.late_seconds = max(self.late_seconds, record.late_seconds)
        self.result_characters += record.result_characters
        if record.outcome != "ok":
            recent = deque([*self.recent_failures, f"{record.outcome} {record.code}".strip()], _RECENT)
            self.recent_failures = list(recent)


class Watch(Forking):
    """Hands each record to all observers, and counts. Threads may share it."""

    def __init__(self, observers: tuple[Observer, ...]) -> None:
        self._observers = observers
        super().__init__()
        self._tools: dict[str, ToolStats] = {}
        self.broken_observers = 0  # calls of observers that raised

    def tell(self, record: Record) -> None:
        """Count a record and hand it on."""
        with self._lock:
            self._tools.setdefault(record.tool, ToolStats()).add(record)
        for observer in self._observers:
            if attempt(observer, record).error is not None:
                self.broken_observers += 1

    def tools(self) -> dict[str, ToolStats]:
        """Return a copy of the counts, by tool."""
        with self._lock:
            return deepcopy(self._tools)


class AuditLog:
    """An observer that appends each record to a file, as one line of JSON.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "audit.jsonl")
    >>> with AuditLog(path) as log:
    ...     log(Record(tool="look", mode="read", session="s", message="m", index=0, outcome="ok", seconds=0.1, at=0.0))
    >>> [record["tool"] for record in read_audit_log(path)]
    ['look']

    Each line is written whole and at once, so that several processes may share a file and a crash or a full disk tears
    at most one line, which `read_audit_log` leaves out. Raises OSError where the file cannot be opened or written.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._torn = b""  # or what ends the line that a full disk tore
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        if os.fstat(self._file).st_size:
            os.lseek(self._file, -1, os.SEEK_END)
            if os.read(self._file, 1) != b"\n":  # a line that a crash tore goes on no further
                os.write(self._file, b"\n")

    def __call__(self, record: Record) -> None:
        """Append a record."""
        if self._file < 0:
            raise OSError("the audit log was closed")
        line = self._torn + msgspec.json.encode(record) + b"\n"
        self._torn = b"\n" if os.write(self._file, line) < len(line) else b""
        if self._torn:
            raise OSError("a line of the audit log was torn: the disk is full")

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, -1  # whose number is soon that of another one
        if file >= 0:
            os.close(file)

    def __enter__(self) -> AuditLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_audit_log(path: str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the records of an audit log; lines that were torn are left out."""
    with open(path, "rb") as lines:
        for line in lines:
            try:
                record = msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue
            yield record


def spans(tracer: Any = None) -> Observer:
    """Return an observer that makes an OpenTelemetry span of each call: `execute_tool NAME`, with start and end.

    Names and outcomes are those of the semantic conventions for generative AI; contents are in it where the records
    have them. `tracer` defaults to the global one, named `callmark`. Raises UsageError without the extra `otel`.
    """
    try:
        from opentelemetry import trace
    except ImportError:
        raise UsageError("spans: expected OpenTelemetry to be installed (the extra `otel`); it is not") from None

    used = tracer or trace.get_tracer("callmark")

    def observe(record: Record) -> None:
        end = int(record.at * 1e9)
        span = used.start_span(f"execute_tool {record.tool}", start_time=end - int(record.seconds * 1e9))
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": record.tool,
            "gen_ai.tool.type": "function",
            "callmark.tool.mode": record.mode,
            "callmark.result.characters": record.result_characters,
        }
        if record.id is not None:
            attributes["gen_ai.tool.call.id"] = record.id
        if record.outcome != "ok":
            attributes["error.type"] = record.outcome
            span.set_status(trace.StatusCode.ERROR)
        if record.arguments is not None:
            attributes["gen_ai.tool.call.arguments"] = msgspec.json.encode(record.arguments).decode()
            attributes["gen_ai.tool.call.result"] = msgspec.json.encode(record.result).decode()
        span.set_attributes(attributes)
        span.end(end_time=end)

    return observe


wall_clock: Final = time.time  # for records only; nothing is decided by it
