"""One message of a model on its way in: text and native fragments become events, calls and problems are kept."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Any, Final

import msgspec

from callmark.dialects import select, selected
from callmark.errors import UsageError
from callmark.events import ArgumentsDelta, Call, CallStart, Event, Malformed, Markup, Notice, Span, Text
from callmark.reading.parser import Parser
from callmark.reading.whole import parse
from callmark.running.halves import Halves
from callmark.running.invented import Invented
from callmark.running.models import Model, Request, chunks_of
from callmark.running.native import DROPPED, WHOLE, Assembler
from callmark.running.repetition import Repetition
from callmark.running.settings import Settings
from callmark.running.signals import Cancel
from callmark.tools.registry import Registry, Spelling
from callmark.tools.shapes import Aliases
from callmark.tools.tool import Tool
from callmark.writing.calls import render_call

_BLANK: Final = re.compile(r"\s++")
_ID_LENGTH: Final = 9  # letters and digits: Mistral's servers take no other ids, and everybody takes these


class Generation:
    """Reads one message, which may come in several parts where it was cut.

    text       all that the model wrote, markers included; up to where the message ends
    place      where the message stands, unlike any other's
    calls, problems   what was read so far
    native     whether tools are the server's affair; then text is read for calls too, unless the mode is "native"
    over       whether the message ends before the model does: before a result that it invents, which may be what later
               calls come from, or behind its first call where that is to be the only one
    """

    def __init__(
        self, registry: Registry, offered: Sequence[Tool], settings: Settings, native: bool, place: str
    ) -> None:
        self.native = native
        self.place = place
        self.over = False
        self.aliases: Aliases | None = None
        self.calls: list[Call] = []
        self.problems: list[Malformed] = []
        self._ids: dict[int, str] = {}  # of the calls that the server sent as such
        self._reads_text = not (native and settings.mode == "native")
        self._parallel = settings.parallel
        self._settings = settings
        self._spellings = registry.spellings(offered)
        self._options = {**settings.reading_options(), "tools": self._spellings}
        rows = select(self._options["dialects"] or settings.dialect)
        self._invented = Invented(settings.language, (each.name for each in self._spellings), rows)
        self._parser = Parser(**self._options)
        self._assembler = Assembler()
        self._halves = Halves()
        self._parts: list[str] = []
        self._shown: list[str] = []
        self._length = 0
        self._read = 0  # up to where the text is in events
        self._told = 0  # the same, without the openers of sections behind which a call begins
        self._certain = 0  # up to where content is shown, but for what may begin an invented result
        self._repetition = Repetition("")  # of what was cut, in what goes on with it
        self._indexes: dict[tuple[bool, int], int] = {}  # one numbering for calls of both kinds

    @property
    def text(self) -> str:
        """All that the model wrote."""
        return "".join(self._parts)

    @property
    def visible(self) -> str:
        """What of it is for people."""
        return "".join(self._shown)

    @property
    def cut_by(self) -> str:
        """Why the message is not all there, in the server's word for it, if it has one; "" where it is."""
        if self._invented.found:
            return "invented result"
        reason = self._assembler.stop_reason
        return "" if reason.lower() in WHOLE or DROPPED in reason.lower() else reason

    def cut(self) -> Malformed | None:
        """Return what would be wrong if the text, which ends inside a call, were over; None where it would be read."""
        if not self._reads_text or self.over or self._told >= self._length:
            return None
        problems = parse(self.text, **self._options).problems
        found = (problem for problem in problems if isinstance(problem, Malformed))
        return next((problem for problem in found if problem.code == "unclosed-marker"), self._begun())

    def _withheld(self) -> str:
        """Return the end of the text that is in no event yet: what has begun, or may have."""
        return self.text[self._read :] if self._reads_text and self._read < self._length else ""

    def _begun(self) -> Malformed | None:
        """Return what is wrong where a call, as it was taught, was cut off before reading knows of one; None elsewhere.

        A single character is that only where the server says that the message was cut.
        """
        withheld = self.text[self._told :]
        plain = _BLANK.sub("", withheld)
        if len(plain) < (1 if self.cut_by else 2):
            return None
        written = (each for spelling in self._spellings for each in self._as_taught(spelling) if each.startswith(plain))
        # Behind a call, what also stands within one may be the closer of a section: nothing is missing there.
        if not any(not self.calls or plain not in each[1:] for each in written):
            return None
        span, message = Span(self._told, self._length), "expected the rest of a call, found the end of the text"
        row = selected(self._settings.dialect)
        return Malformed(span, withheld, "unclosed-marker", message, dialect=row.name)

    def _as_taught(self, spelling: Spelling) -> Iterator[str]:
        """Yield how calls of a tool begin, without blanks; none where the dialect has no way to write its name."""
        settings = self._settings
        properties = spelling.parameters.get("properties")
        first: list[dict[str, Any]] = [{key: ""} for key in properties] if isinstance(properties, Mapping) else []
        for arguments in ({}, *first):
            try:
                written = render_call(spelling.name, arguments, settings.dialect, nonce=settings.nonce)
            except UsageError:
                continue
            yield _BLANK.sub("", written)

    async def read(self, model: Model, request: Request, cancel: Cancel) -> AsyncGenerator[Event, None]:
        """Ask the model, and yield the events of what it answers. A second time, its answer goes on with the first."""
        withheld = self._withheld()
        self._repetition = Repetition(withheld, self.text.removesuffix(withheld))
        self._assembler.stop_reason = ""
        async with aclosing(chunks_of(model, request, cancel)) as chunks:
            async for chunk in chunks:
                for event in self._fed(chunk):
                    yield event
                if self.over:
                    return
        for event in self._written(self._repetition.feed(self._halves.rest()) + self._repetition.finish()):
            yield event

    def finish(self) -> list[Event]:
        """Say that the message is over and return the last events."""
        rest = [*self._kept(self._parser.finish(), native=False), *self._line_end()]
        if self.over:  # so nothing of what is open was cut by its server
            self._assembler.stop_reason = WHOLE[0]
        return [*rest, *self._kept(self._assembler.finish(), native=True)]

    def message(self) -> dict[str, Any]:
        """Return the message as the conversation keeps it: calls that came as text are in its content."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self._ids:
            message["tool_calls"] = [
                {
                    "id": self._ids[call.index],
                    "type": "function",
                    "function": {"name": self._alias(call.name), "arguments": call.raw_arguments},
                }
                for call in self.calls
                if call.index in self._ids
            ]
        return message

    def id_of(self, index: int) -> str | None:
        """Return the id of a native call, one of our own where its server gave none; None of one that came as text."""
        return self._ids.get(index)

    def _alias(self, name: str) -> str:
        return self.aliases.alias(name) if self.aliases is not None and name in self.aliases else name

    def _fed(self, chunk: str | Mapping[str, Any]) -> list[Event]:
        if isinstance(chunk, str):
            return self._text(chunk)
        events: list[Event] = []
        for piece in self._assembler.feed(chunk):
            events += self._text(piece) if isinstance(piece, str) else self._kept([piece], native=True)
        return events

    def _text(self, text: str) -> list[Event]:
        return self._written(self._repetition.feed(self._halves.whole(text)))

    def _written(self, text: str) -> list[Event]:
        if not text or self.over:
            return []
        self._parts.append(text)
        self._length += len(text)
        self._assembler.position = self._length
        if self._reads_text:
            return self._kept(self._parser.feed(text), native=False)
        start, self._read = self._read, self._length
        self._shown.append(text)
        return [Text(Span(start, self._read), text)]

    def _kept(self, events: Iterable[Event], *, native: bool) -> list[Event]:
        """Keep what the session must know of events, and give all calls of the message one numbering."""
        made: list[Event] = []
        for event in events:
            if isinstance(event, Text) and event.channel == "content" and not self.over:
                self._read = self._told = event.span.end
                made += self._content(event)
                continue
            if not isinstance(event, ArgumentsDelta | Notice):
                made += self._line_end()
            if not self._is_wanted(event, native):
                continue
            if isinstance(event, CallStart | ArgumentsDelta | Call | Malformed) and event.index is not None:
                number = self._indexes.setdefault((native, event.index), len(self._indexes))
                event = msgspec.structs.replace(event, index=number)
            if native and isinstance(event, CallStart | Call) and self.aliases is not None:
                event = msgspec.structs.replace(event, name=self.aliases.name(event.name))
            if not native and isinstance(event, Text | Call | Malformed | Markup):
                self._read = event.span.end
                self._told = self._told if isinstance(event, Markup) else self._read
            if isinstance(event, CallStart):
                self._invented.call(event.name)
            if isinstance(event, Call):
                self.calls.append(event)
                if native:
                    made_up = sha256(f"{self.place} {event.index}".encode()).hexdigest()[:_ID_LENGTH]
                    taken = event.id in self._ids.values()  # servers repeat them, and refuse to be told so
                    self._ids[event.index] = made_up if taken else event.id or made_up
                if not self._parallel:
                    self._end(self._read)
            if isinstance(event, Malformed):
                self.problems.append(event)
            made.append(event)
        return made

    def _is_wanted(self, event: Event, native: bool) -> bool:
        """Return whether an event counts: where the message is over, only of a native call that was begun before."""
        if not self.over:
            return True
        begun = native and (native, getattr(event, "index", None)) in self._indexes
        return begun and (self._parallel or not self.calls)

    def _content(self, event: Text) -> list[Event]:
        """Show content but for what may begin an invented result; before one the message ends."""
        if not self._invented.behind:
            self._shown.append(event.text)
            return [event]
        if not self._invented.held:
            self._certain = event.span.start
        return self._given_back(self._invented.feed(event.text))

    def _line_end(self) -> list[Event]:
        return [] if self.over else self._given_back(self._invented.end())

    def _given_back(self, text: str) -> list[Event]:
        start, self._certain = self._certain, self._certain + len(text)
        if self._invented.found:
            self._end(self._certain)
        if not text:
            return []
        self._shown.append(text)
        return [Text(Span(start, self._certain), text)]

    def _end(self, position: int) -> None:
        self.over = True
        self._parts = [self.text[:position]]
        self._assembler.position = self._length = position
