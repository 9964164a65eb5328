"""Who may ask, and how much: the checks that stand before every path, the proxy's too.

A server on a loopback port can be reached by every web page that its user looks at. So a request whose Host is not
ours is refused (a name that was rebound to 127.0.0.1 comes with its own Host), and so is one whose Origin is not on the
list, WebSockets included, to which CORS does not apply. What a page loads without CORS (an image, a script, a link)
has no Origin, but browsers say that it comes from another site. Programs send neither and are let through.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from callmark.errors import UsageError
from callmark.serving.problems import KINDS, ServingError
from callmark.serving.schema import Failed
from callmark.serving.texts import encoded

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
OPEN_PATHS: Final = ("/health",)  # without a token: nothing is told there
ELSEWHERE: Final = ("cross-site", "same-site")  # in Sec-Fetch-Site: another port of this machine is the same site
BEARER: Final = "bearer."  # before a token among a WebSocket's protocols: a page can set no header
_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[A-Za-z0-9_.~-]+")
_ORIGIN: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>\[[^\]]*\]|[^:\[]*)(?::(?P<port>[0-9]{1,5}))?")
PROTOCOL: Final = "callmark"  # the WebSocket protocol that is chosen where one is asked for


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Who may ask.

    origins        of web pages, such as "https://example.org" or "chrome-extension://..."; "null" for local files
    hosts          names that the header Host may have, beside those of the loopback; without a port
    token          what every request must carry, but for /health: `Authorization: Bearer ...`; "": nothing
    body_bytes     that a request's body may have
    body_seconds   in which a body must have come
    idle_seconds   that a streamed body may be silent
    streaming      the paths whose bodies may take their time
    """

    origins: Sequence[str] = ()
    hosts: Sequence[str] = ()
    token: str = ""
    body_bytes: int = 16 * 1024 * 1024
    body_seconds: float = 30.0
    idle_seconds: float = 600.0
    streaming: Collection[str] = ("/parse/stream",)

    def __post_init__(self) -> None:
        _ = self.sent_origins, self.sent_hosts  # now, and not with the first request
        if not self.token.isascii() or any(char.isspace() for char in self.token):
            raise UsageError("token: expected ASCII characters without blanks")

    @property
    def sent_origins(self) -> tuple[str, ...]:
        """The origins as browsers write them."""
        return tuple(map(_origin, self.origins))

    @property
    def sent_hosts(self) -> tuple[str, ...]:
        """The hosts as clients write them, but for a port; those of the loopback first."""
        return (*LOOPBACK, *map(_host, self.hosts))

    def middleware(self) -> list[Middleware]:
        """Return the checks, the outermost first. CORS is between them, so that a page can read why it was refused."""
        cors = Middleware(
            CORSMiddleware,
            allow_origins=self.sent_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            allow_private_network=True,
            expose_headers=["*"],
        )
        return [Middleware(_Door, gate=self), cors, Middleware(_Stop), Middleware(_Measure, gate=self)]


class _Door:
    """Refuses other hosts and other origins."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._hosts = frozenset(gate.sent_hosts)
        self._origins = frozenset(gate.sent_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            hosts, origins = headers.getlist("host"), headers.getlist("origin")
            if len(hosts) != 1 or _name(hosts[0]) not in self._hosts:
                message = f"Host: expected one of {', '.join(sorted(self._hosts))}, found {', '.join(hosts)!r:.80}"
                await refuse(ServingError("forbidden-host", message), scope, receive, send)
                return
            if not self._origins.issuperset(origins):
                message = f"Origin: {origins[0]!r:.80} is not on the list of this server"
                await refuse(ServingError("forbidden-origin", message), scope, receive, send)
                return
            if not origins and headers.get("sec-fetch-site") in ELSEWHERE:
                message = "Origin: expected one, as a page of another site asks; found none"
                await refuse(ServingError("forbidden-origin", message), scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Stop:
    """Answers what is cancelled, which uvicorn would log with a traceback. An answer that has begun breaks off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = scope["type"] != "http"

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            if not begun:
                await refuse(stopping(), scope, receive, send)


class _Measure:
    """Wants the token, and bounds the size and the time of bodies."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if not self._knows(scope):
            await refuse(
                ServingError("unauthorized", "expected a token: Authorization: Bearer ..."), scope, receive, send
            )
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdigit() and int(declared[:20]) > self._gate.body_bytes:
            await refuse(self._too_large(), scope, receive, send)
            return
        await self._app(scope, self._measured(scope, receive), send)

    def _knows(self, scope: Scope) -> bool:
        token = self._gate.token
        if not token or scope["path"] in OPEN_PATHS:
            return True
        headers = Headers(scope=scope)
        given = [headers.get("authorization", "")]
        if scope["type"] == "websocket":
            offered = headers.get("sec-websocket-protocol", "").split(",")
            given += [
                f"Bearer {each.strip().removeprefix(BEARER)}" for each in offered if each.strip().startswith(BEARER)
            ]
        return any(
            scheme.lower() == "bearer" and hmac.compare_digest(said.strip().encode(), token.encode())
            for scheme, _, said in (each.partition(" ") for each in given)
        )

    def _measured(self, scope: Scope, receive: Receive) -> Receive:
        gate = self._gate
        left = gate.body_bytes
        untimed = scope["path"] in gate.streaming  # who reads it looks at the time
        deadline = asyncio.get_running_loop().time() + gate.body_seconds

        async def measured() -> Message:
            nonlocal left, untimed
            if untimed:
                message = await receive()
            else:
                try:
                    async with asyncio.timeout_at(deadline):
                        message = await receive()
                except TimeoutError as error:
                    raise ServingError("too-slow", "the body did not come within its time") from error
                untimed = not message.get("more_body", False)
            left -= len(message.get("body", b""))
            if left < 0:
                raise self._too_large()
            return message

        return measured

    def _too_large(self) -> ServingError:
        return ServingError("too-large", f"the body: expected at most {self._gate.body_bytes} bytes, found more")


def _name(host: str) -> str:
    """Return the name in a header Host: without its port, in lower case."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def _origin(given: str) -> str:
    """Return an origin as browsers write it, who know no capitals and no port that goes without saying."""
    if given in ("null", "file://"):  # the second is what programs send whose pages are files
        return given
    found = _ORIGIN.fullmatch(given)
    host = _written(found["host"]) if found else ""
    port = int(found["port"] or 0) if found else 0
    if found is None or not host or port > 65_535:
        raise UsageError(f"origins: expected scheme://host or scheme://host:port, found {given!r:.80}")
    scheme = found["scheme"].lower()
    if scheme not in _PORTS:  # an extension's, or a program's: what is behind it is taken as it is
        return f"{scheme}://{given.partition('://')[2]}"
    return f"{scheme}://{host}:{port}" if port and port != _PORTS[scheme] else f"{scheme}://{host}"


def _host(given: str) -> str:
    host = _written(f"[{given}]" if ":" in given and "[" not in given else given)
    if not host:
        raise UsageError(f"hosts: expected a name or an address, without a port, found {given!r:.80}")
    return host


def _written(host: str) -> str:
    """Return a host as clients write it, "" where it is none."""
    if not host.startswith("["):
        return host.lower() if _NAME.fullmatch(host) else ""
    try:
        return f"[{ipaddress.IPv6Address(host[1:-1])}]" if host.endswith("]") else ""
    except ValueError:
        return ""


def failure(error: ServingError) -> Response:
    """Return an error as a response."""
    headers = {"WWW-Authenticate": "Bearer"} if error.code == "unauthorized" else None
    body = encoded(Failed(error.problem))
    return Response(body, KINDS[error.code].status, headers, media_type="application/json")


def stopping() -> ServingError:
    """Return what is told of a request that was cancelled, as the server does with each that it waited for in vain."""
    return ServingError("stopping", "the server is being stopped, and this was not over in time")


async def refuse(error: ServingError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request, or a WebSocket that was not accepted yet, with an error."""
    response = failure(error)
    if scope["type"] == "http":
        await response(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await WebSocket(scope, receive, send).send_denial_response(response)
    else:
        await WebSocket(scope, receive, send).close()
