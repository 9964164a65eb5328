"""The methods of sessions: conversations whose model and tools live in the client.

A session here is `callmark.Session`. It asks the client for what it needs, by requests of its own:

    model/generate   what does the model write to these messages? Chunks come as notifications `model/chunk`
    tool/invoke      run a tool: bare name, arguments, context, and the seconds until it is given up
    tool/approve     may this call of a tool that writes be run? Only `true` is a yes

and tells it what happens by notifications `session/event`, and `model/cancel` or `tool/cancel` where nobody waits for
an answer any more. An answer that comes too late is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from callmark.events import Event
from callmark.reading.options import Limits, Tolerance
from callmark.serving.methods import (
    Contexts,
    LanguageName,
    Message,
    Name,
    NewName,
    Nonce,
    Nothing,
    Params,
    State,
    ToolChoice,
    method,
)
from callmark.tools.results import Result
from callmark.writing.messages import Place
from callmark.writing.prompt import Examples
from callmark.writing.signatures import Style

if TYPE_CHECKING:
    from concurrent.futures import Future

    from callmark.running.session import SessionStats
    from callmark.serving.hosting import Host, Hosted

SessionName = Annotated[str, Meta(min_length=1, max_length=128, description="The name of an open session.")]


# What a client is asked.


class Generate(msgspec.Struct, frozen=True):
    """Asks for what the model writes to these messages.

    session    the name of the session
    messages   with `role` and `content`, the prompt that teaches the tools included
    """

    session: str
    messages: list[dict[str, Any]]


class Generated(msgspec.Struct, frozen=True):
    """The end of what the model wrote: all of it, or what the chunks did not bring."""

    text: str = ""


class Invoked(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool is told beside its arguments.

    session           the name of the session
    request_id        of the turn: all its calls have the same
    idempotency_key   the same for every attempt at the same call
    caller            what the client gave with the session
    """

    session: str
    request_id: str
    idempotency_key: str
    caller: dict[str, Any]


class Invoke(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for a tool's result: any JSON value, or an error.

    An error with a `data.code` is meant for the model, its message and `data.hint` too; of any other one the model is
    told that there was one, and it counts as a failure of the tool.

    arguments   valid by the tool's schema
    """

    name: Annotated[str, Meta(description="The tool's bare name.")]
    tool: Annotated[str, Meta(description="Its name with its owner, if it has one.")]
    arguments: dict[str, Any]
    context: Invoked
    deadline_seconds: Annotated[float, Meta(description="How long from now until the call is given up.")]


class Approve(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for consent to a call: `true` or anything else.

    session     the name of the session
    name        the tool's bare name
    tool        its name with its owner, if it has one
    arguments   valid by the tool's schema
    """

    session: str
    name: str
    tool: str
    arguments: dict[str, Any]


class Cancelled(msgspec.Struct, frozen=True):
    """Says that nobody waits for the answer to a request any more.

    id   of that request
    """

    id: str


class Step(msgspec.Struct, frozen=True, tag_field="type", tag="step"):
    """Something that a session does on its own; `text` is what it says to the model, the answer, or why it was cut."""

    kind: Literal["generation", "continuation", "cut", "results", "retry", "no-tools", "cancelled", "answer"]
    text: str = ""


class Happened(msgspec.Struct, frozen=True):
    """What happens in a session.

    session   the name of the session
    event     what was read in the model's text, the result of a call, or a step of the session
    """

    session: str
    event: Event | Result | Step


class Asking(msgspec.Struct, frozen=True):
    """A message to the client. `result` is the type of its answer; None: it is a notification."""

    params: Any
    result: Any = None


ASKED: Final[dict[str, Asking]] = {
    "model/generate": Asking(Generate, Generated),
    "model/cancel": Asking(Cancelled),
    "tool/invoke": Asking(Invoke, Any),
    "tool/cancel": Asking(Cancelled),
    "tool/approve": Asking(Approve, bool),
    "session/event": Asking(Happened),
}
"""Every message that a server sends on its own."""


# What a client asks.


class ClientTool(Params, frozen=True, kw_only=True):
    """A tool that lives in the client.

    name              as the model calls it
    description       what the model is told of it
    mode              "read": changes nothing; "write": may do so, and needs consent (`tool/approve`)
    approval          whether it needs consent; null: where the mode is "write"
    timeout_seconds   after which a call is given up; null: as the session has it
    polling           to ask again and again is its purpose: repetition is no loop
    stealth           its result is no reason to let the model go on
    owner             the extension that it belongs to; "": none
    """

    name: str
    description: str = ""
    parameters: Annotated[dict[str, Any], Meta(description="The JSON Schema of its arguments, an object's.")] = (
        msgspec.field(default_factory=dict)
    )
    mode: Literal["read", "write"] = "write"
    approval: bool | None = None
    timeout_seconds: Annotated[float, Meta(gt=0)] | None = None
    polling: bool = False
    stealth: bool = False
    owner: str = ""


class SessionReading(Params, frozen=True, kw_only=True):
    """The options of reading that a session leaves open, as `parse` has them; null: as a session has them.

    dialects, tolerance, contexts, starts_in_reasoning, limits   as `parse` has it
    """

    dialects: str | list[str] | None = None
    tolerance: Tolerance | None = None
    contexts: Contexts | None = None
    starts_in_reasoning: bool | None = None
    limits: Limits | None = None


class SessionPrompt(Params, frozen=True, kw_only=True):
    """The options of the prompt that a session leaves open, as `prompt` has them; null: as a session has them.

    style, examples, reasoning, budget, template   as `prompt` has it
    """

    style: Style | None = None
    examples: Examples | None = None
    reasoning: bool | None = None
    budget: int | None = None
    template: str | None = None


class SessionSettings(Params, frozen=True, kw_only=True):
    """How the connection to a model is used that writes text.

    tools           off: none are offered, and what the model calls is not run
    only            names of the tools to offer; null: all
    parallel        off: a message ends with its first call
    retries         how often, in one turn, the model is told what was wrong and asked again
    continuations   how often, in one message, it is asked to go on where it was cut off inside a call
    result_role     the role in which results are told
    where           the place of the prompt among the messages, as `prompt` has it
    """

    tools: bool = True
    only: list[str] | None = None
    tool_choice: ToolChoice = "auto"
    parallel: bool = True
    retries: Annotated[int, Meta(ge=0)] = 2
    continuations: Annotated[int, Meta(ge=0)] = 2
    result_role: Literal["user", "tool"] = "user"
    dialect: Name = "call"
    language: LanguageName = "en"
    nonce: Nonce = None
    where: Place = "merged"
    prompt: SessionPrompt = SessionPrompt()
    reading: SessionReading = SessionReading()


class Guard(Params, frozen=True, kw_only=True):
    """The limits of the loop guard, which says no to a model that calls without end.

    calls, seconds   so many calls in so many seconds
    rounds           messages with calls in a turn
    turn_calls       calls in a turn
    repeats          how often the same call, or the same cycle of calls, may come without a new result
    """

    calls: Annotated[int, Meta(ge=1)] = 5
    seconds: Annotated[float, Meta(gt=0)] = 30.0
    rounds: Annotated[int, Meta(ge=1)] = 8
    turn_calls: Annotated[int, Meta(ge=1)] = 16
    repeats: Annotated[int, Meta(ge=1)] = 3


class SessionOpen(Params, frozen=True, kw_only=True):
    """A conversation: its tools, what was said before, and how it is held.

    tools      that the model may call
    system     what the system message says, before the tools are taught
    messages   what was said before
    """

    session: NewName | None = None
    tools: list[ClientTool] = msgspec.field(default_factory=list)
    system: str = ""
    messages: list[Message] = msgspec.field(default_factory=list)
    settings: SessionSettings = SessionSettings()
    guard: Guard = Guard()
    timeout_seconds: Annotated[float, Meta(gt=0, description="For tools that have no limit of their own.")] = 30.0
    model_timeout_seconds: Annotated[float, Meta(gt=0, description="For the model's next chunk.")] = 600.0
    error_text: Annotated[bool, Meta(description="Whether the model is told the message of every error.")] = False
    events: Annotated[bool, Meta(description="Whether `session/event` is sent.")] = True
    caller: Annotated[dict[str, Any], Meta(description="Handed back with each call: fields of the client's own.")] = (
        msgspec.field(default_factory=dict)
    )


class SessionOpened(msgspec.Struct, frozen=True):
    """The session's name."""

    session: str


@method("session/open", SessionOpen, SessionOpened)
def session_open(state: State, params: SessionOpen) -> SessionOpened:
    """Open a conversation whose model and tools live in the client."""
    return SessionOpened(_host(state).open(params))


def _host(state: State) -> Host:
    """Return the host of a client's sessions, made when the first of them is spoken of."""
    from callmark.serving.hosting import Host  # asyncio, threads and the executor: who only parses wants none

    state.host = state.host or Host(state)
    host: Host = state.host
    return host


def _hosted(state: State, name: str) -> Hosted:
    return _host(state).get(name)


class SessionRun(Params, frozen=True, kw_only=True):
    """A session, and what the user says.

    text   what the user says; null: nothing, the messages are as they should be
    """

    session: SessionName
    text: str | None = None


class Turn(msgspec.Struct, frozen=True):
    """How a turn ended, and what the model answered last."""

    outcome: Literal["answer", "cancelled"]
    answer: str


@method("session/run", SessionRun, Turn, later=True)
def session_run(state: State, params: SessionRun) -> Future[Turn]:
    """Do one turn: ask the model, run what it calls, tell it the results, until it answers. Answered at its end."""
    return _hosted(state, params.session).run(params.text)


class SessionRef(Params, frozen=True, kw_only=True):
    """A session."""

    session: SessionName


@method("session/cancel", SessionRef, Nothing)
def session_cancel(state: State, params: SessionRef) -> Nothing:
    """Cancel the turn that is going on; it ends with the outcome `cancelled`."""
    _hosted(state, params.session).cancel()
    return Nothing()


class SessionState(msgspec.Struct, frozen=True):
    """The messages so far, without prompts, and counts."""

    messages: list[dict[str, Any]]
    stats: dict[str, Any]


@method("session/state", SessionRef, SessionState)
def session_state(state: State, params: SessionRef) -> SessionState:
    """Return the conversation so far and its counts."""
    hosted = _hosted(state, params.session)
    stats: SessionStats = hosted.session.stats
    return SessionState(list(hosted.session.messages), msgspec.to_builtins(stats))


@method("session/close", SessionRef, Nothing)
def session_close(state: State, params: SessionRef) -> Nothing:
    """Close a session, and cancel its turn if there is one. No more events of it are told; its name is free again."""
    _hosted(state, params.session).close()
    return Nothing()


class SessionRegister(Params, frozen=True, kw_only=True):
    """More tools for a session.

    tools             that are added
    allow_overwrite   whether they may replace others of their names; off, such a tool is an error
    """

    session: SessionName
    tools: list[ClientTool]
    allow_overwrite: bool = False


class Registered(msgspec.Struct, frozen=True):
    """The names of all tools of a session, with their owners."""

    tools: list[str]


@method("session/register", SessionRegister, Registered)
def session_register(state: State, params: SessionRegister) -> Registered:
    """Add tools. They are offered from the next time on that the model is asked."""
    hosted = _hosted(state, params.session)
    hosted.register(params.tools, allow_overwrite=params.allow_overwrite)
    return Registered([tool.qualified_name for tool in hosted.registry.list()])


class SessionUnregister(Params, frozen=True, kw_only=True):
    """Tools to be removed.

    tools   their names, with owner; other names are passed over
    """

    session: SessionName
    tools: list[str]


@method("session/unregister", SessionUnregister, Registered)
def session_unregister(state: State, params: SessionUnregister) -> Registered:
    """Remove tools."""
    hosted = _hosted(state, params.session)
    for name in params.tools:
        hosted.registry.unregister(name, force=True)
    return Registered([tool.qualified_name for tool in hosted.registry.list()])


class ModelChunk(Params, frozen=True, kw_only=True):
    """The next piece of what the model writes.

    generation   the id of the request `model/generate`
    text         the piece, which may end inside an emoji
    """

    generation: str
    text: str


@method("model/chunk", ModelChunk, Nothing)
def model_chunk(state: State, params: ModelChunk) -> Nothing:
    """Take the next piece of what the model writes; best sent as a notification."""
    _host(state).chunk(params.generation, params.text)
    return Nothing()
