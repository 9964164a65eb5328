"""What else a host calls for each message: texts for a model, content made harmless, words about what went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any

from benchmarks.prompts import TOOLS
from benchmarks.report import Row
from benchmarks.workloads import prose
from callmark import (
    convert,
    detect,
    feedback,
    neutralize,
    parse,
    protocol_prompt,
    render_call,
    render_history,
    render_result,
)

_TURN_SECONDS = 0.02
_TURNS = 5
_ARGUMENTS = {"query": "rain in May", "limit": 5, "tags": ["wind", "sea"]}


def _conversation(messages: int) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": json.dumps(_ARGUMENTS)}}
    turn: list[dict[str, Any]] = [
        {"role": "user", "content": "What will the weather be?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain, then sun."},
    ]
    return turn * (messages // len(turn))


def _work(seed: int) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Yield what is timed: its name, how many things one call of it does, and the call."""
    page = prose(1024, seed)
    result = {"rows": [{"id": number, "name": f"row {number}", "tags": [1, 2]} for number in range(25)]}
    cut = parse('[CALL: search({"query": "rain", "tags": ["wi').problems[0]
    written = '[CALL: search({"query": "rain"})]'
    for name, text in (("a word", "ok"), ("1 KB of prose", page), ("1 KB of JSON", json.dumps(result))):
        yield f"neutralize {name}", 1, lambda text=text: neutralize(text)  # type: ignore[misc]
    yield "render_call", 1, lambda: render_call("search", _ARGUMENTS, "hermes")
    yield "render_result, 1 KB of JSON", 1, lambda: render_result("search", result)
    yield "render_history, a message", 30, lambda: render_history(_conversation(30))
    yield "protocol_prompt, a tool of 20", 20, lambda: protocol_prompt(TOOLS[:20])
    yield "feedback on a cut call", 1, lambda: feedback(cut)
    yield "convert a call", 1, lambda: convert(written, to="pythonic")
    yield "detect a call", 1, lambda: detect(written)


def timed(seed: int) -> Sequence[Row]:
    """Return a row for each: the best of some turns, once all that is remembered is there."""
    rows: list[Row] = []
    for name, things, work in _work(seed):
        work()
        best = float("inf")
        for _ in range(_TURNS):
            times = 0
            start = process_time()
            while (taken := process_time() - start) < _TURN_SECONDS:
                work()
                times += 1
            best = min(best, taken / times)
        rows.append({"what": name, "us": best * 1e6 / things})
    return rows
