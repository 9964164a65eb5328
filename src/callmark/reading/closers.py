"""Finds out which closers are missing, too many or of another shape where a marker's arguments end.

Where a reader stands behind a value and finds neither a comma nor the closer that is due, what follows is compared as a
whole with all that is due: the brackets that are open, innermost first, and then the marker's tail. Only where one
change gets that right, the change is the repair: the first closers are missing, some are too many, one has another
shape, or a comma stands before them. Any bracket may be full-width besides. So none is supplied or dropped where more
members may follow, but for the one before a bracket that ends the marker alone (`_ends_alone`), and none at the end of
the text: what decides must be there. `derived.tolerated_tail` says what may stand where nothing but the tail is due.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from callmark.dialects import Form, derived
from callmark.dialects.notation import anonymous, expand
from callmark.dialects.tokens import TURN_ENDS
from callmark.events import Repair, Span
from callmark.reading.lookahead import envelope_begun
from callmark.reading.matching import Pattern
from callmark.reading.patterns import FENCE_RUN, LANGUAGE, Section, patterns

DEPTH: Final = 8
"""Most closers that are supplied, and most that are dropped."""

_WS: Final = expand("{ws}")
_SPELLINGS: Final = {")": ")）", "]": "]］】", "}": "}｝"}
_CLOSER: Final = re.compile(rf"{_WS}([,{re.escape(''.join(_SPELLINGS.values()))}])")
_PLAIN: Final = str.maketrans({other: closer for closer, others in _SPELLINGS.items() for other in others})
_CUT: Final = re.compile(rf"{_WS}\Z")
_FENCE_TAIL: Final = re.compile(rf"(?:{FENCE_RUN.pattern})\Z")
_BRACKET_TAIL: Final = re.compile(r"(?:\{ws\})?\\([)\]}])")
_NO_MEMBERS: Final = rf"(?={_WS}[^\s,:=)\]}}，：＝）］】｝])"
_MOST: Final = DEPTH + 2  # closers that are looked at, dropped ones too: with all their blanks they fit into HOLD_LIMIT
_MORE: Final = -2
_KEY: Final = 64
"""Characters of a key that another member of the arguments may have."""
_QUOTED_KEY: Final = rf"[\"'][^\"'\r\n]{{0,{_KEY}}}+[\"'][ \t]{{0,4}}+:"
KEY_BEHIND: Final = Pattern(rf"[ \t\r\n]{{0,8}}+,?[ \t\r\n]{{0,8}}+{_QUOTED_KEY}")
"""Another member behind a bracket with a comma before it."""
_LINE: Final = 200
"""Characters of a line in which the closers may still come that make a bracket before them data."""


class Ending(NamedTuple):
    """How a marker ends: the index behind it, what was changed for that, and whether another call stands in it.

    `closed`: the indexes behind the brackets that were open, innermost first; of one whose closer is missing, that
    where it would stand. `tag` is the index of what may begin the next marker instead: another tag that was taken for
    the one that is due, or a tail with which a marker begins, too; -1 for none. `cut`: where it does, this marker was
    cut in its arguments.
    """

    stop: int
    repairs: tuple[Repair, ...]
    more: bool
    closed: tuple[int, ...] = ()
    tag: int = -1
    cut: bool = False


class _Way(NamedTuple):
    """A change, and what stands there then: so `many` of `other`, the closers `due`, and `tail`.

    The change is that so many closers are missing, or that `other` ones stand there: then `code` is its repair.
    Patterns of whole ways would be as many as there are orders of brackets, which the model chooses.
    """

    due: str
    tail: Pattern
    missing: int
    code: str
    other: str
    many: int


class _Closers:
    """The commas and closers that stand at a place, one behind the other, in plain spelling; and where each of them is.

    `cut`: the buffer ends behind them, so that there may be more.
    """

    __slots__ = ("_at", "_found", "cut", "signs")

    def __init__(self, buffer: str, at: int) -> None:
        found = _CLOSER.match(buffer, at)
        self._at = at
        self._found: list[re.Match[str]] = []
        while found is not None and len(self._found) < _MOST:
            self._found.append(found)
            found = _CLOSER.match(buffer, found.end())
        self.signs = "".join([it[1] for it in self._found]).translate(_PLAIN)
        self.cut = _CUT.match(buffer, self.end(len(self.signs))) is not None

    def end(self, count: int) -> int:
        """Return the index behind the first `count` of them."""
        return self._found[count - 1].end() if count else self._at

    def ends(self, first: int, behind: int) -> tuple[int, ...]:
        """Return the indexes behind those from `first` on; below 0, of what is missing, that where they begin."""
        found = [it.end() for it in self._found[max(0, first) : behind]]
        return (*[self._at] * -first, *found)

    def place(self, number: int) -> tuple[int, int]:
        """Return where the one of this number stands."""
        return self._found[number].span(1)

    def wide(self, first: int, behind: int) -> list[tuple[int, int]]:
        """Return the places of those in full width among the ones from `first` on."""
        return [it.span(1) for it in self._found[first:behind] if it[1] not in _SPELLINGS]

    def taken_by(self, way: _Way) -> int:
        """Return how many of them a way takes; below 0 it does not fit, and with _MORE more text could make it fit."""
        others = self.signs[: way.many]
        have = self.signs[way.many : way.many + len(way.due)]
        if others.strip(way.other) or not way.due.startswith(have):
            return -1
        taken = way.many + len(way.due)
        return taken if taken <= len(self.signs) else _MORE if self.cut else -1


class Endings:
    """What may stand where the closers `due` (innermost first) and then the tail of a marker of `form` are due.

    `inside` says that brackets of the arguments are open, so that more members may stand behind another bracket;
    `final` that no more text comes; `complete` that an envelope holds its name and its arguments.
    """

    def __init__(
        self, form: Form, section: Section | None, due: str, inside: bool, final: bool, complete: bool
    ) -> None:
        """Collect the changes, in the order in which they are asked."""
        tail = anonymous(form.tail)
        self._may_begin = patterns(form).tail_begins
        self._whole = complete and due == "}"  # nothing but the brace of the envelope is missing
        bracket = _BRACKET_TAIL.fullmatch(form.tail)
        if bracket is not None:
            due, tail = due + bracket[1], ""
        elif section is not None and (not tail or (section.separated and "(?=" in tail)):
            tail = f"(?={(section.mended_last if final else section.mended).text})"
        first = _BRACKET_TAIL.match(form.tail)  # of a tail that has more to it, as `}}`
        may_be_bracket = first is not None or re.match(tail, "]x") is not None
        self._final = final
        self._due = len(due)
        self._ways: list[_Way] = []
        if tail or bracket is not None:
            only_tail = len(due) == (bracket is not None)
            end = "" if bracket is not None else first[1] if first is not None else "]"
            rests = [(missing, due[missing:]) for missing in range(1, len(due) + (bracket is None))]
            known = [rest + end for _, rest in rests if may_be_bracket and not (inside and len(rest + end) == 1)]
            self._add(due, tail)
            others = {closer for closer in _SPELLINGS if inside or closer != due[-1:]}
            if bracket is not None and only_tail:
                others.discard("}")
                self._add("", tail, code="wrong-closer", other="}" if bracket[1] != "}" else ")", many=1)
            elif due:
                self._add_other("wrong-closer", due[1:], tail, others - {due[0]}, end, known)
            for many in range(1, DEPTH + 1):
                self._add_other("extra-closer", due, tail, others, end, known, many)
            if not inside:
                self._add(due, tail, code="extra-comma", other=",", many=1)
            for missing, rest in rests:
                if not (inside and may_be_bracket and len(rest + end) == 1):
                    no_member = _no_member(final) if inside else ""
                    self._add(rest, tail + _no_other_fence(tail, final) + no_member, missing=missing)
                elif bracket is not None:
                    self._add(rest, _NO_MEMBERS + _ends_alone(due), missing=missing)
            if inside and may_be_bracket and section is not None and section.between:
                self._add("", f"(?={section.between})", missing=len(due))
            loose_tails = [derived.tolerated_tail(form), TURN_ENDS] if only_tail else []
            if self._whole:
                if _FENCE_TAIL.search(tail):  # or the next fence begins, and its own was forgotten
                    other = rf"(?={tail}{LANGUAGE}[\r\n])"
                    self._add("", other, missing=1)
                further = rf"(?P<more>{_WS},?{_WS})(?={envelope_begun(form)})" if "(?P<more>" in form.loose_tail else ""
                loose_tails = [derived.next_marker(form), further]
            for loose in filter(None, loose_tails):
                self._add("", expand(loose), missing=1)
        if self._whole and not form.tail:
            self._add("", rf"(?={_WS}(?:{anonymous(form.opener)})?{envelope_begun(form)})", missing=1)
        # What is ended so was not cut; but the closing run of a fence that came too late would open one.
        for missing in range(1, len(due) + 1) if form.body != "arguments" and not FENCE_RUN.search(form.tail) else ():
            self._add(due[missing:], TURN_ENDS, missing=missing)

    def _add_other(
        self, code: str, due: str, tail: str, others: set[str], end: str, known: list[str], many: int = 1
    ) -> None:
        """Add a change that reads so `many` other closers first, but none with which a marker of `known` may begin."""
        other = others.difference(way[0] for way in known if (due + end).startswith(way[many:]))
        if other:
            self._add(due, tail, code=code, other="".join(other), many=many)

    def _add(self, due: str, tail: str, *, missing: int = 0, code: str = "", other: str = "", many: int = 0) -> None:
        self._ways.append(_Way(due, _tail(tail), missing, code, other, many))

    def ending(self, buffer: str, at: int, base: int) -> Ending | None:
        """Return how the marker ends whose closers begin at index `at`; `base` is the position of the buffer.

        The first of the ways that fits is taken, and what may still become one is waited for: of `}}}`, which is the
        end where one closer is missing, `}}` is the end where two are.
        """
        closers = _Closers(buffer, at)
        for way in self._ways:
            taken = closers.taken_by(way)
            found = way.tail.match(buffer, closers.end(taken)) if taken >= 0 else None
            if found is None:
                if not self._final and _may_fit(way, taken, closers, buffer):
                    return None
                continue
            groups = found.groupdict()
            changed = [Repair("missing-closer", Span(base + at, base + at))] * way.missing
            for number in range(way.many):
                begin, end = closers.place(number)
                changed.append(Repair(way.code, Span(base + begin, base + end)))
            tag = found.start("wrong") if groups.get("wrong") is not None else -1
            more = groups.get("more") is not None
            instead = tag < 0 and way.missing > 0 and self._may_begin and not more
            if instead:
                tag = found.end() - len(found[0].lstrip())
            elif tag >= 0:
                changed = [Repair("wrong-closer", Span(base + tag, base + found.end("wrong")))]
            changed += [
                Repair("full-width-punctuation", Span(base + begin, base + end))
                for begin, end in closers.wide(way.many, taken)
            ]
            closed = closers.ends(taken - self._due, taken)
            return Ending(found.end(), tuple(changed), more, closed, tag, instead and not self._whole)
        return None

    def may_end(self, buffer: str, at: int) -> bool:
        """Return whether more text could make an ending of what stands at index `at`."""
        closers = _Closers(buffer, at)
        return any(_may_fit(way, closers.taken_by(way), closers, buffer) for way in self._ways)


def _may_fit(way: _Way, taken: int, closers: _Closers, buffer: str) -> bool:
    """Return whether more text could make a way fit that takes so many of the closers, and does not."""
    return way.tail.may_match(buffer, closers.end(taken)) if taken >= 0 else taken == _MORE


@lru_cache(maxsize=1024)
def _tail(pattern: str) -> Pattern:
    """Return a pattern; compiled once, for whatever is due before it."""
    return Pattern(pattern)


def _no_other_fence(tail: str, final: bool) -> str:
    """Return the pattern of a look-ahead behind a tail before which closers are missing, "" for none.

    A fence with a word behind it, and nothing else on its line, opens another one: what stands before it was cut.
    `final`: no more text comes.
    """
    if not _FENCE_TAIL.search(tail):
        return ""
    end = r"|\Z" if final else ""
    return rf"(?=[ \t]{{17}}|[ \t]{{0,16}}+[^\w \t]{end}|{LANGUAGE}[^\r\n{{\[])"


def _no_member(final: bool) -> str:
    """Return the pattern of a look-ahead behind a tail before which closers of the arguments are missing.

    A comma and another key are the rest of these: then the closers were written too early, not forgotten. `final`: no
    more text comes.
    """
    end = r"|,?[ \t]*+\Z" if final else ""
    key = rf"[\"'][^\"'\r\n]{{0,{_KEY}}}+(?:[^\"']|[\"'][ \t]{{0,4}}+[^: \t])"
    return rf"(?=[^,]|,[ \t]{{0,8}}+(?:[^\"']|{key}){end})"


@lru_cache(maxsize=1024)
def member_behind(closer: str) -> Pattern:
    """Return the pattern of a comma and another key behind a marker, and perhaps the `closer` of its section."""
    return Pattern(rf"(?:{_WS}{anonymous(expand(closer))})?+,[ \t]{{0,8}}+{_QUOTED_KEY}")


def _ends_alone(due: str) -> str:
    """Return the pattern of a look-ahead behind a bracket that ends a marker, although closers are missing before it.

    It is data instead where a word goes on behind it, or where the last two closers that are `due` stand on its line
    before anything else opens, as in `path=/tmp/a]b, force=false)]`. The end of the text is not that of the line.
    """
    closer, last = (re.escape(_SPELLINGS[char]) for char in due[-2:])
    stop = r"\r\n(\[（【［"  # the line ends, or something else opens
    other = rf"[{closer}][ \t]{{0,4}}+[^ \t{last}]"  # a closer, but of something else
    rest = rf"[^{stop}{closer}0-9A-Za-z_][^{stop}{closer}]{{0,{_LINE}}}+(?:[^{closer}]|{other})"
    return f"(?=[{stop}]|{other}|{rest})"


@lru_cache(maxsize=1024)
def endings(
    form: Form, section: Section | None, due: str, inside: bool, final: bool, complete: bool
) -> Endings:
    """Return the endings for a place; made once for each."""
    return Endings(form, section, due, inside, final, complete)
