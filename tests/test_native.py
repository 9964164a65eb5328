"""Native streams: fragments of four APIs, and of servers that bend them, become the events that text gives."""

from __future__ import annotations

from typing import Any

import pytest

from callmark import ArgumentsDelta, Call, CallStart, Malformed, Text, UsageError
from callmark.running.native import Assembler


def openai(*pieces: dict[str, Any], **delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {**delta, "tool_calls": list(pieces)}}]}


def piece(
    index: int | None = None, own_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    made: dict[str, Any] = {"function": {}}
    for key, value in (("index", index), ("id", own_id)):
        if value is not None:
            made[key] = value
    for key, value in (("name", name), ("arguments", arguments)):
        if value is not None:
            made["function"][key] = value
    return made


DONE = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
F, G = ("f", {"a": 1}, "c1"), ("g", {}, "c2")

OPENAI = {
    "as documented": [
        openai(piece(0, "c1", "f", "")), openai(piece(0, arguments='{"a"')), openai(piece(0, arguments=": 1}")),
        openai(piece(1, "c2", "g", "")), DONE,
    ],
    "everything in every fragment": [
        openai(piece(0, "c1", "f", '{"a"')), openai(piece(0, "c1", "f", ": 1}")),
        openai(piece(1, "c2", "g", "{}")), DONE,
    ],
    "no index": [
        openai(piece(None, "c1", "f", '{"a"')), openai(piece(None, arguments=": 1}")),
        openai(piece(None, "c2", "g", "{}")),
    ],
    "every call at index 0": [
        openai(piece(0, "c1", "f", '{"a"')), openai(piece(0, arguments=": 1}")), openai(piece(0, "c2", "g")),
        openai(piece(0, arguments="{}")), DONE,
    ],
    "several in one chunk, from 1": [openai(piece(1, "c1", "f", '{"a": 1}'), piece(2, "c2", "g", "{}")), DONE],
    "interleaved": [
        openai(piece(0, "c1", "f"), piece(1, "c2", "g")), openai(piece(1, arguments="{")),
        openai(piece(0, arguments='{"a"')),
        openai(piece(1, arguments="}")), openai(piece(0, arguments=": 1}")), DONE,
    ],
    "arguments as an object": [openai(piece(0, "c1", "f", {"a": 1})), openai(piece(1, "c2", "g", {})), DONE],
    "name and id late": [
        openai(piece(0, None, None, '{"a"')), openai(piece(0, None, "f", ": 1}")), openai(piece(0, "c1")),
        openai(piece(1, "c2")), openai(piece(1, None, "g")), DONE,
    ],
    "not streamed": [
        {"choices": [{"message": {"tool_calls": [piece(None, "c1", "f", '{"a": 1}'), piece(None, "c2", "g", "{}")]}}]},
    ],
    "no ids and no index": [openai(piece(None, None, "f", '{"a": 1}')), openai(piece(None, None, "g", "{}"))],
}  # fmt: skip

ANTHROPIC = [
    {"type": "message_start", "message": {}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me look."}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
    {"type": "content_block_stop", "index": 2},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
    },
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]
GEMINI = [
    {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}, {"text": "Let me look."}]}}]},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {"a": 1}, "id": "c1"}}]}}]},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": "g", "id": "c2"}}]}, "finishReason": "STOP"}]},
    {"candidates": [{}], "usageMetadata": {}},
]
COHERE = [
    {"type": "message-start", "delta": {"message": {"tool_calls": []}}},
    {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "hm"}}},
    {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Let me look."}}}},
    {
        "type": "tool-call-start", "index": 0,
        "delta": {"message": {"tool_calls": {"id": "c1", "function": {"name": "f", "arguments": ""}}}},
    },
    {
        "type": "tool-call-delta", "index": 0,
        "delta": {"message": {"tool_calls": {"function": {"arguments": '{"a": 1}'}}}},
    },
    {"type": "tool-call-end", "index": 0},
    {
        "type": "tool-call-start", "index": 1,
        "delta": {"message": {"tool_calls": {"id": "c2", "function": {"name": "g"}}}},
    },
    {"type": "tool-call-end", "index": 1},
    {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
]  # fmt: skip
STREAMS = {
    **{f"openai, {name}": chunks for name, chunks in OPENAI.items()},
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "cohere": COHERE,
}


def assembled(chunks: list[dict[str, Any]]) -> tuple[list[Any], Assembler]:
    assembler = Assembler()
    events = [event for chunk in chunks for event in assembler.feed(chunk)]
    return events + assembler.finish(), assembler


@pytest.mark.parametrize("name", STREAMS)
def test_every_server_gives_the_same_calls(name):
    events, assembler = assembled(STREAMS[name])
    calls = [event for event in events if isinstance(event, Call)]
    expected = [F, G] if "no ids" not in name else [(*F[:2], None), (*G[:2], None)]
    assert [(call.name, call.arguments, call.id) for call in calls] == expected
    assert [call.index for call in calls] == [0, 1]
    assert [(event.index, event.name) for event in events if isinstance(event, CallStart)] == [(0, "f"), (1, "g")]
    for call in calls:
        previews = "".join(
            event.json for event in events if isinstance(event, ArgumentsDelta) and event.index == call.index
        )
        assert previews == call.raw_arguments
        assert call.dialect == name.partition(",")[0]
    assert assembler.finish() == []


@pytest.mark.parametrize(("name", "reason"), [("anthropic", "tool_use"), ("gemini", "STOP"), ("cohere", "TOOL_CALL")])
def test_text_and_thoughts_are_told_apart(name, reason):
    events, assembler = assembled(STREAMS[name])
    assert [event for event in events if isinstance(event, str)] == ["Let me look."]
    assert [(event.text, event.channel) for event in events if isinstance(event, Text)] == [("hm", "reasoning")]
    assert assembler.stop_reason == reason


def test_openai_text_comes_with_its_reason_to_stop():
    events, assembler = assembled(
        [openai(content="Hi", reasoning_content="hm"), DONE, {"choices": [{}]}, {"choices": None}]
    )
    assert [event if isinstance(event, str) else event.text for event in events] == ["hm", "Hi"]
    assert assembler.stop_reason == "tool_calls"
    assert assembler.feed({"object": "ping"}) == []
    assert assembler.feed({"type": "ping"}) == []


def test_spans_are_empty_and_where_the_text_is():
    assembler = Assembler()
    assembler.position = 7
    assembler.feed(openai(piece(0, "c1", "f", "{}")))
    (call,) = assembler.finish()
    assert (call.span.start, call.span.end, call.raw) == (7, 7, "")


def test_what_is_no_call_is_malformed():
    for arguments, code in (('{"a":', "bad-arguments"), ("[1]", "bad-arguments"), ("[" * 100_000, "bad-arguments")):
        events, _ = assembled([openai(piece(0, "c1", "f", arguments)), DONE])
        assert isinstance(events[-1], Malformed)
        assert (events[-1].code, events[-1].name) == (code, "f")
    events, _ = assembled([openai(piece(0, "c1", None, "{}")), DONE])
    assert (events[-1].code, events[-1].name) == ("missing-name", None)
    with pytest.raises(UsageError, match="found str"):
        Assembler().feed("data: {}")  # type: ignore[arg-type]


def test_fragments_of_calls_that_never_began_are_left_out():
    stray = {"type": "content_block_delta", "index": 9, "delta": {"partial_json": "{}"}}
    assert (
        assembled([stray, {"type": "content_block_stop", "index": 9}, {"type": "tool-call-end", "index": 9}])[0] == []
    )
