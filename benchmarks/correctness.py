"""Who reads recorded outputs rightly: the fixtures of `canitoolcall`, per format and reader.

A fixture is what a model wrote, the tools it had, and the calls that are in it. Each reader gets the text that its
server would hand it, which is the one after the reasoning (no reader's reasoning parser is run), whole and in several
groupings of token-sized pieces; marker tokens are never cut. What is counted:

- calls: a whole text gives exactly the calls that are meant (fixtures of truncated or broken outputs are left out);
- stream: every stream gives the same calls and text as the whole (white space at the ends aside);
- splits: all streams give the same;
- clean: no marker of the format is left in the text, in a name or in an argument, whole and streamed.

The last three are `canitoolcall`'s own checks. A format that a peer has no parser for is left blank, not failed;
callmark reads every format three times: with all dialects that are listened for by default, with the format's own
dialect, as each peer does, and with its widest tolerance; and without tools, as the other parts time it. vLLM reads
harmony by its reasoning parser, which is not run here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.contests import FORGE, OURS, Arena, Entrant
from benchmarks.measure import TooSlowError
from benchmarks.report import Row
from benchmarks.verdicts import judged
from benchmarks.workers import FailedError
from benchmarks.workloads import tokens

STRATEGIES = ("one", "special", "token", *(f"rand:{seed}:8" for seed in range(1, 6)))  # its default
MEASURES = ("calls", "stream", "splits", "clean")
LONGEST_SECONDS = 5.0  # for one read of a peer; callmark has its process's own limit
_REASONING_ENDS = ("</think>", "[/THINK]", "<channel|>", "<|close|>think<|sep|>")

_ATP = Entrant("agent-tool-parser", "agent-tool-parser", "agent-tool-parser")
_CALLMARK = (
    Entrant("callmark", OURS, "callmark, tools"),
    Entrant("callmark, own dialect", OURS, "callmark, own dialect and tools"),
    Entrant("callmark, salvage", OURS, "callmark, salvage"),
    Entrant("callmark, no tools", OURS, "callmark"),
)


def _engines(sglang: str, vllm: str, *others: Entrant) -> tuple[Entrant, ...]:
    return (Entrant("sglang", "sglang", sglang), Entrant("vllm", "vllm", vllm), *others)


# Family, a part of the model's name, the format's name here, our dialect, and who else reads it. The first that fits
# counts.
FORMATS: tuple[tuple[str, str, str, str, tuple[Entrant, ...]], ...] = (
    ("qwen3-hermes", "", "hermes (Qwen 3)", "hermes",
     _engines("qwen25", "hermes", _ATP, FORGE, Entrant("ai-sdk", "ai-sdk", "hermes"))),
    ("qwen3-xml", "", "XML (Qwen 3 Coder)", "qwen_xml",
     _engines("qwen3_coder", "qwen3_coder", FORGE, Entrant("ai-sdk", "ai-sdk", "qwen3coder"))),
    ("deepseek", "V4.1", "DeepSeek V4.1", "dsml", _engines("deepseekv41", "deepseek_v41")),
    ("deepseek", "V4", "DeepSeek V4", "dsml", _engines("deepseekv4", "deepseek_v4", _ATP)),
    ("deepseek", "V3.2", "DeepSeek V3.2", "dsml", _engines("deepseekv32", "deepseek_v32", _ATP)),
    ("deepseek", "V3.1", "DeepSeek V3.1", "deepseek", _engines("deepseekv31", "deepseek_v31", _ATP)),
    ("deepseek", "V3", "DeepSeek V3", "deepseek", _engines("deepseekv3", "deepseek_v3", _ATP)),
    ("kimi", "K3", "Kimi K3", "kimi_k3", _engines("kimi_k3", "kimi_k3")),
    ("kimi", "", "Kimi K2", "kimi_k2", _engines("kimi_k2", "kimi_k2")),
    ("glm", "4.5", "GLM 4.5", "glm", _engines("glm45", "glm45")),
    ("glm", "", "GLM 4.7, 5", "glm", _engines("glm47", "glm47")),
    ("mistral", "7B-Instruct-v0.3", "Mistral 7B", "mistral",
     _engines("mistral", "mistral (before v11)", _ATP, FORGE)),
    ("mistral", "", "Mistral", "mistral", _engines("mistral", "mistral", _ATP, FORGE)),
    ("gemma4", "", "Gemma 4", "gemma4", _engines("gemma4", "gemma4")),
    ("llama", "Llama-4", "Llama 4 (pythonic)", "pythonic", _engines("pythonic", "llama4_pythonic", _ATP)),
    ("llama", "", "Llama 3 (JSON)", "llama", _engines("llama3", "llama3_json", _ATP)),
    ("gpt-oss", "", "gpt-oss (harmony)", "harmony", (Entrant("sglang", "sglang", "gpt-oss"),)),
)  # fmt: skip


def correctness(arena: Arena, every: int = 1) -> Iterator[list[Row]]:
    """Yield the rows of one format at a time: a row for each reader. `every` takes one fixture of so many.

    Needs the package `canitoolcall` (extra `bench`).
    """
    from canitoolcall.fixtures import load_families, load_fixtures  # type: ignore[import-untyped,unused-ignore]

    families = load_families()
    chosen: dict[str, list[Any]] = {}
    readers: dict[str, tuple[Entrant, ...]] = {}
    dialects: dict[str, str] = {}
    for fixture in load_fixtures():
        model = fixture.models[0]
        name, dialect, peers = next((name, dialect, peers) for family, part, name, dialect, peers in FORMATS
                                    if family == fixture.family and part in model)  # fmt: skip
        chosen.setdefault(name, []).append(fixture)
        readers[name] = (*_CALLMARK, *peers)
        dialects[name] = dialect
    for name in dict.fromkeys(one[2] for one in FORMATS):
        entrants = [
            entrant
            for entrant in readers.get(name, ())
            if entrant.peer in arena.workers and entrant.reader in arena.readers[entrant.peer]
        ]

        def scored(entrant: Entrant, name: str = name) -> Row:
            score = _Score(name, dialects[name], entrant.label)
            for fixture in chosen[name][::every]:
                score.take(arena, entrant, fixture, families[fixture.family])
            return score.row()

        yield arena.apart(entrants, scored)


def visible(text: str, reasoning: str | None) -> str:
    """Return what comes after the reasoning, which is what a tool parser gets."""
    if not reasoning:
        return text
    begun = max(0, text.find(reasoning[-40:].strip()))
    ends = [place + len(end) for end in _REASONING_ENDS if (place := text.find(end, begun)) >= 0]
    return text[min(ends) :] if ends else text


def units(text: str, markers: Sequence[str]) -> list[str]:
    """Cut a text into token-sized pieces that never cut one of `markers`."""
    parts = re.split("(" + "|".join(map(re.escape, sorted(markers, key=len, reverse=True))) + ")", text)
    return [piece for place, part in enumerate(parts) for piece in ([part] if place % 2 else tokens(part)) if piece]


class _Score:
    """How often a reader was right in one format."""

    def __init__(self, format_name: str, dialect: str, label: str) -> None:
        self.format_name, self.dialect, self.label = format_name, dialect, label
        self.right = dict.fromkeys(MEASURES, 0)
        self.asked = dict.fromkeys(MEASURES, 0)
        self.failures: dict[str, list[str]] = {measure: [] for measure in MEASURES}

    def row(self) -> Row:
        return {
            "format": self.format_name,
            "reader": self.label,
            "fixtures": max(self.asked.values()),
            **{m: f"{self.right[m]}/{self.asked[m]}" if self.asked[m] else "" for m in MEASURES},
            **{f"{m} share": self.right[m] / self.asked[m] if self.asked[m] else None for m in MEASURES},
            "failures": self.failures,
        }

    def _note(self, measure: str, fixture: Any, good: bool) -> None:
        self.asked[measure] += 1
        self.right[measure] += good
        if not good:
            self.failures[measure].append(fixture.id)

    def take(self, arena: Arena, entrant: Entrant, fixture: Any, family: Any) -> None:
        from canitoolcall import checks
        from canitoolcall.chunking import ChunkStrategy, split  # type: ignore[import-untyped,unused-ignore]
        from canitoolcall.results import Observation, Status  # type: ignore[import-untyped,unused-ignore]

        expected = fixture.expected
        text = visible(fixture.raw_output, expected.reasoning_content if expected else None)
        pieces = units(text, family.markers)
        worker = arena.workers[entrant.peer]
        worker.load(fixture.id, text=text, tools=[dict(tool) for tool in fixture.tools], dialect=self.dialect,
                    opener="")  # fmt: skip

        def read(strategy: str | None) -> Any:
            groups = None
            if strategy is not None:
                groups = [
                    sum(map(len, group)) for group in split(pieces, ChunkStrategy.parse(strategy), set(family.markers))
                ]
            limit = None if entrant.peer == OURS else LONGEST_SECONDS  # no load may say that we read otherwise
            return worker.ask("read", key=fixture.id, reader=entrant.reader, pieces=groups, limit=limit)

        try:
            whole = read(None)
            whole_result = _result(whole)
            raised = None
        except (FailedError, TooSlowError) as error:
            whole, whole_result, raised = None, _result(None, str(error)), error
        if expected is not None:
            meant = [(call.name, dict(call.arguments)) for call in expected.tool_calls]
            self._note("calls", fixture, whole is not None and judged(whole["calls"], meant) == "right")
        streams: dict[str, Any] = {}
        for strategy in STRATEGIES:
            try:
                streams[strategy] = _result(read(strategy))
            except (FailedError, TooSlowError) as error:
                if str(error).startswith("cannot"):
                    break
                streams[strategy] = _result(None, str(error))
        observation = Observation(nonstream=whole_result, streams=streams)
        if streams:
            same = checks.check_stream_equals_nonstream(fixture, family, observation)
            self._note("stream", fixture, raised is None and all(row.status is not Status.FAIL for row in same))
            split_rows = checks.check_split_invariance(fixture, family, observation)
            self._note("splits", fixture, all(row.status is not Status.FAIL for row in split_rows))
        gives_text = bool(streams) if whole is None else whole["content"] is not None
        if expected is not None and gives_text:
            rows = checks.check_no_leakage(fixture, family, observation)
            self._note("clean", fixture, all(row.status is not Status.FAIL for row in rows))


def _result(answer: dict[str, Any] | None, exception: str | None = None) -> Any:
    from canitoolcall.results import ParsedToolCall, ParseResult

    if answer is None:
        return ParseResult(content=None, reasoning_content=None, tool_calls=(), exception=exception)
    calls = tuple(
        ParsedToolCall(name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))
        for name, arguments in answer["calls"]
    )
    return ParseResult(content=answer["content"] or None, reasoning_content=None, tool_calls=calls)
