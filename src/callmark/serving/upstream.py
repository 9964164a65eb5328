"""Talks to upstreams over HTTP: opens requests, and finds out who takes tools natively.

All that can go wrong on the way becomes an `UpstreamError` with a status and a body in OpenAI's shape; what an upstream
itself answers, errors included, is no error here. Nothing is logged here, and no key is part of any message.

What is no longer wanted is cancelled by anyio's scopes alone: from these httpcore shields its closing of a connection,
from asyncio's cancel it does not, and of 100 clients that vanished one left a connection that was never closed.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote, unquote

import anyio
import anyio.lowlevel
import httpx
import msgspec

from callmark.serving.answers import error_body
from callmark.serving.configuration import Upstream

ANSWER_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of a whole answer that is read for calls."""
PIECES_IN_A_ROW: Final = 16
"""Pieces of a body after which others have their turn, and is looked whether anybody still wants it."""
ASKING_SECONDS: Final = 2.0
"""How long a server is asked about itself: it answers at once, or it is none that can say it."""
KNOWN_SECONDS: Final = 300.0
"""How long is believed what a server says of itself; people change models."""
UNSURE_SECONDS: Final = 10.0
"""How long a server that could not say it is left alone: it is still loading, busy, or wants a key."""

_NOT_SENT: Final = frozenset((
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
    "proxy-authorization", "proxy-connection", "accept-encoding",
    # Whoever serves a browser has checked these; servers that check them themselves would see a page they do not know.
    "origin", "referer", "cookie", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "sec-fetch-user",
))  # fmt: skip
_NOT_TOLD: Final = frozenset((
    b"connection", b"keep-alive", b"transfer-encoding", b"trailer", b"upgrade", b"proxy-authenticate", b"te", b"date",
    b"server", b"set-cookie",
))  # fmt: skip
_BROKE_OFF: Final = re.compile("disconnected|closed connection")
"""In what httpcore and h11 say of a connection that was closed too early, and not of what came over it."""
_PACKED: Final = ("gzip", "deflate", "br", "zstd")
"""Of these the first two are unpacked, though no upstream is asked to pack anything. Some say "utf-8" and the like."""
_BODILESS: Final = (204, 304)
_REFUSED_TOOLS: Final = (400, 404, 422, 500, 501)
_UNSURE: Final = (401, 403, 408, 425, 429, 500, 502, 503, 504)
_KEYS: Final = ("authorization", "x-api-key", "api-key")
_LACKS_TOOLS: Final = re.compile(
    rb"(?:not|n't) (?:\w+ )?(?:support|allow|enable|implement|permit|accept)|requires\b|disabled"
    rb"|extra (?:inputs|fields)"
    rb"|(?:unsupported|unknown|unrecogni[sz]ed|unexpected) (?:request )?(?:param|field|arg|key|option|propert)"
)


_T = TypeVar("_T")
Header: TypeAlias = tuple[bytes, bytes]
"""Of an answer: the name in lower case, and the value, which may be in any encoding."""


class UpstreamError(Exception):
    """No answer came, or none that can be used: `status` and `body` say so to the client."""

    def __init__(self, status: int, message: str, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(message, "upstream_error", code)


def failure(error: Exception) -> UpstreamError:
    """Return what an error of the connection means to a client."""
    if isinstance(error, httpx.TimeoutException):
        return UpstreamError(504, "the upstream did not answer in time", "upstream_timeout")
    if isinstance(error, httpx.LocalProtocolError):
        return UpstreamError(400, "the request has a header that cannot be passed on", "bad_header")
    if isinstance(error, httpx.ConnectError):
        hint = "see that the model's server runs, at the address that the proxy was given"
        return UpstreamError(502, f"there is no connection to the upstream: {error}; {hint}", "upstream_refused")
    if isinstance(error, httpx.DecodingError):
        return UpstreamError(502, f"the upstream's answer is not compressed as it says: {error}", "bad_upstream_answer")
    if isinstance(error, httpx.RemoteProtocolError) and not _BROKE_OFF.search(str(error)):
        return UpstreamError(502, f"the upstream's answer is no HTTP: {error}", "bad_upstream_answer")
    return UpstreamError(502, "the upstream closed the connection before its answer was complete", "upstream_closed")


class UpstreamConnection:
    """The connection to one upstream.

    upstream      where it is, and how long to wait
    pass_authorization   whether a client's own key is sent to it
    clock         seconds, which never go back
    """

    def __init__(
        self, upstream: Upstream, *, pass_authorization: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.upstream = upstream
        self._pass_authorization = pass_authorization
        self._key = upstream.key
        self._clock = clock
        self._takes_tools: dict[str, tuple[bool, float]] = {}
        self._url = httpx.URL(upstream.url.rstrip("/"))
        path = self._url.path.rstrip("/")
        self._base = path
        self._root = path.removesuffix("/v1") if path.endswith("/v1") or not path else None
        timeout = httpx.Timeout(upstream.read_timeout_seconds, connect=upstream.connect_timeout_seconds, pool=None)
        self._extensions = {"timeout": timeout.as_dict()}
        # No client of httpx: that logs whole URLs, and some clients have their key in the query.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._transport = httpx.AsyncHTTPTransport(limits=limits, trust_env=False)

    async def close(self) -> None:
        """Close what is open."""
        await self._transport.aclose()

    def api(self, path: str, query: str = "") -> httpx.URL:
        """Return where a path of the API is, without the `/v1` before it; percent-encoded, as the query is."""
        return self._at(self._base + path, query)

    def url(self, path: str, query: str = "") -> httpx.URL | None:
        """Return where a path of a client's request is at the upstream; None where it is nowhere.

        What is behind `/v1` is behind the upstream's URL; all else is beside its `/v1`. Dots lead nowhere: the path
        that they are resolved to might be neither.
        """
        if any(segment in (".", "..") for segment in unquote(path).split("/")):
            return None
        if path == "/v1" or path.startswith("/v1/"):
            return self.api(path[3:], query)
        return None if self._root is None else self._at(self._root + path, query)

    def _at(self, path: str, query: str) -> httpx.URL:
        raw = f"{path}?{query}" if query else path
        return self._url.copy_with(raw_path=raw.encode("ascii", "ignore"))

    def headers(self, given: Iterable[tuple[str, str]] = ()) -> list[tuple[str, str]]:
        """Return the headers of a request for the upstream."""
        hop = {name.strip().lower() for key, value in given if key == "connection" for name in value.split(",")}
        kept = [(key, value.strip()) for key, value in given if key not in _NOT_SENT and key not in hop]
        kept = [each for each in kept if each != ("authorization", "Bearer")]  # what SillyTavern sends without a key
        if self._key or not self._pass_authorization:
            kept = [(key, value) for key, value in kept if key not in _KEYS]
        if self._key:
            kept.append(("authorization", f"Bearer {self._key}"))
        return [*kept, ("accept-encoding", "identity")]

    @asynccontextmanager
    async def request(
        self, method: str, url: httpx.URL, headers: list[tuple[str, str]], body: bytes
    ) -> AsyncGenerator[httpx.Response, None]:
        """Send a request and give the answer, whose body is still to be read. Raises UpstreamError."""
        try:
            response = await self._sent(method, url, headers, body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise failure(error) from error
        try:
            if not 200 <= response.status_code < 600:
                raise UpstreamError(502, "the upstream's answer has a status that there is not", "bad_upstream_answer")
            yield response
        finally:
            await response.aclose()

    async def _sent(
        self, method: str, url: httpx.URL, headers: list[tuple[str, str]], body: bytes
    ) -> httpx.Response:
        """Return the answer to a request, once its head is there.

        A server may close a connection that idles at any time, also while the next request is on its way. What fails
        on such a one is sent again, by the next connection; on a new one the server had it.
        """
        while True:
            new = False

            async def trace(step: str, _: object) -> None:
                nonlocal new
                new = new or step.startswith("connection.")

            extensions = {**self._extensions, "trace": trace}
            as_sent = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in headers]  # as it was decoded
            made = httpx.Request(method, url, headers=as_sent, content=body, extensions=extensions)
            try:
                return await self._transport.handle_async_request(made)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                if new:
                    raise

    # Who takes tools.

    async def takes_tools(self, model: str, given: Iterable[tuple[str, str]] = ()) -> bool:
        """Whether the server says of itself that it takes tools for a model. Asks it, and believes it for a while.

        given   the headers of a client's request, whose key the server may want
        """
        known = self._takes_tools.get(model)
        if known is not None and self._clock() < known[1]:
            return known[0]
        asking = _Asking(self, [(key, value) for key, value in given if key in _KEYS])
        takes = await asking.takes_tools(model)
        self.learn(model, takes, UNSURE_SECONDS if asking.unsure and not takes else KNOWN_SECONDS)
        return takes

    def learn(self, model: str, takes: bool, seconds: float = KNOWN_SECONDS) -> None:
        """Remember for some time whether tools are taken for a model."""
        if len(self._takes_tools) >= 256:  # names come from clients
            self._takes_tools.clear()
        self._takes_tools[model] = (takes, self._clock() + seconds)


class _Asking:
    """Asks a server about itself. `unsure` is whether it could not answer, which it may a little later."""

    def __init__(self, connection: UpstreamConnection, keys: list[tuple[str, str]]) -> None:
        self.unsure = False
        self._connection = connection
        self._headers = [*connection.headers(keys), ("content-type", "application/json")]

    async def takes_tools(self, model: str) -> bool:
        answers = await together(self._llama_cpp, partial(self._ollama, model), partial(self._lm_studio, model))
        return next((answer for answer in answers if answer is not None), False)

    async def _llama_cpp(self) -> bool | None:
        properties = await self._ask("GET", "/props")
        able = properties.get("chat_template_caps")
        return bool(able.get("supports_tools")) if isinstance(able, Mapping) else None

    async def _ollama(self, model: str) -> bool | None:
        if not isinstance((await self._ask("GET", "/api/version")).get("version"), str):
            return None
        able = (await self._ask("POST", "/api/show", {"model": model})).get("capabilities")
        return "tools" in able if isinstance(able, list) else None

    async def _lm_studio(self, model: str) -> bool | None:
        about = await self._ask("GET", f"/api/v0/models/{quote(model, safe='')}")
        able = about.get("capabilities")
        return "tool_use" in able if isinstance(able, list) and about.get("object") == "model" else None

    async def _ask(self, method: str, path: str, body: Any = None) -> Mapping[str, Any]:
        """Return what a server says of itself; nothing where it says nothing of the kind."""
        url = self._connection.url(path)
        if url is None:
            return {}
        content = msgspec.json.encode(body) if body is not None else b""
        found = None
        try:
            with anyio.move_on_after(ASKING_SECONDS) as asking:
                async with self._connection.request(method, url, self._headers, content) as response:
                    raw = await read_all(pieces_of(response), 1 << 20) if response.is_success else b"{}"
                    self.unsure = self.unsure or response.status_code in _UNSURE
                    found = msgspec.json.decode(raw)
            self.unsure = self.unsure or asking.cancelled_caught
        except UpstreamError:
            self.unsure = True
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
        return found if isinstance(found, dict) else {}


async def together(*questions: Callable[[], Awaitable[_T]]) -> list[_T]:
    """Ask some at once, and return the answers. A question that raises ends them all."""
    answers: dict[int, _T] = {}

    async def ask(number: int, question: Callable[[], Awaitable[_T]]) -> None:
        answers[number] = await question()

    async with anyio.create_task_group() as group:
        for number, question in enumerate(questions):
            group.start_soon(ask, number, question)
    return [answers[number] for number in range(len(questions))]


def told(response: httpx.Response) -> list[Header]:
    """Return the headers that a client is told; who may read an answer in a browser is not the upstream's say."""
    hop = {name.strip() for name in response.headers.get("connection", "").lower().encode().split(b",")}
    if response.status_code in _BODILESS:  # the length is that of another answer, which uvicorn would wait for
        hop.add(b"content-length")
    listed = ((key.lower(), value) for key, value in response.headers.raw)
    return [
        (key, value)
        for key, value in listed
        if key not in _NOT_TOLD and key not in hop and not key.startswith(b"access-control-")
    ]


def refuses_tools(status: int, body: bytes) -> bool:
    """Whether an error says that tools are not taken: Ollama, llama.cpp without Jinja, vLLM without a parser."""
    if status not in _REFUSED_TOOLS:
        return False
    text = body[:4096].lower()
    return b"tool" in text or b"jinja" in text


def lacks_tools(body: bytes) -> bool:
    """Whether an error by which tools are refused is about all requests, and not about what one of them holds."""
    text = body[:4096].lower()
    return _LACKS_TOOLS.search(text) is not None and b"tool_choice" not in text and b"parallel_tool" not in text


async def read_all(pieces: AsyncGenerator[bytes, None], limit: int = ANSWER_LIMIT) -> bytes:
    """Return what is left of a body. Raises UpstreamError where it is longer than `limit` bytes, or breaks off."""
    found: list[bytes] = []
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > limit:
            raise UpstreamError(502, "the upstream's answer is too long", "upstream_answer_too_long")
        found.append(piece)
    return b"".join(found)


async def pieces_of(response: httpx.Response, *, raw: bool = False) -> AsyncGenerator[bytes, None]:
    """Yield the body as it comes; `raw` leaves it encoded as it is. Raises UpstreamError where it breaks off.

    What was compressed twice is not unpacked: a kilobyte of it may be a gigabyte.
    """
    number = 0
    encodings = response.headers.get("content-encoding", "").lower().replace(" ", "").split(",")
    packed = [each for each in encodings if each in _PACKED]
    if not raw and packed and (len(packed) > 1 or packed[0] not in _PACKED[:2]):
        message = f"the upstream's answer is compressed: expected none, gzip or deflate, found {', '.join(packed):.80}"
        raise UpstreamError(502, message, "bad_upstream_answer")
    try:
        async for piece in response.aiter_raw() if raw else response.aiter_bytes():
            # Where the next data is always there already, others wait for a moment like this, and so does a cancel.
            number += 1
            if number % PIECES_IN_A_ROW == 0:
                await anyio.lowlevel.checkpoint()
            yield piece
    except httpx.HTTPError as error:
        raise failure(error) from error
