"""What a change cost: the working tree against another revision, in turns within one run, and in instructions.

Both are laid out in temporary folders and read the same texts in processes of the same kind; only callmark differs.
Times are ratios of turns of the same round, so a machine that slows down slows both; rounds go through three pairs of
processes, as where things lie in the memory of one may cost it some percent; and a change that they tell is told only
if three other pairs tell it, too. Instructions do not depend on what else the machine does: Linux counts them for a
process that asks (`instructions.py`). Where it does not, valgrind's callgrind counts those of whole processes, for one
spelling as that takes minutes; the difference between reading a text often and once is what is told, so that starting
Python and importing callmark cancel out. What is left of chance (where things lie in memory) is below two percent.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.environments import BUILT, ROOT, ours
from benchmarks.instructions import counting
from benchmarks.measure import TooSlowError
from benchmarks.report import Row, table
from benchmarks.workers import FailedError, Worker
from benchmarks.workloads import CHUNK, SPELLINGS, Workload, chunks, dense, huge, repairs, sparse

CHARACTERS = 20_000
TURN_SECONDS = 0.02  # ten times that of a contest: a change of some percent must show
PAIRS = 3  # of processes: two of one source may differ by some percent as long as they live; three pairs seldom agree
FEW = ("call",)  # spellings whose instructions valgrind counts
_SOURCES = ("src/callmark", "grammars")


class RevisionError(Exception):
    """There is no such revision, this is no checkout, or there is no git."""


def compare(revision: str, seed: int = 0, rounds: int = 15, instructions: bool = True) -> Iterator[str]:
    """Yield the tables of what the working tree costs against `revision`."""
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder) / "old", Path(folder) / "new"
        _check_out(revision, Path(folder), old)
        _lay_out(ROOT, new)
        yield table(
            f"The working tree against {revision}: times of turns, new / old",
            ("text", "spelling", "read", "old us", "new us", "ratio", "quartiles", ""),
            list(_timed(old, new, seed, rounds)),
            f"medians of {rounds} rounds; slower or faster: both quartiles are, by more than 2 percent, twice; reads "
            "otherwise: other calls or other text, so its speed does not count",
        )
        tool = counter() if instructions else None
        if tool:
            yield table(
                f"Instructions of one read, by {tool}",
                ("text", "spelling", "read", "old", "new", "ratio", ""),
                list(_counted(old, new, seed, tool)),
            )
        elif instructions:
            yield "No instructions counted: neither Linux (perf_event_open) nor valgrind does here."


def workloads(seed: int) -> Iterator[Workload]:
    """Yield what is read: three shapes in every spelling, and calls to repair."""
    for spelling in SPELLINGS.values():
        for make in (sparse, dense, huge):
            yield make(spelling, CHARACTERS, seed)
    yield repairs(CHARACTERS, seed)


def _check_out(revision: str, folder: Path, into: Path) -> None:
    """Lay out what a revision holds. It is taken as an archive: a working tree is known to git until it is removed."""
    if not shutil.which("git"):
        raise RevisionError("needs git")
    archive = folder / "tree.zip"
    command = ["git", "-C", str(ROOT), "archive", f"--output={archive}", "--", revision, *_SOURCES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RevisionError(done.stderr.strip())
    shutil.unpack_archive(archive, folder / "tree")
    _lay_out(folder / "tree", into)


def _lay_out(tree: Path, into: Path) -> None:
    """Copy the package as an installed one looks: the grammars are in it. What was compiled beside a source is not."""
    leave = shutil.ignore_patterns("__pycache__", *BUILT)
    shutil.copytree(tree / "src" / "callmark", into / "callmark", ignore=leave)
    shutil.copytree(tree / "grammars", into / "callmark" / "grammars", ignore=leave)


def _timed(old: Path, new: Path, seed: int, rounds: int) -> Iterator[Row]:
    sources = {"old": old, "new": new}
    first, others = (  # the others are started when the first tell a change
        [{name: Worker(name, ours(str(source))) for name, source in sources.items()} for _ in range(PAIRS)]
        for _ in range(2)
    )
    try:
        for workload in workloads(seed):
            for way in ("whole", "stream"):
                pieces = [len(piece) for piece in chunks(workload.text)] if way == "stream" else None
                row: Row = {"text": workload.name, "spelling": workload.spelling.name, "read": way}
                try:
                    figures = _in_turns(first, workload, pieces, rounds)
                    if said := figures[""]:
                        figures = _in_turns(others, workload, pieces, rounds)
                        figures[""] = said if figures[""] == said else ""
                except (FailedError, TooSlowError) as error:
                    figures = {"": str(error)}
                yield row | figures
    finally:
        for pair in (*first, *others):
            for worker in pair.values():
                worker.close()


def _in_turns(pairs: list[dict[str, Worker]], workload: Workload, pieces: list[int] | None, rounds: int) -> Row:
    """Let the processes of each pair take turns; return the figures of all, with their verdict."""
    answers = []
    for pair in pairs:
        for worker in pair.values():
            worker.forget()
            worker.load(workload.name, text=workload.text)
            answer = worker.ask("read", key=workload.name, reader="callmark", pieces=pieces)
            answers.append((answer["calls"], answer["content"]))
    seconds: dict[str, list[float]] = {"old": [], "new": []}
    for place in range(rounds):
        for name in ("old", "new") if place % 2 else ("new", "old"):
            answer = pairs[place % len(pairs)][name].ask(
                "turn", key=workload.name, reader="callmark", pieces=pieces, least=TURN_SECONDS
            )
            seconds[name].append(answer["seconds"])
    ratios = [one / other for one, other in zip(seconds["new"], seconds["old"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {
        "old us": statistics.median(seconds["old"]) * 1e6,
        "new us": statistics.median(seconds["new"]) * 1e6,
        "ratio": middle,
        "quartiles": f"{low:.2f}-{high:.2f}",
        "": verdict(low, high, 0.02) if answers[1:] == answers[:-1] else "READS OTHERWISE",
    }


def verdict(low: float, high: float, margin: float) -> str:
    """Say whether a ratio between `low` and `high` is a change by more than `margin`."""
    return "SLOWER" if low > 1 + margin else "faster" if high < 1 - margin else ""


def _counted(old: Path, new: Path, seed: int, tool: str) -> Iterator[Row]:
    for spelling in SPELLINGS if tool == "Linux" else FEW:
        for shape in ("sparse", "dense", "huge"):
            for way in ("whole", "stream"):
                words = (spelling, shape, way, seed)
                row: Row = {"text": shape, "spelling": spelling, "read": way}
                try:
                    before, after = (_linux(source, *words) if tool == "Linux" else _valgrind(source, *words)
                                     for source in (old, new))  # fmt: skip
                except FailedError as error:
                    yield row | {"": str(error)}
                    continue
                ratio = after / max(1, before)
                yield row | {"old": f"{before:,}", "new": f"{after:,}", "ratio": ratio,
                             "": verdict(ratio, ratio, 0.02)}  # fmt: skip


def counter() -> str | None:
    """Return "Linux" or "valgrind", whichever counts instructions here."""
    if counting() is not None:
        return "Linux"
    if shutil.which("valgrind"):
        done = subprocess.run(
            [*_VALGRIND, sys.executable, "-S", "-c", "pass"], capture_output=True, text=True, check=False
        )
        if done.returncode == 0 and _collected(done.stderr) is not None:
            return "valgrind"
    return None


# no debugger is served: its pipes would be left behind where a comparison is ended
_VALGRIND = ("valgrind", "--vgdb=no", "--tool=callgrind", f"--callgrind-out-file={os.devnull}")
_TURNS = 7


def _collected(text: str) -> int | None:
    match = re.search(r"Collected : ([0-9]+)", text)
    return int(match[1]) if match else None


def _linux(source: Path, spelling: str, shape: str, way: str, seed: int) -> int:
    """Return the instructions of one read with the callmark in `source`: the least of some turns, after a first."""
    return int(_run((), source, f"print(least({spelling!r}, {shape!r}, {way!r}, {seed}))").stdout)


def _valgrind(source: Path, spelling: str, shape: str, way: str, seed: int) -> int:
    """Return the same, as the difference of two processes of which one reads some times more."""
    often = 150 if way == "whole" else 4  # two starts differ by some 200,000 instructions
    counts = []
    for times in (0, often):
        done = _run(_VALGRIND, source, f"repeat({spelling!r}, {shape!r}, {way!r}, {seed}, {times})")
        found = _collected(done.stderr)
        assert found is not None
        counts.append(found)
    return (counts[1] - counts[0]) // often


def _run(tool: tuple[str, ...], source: Path, program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(source), str(ROOT))), "PYTHONHASHSEED": "0"}
    command = [*tool, sys.executable, "-c", f"from benchmarks.compare import least, repeat; {program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line and not line.startswith("==")]  # valgrind's own
        raise FailedError(lines[-1] if lines else "without a word")
    return done


def least(spelling: str, shape: str, way: str, seed: int) -> int:
    """Return the fewest instructions of a turn: what `_linux` runs."""
    count = counting()
    assert count is not None
    read = _reading(spelling, shape, way, seed)
    read()
    turns = []
    for _ in range(_TURNS):
        before = count()
        read()
        turns.append(count() - before)
    return min(turns)


def repeat(spelling: str, shape: str, way: str, seed: int, times: int) -> None:
    """Read a text so many times, after some more: what `_valgrind` runs."""
    read = _reading(spelling, shape, way, seed)
    for _ in range(_TURNS + times):  # some patterns are made when they have been asked for often enough
        read()


def _reading(spelling: str, shape: str, way: str, seed: int) -> Callable[[], None]:
    from benchmarks.peers.ours import LIMITS
    from callmark import Parser, parse

    workload = {"sparse": sparse, "dense": dense, "huge": huge}[shape](SPELLINGS[spelling], CHARACTERS // 4, seed)
    pieces = chunks(workload.text, CHUNK)

    def whole() -> None:
        parse(workload.text, limits=LIMITS)

    def stream() -> None:
        parser = Parser(limits=LIMITS)
        for piece in pieces:
            parser.feed(piece)
        parser.finish()

    return whole if way == "whole" else stream
