"""Our GBNF in llama.cpp's own server: what a model without sense writes under it is read strictly while it streams."""

from __future__ import annotations

import json
import platform
import sys

import httpx
import jsonschema
import pytest
from hypothesis import settings

from callmark import Call, Malformed, Parser, export_grammar
from test_export import EVERYWHERE, NAMES, SCHEMAS, TOOLS
from upstreams import joined, proxied, wire

if (sys.platform, platform.machine()) != ("linux", "x86_64"):  # there `dev` holds it, and not having it is an error
    NOT_TRIED = "NOT TRIED: llama.cpp comes as a wheel for Linux on x86-64 only"
    if settings.get_current_profile_name() == "ci":
        raise RuntimeError(NOT_TRIED)  # .ci/run passes where everything was tried
    pytest.skip(NOT_TRIED, allow_module_level=True)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    from llama import Llama, make_model

    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    make_model(path)
    return Llama(path)


def read(llama, grammar, dialect, seed, most=300):
    """Return the calls that were read from a stream, None where it was cut off before its end, or in a character.

    The server writes U+FFFD for each byte of a character that its end cuts, so that lengths are not to be held to it.
    """
    parser = Parser(dialects=dialect, tools=TOOLS, tolerance="strict", contexts=EVERYWHERE)
    events = []
    ended = ""
    text = ""
    for piece, why in llama.stream(grammar, seed, most):
        text += piece
        events += parser.feed(piece)
        ended = why
    events += parser.finish()
    if ended != "eos" or "\ufffd" in text:
        return None
    assert [event for event in events if isinstance(event, Malformed)] == [], text
    return [event for event in events if isinstance(event, Call)]


@pytest.mark.parametrize("dialect", NAMES)
def test_what_llama_cpp_writes_under_our_grammar_is_read(llama, dialect):
    for parallel, seeds in ((False, 20), (True, 2)):
        grammar = export_grammar(
            TOOLS, dialect, "gbnf", tool_choice="required", free_text=False, parallel=parallel
        ).text
        streams = [read(llama, grammar, dialect, seed) for seed in range(seeds)]
        streams = [calls for calls in streams if calls is not None]
        assert parallel or len(streams) >= seeds // 4
        for calls in streams:
            assert len(calls) == 1 if not parallel else calls
            for call in calls:
                assert list(jsonschema.Draft202012Validator(SCHEMAS[call.name]).iter_errors(call.arguments)) == []


@pytest.mark.parametrize("dialect", NAMES)
def test_free_text_around_calls_holds_no_others(llama, dialect):
    for choice in ("auto", "none"):
        grammar = export_grammar(TOOLS, dialect, "gbnf", tool_choice=choice).text
        for seed in range(2):
            for call in read(llama, grammar, dialect, seed, most=150) or ():
                assert choice == "auto"
                assert call.name in SCHEMAS


@pytest.mark.parametrize("dialect", NAMES)
def test_llama_cpp_takes_what_no_schema_bounds(llama, dialect):
    text, any_value = {"type": "string"}, {}
    rows = {"type": "array", "items": {"type": "object", "properties": {"path": text, "content": text}}}
    tools = {"push": {"type": "object", "properties": {"a": text, "rows": rows, "more": any_value}}}
    for free_text in (False, True):
        grammar = export_grammar(tools, dialect, "gbnf", free_text=free_text).text
        assert list(llama.stream(grammar, seed=1, most=1))


def test_a_broken_grammar_is_refused(llama):
    with pytest.raises(AssertionError, match="failed to parse grammar"):
        list(llama.stream("root ::= nowhere", 0))


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"metric": {"type": "boolean"}},
            "required": ["metric"],
            "additionalProperties": False,
        },
    },
}
CHAT = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Weather?"}],
    "tools": [WEATHER],
    "max_tokens": 300,
    "seed": 1,
}


def test_the_proxy_gives_it_native_tool_calls(llama):
    """A model without sense is taught, held to a call by a grammar where it must call, and read."""
    with proxied(llama.address, mode="text", grammar=True) as proxy, httpx.Client(base_url=proxy, timeout=60) as client:
        assert client.get("/v1/models").json()["data"]
        assert "build_info" in client.get("/props").json()
        whole = client.post(
            "/v1/chat/completions", json={**CHAT, "tool_choice": "required", "parallel_tool_calls": False}
        ).json()
        (choice,) = whole["choices"]
        assert choice["finish_reason"] == "tool_calls"
        for call in choice["message"]["tool_calls"]:
            assert call["function"]["name"] == "weather"
            assert set(json.loads(call["function"]["arguments"])) == {"metric"}
        named = {"type": "function", "function": {"name": "weather"}}
        options = {"tool_choice": named, "stream": True, "stream_options": {"include_usage": True}}
        chunks = wire(client.post("/v1/chat/completions", json={**CHAT, **options}).text)
        made = joined(chunks)[0]
        assert (made["finish_reason"], len(made["tool_calls"])) == ("tool_calls", 1)
        assert chunks[-2]["usage"]["completion_tokens"] > 0
        cut = client.post("/v1/chat/completions", json={**CHAT, "tool_choice": named, "max_tokens": 9}).json()
        assert cut["choices"][0]["finish_reason"] == "length"
        assert "tool_calls" not in cut["choices"][0]["message"]
        refused = client.post("/v1/chat/completions", json={**CHAT, "grammar": "root ::= ("})
        assert refused.status_code >= 400
        assert "error" in refused.json()


def test_the_proxy_asks_it_whether_it_takes_tools(llama):
    with proxied(llama.address) as proxy:
        answer = httpx.post(f"{proxy}/v1/chat/completions", json={**CHAT, "max_tokens": 3}, timeout=60)
        assert answer.status_code == 200
