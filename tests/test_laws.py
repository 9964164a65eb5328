"""The laws of reading, each a property over every dialect: well-formed markers, broken ones, and hostile texts.

`callmark.testing` holds the laws as functions; here they are given texts, and it is shown that they can fail.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
import regex
from benchmarks.recovery import CORPUS, losses
from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from callmark import (
    Call,
    CallStart,
    DialectError,
    Limits,
    Malformed,
    Markup,
    Notice,
    Parser,
    Span,
    Text,
    UsageError,
    Writing,
    WrittenCall,
    neutralize,
    parse,
    render_call,
    render_calls,
)
from callmark import testing as laws
from callmark.dialects import Dialect, Form, derived, dialects, rendering, select
from callmark.dialects.backtracking import has_many_ways
from callmark.dialects.fences import QUOTING_TAG
from callmark.dialects.limits import PLAIN_LIMIT
from callmark.dialects.notation import expand, for_regex
from callmark.dialects.parsed import (
    last_characters,
    least_held,
    looks_outside,
    may_hold,
    one_character,
    tree,
    with_look_aheads,
)
from callmark.dialects.prefixes import (
    UnsupportedPatternError,
    apart,
    behind_line_breaks,
    first_characters,
    literals,
    merged,
    openings,
    unfinished,
)
from callmark.dialects.rendering import fill
from callmark.dialects.thoughts import THOUGHT_TAGS
from callmark.events import MALFORMED_CODES, NOTICE_CODES, REPAIR_CODES, ArgumentsDelta
from callmark.reading import entries, fast, scanner
from callmark.reading.diagnosis import message_parts
from callmark.reading.grammar import load
from callmark.reading.lookahead import lookahead
from callmark.reading.matching import HOLD_LIMIT, AnyOf, Begun, Pattern, begins, prefix
from callmark.reading.pairs import BARE_VALUE, PAIR_HOLD, WORD_WAITS
from callmark.reading.patterns import patterns, section
from callmark.reading.raw_values import plain_value
from callmark.reading.row_checks import check_row_alone, reach, sample_texts
from callmark.reading.schemas import known_tools
from callmark.reading.stops import Stop
from callmark.reading.strings import RUN_DOUBLE, STOPS_DOUBLE
from callmark.reading.words import scalar
from callmark.testing import in_chunks, joined
from feeding import by_characters, whole
from sampling import LooseTags, sample
from strategies import (
    HOSTILE,
    MARKERS,
    OPEN_STRINGS,
    SLOPPY,
    any_member,
    calls,
    cut_texts,
    filled_markers,
    good_markers,
    hostile_texts,
    members,
    mutated,
    options,
    quoting,
    schemas,
    sloppy_json,
    sloppy_markers,
    sloppy_tags,
    soup,
    valued_markers,
)

DIALECTS = [pytest.param(dialect, id=dialect.name) for dialect in dialects()]
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
EVERYWHERE = dict.fromkeys(("fence", "code", "quote", "reasoning"), "allow")

some = settings(max_examples=max(settings.default.max_examples // 4, 10))  # for each of the dialects
few = settings(max_examples=max(settings.default.max_examples // 10, 5))  # where one example is read at every cut

broken_members = mutated(any_member())
any_text = st.one_of(
    hostile_texts, filled_markers, mutated(good_markers | sloppy_markers), broken_members, valued_markers, st.text()
)


def calls_of(events: Any) -> list[Call]:
    return [found for found in events if isinstance(found, Call)]


def meaning_of(call: Call) -> tuple[Any, ...]:
    return call.span, call.raw, call.index, call.name, exactly(call.arguments), call.id, call.dialect


def exactly(value: Any) -> str:
    """Return a text that is equal for equal JSON values only: 1 and 1.0 differ, and so do two orders of keys."""
    return json.dumps(value)


# Law 1: chunking is invisible.


@pytest.mark.parametrize("texts", [any_text, valued_markers], ids=["any text", "plain values"])
@settings(max_examples=settings.default.max_examples * 4)
@given(data=st.data(), chosen=options)
def test_chunking_is_invisible(texts, data, chosen):
    text, cuts = data.draw(cut_texts(texts))
    laws.check_chunking(text, cuts, **chosen)
    laws.check_chunking(text, range(len(text)), **chosen)


@few
@given(any_text, options)
def test_what_was_read_before_changes_nothing(text, chosen):
    """Answers about short texts are remembered by what all parsers share."""
    remembered = by_characters(text, **chosen)
    plans = scanner._plan, scanner._named_plan, scanner._default_plan
    for made in (*plans, entries.section_heads, patterns, section):
        made.cache_clear()
    assert by_characters(text, **chosen) == remembered


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


def test_markers_of_plain_values_are_read_whole_and_broken_in_many_ways():
    seen = set()

    @given(valued_markers)
    @settings(max_examples=1000, database=None)
    def look(text):
        parsed = parse(text)
        seen.update(f"{call.dialect} {'mended' if call.repairs else 'plain'}" for call in parsed.calls)
        seen.update(problem.code for problem in parsed.problems)

    look()
    wanted = {f"{name} plain" for name in ("call", "pythonic", "qwen_xml", "glm")} | {"call mended", "pythonic mended"}
    assert wanted | {"unexpected-text", "duplicate-key"} <= seen


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
                assert list(repairs) == sorted(repairs, key=lambda repair: repair.span.start)


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


def may_begin(text: str, *, in_section: bool) -> bool:
    """Return whether `text` may become an opener, a head or a tag: asked of `regex`, by each pattern.

    Behind an opener a call may also begin with a head that is none elsewhere.
    """
    forms = [form for dialect in select(None) for form in (*dialect.forms, *dialect.variants) if not form.salvage]
    wanted = [*THOUGHT_TAGS, QUOTING_TAG]
    wanted += [tag for dialect in select(None) for tag in dialect.tags]
    wanted += [text for form in forms for text in (form.opener, form.head * (form.alone or in_section)) if text]
    wanted += [text for form in forms for text in (*derived.tolerated_heads(form), *form.loose_openers)]
    wanted += [text for form in forms for text in derived.nameless_heads(form, alone=not in_section)]
    found = (regex.match(for_regex(expand(pattern)), text, partial=True) for pattern in wanted)
    return any(match is not None and match.partial for match in found)


@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3), max_size=8).map("".join))
@example("a [1] b[")
@example("<tool_call> in prose [CALL me]")
@example("<|tool_call_start|>[f(")
@example("<parameter=x> <code lang=x")
@example("[//")
@example("[TOOL_CALLS]¼")
@example("[TOOL_CALLS])")
@example("[TOOL_CALLS]a b)")
@example("<tool_call>a b")
def test_outside_a_marker_only_a_possible_opener_is_withheld(text):
    parser = Parser()
    emitted = 0
    in_section = False
    for position, char in enumerate(text, 1):
        for found in parser.feed(char):
            if isinstance(found, CallStart | Malformed):
                return
            if isinstance(found, Text | Markup):
                emitted = found.span.end
                in_section = isinstance(found, Markup)
        held = text[emitted:position]
        if held and not may_begin(held, in_section=in_section):
            ended = parse(text[:position]).problems
            assert any(isinstance(found, Malformed) and found.span.start == emitted for found in ended), held


@pytest.mark.parametrize(
    "opener", ["[", "[C", "[CAL", "[ CALL : x", "<", "<tool_", "<tool_call>\n", "<|tool", "</thin"]
)
def test_a_half_opener_is_released_by_the_character_that_rules_it_out(opener):
    parser = Parser()
    assert [found.text for found in parser.feed("See " + opener)] == ["See "]
    assert "".join(found.text for found in parser.feed(";")) == opener + ";"


PIECES = ["y" * 100, "[CALL: g()] <tool_call> ", "东京 ) ] }", "</x> & <", "it is so "]


def test_every_dialect_has_an_open_string():
    assert {name for name, _, _ in OPEN_STRINGS} == {dialect.name for dialect in dialects()}


@pytest.mark.parametrize(("name", "opened"), [place[:2] for place in OPEN_STRINGS])
@pytest.mark.parametrize("typed", [True, False])
def test_an_open_string_is_previewed_as_it_comes(name, opened, typed):
    """With a schema that says string, all but a few characters are out; else up to 4,096 wait for their type."""
    schema = {"properties": {"a": {"type": "string"}}} if typed else {}
    parser = Parser(dialects=name, tools={"f": schema})
    row = next(row for row in dialects() if row.name == name)
    quoted = row.writing is None or not row.writing.parameter or row.writing.typed
    bound = 32 if typed or quoted else 4096 + 128
    came = seen = 0
    parser.feed(opened)
    for piece in PIECES * 60:
        came += len(piece)
        for found in parser.feed(piece):
            assert isinstance(found, ArgumentsDelta)
            seen += len(found.json)
        assert came - seen <= bound


# Law 5: the grammar is obeyed.


@each_dialect
@some
@given(st.data())
def test_a_member_of_the_grammar_is_read_as_the_grammar_says(dialect, data):
    laws.check_grammar(dialect, data.draw(members(dialect)))


@each_dialect
@some
@given(st.data())
def test_a_call_of_the_grammar_is_read_as_the_grammar_says(dialect, data):
    laws.check_grammar(dialect, data.draw(calls(dialect)))


@each_dialect
@some
@given(st.data())
def test_a_broken_member_is_a_call_only_where_the_grammar_says_so(dialect, data):
    laws.check_grammar(dialect, data.draw(mutated(members(dialect) | st.sampled_from(MARKERS[dialect.name]), 2)))


# Strict is lenient with nothing to repair.


def broken_texts(dialect: Dialect) -> st.SearchStrategy[str]:
    """Return texts of markers of a dialect with some characters wrong, and of its tokens in any order."""
    markers = mutated(st.sampled_from(MARKERS[dialect.name]), 2)
    return st.lists(markers | soup(dialect.name), min_size=1, max_size=3).map("".join)


def stands_elsewhere(call: Call, events: Any) -> bool:
    """Whether lenient reading takes the call for a part of something else: of a call that it mends, of one that is cut
    or breaks only behind it.
    """
    for other in events:
        tile = isinstance(other, Call | Malformed)
        around = tile and other.span.start <= call.span.start and call.span.end <= other.span.end
        if around and isinstance(other, Call) and other.repairs:
            return True
        if around and isinstance(other, Malformed):
            parts = message_parts(other.message)
            if parts is None or call.span.end <= other.span.start + parts.at:
                return True
    return False


def behind_separator(call: Call, events: Any) -> Call:
    """Return `call` as it stands in a section that goes on for lenient reading alone: the separator is markup there."""
    for other in events:
        if isinstance(other, Markup) and other.span.start == call.span.start and other.span.end < call.span.end:
            return replace(call, span=Span(other.span.end, call.span.end), raw=call.raw[len(other.raw) :])
    return call


@each_dialect
@some
@given(st.data())
def test_lenient_reading_finds_every_call_that_strict_reading_finds(dialect, data):
    text = data.draw(broken_texts(dialect))
    events = whole(text, dialects=dialect)
    found = [meaning_of(replace(call, index=0)) for call in calls_of(events)]  # one that is mended counts too
    for call in calls_of(whole(text, dialects=dialect, tolerance="strict")):
        call = replace(behind_separator(call, events), index=0)
        assert meaning_of(call) in found or stands_elsewhere(call, events)


@each_dialect
@some
@given(st.data())
def test_strict_reading_delimits_as_lenient_reading_does(dialect, data):
    """Where both hear the same heads they see the same markers; what lenient reading mends strict reading refuses."""
    text = data.draw(broken_texts(dialect))
    strict, lenient = (
        [found for found in whole(text, dialects=dialect, tolerance=tolerance) if isinstance(found, Call | Malformed)]
        for tolerance in ("strict", "lenient")
    )
    assume([found.span.start for found in strict] == [found.span.start for found in lenient])
    event(f"{sum(isinstance(found, Call) and found.repairs != () for found in lenient)} mended")
    for one, other in zip(strict, lenient, strict=True):
        if isinstance(other, Call) and not other.repairs:
            assert one == other
        elif isinstance(other, Malformed) and other.code == "unclosed-marker":
            assert isinstance(one, Malformed)  # what is wrong may be told before the end
        else:
            assert isinstance(one, Malformed)
            assert one.span == other.span


@pytest.mark.again
@each_dialect
@pytest.mark.parametrize("tolerance", ["strict", "lenient", "salvage"])
@pytest.mark.parametrize("fault", ["007", "nan", "-", "1e999", "", "9" * 4301])
def test_what_is_quoted_behind_a_wrong_value_stays_quoted(dialect, tolerance, fault):
    """Where a value is none, but has an end, the call goes on behind it, and is refused as a whole."""
    quoted = "[CALL: drop({})]"
    good = render_call("f", {"n": 7654321, "s": "half", "t": quoted}, dialect)
    for place, wrong in (("7654321", fault), ("half", "\ud800")):
        before, behind = good.split(place)
        text = before + wrong + behind
        events = whole(text, dialects=[dialect, "call"], tolerance=tolerance)
        read = [found for found in events if isinstance(found, Call | Malformed)]
        assert [found.name for found in read] == ["f"]
        assert all(quoted in found.raw for found in read)
        laws.check_chunking(text, dialects=[dialect, "call"], tolerance=tolerance)


@pytest.mark.again
@each_dialect
@pytest.mark.parametrize("tolerance", ["strict", "lenient"])
@pytest.mark.parametrize("fault", ["{1", "7 7", "7654321"])  # the last is none: a value between tags breaks by itself
@pytest.mark.parametrize(
    ("opens", "line", "closes"), [("`", "\n", "`"), ("\n```\n", "\n", "\n```\n"), ("\n> ", "\n> ", "\n")]
)
def test_a_call_that_a_broken_one_quotes_in_code_is_none(dialect, tolerance, fault, opens, line, closes):
    """Behind an error nobody can tell which strings are whole; where code begins and ends can be told all the same."""
    form, writing = dialect.forms[dialect.writing.form], dialect.writing
    broken = WrittenCall("f", {"n": 7654321, "t": "half"})
    before, behind = render_calls([broken], dialect).split("half")
    another = render_calls([WrittenCall("g", {})], dialect)
    quotations = [another.removeprefix(writing.opener).removesuffix(writing.closer).strip()]
    if form.separator and form.body != "parameters":  # brackets lead to the next call of a list
        quotations.append(render_calls([broken, WrittenCall("g", {})], dialect).split("half")[1].lstrip("\"'"))
    for quoted in quotations:
        if opens.strip() in quoted and opens != "\n> ":
            continue  # a fence that the dialect has itself
        if opens == "`" and "\n" in quoted:
            continue  # no line holds it
        text = before.replace("7654321", fault) + "see " + opens + quoted.replace("\n", line) + closes + behind
        assert "g" not in [call.name for call in calls_of(whole(text, dialects=dialect, tolerance=tolerance))]
        laws.check_chunking(text, dialects=dialect, tolerance=tolerance)


_QUOTED = [place for place in OPEN_STRINGS if place[1][-1] == place[2][0] and place[2][0] in "\"'"]


@pytest.mark.again
@pytest.mark.parametrize(("name", "opened", "closer"), _QUOTED)
@pytest.mark.parametrize("more", ["", ", b=1", ', "b": 1'])
def test_a_call_behind_an_odd_triple_quote_is_found_however_tolerant_reading_is(name, opened, closer, more):
    """Python has such strings; what goes on, or ends, behind three quotes is none, and takes no call with it."""
    text = f"{opened}{closer[0] * 2}{more}{closer[1:]}\n{opened}x{closer}"
    options = {"dialects": name, "contexts": EVERYWHERE}
    found = [calls_of(whole(text, tolerance=tolerance, **options)) for tolerance in ("strict", "lenient", "salvage")]
    assert len(found[0]) == 1
    assert found[0] == found[1] == found[2]
    laws.check_chunking(text, **options)


@each_dialect
@some
@given(st.data())
def test_nothing_is_mended_in_a_member_of_the_grammar(dialect, data):
    nothing_is_mended(dialect, data.draw(members(dialect)))


@pytest.mark.parametrize("text", ["[CALL: f(007)]", "[CALL: f(Oslo)]", "[CALL: f(Oslo, days=2)]", "[CALL: f(7)]"])
def test_nothing_but_a_lone_word_is_mended_in_a_member_of_the_grammar(text):
    nothing_is_mended(next(dialect for dialect in dialects() if dialect.name == "call"), text)


def nothing_is_mended(dialect: Dialect, text: str) -> None:
    """Check that every tolerance reads a member alike; but a lone word, which strict reading refuses, is kept raw."""
    refused = any(call.positional for call in load(dialect).read(text, "marker"))
    expected = whole(text, dialects=dialect, tolerance="strict", contexts=EVERYWHERE)
    for tolerance in ("lenient", "salvage"):
        found = whole(text, dialects=dialect, tolerance=tolerance, contexts=EVERYWHERE)
        raw = {repair.code for call in calls_of(found) for repair in call.repairs}
        assert joined(found) == joined(expected) or (refused and raw == {"raw-arguments"})


@pytest.mark.again
@given(any_text, options)
def test_a_call_without_repairs_is_in_the_grammar(text, chosen):
    laws.check_all(text[:150], **chosen)
    found = calls_of(whole(text, **chosen))
    event(f"{min(len(found), 3)} calls, {sum(not call.repairs for call in found) > 0} exact")


@each_dialect
@given(st.data())
def test_soup_of_a_dialects_tokens_is_a_call_exactly_where_the_grammar_says_so(dialect, data):
    laws.check_grammar(dialect, data.draw(soup(dialect.name)))


WITH_TAGS = [row for row in DIALECTS if any(form.parameter for form in row.values[0].forms)]


@pytest.mark.parametrize("dialect", WITH_TAGS)
@given(st.data())
def test_a_value_that_quotes_tags_is_what_the_grammar_says(dialect, data):
    for text in data.draw(quoting(dialect)):
        laws.check_grammar(dialect, text)


@pytest.mark.parametrize("dialect", WITH_TAGS)
@given(st.integers(0, 2**32))
def test_loosely_spelled_tags_are_what_the_grammar_says(dialect, seed):
    made = LooseTags(dialect, seed)
    for _ in range(10):
        laws.check_grammar(dialect, made.marker())


@pytest.mark.parametrize("dialect", WITH_TAGS)
def test_loosely_spelled_tags_are_nasty(dialect):
    made = LooseTags(dialect, 0)
    kinds: Counter[str] = Counter()
    for text in [made.marker() for _ in range(200)]:
        calls = calls_of(whole(text, dialects=dialect))
        strict = calls_of(whole(text, dialects=dialect, tolerance="strict"))
        kinds["good" if strict else "mended" if calls else "none"] += 1
    assert kinds["good"] >= 20
    assert kinds["mended"] + kinds["none"] >= 20
    assert kinds["mended"] >= 20 or not any(form.loose_parameters for form in dialect.forms)


FOUND: tuple[tuple[str, dict[str, Any]], ...] = (
    ("<tool_call>{" + "x" * 129, {}),
    ("[CALL: f(a=" + "x" * 4100 + ")]", {}),
    ('<function_call><tool>f</tool><args_json>{"":1}</args_json></function_call>', {}),
    ('<tool_call>{"name":"f","arguments":{"a":1},"x":{}}</tool_call>', {}),
    ("<function_call><tool>f</tool><args_json>>\udc00", {}),
    ('<tool_call>{"name":"f","id":"a\\n"}</tool_call>', {}),
    ('<tool_call>{"name":"f","id":""}</tool_call>', {}),
    ('```\n[CALL:f({"a": "xl', {"contexts": {"fence": "sole"}, "limits": Limits(nesting=1, arguments=8)}),
    ("```\n<|tool_call_start|>[f(ool_ca[", {"contexts": {"fence": "sole"}, "limits": Limits(arguments=5)}),
    ('```\n[CALL:f(""]', {"contexts": {"fence": "sole"}, "limits": Limits(arguments=1)}),
    ("[CALL: f(None)]", {}),
    ("[CALL: f('x')]", {}),
    ("[CALL: f([True])]", {}),
    ('[CALL: f({"a":' + "[" * 70 + "]" * 70 + "})]", {}),
    ('<tool_call>{"name":"f","arguments":{"":[]}}</tool_call>', {"limits": Limits(nesting=1)}),
    ("<function=f><parameter=b>x\r</parameter></function>", {}),
    ("<tool_call>{</tool_call>", {}),
    ("[CALL:f(C(]", {}),
    ("[CALL:g()>]", {}),
    ('[CALL:get_weather(007,{"[CALL: x()]":true})]', {}),
    ('<tool_call>{"name":"f","":{"a":1,"a":2}}</tool_call>', {}),
    ("<tool_call>f\n</tool_call>", {"dialects": "glm"}),
    ("<|tool_call>call:f{a:1,b :[]}<tool_call|>", {}),
    ("<|tool_call>call:f{a:1,d\n" + " " * 130 + ":2}<tool_call|>", {}),
    ("[CALL: f(a=11111)]<|tool_call:start|>f\n<|tool_arg:start|>a", {"limits": Limits(arguments=5)}),
    ("[CALL: f(a=7)]", {"tools": {"f": {"properties": {"a": {"type": "string"}}}}}),
)
"""Texts that broke a law once, as small as they could be made."""


@pytest.mark.parametrize(("text", "chosen"), FOUND)
def test_what_broke_a_law_once_breaks_none(text, chosen):
    for tolerance in ("strict", "lenient"):
        laws.check_all(text, tolerance=tolerance, **chosen)
    for dialect in dialects():
        laws.check_grammar(dialect, text)


@pytest.mark.parametrize("size", [4096, 4097])
@pytest.mark.parametrize(
    "marker",
    [
        '<invoke name="f"><parameter name="a">{}</parameter></invoke>',
        '<M<invoke name="f">]<M<a>]<M<item>{}]<M</item>]<M</a>]<M</invoke>'.replace("<M", "<]minimax[>["),
        '<｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="false">{}</｜DSML｜parameter></｜DSML｜invoke>',
    ],
)
def test_a_long_value_without_a_type_is_text_unless_its_tag_says_otherwise(marker, size):
    """Without a tag that tells it, what is held back must end within 4,096 characters to be taken for JSON."""
    value = '["' + "x" * (size - 4) + '"]'
    text = marker.replace("{}", value)
    laws.check_all(text)
    arguments = parse(text).calls[0].arguments
    read = arguments["a"][0] if "item" in marker else arguments["a"]
    assert read == (value if size > 4096 and "DSML" not in marker else json.loads(value))


OWN_NAMED = Dialect(
    name="own_named", title="own", models="none", source="this test",
    forms=(Form(head="<own>{name}:{ws}{object}", body="json", tail="</own>"),),
)  # fmt: skip


def markers_without_arguments():
    """One marker, with `{}` for its arguments, of each form that no prose can be; and whether it has a tail."""
    for row in (*dialects(), OWN_NAMED):
        forms = dict(row.placed_forms())
        for where, texts in sample_texts(row):
            if where in forms and derived.refused_heads(forms[where]):
                members = [text for text in texts if text.count("{}") == 1 and whole_call(text, row)]
                yield pytest.param(row, min(members, key=len), forms[where].tail != "", id=where)


def whole_call(text, row):
    return [call.repairs for call in parse(text, dialects=row, tolerance="strict").calls] == [()]


NAMED = list(markers_without_arguments())


def test_most_dialects_with_a_name_and_an_object_have_heads_that_no_prose_can_be():
    assert len(NAMED) >= 15
    assert len({row.name for row, *_ in (case.values for case in NAMED)}) >= 10


@pytest.mark.again
@pytest.mark.parametrize("tolerance", ["strict", "lenient", "salvage"])
@pytest.mark.parametrize("body", ["words", "[1]", "12", '"text"', "</end>"])
@pytest.mark.parametrize(("row", "marker", "closed"), NAMED)
def test_what_is_no_object_behind_such_a_head_is_wrong_and_hides_nothing(row, marker, closed, body, tolerance):
    text = marker.replace("{}", f" {body} ") + "\n\nThen [CALL: good(a=1)]."
    options = {"dialects": [row, "call"], "tolerance": tolerance, "tools": ["good"]}
    parsed = parse(text, **options)
    assert [call.name for call in parsed.calls] == ["good"]
    assert [problem.code for problem in parsed.problems if isinstance(problem, Malformed)] == ["bad-arguments"]
    laws.check_all(text, **options)


@pytest.mark.parametrize(("row", "marker", "closed"), NAMED)
def test_null_behind_such_a_head_is_no_arguments_where_a_tail_follows(row, marker, closed):
    text = marker.replace("{}", " null")
    parsed = parse(text, dialects=row)
    codes = [repair.code for call in parsed.calls for repair in call.repairs]
    assert codes == (["null-arguments"] if closed else [])
    assert [call.arguments for call in parsed.calls] == ([{}] if closed else [])
    assert not parse(text, dialects=row, tolerance="strict").calls
    laws.check_all(text, dialects=row)


@pytest.mark.parametrize("size", [4096, 4097])
@pytest.mark.parametrize("types", ["string array", "string array null", "string object"])
def test_a_long_value_that_may_be_a_string_or_a_container_is_text(types, size):
    """It is held as one without a type is, no longer: then it is previewed, and stays the string that it is."""
    value = '["' + "x" * (size - 4) + '"]'
    tools = {"f": {"properties": {"a": {"type": types.split()}}}}
    text = f"<function=f><parameter=a>{value}</parameter></function>"
    laws.check_all(text, tools=tools)
    is_array = size <= 4096 and "array" in types
    assert parse(text, tools=tools).calls[0].arguments == {"a": json.loads(value) if is_array else value}


@pytest.mark.parametrize("behind", ["", "\ud800"])
def test_a_long_string_of_python_is_the_same_whole_and_in_chunks(behind):
    """Whole, it is decoded and written by C."""
    text = "[CALL: f(a='" + r"""it\'s "x"\n\\ é \" \b""" * 64 + f"{behind}')]"
    laws.check_all(text)
    assert [call.arguments for call in parse(text).calls] == ([] if behind else [{"a": 'it\'s "x"\n\\ é " \b' * 64}])


def test_what_passes_in_a_chunk_of_a_string_is_the_content_of_one():
    chunks = ["".join(chunk) for size in range(1, 7) for chunk in itertools.product('"\\nud8x\n', repeat=size)]
    content = [chunk for chunk in chunks if RUN_DOUBLE.fullmatch(chunk) is not None]
    passes = {chunk for chunk in chunks if STOPS_DOUBLE(chunk) is None}
    assert passes <= set(content)
    assert len(passes) > 0.8 * len(content)


def cut_calls(dialect):
    """Return the calls of some arguments as a dialect writes them, each cut at every place."""
    if dialect.writing is None:
        return []
    several = ({}, {"a": 1}, {"a": "x y", "b": [1, {"c": 2}]})
    written = [render_call("first", arguments, dialect) for arguments in several]
    return [text[:end] for text in written for end in range(1, len(text))]


@each_dialect
def test_what_is_cut_is_unclosed_and_never_wrong(dialect):
    for text in cut_calls(dialect):
        for listened in (dialect.name, ["default", dialect.name]):
            broken = [event for event in parse(text, dialects=listened).problems if isinstance(event, Malformed)]
            assert {event.code for event in broken} <= {"unclosed-marker"}, text


@pytest.mark.again
@each_dialect
def test_what_a_cut_call_has_swallowed_is_text_with_fences_and_code(dialect):
    example, real = (render_call(name, {"k": "v"}, "call") for name in ("example", "real"))
    quoted = (f"```\n{example}\n```\n", f"~~~\n{example}\n~~~\n", f"`{example}`.\n", f"> {example}\n")
    for text in cut_calls(dialect):
        if text.startswith("`"):
            continue  # it opens a fence itself, which the one behind it closes
        for code in quoted:
            found = parse(f"{text}\n\nThe form is\n\n{code}\n{real}", dialects=["default", dialect.name])
            names = [call.name for call in found.calls if call.name != "first"]  # which may lack but its closer
            takes_the_rest = any(event.code == "unclosed-marker" for event in found.problems)
            assert names == ([] if takes_the_rest else ["real"]), text


@pytest.mark.parametrize("cut_one", [row.name for row in dialects() if any(map(derived.foreign, row.forms))])
def test_no_closer_of_a_call_in_another_dialect_ends_a_value_that_was_cut(cut_one):
    first = render_call("first", {"a": "Oslo is fine"}, cut_one)
    begun = first[: first.index(" is fine")]
    for other in dialects():
        if other.writing is not None:
            text = f"{begun}\n{render_call('second', {'k': 'x', 'l': 'y'}, other)}"
            calls = parse(text, dialects=[cut_one, other]).calls
            wrong = [call for call in calls if "wrong-closer" in {repair.code for repair in call.repairs}]
            assert not wrong, other


KEYED = [row.name for row in dialects() if (way := row.writing) and way.parameter and not row.forms[way.form].item]
"""Dialects whose parameters begin with a word. Where values may hold elements, they begin as the end of one does."""


@pytest.mark.parametrize("name", KEYED)
def test_a_parameter_that_goes_on_wrongly_is_no_text_of_the_value_before_it(name):
    (dialect,) = select(name)
    form = dialect.forms[dialect.writing.form]
    marker = render_call("f", {"a": "x", "b": "[CALL: h()]"}, name)  # which stays quoted
    begin = next(text for text in literals(expand(form.parameter.removeprefix("{ws}"))) if text in marker)
    at = marker.rindex(begin) + len(begin)
    text = f"{marker[:at]}<{marker[at:]} [CALL: g()]"
    for tolerance in ("lenient", "strict"):
        found = parse(text, dialects=["call", name], tolerance=tolerance)
        (problem,) = found.problems
        assert (problem.code, problem.name) == ("unexpected-text", "f")
        assert f'found "<", {at - problem.span.start} characters into the marker' in problem.message
        assert [call.name for call in found.calls] == ["g"]
    laws.check_grammar(dialect, text)


def test_every_marker_of_the_strategies_is_a_member():
    for name, markers in MARKERS.items():
        for marker in markers:
            assert load(*select(name)).accepts(marker, "marker"), marker
            laws.check_grammar(name, marker)


@pytest.mark.parametrize("name", ["qwen_xml", "glm"])
@some
@given(st.data())
def test_parameters_are_typed_by_the_schema(name, data):
    (dialect,) = select(name)
    text = data.draw(calls(dialect))
    (said,) = load(dialect).read(text)
    assume(not said.duplicate_keys)
    schema = data.draw(schemas([*said.arguments, "other"]))
    (found,) = parse(text, dialects=name, tolerance="strict", tools={said.name: schema}).calls
    declared = known_tools({said.name: schema})[said.name].declared
    expected = said.arguments  # an object in the function has types of its own
    if said.untyped:
        expected = {key: plain_value(value, declared(key), 63)[1] for key, value in said.arguments.items()}
    assert exactly(found.arguments) == exactly(expected)


_words = st.sampled_from(
    ["007", "Oslo", "New York", "true", "None", "null", "1", "-2.5", "1e3", "+4", "1e400", "a=b", "it's"]
)
_values = st.one_of(
    st.tuples(st.just("word"), _words),
    st.tuples(st.just("json"), st.sampled_from(['"x"', '"1"', '"a, b=c)"', '"\\u0041"', "[]", "[1, {}]", '["a"]'])),
    st.tuples(st.just("python"), st.sampled_from(["'x'", "'1'", "('a', 1)", "[True, None]", "{'k': 'v'}"])),
)
_PYTHON = {"'x'": "x", "'1'": "1", "('a', 1)": ["a", 1], "[True, None]": [True, None], "{'k': 'v'}": {"k": "v"}}
_keys = ["a", "b", "city", "days", "名"]


def meant(kind: str, source: str, declared: frozenset[str] | None) -> Any:
    """What a value of an argument list means: only a word without quotes is typed by a schema."""
    return _PYTHON[source] if kind == "python" else json.loads(scalar(source, declared) if kind == "word" else source)


@given(
    st.lists(_values.filter(lambda value: value[1] != "a=b"), max_size=3),
    st.dictionaries(st.sampled_from(_keys), _values, max_size=3),
    schemas(_keys),
    st.sampled_from(["", " ", "\n"]),
)
def test_an_argument_list_is_bound_and_typed_by_the_schema(positional, named, schema, blank):
    tool = known_tools({"f": schema})["f"]
    sources = [source for _, source in positional] + [
        f"{key}{blank}={blank}{source}" for key, (_, source) in named.items()
    ]
    assume(not sources or not sources[0].startswith("{"))
    bound = dict(zip(tool.names, positional, strict=False))
    text = f"[CALL: f({blank}{f',{blank}'.join(sources)}{blank})]"
    parsed = parse(text, dialects="call", tolerance="strict", tools={"f": schema})
    keys = [*bound, *named]
    if len(positional) <= len(tool.names) and len(set(keys)) == len(keys):
        (found,) = parsed.calls
        expected = {key: meant(*value, tool.declared(key)) for key, value in [*bound.items(), *named.items()]}
        assert exactly(found.arguments) == exactly(expected)
    elif tool.names or len(sources) > 1:
        assert not parsed.calls
        codes = {problem.code for problem in parsed.problems}
        assert codes <= {"bad-arguments", "duplicate-key"}


# Law 5, the fast paths: each gives what the incremental reader gives, and the grammar.


def read_fast(dialect: Dialect, text: str) -> int:
    """Hold what fast paths say of a call to what is read one character at a time; return how many say something."""
    said = 0
    for form in filter(has_fast_path, dialect.forms):
        parts = patterns(form)
        head = parts.head.match(text)
        if head is None:
            continue
        guess = text.find(parts.guess, head.end()) if parts.guess else -1
        read = fast.read(parts, text, head.end(), guess, 64, None)
        if isinstance(read, int):
            assert read >= head.end()
            continue
        name, source, written, value, end = read
        nonce = head["nonce"] if "nonce" in head.re.groupindex else None
        marker = text[:end]
        events = joined(by_characters(marker, dialects=dialect, contexts=EVERYWHERE, nonce=nonce))
        (call,) = calls_of(events)
        assert (call.raw, call.raw_arguments, call.repairs) == (marker, source, ())
        (at_once,) = calls_of(parse(marker, dialects=dialect, contexts=EVERYWHERE, nonce=nonce).events)
        assert at_once == call
        assert exactly(at_once.arguments) == exactly(call.arguments)
        assert call.name == (name or head["name"])
        assert exactly(call.arguments) == exactly(value)
        assert "".join(found.json for found in events if isinstance(found, ArgumentsDelta)) == written
        assert load(dialect).accepts(marker, "call")
        said += 1
    return said


def has_fast_path(form: Form) -> bool:
    return form.alone and (form.body == "parameters" or patterns(form).begin is not None)  # not with keys of its own


@pytest.mark.again
@pytest.mark.parametrize("name", [dialect.name for dialect in dialects() if any(map(has_fast_path, dialect.forms))])
def test_what_a_fast_path_reads_the_reader_and_the_grammar_read_alike(name):
    (dialect,) = select(name)
    written = [call.raw for text in MARKERS[name] for call in parse(text, dialects=name, contexts=EVERYWHERE).calls]
    assert any(read_fast(dialect, text) for text in written)  # or the property says nothing

    @some
    @given(st.data())
    def read(data):
        grown = calls(dialect) | st.sampled_from(written)
        read_fast(dialect, data.draw(grown | mutated(grown, 1)))

    read()


# Law 7: time is linear, and nothing good is given up for it.


def repeated(unit: str, head: str = "") -> Any:
    """Return a function that makes a text of so many characters: `head`, and `unit` over and over."""
    return lambda length: (head + unit * (length // len(unit) + 1))[:length]


ATTACKS = {
    "brackets": repeated("["),
    "openers": repeated("<tool_call>"),
    "half openers": repeated("[CALL: f <tool_cal"),
    "blanks behind a bracket": repeated("[" + " " * 60),
    "names of the greatest length": repeated("[CALL: " + "n" * 128),
    "heads": repeated("[CALL: f("),
    "heads with open strings": repeated('[CALL: f({"a": "'),
    "heads with open strings of two kinds": repeated("[CALL: f({\"a\": \"\n [CALL: f({'a': '\n "),
    "envelopes with open strings": repeated('<tool_call>{"name": "f", "arguments": {"a": "'),
    "one open string": repeated("x", '[CALL: f({"a": "'),
    "closers in one string": repeated("})]", '[CALL: f({"a": "'),
    "backslashes in one string": repeated("\\", '[CALL: f({"a": "'),
    "escaped quotes in one string": repeated('\\"', '[CALL: f({"a": "'),
    "lists within lists": repeated("[", "[CALL: f("),
    "objects within objects": repeated('{"a":', "[CALL: f("),
    "digits": repeated("7", "[CALL: f(a="),
    "pairs": repeated("a=1,", "[CALL: f("),
    "a word": repeated("x", "[CALL: f(a="),
    "blanks in a body": repeated(" ", "[CALL: f("),
    "calls": repeated("[CALL: f()]"),
    "calls that lack a bracket": repeated('[CALL: f({"a":1})'),
    "closers of two kinds": repeated(") ] ", '[CALL: f({"a":[{"b":1'),
    "calls whose closers are wrong": repeated('[CALL: f({"a":{"b":1}))) '),
    "calls that lack closers": repeated('<tool_call>{"name":"f","arguments":{"a":{"b":1}'),
    "calls of a list without commas": repeated('{"name":"f","arguments":{}} ', "[TOOL_CALLS] ["),
    "calls without closers on lines of their own": repeated("[CALL: f()\n"),
    "values and keys": repeated("<arg_key>a</arg_key><arg_value>x", "<tool_call>f"),
    "keys that are not closed": repeated("<arg_key>a\n<arg_value>x</arg_value>", "<tool_call>f"),
    "wrong arguments": repeated("[CALL: f(=)] "),
    "raw values": repeated("<tool_call><function=f><parameter=a>"),
    "ends of one raw value": repeated("</parameter>", "<function=f><parameter=a>"),
    "keys and values": repeated("<tool_call>f<arg_key>a</arg_key><arg_value>"),
    "half entities": repeated("&#", "<function_call><tool>f</tool><args_json>"),
    "half ends of CDATA": repeated("]]", "<function_call><tool>f</tool><args_json><![CDATA["),
    "sections": repeated("[TOOL_CALLS] [{"),
    "lists of calls": repeated("[f("),
    "half delimiters": repeated('<|"', '<|tool_call>call:f{a:<|"|>'),
    "words without end between braces": repeated("<|tool_call>call:f{a:" + "b " * 250),
    "values of words between braces": repeated("a:b c,", "<|tool_call>call:f{"),
    "thoughts": repeated("<think>"),
    "ends of thoughts": repeated("</think>"),
    "backticks": repeated("` [CALL: f()] "),
    "fences": repeated("```\n"),
    "fenced calls": repeated("```json\n[CALL: f()]\n"),
    "half-open markers of many dialects": repeated(
        '[CALL: f({"a": <tool_call>{"name": "f", "arguments": {[TOOL_CALLS]f[ARGS]{"x": <|tool_call>call:f{a:'
    ),
    "wrappers that alternate": repeated('<tool_call>[<tool_call>"{<tool_call>```json\n{'),
    "three quotes that never close": repeated('[CALL: f(a="""x"" '),
    "arguments under other keys": repeated('<tool_call>{"name":"f","params":{"a":1},"kwargs":{'),
    "brackets behind an error": repeated("],", '[CALL: f({"a" 1, '),
    "closers of every kind": repeated("[CALL: w([[[[1,2)])])])])]"),
    "surrogates": repeated('[CALL: f("\ud83d'),
}


each_attack = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())


@pytest.mark.again
@each_attack
def test_steps_grow_with_the_text_and_no_faster(attack):
    laws.check_linear(attack, length=2000)


@pytest.mark.again
@each_attack
def test_steps_grow_no_faster_where_every_dialect_listens_strictly(attack):
    laws.check_linear(attack, length=1000, dialects=[dialect.name for dialect in dialects()], tolerance="strict")


@pytest.mark.parametrize("name", ["fences", "fenced calls", "thoughts", "backticks", "heads"])
def test_steps_grow_no_faster_where_contexts_allow_calls(name):
    laws.check_linear(ATTACKS[name], contexts={"fence": "sole", "reasoning": "allow", "code": "allow"})


def test_steps_grow_no_faster_with_many_words_beyond_their_limit():
    laws.check_linear(repeated("[CALL: f(a=" + "x" * 4200 + " "), length=20_000)


@pytest.mark.parametrize("tolerance", ["strict", "lenient"])
def test_steps_may_be_more_behind_a_limit(tolerance):
    """A word is held up to its limit, which costs less than to read on: that is no growth."""
    laws.check_linear(repeated("<tool_calls>", "[CALL: f("), tolerance=tolerance)


@pytest.mark.parametrize("name", CORPUS)
def test_a_good_call_is_found_whatever_stands_before_it(name):
    assert len(CORPUS[name]) >= 30
    lost = [loss for prefix in CORPUS[name] if len(prefix.text) < 3000 for loss in losses(name, prefix, (1, 7))]
    assert lost == []


# Law 8: previews tell the truth.


@pytest.mark.again
@given(any_text, options)
def test_previews_tell_the_truth(text, chosen):
    laws.check_previews(text, **chosen)


@each_dialect
@some
@given(st.data())
def test_previews_of_members_and_of_their_beginnings_tell_the_truth(dialect, data):
    text = data.draw(members(dialect))
    cut = data.draw(st.integers(0, len(text)))
    laws.check_previews(text, dialects=dialect, contexts=EVERYWHERE)
    laws.check_previews(text[:cut], dialects=dialect, contexts=EVERYWHERE)


# A text that is cut never becomes a call.


@each_dialect
@few
@given(st.data())
def test_a_cut_member_has_only_calls_of_the_whole(dialect, data):
    text = data.draw(members(dialect) | st.sampled_from(MARKERS[dialect.name]))
    chosen = {
        "dialects": dialect,
        "contexts": EVERYWHERE,
        "tolerance": data.draw(st.sampled_from(["strict", "lenient"])),
    }
    expected = list(map(meaning_of, calls_of(whole(text, **chosen))))
    for cut in range(0, len(text), 1 + len(text) // 150):
        found = list(map(meaning_of, calls_of(whole(text[:cut], **chosen))))
        assert found == expected[: len(found)], text[:cut]


@few
@given(any_text, options)
@example("[CALL: f(a=1] b=2)]", {})
def test_a_cut_text_has_only_calls_of_the_whole(text, chosen):
    """But for a call that must be alone in its fence: the end of the text is one of the fence."""
    assume((chosen.get("contexts") or {}).get("fence") != "sole")
    text = text[:200]
    expected = list(map(meaning_of, calls_of(whole(text, **chosen))))
    for cut in range(len(text)):
        found = list(map(meaning_of, calls_of(whole(text[:cut], **chosen))))
        assert found == expected[: len(found)], text[:cut]


# What reaches a tool.


@given(any_text, options)
def test_arguments_can_be_handed_on(text, chosen):
    for call in calls_of(whole(text, **chosen)):
        assert json.loads(json.dumps(call.arguments, allow_nan=False)) == call.arguments
        assert copy.deepcopy(call.arguments) == call.arguments
        json.dumps(call.arguments, ensure_ascii=False).encode()
        repr(call).encode()
        assert call.name.encode()
        assert len(call.name) <= 128 + 4 * 128


@pytest.mark.parametrize(
    "value",
    [
        "1e400",
        "-1e999",
        "NaN",
        "Infinity",
        "-Infinity",
        '"\\ud83d"',
        '"\ud83d"',
        "9" * 4301,
        '{"k":1,"k":2}',
        "[" * 65 + "]" * 65,
    ],
)
@pytest.mark.parametrize("tolerance", ["strict", "lenient", "salvage"])
def test_no_value_that_others_choke_on_reaches_a_call(value, tolerance):
    for text in (
        f'[CALL: f({{"a":{value}}})]',
        f'<tool_call>{{"name":"f","arguments":{{"a":{value}}}}}</tool_call>',
        f'<function_call><tool>f</tool><args_json>{{"a":{value}}}</args_json></function_call>',
        f"<function=f><parameter=a>{value}</parameter></function>",
        f"[CALL: f(a={value})]",
        f"<|tool_call>call:f{{a:{value}}}<tool_call|>",
    ):
        for found in calls_of(whole(text, tolerance=tolerance)):
            assert found.arguments in ({"a": value}, {"_raw": value})  # the text of it, where it is plain


@pytest.mark.parametrize("tail", [r"{ws}\}\}", r"{ws}\)\)", r"{ws}\]\)", r"\)>"])
@given(st.text("})] ,x", max_size=6), st.sampled_from(["f(", "f({", "f([", 'f({"a":[1]']))
@example("}}}}", "f({")
@example("))))", "f(")
def test_a_tail_that_begins_with_a_bracket_is_told_from_one_too_many(tail, text, head):
    """A bracket that is missing is not taken for one of another shape, or the reverse, where a tail has several."""
    own = row(head=r"\{{name}\(", body="arguments", tail=tail, begins="{")
    laws.check_chunking(f"{{{head}{text}", dialects=own)


@pytest.mark.parametrize(
    "wrapped", ['<|tools_prefix|>[{"f": %s}]<|tools_suffix|>', '<tool_call>{"f": %s}</tool_call>', '{"f": %s}']
)
@given(st.text("{[", min_size=1, max_size=4), st.data())
@example("{[", None)
def test_a_missing_bracket_is_told_from_several_however_the_text_is_cut(wrapped, brackets, data):
    """Where fewer are missing is read first, and what may still come decides."""
    begun = "".join('{"a": ' if bracket == "{" else "[" for bracket in brackets)
    closers = "".join("}" if bracket == "{" else "]" for bracket in reversed(brackets))
    dropped = 0 if data is None else data.draw(st.integers(0, len(closers) - 1))
    text = wrapped % f'{{"a": {begun}1{closers[:dropped]}{closers[dropped + 1 :]}}}'
    laws.check_chunking(text, range(len(text)), tolerance="salvage", tools=["f"])


_LISTS = (
    '{"tool_calls": [', "[", "<tool_calls>[", "<tool_call>[", "<|tool_call_start|>[", "[TOOL_CALLS][",
    "<|START_ACTION|>[", "<|tools_prefix|>[", "```json\n[", "[unused11][",
)  # fmt: skip
_NEXT_CALL = '{"name": "g", "arguments": {}}'
_READ_WIDELY: dict[str, Any] = {"tolerance": "salvage", "tools": ["f", "g"], "dialects": ["default", "fenced"]}
_BEHIND_CALLS = (
    "}", "]", "}]", "}]}", ")", ", ", " ", "\n", " " * 8, "\n" * 65, _NEXT_CALL, "[", '{"a": [1', '"', " end",
)  # fmt: skip


@pytest.mark.parametrize("begun", _LISTS)
@given(st.sampled_from(['[{"a": 1}]', '{"a": 1}', '"x"']), st.lists(st.sampled_from(_BEHIND_CALLS), max_size=8))
def test_brackets_behind_a_call_of_a_list_are_read_alike_however_the_text_is_cut(begun, arguments, behind):
    """Each may close the call, the list or what is around it, and more of them may come."""
    text = f'{begun}{{"name": "f", "arguments": {arguments}' + "".join(behind)
    laws.check_chunking(text, range(len(text)), **_READ_WIDELY)
    laws.check_chunking(text, range(len(text)))


_WRAPPERS = (
    "<tool_call>", "<tool_calls>[", "<longcat_tool_call>", "[TOOL_CALLS] [", "<|tool_call|>[", "<|tool_call|>",
    "<function_call>", '{"tool_calls": [',
)  # fmt: skip
_SOME_CALLS = (
    '{"name": "g", "arguments": {}}', '{"name": "g", "arguments": {"a": 1}', '{"name": "g", "arguments": {"a": "x"',
    '{"id": "c1", "name": "g", "arguments": {"a": "["}}', '{"arguments": {"a": [1]}, "name": "f"}', '{"id": "c1"}',
    '{"function": {"name": "f", "arguments": {"a": 1}}', '{"index": 0, "function": {"name": "f", "arguments": "{}"}}',
    '{"name": "f", "arguments": "{\\"a\\": \\"["', '{"name": "f", "arguments": "{\\"a\\": 1, \\"a\\": 2}"',
    '{"name": "f", "arguments": {"a": "say "hi", {"arguments": {}}"}}', '{"name": "f", "x": 1', "}", "]", '"',
)  # fmt: skip


@pytest.mark.parametrize("begun", _WRAPPERS)
@given(st.lists(st.sampled_from(_SOME_CALLS), min_size=2, max_size=5), st.sampled_from(["", " ", ", ", "\n", ",\n  "]))
@example([_SOME_CALLS[0], _SOME_CALLS[8]], "")
def test_each_call_of_a_wrapper_is_read_alike_however_the_text_is_cut(begun, some, between):
    """The next one may begin where this one lacks its end, and with whatever member."""
    text = begun + between.join(some)
    laws.check_chunking(text, range(len(text)), **_READ_WIDELY)


@pytest.mark.parametrize("begun", dict.fromkeys((*_LISTS, *_WRAPPERS)))
def test_these_begin_lists_and_wrappers(begun):
    events = parse(begun + _NEXT_CALL, **_READ_WIDELY).events
    assert any(isinstance(event, CallStart | Malformed) for event in events)


@pytest.mark.parametrize("tail", ["}", "}}", "]", ")>"])
@given(st.text("})] ,x", max_size=6), st.sampled_from(['{"c": "\\\\"', '{"c":1', "{'c':'x'", "{c:[1]"]))
@example("}}}", '{"c": "\\\\"')
def test_a_tail_behind_an_envelope_is_told_from_a_brace_too_many(tail, text, arguments):
    """Nor is it waited for what comes behind it, where nothing does."""
    own = row(head=r"::(?=\{)", body="envelope", tail=re.escape(tail), begins=":")
    begun = f'::{{"name":"f","arguments":{arguments}'
    laws.check_chunking(f"{begun}{text}", dialects=own)
    laws.check_chunking(f"{begun}}}}}{tail}", dialects=own)
    assert len(parse(f"{begun}}}}}{tail}", dialects=own).calls) == 1


@pytest.mark.parametrize("body", ["json", "envelope"])
def test_a_row_may_say_itself_what_is_a_wrong_tail(body):
    head = r"=> (?=\{)" if body == "envelope" else r"=> {name} (?=\{)"
    own = row(body=body, head=head, tail="{ws}</f>", loose_tail="{ws}(?P<wrong>;;)")
    marker = '=> {"name": "f", "arguments": {}}' if body == "envelope" else "=> f {}"
    for end, code in ((";;", "wrong-closer"), ("</tool_call>", "missing-closer")):
        assert [[it.code for it in call.repairs] for call in parse(marker + end, dialects=own).calls] == [[code]]
        laws.check_chunking(f"{marker}{end} Hm.", dialects=own)


@pytest.mark.parametrize("end", [r"\n", r"\r\n", r"\n</p>"])
@given(st.text("\r\nx#]", max_size=8))
@example("\n]\n#")
@example("\n</p>x\n</p>#")
@example("\r\n#")
@example("\n#\n\n#")
def test_a_line_break_before_a_value_is_told_from_its_end(end, text):
    """Where a value ends in a line break, one that is trimmed at its beginning is none of its ends."""
    parts = {"parameter": r"\[(?P<key>\w{1,32}+)\]", "value_end": end, "tail": "{ws}#", "trim": True}
    own = row(head="=>{name}!", body="parameters", **parts)
    laws.check_chunking(f"=>f![a]{text}", dialects=own)
    laws.check_chunking(f"=>f![a]{text}", dialects=own, tolerance="strict")


@pytest.mark.parametrize("field", ["unclosed", "broken_by"])
def test_a_line_break_before_a_value_is_told_from_what_breaks_it_off(field):
    breaks = r"\n#" if field == "unclosed" else (r"\n#",)
    parts = {"parameter": r"\[(?P<key>\w{1,32}+)\]", "value_end": "</p>", "tail": "{ws}#", "trim": True, field: breaks}
    laws.check_chunking("=>f![a]\n#x</p>#", dialects=row(head="=>{name}!", body="parameters", **parts))


BETWEEN_TAGS = [row for row in dialects() if row.writing is not None and row.writing.parameter]
DECLARED = [
    *({"type": kind} for kind in ("string", "integer", "boolean", "null", "array", "object")),
    *({"type": kinds} for kinds in (["array", "null"], ["string", "null"], ["object", "string"])),
    *({"enum": members} for members in (["x", "1"], [1, "x", None], ["", "true", True], [[1], "{}"])),
]
PLAIN = ["x", "1", "01", "true", "null", "None", "[1, 2]", "['x', None]", '{"a": [1]}', "{", "[1 2]", '"x"', "{}", ""]


@pytest.mark.parametrize("row", BETWEEN_TAGS, ids=repr)
@given(st.data())
def test_a_typed_value_between_tags_is_read_alike_however_it_comes(row, data):
    """With blanks around it, and too long to be held or not: whole, where there is a fast path, and in chunks."""
    blanks = st.sampled_from(["", "", " ", "\n", " \n\t", "\r"])
    size = data.draw(st.sampled_from([1, 1, 1, PLAIN_LIMIT // 6, PLAIN_LIMIT]), label="size")
    value = data.draw(st.tuples(blanks, st.sampled_from(PLAIN), blanks).map("".join), label="value") * size
    writing = row.writing
    places = {"key": "a", "value": value, "type": "object", "is_text": writing.is_text[1]}
    places = {"name": "f", "id": "c1", "index": "0", "number": "1", "arguments": fill(writing.parameter, places)}
    text = writing.opener + fill(writing.call, places) + writing.closer
    tools = {"f": {"properties": {"a": data.draw(st.sampled_from(DECLARED), label="declared")}}}
    text = f"So: {text} and on"
    laws.check_nothing_is_lost(text, dialects=row, tools=tools)
    laws.check_previews(text, dialects=row, tools=tools)
    cuts = [*range(0, 80, 9), *range(PLAIN_LIMIT, len(text), PLAIN_LIMIT // 3)]
    laws.check_chunking(text, cuts, dialects=row, tools=tools)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_arguments_one_level_deeper_are_read_in_every_dialect(dialect, data):
    inner = {"a": data.draw(st.text("ab \"'{}\\\n", max_size=12)), "b": data.draw(st.integers(-9, 99))}
    key = data.draw(st.sampled_from(["arguments", "parameters", "input", "kwargs", "properties", "f"]))
    before = data.draw(st.sampled_from([{}, {"name": "f"}, {"type": "object"}]))
    written = {**before, key: json.dumps(inner) if data.draw(st.booleans()) else inner}
    text = render_call("f", written, dialect)
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
    chosen = {"dialects": dialect, "tools": {"f": schema}}
    (call,) = parse(text, **chosen).calls
    assert (call.arguments, [repair.code for repair in call.repairs]) == (inner, ["key-spelling"])
    laws.check_chunking(text, range(len(text)), **chosen)
    laws.check_chunking(text[: len(text) // 2], range(len(text)), **chosen)
    laws.check_previews(text, **chosen)
    laws.check_nothing_is_lost(text, **chosen)
    own = {"f": {"properties": {"a": {}, **{each: {} for each in written}}}}
    (call,) = parse(text, dialects=dialect, tools=own).calls
    assert "key-spelling" not in [repair.code for repair in call.repairs]


_PIECES = [
    *(" b=", " b=1", " b =", "; b=", " other=", "a", "b", "other", "=", "=", "==", " ", " ", "  ", "\t", ";", "x"),
    *(" $c=1", " -d=", "b= ", "，", "}", "word" * 40, "1", ",", '"q"', "[1]", "\n", "＝", "-"),
]
"""Of words in an argument list: names of parameters, signs, and what may end a word."""


@pytest.mark.parametrize("name", ["call", "pythonic"])
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join), st.sampled_from(["strict", "lenient"]))
def test_words_that_hold_names_of_parameters_are_read_alike_in_every_chunking(name, words, tolerance):
    tools = {"f": {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "$c": {}, "-d": {}}}}
    chosen = {"dialects": name, "tolerance": tolerance, "tools": tools}
    before, behind = ("[CALL: f(", ")] so") if name == "call" else ("[f(", "), f(b=1)] so")
    for arguments in (f"a=x{words}", f"b=1, a=x{words}", words, f"b=1, a='{words}'"):
        text = before + arguments + behind
        laws.check_chunking(text, **chosen)
        laws.check_chunking(text, range(0, len(text), 5), **chosen)
        laws.check_nothing_is_lost(text, **chosen)
        laws.check_previews(text, **chosen)
        found = calls_of(whole(text, **chosen))
        codes = {repair.code for call in found for repair in call.repairs}
        event("a comma is missing" if "missing-comma" in codes else f"{len(found)} calls")


TYPED = {"f": {"properties": {"a": {"type": "string"}, "b": {"type": "array"}, "c": {"type": ["object", "null"]}}}}


@given(sloppy_tags, st.sampled_from(["strict", "lenient", "salvage"]), st.sampled_from([None, TYPED]))
def test_sloppy_tags_are_read_alike_in_every_chunking(texts, tolerance, tools):
    for text in texts:
        laws.check_chunking(text, tolerance=tolerance, tools=tools)
        laws.check_chunking(text, range(0, len(text), 7), tolerance=tolerance, tools=tools)
        laws.check_previews(text, tolerance=tolerance, tools=tools)


@given(sloppy_tags)
def test_sloppy_tags_are_calls_of_the_grammar_exactly_where_nothing_is_repaired(texts):
    for text in texts:
        for call in parse(text).calls:
            laws.check_grammar(call.dialect, text)


def test_sloppy_tags_are_mended_in_most_ways_and_broken_in_some():
    seen: Counter[str] = Counter()

    @settings(max_examples=150, derandomize=True, database=None)
    @given(sloppy_tags)
    def collect(texts):
        for text in texts:
            parsed = parse(text, tools=TYPED)
            seen.update(f"{min(len(call.repairs), 2)} repairs" for call in parsed.calls)
            seen.update({repair.code for call in parsed.calls for repair in call.repairs})
            seen.update(problem.code for problem in parsed.problems)

    collect()
    kinds = {"opener-spelling", "wrong-closer", "missing-closer", "stray-closer", "nested-marker"}
    assert min(seen[kind] for kind in (*kinds, "0 repairs", "2 repairs", "unexpected-text")) > 5, seen


# Generated data is as nasty as it is meant to be.


def strings_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [text for key, item in inner for text in [*([key] if isinstance(key, str) else []), *strings_of(item)]]


KINDS = {
    "closer": r"\)\]|\}\]|</tool_call>|</parameter>|</function>|<tool_call\|>|</args_json>|</arg_value>",
    "opener": r"\[CALL|<tool_call>|\[TOOL_CALLS\]|<function|<\|tool_call_start",
    "quote": r"[\"'“”]",
    "fence": r"```|~~~",
    "thought": r"</?think>",
    "bracket": r"[\[\](){}]",
    "escape": r"\\",
    "line break": r"[\n\r\u2028]",
    "beyond ASCII": r"[^\x00-\x7f]",
}


@given(sloppy_json, options)
def test_sloppy_json_is_read_alike_in_every_chunking(texts, chosen):
    for text in texts:
        laws.check_chunking(text, range(len(text)), **chosen)
        laws.check_previews(text, **chosen)


def test_sloppy_json_is_mended_in_most_ways_and_broken_in_some():
    seen: Counter[str] = Counter()

    @settings(max_examples=150, derandomize=True, database=None)
    @given(sloppy_json)
    def collect(texts):
        for text in texts:
            parsed = parse(text)
            seen.update(f"{min(len(call.repairs), 3)} repairs" for call in parsed.calls)
            seen.update({repair.code for call in parsed.calls for repair in call.repairs})
            seen.update(problem.code for problem in parsed.problems)

    collect()
    assert len(seen.keys() & set(REPAIR_CODES)) > 9, seen
    assert min(seen["0 repairs"], seen["3 repairs"], seen["unexpected-text"]) > 20, seen


def test_at_least_one_string_in_a_hundred_is_nasty_in_each_way():
    found: Counter[str] = Counter()
    total = 0

    @settings(max_examples=300, derandomize=True, database=None)
    @given(any_member())
    def collect(text):
        nonlocal total
        for call in parse(text, dialects=dialects(), contexts=EVERYWHERE).calls:
            for string in strings_of(call.arguments):
                total += 1
                found.update(kind for kind, pattern in KINDS.items() if re.search(pattern, string))

    collect()
    assert total > 200
    assert {kind: found[kind] >= total / 100 for kind in KINDS} == dict.fromkeys(KINDS, True), (total, found)


@pytest.mark.again
def test_hostile_texts_reach_every_kind_of_event_code_and_dialect():
    seen: Counter[str] = Counter()

    @settings(max_examples=2000, derandomize=True, database=None)
    @given(hostile_texts | filled_markers | good_markers | sloppy_markers, options)
    def collect(text, chosen):
        for found in [*whole(text, **chosen), *whole(text, dialects=dialects())]:
            seen[type(found).__name__] += 1
            if isinstance(found, Call):
                seen[found.dialect] += 1
                seen["repaired" if found.repairs else "exact"] += 1
            seen[getattr(found, "code", "")] += 1

    collect()
    wanted = {"Text", "Call", "CallStart", "ArgumentsDelta", "Malformed", "Markup", "Notice", "repaired", "exact"}
    wanted |= {dialect.name for dialect in dialects()}
    wanted |= NOTICE_CODES.keys() - {"snapshot-replaced"}
    assert wanted - seen.keys() == set()
    assert len(MALFORMED_CODES.keys() & seen.keys()) >= 8


def test_sloppy_markers_are_wrong_in_every_way():
    codes = set()
    repairs = set()
    for marker in SLOPPY:
        limits = Limits(arguments=1000)
        codes |= {
            found.code for found in whole(marker, tolerance="strict", limits=limits) if isinstance(found, Malformed)
        }
        repairs |= {repair.code for call in calls_of(whole(marker)) for repair in call.repairs}
    assert codes == MALFORMED_CODES.keys() - {"unclosed-marker"}
    assert len(repairs) >= 8


# Unfinished beginnings: what is derived from a pattern says what `regex` says.


def every_pattern() -> list[str]:
    found = []
    for form in (form for dialect in dialects() for form in dialect.forms):
        parts = patterns(form)
        names = ("head", "tail", "opener", "between", "stop", "stop_xml")
        found += [getattr(parts, name) for name in names if getattr(parts, name, None) is not None]
        found += [*parts.loose, *([section((form,)).next] if form.opener else [])]
    return sorted({pattern.text for pattern in found})


def backtracking(pattern: str) -> str:
    """Return the pattern as Hypothesis takes it: with nothing possessive, nor `(?!)`, a failure from Python 3.13 on."""
    for possessive in ("++", "*+", "}+", "?+"):
        pattern = pattern.replace(possessive, possessive[0])
    return pattern.replace("(?!)", "(?!(?:))")


def test_what_never_matches_is_a_negative_look_ahead_by_every_python():
    pieces = tree("\0a(?:b\0)+")
    for inside, at in ((pieces, 0), (pieces[2][1][2], 1)):
        inside[at] = re._constants.FAILURE, ()  # as Python 3.13 parses `(?!)`
    with_look_aheads(pieces)
    assert repr(pieces) == repr(tree("(?!)a(?:b(?!))+"))
    assert not Pattern("(?P<closer>(?!))").may_match("", 0)


def test_what_repeats_as_often_as_it_may_begins_no_more():
    for pattern in ("(?:ab){0,2}+c", "(?:ab){0,2}c", "(?:ab){1,2}(?:cd)"):
        for text in ("", "a", "ab", "aba", "abab", "ababa", "ababab"):
            found = regex.match(pattern, text, partial=True)
            assert (re.match(unfinished(pattern), text) is not None) == (found is not None and found.partial)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?:a|[ab]<>)*c", "a<>c"),
        ("(?:a|[ab]<){2}c", "a<ac"),
        ("(?:[ab]<>|a)*+c", "aa<>c"),
        ("(?!a(?!b))abc", "abc"),
    ],
)
def test_what_is_whole_may_be_taken_otherwise_once_more_text_has_come(pattern, text):
    assert re.fullmatch(pattern, text)
    for cut in range(len(text)):
        assert Pattern(pattern).may_match(text[:cut], 0)


@pytest.mark.parametrize(
    "pattern", ["\\w", "\\W", "\\S", "[^\\W\\d]", "[\\W\\d]", "[]\\w]", "[^\\s<]", "[^\\S\n]", "[^\\W\\S]", "[\\\\W]"]
)
def test_regex_matches_what_re_does(pattern):
    found = regex.compile(for_regex(pattern))
    for char in map(chr, range(0x10000)):
        if unicodedata.category(char) != "Cn":  # which the two may know from different versions of Unicode
            assert (found.match(char) is not None) == (re.match(pattern, char) is not None), char


@given(st.sampled_from(every_pattern()), st.data())
@settings(max_examples=settings.default.max_examples * 3)
def test_a_derived_pattern_knows_every_unfinished_beginning(pattern, data):
    text = data.draw(st.from_regex(backtracking(pattern)))
    text = text[: data.draw(st.integers(0, len(text)))]
    text += data.draw(st.sampled_from(["", "", *HOSTILE]))
    assume(re.match(pattern, text) is None and len(text) < HOLD_LIMIT)
    found = regex.match(for_regex(pattern), text, partial=True)
    expected = found is not None and found.partial
    assert (re.match(unfinished(pattern), text) is not None) == expected
    assert Pattern(pattern).may_match(text, 0) == expected
    assert (Pattern(pattern).waits(text) is not None) == expected


WORDS_AND_SIGNS = (
    "a", "8", "-", "$", "@", ".", "é", "\x85", "\ud800", "“", "，", "b'", "rb'", "'", '"', "=", "(", ")", "[", "{", ",",
    ", ", " ", "\t", "\n", "\r\n", "\n" * 63, "\n" * 64, " " * 63, "k" * 127, "k" * 128, "x" * 100,
)  # fmt: skip


@given(st.lists(st.sampled_from(WORDS_AND_SIGNS), min_size=1, max_size=7).map("".join))
@example("8,-")
@example("8," + "k" * 128)
@example("8," + "k" * 129)
@example("8," + "\n" * 64 + "$")
@example("8," + "\n" * 65)
@example("8\n,k" + "\n" * 64)
@example("x" * PAIR_HOLD)
@example("x" * (PAIR_HOLD + 1))
@settings(max_examples=settings.default.max_examples * 10)
def test_a_word_waits_for_what_its_pattern_waits_for(held):
    assume(BARE_VALUE.match(held) is None)
    assert (WORD_WAITS(held) is not None) == (len(held) <= PAIR_HOLD and BARE_VALUE.may_match(held, 0))


def looked_ahead() -> list[str]:
    """Return the patterns of what may stand in and around the arguments of all forms."""
    forms = [form for dialect in dialects() for form in (*dialect.forms, *dialect.variants)]
    found = [it for form in forms for it in vars(lookahead(form)).values() if isinstance(it, Pattern)]
    return sorted({pattern.text for pattern in found})


def given_up_too_soon(pattern: str, seed: int) -> str:
    """Return a text behind which `pattern` is not waited for, though more text makes it match; "" for none."""
    random = Random(seed)
    one = Pattern(pattern)
    for _ in range(8):
        text = sample(pattern, random) + random.choice(["", ":", "b:", "\nb:", "}", " x", sample(pattern, random)[:9]])
        given_up = ""
        for size in range(1, min(len(text), HOLD_LIMIT) + 1):
            if one.match(text[:size], 0) is not None:
                if given_up:
                    return given_up
                break
            if not given_up and not one.may_match(text[:size], 0):
                given_up = text[:size]
    return ""


@given(st.sampled_from([text for text in (*every_pattern(), *looked_ahead()) if "(?!" in text]), st.integers(0, 2**32))
@settings(max_examples=settings.default.max_examples * 3)
def test_no_pattern_is_given_up_that_more_text_makes_match(pattern, seed):
    """One with a negative look-ahead in a run might be: what this looks for ends the run sooner."""
    assert not given_up_too_soon(pattern, seed)


def test_a_negative_look_ahead_in_a_run_is_seen_to_give_up_too_soon():
    assert any(given_up_too_soon(r"(?:[ab]|(?!,\n?b:),)++\n?(?=,\n?b:)", seed) for seed in range(200))


@given(st.lists(st.sampled_from(every_pattern()), min_size=2, max_size=30), st.data())
@settings(max_examples=settings.default.max_examples * 3)
def test_merged_patterns_match_where_one_of_them_does(together, data):
    pattern = data.draw(st.sampled_from([*together, *every_pattern()]))
    text = data.draw(st.from_regex(backtracking(pattern)))
    changed = data.draw(st.integers(0, len(text)))
    text = data.draw(st.sampled_from([text, text[:changed] + "\u017f" + text[changed + 1 :], text[:changed].upper()]))
    expected = any(re.match(one, text) for one in together)
    assert (re.match(merged(together), text) is not None) == expected


ODD_PATTERNS = (
    "", "a?", "ab", "a(?:b|cd)?e", "(?>ab|a)b", "(?i:Toy)a", "(?i:sun)b", "[^a]b", "[a-c]\\d", "(?!ab)a", "(?=ab)a",
    ".b", "a{0,2}b", "(?:a|b){0,2}c", "a*?b", "a*+b", "(?:|a)b", r"\r?\n<", "(?:(?:ab)?)c",
    "(?:a|[ab]e)*d", "(?:[ab]e|a)*+d", "(?:a|[ab]e){2}d", "(?!a(?!b))ab", "(?:(?:a|b)+|d)*+e", "(t)o", "(?P<g>ab|c)d",
    "a{0}b", "(?:){0,2}ab", "(?:ab){1,3}c", "[a-c]{2,}d", "(?:b[cd]|T)o{1,2}y", "(?i:t1)", "(?:(?=a)|d)b",
)  # fmt: skip


@given(st.lists(st.sampled_from(ODD_PATTERNS), min_size=1), st.text("abcdetToysSuUn1<\r\n\u017f", max_size=5))
@settings(max_examples=settings.default.max_examples * 10)
def test_merged_patterns_of_every_kind_match_where_one_of_them_does(together, text):
    assert (re.match(merged(together), text) is not None) == any(re.match(one, text) for one in together)


@given(
    st.lists(st.sampled_from([text for text in ODD_PATTERNS if text]), unique=True, min_size=12),
    st.text("abcdetToysSuUn1<\r\n\u017f", max_size=5),
)
@settings(max_examples=settings.default.max_examples * 10)
def test_what_tells_many_patterns_apart_passes_all_that_one_of_them_matches(together, text):
    behind = [f"x{pattern}" for pattern in together]
    assert (re.match(merged(behind), f"x{text}") is not None) == any(re.match(one, f"x{text}") for one in behind)


def test_many_patterns_are_told_apart_by_more_than_one_character():
    many = [f"<{char}b(?i:c)x" for char in "abcdefghi"]
    assert "(?=(?:ab(?:C|c)|bb(?:C|c)|" in merged(many)
    assert re.match(merged(many), "<abCx")
    assert not re.match(merged(many), "<adcx")


@pytest.mark.parametrize("pattern", [text for text in ODD_PATTERNS if "*?" not in text])  # where `regex` errs: "a1"
def test_a_derived_pattern_of_every_kind_knows_every_unfinished_beginning(pattern):
    one = Pattern(pattern)
    derived = re.compile("never" if one.unfinished is None else one.unfinished)
    assert (one.unfinished is None) == (pattern == "(?!a(?!b))ab")  # `regex` is asked then
    signs = dict.fromkeys(re.sub(r"\W|P<g>", "", pattern.replace(r"\r?\n", "")) + "T1<\n")
    for text in map("".join, (it for size in range(4) for it in itertools.product(signs, repeat=size))):
        matches = re.match(pattern, text) is not None
        found = regex.match(pattern, text, partial=True)
        expected = not matches and found is not None and found.partial
        assert matches or one.may_match(text, 0) == expected, text
        assert matches or one.unfinished is None or (derived.match(text) is not None) == expected, text
        assert (one.waits(text) is not None) == expected, text


@pytest.mark.parametrize(
    "pattern", [r"a\b", "^a", "a$", "a(?<=a)", "b(?<!a)", r"(ab)\1", "(a)?(?(1)b|c)", "(?i:a(?-i:b)c)"]
)
def test_no_unfinished_beginning_is_derived_from_what_it_may_depend_on(pattern):
    with pytest.raises(UnsupportedPatternError):
        unfinished(pattern)
    with pytest.raises(UnsupportedPatternError):
        merged([pattern, "c"])


@pytest.mark.parametrize(
    ("pattern", "first"),
    [
        ("ab", "a"), ("a?b", "ab"), ("a{0,2}b", "ab"), ("a{1,2}b", "a"), ("[ab]c", "ab"), ("(?:a|b)c", "ab"),
        ("(?P<g>a)b", "a"), ("(?>ab|c)", "ac"), ("(?:ab|c)?+d", "acd"), ("(?=<a)[<b]", "<"), ("(?!a)b", "b"),
        ("(?i:t)o", "tT"), (r"\r?\n", "\r\n"), (r"[\]\^]", "]^"),
        ("", None), ("a?", None), (".", None), ("[^a]", None), ("[a-c]", None), (r"\w", None), ("(?!a)", None),
        ("(?i:s)", None), ("(?i:k)", None), ("(?i:é)", None), ("(?i:[a-c])", None), ("(?:ab|.)", None),
        ("[xa-c]", None), ("(?i:[ak])", None), ("(?i:.)", None),
    ],
)  # fmt: skip
def test_the_first_characters_of_a_match_are_told_where_they_are_certain(pattern, first):
    assert first_characters(pattern) == (None if first is None else {*first})


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"<[ \t]*+ab", ["< ab"]), ("<[ ]?a", ["< a", "<a"]), (r"<[ \t]{1,9}+a", ["<"]), ("<[ x]*+a", ["<"]),
        ("<[ -/]*+a", ["<"]), (r"<(?:[ \t]x)*+a", ["<"]), ("<(?P<g>ab|c)d", ["<abd", "<cd"]), ("<(?i:a)", ["<"]),
    ],
)  # fmt: skip
def test_a_gap_stands_for_blanks_that_may_be_missing_and_for_nothing_else(pattern, texts):
    assert literals(pattern, gap=" ") == texts


@pytest.mark.parametrize(
    ("pattern", "behind"),
    [
        (r"\n<", "<"), (r"\r?\n<|\r>", "\n<>"), ("(?:\n)?a", "a"), ("a", ""), (r"[\n;]a", None), (r"\sa", None),
        (r"\n[^a]", None), ("", None),
    ],
)  # fmt: skip
def test_what_follows_a_line_break_is_told_where_it_is_certain(pattern, behind):
    assert behind_line_breaks([pattern]) == (None if behind is None else {*behind})


@given(st.lists(st.sampled_from(ODD_PATTERNS), min_size=1), st.text("abcdetToysSuUn1<\r\n\u017f", max_size=5))
@settings(max_examples=settings.default.max_examples * 5)
def test_patterns_kept_apart_match_where_one_of_them_does_behind_its_line_break(together, text):
    found = any(re.match(one, text) for one in apart(together))
    assert found == any(re.match(one.removeprefix(r"\r?\n"), text) for one in together)


def test_what_stands_for_one_character_is_the_same_in_source():
    signs = [*map(chr, range(0x180)), *"Qſ｜\ud7ff\ud800\udabc\udfff\ue000\U0001f600"]
    for pattern in (
        r"[^>\ud800-\udfff]", r"[\ud7ff-\udabc]", r"\udabc", "[^a]", "[^ab]", r"[\^\]\-a]", r"[^\W\d]", r"[\D]",
        r"[\s_]", r"\S", ".", r"\|", "\n",
    ):  # fmt: skip
        (piece,) = tree(pattern)
        found = [re.match(one_character(*piece), sign) is not None for sign in signs]
        assert found == [re.match(pattern, sign) is not None for sign in signs]


@pytest.mark.parametrize(
    ("pattern", "last"),
    [
        ("x(?:ab|cd)", "bd"), ("x(y(?:ab|cd))", "bd"), ("x(?:a(?=b)|c)", "c"), ("x(?:ab){1,2}", "b"),
        ("x(?:ab){0,2}", "xb"), ("x(?:a|)", "xa"),
        (r"a\b", "a"), ("[ab](?<=a)", "ab"), ("a(?!b)", "a"), ("x(?>ab)", "b"), ("", ""),
    ],
)  # fmt: skip
def test_the_last_characters_of_a_match_are_told(pattern, last):
    assert last_characters(pattern) == {*last}


def test_a_pattern_that_looks_back_to_before_it_is_told():
    assert [looks_outside(text) for text in ("(?<=a)b", "(?:a|)(?<=a)b", "(?:a|(?<!a)b)", "(?=a|^)", "a(?<!a)b")] == [
        *(True, True, True, True, False)
    ]


@pytest.mark.parametrize(
    ("pattern", "least"),
    [
        ("(?:(?P<g>ab)){2}", 2), ("(?:(?P<g>a)){0,2}", -1), ("(?!(?P<g>a))b", -1), ("(x)?(?(1)(?P<g>a)|b)", -1),
        ("(?i:ab)", -1), ("(?i:(?P<g>ab))", 2),
    ],
)  # fmt: skip
def test_how_much_a_group_holds_at_least_is_told(pattern, least):
    assert least_held(pattern, "g") == least


@pytest.mark.parametrize(
    ("pattern", "may"),
    [
        ("(?P<g>a(?=<))", False), ("(?P<g>a(?!<))", False), ("(?P<g>a(?:b|[^c]))", True), ("(<)(?P<h>a)", False),
        ("<(?P<g>a)<", False), ("(?P<g>.)", True), ("(?P<g>(?>[;-=]))", True),
    ],
)  # fmt: skip
def test_whether_a_group_may_hold_a_sign_is_told(pattern, may):
    assert may_hold(pattern, "g", "<") == may


ENDS = ("</p>(?=<p>)", "<f>", r"\r?\n<f>", r"\r?\n(?=<p>x)", "(?P<entity>&[a-z]{1,4}+;)", "</p>")
_stretches = st.builds("".join, st.lists(st.sampled_from([*"<&\r\n;x", "</p>", "<p>", "<f>", "x" * 300]), max_size=12))


@given(_stretches, st.sampled_from([0, 100, 600, 2000]), _stretches)
@settings(max_examples=settings.default.max_examples * 3)
def test_a_stop_is_found_where_it_would_be_in_one_pass(before, gap, behind):
    text = before + "-" * gap + behind
    stop = Stop(ENDS, r"<&\r\n")
    for at in range(min(len(text), 40)):
        found, expected = stop.search(text, at), re.compile("|".join(ENDS)).search(text, at)
        assert (found and (found.span(), found.lastgroup)) == (expected and (expected.span(), expected.lastgroup))


@pytest.mark.parametrize("at", [0, 2006, 2007, 2008])
def test_a_stop_that_begins_with_a_line_break_is_found_by_what_stands_behind_it(at):
    ends = [r"\r?\n(?=<f>)", "<p>"]
    text = "-" * 2000 + "\n<><f>\r\n<f>" + "-" * 600 + "<f>\n<p>"
    found, expected = Stop(ends, r"<\r\n").search(text, at), re.compile("|".join(ends)).search(text, at)
    assert found.span() == expected.span()


def test_a_stop_begins_with_the_whole_line_break_where_another_begins_with_its_last_character():
    ends = [r"\r?\n</p>", r"\n[<\[]"]
    found = Stop(ends, r"\r\n").search("-" * 2000 + "\r\n</p>", 0)
    assert found.span() == (2000, 2006)


@pytest.mark.parametrize("pattern", [r"\r>", r"\n[^a]", r"\n(?!a)b", r"\n\n<", r"\n"])
def test_a_line_break_before_no_literal_is_not_left_out(pattern):
    assert re.match(r"\\[\r\n]", apart([pattern])[0])


def test_a_stop_of_a_pattern_that_cannot_be_taken_apart_is_searched_as_it_is():
    assert Stop(["(?<=a)b", "c"], "bc").search("-" * 2000 + "ab", 0).span() == (2001, 2002)


@given(st.sampled_from([*every_pattern(), *ODD_PATTERNS]), st.data())
@settings(max_examples=settings.default.max_examples * 3)
def test_what_matches_begins_with_the_prefix(pattern, data):
    found = re.search(pattern, data.draw(st.from_regex(pattern)))
    assume(found is not None)
    assert found[0].startswith(prefix(pattern))


def test_what_a_set_leaves_out_begins_a_pattern():
    assert begins(r"[^\x00-y]x") == {*"z{|}~\x7f"}


def test_prefixes_are_seen():
    found = {pattern: prefix(pattern) for pattern in ODD_PATTERNS}
    assert found["ab"] == "ab"
    assert found["a?"] == found["(?i:Toy)a"] == found["a{0,2}b"] == ""
    assert prefix(r"\[CALL:a*") == "[CALL:"
    assert prefix(r"a\|b|c") == prefix("(a|b)") == ""
    assert prefix("a[|]b(c|d)") == "a"
    assert sum(bool(prefix(entry.pattern.text)) for entry in scanner.plan(None, "lenient").entries["<"]) > 25


def test_patterns_that_cannot_be_merged_are_tried_one_after_the_other():
    either = AnyOf([r"(?P<name>a)(?<=a)b", "c"])
    assert [either.match(text, 0) is not None for text in ("ab", "c", "b")] == [True, True, False]


def test_of_a_pattern_that_begins_in_thousands_of_ways_few_texts_are_made():
    assert openings("[abcdefgh]" * 4, 4) == {first + second for first in "abcdefgh" for second in "abcdefgh"}
    assert len(openings("[abcdefgh]?" * 12 + "x", 4)) < 100


def test_where_it_is_not_known_how_patterns_begin_each_place_is_near():
    near = Begun("<", [Pattern("<tool>"), Pattern("<(?:|a)b"), Pattern("<[^x]")])
    assert near.text == "<"
    assert Begun("<", [Pattern("<tool>"), Pattern(r"<(?<!x)")]).text == "<"
    assert Begun("<", [Pattern("<tool>"), Pattern("[<>]ab*c")]).text == "<(?=[at])(?=(?:a(?:b(?:b|c)|c)|too))"


@given(st.lists(st.sampled_from(every_pattern()), min_size=1, max_size=40), st.data())
def test_what_is_near_passes_all_that_begins(patterns, data):
    text = data.draw(st.from_regex(backtracking(data.draw(st.sampled_from(patterns)))))
    assume(any(re.match(one, text) is not None for one in patterns) and text)
    assert Begun(text[0], [Pattern(one) for one in patterns]).match(text, 0) is not None


# The laws can fail: what a parser that breaks one of them is told.


class Scripted:
    """A parser that says at the end what a function of the chunks says; `steps` is another function of them."""

    script: Any = staticmethod(lambda chunks: [])
    count: Any = staticmethod(lambda chunks: sum(map(len, chunks)))

    def __init__(self, **options: Any) -> None:
        self.chunks: list[str] = []

    def feed(self, chunk: str) -> list[Any]:
        self.chunks.append(chunk)
        return []

    def finish(self) -> list[Any]:
        return list(self.script(self.chunks))

    @property
    def steps(self) -> int:
        return int(self.count(self.chunks))


@pytest.fixture
def scripted(monkeypatch):
    """Let the laws check a parser that says what a function says."""

    def put(script: Any = Scripted.script, count: Any = Scripted.count, feed: Any = Scripted.feed) -> None:
        parts = {"script": staticmethod(script), "count": staticmethod(count), "feed": feed}
        monkeypatch.setattr(laws, "Parser", type("Wrong", (Scripted,), parts))

    return put


def text_at(start: int, text: str) -> Text:
    return Text(Span(start, start + len(text)), text)


def called(raw: str = "[CALL: f()]", index: int = 0, arguments: Any = None, **fields: Any) -> Call:
    values = {"name": "f", "arguments": {} if arguments is None else arguments, "raw_arguments": "", "dialect": "call"}
    return Call(Span(0, len(raw)), raw, index, **{**values, **fields})


def broken(name: str | None = "f", index: int | None = 0) -> Malformed:
    return Malformed(Span(0, 1), "x", "unexpected-text", "wrong", index, name, "call")


START = CallStart(0, "f", "call")


def test_law_1_is_told_with_both_sides(scripted):
    scripted(lambda chunks: [text_at(0, "".join(chunks)), *[Notice(Span(0, 0), "x", "y")] * (len(chunks) > 1)])
    with pytest.raises(
        AssertionError, match=r"law 1, chunking is invisible: cut at \[1\]: event 1 differs\nwhole: no more"
    ):
        laws.check_chunking("abc", [1])
    with pytest.raises(AssertionError, match="law 1, chunking is invisible: in chunks of 1"):
        laws.check_chunking("abc")
    laws.check_chunking("abc", [])


def test_neighbours_of_one_kind_may_be_two():
    thought = Text(Span(1, 2), "b", "reasoning")
    for two in ([text_at(0, "a"), thought], [ArgumentsDelta(0, "{"), ArgumentsDelta(1, "{")]):
        assert laws.joined(two) == two


@pytest.mark.parametrize("cuts", [[-1, 1], [1, 1, 9], [3, 0]])
def test_where_a_text_is_cut_is_where_it_can_be(scripted, cuts):
    scripted(lambda chunks: [text_at(0, "".join(chunks))])
    laws.check_chunking("abc", cuts)


@pytest.mark.parametrize(
    "script",
    [
        lambda text: [],
        lambda text: [text_at(0, text[1:])],
        lambda text: [text_at(1, text)],
        lambda text: [text_at(0, text), text_at(0, text)],
        lambda text: [text_at(0, text), text_at(len(text), "")],
        lambda text: [text_at(0, "y" * len(text))],
        lambda text: [Malformed(Span(0, 9), text, "", "")],
    ],
)
def test_law_2_is_told(scripted, script):
    scripted(lambda chunks: script("".join(chunks)))
    with pytest.raises(AssertionError, match="law 2, nothing is lost: whole"):
        laws.check_nothing_is_lost("abc")


def test_law_3_is_told_with_its_cause(scripted):
    scripted(lambda chunks: [1 // (3 - len(chunks))])
    with pytest.raises(
        AssertionError, match=r"law 3, model text never raises: in chunks of 1: .*ZeroDivisionError"
    ) as error:
        laws.check_never_raises("abc")
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_a_wrong_option_is_no_breach_of_law_3():
    with pytest.raises(UsageError):
        laws.check_never_raises("abc", dialects=[])


def test_law_4_is_told_of_text_that_waits(scripted):
    scripted(lambda chunks: [text_at(0, "".join(chunks))])
    laws.check_little_is_withheld("x" * 1024)
    with pytest.raises(
        AssertionError, match="law 4, little is withheld: expected what stands at 0 before more than 1024"
    ):
        laws.check_little_is_withheld("x" * 1025)
    with pytest.raises(AssertionError, match="before more than 9"):
        laws.check_little_is_withheld("x" * 10, bound=9)
    laws.check_little_is_withheld("x" * 1025, contexts={"fence": "sole"})
    scripted(lambda chunks: [broken(), text_at(1, "".join(chunks)[1:])])
    laws.check_little_is_withheld("x" * 521, bound=9)
    with pytest.raises(AssertionError, match="expected what stands at 0 before more than 521 further"):
        laws.check_little_is_withheld("x" * 522, bound=9)


@pytest.mark.parametrize(("name", "counted_from"), [(None, 100), ("f", 0)])
def test_law_4_wants_what_is_broken_once_it_is_or_once_it_has_begun_if_it_has_a_name(scripted, name, counted_from):
    late = replace(broken(name), message='expected ":", found "x", 100 characters into the marker')
    scripted(lambda chunks: [late, text_at(1, "".join(chunks)[1:])])
    laws.check_little_is_withheld("x" * (counted_from + 521), bound=9)
    with pytest.raises(AssertionError, match=f"expected what stands at {counted_from} before more than 521 further"):
        laws.check_little_is_withheld("x" * (counted_from + 522), bound=9)


@pytest.mark.parametrize("end", ["", '"}}</tool_call>', '"}, "name": 7}</tool_call>'], ids=["cut", "none", "a number"])
def test_arguments_may_wait_for_a_name_that_does_not_come(end):
    laws.check_little_is_withheld('<tool_call>{"arguments": {"a": "' + "x" * 2000 + end)


def test_law_4_is_told_of_text_that_waits_behind_a_broken_call(scripted):
    def feed(self: Scripted, chunk: str) -> list[Any]:
        self.chunks.append(chunk)
        return [START, broken()] if len(self.chunks) == 1 else []

    scripted(lambda chunks: [text_at(1, "".join(chunks)[1:])], feed=feed)
    laws.check_little_is_withheld("x" * 10, bound=9)
    with pytest.raises(AssertionError, match="expected what stands at 1 before more than 9 further"):
        laws.check_little_is_withheld("x" * 11, bound=9)


def test_law_4_is_told_of_arguments_that_wait(scripted):
    def feed(self: Scripted, chunk: str) -> list[Any]:
        self.chunks.append(chunk)
        return [START] if len(self.chunks) == 1 else []

    scripted(lambda chunks: [ArgumentsDelta(0, "x" * 30_000), called("".join(chunks))], feed=feed)
    with pytest.raises(
        AssertionError, match=r"law 4, little is withheld: expected at most 28672 characters .*, found 30000"
    ):
        laws.check_little_is_withheld("xy")


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([CallStart(1, "f", "call")], "expected index 0"),
        ([called()], "expected a CallStart before it"),
        ([ArgumentsDelta(0, "{}")], "expected a CallStart before it"),
        ([START, ArgumentsDelta(0, "{}"), called(), broken()], "expected a CallStart before it"),
        ([START], r"expected an end of calls \[0\]"),
        ([START, ArgumentsDelta(0, '{"a":1}'), called()], """expected '{"a":1}' of 'f'"""),
        ([START, ArgumentsDelta(0, '{"a":1}'), called(arguments={"a": 1.0})], "expected"),
        ([START, ArgumentsDelta(0, '{"a":1}'), called(arguments={"a": True})], "expected"),
        ([START, ArgumentsDelta(0, '{"a":1,"b":2}'), called(arguments={"b": 2, "a": 1})], "expected"),
        ([START, ArgumentsDelta(0, "{}"), called(name="g")], "of 'f'"),
        ([START, ArgumentsDelta(0, "{"), called()], "Expecting"),
        ([START, ArgumentsDelta(0, '{"a":1,"a":1}'), called(arguments={"a": 1})], "a key is given twice"),
        ([START, ArgumentsDelta(0, '{"a":NaN}'), called(arguments={"a": 1})], "NaN is no JSON"),
        ([START, ArgumentsDelta(0, '{"a":1e999}'), called(arguments={"a": float("inf")})], "not JSON compliant"),
        ([START, ArgumentsDelta(0, '"\\ud83d"'), called(arguments="\ud83d")], "surrogates not allowed"),
        ([START, ArgumentsDelta(0, '{"a":}'), broken()], "the beginning of a JSON text"),
        ([START, ArgumentsDelta(0, "}"), broken()], "the beginning of a JSON text"),
        ([START, broken("g")], "expected name 'f'"),
    ],
)
def test_law_8_is_told(scripted, events, message):
    scripted(lambda chunks: events)
    with pytest.raises(AssertionError, match="law 8, previews tell the truth: .*" + message):
        laws.check_previews("x")


@pytest.mark.parametrize(
    "begun", ["", "{", "[", '{"a', '{"a"', '{"a":', '{"a":[1', '{"a":[{"b":"x', '{"a":1,', "[1,", '"x\\"', "{}", "1"]
)
def test_a_preview_may_end_anywhere(scripted, begun):
    scripted(lambda chunks: [START, ArgumentsDelta(0, begun), broken()])
    laws.check_previews("x")


@pytest.mark.parametrize(
    ("text", "events", "message"),
    [
        ("[CALL: f()]", [text_at(0, "[CALL: f()]")], r"call, a marker: .*, the call '\[.*, found the text '\[CALL"),
        ("[CALL: f()]", [], "call, a marker: expected what .*, found nothing"),
        ("[CALL: f()]", [called(), text_at(0, "x")], "call, a marker: .*, found the call .*, the text 'x'"),
        ("[CALL: f()]", [START, broken()], r"call, a marker: .*, found .*, which is none \("),
        ("[CALL: f()]", [called(name="g")], "call, a marker: expected"),
        ("[CALL: f()]", [called(id="1")], "expected"),
        ("[CALL: f()]", [called(arguments={"a": 1})], "expected"),
        ("[CALL: f()]", [called(raw_arguments="{}")], "expected"),
        ("[CALL: f(a, b)]", [called("[CALL: f(a, b)]")], "expected Malformed, found"),
        ("x", [called("[CALL: f(]")], "expected a member .*, found .*, which is read as a call: .* at 9"),
        ("x", [called(repairs=("any",))], "expected no repairs in strict reading"),
    ],
)
def test_law_5_is_told(scripted, text, events, message):
    scripted(lambda chunks: events)
    with pytest.raises(AssertionError, match="law 5, the grammar is obeyed.*" + message):
        laws.check_grammar("call", text)


def test_law_5_holds_of_a_marker_with_a_nonce():
    laws.check_grammar("call", "[CALL#7f3a: f()]")


def test_law_5_is_told_of_an_id_that_is_lost(scripted):
    text = '<tool_call>\n{"name": "f", "arguments": {}, "id": "1"}\n</tool_call>'
    laws.check_grammar("hermes", text)
    scripted(lambda chunks: [called(text, raw_arguments="{}", dialect="hermes")])
    with pytest.raises(AssertionError, match=r"law 5, the grammar is obeyed: .*id='1'.*, found"):
        laws.check_grammar("hermes", text)


def test_law_5_leaves_to_others_what_the_grammar_does_not_say(scripted):
    scripted(lambda chunks: [broken()])
    laws.check_grammar("call", "[CALL: f(" + "[" * 65 + "]" * 65 + ")]")
    laws.check_grammar("call", f'[CALL: f("{"x" * 2**20}")]')
    laws.check_grammar("call", '[CALL: f({"a":1,"a":1})]')
    laws.check_grammar("call", '[CALL: f({"a":1e999})]')
    laws.check_grammar("call", "[CALL: f(a, b)]")
    laws.check_grammar("mistral", '{"name":"f"}')  # a call, but none that stands alone


def test_law_7_is_told_of_steps_that_grow_with_the_square(scripted):
    scripted(count=lambda chunks: sum(map(len, chunks)) ** 2 // 3000)
    with pytest.raises(AssertionError, match=r"law 7, time is linear: whole: expected at most 4\.4 times the steps"):
        laws.check_linear(repeated("x"))


def test_law_7_is_told_of_too_many_steps(scripted):
    scripted(count=lambda chunks: sum(map(len, chunks)) * 7)
    with pytest.raises(
        AssertionError, match="law 7, time is linear: whole: expected at most 26048 steps for 4000 characters"
    ):
        laws.check_linear(repeated("x"))


def test_law_7_is_told_of_steps_that_grow_with_the_square_in_chunks_alone(scripted):
    scripted(count=lambda chunks: sum(map(len, chunks)) ** 2 // 100 if len(chunks) > 1 else 1)
    with pytest.raises(AssertionError, match="law 7, time is linear: in chunks of 1: expected at most 4"):
        laws.check_linear(repeated("x"))


def test_law_7_holds_where_steps_catch_up(scripted):
    scripted(count=lambda chunks: {4000: 20_000, 8000: 30_000, 16_000: 80_000}[sum(map(len, chunks))])
    laws.check_linear(repeated("x"))


@pytest.mark.parametrize(
    ("written", "texts", "between", "message"),
    [
        (lambda text: text + " ", ["a"], [], "expected no change the second time"),
        (lambda text: text.replace("true", "1"), ["[true]"], [], "expected JSON with the value"),
        (lambda text: text, ["[CALL: f()]"], [], "expected no call"),
        (lambda text: text, ["L: f()]"], ["[CAL"], "expected no call"),
        (lambda text: text, ["[CAL"], ["", "L: f()]"], "expected no call"),
        (lambda text: text, ["[CAL", ""], ["", "x", "L: f()]"], "expected no call"),
    ],
)
def test_law_9_is_told(monkeypatch, written, texts, between, message):
    monkeypatch.setattr(laws, "neutralize", lambda text, **options: written(text))
    with pytest.raises(AssertionError, match=f"law 9, written content cannot call: {message}"):
        laws.check_neutral(*texts, between=between)


# A dialect's row.


def row(grammar: str = "hermes.lark", **fields: Any) -> Dialect:
    others = {field: fields.pop(field) for field in ("tags", "leads", "results", "lines") if field in fields}
    templates = fields.pop("writing", None)
    form = {"head": r"=> {name} (?=\{)", "body": "json", "begins": "="} | fields
    return Dialect(
        name="own", title="", models="", source="", grammar=grammar, forms=(Form(**form),),
        writing=None if templates is None else Writing(**{"call": "=> {name} {arguments}"} | templates), **others,
    )  # fmt: skip


VALUES = {"body": "parameters", "parameter": "<{key}>", "value_end": "</p>", "tail": "</f>"}


@pytest.mark.again
@each_dialect
def test_the_rows_of_the_table_are_as_laws_want_them(dialect):
    laws.check_dialect(dialect)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tail": r"(?:</end>|<end/>)[ \t]{0,64}+(?=\n)"},
        {"tail": r"[^x]y(?!z)z?z"},
        {"tail": r"(?>ab?)\.(?s:.)\d\D\S\W[a-f]"},
        {"results": (r"<out\b",)},  # which is held against whole lines
        {"tail": "(?:[a-z]|[a-z]?;){1,64}+!"},
        {"tail": "(?:[a-z][0-9]{0,9}){1,30}!"},
        {"head": r"(?i:tool) {name} (?=\{)", "begins": "tT"},
        {"opener": "<", "separator": ",{ws}", "closer": ">", "begins": "<="},
        *({"opener": "<", "closer": end, "begins": "<="} for end in (">(?:a(?:b|c))?", r">(\))?", r">\)?")),
        {"opener": "<", "alone": False, "begins": "<"},
        {"loose_heads": (r"-> {name} ",), "begins": "=-"},
        {"head": r"=> {name}[ \n](?=\{)"},
        {"tags": (r"\(note\)", r"(?:@|%)end;")},
        VALUES | {"head": r"=> {name}(?=\n)", "tail": r"\nend"},
        VALUES | {"parameter": "<a {key}>", "value_end": "</p>(?:</p>)?"},
    ],
)
def test_a_sound_row_is_found_sound(fields):
    check_row_alone(row(**fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tail": "</end>{ws}"}, r"forms\[0\].tail: expected a pattern that ends in something that must be there"),
        ({"tail": "a+"}, "tail: expected a pattern that ends"),
        ({"tail": "ab?"}, "tail: expected a pattern that ends"),
        ({"tail": "a(?:bc)?"}, "tail: expected a pattern that ends"),
        ({"tail": "x(?!y)"}, "tail: expected a pattern that ends"),
        ({"tail": r"x\b"}, r"tail: expected a pattern without `\\b`"),
        ({"head": "=> {name}"}, "head: expected a pattern that ends"),
        ({"closer": "ab*", "opener": "="}, "closer: expected a pattern that ends"),
        ({"opener": "=+"}, "opener: expected a pattern that ends"),
        ({"loose_heads": ("= {name}",)}, r"loose_heads\[0\]: expected a pattern that ends"),
        ({"opener": "%%{ws}", "begins": "=%"}, r"opener: .* that ends .*; `\(\?=\[=\]\)` at its end says what"),
        (
            {"opener": "%%{ws}", "begins": "%", "head": r"{name} (?=\{)", "alone": False},
            r"opener: .* that ends .*; `\(\?=\[\\w\]\)` at its end says what must follow",
        ),
        ({"head": "=> {name}{ws}"}, r"head: .* that ends .*; `\(\?=\\\{\)` at its end says what must follow"),
        (
            VALUES | {"head": "=> {name}", "parameter": r"{ws}@{key}>", "tail": "{ws}</f>"},
            r"head: .* that ends .*; `\(\?=\{ws\}\[<@\]\)` at its end says what must follow",
        ),
        (
            VALUES | {"head": "=> {name}>{ws}", "parameter": r"{ws}@{key}>", "tail": "{ws}</f>"},
            r"head: .* that ends .*; `\(\?=\[<@\]\)` at its end says what must follow",
        ),
        *(
            ({field: (tag,)}, rf"own: {field}: .* that ends .*; leave out what may be missing, or let a look-ahead say")
            for field in ("tags", "leads")
            for tag in ("@@{ws}", "@!{1,3}", "@(?![ ])")
        ),
        ({"tags": ("@x{1024}",)}, "tags: expected a pattern that looks at 1024 characters at most, found one of 1025"),
        ({"begins": "<"}, r"forms\[0\].begins: expected the characters '=', with which .*, found '<'"),
        ({"begins": "=<"}, "begins: expected the characters '=', with .*, found '=<'"),
        ({"head": "[^x]{name} "}, "begins: expected the characters .* and 63467 more, .* begin, found '='"),
        ({"head": "({name}"}, "head: no valid pattern"),
        ({"tail": "x{1025}"}, "tail: expected a pattern that looks at 1024 characters at most, found one of 1025"),
        ({"head": r"=> {name}[ ]*+(?=\{)"}, "head: expected .* 1024 characters at most, found one of any"),
        ({"tail": r"[a-z|]++\|"}, r"tail: expected a pattern that matches, found one that refuses 'a\|'"),
        ({"tail": r"{ws} end"}, "tail: expected a pattern that matches, found one that refuses ' end'"),
        ({"head": r"=> {name}: (?=\{)"}, r"refuses '=> a: \{', as what .*; \{name\} takes `\.`, `/`, `:` and `-` too"),
        (
            {"body": "parameters", "parameter": "{ws}<{key}>", "value_end": "</>", "tail": "{ws}<"},
            "parameter: expected what the tail does not match, as either would be read, found '<a>'",
        ),
        (
            VALUES | {"tail": "</args></f>"},
            "tail: expected what begins with no parameter, .* before the rest has come, found '</args></f>'",
        ),
        ({"tail": r"\r?\n"}, r"tail: expected a pattern that holds a sign, found .* '\\n' alone, .*; leave it out"),
        ({"tail": r"(?:;|\n\n)"}, r"tail: expected a pattern that holds a sign, found one that matches '\\n\\n' alone"),
        ({"tail": r"(?=\n)"}, r"tail: expected a pattern that holds a sign, found one that matches '\\n' alone"),
        ({"tail": r"\n(?=\S)"}, r"tail: expected a pattern that holds a sign, found .* '\\n\\u200b' alone"),
        ({"tail": ";", "loose_tail": "[ ]"}, "loose_tail: expected a pattern that holds a sign, .* ' ' alone"),
        (
            VALUES | {"parameter": "<a {key}>", "value_end": "</p>(?:</p>)?", "tail": "</"},
            "value_end, with what must follow it: expected a pattern that ends in .* in '</p></p>' is '</p>' and in",
        ),
        *(
            (VALUES | {field: text}, f"{field}: expected a pattern that begins with characters which it names, found")
            for field, text in (
                *(("value_end", "[^a]</p>"), ("loose_value_end", "[^a]</p>"), ("nested", "[^<]x")),
                *(("unclosed", r"[^\n]x"), ("broken_by", (r"(?s:.)x",))),
            )
        ),
        (VALUES | {"tail": r"\n"}, r"tail: .* holds a sign, .* of them; what its line's end alone closes has no row"),
        ({"head": r"=> {name}[ \n]"}, r"head: expected a pattern that no line break completes, .* '=> a' before one"),
        (
            {"head": r"=> {name}(?:(?P<empty>\n)|[ ](?=\{))"},
            r"head: expected a pattern that no line break completes, found one that matches '=> a' before one",
        ),
        (
            {"loose_heads": (r"-> {name}[ ](?=\{)", r"-> {name}\n"), "begins": "=-"},
            r"loose_heads\[1\]: expected a pattern that no line break completes",
        ),
        ({"grammar": "none.lark"}, r"none\.lark"),
        ({"grammar": "heads.lark"}, r"dialect own: grammar: heads.lark: expected the rules marker, call, found no"),
    ],
)
def test_a_row_that_breaks_laws_is_told(fields, message):
    with pytest.raises(AssertionError, match=message):
        laws.check_dialect(row(**fields))


@pytest.mark.again
@pytest.mark.parametrize(
    ("fields", "cut", "text"),
    [
        ({"tail": r"\n"}, "=> f {}", "(see above)"),
        ({"head": r"=> {name}\n", "body": "arguments"}, "=> f", "a=1)"),
        ({"head": r"=> {name}(?:(?P<empty>\n)|[ ](?=\{))"}, "=> f", "x"),
    ],
)
def test_what_sets_texts_apart_completes_a_marker_that_white_space_ends(fields, cut, text):
    """That is why such rows are told."""
    own = row(**fields)
    written = neutralize(text, dialects=own)
    assert [parse(part, dialects=own).calls for part in (cut, written)] == [(), ()]
    assert [call.name for call in parse(cut + written, dialects=own).calls] == ["f"]


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        ("abc|d", 3), ("a(?=bcd)", 4), ("(?!bcd)a", 3), ("(?:a(?=bcd)){2}e", 5), ("a{3}(?=b{5})(?>c{2})", 8),
        ("^x?$", 1), ("(?:ab|c(?=dddd))", 5), ("(a)?(?(1)b|cc)", 3),
    ],
)  # fmt: skip
def test_what_a_pattern_looks_at_is_counted(pattern, most):
    assert reach(pattern) == most
    assert reach(f"(?=(?:{pattern})*)") > HOLD_LIMIT


def test_a_text_that_no_json_reader_takes_may_be_a_declared_string():
    anything = {"type": "object", "additionalProperties": {"type": ["object", "string"]}}
    text = '<function=f><parameter=d>{"x": 1, "x": 2}</parameter></function>'
    laws.check_all(text, tools=[{"name": "f", "parameters": anything}])


@pytest.mark.parametrize("blanks", [1, 24, 25, 64, 65])
def test_blanks_wherever_a_head_has_room_for_them_make_it_no_longer_than_what_is_held(blanks):
    aside = [*('"type"', ":", '"' + "x" * 60 + '"', ",")]
    name = [*('"name"', ":", '"f"', ",", '"arguments"', ":", "{", "}", "}", "}", "]", "}")]
    tokens = [*("{", '"tool_calls"', ":", "[", "{"), *aside * 3, *('"function"', ":", "{"), *name]
    laws.check_chunking((" " * blanks).join(tokens), tolerance="salvage", tools=["f"])


ACME = """
%import .heads (_GAP, NAME)
%import .json (root)

marker: call

call: "<acme:" NAME ">" _GAP? root _GAP? "</acme>"
"""
SECTION = 'marker: "<calls>" _GAP? call (_GAP? call)* _GAP? "</calls>"'
IN_SECTION = {"opener": r"<calls>{ws}(?=<)", "closer": "{ws}</calls>", "alone": False}
IN_WRITING = {"opener": "<calls>", "closer": "</calls>"}
ENVELOPE = ACME.replace(".json (root)", ".envelope (envelope)").replace("root", "envelope")


def acme(tmp_path: Path, grammar: str, form: dict[str, Any], writing: dict[str, str] | None) -> Dialect:
    file = tmp_path / "acme.lark"
    file.write_text(grammar, "utf-8")
    own = Form(**{"head": r"<acme:{name}>{ws}(?=\{)", "body": "json", "tail": "{ws}</acme>"} | form)
    templates = None if writing is None else Writing(call="<acme:{name}>{arguments}</acme>", **writing)
    return replace(row(), grammar=str(file), forms=(own,), writing=templates)


@pytest.mark.parametrize("writing", [{}, None])
@pytest.mark.parametrize(
    ("old", "new", "form", "message"),
    [
        ("", "", {}, ""),
        ('"</acme>"', '"</akme>"', {}, r"forms\[0\] and its grammar do not agree: .*expected \"</akme>\", found"),
        ("_GAP? root", "root", {}, "do not agree: .* found ' '|do not agree: .* found \" \""),
        ("root _GAP?", "root", {}, "do not agree: "),
        ("NAME ", "ID ", {}, "grammar: .*ID"),
        ('"<acme:" NAME', '/<acme:[a-z]++/', {}, "do not agree: "),
        ("marker: call", 'marker: "<calls>" call', {}, r"forms\[0\]: expected a grammar whose rule `marker` describes"),
        ("marker: call", SECTION, IN_SECTION, ""),
        ("marker: call", SECTION.replace("_GAP? call (", "call ("), IN_SECTION, ""),
        ("", "", IN_SECTION, r"forms\[0\]: expected a grammar whose rule `marker` .* is none: expected .*<acme:"),
        ("marker: call", SECTION, IN_SECTION | {"head": r"{ws}<acme:{name}>{ws}(?=\{)"}, "head: .* no white space"),
        (ACME, ENVELOPE, {}, "do not agree: "),
        ("(_GAP, NAME)", "(_GAP, NAMES)", {}, "expected the name of what heads.lark defines, found 'NAMES'"),
        ("marker: call", 'marker: call\n%ignore " "', {}, "expected white space as `_GAP\\?` of .heads, found %ignore"),
    ],
)
def test_a_row_and_a_grammar_that_do_not_agree_are_told(tmp_path, old, new, form, message, writing):
    templates = IN_WRITING if writing is not None and "opener" in form else writing
    check_told(acme(tmp_path, ACME.replace(old, new), form, templates), message and f"(?s)dialect own: .*{message}")


def check_told(own: Dialect, message: str) -> None:
    """Assert that `check_dialect` tells this of a row, "" for nothing."""
    if not message:
        laws.check_dialect(own)
        return
    with pytest.raises(AssertionError, match=message):
        laws.check_dialect(own)


ENVELOPED = {"body": "envelope", "head": r"=> (?=\{)"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"begins": "<"}, r"dialect own: forms\[0\].begins: expected the characters '=', with which .*, found '<'"),
        ({"head": r"(?i:skill) {name} (?=\{)", "begins": "sS"}, "begins: expected the characters 'Ssſ', .*found 'sS'"),
        ({"head": "({name}"}, r"dialect own: forms\[0\].head: no valid pattern: missing .*, in '\("),
        ({"body": "yaml"}, r"dialect own: forms\[0\].body: expected arguments, .* json or parameters, found 'yaml'"),
        ({"alone": "yes"}, "alone: expected a bool, found str"),
        ({"head": None}, "head: expected a str, found NoneType"),
        ({"tail": re.compile("a")}, "tail: expected a str, found Pattern"),
        ({"begins": ("=",)}, "begins: expected a str, found tuple"),
        ({"name_keys": ("name", 1)}, "name_keys: expected a tuple of str, found int in it"),
        ({"grammar": Path("acme.lark")}, "dialect own: grammar: expected a str, found .*Path"),
        ({"tags": (b"<note>",)}, "dialect own: tags: expected a tuple of str, found bytes in it"),
        ({"head": r"(?i)=> {name} (?=\{)"}, r"head: expected flags of a part, as `\(\?i:tool\)`, found"),
        ({"loose_heads": "-> {name} "}, "loose_heads: expected a tuple, found str"),
        ({"loose_heads": ["-> {name} "]}, "loose_heads: expected a tuple, found list"),
        ({"tags": [r"<note>"]}, "dialect own: tags: expected a tuple, found list"),
        ({"body": "envelope", "name_keys": ()}, "name_keys: expected the keys of an envelope, found none"),
        ({"body": "envelope", "arguments_keys": ()}, "arguments_keys: expected the keys of an envelope, found none"),
        ({"tags": ("(",)}, "dialect own: tags: no valid pattern: missing"),
        ({"tags": ("note",)}, "dialect own: tags: expected a pattern that begins with a sign, .* found 'note'"),
        ({"head": r"^=> {name} (?=\{)"}, "head: expected a pattern that sees nothing before its beginning, nor"),
        ({"head": r"(?<!`)=> {name} (?=\{)"}, "head: expected a pattern that sees nothing before its beginning"),
        ({"tail": r"(?:a|\bb)c"}, "tail: expected a pattern that sees nothing before its beginning"),
        *(
            ({"begins": "<=", field: r"<|c|>{ws}(?=\=)"} | head, rf"{field}: .*; `\\\|` is the sign itself")
            for field, head in (("opener", {}), ("head", {"head": "<|c|>{name}{object}"}))
        ),
        *(
            ({field: ("<|out|>",)}, rf"{field}: expected alternatives in brackets, .* `\\\|` is the sign itself")
            for field in ("tags", "results", "lines")
        ),
        ({"tail": "a|b"}, r"forms\[0\].tail: expected alternatives in brackets, as `\(\?:a\|b\)`, .* found 'a\|b'"),
        ({"opener": "<c>", "separator": r"\||[(]|[|]"}, "separator: expected alternatives in brackets"),
        (VALUES | {"parameter": "<(?:a|b)>|<c>"}, "parameter: expected alternatives in brackets"),
        (VALUES | {"value_end": r"</p>|\n"}, "value_end: expected alternatives in brackets"),
        ({"tail": "a$"}, "tail: expected .*nor the end of the text, found 'a[$]'; `line_start` is for"),
        ({"tags": ("^<note>",)}, "tags: expected a pattern that sees nothing before its beginning"),
        ({"tags": (r"<note\b[^>]",)}, r"dialect own: tags: expected a pattern without `\\b` and `\\B`, .*found '<note"),
        ({"head": r"=> {name}\B (?=\{)"}, r"dialect own: forms\[0\].head: expected a pattern without `\\b` and `\\B`"),
        *(
            ({field: (text,) if field == "results" else text}, f"{field}: expected a pattern without back references")
            for field, text in (
                ("head", r"""=>(?P<q>["']){name}(?P=q) (?=\{)"""), ("head", r"""=> {name}(["'])\1{object}"""),
                ("head", r"""=>(?P<q>")?{name}(?(q)"|') (?=\{)"""), ("tail", r"(?:x|(a)(?=\1))"),
                ("results", r"(=+)\1"),
            )
        ),
        ({"tail": r"(?:\s*;*)*</end>"}, r"tail: expected a pattern whose repeats give nothing back, .*take forever: "),
        ({"tail": "(?:[a-z]{1,30}\\.?){1,8};"}, "tail: expected a pattern whose repeats give nothing back"),
        ({"tail": "(?:[a-z]|[a-z]\\.|[a-z][0-9]?){1,64};"}, "tail: expected a pattern whose repeats give nothing back"),
        ({"tail": "(?:get|set|[a-z]|[a-z][a-z]){1,64};"}, "tail: expected a pattern whose repeats give nothing back"),
        ({"tail": "(?i:(?:ä[a-z]|Ä[A-Z]){1,40});"}, "tail: expected a pattern whose repeats give nothing back"),
        ({"tail": "a?" * 28 + "a" * 28}, "tail: expected a pattern whose repeats give nothing back"),
        ({"tail": "(?>(?:a|a){1,40}b)|(?:(?:a|a){1,40}c)*+"}, "tail: expected a pattern whose repeats give nothing"),
        ({"tail": "(?:(?>abc)|abc){1,40};"}, "tail: expected a pattern whose repeats give nothing back"),
        ({"head": '=>(?: {name})? (?={)'}, r"head: expected a group `name` that takes part in every match, found '=>"),
        ({"head": "=> (?:{name}|(?P<id>[0-9]{1,9}+)) "}, "head: expected a group `name` that takes part in every"),
        ({"head": "=> (?P<name>[a-z]{0,9}+) "}, "head: expected a group `name` that is never empty, found"),
        ({"loose_heads": ("-> (?:{name})? ",), "begins": "=-"}, "loose_heads: expected a group `name` that takes"),
        ({"loose_heads": ("-> ",), "begins": "=-"}, "loose_heads: expected the abbreviation {name} or a group `name`"),
        ({"body": "envelope"}, r"head: expected no name, as an envelope holds it, found '=> \{name\} "),
        ({"loose_heads": ("-> (?:(?P<missing>)x)?{name} ",)}, "loose_heads: expected a group `missing` that takes"),
        ({"loose_heads": ("-> (?:(?P<nameless>)x)? ",)}, "loose_heads: expected a group `nameless` that takes"),
        ({"head": "-> (?P<nameless>): "}, "head: expected a group `nameless` only in `loose_heads` of `forms`, in"),
        ({"loose_heads": ("-> (?P<nameless>){name} ",)}, "loose_heads: expected a group `nameless` only in"),
        (ENVELOPED | {"head": r"=> (?P<nameless>)(?=\{)"}, "head: expected a group `nameless` only in"),
        (ENVELOPED | {"loose_heads": (r"-> (?P<nameless>)(?=\{)",)}, "loose_heads: expected no name, as an envelope"),
        ({"head": "=> {name} #(?P<id>[^> ]{1,9}+) "}, r"head: .* `id` without halves .* `\[\^>\\ud800-\\udfff\]"),
        ({"loose_heads": ("-> (?P<name>(?>.)) ",)}, "loose_heads: expected a group `name` without halves of surrogate"),
        *(
            (VALUES | {field: ""}, f"{field}: expected a pattern, as the body is `parameters`, found none")
            for field in ("parameter", "value_end", "tail")
        ),
        *(
            (VALUES | {field: "("}, f"{field}: no valid pattern")
            for field in ("opener", "value_end", "loose_value_end", "nested", "member", "unclosed", "loose_tail")
        ),
        *((VALUES | {field: ("({key}",)}, f"{field}: no valid pattern") for field in ("broken_by", "loose_parameters")),
        *(({"opener": "<c>", field: "("}, f"{field}: no valid pattern") for field in ("separator", "closer")),
        ({"opener": "<c>", "loose_openers": ("(",)}, "loose_openers: no valid pattern"),
        ({"loose_heads": ("-> {name} #(?P<id>.) ",)}, "loose_heads: expected a group `id` without halves"),
        *(
            (
                VALUES | {"loose_parameters": (f"<{{key}}(?:(?P<{group}>)x)?>",)},
                f"loose_parameters: expected a group `{group}` that takes part",
            )
            for group in ("missing", "unclosed")
        ),
        (VALUES | {"parameter": "<a(?: k={key})?>"}, "parameter: expected a group `key` that takes"),
        (VALUES | {"loose_parameters": ("<a(?: {key})?>",)}, "loose_parameters: expected a group `key` that takes"),
        *(
            (VALUES | {"parameter": text, "loose_parameters": ("<a>",)}, "loose_parameters: expected a group `key`, as")
            for text in ("<{key}>", "<(?P<key>[a-z]{1,9}+)>")
        ),
        *(
            ({field: text}, f"{field}: expected nothing, as the body is `json`, .* is for `parameters`, found '{text}'")
            for field, text in (
                *(("parameter", "<{key}>"), ("value_end", "</>"), ("loose_value_end", "<>"), ("nested", "<f>")),
                *(("member", "<i>"), ("item", "item"), ("unclosed", "<p")),
            )
        ),
        ({"broken_by": ("a",)}, r"broken_by: expected nothing, as the body is `json`, .* found \('a',\)"),
        ({"loose_parameters": ("a",)}, "loose_parameters: expected nothing, as the body is `json`, .* `parameters`"),
        ({"encoding": "xml"}, "encoding: expected nothing, as the body is `json`, .* found 'xml'"),
        ({"key_encoding": "xml"}, "key_encoding: expected nothing, as the body is `json`, .* found 'xml'"),
        ({"trim": True}, "trim: expected nothing, as the body is `json`, .* found True"),
        ({"quote": ""}, "quote: expected the delimiter of strings, found none"),
        ({"begins": ""}, "begins: expected the characters with which a marker may begin, found none"),
        ({"quote": "'"}, "quote: expected nothing, as the body is `json`, .* for `braces` and `arguments`, found"),
        (
            {"head": r"=> {name}\(", "body": "arguments", "quote": "%"},
            r"forms\[0\].quote: expected nothing, as the body `arguments` has other quotes in variants only, found '%'",
        ),
        ({"name_keys": ("fn",)}, "name_keys: expected nothing, as the body is `json`, .* `envelope`, found"),
        ({"arguments_keys": ("kw",)}, "arguments_keys: expected nothing, as the body is `json`, .* `envelope`, found"),
        (VALUES | {"arguments_keys": ()}, "arguments_keys: expected nothing, .* `parameters`, .* `envelope`, found"),
        ({"separator": ";"}, "separator: expected nothing, as there is no `opener`, found ';'"),
        ({"closer": ";"}, "closer: expected nothing, as there is no `opener`, found ';'"),
        ({"loose_openers": ("<",)}, r"loose_openers: expected nothing, as there is no `opener`, found \('<',\)"),
        ({"behind": "[ ]x"}, r"forms\[0\].behind: expected nothing, as the field is for variants without a tail"),
        ({"indent": 3}, "indent: expected 0, as `line_start` is false, found 3"),
        ({"indent": -1, "line_start": True}, "indent: expected 0 to 64 spaces, found -1"),
        ({"indent": 65, "line_start": True}, "indent: expected 0 to 64 spaces, found 65"),
        ({"writing": {"parameter": "{value}"}}, r"writing.parameter: .* as the body of forms\[0\] is `json`"),
        ({"writing": {"nonce": "#{nonce}"}}, r"writing.nonce: .* head of forms\[0\] has no group `nonce`, found '#"),
        ({"writing": {"call": "{nonce}{arguments}"}}, r"writing.call: expected \{nonce\} where .*, found '\{nonce\}"),
        (
            {"writing": {"call": "=> {name} {id}{arguments}", "default_id": "{nonce}"}},
            "writing.call: expected {nonce} where `writing.nonce` has a template for it, and nowhere else",
        ),
        ({"writing": {"call": "=> {name} {id}{arguments}"}}, r"writing.call: expected \{id\} where .* '=> \{name\} "),
        *(
            ({"writing": {field: "x"}}, "writing.call: expected {id} where `writing.id` or `writing.default_id` has")
            for field in ("id", "default_id")
        ),
        (
            {"head": r"=> (?P<nonce>[0-9]{1,9}+)? {name} (?=\{)", "writing": {"nonce": "{nonce}"}},
            "writing.call: expected {nonce} where `writing.nonce` has a template for it, and nowhere else, found '=>",
        ),
        *(
            (
                VALUES | {"writing": {"parameter": text}},
                rf"writing.parameter: expected places for \{{key\}} and .* forms\[0\] has a group .*, found '{text}'",
            )
            for text in ("", "<{key}></p>", "<p>{value}</p>")
        ),
        ({"writing": {"pairs": True}}, r"writing.pairs: .* body of forms\[0\] is `json`, .* `arguments`"),
        *(
            ({field: (text,)}, f"dialect own: {field}: expected a pattern that matches something, found one")
            for field in ("results", "lines")
            for text in ("", ".*", "[A-Z]?", "(?!x)")
        ),
        *(
            (VALUES | {field: text}, f"{field}: expected a pattern that matches something, found one that matches")
            for field, text in (
                *(("tail", "(?:</f>)?"), ("value_end", "{ws}"), ("loose_value_end", "[ ]*+"), ("nested", r"\n?")),
                *(("unclosed", "(?!x)"), ("broken_by", ("[ ]?",)), ("loose_tail", "(?:x|)")),
            )
        ),
        *(
            ({"opener": "<c>", "closer": text}, "closer: expected a pattern that .*; a section is over as well where")
            for text in ("(?:</c>)?", "{ws}(?:</c>)?", "(?:|</c>)")
        ),
        (ENVELOPED | {"name_keys": ("fn",), "arguments_keys": ("kw", "fn")}, "arguments_keys: expected keys .* 'fn'"),
        (ENVELOPED | {"arguments_keys": ("type",)}, "arguments_keys: expected keys .* found 'type'"),
        (ENVELOPED | {"name_keys": ('a"b',)}, "name_keys: expected keys without quotes, backslashes and control"),
        (ENVELOPED | {"name_keys": ("a\\b",)}, "name_keys: expected keys without quotes, backslashes and control"),
        (ENVELOPED | {"arguments_keys": ("a\n",)}, "arguments_keys: expected keys without quotes, backslashes and co"),
        (ENVELOPED | {"arguments_keys": ("",)}, "arguments_keys: expected keys without quotes, .*, found ''"),
        (
            {"body": "parameters", "parameter": "<{key}(?P<tail>)>", "value_end": "</p>", "tail": "</f>"},
            r"dialect own: forms\[0\], its patterns together: no valid pattern: redefinition of group name 'tail'",
        ),
    ],
)
def test_a_row_that_would_break_reading_is_refused_before_there_is_text(fields, message):
    with pytest.raises(DialectError, match=message):
        Parser(dialects=row(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"head": r"=> (?:#(?P<id>[0-9]{1,9}+) )?{name} (?=\{)"},
        {"head": r"=> {name}\(", "body": "arguments"},
        {"head": "=> {name}{object}", "body": "braces"},
        {"head": r"=> {name} \{x} (?=\{)"},
        {"loose_heads": ("-> (?P<missing>){name} ",), "begins": "=-"},
        {"loose_heads": ("-> (?P<nameless>): ",), "begins": "=-"},
        ENVELOPED,
        VALUES | {"loose_parameters": ("<(?P<key>[a-z]{1,9}+)/>",)},
        {"tags": ("<(?P<opens>)note>", "</(?P<closes>)note>")},
        {"results": ("<note>",)},
        {"lines": ("Note:",)},
        VALUES | {"parameter": "<a>", "loose_parameters": ("<b>",)},
        VALUES | {"writing": {"parameter": "<{key}>{value}</p>"}},
    ],
)
def test_what_a_row_may_say_is_not_refused(fields):
    assert not parse("Hi", dialects=row(**fields)).problems


MANY_WAYS = (
    # What must be there so often may be empty each time:
    "(?:a?){28}b", "(?:a?){9999}b", "(?:a?b?){20}c", "(?:(?:a|bc?)?){9}(?:[ab]?){12}c",
    "(?s:(?:.|\n){1,40})x", "(?i:(?:ab|AB){1,40})x", "(?i:(?:ab|(?-i:AB)){1,40})x", "(?:a|a){1,40}?b",
    "(x)?(?(1)(?:a|a){1,40}|b)", "(?:(?:a|a){1,40}b)++", "(?>(?:a|a){1,40}b)(?:c|d){10}", "x{64}(?:a|a){1,40}b",
    "(?:(?>a?)b|b){1,40}c", "(?:(?>a{0,2})b|b){1,40}c", "(?:(?>(?:a?){2})b|b){1,40}c", "(?:(?>ax|c?)b|b){1,40}c",
    "(?:(?>(?>a?))b|b){1,40}c", "(?:(?>(?>a?)(?>c?))b|b){1,40}d",
)  # fmt: skip
FEW_WAYS = (
    "(?:.|\n){1,40}x", "(?:ab|AB){1,40}x", "(?i:(?:b|(?-i:ac)|(?-i:AC)){1,40})", "(?:(?:ab)++|ab){1,40}c",
    "(?:ab|cd){10}e", "(?:a|a)?b", "(?:ab|cd){20}(?:ab|cd){20}(?:ab|cd){20}e", "(?:(?:a|a){0}(?:bc|de)){10}",
    "(?:(?>a)b|b){1,40}c", "(?:(?>a{1,2})b|b){1,40}c", "(?:(?>ax|cy)b|b){1,40}c", "(?:(?>(?>a))b|b){1,40}c",
    "(?:(?>a+)b|b){1,40}c", "(?:(?>a?c)b|b){1,40}c", "(?:a?){9}b", "(?:ab?){40}c", "(?:a?){9999}+b",
)  # fmt: skip


@pytest.mark.parametrize("pattern", [*MANY_WAYS, *FEW_WAYS])
def test_a_pattern_that_may_take_forever_is_told_from_one_that_does_not(pattern):
    assert has_many_ways(pattern) == (pattern in MANY_WAYS)


@pytest.mark.parametrize(
    ("pattern", "followed"),
    [
        ("[a-z]{1,30}+:", False), ("a{0,9}b{0,9}c{0,9}", False), ("a{0,9}b{0,9}c{0,10}", True), ("(?:ab|cd){9}", False),
        ("(?:ab|cd){10}", True), ("(?:ab|cd){7,13}", True), ("(?:a{0,999}+b)?", False), ("a*b*", True),
    ],
)  # fmt: skip
def test_no_text_is_made_for_a_pattern_that_has_few_ways_whatever_the_text(monkeypatch, pattern, followed):
    units = []
    monkeypatch.setitem(has_many_ways.__wrapped__.__globals__, "_search", lambda unit, kinds: units.append(unit))
    assert not has_many_ways.__wrapped__(pattern)
    assert bool(units) == followed


def test_as_many_spaces_as_there_may_be_stand_before_a_marker():
    own = row(line_start=True, indent=64)
    assert [len(parse(" " * spaces + "=> f {}", dialects=own).calls) for spaces in (64, 65)] == [1, 0]


def test_leads_are_looked_at_as_tags_are():
    for lead, told in (("(", "no valid pattern"), ("(?P<mine>a)", "expected no groups but opens, .*, found `mine`")):
        with pytest.raises(DialectError, match=f"dialect own: leads: {told}"):
            Parser(dialects=replace(row(), leads=(lead,)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"closer": "</kalls>"}, r"forms\[1\].closer: expected '</calls>', as dialect own: forms\[0\] has"),
        ({"separator": ";"}, r"forms\[1\].separator: expected ',', as .* has it with this opener, found ';'"),
        ({"loose_openers": ("<kalls>",)}, r"forms\[1\].loose_openers: expected \('<callz>',\), as .*\('<kalls>'"),
        ({"loose_openers": ()}, ""),
        ({"separator": "", "closer": "", "loose_openers": ()}, ""),
    ],
)
def test_what_forms_of_one_opener_say_of_their_section_is_the_same(fields, message):
    parts = {"body": "json", "begins": "<", "opener": "<calls>", "closer": "</calls>", "separator": ",", "alone": False}
    first = Form(head=r"{name} (?=\{)", loose_openers=("<callz>",), **parts)
    own = replace(row(), forms=(first, replace(first, **{"head": r"{name}=(?=\{)", **fields})))
    if not message:
        assert [call.name for call in parse('<callz>f {},g={}</calls>', dialects=own).calls] == ["f", "g"]
        return
    with pytest.raises(DialectError, match=message):
        Parser(dialects=own)


def test_a_repair_that_is_none_is_refused():
    variant = Form(head=r"=> {name} (?=\{)", body="json", begins="=", repairs=("missing-opener", "mended"))
    with pytest.raises(DialectError, match=r"dialect own: variants\[0\].repairs: expected codes .*, found 'mended'"):
        Parser(dialects=replace(row(), variants=(variant,)))


@pytest.mark.parametrize("field", ["title", "models"])
@pytest.mark.parametrize("text", ["one\ntwo", "one\ttwo", "one\x85two", "one\u2028two"])
def test_what_stands_in_the_line_of_a_table_is_one_line(field, text):
    with pytest.raises(DialectError, match=f"dialect own: {field}: expected one line of text, found 'one"):
        replace(row(), **{field: text})


def test_one_form_in_brackets_is_no_tuple_of_forms():
    (form,) = row().forms
    with pytest.raises(DialectError, match="dialect own: forms: expected a tuple, found Form"):
        replace(row(), forms=form)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": None}, "dialect None: name: expected a str, found NoneType"),
        ({"title": 1}, "dialect own: title: expected a str, found int"),
        ({"forms": ({"head": "x"},)}, "dialect own: forms: expected a tuple of Form, found dict in it"),
        ({"writing": {"call": "{arguments}"}}, r"dialect own: writing: expected a Writing \| None, found dict"),
    ],
)
def test_fields_of_another_type_are_told(fields, message):
    with pytest.raises(DialectError, match=message):
        replace(row(), **fields)


WHOLE = Form(head=r"=> {name} (?=\{)", body="json", begins="=")
MENDED = replace(WHOLE, repairs=("missing-closer",))
_REPAIRED = "dialect own: expected `repairs` in each of `variants` and in none of `forms`"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(
            ({"name": name}, "expected a lower-case letter, then more of them, digits and `_`")
            for name in ("", "Acme", "_a", "9a", "a-b", "aé", "a\n", "a" * 65)
        ),
        ({"variants": (WHOLE,)}, _REPAIRED),
        ({"variants": (MENDED, WHOLE)}, _REPAIRED),
        ({"forms": (WHOLE, MENDED)}, _REPAIRED),
        *(
            ({"writing": Writing(call="{arguments}", form=form)}, f"writing.form: expected .* of a form, found {form}")
            for form in (-1, 1)
        ),
    ],
)
def test_what_no_dialect_can_be_is_told(fields, message):
    with pytest.raises(DialectError, match=message):
        replace(row(), **fields)


@pytest.mark.parametrize("name", ["a", "a_9", "a" * 64])
def test_a_dialect_is_shown_by_its_name(name):
    assert repr(replace(row(), name=name)) == f"<Dialect {name}>"


def test_a_dialect_is_explicit_where_one_of_its_forms_is():
    both = WHOLE, replace(WHOLE, explicit=False)
    assert [replace(row(), forms=forms).explicit for forms in (both, both[:1], both[1:])] == [True, True, False]


def test_templates_are_texts():
    with pytest.raises(DialectError, match=r"writing\.call: expected a str, found NoneType"):
        Writing(call=None)
    with pytest.raises(DialectError, match=r"writing\.form: expected an int, found str"):
        Writing(call="{arguments}", form="0")
    with pytest.raises(DialectError, match=r"writing\.is_text: expected two words .* found \('yes',\)"):
        Writing(call="{arguments}", is_text=("yes",))


def test_a_closer_whose_end_may_be_missing_may_stand_once_too_often():
    own = row(opener="<c>", closer="</c>(?:!)?", begins="<=")
    for text in ("<c>=> f {}</c>!</c>!x", "<c>=> f {}</c></c>x"):
        laws.check_chunking(text, dialects=own)
        assert parse(text, dialects=own).text == "x"


def test_a_broken_marker_ends_alike_in_chunks_where_its_tail_ends_as_it_begins():
    own = row(tail="{ws}=/f{ws}=")
    for text in ('=> f {"a" 1}\n=/f=x', '=> f {"a" 1}\n=x'):
        laws.check_chunking(text, dialects=own)
        assert parse(text, dialects=own).problems[0].code == "unexpected-text"


def test_a_head_goes_before_one_that_may_begin_otherwise_whatever_stands_before_them():
    own = row(loose_heads=(r"!?=> {name} (?=\{)",), begins="=!")
    for text in ("! or => f {}", "! or !=> f {}", "=> f {}"):
        laws.check_chunking(text, dialects=own)
        repairs = [repair.code for repair in parse(text, dialects=own).calls[0].repairs]
        assert repairs == ["opener-spelling"] * text.count("!=")


def test_a_variant_may_be_a_section():
    variant = Form(opener="<", head=r"{name} (?=\{)", body="json", alone=False, closer=">", repairs=("neighbour-body",))
    own = replace(row(), variants=(variant,))
    text = 'a < b <f {"a": 1} g {}> c => h {}'
    laws.check_chunking(text, dialects=own)
    calls = parse(text, dialects=own).calls
    assert [(call.name, [repair.code for repair in call.repairs]) for call in calls] == [
        *(("f", ["neighbour-body"]), ("g", ["neighbour-body"]), ("h", [])),
    ]
    assert not parse('<f {"a": 1}>', dialects=own, tolerance="strict").calls


def test_a_variant_has_no_heads_without_a_name():
    """Nothing would be read there: a variant is looked for where its calls can be mended."""
    variant = replace(MENDED, begins="=-", loose_heads=("-> (?P<nameless>): ",))
    with pytest.raises(DialectError, match=r"variants\[0\].loose_heads: expected a group `nameless` only in"):
        Parser(dialects=replace(row(), variants=(variant,)))


def test_no_preview_tells_of_a_call_without_a_name():
    own = row(head="=> {name}{object}", loose_heads=(r"-> (?P<nameless>)(?:(?P<empty>/)|(?=\{))",), begins="=-")
    for text in ("-> /=> f{}", '-> {"a": 1}=> f{}'):
        laws.check_chunking(text, dialects=own)
        parsed = parse(text, dialects=own)
        assert [problem.code for problem in parsed.problems] == ["missing-name"]
        assert [event.name for event in parsed.events if isinstance(event, CallStart)] == ["f"]


def test_arguments_of_a_variant_may_have_a_delimiter_of_their_own():
    variant = Form(head=r"-> {name}\(", body="arguments", begins="-", quote="%", repairs=("neighbour-body",))
    own = replace(row(), variants=(variant,))
    assert parse("-> f(a=%x, y%, b='z')", dialects=own).calls[0].arguments == {"a": "x, y", "b": "z"}


TYPED_VALUES = """
%import .heads (_GAP, NAME)

marker: call
call: "<acme:" NAME ">" parameter* _GAP? "</acme>"
parameter: _GAP? "<" KEY ":" (TEXT | "json") ">" VALUE? "</arg>"

TEXT: "text"
KEY: /[a-z]{1,64}+/
VALUE.1: /(?:[^<]|<(?!\\/arg>[ \\t\\r\\n]{0,64}+(?:<[a-z]{1,64}+:(?:text|json)>|<\\/acme>)))++/
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", ""),
        ("TEXT", "WORD", r"terminal TEXT, as forms\[0\].parameter has a group `text`, found none"),
        ('(TEXT | "json")', '/text|json/', r"terminal TEXT, as forms\[0\].parameter has a group `text`, found none"),
        ("KEY", "WORD", r"terminal KEY, as forms\[0\].parameter has a group `key`, found none that is used"),
        ("VALUE", "RAW", r"terminal VALUE, as forms\[0\].parameter has a group `key`, found none that is used"),
        ("NAME", "NAMES", "name of what heads.lark defines, found 'NAMES'"),
    ],
)
def test_names_by_which_a_grammar_is_read_are_missed_with_its_file(tmp_path, old, new, message):
    form = {
        "head": "<acme:{name}>", "body": "parameters", "value_end": "</arg>", "tail": "{ws}</acme>",
        "parameter": "{ws}<(?P<key>[a-z]{1,64}+):(?:(?P<text>text)|(?P<json>json))>",
    }
    place = r"^dialect own: grammar: \S+/acme\.lark: expected .*"
    check_told(acme(tmp_path, TYPED_VALUES.replace(old, new), form, None), message and place + message)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"body": "json"}, r"a rule object, as forms\[0\].body is `json`, found none"),
        ({"body": "arguments", "head": r"<acme:{name}>\("}, r"a rule arguments, as forms\[0\].body is `arguments`"),
        ({"head": r"<acme:{name}#(?P<id>[0-9]{1,9}+)>(?=\{)"}, r"a terminal ID, as forms\[0\].head has a group `id`"),
    ],
)
def test_rules_by_which_a_grammar_is_read_are_missed_with_its_file(tmp_path, form, message):
    text = 'marker: call\ncall: "<acme:" NAME ">" root\n%import .heads (NAME)\n'
    root = "%import .json (root)\n" if "head" in form and "body" not in form else 'root: "{}"\n'
    place = r"^dialect own: grammar: \S+/acme\.lark: expected "
    check_told(acme(tmp_path, text + root, form, None), place + message)


PLAIN_VALUES = """
%import .heads (_GAP, NAME)

marker: call

call: "<acme:" NAME ">" parameter* _GAP? "</acme>"

parameter: _GAP? "<arg:" KEY ">" VALUE? "</arg>"

KEY: /[a-z]{1,64}+/
VALUE: /[^<]++/
"""


def test_values_that_hold_signs_of_their_tags_are_in_the_grammar_or_that_is_told(tmp_path):
    form = {
        "head": "<acme:{name}>", "body": "parameters", "parameter": "{ws}<arg:(?P<key>[a-z]{1,64}+)>",
        "value_end": "</arg>", "tail": "{ws}</acme>",
    }
    own = acme(tmp_path, PLAIN_VALUES, form, None)
    with pytest.raises(AssertionError, match=r"forms\[0\] and its grammar do not agree: .*a < b </arg>"):
        laws.check_dialect(own)


@pytest.mark.parametrize(("begun", "told"), [("", False), ("[a-z]{1,64}+>", True)])
def test_a_grammar_that_takes_what_a_parameter_begins_with_for_text_of_a_value_is_told(tmp_path, begun, told):
    form = {
        "head": "<acme:{name}>", "body": "parameters", "parameter": "{ws}<arg:(?P<key>[a-z]{1,64}+)>",
        "value_end": "</arg>", "tail": "{ws}</acme>",
    }
    behind = rf"[\ \t\r\n]{{0,64}}+(?: <arg:{begun} | <\/[\ \t]{{0,4}}+acme[\ \t]{{0,4}}+> )"
    value = rf"VALUE.1: /(?: [^<\ud800-\udfff]++ | <(?! \/[\ \t]{{0,4}}+arg[\ \t]{{0,4}}+> {behind} )(?! acme: ) )++/x"
    own = acme(tmp_path, PLAIN_VALUES.replace("VALUE: /[^<]++/", value), form, None)
    if not told:
        laws.check_dialect(own)
        return
    with pytest.raises(AssertionError, match=r"forms\[0\] and its grammar do not agree: .*</arg><arg:</arg>"):
        laws.check_dialect(own)


WHOLE_VALUE = """
%import .heads (_GAP, NAME)
%import .json (root, _WS)

marker: call
call: "<acme:" NAME ">" parameter? _GAP? "</acme>"
parameter: _GAP? "<js>" VALUE "</js>"
value: _WS? root _WS?

VALUE.1: /(?: [^<]++
    | <(?! \\/[\\ \\t]{0,4}+js[\\ \\t]{0,4}+>[\\ \\t\\r\\n]{0,64}+(?: <js> | <\\/[\\ \\t]{0,4}+acme[\\ \\t]{0,4}+> ) )
    )++/x
"""


def test_templates_are_tried_with_a_value_that_quotes_a_call(tmp_path, monkeypatch):
    form = {
        "head": "<acme:{name}>", "body": "parameters", "parameter": "{ws}<js>", "value_end": "</js>",
        "tail": "{ws}</acme>",
    }
    writing = Writing(call="<acme:{name}><js>{arguments}</js></acme>")
    own = replace(acme(tmp_path, WHOLE_VALUE, form, None), writing=writing)
    laws.check_dialect(own)
    monkeypatch.setattr(rendering, "in_whole", lambda value, form, behind: json.dumps(value))
    with pytest.raises(AssertionError, match=r"writing: in '.*&amp; <!\[CDATA\[.*': expected calls that the"):
        laws.check_dialect(own)


LISTED_IN_CALLS = 'marker: "<calls>" _GAP? call (_GAP? ";" _GAP? call)* _GAP? "</calls>"'


@pytest.mark.parametrize("behind", ["{ws}", "{ws}(?=<)"])
@pytest.mark.parametrize("separator", [";", ","])
def test_a_separator_that_row_and_grammar_say_otherwise_is_told(tmp_path, separator, behind):
    form = IN_SECTION | {"separator": f"{{ws}}{separator}{behind}"}
    own = acme(tmp_path, ACME.replace("marker: call", LISTED_IN_CALLS), form, IN_WRITING | {"separator": separator})
    if separator == ";":
        laws.check_dialect(own)
        return
    told = 'whose rule `marker` describes two calls as the templates write them, .* is none: expected ";" or "</calls>"'
    with pytest.raises(AssertionError, match=f"(?s)dialect own: writing: expected a grammar {told}"):
        laws.check_dialect(own)


BRACES = """
%import .heads (NAME)
%import .braces (root, QUOTED, KEY)

%override QUOTED: /[|][^|\\ud800-\\udfff]*+[|]/
marker: call

call: "@@" NAME root "@@"
"""
NO_BARS = "%override KEY: /[^|:,{}\\[\\]\\x00-\\x20\\ud800-\\udfff]{1,128}+/\nmarker: call"


@pytest.mark.parametrize("keys", [NO_BARS, "marker: call"])
def test_a_key_of_braces_that_may_hold_the_delimiter_is_told(tmp_path, keys):
    (tmp_path / "own.lark").write_text(BRACES.replace("marker: call", keys), "utf-8")
    own = row(str(tmp_path / "own.lark"), head=r"@@{name}(?=\{)", body="braces", begins="@", tail="@@", quote="|")
    if keys == NO_BARS:
        laws.check_dialect(own)
        return
    with pytest.raises(AssertionError, match=r"(?s)forms\[0\] and its grammar do not agree: .*\|a\|"):
        laws.check_dialect(own)


REFUSED = '%import .heads (NAME)\n%import .arguments (arguments)\nmarker: call\ncall: "@@" NAME "(" arguments ")" "@@"'


@pytest.mark.parametrize(("tail", "hint"), [(r"\){ws}@@", "; the `)` of `arguments` is read with them"), ("@!", "")])
def test_a_form_that_refuses_what_templates_and_grammar_say_is_told(tmp_path, tail, hint):
    """What the grammar expects is what was found."""
    (tmp_path / "own.lark").write_text(REFUSED, "utf-8")
    own = row(str(tmp_path / "own.lark"), head=r"@@{name}\(", body="arguments", begins="@", tail=tail)
    told = re.escape(f"found one that the grammar describes, and forms[0] refuses at '@@'{hint}")
    with pytest.raises(AssertionError, match=f"writing: in .*: expected calls .*, {told}"):
        laws.check_dialect(replace(own, writing=Writing(call="@@{name}({arguments})@@")))


TAGS = {
    "head": "<own {name}>",
    "begins": "<",
    "body": "parameters",
    "parameter": r"{ws}<(?P<key>[a-z]{1,16}+) (?:(?P<text>string)|(?P<json>number|boolean|null|array|object))>",
    "value_end": "</>",
    "tail": "</own>",
}
LINES = {"parameter": TAGS["parameter"].replace("{ws}<", r"\n"), "value_end": r"(?=\n)", "tail": r"\n\."}
LISTED = {"opener": "<", "alone": False, "begins": "<"}
OWN = {"call": "<own {name}>{arguments}</own>", "parameter": "<{key} {type}>{value}</>"}
ON_LINES = {"parameter": "\n{key} {type}>{value}"}


@pytest.mark.parametrize(
    ("form", "writing", "message"),
    [
        (TAGS, OWN, ""),
        ({}, {"call": "=> {name} {arguments}"}, ""),
        ({}, {"call": "=> {name}{arguments}"}, "cannot express this call of 'look': expected a template of calls that"),
        ({"head": r"=> {name} \{"}, {"call": "=> {name} {arguments}"}, "head that ends before .*, found .* takes '{'"),
        ({}, {"call": "-> {name} {arguments}"}, "begins with the form's head, found '-> look ' before '{"),
        ({"tail": ";"}, {"call": "=> {name} {arguments}."}, 'one that is not: expected the end .*, found "\\."'),
        ({"tail": ";"}, {"call": "=> {name} {arguments};", "closer": "!"}, "found the text '!' beside the calls"),
        ({}, {"call": "=> {name} {arguments}", "separator": " and "}, "found the text 'and' beside the calls"),
        (LISTED, {"call": "=> {name} {arguments}", "opener": "<", "separator": "+"}, "found 1 of 2 calls"),
        (
            {"head": r"=> #(?P<id>[0-9a-z]{1,9}+) {name} (?=\{)"},
            {"call": "=> #{id} {name} {arguments}", "id": "{id}"},
            "begins with the form's head, found '=> # look ' before '{}'",
        ),
        (TAGS, OWN | {"parameter": "<{key}>{value}</>"}, "that the form's `parameter`, '.*', reads, found '<.*>'"),
        (TAGS | {"parameter": TAGS["parameter"].replace("null|", "")}, OWN, "reads, found '<null null>'"),
        (TAGS, OWN | {"parameter": "<{key} {type}>{value}<>"}, "that ends a value as `value_end` says, found '<>'"),
        (TAGS, OWN | {"parameter": "<{key} {type}>{value}</>;"}, "directly behind what .*, which is '</>', found ';"),
        (TAGS | {"value_end": "(?=</>)"}, OWN, r"which is '' \(it only looks ahead\), found '</></own>"),
        (TAGS | LINES, ON_LINES | {"call": "<own {name}>{arguments}\n."}, ""),
        (TAGS | LINES, ON_LINES | {"call": "<own {name}>{arguments}."}, "ends a value as `value_end` says, found ''"),
    ],
)
def test_templates_that_the_forms_do_not_read_are_told(form, writing, message):
    own = replace(row(**form), writing=Writing(**writing))
    if not message:
        check_row_alone(own)
        return
    with pytest.raises(AssertionError, match=f"dialect own: writing: .*{message}"):
        laws.check_dialect(own)


def test_a_template_of_calls_has_a_place_for_arguments():
    with pytest.raises(DialectError, match=r"writing\.call: expected a place for {arguments}, found none in '<f>"):
        Writing(call="<f>{args}")


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        ({"call": "<{nam}>{arguments}"}, "call: expected {name}, .*, {nonce}, found {nam}"),
        ({"parameter": "<{name}>{value}"}, "parameter: expected {key}, {value}, .*, found {name}"),
        ({"id": " #{number}"}, "id: expected {id}, {quoted_id}, found {number}"),
        ({"default_id": "{id}"}, "default_id: expected {name}, .*, found {id}"),
        ({"nonce": "#{code}"}, "nonce: expected {nonce}, found {code}"),
    ],
)
def test_a_place_that_nothing_fills_in_is_refused(templates, message):
    with pytest.raises(DialectError, match=rf"writing\.{message}"):
        Writing(**{"call": "<f>{arguments}"} | templates)
