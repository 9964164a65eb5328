"""Says how far a broken call came: which of its arguments are whole, and what would close the rest.

The previews of a call are JSON text (law 8), also of one that breaks or is cut, so this reads a prefix of JSON,
whatever the dialect.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from callmark.dialects import Dialect
from callmark.events import ArgumentsDelta, CallStart, JsonValue, Malformed
from callmark.reading.diagnosis import place_said
from callmark.reading.options import EVERYWHERE
from callmark.reading.parser import Parser
from callmark.reading.whole import parse

_SIGN: Final = "\0"  # a name may begin with any letter: a row for each of them would have patterns for each


class Begun(NamedTuple):
    """A call that was begun: its name, the arguments that are whole, and what closes those that are not as JSON."""

    name: str | None
    arguments: dict[str, JsonValue]
    closers: str


def begun(raw: str, dialect: Dialect, nonce: str | None = None) -> Begun:
    """Return how far the first call in `raw`, the text of a broken marker that carries `nonce`, came.

    >>> from callmark.dialects import select
    >>> begun('[CALL: save({"path": "a.txt", "body": ["Once', select("call")[0])
    Begun(name='save', arguments={'path': 'a.txt'}, closers='"]}')
    """
    for row, text in ((dialect, raw), (_raw_calls(dialect), _SIGN + raw)):
        found = _read(text, row, nonce)
        if found is not None:
            # A preview shows what is wrong as something, and goes on behind it: a word that is no value as a string.
            wrong = _wrong_at(text, row, nonce)
            return (None if wrong is None else _read(text[:wrong], row, nonce)) or found
    return Begun(None, {}, "")


@lru_cache(maxsize=64)
def _raw_calls(dialect: Dialect) -> Dialect:
    """Return the dialect with calls that stand alone: what a raw call is, with `_SIGN` before it."""
    forms = [
        replace(
            form, alone=True, begins=_SIGN, opener="", separator="", closer="", loose_openers=(),
            head=_SIGN + form.head, loose_heads=tuple(_SIGN + head for head in form.loose_heads),
        )
        for form in dialect.forms
        if not form.alone
    ]  # fmt: skip
    return replace(dialect, forms=(*forms, *dialect.forms), writing=None)  # which would be that of another form


def _read(text: str, dialect: Dialect, nonce: str | None) -> Begun | None:
    previewed = _previewed(text, dialect, nonce)
    if previewed is None:
        return None
    name, begin = previewed
    for sign in "}]:)":  # a quote at the end is held back, for only what follows shows whether it ends its string
        more = _previewed(text + sign, dialect, nonce)
        if more is not None and more[1].startswith(begin + '"'):
            begin += '"'
            break
    whole, closers = _cut(begin)
    return Begun(name, json.loads(whole, object_pairs_hook=_unique) if whole[:1] == "{" else {}, closers)


def _wrong_at(text: str, dialect: Dialect, nonce: str | None) -> int | None:
    """Return the index of what is wrong with the first broken marker in `text`, None where it is but cut."""
    problems = parse(text, dialects=dialect, contexts=EVERYWHERE, nonce=nonce).problems
    broken = next((problem for problem in problems if isinstance(problem, Malformed)), None)
    return None if broken is None or broken.code == "unclosed-marker" else place_said(broken)


def _previewed(text: str, dialect: Dialect, nonce: str | None) -> tuple[str, str] | None:
    """Return the name and the previewed arguments of the first call that begins in `text`; None for no call."""
    events = Parser(dialects=dialect, contexts=EVERYWHERE, nonce=nonce).feed(text)
    starts = [event for event in events if isinstance(event, CallStart)]
    if not starts:
        return None
    first = starts[0]
    deltas = [event.json for event in events if isinstance(event, ArgumentsDelta) and event.index == first.index]
    return first.name, "".join(deltas)


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the object without the keys that are given twice: which of their values was meant is not known."""
    counts = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if counts[key] == 1}


def _cut(text: str) -> tuple[str, str]:
    """Return the members of a JSON object of which `text` is a prefix that are whole, as an object; and what closes it.

    A string or container is whole where its end was seen, anything else where a comma or the object's end was.
    """
    stack: list[str] = []
    whole = ""
    in_string = escaped = is_value = False
    for at, char in enumerate(text):
        if in_string:
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
            if not in_string and is_value and len(stack) == 1:
                whole = text[: at + 1] + stack[0]
        elif char == '"':
            in_string = True
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
        elif char in "}]":
            stack.pop()
            if len(stack) <= 1:
                whole = text[: at + 1] + "".join(stack)
        elif char in ",:" and len(stack) == 1:
            is_value = char == ":"
            whole = whole if is_value else text[:at] + stack[0]
    return whole, ('"' if in_string else "") + "".join(reversed(stack))
