"""What is printed and written: the conditions of a run, aligned tables, and the same rows as JSON Lines."""

from __future__ import annotations

import math
import os
import platform
import shutil
import subprocess
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

import callmark
from benchmarks.peers.ours import engine

ROOT = Path(__file__).resolve().parent.parent

Row = dict[str, Any]


def conditions(
    seed: int = 0,
    quick: bool = False,
    versions: dict[str, Any] | None = None,
    unavailable: dict[str, str] | None = None,
    load: Sequence[float] | None = None,
) -> Row:
    """Return what a figure must come with: commit, versions, machine, load (by default now), how the run was made."""
    return {
        "part": "conditions",
        "commit": _commit(),
        "callmark": version("callmark"),
        "engine": engine(),
        "msgspec": version("msgspec"),
        "canitoolcall": _version_of_fixtures(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{_processor()}, {os.cpu_count()} processors, {platform.system()}",
        "load": load_now() if load is None else load,
        "gc": "on",
        "seed": seed,
        "quick": quick,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "peers": versions or {},
        "unavailable": unavailable or {},
    }


def load_now() -> list[float]:
    """Return the machine's load, empty where the system does not tell."""
    return [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else []


def _version_of_fixtures() -> str:
    try:
        return version("canitoolcall")
    except PackageNotFoundError:  # an extra: without it, `correctness` is left out
        return "none"


def _commit() -> str:
    if not shutil.which("git"):
        return "none"

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = (git("rev-parse", "--short", "HEAD") or "none") + (" with changes" if git("status", "--porcelain") else "")
    is_this_one = Path(callmark.__file__).is_relative_to(ROOT / "src")
    return commit if is_this_one else f"{commit}, callmark as it was installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def verdict(met: bool | None) -> str:
    """Return how a figure stands to its target; nothing where there is no target."""
    return "" if met is None else "ok" if met else "MISS"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        if abs(value) < 0.1:
            return f"{value:.2g}"  # 0.00 would say nothing of milliseconds
        return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"
    return str(value)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def table(title: str, columns: Sequence[str], rows: Sequence[Row], note: str = "") -> str:
    """Return rows as aligned text: numbers to the right, one row a line, targets and verdicts in their columns."""
    cells = [list(columns)] + [[_shown(row.get(column)) for column in columns] for row in rows]
    widths = [max(_width(line[place]) for line in cells) for place in range(len(columns))]
    right = [any(isinstance(row.get(column), int | float) for row in rows) for column in columns]
    lines = [title + (f"   ({note})" if note else "")]
    for line in cells:
        padded = [
            " " * (width - _width(cell)) + cell if to_right else cell + " " * (width - _width(cell))
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]
        lines.append("  " + "  ".join(padded).rstrip())
    lines.insert(2, "  " + "  ".join("-" * width for width in widths))
    return "\n".join(lines)


class Lines:
    """A file of JSON Lines that is replaced with the first row: a run that is cut short leaves what it had measured."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        self._left = self._state()
        self._replaces = True

    def add(self, rows: Sequence[Row]) -> None:
        """Append one JSON object a line; a verdict has that name, not the empty heading of its column.

        Raises OSError where that fails, or another run has begun to write there.
        """
        named = ({("verdict" if key == "" else key): value for key, value in row.items()} for row in rows)
        if self._state() != self._left:
            raise OSError("another run writes there")
        with self.path.open("wb" if self._replaces else "ab") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in named)
        self._replaces = False
        self._left = self._state()

    def _state(self) -> tuple[int, int] | None:
        """Return what any writing to the file changes; a device has no such state."""
        found = self.path.stat()
        return (found.st_size, found.st_mtime_ns) if self.path.is_file() else None


def read_lines(path: Path) -> list[Row]:
    """Return the rows of a results file, but one cut short. Raises ValueError where a row is no JSON object."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [msgspec.json.decode(line, type=Row) for line in whole.splitlines() if line.strip()]
