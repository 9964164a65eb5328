"""Texts that come in pieces: many at once, each with a parser of its own, and all of them within bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from callmark.events import Event
from callmark.reading.parser import Parser
from callmark.reading.whole import SnapshotFeeder
from callmark.running.halves import Halves
from callmark.serving.bounds import Bounds
from callmark.serving.problems import ServingError
from callmark.serving.texts import Positions, Units


class Stream:
    """One text on its way in. The first piece decides whether it comes in chunks or as snapshots of all so far."""

    def __init__(self, options: Mapping[str, Any], positions: Positions, characters: int) -> None:
        self._options = options
        self._parser = Parser(**options)
        self._feeder: SnapshotFeeder | None = None
        self._characters = characters  # how many may still come
        self._fed = False
        self._halves = Halves()
        self._snapshot = self._half = ""
        self._units = Units() if positions == "utf-16" else None

    def feed(self, chunk: str) -> Sequence[Event]:
        """Read the next chunk. Raises ServingError where the text is longer than it may be."""
        if self._feeder is not None:
            raise ServingError("invalid-params", "stream: expected a snapshot like the ones before, found a chunk")
        self._fed = True
        self._characters -= len(chunk)
        if self._characters < 0:
            raise ServingError("too-large", "stream: the text is longer than a stream may be; close it")
        chunk = self._halves.whole(chunk)
        if self._units is None:
            return self._parser.feed(chunk)
        self._units.see(chunk)
        return self._units.events(self._parser.feed(chunk))

    def snapshot(self, text: str) -> Sequence[Event]:
        """Read all of the text that there is so far."""
        if self._fed:
            raise ServingError("invalid-params", "stream: expected a chunk like the ones before, found a snapshot")
        if len(text) > self._characters:
            raise ServingError("too-large", "stream: the text is longer than a stream may be; close it")
        if self._feeder is None:
            self._feeder = SnapshotFeeder(**self._options)
        text = self._halves.whole(text)
        self._half = self._halves.rest()  # it comes again, with its other half, in the next snapshot
        return self._in_units(text, self._feeder.feed(text))

    def close(self) -> Sequence[Event]:
        """Say that the text is over and return the last events."""
        if self._feeder is not None:
            text = self._snapshot + self._half
            return self._in_units(text, [*self._feeder.feed(text), *self._feeder.finish()])
        rest = self._halves.rest()
        events = [*self._parser.feed(rest), *self._parser.finish()]
        if self._units is None:
            return events
        self._units.see(rest)
        return self._units.events(events)

    def _in_units(self, text: str, events: Sequence[Event]) -> Sequence[Event]:
        before, self._snapshot = self._snapshot, text
        if self._units is None:
            return events
        if text.startswith(before):
            self._units.see(text[len(before) :])
        else:
            self._units = Units()
            self._units.see(text)
        return self._units.events(events)


class Streams:
    """The open streams of one client, by their names."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open: dict[str, Stream] = {}
        self._names = map("stream-{}".format, count(1))

    def open(self, name: str | None, options: Mapping[str, Any], positions: Positions) -> str:
        """Open a stream and return its name: the one that is given, or a new one."""
        if len(self._open) >= self._bounds.streams:
            raise ServingError("too-many", f"stream/open: at most {self._bounds.streams} streams are open at once")
        if name is None:
            name = next(own for own in self._names if own not in self._open)
        if name in self._open:
            raise ServingError("invalid-params", f"stream: expected a new name, found {name!r:.80}, which is open")
        self._open[name] = Stream(options, positions, self._bounds.stream_characters)
        return name

    def get(self, name: str) -> Stream:
        """Return an open stream."""
        try:
            return self._open[name]
        except KeyError:
            raise ServingError("unknown-stream", f"no stream {name!r:.80} is open") from None

    def close(self, name: str) -> Sequence[Event]:
        """Close a stream and return its last events."""
        events = self.get(name).close()
        del self._open[name]
        return events
