"""The table of methods, from which stdio, HTTP, WebSocket and both schemas are made, and the words that they share.

A method has a name, a type of its parameters, a type of its result, and a function; its docstring is its description.
Those of `anywhere` need nothing but their parameters; the others need a connection, which holds streams and sessions.
What is JSON but not of the type is refused before the function is called; a UsageError that it raises is the client's.
Rows are put in by the modules that hold the functions: `functions`, `connection`, `sessions` and `schema`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from callmark.languages import BuiltIn
from callmark.reading.options import ContextPolicy
from callmark.serving.bounds import DEFAULT_BOUNDS, Bounds
from callmark.serving.streams import Streams
from callmark.serving.texts import Positions

Message: TypeAlias = Annotated[
    dict[str, Any],
    Meta(description="Of OpenAI's chat API: `role`, `content` and so on.", extra_json_schema={"required": ["role"]}),
]
Tools: TypeAlias = Annotated[
    Any,
    Meta(
        description="The tools: names, a mapping of names to JSON Schemas, or a list in the shape of OpenAI, "
        "Anthropic, MCP or Gemini."
    ),
]
Name: TypeAlias = Annotated[str, Meta(description="The name of a dialect.")]
Nonce: TypeAlias = Annotated[str | None, Meta(description="What every call must carry; only in `call`.")]
ModelText: TypeAlias = Annotated[str, Meta(description="What the model wrote.")]
LanguageName: TypeAlias = Annotated[BuiltIn, Meta(description="In which the model is told.")]
ToolChoice: TypeAlias = Annotated[str, Meta(description="auto, none, required, or the name of a tool.")]
NewName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128, description="A name; null: a new one is made.")]


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters, or nothing to tell."""


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters by name."""


class Contexts(Params, frozen=True, kw_only=True):
    """What markers in fences, code, block quotes and reasoning are: text, or read like any other.

    fence       in code fences; "sole" reads one that holds nothing but the call
    code        in code: inline, or of HTML
    quote       in block quotes
    reasoning   in thinking
    """

    fence: ContextPolicy = "text"
    code: Literal["text", "allow"] = "text"
    quote: Literal["text", "allow"] = "text"
    reasoning: Literal["text", "allow"] = "text"


def fields(params: msgspec.Struct, *left_out: str) -> dict[str, Any]:
    """Return parameters as the keyword arguments of a function of callmark, but for some of them."""
    named = msgspec.structs.asdict(params)
    contexts = named.get("contexts")
    if contexts is not None:
        named["contexts"] = msgspec.structs.asdict(contexts)
    return {key: value for key, value in named.items() if key not in left_out}


class State:
    """What a client has: how its positions count, its streams, and the host of its sessions, once there is one.

    `connection` is the way to ask the client; the functions of `anywhere` need none.
    """

    def __init__(self, bounds: Bounds = DEFAULT_BOUNDS, connection: Any = None) -> None:
        self.bounds = bounds
        self.positions: Positions = "code-points"
        self.streams = Streams(bounds)
        self.connection = connection
        self.host: Any = None


class Method(NamedTuple):
    """One row of the table.

    anywhere      needs nothing but its parameters
    later         its function gives a Future
    neutralizes   its function makes content harmless, which has to be prepared for in a loop (`prepared`)
    slow          its function takes long for little: others are answered meanwhile
    """

    name: str
    params: type[msgspec.Struct]
    result: Any
    function: Callable[[State, Any], Any]
    anywhere: bool
    later: bool
    neutralizes: bool
    slow: bool

    @property
    def description(self) -> str:
        """What it does."""
        return (self.function.__doc__ or "").strip()


METHODS: Final[dict[str, Method]] = {}

_Function: TypeAlias = Callable[[State, Any], Any]


def method(
    name: str,
    params: type[msgspec.Struct],
    result: Any,
    *,
    anywhere: bool = False,
    later: bool = False,
    neutralizes: bool = False,
    slow: bool = False,
) -> Callable[[_Function], _Function]:
    """Put a function into the table."""

    def add(function: _Function) -> _Function:
        METHODS[name] = Method(name, params, result, function, anywhere, later, neutralizes, slow)
        return function

    return add
