"""Says in words what is wrong with a marker: what was expected, what was found, and where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from callmark.dialects import Dialect
from callmark.errors import DialectError
from callmark.events import Malformed

GRAMMAR_LIMIT = 4096
"""Characters of a marker up to which the grammar is asked: it takes some 15 microseconds a token."""

REORDERING: Final = (*range(0x200E, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Code points that whoever shows model text replaces: they end a line, or change the order in which it is shown."""
_ESCAPES: Final = {
    code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0), *REORDERING) if chr(code) not in "\n\t"
}
"""What stands for these, and for what a terminal obeys, where JSON may stand too; line breaks and tabs stay."""

_SIGNS = frozenset(("unexpected-text", "unclosed-marker"))  # codes of which a grammar knows what should stand there
_VALUES = frozenset(
    ('"["', '"{"', '"("', '"true"', '"false"', '"null"', '"True"', '"False"', '"None"', "a number", "a string")
)
_UNSEEN = {" ": "a space", "\t": "a tab", "\n": "a line break", "\r": "a line break"}
_JSON_STRING = r'"(?:[^"\\]|\\.)*+"'
CLOSER_BEHIND: Final = "the closer of the marker behind"
"""What is expected behind a tag that is one of several which end a marker together. A grammar has one sign for all."""
NO_DEFINITION: Final = "arguments, not their definition"
"""What is expected where a model repeats the schema of a tool."""

_WHOLE_TAG = "a parameter or "  # a reader takes what opens a value as a whole: where that is wrong, a grammar knows
_FEW = 2  # keys that are named one by one
_SIGN: Final = re.compile("\"[^\"]++\"|'[^']++'")
_WORD = re.compile(r"\w{1,40}+")  # what is wrong is named as a whole, where it is one

WANTED: Final[Mapping[str, str]] = {
    "opener-spelling": "the opener as the dialect spells it",
    "full-width-punctuation": "ASCII punctuation",
    "curly-quotes": "straight double quotes",
    "single-quotes": "double quotes",
    "python-literal": "true, false, null, an array, a number or a string of JSON",
    "bare-key": "a key in double quotes",
    "bare-value": "a string in double quotes",
    "colon-for-equals": '"="',
    "missing-comma": '","',
    "extra-comma": "no comma",
    "comment": "no comment",
    "odd-blank": "a space, or none at an end of a name",
    "raw-control-character": r"an escape, such as \n",
    "literal-backslash": r"a backslash that is doubled: \\",
    "markdown-escape": "the name without backslashes",
    "inner-quotes": r'an escaped quote: \"',
    "missing-opener": "what opens the marker or its arguments",
    "missing-closer": "what closes the value or the marker",
    "extra-closer": "one bracket less",
    "equals-for-colon": '":"',
    "wrong-closer": "the closer of the same kind as the opener",
    "string-arguments": "the arguments as an object",
    "null-arguments": "the arguments as an object",
    "escaped-entities": "the characters themselves",
    "fenced-body": "the body without a fence",
    "neighbour-body": "the arguments as the dialect writes them",
    "doubled-braces": "one brace",
    "key-spelling": "the keys of the dialect, at the outermost level",
    "flattened-arguments": "the arguments as an object of their own",
    "plain-quotes": "the dialect's own string delimiter",
    "triple-quotes": "one quote in place of three",
    "raw-arguments": "arguments with names",
}
"""What should stand where a repair was made, by its code."""
_REFUSED: Final = {
    "raw-control-character": "control-character",
    "literal-backslash": "bad-escape",
    "string-arguments": "bad-arguments",
    "null-arguments": "bad-arguments",
    "flattened-arguments": "bad-arguments",
    "raw-arguments": "bad-arguments",
}
"""Codes of a repair and of what strict reading, which makes none, says in its place; of others `unexpected-text`."""
_BACKSLASHES: Final = {
    "python-literal": ("bad-escape", "an escape of JSON behind the backslash"),
    "string-arguments": ("unexpected-text", "quotes without backslashes"),
}
"""The same where a backslash stands there, and what is wanted then."""
_PRECISE: Final = frozenset((WANTED["odd-blank"], WANTED["plain-quotes"], "quotes without backslashes"))
"""What says more than a grammar, which knows signs only."""


def refused(code: str, found: str) -> tuple[str, str]:
    """Return the code of what strict reading says in the place of a repair, and what it expected where it `found` that.

    >>> refused("single-quotes", "'")
    ('unexpected-text', 'double quotes')
    """
    if found == "\\" and code in _BACKSLASHES:
        return _BACKSLASHES[code]
    return _REFUSED.get(code, "unexpected-text"), WANTED[code]


def word_at(text: str, at: int, end: int, over: str) -> str:
    """Return what a text has found at index `at` as a message names it: a word, or a character; `over` at its end.

    A word ends before index `end`.
    """
    word = _WORD.match(text, at, end)
    return over if at >= len(text) else word[0] if word is not None else shown(text[at])


def safe(text: str) -> str:
    """Return `text` with what a terminal would obey as escapes; line breaks and tabs stay."""
    return text.translate(_ESCAPES)


def explain(
    dialect: Dialect, raw: str, at: int, code: str, expected: str, found: str, *, with_grammar: bool
) -> str:
    """Return the message for a broken marker `raw`, whose reader stopped at index `at`, which may be behind its end.

    Where the dialect has a grammar, and it stops at the same place, or inside of what opens a value, its expected set
    is used: it is complete. But it knows signs only: where the reader knows what is wrong with them, its words are
    better.
    """
    precise = expected in _PRECISE or expected.startswith(CLOSER_BEHIND) or string_begin(expected) is not None
    if with_grammar and found and code in _SIGNS and len(raw) <= GRAMMAR_LIMIT and not precise:
        from callmark.reading import grammar  # Lark takes 60 ms to import

        try:
            mismatch = grammar.load(dialect).explain(raw)
        except DialectError:  # a dialect of one's own without a sound grammar: the reader's own words will do
            mismatch = None
        wanted = said(mismatch.expected) if mismatch is not None and mismatch.position == min(at, len(raw)) else ""
        if mismatch is not None and at < mismatch.position < len(raw) and expected.startswith(_WHOLE_TAG):
            at, wanted = mismatch.position, said(mismatch.expected)
            found = word_at(raw, at, len(raw), "")
        tag = wanted.strip('"')
        there = len(tag) > 1 and raw[:at].rstrip().endswith(tag)  # then what must stand behind the tag is missing
        if wanted and not there:
            expected = wanted
    if not found:
        return expected
    longer = "" if precise else _telling(expected, raw[at:])
    if len(longer) > len(found) or (longer and found in _UNSEEN.values()):
        named = _in_quotes("".join([repr(char)[1:-1] if char < " " else char for char in longer]))
    else:
        named = found if " " in found or found == "more" else _in_quotes(found)
    return f"expected {expected}, found {named}, {at} characters into the marker"


def _telling(expected: str, rest: str) -> str:
    r"""Return what tells the `rest` of a marker from the expected signs in quotes, where it begins as one of them.

    >>> _telling('": " or "="', ":1"), _telling('"\n"', "\r\n"), _telling('"</a>"', "<b")
    (':1', '\r', '<b')
    """
    shared = 0
    for sign in _SIGN.findall(expected):
        while shared < len(rest) and sign[1:-1].startswith(rest[: shared + 1]):
            shared += 1
    line = rest[:1] == "\r" and '"\n' in expected  # the other one, both of which are called a line break
    return rest[: shared + 1] if line or shared else ""


def _in_quotes(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'


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
    keys = {word for word in words if word.startswith("'\"")}
    if len(keys) > _FEW:
        words = words - keys - {"a string", '"id" or "type"'} | {'a key, such as "name"'}
    return " or ".join(sorted(words))


class MessageParts(NamedTuple):
    """The parts of a message of `explain`: what was `expected`, what was `found`, and where in the marker.

    in_words   whether it says in words what was found, as there is nothing to see; else that stands there, in quotes
    """

    expected: str
    found: str
    at: int
    in_words: bool


def message_parts(message: str) -> MessageParts | None:
    """Return the parts of a message of `explain`, None where it names no place.

    >>> message_parts('expected ":", found "x", 27 characters into the marker')
    MessageParts(expected='":"', found='x', at=27, in_words=False)
    """
    found = re.fullmatch(
        r"expected (.+), found (?:(['\"])(.+)\2|(.+)), ([0-9]+) characters into the marker", message, re.DOTALL
    )
    return MessageParts(found[1], found[3] or found[4], int(found[5]), found[4] is not None) if found else None


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
