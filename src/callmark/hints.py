"""Annotations of Python as JSON Schemas, and JSON values as what annotations say.

msgspec does both for most types. What it refuses although it has a plain schema is told here: paths, enumerations of
whatever JSON has, unions of which it could not tell the members apart, and models of pydantic, which is never imported.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from pathlib import PurePath
from types import UnionType
from typing import Any, Final, TypeAlias

import msgspec
import msgspec.inspect

from callmark.errors import ToolError, ToolsError

Ways: TypeAlias = tuple[Any, ...]
"""Types of which a value is one: the first that takes it."""

_UNIONS: Final = (typing.Union, UnionType)
_PLACE: Final = "#/$defs/{name}"
_FORMATS: Final = {"datetime.datetime": "date-time", "datetime.time": "time"}
"""Of types, by their names, for which msgspec gives none where the zone may be left out."""


class _Standing(type):
    """A type whose values are the members of an enumeration, as msgspec asks."""

    enumeration: type[Enum]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.enumeration)


class _Members(metaclass=_Standing):
    """Stands for an enumeration that msgspec refuses, as its values are not all texts or all integers."""


def ways_of(hint: Any, where: str) -> Ways:
    """Return the types that msgspec is to try for an annotation. Raises ToolsError where JSON can carry none of it."""
    way = _known(hint)
    ways: Ways = (way,)
    union = typing.get_args(way)[0] if typing.get_origin(way) is typing.Annotated else way
    if typing.get_origin(union) in _UNIONS and not _taken(way):
        beside = getattr(way, "__metadata__", ())
        members = sorted(typing.get_args(union), key=lambda member: member is bytes)  # last: many a word is base64
        ways = tuple(typing.Annotated[(each, *beside)] if beside else each for each in members)
    try:
        msgspec.json.schema_components(ways, schema_hook=_Definitions().described)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ToolsError(f"{where}: expected a type that JSON can carry, found {hint!r}: {error}") from error
    return ways


def schemas_of(hints: Mapping[str, Ways]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return a schema for each of the names, and the definitions to which they refer as `#/$defs/...`."""
    own = _Definitions()
    schemas, named = _components(hints, own)
    if named.keys() & own.schemas.keys():
        own = _Definitions(taken=named)
        schemas, _ = _components(hints, own)
    left = iter(schemas)
    found = {}
    for name, ways in hints.items():
        each = [next(left) for _ in ways]
        found[name] = each[0] if len(each) == 1 else {"anyOf": each}
    return found, {**named, **own.schemas}


def _components(hints: Mapping[str, Ways], own: _Definitions) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    types = [way for ways in hints.values() for way in ways]
    return msgspec.json.schema_components(types, schema_hook=own.described, ref_template=_PLACE)


def converted(value: Any, ways: Ways) -> Any:
    """Return a JSON value as the first of the types that takes it. Raises ToolError where none does."""
    for strict in (True, False):  # JSON's 3.0 is an integer, which only the lax way takes
        for way in ways:
            try:
                return msgspec.convert(value, way, strict=strict, dec_hook=_made)
            except msgspec.ValidationError as error:
                problem = error
    raise ToolError("invalid-arguments", str(problem))


def as_json(value: Any) -> Any:
    """Return a value as JSON has it. Raises TypeError, ValueError or what msgspec raises where JSON has none of it."""
    found = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
    json.dumps(found, allow_nan=False)
    return found


def _taken(hint: Any) -> bool:
    try:
        msgspec.inspect.type_info(hint)
    except (TypeError, RuntimeError):
        return False
    return True


def _known(hint: Any, *, formats: bool = True) -> Any:
    """Return an annotation with what stands for enumerations that msgspec refuses, however deep in it they are.

    Dates and times say their format, except as parameters of a generic class: its name would hold what says so.
    """
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _standing_for(hint)
    form = _FORMATS.get(f"{hint.__module__}.{hint.__qualname__}") if isinstance(hint, type) else None
    if form and formats:
        return typing.Annotated[hint, msgspec.Meta(extra_json_schema={"format": form})]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    formats = formats and not hasattr(origin, "__orig_bases__")
    known = tuple(_known(each, formats=formats) for each in inner)
    if origin is typing.Literal or known == inner:
        return hint
    if origin in _UNIONS:
        return typing.Union[known]  # noqa: UP007  # which takes them one by one
    return origin[known]


@cache  # so that it is one type wherever it stands
def _standing_for(enumeration: type[Enum]) -> type:
    kinds = {type(member.value) for member in enumeration}
    if len(kinds) < 2 and kinds <= {str, int}:
        return enumeration
    return _Standing(enumeration.__name__, (_Members,), {"enumeration": enumeration})


class _Definitions:
    """Schemas of pydantic's models, each under its name, and what it brings along under that and its own."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.schemas: dict[str, Any] = {}
        self._models: dict[str, Any] = dict.fromkeys(taken)

    def described(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type that msgspec does not know."""
        if isinstance(kind, type) and issubclass(kind, PurePath):
            return {"type": "string", "format": "path"}
        if isinstance(kind, type) and issubclass(kind, _Members):
            return {"title": kind.__name__, "enum": _scalars(kind.enumeration)}
        if not _is_model(kind):
            raise TypeError(f"{kind!r} has no JSON Schema")
        name = kind.__name__
        while self._models.setdefault(name, kind) is not kind:  # another of the same name
            name += "_"
        if name not in self.schemas:
            schema = kind.model_json_schema(ref_template=_PLACE.replace("{name}", f"{name}.{{model}}"))
            self.schemas |= {f"{name}.{key}": inner for key, inner in schema.pop("$defs", {}).items()}
            self.schemas[name] = schema
        return {"$ref": _PLACE.replace("{name}", name)}


def _is_model(kind: Any) -> bool:
    """Whether a type is a model of pydantic's, or says just as it does what it takes."""
    return all(callable(getattr(kind, method, None)) for method in ("model_json_schema", "model_validate_json"))


def _scalars(enumeration: Iterable[Enum]) -> list[Any]:
    values = [member.value for member in enumeration]
    if not all(value is None or isinstance(value, str | int | float) for value in values):
        raise TypeError(f"{enumeration!r} has values that are no texts and no numbers")
    return values


def _made(kind: Any, value: Any) -> Any:
    """Return a JSON value as a type that msgspec does not know."""
    if issubclass(kind, _Members):
        return kind.enumeration(value)
    return kind.model_validate_json(json.dumps(value)) if _is_model(kind) else kind(value)


def _plain(value: Any) -> Any:
    """Return a value that msgspec does not know as one that it does."""
    if isinstance(value, PurePath):
        return str(value)
    if _is_model(type(value)):
        return value.model_dump(mode="json")
    raise TypeError(f"{value!r} is no JSON")
