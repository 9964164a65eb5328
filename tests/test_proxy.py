"""The proxy over HTTP: what goes to the upstream, what comes back, and what happens when either side misbehaves."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from click.testing import CliRunner
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from callmark.cli import main
from callmark.running.server_events import EVENT_LIMIT, EventDecoder, EventLimitError
from callmark.serving import proxy as proxies
from callmark.serving import relay as relays
from callmark.serving.chat import taught
from callmark.serving.configuration import Upstream, make_config
from callmark.serving.relay import Relay
from callmark.serving.texts import encoded
from callmark.serving.upstream import (
    PIECES_IN_A_ROW,
    UNSURE_SECONDS,
    UpstreamConnection,
    UpstreamError,
    failure,
    pieces_of,
)
from serving import turns_of_others
from upstreams import Answer, Scripted, joined, proxied, says, served, served_config, wire

CALLMARK = [sys.executable, "-m", "callmark"]
CALL = '[CALL: weather({"city": "Oslo"})]'
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
ASK = {"model": "m", "messages": [{"role": "user", "content": "Oslo?"}], "tools": TOOLS}
STREAM = {**ASK, "stream": True}
PLAIN = {"model": "m", "messages": [{"role": "user", "content": "Hi [CALL: weather()]"}], "stream": True}

WHOLE = json.dumps({
    "id": "x",
    "choices": [{"index": 0, "message": {"content": CALL}, "finish_reason": "stop"}],
}).encode()  # fmt: skip


@contextmanager
def upstream(model=None):
    scripted = Scripted(model or (lambda body: says(f"Well. {CALL}")))
    with served(scripted.app()) as address:
        yield scripted, address


@contextmanager
def client_of(config):
    """Yield a client of a proxy with a configuration, or of one in front of an upstream."""
    table = {"upstreams": [{"url": f"{config}/v1"}]} if isinstance(config, str) else config
    with (
        served_config(make_config(table)) as proxy,
        httpx.Client(base_url=proxy, timeout=30, trust_env=False) as client,
    ):
        yield client


@contextmanager
def chain(model=None, *, routes=(), **options):
    """Yield a scripted upstream and a client of the proxy in front of it."""
    scripted = Scripted(model or (lambda body: says(f"Well. {CALL}")))
    scripted.routes = list(routes)
    with (
        served(scripted.app()) as address,
        client_of({"upstreams": [{"url": f"{address}/v1", **options}]}) as client,
    ):
        yield scripted, client


def post(client, body, path="/v1/chat/completions", **more):
    return client.post(path, json=body, **more)


def message(answer):
    return answer.json()["choices"][0]["message"]


# What is asked and answered.


def test_a_call_in_text_comes_back_native_whole_and_streamed():
    with chain() as (scripted, client):
        whole = post(client, ASK)
        assert whole.status_code == 200
        assert message(whole)["content"] == "Well."
        assert message(whole)["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city":"Oslo"}'}
        assert whole.json()["choices"][0]["finish_reason"] == "tool_calls"
        assert whole.json()["usage"]["total_tokens"] == 12

        streamed = post(client, {**STREAM, "stream_options": {"include_usage": True}}, "/chat/completions")
        assert streamed.headers["content-type"].startswith("text/event-stream")
        assert streamed.headers["cache-control"] == "no-cache"
        chunks = wire(streamed.text)
        made = joined(chunks)[0]
        assert (made["content"], made["finish_reason"]) == ("Well.", "tool_calls")
        assert (made["tool_calls"][0]["name"], made["tool_calls"][0]["arguments"]) == ("weather", '{"city":"Oslo"}')
        assert chunks[-2]["usage"]["total_tokens"] == 12
        assert chunks[-1] == "[DONE]"
        for body in scripted.requests:
            assert "tools" not in body
            assert "[CALL: weather" in body["messages"][0]["content"]


def test_requests_without_tools_go_through_untouched():
    with chain() as (scripted, client):
        answer = post(client, PLAIN)
        assert scripted.requests == [PLAIN]
        assert joined(wire(answer.text))[0]["content"] == f"Well. {CALL}"
        none = post(client, {**ASK, "tool_choice": "none"})
        assert message(none)["content"] == f"Well. {CALL}"
        assert post(client, {**STREAM, "tool_choice": "none"}).text.count("[DONE]") == 1


def test_what_is_no_business_of_ours_is_the_upstreams():
    """Its server may know roles and ways to say nothing that OpenAI's does not."""
    odd = {"model": None, "messages": [{"role": "critic", "content": "Hi"}]}
    with chain() as (scripted, client):
        assert post(client, odd).status_code == 200
        assert scripted.requests == [odd]
    with chain(mode="native") as (scripted, client):
        assert post(client, {**odd, "tools": TOOLS}).status_code == 200
        assert scripted.requests == [{**odd, "tools": TOOLS}]


def test_half_a_character_is_no_mistake_of_the_client():
    """What JavaScript cuts inside an emoji it sends as half of it; a request must not fail for good because of that."""
    raw = json.dumps({**ASK, "messages": [{"role": "user", "content": "cut \ud83d"}]}).encode()
    with chain() as (scripted, client):
        answer = client.post("/v1/chat/completions", content=raw, headers={"content-type": "application/json"})
        assert message(answer)["tool_calls"]
        assert scripted.requests[0]["messages"][-1]["content"] == "cut \ufffd"


def test_a_mark_of_utf_8_may_stand_before_a_request():
    with chain() as (scripted, client):
        raw = b"\xef\xbb\xbf" + json.dumps(ASK).encode()
        assert message(client.post("/v1/chat/completions", content=raw))["tool_calls"]
        raw = b"\xef\xbb\xbf" + json.dumps(PLAIN).encode()
        assert client.post("/v1/chat/completions", content=raw).status_code == 200
        assert scripted.requests[1] == PLAIN


def test_what_callmark_has_at_a_path_is_a_method_of_it():
    with chain() as (scripted, client):
        assert client.get("/health").json()["status"] == "ok"  # of this server; another's own says whether that is up
        assert client.post("/health", content=b"x").status_code == 201
        assert client.get("/parse").status_code == 404
        assert [each[:2] for each in scripted.others] == [("POST", "/health"), ("GET", "/parse")]


def test_everything_else_is_passed_on():
    with chain() as (scripted, client):
        assert client.get("/v1/models").json()["data"][0]["id"] == "text-only"
        made = client.put("/v1/files/a%2Fb?purpose=x%20y", content=b"\x00\xff", headers={"x-mine": "1"})
        assert (made.status_code, made.content, made.headers["x-from"]) == (201, b"\x00\xff", "upstream")
        assert client.post("/api/v1/generate", content=b"{}").status_code == 201
        gone = client.get("/props")
        assert (gone.status_code, gone.json()) == (404, {"error": "nothing here"})
        assert "access-control-allow-origin" not in gone.headers  # who may read it is not the upstream's say
        assert client.head("/v1/models").status_code == 200
        assert client.get("/v1").status_code == 404
        assert scripted.others == [
            ("PUT", "/v1/files/a%2Fb?purpose=x%20y", b"\x00\xff"),
            ("POST", "/api/v1/generate", b"{}"),
            ("GET", "/props", b""),
            ("GET", "/v1", b""),
        ]


def test_an_upstream_elsewhere_than_v1_has_nothing_beside_it():
    scripted = Scripted(lambda body: says("Hi"))
    scripted.routes = [Route("/openai/api/models", scripted.models), Route("/openai/api/x//evil", scripted.models)]
    with served(scripted.app()) as address:
        config = make_config({"upstreams": [{"url": f"{address}/openai/api/"}]})
        with served_config(config) as proxy:
            assert httpx.get(f"{proxy}/v1/models", trust_env=False).json()["data"][0]["id"] == "text-only"
            assert httpx.get(f"{proxy}/v1/x//evil", trust_env=False).status_code == 200
            assert httpx.get(f"{proxy}/props", trust_env=False).json()["error"]["code"] == "not_found"
            for path in (b"/v1/../models", b"/v1/x/../../props", b"/v1/%2E%2e/props", b"/v1/./models", b"/v1/.."):
                url = httpx.URL(proxy)
                with socket.create_connection((url.host, url.port), timeout=20) as line:  # httpx would resolve the dots
                    line.sendall(b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path)
                    assert line.makefile("rb").read().startswith(b"HTTP/1.1 404 "), path
            assert scripted.others == []


def test_several_upstreams_are_one():
    with upstream(lambda body: says("one")) as (first, one), upstream(lambda body: says("two")) as (second, two):
        tables = [
            {"url": f"{one}/v1", "serves": ["a*"]},
            {"url": f"{two}/v1"},
            {"url": f"{two}/v1"},  # whose models are the same, and to which no request goes
            {"url": "http://127.0.0.1:9/v1", "serves": []},
        ]
        with client_of({"upstreams": tables}) as client:
            assert message(post(client, {**ASK, "model": "abc"}))["content"] == "one"
            assert message(post(client, {**ASK, "model": "xyz"}))["content"] == "two"
            assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["text-only"]
            assert post(client, {"model": "xyz"}, "/v1/embeddings").status_code == 201
            assert [target for _, target, _ in second.others if "embed" in target] == ["/v1/embeddings"]
            assert client.post("/v1/odd", content=b"[", headers={"content-type": "application/json"}).content == b"["
            assert post(client, {"model": 5}, "/v1/odd").status_code == 201
            assert [target for _, target, _ in first.others + second.others].count("/v1/odd") == 2
        with served_config(make_config({"upstreams": tables[3:] * 2})) as proxy:
            assert httpx.get(f"{proxy}/v1/models", trust_env=False).status_code == 502


def test_what_has_no_name_is_no_model_of_several_upstreams():
    odd = [{}, {"id": None}, {"id": ["a"]}, {"id": {}}, {"id": 7}, None, "m", {"id": "m"}]
    route = Route("/v1/models", lambda request: JSONResponse({"object": "list", "data": odd}))
    scripted = Scripted(lambda body: says(""))
    scripted.routes = [route]
    with served(scripted.app()) as address, client_of({"upstreams": [{"url": f"{address}/v1"}] * 2}) as client:
        answer = client.get("/v1/models")
        assert (answer.status_code, answer.json()["data"]) == (200, [{"id": "m"}])


def test_an_upstream_that_is_silent_holds_up_no_list_of_models(monkeypatch):
    monkeypatch.setattr(proxies, "LISTING_SECONDS", 0.2)
    with upstream() as (_, one), socket.create_server(("127.0.0.1", 0)) as silent:
        silence = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        tables = [{"url": silence, "serves": ["a*"]}, {"url": f"{one}/v1"}]
        with client_of({"upstreams": tables}) as client:
            assert [model["id"] for model in client.get("/v1/models", timeout=5).json()["data"]] == ["text-only"]
        with client_of({"upstreams": tables[:1] * 2}) as client:
            told = client.get("/v1/models", timeout=5)
            assert (told.status_code, told.json()["error"]["code"]) == (504, "upstream_timeout")


# Modes.


def test_a_server_gets_no_tools_but_those_that_the_settings_offer():
    functions = [tool["function"] for tool in TOOLS]
    with chain(mode="native", tools=["news"]) as (scripted, client):
        two = [*TOOLS, {"type": "function", "function": {"name": "news"}}]
        post(client, {**ASK, "tools": two, "tool_choice": "auto"})
        assert scripted.requests[-1] == {**ASK, "tools": two[-1:], "tool_choice": "auto"}
        post(client, {**ASK, "tool_choice": "auto"})
        assert scripted.requests[-1] == {key: ASK[key] for key in ("model", "messages")}
        post(client, {"messages": ASK["messages"], "functions": [*functions, {"name": "news"}]})
        assert scripted.requests[-1]["functions"] == [{"name": "news"}]


def describing(path, answer, method="GET"):
    async def describe(request):
        return JSONResponse(answer(await request.json()) if method == "POST" else answer)

    return Route(path, describe, methods=[method])


def shown(body):
    return {"capabilities": ["completion", "tools"] if body["model"] == "able" else ["completion"]}


SERVERS = {
    "llama.cpp": [
        describing("/props", {"chat_template_caps": {"supports_tools": True}}),
    ],
    "ollama": [describing("/api/version", {"version": "0.5"}), describing("/api/show", shown, "POST")],
    "lm-studio": [
        describing("/api/v0/models/able", {"object": "model", "capabilities": ["tool_use"]}),
        describing("/api/v0/models/other", {"object": "model", "capabilities": []}),
    ],
}


@pytest.mark.parametrize("name", SERVERS)
def test_auto_is_native_where_the_server_says_that_it_takes_tools(name):
    with chain(routes=SERVERS[name]) as (scripted, client):
        able = {**ASK, "model": "able"}
        assert post(client, able).status_code == 200
        assert scripted.requests[-1] == able
        post(client, {**ASK, "model": "other"})
        assert ("tools" in scripted.requests[-1]) == (name == "llama.cpp")
        old = {"model": "able", "messages": ASK["messages"], "functions": [tool["function"] for tool in TOOLS]}
        assert message(post(client, old))["function_call"]["name"] == "weather"  # servers do not know these
        assert "functions" not in scripted.requests[-1]


OLLAMA = {"choices": [{"index": 0, "delta": {"tool_calls": [
    {"id": "c9", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
    {"function": {"name": "odd", "arguments": {}}},
]}, "finish_reason": None}]}  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "native"])
def test_calls_of_a_server_come_in_the_one_shape_whole_and_streamed(mode):
    def model(body):
        if not body.get("stream"):
            told = {"choices": [{"message": OLLAMA["choices"][0]["delta"], "finish_reason": "stop"}]}
            return Answer([], body=json.dumps(told).encode())
        events = [OLLAMA, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
        told = "".join(f"data: {json.dumps(each)}\n\n" for each in events)
        return Answer([], body=told.encode(), headers={"content-type": "text/event-stream"})

    with chain(model, routes=SERVERS["llama.cpp"], mode=mode) as (scripted, client):
        made = joined(wire(post(client, STREAM).text))[0]
        whole = post(client, ASK).json()["choices"][0]
        assert scripted.requests == [STREAM, ASK]
        assert made["finish_reason"] == whole["finish_reason"] == "tool_calls"
        calls = [{"id": each["id"], **each["function"]} for each in whole["message"]["tool_calls"]]
        assert [(each["name"], each["arguments"]) for each in calls] == [("weather", '{"city":"Oslo"}'), ("odd", "{}")]
        assert calls[0] == made["tool_calls"][0]
        assert calls[0]["id"] == "c9"
        assert calls[1]["id"].startswith("call_")


@pytest.mark.parametrize("name", SERVERS)
def test_modes_that_are_said_ask_nobody(name):
    scripted = Scripted(lambda body: says("Hi"))
    scripted.routes = SERVERS[name]
    with served(scripted.app()) as address:
        for mode in ("text", "native"):
            with proxied(address, mode=mode) as proxy, httpx.Client(base_url=proxy, trust_env=False) as client:
                post(client, {**ASK, "model": "able"})
                assert ("tools" in scripted.requests[-1]) == (mode == "native")


def test_a_server_that_refuses_tools_after_all_gets_text():
    def model(body):
        if "tools" in body:
            return Answer([], status=400, body=b'{"error": "m does not support tools"}')
        return says(CALL)

    with chain(model, routes=SERVERS["llama.cpp"]) as (scripted, client):
        assert message(post(client, ASK))["tool_calls"]
        assert message(post(client, ASK))["tool_calls"]
        assert ["tools" in body for body in scripted.requests] == [True, False, False]
    with chain(lambda _: Answer([], status=400, body=b"too long"), routes=SERVERS["llama.cpp"]) as (_, client):
        refused = post(client, ASK)
        assert (refused.status_code, refused.content) == (400, b"too long")


def test_what_a_server_refuses_of_one_request_says_nothing_of_others():
    """Errors about tools are mostly of their request: a result that answers no call, a choice that is none."""

    def model(body):
        if "tools" in body and body.get("tool_choice") == "required":
            return Answer([], status=400, body=b'{"error": "tool_choice: required is too much to ask"}')
        return says("Hi")

    with chain(model, routes=SERVERS["llama.cpp"]) as (scripted, client):
        post(client, {**ASK, "tool_choice": "required"})
        post(client, ASK)
        assert scripted.requests[-1] == ASK


def test_what_a_server_refuses_and_nobody_can_teach_keeps_the_servers_own_words():
    """The proxy's would be about what it made of the request."""
    told = b'{"error": {"message": "tools[0].function: field required", "type": "theirs", "code": 7}}'
    refusing = lambda body: Answer([], status=422, body=told, headers={"retry-after": "3"})  # noqa: E731
    with chain(refusing, routes=SERVERS["llama.cpp"]) as (scripted, client):
        for body in (
            {**ASK, "tools": [{"type": "function"}]},
            {**ASK, "tool_choice": {"type": "function", "function": {"name": "other"}}},
            {**ASK, "messages": [{"role": "tool", "content": {"no": "text"}}]},
        ):
            for streamed in (False, True):
                answer = post(client, {**body, "stream": streamed})
                assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (422, told, "3")
        assert all("tools" in body for body in scripted.requests)


def test_a_server_that_is_still_loading_is_asked_again():
    ready = False

    async def props(request):
        if not ready:
            return JSONResponse({"error": {"message": "Loading model"}}, 503)
        return JSONResponse({"chat_template_caps": {"supports_tools": True}})

    scripted = Scripted(lambda body: says("Hi"))
    scripted.routes = [Route("/props", props)]
    with served(scripted.app()) as address:
        now = 0.0
        connection = UpstreamConnection(Upstream(url=f"{address}/v1"), clock=lambda: now)

        async def asked():
            nonlocal ready, now
            found = [await connection.takes_tools("m")]
            ready = True
            found.append(await connection.takes_tools("m"))  # asked a moment ago
            now += UNSURE_SECONDS
            found.append(await connection.takes_tools("m"))
            await connection.close()
            return found

        assert asyncio.run(asked()) == [False, False, True]


def test_a_server_whose_pages_are_no_json_says_nothing_of_itself():
    async def page(request):
        return HTMLResponse("<p>I take tools.")

    with chain(lambda _: says("Hi"), routes=[Route("/{path:path}", page, methods=["GET"])]) as (scripted, client):
        assert post(client, ASK).status_code == 200
        assert "tools" not in scripted.requests[-1]


def test_a_server_that_nobody_reaches_is_asked_again():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        now = 0.0

        async def asked():
            nonlocal now
            connection = UpstreamConnection(Upstream(url=address), clock=lambda: now)
            requests = []
            request = connection.request
            connection.request = lambda *given: requests.append(given) or request(*given)
            found = []
            for seconds in (0.0, 1.0, UNSURE_SECONDS):
                now += seconds
                found.append((await connection.takes_tools("m"), len(requests)))
            await connection.close()
            return found

        (first, asked_first), (soon, asked_soon), (late, asked_late) = asyncio.run(asked())
        assert (first, soon, late) == (False, False, False)
        assert 0 < asked_first == asked_soon < asked_late


def test_a_server_is_asked_about_itself_with_the_key_of_the_client():
    async def props(request):
        able = request.headers.get("authorization") == "Bearer k"
        return JSONResponse({"chat_template_caps": {"supports_tools": True}} if able else {}, 200 if able else 401)

    with chain(routes=[Route("/props", props)]) as (scripted, client):
        post(client, ASK)
        assert "tools" not in scripted.requests[-1]
        post(client, {**ASK, "model": "n"}, headers={"authorization": "Bearer k"})
        assert "tools" in scripted.requests[-1]


def test_a_server_that_says_nonsense_of_itself_gets_text():
    scripted = Scripted(lambda body: says(CALL))
    nonsense = [describing("/props", [1]), describing("/api/version", {"version": "1"})]
    scripted.routes = [*nonsense, describing("/api/show", lambda body: {"capabilities": 3}, "POST")]
    with served(scripted.app()) as address, proxied(address) as proxy:
        assert message(httpx.post(f"{proxy}/v1/chat/completions", json=ASK, trust_env=False))["tool_calls"]


def test_a_server_that_hangs_up_when_it_is_asked_about_itself_is_left_alone_for_a_while():
    now = 0.0
    with raw_upstream(lambda *_: None) as address:
        connection = UpstreamConnection(Upstream(url=f"{address}/v1"), clock=lambda: now)

        async def ask():
            return await connection.takes_tools("m")

        assert not asyncio.run(ask())
        assert connection._takes_tools["m"] == (False, UNSURE_SECONDS)


def test_what_is_known_of_models_is_bounded():
    connection = UpstreamConnection(Upstream(url="http://127.0.0.1:9/elsewhere"))
    for number in range(1000):
        connection.learn(f"m{number}", True)
    assert asyncio.run(connection.takes_tools("m999"))
    assert not asyncio.run(connection.takes_tools("m0"))  # forgotten; and nobody can be asked beside this API
    asyncio.run(connection.close())


# Refused requests.


def test_what_is_no_request_gets_400_in_the_shape_of_openai():
    with chain(mode="text") as (scripted, client):
        for content in (b"", b"{", b"[]", b"\xff", b'{"messages": 5}', b"[" * 100_000):
            answer = client.post("/v1/chat/completions", content=content)
            assert answer.status_code == 400, content[:9]
            assert answer.json()["error"]["type"] == "invalid_request_error"
            missing = "none came" in answer.json()["error"]["message"]
            assert missing == (content == b"")
        answer = post(client, {**ASK, "tool_choice": "sometimes"})
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "tool_choice"
        assert scripted.requests == []


def test_others_are_answered_while_what_neutralizing_needs_first_is_compiled(preparation):
    with chain() as (_, client), ThreadPoolExecutor(4) as clients:
        asked = [clients.submit(post, client, ASK) for _ in range(4)]
        assert preparation.begun.wait(30)
        assert post(client, PLAIN).status_code == 200
        assert not any(each.done() for each in asked)
        preparation.may_end.set()
        assert all(message(each.result())["tool_calls"] for each in asked)
    assert preparation.done == [False, True]


@pytest.mark.parametrize(("turns", "apart"), [(1, False), (500, True)])
def test_a_long_conversation_is_written_while_others_are_answered(turns, apart, monkeypatch):
    """In a thread, and one at a time: of many threads each would take the loop as much time as the loop has."""
    threads, most, now = [], 0, 0

    def watched(*given):
        nonlocal most, now
        threads.append(threading.current_thread())
        now += 1
        most = max(most, now)
        time.sleep(0.01)
        try:
            return taught(*given)
        finally:
            now -= 1

    with chain() as (_, client), ThreadPoolExecutor(4) as clients:
        monkeypatch.setattr(proxies, "taught", watched)
        turn = [{"role": "assistant", "content": "x" * 100}, *ASK["messages"]]
        asked = [clients.submit(post, client, {**ASK, "messages": turn * turns}) for _ in range(4)]
        assert all(message(each.result())["tool_calls"] for each in asked)
    assert all(("AnyIO" in thread.name) == apart for thread in threads)
    assert (len(threads), most) == (4, 1)


def test_a_schema_that_is_too_deep_is_no_mistake_of_ours(monkeypatch):
    def too_deep(*_):
        raise RecursionError

    with chain() as (_, client):
        monkeypatch.setattr("callmark.serving.proxy.taught", too_deep)
        answer = post(client, ASK)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_more_than_the_limit_gets_413():
    with upstream() as (scripted, address):
        config = make_config({"upstreams": [{"url": f"{address}/v1"}]})
        with served_config(config, body_bytes=1000) as proxy, httpx.Client(base_url=proxy, trust_env=False) as client:
            for path in ("/v1/chat/completions", "/v1/embeddings"):
                assert client.post(path, content=b"x" * 1001).status_code == 413
                chunks = (b"x" * 600 for _ in range(2))
                assert client.post(path, content=chunks).status_code == 413
        assert scripted.requests == []


def test_a_client_that_vanishes_while_it_asks_is_no_trouble():
    with chain() as (scripted, client):
        for path in ("/v1/chat/completions", "/v1/embeddings"):
            with socket.create_connection((client.base_url.host, client.base_url.port), 20) as line:
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{"
                line.sendall(head.encode())
        assert post(client, ASK).status_code == 200
        assert len(scripted.requests) == 1


def test_pages_of_other_origins_and_names_reach_nothing():
    with chain() as (scripted, client):
        for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
            for path in ("/v1/chat/completions", "/v1/models", "/api/tags"):
                assert client.post(path, json=ASK, headers=headers).status_code in (403, 421)
        assert scripted.requests == scripted.others == []


# Errors of upstreams.


def test_errors_keep_status_body_and_when_to_come_again():
    body = b'{"error": {"message": "slow down", "type": "rate_limit"}}'
    answer = Answer([], status=429, body=body, headers={"retry-after": "7", "x-ratelimit-remaining": "0"})
    with chain(lambda _: answer) as (_, client):
        for request in (ASK, STREAM, PLAIN):
            told = post(client, request)
            assert (told.status_code, told.content) == (429, body)
            assert (told.headers["retry-after"], told.headers["x-ratelimit-remaining"]) == ("7", "0")
            assert told.headers["content-type"] == "application/json"
    with chain(lambda _: Answer([], status=503, body=b"<html>", headers={"content-type": "text/html"})) as (_, client):
        told = post(client, STREAM)
        assert (told.status_code, told.content, told.headers["content-type"]) == (503, b"<html>", "text/html")


def test_answers_that_are_none_get_502():
    for body in (b"no json", b"[1]", b"\xff"):
        with chain(lambda _, body=body: Answer([], body=body)) as (_, client):
            for request in (ASK, STREAM):
                told = post(client, request)
                assert (told.status_code, told.json()["error"]["type"]) == (502, "upstream_error")


STRANGE_ERRORS = [  # with status 200; and what a client gets: the status of a whole answer, and the error
    ({"error": {"message": "boom", "code": 503}}, 503, {"message": "boom", "code": 503}),
    ({"error": {"message": "boom", "code": "oom"}}, 502, {"message": "boom", "code": "oom"}),
    ({"error": "boom"}, 502, {"message": "boom", "type": "upstream_error", "param": None, "code": None}),
    (
        {"object": "error", "message": "boom", "type": "BadRequest", "param": None, "code": 400},
        400,
        {"message": "boom", "type": "BadRequest", "param": None, "code": 400},
    ),
    ({"detail": "boom"}, 502, {"message": "boom", "type": "upstream_error", "param": None, "code": None}),
    (
        {"detail": {"msg": "busy", "type": "service_unavailable"}},
        502,
        {"message": "busy", "type": "service_unavailable", "param": None, "code": None},
    ),
    ({"message": "boom"}, 502, {"message": "boom", "type": "upstream_error", "param": None, "code": None}),
]


@pytest.mark.parametrize(("answer", "status", "error"), STRANGE_ERRORS)
def test_errors_with_status_200_are_errors(answer, status, error):
    body = json.dumps(answer)
    with chain(lambda _: Answer([], body=body.encode())) as (_, client):
        for request in (ASK, STREAM):
            told = post(client, request)
            assert (told.status_code, told.json()) == (status, {"error": error})
    events = f"data: {body}\n\ndata: [DONE]\n\n".encode()
    with chain(lambda _: Answer([], body=events, headers={"content-type": "text/event-stream"})) as (_, client):
        assert wire(post(client, STREAM).text) == [{"error": error}]


def test_an_answer_without_choices_is_no_message():
    for choices in ([], None, [5]):
        with chain(lambda _, told=choices: Answer([], body=json.dumps({"choices": told}).encode())) as (_, client):
            for request in (ASK, STREAM):
                assert post(client, request).status_code == 502
    for events in (b"", b"\n", b"data: [DONE]\n\n", b'data: {"choices": [], "usage": {}}\n\ndata: [DONE]\n\n'):
        answer = Answer([], body=events, headers={"content-type": "text/event-stream"})
        with chain(lambda _, answer=answer: answer) as (_, client):
            assert wire(post(client, STREAM).text)[-1]["error"]["code"] == "upstream_closed"


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "Text/Event-Stream; charset=utf-8", ""])
@pytest.mark.parametrize("mark", [b"", b"\n\n", b": hi\n\n", b"\xef\xbb\xbf"])
def test_a_stream_is_one_whatever_it_is_called(kind, mark):
    choice = {"index": 0, "delta": {"content": CALL}, "finish_reason": "stop"}
    body = mark + b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\ndata: [DONE]\n\n"
    with chain(lambda _: Answer([], body=body, headers={"content-type": kind})) as (_, client):
        assert joined(wire(post(client, STREAM).text))[0]["finish_reason"] == "tool_calls"

    def handle(line, over):
        line.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode())
        for at in range(12):
            line.sendall(body[at : at + 1])
            time.sleep(0.005)
        line.sendall(body[12:])

    with raw_upstream(handle) as address, proxied(address, mode="text") as proxy:
        told = httpx.post(f"{proxy}/v1/chat/completions", json=STREAM, timeout=20, trust_env=False)
        assert joined(wire(told.text))[0]["finish_reason"] == "tool_calls"


def test_headers_of_an_upstream_may_be_in_any_encoding():
    def handle(line, over):
        line.sendall("HTTP/1.1 429 X\r\nRetry-After: 7\r\nX-Odd: ☕é\r\nContent-Length: 0\r\n\r\n".encode())

    with raw_upstream(handle) as address, proxied(address, mode="text") as proxy:
        told = httpx.post(f"{proxy}/v1/chat/completions", json=ASK, timeout=20, trust_env=False)
        assert (told.status_code, told.headers["retry-after"]) == (429, "7")
        assert (b"x-odd", "☕é".encode()) in [(key.lower(), value) for key, value in told.headers.raw]


def test_an_upstream_that_answers_a_stream_whole_is_streamed():
    with chain(lambda _: Answer([], body=WHOLE)) as (_, client):
        chunks = wire(post(client, STREAM).text)
        assert joined(chunks)[0]["finish_reason"] == "tool_calls"
        assert chunks[-1] == "[DONE]"


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain; charset=utf-16"])
def test_a_whole_answer_is_json_whatever_it_is_called(kind):
    """openai's client takes what is not called JSON for a string."""
    with chain(lambda _: Answer([], body=WHOLE, headers={"content-type": kind})) as (_, client):
        made = post(client, ASK)
        assert made.headers.get_list("content-type") == ["application/json"]
        assert message(made)["tool_calls"]


def test_a_status_that_there_is_not_is_502():
    def handle(line, over):
        line.sendall(b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n")

    with raw_upstream(handle) as address:
        for mode in ("native", "text"):
            with proxied(address, mode=mode) as proxy:
                told = httpx.post(f"{proxy}/v1/chat/completions", json=ASK, timeout=20, trust_env=False)
                assert (told.status_code, told.json()["error"]["code"]) == (502, "bad_upstream_answer")


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        ("", b"<p>Hi", "no JSON: it begins with '<p>Hi'"),
        ("", b" \n", "no JSON: it is empty"),
        ("content-encoding: gzip\r\n", b"<p>Hi", "not compressed as it says"),
        ("content-encoding: br\r\n", b"x", "expected none, gzip or deflate, found br"),
        ("content-encoding: gzip, gzip\r\n", gzip.compress(gzip.compress(WHOLE)), "found gzip, gzip"),
        ("content-length: -1\r\n", WHOLE, "no HTTP"),
        ("transfer-encoding: chunked\r\n", b"zz\r\n", "no HTTP"),
    ],
)
def test_an_answer_that_cannot_be_read_is_told_as_it_is(head, body, said):
    def handle(line, over):
        line.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body)

    with raw_upstream(handle) as address, proxied(address, mode="text") as proxy:
        for request in (ASK, STREAM):
            told = httpx.post(f"{proxy}/v1/chat/completions", json=request, timeout=20, trust_env=False)
            assert (told.status_code, told.json()["error"]["code"]) == (502, "bad_upstream_answer")
            assert said in told.json()["error"]["message"]


def test_what_nobody_asked_to_be_compressed_is_passed_on_and_read_all_the_same():
    def handle(line, over):
        line.sendall(b"HTTP/1.1 200 OK\r\ncontent-encoding: Identity , GZIP\r\n\r\n" + gzip.compress(WHOLE))

    with raw_upstream(handle) as address, proxied(address, mode="text") as proxy:
        for request in (ASK, {**PLAIN, "stream": False}):
            told = httpx.post(f"{proxy}/v1/chat/completions", json=request, timeout=20, trust_env=False)
            assert ("tool_calls" in message(told)) == (request is ASK)


def test_what_is_no_compression_is_none_whatever_is_called_so():
    def handle(line, over):
        line.sendall(b"HTTP/1.1 200 OK\r\ncontent-encoding: UTF-8, none\r\n\r\n" + WHOLE)

    with raw_upstream(handle) as address, proxied(address, mode="text") as proxy:
        for request in (ASK, STREAM):
            told = httpx.post(f"{proxy}/v1/chat/completions", json=request, timeout=20, trust_env=False)
            assert told.status_code == 200
            assert "tool_calls" in told.text


def test_blanks_before_an_answer_are_not_held():
    """Some servers send them for as long as they think."""

    async def body():
        yield b"\n \xef"
        yield b"\xbb\xbf\n"
        for _ in range(1000):
            yield b" \n"
        yield b"  dat"
        yield b"a: 1"
        yield b"\n\n"

    async def begun():
        head, rest = await proxies._begun(httpx.Response(200, content=body()))
        return head, [piece async for piece in rest]

    assert asyncio.run(begun()) == (b"data: 1", [b"\n\n"])


def test_an_answer_without_a_body_has_no_length():
    """304 may tell that of the answer which the client has already."""

    def handle(line, over):
        line.sendall(b"HTTP/1.1 304 X\r\nContent-Length: 7\r\nETag: y\r\n\r\n")

    with raw_upstream(handle) as address, proxied(address, mode="text") as proxy:
        for request in (ASK, PLAIN):
            told = httpx.post(f"{proxy}/v1/chat/completions", json=request, timeout=20, trust_env=False)
            assert (told.status_code, told.headers["etag"], told.content) == (304, "y", b"")
            assert "content-length" not in told.headers


def test_an_answer_that_can_be_read_and_is_too_deep_to_be_written_is_an_error(monkeypatch):
    """Either is done at its own depth of the program, so there are depths at which only one succeeds."""

    def fails(value):
        if "abyss" in str(value):
            raise RecursionError
        return encoded(value)

    monkeypatch.setattr("callmark.serving.answers.encoded", fails)
    monkeypatch.setattr("callmark.serving.proxy.encoded", fails)
    body = json.dumps({**json.loads(WHOLE), "choices": [{"message": {"content": CALL, "x": "abyss"}}]}).encode()
    with chain(lambda _: Answer([], body=body)) as (_, client):
        told = post(client, ASK)
        assert (told.status_code, told.json()["error"]["code"]) == (502, "bad_upstream_answer")
        assert wire(post(client, STREAM).text)[-1]["error"]["code"] == "bad_upstream_answer"
    begun = PIECE.replace(b'"delta": {', b'"delta": {"role": "assistant", ')
    events = begun + PIECE.replace(b'"id": "x"', b'"id": "x", "y": "abyss"')
    with chain(lambda _: Answer([], body=events, headers={"content-type": "text/event-stream"})) as (_, client):
        chunks = wire(post(client, STREAM).text)
        assert chunks[-1]["error"]["message"] == "the upstream's answer is nested too deep"
        assert joined(chunks[:-1])[0]["content"] == "Half"


def test_errors_in_the_middle_are_events():
    error = {"message": "out of memory", "type": "server_error", "code": 500}
    answer = says(f"Well. {CALL} [CALL: wea", reason=None, error=error)
    with chain(lambda _: answer) as (_, client):
        chunks = wire(post(client, STREAM).text)
        assert chunks[-1] == {"error": error}
        assert joined(chunks[:-1])[0]["content"] == "Well. [CALL: wea"
        assert len(joined(chunks[:-1])[0]["tool_calls"]) == 1
    with chain(lambda _: says("Half", reason=None, done=False)) as (_, client):
        chunks = wire(post(client, STREAM).text)
        assert chunks[-1]["error"]["code"] == "upstream_closed"
        assert joined(chunks[:-1])[0]["content"] == "Half"
    with chain(lambda _: says("All", done=False)) as (_, client):
        assert wire(post(client, STREAM).text)[-1] == "[DONE]"


@contextmanager
def raw_upstream(handle):
    """Serve connections one by one with a function of the socket, once its request was read."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = threading.Event()

        def serve():
            while not over.is_set():
                try:
                    line, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(line,), daemon=True).start()

        def talk(line):
            with line:
                line.settimeout(20)
                data, rest = b"", 1
                while rest > 0:  # what is unread when a connection is closed resets it, and what was sent may be lost
                    piece = line.recv(65536)
                    if not piece:
                        return
                    data += piece
                    head, end, body = data.partition(b"\r\n\r\n")
                    length = re.search(rb"(?i)content-length: ([0-9]+)", head)
                    rest = (int(length[1]) if length else 0) - len(body) if end else 1
                if data.startswith(b"POST /v1/chat"):
                    handle(line, over)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(20)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
PIECE = b'data: {"id": "x", "choices": [{"index": 0, "delta": {"content": "Half"}}]}\n\n'


def vanishes(line, over):
    pass


def stalls(line, over):
    over.wait(20)


def vanishes_in_the_middle(line, over):
    line.sendall(HEAD.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n") + b"%x\r\n" % len(PIECE) + PIECE)


def stalls_in_the_middle(line, over):
    line.sendall(HEAD + PIECE)
    over.wait(20)


def says_no_http(line, over):
    line.sendall(b"hello\r\n\r\n")


def test_connections_that_fail_are_502_and_504():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    closes, times_out = (502, "upstream_closed", 20), (504, "upstream_timeout", 0.2)
    garbage = (502, "bad_upstream_answer", 20)
    for handle, (status, code, timeout) in {vanishes: closes, says_no_http: garbage, stalls: times_out}.items():
        with raw_upstream(handle) as address, proxied(address, mode="text", read_timeout_seconds=timeout) as proxy:
            for request in (ASK, STREAM, PLAIN):
                told = httpx.post(f"{proxy}/v1/chat/completions", json=request, timeout=20, trust_env=False)
                assert (told.status_code, told.json()["error"]["code"]) == (status, code)
    with proxied(f"http://127.0.0.1:{port}") as proxy:  # also where it is asked about itself first
        told = httpx.post(f"{proxy}/v1/chat/completions", json=ASK, timeout=20, trust_env=False)
        assert (told.status_code, told.json()["error"]["code"]) == (502, "upstream_refused")
        assert "see that the model's server runs" in told.json()["error"]["message"]
        assert set(told.json()["error"]) == {"message", "type", "param", "code"}
    with upstream() as (_, address):
        with proxied(address.replace("http:", "https:")) as proxy:  # why there is none is said
            told = httpx.post(f"{proxy}/v1/chat/completions", json=ASK, timeout=20, trust_env=False)
        assert (told.status_code, told.json()["error"]["code"]) == (502, "upstream_refused")
        assert "SSL" in told.json()["error"]["message"]


@pytest.mark.parametrize(
    ("handle", "code", "timeout"),
    [(vanishes_in_the_middle, "upstream_closed", 20), (stalls_in_the_middle, "upstream_timeout", 0.5)],
)
def test_connections_that_fail_in_the_middle_are_error_events(handle, code, timeout):
    with raw_upstream(handle) as address, proxied(address, mode="text", read_timeout_seconds=timeout) as proxy:
        for request in (STREAM, PLAIN):
            told = httpx.post(f"{proxy}/v1/chat/completions", json=request, timeout=20, trust_env=False)
            chunks = wire(told.text)
            assert chunks[-1]["error"]["code"] == code
            assert chunks[-2]["choices"][0]["delta"]["content"] == "Half"


def test_a_connection_that_idled_and_is_closed_was_no_answer():
    """Servers close what is idle when they like, also just when the next request is on its way: it is sent again.

    Where the connection was new, they had the request and gave no answer; that is not asked twice.
    """

    asked = []

    async def ask(answers, times):
        async def talk(reader, writer):
            with suppress(asyncio.IncompleteReadError):
                for answer in answers:
                    head = await reader.readuntil(b"\r\n\r\n")
                    await reader.readexactly(int(re.search(rb"(?i)content-length: ([0-9]+)", head)[1]))
                    asked.append(answer)
                    if answer:
                        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(WHOLE) + WHOLE)
            writer.close()

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            connection = UpstreamConnection(Upstream(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
            for _ in range(times):
                async with connection.request("POST", connection.api("/x"), [], b"{}") as response:
                    assert await response.aread() == WHOLE
            await connection.close()
            await asyncio.sleep(0.05)  # the server sees that, too

    asyncio.run(ask([True, False], 3))
    assert asked == [True, False, True, False, True]
    asked.clear()
    with pytest.raises(UpstreamError, match="closed"):
        asyncio.run(ask([False], 1))
    assert asked == [False]


def test_a_body_that_breaks_off_never_looks_complete():
    def breaks_off(line, over):
        line.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n"
        )

    with raw_upstream(breaks_off) as address, proxied(address) as proxy:
        url = f"{proxy}/v1/chat/completions"
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(url, json=PLAIN, timeout=20, trust_env=False)


def test_an_answer_that_is_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr("callmark.running.server_events.EVENT_LIMIT", 1000)
    with chain(lambda _: says("x" * 2000, size=2000)) as (_, client):
        assert wire(post(client, STREAM).text)[-1]["error"]["code"] == "upstream_event_too_long"
    monkeypatch.setattr("callmark.serving.proxy.ERROR_LIMIT", 10)
    with chain(lambda _: Answer([], status=500, body=b"x" * 11)) as (_, client):
        assert post(client, ASK).json()["error"]["code"] == "upstream_answer_too_long"


def test_events_are_decoded_however_they_are_cut():
    data = b': hi\r\n\r\ndata: {"a":\r\ndata: 1}\r\n\r\nevent: x\ndata:2\n\nerror: {}\n\n'
    data += b"data:\n\ndata: 3\r\rdata: 4\r\r"
    data += b'data: {"b": {}}\ndata: {"c":\ndata: 1}\ndata: [DONE]\n\ndata: end'  # servers that forget the empty line
    expected = [b'{"a":\n1}', b"2", b'{"error":{}}', b"3", b"4", b'{"b": {}}', b'{"c":\n1}', b"[DONE]", b"end"]
    for size in range(1, len(data) + 1):
        decoder = EventDecoder()
        found = []
        for at in range(0, len(data), size):
            found += decoder.feed(data[at : at + size])
        assert found + decoder.finish() == expected
    assert EventDecoder().feed(b"data: [DONE]\n") == [b"[DONE]"]  # nothing comes behind it
    assert EventDecoder().feed(b"\xef\xbb\xbfdata: 1\n\n") == [b"1"]  # a mark of UTF-8 is no part of the first line
    decoder = EventDecoder()
    assert all(decoder.feed(b"x" * (EVENT_LIMIT // 16)) == [] for _ in range(16))
    with pytest.raises(EventLimitError):
        decoder.feed(b"x")
    decoder = EventDecoder()
    for _ in range(32):  # of what is no event, however much may come before one
        assert decoder.feed(b": " + b"x" * (EVENT_LIMIT // 16) + b"\n\n") == []
    assert decoder.feed(b"data: 1\n\n" + b"data: 2\n\n" * 2) == [b"1", b"2", b"2"]
    lines = b"data: " + b"x" * (EVENT_LIMIT // 16) + b"\n"
    assert all(decoder.feed(lines) == [] for _ in range(16))
    with pytest.raises(EventLimitError):
        decoder.feed(lines)


# Slow, silent and vanishing.


def test_a_client_that_goes_away_ends_the_upstream():
    begun = threading.Event()

    async def wait(sent):
        if sent == 2:
            begun.set()
            await asyncio.sleep(60)

    scripted = Scripted(lambda body: says("Well, well, well", wait=wait))
    with served(scripted.app()) as address, proxied(address) as proxy:
        for request in (STREAM, PLAIN):
            begun.clear()
            url = f"{proxy}/v1/chat/completions"
            with httpx.stream("POST", url, json=request, timeout=20, trust_env=False) as response:
                assert next(response.iter_text())
                assert begun.wait(20)
            assert scripted.cancelled.acquire(timeout=20)


def test_a_client_that_goes_away_before_the_answer_ends_the_upstream():
    over = threading.Event()

    def silent(line, stop):
        line.settimeout(20)
        while line.recv(65536):  # the rest of the request, and then the end of the connection
            pass
        over.set()

    with raw_upstream(silent) as address, proxied(address, mode="text") as proxy:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{proxy}/v1/chat/completions", json=ASK, timeout=0.3, trust_env=False)
        assert over.wait(20)


def test_what_is_not_wanted_is_not_waited_for():
    async def wait(sent):
        if sent > len(CALL) // 4 + 8:
            await asyncio.sleep(60)

    model = lambda body: says(f"{CALL}\nResult of weather:\n7 degrees and so on", wait=wait)  # noqa: E731
    with chain(model) as (scripted, client):
        chunks = wire(post(client, STREAM).text)
        assert joined(chunks)[0]["finish_reason"] == "tool_calls"
        assert joined(chunks)[0]["content"] == ""
        assert chunks[-1] == "[DONE]"
        assert scripted.cancelled.acquire(timeout=20)


def test_silence_is_filled_with_comments():
    pause = threading.Event()

    async def wait(sent):
        while sent == 3 and not pause.is_set():
            await asyncio.sleep(0.01)

    with chain(lambda _: says("Well, well, well", wait=wait), keep_alive_seconds=0.05) as (_, client):
        for request in (STREAM, PLAIN):
            pause.clear()
            text = ""
            with client.stream("POST", "/v1/chat/completions", json=request) as response:
                for piece in response.iter_text():
                    text += piece
                    if text.count(": keep-alive\n\n") == 2:
                        pause.set()
            assert joined(wire(text))[0]["content"] == "Well, well, well"


def test_comments_come_while_a_call_is_written_and_held():
    written = says(CALL, wait=lambda sent: asyncio.sleep(0.05))
    with chain(lambda _: written, keep_alive_seconds=0.05) as (_, client):
        told = post(client, STREAM).text
        assert ": keep-alive\n\n" in told[told.index("assistant") : told.index("tool_calls")]
        assert joined(wire(told))[0]["finish_reason"] == "tool_calls"


def test_no_comment_stands_in_the_middle_of_an_event():
    def half(line, over):
        line.sendall(HEAD + PIECE[:20])
        over.wait(0.5)
        line.sendall(PIECE[20:])

    with raw_upstream(half) as address, proxied(address, keep_alive_seconds=0.05) as proxy:
        told = httpx.post(f"{proxy}/v1/chat/completions", json=PLAIN, timeout=20, trust_env=False)
        assert PIECE.decode() in told.text


def kept_waiting(proxy: str, asked: dict[str, Any], heard: threading.Event) -> str:
    """Return a stream's text, and say when its client has heard that it is kept alive."""
    text = ""
    with httpx.stream("POST", f"{proxy}/v1/chat/completions", json=asked, timeout=30, trust_env=False) as response:
        assert response.status_code == 200
        for piece in response.iter_text():
            text += piece
            if ": keep-alive" in text:
                heard.set()
    return text


@pytest.mark.parametrize(
    ("header", "body", "at"),
    [
        (b"content-length: %d" % (2 * len(PIECE)), PIECE * 2, 0),
        (b"content-length: %d" % (2 * len(PIECE)), PIECE * 2, len(PIECE)),
        (b"content-encoding: gzip", gzip.compress(PIECE * 2, mtime=0), 0),
    ],
)
def test_comments_stand_in_a_stream_however_it_is_sent(header, body, at):
    heard = threading.Event()

    def handle(line, over):
        line.sendall(HEAD.replace(b"\r\n\r\n", b"\r\n%b\r\n\r\n" % header) + body[:at])
        heard.wait(20)
        line.sendall(body[at:])

    with raw_upstream(handle) as address, proxied(address, keep_alive_seconds=0.05) as proxy:
        text = kept_waiting(proxy, PLAIN, heard)
    assert text.replace(": keep-alive\n\n", "") == (PIECE * 2).decode()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, None, None),
        (500, b'{"error": {"message": "no"}}', {"error": {"message": "no"}}),
        (500, b"no", {"error": {"message": "no", "type": "upstream_error", "code": None}}),
    ],
)
def test_an_upstream_that_thinks_long_before_it_answers_keeps_the_client(status, body, expected):
    heard = threading.Event()

    def model(request):
        assert heard.wait(20)
        return says(CALL) if body is None else Answer([], status=status, body=body)

    scripted = Scripted(model)

    async def patient(request):
        scripted.requests.append(await request.json())
        await asyncio.to_thread(heard.wait, 20)
        return await Scripted(model).chat(request)

    scripted.routes = [Route("/v1/chat/completions", patient, methods=["POST"])]
    with served(scripted.app()) as address, proxied(address, mode="text", keep_alive_seconds=0.05) as proxy:
        text = kept_waiting(proxy, STREAM, heard)
        if expected is None:
            assert joined(wire(text))[0]["finish_reason"] == "tool_calls"
        else:
            assert wire(text) == [expected]


@pytest.mark.parametrize("kind", ["application/json", "Text/Event-Stream", "text/plain"])
def test_an_answer_to_a_request_without_tools_may_come_late_and_in_any_form(kind):
    """The client was told that a stream comes: what comes is one, whatever its server made of the request."""
    heard = threading.Event()
    whole = kind == "application/json"
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    body = json.dumps({**json.loads(WHOLE), "usage": usage}).encode() if whole else PIECE + b"data: [DONE]\n\n"

    def handle(line, over):
        heard.wait(20)
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-encoding: gzip\r\n"
        if whole:
            line.sendall(f"{head}\r\n".encode() + gzip.compress(body))
            return
        packer = zlib.compressobj(wbits=31)
        packed = [packer.compress(each) + packer.flush(zlib.Z_SYNC_FLUSH) for each in (PIECE, body[len(PIECE) :])]
        pieces = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in (*packed, packer.flush(), b""))
        line.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode() + pieces)

    with raw_upstream(handle) as address, proxied(address, keep_alive_seconds=0.05) as proxy:
        text = kept_waiting(proxy, {**PLAIN, "stream_options": {"include_usage": True}}, heard)
    chunks = wire(text)
    assert chunks[-1] == "[DONE]"
    if whole:
        assert joined(chunks)[0] == {"content": CALL, "tool_calls": [], "finish_reason": "stop"}
        assert chunks[-2]["usage"] == usage
    else:
        assert text.replace(": keep-alive\n\n", "") == body.decode()


def test_an_answer_that_is_late_and_none_is_an_error_event(monkeypatch):
    monkeypatch.setattr("callmark.serving.relay.LATE_LIMIT", 10)
    page, error = (b"200 OK", b"<p>Hi", "bad_upstream_answer"), (b"500 X", b"x" * 11, "upstream_answer_too_long")
    for status, body, code in (page, error):
        heard = threading.Event()

        def handle(line, over, status=status, body=body, heard=heard):
            heard.wait(20)
            line.sendall(b"HTTP/1.1 %b\r\ncontent-type: text/html\r\n\r\n%b" % (status, body))

        with raw_upstream(handle) as address, proxied(address, keep_alive_seconds=0.05) as proxy:
            text = kept_waiting(proxy, PLAIN, heard)
        assert wire(text)[-1]["error"]["code"] == code


def test_an_upstream_that_fails_after_a_long_silence_is_an_error_event():
    with raw_upstream(stalls) as address:
        options = {"mode": "text", "keep_alive_seconds": 0.05, "read_timeout_seconds": 0.3}
        with proxied(address, **options) as proxy:
            told = httpx.post(f"{proxy}/v1/chat/completions", json=STREAM, timeout=30, trust_env=False)
            assert told.status_code == 200
            assert ": keep-alive\n\n" in told.text
            assert wire(told.text)[-1]["error"]["code"] == "upstream_timeout"


def test_a_client_that_takes_nothing_is_given_up():
    endless = Answer([["x" * 50_000] * 4000], wait=lambda sent: asyncio.sleep(0.0001))
    with chain(lambda _: endless, client_timeout_seconds=0.4) as (scripted, client):
        address = client.base_url.host, client.base_url.port
        with socket.create_connection(address, 20) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            body = json.dumps(STREAM).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            line.sendall(head.encode() + body)
            assert scripted.cancelled.acquire(timeout=30)


def test_nothing_is_left_behind():
    """After vanishing clients and upstreams, the proxy holds no connection and no task that it did not hold before."""
    reasons = []
    scripted = Scripted(lambda body: says(f"Well. {CALL}", wait=lambda sent: asyncio.sleep(0.001)))
    with served(scripted.app()) as address:
        config = make_config({"upstreams": [{"url": f"{address}/v1", "mode": "text"}]})
        with served_config(config) as proxy:

            def visit(number):
                url = f"{proxy}/v1/chat/completions"
                with httpx.stream("POST", url, json=STREAM, timeout=30, trust_env=False) as response:
                    if number % 2:
                        next(response.iter_bytes())
                    else:
                        reasons.append(joined(wire(response.read().decode()))[0]["finish_reason"])

            threads = [threading.Thread(target=visit, args=(number,)) for number in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert reasons == ["tool_calls"] * 10
            before = time.monotonic()
            while established(address) > 10 and time.monotonic() - before < 20:  # those that are kept for the next
                time.sleep(0.02)
            assert established(address) <= 10


class Ready:
    """What is there already when a task waits for it, as data is of 60 upstreams that flood a loop."""

    def __await__(self):
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        future._asyncio_future_blocking = True
        yield future


def test_an_upstream_that_never_pauses_is_left_when_its_client_is_gone():
    async def floods():
        while True:
            await Ready()
            yield b"data: {}\n\n"

    async def run():
        with anyio.CancelScope() as wanted:
            number = 0
            async for _ in pieces_of(httpx.Response(200, content=floods())):
                wanted.cancel()
                number += 1
                assert number < PIECES_IN_A_ROW
        assert wanted.cancelled_caught

    asyncio.run(run())


def established(address):
    """Return how many connections to an address are open, as this machine's kernel has it."""
    port = int(address.rpartition(":")[2])
    count = 0
    with open("/proc/net/tcp", encoding="ascii") as table:
        for row in table.readlines()[1:]:
            fields = row.split()
            count += int(fields[2].rpartition(":")[2], 16) == port and fields[3] == "01"
    return count


def test_a_client_that_goes_away_at_any_moment_leaves_no_connection():
    """Also while a connection is being closed: who is interrupted there must close it all the same."""
    open_ones = set()

    async def talk(reader, writer):
        open_ones.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(WHOLE) + WHOLE)
            await reader.read()  # until the proxy closes it
        open_ones.discard(writer)
        writer.close()

    async def visits():
        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            connection = UpstreamConnection(Upstream(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))

            @asynccontextmanager
            async def opened():
                async with connection.request("GET", connection.api("/x"), [], b"") as response:
                    yield relays.Answer(200, [], pieces_of(response))

            async def gone(steps):
                for _ in range(steps):
                    await asyncio.sleep(0)
                return {"type": "http.disconnect"}

            async def send(message):
                pass

            for steps in [*range(40), *range(8, 24)] * 5:
                relay = Relay(opened(), events=False, keep_alive_seconds=9, client_timeout_seconds=9)
                await relay({}, lambda steps=steps: gone(steps), send)
            for _ in range(200):
                if not open_ones:
                    break
                await asyncio.sleep(0.05)
            left = len(open_ones)
            await connection.close()
            return left

    assert asyncio.run(visits()) == 0


def test_who_sends_very_small_pieces_lets_others_have_their_turn():
    """Of a heap of 64 KB that came at once, each piece is some lines of HTTP."""

    async def small():
        while True:
            yield b"x"

    async def read():
        number = 0
        async for _ in pieces_of(httpx.Response(200, content=small())):
            number += 1
            if number == 100 * PIECES_IN_A_ROW:
                break

    assert asyncio.run(turns_of_others(read())) >= 99


def test_a_mistake_of_ours_is_raised():
    async def never():
        await asyncio.sleep(60)

    class Broken:
        async def __aenter__(self):
            raise ZeroDivisionError

        async def __aexit__(self, *_):
            pass

    relay = Relay(Broken(), events=False, keep_alive_seconds=1, client_timeout_seconds=1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(relay({}, never, never))


# Keys.


def test_keys_go_to_the_upstream_and_nowhere_else(caplog):
    key = {"authorization": "Bearer sk-client", "cookie": "session=sk-cookie", "x-mine": "1"}
    with caplog.at_level(logging.DEBUG), chain() as (scripted, client):
        post(client, ASK, headers={**key, "connection": "x-hop", "x-hop": "1"})
        sent = scripted.headers[-1]
        assert (sent["authorization"], sent["x-mine"]) == ("Bearer sk-client", "1")
        assert not {"cookie", "x-hop"} & sent.keys()
        assert client.get("/v1/models", headers=key).status_code == 200
        asking = http.client.HTTPConnection(client.base_url.host, client.base_url.port, timeout=20)  # it logs nothing
        asking.request("GET", "/v1/odd?key=sk-query")
        assert asking.getresponse().status == 404
        asking.close()
        assert scripted.others[-1][1] == "/v1/odd?key=sk-query"
    with caplog.at_level(logging.DEBUG), chain(api_key="sk-server") as (scripted, client):
        post(client, ASK, headers={**key, "x-api-key": "sk-client"})
        assert scripted.headers[-1]["authorization"] == "Bearer sk-server"
        assert "x-api-key" not in scripted.headers[-1]
        post(client, ASK)
    with upstream() as (scripted, address):
        config = make_config({"upstreams": [{"url": f"{address}/v1"}], "pass_authorization": False})
        with served_config(config, origins=["http://page"]) as proxy:
            page = {**key, "origin": "http://page"}
            told = httpx.post(f"{proxy}/v1/chat/completions", json=ASK, headers=page, trust_env=False)
            assert told.headers["access-control-allow-origin"] == "http://page"
            assert not {"authorization", "origin"} & scripted.headers[-1].keys()
    assert any(record.name == "callmark.proxy" for record in caplog.records)
    assert "sk-" not in caplog.text


def test_what_is_asked_about_a_model_is_asked_where_it_is_served():
    with upstream() as (first, one), upstream() as (second, two):
        table = [{"url": f"{one}/v1", "serves": ["small*"]}, {"url": f"{two}/v1", "serves": ["big/*"]}]
        with client_of({"upstreams": table}) as client:
            for path in ("/v1/models/big/one", "/v1/models/big%2Fone"):
                client.get(path)
        assert (len(first.others), len(second.others)) == (0, 2)


def test_slashes_too_many_are_no_other_path():
    with chain() as (_, client):
        for path in ("/v1//chat/completions", "//v1/chat/completions", "/v1/chat/completions/"):
            made = client.post(f"{client.base_url}".rstrip("/") + path, json=ASK)
            assert made.json()["choices"][0]["finish_reason"] == "tool_calls", path


def test_headers_that_only_some_let_through():
    with chain() as (scripted, client):
        for value, status in (("Bearer ", b"200"), ("sk\x01x", b"400")):
            body = json.dumps(ASK)
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            with socket.create_connection((client.base_url.host, client.base_url.port), 20) as line:
                line.sendall(f"{head}Authorization: {value}\r\n\r\n{body}".encode())
                assert line.recv(12).endswith(status)
        assert "authorization" not in scripted.headers[-1]
        for value in ("Café ☕".encode(), b"caf\xe9"):
            asking = http.client.HTTPConnection(client.base_url.host, client.base_url.port, timeout=20)
            asking.request("POST", "/v1/chat/completions", json.dumps(ASK), {"X-Title": value})
            assert asking.getresponse().status == 200
            asking.close()
            assert scripted.headers[-1]["x-title"].encode("latin-1") == value
        error = failure(httpx.LocalProtocolError("x"))
        assert (error.status, error.body["error"]["code"]) == (400, "bad_header")


# The command.


def test_the_command_serves_the_proxy():
    with upstream() as (scripted, address):
        options = ["--port", "0", "--upstream", f"{address}/v1", "--mode", "text", "--before-calls", "drop"]
        options += ["--tool", "w*", "--token", "sk-own", "--upstream-key", "sk-up", "--no-system-role"]
        with subprocess.Popen([*CALLMARK, "serve", *options], stderr=subprocess.PIPE, text=True) as command:
            try:
                url = command.stderr.readline().split()[-1]
                refused = httpx.post(f"{url}/v1/chat/completions", json=ASK, timeout=30, trust_env=False)
                assert refused.status_code == 401
                headers = {"authorization": "Bearer sk-own"}
                made = httpx.post(f"{url}/v1/chat/completions", json=ASK, headers=headers, timeout=30, trust_env=False)
                assert message(made)["content"] is None
                assert message(made)["tool_calls"]
                assert httpx.get(f"{url}/health", timeout=30, trust_env=False).status_code == 200
            finally:
                command.send_signal(signal.SIGINT)
        assert {each["role"] for each in scripted.requests[-1]["messages"]} == {"user", "assistant"}
        assert scripted.headers[-1]["authorization"] == "Bearer sk-up"


def test_the_command_serves_others_by_the_name_that_they_have_for_it():
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^    callmark (serve --host .*)$", text, re.MULTILINE)
    with upstream() as (scripted, address):
        options = [*shown.replace("http://127.0.0.1:5001", address).split(), "--port", "0", "--mode", "text"]
        with subprocess.Popen([*CALLMARK, *options], stderr=subprocess.PIPE, text=True) as command:
            try:
                url = command.stderr.readline().split()[-1].replace("0.0.0.0", "127.0.0.1")  # noqa: S104
                headers = {"authorization": "Bearer SECRET", "host": "host.docker.internal:8765"}
                asked = partial(httpx.post, f"{url}/v1/chat/completions", json=ASK, timeout=30, trust_env=False)
                assert message(asked(headers=headers))["tool_calls"]
                assert asked(headers={**headers, "host": "0.0.0.0"}).status_code == 200  # noqa: S104
                assert asked(headers={**headers, "host": "evil.example"}).status_code == 421
                assert asked(headers={**headers, "authorization": "Bearer x"}).status_code == 401
            finally:
                command.send_signal(signal.SIGINT)
        assert [each.get("authorization") for each in scripted.headers] == [None, None]


def test_the_command_teaches_as_its_options_say():
    with upstream(lambda body: says('<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>')) as (
        scripted,
        address,
    ):
        options = ["--port", "0", "--upstream", f"{address}/v1", "--dialect", "hermes", "--style", "schema"]
        options += ["--language", "zh-Hans", "--place", "user", "--arguments", "stream"]
        environment = {**os.environ, "CALLMARK_UPSTREAM_KEY": "sk-up"}
        command = [*CALLMARK, "serve", *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
            try:
                url = process.stderr.readline().split()[-1]
                made = httpx.post(f"{url}/v1/chat/completions", json=STREAM, timeout=30, trust_env=False)
            finally:
                process.send_signal(signal.SIGINT)
    told = "".join(each["content"] for each in scripted.requests[-1]["messages"] if each["role"] == "user")
    assert "这样调用：" in told
    assert "<tool_call>" in told
    assert '"parameters"' in told
    assert scripted.headers[-1]["authorization"] == "Bearer sk-up"
    deltas = [delta for chunk in wire(made.text)[:-1] for delta in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert len(deltas) > 2  # of one call


def test_the_command_takes_a_file(tmp_path):
    with upstream() as (scripted, address):
        (tmp_path / "proxy.toml").write_text(f'[[upstreams]]\nurl = "{address}/v1"\ndialect = "hermes"\n')
        options = ["--port", "0", "--config", str(tmp_path / "proxy.toml")]
        with subprocess.Popen([*CALLMARK, "serve", *options], stderr=subprocess.PIPE, text=True) as command:
            try:
                url = command.stderr.readline().split()[-1]
                made = httpx.post(f"{url}/v1/chat/completions", json=ASK, timeout=30, trust_env=False)
                assert message(made)["tool_calls"]
            finally:
                command.send_signal(signal.SIGINT)
        assert "<tool_call>" in scripted.requests[-1]["messages"][0]["content"]


def test_what_the_readme_shows_of_the_proxy_is_true():
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (curl .*/v1/chat/completions (?:.+\n)+)", text, re.MULTILINE)
    with chain(lambda body: says(CALL)) as (_, client):
        command = command.replace("http://127.0.0.1:8765", str(client.base_url).rstrip("/"))
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["choices"][0]["message"]["tool_calls"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mode", "text"], "--upstream"),
        (["--config", "x.toml", "--mode", "text"], "--config"),
        (["--config", "x.toml"], "x.toml"),
        (["--upstream", "http://h/v1", "--upstream", "http://g/v1"], "--config"),
        (["--upstream", "http://h/v1", "--port", "99999"], "65535"),
        (["--config", "keyless.toml"], "CALLMARK_NO_SUCH_KEY"),
        (["--upstream", "localhost:5001"], "http://host:port/v1"),
        (["--upstream", "http://h/v1", "--dialect", "klingon"], "klingon"),
        (["--upstream", "http://h/v1", "--style", "loud"], "style"),
    ],
)
def test_the_command_says_what_is_wrong(options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keyless = '[[upstreams]]\nurl = "http://h/v1"\napi_key_env = "CALLMARK_NO_SUCH_KEY"\n'
    (tmp_path / "keyless.toml").write_text(keyless)
    found = CliRunner().invoke(main, ["serve", *options])
    assert found.exit_code == 2
    assert said in found.output
