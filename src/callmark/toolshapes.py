"""The shapes in which tools are handed over, taken apart: what a reader and a writer of calls both ask of them.

Nothing is checked here but that there are tools at all, and that a model can call them by text; what a name or a schema
must be is said where it is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from inspect import isroutine
from typing import Any, Final, Self, TypeAlias

from callmark.errors import ToolsError

TYPES: Final = {
    "str": "string", "text": "string", "int": "integer", "float": "number", "double": "number", "bool": "boolean",
    "dict": "object", "map": "object", "list": "array", "tuple": "array", "none": "null",
    "type_unspecified": "any",
}  # fmt: skip
"""The types of JSON Schema by other names that are met."""

_SCHEMA_KEYS: Final = (
    "parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema",
)  # fmt: skip
_LISTS: Final = ("tools", "functions")
"""Where the tools of a reply or a request are: MCP's, Bedrock's and OpenAI's, and OpenAI's older ones."""
_WRAPPERS: Final = ("function", "toolSpec")
"""In what name and schema of a tool are: of OpenAI's chat API, and of Bedrock."""
_DECLARATIONS: Final = ("functionDeclarations", "function_declarations")
MAPPING: Final = (dict, Mapping)
"""What is a mapping, for `isinstance`: that a dict is one it sees ten times sooner so."""
_ESCAPED = re.compile("(?:%[0-9A-Fa-f]{2})+")  # of a URI: references are URIs
UNIONS: Final = ("anyOf", "oneOf", "allOf")
"""The keywords that put schemas together."""
DIGITS_LIMIT: Final = 4300  # CPython's own limit for the digits of an int, which bounds a quadratic conversion
_LONGEST: Final = 10**DIGITS_LIMIT  # from here on CPython refuses to write an integer; no float is there but infinity
_DEPTH_LIMIT: Final = 8  # references and unions inside of each other that are followed for a type


def listed(tools: Any) -> list[Any]:
    """Return the tools one by one.

    Takes a sequence of tools, a single one as a function, or an object or a mapping with a name or a title, what holds
    a list of tools or functions (an MCP tools/list result, also within its reply, and what requests to OpenAI and
    Bedrock hold), Gemini's declarations and OpenAI's namespaces, or a mapping of names to schemas. Raises ToolsError
    for anything else, and for a tool of its host's API that has no name.
    """
    held = _held(tools)
    if held is not None:
        tools = held
    elif isinstance(tools, MAPPING):
        is_one = any(isinstance(tools.get(key), str) for key in ("name", "type", "title"))
        is_one = is_one or any(isinstance(field(tools.get(key), "name"), str) for key in _WRAPPERS)
        if is_one or field(tools, *_DECLARATIONS) is not None:
            tools = [tools]
        else:
            tools = [{"name": name, "parameters": schema} for name, schema in tools.items()]
    elif isroutine(tools) or (isinstance(getattr(tools, "name", None), str) and not isinstance(tools, Iterable)):
        tools = [tools]
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise ToolsError(f"tools: expected a sequence of tools, found {type(tools).__name__}")
    found: list[Any] = []
    for tool in tools:
        is_space = isinstance(tool, MAPPING) and tool.get("type") == "namespace"  # of OpenAI's Responses API
        declared = tool.get("tools") if is_space else field(tool, *_DECLARATIONS)
        if isinstance(declared, list):
            found += declared
            continue
        if kind := _hosted(tool):
            expected = f"tools[{len(found)}]: expected a tool with a name and a schema, found one of type {kind!r:.80}"
            raise ToolsError(f"{expected}, which only the API that has it can call: leave it out")
        found.append(tool)
    return found


def _held(tools: Any) -> list[Any] | None:
    """Return the list of tools that a reply or a request holds, None for any other: no schema is a list."""
    reply = field(tools, "result") if isinstance(field(tools, "jsonrpc"), str) else tools
    holders = (reply, field(reply, "toolConfig"))  # the second is Bedrock's
    return next((held for one in holders for key in _LISTS if isinstance(held := field(one, key), list)), None)


def _hosted(tool: Any) -> str:
    """Return the type of a tool that is known to its host by it, and to nobody else; "" for any other."""
    if not isinstance(tool, MAPPING) or not tool.keys().isdisjoint(("name", "title", *_WRAPPERS)):
        return ""
    kind = tool.get("type")
    return kind if isinstance(kind, str) and kind not in ("function", *TYPES, *TYPES.values()) else ""


def field(tool: Any, *names: str) -> Any:
    """Return the first of these fields that a mapping or an object has, None where it has none."""
    is_mapping = isinstance(tool, MAPPING)
    for name in names:
        value = tool.get(name) if is_mapping else getattr(tool, name, None)
        if value is not None:
            return value
    return None


def parts(tool: Any) -> tuple[Any, Any, Any]:
    """Return name, description and schema of a tool as they are given, None for what is not.

    Takes an OpenAI tool (chat or Responses), an Anthropic, MCP or Bedrock tool, a Gemini declaration, a bare mapping
    with a name and parameters, a JSON Schema with a title, an object with such attributes, a Python function, or a
    name. Raises ToolsError for a function that cannot be a tool.
    """
    if isinstance(tool, str):
        return tool, None, None
    is_mapping = isinstance(tool, MAPPING)
    if not is_mapping and isroutine(tool):
        from callmark.functions import read_signature  # msgspec's schemas: few hand over functions

        signature = read_signature(tool)
        return tool.__name__, signature.description, signature.parameters
    if is_mapping:
        tool = next((inner for key in _WRAPPERS if isinstance(inner := tool.get(key), MAPPING)), tool)
    is_schema = is_mapping and ("properties" in tool or tool.get("type") == "object")
    if is_schema and "name" not in tool and "title" in tool:
        schema = {key: value for key, value in tool.items() if key not in ("title", "description")}
        return tool["title"], tool.get("description"), schema
    schema = field(tool, *_SCHEMA_KEYS)
    if isinstance(schema, MAPPING) and schema.keys() == {"json"}:  # Bedrock's; JSON Schema has no such keyword
        schema = schema["json"]
    return field(tool, "name"), field(tool, "description"), schema


def schemas_by_name(tools: Any) -> dict[str, Any]:
    """Return the schema of each tool by its name, as it is given, None for what has none.

    Raises ToolsError for anything that is no tool, or has no name.
    """
    found: dict[str, Any] = {}
    for position, tool in enumerate(listed(tools)):
        name, _, schema = parts(tool)
        if not isinstance(name, str) or not name:
            raise ToolsError(f"tools[{position}]: expected a name, or an object that has one, found {tool!r:.80}")
        found[name] = schema
    return found


def tool_names(tools: Any) -> Collection[str] | None:
    """Return the names of tools, None where none were given. Raises ToolsError as `schemas_by_name` does."""
    return None if tools is None else schemas_by_name(tools).keys()


def pointed(reference: Any, root: Any) -> Any:
    """Return what a reference leads to within the schema `root`, None for nothing: `#`, `#/a/b/0`, or an `$anchor`.

    By hand, as schemas come unchecked here: `referencing` raises whatever it meets on broken ones, takes twice as long,
    and 40 ms to load where calls are read. A test holds the two together.
    """
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    path = _ESCAPED.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode(errors="replace"), reference[1:])
    if path and not path.startswith("/"):
        return _anchored(path, root)
    target = root
    for step in path.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list):
            target = target[int(step)] if step.isdecimal() and int(step) < len(target) else None
        else:
            target = target.get(step) if isinstance(target, MAPPING) else None
    return target


def _anchored(name: str, root: Any) -> Any:
    definitions = (root.get(key) for key in ("$defs", "definitions"))
    schemas = (schema for found in definitions if isinstance(found, MAPPING) for schema in found.values())
    return next((schema for schema in schemas if isinstance(schema, MAPPING) and schema.get("$anchor") == name), None)


BRACKETS: Final = {"{": "object", "[": "array"}
"""The types whose values begin with a bracket of JSON."""
_BEFORE_TEXT: Final = frozenset(("null", "array", "object"))
"""Types that a plain text is read as where it can be, also where a string is allowed."""


class Types(frozenset[str]):
    """The types of JSON Schema that a schema allows, none where it says nothing of them.

    members     the JSON of each scalar that `enum` or `const` lists, by how it is written plainly: of a string, it is
                the string itself. Empty where any string is allowed besides
    """

    members: Mapping[str, str]

    def __new__(cls, types: Iterable[str] = (), members: Mapping[str, str] | None = None) -> Self:
        """Take the types, and the members as they are."""
        made = super().__new__(cls, types)
        made.members = members or {}
        return made

    @property
    def is_text(self) -> bool:
        """Whether every text is a string, whatever it looks like."""
        return "string" in self and self.isdisjoint(_BEFORE_TEXT) and not self.members


def declared_types(schema: Any, root: Any) -> Types:
    """Return the types of JSON Schema that a schema allows, none where it says nothing of them.

    `enum` and `const` have the types of their members. Unions have those of all branches; what a reference, `allOf` or
    a union says narrows down what the schema around it says.
    """
    if isinstance(schema, MAPPING) and _NARROWS.isdisjoint(schema):
        return _said(schema.get("type"))
    free, members = _allowed(schema, root)
    types = free or frozenset(map(type_of, members))
    if "string" in free:
        return Types(types | {"null"} if None in members else types)
    spelled = {member: json.dumps(member, ensure_ascii=False) for member in members if isinstance(member, str)}
    for member in members:
        if member is None or (isinstance(member, int | float) and abs(member) < _LONGEST):
            for text in (json.dumps(member), repr(member)):
                spelled.setdefault(text, json.dumps(member))
    return Types(types | {"null"} if None in members else types, spelled)


def _said(types: Any) -> Types:
    """Return what `type` of a schema says: a name or a list of them; nothing where it is anything else."""
    names = [types] if isinstance(types, str) else types if isinstance(types, list | tuple) else ()
    return _named(*(name for name in names if isinstance(name, str)))


@lru_cache(maxsize=256)
def _named(*names: str) -> Types:
    types = {TYPES.get(name.lower(), name.lower()) for name in names}
    return Types() if "any" in types else Types(types)


_NARROWS: Final = frozenset(("enum", "const", "nullable", "$ref", *UNIONS))
"""What says more of a value's type than `type` does: few schemas of parameters have any."""

_Allowed: TypeAlias = tuple[frozenset[str], list[Any]]
"""Types of which any value is allowed, and values that are allowed besides."""


def _allowed(schema: Any, root: Any, depth: int = 0) -> _Allowed:
    if not isinstance(schema, MAPPING) or depth > _DEPTH_LIMIT:  # a `$ref` may go round in circles
        return frozenset(), []
    free: frozenset[str] = _said(schema.get("type"))
    nullable = schema.get("nullable") is True
    free = free | {"null"} if free and nullable else free
    members = [*schema["enum"]] if isinstance(schema.get("enum"), list) else []
    members = [schema["const"]] if "const" in schema else members
    allowed = _both((free, []), (frozenset(), members))
    if "$ref" in schema:
        allowed = _both(allowed, _allowed(pointed(schema["$ref"], root), root, depth + 1))
    for union in UNIONS:
        branches = schema.get(union)
        found = [_allowed(branch, root, depth + 1) for branch in (branches if isinstance(branches, list) else ())]
        if union != "allOf":
            either = frozenset().union(*(free for free, _ in found))
            found = [(either, [member for _, members in found for member in members])]
        for branch in found:
            allowed = _both(allowed, branch)
    free, members = allowed
    if any(allowed) and nullable:
        return (free | {"null"}, members) if free else (free, [*members, None])
    return allowed


def _both(one: _Allowed, other: _Allowed) -> _Allowed:
    """Return what both allow; where that is nothing, or one says nothing, what either does."""
    pairs = ((one, other), (other, one))
    free = frozenset(kind for this, that in pairs for kind in this[0] if _covers(that[0], kind))
    members = [
        member for this, that in pairs for member in this[1] if _covers(that[0], type_of(member)) or member in that[1]
    ]
    if any(one) and any(other) and (free or members):
        return free, members
    return one[0] | other[0], one[1] + other[1]


def _covers(types: frozenset[str], kind: str) -> bool:
    return kind in types or (kind == "integer" and "number" in types)


def reachable(schema: Any, root: Any, unions: Iterable[str] = UNIONS) -> list[Mapping[str, Any]]:
    """Return a schema, and those that it refers to or puts together: what any of them says may hold for a value.

    `unions` are the keywords that count: of `allOf` alone, all that is said holds.
    """
    found: list[Mapping[str, Any]] = []
    level = [schema]
    for _ in range(_DEPTH_LIMIT):  # a `$ref` may go round in circles
        here = [one for one in level if isinstance(one, MAPPING) and one not in found]
        if not here:
            break
        found += here
        level = [pointed(one["$ref"], root) for one in here if "$ref" in one]
        for one in here:
            for union in unions:
                several = one.get(union)
                level += several if isinstance(several, list) else []
    return found


def members_of(schema: Mapping[str, Any], root: Any) -> Mapping[str, Any]:
    """Return a schema of an object with the members of those that it refers to or puts together, as one."""
    reached = reachable(schema, root) if any(key in schema for key in ("$ref", *UNIONS)) else [schema]
    return schema if len(reached) == 1 else together(reached)


def together(schemas: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return what schemas of an object say of its members, as one."""
    said: dict[str, list[Any]] = {}
    for one in schemas:
        named = one.get("properties")
        for member, schema in named.items() if isinstance(named, MAPPING) else ():
            said.setdefault(member, []).append(schema)
    properties = {member: {"anyOf": found} for member, found in said.items()}
    others = next((one["additionalProperties"] for one in schemas if "additionalProperties" in one), None)
    return {"properties": properties, "additionalProperties": others}


def type_of(value: Any) -> str:
    """Return the JSON Schema type of a JSON value: "integer" for an int, "number" for a float."""
    for kind, name in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"
