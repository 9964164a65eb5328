"""The end of a value between tags, in a text that goes on: what ends it, and what looks like that."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from callmark.dialects.prefixes import UnsupportedPatternError, apart
from callmark.reading.characters import COMPILED, Short
from callmark.reading.matching import HOLD_LIMIT, REMEMBERED_LENGTH, AnyOf, Pattern, Remembered, begins, waits

_APART_FROM: Final = 512  # characters from which on each first character of a `Stop` is searched on its own

_Search: TypeAlias = Callable[[str, int, int], re.Match[str] | None]

DATA: Final = frozenset({"astray", "kept", "foreign"})
"""What looks like the end of a value, and is none of it: the groups of the last alternative of a `Stop`."""


def is_held(pattern: Pattern, buffer: str, at: int) -> bool:
    """Return whether a pattern does not match at index `at`, but may once more has come.

    What a chunk ends with comes again and again, and the answer is remembered where that is short.
    """
    if len(buffer) - at <= REMEMBERED_LENGTH:
        return pattern.waits(buffer[at:]) is not None
    return pattern.match(buffer, at) is None and pattern.may_match(buffer, at)


class Stop:
    """A pattern of several alternatives that is searched in long values: first where any matches, then which does.

    Where the last of them matches, another may still match in its place once more text has come. `waits` is as that of
    a Pattern, of a text that begins where it may match; `may_begin` tells of a short text whether it matches or may.
    """

    def __init__(self, alternatives: Sequence[str], first: str) -> None:
        """Take the alternatives, and for a class of characters those with which they begin."""
        self.alternatives: Final = alternatives
        self._begins = re.compile(f"[{first}]").search
        self._signs = Short(f"[{first}]", self._begins)
        self._held = Remembered(self._held_in)
        self._any = AnyOf(alternatives)
        self._which = Pattern("|".join(alternatives))
        self._apart: list[tuple[str, _Search]] = []  # made when first needed
        self._preceding: dict[str | None, Pattern] = {}
        self.waits: Final = waits(Pattern("|".join(alternatives[:-1])), self._which)
        self.may_match: Final = self._which.may_match  # of those that it could go on to be, too
        self.may_begin: Final = Remembered(self._may_begin).__getitem__

    def _may_begin(self, begin: str) -> bool:
        return self.match(begin, 0) is not None or self.may_match(begin, 0)

    def _each_apart(self) -> list[tuple[str, _Search]]:
        """Return patterns, each with the character that its matches begin with: `find` skips to it in a fifth."""
        try:
            texts = apart(self.alternatives)
        except UnsupportedPatternError:
            return [("", self._any.search)]
        return [("".join(begins(text)) if len(begins(text)) == 1 else "", re.compile(text).search) for text in texts]

    def match(self, buffer: str, at: int) -> re.Match[str] | None:
        """Match at index `at`: `re.Pattern.match`."""
        return self._which.match(buffer, at)

    def again(self, text: str) -> int:
        """Return the index behind the first character of `text` where a match may begin, its length for none."""
        found = self._begins(text, 1)
        return len(text) if found is None else found.start()

    def next(self, buffer: str, at: int) -> tuple[re.Match[str] | int | None, int]:
        """Return the first match from index `at`, and where it is; None where only more text tells, or there is none.

        Of what ends a value as its row says, the index behind it is returned: what stands at the end of a text comes
        again and again, and is remembered. Up to the second index nothing is a stop, nor may it become one.
        """
        if COMPILED:
            at = self._signs.find(buffer, at)
        else:
            sign = self._begins(buffer, at)
            at = len(buffer) if sign is None else sign.start()
        size = len(buffer) - at
        if not size:
            return None, at
        if size <= REMEMBERED_LENGTH:
            begin, end = self._held[buffer[at:]]
            if end > 0:
                return at + end, at + begin
            return (None if end else self.match(buffer, at + begin)), at + begin
        found, begin = self._next(buffer, at)
        return (found.end() if found is not None and found.lastgroup == "end" else found), begin

    def _held_in(self, text: str) -> tuple[int, int]:
        """Return where in a text the first match is, and the index behind it; 0 where it is no `end`, -1 for none."""
        found, begin = self._next(text, 0)
        return begin, -1 if found is None else found.end() if found.lastgroup == "end" else 0

    def _next(self, buffer: str, at: int) -> tuple[re.Match[str] | None, int]:
        begins = self._begins
        found = self.search(buffer, at)
        end = found.start() if found is not None else len(buffer)
        before = end + (found is not None and found.lastgroup in DATA)  # that is a stop, if the right text comes
        place = begins(buffer, max(at, len(buffer) - HOLD_LIMIT), before) if at < before else None
        while place is not None:
            if self.may_match(buffer, place.start()):
                return None, place.start()
            place = begins(buffer, place.start() + 1, before)
        if found is not None and before == end and self._may_precede(found).may_match(buffer, end):
            return None, end
        return found, end

    def _may_precede(self, found: re.Match[str]) -> Pattern:
        """Return the pattern of the alternatives before the one that was found."""
        group = found.lastgroup
        if group not in self._preceding:
            number = next(at for at, text in enumerate(self.alternatives) if f"(?P<{group}>" in text)
            self._preceding[group] = Pattern("|".join(self.alternatives[:number]) or "(?!)")
        return self._preceding[group]

    def search(self, buffer: str, at: int) -> re.Match[str] | None:
        """Search from index `at`: `re.Pattern.search`. Linear in the distance of what is found."""
        if len(buffer) - at <= _APART_FROM:
            found = self._any.search(buffer, at)
            return None if found is None else self._which.match(buffer, found.start())
        if not self._apart:
            self._apart = self._each_apart()
        size = len(buffer)
        end = at
        first = None
        while end < size and first is None:
            # None is searched for far beyond another's hit.
            begin, end = end, min(size, end + max(_APART_FROM, end - at))
            hit = end
            for char, search in self._apart:
                place = buffer.find(char, begin, hit)
                while place >= 0:
                    found = search(buffer, place, hit + HOLD_LIMIT)
                    if found is None or found.start() >= hit:
                        break
                    place = found.start()
                    match = self._match_around(buffer, at, place)
                    if match is not None:
                        first, hit = match, place
                        break
                    place = buffer.find(char, place + 1, hit)
        return first

    def _match_around(self, buffer: str, at: int, place: int) -> re.Match[str] | None:
        """Match at index `place`, or where a line break before it begins, but not before index `at`."""
        start = place
        if start > at and buffer[start - 1] == "\n":
            start -= 1
        if start > at and buffer[start - 1 : start + 1] == "\r\n":
            start -= 1
        found = self._which.match(buffer, start)
        while found is None and start < place:
            start += 1
            found = self._which.match(buffer, start)
        return found
