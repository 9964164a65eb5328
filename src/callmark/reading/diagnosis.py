"""Says in words what is wrong with a marker: what was expected, what was found, and where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from callmark.dialects import Dialect
from callmark.errors import DialectError
from callmark.events import Malformed

GRAMMAR_LIMIT = 4096
"""Characters of a marker up to which the grammar is asked: it takes some 3 microseconds a token."""

_SIGNS = frozenset(("unexpected-text", "unclosed-marker"))  # codes of which a grammar knows what should stand there
_VALUES = frozenset(
    ('"["', '"{"', '"("', '"true"', '"false"', '"null"', '"True"', '"False"', '"None"', "a number", "a string")
)
_UNSEEN = {" ": "a space", "\t": "a tab", "\n": "a line break", "\r": "a line break"}
_JSON_STRING = r'"(?:[^"\\]|\\.)*+"'
_FEW = 2  # keys that are named one by one


def explain(
    dialect: Dialect, raw: str, at: int, code: str, expected: str, found: str, *, with_grammar: bool
) -> str:
    """Return the message for a broken marker `raw`, whose reader stopped at index `at`.

    Where the dialect has a grammar, and it stops at the same place, its expected set is used: it is complete. But it
    knows signs only: where the reader knows what is wrong with them, its words are better.
    """
    if with_grammar and found and code in _SIGNS and len(raw) <= GRAMMAR_LIMIT and string_begin(expected) is None:
        from callmark.reading import grammar  # lark takes 90 ms to import

        try:
            mismatch = grammar.load(dialect).explain(raw)
        except DialectError:  # a dialect of one's own without a sound grammar: the reader's own words will do
            mismatch = None
        wanted = said(mismatch.expected) if mismatch is not None and mismatch.position == at else ""
        tag = wanted.strip('"')
        if wanted and not (len(tag) > 1 and raw.endswith(tag, 0, at)):  # else what must stand behind the tag is missing
            expected = wanted
    if not found:
        return expected
    named = found if " " in found or found == "more" else f"'{found}'" if '"' in found else f'"{found}"'
    return f"expected {expected}, found {named}, {at} characters into the marker"


def unclosed_string(at: int) -> str:
    """Return what is expected where a text ends in a string that begins at index `at` of its marker."""
    return f"the end of the string that begins {at} characters into the marker"


def string_begin(expected: str) -> int | None:
    """Return the index of the marker at which the string begins whose end is expected; None for anything else.

    >>> string_begin(unclosed_string(9))
    9
    """
    found = re.fullmatch("the end of the string that begins ([0-9]+) characters into the marker", expected)
    return int(found[1]) if found else None


def shown(char: str) -> str:
    """Return a character as a message shows it: by a word where there is nothing to see."""
    return _UNSEEN.get(char, char if char == "\\" else repr(char)[1:-1])


def said(expected: Iterable[str]) -> str:
    """Return what a grammar expects in words: a value for all that one begins with, and a key for all keys.

    >>> said(('"["', '"]"', '"false"', '"null"', '"true"', '"{"', "a number", "a string"))
    '"]" or a value'
    """
    words = set(expected)
    if "a value" in words or {"a number", "a string"} <= words:
        words = words - _VALUES | {"a value"}
    elif words <= {"a string", '"}"'}:  # where no value can stand, it is a key
        words = words - {"a string"} | {"a key in quotes"}
    keys = {word for word in words if word.startswith("'")}
    if len(keys) > _FEW:
        words = words - keys - {"a string", '"id" or "type"'} | {'a key, such as "name"'}
    return " or ".join(sorted(words))


class MessageParts(NamedTuple):
    """The parts of a message of `explain`: what was `expected`, what was `found`, and where in the marker."""

    expected: str
    found: str
    at: int


def message_parts(message: str) -> MessageParts | None:
    """Return the parts of a message of `explain`, None where it names no place.

    >>> message_parts('expected ":", found "x", 27 characters into the marker')
    MessageParts(expected='":"', found='x', at=27)
    """
    found = re.fullmatch(
        r"expected (.+), found (?:(['\"])(.+)\2|(.+)), ([0-9]+) characters into the marker", message, re.DOTALL
    )
    return MessageParts(found[1], found[3] or found[4], int(found[5])) if found else None


def place_said(problem: Malformed) -> int | None:
    """Return the position that the message of a broken marker speaks of, None where it names no place."""
    parts = message_parts(problem.message)
    if parts is None:
        return None
    at = string_begin(parts.expected)  # of a string without an end the beginning tells more
    if at is None:
        cut = problem.code == "unclosed-marker"  # what is wanted then belongs where the model wrote last
        at = min(parts.at, len(problem.raw.rstrip())) if cut else parts.at
    return problem.span.start + at


def unknown_tool(message: str) -> tuple[str, str]:
    """Return the name in the message of a Notice `unknown-tool` and the nearest known name, "" for none.

    >>> unknown_tool('no tool "forcast" was given; did it mean "forecast"?')
    ('forcast', 'forecast')
    """
    found = re.fullmatch(f"no tool ({_JSON_STRING}) was given(?:; did it mean ({_JSON_STRING})[?])?", message)
    return (json.loads(found[1]), json.loads(found[2] or '""')) if found else ("", "")
