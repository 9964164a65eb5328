"""Finds the entry points of plug-ins without importlib.metadata where there are none, which is nearly always.

That module and what it imports take a sixth of the time in which `callmark parse` starts (`python -m benchmarks import`
measures that). So the places are looked at where it would look, for a file that names the group; it is asked where one
is found, or where a place is none that can be looked at: a zip file, or a finder of one's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "callmark.dialects"
"""The group of entry points under which distributions register dialects."""

_METADATA: Final = (".dist-info", ".egg-info", "egg-info")  # folders that may hold entry points; the last is an egg's


def entry_points() -> Iterable[EntryPoint]:
    """Return the entry points of installed plug-ins, in the order of their names."""
    finders = any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder)
    if not finders and not any(map(_may_hold, sys.path)):
        return ()
    from importlib import metadata

    return sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name)


def _may_hold(place: str) -> bool:
    """Whether a distribution in a place of `sys.path` may have entry points of the group."""
    try:
        names = os.listdir(place or ".")
    except NotADirectoryError:
        return True
    except OSError:
        return False
    return any(_names_the_group(os.path.join(place, name)) for name in names if name.lower().endswith(_METADATA))


def _names_the_group(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return GROUP.encode() in file.read()
    except OSError:
        return False
