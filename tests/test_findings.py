"""What is said about a text: every code with an example that gives it, every place where it is, and near-misses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callmark
from callmark import Call, Malformed, Notice, Span, UsageError, feedback, parse
from callmark.dialects import Dialect, Form
from callmark.dialects.clues import CLUES
from callmark.events import MALFORMED_CODES, NOTICE_CODES, REPAIR_CODES
from callmark.reading.codes import CODES, explained
from callmark.reading.findings import SHOWN, findings
from strategies import good_markers, hostile_texts, mutated, options, sloppy_markers
from test_cases import CASES
from test_house import repairs_made


def told(text, **options):
    return [(found.kind, found.code, found.line, found.column) for found in findings(text, **options)]


# Codes.


def test_the_codes_are_those_of_the_events():
    assert list(CODES) == [*MALFORMED_CODES, *NOTICE_CODES, *REPAIR_CODES]


@pytest.mark.again
@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.code)
def test_a_code_is_explained_and_its_example_gives_it(code):
    assert code.meaning == {**MALFORMED_CODES, **NOTICE_CODES, **REPAIR_CODES}[code.code]
    assert code.advice.endswith(".")
    given = [event.code for event in code.read() if isinstance(event, Malformed | Notice)]
    given += [repair.code for event in code.read() if isinstance(event, Call) for repair in event.repairs]
    if code.kind == "repair" and code.code not in repairs_made():
        assert code.code not in given, "reading makes it by now"
    else:
        assert given == [code.code]


def test_kinds_are_those_of_the_tables():
    kinds = {code.kind: set() for code in CODES.values()}
    for code in CODES.values():
        kinds[code.kind].add(code.code)
    assert kinds == {"malformed": set(MALFORMED_CODES), "notice": set(NOTICE_CODES), "repair": set(REPAIR_CODES)}


def test_an_unknown_code_is_misuse():
    with pytest.raises(UsageError, match=r"^expected a code \(unclosed-marker, .*\), found 'nope'$"):
        explained("nope")
    with pytest.raises(UsageError, match=r"found 'unexpected_text'; did you mean 'unexpected-text'\?$"):
        explained("unexpected_text")


# Findings.


def test_a_broken_marker_is_found_where_it_breaks():
    (found,) = findings('One.\nTwo: [CALL: f({"a" 1})]\n')
    assert (found.kind, found.code, found.line, found.column) == ("malformed", "unexpected-text", 2, 20)
    assert (found.dialect, found.name, found.seen, found.expected) == ("call", "f", "1", '":"')
    assert found.done == "not read as a call; reading went on in line 2, behind 18 characters"
    assert found.span == Span(10, 28)


def test_a_cut_marker_is_found_at_the_end():
    (found,) = findings('[CALL: f({"a": [\n1')
    assert (found.line, found.column, found.seen) == (2, 2, "the end of the text")
    assert [(found.line, found.column) for found in findings("[CALL: f(a=1,\n\n")] == [(1, 14)]
    assert found.done == "not read as a call: a marker that the end of the text cuts is never one"


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "f", "arguments": {"a": "x}}</tool_call>\nDone.',
        '[CALL: f(b=1, a="x)] and',
        "[CALL: f({'a': \"x})]",
    ],
)
def test_a_string_without_an_end_is_found_where_it_begins(text):
    (found,) = [found for found in findings(text) if found.kind == "malformed"]
    assert (found.code, text[found.column - 1 :].partition("\n")[0]) == ("unclosed-marker", found.seen)
    assert found.seen.startswith(('"x', '"{'))
    assert found.expected == "a quote that ends the string which begins here"


@pytest.mark.parametrize("text", ['<tool_call>{"name": "f", "arguments": {"a', '[CALL: f({"a'])
def test_a_first_key_without_an_end_is_found_where_it_begins_also_where_it_may_be_a_parameter(text):
    tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}]
    (found,) = findings(text, tools=tools)
    assert (found.name, found.seen, text[found.column - 1 :]) == ("f", '"a', '"a')


def test_a_marker_without_a_name_is_not_taken_for_another_dialects_call_inside_of_it():
    for text in ('[CALL: ({"a": 1})]', "So: [CALL: (a=1)]"):
        (found,) = findings(text)
        assert (found.dialect, found.seen[0], found.expected) == ("call", "(", "a name")
    (found,) = findings("I did. [look(a=1), turn()]")
    assert found.expected == "the dialect pythonic among those listened for"


def test_the_name_of_a_tool_is_a_clue():
    (found,) = findings("Now `f` and then f(a=1).", tools=["g", "f"])
    assert (found.column, found.expected) == (18, "the marker around it: [CALL: f(...)]")
    assert findings("Now `f` and then (a=1), half(2).", tools=["f"]) == ()


def test_options_that_can_be_read_once_are_read_as_often_as_they_are_wanted():
    (found,) = findings("[CALL: 2 + 2]", dialects=iter(["call"]), tools=iter(["f"]))
    assert found.expected == "a name"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('[CALL: f({"it\'s": 1, "it\'s": 2})]', "it's\": 2"),
        ('[CALL: f({"x": {"b": 1}, "b": 1, "b": 2})]', 'b": 2'),
        ('[CALL: f({"x": [{"b": 1}, {"b": 3, "b": 2}]})]', 'b": 2'),
        ('[CALL: f({"x": "b: (", "b": "} b", "b": 2})]', 'b": 2'),
        ("<tool_call><function=f><parameter=a>1</parameter><parameter=a>2</parameter></function></tool_call>", "a>2"),
        ('[CALL: f({"' + "k" * 99 + '": 1, "' + "k" * 99 + '": 2})]', "[CALL"),  # a name so long is not said whole
        ("<tool_call><function=f><parameter=a>))</parameter><parameter=a>2</parameter></function></tool_call>", "a>2"),
        ('<function=f><parameter=a>))</parameter>\n<parameter name="a">2</parameter></function>', 'a">2'),
    ],
)
def test_where_a_key_stands_again_is_asked_between_the_same_brackets(text, seen):
    (found,) = findings(text)
    assert found.code == "duplicate-key"
    assert text.splitlines()[found.line - 1][found.column - 1 :].startswith(seen)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("<function=f><parameter=city>city: Oslo</parameter><parameter=city>2</parameter></function>", "city>2"),
        (
            '<invoke name="f"><parameter name="name">x</parameter><parameter name="name">y</parameter></invoke>',
            'name">y',
        ),
        ("[CALL: f(a='x, a=1', a=2)]", "a=2"),
        ("[CALL: f({'a': \"it's\", 'b': 'a', 'a': 2})]", "a': 2"),
    ],
)
def test_where_a_key_stands_again_is_no_place_in_a_value_or_a_tag(text, seen):
    found = next(found for found in findings(text) if found.code == "duplicate-key")
    assert text[found.column - 1 :].startswith(seen)


def test_a_key_that_stands_twice_is_found_where_it_stands_again():
    (found,) = findings("x [CALL: f(a=1, a=2)]")
    assert (found.code, found.column) == ("duplicate-key", 17)
    assert (found.seen, found.expected) == ("the key a a second time", "each key once")
    (escaped,) = findings('x [CALL: f({"a": 1, "\\u0061": 2})]')
    assert escaped.column == 3


def test_a_long_string_is_passed_by_as_a_whole_where_a_key_stands_twice():
    text = '[CALL: f({"a": "' + '\\"a\\": 1, ' * 2000 + '", "a": 1})]'
    (found,) = (found for found in findings(text) if found.code == "duplicate-key")
    assert (found.line, found.column) == (1, text.rindex('"a"') + 2)



def test_a_problem_without_a_place_is_found_where_its_marker_begins():
    (found,) = findings('x [CALL: f({"a": "\\ud83d"})]')
    assert (found.code, found.column) == ("lone-surrogate", 19)


def test_repairs_are_found_in_the_order_of_the_text():
    text = "`[CALL: f()]`\n[CALL: f({'a': 1,})] [CALL: g({\"b\":})]"
    assert told(text) == [
        ("notice", "marker-in-code", 1, 2),
        ("repair", "single-quotes", 2, 11),
        ("repair", "extra-comma", 2, 17),
        ("malformed", "unexpected-text", 2, 36),
    ]
    found = findings(text)[1]
    assert (found.seen, found.expected, found.dialect, found.name) == ("'", "double quotes", "call", "f")
    assert found.done == "read as a call: a single-quoted string was read where the dialect wants double quotes"


def test_a_notice_says_what_was_done():
    (found,) = findings("`[CALL: f()]`")
    assert found.expected == "a call that is meant, outside of code"
    assert found.done == "left as text: a marker in code (inline, or of HTML) is not a call"
    (found,) = findings("[CALL: forcast()]", tools=["forecast"])
    assert found.done == 'read as a call: no tool "forcast" was given; did it mean "forecast"?'
    (found,) = findings("[CALL: f()])]")
    assert found.done.startswith("taken out of the text: a closer too many")


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>",
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n",
        "<function=f>\n<parameter=a>\n1\n</parameter>\n",
    ],
)
def test_a_tag_that_is_there_is_not_expected_where_the_text_ends(text):
    """What is missing stands behind the tag of a value: a value ends only where structure follows it."""
    (found,) = findings(text)
    assert (found.expected, found.seen) == ("the rest of the marker", "the end of the text")


def test_only_the_beginning_of_a_long_place_is_quoted():
    assert findings("x [CALL: " + "f" * 100 + "()]", tools=["g"])[0].seen == "[CALL: " + "f" * (SHOWN - 7)
    assert findings("[CALL: f(\na=1)]", tools=["g"])[0].seen == "[CALL: f("


@pytest.mark.parametrize("text", ["", "Hello.", "See [1] and [x](y), a < b.", '[CALL: f({"a": 1})] ok', "- f({a: 1})"])
def test_there_is_nothing_to_say_about_good_calls_and_prose(text):
    assert findings(text) == ()


# Near-misses.


BARE = '{"name": "f", "arguments": {}}'


@pytest.mark.parametrize(
    ("text", "dialect", "place", "seen", "expected"),
    [
        ('Hi\n[CALL: {"city": 1}]', "call", (2, 8), '{"city": 1}]', "a name"),
        ("[CALL: I love tea]", "call", (1, 10), "love tea]", '"(" or "]"'),
        ("[CALL: pin", "call", (1, 11), "the end of the text", '"(" or "]"'),
        ("<tool_call>\n(1)", "hermes", (2, 1), "(1)", '"{"'),
        ("<tool_call>\n[1]", "listed", (2, 2), "1]", '"{"'),
        ("[TOOL_CALLS] {}", "mistral", (1, 14), "{}", '"[" or a name'),
        ("<|tool_call_begin|>f{}", "kimi_k2", (1, 21), "{}", '":" and a number or "<|tool_call_argument_begin|>"'),
        ("I will [f(a=1)]", "pythonic", (1, 9), "f(a=1)]", "the dialect pythonic among those listened for"),
        ("Action: f\nAction Input: {}", "react", (1, 1), "Action: f", "the dialect react among those listened for"),
        ("Now\n CALL: f(a=1)", "call", (2, 2), "CALL: f(a=1)", CLUES[2][2]),
        ('{"name": "f", "arguments": 1}', "hermes", (1, 1), '{"name": "f", "arguments": 1}', CLUES[4][2]),
        (BARE, "llama", (1, 1), BARE, "the dialect llama among those listened for"),
        ('So: {"name": "f", "arguments": {}}', "hermes", (1, 5), '{"name": "f", "arguments": {}}', CLUES[4][2]),
        ("done </tool_call>", "hermes", (1, 6), "</tool_call>", CLUES[5][2]),
        ('ok\n\nf({"a": 1})', "call", (3, 1), 'f({"a": 1})', CLUES[6][2]),
        ('{"tool": "f", "input": {}}', "hermes", (1, 1), '{"tool": "f", "input": {}}', CLUES[4][2]),
        ("&lt;tool_call&gt;{}", "hermes", (1, 1), "&lt;tool_call&gt;{}", CLUES[0][2]),
        ('[TOOL_CALL] {"name": "f"}', "hermes", (1, 1), '[TOOL_CALL] {"name": "f"}', CLUES[7][2]),
        ("so <toolcall>f</toolcall>", "hermes", (1, 4), "<toolcall>f</toolcall>", CLUES[7][2]),
        ("&lt;tool_call&gt;" + BARE, "hermes", (1, 1), "&lt;tool_call&gt;" + BARE, CLUES[0][2]),
        ("Now\n〔CALL：f（a=1）〕", "call", (2, 1), "〔CALL：f（a=1）〕", CLUES[2][2]),
        ("Well, [TOOL: f(a=1)]", "call", (1, 7), "[TOOL: f(a=1)]", CLUES[3][2]),
        ("so <calls>" + BARE, "hermes", (1, 4), "<calls>" + BARE, CLUES[1][2]),
        ("<TOOLS>\n" + BARE, "hermes", (1, 1), "<TOOLS>", CLUES[1][2]),
        ("ok\n```tool_code\nx = f(a=1)\n```", "fenced", (2, 1), "```tool_code", CLUES[8][2]),
        ("ok\n  ~~~~ tool_call\nx\n~~~~", "fenced", (2, 3), "~~~~ tool_call", CLUES[8][2]),
        ("```tool_code\nf(a=1)\n```", "pythonic", (2, 1), "f(a=1)", "the dialect pythonic among those listened for"),
        ("Action: f\nAction Input: sea", "react", (1, 1), "Action: f", CLUES[9][2]),
        ("**Action:** f(the web)", "react", (1, 1), "**Action:** f(the web)", CLUES[9][2]),
        ("**Action:** f(a=1)", "react", (1, 1), "**Action:** f(a=1)", "the dialect react among those listened for"),
        (
            '<invoke name="f">x</invoke>', "invoke", (1, 17), ">x</invoke>",
            '">" and a tag behind it or ">" and an object behind it',
        ),
    ],
)
def test_a_near_miss_is_told_with_what_it_lacks(text, dialect, place, seen, expected):
    (found,) = findings(text)
    assert (found.kind, found.code, found.dialect, (found.line, found.column)) == ("near-miss", "", dialect, place)
    assert (found.seen, found.expected) == (seen, expected)
    assert found.done.startswith(f"left as text; the dialect {dialect} looks like ")


def test_every_clue_tells_of_something():
    assert len(CLUES) == 10
    assert {dialect for _, dialect, _ in CLUES} == {"call", "hermes", "fenced", "react"}


def test_the_grammar_that_goes_along_furthest_is_told():
    assert [found.dialect for found in findings("<tool_call>f(x)")] == ["glm"]
    assert [found.column for found in findings("[CALL x] [CALL: 1]")] == [17]


def test_near_misses_are_of_the_dialects_listened_for():
    assert [found.dialect for found in findings("[CALL: 1] <tool_call>x y", dialects="hermes")] == ["hermes"]


def test_a_dialect_of_ones_own_may_have_no_grammar():
    own = Dialect(name="own", title="=>f{}", models="m", source="s",
                  forms=(Form(head=r"=>{name}(?=\{)", begins="=", body="json"),))  # fmt: skip
    assert findings("=>f no", dialects=own) == ()
    (found,) = findings("x </function>", dialects=own)
    assert found.dialect == "hermes"


def test_a_problem_leaves_no_near_miss():
    assert told("`[CALL: f()]` [CALL: 1]") == [("notice", "marker-in-code", 1, 2)]


# Every text.


@given(st.one_of(hostile_texts, mutated(good_markers | sloppy_markers), st.text()), options)
def test_every_text_can_be_told(text, options):
    for found in findings(text, **options):
        assert 0 <= found.span.start <= found.span.end <= len(text)
        assert found.seen
    for problem in parse(text, **options).problems:
        assert feedback(problem, language="zh-Hant")


# All cases.


@pytest.mark.again
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_whatever_is_read_can_be_told(case):
    text, options = case["input"], case["options"]
    parsed = parse(text, **options)
    for problem in parsed.problems:
        for language in ("en", "zh-Hans", "zh-Hant"):
            assert feedback(problem, language=language)
    found = findings(text, **options)
    starts = [finding.span.start for finding in found]
    assert starts == sorted(starts)
    repairs = sum(len(call.repairs) for call in parsed.calls)
    assert len(found) - len(parsed.problems) - repairs == sum(finding.kind == "near-miss" for finding in found)
    lines = text.split("\n")
    for finding in found:
        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1
        assert finding.seen
        assert finding.expected
        assert finding.done
    assert callmark.parse(text, **options).events == parsed.events


def test_arguments_that_end_too_early_are_shown_before_the_tag_that_ends_them() -> None:
    """The caret stands where more of the arguments was expected, not behind the tag."""
    text = '<function_calls><function_call><tool>f</tool><args_json>{"a": 1,</args_json></function_call>'
    assert told(text) == [("malformed", "bad-arguments", 1, text.index("</args_json>") + 1)]
