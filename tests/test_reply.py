"""A model's text becomes a message of the chat API, and does so alike however it is cut, streamed or whole."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark import Call, Registry, Session, Text, Tool
from callmark.errors import CallmarkError
from callmark.running.invented import HEADER_LIMIT
from callmark.running.native import Assembler
from callmark.serving.answers import StreamWriter, event, whole
from callmark.serving.chat import handed, taught
from callmark.serving.configuration import ModelSettings
from callmark.serving.reply import BLANKS_LIMIT, Begun
from upstreams import joined, wire

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Does {name}.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
    for name in ("weather", "news")
]
TOOLS.append({"type": "function", "function": {"name": "none"}})
USER = [{"role": "user", "content": "Hi"}]


def exchange(body=None, **settings):
    request = {"model": "m", "messages": USER, "tools": TOOLS, **(body or {})}
    return taught(request, ModelSettings(mode="text", **settings))


encoded = msgspec.json.encode


def chunk(delta, reason=None, index=0, **more):
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return {"id": "up", "created": 5, "model": "m", "choices": [choice], **more}


def streamed(pieces, reason="stop", *, body=None, at_once=1, **settings):
    """Return the chunks that a client gets for a text in pieces, which come some at once."""
    writer = StreamWriter(exchange(body, **settings), 1)
    events = [*(encoded(chunk({"content": piece})) for piece in pieces), encoded(chunk({}, reason)), b"[DONE]"]
    out = [writer.feed(events[at : at + at_once]) for at in range(0, len(events), at_once)]
    return wire(b"".join(out).decode())


def read(text, reason="stop", *, body=None, **settings):
    """Return the message of a whole answer with this text."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
    made = whole({"id": "up", "choices": [choice]}, exchange(body, **settings))["choices"][0]
    calls = [{**call["function"], "id": call["id"]} for call in made["message"].get("tool_calls", ())]
    found = {"content": made["message"]["content"] or "", "tool_calls": calls, "finish_reason": made["finish_reason"]}
    if "reasoning_content" in made["message"]:
        found["reasoning_content"] = made["message"]["reasoning_content"]
    return found


def without_ids(message):
    return {**message, "tool_calls": [(call["name"], call["arguments"]) for call in message["tool_calls"]]}


def seen(text, reason="stop", **options):
    message = without_ids(read(text, reason, **options))
    assert without_ids(joined(streamed([text], reason, **options))[0]) == message
    assert without_ids(joined(streamed(list(text), reason, **options))[0]) == message
    return message["content"], message["tool_calls"], message["finish_reason"]


CALL = '[CALL: weather({"city": "Oslo"})]'
OSLO = ("weather", '{"city":"Oslo"}')

MESSAGES = [
    ("Hello.", ("Hello.", [], "stop")),
    (" two  blanks \n", (" two  blanks \n", [], "stop")),
    (CALL, ("", [OSLO], "tool_calls")),
    (f"Let me look.\n\n{CALL}\n", ("Let me look.", [OSLO], "tool_calls")),
    (f"{CALL}\n[CALL: news]", ("", [OSLO, ("news", "{}")], "tool_calls")),
    (f"Sure! {CALL} then [CALL: news()] done", ("Sure! then done", [OSLO, ("news", "{}")], "tool_calls")),
    (f"{CALL} done\n\nor  so ", ("done\n\nor  so", [OSLO], "tool_calls")),
    ('<tool_call>{"name": "news", "arguments": {}}</tool_call>', ("", [("news", "{}")], "tool_calls")),
    ("[CALL: weather(city='Oslo',)]", ("", [OSLO], "tool_calls")),
    ('[CALL: weather({"city" "Oslo"})] oh', ('[CALL: weather({"city" "Oslo"})] oh', [], "stop")),
    ("[CALL: other()] oh", ("[CALL: other()] oh", [], "stop")),  # the client has no such tool
    *[
        (text, (text, [], "stop"))  # nor is what stands around one lost
        for text in (
            "<|tool_call_start|>[other(city='Paris')]<|tool_call_end|>",
            'So: <tool_calls>\n<tool_call>{"name": "other", "arguments": {}}</tool_call>\n</tool_calls>.',
            "<tool_call>\n<function=weather>\n<parameter=city>",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.other:0<|tool_call_argument_begin|>{}"
            "<|tool_call_end|><|tool_calls_section_end|>",
        )
    ],
    ("<|tool_call_start|>[news()]<|tool_call_end|>", ("", [("news", "{}")], "tool_calls")),
    (f"```\n{CALL}\n```", (f"```\n{CALL}\n```", [], "stop")),
    (f"<think>{CALL}</think>\n\nHi", ("Hi", [], "stop")),
    ("[CALL: none([1, 2])]", ("", [("none", '{"_raw":"[1, 2]"}')], "tool_calls")),
    # What the model invents.
    (f"{CALL}\nResult of weather:\n7 degrees\nIt is 7.", ("", [OSLO], "tool_calls")),
    (f"{CALL}\nResult of weather (c1): 7\n{CALL}", ("", [OSLO], "tool_calls")),
    (f"{CALL} Result of weather:\n7", ("", [OSLO], "tool_calls")),
    (f"Well. {CALL}\n\n<tool_response>\n7\n</tool_response>\nSo 7.", ("Well.", [OSLO], "tool_calls")),
    (f"{CALL}\nSoon.\n[RESULT: 7]\nSeven!", ("Soon.", [OSLO], "tool_calls")),
    (f"{CALL}\n**Tool result:** 7", ("", [OSLO], "tool_calls")),
    (f"{CALL}<|im_end|>\n<|im_start|>user", ("", [OSLO], "tool_calls")),
    (f"{CALL}\nResult of weather: 7 [CALL: news()]", ("", [OSLO], "tool_calls")),
    *[
        (f"{CALL}\n{line}\nSo 7.", ("", [OSLO], "tool_calls"))
        for line in (
            "[Tool result: 7]",
            "[TOOL RESULT] 7",
            "[CALL RESULT: 7]",
            "- Result of weather: 7",
            '"Result of weather: 7"',
            "(Result of weather: 7)",
            "User: Result of weather: 7",
            "**System:** Tool result: 7",
            "Result of `weather`: 7",
            "__Result of weather__: 7",
            "Result of weather : 7",
            "Result of weather\uff1a7",
            "工具 weather 的结果：7",
            "工具結果：7",
            "<|tool_response>response:weather{value:7}<tool_response|>",
            "<start_function_response>response:weather{value:7}<end_function_response>",
            "<｜DSML｜function_results>",
            "]<]minimax[>[<function_results>",
            "```tool_output\n7\n```",
            "## Return of functions.weather:0",
        )
    ],
    *[
        (f"{CALL}{between}{line}\nSo 7.", ("", [OSLO], "tool_calls"))
        for line in (
            "Result: 5",
            "**Result:** 5",
            "Output: 5",
            "Response: 5",
            "Returns: 5",
            "Return value: 5",
            "结果：5",
            "返回: 5",
            "Error: no city",
            '{"result": 5}',
            '{ "tool_result" : 5}',
            "{'status': 'ok'}",
            '[{"output": 5}]',
            '{\n  "result": 5\n}',
            '[\n  {\n    "result": 5',
            '```json\n{"result": 5}\n```',
            '```\n{\n "status": 1',
            "weather: 7",
            "weather(city=Oslo) -> 7",
            "weather => 7",
            "weather returned 7",
            "`weather` result: 7",
            "-> 7",
            "=> 7",
            "→ 7",
            "<result>7</result>",
            "<output>",
            "Tool output: 7",
            "Results for weather: 7",
        )
        for between in ("\n", " ", "\n\n")
    ],
    *[
        (f"{CALL}\n{line}", (line, [OSLO], "tool_calls"))  # what is no result
        for line in (
            "Call results so far: none.",
            "[Results may vary] by day",
            "Tool outputs are listed below:",
            "{",
            "```json\n{",
            "```\n{\n\n",
            '{"city": "Oslo"}',
            '{\n"city": "Oslo"}',
            "Results may vary: wait.",
            "weather it is",
            "I wait.\nResult: none yet",
            'So:\n{"result": 5}',
            "工具调用的结果如下所示: 无",
            "{" * 700 + "\nx",
            "[\n" * 400,
        )
        for line in [line.rstrip()]
    ],
    (f"{CALL}\nUser: thanks", ("User: thanks", [OSLO], "tool_calls")),
    (f"{CALL}\n- The tool results in rain", ("- The tool results in rain", [OSLO], "tool_calls")),
    ("Result of weather:\n7", ("Result of weather:\n7", [], "stop")),  # it quotes one; nothing was called
    (f"{CALL}\nThe result of weather is out.", ("The result of weather is out.", [OSLO], "tool_calls")),
]


@pytest.mark.parametrize(("text", "expected"), MESSAGES)
def test_what_a_text_becomes(text, expected):
    assert seen(text) == expected


@pytest.mark.parametrize("text", [text for text, (_, calls, _) in MESSAGES if calls])
def test_a_session_ends_a_message_where_the_proxy_does(text):
    offered = [Tool(name=each["function"]["name"], function=lambda *_: 1, mode="read") for each in TOOLS]
    session = Session(Registry(offered))

    async def called():
        answers = [text, "Done."]
        return [event async for event in session.run(lambda request: answers.pop(0), "Hi")]

    events = asyncio.run(called())
    content, calls, _ = seen(text)
    assert [event.name for event in events if isinstance(event, Call)] == [name for name, _ in calls]
    shown = "".join(event.text for event in events[: len(events) - 2] if isinstance(event, Text))
    assert "".join(shown.split()) == "".join(content.split())


def test_a_call_that_the_limit_cuts_never_becomes_one():
    for cut in range(1, len(CALL)):
        content, calls, reason = seen(f"Well. {CALL[:cut]}", "length")
        assert (content, calls, reason) == (f"Well. {CALL[:cut]}", [], "length")
    assert seen(f"Well. {CALL}", "length") == ("Well.", [OSLO], "tool_calls")
    assert seen(f"{CALL} and [CALL: new", "length") == ("and [CALL: new", [OSLO], "length")
    assert seen(f"{CALL} and [CALL: news", "content_filter") == ("and [CALL: news", [OSLO], "content_filter")


def test_whatever_ends_a_message_early_is_what_the_client_is_told():
    for reason in ("length", "abort", "error"):
        assert seen(f"{CALL} and", reason) == ("and", [OSLO], reason)
        assert seen(CALL[:-1], reason) == (CALL[:-1], [], reason)
        assert seen(CALL, reason) == ("", [OSLO], "tool_calls")
    assert seen(f"{CALL} and", "eos") == ("and", [OSLO], "tool_calls")


@pytest.mark.parametrize("reason", ["eos", "eos_token", "stop_sequence", "end_turn", "STOP", "COMPLETE", "tool_calls"])
def test_words_of_servers_for_the_end_are_those_that_clients_know(reason):
    """pydantic-ai and typed clients take no other word than OpenAI's."""
    assert seen("Well.", reason) == ("Well.", [], "stop")
    assert seen(CALL, reason) == ("", [OSLO], "tool_calls")
    assert seen("Well.", "MAX_TOKENS") == ("Well.", [], "length")


def test_one_call_at_most_where_the_client_wants_that():
    text = f"{CALL}[CALL: news()] and on and on"
    assert seen(text, body={"parallel_tool_calls": False}) == ("", [OSLO], "tool_calls")
    chunks = streamed([text], body={"parallel_tool_calls": False, "stream_options": {"include_usage": True}})
    assert chunks[-1] == "[DONE]"
    assert chunks[-2]["choices"] == []
    assert chunks[-2]["usage"]["completion_tokens"] == 1  # the upstream was not waited for; this is an estimate


BEFORE = f"Let me  look.\n{CALL} Hm. [CALL: news()] Bye. "


@pytest.mark.parametrize(
    ("policy", "content", "thought"),
    [
        ("stream", "Let me  look. Hm. Bye.", None),
        ("hold", "Let me  look. Hm. Bye.", None),
        ("drop", "Bye.", None),
        ("reasoning", "Bye.", "Let me  look.\nHm."),
    ],
)
def test_what_happens_to_text_before_a_call(policy, content, thought):
    for made in (read(BEFORE, before_calls=policy), joined(streamed(list(BEFORE), before_calls=policy))[0]):
        assert made["content"] == content
        assert made.get("reasoning_content") == thought
        assert len(made["tool_calls"]) == 2
    assert seen(" Just words. ", before_calls=policy) == (" Just words. ", [], "stop")


def test_held_text_comes_when_a_call_is_certain_and_not_before():
    writer = StreamWriter(exchange(before_calls="hold"), 1)
    first = writer.feed([encoded(chunk({"content": "Well. [CALL: news("}))])
    assert b"Well" not in first
    then = wire(writer.feed([encoded(chunk({"content": ")]"}))]).decode())
    assert [list(part["choices"][0]["delta"]) for part in then] == [["content"], ["tool_calls"], ["tool_calls"]]


def test_thinking_goes_where_it_is_wanted():
    text = f"<think>Oslo? {CALL}</think>{CALL}"
    assert seen(text, thinking="content") == (f"<think>Oslo? {CALL}</think>", [OSLO], "tool_calls")
    made = read(text)
    assert (made["content"], made["reasoning_content"]) == ("", f"Oslo? {CALL}")
    made = joined(streamed(list(text)))[0]
    assert (made["content"], made["reasoning_content"]) == ("", f"Oslo? {CALL}")
    options = {"starts_in_reasoning": True, "thinking": "content"}
    assert seen(f"so {CALL}</think>{CALL}", **options) == (f"so {CALL}</think>", [OSLO], "tool_calls")


def test_results_of_a_dialect_of_ones_own_are_cut_off(acme):
    row = acme(["<(?P<who>acme)_says>{ws}", "<(?P<who>acme)_thinks>"])
    text = '<acme>{"name": "weather", "arguments": {"city": "Oslo"}}</acme>\n<acme_says>7</acme_says>'
    assert seen(text, dialect=str(row)) == ("", [OSLO], "tool_calls")
    assert seen(f"{CALL}\n<acme_says>7") == ("<acme_says>7", [OSLO], "tool_calls")
    row.write_text(row.read_text().replace("says>{ws}", "says>("))
    with pytest.raises(CallmarkError, match="results: no valid pattern"):
        ModelSettings(dialect=str(row))


def test_long_lines_and_blanks_are_not_held_for_ever():
    line = "x" * (3 * HEADER_LIMIT)
    blanks = " " * (3 * BLANKS_LIMIT)
    assert seen(f"{CALL}{line}\nResult of weather:") == (line, [OSLO], "tool_calls")
    assert seen(f"a{blanks}b") == (f"a{blanks}b", [], "stop")
    writer = StreamWriter(exchange(), 1)
    writer.feed([encoded(chunk({"content": CALL}))])
    assert line.encode() in writer.feed([encoded(chunk({"content": line}))])
    assert b"zz" in writer.feed([encoded(chunk({"content": "zz"}))])
    assert len(writer.feed([encoded(chunk({"content": blanks}))])) > BLANKS_LIMIT


def test_behind_its_end_a_reader_reads_nothing():
    reader = exchange(body={"parallel_tool_calls": False}).reader()
    assert [part.name for part in reader.feed(CALL) if isinstance(part, Begun)] == ["weather"]
    assert reader.feed(CALL) == []
    assert reader.feed_calls([{"index": 0, "function": {"name": "news"}}]) == []
    assert reader.finish("stop") == ([], "tool_calls")


def test_a_nonce_must_be_there_where_the_settings_say_so():
    request = {"messages": USER, "tools": TOOLS}
    guarded = taught(request, ModelSettings(mode="text", nonce=True), "7f3a")
    assert "7f3a" in json.dumps(guarded.body["messages"])
    choice = {"message": {"content": f'{CALL} [CALL#7f3a: weather({{"city": "Oslo"}})]'}}
    (made,) = whole({"choices": [choice]}, guarded)["choices"]
    assert made["message"]["content"] == CALL
    assert len(made["message"]["tool_calls"]) == 1


# The wire.


def test_the_shape_of_a_stream_is_this():
    chunks = streamed(["Well. ", CALL[:9], CALL[9:]], body={"stream_options": {"include_usage": True}})
    call_id = chunks[2]["choices"][0]["delta"]["tool_calls"][0]["id"]
    assert len(call_id) == 29
    deltas = [
        {"role": "assistant", "content": ""},
        {"content": "Well."},
        {
            "tool_calls": [
                {"index": 0, "id": call_id, "type": "function", "function": {"name": "weather", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":"Oslo"}'}}]},
        {},
    ]
    for number, (found, delta) in enumerate(zip(chunks, deltas, strict=False)):
        reason = "tool_calls" if number == 4 else None
        assert found["choices"] == [{"index": 0, "delta": delta, "finish_reason": reason}]
        assert (found["id"], found["created"], found["model"], found["usage"]) == ("up", 5, "m", None)
    assert chunks[5]["choices"] == []
    usage = chunks[5]["usage"]
    assert usage["prompt_tokens"] > 0 < usage["completion_tokens"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert chunks[6:] == ["[DONE]"]
    assert all("usage" not in found for found in streamed(["Hi"])[:-1])


def fed(*chunks, **options):
    writer = StreamWriter(exchange(**options), 1)
    out = b"".join(writer.feed([each if isinstance(each, bytes) else encoded(each)]) for each in chunks)
    return writer, wire(out.decode())


def test_a_call_for_who_asked_by_functions_is_one_of_the_old_shape():
    body = {"tools": None, "functions": [tool["function"] for tool in TOOLS]}
    _, out = fed(chunk({"content": f"Well. {CALL} {CALL}"}), chunk({}, "stop"), b"[DONE]", body=body)
    assert [(part["choices"][0]["delta"], part["choices"][0]["finish_reason"]) for part in out[:-1]] == [
        ({"role": "assistant", "content": ""}, None),
        ({"content": "Well."}, None),
        ({"function_call": {"name": "weather", "arguments": ""}}, None),
        ({"function_call": {"arguments": '{"city":"Oslo"}'}}, None),
        ({}, "function_call"),
    ]
    choice = {"message": {"content": f"Well. {CALL} {CALL}"}, "finish_reason": "stop"}
    (made,) = whole({"choices": [choice]}, exchange(body))["choices"]
    called = {"name": "weather", "arguments": '{"city":"Oslo"}'}
    assert made == {
        "index": 0,
        "message": {"role": "assistant", "content": "Well.", "function_call": called},
        "finish_reason": "function_call",
    }
    (made,) = whole({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}, exchange(body))["choices"]
    assert made == {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}


def test_events_that_come_together_are_written_together():
    texts = [chunk({"content": piece}) for piece in ("Hel", "lo ", "there")]
    others = [chunk({"content": "Hi"}, index=1), chunk({"content": "!"}, "stop"), chunk({}, "stop", 1)]
    writer = StreamWriter(exchange(body={"n": 2}), 1)
    out = wire(writer.feed([encoded(each) for each in (*texts, *others)] + [b"[DONE]", b"[DONE]"]).decode())
    contents = [part["choices"][0]["delta"].get("content") for part in out[:-1]]
    assert contents == ["", "Hello there", "", "Hi", "!", None, None]
    assert out[-1] == "[DONE]"
    writer = StreamWriter(exchange(body={"parallel_tool_calls": False}), 1)
    out = wire(writer.feed([encoded(chunk({"content": CALL})), encoded(chunk({}, "stop")), b"[DONE]"]).decode())
    assert out.count("[DONE]") == 1


def test_arguments_go_out_as_they_come_where_that_is_wanted():
    pieces = ["Well. [CALL: wea", 'ther({"ci', 'ty": "Os', 'lo"', "}", " )", "]", " Bye"]
    chunks = streamed(pieces, arguments="stream")
    head = chunks[2]["choices"][0]["delta"]["tool_calls"][0]
    assert head["function"] == {"name": "weather", "arguments": ""}
    rest = [each["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] for each in chunks[3:-3]]
    assert len(rest) > 2
    assert rest[-1] == "}"  # with the end of the call, and not before
    assert "".join(rest) == '{"city": "Oslo"}'
    made = joined(chunks)[0]
    assert (made["content"], made["finish_reason"]) == ("Well. Bye", "tool_calls")

    old = {"tools": None, "functions": [tool["function"] for tool in TOOLS]}
    chunks = streamed([CALL[:-2], CALL[-2:]], body=old, arguments="stream")
    assert [each["choices"][0]["delta"] for each in chunks[1:-2]] == [
        {"function_call": {"name": "weather", "arguments": ""}},
        {"function_call": {"arguments": '{"city": "Oslo"'}},
        {"function_call": {"arguments": "}"}},
    ]


@pytest.mark.parametrize("text", [CALL[:-1], CALL[:-2], CALL[:-3], '[CALL: weather({"city": 1, "city": 2})] and more'])
@pytest.mark.parametrize("reason", ["length", "stop", None])
def test_a_call_that_is_out_and_never_complete_fails_the_stream(text, reason):
    """With a reason to finish, of whatever name, some client would run what it has."""
    for number in (1, 2):  # of choices
        body = {"n": number}
        events = [chunk({"content": "Hi"}, index=1), chunk({"content": text})][2 - number :]
        for begun in (events[::-1], events):
            _, out = fed(*begun, chunk({}, reason), b"[DONE]", body=body, arguments="stream")
            assert out[-1]["error"]["code"] == "call_unfinished"
        made = joined(out[:-1])
        assert len(made) == number
        assert made[0]["finish_reason"] is None
        assert value_of(made[0]["tool_calls"][0]["arguments"]) is None


def test_each_choice_has_its_own_reader():
    pieces = [CALL[:8], CALL[8:20], CALL[20:]]
    news = ["He", "l", "lo"]
    chunks = []
    for one, two in zip(pieces, news, strict=True):
        chunks += [chunk({"content": two}, index=1), chunk({"content": one})]
    chunks += [chunk({}, "stop", 0), chunk({}, "length", 1), b"[DONE]"]
    writer, out = fed(*chunks, body={"n": 2})
    messages = joined(out)
    assert without_ids(messages[0]) == {"content": "", "tool_calls": [OSLO], "finish_reason": "tool_calls"}
    assert messages[1] == {"content": "Hello", "tool_calls": [], "finish_reason": "length"}
    assert writer.done


def test_a_choice_that_is_cut_off_does_not_end_the_others():
    body = {"n": 2, "parallel_tool_calls": False}
    writer, out = fed(chunk({"content": f"{CALL} x"}), body=body)
    assert not writer.done  # the other one has not begun
    out += wire(writer.feed([encoded(chunk({"content": "more"}))]).decode())
    out += wire(writer.feed([encoded(chunk({"content": "[CALL: news()]"}, index=1))]).decode())
    assert writer.done
    assert out[-1] == "[DONE]"
    assert [message["finish_reason"] for message in joined(out).values()] == ["tool_calls", "tool_calls"]
    assert writer.feed([b"{}"]) == writer.finish(complete=True) == writer.fail({}) == b""


def test_what_else_an_upstream_says_goes_with_it():
    _, out = fed(
        chunk({"role": "assistant", "content": None, "reasoning_content": "Hm"}),
        chunk({"content": "A"}, system_fingerprint="f"),
        {**chunk({"content": "B"}), "choices": [{"index": 0, "delta": {"content": "B"}, "logprobs": {"content": []}}]},
        {"id": "up", "choices": [], "usage": {"prompt_tokens": 3}},
        chunk({}, "stop", timings={"predicted_ms": 1}),
        b"[DONE]",
        body={"stream_options": {"include_usage": True}},
    )
    assert joined([part for part in out if part == "[DONE]" or "logprobs" not in str(part)])[0] == {
        "content": "AB",
        "reasoning_content": "Hm",
        "tool_calls": [],
        "finish_reason": "stop",
    }
    assert [part["choices"][0]["logprobs"] for part in out if "logprobs" in str(part)] == [{"content": []}]
    assert [part["timings"] for part in out if "timings" in part] == [{"predicted_ms": 1}]
    assert [part["system_fingerprint"] for part in out if "system_fingerprint" in part] == ["f"]
    assert out[-2]["usage"] == {"prompt_tokens": 3}


def test_native_calls_of_an_upstream_count_too():
    head = {"index": 0, "id": "x", "function": {"name": "weather", "arguments": '{"city":'}}
    rest = {"index": 0, "function": {"arguments": '"Oslo"}'}}
    unknown = {"index": 1, "id": "y", "function": {"name": "other", "arguments": "{}"}}
    _, out = fed(
        chunk({"tool_calls": [head]}),
        chunk({"tool_calls": [rest]}),
        chunk({"tool_calls": [unknown]}),
        chunk({"tool_calls": "?"}),
        chunk({"tool_calls": [{"index": [], "function": 5}]}),
        chunk({}, "tool_calls"),
        b"[DONE]",
    )
    other = '{"name":"other","arguments":"{}"}'  # which the client does not have
    assert without_ids(joined(out)[0]) == {"content": other, "tool_calls": [OSLO], "finish_reason": "tool_calls"}
    choice = {"message": {"content": None, "tool_calls": [{**head, "function": {"name": "news"}}]}}
    (made,) = whole({"choices": [choice]}, exchange())["choices"]
    assert made["message"]["tool_calls"][0]["function"] == {"name": "news", "arguments": "{}"}
    assert made["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    "choice",
    [{}, {"message": None}, {"message": "Hi"}, {"text": "Hi"}, {"delta": {"content": f"Hi {CALL}"}}, {"delta": {}}],
    ids=repr,
)
def test_every_choice_of_a_whole_answer_has_a_message_as_it_has_in_a_stream(choice):
    answer = {"choices": [None, choice, 7]}
    (made,) = whole(answer, exchange())["choices"]
    text = StreamWriter(exchange(), 0).feed_whole(answer).decode()
    (shown,) = joined(wire(text)).values()
    assert made["message"]["role"] == "assistant"
    assert made["message"]["content"] == shown["content"]
    assert len(made["message"].get("tool_calls", ())) == len(shown["tool_calls"])
    assert made["finish_reason"] == shown["finish_reason"]


def test_a_native_call_that_is_cut_never_becomes_one():
    """Its header alone says nothing of the arguments: none that came are not `{}` where more were to come.

    What came of it is text, as in what a model writes.
    """
    begun = '{"name":"weather","arguments":""}'
    head = {"index": 0, "id": "x", "function": {"name": "weather", "arguments": ""}}
    for pieces in ([head], [head, {"index": 0, "function": {"arguments": '{"city"'}}]):
        for reason in ("length", "max_tokens"):
            _, out = fed(*(chunk({"tool_calls": [piece]}) for piece in pieces), chunk({}, reason), b"[DONE]")
            made = joined(out)[0]
            assert (made["tool_calls"], made["finish_reason"]) == ([], "length")
            assert json.loads(made["content"]) == {"name": "weather", "arguments": '{"city"' if pieces[1:] else ""}
            native = {"content": None, "tool_calls": [{**head, "function": {"name": "weather"}}]}
            choice = {"message": native, "finish_reason": reason}
            (made,) = whole({"choices": [choice]}, exchange())["choices"]
            assert (made["finish_reason"], "tool_calls" in made["message"]) == ("length", False)
        for last in ({"error": {"message": "out of memory"}}, b"no json"):
            _, out = fed(*(chunk({"tool_calls": [piece]}) for piece in pieces), last)
            assert joined(out[:-1])[0]["tool_calls"] == []
    for reason in ("abort", "error", "no reason that anyone knows", None):  # and [DONE], which says nothing of a call
        _, out = fed(chunk({"tool_calls": [head]}), *([chunk({}, reason)] if reason else []), b"[DONE]")
        assert joined(out)[0] == {"content": begun, "tool_calls": [], "finish_reason": reason or "length"}
    cut = chunk({"tool_calls": [head, {"index": 0, "function": {"arguments": '{"ci'}}]})
    _, out = fed(cut, chunk({}, "stop"), b"[DONE]")
    cut_off = begun.replace('""', json.dumps('{"ci'))
    assert joined(out)[0] == {"content": cut_off, "tool_calls": [], "finish_reason": "length"}
    whole_one = {"index": 0, "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
    _, out = fed(chunk({"tool_calls": [whole_one]}), chunk({}, "length"), b"[DONE]")
    assert without_ids(joined(out)[0]) == {"content": "", "tool_calls": [OSLO], "finish_reason": "tool_calls"}


# What a server calls that was given the tools.

PAY = '{"amount": 1000, "to": "Ünal"}'


def handed_over(*chunks, reason="tool_calls", body=None, **settings):
    """Return what a client gets for chunks of native calls, and the reader's writer."""
    request = {"model": "m", "messages": USER, "tools": TOOLS, **(body or {})}
    writer = StreamWriter(handed(request, ModelSettings(**settings)), 1)
    events = [each if isinstance(each, bytes) else encoded(each) for each in chunks]
    last = [encoded(chunk({}, reason)), b"[DONE]"] if reason else []
    return wire(writer.feed([*events, *last]).decode() + writer.finish(complete=False).decode())


def fragment(arguments, name=None, index=0, own_id=None, **more):
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    head = {"id": own_id, "type": "function"} if own_id else {}
    return chunk({"tool_calls": [{"index": index, **head, "function": function, **more}]})


@pytest.mark.parametrize("arguments", ["whole", "stream"])
@pytest.mark.parametrize("reason", ["length", "stop", None])
def test_a_call_that_a_server_does_not_finish_is_never_one(arguments, reason):
    for cut in range(reason == "stop", len(PAY)):  # none at all are `{}` where the server says that it is done
        out = handed_over(fragment(PAY[:cut], "pay", own_id="c1"), reason=reason, arguments=arguments)
        made = joined([each for each in out if "error" not in each])[0]
        if made["tool_calls"]:
            assert arguments == "stream"  # the header is out: an error ends the stream, and no reason stands before it
            assert (made["finish_reason"], value_of(made["tool_calls"][0]["arguments"])) == (None, None)
            assert out[-1]["error"]["code"] in ("call_unfinished", "upstream_closed")
        else:
            assert made["finish_reason"] == (reason and "length")
    whole_one = handed_over(fragment(PAY, "pay", own_id="c1"), reason="length")
    assert joined(whole_one)[0]["tool_calls"] == [{"id": "c1", "name": "pay", "arguments": PAY}]


WRONG = ['{"city": Oslo}', '{"a": 1, "a": 2}', "[1]", '{"a": "\ud800"}', "[" * 99 + "]" * 99, "{}}"]


@pytest.mark.parametrize("arguments", WRONG)
def test_a_call_of_a_server_that_nobody_can_read_is_text(arguments):
    """As one is that a model writes. It was not cut, so no reason says that it was."""
    broken = {"name": "pay", "arguments": arguments}
    good = {"name": "look", "arguments": "{}"}
    for before, calls in ((None, []), ("Well.", []), ("Well.", [good])):
        listed = [{"id": f"c{number}", "function": each} for number, each in enumerate([*calls, broken])]
        choice = {"message": {"content": before, "tool_calls": listed}, "finish_reason": "tool_calls"}
        request = handed({"model": "m", "messages": USER, "tools": TOOLS}, ModelSettings())
        (made,) = whole({"choices": [choice]}, request)["choices"]
        *said, last = made["message"]["content"].split("\n")
        assert (said, json.loads(last)) == ([before] if before else [], broken)
        assert [call["function"] for call in made["message"].get("tool_calls", ())] == calls
        assert made["finish_reason"] == ("tool_calls" if calls else "stop")
        sent = [fragment(each["arguments"], each["name"], n, f"c{n}") for n, each in enumerate([*calls, broken])]
        sent = [json.dumps(each).encode() for each in [chunk({"content": before}), *sent]]
        for early in ("whole", "stream"):
            out = handed_over(*sent, arguments=early)
            if early == "stream" and not calls:  # its header is out
                assert out[-1]["error"]["code"] == "call_unfinished"
                continue
            streamed_one = joined(out)[0]
            assert streamed_one["content"] == made["message"]["content"]
            assert len(streamed_one["tool_calls"]) == len(calls)
            assert streamed_one["finish_reason"] == made["finish_reason"]


def test_who_wants_no_calls_gets_none_in_the_one_shape():
    """What is written as a call is text then, whole or streamed, and nothing waits for one."""
    none = {"tool_choice": "none"}
    written = f"Well. {CALL}\nResult of weather:\n7"
    assert seen(f"<think>Hm</think>{written}", body=none) == (written, [], "stop")
    assert seen(CALL[:-2], "length", body=none) == (CALL[:-2], [], "length")
    for before in ("hold", "drop", "reasoning"):
        first, said, *_ = streamed(["Well, ", "then"], body=none, before_calls=before)
        assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert said["choices"][0]["delta"] == {"content": "Well,"}
    out = streamed([CALL], body=none, arguments="stream")
    assert without_ids(joined(out)[0]) == {"content": CALL, "tool_calls": [], "finish_reason": "stop"}


def test_who_wants_no_calls_gets_none_of_a_server_that_calls_all_the_same():
    """As Ollama's does, which knows no `tool_choice`."""
    told = json.dumps({"name": "pay", "arguments": PAY}, separators=(",", ":"), ensure_ascii=False)
    sent = [chunk({"content": "Well."}), fragment(PAY, "pay", own_id="c1")]
    old = {"tools": None, "functions": [{"name": "pay"}], "function_call": "none"}
    for body in ({"tool_choice": "none"}, old):
        for arguments in ("whole", "stream"):
            made = joined(handed_over(*sent, body=body, arguments=arguments))[0]
            assert made == {"content": f"Well.\n{told}", "tool_calls": [], "finish_reason": "stop"}


def test_pieces_may_come_as_messages():
    pieces = [{"choices": [{"index": 0, "message": {"content": piece}}]} for piece in ("We", "ll.")]
    assert joined(handed_over(*pieces, reason="stop"))[0]["content"] == "Well."


def test_a_last_chunk_may_have_an_empty_delta_and_a_message():
    """The message says all again, or what no delta said."""
    call = {"id": "c1", "function": {"name": "weather", "arguments": PAY}}
    message = {"role": "assistant", "content": "Well.", "tool_calls": [call]}
    last = {"choices": [{"index": 0, "delta": {}, "message": message, "finish_reason": "tool_calls"}]}
    for said in ([], [chunk({"content": "Well."})], [chunk({"content": "We"}), chunk({"content": "ll."})]):
        for called in ([], [fragment(PAY[:9], "weather", 0, "c1"), fragment(PAY[9:])]):
            made = joined(handed_over(*said, *called, last, b"[DONE]", reason=None))[0]
            assert made["content"] == "Well."
            assert made["tool_calls"] == [{"id": "c1", "name": "weather", "arguments": PAY}]
            assert made["finish_reason"] == "tool_calls"


def test_what_a_server_gives_a_call_stays_with_it():
    """Gemini takes its own calls back with their signature alone; Mistral takes no other ids than its own."""
    sign = {"google": {"thought_signature": "x"}}
    out = handed_over(fragment("{}", "pay", own_id="c1", extra_content=sign), fragment("{}", "pay", 1, "c1"))
    first, second = (out[at]["choices"][0]["delta"]["tool_calls"][0] for at in (1, 3))
    assert (first["id"], first["extra_content"]) == ("c1", sign)
    assert second["id"].startswith("call_")  # an id that is taken is none
    text = handed_over(chunk({"content": f"Well, {CALL} <think>no</think>\n\n"}), reason="stop")
    assert joined(text)[0]["content"] == f"Well, {CALL} <think>no</think>\n\n"  # and its text is none of ours


def test_a_strange_fragment_costs_no_other_one():
    odd = [{"index": "0", "id": [5], "function": {"name": "pay", "arguments": PAY}}, 7, {"function": "look"}]
    (call,) = joined(handed_over(chunk({"tool_calls": odd})))[0]["tool_calls"]
    assert (call["name"], call["arguments"], call["id"][:5]) == ("pay", PAY, "call_")


def test_arguments_of_a_server_go_on_as_they_come_where_that_is_wanted():
    sent = [fragment("", "pay", own_id="c1"), *(fragment(PAY[at : at + 7]) for at in range(0, len(PAY), 7))]
    out = handed_over(*sent, fragment("{}", "look", 1, "c2"), arguments="stream")
    assert len(out) > len(sent)
    made = joined(out)[0]
    assert made["tool_calls"] == [
        {"id": "c1", "name": "pay", "arguments": PAY},
        {"id": "c2", "name": "look", "arguments": "{}"},
    ]
    old = {"tools": None, "functions": [{"name": "pay"}]}
    (head, rest, last) = handed_over(chunk({"function_call": {"name": "pay", "arguments": PAY}}), body=old)[1:4]
    assert head["choices"][0]["delta"] == {"function_call": {"name": "pay", "arguments": ""}}
    assert json.loads(rest["choices"][0]["delta"]["function_call"]["arguments"]) == json.loads(PAY)
    assert last["choices"][0]["finish_reason"] == "function_call"


CALLS = st.lists(st.tuples(st.sampled_from(["pay", "look"]), st.sampled_from(["{}", "", PAY, '{"a": [1, "}"]}'])))
SHAPES = st.sampled_from(["openai", "one index", "whole", "objects", "whole at 0"])


@given(CALLS, SHAPES, st.sampled_from(["tool_calls", "stop", "length"]), st.integers(1, 9), st.booleans())
def test_calls_of_a_server_are_those_of_its_whole_answer(calls, shape, reason, size, eager):
    """In every shape that servers have for them, the shape that comes out is one, and so is the message."""
    listed, sent = [], [chunk({"role": "assistant", "content": None}), chunk({"content": "Hm. "})]
    for number, (name, arguments) in enumerate(calls):
        listed.append({"id": f"c{number}", "function": {"name": name, "arguments": arguments}})
        index = {"openai": number, "one index": 0, "whole at 0": 0}.get(shape)
        if shape in ("openai", "one index"):
            sent.append(fragment("", name, index, f"c{number}"))
            sent += [fragment(arguments[at : at + size], None, index) for at in range(0, len(arguments), size)]
        else:
            told = json.loads(arguments or "{}") if shape == "objects" else arguments
            sent.append(fragment(told, name, index, f"c{number}"))
    choice = {"message": {"content": "Hm. ", "tool_calls": listed}, "finish_reason": reason}
    request = {"model": "m", "messages": USER, "tools": TOOLS}
    (made,) = whole({"choices": [choice]}, handed(request, ModelSettings()))["choices"]
    shown = [(call["id"], call["function"]["name"], call["function"]["arguments"])
             for call in made["message"].get("tool_calls", ())]  # fmt: skip
    expected = [(f"c{number}", name, json.loads(arguments or "{}")) for number, (name, arguments) in enumerate(calls)
                if arguments or reason != "length"]  # fmt: skip
    assert [(own, name, json.loads(arguments)) for own, name, arguments in shown] == expected
    out = handed_over(*sent, reason=reason, arguments="stream" if eager else "whole")
    if shape == "objects" and reason == "length" and len(expected) < len(calls):
        return  # `{}` as an object is no call without arguments that was cut
    if "error" in out[-1]:  # an eager one, whose header was out, has no arguments and was cut
        assert eager
        assert reason == "length"
        return
    streamed_one = joined(out)[0]
    found = [(each["id"], each["name"], json.loads(each["arguments"])) for each in streamed_one["tool_calls"]]
    assert found == expected
    assert streamed_one["finish_reason"] == made["finish_reason"]
    assert streamed_one["content"] == (made["message"]["content"] or "")


ANY_CALLS = st.lists(
    st.tuples(
        st.sampled_from(["weather", "news"]),
        st.sampled_from([*WRONG, "{}", "", PAY, "null", "nul", '{"a"', ' {"b": "\\ud83d\\ude00"} ']),
    ),
    max_size=4,
)
SAID = st.sampled_from(["", "Hm. ", f"Well, {CALL} <think>x</think> ", "\n\n", " a\n"])
SENT = st.fixed_dictionaries({
    "text": SAID, "calls": ANY_CALLS, "reason": st.sampled_from(["tool_calls", "stop", "length", "content_filter"]),
    "before": st.sampled_from(["stream", "hold", "drop", "reasoning"]), "size": st.integers(1, 9),
    "body": st.sampled_from([{}, {"parallel_tool_calls": False}, {"tool_choice": "none"}]),
})  # fmt: skip


@pytest.mark.parametrize("made_of", [handed, taught])
@given(SENT)
def test_whatever_a_server_calls_a_stream_gives_the_message_of_the_whole(made_of, sent):
    text, calls, reason, size = sent["text"], sent["calls"], sent["reason"], sent["size"]
    request = {"model": "m", "messages": USER, "tools": TOOLS, **sent["body"]}
    ready = made_of(request, ModelSettings(before_calls=sent["before"]))
    listed = [{"id": f"c{n}", "function": {"name": each[0], "arguments": each[1]}} for n, each in enumerate(calls)]
    choice = {"message": {"content": text, "tool_calls": listed}, "finish_reason": reason}
    (made,) = whole({"choices": [choice]}, ready)["choices"]
    shown = [call["function"] for call in made["message"].get("tool_calls", ())]
    assert all(isinstance(json.loads(call["arguments"]), dict) for call in shown)
    chunks = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in cut(text, [size]))]
    for number, (name, arguments) in enumerate(calls):
        chunks.append(fragment("", name[:size], number, f"c{number}"))
        chunks += [fragment("", name[size:], number)] if name[size:] else []
        chunks += [fragment(piece, None, number) for piece in cut(arguments, [size])]
    writer = StreamWriter(ready, 1)
    events = [json.dumps(each).encode() for each in [*chunks, chunk({}, reason)]]
    streamed_one = joined(wire((writer.feed(events) + writer.finish(complete=True)).decode()))[0]
    assert streamed_one["content"] == (made["message"]["content"] or "")
    assert streamed_one.get("reasoning_content", "") == made["message"].get("reasoning_content", "")
    assert streamed_one["finish_reason"] == made["finish_reason"]
    found = [(call["name"], call["arguments"]) for call in streamed_one["tool_calls"]]
    assert found == [(call["name"], call["arguments"]) for call in shown]


def test_a_native_call_may_have_an_emoji_that_is_cut_in_two():
    first = {"index": 0, "id": "x", "function": {"name": "weather", "arguments": '{"city":"a\ud83d'}}
    sent = [chunk({"tool_calls": [first]}), fragment('\ude00b"}')]
    for arguments in ("whole", "stream"):
        made = joined(handed_over(*(json.dumps(each).encode() for each in sent), arguments=arguments))[0]
        assert made["tool_calls"] == [{"id": "x", "name": "weather", "arguments": '{"city":"a😀b"}'}]
        assert made["finish_reason"] == "tool_calls"


def test_blanks_between_texts_of_a_server_stay_whenever_its_calls_go_out():
    call = {"index": 0, "id": "x", "function": {"name": "weather", "arguments": "{}"}}
    sent = [chunk({"content": "Let me. "}), chunk({"tool_calls": [call]}), chunk({"content": "There. "})]
    for arguments in ("whole", "stream"):
        assert joined(handed_over(*sent, arguments=arguments))[0]["content"] == "Let me. There."


def test_choices_without_an_index_are_told_apart_in_a_stream_too():
    answer = {"choices": [{"message": {"content": text}, "finish_reason": "stop"} for text in ("One", "Two")]}
    made = joined(wire(StreamWriter(exchange({"n": 2}), 1).feed_whole(answer).decode()))
    assert [made[number]["content"] for number in range(2)] == ["One", "Two"]


def test_a_native_call_of_the_old_shape_counts_too():
    old = {"name": "weather", "arguments": '{"city":"Oslo"}'}
    begun = chunk({"function_call": {**old, "arguments": ""}})
    _, out = fed(begun, chunk({"function_call": old}, "function_call"), b"[DONE]")
    assert without_ids(joined(out)[0]) == {"content": "", "tool_calls": [OSLO], "finish_reason": "tool_calls"}
    choice = {"message": {"content": None, "function_call": old}, "finish_reason": "function_call"}
    (made,) = whole({"choices": [choice]}, exchange())["choices"]
    assert made["message"]["tool_calls"][0]["function"] == old
    assert "function_call" not in made["message"]


@pytest.mark.parametrize("no_reason", ["null", "", None])
def test_a_choice_is_over_when_a_reason_is_said_and_not_before(no_reason):
    """Some servers write null as a word."""
    pieces = [chunk({"content": text}, no_reason) for text in ("Well. ", CALL)]
    _, out = fed(*pieces, chunk({}, "stop"), b"[DONE]")
    made = joined(out)[0]
    assert (made["content"], made["finish_reason"], len(made["tool_calls"])) == ("Well.", "tool_calls", 1)
    assert read("Hi.", no_reason)["finish_reason"] == "stop"


def test_what_comes_behind_a_reason_is_no_less_than_what_came_before_it():
    """Gateways to Gemini say "stop" with every piece. What follows the last one is told beside it."""
    native = {"index": 0, "id": "n1", "function": {"name": "news", "arguments": "{}"}}
    pieces = [{"content": "Well. "}, {"content": CALL}, {"tool_calls": [native]}]
    sent = [chunk(each, "stop", timings=number) for number, each in enumerate(pieces)]
    writer, out = fed(*sent, b"[DONE]")
    assert without_ids(joined(out)[0]) == {
        "content": "Well.",
        "tool_calls": [OSLO, ("news", "{}")],
        "finish_reason": "tool_calls",
    }
    assert out[-2]["timings"] == 2
    for begun in ('[CALL: weather({"city": "Os', CALL[:-1]):  # cut off: that "stop" was said says nothing
        writer, out = fed(chunk({"content": "Well. "}, "stop"), chunk({"content": begun}, "stop"))
        out += wire(writer.finish(complete=False).decode())
        assert joined(out[:-1])[0] == {"content": f"Well. {begun}", "tool_calls": [], "finish_reason": None}
        assert out[-1]["error"]["code"] == "upstream_closed"


def test_a_cut_stays_one_until_more_comes():
    head = {"index": 0, "id": "n1", "function": {"name": "weather", "arguments": ""}}
    for cut in ({"tool_calls": [head]}, {"content": CALL[:-1]}):
        _, out = fed(chunk(cut), chunk({}, "length"), chunk({"role": "assistant", "content": ""}, "stop"), b"[DONE]")
        assert (joined(out)[0]["tool_calls"], joined(out)[0]["finish_reason"]) == ([], "length")
        assembler = Assembler()
        for each in (chunk(cut), chunk({}, "length"), chunk({"role": "assistant", "content": ""}, "stop")):
            assert not any(isinstance(event, Call) for event in assembler.feed(each))
        assert assembler.stop_reason == "length"
    _, out = fed(chunk({"content": CALL[:-1]}, "length"), chunk({"content": "]"}, "stop"), b"[DONE]")
    assert without_ids(joined(out)[0])["tool_calls"] == [OSLO]
    assembler.feed(chunk({"content": "]"}, "stop"))
    assert assembler.stop_reason == "stop"


def test_thinking_behind_a_reason_is_more_than_nothing():
    sent = [chunk({"reasoning_content": piece}, "stop") for piece in ("Os", "lo")]
    writer, _ = fed(*sent)
    assert b"upstream_closed" in writer.finish(complete=False)
    writer, _ = fed(sent[0], chunk({"reasoning_content": "", "content": "", "refusal": None}))
    assert b"upstream_closed" not in writer.finish(complete=False)


def test_an_upstream_that_says_stop_with_every_piece_is_stopped_behind_the_only_call_too():
    writer = StreamWriter(exchange({"parallel_tool_calls": False}), 1)
    for text, done in (("Well. ", False), (CALL, True)):
        assert writer.done is False
        out = wire(writer.feed([encoded(chunk({"content": text}, "stop"))]).decode())
        assert writer.done is done
    assert out[-1] == "[DONE]"


def test_an_error_behind_a_reason_takes_nothing_back():
    call = {"index": 0, "id": "n1", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
    _, out = fed(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"), {"error": {"message": "boom"}})
    assert without_ids(joined(out[:-1])[0]) == {"content": "", "tool_calls": [OSLO], "finish_reason": "tool_calls"}
    assert out[-1] == {"error": {"message": "boom"}}


def test_thinking_among_the_parts_of_content_is_thinking():
    """Mistral's servers send it so, and the answer behind it as a text."""
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "Oslo"}]}, {"type": "thinking"}, 5]
    said = [*thinking, {"type": "text", "text": f"<think>, I guess.</think>Well. {CALL}"}]
    expected = {"content": "Well.", "tool_calls": [OSLO], "finish_reason": "tool_calls"}
    writer = StreamWriter(exchange(), 1)
    first = {"content": thinking, "reasoning_content": "Hm. "}
    events = [chunk(first), chunk({"content": said[3:]}), chunk({}, "stop")]
    streamed = joined(wire(writer.feed([*map(encoded, events), b"[DONE]"]).decode()))[0]
    assert without_ids(streamed) == {**expected, "reasoning_content": "Hm. Oslo, I guess."}
    whole = read(said)
    assert without_ids(whole) == {**expected, "reasoning_content": "Oslo, I guess."}
    assembler = Assembler()
    (thought,), rest = assembler.feed(chunk({"content": thinking}, "null")), assembler.feed(chunk({"content": "Hi"}))
    assert (thought.text, thought.channel, rest) == ("Oslo", "reasoning", ["Hi"])


def test_json_that_only_some_servers_write_is_read():
    """Node's cuts an emoji in two, Python's writes infinities, and some cut a character between two chunks."""
    halves = [b'{"choices":[{"delta":{"content":"a\\ud83d"}}]}', b'{"choices":[{"delta":{"content":"\\ude00b"}}]}']
    bytes_lost = b'{"choices":[{"delta":{"content":"c\xf0\x9f"}}]}'
    infinite = b'{"choices":[{"delta":{"content":"d"},"logprobs":{"content":[{"token":"d","logprob":-Infinity}]}}]}'
    _, out = fed(*halves, bytes_lost, infinite, chunk({}, "stop"), b"[DONE]")
    shown = [part for part in out if part == "[DONE]" or "logprobs" not in str(part)]
    assert joined(shown)[0] == {"content": "a😀bc\ufffdd", "tool_calls": [], "finish_reason": "stop"}
    (logprobs,) = [part["choices"][0]["logprobs"] for part in out if "logprobs" in str(part)]
    assert logprobs["content"] == [{"token": "d", "logprob": None}]
    call = [chunk({"content": '[CALL: weather({"city": "'}), *map(json.loads, halves), chunk({"content": '"})]'})]
    out = wire(StreamWriter(exchange(), 1).feed([json.dumps(each).encode() for each in call] + [b"[DONE]"]).decode())
    assert without_ids(joined(out)[0])["tool_calls"] == [("weather", '{"city":"a😀b"}')]
    _, out = fed(halves[0], chunk({}, "stop"), b"[DONE]")
    assert joined(out)[0]["content"] == "a\ud83d"
    answer = {"choices": [{"message": {"content": "a\ud83d"}, "finish_reason": "stop"}]}
    assert whole(answer, exchange())["choices"][0]["message"]["content"] == "a\ud83d"


@pytest.mark.parametrize("before", ["stream", "hold"])
def test_what_must_be_held_is_bounded(before, monkeypatch):
    monkeypatch.setattr("callmark.serving.answers.HELD_LIMIT", 1000)
    call = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": '{"city": "'}}
    more = {"index": 0, "function": {"arguments": "x" * 100}}
    for events in ([{"tool_calls": [call]}, *[{"tool_calls": [more]}] * 20], [{"content": "x" * 100}] * 20):
        writer = StreamWriter(exchange(before_calls=before), 1)
        out = wire(b"".join(writer.feed([encoded(chunk(each))]) for each in events).decode())
        too_long = before == "hold" or "content" not in events[0]
        assert writer.done == too_long
        if too_long:
            assert out[-1]["error"]["code"] == "upstream_answer_too_long"
        assert "x" * 500 in joined(out[:-1] if too_long else out)[0]["content"]


def test_a_stream_that_ends_early_is_an_error_and_loses_no_text():
    writer, out = fed(chunk({"content": 'Well, [CALL: weather({"ci'}))
    out += wire(writer.finish(complete=False).decode())
    assert out[-1]["error"]["code"] == "upstream_closed"
    assert "[DONE]" not in out
    assert joined(out[:-1])[0]["content"] == 'Well, [CALL: weather({"ci'
    writer, _ = fed()
    assert b"upstream_closed" in writer.finish(complete=False)
    writer, _ = fed(chunk({"content": "All"}, "stop"))
    last, done = wire(writer.finish(complete=False).decode())  # it said why it ends, and forgot the last event
    assert (last["choices"][0]["finish_reason"], done) == ("stop", "[DONE]")
    writer, _ = fed(chunk({"content": "Half"}), chunk({"content": "All"}, "stop", 1))
    assert b"upstream_closed" in writer.finish(complete=False)


def test_errors_of_an_upstream_are_passed_on_and_end_the_stream():
    error = {"error": {"message": "out of memory", "type": "server_error", "code": 500}}
    writer, out = fed(chunk({"content": "Oh [CALL: ne"}), error)
    assert out[-1] == error
    assert joined(out[:-1])[0]["content"] == "Oh [CALL: ne"
    assert writer.done
    for strange in (b"no json", b"[" * 100_000):
        writer, out = fed(strange)
        assert out[-1]["error"]["code"] == "bad_event"
        assert strange[:90].decode() in out[-1]["error"]["message"]
        assert len(out[-1]["error"]["message"]) < 300


def test_strange_events_are_passed_over():
    strange = [b"7", b"null", b"[]", *({"choices": choices} for choices in (None, 5, [3], [{"index": -1, "delta": 4}]))]
    _, out = fed(*strange, chunk({"content": [{"type": "text", "text": "Hi"}, 3]}), chunk({"content": 5}), b"[DONE]")
    assert joined(out)[0] == {"content": "Hi", "tool_calls": [], "finish_reason": "stop"}
    message = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    assert joined(fed(message, b"[DONE]")[1])[0] == {"content": "Hi", "tool_calls": [], "finish_reason": "stop"}


def test_whole_answers_keep_what_they_have():
    odd = {"index": 1, "finish_reason": "stop"}
    message = {"role": "assistant", "content": f"Well. {CALL}", "refusal": None, "reasoning_content": "Hm."}
    answer = {"id": "x", "usage": {"total_tokens": 3}, "choices": [{"index": 0, "message": message}, odd]}
    made = whole(answer, exchange(before_calls="reasoning"))
    assert (made["id"], made["usage"]) == ("x", {"total_tokens": 3})
    assert made["choices"][1] == {**odd, "message": {"role": "assistant", "content": ""}}
    assert made["choices"][0]["message"]["content"] is None
    assert made["choices"][0]["message"]["reasoning_content"] == "Hm.Well."
    assert whole({"choices": None}, exchange())["choices"] == []


def test_what_an_upstream_leaves_out_of_a_whole_answer_is_there_as_in_a_stream():
    """Typed clients refuse an answer without an id, a time, a model, or the number of a choice."""
    bare = [{"message": {"content": text}} for text in (CALL, "Hi")]
    ready = exchange(body={"n": 2})
    made = whole({"choices": bare, "model": None}, ready, created=5)
    assert made["id"].startswith("chatcmpl-")
    assert (made["object"], made["created"], made["model"]) == ("chat.completion", 5, "m")
    assert [choice["index"] for choice in made["choices"]] == [0, 1]
    (first, *_) = wire(StreamWriter(ready, 5).feed_whole({"choices": bare}).decode())
    assert {**made, "object": 0, "choices": 0, "id": 0} == {**first, "object": 0, "choices": 0, "id": 0}
    odd = whole({"choices": bare, "id": 7, "created": "now", "model": "own", "object": "list"}, ready, created=5)
    assert (odd["created"], odd["model"], odd["object"]) == (5, "own", "chat.completion")
    assert odd["id"].startswith("chatcmpl-")


def test_an_upstream_that_does_not_stream_is_written_as_a_stream():
    writer = StreamWriter(exchange(), 1)
    choices = [{"index": 0, "message": {"role": "assistant", "content": f"Hi {CALL}"}, "finish_reason": "stop"}, 4]
    out = wire(writer.feed_whole({"id": "x", "created": 7, "model": "own", "choices": choices}).decode())
    assert {(each["id"], each["created"], each["model"]) for each in out[:-1]} == {("x", 7, "own")}
    assert without_ids(joined(out)[0]) == {"content": "Hi", "tool_calls": [OSLO], "finish_reason": "tool_calls"}
    (told,) = wire(StreamWriter(exchange(), 1).feed_whole({"choices": None}).decode())
    assert told["error"]["code"] == "upstream_closed"  # nothing was answered, which is no empty message
    assert event({"a": "ü"}) == 'data: {"a":"ü"}\n\n'.encode()


# Chunking is invisible.

PIECES = st.sampled_from([
    CALL, "[CALL: news()]", '<tool_call>{"name": "news", "arguments": {"city": "]"}}</tool_call>', "[CALL: news(",
    "[CALL: other()]", "Result of weather:", "Result of news (c1): x", "[RESULT", "<tool_response>", "Observation: 1",
    '[CALL: weather({"city": 1, "city": 2})]', '[CALL: weather("Oslo")]', "[CALL: weather(city=Oslo, x={}) ]",
    "\n", "\n\n", " ", "  \n ", "```", "`", "<think>", "</think>", "word", "Ünï ", "1.", "[", "<", "]", '{"a": ',
    "x" * 650, "<|im_start|>", "<tool_calls>", "</tool_calls>", "[TOOL_CALLS]", "<|tool_calls_section_begin|>",
    '<tool_call>{"name": "other", "arguments": {}}</tool_call>',
    "Result of ", "Result: 5", '"result": 5}', "{", "```json\n", "weather: 7", "{ " * 200,
])  # fmt: skip
TEXTS = st.lists(PIECES, max_size=12).map("".join)
REASONS = st.sampled_from(["stop", "length", None])
OPTIONS = st.fixed_dictionaries({
    "before_calls": st.sampled_from(["stream", "hold", "drop", "reasoning"]),
    "thinking": st.sampled_from(["content", "reasoning"]),
    "body": st.sampled_from([{}, {"parallel_tool_calls": False}, {"tool_choice": "none"}]),
})  # fmt: skip


@given(TEXTS, REASONS, OPTIONS, st.lists(st.integers(1, 9), min_size=1))
def test_a_stream_gives_the_message_of_the_whole(text, reason, options, sizes):
    pieces = cut(text, sizes)
    expected = without_ids(read(text, reason, **options))
    chunks = streamed(pieces, reason, **options)
    assert chunks[-1] == "[DONE]"
    assert without_ids(joined(chunks)[0]) == expected
    assert without_ids(joined(streamed([text], reason, **options))[0]) == expected
    assert without_ids(joined(streamed(pieces, reason, at_once=sizes[0], **options))[0]) == expected
    for name, arguments in expected["tool_calls"]:
        assert name in ("weather", "news", "none")
        assert isinstance(json.loads(arguments), dict)
    assert (expected["finish_reason"] == "tool_calls") <= bool(expected["tool_calls"])
    if not expected["tool_calls"] and options["thinking"] == "content":
        opener = "<|tool_calls_section_begin|>"  # markup, which is dropped where no call follows, and kept with one
        assert expected["content"].replace(opener, "") == text.replace(opener, "")


@given(TEXTS, REASONS, OPTIONS, st.lists(st.integers(1, 9), min_size=1))
def test_arguments_that_go_out_early_are_those_of_the_whole_or_the_stream_fails(text, reason, options, sizes):
    """What no client can run is all but the end of a call, and no end but an error may stand behind that."""
    expected = without_ids(read(text, reason, **options))
    ways = [text], cut(text, sizes), list(text)
    first, *others = (joined_early(streamed(pieces, reason, arguments="stream", **options)) for pieces in ways)
    assert others == [first] * 2
    made, failed = first
    *done, last = made["tool_calls"] or [None]
    if failed:
        assert last[1] is None
        assert done == [(name, json.loads(arguments)) for name, arguments in expected["tool_calls"][: len(done)]]
        assert made["finish_reason"] is None
    else:
        calls = [(name, json.loads(arguments)) for name, arguments in expected["tool_calls"]]
        assert made == {**expected, "tool_calls": calls}


@pytest.mark.parametrize("arguments", ['["x", 1]', '"x"', "7"])
def test_arguments_that_are_no_object_go_out_at_their_end(arguments):
    text = f"[CALL: none({arguments})]"
    expected = without_ids(read(text))
    assert expected["tool_calls"] == [("none", json.dumps({"_raw": arguments}, separators=(",", ":")))]
    assert without_ids(joined(streamed(text, arguments="stream"))[0]) == expected


def joined_early(chunks):
    """Return the message, with arguments as values, None for those that are no JSON; and whether an error ends it."""
    failed = chunks[-1] != "[DONE]"
    if failed:
        assert chunks.pop()["error"]["code"] == "call_unfinished"
    made = without_ids(joined(chunks)[0])
    return {**made, "tool_calls": [(name, value_of(arguments)) for name, arguments in made["tool_calls"]]}, failed


def value_of(arguments):
    try:
        return json.loads(arguments)
    except ValueError:
        return None


def cut(text, sizes):
    pieces, at = [], 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


def test_texts_are_nasty():
    """The property above would say little if its texts were harmless."""
    seen: list[tuple[bool, bool]] = []

    @given(TEXTS)
    def collect(text):
        seen.append((bool(read(text)["tool_calls"]), "result" in text.lower()))

    collect()
    called, results = (sum(column) for column in zip(*seen, strict=True))
    assert called > len(seen) / 20
    assert results > len(seen) / 20
