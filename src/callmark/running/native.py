"""Assembles the tool calls that servers send in fragments into the same events that reading text gives.

A chunk is one decoded event of a stream: OpenAI's chat API or its Responses, Anthropic's Messages, Gemini or Cohere;
which one, it shows itself. Servers that copy these APIs bend them, and what is met is read: names that come late or
again, no index, every call at index 0 with an id of its own, arguments as an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from callmark.errors import UsageError
from callmark.events import ArgumentsDelta, Call, CallStart, Event, Malformed, Span, Text
from callmark.reading.options import Limits


class _Pending:
    """A call that has begun."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name = ""
        self.started = False
        self.pieces: list[str] = []


class Assembler:
    """Turns chunks into events; what is visible text is returned as `str`, for a Parser or for people.

    >>> assembler = Assembler()
    >>> piece = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"at": 1}'}}
    >>> assembler.feed({"choices": [{"delta": {"content": "Hm. ", "tool_calls": [piece]}}]})
    ['Hm. ', CallStart(index=0, name='look', dialect='openai'), ArgumentsDelta(index=0, json='{"at": 1}')]
    >>> assembler.finish()[0].arguments
    {'at': 1}

    The events own no text: their spans are empty, at `position`, which who feeds the text keeps up to date. A call is
    complete when its server says so, or the stream ends; arguments that are no JSON object make it Malformed.
    """

    def __init__(self) -> None:
        self.position = 0
        self.stop_reason = ""  # as the server has it: "length" and its like mean that the message was cut
        self._pending: dict[Any, _Pending] = {}
        self._ended: set[Any] = set()  # output items of the Responses API, whose end may be told twice
        self._last: Any = None
        self._begun = 0
        self._dialect = "native"

    def feed(self, chunk: Mapping[str, Any]) -> list[str | Event]:
        """Return text and events of one chunk. Raises UsageError for what is no mapping."""
        if not isinstance(chunk, Mapping):
            raise UsageError(f"native stream: expected decoded events as mappings, found {type(chunk).__name__}")
        made: list[str | Event] = []
        kind = chunk.get("type")
        if "choices" in chunk:
            self._openai(chunk, made)
        elif "candidates" in chunk:
            self._gemini(chunk, made)
        elif isinstance(kind, str) and kind.startswith("response."):
            self._responses(kind, chunk, made)
        elif chunk.get("object") == "response":
            self._response(chunk, made)
        elif isinstance(kind, str) and kind.startswith(("content_block", "message_delta")):
            self._anthropic(kind, chunk, made)
        elif isinstance(kind, str):
            self._cohere(kind, chunk, made)
        return made

    def finish(self) -> list[Event]:
        """Say that the stream is over; return the calls that are still open."""
        made: list[Event] = []
        for key in list(self._pending):
            self._end(key, made)
        return made

    # What the servers send.

    def _openai(self, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "openai"
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or choice.get("message") or {}
            self._say(delta.get("reasoning_content") or delta.get("reasoning"), made, reasoning=True)
            self._say(delta.get("content"), made)
            for piece in delta.get("tool_calls") or ():
                function = piece.get("function") or {}
                key = self._openai_key(piece, function)
                self._piece(key, piece.get("id"), function.get("name"), function.get("arguments"), made)
            if choice.get("finish_reason"):
                self.stop_reason = choice["finish_reason"]
                made.extend(self.finish())

    def _openai_key(self, piece: Mapping[str, Any], function: Mapping[str, Any]) -> Any:
        """Return which call a fragment belongs to: that of its id, else the newest of its index, else a new one."""
        slot, own_id = piece.get("index"), piece.get("id")
        for key, call in reversed(self._pending.items()):
            another = slot is None and function.get("name") and call.name
            if call.id == own_id if own_id and call.id else key[0] == slot and not another:
                return key
        return slot, self._begun

    def _responses(self, kind: str, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "openai-responses"
        key = chunk.get("output_index")
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            self._say(chunk.get("delta"), made)
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self._say(chunk.get("delta"), made, reasoning=True)
        elif kind == "response.output_item.added":
            self._item(key, chunk.get("item"), made)
        elif kind == "response.function_call_arguments.delta" and key in self._pending:
            self._piece(key, None, None, chunk.get("delta"), made)
        elif kind == "response.output_item.done" and key not in self._ended:
            pending = self._pending.get(key)
            if pending is None or not pending.pieces:  # its arguments came whole, or it did
                self._item(key, chunk.get("item"), made)
            if key in self._pending:
                self._ended.add(key)
                self._end(key, made)
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._say_why(chunk.get("response") or {})
            made.extend(self.finish())

    def _response(self, whole: Mapping[str, Any], made: list[str | Event]) -> None:
        """Read an answer of the Responses API that was not streamed."""
        self._dialect = "openai-responses"
        for key, item in enumerate(whole.get("output") or ()):
            for part in item.get("content") or ():
                self._say(part.get("text"), made, reasoning=item.get("type") == "reasoning")
            self._item(key, item, made)
        self._say_why(whole)
        made.extend(self.finish())

    def _item(self, key: Any, item: Any, made: list[str | Event]) -> None:
        if isinstance(item, Mapping) and item.get("type") == "function_call":
            self._piece(key, item.get("call_id"), item.get("name"), item.get("arguments"), made)

    def _say_why(self, response: Mapping[str, Any]) -> None:
        details = response.get("incomplete_details") or {}
        self.stop_reason = details.get("reason") or response.get("status") or self.stop_reason

    def _anthropic(self, kind: str, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "anthropic"
        key = chunk.get("index")
        block = chunk.get("content_block") or {}
        delta = chunk.get("delta") or {}
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
            self._end(key, made)
        elif kind == "message_delta":
            self.stop_reason = delta.get("stop_reason") or ""

    def _gemini(self, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "gemini"
        for candidate in chunk.get("candidates") or ():
            for part in (candidate.get("content") or {}).get("parts") or ():
                self._say(part.get("text"), made, reasoning=part.get("thought") is True)
                whole = part.get("functionCall")
                if whole:
                    self._piece(self._begun, whole.get("id"), whole.get("name"), whole.get("args") or {}, made)
                    self._end(self._last, made)
            self.stop_reason = candidate.get("finishReason") or self.stop_reason

    def _cohere(self, kind: str, chunk: Mapping[str, Any], made: list[str | Event]) -> None:
        self._dialect = "cohere"
        delta = chunk.get("delta") or {}
        message = delta.get("message") or {}
        self._say(message.get("tool_plan"), made, reasoning=True)
        content = message.get("content")
        self._say(content.get("text") if isinstance(content, Mapping) else None, made)
        piece = message.get("tool_calls")
        key = chunk.get("index")
        if isinstance(piece, Mapping):
            function = piece.get("function") or {}
            self._piece(key, piece.get("id"), function.get("name"), function.get("arguments"), made)
        if kind == "tool-call-end" and key in self._pending:
            self._end(key, made)
        self.stop_reason = delta.get("finish_reason") or self.stop_reason

    # What they all mean.

    def _say(self, text: Any, made: list[str | Event], *, reasoning: bool = False) -> None:
        if isinstance(text, str) and text:
            made.append(Text(self._here(), text, "reasoning") if reasoning else text)

    def _piece(self, key: Any, own_id: Any, name: Any, arguments: Any, made: list[str | Event]) -> None:
        call = self._pending.get(key)
        if call is None:
            call = self._pending[key] = _Pending(self._begun)
            self._begun += 1
        self._last = key
        call.id = own_id if isinstance(own_id, str) and own_id else call.id
        if isinstance(name, str) and name and not call.name:
            call.name = name  # once: some servers send it with every fragment
        if call.name and not call.started:
            call.started = True
            made.append(CallStart(call.index, call.name, self._dialect))
            made.extend(ArgumentsDelta(call.index, piece) for piece in call.pieces)
        if isinstance(arguments, Mapping):
            arguments = msgspec.json.encode(arguments).decode()
        if isinstance(arguments, str) and arguments:
            call.pieces.append(arguments)
            if call.started:
                made.append(ArgumentsDelta(call.index, arguments))

    def _end(self, key: Any, made: list[Any]) -> None:
        call = self._pending.pop(key)
        raw = "".join(call.pieces)
        name = call.name or None
        try:
            arguments = msgspec.json.decode(raw) if raw.strip() else {}
        except (ValueError, RecursionError):
            arguments = None
        deep = arguments is not None and not _is_shallow(arguments, Limits().nesting)
        if deep:
            reason, code = "arguments that are nested too deep", "nesting-too-deep"
        elif name is None:
            reason, code = "a call without a name", "missing-name"
        elif isinstance(arguments, dict):
            if not raw.strip():
                made.append(ArgumentsDelta(call.index, "{}"))
            span, raw = self._here(), raw or "{}"
            made.append(Call(span, "", call.index, call.name, arguments, raw, self._dialect, (), call.id))
            return
        else:
            reason, code = "arguments that are no JSON object", "bad-arguments"
        message = f"expected a tool call, found {reason}"
        made.append(Malformed(self._here(), "", code, message, self._dialect, call.index, name))

    def _here(self) -> Span:
        return Span(self.position, self.position)


def _is_shallow(value: Any, depth: int) -> bool:
    """Whether at most `depth` brackets stand around each other: what is deeper, nothing behind this could walk."""
    if not isinstance(value, dict | list):
        return True
    members = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_shallow(member, depth - 1) for member in members)
