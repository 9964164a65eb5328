"""The proxy in front of what each kind of server sends, byte for byte: their heads, chunks, last events and errors.

llama.cpp's own server is run by test_llama.py. llama-cpp-python's is written here after a recording of it (0.3.36; it
comes as source alone, some minutes of a compiler); KoboldCpp, Ollama, LM Studio and text-generation-webui are no
packages of a registry, so theirs are written after what they are known to send.
"""

from __future__ import annotations

import json
from contextlib import contextmanager

import httpx
import pytest

from callmark.serving.configuration import make_config
from test_proxy import CALL, STREAM, TOOLS, raw_upstream
from upstreams import joined, served_config, wire

TEXT = f"Let me look.\n{CALL}"
PIECES = [TEXT[at : at + 5] for at in range(0, len(TEXT), 5)]
USAGE = {"prompt_tokens": 64, "completion_tokens": 6, "total_tokens": 70}
NOT_KNOWN = {"koboldcpp", "text-generation-webui before 2024", "llama-cpp-python"}  # the usage, where it is streamed


def events(chunks, end="\n\n", last=("data: [DONE]",)):
    return "".join(each + end for each in (*(f"data: {json.dumps(chunk)}" for chunk in chunks), *last))


def chunks(of, *, first=(), last=None, **choice):
    """Return chunks with the pieces: `of` makes a delta of each; `last` is the delta with the reason to stop."""
    deltas = [*first, *map(of, PIECES)]
    made = [{"index": 0, "delta": delta, **choice, "finish_reason": None} for delta in deltas]
    return [*made, {"index": 0, "delta": {} if last is None else last, **choice, "finish_reason": "stop"}]


def listed(choices, name="chat.completion.chunk", identity="chatcmpl-1", **more):
    return [{"id": identity, "object": name, "created": 17, **more, "choices": [each]} for each in choices]


def spoken(piece):
    return {"role": "assistant", "content": piece}


def message(text=TEXT, **more):
    return {"role": "assistant", "content": text, **more}


KOBOLD = "HTTP/1.0 200 OK\r\nserver: ConcedoLlamaForKoboldServer\r\n"
UVICORN = "HTTP/1.1 200 OK\r\nserver: uvicorn\r\nconnection: close\r\n"
SSE = "content-type: text/event-stream; charset=utf-8\r\n\r\n"
JSON = "content-type: application/json\r\n\r\n"
PING = ": ping - 2024-05-01 10:00:00.000000+00:00\r\n\r\n"
WEBUI = chunks(spoken, last=spoken(""))

STREAMS = {
    "koboldcpp": KOBOLD
    + "connection: keep-alive\r\ncontent-type: text/event-stream\r\n\r\n"
    + events(listed(chunks(spoken, last={"role": "assistant", "content": ""}), identity="koboldcpp")),
    "ollama": UVICORN
    + "content-type: text/event-stream\r\n\r\n"
    + events(
        [
            *listed(
                chunks(spoken, first=[{**spoken(""), "reasoning": "Oslo?"}], last=spoken("")),
                system_fingerprint="fp_ollama",
            ),
            {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 17, "choices": [], "usage": USAGE},
        ]
    ),
    "lm-studio": UVICORN
    + "content-type: text/event-stream\r\n\r\n"
    + events(
        [
            *listed(chunks(spoken, logprobs=None), system_fingerprint="m"),
            {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 17, "choices": [], "usage": USAGE},
        ]
    ),
    "text-generation-webui": UVICORN
    + SSE
    + PING
    + events([*listed(WEBUI[:-1]), {**listed(WEBUI[-1:])[0], "usage": USAGE}], end="\r\n\r\n"),
    "text-generation-webui before 2024": UVICORN
    + SSE
    + PING
    + events(
        listed(({**each, "message": message("")} for each in WEBUI), "chat.completions.chunk"),
        end="\r\n\r\n",
        last=(),
    ),
    "llama-cpp-python": UVICORN
    + "cache-control: no-store\r\n"
    + SSE
    + events(listed(chunks(lambda piece: {"content": piece}, first=[{"role": "assistant"}], logprobs=None))),
}  # fmt: skip


def whole(head, message, choice=None, **more):
    one = {"index": 0, "message": message, "finish_reason": "stop", **(choice or {})}
    return head + JSON + json.dumps({"id": "x", "object": "chat.completion", "choices": [one], **more})


WHOLE = {
    "koboldcpp": whole(KOBOLD, message(tool_calls=[]), {"logprobs": None}, usage=USAGE),
    "ollama": whole(UVICORN, message(reasoning="Oslo?"), system_fingerprint="fp_ollama", usage=USAGE),
    "lm-studio": whole(UVICORN, message(tool_calls=[]), {"logprobs": None}, usage=USAGE, stats={}),
    "text-generation-webui": whole(UVICORN, message(), {"tool_calls": []}, usage=USAGE),
    "llama-cpp-python": whole(UVICORN, message(), {"logprobs": None}, usage=USAGE),
}

ERRORS = [  # of a server: its status, and its body, which the client gets as they are
    ("1.0 503", {"detail": {"msg": "Server is busy; please try again later.", "type": "service_unavailable"}}),
    ("1.1 404", {"error": {"message": 'model "m" not found, try pulling it first', "type": "api_error"}}),
    ("1.1 400", {"error": "No models loaded. Please load a model in the developer page."}),
    ("1.1 422", {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Required"}]}),
    ("1.1 400", {"error": {"message": "maximum context length is 4096", "code": "context_length_exceeded"}}),
]

BREAKS = [  # how a stream goes wrong when it has begun, and what the client is told
    ('event: error\ndata: {"error": {"message": "The model has crashed."}}\n\n', "The model has crashed."),
    ('data: {"error": "Model unloaded."}\n\n', "Model unloaded."),
    ('error: {"code": 500, "message": "context shift is off", "type": "server_error"}\n\n', "context shift is off"),
    ('data: {"detail": "CUDA out of memory"}\r\n\r\n', "CUDA out of memory"),
    ("", "the upstream's stream ended early"),
]


@contextmanager
def answering(answers):
    """Yield a client of a proxy in front of a server that gives these answers, one after the other."""
    rest = iter(answers)
    with raw_upstream(lambda line, over: line.sendall(next(rest).encode())) as address:
        config = make_config({"upstreams": [{"url": f"{address}/v1", "mode": "text"}]})
        with served_config(config) as proxy, httpx.Client(base_url=proxy, timeout=30, trust_env=False) as client:
            yield lambda body: client.post("/v1/chat/completions", json=body)


def test_streams_of_every_server_are_one():
    with answering(STREAMS.values()) as ask:
        for name in STREAMS:
            found = wire(ask({**STREAM, "stream_options": {"include_usage": True}}).text)
            made = joined([chunk for chunk in found if "reasoning'" not in str(chunk)])[0]
            assert (made["content"], made["finish_reason"]) == ("Let me look.", "tool_calls"), name
            ((call),) = made["tool_calls"]
            assert (call["name"], call["arguments"]) == ("weather", '{"city":"Oslo"}')
            assert found[-1] == "[DONE]"
            assert found[-2]["choices"] == []
            usage = found[-2]["usage"]
            assert usage.keys() == USAGE.keys()
            assert (usage == USAGE) == (name not in NOT_KNOWN), name


def test_whole_answers_of_every_server_are_one():
    with answering(WHOLE.values()) as ask:
        for name in WHOLE:
            found = ask({**STREAM, "stream": False}).json()
            made = found["choices"][0]["message"]
            assert (made["content"], found["choices"][0]["finish_reason"]) == ("Let me look.", "tool_calls"), name
            assert [call["function"]["arguments"] for call in made["tool_calls"]] == ['{"city":"Oslo"}']
            assert made.get("reasoning", "Oslo?") == "Oslo?"
            assert found["usage"] == USAGE


@pytest.mark.parametrize("stream", [False, True])
def test_errors_of_every_server_are_its_own(stream):
    with answering(f"HTTP/{line} Oops\r\n{JSON}{json.dumps(body)}" for line, body in ERRORS) as ask:
        for line, body in ERRORS:
            told = ask({**STREAM, "stream": stream})
            assert (line.endswith(str(told.status_code)), told.json()) == (True, body)


def test_streams_that_go_wrong_say_so():
    half = UVICORN + SSE + events(listed(chunks(spoken)[:4]), last=())
    with answering(half + end for end, _ in BREAKS) as ask:
        for _, message in BREAKS:
            *before, last = wire(ask(STREAM).text)
            assert last["error"]["message"] == message
            assert joined(before)[0]["content"].startswith("Let me look.")
            assert joined(before)[0]["tool_calls"] == []


def test_an_answer_that_loaded_a_model_alone_is_passed_on():
    """Ollama's to a request that only loads a model; its reason to stop is nobody else's."""
    answer = whole(UVICORN, message(""), {"finish_reason": "load"})
    with answering([answer]) as ask:
        (choice,) = ask({"model": "m", "messages": STREAM["messages"], "tools": TOOLS}).json()["choices"]
        assert (choice["message"]["content"], choice["finish_reason"]) == ("", "load")
