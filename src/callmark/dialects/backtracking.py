r"""Counts in how many ways a pattern can match one text: each of them is tried where what stands behind is missing.

Model text is read by patterns that may be anybody's. One whose ways double with each character, `(?:a|a){1,40}` say,
takes forever at a text that is made for it, and nothing can stop `re`. So such a pattern is refused before there is
text: its ways are followed side by side, over texts that are made to have many, and counted.

What repeats possessively, an atomic group or a look-ahead gives nothing back: it is one way for what is around it, in
which each character chooses what it begins, and its own ways are counted by themselves. A look-ahead is not asked
whether it allows a way, and neither is a back reference, which stands for nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cached_property, lru_cache
from itertools import islice
from re import _constants as sre  # the parsed tree of a pattern has no public API; a property pins what is used
from typing import Any, Final, NamedTuple, TypeAlias

from callmark.dialects.parsed import inner, one_character, tree

_WAYS_LIMIT: Final = 1000  # two repeats side by side have 64 over `_LENGTH`, three some 2,000; callmark's own rows 3
_LENGTH: Final = 64  # characters of a text
_BEAM: Final = 3  # texts that are followed at a time: the one with the most ways may lead nowhere
_SOME: Final = "aZ_0.-:/<>()[]{}\"'`=,#|& \t\r\nß天"


class _Node(tuple[Any, ...]):
    """A piece of a pattern: ("one", source), ("times", least, most, pieces), ("either", ways) or ("atom", pieces),
    which give nothing back. Its hash is kept: it is asked for at each character, and would look at all that is in it.
    """

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


_Rest: TypeAlias = tuple[_Node, ...]
"""What must still match, piece by piece."""


class _Step(NamedTuple):
    """One way to take a character that `source` matches, and none of `claimed`; then `rest` must match."""

    source: str
    claimed: frozenset[str]
    rest: _Rest


@lru_cache(maxsize=1024)
def has_many_ways(pattern: str) -> bool:
    r"""Return whether a pattern, or a part of it, can match one text in more ways than anybody can wait for.

    Such a text was found, but for what look-aheads forbid; where none was, there may be one all the same. Cost:
    microseconds for most patterns, some 10 ms where there is much to choose, half a second for hundreds of words in a
    repeat.

    >>> many = ["(a+)+b", "(?:a|b*)*c", r"(?:[a-z]{1,30}\.?){1,8}", "(?:ab?|[a-z]){1,64}x", "a?" * 28 + "a" * 28]
    >>> all(map(has_many_ways, many))
    True
    >>> few = ["a+a+b", "(?:ab|ac){1,99}", "(?:a++)+b", "(?:a|ab){1,40}+", r"(?:[a-z]{1,30}+\.?){1,8}", "(?: a+)+b"]
    >>> any(map(has_many_ways, few))
    False
    """
    sources: dict[str, None] = {}
    units: dict[_Rest, None] = {}
    units[_nodes(tree(pattern), re.NOFLAG, sources, units)] = None
    hard = [unit for unit in units if _at_most(unit) > _WAYS_LIMIT]
    if not hard:
        return False
    matches = {source: re.compile(source).match for source in sources}
    signs = dict.fromkeys(_SOME + "".join(sources))
    kinds = dict.fromkeys(frozenset(source for source in sources if matches[source](sign)) for sign in signs)
    return any(_search(unit, kinds) for unit in hard)


def _nodes(items: Any, flags: int, sources: dict[str, None], units: dict[_Rest, None]) -> _Rest:
    """Return parsed pieces as nodes. The sources of single characters are added to `sources`; to `units` each repeat,
    and what is in a piece that gives nothing back.
    """
    nodes: list[_Node] = []
    for op, value in items:
        source = "(?s:.)" if op is sre.ANY and flags & re.DOTALL else one_character(op, value)
        if source is not None:
            source = f"(?i:{source})" if flags & re.IGNORECASE else source
            sources[source] = None
            nodes.append(_Node(("one", source)))
            continue
        within = (flags | value[1]) & ~value[2] if op is sre.SUBPATTERN else flags
        inside = [_nodes(it, within, sources, units) for it in inner(op, value)]
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least = min(int(value[0]), _LENGTH)
            nodes.append(_Node(("times", least, min(int(value[1]), least + _LENGTH), inside[0])))
            units[(nodes[-1],)] = None
        elif op is sre.SUBPATTERN:
            nodes += inside[0]
        elif op in (sre.BRANCH, sre.GROUPREF_EXISTS):
            nodes.append(_Node(("either", tuple(inside))))
        elif inside:
            units[inside[0]] = None
            if op is sre.POSSESSIVE_REPEAT:
                times = _Node(("times", int(value[0]), int(value[1]), inside[0]))
                nodes.append(_Node(("atom", (times,))))
            elif op is sre.ATOMIC_GROUP:
                nodes.append(_Node(("atom", inside[0])))
    return tuple(nodes)


def _at_most(rest: _Rest) -> int:
    """Return how many ways there are at most, whatever the text; `_WAYS_LIMIT` and one for all above it."""
    product = 1
    for kind, *node in rest:
        if kind == "either":
            product *= sum(map(_at_most, node[0]))
        elif kind == "times":
            least, most, inside = node
            product *= min(_at_most(inside) ** most, _WAYS_LIMIT + 1) * (most - least + 1)
        product = min(product, _WAYS_LIMIT + 1)
    return product


def _search(unit: _Rest, kinds: Collection[frozenset[str]]) -> bool:
    """Return whether a text was found that has too many ways; `kinds` of characters are the sources that match them."""
    moves: dict[_Rest, list[Counter[_Rest]]] = {}  # what is left behind a character, for each kind
    beam = [Counter([unit])]
    seen: set[frozenset[tuple[_Rest, int]]] = set()
    for _ in range(_LENGTH):
        found: list[Counter[_Rest]] = []
        for ways in beam:
            after: list[Counter[_Rest]] = [Counter() for _ in kinds]
            for rest, count in ways.items():
                if rest not in moves:
                    moves[rest] = _moves(rest, kinds)
                for sums, some in zip(after, moves[rest], strict=True):
                    for behind, times in some.items():
                        sums[behind] += count * times
            for sums in after:
                same = frozenset(sums.items())
                if sums and same not in seen:
                    seen.add(same)
                    found.append(sums)
        beam = sorted(found, key=Counter.total, reverse=True)[:_BEAM]
        if not beam or beam[0].total() > _WAYS_LIMIT:
            return bool(beam)
    return False


def _moves(rest: _Rest, kinds: Collection[frozenset[str]]) -> list[Counter[_Rest]]:
    """Return what may be left of `rest` behind a character, and in how many ways, for each kind of character."""
    steps = [*islice(_steps(rest), _WAYS_LIMIT)]
    return [
        Counter(step.rest for step in steps if step.source in kind and kind.isdisjoint(step.claimed)) for kind in kinds
    ]


def _steps(rest: _Rest) -> Iterator[_Step]:
    """Yield the ways to take one character, in the order in which they are tried."""
    if not rest:
        return
    (kind, *node), behind = rest[0], rest[1:]
    if kind == "one":
        yield _Step(node[0], frozenset(), behind)
    elif kind == "either":
        for way in node[0]:
            yield from _steps(way + behind)
    elif kind == "times":
        least, most, inside = node
        while most:
            more = (_Node(("times", max(least - 1, 0), most - 1, inside)),) if most > 1 else ()
            for step in _steps(inside):
                yield step._replace(rest=step.rest + more + behind)
            if not least or not _may_be_empty(inside):
                break
            least, most = least - 1, most - 1  # one that must be there is empty, and the next may be as well
        if not least or _may_be_empty(inside):
            yield from _steps(behind)
    else:
        claimed: frozenset[str] = frozenset()
        for step in _steps(node[0]):
            left = (_Node(("atom", step.rest)),) if step.rest else ()
            yield _Step(step.source, step.claimed | claimed, left + behind)
            claimed |= {step.source}
        for step in _steps(behind) if _may_be_empty(node[0]) else ():
            yield step._replace(claimed=step.claimed | claimed)


def _may_be_empty(rest: _Rest) -> bool:
    return all(
        kind != "one"
        and (kind != "times" or not node[0] or _may_be_empty(node[2]))
        and (kind != "either" or any(map(_may_be_empty, node[0])))
        and (kind != "atom" or _may_be_empty(node[0]))
        for kind, *node in rest
    )
