"""The values that users see, and their wire form.

`Text`, `Call`, `Malformed` and `Markup` tile the text that was read: their spans are adjacent, and joining `text` and
`raw` in order gives the text back exactly. `CallStart` and `ArgumentsDelta` are previews for eyes, `Notice` is a
remark; they own no text. Only a `Call` may be run.

Everything here is a frozen `msgspec.Struct`, and each event is tagged by the key `type` (a `Span` and a `Repair`, which
stand in events, are not); `msgspec.json.encode(event)` is the wire form everywhere (command line, stdio, HTTP, cases),
and `event.to_dict()` gives the same as builtins. What a model wrote may hold half of a surrogate pair, which UTF-8
cannot: such a `text` or `raw` stays as it is, `msgspec.json.encode` raises UnicodeEncodeError, and
`json.dumps(event.to_dict())` writes an escape. Never so `Call.arguments`. Positions are code points from the start of
the stream, half-open. An event's `repr` shows names, places and codes, but `...` for what a model wrote or would be
told, as it stands in logs and tracebacks in the end; `to_dict` gives all of it.

To build an event takes 80 ns, where a frozen dataclass takes 400. `gc=False` keeps the cycle collector from tracking
them; it is safe because an event never refers to itself.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

JsonValue: TypeAlias = Any
Channel = Literal["content", "reasoning"]

MALFORMED_CODES: dict[str, str] = {
    "unclosed-marker": "the text ended inside the marker: incomplete, not wrong",
    "unexpected-text": "something stands where the dialect's grammar does not allow it",
    "bad-escape": "a backslash in a string is followed by no escape of the string's language",
    "bad-number": "a number that JSON cannot hold: not finite, or too many digits",
    "control-character": "a raw control character (a line break, say) stands in a JSON string",
    "lone-surrogate": "half of a surrogate pair: no character, and no JSON text could hold it",
    "duplicate-key": "an object or argument list names the same key twice",
    "nested-marker": "a new marker begins inside the value of one that was never closed",
    "missing-name": "the marker names no tool",
    "bad-arguments": "the arguments are no JSON object, or cannot be told apart",
    "nesting-too-deep": "brackets are nested deeper than the limit",
    "arguments-too-long": "the arguments are longer than the limit",
}

NOTICE_CODES: dict[str, str] = {
    "marker-in-fence": "a marker in a code fence is not a call",
    "marker-in-code": "a marker in code (inline, or of HTML) is not a call",
    "marker-in-quote": "a marker in a block quote is not a call",
    "marker-in-reasoning": "a marker in reasoning is not a call",
    "unknown-nonce": "a marker does not carry the nonce that was asked for and was left as text",
    "too-many-calls": "the limit of calls in one message is reached; this and later markers are left as text",
    "unknown-tool": "a call names a tool that is not among the given ones",
    "extra-separator": "a separator too many before the end of a list of calls was dropped",
    "stray-closer": "a closer too many, or in another spelling, directly behind a call was dropped",
    "snapshot-replaced": "the host replaced text that was read already; reading began anew from the start",
}

REPAIR_CODES: dict[str, str] = {
    "opener-spelling": "the opener was written in another way",
    "full-width-punctuation": "full-width punctuation was read as its ASCII counterpart",
    "curly-quotes": "curly quotes were read as string quotes",
    "single-quotes": "a single-quoted string was read where the dialect wants double quotes",
    "python-literal": "True, None, a tuple, a raw string or a number like `.5` was read where the dialect wants JSON",
    "bare-key": "a key without quotes was read",
    "bare-value": "a word without quotes was read as a string",
    "colon-for-equals": "a colon was read where the dialect wants an equals sign",
    "missing-comma": "a comma was supplied",
    "extra-comma": "a comma too many was dropped",
    "comment": "a comment was dropped",
    "odd-blank": "a blank that JSON does not know, or one at an end of a name in quotes, was dropped",
    "raw-control-character": "a raw control character in a string was kept as its escape",
    "literal-backslash": "a backslash that begins no escape was kept as a backslash",
    "markdown-escape": "a backslash that Markdown wants before an underscore was dropped from a name or key",
    "inner-quotes": "quotes inside a string were kept as characters of it",
    "missing-opener": "an opening bracket or opener was supplied",
    "missing-closer": "a bracket or closer was supplied where nothing else fits",
    "extra-closer": "a bracket too many was dropped",
    "doubled-braces": "two braces were read as one, as templates write it",
    "equals-for-colon": "an equals sign or `=>` was read where the dialect wants a colon",
    "wrong-closer": "a closer of another kind was read as the one that was due",
    "string-arguments": "arguments, or one between tags, given as a JSON string were decoded once more",
    "null-arguments": "arguments given as null, or as an empty list, were read as none",
    "escaped-entities": "entities of XML were read as the characters that they stand for",
    "fenced-body": "a code fence around the body was dropped",
    "neighbour-body": "the body of another dialect was read in this one's wrapper",
    "key-spelling": "the name or the arguments stood under another key, the arguments under none, or one level deeper",
    "flattened-arguments": "arguments that stood beside the name were put together",
    "plain-quotes": "quotes were read where the dialect has a delimiter of its own",
    "triple-quotes": "a string in triple quotes was read",
    "raw-arguments": "nothing could read the arguments; they are kept as text under `_raw`",
}


class Span(msgspec.Struct, frozen=True, gc=False):
    """A half-open range of code points, counted from the start of the stream."""

    start: int
    end: int


class Repair(msgspec.Struct, frozen=True, gc=False):
    """One thing that tolerant reading changed: a code of `REPAIR_CODES`, and where in the original text."""

    code: str
    span: Span


RAW_KEY = "_raw"
"""The key under which arguments stand as text that nothing could read: no name of a parameter."""

_CONTENTS = frozenset({"text", "raw", "json", "arguments", "raw_arguments", "message"})


class _Hidden:
    """What is shown in place of contents."""

    def __repr__(self) -> str:
        return "..."


class _Event(msgspec.Struct, frozen=True, gc=False, tag_field="type"):
    def __rich_repr__(self) -> list[tuple[str, Any]]:
        names = self.__struct_fields__
        return [(name, _Hidden() if name in _CONTENTS else getattr(self, name)) for name in names]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form as builtins."""
        result: dict[str, Any] = msgspec.to_builtins(self)
        return result


class Text(_Event, frozen=True, gc=False, tag="text"):
    """Text that is for people: no part of a marker. `channel` is "content", or "reasoning" for a model's thinking."""

    span: Span
    text: str
    channel: Channel = "content"


class CallStart(_Event, frozen=True, gc=False, tag="call-start"):
    """Preview: a call has begun and its name is known. Never run anything because of it."""

    index: int
    name: str
    dialect: str


class ArgumentsDelta(_Event, frozen=True, gc=False, tag="arguments-delta"):
    """Preview: the next piece of a call's arguments as JSON text, whatever the dialect's own syntax is.

    The pieces of one `index` joined are one JSON text whose value is `Call.arguments`.
    """

    index: int
    json: str


class Call(_Event, frozen=True, gc=False, tag="call"):
    """A complete call, the only event that may be run.

    `arguments` is a JSON value, an object in the normal case; `raw_arguments` is the source text of the arguments as
    the model wrote it; `id` is the model's own id where its dialect has one. `repairs` are in the order of their
    places; none means that `raw` is in the dialect's grammar. `index` counts the calls that were begun in this stream,
    from 0, broken ones included.
    """

    span: Span
    raw: str
    index: int
    name: str
    arguments: JsonValue
    raw_arguments: str
    dialect: str
    repairs: tuple[Repair, ...] = ()
    id: str | None = None


class Malformed(_Event, frozen=True, gc=False, tag="malformed"):
    """A marker that could not be read. `code` is one of `MALFORMED_CODES`; only `unclosed-marker` means incomplete.

    `message` says what was expected, what was found, and where. `index` and `name` are those of the call that was
    begun, where there was one; `dialect` is that of the marker, and "" only in one that somebody else made.
    """

    span: Span
    raw: str
    code: str
    message: str
    index: int | None = None
    name: str | None = None
    dialect: str = ""


class Markup(_Event, frozen=True, gc=False, tag="markup"):
    """What is no part of a call: a section's opener and closer, a trigger line, a reasoning tag. A whole call that a
    `SnapshotFeeder` has reported before comes as one, too.
    """

    span: Span
    raw: str


class Notice(_Event, frozen=True, gc=False, tag="notice"):
    """Something a reader should know; `code` is one of `NOTICE_CODES`. Owns no text: the span's text is elsewhere."""

    span: Span
    code: str
    message: str


Event: TypeAlias = Text | CallStart | ArgumentsDelta | Call | Malformed | Markup | Notice
