"""Exported grammars, tried in the engines that they are for: what they accept is what strict reading reads."""

from __future__ import annotations

import contextlib
import json
import re

import jsonschema
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from callmark import (
    Dialect,
    Form,
    UsageError,
    Writing,
    WrittenCall,
    dialects,
    export_grammar,
    parse,
    render_call,
    render_calls,
)
from callmark.writing.examples import example_arguments
from callmark.writing.export import TARGETS
from callmark.writing.toolset import tool_specs
from engines import llguidance_accepts, llguidance_writes, outlines_accepts
from strategies import mutated
from writing import RAW, hostile_strings, toolsets

NAMES = [dialect.name for dialect in dialects()]
each_dialect = pytest.mark.parametrize("dialect", NAMES)
EVERYWHERE = dict.fromkeys(("fence", "code", "quote", "reasoning"), "allow")
TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 20},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
                "unit": {"type": "string", "enum": ["C", "F"]},
                "exact": {"type": "boolean"},
            },
            "required": ["city"],
        },
    },
    {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "number"},
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 3},
                "where": {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]},
            },
            "required": ["a"],
        },
    },
    {"name": "stop", "parameters": {"type": "object", "properties": {}}},
]
SCHEMAS = {spec.name: spec.schema for spec in tool_specs(TOOLS)}
CALLS = [
    WrittenCall("get_weather", {"city": "Oslo"}),
    WrittenCall("get_weather", {"city": "a b", "days": 7, "unit": "F", "exact": True}),
    WrittenCall("add", {"a": -1.5}),
    WrittenCall("add", {"a": 12, "tags": ["x", ""], "where": {"x": None}}),
    WrittenCall("stop", {}),
]
some_calls = st.lists(st.sampled_from(CALLS), min_size=1, max_size=3)
prose = st.sampled_from(["", "Let me see. ", "Well, [1] says\n", "a < b [CAL", "天气 ", "`x`\n", "Action\n"])


def calls_in(text, dialect, tools=TOOLS, **options):
    parsed = parse(text, dialects=dialect, tools=tools, tolerance="strict", contexts=EVERYWHERE, **options)
    bad = [problem for problem in parsed.problems if problem.code != "too-many-calls"]
    assert bad == [], text
    return [(call.name, call.arguments) for call in parsed.calls]


def check(calls, schemas, *, least=0, most=16):
    assert least <= len(calls) <= most
    for name, arguments in calls:
        assert list(jsonschema.Draft202012Validator(schemas[name]).iter_errors(arguments)) == []


@each_dialect
@given(calls=some_calls, before=prose, after=prose)
def test_calls_of_ours_are_accepted(dialect, calls, before, after):
    row = next(row for row in dialects() if row.name == dialect)
    if row.forms[row.writing.form].line_start and before and not before.endswith("\n"):
        before += "\n"
    text = render_calls(calls, dialect)
    assert llguidance_accepts(export_grammar(TOOLS, dialect).text, before + text + "\n" + after)
    required = export_grammar(TOOLS, dialect, free_text=False, tool_choice="required").text
    assert llguidance_accepts(required, text)
    assert not llguidance_accepts(required, "x" + text)
    single = export_grammar(TOOLS, dialect, parallel=False).text
    assert llguidance_accepts(single, before + text + after) == (len(calls) == 1)
    none = export_grammar(TOOLS, dialect, tool_choice="none").text
    assert llguidance_accepts(none, before + "\n" + after)  # `[CAL` and `Let` would make an opener
    assert not llguidance_accepts(none, before + text + after)


@each_dialect
@settings(max_examples=min(40, 2 * settings.default.max_examples))
@given(data=st.data())
def test_what_strict_reading_rejects_is_refused(dialect, data):
    rendered = some_calls.map(lambda calls: "Hm.\n" + render_calls(calls, dialect))
    text = data.draw(mutated(rendered, most=2))
    if "\ud800" <= max(text, default="") <= "\udfff" or re.search("[\ud800-\udfff]", text):
        return
    for choice, least in (("auto", 0), ("required", 1)):
        if llguidance_accepts(export_grammar(TOOLS, dialect, tool_choice=choice).text, text):
            check(calls_in(text, dialect), SCHEMAS, least=least)


@pytest.mark.again
@each_dialect
def test_what_a_grammar_lets_a_model_write_is_read(dialect):
    """A model of no sense at all, held by the grammar only."""
    for choice in ("required", "get_weather", "auto"):
        grammar = export_grammar(TOOLS, dialect, tool_choice=choice, free_text=choice == "auto").text
        written = [text for seed in range(25) for text in [llguidance_writes(grammar, seed)] if text is not None]
        assert len(written) > 5
        for text in written:
            calls = calls_in(text, dialect)
            check(calls, SCHEMAS, least=choice != "auto", most=1 if choice == "get_weather" else 16)
            assert choice != "get_weather" or calls[0][0] == choice


def test_names_and_values_are_held_to_the_tools():
    grammar = export_grammar(TOOLS).text
    for refused in (
        "[CALL: nope({})]",
        '[CALL: get_weather({"city": 7})]',
        '[CALL: get_weather({"city": "Oslo", "days": 8})]',
        '[CALL: get_weather({"days": 2})]',
        '[CALL: get_weather({"city": "Oslo", "extra": 1})]',
        '[CALL: get_weather({"city": "' + "x" * 21 + '"})]',
        '[CALL: add({"a": 1, "tags": ["x", "x", "x", "x"]})]',
        '[ CALL : get_weather({"city": "Oslo"})]',
        "[CALL: get_weather",
        '[CALL: get_weather({"city": "\\ud800"})]',
        '[CALL: get_weather({"city": "\\uDC00"})]',
    ):
        assert not llguidance_accepts(grammar, f"So: {refused} there"), refused
    for taken in ('[CALL: get_weather({"city":"Oslo\\/","days":2})]', "[CAL", "[[CALL: stop({})]", "no call"):
        assert llguidance_accepts(grammar, f"So: {taken} there"), taken


def test_a_nonce_is_wanted():
    grammar = export_grammar(TOOLS, nonce="7f3a").text
    assert llguidance_accepts(grammar, "x [CALL#7f3a: stop({})]")
    assert not llguidance_accepts(grammar, "x [CALL: stop({})]")


@each_dialect
def test_one_regex_says_calls_without_text(dialect):
    pattern = export_grammar(TOOLS, dialect, "regex", free_text=False, tool_choice="required", parallel=False).text
    for call in CALLS:
        text = render_calls([call], dialect)
        assert re.fullmatch(pattern, text)
        assert not re.fullmatch(pattern, text[:-1])


def test_outlines_takes_the_regex():
    tools = [TOOLS[0], TOOLS[2]]
    pattern = export_grammar(tools, "call", "regex", free_text=False, tool_choice="required", parallel=False).text
    assert outlines_accepts(pattern, '[CALL: get_weather({"city": "Oslo", "days": 2})]')
    assert outlines_accepts(pattern, "[CALL: stop({})]")
    for refused in ('[CALL: get_weather({"city": "Oslo", "days": 9})]', "[CALL: stop({})] ", "[CALL: add({})]", ""):
        assert not outlines_accepts(pattern, refused)


@each_dialect
@settings(max_examples=3)
@given(tools=toolsets)
def test_any_tools_make_a_grammar_whose_calls_are_read(dialect, tools):
    specs = {spec.name: spec for spec in tool_specs(tools)}
    grammar = export_grammar(tools, dialect, tool_choice="required", free_text=False)
    for seed in range(2):
        text = llguidance_writes(grammar.text, seed, most=300)
        loose = any("keys that differ" in note or "uniqueItems" in note for note in grammar.unenforced)
        if text is not None and not loose:
            calls = calls_in(text, dialect, tools)
            assert calls
            if not grammar.unenforced:
                check(calls, {name: spec.schema for name, spec in specs.items()}, least=1)


@settings(max_examples=min(15, settings.default.max_examples))
@given(tools=toolsets)
def test_examples_of_ours_are_accepted_for_any_tools(tools):
    grammar = export_grammar(tools, tool_choice="required", free_text=False)
    for spec in tool_specs(tools):
        example = example_arguments(spec)
        if example is not None and all(key in spec.schema.get("properties", {}) for key in example):
            ordered = {key: example[key] for key in spec.schema["properties"] if key in example}
            text = render_calls([WrittenCall(spec.name, ordered)], "call")
            if len(text) < 300 and "{" not in json.dumps(list(ordered.values())):
                assert llguidance_accepts(grammar.text, text) or grammar.unenforced


WORD = {"type": "string"}
FILTER = {
    "anyOf": [
        {"properties": {"all": {"type": "array", "items": {"$ref": "#/$defs/filter"}}}, "required": ["all"]},
        {"properties": {"field": {"type": "string"}, "is": {"enum": [1, "g"]}}, "required": ["field", "is"]},
    ],
    "type": "object",
}
TREE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    "required": ["v"],
    "additionalProperties": False,
}
PAIR = {"type": "array", "prefixItems": [WORD, {"type": "integer"}], "items": False, "minItems": 2}
MARKUP = ['say "hi"', "it's", "</arg_value>", '<|"|>', "]]>", "\\n", "</parameter>\n</invoke>", "<b>a < b && c > d]"]
# A schema of the argument `a`, values that it takes, and values that it does not
DEFS = {"tree": TREE, "filter": FILTER}
PROPERTIES = (
    ({"anyOf": [{"type": "integer"}, {"enum": MARKUP}, {"properties": {"k": {"const": None}}, "required": ["k"]}]},
     [3, *MARKUP, {"k": None}], ["nope", 1.5, {"k": 1}]),
    ({"const": {"x": ["</parameter>", True], "b c": "<|"}}, [{"x": ["</parameter>", True], "b c": "<|"}], [{"x": []}]),
    ({"enum": [1, "1", None, True, 1.5]}, [1, "1", None, True, 1.5], [2, "2"]),
    ({"type": "number", "enum": [1, 2.5]}, [1, 2.5], [3]),
    ({"type": ["number", "null"]}, [-1.25, 3, None], ["x", True]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
     [[1, 2], [1, 2, 3]], [[1], [1] * 4]),
    ({"type": "array", "prefixItems": [WORD, {"$ref": "#/$defs/tree"}, *[{"type": "integer"}] * 3], "minItems": 1},
     [["x"], ["x", {"v": 1}], ["x", {"v": 1}, 1], ["x", {"v": 1}, 1, 2, 3]], [[], [1], ["x", 1], ["x", {"v": 1}, "y"]]),
    ({"$ref": "#/$defs/tree"}, [{"v": 1}, {"v": 1, "kids": [{"v": 2, "kids": []}]}], [{"kids": []}, {"v": 1, "w": 1}]),
    ({"$ref": "#/$defs/filter"}, [{"field": "f", "is": 1}, {"all": [{"field": "f", "is": "g"}, {"all": []}]}], [{}, 1]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1}, {"b c": 2}], [{"a": "x"}, []]),
    ({"type": "array", "items": {"type": "array", "items": PAIR}},
     [[], [[]], [[["x", 1]], []]], [[[["x", 1, 2]]], [["x"]]]),
    (WORD, ["", " x ", "null", "12", "a<b", "\t", "<<<", "a\n<zz>b</zz>\n", "</", "]]", "a]>", *MARKUP[4:6]], []),
    ({"type": "array", "items": WORD}, [["<b>", "</b>", "a[0]>1", '"', '<"', '</"']], ["x", [1]]),
    ({"type": "string", "minLength": 2, "maxLength": 4}, ["ab", "天気天気", "a\nb", '"\\x', "[0]"], ["a", "abcde"]),
    ({"type": "string", "minLength": 3}, ["abc", "a < b", "<b>a</b>", "if a[0]<b"], ["ab", "<"]),
    ({"type": ["string", "integer"], "minLength": 2}, ["ab", 7], [True, "a"]),
    ({"anyOf": [{"const": True}, {"type": "string", "maxLength": 4}]}, [True, "True", "x"], [False, "False"]),
    ({"anyOf": [{"enum": [5, "x"]}, {"type": "string", "maxLength": 4}]}, [5, "5", "x"], [6, "12345"]),
)  # fmt: skip


def toolset_of(schema, key="a"):
    parameters = {"properties": {key: schema, "b": {"type": "boolean"}}, "required": [key], "$defs": DEFS}
    return [{"name": "tool-x", "parameters": parameters}, {"name": "other"}]


def check_property(dialect, target, accepts, schema, good, bad, key="a"):
    """A value that we can write and that is read back is taken, and one that the schema does not allow is not."""
    tools = toolset_of(schema, key)
    grammar = export_grammar(tools, dialect, target, free_text=False, tool_choice="required").text
    written = 0
    for value in good:
        for arguments in ({key: value}, {key: value, "b": True}):
            try:
                text = render_calls([WrittenCall("tool-x", arguments)], dialect, tools=tools)
            except UsageError:
                assert dialect in RAW
                continue
            assert accepts(grammar, text), text
            written += 1
    assert written
    for value in bad:
        for known in (tools, None):
            try:
                text = render_calls([WrittenCall("tool-x", {key: value})], dialect, tools=known)
            except UsageError:
                continue
            if accepts(grammar, text):  # where all is text, a number is one
                check(calls_in(text, dialect, tools), {"tool-x": tools[0]["parameters"]}, least=1)


@each_dialect
def test_schemas_that_hold_much(dialect):
    for schema, good, bad in PROPERTIES:
        check_property(dialect, "llguidance", llguidance_accepts, schema, good, bad)
    if dialect in ("call", "pythonic", "gemma4"):
        check_property(dialect, "llguidance", llguidance_accepts, {"type": "integer"}, [1], ["x"], key="a b")


def test_properties_that_only_a_pattern_names_may_be_there():
    schema = {"type": "object", "patternProperties": {"^[a-z]$": {"type": "integer"}}, "additionalProperties": False}
    made = export_grammar({"f": schema}, free_text=False)
    assert made.unenforced == ("f: patternProperties", "f: keys that differ")
    assert llguidance_accepts(made.text, '[CALL: f({"a": 1})]')
    assert not llguidance_accepts(made.text, '[CALL: f({"a": "x"})]')


@pytest.mark.again
@each_dialect
def test_what_is_written_for_them_satisfies_them(dialect):
    found = 0
    for schema, _, _ in PROPERTIES:
        tools = toolset_of(schema)
        grammar = export_grammar(tools, dialect, tool_choice="tool-x", free_text=False)
        assert set(grammar.unenforced) <= {"tool-x.a: keys that differ"}
        for seed in range(4):
            text = llguidance_writes(grammar.text, seed)
            if text is not None and not grammar.unenforced:
                check(calls_in(text, dialect, tools), {"tool-x": tools[0]["parameters"]}, least=1)
                found += 1
    assert found > 10


@each_dialect
@settings(max_examples=min(60, 2 * settings.default.max_examples))
@given(text=hostile_strings)
def test_a_text_that_is_taken_for_a_value_is_that_value(dialect, text):
    """Whatever stands where a text is due: a closer does not, where it would be one."""
    tools = {"f": {"properties": {"a": WORD}, "required": ["a"], "additionalProperties": False}}
    around = render_calls([WrittenCall("f", {"a": "§"})], dialect, tools=tools)
    written = around.replace("§", text)
    if llguidance_accepts(export_grammar(tools, dialect, tool_choice="f", free_text=False).text, written):
        ((name, arguments),) = calls_in(written, dialect, tools)
        assert (name, arguments.keys(), type(arguments["a"])) == ("f", {"a"}, str)
        event("taken")


def test_raw_values_know_the_closers_of_ones_own_dialect():
    form = Form(
        head=r"\[do {name}\]", body="parameters", parameter=r"{ws}\[(?P<key>[a-z]+):", value_end=r":\]",
        nested=r"\r?\n=+|@[0-9]", tail=r"{ws}\[end\]", begins="[",
    )  # fmt: skip
    writing = Writing(call="[do {name}]{arguments}[end]", parameter="[{key}:{value}:]")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    grammar = export_grammar({"f": {"properties": {"a": WORD}}}, own, tool_choice="f", free_text=False).text
    for text in ("", "x", "<a>", "[b", "::x", "a:", ":[", "x]"):
        assert llguidance_accepts(grammar, f"[do f][a:{text}:][end]"), text
    for text in (":]", "a:][end]", "\n==", "@1", "::]x"):
        assert not llguidance_accepts(grammar, f"[do f][a:{text}:][end]"), text


@pytest.mark.parametrize(
    ("nested", "ends", "template", "text", "good"),
    [
        (r"\n@go[ ]{name};", ";", "a={value};", "x\n@go g", "x\ngo g"),
        ("[@!]go[ ]{name};", ";", "a={value};", "x!go g", "x!o @ h"),
        ("[@!]{name};", ";", "a={value};", "x!g", "x g"),
        ("@go {name}(?=;)", ";", "a={value};", "x@go g", "x go g"),
        ("@go {name};", "[;,]", "a={value};", "x@go g", "x go g"),
        (r"\n@go[ ]{name};", ";", "a=\n{value};", "@go g", "go g\n"),
        (r"[@]go[ ]{name}(?=;)", "(?=;)", "a={value}", "x@go g", "x go g"),
        ("<go {name}</a>", "</a>", "a={value}</a>", "x<go g", "x < go"),
        ("<go></a>", "</a>", "a={value}</a>", "x<go>", "x < go"),
        ("<go></a>(?:bc)*;", "</a>", "a={value}</a>", "x<go>", "x < go"),
        (r"[ ]*;go[ ]{name};", ";", "a={value};", "x ;go g", "x go g"),
        ("@go;(?:bc)*", ";", "a={value};", "x@go", "x go"),
        ("@go<(?:bc)*;", "</a>", "a={value}</a>", "x@go<;", "x@go"),
    ],
)
def test_a_value_begins_no_call_that_goes_on_behind_it(nested, ends, template, text, good):
    form = Form(
        head=f"(?:{nested.replace('{name}', '[a-z]{1,9}+')}|@do)(?P<name>[a-z])!", body="parameters", begins="\n@!<",
        parameter="(?P<key>[a-z])=", value_end=ends, tail=";?@end", nested=nested, trim=True,
    )  # fmt: skip
    writing = Writing(call="@do{name}!{arguments};@end", parameter=template.replace("a=", "{key}="))
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    tools = {"f": {"properties": {"a": {"type": "string"}}, "required": ["a"]}}
    with pytest.raises(UsageError, match="expected no end of a value and no marker in the value of 'a', found one"):
        render_call("f", {"a": text}, own, tools=tools)
    lark = export_grammar(tools, own, tool_choice="f", free_text=False).text
    pattern = export_grammar(tools, own, "regex", tool_choice="f", free_text=False).text
    for value, written in ((text, False), (good, True)):
        shown = f"@dof!{template.replace('{value}', value)};@end"
        assert [llguidance_accepts(lark, shown), bool(re.fullmatch(pattern, shown))] == [written, written]


@pytest.mark.parametrize("nested", ["[^a]", "[^ab]"])
def test_values_that_nothing_can_keep_from_ending_are_told(nested):
    form = Form(head="@{name};", body="parameters", begins="@", parameter="{key}=", value_end=f"{nested};", tail="end")
    writing = Writing(call="@{name};{arguments}end", parameter="{key}={value}!;")
    own = Dialect(name="own", title="", models="", source="", forms=(replace(form, nested=nested),), writing=writing)
    with pytest.raises(UsageError, match="dialect own: expected ends of values that have a character of few, found "):
        export_grammar({"f": {}}, own)


@pytest.mark.parametrize("encoding", ["raw", "xml"])
def test_arguments_that_are_one_value_of_ones_own_dialect_hold_no_call(encoding):
    form = Form(
        head=r"<act>{ws}<nm>{name}</nm>(?={ws}<(?:js>|/act>))", body="parameters", parameter="{ws}<js>",
        value_end="</js>", tail="{ws}</act>", nested="<act>{ws}<nm>{name}</nm>", encoding=encoding,
    )  # fmt: skip
    writing = Writing(call="<act><nm>{name}</nm><js>{arguments}</js></act>")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    tools = {"f": {"properties": {"a": WORD, "b": {"enum": ["</js></act>"]}}, "required": ["a"]}}
    lark = export_grammar(tools, own, tool_choice="f", free_text=False).text
    pattern = export_grammar(tools, own, "regex", tool_choice="f", free_text=False).text
    for text, escaped in (
        ("x > y", "x > y"), ("<act><nm>g</nm></act>", "\\u003cact>\\u003cnm>g\\u003c/nm>\\u003c/act>"),
        ("}</js></act>", "}\\u003c/js>\\u003c/act>"), ("<![CDATA[x", "\\u003c![CDATA[x"),
        ("&amp;", "\\u0026amp;" if encoding == "xml" else "&amp;"),
    ):  # fmt: skip
        arguments = {"a": text, "b": "</js></act>"}
        shown = render_calls([WrittenCall("f", arguments)], own, tools=tools)
        assert shown == f'<act><nm>f</nm><js>{{"a": "{escaped}", "b": "\\u003c/js>\\u003c/act>"}}</js></act>'
        assert calls_in(shown, own, tools) == [("f", arguments)]
        for said in {text, escaped}:
            read = f'<act><nm>f</nm><js>{{"a": "{said}"}}</js></act>'
            assert [llguidance_accepts(lark, read), bool(re.fullmatch(pattern, read))] == [said == escaped] * 2, read


def test_values_in_attributes_of_ones_own_dialect_have_their_quotes_as_entities():
    form = Form(
        head='<do[ ]task="{name}"', body="parameters", parameter='[ ](?P<key>[a-z]{1,9}+)="', value_end='"',
        tail="{ws}/>", encoding="xml", trim=False,
    )  # fmt: skip
    writing = Writing(call='<do task="{name}"{arguments}/>', parameter=' {key}="{value}"')
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    words = {"enum": ['say "hi" & it\'s', '" b="1', "x"]}
    tools = {"f": {"properties": {"a": words, "b": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]}}
    lark = export_grammar(tools, own, tool_choice="f", free_text=False).text
    for text, escaped in (
        ('say "hi" & it\'s', "say &quot;hi&quot; &amp; it&#x27;s"), ('" b="1', "&quot; b=&quot;1"), ("x", "x"),
    ):  # fmt: skip
        arguments = {"a": text, "b": ['"y"', ""]}
        shown = render_calls([WrittenCall("f", arguments)], own, tools=tools)
        assert shown == f'<do task="f" a="{escaped}" b="[&quot;\\&quot;y\\&quot;&quot;, &quot;&quot;]"/>'
        assert calls_in(shown, own, tools) == [("f", arguments)]
        assert llguidance_accepts(lark, shown)
    # The first `"/>` ends the call.
    assert not llguidance_accepts(lark, '<do task="f" a="x" b="[&quot;y\\"/>&quot;]"/>')
    assert render_calls([WrittenCall("f", {"a": "1"})], own) == '<do task="f" a="&quot;1&quot;"/>'


LIST = {"type": "array", "items": WORD}
CLOSED = {"type": "object", "properties": {"k": WORD}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (LIST, ['["a&lt;b"]', '["&amp;quot;"]', '["\\u0026#10;"]'], ['["a&quot;"]', '["&#10;"]', '["&#92;"]']),
        ({**LIST, "maxItems": 1}, ['["a&amp;b"]'], ['["a&quot;, &quot;b"]']),
        (CLOSED, ['{"k": "&gt;"}'], ['{"k": "a&quot;, &quot;z&quot;: &quot;b"}']),
        ({"type": "array", "items": {"type": "string", "minLength": 2}}, ['["&lt;&apos;"]'], ['["&lt;"]']),
        ({"type": "string", "minLength": 3}, ["a&lt;b", "a&quot;&#x27;"], ["a&lt;", "&lt;&gt;"]),
        ({"type": "string", "maxLength": 3}, ["&lt;&amp;&gt;", "a&lt;b"], ["abcd", "&lt;&amp;&gt;&lt;"]),
        (WORD, ["a & b", "&lt", "&#65;", "&"], []),
    ],
    ids=str,
)  # fmt: skip
def test_an_entity_in_a_value_is_the_character_that_it_is_read_as(schema, good, bad):
    tools = {"f": {"properties": {"a": schema}, "required": ["a"]}}
    grammar = export_grammar(tools, "minicpm5", free_text=False, tool_choice="f").text
    for text in (*good, *bad):
        written = f'<function name="f"><param name="a">{text}</param></function>'
        assert llguidance_accepts(grammar, written) == (text in good), text
        ((_, arguments),) = calls_in(written, "minicpm5", tools)
        assert jsonschema.Draft202012Validator(tools["f"]).is_valid(arguments) == (text in good), text


@pytest.mark.parametrize("blank", [" ", "\t"])
def test_a_value_whose_end_begins_with_a_blank_holds_blanks(blank):
    form = Form(
        head="<do {name}>", body="parameters", parameter="<arg (?P<key>[a-z]{1,9}+)>", value_end=f"{blank}</arg>",
        tail="</do>",
    )  # fmt: skip
    writing = Writing(call="<do {name}>{arguments}</do>", parameter=f"<arg {{key}}>{{value}}{blank}</arg>")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    grammar = export_grammar({"f": {"properties": {"a": WORD}}}, own, tool_choice="f", free_text=False).text
    for text in ("", "x", "x y\tz", "a ", "< b", "<a"):
        assert llguidance_accepts(grammar, f"<do f><arg a>{text}{blank}</arg></do>"), text
    for text in (f"x{blank}</arg></do>", f"x{blank}</arg><arg b>y", "<do g>"):
        assert not llguidance_accepts(grammar, f"<do f><arg a>{text}{blank}</arg></do>"), text


@pytest.mark.parametrize(("end", "piece"), [("@arg@", "@ar"), ("@a@arg", "@a")])
def test_a_value_whose_end_has_its_first_sign_twice_holds_pieces_of_it(end, piece):
    form = Form(
        head="<do {name}>", body="parameters", parameter="<arg (?P<key>[a-z]{1,9}+)>", value_end=end, tail="</do>",
    )  # fmt: skip
    writing = Writing(call="<do {name}>{arguments}</do>", parameter=f"<arg {{key}}>{{value}}{end}")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    grammar = export_grammar({"f": {"properties": {"a": WORD}}}, own, tool_choice="f", free_text=False).text
    for text in ("", "@", "x@y", piece, f"{piece} {piece}x"):
        assert llguidance_accepts(grammar, f"<do f><arg a>{text}{end}</do>"), text
    for text in (f"x{end}</do>", f"{piece}{end}</do>", f"@{end}<arg b>y"):
        assert not llguidance_accepts(grammar, f"<do f><arg a>{text}{end}</do>"), text


def test_what_a_dialect_reads_as_text_is_told():
    tools = {"f": {"properties": {"a": {"const": "</parameter>\n</function>"}}}}
    grammar = export_grammar(tools, "qwen_xml", tool_choice="required", free_text=False)
    assert grammar.unenforced == ("f.a: enum (the dialect reads text)",)
    written = render_calls([WrittenCall("f", {"a": "§"})], "qwen_xml")
    for text in ("1", "a < b", ""):
        assert llguidance_accepts(grammar.text, written.replace("§", text))
    with pytest.raises(UsageError, match=r"at least one value, found none that the dialect can write"):
        export_grammar({"f": {"properties": {"a": {"const": '<|"|>'}}}}, "gemma4")


def property_of(schema, **more):
    tools = {"f": {"properties": {"a": schema}, "required": ["a"], **more}}
    return export_grammar(tools, target="regex", free_text=False, tool_choice="required", parallel=False)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": 0}, ["0", "12"], ["-1", "01", "1.0"]),
        ({"type": "integer", "minimum": -1, "maximum": 1}, ["-1", "0", "1"], ["2"]),
        ({"type": "number", "minimum": 5}, ["5", "1e3"], ["-5"]),
        ({"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 3}, ["[null, null]"], ["[null]"]),
        ({"type": "array", "prefixItems": [{"const": 1}, {"const": "x"}], "items": False},
         ["[]", "[1]", '[1, "x"]'], ['["x"]', '[1, "x", 1]', "[1, ]"]),
        ({"type": "array", "prefixItems": [{"const": 1}], "minItems": 2}, ['[1, "x"]'], ["[1]"]),
        ({"type": "array", "prefixItems": [{"const": 1}]}, ["[]", "[1]", "[1, 2]"], ["[2]", "[, 2]"]),
        ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}, False]}, ["[1]", "[1, 2]"], ["[1, 2, 3]"]),
        ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
        ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 1}, ["[1]", "[]"], ["[1, 2]"]),
        ({"type": ["string", "null"]}, ["null", '"x"'], ["1"]),
        ({"anyOf": [{"const": 1}, {"const": "x"}]}, ["1", '"x"'], ["2"]),
        ({"oneOf": [{"const": 1}]}, ["1"], ["2"]),
        ({"allOf": [{"properties": {"x": {"const": 1}}, "required": ["x"]}], "properties": {"y": {"const": 2}}},
         ['{"y": 2, "x": 1}', '{"x": 1}'], ['{"y": 2}']),
        ({"enum": ["a"], "minLength": 2}, ['"a"'], ['"bb"']),  # what contradicts itself so is taken by its values
        ({"enum": [{"x": [1, "y"]}, True]}, ['{"x": [1, "y"]}', "true"], ["True"]),
        ({"type": "object", "additionalProperties": False}, ["{}"], ['{"x": 1}']),
        ({"type": "object"}, ["{}", '{"x": [1, true]}'], ["[]", '{"": 1}']),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, ['{"x": 1, "y": 2}'], ['{"x": "1"}']),
        ({}, ["1", '{"x": [1]}', "[[1], 2]", "[]", "{}", "null"], ["x"]),
        (True, ["1"], ["x"]),
        ({"description": "anything"}, ["1"], ["x"]),
        ({"$ref": "#/$defs/x"}, ["7"], ["8"]),
        ({"type": "object", "properties": {"b": {"const": 1}, "c": {"const": 2}}},
         ["{}", '{"b": 1}', '{"c": 2}', '{"b": 1,"c":2}'], ['{"c": 2, "b": 1}', '{, "c": 2}']),
    ],
    ids=str,
)  # fmt: skip
def test_schemas_become_pieces(schema, good, bad):
    pattern = property_of(schema, **{"$defs": {"x": {"const": 7}}}).text
    for text in good:
        assert re.fullmatch(pattern, f'[CALL: f({{"a": {text}}})]'), text
    for text in bad:
        assert not re.fullmatch(pattern, f'[CALL: f({{"a": {text}}})]'), text


def test_a_list_of_many_known_items_ends_behind_any_of_them():
    """Without brackets around brackets for each item: engines bound how deep they may be."""
    pattern = property_of({"type": "array", "prefixItems": [{"const": n} for n in range(300)], "minItems": 2}).text
    assert len(pattern) < 50_000
    for count in range(302):
        found = re.fullmatch(pattern, f'[CALL: f({{"a": {[*range(count)]}}})]')
        assert (found is not None) == (2 <= count <= 300), count
    assert not re.fullmatch(pattern, '[CALL: f({"a": [0, 1, 3]})]')


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "pattern": "x", "format": "date"}, ("f.a: format", "f.a: pattern")),
        ({"type": "integer", "minimum": 3}, ("f.a: minimum",)),
        ({"type": "integer", "minimum": 0}, ()),
        ({"minimum": 0}, ("f.a: minimum",)),
        ({"type": "integer", "minimum": 1, "maximum": 900}, ("f.a: maximum", "f.a: minimum")),
        ({"type": "array", "uniqueItems": True}, ("f.a: uniqueItems",)),
        ({"oneOf": [{"type": "null"}]}, ("f.a: oneOf (more than one may fit)",)),
        ({"type": "object"}, ("f.a: keys that differ",)),
        ({"allOf": [{"type": "null"}, {"type": "string"}]}, ("f.a: allOf",)),
        ({"anyOf": [{"type": "null"}], "minProperties": 1}, ("f.a: minProperties",)),
        ({"anyOf": [{"type": "null"}, {"type": "string"}], "minLength": 1}, ()),
        ({"$ref": "#/$defs/x", "minimum": 7}, ("f.a: minimum",)),
        ({"type": "string", "x-note": 1}, ()),
        ({"type": "string", "$anchor": "a", "definitions": {}, "nullable": True, "strict": True}, ()),
    ],
    ids=str,
)
def test_what_is_not_enforced_is_told(schema, expected):
    assert property_of(schema, **{"$defs": {"x": {"const": 7}}}).unenforced == expected


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"allOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"required": ["b"]}]},
         ['{"a": 1, "b": "x"}'], ["{}", '{"a": 1}']),
        ({"properties": {"c": {"const": 2}},
          "anyOf": [{"properties": {key: {"const": 1}}, "required": [key]} for key in "ab"]},
         ['{"c": 2, "a": 1}', '{"b": 1}'], ["{}", '{"c": 2}']),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {"const": 1}}, "required": ["a"]}}},
         ['{"a": 1}'], ["{}"]),
        ({"properties": {"a": {"const": 1}, "b": False}}, ['{"a": 1}', "{}"], ['{"b": 1}']),
        ({"properties": {"a": False, "b": {"const": 1}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
         ['{"b": 1}'], ["{}", '{"a": 1}']),
        ({"additionalProperties": {"const": 1}}, ['{"x": 1}', "{}"], ['{"x": 2}']),
        ({"properties": {"a": {"const": 2}}, "required": ["b"], "additionalProperties": {"const": 1}},
         ['{"a": 2, "b": 1}', '{"b": 1}'], ['{"b": 2}', '{"a": 2}']),
        ({"properties": {"a": {"type": "array", "minItems": "1", "items": {"const": 1}}}, "required": ["a"]},
         ['{"a": [1]}'], ['{"a": []}']),
    ],
    ids=str,
)  # fmt: skip
def test_arguments_are_held_to_the_whole_schema(schema, good, bad):
    for dialect in ("call", "glm", "pythonic"):
        export_grammar({"f": schema}, dialect)
    pattern = export_grammar({"f": schema}, target="regex", free_text=False).text
    for text in good:
        assert re.fullmatch(pattern, f"[CALL: f({text})]"), text
    for text in bad:
        assert not re.fullmatch(pattern, f"[CALL: f({text})]"), text


def test_schemas_that_hold_themselves_are_rules():
    tree = {"f": {"properties": {"left": {"$ref": "#"}, "leaf": {"type": "null"}}}}
    grammar = export_grammar(tree, tool_choice="required", free_text=False).text
    assert llguidance_accepts(grammar, '[CALL: f({"left": {"left": {"leaf": null}}})]')
    assert not llguidance_accepts(grammar, '[CALL: f({"left": {"left": {"leaf": 1}}})]')
    assert " ::= " in export_grammar(tree, target="gbnf").text
    with pytest.raises(UsageError, match="schemas that do not hold themselves"):
        export_grammar(tree, target="regex", free_text=False)


def test_raw_values_are_typed_by_their_schema():
    tools = {"f": {"properties": {"a": {"enum": ["x", "y"]}, "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                                  "c": {"const": "z"}, "d": {"type": "string", "format": "date"}}}}  # fmt: skip
    grammar = export_grammar(tools, "glm", tool_choice="required", free_text=False)
    assert grammar.unenforced == ("f.d: format",)
    assert llguidance_accepts(grammar.text, render_calls([WrittenCall("f", {"a": "x", "b": "q", "c": "z"})], "glm"))
    assert not llguidance_accepts(grammar.text, render_calls([WrittenCall("f", {"a": "q"})], "glm"))


def test_structural_tags():
    grammar = json.loads(export_grammar(TOOLS, target="structural-tag", tool_choice="required", parallel=False).text)
    form = grammar["format"]
    assert form["triggers"] == ["[CALL"]
    assert [tag["begin"] for tag in form["tags"]] == ["[CALL: get_weather(", "[CALL: add(", "[CALL: stop("]
    assert {tag["end"] for tag in form["tags"]} == {")]"}
    assert {tag["content"]["type"] for tag in form["tags"]} == {"grammar"}
    assert (form["at_least_one"], form["stop_after_first"]) == (True, True)
    guarded = json.loads(export_grammar(TOOLS, "call", "structural-tag", nonce="7f3a").text)
    assert guarded["format"]["tags"][0]["begin"] == "[CALL#7f3a: get_weather("
    for dialect, options in (("react", {}), ("llama", {}), ("hermes", {"tool_choice": "none"})):  # no trigger will do
        all_of_it = json.loads(export_grammar(TOOLS, dialect, "structural-tag", **options).text)["format"]
        assert all_of_it == {"type": "grammar", "grammar": export_grammar(TOOLS, dialect, "xgrammar", **options).text}


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_structural_tags_of_sections_and_without_text(choice):
    options = {"target": "structural-tag", "tool_choice": choice, "free_text": False}
    plain = json.loads(export_grammar(TOOLS, "call", **options).text)["format"]
    assert (plain["type"], plain["at_least_one"]) == ("tags_with_separator", choice == "required")
    section = json.loads(export_grammar(TOOLS, "kimi_k2", **options).text)["format"]
    section = section if choice == "required" else section["content"]
    assert (section["begin"], section["end"]) == ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
    assert section["content"]["tags"][0]["begin"] == "<|tool_call_begin|>functions.get_weather:"
    constrained = export_grammar({"f": {"properties": {"a": {"type": "array", "uniqueItems": True}}}}, **options)
    assert constrained.unenforced == ("f.a: uniqueItems",)


def test_xgrammar_is_told_of_surrogates_and_llama_cpp_is_not():
    """llama.cpp would refuse the first byte of U+D000 to U+D7FF, as it is that of all surrogates too."""
    assert "\\uD800-\\uDFFF]" in export_grammar(TOOLS, target="xgrammar").text
    told, plain = (export_grammar(["f"], target=target, tool_choice="none").text for target in ("xgrammar", "gbnf"))
    assert told.replace("\\uD7FF\\uE000-", "") == plain != told
    assert "\\uD" not in export_grammar(TOOLS, target="gbnf").text


def test_no_escape_is_read_further_than_it_goes():
    """XGrammar takes `\\x5Ea` for one character; only \\u and \\U say where they end."""
    for target in ("gbnf", "xgrammar"):
        for dialect in NAMES:
            assert "\\x" not in export_grammar(TOOLS, dialect, target).text


@pytest.mark.parametrize("dialect", ["call", "pythonic", "gemma4", "glm"])
@pytest.mark.parametrize("target", ["regex", "llguidance"])
def test_what_no_schema_bounds_is_bounded_as_one_says(dialect, target):
    ones = {"type": "array", "items": {"const": 1}}
    for depth, schema, good, bad in (
        (0, WORD, ["ab"], ["abc"]),
        (0, {**WORD, "minLength": 3}, ["abc"], ["ab", "abcd"]),
        (0, ones, [[], [1] * 3], [[1] * 4]),
        (0, {**ones, "minItems": 4}, [[1] * 4], [[1] * 3, [1] * 5]),
        (0, {"type": "object"}, [{"k": 1}], [{"k": []}]),
        (1, {"type": "object"}, [{"k": 1}], [{"k": []}]),
        (2, {"type": "object"}, [{"k": []}], [{"k": [[]]}]),
        (0, {}, [1], [[1]]),
        (1, {}, [[1]], [[[1]]]),
    ):
        if dialect == "glm" and not schema:
            continue  # all is text
        tools = {"f": {"properties": {"a": schema}, "required": ["a"]}}
        grammar = export_grammar(
            tools, dialect, target, free_text=False, string_limit=2, items_limit=3, depth_limit=depth
        ).text  # fmt: skip
        for value in (*good, *bad):
            text = render_call("f", {"a": value}, dialect, tools=tools)
            taken = re.fullmatch(grammar, text) if target == "regex" else llguidance_accepts(grammar, text)
            assert bool(taken) == (value in good), text


@pytest.mark.parametrize("dialect", ["call", "pythonic", "glm", "minimax_m3"])
@pytest.mark.parametrize("never", [False, {"$ref": "#/$defs/no"}, {"enum": [1], "minimum": 3}])
def test_unions_hold_only_branches_that_can_be(dialect, never):
    tools = {"f": {"properties": {"a": {"anyOf": [never, {"const": 1}]}}, "required": ["a"], "$defs": {"no": False}}}
    grammar = export_grammar(tools, dialect, target="regex", free_text=False)
    assert grammar.unenforced == ()
    assert re.fullmatch(grammar.text, render_call("f", {"a": 1}, dialect))
    for value in (2, "x", None, [1]):
        assert not re.fullmatch(grammar.text, render_call("f", {"a": value}, dialect))


def test_misuse_raises():
    for arguments, expected in (
        ({"target": "bnf"}, "target: expected one of llguidance"),
        ({"tool_choice": "nope"}, "tool_choice: expected auto, none, required or the name of a tool"),
        ({"tool_choice": "none", "free_text": False}, "expected calls where free_text is False"),
        ({"target": "regex"}, "expected free_text=False"),
        ({"dialect": "hermes", "nonce": "x"}, "a dialect that can carry one"),
        ({"string_limit": 0}, "string_limit: expected an integer from 1 to 65536, found 0"),
        ({"items_limit": 5000}, "items_limit: expected an integer from 1 to 4096, found 5000"),
        ({"depth_limit": True}, "depth_limit: expected an integer from 0 to 4, found True"),
        ({"parallel": None}, "parallel: expected True or False, found None"),
        ({"free_text": 0}, "free_text: expected True or False, found 0"),
    ):
        with pytest.raises(UsageError, match=expected):
            export_grammar(TOOLS, **arguments)
    with pytest.raises(UsageError, match="at least one tool"):
        export_grammar([])
    assert llguidance_accepts(export_grammar([], tool_choice="none").text, "x")
    with pytest.raises(UsageError, match="expected keys of 1 to 256 characters"):
        export_grammar({"f": {"properties": {"<": {}}}}, "glm")
    for wrong, expected in (({"$ref": "#/x"}, "found '#/x'"), ({"$ref": "#/$defs/no"}, "satisfies, found False")):
        with pytest.raises(UsageError, match=expected):
            export_grammar({"f": {"properties": {"a": wrong}, "$defs": {"no": False}}})
    twice = {"allOf": [{"$ref": "#/$defs/x"}, {"type": "object"}]}
    endless = {"allOf": [{"$ref": "#/$defs/x"}, {"properties": {"a": twice}}]}
    with pytest.raises(UsageError, match="tool 'f': expected a schema that ends"):
        export_grammar({"f": {**endless, "$defs": {"x": endless}}})
    own = Dialect(name="own", title="", models="", source="", forms=(Form(head="<x>{name}(?=\\{)", body="json"),))
    with pytest.raises(UsageError, match="a dialect for reading only"):
        export_grammar([], own, tool_choice="none")


def test_free_text_knows_the_openers_of_ones_own_dialect():
    """Whatever its pattern holds: ranges, sets, repetitions, groups and look-ahead."""
    own = Dialect(
        name="own", title="", models="", source="",
        forms=(Form(head=r"(?:pre)?@[0-9a]{2}x*(?:!)(?=[^ b])(?P<name>\w++)(?:y)+(?=\{)", body="json", begins="p@"),),
        writing=Writing(call="@1a!{name}y{arguments}"),
    )  # fmt: skip
    grammar = export_grammar(["f"], own, tool_choice="none").text
    for text in ("", "@1 !f", "@bb!f", "pre@1a", "@1ax", "@1a! f"):
        assert llguidance_accepts(grammar, text), text
    for text in ("@1a!f", "-pre@00xxx!g-"):
        assert not llguidance_accepts(grammar, text), text
    assert "t0" in export_grammar(["f"], own, "gbnf", tool_choice="none").text


@pytest.mark.parametrize("first", ["(?:@!){1,2}+", "(?:@|!!){1,2}+!?", "(?:<b>)?(?:@!)++", "(?:@[^a-z])+"])
def test_openers_may_begin_with_what_repeats(first):
    own = Dialect(
        name="own", title="", models="", source="",
        forms=(Form(head=rf"{first}{{name}};(?=\{{)", body="json", begins="@!<"),),
        writing=Writing(call="@!{name};{arguments}"),
    )  # fmt: skip
    grammar = export_grammar({"f": {"properties": {}}}, own).text
    assert calls_in("x @!f;{} y", own, None) == [("f", {})]
    for text in ("", "x", "a<b", "x @!f;{} y", "@!f;{}"):
        assert llguidance_accepts(grammar, text), text
    for text in ("@!g;{}", "x @!@!f;{}"):
        assert not llguidance_accepts(grammar, text), text


def test_free_text_knows_which_names_make_an_opener_of_ones_own():
    own = Dialect(
        name="own", title="", models="", source="", writing=Writing(call="@{name};{arguments}"),
        forms=(Form(head=r"@{name};(?=\{)", body="json", begins="@"),),
    )  # fmt: skip
    grammar = export_grammar([], own, tool_choice="none").text
    for name, makes_one in (("天", True), ("_f", True), ("f天", True), ("f-/:.", True), ("1", False), ("f g", False)):
        assert llguidance_accepts(grammar, f"x @{name};{{}}") != makes_one, name


def test_free_text_does_not_go_on_with_a_call_that_nothing_closes():
    shown = render_calls([WrittenCall("get_weather", {"city": "Oslo"})], "llama")
    grammar = export_grammar(TOOLS, "llama").text
    for behind in ('; {"parameters": {}, "name": "g"}', ";{}", "\n ;\n{"):
        assert not llguidance_accepts(grammar, shown + behind)
    for behind in (";", "; then {}", " {}", "\n"):
        assert llguidance_accepts(grammar, shown + behind)
        assert len(calls_in(shown + behind, "llama")) == 1


@pytest.mark.again
@each_dialect
def test_every_target_is_printed(dialect):
    for target in TARGETS[:3]:
        assert len(export_grammar(TOOLS, dialect, target).text) > 500


@pytest.mark.parametrize("dialect", ["call", "hermes", "qwen_xml", "pythonic", "gemma4"])
def test_ordinary_numbers_are_let_through(dialect):
    """All 64 bits of an identifier, and what `repr` writes for a float."""
    tools = {"f": {"properties": {"id": {"type": "integer"}, "x": {"type": "number"}}, "required": ["id", "x"]}}
    lark = export_grammar(tools, dialect, free_text=False).text
    for number, other in (
        (1234567890123456789, 0.1 + 0.2), (-(2**63), 0.00012345678901234567), (2**53 + 1, -0.9664535356921388),
    ):  # fmt: skip
        text = render_calls([WrittenCall("f", {"id": number, "x": other})], dialect, tools=tools)
        assert llguidance_accepts(lark, text), text


@each_dialect
@pytest.mark.parametrize("before", ["", "Well.\n"])
def test_references_in_schemas_do_not_hinder_a_call_at_the_start(dialect, before):
    schema = {"properties": {"u": {"$ref": "#/$defs/U"}}, "required": ["u"], "$defs": {"U": {"enum": ["C", "F"]}}}
    lark = export_grammar({"f": schema}, dialect).text
    text = before + render_calls([WrittenCall("f", {"u": "C"})], dialect, tools={"f": schema})
    assert llguidance_accepts(lark, text), lark


@pytest.mark.parametrize("dialect", ["call", "pythonic", "qwen_xml"])
@pytest.mark.parametrize(
    ("schema", "unenforced"),
    [
        ({"type": "object", "additionalProperties": {}}, ("keys that differ",)),
        ({"type": "object", "additionalProperties": True}, ("keys that differ",)),
        ({"items": {"type": "integer"}, "minItems": 1}, ("items", "minItems")),
        ({"required": ["b"]}, ("required",)),
        ({"minLength": 3}, ("minLength",)),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, ()),
    ],
)
def test_what_a_schema_without_a_type_says_is_told(schema, unenforced, dialect):
    tools = {"f": {"properties": {"a": schema}, "required": ["a"]}}
    grammar = export_grammar(tools, dialect, free_text=False)
    assert set(grammar.unenforced) == {f"f.a: {keyword}" for keyword in unenforced}


@pytest.mark.parametrize(
    ("other", "unenforced"),
    [
        ({"type": "array", "items": {"type": "integer"}}, ("array (text that is one is read as it)",)),
        ({"type": "object", "properties": {"x": {"type": "integer"}}}, ("object (text that is one is read as it)",)),
        ({"type": "array", "description": "several"}, ()),
        ({"type": "integer", "minimum": 3}, ()),
    ],
)
def test_what_text_may_be_read_as_is_told_where_the_schema_wants_more_of_it(other, unenforced):
    tools = {"f": {"properties": {"a": {"anyOf": [{"type": "string"}, other]}}, "required": ["a"]}}
    assert export_grammar(tools, "qwen_xml").unenforced == tuple(f"f.a: {said}" for said in unenforced)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "enum": ["a", 1]}, "a", 1),
        ({"type": ["integer", "null"], "enum": ["a", 1]}, 1, "a"),
        ({"type": "integer", "anyOf": [{"const": "x"}, {"const": 1}]}, 1, "x"),
        ({"type": "string", "enum": ["a", "bbb", "cccc"], "minLength": 2, "maxLength": 3}, "bbb", "a"),
        ({"type": "string", "enum": ["a", "bb", "ccc"], "minLength": 2, "maxLength": 2}, "bb", "ccc"),
        ({"type": "integer", "enum": [-1, 0, 7], "minimum": 0, "maximum": 3}, 0, -1),
        ({"enum": [1, True, 3], "minimum": 0, "maximum": 2}, True, 3),
    ],
)
def test_listed_values_are_those_that_the_rest_of_the_schema_allows(schema, good, bad):
    tools = {"f": {"properties": {"a": schema}, "required": ["a"]}}
    grammar = export_grammar(tools, free_text=False)
    assert llguidance_accepts(grammar.text, render_call("f", {"a": good}))
    assert not llguidance_accepts(grammar.text, render_call("f", {"a": bad}))
    assert grammar.unenforced == ()


@each_dialect
@pytest.mark.parametrize(
    ("values", "arguments", "wrong"),
    [
        ({"type": "integer"}, {"x": 1, "y": 2}, {"x": True}),
        ({"type": "string", "enum": ["a", "b"]}, {"x": "a"}, {"x": "c"}),
        ({"type": ["integer", "string"]}, {"x": "b"}, {"x": []}),
        ({"$ref": "#/$defs/A"}, {"x": {"z": 1}}, {"x": {"y": 1}}),
        ({"type": "string"}, {}, {"x": 1}),
        (True, {"x": None, "y": ["a"]}, None),
    ],
)
def test_arguments_may_have_keys_that_no_schema_names(dialect, values, arguments, wrong):
    inner = {"type": "object", "properties": {"z": {"type": "integer"}}, "additionalProperties": False}
    tools = {"f": {"type": "object", "additionalProperties": values, "$defs": {"A": inner}}}
    grammar = export_grammar(tools, dialect)
    text = render_calls([WrittenCall("f", arguments)], dialect, tools=tools)
    if dialect == "minimax_m3":  # whose closers say the key too
        assert grammar.unenforced == ("f: additionalProperties (no grammar says a key twice)",)
        assert llguidance_accepts(grammar.text, text) == (arguments == {})
        return
    assert "f: keys that differ" in grammar.unenforced
    assert llguidance_accepts(grammar.text, text)
    if wrong:
        with contextlib.suppress(UsageError):
            text = render_calls([WrittenCall("f", wrong)], dialect, tools={"f": {}})
            if calls_in(text, dialect, tools) == [("f", wrong)]:
                assert not llguidance_accepts(grammar.text, text)


@pytest.mark.again
@each_dialect
@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (  # what may stand before the reference begins as what stands there
            {"properties": {"a": {}, "b": {"type": "string"}, "c": {"$ref": "#/$defs/C"}}, "required": ["a", "c"]},
            {"a": 1, "c": {"d": 2}},
        ),
        ({"properties": {"c": {"$ref": "#/$defs/C"}, "e": {}}, "required": ["c"]}, {"c": {}, "e": True}),
        (  # a value of a rule, and one like it beside it
            {"properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "array", "items": {"$ref": "#/$defs/E"}}}},
            {"a": "x", "b": ["x", "z"]},
        ),
        (
            {"properties": {"a": {"enum": [1, 2]}, "n": {"enum": [1, 2]}, "c": {"$ref": "#/$defs/N"}}},
            {"a": 1, "n": 2, "c": 2},
        ),
        ({"properties": {"t": {}, "c": {"$ref": "#/$defs/C"}}}, {"t": "x < y", "c": {}}),  # no quotes end the text
        (  # many brackets, a rule far inside, and values of any type
            {"properties": {"m": {"type": "array", "items": {"type": "array", "items": {"type": "array",
                "prefixItems": [{"$ref": "#/$defs/E"}]}}}}},
            {"m": [[["z", {"a": [None]}]]]},
        ),
        ({"properties": {"o": {"properties": {"k": {"const": "\"</a>&"}}}}}, {"o": {"k": "\"</a>&"}}),
    ],
)
def test_what_stands_beside_a_reference_is_taken(dialect, schema, arguments):
    definitions = {
        "C": {"type": "object", "properties": {"d": {"type": "integer"}}}, "E": {"enum": ["x", "z"]},
        "N": {"enum": [2, 3]},
    }  # fmt: skip
    tools = {"f": {"type": "object", **schema, "$defs": definitions}}
    text = render_calls([WrittenCall("f", arguments)], dialect, tools=tools)
    assert llguidance_accepts(export_grammar(tools, dialect).text, text)


MANY = {
    "text": {"type": "string"},
    "any": {},
    "list": {"type": "array", "items": {"type": "string"}},
    "nested": {"type": "object", "properties": {f"k{number}": {"type": "integer"} for number in range(20)}},
}
"""Schemas of which 300 make arguments that no engine would take if each were written out for each that may be first."""


@pytest.mark.again
@pytest.mark.parametrize("dialect", ["call", "pythonic", "qwen_xml", "gemma4"])
@pytest.mark.parametrize("kind", MANY)
def test_hundreds_of_optional_properties_give_a_grammar(dialect, kind):
    keys = [f"key_{number}" for number in range(300)]
    parameters = {"type": "object", "properties": dict.fromkeys(keys, MANY[kind]), "additionalProperties": False}
    tools = [{"name": "f", "parameters": parameters}]
    exported = export_grammar(tools, dialect)
    assert len(exported.text) < 700_000
    value = {"text": "v", "any": 1, "list": ["x", "y"], "nested": {"k3": 1, "k7": -2}}[kind]
    for chosen in (keys[:1], keys[-1:], keys[7:290:12], []):
        text = render_call("f", dict.fromkeys(chosen, value), dialect, tools=tools)
        assert llguidance_accepts(exported.text, text), text
        if len(chosen) > 1:
            upside_down = render_call("f", dict.fromkeys(reversed(chosen), value), dialect, tools=tools)
            twice = text.replace("key_19", "key_7")
            for wrong in (upside_down, twice, text.replace("key_19", "kex_19")):
                assert not llguidance_accepts(exported.text, wrong), wrong


@settings(max_examples=min(60, 2 * settings.default.max_examples))
@given(chosen=st.lists(st.booleans(), min_size=9, max_size=9), required=st.integers(0, 9))
def test_any_of_the_optional_properties_may_be_left_out(chosen, required):
    keys = [f"k{number}" for number in range(9)]
    tools = {"f": {"properties": {key: {"enum": [1]} for key in keys}, "required": keys[required : required + 1]}}
    text = render_call("f", {key: 1 for key, is_in in zip(keys, chosen, strict=True) if is_in})
    expected = all(chosen[required : required + 1])
    pattern = export_grammar(tools, target="regex", free_text=False, tool_choice="f").text
    assert (re.fullmatch(pattern, text) is not None) == expected
    assert "1}" not in text or re.fullmatch(pattern, text.replace("1}", "1, }")) is None


def test_hundreds_of_tools_give_a_grammar():
    tools = {
        f"tool_{number}": {"properties": {f"a{number}_{n}": MANY[kind] for n, kind in enumerate(MANY)}}
        for number in range(200)
    }
    grammar = export_grammar(tools).text
    good = '[CALL: tool_150({"a150_0": "x", "a150_1": {"b": [1]}, "a150_3": {"k19": 5}})]'
    assert llguidance_accepts(grammar, good)
    assert not llguidance_accepts(grammar, good.replace("k19", "k20"))


@pytest.mark.again
@each_dialect
@pytest.mark.parametrize("value", ["a[0]<b", "]<]", "x]<]y", "]<]minimax", "]]<]", "a]>b", "x</", "<|", "]] >"])
def test_a_piece_of_what_ends_a_value_may_stand_in_it(dialect, value):
    tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "string"}}, "required": ["a"]}}]
    text = render_call("f", {"a": value}, dialect, tools=tools)
    assert calls_in(text, dialect, tools=tools) == [("f", {"a": value})]
    assert llguidance_accepts(export_grammar(tools, dialect).text, text)
