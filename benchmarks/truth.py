"""A workload is read as its generator wrote it, or its speed is of no interest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.measure import limited
from benchmarks.workloads import CHUNK, Workload, chunks
from callmark import parse
from callmark.events import Call, Event, Malformed, Markup, Text
from callmark.testing import in_chunks


class WrongTruthError(Exception):
    """A workload was read wrongly: its speed is of no interest."""


def check_truth(workload: Workload, options: dict[str, Any]) -> None:
    """Raise WrongTruthError unless `workload` is read as written: whole, in chunks of 4, and of 1000."""
    wanted = [(name, msgspec.json.encode(arguments)) for name, arguments in workload.calls]
    ways: tuple[tuple[str, Callable[[], list[Event]]], ...] = (
        ("whole", lambda: list(parse(workload.text, **options).events)),
        ("in chunks of 4", lambda: in_chunks(chunks(workload.text, CHUNK), **options)),
        ("in chunks of 1000", lambda: in_chunks(chunks(workload.text, 1000), **options)),
    )
    for way, read in ways:
        try:
            with limited():
                events = read()
        except Exception as error:
            raise WrongTruthError(f"{title(workload)} {way}: {type(error).__name__}: {error}") from error
        calls = [event for event in events if isinstance(event, Call)]
        if [(call.name, msgspec.json.encode(call.arguments)) for call in calls] != wanted:
            raise WrongTruthError(f"{title(workload)} {way}: {len(calls)} calls for {len(wanted)}, or others")
        if any(call.repairs for call in calls):
            raise WrongTruthError(f"{title(workload)} {way}: a well-formed call was repaired")
        pieces = (event.text if isinstance(event, Text) else event.raw for event in events
                  if isinstance(event, Text | Call | Malformed | Markup))  # fmt: skip
        if "".join(pieces) != workload.text:
            raise WrongTruthError(f"{title(workload)} {way}: the events do not give the text back")


def title(workload: Workload) -> str:
    return f"{workload.name}, {workload.spelling.name}"
