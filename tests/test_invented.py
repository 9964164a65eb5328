"""A result that the model invents behind its own call ends the message: it is not shown, and nothing runs behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark import Call, Malformed, Registry, Result, Session, Settings, Text, load_dialect, tool
from callmark.events import Event
from callmark.running.models import Request
from callmark.running.session import Step
from callmark.testing import joined


@tool(mode="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


CALL = "[CALL: add(a=1, b=2)]"
LATER = "[CALL: add(a=3, b=4)]"
INVENTED = [
    "\nResult of add:\n3\n",
    " Result of add: 3\n",
    "\nResult: 3\n",
    "\nWell.\n[RESULT: 3]\n",
    "\n<tool_response>\n3\n</tool_response>\n",
    '\n```json\n{"result": 3}\n```\n',
    "<|im_end|>\n<|im_start|>tool\n3\n",
    "\nUser: Tool result: 3\n",
    " -> 3\n",
    *(
        f"\n{begin} 3\n"
        for begin in (  # as the templates of models write results
            *("<start_function_response>", "<end_function_response>", "Observation:", "observation ：", "✿RESULT✿"),
            *("<tool_use_result>", "</tool_use_result>", "Return of functions.add:0", "<cofl:tool_results>"),
            *("<cofl:tool_result name='add'>", "<｜DSML｜tool_result>", "</｜DSML｜function_outputs>"),
            *("<]minimax[>[<tool_response>", "<]minimax[>[</functionresults>"),
        )
    ),
]
PROSE = [
    "\nResults may vary.\n",
    "\nThe result of add is out soon.\n",
    "\nI wait.\nResult: none yet\n",
    "\n```python\nprint(result)\n```\n",
    f"\nI wrote `{CALL}`: the result of add will be 3.\n",
    " and then " + "x" * 700 + "\n",
]


class Played:
    """One message of a model, which comes in pieces, and what a session makes of it."""

    def __init__(self, pieces: Iterable[Any], native: bool = False, **settings: Any) -> None:
        self.pieces = list(pieces)
        self.taken = 0
        self.closed = False
        self.native_tools = "openai" if native else None
        session = Session(Registry([add]), settings=Settings(retries=0, continuations=0, **settings))

        async def run() -> list[Any]:
            return [event async for event in session.run(self, "Go on.")]

        events = asyncio.run(run())
        self.steps = [(event.kind, event.text) for event in events if isinstance(event, Step)]
        answered = [type(event).__name__ for event in events].index("Step", 1)
        self.events: list[Any] = joined(event for event in events[:answered] if isinstance(event, Event))
        self.calls = [event.arguments for event in self.events if isinstance(event, Call)]
        self.results = [event.data for event in events if isinstance(event, Result)]
        self.text = "".join(event.text for event in self.events if isinstance(event, Text))
        self.message = session.messages[1]

    def __call__(self, request: Request) -> Any:
        return self._answer() if request.messages[-1]["content"] == "Go on." else "Done."

    async def _answer(self) -> Any:
        try:
            for piece in self.pieces:
                self.taken += 1
                yield piece
        finally:
            self.closed = True


def cut(text: str, sizes: Iterable[int]) -> list[str]:
    pieces = []
    for size in sizes:
        pieces.append(text[:size])
        text = text[size:]
    return [*pieces, text]


@pytest.mark.parametrize("first", [f"Hm. {CALL}", '[CALL: add({"a" 1})]'])
@pytest.mark.parametrize("invented", INVENTED)
def test_behind_an_invented_result_nothing_is_shown_kept_or_run(first, invented):
    text = f"{first}{invented}{LATER} It is 7."
    for pieces in ([text], list(text)):
        played = Played(pieces)
        assert played.message["content"].startswith(first)
        for seen in (played.message["content"].removeprefix(first), played.text.removeprefix("Hm. ")):
            assert seen.strip() in ("", "Well.")
        assert played.results == [3] * (CALL in first)
        assert played.closed
        assert played.taken < len(text)  # the model was stopped
        assert ("cut", "invented result") in played.steps


@pytest.mark.parametrize("prose", PROSE)
def test_prose_about_results_stays(prose):
    text = f"{CALL}{prose}{LATER} It is 7."
    for pieces in ([text], list(text)):
        played = Played(pieces)
        assert played.message["content"] == text
        assert played.text == f"{prose} It is 7."
        assert played.results == [3, 7]
        assert "cut" not in dict(played.steps)


def test_what_quotes_a_result_before_any_call_stays():
    text = f"Result of add: 3\n{CALL}"
    assert (Played([text]).text, Played([text]).results) == ("Result of add: 3\n", [3])


def test_the_result_of_a_tool_that_is_not_there_is_an_invented_one_too():
    played = Played([f"[CALL: sum(a=1)]\nWell.\nResult of sum: 3\n{LATER}"])
    assert (played.text, len(played.results)) == ("\nWell.\n", 1)


def test_a_dialect_of_ones_own_says_what_its_results_are(acme):
    text = '<acme>{"name": "add", "arguments": {"a": 1, "b": 2}}</acme>'
    played = Played([f"{text}\n<acme_says>3</acme_says>\n{text}"], dialect=load_dialect(acme(["<acme_says>"])))
    assert (played.message["content"], played.results) == (f"{text}\n", [3])


def said(text: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}}]}


def called(index: int, arguments: str) -> dict[str, Any]:
    piece = {"index": index, "id": f"c{index}", "function": {"name": "add", "arguments": arguments}}
    return {"choices": [{"delta": {"tool_calls": [piece]}}]}


END = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
ONE, TWO = called(0, '{"a": 1, "b": 2}'), called(1, '{"a": 3, "b": 4}')


@pytest.mark.parametrize("invented", INVENTED)
def test_native_calls_behind_an_invented_result_do_not_run_either(invented):
    for pieces in ([invented], list(invented), [invented.rstrip()]):
        told = list(map(said, pieces))
        for chunks in ([said(CALL), *told, TWO, END], [ONE, *told, TWO, END], [ONE, *told, END], [ONE, *told]):
            played = Played(chunks, native=True)
            assert played.results == [3]
            assert played.text.strip() in ("", "Well.")
            assert ("cut", "invented result") in played.steps
    calls = TWO["choices"][0]["delta"]["tool_calls"]
    whole = {"choices": [{"message": {"content": f"{CALL}{invented}", "tool_calls": calls}}]}
    assert Played([whole], native=True).results == [3]


def test_blocks_of_text_between_native_calls_are_read_too():
    def block(index: int, **block: Any) -> list[dict[str, Any]]:
        start = {"type": "content_block_start", "index": index, "content_block": block}
        return [start, {"type": "content_block_stop", "index": index}]

    use = {"type": "tool_use", "id": "t", "name": "add"}
    chunks = [
        *block(0, **use, input={"a": 1, "b": 2}),
        *block(1, type="text", text="\nResult: 3\n"),
        *block(2, **use, input={"a": 3, "b": 4}),
    ]
    assert (Played(chunks, native=True).results, Played(chunks, native=True).text) == ([3], "\n")
    assert Played([ONE, said("\nResult: 3\n"), TWO, END], native=True, mode="native").results == [3, 7]  # text is text


PIECES = st.sampled_from(
    [
        *(CALL, LATER, '[CALL: add({"a" 1})]', "[CALL: sum()]", "`[CALL: x()]`", "[CALL: ad", "\n", "\n\n", " ", "- "),
        *("<think>", "</think>", "<tool_calls>", "</tool_calls>", "```\n", "{\n", '"result": 3}', "Well", "Result"),
        *('<tool_call>{"name": "add", "arguments": {"a": 1, "b": 1}}</tool_call>', "<tool_response>", "x" * 610),
        *(*INVENTED, *PROSE),
    ]
)


@given(st.lists(PIECES, max_size=8).map("".join), st.lists(st.integers(0, 40), max_size=30), st.booleans())
def test_how_a_message_is_cut_changes_nothing(text, sizes, parallel):
    text = f"{CALL}{text}"
    whole = Played([text], parallel=parallel)
    for pieces in (cut(text, sizes), cut(text, [1] * len(text))):
        played = Played(pieces, parallel=parallel)
        assert played.events == whole.events
        assert (played.message, played.steps, played.results) == (whole.message, whole.steps, whole.results)
    kept = whole.message["content"]
    assert text.startswith(kept)
    position = 0
    for event in whole.events:  # they tile what is kept
        if isinstance(event, Call | Malformed | Text):
            assert event.span.start >= position
            position = event.span.end
    assert position <= len(kept)
    if "cut" not in dict(whole.steps) and parallel:
        assert kept == text


@pytest.mark.parametrize("native", [False, True])
def test_one_call_at_a_time_is_one_however_they_come(native):
    text = f"Hm. {CALL} {LATER} So."
    for pieces in ([text], list(text)):
        played = Played(pieces, parallel=False)
        assert (played.message["content"], played.results) == (f"Hm. {CALL}", [3])
    for chunks in ([said("Hm."), ONE, TWO, END], [ONE, said(" So."), {"choices": [*TWO["choices"], *END["choices"]]}]):
        for mode in ("native", "auto"):
            played = Played(chunks, native=True, parallel=False, mode=mode)
            assert played.results == [3]
            assert len(played.message["tool_calls"]) == 1
