"""What the tree of a parsed pattern tells: of one piece, and of what a match of the whole depends on or holds.

Who derives a pattern from another one (what is left of an opener, what may still become one), or checks a row's
patterns, goes through such a tree; `re` has no public interface for it.
"""

from __future__ import annotations

import re
from re import _constants as sre  # a property pins what is used
from re import _parser
from typing import Any, Final

_CATEGORIES: Final = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
REFERENCES: Final = (sre.GROUPREF, sre.GROUPREF_EXISTS)
"""What a back reference and a condition are called in a tree."""
ANCHORS: Final = (sre.AT,)
REPEATS: Final = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
"""What the three kinds of repeats are called in a tree."""


def tree(pattern: str) -> Any:
    """Return the parsed pieces of a pattern, as `re` of Python 3.11 makes them. Raises re.error where it is none."""
    pieces = _parser.parse(pattern)
    if "(?!)" in pattern:
        with_look_aheads(pieces)
    return pieces


def with_look_aheads(pieces: Any) -> None:
    """Make `(?!)`, which from Python 3.13 on is a piece of a kind of its own, the negative look-ahead that it was."""
    for at, (op, value) in enumerate(pieces):
        if op is sre.FAILURE:
            pieces[at] = sre.ASSERT_NOT, (1, _parser.SubPattern(pieces.state, []))
        for inside in inner(op, value):
            with_look_aheads(inside)


def one_character(op: Any, value: Any) -> str | None:
    """Return the source of a piece that stands for one character, None where it is something else."""
    if op is sre.LITERAL:
        return _escaped(value)
    if op is sre.NOT_LITERAL:
        return f"[^{_escaped(value)}]"
    if op is sre.ANY:
        return "."
    return f"[{''.join(map(member_source, value))}]" if op is sre.IN else None


def member_source(member: tuple[Any, Any]) -> str:
    """Return the source of a member of a set: a character, a range, a category, or that all others are meant."""
    op, value = member
    if op is sre.NEGATE:
        return "^"
    if op is sre.LITERAL:
        return _escaped(value)
    if op is sre.RANGE:
        return f"{_escaped(value[0])}-{_escaped(value[1])}"
    return _CATEGORIES[value]  # nothing else stands in a set


def inner(op: Any, value: Any) -> list[Any]:
    """Return the parsed pieces of which a piece consists: its branches, or what a group, a repeat or so holds."""
    parts = value[1] if op is sre.BRANCH else value if isinstance(value, tuple) else (value,)
    return [it for it in parts if isinstance(it, _parser.SubPattern)]


def looks_outside(pattern: str) -> bool:
    r"""Return whether a match depends on what stands before it, or on where the text ends: on how the text is cut.

    >>> [looks_outside(text) for text in (r"^a", r"(?<!`)a", r"a$", r"a(?<=a)b", r"a\b,")]
    [True, True, True, False, False]
    """
    return _looks_outside(tree(pattern), 0)


def _looks_outside(items: Any, before: int) -> bool:
    """As `looks_outside`, for parsed pieces that stand behind at least so many characters."""
    return any(_is_outside(item, before + items[:at].getwidth()[0]) for at, item in enumerate(items))


def _is_outside(item: tuple[Any, Any], before: int) -> bool:
    op, value = item
    if op is sre.AT:
        return not before or value not in (sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY)
    if op in (sre.ASSERT, sre.ASSERT_NOT) and value[0] < 0:
        return bool(value[1].getwidth()[1] > before)
    return any(_looks_outside(pieces, before) for pieces in inner(op, value))


def uses(pattern: str, kinds: tuple[Any, ...]) -> bool:
    r"""Return whether a piece of one of some kinds is in a pattern.

    >>> [uses(text, (sre.GROUPREF, sre.AT)) for text in (r"(?:x|(a)(?=\1))", r"a\b,", r"a\\b[\b]")]
    [True, True, False]
    """
    return _uses(tree(pattern), kinds)


def _uses(items: Any, kinds: tuple[Any, ...]) -> bool:
    return any(op in kinds or any(_uses(pieces, kinds) for pieces in inner(op, value)) for op, value in items)


def least_held(pattern: str, group: str) -> int:
    r"""Return how many characters a group holds at least where the pattern matches, -1 where it may take no part.

    >>> [least_held(text, "g") for text in ("(?P<g>ab?)", "(?:x|(?P<g>a))", "(?:(?P<g>a))?", "(?=(?P<g>a*+))", "a")]
    [1, -1, -1, 0, -1]
    """
    pieces = tree(pattern)
    number = pieces.state.groupdict.get(group)
    return -1 if number is None else _least_held(pieces, number)


def _least_held(items: Any, number: int) -> int:
    for op, value in items:
        if op is sre.SUBPATTERN and value[0] == number:
            return int(value[3].getwidth()[0])
        optional = op in REPEATS and not value[0]
        if optional or op in (sre.BRANCH, sre.ASSERT_NOT, sre.GROUPREF_EXISTS):  # no two branches have one group
            continue
        held = max((_least_held(pieces, number) for pieces in inner(op, value)), default=-1)
        if held >= 0:
            return held
    return -1


def may_hold(pattern: str, group: str, characters: str) -> bool:
    r"""Return whether a group may hold one of some characters, as a set in it has them; look-aheads are not asked.

    >>> [may_hold(text, "g", "<>") for text in ("<(?P<g>[^>]{1,9}+)>", "<(?P<g>(?:[^<>]|x)++)>", r"(?P<g>\w)|.")]
    [True, False, False]
    """
    pieces = tree(pattern)
    return _may_hold(pieces, pieces.state.groupdict.get(group, 0), characters, inside=False)


def _may_hold(items: Any, number: int, characters: str, *, inside: bool) -> bool:
    for op, value in items:
        source = one_character(op, value)
        if source is not None and inside and re.search(f"(?s:{source})", characters):
            return True
        within = inside or (op is sre.SUBPATTERN and value[0] == number)
        looks = op in (sre.ASSERT, sre.ASSERT_NOT)
        if not looks and any(_may_hold(it, number, characters, inside=within) for it in inner(op, value)):
            return True
    return False


def last_characters(pattern: str) -> frozenset[str]:
    r"""Return what may be the last character of a match, as members of sets and as other pieces in source.

    Nothing of a way in which a look-ahead names what stands behind the match.

    >>> [sorted(last_characters(text)) for text in ("ab?", "a(?:[b-d]|e)?", r"a[ ]*+(?=b)", r"a(?:\w|.(?!b)|)")]
    [['a', 'b'], ['a', 'b-d', 'e'], [], ['.', '\\w', 'a']]
    """
    return frozenset(_last_characters(tree(pattern))[0])


def _last_characters(items: Any) -> tuple[set[str], bool]:
    """Return also whether the pieces may be empty, so that what stands before them counts."""
    found: set[str] = set()
    for op, value in reversed(list(items)):
        source = one_character(op, value)
        if source is not None:
            return found | (set(map(member_source, value)) if op is sre.IN else {source}), False
        if op is sre.ASSERT and value[0] > 0:
            return found, False
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            continue
        ways = [_last_characters(pieces) for pieces in inner(op, value)]
        found |= {it for last, _ in ways for it in last}
        optional = op in REPEATS and not value[0]
        if ways and not optional and not any(may_be_empty for _, may_be_empty in ways):
            return found, False
    return found, True


def _escaped(code: int) -> str:
    return re.escape(chr(code))
