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
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

import callmark
from callmark.events import Event
from callmark.serving.bounds import DEFAULT_BOUNDS, Bounds
from callmark.serving.gate import PROTOCOL, Gate, failure, refuse
from callmark.serving.methods import METHODS, Method, Nothing, Reading, State
from callmark.serving.metrics import Metrics
from callmark.serving.problems import ServingError
from callmark.serving.rpc import Connection, call
from callmark.serving.schema import Failed, Health, openapi, openrpc
from callmark.serving.streams import Stream
from callmark.serving.texts import decoded, encoded

JSON_LINES: Final = "application/x-ndjson"
EVENT_STREAM: Final = "text/event-stream"
CONNECTIONS: Final = 1_000  # at once; more are refused with 503
_IN_A_THREAD: Final = 65_536  # bytes: reading more than this would hold up other clients for milliseconds
_GRACE_SECONDS: Final = 5  # for requests that are being answered when the server is stopped

_reading: Final = msgspec.json.Decoder(Reading)
_chunk: Final = msgspec.json.Decoder(str)
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
        Route("/parse/stream", ParseStream(server), methods=["POST"]),
        WebSocketRoute("/ws", server.websocket),
    ]
    for method in METHODS.values():
        if method.anywhere:
            verb = "GET" if method.params is Nothing else "POST"
            own.append(Route(f"/{method.name}", server.endpoint(method), methods=[verb]))
    made = Starlette(
        routes=[*own, *routes],
        middleware=server.gate.middleware(),
        exception_handlers={ServingError: _on_problem, HTTPException: _on_http_problem, Exception: _on_mistake},
        lifespan=lifespan,
    )
    made.state.metrics = metrics
    return made


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServingError)  # noqa: S101  # for the type checker
    return failure(error)


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
                    _want(request.headers, "application/json")
                    body = await request.body()
                state = State(self.bounds)
                if len(body) > _IN_A_THREAD:
                    return _json(await asyncio.to_thread(lambda: encoded(call(method, state, body))))
                return _json(encoded(call(method, state, body)))
            except ServingError as error:
                code = error.code
                raise
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
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            data = message["bytes"] if text is None else text.encode()
            self._reading = True
            try:
                if len(data) > _IN_A_THREAD:
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


class ParseStream:
    """`POST /parse/stream`: events while the text comes.

    It is written against ASGI itself: a response class would read the request too, to see whether the client is gone.
    """

    def __init__(self, server: _Server) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, and answer as it comes."""
        counts = self._server.counts
        counts.add("callmark_open", kind="stream")
        code = ""
        try:
            code = await self._read(scope, receive, send)
        finally:
            counts.add("callmark_open", -1, kind="stream")
            counts.add("callmark_requests_total", method="parse/stream", code=code)

    async def _read(self, scope: Scope, receive: Receive, send: Send) -> str:
        """Answer, and return the code of what went wrong."""
        headers = Headers(scope=scope)
        answer = _Answer(send, EVENT_STREAM in headers.get("accept", ""))
        idle = self._server.gate.idle_seconds
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(idle) as patience:
                pieces, stream = await self._opened(scope, headers, receive)
                await answer.begin()
                async for chunk in pieces.chunks():
                    self._server.counts.add("callmark_characters_total", len(chunk))
                    await answer.events(stream.feed(chunk))
                    if loop.time() > (patience.when() or 0.0) - idle * 0.9:  # each time would cost a third of it all
                        patience.reschedule(loop.time() + idle)
                await answer.events(stream.close())
                await answer.end()
        except TimeoutError:
            error = ServingError("too-slow", f"the body was silent for {idle:g} seconds")
        except ServingError as problem:
            error = problem
        except (_GoneError, OSError):
            return "gone"
        else:
            return ""
        if answer.begun:
            await answer.problem(error)
        else:
            await refuse(error, scope, receive, send)
        return error.code

    async def _opened(self, scope: Scope, headers: Headers, receive: Receive) -> tuple[_Pieces, Stream]:
        """Return the body, and the stream that its options ask for."""
        _want(headers, "text/plain", JSON_LINES, absent=True)
        pieces: _Pieces
        if headers.get("content-type", "").startswith(JSON_LINES):
            pieces = lines = _Lines(receive)
            options = await lines.head()
        else:
            pieces = _Pieces(receive)
            options = QueryParams(scope["query_string"]).get("options", "{}").encode()
        given = decoded(options, _reading)
        try:
            stream = Stream(given.options(), given.positions or "code-points", self._server.bounds.stream_characters)
        except callmark.CallmarkError as error:
            raise ServingError("invalid-params", str(error)) from error
        return pieces, stream


class _GoneError(Exception):
    """The client is gone."""


class _Pieces:
    """A body that is text in UTF-8; what is no UTF-8 becomes U+FFFD."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.more = True

    async def piece(self) -> bytes:
        """Return the next piece of the body."""
        message = await self._receive()
        if message["type"] != "http.request":
            raise _GoneError
        self.more = message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body

    async def chunks(self) -> AsyncIterator[str]:
        """Yield the text."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while self.more:
            text = decoder.decode(await self.piece())
            if text:
                yield text
        yield decoder.decode(b"", final=True)


class _Lines(_Pieces):
    """A body of JSON Lines: the options, then chunks."""

    def __init__(self, receive: Receive) -> None:
        super().__init__(receive)
        self._rest = b""

    async def head(self) -> bytes:
        """Return the first line."""
        lines = self._lines()
        return await anext(lines, b"{}")

    async def chunks(self) -> AsyncIterator[str]:
        """Yield the strings."""
        async for line in self._lines():
            yield decoded(line, _chunk)

    async def _lines(self) -> AsyncIterator[bytes]:
        while True:
            line, end, rest = self._rest.partition(b"\n")
            if end:
                self._rest = rest
            elif self.more:
                self._rest += await self.piece()
                continue
            else:
                self._rest = b""
                if not line:
                    return
            if line.strip():
                yield line


class _Answer:
    """The answer to a streamed body, as JSON Lines or as Server-Sent Events."""

    def __init__(self, send: Send, as_events: bool) -> None:
        self._send = send
        self._as_events = as_events
        self.begun = False

    async def begin(self) -> None:
        """Send the head."""
        self.begun = True
        media = EVENT_STREAM if self._as_events else JSON_LINES
        headers = [(b"content-type", media.encode()), (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def events(self, events: Sequence[Event]) -> None:
        """Send events, where there are some."""
        if events:
            form = b"data: %b\n\n" if self._as_events else b"%b\n"
            await self._body(b"".join([form % encoded(event) for event in events]))

    async def problem(self, error: ServingError) -> None:
        """Say what went wrong, and end."""
        told = encoded(Failed(error.problem))
        await self._body(b"event: error\ndata: %b\n\n" % told if self._as_events else told + b"\n")
        await self._send({"type": "http.response.body", "body": b""})

    async def end(self) -> None:
        """Say that this was all."""
        await self._body(b"event: end\ndata: {}\n\n" if self._as_events else b"", more=False)

    async def _body(self, body: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _want(headers: Mapping[str, str], *media: str, absent: bool = False) -> None:
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in media and not (absent and not given):
        raise ServingError("wrong-media-type", f"Content-Type: expected {' or '.join(media)}, found {given!r:.80}")


class Listening:
    """A server that has its address and does not serve yet. Port 0 is any that is free; `url` says which.

    Raises OSError where the address cannot be had.
    """

    def __init__(
        self, application: Starlette, *, host: str, port: int, message_bytes: int = DEFAULT_BOUNDS.message_bytes
    ) -> None:
        self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
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
