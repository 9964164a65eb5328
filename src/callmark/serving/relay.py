"""Sends an answer that is still being made: to a client that may be slow, silent or gone.

A client that goes away ends the work at once, upstream included; one that takes nothing for long is given up. While an
event stream is silent, comments say that it is still there, also before the upstream has said anything: then the
status is 200, and what goes wrong later is an error event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Final, NamedTuple

import anyio
import msgspec
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from callmark.serving.answers import event
from callmark.serving.upstream import Header, UpstreamError, read_all

LATE_LIMIT: Final = 1 << 20
"""Bytes of an error that is told as an event."""
COMMENT: Final = b": keep-alive\n\n"
JSON_HEADER: Final = (b"content-type", b"application/json")
STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # for servers in front of this one that collect answers
)


class Answer(NamedTuple):
    """What a client gets: status, headers, and the body as it is made. `events` is whether it is an event stream.

    `late` is what it gets of one that is none, where a stream was said to come already; None: the body as an error.
    """

    status: int
    headers: Sequence[Header]
    pieces: AsyncGenerator[bytes, None]
    events: bool = False
    late: AsyncGenerator[bytes, None] | None = None


class Relay(Response):
    """Sends an `Answer`.

    opened              gives the answer, as a context in which its pieces can be read
    events              whether the client waits for an event stream
    keep_alive_seconds  of silence after which a comment is sent
    client_timeout_seconds   how long a client may take for what it is sent
    """

    def __init__(
        self,
        opened: AbstractAsyncContextManager[Answer],
        *,
        events: bool,
        keep_alive_seconds: float,
        client_timeout_seconds: float,
    ) -> None:
        super().__init__()
        self._opened = opened
        self._events = events
        self._keep_alive = keep_alive_seconds
        self._client_timeout = client_timeout_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, until it or the client is at its end."""
        line = _Line(send, self._client_timeout)
        wanted = anyio.CancelScope()  # not the task's own: httpcore's closing withstands this one alone
        work = asyncio.ensure_future(_within(wanted, self._work(line)))
        watchers = [asyncio.ensure_future(_gone(receive)), asyncio.ensure_future(line.stalled())]
        if self._events:
            watchers.append(asyncio.ensure_future(line.keep_alive(self._keep_alive)))
        ends = [work, *watchers[:2]]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            wanted.cancel()
            for task in watchers:
                task.cancel()
            await asyncio.gather(*watchers, return_exceptions=True)  # a comment to a client that is gone may fail
            await asyncio.wait((work,))
        if (error := work.exception()) is not None and not isinstance(error, OSError):
            raise error

    async def _work(self, line: _Line) -> None:
        try:
            async with self._opened as answer:
                pieces = answer.pieces
                if not line.started:
                    await line.start(answer.status, answer.headers, events=answer.events)
                elif not answer.events:  # 200 and a stream were said already
                    pieces = answer.late or error_event(answer.pieces)
                async with aclosing(pieces):
                    async for piece in pieces:
                        await line.send(piece)
        except UpstreamError as error:
            if line.started:
                if not line.events:
                    raise OSError("the answer broke off") from error  # the connection is closed: no body is complete
                await line.send((b"" if line.whole else b"\n\n") + event(error.body))
            else:
                body = msgspec.json.encode(error.body)
                await line.start(error.status, [JSON_HEADER], events=False)
                await line.send(body)
        await line.end()


async def _within(scope: anyio.CancelScope, work: Coroutine[Any, Any, None]) -> None:
    with scope:
        await work


async def error_event(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield an error that came too late for its status as an event."""
    async with aclosing(pieces):
        body = await read_all(pieces, LATE_LIMIT)
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict) or "error" not in found:
        found = {"error": {"message": body[:2000].decode("utf-8", "replace"), "type": "upstream_error", "code": None}}
    yield event(found)


async def _gone(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


class _Line:
    """The way to a client: one message at a time, and when the last one was sent."""

    def __init__(self, send: Send, timeout: float) -> None:
        self.started = False
        self.events = False
        self._send = send
        self._timeout = timeout
        self._turn = asyncio.Lock()
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._sent = self._clock()
        self._since: float | None = None  # when what is being sent began to be
        self.whole = True  # whether a comment may stand here: between two events

    async def start(self, status: int, headers: Sequence[Header], *, events: bool) -> None:
        self.started, self.events = True, events
        async with self._turn:
            await self._put({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def send(self, piece: bytes) -> None:
        async with self._turn:
            self.whole = piece.endswith((b"\n\n", b"\r\n\r\n"))
            await self._put({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        async with self._turn:
            await self._put({"type": "http.response.body", "body": b"", "more_body": False})

    async def _put(self, message: Message) -> None:
        self._since = self._clock()
        await self._send(message)
        self._sent, self._since = self._clock(), None

    async def stalled(self) -> None:
        """Return when the client has taken nothing for too long."""
        while True:
            await asyncio.sleep(self._timeout / 4)
            if self._since is not None and self._clock() - self._since >= self._timeout:
                return

    async def keep_alive(self, seconds: float) -> None:
        """Send a comment after each silence of so many seconds, as long as this is not cancelled."""
        while True:
            await asyncio.sleep(max(self._sent + seconds - self._clock(), seconds / 8))
            if self._turn.locked() or self._clock() - self._sent < seconds:
                continue
            if not self.started:
                await self.start(200, STREAM_HEADERS, events=True)
            if self.events and self.whole:
                await self.send(COMMENT)
