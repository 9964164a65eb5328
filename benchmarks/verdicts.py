"""What a reader found against what the generator meant: the calls in their order, and the text beside them.

Nothing is read or timed here. That a reader was too slow, failed or cannot is said where it was asked (`contests.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, and `true` is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def judged(calls: Sequence[Sequence[Any]], meant: Sequence[tuple[str, Any]], *, names: bool = True) -> str:
    """Return "right", or how many of the calls that were meant are there, in order, and how many more."""
    place = found = 0
    for name, arguments in meant:
        for ahead in range(place, len(calls)):
            if (not names or calls[ahead][0] == name) and same(calls[ahead][1], arguments):
                place, found = ahead + 1, found + 1
                break
    if found == len(meant) == len(calls):
        return "right"
    more = f", {len(calls) - found} others" if len(calls) > found else ""
    return f"wrong: {found} of {len(meant)} calls{more}"


def share_shown(content: str, prose: str) -> float:
    """Return how much of the text outside the markers a reader shows; 1 where it is just that, white space aside.

    More than 1 says that more is shown: parts of markers.
    """
    shown, meant = "".join(content.split()), "".join(prose.split())
    if shown == meant:
        return 1.0
    share = len(shown) / len(meant) if meant else float(len(shown) + 1)
    return share if share != 1 else 0.99  # as long, and something else
