"""JSON in and out for clients in other languages, whose strings are UTF-16: halves of pairs, and positions in units.

msgspec reads and writes nearly everything. What it refuses, half of a surrogate pair in a string, is a text that a
model can write and that JavaScript sends wherever it cuts a string inside an emoji; the standard library takes that.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, Literal, TypeVar

import msgspec

from callmark.errors import CallmarkError, refusal
from callmark.events import ArgumentsDelta, Call, CallStart, Event, Malformed, Markup, Notice, Repair, Span, Text
from callmark.serving.problems import ServingError

Positions = Literal["code-points", "utf-16"]
T = TypeVar("T")


def encoded(value: Any) -> bytes:
    """Return a value as JSON on one line; half of a surrogate pair is an escape in it."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def decoded(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T:
    """Return what JSON says, as the decoder's type.

    Raises ServingError: `parse-error` where it is no JSON, `invalid-params` where it is not of the type.
    """
    try:
        return decoder.decode(data)
    except (msgspec.ValidationError, CallmarkError) as error:  # limits say themselves what they may be
        raise ServingError("invalid-params", refusal(error, decoder.type)) from error
    except (ValueError, RecursionError) as error:
        value = _with_halves(bytes(data), error)
    try:
        converted: T = msgspec.convert(value, decoder.type)
    except UnicodeEncodeError as error:  # it stands where another kind of value, or one of some words, is expected
        raise ServingError("invalid-params", "expected whole characters, found half of a surrogate pair") from error
    except (msgspec.ValidationError, CallmarkError) as error:
        raise ServingError("invalid-params", refusal(error, decoder.type)) from error
    return converted


def _with_halves(data: bytes, error: Exception) -> Any:
    """Return what the standard library makes of JSON that msgspec refused with `error`."""
    if rb"\u" in data and not isinstance(error, RecursionError):
        try:
            return json.loads(data.decode(), parse_constant=_refused, parse_float=_finite)
        except (ValueError, RecursionError):
            pass
    found = f": {error}" if data.strip() else " nothing"
    raise ServingError("parse-error", f"expected JSON in UTF-8, found{found}") from error


def _refused(constant: str) -> float:
    raise ValueError(constant)


def _finite(number: str) -> float:
    value = float(number)
    if value - value != 0.0:
        raise ValueError(number)
    return value


class Units:
    """Turns positions from code points into UTF-16 units, as JavaScript counts.

    >>> units = Units()
    >>> units.see("😀 Hi ")
    >>> units.events([Markup(Span(0, 5), "😀 Hi ")])
    [Markup(span=Span(start=0, end=6), raw=...)]
    """

    def __init__(self) -> None:
        self.length = 0  # code points that were seen
        self._wide: list[int] = []  # positions of characters that are two units

    def see(self, text: str) -> None:
        """Take the text that comes next: positions in it can be turned from now on."""
        if not text.isascii():
            self._wide += [self.length + offset for offset, char in enumerate(text) if char > "\uffff"]
        self.length += len(text)

    def events(self, events: Iterable[Event]) -> list[Event]:
        """Return events with their positions, and those of their repairs, in units."""
        return [self._event(event) for event in events]

    def _event(self, event: Event) -> Event:
        if not self._wide or isinstance(event, CallStart | ArgumentsDelta):
            return event
        span = self._span(event.span)
        if isinstance(event, Call):
            repairs = tuple(Repair(repair.code, self._span(repair.span)) for repair in event.repairs)
            return msgspec.structs.replace(event, span=span, repairs=repairs)
        return msgspec.structs.replace(event, span=span)

    def _span(self, span: Span) -> Span:
        return Span(
            span.start + bisect_left(self._wide, span.start),
            span.end + bisect_left(self._wide, span.end),
        )


class Tiles:
    """Turns the positions of one message's events, of which nobody has the text but the events themselves.

    A remark stands before the text that it is about; it is held until that text has come.
    """

    def __init__(self) -> None:
        self._units = Units()
        self._held: list[Event] = []  # the first of them is a remark about text to come

    def events(self, event: Event) -> list[Event]:
        """Return what can be told now, in order."""
        if isinstance(event, Text):
            self._units.see(event.text)
        elif isinstance(event, Call | Malformed | Markup):
            self._units.see(event.raw)
        self._held.append(event)
        if any(isinstance(held, Notice) and held.span.end > self._units.length for held in self._held):
            return []
        return self.rest()

    def rest(self) -> list[Event]:
        """Return what is held: the message is over."""
        told, self._held = self._held, []
        return self._units.events(told)
