"""Writes a conversation with native tool calls as text in the dialect that the prompt teaches.

So that a model sees its own earlier calls in the form that it is asked for: assistant messages get their calls as
text, and results become one message of the user's role, in the order of the calls. Results are never a system message.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from callmark.dialects import Dialect, selected
from callmark.dialects.rendering import WrittenCall, written
from callmark.dialects.values import checked
from callmark.errors import UsageError, check_flags
from callmark.events import RAW_KEY
from callmark.languages import Language
from callmark.toolshapes import tool_names
from callmark.writing.calls import declared_by
from callmark.writing.contexts import closed
from callmark.writing.messages import Message, checked_messages, listed_calls
from callmark.writing.neutral import neutralized_inside
from callmark.writing.results import written_result
from callmark.writing.toolset import tool_specs

_MEDIA: Final = (
    *(("image_url", "image_url"), ("video_url", "video_url"), ("input_audio", "input_audio")),  # OpenAI's, vLLM's
    ("image", "source"),  # Anthropic's
)
"""Types of parts that are no text, each with the key under which its content is."""


class _Result(NamedTuple):
    id: str
    name: str
    content: Any
    media: Sequence[Any] = ()


def render_history(
    messages: Iterable[Mapping[str, Any]],
    dialect: str | Dialect = "call",
    *,
    nonce: str | None = None,
    tools: Any = None,
    language: str | Language = "en",
    merge_roles: bool = False,
) -> list[Message]:
    """Return the messages with their native calls and results as text; the input is left as it is.

    >>> call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    >>> chat = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "a cat"}]
    >>> for message in render_history(chat):
    ...     print(message)
    {'role': 'assistant', 'content': '[CALL: look({})]'}
    {'role': 'user', 'content': 'Result of look (c1):\\na cat'}

    Takes OpenAI's shape (`tool_calls`, messages of the role `tool`) and Anthropic's (parts of the types `tool_use` and
    `tool_result`). Results that follow each other become one message, in the order of the calls that they answer;
    those of unknown calls come last, with their own ids; results without an id go by name, and those that have no
    name either are of the next call that has no result. One that `is_error` says `{"error": ...}`. Images and sounds in
    a result stay parts, behind its text. Arguments in JSON that are no object, or hold what no call can (half of a
    surrogate pair, say), are written as `{"_raw": text}`. What stands beside native calls is guarded, so that the calls
    behind it are read and nothing else: markers in it are broken, an open code fence and open thoughts are closed.
    Other content stays as it is, parts included.

    tools        in any usual shape: by their schemas calls are written, and by their names results are neutralized
    nonce        the code that written calls carry, and results do not: asterisks stand for it there
    merge_roles  whether neighbouring messages of one role become one, for templates that want roles to alternate

    Raises UsageError where the dialect cannot express a call, for a message that is none, and for options out of range.
    """
    row = selected(dialect)
    check_flags(merge_roles=merge_roles)
    known = None if tools is None else tool_specs(tools)  # once: they may come one by one
    declared = declared_by(known)
    their_names = tool_names(known)
    result: list[Message] = []
    names: dict[str, list[tuple[int, str]]] = {}  # by id, or where there is none by name: calls' numbers and names
    number = 0
    last: list[WrittenCall] = []  # the calls of the message before
    waiting: list[_Result] = []

    def write_results() -> None:
        if not waiting:
            return
        _claim(waiting, last)
        placed = []
        for found in waiting:
            of = names.get(found.id) or names.get(found.name) or [(number + 1, "")]
            placed.append((of.pop(0) if len(of) > 1 else of[0], found))
        placed.sort(key=lambda each: each[0][0])
        parts: list[Message] = []
        for (_, name), found in placed:
            text = written_result(
                name or found.name or "?",
                found.content,
                id=found.id or None,
                language=language,
                nonce=nonce,
                dialects=row,
                names=their_names,
            )
            parts += [{"type": "text", "text": f"\n\n{text}" if parts else text}, *found.media]
        seen = any(found.media for found in waiting)
        result.append({"role": "user", "content": parts if seen else "".join(part["text"] for part in parts)})
        waiting.clear()

    for message in checked_messages(messages):
        role, content = message["role"], message.get("content")
        parts = content if isinstance(content, list) else []
        if role in ("tool", "function"):
            name = message.get("name") or ""
            waiting.append(_Result(str(message.get("tool_call_id") or ""), str(name), *_told(message)))
            continue
        found = [part for part in parts if _kind(part) == "tool_result"]
        waiting += [_Result(str(part.get("tool_use_id") or ""), "", *_told(part)) for part in found]
        if found and len(found) == len(parts):
            continue
        write_results()
        kept = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
        last = calls = _calls(message, parts)
        if calls or found:
            text = written(calls, row, nonce, declared)  # which refuses what is no id
            said: dict[str, list[tuple[int, str]]] = {}
            for call in calls:  # some servers have one id for all
                number += 1
                said.setdefault(call.id or call.name, []).append((number, call.name))
            names |= said  # an id may come again: then it is the later call's
            others = [part for part in parts if _kind(part) not in ("tool_use", "tool_result")]
            kept["content"] = _joined(others if parts else content, text, row)
        result.append(kept)
    write_results()
    return _merged(result) if merge_roles else result


def _claim(results: list[_Result], calls: list[WrittenCall]) -> None:
    """Give results that do not say whose they are to the calls that no other one answers, in their order.

    Such a result has neither id nor name, or an id while the calls have none.
    """
    known = {call.id or call.name for call in calls}
    answered = {result.id or result.name for result in results}
    free = deque(call for call in calls if (call.id or call.name) not in answered)
    nameless = not any(call.id for call in calls)
    for number, result in enumerate(results):
        if free and not result.name and (not result.id or (nameless and result.id not in known)):
            call = free.popleft()
            results[number] = result._replace(id=result.id or call.id or "", name=call.name)


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, Mapping) else None


def _calls(message: Mapping[str, Any], parts: list[Any]) -> list[WrittenCall]:
    calls = []
    before = message.get("function_call")  # as OpenAI gave a call before there were several
    for call in [*listed_calls(message), *([{"function": before}] if before else [])]:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise UsageError(f"tool_calls: expected calls with a function that has a name, found {call!r:.80}")
        calls.append(WrittenCall(function["name"], _arguments(function.get("arguments")), call.get("id")))
    for part in parts:
        if _kind(part) == "tool_use":
            if not isinstance(part.get("name"), str):
                raise UsageError(f"tool_use: expected a name, found {part!r:.80}")
            calls.append(WrittenCall(part["name"], _arguments(part.get("input")), part.get("id")))
    return calls


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    if not given:
        return {}
    try:
        value = checked(json.loads(given, parse_constant=_refuse))
    except (TypeError, ValueError, RecursionError, UsageError):
        value = None
    return value if isinstance(value, dict) else {RAW_KEY: given if isinstance(given, str) else repr(given)}


def _refuse(word: str) -> Any:
    raise ValueError(f"expected JSON, found {word}")


def _told(result: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """Return what a result says, and shows: where it is an error, under the key by which sessions tell errors, too."""
    said, media = _parted(result.get("content"))
    content = _plain(said)
    fails = result.get("is_error") is True and "error" not in _arguments(content)
    return {"error": content} if fails else content, media


def _parted(content: Any) -> tuple[Any, list[Any]]:
    """Return content without its images and sounds, and these; all of it where it has none, or is data with such."""
    if isinstance(content, list):
        media = [
            part  # some templates write a `text` beside a sound: that is data, which is neutralized
            for part in content
            if any(_kind(part) == kind and part.get(key) and "text" not in part for kind, key in _MEDIA)
        ]
        said = [part for part in content if _kind(part) == "text"]
        if media and len(media) + len(said) == len(content):
            return said or "", media
    return content, []


def _plain(content: Any) -> Any:
    """Return what a result says: the text of its parts, where it is given in parts of text."""
    if isinstance(content, list) and content and all(_kind(part) == "text" for part in content):
        return "\n".join(str(part.get("text") or "") for part in content)
    return "" if content is None else content


def _joined(content: Any, text: str, row: Dialect) -> Any:
    """Return content with calls, if there are any, on a line of their own behind it."""
    if isinstance(content, list):
        if not all(_kind(part) == "text" for part in content):
            if not text:
                return content
            parts = [_guarded_part(part, row) for part in content]
            begun = any(_kind(part) == "text" for part in content)
            return [*parts, {"type": "text", "text": f"\n{text}" if begun else text}]
        content = "".join(str(part.get("text") or "") for part in content)
    return f"{_guarded(content.rstrip(), row)}\n{text}" if content and text else (text or content)


def _guarded_part(part: Any, row: Dialect) -> Any:
    return {**part, "text": _guarded(str(part.get("text") or ""), row)} if _kind(part) == "text" else part


def _guarded(text: str, row: Dialect) -> str:
    """Return what was said before native calls such that these are read behind it, and nothing in it is.

    Markers in it are broken, and a code fence or thoughts that were never closed are closed.
    """
    return closed(neutralized_inside(f"{text}\n", dialects=row).removesuffix("\n"), row)  # a line break follows


def _merged(messages: list[Message]) -> list[Message]:
    result: list[Message] = []
    for message in messages:
        last = result[-1] if result else {}
        if last.get("role") != message["role"]:
            result.append(message)
            continue
        if last.get("name") != message.get("name"):  # nobody says what another said
            last = {key: value for key, value in last.items() if key != "name"}
        both = [last.get("content"), message.get("content")]
        if any(isinstance(content, list) for content in both):
            listed = [content if isinstance(content, list) else _part(content) for content in both]
            result[-1] = {**last, "content": [*listed[0], *listed[1]]}
        else:
            result[-1] = {**last, "content": "\n\n".join(content for content in both if content)}
    return result


def _part(content: Any) -> list[Message]:
    return [{"type": "text", "text": content}] if content else []
