"""The laws of reading, each a property over every dialect: well-formed markers, broken ones, and hostile texts.

`callmark.testing` holds the laws as functions; here they are given texts, and it is shown that they can fail.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from typing import Any

import pytest
import regex
from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from benchmarks.recovery import CORPUS, losses
from callmark import Call, CallStart, Limits, Malformed, Markup, Notice, Parser, Span, Text, UsageError, parse
from callmark import testing as laws
from callmark.dialects import Dialect, Form, dialects, expand, select
from callmark.events import MALFORMED_CODES, NOTICE_CODES, REPAIR_CODES, ArgumentsDelta
from callmark.reading import fast
from callmark.reading.grammar import Mismatch, load
from callmark.reading.parameters import plain_value
from callmark.reading.patterns import HOLD_LIMIT, Pattern, patterns, section
from callmark.reading.prefixes import unfinished
from callmark.reading.schemas import known_tools, scalar
from callmark.testing import in_chunks, joined
from feeding import by_characters, whole
from strategies import (
    HOSTILE,
    MARKERS,
    any_member,
    calls,
    cut_texts,
    good_markers,
    hostile_texts,
    members,
    mutated,
    options,
    schemas,
)

DIALECTS = [pytest.param(dialect, id=dialect.name) for dialect in dialects()]
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
EVERYWHERE = dict.fromkeys(("fence", "code", "quote", "reasoning"), "allow")

some = settings(max_examples=max(settings.default.max_examples // 4, 10))  # for each of the dialects
few = settings(max_examples=max(settings.default.max_examples // 10, 5))  # where one example is read at every cut

broken_members = mutated(any_member())
any_text = st.one_of(hostile_texts, hostile_texts, broken_members, good_markers, st.text())


def calls_of(events: Any) -> list[Call]:
    return [found for found in events if isinstance(found, Call)]


def meaning_of(call: Call) -> tuple[Any, ...]:
    return call.span, call.raw, call.index, call.name, exactly(call.arguments), call.id, call.dialect


def exactly(value: Any) -> str:
    """Return a text that is equal for equal JSON values only: 1 and 1.0 differ, and so do two orders of keys."""
    return json.dumps(value)


# Law 1: chunking is invisible.


@given(cut_texts(any_text), options)
@settings(max_examples=settings.default.max_examples * 2)
def test_chunking_is_invisible(text_and_cuts, chosen):
    text, cuts = text_and_cuts
    laws.check_chunking(text, cuts, **chosen)
    laws.check_chunking(text, range(len(text)), **chosen)


@few
@given(any_text, options)
def test_every_single_cut_is_invisible(text, chosen):
    laws.check_chunking(text[:200], **chosen)


@few
@given(any_text, options)
def test_chunking_is_invisible_in_truncated_texts(text, chosen):
    for cut in range(min(len(text), 200)):
        laws.check_chunking(text[:cut], [cut // 2, cut - 1], **chosen)


@each_dialect
@some
@given(st.data())
def test_chunking_of_members_is_invisible(dialect, data):
    text, cuts = data.draw(cut_texts(members(dialect)))
    chosen = {"dialects": dialect, "tolerance": data.draw(st.sampled_from(["strict", "lenient"]))}
    laws.check_chunking(f"So:\n{text}\nand on", cuts, contexts=EVERYWHERE, **chosen)
    laws.check_chunking(text, range(len(text)), contexts=EVERYWHERE, **chosen)


# Law 2: nothing is lost.


@given(any_text, options)
def test_nothing_is_lost(text, chosen):
    laws.check_nothing_is_lost(text, **chosen)


@given(any_text, options)
def test_events_are_of_the_closed_sets(text, chosen):
    for found in whole(text, **chosen):
        match found:
            case Malformed():
                assert found.code in MALFORMED_CODES
                assert found.message
            case Notice():
                assert found.code in NOTICE_CODES
                assert 0 <= found.span.start <= found.span.end <= len(text)
            case Call(repairs=repairs, span=span):
                for repair in repairs:
                    assert repair.code in REPAIR_CODES
                    assert span.start <= repair.span.start <= repair.span.end <= span.end


# Law 3: model text never raises.


@given(any_text | st.text(st.characters(categories=["Cs", "Cc", "Zl", "Ps", "Pe", "Po"]), max_size=30), options)
@example('[CALL: f("\ud83d")]', {})
@example("<tool_call>\x00{", {})
def test_model_text_never_raises(text, chosen):
    in_chunks([text], **chosen)
    in_chunks(text, **chosen)


# Law 4: little is withheld.


@given(any_text, options)
def test_little_is_withheld(text, chosen):
    laws.check_little_is_withheld(text, **chosen)


def may_begin(text: str) -> bool:
    """Return whether `text` may become an opener, a head or a reasoning tag: asked of `regex`, by each pattern."""
    forms = [form for dialect in select(None) for form in dialect.forms]
    wanted = [r"<(?:/)?(?i:think|thinking|thought|reasoning)>"]
    wanted += [pattern for form in forms for pattern in (form.opener, form.head * form.alone, *form.loose_heads) if pattern]
    found = (regex.match(expand(pattern), text, partial=True) for pattern in wanted)
    return any(match is not None and match.partial for match in found)


@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3), max_size=8).map("".join))
@example("a [1] b[")
@example("<tool_call> in prose [CALL me]")
def test_outside_a_marker_only_a_possible_opener_is_withheld(text):
    parser = Parser()
    emitted = 0
    for position, char in enumerate(text, 1):
        for found in parser.feed(char):
            if isinstance(found, CallStart | Malformed):
                return
            if isinstance(found, Text | Markup):
                emitted = found.span.end
        held = text[emitted:position]
        if not held or may_begin(held):
            continue
        closed = parse(text[:position] + "\x00", tolerance="lenient")
        assert any(isinstance(found, Malformed) and found.span.start <= emitted for found in closed.events), held


@pytest.mark.parametrize("opener", ["[", "[C", "[CAL", "[ CALL : x", "<", "<tool_", "<tool_call>\n", "<|tool", "【", "</thin"])
def test_a_half_opener_is_released_by_the_character_that_rules_it_out(opener):
    parser = Parser()
    before = "".join(found.text for found in parser.feed("See " + opener))
    assert before == "See "
    assert "".join(found.text for found in parser.feed(";")) == opener + ";"


@each_dialect
def test_a_long_string_is_previewed_as_it_comes(dialect):
    for marker in MARKERS[dialect.name]:
        place = next((marker.index(sign) for sign in ("x", '"a": "', "Oslo", "]") if sign in marker), None)
        if place is None:
            continue
        parser = Parser(dialects=dialect, contexts=EVERYWHERE, tools=[{"name": "f", "parameters": {}}])
        seen = sum(len(found.json) for found in parser.feed(marker[:place]) if isinstance(found, ArgumentsDelta))
        came = 0
        for _ in range(20):
            came += 1000
            seen += sum(len(found.json) for found in parser.feed("y" * 1000) if isinstance(found, ArgumentsDelta))
            if not any(isinstance(found, Malformed) for found in parser.feed("")):
                assert came - seen <= 4096 + 1000, marker
