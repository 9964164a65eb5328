"""Makes the JSON Schema of a tool out of a Python function: its signature gives types, its docstring words.

It stands below all that takes tools, so that each of them takes functions. What a function is told beside its arguments
is a parameter whose annotation says `is_context`, as `Invocation` does.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from types import GenericAlias
from typing import Any, NamedTuple

import msgspec

from callmark.errors import ToolError, ToolsError
from callmark.hints import Ways, as_json, converted, schemas_of, ways_of

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
_QUALIFIERS = (typing.Required, typing.NotRequired, getattr(typing, "ReadOnly", typing.Required))  # it is of 3.13
"""Of the keys of a TypedDict: no types of their own."""


class Signature(NamedTuple):
    """What a function takes: the schema of its arguments, and how to call it with them."""

    description: str
    parameters: dict[str, Any]
    types: Mapping[str, Ways]
    unpacked: Mapping[str, bool]  # arguments that an `Unpack[TypedDict]` names, and whether each must be there
    others: Ways  # the types of arguments that nothing names; () where it takes none
    context: str  # the name of the parameter that takes the Invocation; "" where there is none
    python: inspect.Signature

    def bind(self, arguments: Mapping[str, Any], context: Any) -> inspect.BoundArguments:
        """Return the arguments for the function: converted to its annotations, the context among them.

        Raises ToolError for a value that its annotation does not allow although the schema does.
        """
        bound = inspect.BoundArguments(self.python, OrderedDict())
        spare: dict[str, Any] = {}
        for key, value in arguments.items():
            place = bound.arguments if key in self.types and key not in self.unpacked else spare
            try:
                place[key] = converted(value, self.types.get(key, self.others))
            except ToolError as error:
                raise ToolError(error.code, f"{key}: {error.message}") from error
        if self.context:
            bound.arguments[self.context] = context
            spare.pop(self.context, None)  # which it would hide
        for parameter in self.python.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.arguments[parameter.name] = spare
        bound.apply_defaults()  # in front of others that come by position, each has its place
        return bound


def read_signature(function: Callable[..., Any]) -> Signature:
    """Return what `function` takes.

    Types come from annotations, through msgspec: builtins, `Literal`, enums, dataclasses, TypedDicts, Structs, unions,
    paths, pydantic's models, `Annotated` with `msgspec.Meta` or a description. A parameter that takes any number of
    values by position (`*names`) is a list, the keys of an `Unpack[TypedDict]` are parameters like others, and one
    annotated `Invocation` takes the context and is not in the schema.
    Words come from the docstring, in the style of Google, NumPy or Sphinx. Raises ToolsError, which names the
    parameter, for a type that JSON cannot carry, and for a name that two have.
    """
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    said = inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner).__call__
    name = getattr(inner, "__name__", type(inner).__name__)
    try:
        hints = typing.get_type_hints(said, include_extras=True)
        if inspect.isclass(inner):  # whose hints are those of its fields alone
            hints = typing.get_type_hints(getattr(inner, "__init__", object), include_extras=True) | hints
        signature = inspect.signature(function)
        named, unpacked = _unpacked(signature, hints)
    except (NameError, TypeError, ValueError) as error:
        raise ToolsError(f"tool {name}: expected annotations that can be read, found: {error}") from error
    description, words = read_docstring(said.__doc__ or inner.__doc__ or "")
    types: dict[str, Ways] = {}
    others: Ways = ()
    context = ""
    for parameter in signature.parameters.values():
        if not types and parameter.name in ("self", "cls") and parameter.name not in hints:
            raise ToolsError(f"tool {name}: expected a method of an object, found one that wants {parameter.name!r}")
        hint = hints.get(parameter.name, Any)
        where = f"tool {name}, parameter {parameter.name!r}"
        if parameter.name in named and parameter.kind is not parameter.VAR_KEYWORD:
            raise ToolsError(f"{where}: expected a name that is no key of what is unpacked beside it")
        if getattr(hint, "is_context", False) is True:
            context = parameter.name
        elif parameter.kind is parameter.VAR_KEYWORD:
            others = () if typing.get_origin(hint) is typing.Unpack else ways_of(hint, where)
        else:
            several = parameter.kind is parameter.VAR_POSITIONAL
            types[parameter.name] = ways_of(GenericAlias(list, (hint,)) if several else hint, where)
    types |= {key: ways_of(hint, f"tool {name}, parameter {key!r}") for key, hint in named.items()}
    hints |= named
    properties, definitions = schemas_of({**types, "": others} if others else types)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": []}
    schema["additionalProperties"] = properties.pop("", {}) or bool(others)
    for key, described in properties.items():
        for extra in getattr(hints.get(key), "__metadata__", ()):
            told = extra if isinstance(extra, str) else getattr(extra, "description", None)
            if isinstance(told, str):
                described["description"] = told
        if key in words:
            described.setdefault("description", words[key])
        if key in unpacked:
            required = unpacked[key]
        else:
            parameter = signature.parameters[key]
            required = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
            if parameter.default is not parameter.empty:
                _add_default(described, parameter.default)
        if required:
            schema["required"].append(key)
    if not schema["required"]:
        del schema["required"]
    if definitions:
        schema["$defs"] = definitions
    return Signature(description, schema, types, unpacked, others or (Any,), context, signature)


def _unpacked(signature: inspect.Signature, hints: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bool]]:
    """Return the hints of what an `Unpack[TypedDict]` in a signature names, and whether each of these must be there."""
    found: dict[str, Any] = {}
    required: dict[str, bool] = {}
    packed = [hints.get(each.name) for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD]
    for kind in (typing.get_args(hint)[0] for hint in packed if typing.get_origin(hint) is typing.Unpack):
        kind = typing.get_origin(kind) or kind
        for key, hint in typing.get_type_hints(kind, include_extras=True).items():
            required[key] = key in kind.__required_keys__
            while (origin := typing.get_origin(hint)) in _QUALIFIERS:
                required[key] = {typing.Required: True, typing.NotRequired: False}.get(origin, required[key])
                hint = typing.get_args(hint)[0]
            found[key] = hint
    return found, required


def _add_default(schema: dict[str, Any], default: Any) -> None:
    try:
        schema["default"] = as_json(default)
    except (TypeError, ValueError, BufferError, RecursionError, msgspec.MsgspecError):
        return  # a default that JSON cannot hold is the function's own affair


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
