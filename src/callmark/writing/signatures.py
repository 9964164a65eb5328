"""Tools as a model reads them: signatures in the syntax of a call, a table, or their JSON Schemas.

A model copies the syntax that it is shown. So a signature has quoted keys, as the arguments that are wanted have, and
types in TypeScript's words; of 20 calls of a small model all are well-formed then, and 13 where keys are bare.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from callmark.dialects import Dialect
from callmark.dialects.values import as_json
from callmark.languages import Language
from callmark.writing.contexts import unopened
from callmark.writing.neutral import neutralized_inside
from callmark.writing.toolset import Schema, ToolSpec, branches, resolved

Style: TypeAlias = Literal["signature", "brief", "compact", "table", "schema"]

STYLES: Final[tuple[Style, ...]] = ("schema", "table", "signature", "brief", "compact")
"""How tools are described, the longest first.

schema     a line of JSON with the whole schema
table      a Markdown table, with types and argument notes
signature  a signature, the purpose, and a line for each argument that has notes
brief      a signature and the first sentence of the purpose
compact    a line for each tool: names and types alone
"""

_DEPTH: Final = 4  # how deep objects are spelled out: deeper ones no small model gets right
_MEMBERS: Final = 24  # of an enumeration, and properties of an object
_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")


def described(specs: tuple[ToolSpec, ...], style: Style, language: Language, row: Dialect) -> str:
    """Return what describes the tools, in signatures as the dialect writes calls.

    What the tools' authors wrote is neutralized: no description is a call, or hides one that stands behind it.
    """
    pairs = row.writing is not None and row.writing.pairs
    match style:
        case "schema":
            lines = [_as_schema(spec) for spec in specs]
        case "table":
            lines = [
                f"| {language.tool_column} | {language.arguments_column} | {language.purpose_column} |",
                "|---|---|---|",
                *(_row(spec, pairs) for spec in specs),
            ]
        case "signature":
            lines = [line for spec in specs for line in _with_notes(spec, pairs)]
        case "brief":
            lines = [_line(spec, _SENTENCE.split(_one_line(spec.description))[0], pairs) for spec in specs]
        case _:
            lines = [signature(spec, pairs=pairs, full=False) for spec in specs]
    return "\n".join(unopened(neutralized_inside(line, dialects=row), row) for line in lines)


def signature(spec: ToolSpec, *, pairs: bool = False, full: bool = True) -> str:
    """Return `name({"key": type, "other"?: type = default})`, or `name(key=type, other?=type (= default))`.

    full  whether bounds of numbers and defaults are told, too

    >>> signature(ToolSpec("look", "", {"properties": {"at": {"type": "string"}}, "required": ["at"]}))
    'look({"at": string})'
    """
    written = ((_pairs if pairs else _object)(way, spec.schema, full=full) for way in _ways(spec))
    return " | ".join(dict.fromkeys(f"{spec.name}({arguments})" for arguments in written))


def _as_schema(spec: ToolSpec) -> str:
    """Return a tool as JSON: its description stands there even where it is empty, or the line would be a call's."""
    tool = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return json.dumps(tool, ensure_ascii=False, separators=(",", ":"))


def _line(spec: ToolSpec, purpose: str, pairs: bool) -> str:
    return f"- {signature(spec, pairs=pairs)}" + (f": {purpose}" if purpose else "")


def _with_notes(spec: ToolSpec, pairs: bool) -> list[str]:
    lines = [_line(spec, _one_line(spec.description), pairs)]
    for key, schema in _properties(spec).items():
        lines += [f" {place}: {notes}" for place, notes in _noted(key, schema, spec.schema, 1)]
    return lines


def _noted(place: str, schema: Any, root: Schema, depth: int) -> Iterator[tuple[str, str]]:
    """Yield what types cannot say of an argument and of the parts of it that a signature shows, with their places."""
    schema = resolved(schema, root)
    notes = _notes(schema, root)
    if notes:
        yield place, notes
    if depth < _DEPTH:
        for key, inner in list(schema.get("properties", {}).items())[:_MEMBERS]:
            yield from _noted(f"{place}.{key}", inner, root, depth + 1)
        yield from _noted(f"{place}[]", schema.get("items", {}), root, depth + 1)


def _row(spec: ToolSpec, pairs: bool) -> str:
    ways = dict.fromkeys("; ".join(_cells(way, spec.schema, pairs)) or ("" if pairs else "{}") for way in _ways(spec))
    columns = (spec.name, " | ".join(ways), _one_line(spec.description))
    return "| " + " | ".join(column.replace("|", "\\|") for column in columns) + " |"


def _cells(way: Schema, root: Schema, pairs: bool) -> Iterator[str]:
    """Yield the arguments of one way to call a tool, as a table tells them."""
    required = way.get("required", [])
    for key, schema in way.get("properties", {}).items():
        mark = "" if key in required else "?"
        notes = _notes(schema, root)
        kind = _type(schema, root, 1) + _default(schema, root, " (= {})" if pairs else " = {}")
        shown = f"{key}{mark}={kind}" if pairs else f"{as_json(key)}{mark}: {kind}"
        yield shown + (f" ({notes})" if notes else "")


def _properties(spec: ToolSpec) -> dict[str, Any]:
    return {key: inner for way in reversed(_ways(spec)) for key, inner in way.get("properties", {}).items()}


def _ways(spec: ToolSpec) -> list[Schema]:
    """Return the objects of which the arguments are one."""
    ways = [way for way in branches(spec.arguments, spec.schema) if way is not False]
    return ways[:_MEMBERS] or [spec.arguments]


def _notes(schema: Any, root: Schema) -> str:
    """Return what a type cannot say of an argument."""
    schema = resolved(schema, root)
    notes = []
    description = schema.get("description")
    if isinstance(description, str) and description.strip():
        notes.append(_one_line(description))
    details = []
    if isinstance(schema.get("pattern"), str):
        details.append(f"pattern {_one_line(schema['pattern'])}")
    for least, most, unit in (("minLength", "maxLength", "length"), ("minItems", "maxItems", "items")):
        if (least in schema or most in schema) and "prefixItems" not in schema:
            details.append(f"{unit} {schema.get(least, 0)}..{schema.get(most, '')}")
    if "multipleOf" in schema:
        details.append(f"multiple of {as_json(schema['multipleOf'])}")
    if details:
        notes.append(f"({', '.join(details)})" if notes else ", ".join(details))
    return " ".join(notes)


def _type(schema: Any, root: Schema, depth: int, full: bool = True) -> str:
    """Return a schema as a type in TypeScript's words."""
    return " | ".join(dict.fromkeys(_types(schema, root, depth, full)))


def _types(schema: Any, root: Schema, depth: int, full: bool) -> list[str]:
    """Return the types of which a value is one."""
    if schema is False:
        return ["never"]
    schema = resolved(schema, root)
    if "const" in schema:
        return [as_json(schema["const"])]
    if "enum" in schema:
        members = [as_json(member) for member in schema["enum"][:_MEMBERS]]
        return members + ["..."] * (len(schema["enum"]) > _MEMBERS)
    ways = branches(schema, root)
    if ways:
        kinds = (_types(way, root, depth + 1, full) for way in ways[:_MEMBERS])
        return [kind for each in kinds for kind in each] if depth < _DEPTH else ["any"]
    kinds = schema.get("type", "object" if "properties" in schema else "any")
    return [_named(kind, schema, root, depth, full) for kind in ([kinds] if isinstance(kinds, str) else kinds)]


def _named(kind: str, schema: Schema, root: Schema, depth: int, full: bool) -> str:
    if kind == "array" and "prefixItems" in schema:
        kinds = [_type(inner, root, depth + 1, full) if depth < _DEPTH else "any" for inner in schema["prefixItems"]]
        return "[" + ", ".join(kinds + ["..."] * (schema.get("items") is not False)) + "]"
    if kind == "array":
        inner = dict.fromkeys(_types(schema.get("items", {}), root, depth + 1, full) if depth < _DEPTH else ["any"])
        return f"({' | '.join(inner)})[]" if len(inner) > 1 else f"{' | '.join(inner)}[]"
    if kind == "object" and depth < _DEPTH and (schema.get("properties") or schema.get("additionalProperties")):
        return _object(schema, root, depth, full=full)
    encoding = schema.get("format", schema.get("contentEncoding"))
    if kind == "string" and isinstance(encoding, str):
        return f"string({_one_line(encoding)})"
    if full and kind in ("integer", "number"):
        least, most = schema.get("minimum"), schema.get("maximum")
        if least is not None or most is not None:
            kind += f" {'' if least is None else as_json(least)}..{'' if most is None else as_json(most)}"
        for bound, sign in (("exclusiveMinimum", ">"), ("exclusiveMaximum", "<")):
            kind += f" {sign}{as_json(schema[bound])}" if bound in schema else ""
    return kind


def _pairs(schema: Schema, root: Schema, *, full: bool) -> str:
    required = schema.get("required", [])
    form = " (= {})" * full
    return ", ".join(
        f"{key}{'' if key in required else '?'}={_type(inner, root, 1, full)}{_default(inner, root, form)}"
        for key, inner in schema.get("properties", {}).items()
    )


def _object(schema: Schema, root: Schema, depth: int = 0, *, full: bool) -> str:
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    if not properties and schema.get("additionalProperties"):
        return f"Record<string, {_type(schema['additionalProperties'], root, depth + 1, full)}>"
    form = " = {}" * full
    items = [
        f"{as_json(key)}{'' if key in required else '?'}: "
        f"{_type(inner, root, depth + 1, full)}{_default(inner, root, form)}"
        for key, inner in list(properties.items())[:_MEMBERS]
    ]
    items += ["..."] * (len(properties) > _MEMBERS)
    return "{" + ", ".join(items) + "}"


def _default(schema: Any, root: Schema, form: str) -> str:
    """Return a schema's default in a form; null is none, as leaving the argument out says it too."""
    schema = resolved(schema, root)
    return "" if schema.get("default") is None else form.format(as_json(schema["default"]))


def _one_line(text: str) -> str:
    return " ".join(text.split())
