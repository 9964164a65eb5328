"""The interface of reading: options and what they refuse, limits, snapshots, detection, dialects of one's own."""

from __future__ import annotations

import ast
import copy
import importlib.metadata
import io
import json
import re
import shutil
import subprocess
import sys
import tokenize
import weakref
from enum import Enum
from importlib.metadata import EntryPoint
from itertools import product
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

import callmark
from callmark import (
    ArgumentsDelta,
    Call,
    CallmarkError,
    CallStart,
    Dialect,
    DialectError,
    Form,
    Limits,
    Malformed,
    Markup,
    Notice,
    Parser,
    SnapshotFeeder,
    Span,
    Text,
    ToolsError,
    UnknownDialectError,
    UsageError,
    Writing,
    detect,
    dialects,
    load_dialect,
    parse,
    protocol_prompt,
    render_call,
)
from callmark.dialects import plugins, select
from callmark.dialects.plugins import GROUP, entry_points
from callmark.dialects.prefixes import UnsupportedPatternError, literals, unfinished
from callmark.reading import lookahead as lookahead_patterns
from callmark.reading import scanner
from callmark.reading.closers import DEPTH, Endings
from callmark.reading.contexts import Contexts
from callmark.reading.diagnosis import message_parts
from callmark.reading.entries import stray
from callmark.reading.grammar import load
from callmark.reading.lookahead import lookahead
from callmark.reading.matching import HOLD_LIMIT, Pattern, Remembered
from callmark.reading.patterns import patterns
from callmark.reading.pieces import TOGETHER
from callmark.reading.row_checks import reach
from callmark.reading.schemas import Parameters
from callmark.testing import check_chunking, check_inverse, check_nothing_is_lost, check_previews
from callmark.writing.calls import WrittenCall, render_calls
from feeding import MISUSE, by_characters, every_single_cut, in_chunks, joined, whole
from test_cases import CASES

HERMES = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'


def kinds(events):
    return [type(found).__name__ for found in events]


def calls_of(events):
    return [found for found in events if isinstance(found, Call)]


def codes_of(events):
    return [found.code for found in events if isinstance(found, Malformed | Notice)]


# Options.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": "loose"}, 'tolerance: expected "strict", "lenient" or "salvage", found \'loose\''),
        ({"contexts": {"fences": "text"}}, "contexts: expected one of fence, code, quote, reasoning, found 'fences'"),
        ({"contexts": {"fence": "alone"}}, "contexts.fence: expected one of text, allow, sole, found 'alone'"),
        ({"contexts": {"code": "sole"}}, "contexts.code: expected one of text, allow, found 'sole'"),
        ({"contexts": "allow"}, "contexts: expected a mapping of fence, code, quote, reasoning, found 'allow'"),
        ({"contexts": []}, r"contexts: expected a mapping of fence, code, quote, reasoning, found \[\]"),
        ({"limits": {"calls": 3}}, "limits: expected Limits, found {'calls': 3}"),
        ({"limits": 0}, "limits: expected Limits, found 0"),
        ({"dialects": []}, "expected at least one dialect, found none"),
        ({"dialects": "hermse"}, r"found 'hermse'; did you mean 'hermes'\?"),
        ({"dialects": "Hermes"}, r"found 'Hermes'; did you mean 'hermes'\?"),
        ({"dialects": "qwen3_xml"}, r"found 'qwen3_xml'; did you mean 'qwen_xml'\?"),
        ({"dialects": ["call", "json"]}, "expected a registered dialect .*call.*, found 'json'$"),
        ({"tools": 5}, "tools: expected a sequence of tools, found int"),
        ({"tools": "f"}, "tools: expected a sequence of tools, found str"),
        ({"tools": [{"parameters": {}}]}, r"tools\[0\]: expected a name"),
        ({"tools": ["f", None]}, r"tools\[1\]: expected a name"),
    ],
)
def test_a_wrong_option_is_the_callers_mistake(options, message):
    for make in (Parser, SnapshotFeeder, lambda **chosen: parse("", **chosen)):
        with pytest.raises(UsageError, match=message):
            make(**options)


@pytest.mark.parametrize("make", [Parser, SnapshotFeeder, lambda **chosen: parse("", **chosen)])
def test_a_tolerance_of_another_type_is_too(make):
    with pytest.raises(MISUSE, match="None"):
        make(tolerance=None)
    with pytest.raises(MISUSE, match=r"bool|True or False"):
        make(starts_in_reasoning="yes")


def test_options_are_keyword_only_and_known():
    with pytest.raises(TypeError):
        Parser("call")  # type: ignore[misc]
    with pytest.raises(TypeError):
        Parser(fences="allow")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nesting": 0}, "limits.nesting: expected 1 to 256, found 0"),
        ({"nesting": 257}, "limits.nesting"),
        ({"arguments": 0}, "limits.arguments: expected at least 1, found 0"),
        ({"calls": -1}, "limits.calls: expected at least 0, found -1"),
        ({"digits": 0}, "limits.digits: expected 1 to 4300, found 0"),
        ({"digits": 4301}, "limits.digits"),
        ({"nesting": "8"}, "limits.nesting: expected an int, found '8'"),
        ({"calls": None}, "limits.calls: expected an int, found None"),
        ({"arguments": 1e6}, "limits.arguments: expected an int, found 1000000.0"),
    ],
)
def test_limits_have_bounds(fields, message):
    with pytest.raises(UsageError, match=message):
        Limits(**fields)


def test_mistakes_of_the_caller_have_one_base_and_two_kinds():
    assert issubclass(UsageError, CallmarkError)
    assert issubclass(DialectError, CallmarkError)
    assert issubclass(ToolsError, UsageError)
    assert issubclass(UnknownDialectError, UsageError)


@pytest.mark.parametrize(
    ("dialects", "message"),
    [
        (5, "expected names or Dialects, found 5"),
        ([5], r'expected a registered dialect \(call, .*\), "default" or a Dialect, found 5'),
        ([["call"]], r"expected a registered dialect \(call, .* or a Dialect, found \['call'\]"),
    ],
)
def test_dialects_are_names_or_dialects(dialects, message):
    with pytest.raises(UnknownDialectError, match=message):
        select(dialects)


@pytest.mark.parametrize("chunk", [b"x", None, 1, ["x"]])
def test_a_chunk_is_a_text(chunk):
    with pytest.raises(MISUSE, match=r"expected a str|str object expected"):
        Parser().feed(chunk)
    with pytest.raises(MISUSE, match=r"expected a str|str object expected"):
        SnapshotFeeder().feed(chunk)


def test_a_subclass_of_str_is_read_as_the_text_that_it_is():
    class Chunk(str):
        __slots__ = ()

    (found,) = Parser().feed(Chunk("plain"))
    assert type(found.text) is str
    assert calls_of(Parser().feed(Chunk("[CALL: f()]")))[0].name == "f"


def test_a_member_of_an_enumeration_is_read_as_its_text():
    """Its `str` is its name."""
    (text,) = Enum("Answer", {"CALL": "[CALL: f()]"}, type=str)
    for events in (Parser().feed(text), SnapshotFeeder().feed(text), parse(text).events):
        assert [call.raw for call in calls_of(events)] == ["[CALL: f()]"]
    assert detect(text) == ("call",)


@pytest.mark.parametrize("text", ["a\ud800", "[CALL: f(a=\ud800)]", '[CALL: f({"a": 1 /*\ud800*/})]'])
def test_half_of_a_surrogate_pair_is_written_as_an_escape(text):
    """UTF-8 has none, and that is what msgspec writes."""
    events = parse(text).events
    with pytest.raises(UnicodeEncodeError):
        msgspec.json.encode(events)
    assert b"\\ud800" in json.dumps([found.to_dict() for found in events]).encode()
    msgspec.json.encode([call.arguments for call in calls_of(events)])


def test_options_that_can_be_read_once_hold_for_a_snapshot_that_replaces_the_last():
    feeder = SnapshotFeeder(dialects=iter(["call"]), tools=(name for name in ["f"]))
    assert calls_of(feeder.feed("Hm. [CALL: f()]"))
    events = feeder.feed("Ah. [CALL: f()] [CALL: f(a=1)] [CALL: g()]")
    assert [call.name for call in calls_of(events)] == ["f", "g"]
    assert [found.code for found in events if isinstance(found, Notice)] == ["snapshot-replaced", "unknown-tool"]


def test_a_finished_parser_takes_nothing_more():
    for feeder in (Parser(), SnapshotFeeder()):
        feeder.finish()
        for misuse in (feeder.finish, lambda feeder=feeder: feeder.feed(""), lambda feeder=feeder: feeder.feed("x")):
            with pytest.raises(UsageError, match="finished"):
                misuse()


def test_a_finished_feeder_takes_no_replacement_either():
    feeder = SnapshotFeeder()
    feeder.feed("Let me see")
    feeder.finish()
    for text in ("Let me see: [CALL: f()]", "[CALL: f()]"):
        with pytest.raises(UsageError, match="feed: the feeder was finished"):
            feeder.feed(text)
    with pytest.raises(UsageError, match="finish: the feeder was finished"):
        feeder.finish()


def test_nothing_fed_gives_nothing():
    parser = Parser()
    assert list(parser.feed("")) == []
    assert list(parser.finish()) == []
    assert parser.steps == 0
    assert parse("").events == ()


def test_a_dialect_named_twice_is_listened_for_once():
    assert len(parse(HERMES, dialects=["hermes", "hermes", *select("hermes")]).calls) == 1


# Steps.


def test_prose_is_looked_at_once_and_a_held_bracket_twice():
    parser = Parser()
    parser.feed("Some prose.")
    assert parser.steps == 11
    parser.feed("[")
    parser.feed("1]")
    parser.finish()
    assert parser.steps == 15


# Sizes.


def test_two_hundred_thousand_chunks_of_one_character():
    text = ("So it goes. [CALL: f(a=1)] " * 8000)[:200_000]
    parser = Parser(limits=Limits(calls=10_000))
    count = sum(isinstance(found, Call) for char in text for found in parser.feed(char))
    parser.finish()
    assert count == text.count(")]")
    assert parser.steps < 8 * len(text)


def test_ten_megabytes_in_one_open_string_are_bounded():
    parser = Parser()
    events = list(parser.feed('[CALL: f({"a": "'))
    for _ in range(160):
        events += parser.feed("x" * 65_536)
        assert len(parser._buffer) <= 65_536
    events += parser.finish()
    assert codes_of(events) == ["arguments-too-long"]
    (broken,) = [found for found in events if isinstance(found, Malformed)]
    assert len(broken.raw) < 1_100_000
    assert sum(len(found.text) for found in events if isinstance(found, Text)) + len(broken.raw) == 160 * 65_536 + 16
    assert parser.steps < 2 * 160 * 65_536


def test_ten_megabytes_at_once_are_the_same():
    text = '[CALL: f({"a": "' + "x" * 10_000_000
    events = joined(whole(text))
    assert kinds(events) == ["CallStart", "ArgumentsDelta", "Malformed", "Text"]
    assert joined(in_chunks(text[start : start + 100_000] for start in range(0, len(text), 100_000))) == events


@pytest.mark.parametrize("opener", ["[", '{"a":', "("])
def test_a_hundred_thousand_nested_brackets_are_too_deep(opener):
    head = "[CALL: f(a=" if opener == "(" else "[CALL: f("
    events = whole(head + opener * 100_000)
    assert codes_of(events)[0] == "nesting-too-deep"
    assert calls_of(events) == []


def test_a_megabyte_of_brackets_is_text():
    text = "[" * 1_000_000
    assert joined(whole(text)) == [Text(Span(0, len(text)), text)]


@pytest.mark.parametrize("digits", [4300, 4301, 10_000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_has_at_most_4300_digits(digits, sign):
    number = sign + "7" * digits
    text = f'[CALL: f({{"a":{number}}})]'
    events = whole(text)
    assert joined(by_characters(text)) == joined(events)
    value = 10**4300 // 9 * 7
    assert [call.arguments["a"] for call in calls_of(events)] == [-value if sign else value] * (digits == 4300)
    assert codes_of(events) == ["bad-number"] * (digits > 4300)


def test_arguments_one_level_deeper_are_told_where_their_key_stands():
    text = '[CALL: f({"name": "f", "type": "object", "input": {"a": 1}})]'
    (call,) = parse(text, tools={"f": {"properties": {"a": {"type": "integer"}}}}).calls
    assert [(repair.code, text[repair.span.start : repair.span.end]) for repair in call.repairs] == [
        ("key-spelling", "input"),
    ]  # fmt: skip


def test_an_integer_in_arguments_one_level_deeper_has_no_more_digits():
    tools = {"f": {"properties": {"a": {"type": "integer"}}}}
    for text in ('[CALL: f({"input": {"a": 1234}})]', r'[CALL: f({"input": "{\"a\": 1234}"})]'):
        for digits in (3, 4):
            parsed = parse(text, tools=tools, limits=Limits(digits=digits))
            assert [call.arguments for call in parsed.calls] == [{"a": 1234}] * (digits == 4)
            assert [problem.code for problem in parsed.problems] == ["bad-number"] * (digits == 3)


def test_a_raw_value_of_so_many_digits_is_text():
    for digits, value in ((4096, 10**4096 // 9), (4097, "1" * 4097)):
        (call,) = parse(f"<function=f><parameter=a>{'1' * digits}</parameter></function>").calls
        assert call.arguments == {"a": value}


# Limits.


@pytest.mark.parametrize(
    ("head", "counted", "tail", "dialect"),
    [
        ("[CALL: f(", '{"a":"12345"}', ")]", "call"),
        ("[CALL: f(", "a=1,b='23',c=4)", "]", "call"),
        ("[TOOL_CALLS]f[ARGS]", '{"a":[1,2,3]}', "", "mistral"),
        ("<tool_call>", '{"name":"f","arguments":{"a":1}', "}</tool_call>", "hermes"),
        ("<function=f>", "<parameter=a>1</parameter></function>", "", "qwen_xml"),
        ("<|tool_call>call:f", '{a:<|"|>x<|"|>}', "<tool_call|>", "gemma4"),
    ],
)
def test_arguments_may_be_as_long_as_the_limit_in_every_chunking(head, counted, tail, dialect):
    """What counts is what must be read to know that the arguments are over: a brace, a parenthesis, or the next tag."""
    text = f"{head}{counted}{tail} and on"
    for limit, allowed in ((len(counted), True), (len(counted) + 1, True), (len(counted) - 1, False)):
        options = {"limits": Limits(arguments=limit), "dialects": dialect}
        expected = joined(whole(text, **options))
        assert len(calls_of(expected)) == allowed
        assert ("arguments-too-long" in codes_of(expected)) != allowed
        assert joined(by_characters(text, **options)) == expected
        for cut, events in every_single_cut(text, **options):
            assert joined(events) == expected, cut


def test_no_marker_begins_in_the_strings_of_arguments_over_the_limit():
    text = '[CALL: f({"a":"xxxx [CALL: g()] y"})] [CALL: h()]'
    for events in (whole(text, limits=Limits(arguments=8)), by_characters(text, limits=Limits(arguments=8))):
        assert [call.name for call in calls_of(events)] == ["h"]
        assert codes_of(events) == ["arguments-too-long"]


@pytest.mark.parametrize(
    ("body", "limit"),
    [('{"": "x--y "<function', 40), ('{a:"l"``]\n', 30)],
    ids=["of-what-comes", "of-what-it-took-before"],
)
def test_arguments_over_the_limit_end_where_their_reader_dies_in_every_chunking(body, limit):
    text = f"<function_call><tool>f</tool><args_json><![CDATA[{body}<function_call><tool>g</tool>"
    expected = joined(whole(text, limits=Limits(arguments=limit)))
    assert codes_of(expected) == ["arguments-too-long", "unclosed-marker"]
    for cut, events in every_single_cut(text, limits=Limits(arguments=limit)):
        assert joined(events) == expected, cut


def test_a_line_that_follows_arguments_over_the_limit_begins_one_in_every_chunking():
    text = "CALL: f(a=xxxxxxxx,'=2']\nCALL: f(b=1)"
    options = {"tools": ["f"], "tolerance": "salvage", "limits": Limits(arguments=8)}
    expected = joined(whole(text, **options))
    assert [call.arguments for call in calls_of(expected)] == [{"b": 1}]
    for cut, events in every_single_cut(text, **options):
        assert joined(events) == expected, cut


@pytest.mark.parametrize("tolerance", ["lenient", "strict"])
def test_places_in_a_long_value_do_not_count_the_line_break_behind_it(tolerance):
    value = '{"a":"x"' + " " * 5000 + '"b":1}'
    text = f"<function=f>\n<parameter=o>\n{value}\n</parameter>\n</function>"
    options = {"tolerance": tolerance, "tools": {"f": {"properties": {"o": {"type": "object"}}}}}
    expected = joined(whole(text, **options))
    assert joined(by_characters(text, **options)) == expected
    for call in calls_of(expected):
        assert [repair.span.start for repair in call.repairs] == [text.index('"b"')]


def test_the_call_over_the_limit_is_text_and_said_once():
    text = "[CALL: f()] " * 67
    events = whole(text)
    assert len(calls_of(events)) == 64
    assert codes_of(events) == ["too-many-calls"]
    assert parse(text).text.strip() == "[CALL: f()] [CALL: f()] [CALL: f()]"
    assert joined(by_characters(text)) == joined(events)


def test_no_calls_at_all_can_be_asked_for():
    assert codes_of(whole("[CALL: f()]", limits=Limits(calls=0))) == ["too-many-calls"]


def test_a_line_break_before_a_value_may_be_its_end_but_not_its_second_half():
    """What is trimmed as one line break is not taken apart, whether a text comes at once or not."""
    form = Form(
        head="=>{name}!", body="parameters", parameter=r"\[(?P<key>\w{1,32}+)\]", value_end=r"\n", tail="{ws}#",
        trim=True, begins="=",
    )  # fmt: skip
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    assert [call.arguments for call in parse("=>f![a]\n#", dialects=own).calls] == [{"a": ""}]
    assert codes_of(whole("=>f![a]\r\n#", dialects=own)) == ["unclosed-marker"]
    assert codes_of(by_characters("=>f![a]\r\n#", dialects=own)) == ["unclosed-marker"]


def test_the_limit_of_calls_is_told_once_where_a_marker_of_a_section_holds_more():
    form = Form(
        opener="<<", head=r"(?=\{)", body="envelope", tail="!", loose_tail=r"(?P<more>,)(?=\{)", separator=";",
        closer=">>", begins="<{",
    )  # fmt: skip
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    call = '{"name": "f", "arguments": {}}'
    text = f"<<{call},{call}!;{call}!>>"
    assert len(parse(text, dialects=own).calls) == 3
    assert codes_of(whole(text, dialects=own, limits=Limits(calls=1))) == ["too-many-calls"]
    check_chunking(text, dialects=own, limits=Limits(calls=1))


@pytest.mark.parametrize("dialect", dialects(), ids=lambda dialect: dialect.name)
def test_the_limit_of_calls_is_told_once_wherever_it_is_reached(dialect):
    text = render_calls([WrittenCall("f", {"a": n}) for n in range(4)], dialect) + "\n" + render_call("g", {}, dialect)
    for calls in (0, 1, 2, 3):
        options = {"dialects": dialect, "limits": Limits(calls=calls)}
        check_chunking(text, **options)
        parsed = parse(text, **options)
        assert len(parsed.calls) == calls
        assert [problem.code for problem in parsed.problems] == ["too-many-calls"]


def test_a_section_ends_where_the_limit_of_calls_is_reached():
    text = '[TOOL_CALLS] [{"name": "f"}, {"name": "g"}, {"name": "h"}] done'
    events = whole(text, limits=Limits(calls=2))
    assert [call.name for call in calls_of(events)] == ["f", "g"]
    assert parse(text, limits=Limits(calls=2)).text.endswith('{"name": "h"}] done')
    assert joined(by_characters(text, limits=Limits(calls=2))) == joined(events)


def test_nesting_can_be_set():
    text = '[CALL: f({"a":[[1]]})]'
    assert len(calls_of(whole(text, limits=Limits(nesting=3)))) == 1
    for events in (whole(text, limits=Limits(nesting=2)), by_characters(text, limits=Limits(nesting=2))):
        assert codes_of(events) == ["nesting-too-deep"]


@pytest.mark.parametrize(
    "text",
    [
        '[CALL: f({"a": [{"b": %s}]})]',
        "[CALL: f(a=%s)]",
        '<tool_call>{"name": "f", "arguments": {"a": {"b": [1.5, %s]}}}</tool_call>',
        "<tool_call>f<arg_key>a</arg_key><arg_value>%s</arg_value></tool_call>",
    ],
)
@pytest.mark.parametrize("sign", ["", "-"])
def test_digits_of_integers_can_be_set(text, sign):
    good, bad = text % f"{sign}999", text % f"{sign}1000"
    for read in (whole, by_characters):
        assert len(calls_of(read(good, limits=Limits(digits=3)))) == 1
        (refused,) = (found for found in read(bad, limits=Limits(digits=3)) if isinstance(found, Malformed))
        assert (refused.code, refused.raw) == ("bad-number", bad)
        assert "expected integers of at most 3 digits" in refused.message
    assert len(calls_of(whole('[CALL: f({"a": 1e30, "b": "12345", "c": true})]', limits=Limits(digits=1)))) == 1


@pytest.mark.parametrize("deep", [63, 64, 65, 100])
@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ('[CALL: f({"a":', "})]"),
        ('<tool_call>{"name":"f","arguments":{"a":', "}}</tool_call>"),
        ('<tool_call>{"arguments":{"a":', '},"name":"f"}</tool_call>'),
        ("<|tool_call>call:f{a:", "}<tool_call|>"),
        ('<function_call><tool>f</tool><args_json>{"a":', "}</args_json></function_call>"),
    ],
)
def test_nesting_ends_at_64_brackets_in_every_dialect(deep, head, tail):
    text = head + "[" * (deep - 1) + "]" * (deep - 1) + tail
    events = whole(text)
    assert len(calls_of(events)) == (deep <= 64)
    assert ("nesting-too-deep" in codes_of(events)) == (deep > 64)
    assert joined(by_characters(text)) == joined(events)


@pytest.mark.parametrize("dialect", [row for row in callmark.dialects() if row.writing], ids=attrgetter("name"))
@pytest.mark.parametrize("kind", ["list", "object"])
def test_nesting_that_is_set_ends_exactly_there_in_every_dialect(dialect, kind):
    """Between tags, what is not JSON within the limits is text, as any other text is."""
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": ["array", "object"]}}}}]
    for deep in (1, 2, 3, 4):
        value = {} if kind == "object" else []
        for _ in range(deep - 1):
            value = {"k": value} if kind == "object" else [value]
        text = callmark.render_call("f", {"a": value}, dialect, tools=tools)
        for read in (whole, by_characters):
            events = read(text, dialects=dialect, limits=Limits(nesting=3), tools=tools)
            found = [call.arguments["a"] for call in calls_of(events)]
            if deep >= 3 and dialect.writing.parameter:
                assert [json.loads(each) for each in found] == [value]
            else:
                assert found == ([value] if deep < 3 else [])
                assert ("nesting-too-deep" in codes_of(events)) == (deep >= 3)


@pytest.mark.parametrize(
    ("limit", "innermost", "call", "element"),
    [
        (3, "1", '{0}<tool_call>{0}<invoke name="f">{1}{0}</invoke>{0}</tool_call>', "{0}<k>{1}{0}</k>"),
        (
            *(4, ""),  # an empty object is one more
            '<cofl:tool_calls><cofl:tool_call id="0" name="f">{1}</cofl:tool_call></cofl:tool_calls>',
            '<cofl:value name="k" type="dict">{1}</cofl:value>',
        ),
    ],
)
def test_nesting_ends_exactly_there_in_elements(limit, innermost, call, element):
    for deep in (1, 2, 3, 4):
        value = innermost
        for _ in range(deep):
            value = element.format("]<]minimax[>[", value)
        text = call.format("]<]minimax[>[", value)
        for read in (whole, by_characters):
            events = read(text, limits=Limits(nesting=limit))
            assert len(calls_of(events)) == (deep <= 3), text
            assert ("nesting-too-deep" in codes_of(events)) == (deep > 3)


# Snapshots.


def test_a_snapshot_that_grows_is_a_chunk():
    feeder = SnapshotFeeder()
    events = []
    text = 'Hi [CALL: f({"a": "b"})] there'
    for end in range(len(text) + 1):
        events += feeder.feed(text[:end])
    events += feeder.finish()
    assert joined(events) == joined(whole(text))


def test_a_snapshot_that_replaces_text_says_so_and_reports_no_call_twice():
    feeder = SnapshotFeeder()
    assert [call.name for call in calls_of(feeder.feed("[CALL: f()] then [CALL: g()]"))] == ["f", "g"]
    notice, *rest = feeder.feed("Well: [CALL: f()] [CALL: h()] [CALL: f()]")
    assert isinstance(notice, Notice)
    assert (notice.code, notice.span) == ("snapshot-replaced", Span(0, 41))
    assert [call.name for call in calls_of(rest)] == ["h", "f"]  # a second call of f is another one
    assert [found for found in rest if isinstance(found, Markup)] == [Markup(Span(6, 17), "[CALL: f()]")]
    assert list(feeder.feed("Well: [CALL: f()] [CALL: h()] [CALL: f()]")) == []


@pytest.mark.parametrize(
    "respelled",
    [
        "[CALL: pay(to = Mia, x = 1)]",
        '[CALL: pay({"x": 1, "to": "Mia"})]',
        '<tool_call>{"name": "pay", "arguments": {"to": "M\\u0069a", "x": 1}}</tool_call>',
    ],
)
def test_a_call_that_a_replacement_only_spells_otherwise_is_the_same(respelled):
    feeder = SnapshotFeeder()
    assert len(calls_of(feeder.feed("Yes. [CALL: pay(to=Mia, x=1)]"))) == 1
    events = feeder.feed(f"Yes: {respelled} {respelled} [CALL: pay(to=Mia, x=2)]")
    assert [found.raw for found in events if isinstance(found, Markup)] == [respelled]
    assert [call.arguments for call in calls_of(events)] == [{"to": "Mia", "x": 1}, {"to": "Mia", "x": 2}]


def test_a_shorter_snapshot_replaces_too():
    feeder = SnapshotFeeder()
    feeder.feed("[CALL: f()]")
    notice, *rest = feeder.feed("[CALL: f")
    assert (notice.code, rest) == ("snapshot-replaced", [])
    assert kinds(feeder.feed("[CALL: f()]")) == ["CallStart", "ArgumentsDelta", "Markup"]
    assert calls_of(feeder.finish()) == []


def test_a_replacement_forgets_contexts_and_reasoning():
    feeder = SnapshotFeeder(tolerance="strict")
    feeder.feed("```\n<think>")
    assert [call.name for call in calls_of(feeder.feed("[CALL: f()]"))] == ["f"]


# Fences that hold nothing but the call.


def test_a_limit_that_was_reached_in_a_fence_which_is_text_is_told_of_where_it_is_reached_again():
    options = {
        "tolerance": "salvage", "tools": ["f", "g"], "contexts": {"fence": "sole"}, "limits": Limits(calls=1),
    }  # fmt: skip
    text = "```\n[CALL: f(), g()]\nand more\n```\n\n[CALL: f(), g()] and [CALL: g()]\n"
    for events in (whole(text, **options), by_characters(text, **options)):
        assert [call.name for call in calls_of(events)] == ["f"]
        assert codes_of(events) == ["marker-in-fence", "too-many-calls"]


def test_behind_a_call_over_the_limit_in_a_fence_text_goes_on():
    text = "[CALL: f()]\n```\n[CALL: g()]\n```\nand more"
    options = {"contexts": {"fence": "sole"}, "limits": Limits(calls=1)}
    assert parse(text, **options).text == text.removeprefix("[CALL: f()]")
    check_chunking(text, **options)


@pytest.mark.parametrize(
    ("text", "names", "notices"),
    [
        ("```\n[CALL: f()]\n```\n", ["f"], []),
        ("```\n[CALL: f()]\n```", ["f"], []),
        ("```\n[CALL: f()]", ["f"], []),
        ("```\n[CALL: f()]\n", ["f"], []),
        ("~~~~json\n\n  [CALL: f()]  \n\n~~~~~\nmore", ["f"], []),
        ("```\r\n[CALL: f()]\r\n```\r\nmore", ["f"], []),
        ("```\n[CALL: f()] or so\n```\n", [], ["marker-in-fence"]),
        ("```\nlike [CALL: f()]\n```\n", [], ["marker-in-fence"]),
        ("```\n[CALL: f()]\n[CALL: g()]\n```\n", [], ["marker-in-fence", "marker-in-fence"]),
        ("```\n[CALL: f()]\n``` not closed\n", [], ["marker-in-fence"]),
        ("```\n[CALL: f()]\n```\r", ["f"], []),
        ("```\n[CALL: f()]\n```\r\r", [], ["marker-in-fence"]),
        ("````\n[CALL: f()]\n```\n", [], ["marker-in-fence"]),
        ("```\n[CALL: f(=)]\n```\n", [], ["marker-in-fence"]),
        ('```\n[CALL: f({"a":\n', [], ["marker-in-fence"]),
        ("```\n[CALL: f()]\n```\n[CALL: g()]", ["f", "g"], []),
        ("```\n[CALL: f()] x\n```\n[CALL: g()]", ["g"], ["marker-in-fence"]),
        ("`[CALL: f()]`", [], ["marker-in-code"]),
    ],
)
def test_a_call_alone_in_its_fence(text, names, notices):
    options = {"contexts": {"fence": "sole"}}
    events = whole(text, **options)
    assert [call.name for call in calls_of(events)] == names
    assert codes_of(events) == notices
    assert [call.index for call in calls_of(events)] == list(range(len(names)))
    for cut, others in every_single_cut(text, **options):
        assert joined(others) == joined(events), cut
    assert joined(by_characters(text, **options)) == joined(events)


# Nonces.


@pytest.mark.parametrize(
    ("text", "names", "notices"),
    [
        ("[CALL#7f3a: f()]", ["f"], []),
        ("[CALL: f()]", [], ["unknown-nonce"]),
        ("[CALL#7F3A: f()]", [], ["unknown-nonce"]),
        ("[CALL#7f3: f()]", [], ["unknown-nonce"]),
        ("[CALL#7f3a1: f()]", [], ["unknown-nonce"]),
        ("[CALL# 7f3a: f()]", [], []),
        (HERMES, [], ["unknown-nonce"]),
        ("[CALL: f()] [CALL#7f3a: g()]", ["g"], ["unknown-nonce"]),
        ("```\n[CALL#7f3a: f()]\n```", [], ["marker-in-fence"]),
    ],
)
def test_with_a_nonce_only_markers_that_carry_it_are_read(text, names, notices):
    events = whole(text, nonce="7f3a")
    assert [call.name for call in calls_of(events)] == names
    assert codes_of(events) == notices
    assert joined(by_characters(text, nonce="7f3a")) == joined(events)


def test_without_a_nonce_a_marker_that_carries_one_is_text():
    assert codes_of(whole("[CALL#7f3a: f()]")) == ["unknown-nonce"]


@pytest.mark.parametrize(("nonce", "read"), [(None, [True, False]), ("7f3a", [False, True]), ("7f3b", [False, False])])
def test_an_opener_may_carry_the_nonce(nonce, read):
    opener = r"%%(?:#(?P<nonce>\w{4}))?:"
    form = Form(opener=opener, closer="%%", head=r"{name} (?=\{)", body="json", begins="%", alone=False)
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    for text, expected in zip(["%%:f {}%%", "%%#7f3a:f {}%%"], read, strict=True):
        parsed = parse(text, dialects=own, nonce=nonce)
        assert ([call.name for call in parsed.calls], parsed.text) == (["f"], "") if expected else ([], text)
        check_chunking(text, dialects=own, nonce=nonce)


# Tools.


TOOLS = {"get_weather": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}, "ping": {}}


@pytest.mark.parametrize(
    "tools",
    [
        TOOLS,
        [{"name": name, "parameters": schema} for name, schema in TOOLS.items()],
        [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in TOOLS.items()],
        [{"type": "function", "name": name, "parameters": schema} for name, schema in TOOLS.items()],
        [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()],
        {"tools": [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()]},
        [{"functionDeclarations": [{"name": name, "parameters": schema} for name, schema in TOOLS.items()]}],
        [{"functionDeclarations": [{"name": n, "parametersJsonSchema": schema} for n, schema in TOOLS.items()]}],
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": n, "inputSchema": s} for n, s in TOOLS.items()]}},
        {"functions": [{"name": n, "parameters": schema} for n, schema in TOOLS.items()], "function_call": "auto"},
        [{"type": "builtin_function", "function": {"name": n, "parameters": s}} for n, s in TOOLS.items()],
        {"tools": [{"toolSpec": {"name": n, "inputSchema": {"json": s}}} for n, s in TOOLS.items()]},
        {"toolConfig": {"tools": [{"toolSpec": {"name": n, "inputSchema": {"json": s}}} for n, s in TOOLS.items()]}},
        [{"toolSpec": {"name": name, "inputSchema": {"json": schema}}} for name, schema in TOOLS.items()],
        [SimpleNamespace(name=name, parameters=schema) for name, schema in TOOLS.items()],
        ({"name": name, "parameters": schema} for name, schema in TOOLS.items()),
    ],
)
def test_tools_in_any_usual_shape_type_and_bind_arguments(tools):
    parsed = parse("[CALL: get_weather(007, 007)] [CALL: ping()]", tools=tools)
    assert [call.arguments for call in parsed.calls] == [{"city": "007", "days": 7}, {}]
    assert parsed.problems == ()


@pytest.mark.parametrize("name", ["tools", "functions", "toolSpec", "toolConfig", "function", "result", "jsonrpc"])
def test_a_tool_may_be_named_like_what_holds_tools(name):
    """A list is no schema, nor has a schema a name of its own: with a schema in its place, such a key is a tool's."""
    for others in ({}, TOOLS):
        parsed = parse(f"[CALL: {name}(007, 007)]", tools={**others, name: TOOLS["get_weather"]})
        assert parsed.calls[0].arguments == {"city": "007", "days": 7}
        assert parsed.problems == ()


@pytest.mark.parametrize("key", ["tools", "functions", None])
@pytest.mark.parametrize("hosted", [{"type": "web_search"}, {"type": "mcp", "server_label": "x"}])
def test_a_tool_that_only_its_own_api_can_call_is_refused(key, hosted):
    listed = [{"type": "function", "function": {"name": "ping"}}, hosted]
    tools = {key: listed} if key else listed
    expected = f"tools[1]: expected a tool with a name and a schema, found one of type {hosted['type']!r}"
    for take in (lambda: parse("", tools=tools), lambda: protocol_prompt(tools)):
        with pytest.raises(ToolsError, match=re.escape(expected) + ".*: leave it out"):
            take()


@pytest.mark.parametrize("nameless", [{"type": "function"}, {"type": "object"}, {"type": "string"}, {"type": 7}, {}])
def test_a_tool_without_a_name_is_refused(nameless):
    with pytest.raises(ToolsError, match=r"tools\[1\]: expected a name, or an object that has one, found {"):
        parse("", tools=["ping", nameless])


def test_a_tool_that_was_not_given_is_still_a_call_and_a_notice():
    parsed = parse("[CALL: get_wether(city=Oslo)]", tools=TOOLS)
    assert parsed.calls[0].arguments == {"city": "Oslo"}
    (notice,) = parsed.problems
    assert (notice.code, notice.span) == ("unknown-tool", parsed.calls[0].span)
    assert notice.message == 'no tool "get_wether" was given; did it mean "get_weather"?'
    assert parse("[CALL: f()]", tools=[]).problems[0].message == 'no tool "f" was given'
    assert parse("[CALL: f()]").problems == ()


@pytest.mark.parametrize(
    ("schema", "word", "value"),
    [
        ({"type": "string"}, "1", "1"),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": "integer"}, "null", None),
        ({"type": ["integer", "string"]}, "null", "null"),
        ({"$ref": "#/$defs/days"}, "07", 7),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "7", "7"),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"const": 1}, "1", 1),
        ({"type": "boolean", "nullable": True}, "None", None),
        ({"type": "number"}, "1e400", "1e400"),
        ({"type": "boolean"}, "TRUE", True),
        ({}, "007", "007"),
        ({"$ref": "#/properties/x"}, "7", 7),  # a circle: nothing is declared
    ],
)
def test_a_schema_types_plain_words(schema, word, value):
    tools = {"f": {"$defs": {"days": {"type": "integer"}}, "properties": {"x": schema}}}
    for text in (f"[CALL: f(x={word})]", f"<function=f><parameter=x>{word}</parameter></function>"):
        (call,) = parse(text, tools=tools).calls
        assert call.arguments == {"x": value}
        assert type(call.arguments["x"]) is type(value)


# Whole texts.


def test_parsed_tells_content_from_reasoning_and_collects_problems():
    parsed = parse("a<think>b [CALL: x()]</think>c [CALL: f()] `[CALL: g()]` [CALL: h(")
    assert [call.name for call in parsed.calls] == ["f"]
    assert parsed.text == "ac  `[CALL: g()]` "
    assert parsed.reasoning == "b [CALL: x()]"
    assert [found.code for found in parsed.problems] == ["marker-in-reasoning", "marker-in-code", "unclosed-marker"]
    assert repr(parsed) == "Parsed(1 calls, 18 characters of text, 3 problems)"


@pytest.mark.skipif(not scanner.__file__.endswith(".py"), reason="a compiled parser cannot be copied")
@pytest.mark.parametrize("reader", [Parser, SnapshotFeeder])
@pytest.mark.parametrize("row", callmark.dialects(), ids=attrgetter("name"))
def test_a_copy_in_the_middle_of_a_text_goes_on_by_itself(reader, row):
    text = f"Hm. <think>x</think>{callmark.render_call('f', {'a': 'some words'}, row)}\nWell."
    events = joined(parse(text, dialects=row).events)
    for cut in range(1, len(text), 9):
        original = reader(dialects=row)
        before = list(original.feed(text[:cut]))
        other = copy.copy(original)
        for each in (other, original):
            rest = each.feed(text if reader is SnapshotFeeder else text[cut:])
            assert joined([*before, *rest, *each.finish()]) == events, cut


@pytest.mark.skipif(not scanner.__file__.endswith(".py"), reason="a compiled parser cannot be copied")
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_goes_on_where_a_call_may_stand_alone_and_its_original_went_on(copied):
    text = '[CALL: {"a": 1}] {"name": "g", "arguments": {"q": "[CALL:[ z()]"}}\n] [CALL: z()]'
    for tools in (["z"], ["g", "z"]):
        for cut in range(len(text)):
            original = Parser(tolerance="salvage", tools=tools)
            original.feed(text[:cut])
            other = copied(original)
            assert other._plan is original._plan  # what is known of the dialects is there once
            rest = [*original.feed(text[cut:]), *original.finish()]
            assert [*other.feed(text[cut:]), *other.finish()] == rest, cut


def test_what_was_parsed_is_equal_where_the_events_are_and_does_not_change():
    parsed, other = parse("a [CALL: f(x=1)]"), parse("a [CALL: f(x=1)]")
    assert parsed.calls == other.calls  # what was looked at is no part of it
    assert parsed == other == copy.deepcopy(parsed) != parse("a [CALL: f(x=2)]")
    assert weakref.ref(parsed)() is parsed
    with pytest.raises(AttributeError):
        parsed.events = ()


def test_events_cross_a_wire_and_come_back():
    events = whole("a [CALL: f(x=1)] `[CALL: f()]` [CALL: f(")
    encoded = msgspec.json.encode(events)
    union = Text | CallStart | ArgumentsDelta | Call | Malformed | Markup | Notice
    assert msgspec.json.decode(encoded, type=list[union]) == events
    assert events[1].to_dict() == {"type": "call-start", "index": 0, "name": "f", "dialect": "call"}


def test_events_cannot_be_changed():
    (found,) = whole("text")
    with pytest.raises(AttributeError):
        found.text = "other"


# Detection.


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("prose [1]", ()),
        ("[CALL: f()]", ("call",)),
        ("[f(a=1)]", ("pythonic",)),
        ("Action: f\nAction Input: {}", ("react",)),
        ('```tool_call\n{"name": "f", "arguments": {}}\n```', ("fenced",)),
        (f"{HERMES}\n{HERMES}\n[CALL: f()]", ("hermes", "call")),
        ("<think>" + HERMES, ("hermes",)),
        ("```\n> `[CALL: f()]`", ("call",)),
        ("[CALL: f(", ("call",)),
        ("[CALL: f( " + HERMES, ("hermes", "call")),
        ('<tool_call>{"name" "f"}</tool_call>\n' * 1001 + "[CALL: f()]", ("call", "hermes")),
        ("[CALL: f(] " * 2 + "[CALL: f()]" + HERMES, ("call", "hermes")),
    ],
)
def test_dialects_are_detected_wherever_their_markers_stand(text, names):
    assert detect(text) == names


# Dialects of one's own.


ARROW = r"""
name = "arrow"
title = "=> f {...}"
models = "mine"
source = "me"
grammar = "arrow.lark"

[[forms]]
head = '=> {name} (?=\{)'
body = "json"
begins = "="
"""

ARROW_GRAMMAR = """// => f {"a": 1}
%import .heads (NAME)
%import .json (root)
marker: call
call: "=> " NAME " " root
"""


@pytest.fixture
def arrow(tmp_path: Path) -> Dialect:
    (tmp_path / "arrow.toml").write_text(ARROW, encoding="utf-8")
    (tmp_path / "arrow.lark").write_text(ARROW_GRAMMAR, encoding="utf-8")
    return load_dialect(tmp_path / "arrow.toml")


def test_a_dialect_from_a_file_is_read_like_any_other(arrow, tmp_path):
    assert arrow.grammar == str((tmp_path / "arrow.lark").resolve())
    assert arrow == load_dialect(str(tmp_path / "arrow.toml"))
    text = 'So => f {"a": "=> g {}"} and [CALL: f()]'
    parsed = parse(text, dialects=["call", arrow])
    assert [(call.dialect, call.arguments) for call in parsed.calls] == [("arrow", {"a": "=> g {}"}), ("call", {})]
    assert load(arrow).accepts('=> f {"a": 1}', "marker")
    assert joined(by_characters(text, dialects=[arrow, "call"])) == joined(whole(text, dialects=[arrow, "call"]))
    assert parse(text).calls[0].dialect == "call"  # it is not registered


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "arrow"', 'name = "Arrow!"', "name 'Arrow!'"),
        ('name = "arrow"', "", "name"),
        ('title = "=> f {...}"', "title = 5", r"title"),
        ('models = "mine"', 'colour = "red"', "colour|models"),
        ('begins = "="', 'begins = ""', r"wrong\.toml: dialect arrow: forms\[0\]\.begins: expected the characters"),
        ('body = "json"', 'body = "yaml"', "yaml.*; `pydoc callmark.Dialect` and .* explain the fields"),
        ('body = "json"', 'body = "parameters"', "parameter: expected a pattern, as the body is"),
        ('title = "=> f {...}"', 'title = "=> f\\n{...}"', "dialect arrow: title: expected one line of text"),
        ("=> {name} ", "=> ", "head: expected the abbreviation .*, as it stands before the arguments, found neither"),
        ("=> {name} ", "=> ({name} ", r"forms\[0\].head: no valid pattern"),
        ("=> {name} ", "=> {name}{blank}", r"head: expected \{.*, found \{blank\}"),
        ('body = "json"', 'body = "json"\nrepairs = ["missing-closer"]', "expected `repairs` in each of `variants`"),
        ('begins = "="', 'begins = "="\nalone = false', "opener"),
        ("[[forms]]", "[[forms", "toml"),
        ("begins =", "results = []\nbegins =", r"field `results` .*; it is one of the dialect, above its tables;"),
        ("[[forms]]", 'opener = "<"\n[[forms]]', r"field `opener`; it is one of \[\[forms\]\] and \[writing\]; `pydoc"),
        ("[[forms]]", "[[shapes]]", "forms|shapes"),
    ],
)
def test_a_wrong_file_names_itself_and_the_field(tmp_path, old, new, message):
    path = tmp_path / "wrong.toml"
    path.write_text(ARROW.replace(old, new), encoding="utf-8")
    with pytest.raises(DialectError, match=message) as error:
        load_dialect(path)
    assert "wrong.toml" in str(error.value)


@pytest.mark.parametrize("grammar", ["", "none.lark", "heads.lark"])
def test_model_text_never_raises_where_a_dialect_has_no_sound_grammar(arrow, grammar):
    (broken,) = parse('=> f {"a": ]}', dialects=msgspec.structs.replace(arrow, grammar=grammar)).problems
    assert (broken.code, broken.message) == (
        "unexpected-text",
        'expected a value, found "]", 11 characters into the marker',
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@go f\na:\nend", r'expected ": ", found ":\n", 7 characters into the marker'),
        ("@go f\r\na: 1\r\nend", 'expected "\n" or "\nend", found "\\r", 5 characters into the marker'),
        ("@go f\nab=1\nend", 'expected ": ", found "=", 8 characters into the marker'),
        ("@go f\na: 1\nen", 'expected "\n" or "\nend", found the end of the text, 13 characters into the marker'),
    ],
)
def test_what_begins_like_what_is_expected_is_told_as_far_as_it_differs(tmp_path, text, said):
    path = tmp_path / "go.lark"
    path.write_text(GO, encoding="utf-8")
    form = Form(head=r"@go[ ]{name}(?=\r?\n)", body="parameters", begins="@", tail=r"\nend",
                parameter=r"\n(?P<key>[a-z]{1,9}+):[ ]", value_end=r"(?=\n)")  # fmt: skip
    row = Dialect(name="go", title="@go", models="", source="", forms=(form,), grammar=str(path))
    (problem,) = parse(text, dialects=row).problems
    assert problem.message == said


GO = r"""
%import .heads (NAME)
marker: call
call: "@go " NAME parameter* "\nend"
parameter: "\n" KEY ": " VALUE?
KEY: /[a-z]{1,9}+/
VALUE.1: /(?: [^\n\ud800-\udfff]++ | [\n](?![a-z]{1,9}+:[ ]|end|@go[ ]) )++/x
"""


def test_a_grammar_that_is_not_there_is_told_when_the_file_is_read(tmp_path):
    path = tmp_path / "arrow.toml"
    path.write_text(ARROW, encoding="utf-8")
    with pytest.raises(DialectError, match=r"arrow\.toml: grammar: expected a file beside this one.*arrow\.lark"):
        load_dialect(path)


def test_a_mark_of_the_byte_order_is_no_part_of_a_file(arrow, tmp_path):
    for file in ("arrow.toml", "arrow.lark"):
        (tmp_path / file).write_text((tmp_path / file).read_text(encoding="utf-8"), encoding="utf-8-sig")
    own = load_dialect(tmp_path / "arrow.toml")
    assert own == arrow
    assert load(own).accepts('=> f {"a": 1}', "marker")


def test_a_file_that_is_no_utf8_is_wrong(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes(ARROW.encode().replace(b"mine", b"\xe9"))
    with pytest.raises(DialectError, match=r"latin\.toml"):
        load_dialect(path)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_dialect(tmp_path / "none.toml")


@given(cuts=st.lists(st.integers(0, 60)))
def test_a_form_that_begins_a_text_is_read_nowhere_else(cuts):
    lead = Form(head=r"<rest>{name}\(", body="arguments", tail="</rest>", text_start=True)
    row = Dialect(name="lead", title="lead", models="none", source="none", forms=(lead,))
    marker = "<rest>f(a=1)</rest>"
    tagged = '<tool_call>{"name": "g", "arguments": {}}</tool_call>'
    options = {"dialects": [row, "hermes"]}
    for text, names in [
        (marker, ["f"]), (marker + tagged, ["f", "g"]), (marker + marker, ["f"]), (f"\n{marker}", []),
        (tagged + marker, ["g"]), (f"<rest>f[{marker}", []), ("<res", []), ("", []),
    ]:  # fmt: skip
        assert [call.name for call in parse(text, **options).calls] == names
        check_chunking(text, cuts, **options)
        check_nothing_is_lost(text, **options)


def test_a_form_that_begins_a_text_is_not_read_behind_a_salvaged_one_of_an_unknown_tool():
    lead = Form(head=r"<rest>{name}\(", body="arguments", tail="</rest>", text_start=True)
    bare = Form(head=r"<rest>{name}\(", body="arguments", salvage=True, repairs=("missing-closer",))
    row = Dialect(name="lead", title="lead", models="none", source="none", forms=(lead,), variants=(bare,))
    options = {"dialects": [row], "tools": ["g"], "tolerance": "salvage"}
    text = "see <rest>f(a=1)</rest>"
    assert parse(text, **options).text == text
    check_chunking(text, [5, 9], **options)


def test_a_marker_of_ones_own_is_read_where_one_begins_that_does_not_count_there():
    head = Form(head=r"\[{name}\(", body="arguments", begins="[", tail=r"\]")
    mine = Dialect(name="mine", title="mine", models="none", source="none", forms=(head,))
    text = "I did. [look(a=1)] ok"
    for tolerance in ("strict", "lenient", "salvage"):  # salvage knows it where a line begins, and only there
        options = {"dialects": ["default", mine], "tools": ["look"], "tolerance": tolerance}
        assert [call.name for call in parse(text, **options).calls] == ["look"]
        check_chunking(text, **options)
    object_in_list = Form(head=r"\[(?=\{)", body="envelope", begins="[", tail=r"\]")
    other = Dialect(name="other", title="other", models="none", source="none", forms=(object_in_list,))
    text = 'I did. [{"name": "f", "arguments": {}}] ok'
    for before in ([], ["listed"]):
        assert [call.name for call in parse(text, dialects=[*before, other]).calls] == ["f"]
        check_chunking(text, dialects=[*before, other])


@pytest.mark.parametrize("value_end", ["</a>", "{ws}</a>"])
def test_a_call_in_a_value_is_seen_where_its_head_begins_otherwise_than_its_opener(value_end):
    form = Form(
        head="@@{name}>", body="parameters", parameter="<a>{key}</a>", value_end=value_end, tail="{ws};",
        opener="<<<(?=@)", closer=">>>", alone=False, begins="<",
    )  # fmt: skip
    row = Dialect(name="own", title="own", models="none", source="none", forms=(form,))
    for text in ("<<<@@f><a>y</a>\r@@f><a>a</a>", "<<<@@f><a>y</a>v @@g><a>a</a>v</a>;>>>"):
        assert parse(text, dialects=row).problems[0].code == "nested-marker"
        check_chunking(text, dialects=row)


@pytest.mark.parametrize("broken", ["(", "^x"])
def test_patterns_that_break_values_are_checked(broken):
    form = Form(
        head="<f {name}>", body="parameters", parameter="<p {key}>", value_end="</p>", tail="</f>", broken_by=(broken,)
    )  # fmt: skip
    row = Dialect(name="own", title="own", models="none", source="none", forms=(form,))
    with pytest.raises(DialectError, match="broken_by"):
        parse("x", dialects=row)


@pytest.mark.parametrize("text", [
    '[CALL: f(b="</parameter><</arg_value>a"": (</arg_value>\'(', '<tool_call>{"name": "f", "arguments": {"[CALL: f(',
    "<tool_call><function=f><parameter=a>C:\\", "<tool_call>f\n<arg_key>a</arg_key><arg_value>: ([CALL: f(&",
])  # fmt: skip
def test_over_the_limit_the_text_may_end_in_what_only_more_text_could_tell(text):
    for size in range(12):
        options = {"limits": Limits(arguments=size + 1)}
        check_chunking(text, **options)
        check_nothing_is_lost(text, **options)


def test_a_dialect_has_forms():
    with pytest.raises(DialectError, match="expected at least one form, found none"):
        Dialect(name="none", title="", models="", source="", forms=())


def test_more_beginnings_than_are_remembered_are_told_apart():
    text = "".join(f"[f{number}(a=1)] <tool_c{number} " for number in range(1200))
    options = {"dialects": ["pythonic", "hermes", "call"], "limits": Limits(calls=2000)}
    expected = parse(text, **options)
    assert [call.name for call in expected.calls] == [f"f{number}" for number in range(1200)]
    assert joined(by_characters(text, **options)) == joined(expected.events)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"nonce": "a b"}, "nonce: expected 1 to 64 ASCII letters"),
        ({"nonce": ""}, "nonce: expected 1 to 64 ASCII letters"),
        ({"tolerance": "kind"}, "tolerance: expected"),
    ],
)
def test_options_that_are_none_are_told(wrong, told):
    with pytest.raises(UsageError, match=told):
        Parser(**wrong)


_LONG = "x" * 5000


@pytest.mark.parametrize(
    "wrong",
    [
        *({"tolerance": _LONG}, {"nonce": _LONG}, {"dialects": _LONG}, {"contexts": {_LONG: "allow"}}),
        *({"contexts": {"fence": _LONG}}, {"tools": [{"type": _LONG}]}),
    ],
)
def test_of_a_long_option_a_message_shows_the_beginning(wrong):
    with pytest.raises(UsageError, match=r"found .*'xxxxx") as caught:
        Parser(**wrong)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("tolerance", ["strict", "lenient", "salvage"])
def test_what_is_listened_for_by_default_can_stand_beside_others(tolerance):
    form = Form(head=r"=>{name} (?=\{)", body="json", begins="=")
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    tagged = '<tool_call>{"name": "i", "arguments": {}}</tool_call>'
    text = f'Two: [CALL: f()] =>g {{"a": 1}}\n{{"name": "h", "parameters": {{}}}}\n{tagged}'

    def names(dialects):
        return [call.name for call in parse(text, dialects=dialects, tolerance=tolerance).calls]

    assert names("default") == names(["default"]) == names(None) == ["f", "i"]
    assert names(["default", own]) == names([own, "default"]) == ["f", "g", "i"]
    assert names(["llama", "default"]) == names(["default", "llama"]) == ["f", "h", "i"]
    assert names("-hermes") == names(["default", "-hermes"]) == names(["-hermes", "default"]) == ["f"]
    assert names([own, "default", "-hermes", "-glm"]) == ["f", "g"]
    assert names(["-hermes", "default", "hermes"]) == names(["-hermes", "hermes", "call"]) == ["f", "i"]
    with pytest.raises(UnknownDialectError, match=r"found '-herms'; did you mean 'hermes'\?"):
        names(["default", "-herms"])


def test_what_is_listened_for_by_default_is_no_dialect_to_write():
    with pytest.raises(UsageError, match="expected a single one, found 'default', which stands for many"):
        render_call("f", {}, "default")
    with pytest.raises(UsageError, match=r"expected a registered dialect .* found '-hermes'"):
        render_call("f", {}, "-hermes")


@pytest.mark.parametrize("text", [None, b"[CALL: f()]", 3, ["[CALL: f()]"]])
def test_only_a_str_can_be_parsed(text):
    with pytest.raises(UsageError, match="parse: expected a str, found " + type(text).__name__):
        parse(text)
    with pytest.raises(UsageError, match="detect: expected a str, found " + type(text).__name__):
        detect(text)


def test_a_pattern_of_an_unusual_kind_is_looked_for_in_small_chunks_too():
    form = Form(head=r"=>(?<=>) {name} (?=\{)", body="json", begins="=")
    odd = Dialect(name="odd", title="", models="", source="", forms=(form,))
    for length in (1, 2, 3, 5, 100):
        parser = Parser(dialects=odd)
        text = 'a = b, c => 1; => look {"at": 1} = =>'
        events = [event for at in range(0, len(text), length) for event in parser.feed(text[at : at + length])]
        events += parser.finish()
        assert [event.name for event in events if isinstance(event, Call)] == ["look"]
        assert "".join(event.text for event in events if isinstance(event, Text)) == "a = b, c => 1;  = =>"


@pytest.mark.parametrize("broken", ["", " 2"])
def test_what_opens_a_section_may_close_it(broken):
    form = Form(opener="%%", closer="{ws}%%", head=r"{name} (?=\{)", body="json", begins="%", alone=False)
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    text = f'%%f {{"a": 1{broken}}} %% and %%g {{}} %%'
    read = parse(text, dialects=own)
    assert ([call.name for call in read.calls], read.text) == (["g"] if broken else ["f", "g"], " and ")
    check_chunking(text, dialects=own)


def test_what_ends_a_broken_marker_may_begin_the_next():
    form = Form(head=r"%%% {name} (?=\{)", body="json", tail="{ws}%%%", begins="%")
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    for between, text in (("", " "), ("%%% and ", " and ")):
        source = f'%%% f {{"a" 1}} {between}%%% g {{}} %%%'
        read = parse(source, dialects=own)
        assert ([call.name for call in read.calls], read.text) == (["g"], text)
        check_chunking(source, dialects=own)


def test_a_head_that_is_cut_is_waited_for_where_a_shorter_one_matches():
    long = Form(head=r"<tool> {name}(?=\{)", body="json")
    short = Form(head=r"<(?P<name>to)", body="json")
    own = Dialect(name="own", title="", models="", source="", forms=(long, short))
    for text, names in (("<tool> f{}", ["f"]), ("<to{}", ["to"]), ("<tool", []), ("<tool>", []), ("<to", [])):
        check_chunking(text, dialects=own)
        assert [call.name for call in parse(text, dialects=own).calls] == names
    own = replace(own, forms=(long,), variants=(replace(short, salvage=True, repairs=("opener-spelling",)),))
    for text, names in (("<tool> f{}", ["f"]), ("<to{}", []), ("<tool", []), ("<to", [])):
        check_chunking(text, dialects=own, tolerance="salvage", tools={"f": {}})
        found = parse(text, dialects=own, tolerance="salvage", tools={"f": {}}).calls
        assert [call.name for call in found] == names


def test_places_that_look_like_a_marker_in_more_ways_than_are_remembered():
    parser = Parser()
    text = "".join(f"{'word ' * 60}<t{number:06}" for number in range(600))
    seen = "".join(event.text for at in range(0, len(text), 308) for event in parser.feed(text[at : at + 308]))
    (found,) = parser.feed("[CALL: f()]")[-1:]
    assert isinstance(found, Call)
    assert seen == text


def test_the_contexts_of_text_that_was_not_looked_at_before_a_marker():
    looked, passed = Contexts(), Contexts()
    for text in ("`a", "> b\n", "\n```\n", "c ~~~"):
        looked.look(text)
        passed.pass_text(text)
        looked.pass_marker("<x>")
        passed.pass_marker("<x>")
        assert looked.look("") == passed.look("")


def test_long_values_of_pairs_are_read_as_short_ones_are():
    code = 'print("a)]")\n' * 200
    text = f'[CALL: f(a={json.dumps(code)}, b=[{", ".join(["1.5"] * 600)}], c=2)]'
    check_chunking(text, range(0, len(text), 97))
    check_previews(text)
    (call,) = parse(text, tolerance="strict").calls
    assert call.arguments == {"a": code, "b": [1.5] * 600, "c": 2}


def test_a_mark_of_the_byte_order_changes_nothing_but_positions():
    seen = set()
    for case in (case for case in CASES.values() if len(case["input"]) < 200 and case["input"][:1] != "\ufeff"):
        bare, marked = parse(case["input"], **case["options"]), parse("\ufeff" + case["input"], **case["options"])
        assert [(call.name, call.raw, call.arguments) for call in marked.calls] == [
            (call.name, call.raw, call.arguments) for call in bare.calls
        ]
        assert [(it.span.start - 1, it.code) for it in marked.problems] == [
            (it.span.start, it.code) for it in bare.problems
        ]
        seen.update(it.code for it in bare.problems)
    assert "marker-in-quote" in seen


def test_lines_that_end_with_cr_are_those_that_end_with_lf():
    lines = ["> ", "```", "~~~", "   ```", "    ```", "- ```", "`a", "", "  ", "x"]
    for count in (1, 2, 3):
        for chosen in product(lines, repeat=count):
            text = "\n".join([*chosen, "[CALL: f()]"])
            wanted = [problem.code for problem in parse(text).problems]
            for end in ("\r", "\r\n"):
                assert [problem.code for problem in parse(text.replace("\n", end)).problems] == wanted, text
                if count == 2:
                    check_chunking(text.replace("\n", end))


def test_tildes_before_a_marker_on_its_line_are_a_fence():
    for text in ("~~~ [CALL: f()]", "a\n~~~~ b ` [CALL: f()]\n"):
        parsed = parse(text)
        assert [(problem.code, parsed.text) for problem in parsed.problems] == [("marker-in-fence", text)]
        check_chunking(text)


def test_a_value_that_is_the_whole_of_the_arguments_need_not_be_encoded():
    form = Form(
        head=r"<own>{name}</own>", body="parameters", parameter="<json>", value_end="</json>", tail="{ws}</end>",
        encoding="raw",
    )
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    for text in ('<own>f</own><json> {"a": "&amp;<![CDATA["} </json></end>', "<own>f</own><json>{}</json></end>"):
        check_chunking(text, dialects=own)
        (call,) = parse(text, dialects=own).calls
        assert call.arguments == ({"a": "&amp;<![CDATA["} if "&" in text else {})


# Plug-ins.


@pytest.fixture
def installed(monkeypatch, arrow):
    """Install plug-ins: the value of each is what its entry point names."""

    def install(**given):
        module = SimpleNamespace(**given)
        monkeypatch.setitem(sys.modules, "callmark_plugin_of_a_test", module)
        found = [EntryPoint(name, f"callmark_plugin_of_a_test:{name}", GROUP) for name in sorted(given)]
        monkeypatch.setattr(plugins, "entry_points", lambda: found)
        dialects.cache_clear()

    yield install
    dialects.cache_clear()


def test_a_plugin_adds_dialects_behind_ours(installed, arrow):
    other = msgspec.structs.replace(arrow, name="other")
    installed(one=arrow, two=[other])
    assert [dialect.name for dialect in dialects()][-2:] == ["arrow", "other"]
    assert parse("=> f {}", dialects="arrow").calls[0].name == "f"
    assert parse("=> f {}", dialects="other").calls[0].dialect == "other"
    assert detect("=> f {}") == ("arrow",)


def test_a_plugin_may_not_take_a_name(installed, arrow):
    installed(one=msgspec.structs.replace(arrow, name="call"))
    with pytest.raises(DialectError, match="entry point one: the dialect name 'call' is taken"):
        dialects()


def test_a_plugin_gives_dialects_and_nothing_else(installed):
    installed(one=["call"])
    with pytest.raises(DialectError, match="entry point one: expected a Dialect, found str"):
        dialects()


def test_a_plugin_gives_one_dialect_or_several(installed):
    installed(one=5)
    with pytest.raises(DialectError, match="entry point one: expected a Dialect, found int"):
        dialects()


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import nothere", "ModuleNotFoundError: No module named 'nothere'"),
        ("def f(:", "SyntaxError: "),
        ("raise ValueError('boom')", "ValueError: boom"),
        ("import sys; sys.exit(1)", "SystemExit: 1"),
        ("OTHER = 5", "AttributeError: module 'broken_plugin_of_a_test' has no attribute 'ACME'"),
        ("ACME = (1 // 0 for _ in [0])", "ZeroDivisionError: "),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_named(monkeypatch, tmp_path, code, told):
    (tmp_path / "broken_plugin_of_a_test.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_plugin_of_a_test", raising=False)
    entry = EntryPoint("acme", "broken_plugin_of_a_test:ACME", GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda: [entry])
    dialects.cache_clear()
    expected = "entry point acme: expected broken_plugin_of_a_test:ACME to be importable, found " + told
    with pytest.raises(DialectError, match=re.escape(expected)):
        dialects()


NAMED = f"[{GROUP}]\nacme = acme:ACME\n"
OTHERS = "[console_scripts]\nacme = acme:main\n"


@pytest.mark.parametrize("text", [NAMED, OTHERS, "", "[callmark.dialects.more]\nacme = acme:ACME\n"])
@pytest.mark.parametrize("folder", ["acme-1.0.dist-info", "Acme.EGG-INFO", "acme-1.0.egg/EGG-INFO", "acme.egg-info"])
@pytest.mark.parametrize("zipped", [False, True])
def test_plugins_are_found_where_importlib_finds_them(monkeypatch, tmp_path, zipped, folder, text):
    place = tmp_path / folder.rpartition("/")[0]
    written = tmp_path / folder / "entry_points.txt"
    written.parent.mkdir(parents=True)
    written.write_text(text)
    (written.parent / "PKG-INFO").write_text("Name: acme\nVersion: 1.0\n")
    if zipped:
        place = Path(shutil.make_archive(str(tmp_path / "acme"), "zip", place)).rename(tmp_path / "acme-1.0.egg.zip")
    importlib.metadata.metadata("pytest")  # some versions of Python import what it needs only here
    monkeypatch.setattr(sys, "path", [str(tmp_path / "nowhere"), str(place)])
    expected = [*importlib.metadata.entry_points(group=GROUP)]
    assert bool(expected) == (text == NAMED and not (zipped and "egg/" in folder))
    assert [*entry_points()] == expected


def test_a_finder_of_ones_own_is_asked_for_plugins(monkeypatch):
    class Found(importlib.metadata.Distribution):
        def read_text(self, filename):
            return {"METADATA": "Name: acme\nVersion: 1.0\n", "entry_points.txt": NAMED}.get(filename)

        def locate_file(self, path):
            raise FileNotFoundError(path)

    finder = SimpleNamespace(find_distributions=lambda context: [Found()])
    monkeypatch.setattr(sys, "path", [])
    assert [*entry_points()] == []
    monkeypatch.setattr(sys, "meta_path", [finder])
    assert [entry.name for entry in entry_points()] == ["acme"]


def test_nothing_that_looks_for_plugins_is_imported_where_there_are_none():
    code = "import sys, callmark; callmark.parse('[CALL: f()]'); print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


def test_the_registered_dialects_are_the_same_each_time():
    assert dialects() is dialects()
    assert dialects()[0].name == "call"
    assert all(isinstance(dialect, Dialect) and dialect.title and dialect.source for dialect in dialects())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\\srv\data\x", r"\\srv\data\x"),
        (r"\\srv\data\new", r"\\srv\data\new"),
        (r"\\srv\da\"ta\x", r'\\srv\da"ta\x'),
        (r"C:\a\\b\x", r"C:\a\b\x"),
        (r"C:\Users\"x", r'C:\Users"x'),
    ],
)
def test_paths_keep_their_backslashes(written, meant):
    body = f'{{"p": "{written}"}}'
    for text in (f"[CALL: f({body})]", f'<tool_call>{{"name": "f", "arguments": {body}}}</tool_call>'):
        for events in (parse(text).events, by_characters(text)):
            (call,) = [event for event in events if isinstance(event, Call)]
            assert call.arguments == {"p": meant}
            assert {repair.code for repair in call.repairs} == {"literal-backslash"}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[CALL: f({"a": 1, "b": {"x": 1, "y": 2, "x": 3}})]', "x"),
        ("[CALL: f(a=1, b=2, a=3)]", "a"),
        ('<tool_call>{"name": "f", "arguments": {"": 1, "": 2}}</tool_call>', ""),
    ],
)
def test_a_key_that_is_there_twice_is_named(text, key):
    for events in (whole(text), by_characters(text)):
        (broken,) = [event for event in events if isinstance(event, Malformed)]
        message = f"expected each key once, found {json.dumps(key)} twice"
        assert (broken.code, broken.message) == ("duplicate-key", message)


@pytest.mark.parametrize(
    "text",
    [
        r"[CALL: f({\"a\": \"x \\u00e \"}</tool_call>)]",
        r"[CALL: f({\"a\": \"x \\ud83d\\ud00 y",
        r"[CALL: f({\"a\": \"x \\u00e9 \\ud: z\"})]",
    ],
)
def test_what_is_wrong_in_an_escaped_object_has_one_place_in_every_chunking(text):
    for size in (1, 2, 3, 5):
        assert joined(in_chunks([text[at : at + size] for at in range(0, len(text), size)])) == joined(whole(text))


# What tolerant reading needs seldom.


def test_the_limit_of_calls_holds_inside_of_a_wrapper_too():
    text = '<tool_call>{"name": "f"}{"name": "g"}{"name": "h"}</tool_call> [CALL: i()]'
    for calls in (1, 2):
        parsed = callmark.parse(text, limits=callmark.Limits(calls=calls))
        assert [call.name for call in parsed.calls] == ["f", "g"][:calls]
        (told,) = parsed.problems
        assert (told.code, told.span.start) == ("too-many-calls", parsed.calls[-1].span.end)
        assert parsed.text == text[told.span.start :]


def test_quotes_inside_are_mended_where_no_pattern_tells_what_may_follow():
    row = callmark.Dialect(
        name="behind",
        title="",
        models="",
        source="",
        forms=(callmark.Form(head=r"<x>{ws}(?=\{)", body="envelope", tail=r"{ws}<(?<=<)/x>"),),
    )
    said = 'a "b" c "d" e "f" g'
    (call,) = callmark.parse(f'<x>{{"name": "f", "arguments": {{"t": "{said}"}}}}</x>', dialects=row).calls
    assert call.arguments == {"t": said}
    assert [repair.code for repair in call.repairs] == ["inner-quotes"] * 6


BESIDE_QUOTES = [
    *"\"\"\"''', :=;.{}[]()é<",
    *("word", "12", "\\n", '\\\\"', "x" * 40, "true", ", ", '": ', "</tool_call>", "=1", "你"),
]
IN_QUOTES = [
    ('<tool_call>{"name": "f", "arguments": {"t": "a "b" c "d" ', '"}}</tool_call>'),
    ("[CALL: f({'t': 'don't a 'b' c ", "'})]"),
    ('[CALL: f(t="a "b" c "d" ', '", n=1)]'),
    ('[CALL: f({"t": ["a "b" c "d" ', '", 2]})]'),
]


@example('a "b" c "aa" a",a', ('<tool_call>{"name": "f", "arguments": {"t": "', '"}}</tool_call>'))
@given(st.lists(st.sampled_from(BESIDE_QUOTES), max_size=25).map("".join), st.sampled_from(IN_QUOTES))
def test_a_string_full_of_quotes_is_read_alike_in_every_chunking(said, around):
    text = said.join(around)
    assert joined(by_characters(text)) == joined(whole(text))


def test_a_pattern_with_flags_of_other_kinds_is_left_to_others():
    assert literals("(") == [""]
    with pytest.raises(UnsupportedPatternError):
        unfinished("(?s:a.b)")


def test_keys_of_an_envelope_are_those_of_its_form():
    own = Dialect(
        name="own",
        title="<own>...</own>",
        models="none",
        source="none",
        forms=(
            Form(
                head=r"<own>{ws}(?=\{)",
                body="envelope",
                tail="{ws}</own>",
                name_keys=("tool",),
                arguments_keys=("with",),
            ),
        ),
    )
    for members in ('"name":"x",', '"arguments":3,', '"name":"x","arguments":{"b":2},', ""):
        for text in (
            f'<own>{{{members}"tool":"f","with":{{"a":1}}}}</own>',
            f'<own>{{"tool":"f",{members}"with":{{"a":1}}}}</own>',
        ):
            for tolerance in ("strict", "lenient"):
                check_chunking(text, dialects=own, tolerance=tolerance)
                check_previews(text, dialects=own, tolerance=tolerance)
                (call,) = parse(text, dialects=own, tolerance=tolerance).calls
                assert (call.name, call.arguments) == ("f", {"a": 1})


_TAG = r"{ws}\[arg (?P<key>[^\[\]]{1,99}+)\]"
_FLAG = '{ws}-(?P<key>[a-z]{1,9}+) "'
_LINE = "(?P<key>[a-z]{1,9}+): "
OWN_FORMS = [  # head, what opens and what ends a value, or the body's language, and tail; a call with `a` and no more
    (r"\[tool {name}\]", (_TAG, r"\[/arg\]"), r"{ws}\[/tool\]", "[tool f][arg a]x[/arg]y[/arg] [/tool]", "x[/arg]y"),
    (r"\$\({name} ", (_FLAG, '"'), r"{ws}\)", '$(f -a "x" y")', 'x" y'),
    (r"\{\{{name}!", ("{ws}@(?P<key>[a-z]{1,9}+)=", ";"), r"\}\}", "{{f!@a=x; y;}}", "x; y"),
    (r"<o {name}>\n", (_LINE, r"\n"), "</o>", "<o f>\na: x\ny\n</o>", "x\ny"),
    (r"<o {name}>\n", (_LINE, r"[;\n]"), "</o>", "<o f>\na: x;y;</o>", "x;y"),
    ("@do {name}(?=;)", (";(?P<key>[a-z]{1,9}+)=", "(?=;)"), ";end@", "@do f;a=x;y;;end@", "x;y;"),
    (r"@do {name}(?=\n)", (rf"\n{_LINE}", r"(?=\r?\n)"), r"\r?\n@end", "@do f\na: x\r\ny\n\n@end", "x\r\ny\n"),
    (r"<o {name}>(?=\{)", "json", "</o>", '<o f>{"a": 1}</o>', 1),
    (r"<o {name}>(?=\{)", "json", r"\n</o>", '<o f>{"a": 1}\n</o>', 1),
    (r"<o>(?=\{)", "envelope", "</o>", '<o>{"name": "f", "arguments": {"a": 1}}</o>', 1),
    (r"<o {name}\(", "arguments", r"\n>", "<o f(a=1)\n>", 1),
    (r"【调用 {name}】(?=\{)", "json", "{ws}【完】", '【调用 f】{"a": "【完】"} 【完】', "【完】"),
]


@pytest.mark.parametrize(("head", "body", "tail", "text", "value"), OWN_FORMS, ids=range(len(OWN_FORMS)))
def test_tags_of_ones_own_look_like_anything_and_blanks_stand_only_where_they_may(head, body, tail, text, value):
    fields = {"body": body}
    if not isinstance(body, str):
        fields = {"body": "parameters", "parameter": body[0], "value_end": body[1]}
    form = Form(head=head, tail=tail, begins=text[0], **fields)
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    (call,) = parse(text, dialects=own, tolerance="strict").calls
    assert (call.name, call.arguments, call.raw) == ("f", {"a": value}, text)
    places = [match.start() for match in re.finditer(r"\b|(?=[\[\](){}<>\n;])", text)]
    for blanks in (" ", "\n", " \n", " " * 70, "n"):
        for place in places:
            broken = text[:place] + blanks + text[place:]
            for tolerance in ("strict", "lenient"):
                check_chunking(broken, range(len(broken)), dialects=own, tolerance=tolerance)
                check_chunking(broken, [place + 1], dialects=own, tolerance=tolerance)
                check_nothing_is_lost(broken, dialects=own, tolerance=tolerance)


@pytest.mark.parametrize(("text", "calls"), [("@do f;a=x@@y;end@", ["f"]), ("@do f;a=x;y@@z;end@ @do g;end@", ["g"])])
def test_what_breaks_a_value_may_be_a_look_ahead(text, calls):
    form = Form(
        head="@do {name};", body="parameters", parameter="(?P<key>[a-z]{1,9}+)=", value_end=";", tail="end@",
        nested="@do {name};", broken_by=("(?=@@)",), begins="@",
    )  # fmt: skip
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    check_chunking(text, dialects=own)
    assert [call.name for call in parse(text, dialects=own).calls] == calls


ONE_END = {"parameter": "(?P<key>[a-z]{1,9}+)=", "value_end": ";;", "unclosed": ";", "tail": "end"}
LATE_KEY = {"parameter": r"(?P<key>[^=\n]{1,32}+)=", "value_end": ";", "tail": "end"}
TAIL_LIKE_KEY = {"parameter": "<{key}>", "value_end": "</p>", "tail": "</end>"}


@pytest.mark.parametrize(
    ("fields", "text", "arguments"),
    [
        (ONE_END, "@do f;a=x;;b=y;;end", {"a": "x", "b": "y"}),
        (LATE_KEY, "@do f;a=x;b;end=y;end", {"a": "x", "b;end": "y"}),
        (LATE_KEY, "@do f;a=x;b;end\nx", {"a": "x;b"}),
        (TAIL_LIKE_KEY, "@do f;<a>x</p></end></p></end>", {"a": "x"}),
    ],
)
def test_what_may_become_another_end_of_a_value_is_waited_for(fields, text, arguments):
    form = Form(head="@do {name};", body="parameters", begins="@", **fields)
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    for tolerance in ("strict", "lenient"):
        assert parse(text, dialects=own, tolerance=tolerance).calls[0].arguments == arguments
        check_chunking(text, dialects=own, tolerance=tolerance)


@pytest.mark.parametrize("quote", ['"', "'", "~", "`", "'''", '"""', "<q>"])
def test_a_delimiter_of_ones_own_is_of_any_length_and_knows_no_escapes(quote):
    form = Form(head=r"!!{name}(?=\{)", body="braces", tail="!!", begins="!", quote=quote)
    writing = Writing(call="!!{name}{arguments}!!")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    for value in ("", "x", "}!!", "\\n \\", "a\nb", "C:\\new", "<[", "\u2028", quote[:-1] + "x"):
        check_inverse("f", {"a": value, value: [value, 1, {"b": None}]}, own, refusals=False)
        text = render_call("f", {"a": value, "b": 1}, own)
        for tolerance in ("strict", "lenient"):
            check_chunking(text, dialects=own, tolerance=tolerance)
            check_previews(text, dialects=own, tolerance=tolerance)
            assert parse(text, dialects=own, tolerance=tolerance).calls[0].repairs == ()
    for value in (quote, f"a{quote}b", f"a{quote[-1]}" if len(set(quote)) == 1 else quote):
        with pytest.raises(UsageError, match="which ends them"):
            render_call("f", {"a": value}, own)


def test_a_delimiter_is_something():
    form = Form(head="!!{name}", body="braces", quote="")
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    with pytest.raises(DialectError, match=r"own: forms\[0\]\.quote: expected the delimiter of strings, found none"):
        Parser(dialects=own)


@pytest.mark.parametrize("long", ["x" * 5000, "x" * 40_000])
def test_long_values_that_their_tags_call_json(long):
    value = [long, {"b": [1, 2]}]
    text = render_call("f", {"a": value, "b": long}, "dsml")
    assert parse(text).calls[0].arguments == {"a": value, "b": long}
    assert [call.arguments for call in calls_in_pieces(text)] == [{"a": value, "b": long}]
    (call,) = parse(f'[CALL: f(a="{long}", b=1, c="{long}")]').calls
    assert call.arguments == {"a": long, "b": 1, "c": long}
    assert call.repairs == ()


def test_a_value_is_held_up_to_a_length_of_its_own():
    text = render_call("f", {"a": "x" * 3000, "b": [1] * 600}, "qwen_xml")
    assert [call.arguments for call in calls_in_pieces(text)] == [{"a": "x" * 3000, "b": [1] * 600}]


@pytest.mark.parametrize("types", [["array", "string"], ["array", "integer"]])
def test_a_value_that_is_longer_is_json_only_where_nothing_but_containers_is_declared(types):
    value = f"[{' ' * 5000}1]"
    text = f'<invoke name="f"><parameter name="a">{value}</parameter></invoke>'
    for declared, meant in ((types, value), ("array", [1])):
        tools = {"f": {"properties": {"a": {"type": declared}}}}
        assert [call.arguments for call in parse(text, dialects="invoke", tools=tools).calls] == [{"a": meant}]
        check_chunking(text, range(0, len(text), 97), dialects="invoke", tools=tools)


@pytest.mark.parametrize("dialect", [dialect.name for dialect in dialects()])
def test_no_call_has_half_of_the_code_that_joins_strings(dialect):
    text = render_call("f", {"q": "Oslo", "n": 2}, dialect)
    code = 'log("a: " + a + ", b: " + b)'
    joined = text.replace('"Oslo"', f'"{code}"') if '"Oslo"' in text else text.replace("Oslo", code)
    for call in parse(joined, dialects=dialect).calls:
        assert call.arguments["q"] == code
    assert bool(parse(joined, dialects=dialect).calls) == ('"Oslo"' not in text)
    check_chunking(joined, dialects=dialect)


_LISTED = '{"tags": ["a", "b"]}'
_IN_JSON = [
    row.name
    for row in dialects()
    if _LISTED in render_call("f", {"tags": ["a", "b"]}, row.name)
]


@pytest.mark.parametrize("dialect", _IN_JSON)
def test_no_call_lacks_the_members_behind_closers_that_were_written_too_early(dialect):
    text = render_call("f", {"tags": ["a", "b"]}, dialect)
    (call,) = parse(text, dialects=dialect).calls
    end = text.index(_LISTED) + len(_LISTED)
    early = text[: end - 2] + text[end : call.span.end] + ', "filters": {}}' + text[end:]
    assert parse(early, dialects=dialect).calls == ()
    check_chunking(early, dialects=dialect)


@pytest.mark.parametrize("dialect", _IN_JSON)
@pytest.mark.parametrize("glued", [".", " (note)", "px"])
def test_no_value_takes_in_the_next_one_behind_words_or_signs(dialect, glued):
    text = render_call("f", {"q": "Oslo", "r": "x"}, dialect).replace('"Oslo"', f'"Oslo"{glued}')
    assert parse(text, dialects=dialect).calls == ()
    check_chunking(text, dialects=dialect)


def test_most_dialects_have_arguments_in_json():
    assert len(_IN_JSON) > 12


@pytest.mark.parametrize("dialect", [dialect.name for dialect in dialects()])
def test_no_value_is_made_of_two_strings_and_a_missing_comma_is_supplied(dialect):
    text = render_call("f", {"q": "Oslo", "n": 2}, dialect)
    if '"Oslo"' not in text:
        assert parse(text, dialects=dialect).calls[0].arguments["q"] == "Oslo"  # its strings have no such quotes
        return
    for between in ("or", "-", "||", "if x else"):
        two = text.replace('"Oslo"', f'"Oslo" {between} "Rome"')
        assert not parse(two, dialects=dialect).calls
        assert "unexpected-text" in {problem.code for problem in parse(two, dialects=dialect).problems}
        check_chunking(two, dialects=dialect)
    lacking = text.replace('"Oslo",', '"Oslo"').replace('"n"', "n")
    check_chunking(lacking, dialects=dialect)
    (call,) = parse(lacking, dialects=dialect).calls
    assert call.arguments == {"q": "Oslo", "n": 2}
    assert "missing-comma" in {repair.code for repair in call.repairs}


@pytest.mark.parametrize(("begin", "end"), [("/*", "*/"), ("//", "\n"), ("#", "\n")])
def test_a_comment_may_be_so_long_and_no_longer(begin, end):
    for size in (990, 1000):
        text = f'[CALL: f({{"a": 1{begin}{"x" * size}{end}}})]'
        assert [repair.code for call in parse(text).calls for repair in call.repairs] == ["comment"] * (size < 1000)
        check_chunking(text, cuts=[20, 500, len(text) - 5])


def calls_in_pieces(text):
    return [event for event in in_chunks(text[at : at + 7] for at in range(0, len(text), 7)) if isinstance(event, Call)]


def test_repairs_are_told_in_the_order_of_their_places():
    values = "<parameter=a>\n{'x': 1}\n<parameter=b>\n1\n</parameter>\n"
    text = f"<tool_call>\n<function=f>\n{values}</function>\n</tool_call>"
    types = {"a": {"type": "object"}, "b": {"type": "integer"}}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": types}}]
    (call,) = parse(text, tools=tools).calls
    assert call.arguments == {"a": {"x": 1}, "b": 1}
    # That the value's closer is missing is known before it is read as the object that it was meant to be.
    assert [repair.code for repair in call.repairs] == ["single-quotes", "missing-closer"]
    check_chunking(text, tools=tools)


@pytest.mark.parametrize("sign", ['\\"', "&quot;"])
def test_an_escaped_body_may_be_longer_than_what_is_decoded_at_first(sign):
    text = '<tool_call>{"name": "f", "arguments": {"a": "' + "y" * 9000 + '"}}</tool_call>'
    text = text.replace('"', sign)
    (call,) = parse(text).calls
    assert call.arguments == {"a": "y" * 9000}
    assert {repair.code for repair in call.repairs} == {"escaped-entities" if sign[0] == "&" else "string-arguments"}


def test_a_good_call_is_read_behind_hundreds_whose_values_die_at_once():
    text = "<function_call><tool>f</tool><args_json>]" * 300 + "</args_json></function_call>[CALL: g()]"
    parsed = parse(text)
    assert [call.name for call in parsed.calls] == ["g"]
    assert len(parsed.problems) == 300
    assert joined(parsed.events) == joined(by_characters(text))


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        ('Hm. <tool_call>```json\n{"name": "f"}\n```</tool_call>', [("fenced-body", 4, 23)]),
        ('Hm. [TOOL_CALLS] {"name": "f"}.', [("missing-opener", 17, 17), ("missing-closer", 30, 30)]),
    ],
)
def test_what_a_variant_repairs_is_told_at_its_place(text, repairs):
    """An opener is missing before the call, another repair is of the head."""
    (call,) = callmark.parse(text).calls
    assert [(repair.code, repair.span.start, repair.span.end) for repair in call.repairs] == repairs


@pytest.mark.parametrize(("tag", "size"), [("<pre>", 4096), ("<code>", 256), ("<code class='x'>", 256)])
def test_an_open_tag_of_code_reaches_as_far_as_the_readme_says(tag, size):
    for characters, calls in ((size - 1, 0), (size, 1)):
        text = tag + "x" * characters + "[CALL: f()]"
        check_chunking(text)
        assert len(callmark.parse(text).calls) == calls


def test_a_run_of_backticks_is_one_where_pieces_are_read_together():
    for before in range(TOGETHER - 3, TOGETHER + 1):
        text = "x" * before + "``[CALL: f()]` `` [CALL: g()]"
        check_chunking(text)
        assert [call.name for call in callmark.parse(text).calls] == ["g"]


@pytest.mark.parametrize("dialect", select(None), ids=lambda dialect: dialect.name)
def test_every_marker_is_seen_in_a_string_that_may_have_swallowed_it(dialect):
    """A string with stray quotes ends before a marker, of whatever dialect it is: the rows say how one begins."""
    around = lookahead(select("call")[0].forms[0])
    text = render_call("f", {"a": 1}, dialect)
    assert around.opener(f"x {text}", 0, len(text)) == (2, True)
    assert around.opener(f"x {text[:2]}", 0, 4) == (2, False)


@pytest.mark.parametrize("quoted", ["[CALL: f({'a': 'it's\n", "<tool_call>{'name': 'it's\n", "%% f {'a': 'it's\n"])
def test_a_marker_of_a_row_of_ones_own_is_seen_there_too(quoted):
    tags = Form(head=r"<acme_call>{ws}(?=\{)", body="envelope", tail="{ws}</acme_call>")
    signs = Form(head=r"%%{ws}{name}{ws}(?=\{)", body="json", tail="{ws}%%", begins="%")
    forms = {"tags": tags, "signs": signs}
    own = [Dialect(name=name, title="", models="", source="", forms=(form,)) for name, form in forms.items()]
    for marker in ('<acme_call>{"name": "good", "arguments": {}}</acme_call>', "%% good {} %%"):
        options = {"dialects": ["default", *own]}
        check_chunking(quoted + marker, **options)
        parsed = callmark.parse(quoted + marker, **options)
        assert [call.name for call in parsed.calls] == ["good"]
        assert [type(problem) for problem in parsed.problems] == [Malformed]


@pytest.mark.again
@pytest.mark.parametrize("dialect", dialects(), ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("reasoning", ["text", "allow"])
def test_blanks_before_a_thought_that_the_prompt_has_begun_are_part_of_their_line(dialect, reasoning):
    """Where a chunk ends in them, too: they indent a marker or a fence, or make a quote too far in to be one."""
    options = {"dialects": ["call", dialect], "starts_in_reasoning": True, "contexts": {"reasoning": reasoning}}
    marker = render_call("f", {"a": 1}, dialect)
    for blanks in (" ", "    ", "\t", "\n  ", "\r\n "):
        for text in (marker, f"```\n{marker}\n```\n", f"> {marker}"):
            check_chunking(blanks + text, **options)


@pytest.mark.parametrize("head", ["<function=f>", "<tool_call><function=f>", "x ‹｜DSML｜invoke name=\"f\">"])
@pytest.mark.parametrize("cut", ['"', '\n"', '" ', '"\n', '"x', '"{'])
@pytest.mark.parametrize("tolerance", ["strict", "lenient"])
def test_a_head_that_the_end_of_the_text_cuts_is_the_same_in_chunks(head, cut, tolerance):
    """Where a shorter head was taken before: `parse` sees all of it at once, and a stream has read on."""
    check_chunking(head + cut, tolerance=tolerance)


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("text", ['>>> f(to="Al" x)\nHm.\n>>> g(a="z")', '>>> f(a="x" y)\n>>> g(a="z")'])
@pytest.mark.parametrize("tolerance", ["strict", "lenient"])
def test_a_form_sees_its_own_beginning_in_a_string_however_it_is_asked_for(explicit, text, tolerance):
    form = Form(head=r">>>{ws}{name}\(", body="arguments", begins=">", line_start=True, explicit=explicit)
    row = Dialect(name="prompt", title="", models="", source="", forms=(form,))
    check_chunking(text, dialects=row, tolerance=tolerance)
    parsed = callmark.parse(text, dialects=row, tolerance=tolerance)
    assert [problem.name for problem in parsed.problems] == ["f"]
    assert [call.name for call in parsed.calls] == ["g"]


@pytest.mark.parametrize(("size", "names"), [(900, ["f"]), (2000, [])])
def test_arguments_that_are_told_twice_are_compared_where_they_are_short(size, names):
    """A call that is complete is not held back for longer."""
    value = "a" * size
    text = f'Action: f(x="{value}")\nAction Input: {{"x": "{value}"}}\nObservation: 1'
    check_chunking(text, dialects="react")
    assert [call.name for call in callmark.parse(text, dialects="react").calls] == names
    parser = callmark.Parser(dialects="react")
    kinds = {type(event) for event in parser.feed(text[: text.index("}")])}
    assert (callmark.Malformed in kinds, callmark.Call in kinds) == (not names, False)


@pytest.mark.parametrize("behind", [" and so on", ", then it", "\nAction Input: {'x': 'the first of all letters'}"])
def test_text_behind_an_action_that_is_spoken_of_comes_at_once(behind):
    text = f'Action: f(x="a"){behind}'
    check_chunking(text, dialects="react")
    parser = callmark.Parser(dialects="react")
    events = list(parser.feed(text))
    assert [event.raw for event in events if isinstance(event, callmark.Malformed)] == ['Action: f(x="a")']
    assert "".join(event.text for event in events if isinstance(event, callmark.Text)) == behind


_LINED = Form(
    head=r"@{name}\(", body="arguments", opener=r"!!calls{ws}(?=@)", closer="{ws}!!end", begins="!@", line_start=True
)


@pytest.mark.parametrize(
    ("fields", "text", "malformed", "names"),
    [
        ({}, "!!calls\n@f(a=1 b=[2}) @g() @h()\n!!end", "@f(a=1 b=[2}) ", ["g", "h"]),
        ({}, "!!calls\n@f(a=1 b=[2})\n@g() @h()\n!!end", "@f(a=1 b=[2})", ["g", "h"]),
        ({"tail": "{ws};"}, "!!calls\n@f(] @g(); @h();\n!!end", "@f(] ", ["g", "h"]),
        ({"separator": "{ws};{ws}"}, "!!calls\n@e(); @f(x y; @g(); @h()\n!!end", "@f(x y; ", ["e", "g", "h"]),
        ({"separator": "{ws};{ws}"}, "!!calls\n@f(x `y; @g(); @h()\n!!end", "@f(x `y; ", []),
        ({"separator": "{ws};{ws}"}, "!!calls\n@f([1}" + " x y" * 100 + "; @g()\n!!end", "@f([1", []),
    ],
)  # fmt: skip
def test_a_call_behind_a_broken_one_of_its_section_begins_no_line(fields, text, malformed, names):
    """Its head is seen there, but alone it would be text: so the section goes on with it."""
    own = Dialect(name="lined", title="", models="", source="", forms=(replace(_LINED, **fields),))
    sign = Form(head="@(?P<name>g)", body="json", begins="@")  # which is there sooner than the whole head
    other = Dialect(name="sign", title="", models="", source="", forms=(sign,))
    for rows in ([own], [own, other]):
        check_chunking(text, dialects=rows)
        check_nothing_is_lost(text, dialects=rows)
        parsed = callmark.parse(text, dialects=rows)
        assert [problem.raw for problem in parsed.problems if problem.code == "unexpected-text"][:1] == [malformed]
        assert [call.name for call in parsed.calls] == names


_INNER = replace(_LINED, alone=False, line_start=False, tail="{ws};")
_TAGGED = {"body": "parameters", "head": "@{name}{ws}(?=[<;])", "parameter": "<{key}>", "value_end": "</p>"}


@pytest.mark.parametrize("between", [" ", "\n", ": ", ",", "x;", " x\n", ")"])
@pytest.mark.parametrize(
    ("fields", "first", "second"),
    [
        ({}, "@f(a=1)", "@g(b=2);"),
        ({"head": r"@@{name}[ ](?=\{)", "body": "json", "opener": "!!calls{ws}(?=@)"}, '@@f {"a":1}', '@@g {"b":2};'),
        (_TAGGED, "@f<a>1</p>", "@g<b>2</p>;"),
    ],
)
def test_a_call_behind_one_without_its_tail_is_read_where_it_never_stands_alone(fields, first, second, between):
    """Its tail is not that of the call before it."""
    own = Dialect(name="inner", title="", models="", source="", forms=(replace(_INNER, **fields),))
    text = f"!!calls\n{first}{between}{second}\n{second.replace('g', 'h')}\n!!end"
    check_chunking(text, dialects=own)
    check_nothing_is_lost(text, dialects=own)
    assert [call.name for call in callmark.parse(text, dialects=own).calls][-2:] == ["g", "h"]


def test_what_a_value_quotes_is_no_call_that_never_stands_alone():
    own = Dialect(name="inner", title="", models="", source="", forms=(_INNER,))
    text = '!!calls\n@f(a={"b" "@g(b=2)"});\n@h();\n!!end'
    assert [call.name for call in callmark.parse(text, dialects=own).calls] == ["h"]


@pytest.mark.parametrize(("head", "begun", "prose"), [
    (r"@do[ ]{name}\(", "@do f(", "@done f("), (r"%%{ws}{name}{ws}(?=\{)", "%% f {", "%% of all")
])  # fmt: skip
def test_a_registered_form_is_seen_there_whose_words_are_short(monkeypatch, head, begun, prose):
    """Those of three letters and more tell a marker, misspelt or not; without them the whole beginning does."""
    row = Dialect(name="short", title="", models="", source="", forms=(Form(head=head, body="json", begins=head[0]),))
    monkeypatch.setattr(lookahead_patterns, "dialects", lambda: (*dialects(), row))
    monkeypatch.setattr(lookahead_patterns, "_signs", lookahead_patterns._signs.__wrapped__)
    seen = re.compile(lookahead_patterns.openers.__wrapped__()).match
    assert seen(begun)
    assert not seen(prose)
    assert seen("<tool_call")


@pytest.mark.parametrize("dialect", dialects(), ids=lambda dialect: dialect.name)
def test_nothing_is_looked_ahead_for_that_is_longer_than_what_is_held(dialect):
    ways = [lookahead(form) for form in (*dialect.forms, *dialect.variants)]
    patterns = [*vars(lookahead_patterns).values(), *(part for way in ways for part in vars(way).values())]
    looked_at = [reach(found.text) for found in patterns if isinstance(found, Pattern)]
    assert len(looked_at) > 20
    assert max(looked_at) <= HOLD_LIMIT


@pytest.mark.parametrize("blanks", [0, 1, 63, 64, 65, 66, 129])
def test_so_many_blanks_are_as_many_wherever_the_text_is_cut(blanks):
    some = " " * blanks
    for text in (
        f'[CALL: f({{"a":"",{some}"b"{some}',
        f'[CALL: f({{"a":"x"{some},{some}"b"{some}:{some}1}}{some})]',
        f'<function_call><tool>f</tool><args_json>```\n{{"a":1}}\n{some}```{some}</args_json></function_call>',
        f'<function_call><tool>f</tool><args_json>```\n{{"a":1}}{some}``',
    ):
        check_chunking(text)


def test_a_key_is_as_long_wherever_the_text_is_cut():
    for size in (31, 32, 33, 127):
        for times in (1, 7, 8):
            check_chunking('[CALL: f(a="x" ' + "a" * 128 + ("\\_" + "b" * size) * times + "=2)]")


# MiniMax M3's opener ends with a bracket that stays text, which is a known gap: its calls follow no opener.
@pytest.mark.parametrize(
    "dialect",
    [row for row in dialects() if row.writing and row.writing.opener and not row.writing.opener.endswith("\n]")],
    ids=str,
)
@pytest.mark.parametrize("blanks", ["\n", "\n\n  "])
def test_what_follows_a_quoted_opener_on_the_next_line_is_text_with_it(dialect, blanks):
    marker = render_call("f", {"a": 1}, dialect)
    opener = dialect.writing.opener.rstrip()
    text = f"> {opener}{blanks}{marker[len(opener) :].lstrip()}"
    check_chunking(text, dialects=dialect)
    assert not parse(text, dialects=dialect).calls


def test_what_is_remembered_of_texts_is_bounded():
    asked = []

    def size(text):
        asked.append(text)
        return len(text)

    known = Remembered(size)
    assert [known["a"], known["a"], known["ab"]] == [1, 1, 2]
    assert asked == ["a", "ab"]
    texts = [f"<{number}" for number in range(3000)]
    assert [known[text] for text in texts] == [len(text) for text in texts]
    assert 0 < len(known) < 1000
    assert known["x" * 5000] == 5000
    assert max(map(len, known)) < 100


@pytest.mark.skipif(not scanner.__file__.endswith(".py"), reason="functions of the compiled engine cannot be replaced")
@pytest.mark.parametrize("chosen", [None, "gemma4", ["call", "pythonic", "harmony"]])
def test_only_rows_of_ones_own_are_checked_when_they_are_used(chosen, monkeypatch):
    """That takes milliseconds a row, of which every start of a program would wait."""
    checked = []
    monkeypatch.setattr(scanner, "check_row", lambda dialect: checked.append(dialect.name))
    dialects = select(chosen)
    scanner.Plan(dialects, "lenient")
    assert checked == []
    row = dialects[-1]
    scanner.Plan((replace(row, title="another"),), "lenient")
    scanner.Plan((replace(row, forms=(replace(row.forms[0], salvage=not row.forms[0].salvage),)),), "lenient")
    assert checked == [row.name] * 2


@pytest.mark.parametrize(("text", "code"), [
    ('<|tool_call>call:f{a:<|"|>x\ud800y<|"|>}<tool_call|>', "lone-surrogate"),
    ('<cofl:tool_call id="0" name="f"><cofl:value name="a" type="dict"></cofl:value></cofl:tool_call>',
     "nesting-too-deep"),
])  # fmt: skip
def test_what_no_argument_may_hold_is_refused_where_it_stands(text, code):
    found = parse(text, limits=Limits(nesting=1)).events
    assert [event.code for event in found if isinstance(event, Malformed)] == [code]


_RAW_PIECES = [*"a\"'[](){},=r \n", "\\", '\\"', "\\'", "\\\\", "\\n", "<tool_call>", "é"]


@given(st.sampled_from("rR"), st.sampled_from(['"', "'", '"""', "'''"]), st.lists(st.sampled_from(_RAW_PIECES)))
@example("r", "'''", [")", "]"])
@example("r", "'", ["\\", "\n"])
def test_a_raw_string_is_what_python_says(prefix, quote, pieces):
    source = prefix + quote + "".join(pieces) + quote
    try:
        tokens = [token.type for token in tokenize.generate_tokens(io.StringIO(source).readline)]
        assume(tokens.count(tokenize.STRING) == 1)  # Python puts several together
        value = ast.literal_eval(source)
    except (SyntaxError, tokenize.TokenError, ValueError):
        assume(False)
    for text in (
        f"[CALL: f(a={source})]", f"[CALL: f(b=1, a={source}, c=2)]", f'[CALL: f({{"a": {source}}})]',
        f"<|tool_call_start|>[f(a={source}), g(a={source})]<|tool_call_end|>",
        f'<tool_call>{{"name": "f", "arguments": {{"a": {source}}}}}</tool_call>',
        f'[TOOL_CALLS]f[ARGS]{{"a": {source}}}',
    ):  # fmt: skip
        assert [call.arguments["a"] for call in parse(text).calls] == [value] * text.count(source)
        check_chunking(text)
    (call,) = parse(f'[CALL: f(a=["x", {source}, 1])]').calls
    assert call.arguments == {"a": ["x", value, 1]}


def test_no_dialect_takes_the_name_that_stands_for_all():
    with pytest.raises(DialectError, match="name 'default': expected another one, as it stands"):
        Dialect(name="default", title="", models="", source="", forms=(Form(head="<{name}>", body="json"),))


def test_two_dialects_of_one_name_are_refused_but_for_parts_of_one():
    (hermes,) = (row for row in dialects() if row.name == "hermes")
    own = msgspec.structs.replace(hermes, title="another one")
    for both in (["hermes", own], [own, "default"], [own, hermes]):
        with pytest.raises(DialectError, match=r"dialect hermes: expected one dialect of this name, .* found two"):
            parse("x", dialects=both)
    listed = "[look()] [CALL: f()]"
    for both in (["default", "pythonic"], ["pythonic", "default"], ["default", "pythonic", "pythonic"]):
        assert [call.dialect for call in parse(listed, dialects=both).calls] == ["pythonic", "call"]


def row_with_tags(name, head, *tags):
    form = Form(head=head, body="json", tail="</call>")
    return Dialect(name=name, title="", models="", source="", forms=(form,), tags=tags)


def test_tags_have_no_other_groups():
    for tag in (r"</x(?P<closes>) (?P<what>\w)>", "<x(?P<answer>)>"):
        row = row_with_tags("own", r"<t {name}>(?=\{)", tag)
        for field, wrong in (("tags", row), ("leads", replace(row, tags=(), leads=(tag,)))):
            message = f"own: {field}: expected no groups but opens, closes, answers, found `"
            with pytest.raises(DialectError, match=message):
                parse("a", dialects=wrong)


@given(cuts=st.lists(st.integers(0, 60)))
def test_a_lead_is_read_where_the_text_begins_and_nowhere_else(cuts):
    row = row_with_tags("own", r"<t {name}>(?=\{)", "</m(?P<closes>)>")
    own = replace(row, leads=(r"[ ]?me(?P<opens>):", "you:"))
    call = '<t f>{"a": 1}</call>'
    for text, names, shown, thought in [
        (f" me:hm {call}</m>{call}", ["f"], "", f"hm {call}"),
        (f"\ufeffme:hm {call}", [], "\ufeff", f"hm {call}"),
        (f"you:{call}", ["f"], "", ""),
        (f"I me:hm {call}", ["f"], "I me:hm ", ""),
        (f"{call} me:hm", ["f"], " me:hm", ""),
        ("me", [], "me", ""),
        ("y", [], "y", ""),
    ]:
        parsed = parse(text, dialects=own)
        assert ([call.name for call in parsed.calls], parsed.text, parsed.reasoning) == (names, shown, thought)
        check_chunking(text, cuts, dialects=own)
        check_nothing_is_lost(text, dialects=own)


def test_only_the_way_of_a_tag_that_begins_an_answer_ends_a_thought():
    own = row_with_tags(
        "own", r"<m:note><call {name}>(?=\{)", "<m:think(?P<opens>)>", "<m:(?:answer(?P<answers>)|note)>"
    )
    text = "<m:think>I could say <m:note><call rm>{}</call>, no<m:answer>Yes."
    parsed = parse(text, dialects=own)
    assert (parsed.calls, parsed.text) == ((), "Yes.")
    check_chunking(text, dialects=own)


@pytest.mark.parametrize("reasoning", ["text", "allow"])
@pytest.mark.parametrize(
    "text", ["\n@run a|{}%%", "\n \n@run a|{}%%", " \n<think>\n@run a|{}%%", " \n\nx", "\n@", " \n@run"]
)
@pytest.mark.parametrize("opener", ["", r"\n@calls;"])
def test_a_marker_that_begins_with_a_blank_is_found_where_the_prompt_has_opened_a_thought(opener, text, reasoning):
    head = r"@run {name}\|{ws}(?=\{)" if opener else r"\n@run {name}\|{ws}(?=\{)"
    form = Form(opener=opener, head=head, body="json", tail=r"{ws}%%", begins="\n", alone=not opener)
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    text = text.replace("\n@", "\n@calls;@") if opener else text
    options = {"dialects": [own], "starts_in_reasoning": True, "contexts": {"reasoning": reasoning}}
    check_chunking(text, **options)
    assert len(parse(text, **options).calls) == ("%%" in text and reasoning == "allow")


@pytest.mark.parametrize("blanks", ["\n\n", " \n\n", "\n\n\n\n", " \n"])
def test_an_opener_of_nothing_but_blanks_is_found_there_too(blanks):
    form = Form(opener=r"\n\n", head=r"@run {name}\|{ws}(?=\{)", body="json", tail="%%", begins="\n", alone=False)
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    options = {"dialects": [own], "starts_in_reasoning": True, "contexts": {"reasoning": "allow"}}
    check_chunking(f"{blanks}@run a|{{}}%%", **options)
    assert len(parse(f"{blanks}@run a|{{}}%%", **options).calls) == blanks.endswith("\n\n")


@pytest.mark.parametrize("tolerance", ["strict", "lenient"])
@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "f", "arguments": {"a": 1}} so it is.\n```json\n{"id": "chatcmpl-tool-0123456789", '
        '"type": "function", "function": {"name": "f", "arguments": {}}}\n```',
        f'```json\n{{"name":"f","arguments":x```json\n{" " * 60}{{"name": "f", "arguments": {{}}}}\n```',
        f'```tool_call\n{{"name":"f","arguments":x\n ```json\n{" " * 60}{{"name": "f", "arguments": {{}}}}\n```',
        f'```tool_call\n{{"name":"f","arguments":x\n ```json\n{" " * 60}{{"nme": "f", "arguments": {{}}}}\n```',
    ],
)
def test_a_broken_call_ends_before_a_fence_whether_or_not_it_is_known_what_is_in_it(text, tolerance):
    check_chunking(text, dialects="fenced", tolerance=tolerance)
    for cut in range(1, len(text)):
        check_chunking(text, [cut], dialects="fenced", tolerance=tolerance)


def test_a_tag_in_the_tail_of_a_broken_call_waits_for_the_call_that_it_may_begin():
    form = Form(head="<m>call:{name}{object}", body="json", tail="</call><m>")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), tags=("<m>",))
    broken = '<m>call:f{"a" 007}</call>'
    for behind, calls, raw in ((" x", [], f"{broken}<m>"), ("call:g{}</call><m>", ["g"], broken[:-7])):
        text = f"{broken}<m>{behind}"
        parsed = parse(text, dialects=own)
        assert ([call.name for call in parsed.calls], parsed.problems[0].raw) == (calls, raw)
        check_chunking(text, range(len(text)), dialects=own)


@pytest.mark.parametrize("begin", ["<a><b>x", "<b><a>x"])
def test_which_answer_ends_a_thought_is_the_same_in_all_chunks(begin):
    one = row_with_tags("one", r"<m><call {name}>(?=\{)", "<a(?P<opens>)>", r"<m>(?P<answers>)(?=<call f>\{\"k)")
    other = row_with_tags("other", r"<zz {name}>(?=\{)", "<b(?P<opens>)>", "<m>(?P<answers>)(?=<call)")
    check_chunking(f'{begin}<m><call f>{{"k":1}}</call>y', dialects=[one, other])


def test_the_name_may_stand_under_type_or_id():
    for key in ("type", "id"):
        form = Form(head=r"<t>(?=\{)", body="envelope", tail="</t>", name_keys=(key,))
        own = Dialect(name="own", title="", models="", source="", forms=(form,))
        (call,) = parse(f'<t>{{"{key}":"f","arguments":{{"a":1}}}}</t>', dialects=own).calls
        assert (call.name, call.arguments) == ("f", {"a": 1})


# What strict reading says of what lenient reading mends.


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("""[CALL: f({'a': 1, "b" 2})]""", "unexpected-text", ('"}" or a key in quotes', "'", 10)),
        ('[CALL: f({"a": 1,})]', "unexpected-text", ("no comma", ",", 16)),
        ('[CALL: f({"a": "he said "hi" to me"})]', "unexpected-text", (r"an escaped quote: \"", '"', 24)),
        ('[CALL: f({"a": Oslo})]', "unexpected-text", ("a value", "Oslo", 15)),
        ('[CALL: f({"a": "one\ntwo"})]', "control-character", (r"an escape, such as \n", "a line break", 19)),
        ('[CALL: f({"a": "one\ntwo', "control-character", (r"an escape, such as \n", "a line break", 19)),
        (r"[CALL: f(a='\x41')]", "bad-escape", ("an escape of JSON behind the backslash", "\\", 12)),
        (r'[CALL: f({"a": "\d"})]', "bad-escape", (r"a backslash that is doubled: \\", "\\", 16)),
        (r'[CALL: f({\"a\": 1})]', "unexpected-text", ("quotes without backslashes", "\\", 10)),
        ('[CALL: f({"a": """x"""})]', "unexpected-text", ("one quote in place of three", '"', 15)),
        ('<tool_call>{"name": "f "}</tool_call>', "unexpected-text", ("a space, or none at an end of a name", '"', 20)),
        ('<|tool_call>call:f{a:"x"}<tool_call|>', "unexpected-text", ("the dialect's own string delimiter", '"', 21)),
        ('[CALL: f({"a":1)}', "unexpected-text", ('"," or "}"', ")", 15)),
        ("[CALL: f(Oslo)]", "bad-arguments", ("arguments with names", "Oslo", 9)),
        ('<tool_call>{"name": "f"}<tool_call>', "unexpected-text", ('"</tool_call>"', "the end of the marker", 24)),
        ('[CALL: f({"a": 1})[CALL', "unexpected-text", ('"]"', "[", 18)),
    ],
)
def test_strict_reading_says_what_lenient_reading_would_have_mended_first(text, code, told):
    expected = parse(text, tolerance="strict").events
    (broken,) = (found for found in expected if isinstance(found, Malformed))
    assert broken.code == code
    assert message_parts(broken.message)[:3] == told
    for _, events in every_single_cut(text, tolerance="strict"):
        assert joined(events) == joined(expected)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('<invoke name="f"><parameter name="a"x>1</parameter></invoke>', ('">"', "x", 36)),
        ('<function name="f"><param name="a"]1</param></function>', ('">"', "]", 34)),
        ("<tool_call>f<arg_key>a</arg_key><arg:value>1</arg_value></tool_call>", ('"<arg_value>"', "<arg:", 32)),
        (
            '<cofl:tool_call id="0" name="f"><cofl:value name="k" Type="json">1</cofl:value></cofl:tool_call>',
            ("' type=\"dict\">' or ' type=\"json\">' or ' type=\"list\">' or ' type=\"raw\">'", " T", 52),
        ),
        (f'<function name="f"><param name="a"]{"x" * 4096}</param>', ("a parameter or the end of the call", "<", 19)),
    ],
)
def test_what_is_wrong_in_a_tag_that_opens_a_value_is_told_where_it_stands(text, told):
    expected = parse(text).events
    (broken,) = (found for found in expected if isinstance(found, Malformed))
    assert message_parts(broken.message)[:3] == told
    for _, events in every_single_cut(text):
        assert joined(events) == joined(expected)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<tool_use><name>f</name><arguments>{}</arguments>\n</tool_us>", ("</arguments>", "<", 50)),
        ("<tool_use><name>f</name><arguments>{}</arguments> x", ("</arguments>", "x", 50)),
        ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```\n<｜tool▁end｜>", ("```", "<", 56)),
        ("<function_call><tool>f</tool><args_json>{}</args_json></call>", ("</args_json>", "<", 42)),
    ],
)
def test_what_stands_behind_a_tag_that_is_there_is_told_not_that_the_tag_is_missing(text, told):
    expected = parse(text).events
    (broken,) = (found for found in expected if isinstance(found, Malformed))
    tag, found, at = told
    assert broken.code == "unexpected-text"
    assert message_parts(broken.message)[:3] == (f'the closer of the marker behind "{tag}"', found, at)
    for _, events in every_single_cut(text):
        assert joined(events) == joined(expected)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[CALL: f(a=1, 2)]", ('a key and "=" before the value', "2", 14)),
        ("[CALL: f(a=1,\n  'x', b=2)]", ('a key and "=" before the value', "'", 16)),
        ("[CALL: f(...)]", ('JSON, or a key and "="', ".", 9)),
        ("[CALL: f(Oslo, x)]", ('JSON, or a key and "="', "Oslo", 9)),
    ],
)
def test_an_argument_without_a_key_is_told_where_it_begins(text, told):
    expected = parse(text).events
    (broken,) = (found for found in expected if isinstance(found, Malformed))
    assert (broken.code, message_parts(broken.message)[:3]) == ("bad-arguments", told)
    for _, events in every_single_cut(text):
        assert joined(events) == joined(expected)


@pytest.mark.parametrize(
    ("text", "code", "found", "at"),
    [
        ('<tool_call>{"name": null}</tool_call>', "missing-name", "null", 20),
        ('<tool_call>{"name": 5, "arguments": {}}</tool_call>', "missing-name", "5", 20),
        ('<tool_call>{"name": "f", "arguments": true }</tool_call>', "bad-arguments", "true", 38),
    ],
)
def test_a_word_in_the_place_of_a_name_or_of_arguments_is_told_where_it_begins(text, code, found, at):
    expected = parse(text).events
    (broken,) = (found for found in expected if isinstance(found, Malformed))
    assert (broken.code, *message_parts(broken.message)[1:3]) == (code, found, at)
    for _, events in every_single_cut(text):
        assert joined(events) == joined(expected)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[TOOL_CALLS]get weather [ARGS]{}", '"get weather", 12'),
        ("[TOOL_CALLS]the end of the text[ARGS]{}", '"the end of the text", 12'),
        ("[TOOL_CALLS]$f[ARGS]{}", '"$f", 12'),
        ("<tool_call><function=  ><parameter=a>1</parameter></function></tool_call>", '">", 12'),
    ],
)
def test_words_in_the_place_of_a_name_are_told_in_quotes(text, found):
    (broken,) = parse(text).problems
    assert broken.message == f"expected the name of the tool, found {found} characters into the marker"
    check_chunking(text)


@pytest.mark.parametrize("tolerance", ["strict", "lenient"])
def test_a_long_value_that_is_cut_in_its_json_has_no_closers_supplied(tolerance):
    tools = {"f": {"type": "object", "properties": {"a": {"type": "array"}}}}
    text = f'<function=f>\n<parameter=a>["{"x" * 5000}</parameter>\n</function>'
    (broken,) = parse(text, tools=tools, tolerance=tolerance).problems
    assert (broken.code, broken.raw) == ("bad-arguments", text)
    assert message_parts(broken.message).expected == "a whole JSON value"


def test_half_a_character_in_an_escaped_object_breaks_it():
    text = '<tool_call>{"name": "f", "arguments": {"a": "\ud800"}}</tool_call>'.replace('"', '\\"')
    (problem,) = parse(text).problems
    assert problem.code == "lone-surrogate"
    check_chunking(text)


@pytest.mark.parametrize(("depth", "found"), [(3, ("a",)), (7, ("a",)), (8, ()), (40, ())])
def test_what_is_put_together_in_a_schema_is_followed_so_deep(depth, found):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for _ in range(depth):
        schema = {"allOf": [schema]}
    assert Parameters(schema).names == found


def test_no_other_closer_is_read_where_each_may_begin_a_marker_with_all_its_closers():
    form = select("call")[0].forms[0]
    ways = Endings(form, None, ")]}", inside=False, final=False, complete=False)._ways
    assert [(way.code, way.many) for way in ways if way.other] == [
        *[("extra-closer", many) for many in range(1, DEPTH + 1)],
        ("extra-comma", 1),
    ]
    assert not [way for way in ways if not way.other and way.due != ")]}]" and not way.missing]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('@@f{"a": 1\n@@', [("f", {"a": 1})]),
        ('@@f{"a": [1\n@@ x', [("f", {"a": [1]})]),
        ('@@f{"a": 1\n@@g{"a": 2}@@', [("g", {"a": 2})]),
        ('@@f{"a": {"b": 1\n@@g{"a": 2}@@', [("g", {"a": 2})]),
    ],
)
@pytest.mark.parametrize(
    ("head", "tag"),
    [("@@", "@@"), ("(?:@@)", "@@"), ("@{2}", "@@"), ("(?:@|@@)(?i:x)?", "@@"), ("@{1,2}#", "@#"), ("(?i:é)@", "É@")],
)
def test_a_tail_that_begins_the_next_marker_closes_no_brackets(head, tag, text, calls):
    form = Form(head=head + "{name}{object}", body="json", tail="{ws}" + tag, begins="@éÉ")
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    text = text.replace("@@", tag)
    assert [(call.name, call.arguments) for call in parse(text, dialects=own).calls] == calls
    check_chunking(text, dialects=own)


@pytest.mark.parametrize(
    ("head", "begins", "text"),
    [
        (r'"{name}"=(?=\{)', '"', r'[CALL: f({s:"\"y"})]'),
        (r'"{name}"=(?=\{)', '"', r'[CALL: f({s:"say \"hi\""})]'),
        (r'"{name}"=(?=\{)', '"', r'[CALL: f(s="a\\\"y")]'),
        (r"(?i:tool):{name}(?=[{])", "tT", r'[CALL: f({s:"x\tower b"})]'),
        (r"now {name}(?=\{)", "n", r'[CALL: f({s:"x\nice"})]'),
        (r"now {name}(?=\{)", "n", r'[CALL: f({s:"x" \now f{}"})]'),
        (r"'{name}'=(?=\{)", "'", r"[CALL: f({s:'\']"),
        (r"ab{name}(?=\{)", "a", r'[CALL: f({s:"\u00ab", t: "\u0ab0\\ab"})]'),
        (r"d{name}(?=\{)", "d", r'[CALL: f({s:"\ud83d\ude00"})]'),
        (r"\\{name}(?=\{)", "\\", r'[CALL: f({s:"ab\ttool:f{\)\ud83d\ude00"")]'),
        (r"\\{name}(?=\{)", "\\", r'[CALL: f({"s": "/\df{ "x"'),
    ],
)
def test_a_marker_that_may_begin_inside_an_escape_cuts_none(head, begins, text):
    form = Form(head=head, body="json", begins=begins)
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    check_chunking(text, dialects=["call", own])


@pytest.mark.parametrize("begin", ["1", "é", "C", "_", "["])
@pytest.mark.parametrize("quote", "\"'")
def test_what_begins_like_a_path_but_for_its_letter_is_read_alike_in_chunks(begin, quote):
    for rest in (r"\t[", r"\n<x", r"\[", r"/["):
        check_chunking(f"[CALL: f(s={quote}{begin}:{rest}")
        check_chunking(f"[CALL: f(s={quote}{begin}:{rest}{quote})]")


def test_whole_arguments_are_a_call_before_a_tail_that_begins_the_next_marker():
    form = Form(head=r"%%{ws}(?=\{)", body="envelope", tail="{ws}%%", begins="%")
    own = Dialect(name="own", title="", models="", source="", forms=(form,))
    text = '%%{"name": "f", "arguments": {"a": 1}\n%%{"name": "g", "arguments": {"a": 2}}%%'
    calls = [(call.name, [repair.code for repair in call.repairs]) for call in parse(text, dialects=own).calls]
    assert calls == [("f", ["missing-closer"]), ("g", [])]
    check_chunking(text, dialects=own)


@pytest.mark.parametrize("behind", ["", " ", "x", "\n", *"])}<"])
def test_the_text_that_closes_a_marker_is_all_that_its_pattern_takes(behind):
    forms = [form for row in callmark.dialects() for form in (*row.forms, *row.variants)]
    closed = [parts for parts in map(patterns, forms) if parts.closer]
    assert len(closed) > 100
    for parts in closed:
        found = parts.closing.match(parts.closer + behind)
        assert found is not None, parts.form
        assert found.end() == len(parts.closer), parts.form


def test_what_may_stand_once_too_often_begins_with_a_character_that_is_looked_for():
    rows = [(row, form) for row in callmark.dialects() for form in (*row.forms, *row.variants)]
    strays = [found for row, form in rows if (found := stray(row, form)) is not None]
    assert {found.begins for found in strays} == {")", " \t\r\n<[", " \t\r\n<[}"}
    for found in strays:
        taken = {char for char in map(chr, range(128)) if found.may_follow(f"{char}<") is not None}
        assert taken == {*found.begins}
