"""The call that is read: from its head, over its arguments and its tail, to its `Call` or `Malformed`.

The ground on which `sections` and then `parser` stand, which finds the heads. What all work on is here: the text that
was not decided about, and where reading is in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from json import dumps
from json.encoder import encode_basestring as quoted
from operator import attrgetter
from typing import Final, TypeAlias

from callmark.dialects.notation import BLANKS
from callmark.errors import nearest
from callmark.events import (
    MALFORMED_CODES,
    ArgumentsDelta,
    Call,
    CallStart,
    Channel,
    Event,
    JsonValue,
    Malformed,
    Markup,
    Notice,
    Repair,
    Span,
    Text,
)
from callmark.reading import fast
from callmark.reading.arguments import ArgumentsReader
from callmark.reading.closers import DEPTH, KEY_BEHIND, Ending, endings, member_behind
from callmark.reading.contexts import Contexts
from callmark.reading.decoder import COUNTED, Undecodable, decode, decode_at, has_longer
from callmark.reading.diagnosis import CLOSER_BEHIND, explain, refused, word_at
from callmark.reading.entries import Entry, Stray, further
from callmark.reading.envelope import EnvelopeReader
from callmark.reading.matching import HOLD_LIMIT, Pattern
from callmark.reading.objects import ObjectReader, last_token
from callmark.reading.options import NOTICES, Limits, Remark, Tolerance
from callmark.reading.pairs import PairsReader
from callmark.reading.parameters import ParametersReader
from callmark.reading.patterns import behind_blanks, within_blanks
from callmark.reading.pieces import STRETCH, Pieces
from callmark.reading.scanner import Plan, Search
from callmark.reading.schemas import Parameters
from callmark.reading.status import DEAD, DONE, OPEN, STUCK, BodyReader, Fault, Terms
from callmark.reading.stops import is_held
from callmark.reading.values import ValueReader

Reader: TypeAlias = ObjectReader | PairsReader | ParametersReader | ValueReader

_GENERAL: Final[dict[str, type[ValueReader]]] = {"envelope": EnvelopeReader, "arguments": ArgumentsReader}

# What each call makes is looked up once: a name that the compiled engine imports costs it a look-up each time.
_call_start: Final = CallStart
_delta: Final = ArgumentsDelta
_call: Final = Call
_markup: Final = Markup
_span: Final = Span
_text: Final = Text

_LIMIT_WINDOW: Final = 16_384  # characters handed to a reader at once, where a chunk is longer than arguments may be
_OVERFLOW_WINDOW: Final = 64  # characters behind that limit that are read at once, or twice as many, and so on
_IN_KEY: Final = re.compile(r"[\w$@\-/\"]").match  # a key begins so behind its quote, and nothing behind a string
_MISSED: Final = 4096
"""Characters that may be read in vain beside as many as the text has: else each head may cost the rest of it."""
_EXPLAIN: Final = 8  # broken markers of a text that the grammar explains: hundreds of them are an attack, no diagnosis

_FAULT_SHOWN: Final = 40  # characters of a fault that a message names
_start_of: Final = attrgetter("span.start")
_FENCED_VALUE: Final = re.compile(">(?=```|~~~)")  # between tags, a value's first line counts as one
_BEFORE_OBJECT: Final = f"{BLANKS}{{"
_FIRST_KEY: Final = re.compile(r"(?:\{[ \t\r\n]{0,64}+[\"'“]?([\w.\-]{0,128}+)([^\w.\-])?)?").match
_NONE_BESIDE: Final[Mapping[str, Span]] = {}
# What refuses a call that is whole, by what stands behind it: a code, and words for its message.
_KEY_GOES_ON: Final = ("unexpected-text", "expected all arguments before the end of the call, found a key behind it")
_SPOKEN_OF: Final = ("unexpected-text", "expected a call alone, found text that goes on behind it, as if quoted")
_TOLD_TWICE: Final = ("bad-arguments", "expected the arguments once, found others behind them")
_LINE_END: Final = re.compile(r"[ \t]{0,16}+[\r\n]")

# The modes. Each has a line of its own, as the compiled engine looks up what it finds in a tuple.
IN_TEXT: Final = 0  # outside of markers
IN_CALL: Final = 1  # in the arguments of a call
IN_TAIL: Final = 2  # behind them, before what closes the marker
IN_SECTION: Final = 3  # between the calls of a section
IN_BROKEN: Final = 4  # behind a broken marker: where to go on
IN_OVERFLOW: Final = 5  # in arguments behind their limit
IN_SOLE: Final = 6  # behind a call that must be alone in its fence
IN_BEHIND: Final = 7  # behind a call, where a closer too many may stand
IN_LEAD: Final = 8  # where the text begins


class CallReading:
    """The state of reading, and the modes in which a call is read: each reads on from `_at` and says if it did."""

    __slots__ = (
        "_aside", "_at", "_base", "_begun", "_body", "_buffer", "_calls", "_channel", "_contexts", "_digits", "_entry",
        "_error", "_events", "_explained", "_finished", "_id", "_index", "_json", "_kept", "_kept_until",
        "_limit_told", "_limits", "_missed", "_mode", "_name", "_nameless", "_nesting", "_opener", "_pieces", "_plan",
        "_reader", "_recent", "_repairs", "_reread", "_room", "_room_end", "_salvages", "_search", "_shown",
        "_sole", "_sole_events", "_start", "_stops", "_stray", "_tolerant", "_tools", "_waits",
    )  # fmt: skip

    def __init__(
        self, plan: Plan, tolerance: Tolerance, tools: dict[str, Parameters] | None, limits: Limits
    ) -> None:
        self._plan = plan
        self._tolerant = tolerance != "strict"
        self._salvages = tolerance == "salvage"
        self._tools = tools
        self._limits = limits
        self._room = limits.arguments  # these three are asked for by each call: a look-up in a struct costs more
        self._nesting = limits.nesting
        self._digits = limits.digits
        self._search = Search(plan)
        self._contexts = Contexts()
        self._kept = self._contexts.kept
        self._kept_until = 0  # position behind which the chunks of a text, or of a call, are put together
        self._channel: Channel = "content"
        self._events: list[Event] = []
        self._finished = False
        self._mode = IN_LEAD
        self._buffer = ""  # what was not decided about
        self._base = 0  # position of the buffer's first character
        self._at = 0  # index of the buffer up to which it was read
        self._shown = 0  # in text: index up to which it was emitted
        self._reread = 0
        self._missed = 0  # characters that were looked at to read calls at once, in vain
        self._index = 0  # of the next call
        self._calls = 0
        self._explained = 0
        self._limit_told = False
        self._opener: Entry | None = None  # the entry whose section is read
        self._stray: Stray | None = None  # what is dropped that stands directly behind a call which has ended
        self._sole = ""  # the run of the fence whose only content must be the call that is read
        self._sole_events: list[Event] = []
        # The call that is read:
        self._entry: Entry = plan.first
        self._reader: Reader | None = None
        self._stops: Callable[[str], object] | None = None  # finds in a chunk what does not pass as it is
        self._waits: Callable[[str], object] | None = None  # tells of the buffer that it is still too short
        self._start = 0  # position of its first character
        self._body = 0  # position of its arguments' first character
        self._room_end = 0  # position that they must not go beyond
        self._pieces = Pieces()  # its text up to the buffer
        self._recent = self._pieces.recent
        self._json: Pieces | None = None  # its arguments as JSON, up to what was emitted; None where that is their text
        self._name: str | None = None
        self._nameless: tuple[Fault, ...] = ()  # that its head lacks the name
        self._id: str | None = None
        self._repairs: tuple[Repair, ...] = ()
        self._begun = False  # whether CallStart was emitted
        self._aside: bool | None = None  # whether arguments are shown when they end; None: what they begin with tells
        self._error: tuple[str, str, int] = ("", "", 0)  # code, what was expected, position

    def _begin(self, entry: Entry, found: re.Match[str]) -> None:
        """A head was read: a call begins."""
        base = self._base
        at = found.end()
        self._entry = entry
        self._start = base + found.start()
        self._body = base + at
        self._room_end = base + at + self._room
        self._kept_until = min(base + at + STRETCH, self._room_end)
        self._name = found["name"] if entry.has_name else None
        self._nameless = ()
        if entry.lacks_name:
            start, end = found.span("nameless")
            self._nameless = (Fault("missing-name", "the name of the tool", Span(base + start, base + end)),)
        self._id = found["id"] if entry.has_id else None
        self._repairs = entry.repairs(found, base) if entry.kind == "loose" else ()
        if self._repairs and self._name:
            self._name = self._name.replace("\\", "")
        self._begun = False
        self._aside = None if self._tools and self._tolerant else False
        self._json = None
        self._at = at
        if self._name is not None:
            self._start_call()
        if entry.has_empty and found["empty"] is not None:
            if self._begun:
                self._events.append(_delta(self._index, "{}"))
            self._end_call(at, self._raw(at), 0, 0)
            return
        self._mode = IN_CALL

    def _open(self) -> bool:
        """Choose the reader of the call's arguments; return whether their first characters are there to decide."""
        parts = self._entry.patterns
        buffer, at = self._buffer, self._at
        if parts.values is not None:
            self._reader = ParametersReader(parts.values, self._body, self._terms(), tolerant=self._tolerant)
            self._json = Pieces()
            return True
        begin = parts.begin
        if begin is not None and not self._nameless and (at == len(buffer) or buffer[at] in _BEFORE_OBJECT):
            found = begin.match(buffer, at)
            if found is not None:
                at = found.end()
                named = found.lastgroup == "name"
                if named:
                    self._name = found["name"]
                if self._aside is None and not self._look_inside(buffer, at) and not self._finished:
                    return False
                self._at = at
                if named:
                    self._start_call()
                self._reader = ObjectReader(self._base + at, self._nesting)
                return True
            if not self._finished and is_held(begin, buffer, at):
                return False
        self._json = Pieces()
        if parts.form.body == "arguments" and not self._entry.lined:
            self._reader = PairsReader(self._body, self._nesting, self._parameters())
        else:
            self._reader = self._general_reader()
        return True

    def _look_inside(self, json: str, at: int) -> bool:
        """Decide whether arguments, by what their JSON begins with at an index, may hold the tool's one level deeper.

        Such are shown when they end; others as they come. Return whether enough of them is there to decide.
        """
        parameters = self._parameters()
        self._aside = False
        if parameters is not None:
            found = _FIRST_KEY(json, at)
            key, closed = found.groups("")  # type: ignore[union-attr]  # nothing at all matches too
            if closed:
                self._aside = parameters.may_be_around(key)
            elif found.end() == len(json) and parameters.may_go_on(key):  # type: ignore[union-attr]
                self._aside = None
                return False
        return True

    def _parameters(self) -> Parameters | None:
        return self._tools.get(self._name) if self._tools and self._name else None

    def _terms(self) -> Terms:
        return Terms(self._nesting, self._parameters(), self._tools, self._plan.others, self._plan.line_heads)

    def _general_reader(self) -> ValueReader:
        form = self._entry.form
        return _GENERAL.get(form.body, ValueReader)(form, self._body, self._terms())

    def _open_string(self) -> int:
        """Return the position of the quote behind which the text of the arguments ends, -1 where they are in none."""
        reader = self._reader
        if isinstance(reader, ObjectReader) and reader.state[1]:
            return reader.start + last_token(self._so_far()[reader.start - self._start :])
        return reader.sound if isinstance(reader, ValueReader) and reader.in_string else -1

    def _hand_over(self, reader: ObjectReader | PairsReader) -> None:
        """Let the general reader go on: from here on the arguments are no plain JSON, or no plain pairs."""
        if isinstance(reader, PairsReader):
            self._hand_over_pairs(reader)
            return
        json = self._so_far()[reader.start - self._start :]
        state, in_string = reader.state
        last = last_token(json)
        self._json = Pieces()
        self._json.append(json)
        form = self._entry.form
        self._reader = _GENERAL.get(form.body, ValueReader).behind(
            form,
            reader.start,
            self._terms(),
            reader.frames,
            state,
            sound=reader.start + last,
            quote='"' if in_string else "",
            opened=json[last + 1 :],
            name=self._name,
        )
        self._mode = IN_CALL

    def _hand_over_pairs(self, reader: PairsReader) -> None:
        if not reader.keys:
            self._reader = self._general_reader()
            return
        self._reader = ArgumentsReader.behind_key(
            self._entry.form,
            reader.start,
            self._terms(),
            reader.frames,
            reader.state,
            sound=reader.sound,
            quote=reader.quote,
            opened=self._so_far()[reader.opened - self._start :],
            keys=reader.keys,
        )

    def _read_at_once(self, entry: Entry, found: re.Match[str], start: int) -> int:
        """Read a call that is there to its end, where `fast` knows how: the closing literal is a first guess at it.

        `start` is where `found` begins. Returns the index behind the call, -1 where it was not read: then the
        incremental readers decide.
        """
        buffer = self._buffer
        at = found.end()
        if at >= len(buffer) or self._missed > self._base + at + _MISSED:
            return -1
        guess = -1
        literal = entry.guess
        if literal and entry.decoded and buffer[at] in _BEFORE_OBJECT:
            guess = buffer.find(literal, at, at + COUNTED)
            if guess < 0:
                guess = self._search.next_literal(literal, buffer, at)
                if guess >= len(buffer):
                    return -1
        elif literal and self._search.last_literal(literal, buffer) < at:
            return -1
        name = found["name"] if entry.has_name else ""
        value = None
        if entry.simple and buffer[at] == "{" and buffer[guess - 1] == "}" and guess - at <= COUNTED and (
            not entry.has_empty or found.lastgroup != "empty"  # such a marker is complete, whatever comes behind it
        ):
            source = json = buffer[at:guess]
            try:
                value = decode(source, self._nesting)
            except Undecodable as error:
                if not error.cut:  # cut: the guessed end stands in a string
                    self._reread += error.reached
                    return -1
            end = guess + entry.closing
        if value is None:
            if entry.has_empty and found["empty"] is not None:
                return -1
            parameters = self._tools.get(name) if self._tools else None
            read = fast.read(entry.patterns, buffer, at, guess, self._nesting, parameters)
            if isinstance(read, int):
                missed = min(read, len(buffer)) - at
                self._reread += missed
                self._missed += missed
                return -1
            named, source, json, value, end = read
            name = name or named
        tool = self._tools.get(name) if self._tools else None
        if end - at > self._room or (tool is not None and tool.is_odd(value)):
            return -1
        if has_longer(value, self._digits):
            return -1
        parts = entry.patterns
        if self._tolerant and parts.tail_begins and not (parts.fenced and buffer.startswith(("\n", "\r"), end)):
            return -1  # see `_opens_another`
        raw = buffer[start:end]
        index = self._index
        base = self._base
        span = _span(base + start, base + end)
        call_id = found["id"] if entry.has_id else None
        dialect = entry.name
        self._events += (
            _call_start(index, name, dialect),
            _delta(index, json),
            _call(span, raw, index, name, value, source, dialect, (), call_id),
        )
        self._index = index + 1
        self._calls += 1
        if self._tools is not None and name not in self._tools:
            self._unknown(span, name)
        self._contexts.pass_marker(raw, anew=entry.anew)
        return end

    def _in_call(self) -> bool:
        if self._reader is None and not self._open():
            return False
        reader = self._current()
        buffer, at, base = self._buffer, self._at, self._base
        room = self._room_end - base - at
        windowed = len(buffer) - at > room
        if windowed:
            window = buffer[at : at + min(room, _LIMIT_WINDOW)]
            stop = at + reader.feed(window, 0, base + at)
        else:
            stop = reader.feed(buffer, at, base)
        self._at = stop
        if isinstance(reader, ObjectReader):
            if stop > at and self._aside is False:
                self._events.append(ArgumentsDelta(self._index, buffer[at:stop]))
        else:
            self._preview(reader)
        if reader.status == DONE:
            self._mode = IN_TAIL
            return True
        if isinstance(reader, (ObjectReader, PairsReader)):
            cut = self._finished and isinstance(reader, PairsReader)  # it may hold a bracket; an object would be copied
            if reader.status == STUCK or (windowed and room <= _LIMIT_WINDOW) or cut:
                self._hand_over(reader)
                return True
            return windowed
        if reader.status == DEAD:
            if isinstance(reader, ValueReader) and (due := reader.due) is not None and len(due) <= DEPTH:
                if reader.split >= 0:
                    self._go_back(reader.split)
                return self._end_otherwise(reader, due)
            self._break(reader.code, reader.expected, reader.sound, reader.error)
            return True
        if windowed and room <= _LIMIT_WINDOW:
            self._malformed(stop, "arguments-too-long", f"at most {self._room} characters", "more")
            if self._sole:
                self._not_sole()
            self._mode = IN_OVERFLOW
            return True
        return windowed

    def _current(self) -> Reader:
        if self._reader is None:
            raise AssertionError("a call is being read")
        return self._reader

    def _preview(self, reader: PairsReader | ValueReader | ParametersReader) -> None:
        if not self._begun:
            if reader.name is None:
                return
            self._name = reader.name
            self._start_call()
        if reader.out and self._json is not None:
            json = "".join(reader.out)
            if self._aside is None and not self._look_inside(json, 0):
                return
            reader.out.clear()
            self._json.append(json)
            if self._aside is False:
                self._events.append(_delta(self._index, json))

    def _start_call(self) -> None:
        self._events.append(_call_start(self._index, self._name or "", self._entry.name))
        self._begun = True

    def _tail(self) -> Pattern | None:
        """What closes the marker behind what the reader of its arguments has read."""
        parts = self._entry.patterns
        return parts.closing if isinstance(self._reader, ObjectReader) else parts.tail

    def _in_tail(self) -> bool:
        reader = self._current()
        parts = self._entry.patterns
        tail = self._tail()
        bracketed = isinstance(reader, ObjectReader) and parts.bracketed
        end = self._at
        if tail is not None:
            found = tail.match(self._buffer, end)
            if found is None:
                if is_held(tail, self._buffer, end) and not (self._finished and bracketed):
                    return False
                if isinstance(reader, ObjectReader) and bracketed:
                    self._hand_over(reader)
                    return True
                return self._end_otherwise(reader, "")
            if self._tolerant and parts.tail_begins:
                stop = found.end() - len(found[0].lstrip(BLANKS)) + 1 if bracketed else end
                tag = found.end() - len(self._buffer[stop : found.end()].lstrip(BLANKS))
                begins = self._opens_another(tag, found.end())
                if begins is None:
                    return False
                if begins:
                    place = self._base + stop
                    self._complete(reader, stop, (Repair("missing-closer", Span(place, place)),))
                    return True
            end = found.end()
        elif isinstance(reader, ValueReader) and reader.holds_none and not isinstance(reader, EnvelopeReader):
            behind = self._buffer[end : end + 1]
            if not behind and not self._finished:
                return False
            if _IN_KEY(behind) is not None:  # the quote is the first one of another call's arguments
                self._break_end(end)
                return True
        wrong = self._wrong_behind(reader, end)
        if wrong is None:
            return False
        if wrong:
            self._error = (*wrong, self._base + end)
            self._malformed(end, *wrong, "")
            self._leave(end)
        else:
            self._complete(reader, end)
        return True

    def _wrong_behind(self, reader: Reader, end: int) -> tuple[str, str] | tuple[()] | None:
        """Return as what the marker, which ends at an index, is refused for what stands behind it, and none of which
        is its own: a code, and what was expected and found; () for nothing. None if more text must tell.
        """
        parts, buffer = self._entry.patterns, self._buffer
        member = None
        if isinstance(reader, ParametersReader) and reader.supplied:
            member = member_behind(parts.form.closer)
        elif isinstance(reader, ValueReader) and reader.dropped and parts.tail is None:
            member = KEY_BEHIND
        for pattern in (member, parts.behind):
            if pattern is None:
                continue
            if not self._finished and pattern.may_match(buffer, end):
                return None
            found = pattern.match(buffer, end)
            if found is None or found.lastgroup == "passes":
                continue
            if found.lastgroup == "again":
                return self._told_again(reader, found.end())
            return _KEY_GOES_ON if pattern is member else _SPOKEN_OF
        return ()

    def _told_again(self, reader: Reader, at: int) -> tuple[str, str] | tuple[()] | None:
        """As `_wrong_behind`, where the object at an index must be empty, or the same as the arguments."""
        again = self._buffer[at : at + HOLD_LIMIT]
        try:
            value = decode_at(again, 0, self._nesting)[0]
        except Undecodable as error:
            return None if error.cut and len(again) < HOLD_LIMIT else _SPOKEN_OF
        source = self._so_far()[reader.start - self._start :] if self._json is None else self._json.text()
        try:
            told = decode(source, self._nesting)
        except Undecodable:  # where the call ends, it is refused for that
            return ()
        same = not value or dumps(value, sort_keys=True) == dumps(told, sort_keys=True)
        return () if same else _TOLD_TWICE

    def _marker_begins(self, at: int) -> bool | None:
        """Return whether a marker begins at index `at`, None if more text must tell: nothing before it is searched."""
        buffer, search = self._buffer, self._search
        if not self._finished and search.next_cut(buffer, at) == at:
            return None
        if search.next_entry(buffer, at) != at:
            return False
        matched = search.entry_at(buffer, at, final=self._finished)
        return None if matched is None else matched[0].kind != "tag"

    def _opens_another(self, tag: int, end: int) -> bool | None:
        """Return whether what stands between two indexes, and was taken for the tail, opens another marker or fence.

        None if more text must tell. A fence's run that is alone on its line closes.
        """
        buffer, parts = self._buffer, self._entry.patterns
        if parts.fenced and _LINE_END.match(buffer, end) is not None:
            return False
        other = parts.other_fence
        if other is not None and other.match(buffer, tag) is not None:
            return True
        if other is not None and not self._finished and other.may_match(buffer, tag):
            return None
        return self._marker_begins(tag)

    def _end_otherwise(self, reader: Reader, due: str) -> bool:
        """Read an ending that is not as the dialect wants it, `due` being the brackets that are open; or break."""
        buffer, at, base = self._buffer, self._at, self._base
        section = self._opener.section if self._opener is not None else None
        inside = isinstance(reader, ValueReader) and reader.status == DEAD and reader.inside
        complete = isinstance(reader, EnvelopeReader) and reader.complete
        ways = endings(self._entry.form, section, due, inside, self._finished, complete)
        ending = ways.ending(buffer, at, base)
        begins = ending is not None and ending.tag >= 0 and self._marker_begins(ending.tag)
        if begins and ending is not None:
            missing = Repair("missing-closer", Span(base + at, base + at))
            ending = None if ending.cut else Ending(at, (missing,), more=False, closed=(at,) * len(due))
        if ending is not None and ending.more and not self._goes_on(reader, ending.stop):
            ending = None
        elif begins is None or (ending is None and not begins and ways.may_end(buffer, at)):
            return False
        if ending is not None and isinstance(reader, ValueReader) and reader.status == DEAD:
            reader.close(at, base, ending.closed)
            self._preview(reader)
        if ending is None or reader.status == DEAD:
            if isinstance(reader, ValueReader) and reader.status == DEAD:
                self._break(reader.code, reader.expected, reader.sound, reader.error)
            else:
                self._break_end(at)
            return True
        self._complete(reader, ending.stop, ending.repairs)
        if ending.more:
            self._begin_further(ending.stop)
        return True

    def _begin_further(self, at: int) -> None:
        """Another call of the marker stands at index `at`."""
        if self._calls >= self._limits.calls:
            place = self._base + at
            self._events.append(Notice(Span(place, place + 1), *self._told_limit()))
            return
        entry = further(self._entry)
        found = entry.pattern.match(self._buffer, at)
        if found is None:
            raise AssertionError("the brace of another call is there")
        self._begin(entry, found)

    def _goes_on(self, reader: Reader, at: int) -> bool:
        """Whether another call of the marker stands at index `at`; of an argument list only salvage takes one, by the
        name of a tool that was given.
        """
        if isinstance(reader, EnvelopeReader):
            return not reader.lacks(self._buffer, at)
        if self._entry.form.body != "arguments":
            return True
        found = further(self._entry).pattern.match(self._buffer, at)
        return self._salvages and self._tools is not None and found is not None and found["name"] in self._tools

    def _complete(self, reader: Reader, end: int, repairs: tuple[Repair, ...] = ()) -> None:
        """The marker ends at index `end`, for which `repairs` were made behind its arguments."""
        if not isinstance(reader, ObjectReader):
            self._id = reader.id or self._id
            self._repairs += tuple(reader.repairs)
        self._repairs += repairs
        if "missing-closer" in self._entry.form.repairs:
            place = self._base + end
            self._repairs += (Repair("missing-closer", Span(place, place)),)
        if len(self._repairs) > 1:
            self._repairs = tuple(sorted(self._repairs, key=_start_of))
        raw = self._raw(end)
        begin, behind = within_blanks(raw, reader.start - self._start, reader.end - self._start)
        beside = reader.beside.keys if isinstance(reader, EnvelopeReader) else _NONE_BESIDE
        self._end_call(end, raw, begin, behind, beside)

    def _end_call(
        self, end: int, raw: str, begin: int, behind: int, beside: Mapping[str, Span] = _NONE_BESIDE
    ) -> None:
        """The marker `raw` is complete: decode its arguments, whose text stands between two of its indexes, or nowhere.

        `beside` is as in `_decoded`. A long call takes memory for little more than what it leaves behind: no text is
        copied before it is needed.
        """
        source = raw[begin:behind] if self._json is None else ""
        value, refusal = self._decoded(source, beside, raw, begin)
        if refusal is not None:
            self._malformed(end, *refusal, raw)
            self._leave(end)
            return
        name = self._name or ""
        source = source or raw[begin:behind]
        span = _span(self._start, self._base + end)
        self._events.append(
            _call(span, raw, self._index, name, value, source, self._entry.name, self._repairs, self._id)
        )
        self._index += 1
        self._calls += 1
        if self._tools is not None and name not in self._tools:
            self._unknown(span, name)
        self._contexts.pass_marker(raw, anew=self._entry.anew)
        self._leave(end)
        if self._mode == IN_TEXT:
            self._look_behind(self._entry)

    def _decoded(
        self, source: str, beside: Mapping[str, Span], raw: str, begin: int
    ) -> tuple[JsonValue, tuple[str, str, str] | None]:
        """Return the arguments, and None; or, where the call is refused, with what: a code, and in words what was
        expected and found.

        `source` is their text, where that is JSON; they begin at an index of the marker `raw`. `beside` are keys of
        members beside them, and their places: none may be a parameter of the tool that they lack. A call with a fault
        is refused. Strict reading has read it as lenient reading does, so as to know where it ends, and refuses what
        was mended, too.
        """
        if self._faults() or (self._repairs and not self._tolerant):
            return None, ("unexpected-text", "", "")
        json = source or "{}" if self._json is None else self._json.take()
        try:
            value = decode(json, self._nesting, spares_memory=True)
        except Undecodable as error:
            if error.key is not None:
                return None, (error.code, f"expected each key once, found {quoted(error.key[:80])} twice", "")
            return None, (error.code, MALFORMED_CODES[error.code], "")
        parameters = self._parameters()
        if self._aside and parameters is not None:
            inner = parameters.inner(value, self._nesting)
            if inner is not None:
                key, value = inner
                place = self._start + max(begin, raw.find(key, begin))
                repair = Repair("key-spelling", Span(place, place + len(key)))
                self._repairs = tuple(sorted((*self._repairs, repair), key=_start_of))
                json = dumps(value, ensure_ascii=False)
            self._events.append(ArgumentsDelta(self._index, json))
        if has_longer(value, self._digits):
            return None, ("bad-number", f"expected integers of at most {self._digits} digits", "")
        refusal = parameters.refusal(value, beside) if parameters is not None else None
        if refusal is None:
            return value, None
        expected, key = refusal
        at = raw.find(key, begin if key in value else beside[key].start - self._start)
        self._error = "bad-arguments", expected, self._start + max(at, 0)
        return None, ("bad-arguments", expected, key[:_FAULT_SHOWN])

    def _look_behind(self, entry: Entry) -> None:
        """A call of an entry, or its section, has ended, and text follows: see whether a closer too many does."""
        self._stray = stray = entry.stray
        behind = stray is not None and stray.may_follow(self._buffer, self._at) is not None
        self._mode = IN_BEHIND if behind else IN_TEXT

    def _unknown(self, span: Span, name: str) -> None:
        near = nearest(name, self._tools or {})
        message = f"no tool {quoted(name)} was given" + (f"; did it mean {quoted(near)}?" if near else "")
        self._events.append(Notice(span, "unknown-tool", message))

    def _over_limit(self) -> Remark:
        """Return the Notice that says that the limit of calls is reached; () where it was said."""
        return () if self._limit_told else self._told_limit()

    def _told_limit(self) -> tuple[str, str]:
        """Return that Notice, which is thereby said."""
        self._limit_told = True
        return "too-many-calls", f"the limit of {self._limits.calls} calls is reached: later markers are text"

    def _leave(self, end: int) -> None:
        """Go on behind a call at index `end`."""
        self._reader = None
        self._at = end
        self._mode = IN_SECTION if self._opener else IN_SOLE if self._sole else IN_TEXT

    def _so_far(self) -> str:
        """Return the text of the call up to where it was read."""
        return self._pieces.text() + self._buffer[max(self._start - self._base, 0) : self._at]

    def _raw(self, end: int) -> str:
        """Return the text of the call up to index `end`, and forget it."""
        if self._start >= self._base:
            return self._buffer[self._start - self._base : end]
        self._recent.append(self._buffer[:end])
        return self._pieces.take()

    def _markup(self, at: int, stop: int) -> None:
        if stop > at:
            raw = self._buffer[at:stop]
            self._events.append(_markup(_span(self._base + at, self._base + stop), raw))
            self._contexts.pass_marker(raw)
        self._at = self._shown = stop

    def _show(self, stop: int) -> None:
        """Emit the text up to index `stop`."""
        start = self._shown
        if stop > start:
            base = self._base
            text = self._buffer[start:stop]
            self._events.append(_text(_span(base + start, base + stop), text, self._channel))
            self._shown = stop

    def _break(self, code: str, expected: str, sound: int, error: int) -> None:
        """The marker can no longer be one, because of what stands at position `error`, here for -1.

        Go back to where the last token began, and look where to go on.
        """
        self._error = (code, expected, error if error >= 0 else self._base + self._at)
        self._go_back(sound)
        self._mode = IN_BROKEN

    def _go_back(self, place: int) -> None:
        """Read again from position `place` of the marker on."""
        back = place - self._base
        self._reread += self._at - back
        if back < 0:
            text = self._pieces.take()
            cut = len(text) + back
            self._pieces.append(text[:cut])
            self._buffer = text[cut:] + self._buffer
            self._search.reset(final=self._finished)
            self._base = place
            back = 0
        self._at = back

    def _break_end(self, at: int) -> None:
        """Behind the arguments, which end at index `at`, stands something else than the end of the marker."""
        reader = self._reader
        if isinstance(reader, ValueReader) and reader.holds_none:  # and was perhaps never closed
            self._break("bad-arguments", "an object, the arguments", reader.start, reader.start)
            return
        waited = self._entry.patterns.blanks  # else not all may be there
        error = behind_blanks(self._buffer, at) if waited else at
        expected = self._closing_words()
        for tag in self._entry.patterns.tail_tags:
            if not self._buffer.startswith(tag, error):
                break  # nor is one behind it asked for, which may not all be there yet
            error = behind_blanks(self._buffer, error + len(tag))
            expected = f'{CLOSER_BEHIND} "{tag}"'
        self._break("unexpected-text", expected, self._base + at, self._base + error)

    def _closing_words(self) -> str:
        """Say what is expected behind the arguments."""
        return f"the end of the marker, as in {self._entry.dialect.title}"

    def _malformed(
        self, end: int, code: str, expected: str, found: str, raw: str | None = None, *, closed: bool = True
    ) -> None:
        """Emit what is wrong with the marker, which ends at index `end`; `closed`: with a closer of its own.

        Where it has none, what it holds behind its head may be text that it has swallowed: fences open and close there,
        unless they may be the marker's own.
        """
        raw = self._raw(end) if raw is None else raw
        self._json = None
        at = self._error[2] - self._start if code == self._error[0] else len(raw)
        wrong = self._first_wrong(raw) if code != "arguments-too-long" else None
        if wrong is not None:
            (code, expected, span), found = wrong
            at = span.start - self._start
        explained = self._explained < _EXPLAIN
        self._explained += 1
        dialect = self._entry.dialect
        message = explain(dialect, raw, at, code, expected, found, with_grammar=explained)
        index = None
        if self._begun:
            index = self._index
            self._index += 1
        whole = Span(self._start, self._start + len(raw))
        self._events.append(Malformed(whole, raw, code, message, index, self._name, dialect.name))
        behind = len(raw) if closed else self._entry.patterns.swallowed(raw)
        self._contexts.pass_marker(raw[:behind], anew=closed and self._entry.anew)
        swallowed = raw[behind:]
        if self._entry.form.body == "parameters":
            swallowed = _FENCED_VALUE.sub(">\n", swallowed)
        self._contexts.pass_text(swallowed)
        fence = self._entry.patterns.open_fence(raw)
        if fence or not closed:
            self._contexts.owe(fence)

    def _faults(self) -> Sequence[Fault]:
        """Return what was found wrong in the call that is read, and passed by."""
        reader = self._reader
        return (*self._nameless, *(reader.faults if isinstance(reader, BodyReader) else ()))

    def _first_wrong(self, raw: str) -> tuple[Fault, str] | None:
        """Return what the marker `raw` is refused for, and what stands there; None where it broke for other reasons.

        That is its first fault or, in strict reading, a repair before it.
        """
        start, end = self._start, self._start + len(raw)
        fault = min((fault for fault in self._faults() if fault.span.end <= end), key=_start_of, default=None)
        if not self._tolerant:
            reader = self._reader
            made = reader.repairs if isinstance(reader, BodyReader) else ()
            repairs = [repair for repair in (*self._repairs, *made) if repair.span.end <= end]
            repair = min(repairs, key=_start_of, default=None)
            if repair is not None and (fault is None or repair.span.start <= fault.span.start):
                found = word_at(raw, repair.span.start - start, len(raw), "the end of the marker")
                return Fault(*refused(repair.code, found), repair.span), found
        if fault is None:
            return None
        at, stop = fault.span.start - start, fault.span.end - start
        words = raw[at : min(stop, at + _FAULT_SHOWN)].strip() if stop > at + 1 else ""
        if " " in words:  # in quotes, or it reads as if it were words of the message
            return fault, f'"{words}"'
        return fault, words or word_at(raw, at, stop, "")

    def _in_overflow(self) -> bool:
        """Read what stands behind the limit, in the same windows however it comes: what is shown is not taken back.

        So where a reader dies of what it took before, reading goes on at the same place.
        """
        reader = self._reader
        if not isinstance(reader, ValueReader | ParametersReader):
            raise AssertionError("arguments over the limit are being read")
        at, base = self._at, self._base
        size = len(self._buffer) - at
        window = _OVERFLOW_WINDOW
        stop = at
        while stop == at and reader.status == OPEN:
            if size < window and not self._finished:
                return False
            stop = max(at, at + reader.feed(self._buffer[at : at + window], 0, base + at))
            if size <= window and stop == at and reader.status == OPEN:
                return False
            window *= 2
        reader.out.clear()
        self._shown = at
        self._show(stop)
        if stop > at:  # else a line that begins here would begin no more
            self._contexts.pass_marker(self._buffer[at:stop])
        self._at = stop
        if reader.status != OPEN:
            self._leave(stop)
        return True

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
        dropped = [event.code for event in events if isinstance(event, Notice)]
        self._limit_told = self._limit_told and "too-many-calls" not in dropped
