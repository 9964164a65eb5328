"""Makes the JSON Schema of a tool out of a Python function: its signature gives types, its docstring words.

It stands below all that takes tools, so that each of them takes functions. What a function is told beside its arguments
is a parameter whose annotation says `is_context`, as `Invocation` does.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import msgspec.inspect

from callmark.errors import ToolError, ToolsError

_ARGUMENTS = (
    "Args", "Arguments", "Keyword Args", "Keyword Arguments", "Other Parameters", "Parameters", "Params",
)  # fmt: skip
_SECTION = re.compile(
    rf"({'|'.join(_ARGUMENTS)}|Returns?|Raises|Yields?|Warns)(?::|$)"
    r"|(Attributes|Examples?|Notes?|References|See Also|Todo|Warnings?):{0,2}$"  # else words: `Note: it is slow.`
)
_FIELD = re.compile(r"\s*[:@](?:param|parameter|arg|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)")
_OTHER_FIELD = re.compile(r"\s*(?::\w+[^:]*|@(?:type|returns?|rtype|raises?)\b[^:]*):")
_ITEM = re.compile(r"(\*{0,2}\w+(?:,\s*\*{0,2}\w+)*)\s*(?:\(.*?\))?\s*:\s*(.*)")

_FORMATS: Final = {msgspec.inspect.DateTimeType: "date-time", msgspec.inspect.TimeType: "time"}
"""Of types for which msgspec gives none where the zone may be left out."""


class Signature(NamedTuple):
    """What a function takes: the schema of its arguments, and how to call it with them."""

    description: str
    parameters: dict[str, Any]
    types: Mapping[str, Any]
    context: str  # the name of the parameter that takes the Invocation; "" where there is none

    def bind(self, arguments: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """Return the keyword arguments for the function: converted to its annotations, the context among them.

        Raises ToolError for a value that its annotation does not allow although the schema does.
        """
        bound = {key: self._converted(key, value) for key, value in arguments.items()}
        if self.context:
            bound[self.context] = context
        return bound

    def _converted(self, key: str, value: Any) -> Any:
        if key not in self.types:
            return value
        for strict in (True, False):  # JSON's 3.0 is an integer, which only the lax way takes
            try:
                return msgspec.convert(value, self.types[key], strict=strict)
            except msgspec.ValidationError as error:
                problem = error
        raise ToolError("invalid-arguments", f"{key}: {problem}")


def read_signature(function: Callable[..., Any]) -> Signature:
    """Return what `function` takes.

    Types come from annotations, through msgspec: builtins, `Literal`, enums, dataclasses, TypedDicts, Structs, unions,
    `Annotated` with `msgspec.Meta` or a description. A parameter annotated `Invocation` takes the context and is not in
    the schema. Words come from the docstring, in the style of Google, NumPy or Sphinx. Raises ToolsError for what
    cannot be called by keywords or has a type that JSON cannot carry.
    """
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    said = inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner).__call__
    name = getattr(inner, "__name__", type(inner).__name__)
    try:
        hints = typing.get_type_hints(said, include_extras=True)
        signature = inspect.signature(function)
    except (NameError, TypeError, ValueError) as error:
        raise ToolsError(f"tool {name}: expected annotations that can be read, found: {error}") from error
    description, words = read_docstring(said.__doc__ or inner.__doc__ or "")
    properties: dict[str, Any] = {}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": [], "additionalProperties": False}
    types: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    context = ""
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            schema["additionalProperties"] = True
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolsError(
                f"tool {name}, parameter {parameter.name!r}: expected one that takes a keyword, found a positional one"
            )
        if not properties and parameter.name in ("self", "cls") and parameter.name not in hints:
            raise ToolsError(f"tool {name}: expected a method of an object, found one that wants {parameter.name!r}")
        hint = hints.get(parameter.name, Any)
        if getattr(hint, "is_context", False) is True:
            context = parameter.name
            continue
        properties[parameter.name] = _schema(name, parameter.name, hint, definitions)
        types[parameter.name] = hint
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, str):
                properties[parameter.name]["description"] = extra
        if parameter.name in words:
            properties[parameter.name].setdefault("description", words[parameter.name])
        if parameter.default is parameter.empty:
            schema["required"].append(parameter.name)
        else:
            _add_default(properties[parameter.name], parameter.default)
    if not schema["required"]:
        del schema["required"]
    if definitions:
        schema["$defs"] = definitions
    return Signature(description, schema, types, context)


def _schema(tool: str, parameter: str, hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    try:
        (schema,), found = msgspec.json.schema_components([hint], ref_template="#/$defs/{name}")
        form = _FORMATS.get(type(msgspec.inspect.type_info(hint)))
    except (TypeError, RuntimeError) as error:
        raise ToolsError(
            f"tool {tool}, parameter {parameter!r}: expected a type that JSON can carry, found {hint!r}"
        ) from error
    definitions.update(found)
    return {**schema, "format": form} if form else dict(schema)


def _add_default(schema: dict[str, Any], default: Any) -> None:
    try:
        value = msgspec.to_builtins(default, str_keys=True)
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, BufferError, RecursionError, msgspec.MsgspecError):
        return  # a default that JSON cannot hold is the function's own affair
    schema["default"] = value


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return what stands before the sections of a docstring, and the description of each parameter.

    >>> read_docstring("Look.\\n\\nArgs:\\n    city: where\\n      to look\\n    days (int): how far\\n\\nReturns: it.")
    ('Look.', {'city': 'where to look', 'days': 'how far'})
    """
    description: list[str] = []
    words: dict[str, list[str]] = {}
    section = ""  # "" is the description
    indent = -1  # of the items of the section, once the first was seen
    current: list[str] = []  # where continued lines go
    for line in inspect.cleandoc(text).splitlines():
        stripped = line.strip()
        title = _SECTION.match(stripped) if not line.startswith(" ") else None
        if title:
            section, indent, current = title[1] or title[2], -1, []
        elif field := _FIELD.match(line):
            section, current = "Fields", words.setdefault(field[1], [field[2]])
        elif _OTHER_FIELD.match(line):
            section, current = "Fields", []
        elif not section:
            description.append(line)
        elif section in _ARGUMENTS and stripped and not set(stripped) <= {"-"}:
            here = len(line) - len(line.lstrip())
            item = _ITEM.fullmatch(stripped)
            indent = here if indent < 0 else indent
            if item and here <= indent:
                numpy = indent == 0  # `name, other : type`, and the description on the next lines
                current = [] if numpy else [item[2]]
                words |= dict.fromkeys(item[1].replace("*", "").replace(" ", "").split(","), current)
            else:
                current.append(stripped)
        elif section == "Fields":
            current.append(stripped)
    return "\n".join(description).strip(), {name: " ".join(filter(None, lines)) for name, lines in words.items()}
