"""What all tests share: where they import from, and how hard Hypothesis tries.

Profiles, chosen with `HYPOTHESIS_PROFILE`: "dev" (the default: a suite that one runs while working), "ci" (the default
where `CI` is set), "few" (where coverage is measured) and "long" (for a night, or after a change to the scanner). Only
"long" tries new examples each time: a failure of the others is the change's own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from callmark.running import preparing

sys.path.insert(0, str(Path(__file__).parent.parent))  # `benchmarks`, whose recovery corpus the laws use

# A shell that starts the tests in the background has interrupts ignored, also by the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

_SLOW = [
    HealthCheck.too_slow,  # growing a member of a grammar takes ten milliseconds, and laws read it some fifty times
    HealthCheck.data_too_large,  # members are as long as grammars make them
    HealthCheck.filter_too_much,  # terminals that are not in their own language are filtered out
]

settings.register_profile(
    "dev", max_examples=30, deadline=None, derandomize=True, print_blob=True, suppress_health_check=_SLOW
)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=50)
settings.register_profile("few", settings.get_profile("dev"), max_examples=5)
settings.register_profile("long", settings.get_profile("dev"), max_examples=20_000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

_ACME = """
name = "acme"
title = "<acme>{...}</acme>"
models = "Acme"
source = "its template"
writing = { call = '<acme>{{"name": {quoted_name}, "arguments": {arguments}}}</acme>' }
[[forms]]
head = '<acme>{ws}(?=\\{)'
body = "envelope"
tail = "{ws}</acme>"
"""


@pytest.fixture
def acme(tmp_path: Path) -> Callable[[list[str]], Path]:
    """Return what writes the row of a dialect of one's own, whose results begin so, and returns its file."""

    def write(results: list[str]) -> Path:
        row = tmp_path / "acme.toml"
        row.write_text(f"results = {json.dumps(results)}{_ACME}")
        return row

    return write


class Preparation(NamedTuple):
    """What neutralizing needs first, and when it may be there."""

    begun: threading.Event
    may_end: threading.Event
    done: list[bool]  # for special tokens or not


@pytest.fixture
def preparation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Preparation]:
    """Make the process one in which nothing was neutralized; it is prepared when the test lets it be."""
    made = Preparation(threading.Event(), threading.Event(), [])

    def neutralize(text: str, *, dialects: Any, special_tokens: bool) -> None:
        made.begun.set()
        assert made.may_end.wait(60)
        made.done.append(special_tokens)

    monkeypatch.setattr(preparing, "_begun", {})
    monkeypatch.setattr(preparing, "neutralize", neutralize)
    yield made
    made.may_end.set()
