"""Puts a prompt into a conversation, where a backend or a template wants it, and takes an older one out again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args
from zlib import crc32

from callmark.errors import UsageError
from callmark.writing.prompt import Prompt

Message: TypeAlias = dict[str, Any]

Place: TypeAlias = Literal["system", "merged", "user", "depth", "both"]
PLACES: Final[tuple[Place, ...]] = get_args(Place)
_LEADING: Final = ("system", "developer")
_RESULTS: Final = ("tool", "function")
_OURS = re.compile(
    r'\n{0,2}<tool-protocol(?: examples="(?P<count>[0-9]{1,4})-(?P<sum>[0-9a-f]{8})")?>\n(?:(?!</?tool-protocol).)*+'
    r"</tool-protocol>\n{0,2}",
    re.DOTALL,
)


def merge_into_messages(
    messages: Iterable[Mapping[str, Any]], prompt: Prompt, where: Place = "system", *, depth: int = 4
) -> list[Message]:
    """Return the messages with the prompt in them, between `<tool-protocol>` tags; the input is left as it is.

    >>> prompt = Prompt("Call f.", (), "Remember f.", (), "compact", 2)
    >>> merge_into_messages([{"role": "user", "content": "Hi"}], prompt)[0]["content"]
    '<tool-protocol>\\nCall f.\\n</tool-protocol>'

    where   "system"  a message of its own behind the leading system and developer messages, with the role of the last:
                      backends that know developers refuse or advise against both roles in one request
            "merged"  at the end of the last of these; a new one where there is none, or it is empty
            "user"    before the text of the last user message, for templates that know no system
            "depth"   a message of its own in the same role, with `depth` messages behind it, or as many more as keep
                      results of tools behind their calls
            "both"    as "system", and the prompt's reminder at the end of the last user message, for long chats

    Example turns come behind the leading messages. A second merge replaces the first, whatever the place. Content that
    is a list of parts stays one: text comes as a part of its own. Raises UsageError for another place, a negative
    depth, and for a place in a user message where there is none.
    """
    if where not in PLACES:
        raise UsageError(f"where: expected one of {', '.join(PLACES)}, found {where!r:.80}")
    if not isinstance(depth, int) or depth < 0:
        raise UsageError(f"depth: expected 0 or more messages, found {depth!r:.80}")
    if not isinstance(prompt, Prompt):
        raise UsageError(f"prompt: expected what protocol_prompt gives, found {type(prompt).__name__}")
    result = _without([dict(message) for message in checked_messages(messages)])
    lead = next((n for n, message in enumerate(result) if message.get("role") not in _LEADING), len(result))
    turns = [dict(turn) for turn in prompt.turns]
    text = _wrapped(prompt.text, turns)
    own = {"role": result[lead - 1]["role"] if lead else "system", "content": text}
    if where in ("user", "both"):
        last = next((n for n in reversed(range(len(result))) if result[n].get("role") == "user"), None)
        if last is None:
            raise UsageError(f"where={where!r}: expected a user message, found none")
        if where == "user":
            result[last] = _with_text(result[last], text, first=True)
        else:
            result[last] = _with_text(result[last], _wrapped(prompt.reminder, []), first=False)
    if where == "merged" and lead and result[lead - 1].get("content"):  # an empty one could not be told from ours
        result[lead - 1] = _with_text(result[lead - 1], text, first=False)
    elif where == "depth":
        at = max(len(result) - depth, lead)
        while lead < at < len(result) and result[at]["role"] in _RESULTS:
            at -= 1
        result.insert(at, own)
        lead += at == lead
    elif where != "user":
        result.insert(lead, own)
        lead += 1
    result[lead:lead] = turns
    return result


def checked_messages(messages: Any) -> list[Mapping[str, Any]]:
    """Return the messages of a conversation. Raises UsageError where they are none."""
    if not isinstance(messages, Iterable):
        raise UsageError(f"messages: expected a list of them, found {type(messages).__name__}")
    return [_checked(message) for message in messages]


def _checked(message: Any) -> Mapping[str, Any]:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise UsageError(f"messages: expected dicts with a role, found {message!r:.80}")
    # The result of a tool may be any JSON.
    if message["role"] not in _RESULTS and not isinstance(message.get("content"), str | list | None):
        raise UsageError(f"messages: expected content that is text or a list of parts, found {message!r:.80}")
    return message


def listed_calls(message: Mapping[str, Any]) -> list[Any]:
    """Return the native calls of a message. Raises UsageError where they are no list."""
    listed = message.get("tool_calls") or []
    if not isinstance(listed, list | tuple):
        raise UsageError(f"tool_calls: expected a list of calls, found {listed!r:.80}")
    return list(listed)


def _wrapped(text: str, turns: list[Message]) -> str:
    tag = f' examples="{len(turns)}-{_sum(turns)}"' if turns else ""
    inside = re.sub("<(?=/?tool-protocol)", r"<\\", text)
    return f"<tool-protocol{tag}>\n{inside}\n</tool-protocol>"


def _sum(turns: list[Message]) -> str:
    """Return what tells these turns from others, so that they are found again."""
    return f"{crc32(repr([(turn.get('role'), turn.get('content')) for turn in turns]).encode('utf-8', 'replace')):08x}"


def _with_text(message: Message, text: str, *, first: bool) -> Message:
    content = message.get("content")
    if isinstance(content, list):
        part = {"type": "text", "text": text}
        return {**message, "content": [part, *content] if first else [*content, part]}
    texts = [text, content] if first else [content, text]
    return {**message, "content": "\n\n".join(piece for piece in texts if piece)}


def _without(messages: list[Message]) -> list[Message]:
    """Return the messages without an earlier prompt, its reminder and its turns."""
    found: list[re.Match[str]] = []
    result = []
    for message in messages:
        role, content = message["role"], message.get("content")
        if isinstance(content, list):
            parts = [_part_without(part, role, found) for part in content]
            kept: Any = [part for part in parts if part is not None]
        else:
            kept = _text_without(content, role, found) if isinstance(content, str) else content
        if kept != content:
            if not kept and role in _LEADING:
                continue
            message = {**message, "content": kept}
        result.append(message)
    for match in found:
        if match["count"]:
            result = _without_turns(result, int(match["count"]), match["sum"])
    return result


def _part_without(part: Any, role: str, found: list[re.Match[str]]) -> Any:
    """Return a part without our text, None where nothing else was in it."""
    if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
        return part
    text = _text_without(part["text"], role, found)
    return part if text == part["text"] else ({**part, "text": text} if text else None)


def _text_without(text: str, role: str, found: list[re.Match[str]]) -> str:
    """Return a text without what stands between our tags: in a user's own words only where we put it, at an end."""
    pieces = []
    done = 0
    for match in _OURS.finditer(text):
        if role in _LEADING or (role == "user" and (match.start() == 0 or match.end() == len(text))):
            found.append(match)
            pieces.append(text[done : match.start()])
            done = match.end()
    return "".join([*pieces, text[done:]])


def _without_turns(messages: list[Message], count: int, checksum: str) -> list[Message]:
    for start in range(len(messages) - count + 1):
        if _sum(messages[start : start + count]) == checksum:
            return messages[:start] + messages[start + count :]
    return messages
