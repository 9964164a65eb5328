"""What stands around values: single characters say what the patterns do."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callmark import Parser
from callmark.events import Event
from callmark.reading import pairs, stops
from callmark.reading.ahead import UNKNOWN, WAITS, begins_plainly, behind_run, behind_word
from callmark.reading.pairs import BARE_VALUE, PAIR_HOLD, looked
from test_cases import CASES

BEHIND_QUOTES = [pairs._BEHIND_VALUE, pairs._BEHIND_KEY, *pairs._BEHIND_ITEM.values()]  # asked where one stands
PATTERNS = [BARE_VALUE, pairs._FIRST_KEY, pairs._IN_CONTAINER, *pairs._COMMA.values(), *BEHIND_QUOTES]
TOKENS = (
    "k", "_", "$", "@", "-", ".", "=", ":", ",", ", ", ")", "]", "}", "[", "{", '"', "'", "b'", "rb'", " ", "\t", "\n",
    "\r\n", " " * 63, "k" * 126, "0", "7", "12", "1234567", "0." + "1" * 14, "e1", "true", "None", "é", "，", "\x85",
    "\x1f", "\\", "\ud800", "\0", "k" * 197,
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.text[:30])
@given(text=st.lists(st.sampled_from(TOKENS), max_size=8).map("".join))
@settings(max_examples=settings.default.max_examples * 3)
def test_characters_say_what_the_pattern_does(pattern, text):
    text = f'"{text}' if pattern in BEHIND_QUOTES else text or "?"
    end, found = looked(pattern, text, 0), pattern.match(text)
    if end == WAITS:
        assert found is None
        assert len(text) > PAIR_HOLD or pattern.may_match(text, 0)
    elif end != UNKNOWN:
        assert found is not None
        assert found.end() == end
        assert pattern is not BARE_VALUE or found.end(1) == behind_word(text, 0)


@pytest.mark.parametrize(
    ("pattern", "text", "end"),
    [
        (BARE_VALUE, "it is, $k.1 = 2", 13),
        (BARE_VALUE, "so)", 3),
        (BARE_VALUE, "b'x'", UNKNOWN),
        (BARE_VALUE, "(", UNKNOWN),
        (BARE_VALUE, "so", WAITS),
        (BARE_VALUE, "so(", UNKNOWN),
        (BARE_VALUE, "so, ", WAITS),
        (BARE_VALUE, "so, k", WAITS),
        (BARE_VALUE, "so, k)", UNKNOWN),
        (BARE_VALUE, "so, 8", UNKNOWN),
        (BARE_VALUE, "é, k=", UNKNOWN),
        (pairs._FIRST_KEY, "\nk=", 3),
        (pairs._BEHIND_VALUE, '" )', 3),
        (pairs._BEHIND_KEY, '" :', 3),
        (pairs._BEHIND_KEY, '"', WAITS),
        (pairs._BEHIND_KEY, '"x', UNKNOWN),
        (pairs._IN_CONTAINER, "-10.25,", 6),
        (pairs._IN_CONTAINER, "0]", 1),
        (pairs._IN_CONTAINER, "-", WAITS),
        (pairs._IN_CONTAINER, "1.", WAITS),
        (pairs._IN_CONTAINER, "1.]", UNKNOWN),
        (pairs._IN_CONTAINER, "01]", UNKNOWN),
        (pairs._IN_CONTAINER, "true]", UNKNOWN),
        (pairs._IN_CONTAINER, "1e5]", UNKNOWN),
        (pairs._BEHIND_ITEM["]"], '" ]', 1),
        (pairs._BEHIND_ITEM["]"], '", 7', 1),
        (pairs._BEHIND_ITEM["]"], '", true,', UNKNOWN),
        (pairs._BEHIND_ITEM["]"], '"}', UNKNOWN),
        (pairs._BEHIND_ITEM["}"], '"}', 1),
        (pairs._BEHIND_ITEM["}"], '", "', 1),
        (pairs._BEHIND_ITEM["}"], '", 7', UNKNOWN),
        (pairs._BEHIND_ITEM["}"], '" , ', WAITS),
        (pairs._COMMA["]"], ", [", 2),
        (pairs._COMMA["]"], ", 7,", 3),
        (pairs._COMMA["]"], ", ", WAITS),
        (pairs._COMMA["]"], '"', UNKNOWN),
        (pairs._COMMA["}"], ", '", 2),
        (pairs._COMMA["}"], ", 7", UNKNOWN),
    ],
)  # fmt: skip
def test_what_models_write_is_known_by_its_characters(pattern, text, end):
    assert looked(pattern, text, 0) == end


@given(st.sampled_from("\"'"), st.text("aZ8\"'\\:\x1f\x7fé\ud800 n", max_size=40), st.integers(0, 3))
def test_characters_say_how_a_string_begins_and_goes_on(quote, text, at):
    run = behind_run(text, at)
    assert pairs._RUNS[quote].match(text, at).end() == pairs._RUNS[quote].match(text, max(run, at)).end()
    assert not begins_plainly(quote + text, 0) or pairs._PLAIN_STRING(quote + text)


def in_pieces(text: str, size: int) -> list[list[Event]]:
    """Return what each chunk of so many characters makes."""
    parser = Parser()
    return [*(list(parser.feed(text[at : at + size])) for at in range(0, len(text), size)), list(parser.finish())]


LONG_GAP = f"[CALL: f(a='x'{' ' * 64},{' ' * 64}{'k' * 100}=1)]"  # more than is waited for
READ = [case["input"] for case in CASES.values() if "=" in case["input"] or "<arg_" in case["input"]]


@given(st.sampled_from(READ), st.integers(1, 9), st.data())
@example(LONG_GAP, 1, None)
@example("[CALL: f(a='so\xa0so so so so so')]", 4, None)
@example("[CALL: f(a=x, b=[1, 'C:\\x', {'c': None}], d='é\\n')]", 4, None)
@settings(max_examples=settings.default.max_examples * 2)
def test_a_stream_is_read_alike_chunk_by_chunk(text, size, data):
    if data is not None:
        text = text[: data.draw(st.integers(0, len(text)))]
    with patch.object(pairs, "COMPILED", True), patch.object(stops, "COMPILED", True):
        found = in_pieces(text, size)
    assert found == in_pieces(text, size)
