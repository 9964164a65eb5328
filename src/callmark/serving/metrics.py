"""Counts for Prometheus, in its text format. Names of methods and codes are from tables, so there is an end of them."""

from __future__ import annotations

from collections import Counter
from typing import Final

_HELP: Final = {
    "callmark_requests_total": ("counter", "Requests by method and code of the error, if any."),
    "callmark_open": ("gauge", "What is open now: connections, streams."),
    "callmark_characters_total": ("counter", "Characters that were read in streams over HTTP."),
    "callmark_seconds_total": ("counter", "Seconds that requests took, by method."),
}


class Metrics:
    """What a server counts. One event loop and its threads share it; a count may miss a step under threads."""

    def __init__(self) -> None:
        self._values: dict[str, Counter[tuple[tuple[str, str], ...]]] = {name: Counter() for name in _HELP}

    def add(self, name: str, value: float = 1, **labels: str) -> None:
        """Add to a count."""
        self._values[name][tuple(labels.items())] += value  # type: ignore[assignment]  # seconds are fractions

    def get(self, name: str, **labels: str) -> float:
        """Return a count."""
        return self._values[name][tuple(labels.items())]

    def text(self) -> str:
        """Return all counts."""
        lines = []
        for name, (kind, meaning) in _HELP.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            for labels, value in sorted(self._values[name].items()):
                shown = ",".join(f'{key}="{content}"' for key, content in labels)
                lines.append(f"{name}{{{shown}}} {value:g}" if shown else f"{name} {value:g}")
        return "\n".join(lines) + "\n"
