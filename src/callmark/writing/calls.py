"""Writes calls as the text of a dialect: the inverse of reading (law 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from callmark.dialects import Dialect, selected
from callmark.dialects.rendering import WrittenCall, written
from callmark.dialects.values import Declared
from callmark.errors import UsageError
from callmark.toolshapes import declared_types, members_of
from callmark.writing.toolset import tool_specs


def render_call(
    name: str,
    arguments: Mapping[str, Any],
    dialect: str | Dialect = "call",
    *,
    id: str | None = None,  # noqa: A002  # the field of Call
    nonce: str | None = None,
    tools: Any = None,
) -> str:
    """Return one call as the text of a dialect, which `parse(..., dialects=dialect)` reads as that very call.

    >>> render_call("get_weather", {"city": "Oslo"})
    '[CALL: get_weather({"city": "Oslo"})]'
    >>> render_call("get_weather", {"city": "Oslo"}, "pythonic")
    '<|tool_call_start|>[get_weather(city="Oslo")]<|tool_call_end|>'

    arguments   a JSON object; tuples count as lists
    id          is written where the dialect has a place for it that can hold it, and left out elsewhere
    nonce       marks the call as wanted, in `call` and in dialects of one's own with a place for it (`Writing.nonce`)
    tools       in any usual shape: dialects without quotes are read by the types of a tool's schema, so hand over here
                what `parse` gets

    Raises UsageError where the dialect cannot express the call, before anything is written: a name that would be read
    as another one, a raw value that holds its own closer, a number that is not finite, half of a surrogate pair.
    """
    return render_calls([WrittenCall(name, arguments, id)], dialect, nonce=nonce, tools=tools)


def render_calls(
    calls: Iterable[WrittenCall], dialect: str | Dialect = "call", *, nonce: str | None = None, tools: Any = None
) -> str:
    """Return several calls of one message as the text of a dialect; see `render_call`. No calls give no text."""
    return written(calls, selected(dialect), nonce, declared_by(tools))


def render_placed(
    calls: Iterable[tuple[str, Any]], dialect: str | Dialect, *, nonce: str | None = None, tools: Any = None
) -> str:
    """Do as `render_calls` does with calls that come with words for their place, with which its error begins then."""
    place = ""

    def each() -> Iterator[Any]:
        nonlocal place
        for at, call in calls:
            place = at
            yield call

    try:
        return render_calls(each(), dialect, nonce=nonce, tools=tools)
    except UsageError as error:
        raise UsageError(f"{place}{error}") from error


def declared_by(tools: Any) -> Callable[[str], Declared]:
    """Return what says of a tool's name which types its schema declares, for `written`."""
    schemas = {spec.name: spec.schema for spec in tool_specs(tools)} if tools is not None else {}

    def declared(name: str) -> Declared:
        schema = schemas.get(name, {})
        members = members_of(schema, schema)
        properties = members.get("properties", {})
        return lambda key: declared_types(properties.get(key, members.get("additionalProperties")), schema)

    return declared
