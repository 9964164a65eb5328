"""Examples satisfy the schemas that they are made from, as the reference implementation of JSON Schema sees it."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from callmark.writing.examples import conforms, example_arguments
from callmark.writing.toolset import tool_specs
from writing import json_values, tool_schemas


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


@given(tool_schemas, st.dictionaries(st.sampled_from(["city", "days", "a b"]), json_values, max_size=3))
def test_what_conforms_is_valid(schema, value):
    spec = spec_of(schema)
    if conforms(value, spec.schema, spec.schema):
        assert is_valid(spec.schema, value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [1, 1.0], [1.5, True, "1", None]),
        ({"type": ["number", "null"]}, [1, 1.5, None], ["x", False]),
        ({"enum": [1, "a", [1], {"b": 1}]}, [1, 1.0, "a", [1], {"b": 1}], [True, "b", [True], {"b": 2}, {}]),
        ({"const": True}, [True], [1, "true"]),
        ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2.5, "x"], [0, 3]),
        ({"exclusiveMinimum": 1, "maximum": 3}, [3, 1.5], [1, 4]),
        ({"multipleOf": 0.5}, [1, 1.5], [0.3]),
        ({"minLength": 2, "maxLength": 3}, ["ab", "abc", 7], ["a", "abcd"]),
        ({"pattern": "^a"}, ["ab", 1], ["ba"]),
        ({"items": {"type": "string"}, "minItems": 1, "maxItems": 2}, [["a"], 7], [[], ["a", "b", "c"], [1]]),
        ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [[1], ["a", "b"]]),
        ({"uniqueItems": True}, [[1, 2], [1, True]], [[1, 1.0], [{"a": [1]}, {"a": [1]}]]),
        ({"contains": {"type": "null"}}, [[1, None], 7], [[], [1]]),
        ({"required": ["a"], "properties": {"a": {"type": "string"}}}, [{"a": "x"}, 7], [{}, {"a": 1}]),
        ({"additionalProperties": False, "patternProperties": {"^x": {}}}, [{}, {"x1": 1}], [{"y": 1}]),
        ({"additionalProperties": {"type": "string"}}, [{"a": "x"}], [{"a": 1}]),
        ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
        ({"propertyNames": {"maxLength": 1}}, [{"a": 1}], [{"ab": 1}]),
        ({"dependentRequired": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, [1], [0, 3]),
        ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, ["x", 6], [1]),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, ["x", 1], [1.5]),
        ({"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]}, [{"a": 1}], [{}]),
        ({"oneOf": [{"type": "string"}, False]}, ["x"], [1]),
        ({"x-internal": 1, "type": "null"}, [None], [0]),
    ],
    ids=str,
)
def test_conforms_is_as_the_reference_implementation(schema, good, bad):
    for value in good:
        assert is_valid(schema, value)
        assert conforms(value, schema, schema)
    for value in bad:
        assert not is_valid(schema, value)
        assert not conforms(value, schema, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$dynamicRef": "#x"},
        {"not": {"type": "string"}},
        {"if": {}, "then": {}},
        {"pattern": "("},
        {"minLength": "x"},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"oneOf": [{"minimum": 1}, {"minLength": 5}]},
    ],
    ids=str,
)
def test_what_is_not_known_counts_as_unsatisfied(schema):
    assert not conforms("text", schema, schema)


def test_references_go_somewhere():
    root = {"$defs": {"a/b": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}, "two": {"$ref": "#/$defs/a~1b"}}}
    assert conforms(1, {"$ref": "#/$defs/a~1b", "minimum": 1}, root)
    assert conforms(1, {"$ref": "#/$defs/two"}, root)
    assert not conforms(0, {"$ref": "#/$defs/a~1b", "minimum": 1}, root)
    assert not conforms(1, {"$ref": "#/$defs/loop"}, root)
    nested = {"items": {"$ref": "#"}}
    deep = []
    for _ in range(40):
        deep = [deep]
    assert conforms([[[]]], nested, nested)
    assert not conforms(deep, nested, nested)
    assert conforms(1, True, {})
    assert not conforms(1, False, {})


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "some a"),
        ({"type": "string", "maxLength": 2}, "so"),
        ({"type": "string", "minLength": 8}, "some axx"),
        ({"type": "string", "format": "date"}, "2024-05-17"),
        ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}, "AB-123"),
        ({"type": "string", "example": "Oslo"}, "Oslo"),
        ({"type": "string", "examples": [7, "Oslo"]}, "Oslo"),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5, "multipleOf": 3}, 6),
        ({"type": "number", "exclusiveMaximum": 0.25}, 0),
        ({"type": "number", "minimum": 2.0**60}, 2.0**60),
        ({"type": "number", "multipleOf": "x"}, None),
        ({"type": "number", "minimum": 1, "multipleOf": "x"}, None),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "integer"}}, [2]),
        ({"type": "array", "minItems": 2, "uniqueItems": True, "items": {"enum": ["x", "y"]}}, ["x", "y"]),
        ({"type": "array", "minItems": 2, "uniqueItems": True}, ["some a", 0]),
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
    assert found == {"a": expected} or (expected is None and found in (None, {"a": None}))
    assert found is None or is_valid(schema, found["a"])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 5000},
        {"type": "array", "minItems": 100},
        {"type": "array", "minItems": "x"},
        {"type": "array", "prefixItems": [False], "minItems": 1},
        {"type": "object", "required": ["b"], "properties": {"b": False}},
        {"$ref": "#/properties/a"},
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
