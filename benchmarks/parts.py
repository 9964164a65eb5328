"""The parts that are ours alone: recovery, growth, attacks, memory, import. Peers are in `contests.py`.

Each measures its promise, in this process where it is timed, shows its table and adds its rows to those of the run,
every figure beside its floor and its target.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import active_children, get_context
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias
from unittest.mock import patch

from benchmarks import recovery as corpus
from benchmarks.floors import Emitting, find_and_decode
from benchmarks.measure import (
    Contestant,
    Feeder,
    TooSlowError,
    best_by_size,
    exponent,
    last_exponent,
    limited,
    stream,
    whole,
)
from benchmarks.peers.ours import LIMITS
from benchmarks.report import ROOT, Row, table, verdict
from benchmarks.truth import WrongTruthError, check_truth, title
from benchmarks.workloads import (
    ATTACKS,
    BIGGEST_MARKER,
    CHUNK,
    SPELLINGS,
    Attack,
    Workload,
    chunks,
    dense,
    huge,
    prose,
    sparse,
    wide,
)
from benchmarks.writing import timed
from callmark import Parser, parse
from callmark.reading.matching import Remembered

OPTIONS: dict[str, Any] = {"limits": LIMITS}

GROWTH_EXPONENT = 1.05
ATTACK_EXPONENT = 1.1
ATTACK_NS = 3000
ATTACK_SLOW = 3  # a longer text is tried only where the one before took at most so many times the target
STDIO_US = 150
LONG_TEXT = 1 << 20  # characters of a text that only some go beyond: dense calls of one spelling are like the others
_LONGEST = {"prose", "prose with calls", "dense, call", "dense, qwen_xml"}
SHOWN_LOSSES = 40
PROSE_KB = 16  # "some kilobytes": what may be held of prose, a chunk of 1000 characters included


UNLEARNT = 1 << 14
"""Characters of a size's texts: one of a kilobyte alone takes half the time, as the processor learns its branches."""

_Written: TypeAlias = Callable[[int, int], tuple[str, tuple[str, ...]]]
"""Makes a text of some length from a seed, and the JSON that the floor decodes for it."""


class Scale(NamedTuple):
    """How big a run is."""

    seed: int
    recovery_chunks: tuple[int, ...]
    text_lengths: tuple[int, ...]
    marker_lengths: tuple[int, ...]
    chunked_characters: int  # the text that is cut into chunks of every length
    attack_lengths: tuple[int, ...]
    attack_every: int  # one attack of so many
    prose_memory: int
    marker_memory: tuple[int, ...]
    import_runs: int
    stdio_calls: int
    growth_seconds: float  # for extra turns; a size that takes 5 times as long is the last (of attacks: `ATTACK_SLOW`)


def quick(seed: int) -> Scale:
    """A run of a minute with the peers, by a reader that meets its targets."""
    return Scale(
        seed=seed,
        recovery_chunks=(64,),
        text_lengths=(2048, 16_384),
        marker_lengths=(2048, 16_384),
        chunked_characters=16_384,
        attack_lengths=(2048, 8192),
        attack_every=12,
        prose_memory=100_000,
        marker_memory=(50_000,),
        import_runs=3,
        stdio_calls=200,
        growth_seconds=0.02,
    )


def full(seed: int) -> Scale:
    """A run of some minutes."""
    return Scale(
        seed=seed,
        recovery_chunks=corpus.CHUNK_LENGTHS,
        text_lengths=tuple(4**power * 1024 for power in range(7)),
        marker_lengths=(1024, 4096, 16_384, 65_536, 262_144, BIGGEST_MARKER),
        chunked_characters=262_144,
        attack_lengths=(8192, 32_768, 131_072),
        attack_every=1,
        prose_memory=500_000,
        marker_memory=(100_000, BIGGEST_MARKER),
        import_runs=15,
        stdio_calls=5000,
        growth_seconds=0.2,
    )


class Parts:
    """One run: rows are kept for the report, what is wrong for the exit code.

    What is not timed, recovery and memory, runs in processes beside this one, whose progress bar would count as memory:
    from `begin` on, or when it is asked for.
    """

    def __init__(self, scale: Scale, show: Callable[[str], None]) -> None:
        self.scale, self.show = scale, show
        self.rows: list[Row] = []
        self.wrong: list[str] = []
        self._pool: ProcessPoolExecutor | None = None
        self._begun: dict[str, list[tuple[Row, Future[Any]]]] = {}  # by part: what is known, what is awaited

    def begin(self, names: Collection[str]) -> None:
        """Begin those of some parts that are not timed, while others are prepared."""
        for name, tasks in (("recovery", self._recovering), ("memory", self._held)):
            if name in names and name not in self._begun:
                if self._pool is None:
                    self._pool = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), _stand_back)
                with _uninterrupted():
                    self._begun[name] = [(row, self._pool.submit(*task)) for row, task in tasks()]

    def close(self) -> None:
        """End the processes, and what runs in them."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                child.kill()
            self._pool = None
        self._begun.clear()

    def _awaited(self, name: str) -> Iterator[tuple[Row, Any]]:
        """Yield what is known of each task of a part, and what came of it; nothing else is awaited behind the last."""
        self.begin([name])
        for row, future in self._begun.pop(name):
            yield row, future.result()
        if not self._begun:
            self.close()

    def _report(self, part: str, heading: str, columns: tuple[str, ...], rows: list[Row], note: str = "") -> None:
        self.rows += [{"part": part, **row} for row in rows]
        self.show(table(heading, columns, rows, note))

    def _recovering(self) -> Iterator[tuple[Row, tuple[Any, ...]]]:
        for dialect in corpus.CORPUS:
            yield {"dialect": dialect}, (_recovered, dialect, self.scale.recovery_chunks)

    def recovery(self) -> None:
        """Count the good calls found behind harmless and hostile prefixes: first in rank."""
        rows: list[Row] = []
        lost: list[str] = []
        lengths = self.scale.recovery_chunks
        ways = 2 * (1 + len(lengths))
        for row, (found, seconds) in self._awaited("recovery"):
            of = len(found)
            for prefix, losses in found.items():
                if losses:
                    where = "everywhere" if len(losses) == ways else _ways(losses)
                    lost.append(f"{row['dialect']}: {prefix}   ({where})")
            whole = sum(not losses for losses in found.values())
            rows.append(
                {**row, "found": f"{whole}/{of}", "reads": of * ways, "seconds": seconds, "": verdict(whole == of)}
            )
        self._report(
            "recovery",
            "Recovery: the good call behind each prefix is found",
            ("dialect", "found", "reads", "seconds", ""),
            rows,
            f"whole and in chunks of {', '.join(map(str, lengths))}; with all dialects listening, and its own alone",
        )
        if lost:
            self.wrong.append(f"{len(lost)} good calls were lost behind a prefix")
            shown = [f"    {line}" for line in lost[:SHOWN_LOSSES]]
            more = [f"    and {len(lost) - SHOWN_LOSSES} more"] if len(lost) > SHOWN_LOSSES else []
            self.show("\n".join(["  No speed figure counts until these are found:", *shown, *more]))
            self.rows += [{"part": "recovery", "lost": line} for line in lost]

    def growth(self) -> None:
        """Fit the growth of time in the length of a text, of a marker and of a chunk."""
        scale = self.scale
        call = SPELLINGS["call"]
        rows: list[Row] = []
        texts: tuple[tuple[str, _Written], ...] = (
            ("prose", lambda size, seed: (prose(size, seed), ())),
            ("prose with calls", partial(_text_of, sparse, call)),
            *((f"dense, {s.name}", partial(_text_of, dense, s)) for s in SPELLINGS.values()),
        )
        for name, written in texts:
            lengths = [size for size in scale.text_lengths if size <= LONG_TEXT or name in _LONGEST]
            rows += self._grown("text", name, tuple(lengths), written)
        for spelling in SPELLINGS.values():
            for make in (huge, wide):
                name = title(make(spelling, 64))
                written = partial(_marker, make, spelling)
                rows += self._grown("marker", name, scale.marker_lengths, written)
        big: tuple[str, _Written] = ("one big call", partial(_marker, huge, call))
        for name, written in (*texts[:3], big):
            text, _ = written(min(scale.chunked_characters, BIGGEST_MARKER), scale.seed)
            rows.append(self._chunked(name, text))
        self._report(
            "growth",
            "Growth: the exponent of time in length",
            ("length of", "workload", "read", "from", "to", "exponent", "last 16x", "floor's", "target", ""),
            rows,
            "slope of log time in log length; in chunks: of time per chunk in its length; all dialects listening",
        )

    def _grown(self, of: str, name: str, sizes: tuple[int, ...], written: _Written) -> Iterator[Row]:
        seed = self.scale.seed
        texts = {size: [written(size, seed + more) for more in range(max(1, UNLEARNT // size))] for size in sizes}
        _warm(texts[sizes[0]][0][0], OPTIONS)
        for read in ("whole", "stream"):
            contestants: dict[int, dict[str, Contestant]] = {}
            for made in texts.values():
                if read == "stream":
                    pieces = [chunks(text) for text, _ in made]
                    pair = stream(_parser(OPTIONS), *pieces), stream(Emitting, *pieces)
                else:
                    floors = [partial(find_and_decode, text, "\0[CALL:", None, jsons) for text, jsons in made]
                    pair = whole(*(partial(parse, text, **OPTIONS) for text, _ in made)), whole(*floors)
                length = sum(len(text) for text, _ in made) // len(made)
                contestants[length] = dict(zip(("ours", "floor"), pair, strict=True))
            best = best_by_size(contestants, self.scale.growth_seconds)
            yield _growth_row(of, name, read, best, complete=len(best["ours"]) == len(contestants))

    def _chunked(self, name: str, text: str) -> Row:
        contestants: dict[int, dict[str, Contestant]] = {}
        for length in (4**power for power in range(9)):
            if length * 2 <= len(text):
                pieces = chunks(text, length)
                contestants[length] = {"ours": stream(_parser(OPTIONS), pieces), "floor": stream(Emitting, pieces)}
        best = best_by_size(contestants, 4 * self.scale.growth_seconds)  # chunks of 1 are slow
        per_chunk = {
            who: {length: seconds * length / len(text) for length, seconds in times.items()}
            for who, times in best.items()
        }
        return _growth_row("chunk", name, "stream", per_chunk, complete=len(best["ours"]) == len(contestants))

    def attacks(self) -> None:
        """Time texts made to be slow, whole and streamed, with their growth."""
        rows = [self._attacked(attack) for attack in ATTACKS[:: self.scale.attack_every]]
        self._report(
            "attacks",
            "Attacks",
            ("attack", "whole ns", "whole exponent", "stream ns", "x emit", "stream exponent", "target", ""),
            rows,
            f"ns per {CHUNK} characters of the longest; exponents: at most {ATTACK_EXPONENT}",
        )
        worst = max(rows, key=lambda row: max(row.get("whole ns") or 1e9, row.get("stream ns") or 1e9))
        self.show(
            f"  worst: {worst['attack']}; {sum(row[''] == 'ok' for row in rows)} of {len(rows)} within the target"
        )

    def _attacked(self, attack: Attack) -> Row:
        row: Row = {"attack": attack.name, "target": ATTACK_NS}
        texts = [attack.text(size) for size in self.scale.attack_lengths]
        _warm(texts[0], {})
        met = True
        for read in ("whole", "stream"):
            contestants: dict[int, dict[str, Contestant]] = {}
            for text in texts:
                pieces = chunks(text)
                contestants[len(text)] = (
                    {"ours": stream(Parser, pieces), "emit": stream(Emitting, pieces)}
                    if read == "stream"
                    else {"ours": whole(partial(parse, text))}
                )
            longest = ATTACK_SLOW * ATTACK_NS * 1e-9 * self.scale.attack_lengths[-2] / CHUNK
            best = best_by_size(contestants, self.scale.growth_seconds / 2, longest)
            times = best.get("ours", {})
            if len(times) > 1:
                length = max(times)
                row[f"{read} ns"] = times[length] / length * CHUNK * 1e9
                row[f"{read} exponent"] = exponent(list(times), list(times.values()))
                row[f"{read} seconds"] = times
                if read == "stream":
                    row["x emit"] = times[length] / best["emit"][length]
                met &= row[f"{read} ns"] <= ATTACK_NS and row[f"{read} exponent"] <= ATTACK_EXPONENT
            met &= len(times) == len(contestants)
        row[""] = verdict(met)
        return row

    def _held(self) -> Iterator[tuple[Row, tuple[Any, ...]]]:
        scale = self.scale
        lengths = (CHUNK, 1000)
        for length in lengths:
            yield {"workload": "prose"}, (_peak_of_prose, "", scale.prose_memory, scale.seed, length)
        yield {"workload": "a line without end"}, (_peak_of_prose, "`", scale.prose_memory // 4, scale.seed, CHUNK)
        for name in SPELLINGS:
            for size in scale.marker_memory:
                yield from (({}, (_peak_of_marker, name, size, scale.seed, length)) for length in lengths)

    def memory(self) -> None:
        """Measure the peak of what is allocated while a stream is read and its events are dropped."""
        rows: list[Row] = []
        for row, found in self._awaited("memory"):
            if isinstance(found, dict):
                rows.append({**row, **found})
            elif found not in self.wrong:
                self.wrong.append(found)
        self._report(
            "memory",
            "Memory: peak while streaming, the call itself included",
            ("workload", "characters", "chunk", "peak KB", "x text", "target", ""),
            rows,
            "tracemalloc; chunks are made one by one, so those that a parser keeps are counted",
        )

    def writing(self) -> None:
        """Time what a host calls for each message beside reading it."""
        rows = list(timed(self.scale.seed))
        self._report("writing", "What a host calls beside reading, once it is warm", ("what", "us"), rows)

    def imports(self) -> None:
        """Time `import callmark` in a fresh interpreter, less the bare interpreter, and all of a `callmark parse`: of a
        call whose opener begins as few do, and as many.
        """
        programs = {
            "bare": (["-c", "pass"], b""),
            "floor": (["-c", "import msgspec"], b""),
            "callmark": (["-c", "import callmark"], b""),
            "parse": (["-m", "callmark", "parse"], b"[CALL: f()]"),
            "tags": (["-m", "callmark", "parse"], b'<tool_call>{"name": "f", "arguments": {}}</tool_call>'),
        }
        best = dict.fromkeys(programs, float("inf"))
        with TemporaryDirectory() as compiled:  # as installed: byte code is kept, whatever holds here
            kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
            kept["PYTHONPYCACHEPREFIX"] = compiled
            for _ in range(self.scale.import_runs + 1):  # the first run compiles
                for name, (program, text) in programs.items():
                    start = perf_counter()
                    command = [sys.executable, *program]
                    subprocess.run(command, check=True, env=kept, input=text, stdout=subprocess.DEVNULL)
                    best[name] = min(best[name], perf_counter() - start)
        ours, floor = ((best[name] - best["bare"]) * 1000 for name in ("callmark", "floor"))
        shells = {"callmark parse, with the interpreter": "parse", "callmark parse, a call in tags": "tags"}
        self._report(
            "import",
            "Import: a fresh interpreter, less a bare one; and from the shell",
            ("program", "ms", "x floor", "target", ""),
            [
                {"program": "import msgspec (floor)", "ms": floor},
                {
                    "program": "import callmark",
                    "ms": ours,
                    "x floor": ours / floor,
                    "target": 60,
                    "": verdict(ours <= 60),
                },
                *(
                    {"program": said, "ms": best[name] * 1000, "target": 150, "": verdict(best[name] <= 0.15)}
                    for said, name in shells.items()
                ),
            ],
            f"best of {self.scale.import_runs}",
        )

    def stdio(self) -> None:
        """Time a short parse from node through `callmark stdio`, and through a process that answers without reading."""
        events = [event.to_dict() for event in parse("[CALL: f()]").events]
        answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"events": events}})
        floor = f"import sys\nfor line in sys.stdin.buffer: print({answer!r}, flush=True)"
        commands = {"floor": [sys.executable, "-c", floor], "callmark": [sys.executable, "-m", "callmark", "stdio"]}
        best: dict[str, Row] = {}
        for _ in range(3):
            for name, command in commands.items():
                done = subprocess.run(
                    ["node", str(ROOT / "benchmarks" / "stdio.mjs"), str(self.scale.stdio_calls), *command],
                    capture_output=True,
                    check=True,
                )
                found = json.loads(done.stdout)
                best[name] = min(best.get(name, found), found, key=lambda each: each["median"])
        ours, least = best["callmark"], best["floor"]
        self._report(
            "stdio",
            "A short parse from node through stdio, one after the other",
            ("server", "median us", "p99 us", "x floor", "target", ""),
            [
                {"server": "answers without reading (floor)", "median us": least["median"], "p99 us": least["p99"]},
                {
                    "server": "callmark stdio",
                    "median us": ours["median"],
                    "p99 us": ours["p99"],
                    "x floor": ours["median"] / least["median"],
                    "target": STDIO_US,
                    "": verdict(ours["median"] <= STDIO_US),
                },
            ],
            f"best median of 3 runs of {self.scale.stdio_calls} calls",
        )


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let processes begin before a signal ends this one, and have no part in Ctrl-C: who began them ends them."""
    caught: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(one, lambda number, frame: caught.append(number)) for one in signals]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # they inherit it, but not what handles a signal
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for one, handler in zip(signals, handlers, strict=True):
            signal.signal(one, handler)
        for number in caught:
            signal.raise_signal(number)


def _stand_back() -> None:
    """Let others go first: what is being compiled takes one processor, and longest. And let a host end this one."""
    os.nice(10)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _recovered(dialect: str, lengths: tuple[int, ...]) -> tuple[dict[str, list[corpus.Loss]], float]:
    """Return for each prefix of a dialect in which ways the call behind it is lost, and the seconds that it took."""
    start = perf_counter()
    found: dict[str, list[corpus.Loss]] = {}
    for prefix in corpus.CORPUS[dialect]:
        try:
            with limited():
                found[prefix.name] = corpus.losses(dialect, prefix, lengths)
        except Exception as error:  # noqa: BLE001 - a reader that raises or does not end has lost the call
            found[prefix.name] = [corpus.Loss(dialect, prefix.name, f"{type(error).__name__}: {error}", 0)]
    return found, perf_counter() - start


def _warm(text: str, options: dict[str, Any]) -> None:
    """Read a text both ways: what is made when it is first needed, patterns say, is no cost of a text."""
    with suppress(TooSlowError), limited():  # else its turns will tell
        parse(text, **options)
        stream(_parser(options), chunks(text))()


def _parser(options: dict[str, Any]) -> Callable[[], Feeder]:
    return partial(Parser, **options)


def _text_of(make: Callable[..., Workload], spelling: Any, size: int, seed: int) -> tuple[str, tuple[str, ...]]:
    text, jsons = _marker(make, spelling, size, seed)
    return text[:size], jsons


def _marker(make: Callable[..., Workload], spelling: Any, size: int, seed: int) -> tuple[str, tuple[str, ...]]:
    workload = make(spelling, size, seed)
    return workload.text, workload.json_texts


def _growth_row(of: str, name: str, read: str, best: dict[str, dict[int, float]], *, complete: bool) -> Row:
    lengths, times = list(best["ours"]), list(best["ours"].values())
    slope, late = exponent(lengths, times), last_exponent(lengths, times)
    return {
        "length of": of,
        "workload": name,
        "read": read,
        "from": lengths[0] if lengths else None,
        "to": lengths[-1] if lengths else None,
        "exponent": slope,
        "last 16x": late,
        "floor's": exponent(lengths, list(best["floor"].values())),
        "target": GROWTH_EXPONENT,
        "": verdict(complete and max(slope, late) <= GROWTH_EXPONENT) + ("" if complete else ": it was stopped"),
        "seconds": best["ours"],
    }


def _ways(losses: list[corpus.Loss]) -> str:
    """Say in which ways a call was lost: with which dialects listening, in chunks of which lengths."""
    lengths: dict[str, list[str]] = {}
    for loss in losses:
        lengths.setdefault(loss.listening, []).append(str(loss.chunk_length or "whole"))
    return "; ".join(f"{listening}: {' '.join(found)}" for listening, found in lengths.items())


def _peak_of_prose(begin: str, size: int, seed: int, length: int) -> Row:
    text = begin + "x" * size if begin else prose(size, seed)
    return _peak_row(text, length, PROSE_KB * 1024, f"{PROSE_KB} KB")


def _peak_of_marker(spelling: str, size: int, seed: int, length: int) -> Row | str:
    workload = huge(SPELLINGS[spelling], size, seed)
    try:
        check_truth(workload, OPTIONS)
    except WrongTruthError as error:
        return str(error)
    row = _peak_row(workload.text, length, 4 * sys.getsizeof(workload.text), "4x text")
    return {"workload": title(workload), **row}


def _peak_row(text: str, length: int, most: float, target: str) -> Row:
    held = peak(text, length)
    return {
        "characters": len(text),
        "chunk": length,
        "peak KB": held / 1024,
        "x text": held / sys.getsizeof(text),
        "target": target,
        "": verdict(held <= most),
    }


def peak(text: str, length: int) -> int:
    """Return the bytes allocated at most while `text` is streamed, once what all parsers share is there.

    Beyond patterns that is what they remember of short texts, which is bounded and belongs to no stream: nothing is
    remembered meanwhile.
    """
    with patch.object(Remembered, "__missing__", lambda remembered, asked: remembered.ask(asked)):
        _feed_lazily(Parser(**OPTIONS), text, length)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            _feed_lazily(Parser(**OPTIONS), text, length)
            return tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()


def _feed_lazily(parser: Parser, text: str, length: int) -> None:
    feed = parser.feed
    for start in range(0, len(text), length):
        feed(text[start : start + length])
    parser.finish()
