r"""Derives from the pattern of an opener what the rest of one looks like that was begun in another text.

Content is put behind texts that nobody has checked, and such a text may end in a cut opener: `[CAL`. The pattern that
is made here matches a text that would go on with one, completing it or being all of a piece of it. It matches more
than that where a pattern looks ahead or refuses something: what is guarded once too often is no harm.
"""

from __future__ import annotations

import re
from re import _constants as sre  # the parsed tree of a pattern has no public API; a property pins what is used
from re import _parser
from typing import Any

from callmark.dialects.sources import one_character
from callmark.errors import DialectError

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


def continuation(pattern: str) -> str:
    """Return the pattern of what may follow a text that ends inside of a match of `pattern`, up to the match's end.

    Raises DialectError for what a pattern of a dialect cannot hold: back references, flags and anchors.
    """
    return _rest(list(_parser.parse(pattern)), last=True)


def _rest(items: list[Any], *, last: bool) -> str:
    """Return what may follow a text that ends behind the first character of `items`, or later, but not at their end.

    Where more follows behind `items` (`last` is False), it may end there too.
    """
    ways = ""  # linear in length: each item stands behind all the ways to have ended before it
    for number, item in enumerate(items):
        inside = _inside(item, last=last and number == len(items) - 1)
        each = [ways + _whole(item)] if ways else []
        each += [inside] if inside is not None else []
        ways = f"(?:{'|'.join(each)})" if each else ""
    return ways or "(?!)"


def _inside(item: Any, *, last: bool) -> str | None:
    """Return what is left of `item` once a text has ended in it; "" where it may have ended behind it."""
    op, value = item
    if op in _REPEATS:
        _, most, sub = value
        least = 1 if last else 0
        return f"{_rest(list(sub), last=False)}(?:{_source(sub)}){_braces(least, most)}"
    if op is sre.SUBPATTERN:
        return _rest(list(value[3]), last=last)
    if op is sre.ATOMIC_GROUP:
        return _rest(list(value), last=last)
    if op is sre.BRANCH:
        return "(?:" + "|".join(_rest(list(branch), last=last) for branch in value[1]) + ")"
    if op is sre.ASSERT and value[0] == 1:
        return _rest(list(value[1]), last=True)
    return None if last or op in (sre.ASSERT, sre.ASSERT_NOT) else ""


def _source(items: Any) -> str:
    return "".join(_whole(item) for item in items)


def _whole(item: Any) -> str:
    op, value = item
    character = one_character(op, value)
    if character is not None:
        return character
    if op in _REPEATS:
        least, most, sub = value
        return f"(?:{_source(sub)}){_braces(least, most)}"
    if op is sre.SUBPATTERN:
        return f"(?i:{_source(value[3])})" if value[1] & re.IGNORECASE else f"(?:{_source(value[3])})"
    if op is sre.ATOMIC_GROUP:
        return f"(?:{_source(value)})"
    if op is sre.BRANCH:
        return "(?:" + "|".join(_source(branch) for branch in value[1]) + ")"
    if op is sre.ASSERT:
        return f"(?={_source(value[1])})" if value[0] == 1 else ""
    if op is sre.ASSERT_NOT:
        return ""
    raise DialectError(f"expected a pattern without back references, conditions and anchors, found one with {op}")


def _braces(least: int, most: Any) -> str:
    return f"{{{least},}}" if most is sre.MAXREPEAT else f"{{{least},{max(most, least)}}}"
