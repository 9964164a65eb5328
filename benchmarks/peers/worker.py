"""The protocol: one JSON object a line in, one out. `python -m benchmarks.peers.worker MODULE` serves one peer.

    {"op": "hello"}                                    its readers, its versions
    {"op": "load", "key", "text", "tools", ...}        keep a text under a key, with all that a reader may want to know
    {"op": "forget"}                                   drop all texts
    {"op": "read", "key", "reader", "pieces"}          the calls that the reader finds; seconds of the one read
    {"op": "turn", "key", "reader", "pieces", "least"} seconds of one read, the mean of as many as fill `least` seconds
    {"op": "next", "key", "reader", "fed", "pieces"}   seconds of each of `pieces` fed after the first `fed` characters;
                                                       the calls that are found in the end; `spent` before them
    {"op": "many", "key", "reader", "together", "judged"} seconds of all its streams, one after the other or together: a
                                                       chunk of each in turn; where they are judged, their calls
    {"op": "batch", "key", "reader"}                   seconds of reading its texts one after the other; their calls;
                                                       `failed`: what was raised at some of them
    {"op": "peak", "key", "reader", "pieces"}          bytes that Python allocates at most during one read
    {"op": "profile", "key", "reader", "pieces", "seconds"} how often each line ran, of samples taken each millisecond
                                                       of reading again and again: file, function, line, count

`pieces` are the lengths into which the text is cut; without them it is read whole. Every answer has `"ok"`; a failure
has `"error"` instead of figures. Only reading is timed: making a parser, and sorting its answer into calls, are not.
Seconds are those of the processor (`process_time`), so that other programs on a busy machine are not timed with it; the
single chunks of "next" are too short for that clock and are taken by `perf_counter`.
The collector stays on, and runs before each turn. Standard library only.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import signal
import sys
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate
from time import perf_counter, process_time
from types import FrameType
from typing import Any, NamedTuple, Protocol

from benchmarks.measure import LONG_SECONDS

SAMPLE_SECONDS = 0.001  # between two samples of a profile
WARMING_TEXTS = 20  # of a batch, read before it is timed: what is compiled when it is first needed is no cost of a text

CLOCK_CALLS = 2000  # a millisecond or two

Calls = list[tuple[str, Any]]  # name, and arguments as a JSON value, or as the text that should have been JSON


class Task(NamedTuple):
    """A text, and what a reader may know of it: the tools, its dialect, where its arguments stand (for floors)."""

    text: str
    tools: list[dict[str, Any]] = []  # noqa: RUF012 - never changed
    dialect: str = ""
    opener: str = ""
    slices: list[tuple[int, int]] | None = None
    json_texts: list[str] = []  # noqa: RUF012
    options: dict[str, Any] = {}  # noqa: RUF012


class Stream(Protocol):
    """A parser in the middle of a text."""

    def feed(self, chunk: str) -> Any: ...
    def finish(self) -> Any: ...


class Answer(NamedTuple):
    """What a reader made of a text: its calls, and the text that it would show a user; None where it gives none."""

    calls: Calls
    content: str | None = None


class Reader(Protocol):
    """One way of reading. A method that the peer cannot offer raises NotImplementedError."""

    def __init__(self, task: Task) -> None: ...

    def whole(self) -> Callable[[str], Any]:
        """Return what reads a whole text: only calling it is timed."""
        ...

    def answer(self, result: Any) -> Answer:
        """Sort what `whole` gave."""
        ...

    def stream(self) -> Stream:
        """Return a new parser: only feeding and finishing it are timed."""
        ...

    def gathered(self, outputs: list[Any]) -> Answer:
        """Sort what `feed` and `finish` gave."""
        ...


def merged(deltas: Iterator[tuple[int, str | None, str | None]]) -> Calls:
    """Join deltas of calls as OpenAI's clients do: (index, name, piece of the arguments)."""
    names: dict[int, str] = {}
    pieces: dict[int, list[str]] = {}
    for index, name, piece in deltas:
        names[index] = names.get(index, "") + (name or "")
        pieces.setdefault(index, []).append(piece or "")
    return [(names[index], decoded("".join(pieces[index]))) for index in sorted(names)]


def decoded(arguments: str) -> Any:
    """Return the JSON value of `arguments`, or the text itself, which no expected arguments equal."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def cut(text: str, lengths: list[int]) -> list[str]:
    """Cut `text` into pieces of these lengths."""
    ends = list(accumulate(lengths))
    return [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]


class Server:
    """Answers requests about one peer's readers."""

    def __init__(self, readers: dict[str, type[Reader]], versions: dict[str, str]) -> None:
        self.readers, self.versions = readers, versions
        self.tasks: dict[str, Task] = {}
        self.pieces: dict[tuple[str, tuple[int, ...]], list[str]] = {}

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request; whatever a peer raises becomes an answer too."""
        try:
            return {"ok": True, **getattr(self, f"op_{request['op']}")(request)}
        except NotImplementedError as error:
            return {"ok": False, "error": f"cannot: {error}"}
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a peer may raise anything (a panic of Rust, say); that is a result
            sys.stderr.write(traceback.format_exc())
            return {"ok": False, "error": _told(error)}

    def _reader(self, request: dict[str, Any]) -> tuple[Reader, Task, list[str] | None]:
        task = self.tasks[request["key"]]
        lengths = request.get("pieces")
        if lengths is None:
            return self.readers[request["reader"]](task), task, None
        kept = (request["key"], tuple(lengths))
        if kept not in self.pieces:
            self.pieces[kept] = cut(task.text, lengths)
        return self.readers[request["reader"]](task), task, self.pieces[kept]

    def op_hello(self, request: dict[str, Any]) -> dict[str, Any]:
        python = ".".join(map(str, sys.version_info[:3]))
        return {"readers": list(self.readers), "versions": {"python": python, **self.versions}}

    def op_load(self, request: dict[str, Any]) -> dict[str, Any]:
        fields = {key: value for key, value in request.items() if key in Task._fields}
        self.tasks[request["key"]] = Task(**fields)
        return {}

    def op_forget(self, request: dict[str, Any]) -> dict[str, Any]:
        self.tasks.clear()
        self.pieces.clear()
        return {}

    def op_read(self, request: dict[str, Any]) -> dict[str, Any]:
        reader, task, pieces = self._reader(request)
        if pieces is None:
            run = reader.whole()
            start = process_time()
            result = run(task.text)
            seconds = process_time() - start
            answer = reader.answer(result)
        else:
            stream = reader.stream()
            start = process_time()
            outputs = [stream.feed(piece) for piece in pieces]
            outputs.append(stream.finish())
            seconds = process_time() - start
            answer = reader.gathered(outputs)
        return {"seconds": seconds, "calls": [_sent(call) for call in answer.calls], "content": answer.content}

    def op_turn(self, request: dict[str, Any]) -> dict[str, Any]:
        reader, task, pieces = self._reader(request)

        def read(times: int) -> float:
            again = _made(reader, task.text, pieces, times)
            start = process_time()
            again()
            return process_time() - start

        least = request.get("least", 0.002)
        _tidy()
        seconds = read(1)
        if seconds >= max(least, LONG_SECONDS):
            return {"seconds": seconds, "repeats": 1}
        seconds = read(1)  # others have had the caches: the first read of a turn filled them
        if seconds >= least:
            return {"seconds": seconds, "repeats": 1}
        repeats = math.ceil(least / max(seconds, 1e-7))
        return {"seconds": read(repeats) / repeats, "repeats": repeats}

    def op_profile(self, request: dict[str, Any]) -> dict[str, Any]:
        if not hasattr(signal, "setitimer"):
            raise NotImplementedError("this system has no setitimer")
        reader, task, pieces = self._reader(request)
        counts: Counter[tuple[str, str, int]] = Counter()

        def sample(signum: int, frame: FrameType | None) -> None:
            if frame is not None and frame.f_lineno == frame.f_code.co_firstlineno and frame.f_back is not None:
                frame = frame.f_back  # it has just begun: the signal waited for C to end, which this one had called
            if frame is not None:
                counts[frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno or 0] += 1

        _made(reader, task.text, pieces, 1)()
        _tidy()
        before = signal.signal(signal.SIGPROF, sample)
        spent, times = 0.0, 1
        while spent < request["seconds"]:
            again = _made(reader, task.text, pieces, times)
            start = process_time()
            signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
            again()
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = process_time() - start
            spent += seconds
            times = max(1, min(2 * times, int(times * 0.2 / max(seconds, 1e-7))))
        signal.signal(signal.SIGPROF, before)
        return {"samples": [(*place, count) for place, count in counts.items()]}

    def op_next(self, request: dict[str, Any]) -> dict[str, Any]:
        reader, task, _ = self._reader({**request, "pieces": None})
        _tidy()
        stream = reader.stream()
        start = process_time()
        fed = request["fed"]
        text, position = task.text, 0
        outputs: list[Any] = []

        def feed(end: int) -> float:
            nonlocal position
            piece, position = text[position:end], end
            before = perf_counter()
            output = stream.feed(piece)
            after = perf_counter()
            outputs.append(output)
            return after - before

        for length in (*([4] * 50), *([max(1, (fed - 200) // 20)] * 20)):  # the head in tokens, then in big pieces
            if position < fed:
                feed(min(position + length, fed))
        for length in request["pieces"][:4]:  # what big pieces left undone is caught up with here
            feed(position + length)
        spent = process_time() - start
        seconds: list[float] = []
        for length in request["pieces"][4:]:
            seconds.append(feed(position + length))
            if sum(seconds) > request["budget"] and len(seconds) >= 3:
                break
        feed(len(text))
        outputs.append(stream.finish())
        return {"seconds": seconds, "spent": spent, "calls": [_sent(call) for call in reader.gathered(outputs).calls]}

    def op_many(self, request: dict[str, Any]) -> dict[str, Any]:
        reader, task, _ = self._reader(request)
        cuts: list[list[str]] = task.options["streams"]
        order = [(step, place) for place, pieces in enumerate(cuts) for step in range(len(pieces))]
        if request["together"]:
            order.sort()
        fed = [(place, cuts[place][step]) for step, place in order]
        if request.get("judged"):
            return {"calls": self._calls_of_many(reader, fed, len(cuts))}
        _tidy()
        streams = [reader.stream() for _ in cuts]
        feeds = [stream.feed for stream in streams]
        start = process_time()
        for place, piece in fed:
            feeds[place](piece)
        for stream in streams:
            stream.finish()
        return {"seconds": process_time() - start}

    def _calls_of_many(self, reader: Reader, fed: list[tuple[int, str]], count: int) -> Calls:
        """Return the calls of all streams. What they give is dropped where they are timed."""
        streams = [reader.stream() for _ in range(count)]
        outputs: list[list[Any]] = [[] for _ in streams]
        for place, piece in fed:
            outputs[place].append(streams[place].feed(piece))
        for stream, given in zip(streams, outputs, strict=True):
            given.append(stream.finish())
        return [_sent(call) for given in outputs for call in reader.gathered(given).calls]

    def op_batch(self, request: dict[str, Any]) -> dict[str, Any]:
        reader, task, _ = self._reader(request)
        texts = task.options["texts"]

        def read(texts: list[str]) -> tuple[float, Calls, list[BaseException]]:
            seconds, calls, failures = 0.0, [], []
            for text in texts:
                run = reader.whole()
                start = process_time()
                try:
                    result = run(text)
                except (KeyboardInterrupt, SystemExit, NotImplementedError):
                    raise
                except BaseException as error:  # noqa: BLE001 - as in `handle`; the other texts are read all the same
                    failures.append(error)
                    seconds += process_time() - start
                else:
                    seconds += process_time() - start
                    calls += reader.answer(result).calls
            return seconds, calls, failures

        read(texts[:WARMING_TEXTS])
        _tidy()
        seconds, calls, failures = read(texts)
        seconds = max(0.0, seconds - len(texts) * _clock_seconds())
        if len(failures) == len(texts):
            raise failures[0]
        return {"seconds": seconds, "calls": [_sent(call) for call in calls], "failed": [*map(_told, failures)]}

    def op_peak(self, request: dict[str, Any]) -> dict[str, Any]:
        reader, task, _ = self._reader({**request, "pieces": None})
        lengths = request["pieces"]
        if lengths is None:
            reader.whole()(task.text[:5000])  # what is made once, patterns say, is made now
            run = reader.whole()
            return {"bytes": _peak(lambda: run(task.text))}

        def feed_all() -> None:  # pieces are made one by one, so those that a parser keeps are counted
            stream = reader.stream()
            position = 0
            for length in lengths:
                stream.feed(task.text[position : position + length])
                position += length
            stream.finish()

        return {"bytes": _peak(feed_all)}


def _clock_seconds() -> float:
    """Return what `process_time` counts of itself, between two calls: a short text takes little more."""
    spent = 0.0
    for _ in range(CLOCK_CALLS):
        start = process_time()
        spent += process_time() - start
    return spent / CLOCK_CALLS


def _made(reader: Reader, text: str, pieces: list[str] | None, times: int) -> Callable[[], None]:
    """Make the parsers for so many reads; return what reads."""
    if pieces is None:
        runs = [reader.whole() for _ in range(times)]

        def whole() -> None:
            for run in runs:
                run(text)

        return whole
    streams = [reader.stream() for _ in range(times)]

    def stream() -> None:
        for one in streams:
            feed = one.feed
            for piece in pieces:
                feed(piece)
            one.finish()

    return stream


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _sent(call: tuple[str, Any]) -> tuple[str, Any]:
    """Return a call as it is sent: arguments nested more deeply than JSON libraries follow become a remark."""
    level = [call[1]]
    for _ in range(200):
        level = [inner for value in level if isinstance(value, dict | list)
                 for inner in (value.values() if isinstance(value, dict) else value)]  # fmt: skip
    return (call[0], "nested too deeply") if level else call


def _tidy() -> None:
    """Collect what an earlier turn left behind, and put all that stays out of the collector's sight, for good.

    It is to go through what a reader makes, not through our own texts; nor, each time, through a peer's many modules.
    """
    gc.collect()
    gc.freeze()


def _peak(run: Callable[[], Any]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def serve(server: Server) -> None:
    """Answer on the standard output until the input ends; what a peer prints goes to the standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    for line in os.fdopen(os.dup(0), "r", encoding="utf-8"):
        answers.write(json.dumps(server.handle(json.loads(line))) + "\n")
        answers.flush()


def main() -> None:
    sys.setrecursionlimit(5000)
    module = importlib.import_module(f"benchmarks.peers.{sys.argv[1]}")
    serve(Server(module.READERS, module.versions()))


if __name__ == "__main__":
    main()
