r"""Derives from patterns what reading and writing ask of them: unfinished beginnings, what several have in common, with
which characters and texts a match begins.

Where a chunk ends inside a possible marker, the scanner must know whether more text could complete it. For `\[CALL: f`
the answer is the pattern `(?:\Z|\[(?:\Z|C(?:\Z|A(?: ... ))))`: at each element the text may be over. Such a pattern is
derived here from the syntax tree that `re` itself makes, so that the question costs one match of `re` (0.2 microseconds
where `regex`, which can answer it too with `partial=True`, takes 2; a property holds the two to the same answers).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from re import _constants as sre  # the tree has no public API; a property pins what is used
from typing import Any, NamedTuple

from callmark.dialects.parsed import member_source, one_character, tree

_MANY = 4  # ways: where more part, a look at their first characters costs less than to try each
_TOLD_BY = 3  # of these: `<p>` and `<|x` are soon told from what begins markers
_FEW = 8  # members of a set that stand for themselves
_MANY_TEXTS = 256  # with which a pattern may begin from a set on: where there are more, they are cut behind that
_CR, _LF = ((sre.LITERAL, ord(char)) for char in "\r\n")
_SUFFIX = {sre.MAX_REPEAT: "", sre.MIN_REPEAT: "?", sre.POSSESSIVE_REPEAT: "+"}


class _Inside(NamedTuple):
    """What matches an unfinished text: whether that may be over at once, and the ways in which it may go on.

    They are kept apart, as `re` passes by a way at once that begins with another literal than what is there.
    """

    ended: bool
    ways: list[str]

    def source(self) -> str:
        ways = [*self.ways, r"\Z"] if self.ended else self.ways or ["(?!)"]
        return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


_NOWHERE = _Inside(False, [])


class UnsupportedPatternError(ValueError):
    """The pattern uses what this module does not know; `regex` must answer instead."""


def unfinished(pattern: str) -> str:
    r"""Return a pattern that matches, up to `\Z`, what more text could make a match of `pattern`.

    Raises UnsupportedPatternError for back references, look-behind, conditions and anchors.

    >>> unfinished("<a(?:bc|d)"), unfinished("a[bc]?"), unfinished("(?:ab){2,9}")
    ('(?:<(?:a(?:b\\Z|\\Z)|\\Z)|\\Z)', '(?:a\\Z|\\Z)', '(?:ab){0,8}(?:a\\Z|\\Z)')
    """
    return _inside_all(list(tree(pattern))).source()


def merged(patterns: Sequence[str]) -> str:
    r"""Return one pattern that matches where any of `patterns` does: what they have in common is tried once.

    Where they part, a look at the next character tells whether any of them can go on; where many do, at the next few.
    Where each begins with a literal, `re` searches for the set of these. Groups lose their names. Raises
    UnsupportedPatternError as `unfinished` does.

    >>> merged(["<a>x", "<a>[yz]", "<b>"])
    '<(?=[ab])(?:a>(?=[xyz])(?:x|[yz])|b>)'
    >>> merged(["a?b", "(?:cx|d)e"])
    '(?:ab|b|cxe|de)'
    >>> merged(["x[ab]*+", "xc"])
    'x(?:(?:[ab]){0,}+|c)'
    """
    return merged_ways([list(tree(pattern)) for pattern in patterns])


def merged_ways(ways: Sequence[list[Any]]) -> str:
    """As `merged`, for patterns as their parsed pieces."""
    return _merged([items for way in ways for items in _opened(way)], guarded=False)


def apart(patterns: Sequence[str]) -> list[str]:
    r"""Return patterns, one for each first element, of which one matches wherever any of `patterns` does.

    A line break before a literal is left out, and what stands behind that in a look-ahead: then they match in more
    places, but one search will do for all. `re` skips to a literal several times faster than to a member of a set.
    Raises as `merged` does.

    >>> apart(["<a>x", "<b>", r"\r?\n(?=<c>)x"])
    ['<(?=[abc])(?:a>x|b>|c>)']
    """
    ways = [way for begun in _ways(patterns) for way in _behind_line_break(begun)]
    return [first + _merged(rests) for first, rests in _grouped(ways).items()] if all(ways) else [""]


def _behind_line_break(items: list[Any]) -> list[list[Any]]:
    """Return the ways in which pieces go on behind the line break that they begin with; themselves where they begin
    with none, or with no literal behind it.
    """
    rest = items[1:] if items[:1] == [_CR] else items
    if rest[:1] != [_LF]:
        return [items]
    rest = rest[1:]
    while rest and rest[0][0] is sre.ASSERT and rest[0][1][0] > 0:
        rest = list(rest[0][1][1])
    ways = _opened(rest)
    return ways if all(way and way[0][0] is sre.LITERAL and way[0] != _LF for way in ways) else [items]


def _ways(patterns: Sequence[str]) -> list[list[Any]]:
    return [items for pattern in patterns for items in _opened(list(tree(pattern)))]


def literals(pattern: str, gap: str = "") -> list[str]:
    r"""Return texts such that every match of `pattern` begins with one of them.

    >>> literals(r"<(?:a:)?b[cd]")
    ['<a:b', '<b']

    They go on behind blanks that may be missing where there is a `gap`, which stands for these:

    >>> literals(r"<[ \t]*+ab[cd]"), literals(r"<[ \t]*+ab[cd]", gap=" ")
    (['<'], ['< ab'])
    """
    try:
        return _literals(list(tree(pattern)), gap)
    except re.error:
        return [""]


def openings(pattern: str, most: int) -> set[str]:
    r"""Return texts with one of which every match of `pattern` begins, of `most` characters where these are known.

    Unlike `literals` it goes on with the members of a set, behind what may be missing, and with letters of both cases.

    >>> sorted(openings(r"<[ab]c", 3)), sorted(openings(r"<[ ]*+(?i:d)", 3))
    (['<ac', '<bc'], ['<  ', '< D', '< d', '<D', '<d'])
    """
    return _begins(list(tree(pattern)), most)


def first_characters(pattern: str) -> frozenset[str] | None:
    r"""Return the characters with which a match of `pattern` may begin; None where that is not certain.

    >>> sorted(first_characters(r"<(?:a:)?b|[#@]x"))
    ['#', '<', '@']
    """
    return first_of(list(tree(pattern)))


def first_of(items: list[Any]) -> frozenset[str] | None:
    """As `first_characters`, for a pattern as its parsed pieces."""
    return _characters(_first(items))


def _characters(members: dict[str, None] | None) -> frozenset[str] | None:
    """Return the members of a set, None where others than single characters are among them."""
    if members is None or any(member != re.escape(member[-1]) for member in members):
        return None
    return frozenset(member[-1] for member in members)


def behind_line_breaks(patterns: Sequence[str]) -> frozenset[str] | None:
    r"""Return the characters with which what begins with a line break goes on; None where that is not certain.

    >>> sorted(behind_line_breaks([r"\r?\n(?=<a)|<b", "c"]))
    ['\n', '<']
    """
    found: frozenset[str] = frozenset()
    for way in _ways(patterns):
        if may_begin_with("\n", way) or may_begin_with("\r", way):
            behind = first_of(way[1:]) if way and way[0][0] is sre.LITERAL else None
            if behind is None:
                return None
            found |= behind
    return found


def may_begin_with(char: str, items: list[Any]) -> bool:
    """Whether a match of parsed pieces may begin with a character, or be empty; True where that is not certain."""
    members = _first(items)
    return members is None or re.match(f"[{''.join(members)}]", char) is not None


def _literals(items: list[Any], gap: str) -> list[str]:
    if items and items[0][0] is sre.LITERAL:
        return [chr(items[0][1]) + rest for rest in _literals(items[1:], gap)]
    if gap and items and _are_blanks(items[0]):
        return [gap + rest for rest in _literals(items[1:], gap)]
    ways = _opened(items)
    return [""] if ways == [items] else [text for way in ways for text in _literals(way, gap)]


def _are_blanks(item: Any) -> bool:
    """Whether `item` stands for blanks, or for nothing."""
    op, value = item
    if op not in _SUFFIX or value[0] > 0 or len(value[2]) != 1:
        return False
    kind, members = value[2][0]
    return kind is sre.IN and all(member[0] is sre.LITERAL and chr(member[1]).isspace() for member in members)


def _opened(items: list[Any]) -> list[list[Any]]:
    """Return the ways in which `items` may begin, without brackets and options before their first element."""
    if not items:
        return [items]
    (op, value), rest = items[0], items[1:]
    if op is sre.SUBPATTERN and not value[1]:
        return _opened([*value[3], *rest])
    if op is sre.BRANCH:
        return [way for branch in value[1] for way in _opened([*branch, *rest])]
    if op is sre.MAX_REPEAT and value[:2] == (0, 1):
        return [*_opened([*value[2], *rest]), *_opened(rest)]
    return [items]


def _merged(sequences: list[list[Any]], *, guarded: bool = True) -> str:
    if not all(sequences):
        return ""  # one of them has matched, so the others do not matter
    groups = _grouped(sequences)
    source = "|".join(first + _merged(rests) for first, rests in groups.items())
    if len(groups) == 1:
        return source
    first = None
    if guarded or any(items[0][0] is not sre.LITERAL for items in sequences):
        first = _united([_first(items) for items in sequences])
    if first is None:
        return f"(?:{source})"
    looks = f"(?=[{''.join(first)}])"
    if len(groups) > _MANY:
        begins = {text for items in sequences for text in _begins(items, _TOLD_BY)}
        looks += f"(?={any_of(begins)})"
    return f"{looks}(?:{source})"


def any_of(texts: Collection[str]) -> str:
    """Return a pattern that matches where any of `texts` begins.

    >>> any_of({"<a", "<bc", "<bd"})
    '<(?:a|b(?:c|d))'
    """
    if "" in texts:
        return ""
    behind: dict[str, set[str]] = {}
    for text in sorted(texts):
        behind.setdefault(text[0], set()).add(text[1:])
    ways = [re.escape(char) + any_of(rests) for char, rests in behind.items()]
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


def _begins(items: list[Any], most: int) -> set[str]:
    """Return texts such that every match of `items` begins with one of them, of `most` characters where they are known.
    """
    if not items or not most:
        return {""}
    (op, value), rest = items[0], items[1:]
    if op is sre.LITERAL:
        return {chr(value) + text for text in _begins(rest, most - 1)}
    if op is sre.IN and len(value) <= _FEW and all(kind is sre.LITERAL for kind, _ in value):
        behind = _begins(rest, most - 1)
        if len(value) * len(behind) > _MANY_TEXTS:
            behind = {""}
        return {chr(code) + text for _, code in value for text in behind}
    if op in _SUFFIX:
        least, times, sub = value
        more = rest
        if times > 1:  # what stands behind it is known where each time takes a character
            takes = len(sub) > 0 and one_character(*sub[0]) is not None
            more = [(op, (max(0, least - 1), times - 1, sub)), *rest] if takes else []
        texts = _begins([*sub, *more], most)
        return texts | _begins(rest, most) if least == 0 else texts
    if op is sre.SUBPATTERN and value[1]:
        return {both for text in _begins(list(value[3]), most) for both in _in_both_cases(text)}
    if op is sre.SUBPATTERN:
        return _begins([*value[3], *rest], most)
    if op is sre.BRANCH:
        return {text for branch in value[1] for text in _begins([*branch, *rest], most)}
    return _begins(rest, most) if op in (sre.ASSERT, sre.ASSERT_NOT) else {""}


def _in_both_cases(text: str) -> list[str]:
    """Return the texts that `text` matches whatever the case of its letters, up to what has more to it than two."""
    texts = [""]
    for char in text:
        both = _of_both_cases({char: None})
        if both is None:
            break
        texts = [before + case for before in texts for case in both]
    return texts


def _grouped(sequences: list[list[Any]]) -> dict[str, list[list[Any]]]:
    """Return what may follow each first element."""
    groups: dict[str, list[list[Any]]] = {}
    for items in sequences:
        groups.setdefault(_whole(items[0]), []).append(items[1:])
    return groups


def _first(items: list[Any]) -> dict[str, None] | None:
    """Return the members of a set of all characters that a match may begin with; None where that is not known."""
    if not items:
        return None
    (op, value), rest = items[0], items[1:]
    if op is sre.LITERAL:
        return {member_source((op, value)): None}
    if op is sre.IN:
        return None if value[0][0] is sre.NEGATE else dict.fromkeys(map(member_source, value))
    if op in _SUFFIX:
        first = _first(list(value[2]))
        return _united([first, _first(rest)]) if value[0] == 0 else first
    if op is sre.SUBPATTERN:
        first = _first([*value[3], *rest])
        return first if not value[1] else _of_both_cases(first)
    if op is sre.ATOMIC_GROUP:
        return _first([*value, *rest])
    if op is sre.BRANCH:
        return _united([_first([*branch, *rest]) for branch in value[1]])
    if op is sre.ASSERT:
        return _first(list(value[1]))
    return _first(rest) if op is sre.ASSERT_NOT else None


def _united(sets: list[dict[str, None] | None]) -> dict[str, None] | None:
    united: dict[str, None] = {}
    for members in sets:
        if members is None:
            return None
        united |= members
    return united


def _of_both_cases(members: dict[str, None] | None) -> dict[str, None] | None:
    """Return the letters `members` in both cases; None where there is more to it (`s` has a long one, say)."""
    if members is None or not all(len(char) == 1 and char in "abcdefghjlmnopqrtuvwxyz" for char in members):
        return None
    return members | dict.fromkeys("".join(members).upper())


def _inside_all(items: Sequence[Any]) -> _Inside:
    """Return what matches a text that ends before the last of `items` is whole."""
    result = _NOWHERE
    for item in reversed(items):
        ended, ways = _inside(item)
        result = _Inside(ended, ways if result == _NOWHERE else [*ways, f"{_whole(item)}{result.source()}"])
    return result


def _inside(item: Any) -> _Inside:
    """Return what matches a text that ends before or within `item`."""
    op, value = item
    if op in _SUFFIX:
        _, most, sub = value
        inside = _inside_all(list(sub))
        if most == 1:
            return inside
        within = inside.source()
        whole, suffix = _source(sub), ""
        if len(sub) == 1 and one_character(*sub[0]) is not None:
            suffix = "+"
        elif op is sre.POSSESSIVE_REPEAT:  # what the end cuts might be taken rather than what is whole
            whole, suffix = f"(?!{within}){whole}", "+"
        before = f"(?:{whole})" + _braces(0, most if most is sre.MAXREPEAT else most - 1)  # one is within
        return _Inside(False, [f"{before}{suffix}{within}"]) if most else _NOWHERE
    if op is sre.SUBPATTERN:
        _, flags, unset, sub = value
        inside = _inside_all(list(sub))
        return _Inside(inside.ended, [_flagged(way, flags, unset) for way in inside.ways])
    if op is sre.ATOMIC_GROUP:
        return _inside_all(list(value))
    if op is sre.BRANCH:
        insides = [_inside_all(list(branch)) for branch in value[1]]
        return _Inside(any(it.ended for it in insides), [way for it in insides for way in it.ways])
    if op is sre.ASSERT and value[0] > 0:
        return _inside_all(list(value[1]))
    if op is sre.ASSERT_NOT and value[0] > 0:
        if "(?!" in _source(value[1]):
            raise UnsupportedPatternError("a negative look-ahead in another one: more text may make both match")
        return _NOWHERE
    if one_character(op, value) is not None:
        return _Inside(True, [])
    raise UnsupportedPatternError(f"no rule for {op}")


def _whole(item: Any) -> str:
    """Return the source of `item`."""
    op, value = item
    character = one_character(op, value)
    if character is not None:
        return character
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
