"""`POST /parse/stream`: a text that is read while it comes, as plain text or JSON Lines, and answered as it is read."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from email.message import Message
from typing import Final

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from callmark.errors import CallmarkError
from callmark.events import Event
from callmark.serving.bounds import Bounds
from callmark.serving.functions import Reading
from callmark.serving.gate import refuse, stopping
from callmark.serving.metrics import Metrics
from callmark.serving.problems import ServingError
from callmark.serving.schema import Failed
from callmark.serving.streams import Stream
from callmark.serving.texts import decoded, encoded

JSON_LINES: Final = "application/x-ndjson"
EVENT_STREAM: Final = "text/event-stream"
IN_A_THREAD: Final = 65_536  # bytes or characters: reading more would hold up other clients for milliseconds

_reading: Final = msgspec.json.Decoder(Reading)
_chunk: Final = msgspec.json.Decoder(str)


def media_type(headers: Mapping[str, str], *media: str, absent: bool = False) -> str:
    """Return the media type of a body, one of `media`; "" where none is said and that is right.

    Raises ServingError for another one, and for a body that is compressed.
    """
    for name, plain in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
        encoding = headers.get(name.lower(), "").lower()
        if not {each.strip() for each in encoding.split(",")} <= {"", plain}:
            raise ServingError("wrong-media-type", f"{name}: expected {plain}, found {encoding!r:.80}")
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in media and not (absent and not given):
        raise ServingError("wrong-media-type", f"Content-Type: expected {' or '.join(media)}, found {given!r:.80}")
    return given


def _check_charset(given: str) -> None:
    """Raise ServingError for text that says of itself that it is no UTF-8: it would be read as one all the same."""
    header = Message()
    header["content-type"] = given
    charset = header.get_content_charset("utf-8")
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise ServingError("wrong-media-type", f"Content-Type: expected charset=utf-8, found {charset!r:.80}")


class ParseStream:
    """Answers with events while the text comes.

    It is written against ASGI itself: a response class would read the request too, to see whether the client is gone.
    """

    def __init__(self, bounds: Bounds, counts: Metrics, idle_seconds: float) -> None:
        self._bounds = bounds
        self._counts = counts
        self._idle = idle_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, and answer as it comes."""
        counts = self._counts
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
        idle = self._idle
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(idle) as patience:
                pieces, stream = await self._opened(scope, headers, receive)
                await answer.begin()
                async for chunk in pieces.chunks():
                    self._counts.add("callmark_characters_total", len(chunk))
                    long = len(chunk) > IN_A_THREAD  # a line of JSON may be as long as a body
                    await answer.events(await asyncio.to_thread(stream.feed, chunk) if long else stream.feed(chunk))
                    if loop.time() > (patience.when() or 0.0) - idle * 0.9:  # each time would cost a third of it all
                        patience.reschedule(loop.time() + idle)
                await answer.events(stream.close())
                await answer.end()
        except TimeoutError:
            error = ServingError("too-slow", f"the body was silent for {idle:g} seconds")
        except asyncio.CancelledError:
            error = stopping()
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
        pieces: _Pieces
        if media_type(headers, "text/plain", JSON_LINES, absent=True) == JSON_LINES:
            pieces = lines = _Lines(receive)
            options = await lines.head()
        else:
            _check_charset(headers.get("content-type", ""))
            pieces = _Pieces(receive)
            options = QueryParams(scope["query_string"]).get("options", "{}").encode()
        given = decoded(options, _reading)
        try:
            stream = Stream(given.options(), given.positions or "code-points", self._bounds.stream_characters)
        except CallmarkError as error:
            raise ServingError("invalid-params", str(error)) from error
        return pieces, stream


class _GoneError(Exception):
    """The client is gone."""


class _Pieces:
    """A body that is text in UTF-8, behind a mark of the byte order or not; what is no UTF-8 becomes U+FFFD."""

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
        mark = "\ufeff"
        while self.more:
            text = decoder.decode(await self.piece())
            if text:
                yield text.removeprefix(mark)
                mark = ""
        yield decoder.decode(b"", final=True)


class _Lines(_Pieces):
    """A body of JSON Lines: the options, then chunks."""

    def __init__(self, receive: Receive) -> None:
        super().__init__(receive)
        self._complete: deque[bytes] = deque()
        self._begun: list[bytes] = []  # the pieces of a line: it is joined once, however many they are

    async def head(self) -> bytes:
        """Return the first line."""
        return (await anext(self._lines(), b"{}")).removeprefix(codecs.BOM_UTF8)

    async def chunks(self) -> AsyncIterator[str]:
        """Yield the strings."""
        async for line in self._lines():
            yield decoded(line, _chunk)

    async def _lines(self) -> AsyncIterator[bytes]:
        while self._complete or self.more:
            while self._complete:
                line = self._complete.popleft()
                if line.strip():
                    yield line
            if self.more:
                self._take(await self.piece())

    def _take(self, piece: bytes) -> None:
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._complete.append(b"".join((*self._begun, line)))
            self._begun.clear()
        self._begun.append(rest)
        if not self.more:
            self._complete.append(b"".join(self._begun))


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
