"""Tools as a model reads them: signatures in the syntax of a call, a table, or their JSON Schemas.

A model copies the syntax that it is shown. So a signature has quoted keys, as the arguments that are wanted have, and
types in TypeScript's words; of 20 calls of a small model all are well-formed then, and 13 where keys are bare.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal, TypeAlias

from callmark.languages import Language
from callmark.writing.neutral import neutralized_inside
from callmark.writing.toolset import Schema, ToolSpec, resolved

Style: TypeAlias = Literal["signature", "brief", "compact", "table", "schema"]

STYLES: Final[tuple[Style, ...]] = ("schema", "table", "signature", "brief", "compact")
"""How tools are described, the longest first.

schema     a line of JSON with the whole schema
table      a Markdown table, with types and argument notes
signature  a signature, the purpose, and a line for each argument that has notes
brief      a signature and the first sentence of the purpose
compact    the signature alone
"""

_DEPTH: Final = 4  # how deep objects are spelled out: deeper ones no small model gets right
_MEMBERS: Final = 24  # of an enumeration, and properties of an object
_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")


def described(specs: tuple[ToolSpec, ...], style: Style, language: Language, *, pairs: bool = False) -> str:
    """Return what describes the tools; `pairs`: with signatures for a dialect that writes `key=value`.

    What the tools' authors wrote is neutralized: no description is a call.
    """
    match style:
        case "schema":
            lines = [_as_schema(spec) for spec in specs]
        case "table":
            lines = [
                f"| {language.tool_column} | {language.arguments_column} | {language.purpose_column} |",
                "|---|---|---|",
                *(_row(spec) for spec in specs),
            ]
        case "signature":
            lines = [line for spec in specs for line in _with_notes(spec, pairs)]
        case "brief":
            lines = [_line(spec, _SENTENCE.split(_one_line(spec.description))[0], pairs) for spec in specs]
        case _:
            lines = [_line(spec, "", pairs) for spec in specs]
    return "\n".join(map(neutralized_inside, lines))


def signature(spec: ToolSpec, *, pairs: bool = False) -> str:
    """Return `name({"key": type, "other"?: type})`, or `name(key=type, other?=type)`.

    >>> signature(ToolSpec("look", "", {"properties": {"at": {"type": "string"}}, "required": ["at"]}))
    'look({"at": string})'
    """
    schema = resolved(spec.schema, spec.schema)
    if not pairs:
        return f"{spec.name}({_object(schema, spec.schema, 0)})"
    required = schema.get("required", [])
    arguments = (
        f"{key}{'' if key in required else '?'}={_type(inner, spec.schema, 1)}{_default(inner, spec.schema, ' (= {})')}"
        for key, inner in schema.get("properties", {}).items()
    )
    return f"{spec.name}({', '.join(arguments)})"


def _as_schema(spec: ToolSpec) -> str:
    tool = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return json.dumps({key: value for key, value in tool.items() if value}, ensure_ascii=False, separators=(",", ":"))


def _line(spec: ToolSpec, purpose: str, pairs: bool) -> str:
    return f"- {signature(spec, pairs=pairs)}" + (f": {purpose}" if purpose else "")


def _with_notes(spec: ToolSpec, pairs: bool) -> list[str]:
    lines = [_line(spec, _one_line(spec.description), pairs)]
    for key, schema in _properties(spec).items():
        notes = _notes(schema, spec.schema)
        if notes:
            lines.append(f"  {key}: {notes}")
    return lines


def _row(spec: ToolSpec) -> str:
    cells = []
    required = spec.schema.get("required", [])
    for key, schema in _properties(spec).items():
        mark = "" if key in required else "?"
        notes = _notes(schema, spec.schema)
        kind = _type(schema, spec.schema, 1) + _default(schema, spec.schema)
        cells.append(f'"{key}"{mark}: {kind}' + (f" ({notes})" if notes else ""))
    columns = (spec.name, "; ".join(cells) or "{}", _one_line(spec.description))
    return "| " + " | ".join(column.replace("|", "\\|") for column in columns) + " |"


def _properties(spec: ToolSpec) -> dict[str, Any]:
    properties: dict[str, Any] = resolved(spec.schema, spec.schema).get("properties", {})
    return properties


def _notes(schema: Any, root: Schema) -> str:
    """Return what a type cannot say of an argument."""
    schema = {**resolved(schema, root), **(schema if isinstance(schema, dict) else {})}
    notes = []
    description = schema.get("description")
    if isinstance(description, str) and description.strip():
        notes.append(_one_line(description))
    details = []
    if isinstance(schema.get("pattern"), str):
        details.append(f"pattern {_one_line(schema['pattern'])}")
    for least, most, unit in (("minLength", "maxLength", "length"), ("minItems", "maxItems", "items")):
        if least in schema or most in schema:
            details.append(f"{unit} {schema.get(least, 0)}..{schema.get(most, '')}")
    if details:
        notes.append(f"({', '.join(details)})" if notes else ", ".join(details))
    return " ".join(notes)


def _type(schema: Any, root: Schema, depth: int) -> str:
    """Return a schema as a type in TypeScript's words."""
    schema = resolved(schema, root)
    if "const" in schema:
        return _json(schema["const"])
    if "enum" in schema:
        members = [_json(member) for member in schema["enum"][:_MEMBERS]]
        return " | ".join(members + ["..."] * (len(schema["enum"]) > _MEMBERS)) or "never"
    for union in ("anyOf", "oneOf"):
        if schema.get(union):
            kinds = (
                [_type(branch, root, depth + 1) for branch in schema[union][:_MEMBERS]] if depth < _DEPTH else ["any"]
            )
            return " | ".join(dict.fromkeys(kinds))
    kinds = schema.get("type", "object" if "properties" in schema else "any")
    return " | ".join(_named(kind, schema, root, depth) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _named(kind: str, schema: Schema, root: Schema, depth: int) -> str:
    if kind == "array":
        inner = _type(schema.get("items", {}), root, depth + 1) if depth < _DEPTH else "any"
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind == "object" and schema.get("properties") and depth < _DEPTH:
        return _object(schema, root, depth)
    if kind == "string" and isinstance(schema.get("format"), str):
        return f"string({_one_line(schema['format'])})"
    if kind in ("integer", "number"):
        least, most = schema.get("minimum"), schema.get("maximum")
        if least is not None or most is not None:
            return f"{kind} {'' if least is None else _json(least)}..{'' if most is None else _json(most)}"
    return kind


def _object(schema: Schema, root: Schema, depth: int) -> str:
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    items = [
        f"{_json(key)}{'' if key in required else '?'}: {_type(inner, root, depth + 1)}{_default(inner, root)}"
        for key, inner in list(properties.items())[:_MEMBERS]
    ]
    items += ["..."] * (len(properties) > _MEMBERS)
    return "{" + ", ".join(items) + "}"


def _default(schema: Any, root: Schema, form: str = " = {}") -> str:
    """Return ` = value` where a schema has a default; null is none, as leaving the argument out says it too."""
    schema = {**resolved(schema, root), **(schema if isinstance(schema, dict) else {})}
    return "" if schema.get("default") is None else form.format(_json(schema["default"]))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())
