r"""Tells whether a text goes on with an opener that was begun in another text.

Content is put behind texts that nobody has checked, and such a text may end in a cut opener: `[CAL`. From the pattern
of an opener the ways are derived in which it may go on behind each of its characters. There are thousands of them, and
nearly all begin with letters of their own, which tell at once that a text does not go on with them. A text goes on too
often where a pattern looks ahead or refuses something: what is guarded once too often is no harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from re import _constants as sre  # the parsed tree of a pattern has no public API; a property pins what is used
from typing import TYPE_CHECKING, Any

from callmark.dialects.notation import for_regex
from callmark.dialects.parsed import REPEATS, one_character, tree
from callmark.dialects.prefixes import first_of, may_begin_with, merged_ways
from callmark.errors import DialectError

if TYPE_CHECKING:
    import regex

_TOLD_BY = 3  # characters by which ways are told apart: few have them in common


class Continuations:
    """What may follow a text that ends inside of a match of some patterns: all of the rest, or a piece of it.

    Cost: some tens of microseconds a question and, where a text begins as none did before, some milliseconds once.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """Take the patterns. Raises DialectError for what no row can hold: back references, conditions and anchors."""
        self._ways: dict[str, list[list[Any]]] = {}  # by the letters with which they begin
        self._inside: set[str] = set()  # texts that are shorter than these letters
        self._matches: dict[str, Callable[[str], bool]] = {}
        for pattern in patterns:
            for way in _ways(_softened(tree(pattern)), last=True):
                letters = _letters(way)
                for begins in [letters] if letters else first_of(way) or [""]:
                    self._ways.setdefault(begins, []).append(way)
                self._inside.update(letters[:size] for size in range(1, len(letters)))

    def begin(self, text: str) -> bool:
        """Return whether `text` begins with the rest of a match, or is all of a piece of it."""
        begins = [text[:size] for size in range(_TOLD_BY + 1)]
        return text in self._inside or any(self._match(letters)(text) for letters in begins if letters in self._ways)

    def _match(self, letters: str) -> Callable[[str], bool]:
        """Return what tells whether a text that begins with `letters` goes on so, made when it is first needed."""
        if letters not in self._matches:
            compiled = compile_partial(merged_ways(self._ways[letters]))
            self._matches[letters] = lambda text: compiled.match(text, partial=True) is not None
        return self._matches[letters]


def compile_partial(pattern: str) -> regex.Pattern[str]:
    """Return a pattern of a row as the module `regex` has it, which tells whether a text may begin a match of it."""
    import regex  # 20 ms, and only who writes needs it

    return regex.compile(for_regex(pattern), regex.VERSION0)


def _letters(way: list[Any]) -> str:
    """Return the characters with which all that a way matches begins, as many as are looked at."""
    letters = ""
    for op, value in way[:_TOLD_BY]:
        if op is not sre.LITERAL:
            break
        letters += chr(value)
    return letters


def _softened(items: Any) -> list[Any]:
    """Return parsed pieces that match whatever `items` do, and what these match only because of what they refuse.

    A repeat stays one that gives nothing back where nothing is lost by that: blanks between parts that may be missing
    could be shared out in thousands of ways.
    """
    soft: list[Any] = []
    for op, value in reversed(items):
        if one_character(op, value) is not None:
            soft.insert(0, (op, value))
        elif op in REPEATS:
            least, most, sub = value
            kind = sre.POSSESSIVE_REPEAT if _gives_nothing_back(sub, soft) else sre.MAX_REPEAT
            soft.insert(0, (kind, (least, most, _softened(sub))))
        elif op is sre.SUBPATTERN:
            soft.insert(0, (op, (None, value[1] & re.IGNORECASE, 0, _softened(value[3]))))
        elif op is sre.ATOMIC_GROUP:
            soft[:0] = _softened(value)
        elif op is sre.BRANCH:
            soft.insert(0, (op, (None, [_softened(branch) for branch in value[1]])))
        elif op is sre.ASSERT:
            soft[:0] = [(op, (1, _softened(value[1])))] if value[0] == 1 else []
        elif op is not sre.ASSERT_NOT:
            message = f"expected a pattern without back references, conditions and anchors, found one with {op}"
            raise DialectError(message)
    return soft


def _gives_nothing_back(repeated: Any, behind: list[Any]) -> bool:
    """Whether `repeated` is one of some characters, with none of which what stands behind it may begin."""
    if len(repeated) != 1 or repeated[0][0] is not sre.IN:
        return False
    members = repeated[0][1]
    literal = all(op is sre.LITERAL for op, _ in members)
    return literal and not any(may_begin_with(chr(code), behind) for _, code in members)


def _ways(items: list[Any], *, last: bool) -> Iterator[list[Any]]:
    """Yield what may follow a text that ends behind the first character of `items`, or later, but not at their end.

    Where more follows behind `items` (`last` is False), it may end there too.
    """
    for number, item in enumerate(items):
        rest = items[number + 1 :]
        for way in _inside(item, last=last and not rest):
            yield [*way, *rest]


def _inside(item: Any, *, last: bool) -> Iterator[list[Any]]:
    """Yield what is left of `item` once a text has ended in it; nothing where it may have ended behind it."""
    op, value = item
    if op in REPEATS:
        _, most, sub = value
        more = (op, (1 if last else 0, most, sub))
        yield from ([*way, more] for way in _ways(sub, last=False))
    elif op is sre.SUBPATTERN:
        for way in _ways(value[3], last=last):
            yield [(op, (*value[:3], way))] if value[1] else way
    elif op is sre.BRANCH:
        for branch in value[1]:
            yield from _ways(branch, last=last)
    elif op is sre.ASSERT:
        yield from _ways(value[1], last=True)
    elif not last:
        yield []
