"""Where the time of reading goes, of callmark or a peer: samples of the processor's time, by function and line.

A signal comes after each millisecond of the processor, and the line that runs then is counted: next to nothing is added
to what is measured, so short functions do not look long. Time in C (`re`, msgspec, pydantic's core) counts for the line
of Python that called it. Sampling wants a system with `setitimer`, and readers in Python.
"""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import callmark
from benchmarks.contests import OURS, READ_BY, Arena, Entrant
from benchmarks.environments import in_python
from benchmarks.measure import TooSlowError
from benchmarks.report import Row, table
from benchmarks.workers import FailedError
from benchmarks.workloads import SPELLINGS, Workload, chunks, dense, huge, repairs, sparse

SHAPES = {"prose with calls": sparse, "dense": dense, "one big call": huge}
LEAST_SHARE = 0.03  # of the functions that are shown

_OURS = Path(callmark.__file__).parent
_INSTALLED = re.compile(r"[\\/][Ll]ib[\\/](?:python[0-9.]+[\\/])?(?:site-packages[\\/])?")


def profile(
    arena: Arena, entrants: Sequence[Entrant], spelling: str, ways: Sequence[str], characters: int, seconds: float
) -> Iterator[str]:
    """Yield a table for each text, way and reader: the functions that take the most time, and their longest line."""
    texts = [make(SPELLINGS[spelling], characters, arena.scale.seed) for make in SHAPES.values()]
    if spelling == "hermes":
        texts.append(repairs(characters, arena.scale.seed))
    for workload in texts:
        key = arena.load(workload)
        for way in ways:
            for entrant in entrants:
                yield _profiled(arena, entrant, workload, key, way, seconds)
        arena.forget()


def readers(arena: Arena, spelling: str) -> list[Entrant]:
    """Return who can be sampled: callmark alone, or the peers of the arena that read the spelling in Python."""
    peers = [one for one in READ_BY.get(spelling, ()) if one.peer in arena.workers and in_python(one.peer)]
    return peers or [Entrant("callmark", OURS, "callmark")]


def _profiled(arena: Arena, entrant: Entrant, workload: Workload, key: str, way: str, seconds: float) -> str:
    title = f"{entrant.label}: {workload.name}, {workload.spelling.name}, {way}"
    pieces = [len(piece) for piece in chunks(workload.text, whole_markers=True)] if way == "stream" else None
    worker = arena.workers[entrant.peer]
    try:
        answer = worker.ask("profile", key=key, reader=entrant.reader, pieces=pieces, seconds=seconds)
    except (FailedError, TooSlowError) as error:
        return f"{title}\n  {error}"
    rows, note = shares(answer["samples"])
    return table(title, ("%", "function", "its longest line", "% in it"), rows, note)


def shares(samples: Sequence[Any]) -> tuple[list[Row], str]:
    """Return a row for each function that takes its share, and the shares of packages and of our modules."""
    total = sum(count for *_, count in samples)
    functions: Counter[tuple[str, str]] = Counter()
    packages: Counter[str] = Counter()
    lines: dict[tuple[str, str], Counter[int]] = {}
    for file, function, line, count in samples:
        functions[file, function] += count
        packages[_package(file)] += count
        lines.setdefault((file, function), Counter())[line] += count
    rows = []
    for (file, function), count in functions.most_common():
        if count < LEAST_SHARE * total:
            break
        [(line, most)] = lines[file, function].most_common(1)
        words = linecache.getline(file, line).strip()
        rows.append({"%": round(100 * count / total), "function": f"{_package(file)}: {function}",
                     "its longest line": f"{line}: {words[:70]}", "% in it": round(100 * most / total)})  # fmt: skip
    big = [(name, count) for name, count in packages.most_common() if count > total / 50]
    return rows, ", ".join(f"{name} {count / total:.0%}" for name, count in big)


def _package(file: str) -> str:
    """Return what a file belongs to: a module of callmark, or the name of another package."""
    if Path(file).is_relative_to(_OURS):
        return Path(file).relative_to(_OURS).as_posix()
    installed = _INSTALLED.split(file)
    return re.split(r"[\\/]|\.py", installed[-1])[0] if len(installed) > 1 else Path(file).name
