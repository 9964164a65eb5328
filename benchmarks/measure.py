"""How times are taken: contestants take turns within one process, and what counts is their ratio in the same turn.

The speed of a shared machine drifts by a factor of two within minutes, so a time alone says little; a ratio of two
times taken one after the other holds. Seconds are those that this thread had a processor, so that other programs are
not timed with it. The garbage collector stays on, as in a user's process.
"""

from __future__ import annotations

import gc
import math
import signal
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import thread_time
from types import FrameType
from typing import Protocol

SHORTEST_SECONDS = 0.002  # a turn lasts at least so long: the clock and a cold cache must not be what is measured
LONGEST_SECONDS = 20.0  # one turn, or one request to a process; beyond this a figure would be of no use to anyone
MORE_TURNS = 4  # of a size
LONG_SECONDS = 0.03  # what a first run does for later ones (filling caches, say) is lost in one that lasts so long

Contestant = Callable[[], float]  # one turn; returns the seconds of one run


class Feeder(Protocol):
    """What a stream is fed into."""

    def feed(self, chunk: str) -> object: ...
    def finish(self) -> object: ...


class TooSlowError(Exception):
    """A turn or a request lasted longer than its limit."""


@contextmanager
def limited(seconds: float = LONGEST_SECONDS) -> Iterator[None]:
    """Raise TooSlowError within the block after so many seconds (where the system has `setitimer`)."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooSlowError(f"longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def whole(*runs: Callable[[], object]) -> Contestant:
    """Time `runs`, as often in a turn as it takes to fill `SHORTEST_SECONDS`; return what one of them takes."""

    def once() -> float:
        start = thread_time()
        for run in runs:
            run()
        return thread_time() - start

    return _filled(once, len(runs))


def stream(make: Callable[[], Feeder], *texts: Sequence[str]) -> Contestant:
    """Time feeding all pieces of each text and finishing; making the parser is not timed, its events are dropped.

    Like `whole`, what it returns is the time of one text.
    """

    def once() -> float:
        return sum(streamed(pieces) for pieces in texts)

    def streamed(pieces: Sequence[str]) -> float:
        feeder = make()
        feed = feeder.feed
        start = thread_time()
        for piece in pieces:
            feed(piece)
        feeder.finish()
        return thread_time() - start

    return _filled(once, len(texts))


def _filled(once: Contestant, reads: int) -> Contestant:
    repeats = 0

    def turn() -> float:
        nonlocal repeats
        if not repeats:
            seconds = once()  # the first run fills caches
            if seconds < SHORTEST_SECONDS:
                seconds = once()
            repeats = max(1, math.ceil(SHORTEST_SECONDS / max(seconds, 1e-7)))
            if seconds > LONG_SECONDS:
                return seconds / reads
        return sum(once() for _ in range(repeats)) / repeats / reads

    return turn


@contextmanager
def _out_of_the_collectors_sight() -> Iterator[None]:
    """Freeze what there is: the collector goes through what a contestant makes, not through our own texts."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@_out_of_the_collectors_sight()
def best_by_size(
    contestants: dict[int, dict[str, Contestant]], most_seconds: float, longest: float | None = None
) -> dict[str, dict[int, float]]:
    """Let the contestants take turns; return the best time of each at each size, smallest size first.

    Stops before a size where the one before took longer than `longest` (five times `most_seconds`). Then each size
    has more turns: as many as its first says to fit into half of `most_seconds`, one at least, at most `MORE_TURNS`.
    What disturbs a measurement only ever adds time, so the best of more turns is truer; how many they are is not up to
    what they show, or it would be measured until it pleases.
    """
    longest = 5 * most_seconds if longest is None else longest
    best: dict[str, dict[int, float]] = {}
    sizes: list[int] = []

    def turn(size: int) -> None:
        for name, contestant in contestants[size].items():
            gc.collect()  # what an earlier contestant left behind is not charged to this one
            with limited():
                seconds = contestant()
            times = best.setdefault(name, {})
            times[size] = min(seconds, times.get(size, math.inf))

    for size in sorted(contestants):
        if sizes and max(times[sizes[-1]] for times in best.values()) > longest:
            break
        try:
            turn(size)
        except TooSlowError:
            for times in best.values():
                times.pop(size, None)
            break
        sizes.append(size)
    first = {size: max(times[size] for times in best.values()) for size in sizes}
    more = {size: max(1, min(MORE_TURNS, int(most_seconds / 2 / max(first[size], 1e-9)))) for size in sizes}
    for extra in range(MORE_TURNS):
        for size in sizes:
            if extra < more[size]:
                with suppress(TooSlowError):  # it has a time already
                    turn(size)
    return best


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the least-squares slope of log time in log size: 1 is linear, 2 quadratic."""
    if len(sizes) < 2:
        return math.nan
    return statistics.linear_regression([math.log(size) for size in sizes], [math.log(time) for time in seconds]).slope


def last_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope over the last factor of 16: a cost that begins late drowns in the slope over all sizes."""
    late = [(size, time) for size, time in zip(sizes, seconds, strict=True) if size * 16 >= sizes[-1]]
    return exponent([size for size, _ in late], [time for _, time in late])
