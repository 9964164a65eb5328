"""What comes behind a call: the next call of its section, or, behind a broken marker, the place where reading goes on.

Between `calls.CallReading`, which reads a call, and `parser.Parser`, which reads the text around markers.

How reading goes on after a broken marker. A marker is broken where no continuation can make it one, and nobody can tell
how it would go on (else it is read to its end and refused there, see the faults of `values`). `Malformed` never reaches
beyond the next opener. That is looked for from the beginning of the last token before the error on, as an unclosed
string may have swallowed one. Up to there `Malformed` ends at the first of these:

1. the marker's own tail, within RECOVERY characters;
2. the brackets that close what is open, if only members stand between the wrong value and them;
3. that opener, if it begins before the error;
4. the error.

So a broken call never swallows a good one, and as the tokens that are read again hold no closing quote of their own
kind, every character is read again at most once for each kind of quote.

- In a list of calls the last token may also have swallowed the next call: from its beginning on brackets are looked
  for behind which a separator and the next head stand. `Malformed` ends behind them, and the list goes on; if none
  comes within RECOVERY characters the list is over, and the rest of it is text. A comma that is missing between two
  calls is supplied behind a sound one only.
- The next head of a section begins no call where what the broken one has swallowed quotes it, as code or in a block
  quote: heads in text are looked at in the same way.
- Where the text ends inside a marker that could still be completed, everything to the end belongs to it: what stands in
  the strings of a call that was cut is data and is not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from callmark.dialects.notation import BLANKS, BLANKS_LIMIT
from callmark.events import NOTICE_CODES, Notice, Repair, Span
from callmark.reading.calls import IN_SECTION, IN_SOLE, IN_TEXT, CallReading
from callmark.reading.closers import DEPTH
from callmark.reading.contexts import Context, Contexts
from callmark.reading.diagnosis import word_at
from callmark.reading.entries import Entry, section_heads
from callmark.reading.matching import Pattern
from callmark.reading.options import Limits, Tolerance
from callmark.reading.parameters import ParametersReader
from callmark.reading.patterns import FENCE_RUN, Section
from callmark.reading.scanner import Plan
from callmark.reading.schemas import Parameters
from callmark.reading.status import DONE
from callmark.reading.stops import is_held
from callmark.reading.values import ValueReader

RECOVERY: Final = 256
"""Characters behind an error in which the marker's tail is looked for: a line or two, so that prose stays text."""
_STRAY: Final = "stray-closer"
_SEPARATED: Final = 144  # characters of what closes a call of a list, and of what stands before the next
_NOTHING: Final = re.compile("(?!)")
_CLOSER: Final = re.compile(r"[)}\]]").search
_LINES: Final = re.compile(r"[\"'\r]|\\[nr]|(?<=```)(?=[)}\],])")  # where a string's line may begin, or end
_BEGUN_LINE: Final = re.compile(r"(?:\\|`++)\Z")  # what may be the beginning of that
_SUPPLIED: Final = {"joined": "missing-comma", "doubled": "extra-comma", "closed": "extra-closer"}
"""What is repaired before a call, by group of `patterns.Section.loose`."""


def _in_pairs(content: str) -> str:
    """Return the pattern of such content, and of brackets in pairs around it."""
    return rf"(?:{content}|\{{{content}*+\}}|\[{content}*+\]|\({content}*+\))"


_STRING: Final = r"\"[^\"\\{}\[\]()<>\r\n]{0,64}+\""  # which may hold a backtick
_WRONG: Final = rf"(?:{_STRING})?[^\"'`{{}}\[\]()<>\r\n]{{0,64}}+"  # a value
_MEMBERS: Final = (
    _in_pairs(_in_pairs(rf"(?:{_STRING}|[^{{}}\[\]()<>`\"\r\n]++|\"|\r?\n[ \t]{{0,64}}+(?=[\"}}\]]))")) + "*+"
)
_BLANKS: Final = r"[ \t\r\n]{0,64}+"
_MORE: Final = f'(?:{_BLANKS},(?={_BLANKS}"){_MEMBERS})?+'


_UNPAIRED: Final = Pattern(rf"(?:{_MORE}{_BLANKS}\}}){{1,{DEPTH}}}+")
"""Braces behind those that close what is open, and members before them: where a quote is missing, what opened them
stands in a string.
"""


@lru_cache(maxsize=1024)
def _value_and(closers: str) -> re.Pattern[str]:
    """Return the pattern of a wrong value, and members behind it, up to these closers; one that never matches for none
    of them, or too many.

    Of brackets it holds pairs alone: another one could be that of something within the value. Prose has `)`, too, so
    before one no quote stands, either.
    """
    if not 0 < len(closers) <= DEPTH:
        return _NOTHING
    rest = "".join((_MORE if closer in "}]" else "") + _BLANKS + re.escape(closer) for closer in closers[1:])
    return re.compile((_MEMBERS if closers[0] in "}]" else _WRONG) + _BLANKS + re.escape(closers[0]) + rest)


def _may_resume(resume: Pattern, buffer: str, at: int, end: int) -> bool:
    """Return whether `resume` may match between the indexes `at` and `end` of the buffer once more text has come."""
    found = _CLOSER(buffer, at, end)
    while found is not None:
        if resume.may_match(buffer, found.start()):
            return True
        found = _CLOSER(buffer, found.end(), end)
    return False


def _behind_blanks(found: re.Match[str]) -> int:
    """Return the index behind the blanks with which a match begins."""
    return found.end() - len(found[0].lstrip(BLANKS))


class _Broke(NamedTuple):
    """Where a marker broke, as indexes of the buffer."""

    sound: int  # of the last token, which may have swallowed something
    error: int  # of what is wrong
    limit: int  # up to where it may begin
    hit: int  # of the next entry, or the next call of the section behind a whole body
    begun: int  # of what may become such a call
    blank: bool  # whether only blanks stand before what is wrong: it is text then


class _Swallowed:
    """What a broken call of a section may have swallowed, up to `_at`: whether a call behind it is quoted there.

    Nobody can tell which of its strings are whole. So a call counts as quoted only where it is in all of the text since
    the call began, and in that since the last token, too, which may be where it went wrong. Each quote may begin or end
    a string, and code is in one only; it has its lines, written as escapes or not.
    """

    def __init__(self, begun: str) -> None:
        """Take the call up to its last token."""
        self._ways = [Contexts(), Contexts()]
        self._ways[0].pass_text(_LINES.sub("\n", begun))
        self._cut = ""  # what is read with what comes behind it

    def go_on(self, text: str) -> None:
        """Take more text."""
        text = self._cut + text
        cut = _BEGUN_LINE.search(text)
        self._cut = cut[0] if cut is not None else ""
        text = _LINES.sub("\n", text.removesuffix(self._cut))
        for contexts in self._ways:
            contexts.pass_text(text)

    def copy(self) -> _Swallowed:
        """Return another one at the same place."""
        other = _Swallowed("")
        other._ways = [contexts.copy() for contexts in self._ways]
        other._cut = self._cut
        return other

    def quotes(self, quoted_in: Callable[[Context | None, Contexts], Context | None]) -> bool:
        """Whether a call that begins behind this text is quoted."""
        return all(quoted_in(contexts.here(), contexts) is not None for contexts in self._ways)


class SectionReading(CallReading):
    """The modes behind a call, or behind what was to be one."""

    __slots__ = ("_between", "_broke", "_clear", "_mended", "_policies", "_solid", "_swallowed", "_swallows")

    def __init__(
        self,
        plan: Plan,
        tolerance: Tolerance,
        tools: dict[str, Parameters] | None,
        limits: Limits,
        policies: Mapping[str, str],
    ) -> None:
        super().__init__(plan, tolerance, tools, limits)
        self._policies = policies  # what is done with markers in a context
        self._mended = ""  # code of the repair before the next call of the section, which is recorded on it
        self._between = False  # whether a separator or the section's closer comes next, not a call
        self._broke = False  # whether the last call of the section was broken: nothing is supplied behind it
        self._solid = False  # whether more than white space stood between the last sound place and the error
        self._clear = 0  # position before which no marker begins behind the last sound place
        self._swallows = False  # whether it had no end of its own, and may have swallowed what opens code, say
        self._swallowed: _Swallowed | None = None  # by the broken call, up to `_at`

    # Between the calls of a section.

    def _in_section(self) -> bool:
        entry = self._opener
        if entry is None or entry.section is None:
            raise AssertionError("a section is being read")
        more = True
        while more and self._mode == IN_SECTION:
            more = self._read_between(entry, entry.section) if self._between else self._read_head(entry)
        return more

    def _read_between(self, entry: Entry, section: Section) -> bool:
        """Read what leads to the next call of a section, or closes it; where neither is there, the section is over."""
        buffer, at = self._buffer, self._at
        if not self._finished and is_held(section.next, buffer, at):
            return False
        between = section.next.match(buffer, at)
        if between is None and section.again is not None and self._broke:
            between = section.again.match(buffer, at)
        strict = between is not None
        if section.goes_on and not self._finished and section.next.may_match(buffer, at):
            return False
        if not strict and (self._tolerant or section.closes):
            between = section.loose.match(buffer, at)
            if not self._finished and section.loose.may_match(buffer, at):  # of brackets there may be more
                return False
        if between is None:
            bracket = section.bracket.match(buffer, at) if section.bracket is not None and not self._broke else None
            if bracket is not None:  # the tag that should close the list is missing, or is another
                self._markup(at, bracket.end())
            return self._end_section(entry)
        kind = between.lastgroup or ""
        closes = kind == "closer"
        if closes and entry.line_start:  # a fence; that of the next section is none
            start = _behind_blanks(between)
            if entry.pattern.match(buffer, start) is not None:
                return self._end_section(entry, closed=True)
            if not self._finished and entry.pattern.may_match(buffer, start):
                return False
        if not closes and self._calls >= self._limits.calls:
            if remark := self._over_limit():
                place = self._base + between.end()
                self._events.append(Notice(Span(place, place + 1), *remark))
            return self._end_section(entry)
        mended = _SUPPLIED.get(kind, "")
        if mended == "missing-comma" and self._broke:
            return self._end_section(entry)
        if closes and not strict and not self._broke:  # no call follows that could carry a repair
            place = self._base + _behind_blanks(between)
            code = "extra-separator" if between.groupdict().get("separator") is not None else _STRAY
            self._events.append(Notice(Span(place, place + 1), code, NOTICE_CODES[code]))
        self._markup(at, between.end())
        if closes:
            return self._end_section(entry, closed=True)
        self._broke = self._between = False
        self._mended = mended
        return True

    def _read_head(self, entry: Entry) -> bool:
        """Begin the next call of a section, or read it at once; where none is there, the section is over."""
        buffer, at = self._buffer, self._at
        for head in section_heads(entry):
            found = head.pattern.match(buffer, at)
            if found is not None:
                if self._swallows and self._quoted_in(self._contexts.here(), self._contexts) is not None:
                    break  # what was swallowed opens code, say, in which this head stands
                self._swallows = False
                self._between = True
                if head.kind == "head" and not self._mended:
                    end = self._read_at_once(head, found, at)
                    if end >= 0:
                        self._at = end
                        return True
                self._begin(head, found)
                if self._mended:
                    self._repairs = (Repair(self._mended, Span(self._start, self._start)), *self._repairs)
                    self._mended = ""
                return True
            if not self._finished and is_held(head.pattern, buffer, at):
                return False
        return self._end_section(entry)

    def _end_section(self, entry: Entry, *, closed: bool = False) -> bool:
        """Go on behind a section; `closed`: by a closer of its own, else what its opener opened may still be open."""
        run = None if closed else FENCE_RUN.search(entry.form.opener)
        if run is not None:
            self._contexts.owe(run[0])
        self._opener = None
        self._broke = self._swallows = False
        if self._sole:
            self._mode = IN_SOLE
        else:
            self._look_behind(entry)
        return True

    # Behind a call, or a section.

    def _in_behind(self) -> bool:
        buffer, at = self._buffer, self._at
        stray = self._stray
        if stray is None:
            raise AssertionError("what is dropped behind a call is known")
        if not self._finished and stray.pattern.may_match(buffer, at):  # the end of a closer may be optional
            return False
        found = stray.pattern.match(buffer, at)
        if found is None:
            self._mode = IN_TEXT
            return True
        start, end = found.span("stray")
        begins = self._marker_begins(start)
        if begins is None:
            return False
        if begins:
            self._mode = IN_TEXT
            return True
        self._events.append(Notice(Span(self._base + start, self._base + end), _STRAY, NOTICE_CODES[_STRAY]))
        self._markup(at, end)
        return True

    # Behind a broken marker.

    def _resumed_by(self, section: Section | None) -> Pattern | None:
        """Return the pattern of what leads from a broken call of a section to the next; None where nothing does.

        A line break does so only behind all the brackets that are open, and not in a string: code has such lines, too.
        """
        if section is None:
            return None
        if section.separated:
            return section.resume
        reader = self._reader
        if not isinstance(reader, ValueReader) or reader.died_in_string or len(reader.closers) > DEPTH:
            return None
        return section.resume_behind(len(reader.closers))

    def _quoted_in(self, context: Context | None, contexts: Contexts) -> Context | None:
        """Return that of the contexts of a place in which a marker there is left as text, None where it is read."""
        if context is None or self._policies.get(context) != "allow":
            return context
        return "code" if contexts.in_code and self._policies.get("code") != "allow" else None

    def _resumes(self, section: Section, resume: Pattern, far: int) -> re.Match[str] | None:
        """Return the first match of `resume` from `_at` on behind which a call is not quoted in what was swallowed."""
        buffer, at = self._buffer, self._at
        found = resume.search(buffer, at, far)
        swallowed: _Swallowed | None = None
        while found is not None:
            if swallowed is None:
                swallowed = self._so_far_swallowed().copy()
            between = section.next.match(buffer, found.end())
            head = found.end() if between is None else between.end()
            swallowed.go_on(buffer[at:head])
            if not swallowed.quotes(self._quoted_in):
                return found
            at = head
            found = resume.search(buffer, at, far)
        return None

    def _so_far_swallowed(self) -> _Swallowed:
        if self._swallowed is None:
            self._swallowed = _Swallowed(self._so_far())
        return self._swallowed

    def _closed_by(self) -> re.Pattern[str]:
        """Return the pattern of a value that is wrong, up to the brackets that close what is open around it."""
        reader = self._reader
        if not isinstance(reader, ValueReader) or (reader.died_in_string and reader.closers[:1] == ")"):
            return _NOTHING
        return _value_and(reader.closers[: DEPTH + 1])

    def _in_broken(self) -> bool:
        """End a broken marker where the module says; False until that place is certain."""
        buffer = self._buffer
        code, expected, position = self._error
        place = position - self._base
        section = self._opener.section if self._opener is not None else None
        resume = self._resumed_by(section)
        broke = self._where_it_broke(place)
        hit = broke.hit
        tail, end, sure = self._tail_of_broken(broke, section, resume)
        if not self._finished and self._may_end_otherwise(broke, resume, tail, end, sure):
            return False
        if tail <= hit < end:
            matched = self._search.entry_at(buffer, hit, final=self._finished)
            if matched is None:
                return False
            if matched[0].kind == "tag":  # what closes a message closes the call, which is one
                hit = end
        if not 0 <= end <= hit:
            end = self._end_without_tail(broke.error, min(hit, broke.limit), end)
        closed = 0 <= end <= hit
        if not closed:
            again = section.again if section is not None and hit <= broke.limit else None
            if again is not None and not self._finished and again.may_match(buffer, hit):
                return False
            if hit <= broke.error or (again is not None and again.match(buffer, hit) is not None):
                end = hit
            else:
                end = broke.sound if broke.blank else broke.error
        end = max(end, self._start - self._base + 1)  # a head of nothing but a look-ahead is passed, too: see `begun`
        swallows = self._opener is not None and not closed
        if swallows and self._entry.form.body != "parameters":
            swallowed = self._so_far_swallowed()
            swallowed.go_on(buffer[broke.sound : end])
            swallows = swallowed.quotes(self._quoted_in)
        before = self._pieces.text()
        text, place = before + buffer, len(before) + place
        found_text = word_at(text, place, len(before) + end, "the end of the text")
        self._malformed(end, code, expected, found_text, closed=closed)
        self._broke = self._opener is not None
        self._swallows = swallows
        self._solid = False
        self._swallowed = None
        self._leave(end)
        return True

    def _end_without_tail(self, error: int, limit: int, end: int) -> int:
        """Return where brackets, or what stands in place of its tail, end a marker that broke; `end` for nowhere."""
        buffer = self._buffer
        found = self._closed_by().match(buffer, error, limit)
        if found is not None:
            section = self._opener.section if self._opener is not None else None
            if found[0][-1] == "}" and (section is None or section.next.match(buffer, found.end(), limit) is None):
                found = _UNPAIRED.match(buffer, found.end(), limit) or found
            end = error = found.end()
        other = self._entry.patterns.other_end
        closer = other.match(buffer, error, limit) if other is not None else None
        return closer.end() if closer is not None else end

    def _where_it_broke(self, place: int) -> _Broke:
        """Return where the marker broke: what is wrong in it stands at index `place`."""
        sound = self._at
        error = max(place, sound)  # a value that is wrong was read with its closer
        hit = self._search.next_entry(self._buffer, max(sound, self._clear - self._base))
        begun = hit
        section = self._opener.section if self._opener is not None else None
        reader = self._reader
        if section is not None and section.within is not None and reader is not None and (
            reader.status == DONE or isinstance(reader, ParametersReader)  # else a string may hold its head
        ):
            another = section.within.find(self._buffer, error, error + RECOVERY)
            if another is not None:
                begun = min(hit, another.at)
                hit = begun if another.certain else hit
        blank = not (self._solid or self._buffer[sound:error].strip(BLANKS))
        return _Broke(sound, error, error + RECOVERY, hit, begun, blank)

    def _tail_of_broken(self, broke: _Broke, section: Section | None, resume: Pattern | None) -> tuple[int, int, bool]:
        """Return where what ends the marker begins and ends, -1 for nowhere, and whether more text cannot change it."""
        recovery = self._entry.patterns.recovery if resume is None else [resume]
        _, error, limit, hit, _, _ = broke
        far = limit + RECOVERY if len(recovery) == 1 else min(limit + RECOVERY, hit)
        margin = self._entry.patterns.margin if resume is None else 0  # of more text, that what was found is all of it
        if section is not None and section.of_brackets:
            margin = RECOVERY
        for number, pattern in enumerate(recovery):
            if section is None or resume is None:
                found = pattern.search(self._buffer, error, far)
            else:
                found = self._resumes(section, resume, far)
            if found is not None and found.start() <= limit:
                tail, end = found.span()
                return tail, end, number == 0 and end + margin <= len(self._buffer)
        return -1, -1, False

    def _may_end_otherwise(self, broke: _Broke, resume: Pattern | None, tail: int, end: int, sure: bool) -> bool:
        """Return whether more text may tell another end than that from `tail` to `end`; if so, keep what is known."""
        buffer = self._buffer
        sound, error, limit, hit, begun, blank = broke
        begin = min(begun, self._search.next_cut(buffer, max(sound, self._clear - self._base)))
        gap = buffer[end : end + BLANKS_LIMIT + 1] if tail == end >= 0 else ""
        ahead = end + len(gap) - len(gap.lstrip(BLANKS))
        # It may begin in the tail, or be the fence before which the marker ends.
        cut = begin < hit and begin <= (limit if end < 0 else ahead)
        few = len(buffer) < limit + RECOVERY
        if end < 0 and few and resume is not None and _may_resume(resume, buffer, sound, min(limit, hit)):
            cut = True  # what begins at `hit` may stand in the head of the next call
        if not cut and (hit < len(buffer) or sure or not few):
            return False
        if not blank and (end < 0 or resume is None):
            # Up to where something may begin, the last token need not be looked at again.
            swallowed = self._so_far_swallowed() if self._opener is not None else None
            self._at = max(sound, min(hit, begin, error if resume is None else error - _SEPARATED))
            self._solid = True
            if swallowed is not None:
                swallowed.go_on(buffer[sound : self._at])
        self._clear = self._base + min(hit, begin, len(buffer))
        return True
