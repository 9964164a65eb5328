"""Ledgers: a call runs at most once, also across processes and `kill -9`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import callmark.running.ledger
from callmark import Executor, Invocation, Ledger, Registry, SqliteLedger, Tool, UsageError, parse
from callmark.running.ledger import Claim, LedgerError, call_key
from callmark.running.presence import lives

MINE, RUNNING, UNKNOWN = Claim("mine"), Claim("running"), Claim("unknown")


@pytest.fixture(params=["memory", "sqlite", "durable"])
def ledger(request, tmp_path):
    if request.param == "memory":
        yield Ledger()
        return
    made = SqliteLedger(tmp_path / "ledger.sqlite", durable=request.param == "durable")
    yield made
    made.close()


def test_a_call_is_claimed_started_and_finished_once(ledger):
    assert ledger.claim("k", "f") == MINE
    assert ledger.claim("k", "f") == RUNNING
    assert ledger.start("k") is True
    assert ledger.start("k") is False
    assert ledger.claim("k", "f", repeatable=True) == RUNNING
    ledger.finish("k", b"r")
    assert ledger.claim("k", "f") == Claim("finished", b"r")
    ledger.release("k")
    assert ledger.claim("k", "f") == Claim("finished", b"r")
    assert repr(ledger) == f"{type(ledger).__name__}(1 calls)"
    ledger.forget("k")
    assert ledger.claim("k", "f") == MINE


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer takes memory of its own")
def test_results_are_not_read_where_only_rows_are_looked_at(tmp_path):
    """A file that is kept for long has gigabytes of them."""
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    keys = [call_key("s", "m", number, "f", {}) for number in range(50)]
    for key in keys:
        ledger.claim(key, "f")
        ledger.start(key)
        ledger.finish(key, b"r" * 100_000)
    tracemalloc.start()
    assert (repr(ledger), ledger.unfinished()) == ("SqliteLedger(50 calls)", [])
    ledger.forget_session("s")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert repr(ledger) == "SqliteLedger(0 calls)"
    ledger.close()


def test_what_was_released_may_run_and_what_was_never_claimed_may_not(ledger):
    assert ledger.start("k") is False
    ledger.claim("k", "f")
    ledger.start("k")
    ledger.release("k")
    assert ledger.claim("k", "f") == MINE
    ledger.release("other")
    ledger.finish("other", b"r")
    assert ledger.claim("other", "f") == MINE


def test_who_watches_is_told_once(ledger):
    told: list[int] = []
    assert ledger.watch("k", lambda: told.append(0)) is False
    ledger.claim("k", "f")
    assert ledger.watch("k", lambda: told.append(1)) is True
    assert ledger.watch("k", lambda: told.append(2)) is True
    ledger.finish("k", b"r")
    assert told == [1, 2]
    assert ledger.watch("k", lambda: told.append(3)) is False


def test_what_a_session_left_is_dropped_but_for_what_is_worked_on(ledger):
    ran: list[int] = []
    tool = Tool(name="f", function=lambda arguments, context: ran.append(1), approval=False)
    executor = Executor(Registry([tool]), ledger=ledger)
    calls = parse("[CALL: f()]").calls

    def replayed(session: str, context: Invocation | None = None) -> bool:
        return executor.run_sync(calls, context, session=session, message="m")[0].replayed

    places = [("s", None), ("s", Invocation(review=True)), ("other", None), ("", None)]
    assert [replayed(*place) for place in places] == [False] * 4
    executor.run_sync(calls)  # without a message every time is another one
    works = call_key("s", "later", 0, "f", {})
    assert ledger.claim(works, "f") == MINE
    ledger.forget_session("s")
    assert ledger.claim(works, "f") == RUNNING
    ledger.finish(works, b"r")
    assert ledger.claim(works, "f").state == "finished"
    assert [replayed(*place) for place in places] == [False, False, True, True]
    for session in ("s", "", "none", "\ud800"):
        ledger.forget_session(session)
    assert repr(ledger) == f"{type(ledger).__name__}(1 calls)"
    with pytest.raises(UsageError, match="forget_session, session: expected a text, found NoneType"):
        ledger.forget_session(None)


def test_of_a_session_only_what_a_process_works_on_that_lives_is_kept(path, monkeypatch):
    states = ("claimed", "started", "finished")
    keys = {state: call_key("s", "m", 0, state, {}) for state in states}
    with contextlib.closing(SqliteLedger(path)) as other, contextlib.closing(SqliteLedger(path)) as ledger:
        for key in keys.values():
            other.claim(key, "f")
        for state in states[1:]:
            other.start(keys[state])
        other.finish(keys["finished"], b"r")
        ledger.forget_session("s")
        assert [key for key, _ in ledger._all()] == [keys["claimed"], keys["started"]]
        monkeypatch.setattr("callmark.running.ledger.lives", lambda path, token: False)
        ledger.forget_session("s")
        assert ledger._all() == []


def test_keys_depend_on_all_that_identifies_a_call():
    base = ("s", "m", 0, "f", {"a": 1, "b": 2})
    others = [
        *(("t", *base[1:]), ("s", "n", *base[2:]), ("s", "m", 1, *base[3:]), ("s", "m", 0, "g", base[4])),
        *(("s", "m", 0, "f", {"a": 1}), ("sm", "", *base[2:])),
    ]
    keys = {call_key(*base), *(call_key(*other) for other in others)}
    assert len(keys) == 7
    assert call_key("s", "m", 0, "f", {"b": 2.0, "a": 1}) == call_key(*base)
    assert all(len(key) == 96 for key in keys)
    assert len({key[:32] for key in keys}) == 3  # sessions


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.mark.parametrize("durable", [False, True])
def test_a_ledger_that_is_durable_waits_for_the_disk_and_one_that_is_closed_leaves_nothing(path, durable):
    ledger = SqliteLedger(path, durable=durable)
    assert ledger._open().execute("PRAGMA synchronous").fetchone() == (2 if durable else 1,)
    ledger.claim("key", "f")
    assert len(list(path.parent.glob("*-live-*"))) == 1
    ledger.close()
    assert not list(path.parent.glob("*-live-*"))


def test_a_read_that_another_process_took_over_is_read_all_the_same(path, monkeypatch):
    """Where no process knows that another one lives: it may run twice, so nothing of it is unknown; no write may."""
    monkeypatch.setattr("callmark.running.ledger.lives", lambda path, token: False)

    class Slow(SqliteLedger):
        def start(self, key: str) -> bool:
            with contextlib.closing(SqliteLedger(path)) as other:
                other.claim(key, "f", repeatable=True)
            return super().start(key)

    for mode, outcome in (("read", "ok"), ("write", "outcome-unknown")):
        look = Tool(name="f", function=lambda arguments, context: "seen", mode=mode, approval=False)
        with contextlib.closing(Slow(path)) as ledger:
            (result,) = Executor(Registry([look]), ledger=ledger).run_sync(parse("[CALL: f()]").calls)
        assert result.outcome == outcome


def test_after_a_crash_a_started_call_is_unknown_and_a_claimed_one_may_run(path, monkeypatch):
    before, after = SqliteLedger(path), SqliteLedger(path)  # two processes, as far as a ledger can tell
    monkeypatch.setattr("callmark.running.ledger.lives", lambda path, token: False)  # as where there are no locks
    for key in ("claimed", "started", "finished"):
        before.claim(key, "f")
    before.start("started")
    before.start("finished")
    before.finish("finished", b"r")
    assert after.unfinished() == [("started", "f")]
    assert before.unfinished() == []
    assert after.claim("started", "f") == UNKNOWN
    assert after.claim("finished", "f") == Claim("finished", b"r")
    assert after.claim("claimed", "f") == MINE
    assert before.start("claimed") is False  # it was taken over
    before.release("claimed")
    before.finish("claimed", b"not theirs")
    assert after.start("claimed") is True
    assert after.claim("started", "f", repeatable=True) == MINE
    before.close()
    after.close()


def test_what_fails_in_a_transaction_leaves_nothing_behind(path):
    ledger = SqliteLedger(path)
    with pytest.raises(LedgerError, match="expected a ledger, found: "):
        ledger.claim("k", ["no text"])  # type: ignore[arg-type]
    assert ledger.claim("k", "f") == MINE
    ledger.close()


def test_a_claim_that_could_not_be_written_down_is_none(path, monkeypatch):
    ledger = SqliteLedger(path)

    @contextlib.contextmanager
    def full(transaction=ledger._transaction):
        with ledger._explained(), transaction():
            yield
            raise sqlite3.OperationalError("disk I/O error")  # as a full disk does at the commit

    monkeypatch.setattr(ledger, "_transaction", full)
    with pytest.raises(LedgerError, match="disk I/O error"):
        ledger.claim("k", "f")
    monkeypatch.undo()
    assert ledger.claim("k", "f") == MINE
    ledger.close()


@pytest.mark.parametrize("end", ["finish", "release"])
def test_who_waits_is_told_also_where_the_file_fails(path, end):
    ledger = SqliteLedger(path)
    told: list[int] = []
    ledger.claim("k", "f")
    ledger.watch("k", lambda: told.append(1))
    ledger.close()
    assert repr(ledger) == "SqliteLedger(? calls)"
    with pytest.raises(LedgerError, match="expected one that is open, found that it was closed"):
        getattr(ledger, end)("k", *([b"r"] if end == "finish" else []))
    assert told == [1]


def test_a_file_that_is_no_ledger_is_an_error(tmp_path):
    path = tmp_path / "text"
    path.write_text("This is no database, but it is long enough to look at." * 9)
    with pytest.raises(LedgerError, match=f"^ledger {path}: expected an SQLite database, found a file that is none$"):
        SqliteLedger(path)
    with pytest.raises(LedgerError, match="found that it cannot"):
        SqliteLedger(tmp_path / "no-folder" / "ledger.sqlite")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE calls (somebody, elses)")
    other.close()
    with pytest.raises(LedgerError, match="expected a ledger, found: no such column"):
        SqliteLedger(tmp_path / "other")
    for nothing in ("", ":memory:"):
        with pytest.raises(UsageError, match="expected the path of a file"):
            SqliteLedger(nothing)


@pytest.mark.parametrize(
    ("pragma", "said"),
    [
        ("query_only = 1", "found one that can only be read"),
        ("max_page_count = 4", "found the disk full"),
        ("busy_timeout = 0", "found the file locked"),
    ],
)
def test_a_file_that_cannot_be_written_is_a_clear_error_and_nothing_runs(path, pragma, said, monkeypatch):
    monkeypatch.setattr(callmark.running.ledger, "_WAIT_SECONDS", 0.02)
    ran: list[int] = []
    tool = Tool(name="f", function=lambda arguments, context: ran.append(1), approval=False)
    ledger = SqliteLedger(path)
    ledger.claim("before", "f")
    other = sqlite3.connect(path, isolation_level=None)
    if "busy" in pragma:
        other.execute("BEGIN IMMEDIATE")
    ledger._open().execute(f"PRAGMA {pragma}")
    if "count" in pragma:
        with pytest.raises(LedgerError):
            ledger.finish("before", b"x" * 20_000)
        for number in range(200):
            with contextlib.suppress(LedgerError):
                ledger.claim(str(number), "f" * 99)
    executor = Executor(Registry([tool]), ledger=ledger)
    with pytest.raises(LedgerError, match=said):
        executor.run_sync(parse("[CALL: f()]").calls, session="s", message="m")
    assert ran == []
    ledger.close()
    if "busy" in pragma:
        other.execute("ROLLBACK")
    other.close()
    ledger = SqliteLedger(path)  # as soon as the reason is gone, it goes on
    assert ledger.claim("before", "f") == MINE
    ledger.close()


@pytest.mark.parametrize("step", ["claim", "start", "finish"])
@pytest.mark.parametrize("freed", [True, False])
def test_a_file_that_another_process_holds_holds_up_no_loop(path, step, freed, monkeypatch):
    """The loop goes on, in which the file is set free; where it never is, the call is given up and its claim too."""
    if not freed:
        monkeypatch.setattr(callmark.running.ledger, "_WAIT_SECONDS", 0.05)
    ledger, other = SqliteLedger(path), sqlite3.connect(path, isolation_level=None)
    wanted = getattr(ledger, step)

    async def soon(what, *arguments, **options):
        if what == wanted:
            other.execute("BEGIN IMMEDIATE")
            if freed:
                asyncio.get_running_loop().call_later(0.05, other.execute, "ROLLBACK")
        return await Ledger.soon(ledger, what, *arguments, **options)

    monkeypatch.setattr(ledger, "soon", soon)
    ran: list[int] = []
    tool = Tool(name="f", function=lambda arguments, context: ran.append(1), approval=False)
    executor = Executor(Registry([tool]), ledger=ledger)
    calls = parse("[CALL: f()]").calls

    async def run():
        return await executor.run(calls, session="s", message="m")

    if freed:
        assert asyncio.run(run())[0].ok
        assert ran == [1]
    else:
        with pytest.raises(LedgerError, match="found the file locked"):
            asyncio.run(run())
        other.execute("ROLLBACK")
        assert ledger._watchers == {}
        assert len(ran) == (step == "finish")
    other.close()
    ledger.close()


def test_who_is_cancelled_while_it_waits_for_the_file_has_done_nothing(path):
    ledger = SqliteLedger(path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    async def run():
        claiming = asyncio.ensure_future(ledger.soon(ledger.claim, "k", "f"))
        await asyncio.sleep(0)
        claiming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claiming

    other.execute("BEGIN IMMEDIATE")
    asyncio.run(run())
    other.execute("ROLLBACK")
    assert ledger.claim("k", "f") == MINE
    other.execute("BEGIN IMMEDIATE")
    freed = threading.Timer(0.05, other.execute, ["ROLLBACK"])
    freed.start()
    assert ledger.start("k") is True  # who is no coroutine waits too
    freed.join()
    other.close()
    ledger.close()


@pytest.mark.parametrize("way", ["soon", "at_once"])
def test_who_did_a_step_in_haste_is_patient_again(path, way, monkeypatch):
    monkeypatch.setattr(callmark.running.ledger, "_AT_ONCE_SECONDS", 0.0)
    ledger, other = SqliteLedger(path), sqlite3.connect(path, isolation_level=None)
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: other.execute("ROLLBACK"))
    monkeypatch.setattr(callmark.running.ledger, "time", clock)

    async def run():
        claimed = getattr(ledger, way)(ledger.claim, "k", "f")
        assert (await claimed if way == "soon" else claimed) == MINE
        other.execute("BEGIN IMMEDIATE")
        assert ledger.start("k") is True  # it waited, and the file was set free

    asyncio.run(run())
    other.close()
    ledger.close()


def test_a_call_that_is_cancelled_while_its_end_waits_for_the_file_is_written_down_all_the_same(path, monkeypatch):
    ledger = SqliteLedger(path)
    waits: list[asyncio.Future[None]] = []

    async def soon(step, *arguments, **options):
        if step == ledger.finish:
            waits.append(asyncio.get_running_loop().create_future())
            await waits[-1]
        return step(*arguments, **options)

    monkeypatch.setattr(ledger, "soon", soon)
    executor = Executor(Registry([Tool(name="f", function=lambda *_: 7, approval=False)]), ledger=ledger)
    calls = parse("[CALL: f()]").calls

    async def run():
        task = asyncio.ensure_future(executor.run(calls, session="s", message="m"))
        while not waits:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    monkeypatch.undo()
    (again,) = executor.run_sync(calls, session="s", message="m")
    assert (again.data, again.replayed) == (7, True)
    ledger.close()


def test_who_cancels_a_call_waits_for_no_other_process(path, monkeypatch):
    monkeypatch.setattr(callmark.running.ledger, "_WAIT_SECONDS", 600.0)
    ledger, other = SqliteLedger(path), sqlite3.connect(path, isolation_level=None)
    began = threading.Event()

    def slow(arguments, context):
        began.set()
        context.cancel.wait(20)

    executor = Executor(Registry([Tool(name="f", function=slow, approval=False)]), ledger=ledger)
    calls = parse("[CALL: f()]").calls

    async def run():
        task = asyncio.ensure_future(executor.run(calls, session="s", message="m"))
        while not began.is_set():
            await asyncio.sleep(0.005)
        other.execute("BEGIN IMMEDIATE")
        task.cancel()
        with pytest.raises(LedgerError, match="found the file locked"):
            await task
        other.execute("ROLLBACK")
        (again,) = await executor.run(calls, session="s", message="m")
        assert again.outcome == "outcome-unknown"  # that it was cancelled could not be written down

    asyncio.run(run())
    other.close()
    ledger.close()


def test_a_result_that_cannot_be_read_is_an_error_of_the_ledger(path):
    ledger = SqliteLedger(path)
    executor = Executor(Registry([Tool(name="f", function=lambda *_: 7, approval=False)]), ledger=ledger)
    calls = parse("[CALL: f()]").calls
    executor.run_sync(calls, session="s", message="m")
    ledger._open().execute("UPDATE calls SET result = x'00'")
    with pytest.raises(LedgerError, match="expected the result of 'f', found: JSON is malformed"):
        executor.run_sync(calls, session="s", message="m")
    ledger.close()


def test_a_damaged_file_is_said_to_be_damaged(path):
    ledger = SqliteLedger(path)
    for number in range(200):
        ledger.claim(str(number), "f")
    ledger.close()
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 3 * 4096)
    with contextlib.closing(SqliteLedger(path)) as ledger, pytest.raises(LedgerError, match="one that is damaged"):
        ledger.claim("7", "f")


def test_one_who_waits_and_raises_keeps_the_news_from_nobody(ledger):
    told: list[int] = []
    ledger.claim("k", "f")
    ledger.watch("k", lambda: told.append(1 // 0))
    ledger.watch("k", lambda: told.append(1))
    ledger.finish("k", b"r")
    assert told == [1]


class LedgerMachine(RuleBasedStateMachine):
    """Two processes share a file. The model: per call the state, whose it is, and how often its body ran."""

    def __init__(self):
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name, "ledger.sqlite")
        self.ledgers = [SqliteLedger(self.path), SqliteLedger(self.path)]
        self.bodies: Counter[str] = Counter()
        self.state: dict[str, tuple[str, int]] = {}
        self.live: set[tuple[int, str]] = set()

    keys = st.sampled_from("ab")
    who = st.integers(0, 1)

    @rule(who=who, key=keys)
    def claim(self, who, key):
        state, owner = self.state.get(key, ("new", who))
        if (who, key) in self.live:
            expected = "running"
        elif state in ("claimed", "started") and owner == 1 - who:
            expected = "elsewhere"
        else:
            expected = {"new": "mine", "claimed": "mine", "started": "unknown", "finished": "finished"}[state]
        assert self.ledgers[who].claim(key, "f").state == expected
        if expected == "mine":
            self.state[key] = ("claimed", who)
            self.live.add((who, key))

    @rule(who=who, key=keys)
    def start(self, who, key):
        may = self.state.get(key) == ("claimed", who)
        assert self.ledgers[who].start(key) is may
        if may:
            self.bodies[key] += 1
            self.state[key] = ("started", who)

    @rule(who=who, key=keys)
    def finish(self, who, key):
        self.ledgers[who].finish(key, b"r")
        if self.state.get(key) in (("started", who), ("claimed", who)):  # one that is refused has that as its result
            self.state[key] = ("finished", who)
        self.live.discard((who, key))

    @rule(who=who)
    def crash(self, who):
        self.ledgers[who].close()
        self.ledgers[who] = SqliteLedger(self.path)
        self.live = {(other, key) for other, key in self.live if other != who}
        self.state = {
            key: (state, -1 if owner == who else owner) for key, (state, owner) in self.state.items()
        }  # nobody's: the process is gone

    @invariant()
    def no_body_runs_twice(self):
        assert max(self.bodies.values(), default=0) <= 1

    def teardown(self):
        for ledger in self.ledgers:
            ledger.close()
        self.folder.cleanup()


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(stateful_step_count=30)


# Real processes, really killed.

WRITES = 60  # some 3 ms each: more than any process has time for before it is killed

PROGRAM = """
import sys, os, time
import callmark.running.ledger
from callmark import Executor, Invocation, Registry, SqliteLedger, Tool, parse
path, effects, mode = sys.argv[1:]
out = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def write(arguments, context):
    os.write(out, f"{arguments['n']}\\n".encode())
    time.sleep(600 if mode == "hang" else 0.002)
    return arguments["n"]

tool = Tool(name="write", function=write, approval=False, mode="write" if mode == "write" else "read")
executor = Executor(Registry([tool]), ledger=SqliteLedger(path))
print("ready", flush=True)
calls = parse(" ".join(f"[CALL: write(n={n})]" for n in range(60))).calls
for n, result in enumerate(executor.run_sync(calls, session="s", message="m")):
    print(n, result.outcome, int(result.replayed), flush=True)
"""


def test_after_kill_9_no_write_runs_twice_and_interrupted_ones_are_unknown(tmp_path):
    randomness = random.Random(7)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "ledger.sqlite"), str(tmp_path / "effects"), "write"]
    kills = 0
    for _ in range(40):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if kills < 8:
            time.sleep(randomness.uniform(0.0, 0.02))
            process.send_signal(signal.SIGKILL)
        said, _ = process.communicate(timeout=60)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
    assert kills >= 5
    effects = Counter((tmp_path / "effects").read_text().split())
    assert max(effects.values()) == 1
    outcomes = [line.split()[1] for line in said.splitlines()]
    assert len(outcomes) == WRITES
    assert set(outcomes) <= {"ok", "outcome-unknown"}
    for n, outcome in enumerate(outcomes):
        assert outcome == "outcome-unknown" or effects[str(n)] == 1
    interrupted = [n for n, outcome in enumerate(outcomes) if outcome == "outcome-unknown"]
    assert len(interrupted) <= kills
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    assert len(ledger.unfinished()) == len(interrupted)
    ledger.close()


def test_processes_that_share_a_file_may_be_killed_at_any_time(tmp_path):
    randomness = random.Random(8)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "ledger.sqlite"), str(tmp_path / "effects"), "write"]
    for last in (False, True):
        crowd = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        for process in crowd:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in () if last else crowd:
            time.sleep(randomness.uniform(0.0, 0.03))
            process.kill()
        outputs = [process.communicate(timeout=60)[0] for process in crowd]
        assert {process.returncode for process in crowd} <= ({0} if last else {0, -signal.SIGKILL})
    effects = Counter((tmp_path / "effects").read_text().split())
    assert max(effects.values()) == 1
    for said in outputs:
        for line in said.splitlines():
            number, outcome, _ = line.split()
            assert (outcome == "ok" and effects[number] == 1) or outcome == "outcome-unknown"


FORKS = """
import os, sys, threading
from callmark import SqliteLedger, Ledger
path = sys.argv[1]
ledger, memory = SqliteLedger(path), Ledger()
ledger.claim("begun", "f")
memory.claim("begun", "f")
stop = threading.Event()

def work():  # so that forks meet steps of every kind
    number = 0
    while not stop.is_set():
        number += 1
        ledger.claim(f"thread {number}", "f")
        ledger.start(f"thread {number}")
        ledger.finish(f"thread {number}", b"r")

thread = threading.Thread(target=work)
thread.start()
children = []
for child in range(12):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ran = ledger.claim("one of all", "f").state == "mine" and ledger.start("one of all")
            mine = f"child {child}"
            assert ledger.claim(mine, "f").state == "mine"
            assert ledger.start(mine)
            ledger.finish(mine, b"r")
            assert ledger.claim("begun", "f").state == "elsewhere"  # the parent is at it
            assert not ledger.watch("nobody", print)
            assert memory.claim("begun", "f").state == "mine"
            ledger.close()
            code = 2 if ran else 0
        finally:
            os._exit(code)
    children.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
stop.set()
thread.join()
assert sorted(codes) == [0] * 11 + [2], codes
assert ledger.start("begun")
states = [ledger.claim(f"child {child}", "f").state for child in range(12)]
assert states == ["finished"] * 12, states
assert memory.claim("begun", "f").state == "running"
print("good")
"""


def test_after_a_fork_parent_and_children_are_processes_of_their_own(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", FORKS, str(tmp_path / "ledger.sqlite")]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "good\n"
    base = sqlite3.connect(tmp_path / "ledger.sqlite")
    assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    base.close()


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CORRUPT])
def test_a_file_that_others_make_at_the_same_time_is_waited_for(tmp_path, monkeypatch, code):
    """SQLite refuses all but one of them at once."""
    refusals = []

    class Refusing(sqlite3.Connection):
        def execute(self, statement, *parameters):
            if "journal_mode" in statement and len(refusals) < 2:
                refusals.append(statement)
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = code
                raise error
            return super().execute(statement, *parameters)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Refusing))
    if code == sqlite3.SQLITE_BUSY:
        SqliteLedger(tmp_path / "ledger.sqlite").close()
        assert len(refusals) == 2
    else:
        with pytest.raises(LedgerError):
            SqliteLedger(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize("mode", ["read", "write"])
def test_processes_at_once_run_each_call_once(tmp_path, mode):
    """Each tells all results: those that another one ran, too."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "ledger.sqlite"), str(tmp_path / "effects"), mode]
    crowd = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=60)[0].splitlines() for process in crowd]
    assert [process.returncode for process in crowd] == [0, 0, 0]
    assert Counter((tmp_path / "effects").read_text().split()) == Counter(map(str, range(WRITES)))
    said = [line.split() for lines in outputs for line in lines[1:]]
    assert Counter(outcome for _, outcome, _ in said) == {"ok": 3 * WRITES}
    assert Counter(number for number, _, replayed in said if replayed == "0") == Counter(map(str, range(WRITES)))
    assert not list(tmp_path.glob("*-live-*"))


def test_a_read_is_waited_for_while_its_process_lives_and_runs_again_when_that_is_killed(tmp_path):
    path, effects = tmp_path / "ledger.sqlite", tmp_path / "effects"
    command = [sys.executable, "-c", PROGRAM, str(path), str(effects), "hang"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while not effects.exists() or effects.read_text().count("\n") < 4:  # as many as the bulkhead lets in
        assert process.poll() is None
        time.sleep(0.01)
    first = parse("[CALL: write(n=0)]").calls
    key = call_key("s", "m", 0, "write", {"n": 0})
    ran: list[int] = []
    read = Tool(name="write", function=lambda arguments, context: ran.append(1), mode="read")
    with contextlib.closing(SqliteLedger(path)) as ledger:
        executor = Executor(Registry([read]), ledger=ledger)

        def run(seconds: float | None) -> str:
            context = Invocation(deadline=None if seconds is None else time.monotonic() + seconds)
            (result,) = executor.run_sync(first, context, session="s", message="m")
            return result.outcome

        assert ledger.claim(key, "write", repeatable=True).state == "elsewhere"
        assert ledger.unfinished() == []
        assert run(0.1) == "timeout"
        assert ran == []
        threading.Timer(0.1, process.kill).start()
        assert run(None) == "ok"
        assert ran == [1]
        assert len(ledger.unfinished()) == 3
        assert len(list(tmp_path.glob("*-live-*"))) == 1  # its own: that of who was killed is gone
    process.communicate(timeout=60)


def test_what_a_process_shows_ends_with_it_and_not_with_its_child(path):
    dead, begins = (Path(f"{path}-live-{'0' * 32}{end}") for end in ("", ".new"))
    dead.touch()
    begins.touch()  # of a process that is about to lock it
    with contextlib.closing(SqliteLedger(path)) as ledger:
        ledger.claim("k", "f")
        assert (dead.exists(), begins.exists()) == (False, True)
        token, of_parent = ledger._token, os.dup(ledger._presence._file)
        ledger._begin()  # as after a fork, in the child
        assert lives(str(path), token)
        assert ledger.claim("k", "f").state == "elsewhere"
        os.close(of_parent)
        assert not lives(str(path), token)
        assert ledger.claim("k", "f") == MINE
        assert lives(str(path), ledger._token)  # the child has a sign of its own, so nobody takes its call over


def test_another_process_is_waited_for_however_long_it_takes(path, monkeypatch):
    looks = iter(range(1200))
    monkeypatch.setattr("callmark.running.ledger.lives", lambda path, token: next(looks, None) is not None)
    monkeypatch.setattr("callmark.running.executor._LONGEST_PAUSE_SECONDS", 0.0)
    call = parse("[CALL: f()]").calls[0]
    with contextlib.closing(SqliteLedger(path)) as other, contextlib.closing(SqliteLedger(path)) as ledger:
        other.claim(call_key("s", "m", 0, "f", {}), "f")
        look = Tool(name="f", function=lambda arguments, context: "seen", mode="read")
        (result,) = Executor(Registry([look]), ledger=ledger).run_sync([call], session="s", message="m")
    assert (result.outcome, next(looks, None)) == ("ok", None)


def test_in_memory_a_child_knows_what_was_begun_and_not_how_it_ends():
    ledger = Ledger()
    ledger.claim("k", "f")
    ledger.start("k")
    ledger._begin()  # as after a fork, in the child
    assert ledger.unfinished() == [("k", "f")]
    assert ledger.claim("k", "f") == UNKNOWN


def test_where_no_process_can_show_that_it_lives_nothing_runs(path, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with contextlib.closing(SqliteLedger(path)) as ledger:
        monkeypatch.setattr("callmark.running.presence.os.open", full)
        with pytest.raises(LedgerError, match="expected to lock a file beside it, found: No space left on device"):
            ledger.claim("k", "f")
        monkeypatch.undo()
        assert ledger.claim("k", "f") == MINE


def test_an_interrupted_read_runs_again_and_a_write_does_not(path):
    ran: list[str] = []
    tools = [
        Tool(name=name, function=lambda arguments, context, name=name: ran.append(name), mode=mode, approval=False)
        for name, mode in (("read", "read"), ("write", "write"))
    ]
    calls = parse("[CALL: read()] [CALL: write()]").calls
    before = SqliteLedger(path)
    for call in calls:
        key = call_key("s", "m", call.index, call.name, call.arguments)
        before.claim(key, call.name)
        before.start(key)
    before.close()
    with contextlib.closing(SqliteLedger(path)) as after:
        results = Executor(Registry(tools), ledger=after).run_sync(calls, session="s", message="m")
    assert [result.outcome for result in results] == ["ok", "outcome-unknown"]
    assert "interrupted" in results[1].error.message
    assert ran == ["read"]


def test_threads_that_claim_at_once_get_it_once(ledger):
    gate, claims = threading.Barrier(20), []

    def claim() -> None:
        gate.wait(10)
        claims.append(ledger.claim("k", "f").state)

    threads = [threading.Thread(target=claim) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(claims) == {"mine": 1, "running": 19}
