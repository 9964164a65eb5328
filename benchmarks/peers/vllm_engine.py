"""vLLM's own tool parsers, from its source package, through the `DelegatingParser` that its server uses.

Whole: `parse`, streamed: `parse_delta` with the delta's text and token ids, `finished` on the last one, on the parser
that `ParserManager.get_parser` composes of a tool parser and no reasoning parser. The request is its own
`ChatCompletionRequest`. There is no tokenizer, as its vocabulary would have to be downloaded: `vocabularies.py` stands
in for it. The ids of a chunk are kept, so that finding them is not timed again and again. torch and the engine are
stood in for.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.peers.stand_ins import only
from benchmarks.peers.vocabularies import MARKERS, Tokenizer
from benchmarks.peers.worker import Answer, Reader, Task, decoded, merged

_spec = find_spec("vllm")
assert _spec is not None
assert _spec.origin is not None
_FOLDER = Path(_spec.origin).parent
only(
    _FOLDER,
    (
        "vllm.tool_parsers",
        "vllm.parser",
        "vllm.reasoning",
        "vllm.entrypoints.generate.base.protocol",
        "vllm.entrypoints.openai.engine.protocol",
        "vllm.entrypoints.openai.chat_completion.protocol",
        "vllm.entrypoints.openai.responses.protocol",
        "vllm.entrypoints.serve.engine.protocol",
        "vllm.utils",
        "vllm.envs",
        "vllm.exceptions",
    ),
    ("torch", "transformers", "xgrammar", "mistral_common", "numpy", "openai_harmony", "prometheus_client", "tqdm",
     "llguidance", "PIL", "jinja2", "huggingface_hub", "psutil", "cachetools", "xxhash", "blake3"),
    vllm__renderers__chat_utils={
        "make_tool_call_id": lambda *positional, **named: f"chatcmpl-tool-{uuid.uuid4().hex}",
        "get_tool_call_id_type": lambda *positional, **named: "random",
        "get_history_tool_calls_cnt": lambda *positional, **named: 0,
    },
    vllm__utils__mistral={"is_mistral_tokenizer": lambda tokenizer: False},
    mistral_common__tokens__tokenizers__base={
        "SpecialTokens": SimpleNamespace(
            **{name: SimpleNamespace(value=token) for name, token in (
                ("tool_calls", "[TOOL_CALLS]"), ("args", "[ARGS]"), ("call_id", "[CALL_ID]"),
                ("begin_think", "[THINK]"), ("end_think", "[/THINK]"),
            )}
        ),
    },
)  # fmt: skip
logging.disable(logging.CRITICAL)

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # type: ignore  # noqa: E402
from vllm.parser.parser_manager import ParserManager  # type: ignore  # noqa: E402

_PLAIN = 1  # a token that is no marker, as of a prompt


class _Stream:
    """The last delta is an empty one with `finished`: that of the stop token, whose text is not sent."""

    def __init__(self, parser: Any, request: Any, tokenizer: Tokenizer) -> None:
        self.parse_delta, self.request = parser.parse_delta, request
        self.encode, self.seen = tokenizer.encode, tokenizer.seen
        self.plain = [_PLAIN]

    def feed(self, chunk: str) -> Any:
        ids = self.seen.get(chunk)
        if ids is None:
            ids = self.seen[chunk] = self.encode(chunk)
        return self.parse_delta(chunk, ids, self.request, prompt_token_ids=self.plain, finished=False)

    def finish(self) -> Any:
        return self.parse_delta("", [], self.request, prompt_token_ids=self.plain, finished=True)


class _ToolParser:
    parser_name = ""
    tokenizer: Tokenizer

    def __init__(self, task: Task) -> None:
        tools = {"tools": task.tools, "tool_choice": "auto"} if task.tools else {}
        self.request = ChatCompletionRequest(messages=[{"role": "user", "content": "x"}], model="m", **tools)
        self.made = ParserManager.get_parser(
            tool_parser_name=self.parser_name, reasoning_parser_name=None, enable_auto_tools=True, model_name="m"
        )

    def _parser(self) -> Any:
        return self.made(self.tokenizer, self.request.tools)

    def whole(self) -> Callable[[str], Any]:
        parser, request = self._parser(), self.request
        return lambda text: parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=[_PLAIN])

    def answer(self, result: Any) -> Answer:
        _, content, calls = result
        return Answer([(call.name, decoded(call.arguments)) for call in calls or ()], content or "")

    def stream(self) -> Any:
        return _Stream(self._parser(), self.request, self.tokenizer)

    def gathered(self, outputs: list[Any]) -> Answer:
        deltas = [output for output in outputs if output is not None]
        calls = (
            (call.index, call.function.name, call.function.arguments)
            for delta in deltas
            for call in delta.tool_calls or ()
            if call.function is not None
        )
        return Answer(merged(calls), "".join(delta.content or "" for delta in deltas))


READERS: dict[str, type[Reader]] = {
    name: type(name, (_ToolParser,), {"parser_name": name.partition(" ")[0], "tokenizer": Tokenizer(markers)})
    for name, markers in MARKERS.items()
}


def versions() -> dict[str, str]:
    found = (_FOLDER.parent / "vllm-version.txt").read_text(encoding="utf-8").strip()
    return {"vllm": found, "pydantic": version("pydantic"), "openai": version("openai")}
