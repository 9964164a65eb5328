"""Peers that are ordinary libraries, each used as its documentation says. Which are there depends on the environment.

- agent-tool-parser: `ToolParser.try_parse_all` on a whole text, told the tools and that their names and parameters mean
  what they say; its Rust engine, or its Python one where the environment says so. It has no streaming.
- forge-guardrails: `rescue_tool_call` on a whole text, with the tools' names. It has no streaming.
- jiter, json-repair, partial-json-parser decode arguments and nothing else: they are told where the JSON stands. As a
  stream they read all that has come so far at each chunk, which is how they are used for that.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.peers.worker import Answer, Reader, Task


class _Whole:
    """What reads whole texts only."""

    def __init__(self, task: Task) -> None:
        self.names = [tool["function"]["name"] for tool in task.tools]

    def stream(self) -> Any:
        raise NotImplementedError("it has no streaming")

    def gathered(self, outputs: list[Any]) -> Answer:
        raise NotImplementedError("it has no streaming")


class _AgentToolParser(_Whole):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        parameters = [tool["function"].get("parameters") or {} for tool in task.tools]
        self.keys = {key for schema in parameters for key in schema.get("properties") or {}}

    def whole(self) -> Callable[[str], Any]:
        from agent_tool_parser import ToolParser  # type: ignore

        # By default it renames tools and parameters that it knows other words for (`query` of `search` to `pattern`).
        parser = ToolParser(
            allowed_tools=set(self.names) or None,
            tool_aliases={name: name for name in self.names},
            param_aliases={key: key for key in self.keys},
        )
        read: Callable[[str], Any] = parser.try_parse_all
        return read

    def answer(self, result: Any) -> Answer:
        return Answer([(call.name, call.args) for call in result])


class _Forge(_Whole):
    def whole(self) -> Callable[[str], Any]:
        from forge.prompts import rescue_tool_call  # type: ignore

        names = self.names
        return lambda text: rescue_tool_call(text, names)

    def answer(self, result: Any) -> Answer:
        return Answer([(call.tool, call.args) for call in result])


class _Growing:
    def __init__(self, decode: Callable[[str], Any]) -> None:
        self.decode, self.text = decode, ""

    def feed(self, chunk: str) -> Any:
        self.text += chunk
        return self.decode(self.text)

    def finish(self) -> Any:
        return self.decode(self.text)


class _Arguments:
    """A decoder: the texts that it gets are JSON texts of arguments."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def complete(self) -> Callable[[str], Any]:
        raise NotImplementedError

    def partial(self) -> Callable[[str], Any]:
        return self.complete()

    def whole(self) -> Callable[[str], Any]:
        decode, texts = self.complete(), self.task.json_texts
        return lambda text: [decode(one) for one in texts]

    def answer(self, result: Any) -> Answer:
        return Answer([("", arguments) for arguments in result])

    def stream(self) -> Any:
        return _Growing(self.partial())

    def gathered(self, outputs: list[Any]) -> Answer:
        return Answer([("", outputs[-1])])


class _Jiter(_Arguments):
    def complete(self) -> Callable[[str], Any]:
        from jiter import from_json  # type: ignore[import-not-found,unused-ignore]

        return lambda text: from_json(text.encode())

    def partial(self) -> Callable[[str], Any]:
        from jiter import from_json

        return lambda text: from_json(text.encode(), partial_mode="trailing-strings")


class _JsonRepair(_Arguments):
    def complete(self) -> Callable[[str], Any]:
        from json_repair import loads  # type: ignore[import-not-found,unused-ignore]

        return lambda text: loads(text)

    def partial(self) -> Callable[[str], Any]:
        from json_repair import loads

        return lambda text: loads(text, stream_stable=True)


class _PartialJsonParser(_Arguments):
    def complete(self) -> Callable[[str], Any]:
        from partial_json_parser import loads  # type: ignore

        return lambda text: loads(text)


_ALL: dict[str, tuple[str, type[Reader]]] = {
    "agent-tool-parser": ("agent-tool-parser", _AgentToolParser),
    "forge": ("forge-guardrails", _Forge),
    "jiter": ("jiter", _Jiter),
    "json-repair": ("json-repair", _JsonRepair),
    "partial-json-parser": ("partial-json-parser", _PartialJsonParser),
}


def _installed() -> dict[str, str]:
    found = {}
    for package, _ in _ALL.values():
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


READERS: dict[str, type[Reader]] = {name: reader for name, (package, reader) in _ALL.items() if package in _installed()}


def versions() -> dict[str, str]:
    return _installed()
