"""Tools in the shapes of others: schemas for OpenAI, Anthropic and Gemini, narrower names, lists from MCP servers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple, get_args

from callmark.dialects.values import as_json
from callmark.errors import ToolError, ToolsError, check_flags
from callmark.tools.context import Invocation
from callmark.tools.tool import NAME_LIMIT, Tool
from callmark.toolshapes import field, pointed, type_of

Host = Literal["openai", "openai-responses", "anthropic", "gemini"]

ALIAS_LIMIT: Final = 64  # characters: what the narrowest host takes
_NARROW = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST: Final = 8  # hexadecimal digits that tell names apart which look alike once they are narrowed
_REFERENCES_LIMIT: Final = 1000  # that are written out; where each has two more, 30 would make a gigabyte

# What Gemini's Schema has, and what it calls differently; the rest it refuses.
_GEMINI_KEYS: Final = {
    "description", "format", "title", "default", "maxItems", "minItems", "required", "minProperties", "maxProperties",
    "minLength", "maxLength", "pattern", "example", "minimum", "maximum",
}  # fmt: skip


class Aliases:
    """Names for a host with narrower rules (letters, digits, `_` and `-`, at most 64), and the way back.

    >>> aliases = Aliases(["look", "eyes:look"])
    >>> aliases.alias("eyes:look")
    'eyes_look_aee5bd55'
    >>> aliases.name(aliases.alias("eyes:look"))
    'eyes:look'

    A name that fits is its own alias; any other ends in a digest of itself, so it does not depend on the other names
    unless one of them is made to look like it.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._aliases: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for name in sorted(dict.fromkeys(names), key=lambda name: (_narrowed(name) != name, name)):
            alias = _narrowed(name)
            while alias in self._names:
                alias = _digested(alias)
            self._aliases[name] = alias
            self._names[alias] = name

    def alias(self, name: str) -> str:
        """Return what the host calls a tool. Raises ToolsError for a name that was not given."""
        if name not in self._aliases:
            raise ToolsError(f"aliases: expected one of the given names, found {name!r}")
        return self._aliases[name]

    def __contains__(self, name: object) -> bool:
        return name in self._aliases

    def name(self, alias: str) -> str:
        """Return the name behind an alias; what is no alias is returned as it is, for the registry to judge."""
        return self._names.get(alias, alias)


def _narrowed(name: str) -> str:
    return name if len(name) <= ALIAS_LIMIT and not _NARROW.search(name) else _digested(name)


def _digested(name: str) -> str:
    digest = sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{_NARROW.sub('_', name)[: ALIAS_LIMIT - _DIGEST - 1]}_{digest}"


class Native(NamedTuple):
    """Tools as a host takes them: the list for its request, and the names behind its calls."""

    tools: list[dict[str, Any]]
    aliases: Aliases


def native(tools: Iterable[Tool], host: Host) -> Native:
    """Return `tools` in the shape of a host's API.

    "openai" is the chat API, which most servers copy. Gemini has a dialect of JSON Schema of its own: types in
    capitals, `nullable`, no references. What it does not have is left out; callmark checks arguments in full anyway.
    """
    if host not in get_args(Host):
        raise ToolsError(f"host: expected one of {', '.join(get_args(Host))}, found {host!r}")
    chosen = tuple(tools)
    aliases = Aliases(each.qualified_name for each in chosen)
    return Native(_shaped([(aliases.alias(each.qualified_name), each) for each in chosen], host), aliases)


def _shaped(tools: list[tuple[str, Tool]], host: Host) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for alias, each in tools:
        base: dict[str, Any] = {"name": alias, "description": each.description}
        schema = {key: value for key, value in each.parameters.items() if key != "$schema"}
        schema.setdefault("type", "object")
        schema.setdefault("properties", {})
        match host:
            case "openai":
                made.append({"type": "function", "function": {**base, "parameters": schema}})
            case "openai-responses":
                made.append({"type": "function", **base, "parameters": schema})
            case "anthropic":
                made.append({**base, "input_schema": schema})
            case _:
                with_parameters = {"parameters": gemini_schema(schema)} if schema["properties"] else {}
                made.append({**base, **with_parameters})
    return [{"functionDeclarations": made}] if host == "gemini" and made else made


def gemini_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema in Gemini's dialect. What refers to itself becomes an object of anything in its turn."""
    return _gemini(schema, schema, (), iter(range(_REFERENCES_LIMIT)))


def _gemini(schema: Any, root: Mapping[str, Any], seen: tuple[str, ...], room: Iterator[int]) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = None if reference in seen or next(room, None) is None else pointed(reference, root)
        if not isinstance(target, Mapping):
            return {"type": "OBJECT"}
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _gemini({**target, **beside}, root, (*seen, reference), room)
    made = {key: value for key, value in schema.items() if key in _GEMINI_KEYS}
    types = schema.get("type")
    listed = [types] if isinstance(types, str) else list(types or ())
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    members = [schema["const"]] if "const" in schema else schema.get("enum")
    if "null" in listed or {"type": "null"} in branches or schema.get("nullable") is True:
        made["nullable"] = True
    listed = [name for name in listed if name != "null"]
    branches = [branch for branch in branches if branch != {"type": "null"}]
    values = [] if members is None else [member for member in members if member is not None]
    if members is not None and not listed:
        listed = sorted(set(map(type_of, values)))
    if members is not None and listed == ["string"]:
        made["type"] = "STRING"
        made["enum"] = values  # of texts only: what is written as a text comes back as one
    elif len(listed) == 1:
        made["type"] = listed[0].upper()
    elif listed:
        made["anyOf"] = [{"type": name.upper()} for name in listed]
    if len(branches) == 1:
        made = {**_gemini(branches[0], root, seen, room), **made}
    elif branches:
        made["anyOf"] = [_gemini(branch, root, seen, room) for branch in branches]
    if "properties" in schema:
        made["properties"] = {key: _gemini(value, root, seen, room) for key, value in schema["properties"].items()}
    if isinstance(schema.get("items"), Mapping):
        made["items"] = _gemini(schema["items"], root, seen, room)
    return made


# From MCP.

McpCall = Callable[[str, dict[str, Any]], Any]


def tools_from_mcp(listing: Any, call: McpCall, *, owner: str = "", trust_hints: bool = False) -> tuple[Tool, ...]:
    """Return the tools of an MCP server's `tools/list`, for `Registry.register`.

    `listing` is the result, or its list of tools, as mappings or as an MCP client's objects. `call(name, arguments)`
    does a `tools/call`, sync or async; its result becomes text or structured content, one with `isError` a ToolError.
    Of fastmcp's client give `call_tool_mcp`: `call_tool` raises an error of its own, whose words reach no model.
    Tools run in the caller's event loop, to which a client belongs; what is not `async def` is called in a thread. A
    server's hints are no promises, so every tool is one that writes, unless `trust_hints`. Names that no marker can
    carry are narrowed. Turning pages is left to the caller.
    """
    check_flags(trust_hints=trust_hints)
    found = field(listing, "tools")
    made = []
    source = listing if found is None else found
    if not isinstance(source, Iterable):
        raise ToolsError(f"tools from MCP: expected a result of tools/list, found {type(source).__name__}")
    remotes = list(source)
    taken = {name for name in (field(each, "name") for each in remotes) if isinstance(name, str)}
    for each in remotes:
        remote = field(each, "name")
        if not isinstance(remote, str):
            raise ToolsError(f"tools from MCP: expected tools with a name, found {type(remote).__name__}")
        hints = field(each, "annotations")
        read_only = trust_hints and field(hints, "readOnlyHint", "read_only_hint") is True
        made.append(
            Tool(
                name=_writable(remote, taken, NAME_LIMIT - (len(owner) + 1 if owner else 0)),
                function=_McpBody(call, remote),
                description=field(each, "description") or "",
                parameters=field(each, "inputSchema", "input_schema") or {"type": "object", "properties": {}},
                display_name=field(each, "title") or field(hints, "title") or "",
                mode="read" if read_only else "write",
                runs_in="loop",
                owner=owner,
                metadata={"mcp_name": remote},
            )
        )
    return tuple(made)


def _writable(name: str, taken: set[str], room: int) -> str:
    """Return a name that a marker can carry, and no other tool of the list has."""
    plain = re.sub(r"[^\w./-]", "_", name)
    plain = plain if plain and not plain[0].isdigit() and plain[0] not in "./-" else f"_{plain}"
    if len(plain) > room or (plain != name and plain in taken):
        plain = f"{plain[: room - _DIGEST - 1]}_{sha256(name.encode()).hexdigest()[:_DIGEST]}"
    taken.add(plain)
    return plain


class _McpBody:
    def __init__(self, call: McpCall, name: str) -> None:
        self.call = call
        self.name = name
        begins = call if inspect.isroutine(call) else type(call).__call__
        self.blocks = not inspect.iscoroutinefunction(begins)  # maybe: an executor calls it in a thread

    def __call__(self, arguments: dict[str, Any], context: Invocation) -> Any:
        value = self.call(self.name, arguments)
        return self._later(value) if hasattr(value, "__await__") else mcp_value(value)

    async def _later(self, value: Any) -> Any:
        return mcp_value(await value)


def mcp_value(result: Any) -> Any:
    """Return what an MCP result says: its structured content, else its parts as text.

    Raises ToolError on `isError`, with the text; where there is none, with the structured content as JSON.
    """
    parts = field(result, "content")
    text = "\n".join(_mcp_part(part) for part in parts or ())
    structured = field(result, "structuredContent", "structured_content")
    if field(result, "isError", "is_error") is True:
        raise ToolError("mcp-error", text if text or structured is None else as_json(structured))
    return text if structured is None else structured


def _mcp_part(part: Any) -> str:
    kind = field(part, "type")
    resource = field(part, "resource")
    text = field(part, "text") if kind == "text" else field(resource, "text")
    if isinstance(text, str):
        return text
    return f"[{kind}: {field(part, 'uri') or field(resource, 'uri') or field(part, 'mimeType', 'mime_type') or ''}]"
