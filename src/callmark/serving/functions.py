"""The functions of the library as methods, which need nothing but their parameters: whole texts, read and written.

A function gets its parameters under the names that the library has for them, and gives what the library gives.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

import callmark
from callmark.dialects import dialects
from callmark.dialects.rendering import WrittenCall
from callmark.errors import UsageError
from callmark.events import MALFORMED_CODES, NOTICE_CODES, Event, Malformed, Notice
from callmark.reading.options import Limits, Tolerance
from callmark.serving.methods import (
    Contexts,
    LanguageName,
    Message,
    ModelText,
    Name,
    Nonce,
    Nothing,
    Params,
    State,
    ToolChoice,
    Tools,
    fields,
    method,
)
from callmark.serving.texts import Positions, Units
from callmark.writing.export import Target
from callmark.writing.messages import Place
from callmark.writing.prompt import Examples
from callmark.writing.signatures import Style


class Reading(Params, frozen=True, kw_only=True):
    """The options of reading, which mean what they mean for `callmark.parse`."""

    dialects: Annotated[
        str | list[str] | None,
        Meta(
            description="Names of dialects to listen for; null, or `default` among names: all whose opener cannot be "
            "mistaken for prose; a name behind a `-`: these without that one."
        ),
    ] = None
    tools: Tools = None
    tolerance: Annotated[
        Tolerance,
        Meta(
            description="strict: what the dialect's grammar says; lenient: also what has mistakes that leave no doubt, "
            "told as `repairs`; salvage: also calls that lack a part of their markers."
        ),
    ] = "lenient"
    contexts: Contexts | None = None
    starts_in_reasoning: Annotated[bool, Meta(description="Whether the prompt has opened the reasoning.")] = False
    nonce: Nonce = None
    limits: Limits | None = None
    positions: Annotated[
        Positions | None,
        Meta(description="What spans count; null: as `initialize` was told, at first code points."),
    ] = None

    def options(self) -> dict[str, Any]:
        """Return what `callmark.parse` takes."""
        return fields(self, "text", "stream", "positions")


class Events(msgspec.Struct, frozen=True):
    """What was read, in order. Only an event of the type `call` may be run."""

    events: list[Event]


class Written(msgspec.Struct, frozen=True):
    """A text that was made."""

    text: str


class Messages(msgspec.Struct, frozen=True):
    """Messages of a conversation, with `role` and `content`."""

    messages: list[dict[str, Any]]


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


class Detect(Params, frozen=True, kw_only=True):
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


class Feedback(Params, frozen=True, kw_only=True):
    """What went wrong, as reading told it.

    problem   an event of `parse` or of a stream
    """

    problem: Malformed | Notice
    dialect: Annotated[str | None, Meta(description="The one that the model shall write; null: the problem's.")] = None
    language: LanguageName = "en"
    nonce: Nonce = None


@method("feedback", Feedback, Written, anywhere=True)
def feedback(state: State, params: Feedback) -> Written:
    """Return what to tell the model about a problem: what was wrong, the correct form, what to do."""
    problem = params.problem
    known = MALFORMED_CODES if isinstance(problem, Malformed) else NOTICE_CODES
    if problem.code not in known:
        raise UsageError(f"problem.code: expected one of {', '.join(known)}, found {problem.code!r:.80}")
    return Written(callmark.feedback(**fields(params)))


class Convert(Params, frozen=True, kw_only=True):
    """A text, and the dialect that its calls shall be written in.

    dialects   in which calls are read, as `parse` has it
    """

    text: ModelText
    to: Name
    dialects: str | list[str] | None = None
    tools: Tools = None
    contexts: Contexts | None = None


@method("convert", Convert, Written, anywhere=True)
def convert(state: State, params: Convert) -> Written:
    """Return a text with its calls in another dialect; all else stays where it is."""
    return Written(callmark.convert(**fields(params)))


# Writing.


class Offer(Params, frozen=True, kw_only=True):
    """The tools that a model may call, and how.

    parallel   whether several calls may stand in one message
    """

    tools: Tools
    dialect: Name = "call"
    tool_choice: ToolChoice = "auto"
    parallel: bool = True
    nonce: Nonce = None


class Prompt(Offer, frozen=True, kw_only=True):
    """The tools, how they are taught, and perhaps the messages that the prompt goes into.

    parallel    whether several calls may stand in one message
    style       how tools are described, from all of the schema to the least
    reasoning   whether the model is to say first what it needs a call for
    examples    "turns": as messages; "inline": in the text; "none"
    template    a layout of one's own, with the places {title}, {tools}, {how}, {rules} and {examples}; null: ours
    messages    that the prompt is put into; null: none, it is returned alone
    where       "system": a message of its own; "merged": in the last system message; "user": in the last user message;
                "depth": a system message with `depth` messages behind it; "both": "system", and a reminder at the end
    depth       in messages, for "depth"
    """

    style: Style = "signature"
    language: LanguageName = "en"
    reasoning: bool = False
    examples: Examples = "turns"
    budget: Annotated[int | None, Meta(description="Most tokens; a shorter style is taken if it is too long.")] = None
    template: str | None = None
    messages: list[Message] | None = None
    where: Place = "system"
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
    messages: list[dict[str, Any]] | UnsetType = UNSET


@method("prompt", Prompt, Taught, anywhere=True, neutralizes=True)
def prompt(state: State, params: Prompt) -> Taught:
    """Return the prompt that teaches a model how to call the tools."""
    made = callmark.protocol_prompt(**fields(params, "messages", "where", "depth"))
    messages: list[dict[str, Any]] | UnsetType = UNSET
    if params.messages is not None:
        messages = callmark.merge_into_messages(params.messages, made, params.where, depth=params.depth)
    return Taught(made.text, list(made.turns), made.reminder, made.style, made.tokens, messages)


class CallToWrite(Params, frozen=True, kw_only=True):
    """A call to be written.

    name        of the tool
    arguments   as JSON
    id          of the call, for dialects that have one
    """

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    id: str | None = None


class Writing(Params, frozen=True, kw_only=True):
    """The dialect that is written, and for which tools."""

    dialect: Name = "call"
    nonce: Nonce = None
    tools: Tools = None


class Render(Writing, frozen=True, kw_only=True):
    """Calls of one message.

    calls   in their order
    """

    calls: list[CallToWrite]


@method("render", Render, Written, anywhere=True)
def render(state: State, params: Render) -> Written:
    """Return calls as the text of a dialect, which `parse` reads as these calls."""
    calls = [WrittenCall(call.name, call.arguments, call.id) for call in params.calls]
    return Written(callmark.render_calls(calls, **fields(params, "calls")))


class ResultToWrite(Params, frozen=True, kw_only=True):
    """What a call came to.

    name      of the tool
    content   text, or a JSON value
    id        of the call; null: it is not told
    nonce     asterisks stand for it wherever the result quotes it
    """

    name: str
    content: Any
    id: str | None = None
    language: LanguageName = "en"
    nonce: Nonce = None
    tools: Tools = None


@method("result", ResultToWrite, Written, anywhere=True, neutralizes=True)
def result(state: State, params: ResultToWrite) -> Written:
    """Return the result of a call as text for a message of the user's role, neutralized."""
    return Written(callmark.render_result(**fields(params)))


class Restore(Writing, frozen=True, kw_only=True):
    """A conversation in which calls and results are text.

    messages   of the conversation
    """

    messages: list[Message]
    language: LanguageName = "en"


@method("restore", Restore, Messages, anywhere=True)
def restore(state: State, params: Restore) -> Messages:
    """Return a conversation in text with native calls and tool messages: what `history` wrote, back again."""
    return Messages(callmark.restore_history(**fields(params)))


class History(Restore, frozen=True, kw_only=True):
    """A conversation with native calls and tool messages.

    messages      of the conversation
    merge_roles   whether neighbouring messages of one role become one
    """

    merge_roles: bool = False


@method("history", History, Messages, anywhere=True, neutralizes=True)
def history(state: State, params: History) -> Messages:
    """Return a conversation with its native calls and results as text."""
    return Messages(callmark.render_history(**fields(params)))


class Neutralize(Params, frozen=True, kw_only=True):
    """A text that somebody else wrote.

    text   of any kind
    """

    text: str
    special_tokens: Annotated[bool, Meta(description="Whether tokens of chat templates are broken too.")] = False
    tools: Tools = None


@method("neutralize", Neutralize, Written, anywhere=True, neutralizes=True)
def neutralize(state: State, params: Neutralize) -> Written:
    """Return a text such that no call is read in it, in any dialect, alone or joined with other texts."""
    return Written(callmark.neutralize(**fields(params)))


class Grammar(Offer, frozen=True, kw_only=True):
    """The tools, and the engine that shall be constrained.

    parallel    whether several calls may stand in one message
    target      the engine, or its form of a grammar
    free_text   whether text may stand around the calls
    """

    target: Target = "llguidance"
    free_text: bool = True


class GrammarText(msgspec.Struct, frozen=True):
    """A grammar, and the constraints that it does not hold arguments to."""

    text: str
    unenforced: list[str]


@method("grammar", Grammar, GrammarText, anywhere=True, slow=True)
def grammar(state: State, params: Grammar) -> GrammarText:
    """Return a grammar of messages that may call the tools, for an engine that constrains a model."""
    made = callmark.export_grammar(**fields(params))
    return GrammarText(made.text, list(made.unenforced))
