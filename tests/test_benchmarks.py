"""The benchmarks measure what they say: workloads have their truth, and a peer that is wrong or slow is found out."""

from __future__ import annotations

import gc
import json
import math
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Barrier
from time import monotonic, sleep

import pytest
from benchmarks import __main__ as command_line
from benchmarks import compare, contests, correctness, environments, figures, load, measure, parts, profiling, report
from benchmarks.__main__ import _ALONE, PARTS, _contests, _is_wrong, _read_in, _wanted, main
from benchmarks.contests import CALLMARK, OURS, OWN, READ_BY, Arena, Entrant, Scale, ratios
from benchmarks.environments import PEERS, ROOT, Launch, UnavailableError, launch, ours
from benchmarks.floors import find_and_decode, find_decode_and_tell
from benchmarks.forecast import Forecast
from benchmarks.instructions import counting
from benchmarks.measure import TooSlowError, best_by_size, exponent
from benchmarks.measure import whole as timed
from benchmarks.parts import Parts
from benchmarks.peers import ours as served_ours
from benchmarks.peers import worker as served
from benchmarks.peers.ours import LIMITS, READERS
from benchmarks.peers.vocabularies import MARKERS, Tokenizer
from benchmarks.peers.worker import Answer, Server, Task, merged
from benchmarks.report import Lines, conditions, read_lines, table
from benchmarks.verdicts import judged, same, share_shown
from benchmarks.workers import FailedError, Worker
from benchmarks.workloads import (
    ATTACKS,
    SPELLINGS,
    TOOLS,
    Workload,
    chunks,
    dense,
    huge,
    messages,
    repairs,
    sparse,
    tokens,
    wide,
)
from canitoolcall.chunking import DEFAULT_STRATEGIES
from canitoolcall.fixtures import load_families, load_fixtures
from click.testing import CliRunner

from callmark import Call, Limits, Text, parse
from callmark.testing import in_chunks

FAKES = '''
"""Peers made for this test: each reads hermes by a regular expression, in its own way."""
import json, os, re, time
from benchmarks.peers.worker import Answer, Server, serve

class Right:
    def __init__(self, task):
        self.task = task
    def find(self, text):
        found = re.findall("<tool_call>(.*?)</tool_call>", text, re.DOTALL)
        return [(call["name"], call["arguments"]) for call in map(json.loads, found)]
    def whole(self):
        return self.find
    def answer(self, result):
        return Answer(result)
    def stream(self):
        return Stream(self)
    def gathered(self, outputs):
        return Answer(outputs[-1])

class Stream:
    def __init__(self, reader):
        self.reader, self.pieces = reader, []
    def feed(self, chunk):
        self.pieces.append(chunk)
    def finish(self):
        return self.reader.find("".join(self.pieces))

class Loses(Right):
    def find(self, text):
        return super().find(text)[:-1]

class Cuts(Right):
    def find(self, text):
        return [(name, {key: value[:3] if isinstance(value, str) else value for key, value in arguments.items()})
                for name, arguments in super().find(text)]

class Renames(Right):
    def find(self, text):
        return [(f"{name}_", arguments) for name, arguments in super().find(text)]

class Misses(Right):
    def find(self, text):  # not the first of some texts
        return [] if os.environ["MISSED"] in text else super().find(text)

class Slow(Right):
    def find(self, text):
        if len(text) > 1500:
            time.sleep(60)
        return super().find(text)

class Raises(Right):
    def find(self, text):
        raise RuntimeError("no")

class Panic(BaseException):
    pass

class Panics(Right):
    def find(self, text):
        found = super().find(text)
        if not found or os.environ["FEARED"] in text:
            raise Panic("no call")
        return found

class Leaves(Right):
    def find(self, text):
        print("goodbye")
        os._exit(3)

class WholeOnly(Right):
    def stream(self):
        raise NotImplementedError("no streaming")

ALL = Right, Loses, Cuts, Renames, Misses, Slow, Raises, Panics, Leaves, WholeOnly
serve(Server({one.__name__: one for one in ALL}, {"fakes": "1"}))
'''
SLOW = '''
from benchmarks.peers.worker import Server, serve

class Slow:
    def __init__(self, task):
        pass
    def whole(self):
        return self.find
    def find(self, text):
        for _ in range(200):
            len(text)
        return sum(range(50_000))

serve(Server({"slow": Slow}, {}))
'''
NAMES = ("Right", "Loses", "Cuts", "Renames", "Slow", "Raises", "Leaves", "WholeOnly")
TINY = Scale(
    characters=5000, dense_characters=2000, big_argument=2000, streamed_characters=2000, streamed_dense=1000,
    arguments=(1000,), fed=(1000,), hostile=(512, 1024), streams=3, batch=6, memory=(2000, 1000), rounds=1,
    budget_seconds=0.001, longest_seconds=20, spellings=("call", "hermes"), chunk_lengths=("16", "tokens"),
)  # fmt: skip


@pytest.fixture
def fakes(tmp_path) -> Launch:
    program = tmp_path / "fakes.py"
    program.write_text(FAKES, encoding="utf-8")
    return Launch((sys.executable, str(program)), {"PYTHONPATH": str(ROOT)})


def shapes(seed: int) -> list[Workload]:
    made = [make(spelling, 3000, seed) for spelling in SPELLINGS.values() for make in (sparse, dense, huge, wide)]
    made += [huge(spelling, 3000, seed, closers=True) for spelling in SPELLINGS.values()]
    made += [sparse(spelling, 3000, seed, plain=True) for spelling in SPELLINGS.values()]
    return [*made, repairs(3000, seed)]


@pytest.mark.parametrize("seed", [0, 7])
def test_workloads_are_what_their_truth_says(seed):
    for workload in shapes(seed):
        if workload.name == "one wide call" and workload.spelling.name == "pythonic":
            continue  # texts with both kinds of quotes are written with escapes there: not what this shape is for
        calls = [(call.name, call.arguments) for call in parse(workload.text, limits=LIMITS).calls]
        assert judged(calls, workload.calls) == "right", (workload.name, workload.spelling.name)
        events = in_chunks(tokens(workload.text), dialects=[workload.spelling.dialect], limits=LIMITS)
        calls = [(event.name, event.arguments) for event in events if hasattr(event, "raw_arguments")]
        assert judged(calls, workload.calls) == "right", (workload.name, workload.spelling.name)
        if workload.slices is not None:
            bodies = [json.loads(workload.text[start:end]) for start, end in workload.slices]
            assert bodies == [arguments for _, arguments in workload.calls]


def test_the_seed_and_the_size_change_the_text():
    assert [w.text for w in shapes(1)] == [w.text for w in shapes(1)]
    assert all(
        one.text != other.text for one, other in zip(shapes(1), shapes(2), strict=True) if "wide" not in one.name
    )
    for size in (1000, 10_000, 100_000):
        assert size - 120 <= len(huge(SPELLINGS["hermes"], size).text) <= size
    assert messages(SPELLINGS["hermes"], 9, 1) != messages(SPELLINGS["hermes"], 9, 2)
    made = messages(SPELLINGS["hermes"], 9)
    assert [text.count("<tool_call>") for text, _ in made] == [len(calls) for _, calls in made] == [0, 1, 1] * 3
    for text, calls in made:
        assert [(call.name, call.arguments) for call in parse(text).calls] == calls


def test_every_call_is_of_a_tool_that_is_described():
    described = {tool["function"]["name"]: set(tool["function"]["parameters"]["properties"]) for tool in TOOLS}
    for workload in shapes(3):
        for name, arguments in workload.calls:
            assert name == "update" or set(arguments) == described[name]


class Looked(str):
    """A text that keeps what is looked for in it, and from where."""

    __slots__ = ("looks",)

    def find(self, what, *place):
        self.looks.append((what, *place))
        return super().find(what, *place)


def test_a_floor_with_more_parts_looks_for_every_opener_that_the_other_looks_for():
    for one in shapes(0):
        floor, parts = Looked(one.text), Looked(one.text)
        floor.looks, parts.looks = [], []
        find_and_decode(floor, one.spelling.opener, one.slices, one.json_texts)
        events = find_decode_and_tell(parts, one.spelling.opener, one.slices, one.json_texts)
        assert [look for look in parts.looks if look[0] == one.spelling.opener] == floor.looks
        starts = [event.span.start for event in events if isinstance(event, Call)]
        assert all(one.text.startswith(one.spelling.opener, start) for start in starts)
        assert len(starts) == len(one.calls)


def test_tokens_have_the_sizes_of_tokens_and_never_cut_a_marker_token():
    for workload in shapes(0):
        pieces = tokens(workload.text)
        assert "".join(pieces) == workload.text
        assert 1.8 < len(workload.text) / len(pieces) < 6
    text = dense(SPELLINGS["glm"], 2000).text
    assert tokens(text).count("</arg_value>") == text.count("</arg_value>") > 10
    assert chunks("ab<tool_call>cdefg", 4, whole_markers=True) == ["ab", "<tool_call>", "cdef", "g"]
    assert chunks("ab<tool_call>", 4) == ["ab<t", "ool_", "call", ">"]
    assert correctness.units("a<|x y|>b", ["<|x y|>"]) == ["a", "<|x y|>", "b"]


def test_judging_is_exact():
    meant = [("f", {"a": 1}), ("g", {"b": [True, None, "x"]})]
    assert judged([["f", {"a": 1}], ["g", {"b": [True, None, "x"]}]], meant) == "right"
    assert judged([["f", {"a": 1.0}], ["g", {"b": [True, None, "x"]}]], meant) == "right"
    assert judged([["g", {"b": [True, None, "x"]}]], meant) == "wrong: 1 of 2 calls"
    assert judged([["g", {"b": [1, None, "x"]}], ["f", {"a": 1}]], meant) == "wrong: 1 of 2 calls, 1 others"
    assert judged([["f", {"a": 1}]] * 3, meant[:1]) == "wrong: 1 of 1 calls, 2 others"
    assert judged([["", {"a": 1}]], meant[:1], names=False) == "right"
    assert not same({"a": 1}, {"a": True})
    assert not same({"a": 1}, {"a": 1, "b": 2})
    assert not same([1], [1, 2])


def test_a_wrong_peer_is_marked_wrong_and_a_slow_one_times_out(fakes):
    arena = Arena(TINY._replace(longest_seconds=3, rounds=2, budget_seconds=1), {"fake": fakes})
    try:
        workload = dense(SPELLINGS["hermes"], 2000, 1)
        entrants = [Entrant(name, "fake", name) for name in NAMES]
        number = len(workload.calls)
        for pieces in (None, chunks(workload.text)):
            rows = {row["reader"]: row for row in arena.contest(workload, entrants, pieces)}
            assert {name: row["verdict"] for name, row in rows.items()} == {
                "Right": "right",
                "Loses": f"wrong: {number - 1} of {number} calls",
                "Cuts": f"wrong: 0 of {number} calls, {number} others",
                "Renames": f"wrong: 0 of {number} calls, {number} others",
                "Slow": "> 3 s",
                "Raises": "failed: RuntimeError: no",
                "Leaves": "failed: its process ended: goodbye",
                **({"WholeOnly": "right"} if pieces is None else {}),
            }
            assert len(rows["Right"]["seconds"]) == 2
            assert rows["Right"]["MB/s"] > 0
            assert "MB/s" not in rows["Slow"]
        short = arena.contest(sparse(SPELLINGS["hermes"], 100), entrants[:5])  # the process was started again
        assert next(row["verdict"] for row in short) == "right"
    finally:
        arena.close()
    arena.unavailable["gone"] = "needs something"
    row, *rest = arena.contest(workload, [Entrant("x", "gone", "x"), Entrant("y", "not asked for", "y")])
    assert (row["verdict"], rest) == ("not available: needs something", [])


def test_a_busy_machine_does_not_say_of_callmark_that_it_reads_wrongly(fakes):
    scale = contests.QUICK._replace(longest_seconds=0.05)
    arena = Arena(scale, {OURS: fakes, contests.COMPILED: fakes, "fake": fakes})
    limits = {name: worker.longest_seconds for name, worker in arena.workers.items()}
    assert limits == {OURS: 20, contests.COMPILED: 20, "fake": 0.05}
    said = {name: arena._excuse(Entrant("x", name, "x"), TooSlowError()) for name in limits}
    assert said == {OURS: "> 20 s", contests.COMPILED: "> 20 s", "fake": "> 0.05 s"}


def test_readers_take_turns_while_they_have_time(monkeypatch):
    arena = Arena(TINY._replace(rounds=3, budget_seconds=1), {OURS: ours()})  # it is not started
    workload = dense(SPELLINGS["hermes"], 500)
    takes = {"short": 0.1, "long": 0.6, "too long": 1.5, "stuck": 0.1}
    turns = []

    def asked(entrant, op, key, **request):
        if op == "turn" and "least" not in request:  # else it is a second first reading
            turns.append(entrant.label)
            if entrant.label == "stuck":
                raise TooSlowError
        return {"seconds": takes[entrant.label], "calls": workload.calls, "content": workload.prose}

    monkeypatch.setattr(arena, "_ask", asked)
    rows = arena.contest(workload, [Entrant(name, OURS, name) for name in takes])
    assert turns == ["short", "long", "stuck", "long", "short", "short"]
    assert {row["reader"]: (row["verdict"], row["seconds"]) for row in rows} == {
        "short": ("right", [0.1, 0.1, 0.1]), "long": ("right", [0.6, 0.6, None]), "too long": ("right", [1.5]),
        "stuck": ("> 20 s", []),
    }  # fmt: skip
    assert "median seconds" not in rows[3]


def test_an_engine_that_compiles_while_it_runs_is_warmed_until_its_turns_agree(monkeypatch):
    arena = Arena(TINY._replace(warm_seconds=60, budget_seconds=9), {OURS: ours(), "ai-sdk": ours()})  # not started
    workload = dense(SPELLINGS["hermes"], 500)
    taken = {"ai-sdk": [], OURS: []}

    def asked(entrant, op, key, **request):
        turns = taken[entrant.peer]
        turns.append(max(0.1, 0.9 * 0.8 ** len(turns)))
        return {"seconds": turns[-1], "calls": workload.calls, "content": workload.prose}

    monkeypatch.setattr(arena, "_ask", asked)
    entrants = [Entrant("node", "ai-sdk", "hermes"), Entrant("python", OURS, "x")]
    rows = arena.contest(workload, entrants)
    assert rows[0]["seconds"] == [0.1]  # at its 11th read it was as fast as it becomes
    assert (len(taken["ai-sdk"]), len(taken[OURS])) == (17, 3)
    arena.contest(workload, entrants)  # what was compiled is there
    assert (len(taken["ai-sdk"]), len(taken[OURS])) == (20, 6)
    arena.workers["ai-sdk"].close()
    arena.contest(workload, entrants, chunks(workload.text))
    assert len(taken["ai-sdk"]) == 29
    arena.scale = arena.scale._replace(warm_seconds=0)
    arena.contest(workload._replace(name="another"), entrants)
    assert len(taken["ai-sdk"]) == 32


def test_many_streams_are_fed_in_turn_and_one_after_the_other(monkeypatch):
    class Logs:
        fed = ""

        def __init__(self, task: Task) -> None:
            pass

        def stream(self):
            return self

        def feed(self, chunk):
            Logs.fed += chunk

        def finish(self):
            Logs.fed += "."

    server = Server({"logs": Logs}, {})
    server.handle({"op": "load", "key": "k", "text": "", "options": {"streams": [["a", "b"], ["1", "2", "3"]]}})
    for together in (True, False):
        assert server.handle({"op": "many", "key": "k", "reader": "logs", "together": together})["ok"]
    assert Logs.fed == "a1b23..ab123.."
    arena = Arena(TINY, {OURS: ours()})
    answers = {(True, True): {"calls": []}, (True, None): {"seconds": 3.0}, (False, None): {"seconds": 2.0}}
    monkeypatch.setattr(arena, "_ask", lambda *words, together, judged=None: answers[together, judged])
    (rows,) = arena.many()
    assert {row["x alone"] for row in rows} == {1.5}


def test_the_next_chunks_are_as_many_as_there_is_time_for():
    server = Server(READERS, {})
    server.handle({"op": "load", "key": "k", "text": "x" * 400})
    request = {"op": "next", "key": "k", "reader": CALLMARK, "fed": 300, "pieces": [4] * 20}
    assert [len(server.handle({**request, "budget": budget})["seconds"]) for budget in (0, 60)] == [3, 16]


def test_callmark_is_told_what_its_names_say():
    server = Server(READERS, {})
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    text = '[CALL: f(a=1)] <tool_call>{"name": "f", "arguments": {"b": 2}}</tool_call>'
    bare = '{"name": "f", "arguments": {"a": "1"}}'
    found = {}
    for key in (text, bare):
        server.handle({"op": "load", "key": key, "text": key, "tools": tools, "dialect": "call"})
        for reader in READERS:
            if reader.startswith(CALLMARK):
                answers = [server.handle({"op": "read", "key": key, "reader": reader, "pieces": pieces})["calls"]
                           for pieces in (None, [len(key)])]  # fmt: skip
                assert answers[0] == answers[1]
                found[reader, key] = answers[0]
    told, other = ("f", {"a": "1"}), ("f", {"b": 2})
    assert {reader: calls for (reader, key), calls in found.items() if key == text} == {
        CALLMARK: [("f", {"a": 1}), other], OWN: [told], "callmark, tools": [told, other],
        "callmark, salvage": [told, other],
    }  # fmt: skip
    assert [reader for (reader, key), calls in found.items() if key == bare and calls] == ["callmark, salvage"]


def test_a_call_behind_a_text_made_to_be_slow_is_found_or_lost(fakes, monkeypatch):
    entrants = tuple(Entrant(name, "fake", name) for name in ("Right", "Loses", "Cuts"))
    monkeypatch.setattr(contests, "READ_BY", {"hermes": entrants})
    monkeypatch.setattr(contests, "HOSTILE", (contests.Attack("x", "x"),))
    arena = Arena(TINY._replace(hostile=(512,)), {OURS: ours(), "fake": fakes})
    try:
        rows = [row for some in arena.hostile() for row in some]
    finally:
        arena.close()
    assert {(row["reader"], row["verdict"]) for row in rows} == {
        (CALLMARK, "found"), (OWN, "found"), ("Right", "found"), ("Loses", "lost"), ("Cuts", "lost"),
    }  # fmt: skip


def test_the_speed_of_a_decoder_is_of_what_it_decodes(monkeypatch):
    decoder = Entrant("decoder", OURS, "floor")
    monkeypatch.setattr(contests, "DECODERS", (decoder,))
    arena = Arena(TINY, {OURS: ours()})
    given = []
    monkeypatch.setattr(arena, "load", lambda workload: given.append(workload) or "k")
    monkeypatch.setattr(arena, "_ask", lambda entrant, op, key, **request: {
        "seconds": 0.001, "calls": given[-1].calls, "content": None})  # fmt: skip
    spoiled = [row for some in arena.arguments() for row in some][-1]
    assert (spoiled["workload"], spoiled["calls"]) == ("arguments to repair", len(given[-1].json_texts))
    assert spoiled["MB/s"] == pytest.approx(sum(map(len, given[-1].json_texts)) / 1000)
    assert spoiled["characters"] < len(given[-1].text)


def test_every_part_has_callmark_right():
    arena = Arena(TINY, {OURS: ours()})
    versions = arena.versions()
    assert versions[OURS]["callmark"]
    try:
        for part in ("whole", "stream", "sizes", "next", "many", "batch", "arguments", "hostile", "memory"):
            rows = [row for some in getattr(arena, part)() for row in some]
            mine = [row for row in rows if row["reader"] == CALLMARK]
            assert mine, part
            verdicts = {row["verdict"] for row in rows if row["reader"] in (CALLMARK, OWN)}
            assert verdicts <= {"right", "found"}, part
            if part in ("whole", "stream"):
                assert all(row["x floor"] > 0 and row["x callmark"] == 1 for row in mine)
            if part == "arguments":
                assert all(row["x callmark"] < 1 for row in rows if row["reader"] == "floor")
            if part == "memory":
                assert all(1 < row["x text"] == pytest.approx(row["peak KB"] * 1024 / row["characters"], rel=0.2)
                           for row in mine)  # fmt: skip
    finally:
        arena.close()


@pytest.mark.parametrize("part", ["whole", "stream", "sizes", "next", "many", "batch", "hostile", "memory"])
def test_a_reader_that_cannot_read_so_has_no_row(part, monkeypatch):
    def cannot(entrant, op, key, **request):
        raise FailedError("cannot: it reads no such thing")

    arena = Arena(TINY, {OURS: ours()})  # not started
    monkeypatch.setattr(arena, "_ask", cannot)
    assert [row for rows in getattr(arena, part)() for row in rows] == []


@pytest.mark.parametrize("characters", [1, 3_000_000])
def test_texts_of_any_length_are_read_rightly(characters):
    scale = TINY.of_length(characters)
    assert scale.longest_seconds == (20 if characters == 1 else 30)
    if characters > 1:  # long prose takes seconds; what matters is that no marker is longer than it may be
        scale = scale._replace(characters=1000, dense_characters=1000)
    arena = Arena(scale._replace(streamed_characters=1000), {OURS: ours()})
    try:
        for part in ("whole", "stream"):
            rows = [row for some in getattr(arena, part)() for row in some]
            assert {row["verdict"] for row in rows if row["reader"] in (CALLMARK, OWN)} == {"right"}
    finally:
        arena.close()


def test_what_a_batch_compiles_is_not_timed():
    class Cold:
        read = 0

        def __init__(self, task: Task) -> None:
            pass

        def whole(self):
            def read(text):
                Cold.read += 1
                return sum(range(10_000_000 if Cold.read == 1 else 1))

            return read

        def answer(self, result):
            return Answer([])

    server = Server({"cold": Cold}, {})
    server.handle({"op": "load", "key": "k", "text": "", "options": {"texts": ["a", "b"]}})
    assert server.handle({"op": "batch", "key": "k", "reader": "cold"})["seconds"] < 0.01
    assert Cold.read == 4


def test_what_the_clock_takes_itself_is_not_part_of_a_batch(monkeypatch):
    class Costly(Clock):
        def answer(self, result):
            return Answer([])

    def clock():
        Clock.now += 0.001
        return Clock.now

    monkeypatch.setattr(Clock, "now", 0.0)  # and what it was, afterwards
    monkeypatch.setattr(served, "process_time", clock)
    server = Server({"costly": Costly}, {})
    server.handle({"op": "load", "key": "k", "text": "", "options": {"texts": ["a", "b", "c"]}})
    answer = server.handle({"op": "batch", "key": "k", "reader": "costly"})
    assert answer["seconds"] == pytest.approx(3 * 0.0005)


@pytest.mark.parametrize(("feared", "said"), [
    ("no text", "wrong: failed at 2 of 6 texts"),
    (messages(SPELLINGS["hermes"], 6)[1][0][-60:], "wrong: 3 of 4 calls, failed at 3 of 6 texts"),
])  # fmt: skip
def test_a_batch_goes_on_after_a_text_at_which_a_reader_fails(fakes, monkeypatch, feared, said):
    monkeypatch.setattr(contests, "READ_BY", {"hermes": (Entrant("Panics", "fake", "Panics"),)})
    fakes = fakes._replace(environment={**fakes.environment, "FEARED": feared})
    arena = Arena(TINY, {OURS: ours(), "fake": fakes})
    try:
        rows = {row["reader"]: row for some in arena.batch() for row in some}
    finally:
        arena.close()
    assert rows["Panics"]["verdict"] == said
    assert rows["Panics"]["note"] == "first: Panic: no call"
    assert rows["Panics"]["us/text"] > 0
    assert rows["Panics"]["x callmark"] > 0
    assert "note" not in rows[CALLMARK]


@pytest.mark.parametrize("part", ["next", "many", "batch"])
def test_a_wrong_peer_is_marked_wrong_in_every_part(fakes, monkeypatch, part):
    entrants = tuple(Entrant(name, "fake", name) for name in ("Right", "Cuts", "Raises", "WholeOnly"))
    monkeypatch.setattr(contests, "READ_BY", {"hermes": entrants})
    arena = Arena(TINY._replace(rounds=6), {OURS: ours(), "fake": fakes})
    try:
        rows = {row["reader"]: row for some in getattr(arena, part)() for row in some if row.get("spelling") in
                (None, "hermes")}  # fmt: skip
    finally:
        arena.close()
    assert {name: row["verdict"].split(":")[0] for name, row in rows.items() if name in NAMES} == {
        "Right": "right", "Cuts": "wrong", "Raises": "failed", **({"WholeOnly": "right"} if part == "batch" else {}),
    }  # fmt: skip
    assert rows["Right"]["x callmark"] > 0
    assert rows[CALLMARK]["x callmark"] == 1
    assert len(rows["Right"]["seconds"]) == (80 if part == "next" else 2)
    assert "x callmark" not in rows["Raises"]


def test_of_many_streams_all_are_judged(fakes, monkeypatch):
    monkeypatch.setattr(contests, "READ_BY", {"hermes": (Entrant("Misses", "fake", "Misses"),)})
    missed = sparse(SPELLINGS["hermes"], 2048, 2).text[-300:]
    fakes = fakes._replace(environment={**fakes.environment, "MISSED": missed})
    arena = Arena(TINY, {OURS: ours(), "fake": fakes})
    try:
        rows = {row["reader"]: row["verdict"] for some in arena.many() for row in some}
    finally:
        arena.close()
    assert (rows[CALLMARK], rows["Misses"]) == ("right", "wrong: 2 of 3 calls")


@pytest.mark.parametrize("part", [name for name in PARTS if name not in _ALONE])
def test_a_part_has_as_many_contests_as_its_bar_says(monkeypatch, part):
    """Texts are one character long, and nobody reads them."""
    made = {"characters": 1, "dense_characters": 1, "big_argument": 1, "streamed_characters": 1, "streamed_dense": 4}
    scale = Scale()._replace(**made, fed=(1, 2, 3, 4), hostile=(64,), memory=(64, 64), streams=1, batch=1)
    arena = Arena(scale, {OURS: ours()})
    monkeypatch.setattr(arena, "contest", lambda *words, **named: [{}] if part == "arguments" else [])
    arena.workers.clear()
    assert len(list(_contests(arena, part, is_quick=True))) == PARTS[part][2]


def test_a_stream_that_was_too_slow_is_not_tried_on_a_longer_call(fakes, monkeypatch):
    monkeypatch.setattr(contests, "READ_BY", {"hermes": (Entrant("Slow", "fake", "Slow"),)})
    arena = Arena(TINY._replace(fed=(1000, 2000), longest_seconds=2), {OURS: ours(), "fake": fakes})
    try:
        slow = [row for some in arena.next() for row in some if row["reader"] == "Slow"]
    finally:
        arena.close()
    assert [(row["verdict"], "note" in row) for row in slow] == [("> 2 s", False), ("> 2 s", True)]


def test_a_stream_that_grows_too_fast_is_not_tried_on_ten_times_the_text():
    taken = ([], [1.9], [2.1], [0.1, 0.5], [0.1, 1.0], [0.1, 6.0], [0.02, 1.7])
    forecast = Forecast(slow_seconds=5, longest_seconds=20)
    for reader, each in enumerate(taken):
        for seconds in each or [None]:
            forecast.learn(str(reader), "right", seconds)
    forecast.learn("slow", "> 20 s", None)
    assert forecast.left_out == {
        "2": "> 20 s", "4": "not run: about 10 s, as it grows", "5": "> 20 s", "6": "> 20 s", "slow": "> 20 s",
    }  # fmt: skip


def test_a_text_ten_times_as_long_as_one_that_was_not_run_takes_too_long(fakes, monkeypatch):
    monkeypatch.setattr(contests, "READ_BY", {"hermes": (Entrant("Right", "fake", "Right"),)})
    arena = Arena(TINY._replace(fed=(1000, 10_000, 100_000, 1_000_000)), {OURS: ours(), "fake": fakes})

    def taken(workload, key, fed, entrant, row):
        row |= {"spent": 0.05 if fed == 1000 else 0.8, "verdict": "right"}
        return [1e-6]

    monkeypatch.setattr(arena, "_next", taken)
    rows = [row for some in arena.next() for row in some if row["spelling"] == "hermes"]
    said = {name: [row["verdict"] for row in rows if row["reader"] == name] for name in ("Right", CALLMARK)}
    assert said == {
        "Right": ["right", "right", "not run: about 13 s, as it grows", "> 20 s"], CALLMARK: ["right"] * 4,
    }  # fmt: skip


def test_an_attack_that_growth_says_to_take_long_is_not_run_and_its_row_says_so(fakes, monkeypatch):
    monkeypatch.setattr(contests, "READ_BY", {"hermes": (Entrant("Right", "fake", "Right"),)})
    arena = Arena(TINY._replace(hostile=(1000, 2000, 4000, 8000), hostile_seconds=1), {OURS: ours(), "fake": fakes})
    seconds = {CALLMARK: [0.1, 0.2, 0.4, 0.8], OWN: [0.1, 0.09, 0.1, 0.1], "Right": [0.02, 0.2, 9, 9]}

    def attacked(entrant, key, lengths, row, good):
        place = sum(row["characters"] >= size for size in arena.scale.hostile) - 1
        row |= {"verdict": "lost", "best seconds": seconds[entrant.label][place]}

    monkeypatch.setattr(arena, "_attacked", attacked)
    monkeypatch.setattr(contests, "HOSTILE", (contests.Attack("x", "x"),))
    made = [row for some in arena.hostile() for row in some if row["way"] == "whole"]
    said = {name: [row["verdict"] for row in made if row["reader"] == name] for name in seconds}
    left_out = "not run: about 2 s, as it grows"
    assert said == {CALLMARK: ["lost"] * 4, OWN: ["lost"] * 4, "Right": ["lost", "lost", left_out]}


def test_a_text_made_to_be_slow_is_so_for_all_readers_of_its_dialect():
    """Some take `<tool_call>` for an opener with the line break alone, which models write behind it."""
    for attack in contests.HOSTILE:
        text = attack.text(2048)
        assert text.count("<tool_call>") == text.count("<tool_call>\n"), attack.name


def test_only_what_a_part_takes_is_made():
    every = [contests.COMPILED, *PEERS]
    assert _wanted({"stream", "growth"}, [], False) == every
    assert _wanted({"batch"}, [], False) == list(PEERS)
    assert _wanted({"growth", "attacks"}, [], False) == _wanted({"whole"}, [], True) == []
    assert _wanted({"whole"}, ["sgl", "vllm"], False) == ["sglang", "vllm"]


@pytest.mark.parametrize("part", [name for name in PARTS if name not in _ALONE and name != "correctness"])
def test_who_reads_in_a_part_is_known_before(part, monkeypatch):
    arena = Arena(TINY, dict.fromkeys([OURS, contests.COMPILED, *PEERS], ours()))  # none is started
    asked = set()

    def fails(entrant, op, key, **request):
        asked.add(entrant.peer)
        raise FailedError("no")

    monkeypatch.setattr(arena, "_ask", fails)
    list(getattr(arena, part)())
    assert asked - {OURS} == _read_in(part)


@pytest.mark.parametrize(("words", "said"), [
    ("growth --characters 5", ["--characters has no effect on growth"]),
    ("next arguments --characters 5 --seed 2", ["--characters has no effect on next, arguments"]),
    ("import stdio --seed 3 --rounds 2", ["--seed has no effect on import, stdio",
                                          "--rounds has no effect on import, stdio"]),
    ("arguments --peer jiter --peer vllm", ["--peer vllm has no effect on arguments"]),
    ("whole import --characters 5 --rounds 2 --peer callmark", []), ("--seed 3 --characters 5 --peer jiter", []),
])  # fmt: skip
def test_an_option_without_effect_is_told_of(monkeypatch, tmp_path, words, said):
    def ends(*_, **__):
        raise UnavailableError("enough")

    monkeypatch.setattr(command_line, "Arena", ends)
    monkeypatch.setattr(Parts, "begin", lambda self, names: None)
    done = CliRunner().invoke(main, [*words.split(), "--quick", "--out", str(tmp_path / "x")])
    assert done.stderr.splitlines() == [*said, "Error: enough"]


def test_a_size_has_more_turns_where_they_are_short_whatever_growth_they_show():
    turns: list[int] = []

    def takes(size: int, seconds: float):
        return lambda: turns.append(size) or seconds

    def best(seconds: dict[int, float]) -> list[int]:
        turns.clear()
        best_by_size({size: {"ours": takes(size, time)} for size, time in seconds.items()}, 1.0)
        return [turns.count(size) for size in seconds]

    assert best({1: 0.01, 2: 0.2, 4: 0.4}) == [5, 3, 2]
    assert best({1: 0.01, 2: 0.2, 4: 1.6}) == [5, 3, 2]
    assert best({1: 0.01, 2: 4.9, 4: 9.9}) == [5, 2, 2]
    assert best({1: 0.01, 2: 5.1, 4: 9.9}) == [5, 2, 0]


def test_a_first_run_counts_where_it_is_long():
    runs: list[int] = []
    assert timed(lambda: runs.append(sum(range(10_000_000))))() > 0.01
    assert len(runs) == 1


def test_the_collector_goes_through_what_a_turn_makes_and_not_through_what_was_there():
    class Counts:
        def __init__(self, task: Task) -> None:
            self.seen: list[int] = []

        def whole(self):
            return lambda text: before.append(len(gc.get_objects()))

    before: list[int] = []
    server = Server({"counts": Counts}, {})
    server.handle({"op": "load", "key": "k", "text": ""})
    try:
        assert server.handle({"op": "turn", "key": "k", "reader": "counts", "least": 0})["ok"]
        assert server.handle({"op": "turn", "key": "k", "reader": "counts", "least": 0})["ok"]
        assert gc.get_freeze_count() > 10_000  # still: the next turn's first collection is a short one
        assert max(before) < 2000
    finally:
        gc.unfreeze()


def test_a_run_that_is_ended_takes_its_processes_with_it_and_leaves_its_rows(tmp_path):
    out = tmp_path / "run.jsonl"
    command = [sys.executable, "-m", "benchmarks", "stream", "--no-peers", "--no-plots", "--out", out]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = monotonic() + 60
    while (not out.exists() or len(out.read_bytes().splitlines()) < 3) and monotonic() < deadline:
        sleep(0.05)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    left = [int(pid) for pid in children.read_text().split()] if children.exists() else []
    run.terminate()
    assert run.wait(20) == 143
    assert {row["part"] for row in read_lines(out)} == {"conditions", "time", "stream"}
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)


def test_what_is_not_timed_is_done_in_all_processes_at_the_same_time(fakes):
    arena = Arena(TINY, {OURS: ours(), "fake": fakes})
    both = Barrier(2, timeout=30)

    def do(entrant: Entrant) -> str:
        if entrant.label != "second":
            both.wait()
        return entrant.label

    several = [Entrant("first", OURS, "x"), Entrant("other", "fake", "x"), Entrant("second", OURS, "x")]
    assert arena.apart(several, do) == ["first", "other", "second"]
    assert arena.apart([], do) == []
    arena.close()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system decides where a process runs")
def test_all_are_timed_on_one_processor_and_what_is_not_timed_takes_all(fakes):
    arena = Arena(TINY, {OURS: ours(), "fake": fakes})

    def places(entrant: Entrant) -> set[int]:
        return os.sched_getaffinity(arena.workers[entrant.peer]._process.pid)

    try:
        arena.versions()
        several = [Entrant("first", OURS, "x"), Entrant("other", "fake", "x")]
        before = [*map(places, several)]
        assert arena.apart(several, places) == [os.sched_getaffinity(0)] * 2
        assert before == [*map(places, several)] == before[:1] * 2
        assert len(before[0]) == 1
    finally:
        arena.close()


def test_where_one_fails_at_what_is_not_timed_the_others_are_not_waited_for(fakes, monkeypatch):
    monkeypatch.setattr(contests.os, "cpu_count", lambda: 1)
    arena = Arena(TINY, {OURS: ours(), "fake": fakes})
    key = arena.load(sparse(SPELLINGS["hermes"], 1000))
    begun = Barrier(2, timeout=30)

    def do(entrant: Entrant) -> None:
        if entrant.peer == OURS:
            begun.wait()
            assert arena.workers["fake"].patience == 2  # both share one processor
            raise KeyError(entrant.label)
        arena.workers["fake"].start()
        begun.wait()
        arena._ask(entrant, "read", key)
        arena._ask(entrant, "read", key)

    began = monotonic()
    with pytest.raises(KeyError, match="ours"):
        arena.apart([Entrant("slow", "fake", "Slow"), Entrant("ours", OURS, "x")], do)
    assert monotonic() - began < TINY.longest_seconds
    assert arena.workers["fake"].patience == 1
    with pytest.raises(RuntimeError, match="fake was stopped"):
        arena.workers["fake"].start()
    arena.close()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="wants /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_takes_with_it_what_is_not_timed(tmp_path, how):
    out = tmp_path / "run.jsonl"
    command = [sys.executable, "-m", "benchmarks", "recovery", "--no-peers", "--no-plots", "--out", out]
    run = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           start_new_session=True)  # fmt: skip
    deadline = monotonic() + 60
    while (not out.exists() or len(_children(run)) < 2) and monotonic() < deadline:
        sleep(0.05)
    left = _children(run)
    complaint = _ended(run, how, group=how == signal.SIGINT)
    assert (run.returncode, complaint) == ((1, "\nAborted!\n") if how == signal.SIGINT else (143, ""))
    assert left
    deadline = monotonic() + 5  # one of them notices that the others have gone
    while any(Path(f"/proc/{pid}").exists() for pid in left) and monotonic() < deadline:
        sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)


def _ended(run: subprocess.Popen[str], how: signal.Signals, group: bool) -> str:
    """End a command as a user does (Ctrl-C: all processes of its terminal), or a host; return what it complained of."""
    if group:
        os.killpg(run.pid, how)
    else:
        run.send_signal(how)
    try:
        return run.communicate(timeout=20)[1]
    finally:
        run.kill()


def _children(run: subprocess.Popen[str]) -> list[int]:
    path = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    return [int(pid) for pid in path.read_text(encoding="utf-8").split()] if path.exists() else []


def _serving(run: subprocess.Popen[str]) -> int:
    """Return how many processes of a comparison have begun to serve: what they print goes to their errors then."""
    files = [Path(f"/proc/{pid}/fd") for pid in _children(run)]
    return sum(path.joinpath("1").resolve() == path.joinpath("2").resolve() for path in files)


@pytest.mark.skipif(not ROOT.joinpath(".git").exists() or not Path("/proc/self/task").exists(), reason="wants both")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", ["git", "turns"])
def test_a_comparison_that_is_ended_leaves_nothing_behind_and_complains_of_nothing(tmp_path, at, how):
    done, temporary, bin_ = tmp_path / "done", tmp_path / "temporary", tmp_path / "bin"
    temporary.mkdir()
    bin_.mkdir()
    waits = f"touch {done}; exec sleep 60" if at == "git" else ""
    bin_.joinpath("git").write_text(f'#!/bin/sh\n{shutil.which("git")} "$@" || exit\n{waits}\n', encoding="utf-8")
    bin_.joinpath("git").chmod(0o755)
    run = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", "compare", "HEAD", "--no-instructions"], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(temporary)},
    )  # fmt: skip
    deadline = monotonic() + 60
    while not (done.exists() if at == "git" else _serving(run) == 2 * compare.PAIRS) and monotonic() < deadline:
        sleep(0.05)
    left = _children(run)
    complaint = _ended(run, how, group=how == signal.SIGINT)
    assert (run.returncode, complaint) == ((1, "\nAborted!\n") if how == signal.SIGINT else (143, ""))
    assert left
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_before_it_has_begun_complains_of_nothing(tmp_path, how):
    done = tmp_path / "done"
    slow = f"import pathlib, time\npathlib.Path({str(done)!r}).touch()\ntime.sleep(60)\n"
    tmp_path.joinpath("click.py").write_text(slow, encoding="utf-8")  # what is imported takes its time
    run = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", "--help"], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True, env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    deadline = monotonic() + 60
    while not done.exists() and monotonic() < deadline:
        sleep(0.05)
    complaint = _ended(run, how, group=how == signal.SIGINT)
    assert (run.returncode, complaint) == ((1, "\nAborted!\n") if how == signal.SIGINT else (143, ""))


def test_what_a_host_calls_beside_reading_is_timed(tmp_path):
    out = tmp_path / "run.jsonl"
    done = CliRunner().invoke(main, ["writing", "--quick", "--no-plots", "--out", str(out)])
    assert done.exit_code == 0, done.output
    rows = [row for row in read_lines(out) if row["part"] == "writing"]
    assert len(rows) == 10
    assert all(row["us"] > 0 and row["what"] in done.output for row in rows)


def test_what_is_not_there_is_left_out_and_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))  # no node
    monkeypatch.setitem(sys.modules, "canitoolcall.fixtures", None)
    options = ["--quick", "--no-peers", "--no-plots", "--out", str(tmp_path / "run.jsonl")]
    done = CliRunner().invoke(main, ["correctness", "stdio", *options])
    assert done.exit_code == 0, done.output
    assert "left out: correctness needs canitoolcall" in done.output
    assert "left out: stdio needs node" in done.output
    made = read_lines(tmp_path / "run.jsonl")
    assert [row["left out"] for row in made if "left out" in row] == ["needs canitoolcall", "needs node"]


@pytest.mark.parametrize(("words", "said"), [
    (["compare", "no-such-revision"], "no-such-revision"), (["compare", "HEAD", "--rounds", "2"], "x>=9"),
    (["whole", "--rounds", "0"], "x>=1"), (["whole", "--peer", "nobody"], "nobody"), (["whoel"], "whoel"),
    (["compare", "--", "-f"], "object name: -f"), (["whole", "--no-peers", "--peer", "sglang"], "contradict"),
    (["whole", "--peer", "jiter"], "none of --peer jiter reads in whole"), (["growth", "--peer", "vllm"], "in growth"),
    (["memory", "--peer", "ai-sdk"], "reads in memory"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_a_line(words, said, tmp_path):
    done = CliRunner().invoke(main, words if words[0] == "compare" else [*words, "--out", str(tmp_path / "x" / "y")])
    if words[0] == "compare" and said != "x>=9" and not ROOT.joinpath(".git").exists():
        said = "not a git repository"
    assert (done.exit_code, said in done.output) in ((1, True), (2, True))
    assert isinstance(done.exception, SystemExit)
    assert not (tmp_path / "x").exists()


def test_the_exit_code_says_whether_callmark_was_wrong(monkeypatch, tmp_path):
    command = ["--quick", "--no-peers", "--rounds", "1", "--no-plots", "--out", str(tmp_path / "x")]
    monkeypatch.setattr(contests, "judged", lambda calls, meant: "wrong: 1 of 2 calls")
    done = CliRunner().invoke(main, ["batch", *command])
    assert (done.exit_code, "WRONG:\n  batch, 200 short texts, callmark, wrong" in done.output) == (1, True)
    monkeypatch.setattr(Parts, "imports", lambda self: self.wrong.append("it was lost"))
    done = CliRunner().invoke(main, ["import", *command])
    assert (done.exit_code, "WRONG:\n  it was lost" in done.output) == (1, True)
    for verdict in ("wrong: 1 of 2 calls", "lost", "failed: no", "> 20 s"):
        assert [_is_wrong({"reader": reader, "verdict": verdict}) for reader in (OWN, "sglang")] == [True, False]
    assert not any(_is_wrong({"reader": CALLMARK, "verdict": verdict}) for verdict in ("right", "found"))
    for share, wrong in ((None, False), (1.0, False), (0.98, True), (0.0, True)):  # of streams that equal the whole
        for column in ("stream share", "splits share"):
            assert _is_wrong({"reader": "callmark, salvage", column: share}) is wrong
    assert not _is_wrong({"reader": contests.COMPILED, "verdict": "not available: needs a C compiler"})


@pytest.mark.parametrize("command", ["plot", "readme"])
@pytest.mark.parametrize("text", ["", "nonsense\n", '{"part": "whole"}\n', "[]\n", "3\n"])
def test_a_file_without_results_is_refused_in_a_line(tmp_path, command, text):
    path = tmp_path / "run.jsonl"
    path.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(main, [command, str(path)])
    assert (done.exit_code, "holds no results" in done.output) == (1, True)


@pytest.mark.parametrize("command", ["plot", "readme"])
@pytest.mark.parametrize("damage", [{"part": "conditions"}, {"part": "next"}, {"part": "whole", "x floor": "a"}])
def test_a_damaged_file_is_refused_in_a_line_and_an_unfinished_row_left_out(tmp_path, command, damage):
    path = tmp_path / "run.jsonl"
    Lines(path).add([rows()[0], rows()[1]])
    path.write_bytes(path.read_bytes() + b'{"part": "wh')  # as a full disk leaves it
    assert len(read_lines(path)) == 2
    path.write_bytes(json.dumps(damage | {"reader": CALLMARK}).encode() + b"\n" + path.read_bytes())
    done = CliRunner().invoke(main, [command, str(path)])
    assert isinstance(done.exception, SystemExit | None)
    assert (done.exit_code, "is damaged" in done.output) in ((0, False), (1, True))


def test_results_that_cannot_be_written_are_refused_in_a_line(tmp_path):
    tmp_path.joinpath("file").touch()
    for out in (tmp_path, tmp_path / "file" / "run.jsonl"):
        done = CliRunner().invoke(main, ["import", "--quick", "--out", str(out)])
        assert (done.exit_code, "cannot be written" in done.output) == (2, True)


def test_plots_that_cannot_be_written_are_told_in_a_line(tmp_path):
    path = tmp_path / "run.jsonl"
    Lines(path).add(rows())
    tmp_path.joinpath("run-memory.png").mkdir()
    done = CliRunner().invoke(main, ["plot", str(path)])
    assert isinstance(done.exception, SystemExit)
    assert (done.exit_code, "Error: plots cannot be written: " in done.output) == (1, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device here")
def test_results_may_go_nowhere_and_a_full_disk_is_told_in_a_line(monkeypatch):
    monkeypatch.setattr(Parts, "imports", lambda self: None)
    done = CliRunner().invoke(main, ["import", "--quick", "--out", "/dev/null"])
    assert (done.exit_code, "rows: /dev/null" in done.output) == (0, True)
    done = CliRunner().invoke(main, ["import", "--quick", "--out", "/dev/full"])
    assert (done.exit_code, "Error: /dev/full cannot be written: " in done.output) == (1, True)


def test_two_runs_never_mix_their_rows(tmp_path):
    one = Lines(tmp_path / "run.jsonl")
    one.add([{"run": 1}])
    other = Lines(tmp_path / "run.jsonl")
    other.add([{"run": 23}])
    with pytest.raises(OSError, match="another run"):
        one.add([{"run": 1}])
    other.add([{"run": 23}])
    assert read_lines(other.path) == [{"run": 23}] * 2


@pytest.mark.parametrize(("stderr", "stdout", "said"), [
    ("error: subprocess-exited-with-error\nx.py:1: error: no stubs\nerror: it failed", "", "x.py:1: error: no stubs"),
    ("WARNING: Retrying after 'NewConnectionError'\nERROR: no x==1 (from versions: none)", "", "no connection to its"),
    ("WARNING: x is old\nERROR: no x==1 (from versions: none)", "", "ERROR: no x==1 (from versions"),
    ("npm error code ENOTFOUND\nnpm error request to https://x failed", "", "no connection to its registry"),
    ("/x/python: No module named pip\n", "", "/x/python: No module named pip"),
    ("", "It was not created, as ensurepip is not\navailable.\n\n    apt install x", "ensurepip is not available. apt"),
    ("", "", "failed without a word"),
])  # fmt: skip
def test_what_a_program_says_of_its_failure_is_its_cause(tmp_path, stderr, stdout, said):
    tmp_path.joinpath("maker.py").write_text(
        f"import sys; sys.stdout.write({stdout!r}); sys.stderr.write({stderr!r}); sys.exit(1)", encoding="utf-8"
    )
    with pytest.raises(UnavailableError) as told:
        environments._run([sys.executable, "-m", "maker"], PYTHONPATH=str(tmp_path))
    assert str(told.value).startswith("maker: ")
    assert said in str(told.value)


def test_a_log_says_what_is_made_and_what_could_not_be(monkeypatch, tmp_path):
    def unmade(peer, tell):
        tell(f"making {peer.name}")
        raise UnavailableError("no network")

    monkeypatch.setattr(contests, "launch", unmade)
    done = CliRunner().invoke(main, ["batch", "--quick", "--peer", "forge", "--no-plots", "--out", str(tmp_path / "x")])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("making forge-guardrails\n")
    assert "forge-guardrails (no network)" in done.output


def test_environments_are_made_at_the_same_time(monkeypatch):
    both = Barrier(2)

    def slow(peer, tell):
        both.wait(20)
        return ours()

    monkeypatch.setattr(contests, "launch", slow)
    arena = Arena(Scale(), wanted=["sglang", "jiter"])
    assert (list(arena.workers), arena.unavailable) == ([OURS, "sglang", "jiter"], {})


def test_a_run_that_is_ended_ends_what_makes_its_environments(monkeypatch, tmp_path):
    """Also what the maker has started (pip builds in a process of its own), and what lies in its temporary folder."""
    temporary, started = tmp_path / "temporary", tmp_path / "started"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    tmp_path.joinpath("maker.py").write_text(
        "import pathlib, subprocess, sys, tempfile, time\n"
        "tempfile.mkdtemp()\n"
        "build = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(started)!r} + '.part').write_text(str(build.pid))\n"
        f"pathlib.Path({str(started)!r} + '.part').rename({str(started)!r})\n"
        "time.sleep(60)", encoding="utf-8",
    )  # fmt: skip

    def ended(peer, tell):
        if peer.name != "jiter":
            environments._done([sys.executable, "-m", "maker"], PYTHONPATH=str(tmp_path))  # whose end is not the last
            return environments._run([sys.executable, "-m", "maker"], PYTHONPATH=str(tmp_path))
        deadline = monotonic() + 20
        while not started.exists() and monotonic() < deadline:
            sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(contests, "launch", ended)
    start = monotonic()
    with pytest.raises(KeyboardInterrupt):
        Arena(Scale(), wanted=["jiter", "sglang"])
    assert monotonic() - start < 20
    assert not environments._RUNNING
    assert list(temporary.iterdir()) == []
    status = Path(f"/proc/{started.read_text(encoding='utf-8')}/status")
    for _ in range(100):  # it is ended at once, but someone must take notice
        if not status.exists() or "State:\tZ" in status.read_text(encoding="utf-8"):
            break
        sleep(0.05)
    else:
        pytest.fail("what the maker started goes on")


def test_what_cannot_be_made_says_why(monkeypatch, tmp_path):
    monkeypatch.setenv("CALLMARK_BENCHMARKS_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: "no-such-compiler -pthread")
    with pytest.raises(UnavailableError, match="needs a C compiler"):
        environments.compiled()


def test_an_environment_is_made_once_whoever_else_makes_it(monkeypatch, tmp_path):
    made = []

    def install(folder, peer, interpreter):
        assert list(folder.iterdir()) == []
        made.append(folder)
        mine = folder / f"begun {len(made)}"
        mine.touch()
        if len(made) == 1:  # another run begins meanwhile, and is done first
            environments._MAKING.clear()
            launch(PEERS["jiter"])
        assert mine.exists()

    monkeypatch.setenv("CALLMARK_BENCHMARKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "_install_python", install)
    first = launch(PEERS["jiter"])
    assert launch(PEERS["jiter"]) == first
    assert len(made) == 2
    assert launch(PEERS["jiter"]._replace(pins=("jiter==0",))) != first
    assert len(made) == 3
    assert len(list(tmp_path.joinpath("cache").iterdir())) == 2
    assert all(any(path.iterdir()) for path in tmp_path.joinpath("cache").iterdir())


def test_an_environment_that_cannot_take_its_place_is_none(monkeypatch, tmp_path):
    def fails(*words):
        raise PermissionError("not here")

    monkeypatch.setenv("CALLMARK_BENCHMARKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "_install_python", lambda folder, peer, interpreter: None)
    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(UnavailableError, match="moved to its place: not here"):
        launch(PEERS["jiter"])
    assert list(tmp_path.joinpath("cache").iterdir()) == []


def test_of_what_could_not_be_made_nothing_is_left(monkeypatch, tmp_path):
    def fails(command, **named):
        for folder in tmp_path.joinpath("cache").iterdir():
            folder.joinpath("half").touch()
        raise UnavailableError("no network")

    monkeypatch.setenv("CALLMARK_BENCHMARKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "_run", fails)
    tmp_path.joinpath("cache").mkdir()
    for make in (lambda: launch(PEERS["jiter"]), environments.compiled):
        with pytest.raises(UnavailableError, match="no network"):
            make()
        assert list(tmp_path.joinpath("cache").iterdir()) == []


def test_in_an_environment_without_pip_uv_installs(monkeypatch, tmp_path):
    assert environments._installer()[:3] == [sys.executable, "-m", "pip"]
    monkeypatch.setattr(environments, "find_spec", lambda name: None)
    assert environments._installer()[1:3] == ["pip", "install"]  # `dev` holds it
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="needs pip or uv"):
        environments._installer()


def test_a_comparison_without_git_and_a_server_without_its_extra_end_with_a_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(main, ["compare", "HEAD"])
    assert (done.exit_code, "needs git" in done.output) == (1, True)
    assert load.served("callmark serves on http://127.0.0.1:33157\n") == 33157
    for said, told in (("Error: serve wants the extra `server`\n", "the extra `server`$"), ("", "without a word")):
        with pytest.raises(SystemExit, match=told):
            load.served(said)


def test_the_memory_of_a_server_is_in_megabytes(monkeypatch, tmp_path):
    status = tmp_path / "status"
    status.write_text("VmHWM:\t  99999 kB\nVmRSS:\t   78125 kB\n", encoding="utf-8")
    monkeypatch.setattr(load, "Path", lambda path: {"/proc/1/status": status}[path])
    assert load.memory(1) == 80


def test_a_worker_says_what_went_wrong(fakes):
    worker = Worker("fake", fakes, longest_seconds=20)
    worker.load("k", text="x" * 2000)
    try:
        assert worker.ask("hello")["versions"]["fakes"] == "1"
        assert os.getpgid(worker._process.pid) != os.getpgid(0)  # Ctrl-C is for us, who end it
        with pytest.raises(TooSlowError, match=r"0\.2 s"):
            worker.ask("turn", key="k", reader="Slow", limit=0.2)
        assert worker._process is not None  # it is started again already
        with pytest.raises(FailedError, match="KeyError"):
            worker.ask("turn", key="k", reader="Nobody")
        assert worker.ask("read", key="k", reader="Right")["calls"] == []
    finally:
        worker.close()


TAKES = """
import resource
from benchmarks.peers.worker import Answer, Server, serve

class Takes:
    def __init__(self, task):
        pass
    def whole(self):
        return self.read
    def read(self, text):
        bytearray(4_000_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        bytearray(4_000_000)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    def answer(self, faults):
        return Answer([("pages", faults)])

serve(Server({"takes": Takes}, {}))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others have rules of their own")
def test_a_worker_keeps_the_memory_that_a_big_text_has_taken(tmp_path):
    program = tmp_path / "takes.py"
    program.write_text(TAKES, encoding="utf-8")
    worker = Worker("takes", Launch((sys.executable, str(program)), {"PYTHONPATH": str(ROOT)}))
    worker.load("k", text="x")
    try:
        [[_, pages]] = worker.ask("read", key="k", reader="takes")["calls"]
    finally:
        worker.close()
    assert pages < 100  # of a thousand, where they are mapped anew


def test_a_vocabulary_holds_the_marker_tokens_of_its_own_models_and_no_others():
    """vLLM's parsers tell models apart by their vocabularies, and look for all special tokens in every text."""
    for name, markers in MARKERS.items():
        tokenizer = Tokenizer(markers)
        others = {marker for some in MARKERS.values() for marker in some} - set(markers)
        assert not others & {*tokenizer.get_vocab(), *tokenizer.all_special_tokens}, name
        assert len(tokenizer.all_special_tokens) == len(tokenizer.all_special_ids) < 30
        text = "so " + "".join(f"{marker} x{place}" for place, marker in enumerate(markers)) + "</no_marker>"
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert ids == tokenizer.encode(text)
        assert [number for number in ids if number in tokenizer.vocabulary.values()] == [
            tokenizer.convert_tokens_to_ids(marker) for marker in markers
        ]
    assert "[ARGS]" not in MARKERS["mistral (before v11)"]
    assert {peer.reader for *_, peers in correctness.FORMATS for peer in peers if peer.peer == "vllm"} <= set(MARKERS)
    assert {peer.reader for some in READ_BY.values() for peer in some if peer.peer == "vllm"} <= set(MARKERS)


_LIST = '[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}]'
_FENCED = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
    '```json\n{"a": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
)
_ENVELOPED = 'So: <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


@pytest.mark.parts  # their environments are made, which takes a minute
@pytest.mark.parametrize(("peer", "reader", "text", "pieces"), [
    ("sglang", "qwen25", _ENVELOPED, None), ("sglang", "hermes", _ENVELOPED, [4, len(_ENVELOPED) - 4]),
    ("sglang", "deepseekv3", _FENCED, [len(_FENCED)]),
    ("vllm", "mistral (before v11)", _LIST, None), ("vllm", "mistral", '[TOOL_CALLS]f[ARGS]{"a": 1}', None),
    ("vllm", "hermes", _ENVELOPED, [len(_ENVELOPED)]),
    ("ai-sdk", "hermes", _ENVELOPED, None), ("ai-sdk", "hermes", _ENVELOPED, [4, len(_ENVELOPED) - 4]),
    ("ai-sdk", "hermes", '{"name": "f", "arguments": {"a": 1}}', None),  # its middleware looks again
])  # fmt: skip
def test_a_peer_that_is_there_is_used_as_its_server_does(peer, reader, text, pieces):
    worker = Worker(peer, launch(PEERS[peer]))
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    worker.load("k", text=text, tools=[{"type": "function", "function": tool}])
    try:
        assert worker.ask("read", key="k", reader=reader, pieces=pieces)["calls"] == [["f", {"a": 1}]]
    finally:
        worker.close()


def test_deltas_are_joined_as_clients_do():
    deltas = [(0, "f", ""), (0, None, '{"a"'), (1, "g", None), (0, None, ": 1}"), (1, None, "{")]
    assert merged(iter(deltas)) == [("f", {"a": 1}), ("g", "{")]
    deep = "[" * 100_000 + "]" * 100_000  # arguments that a peer has sent: that `json` cannot follow is not its failure
    assert merged(iter([(0, "f", deep)])) == [("f", deep)]


def test_an_answer_that_is_nested_too_deeply_can_still_be_sent():
    class Deep:
        def __init__(self, task: Task) -> None:
            self.task = task

        def whole(self):
            return json.loads

        def answer(self, result):
            return Answer([("f", result)])

    server = Server({"deep": Deep}, {})
    server.handle({"op": "load", "key": "k", "text": "[" * 500 + "]" * 500})
    assert server.handle({"op": "read", "key": "k", "reader": "deep"})["calls"] == [("f", "nested too deeply")]
    assert not server.handle({"op": "nothing"})["ok"]


def test_a_short_time_is_more_than_nothing_in_a_table():
    shown = [0.00042, 0.0123, 0.126, 1.234, 12.34, 123.4, float("nan"), 0.0]
    made = table("times", ("seconds",), [{"seconds": value} for value in shown])
    assert [line.strip() for line in made.splitlines()[3:]] == [
        "0.00042", "0.012", "0.13", "1.23", "12.3", "123", "", "0",
    ]  # fmt: skip


def test_ratios_are_of_turns_in_the_same_round():
    assert ratios([2.0, 8.0, None], [1.0, 2.0, 4.0]) == [2.0, 4.0]
    assert ratios([3.0], [1.0, 2.0]) == [2.0]
    assert exponent([1, 10, 100], [1, 100, 10_000]) == pytest.approx(2)
    assert math.isnan(exponent([1], [1]))


def test_figures_are_of_the_median_turn_and_ratios_of_its_own_floor():
    for count, floor, chunk in ((None, "floor", 1000), (1000, "emit", 2000)):
        made = [{"reader": reader, "seconds": seconds, "characters": 8000, "chunks": count, "verdict": "right"}
                for reader, seconds in ((CALLMARK, [0.001, 0.002, 0.006]), (floor, [0.0005, 0.001, 0.002]),
                                        ("empty", [0.00025, 0.0005, 0.0015]))]  # fmt: skip
        Arena(TINY)._conclude(made[0], made)
        assert (made[0]["x floor, least"], made[0]["x floor, most"]) == pytest.approx((2, 3))
        assert made[0]["spread"] == pytest.approx(0.25)  # 2, 2 and 3: the quartiles are 2 and 2.5
        assert made[0]["MB/s"] == pytest.approx(4)
        assert made[0]["ns/chunk"] == pytest.approx(chunk)
        assert made[0]["x floor"] == pytest.approx(2)
        assert made[0].get("x empty") == (pytest.approx(4) if count else None)


@pytest.mark.parametrize(("part", "answers", "column", "figure"), [
    ("next", {"next": {"seconds": [1e-6, 2e-6, 9e-6], "spent": 0.1}}, "us/chunk", 2),
    ("many", {"many": {"seconds": 0.001}}, "ns/chunk",
     1e6 / sum(len(tokens(sparse(SPELLINGS["hermes"], 2048, seed).text)) for seed in range(TINY.streams))),
    ("batch", {"batch": {"seconds": 0.006, "failed": []}}, "us/text", 1000),
    ("hostile", {"read": {"seconds": 0.004}, "turn": {"seconds": 0.001}}, "best seconds", 0.001),
])  # fmt: skip
def test_figures_are_of_what_a_reader_answers(monkeypatch, part, answers, column, figure):
    arena = Arena(TINY)
    monkeypatch.setattr(arena, "_ask", lambda entrant, op, key, **request: {"calls": [], **answers[op]})
    made = [row for some in getattr(arena, part)() for row in some if row["reader"] == CALLMARK]
    assert made
    assert [row[column] for row in made] == pytest.approx([figure] * len(made))


class Clock:
    """A clock that only what is timed moves: half a millisecond for a whole text, or for a stream's end."""

    def __init__(self, *_):
        pass

    now = 0.0

    def __call__(self, *_):
        Clock.now += 0.0005

    def whole(self):
        return self

    def stream(self):
        return self

    def feed(self, chunk):
        pass

    finish = __call__


def test_a_turn_lasts_as_long_as_one_read_of_those_that_fill_it(monkeypatch):
    monkeypatch.setattr(served, "process_time", lambda: Clock.now)
    server = Server({"clock": Clock}, {})
    server.op_load({"key": "k", "text": "abc"})
    for pieces in (None, [1, 2]):
        answer = server.op_turn({"key": "k", "reader": "clock", "pieces": pieces, "least": 0.002})
        assert answer == {"seconds": pytest.approx(0.0005), "repeats": 4}
    monkeypatch.setattr(measure, "thread_time", lambda: Clock.now)
    assert timed(Clock())() == measure.stream(Clock, ["a"])() == pytest.approx(0.0005)
    assert timed(Clock(), Clock())() == measure.stream(Clock, ["a"], ["b"], ["c"])() == pytest.approx(0.0005)


@pytest.mark.parametrize(("first", "later", "seconds"), [
    (0.0025, 0.0015, 0.0015),
    (0.0019, 0.0015, 0.0015),
    (0.02, 0.015, 0.015),
    (0.04, 0.039, 0.04),  # what the first fills is little of a long one
])  # fmt: skip
def test_what_the_first_read_of_a_turn_fills_is_no_cost_of_a_text(monkeypatch, first, later, seconds):
    costs = iter([first])

    class Cold:
        def __init__(self, task: Task) -> None:
            pass

        def whole(self):
            return self.read

        def read(self, text):
            Clock.now += next(costs, later)

    monkeypatch.setattr(Clock, "now", 0.0)
    monkeypatch.setattr(served, "process_time", lambda: Clock.now)
    server = Server({"cold": Cold}, {})
    server.op_load({"key": "k", "text": "abc"})
    assert server.op_turn({"key": "k", "reader": "cold"})["seconds"] == pytest.approx(seconds)


def test_of_turns_at_a_size_the_best_counts_and_late_growth_is_that_of_the_last_sizes():
    turns = iter([3.0, 1.0, 2.0])
    assert best_by_size({10: {"a": lambda: next(turns)}}, 14.0) == {"a": {10: 1.0}}
    assert measure.last_exponent([1, 16, 256], [1, 1, 16]) == pytest.approx(1)


def test_the_parts_that_are_ours_tell_times_of_a_chunk(monkeypatch):
    monkeypatch.setattr(parts, "best_by_size", lambda made, *_: {
        name: {size: size * 1e-9 for size in made} for name in ("ours", "floor", "emit")})  # fmt: skip
    own = Parts(parts.quick(0), lambda text: None)
    row = own._attacked(ATTACKS[0])
    assert [row["whole ns"], row["stream ns"]] == pytest.approx([4, 4])
    assert own._chunked("prose", "a" * 1000)["seconds"][16] == pytest.approx(16e-9 * 16 / 1000)


def test_a_goal_for_a_call_is_of_one_call():
    row = {"part": "whole", "workload": "dense", "spelling": "key=value", "reader": CALLMARK, "median seconds": 0.01,
           "calls": 100, "x floor": 2.0, "verdict": "right"}  # fmt: skip
    assert {one["goal"]: one["measured"] for one in figures.targets([row])}[
        "whole, dense, key=value: us a call"
    ] == pytest.approx(100)


def test_a_comparison_lets_each_side_begin_in_turn_and_counts_what_one_read_takes(monkeypatch):
    begun = []

    class Told(Laid):
        def ask(self, op, **request):
            begun.extend([self.answer["content"]] * (op == "turn"))
            return self.answer

    pair = {name: Told(1.0, name) for name in ("old", "new")}
    compare._in_turns([pair], sparse(SPELLINGS["call"], 100, 0), None, 9)
    assert begun[:4] == ["new", "old", "old", "new"]
    told = {"0)": 1000, "150)": 1000 + 150 * 7}
    monkeypatch.setattr(compare, "_run", lambda tool, source, program: subprocess.CompletedProcess(
        [], 0, "", f"Collected : {told[program.split()[-1]]}"))  # fmt: skip
    assert compare._valgrind(Path(), "call", "dense", "whole", 0) == 7


def row_of(reader: str, verdict: str, times: float, part: str = "whole", workload: str = "dense", **more) -> dict:
    return {"part": part, "workload": workload, "spelling": "hermes", "reader": reader, "verdict": verdict,
            "MB/s": 8.0, "x callmark": times, "x floor": 6.0 * times, "x floor, least": 5.0, "x floor, most": 7.0,
            "spread": 0.1,
            "ns/chunk": 400.0, "median seconds": 0.01 * times, "calls": 100, "x callmark, least": times,
            "x callmark, most": times,
            "chunk": None if part == "whole" else "4", "seconds": [0.01], "characters": 80_000, **more}  # fmt: skip


def rows() -> list[dict]:
    stream = {"part": "stream", "workload": "argument of 1 KB", "spread": 0.3}
    return [
        {"part": "conditions", "commit": "abc", "python": "CPython 3", "machine": "one", "load": [0.5], "quick": False,
         "command": "python -m benchmarks whole --seed 3"},
        row_of(CALLMARK, "right", 1), row_of("floor", "floor", 0.1), row_of("sglang hermes", "right", 5),
        row_of("vllm hermes", "wrong: 1 of 2 calls", 0.5), row_of("agent-tool-parser (Rust)", "right", 2),
        row_of(CALLMARK, "right", 1, **stream), row_of("sglang hermes", "right", 250, **stream),
        {**row_of("ai-sdk hermes (node)", "> 20 s", 1, **stream), "x callmark": None, "seconds": []},
        {**row_of("vllm hermes", "not run: about 13 s, as it grows", 1, **stream), "x callmark": None, "seconds": []},
        {"part": "recovery", "dialect": "call", "found": "9/10"},
        {"part": "next", "spelling": "call", "reader": CALLMARK, "already": 1000, "us/chunk": 1.0, "verdict": ""},
        {"part": "next", "spelling": "call", "reader": CALLMARK, "already": 10_000, "us/chunk": 1.0, "verdict": ""},
        {"part": "memory", "way": "whole", "reader": CALLMARK, "x text": 2.0, "characters": 2000, "verdict": "right"},
        row_of(CALLMARK, "found", 1, part="hostile", way="whole"),
        row_of("vllm hermes", "lost", 1, part="hostile", way="stream"),
        row_of(CALLMARK, "right", 1, part="sizes") | {"chunk": "16"},
        {"part": "correctness", "format": "hermes", "reader": "callmark", "calls": "3/3", "stream": "", "splits": "",
         "clean": "3/3", "calls share": 1.0, "stream share": None, "splits share": None, "clean share": 0.5},
    ]  # fmt: skip


def test_a_wrong_peer_is_never_the_fastest():
    whole = figures.of(rows(), "whole")
    assert figures.fastest(whole, python=True)["reader"] == "sglang hermes"
    assert figures.fastest(whole, python=False)["reader"] == "agent-tool-parser (Rust)"
    goals = {row["goal"]: row for row in figures.targets(rows())}
    assert (
        goals["whole, dense, hermes: times as fast"] | {"measured": 5} == goals["whole, dense, hermes: times as fast"]
    )
    assert goals["whole, dense, hermes: times as fast"][""] == "ok"
    assert goals["whole, dense, hermes: x floor"][""] == "MISS"
    assert goals["stream, argument of 1 KB, hermes: times as fast"][""] == "MISS"
    assert goals["recovery: share found"]["measured"] == 0.9


def test_the_compiled_engine_is_compared_with_peers_too():
    stream = {"part": "stream", "workload": "argument of 1 KB"}
    compiled = row_of(contests.COMPILED, "right", 0.5, **stream)
    goals = {row["goal"]: row for row in figures.targets([*rows(), compiled])}
    told = goals["stream, compiled, argument of 1 KB, hermes: times as fast"]
    assert (told["measured"], told["asked"], told[""]) == (500, ">= 300", "ok")
    assert goals["stream, argument of 1 KB, hermes: times as fast"]["measured"] == 250
    stopped = [*rows(), compiled | {"x callmark": None}]
    goals = {row["goal"]: row for row in figures.targets(stopped)}
    assert goals["stream, compiled, argument of 1 KB, hermes: times as fast"][""] == ""
    lines = figures.readme([*rows(), compiled]).splitlines()
    place = lines.index("| callmark, compiled | 0.50 |")
    assert lines[place + 1] == "| sglang hermes | 250 |"  # above the peers


def test_where_callmark_is_wrong_it_has_no_speed_there():
    wrong = [row | {"verdict": "wrong: 1 of 2 calls"} if row.get("part") == "whole" and row["reader"] == CALLMARK
             else row for row in rows()]  # fmt: skip
    goals = [row["goal"] for row in figures.targets(wrong)]
    assert goals == [row["goal"] for row in figures.targets(rows()) if not row["goal"].startswith("whole, ")]
    assert figures.readme(rows()).count("| dense | `hermes` | 8.0 | 6.0 |") == 1
    assert figures.readme(wrong).count("| dense | `hermes` | *8.0* | *6.0* |") == 1


def test_the_readme_block_is_made_from_results(tmp_path, monkeypatch):
    file = Lines(tmp_path / "deep" / "run.jsonl")
    file.add([*rows(), {"part": "recovery", "found": "1/1", "": "ok"}])
    assert read_lines(file.path)[-1]["verdict"] == "ok"
    text = figures.readme(read_lines(file.path))
    assert "| vllm hermes | ≈ 13 s |" in text
    assert "`python -m benchmarks whole --seed 3` at commit abc, CPython 3, one, load 0.5" in text
    assert "ratio to the floor are 20% of it apart in half of the rows, and 30% at most." in text
    assert "| vllm hermes | *0.50* |" in text
    assert "| sglang hermes | 5.0 |" in text
    alone = figures.readme([row for row in rows() if row["part"] == "conditions"])  # of other parts there is no table
    assert "|" not in alone
    assert "*italic*" not in alone
    page = tmp_path / "README.md"
    page.write_text("a <!-- figures -->old<!-- end of figures --> b", encoding="utf-8")
    figures.write(text, page)
    assert page.read_text(encoding="utf-8") == f"a <!-- figures -->\n{text}\n<!-- end of figures --> b"
    page.write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="0 places"):
        figures.write(text, page)
    monkeypatch.setattr(figures, "write", partial(figures.write, path=page))
    done = CliRunner().invoke(main, ["readme", str(file.path), "--write"])
    assert (done.exit_code, "Error: README.md has 0 places for figures" in done.output) == (1, True)


def test_plots_are_drawn_of_what_there_is(tmp_path, monkeypatch):
    from benchmarks.plots import _STYLE, draw

    monkeypatch.setitem(_STYLE, "savefig.dpi", 40)
    drawn = draw(rows(), tmp_path / "run")
    assert [path.name for path in drawn] == [f"run-{name}.png" for name in (
        "whole", "stream", "chunk-lengths", "next-chunk", "attacks", "memory", "correctness")]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 1500 for path in drawn)
    assert draw(rows()[:1], tmp_path / "none") == []
    tmp_path.joinpath("run-notes.png").touch()
    draw([one for one in rows() if one["part"] != "whole"], tmp_path / "run")  # what is not in new results goes
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {path.name for path in drawn} - {"run-whole.png"} | {"run-notes.png"}


def test_a_plot_says_how_its_rows_were_taken_and_of_how_many_texts(monkeypatch):
    from benchmarks import plots

    about = rows()[0] | {"seed": 3}
    assert plots._taken(about) == "commit abc, seed 3, CPython 3, one"
    assert plots._taken(about | {"quick": True}) == "commit abc, seed 3, --quick, CPython 3, one"
    score = rows()[-1] | {"splits": "1/2", "splits share": 0.5}
    figure = plots.correctness([about, score])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["hermes, n = 3"]
    assert [[text.get_text() for text in axes.texts] for axes in figure.axes] == [["100"], [], ["50\nof 2"], ["50"]]
    plots.plt.close(figure)


def test_the_plots_of_two_results_are_other_files_and_none_is_an_error(monkeypatch, tmp_path):
    from benchmarks.plots import _STYLE

    monkeypatch.setitem(_STYLE, "savefig.dpi", 40)
    for name in ("run.1", "run.2.jsonl"):
        Lines(tmp_path / name).add([rows()[0], rows()[13]])
        done = CliRunner().invoke(main, ["plot", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    assert {path.name for path in tmp_path.glob("*.png")} == {"run.1-memory.png", "run.2-memory.png"}
    Lines(tmp_path / "run").add(rows()[:1])
    done = CliRunner().invoke(main, ["plot", str(tmp_path / "run")])
    assert (done.exit_code, "holds nothing to draw" in done.output) == (1, True)


def test_recorded_outputs_are_scored():
    assert [one.id for one in DEFAULT_STRATEGIES] == list(correctness.STRATEGIES)
    arena = Arena(TINY, {OURS: ours()})
    arena.versions()
    try:
        made = [row for some in correctness.correctness(arena, every=20) for row in some]
    finally:
        arena.close()
    hermes = next(row for row in made if row["format"] == "hermes (Qwen 3)" and row["reader"] == "callmark")
    assert hermes["fixtures"] >= 2
    assert hermes["stream"] == hermes["splits"] == f"{hermes['fixtures']}/{hermes['fixtures']}"
    assert {row["reader"] for row in made} == {
        "callmark", "callmark, own dialect", "callmark, salvage", "callmark, no tools",
    }  # fmt: skip
    assert correctness.visible("thinking</think>\nso", "thinking") == "\nso"
    assert correctness.visible("so", None) == correctness.visible("so", "x") == "so"


@pytest.mark.parametrize(("reads", "scored"), [
    (lambda pieces, meant: meant, (1, 1, 1, 1)),
    (lambda pieces, meant: meant[1:], (0, 1, 1, 1)),
    (lambda pieces, meant: meant if pieces is None else [], (1, 0, 1, 1)),
    (lambda pieces, meant: meant if pieces is None or len(pieces) == 1 else [], (1, 0, 0, 1)),
    (lambda pieces, meant: [("f", "<tool_call>")], (0, 1, 1, 0)),
    (lambda pieces, meant: meant if pieces else 1 / 0, (0, 0, 1, 1)),
])  # fmt: skip
def test_each_measure_of_recorded_outputs_counts_what_it_says(reads, scored):
    fixture = next(one for one in load_fixtures() if one.family == "qwen3-hermes" and one.expected.tool_calls)
    meant = [(call.name, dict(call.arguments)) for call in fixture.expected.tool_calls]

    class Reader:
        def load(self, key, **task): ...

        def ask(self, op, *, pieces, limit, **request):
            limits.append(limit)
            try:
                return {"calls": reads(pieces, meant), "content": ""}
            except ZeroDivisionError as error:
                raise FailedError(str(error)) from None

    arena = Arena(TINY, {OURS: ours()})
    arena.workers = {"x": Reader(), OURS: Reader()}
    for peer, limit in (("x", 5), (OURS, None)):  # what ours has is its process's own
        limits: list[float | None] = []
        score = correctness._Score("hermes (Qwen 3)", "hermes", "x")
        score.take(arena, Entrant("x", peer, "x"), fixture, load_families()[fixture.family])
        assert tuple(score.right.values()) == scored
        assert set(limits) == {limit}


def test_no_text_is_clean_of_markers_where_none_is_given():
    class Reader:
        def load(self, key, **task): ...

        def ask(self, op, *, pieces, **request):
            raise FailedError("no" if pieces is None else "cannot: it has no streaming")

    fixture = next(one for one in load_fixtures() if one.family == "mistral" and one.expected)
    arena = Arena(TINY, {OURS: ours()})
    arena.workers = {"x": Reader()}
    score = correctness._Score("Mistral", "mistral", "x")
    score.take(arena, Entrant("x", "x", "x"), fixture, load_families()["mistral"])
    assert score.asked == {"calls": 1, "stream": 0, "splits": 0, "clean": 0}


def test_a_profile_tells_functions_their_lines_and_packages():
    place = str(Path(profiling.__file__))
    core = str(profiling._OURS / "reading" / "parser.py")
    installed = "/x/lib/python3.12/site-packages/pydantic/main.py"
    made, note = profiling.shares([
        (core, "Parser.feed", 1, 50), (core, "Parser.feed", 2, 10), (installed, "BaseModel.__init__", 3, 20),
        ("/x/lib/python3.12/json/decoder.py", "decode", 4, 18), (place, "rare", 5, 2),
    ])  # fmt: skip
    assert [(row["%"], row["function"], row["% in it"]) for row in made] == [
        (60, "reading/parser.py: Parser.feed", 50), (20, "pydantic: BaseModel.__init__", 20), (18, "json: decode", 18),
    ]  # fmt: skip
    assert made[0]["its longest line"].startswith('1: """')
    assert note == "reading/parser.py 60%, pydantic 20%, json 18%"


def test_a_profile_finds_the_slow_line_of_a_reader(tmp_path):
    program = tmp_path / "slow.py"
    program.write_text(SLOW, encoding="utf-8")
    worker = Worker("slow", Launch((sys.executable, str(program)), {"PYTHONPATH": str(ROOT)}))
    worker.load("k", text="x")
    try:
        samples = worker.ask("profile", key="k", reader="slow", pieces=None, seconds=0.2)["samples"]
    finally:
        worker.close()
    rows, _ = profiling.shares(samples)
    assert rows[0]["function"] == "slow.py: Slow.find"
    assert rows[0]["its longest line"].endswith(": return sum(range(50_000))")
    assert rows[0]["%"] > 80


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the command says so")
def test_the_profile_command_says_where_callmarks_time_goes():
    done = CliRunner().invoke(main, ["profile", "--way", "stream", "--seconds", "0.05", "--spelling", "glm"])
    assert done.exit_code == 0, done.output
    assert done.output.count("callmark: ") == 3
    assert "reading/" in done.output
    for words in (["--peer", "nobody"], ["--peer", "ai-sdk"]):
        refused = CliRunner().invoke(main, ["profile", *words])
        assert (refused.exit_code, "begins none" in refused.output) == (2, True)


def test_a_change_is_told_from_noise():
    assert compare.verdict(1.03, 1.2, 0.02) == "SLOWER"
    assert compare.verdict(0.9, 0.97, 0.02) == "faster"
    assert compare.verdict(0.9, 1.1, 0.02) == ""
    assert compare._collected("==1== Collected : 2054\n") == 2054
    assert compare._collected("nothing") is None


class Laid:
    """The process of a callmark that is compared: always as fast, and of one answer."""

    def __init__(self, seconds: float, content: str = "") -> None:
        self.answer = {"seconds": seconds, "calls": [], "content": content}

    def ask(self, op, **request):
        return self.answer

    def load(self, key, **task): ...
    def forget(self): ...
    def close(self): ...


def test_a_change_that_reads_otherwise_is_not_called_faster(monkeypatch):
    monkeypatch.setattr(compare, "Worker", lambda name, launch: Laid({"old": 1.0, "new": 0.5}[name], name))
    assert {row[""] for row in compare._timed(Path("old"), Path("new"), 0, 9)} == {"READS OTHERWISE"}


@pytest.mark.parametrize(("places", "said"), [
    ((0.95, 1, 1, 1, 1, 1), ""), ((0.95, 0.94, 1, 1, 1, 1), ""), ((0.95, 0.95, 0.94, 1, 0.95, 1), ""),
    ((0.95, 0.95, 0.94, 1.05, 1.05, 1.05), ""), ((0.95, 0.95, 0.94, 0.94, 0.95, 0.95), "faster"),
])  # fmt: skip
def test_where_a_process_happens_to_lie_in_memory_is_no_change(monkeypatch, places, said):
    luck = {"old": iter([1.0] * 6), "new": iter(places)}

    monkeypatch.setattr(compare, "Worker", lambda name, launch: Laid(next(luck[name])))
    made = list(compare._timed(Path("old"), Path("new"), 0, 9))
    assert {row[""] for row in made} == {said}


def test_instructions_are_those_of_the_work():
    count = counting()
    if count is None:  # a machine may not count them, and `compare` says so; the figures below are then not to be had
        assert compare.counter() in (None, "valgrind")
        return

    def spent(times):
        before = count()
        for _ in range(times):
            "abc".replace("b", "d")
        return count() - before

    assert 5 < min(spent(100_000) for _ in range(3)) / min(spent(10_000) for _ in range(3)) < 15
    assert compare.counter() == "Linux"
    least = [compare.least("call", shape, "whole", 0) for shape in ("huge", "dense")]
    assert 0 < least[0] < least[1]


def test_instructions_of_a_callmark_that_fails_are_not_counted_and_its_rows_say_why(monkeypatch, tmp_path):
    tmp_path.joinpath("callmark").mkdir()
    tmp_path.joinpath("callmark", "__init__.py").write_text("raise RuntimeError('no')", encoding="utf-8")
    monkeypatch.setattr(compare, "_VALGRIND", ())
    made = list(compare._counted(tmp_path, tmp_path, 0, "valgrind"))
    assert [row[""] for row in made] == ["RuntimeError: no"] * 6


def test_another_callmark_can_be_laid_out_beside_this_one(tmp_path):
    compare._lay_out(ROOT, tmp_path)
    worker = Worker("other", ours(str(tmp_path)))
    try:
        worker.load("k", text="[CALL: f({'a': 1,})]")
        assert worker.ask("read", key="k", reader=CALLMARK)["calls"] == [["f", {"a": 1}]]
    finally:
        worker.close()
    where = subprocess.run([sys.executable, "-c", "import callmark; print(callmark.__file__)"], text=True,
                           capture_output=True, check=True, env=os.environ | {"PYTHONPATH": str(tmp_path)})  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(tmp_path)


def test_what_was_compiled_beside_the_sources_is_not_timed_as_callmark(monkeypatch, tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "grammars", tree / "grammars")
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    tree.joinpath("src", "callmark", "reading", "parser.cpython-312-x86_64-linux-gnu.so").touch()
    tree.joinpath("src", "callmark", "reading", "scanner.pyd").touch()
    compare._lay_out(tree, tmp_path / "laid")
    laid = {path.suffix for path in (tmp_path / "laid").rglob("*.*")}
    assert {".py", ".lark"} <= laid
    assert not laid & {".so", ".pyd"}
    assert ours().environment["PYTHONPATH"] == str(ROOT)
    monkeypatch.setattr(environments, "ROOT", tree)
    for words in (["batch", "--quick", "--no-peers", "--out", str(tmp_path / "x")], ["profile"]):
        done = CliRunner().invoke(main, words)
        assert (done.exit_code, "2 compiled modules lie beside the sources" in done.output) == (1, True)


def test_the_conditions_say_which_recorded_outputs_there_are(monkeypatch):
    assert conditions()["canitoolcall"] == version("canitoolcall")

    def none(name):
        if name == "canitoolcall":
            raise PackageNotFoundError
        return "1"

    monkeypatch.setattr(report, "version", none)
    assert conditions()["canitoolcall"] == "none"


def test_the_conditions_say_that_what_was_measured_is_not_the_working_tree(monkeypatch, tmp_path):
    """Installed without `-e`, callmark stays what it was, whatever is changed here."""
    for folder, said in ((ROOT / "src", False), (tmp_path, True)):
        monkeypatch.setattr(report.callmark, "__file__", str(folder / "callmark" / "__init__.py"))
        assert conditions()["commit"].endswith(", callmark as it was installed") == said


def test_the_conditions_say_which_engine_callmark_is(monkeypatch):
    assert conditions()["engine"] == served_ours.versions()["engine"] == "Python"
    monkeypatch.setattr(served_ours.parser, "__file__", "/x/parser.so")
    assert conditions()["engine"] == "compiled"


def test_peers_are_pinned_and_known(monkeypatch, tmp_path):
    for peer in PEERS.values():
        pins = [*peer.pins, *peer.alone, *filter(None, [peer.source])]
        assert pins
        assert all("@" in pin[1:] if peer.npm else "==" in pin for pin in pins)
    assert {entrant.peer for entrants in READ_BY.values() for entrant in entrants} <= set(PEERS)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="node"):
        launch(PEERS["ai-sdk"])


def test_the_command_writes_rows_and_prints_tables(tmp_path):
    out = tmp_path / "run.jsonl"
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "batch",
        "--quick",
        "--no-peers",
        "--seed=2",
        "--no-plots",
        "--out",
        out,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Many short texts" in done.stdout
    made = read_lines(out)
    assert made[0]["part"] == "conditions"
    assert made[0]["quick"] is True
    assert made[0]["command"] == "python -m benchmarks batch --quick --no-peers --seed 2"
    assert {row["part"] for row in made} == {"conditions", "batch", "time"}


@pytest.mark.parametrize(("last", "said"), [
    ("goodbye", "goodbye"),
    ("node:internal:1\nError: Cannot find module 'x'\n    at y\n\nNode.js v20.20.2", "Error: Cannot find module 'x'"),
])  # fmt: skip
def test_a_process_that_ended_before_it_was_asked_says_so(last, said):
    """What could not be written to it must not be written when it is closed: click ends in silence on a broken pipe."""
    worker = Worker("gone", Launch((sys.executable, "-c", f"raise SystemExit({last!r})"), {}))
    worker.start()
    process = worker._process
    process.wait()
    with pytest.raises(FailedError, match=f"^its process ended: {said}$"):
        worker.ask("read")


def test_a_process_that_cannot_be_started_is_unavailable(fakes, tmp_path):
    gone = str(tmp_path / "bin" / "python")
    arena = Arena(TINY, {OURS: ours(), "fake": fakes, "gone": Launch((gone,), {})})
    try:
        assert arena.versions().keys() == {OURS, "fake"}
        assert re.fullmatch(rf"not started: .*'{gone}'", arena.unavailable["gone"])
    finally:
        arena.close()


@pytest.mark.parametrize(
    ("content", "share"), [("a b\nc", 1), ("abc", 1), ("ab", 2 / 3), ("", 0), ("abd", 0.99), ("abcd", 4 / 3)]
)
def test_the_text_that_a_reader_shows_is_judged(content, share):
    assert share_shown(content, "a  b c\n") == share
    assert share_shown("", " \n") == 1
    assert share_shown("<x>", "") > 1


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_prose_is_what_stands_outside_of_the_markers(spelling):
    for workload in (sparse(SPELLINGS[spelling], 5000, 3), dense(SPELLINGS[spelling], 3000, 3)):
        read = parse(workload.text, dialects=[workload.spelling.dialect], limits=Limits(calls=100))
        shown = "".join(event.text for event in read.events if isinstance(event, Text))
        assert share_shown(shown, workload.prose) == 1
        assert 0 < len(workload.prose) < len(workload.text)


def test_a_cost_that_begins_late_misses_the_goal():
    sizes = [4**power * 1024 for power in range(6)]
    ours = {size: 40e-6 + 1.2e-9 * size + 3e-14 * size**2 for size in sizes}
    best = {"ours": ours, "floor": dict.fromkeys(sizes, 1.0)}
    row = parts._growth_row("text", "prose", "whole", best, complete=True)
    assert row["exponent"] < 1.05 < row["last 16x"]
    assert row[""] == "MISS"
    assert parts._growth_row("text", "prose", "whole", best, complete=False)[""] == "MISS: it was stopped"


def test_growth_that_was_not_measured_up_to_the_end_meets_no_goal(tmp_path):
    sizes = {1024: 1.0, 4096: 4.0, 16_384: 16.0}
    best = {"ours": sizes, "floor": sizes}
    made = [{"part": "growth", **parts._growth_row("text", name, "whole", best, complete=complete)}
            for name, complete in (("prose", True), ("dense", False))]  # fmt: skip
    lines = Lines(tmp_path / "run.jsonl")
    lines.add(made)
    for grown in (made, read_lines(lines.path)):  # as they were measured, and as they are read again
        for goal in figures.targets(grown):
            assert goal["measured"] == pytest.approx(1)
            assert goal[""] == "MISS: it was stopped"
            assert goal["against"].endswith("; stopped at 16,384: dense, whole")
        assert next(figures.summary(grown))[0] == "Goals: 0 met, 2 missed"
        assert {goal[""] for goal in figures.targets(grown[:1])} == {"ok"}
    one = {"ours": {1024: 1.0}, "floor": {1024: 1.0}}
    row = {"part": "growth", **parts._growth_row("text", "slow", "whole", one, complete=False)}
    assert [goal[""] for goal in figures.targets([row, row])] == ["MISS: it was stopped"] * 2
    assert next(figures.targets([row, row]))["against"] == "stopped at 1,024: slow, whole, and 1 more"


def test_old_results_stay_until_there_are_new_ones(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"part": "old"}\n', encoding="utf-8")
    lines = Lines(path)
    assert read_lines(path) == [{"part": "old"}]
    lines.add([{"part": "new"}])
    lines.add([{"part": "newer"}])
    assert [row["part"] for row in read_lines(path)] == ["new", "newer"]
