"""A parser and a feeder, driven in any order: what they have said is what one reading of everything fed says."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from callmark import Call, Markup, Notice, Parser, SnapshotFeeder, Span, UsageError
from callmark.events import Event
from callmark.testing import in_chunks, joined
from feeding import MISUSE
from strategies import HOSTILE, filled_markers, good_markers, mutated, options, sloppy_markers

# What Hypothesis would show of the markers it draws from is pages.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

PIECES = st.one_of(
    good_markers,
    sloppy_markers,
    filled_markers,
    mutated(good_markers, 1),
    st.sampled_from(HOSTILE),
    st.text(max_size=5),
)


class ParserMachine(RuleBasedStateMachine):
    """Feeds one parser after another; the model is the list of chunks."""

    @initialize(chosen=options)
    def begin(self, chosen: dict[str, Any]) -> None:
        self.chosen = chosen
        self.start()

    @rule()
    def start(self) -> None:
        """A parser is for one text: a reset is a new one, and nothing of the last one is left."""
        self.parser = Parser(**self.chosen)
        self.chunks: list[str] = []
        self.events: list[Event] = []
        self.finished = False

    @precondition(lambda self: not self.finished)
    @rule(piece=PIECES)
    def feed(self, piece: str) -> None:
        self.events.extend(self.parser.feed(piece))
        self.chunks.append(piece)

    @precondition(lambda self: not self.finished)
    @rule(piece=PIECES, length=st.integers(1, 3))
    def feed_slowly(self, piece: str, length: int) -> None:
        for start in range(0, len(piece), length):
            self.events.extend(self.parser.feed(piece[start : start + length]))
        self.chunks.append(piece)

    @precondition(lambda self: not self.finished)
    @rule()
    def feed_nothing(self) -> None:
        steps = self.parser.steps
        assert list(self.parser.feed("")) == []
        assert self.parser.steps == steps

    @precondition(lambda self: not self.finished)
    @rule(wrong=st.sampled_from([b"bytes", None, 1, ["list"]]))
    def feed_what_is_no_text(self, wrong: Any) -> None:
        with pytest.raises(MISUSE, match=r"expected a str|str object expected"):
            self.parser.feed(wrong)

    @precondition(lambda self: not self.finished)
    @rule()
    def finish(self) -> None:
        self.events.extend(self.parser.finish())
        self.finished = True

    @precondition(lambda self: self.finished)
    @rule(piece=st.sampled_from(["", "x"]))
    def go_on_after_the_end(self, piece: str) -> None:
        with pytest.raises(UsageError, match="finished"):
            self.parser.feed(piece)
        with pytest.raises(UsageError, match="finished"):
            self.parser.finish()

    @invariant()
    def what_was_said_is_a_beginning_of_what_a_reading_of_everything_says(self) -> None:
        """Of a text that is not over the last Text or delta may go on; everything before it stands."""
        if not hasattr(self, "parser"):
            return
        said = joined(self.events)
        if self.finished:
            assert said == joined(in_chunks(["".join(self.chunks)], **self.chosen))
            return
        parser = Parser(**self.chosen)
        assert said == joined(found for found in parser.feed("".join(self.chunks)))


def meaning(call: Call) -> tuple[str, str]:
    """What a call says, in whatever spelling."""
    return call.name, json.dumps(call.arguments, sort_keys=True)


class FeederMachine(RuleBasedStateMachine):
    """Hands snapshots to a feeder; the model is the last snapshot and the calls that were reported."""

    @initialize(chosen=options)
    def begin(self, chosen: dict[str, Any]) -> None:
        self.chosen = chosen
        self.feeder = SnapshotFeeder(**chosen)
        self.text = ""
        self.events: list[Event] = []  # since the text was last replaced
        self.hidden: Counter[tuple[str, str]] = Counter()  # calls that were reported before the text was last replaced
        self.finished = False

    def take(self, events: Any) -> None:
        self.events.extend(events)

    @precondition(lambda self: not self.finished)
    @rule(piece=PIECES)
    def grow(self, piece: str) -> None:
        self.text += piece
        self.take(self.feeder.feed(self.text))

    @precondition(lambda self: not self.finished)
    @rule()
    def repeat(self) -> None:
        assert list(self.feeder.feed(self.text)) == []

    @precondition(lambda self: not self.finished)
    @rule(keep=st.integers(0, 100), piece=PIECES)
    def replace(self, keep: int, piece: str) -> None:
        text = self.text[: keep % (len(self.text) + 1)] + piece
        if text.startswith(self.text):
            return
        self.hidden = Counter(meaning(found) for found in self.events if isinstance(found, Call)) + self.hidden
        self.text = text
        notice, *rest = self.feeder.feed(text)
        assert isinstance(notice, Notice)
        assert (notice.code, notice.span) == ("snapshot-replaced", Span(0, len(text)))
        self.events = []
        self.take(rest)

    @precondition(lambda self: not self.finished)
    @rule()
    def finish(self) -> None:
        self.take(self.feeder.finish())
        self.finished = True

    @precondition(lambda self: self.finished)
    @rule()
    def go_on_after_the_end(self) -> None:
        with pytest.raises(UsageError, match="finished"):
            self.feeder.feed(self.text)
        with pytest.raises(UsageError, match="finished"):
            self.feeder.finish()

    @invariant()
    def what_was_said_is_what_a_reading_of_the_snapshot_says(self) -> None:
        """But for calls that were reported before it replaced another one: these are markup now."""
        if not hasattr(self, "feeder"):
            return
        parser = Parser(**self.chosen)
        expected = list(parser.feed(self.text))
        if self.finished:
            expected += parser.finish()
        hidden = self.hidden.copy()
        for position, found in enumerate(expected):
            if isinstance(found, Call) and hidden[meaning(found)] > 0:
                hidden[meaning(found)] -= 1
                expected[position] = Markup(found.span, found.raw)
        assert joined(self.events) == joined(expected)


machines = settings(max_examples=max(settings.default.max_examples // 2, 20), stateful_step_count=15)
TestParserMachine = ParserMachine.TestCase
TestParserMachine.settings = machines
TestFeederMachine = FeederMachine.TestCase
TestFeederMachine.settings = machines


def test_hostile_snapshots_that_shrink_and_grow_raise_nothing():
    feeder = SnapshotFeeder()
    for text in ("", "[CALL: f()]", "[CALL: f", "[CALL: f()] \ud83d", "", "<tool_call>", "<tool_call>{", "[CALL: f()]"):
        feeder.feed(text)
    assert [type(found).__name__ for found in feeder.finish()] == []
