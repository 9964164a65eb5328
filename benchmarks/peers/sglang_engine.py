"""SGLang's own detectors, from its wheel, through the `FunctionCallParser` that its server uses.

Whole: `parse_non_stream`, where `has_tool_call` says that it is worth it, as `OpenAIServingChat._process_tool_calls`
calls them. Streamed: `parse_stream_chunk` for each delta, at last for the empty one of the stop token, with
`parse_stream_end`; then the arguments that the detector knows but has not sent, as the server does at the end of an
answer. Tools are its own `Tool` objects. The engine (torch, kernels, server) is stood in for.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.stand_ins import only
from benchmarks.peers.worker import Answer, Reader, Task, decoded, merged

_spec = find_spec("sglang")
assert _spec is not None
assert _spec.origin is not None
only(
    Path(_spec.origin).parent,
    (
        "sglang.srt.function_call",
        "sglang.srt.entrypoints.openai.protocol",
        "sglang.srt.environ",
        "sglang.srt.parser.harmony_parser",
    ),
    ("torch", "transformers", "xgrammar", "openai_harmony", "numpy"),
)
logging.disable(logging.CRITICAL)  # a refused call is logged with its text: that is not parsing

from sglang.srt.entrypoints.openai.protocol import Tool  # type: ignore  # noqa: E402
from sglang.srt.function_call.function_call_parser import FunctionCallParser  # type: ignore  # noqa: E402


class _Stream:
    """The last delta is an empty one: that of the stop token, whose text is not sent. Some calls come with it only."""

    def __init__(self, parser: Any) -> None:
        self.parser, self.feed = parser, parser.parse_stream_chunk

    def finish(self) -> Any:
        text, calls = self.feed("")
        end_text, end_calls = self.parser.parse_stream_end()
        return (text or "") + end_text, [*calls, *end_calls], self._unsent()

    def _unsent(self) -> tuple[int, str] | None:
        detector = self.parser.detector
        known, sent = getattr(detector, "prev_tool_call_arr", None), getattr(detector, "streamed_args_for_tool", None)
        if not known or not sent or len(known) > len(sent):
            return None
        last = len(known) - 1
        arguments = known[last].get("arguments", {})
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return (last, text[len(sent[last]) :]) if text.startswith(sent[last]) else None


class _Detector:
    parser_name = ""

    def __init__(self, task: Task) -> None:
        self.tools = [Tool.model_validate(tool) for tool in task.tools]

    def whole(self) -> Callable[[str], Any]:
        parser = FunctionCallParser(self.tools, self.parser_name)
        return lambda text: parser.parse_non_stream(text) if parser.has_tool_call(text) else (text, [])

    def answer(self, result: Any) -> Answer:
        text, calls = result
        return Answer([(call.name or "", decoded(call.parameters)) for call in calls], text or "")

    def stream(self) -> Any:
        return _Stream(FunctionCallParser(self.tools, self.parser_name))

    def gathered(self, outputs: list[Any]) -> Answer:
        deltas = [(call.tool_index, call.name, call.parameters) for output in outputs for call in output[1]]
        if outputs and len(outputs[-1]) == 3 and outputs[-1][2]:
            index, rest = outputs[-1][2]
            deltas.append((index, None, rest))
        return Answer(merged(iter(deltas)), "".join(output[0] or "" for output in outputs))


READERS: dict[str, type[Reader]] = {
    name: type(name, (_Detector,), {"parser_name": name}) for name in FunctionCallParser.ToolCallParserEnum
}


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("sglang", "pydantic", "partial-json-parser")}
