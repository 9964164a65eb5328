"""HTTP over real sockets: the functions, streamed texts, the WebSocket, the gate, and clients that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import callmark
from callmark.serving import gate as gates
from callmark.serving import http, protocols
from callmark.serving.bounds import Bounds
from callmark.serving.gate import Gate
from callmark.serving.http import Listening, app
from callmark.serving.problems import KINDS
from callmark.serving.streams import Stream
from feeding import joined
from serving import WAIT_SECONDS, Served, ask, served, turns_of_others
from test_cases import CASES
from test_cli import run

TEXT = 'Hm. 😀 [CALL: look(at=it)] [CALL: look({"at" 1})]'
AS_JSON = {"Content-Type": "application/json"}
ORIGIN = "https://example.org"


@pytest.fixture(scope="module")
def server():
    with served(Gate(origins=[ORIGIN])) as running:
        yield running


def as_wire(events: Any) -> Any:
    """Return events as a client sees them."""
    return json.loads(json.dumps([event.to_dict() for event in events]))


def problem(response: Any) -> str:
    """Return the code of an error, which is in the one shape."""
    assert response.json.keys() == {"error"}
    error = response.json["error"]
    assert error.keys() == {"code", "message", "type"}
    assert response.status == KINDS[error["code"]].status
    assert response.headers["content-type"] == "application/json"
    return error["code"]


# The functions.


def test_functions_are_paths(server):
    parsed = callmark.parse(TEXT)
    assert ask(server, "POST", "/parse", {"text": TEXT}).json == {"events": as_wire(parsed.events)}
    assert ask(server, "POST", "/detect", {"text": TEXT}).json == {"dialects": ["call"]}
    assert len(ask(server, "GET", "/dialects").json["dialects"]) == len(callmark.dialects())
    utf16 = ask(server, "POST", "/parse", {"text": TEXT, "positions": "utf-16"}).json["events"]
    assert utf16[0]["span"] == {"start": 0, "end": 7}
    big = "x" * 100_000 + "[CALL: f()]"  # read in a thread
    assert ask(server, "POST", "/parse", {"text": big}).json["events"][-1]["span"]["end"] == len(big)
    problems = [each.to_dict() for each in parsed.problems]
    assert "was not run" in ask(server, "POST", "/feedback", {"problem": problems[0]}).json["text"]


def test_others_are_answered_while_what_neutralizing_needs_first_is_compiled(server, preparation):
    """It takes a while, once in a process, and everybody who needs it waits for the same."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "neutralize", "params": {"text": "Hi."}}
    with ThreadPoolExecutor(8) as clients, connect(f"ws://127.0.0.1:{server.port}/ws") as talk:
        body = {"text": "[CALL: f()]", "special_tokens": True}
        asked = [clients.submit(ask, server, "POST", "/neutralize", body) for _ in range(8)]
        assert preparation.begun.wait(WAIT_SECONDS)
        talk.send(json.dumps(message))
        assert ask(server, "GET", "/health").status == 200
        assert ask(server, "POST", "/detect", {"text": "[CALL: f()]"}).json == {"dialects": ["call"]}
        assert not any(each.done() for each in asked)
        preparation.may_end.set()
        assert {each.result().json["text"] for each in asked} == {callmark.neutralize(**body)}
        assert json.loads(talk.recv(WAIT_SECONDS))["result"] == {"text": callmark.neutralize("Hi.")}
    assert sorted(preparation.done) == [False, False, True]  # the second client wants no special tokens
    assert ask(server, "POST", "/neutralize", body).status == 200
    assert len(preparation.done) == 3


def test_health_metrics_and_documents(server):
    assert ask(server, "GET", "/health").json == {"status": "ok", "callmark": callmark.__version__}
    ask(server, "POST", "/detect", {"text": ""})
    ask(server, "POST", "/detect", {})
    text = ask(server, "GET", "/metrics").body.decode()
    assert "# TYPE callmark_requests_total counter\n" in text
    assert 'callmark_requests_total{method="detect",code="invalid-params"}' in text
    assert 'callmark_seconds_total{method="detect"}' in text
    assert ask(server, "GET", "/openapi.json").json["openapi"] == "3.1.0"
    assert ask(server, "GET", "/openrpc.json").json["openrpc"].startswith("1.")


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "code"),
    [
        ("GET", "/nothing", None, {}, "unknown-method"),
        ("GET", "/../etc/passwd", None, {}, "unknown-method"),
        ("GET", "/parse", None, {}, "wrong-method"),
        ("DELETE", "/health", None, {}, "wrong-method"),
        ("POST", "/parse", b"{}", {}, "wrong-media-type"),
        ("POST", "/parse", b"{}", {"Content-Type": "text/plain"}, "wrong-media-type"),
        ("POST", "/parse", b"{", {"Content-Type": "application/json"}, "parse-error"),
        ("POST", "/parse", b"\xff", {"Content-Type": "application/json"}, "parse-error"),
        ("POST", "/parse", b'{"text":"","tools":' + b"[" * 50_000, {"Content-Type": "application/json"}, "parse-error"),
        ("POST", "/parse", b"7", {"Content-Type": "application/json; charset=utf-8"}, "invalid-params"),
        ("POST", "/parse", {"text": "", "dialects": "klingon"}, {}, "invalid-params"),
        ("POST", "/parse", {"text": 7}, {}, "invalid-params"),
        ("POST", "/parse", b"x" * (16 * 1024 * 1024 + 1), {"Content-Type": "application/json"}, "too-large"),
        ("POST", "/parse/stream?options=7", b"x", {}, "invalid-params"),
        ("POST", "/parse/stream?options={%22dialects%22:%22klingon%22}", b"x", {}, "invalid-params"),
        ("POST", "/parse/stream", b"x", {"Content-Type": "application/json"}, "wrong-media-type"),
        ("POST", "/parse/stream", b"x", {"Content-Type": "text/plain; charset=ISO-8859-1"}, "wrong-media-type"),
        ("POST", "/parse/stream", b"x", {"Content-Encoding": "gzip"}, "wrong-media-type"),
        ("POST", "/parse", b"x", {"Content-Type": "application/json", "Content-Encoding": "br"}, "wrong-media-type"),
        ("POST", "/parse/stream", b"1\r\nx\r\n0\r\n\r\n", {"Transfer-Encoding": "gzip, chunked"}, "wrong-media-type"),
        ("POST", "/parse", b"7", {"Content-Type": "application/json", "Content-Encoding": ""}, "invalid-params"),
        ("POST", "/parse", b"7", {**AS_JSON, "Content-Encoding": "identity, Identity"}, "invalid-params"),
        ("POST", "/parse", b"7", {**AS_JSON, "Content-Encoding": "identity, gzip"}, "wrong-media-type"),
        ("POST", "/parse/stream", b"{", {"Content-Type": "application/x-ndjson"}, "parse-error"),
        ("GET", "/ws", None, {}, "unknown-method"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_4xx_in_one_shape(server, method, path, body, headers, code):
    assert problem(ask(server, method, path, body, headers)) == code


@pytest.mark.parametrize("body", [b"", b" \r\n", b"\xef\xbb\xbf"])
def test_a_body_that_did_not_come_is_missed_in_plain_words(server, body):
    told = ask(server, "POST", "/parse", body, AS_JSON)
    assert (problem(told), told.json["error"]["message"]) == ("parse-error", "expected a JSON body, and none came")
    told = ask(server, "POST", "/parse/stream?options=", b"", {})
    assert (problem(told), told.json["error"]["message"]) == ("parse-error", "expected JSON in UTF-8, found nothing")


def test_a_mark_of_utf_8_may_stand_before_json(server):
    mark = b"\xef\xbb\xbf"
    assert ask(server, "POST", "/detect", mark + b'{"text":""}', {"Content-Type": "application/json"}).status == 200
    lines = mark + b'{}\n"Hi"\n'
    streamed = ask(server, "POST", "/parse/stream", lines, {"Content-Type": "application/x-ndjson"})
    assert b'"text":"Hi"' in streamed.body


def test_a_mistake_of_our_own_is_500_in_the_same_shape(server, monkeypatch):
    def broken(text):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(callmark, "detect", broken)
    response = ask(server, "POST", "/detect", {"text": "x"})
    assert problem(response) == "internal-error"
    assert b"secret" not in response.body


def test_garbage_bytes_are_answered(server):
    wrong = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n"
    tunnel = b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    for garbage in (b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", wrong, tunnel):
        with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
            raw.sendall(garbage)
            head, _, body = b"".join(iter(partial(raw.recv, 1000), b"")).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400 ")
            assert head.endswith(b"\r\ncontent-type: application/json")
            assert json.loads(body)["error"]["code"] == "invalid-request"
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
        raw.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        with suppress(ConnectionError):  # it is answered, and cut off
            for _ in range(10_000):
                raw.sendall(b"X-Header: %b\r\n" % (b"x" * 1000))
            raise AssertionError("a head of 10 MB")


PROPOSED = (
    b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEA\r\nUpgrade: h2c\r\n",
    b"upgrade: TLS/1.0\r\nconnection: keep-alive, upgrade\r\n",
)


@pytest.mark.parametrize("proposed", PROPOSED)
@pytest.mark.parametrize("size", [1, 150, 10_000])
def test_another_protocol_may_be_proposed(server, proposed, size):
    """Java's client proposes HTTP/2 with every request, and its body comes all the same."""
    body = b'{"text": "[CALL: look()]"}'
    head = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\n" + proposed
    sent = b"".join((
        b"POST /detect HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body),
        b"GET /health HTTP/1.1\r\n%b\r\n" % head,
        b"POST /detect HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (head, len(body), body),
    ))  # fmt: skip
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(sent), size):
            raw.sendall(sent[at : at + size])
        said = b""
        while said.count(b"HTTP/1.1 ") < 3 or not said.endswith(b"}"):
            piece = raw.recv(4096)
            assert piece, said
            said += piece
    assert said.count(b"HTTP/1.1 200 ") == 3
    assert said.count(b'{"dialects":["call"]}') == 2


# The gate.


def test_other_hosts_are_refused(server):
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", "", "[::1", "localhost."):
        assert problem(ask(server, "GET", "/health", None, {"Host": host})) == "forbidden-host"
    for host in ("localhost", f"LOCALHOST:{server.port}", "127.0.0.1", "[::1]:80", "[::1]"):
        assert ask(server, "GET", "/health", None, {"Host": host}).status == 200
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
        raw.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 421 ")


def test_pages_of_other_origins_are_refused(server):
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-y"}
    for origin in ("https://evil.example", "null", f"{ORIGIN}:444", f"{ORIGIN}.evil.example", "http://example.org"):
        for method, headers in (("POST", {}), ("OPTIONS", preflight)):
            response = ask(server, method, "/parse", {"text": ""}, {"Origin": origin, **headers})
            assert problem(response) == "forbidden-origin"
            assert "access-control-allow-origin" not in response.headers
    response = ask(server, "OPTIONS", "/parse", None, {"Origin": ORIGIN, **preflight})
    assert (response.status, response.headers["access-control-allow-origin"]) == (200, ORIGIN)
    response = ask(server, "POST", "/parse", {"text": 7}, {"Origin": ORIGIN})
    assert problem(response) == "invalid-params"
    assert response.headers["access-control-allow-origin"] == ORIGIN


def test_what_a_page_loads_without_saying_its_origin_is_refused_too(server):
    """An image, a script, a frame or a link of a page is a GET without an Origin; browsers say where it comes from."""
    for site in ("cross-site", "same-site"):
        for path in ("/health", "/dialects", "/nothing"):
            assert problem(ask(server, "GET", path, None, {"Sec-Fetch-Site": site})) == "forbidden-origin"
        headers = {"Sec-Fetch-Site": site, "Origin": ORIGIN}
        assert ask(server, "GET", "/health", None, headers).status == 200
    for site in ("none", "same-origin"):  # typed by the user, or asked by a page that was served here
        assert ask(server, "GET", "/health", None, {"Sec-Fetch-Site": site}).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "same-site"}, 403), ({"authorization": "Bearer other"}, 401),
        ({"content-length": "99999999"}, 413), ({}, 200),
    ],
)  # fmt: skip
def test_what_is_refused_is_not_done_all_the_same(headers, status):
    done, sent = [], []

    async def send(message: Any) -> None:
        sent.append(message.get("status"))

    async def does(scope: Any, receive: Any, send: Any) -> None:
        done.append(1)
        await PlainTextResponse("Done")(scope, receive, send)

    made: Any = does
    for layer in reversed(Gate(token="s3cret").middleware()):  # noqa: S106
        made = layer.cls(made, *layer.args, **layer.kwargs)
    said = {"host": "localhost", "authorization": "Bearer s3cret", **headers}
    pairs = [(name.encode(), value.encode()) for name, value in said.items()]
    asyncio.run(made({"type": "http", "method": "POST", "path": "/", "headers": pairs}, None, send))
    assert (sent, done) == ([status, None], [1] * (status == 200))


@pytest.mark.parametrize("origin", [
    "*", "example.org", "https://example.org/", "https://*.example.org", "https://example.org/app", "https://a b",
    "https://me@example.org", "https://example.org:99999", "https://example.org:x", "https://example.org?", "https://",
    "https://bücher.example", "https://[::1", "https://[::g]", "https://example.org\n", "null ", "",
])  # fmt: skip
def test_origins_are_explicit(origin):
    with pytest.raises(callmark.UsageError, match="origins: expected"):
        Gate(origins=[origin])


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("HTTPS://Example.ORG:443", "https://example.org"),
        ("http://localhost:080", "http://localhost"),
        ("http://LocalHost:8000", "http://localhost:8000"),
        ("https://example.org:80", "https://example.org:80"),
        ("http://[0:0:0:0:0:0:0:1]:5000", "http://[::1]:5000"),
        ("chrome-extension://abc", "chrome-extension://abc"),
        ("safari-web-extension://0E3A-4E5C", "safari-web-extension://0E3A-4E5C"),
        ("Capacitor://localhost:8100", "capacitor://localhost:8100"),
        ("file://", "file://"),
        ("null", "null"),
    ],
)
def test_origins_are_taken_as_browsers_write_them(given, sent):
    found = []

    async def asked(origin: str) -> None:
        async def send(message: Any) -> None:
            found.append((message["type"], dict(message.get("headers", ()))))

        async def hello(scope: Any, receive: Any, send: Any) -> None:
            await PlainTextResponse("Hello")(scope, receive, send)

        made: Any = hello
        for layer in reversed(Gate(origins=[given]).middleware()):
            made = layer.cls(made, *layer.args, **layer.kwargs)
        headers = [(b"host", b"localhost"), (b"origin", origin.encode())]
        await made({"type": "http", "method": "GET", "path": "/", "headers": headers}, None, send)

    asyncio.run(asked(sent))
    assert found[0][1][b"access-control-allow-origin"] == sent.encode()
    found.clear()
    asyncio.run(asked(sent + "x"))
    assert b"access-control-allow-origin" not in found[0][1]


@pytest.mark.parametrize(
    ("given", "sent"),
    [("Box", "box:80"), ("2001:DB8::0:5", "[2001:db8::5]:8765"), ("[2001:db8::5]", "[2001:db8::5]"), ("::", "[::]")],
)
def test_names_of_a_server_are_taken_as_clients_write_them(given, sent):
    with served(Gate(hosts=[given])) as server:
        assert ask(server, "GET", "/health", None, {"Host": sent}).status == 200


@pytest.mark.parametrize("name", ["box:8000", "http://box", "a b", "", "[::g]", "*", "bücher"])
def test_names_of_a_server_are_names(name):
    with pytest.raises(callmark.UsageError, match="hosts: expected"):
        Gate(hosts=[name])


def test_a_token_is_wanted():
    with pytest.raises(callmark.UsageError, match="token: expected"):
        Gate(token="a b")  # noqa: S106
    with served(Gate(token="s3cret", origins=[ORIGIN], hosts=["box"])) as server:  # noqa: S106
        assert ask(server, "GET", "/health", None, {"Host": "box:80"}).status == 200
        for given in (None, "Bearer", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "Bearer sécret"):
            headers = {} if given is None else {"Authorization": given}
            response = ask(server, "POST", "/detect", {"text": ""}, {**headers, "Origin": ORIGIN})
            assert problem(response) == "unauthorized"
            assert response.headers["www-authenticate"] == "Bearer"
            assert response.headers["access-control-allow-origin"] == ORIGIN
        assert ask(server, "POST", "/detect", {"text": ""}, {"Authorization": "bearer s3cret"}).status == 200
        url = f"ws://127.0.0.1:{server.port}/ws"
        with connect(url, additional_headers={"Authorization": "Bearer s3cret"}) as talk:
            assert talk.subprotocol is None
        with connect(url, subprotocols=["callmark", "bearer.s3cret"], origin=ORIGIN) as talk:
            assert talk.subprotocol == "callmark"
        for options in ({}, {"subprotocols": ["callmark", "bearer.no"]}):
            with pytest.raises(InvalidStatus) as refused:
                connect(url, **options)
            assert refused.value.response.status_code == 401


def upgrade(headers: dict[str, str]) -> bytes:
    lines = {**headers, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    lines["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    return "".join(["GET /ws HTTP/1.1\r\n", *(f"{key}: {value}\r\n" for key, value in lines.items()), "\r\n"]).encode()


def upgraded(raw: socket.socket) -> None:
    """Make a WebSocket of a connection: what is sent before the server has agreed would be lost."""
    raw.sendall(upgrade({"Host": "localhost"}))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += raw.recv(1)
    assert head.startswith(b"HTTP/1.1 101 ")


def made_from_now_on(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the server's sides of WebSockets, to which each is added that is made from now on."""
    made: list[Any] = []
    begin = WebSocketsSansIOProtocol.connection_made

    def recorded(self, transport):
        made.append(self)
        begin(self, transport)

    monkeypatch.setattr(WebSocketsSansIOProtocol, "connection_made", recorded)
    return made


def test_a_websocket_is_refused_like_anything_else(server, caplog):
    url = f"ws://127.0.0.1:{server.port}/ws"
    for headers, code in (({"Origin": "https://evil"}, "forbidden-origin"), ({"Host": "evil"}, "forbidden-host")):
        with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
            raw.sendall(upgrade({"Host": "localhost", **headers}))
            head, _, body = b"".join(iter(partial(raw.recv, 1000), b"")).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 %d " % KINDS[code].status)
            assert json.loads(body)["error"]["code"] == code
    with connect(url, origin=ORIGIN) as talk:
        talk.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "detect", "params": {"text": ""}}))
        assert json.loads(talk.recv()) == {"jsonrpc": "2.0", "id": 1, "result": {"dialects": []}}
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{server.port}/nothing")
    assert refused.value.response.status_code == 404
    assert json.loads(refused.value.response.body)["error"]["code"] == "unknown-method"
    assert not caplog.records  # none of it is a mistake of the server


def test_a_door_without_the_extension_closes():
    """A server that can answer no WebSocket with a status gets a close."""
    from callmark.serving.problems import ServingError

    sent = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    error = ServingError("forbidden-host", "x")
    asyncio.run(gates.refuse(error, {"type": "websocket", "headers": []}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_routes_of_others_stand_behind_the_gate():
    entered = []

    class Life:
        async def __aenter__(self) -> None:
            entered.append("in")

        async def __aexit__(self, *_: object) -> None:
            entered.append("out")

    async def hello(request: Any) -> PlainTextResponse:
        return PlainTextResponse(f"Hello, {len(await request.body())}")

    async def broken(request: Any) -> PlainTextResponse:
        raise ZeroDivisionError("secret")

    routes = [Route("/v1/hello", hello, methods=["POST"]), Route("/v1/broken", broken)]
    with served(Gate(body_bytes=10), routes=routes, lifespan=lambda app: Life()) as server:
        assert ask(server, "POST", "/v1/hello", b"12345").body == b"Hello, 5"
        assert problem(ask(server, "POST", "/v1/hello", b"x" * 11)) == "too-large"
        assert problem(ask(server, "POST", "/v1/hello", b"", {"Host": "evil.example"})) == "forbidden-host"
        assert problem(ask(server, "GET", "/v1/broken")) == "internal-error"
        chunked = ask(
            server, "POST", "/v1/hello", b"6\r\n123456\r\n6\r\n123456\r\n0\r\n\r\n", {"Transfer-Encoding": "chunked"}
        )
        assert problem(chunked) == "too-large"
    assert entered == ["in", "out"]


# Streams.


def streamed(server: Any, chunks: Any, headers: dict[str, str], query: str = "") -> bytes:
    """Send chunks of a body one by one, and return the body of the answer."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_SECONDS)
    connection.request("POST", f"/parse/stream{query}", iter(chunks), headers, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 200
    body = answer.read()
    connection.close()
    return body


def of_lines(body: bytes) -> list[Any]:
    return [json.loads(line) for line in body.splitlines()]


def test_a_streamed_text_is_answered_as_it_comes(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
        raw.sendall(b"POST /parse/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        answer = raw.makefile("rb")
        while answer.readline() != b"\r\n":
            pass
        for chunk, expected in ((b"Hi ", b'"Hi "'), (b"[CALL: f(a=1", b'"call-start"'), (b")]", b'"call"')):
            raw.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            read = b""
            while expected not in read:
                read += answer.readline()
        raw.sendall(b"0\r\n\r\n")
        while answer.readline() != b"0\r\n":
            pass


def test_streams_come_and_go_in_each_form(server):
    expected = as_wire(joined(callmark.parse(TEXT).events))
    data = TEXT.encode()
    pieces = [data[start : start + 3] for start in range(0, len(data), 3)]  # cut inside characters too
    marked = of_lines(streamed(server, [b"\xef", b"\xbb\xbf[CALL: f()]"], {"Content-Type": "text/plain"}))
    assert [event["type"] for event in marked] == ["call-start", "arguments-delta", "call"]
    cut = of_lines(streamed(server, [b"\xef\xbb"], {"Content-Type": "text/plain"}))
    assert [event["text"] for event in cut] == ["\ufffd"]
    for charset in ("charset=utf-8", 'format=flowed; Charset="UTF-8"'):
        lines = of_lines(streamed(server, pieces, {"Content-Type": f"text/plain; {charset}"}))
        assert again(lines) == expected
    events = streamed(server, pieces, {"Accept": "text/event-stream"})
    assert again([json.loads(block[6:]) for block in events.split(b"\n\n") if block.startswith(b"data: ")]) == expected
    assert events.endswith(b"event: end\ndata: {}\n\n")
    lines = [{"dialects": ["call"]}, *(TEXT[start : start + 3] for start in range(0, len(TEXT), 3))]
    body = "\n".join(map(json.dumps, lines)).encode() + b"\n\n"
    for cut in (1, 7, 1000):
        chunks = [body[start : start + cut] for start in range(0, len(body), cut)]
        assert again(of_lines(streamed(server, chunks, {"Content-Type": "application/x-ndjson"}))) == expected
    assert of_lines(streamed(server, [b"{}"], {"Content-Type": "application/x-ndjson"})) == []
    assert again(of_lines(streamed(server, [body], {"Content-Type": "Application/X-NDJSON"}))) == expected
    assert of_lines(streamed(server, [], {"Content-Type": "application/x-ndjson"})) == []
    found = of_lines(streamed(server, ["😀[CALL: f()]".encode()], {}, '?options={"positions":"utf-16"}'))
    assert found[-1]["span"] == {"start": 2, "end": 13}


def again(events: list[Any]) -> Any:
    """Return events of the wire as values, joined, and on the wire once more: comparable however they were cut."""
    return as_wire(joined([callmark_event(event) for event in events]))


def callmark_event(event: Any) -> Any:
    import msgspec

    return msgspec.convert(event, callmark.Event)


def test_what_goes_wrong_in_a_stream_is_its_last_line():
    with served(bounds=Bounds(stream_characters=10)) as server:
        last = of_lines(streamed(server, [b"012345678", b"9x"], {}))[-1]
        assert last["error"]["code"] == "too-large"
        events = streamed(server, [b"012345678", b"9x"], {"Accept": "text/event-stream"})
        assert b"event: error\ndata: {" in events
        lines = of_lines(streamed(server, [b"{}\n", b'"a"\n', b"7\n"], {"Content-Type": "application/x-ndjson"}))
        assert lines[-1]["error"]["code"] == "invalid-params"


# All cases, through everything.

EXPECTED = {key: callmark.parse(case["input"], **case["options"]).events for key, case in CASES.items()}


@pytest.mark.again
def test_cases_give_the_same_events_over_http(server):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_SECONDS)
    for key, case in CASES.items():
        body = json.dumps({"text": case["input"], **case["options"]})
        connection.request("POST", "/parse", body, {"Content-Type": "application/json"})
        assert json.loads(connection.getresponse().read())["events"] == as_wire(EXPECTED[key]), key
    connection.close()


@pytest.mark.again
def test_cases_give_the_same_events_in_a_streamed_body(server):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_SECONDS)
    for key, case in CASES.items():
        text = case["input"]
        lines = [case["options"], *(text[start : start + 5] for start in range(0, len(text), 5))]
        body = "\n".join(map(json.dumps, lines))
        connection.request("POST", "/parse/stream", body, {"Content-Type": "application/x-ndjson"})
        lines = of_lines(connection.getresponse().read())
        assert as_values(joined([callmark_event(event) for event in lines])) == as_values(joined(EXPECTED[key])), key
    connection.close()


def as_values(events: Any) -> Any:
    return json.dumps([event.to_dict() for event in events])


@pytest.mark.again
def test_cases_give_the_same_events_over_a_websocket(server):
    with connect(f"ws://127.0.0.1:{server.port}/ws", max_size=None) as talk:
        for key, case in CASES.items():
            params = {"text": case["input"], **case["options"]}
            talk.send(json.dumps({"jsonrpc": "2.0", "id": key, "method": "parse", "params": params}))
            answer = json.loads(talk.recv(WAIT_SECONDS))
            assert answer["id"] == key
            assert answer["result"]["events"] == as_wire(EXPECTED[key]), key


# The WebSocket.


def test_a_session_runs_over_a_websocket(server):
    with connect(f"ws://127.0.0.1:{server.port}/ws") as talk:
        tool = {"name": "look", "mode": "read", "parameters": {"properties": {"at": {"type": "string"}}}}
        open_and_run = [
            {"jsonrpc": "2.0", "id": 1, "method": "session/open", "params": {"session": "s", "tools": [tool]}},
            {"jsonrpc": "2.0", "id": 2, "method": "session/run", "params": {"session": "s", "text": "Look."}},
        ]
        for message in open_and_run:
            talk.send(json.dumps(message).encode())  # binary messages are read as well
        answers = iter(["[CALL: look(at=grass)]", "Green."])
        while True:
            message = json.loads(talk.recv(WAIT_SECONDS))
            if message.get("method") == "model/generate":
                talk.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"text": next(answers)}}))
            elif message.get("method") == "tool/invoke":
                talk.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": "green"}))
            elif message.get("id") == 2:
                assert message["result"] == {"outcome": "answer", "answer": "Green."}
                break


def test_a_big_message_is_read_in_a_thread_and_a_bigger_one_ends_it(server):
    with connect(f"ws://127.0.0.1:{server.port}/ws", max_size=None) as talk:
        big = {"jsonrpc": "2.0", "id": 1, "method": "parse", "params": {"text": "x" * 100_000}}
        talk.send(json.dumps(big))
        assert len(json.loads(talk.recv(WAIT_SECONDS))["result"]["events"]) == 1
        talk.send("x" * (16 * 1024 * 1024 + 1))
        with pytest.raises(ConnectionClosed):
            talk.recv(WAIT_SECONDS)


def test_a_grammar_is_made_in_a_thread(server, monkeypatch):
    """That of a tool with a thousand parameters takes seconds."""
    threads = []
    made = callmark.export_grammar

    def recorded(**options):
        threads.append(threading.current_thread())
        return made(**options)

    monkeypatch.setattr(callmark, "export_grammar", recorded)
    monkeypatch.setattr(callmark, "detect", lambda text: threads.append(threading.current_thread()) or ())
    asked = {"detect": {"text": ""}, "grammar": {"tools": ["f"]}}
    with connect(f"ws://127.0.0.1:{server.port}/ws") as talk:
        for method, params in asked.items():
            assert ask(server, "POST", f"/{method}", params).status == 200
            talk.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            assert "result" in json.loads(talk.recv(WAIT_SECONDS))
    loop, also_loop, *others = threads
    assert loop is also_loop
    assert len(others) == 2
    assert loop not in others


def test_a_big_piece_of_a_streamed_text_is_read_in_a_thread(server, monkeypatch):
    """A line of JSON may hold as much as a body; while it is read, others are answered."""
    threads = {}
    feed = Stream.feed

    def recorded(self, chunk):
        threads[len(chunk)] = threading.current_thread()
        return feed(self, chunk)

    monkeypatch.setattr(Stream, "feed", recorded)
    body = b"".join(json.dumps(line).encode() + b"\n" for line in ({}, "x", "y" * 100_000, "z" * 2, "[CALL: f()]"))
    answer = ask(server, "POST", "/parse/stream", body, {"Content-Type": "application/x-ndjson"}).body.splitlines()
    assert json.loads(answer[-1])["span"] == {"start": 100_003, "end": 100_014}
    assert threads[1] is threads[2] is not threads[100_000]


# Clients that are slow, silent or gone.


def open_now(server: Any, kind: str) -> float:
    return server.application.state.metrics.get("callmark_open", kind=kind)


def wait_until(true: Any) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_clients_that_vanish_leave_nothing_behind(server):
    head = b"POST /parse/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[CALL\r\n"
    raws = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
    for raw in raws:
        raw.sendall(head)
    with ExitStack() as open_talks:
        url = f"ws://127.0.0.1:{server.port}/ws"
        talks = [open_talks.enter_context(connect(url, close_timeout=0.1)) for _ in range(5)]
        vanish(server, raws, talks)


def test_a_client_that_vanishes_while_it_asks_is_counted_and_no_mistake(server, caplog):
    def gone() -> float:
        return server.application.state.metrics.get("callmark_requests_total", method="parse", code="gone")

    before = gone()
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        head = b"POST /parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        raw.sendall(head + b"Content-Length: 100\r\n\r\n{")
    wait_until(lambda: gone() == before + 1)
    assert not caplog.records


def vanish(server: Any, raws: list[socket.socket], talks: list[Any]) -> None:
    for talk in talks:
        talk.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/open", "params": {"session": "s"}}))
        talk.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/run", "params": {"session": "s"}}))
        assert json.loads(talk.recv(WAIT_SECONDS))["id"] == 1
    wait_until(lambda: (open_now(server, "stream"), open_now(server, "websocket")) == (5, 5))
    for raw in raws:
        raw.close()
    for talk in talks:
        talk.socket.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: (open_now(server, "stream"), open_now(server, "websocket")) == (0, 0))


def test_who_says_much_at_once_lets_others_have_their_turn():
    """What has come already is read without waiting; a thousand messages of a client must not be one turn of the loop.

    So they were with 200 clients on a busy machine: for half a minute nobody was answered.
    """
    question = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "detect", "params": {"text": ""}})
    come = [{"type": "websocket.receive", "text": question} for _ in range(1_000)]
    messages = iter([{"type": "websocket.connect"}, *come, {"type": "websocket.disconnect", "code": 1000}])
    scope = {"type": "websocket", "path": "/ws", "headers": [(b"host", b"localhost")], "subprotocols": []}
    sent = []

    async def receive():
        return next(messages)

    async def send(message):
        sent.append(message)

    talk = app()({**scope, "query_string": b"", "extensions": {}}, receive, send)
    assert asyncio.run(turns_of_others(talk)) >= 20
    assert len(sent) == 1 + 1_000


def test_only_who_is_silent_is_taken_for_gone(monkeypatch):
    """A pong stands behind what a client sent before it: while that is read, or waits to be, nobody is gone.

    The times at which uvicorn looks are set by hand, in the server's loop.
    """
    made = made_from_now_on(monkeypatch)
    monkeypatch.setattr(WebSocketsSansIOProtocol, "start_keepalive", lambda self: None)
    question = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "detect", "params": {"text": ""}}).encode()
    question = b"\x81" + bytes([0x80 | len(question)]) + b"\0\0\0\0" + question

    def happen(*steps):
        done = threading.Event()
        made[0].loop.call_soon_threadsafe(lambda: (*(step() for step in steps), done.set()))
        assert done.wait(WAIT_SECONDS)

    with served() as server, socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
        upgraded(raw)
        (protocol,) = made
        happen(protocol.send_keepalive_ping)
        assert raw.recv(6, socket.MSG_WAITALL)[:2] == b"\x89\x04"
        raw.sendall(question)
        assert b'"result"' in raw.recv(1000)
        happen(protocol.keepalive_timeout)  # it has said something, if no pong
        assert protocol.ping_timer is not None  # and will be asked again

        def paused():
            protocol.read_paused = True

        happen(protocol.send_keepalive_ping, paused, protocol.keepalive_timeout)  # it is we who do not read
        raw.recv(6, socket.MSG_WAITALL)
        raw.sendall(question)
        assert b'"result"' in raw.recv(1000)
        happen(protocol.send_keepalive_ping, protocol.keepalive_timeout)
        raw.recv(6, socket.MSG_WAITALL)
        assert raw.recv(1000)[2:4] == (1011).to_bytes(2, "big")


def test_bodies_that_do_not_come_are_given_up():
    with served(Gate(body_seconds=0.1, idle_seconds=0.1)) as server:
        for path, kind in (("/parse", b"application/json"), ("/parse/stream", b"application/x-ndjson")):
            with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
                head = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: %b\r\nContent-Length: 9\r\n\r\n{"
                raw.sendall(head % (path.encode(), kind))
                assert raw.recv(1000).startswith(b"HTTP/1.1 408 ")
        with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
            raw.sendall(b"POST /parse/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nHi")
            read = b""
            while b'"too-slow"' not in read:
                read += raw.recv(1000)
        wait_until(lambda: open_now(server, "stream") == 0)


def test_what_is_open_when_the_server_stops_is_told_so(monkeypatch, caplog):
    """uvicorn cancels what is answered still, and logs a traceback of what does not withstand it."""
    monkeypatch.setattr(http, "_GRACE_SECONDS", 0.1)
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: %b\r\nContent-Length: 9\r\n\r\n"
    clients = {}
    with ExitStack() as lines:
        with served() as server:
            for path, kind in ((b"/parse", b"application/json"), (b"/parse/stream", b"text/plain")):
                clients[path] = lines.enter_context(socket.create_connection(("127.0.0.1", server.port), WAIT_SECONDS))
                clients[path].sendall(head % (path, kind) + b"Hi")
            wait_until(lambda: open_now(server, "stream") == 1)
        answers = {path: b"".join(iter(partial(client.recv, 1000), b"")) for path, client in clients.items()}
    assert answers[b"/parse"].startswith(b"HTTP/1.1 503 ")
    assert answers[b"/parse/stream"].startswith(b"HTTP/1.1 200 ")
    assert all(b'"code":"stopping"' in answer for answer in answers.values())
    assert not [record for record in caplog.records if record.exc_info]


def test_an_answer_that_has_begun_when_the_server_stops_breaks_off(monkeypatch, caplog):
    monkeypatch.setattr(http, "_GRACE_SECONDS", 0.1)

    async def endless():
        yield b"It begins"
        await asyncio.sleep(WAIT_SECONDS)

    async def answer(request):
        return StreamingResponse(endless())

    with ExitStack() as lines:
        with served(routes=[Route("/endless", answer)]) as server:
            client = lines.enter_context(socket.create_connection(("127.0.0.1", server.port), WAIT_SECONDS))
            client.sendall(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
            read = b""
            while b"It begins" not in read:
                read += client.recv(1000)
        rest = b"".join(iter(partial(client.recv, 1000), b""))
    assert not rest.endswith(b"0\r\n\r\n")
    assert not [record for record in caplog.records if record.exc_info]


def test_a_message_may_come_in_any_frames(server, monkeypatch):
    made = made_from_now_on(monkeypatch)
    question = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "detect", "params": {"text": "😀[CALL: f()]"}})
    data = question.replace("\\ud83d\\ude00", "😀").encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
        upgraded(raw)
        for kind in (b"\x01", b"\x02"):
            frames = [b"%b\x81\0\0\0\0%c" % (b"\0" if at else kind, byte) for at, byte in enumerate(data)]
            raw.sendall(b"".join(frames))
            wait_until(lambda: len(made[0].__dict__.get("_message", b"")) == len(data))
            assert made[0].frames == []  # of which each would be an object
            raw.sendall(b"\x80\x80\0\0\0\0")
            assert b'{"dialects":["call"]}' in raw.recv(1000)
            assert made[0]._message == b""  # it is not held for as long as the connection lasts


@pytest.mark.parametrize("behind", [b"", b"\x88\x82\0\0\0\0\x03\xe8"])
def test_a_message_that_is_no_utf_8_ends_a_websocket(server, caplog, behind):
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
        upgraded(raw)
        raw.sendall(b"\x01\x81\0\0\0\0{\x80\x81\0\0\0\0\xff" + behind)
        code, told = (1000, b"") if behind else (1007, b"expected text in UTF-8")
        close = bytes([0x88, 2 + len(told)]) + code.to_bytes(2, "big") + told
        assert b"".join(iter(partial(raw.recv, 100), b"")) == close
    wait_until(lambda: open_now(server, "websocket") == 0)
    assert not caplog.records  # it is no mistake of the server


def test_what_answers_pings_is_not_held_for_who_reads_nothing(server, monkeypatch):
    made = made_from_now_on(monkeypatch)
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(WAIT_SECONDS)
        raw.connect(("127.0.0.1", server.port))
        upgraded(raw)
        made[0].transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        for _ in range(16):
            raw.sendall((b"\x89\xfd\0\0\0\0" + b"x" * 125) * 1000)
        raw.sendall(b"\x89\x84\0\0\0\0last")
        wait_until(lambda: b"last" in made[0]._pongs)  # all of it was read
        assert made[0].transport.get_write_buffer_size() < 600_000  # of 2 MB
        told = b""
        while b"\x8a\x04last" not in told:
            told = told[-20:] + raw.recv(1 << 20)


def test_a_head_that_does_not_come_is_given_up(monkeypatch):
    monkeypatch.setattr(protocols, "_HEAD_SECONDS", 0.05)
    with served() as server:
        for sent in (b"", b"GET /health HTTP/1.1\r\nHost:"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
                raw.sendall(sent)
                with suppress(ConnectionError):
                    assert raw.recv(100) == b""
        monkeypatch.undo()
        assert ask(server, "GET", "/health").status == 200


def test_clients_that_read_late_get_everything(server):
    text = "x" * 60_000
    chunk = b"%x\r\n%b\r\n" % (len(text), text.encode())
    head = b"POST /parse/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "detect", "params": {"text": text}}).encode()
    message = b"\x81\xfe" + len(message).to_bytes(2, "big") + b"\0\0\0\0" + message
    calls = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "dialects"}).encode()
    calls = (b"\x81" + bytes([0x80 | len(calls)]) + b"\0\0\0\0" + calls) * 5_000
    for begin, sent, last in (
        (lambda raw: None, head + chunk * 200 + b"0\r\n\r\n", b"\r\n0\r\n\r\n"),
        (upgraded, calls + message, b'{"jsonrpc":"2.0","id":1,"result":{"dialects":[]}}'),
    ):
        with socket.socket() as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.settimeout(WAIT_SECONDS)
            raw.connect(("127.0.0.1", server.port))
            begin(raw)
            before = server.application.state.metrics.text()
            writer = threading.Thread(target=raw.sendall, args=[sent])
            writer.start()
            wait_until(lambda before=before: server.application.state.metrics.text() != before)
            seen = ""
            while seen != (seen := server.application.state.metrics.text()):
                time.sleep(0.3)  # until the server has more to say than is taken, and waits
            tail = b""
            while not tail.endswith(last):
                tail = (tail + raw.recv(1 << 20))[-200:]
            writer.join(WAIT_SECONDS)


def test_a_text_that_goes_on_is_not_given_up():
    with served(Gate(idle_seconds=5)) as server, socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.settimeout(WAIT_SECONDS)
        raw.sendall(b"POST /parse/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nHi")
        time.sleep(0.6)
        raw.sendall(b" y")
        time.sleep(0.6)  # longer than a tenth of the patience: it begins anew
        raw.close()
        wait_until(lambda: open_now(server, "stream") == 0)


def is_cut_off(raw: socket.socket, piece: bytes) -> None:
    with suppress(ConnectionError):
        for _ in range(1_000):
            raw.sendall(piece)
        raise AssertionError("60 MB were taken from a client that reads nothing")


def test_clients_that_do_not_read_are_cut_off(monkeypatch):
    monkeypatch.setattr(protocols, "_SEND_SECONDS", 0.1)
    text = "x" * 60_000
    chunk = b"%x\r\n%b\r\n" % (len(text), text.encode())
    head = b"POST /parse/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "parse", "params": {"text": text}})
    with served() as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
            raw.sendall(head)
            is_cut_off(raw, chunk)
        wait_until(lambda: open_now(server, "stream") == 0)
        with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as raw:
            upgraded(raw)
            frame = b"\x81\xfe" + len(message).to_bytes(2, "big") + b"\0\0\0\0" + message.encode()
            is_cut_off(raw, frame)
        wait_until(lambda: open_now(server, "websocket") == 0)
        assert ask(server, "GET", "/health").status == 200


def test_little_is_held_of_what_nobody_reads_yet():
    """The loop reads all of it in one turn, and others wait; Linux itself holds some 150 KB of a client, and more."""
    listening = Listening(app(), host="127.0.0.1", port=0)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        client.connect(("127.0.0.1", int(listening.url.rpartition(":")[2])))
        client.settimeout(0.5)
        held = 0
        with suppress(TimeoutError):
            while held < 1_000_000:
                held += client.send(bytes(4_096))
    listening.stop()
    listening.run()
    assert 32_768 <= held < 120_000


# The command.


def test_the_command_says_where_it_serves():
    environment = {**os.environ, "CALLMARK_TOKEN": "s3cret"}
    command = [sys.executable, "-m", "callmark", "serve", "--port", "0", "--origin", ORIGIN, "--allow-host", "box"]
    command += ["--message-bytes", "100"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        line = process.stderr.readline()
        assert line.startswith("callmark serves on http://127.0.0.1:")
        server = Served(line.split()[-1], None)
        assert ask(server, "POST", "/detect", {"text": ""}).status == 401
        headers = {"Authorization": "Bearer s3cret", "Host": "box", "Origin": ORIGIN}
        assert ask(server, "POST", "/detect", {"text": ""}, headers).json == {"dialects": []}
        assert ask(server, "POST", "/detect", {"text": "x" * 100}, headers).status == 413
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) in (0, 130)
        assert process.stderr.read() == ""


def test_an_address_that_others_reach_wants_a_token():
    done = run("serve", "--host", "0.0.0.0", "--port", "0")  # noqa: S104  # it is refused
    assert (done.returncode, "expected a --token" in done.stderr) == (2, True)
    for host in ("localhost", "127.0.0.1", "::1"):
        done = run("serve", "--host", host, "--origin", "*")
        assert (done.returncode, "origins: expected" in done.stderr) == (2, True)
    taken = socket.create_server(("127.0.0.1", 0))
    with taken:
        done = run("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "in use" in done.stderr


def test_serving_without_its_packages_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "callmark.serving.http", None)
    done = run("serve")
    assert (done.returncode, "pip install 'callmark[server]'" in done.stderr) == (2, True)


def test_the_load_program_loses_nothing():
    """A few streams for half a second; `python -m benchmarks.load` has 200."""
    from benchmarks.load import measure

    for over in ("http", "websocket"):
        row = measure(over, streams=4, rate=50, seconds=0.5)
        assert (row["lost"], row["chunks/s"]) == (0, 200)


def test_what_the_readme_shows_of_http_is_true(server):
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    ((?:printf .*)?curl (?!.*/v1/).*)\n((?:    .+\n)+)", text, re.MULTILINE)
    assert len(shown) == 2
    for command, expected in shown:
        command = command.replace("http://127.0.0.1:8765", server.url)
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=WAIT_SECONDS, check=True)
        assert done.stdout.splitlines() == [line.strip() for line in expected.splitlines()]
