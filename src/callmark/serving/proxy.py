"""The proxy: OpenAI's chat API in front of servers whose models only write text.

`/v1/chat/completions` with tools is taught to the model as text and read back as native calls (`chat`, `reply`,
`answers`), or handed to a server that takes tools, whose calls come in the same shape. All other requests are passed on
as they are (`upstream`), to where a model is served. What a client's headers hold goes to the upstream and nowhere
else: the log has the model, the mode and the status of a request.
"""

from __future__ import annotations

import codecs
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
import httpx
import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from callmark.dialects import unregistered
from callmark.nonces import new_nonce
from callmark.running.preparing import prepared
from callmark.running.server_events import EventDecoder, EventLimitError
from callmark.serving.answers import (
    NO_JSON,
    TOO_DEEP,
    StreamWriter,
    beginning,
    error_body,
    error_in,
    json_of,
    whole,
)
from callmark.serving.chat import Body, Exchange, RequestError, checked, concerns_tools, handed, taught
from callmark.serving.configuration import ProxyConfig, Upstream
from callmark.serving.problems import ServingError
from callmark.serving.relay import JSON_HEADER, STREAM_HEADERS, Answer, Relay, error_event
from callmark.serving.texts import decoded, encoded
from callmark.serving.upstream import (
    Header,
    UpstreamConnection,
    UpstreamError,
    lacks_tools,
    pieces_of,
    read_all,
    refuses_tools,
    together,
    told,
)

ERROR_LIMIT: Final = 1 << 20
"""Bytes of an upstream's error that are passed on."""
LISTING_SECONDS: Final = 5.0
"""How long one of several upstreams may take to list its models, for which the others' are waiting."""
LONG_BYTES: Final = 16_384
"""Of a request that is taught in a thread: some ten turns of a conversation, which take some ten milliseconds."""
_CHATS: Final = ("/v1/chat/completions", "/chat/completions")
_ABOUT: Final = "/v1/models/"
_SLASHES: Final = re.compile("/{2,}")
_EVENT_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
_UNDECIDED: Final = tuple(field[:-1] for field in _EVENT_FIELDS)  # what begins so may still be one
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_log = logging.getLogger("callmark.proxy")
_any: Final = msgspec.json.Decoder(Any)


class Proxy:
    """Serves `config`. Its routes work while `lifespan` is entered; `app(routes=..., lifespan=...)` takes both.

    Who may ask, and how much, is the gate's affair, which stands before all paths. Raises UsageError where the
    environment has not the key that an upstream is to get.

    >>> from callmark.serving.configuration import make_config
    >>> proxy = Proxy(make_config({"upstreams": [{"url": "http://127.0.0.1:5001/v1"}]}))
    >>> [route.path for route in proxy.routes()]
    ['/v1/chat/completions', '/chat/completions', '/v1/models', '/{path:path}']
    """

    def __init__(self, config: ProxyConfig) -> None:
        self.config = config
        _ = [upstream.key for upstream in config.upstreams]  # now, and not when the server has been started
        self._nonce = new_nonce()
        self._connections: dict[int, UpstreamConnection] = {}

    @asynccontextmanager
    async def lifespan(self, _: Starlette | None = None) -> AsyncGenerator[None, None]:
        """Open connections to the upstreams, and close them at the end: of an application, or of a block."""
        self._teachers = anyio.CapacityLimiter(1)  # more threads would take the loop its turns
        for upstream in self.config.upstreams:
            connection = UpstreamConnection(upstream, pass_authorization=self.config.pass_authorization)
            self._connections[id(upstream)] = connection
        try:
            yield
        finally:
            for connection in self._connections.values():
                await connection.close()
            self._connections.clear()

    def routes(self) -> list[Route]:
        """Return the routes; the last one takes every path, so it comes behind all others of an application."""
        return [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/{path:path}", self._other, methods=_METHODS),
        ]

    # Requests.

    async def _chat(self, request: Request) -> Response:
        started = time.monotonic()
        try:
            raw = await request.body()
        except ClientDisconnect:
            return _refused(400, "the request was not complete", code="request_incomplete")
        try:
            raw = raw.removeprefix(codecs.BOM_UTF8)
            body = checked(_decoded(raw))
        except RequestError as error:
            return _refused(400, str(error), param=error.param)
        model = body.get("model") or ""
        connection = self._connection(self.config.upstream_for(model))
        opened = self._answered(request, connection, body, raw, started)
        return self._relay(opened, connection, events=body.get("stream") is True)

    async def _models(self, request: Request) -> Response:
        """Pass on what the upstream has, or put together what several have, each model where requests for it go."""
        if len(self.config.upstreams) == 1:
            return await self._other(request)

        @asynccontextmanager
        async def merged() -> AsyncGenerator[Answer, None]:
            found = await together(
                *(partial(self._listed, self._connection(each), request) for each in self.config.upstreams)
            )
            errors = [each for each in found if isinstance(each, UpstreamError)]
            if len(errors) == len(found):
                raise errors[0]
            listed = zip(self.config.upstreams, found, strict=True)
            data = {
                model["id"]: model
                for upstream, each in listed
                for model in (each if isinstance(each, list) else ())
                if isinstance(model, dict) and isinstance(model.get("id"), str)
                if self.config.upstream_for(model["id"]) is upstream
            }
            yield Answer(200, [JSON_HEADER], _once(encoded({"object": "list", "data": [*data.values()]})))

        return self._relay(merged(), self._connection(self.config.upstreams[0]), events=False)

    async def _listed(self, connection: UpstreamConnection, request: Request) -> list[Any] | UpstreamError:
        url = connection.api("/models")
        headers = connection.headers(request.headers.items())
        with anyio.move_on_after(LISTING_SECONDS):
            try:
                async with connection.request("GET", url, headers, b"") as response:
                    found = _object(await read_all(pieces_of(response))).get("data") if response.is_success else None
            except UpstreamError as error:
                return error
            return found if isinstance(found, list) else []
        return UpstreamError(504, "the upstream did not answer in time", "upstream_timeout")

    async def _other(self, request: Request) -> Response:
        if request.method == "POST" and _SLASHES.sub("/", request.scope["path"]).rstrip("/") in _CHATS:
            return await self._chat(request)  # who has an address that ends in a slash has one too many
        try:
            raw = await request.body()
        except ClientDisconnect:
            return _refused(400, "the request was not complete", code="request_incomplete")
        model = ""
        if request.scope["path"].startswith(_ABOUT):
            model = request.scope["path"].removeprefix(_ABOUT)
        elif len(self.config.upstreams) > 1 and "json" in request.headers.get("content-type", ""):
            with suppress(RequestError):
                found = _decoded(raw)
                model = found.get("model", "") if isinstance(found, dict) else ""
        connection = self._connection(self.config.upstream_for(model if isinstance(model, str) else ""))
        url = connection.url(_path(request), request.url.query)
        if url is None:
            return _refused(404, "there is no such path", code="not_found")
        opened = self._passed(connection, request, url, raw)
        return self._relay(opened, connection, events=False)

    def _connection(self, upstream: Upstream) -> UpstreamConnection:
        return self._connections[id(upstream)]

    def _relay(self, opened: Any, connection: UpstreamConnection, *, events: bool) -> Relay:
        upstream = connection.upstream
        return Relay(
            opened,
            events=events,
            keep_alive_seconds=upstream.keep_alive_seconds,
            client_timeout_seconds=upstream.client_timeout_seconds,
        )

    # Answers.

    @asynccontextmanager
    async def _passed(
        self, connection: UpstreamConnection, request: Request, url: httpx.URL, raw: bytes
    ) -> AsyncGenerator[Answer, None]:
        """Pass a request and its answer on as they are."""
        headers = connection.headers(request.headers.items())
        async with connection.request(request.method, url, headers, raw) as response:
            yield _as_it_is(response)

    @asynccontextmanager
    async def _answered(
        self, request: Request, connection: UpstreamConnection, body: Body, raw: bytes, started: float
    ) -> AsyncGenerator[Answer, None]:
        """Answer a chat: natively where that is the mode, or "auto" and the server takes tools; else as text."""
        url = connection.api("/chat/completions")
        headers = connection.headers(request.headers.items())
        model = body.get("model") or ""
        settings = connection.upstream.settings_for(model)
        auto = settings.mode == "auto"
        if not concerns_tools(body):
            async with connection.request("POST", url, headers, raw) as response:
                _say(model, "as it is", response.status_code, started)
                yield _as_it_is(response, handed(body, settings))
            return
        refused: Answer | None = None  # by the server, natively
        old = body.get("functions") or body.get("function_call")  # which servers do not know
        if settings.mode == "native" or (auto and not old and await connection.takes_tools(model, headers)):
            exchange = handed(body, settings)
            content = raw if exchange.body is body else encoded(exchange.body)
            async with connection.request("POST", url, headers, content) as response:
                refusal = b"" if response.is_success else await read_all(pieces_of(response), ERROR_LIMIT)
                if not (auto and refuses_tools(response.status_code, refusal)):
                    _say(model, "native", response.status_code, started)
                    yield await _read(response, refusal, exchange)
                    return
                refused = await _read(response, refusal, exchange)
            if lacks_tools(refusal):
                connection.learn(model, False)
        await prepared(unregistered(settings.row), special_tokens=True)
        try:
            teach = partial(taught, body, settings, self._nonce)
            long = len(raw) >= LONG_BYTES
            exchange = await anyio.to_thread.run_sync(teach, limiter=self._teachers) if long else teach()
            content = msgspec.json.encode(exchange.body)
        except (RequestError, RecursionError) as error:
            if refused is not None:
                _say(model, "native", refused.status, started)
                yield refused
                return
            if isinstance(error, RequestError):
                raise _RefusedError(str(error), error.param) from error
            raise _RefusedError("body: expected values that are nested less deep", None) from error
        async with connection.request("POST", url, headers, content) as response:
            refusal = b"" if response.is_success else await read_all(pieces_of(response), ERROR_LIMIT)
            _say(model, "text", response.status_code, started)
            yield await _read(response, refusal, exchange)


class _RefusedError(UpstreamError):
    """A request that is wrong: nothing was sent."""

    def __init__(self, message: str, param: str | None) -> None:
        super().__init__(400, message, "")
        self.body = error_body(message, "invalid_request_error", None, param)


async def _read(response: httpx.Response, refusal: bytes, exchange: Exchange) -> Answer:
    """Return an answer with the calls that it holds, as the client is to get them."""
    if not response.is_success:
        return Answer(response.status_code, _plain(response), _once(refusal))
    head = _plain(response, body=False)
    now = int(time.time())
    if not exchange.streamed:
        answer = _completion(await read_all(pieces_of(response)))
        try:
            made = encoded(whole(answer, exchange, now))
        except RecursionError as error:
            raise UpstreamError(502, TOO_DEEP["error"]["message"], TOO_DEEP["error"]["code"]) from error
        return Answer(200, [*head, JSON_HEADER], _once(made))
    writer = StreamWriter(exchange, now)
    first, rest = await _begun(response)
    if _are_events(first, response.headers.get("content-type", "")):
        pieces = _streamed(first, rest, writer)
    else:
        pieces = _once(writer.feed_whole(_completion(first + await read_all(rest))))
    return Answer(200, [*head, *STREAM_HEADERS], pieces, events=True)


def _say(model: str, mode: str, status: int, started: float) -> None:
    _log.info("chat of %.80r: %s, status %d after %.3f s", model, mode, status, time.monotonic() - started)


async def _begun(response: httpx.Response) -> tuple[bytes, AsyncGenerator[bytes, None]]:
    """Return the beginning of an answer, as soon as it tells whether events follow, and what follows it.

    A mark of UTF-8 and white space before it are left out.
    """
    rest = pieces_of(response)
    head = b""
    marked = False  # whether the mark was there
    async for piece in rest:
        head = (head + piece).lstrip()  # some servers send blanks for as long as they think
        if not marked and head.startswith(codecs.BOM_UTF8):
            marked = True
            head = head.removeprefix(codecs.BOM_UTF8).lstrip()
        if not codecs.BOM_UTF8.startswith(head) and not any(each.startswith(head) for each in _UNDECIDED):
            break
    return head, rest


def _are_events(head: bytes, media_type: str) -> bool:
    """Whether an answer is a stream of events: what servers say of their answers is often wrong, in both ways."""
    return head.startswith(_EVENT_FIELDS) or (
        "event-stream" in media_type.lower() and not head.startswith(b"{")
    )


async def _streamed(
    head: bytes, rest: AsyncGenerator[bytes, None], writer: StreamWriter
) -> AsyncGenerator[bytes, None]:
    """Yield the events for the client; stop reading when nothing of what follows is wanted."""
    decoder = EventDecoder()
    piece: bytes | None = head
    try:
        while piece is not None:
            out = writer.feed(decoder.feed(piece))
            if out:
                yield out
            if writer.done:
                return
            piece = await anext(rest, None)
        last = writer.feed(decoder.finish())
        yield last + writer.finish(complete=False)
    except UpstreamError as error:
        yield writer.fail(error.body)
    except EventLimitError:
        too_long = UpstreamError(502, "the upstream sent an event that is too long", "upstream_event_too_long")
        yield writer.fail(too_long.body)


def _as_it_is(response: httpx.Response, exchange: Exchange | None = None) -> Answer:
    """Return an answer as it is. Events are unpacked and of any length: comments may have to stand between them.

    `exchange` is the chat that it is of.
    """
    if "text/event-stream" in response.headers.get("content-type", "").lower():
        return Answer(response.status_code, _plain(response), pieces_of(response), events=True)
    late = error_event(pieces_of(response))
    if exchange is not None and response.is_success:
        late = _late(response, exchange)
    return Answer(response.status_code, told(response), pieces_of(response, raw=True), late=late)


async def _late(response: httpx.Response, exchange: Exchange) -> AsyncGenerator[bytes, None]:
    """Yield an answer that is not called a stream as one, for a client that was told that it would be."""
    first, rest = await _begun(response)
    if _are_events(first, ""):
        yield first
        async for piece in rest:
            yield piece
    else:
        yield StreamWriter(exchange, int(time.time())).feed_whole(_completion(first + await read_all(rest)))


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


def _plain(response: httpx.Response, *, body: bool = True) -> list[Header]:
    """Return the headers of an answer whose body is another now: decoded, and of another length."""
    changed = (b"content-length", b"content-encoding", *(() if body else (b"content-type", b"cache-control")))
    return [(key, value) for key, value in told(response) if key not in changed]


def _decoded(raw: bytes) -> Any:
    if not raw.strip():
        raise RequestError("expected a JSON body, and none came")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        try:
            text = json.dumps(decoded(raw, _any), ensure_ascii=False)
        except (ServingError, RecursionError):
            raise RequestError(f"body: expected JSON: {error}") from error
    return msgspec.json.decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))  # halves are U+FFFD


def _object(raw: bytes) -> Body:
    """Return an upstream's answer. Raises UpstreamError where it is none."""
    found = json_of(raw)
    if found is NO_JSON:
        message = f"the upstream's answer is no JSON: it {beginning(raw)}"
        raise UpstreamError(502, message, "bad_upstream_answer")
    if not isinstance(found, dict):
        raise UpstreamError(502, "the upstream's answer is no JSON object", "bad_upstream_answer")
    return found


def _completion(raw: bytes) -> Body:
    """Return a whole answer with choices. Raises UpstreamError for any other; some servers send errors with 200."""
    found = _object(raw)
    error = error_in(found)
    if error is not None:
        status = error["error"].get("code")
        failed = UpstreamError(status if isinstance(status, int) and 400 <= status < 600 else 502, "", "")
        failed.body = error
        raise failed
    choices = found.get("choices")
    if not isinstance(choices, list) or not any(isinstance(choice, Mapping) for choice in choices):
        raise UpstreamError(502, "the upstream's answer has no choices", "bad_upstream_answer")
    return found


def _path(request: Request) -> str:
    """Return the path as the client wrote it, percent-encoded."""
    raw = request.scope.get("raw_path")
    return raw.decode("ascii", "ignore") if isinstance(raw, bytes) else request.url.path


def _refused(status: int, message: str, *, param: str | None = None, code: str | None = None) -> Response:
    body = error_body(message, "invalid_request_error", code, param)
    return Response(msgspec.json.encode(body), status, media_type="application/json")
