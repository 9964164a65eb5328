"""Finds where a marker begins, for all dialects at once. It never decides what a call is.

A `Plan` is made once for a set of dialects. It holds the *entries*: every pattern with which a marker of some form may
begin (openers of sections, heads of calls), and the reasoning tags. Entries are tried in the order of the dialects; the
first that matches decides, which is how `<tool_call>` can belong to several dialects.

Speed: for each character with which an entry may begin there is one pattern that begins with that very literal, so that
`re` skips to it, several times faster than to a character class or to a leading alternation; it looks at a few
characters behind that, which nearly always tell. The compiled engine goes from one such character to the next by itself
(`characters.Hops`). Only where an entry can begin is one tried after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

from callmark.dialects import Dialect, Form, is_ours, select, unregistered
from callmark.dialects.fences import BYTE_ORDER_MARK, QUOTING_TAG
from callmark.dialects.thoughts import THOUGHT_TAGS, kinds_of_thoughts
from callmark.reading.characters import COMPILED, LOOKED_AT, Hops, short
from callmark.reading.entries import Entry, check_row, lead_form, tag_form
from callmark.reading.matching import HOLD_LIMIT, REMEMBERED_LENGTH, AnyOf, Begun, Pattern, Remembered
from callmark.reading.options import Tolerance
from callmark.reading.patterns import patterns, section

_NOWHERE: Final = 1 << 61  # behind every text; to compare what takes more bits costs the compiled engine a call
_MISSES: Final = 4  # places that only looked like an entry: where there are so many, one pattern passes them by sooner
_PATIENCE: Final = 32  # times that such places are looked for before that pattern is made, which takes long
TOLD_BY: Final = 8  # characters by which entries are told apart: `<tool_ca` leaves a few

_REASONING: Final = Dialect(
    name="reasoning",
    title="<think> and its like",
    models="reasoning models",
    source="DeepSeek-R1, Qwen3 and others",
    forms=(Form(head="", body="envelope"),),
    tags=THOUGHT_TAGS,
)


class Plan:
    """What to look for.

    first       an entry, whichever: there always is one
    entries     those that may begin with a character, in the order in which they are tried
    leads       matches where one begins that is looked for only there, None for no such; `leading`: its characters, and
                a mark of the byte order
    signs       what to look for, for each such character; `signs_in_ascii`: for those of ASCII
    two         the characters of ASCII where they are two, which are sooner looked for one by one; else "" twice
    any         finds a character with which an entry may begin; without one, a chunk is plain text; `stops`: the same,
                sooner told of a short chunk
    others      rows that are not registered
    line_heads  patterns of what begins lines with a letter, as a key does
    thoughts    the kind of thought that a tag opens or ends, by its pattern; `answers`: the tags that begin an answer,
                `of_one_kind`, as those of one model are
    waits       tells of a short text whether only more text can tell what begins with it, None for no
    entries_at  gives the entries that can match a text that begins with so many characters, in their order
    entry_in    gives for a short text the first that matches it, None where only more text tells which that is
    """

    def __init__(self, dialects: tuple[Dialect, ...], tolerance: Tolerance) -> None:
        """Make the plan for `dialects`; a tolerant one takes loose heads and variants too."""
        tolerant = tolerance != "strict"
        self.others = unregistered(dialects)
        strict: list[Entry] = []
        loose: list[Entry] = []
        salvaged: list[Entry] = []
        refused: list[Entry] = []
        for dialect in dialects:
            if not is_ours(dialect):
                check_row(dialect)
            openers: set[str] = set()
            for form in dialect.forms:
                compiled = patterns(form)
                if compiled.opener is not None and form.opener not in openers:
                    openers.add(form.opener)
                    shared = section(tuple(other for other in dialect.forms if other.opener == form.opener))
                    strict.append(Entry("opener", compiled.opener, dialect, compiled, shared))
                    if tolerant:
                        loose += [Entry("opener", other, dialect, compiled, shared) for other in compiled.loose_openers]
                if form.alone:
                    strict.append(Entry("head", compiled.head, dialect, compiled))
                    loose += [Entry("loose", head, dialect, compiled) for head in compiled.loose if tolerant]
                    refused += [Entry("refused", head, dialect, compiled) for head in compiled.refused_alone]
            for form in dialect.variants if tolerant else ():
                compiled = patterns(form)
                if form.salvage and tolerance != "salvage":
                    continue
                found = salvaged if form.salvage else loose  # salvage: what no marker begins with, but its heads may
                together = tuple(other for other in dialect.variants if _opens_as(other, form))
                if compiled.opener is not None and form.opener not in openers and together[0] == form:
                    ways = (compiled.opener, *compiled.loose_openers)
                    found += [Entry("opener", way, dialect, compiled, section(together)) for way in ways]
                if form.alone:
                    found += [Entry("loose", head, dialect, compiled) for head in (compiled.head, *compiled.loose)]
        tags = [
            Entry("tag", tag.head, dialect, tag)
            for dialect in (_REASONING, *dialects)
            for tag in map(patterns, [*map(tag_form, dialect.tags), *map(lead_form, dialect.leads)])
        ]
        self.thoughts = kinds_of_thoughts(dialects)
        self.answers = tuple(tag for tag in tags if "(?P<answers>" in tag.form.head and not tag.text_start)
        self.of_one_kind = len({self.thoughts[tag.form.head] for tag in self.answers}) == 1
        quoting = patterns(Form(head=QUOTING_TAG, body="envelope"))
        entries = [*salvaged, *strict, *tags, Entry("quoting", quoting.head, _REASONING, quoting), *loose, *refused]
        self.first = entries[0]
        lined = [entry for entry in (*strict, *loose) if entry.line_start and re.search(r"[^\W\d]", entry.form.begins)]
        self.line_heads = tuple(entry.pattern.text for entry in lined)
        anywhere = [entry for entry in entries if not entry.text_start]
        leads = [entry for entry in entries if entry.text_start]
        begun = _by_character(anywhere)
        self.entries = _by_character([*anywhere, *leads])
        self.leads = AnyOf([entry.pattern.text for entry in leads]) if leads else None
        self.leading = frozenset((BYTE_ORDER_MARK, *_by_character(leads)))
        begins = "".join(map(re.escape, begun))
        self.any = re.compile(f"[{begins}]").search
        self.stops = short(f"[{begins}]", self.any)
        self.entries_at: Callable[[str], list[Entry]] = Remembered(self._entries_at).__getitem__
        self.entry_in = Remembered(self._entry_in)
        self._first_in = Remembered(self._look_for_first)
        self.waits: Callable[[str], object] = Remembered(self._begins_only).__getitem__
        self._may_match = Remembered(self._goes_on)
        self._beginnings: dict[str, _Beginnings] = {}
        self._sign_of = {
            char: _Sign(
                char,
                found[0],
                AnyOf([entry.pattern.text for entry in found]),
                Begun(char, [entry.pattern for entry in self.entries[char]]),
                self.entries_at,
                Hops(char, self._may_be_entry) if COMPILED and _is_rare(char) else None,
            )
            for char, found in begun.items()
        }
        self.signs = [*self._sign_of.values()]
        self.signs_in_ascii = [sign for sign in self.signs if sign.char.isascii()]
        in_ascii = [sign.char for sign in self.signs_in_ascii]
        self.two = (in_ascii[0], in_ascii[-1]) if len(in_ascii) <= 2 else ("", "")

    def __deepcopy__(self, memo: object) -> Plan:
        """Parsers with the same dialects share one, copied parsers too."""
        return self

    def _may_be_entry(self, text: str) -> bool:
        return self._sign_of[text[0]].start.match(text) is not None or self._may_match[text]

    def _entries_at(self, begin: str) -> list[Entry]:
        return [entry for entry in self.entries[begin[0]] if _agrees(entry.pattern, begin)]

    def _entry_in(self, text: str) -> Entry | None:
        matched = _first(self.entries_at(text[:TOLD_BY]), text, 0, final=False)
        return None if matched is None else matched[0]

    def _goes_on(self, text: str) -> bool:
        """Return whether more text could make an entry match where `text` begins."""
        char = text[0]
        if char not in self._beginnings:
            self._beginnings[char] = _Beginnings([entry.pattern for entry in self.entries[char]])
        return self._beginnings[char].may_match(text)

    def may_begin(self, buffer: str, at: int) -> int:
        """Return the first index from `at` where more text could make an entry match, -1 for none."""
        found = self.any(buffer, max(at, len(buffer) - HOLD_LIMIT))
        while found is not None:
            start = found.start()
            if self._is_near(buffer, start) and self._may_match[buffer[start:]]:
                return start
            found = self.any(buffer, start + 1)
        return -1

    def first_in(self, chunk: str, at: int) -> tuple[int, bool]:
        """Return the first index from `at` where an entry begins or may begin, and whether the chunk's end cuts it.

        -1 where `chunk` is plain text from there on. For short chunks: each place is looked at closely.
        """
        place, cut = self._first_in[chunk[at:]]
        return (at + place if place >= 0 else -1), cut

    def _begins_only(self, text: str) -> object:
        return self._first_in[text] == (0, True) or None

    def _look_for_first(self, text: str) -> tuple[int, bool]:
        found = self.any(text)
        while found is not None:
            at = found.start()
            if self._is_near(text, at):
                if self._begins(text, at):
                    return at, False
                if self._may_match[text[at:]]:
                    return at, True
            found = self.any(text, at + 1)
        return -1, False

    def _is_near(self, text: str, at: int) -> bool:
        """Whether an entry may begin at an index, as a few characters tell, or more text."""
        return len(text) - at < LOOKED_AT or self._sign_of[text[at]].near.match(text, at) is not None

    def _begins(self, text: str, at: int) -> bool:
        """Whether an entry begins at an index where one may."""
        sign = self._sign_of[text[at]]
        if sign.is_new():
            found = _first(self.entries_at(text[at : at + TOLD_BY]), text, at, final=True)
            return found is not None and not found[0].text_start
        return sign.start.match(text, at) is not None


def _by_character(entries: list[Entry]) -> dict[str, list[Entry]]:
    """Return the entries that may begin with a character, for each."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        for char in entry.begins():
            found.setdefault(char, []).append(entry)
    return found


def _is_rare(char: str) -> bool:
    """Whether a text has so few of a character that it pays to go from one to the next."""
    return not (char.isalnum() or char.isspace())


def _opens_as(variant: Form, other: Form) -> bool:
    """Whether the calls of two variants may stand in one section."""
    return variant.opener == other.opener and variant.salvage == other.salvage


def _first(entries: list[Entry], buffer: str, hit: int, *, final: bool) -> tuple[Entry, re.Match[str]] | None:
    """Return the first entry that matches at `hit`; None for none, or if one before it may still match with more text.
    """
    for entry in entries:
        found = entry.pattern.match(buffer, hit)
        if found is not None:
            return entry, found
        if not final and entry.pattern.may_match(buffer, hit):
            break
    return None


def _agrees(pattern: Pattern, begin: str) -> bool:
    """Whether a match of a pattern can begin with a text, or be the beginning of it, as its own beginnings tell."""
    for text in pattern.openings:  # noqa: SIM110  # a generator costs three times as much
        if text.startswith(begin) or begin.startswith(text):
            return True
    return False


class _Beginnings:
    """Tells whether one of some patterns, which begin with the same character, may match once more text has come.

    Few of them have to be tried: most begin with a text of their own, which the first characters tell.
    """

    def __init__(self, patterns: list[Pattern]) -> None:
        self._cut: set[str] = set()  # what such a text may be cut to
        self._by_two: dict[str, list[Pattern]] = {}  # by the first two characters
        self._told = Remembered(self._agreeing)  # by some more of them
        self._last: Pattern | None = None  # what the last text could go on to be: so can the next, if it has grown
        vague = []
        for pattern in patterns:
            texts = pattern.openings
            if min(map(len, texts)) > 1:
                self._cut.update(text[:size] for text in texts for size in range(1, len(text)))
                for begin in {text[:2] for text in texts}:
                    self._by_two.setdefault(begin, []).append(pattern)
            else:
                vague.append(pattern.text)
        self._vague = AnyOf(vague) if vague else None

    def may_match(self, text: str) -> bool:
        """Return whether more text behind `text` could make one of them match where it begins."""
        if text in self._cut:
            return True
        if self._vague is not None and self._vague.may_match(text, 0):
            return True
        if self._last is not None and self._last.may_match(text, 0):
            return True
        for pattern in self._told[text[:TOLD_BY]]:
            if pattern.may_match(text, 0):
                self._last = pattern
                return True
        return False

    def _agreeing(self, begin: str) -> list[Pattern]:
        return [pattern for pattern in self._by_two.get(begin[:2], ()) if _agrees(pattern, begin)]


class _Sign:
    """A character with which entries begin that are not only looked for where the text does.

    entry       the first of them
    start       matches where any of them does
    near        matches where one of them, or of the others, may begin, as a few characters tell
    entries_at  as that of the plan
    hops        passes by the places where none can begin, sooner than `near`; None where it does not pay
    """

    __slots__ = ("_patience", "char", "entries_at", "entry", "hops", "near", "start")

    def __init__(
        self,
        char: str,
        entry: Entry,
        start: Pattern,
        near: Pattern,
        entries_at: Callable[[str], list[Entry]],
        hops: Hops | None,
    ) -> None:
        self.char = char
        self.entry = entry
        self.start = start
        self.near = near
        self.entries_at = entries_at
        self.hops = hops
        self._patience = _PATIENCE

    def is_new(self) -> bool:
        """Return whether entries are still tried one by one, where a few characters look like one."""
        self._patience -= 1
        return self._patience >= 0


class _Cursor:
    """The next entry that begins with one character: its index, and its match if it is the first of the plan, or if the
    text is `final` and it was tried by itself. Else one before it may still match with more text.

    Before `clear` there is none from where it was last looked for: it does not search beyond the entries of others.
    `_often`: whether the last one was at the first place, as where calls stand close together.
    """

    __slots__ = ("_char", "_final", "_first", "_often", "_sign", "clear", "entry", "index", "match")

    def __init__(self, sign: _Sign, clear: int, final: bool) -> None:
        self._sign = sign
        self._char = sign.char
        self._final = final
        self.entry = sign.entry
        self._first = sign.entry.pattern.match
        self.index = -1
        self.clear = clear
        self.match: re.Match[str] | None = None
        self._often = False

    def find(self, buffer: str, at: int, end: int) -> int:
        """Find it between the indexes `at` and `end`; `end` for none."""
        place = buffer.find(self._char, at, end)
        if place >= 0:
            self.entry = self._sign.entry
            if self._often:
                self.match = match = self._first(buffer, place)
                if match is not None or self._other_begins(buffer, place):
                    self.index = place
                    return place
            index = self._from(buffer, place, end)
            if index < end:
                self._often = index == place
                self.index = index
                return index
        self.clear = end
        return end

    def _from(self, buffer: str, at: int, end: int) -> int:
        """Find it between an index where the character stands and another; the second for none."""
        hops = self._sign.hops
        if hops is not None and hops.waits(end - at):
            hops = None
        index = self._near(buffer, at, end) if hops is None else hops.next(buffer, at, end)
        tries = _MISSES if hops is not None or self._sign.is_new() else 0
        while index >= 0:
            self.match = match = self._first(buffer, index)
            if match is not None:
                return index
            if tries == 0:
                return self._search(buffer, index, end)
            if self._other_begins(buffer, index):
                return index
            tries -= 1
            if hops is None:
                index = self._near(buffer, index + 1, end)
            else:
                index = hops.next(buffer, buffer.find(self._char, index + 1, end), end)
        return end

    def _other_begins(self, buffer: str, index: int) -> bool:
        """Whether an entry begins at an index, where the first of them has not matched."""
        first = self._sign.entry
        for entry in self._sign.entries_at(buffer[index : index + TOLD_BY]):
            if entry is not first and not entry.text_start:
                found = entry.pattern.match(buffer, index)
                if found is not None:
                    if self._final:
                        self.entry, self.match = entry, found
                    return True
        return False

    def _near(self, buffer: str, at: int, end: int) -> int:
        """Return the next index, before another, where an entry may begin as a few characters tell; -1 for none."""
        found = self._sign.near.search(buffer, at, end + LOOKED_AT)
        return -1 if found is None or found.start() >= end else found.start()

    def _search(self, buffer: str, at: int, end: int) -> int:
        found = self._sign.start.search(buffer, at, end + HOLD_LIMIT)
        while found is not None and buffer[found.start()] != self._char:  # it may begin with others, too: see theirs
            found = self._sign.start.search(buffer, found.start() + 1, end + HOLD_LIMIT)
        if found is None:
            return end
        index = found.start()
        self.match = self._first(buffer, index)
        return index


class Search:
    """Where in a buffer things begin: what was found is remembered, so that a stretch is searched once for each thing.

    Indexes are remembered while the buffer stands; `reset` when it is another one. Reading again after an error keeps
    them valid: it goes back behind the head from which they were searched, never before it.

    cursor   the one at the entry that `next_entry` found last
    cut      the first entry that the buffer's end may cut, as `next_cut` has found it; -1 for not looked for
    """

    __slots__ = ("_cursors", "_final", "_last", "_literals", "cursor", "cut", "plan")
    cursor: _Cursor

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._cursors: list[_Cursor] | None = None  # for each character that begins entries: the next of them
        self._literals: dict[str, int] = {}  # the next of each closing literal
        self._last: dict[str, int] = {}  # the last of each
        self._final = False
        self.cut = -1

    def reset(self, *, final: bool = False) -> None:
        """Forget what was found: the buffer is another one, and `final` where no more text comes."""
        self._cursors = None
        self._final = final
        if self._literals:
            self._literals = {}
        if self._last:
            self._last = {}
        self.cut = -1

    def next_entry(self, buffer: str, at: int) -> int:
        """Return the index of the next entry from `at`; beyond the buffer for none."""
        cursors = self._cursors
        if cursors is None:
            self._cursors = cursors = []
            for sign in self.plan.signs_in_ascii if buffer.isascii() else self.plan.signs:
                place = buffer.find(sign.char, at)
                if place >= 0:
                    nearer = 0
                    while nearer < len(cursors) and cursors[nearer].clear <= place:
                        nearer += 1
                    cursors.insert(nearer, _Cursor(sign, place, self._final))
        best = len(buffer)
        first = None
        for cursor in cursors:
            index = cursor.index
            if index < at:
                clear = cursor.clear
                if clear >= best:
                    continue
                index = cursor.find(buffer, at if clear < at else clear, best)
            if index < best:
                best = index
                first = cursor
        if first is None:
            return _NOWHERE
        if first is not cursors[0]:  # likely it finds the next one too: then the others do not search beyond that
            cursors.remove(first)
            cursors.insert(0, first)
        self.cursor = first
        return best

    def entry_at(
        self, buffer: str, hit: int, *, final: bool, behind: Entry | None = None
    ) -> tuple[Entry, re.Match[str]] | None:
        """Return the first entry that matches at `hit`, None if one before it may still match with more text.

        `behind`: an entry that matches, but was refused; it is returned where no other one behind it matches.
        """
        if not final and behind is None and len(buffer) - hit <= REMEMBERED_LENGTH:
            entry = self.plan.entry_in[buffer[hit:]]
            found = entry.pattern.match(buffer, hit) if entry is not None else None
            return None if entry is None or found is None else (entry, found)
        entries = self.plan.entries_at(buffer[hit : hit + TOLD_BY])
        if behind is not None:
            entries = [*entries[entries.index(behind) + 1 :], behind]
        return _first(entries, buffer, hit, final=final)

    def next_cut(self, buffer: str, at: int) -> int:
        """Return the first index from `at` where an entry may begin that the buffer cuts; beyond it for none."""
        if self.cut < at:
            index = self.plan.may_begin(buffer, at)
            self.cut = _NOWHERE if index < 0 else index
        return self.cut

    def next_literal(self, literal: str, buffer: str, at: int) -> int:
        """Return the index of the next `literal` from `at`; beyond the buffer for none."""
        literals = self._literals
        if literal in literals and literals[literal] >= at:
            return literals[literal]
        index = buffer.find(literal, at)
        literals[literal] = index = _NOWHERE if index < 0 else index
        return index

    def last_literal(self, literal: str, buffer: str) -> int:
        """Return the index of the last `literal`, -1 for none: sooner found than the next, where that is far away."""
        if literal not in self._last:
            self._last[literal] = buffer.rfind(literal)
        return self._last[literal]


@lru_cache(maxsize=64)
def _plan(dialects: tuple[Dialect, ...], tolerance: Tolerance) -> Plan:
    return Plan(dialects, tolerance)


@lru_cache(maxsize=64)
def _named_plan(names: tuple[str, ...], tolerance: Tolerance) -> Plan:
    return _plan(select(names), tolerance)


@cache
def _default_plan(tolerance: Tolerance) -> Plan:
    return _plan(select(None), tolerance)


def plan(dialects: object, tolerance: Tolerance) -> Plan:
    """Return the plan for an option `dialects`: None, a name, a Dialect, or several of them. Made once for each set."""
    if dialects is None:
        return _default_plan(tolerance)
    names = [dialects] if isinstance(dialects, str) else dialects
    if isinstance(names, list | tuple) and all(type(name) is str for name in names):
        return _named_plan(tuple(names), tolerance)  # to look rows up costs ten times a name
    return _plan(select(dialects), tolerance)  # type: ignore[arg-type]  # select checks it
