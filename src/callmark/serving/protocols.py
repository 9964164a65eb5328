"""uvicorn's protocols for HTTP and WebSocket, with the bounds and the haste that they lack."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final, cast

from callmark.serving.gate import failure
from callmark.serving.problems import ServingError

_HEAD_BYTES: Final = 65_536  # of a request's line and headers
_HEAD_SECONDS: Final = 15.0  # in which they must have come
_PROPOSAL: Final = (b"upgrade", b"http2-settings")  # headers by which another protocol is proposed
_SEND_SECONDS: Final = 30.0  # in which a client must take what is held for it, some 50 KB


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Together:
    """A transport that writes once what is written to it in one turn of the loop.

    Messages come in heaps where there are many streams, and to write each answer by itself takes more time than to
    make it: of 53 microseconds a chunk (`python -m benchmarks.load`) 38 were left.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._pieces:
            asyncio.get_running_loop().call_soon(self._flush)
        self._pieces.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.write(b"".join(pieces))


class _Patience:
    """Cuts a connection off when a time is over."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float, transport: Any) -> None:
        self.end()
        self._timer = asyncio.get_running_loop().call_later(seconds, transport.abort)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class _Taken:
    """The part of a protocol that cuts a client off which takes nothing of what it is sent."""

    transport: Any

    def connection_made(self, transport: Any) -> None:
        self._reader = _Patience()
        super().connection_made(transport)  # type: ignore[misc]  # of the protocol that this is a part of; so below

    def connection_lost(self, exc: Exception | None) -> None:
        self._reader.end()
        super().connection_lost(exc)  # type: ignore[misc]

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        self._reader.begin(_SEND_SECONDS, self.transport)

    def resume_writing(self) -> None:
        self._reader.end()
        super().resume_writing()  # type: ignore[misc]


def protocols() -> tuple[type[asyncio.Protocol], type[asyncio.Protocol]]:
    """Return uvicorn's protocols for HTTP and WebSocket, with bounds that they do not have.

    A client may neither say little of a head for ever nor much of it at once, and one that takes nothing of what it is
    sent is cut off: what is written for it would be held without end.
    """
    from httptools import HttpParserUpgrade, HttpRequestParser
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    class Http(_Taken, HttpToolsProtocol):
        """Passes over a proposal of any other protocol than WebSocket: Java's client proposes HTTP/2 with each request.

        llhttp takes all that follows such a head for the other protocol's. So the head is read again without it.
        """

        _in_head = True
        _head_bytes = 0
        _declined = False  # the head that was read proposes what nobody speaks here
        _behind = 0  # that head, in what was received last

        def connection_made(self, transport: Any) -> None:
            self._head = _Patience()
            super().connection_made(transport)
            self._head.begin(_HEAD_SECONDS, transport)

        def connection_lost(self, exc: Exception | None) -> None:
            self._head.end()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._in_head = True
            self._head_bytes = 0
            self._head.begin(_HEAD_SECONDS, self.transport)

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._head.end()
            self._declined = (
                self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT" and not self._should_upgrade()
            )
            if not self._declined:
                super().on_headers_complete()

        def on_message_complete(self) -> None:
            if not self._declined:
                super().on_message_complete()

        def _unsupported_upgrade_warning(self) -> None:
            """Note where the other protocol would begin; uvicorn says it, which is in the middle of an exception."""
            upgrade = sys.exception()
            self._behind = upgrade.args[0] if isinstance(upgrade, HttpParserUpgrade) else 0

        def _plain_head(self) -> bytes:
            """Return the head that was read, without its proposal."""
            lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
            for name, value in self.headers:
                if name == b"connection":
                    value = b",".join(each for each in value.split(b",") if each.strip().lower() not in _PROPOSAL)
                if name not in _PROPOSAL:
                    lines.append(b"%b: %b" % (name, value))
            return b"\r\n".join((*lines, b"", b""))

        def data_received(self, data: bytes) -> None:
            self._head_bytes += len(data)
            super().data_received(data)
            while self._declined:
                self._declined = False
                head, data = self._plain_head(), data[self._behind :]
                self.parser = HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
                super().data_received(head)
                super().data_received(data)
            if self._in_head and self._head_bytes > _HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")

        def send_400_response(self, msg: str) -> None:
            answer = failure(ServingError("invalid-request", msg))
            head = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n"
            fields = b"".join(b"%b: %b\r\n" % field for field in answer.raw_headers)
            self.transport.write(b"".join((head, fields, b"\r\n", answer.body)))
            self.transport.close()

    class WebSockets(_Taken, WebSocketsSansIOProtocol):
        """Takes a client for gone that answers no ping and says nothing else either.

        A pong stands behind all that was sent before it, so uvicorn would end the clients of a server that is behind.
        """

        _heard = False  # since the last ping
        _message: bytearray  # that comes in several frames
        _pongs = b""  # that wait until the client takes what it is sent

        def connection_made(self, transport: Any) -> None:
            super().connection_made(cast(asyncio.BaseTransport, _Together(transport)))

        async def send(self, message: Any) -> None:
            await super().send(message)
            if self.initial_response is not None and self.close_sent:
                self.handshake_complete = True  # uvicorn logs that it is not, as a mistake of the program

        def data_received(self, data: bytes) -> None:
            self._heard = True
            super().data_received(data)

        def handle_cont(self, event: Any) -> None:
            if self.frames:
                self._message = bytearray(self.frames.pop())
            self._message += event.data  # as an object of its own, a frame of one byte takes fifty
            if event.fin:
                self.frames = [bytes(self._message)]
                self._message.clear()
                self.send_receive_event_to_app()

        def send_receive_event_to_app(self) -> None:
            self.frames = [b"".join(self.frames)]
            if self.curr_msg_data_type == "text" and not self.close_sent and not _is_utf8(self.frames[0]):
                if self.conn.close_sent is None:  # else the client's own close came with it
                    self.conn.send_close(1007, "expected text in UTF-8")
                self.handle_parser_exception()  # uvicorn logs a traceback of it, as of a mistake of the program
            else:
                super().send_receive_event_to_app()

        def handle_ping(self) -> None:
            """Answer, or do so later: of pings that nobody waits for, the answers would be held without end.

            Those that came together are answered together; of several such heaps the last one is (RFC 6455, 5.5.3).
            """
            pongs = b"".join(self.conn.data_to_send())
            if self.writable.is_set():
                self.transport.write(pongs)
            else:
                self._pongs = pongs or self._pongs

        def resume_writing(self) -> None:
            super().resume_writing()
            pongs, self._pongs = self._pongs, b""
            if pongs:
                self.transport.write(pongs)

        def send_keepalive_ping(self) -> None:
            self._heard = False
            super().send_keepalive_ping()

        def keepalive_timeout(self) -> None:
            if self._heard or self.read_paused:
                self.schedule_ping()
            else:
                super().keepalive_timeout()

    return Http, WebSockets
