"""Arguments are decoded exactly, or refused with a reason; and a tool's schema types what has no quotes."""

from __future__ import annotations

import json
from math import isfinite
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callmark.errors import ToolsError
from callmark.reading import decoder
from callmark.reading.decoder import Undecodable, decode, decode_at
from callmark.reading.schemas import Parameters, known_tools
from callmark.reading.words import NUMBER, holdable, scalar
from callmark.toolshapes import Types, declared_types

NESTING = 64


def read(text, nesting=NESTING, **options):
    """Return ("value", JSON text of the value), which tells 1 from 1.0 and keeps order, or ("refused", code)."""
    try:
        return "value", json.dumps(decode(text, nesting, **options))
    except Undecodable as refusal:
        return "refused", refusal.code


@given(st.text(':" \t\r\n\\a', max_size=24))
@example('{"a":1,"b" :2, "c\\\\": 3, "d\\": 4')
@example(':')
@example('":')
@example(' :')
@example('\\":')
@example('\\\\":')
@example('" :')
@example('"a"  : 1')
@example('  :')
def test_colons_behind_keys_are_counted_as_the_pattern_finds_them(text):
    assert decoder._key_colons(text) == len(decoder._KEY_COLONS(text))


@pytest.mark.skipif(not decoder.__file__.endswith(".py"), reason="the compiled engine counts them so alone")
def test_a_key_that_is_there_twice_is_found_in_a_long_text_by_either_count(monkeypatch):
    long = "a: " * 1000
    for compiled in (False, True):
        monkeypatch.setattr(decoder, "COMPILED", compiled)
        assert read(json.dumps({"a": long, "b": long}))[0] == "value"
        assert read(f'{{"a": "{long}", "a": 1}}') == ("refused", "duplicate-key")


# What is decoded exactly.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (' \t\r\n{"a" : [ 1 , 2 ] }\n', {"a": [1, 2]}),
        ("null", None),
        ("18446744073709551616", 2**64),
        ("-9223372036854775809", -(2**63) - 1),
        ("9007199254740993", 2**53 + 1),
        ("9" * 4300, 10**4300 - 1),
        ("-0", 0),
        ("-0.0", -0.0),
        ("1.0", 1.0),
        ("1E2", 100.0),
        ("1e308", 1e308),
        ("1e-400", 0.0),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\u0000\/\b"', "\0/\b"),
        ('"\x7f\x85\u2028\ufeff"', "\x7f\x85\u2028\ufeff"),
        ('{"":{"":[]}}', {"": {"": []}}),
        (r'{"a":1,"A":2,"a ":3,"\"a\":":4}', {"a": 1, "A": 2, "a ": 3, '"a":': 4}),
    ],
)
def test_a_value_is_what_the_text_says(text, value):
    assert read(text) == ("value", json.dumps(value))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "{", "[", '"', "-", "tru", "{}{}", "1 2", "[1,]", '{"a":1,}', '{"a"}', "{1:2}", "{a:1}", "{'a':1}"),
        *("01", "+1", "1.", ".5", "0x1", "1_000", "- 1", "NaN", "Infinity", "-Infinity", "1e400", "-1e400"),
        *("9" * 4301, "-" + "9" * 4301, '"a\nb"', '"\0"', r'"\x"', r'"\u12"', '{"a":1}//', "/**/1", "\ufeff{}"),
        *("\xa01", "\x0b1", "\u20281", "１", r'"\ud83d"', r'"\ude00\ud83d"', r'"\ud83d\u0041"', '"\ud83d"', '"\ude00"'),
    ],
)
def test_what_is_no_json_is_refused(text):
    assert read(text)[0] == "refused"
    assert read(f'{{"a":[{text}]}}')[0] == "refused" or not text.strip()


# A key given twice: the fast counts must never let one through.


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":1,"a":1}',
        '{"a" :1,"a"\n:2}',
        '{"":1,"":2}',
        r'{"a":1,"\u0061":2}',
        '{"a" \t\r\n:1,"a"  :2}',
        r'{"\"":1,"\"":2}',
        r'{"\\":1,"\\":2}',
        r'{"\\":1,"\\":2,"b":"\":"}',
        r'{"b":"\":","a":1,"a":2}',
        r'{"b":"\\\":","a":1,"a":2}',
        '{"x":{"a":1,"a":2}}',
        '{"x":[0,[{"b":1},{"a":1,"a":2}]]}',
        '[{"a":1,"a":2}]',
        '{"a":":","a":"::"}',
        '{"a":{"a":1},"a":{"a":2}}',
    ],
)
def test_a_key_given_twice_is_refused(text):
    assert read(text) == ("refused", "duplicate-key")


@pytest.mark.parametrize(
    "text",
    [
        '{"x":{"a":1},"y":{"a":1},"a":[{"a":1},{"a":1}]}',
        r'{"a":"\"a\":1,\"a\":2"}',
        r'{"a":"{\"a\" :1}","b":["\"b\" :"]}',
        r'{"a":{"b":"\\"},"c":"\\\":"}',
        '{"a":":","b":{"c":"::","d":" : "}}',
    ],
)
def test_what_only_looks_like_a_key_is_none(text):
    assert read(text) == ("value", json.dumps(json.loads(text)))


# Limits.


@pytest.mark.parametrize(("opener", "closer"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nesting_ends_at_the_limit(opener, closer):
    times = NESTING // (2 if len(closer) == 2 else 1)
    within = opener * times + "1" + closer * times
    assert read(within)[0] == "value"
    assert read(f"[{within}]") == ("refused", "nesting-too-deep")
    assert read(within, nesting=NESTING - 1) == ("refused", "nesting-too-deep")


@pytest.mark.parametrize("opener", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("long", ["x" * 3000, "x" * 3000 + "é", "x" * 3000 + "[{" * 400])
def test_nesting_ends_at_the_limit_beside_a_long_text_too(opener, long):
    times = NESTING // (2 if opener[0] == "[" and len(opener) > 1 else 1)
    closer = "".join({"[": "]", "{": "}"}.get(char, "") for char in reversed(opener))
    within = opener * times + json.dumps(long, ensure_ascii=False) + closer * times
    assert read(within)[0] == "value"
    assert read(f"[{within}]") == ("refused", "nesting-too-deep")


@pytest.mark.parametrize("text", [r"\ud83d", "\ud83d"])
@pytest.mark.parametrize("many", [0, 2000])
def test_half_a_pair_of_surrogates_is_refused_in_a_long_text_too(text, many):
    assert read(f'["{"x" * 3000}", "{text}"{", 1" * many}]') == ("refused", "unexpected-text")


def test_brackets_side_by_side_or_in_strings_are_no_nesting():
    assert read("[" + "[]," * 200 + "[]]")[0] == "value"
    assert read(json.dumps({"a": "[{" * 200, "b": [["]"]]}))[0] == "value"


@pytest.mark.parametrize("times", [100, 500, *range(900, 1010), 10_000, 300_000])
def test_depth_that_a_second_key_hides_raises_nothing_else(times):
    assert read('{"a":' + "[" * times + "]" * times + ',"a":1}')[0] == "refused"


@pytest.mark.parametrize("times", [100, 900, 1_000, 10_000, 300_000])
def test_nesting_far_over_the_limit_is_told_as_such(times):
    assert read("[" * times + "]" * times) == ("refused", "nesting-too-deep")


@pytest.mark.parametrize(
    "number",
    [
        *("0", "-0", "9" * 4300, "9" * 4301, "-" + "9" * 4300, "-" + "9" * 4301, "1e400", "-1e400", "1e308", "1e-400"),
        *("1." + "0" * 4298, "1." + "0" * 4299, "1." + "0" * 5000, "1e" + "0" * 5000 + "1", "1" * 4301 + "e0"),
    ],
    ids=lambda number: f"{number[:6]}:{len(number)}",
)
def test_a_number_is_decoded_where_a_word_of_it_is_one(number):
    """The reader asks `holdable` and the fast path asks `decode`: a number must not depend on who reads it."""
    assert NUMBER.fullmatch(number)
    assert (read(number)[0] == "value") == holdable(number)


# Against json, which is told to refuse what JSON cannot hold.

_PIECES = [*'a:,{}[]" é😀', r"\"", r"\\", r"\u0061", r"\n", r"\/", '":', r"\":", '" :', "a", "b", r"\ud83d", "\ud83d"]
_gaps = st.sampled_from(["", "", "", " ", "\n\t"])
_inside = [*(piece for piece in _PIECES if not piece.startswith('"')), *[r"\":"] * 4]
_strings = st.lists(st.sampled_from(_inside), max_size=4).map(lambda pieces: '"' + "".join(pieces) + '"')
_keys = st.sampled_from(['"a"', '"b"', '"c"', '""', r'"\u0061"', r'"\""', r'"\\"', '":"', r'"\":"']) | _strings
_scalars = _strings | st.sampled_from(["0", "-1", "2.5", "1e400", "NaN", "true", "null", "123456789012345678901", "01"])


def _container(inner, gap, bracket):
    return bracket[0] + gap + f"{gap},{gap}".join(inner) + gap + bracket[1]


_values = st.recursive(
    _scalars,
    lambda inner: (
        st.builds(_container, st.lists(inner, max_size=3), _gaps, st.just("[]"))
        | st.builds(
            _container,
            st.lists(st.builds("{}{}:{}{}".format, _keys, _gaps, _gaps, inner), max_size=4),
            _gaps,
            st.just("{}"),
        )
    ),
    max_leaves=8,
)


@st.composite
def json_texts(draw):
    """JSON texts full of colons, quotes and backslashes in strings; some with a key twice; some broken."""
    text = draw(_values)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(["", *_PIECES])) + text[at + draw(st.integers(0, 1)) :]
    return text


def _no_pair_twice(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("duplicate-key")
    return dict(pairs)


def _no_constant(name):
    raise ValueError(name)


def _finite(text):
    if not isfinite(float(text)):
        raise ValueError(text)
    return float(text)


def _by_json(text):
    try:
        value = json.loads(text, object_pairs_hook=_no_pair_twice, parse_constant=_no_constant, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError as error:  # a lone surrogate is a UnicodeEncodeError, which is one too
        return "refused", str(error)
    return "value", json.dumps(value)


@settings(deadline=None)
@given(json_texts(), st.booleans())
@example(r'{"\\":1,"\"":":","\u0061":{"a":1}}', False)
def test_decode_agrees_with_json(text, long):
    if long:
        text = f'[{text},"{"x" * 3000}"]'
    kind, content = _by_json(text)
    ours = read(text)
    assert read(text, spares_memory=True)[0] == kind
    assert ours[0] == kind
    if kind == "value":
        assert ours[1] == content
    elif content == "duplicate-key" and _is_json(text):
        assert ours[1] == "duplicate-key"


def _is_json(text):
    """Whether only its doubled keys keep a text from being taken."""
    try:
        json.dumps(
            json.loads(text, object_pairs_hook=lambda pairs: pairs, parse_constant=_no_constant, parse_float=_finite),
            ensure_ascii=False,
        ).encode()
    except ValueError:
        return False
    return True


def test_the_texts_are_nasty():
    seen, taken, doubled, colons = [], [], [], []

    @settings(deadline=None, max_examples=300, database=None)
    @given(json_texts())
    def look(text):
        seen.append(text)
        kind, content = _by_json(text)
        taken.extend([text] if kind == "value" else [])
        doubled.extend([text] if content == "duplicate-key" else [])
        colons.extend([text] if kind == "value" and r"\":" in text else [])

    look()
    assert len(taken) > len(seen) / 5
    assert len(doubled) > len(seen) / 100
    assert len(colons) > len(seen) / 100


# What a word without quotes means.


@pytest.mark.parametrize(
    ("word", "json_text"),
    [
        *(("7", "7"), ("0", "0"), ("-0", "-0"), ("1.50", "1.50"), ("1e3", "1e3"), ("18446744073709551616",) * 2),
        *(("true", "true"), ("True", "true"), ("None", "null"), ("null", "null"), ("TRUE", '"TRUE"'), ("nil", '"nil"')),
        *(("007", '"007"'), ("+1", '"+1"'), ("1.", '"1."'), ("1e400", '"1e400"'), ("NaN", '"NaN"'), ("٣", '"٣"')),
        *(("Oslo", '"Oslo"'), ('a"b\\', r'"a\"b\\"'), ("東京", '"東京"')),
        ("9" * 4301, '"' + "9" * 4301 + '"'),
    ],
    ids=lambda text: text[:24],
)
def test_without_a_schema_json_is_json_and_the_rest_is_text(word, json_text):
    assert scalar(word, None) == json_text
    assert scalar(word, Types()) == json_text


@pytest.mark.parametrize(
    ("types", "word", "json_text"),
    [
        ("string", "123", '"123"'),
        ("string", "null", '"null"'),
        ("string", "true", '"true"'),
        ("string null", "null", "null"),
        ("string null", "None", "null"),
        ("string integer", "123", '"123"'),
        ("string boolean", "true", '"true"'),
        ("integer", "007", "7"),
        ("integer", "+7", "7"),
        ("integer", "-0", "-0"),
        ("integer", " 12 ", "12"),
        ("integer", "0", "0"),
        ("integer", "-000", "-0"),
        ("integer", "1.5", "1.5"),
        ("integer", "1e3", "1e3"),
        *(("integer", "null", "null"), ("integer", " None ", "null"), ("number", "null", "null")),
        *(("boolean", "NULL", "null"), ("object", "null", "null"), ("array", "None", "null")),
        ("integer", "９", '"９"'),
        ("integer", "9" * 4301, '"' + "9" * 4301 + '"'),
        ("number", "1.5", "1.5"),
        ("number", "1e3", "1e3"),
        ("number", "7", "7"),
        ("number", "1e400", '"1e400"'),
        ("number", "abc", '"abc"'),
        ("boolean", "true", "true"),
        ("boolean", "False", "false"),
        ("boolean", "TRUE", "true"),
        ("boolean", "yes", '"yes"'),
        ("boolean", "0", "0"),
        ("boolean integer", "0", "0"),
        ("null", "None", "null"),
        ("object", "x", '"x"'),
    ],
    ids=lambda text: text[:24],
)
def test_with_a_schema_the_declared_types_decide(types, word, json_text):
    assert scalar(word, Types(types.split())) == json_text


# What a schema declares.


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer null"),
        ({"type": "STRING", "nullable": True}, "string null"),
        ({"type": "int"}, "integer"),
        ({"type": "tuple"}, "array"),
        ({"enum": ["a", 1, None, True, 1.5, [], {}]}, "string integer null boolean number array object"),
        ({"const": "a"}, "string"),
        ({"const": None}, "null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string null"),
        ({"oneOf": [{"type": "integer"}], "allOf": [{"type": "boolean"}]}, "integer boolean"),
        ({"$ref": "#/$defs/city"}, "string"),
        ({"$ref": "#/$defs/a~1b~0c"}, "integer"),
        ({"$ref": "#/$defs/nowhere/at/all"}, ""),
        ({"$ref": "#/$defs/loop"}, ""),
        ({"$ref": "other.json"}, ""),
        ({"type": 7}, ""),
        ({"type": [7]}, ""),
        ({"anyOf": "string"}, ""),
        ({"allOf": [{"type": ["string", "integer"]}, {"type": "number"}]}, "integer"),
        ({"type": ["string", "null"], "anyOf": [{"type": "string"}, {"type": "null"}]}, "string null"),
        ({"$ref": "#/$defs/city", "nullable": True}, "string null"),
        ({"$ref": "#/$defs/city", "type": ["string", "integer"]}, "string"),
        ({"enum": ["a"], "nullable": True}, "string null"),
        ({"anyOf": [{"type": "integer"}, {"enum": ["auto", None]}]}, "integer null"),
        ({"anyOf": [{"type": "string"}, {"const": None}]}, "string null"),
        ({"nullable": True}, ""),
        (True, ""),
        (None, ""),
    ],
)
def test_what_a_schema_declares(schema, types):
    definitions = {"city": {"type": "string"}, "a/b~c": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}}
    parameters = Parameters({"properties": {"x": schema, 1: {}}, "$defs": definitions})
    assert parameters.names == ("x",)
    for _ in range(2):  # the second answer is the one that was kept
        assert parameters.declared("x") == (frozenset(types.split()) or None)
    assert parameters.declared("y") is None


@pytest.mark.parametrize(
    ("schema", "word", "json_text"),
    [
        ({"enum": [1, 2, "auto"]}, "1", "1"),
        ({"enum": [1, 2, "auto"]}, "auto", '"auto"'),
        ({"enum": [1, 2, "auto"]}, "3", '"3"'),
        ({"enum": [1, 2, "auto"]}, " 1 ", "1"),
        ({"enum": ["1", "2"]}, "1", '"1"'),
        ({"enum": ["1", "2"]}, "null", '"null"'),
        ({"enum": [1, 2]}, "null", "null"),
        ({"enum": ["1", 1]}, "1", '"1"'),
        ({"type": "string", "enum": ["true", "off"]}, "true", '"true"'),
        ({"type": ["string", "integer"], "enum": [1, "x"]}, "1", "1"),
        ({"type": "string", "enum": [1, "1"]}, "1", '"1"'),
        ({"enum": [None, "a"]}, "None", "null"),
        ({"enum": [True, "maybe"]}, "True", "true"),
        ({"enum": [0.5, "auto"]}, "0.5", "0.5"),
        ({"enum": [[1], "auto"]}, "[1]", '"[1]"'),
        ({"enum": [float("nan"), "auto"]}, "NaN", '"NaN"'),
        pytest.param({"enum": [10**5000, "auto"]}, "1", '"1"', id="an integer that is too long"),
        ({"const": 5}, "5", "5"),
        ({"const": "5"}, "5", '"5"'),
        ({"anyOf": [{"type": "string"}, {"const": 5}]}, "5", '"5"'),
        ({"anyOf": [{"type": "string", "enum": ["a", "7"]}, {"type": "integer"}]}, "5", "5"),
        ({"anyOf": [{"type": "string", "enum": ["a", "7"]}, {"type": "integer"}]}, "7", '"7"'),
        ({"anyOf": [{"type": "string", "enum": ["a", "7"]}, {"type": "integer"}]}, "b", '"b"'),
    ],
    ids=str,
)
def test_enum_and_const_decide(schema, word, json_text):
    assert scalar(word, Parameters({"properties": {"x": schema}}).declared("x")) == json_text


def test_parameters_without_a_name_of_their_own_are_declared_by_the_rest():
    parameters = Parameters({"properties": {"x": {"type": "integer"}}, "additionalProperties": {"type": "string"}})
    assert parameters.declared("x") == {"integer"}
    assert parameters.declared("y") == {"string"}
    assert Parameters({"additionalProperties": False}).declared("y") is None


def test_a_schema_says_by_references_and_unions_too_what_the_parameters_are():
    """A model of pydantic that refers to itself has nothing but a reference."""
    node = {"properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}}, "required": ["name"]}
    whole = Parameters({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    assert whole.names == ("name", "next")
    assert whole.declared("name") == {"string"}
    assert whole.within("next", as_list=False).declared("name") == {"string"}
    assert whole.lacks("nam")
    assert whole.takes(["name"], without=[])
    assert not whole.takes(["next"], without=[])
    parts = [{"properties": {"b": {"type": "integer"}}}, {"additionalProperties": {"type": "boolean"}}]
    together = Parameters({"properties": {"a": {"type": "string"}}, "allOf": parts})
    assert together.names == ("a", "b")
    assert [together.declared(key) for key in "abc"] == [{"string"}, {"integer"}, {"boolean"}]
    either = Parameters({"properties": {"a": {}}, "oneOf": [{"required": ["a"]}, *parts]})
    assert either.names == ("a",), "which of the branches holds is not known, and no value is bound by one"
    assert either.declared("b") == {"integer"}


def test_what_is_declared_of_the_members_of_a_parameter():
    address = {"type": "object", "properties": {"zip": {"type": "string"}}}
    code = {"type": "integer"}
    other = {"properties": {"zip": {"type": "null"}, "code": code}, "additionalProperties": {"type": "boolean"}}
    schema = {
        "properties": {
            "to": {"$ref": "#/$defs/address"},
            "from": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/address"}, other]},
            "tags": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]},
            "round": {"$ref": "#/properties/round"},
            "odd": {"properties": [], "items": 7, "allOf": {}, "$ref": 3},
        },
        "$defs": {"address": address},
    }
    parameters = known_tools({"f": schema})["f"]
    to, either = parameters.within("to", as_list=False), parameters.within("from", as_list=False)
    assert to.declared("zip") == {"string"}
    assert to.declared("code") is None
    assert either.declared("zip") == {"string", "null"}
    assert either.declared("code") == {"integer"}
    assert either.declared("else") == {"boolean"}
    tags = parameters.within("tags", as_list=True)
    assert [tags.declared(key) for key in ("item", "tag")] == [{"number"}, {"number"}]
    for key, as_list in (("round", False), ("round", True), ("odd", False), ("odd", True), ("unknown", False)):
        assert parameters.within(key, as_list=as_list).declared("a") is None
    assert parameters.within("to", as_list=False) is to, "made once"


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}


@pytest.mark.parametrize(
    "tools",
    [
        [{"type": "function", "function": {"name": "w", "parameters": SCHEMA}}],
        [{"type": "function", "name": "w", "parameters": SCHEMA}],
        [{"name": "w", "input_schema": SCHEMA}],
        [{"name": "w", "inputSchema": SCHEMA}],
        {"tools": [{"name": "w", "inputSchema": SCHEMA}]},
        [{"functionDeclarations": [{"name": "w", "parametersJsonSchema": SCHEMA}]}],
        [{"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "w", "parameters": SCHEMA}]}],
        {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "w", "parameters": SCHEMA}]},
        [SimpleNamespace(name="w", parameters=SCHEMA)],
        {"w": SCHEMA},
    ],
    ids=[
        *("chat", "responses", "anthropic", "mcp", "mcp-list", "gemini", "namespace-listed", "namespace", "object"),
        "mapping",
    ],
)
def test_tools_are_taken_as_hosts_have_them(tools):
    known = known_tools(tools)
    assert list(known) == ["w"]
    assert known["w"].names == ("city", "days")
    assert known["w"].declared("days") == {"integer"}


def test_names_alone_are_tools_without_parameters():
    known = known_tools(iter(["f", {"name": "g", "parameters": None}, {"name": "h", "parameters": {"properties": []}}]))
    assert {name: parameters.names for name, parameters in known.items()} == {"f": (), "g": (), "h": ()}


def test_no_tools_given_is_not_the_same_as_an_empty_list_of_tools():
    assert known_tools(None) is None
    assert known_tools([]) == {}
    assert known_tools([{"functionDeclarations": []}]) == {}


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ("f", "expected a sequence of tools, found str"),
        (b"f", "found bytes"),
        (7, "found int"),
        (["f", 7], "tools[1]: expected a name, or an object that has one, found 7"),
        ([""], "tools[0]"),
        ([{"name": 7}], "tools[0]"),
        ([{"function": {}}], "tools[0]"),
        ([{}], "tools[0]"),
        ([["f"]], "tools[0]"),
        ([{"name": "f", "parameters": "{}"}], "tool 'f': expected a JSON Schema of its arguments, found str"),
        ({"f": ["zip"]}, "tool 'f': expected a JSON Schema of its arguments, found list"),
    ],
)
def test_what_is_no_tool_is_the_callers_mistake(tools, told):
    with pytest.raises(ToolsError) as caught:
        known_tools(tools)
    assert told in str(caught.value)


@pytest.mark.parametrize("window", range(1, 40))
def test_where_a_window_cuts_a_value_makes_no_difference(window):
    text = '{"k": [1, -2.5e3, "a\\n", {"b": null}, true]} and more'
    assert decode_at(text, 0, 64, window) == ({"k": [1, -2500.0, "a\n", {"b": None}, True]}, text.index(" and"))


@pytest.mark.parametrize("window", range(1, 40))
@pytest.mark.parametrize("rest", ["", ")]", ")] and [CALL: f({})] more", ' )] {"k": 1})]'])
def test_a_guess_at_the_end_of_a_value_makes_no_difference_but_to_its_time(window, rest):
    text = '{"k": "])}})]", "l": [{"m": "})]"}, 1]}'
    assert decode_at(text + rest, 0, 64, window, "})]") == (json.loads(text), len(text))
    with pytest.raises(Undecodable):
        decode_at(text.replace("1", "1 2") + rest, 0, 64, window, "})]")


def test_an_error_costs_what_was_copied():
    text = '{"k": "' + "x" * 100_000 + '", "l" 1}'
    with pytest.raises(Undecodable) as refused:
        decode_at(text, 0, 64, len(text) + 1)
    assert refused.value.reached > 100_000
    broken = '{"k" 1, "l": "' + "x" * 100_000
    for read in (lambda: decode_at(broken, 0, 64, len(broken) + 1), lambda: decode(broken, 64)):
        with pytest.raises(Undecodable) as refused:
            read()
        assert 5 < refused.value.reached == len(broken) // 16


@pytest.mark.parametrize("spares_memory", [False, True])
@pytest.mark.parametrize("wrong", ["NaN]", "Infinity]", "-Infinity]", "1e400]", "1] 2", "1", "01]"])
def test_long_texts_too_are_json_with_finite_numbers_and_nothing_else(wrong, spares_memory):
    with pytest.raises(Undecodable):
        decode(f'["{"x" * 3000}", {wrong}', 64, spares_memory=spares_memory)


@pytest.mark.parametrize(
    ("said", "types"),
    [
        ("string", {"string"}), ("INT", {"integer"}), (["text", "null"], {"string", "null"}), ("odd", {"odd"}),
        ("any", set()), (["any", "int"], set()), ([None, "str", 5], {"string"}), ([], set()), (None, set()), (5, set()),
        (("int", "float"), {"integer", "number"}),
    ],
)  # fmt: skip
def test_what_a_type_declares_is_the_same_alone_and_in_a_union(said, types):
    schema = {"type": said, "description": "words"}
    assert declared_types(schema, schema) == types
    assert declared_types({"anyOf": [schema]}, {}) == types
    assert not declared_types(schema, schema).members
