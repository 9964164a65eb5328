"""The functions over HTTP: JSON endpoints, a text that is read while it comes, and JSON-RPC over a WebSocket.

`app` makes the whole of it, with further routes (a proxy's, say) behind the same gate; `Listening` serves it. Each
answer that is an error has one shape, `{"error": {"code", "message", "type"}}`, whoever refused.
"""

from __future__ import annotations

import asyncio
import codecs
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

import callmark
from callmark.running.preparing import prepared
from callmark.serving.bounds import DEFAULT_BOUNDS, Bounds
from callmark.serving.gate import PROTOCOL, Gate, failure, refuse
from callmark.serving.methods import METHODS, Method, Nothing, State
from callmark.serving.metrics import Metrics
from callmark.serving.parse_stream import IN_A_THREAD, ParseStream, media_type
from callmark.serving.problems import ServingError
from callmark.serving.rpc import Connection, call
from callmark.serving.schema import Health, openapi, openrpc
from callmark.serving.texts import encoded

CONNECTIONS: Final = 1_000  # at once; more are refused with 503
_IN_A_ROW: Final = 16  # messages of a client that are read before others have their turn
_RECEIVED_BYTES: Final = 32_768  # of a client that are held unread: what was held is read in one turn of the loop
_GRACE_SECONDS: Final = 5  # for requests that are being answered when the server is stopped

_NEUTRALIZING: Final = tuple(f'"{name}"'.encode() for name, method in METHODS.items() if method.neutralizes)
_SLOW: Final = tuple(f'"{name}"'.encode() for name, method in METHODS.items() if method.slow)
_SPECIAL: Final = b'"special_tokens"'

_log: Final = logging.getLogger("callmark.serving")

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]


def app(
    *,
    gate: Gate | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
    routes: Sequence[BaseRoute] = (),
    lifespan: Lifespan | None = None,
) -> Starlette:
    """Return the application: callmark's own paths and `routes`, all of them behind `gate`.

    `lifespan` is entered before the first request and left after the last one. `app.state.metrics` counts.
    """
    metrics = Metrics()
    server = _Server(bounds, metrics, gate or Gate())
    own: list[BaseRoute] = [
        Route("/health", server.health),
        Route("/metrics", server.metrics),
        Route("/openapi.json", server.openapi),
        Route("/openrpc.json", server.openrpc),
        Route("/parse/stream", ParseStream(bounds, metrics, server.gate.idle_seconds), methods=["POST"]),
        WebSocketRoute("/ws", server.websocket),
    ]
    for method in METHODS.values():
        if method.anywhere:
            verb = "GET" if method.params is Nothing else "POST"
            own.append(Route(f"/{method.name}", server.endpoint(method), methods=[verb]))
    made = Starlette(
        routes=[*own, *routes, WebSocketRoute("/{path:path}", _on_other_websocket)],
        middleware=server.gate.middleware(),
        exception_handlers={ServingError: _on_problem, HTTPException: _on_http_problem, Exception: _on_mistake},
        lifespan=lifespan,
    )
    made.state.metrics = metrics
    return made


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServingError)  # noqa: S101  # for the type checker
    return failure(error)


async def _on_other_websocket(socket: WebSocket) -> None:
    error = ServingError("unknown-method", f"WebSocket {socket.url.path:.80}: Not Found")
    await refuse(error, socket.scope, socket.receive, socket.send)


_HTTP_CODES: Final = {404: "unknown-method", 405: "wrong-method"}


async def _on_http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # for the type checker
    code = _HTTP_CODES.get(error.status_code, "invalid-request")
    response = failure(ServingError(code, f"{request.method} {request.url.path:.80}: {error.detail}"))
    response.headers.update(error.headers or {})
    return response


async def _on_mistake(request: Request, error: Exception) -> Response:
    return failure(ServingError("internal-error", type(error).__name__))


class _Server:
    """What the endpoints share."""

    def __init__(self, bounds: Bounds, metrics: Metrics, gate: Gate) -> None:
        self.bounds = bounds
        self.counts = metrics
        self.gate = msgspec.structs.replace(gate, body_bytes=min(gate.body_bytes, bounds.message_bytes))
        self._openapi = encoded(openapi())
        self._openrpc = encoded(openrpc())

    async def health(self, request: Request) -> Response:
        return _json(encoded(Health("ok", callmark.__version__)))

    async def metrics(self, request: Request) -> Response:
        return Response(self.counts.text(), media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        return _json(self._openapi)

    async def openrpc(self, request: Request) -> Response:
        return _json(self._openrpc)

    def endpoint(self, method: Method) -> Callable[[Request], Any]:
        """Return what answers a method's path."""

        async def answer(request: Request) -> Response:
            start = time.perf_counter()
            code = ""
            try:
                if method.params is Nothing:
                    body = b"{}"
                else:
                    media_type(request.headers, "application/json")
                    body = (await request.body()).removeprefix(codecs.BOM_UTF8)  # PowerShell's and .NET's begin so
                    if not body.strip():
                        raise ServingError("parse-error", "expected a JSON body, and none came")
                if method.neutralizes:
                    await prepared(special_tokens=_SPECIAL in body)
                state = State(self.bounds)
                if method.slow or len(body) > IN_A_THREAD:
                    return _json(await asyncio.to_thread(lambda: encoded(call(method, state, body))))
                return _json(encoded(call(method, state, body)))
            except ServingError as error:
                code = error.code
                raise
            except ClientDisconnect:
                code = "gone"
                return Response()
            finally:
                self.counts.add("callmark_requests_total", method=method.name, code=code)
                self.counts.add("callmark_seconds_total", time.perf_counter() - start, method=method.name)

        return answer

    async def websocket(self, socket: WebSocket) -> None:
        """Speak JSON-RPC, one message in each of the WebSocket's messages."""
        await socket.accept(PROTOCOL if PROTOCOL in socket.scope["subprotocols"] else None)
        self.counts.add("callmark_open", kind="websocket")
        talk = _Talk(socket, self)
        try:
            await talk.until_gone()
        finally:
            talk.close()
            self.counts.add("callmark_open", -1, kind="websocket")

    def observe(self, name: str, code: str) -> None:
        """Count a request over a WebSocket."""
        self.counts.add("callmark_requests_total", method=name, code=code)


class _Talk:
    """A WebSocket's connection. Messages are sent in their order, one at a time."""

    def __init__(self, socket: WebSocket, server: _Server) -> None:
        self._socket = socket
        self._out: deque[bytes] = deque()
        self._sending = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._flusher: asyncio.Task[bool] | None = None
        self._reading = False  # what is sent now is flushed when the message was read
        self._connection = Connection(
            self._send, bounds=server.bounds, log=_log.info, loop=self._loop, observe=server.observe
        )

    async def until_gone(self) -> None:
        """Answer until the client goes."""
        number = 0
        while True:
            number += 1
            if number % _IN_A_ROW == 0:
                await asyncio.sleep(0)  # neither to receive nor to send waits where it need not
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            data = message["bytes"] if text is None else text.encode()
            in_a_thread = len(data) > IN_A_THREAD or any(name in data for name in _SLOW)
            if not in_a_thread and any(name in data for name in _NEUTRALIZING):
                await prepared(special_tokens=_SPECIAL in data)
            self._reading = True
            try:
                if in_a_thread:
                    await asyncio.to_thread(self._connection.receive, data)
                else:
                    self._connection.receive(data)
            finally:
                self._reading = False
            if not await self._flush():
                return

    def close(self) -> None:
        """Stop what runs for the client."""
        self._connection.close()
        if self._flusher is not None:
            self._flusher.cancel()

    def _send(self, message: bytes) -> None:
        self._out.append(message)
        if not self._reading and (self._flusher is None or self._flusher.done()):
            self._flusher = self._loop.create_task(self._flush())

    async def _flush(self) -> bool:
        """Send what there is, and return whether the client is there."""
        async with self._sending:
            while self._out:
                try:
                    await self._socket.send_text(self._out.popleft().decode())
                except (WebSocketDisconnect, RuntimeError):
                    return False
        return True


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


class Listening:
    """A server that has its address and does not serve yet. Port 0 is any that is free; `url` says which.

    Raises OSError where the address cannot be had.
    """

    def __init__(
        self, application: Starlette, *, host: str, port: int, message_bytes: int = DEFAULT_BOUNDS.message_bytes
    ) -> None:
        self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
        place = f"[{host}]" if ":" in host else host
        self.url = f"http://{place}:{self._socket.getsockname()[1]}"
        import uvicorn

        from callmark.serving.protocols import protocols

        http, websockets = protocols()
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                http=http,
                ws=websockets,
                ws_max_size=message_bytes,
                limit_concurrency=CONNECTIONS,
                access_log=False,
                log_level="warning",
                server_header=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    def run(self) -> None:
        """Serve until interrupted or stopped. What is asked before this is answered then."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Let the clients that are there finish, and stop; from any thread."""
        self._server.should_exit = True
