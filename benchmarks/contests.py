"""callmark, the floors and the peers beside each other: each peer in a process of its own, taking turns in one run.

A contest is one text and one way of reading it. Every reader first reads it once, untimed by the clock of the others,
and its calls are compared with what the generator meant; a short text it reads some times more, as what is compiled
when it is first needed is no cost of a text. Then rounds follow in which each reader has one turn. What counts is the
ratio of two times of the same round. A reader that is wrong keeps its figure, marked; it is never called fast. One that
needs longer than the limit says so.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from benchmarks import recovery
from benchmarks.environments import PEERS, Launch, UnavailableError, compiled, in_python, launch, ours, stop_making
from benchmarks.forecast import Forecast, as_it_grows, not_tried
from benchmarks.measure import LONGEST_SECONDS, TooSlowError, exponent
from benchmarks.report import Row
from benchmarks.verdicts import judged, same, share_shown
from benchmarks.workers import Answer, FailedError, Worker
from benchmarks.workloads import (
    BIGGEST_MARKER,
    CHUNK,
    SPELLINGS,
    TOOLS,
    Attack,
    Workload,
    chunks,
    dense,
    huge,
    messages,
    prose,
    repairs,
    sparse,
    tokens,
)

Done = TypeVar("Done")

OURS = "ours"
CALLMARK = "callmark"
OWN = "callmark, own dialect and tools"
COMPILED = "callmark, compiled"
PARTS_IN_C = "parts in C"
FLOORS = ("floor", PARTS_IN_C, "emit", "empty")
WARM_SECONDS = 0.02  # a shorter text is read AGAIN times, or for so long, before it is timed
COLD_SECONDS = 1.0  # up to here a first reading may be long because something was compiled: it is read once more
AGAIN = 4
AGREEING = 5  # turns, none of them much faster than those before: an engine has compiled what it will
MUCH_FASTER = 0.95  # of the fastest turn before
ONCE_SECONDS = 0.3  # a hostile text that takes so long is read once
MAKING = 4  # environments that are made at the same time
_IN_WORDS = ("call", "hermes")  # spellings whose calls are read among nothing but words, too
LEAST_SPEED = 100_000  # characters a second: who reads very long texts at that has all the time for it
GOOD_SPEED = 2_000_000  # and who reads them at that has a round or more


class Entrant(NamedTuple):
    """One reader in a contest: its name in tables, the process that serves it, its name there."""

    label: str
    peer: str
    reader: str


_DEFAULT = Entrant(CALLMARK, OURS, CALLMARK)
_OWN = Entrant(OWN, OURS, OWN)
_COMPILED = Entrant(COMPILED, COMPILED, CALLMARK)
_FIND = Entrant("floor", OURS, "floor")
_PARTS = Entrant(PARTS_IN_C, OURS, PARTS_IN_C)
_EMIT = Entrant("emit", OURS, "emit")
_EMPTY = Entrant("empty", OURS, "empty")

_ATP = Entrant("agent-tool-parser (Rust)", "agent-tool-parser", "agent-tool-parser")
_ATP_PYTHON = Entrant("agent-tool-parser (Python)", "agent-tool-parser, Python engine", "agent-tool-parser")
FORGE = Entrant("forge-guardrails", "forge-guardrails", "forge")

READ_BY: dict[str, tuple[Entrant, ...]] = {  # dialect: the peers that read it
    "hermes": (
        Entrant("sglang hermes", "sglang", "hermes"),
        Entrant("sglang qwen25", "sglang", "qwen25"),
        Entrant("vllm hermes", "vllm", "hermes"),
        _ATP,
        _ATP_PYTHON,
        FORGE,
        Entrant("ai-sdk hermes (node)", "ai-sdk", "hermes"),
    ),
    "qwen_xml": (
        Entrant("sglang qwen3_coder", "sglang", "qwen3_coder"),
        Entrant("vllm qwen3_coder", "vllm", "qwen3_coder"),
        FORGE,
        Entrant("ai-sdk qwen3coder (node)", "ai-sdk", "qwen3coder"),
    ),
    "glm": (
        Entrant("sglang glm45", "sglang", "glm45"),
        Entrant("vllm glm45", "vllm", "glm45"),
    ),
    "pythonic": (
        Entrant("sglang lfm2", "sglang", "lfm2"),
        Entrant("vllm lfm2", "vllm", "lfm2"),
    ),
}
DECODERS = (
    Entrant("jiter", "jiter", "jiter"),
    Entrant("json-repair", "json-repair", "json-repair"),
    Entrant("partial-json-parser", "partial-json-parser", "partial-json-parser"),
)

# Texts that peers were found to be slow on, in the dialect that most of them read; a good call follows each.
HOSTILE: tuple[Attack, ...] = (
    Attack("mentions of an opener", "<tool_call>\n"),
    Attack("heads of arguments", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "'),
    Attack("an open string", "a ", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "'),
    Attack("nested lists", "[", '<tool_call>\n{"name": "get_weather", "arguments": {"city": '),
    Attack("< < <", "<"),
)


class Scale(NamedTuple):
    """How big the contests are."""

    seed: int = 0
    characters: int = 400_000  # of prose, whole
    dense_characters: int = 100_000
    big_argument: int = 100_000
    streamed_characters: int = 40_000
    streamed_dense: int = 14_000
    arguments: tuple[int, ...] = (1000, 10_000, 100_000)
    fed: tuple[int, ...] = (1000, 10_000, 100_000, 1_000_000)
    hostile: tuple[int, ...] = (2048, 8192, 32_768, 131_072)
    slow_seconds: float = 3.0  # what growth says to take longer is not run: the curve shows it already
    hostile_seconds: float = 0.5  # the same, for texts made to be slow
    streams: int = 100
    batch: int = 2000
    memory: tuple[int, int] = (1_000_000, 10_000)  # read whole, and streamed
    rounds: int = 9
    warm_seconds: float = 1.0  # at most, for each kind of read of a peer whose engine compiles while it runs
    budget_seconds: float = 0.25  # for the turns of one reader in one contest
    longest_seconds: float = 20.0
    spellings: tuple[str, ...] = tuple(SPELLINGS)
    chunk_lengths: tuple[str, ...] = ("1", "4", "16", "64", "tokens")

    def of_length(self, characters: int) -> Scale:
        """Return the scale with texts of so many characters, markers as long as they may be, and time for all."""
        return self._replace(
            characters=characters,
            dense_characters=max(1, characters // 2),
            big_argument=min(characters, BIGGEST_MARKER),
            streamed_characters=characters,
            budget_seconds=max(self.budget_seconds, characters / GOOD_SPEED),
            longest_seconds=max(Scale().longest_seconds, characters / LEAST_SPEED),
        )


QUICK = Scale(
    characters=20_000,
    dense_characters=10_000,
    big_argument=10_000,
    streamed_characters=4000,
    streamed_dense=2000,
    arguments=(1000, 3000),
    fed=(1000, 10_000),
    hostile=(512, 1536),
    slow_seconds=0.5,
    hostile_seconds=0.2,
    streams=20,
    batch=200,
    memory=(50_000, 2000),
    rounds=3,
    warm_seconds=0.1,
    budget_seconds=0.03,
    longest_seconds=1.0,  # to start a peer again takes longer
    spellings=("call", "hermes", "qwen_xml"),
    chunk_lengths=("tokens",),
)


class Arena:
    """The processes, the texts, and the contests between them."""

    def __init__(
        self,
        scale: Scale,
        launches: dict[str, Launch] | None = None,
        tell: Callable[[str], None] = lambda line: None,
        wanted: Collection[str] = (),
    ) -> None:
        self.scale = scale
        self.unavailable: dict[str, str] = {}
        self.workers: dict[str, Worker] = {}
        self.readers: dict[str, list[str]] = {}
        self.tell = tell
        for name, how in (launches or self._launches(wanted)).items():
            longest = scale.longest_seconds
            if name in (OURS, COMPILED):  # a busy machine must not say of them that they read wrongly
                longest = max(longest, LONGEST_SECONDS)
            self.workers[name] = Worker(name, how, longest)
        self._keys = 0

    def _launches(self, wanted: Collection[str]) -> dict[str, Launch]:
        """Make all environments, some at a time: nothing is timed yet, and most of it is waiting for a network."""
        made = {OURS: ours()}
        makers = {COMPILED: compiled} | {peer.name: partial(launch, peer) for peer in PEERS.values()}
        with ThreadPoolExecutor(MAKING) as pool:
            making = {name: pool.submit(makers[name], self.tell) for name in wanted}
            try:
                for name, one in making.items():
                    try:
                        made[name] = one.result()
                    except (UnavailableError, subprocess.TimeoutExpired, OSError) as error:
                        self.unavailable[name] = str(error)
            except BaseException:  # ended from outside: what is under way ends, too
                pool.shutdown(wait=False, cancel_futures=True)
                while wait(making.values(), 0.1).not_done:
                    stop_making()
                raise
        return made

    def versions(self) -> dict[str, Any]:
        """Return what each process says of its versions; a process that does not start is unavailable."""
        found: dict[str, Any] = {}
        for worker in self.workers.values():
            with suppress(FailedError):  # which is told of below
                worker.start()
        for name, worker in list(self.workers.items()):
            try:
                hello = worker.ask("hello", limit=60)
                found[name], self.readers[name] = hello["versions"], hello["readers"]
            except (FailedError, TooSlowError) as error:
                self.unavailable[name] = str(error)
                del self.workers[name]
        return found

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.close()

    def load(self, workload: Workload, **options: Any) -> str:
        """Hand a workload to every process; return its key."""
        self._keys += 1
        key = f"{self._keys}: {workload.name}"
        for worker in self.workers.values():
            worker.load(
                key,
                text=workload.text,
                tools=TOOLS,
                dialect=workload.spelling.dialect,
                opener=workload.spelling.opener,
                slices=workload.slices,
                json_texts=workload.json_texts,
                options=options,
            )
        return key

    def forget(self) -> None:
        for worker in self.workers.values():
            worker.forget()

    def apart(self, entrants: Sequence[Entrant], do: Callable[[Entrant], Done]) -> list[Done]:
        """Do with each of some readers what is not timed, in all their processes at the same time."""
        places: dict[str, list[int]] = {}
        for place, entrant in enumerate(entrants):
            places.setdefault(entrant.peer, []).append(place)
        done: dict[int, Done] = {}

        def do_some(places: list[int]) -> None:
            for place in places:
                done[place] = do(entrants[place])

        with ThreadPoolExecutor(max(1, len(places))) as pool, self._patient():
            try:
                for one in as_completed([pool.submit(do_some, some) for some in places.values()]):
                    one.result()  # raises what it raised
            except BaseException:  # ended from outside, say: nobody is waited for
                for worker in self.workers.values():
                    worker.stop()
                raise
        return [done[place] for place in range(len(entrants))]

    @contextmanager
    def _patient(self) -> Iterator[None]:
        """Give all processes all processors, and the time that they take from each other: a limit is of the wall's."""
        workers = [*self.workers.values()]
        for worker in workers:
            worker.share(max(1, len(workers) / (os.cpu_count() or 1)))
        try:
            yield
        finally:
            for worker in workers:
                worker.alone()

    def contest(
        self, workload: Workload, entrants: Sequence[Entrant], pieces: Sequence[str] | None = None, **columns: Any
    ) -> list[Row]:
        """Let the entrants read the workload, whole or in `pieces`; return a row for each that can."""
        key = self.load(workload)
        lengths = None if pieces is None else [len(piece) for piece in pieces]
        rows: list[Row] = []
        running: list[tuple[Entrant, Row]] = []
        for entrant in entrants:
            row: Row = {
                "workload": workload.name,
                "spelling": workload.spelling.name,
                "reader": entrant.label,
                "characters": len(workload.text),
                "calls": len(workload.calls),
                "chunks": len(pieces) if pieces is not None else None,
                **columns,
            }
            rows.append(row)
            if self._admitted(entrant, row, key, lengths, workload):
                running.append((entrant, row))

        def turn(entrant: Entrant, row: Row) -> float | None:
            if sum(filter(None, row["seconds"])) > self.scale.budget_seconds:
                return None
            return float(self._ask(entrant, "turn", key, pieces=lengths)["seconds"])

        self._take_turns(running, self.scale.rounds, turn)
        for row in rows:
            self._conclude(row, rows)
        self.forget()
        return [row for row in rows if row["verdict"] != "cannot"]

    def _admitted(self, entrant: Entrant, row: Row, key: str, lengths: list[int] | None, workload: Workload) -> bool:
        """Let a reader read once, and judge it. Whether it takes part in the rounds."""
        row["seconds"] = []
        if entrant.peer not in self.workers:
            missing = entrant.peer in self.unavailable
            row["verdict"] = f"not available: {self.unavailable[entrant.peer]}" if missing else "cannot"
            return False
        if entrant.reader in ("emit", "empty"):
            row["verdict"] = "floor"
            return True
        try:
            answer = self._ask(entrant, "read", key, pieces=lengths)
        except (TooSlowError, FailedError) as error:
            row["verdict"] = self._excuse(entrant, error)
            return False
        verdict = judged(answer["calls"], workload.calls, names=entrant not in (*DECODERS, _FIND, _PARTS))
        row["verdict"] = "floor" if entrant in (_FIND, _PARTS) and verdict == "right" else verdict
        if entrant not in (*DECODERS, _FIND, _PARTS) and workload.prose is not None:
            row["text"] = shown = share_shown(answer["content"] or "", workload.prose)
            if entrant.label.startswith(CALLMARK) and verdict == "right" and shown != 1:
                row["verdict"] = f"wrong: {shown:.0%} of the text"
        row["only"] = answer["seconds"]
        if answer["seconds"] < COLD_SECONDS:
            try:
                again = min(WARM_SECONDS, AGAIN * answer["seconds"])
                warm = self._ask(entrant, "turn", key, pieces=lengths, least=again)
                once = partial(self._ask, entrant, "turn", key, pieces=lengths, least=WARM_SECONDS)
                kind = f"{workload.name}, {'whole' if lengths is None else 'stream'}"
                row["only"] = min(answer["seconds"], warm["seconds"], self._warmed(entrant, kind, once))
            except (TooSlowError, FailedError):
                pass  # its turns will tell
        return bool(row["only"] <= self.scale.budget_seconds)

    def _warmed(self, entrant: Entrant, kind: str, turn: Callable[[], Answer]) -> float:
        """Let a reader whose engine compiles what runs often take turns until they agree; return its best seconds.

        Once for each kind of read: what is compiled stays, as long as the process does. Whose engine compiles nothing
        while it runs takes none.
        """
        worker = self.workers[entrant.peer]
        known = f"{entrant.reader}, {kind}"
        if in_python(entrant.peer) or known in worker.warm:  # node compiles while it runs
            return math.inf
        seconds: list[float] = []
        deadline = monotonic() + self.scale.warm_seconds
        while monotonic() < deadline and not _agree(seconds):
            seconds.append(turn()["seconds"])
        worker.warm.add(known)
        return min(seconds, default=math.inf)

    def _ask(self, entrant: Entrant, op: str, key: str, **request: Any) -> Answer:
        return self.workers[entrant.peer].ask(op, key=key, reader=entrant.reader, **request)

    def _excuse(self, entrant: Entrant, error: TooSlowError | FailedError) -> str:
        """Return the verdict on a reader that gave no answer."""
        if isinstance(error, TooSlowError):
            return f"> {self.workers[entrant.peer].longest_seconds:g} s"
        return "cannot" if str(error).startswith("cannot") else f"failed: {error}"

    def _take_turns(
        self, running: Sequence[tuple[Entrant, Row]], rounds: int, turn: Callable[[Entrant, Row], Any]
    ) -> None:
        """Give each reader a turn in each round; one that gives no answer says so, and has no more turns."""
        for round_ in range(rounds):
            for place in range(len(running)):  # whoever was first is last in the next round
                entrant, row = running[(place + round_) % len(running)]
                seconds = None
                if not row["verdict"].startswith((">", "failed", "cannot")):
                    try:
                        seconds = turn(entrant, row)
                    except (TooSlowError, FailedError) as error:
                        row["verdict"] = self._excuse(entrant, error)
                row["seconds"].append(seconds)

    def _conclude(self, row: Row, rows: list[Row]) -> None:
        """Add the figures: medians, and ratios round by round to the floor and to callmark."""
        only = row.pop("only", None)
        if not any(row["seconds"]):
            row["seconds"] = [] if only is None or row["verdict"].startswith(("failed", ">")) else [only]
        times = [seconds for seconds in row["seconds"] if seconds]
        if not times:
            return
        median = statistics.median(times)
        row["median seconds"] = median
        row["MB/s"] = row["characters"] / median / 1e6
        row["ns/chunk"] = median / (row["chunks"] or row["characters"] / CHUNK) * 1e9
        whole = row["chunks"] is None
        for column, label in (
            ("x floor", "floor" if whole else "emit"),
            ("x empty", "empty"),
            ("x callmark", CALLMARK),
        ):
            base = next((one for one in rows if one["reader"] == label), None)
            if base is not None and any(base["seconds"]) and not (label == "empty" and whole):
                of_turns = ratios(row["seconds"], base["seconds"])
                row[column] = statistics.median(of_turns)
                row[f"{column}, least"], row[f"{column}, most"] = min(of_turns), max(of_turns)
                if column == "x floor" and len(of_turns) > 1:
                    low, middle, high = statistics.quantiles(of_turns, n=4, method="inclusive")
                    row["spread"] = (high - low) / middle

    # The parts. Each yields the rows of one contest at a time, so that a run can show how far it is.

    def whole(self) -> Iterator[list[Row]]:
        """Whole texts, in every spelling."""
        scale = self.scale
        for spelling in map(SPELLINGS.__getitem__, scale.spellings):
            peers = READ_BY.get(spelling.name, ())
            for workload in (
                sparse(spelling, scale.characters, scale.seed),
                dense(spelling, scale.dense_characters, scale.seed),
                huge(spelling, scale.big_argument, scale.seed),
                huge(spelling, scale.big_argument // 10, scale.seed, closers=True),
                sparse(spelling, 2048, scale.seed)._replace(name="a message of 2 KB"),
                *([sparse(spelling, scale.characters, scale.seed, plain=True)] if spelling.name in _IN_WORDS else ()),
            ):
                yield self.contest(workload, (_FIND, _PARTS, _DEFAULT, _OWN, _COMPILED, *peers))
        broken = repairs(scale.dense_characters, scale.seed)
        yield self.contest(broken, (_FIND, _DEFAULT, _OWN, _COMPILED, *READ_BY["hermes"]))

    def stream(self) -> Iterator[list[Row]]:
        """Streams: in chunks of 4 over all shapes, and some shapes in chunks of other lengths."""
        scale = self.scale
        text = prose(scale.streamed_characters, scale.seed)
        plain = Workload("prose", SPELLINGS["hermes"], text, (), (), (), text)
        yield self._streamed(plain, READ_BY["hermes"])
        for spelling in map(SPELLINGS.__getitem__, scale.spellings):
            peers = READ_BY.get(spelling.name, ())
            yield self._streamed(sparse(spelling, scale.streamed_characters, scale.seed), peers)
            yield self._streamed(dense(spelling, scale.streamed_dense, scale.seed), peers)
            forecast = self._forecast()
            for size in scale.arguments:
                workload = huge(spelling, size, scale.seed)._replace(name=f"argument of {size // 1000} KB")
                left_out = forecast.left_out
                rows = self._streamed(workload, [entrant for entrant in peers if entrant.label not in left_out])
                rows += [self._left_out(workload, *one) for one in sorted(left_out.items())]
                for row in rows:
                    self._learn(forecast, row, row.get("median seconds"))
                yield rows

    def _streamed(self, workload: Workload, peers: Sequence[Entrant]) -> list[Row]:
        entrants = (_EMIT, _EMPTY, _DEFAULT, _OWN, _COMPILED, *peers)
        return self.contest(workload, entrants, chunks(workload.text, whole_markers=True), chunk=str(CHUNK))

    def _forecast(self) -> Forecast:
        return Forecast(self.scale.slow_seconds, self.scale.longest_seconds)

    def _learn(self, forecast: Forecast, row: Row, seconds: float | None) -> None:
        if not row["reader"].startswith(CALLMARK):  # which is always tried
            forecast.learn(row["reader"], row["verdict"], seconds)

    def _left_out(self, workload: Workload, label: str, verdict: str) -> Row:
        return {
            "workload": workload.name,
            "spelling": workload.spelling.name,
            "reader": label,
            "chunk": str(CHUNK),
            "characters": len(workload.text),
            "seconds": [],
            **not_tried(verdict),
        }

    def sizes(self) -> Iterator[list[Row]]:
        """The same streams in chunks of 1, 4, 16 and 64 characters, and in pieces of the sizes of tokens."""
        scale = self.scale
        for name in ("hermes", "qwen_xml", "call"):
            spelling, peers = SPELLINGS[name], READ_BY.get(name, ())
            for workload in (
                sparse(spelling, scale.streamed_dense, scale.seed),
                dense(spelling, scale.streamed_dense // 4, scale.seed),
                huge(spelling, 1000, scale.seed)._replace(name="argument of 1 KB"),
            ):
                for chunk in scale.chunk_lengths:
                    pieces = tokens(workload.text) if chunk == "tokens" else chunks(workload.text, int(chunk))
                    yield self.contest(workload, (_EMIT, _DEFAULT, _OWN, _COMPILED, *peers), pieces, chunk=chunk)

    def next(self) -> Iterator[list[Row]]:
        """What the next chunk costs when so much of a call has come already."""
        scale = self.scale
        for name in ("hermes", "qwen_xml", "call"):
            forecast = self._forecast()
            entrants = (_EMIT, _DEFAULT, _OWN, *READ_BY.get(name, ()))
            for fed in scale.fed:
                workload = huge(SPELLINGS[name], fed + 2000, scale.seed)
                key = self.load(workload)
                running: list[tuple[Entrant, Row]] = []
                rows: list[Row] = []
                for entrant in entrants:
                    if entrant.peer not in self.workers:
                        continue
                    row: Row = {"spelling": name, "reader": entrant.label, "already": fed, "verdict": "", "seconds": []}
                    rows.append(row)
                    if verdict := forecast.left_out.get(entrant.label):
                        row |= not_tried(verdict)
                    else:
                        running.append((entrant, row))
                self._take_turns(running, 5, partial(self._next, workload, key, fed))
                for row in rows:
                    runs = [one for one in row["seconds"] if one]
                    row["seconds"] = [min(several) for several in zip(*runs, strict=False)]
                    if runs:
                        row["us/chunk"] = statistics.median(row["seconds"]) * 1e6
                    self._learn(forecast, row, row.pop("spent") if runs else None)
                self.forget()
                yield _beside_callmark(rows, "us/chunk")

    def _next(self, workload: Workload, key: str, fed: int, entrant: Entrant, row: Row) -> list[float] | None:
        """Return the seconds of single chunks. They are near the clock's grain: short ones get all five turns."""
        if any(sum(seconds) > 0.1 for seconds in row["seconds"] if seconds):
            return None
        answer = self._ask(
            entrant, "next", key, fed=fed, pieces=[CHUNK] * 84, budget=self.scale.budget_seconds
        )
        row["verdict"] = "floor" if entrant is _EMIT else judged(answer["calls"], workload.calls)
        row["spent"] = answer["spent"]
        return list(answer["seconds"])

    def hostile(self) -> Iterator[list[Row]]:
        """Time against size for texts made to be slow, with a good call behind each."""
        scale = self.scale
        good = recovery.GOOD["hermes"]
        entrants = (_DEFAULT, _OWN, *READ_BY["hermes"])
        for attack in HOSTILE:
            for way in ("whole", "stream"):
                rows: list[Row] = []
                taken: dict[str, list[float]] = {}
                gone: set[str] = set()
                for size in scale.hostile:
                    text = attack.text(size) + "\n\n" + good.marker
                    workload = Workload(
                        attack.name, SPELLINGS["hermes"], text, ((good.name, good.arguments),), None, ()
                    )
                    key = self.load(workload)
                    lengths = None if way == "whole" else [len(piece) for piece in chunks(text)]
                    for entrant in entrants:
                        if entrant.label in gone or entrant.peer not in self.workers:
                            continue
                        row: Row = {"workload": attack.name, "way": way, "reader": entrant.label}
                        row["characters"] = len(text)
                        before = taken.setdefault(entrant.label, [])
                        if outlook := as_it_grows(before, scale.hostile_seconds):
                            row["verdict"] = outlook
                        else:
                            self._attacked(entrant, key, lengths, row, good)
                        if row["verdict"] != "cannot":
                            rows.append(row)
                        if "best seconds" in row:
                            before.append(row["best seconds"])
                        else:
                            gone.add(entrant.label)
                    self.forget()
                for label in {row["reader"] for row in rows}:
                    times = [row for row in rows if row["reader"] == label and "best seconds" in row]
                    slope = exponent([r["characters"] for r in times], [r["best seconds"] for r in times])
                    for row in times:
                        row["exponent"] = slope
                yield rows

    def _attacked(self, entrant: Entrant, key: str, lengths: list[int] | None, row: Row, good: recovery.Good) -> None:
        try:
            answer = self._ask(entrant, "read", key, pieces=lengths)
            seconds = [answer["seconds"]]
            while (len(seconds) < 2 and seconds[0] < ONCE_SECONDS) or (
                sum(seconds) < self.scale.budget_seconds / 4 and len(seconds) < 4
            ):
                seconds.append(self._ask(entrant, "turn", key, pieces=lengths)["seconds"])
        except (TooSlowError, FailedError) as error:
            row["verdict"] = self._excuse(entrant, error)
            return
        *others, last = answer["calls"] or [("", None)]
        found = last[0] == good.name and same(last[1], good.arguments)
        row["verdict"] = "lost" if not found else f"found, with {len(others)} others" if others else "found"
        row["seconds"] = seconds
        row["best seconds"] = min(seconds)

    def many(self) -> Iterator[list[Row]]:
        """Many streams at once in one process, a chunk of each in turn: tokens of answers of 2 KB, each another one."""
        scale = self.scale
        workload, *others = (sparse(SPELLINGS["hermes"], 2048, scale.seed + place) for place in range(scale.streams))
        cuts = [tokens(one.text) for one in (workload, *others)]
        meant = [call for one in (workload, *others) for call in one.calls]
        key = self.load(workload, streams=cuts)
        running: list[tuple[Entrant, Row]] = []
        for entrant in (_EMIT, _DEFAULT, _OWN, *READ_BY["hermes"]):
            row: Row = {"workload": workload.name, "reader": entrant.label, "streams": scale.streams, "alone": [],
                        "seconds": []}  # fmt: skip
            if entrant.peer in self.workers:
                try:
                    calls = self._ask(entrant, "many", key, together=True, judged=True)["calls"]
                    row["verdict"] = "floor" if entrant is _EMIT else judged(calls, meant)
                    self._warmed(entrant, "many", partial(self._ask, entrant, "many", key, together=True))
                except (TooSlowError, FailedError) as error:
                    row["verdict"] = self._excuse(entrant, error)
                running.append((entrant, row))

        def turn(entrant: Entrant, row: Row) -> float:
            alone, seconds = (
                self._ask(entrant, "many", key, together=together)["seconds"]
                for together in (False, True)
            )
            row["alone"].append(alone)
            return float(seconds)

        self._take_turns(running, max(1, scale.rounds // 3), turn)
        self.forget()
        for _, row in running:
            if any(row["seconds"]):
                row["ns/chunk"] = statistics.median(filter(None, row["seconds"])) / sum(map(len, cuts)) * 1e9
                row["x alone"] = statistics.median(ratios(row["seconds"], row["alone"]))
        yield _beside_callmark([row for _, row in running])

    def batch(self) -> Iterator[list[Row]]:
        """Many short texts, one after the other, two thirds of them with a call."""
        scale = self.scale
        made = messages(SPELLINGS["hermes"], min(scale.batch, 500), scale.seed)
        several = [made[place % len(made)] for place in range(scale.batch)]
        meant = [call for _, calls in several for call in calls]
        key = self.load(
            Workload("batch", SPELLINGS["hermes"], "", (), None, ()), texts=[text for text, _ in several]
        )
        characters = sum(len(text) for text, _ in several)
        running: list[tuple[Entrant, Row]] = []
        for entrant in (_DEFAULT, _OWN, *READ_BY["hermes"]):
            row: Row = {"workload": f"{scale.batch} short texts", "reader": entrant.label, "characters": characters}
            if entrant.peer in self.workers:
                running.append((entrant, row | {"verdict": "", "seconds": []}))

        def turn(entrant: Entrant, row: Row) -> float:
            self._warmed(entrant, "batch", partial(self._ask, entrant, "batch", key))
            answer = self._ask(entrant, "batch", key)
            row["verdict"] = judged(answer["calls"], meant)
            if failed := answer["failed"]:
                found = "wrong:" if row["verdict"] == "right" else f"{row['verdict']},"
                row["verdict"] = f"{found} failed at {len(failed)} of {scale.batch} texts"
                row["note"] = f"first: {failed[0]}"
            return float(answer["seconds"])

        self._take_turns(running, max(1, scale.rounds // 3), turn)
        self.forget()
        for _, row in running:
            if any(row["seconds"]):
                median = statistics.median(filter(None, row["seconds"]))
                row |= {"us/text": median / scale.batch * 1e6, "MB/s": characters / median / 1e6}
        yield _beside_callmark([row for _, row in running])

    def arguments(self) -> Iterator[list[Row]]:
        """Decoders of JSON, told where it stands, beside callmark, which has to find it (in `hermes`)."""
        scale = self.scale
        for size in (1000, 5000):  # one of them takes 17 s for 10 KB
            marker = huge(SPELLINGS["hermes"], size, scale.seed)
            body = marker.json_texts[0]
            alone = Workload(f"arguments of {size // 1000} KB", marker.spelling, body,
                             (("", marker.calls[0][1]),), ((0, len(body)),), (body,))  # fmt: skip
            for way in ("whole", "stream"):
                pieces = chunks(alone.text) if way == "stream" else None
                rows = self.contest(alone, (_FIND, *DECODERS), pieces, way=way)
                reading = self.contest(
                    marker,
                    (_DEFAULT,),
                    chunks(marker.text) if way == "stream" else None,
                    way=way,
                    note="the whole marker",
                )
                base = reading[0].get("median seconds")
                for row in rows:
                    if base and "median seconds" in row:
                        row["x callmark"] = row["median seconds"] / base
                yield [{**row, "workload": alone.name} for row in (*rows, *reading)]
        broken = repairs(2000, scale.seed)
        bodies = [
            text[text.index('"arguments": ') + 13 : text.rindex("}")] for text in broken.text.split("</tool_call>")[:-1]
        ]
        spoiled = broken._replace(name="arguments to repair", json_texts=tuple(bodies))
        # markers are not read here: speed is that of what is decoded
        yield self.contest(spoiled, DECODERS, way="whole", characters=sum(map(len, bodies)))

    def memory(self) -> Iterator[list[Row]]:
        """What Python allocates at most while a big call is read, whole and streamed."""
        rows: list[Row] = []
        entrants = (_DEFAULT, _OWN, *READ_BY["hermes"])
        known = [one for one in entrants if one.peer in self.workers and in_python(one.peer)]
        for way, size in zip(("whole", "stream"), self.scale.memory, strict=True):
            workload = huge(SPELLINGS["hermes"], size, self.scale.seed)
            key = self.load(workload)
            lengths = None if way == "whole" else [len(piece) for piece in chunks(workload.text, 16)]
            found = self.apart(known, partial(self._peak, workload, key, lengths))
            rows += [{**row, "way": way} for row in found if row["verdict"] != "cannot"]
            self.forget()
        yield rows

    def _peak(self, workload: Workload, key: str, lengths: list[int] | None, entrant: Entrant) -> Row:
        row: Row = {"workload": "one big call", "reader": entrant.label, "characters": len(workload.text)}
        try:
            answer = self._ask(entrant, "read", key, pieces=lengths)
            peak = self._ask(entrant, "peak", key, pieces=lengths)["bytes"]
        except (TooSlowError, FailedError) as error:
            return row | {"verdict": self._excuse(entrant, error)}
        row |= {"peak KB": peak / 1024, "x text": peak / len(workload.text.encode())}
        row["verdict"] = judged(answer["calls"], workload.calls)
        return row | ({"note": "Rust's own memory is not seen"} if "Rust" in entrant.label else {})


def _agree(seconds: Sequence[float]) -> bool:
    """Whether none of the last turns was much faster than all before: noise only adds time."""
    before, last = seconds[:-AGREEING], seconds[-AGREEING:]
    return bool(before) and min(last) > MUCH_FASTER * min(before)


def ratios(seconds: Sequence[float | None], base: Sequence[float | None]) -> list[float]:
    """Return the ratio of each round that has both, or that of the medians where no round has."""
    pairs = [one / other for one, other in zip(seconds, base, strict=False) if one and other]
    if not pairs or len(seconds) != len(base):
        own, others = [one for one in seconds if one], [one for one in base if one]
        pairs = [statistics.median(own) / statistics.median(others)]
    return pairs


def _beside_callmark(rows: list[Row], column: str = "") -> list[Row]:
    """Return the rows of those that can, with what each takes as a multiple of callmark.

    That is by a column, or by their turns round by round.
    """
    rows = [row for row in rows if row["verdict"] != "cannot"]
    base = next((row for row in rows if row["reader"] == CALLMARK and any(row["seconds"])), None)
    for row in rows:
        if base is not None and any(row["seconds"]):
            of_turns = [row[column] / base[column]] if column else ratios(row["seconds"], base["seconds"])
            row["x callmark"] = statistics.median(of_turns)
    return rows
