"""Reads and writes again: a text from one dialect into another, and a conversation in text back into native calls.

Reading and writing do not know each other; this is where they meet.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, count, pairwise
from typing import Any, Final

from callmark.dialects import Dialect, selected
from callmark.dialects.fences import FENCE
from callmark.dialects.thoughts import is_thought_tag
from callmark.errors import UsageError
from callmark.events import Call, Event, Malformed, Markup, Text
from callmark.languages import Language, language_of
from callmark.reading.options import ContextPolicy, Dialects, wanted_again
from callmark.reading.whole import Parsed, parse
from callmark.writing.calls import render_placed
from callmark.writing.messages import Message, checked_messages, listed_calls
from callmark.writing.results import header_pattern

_GOES_ON: Final = re.compile(r"[ \t]*+[^ \t\r\n]")  # text on the line that another text ended on


def convert(
    text: str,
    to: str | Dialect,
    *,
    dialects: Dialects = None,
    tools: Any = None,
    contexts: Mapping[str, ContextPolicy] | None = None,
) -> str:
    """Return a text with its calls written in another dialect; all else stays where it is.

    >>> convert('Well. <tool_call>{"name": "look", "arguments": {"at": "it"}}</tool_call>', "call")
    'Well. [CALL: look({"at": "it"})]'

    dialects, tools, contexts   as `parse` takes them

    Calls with nothing but white space between them are written as one group. A marker that cannot be read stays as it
    is, with what opens and closes its section if no call is in it, and so does one that is no call where it stands.
    What is returned has the same calls when the other dialect is listened for, no more and no fewer. Raises UsageError
    where that cannot be: the other dialect cannot express a call, or has one where the text has none; the message says
    where. Cost: reading the text, and what is written.
    """
    target = selected(to)
    options = wanted_again({"tools": tools, "contexts": contexts})
    at_line_start = target.writing is not None and target.forms[target.writing.form].line_start
    pieces: list[str] = []
    origins: list[int | None] = []  # of each piece: where its text stood; None for calls
    calls: list[Call] = []
    held = ""  # white space behind a call: a part of its group if another one follows

    def write_calls(behind: str = "") -> None:
        nonlocal held
        if calls:
            line = _last_line(pieces)
            apart = at_line_start or FENCE.fullmatch(line)  # a fence ends on its line, or before some tokens
            written = _written(calls, target, options["tools"])
            ends_line = FENCE.fullmatch(_last_line([written])) and _GOES_ON.match(held + behind)
            pieces.append(("\n" if line and apart else "") + written + ("\n" if ends_line else "") + held)
            origins.append(None)
            calls.clear()
            held = ""

    in_thoughts = (contexts or {}).get("reasoning") == "allow"
    source = parse(text, dialects=dialects, **options)
    for start, piece in _pieces(source.events, in_thoughts):
        if isinstance(piece, Call):
            held = ""
            calls.append(piece)
        elif calls and not piece.strip():
            held += piece
        else:
            write_calls(piece)
            pieces.append(piece)
            origins.append(start)
    write_calls()
    result = "".join(pieces)
    found = parse(result, dialects=target, **options).calls
    if [*map(_said, found)] != [*map(_said, source.calls)]:
        raise UsageError(f"convert: {_difference(source.calls, found, pieces, origins)} in dialect {target.name}")
    return result


def _written(calls: Iterable[Call], target: Dialect, tools: Any) -> str:
    """Return calls in another dialect. Raises UsageError, which says where one stood that it cannot express."""
    placed = ((f"the call at position {call.span.start}: ", call) for call in calls)
    try:
        return render_placed(placed, target, tools=tools)
    except UsageError as error:
        raise UsageError(f"convert: {error}") from error


def _said(call: Call) -> tuple[str, str]:
    """Return what a call says, whatever its dialect; 1, 1.0 and true are apart."""
    return call.name, json.dumps(call.arguments)


def _difference(
    wanted: Sequence[Call], found: Sequence[Call], pieces: Sequence[str], origins: Sequence[int | None]
) -> str:
    """Return what is wrong where a text has not the calls that are wanted, and where in the source that stood.

    pieces, origins   what the text is made of, and of each piece where it stood; None for calls
    """
    begins = [*accumulate(map(len, pieces), initial=0)]
    for call in found:
        number = bisect_right(begins, call.span.start) - 1
        origin = origins[number]
        if origin is not None:
            place = origin + call.span.start - begins[number]
            return f"expected text that is no call, found at position {place} what would be one of {call.name!r}"
    read = [*map(_said, found), None]
    lost = next((call for call, other in zip(wanted, read, strict=False) if _said(call) != other), wanted[-1])
    place = lost.span.start
    return f"expected text that hides no call, found some that would hide that of {lost.name!r} at position {place}"


def _last_line(pieces: list[str]) -> str:
    """Return what stands on the last line of a text in pieces."""
    begin = next((at for at in reversed(range(len(pieces))) if "\n" in pieces[at]), 0)
    return "".join(pieces[begin:]).rpartition("\n")[2]


def _around_broken(events: Iterable[Event]) -> set[int]:
    """Return where markup begins that stays as it is: beside a marker that cannot be read, in a section without a call.

    Nothing but white space may stand between what is of one section.
    """
    around: set[int] = set()
    section: list[Markup | Malformed | Call] = []

    def end() -> None:
        if not any(isinstance(each, Call) for each in section):
            for one, other in pairwise(section):
                if isinstance(one, Malformed) or isinstance(other, Malformed):
                    around.update((one.span.start, other.span.start))
        section.clear()

    for event in events:
        match event:
            case Text(text=text) if text.strip():
                end()
            case Markup(raw=raw) if is_thought_tag(raw):
                end()
            case Markup() | Malformed() | Call():
                section.append(event)
    end()
    return around


def _pieces(events: Sequence[Event], in_thoughts: bool = False) -> Iterator[tuple[int, Call | str]]:
    """Yield the calls, and all else as text, but for what opens and closes sections: that goes with its dialect.

    Each comes with the position where it stood. A section in which a marker could not be read, and no call was, stays.

    Thoughts are between tags that every dialect knows, whatever marked them, and whatever ended them: a call is in them
    only where `in_thoughts` says that calls there count.
    """
    opened = 0  # tags around thoughts that stay as they are
    wrapped = False
    at = 0
    around = _around_broken(events)
    for event in events:
        piece: Call | str
        match event:
            case Call():
                piece = event
            case Text(text=piece, channel="reasoning") if not opened:
                at = event.span.start
                if not wrapped:
                    yield at, "<think>"
                wrapped = True
                yield at, piece
                continue
            case Text(text=piece) | Malformed(raw=piece):
                pass
            case Markup(raw=piece) if is_thought_tag(piece):
                opened = max(opened + (-1 if "/" in piece else 1), 0)
            case Markup(raw=piece) if event.span.start in around:
                pass
            case _:
                continue
        at = event.span.start
        if wrapped:
            yield at, "</think>"
        wrapped = False
        if opened and not in_thoughts and isinstance(event, Call):
            yield at, "</think>" * opened
            opened = 0
        yield at, piece
    if wrapped:
        yield at, "</think>"


def restore_history(
    messages: Iterable[Mapping[str, Any]],
    dialect: str | Dialect = "call",
    *,
    nonce: str | None = None,
    tools: Any = None,
    language: str | Language = "en",
) -> list[Message]:
    """Return a conversation in text as OpenAI's native messages: what `render_history` wrote, back again.

    >>> chat = [{"role": "assistant", "content": "Well. [CALL: look({})]"}]
    >>> restore_history(chat)[0]["tool_calls"][0]["function"]
    {'name': 'look', 'arguments': '{}'}

    Only assistant messages are read for calls, each part of text by itself; all the rest is their content, thoughts and
    what could not be read too. Only messages of the user that begin with a result's header are read for results; one
    that has no id and answers no call stays text, behind the others of its message. A call gets the id of the dialect,
    or of the result that answers it, or `call_` and a number that no other call or result has; native calls stand
    before those of the text beside them. Parts behind a result are its own; other parts stay as they are. Raises
    UsageError for a message that is none.
    """
    headers = header_pattern(language_of(language))
    options = wanted_again({"nonce": nonce, "tools": tools})
    result: list[Message] = []
    open_calls: list[Message] = []
    messages = checked_messages(messages)
    read: list[list[Parsed | None]] = []  # of each message's parts
    taken: set[str | None] = set()  # a call that has no id gets none of these, as it could be answered for another one
    for message in messages:
        role, content = message["role"], message.get("content")
        taken.update(str(call.get("id")) for call in listed_calls(message) if isinstance(call, Mapping))
        texts = map(_text, _listed(content)) if role == "assistant" else ()
        read.append([None if text is None else parse(text, dialects=dialect, **options) for text in texts])
        taken.update(call.id for found in read[-1] if found is not None for call in found.calls)
        if role == "user":
            taken.update(header["id"] for text, _ in _texts(content) for header in headers.finditer(text))
    free = (own_id for own_id in map("call_{}".format, count()) if own_id not in taken)
    for message, found in zip(messages, read, strict=True):
        role, content = message["role"], message.get("content")
        if any(parsed is not None for parsed in found):
            kept, open_calls = _called(message, found, free)
            result.append(kept)
        elif role == "user" and (told := _texts(content)) and all(headers.match(text) for text, _ in told):
            result += _results(told, headers, open_calls)
        else:
            result.append(dict(message))
    return result


def _called(
    message: Mapping[str, Any], read: Sequence[Parsed | None], free: Iterator[str]
) -> tuple[Message, list[Message]]:
    """Return an assistant's message with the calls in its texts as native ones, and these.

    read   of each of its parts, what is in it
    free   ids for calls that have none
    """
    kept, content = dict(message), message.get("content")
    calls: list[Message] = []
    parts: list[Any] = []
    for part, parsed in zip(_listed(content), read, strict=True):
        if parsed is None or not parsed.calls:
            parts.append(part)
            continue
        for call in parsed.calls:
            function = {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
            calls.append({"id": call.id or next(free), "type": "function", "function": function})
        said = "".join(piece for _, piece in _pieces(parsed.events) if isinstance(piece, str)).strip()
        parts += [{**part, "text": said}] if said else []
    if calls:
        kept["content"] = (parts if isinstance(content, list) or not parts else parts[0]["text"]) or None
        kept["tool_calls"] = [*listed_calls(message), *calls]
    return kept, calls


def _listed(content: Any) -> list[Any]:
    """Return the parts of a message's content."""
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _text(part: Any) -> str | None:
    """Return the text of a part; None where it is none."""
    text = part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _texts(content: Any) -> list[tuple[str, list[Any]]]:
    """Return the texts of a message, each with the parts behind it that are none; nothing where it begins with such."""
    said: list[tuple[str, list[Any]]] = []
    for part in _listed(content):
        text = _text(part)
        if text is not None:
            said.append((text.lstrip("\n "), []))
        elif said:
            said[-1][1].append(part)
        else:
            return []
    return said


def _results(said: list[tuple[str, list[Any]]], headers: Any, open_calls: list[Message]) -> list[Message]:
    """Return tool messages for the results in a message of the user, and give their ids to the calls they answer.

    Calls that are answered are open no longer. What cannot be told to be the result of a call stays a message.
    """
    messages: list[Message] = []
    others: list[Any] = []
    in_parts = False
    for content, media in said:
        found = list(headers.finditer(content))
        ends = [following.start() for following in found[1:]] + [len(content)]
        for header, end in zip(found, ends, strict=True):
            is_last = end == len(content)
            text = content[header.end() + 1 : end]
            text = text if is_last else text.removesuffix("\n\n")
            behind = media if is_last else []
            name, given = header["name"], header["id"]
            named = [call for call in open_calls if call["function"]["name"] == name]
            answered = next((call for call in named if call["id"] == given), named[0] if named else None)
            if answered is not None:
                open_calls.remove(answered)
                answered["id"] = given or answered["id"]
                given = answered["id"]
            if given:
                shown = [*([{"type": "text", "text": text}] if text else []), *behind] if behind else text
                messages.append({"role": "tool", "tool_call_id": given, "name": name, "content": shown})
            else:
                gap = "\n\n" if others else ""
                others += [{"type": "text", "text": f"{gap}{header[0]}\n{text}"}, *behind]
                in_parts = in_parts or bool(behind)
    if others:
        kept = others if in_parts else "".join(part["text"] for part in others)
        messages.append({"role": "user", "content": kept})
    return messages
