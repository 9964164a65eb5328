"""Servers on this machine for tests: an upstream that says what its script says, and whatever application is served.

Each runs in a thread of its own, mostly with uvicorn, on a free port of the loopback interface, and stops with its
context.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from callmark.serving.configuration import ProxyConfig, make_config
from callmark.serving.gate import Gate
from callmark.serving.http import app
from callmark.serving.proxy import Proxy


class Server(uvicorn.Server):
    """One that looks often whether it is to stop: uvicorn's own does so ten times a second, and tests have many."""

    async def main_loop(self) -> None:
        while not self.should_exit:
            await asyncio.sleep(0.005)


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an ASGI application and yield its address, without a slash at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, log_level="critical", lifespan="on", timeout_graceful_shutdown=1)
        server = Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                thread.join(0.005)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


class Quiet(BaseHTTPRequestHandler):
    """Answers requests by a method `reply` of the class that is made of it, and prints none."""

    reply: Callable[..., None]

    def do_POST(self) -> None:
        self.reply()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def answered(handler: type[Quiet]) -> Iterator[str]:
    """Serve what a handler answers, and yield the address of its API."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def proxied(upstream: str, /, **options: Any) -> Iterator[str]:
    """Serve the proxy in front of an upstream, with the options of a table `[[upstreams]]`."""
    table = {"upstreams": [{"url": f"{upstream}/v1", **options}]}
    with served_config(make_config(table)) as address:
        yield address


@contextmanager
def served_config(config: ProxyConfig, **gate: Any) -> Iterator[str]:
    proxy = Proxy(config)
    with served(app(gate=Gate(**gate), routes=proxy.routes(), lifespan=proxy.lifespan)) as address:
        yield address


@dataclass
class Answer:
    """What a scripted upstream answers.

    choices    the texts of its choices, in pieces
    reason     why it says that it stops; None: it never says
    wait       awaited before each piece, with the number of pieces so far
    """

    choices: Sequence[Sequence[str]]
    reason: str | None = "stop"
    status: int = 200
    body: bytes | None = None  # instead of all else
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = True
    usage: dict[str, int] | None = field(
        default_factory=lambda: {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    )
    wait: Callable[[int], Any] | None = None
    error: dict[str, Any] | None = None  # as the last event


def says(*texts: str, size: int = 4, **more: Any) -> Answer:
    """Return an answer with these texts as its choices, in pieces of `size` characters."""
    return Answer([[text[at : at + size] for at in range(0, len(text), size)] for text in texts], **more)


class Scripted:
    """An upstream whose model is a function of the request's body.

    requests   the bodies that came in; headers: theirs
    cancelled  how many streams ended because nobody read them any more
    """

    def __init__(self, model: Callable[[dict[str, Any]], Answer]) -> None:
        self.model = model
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.others: list[tuple[str, str, bytes]] = []
        self.cancelled = threading.Semaphore(0)
        self.routes: list[Route] = []

    def app(self) -> Starlette:
        chat = Route("/v1/chat/completions", self.chat, methods=["POST"])
        models = Route("/v1/models", self.models)
        other = Route("/{path:path}", self.other, methods=["GET", "POST", "PUT", "DELETE"])
        return Starlette(routes=[*self.routes, chat, models, other])

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "text-only", "object": "model"}]})

    async def other(self, request: Request) -> Response:
        target = request.scope["raw_path"].decode() + (f"?{request.url.query}" if request.url.query else "")
        self.others.append((request.method, target, await request.body()))
        if request.method == "GET" or "unknown" in target:
            return JSONResponse({"error": "nothing here"}, 404, headers={"access-control-allow-origin": "*"})
        return Response(await request.body(), 201, headers={"x-from": "upstream"}, media_type="text/plain")

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        answer = self.model(body)
        if answer.body is not None:
            headers = {"content-type": "application/json", **answer.headers}
            return Response(answer.body, answer.status, headers=headers)
        if body.get("stream"):
            return StreamingResponse(self._events(body, answer), answer.status, media_type="text/event-stream")
        choices = [
            {"index": n, "message": {"role": "assistant", "content": "".join(pieces)}, "finish_reason": answer.reason}
            for n, pieces in enumerate(answer.choices)
        ]
        return JSONResponse({**_head(body, "chat.completion"), "choices": choices, "usage": answer.usage})

    async def _events(self, body: dict[str, Any], answer: Answer) -> AsyncIterator[str]:
        def event(index: int, delta: dict[str, Any], reason: str | None = None) -> str:
            choice = {"index": index, "delta": delta, "finish_reason": reason}
            return _event({**_head(body, "chat.completion.chunk"), "choices": [choice]})

        try:
            sent = 0
            for number, pieces in enumerate(answer.choices):
                yield event(number, {"role": "assistant", "content": ""})
                for piece in pieces:
                    if answer.wait is not None:
                        await answer.wait(sent)
                    yield event(number, {"content": piece})
                    sent += 1
                if answer.reason is not None:
                    yield event(number, {}, answer.reason)
            if answer.error is not None:
                yield _event({"error": answer.error})
                return
            options = body.get("stream_options") or {}
            if answer.usage is not None and options.get("include_usage"):
                yield _event({**_head(body, "chat.completion.chunk"), "choices": [], "usage": answer.usage})
            if answer.done:
                yield "data: [DONE]\n\n"
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.release()
            raise


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-up", "object": kind, "created": 1_700_000_000, "model": body.get("model", "")}


def _event(data: Any) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def wire(text: str) -> list[Any]:
    """Return the data of the events of a stream as a client sees them, "[DONE]" included; comments are left out."""
    found: list[Any] = []
    for block in text.split("\n\n"):
        data = [line[6:] for line in block.split("\n") if line.startswith("data: ")]
        if data:
            found.append(data[0] if data[0] == "[DONE]" else json.loads("\n".join(data)))
    return found


def joined(chunks: Sequence[Any]) -> dict[int, dict[str, Any]]:
    """Return the messages that the chunks of a stream make, by choice, as strict clients join them.

    Asserts what they rely on: the role first, names and ids once, indexes in order.
    """
    messages: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        if chunk == "[DONE]":
            continue
        assert chunk["object"] == "chat.completion.chunk"
        for choice in chunk["choices"]:
            delta = dict(choice["delta"])
            if choice["index"] not in messages:
                assert delta.pop("role") == "assistant"
                messages[choice["index"]] = {"content": "", "tool_calls": [], "finish_reason": None}
            assert "role" not in delta
            message = messages[choice["index"]]
            assert message["finish_reason"] is None
            message["finish_reason"] = choice["finish_reason"]
            message["content"] += delta.pop("content", "")
            if "reasoning_content" in delta:
                message["reasoning_content"] = message.get("reasoning_content", "") + delta.pop("reasoning_content")
            for piece in delta.pop("tool_calls", ()):
                calls = message["tool_calls"]
                if piece["index"] == len(calls):
                    assert set(piece) == {"index", "id", "type", "function"}
                    assert (piece["type"], piece["function"]["arguments"]) == ("function", "")
                    calls.append({"id": piece["id"], "name": piece["function"]["name"], "arguments": ""})
                else:
                    assert piece["index"] == len(calls) - 1
                    assert set(piece) == {"index", "function"}
                    assert set(piece["function"]) == {"arguments"}
                    calls[-1]["arguments"] += piece["function"]["arguments"]
            assert not delta, delta
    return messages
