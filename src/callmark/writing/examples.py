"""Makes example arguments from a tool's own schema, and says whether a value satisfies a schema.

Both are for prompts only: an example must be valid, and a tool for which none is found is taught without one. What the
check does not know (`$dynamicRef`, say) it takes for unsatisfied, so that nothing is shown that may be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from callmark.toolshapes import type_of
from callmark.writing.toolset import Schema, ToolSpec, resolved

_DEPTH_LIMIT: Final = 8
_WAYS: Final = 6  # values that are tried for one part of an example; the parts are tried one by one, not together

_FORMATS: Final = {
    "date": "2024-05-17", "time": "09:30:00Z", "date-time": "2024-05-17T09:30:00Z", "email": "anna@example.com",
    "uri": "https://example.com/", "url": "https://example.com/", "hostname": "example.com", "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1", "uuid": "123e4567-e89b-12d3-a456-426614174000", "duration": "PT15M",
}  # fmt: skip
_PATTERNED: Final = (
    "a", "A", "1", "ab", "abc", "ABC", "123", "12345", "a1", "A1", "AB-123", "2024-05-17", "09:30", "#a1b2c3",
    "anna@example.com", "https://example.com/", "+4712345678", "x_y", "x-y", "1.0.0", "en-US", "EUR",
)  # fmt: skip
_KNOWN: Final = {
    "$defs", "$id", "id", "$ref", "$schema", "$comment", "additionalProperties", "allOf", "anyOf", "const",
    "contains", "default", "definitions", "dependentRequired", "deprecated", "description", "else", "enum",
    "example", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "if", "items", "maxItems",
    "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf",
    "not", "nullable", "oneOf", "pattern", "patternProperties", "prefixItems", "properties", "propertyNames",
    "readOnly", "required", "strict", "then", "title", "type", "uniqueItems", "writeOnly",
}  # fmt: skip


def example_arguments(spec: ToolSpec) -> dict[str, Any] | None:
    """Return arguments that satisfy the tool's schema: its required ones, or its first; None if none are found."""
    for candidate in _candidates(spec.schema, spec.schema, "", 0):
        if isinstance(candidate, dict) and conforms(candidate, spec.schema, spec.schema):
            return candidate
    return None


def _first(schema: Any, root: Schema, key: str, depth: int) -> tuple[bool, Any]:
    for candidate in _candidates(schema, root, key, depth):
        if conforms(candidate, schema, root):
            return True, candidate
    return False, None


def _candidates(schema: Any, root: Schema, key: str, depth: int) -> Iterator[Any]:
    """Yield values that are likely to satisfy a schema, the best first."""
    if depth > _DEPTH_LIMIT:
        return
    schema = resolved(schema, root)
    examples = schema.get("examples")
    yield from examples if isinstance(examples, list) else ()
    for given in ("example", "const", "default"):
        if given in schema:
            yield schema[given]
    yield from schema.get("enum", [])[:_WAYS]
    for union in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(union, [])[:_WAYS]:
            yield from _candidates(branch, root, key, depth + 1)
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        yield from _of_kind(kind, schema, root, key, depth)


def _of_kind(kind: str, schema: Schema, root: Schema, key: str, depth: int) -> Iterator[Any]:
    match kind:
        case "string":
            yield from _strings(schema, key)
        case "integer" | "number":
            yield from _numbers(schema)
        case "boolean":
            yield from (True, False)
        case "null":
            yield None
        case "array":
            yield from _arrays(schema, root, key, depth)
        case _:
            yield from _objects(schema, root, depth)


def _strings(schema: Schema, key: str) -> Iterator[str]:
    if "pattern" in schema:
        yield from _PATTERNED
    words = re.sub(r"[_\-.\s]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key)).strip().lower()
    text = _FORMATS.get(str(schema.get("format")), f"some {words or 'text'}")
    least, most = schema.get("minLength", 0), schema.get("maxLength", 256)
    if isinstance(least, int) and isinstance(most, int) and 0 <= least <= 4096:
        yield text[: max(most, 0)].ljust(least, "x")


def _numbers(schema: Schema) -> Iterator[Any]:
    step = schema.get("multipleOf", 1)
    for bound in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        limit = schema.get(bound)
        if isinstance(limit, int | float):
            sign = -1 if "ax" in bound else 1
            whole = int(limit) if abs(limit) < 2**53 else limit
            yield from (limit, whole, limit + sign * 0.5)
            if isinstance(step, int | float) and step > 0:
                yield from (limit // step * step, (limit // step + sign) * step)
    yield from (2, 1, 0, 10, step)


def _arrays(schema: Schema, root: Schema, key: str, depth: int) -> Iterator[Any]:
    least = schema.get("minItems", 0)
    if not isinstance(least, int) or least > 32:
        return
    head = []
    for inner in schema.get("prefixItems", []):
        found, value = _first(inner, root, key, depth + 1)
        if not found:
            return
        head.append(value)
    items = schema.get("items", {})
    ways = [value for value in _candidates(items, root, key, depth + 1) if conforms(value, items, root)]
    if "contains" in schema:
        ways += list(_candidates(schema["contains"], root, key, depth + 1))[:1]
    unique = [value for number, value in enumerate(ways) if value not in ways[:number]]
    need = max(least - len(head), 0 if head else 1)
    if ways:
        yield head + [ways[number % len(ways)] for number in range(need)]
        yield head + unique[: max(need, len(unique) and 1)]
        yield head + [*unique, *range(need)][:need]
        yield head + ways[-1:]
    yield head
    yield []


def _objects(schema: Schema, root: Schema, depth: int) -> Iterator[Any]:
    properties = schema.get("properties", {})
    values: dict[str, Any] = {}
    for name in schema.get("required", ()):
        found, value = _first(properties.get(name, {}), root, name, depth + 1)
        if not found:
            return
        values[name] = value
    others = []
    for name in [name for name in properties if name not in values][:_WAYS]:
        found, value = _first(properties[name], root, name, depth + 1)
        if found:
            others.append((name, value))
    if not values and others:
        yield dict(others[:1])
    yield values
    for count in range(1, len(others) + 1):
        yield {**values, **dict(others[:count])}


def conforms(value: Any, schema: Any, root: Schema, depth: int = 0) -> bool:
    """Return whether a JSON value satisfies a schema in normal form; False too where that is not known."""
    if isinstance(schema, bool):
        return schema
    if depth > 32 or not isinstance(schema, dict):
        return False
    if "$ref" in schema:
        target = resolved(schema, root)
        if not target or target is schema or "$ref" in target:
            return False
        rest = {key: inner for key, inner in schema.items() if key != "$ref"}
        return conforms(value, target, root, depth + 1) and conforms(value, rest, root, depth + 1)
    if not schema.keys() <= _KNOWN and any(not key.startswith("x-") for key in schema.keys() - _KNOWN):
        return False
    try:
        return (
            _is_of_type(value, schema)
            and _is_member(value, schema)
            and _combines(value, schema, root, depth + 1)
            and _fits(value, schema, root, depth + 1)
        )
    except (TypeError, ValueError, re.error, OverflowError):  # a keyword holds what it must not, a pattern is none
        return False


def _is_of_type(value: Any, schema: Schema) -> bool:
    kinds = schema.get("type")
    if kinds is None:
        return True
    listed = [kinds] if isinstance(kinds, str) else kinds
    kind = type_of(value)
    whole = kind == "number" and value == int(value)
    return kind in listed or (kind == "integer" and "number" in listed) or (whole and "integer" in listed)


def _same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and True are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(left == right)


def _is_member(value: Any, schema: Schema) -> bool:
    if "const" in schema and not _same(value, schema["const"]):
        return False
    return "enum" not in schema or any(_same(value, member) for member in schema["enum"])


def _combines(value: Any, schema: Schema, root: Schema, depth: int) -> bool:
    def holds(inner: Any) -> bool:
        return conforms(value, inner, root, depth)

    if "not" in schema or "if" in schema:  # what is not known would count as refused, and that as allowed
        return False
    if not all(map(holds, schema.get("allOf", ()))):
        return False
    if "anyOf" in schema and not any(map(holds, schema["anyOf"])):
        return False
    if "oneOf" not in schema:
        return True
    fitting = [inner for inner in schema["oneOf"] if holds(inner)]
    return len(fitting) == 1 and all(_is_refused(value, inner) for inner in schema["oneOf"] if inner is not fitting[0])


def _is_refused(value: Any, schema: Any) -> bool:
    """Whether a schema surely refuses a value: by its type or its members."""
    if not isinstance(schema, dict):
        return schema is False
    if not _is_of_type(value, schema) or not _is_member(value, schema):
        return True
    return isinstance(value, dict) and not value.keys() >= set(schema.get("required", ()))


def _fits(value: Any, schema: Schema, root: Schema, depth: int) -> bool:
    match type_of(value):
        case "string":
            return _string_fits(value, schema)
        case "integer" | "number":
            return _number_fits(value, schema)
        case "array":
            return _array_fits(value, schema, root, depth)
        case "object":
            return _object_fits(value, schema, root, depth)
        case _:
            return True


def _string_fits(value: str, schema: Schema) -> bool:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    return "pattern" not in schema or re.search(schema["pattern"], value) is not None


def _number_fits(value: float, schema: Schema) -> bool:
    if value < schema.get("minimum", value) or value > schema.get("maximum", value):
        return False
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return False
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        return False
    return "multipleOf" not in schema or (value / schema["multipleOf"]).is_integer()


def _array_fits(value: list[Any], schema: Schema, root: Schema, depth: int) -> bool:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    if schema.get("uniqueItems") and any(_same(a, b) for n, a in enumerate(value) for b in value[:n]):
        return False
    head = schema.get("prefixItems", [])
    rest = schema.get("items", True)
    pairs = [*zip(value, head, strict=False), *((item, rest) for item in value[len(head) :])]
    if not all(conforms(item, inner, root, depth) for item, inner in pairs):
        return False
    return "contains" not in schema or any(conforms(item, schema["contains"], root, depth) for item in value)


def _object_fits(value: dict[str, Any], schema: Schema, root: Schema, depth: int) -> bool:
    if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value)):
        return False
    needed = set(schema.get("required", ()))
    for name, others in schema.get("dependentRequired", {}).items():
        needed |= set(others) if name in value else set()
    if not needed <= value.keys():
        return False
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, item in value.items():
        inners = [inner for pattern, inner in patterns.items() if re.search(pattern, name)]
        inners += [properties[name]] if name in properties else []
        inners = inners or [schema.get("additionalProperties", True)]
        if not all(conforms(item, inner, root, depth) for inner in inners):
            return False
    return "propertyNames" not in schema or all(conforms(name, schema["propertyNames"], root, depth) for name in value)
