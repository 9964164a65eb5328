"""Where entries begin and values end: the compiled engine looks at single characters, Python searches; both find the
same.
"""

from __future__ import annotations

import re
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callmark import Call, Dialect, Parser, parse
from callmark.dialects import dialects
from callmark.reading import characters, scanner, stops
from callmark.reading.characters import Hops, Short, short
from callmark.reading.patterns import ValuePatterns
from callmark.reading.strings import _SIGNS_DOUBLE, STOPS_DOUBLE, SURE_DOUBLE
from strategies import hostile_texts
from test_cases import CASES

pytestmark = pytest.mark.skipif(
    not scanner.__file__.endswith(".py"), reason="the compiled engine goes from sign to sign alone"
)


def planned(rows: tuple[Dialect, ...], *, compiled: bool) -> scanner.Plan:
    with patch.object(scanner, "COMPILED", compiled), patch.object(characters, "PATIENCE", 0):
        return scanner.Plan(rows, "lenient")


PLANS = [planned(tuple(dialects()), compiled=compiled) for compiled in (False, True)]


def entries(plan: scanner.Plan, text: str, *, final: bool = True) -> list[tuple[int, str, tuple[int, int]]]:
    """Where entries begin, and which."""
    search, found, at = scanner.Search(plan), [], 0
    search.reset(final=final)
    while (at := search.next_entry(text, at)) < len(text):
        cursor = search.cursor
        matched = search.entry_at(text, at, final=True)
        assert matched is not None
        if cursor.match is not None:
            assert cursor.entry is matched[0]
            assert matched[1].span() == cursor.match.span()
        found.append((at, matched[0].kind, matched[1].span()))
        at += 1
    return found


def tried(plan: scanner.Plan, text: str) -> list[tuple[int, str, tuple[int, int]]]:
    """The same, by trying every entry everywhere."""
    places = [(at, plan.entries.get(char, ())) for at, char in enumerate(text)]
    all_of = [[(at, it, it.pattern.match(text, at)) for it in found if not it.text_start] for at, found in places]
    first = [next((it for it in found if it[2] is not None), None) for found in all_of]
    return [(it[0], it[1].kind, it[2].span()) for it in first if it is not None and it[2] is not None]


def test_it_goes_from_sign_to_sign_only_where_it_is_compiled_and_they_are_few():
    hopped = [{sign.char for sign in plan.signs if sign.hops is not None} for plan in PLANS]
    assert hopped[0] == set()
    assert hopped[1] >= {*"[<{`✿【"}
    assert not {char for char in hopped[1] if char.isalnum()}
    assert {sign.char for sign in PLANS[1].signs} - hopped[1] >= {*"fc"}


def test_hops_find_what_searching_finds_in_each_case():
    for case in CASES.values():
        text = case["input"]
        for again in (text, text[:-1], f"{text} a < b [1] <p> [ ] {text}"):
            assert entries(PLANS[1], again) == entries(PLANS[1], again, final=False) == entries(PLANS[0], again)
        assert entries(PLANS[0], text) == tried(PLANS[0], text)


@given(hostile_texts)
@example("[")
@example("a [ < [")
@example("[é [CALL: f({})]")
@example("<😀<tool_call>{")
def test_hops_find_what_searching_finds(text):
    assert entries(PLANS[1], text) == entries(PLANS[0], text)


def test_hops_give_way_to_searching_where_much_only_looks_like_an_entry():
    text = "<tool_x " * 100 + '<tool_call>{'
    with patch.object(Hops, "next", autospec=True, side_effect=Hops.next) as hop:
        assert entries(PLANS[1], text) == entries(PLANS[0], text) != []
    assert 4 <= hop.call_count < 20


def test_a_new_plan_tries_entries_one_by_one_before_it_makes_one_pattern_of_all():
    rows = tuple(dialects())
    plan = planned(rows, compiled=False)
    text = '<p> a < b <tool_call>{"name": "f", "arguments": {}}</tool_call> <tool> <think>\n'
    assert entries(plan, text) == tried(plan, text)
    [sign] = [it for it in plan.signs if it.char == "<"]
    assert "text" not in vars(sign.start)
    assert plan.first_in(text, 0) == (text.index("<tool_call>"), False)
    assert plan.first_in("<p> a < b <tool_c", 0) == (10, True)
    assert "text" not in vars(sign.start)
    assert entries(plan, text * 50) == tried(plan, text * 50)
    assert "text" in vars(sign.start)
    assert plan.first_in(f"{text} ", 0) == (text.index("<tool_call>"), False)


def test_a_process_searches_before_it_learns_to_hop():
    text = '<p> a < b <tool_call>{"name": "f", "arguments": {}}</tool_call> <tool> <think>\n'
    with patch.object(scanner, "COMPILED", True), patch.object(Hops, "next", side_effect=AssertionError):
        plan = scanner.Plan(tuple(dialects()), "lenient")
        assert entries(plan, text) == tried(plan, text)
    places = Hops("<", str.isalpha)
    assert [places.waits(characters.PATIENCE - 1), places.waits(1), places.waits(1)] == [True, True, False]


def test_hops_ask_once_about_what_stands_behind_a_sign():
    asked: list[str] = []
    places = Hops("<", lambda text: bool(asked.append(text)) or "<abé".startswith(text))
    texts = "<x <x <aé <abé <abé", "<abé", "<xabé", "<abd <aé <", "<a", "<ab"
    assert [places.next(text, 0, len(text)) for text in texts] == [10, 0, -1, 9, 0, 0]
    assert asked == ["<x", "<a", "<aé ", "<ab", "<abé", "<abd"]
    assert places.next("<ab", -1, 3) == -1
    assert places.next("  <abc", 0, 2) == -1


def test_hops_ask_about_so_many_beginnings_and_take_others_for_possible():
    asked: list[str] = []
    places = Hops("<", lambda text: bool(asked.append(text)) or not text.endswith("0"))
    letters = [chr(ord("A") + number) for number in range(35)]
    assert [places.next(f"<{letter}0", 0, 3) for letter in letters] == [-1] * 31 + [0] * 4
    assert len(asked) == 2 * 31 + 4


def test_hops_ask_about_so_many_beginnings_of_other_characters():
    asked: list[str] = []
    places = Hops("<", lambda text: bool(asked.append(text)))
    many = "".join(f"<{letter}{number:02}" for letter in "áéíóúàèìòùâêîôû" for number in range(100))
    assert places.next(many, 0, len(many)) == 1024 * len("<é00")
    assert len(asked) == 1024


@given(st.text("`~a\n", max_size=12) | hostile_texts)
@example("``")
@example("```")
@example("a``b```")
def test_a_long_run_is_found_either_way(text):
    with patch.object(characters, "COMPILED", True):
        assert characters.has_long_run(text) is ("```" in text)
    assert characters.has_long_run(text) is (re.search("`{3}", text) is not None)


@given(st.text("ab\"'<[\\\n✿\ud800é", max_size=40))
@example("a" * 32)
@example("a" * 32 + '"')
@example("\ud800")
@pytest.mark.parametrize("signs", [r'["\\\x00-\x1f\ud800-\udfff]', "[<✿]"])
def test_a_short_text_is_searched_alike(signs, text):
    search = re.compile(rf"{signs}(?!b)").search
    with patch.object(characters, "COMPILED", True):
        found, meant = short(signs, search)(text), search(text)
    assert (None if found is None else found.span()) == (None if meant is None else meant.span())
    assert short(signs, search) is search


@given(st.text("ab<\n✿\ud800é", max_size=40), st.integers(0, 40))
@example("a" * 33 + "<", 0)
@example("a<", 0)
@example("é<", 0)
@example("a", 1)
def test_a_sign_is_found_alike(text, at):
    search = re.compile("[<\n✿]").search
    found = search(text, at)
    assert Short("[<\n✿]", search).find(text, min(at, len(text))) == (len(text) if found is None else found.start())


TAGGED = [form for dialect in dialects() for form in dialect.forms if form.body == "parameters"]


@given(st.sampled_from(TAGGED), st.text("a<&\\]\n\r\"\x01;é\ud800", max_size=8))
@example(TAGGED[0], "<")
def test_a_sure_sign_is_one_that_is_found(form, text):
    with patch.object(characters, "COMPILED", True):
        compiled = ValuePatterns(form)
        looks = [compiled.stops, compiled.breaks]
    plain = ValuePatterns(form)
    looks.append(Short(_SIGNS_DOUBLE, STOPS_DOUBLE, SURE_DOUBLE).search)
    for found, meant in zip(looks, [plain.stops, plain.breaks, STOPS_DOUBLE], strict=True):
        assert (found(text) is None) == (meant(text) is None)


@given(st.text("<>/px\n\"é", max_size=60))
@example("<x></p>")
@example("no sign")
def test_what_ends_a_value_is_found_either_way(text):
    found = []
    for compiled in (True, False):
        with patch.object(stops, "COMPILED", compiled):
            stop = stops.Stop(["(?P<end></p>)", "(?P<nested><p>)", "(?P<kept></x>)"], "<")
            found.append([str(stop.next(text, at)) for at in range(len(text) + 1)])
    assert found[0] == found[1]


def test_calls_that_stand_close_together_are_found_before_the_text_is_over():
    tags = "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>\n"
    text = "".join(map(tags.format, "123"))
    parser = Parser()
    events = [*parser.feed(text), *parser.finish()]
    assert [event.arguments for event in events if isinstance(event, Call)] == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_the_arguments_of_a_long_call_are_told_without_the_blanks_around_them():
    value = "some words\n" * 1000
    tags = f"<parameter=a>\n{value}\n</parameter>"
    (call,) = parse(f"<tool_call>\n<function=f>\n{tags}\n</function>\n</tool_call>").calls
    assert (call.arguments, call.raw_arguments) == ({"a": value}, tags)
