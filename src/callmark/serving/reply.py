"""Reads one choice of a model's answer: its text becomes what a message of OpenAI's chat API holds.

A pipe without I/O: text goes in as it comes, and out come `Said`, `Thought`, and for each call `Begun` and `Argued`.
What they are does not depend on how the text was cut, so a stream and a whole answer give the same message. A call is
out only when it is complete: nothing that a client was sent is ever taken back, and a call that never ends is text.

An `eager` reader does not wait: a call is begun with its name, and its arguments go on as they come, but for their last
character, without which they are no JSON. Such a call may turn out to be none; then the message is `broken`.

A server's own calls come in too, in fragments of whatever shape, and go out as those in text do. Where the server was
given the tools, they are the only ones: its text is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from callmark.events import RAW_KEY, ArgumentsDelta, Call, CallStart, Event, Malformed, Markup, Text
from callmark.reading.parser import Parser
from callmark.running.halves import Halves
from callmark.running.invented import Invented
from callmark.running.native import WHOLE, Assembler
from callmark.serving.configuration import ModelSettings
from callmark.serving.texts import encoded

BLANKS_LIMIT: Final = 4096
"""White space that is held back, since it goes where a call follows: far more than stands between two paragraphs."""
_CUT: Final = ("length", "max_tokens", "model_length")
"""What servers say of a message that met its limit: OpenAI, and those that mean the same."""
NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
_TAG: Final = re.compile("think|thought|reasoning", re.IGNORECASE)
"""In markup that opens or closes thinking, whatever brackets its model has."""


class Said(NamedTuple):
    """Content."""

    text: str


class Thought(NamedTuple):
    """What goes into `reasoning_content`."""

    text: str


class Begun(NamedTuple):
    """A call; `number` counts those of the message from 0. `own` has what its server gave it: an id and the like."""

    number: int
    name: str
    own: Mapping[str, Any] = NOTHING


class Argued(NamedTuple):
    """A piece of the arguments of the call that was begun last; those of a call join to a JSON object."""

    number: int
    json: str


Part = Said | Thought | Begun | Argued


class ChoiceReader:
    """Reads the text of one choice.

    settings   of the model
    tools      those that are offered, as the client sent them
    names      their names: a call of any other is text; None: a call of any name is one
    parallel   off: reading stops after the first call
    nonce      that calls must carry, if the settings say so
    eager      whether calls go out while they are written; of a server's own only the first does
    native     whether the server was given the tools: then its calls keep what they have, and text is text
    """

    def __init__(
        self,
        settings: ModelSettings,
        tools: Any,
        names: frozenset[str] | None,
        *,
        parallel: bool,
        nonce: str | None,
        eager: bool = False,
        native: bool = False,
    ) -> None:
        self.stopped = False  # nothing behind here is wanted
        self.broken = False  # what went out of a call is none: no reason to finish can say so
        self.calls = 0  # that are complete
        self.called = False  # by the server itself, as yet
        self._parser = None if native else Parser(**settings.reading(nonce), tools=tools)
        self._halves = Halves()  # node's servers cut emoji in two
        self._assembler: Assembler | None = None
        self._names = names
        self._parallel = parallel
        self._eager = eager
        self._ids: set[str] = set()  # of the calls that are out
        self._begun = False  # whether the next call is out already, in part
        self._argued = False  # whether arguments of it are
        self._tail = ""  # what is not
        self._before = "stream" if names is not None and not names else settings.before_calls
        self._thinking = settings.thinking
        self._invented = Invented(settings.language, names or (), (settings.row,))
        self._parts: list[Part] = []
        self._blanks = ""  # white space that goes where a call follows
        self._said = False  # whether there is content
        self._thought = False  # whether text before a call went into the reasoning
        self._bare = False  # whether blanks before any content stood behind something else: a call, or thinking
        self._held: list[str] = []  # text that waits for what follows
        self._section: list[str] = []  # markup that goes with the call that follows
        self._refused = False  # whether the last call stayed text: what closes its section does too

    def feed(self, text: str) -> list[Part]:
        """Read the next piece and return what is certain now."""
        if not self.stopped:
            self._write(self._halves.whole(text))
        return self._taken()

    def feed_calls(self, pieces: Any) -> list[Part]:
        """Take native calls that an upstream sends on its own, in fragments as they come."""
        pieces = list(filter(_is_fragment, pieces)) if isinstance(pieces, list) and not self.stopped else []
        if pieces:
            self.called = True
            self._assembler = self._assembler or Assembler()
            made = self._assembler.feed({"choices": [{"delta": {"tool_calls": pieces}}]})
            if self._eager and self._parser is None:  # else a call in the text may have begun
                first = [event for event in made if isinstance(event, CallStart | ArgumentsDelta) and not event.index]
                self._read(first, final=False, given=self._assembler.given)
        return self._taken()

    def finish(self, reason: str | None) -> tuple[list[Part], str]:
        """Say that the message is over, and why the upstream says it is; return the last parts and the true reason."""
        reason = "length" if str(reason).lower() in _CUT else reason
        cut = bool(reason) and str(reason).lower() not in WHOLE
        told: list[Mapping[str, str]] = []
        if not self.stopped:
            self._write(self._halves.rest())
        if not self.stopped and self._parser is not None:
            self._read(self._parser.finish(), final=True, cut=cut)
            self._end_line()
        if not self.stopped and self._assembler is not None:
            self._assembler.stop_reason = reason or ""
            events = [event for event in self._assembler.finish() if isinstance(event, Call | Malformed)]
            if self._assembler.unfinished:  # whatever its server says
                cut, reason = True, reason if cut else "length"
            self._read(events, final=True, given=self._assembler.given)
            others = [event for event in events if isinstance(event, Call) and not self._offers(event.name)]
            functions = [{"name": call.name, "arguments": call.raw_arguments} for call in others]
            if not self.stopped:
                told = [*functions, *self._assembler.unread]
                self._tell(told)
        if not self.calls:
            self._emit(self._blanks)
        self._release(Said)
        if self.stopped:  # whatever the upstream says of what is behind it
            return self._taken(), "tool_calls"
        self.stopped = True
        ends_early = self._invented.open or bool(told) or not self.calls  # what was begun and is no call is text
        if cut and reason and (reason == "content_filter" or ends_early):
            return self._taken(), reason
        return self._taken(), "tool_calls" if self.calls else "stop"

    def _taken(self) -> list[Part]:
        parts, self._parts = self._parts, []
        return parts

    def _write(self, text: str) -> None:
        if self._parser is None:
            self._text(text)
        else:
            self._read(self._parser.feed(text), final=False)

    def _read(
        self,
        events: Iterable[Event],
        *,
        final: bool,
        cut: bool = False,
        given: Mapping[int, Mapping[str, Any]] = NOTHING,
    ) -> None:
        for event in events:
            match event:
                case Text(text=text, channel="reasoning") if self._thinking == "reasoning":
                    self._leave_section()
                    self._bare = True
                    self._parts.append(Thought(text))
                case Text(text=text):
                    if self._section or self._refused:
                        self._leave_section()
                    self._text(text)
                case CallStart(index=index, name=name) if self._eager and self._offers(name):
                    self._begin(name, given.get(index, NOTHING))
                case ArgumentsDelta(json=json) if self._begun:
                    self._argue(json)
                case Call(raw=raw, index=index, name=name, repairs=repairs):
                    unfinished = final and cut and any(repair.code == "missing-closer" for repair in repairs)
                    if unfinished or not self._offers(name):
                        self._no_call(raw)
                    else:
                        self._call(event, given.get(index, NOTHING))
                case Malformed(raw=raw):
                    self._no_call(raw)
                case Markup(raw=raw) if _TAG.search(raw) is not None:
                    self._leave_section()
                    if self._thinking == "content":
                        self._text(raw)
                case Markup(raw=raw):
                    if self._refused:
                        self._text(raw)
                    else:
                        self._section.append(raw)
                case _:  # previews and remarks
                    pass
            if self.stopped:
                return

    def _offers(self, name: str) -> bool:
        return self._names is None or name in self._names

    def _begin(self, name: str, own: Mapping[str, Any]) -> None:
        self._end_line()
        if self.stopped:
            return
        own_id = own.get("id")
        if isinstance(own_id, str) and own_id not in self._ids:
            self._ids.add(own_id)
        elif own:  # some have one id for all
            own = {**own, "id": ""}
        if self._parser is not None:  # else the call stands beside the text, and not in it
            self._blanks = ""
        self._release(Thought if self._before == "reasoning" else Said, drop=self._before == "drop")
        self._parts.append(Begun(self.calls, name, own))
        self._begun, self._argued, self._tail = True, False, ""

    def _argue(self, json: str) -> None:
        json = self._tail + json
        ready = max(len(json.rstrip()) - 1, 0) if self._argued or json.startswith("{") else 0  # all else is no object
        if ready:
            self._argued = True
            self._parts.append(Argued(self.calls, json[:ready]))
        self._tail = json[ready:]

    def _call(self, call: Call, own: Mapping[str, Any]) -> None:
        if not self._begun:
            self._begin(call.name, own)
        if self.stopped:
            return
        self._section.clear()
        self._refused = False
        self._parts.append(Argued(self.calls, self._tail if self._argued else _arguments_of(call)))
        self.calls += 1
        self._begun, self._bare = False, True
        self._invented.call(call.name)
        self.stopped = not self._parallel

    def _tell(self, functions: Iterable[Mapping[str, str]]) -> None:
        """Say as text what a server sent as calls that are none; they have no place in it, so it is the last."""
        for function in functions:
            line = encoded(function).decode()
            self._content("\n" + line if self._said or self._held else line)

    def _no_call(self, raw: str) -> None:
        self.broken = self.stopped = self._begun
        if not self.broken:
            self._refused = True
            self._text("".join(self._section) + raw)
            self._section.clear()

    def _leave_section(self) -> None:
        """Drop markup that no call followed."""
        self._refused = False
        self._section.clear()

    def _text(self, text: str) -> None:
        self._content(self._invented.feed(text))
        self.stopped = self.stopped or self._invented.found

    def _end_line(self) -> None:
        self._content(self._invented.end())
        self.stopped = self.stopped or self._invented.found

    # White space, and text that waits.

    def _content(self, text: str) -> None:
        text = self._blanks + text
        solid = text.rstrip()
        solid = text[: max(len(solid), len(text) - BLANKS_LIMIT)]
        self._blanks = text[len(solid) :]
        if self._bare and not self._said and not self._held:
            solid = solid.lstrip()
        self._emit(solid)

    def _emit(self, text: str) -> None:
        if not text:
            return
        if self._before == "stream":
            self._said = True
            self._parts.append(Said(text))
        else:
            self._held.append(text)

    def _release(self, kind: type[Said] | type[Thought], *, drop: bool = False) -> None:
        text = "".join(self._held)
        self._held.clear()
        if text and not drop:
            if kind is Said:
                self._said = True
            else:
                text, self._thought = ("\n" if self._thought else "") + text, True
            self._parts.append(kind(text))


def _arguments_of(call: Call) -> str:
    if not call.raw:  # a server's own: as it wrote them, so that it knows them again
        return call.raw_arguments
    value = call.arguments if isinstance(call.arguments, dict) else {RAW_KEY: call.raw_arguments}
    return msgspec.json.encode(value).decode()


def _is_fragment(piece: Any) -> bool:
    return isinstance(piece, Mapping) and isinstance(piece.get("function"), Mapping | None)
