"""Assembles the tool calls that servers send in fragments into the same events that reading text gives.

A chunk is one decoded event of a stream: OpenAI's chat API or its Responses, Anthropic's Messages, Gemini or Cohere;
which one, it shows itself. Servers that copy these APIs bend them, and what is met is read: names that come late or
again, no index, every call at index 0 with an id of its own, arguments as an object. What has a shape that no server
means is left out; what a server calls an error is one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from callmark.errors import UsageError
from callmark.events import ArgumentsDelta, Call, CallStart, Event, Malformed, Span, Text
from callmark.reading.decoder import Undecodable, decode
from callmark.reading.options import Limits
from callmark.running.fragments import Pending, Recent, text_of
from callmark.running.halves import Halves
from callmark.running.models import ERROR_LIMIT, ModelError, reason_of
from callmark.running.partial import PartialArguments

_REASONS: Final = {
    "missing-name": "a call without a name",
    "nesting-too-deep": "arguments that are nested too deep",
    "duplicate-key": "arguments that name a key twice",
    "bad-arguments": "arguments that are no JSON object",
    "unclosed-marker": "one that was cut off",
}
WHOLE: Final = (
    *("stop", "tool_calls", "tool_call", "function_call", "tool_use"),
    *("end_turn", "stop_sequence", "complete", "completed", "eos", "eos_token", "message_stop"),
)
"""Why servers stop whose message is all there. Any other reason, or none, may have cut it."""
DROPPED: Final = "malformed_function_call"
"""In Gemini's reason, also behind other words, where it could not read a call of its model, and sends none."""
_OF_FUNCTION: Final = ("index", "function", "name", "arguments")
_TEXTS: Final = ("content", "reasoning_content", "reasoning")
_CALLS: Final = ("tool_calls", "function_call")


class Assembler:
    """Turns chunks into events; what is visible text is returned as `str`, for a Parser or for people.

    >>> assembler = Assembler()
    >>> piece = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"at": 1}'}}
    >>> assembler.feed({"choices": [{"delta": {"content": "Hm. ", "tool_calls": [piece]}}]})
    ['Hm. ', CallStart(index=0, name='look', dialect='openai'), ArgumentsDelta(index=0, json=...)]
    >>> assembler.finish()[0].arguments
    {'at': 1}

    The events own no text: their spans are empty, at `position`, which who feeds the text keeps up to date. A call is
    complete when its server says so, or the stream ends; arguments that are no JSON object make it Malformed. One that
    ends before its arguments begin has none where the server says that all is there, else it was cut: Malformed too.
    """

    def __init__(self) -> None:
        self.position = 0
        self.stop_reason = ""  # as the server has it: "length" and its like mean that the message was cut
        self.given: dict[int, dict[str, Any]] = {}  # to calls of the chat API beside the function: an id, a signature
        self.unread: list[dict[str, str]] = []  # the functions of what is Malformed, as their servers sent them
        self.unfinished = False  # whether one of these only ends early
        self._pending: dict[Any, Pending] = {}
        self._named: list[Pending] = []  # those with a name that may go on, until another call begins
        self._recent = Recent(self._pending)
        self._ended: set[Any] = set()  # output items of the Responses API, whose end may be told twice
        self._last: Any = None
        self._begun = 0
        self._said = False
        self._thoughts = Halves()
        self._dropped = False  # whether the server said so of a call, which is not told of yet
        self._dialect = "native"

    def feed(self, chunk: Mapping[str, Any]) -> list[str | Event]:
        """Return text and events of one chunk.

        Raises UsageError for what is no mapping, ModelError for what tells of an error.
        """
        if not isinstance(chunk, Mapping):
            raise UsageError(f"native stream: expected decoded events as mappings, found {type(chunk).__name__}")
        made: list[str | Event] = []
        kind = chunk.get("type")
        error = chunk.get("error") or _object(chunk.get("response")).get("error") or (kind == "error" and chunk)
        if error:
            raise ModelError(f"the model's server sent an error: {json.dumps(error, default=str)[:ERROR_LIMIT]}")
        if "choices" in chunk:
            self._openai(chunk, made)
        elif "candidates" in chunk:
            self._gemini(chunk, made)
        elif isinstance(kind, str) and kind.startswith("response."):
            self._responses(kind, chunk, made)
        elif chunk.get("object") == "response":
            self._response(chunk, made)
        elif isinstance(kind, str) and kind.startswith(("content_block", "message_delta", "message_stop")):
            self._anthropic(kind, chunk, made)
        elif kind == "message":
            self._anthropic_message(chunk, made)
        elif isinstance(kind, str) and "-" in kind:  # others are Anthropic's that hold nothing
            self._cohere(kind, chunk, made)
        elif "message" in chunk:
            self._cohere_message(chunk, made)
        return made

    def finish(self) -> list[Event]:
        """Say that the stream is over; return the calls that are still open."""
        made: list[Event] = []
        whole = self._is_whole()
        for key in list(self._pending):
            self._end(key, made, whole=whole)
        if self._dropped and not any(isinstance(event, Malformed) for event in made):
            message = "expected a tool call, found one that its server could not read"
            made.append(Malformed(self._here(), "", "bad-arguments", message, self._begun, None, self._dialect))
            self._begun += 1
        self._dropped = False
        return made

    # What the servers send.

    def _openai(self, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "openai"
        for choice in _objects(chunk.get("choices")):
            if choice.get("index") not in (None, 0):
                continue  # a session has one answer, whatever `n` its request says
            delta = said_in(choice, said=self._said, called=bool(self._begun))
            self._say(delta.get("reasoning_content") or delta.get("reasoning"), made, reasoning=True)
            content = delta.get("content")
            for part in _objects(content):
                for thought in _objects(part.get("thinking")):  # Mistral's
                    self._say(thought.get("text"), made, reasoning=True)
                self._say(part.get("text"), made)
            self._say(content, made)
            old = _object(delta.get("function_call"))  # of the days before `tool_calls`
            pieces = [*_objects(delta.get("tool_calls")), *([{"index": 0, "function": old}] if old else [])]
            for piece in pieces:
                function = _object(piece.get("function", piece))  # some have none around it
                slot, own_id = _key(piece.get("index")), _key(piece.get("id"))
                name, arguments = function.get("name"), function.get("arguments")
                key = self._recent.find(slot, own_id, name, arguments) or (slot, self._begun)
                self._piece(key, own_id, name, arguments, made)
                self._recent.add(key, slot)
                given = {key: value for key, value in piece.items() if value and key not in _OF_FUNCTION}
                index = self._pending[key].index
                self.given[index] = {**given, **self.given.get(index, {})}
            reason = reason_of(choice)
            if reason is not None:
                if made or not self.stop_reason or self._is_whole():  # a cut stays one
                    self._stopped(reason)
                if not pieces or all(call.pieces for call in self._pending.values()):  # else some may come behind it
                    made.extend(self.finish())

    def _responses(self, kind: str, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "openai-responses"
        key = _key(chunk.get("output_index"))
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            self._say(chunk.get("delta"), made)
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self._say(chunk.get("delta"), made, reasoning=True)
        elif kind == "response.output_item.added":
            self._item(key, chunk.get("item"), made)
        elif kind == "response.function_call_arguments.delta" and key in self._pending:
            self._piece(key, None, None, chunk.get("delta"), made)
        elif kind == "response.function_call_arguments.done" and key in self._pending:
            if not self._pending[key].pieces:  # they came whole
                self._piece(key, None, None, chunk.get("arguments"), made)
        elif kind == "response.output_item.done" and key not in self._ended:
            pending = self._pending.get(key)
            if pending is None or not pending.pieces:  # its arguments came whole, or it did
                self._item(key, chunk.get("item"), made)
            if key in self._pending:
                self._ended.add(key)
                self._end(key, made, whole=_object(chunk.get("item")).get("status") != "incomplete")
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._stopped(kind.removeprefix("response."))
            self._response(_object(chunk.get("response")), made)

    def _response(self, whole: Mapping[str, Any], made: list[str | Event]) -> None:
        """Read an answer of the Responses API: what of it was not streamed."""
        self._dialect = "openai-responses"
        said, begun = self._said, self._begun
        for key, item in enumerate(_objects(whole.get("output"))):
            for part in [] if said else _objects(item.get("content")):
                self._say(part.get("text"), made, reasoning=item.get("type") == "reasoning")
            if not begun:
                self._item(key, item, made)
        self._say_why(whole)
        made.extend(self.finish())

    def _item(self, key: Any, item: Any, made: list[str | Event]) -> None:
        item = _object(item)
        if item.get("type") == "function_call":
            self._piece(key, item.get("call_id"), item.get("name"), item.get("arguments"), made)

    def _say_why(self, response: Mapping[str, Any]) -> None:
        details = _object(response.get("incomplete_details"))
        self._stopped(details.get("reason") or response.get("status"))

    def _anthropic(self, kind: str, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "anthropic"
        key = _key(chunk.get("index"))
        block = _object(chunk.get("content_block"))
        delta = _object(chunk.get("delta"))
        if kind == "content_block_start":
            self._release(made)
        if kind == "content_block_start" and block.get("type") == "tool_use":
            self._piece(key, block.get("id"), block.get("name"), block.get("input") or None, made)
        elif kind == "content_block_start":
            self._say(block.get("text"), made)
        elif kind == "content_block_delta":
            self._say(delta.get("thinking"), made, reasoning=True)
            self._say(delta.get("text"), made)
            if key in self._pending:
                self._piece(key, None, None, delta.get("partial_json"), made)
        elif kind == "content_block_stop" and key in self._pending:
            self._close(key, made)
        elif kind == "message_delta" and delta.get("stop_reason"):
            self._stopped(delta["stop_reason"])
            self._release(made)
        elif kind == "message_stop":
            self._stopped(self.stop_reason or kind)
            self._release(made)

    def _anthropic_message(self, whole: Mapping[str, Any], made: list[str | Event]) -> None:
        """Read an answer that was not streamed."""
        self._dialect = "anthropic"
        for key, block in enumerate(_objects(whole.get("content"))):
            self._say(block.get("thinking"), made, reasoning=True)
            self._say(block.get("text"), made)
            if block.get("type") == "tool_use":
                self._piece(key, block.get("id"), block.get("name"), block.get("input") or None, made)
        self._stopped(whole.get("stop_reason"))
        made.extend(self.finish())

    def _gemini(self, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "gemini"
        for number, candidate in enumerate(_objects(chunk.get("candidates"))):
            if candidate.get("index", number) not in (None, 0):
                continue  # as in `_openai`
            for part in _objects(_object(candidate.get("content")).get("parts")):
                self._say(part.get("text"), made, reasoning=part.get("thought") is True)
                call = part.get("functionCall", part.get("function_call"))  # on the wire, in its client
                if isinstance(call, Mapping) and (call or self._last in self._pending):
                    self._gemini_call(call, made)
            self._stopped(candidate.get("finishReason") or candidate.get("finish_reason"))

    def _gemini_call(self, call: Mapping[str, Any], made: list[str | Event]) -> None:
        """Read a call that is whole, or one part of it: parts come until one does not say that another will."""
        goes_on = call.get("willContinue") or call.get("will_continue")
        partial = call.get("partialArgs") or call.get("partial_args")
        if call.get("name") and self._last in self._pending:
            self._end(self._last, made)
        if self._last not in self._pending:
            arguments = None if goes_on or partial else call.get("args") or {}
            self._piece(self._begun, call.get("id"), call.get("name"), arguments, made)
            self._pending[self._last].partial = PartialArguments() if arguments is None else None
        pending = self._pending[self._last].partial or PartialArguments()
        for piece in _objects(partial):
            pending.add(piece)
        if not goes_on:
            self._end(self._last, made)

    def _cohere(self, kind: str, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "cohere"
        delta = _object(chunk.get("delta"))
        message = _object(delta.get("message"))
        self._say(message.get("tool_plan"), made, reasoning=True)
        content = _object(message.get("content"))
        self._say(content.get("thinking"), made, reasoning=True)
        self._say(content.get("text"), made)
        piece = _object(message.get("tool_calls"))
        key = _key(chunk.get("index"))
        if kind == "tool-call-start":
            self._release(made)
        if piece:
            function = _object(piece.get("function"))
            self._piece(key, piece.get("id"), function.get("name"), function.get("arguments"), made)
        if kind == "tool-call-end" and key in self._pending:
            self._close(key, made)
        if delta.get("finish_reason"):
            self._stopped(delta["finish_reason"])
            self._release(made)

    def _cohere_message(self, whole: Mapping[str, Any], made: list[str | Event]) -> None:
        """Read an answer that was not streamed."""
        self._dialect = "cohere"
        message = _object(whole.get("message"))
        self._say(message.get("tool_plan"), made, reasoning=True)
        for part in _objects(message.get("content")):
            self._say(part.get("thinking"), made, reasoning=True)
            self._say(part.get("text"), made)
        for key, piece in enumerate(_objects(message.get("tool_calls"))):
            function = _object(piece.get("function"))
            self._piece(key, piece.get("id"), function.get("name"), function.get("arguments"), made)
        self._stopped(whole.get("finish_reason"))
        made.extend(self.finish())

    # What they all mean.

    def _stopped(self, reason: Any) -> None:
        self.stop_reason = reason if isinstance(reason, str) else self.stop_reason
        self._dropped = self._dropped or DROPPED in self.stop_reason.lower()

    def _say(self, text: Any, made: list[str | Event], *, reasoning: bool = False) -> None:
        if isinstance(text, str) and text:
            self._said = True
            text = self._thoughts.whole(text) if reasoning else text
            if text:
                made.append(Text(self._here(), text, "reasoning") if reasoning else text)

    def _piece(self, key: Any, own_id: Any, name: Any, arguments: Any, made: list[str | Event]) -> None:
        call = self._pending.get(key)
        if call is None:
            for other in self._named:
                self._start(other, made)
            self._named.clear()
            call = self._pending[key] = Pending(self._begun)
            self._begun += 1
        self._last = key
        again = call.id is not None and call.id == own_id
        call.id = call.id or (own_id if isinstance(own_id, str) and own_id else None)
        if isinstance(name, str) and name and not call.started:
            if not call.name:
                self._named.append(call)
            call.name = name if name.startswith(call.name) else call.name + name  # some tell all of it, each time
        if call.pieces or arguments or self._dialect != "openai":  # there a name may come in pieces
            self._start(call, made)
        if arguments is not None and not isinstance(arguments, str):
            arguments = text_of(arguments)
        if not arguments or (again and call.is_told(arguments)):
            return
        arguments = call.take(arguments)
        if arguments and call.started:
            made.append(ArgumentsDelta(call.index, arguments))

    def _start(self, call: Pending, made: list[Any]) -> None:
        if call.name and not call.started:
            call.started = True
            made.append(CallStart(call.index, call.name, self._dialect))
            made.extend(ArgumentsDelta(call.index, piece) for piece in call.pieces)

    def _close(self, key: Any, made: list[str | Event]) -> None:
        """End a call that its server says is over. One without arguments waits: they say it of what they cut, too."""
        self._pending[key].closed = True
        if self._pending[key].pieces:
            self._end(key, made)

    def _release(self, made: list[str | Event]) -> None:
        """End what waits: something came behind it, or the reason why nothing does."""
        whole = not self.stop_reason or self._is_whole()
        for key in [key for key, call in self._pending.items() if call.closed]:
            self._end(key, made, whole=whole)

    def _is_whole(self) -> bool:
        return self.stop_reason.lower() in WHOLE

    def _end(self, key: Any, made: list[Any], *, whole: bool = True) -> None:
        call = self._pending[key]
        self._start(call, made)
        cut = not whole and (call.partial is not None or not call.pieces)
        if call.partial is not None:
            value = call.partial.value
            self._piece(key, None, None, "{" if value is None else value, made)
        del self._pending[key]
        raw = "".join(call.pieces) + call.halves.rest() + ("" if call.null.strip() in ("", "null") else call.null)
        name = call.name or None
        ends_early = cut
        try:
            arguments = decode(raw.strip() or "{}", Limits().nesting)
            code = "" if isinstance(arguments, dict) else "bad-arguments"
        except Undecodable as error:
            ends_early = cut or error.cut
            code = "unclosed-marker" if error.cut and not whole else error.code
        code = "missing-name" if name is None else "unclosed-marker" if cut else code
        if not code:
            if not raw:
                made.append(ArgumentsDelta(call.index, "{}"))
            span, raw = self._here(), raw or "{}"
            made.append(Call(span, "", call.index, call.name, arguments, raw, self._dialect, (), call.id))
            return
        self.unread.append({"name": call.name, "arguments": raw})
        self.unfinished = self.unfinished or ends_early
        code = code if code in _REASONS else "bad-arguments"
        reason = _REASONS[code]
        message = f"expected a tool call, found {reason}"
        made.append(Malformed(self._here(), "", code, message, call.index, name, self._dialect))

    def _here(self) -> Span:
        return Span(self.position, self.position)


def said_in(choice: Mapping[str, Any], *, said: bool, called: bool) -> Mapping[str, Any]:
    """Return the delta of a choice, else its message: beside an empty delta without what others have said already.

    In a message each call is whole: where several have no index, it is their place.
    """
    delta, message = choice.get("delta"), _object(choice.get("message"))
    calls = _objects(message.get("tool_calls"))
    if len(calls) > 1:
        message = {**message, "tool_calls": [{"index": place, **call} for place, call in enumerate(calls)]}
    if delta or delta is None:
        return _object(delta) or message
    told = (*(_TEXTS if said else ()), *(_CALLS if called else ()))
    return {key: value for key, value in message.items() if key not in told}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(values: Any) -> list[Mapping[str, Any]]:
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list | tuple) else []


def _key(value: Any) -> int | str | None:
    return value if isinstance(value, int | str) else None
