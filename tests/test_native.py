"""Native streams: fragments of four APIs, and of servers that bend them, become the events that text gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark import ArgumentsDelta, Call, CallStart, Malformed, Span, Text, UsageError
from callmark.reading.decoder import decode
from callmark.running import native
from callmark.running.models import ModelError
from callmark.running.native import Assembler
from callmark.running.partial import PartialArguments


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
    "every call at index 0, names late": [
        openai(piece(0, "c1", None, '{"a"')), openai(piece(0, "c1", None, ": 1}")), openai(piece(0, None, "f")),
        openai(piece(0, "c2", None, "{}")), openai(piece(0, None, "g")), DONE,
    ],
    "every call at index 0, ids first": [
        openai(piece(0, "c1", None, '{"a": 1}')), openai(piece(0, "c2")), openai(piece(0, "c1", "f")),
        openai(piece(0, "c2", "g", "{}")), DONE,
    ],
    "not streamed": [
        {"choices": [{"message": {"tool_calls": [piece(None, "c1", "f", '{"a": 1}'), piece(None, "c2", "g", "{}")]}}]},
    ],
    "no ids and no index": [openai(piece(None, None, "f", '{"a": 1}')), openai(piece(None, None, "g", "{}"))],
    "told again at the end": [
        openai(piece(0, "c1", "f", '{"a"')), openai(piece(0, arguments=": 1}")),
        openai(piece(0, "c1", "f", '{"a": 1}')), openai(piece(1, "c2", "g", "{}")),
        openai(piece(1, "c2", "g", "{}")), DONE,
    ],
    "blanks for no arguments": [
        openai(piece(0, "c1", "f", '{"a": 1}')), openai(piece(1, "c2", "g", " ")), openai(piece(1, arguments="\n")),
        DONE,
    ],
    "null for no arguments": [openai(piece(0, "c1", "f", '{"a": 1}')), openai(piece(1, "c2", "g", "null")), DONE],
    "null in pieces": [
        openai(piece(0, "c1", "f", " ")), openai(piece(0, arguments='{"a": 1}')), openai(piece(1, "c2", "g", "nu")),
        openai(piece(1, arguments="ll ")), DONE,
    ],
    "no function around it": [
        openai({"id": "c1", "name": "f", "arguments": '{"a": 1}'}, {"id": "c2", "name": "g", "arguments": {}}), DONE,
    ],
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


ANTHROPIC_WHOLE = [
    {
        "type": "message", "role": "assistant", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
        ],
    },
]  # fmt: skip
COHERE_WHOLE = [
    {
        "id": "x", "finish_reason": "TOOL_CALL",
        "message": {
            "role": "assistant", "tool_plan": "hm", "content": [{"type": "text", "text": "Let me look."}],
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        },
    },
]  # fmt: skip


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}}]}


def part(path: str | None = None, goes_on: bool = True, **fields: Any) -> dict[str, Any]:
    """A part of a call, with one value where a path is given, as `google.genai.types.FunctionCall` has it."""
    made = {"partialArgs": [{"jsonPath": path, **fields}]} if path else fields
    return {"functionCall": {**made, **({"willContinue": True} if goes_on else {})}}


GEMINI_PARTIAL = [
    GEMINI[0], gemini(part(name="f", id="c1")), gemini(part("$.a", numberValue=1.0)), gemini(part(goes_on=False)),
    gemini(part(name="g", id="c2"), part(goes_on=False)), {"candidates": [{"finishReason": "STOP"}]},
]  # fmt: skip


def function_call(index: int, own_id: str, name: str, arguments: str) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc{index}", "call_id": own_id, "name": name, "arguments": arguments}
    return {"output_index": index, "item": item, "sequence_number": 0}


def responses(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "sequence_number": 0, **fields}


SAID = [
    responses("reasoning_summary_text.delta", delta="hm", item_id="r", output_index=0, summary_index=0),
    responses(
        "output_text.delta", delta="Let me look.", item_id="m", output_index=1, content_index=0, logprobs=[]
    ),
]  # fmt: skip
F_DONE = responses("output_item.done", **function_call(2, "c1", "f", '{"a": 1}'))
G_DONE = responses("output_item.done", **function_call(3, "c2", "g", "{}"))
RESPONSES = {
    "as documented": [
        responses("created", response={}), *SAID,
        responses("output_item.added", **function_call(2, "c1", "f", "")),
        responses("function_call_arguments.delta", delta='{"a"', item_id="fc2", output_index=2),
        responses("function_call_arguments.delta", delta=": 1}", item_id="fc2", output_index=2),
        responses("function_call_arguments.done", arguments='{"a": 1}', name="f", item_id="fc2", output_index=2),
        F_DONE, responses("output_item.added", **function_call(3, "c2", "g", "")), G_DONE,
        responses("completed", response={"status": "completed"}),
    ],
    "items told when they are done, and twice": [*SAID, F_DONE, F_DONE, G_DONE, responses("completed")],
    "cut at the end": [
        *SAID, F_DONE, responses("output_item.added", **function_call(3, "c2", "g", "{}")),
        responses("incomplete", response={"incomplete_details": {"reason": "max_output_tokens"}}),
    ],
    "not streamed": [
        {"object": "response", "status": "completed", "output": [
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "Let me look."}]},
            F_DONE["item"], G_DONE["item"],
        ]},
    ],
}  # fmt: skip
STREAMS = {
    **{f"openai-responses, {name}": chunks for name, chunks in RESPONSES.items()},
    **{f"openai, {name}": chunks for name, chunks in OPENAI.items()},
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "gemini, in parts": GEMINI_PARTIAL,
    "cohere": COHERE,
    "anthropic, not streamed": ANTHROPIC_WHOLE,
    "cohere, not streamed": COHERE_WHOLE,
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


WITHOUT_A_REASON = ("openai, no index", "openai, not streamed", "openai, no ids and no index")


@pytest.mark.parametrize("name", sorted({*STREAMS} - {*WITHOUT_A_REASON}))
def test_calls_are_told_as_soon_as_their_server_says_that_they_are_whole(name):
    assembler = Assembler()
    events = [event for chunk in STREAMS[name] for event in assembler.feed(chunk)]
    assert [event.index for event in events if isinstance(event, Call)] == [0, 1]


def test_a_reason_beside_the_beginning_of_a_call_does_not_end_it():
    """Some servers say one with every piece: what has no arguments yet is no call without any."""
    assembler = Assembler()
    begun = {"index": 0, "id": "c", "function": {"name": "look", "arguments": ""}}
    pieces = [begun, {"index": 0, "function": {"arguments": '{"at": 1}'}}]
    for piece, calls in zip(pieces, ([], [{"at": 1}]), strict=True):
        chunk = {"choices": [{"delta": {"tool_calls": [piece]}, "finish_reason": "stop"}]}
        assert [event.arguments for event in assembler.feed(chunk) if isinstance(event, Call)] == calls
    assert assembler.finish() == []
    assembler.feed({"choices": [{"delta": {"tool_calls": [begun]}, "finish_reason": "stop"}]})
    assert [event.arguments for event in assembler.finish()[-1:] if isinstance(event, Call)] == [{}]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("anthropic", "tool_use"), ("gemini", "STOP"), ("cohere", "TOOL_CALL"), ("gemini, in parts", "STOP"),
        ("anthropic, not streamed", "tool_use"), ("cohere, not streamed", "TOOL_CALL"),
        ("openai-responses, as documented", "completed"), ("openai-responses, cut at the end", "max_output_tokens"),
        ("openai-responses, not streamed", "completed"),
    ],
)  # fmt: skip
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


def test_of_several_answers_the_first_one_is_read():
    said = [
        {"index": index, "delta": {"content": "AB"[index], "tool_calls": [piece(0, f"c{index}", "f", "{}")]}}
        for index in (1, 0)
    ]
    events, _ = assembled([{"choices": said}, {"choices": [{"index": 1, "finish_reason": "stop"}]}])
    assert events[0] == "A"
    assert [event.id for event in events if isinstance(event, Call)] == ["c0"]


def test_of_several_candidates_the_first_one_is_read():
    def said(path: str, **fields: Any) -> dict[str, Any]:
        return {**fields, "content": {"parts": [{"functionCall": {"name": "f", "args": {"at": path}}}]}}

    for first, second in (({"index": 0}, {"index": 1}), ({}, {}), ({}, {"index": 1})):
        candidates = [said("a", **first), said("b", **second)]
        events, _ = assembled([{"candidates": candidates}, {"candidates": [said("c", index=1)]}])
        assert [event.arguments for event in events if isinstance(event, Call)] == [{"at": "a"}]
    events, _ = assembled([{"candidates": [said("b", index=1), said("a", index=0)]}])
    assert [event.arguments for event in events if isinstance(event, Call)] == [{"at": "a"}]


def test_fragments_with_an_id_each_belong_to_the_call_of_their_index():
    fragments = [
        openai(piece(0, "c1", "f", "")), openai(piece(0, "c2", None, '{"a"')), openai(piece(0, "c3", None, ": 1}")),
        openai(piece(2, "c6", "h", '{"a": {}')), openai(piece(2, "c7", None, "}")),
        openai(piece(1, "c4", "g", "")), openai(piece(1, "c5", "", "{}")), DONE,
    ]  # fmt: skip
    events, _ = assembled(fragments)
    calls = [event for event in events if isinstance(event, Call)]
    assert [(call.name, call.arguments, call.id) for call in calls] == [F, ("h", {"a": {}}, "c6"), ("g", {}, "c4")]
    assert not [event for event in events if isinstance(event, Malformed)]


def test_what_means_nothing_changes_no_dialect():
    ping = {"type": "ping"}
    stream = [chunk for chunk in ANTHROPIC if chunk["type"] != "content_block_stop"]
    events, _ = assembled([ping, *(each for chunk in stream for each in (chunk, ping))])
    assert {event.dialect for event in events if isinstance(event, Call)} == {"anthropic"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([("$.a", {"stringValue": "O"}), ("$.a", {"stringValue": "s"})], {"a": "s"}),
        ([("$.a", {"stringValue": "O", "willContinue": True}), ("$.a", {"stringValue": "s"})], {"a": "Os"}),
        ([("$.a", {"stringValue": "O", "willContinue": True}), ("$.b", {"boolValue": False}),
          ("$.a", {"stringValue": "s"})], {"a": "s", "b": False}),
        ([("$.a.b[0].c", {"numberValue": 1.5}), ("$.a.b[1]", {"nullValue": "NULL_VALUE"}),
          ("$.a.b[0].d", {"numberValue": 2.0})], {"a": {"b": [{"c": 1.5, "d": 2}, None]}}),
        ([("$[\"a b\"]['it\\'s']", {"stringValue": "[CALL: x()]"})], {"a b": {"it's": "[CALL: x()]"}}),
        ([("$.a[0][0]", {"boolValue": True}), ("$.a[0][0]", {"boolValue": False})], {"a": [[False]]}),
        ([("$['']", {"stringValue": ""})], {"": ""}),
        ([("$.a", {"stringValue": "x"}), ("$.a.b", {"stringValue": "y"})], None),
        ([("$.a[1]", {"stringValue": "x"})], None),
        ([("$[0]", {"stringValue": "x"})], None),
        ([("$.a", {})], None),
        ([("$", {"stringValue": "x"})], None),
        ([("a", {"stringValue": "x"})], None),
        ([("$..a", {"stringValue": "x"})], None),
        ([("$.a", {"numberValue": float("nan")})], None),
        ([(5, {"stringValue": "x"}), ("$.a", {"stringValue": "x"})], None),
        ([("$" + ".a" * 100_000, {"stringValue": "x"})], None),
    ],
)  # fmt: skip
def test_values_of_a_call_may_come_one_by_one(parts, expected):
    chunks = [gemini(part(path, **fields)) for path, fields in parts]
    events, _ = assembled([gemini(part(name="f")), *chunks, gemini(part(goes_on=False))])
    if expected is None:
        assert isinstance(events[-1], Malformed)
        assert events[-1].name == "f"
        return
    assert json.dumps(events[-1].arguments) == json.dumps(expected)  # 2.0 is written as 2
    snake = [{"functionCall": {"name": "f", "will_continue": True}}]
    for path, fields in parts:
        renamed = {{"willContinue": "will_continue"}.get(key, key.replace("Value", "_value")): value
                   for key, value in fields.items()}  # fmt: skip
        snake.append({"functionCall": {"partial_args": [{"json_path": path, **renamed}], "will_continue": True}})
    assert assembled([gemini(*snake, {"functionCall": {"name": "g"}})])[0][-4].arguments == expected
    values = [{"jsonPath": path, **fields} for path, fields in parts]
    at_once = gemini({"functionCall": {"name": "f", "partialArgs": values}})
    assert assembled([at_once])[0][-1].arguments == expected


def test_arguments_that_are_all_there_are_decoded_once_to_see_it(monkeypatch):
    """Of calls that are all at one index, each fragment asks all before it whether they are."""
    decoded = []
    monkeypatch.setattr(native, "decode", lambda text, nesting: decoded.append(text) or decode(text, nesting))
    events, _ = assembled([openai(piece(0, None, "f", f'{{"n": {number}}}')) for number in range(50)])
    assert [event.arguments["n"] for event in events if isinstance(event, Call)] == list(range(50))
    assert len(decoded) <= 2 * 50


def test_a_text_that_comes_in_many_pieces_is_joined_once():
    class Piece(str):
        def __add__(self, other):
            raise AssertionError("each piece would copy all of those before it")

    arguments = PartialArguments()
    for _ in range(3):
        arguments.add({"jsonPath": "$.a", "stringValue": Piece("xy"), "willContinue": True})
    assert arguments.value == {"a": "xyxyxy"}
    arguments.add({"jsonPath": "$.a", "stringValue": Piece("z")})
    assert arguments.value == {"a": "xyxyxyz"}


OPENAI_BEGUN = openai(piece(0, "c1", "f", ""))
ANTHROPIC_BEGUN = {
    "type": "content_block_start", "index": 0,
    "content_block": {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
}  # fmt: skip
ANTHROPIC_STOP = {"type": "content_block_stop", "index": 0}
COHERE_BEGUN = COHERE[3]
RESPONSES_BEGUN = responses("output_item.added", **function_call(0, "c1", "f", ""))


def ended(reason: str) -> dict[str, Any]:
    return {"choices": [{"delta": {}, "finish_reason": reason}]}


def anthropic_ended(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


def responses_done(status: str) -> dict[str, Any]:
    done = function_call(0, "c1", "f", "")
    return responses("output_item.done", **{**done, "item": {**done["item"], "status": status}})


CUT = {
    "openai, length": [OPENAI_BEGUN, ended("length")],
    "openai, filtered": [OPENAI_BEGUN, ended("content_filter")],
    "openai, connection lost": [OPENAI_BEGUN],
    "openai, not streamed": [
        {"choices": [{"message": {"tool_calls": [piece(0, "c1", "f", "")]}, "finish_reason": "length"}]},
    ],
    "anthropic": [ANTHROPIC_BEGUN, anthropic_ended("max_tokens")],
    "anthropic, block closed": [ANTHROPIC_BEGUN, ANTHROPIC_STOP, anthropic_ended("max_tokens")],
    "anthropic, connection lost": [ANTHROPIC_BEGUN],
    "anthropic, connection lost behind its block": [ANTHROPIC_BEGUN, ANTHROPIC_STOP],
    "anthropic, not streamed": [
        {"type": "message", "stop_reason": "max_tokens", "content": [ANTHROPIC_BEGUN["content_block"]]},
    ],
    "cohere": [COHERE_BEGUN, {"type": "message-end", "delta": {"finish_reason": "MAX_TOKENS"}}],
    "cohere, call ended": [
        COHERE_BEGUN, {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "MAX_TOKENS"}},
    ],
    "cohere, connection lost": [COHERE_BEGUN],
    "cohere, connection lost behind its end": [COHERE_BEGUN, {"type": "tool-call-end", "index": 0}],
    "responses": [
        RESPONSES_BEGUN,
        responses("incomplete", response={"incomplete_details": {"reason": "max_output_tokens"}}),
    ],
    "responses, item done": [RESPONSES_BEGUN, responses_done("incomplete")],
    "responses, connection lost": [RESPONSES_BEGUN],
    "gemini": [
        gemini(part(name="f")), gemini(part("$.a", numberValue=1.0)),
        {"candidates": [{"finishReason": "MAX_TOKENS"}]},
    ],
    "gemini, connection lost": [gemini(part(name="f")), gemini(part("$.a", stringValue="/t", willContinue=True))],
}  # fmt: skip


@pytest.mark.parametrize("end", [[{"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}], []])
@pytest.mark.parametrize("arguments", ['{"a": 1', '{"a": "x', '{"a":', "{", '{"a": 1}'])
def test_what_is_cut_off_in_its_arguments_is_incomplete_and_not_wrong(arguments, end):
    events, _ = assembled([openai(piece(0, "c1", "f", arguments)), *end])
    found = "call" if isinstance(events[-1], Call) else events[-1].code
    assert found == ("call" if arguments.endswith("}") else "unclosed-marker")


@pytest.mark.parametrize("name", CUT)
def test_what_is_cut_off_behind_its_name_is_no_call(name):
    events, _ = assembled(CUT[name])
    assert not [event for event in events if isinstance(event, Call)]
    assert (events[-1].code, events[-1].name) == ("unclosed-marker", "f")


WHOLE = {
    **{
        f"openai, {reason}": [OPENAI_BEGUN, ended(reason)]
        for reason in ("tool_calls", "stop", "function_call", "STOP", "tool_use")
    },
    "anthropic": [ANTHROPIC_BEGUN, ANTHROPIC_STOP, anthropic_ended("tool_use")],
    "anthropic, another block": [
        ANTHROPIC_BEGUN, ANTHROPIC_STOP, {"type": "content_block_start", "index": 1, "content_block": {"type": "text"}},
        anthropic_ended("max_tokens"),
    ],
    "anthropic, in fewer words": [ANTHROPIC_BEGUN, ANTHROPIC_STOP, {"type": "message_stop"}],
    "cohere, another call": [
        COHERE_BEGUN, {"type": "tool-call-end", "index": 0}, {"type": "tool-call-start", "index": 1, "delta": {}},
    ],
    "cohere": [
        COHERE_BEGUN, {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    ],
    "responses, item done": [RESPONSES_BEGUN, responses_done("completed")],
    "responses": [RESPONSES_BEGUN, responses("completed")],
    "gemini": [gemini({"functionCall": {"name": "f"}})],
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_without_arguments_a_call_is_one_where_its_server_says_that_it_is_whole(name):
    events, _ = assembled(WHOLE[name])
    assert [(event.name, event.arguments) for event in events if isinstance(event, Call)] == [("f", {})]
    assert not [event for event in events if isinstance(event, Malformed)]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "c1", "get_", ""), piece(0, None, "wea", ""), piece(0, None, "ther", None)],
        [piece(0, "c1", "get_"), piece(0, None, "get_weather")],  # so far
        [piece(0, "c1", "get_weather", ""), piece(0, None, "get_weather", "")],
    ],
)
@pytest.mark.parametrize("arguments", [[], [piece(0, arguments='{"a"'), piece(0, arguments=": 1}")]])
def test_a_name_may_come_in_pieces(pieces, arguments):
    """Of one index, the first with an id and no other with one: what begins another call has an id, or arguments."""
    another = piece(1, "c2", "look", "")
    for listed in ([*pieces, *arguments, another], [*pieces, another, *arguments]):
        for at_once in (False, True):
            events, _ = assembled([*([openai(*listed)] if at_once else [openai(each) for each in listed]), DONE])
            starts = [event.name for event in events if isinstance(event, CallStart)]
            calls = [(event.name, event.arguments) for event in events if isinstance(event, Call)]
            assert starts == ["get_weather", "look"]
            assert calls == [("get_weather", {"a": 1} if arguments else {}), ("look", {})]


def test_calls_with_one_id_at_indexes_of_their_own_are_two_also_without_arguments():
    pieces = [piece(0, "c1", "f", ""), piece(1, "c1", "g", "{}")]
    for chunks in ([openai(*pieces)], [openai(each) for each in pieces]):
        events, _ = assembled([*chunks, DONE])
        assert [(event.name, event.arguments) for event in events if isinstance(event, Call)] == [("f", {}), ("g", {})]


def test_a_message_beside_an_empty_delta_says_what_no_delta_said():
    call = piece(None, "c1", "f", '{"a": 1}')
    message = {"role": "assistant", "content": "Hi", "reasoning_content": "Hm", "tool_calls": [call]}
    last = {"choices": [{"delta": {}, "message": message, "finish_reason": "tool_calls"}]}
    said = {"choices": [{"delta": {"content": "Hi", "reasoning_content": "Hm"}}]}
    called = openai(piece(0, "c1", "f", '{"a": 1}'))
    for before in ([], [said], [called], [said, called]):
        events, _ = assembled([*before, last])
        assert [event for event in events if isinstance(event, str)] == ["Hi"]
        assert [event.text for event in events if isinstance(event, Text)] == ["Hm"]
        assert [event.name for event in events if isinstance(event, Call)] == ["f"]


def test_a_fragment_may_be_half_a_character():
    pieces = [piece(0, "c1", "f", '{"a": "'), piece(0, arguments="\ud83d"), piece(0, arguments='\ude00"}')]
    events, _ = assembled([*map(openai, pieces), DONE])
    assert [event.json for event in events if isinstance(event, ArgumentsDelta)] == ['{"a": "', '😀"}']
    assert events[-1].arguments == {"a": "😀"}


def test_spans_are_empty_and_where_the_text_is():
    assembler = Assembler()
    assembler.position = 7
    assembler.feed(openai(piece(0, "c1", "f", "{}")))
    (call,) = assembler.finish()
    assert (call.span.start, call.span.end, call.raw) == (7, 7, "")


def test_what_is_no_call_is_malformed():
    for arguments, code in (
        ('{"a":', "bad-arguments"),
        ("nul", "bad-arguments"),
        ("[1]", "bad-arguments"),
        ("[" * 100_000, "nesting-too-deep"),
        ('{"a": 1, "a": 2}', "duplicate-key"),
        ('{"a": {"b": 1, "c": 1, "b": 2}}', "duplicate-key"),
        ('{"a": 1e999}', "bad-arguments"),
        ('{"a": "\\ud800"}', "bad-arguments"),
        ({"a": float("nan")}, "bad-arguments"),
        ({"a": {1, 2}}, "bad-arguments"),
        ({"a": "\ud800"}, "bad-arguments"),
        ([1], "bad-arguments"),
        (7, "bad-arguments"),
    ):
        events, _ = assembled([openai(piece(0, "c1", "f", arguments)), DONE])
        assert isinstance(events[-1], Malformed)
        assert (events[-1].code, events[-1].name) == (code, "f")
    events, _ = assembled([openai(piece(0, "c1", None, "{}")), DONE])
    assert (events[-1].code, events[-1].name) == ("missing-name", None)
    events, _ = assembled([openai(piece(0, "c1", "f", '{"a": ' + "[" * 64 + "]" * 64 + "}")), DONE])
    assert (events[-1].code, events[-1].name) == ("nesting-too-deep", "f")
    events, _ = assembled([openai(piece(0, "c1", "f", '{"a": ' + "[" * 63 + "]" * 63 + "}")), DONE])
    assert isinstance(events[-1], Call)
    with pytest.raises(UsageError, match="found str"):
        Assembler().feed("data: {}")  # type: ignore[arg-type]


FULL = piece(0, None, "f", '{"a": 1}')


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([FULL, piece(0, None, "g", "{}")], ["f", "g"]),
        ([FULL, piece(0, None, "g", ""), piece(0, None, None, '{"b": 2}')], ["f", "g"]),
        ([FULL, piece(0, "", "f", {"a": 2})], ["f", "f"]),
        ([piece(0, None, "f", ""), piece(0, None, "g", "{}")], ["f", "g"]),
        ([piece(0, None, "f", '{"a"'), piece(0, None, "f", ": 1}"), piece(0, None, "f", ""), FULL], [None]),
        ([piece(0, None, "f", '{"a"'), piece(0, None, "g", ": 1}"), piece(0, None, "f", "\n")], ["f"]),
        ([piece(0, None, "f", '{"a"}'), piece(0, None, "f", "{}")], [None]),
        ([piece(0, None, "f", '{"a": 1, "a": 2}'), piece(0, None, "f", "{}")], [None]),
        ([FULL, FULL], [None]),  # two, or one that is told twice: who runs it twice cannot take it back
    ],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_calls_without_ids_may_all_be_at_one_index(pieces, expected, at_once):
    """As Gemini sends parallel calls by OpenAI's API. What could be one or the other is Malformed."""
    events, _ = assembled([*([openai(*pieces)] if at_once else [openai(each) for each in pieces]), DONE])
    over = [event for event in events if isinstance(event, Call | Malformed)]
    assert [event.name if isinstance(event, Call) else None for event in over] == expected
    assert [event.index for event in over] == list(range(len(over)))


def test_calls_that_have_one_id_are_apart_in_a_message_that_is_whole():
    listed = [piece(None, "c", "f", '{"a": 1}'), piece(None, "c", "f", {"a": 2}), piece(None, "c", "f", '{"a'), "x"]
    events, _ = assembled([{"choices": [{"message": {"tool_calls": listed}, "finish_reason": "length"}]}])
    over = [event for event in events if isinstance(event, Call | Malformed)]
    assert [event.arguments if isinstance(event, Call) else event.code for event in over] == [
        {"a": 1}, {"a": 2}, "unclosed-marker",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "more", [{"name": "f"}, {"id": "c{}"}, {"id": "c", "name": "f"}], ids=["name each", "id each", "both, one id"]
)
@pytest.mark.parametrize("size", [1, 4, 7])
def test_arguments_in_fragments_that_say_again_whose_they_are_are_read_once(more, size, monkeypatch):
    """Whether they are all there is asked with each fragment, and many a one ends with a brace."""
    decoded = []

    def counting(text, nesting):
        decoded.append(len(text))
        return decode(text, nesting)

    monkeypatch.setattr(native, "decode", counting)
    value = {"a": [{"b": {'"}{\\"': number}, "c": "}\n\\"} for number in range(100)]}
    text = json.dumps(value)
    own = {key: word for key, word in more.items() if key == "id"}
    chunks = [openai(piece(0, own.get("id"), "f", ""))]
    for at in range(0, len(text), size):
        part = text[at : at + size]
        chunks.append(openai(piece(0, own.get("id", "").format(at) or None, more.get("name"), part)))
    chunks.append(openai(piece(0, "d" if own else None, "f", '{"z": 1}')))
    events, _ = assembled([*chunks, DONE])
    assert [event.arguments for event in events if isinstance(event, Call)] == [value, {"z": 1}]
    assert sum(decoded) <= 4 * len(text)


def test_a_call_that_its_server_could_not_read_is_malformed():
    dropped = {"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}
    begun = [GEMINI_PARTIAL[1], GEMINI_PARTIAL[2]]
    by_openai = {"choices": [{"delta": {}, "finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"}]}
    for chunks, expected in (
        ([dropped], [(Malformed, "bad-arguments", 0)]),
        ([GEMINI[1], dropped], [(Call, None, 0), (Malformed, "bad-arguments", 1)]),
        ([*begun, dropped], [(Malformed, "unclosed-marker", 0)]),
        ([openai(FULL), by_openai], [(Call, None, 0), (Malformed, "bad-arguments", 1)]),
    ):
        events, assembler = assembled(chunks)
        over = [event for event in events if isinstance(event, Call | Malformed)]
        assert [(type(event), getattr(event, "code", None), event.index) for event in over] == expected
        assert assembler.finish() == []


def test_what_the_responses_api_does_not_stream_it_tells_at_the_end():
    """Also a server that copies it, and tells arguments once, or all of the answer."""
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
    full = {**item, "arguments": '{"a": 1}', "status": "completed"}
    text = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
    begun = {"type": "response.output_item.added", "output_index": 0, "item": item}
    told = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a": 1}'}
    done = {"type": "response.output_item.done", "output_index": 0, "item": full}
    over = {"type": "response.completed", "response": {"status": "completed", "output": [full, text]}}
    for chunks, texts in (
        ([over], ["Hi"]),
        ([begun, told, over], ["Hi"]),
        ([begun, told, done, over], ["Hi"]),
        ([begun, done, {"type": "response.output_text.delta", "output_index": 1, "delta": "Hi"}, over], ["Hi"]),
        ([begun, told, {"type": "response.completed", "response": {}}], []),
    ):
        events, assembler = assembled(chunks)
        calls = [(call.name, call.arguments, call.id) for call in events if isinstance(call, Call)]
        assert (calls, [event for event in events if isinstance(event, str)]) == ([("f", {"a": 1}, "c")], texts)
        assert assembler.stop_reason == "completed"


def test_old_and_other_spellings_are_read():
    gemini = {"content": {"parts": [{"function_call": {"name": "f", "args": {"a": "ä"}}}]}, "finish_reason": "STOP"}
    events, assembler = assembled([{"candidates": [gemini]}])
    assert (events[-1].arguments, events[-1].raw_arguments) == ({"a": "ä"}, '{"a":"ä"}')
    assert assembler.stop_reason == "STOP"
    pieces = ({"name": "f", "arguments": ""}, {"arguments": '{"a":'}, {"arguments": " 1}"})
    events, _ = assembled([{"choices": [{"delta": {"function_call": piece}}]} for piece in pieces])
    assert [(event.name, event.arguments) for event in events if isinstance(event, Call)] == [("f", {"a": 1})]
    parts = [{"type": "text", "text": "Hi"}, {"type": "thinking"}, "?"]
    assert assembled([{"choices": [{"delta": {"content": parts}}]}])[0] == ["Hi"]
    thinking = {"type": "content-delta", "delta": {"message": {"content": {"thinking": "hm"}}}}
    assert assembled([thinking])[0] == [Text(Span(0, 0), "hm", "reasoning")]


@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "too much"}},
        {"error": {"message": "too much", "code": 529}},
        {"type": "error", "code": "server_error", "message": "too much"},
        {"type": "response.failed", "response": {"status": "failed", "error": {"message": "too much"}}},
        {"object": "response", "status": "failed", "error": {"message": "too much"}},
        {"error": {"message": object(), "about": "too much"}},
    ],
)
def test_what_a_server_calls_an_error_is_one(chunk):
    with pytest.raises(ModelError, match=r"^the model's server sent an error: .*too much"):
        Assembler().feed(chunk)


WORDS = """
type index delta message content parts text thinking functionCall name args id function arguments item tool_calls
output_index output content_block input partial_json reasoning finish_reason response
partialArgs willContinue jsonPath stringValue tool_plan
"""
KINDS = """
content_block_start content_block_delta content_block_stop message_delta tool-call-start tool-call-end x
response.output_item.added response.output_item.done response.function_call_arguments.delta response.completed
"""
JUNK = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from(["f", "text", "tool_use", "function_call", "{}", "$.a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=4),
    max_leaves=12,
)
# Of these an equal share, as junk is seldom a fragment that can be meant.
FRAGMENTS = st.lists(
    st.fixed_dictionaries(
        {"function": st.fixed_dictionaries({}, optional={"name": st.sampled_from(["f", "g"]), "arguments": JUNK})},
        optional={"index": JUNK, "id": JUNK},
    )
).map(lambda pieces: openai(*pieces))


@given(
    st.lists(
        st.fixed_dictionaries({"choices": st.lists(st.fixed_dictionaries({"delta": JUNK, "finish_reason": JUNK}))})
        | FRAGMENTS
        | st.fixed_dictionaries({"candidates": JUNK})
        | st.fixed_dictionaries({"candidates": st.lists(st.fixed_dictionaries({"content": JUNK}), max_size=2)})
        | st.fixed_dictionaries({"message": JUNK, "finish_reason": JUNK})
        | st.fixed_dictionaries({"type": st.just("message"), "content": JUNK, "stop_reason": JUNK})
        | st.fixed_dictionaries({"object": st.just("response"), "output": JUNK, "incomplete_details": JUNK})
        | st.fixed_dictionaries(
            {"type": st.sampled_from(KINDS.split())},
            optional=dict.fromkeys(("index", "output_index", "delta", "content_block", "item"), JUNK),
        ),
        max_size=4,
    )
)
def test_no_shape_of_a_chunk_is_more_than_wrong(chunks):
    events, assembler = assembled(chunks)
    assert all(isinstance(event, str | CallStart | ArgumentsDelta | Call | Malformed | Text) for event in events)
    assert isinstance(assembler.stop_reason, str)
    begun = [event.index for event in events if isinstance(event, CallStart)]
    ended = [event.index for event in events if isinstance(event, Call | Malformed) and event.name]
    assert sorted(begun) == sorted(ended)


def test_a_stream_may_change_its_api():
    begun = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "f"}}
    events, _ = assembled([begun, openai(piece(0, "b", "g", "{}")), DONE])
    assert [event.name for event in events if isinstance(event, CallStart)] == ["f", "g"]
    assert [event.name for event in events if isinstance(event, Call)] == ["f", "g"]


def test_a_fragment_at_another_index_belongs_to_the_call_of_its_id():
    """As where a server leaves the index out behind the first fragment, or counts on."""
    pieces = [piece(0, "a", "f", '{"n"'), piece(None, "a", None, ": 1"), piece(3, "a", "f", "2}")]
    events, _ = assembled([*map(openai, pieces), DONE])
    assert [(event.name, event.arguments) for event in events if isinstance(event, Call)] == [("f", {"n": 12})]


def test_a_fragment_without_an_id_belongs_to_the_call_that_was_spoken_of_last():
    """Where several have one index, as the next fragment of Gemini's may lack the id."""
    begun = [piece(0, "a", "f", ""), piece(0, "b", "g", "")]
    more = [piece(0, "a", None, '{"n"'), piece(0, None, None, ": 1}"), piece(0, "b", None, '{"n": 2'), piece(0)]
    events, _ = assembled([openai(each) for each in [*begun, *more, piece(0, None, None, "}")]] + [DONE])
    assert [(event.name, event.arguments) for event in events if isinstance(event, Call)] == [
        ("f", {"n": 1}),
        ("g", {"n": 2}),
    ]


def test_fragments_of_calls_that_never_began_are_left_out():
    stray = {"type": "content_block_delta", "index": 9, "delta": {"partial_json": "{}"}}
    assert (
        assembled([stray, {"type": "content_block_stop", "index": 9}, {"type": "tool-call-end", "index": 9}])[0] == []
    )
    stray = responses("function_call_arguments.delta", delta="{}", item_id="x", output_index=9)
    message = responses("output_item.done", output_index=1, item={"type": "message"})
    assert assembled([stray, message, responses("nothing")])[0] == []


# The streams above are what the servers' own clients take them for.


@pytest.mark.parametrize("name", [name for name in STREAMS if "as documented" in name or name == "anthropic"])
def test_documented_streams_are_those_of_the_servers_own_clients(name):
    """Each event is read by the client's own types, and what these say again gives the same calls."""
    from anthropic.types import RawMessageStreamEvent
    from openai.types.chat import ChatCompletionChunk
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    common = {"id": "x", "created": 0, "model": "m", "object": "chat.completion.chunk"}
    message = {
        "id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    response = {
        "id": "r", "created_at": 0, "model": "m", "object": "response", "output": [], "parallel_tool_calls": True,
        "tool_choice": "auto", "tools": [], "status": "completed",
    }  # fmt: skip

    def whole(chunk: dict[str, Any]) -> dict[str, Any]:
        if "choices" in chunk:
            choices = [{"index": 0, "finish_reason": None, **choice} for choice in chunk["choices"]]
            return {**common, "choices": choices}
        if "response" in chunk:
            return {**chunk, "response": {**response, **chunk["response"]}}
        if chunk["type"] == "message_delta":
            delta = {"stop_sequence": None, **chunk["delta"]}
            return {**chunk, "delta": delta, "usage": {"output_tokens": 1}}
        if chunk.get("content_block", {}).get("type") == "thinking":
            return {**chunk, "content_block": {**chunk["content_block"], "signature": ""}}
        return {**chunk, "message": message} if "message" in chunk else chunk

    kinds = {"openai": ChatCompletionChunk, "openai-responses": ResponseStreamEvent}
    adapter = TypeAdapter(kinds.get(name.partition(",")[0], RawMessageStreamEvent))
    again = [adapter.validate_python(whole(chunk)).model_dump(mode="json") for chunk in STREAMS[name]]
    calls = [event for event in assembled(again)[0] if isinstance(event, Call)]
    assert [(call.name, call.arguments, call.id) for call in calls] == [F, G]
