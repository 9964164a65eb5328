"""Turns chunks into events. There is no second parser for whole texts: `parse` is `feed` and `finish`.

The parser is in one of a few modes, the `IN_*` of `calls`: where the text begins, in text, and in a fence of a call's
own (here); in a call, behind its arguments, and over the limit (in `calls`); between the calls of a section, behind
them, and behind a broken marker (in `sections`). It keeps the text that it has not decided about (bounded outside
of a call) and the text of the call that it is in; nothing that was emitted is ever taken back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, Final

from callmark.dialects.fences import BYTE_ORDER_MARK, TOKEN
from callmark.dialects.limits import check_nonce
from callmark.dialects.notation import BLANKS, BLANKS_LIMIT, named_tool
from callmark.dialects.thoughts import PROMPT, Thoughts, close_thought, end_thoughts, mention, open_thought
from callmark.errors import UsageError, check_flags
from callmark.events import (
    ArgumentsDelta,
    Call,
    Event,
    Malformed,
    Notice,
    Repair,
    Span,
    Text,
)
from callmark.reading.calls import (
    IN_BEHIND,
    IN_BROKEN,
    IN_CALL,
    IN_LEAD,
    IN_OVERFLOW,
    IN_SECTION,
    IN_SOLE,
    IN_TAIL,
    IN_TEXT,
    Reader,
)
from callmark.reading.contexts import Context
from callmark.reading.diagnosis import unclosed_string, word_at
from callmark.reading.entries import Entry, section_heads
from callmark.reading.envelope import EnvelopeReader
from callmark.reading.matching import HOLD_LIMIT, Pattern
from callmark.reading.objects import ObjectReader
from callmark.reading.options import (
    DEFAULT_LIMITS,
    NOTICES,
    ContextPolicy,
    Dialects,
    Limits,
    Remark,
    Tolerance,
    checked_limits,
    checked_policies,
)
from callmark.reading.patterns import behind_blanks
from callmark.reading.pieces import STRETCH
from callmark.reading.scanner import TOLD_BY, plan
from callmark.reading.schemas import known_tools
from callmark.reading.sections import SectionReading
from callmark.reading.status import DONE, HELD, OPEN
from callmark.reading.values import ValueReader

_IN_MARKER: Final = (IN_CALL, IN_TAIL, IN_BROKEN)
_WAYS: Final = {"opens": open_thought, "closes": close_thought, "answers": end_thoughts}
"""What a tag does with thoughts, by its group."""
# What each chunk makes is looked up once: a name that the compiled engine imports costs it a look-up each time.
_text: Final = Text
_delta: Final = ArgumentsDelta
_span: Final = Span
_NO_POLICIES: Final[Mapping[str, str]] = {}
_CLOSE_LOOK: Final = 256  # characters: up to here a chunk is looked at place by place, cheaper for a few places


class Parser(SectionReading):
    """Reads calls out of a text that comes in chunks of any size. One parser for one text.

    >>> from callmark import Call, CallStart, Parser
    >>> parser = Parser()
    >>> [event.name for event in parser.feed('Hi [CALL: greet({"who": "Mi') if isinstance(event, CallStart)]
    ['greet']
    >>> [event.arguments for event in parser.feed('a"})]') if isinstance(event, Call)]
    [{'who': 'Mia'}]
    >>> list(parser.finish())
    []

    Options (keyword only): `dialects`, names or Dialects, default (and "default" beside others) all with an explicit
    opener, without hermes where "-hermes" is named; `tools`, names or schemas in any usual shape; `tolerance`,
    "strict", "lenient" or "salvage"; `contexts`, a mapping of "fence", "code", "quote", "reasoning" to "text" (default)
    or "allow", for "fence" also "sole"; `starts_in_reasoning`, whether the prompt has opened reasoning already;
    `nonce`, without which no marker is a call; `limits`.

    Model text never raises. Time is linear in the text; memory is some kilobytes outside of a call, and a small
    multiple of the call's text inside one. Not safe for use by several threads at once.
    """

    __slots__ = (
        "__weakref__",
        "_guarded",
        "_hit",
        "_left",
        "_left_place",
        "_mentioned",
        "_nonce",
        "_other_sign",
        "_sign",
        "_text_start",
        "_thought_start",
        "_thoughts",
    )  # fmt: skip

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
            raise UsageError(f'tolerance: expected "strict", "lenient" or "salvage", found {tolerance!r:.80}')
        if nonce is not None:
            check_nonce(nonce)
        if starts_in_reasoning is not False:
            check_flags(starts_in_reasoning=starts_in_reasoning)
        bounds = DEFAULT_LIMITS if limits is None else checked_limits(limits)
        policies = _NO_POLICIES if contexts is None else checked_policies(contexts)
        known = None if tools is None else known_tools(tools)
        super().__init__(plan(dialects, tolerance), tolerance, known, bounds, policies)
        self._nonce = nonce
        self._guarded = nonce is not None or starts_in_reasoning  # whether every marker must be looked at closely
        self._thoughts: Thoughts = {}
        if starts_in_reasoning:
            open_thought(self._thoughts, PROMPT)
            self._channel = "reasoning"
        self._mentioned = 0  # tags in code that stands in a thought: see `mention`
        self._left: Context | None = None  # the context of an opener that was left as text; the position behind it
        self._left_place = -1
        self._text_start = 0  # position behind a mark of the byte order
        self._thought_start = 0  # and behind blanks, where the prompt has opened a thought
        self._hit = -1  # index of an entry that `feed` has found in the buffer
        self._sign, self._other_sign = self._plan.two  # two `in` cost a third of a search

    def __copy__(self) -> Parser:
        """A copy shares no state: two that went on in the same marker would each read pieces of the other's."""
        return deepcopy(self)

    @property
    def steps(self) -> int:
        """How many characters were looked at so far, those that were looked at again included: the measure of law 7."""
        return self._base + self._at + self._reread

    def feed(self, chunk: str) -> Sequence[Event]:
        """Read the next chunk and return the events that are certain now. Chunks may be cut anywhere.

        Raises UsageError after `finish`, and for anything but a str.
        """
        stops = self._stops
        if stops is not None and type(chunk) is str and chunk:  # in text, or in a string of a call: most chunks
            start = self._base
            end = start + len(chunk)
            if self._mode == IN_TEXT:
                plain = self._sign not in chunk and self._other_sign not in chunk and chunk.isascii()
                if plain or stops(chunk) is None:
                    self._base = end
                    self._kept.append(chunk)
                    if end > self._kept_until:
                        self._kept_until = end + STRETCH
                        self._contexts.read()
                    return (_text(_span(start, end), chunk, self._channel),)
            elif end <= self._kept_until:
                found = stops(chunk)
                json = chunk if found is None else "" if found is HELD else self._current().rewritten(chunk)
                if json is not None:
                    self._base = end
                    self._recent.append(chunk)
                    if not json:
                        return ()
                    if self._json is not None:
                        self._json.recent.append(json)
                    return (_delta(self._index, json),)
        if type(chunk) is not str:
            if not isinstance(chunk, str):
                raise UsageError(f"feed: expected a str, found {type(chunk).__name__}")
            chunk = str.__str__(chunk)  # `str` of a member of an enumeration is its name
        if self._finished:
            raise UsageError("feed: the parser was finished; expected a new Parser for a new text")
        if not chunk:
            return ()
        base, held = self._base, self._buffer
        if held:
            self._reread += len(held)
            chunk = held + chunk
            waits = self._waits
            if waits is not None and len(chunk) <= HOLD_LIMIT and waits(chunk) is not None:
                self._buffer = chunk
                return ()
        mode = self._mode
        if mode == IN_BEHIND and self._stray is not None and self._stray.may_follow(chunk) is None:
            self._mode = mode = IN_TEXT
        if mode == IN_LEAD and not self._leads(chunk[0]):
            self._mode = IN_TEXT
            self._stops = self._plan.stops
            return self.feed(chunk)  # the short way above, as from now on
        if mode == IN_TEXT:
            plan = self._plan
            stop, cut = -1, True
            sign = plan.any(chunk)
            if sign is not None:
                if len(chunk) <= _CLOSE_LOOK:
                    stop, cut = plan.first_in(chunk, sign.start())
                    cut = cut or stop < 0
                    self._hit = -1 if cut else stop
                else:
                    cut = False
            if cut:
                self._stops = None
                if stop >= 0:
                    self._buffer = chunk[stop:]
                    self._waits = plan.waits
                    if not stop:
                        return ()
                    chunk = chunk[:stop]
                else:
                    self._buffer = ""
                    self._stops = plan.stops
                self._base = end = base + len(chunk)
                self._contexts.pass_text(chunk)
                return (_text(_span(base, end), chunk, self._channel),)
        elif mode == IN_CALL and not self._sole and base + len(chunk) <= self._room_end:
            reader = self._reader
            at = 0
            if reader is None:
                self._buffer = chunk
                if not self._open():
                    self._waits = self._held_by(0)
                    return ()
                reader, at = self._current(), self._at
            if self._begun:
                stop = reader.feed(chunk, at, base)
                if reader.status == OPEN:
                    return self._went_on(chunk, at, stop, reader)
                if stop > at and type(reader) is ObjectReader:
                    if self._aside is False:
                        self._events.append(ArgumentsDelta(self._index, chunk[at:stop]))
                    self._mode = IN_TAIL if reader.status == DONE else IN_CALL
                self._at = stop
        self._buffer = chunk
        self._stops = None
        self._search.reset()
        self._advance()
        return self._take_events()

    def _went_on(self, chunk: str, at: int, stop: int, reader: Reader) -> Sequence[Event]:
        """The reader of the call has read from index `at` to `stop` of `chunk`: keep it, and return what comes out."""
        self._at = 0
        if stop == len(chunk):
            self._buffer = ""
            self._stops = reader.stops if self._aside is False else None
            piece = chunk
        else:
            self._buffer = chunk[stop:]
            self._stops = None
            self._waits = reader.waits
            if not stop:
                return ()
            piece = chunk[:stop]
        self._base += stop
        self._recent.append(piece)
        json = self._json
        if self._base >= self._kept_until:
            self._kept_until = min(self._base + STRETCH, self._room_end)
            self._pieces.fold()
            if json is not None:
                json.fold()
        if self._aside is not False:
            if not isinstance(reader, ObjectReader):
                self._preview(reader)
            return self._take_events()
        if json is not None and not isinstance(reader, ObjectReader):
            out = reader.out
            if not out:
                return self._take_events() if self._events else ()
            piece = out[0] if len(out) == 1 else "".join(out)
            out.clear()
            json.append(piece)
        elif at:
            piece = piece[at:]
        if self._events:
            self._events.append(ArgumentsDelta(self._index, piece))
            return self._take_events()
        return (_delta(self._index, piece),)

    def finish(self) -> Sequence[Event]:
        """Say that the text is over and return the last events. What is cut is Malformed, never a Call.

        For salvage a call of a given tool whose arguments have ended is not cut: it lacks its closer and nothing else.
        Raises UsageError when called twice.
        """
        if self._finished:
            raise UsageError("finish: the parser was finished; expected a new Parser for a new text")
        return self._end("")

    def _end(self, text: str) -> Sequence[Event]:
        """Read the last chunk: feed and finish in one, as a whole text need not be held back first."""
        self._finished = True
        self._buffer += text
        if not self._buffer and (self._mode == IN_TEXT or self._mode == IN_LEAD):
            self._stops = None
            return []
        if self._mode == IN_LEAD and not self._leads(self._buffer[:1]):
            self._mode = IN_TEXT
        self._search.reset(final=True)
        self._advance()
        self._stops = None
        return self._take_events()

    # The engine. Each mode reads on from `_at` and says whether there is more to do.

    def _advance(self) -> None:
        while True:
            mode = self._mode
            if mode == IN_TEXT:
                more = self._in_text()
            elif mode == IN_CALL:
                more = self._in_call()
            elif mode == IN_TAIL:
                more = self._in_tail()
            elif mode == IN_SECTION:
                more = self._in_section()
            elif mode == IN_BROKEN:
                more = not (self._finished and self._is_cut_in_its_head()) and self._in_broken()
            elif mode == IN_OVERFLOW:
                more = self._in_overflow()
            elif mode == IN_BEHIND:
                more = self._in_behind()
            elif mode == IN_LEAD:
                more = self._in_lead()
            else:
                more = self._in_sole()
            if not more:
                if not self._finished or self._mode == IN_TEXT:
                    break
                if not self._goes_on_to_the_end():
                    self._cut()
        at = self._at
        mode = self._mode
        if mode in _IN_MARKER:
            start = self._start - self._base
            self._pieces.append(self._buffer[start if start > 0 else 0 : at])
        self._base += at
        self._buffer = self._buffer[at:]
        self._at = self._shown = 0
        if self._buffer:
            self._waits = self._held_by(at)
            return
        self._waits = None
        if mode == IN_TEXT:
            self._stops = self._plan.stops
        elif mode == IN_CALL and self._begun and not self._sole and self._reader is not None and self._aside is False:
            self._stops = self._reader.stops

    def _held_by(self, at: int) -> Callable[[str], object] | None:
        """Return the `waits` of the pattern whose match the text that is held may begin; None where none decides.

        The text was held at index `at` of the buffer in which things were searched.
        """
        mode = self._mode
        pattern = None
        if mode == IN_TAIL:
            pattern = self._tail()
        elif mode == IN_CALL and self._reader is None:
            pattern = self._entry.patterns.begin
        elif mode == IN_SECTION and self._opener is not None and self._opener.section is not None:
            pattern = self._opener.section.next if self._between else section_heads(self._opener)[0].pattern
        elif mode == IN_SOLE:
            pattern = _closing_fence(self._sole)[0]
        elif mode == IN_BROKEN and self._search.cut == at:
            return self._plan.waits  # `_may_end_otherwise` waits for what may begin a marker
        return None if pattern is None else pattern.waits

    def _goes_on_to_the_end(self) -> bool:
        """Tell the reader of an envelope that no more text comes; return whether it has not been told before."""
        reader = self._reader
        if self._mode != IN_CALL or not isinstance(reader, EnvelopeReader) or reader.final:
            return False
        reader.final = True
        return True

    def _is_cut_in_its_head(self) -> bool:
        """Whether the text ends within the head of a call that a shorter head seems to begin, and is wrong there."""
        start = self._start - self._base
        if len(self._buffer) - start > HOLD_LIMIT:
            return False
        raw = self._pieces.text() + self._buffer if start < 0 else self._buffer[start:]
        heads: Sequence[Entry] = ()
        if self._opener is not None:
            heads = section_heads(self._opener)
        elif raw[0] in self._plan.entries:
            heads = self._plan.entries_at(raw[:TOLD_BY])
        return any(head.kind != "refused" and head.pattern.may_match(raw, 0) for head in heads)

    def _cut(self) -> None:
        """The text is over inside a marker, which is thereby unclosed."""
        whole = self._salvages and self._reached_closer()
        size = len(self._buffer)
        if self._mode == IN_OVERFLOW:
            self._shown = self._at  # else what stands before it in the same chunk would be shown twice
            self._show(size)
        elif whole:
            place = self._base + self._at
            self._complete(self._current(), size, (Repair("missing-closer", Span(place, place)),))
        else:
            string = self._open_string()
            rest = "the rest of the marker" if string < 0 else unclosed_string(string - self._start)
            self._error = ("unclosed-marker", rest, self._base + size)
            wrong = None if self._tolerant else self._wrong_before_the_end()
            self._error = wrong or self._error
            found = word_at(self._buffer, self._error[2] - self._base, size, "the end of the text")
            self._malformed(size, *self._error[:2], found)
        self._opener = None
        self._leave(size)

    def _wrong_before_the_end(self) -> tuple[str, str, int] | None:
        """Return what is wrong in the place of a closer that lenient reading would have mended, had more text come."""
        tail = self._tail() if self._mode == IN_TAIL else None
        if tail is not None and not tail.may_match(self._buffer, self._at):
            return "unexpected-text", self._closing_words(), self._base + self._at
        reader = self._reader
        if self._mode == IN_CALL and isinstance(reader, ValueReader) and reader.code:
            return reader.code, reader.expected, self._base + self._at
        return None

    def _reached_closer(self) -> bool:
        """Return whether a call of a given tool lacks nothing at the text's end but its closer."""
        if self._tools is None or self._name not in self._tools:
            return False
        tail = self._entry.patterns.tail
        return self._mode == IN_TAIL and tail is not None and tail.may_match(self._buffer, self._at)

    # In text: looking for an entry.

    def _leads(self, character: str) -> bool:
        """Whether `_in_lead` looks for something that begins with this character."""
        return character in self._plan.leading or (character in BLANKS and PROMPT in self._thoughts)

    def _in_lead(self) -> bool:
        """Where the text begins, behind a mark of the byte order, a marker may begin that the prompt has begun; behind
        blanks the model may repeat the tag with which the prompt has opened a thought.
        """
        leads, buffer = self._plan.leads, self._buffer
        if not self._base and buffer[0] == BYTE_ORDER_MARK:
            self._text_start = self._at = 1
            self._show(1)
        at = self._at
        behind = len(buffer) - len(buffer[at:].lstrip(BLANKS)) if PROMPT in self._thoughts else at
        self._thought_start = self._base + behind
        if leads is not None and leads.match(buffer, at) is not None:
            if self._search.entry_at(buffer, at, final=self._finished) is None:
                return False  # what goes before it may begin there, too
            self._hit = at
        elif leads is not None and not self._finished and leads.may_match(buffer, at):
            return False
        elif behind == len(buffer) and not self._finished:
            stop = min(behind, self._search.next_cut(buffer, at))
            if self._search.next_entry(buffer, at) > stop:  # a row of one's own may begin with a blank
                self._show(stop)
                self._contexts.pass_text(buffer[at:stop])
                self._at = stop
                return False
        self._mode = IN_TEXT
        return True

    def _in_text(self) -> bool:
        final = self._finished
        buffer, at, base = self._buffer, self._at, self._base
        contexts, search = self._contexts, self._search
        size = len(buffer)
        limit = self._limits.calls
        self._shown = passed = at
        hit, self._hit = self._hit, -1
        while True:
            found = None
            if hit < 0:  # else `feed` has found it
                if final or size - at > _CLOSE_LOOK:
                    hit = search.next_entry(buffer, at)
                    if hit > at:
                        begin = size if final else search.next_cut(buffer, at)
                        if begin < hit or hit >= size:
                            return self._wait_in_text(min(begin, size), passed)
                    cursor = search.cursor
                    entry, found = cursor.entry, cursor.match
                else:
                    sign = self._plan.any(buffer, at)
                    hit, cut = (size, True) if sign is None else self._plan.first_in(buffer, sign.start())
                    if hit < 0 or cut:
                        return self._wait_in_text(size if hit < 0 else hit, passed)
            if found is None:
                matched = search.entry_at(buffer, hit, final=final)
                if matched is None:
                    return self._wait_in_text(hit, passed)
                entry, found = matched
            text = buffer[passed:hit]
            context = contexts.look(text)
            misplaced = False
            if entry.special:
                passed = hit
                while misplaced := self._misplaced(entry, found):  # another one may begin here
                    matched = search.entry_at(buffer, hit, final=final, behind=entry)
                    if matched is None:
                        self._show(hit)
                        return self._wait_in_text(hit, passed)
                    if matched[0] is entry:
                        break
                    entry, found = matched
            kind = entry.kind
            if context == "fence" and not misplaced and TOKEN.match(found[0]) and contexts.end_fence():
                context = None
            if contexts.code_tags and context is None and kind != "quoting" and base + hit < contexts.code_tags_end:
                context = "code"
            if context is None and base + hit == self._left_place:  # the marker goes on on another line
                context = self._left
            if entry.special:
                read = False if misplaced else self._special(entry, found, context)
                if read:
                    return True
                if read is not None:
                    at, hit = hit + 1, -1
                    continue
            if (
                context is not None
                or self._guarded
                or self._calls >= limit
                or (entry.has_nonce and found["nonce"] is not None)
            ):
                passed = hit
                if context is None and self._channel == "reasoning" and not self._looked_for_answer(hit):
                    self._show(hit)
                    return self._wait_in_text(hit, passed)
                refusal = self._refusal(entry, found, context)
                if refusal is not None:
                    at = self._refuse(entry, found, context, refusal)
                    if at < 0:
                        return self._wait_in_text(hit, passed)
                    hit = -1
                    continue
            start = self._shown
            if start < hit:
                shown = text if start == passed else buffer[start:hit]
                self._events.append(_text(_span(base + start, base + hit), shown, self._channel))
                self._shown = hit
            if kind == "head" and not self._sole:
                at = self._read_at_once(entry, found, hit)
                if at >= 0:
                    self._shown = passed = at
                    hit = -1
                    stray = entry.stray
                    if (
                        stray is not None
                        and (at >= size or buffer[at] in stray.begins)
                        and stray.may_follow(buffer, at) is not None
                    ):
                        self._at = at
                        self._look_behind(entry)
                        return True
                    continue
            if self._sole:
                self._sole_events, self._events = self._events, []
            if kind == "opener":
                self._markup(hit, found.end())
                self._opener = entry
                self._between = entry.section is not None and not entry.section.separated
                self._mode = IN_SECTION
                more = self._in_section()
                if self._mode != IN_TEXT:
                    return more
                self._shown = passed = at = self._at
                hit = -1
                continue
            self._begin(entry, found)
            return True

    def _special(self, entry: Entry, found: re.Match[str], context: Context | None) -> bool | None:
        """Look at an entry that may be no marker: return whether it was read; None for a marker."""
        if entry.kind == "tag":
            return self._tag(entry, found, context)
        if entry.kind == "quoting":
            if context is None and self._channel == "content":
                self._contexts.pass_code_tag(self._base + found.end(), found["tag"], opens=found["closes"] is None)
            return False
        return None

    def _misplaced(self, entry: Entry, found: re.Match[str]) -> bool:
        """Whether an entry begins only where the text or a line does, and not here, or names no tool that was given."""
        before = self._base + found.start() - self._text_start
        if entry.text_start and before:
            return True
        if entry.line_start and not self._contexts.at_line_start(entry.form.indent, before):
            return True
        return entry.salvage and not self._known(found)

    def _refuse(self, entry: Entry, found: re.Match[str], context: Context | None, refusal: Remark) -> int:
        """Leave a marker as text and say why: return the index where to go on, -1 where more text must tell."""
        base, hit, end = self._base, found.start(), found.end()
        opener = entry.kind == "opener"
        if opener and context is not None:
            behind = behind_blanks(self._buffer, end)
            if behind == len(self._buffer) and not self._finished and behind - end < BLANKS_LIMIT:
                self._show(hit)
                return -1
            self._left, self._left_place = context, base + behind
        if refusal and not _leaves_it_to_calls(entry):
            self._show(hit)
            self._events.append(Notice(Span(base + hit, base + max(end, hit + 1)), *refusal))
        return end if opener else hit + 1

    def _known(self, found: re.Match[str]) -> bool:
        """Whether a head that only salvage takes names a tool that was given."""
        return self._tools is not None and named_tool(found.groupdict()) in self._tools

    def _wait_in_text(self, stop: int, passed: int) -> bool:
        """Emit the text up to index `stop`, of which the contexts know what stands before `passed`."""
        self._at = stop
        start = self._shown
        if stop > passed:
            text = self._buffer[passed:stop]
            self._contexts.pass_text(text)
            if start != passed:
                text = self._buffer[start:stop]
            self._events.append(_text(_span(self._base + start, self._base + stop), text, self._channel))
        return False

    def _tag(self, entry: Entry, found: re.Match[str], context: Context | None) -> bool:
        """Read a tag, which opens or closes reasoning, or neither; return whether it is one: in code it is text.

        In code within reasoning one closes that, as code may never end in a thought; but not where it is spoken of.
        """
        thoughts, way = self._thoughts, found.lastgroup
        if context is not None:
            mentioned = mention(self._mentioned, way) if thoughts else 0
            if mentioned >= 0:
                self._mentioned = mentioned
                return False
        if way == "opens" and self._base + found.start() == self._thought_start:
            thoughts.clear()  # the model repeats the tag that the prompt has opened
        self._show(found.start())
        if way is not None:
            self._think(way, entry)
        self._markup(found.start(), found.end())
        self._contexts.reset()
        self._mentioned = 0
        return True

    def _think(self, way: str, tag: Entry) -> None:
        """A tag opens, closes or ends thoughts of its kind."""
        thoughts, kind = self._thoughts, self._plan.thoughts[tag.form.head]
        if way == "answers" and kind not in thoughts and self._plan.of_one_kind:
            kind = PROMPT
        _WAYS[way](thoughts, kind)
        self._channel = "reasoning" if thoughts else "content"
        self._guarded = self._nonce is not None or bool(thoughts)

    def _looked_for_answer(self, hit: int) -> bool:
        """End the thoughts in which a marker stands if it begins an answer; return False where more text must tell."""
        for tag in self._plan.answers:
            found = tag.pattern.match(self._buffer, hit)
            if found is None and not self._finished and tag.pattern.may_match(self._buffer, hit):
                return False
            if found is not None and found.lastgroup == "answers":
                self._show(hit)
                self._think("answers", tag)
                break
        return True

    def _refusal(self, entry: Entry, found: re.Match[str], context: Context | None) -> Remark | None:
        """Return why a marker is left as text, None if it is read."""
        nonce = found["nonce"] if entry.has_nonce else None
        if nonce != self._nonce:
            return "unknown-nonce", "a marker with another nonce, or with none, is not a call"
        if self._channel == "reasoning" and self._policies.get("reasoning") != "allow":
            return NOTICES["reasoning"]
        if context is not None:
            if self._policies.get(context) == "sole" and self._contexts.sole_fence:
                self._sole = self._contexts.sole_fence
            elif (quoted := self._quoted_in(context, self._contexts)) is not None:
                return NOTICES[quoted]
        if self._calls >= self._limits.calls:
            self._sole = ""
            return () if _leaves_it_to_calls(entry) else self._over_limit()
        return None

    # Behind a call that must be alone in its fence.

    def _in_sole(self) -> bool:
        at = self._at
        closing, last = _closing_fence(self._sole)
        alone = closing.match(self._buffer, at) is not None
        if not alone and closing.may_match(self._buffer, at):
            if not self._finished:
                return False
            alone = last.fullmatch(self._buffer, at) is not None
        kinds = [type(event) for event in self._events]
        if alone and kinds.count(Call) == 1 and Malformed not in kinds:
            self._events = self._sole_events + self._events
            self._sole_events, self._sole = [], ""
        else:
            self._not_sole()
        self._mode = IN_TEXT
        return True

    def _take_events(self) -> list[Event]:
        """Return what is certain: not what a call that may not be alone in its fence has given so far."""
        if self._sole:
            events, self._sole_events = self._sole_events, []
        else:
            events, self._events = self._events, []
        return events


def events_of(
    text: object,
    dialects: Dialects,
    tools: Any,
    tolerance: Tolerance,
    contexts: Mapping[str, ContextPolicy] | None,
    starts_in_reasoning: bool,
    nonce: str | None,
    limits: Limits | None,
) -> Sequence[Event]:
    """Return the events of a whole text, with the options of `parse`.

    It stands here because the compiled engine makes a parser sooner where nobody else hands the options over by name.
    """
    parser = Parser(
        dialects=dialects,
        tools=tools,
        tolerance=tolerance,
        contexts=contexts,
        starts_in_reasoning=starts_in_reasoning,
        nonce=nonce,
        limits=limits,
    )
    if not isinstance(text, str):
        raise UsageError(f"parse: expected a str, found {type(text).__name__}")
    # `str` of a member of an enumeration is its name.
    return parser._end(text if type(text) is str else str.__str__(text))


@lru_cache(maxsize=64)
def _closing_fence(opened: str) -> tuple[Pattern, re.Pattern[str]]:
    """Return the patterns of what closes the fence behind a call in it: where text follows, and, of what may still
    become that, where the text ends.
    """
    fence = re.escape(opened[0]) + f"{{{len(opened)},}}+"
    blank_lines = r"[ \t]{0,64}+\r?\n(?:[ \t]{0,64}+\r?\n){0,8}+ {0,3}+"
    closing = Pattern(rf"{blank_lines}{fence}[ \t]{{0,64}}+(?=\r?\n)")
    return closing, re.compile(rf"[ \t\r\n]*+(?:{fence}[ \t\r]*+)?")


def _leaves_it_to_calls(entry: Entry) -> bool:
    """Whether an entry is left as text without a word: the calls behind it may stand alone, so each is told of."""
    return entry.kind == "opener" and entry.form.alone
