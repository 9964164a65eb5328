"""The functions as JSON: one table, from which stdio, HTTP, WebSocket and both schemas are made.

A method has a name, a type of its parameters, a type of its result, and a function; its docstring is its description.
Those of `anywhere` need nothing but their parameters; the others need a connection, which holds streams and sessions.
What is JSON but not of the type is refused before the function is called; a UsageError that it raises is the client's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

import callmark
from callmark.dialects import dialects
from callmark.dialects.rendering import WrittenCall
from callmark.errors import UsageError
from callmark.events import MALFORMED_CODES, NOTICE_CODES, Event, Malformed, Notice
from callmark.languages import BuiltIn
from callmark.reading.options import ContextPolicy, Limits, Tolerance
from callmark.serving.bounds import DEFAULT_BOUNDS, Bounds
from callmark.serving.streams import Streams
from callmark.serving.texts import Positions, Units

PROTOCOL_VERSION: Final = 1

Context: TypeAlias = Literal["fence", "code", "quote", "reasoning"]
Message: TypeAlias = dict[str, Any]
Tools: TypeAlias = Annotated[
    Any,
    Meta(
        description="The tools: names, a mapping of names to JSON Schemas, or a list in the shape of OpenAI, "
        "Anthropic, MCP or Gemini."
    ),
]
Name: TypeAlias = Annotated[str, Meta(description="The name of a dialect.")]
Nonce: TypeAlias = Annotated[str | None, Meta(description="What every call must carry; the dialect `call` only.")]
ModelText: TypeAlias = Annotated[str, Meta(description="What the model wrote.")]
LanguageName: TypeAlias = Annotated[BuiltIn, Meta(description="In which the model is told.")]
NewName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128, description="A name; null: a new one is made.")]
StreamName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128, description="The name of an open stream.")]


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters, or nothing to tell."""


class _Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters by name."""


class Reading(_Params, frozen=True, kw_only=True):
    """The options of reading, which mean what they mean for `callmark.parse`."""

    dialects: Annotated[
        str | list[str] | None,
        Meta(description="Names of dialects to listen for; null: all whose opener cannot be mistaken for prose."),
    ] = None
    tools: Tools = None
    tolerance: Tolerance = "lenient"
    contexts: Annotated[
        dict[Context, ContextPolicy] | None,
        Meta(description="What to do with markers in fences, code, quotes and reasoning; null: they stay text."),
    ] = None
    starts_in_reasoning: Annotated[bool, Meta(description="Whether the prompt has opened the reasoning.")] = False
    nonce: Nonce = None
    limits: Limits | None = None
    positions: Annotated[
        Positions | None,
        Meta(description="What spans count; null: as `initialize` was told, at first code points."),
    ] = None

    def options(self) -> dict[str, Any]:
        """Return what `callmark.parse` takes."""
        return {
            "dialects": self.dialects,
            "tools": self.tools,
            "tolerance": self.tolerance,
            "contexts": self.contexts,
            "starts_in_reasoning": self.starts_in_reasoning,
            "nonce": self.nonce,
            "limits": self.limits,
        }


class Events(msgspec.Struct, frozen=True):
    """What was read, in order. Only an event of the type `call` may be run."""

    events: list[Event]


class Written(msgspec.Struct, frozen=True):
    """A text that was made."""

    text: str


class Messages(msgspec.Struct, frozen=True):
    """Messages of a conversation, with `role` and `content`."""

    messages: list[Message]


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
    """One row of the table. `anywhere`: needs nothing but its parameters; `later`: its function gives a Future."""

    name: str
    params: type[msgspec.Struct]
    result: Any
    function: Callable[[State, Any], Any]
    anywhere: bool
    later: bool

    @property
    def description(self) -> str:
        """What it does."""
        return (self.function.__doc__ or "").strip()


METHODS: Final[dict[str, Method]] = {}

_Function: TypeAlias = Callable[[State, Any], Any]


def method(
    name: str, params: type[msgspec.Struct], result: Any, *, anywhere: bool = False, later: bool = False
) -> Callable[[_Function], _Function]:
    """Put a function into the table."""

    def add(function: _Function) -> _Function:
        METHODS[name] = Method(name, params, result, function, anywhere, later)
        return function

    return add


# Reading.


class Parse(Reading, frozen=True, kw_only=True):
    """A whole text, and how it is read."""

    text: ModelText


@method("parse", Parse, Events, anywhere=True)
def parse(state: State, params: Parse) -> Events:
    """Read a whole text and return its events. Whatever a model wrote is read; none of it is an error."""
    events = list(callmark.parse(params.text, **params.options()).events)
    if (params.positions or state.positions) == "utf-16":
        units = Units()
        units.see(params.text)
        events = units.events(events)
    return Events(events)


class Detect(_Params, frozen=True, kw_only=True):
    """A text."""

    text: ModelText


class Detected(msgspec.Struct, frozen=True):
    """Names of dialects, those with most calls first."""

    dialects: list[str]


@method("detect", Detect, Detected, anywhere=True)
def detect(state: State, params: Detect) -> Detected:
    """Return the names of the dialects whose markers stand in a text."""
    return Detected(list(callmark.detect(params.text)))


class DialectRow(msgspec.Struct, frozen=True):
    """A dialect. `explicit`: listened for where no dialects are named."""

    name: str
    title: str
    models: str
    source: str
    explicit: bool


class Dialects(msgspec.Struct, frozen=True):
    """The dialects there are."""

    dialects: list[DialectRow]


@method("dialects", Nothing, Dialects, anywhere=True)
def list_dialects(state: State, params: Nothing) -> Dialects:
    """Return the dialects there are."""
    return Dialects([DialectRow(row.name, row.title, row.models, row.source, row.explicit) for row in dialects()])


class Feedback(_Params, frozen=True, kw_only=True):
    """What went wrong, as reading told it."""

    problem: Malformed | Notice
    dialect: Annotated[str | None, Meta(description="The one that the model shall write; null: the problem's.")] = None
    language: LanguageName = "en"
    nonce: Nonce = None


@method("feedback", Feedback, Written, anywhere=True)
def feedback(state: State, params: Feedback) -> Written:
    """Return what to tell the model about a problem: what was wrong, the correct form, what to do."""
    problem = params.problem
    known: Mapping[str, str] = MALFORMED_CODES if isinstance(problem, Malformed) else NOTICE_CODES
    if problem.code not in known:
        raise UsageError(f"problem.code: expected one of {', '.join(known)}, found {problem.code!r:.80}")
    return Written(callmark.feedback(problem, params.dialect, params.language, nonce=params.nonce))


class Convert(_Params, frozen=True, kw_only=True):
    """A text, and the dialect that its calls shall be written in."""

    text: ModelText
    to: Name
    dialects: str | list[str] | None = None
    tools: Tools = None
    contexts: dict[Context, ContextPolicy] | None = None


@method("convert", Convert, Written, anywhere=True)
def convert(state: State, params: Convert) -> Written:
    """Return a text with its calls in another dialect; all else stays where it is."""
    options: dict[str, Any] = {"dialects": params.dialects, "tools": params.tools, "contexts": params.contexts}
    return Written(callmark.convert(params.text, params.to, **options))


# Writing.


class Prompt(_Params, frozen=True, kw_only=True):
    """The tools, how they are taught, and perhaps the messages that the prompt goes into."""

    tools: Tools
    dialect: Name = "call"
    style: Literal["signature", "table", "schema", "brief", "compact"] = "signature"
    tool_choice: Annotated[str, Meta(description="auto, none, required, or the name of a tool.")] = "auto"
    parallel: bool = True
    language: LanguageName = "en"
    nonce: Nonce = None
    reasoning: bool = False
    examples: Literal["turns", "inline", "none"] = "turns"
    budget: Annotated[int | None, Meta(description="Most tokens; a shorter style is taken if it is too long.")] = None
    template: str | None = None
    messages: list[Message] | None = None
    where: Literal["system", "merged", "user", "depth", "both"] = "system"
    depth: Annotated[int, Meta(ge=0)] = 4


class Taught(msgspec.Struct, frozen=True):
    """A prompt. `text` is for the system message, `turns` are example messages behind it, `reminder` is for the end of
    a long chat, `tokens` is an estimate. `messages` are those that were given, with the prompt in them.
    """

    text: str
    turns: list[dict[str, str]]
    reminder: str
    style: str
    tokens: int
    messages: list[Message] | UnsetType = UNSET


@method("prompt", Prompt, Taught, anywhere=True)
def prompt(state: State, params: Prompt) -> Taught:
    """Return the prompt that teaches a model how to call the tools."""
    made = callmark.protocol_prompt(
        params.tools,
        params.dialect,
        style=params.style,
        tool_choice=params.tool_choice,
        parallel=params.parallel,
        language=params.language,
        nonce=params.nonce,
        reasoning=params.reasoning,
        examples=params.examples,
        budget=params.budget,
        template=params.template,
    )
    messages: list[Message] | UnsetType = UNSET
    if params.messages is not None:
        messages = callmark.merge_into_messages(params.messages, made, params.where, depth=params.depth)
    return Taught(made.text, list(made.turns), made.reminder, made.style, made.tokens, messages)


class CallToWrite(_Params, frozen=True, kw_only=True):
    """A call to be written."""

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    id: str | None = None


class Render(_Params, frozen=True, kw_only=True):
    """Calls of one message."""

    calls: list[CallToWrite]
    dialect: Name = "call"
    nonce: Nonce = None
    tools: Tools = None


@method("render", Render, Written, anywhere=True)
def render(state: State, params: Render) -> Written:
    """Return calls as the text of a dialect, which `parse` reads as these calls."""
    calls = [WrittenCall(call.name, call.arguments, call.id) for call in params.calls]
    return Written(callmark.render_calls(calls, params.dialect, nonce=params.nonce, tools=params.tools))


class ResultToWrite(_Params, frozen=True, kw_only=True):
    """What a call came to: text, or a JSON value."""

    name: str
    content: Any
    id: str | None = None
    language: LanguageName = "en"


@method("result", ResultToWrite, Written, anywhere=True)
def result(state: State, params: ResultToWrite) -> Written:
    """Return the result of a call as text for a message of the user's role, neutralized."""
    return Written(callmark.render_result(params.name, params.content, id=params.id, language=params.language))


class History(_Params, frozen=True, kw_only=True):
    """A conversation with native calls and tool messages."""

    messages: list[Message]
    dialect: Name = "call"
    nonce: Nonce = None
    tools: Tools = None
    language: LanguageName = "en"
    merge_roles: bool = False


@method("history", History, Messages, anywhere=True)
def history(state: State, params: History) -> Messages:
    """Return a conversation with its native calls and results as text."""
    return Messages(
        callmark.render_history(
            params.messages,
            params.dialect,
            nonce=params.nonce,
            tools=params.tools,
            language=params.language,
            merge_roles=params.merge_roles,
        )
    )


class Restore(_Params, frozen=True, kw_only=True):
    """A conversation in which calls and results are text."""

    messages: list[Message]
    dialect: Name = "call"
    nonce: Nonce = None
    tools: Tools = None
    language: LanguageName = "en"


@method("restore", Restore, Messages, anywhere=True)
def restore(state: State, params: Restore) -> Messages:
    """Return a conversation in text with native calls and tool messages: what `history` wrote, back again."""
    return Messages(
        callmark.restore_history(
            params.messages, params.dialect, nonce=params.nonce, tools=params.tools, language=params.language
        )
    )


class Neutralize(_Params, frozen=True, kw_only=True):
    """A text that somebody else wrote."""

    text: str
    special_tokens: Annotated[bool, Meta(description="Whether tokens of chat templates are broken too.")] = False


@method("neutralize", Neutralize, Written, anywhere=True)
def neutralize(state: State, params: Neutralize) -> Written:
    """Return a text such that no call is read in it, in any dialect, alone or joined with other texts."""
    return Written(callmark.neutralize(params.text, special_tokens=params.special_tokens))


class Grammar(_Params, frozen=True, kw_only=True):
    """The tools, and the engine that shall be constrained."""

    tools: Tools
    dialect: Name = "call"
    target: Literal["llguidance", "gbnf", "xgrammar", "structural-tag", "regex"] = "llguidance"
    free_text: bool = True
    tool_choice: Annotated[str, Meta(description="auto, none, required, or the name of a tool.")] = "auto"
    parallel: bool = True
    nonce: Nonce = None


class GrammarText(msgspec.Struct, frozen=True):
    """A grammar, and the constraints that it does not hold arguments to."""

    text: str
    unenforced: list[str]


@method("grammar", Grammar, GrammarText, anywhere=True)
def grammar(state: State, params: Grammar) -> GrammarText:
    """Return a grammar of messages that may call the tools, for an engine that constrains a model."""
    made = callmark.export_grammar(
        params.tools,
        params.dialect,
        params.target,
        free_text=params.free_text,
        tool_choice=params.tool_choice,
        parallel=params.parallel,
        nonce=params.nonce,
    )
    return GrammarText(made.text, list(made.unenforced))


# A connection, and its streams.


class Initialize(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may say of itself; other keys are passed over."""

    positions: Annotated[Positions, Meta(description="What spans count from now on, where nothing else is said.")] = (
        "code-points"
    )


class Versions(msgspec.Struct, frozen=True):
    """`callmark` is the version of the program; `protocol` grows where a client would have to be changed."""

    callmark: str
    protocol: int


class Initialized(msgspec.Struct, frozen=True):
    """What the server is and can."""

    versions: Versions
    positions: Positions
    dialects: list[DialectRow]
    methods: list[str]
    bounds: Bounds


@method("initialize", Initialize, Initialized)
def initialize(state: State, params: Initialize) -> Initialized:
    """Say how positions are counted; return versions, dialects, methods and bounds. Nothing requires this call."""
    state.positions = params.positions
    return Initialized(
        Versions(callmark.__version__, PROTOCOL_VERSION),
        state.positions,
        list_dialects(state, Nothing()).dialects,
        list(METHODS),
        state.bounds,
    )


class StreamOpen(Reading, frozen=True, kw_only=True):
    """How the text of a stream is read."""

    stream: NewName | None = None


class StreamOpened(msgspec.Struct, frozen=True):
    """The stream's name."""

    stream: str


@method("stream/open", StreamOpen, StreamOpened)
def stream_open(state: State, params: StreamOpen) -> StreamOpened:
    """Open a stream for one text that comes in pieces. Many may be open at once."""
    positions = params.positions or state.positions
    return StreamOpened(state.streams.open(params.stream, params.options(), positions))


class StreamText(_Params, frozen=True, kw_only=True):
    """A piece of a text."""

    stream: StreamName
    text: ModelText


@method("stream/feed", StreamText, Events)
def stream_feed(state: State, params: StreamText) -> Events:
    """Read the next chunk and return what is certain by now. Chunks may be cut anywhere, inside an emoji too."""
    return Events(list(state.streams.get(params.stream).feed(params.text)))


@method("stream/snapshot", StreamText, Events)
def stream_snapshot(state: State, params: StreamText) -> Events:
    """Read all of the text that there is so far, which may replace what was there, and return the new events."""
    return Events(list(state.streams.get(params.stream).snapshot(params.text)))


class StreamClose(_Params, frozen=True, kw_only=True):
    """A stream."""

    stream: StreamName


@method("stream/close", StreamClose, Events)
def stream_close(state: State, params: StreamClose) -> Events:
    """Say that the text is over, and return its last events. The stream's name is free again."""
    return Events(list(state.streams.close(params.stream)))
