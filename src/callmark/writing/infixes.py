r"""Tells whether a text goes on with an opener that was begun in another text.

Content is put behind texts that nobody has checked, and such a text may end in a cut opener: `[CAL`. From the pattern
of an opener the ways are derived in which it may go on behind each of its characters. There are thousands of them, and
a text goes through all at once, character by character: few are left behind the first ones, and only what is left is
looked at. A text goes on too often where a pattern refuses something: what is guarded once too often is no harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from re import _constants as sre  # the parsed tree of a pattern has no public API; a property pins what is used
from typing import Any, Final, NamedTuple, TypeAlias

from callmark.dialects.parsed import REPEATS, one_character, tree
from callmark.errors import DialectError

_MANY: Final = 40_000  # ways that texts have led to, in some 40 MB: then all are forgotten, and derived when needed
_KINDS: Final = 1024  # characters of which is known what matches them


class _Way:
    """How a text may go on: with one thing and what stands behind that, or in one of several ways.

    steps  what is left behind a character, by the sources that must all match that; None before it is needed
    left   what was left behind a character, by all the sources that matched it
    """

    __slots__ = ("behind", "choices", "first", "left", "steps")

    def __init__(self, first: _First | None, behind: _Way | None, choices: frozenset[_Way] = frozenset()) -> None:
        self.first = first
        self.behind = behind
        self.choices = choices
        self.steps: dict[frozenset[str], _Way] | None = None
        self.left: dict[frozenset[str], _Way] = {}


class _Repeat(NamedTuple):
    least: int
    most: int
    inside: _Way


class _Ahead(NamedTuple):
    inside: _Way


_First: TypeAlias = str | _Repeat | _Ahead  # a str is the source of what one character matches
_Steps: TypeAlias = dict[frozenset[str], _Way]

_UNSEEN: Final = frozenset[str]()  # the sources that must match where a way may be at its end
_LOOKS: Final = (sre.ASSERT, sre.ASSERT_NOT)
_END: Final = _Way(None, None)
_END.steps = {_UNSEEN: _END}


class Continuations:
    """What may follow a text that ends inside of a match of some patterns: all of the rest, or a piece of it.

    Cost: some microseconds a question and, where a text goes on as none did before, a tenth of a millisecond a
    character.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """Take the patterns. Raises DialectError for what no row can hold: back references, conditions and anchors."""
        self._patterns = tuple(patterns)
        self._sources: dict[str, Callable[[str], object]] = {}
        self._kind = lru_cache(_KINDS)(self._matching)
        self._start = self._derived()

    def begin(self, text: str) -> bool:
        """Return whether `text` begins with the rest of a match, or is all of a piece of it."""
        if len(self._known) > self._most:
            self._start = self._derived()
        way = self._start
        for char in text:
            kind = self._kind(char)
            way = way.left.get(kind) or self._left(way, kind)
            steps = way.steps or self._steps(way)
            if not steps:
                return False
            if _UNSEEN in steps:
                return True
        return True

    def _matching(self, char: str) -> frozenset[str]:
        """Return all sources that match a character."""
        return frozenset(source for source, match in self._sources.items() if match(char))

    def _derived(self) -> _Way:
        """Return the ways in which the patterns go on."""
        self._known: dict[Any, _Way] = {}
        begun: set[_Way] = set()
        for pattern in self._patterns:
            self._way(tree(pattern), _END, begun, last=True)
        self._most = len(self._known) + _MANY
        return self._either(begun)

    def _way(
        self, pieces: Any, behind: _Way, begun: set[_Way] | None = None, *, last: bool = False, case: int = 0
    ) -> _Way:
        """Return what parsed pieces match, and what is behind them; what they refuse is left out.

        begun  gets what may follow a text that ends behind the first character of the pieces, or later
        last   whether it may not end at their end
        case   whether that of letters does not matter, as a flag
        """
        kept = [(op, value) for op, value in pieces if op not in _LOOKS or (op is sre.ASSERT and value[0] > 0)]
        for number, (op, value) in enumerate(reversed(kept)):
            final = last and not number
            source = one_character(op, value)
            if source is not None:
                if begun is not None and not final:
                    begun.add(behind)
                behind = self._then(self._source(f"(?i:{source})" if case else source), behind)
            elif op in REPEATS:
                least, most, sub = value
                inside = self._way(sub, _END, case=case)
                if begun is not None:
                    more = self._then(_Repeat(1 if final else 0, most, inside), behind)
                    self._way(sub, more, begun, case=case)
                behind = self._then(_Repeat(least, most, inside), behind)
            elif op is sre.SUBPATTERN:
                behind = self._way(value[3], behind, begun, last=final, case=case | value[1] & re.IGNORECASE)
            elif op is sre.ATOMIC_GROUP:
                behind = self._way(value, behind, begun, last=final, case=case)
            elif op is sre.BRANCH:
                ways = [self._way(branch, behind, begun, last=final, case=case) for branch in value[1]]
                behind = self._either(ways)
            elif op is sre.ASSERT:
                if begun is not None:
                    self._way(value[1], behind, begun, last=True, case=case)
                behind = self._then(_Ahead(self._way(value[1], _END, case=case)), behind)
            else:
                message = f"expected a pattern without back references, conditions and anchors, found one with {op}"
                raise DialectError(message)
        return behind

    def _source(self, source: str) -> str:
        if source not in self._sources:
            self._sources[source] = re.compile(source).match
        return source

    def _then(self, first: _First, behind: _Way) -> _Way:
        """Return the one way with this."""
        key = first, behind
        way = self._known.get(key)
        if way is None:
            way = self._known[key] = _Way(first, behind)
        return way

    def _either(self, ways: Iterable[_Way]) -> _Way:
        """Return the one way with these choices."""
        choices = frozenset(choice for way in ways for choice in way.choices or (way,))
        if len(choices) == 1:
            return next(iter(choices))
        way = self._known.get(choices)
        if way is None:
            way = self._known[choices] = _Way(None, None, choices)
        return way

    def _left(self, way: _Way, kind: frozenset[str]) -> _Way:
        """Return what is left of a way behind a character of a kind. What begins alike is tried once, and of what may
        repeat only the longest: else there would be one more behind each character of a long word.
        """
        ways = [way for seen, left in self._steps(way).items() if seen <= kind for way in left.choices or (left,)]
        most: dict[tuple[_Way, _Way | None], int] = {}
        for first, behind in ((way.first, way.behind) for way in ways):
            if isinstance(first, _Repeat) and not first.least:
                most[first.inside, behind] = max(first.most, most.get((first.inside, behind), 0))
        begins: dict[_First | None, list[_Way]] = {}
        for first, behind in ((way.first, way.behind) for way in ways):
            if isinstance(first, _Repeat) and not first.least and first.most < most[first.inside, behind]:
                continue
            begins.setdefault(first, []).append(behind or _END)
        way.left[kind] = self._either(
            _END if first is None else self._then(first, self._either(behind)) for first, behind in begins.items()
        )
        return way.left[kind]

    def _steps(self, way: _Way) -> _Steps:
        """Return what is left of a way behind its first character, by the sources that must all match that."""
        if way.steps is None:
            found: dict[frozenset[str], list[_Way]] = {}
            for seen, left in self._each_step(way):
                found.setdefault(seen, []).append(left)
            way.steps = {seen: self._either(left) for seen, left in found.items()}
        return way.steps

    def _each_step(self, way: _Way) -> Iterator[tuple[frozenset[str], _Way]]:
        first, behind = way.first, way.behind
        if first is None or behind is None:
            for choice in way.choices:
                yield from self._steps(choice).items()
        elif isinstance(first, str):
            yield frozenset((first,)), behind
        elif isinstance(first, _Repeat):
            least, most, inside = first
            once = self._steps(inside)
            if most:
                fewer = most if most is sre.MAXREPEAT else most - 1
                more = self._then(_Repeat(max(least - 1, 0), fewer, inside), behind) if fewer else behind
                yield from ((seen, self._followed(left, more)) for seen, left in once.items() if seen)
            if not least or _UNSEEN in once:
                yield from self._steps(behind).items()
        else:
            ahead = self._steps(first.inside)
            for seen, left in self._steps(behind).items():
                if _UNSEEN in ahead:
                    yield seen, left
                yield from ((seen | its, self._then(_Ahead(rest), left)) for its, rest in ahead.items() if its)

    def _followed(self, way: _Way, behind: _Way) -> _Way:
        """Return a way with another one behind its end."""
        if way is _END:
            return behind
        if way.first is None or way.behind is None:
            return self._either(self._followed(choice, behind) for choice in way.choices)
        return self._then(way.first, self._followed(way.behind, behind))
