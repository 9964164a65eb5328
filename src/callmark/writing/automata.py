"""Pieces of grammars, which every target can print, and free text that holds no opener of a dialect.

Grammar engines have no look-ahead. So "text in which no marker begins" is an automaton: the openers of the dialect's
own row are read as a sequence of characters, sets and repetitions, and the states that have not seen one are written
as right-linear rules. Where a pattern is too rich for that, its beginning is taken: then more is kept out than need be.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, takewhile
from re import _constants as sre  # as in `infixes`
from typing import Any, Final, TypeAlias

import msgspec

from callmark.dialects import Dialect
from callmark.dialects.notation import anonymous, expand
from callmark.dialects.parsed import REPEATS, tree

Range: TypeAlias = tuple[str, str]

_LAST: Final = "\U0010ffff"
_NOT_ASCII: Final = ("\x80", _LAST)
_FEW: Final = 16  # characters of a set, at most, of which a text is kept free
_BLANKS: Final = " \t\r\n"
_GIVEN_UP: Final = 8  # beginnings of closers one after the other in a text: `<<<` is an operator, more is a drawing


class Lit(msgspec.Struct, frozen=True, cache_hash=True):
    """A literal text."""

    text: str


class Chars(msgspec.Struct, frozen=True, cache_hash=True):
    """One character of some ranges, or with `negated` of none of them."""

    ranges: tuple[Range, ...]
    negated: bool = False


class Seq(msgspec.Struct, frozen=True, cache_hash=True):
    """One piece after the other."""

    items: tuple[Node, ...]


class Alt(msgspec.Struct, frozen=True, cache_hash=True):
    """One of several pieces."""

    items: tuple[Node, ...]


class Token(Seq, frozen=True, cache_hash=True):
    """Pieces one after the other that a lexer takes at once, such as a string or a number."""


class Body(Seq, frozen=True, cache_hash=True):
    """The arguments of a call. Pieces of them may begin alike: a lexer takes none of them whole if it cannot all."""


class Rep(msgspec.Struct, frozen=True, cache_hash=True):
    """A piece `least` to `most` times."""

    item: Node
    least: int
    most: int


class Ref(msgspec.Struct, frozen=True, cache_hash=True):
    """A rule, by its name."""

    name: str


class Free(msgspec.Struct, frozen=True, cache_hash=True):
    """Text in which no marker of the dialect begins, of any length, and then what a marker begins with, or nothing."""

    until: str = ""


class Opening(msgspec.Struct, frozen=True, cache_hash=True):
    """What a marker begins with at the start of a message: a lexer must not take it for the beginning of free text."""

    text: str


Node: TypeAlias = Lit | Chars | Seq | Alt | Rep | Ref | Free | Opening


def seq(*items: Node | str) -> Seq:
    """Return pieces one after the other; a str is a literal."""
    return Seq(tuple(Lit(item) if isinstance(item, str) else item for item in items))


def alt(items: Iterable[Node | str]) -> Node:
    """Return one of several pieces."""
    nodes = tuple(dict.fromkeys(Lit(item) if isinstance(item, str) else item for item in items))
    return nodes[0] if len(nodes) == 1 else Alt(nodes)


def token(*items: Node | str) -> Node:
    """Return pieces that a lexer takes at once."""
    return Token(seq(*items).items)


def times(item: Node, least: int, most: int) -> Node:
    """Return a piece `least` to `most` times; engines refuse a repetition that may not be there at all."""
    return Rep(item, least, most) if most else Lit("")


def maybe(item: Node | str) -> Node:
    """Return a piece that may be left out."""
    return Rep(Lit(item) if isinstance(item, str) else item, 0, 1)


def weight(node: Node, known: dict[int, int]) -> int:
    """Return about how many characters a piece is long where all is written out; `known` has those of its parts."""
    if id(node) not in known:
        match node:
            case Lit(text) | Opening(text):
                found = len(text)
            case Chars(ranges):
                found = 4 * len(ranges)
            case Rep(item):
                found = 4 + weight(item, known)
            case Ref() | Free():
                found = 4
            case _:
                found = sum(weight(item, known) + 1 for item in node.items)
        known[id(node)] = found
    return known[id(node)]


def without(words: Iterable[str], closed: Iterable[Range], escapes: tuple[Node, ...], least: int, most: int) -> Node:
    """Return a text of `least` to `most` characters in which none of the words stands.

    closed   characters that cannot stand in it as they are
    escapes  what counts as one character, too

    Of a word whose first character comes again, what is before that or from there on is refused, the longer of both.
    What stands between two characters that may begin one counts as one.
    """
    cut = {
        max(word[: word.find(word[0], 1)], word[word.rfind(word[0]) :], key=len) if word[0] in word[1:] else word
        for word in words
    }
    firsts = tuple((first, first) for first in sorted({word[0] for word in cut}))
    apart = (*closed, *firsts)

    def begun(begin: str) -> Node:
        """Return what is left of a text that went along with some word, and does not go on so."""
        following = sorted({word[len(begin)] for word in cut if word.startswith(begin) and word != begin})
        on = (seq(char, begun(begin + char)) for char in following if begin + char not in cut)
        return alt([Chars((*apart, *((char, char) for char in following)), negated=True), *escapes, *on])

    def given_up(begin: str) -> Node:
        """Return what may follow the beginning of a word up to where another one begins, or the text ends."""
        following = sorted({word[len(begin)] for word in cut if word.startswith(begin) and word != begin})
        on = [seq(char, given_up(begin + char)) for char in following if begin + char not in cut]
        return maybe(alt(on)) if on else Lit("")

    longer = [first for first, _ in firsts if first not in cut]
    plain = Chars(apart, negated=True)
    if not longer:
        return times(alt([plain, *escapes]), least, most)
    ended = Rep(alt(seq(first, given_up(first)) for first in longer), 0, _GIVEN_UP)
    unit = alt([plain, *escapes, *(seq(ended, first, begun(first)) for first in longer)])
    return seq(times(unit, least, most), ended)


# Openers as steps: a set of characters, and whether it may stand any number of times, none included.

Step: TypeAlias = tuple[Chars, bool]


def opener_steps(row: Dialect) -> list[list[Step]]:
    """Return how the markers of a dialect begin, each as steps; and what leads on to a further call where none ends."""
    patterns = [form.head if form.alone else form.opener for form in row.forms]
    endless = (form for form in row.forms if form.opener and form.separator and not form.closer)
    patterns += [form.separator + form.head for form in endless]
    found: list[list[Step]] = []
    for pattern in patterns:
        for way in _ways(list(tree(anonymous(pattern)))):
            steps: list[Step] = []
            _append_steps(way, steps)
            found.append(steps)
    return found


def words_of(pattern: str, first: str = "", behind: Iterable[str] = ()) -> set[str]:
    """Return what every match of a pattern of a row holds, one for each choice: a word that begins with `first`, or the
    characters of which it has one, where it has none; "" where these are too many.

    A match may begin in a text and go on in what is `behind` that: it is known by what it holds before.
    """
    found: set[str] = set()
    for way in _ways(list(tree(expand(pattern))), ahead=True):
        steps: list[Step] = []
        whole = _append_steps(way, steps)
        begun = next((place for place, (_, repeated) in enumerate(steps, 1) if not repeated), 0)
        over = (at for at in range(begun, len(steps)) if any(_goes_on(steps[at:], end, whole) for end in behind))
        steps = steps[: next(over, None)]
        members = [_few(chars) if not repeated else "" for chars, repeated in steps]
        begin = members.index(first) if first in members else 0
        word = "".join(takewhile(lambda some: len(some) == 1, members[begin:]))
        # No text goes without blanks, and a line break may be the template's.
        fewest = min(filter(None, members), key=lambda some: (len(some), some in _BLANKS), default="")
        found |= {word} if first and word.startswith(first) else {*fewest} or {""}
    return found


def _few(chars: Chars) -> str:
    """Return the characters of a set, "" where they are many."""
    size = sum(ord(high) - ord(low) + 1 for low, high in chars.ranges)
    if chars.negated or size > _FEW:
        return ""
    return "".join(chr(code) for low, high in chars.ranges for code in range(ord(low), ord(high) + 1))


def _goes_on(steps: list[Step], text: str, whole: bool) -> bool:
    """Return whether steps may be in a text from its beginning on, as far as both go. Where these are not the `whole`
    of a pattern, all of the text must be seen for that.
    """
    for char, (chars, repeated) in zip(text, steps, strict=False):
        if repeated or not _holds(chars, char):
            return repeated
    return whole or len(text) <= len(steps)


def _ways(items: list[Any], *, ahead: bool = False) -> list[list[Any]]:
    """Return what a parsed pattern stands for, one for each choice of its alternatives; `ahead`: of those in its
    look-ahead too, where more than its beginning is wanted.
    """
    for place, (op, value) in enumerate(items):
        before, behind = items[:place], items[place + 1 :]
        if op is sre.SUBPATTERN:
            return _ways([*before, *value[3], *behind], ahead=ahead)
        if op is sre.BRANCH:
            return [way for branch in value[1] for way in _ways([*before, *branch, *behind], ahead=ahead)]
        if op is sre.ASSERT and ahead:  # what stands behind it stands in its place too
            return [[*before, (op, (1, way))] for way in _ways(list(value[1]), ahead=True)]
        if op in REPEATS and value[0] and not _is_one(value[2]) and all(other in REPEATS for other, _ in before):
            return _ways([*before, *value[2], (op, (0, *value[1:])), *behind], ahead=ahead)  # its first time is certain
    return [items]


def _is_one(items: Any) -> bool:
    """Whether parsed pieces are one character, or one of a set."""
    return len(items) == 1 and items[0][0] in (sre.IN, sre.LITERAL)


def _append_steps(items: list[Any], steps: list[Step]) -> bool:
    """Append the steps of a parsed pattern; False where it has a part that no step can say."""
    for op, value in items:
        if op is sre.LITERAL:
            steps.append((Chars(((chr(value), chr(value)),)), False))
        elif op is sre.IN:
            steps.append((_set(value), False))
        elif op in REPEATS:
            least, _, sub = value
            if not _is_one(sub):
                if steps or least:
                    return False
                continue  # what may stand first may be missing too
            chars = _set(sub[0][1]) if sub[0][0] is sre.IN else Chars(((chr(sub[0][1]), chr(sub[0][1])),))
            steps += [(chars, False)] * least + [(chars, True)]
        elif op is sre.ASSERT:
            return _append_steps(list(value[1]), steps)
        else:
            return False
    return True


def _set(members: list[Any]) -> Chars:
    ranges: list[Range] = []
    for op, value in members:
        if op is sre.LITERAL:
            ranges.append((chr(value), chr(value)))
        elif op is sre.RANGE:
            ranges.append((chr(value[0]), chr(value[1])))
        elif op is sre.CATEGORY and value is sre.CATEGORY_WORD:
            ranges += [("0", "9"), ("A", "Z"), ("a", "z"), ("_", "_"), _NOT_ASCII]
        elif op is sre.CATEGORY and value is sre.CATEGORY_NOT_WORD:  # [^\W\d]: a letter or an underscore
            return Chars((("A", "Z"), ("a", "z"), ("_", "_"), _NOT_ASCII))
    return Chars(tuple(ranges), any(op is sre.NEGATE for op, _ in members))


def text_rules(openers: list[list[Step]], prefix: str) -> dict[str, Node]:
    """Return right-linear rules of the texts that hold none of the openers; the first is the one to begin with."""
    marks = sorted({end for steps in openers for chars, _ in steps for end in _ends(chars)} | {"\x00"})
    blocks = [(mark, chr(ord(after) - 1)) for mark, after in pairwise(marks)] + [(marks[-1], _LAST)]
    start = frozenset((number, 0) for number in range(len(openers)))
    names = {_closed(start, openers): f"{prefix}0"}
    waiting = list(names)
    rules: dict[str, Node] = {}
    while waiting:
        state = waiting.pop(0)
        targets: dict[frozenset[tuple[int, int]], list[Range]] = {}
        for block in blocks:
            following = _closed(start | _after(state, block[0], openers), openers)
            if not any(place == len(openers[number]) for number, place in following):
                targets.setdefault(following, []).append(block)
        for following in targets:
            if following not in names:
                names[following] = f"{prefix}{len(names)}"
                waiting.append(following)
        ways: list[Node] = [seq(Chars(_joined(ranges)), Ref(names[target])) for target, ranges in targets.items()]
        rules[names[state]] = Alt((*ways, Lit("")))
    return rules


def _ends(chars: Chars) -> list[str]:
    """Return the characters from which on being in the set, or not, changes."""
    return [mark for low, high in chars.ranges for mark in (low, chr(min(ord(high) + 1, 0x10FFFF)))]


def _holds(chars: Chars, char: str) -> bool:
    return any(low <= char <= high for low, high in chars.ranges) != chars.negated


def _closed(state: frozenset[tuple[int, int]], openers: list[list[Step]]) -> frozenset[tuple[int, int]]:
    """Add the places that are reached without a character: behind steps that may be left out."""
    found = set(state)
    waiting = list(state)
    while waiting:
        number, place = waiting.pop()
        if place < len(openers[number]) and openers[number][place][1] and (number, place + 1) not in found:
            found.add((number, place + 1))
            waiting.append((number, place + 1))
    return frozenset(found)


def _after(state: frozenset[tuple[int, int]], char: str, openers: list[list[Step]]) -> frozenset[tuple[int, int]]:
    reached = set()
    for number, place in state:
        chars, repeated = openers[number][place]
        if _holds(chars, char):
            reached.add((number, place if repeated else place + 1))
    return frozenset(reached)


def _joined(ranges: list[Range]) -> tuple[Range, ...]:
    """Return neighbouring ranges as one."""
    result: list[Range] = []
    for low, high in sorted(ranges):
        if result and ord(result[-1][1]) + 1 == ord(low):
            result[-1] = (result[-1][0], high)
        else:
            result.append((low, high))
    return tuple(result)
