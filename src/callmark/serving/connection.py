"""The methods of a connection: what it is and can, and texts that come in pieces, many at once."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

import callmark
from callmark.serving.bounds import Bounds
from callmark.serving.functions import DialectRow, Events, Reading, list_dialects
from callmark.serving.methods import METHODS, ModelText, NewName, Nothing, Params, State, method
from callmark.serving.texts import Positions

PROTOCOL_VERSION: Final = 1

StreamName = Annotated[str, Meta(min_length=1, max_length=128, description="The name of an open stream.")]


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


class StreamText(Params, frozen=True, kw_only=True):
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


class StreamClose(Params, frozen=True, kw_only=True):
    """A stream."""

    stream: StreamName


@method("stream/close", StreamClose, Events)
def stream_close(state: State, params: StreamClose) -> Events:
    """Say that the text is over, and return its last events. The stream's name is free again."""
    return Events(list(state.streams.close(params.stream)))
