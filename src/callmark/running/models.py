"""What a session asks a model, and how it reads the answer: any callable that yields chunks, here or over HTTP."""

from __future__ import annotations

import asyncio
import codecs
import http.client
import itertools
import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from callmark.errors import CallmarkError, UsageError
from callmark.running.loop_guard import LONGEST_SECONDS
from callmark.running.server_events import EventDecoder, EventLimitError
from callmark.running.signals import Bell, Cancel, attempt_here, leavable_task, leave_behind, unless
from callmark.running.workers import off_loop
from callmark.tools.foreign import Outcome, attempt, is_async
from callmark.tools.misuse import require, require_seconds
from callmark.tools.shapes import Host

Chunk = str | Mapping[str, Any]  # text, or a decoded event of a native stream
_TIMEOUT_SECONDS: Final = 600.0  # for the next chunk; a prompt takes minutes on a slow machine
ERROR_LIMIT: Final = 500  # characters of what a server says that went wrong
_NO_REASONS: Final = ("", "null")  # of what is not over: some servers write null as a word
_FIELDS: Final = (b":", b"data:", b"event:", b"id:", b"retry:", b"error:")  # with which a line of events begins
_CUT: Final = {"choices": [{"index": 0, "delta": {}, "finish_reason": "cut"}]}  # says what a lost connection does not
_END: Final = object()  # behind the last chunk
_QUEUE_LIMIT: Final = 64  # chunks that a model may be ahead of who reads them
_END_SECONDS: Final = 1.0  # for a model to end: one that was told to, and will not, is left behind


@dataclass(frozen=True, kw_only=True, repr=False)
class Request:
    """One question to a model.

    messages   mappings with `role` and `content`, as OpenAI's chat API has them
    tools      the tools in the shape that the model asked for; empty where they are in the prompt, or there are none
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Request({len(self.messages)} messages, {len(self.tools)} tools)"


Model = Callable[[Request], Any]
"""Called with a Request; returns, or awaits to, chunks: a `str`, an iterable or an async iterable of `Chunk`.

One that is not async is called, and its iterable read, in a thread of its own, so it may block. One that takes tools
natively has an attribute `native_tools`, which names their shape ("openai", say).
"""


class ModelError(CallmarkError):
    """A model's server refused, or sent what is no stream; the message has its status and first words."""


async def chunks_of(model: Model, request: Request, cancel: Cancel) -> AsyncGenerator[Chunk, None]:
    """Yield what a model answers, until it ends or is cancelled. What the model raises comes out of here.

    But for a cancellation that nobody here wants: that is a ModelError.
    """
    answer: Any = model(request) if is_async(model) else off_loop(partial(model, request))
    if hasattr(answer, "__await__"):
        outcome: Outcome | None = await unless(cancel, attempt_here(lambda: answer))
        if outcome is None or cancel.is_set():
            return
        answer = _given(outcome)
    if isinstance(answer, str | Mapping):
        yield answer
        return
    if isinstance(answer, bytes) or not (hasattr(answer, "__aiter__") or hasattr(answer, "__iter__")):
        raise UsageError(f"model: expected a text or chunks, found {type(answer).__name__}")
    source = answer if hasattr(answer, "__aiter__") else _pumped(answer, cancel)
    iterator = source.__aiter__()
    bell = Bell()
    own = Cancel(cancel)
    own.listen(bell.ring)
    stop = asyncio.ensure_future(bell.wait())
    step: asyncio.Future[Outcome] | None = None
    try:
        while not cancel.is_set():
            # As an outcome: a debugging event loop logs a slow task with what it came to.
            step = leavable_task(attempt_here(anext, iterator, _END), own.is_set)
            await asyncio.wait((step, stop), return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                return
            found = _given(step.result())
            if found is _END:
                return
            if not isinstance(found, str | Mapping):  # a delta's content is None at its ends, in OpenAI's clients
                expected = "chunks that are text, or a server's decoded events as mappings"
                raise UsageError(f"model: expected {expected}, found {type(found).__name__}")
            yield found
    finally:
        own.leave()
        own.set()
        stop.cancel()
        broken_off = cancel.is_set() or (step is not None and not step.done())
        if step is not None:
            leave_behind(step)
        end = leavable_task(attempt_here(_close, iterator, step), own.is_set)
        try:
            await asyncio.wait((end,), timeout=_END_SECONDS)
        finally:
            leave_behind(end)
        await asyncio.wait((end,), timeout=_END_SECONDS)
        if end.done() and not end.cancelled() and not broken_off:
            _given(end.result())


async def _close(iterator: Any, step: asyncio.Future[Outcome] | None) -> None:
    if step is not None:
        await asyncio.wait((step,))
    if hasattr(iterator, "aclose"):
        await iterator.aclose()


def _given(outcome: Outcome) -> Any:
    """Return what a model gave, or raise what it raised; a cancellation of its own would seem to be the host's."""
    if isinstance(outcome.error, asyncio.CancelledError):
        raise ModelError("the model was cancelled, and not by its session") from outcome.error
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


async def _pumped(chunks: Iterable[Chunk], cancel: Cancel) -> AsyncGenerator[Chunk, None]:
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Any] = asyncio.Queue()
    room = threading.Semaphore(_QUEUE_LIMIT)
    over = threading.Event()

    def put(item: Any) -> None:
        attempt(loop.call_soon_threadsafe, lambda: queue.put_nowait(item))  # the loop may be gone; it logs arguments

    def pump() -> None:
        def read() -> None:
            for chunk in chunks:
                room.acquire()
                if over.is_set() or cancel.is_set():
                    return
                put((chunk, None))

        put((_END, attempt(read).error))
        close = getattr(chunks, "close", None)
        if close is not None:
            attempt(close)

    threading.Thread(target=pump, name="callmark-model", daemon=True).start()
    try:
        while True:
            chunk, error = await queue.get()
            if error is not None:
                raise error
            if chunk is _END:
                return
            room.release()
            yield chunk
    finally:
        over.set()
        room.release()  # to whoever waits for it, who sees then that it is over


class OpenAIModel:
    """A model behind a server that speaks OpenAI's chat API.

    url       of the API's root, such as http://127.0.0.1:8080/v1; http or https
    model     as the server calls it
    key       goes into the header `Authorization`; it is in no representation and no message
    native    whether the server takes tools and gives tool calls; otherwise it sees only text
    options   whatever else goes into the request: `temperature`, say

    A server that does not stream, and answers with one JSON object, is read too. A stream that ends without saying so,
    by a reason or by `[DONE]`, was cut, also where the connection is lost behind its first event: it gets one more,
    with the reason "cut". Raises ModelError for what the server refuses, for what is neither, and where it cannot be
    reached or hangs up.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str = "",
        native: bool = False,
        timeout_seconds: float = _TIMEOUT_SECONDS,
        **options: Any,
    ) -> None:
        require("OpenAIModel", str, "a text", url=url, model=model, key=key)
        require_seconds("OpenAIModel", LONGEST_SECONDS, timeout_seconds=timeout_seconds)
        parts = attempt(urlsplit, url).value or urlsplit("")
        if parts.username or parts.password:  # said without the URL, which holds them
            raise UsageError("OpenAIModel: expected a URL without a name and a password; hand a key over as `key`")
        place = attempt(lambda: (parts.port, str(parts.hostname).encode("idna")))  # raises where there is none
        path = parts.path.rstrip("/") + "/chat/completions"
        target = f"{path}?{parts.query}" if parts.query else path
        is_one = parts.scheme in ("http", "https") and parts.hostname and place.error is None
        if not is_one or not target.isascii() or not target.isprintable() or " " in target:
            found = "another" if {"@", "?"} & set(url) else f"{url!r:.80}"  # it may hold secrets all the same
            raise UsageError(f"OpenAIModel: expected an http or https URL, found {found}")
        if not key.isprintable() or not key.isascii():  # http.client would quote it in what it raises
            raise UsageError("OpenAIModel: expected a key of printable ASCII, such as one without a line break")
        self._parts = parts
        self._target = target
        self._asked = f"{parts.scheme}://{parts.netloc}{path}"
        self._model = model
        self._key = key
        self._timeout_seconds = timeout_seconds
        self._options = options
        self.native_tools: Host | None = "openai" if native else None

    def __call__(self, request: Request) -> Iterator[Chunk]:
        """Yield the decoded events of the server's stream."""
        body: dict[str, Any] = {**self._options, "model": self._model, "messages": request.messages, "stream": True}
        if request.tools:
            body["tools"] = request.tools
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        secure = self._parts.scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = connect(str(self._parts.hostname), self._parts.port, timeout=self._timeout_seconds)
        try:
            connection.request("POST", self._target, json.dumps(body).encode(), headers)
            with connection.getresponse() as response:
                if response.status != 200:
                    words = self._words(response.read(ERROR_LIMIT + len(self._key)))
                    raise ModelError(f"the model's server answered {response.status}: {words}")
                yield from _events(response, self._words)
        except ModelError as error:
            raise ModelError(f"{self._asked}: {error}") from error.__cause__
        except OSError as error:
            raise ModelError(
                f"{self._asked}: expected a model's server that answers, found: {error.strerror or error}; see that it "
                "runs, and that the URL is that of its API's root, such as http://127.0.0.1:8080/v1"
            ) from error
        except http.client.HTTPException as error:
            found = f"expected HTTP from the model's server, found {type(error).__name__}"
            raise ModelError(f"{self._asked}: {found}") from None
        finally:
            connection.close()

    def _words(self, data: bytes) -> str:
        """Return the beginning of what a server says, without the key, which some repeat."""
        words = data.decode(errors="replace")
        return (words.replace(self._key, "***") if self._key else words)[:ERROR_LIMIT]

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model})"


def _events(lines: Iterable[bytes], words: Callable[[bytes], str]) -> Iterator[Chunk]:
    """Yield the decoded data of server-sent events, until `[DONE]` or the end; where there is none, the whole."""
    decoder = EventDecoder()
    other: list[bytes] = []
    streamed = came = ended = early = False
    try:
        for line in itertools.chain(lines, (None,)):
            if line is not None and not streamed:
                streamed = line.removeprefix(codecs.BOM_UTF8).startswith(_FIELDS)
                other += () if streamed else (line,)
            found = decoder.finish() if line is None else decoder.feed(line) if streamed else ()
            for data in found:
                if data == b"[DONE]":
                    return
                event = _event(data, words)
                choice = _choice(event)
                early = early or (ended and _says(choice))
                ended = ended or reason_of(choice) is not None
                yield event
                came = True
    except EventLimitError as error:
        raise ModelError(f"{error} from the model's server") from None
    except (OSError, http.client.HTTPException):  # a connection that is lost, or silent for too long
        if not came:
            raise
    if not streamed:
        yield _event(b"".join(other).strip(), words)
    elif early or not ended:  # some say "stop" with every piece
        yield _CUT


def _choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the choice of an event that a session reads; an empty one where it has none."""
    choices = event.get("choices")
    listed = (each for each in choices if isinstance(each, dict)) if isinstance(choices, list) else ()
    return next((each for each in listed if each.get("index") in (None, 0)), {})


def reason_of(choice: Mapping[str, Any]) -> str | None:
    """Return why a choice is over, None where it is not."""
    reason = choice.get("finish_reason")
    return reason if isinstance(reason, str) and reason not in _NO_REASONS else None


def _says(choice: Mapping[str, Any]) -> bool:
    delta = choice.get("delta")
    return isinstance(delta, dict) and any(value for key, value in delta.items() if key != "role")


def _event(data: bytes, words: Callable[[bytes], str]) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"expected JSON from the model's server, found {words(data)!r:.80}") from error
    if not isinstance(event, dict) or event.get("error"):
        raise ModelError(f"the model's server sent an error: {words(data)}")
    return event
