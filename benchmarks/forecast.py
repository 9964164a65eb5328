"""What shorter texts say of longer ones: a reader that would take too long for the next is not tried on it."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.report import Row

_NO_DOUBT = "not run: what shorter texts took leaves no doubt"


class Forecast:
    """The readers of one workload in texts that grow tenfold, and what is foreseen of each.

    slow_seconds     what takes longer, growing as it did, is not run: the curve shows it already
    longest_seconds  what takes longer is not waited for
    """

    def __init__(self, slow_seconds: float, longest_seconds: float) -> None:
        self.slow_seconds = slow_seconds
        self.longest_seconds = longest_seconds
        self.left_out: dict[str, str] = {}  # reader: the verdict on the next text, on which it is not tried
        self._taken: dict[str, list[float]] = {}

    def learn(self, reader: str, verdict: str, seconds: float | None) -> None:
        """Take in what a reader took for a text, and decide whether it is tried on the next."""
        taken = self._taken.setdefault(reader, [])
        if seconds:
            taken.append(seconds)
        if reader in self.left_out:  # ten times a text that would have taken so long
            self.left_out[reader] = self._too_long
        elif outlook := self._outlook(verdict, taken):
            self.left_out[reader] = outlook

    @property
    def _too_long(self) -> str:
        return f"> {self.longest_seconds:g} s"

    def _outlook(self, verdict: str, taken: Sequence[float]) -> str:
        """Return the verdict on a text ten times as long as the last, "" where it is tried.

        That it takes too long is certain where it did already, or would growing by ten, or by a third of what it grew
        last time. Where it would take long as it grows, that is said.
        """
        growth = taken[-1] / taken[-2] if len(taken) > 1 else 10
        if verdict.startswith(">") or (taken and taken[-1] * max(10, growth / 3) > self.longest_seconds):
            return self._too_long
        return as_it_grows(taken, self.slow_seconds)


def as_it_grows(taken: Sequence[float], most_seconds: float) -> str:
    """Return the verdict on the next of some sizes where, growing as it did, it takes more than that; else ""."""
    if len(taken) < 2:
        return ""
    expected = taken[-1] * max(1.0, taken[-1] / taken[-2])
    return f"not run: about {expected:.0f} s, as it grows" if expected > most_seconds else ""


def not_tried(verdict: str) -> Row:
    """Return what the row of a reader says that was left out."""
    return {"verdict": verdict, **({"note": _NO_DOUBT} if verdict.startswith(">") else {})}
