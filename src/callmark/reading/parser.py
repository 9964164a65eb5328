"""Turns chunks into events. There is no second parser for whole texts: `parse` is `feed` and `finish`.

The parser is in one of few modes: in text, looking for a marker; inside a call, feeding its reader; behind the
arguments, waiting for the tail; between the calls of a section; behind a broken marker, looking where to go on. It
keeps the text that it has not decided about (bounded outside of a call) and the text of the call that it is in;
nothing that was emitted is ever taken back.

How reading goes on after a broken marker. A marker is broken where no continuation can make it one. `Malformed` then
reaches to that place, or over the dialect's own tail if it comes within RECOVERY characters and before another opener.
But the last token before the error is not known to be sound: an unclosed string may have swallowed an opener. If one
begins in it, `Malformed` ends there, and reading goes on there. So a broken call never swallows a good one, and as the
tokens that are read again hold no closing quote of their own kind, every character is read again at most once for each
kind of quote. Where the text ends inside a marker that could still be completed, everything to the end belongs to it:
what stands in the strings of a call that was cut is data and is not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from callmark.errors import UsageError
from callmark.events import (
    MALFORMED_CODES,
    ArgumentsDelta,
    Call,
    CallStart,
    Channel,
    Event,
    Malformed,
    Markup,
    Notice,
    Repair,
    Span,
    Text,
)
from callmark.reading import fast
from callmark.reading.contexts import Context, Contexts
from callmark.reading.decoder import Undecodable, decode
from callmark.reading.diagnosis import explain, nearest
from callmark.reading.options import (
    DEFAULT_LIMITS,
    NOTICES,
    ContextPolicy,
    Dialects,
    Limits,
    Tolerance,
    checked_policies,
)
from callmark.reading.parameters import ParametersReader
from callmark.reading.patterns import Pattern
from callmark.reading.objects import STUCK, ObjectReader, last_token
from callmark.reading.pieces import TOGETHER, Pieces
from callmark.reading.scanner import Entry, Plan, Search, plan
from callmark.reading.schemas import Parameters, known_tools
from callmark.reading.values import DEAD, DONE, OPEN, ValueReader

Reader: TypeAlias = ObjectReader | ParametersReader | ValueReader

RECOVERY: Final = 256
"""Characters behind an error in which the marker's tail is looked for: a line or two, so that prose stays text."""
_WINDOW: Final = 16_384  # characters handed to a reader at once, where a chunk is longer than the limit on arguments
_EXPLAIN: Final = 8  # broken markers of a text that the grammar explains: hundreds of them are an attack, no diagnosis
_SMALL: Final = 256  # characters: up to here a chunk is looked at place by place, which is cheaper for a few places

_TEXT, _CALL, _TAIL, _SECTION, _BROKEN, _OVERFLOW, _SOLE = range(7)


class Parser:
    """Reads calls out of a text that comes in chunks of any size. One parser for one text.

    >>> parser = Parser()
    >>> [event.name for event in parser.feed('Hi [CALL: greet({"who": "Mi') if isinstance(event, CallStart)]
    ['greet']
    >>> [event.arguments for event in parser.feed('a"})]') if isinstance(event, Call)]
    [{'who': 'Mia'}]
    >>> list(parser.finish())
    []

    Options (keyword only): `dialects`, names or Dialects, default all with an explicit opener; `tools`, names or
    schemas in any usual shape; `tolerance`, "strict", "lenient" or "salvage"; `contexts`, a mapping of "fence", "code",
    "quote", "reasoning" to "text" (default) or "allow", for "fence" also "sole"; `starts_in_reasoning`, whether the
    prompt has opened reasoning already; `nonce`, without which no marker is a call; `limits`.

    Model text never raises. Time is linear in the text; memory is some kilobytes outside of a call, and a small
    multiple of the call's text inside one. Not safe for use by several threads at once.
    """

    def __init__(
        self,
        *,
        dialects: Dialects = None,
        tools: Any = None,
        tolerance: Tolerance = "lenient",
        contexts: Mapping[str, ContextPolicy] | None = None,
        starts_in_reasoning: bool = False,
        nonce: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        if tolerance not in ("strict", "lenient", "salvage"):
            raise UsageError(f'tolerance: expected "strict", "lenient" or "salvage", found {tolerance!r}')
        self._tolerant = tolerance != "strict"
        self._plan: Plan = plan(dialects, self._tolerant)
        self._tools: dict[str, Parameters] | None = known_tools(tools)
        self._policies: Mapping[str, str] = checked_policies(contexts) if contexts else {}
        if nonce is not None and not re.fullmatch(r"[0-9A-Za-z_\-]{1,64}", nonce):
            raise UsageError(f"nonce: expected 1 to 64 ASCII letters, digits, `_` or `-`, found {nonce!r}")
        self._nonce = nonce
        self._guarded = nonce is not None or starts_in_reasoning  # whether every marker must be looked at closely
        self._limits = limits or DEFAULT_LIMITS
        self._channel: Channel = "reasoning" if starts_in_reasoning else "content"
        self._reasoning_depth = 1 if starts_in_reasoning else 0
        self._contexts = Contexts()
        self._events: list[Event] = []
        self._finished = False
        self._mode = _TEXT
        self._buffer = ""  # what was not decided about
        self._base = 0  # position of the buffer's first character
        self._at = 0  # index of the buffer up to which it was read
        self._hit = -1  # index of an entry that `feed` has found in it
        self._shown = 0  # in text: index up to which it was emitted
        self._passed = 0  # in text: index up to which the contexts know it
        self._search = Search(self._plan)
        self._reread = 0
        self._index = 0  # of the next call
        self._calls = 0
        self._limit_told = False
        self._explained = 0
        self._section: Entry | None = None
        self._between = False  # whether a separator or the section's closer comes next, not a call
        self._sole = ""  # the run of the fence whose only content must be the call that is read
        self._sole_events: list[Event] = []
        # The call that is read:
        self._entry: Entry = self._plan.first
        self._reader: Reader | None = None
        self._plain: Callable[[str], object] | None = None  # in a string: tells whether a chunk passes as it is
        self._overflow: ValueReader | ParametersReader | None = None
        self._start = 0  # position of its first character
        self._body = 0  # position of its arguments' first character
        self._room_end = 0  # position that they must not go beyond
        self._pieces = Pieces()  # its text up to the buffer
        self._recent = self._pieces.recent
        self._json: Pieces | None = None  # its arguments as JSON, up to what was emitted; None where that is their text
        self._name: str | None = None
        self._id: str | None = None
        self._repairs: tuple[Repair, ...] = ()
        self._begun = False  # whether CallStart was emitted
        self._error: tuple[str, str, int] = ("", "", 0)  # code, what was expected, position

    @property
    def steps(self) -> int:
        """How many characters were looked at so far, those that were looked at again included: the measure of law 7."""
        return self._base + self._at + self._reread

    def feed(self, chunk: str) -> Sequence[Event]:
        """Read the next chunk and return the events that are certain now. Chunks may be cut anywhere.

        Raises UsageError after `finish`, and for anything but a str.
        """
        plain = self._plain
        if plain is not None:  # inside a string of a call: most chunks of most calls
            try:
                passes = plain(chunk) is not None and chunk
            except TypeError:
                passes = ""
            if passes:
                end = self._base + len(chunk)
                if end <= self._room_end:
                    self._base = end
                    recent = self._recent
                    recent.append(chunk)
                    if len(recent) >= TOGETHER:
                        self._pieces.fold()
                    if self._json is not None:
                        self._json.append(chunk)
                    return (ArgumentsDelta(self._index, chunk),)
        if type(chunk) is not str:
            if not isinstance(chunk, str):
                raise UsageError(f"feed: expected a str, found {type(chunk).__name__}")
            chunk = str(chunk)
        if self._finished:
            raise UsageError("feed: the parser was finished; expected a new Parser for a new text")
        if not chunk:
            return ()
        base, held = self._base, self._buffer
        if held:
            self._reread += len(held)
            chunk = held + chunk
        mode = self._mode
        if mode == _TEXT:
            plan = self._plan
            stop, cut = -1, True
            if plan.any(chunk) is not None:
                if len(chunk) <= _SMALL:
                    stop, cut = plan.first_in(chunk)
                    cut = cut or stop < 0
                    self._hit = -1 if cut else stop
                else:
                    cut = False
            if cut:
                if stop >= 0:
                    self._buffer = chunk[stop:]
                    if not stop:
                        return ()
                    chunk = chunk[:stop]
                else:
                    self._buffer = ""
                self._base = end = base + len(chunk)
                self._contexts.pass_text(chunk)
                return (Text(Span(base, end), chunk, self._channel),)
        elif mode == _CALL and not self._sole and base + len(chunk) <= self._room_end:
            reader = self._reader
            at = 0
            if reader is None:
                self._buffer = chunk
                if not self._open():
                    return ()
                reader, at = self._current(), self._at
            if self._begun:
                stop = reader.feed(chunk, at, base)
                if reader.status == OPEN:
                    return self._went_on(chunk, at, stop, reader)
                if stop > at and type(reader) is ObjectReader:
                    self._events.append(ArgumentsDelta(self._index, chunk[at:stop]))
                    self._mode = _TAIL if reader.status == DONE else _CALL
                self._at = stop
        self._buffer = chunk
        self._plain = None
        self._search.reset()
        self._advance(final=False)
        return self._take_events()

    def _went_on(self, chunk: str, at: int, stop: int, reader: Reader) -> Sequence[Event]:
        """The reader of the call has read from index `at` to `stop` of `chunk`: keep it, and return what comes out."""
        self._at = 0
        if stop == len(chunk):
            self._buffer = ""
            self._plain = reader.plain
            piece = chunk
        else:
            self._buffer = chunk[stop:]
            self._plain = None
            if not stop:
                return ()
            piece = chunk[:stop]
        self._base += stop
        recent = self._recent
        recent.append(piece)
        if len(recent) >= TOGETHER:
            self._pieces.fold()
        json = self._json
        if json is not None:
            out = reader.out
            if not out:
                return self._take_events()
            piece = out[0] if len(out) == 1 else "".join(out)
            out.clear()
            json.append(piece)
        elif at:
            piece = piece[at:]
        if self._events:
            self._events.append(ArgumentsDelta(self._index, piece))
            return self._take_events()
        return (ArgumentsDelta(self._index, piece),)

    def finish(self) -> Sequence[Event]:
        """Say that the text is over and return the last events. What is cut is Malformed, never a Call.

        Raises UsageError when called twice.
        """
        if self._finished:
            raise UsageError("finish: the parser was finished already")
        return self._end("")

    def _end(self, text: str) -> Sequence[Event]:
        """Read the last chunk. A whole text need not be held back first: feed and finish in one, with the same events."""
        self._finished = True
        self._plain = None
        self._buffer += text
        self._search.reset()
        self._advance(final=True)
        return self._take_events()

    # The engine. Each mode reads on from `_at` and says whether there is more to do.

    def _advance(self, *, final: bool) -> None:
        while True:
            mode = self._mode
            if mode == _TEXT:
                more = self._in_text(final)
            elif mode == _CALL:
                more = self._in_call()
            elif mode == _TAIL:
                more = self._in_tail()
            elif mode == _SECTION:
                more = self._in_section(final)
            elif mode == _BROKEN:
                more = self._in_broken(final)
            elif mode == _OVERFLOW:
                more = self._in_overflow()
            else:
                more = self._in_sole(final)
            if not more:
                if not final or self._mode == _TEXT:
                    break
                self._cut()
        at = self._at
        mode = self._mode
        if mode == _CALL or mode == _TAIL or mode == _BROKEN:
            start = self._start - self._base
            self._pieces.append(self._buffer[start if start > 0 else 0 : at])
        self._base += at
        self._buffer = self._buffer[at:]
        self._at = self._shown = self._passed = 0
        if mode == _CALL and not self._buffer and self._begun and not self._sole and self._reader is not None:
            self._plain = self._reader.plain

    def _cut(self) -> None:
        """The text is over inside a marker, which is thereby unclosed."""
        size = len(self._buffer)
        if self._mode == _OVERFLOW:
            self._show(size)
        else:
            self._error = ("unclosed-marker", "the rest of the marker", self._base + size)
            self._malformed(size, *self._error[:2], "the end of the text")
        self._section = None
        self._leave(size)

    # In text: looking for an entry.

    def _in_text(self, final: bool) -> bool:
        buffer, at, base = self._buffer, self._at, self._base
        contexts, search, plan = self._contexts, self._search, self._plan
        size = len(buffer)
        self._shown = self._passed = at
        while True:
            hit, self._hit = self._hit, -1
            if hit >= 0:  # `feed` has found it
                char = buffer[hit]
            elif size - at <= _SMALL and not final:
                hit, cut = plan.first_in(buffer, at) if plan.any(buffer, at) is not None else (size, True)
                if hit < 0 or cut:
                    return self._wait_in_text(size if hit < 0 else hit)
                char = buffer[hit]
            else:
                hit, char = search.next_entry(buffer, at, base)
                if hit > at:
                    begin = size if final else search.next_cut(buffer, at, base)
                    if begin < hit or hit >= size:
                        return self._wait_in_text(min(begin, size))
            matched = search.entry_at(buffer, hit, char, final=final)
            if matched is None:
                return self._wait_in_text(hit)
            entry, found = matched
            kind = entry.kind
            passed = self._passed
            text = buffer[passed:hit]
            context = contexts.look(text)
            self._passed = hit
            if kind == "tag":
                if self._tag(hit, found.end(), context, closing=found["slash"] == "/"):
                    return True
                at = hit + 1
                continue
            if entry.line_start and not contexts.at_line_start:
                at = hit + 1
                continue
            if (
                context is not None
                or self._guarded
                or self._calls >= self._limits.calls
                or (entry.has_nonce and found["nonce"] is not None)
            ):
                refusal = self._refusal(entry, found, context)
                if refusal is not None:
                    if refusal and (kind != "opener" or not entry.form.alone):
                        self._show(hit)
                        self._events.append(Notice(Span(base + hit, base + found.end()), *refusal))
                    at = found.end() if kind == "opener" else hit + 1
                    continue
            start = self._shown
            if start < hit:
                shown = text if start == passed else buffer[start:hit]
                self._events.append(Text(Span(base + start, base + hit), shown, self._channel))
                self._shown = hit
            if kind == "head" and found.end() < size and not self._sole:
                at = self._read_at_once(entry, found)
                if at >= 0:
                    self._shown = self._passed = at
                    continue
            if self._sole:
                self._sole_events, self._events = self._events, []
            if kind == "opener":
                self._markup(hit, found.end())
                self._section = entry
                self._between = entry.section is not None and not entry.section.separated
                self._mode = _SECTION
            else:
                self._begin(entry, found)
            return True

    def _wait_in_text(self, stop: int) -> bool:
        self._at = stop
        start, passed = self._shown, self._passed
        if stop > passed:
            text = self._buffer[passed:stop]
            self._contexts.pass_text(text)
            if start != passed:
                text = self._buffer[start:stop]
            self._events.append(Text(Span(self._base + start, self._base + stop), text, self._channel))
        elif stop > start:
            self._show(stop)
        return False

    def _tag(self, at: int, end: int, context: Context | None, *, closing: bool) -> bool:
        """Read a reasoning tag; return whether it is one: in code it is text."""
        if context is not None and self._channel == "content":
            return False
        self._reasoning_depth = max(0, self._reasoning_depth - 1) if closing else self._reasoning_depth + 1
        self._show(at)
        self._channel = "reasoning" if self._reasoning_depth else "content"
        self._guarded = self._nonce is not None or self._reasoning_depth > 0
        self._markup(at, end)
        self._contexts.reset()
        return True

    def _refusal(
        self, entry: Entry, found: re.Match[str], context: Context | None
    ) -> tuple[str, str] | tuple[()] | None:
        """Return why a marker is left as text: a Notice's code and message, or () for no Notice; None if it is read."""
        nonce = found["nonce"] if entry.has_nonce else None
        if nonce != self._nonce and (entry.kind != "opener" or self._nonce is not None):
            return "unknown-nonce", "a marker with another nonce, or with none, is not a call"
        if self._channel == "reasoning" and self._policies.get("reasoning") != "allow":
            return NOTICES["reasoning"]
        if context is not None:
            policy = self._policies.get(context)
            if policy == "sole" and self._contexts.sole_fence:
                self._sole = self._contexts.sole_fence
            elif policy != "allow":
                return NOTICES[context]
        if self._calls >= self._limits.calls:
            self._sole = ""
            if self._limit_told:
                return ()
            self._limit_told = True
            return "too-many-calls", f"the limit of {self._limits.calls} calls is reached: later markers are text"
        return None

    def _show(self, stop: int) -> None:
        """Emit the text up to index `stop`."""
        start = self._shown
        if stop > start:
            base = self._base
            text = self._buffer[start:stop]
            self._events.append(Text(Span(base + start, base + stop), text, self._channel))
            self._shown = stop

    def _markup(self, at: int, stop: int) -> None:
        if stop > at:
            raw = self._buffer[at:stop]
            self._events.append(Markup(Span(self._base + at, self._base + stop), raw))
            self._contexts.pass_marker(raw)
        self._at = self._shown = self._passed = stop

    # In a call.

    def _begin(self, entry: Entry, found: re.Match[str]) -> None:
        """A head was read: a call begins."""
        base = self._base
        at = found.end()
        self._entry = entry
        self._start = base + found.start()
        self._body = base + at
        self._room_end = base + at + self._limits.arguments
        self._name = found["name"] if entry.has_name else None
        self._id = found["id"] if entry.has_id else None
        self._repairs = (Repair("opener-spelling", Span(self._start, self._body)),) if entry.kind == "loose" else ()
        self._begun = False
        self._at = at
        if entry.has_empty and found["empty"] is not None:
            self._start_call()
            self._events.append(ArgumentsDelta(self._index, "{}"))
            self._end_call(at, "", "{}", self._raw(at))
            return
        self._mode = _CALL
        self._reader = None
        if self._name is not None:
            self._start_call()

    def _open(self) -> bool:
        """Choose the reader of the call's arguments; return whether their first characters are there to decide."""
        parts = self._entry.patterns
        form = parts.form
        buffer, at = self._buffer, self._at
        nesting = self._limits.nesting
        parameters = self._tools.get(self._name) if self._tools and self._name else None
        self._json = None
        if form.body == "parameters":
            self._reader = ParametersReader(
                parts, self._body, depth_limit=nesting, tolerant=self._tolerant, parameters=parameters
            )
            self._json = Pieces()
            return True
        begin = parts.begin
        if begin is not None:
            found = begin.match(buffer, at)
            if found is not None:
                self._at = at = found.end()
                if found.lastgroup == "name":
                    self._name = found["name"]
                    self._start_call()
                self._reader = ObjectReader(self._base + at, nesting)
                return True
            if not self._finished and begin.may_match(buffer, at):
                return False
        self._reader = ValueReader(
            form, self._body, depth_limit=nesting, tolerant=self._tolerant, parameters=parameters
        )
        self._json = Pieces()
        return True

    def _hand_over(self, reader: ObjectReader) -> None:
        """Let the general reader go on: from here on the arguments are no plain JSON."""
        json = self._so_far()[reader.start - self._start :]
        state, in_string = reader.state
        self._json = Pieces()
        self._json.append(json)
        self._reader = ValueReader.behind(
            self._entry.form,
            reader.start,
            reader.frames,
            state,
            in_string=in_string,
            sound=reader.start + last_token(json),
            depth_limit=self._limits.nesting,
            tolerant=self._tolerant,
            parameters=self._tools.get(self._name) if self._tools and self._name else None,
            name=self._name,
        )
        self._mode = _CALL

    def _so_far(self) -> str:
        """Return the text of the call up to where it was read."""
        inside = self._buffer[max(self._start - self._base, 0) : self._at]
        return inside if self._start >= self._base else self._pieces.text() + inside

    def _read_at_once(self, entry: Entry, found: re.Match[str]) -> int:
        """Read a call whose closing literal is there already, if nothing else begins before it: the fast path.

        The literal may stand in a string; then what lies before it is no JSON, and the incremental reader decides.
        Returns the index behind the call, -1 where it was not read.
        """
        buffer, base = self._buffer, self._base
        start, at = found.span()
        guess = -1
        if entry.guess:
            guess = self._search.next_literal(entry.guess, buffer, at, base)
            if guess >= len(buffer):
                return -1
        name = found["name"] if entry.has_name else ""
        limits = self._limits
        value = fast.simple(buffer, at, guess, limits.nesting) if entry.simple else None
        if value is not None:
            source = json = buffer[at:guess]
            end = guess + entry.closing
        elif entry.has_empty and found["empty"] is not None:
            return -1
        else:
            tools = self._tools
            read = fast.read(entry.patterns, buffer, at, guess, limits.nesting, tools.get(name) if tools else None)
            if read is None:
                return -1
            named, source, json, value, end = read
            name = name or named
        if end - at > limits.arguments:
            return -1
        raw = buffer[start:end]
        index = self._index
        span = Span(base + start, base + end)
        call_id = found["id"] if entry.has_id else None
        self._events += (
            CallStart(index, name, entry.name),
            ArgumentsDelta(index, json),
            Call(span, raw, index, name, value, source, entry.name, (), call_id),
        )
        self._index = index + 1
        self._calls += 1
        if self._tools is not None and name not in self._tools:
            self._unknown(span, name)
        self._contexts.pass_marker(raw)
        return end

    def _unknown(self, span: Span, name: str) -> None:
        message = f"no tool {name!r} was given{nearest(name, self._tools or {})}"
        self._events.append(Notice(span, "unknown-tool", message))

    def _in_call(self) -> bool:
        if self._reader is None and ((self._at == len(self._buffer) and not self._finished) or not self._open()):
            return False
        reader = self._current()
        buffer, at, base = self._buffer, self._at, self._base
        room = self._room_end - base - at
        windowed = len(buffer) - at > room
        if windowed:
            window = buffer[at : at + min(room, _WINDOW)]
            stop = at + reader.feed(window, 0, base + at)
        else:
            stop = reader.feed(buffer, at, base)
        self._at = stop
        if isinstance(reader, ObjectReader):
            if stop > at:
                self._events.append(ArgumentsDelta(self._index, buffer[at:stop]))
            if reader.status == STUCK or (windowed and room <= _WINDOW and reader.status == OPEN):
                self._hand_over(reader)
                return True
        elif reader.out or not self._begun:
            self._preview(reader)
        if reader.status == DONE:
            self._mode = _TAIL
            return True
        if isinstance(reader, ObjectReader):
            return windowed
        if reader.status == DEAD:
            self._break(reader.code, reader.expected, reader.sound)
            return True
        if windowed and room <= _WINDOW:
            self._malformed(stop, "arguments-too-long", f"at most {self._limits.arguments} characters", "more")
            self._overflow = reader
            if self._sole:
                self._not_sole()
            self._mode = _OVERFLOW
            return True
        return windowed

    def _current(self) -> Reader:
        if self._reader is None:
            raise AssertionError("a call is being read")
        return self._reader

    def _preview(self, reader: ValueReader | ParametersReader) -> None:
        if not self._begun:
            if reader.name is None:
                return
            self._name = reader.name
            self._start_call()
        if reader.out and self._json is not None:
            json = "".join(reader.out)
            reader.out.clear()
            self._json.append(json)
            self._events.append(ArgumentsDelta(self._index, json))

    def _start_call(self) -> None:
        dialect = self._entry.dialect
        self._events.append(CallStart(self._index, self._name or "", dialect.name))
        self._begun = True

    def _in_tail(self) -> bool:
        reader = self._current()
        parts = self._entry.patterns
        is_object = type(reader) is ObjectReader
        tail = parts.closing if is_object else parts.tail
        end = self._at
        if tail is not None:
            found = tail.match(self._buffer, end)
            if found is None:
                if not self._finished and tail.may_match(self._buffer, end):
                    return False
                if is_object and parts.closing is not parts.tail:
                    self._hand_over(reader)
                elif tail.may_match(self._buffer, end):
                    return False
                else:
                    closing = f"the end of the marker, as in {self._entry.dialect.title}"
                    self._break("unexpected-text", closing, self._base + end)
                return True
            end = found.end()
        if not is_object:
            self._id = reader.id or self._id
            self._repairs += tuple(reader.repairs)
        raw = self._raw(end)
        source = raw[reader.start - self._start : reader.end - self._start].strip(" \t\r\n")
        json = source if self._json is None else self._json.take()
        self._end_call(end, source, json, raw)
        return True

    def _raw(self, end: int) -> str:
        """Return the text of the call up to index `end`, and forget it."""
        if self._start >= self._base:
            return self._buffer[self._start - self._base : end]
        self._recent.append(self._buffer[:end])
        return self._pieces.take()

    def _end_call(self, end: int, source: str, json: str, raw: str) -> None:
        """The marker is complete: decode its arguments."""
        try:
            value = decode(json, self._limits.nesting)
        except Undecodable as error:
            self._malformed(end, error.code, MALFORMED_CODES[error.code], "", raw)
            self._leave(end)
            return
        span = Span(self._start, self._base + end)
        name = self._name or ""
        self._events.append(
            Call(span, raw, self._index, name, value, source, self._entry.name, self._repairs, self._id)
        )
        self._index += 1
        self._calls += 1
        if self._tools is not None and name not in self._tools:
            self._unknown(span, name)
        self._contexts.pass_marker(raw)
        self._leave(end)

    def _leave(self, end: int) -> None:
        """Go on behind a call at index `end`."""
        self._reader = None
        self._at = end
        self._mode = _SECTION if self._section else _SOLE if self._sole else _TEXT

    # Between the calls of a section.

    def _in_section(self, final: bool) -> bool:
        entry = self._section
        if entry is None or entry.section is None:
            raise AssertionError("a section is being read")
        buffer, at = self._buffer, self._at
        section = entry.section
        full = self._calls >= self._limits.calls
        if self._between:
            between = section.next.match(buffer, at)
            if between is None:
                if not final and section.next.may_match(buffer, at):
                    return False
            elif between["closer"] is not None:
                self._markup(at, between.end())
            elif not full:
                self._markup(at, between.end())
                self._between = False
                return True
        elif not full:
            for head in section.heads:
                found = head.head.match(buffer, at)
                if found is not None:
                    self._between = True
                    self._begin(Entry("head", head.head, entry.dialect, head), found)
                    return True
                if not final and head.head.may_match(buffer, at):
                    return False
        self._section = None
        self._mode = _SOLE if self._sole else _TEXT
        return True

    # Behind a broken marker.

    def _break(self, code: str, expected: str, sound: int) -> None:
        """The marker can no longer be one. Go back to where the last token began, and look where to go on."""
        self._error = (code, expected, self._base + self._at)
        back = sound - self._base
        self._reread += self._at - back
        if back < 0:
            text = self._pieces.take()
            cut = len(text) + back
            self._pieces.append(text[:cut])
            self._buffer = text[cut:] + self._buffer
            self._base = sound
            back = 0
        self._at = back
        self._mode = _BROKEN

    def _in_broken(self, final: bool) -> bool:
        buffer, sound = self._buffer, self._at
        code, expected, position = self._error
        error = position - self._base
        limit = error + RECOVERY
        recovery = self._entry.patterns.recovery
        if self._section is not None and self._section.section is not None:
            recovery = self._section.section.resume or recovery
        hit, _ = self._search.next_entry(buffer, sound, self._base)
        found = recovery.search(buffer, error, limit + RECOVERY) if recovery is not None else None
        end = found.end() if found is not None and found.start() <= limit else -1
        if not final:
            begin = self._search.next_cut(buffer, sound, self._base)
            cut = begin < hit and (end < 0 or begin < end) and begin <= limit
            if cut or (hit >= len(buffer) and end < 0 and len(buffer) < limit + RECOVERY):
                if min(hit, begin) > error:  # nothing begins in the last token, so it need not be looked at again
                    self._at = error
                return False
        if hit <= error:
            end = hit
        elif end < 0 or hit < end:
            end = error
        found_text = repr(buffer[error : error + 1])[1:-1] if error < len(buffer) else "the end of the text"
        self._malformed(end, code, expected, found_text)
        self._leave(end)
        return True

    def _malformed(self, end: int, code: str, expected: str, found: str, raw: str | None = None) -> None:
        raw = self._raw(end) if raw is None else raw
        self._json = None
        at = min(self._error[2], self._base + end) - self._start if code == self._error[0] else len(raw)
        explained = self._explained < _EXPLAIN
        self._explained += 1
        dialect = self._entry.dialect
        message = explain(dialect, raw, at, code, expected, found, with_grammar=explained)
        index = None
        if self._begun:
            index = self._index
            self._index += 1
        span = Span(self._start, self._start + len(raw))
        self._events.append(Malformed(span, raw, code, message, dialect.name, index, self._name))
        self._contexts.pass_marker(raw)
        self._reader = None
        self._begun = False

    # Behind arguments over the limit: text, but what stands in its strings begins no marker.

    def _in_overflow(self) -> bool:
        reader = self._overflow
        if reader is None:
            raise AssertionError("arguments over the limit are being read")
        at = self._at
        stop = max(at, reader.feed(self._buffer, at, self._base))
        reader.out.clear()
        self._shown = self._passed = at
        self._show(stop)
        self._contexts.pass_marker(self._buffer[at:stop])
        self._at = stop
        if reader.status == OPEN:
            return False
        self._overflow = None
        self._leave(stop)
        return True

    # Behind a call that must be alone in its fence.

    def _in_sole(self, final: bool) -> bool:
        at = self._at
        fence = re.escape(self._sole[0]) + f"{{{len(self._sole)},}}+"
        blank_lines = r"[ \t]{0,64}+\r?\n(?:[ \t]{0,64}+\r?\n){0,8}+ {0,3}+"
        closing = Pattern(rf"{blank_lines}{fence}[ \t]{{0,64}}+(?=\r?\n)")
        alone = closing.match(self._buffer, at) is not None
        if not alone:
            if not final and closing.may_match(self._buffer, at):
                return False
            rest = self._buffer[at:]
            alone = final and re.fullmatch(rf"[ \t\r\n]*+|{blank_lines}{fence}[ \t\r\n]*+", rest) is not None
        if alone and [type(event) for event in self._events].count(Call) == 1 and not self._calls_broken():
            self._events = self._sole_events + self._events
            self._sole_events, self._sole = [], ""
        else:
            self._not_sole()
        self._mode = _TEXT
        return True

    def _calls_broken(self) -> bool:
        return any(isinstance(event, Malformed) for event in self._events)

    def _not_sole(self) -> None:
        """Something else stands in the fence: what was read of the call is text."""
        events, self._events = self._events, self._sole_events
        self._sole_events, self._sole = [], ""
        tiles = [event for event in events if isinstance(event, Call | Malformed | Markup)]
        raw = "".join(tile.raw for tile in tiles)
        span = Span(tiles[0].span.start, tiles[0].span.start + len(raw))
        self._events.append(Notice(span, *NOTICES["fence"]))
        self._events.append(Text(span, raw, self._channel))
        self._index -= sum(isinstance(event, CallStart) for event in events)
        self._calls -= sum(isinstance(event, Call) for event in events)

    def _take_events(self) -> list[Event]:
        """Return what is certain: not what a call that may not be alone in its fence has given so far."""
        if self._sole:
            events, self._sole_events = self._sole_events, []
        else:
            events, self._events = self._events, []
        return events
