"""What the reader knows of the caller's tools: their names, and their parameters in order with the types they declare.

A member of a list declares its own type. Unions allow what any branch does; `allOf` and references narrow down.
Parameters that `properties` does not name are declared by `additionalProperties`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from callmark.dialects.notation import BLANKS
from callmark.errors import ToolsError
from callmark.events import JsonValue
from callmark.reading.decoder import Undecodable, decode
from callmark.reading.diagnosis import NO_DEFINITION
from callmark.toolshapes import (
    MAPPING,
    UNIONS,
    Types,
    declared_types,
    members_of,
    reachable,
    schemas_by_name,
    together,
)

_OF = ("args", "arguments", "params", "parameters", "input")
ARGUMENTS_KEYS: Final = frozenset((
    "params", "param", "parameter", "kwargs", "action_input",
    *(of + word for of in ("tool", "tool_", "function", "function_") for word in _OF),
))  # fmt: skip
"""Keys, in lower case, under which arguments stand that have none of the dialect's own."""
_OUTER: Final = frozenset((*_OF, *ARGUMENTS_KEYS, "properties"))
"""Keys under which arguments may stand within the arguments."""
_SAYS_NAME: Final = ("name", "tool", "tool_name", "function")
_OF_SCHEMA: Final = ("type", "required")
_AROUND: Final = _OUTER.union(_SAYS_NAME, _OF_SCHEMA)
"""These, and what may stand beside them there: what names the tool again, and what a schema says of itself."""
_BEGUN: Final = frozenset(key[:size] for key in _AROUND for size in range(len(key) + 1))

_OF_OTHERS: Final = ("patternProperties", "unevaluatedProperties", "dependentSchemas", "if")
"""What may allow members that `properties` does not name."""
_MORE: Final = ("$ref", *UNIONS, *_OF_OTHERS, "propertyNames", "required", "minProperties")
"""What says of an object's members more than `properties` does."""


class Parameters:
    """The parameters of one tool: `names` in the schema's order, and the declared types of each."""

    def __init__(self, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, name: str = "") -> None:
        """Take a JSON Schema of an object; what is no mapping in the place of `properties` counts as none.

        `root` is the schema to which references in it belong, where it is a part of another one; `name` is the tool's.
        """
        self._name = name
        self._root = schema if root is None else root
        self._schema = schema
        schema = members_of(schema, self._root)
        self._others = schema.get("additionalProperties")
        properties = schema.get("properties")
        self._properties: Mapping[str, Any] = properties if isinstance(properties, MAPPING) else {}
        self._types: dict[str, Types | None] = {}
        self._within: dict[tuple[str, bool], Parameters] = {}

    @cached_property
    def _said(self) -> list[Mapping[str, Any]]:
        """All that holds for the object: asked of the tool that is called, not of each that is given."""
        return reachable(self._schema, self._root, unions=("allOf",))

    @cached_property
    def _is_closed(self) -> bool:
        """Whether none is allowed that `properties` does not name."""
        if self._others is not None and self._others is not False:
            return False
        return all(one.get(key, False) is False for one in reachable(self._schema, self._root) for key in _OF_OTHERS)

    @cached_property
    def _has_none(self) -> bool:
        """Whether the schema says that there are no parameters, and nothing of others."""
        return self._is_closed and self._schema.get("properties") == {} and not any(map(self._schema.get, _MORE))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order; not those that only a branch of a union has."""
        named = [said for one in self._said if isinstance(said := one.get("properties"), MAPPING)]
        return tuple(dict.fromkeys(key for said in named for key in said if isinstance(key, str)))

    def declared(self, key: str) -> Types | None:
        """Return the declared JSON Schema types of a parameter, None where nothing is declared."""
        if key not in self._types:
            self._types[key] = declared_types(self._declaration(key), self._root) or None
        return self._types[key]

    def _declaration(self, key: str) -> Any:
        return self._properties.get(key, self._others)

    def within(self, key: str, *, as_list: bool) -> Parameters:
        """Return what is declared of the members of a parameter: of an object by their keys, of a list one for all."""
        if (key, as_list) not in self._within:
            self._within[key, as_list] = Parameters(self._members(key, as_list=as_list), self._root)
        return self._within[key, as_list]

    def _members(self, key: str, *, as_list: bool) -> Mapping[str, Any]:
        reached = reachable(self._declaration(key), self._root)
        if as_list:
            members = next((one["items"] for one in reached if "items" in one), None)
            return {"additionalProperties": members}
        return together(reached)

    @cached_property
    def required(self) -> frozenset[str]:
        """The names of the parameters that the tool requires."""
        wanted = (key for one in self._said if isinstance(said := one.get("required"), list) for key in said)
        return frozenset(key for key in wanted if isinstance(key, str))

    def lacks(self, key: str) -> bool:
        """Return whether the tool has parameters, and none of this name, nor any of whatever name."""
        return bool(self._properties) and key not in self._properties and self._is_closed

    def may_be_around(self, key: str) -> bool:
        """Return whether a key is no parameter, and may be one with which arguments begin that hold the tool's."""
        is_other = key not in _AROUND and key != self._name
        return not is_other and (self.lacks(key) or self._has_none)

    def may_go_on(self, key: str) -> bool:
        """Return whether more of its letters could make such a key of the beginning of one."""
        return key in _BEGUN or self._name.startswith(key)

    def is_odd(self, arguments: JsonValue) -> bool:
        """Return whether arguments have such a key: only then they can be refused, or hold others."""
        if not isinstance(arguments, dict) or (_AROUND.isdisjoint(arguments) and self._name not in arguments):
            return False
        return any(map(self.may_be_around, arguments))

    def inner(
        self, arguments: Mapping[str, JsonValue], depth_limit: int
    ) -> tuple[str, dict[str, JsonValue]] | None:
        """Return the key under which these hold arguments, also in a string, and what is there; None where that is not
        certain.

        They are just what the tool takes, and what stands beside them can be none of its parameters: its name, and what
        a schema says of itself.
        """
        held = [key for key in arguments if key in _OUTER or key == self._name]
        if len(held) != 1 or not all(map(self.may_be_around, arguments)):
            return None
        if any(key not in held and key not in _OF_SCHEMA and said != self._name for key, said in arguments.items()):
            return None
        value = arguments[held[0]]
        if isinstance(value, str):
            try:
                value = decode(value.strip(BLANKS), depth_limit)
            except Undecodable:
                return None
        if not isinstance(value, dict) or not self.takes(value, without=()):
            return None
        may_be_schema = held == ["properties"] and (not value or any(isinstance(said, dict) for said in value.values()))
        return None if may_be_schema else (held[0], value)

    def unmarked(self, key: str) -> str:
        """Return the parameter that a key means as Markdown escapes it; the key where the tool has that, or neither."""
        name = key.replace("\\_", "_")
        return name if name in self._properties and key not in self._properties else key

    def takes(self, keys: Collection[str], *, without: Collection[str]) -> bool:
        """Return whether an object of just these keys is certainly meant for the tool.

        Each is one of its parameters, none that it requires is missing, and none of `without`, which may be taken for
        something else, is one of them.
        """
        known = self._properties
        return all(key in known for key in keys) and self.required <= {*keys} and not any(
            key in known for key in without
        )

    def refusal(self, arguments: JsonValue, beside: Iterable[str] = ()) -> tuple[str, str] | None:
        """Return what should stand in the place of which key, where these cannot be meant as the tool's arguments.

        `beside` are the keys of what stood beside them.
        """
        if not isinstance(arguments, dict):
            return None
        astray = next((key for key in beside if key in self._properties and key not in arguments), None)
        if astray is not None:
            return "all arguments in one object", astray
        is_schema = arguments.get("type") == "object"
        if is_schema and (self._has_none or ("properties" in arguments and self.lacks("properties"))):
            return NO_DEFINITION, next(iter(arguments))
        return None


def known_tools(tools: Any) -> dict[str, Parameters] | None:
    """Return the parameters of each tool by name, None where no tools were given.

    Takes what hosts have at hand: a sequence of names, of OpenAI tools (chat or Responses), Anthropic tools, MCP tools,
    Gemini declarations, bare dicts with a name and parameters, or objects with `name` and `parameters`; or a mapping
    of names to schemas. Raises ToolsError for anything else.
    """
    if tools is None:
        return None
    known: dict[str, Parameters] = {}
    for name, schema in schemas_by_name(tools).items():
        if schema is not None and not isinstance(schema, MAPPING):
            raise ToolsError(f"tool {name!r}: expected a JSON Schema of its arguments, found {type(schema).__name__}")
        known[name] = Parameters(schema or {}, name=name)
    return known
