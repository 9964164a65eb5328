r"""Turns a pattern into one that matches its unfinished beginnings at the end of a text.

Where a chunk ends inside a possible marker, the scanner must know whether more text could complete it. For `\[CALL: f`
the answer is the pattern `(?:\Z|\[(?:\Z|C(?:\Z|A(?: ... ))))`: at each element the text may be over. Such a pattern is
derived here from the syntax tree that `re` itself makes, so that the question costs one match of `re` (0.2 microseconds
where `regex`, which can answer it too with `partial=True`, takes 2; a property holds the two to the same answers).
"""

from __future__ import annotations

import re
from re import _constants as sre  # the tree has no public API; a property pins what is used
from re import _parser
from typing import Any

_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
_SUFFIX = {sre.MAX_REPEAT: "", sre.MIN_REPEAT: "?", sre.POSSESSIVE_REPEAT: "+"}


class UnsupportedPatternError(ValueError):
    """The pattern uses what this module does not know; `regex` must answer instead."""


def unfinished(pattern: str) -> str:
    r"""Return a pattern that matches, up to `\Z`, what more text could make a match of `pattern`.

    Raises UnsupportedPatternError for back references, look-behind, conditions and anchors.
    """
    return _inside_all(list(_parser.parse(pattern)))


def necessary(pattern: str) -> frozenset[str]:
    r"""Return literals one of which stands in every text that `pattern` matches, look-ahead included.

    The empty literal, which stands in every text, where there are none to be found.

    >>> sorted(necessary(r"<a>[ ]*(?=<b=)|\r?\n<c=[a-z]"))
    ['\n<c=', '<a>']
    """
    return _necessary(list(_parser.parse(pattern))) or frozenset([""])


def _necessary(items: list[Any]) -> frozenset[str]:
    """Return the longest that one of `items` gives; the shortest of a set counts."""
    found: list[frozenset[str]] = []
    run = ""
    for op, value in [*items, (sre.ANY, None)]:
        if op is sre.LITERAL:
            run += chr(value)
            continue
        if run:
            found.append(frozenset([run]))
            run = ""
        if op is sre.BRANCH:
            branches = [_necessary(list(branch)) for branch in value[1]]
            found.append(frozenset().union(*branches) if all(branches) else frozenset())
        elif op is sre.SUBPATTERN and not value[1]:
            found.append(_necessary(list(value[3])))
        elif op is sre.ASSERT and value[0] == 1:
            found.append(_necessary(list(value[1])))
    return max(found, key=lambda literals: min(map(len, literals), default=0), default=frozenset())


def _inside_all(items: list[Any]) -> str:
    result = ""
    for item in reversed(items):
        inside = _inside(item)
        result = f"(?:{inside}|{_whole(item)}{result})" if result else inside
    return result or "(?!)"


def _inside(item: Any) -> str:
    """Return what matches a text that ends before or within `item`."""
    op, value = item
    if op in _SUFFIX:
        _, most, sub = value
        return f"{_group(sub)}{_braces(0, most)}+{_inside_all(list(sub))}" if len(sub) == 1 else (
            f"{_group(sub)}{_braces(0, most)}{_inside_all(list(sub))}"
        )
    if op is sre.SUBPATTERN:
        _, flags, unset, sub = value
        return _flagged(_inside_all(list(sub)), flags, unset)
    if op is sre.ATOMIC_GROUP:
        return _inside_all(list(value))
    if op is sre.BRANCH:
        return "(?:" + "|".join(_inside_all(list(branch)) for branch in value[1]) + ")"
    if op is sre.ASSERT:
        return _inside_all(list(value[1]))
    if op is sre.ASSERT_NOT:
        return "(?!)"
    return r"\Z"


def _whole(item: Any) -> str:
    """Return the source of `item`."""
    op, value = item
    if op is sre.LITERAL:
        return re.escape(chr(value))
    if op is sre.NOT_LITERAL:
        return f"[^{_escaped(value)}]"
    if op is sre.ANY:
        return "."
    if op is sre.IN:
        return _set(value)
    if op in _SUFFIX:
        least, most, sub = value
        return _group(sub) + _braces(least, most) + _SUFFIX[op]
    if op is sre.SUBPATTERN:
        _, flags, unset, sub = value
        return _flagged(_source(sub), flags, unset)
    if op is sre.ATOMIC_GROUP:
        return f"(?>{_source(value)})"
    if op is sre.BRANCH:
        return "(?:" + "|".join(_source(branch) for branch in value[1]) + ")"
    if op in (sre.ASSERT, sre.ASSERT_NOT) and value[0] == 1:
        return f"(?{'=' if op is sre.ASSERT else '!'}{_source(value[1])})"
    raise UnsupportedPatternError(f"no rule for {op}")


def _source(items: Any) -> str:
    return "".join(_whole(item) for item in items)


def _group(items: Any) -> str:
    return f"(?:{_source(items)})"


def _braces(least: int, most: Any) -> str:
    return f"{{{least},}}" if most is sre.MAXREPEAT else f"{{{least},{most}}}"


def _flagged(source: str, flags: int, unset: int) -> str:
    if unset or flags & ~re.IGNORECASE:
        raise UnsupportedPatternError("flags other than (?i:...)")
    return f"(?i:{source})" if flags else f"(?:{source})"


def _escaped(code: int) -> str:
    return re.escape(chr(code)) if code < 0xD800 or code > 0xDFFF else f"\\u{code:04x}"


def _set(members: list[Any]) -> str:
    source = ""
    for op, value in members:
        if op is sre.NEGATE:
            source += "^"
        elif op is sre.LITERAL:
            source += _escaped(value)
        elif op is sre.RANGE:
            source += f"{_escaped(value[0])}-{_escaped(value[1])}"
        elif op is sre.CATEGORY:
            source += _CATEGORIES[value]
        else:
            raise UnsupportedPatternError(f"no rule for {op} in a set")
    return f"[{source}]"
