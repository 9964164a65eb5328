"""Reads whole texts and snapshots of growing ones. Both are `Parser.feed` and `Parser.finish`, and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any

import msgspec

from callmark.dialects import dialects as registered
from callmark.errors import UsageError
from callmark.events import Call, Event, Malformed, Markup, Notice, Span, Text
from callmark.reading.options import EVERYWHERE, ContextPolicy, Dialects, Limits, Tolerance, wanted_again
from callmark.reading.parser import Parser, events_of


class Parsed(msgspec.Struct, frozen=True, dict=True, weakref=True):
    """What was read of a whole text. Two are equal whose events are.

    events     all events, in order
    calls      the calls, in order: the only events that may be run
    text       what is for people: the content without markers and reasoning
    reasoning  the model's thinking
    problems   what went wrong or was left as text: Malformed and Notice, in order
    """

    events: tuple[Event, ...]

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The calls, in order."""
        return tuple(event for event in self.events if isinstance(event, Call))

    @cached_property
    def text(self) -> str:
        """The visible text."""
        return "".join(event.text for event in self.events if isinstance(event, Text) and event.channel == "content")

    @cached_property
    def reasoning(self) -> str:
        """The model's thinking."""
        return "".join(event.text for event in self.events if isinstance(event, Text) and event.channel == "reasoning")

    @cached_property
    def problems(self) -> tuple[Malformed | Notice, ...]:
        """What went wrong, and what looks like a call but was left as text."""
        return tuple(event for event in self.events if isinstance(event, Malformed | Notice))

    def __repr__(self) -> str:
        return f"Parsed({len(self.calls)} calls, {len(self.text)} characters of text, {len(self.problems)} problems)"


def parse(
    text: str,
    *,
    dialects: Dialects = None,
    tools: Any = None,
    tolerance: Tolerance = "lenient",
    contexts: Mapping[str, ContextPolicy] | None = None,
    starts_in_reasoning: bool = False,
    nonce: str | None = None,
    limits: Limits | None = None,
) -> Parsed:
    """Read a whole text: `Parser.feed` and `finish`, with the options of `Parser`.

    >>> parsed = parse('Sure! [CALL: get_weather({"city": "Oslo"})]')
    >>> parsed.calls[0].name, parsed.calls[0].arguments, parsed.text
    ('get_weather', {'city': 'Oslo'}, 'Sure! ')

    Any str is read; only misuse of the options raises UsageError. Linear time: README's figures, and
    `python -m benchmarks whole`, show how much.
    """
    return Parsed(tuple(events_of(text, dialects, tools, tolerance, contexts, starts_in_reasoning, nonce, limits)))


def detect(text: str) -> tuple[str, ...]:
    """Return the names of the dialects whose markers stand in `text`, those with most calls first.

    Every registered dialect is tried, those without an explicit opener too, wherever the marker stands. Where two have
    as many calls, the markers that are broken are counted. Cost: as `parse` with all of them; of more than 1,000 calls
    the first are counted. Raises UsageError for anything but a str.

    >>> detect('<tool_call>{"name": "f", "arguments": {}}</tool_call>')
    ('hermes',)
    """
    if not isinstance(text, str):
        raise UsageError(f"detect: expected a str, found {type(text).__name__}")
    names = [dialect.name for dialect in registered()]
    parsed = parse(text, dialects=names, contexts=EVERYWHERE, limits=Limits(calls=1000))
    calls = Counter(event.dialect for event in parsed.events if isinstance(event, Call))
    broken = Counter(event.dialect for event in parsed.events if isinstance(event, Malformed))
    return tuple(sorted(calls | broken, key=lambda name: (-calls[name], -broken[name])))


class SnapshotFeeder:
    """Reads a text of which the host hands over all that there is so far, each time.

    A snapshot that begins with the last one is the last one and a new chunk. One that does not replaces it: the host
    sees a Notice `snapshot-replaced`, and reading begins anew, from position 0, with a new Parser. No call is reported
    twice: one that was reported before the replacement, with the same name and arguments in whatever spelling, dialect
    or order of keys, comes as Markup. Calls are counted: where one stands twice now and stood once, the second is new.

    >>> feeder = SnapshotFeeder()
    >>> [type(event).__name__ for event in feeder.feed("Let me see")]
    ['Text']
    >>> [type(event).__name__ for event in feeder.feed("Let me see: [CALL: look()]")]
    ['Text', 'CallStart', 'ArgumentsDelta', 'Call']

    The options are those of `Parser`. Cost of a snapshot: comparing it with the last one, and reading what is new.
    """

    def __init__(self, **options: Any) -> None:
        self._options = wanted_again(options)
        self._parser = Parser(**self._options)
        self._text = ""
        self._finished = False
        self._reported: Counter[tuple[str, str]] = Counter()  # calls that were reported, by what they say
        self._again: Counter[tuple[str, str]] = Counter()  # those of them that may come again after a replacement

    def __copy__(self) -> SnapshotFeeder:
        """A copy shares no state, as with `Parser`."""
        return deepcopy(self)

    def feed(self, snapshot: str) -> Sequence[Event]:
        """Read the text so far and return the events that are new. Raises UsageError after `finish`."""
        if self._finished:
            raise UsageError("feed: the feeder was finished; expected a new SnapshotFeeder for a new text")
        if not isinstance(snapshot, str):
            raise UsageError(f"feed: expected a str, found {type(snapshot).__name__}")
        snapshot = str.__str__(snapshot)
        if snapshot.startswith(self._text):
            events = list(self._parser.feed(snapshot[len(self._text) :]))
        else:
            self._parser = Parser(**self._options)
            self._again = self._reported.copy()
            message = "text that was read already was replaced; positions and indexes begin anew"
            events = [Notice(Span(0, len(snapshot)), "snapshot-replaced", message), *self._parser.feed(snapshot)]
        self._text = snapshot
        return self._once(events)

    def finish(self) -> Sequence[Event]:
        """Say that the text is over and return the last events. Raises UsageError when called twice."""
        if self._finished:
            raise UsageError("finish: the feeder was finished; expected a new SnapshotFeeder for a new text")
        self._finished = True
        return self._once(list(self._parser.finish()))

    def _once(self, events: list[Event]) -> list[Event]:
        """Turn calls that were reported before a replacement into Markup."""
        for position, event in enumerate(events):
            if isinstance(event, Call):
                said = event.name, json.dumps(event.arguments, sort_keys=True)
                if self._again[said] > 0:
                    self._again[said] -= 1
                    events[position] = Markup(event.span, event.raw)
                else:
                    self._reported[said] += 1
        return events
