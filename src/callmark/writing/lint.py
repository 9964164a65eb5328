"""Says what in a set of tools will cost good calls: what models cannot know, and what some hosts refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from callmark.writing.examples import example_arguments
from callmark.writing.signatures import signature
from callmark.writing.toolset import Schema, ToolSpec, contradiction, resolved, tool_specs

TOOLS_LIMIT: Final = 20  # with more of them models choose worse; offer those that a conversation needs
NESTING_LIMIT: Final = 3  # objects in objects: beyond that small models lose count of brackets
LENGTH_LIMIT: Final = 600  # characters of a description: each is paid for in every message
PARAMETERS_LIMIT: Final = 12
_LOOKS_LIMIT: Final = 5000  # parts of one schema that are looked at for nesting

_PORTABLE_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")  # what OpenAI, Anthropic and Gemini all take


class Finding(NamedTuple):
    """One thing that should be better: a stable code, the tool ("" for all of them), and what to do."""

    code: str
    tool: str
    message: str


def lint(tools: Any) -> tuple[Finding, ...]:
    """Return what is wrong with the tools, in their order. Takes what `protocol_prompt` takes, and raises as it
    does for what is no tool; schemas that contradict themselves are told.

    >>> [finding.code for finding in lint({"look": {"properties": {"at": {"type": "string"}}}})]
    ['no-description', 'undescribed-parameter']
    """
    specs = tool_specs(tools)
    findings = []
    if not specs:
        findings.append(Finding("no-tools", "", "expected at least one tool, found none"))
    if len(specs) > TOOLS_LIMIT:
        message = f"expected at most {TOOLS_LIMIT} tools at a time, found {len(specs)}: offer those that are needed"
        findings.append(Finding("too-many-tools", "", message))
    for spec in specs:
        findings += [Finding(code, spec.name, message) for code, message in _of_tool(spec)]
    return tuple(findings)


def _of_tool(spec: ToolSpec) -> list[tuple[str, str]]:
    found = []
    if not _PORTABLE_NAME.fullmatch(spec.name):
        message = "expected 1 to 64 ASCII letters, digits, `_` or `-`, a letter first: some hosts refuse other names"
        found.append(("unportable-name", message))
    if not spec.description:
        found.append(("no-description", "expected a description: purpose, when to use it, what comes back, limits"))
    elif len(spec.description) > LENGTH_LIMIT:
        message = f"expected a description of at most {LENGTH_LIMIT} characters, found {len(spec.description)}"
        found.append(("long-description", message))
    properties = spec.arguments.get("properties", {})
    if len(properties) > PARAMETERS_LIMIT:
        message = f"expected at most {PARAMETERS_LIMIT} parameters, found {len(properties)}: split the tool"
        found.append(("too-many-parameters", message))
    for key, inner in properties.items():
        schema = resolved(inner, spec.schema)
        if "description" not in schema and not (isinstance(inner, dict) and "description" in inner):
            found.append(("undescribed-parameter", f"{key}: expected a description of what it means, with its unit"))
        if not schema.keys() & {"type", "enum", "const", "anyOf", "oneOf", "allOf", "properties"}:
            found.append(("untyped-parameter", f"{key}: expected a type; without one a model guesses"))
    for key in spec.arguments.get("required", ()):
        if key not in properties:
            found.append(("unknown-required", f"{key}: expected a property of this name, as it is required"))
    depth = _depth(spec.schema, spec.schema, 0, iter(range(_LOOKS_LIMIT)))
    if depth > NESTING_LIMIT:
        found.append(("deep-nesting", f"expected at most {NESTING_LIMIT} nested objects, found {depth}: flatten them"))
    told = contradiction(spec)
    if told:
        found.append(("contradiction", told))
    elif example_arguments(spec) is None:
        message = f"expected a schema for which an example is found, found none for {signature(spec)}: give `examples`"
        found.append(("no-example", message))
    return found


def _depth(schema: Any, root: Schema, level: int, left: Iterator[int]) -> int:
    """Return how many objects are nested in a schema, up to 16: a schema may hold itself, and more than once."""
    if level >= 16 or next(left, None) is None:
        return level
    schema = resolved(schema, root)
    branches = [schema.get("items", {}), *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    inside = max((_depth(branch, root, level + 1, left) - 1 for branch in branches if branch), default=0)
    properties = schema.get("properties", {}).values()
    return max(inside, max((_depth(inner, root, level + 1, left) for inner in properties), default=level))
