"""callmark itself, and the floors, as readers."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import callmark
from benchmarks.floors import Emitting, Silent, find_and_decode, find_decode_and_tell
from benchmarks.peers.worker import Answer, Reader, Task
from callmark.reading import parser

LIMITS = callmark.Limits(calls=10**9)  # a message may hold 64 calls, a workload holds thousands; all else by default


class Everything:
    """callmark as it is by default: every dialect with an explicit opener is listened for."""

    def __init__(self, task: Task) -> None:
        self.options: dict[str, Any] = {"limits": LIMITS, **task.options.get("callmark", {})}

    def whole(self) -> Callable[[str], Any]:
        options = self.options
        return lambda text: callmark.parse(text, **options)

    def answer(self, result: Any) -> Answer:
        return _answer(result.events)

    def stream(self) -> Any:
        return callmark.Parser(**self.options)

    def gathered(self, outputs: list[Any]) -> Answer:
        return _answer([event for events in outputs for event in events])


class Own(Everything):
    """callmark with what the other readers are given: the one dialect, and the tools."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.options |= {"dialects": [task.dialect]}
        if task.tools:
            self.options["tools"] = task.tools


class Tools(Everything):
    """callmark with every dialect, and the tools."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        if task.tools:
            self.options["tools"] = task.tools


class Salvage(Everything):
    """callmark with its widest tolerance, every dialect and the tools: for the table of correctness."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.options |= {"tolerance": "salvage", **({"tools": task.tools} if task.tools else {})}


def _answer(events: Any) -> Answer:
    calls = [(event.name, event.arguments) for event in events if isinstance(event, callmark.Call)]
    shown = "".join(event.text for event in events if isinstance(event, callmark.Text) and event.channel == "content")
    return Answer(calls, shown)


class FindAndDecode:
    """The floor of whole texts."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def whole(self) -> Callable[[str], Any]:
        task = self.task
        return lambda text: find_and_decode(text, task.opener, task.slices, task.json_texts)

    def answer(self, result: Any) -> Answer:
        return Answer([("", arguments) for arguments in result])

    def stream(self) -> Any:
        raise NotImplementedError("a floor of whole texts")

    def gathered(self, outputs: list[Any]) -> Answer:
        raise NotImplementedError("a floor of whole texts")


class Parts(FindAndDecode):
    """What the parts of callmark that are C cost, where nothing is decided."""

    def whole(self) -> Callable[[str], Any]:
        task = self.task
        return lambda text: find_decode_and_tell(text, task.opener, task.slices, task.json_texts)

    def answer(self, result: Any) -> Answer:
        return Answer([("", event.arguments) for event in result if isinstance(event, callmark.Call)])


class Emit:
    """The floor of streams: one event for each chunk."""

    make: Callable[[], Any] = Emitting

    def __init__(self, task: Task) -> None:
        self.task = task

    def whole(self) -> Callable[[str], Any]:
        raise NotImplementedError("a floor of streams")

    def answer(self, result: Any) -> Answer:
        raise NotImplementedError("a floor of streams")

    def stream(self) -> Any:
        return type(self).make()

    def gathered(self, outputs: list[Any]) -> Answer:
        return Answer([])


class Empty(Emit):
    """The floor of streams that tell nothing."""

    make = Silent


READERS: dict[str, type[Reader]] = {
    "callmark": Everything,
    "callmark, own dialect and tools": Own,
    "callmark, tools": Tools,
    "callmark, salvage": Salvage,
    "floor": FindAndDecode,
    "parts in C": Parts,
    "emit": Emit,
    "empty": Empty,
}


def engine() -> str:
    """Return what the engine of the callmark that runs here is: "Python", or "compiled"."""
    return "Python" if str(parser.__file__).endswith(".py") else "compiled"


def versions() -> dict[str, str]:
    found = {"implementation": platform.python_implementation(), "engine": engine()}
    for name in ("callmark", "msgspec", "regex", "lark"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a revision that is compared stands in a folder, not in an environment
            continue
    return found
