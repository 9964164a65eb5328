"""The grammars are what their dialects' rows say, and the reader of their trees says what they mean."""

from __future__ import annotations

import json
import logging
import re
from importlib.resources import files
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lark import Lark, logger
from lark.exceptions import UnexpectedInput

from callmark import load_dialect, parse
from callmark.dialects import Dialect, Form, dialects, select
from callmark.dialects.notation import expand
from callmark.errors import DialectError
from callmark.reading.grammar import _WORDS, Grammar, Mismatch, _begins, _kind, flatten, load
from callmark.testing import check_all, check_dialect, check_grammar
from strategies import NASTY, calls, members, texts

FOLDER = Path(str(files("callmark.grammars")))
FILES = sorted(FOLDER.glob("*.lark"))
DIALECTS = [pytest.param(dialect, id=dialect.name) for dialect in dialects()]
WEATHER = {"city": "Paris", "days": 2}
TIME = {"tz": "UTC"}

quick = settings(
    max_examples=min(30, settings.default.max_examples), deadline=None, suppress_health_check=list(HealthCheck)
)


def named(name: str) -> Grammar:
    return load(*select(name))


def own(tmp_path: Path, text: str, name: str = "own", **fields: str) -> Dialect:
    path = tmp_path / f"{name}.lark"
    path.write_text(text, encoding="utf-8")
    form = Form(head=fields.pop("head", "<call {name}>"), body=fields.pop("body", "json"), **fields)
    return Dialect(name=name, title="", models="", source="", grammar=str(path), forms=(form,))


def from_file(dialect: Dialect) -> Lark:
    """The grammar as Lark itself reads it, imports and all."""
    path = str(FOLDER / f"{dialect.name}.lark")
    return Lark.open(path, parser="lalr", lexer="contextual", start=["marker", "call"], debug=True)


def in_language(lark: Lark, text: str, start: str) -> bool:
    try:
        lark.parse(text, start=start)
    except UnexpectedInput:
        return False
    return True


@pytest.fixture
def conflicts():
    """What Lark complains of: it resolves conflicts silently, and only logs them."""
    found: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    handler, level = Collect(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    yield found
    logger.removeHandler(handler)
    logger.setLevel(level)


# The files.


def test_a_grammar_stands_beside_every_row():
    assert {dialect.name for dialect in dialects()} <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_grammar_says_what_it_is_and_leaves_nothing_to_chance(path):
    text = path.read_text(encoding="utf-8")
    first = text.split("\n\n")[0]
    assert first.startswith("// ")
    assert "ource: " in first  # an example, who writes it, source
    assert "%ignore" not in text
    code = re.sub(r"//[^\n]*|  # [^\n]*", "", text)
    assert not re.search(r"\\[sSdD]", code.replace(r"[^\W\d]", ""))


def repetitions(pattern):
    """Each repetition in a parsed pattern, from a to b times: its operator, a and b."""
    for item in pattern if isinstance(pattern, list | tuple | re._parser.SubPattern) else ():
        if isinstance(item, tuple) and len(item) == 2 and str(item[0]).endswith("_REPEAT"):
            yield str(item[0]), int(item[1][0]), int(item[1][1])
        yield from repetitions(item)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_repeats_never_backtracks(dialect):
    """Greedy repetition is quadratic where something behind it fails; `x?` and `x{4}` are harmless."""
    patterns = [re._parser.parse(terminal.pattern.to_regexp()) for terminal in load(dialect).lark.terminals]
    found = [repetition for pattern in patterns for repetition in repetitions(pattern)]
    assert ("POSSESSIVE_REPEAT", 1, 64) in found
    assert [each for each in found if each[0] != "POSSESSIVE_REPEAT" and each[1] != each[2] > 1] == []


@pytest.mark.again
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_grammar_is_lalr_without_conflicts(dialect, conflicts):
    from_file(dialect)
    Lark(flatten(dialect), parser="lalr", lexer="contextual", start=["marker", "call"], debug=True)
    assert conflicts == []


def test_a_conflict_would_be_seen(conflicts):
    Lark('start: "i" start | "i" start "e" start | "x"', parser="lalr", debug=True)
    assert "Shift/Reduce" in conflicts[0]


# Members.


@pytest.mark.again
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_marker_is_read_and_its_calls_are_calls(dialect):
    """The grammar reads what it generates; each call's raw is in `call`, says the same, and is what the row says."""
    loaded = load(dialect)
    sections = {}  # heads are tried in their order in the section in which they stand
    for form in dialect.forms:
        ways = sections.setdefault(form.opener, [])
        ways.append((re.compile(expand(form.head)), re.compile(f"(?:{expand(form.tail)})")))

    @quick
    @given(members(dialect))
    def check(text):
        found = loaded.read(text, "marker")
        assert found
        at = 0
        for call in found:
            at = text.index(call.raw, at) + len(call.raw)
            assert loaded.read(call.raw) == (call,)
            matches = [[(head.match(call.raw), tail) for head, tail in ways] for ways in sections.values()]
            firsts = [next(((match, tail) for match, tail in ways if match), None) for ways in matches]
            named = [way for way in firsts if way and way[0].groupdict().get("name") in (call.name, None)]
            match, tail = named[0]
            assert match.groupdict().get("id") in (call.id, None)
            empty = match.groupdict().get("empty") is not None  # such a head is the whole call
            ends = [match.end()] if empty else [m.end() for m in tail.finditer(call.raw + text[at : at + 1])]
            assert len(call.raw) in ends
            json.dumps(call.arguments)
            assert call.raw_arguments in call.raw

    check()


@pytest.mark.again
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_marker_is_complete_at_its_end_and_not_before(dialect):
    loaded = load(dialect)

    @quick
    @given(members(dialect), st.data())
    def check(text, data):
        cut = data.draw(st.integers(0, len(text) - 1))
        mismatch = loaded.explain(text[:cut], "marker")
        assert mismatch is not None
        assert 0 <= mismatch.position <= cut
        assert mismatch.expected

    check()


@pytest.mark.again
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_flat_grammar_is_the_grammar(dialect):
    """Imports put together by us and by Lark give the same language, on members and on broken ones."""
    theirs, ours = from_file(dialect), load(dialect).lark

    @quick
    @given(members(dialect), st.data())
    def check(text, data):
        assert in_language(theirs, text, "marker")
        assert in_language(ours, text, "marker")
        at = data.draw(st.integers(0, len(text)))
        broken = text[:at] + data.draw(texts) + text[at + data.draw(st.integers(0, 2)) :]
        for start in ("marker", "call"):
            assert in_language(theirs, broken, start) == in_language(ours, broken, start)

    check()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_generated_calls_are_nasty(dialect):
    seen, nasty, closers = [], [], []
    tails = [text for text in NASTY if text in (")]", "]", "}", "</tool_call>", "</parameter>", "```", "]]>", '"')]

    @settings(quick, max_examples=150, database=None)
    @given(calls(dialect))
    def look(text):
        seen.append(text)
        call = load(dialect).read(text)[0]
        values = json.dumps([call.arguments, call.positional], ensure_ascii=False)
        nasty.extend([text] if any(piece in values for piece in NASTY if len(piece) > 3) else [])
        closers.extend([text] if any(tail in call.raw_arguments[1:-1] for tail in tails) else [])

    look()
    assert len(nasty) > len(seen) / 50
    assert len(closers) > len(seen) / 50


@quick
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=8,
    ),
    st.booleans(),
)
def test_json_means_what_json_means(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    wrapped = f'<tool_call>{{"name": "f", "arguments": {{"x": {text}}}}}</tool_call>'
    assert named("hermes").read(wrapped)[0].arguments == {"x": value}
    assert named("call").read(f'[CALL: f({{"x": {text}}})]')[0].arguments == {"x": value}
    if isinstance(value, list | str):
        assert named("call").read(f"[CALL: f({text})]")[0].arguments == value


# What people have seen models write.

WEATHER_JSON = '{"city": "Paris", "days": 2}'
TIME_JSON = '{"tz": "UTC"}'
WEATHER_ENVELOPE = f'{{"name": "get_weather", "arguments": {WEATHER_JSON}}}'
TIME_ENVELOPE = f'{{"name": "get_time", "arguments": {TIME_JSON}}}'
CANONICAL = {
    "call": [f"[CALL: get_weather({WEATHER_JSON})]"],
    "call, pairs": ["[CALL: get_weather(city=Paris, days=2)]"],
    "hermes": [f"<tool_call>\n{WEATHER_ENVELOPE}\n</tool_call>", f"<tool_call>\n{TIME_ENVELOPE}\n</tool_call>"],
    "qwen_xml": [
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
        "</function>\n</tool_call>",
        "<tool_call>\n<function=get_time>\n<parameter=tz>\nUTC\n</parameter>\n</function>\n</tool_call>",
    ],
    "glm, 4.5": [
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>2</arg_value>\n</tool_call>",
        "<tool_call>get_time\n<arg_key>tz</arg_key>\n<arg_value>UTC</arg_value>\n</tool_call>",
    ],
    "glm, 4.7": [
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value><arg_key>days</arg_key>"
        "<arg_value>2</arg_value></tool_call>",
        "<tool_call>get_time<arg_key>tz</arg_key><arg_value>UTC</arg_value></tool_call>",
    ],
    "mistral, list": [f"[TOOL_CALLS] [{WEATHER_ENVELOPE}, {TIME_ENVELOPE}]"],
    "mistral, v11": [f"[TOOL_CALLS]get_weather[ARGS]{WEATHER_JSON}", f"[TOOL_CALLS]get_time[ARGS]{TIME_JSON}"],
    "mistral, no token": [f"[TOOL_CALLS]get_weather{WEATHER_JSON}"],
    "pythonic": ["[get_weather(city='Paris', days=2), get_time(tz='UTC')]"],
    "pythonic, lfm2": ["<|tool_call_start|>[get_weather(city='Paris', days=2), get_time(tz='UTC')]<|tool_call_end|>"],
    "deepseek, v3": [
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        f"{WEATHER_JSON}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n"
        f"{TIME_JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ],
    "deepseek, v3.1": [
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{WEATHER_JSON}<｜tool▁call▁end｜>"
        f"<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{TIME_JSON}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ],
    "kimi_k2": [
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        f"{WEATHER_JSON}<|tool_call_end|><|tool_call_begin|>functions.get_time:1<|tool_call_argument_begin|>"
        f"{TIME_JSON}<|tool_call_end|><|tool_calls_section_end|>"
    ],
    "gemma4": [
        '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>',
        '<|tool_call>call:get_time{tz:<|"|>UTC<|"|>}<tool_call|>',
    ],
    "toolify": [
        "<function_calls>\n<function_call>\n<tool>get_weather</tool>\n<args_json><![CDATA["
        f"{WEATHER_JSON}]]></args_json>\n</function_call>\n</function_calls>"
    ],
    "fenced": [f"```tool_call\n{WEATHER_ENVELOPE}\n```", f"```json\n{TIME_ENVELOPE}\n```"],
    "fenced, with a type": [
        f'```json\n{{"type": "function", "name": "get_weather", "parameters": {WEATHER_JSON}}}\n```',
        f'```json\n{{"type": "function", "function": "get_time", "arguments": {TIME_JSON}}}\n```',
    ],
    "react": [f"Action: get_weather\nAction Input: {WEATHER_JSON}", f"Action: get_time\nAction Input: {TIME_JSON}"],
}


@pytest.mark.parametrize("what", CANONICAL)
def test_what_models_write_is_read(what):
    found = [call for text in CANONICAL[what] for call in named(what.split(",")[0]).read(text, "marker")]
    typed = [
        (call.name, {key: 2 if (call.untyped and value == "2") else value for key, value in call.arguments.items()})
        for call in found
    ]
    assert typed == [("get_weather", WEATHER), ("get_time", TIME)][: "".join(CANONICAL[what]).count("get_")]
    assert all(call.untyped == (what[:3] in ("qwe", "glm")) for call in found)


def test_an_id_is_the_models_own():
    assert named("kimi_k2").read(CANONICAL["kimi_k2"][0], "marker")[1].id == "functions.get_time:1"
    assert named("mistral").read("[TOOL_CALLS]f[CALL_ID]VvvODy9mT[ARGS]{}")[0].id == "VvvODy9mT"
    assert named("hermes").read('<tool_call>{"id": "a\\n", "name": "f"}</tool_call>')[0].id == "a\n"
    assert named("hermes").read('<tool_call>{"id": 7, "name": "f"}</tool_call>')[0].id is None


# What the body languages mean.


def arguments(text: str):
    return named("call").read(f"[CALL: f({text})]")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" \n ", {}),
        ('{"a": [1]}', {"a": [1]}),
        ("[1, [2]]", [1, [2]]),
        ('"x"', "x"),
        ("7", 7),
        ("-1.5e3", -1500.0),
        ("true", True),
        ("null", None),
        ("zip=007, n=7, x=1e400, y=NaN", {"zip": "007", "n": 7, "x": "1e400", "y": "NaN"}),
        ("a=true, b=True, c=null, d=None, e=TRUE", {"a": True, "b": True, "c": None, "d": None, "e": "TRUE"}),
        ("url=https://x/?p=1&q=2, path=C:\\new", {"url": "https://x/?p=1&q=2", "path": "C:\\new"}),
        ("who=it's me , when= 'to\\'day'", {"who": "it's me", "when": "to'day"}),
        ('"a b" = 1, ключ = 2', {"a b": 1, "ключ": 2}),
        ("a=(1, 'x',), b=(), c=(1), d={'k': [None]}", {"a": [1, "x"], "b": [], "c": [1], "d": {"k": [None]}}),
        ("a=" + "9" * 40, {"a": int("9" * 40)}),
        ('a="\\ud83d\\ude00\\u00e9\\/\\n"', {"a": "😀é/\n"}),
    ],
)
def test_an_argument_list_means(text, expected):
    call = arguments(text)
    assert (call.arguments, call.positional, call.raw_arguments) == (expected, (), text.strip())


@pytest.mark.parametrize(
    ("text", "positional", "pairs"),
    [
        ("Oslo", ("Oslo",), {}),
        ("1e400", ("1e400",), {}),
        ("1, 'a b', {'k': 1}, c=3", (1, "a b", {"k": 1}), {"c": 3}),
        ("https://x/?p=1", ("https://x/?p=1",), {}),
    ],
)
def test_positional_values_are_left_to_the_tools_schema(text, positional, pairs):
    call = arguments(text)
    assert (call.positional, call.arguments) == (positional, pairs)


def test_values_of_parameters_are_text_without_the_markups_line_breaks():
    read = named("qwen_xml").read
    value = "<parameter=a>\r\n\n</parameter> x </tool_call>\n\n</parameter>"
    call = read(f"<function=f>{value}<parameter=b></parameter></function>")[0]
    assert call.arguments == {"a": "\n</parameter> x </tool_call>\n", "b": ""}
    assert call.untyped
    assert call.raw_arguments == f"{value}<parameter=b></parameter>"
    text = "<tool_call>f<arg_key>a</arg_key><arg_value>\n1\n</arg_value></tool_call>"
    assert named("glm").read(text)[0].arguments == {"a": "\n1\n"}


@pytest.mark.parametrize(
    "value",
    [
        '{"a": "<\\/b> & c"}',
        '{"a": "&lt;/b> &amp; c"}',
        "{&quot;a&quot;: &#34;&#x3C;/b&gt; &amp; c&#x22;}",
        ' \n<![CDATA[{"a": "</b>]]> &amp; <![CDATA[c"}]]> ',
        '<![CDATA[{"a": "</b> & c"}]]>',
    ],
)
def test_arguments_in_xml_are_decoded_once(value):
    call = named("toolify").read(f"<function_call><tool>f</tool><args_json>{value}</args_json></function_call>")[0]
    assert call.arguments == {"a": "</b> & c"}
    assert call.raw_arguments == value.strip()


def test_in_cdata_all_is_data():
    inner = '{"a": "</args_json></function_call><function_calls><function_call>"}'
    text = f"<function_call><tool>f</tool><args_json><![CDATA[{inner}]]></args_json></function_call>"
    assert named("toolify").read(text)[0].arguments == json.loads(inner)


def test_a_reference_to_no_character_stays_as_it_is():
    value = '{"a": "&#0; &#xD800; &#1114112; &nbsp; &"}'
    call = named("toolify").read(f"<function_call><tool>f</tool><args_json>{value}</args_json></function_call>")[0]
    assert call.arguments == json.loads(value)


def test_what_the_grammar_cannot_say_is_reported():
    assert arguments('{"a": 1, "\\u0061": 2}').duplicate_keys
    assert arguments("a=1, 'b'=2".replace("'b'", '"a"')).duplicate_keys
    assert arguments('x=1, y={"k": 1, "k": 2}').duplicate_keys
    assert not arguments('{"a": {"a": 1}}').duplicate_keys
    twice = '<tool_call>{"name": "f", "arguments": {}, "x": 1, "x": 2}</tool_call>'
    assert named("hermes").read(twice)[0].duplicate_keys
    assert arguments('{"a": 1e400}').bad_numbers
    assert arguments('{"a": [-' + "9" * 4301 + "]}").bad_numbers
    assert not arguments('{"a": -' + "9" * 4300 + "}").bad_numbers


# Limits.


@pytest.mark.parametrize(
    ("name", "text", "piece", "limit"),
    [
        ("call", "[CALL:*f]", " ", 64),
        ("call", "[CALL: f()*]", " ", 64),
        ("call", "[CALL: *]", "f", 128),
        ("call", "[CALL: f(a=1, *=1)]", "k", 128),
        ("call", '[CALL: f("*"=1)]', "k", 256),
        ("call", "[CALL: f(k=* )]", "x", 4301),
        ("call", "[CALL: f(k=x*x)]", " ", 4299),
        ("hermes", '<tool_call>{"name": "*"}</tool_call>', "x", 128),
        ("qwen_xml", "<function=f><parameter=*></parameter></function>", "k", 256),
        ("gemma4", "call:f{*:1}", "k", 128),
        ("kimi_k2", "<|tool_call_begin|>f:*<|tool_call_argument_begin|>{}<|tool_call_end|>", "7", 127),
        ("react", "Action:*f\nAction Input:{}", " ", 16),
        ("fenced", '```tool_code\n*{"name": "f"}```', "\n", 64),
    ],
)
def test_limits_hold(name, text, piece, limit):
    assert named(name).accepts(text.replace("*", piece * limit))
    assert not named(name).accepts(text.replace("*", piece * (limit + 1)))


def test_white_space_in_bodies_and_behind_words_has_no_limit():
    assert named("call").accepts(f"[CALL: f({' ' * 5000})]")
    assert named("call").accepts(f"[CALL: f(k=x{' ' * 5000})]")
    assert named("hermes").accepts(f'<tool_call>{{{" " * 5000}"name": "f"}}</tool_call>')


@pytest.mark.parametrize(
    ("name", "start", "text"),
    [
        ("call", "call", '[CALL: f({"a": 1}, b=1)]'),
        ("call", "call", "[CALL: f(a=1, b)]"),
        ("call", "call", "[CALL: f(a=1,)]"),
        ("call", "call", "[CALL: f([1,])]"),
        ("call", "call", "[CALL: f([a])]"),
        ("call", "call", "[CALL: f(a='\ud800')]"),
        ("call", "call", "[CALL: f(a=\ud800)]"),
        ("call", "call", '[CALL: f(a="\\ud800")]'),
        ("call", "call", '[CALL: f(a="\\\'")]'),
        ("call", "call", "[CALL: f(a='x'='y')]"),
        ("call", "call", "[call: f()]"),
        ("hermes", "call", '<tool_call>{"name": "f", "name": "g"}</tool_call>'),
        ("hermes", "call", '<tool_call>{"name": "f", "arguments": {}, "parameters": {}}</tool_call>'),
        ("hermes", "call", '<tool_call>{"name": 1}</tool_call>'),
        ("hermes", "call", '<tool_call>{"n\\u0061me": "f"}</tool_call>'),
        ("hermes", "call", '<tool_call>{"x": {"name": "f"}}</tool_call>'),
        ("hermes", "call", '<tool_call>{"name": "f", "arguments": null}</tool_call>'),
        ("fenced", "call", '```json\n{"arguments": {}, "name": "f"}\n```'),
        ("fenced", "call", '```json\n{"name": "f"}\n```'),
        ("mistral", "marker", '{"name": "f"}'),
        ("mistral", "marker", "[TOOL_CALLS] []"),
        ("pythonic", "marker", "[1, f()]"),
        ("pythonic", "marker", "<|tool_call_start|>[f()]"),
        ("qwen_xml", "call", "<function=f><parameter=a><tool_call>\n<function=g></parameter></function>"),
        ("glm", "call", "<tool_call>f<arg_key>a</arg_key><arg_value><tool_call>g<arg_key></arg_value></tool_call>"),
        ("gemma4", "call", 'call:f{a:<|"|>x}'),
        ("gemma4", "call", "call:f{a:1,}"),
        ("toolify", "call", "<function_call><tool>f</tool><args_json>[]</args_json></function_call>"),
        ("toolify", "call", "<function_call><tool>f</tool><args_json></args_json></function_call>"),
        ("toolify", "call", "<function_call><tool>f</tool><args_json><![CDATA[{}</args_json></function_call>"),
        ("kimi_k2", "call", "<|tool_call_begin|>functions.1:0<|tool_call_argument_begin|>{}"),
    ],
)
def test_what_is_not_in_the_language_is_refused(name, start, text):
    assert not named(name).accepts(text, start)


def test_nesting_costs_no_stack():
    depth = 20_000
    value = arguments('{"a": ' + "[" * depth + "]" * depth + "}").arguments["a"]
    for _ in range(depth - 1):
        (value,) = value
    assert value == []
    assert not named("call").accepts('[CALL: f({"a": ' + "[" * depth)


def test_a_long_string_is_one_step():
    text = "\\n\\ud83d\\ude00x" * 50_000
    assert len(arguments(f'{{"a": "{text}"}}').arguments["a"]) == 150_000


# Explanations.


@pytest.mark.parametrize(
    ("name", "text", "position", "message"),
    [
        ("call", "[CALL: me later]", 10, 'expected "(" or "]", found "l"'),
        ("call", "[CALL: f", 8, 'expected "(" or "]", found the end of the text'),
        ("call", "[CALL: f()", 10, 'expected "]", found the end of the text'),
        ("call", "[CALL: f(a=1, b)]", 15, 'expected "=", found ")"'),
        ("call", '[CALL: f(a=1, "b" x)]', 18, 'expected "=", found "x"'),
        ("call", '[CALL: f("a" b)]', 13, 'expected ")" or ",", found "b"'),
        ("call", "[CALL: f(a=[1 2])]", 14, 'expected "," or "]", found "2"'),
        ("call", '[CALL: f({"a": 1}, b=1)]', 17, 'expected ")", found ","'),
        ("call", '[CALL: f(a="x', 13, "expected '\"', found the end of the text"),
        ("call", "[CALL: f(a='x]", 14, 'expected "\'", found the end of the text'),
        ("call", '[CALL: f(a="x\\q")]', 13, 'expected an escape, found "\\"'),
        ("call", '[CALL: f(a="x\n")]', 13, "expected an escape, found a line break"),
        ("call", "[CALL: f()] x", 11, 'expected the end of the text, found " "'),
        ("hermes", '<tool_call>{"name": "f", "x": 1 b}', 32, 'expected ",", found "b"'),
        ("hermes", '<tool_call>{"name": "f"}\n</tool_ca', 34, 'expected "</tool_call>", found the end of the text'),
        ("hermes", '<tool_call>{"name": "f"} \x00', 25, 'expected "</tool_call>", found U+0000'),
        ("hermes", '<tool_call>{"name": ""}', 20, "expected a name in quotes, found '\"'"),
        ("hermes", '<tool_call>{"x": 1}', 18, 'expected ",", found "}"'),
        ("hermes", '<tool_call>{"name": "f", "arguments": 1}', 38, 'expected "{", found "1"'),
        ("react", "Action: f\nAction Input: {1}", 25, 'expected "}" or a string, found "1"'),
        ("react", "Action: f", 9, 'expected a line break and "Action Input:", found the end of the text'),
        ("gemma4", 'call:f{<|"|>a<|"|> 1}', 19, 'expected ":", found "1"'),
        ("gemma4", 'call:f{a:<|"|>x', 15, "expected '<|\"|>', found the end of the text"),
        ("qwen_xml", "<function=f><parameter=a>x", 26, 'expected "</parameter>", found the end of the text'),
        ("qwen_xml", "<function=f><parameter=a>x<tool_call><function=g>", 26, 'expected "</parameter>", found "<"'),
        ("glm", "<tool_call>f x", 13, 'expected "<arg_key>" or "<param_key>", found "x"'),
        (
            "toolify",
            '<function_call><tool>f</tool><args_json>&#123;<![CDATA["a":]]></args_json></function_call>',
            62,
            'expected "[", "false", "null", "true", "{", a number or a string, found the end of the text',
        ),
    ],
)
def test_an_error_is_explained(name, text, position, message):
    mismatch = named(name).explain(text)
    assert (mismatch.position, str(mismatch)) == (position, message)
    with pytest.raises(Mismatch, match=re.escape(message)):
        named(name).read(text)


def test_a_member_needs_no_explanation():
    assert named("call").explain("[CALL: f]") is None
    assert named("call").accepts("[CALL: f]", "marker")


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("qwen_xml", '<function=f><parameter=a></parameter><param name="b"></parameter></function>'),
        ("qwen_xml", "<function=f><parameter=a><value></ parameter></tool_call></parameter></function>"),
        ("invoke", '<invoke name="f"><parameter name="a"></value><param name="b"></parameter></invoke>'),
        ("glm", "<tool_call>f<arg_key>a</arg_key><arg_value><param></param></tool_call></arg_value></tool_call>"),
        ("minicpm5", '<function name="f"><param name="a"><value></arg_value></function></param></function>'),
    ],
)
def test_tags_of_neighbours_in_a_value_are_to_the_grammar_what_they_are_to_reading(dialect, text):
    check_grammar(dialect, text)


# Dialects of one's own.


def test_a_grammar_of_ones_own_imports_ours_and_its_neighbours(tmp_path):
    (tmp_path / "ends.lark").write_text('_END: "</call>"\n', encoding="utf-8")
    dialect = own(
        tmp_path,
        "%import .json (root)\n%import .heads (NAME)\n%import .ends (_END)\n%import common.DIGIT\n"
        'marker: call\ncall: "<call " NAME ">" root DIGIT? _LINE? _END\n_LINE: /\\n++/\n',
    )
    assert load(dialect) is load(dialect)
    assert load(dialect).read('<call f>{"a": 1}\n</call>', "marker")[0].arguments == {"a": 1}
    assert str(load(dialect).explain("<call f>{}\n\n\n<")) == 'expected "</call>", found the end of the text'
    assert str(load(dialect).explain("<call f>{} x")) == 'expected "</call>", digit or line, found " "'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('marker: "x"', "expected the rules marker, call, found no call"),
        ('call: "x"', "expected the rules marker, call, found no marker"),
        ('marker: call\ncall: "x" y', "y"),
        ("marker: call\ncall: /(/", r"compile token .*: missing \), unterminated subpattern at position 0$"),
        ("marker: call\ncall: X\nX: /x*/", r"zero-width terminals\. \(X: 'x\*'\)$"),
        ("marker: call\ncall: X\nX: /x++ | \\n(?! y | z )/x", "zero-width .*; in a verbose pattern"),
        (
            "%import .json (root,\n  _WS)\nmarker: call\ncall: root X\nX: /</x>/",
            r"at line 5 column 8 (?s:.*\^); in a pattern a slash is written \\/$",
        ),
        (
            "%import .json (root)\nmarker: call\n%override root: /\n  x/\ncall: root (\n",
            r"at line [0-9]+ (?s:.*\^); line [0-9]+ is line [0-9]+ of json.lark, before which the end of \S+own.lark",
        ),
        ("marker: call\ncall: " + "(" * 3000 + '"x"' + ")" * 3000, "recursion"),
        ('marker: call\ncall: a | b\na: "x"\nb: "x"', "Reduce/Reduce"),
        ("marker: (", "own"),
        ("%import .json (root)\nmarker: call\ncall: root\nroot: NAME", "defined more than once; .* anew by %override$"),
        ("%import .json.root\nmarker: call\ncall: root", "expected imports of the form"),
        ("%import .nowhere (root)\nmarker: call\ncall: root", "nowhere.lark"),
        ("%import nowhere.ROOT\nmarker: call\ncall: ROOT", "nowhere"),
    ],
)
def test_a_grammar_that_is_wrong_is_the_authors_mistake(tmp_path, text, message):
    with pytest.raises(DialectError, match=message):
        load(own(tmp_path, text))


def test_a_grammar_of_ones_own_is_read_again_when_it_was_edited(tmp_path):
    """Whoever tries a grammar out changes it under the same name, in one session of Python."""
    text = """%import .json (root)\nmarker: call\ncall: "<call " NAME ">" root\nNAME: /[a-z]++/\n"""
    assert load(own(tmp_path, text)).accepts("<call f>{}")
    edited = own(tmp_path, text.replace('">"', '" >"'))
    assert not load(edited).accepts("<call f>{}")
    (tmp_path / "own.lark").unlink()
    with pytest.raises(DialectError, match="expected a path, or a file of callmark"):
        load(edited)


def test_a_grammar_with_the_parts_of_another_body_is_told_and_raises_on_no_text(tmp_path):
    text = """marker: call\ncall: "<x " NAME ">{" QUOTED "}"\nNAME: /[a-z]++/\nQUOTED: /"[a-z]++"/"""
    dialect = own(tmp_path, text, head=r"<x {name}>(?=\{)", body="json")
    with pytest.raises(DialectError, match=r"dialect own: grammar: \S+/own.lark: expected the body that the row"):
        load(dialect).read('<x f>{"a"}')
    (problem,) = parse('<x f>{"a"}', dialects=dialect).problems
    assert problem.code == "unexpected-text"


def test_parameters_without_keys_want_a_rule_for_their_value(tmp_path):
    dialect = own(
        tmp_path, 'marker: call\ncall: "x"', body="parameters", parameter="<a>", value_end="</a>", tail="</call>"
    )
    with pytest.raises(DialectError, match="value"):
        load(dialect)


def test_a_missing_grammar_is_named():
    form = Form(head="<{name}>", body="json")
    with pytest.raises(DialectError, match=r"none\.lark"):
        load(Dialect(name="none", title="", models="", source="", forms=(form,)))
    with pytest.raises(DialectError, match=r"none\.lark"):
        flatten(Dialect(name="none", title="", models="", source="", forms=(form,)))


def test_a_grammar_that_is_no_text_is_named(tmp_path):
    dialect = own(tmp_path, "marker: call")
    Path(dialect.grammar).write_bytes(b"call: \xff")
    with pytest.raises(DialectError, match="utf-8"):
        load(dialect)


def test_an_envelope_has_keys_of_its_own_where_its_grammar_overrides_them(tmp_path):
    page = Path(__file__).parent.parent.joinpath("grammars", "README.md").read_text("utf-8")
    (overrides,) = re.findall(r"^  (%import \.envelope.*?)\n  ```", page, re.MULTILINE | re.DOTALL)
    text = f'{dedent("  " + overrides)}\nmarker: call\ncall: "<own>" envelope "</own>"\n'
    dialect = own(tmp_path, text, head=r"<own>(?=\{)", body="envelope", tail="</own>", name_keys=("fn",),
                  arguments_keys=("kw",))  # fmt: skip
    check_dialect(dialect)
    marker = r'<own>{"fn": "f", "n\u0061me\ud83d\ude00": "x", "kw": {"arguments": 1}, "arguments": {}}</own>'
    check_grammar(dialect, marker)
    (call,) = load(dialect).read(marker, "marker")
    assert (call.name, call.arguments) == ("f", {"arguments": 1})
    assert not load(dialect).accepts('<own>{"name": "f", "arguments": {}}</own>', "marker")
    check_grammar(dialect, '<own>{"name": "f", "arguments": {}}</own>')
    check_grammar(dialect, '<own>{"tool_call_id": {}, "fn": "f"}</own>')


@pytest.mark.parametrize(("inside", "identity"), [("", "c1"), ('"id": "c2", ', "c2"), ('"id": "", ', "c1")])
def test_the_head_of_an_envelope_may_have_an_id(tmp_path, inside, identity):
    text = '%import .envelope (envelope)\nmarker: call\ncall: "<own " ID ">" envelope "</own>"\nID: /[a-z0-9]{1,9}+/\n'
    dialect = own(tmp_path, text, head=r"<own (?P<id>[a-z0-9]{1,9}+)>(?=\{)", body="envelope", tail="</own>")
    check_dialect(dialect)
    marker = f'<own c1>{{{inside}"name": "f", "arguments": {{}}}}</own>'
    check_grammar(dialect, marker)
    assert parse(marker, dialects=dialect).calls[0].id == load(dialect).read(marker, "marker")[0].id == identity


def test_what_is_overridden_may_have_a_priority_or_a_mark_on_either_side(tmp_path):
    parts = "NAME.3: /[a-z]/\n  | /[A-Z]/\n?body : root \";\"\nBEGIN: \"<\""  # no line break at the end
    tmp_path.joinpath("parts.lark").write_text(parts, "utf-8")
    text = """%import .parts (NAME, BEGIN, body)\n%import .json (root)\nmarker: call\ncall: BEGIN NAME ">" body
%override BEGIN: "<call "\n%override NAME.2 : /[x-z]/\n%override ?body: root | root "."\n"""
    markers = ["<call x>{}", "<call y>{}.", "<call a>{}", "<call x>{};", "<x>{}"]
    assert [*filter(load(own(tmp_path, text)).accepts, markers)] == markers[:2]


def test_raw_values_of_ones_own_are_as_its_page_has_them(tmp_path):
    page = Path(__file__).parent.parent.joinpath("grammars", "README.md").read_text("utf-8")
    (parameters,) = re.findall(r"^  (parameter: .*?)\n  ```", page, re.MULTILINE | re.DOTALL)
    (row,) = re.findall(r"^  \(the row has (.*)\):$", page, re.MULTILINE)
    call = """marker: call\ncall: "<do task=\\"" NAME "\\">" parameter* _GAP? "</do>"\n"""
    dialect = own(
        tmp_path, "%import .heads (_GAP, NAME)\n" + call + dedent("  " + parameters) + "\n", body="parameters",
        **dict(re.findall(r"`(\w+) = '(.*?)'`", row)),
    )  # fmt: skip
    check_dialect(dialect)
    tags = ['<do task="f">', '<do task="', '<set key="a">', '<set key="b">', "</set>", "</ set>", "</do>", "</ do>"]

    @given(st.lists(st.sampled_from([*tags, "</set", "</parameter>", "<", '"', "x", " ", "\n"]), max_size=9))
    def agree(pieces):
        check_grammar(dialect, '<do task="f"><set key="a">' + "".join(pieces) + "</set></do>")

    agree()


def test_tags_named_after_tools_are_read_as_its_page_has_them(tmp_path):
    page = Path(__file__).parent.parent.joinpath("grammars", "README.md").read_text("utf-8")
    for name, text in re.findall(r"^```\w+ (cline\.\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        tmp_path.joinpath(name).write_text(text, "utf-8")
    dialect = load_dialect(tmp_path / "cline.toml")
    names = ["<read_file>", "</read_file>", "<write_to_file>", "</ write_to_file>", "<path>", "<content>"]
    other = ["</path>", "</ path >", "</content>", "</content", "</parameter>", "<p>", "<", "x", " ", "\n"]

    @given(st.lists(st.sampled_from(names + other), max_size=9))
    def agree(pieces):
        marker = "<write_to_file>\n<content>" + "".join(pieces) + "</content></write_to_file>"
        check_grammar(dialect, marker)
        check_all(marker, dialects=[dialect])

    agree()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_expected_is_told_in_words(dialect):
    """The name of a terminal means nothing to a reader: it has words, or shows with what it begins."""
    patterns = {it.name: str(it.pattern.value) for it in load(dialect).lark.terminals if it.pattern.type != "str"}
    known = {name for name, text in patterns.items() if _WORDS.get(name) or _WORDS.get(_kind(name)) or _begins(text)}
    assert patterns.keys() - known <= {"_LINE"}


def test_elements_in_a_value_are_an_object_or_a_list():
    tag = "]<]minimax[>["
    items = "".join(f"{tag}<item>{text}{tag}</item>" for text in ("1", f"\n{tag}<k>x{tag}</k>", "007"))
    marker = f'{tag[1:]}<invoke name="f">{tag}<a>{items}{tag}</a>{tag}<b>y{tag}</b>{tag}</invoke>'
    (call,) = load(*select("minimax_m3")).read(marker, "marker")
    assert call.arguments == {"a": ["1", {"k": "x"}, "007"], "b": "y"}
    check_grammar("minimax_m3", marker)


@pytest.mark.parametrize("value", ['{"a": 1, "a": 2}', '[{"a": {"b": 1, "b": 1}}]', r'{"a": 1, "\u0061": 2}'])
def test_json_in_a_raw_value_may_be_refused_for_a_key_twice(value):
    """No grammar sees it: there, a raw value is text."""
    for dialect, marker in (
        ("glm", f"<tool_call>f<arg_key>x</arg_key><arg_value>{value}</arg_value></tool_call>"),
        ("qwen_xml", f"<function=f>\n<parameter=x>\n{value}\n</parameter>\n</function>"),
    ):
        (problem,) = parse(marker, dialects=dialect, tolerance="strict").problems
        assert problem.code == "duplicate-key"
        check_grammar(dialect, marker)
