"""The tools that are taught and written: their names, descriptions and schemas, in one shape whatever they came in.

Schemas come in several drafts and accents. They are made one here, so that nothing behind this module has to know
them: types in lower case and under their JSON Schema names, `nullable` as the type null, draft-04's boolean
`exclusiveMinimum` as a number, tuple `items` as `prefixItems`, bounds that Gemini gives as text as numbers. References
and `allOf` stay; `resolved` gives what they come to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from callmark.errors import ToolsError
from callmark.toolshapes import TYPES, listed, parts, pointed, type_of

Schema: TypeAlias = dict[str, Any]

DEPTH_LIMIT: Final = 64
"""How deep a schema may be nested: those met in the wild stay under 20, and jsonschema fails at 131."""

_STANDARD: Final = ("string", "integer", "number", "boolean", "object", "array", "null")
_MAPS: Final = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")  # names to schemas
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE: Final = (
    "items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_TEXTS: Final = ("description", "title", "pattern", "format", "$ref", "$dynamicRef", "$id", "$anchor", "$dynamicAnchor")
_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS: Final = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
    "maxContains",
)  # fmt: skip
_CONDITIONS: Final = ("not", "if", "then", "else")  # what stands there may well be impossible
_BOUNDS: Final = (
    (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")), (("minLength",), ("maxLength",)),
    (("minItems",), ("maxItems",)), (("minProperties",), ("maxProperties",)),
)  # fmt: skip
ANNOTATIONS: Final = {"$comment", "default", "deprecated", "description", "example", "examples", "title"}
_MERGED_LIMIT: Final = 4  # `allOf`s inside of each other: each may hold several, and itself
_BRANCHES_LIMIT: Final = 500  # branches of them: 40 is much in the wild


class ToolSpec(NamedTuple):
    """A tool as it is taught: `schema` is the JSON Schema of its arguments, an object's, in normal form."""

    name: str
    description: str
    schema: Schema

    @property
    def arguments(self) -> Schema:
        """The schema of the arguments as it comes out: see `resolved`."""
        return resolved(self.schema, self.schema)


def tool_specs(tools: Any) -> tuple[ToolSpec, ...]:
    """Return the tools in the order given.

    Takes a sequence of OpenAI tools (chat or Responses), Anthropic, MCP or Bedrock tools, Gemini declarations, bare
    dicts with a name and parameters, names, or objects with `name`, `description` and `parameters`; a mapping of names
    to schemas; or what holds a list of tools; what it has returned before is returned as it is. Raises ToolsError,
    which names the tool, for anything else, for names that are given twice, and for schemas that are none.
    """
    if isinstance(tools, tuple) and tools and all(isinstance(tool, ToolSpec) for tool in tools):
        return tools
    specs: dict[str, ToolSpec] = {}
    for tool in listed(tools):
        name, description, schema = parts(tool)
        if not isinstance(name, str) or not name:
            raise ToolsError(f"tools[{len(specs)}]: expected a name, or an object that has one, found {tool!r:.80}")
        if name in specs:
            raise ToolsError(f"tool {name!r}: expected a name that no other tool has, found it twice")
        if not isinstance(description, str | None):
            raise ToolsError(f"tool {name!r}: expected a description in words, found {type(description).__name__}")
        specs[name] = spec = ToolSpec(name, (description or "").strip(), _object_schema(name, schema))
        try:
            json.dumps(spec, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise ToolsError(f"tool {name!r}: expected what JSON can hold, found: {error}") from error
    return tuple(specs.values())


def satisfiable(specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return the tools. Raises ToolsError, which names the tool, where a schema contradicts itself."""
    for spec in specs:
        if told := contradiction(spec):
            raise ToolsError(f"tool {spec.name!r}: {told}")
    return specs


def contradiction(spec: ToolSpec) -> str | None:
    """Return where a schema says what nothing can satisfy, None where no such place is seen.

    Seen is what one place says, with what its references and `allOf` add. A place that nothing may reach counts too:
    who writes it means something else. Cost: linear in the schema, whatever refers to whatever.
    """
    if is_false(spec.schema, spec.schema):
        return "parameters: expected a schema that some arguments satisfy, found one that is false"
    return next(_contradictions(spec.schema, spec.schema, "parameters"), None)


def _contradictions(schema: Any, root: Schema, where: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    whole = resolved(schema, root)
    yield from (f"{where}: {found}" for found in contradicted(whole, root))
    ways = branches(whole, root)
    if ways and all(way is False or any(contradicted(resolved(way, root), root)) for way in ways):
        yield f"{where}: expected a union of which some branch can be satisfied, found none"
    for key, inner in schema.items():
        if key in _MAPS:
            inside = [(f"{where}.{key}.{name}", part) for name, part in inner.items()]
        elif key in _LISTS:
            inside = [(f"{where}.{key}[{number}]", part) for number, part in enumerate(inner)]
        else:
            inside = [(f"{where}.{key}", inner)] * (key in _ONE and key not in _CONDITIONS)
        for place, part in inside:
            yield from _contradictions(part, root, place)


def contradicted(schema: Schema, root: Schema) -> Iterator[str]:
    """Yield what contradicts itself in a resolved schema."""
    for lows, highs in _BOUNDS:
        for low, high in ((low, high) for low in lows for high in highs if low in schema and high in schema):
            strict = "exclusive" in low + high
            if schema[low] > schema[high] or (strict and schema[low] == schema[high]):
                yield f"expected bounds with room between them, found {low} {schema[low]} and {high} {schema[high]}"
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if "const" in schema and "enum" in schema and schema["const"] not in schema["enum"]:
        yield "expected enum to hold the value of const, found it without"
    kinds = schema.get("type", list(_STANDARD))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if listed is not None and not any(is_of(member, kinds) for member in listed):
        shown = f" of type {' or '.join(kinds)}" if "type" in schema else ""
        yield f"expected {'const' if 'const' in schema else 'enum'} to hold a value{shown}, found none"
    properties, required = schema.get("properties", {}), set(schema.get("required", ()))
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    for key in sorted(required):
        if is_false(properties.get(key, not closed), root):
            yield f"expected required keys that may be there, found {key!r:.80}, which may not"
    if len(required) > schema.get("maxProperties", len(required)):
        yield f"expected maxProperties to allow the {len(required)} required keys, found {schema['maxProperties']}"
    places = len(schema.get("prefixItems", ()))
    if schema.get("items") is False and schema.get("minItems", 0) > places:
        yield f"expected minItems of at most the {places} items there can be, found {schema['minItems']}"


def is_of(value: Any, kinds: list[str]) -> bool:
    """Whether a value is of one of the types of JSON Schema."""
    kind = type_of(value)
    also = "number" if kind == "integer" else "integer" if kind == "number" and value.is_integer() else kind
    return kind in kinds or also in kinds


def is_false(schema: Any, root: Schema) -> bool:
    """Whether a schema says outright that nothing satisfies it."""
    while isinstance(schema, dict) and "$ref" in schema:  # which `normalized` has seen to lead somewhere
        schema = pointed(schema["$ref"], root)
    whole = resolved(schema, root)
    return schema is False or False in whole.get("allOf", ()) or whole.get("not") in (True, {})


def _object_schema(name: str, schema: Any) -> Schema:
    if schema is None:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping):
        raise ToolsError(f"tool {name!r}: expected a JSON Schema of its arguments, found {type(schema).__name__}")
    result = _referring(schema, f"tool {name!r}: parameters")
    kinds = result.get("type")
    if kinds is None:
        result = {"type": "object", **result}
    elif kinds != "object" and "object" not in kinds:
        raise ToolsError(f"tool {name!r}: expected a schema of type object, found type {kinds!r}")
    return result


def _referring(schema: Mapping[str, Any], where: str) -> Schema:
    """Return a schema in normal form of which each reference leads to what is in normal form.

    What stands elsewhere, or in a place that has another name here, gets a definition of its own.
    """
    found = normalized(schema, where, schema)
    result: Schema = {"not": {}} if found is False else found  # of a tool it is an object always
    names: dict[str, str] = {}
    waiting = [result]
    for part in waiting:  # which grows: what is referred to may refer to more
        for holder in _references(part):
            reference = holder["$ref"]
            if reference not in names:
                if _stays(reference, schema):
                    continue
                definitions = result.setdefault("$defs", {})
                name = re.sub(r"[^A-Za-z0-9_-]", "", reference.rpartition("/")[2]) or "part"
                while name in definitions:
                    name += "_"
                names[reference] = name
                definitions[name] = normalized(pointed(reference, schema), f"{where}.{reference}", schema)
                waiting.append(definitions[name])
            holder["$ref"] = f"#/$defs/{names[reference]}"
    return result


def _references(schema: Any) -> list[Schema]:
    """Return the parts of a schema in normal form that refer to others."""
    found = []
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        if "$ref" in part:
            found.append(part)
        waiting += [inner for key in _MAPS if key in part for inner in part[key].values()]
        waiting += [inner for key in _LISTS if key in part for inner in part[key]]
        waiting += [part[key] for key in _ONE if key in part]
    return found


def _stays(reference: str, root: Any) -> bool:
    """Whether what a reference leads to is a schema that stands in the same place in normal form."""
    if not reference.startswith("#/"):
        return True
    path = ""
    steps = iter(reference[2:].split("/"))
    for step in steps:
        path += f"/{step}"
        found = pointed(f"#{path}", root)
        if step in _MAPS or (step in _LISTS and (step != "allOf" or len(found) > 1)):
            name = next(steps, None)
            if name is None:
                return False
            path += f"/{name}"
        elif step not in _ONE or step == "additionalItems" or isinstance(found, list):
            return False
    return True


def normalized(schema: Any, where: str, root: Any, depth: int = 0) -> Any:
    """Return a copy of a schema in normal form. Raises ToolsError that says where something is no schema."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        raise ToolsError(f"{where}: expected a schema, found {type(schema).__name__}")
    if depth > DEPTH_LIMIT:
        raise ToolsError(f"{where:.200}: expected a schema nested at most {DEPTH_LIMIT} deep, found one that goes on")
    result: Schema = {}
    needs = schema.get("dependencies")
    if isinstance(needs, Mapping):  # which later drafts write as two
        required = {name: need for name, need in needs.items() if isinstance(need, list)}
        schemas = {name: need for name, need in needs.items() if name not in required}
        schema = {**schema, "dependencies": None, "dependentRequired": required, "dependentSchemas": schemas}
    for key, value in schema.items():
        if not isinstance(key, str):
            raise ToolsError(f"{where}: expected keys that are strings, found {key!r:.80}")
        place = f"{where}.{key}"
        if key == "$schema" or (value is None and key not in ("const", "default")):
            continue  # what is written is of no draft but ours; and many serializers write null for nothing
        if key in _MAPS:
            if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
                raise ToolsError(f"{place}: expected names with schemas, found {value!r:.80}")
            result[key] = {name: normalized(inner, f"{place}.{name}", root, depth + 1) for name, inner in value.items()}
        elif key in _LISTS or (key == "items" and isinstance(value, list)):
            if not isinstance(value, list) or not value:
                raise ToolsError(f"{place}: expected a list of schemas, found {value!r:.80}")
            target = "prefixItems" if key == "items" else key
            result[target] = [normalized(inner, f"{place}[{n}]", root, depth + 1) for n, inner in enumerate(value)]
        elif key in _ONE:
            result[key] = normalized(value, place, root, depth + 1)
        elif key == "type":
            result[key] = _types(value, place)
        else:
            result[key] = _plain(key, value, place, root)
    return _modern(result, where)


def _plain(key: str, value: Any, place: str, root: Any) -> Any:
    """Return what is no schema: checked, where it is known what it must be."""
    if key in _TEXTS and not isinstance(value, str):
        raise ToolsError(f"{place}: expected a text, found {type(value).__name__}")
    if key == "$ref" and (wrong := _leads_nowhere(value, root)):
        raise ToolsError(f"{place}: expected a reference to what is in the schema (#/...), found {value!r:.80}{wrong}")
    if key in _NUMBERS or key in _COUNTS:
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?", value):
            value = float(value) if "." in value else int(value)
        if not isinstance(value, int | float) or (key in _COUNTS and (value < 0 or value != int(value))):
            raise ToolsError(f"{place}: expected a {'count' if key in _COUNTS else 'number'}, found {value!r:.80}")
        if key in _COUNTS:
            value = int(value)
        if key == "multipleOf" and value <= 0:
            raise ToolsError(f"{place}: expected a number above 0, found {value!r:.80}")
    return value


def _leads_nowhere(reference: str, root: Any) -> str:
    """Return where a reference leads, in words, if that is no schema; "" for one."""
    for _ in range(16):
        target = pointed(reference, root)
        if not isinstance(target, Mapping) or "$ref" not in target:
            return "" if isinstance(target, Mapping | bool) else ", which is not there"
        reference = target["$ref"]
    return ", which leads to nothing but references"


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


def _modern(schema: Schema, where: str) -> Any:
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
    if len(schema.get("allOf", ())) == 1 and schema.keys() - {"allOf"} <= ANNOTATIONS:
        (branch,) = schema.pop("allOf")  # as older drafts wrote a reference with a description beside it
        return False if branch is False else {**({} if branch is True else branch), **schema}
    if isinstance(schema.get("required"), bool):  # draft-03, and templates that took it for one
        del schema["required"]
    needs = schema.get("dependentRequired", {})
    if not isinstance(needs, Mapping) or not all(isinstance(name, str) for name in needs):
        raise ToolsError(f"{where}.dependentRequired: expected keys with lists of names, found {needs!r:.80}")
    for key, names in needs.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ToolsError(f"{where}.dependentRequired.{key}: expected a list of names, found {names!r:.80}")
    for key, kind, what in (("enum", list, "a list"), ("required", list, "a list of names")):
        if key in schema and not isinstance(schema[key], kind):
            raise ToolsError(f"{where}.{key}: expected {what}, found {type(schema[key]).__name__}")
    if not all(isinstance(name, str) for name in schema.get("required", ())):
        raise ToolsError(f"{where}.required: expected a list of names, found {schema['required']!r:.80}")
    return schema


def resolved(schema: Any, root: Schema) -> Schema:
    """Return the schema that `schema` stands for: where its references lead, with what its `allOf` says beside it.

    {} where it says nothing. Branches of an `allOf` that contradict what stands beside them stay there. What `allOf`s
    say that are nested too deep or too many is passed over: references let few lines stand for millions of branches.
    """
    return _resolved(schema, root, 0, iter(range(_BRANCHES_LIMIT)))


def _resolved(schema: Any, root: Schema, depth: int, left: Iterator[int]) -> Schema:
    for _ in range(16):  # references may go round in circles
        if not isinstance(schema, dict):
            return {}
        if "$ref" not in schema:
            return _merged(schema, root, depth, left)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = pointed(schema["$ref"], root)
        if beside and isinstance(schema, dict):
            schema = {**beside, "allOf": [*beside.get("allOf", ()), schema]}
    return {}


def _merged(schema: Schema, root: Schema, depth: int, left: Iterator[int]) -> Schema:
    if "allOf" not in schema:
        return schema
    result = {key: value for key, value in schema.items() if key != "allOf"}
    apart = []
    for branch, _ in zip(schema["allOf"], left, strict=False):
        inner = _resolved(branch, root, depth + 1, left) if depth < _MERGED_LIMIT else {}
        keys = result.keys() & inner.keys() - ANNOTATIONS - {"properties", "required"}
        if branch is False or any(result[key] != inner[key] for key in keys):
            apart.append(branch)
            continue
        both = {**inner, **result}
        properties = dict(result.get("properties", {}))
        for key, value in inner.get("properties", {}).items():
            properties[key] = {"allOf": [properties[key], value]} if key in properties else value
        if properties:
            both["properties"] = properties
        if "required" in both:
            both["required"] = list(dict.fromkeys([*result.get("required", ()), *inner.get("required", ())]))
        result = both
    return {**result, "allOf": apart} if apart else result


def branches(schema: Schema, root: Schema) -> list[Any]:
    """Return the schemas of which a resolved one is a union, each with all that stands beside them; [] for no union.

    `anyOf` and `oneOf` are the same here: what is wanted is a value of one of the branches.
    """
    for union in ("anyOf", "oneOf"):
        if union in schema:
            beside = {key: value for key, value in schema.items() if key != union}
            plain = beside.keys() <= ANNOTATIONS
            return [
                branch if plain or branch is False else resolved({"allOf": [beside, branch]}, root)
                for branch in schema[union]
            ]
    return []
