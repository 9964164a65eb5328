"""The shapes in which tools are handed over, taken apart: what a reader and a writer of calls both ask of them.

Nothing is checked here but that there are tools at all; what a name or a schema must be is said where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import isroutine
from typing import Any, Final

from callmark.errors import ToolsError

TYPES: Final = {
    "str": "string", "text": "string", "int": "integer", "float": "number", "double": "number", "bool": "boolean",
    "dict": "object", "map": "object", "list": "array", "tuple": "array", "none": "null",
}  # fmt: skip
"""The types of JSON Schema by other names that are met."""

_SCHEMA_KEYS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")


def listed(tools: Any) -> list[Any]:
    """Return the tools one by one.

    Takes a sequence of tools, a single one as a mapping with a name, an MCP tools/list result, Gemini's declarations,
    or a mapping of names to schemas. Raises ToolsError for anything else.
    """
    if isinstance(tools, Mapping):
        if isinstance(tools.get("tools"), list):
            tools = tools["tools"]
        elif isinstance(tools.get("functionDeclarations"), list) or isinstance(tools.get("name"), str):
            tools = [tools]
        else:
            tools = [{"name": name, "parameters": schema} for name, schema in tools.items()]
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise ToolsError(f"tools: expected a sequence of tools, found {type(tools).__name__}")
    found: list[Any] = []
    for tool in tools:
        declared = tool.get("functionDeclarations") if isinstance(tool, Mapping) else None
        found.extend(declared if isinstance(declared, list) else [tool])
    return found


def parts(tool: Any) -> tuple[Any, Any, Any]:
    """Return name, description and schema of a tool as they are given, None for what is not.

    Takes an OpenAI tool (chat or Responses), an Anthropic or MCP tool, a Gemini declaration, a bare mapping with a name
    and parameters, an object with such attributes, a Python function, or a name. Raises ToolsError for a function that
    cannot be a tool.
    """
    if isinstance(tool, str):
        return tool, None, None
    if isinstance(tool, Mapping):
        inner = tool.get("function")
        tool = inner if isinstance(inner, Mapping) else tool
        schema = next((tool[key] for key in _SCHEMA_KEYS if tool.get(key) is not None), None)
        return tool.get("name"), tool.get("description"), schema
    if isroutine(tool):
        from callmark.functions import read_signature  # msgspec's schemas: few hand over functions

        signature = read_signature(tool)
        return tool.__name__, signature.description, signature.parameters
    schemas = (getattr(tool, key, None) for key in _SCHEMA_KEYS[:3])
    schema = next((schema for schema in schemas if schema is not None), None)
    return getattr(tool, "name", None), getattr(tool, "description", None), schema


def type_of(value: Any) -> str:
    """Return the JSON Schema type of a JSON value: "integer" for an int, "number" for a float."""
    for kind, name in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"
