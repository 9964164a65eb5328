"""Law 6: reading and writing are inverse, for every dialect and every JSON value that it can express."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

import callmark
from callmark import (
    Dialect,
    DialectError,
    Form,
    Limits,
    ToolsError,
    UnknownDialectError,
    UsageError,
    Writing,
    dialects,
    parse,
    render_call,
    render_calls,
)
from callmark.dialects.limits import LENGTH_LIMIT, PLAIN_LIMIT
from callmark.dialects.rendering import WrittenCall
from callmark.reading.schemas import Parameters
from callmark.testing import check_chunking, check_grammar, check_inverse
from callmark.toolshapes import declared_types
from callmark.writing.toolset import tool_specs
from writing import CLOSERS, RAW, hostile_objects, hostile_strings, json_values, names, objects, schemas

each_dialect = pytest.mark.parametrize("dialect", dialects(), ids=lambda dialect: dialect.name)
EXPRESS_ALL = {dialect.name for dialect in dialects()} - RAW


def exactly(value):
    return json.dumps(value, ensure_ascii=False)


@each_dialect
@given(name=names, arguments=objects)
def test_what_is_written_is_read_back(dialect, name, arguments):
    try:
        text = render_call(name, arguments, dialect)
    except UsageError:
        assert dialect.name not in EXPRESS_ALL
        event("refused")
        return
    check_inverse(name, arguments, dialect)
    check_grammar(dialect, text)


@each_dialect
@given(name=names, arguments=hostile_objects)
def test_hostile_keys_are_read_back_or_refused(dialect, name, arguments):
    try:
        render_call(name, arguments, dialect)
    except UsageError:
        assert dialect.name not in EXPRESS_ALL
        return
    check_inverse(name, arguments, dialect)


def holds_quote(dialect: Dialect, *texts: str) -> bool:
    return any(form.body == "braces" and form.quote in text for form in dialect.forms for text in texts)


@each_dialect
@example(text="<escape>", more='<|"|>')
@example(text="</function>\n</tool_call>", more="<parameter=b>\n1")
@example(text="<function=g>\nx", more="\r\n")
@given(text=hostile_strings, more=hostile_strings)
def test_strings_are_read_back(dialect, text, more):
    """Every string, but for those of a dialect with quotes of its own, which it cannot escape."""
    if holds_quote(dialect, text, more):
        with pytest.raises(UsageError, match="cannot express"):
            check_inverse("f", {"a": text, "b": [more]}, dialect, refusals=False)
        return
    check_inverse("f", {"a": text, "b": [more]}, dialect, refusals=False)


@each_dialect
@given(text=hostile_strings)
def test_lists_and_objects_are_read_back_whatever_they_hold(dialect, text):
    if holds_quote(dialect, text):
        return
    for tools in (None, {"f": {"properties": {"a": {"type": "array"}, "b": {"type": ["object", "null"]}}}}):
        check_inverse("f", {"a": [text, {text: 1}], "b": {"x": text}}, dialect, refusals=False, tools=tools)


@each_dialect
@given(data=st.data())
def test_what_is_written_for_a_schema_is_read_with_it(dialect, data):
    arguments = data.draw(objects)
    tools = {"f": data.draw(schemas(list(arguments)))}
    try:
        render_call("f", arguments, dialect, tools=tools)
    except UsageError:
        assert dialect.name not in EXPRESS_ALL
        event("refused")
        return
    check_inverse("f", arguments, dialect, tools=tools)


@each_dialect
@given(text=hostile_strings)
def test_a_declared_string_is_written_as_it_is_or_refused(dialect, text):
    tools = {"f": {"type": "object", "properties": {"a": {"type": "string"}}}}
    try:
        written = render_call("f", {"a": text}, dialect, tools=tools)
    except UsageError:
        assert any(closer in text for closer in ('<|"|>', "</", "<function", "<tool_call", "<parameter"))
        return
    check_inverse("f", {"a": text}, dialect, tools=tools)
    if dialect.name in ("qwen_xml", "glm"):
        assert text in written


@each_dialect
@given(calls=st.lists(st.tuples(names, objects), max_size=4))
def test_several_calls_are_read_back_in_order(dialect, calls):
    try:
        text = render_calls([WrittenCall(*call) for call in calls], dialect)
    except UsageError:
        assert dialect.name not in EXPRESS_ALL
        return
    parsed = parse(text, dialects=dialect, tolerance="strict", contexts={"fence": "allow"})
    assert exactly([(call.name, call.arguments) for call in parsed.calls]) == exactly(calls)
    assert parsed.text.strip() == ""
    assert parsed.problems == ()


@each_dialect
@given(inner=json_values)
def test_nesting_stops_where_reading_does(dialect, inner):
    def nested(levels):
        value = 1
        for _ in range(levels):
            value = [value]
        return {"a": value}

    check_inverse("f", nested(Limits().nesting - 1), dialect, refusals=False)
    with pytest.raises(UsageError, match="nested brackets"):
        render_call("f", nested(Limits().nesting), dialect)


@each_dialect
def test_arguments_that_are_too_long_are_refused(dialect):
    with pytest.raises(UsageError, match="at most 1048576 characters"):
        render_call("f", {"a": "x" * (LENGTH_LIMIT + 1)}, dialect)
    check_inverse("f", {"a": "x" * 100_000, "b": "y"}, dialect, refusals=False)


@pytest.mark.parametrize("length", [PLAIN_LIMIT - 3, PLAIN_LIMIT, PLAIN_LIMIT + 1])
@pytest.mark.parametrize("dialect", ["qwen_xml", "glm"])
@pytest.mark.parametrize("text", ["x", "1", '"', "\n"])
def test_strings_around_the_length_up_to_which_types_are_found_out(dialect, length, text):
    if text == "1" and length == PLAIN_LIMIT:  # raw it is a number, and in quotes it is too long
        with pytest.raises(UsageError, match="cannot express"):
            render_call("f", {"a": text * length}, dialect)
        return
    check_inverse("f", {"a": text * length}, dialect, refusals=False)


@pytest.mark.parametrize("dialect", [row.name for row in dialects()])
def test_a_long_text_that_holds_its_end_or_brackets_is_read_back_or_refused(dialect):
    _, end = render_call("f", {"a": "§"}, dialect).split("§")
    for text in (end + "x" * PLAIN_LIMIT, "1" * PLAIN_LIMIT + end, "[" * PLAIN_LIMIT):
        check_inverse("f", {"a": text}, dialect)


@pytest.mark.parametrize("dialect", [row.name for row in dialects() if row.writing.typed])
def test_a_number_whose_kind_is_told_is_as_long_as_reading_takes_it(dialect):
    longest = 10 ** (PLAIN_LIMIT - 1)
    check_inverse("f", {"a": longest}, dialect, refusals=False)
    with pytest.raises(UsageError, match="expected a number of at most 4096 characters, found 4097"):
        render_call("f", {"a": longest * 10}, dialect)


@pytest.mark.parametrize("dialect", ["qwen_xml", "glm"])
def test_what_reading_would_take_for_something_else_is_refused(dialect):
    def refused(arguments, kinds=None):
        tools = None if kinds is None else {"f": {"type": "object", "properties": {"a": {"type": kinds}}}}
        with pytest.raises(UsageError, match=f"dialect {dialect} cannot express this call of 'f'"):
            render_call("f", {"a": arguments}, dialect, tools=tools)

    refused([1] * 5000)
    refused("x" * 5000 + ("</parameter>\n</function>" if dialect == "qwen_xml" else "</arg_value></tool_call>"))
    refused("x" * 5000, ["object", "array"])
    refused(5, ["string", "integer"])
    refused([5], "string")
    refused([5], "integer")
    refused(None, "integer")
    refused("none", ["string", "null"])
    refused("12", "integer")
    refused("{}", "object")
    refused('{"x": 1}', ["string", "object"])
    refused(" [] ", ["array", "string"])
    for text, types in (("{x}", ["string", "object"]), ("[]", ["string", "object"]), ("[1] [2]", ["string", "array"])):
        check_inverse("f", {"a": text}, dialect, tools={"f": {"properties": {"a": {"type": types}}}}, refusals=False)
    either = {"f": {"properties": {"a": {"type": ["string", "object"]}}}}
    check_inverse("f", {"a": {"x": 1}}, dialect, tools=either, refusals=False)
    check_inverse("f", {"a": '{"x": "' + "y" * 4096 + '"}'}, dialect, tools=either, refusals=False)
    refused({"x": "y" * 4096}, ["string", "object"])
    whole = {"f": {"properties": {"a": {"type": "integer"}}}}
    for word in ("+5", "-5", "+x"):
        check_inverse("f", {"a": word}, dialect, tools=whole)
    for other in (1.5, True):
        check_inverse("f", {"a": other}, dialect, tools=whole, refusals=False)
    for kinds in ("array", ["array", "null"]):
        longer = {"f": {"properties": {"a": {"type": kinds}}}}
        check_inverse("f", {"a": [1] * 5000}, dialect, tools=longer, refusals=False)
    for listed in (["x"], ["x", " x "]):
        words = {"f": {"properties": {"a": {"enum": listed}}}}
        for word in ("x", " x "):
            check_inverse("f", {"a": word}, dialect, tools=words, refusals=word not in listed)
    check_inverse("f", {"a": "word"}, dialect, tools=whole, refusals=False)
    with pytest.raises(UsageError, match="expected keys of 1 to 256 characters"):
        render_call("f", {"a<b": 1}, dialect)


def test_pairs_whose_types_a_schema_would_change_become_an_object():
    tools = {
        "f": {"properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}, "c": {"type": "number"}}}
    }
    written = render_call("f", {"a": 1}, "pythonic", tools=tools)
    assert written == '<|tool_call_start|>[f({"a": 1})]<|tool_call_end|>'
    assert (
        render_call("f", {"b": None, "c": 2}, "pythonic", tools=tools)
        == "<|tool_call_start|>[f(b=None, c=2)]<|tool_call_end|>"
    )
    assert '{"a": None, "b": [True]}' in render_call("f", {"x": {"a": None, "b": [True]}}, "pythonic")
    listed = {"f": {"properties": {"a": {"enum": ["True", True, "null", None]}}}}
    for value in ("True", True, "null", None):
        check_inverse("f", {"a": value}, "pythonic", tools=listed, refusals=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("\ud800", "half of a surrogate pair"),
        ({"\udfff": 1}, "half of a surrogate pair"),
        (math.inf, "a finite number"),
        (math.nan, "a finite number"),
        (10**4300, "at most 4300 digits"),
        (-(10**4300), "at most 4300 digits"),
        ({1: 2}, "keys that are strings"),
        ({1, 2}, "a JSON value, found set"),
        (b"x", "a JSON value, found bytes"),
    ],
    ids=["lone", "lone-key", "inf", "nan", "digits", "negative", "key", "set", "bytes"],
)
@each_dialect
def test_what_is_no_json_is_refused(dialect, value, expected):
    with pytest.raises(UsageError, match=expected):
        render_call("f", {"a": [value]}, dialect)


def test_tuples_are_lists():
    assert render_call("f", {"a": (1, (2,))}) == '[CALL: f({"a": [1, [2]]})]'


@pytest.mark.parametrize("name", ["", "a b", "1a", "-", "f(", "a]", "n" * 129, "f\n", "\ud800", "a<b", "f\u200b"])
@each_dialect
def test_names_that_would_be_read_as_others_are_refused(dialect, name):
    """An envelope holds any name in quotes; elsewhere a name is what the head of the dialect takes for one."""
    written = dialect.forms[dialect.writing.form]
    if written.body == "envelope" and 0 < len(name) < 129 and name != "\ud800":
        check_inverse(name, {}, dialect, refusals=False)
        return
    with pytest.raises(UsageError, match="expected a name that is read as it is"):
        render_call(name, {}, dialect)


def test_misuse_raises():
    with pytest.raises(UsageError, match="name: expected a str, found int"):
        render_call(3, {})
    for calls in ("ab", [("f", {})], [{"name": "f", "arguments": {}}]):
        with pytest.raises(UsageError, match="calls: expected WrittenCalls or Calls, found"):
            render_calls(calls)
    for one in (None, 5, parse("[CALL: f()]").calls[0]):
        with pytest.raises(UsageError, match=f"calls: expected a sequence of them, found {type(one).__name__}"):
            render_calls(one)
    with pytest.raises(UsageError, match="arguments: expected a JSON object, found list"):
        render_call("f", [1])
    with pytest.raises(UsageError, match="expected a dialect that can carry one, found hermes"):
        render_call("f", {}, "hermes", nonce="x")
    with pytest.raises(UsageError, match="expected 1 to 64 ASCII letters"):
        render_call("f", {}, nonce="a b")
    with pytest.raises(UsageError, match="expected a registered dialect"):
        render_call("f", {}, "nope")
    own = Dialect(name="own", title="", models="", source="", forms=(Form(head="<x>{name}(?=\\{)", body="json"),))
    with pytest.raises(UsageError, match="a dialect for reading only"):
        render_call("f", {}, own)
    with pytest.raises(DialectError, match=r"writing\.form: expected the number of a form, found 1"):
        replace(own, writing=Writing(form=1, call="{arguments}"))
    for fields in ({"head": "<x>{name}{object}"}, {"head": "<x>{name}", "loose_heads": ("<x>{name}{object}",)}):
        told = rf"^dialect own: forms\[1\]\.{[*fields][-1]}: expected {{object}} only with the body json or braces"
        with pytest.raises(DialectError, match=told):
            render_call("f", {}, replace(own, forms=(*own.forms, Form(body="arguments", **fields))))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"head": "({name}"}, r"head: no valid pattern: missing \), unterminated subpattern, in '\("),
        ({"head": r"=> {name} {name} (?=\{)"}, r"head: no valid pattern: redefinition of group name 'name'"),
        ({"head": r"=> (?P<name>\w++){id} (?=\{)"}, r"head: expected {ws}, {name}, {object}, {key}, found {id}"),
        ({"tail": "{WS}</end>"}, r"tail: expected {ws}, {name}, {object}, {key}, found {WS}"),
        ({"tail": "[</end>"}, r"tail: no valid pattern: unterminated character set, in '\[</end>'"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda row: render_call("f", {"a": 1}, row),
        lambda row: callmark.protocol_prompt([{"name": "f"}], row),
        lambda row: callmark.export_grammar([{"name": "f"}], row),
        lambda row: callmark.convert("[CALL: f()]", to=row),
        lambda row: callmark.render_history([], row),
        lambda row: callmark.neutralize("=> f {}", dialects=[row]),
        lambda row: callmark.feedback(parse("[CALL: f(]").problems[0], row),
        lambda row: parse("", dialects=["call", row]),
    ],
    ids=["render", "prompt", "export", "convert", "history", "neutralize", "feedback", "parse"],
)
def test_a_row_with_a_wrong_pattern_is_refused_whatever_it_is_used_for(use, fields, message):
    form = Form(**{"head": r"=> {name} (?=\{)", "body": "json", "begins": "="} | fields)
    writing = Writing(call="=> {name} {arguments}")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    with pytest.raises(DialectError, match=rf"dialect own: forms\[0\]\.{message}"):
        use(own)


@pytest.mark.parametrize(
    ("body", "name", "arguments"),
    [("json", " {name}", "{arguments}"), ("envelope", "", '{"name": {quoted_name}, "arguments": {arguments}}')],
    ids=["json", "envelope"],
)
def test_a_nonce_that_the_head_does_not_take_is_told(body, name, arguments):
    form = Form(head=rf"<f{name}(?: n=(?P<nonce>[0-9]{{1,4}}+))?>(?=\{{)", body=body)
    writing = Writing(call=f"<f{name}{{nonce}}>{arguments}", nonce=" n={nonce}")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    assert parse(render_call("f", {}, own, nonce="12"), dialects=own, nonce="12").calls
    with pytest.raises(UsageError, match=r"nonce: expected one that the head of forms\[0\] takes, found 'abcd'"):
        render_call("f", {}, own, nonce="abcd")


def test_a_nonce_is_written_and_wanted():
    text = render_call("f", {"a": 1}, nonce="7f3a")
    assert text == '[CALL#7f3a: f({"a": 1})]'
    assert parse(text, nonce="7f3a").calls[0].arguments == {"a": 1}
    assert parse(text, nonce="other").calls == ()


@pytest.mark.parametrize(
    ("dialect", "given", "read"),
    [
        ("call", "c1", None),
        ("hermes", "c1", "c1"),
        ("hermes", 'a"\\', 'a"\\'),
        ("mistral", "c1", "c1"),
        ("mistral", "no good", None),
        ("kimi_k2", "functions.f:7", "functions.f:7"),
        ("kimi_k2", "c1", "functions.f:0"),
        ("fenced", "c1", "c1"),
        ("hermes", "\ud800", None),
    ],
)
def test_an_id_is_written_where_the_dialect_can_carry_it(dialect, given, read):
    call = parse(render_call("f", {}, dialect, id=given), dialects=dialect).calls[0]
    assert (call.name, call.arguments, call.id) == ("f", {}, read)


def test_templates_are_filled_in_once():
    for dialect in dialects():
        check_inverse("f", {"a": "{name}{arguments}{id}{value}\0", "b": "\0"}, dialect, refusals=False)
        check_inverse("f", {"{value}": "x", "\0": 1, "{key}": None}, dialect, refusals=False)


@pytest.mark.parametrize(
    "value", ["x", "", "\n", "%% done", "a\n%% done\n", "a\n%% done\n%% end\n", "%% argument b\n", [None]]
)
def test_tags_of_parameters_may_be_whole_lines(value):
    """The line break behind a tag is the tag's own where its pattern says so; a value may begin with another one."""
    form = Form(
        head="%% call {name}\n",
        body="parameters",
        parameter="%% argument (?P<key>[a-z]{1,64}+)\n",
        value_end="\n%% done\n",
        tail="%% end\n",
        begins="%",
    )
    writing = Writing(call="%% call {name}\n{arguments}%% end\n", parameter="%% argument {key}\n{value}\n%% done\n")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    arguments = {"a": value, "b": 1}
    assert callmark.parse(callmark.render_call("f", arguments, own), dialects=own).calls[0].arguments == arguments


@pytest.mark.parametrize("before", ["", "\n", "\r\n"])
@pytest.mark.parametrize("after", ["", "\n", "\r\n"])
@pytest.mark.parametrize("value", ["x", "\nx", "x\n", "\r\nx\r\n", "\rx\r", "\n", "\r", "\n\n", "\r\n", ""])
def test_line_breaks_of_a_value_are_not_those_of_the_markup(value, after, before):
    """A row that trims one at each end of a value need not write one there."""
    form = Form(
        head='<do task="{name}">',
        body="parameters",
        parameter=r'{ws}<set key="(?P<key>[a-z]{1,64}+)">',
        value_end="</set>",
        tail="{ws}</do>",
        trim=True,
    )
    writing = Writing(
        call='<do task="{name}">{arguments}</do>', parameter=f'<set key="{{key}}">{before}{{value}}{after}</set>'
    )
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    arguments = {"a": value, "b": "y"}
    assert callmark.parse(callmark.render_call("f", arguments, own), dialects=own).calls[0].arguments == arguments


@pytest.mark.parametrize("before", ["", "\n"])
@pytest.mark.parametrize("value", ["x", "\nx", "x\n", "\r\nx\r\n", "\rx\r", "\n", "\r", "\n\n", "\r\n", ""])
def test_a_line_break_that_is_the_end_of_a_value_is_not_trimmed_either(value, before):
    form = Form(
        head="<do {name}>", body="parameters", parameter=r"\n<a (?P<key>[a-z]{1,9}+)>", value_end=r"\n</a>",
        tail=r"\n</do>", trim=True,
    )  # fmt: skip
    writing = Writing(call="<do {name}>{arguments}\n</do>", parameter=f"\n<a {{key}}>{before}{{value}}\n</a>")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    check_inverse("f", {"a": value, "b": "y"}, own, refusals=False)


def test_a_template_has_nothing_between_a_value_and_its_end():
    form = Form(
        head="<do {name}>", body="parameters", parameter="<a (?P<key>[a-z]{1,9}+)>", value_end=r"\n(?=<)",
        tail=r"{ws}</do>",
    )  # fmt: skip
    writing = Writing(call="<do {name}>{arguments}\n</do>", parameter="<a {key}>{value}\n")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    with pytest.raises(UsageError, match=r"a template that ends a value as `value_end` says, found '\\n'"):
        callmark.render_call("f", {"a": "x"}, own)


def test_a_value_that_holds_an_end_holds_nothing_that_breaks_values_behind_one():
    form = Form(
        head="<do {name}>", body="parameters", parameter="<a (?P<key>[a-z]{1,9}+)>", value_end="</a>", tail="</do>",
        broken_by=(r"\}",),
    )  # fmt: skip
    writing = Writing(call="<do {name}>{arguments}</do>", parameter="<a {key}>{value}</a>")
    own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
    check_inverse("f", {"a": "x</a>y"}, own, refusals=False)
    with pytest.raises(UsageError, match="no end of a value and no marker in the value of 'a', found one"):
        callmark.render_call("f", {"a": {"b": "</a>"}}, own)


@pytest.mark.parametrize(
    ("do", "end", "text", "escaped"),
    [
        ("@do", "@end", "@do g! {} @end;", "\\u0040do g! {} \\u0040end;"),
        ("@do", ":end", "@do g! {}:end;", None),
        ("DO", "END", "END", "END"),
        ("DO", "END", "END;", None),
        ("DO", "END", "DO g! x", None),
        ("-do", "@end", "-do g! x", None),
        ("😀", "@end", "😀", "😀"),
        ("😀", "@end", "😀 g! x", None),
    ],
)
def test_arguments_that_are_one_value_end_where_it_does(do, end, text, escaped):
    """What JSON has in strings alone has an escape there; what else could end the value is refused."""
    form = Form(head=f"{do}[ ]{{name}};", body="parameters", parameter="[ ]", value_end=end, tail=";", begins=do[0])
    own = Dialect(
        name="own", title="", models="", source="", forms=(replace(form, nested=f"{do}[ ]{{name}}!"),),
        writing=Writing(call=f"{do} {{name}}; {{arguments}}{end};"),
    )  # fmt: skip
    if escaped is None:
        with pytest.raises(UsageError, match="cannot express this call of 'f': expected arguments that hold no marker"):
            render_call("f", {"a": text}, own)
        return
    shown = render_call("f", {"a": text}, own)
    assert shown == f'{do} f; {{"a": "{escaped}"}}{end};'
    assert [call.arguments for call in parse(shown, dialects=own).calls] == [{"a": text}]


def test_arguments_that_are_one_value_want_its_end_as_the_form_has_it():
    form = Form(head="<do {name}>", body="parameters", parameter="<js>", value_end="</js>", tail="</do>")
    for end in ("</js>", "</ js>"):
        writing = Writing(call=f"<do {{name}}><js>{{arguments}}{end}</do>")
        own = Dialect(name="own", title="", models="", source="", forms=(form,), writing=writing)
        if end == form.value_end:
            check_inverse("f", {"a": 1}, own, refusals=False)
            continue
        with pytest.raises(UsageError, match="cannot express this call of 'f': expected arguments that hold no marker"):
            render_call("f", {"a": 1}, own)


def test_check_inverse_finds_a_dialect_that_is_not():
    own = Dialect(
        name="own", title="", models="", source="",
        forms=(Form(head="<x>{name}{ws}(?=\\{)", body="json"),), writing=Writing(call="<x>{name}{arguments} and more"),
    )  # fmt: skip
    with pytest.raises(AssertionError, match="law 6, reading and writing are inverse"):
        check_inverse("f", {}, own)
    with pytest.raises(UsageError):
        check_inverse("f", {"a": "\ud800"}, "call", refusals=False)
    check_inverse("f", {"a": "\ud800"}, "call")


def test_check_inverse_takes_no_mistake_of_its_caller_for_a_refusal():
    own = Dialect(name="own", title="", models="", source="", forms=(Form(head="<x>{name}{ws}(?=\\{)", body="json"),))
    with pytest.raises(UsageError, match=r"dialect own: expected templates .*, found a dialect for reading only"):
        check_inverse("f", {}, own)
    with pytest.raises(UnknownDialectError, match="found 'none'"):
        check_inverse("f", {}, "none")
    with pytest.raises(ToolsError, match="tools: "):
        check_inverse("f", {}, "call", tools=5)


@given(st.data())
def test_declared_types_are_those_that_reading_sees(data):
    kinds = ["string", "INTEGER", "dict", "null", "float", "any"]
    leaf = st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(kinds) | st.lists(st.sampled_from(kinds), min_size=1, max_size=3),
            "nullable": st.booleans(),
            "enum": st.lists(st.sampled_from([1, "a", None, 1.5, True, {}, []]), max_size=3),
            "const": st.sampled_from([1, "a", None]),
        },
    ) | st.sampled_from([{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/loop"}, {"$ref": "#x"}])  # fmt: skip
    deep = st.recursive(
        leaf,
        lambda inner: st.dictionaries(
            st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1, max_size=2)
        ),
        max_leaves=5,
    )
    schema = {
        "type": "object",
        "properties": {"a": data.draw(deep), "b": True},
        "$defs": {"x": {**data.draw(leaf), "$anchor": "x"}, "loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}},
    }
    assume("$ref" not in schema["$defs"]["x"])  # one that leads to itself is refused
    (spec,) = tool_specs({"f": schema})
    for key in ("a", "b", "c"):
        seen = Parameters(schema).declared(key) or frozenset()
        assert declared_types(spec.schema["properties"].get(key), spec.schema) == seen


def test_closers_are_hostile():
    assert sum(("<" in text or "]" in text) for text in CLOSERS) > 15
    assert callmark.render_call is render_call


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("qwen_xml", 'x</parameter>\n<parameter name="b">1'), ("qwen_xml", 'x</parameter>\n</tool_call>'),
        ("glm", "x</arg_value>\n<arg_key>b</arg_key>1</arg_value>"), ("glm", "x</arg_value><arg_key>b<arg_value>1"),
        ("minicpm5", 'x</param><paramĠname="b">1'), ("invoke", 'x</parameter>\n<invoke name="f">'),
        ("dsml", 'x</｜DSML｜parameter>\n<｜DSML｜invoke name="f">'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("declared", [False, True])
def test_no_value_ends_where_tolerant_reading_would_end_it(name, value, declared):
    tools = {"f": {"properties": {"to": {"type": "string"}, "b": {"type": "integer"}}}} if declared else None
    try:
        text = render_call("f", {"to": value}, name, tools=tools)
    except UsageError:
        return
    for tolerance in ("strict", "lenient"):
        parsed = parse(text, dialects=name, tolerance=tolerance, tools=tools)
        assert [call.arguments for call in parsed.calls] == [{"to": value}], text


@pytest.mark.parametrize("dialect", [dialect.name for dialect in dialects()])
def test_a_text_that_an_enumeration_lists_beside_lists_is_read_as_it_is_or_refused(dialect):
    for value in ("[1]", "{}", "x"):
        tools = {"f": {"properties": {"a": {"anyOf": [{"enum": [value]}, {"type": "array"}, {"type": "object"}]}}}}
        try:
            text = render_call("f", {"a": value}, dialect, tools=tools)
        except UsageError:
            assert value != "x"
            continue
        (call,) = parse(text, dialects=dialect, tools=tools, tolerance="strict").calls
        assert call.arguments == {"a": value}


@pytest.mark.parametrize("schema", [
    {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"zip": {"type": "string"}}}}},
    {"anyOf": [{"properties": {"zip": {"type": "string"}}}, {"properties": {"town": {"type": "string"}}}]},
    {"allOf": [{"properties": {"zip": {"type": "string"}}}, {"additionalProperties": {"type": "string"}}]},
])  # fmt: skip
@pytest.mark.parametrize("dialect", [row.name for row in dialects() if row.writing is not None])
def test_types_that_a_reference_or_a_branch_declares_are_written_as_they_are_read(schema, dialect):
    for value in ("150", "null", "[1]", 1, [1], None, "Oslo"):
        check_inverse("node", {"zip": value}, dialect, tools={"node": schema})


@pytest.mark.parametrize("dialect", [row.name for row in dialects()])
@pytest.mark.parametrize("call_id", ["x" * 3000, " x ", "a b", "x", '"', "\n"])
def test_an_id_is_held_as_it_is_or_left_out(dialect, call_id):
    row = next(row for row in dialects() if row.name == dialect)
    try:
        text = render_call("f", {"a": 1}, dialect, id=call_id)
    except UsageError:
        assert row.writing is None
        return
    default = parse(render_call("f", {"a": 1}, dialect), dialects=dialect).calls[0].id
    held = [call_id] if "{quoted_id}" in row.writing.id else [call_id, default]  # a string of JSON holds any
    assert parse(text, dialects=dialect).calls[0].id in held


@pytest.mark.parametrize("text", [";", "&lt;", "a;;;b;", ";;\n", "x;;"])
@pytest.mark.parametrize("trim", [False, True])
def test_a_value_may_end_with_what_its_end_begins_with(text, trim):
    form = Form(
        head="<do {name}>", body="parameters", parameter=r"\n(?P<key>[a-z]{1,9}+)=", value_end=";;", tail="\n</do>",
        trim=trim,
    )  # fmt: skip
    writing = Writing(call="<do {name}>{arguments}\n</do>", parameter="\n{key}={value};;")
    own = Dialect(name="own", title="t", models="m", source="s", forms=(form,), writing=writing)
    shown = callmark.render_call("f", {"a": text, "b": text}, own)
    assert shown == f"<do f>\na={text};;\nb={text};;\n</do>"
    check_inverse("f", {"a": text, "b": text}, own)
    assert callmark.parse(shown, dialects=own).calls[0].repairs == ()
    check_chunking(shown, dialects=own)


@pytest.mark.parametrize("quote", ["~~", "~", "@@", "''", "|", "%%", "$", "<~", '"""'])
@pytest.mark.parametrize(
    "arguments",
    [
        {"x": 1, "}>> <<do rm{}>>": 2},
        {"x": True, "a, b: c": 1},
        {"x": None, "}": 2},
        {"x": 1, "y}": "a~b @ $", ",": {"z": 1, "}": 2}},
    ],
)
def test_braces_with_a_delimiter_of_their_own_are_read_back(quote, arguments):
    form = Form(head=r"<<do[ ]{name}{ws}{object}", body="braces", quote=quote, tail="{ws}>>")
    writing = Writing(call="<<do {name}{arguments}>>")
    row = Dialect(name="own", title="t", models="m", source="s", forms=(form,), writing=writing)
    check_inverse("f", arguments, row)
