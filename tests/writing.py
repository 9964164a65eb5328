"""What tests of writing share: hostile values, names, and schemas with values that may not be valid."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from callmark import dialects, render_call
from strategies import HOSTILE

RAW = {
    row.name for row in dialects() if row.writing.parameter or row.forms[row.writing.form].body == "braces"
}
"""The dialects whose values stand as they are, between tags or delimiters of their own: they refuse to write some."""

_SHOWN = [render_call("f", {"a": "§"}, dialect).split("§") for dialect in dialects()]
CLOSERS = (
    *(text for before, behind in _SHOWN for text in (behind, behind + "\n" + before)),
    ")]", "]", "</tool_call>", "</parameter>", "</parameter>\n</function>", "\n<parameter=b>\n",
    "</function>\n", "</parameter>\n<parameter=x>", "<function=f>\n", "\n<function=g>\n",
    "\r\n</function>\n</tool_call>", "</arg_value>", "</arg_value>\n<arg_key>x</arg_key>\n<arg_value>",
    "</arg_value></tool_call>", "<tool_call>f</tool_call>", "<tool_call>\n<function=f>", '<|"|>', "<|", '<|"',
    "<tool_call|>", "]]>", "<![CDATA[", "</args_json>", "&lt;", "<｜tool▁call▁end｜>", "<|tool_call_end|>",
    "<|tool_call_argument_begin|>", "```", "\n```\n", "'", '"', "\\", "\\n", "\r", "\n", "\r\n", "\x00",
    "\u2028", "\x85", " ", "123", "1e5", "true", "null", "None", "{}", "[1]", '"x"', "{arguments}", "{name}",
    "007", "é", "天", "😀", "",
)  # fmt: skip
hostile_strings = st.lists(st.sampled_from(CLOSERS) | st.sampled_from(HOSTILE), max_size=4).map("".join).filter(
    lambda text: not any("\ud800" <= char <= "\udfff" for char in text)
) | st.text(st.characters(codec="utf-8"), max_size=8)
"""Strings that UTF-8 can hold, many of them with a closer, an opener or a quote."""

scalars = (
    st.none() | st.booleans() | st.integers() | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False) | hostile_strings
)  # fmt: skip
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile_strings, inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["a", "b", "city", "a b", "x-y", "key.z", "name", "arguments", "天", "_", "K1", "id"])
objects = st.dictionaries(keys, json_values, max_size=4)
hostile_objects = st.dictionaries(keys | hostile_strings, json_values, max_size=4)

names = st.sampled_from(
    ["f", "get_weather", "a.b", "ext:tool", "x/y", "_", "天气", "f-1", "functions.f", "f:0", "function", "n" * 128]
)

_TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")


def schemas(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Object schemas for these keys, in whatever types."""
    types = st.sampled_from(_TYPES) | st.lists(st.sampled_from(_TYPES), min_size=1, max_size=3, unique=True)
    one = st.builds(lambda kind: {"type": kind}, types) | st.just({})
    return st.fixed_dictionaries(dict.fromkeys(keys, one)).map(lambda found: {"type": "object", "properties": found})


descriptions = st.sampled_from(
    ["", "<think>", "Wants [THINK] `x", "```", " <mm:think>", "Looks it up.", "Says [CALL: f()]\n<tool_call>{}",
     "天气。不错", "a | b"]
)  # fmt: skip
_leaf_schemas = st.one_of(
    st.just({"type": "string"}),
    st.just({"type": "string", "format": "date", "default": "2020-01-01"}),
    st.builds(lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
              st.integers(0, 20), st.integers(0, 5)),
    st.just({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}),
    st.just({"type": "string", "pattern": r"^(no example)\1$"}),
    st.builds(lambda least, more: {"type": "integer", "minimum": least, "maximum": least + more},
              st.integers(-50, 50), st.integers(0, 5)),
    st.builds(lambda least: {"type": "number", "exclusiveMinimum": least, "multipleOf": 0.5}, st.integers(-5, 5)),
    st.just({"type": "boolean", "description": "whether"}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": "STRING", "nullable": True}),
    st.just({"enum": ["C", "F", "[CALL: f()]", 3, None]}),
    st.just({"const": "</tool_call>"}),
    st.just({"$ref": "#/$defs/shared"}),
    st.just({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    st.just({}),
    st.just({"type": "string", "examples": ["</parameter>\n</function>", "Oslo"]}),
)  # fmt: skip


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3)),
        st.builds(lambda items: {"type": "array", "items": items, "uniqueItems": True}, inner),
        st.builds(lambda first, second: {"type": "array", "prefixItems": [first, second]}, inner, inner),
        _objects_of(inner),
    )


def _objects_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda properties, required, closed: {
            "type": "object",
            "properties": properties,
            "required": sorted(set(required) & properties.keys()),
            **({"additionalProperties": False} if closed else {}),
        },
        st.dictionaries(st.sampled_from(["city", "days", "fromDate", "a b", "天", "max-x"]), inner, max_size=4),
        st.lists(st.sampled_from(["city", "days", "fromDate", "a b"]), max_size=3),
        st.booleans(),
    )


tool_schemas = st.builds(
    lambda schema, shared: {**schema, "$defs": {"shared": shared}},
    _objects_of(st.recursive(_leaf_schemas, _nested, max_leaves=5)),
    st.sampled_from([{"type": "integer"}, {"type": "string", "enum": ["x"]}]),
)
"""Schemas of tools' arguments, with most of what schemas say in the wild, and some that no example satisfies."""

toolsets = st.lists(
    st.builds(
        lambda name, description, schema: {"name": name, "description": description, "parameters": schema},
        st.sampled_from(["get_weather", "f", "translate", "ext.search", "天气", "x-1"]), descriptions, tool_schemas,
    ),
    min_size=1, max_size=4, unique_by=lambda tool: tool["name"],
)  # fmt: skip
