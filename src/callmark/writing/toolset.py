"""The tools that are taught and written: their names, descriptions and schemas, in one shape whatever they came in.

Schemas come in several drafts and accents. They are made one here, so that nothing behind this module has to know
them: types in lower case and under their JSON Schema names, `nullable` as the type null, draft-04's boolean
`exclusiveMinimum` as a number, tuple `items` as `prefixItems`. References stay; `resolved` follows local ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from callmark.errors import ToolsError
from callmark.toolshapes import TYPES, listed, parts, type_of

Schema: TypeAlias = dict[str, Any]

DEPTH_LIMIT: Final = 64
"""How deep a schema may be nested: those met in the wild stay under 20, and jsonschema fails at 131."""

_STANDARD: Final = ("string", "integer", "number", "boolean", "object", "array", "null")
_MAPS: Final = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")  # names to schemas
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE: Final = (
    "items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else",
    "unevaluatedProperties",
)  # fmt: skip


class ToolSpec(NamedTuple):
    """A tool as it is taught: `schema` is the JSON Schema of its arguments, an object's, in normal form."""

    name: str
    description: str
    schema: Schema


def tool_specs(tools: Any) -> tuple[ToolSpec, ...]:
    """Return the tools in the order given.

    Takes a sequence of OpenAI tools (chat or Responses), Anthropic or MCP tools, Gemini declarations, bare dicts with a
    name and parameters, names, or objects with `name`, `description` and `parameters`; a mapping of names to schemas;
    or an MCP tools/list result. Raises ToolsError, which names the tool, for anything else, for names that are given
    twice, and for schemas that are none.
    """
    specs: dict[str, ToolSpec] = {}
    for tool in listed(tools):
        name, description, schema = parts(tool)
        if not isinstance(name, str) or not name:
            raise ToolsError(f"tools[{len(specs)}]: expected a name, or an object that has one, found {tool!r:.80}")
        if name in specs:
            raise ToolsError(f"tool {name!r}: expected a name that no other tool has, found it twice")
        if not isinstance(description, str | None):
            raise ToolsError(f"tool {name!r}: expected a description in words, found {type(description).__name__}")
        specs[name] = ToolSpec(name, (description or "").strip(), _object_schema(name, schema))
    return tuple(specs.values())


def _object_schema(name: str, schema: Any) -> Schema:
    if schema is None:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping):
        raise ToolsError(f"tool {name!r}: expected a JSON Schema of its arguments, found {type(schema).__name__}")
    result: Schema = normalized(schema, f"tool {name!r}: parameters")
    kinds = result.setdefault("type", "object")
    if kinds != "object" and "object" not in kinds:
        raise ToolsError(f"tool {name!r}: expected a schema of type object, found type {kinds!r}")
    return result


def normalized(schema: Any, where: str, depth: int = 0) -> Any:
    """Return a copy of a schema in normal form. Raises ToolsError that says where something is no schema."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        raise ToolsError(f"{where}: expected a schema, found {type(schema).__name__}")
    if depth > DEPTH_LIMIT:
        raise ToolsError(f"{where:.200}: expected a schema nested at most {DEPTH_LIMIT} deep, found one that goes on")
    result: Schema = {}
    for key, value in schema.items():
        if not isinstance(key, str):
            raise ToolsError(f"{where}: expected keys that are strings, found {key!r:.80}")
        place = f"{where}.{key}"
        if key in _MAPS:
            if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
                raise ToolsError(f"{place}: expected names with schemas, found {value!r:.80}")
            result[key] = {name: normalized(inner, f"{place}.{name}", depth + 1) for name, inner in value.items()}
        elif key in _LISTS or (key == "items" and isinstance(value, list)):
            if not isinstance(value, list):
                raise ToolsError(f"{place}: expected a list of schemas, found {type(value).__name__}")
            target = "prefixItems" if key == "items" else key
            result[target] = [normalized(inner, f"{place}[{n}]", depth + 1) for n, inner in enumerate(value)]
        elif key in _ONE:
            result[key] = normalized(value, place, depth + 1)
        elif key == "type":
            result[key] = _types(value, place)
        else:
            result[key] = value
    return _modern(result, where)


def _types(value: Any, place: str) -> Any:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise ToolsError(f"{place}: expected a type or a list of types, found {value!r:.80}")
    known = [TYPES.get(name.lower(), name.lower()) for name in names]
    for name in known:
        if name not in _STANDARD and name != "any":
            raise ToolsError(f"{place}: expected one of {', '.join(_STANDARD)}, found {name!r:.80}")
    unique = list(dict.fromkeys(known))
    return unique[0] if len(unique) == 1 else unique


def _modern(schema: Schema, where: str) -> Schema:
    """Turn what older drafts and Gemini say into what draft 2020-12 says, in place."""
    kinds = schema.get("type")
    if kinds is not None and ("any" in kinds if isinstance(kinds, list) else kinds == "any"):
        del schema["type"]
    elif kinds is not None and schema.get("nullable") is True:
        listed = [kinds] if isinstance(kinds, str) else kinds
        schema["type"] = list(dict.fromkeys([*listed, "null"]))
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and plain in schema:
            schema[exclusive] = schema.pop(plain)
    if "prefixItems" in schema and "additionalItems" in schema:
        schema["items"] = schema.pop("additionalItems")
    if isinstance(schema.get("required"), bool):  # draft-03, and templates that took it for one
        del schema["required"]
    for key, kind, what in (("enum", list, "a list"), ("required", list, "a list of names")):
        if key in schema and not isinstance(schema[key], kind):
            raise ToolsError(f"{where}.{key}: expected {what}, found {type(schema[key]).__name__}")
    if not all(isinstance(name, str) for name in schema.get("required", ())):
        raise ToolsError(f"{where}.required: expected a list of names, found {schema['required']!r:.80}")
    return schema


def resolved(schema: Any, root: Schema) -> Schema:
    """Return the schema that `schema` stands for: itself, or what its local references lead to; {} for none."""
    for _ in range(16):  # references may go round in circles
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str):
            return schema if isinstance(schema, dict) else {}
        target: Any = root if reference.startswith("#") else None
        for step in reference[2:].split("/") if len(reference) > 1 else ():
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step) if isinstance(target, dict) else None
        schema = target
    return {}


def declared_types(spec: ToolSpec, key: str) -> frozenset[str]:
    """Return the JSON Schema types that a parameter may have, none where nothing is declared: as reading sees them."""
    properties = spec.schema.get("properties", {})
    return frozenset(_declared(properties.get(key), spec.schema, 0))


def _declared(schema: Any, root: Schema, depth: int) -> set[str]:
    if not isinstance(schema, dict) or depth > 8:
        return set()
    if "$ref" in schema:
        return _declared(resolved(schema, root), root, depth + 1)
    kinds = schema.get("type", [])
    found = {kinds} if isinstance(kinds, str) else set(kinds)
    if not found:
        members = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
        found = {type_of(member) for member in members}
    for union in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(union, ()):
            found |= _declared(branch, root, depth + 1)
    if found and schema.get("nullable") is True:
        found.add("null")
    return found
