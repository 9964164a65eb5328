"""Examples satisfy the schemas that they are made from, as the reference implementation of JSON Schema sees it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Literal
from uuid import UUID

import jsonschema
import pytest
from hypothesis import event, given

from callmark.functions import read_signature
from callmark.writing.examples import example_arguments
from callmark.writing.signatures import signature
from callmark.writing.toolset import tool_specs
from writing import tool_schemas


def spec_of(schema):
    (spec,) = tool_specs({"f": schema})
    return spec


def is_valid(schema, value) -> bool:
    return not list(jsonschema.Draft202012Validator(schema).iter_errors(value))


@given(tool_schemas)
def test_examples_are_valid(schema):
    spec = spec_of(schema)
    example = example_arguments(spec)
    event("found" if example is not None else "none")
    if example is not None:
        assert is_valid(spec.schema, example)


OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
OTHER = {"properties": {"b": {"type": "string"}}, "required": ["b"]}
NODE = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}}}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"allOf": [OBJECT, OTHER]}, 'f({"a": integer, "b": string})'),
        ({"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": OBJECT}}, 'f({"a": integer})'),
        ({"$ref": "#/$defs/A", "$defs": {"A": OBJECT}}, 'f({"a": integer})'),
        ({"anyOf": [OBJECT, OTHER]}, 'f({"a": integer}) | f({"b": string})'),
        ({**OBJECT, "oneOf": [OTHER, {"maxProperties": 1}]}, 'f({"a": integer, "b": string}) | f({"a": integer})'),
        ({"properties": {"a": {"allOf": [{"type": "string"}, {"minLength": 3}]}}}, 'f({"a"?: string})'),
        (
            {"properties": {"a": {"allOf": [{"$ref": "#/$defs/A"}], "default": {"a": 1}}}, "$defs": {"A": OBJECT}},
            'f({"a"?: {"a": integer} = {"a": 1}})',
        ),
        ({"properties": {"a": {"$ref": "#x"}}, "$defs": {"A": {"$anchor": "x", "type": "null"}}}, 'f({"a"?: null})'),
        ({"properties": {"a": {"$ref": "#/$defs/x~1y%20z"}}, "$defs": {"x/y z": {"enum": [1]}}}, 'f({"a"?: 1})'),
        (
            {"properties": {"a": {"anyOf": [{"type": "null"}]}, "b": {"$ref": "#/properties/a/anyOf/0"}}},
            'f({"a"?: null, "b"?: null})',
        ),
        (
            {"properties": {"n": {"$ref": "#/$defs/Node"}}, "required": ["n"], "$defs": {"Node": NODE}},
            'f({"n": {"v"?: integer, "next"?: {"v"?: integer, "next"?: {"v"?: integer, "next"?: object}}}})',
        ),
        (
            {"properties": {"n": {"oneOf": [{"properties": {"k": {"const": k}}, "required": ["k"]} for k in "ab"]}}},
            'f({"n"?: {"k": "a"} | {"k": "b"}})',
        ),
        ({"properties": {"p": {"prefixItems": [{"type": "number"}] * 2, "items": False, "type": "array"}}},
         'f({"p"?: [number, number]})'),
        ({"properties": {"p": {"prefixItems": [{"type": "number"}], "type": "array"}}}, 'f({"p"?: [number, ...]})'),
        ({"properties": {"h": {"type": "object", "additionalProperties": {"type": "string"}}}},
         'f({"h"?: Record<string, string>})'),
        ({"additionalProperties": {"type": "integer"}}, "f(Record<string, integer>)"),
        ({"properties": {"t": {"$ref": "#/$defs/T"}},
          "$defs": {"T": {"type": "object", "additionalProperties": {"$ref": "#/$defs/T"}}}},
         'f({"t"?: Record<string, Record<string, Record<string, object>>>})'),
        ({"properties": {"x": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}}}, 'f({"x"?: number ..1 >0})'),
        ({"properties": {"x": {"type": "string", "contentEncoding": "base64"}}}, 'f({"x"?: string(base64)})'),
        ({"properties": {"a": {"type": "string"}, "b": False}}, 'f({"a"?: string, "b"?: never})'),
        ({"properties": {"a": {"not": {"const": "x"}}}, "required": ["a"]}, 'f({"a": any})'),
        ({"properties": {"a": {}}, "if": {"required": ["b"]}, "then": {"required": ["c"]}}, 'f({"a"?: any})'),
        ({"properties": {"a": {"type": "string", "uiHint": "wide"}}, "required": ["a"]}, 'f({"a": string})'),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, 'f({"a"?: any})'),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {}}, "required": ["a"],
             "dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
            'f({"a": any})',
        ),
    ],
    ids=str,
)  # fmt: skip
def test_schemas_in_the_wild_are_shown_whole_and_have_an_example(schema, written):
    spec = spec_of(schema)
    assert signature(spec) == written
    example = example_arguments(spec)
    assert example is not None
    assert list(jsonschema.validators.validator_for(schema)(schema).iter_errors(example)) == []


def test_examples_are_what_functions_take():
    def call(
        at: dt.datetime, day: dt.date, clock: dt.time, length: dt.timedelta, price: Decimal, data: bytes, id: UUID,  # noqa: A002
        pair: tuple[int, str], words: set[str], table: dict[str, list[float]], kind: Literal["a", 1, None],
    ): ...  # fmt: skip

    example = example_arguments(tool_specs([call])[0])
    assert read_signature(call).bind(example, None).arguments.keys() == example.keys()
    assert len(example) == 11


def test_a_schema_that_holds_itself_gets_the_shortest_example():
    link = {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
    node = {"properties": {"next": link}, "required": ["next"]}
    spec = spec_of({"properties": {"n": {"$ref": "#/$defs/Node"}}, "required": ["n"], "$defs": {"Node": node}})
    assert str(example_arguments(spec)).count("next") <= 4
    deep = {"type": "string"}
    for _ in range(20):
        deep = {"type": "object", "properties": {"a": deep}, "required": ["a"]}
    assert str(example_arguments(spec_of(deep))).count("a") > 20


@pytest.mark.parametrize(
    "schema",
    [
        {"$dynamicRef": "#x"},
        {"pattern": "("},
        {"pattern": "^(x+x+)+y$", "minLength": 4000},
        {"not": {}},
        {"$ref": "#/properties/a/anyOf/0", "anyOf": [{"anyOf": [{"$ref": "#/properties/a"}] * 6}] * 6},
        {"anyOf": [{"$ref": "#/properties/a"}]},
        {"type": "array", "minItems": 40},
        {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]},
        {"multipleOf": 1e-300, "minimum": 1e300, "type": "number"},
    ],
    ids=str,
)
def test_hostile_schemas_have_no_example_and_take_no_time(schema):
    again = {"allOf": [{"$ref": "#/$defs/A"}] * 9, "not": {}}
    root = {"properties": {"a": schema}, "required": ["a"], "$defs": {"A": again}}
    assert example_arguments(spec_of(root)) is None
    assert signature(spec_of(root)).startswith('f({"a": ')


STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (STRING, "some a"),
        ({"type": "string", "maxLength": 2}, "so"),
        ({"type": "string", "minLength": 8}, "some axx"),
        ({"type": "string", "format": "date"}, "2024-05-17"),
        ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}, "AB-123"),
        ({"type": "string", "pattern": "^(?:X-[0-9]+)?$"}, "X-1"),
        ({"type": "string", "pattern": "^$|^X-[0-9]+$"}, "X-1"),
        ({"type": "string", "pattern": "^(?=[a-z])[a-z]{20}$"}, "a" * 20),
        ({"type": "string", "example": "Oslo"}, "Oslo"),
        ({"type": "string", "examples": [7, "Oslo"]}, "Oslo"),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5, "multipleOf": 3}, 6),
        ({"type": "number", "exclusiveMaximum": 0.25}, 0),
        ({"type": "number", "minimum": 2.0**60}, 2.0**60),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "integer"}}, [2]),
        ({"type": "array", "minItems": 2, "uniqueItems": True, "items": {"enum": ["x", "y"]}}, ["x", "y"]),
        ({"type": "array", "minItems": 2, "uniqueItems": True}, ["some a", "some a 2"]),
        ({"type": "array", "minItems": 3, "uniqueItems": True, "items": STRING}, ["some a", "some a 2", "some a 3"]),
        ({"type": "array", "contains": {"const": 7}}, [7]),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "items": False}, [2]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "object", "properties": {"b": {"type": "integer"}}}, {"b": 2}),
        ({"type": "object", "minProperties": 2, "properties": {"b": {}, "c": {}}}, {"b": "some b", "c": "some c"}),
        ({"properties": {"b": {"enum": [1]}}}, {"b": 1}),
        ({"allOf": [{"type": "integer", "minimum": 3}]}, 3),
        ({"const": "x"}, "x"),
    ],
    ids=str,
)
def test_examples_are_these(schema, expected):
    found = example_arguments(spec_of({"properties": {"a": schema}, "required": ["a"]}))
    assert found == {"a": expected}
    assert is_valid(schema, expected)


def test_examples_within_bounds_that_no_float_can_be_are_exact():
    for schema, expected in (
        ({"maximum": 2**1024}, 2**1024),
        ({"minimum": -(2**1024)}, -(2**1024)),
        ({"exclusiveMinimum": 2**1024}, 2**1024 + 1),
        ({"exclusiveMaximum": -(2**1024), "multipleOf": 3}, -(2**1024) - 2),
        ({"exclusiveMaximum": 2**1024, "multipleOf": 0.5}, 2),
        ({"minimum": 0.5, "multipleOf": 2**1024}, 2**1024),
        ({"exclusiveMinimum": 1e17}, 10**17 + 1),
    ):
        for kind in ("integer", "number"):
            whole = {"properties": {"a": {"type": kind, **schema}}, "required": ["a"]}
            assert example_arguments(spec_of(whole)) == {"a": expected}
            assert is_valid(whole, {"a": expected})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 5000},
        {"type": "array", "minItems": 100},
        {"type": "array", "prefixItems": [False], "minItems": 1},
        {"type": "object", "required": ["b"], "properties": {"b": False}},
        False,
    ],
    ids=str,
)
def test_no_example_rather_than_a_wrong_one(schema):
    assert example_arguments(spec_of({"properties": {"a": schema}, "required": ["a"]})) is None


def test_optional_parameters_are_left_out_but_for_the_only_one():
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    assert example_arguments(spec_of(schema)) == {"a": 2}
    assert example_arguments(spec_of({**schema, "required": ["b"]})) == {"b": 2}
    assert example_arguments(spec_of({**schema, "required": ["b"], "minProperties": 2})) == {"a": 2, "b": 2}
    assert example_arguments(spec_of({})) == {}


def test_recursive_schemas_end():
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, "required": ["left"]}
    assert example_arguments(spec_of(tree)) is None
    assert example_arguments(spec_of({**tree, "required": []})) is not None


def test_what_a_schema_says_not_to_be_is_something_else():
    for schema in ({"not": {"type": "string"}}, {"not": {"type": ["string", "number"]}}):
        whole = {"properties": {"a": schema}, "required": ["a"]}
        example = example_arguments(spec_of(whole))
        assert is_valid(whole, example), example
