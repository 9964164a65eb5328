"""The loops that feed text to a parser: whole, by characters, cut once at every place, cut at random places.

The one place for such loops beside `callmark.testing`, from which the first of them comes. Each function takes a text
and the options of reading, and gives lists of events as they came, previews included; `joined` makes lists comparable
that differ only in how a text was cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from callmark import UsageError, parse
from callmark.events import Event
from callmark.reading import parser
from callmark.testing import in_chunks, joined

__all__ = ["MISUSE", "by_characters", "every_single_cut", "in_chunks", "joined", "random_cuts", "whole"]

# What another type is refused with: the compiled engine is not even asked.
MISUSE = UsageError if parser.__file__.endswith(".py") else (UsageError, TypeError)

EVERY_CUT_UP_TO = 400  # characters; a longer text is cut at SPREAD_CUTS places, for the work grows with the square
SPREAD_CUTS = 50


def whole(text: str, **options: Any) -> list[Event]:
    """Return the events of the text handed over in one piece."""
    return list(parse(text, **options).events)


def by_characters(text: str, **options: Any) -> list[Event]:
    """Return the events of the text fed one code point at a time."""
    return in_chunks(text, **options)


def every_single_cut(text: str, **options: Any) -> Iterator[tuple[int, list[Event]]]:
    """Yield, for each place from 0 to the end, the place and the events of the text fed in two chunks cut there."""
    if len(text) <= EVERY_CUT_UP_TO:
        cuts = range(len(text) + 1)
    else:
        cuts = range(0, len(text) + 1, len(text) // (SPREAD_CUTS - 1))
    for cut in cuts:
        yield cut, in_chunks([text[:cut], text[cut:]], **options)


def random_cuts(text: str, seed: int, **options: Any) -> list[Event]:
    """Return the events of the text fed in chunks of random lengths, empty ones among them; a seed names one way."""
    random = Random(seed)
    longest = random.choice([2, 5, 20, 80])
    chunks = []
    start = 0
    while start < len(text):
        end = start + random.randint(0, longest)
        chunks.append(text[start:end])
        start = end
    return in_chunks(chunks, **options)
