"""Writes answers of OpenAI's chat API: the chunks of a stream, and the message of a whole answer.

Chunks have the one shape that all clients take. The first delta of a choice has the role; each call has a delta with
its index, id, type, name and `arguments: ""`, and then some with its arguments alone; the last delta is empty and has
the finish reason. What differs breaks some client: a name that is said twice is doubled, a call without an index is
joined with another, an index that begins at 1 is out of range.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from secrets import token_hex
from typing import Any, Final

import msgspec

from callmark.running.halves import Halves
from callmark.running.models import reason_of
from callmark.running.native import WHOLE, said_in
from callmark.serving.chat import Body, Exchange
from callmark.serving.reply import Argued, Begun, ChoiceReader, Part, Said, Thought
from callmark.serving.texts import encoded
from callmark.writing.prompt import estimate_tokens

DONE: Final = b"data: [DONE]\n\n"
HELD_LIMIT: Final = 16 * 1024 * 1024
"""Characters of a server's own calls, and of text that waits for one, in one stream: all may have to be held."""
NO_JSON: Final = object()  # None is what `null` says
_KNOWN: Final = frozenset(("role", "content", "tool_calls", "function_call"))
_OWN: Final = frozenset(("id", "object", "created", "model", "choices", "usage", "error"))  # of a chunk


def event(data: Any) -> bytes:
    """Return one Server-Sent Event."""
    return b"data: " + encoded(data) + b"\n\n"


def json_of(data: bytes) -> Any:
    """Return what an upstream says in JSON, NO_JSON where it is none.

    Servers write what msgspec refuses: node's halves of an emoji that was cut in two, Python's infinities (in
    `logprobs`), and some half of a character's bytes, which becomes U+FFFD.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return NO_JSON


def error_body(message: str, kind: str, code: str | None = None, param: str | None = None) -> Body:
    """Return an error in OpenAI's shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


TOO_LONG: Final = error_body("the upstream's answer is too long", "upstream_error", "upstream_answer_too_long")
TOO_DEEP: Final = error_body("the upstream's answer is nested too deep", "upstream_error", "bad_upstream_answer")


def beginning(data: bytes) -> str:
    """Say how what cannot be read begins."""
    return f"begins with {data[:200].decode('utf-8', 'replace')!r:.200}" if data.strip() else "is empty"


def error_in(answer: Body) -> Body | None:
    """Return the error in OpenAI's shape that an answer or a chunk is, in the shapes that servers have for it."""
    error = answer if answer.get("object") == "error" else answer.get("error")  # vLLM's, and everybody's
    if not error and "choices" not in answer:
        error = answer.get("detail") or (answer if isinstance(answer.get("message"), str) else None)  # FastAPI's
    if not error:
        return None
    if error is answer.get("error") and isinstance(error, dict):
        return answer
    told = error if isinstance(error, dict) else {"message": error}
    kind, code = told.get("type") or "upstream_error", told.get("code")
    message = told.get("message", told.get("msg", ""))  # KoboldCpp's is the second
    return {"error": {"message": str(message), "type": kind, "param": told.get("param"), "code": code}}


def text_of(content: Any) -> str:
    """Return the text of content, which some servers send in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(text for text in texts if isinstance(text, str))
    return ""


def thought_of(content: Any) -> str:
    """Return the thinking among the parts of content, as Mistral's servers send it."""
    parts = content if isinstance(content, list) else ()
    return "".join(text_of(part.get("thinking")) for part in parts if isinstance(part, Mapping))


def _calls_in(message: Mapping[str, Any]) -> Any:
    """Return the native calls of a message or a delta, one of the shape before `tool_calls` included."""
    old = message.get("function_call")
    return message.get("tool_calls") or ([{"index": 0, "function": old}] if old else [])


def _plain_text(chunk: Any) -> str | None:
    """Return the text of a chunk that holds nothing else of note, as most do; None for any other."""
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    choice = choices[0]
    delta = choice.get("delta")
    if not isinstance(delta, dict) or len(delta) != 1 or chunk.get("usage") or chunk.get("error"):
        return None
    if choice.get("finish_reason") is not None or choice.get("logprobs") is not None:
        return None
    text = delta.get("content")
    return text if isinstance(text, str) else None


class _Choice:
    """One choice of a stream."""

    def __init__(self, reader: ChoiceReader) -> None:
        self.reader = reader
        self.begun = False
        self.said = False  # text
        self.reason: str | None = None  # why the upstream says that it is over
        self.early = False  # whether more came behind that: some say "stop" with every piece
        self.last: Body = {}  # what it said beside the reason
        self.over = False  # for the client

    def is_said_to_be_over(self) -> bool:
        return self.reason is not None and not self.early


class StreamWriter:
    """Turns the events of an upstream's stream into those that the client gets.

    exchange   the request
    created    seconds since 1970, where the upstream does not say

    `feed` takes the data of events. `done` is True when nothing of what follows is wanted.
    """

    def __init__(self, exchange: Exchange, created: int) -> None:
        self.done = False
        self._exchange = exchange
        self._eager = exchange.settings.arguments == "stream"
        self._wanted = _number(exchange.body.get("n"))
        self._choices: dict[int, _Choice] = {}
        self._usage: Any = None
        self._holds = exchange.settings.before_calls != "stream"
        self._held = 0  # characters
        self._written = 0  # tokens, about
        self._head = _head("chat.completion.chunk", {}, exchange, created)
        self._named = False

    def feed(self, events: Iterable[bytes]) -> bytes:
        """Return what the client gets for the data of some events, together where they are the text of one choice.

        A proxy that has fallen behind reads many events at once; put together, they cost it a third of the time.
        """
        out: list[bytes] = []
        texts: list[str] = []
        last: Body = {}  # the chunk of the last of these texts, for all that it says beside
        for data in events:
            if self.done:
                break
            chunk: Any = b"" if data == b"[DONE]" else json_of(data)
            chunk = data if chunk is NO_JSON else chunk
            text = _plain_text(chunk)
            if texts and (text is None or chunk["choices"][0].get("index") != last["choices"][0].get("index")):
                self._join(last, texts, out)
            if text is not None:
                texts.append(text)
                last = chunk
            elif not self.done:
                out.append(self._other(chunk))
        if texts and not self.done:
            self._join(last, texts, out)
        return b"".join(out)

    def _join(self, last: Body, texts: list[str], out: list[bytes]) -> None:
        self._written += len(texts) - 1
        halves = Halves()
        last["choices"][0]["delta"]["content"] = "".join(map(halves.whole, texts)) + halves.rest()
        texts.clear()
        out += self._chunk(last)

    def _other(self, chunk: Any) -> bytes:
        if chunk == b"":
            return self.finish(complete=True)
        if isinstance(chunk, bytes):
            said = f"the upstream sent an event that is no JSON: it {beginning(chunk)}"
            return self.fail(error_body(said, "upstream_error", "bad_event"))
        if not isinstance(chunk, dict):
            return b""
        error = error_in(chunk)
        if error is not None:
            return self.fail(error)
        return b"".join(self._chunk(chunk))

    def feed_whole(self, answer: Body) -> bytes:
        """Write a whole answer as a stream, for upstreams that do not stream."""
        return b"".join(self._chunk({**answer, "choices": _choices_of(answer)})) + self.finish(complete=True)

    def finish(self, *, complete: bool) -> bytes:
        """Say that the upstream's stream is over: as it should, or before it said why it ends."""
        if self.done:
            return b""
        whole = (choice.over or choice.is_said_to_be_over() for choice in self._choices.values())
        if not self._choices or not (complete or all(whole)):
            return self.fail(error_body("the upstream's stream ended early", "upstream_error", "upstream_closed"))
        out: list[bytes] = []
        for index, choice in self._choices.items():
            self._end(index, choice, out)
        return b"".join(out) + (b"" if self.done else self._last())

    def fail(self, error: Body) -> bytes:
        """End the stream by an error; text that was held back comes before it, and an unfinished call is text."""
        if self.done:
            return b""
        self.done = True
        out: list[bytes] = []
        for index, choice in self._choices.items():
            if choice.is_said_to_be_over():
                self._end(index, choice, out)
            elif not choice.over:
                choice.over = True
                parts, _ = choice.reader.finish("length")
                self._write(index, choice, parts, out)
        return b"".join(out) + event(error)

    def _chunk(self, chunk: Body) -> list[bytes]:
        try:
            return self._read(chunk)
        except RecursionError:  # JSON that could be read, and is too deep to be written
            return [self.fail(TOO_DEEP)]

    def _read(self, chunk: Body) -> list[bytes]:
        if not self._named:
            self._named = True
            self._head |= _said_of_itself(chunk)
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        extra = {key: value for key, value in chunk.items() if value is not None and key not in _OWN}
        out: list[bytes] = []
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._delta(choice, extra, out)
        if (
            not self.done
            and self._choices
            and len(self._choices) >= self._wanted
            and all(choice.over and not choice.is_said_to_be_over() for choice in self._choices.values())
        ):
            out.append(self._last())  # all were cut off by us: the upstream may stop
        return out

    def _delta(self, given: Body, extra: Body, out: list[bytes]) -> None:
        index = _number(given.get("index"), 0)
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice(self._exchange.reader(eager=self._eager))
        if choice.over or self.done:
            return
        delta = given.get("delta")
        if not delta or not isinstance(delta, dict):
            delta = said_in(given, said=choice.said, called=choice.reader.called)
        others = {key: value for key, value in delta.items() if key not in _KNOWN and value is not None}
        thought = thought_of(delta.get("content"))
        if thought:
            others["reasoning_content"] = text_of(others.get("reasoning_content")) + thought
        logprobs = given.get("logprobs")
        if others or logprobs is not None or not choice.begun:
            self._put(index, choice, others, out, extra, logprobs=logprobs)
        text = text_of(delta.get("content"))
        calls = _calls_in(delta)
        more = bool(text or calls or any(others.values()))
        choice.early = choice.early or (more and choice.reason is not None)
        if text:
            choice.said = True
            self._written += 1
            self._write(index, choice, choice.reader.feed(text), out, extra)
        self._held += len(encoded(calls)) if calls else len(text) * self._holds
        if self._held > HELD_LIMIT:
            out.append(self.fail(TOO_LONG))
            return
        if calls:
            self._write(index, choice, choice.reader.feed_calls(calls), out, extra)
        reason = reason_of(given)
        if reason is not None and (more or choice.reason is None or choice.reason.lower() in WHOLE):  # a cut stays one
            choice.reason, choice.last = reason, extra
        if choice.reader.stopped:
            self._end(index, choice, out)

    def _end(self, index: int, choice: _Choice, out: list[bytes]) -> None:
        if choice.over:
            return
        choice.over = True
        extra = choice.last
        parts, true_reason = choice.reader.finish(choice.reason)
        self._write(index, choice, parts, out, extra)
        if choice.reader.broken:
            out.append(self.fail(error_body("the model did not finish a call", "upstream_error", "call_unfinished")))
        else:
            self._put(index, choice, {}, out, extra, reason=_reason(true_reason, self._exchange))

    def _last(self) -> bytes:
        """Return the end of the stream: the usage, where it is wanted, and the last event."""
        self.done = True
        if not self._exchange.usage:
            return DONE
        usage = self._usage
        if usage is None:  # the upstream does not say, or was stopped before it could
            said = "\n".join(text_of(message.get("content")) for message in self._exchange.body["messages"])
            asked = estimate_tokens(said)
            usage = {
                "prompt_tokens": asked,
                "completion_tokens": self._written,
                "total_tokens": asked + self._written,
            }
        return event({**self._head, "choices": [], "usage": usage}) + DONE

    def _write(
        self, index: int, choice: _Choice, parts: Iterable[Part], out: list[bytes], extra: Body | None = None
    ) -> None:
        for part in parts:
            if isinstance(part, Said):
                self._put(index, choice, {"content": part.text}, out, extra)
            elif isinstance(part, Thought):
                self._put(index, choice, {"reasoning_content": part.text}, out, extra)
            elif isinstance(part, Begun):
                head = _call(part, self._exchange)
                self._put(index, choice, self._of_call({"index": part.number, **head}, head["function"]), out, extra)
            else:
                function = {"arguments": part.json}
                rest = {"index": part.number, "function": function}
                self._put(index, choice, self._of_call(rest, function), out, extra)

    def _of_call(self, call: Body, function: Body) -> Body:
        return {"function_call": function} if self._exchange.old else {"tool_calls": [call]}

    def _put(
        self,
        index: int,
        choice: _Choice,
        delta: Body,
        out: list[bytes],
        extra: Body | None,
        *,
        reason: str | None = None,
        logprobs: Any = None,
    ) -> None:
        if not choice.begun:
            choice.begun = True
            role: Body = {"role": "assistant", "content": ""}
            self._put(index, choice, role, out, extra)
            if not delta and reason is None and logprobs is None:
                return
        shown: Body = {"index": index, "delta": delta, "finish_reason": reason}
        if logprobs is not None:
            shown["logprobs"] = logprobs
        chunk = {**self._head, "choices": [shown], **(extra or {})}
        if self._exchange.usage:
            chunk["usage"] = None
        out.append(event(chunk))


def _head(kind: str, answer: Body, exchange: Exchange, created: int) -> Body:
    """Return what an answer, or a chunk of one, says of itself; ours is what its server leaves out."""
    return {
        "id": "chatcmpl-" + token_hex(12),
        "object": kind,
        "created": created,
        "model": exchange.body.get("model") or "",
        **_said_of_itself(answer),
    }


def _said_of_itself(answer: Body) -> Body:
    kinds = (("id", str), ("created", int), ("model", str))
    return {key: answer[key] for key, kind in kinds if isinstance(answer.get(key), kind) and answer[key]}


def whole(answer: Body, exchange: Exchange, created: int = 0) -> Body:
    """Return a whole answer with the calls that its choices' texts hold; `created` is as `StreamWriter` has it."""
    made = []
    for choice in _choices_of(answer):
        message = said_in(choice, said=False, called=False)
        reader = exchange.reader()
        parts = reader.feed(text_of(message.get("content")))
        parts += reader.feed_calls(_calls_in(message))
        last, reason = reader.finish(choice["finish_reason"])
        shown = _message(message, [*parts, *last], exchange)
        made.append({**choice, "message": shown, "finish_reason": _reason(reason, exchange)})
    return {**answer, **_head("chat.completion", answer, exchange, created), "choices": made}


def _choices_of(answer: Body) -> list[Body]:
    """Return the choices of a whole answer, with the number and the reason that some servers leave out."""
    choices = answer.get("choices")
    listed = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    return [
        {**choice, "index": _number(choice.get("index"), number), "finish_reason": reason_of(choice) or "stop"}
        for number, choice in enumerate(listed)
    ]


def _reason(reason: str, exchange: Exchange) -> str:
    return "function_call" if exchange.old and reason == "tool_calls" else reason


def _message(message: Mapping[str, Any], parts: list[Part], exchange: Exchange) -> Body:
    said = "".join(part.text for part in parts if isinstance(part, Said))
    thought = thought_of(message.get("content"))
    thought += "".join(part.text for part in parts if isinstance(part, Thought))
    calls = [_call(part, exchange) for part in parts if isinstance(part, Begun)]
    for part in parts:
        if isinstance(part, Argued):
            calls[part.number]["function"]["arguments"] += part.json
    kept = {key: value for key, value in message.items() if key not in _KNOWN}
    made: Body = {"role": "assistant", "content": said or (None if calls else ""), **kept}
    if thought:
        made["reasoning_content"] = text_of(made.get("reasoning_content")) + thought
    if calls and exchange.old:
        made["function_call"] = calls[0]["function"]
    elif calls:
        made["tool_calls"] = calls
    return made


def _call(begun: Begun, exchange: Exchange) -> Body:
    own_id = begun.own.get("id") or "call_" + token_hex(12)
    function = {"name": exchange.renamed.get(begun.name, begun.name), "arguments": ""}
    return {**begun.own, "id": own_id, "type": "function", "function": function}


def _number(value: Any, default: int = 1) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
