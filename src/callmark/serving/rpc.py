"""JSON-RPC 2.0, both ways: a client calls methods, and is asked for what lives with it (tools, a model, consent).

A `Connection` takes messages as bytes and sends messages as bytes; where they come from is the affair of stdio and of
WebSocket. Whatever comes is answered: garbage by an error, a notification by nothing. Answers are in the order of the
requests, but for those that take their time (`session/run`). Messages may be sent from several threads: `send` is
called with one whole message at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from callmark.errors import CallmarkError
from callmark.serving import schema
from callmark.serving.bounds import DEFAULT_BOUNDS, Bounds
from callmark.serving.methods import METHODS, Method, State
from callmark.serving.problems import KINDS, ServingError
from callmark.serving.texts import decoded, encoded
from callmark.tools.foreign import attempt

Send = Callable[[bytes], object]
Log = Callable[[str], object]
Answered = Callable[[Any, "RemoteError | None"], object]

_NOTHING: Final = Raw(b"{}")
_NULL: Final = Raw(b"null")
_NO_PARAMS: Final = (_NULL, Raw(b"[]"))  # as some libraries say it


class RemoteError(msgspec.Struct, frozen=True):
    """What a client answers where it could not do what it was asked."""

    message: str = ""
    code: int = 0
    data: Any = None


class _Envelope(msgspec.Struct):
    """A message of any kind; what is in it is looked at one by one, so that each mistake can be told."""

    jsonrpc: Any = UNSET
    id: Any = UNSET
    method: Any = UNSET
    params: Raw = _NOTHING
    result: Raw | msgspec.UnsetType = UNSET
    error: Raw | msgspec.UnsetType = UNSET


_envelope: Final = msgspec.json.Decoder(_Envelope)
_list: Final = msgspec.json.Decoder(list[Raw])
_items: Final = msgspec.json.Decoder(list[Any])
_any: Final = msgspec.json.Decoder(Any)
_error: Final = msgspec.json.Decoder(RemoteError)
_LOADED: Final = schema  # and with it all that put methods into the table
_params: Final = {name: msgspec.json.Decoder(method.params) for name, method in METHODS.items()}


def call(method: Method, state: State, params: bytes | Raw) -> Any:
    """Call a method with parameters as JSON. Raises ServingError for whatever goes wrong."""
    known = decoded(params, _params[method.name])
    outcome = attempt(method.function, state, known)
    error = outcome.error
    if error is None:
        return outcome.value
    if isinstance(error, ServingError):
        raise error
    if isinstance(error, CallmarkError):
        raise ServingError("invalid-params", str(error)) from error
    if isinstance(error, RecursionError):
        raise ServingError("invalid-params", "expected values that are nested less deep") from error
    if isinstance(error, Exception):
        raise ServingError("internal-error", f"{method.name}: {type(error).__name__}") from error
    raise error


def error_message(error: ServingError, id: bytes = b"null") -> bytes:  # noqa: A002  # JSON-RPC's word
    """Return an error as a message."""
    told = {"code": KINDS[error.code].number, "message": str(error), "data": {"code": error.code}}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, encoded(told))


class _Batch:
    """The answers to a batch, sent when the last of them is there."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._answers: list[bytes] = []
        self._open = 1  # the batch itself, until it was read

    def expect(self) -> None:
        with self._lock:
            self._open += 1

    def answer(self, message: bytes) -> None:
        with self._lock:
            self._answers.append(message)
        self.done()

    def done(self) -> None:
        with self._lock:
            self._open -= 1
            over = not self._open
        if over and self._answers:
            self._send(b"[%b]" % b",".join(self._answers))


class Connection:
    """One client. `receive` is called by one thread at a time; `close` when the client is gone.

    send      gets each message, without a line break; from any thread
    log       gets a line about what nobody is told: a late answer, a notification that failed
    loop      the event loop that sessions run in; None: one of their own, in a thread, when the first is opened
    observe   called with the name of each method and the code of its error, "" where there is none
    """

    def __init__(
        self,
        send: Send,
        *,
        bounds: Bounds = DEFAULT_BOUNDS,
        log: Log = lambda line: None,
        loop: Any = None,
        observe: Callable[[str, str], object] = lambda name, code: None,
    ) -> None:
        self._send = send
        self.log = log
        self.loop = loop
        self._observe = observe
        self.state = State(bounds, self)
        self._lock = threading.Lock()
        self._asked = 0
        self._waiting: dict[str, Answered] = {}  # what the client was asked and has not answered
        self.closed = False

    # What comes.

    def receive(self, message: bytes) -> None:
        """Take a message: a request, a notification, an answer, or a batch of them."""
        if len(message) > self.state.bounds.message_bytes:
            self.refuse(
                "too-large", f"a message may have {self.state.bounds.message_bytes} bytes, found {len(message)}"
            )
            return
        if message.lstrip()[:1] != b"[":
            self._one(message, self._send, None)
            return
        try:
            parts = _parts(message)
            if not parts:
                raise ServingError("invalid-request", "a batch: expected at least one message, found none")
            if len(parts) > self.state.bounds.batch:
                raise ServingError(
                    "too-large", f"a batch: expected at most {self.state.bounds.batch} messages, found {len(parts)}"
                )
        except ServingError as error:
            self._send(error_message(error))
            return
        batch = _Batch(self._send)
        for part in parts:
            batch.expect()
            self._one(part, batch.answer, batch)
        batch.done()

    def refuse(self, code: str, message: str) -> None:
        """Tell the client of a message that could not be taken at all."""
        self._observe("", code)
        self._send(error_message(ServingError(code, message)))

    def _one(self, message: bytes | Raw, answer: Send, batch: _Batch | None) -> None:
        id_text = b"null"
        name = ""
        notification = False
        try:
            envelope = _opened(message)
            if envelope.method is UNSET and self._answers(envelope):
                self._answer(envelope)
                if batch is not None:
                    batch.done()
                return
            if envelope.id is not UNSET:
                if isinstance(envelope.id, bool) or not isinstance(envelope.id, str | int | float | None):
                    raise ServingError("invalid-request", "id: expected a string, a number or null")
                id_text = encoded(envelope.id)
            if envelope.jsonrpc != "2.0" or not isinstance(envelope.method, str):
                raise ServingError("invalid-request", 'expected jsonrpc to be "2.0" and method to be a string')
            notification = envelope.id is UNSET
            method = _method(envelope.method)
            name = method.name
            params = _NOTHING if envelope.params in _NO_PARAMS else envelope.params
            if method.later:
                self._later(call(method, self.state, params), name, None if notification else id_text, answer)
                if batch is not None and notification:
                    batch.done()
                return
            result = encoded(call(method, self.state, params))
        except ServingError as error:
            self._failed(error, name, id_text, answer, notification, batch)
            return
        self._observe(name, "")
        if not notification:
            answer(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_text, result))
        elif batch is not None:
            batch.done()

    def _failed(
        self, error: ServingError, name: str, id_text: bytes, answer: Send, notification: bool, batch: _Batch | None
    ) -> None:
        self._observe(name, error.code)
        if error.code == "internal-error":
            self.log(f"{error}: {error.__cause__!r}")
        if not notification:
            answer(error_message(error, id_text))
            return
        self.log(f"a notification of {name or 'an unknown method'} failed: {error.code}: {error}")
        if batch is not None:
            batch.done()

    def _later(self, run: Any, name: str, id_text: bytes | None, answer: Send) -> None:
        """Answer when a turn is over."""

        def over(done: Any) -> None:
            if self.closed:
                return
            error = ServingError("cancelled", "the session was closed") if done.cancelled() else done.exception()
            if error is None:
                self._observe(name, "")
                if id_text is not None:
                    answer(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_text, encoded(done.result())))
                return
            if not isinstance(error, ServingError):
                code = "invalid-params" if isinstance(error, CallmarkError) else "internal-error"
                error = ServingError(code, str(error) if code == "invalid-params" else type(error).__name__)
            self._failed(error, name, id_text or b"", answer, id_text is None, None)

        run.add_done_callback(over)

    # What goes.

    def new_id(self, method: str) -> str:
        """Return an id for a request to the client."""
        with self._lock:
            self._asked += 1
            return f"{method}#{self._asked}"

    def ask(self, id: str, method: str, params: Any, answered: Answered) -> None:  # noqa: A002
        """Send a request to the client; `answered` is called with a result or an error, from any thread."""
        with self._lock:
            self._waiting[id] = answered
        self._send(encoded({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))

    def forget(self, id: str) -> bool:  # noqa: A002
        """Want no answer any more; return whether there was none yet."""
        with self._lock:
            return self._waiting.pop(id, None) is not None

    def tell(self, method: str, params: Any) -> None:
        """Send a notification to the client, if it is there."""
        if not self.closed:
            self._send(encoded({"jsonrpc": "2.0", "method": method, "params": params}))

    def _answers(self, envelope: _Envelope) -> bool:
        """Return whether a message is an answer, even an empty one: JSON of JavaScript leaves out what is undefined."""
        if envelope.result is not UNSET or envelope.error is not UNSET:
            return True
        with self._lock:
            return isinstance(envelope.id, str) and envelope.id in self._waiting

    def _answer(self, envelope: _Envelope) -> None:
        with self._lock:
            answered = self._waiting.pop(envelope.id, None) if isinstance(envelope.id, str) else None
        if answered is None:
            given = None if envelope.id is UNSET else envelope.id
            self.log(f"an answer to {encoded(given)[:80]!r} is ignored: it comes too late, or nobody asked")
            return
        try:
            if envelope.error not in (UNSET, _NULL):
                answered(None, decoded(envelope.error, _error))
            elif envelope.result is not UNSET:
                answered(decoded(envelope.result, _any), None)
            else:
                self.log(f"an answer to {envelope.id!r:.80} has no result: null stands for none")
                raise ServingError("invalid-request", "expected a result or an error, found neither")
        except ServingError as error:
            answered(None, RemoteError(f"an answer that cannot be read: {error}"))

    def close(self) -> None:
        """The client is gone: stop what runs for it."""
        self.closed = True
        if self.state.host is not None:
            self.state.host.close()


def _opened(message: bytes | Raw) -> _Envelope:
    try:
        return _envelope.decode(message)
    except msgspec.ValidationError as error:
        raise ServingError("invalid-request", f"expected an object with a method: {error}") from error
    except (ValueError, RecursionError):
        return _opened_with_halves(message)


def _opened_with_halves(message: bytes | Raw) -> _Envelope:
    """Open a message that msgspec refuses, for half of a surrogate pair is in it."""
    value = decoded(message, _any)
    if not isinstance(value, dict):
        raise ServingError("invalid-request", f"expected an object with a method, found {type(value).__name__}")
    plain = {key: value[key] for key in ("jsonrpc", "id", "method") if key in value}
    return _Envelope(**plain, **{key: _raw(value[key]) for key in ("params", "result", "error") if key in value})


def _parts(message: bytes) -> list[Raw]:
    """Return the messages in a batch."""
    try:
        return _list.decode(message)
    except (ValueError, RecursionError):
        return [_raw(part) for part in decoded(message, _items)]


def _raw(value: Any) -> Raw:
    return Raw(encoded(value))


def _method(name: str) -> Method:
    try:
        return METHODS[name]
    except KeyError:
        raise ServingError("unknown-method", f"no method {name!r:.80}; there are {', '.join(METHODS)}") from None
