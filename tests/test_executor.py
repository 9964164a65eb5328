"""The executor: tools that misbehave in every way, results in order and of bounded size, each call at most once."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import enum
import inspect
import itertools
import json
import re
import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark import (
    AuditLog,
    Breaker,
    Bulkhead,
    Call,
    Cancel,
    Executor,
    Failure,
    Invocation,
    Ledger,
    LoopGuard,
    Registry,
    Result,
    Session,
    Settings,
    Span,
    SqliteLedger,
    Tool,
    ToolError,
    UsageError,
    parse,
    render_result,
    tool,
)
from callmark.running import bodies, signals, workers
from callmark.running.jobs import TOO_LATE
from callmark.running.ledger import call_key
from callmark.running.models import OpenAIModel
from callmark.running.observing import read_audit_log
from callmark.running.rendering import cut_text, rendered
from callmark.running.signals import Bell, leavable_task, unless
from callmark.running.threads import Threads
from callmark.running.workers import Delivery, Workers, run_body
from callmark.tools.results import canonical

LIMIT = 0.2  # seconds that a tool has
SIMULATED = {"ok": None, "simulated": True, "unvalidated": True}
SLACK = 0.25  # seconds after which a result must be there


def call(name: str, index: int = 0, own_id: str | None = None, **arguments: Any) -> Call:
    return Call(Span(0, 0), "", index, name, arguments, "", "call", (), own_id)


def body(name: str, function: Any, **fields: Any) -> Tool:
    """A tool that reads, out of a function of the arguments and the context."""
    return Tool(name=name, function=function, **{"mode": "read", **fields})


def returning(value: Any, name: str = "give", **fields: Any) -> Tool:
    return body(name, lambda arguments, context: value, **fields)


def run_one(made: Tool, **options: Any) -> Result:
    (result,) = Executor(Registry([made]), **options).run_sync([call(made.name)])
    return result


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Assert that what runs in it takes no longer, SLACK and what the machine itself was late by not counted."""
    late = 0.0
    done = threading.Event()

    def measure() -> None:
        nonlocal late
        while not done.is_set():
            before = time.monotonic()
            time.sleep(0.01)
            late += max(0, time.monotonic() - before - 0.01)

    thread = threading.Thread(target=measure, daemon=True)
    thread.start()
    start = time.monotonic()
    yield
    taken = time.monotonic() - start
    done.set()
    thread.join()
    assert taken < seconds + SLACK + late, f"{late:.3f} s of it were the machine's"


def wait_for(condition: Any, seconds: float = 5.0) -> None:
    """Wait until something that another thread does has happened."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


# Tools that misbehave.

RELEASE = threading.Event()  # ends the bodies that a test has finished with


def sleeps(arguments, context):
    RELEASE.wait(20)


def busy_loops(arguments, context):
    while not RELEASE.is_set():
        pass


def blocks_in_c(arguments, context):
    lock = threading.Lock()
    lock.acquire()
    while not RELEASE.is_set():
        lock.acquire(timeout=0.5)


def lifts_its_limit(arguments, context):
    object.__setattr__(context, "deadline", None)
    object.__setattr__(context, "cancel", None)
    RELEASE.wait(20)


def hangs_when_it_is_told_to_stop(arguments, context):
    context.cancel.listen(lambda: RELEASE.wait(20))
    RELEASE.wait(20)


async def sleeps_async(arguments, context):
    await asyncio.sleep(20)


async def swallows_cancellation(arguments, context):
    while not RELEASE.is_set():
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            pass


async def cleans_up_for_long(arguments, context):
    try:
        await asyncio.sleep(20)
    finally:
        while not RELEASE.is_set():
            await asyncio.sleep(0.05)


async def blocks_its_loop(arguments, context):
    RELEASE.wait(20)


async def busy_loops_async(arguments, context):
    while not RELEASE.is_set():
        pass


@pytest.fixture
def release():
    RELEASE.clear()
    yield
    RELEASE.set()


HANGS = [
    *(sleeps, busy_loops, blocks_in_c, lifts_its_limit, hangs_when_it_is_told_to_stop),
    *(sleeps_async, swallows_cancellation, cleans_up_for_long, blocks_its_loop, busy_loops_async),
]


@pytest.mark.parametrize("function", HANGS, ids=lambda function: function.__name__)
def test_a_tool_that_hangs_is_given_up_in_time_and_harms_no_other(function, release):
    executor = Executor(Registry([body("hang", function), returning(7, timeout_seconds=20)]), timeout_seconds=LIMIT)
    with in_time(LIMIT):
        hung, good = executor.run_sync([call("hang"), call("give", 1)])
    assert hung.outcome == "timeout"
    assert hung.error.message == "the tool did not answer within 0.2 seconds"
    assert good.data == 7
    RELEASE.set()
    wait_for(lambda: executor.abandoned == 0)


def test_tools_that_spin_make_the_next_timeout_no_later(release):
    spinning = Registry([body("spin", busy_loops)])
    executor = Executor(spinning, timeout_seconds=LIMIT, breaker=lambda: Breaker(failures=99))
    for place in range(8):
        with in_time(LIMIT):
            (result,) = executor.run_sync([call("spin", place)])
        assert result.outcome == "timeout"
    RELEASE.set()
    wait_for(lambda: executor.abandoned == 0)


def test_turns_of_threads_are_short_while_bodies_run_and_then_what_they_were(monkeypatch):
    chosen = [0.003]
    fake = SimpleNamespace(getswitchinterval=lambda: chosen[-1], setswitchinterval=chosen.append)
    monkeypatch.setattr(workers, "sys", fake)
    turns = workers._Turns()
    for change in (1, 1, -1, -1):
        turns.add(change)
    assert chosen == [0.003, workers._TURN_SECONDS, 0.003]
    turns.add(1)
    turns._begin()  # as in the child of a fork
    assert chosen[3:] == [workers._TURN_SECONDS, 0.003]
    chosen.append(0.0001)  # the host's own is shorter
    turns.add(1)
    assert chosen[-1] == 0.0001


LOOP_HANGS = [sleeps_async, swallows_cancellation, cleans_up_for_long]


@pytest.mark.parametrize("function", LOOP_HANGS, ids=lambda function: function.__name__)
def test_in_the_callers_loop_a_tool_that_hangs_is_given_up_too(function, release):
    tools = [body("hang", function, runs_in="loop"), returning(7, timeout_seconds=20)]
    executor = Executor(Registry(tools), timeout_seconds=LIMIT)

    async def run() -> list[Result]:
        with in_time(LIMIT):
            results = await executor.run([call("hang"), call("give", 1)])
        RELEASE.set()
        while executor.abandoned:
            await asyncio.sleep(0.01)
        return results

    hung, good = asyncio.run(run())
    assert hung.outcome == "timeout"
    assert good.data == 7


async def refuses_to_end(*given):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


def ended(main) -> bool:
    """Whether `asyncio.run(main())` comes to its end, with all that was left in its loop."""
    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


def test_a_tool_that_refuses_to_end_does_not_keep_its_loop_from_its_end():
    executor = Executor(Registry([body("hang", refuses_to_end, runs_in="loop")]), timeout_seconds=LIMIT)
    outcomes = []

    async def main():
        outcomes.extend(result.outcome for result in await executor.run([call("hang")]))
        assert executor.abandoned == 1

    assert ended(main)
    assert (outcomes, executor.abandoned) == (["timeout"], 0)


def test_nor_does_an_approver_or_a_model():
    executor = Executor(Registry([body("write", lambda arguments, context: 1, mode="write")]), approve=refuses_to_end)
    steps = []

    async def asked():
        context = Invocation(deadline=time.monotonic() + LIMIT)
        steps.extend(result.outcome for result in await executor.run([call("write")], context))

    async def model(request):
        yield "Well."
        await refuses_to_end()

    async def cancelled():
        cancel = Cancel()
        events = []
        async for event in Session(Registry()).run(model, "Go.", cancel=cancel):
            events.append(event)
            if len(events) == 2:  # it has begun to speak
                cancel.set()
        steps.append(events[-1].kind)

    assert ended(asked)
    assert ended(cancelled)
    assert steps == ["timeout", "cancelled"]


def test_what_was_given_up_has_time_to_clean_up_when_its_loop_ends():
    cleaned = []

    async def cleans_up(arguments, context):
        for step in range(3):
            try:
                async with asyncio.timeout(0.01 if step else None):
                    await asyncio.sleep(3600)
            except (asyncio.CancelledError, TimeoutError):
                cleaned.append(step)
        await asyncio.sleep(0.2)
        cleaned.append("all")

    executor = Executor(Registry([body("clean", cleans_up, runs_in="loop")]), timeout_seconds=LIMIT)

    async def main():
        await executor.run([call("clean")])

    assert ended(main)
    assert cleaned[-1] == "all"


def raising(error: BaseException) -> Any:
    def sync(arguments, context):
        raise error

    async def later(arguments, context):
        raise error

    return sync, later


async def a_task_of_its_own_exits(arguments, context):
    async def exits():
        raise SystemExit(3)

    await asyncio.gather(exits(), asyncio.sleep(20))


ERRORS = [
    SystemExit(3),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    GeneratorExit(),
    ValueError("secret"),
    StopIteration(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["thread", "thread-async", "loop"])
def test_whatever_a_tool_raises_is_a_result(error, where):
    sync, later = raising(error)
    made = body("bad", sync if where == "thread" else later, runs_in=where.partition("-")[0])
    executor = Executor(Registry([made, returning(7)]))
    bad, good = asyncio.run(executor.run([call("bad"), call("give", 1)]))
    name = "RuntimeError" if where != "thread" and isinstance(error, StopIteration) else type(error).__name__
    assert (bad.outcome, bad.error.code, bad.error.message) == ("tool-error", name, f"the tool raised {name}")
    assert good.data == 7
    assert executor.abandoned == 0


class Nameless(type):
    """The type of exception types that lie about their name, or never say it."""

    answer: Any = None

    @property
    def __name__(cls):
        return cls.answer()


def named(answer):
    return Nameless("Rude", (Exception,), {"answer": staticmethod(answer)})()


def exits():
    raise SystemExit(3)


class LyingText(str):
    """A text whose own methods say other things than it is."""

    def __len__(self):
        return 0

    def __getitem__(self, at):
        return LyingText("z" * 100_000)

    def __str__(self):
        return self

    def encode(self, *_):
        raise SystemExit(3)


RUDE = [
    named(lambda: "L" * 10**6),
    named(object),
    named(lambda: "\ud800"),
    named(lambda: RELEASE.wait(20)),
    named(exits),
    ToolError("code", type("Hangs", (), {"__str__": lambda self: str(RELEASE.wait(20))})()),  # type: ignore[arg-type]
    ToolError("code", type("Exits", (), {"__str__": lambda self: exits()})()),  # type: ignore[arg-type]
    ToolError(LyingText("l" * 10**5), LyingText("l" * 10**5), LyingText("l" * 10**5)),
    type("L" * 10**6, (Exception,), {})(),
]


@pytest.mark.parametrize("number", range(len(RUDE)))  # not the error itself: where a test fails, pytest shows them
@pytest.mark.parametrize("way", ["raised", "yielded", "async", "of a value"])
def test_what_an_exception_says_of_itself_harms_nobody_either(number, way, release):
    error = RUDE[number]

    def raised(arguments, context):
        raise error

    def yielded(arguments, context):
        yield 1
        raise error

    async def later(arguments, context):
        raise error

    class Rude(dict):
        def items(self):
            raise error

    bodies = {"raised": raised, "yielded": yielded, "async": later, "of a value": lambda *_: Rude(a=1)}
    executor = Executor(Registry([body("rude", bodies[way]), returning(7, timeout_seconds=20)]), timeout_seconds=LIMIT)
    with in_time(LIMIT):
        rude, good = executor.run_sync([call("rude"), call("give", 1)])
    assert rude.outcome in ("tool-error", "unserialisable", "timeout", "ok")
    assert len(json.dumps(rude.to_dict()).encode()) < 17_000
    assert good.data == 7


def test_an_exception_that_cannot_say_what_it_is_is_told_by_its_type():
    class BrokenError(Exception):
        def __str__(self):
            raise KeyError("secret")

    def yielded(arguments, context):
        yield 1
        raise BrokenError

    coded = ToolError("code", BrokenError())  # type: ignore[arg-type]
    ways = ((raising(BrokenError())[0], "BrokenError"), (yielded, "BrokenError"), (raising(coded)[0], "ToolError"))
    for function, name in ways:
        result = run_one(body("broken", function), error_text=True)
        assert (result.outcome, result.error.code) == ("tool-error", name)
        assert result.error.message == f"the tool raised {name}"


def test_a_text_that_lies_is_taken_for_what_it_is():
    for value in (LyingText("q" * 10**5), {LyingText("q" * 10**5): 1}, [LyingText("q" * 10**5)]):
        data = run_one(returning(value)).data
        text = data if isinstance(data, str) else json.dumps(data)
        assert type(data) is not LyingText
        assert text.count("q") > 9000
        assert len(text) < 17_000


def test_what_a_task_of_a_tool_raises_is_its_result_too():
    assert run_one(body("bad", a_task_of_its_own_exits)).error.code == "SystemExit"


async def leaves_a_task_behind(arguments, context):
    async def forever():
        try:
            await asyncio.sleep(20)
        finally:
            LEFT.append(1)

    LEFT.append(asyncio.ensure_future(forever()))
    await asyncio.sleep(0)
    return "done"


LEFT: list[Any] = []


def test_what_an_async_tool_leaves_running_is_cancelled():
    LEFT.clear()
    assert run_one(body("leave", leaves_a_task_behind)).data == "done"
    wait_for(lambda: len(LEFT) == 2)


@pytest.mark.parametrize("seconds", [0.0, 3600.0])
def test_what_an_async_tool_leaves_open_is_closed(seconds, monkeypatch):
    """A generator that somebody still holds gives back what it has; whoever takes long about it is left, as a task."""
    monkeypatch.setattr(workers, "_WIND_UP_SECONDS", LIMIT)
    LEFT.clear()

    async def rows():
        try:
            yield 1
        finally:
            LEFT.append("closing")
            await asyncio.sleep(seconds)
            LEFT.append("closed")

    async def first_row(arguments, context):
        LEFT.append(rows())
        return await anext(LEFT[0])

    executor = Executor(Registry([body("first", first_row)]))
    assert executor.run_sync([call("first")])[0].data == 1
    wait_for(lambda: LEFT[1:] == ["closing", "closed"][: 1 if seconds else 2])
    wait_for(lambda: not [each for each in threading.enumerate() if each.name == "callmark-tool"])


def test_tool_errors_reach_the_model_as_data_and_other_texts_only_when_asked():
    def fails(arguments, context):
        raise ToolError("no-such-city", "there is no city " + "x" * 5000, "try another one")

    result = run_one(body("fail", fails))
    assert (result.outcome, result.error.code, result.error.hint) == ("tool-error", "no-such-city", "try another one")
    assert len(result.error.message) <= 2048

    def says_little(arguments, context):
        raise ToolError("gone", "")

    error = run_one(body("little", says_little)).error
    assert (error.message, error.hint) == ("gone", "")
    sync, _ = raising(ValueError("the password is 1234"))
    assert "1234" not in json.dumps(run_one(body("fail", sync)).to_dict())
    assert (
        run_one(body("fail", sync), error_text=True).error.message == "the tool raised ValueError: the password is 1234"
    )
    sync, _ = raising(ValueError())
    assert run_one(body("fail", sync), error_text=True).error.message == "the tool raised ValueError"
    assert ToolError("c").message == "c"


def test_what_a_task_of_a_tool_raises_is_told_as_if_the_tool_had():
    async def fails(arguments, context):
        async with asyncio.TaskGroup() as outer:
            outer.create_task(within(raising(ToolError("gone", "no such city"))[1]))

    async def within(failing):
        async with asyncio.TaskGroup() as inner:
            inner.create_task(failing(None, None))

    result = run_one(body("fail", fails))
    assert (result.outcome, result.error.code, result.error.message) == ("tool-error", "gone", "no such city")
    one, several = (ExceptionGroup("g", errors) for errors in ([ValueError("a")], [ValueError("a"), ToolError("b")]))
    assert run_one(body("fail", raising(one)[0])).error.message == "the tool raised ValueError"
    assert run_one(body("fail", raising(several)[0])).error.message == "the tool raised ExceptionGroup"


def test_abandoned_tools_are_counted_and_capped(release):
    tools = [body("hang", sleeps), returning(7, timeout_seconds=20)]
    executor = Executor(Registry(tools), timeout_seconds=0.05, abandoned_limit=2)
    for number in range(2):
        assert executor.run_sync([call("hang")])[0].outcome == "timeout"
        assert executor.abandoned == number + 1
    refused = executor.run_sync([call("give")])[0]
    assert (refused.outcome, refused.error.message) == ("saturated", "2 calls that were given up are still running")
    assert repr(executor) == "Executor(Registry(2 tools), 2 abandoned)"
    RELEASE.set()
    wait_for(lambda: executor.abandoned == 0)
    assert executor.run_sync([call("give")])[0].data == 7


class LostItsSubject:
    @property
    def __class__(self):
        raise RuntimeError("out of context")


@dataclass
class Halfway:
    first: int
    second: int


class LosesItsItems(dict):
    def items(self):
        raise OSError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Halfway.__new__(Halfway), "<Halfway>"),
        (LosesItsItems(a=1), "<LosesItsItems>"),
        (LostItsSubject(), "<LostItsSubject>"),
        ((1 // 0 for _ in [1]), "<generator>"),
    ],
    ids=["halfway", "items", "class", "generator"],
)
def test_a_value_that_cannot_be_read_is_told_by_its_type_and_costs_no_other(value, shown):
    result = run_one(body("give", lambda *_: [1, value, 2]))
    assert (result.outcome, result.data, result.truncated) == ("ok", [1, shown, 2], True)


def test_a_value_that_cannot_be_asked_what_it_is_is_no_failure_of_its_tool():
    assert run_one(body("give", lambda *_: LostItsSubject())).data == "<LostItsSubject>"


async def blocks_a_thread(arguments, context):
    await asyncio.to_thread(RELEASE.wait, 20)


async def blocks_a_thread_of_its_loop(arguments, context):
    await asyncio.get_running_loop().run_in_executor(None, RELEASE.wait, 20)


@pytest.mark.parametrize("function", [blocks_a_thread, blocks_a_thread_of_its_loop], ids=lambda each: each.__name__)
def test_what_an_async_tool_left_in_threads_is_counted_and_capped(function, release):
    executor = Executor(Registry([body("hang", function)]), timeout_seconds=0.05, abandoned_limit=2)
    for _ in range(2):
        assert executor.run_sync([call("hang")])[0].outcome == "timeout"
    time.sleep(2 * workers._WIND_UP_SECONDS)  # its loop is closed by then
    assert executor.abandoned == 2
    assert executor.run_sync([call("hang")])[0].outcome == "saturated"
    RELEASE.set()
    wait_for(lambda: executor.abandoned == 0)


def test_under_review_no_write_runs_that_a_tool_calls_in_a_thread_of_its_loop():
    ran: list[int] = []
    plain = Executor(Registry([body("send", lambda *_: ran.append(1), mode="write", approval=False)]))

    async def calls(arguments, context):
        loop = asyncio.get_running_loop()
        return (await loop.run_in_executor(None, plain.run_sync, [call("send")]))[0].data

    assert run_one(body("outer", calls), review=True).data == SIMULATED
    assert ran == []


def test_what_an_async_tool_left_in_a_thread_is_counted_also_behind_its_answer(release):
    async def leaves(arguments, context):
        asyncio.get_running_loop().run_in_executor(None, RELEASE.wait, 20)
        return 7

    executor = Executor(Registry([body("leave", leaves)]))
    assert executor.run_sync([call("leave")])[0].data == 7
    wait_for(lambda: executor.abandoned == 1)
    RELEASE.set()
    wait_for(lambda: executor.abandoned == 0)


def test_no_thread_of_a_tool_keeps_a_program_from_its_end():
    program = """
import asyncio, time
from callmark import Executor, Registry, parse, tool

@tool(mode="read", timeout_seconds=0.1)
async def hang():
    await asyncio.to_thread(time.sleep, 60)

print(Executor(Registry([hang])).run_sync(parse("[CALL: hang()]").calls)[0].outcome)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert ran.stdout == "timeout\n"


def test_threads_of_a_tools_loop_do_what_asyncio_asks_of_them():
    async def counts(arguments, context):
        loop = asyncio.get_running_loop()
        found = await asyncio.gather(*(loop.run_in_executor(None, lambda: 1) for _ in range(100)))
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(divmod, 1, 0)
        await loop.shutdown_default_executor()
        with pytest.raises(RuntimeError):
            loop.run_in_executor(None, len, "")
        return sum(found)

    assert run_one(body("count", counts)).data == 100


def test_a_future_that_was_cancelled_in_the_queue_of_threads_is_not_run():
    used = Threads()
    ran, hold = [], threading.Event()
    for _ in range(32):
        used.submit(hold.wait, 20)
    used.submit(ran.append, 1).cancel()
    last = used.submit(ran.append, 2)
    hold.set()
    last.result(20)
    hold.clear()
    for _ in range(32):
        used.submit(hold.wait, 20)
    waiting = used.submit(ran.append, 3)
    used.shutdown(wait=False, cancel_futures=True)
    hold.set()
    assert waiting.cancelled()
    assert used.ended(20)
    assert ran == [2]


def test_where_no_thread_starts_nothing_runs(monkeypatch):
    def cannot(self):
        raise RuntimeError("can't start new thread")

    executor = Executor(Registry([returning(7)]))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", cannot)
        assert executor.run_sync([call("give")])[0].outcome == "saturated"
    assert executor.run_sync([call("give")])[0].data == 7


def test_a_thread_that_begins_too_late_runs_nothing_and_its_tool_did_not_fail(monkeypatch):
    threads: list[threading.Thread] = []
    ran: list[str] = []
    made = body("note", lambda arguments, context: ran.append("note"), mode="write", approval=False)
    executor = Executor(Registry([made]), timeout_seconds=0.05, breaker=lambda: Breaker(failures=1))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda thread: threads.append(thread))
        (late,) = executor.run_sync([call("note")], message="1")
    assert late.error == TOO_LATE
    assert executor.breaker("note").state == "closed"
    assert executor.abandoned == 1
    for thread in threads:
        thread.start()
    wait_for(lambda: not executor.abandoned)
    assert not ran
    assert executor.run_sync([call("note")], message="1")[0].ok
    assert ran == ["note"]


def test_a_tools_own_timeout_and_the_deadline_of_a_request_both_count(release):
    slow = body("slow", sleeps, timeout_seconds=0.05)
    assert run_one(slow).error.message == "the tool did not answer within 0.05 seconds"
    executor = Executor(Registry([body("hang", sleeps), returning(7)]))
    with in_time(0.1):
        context = Invocation(deadline=time.monotonic() + 0.1)  # in the executor's own clock, where it has none
        assert executor.run_sync([call("hang")], context)[0].outcome == "timeout"
    late = executor.run_sync([call("give")], context)[0]
    assert late.error.message == "there was no time left to begin the call"
    elsewhere = Invocation(deadline=5.0, clock=lambda: 4.9)
    assert executor.run_sync([call("give")], elsewhere)[0].ok


def test_a_tool_sees_its_context_and_its_variables():
    seen: list[Invocation] = []
    heard: list[Any] = []

    def look(arguments, context):
        seen.append(context)
        context.report("half")
        return context.caller["role"]

    executor = Executor(Registry([body("look", look)]), timeout_seconds=5)
    context = Invocation(request_id="r", caller={"role": "judge"}, progress=heard.append)
    assert executor.run_sync([call("look")], context)[0].data == "judge"
    assert 4 < seen[0].remaining_seconds() <= 5
    assert len(seen[0].idempotency_key) == 64
    assert heard == ["half"]


# Cancelling.


def test_cancel_ends_what_waits_and_starts_nothing_new(release):
    cancel = Cancel()
    began = threading.Event()
    stopped: list[bool] = []

    def patient(arguments, context):
        began.set()
        stopped.append(context.cancel.wait(10))
        RELEASE.wait(20)

    ran: list[int] = []
    executor = Executor(
        Registry([body("patient", patient, mode="write", approval=False), body("next", lambda *_: ran.append(1))])
    )
    results: list[Result] = []
    calls = [call("patient"), call("next", 1)]
    runner = threading.Thread(target=lambda: results.extend(executor.run_sync(calls, Invocation(cancel=cancel))))
    runner.start()
    assert began.wait(5)
    with in_time(0):
        cancel.set()
        runner.join(5)
    assert [result.outcome for result in results] == ["cancelled", "cancelled"]
    assert [result.error.message for result in results] == [
        "the call was cancelled while it ran",
        "the call was cancelled before it began",
    ]
    wait_for(lambda: stopped == [True])
    assert ran == []
    assert executor.stats()["patient"].breaker == "closed"


def test_what_was_cancelled_before_it_began_never_runs():
    ran: set[tuple[int, int]] = set()
    executor = Executor(Registry([body("note", lambda arguments, context: ran.add(tuple(arguments["at"])))]))
    said: set[str] = set()
    for number in range(30):
        cancel = Cancel()
        timer = threading.Timer(number / 5000, cancel.set)
        timer.start()
        calls = [call("note", index, at=[number, index]) for index in range(12)]
        results = executor.run_sync(calls, Invocation(cancel=cancel))
        timer.join()
        wait_for(lambda: not executor._bodies._workers._alive)
        for result in results:
            began = result.ok or "while it ran" in result.error.message
            assert ((number, result.index) in ran) is began
            said.add(result.outcome)
    assert said == {"ok", "cancelled"}


def test_an_async_tool_is_cancelled_in_its_own_loop():
    ended = threading.Event()

    async def patient(arguments, context):
        try:
            await asyncio.sleep(20)
        finally:
            ended.set()

    assert run_one(body("patient", patient), timeout_seconds=0.05).outcome == "timeout"
    assert ended.wait(5)


async def raises_when_cancelled(arguments, context):
    try:
        await asyncio.sleep(20)
    finally:
        raise OSError("its connection was closed")


def raises_at_the_signal(arguments, context):
    context.cancel.wait(20)
    raise OSError("its connection was closed")


@pytest.mark.parametrize(
    ("function", "runs_in"),
    [
        *((sleeps_async, "loop"), (sleeps_async, "thread"), (raises_when_cancelled, "loop")),
        *((raises_when_cancelled, "thread"), (raises_at_the_signal, "thread")),
    ],
)
def test_a_call_that_its_host_cancels_is_no_failure_of_the_tool(function, runs_in):
    now = 0.0
    breaker = Breaker(failures=1, seconds=1.0, clock=lambda: now)
    breaker.failed(breaker.admit())
    now = 2.0
    executor = Executor(Registry([body("wait", function, runs_in=runs_in)]), breaker=lambda: breaker)

    async def cancelled() -> Result:
        cancel = Cancel()
        running = asyncio.ensure_future(executor.run([call("wait")], Invocation(cancel=cancel)))
        while not executor.running and not running.done():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        cancel.set()
        return (await running)[0]

    async def often() -> list[Result]:
        return [await cancelled() for _ in range(20)]

    results = asyncio.run(often())
    assert {result.outcome for result in results} == {"cancelled"}
    assert breaker.state == "half-open"  # and its permit is back
    wait_for(lambda: not executor.abandoned)


@pytest.mark.parametrize(
    ("says", "outcome"),
    [("half of it", "ok"), (ToolError("half", "half of it"), "tool-error"), (OSError("closed"), "cancelled")],
)
def test_what_a_tool_says_when_it_is_cancelled_is_its_result(says, outcome):
    cancel = Cancel()

    async def hurries(arguments, context):
        cancel.set()  # what it says now is there before anybody else hears of that
        if isinstance(says, Exception):
            raise says
        return says

    executor = Executor(Registry([body("hurry", hurries, runs_in="loop")]), breaker=lambda: Breaker(failures=1))
    (result,) = asyncio.run(executor.run([call("hurry")], Invocation(cancel=cancel)))
    assert result.outcome == outcome
    assert executor.breaker("hurry").state == "closed"


def test_a_tool_that_cancels_itself_fails():
    async def gives_up(arguments, context):
        raise asyncio.CancelledError

    assert run_one(body("give_up", gives_up)).error.code == "CancelledError"


def test_a_call_that_was_not_begun_may_run_later():
    ran: list[int] = []
    executor = Executor(Registry([body("do", lambda *_: ran.append(1), mode="write", approval=False)]))
    cancel = Cancel()
    cancel.set()
    place = {"session": "s", "message": "m"}
    assert executor.run_sync([call("do")], Invocation(cancel=cancel), **place)[0].outcome == "cancelled"
    assert executor.run_sync([call("do")], **place)[0].ok
    assert executor.run_sync([call("do")], **place)[0].replayed
    assert ran == [1]


def test_a_worker_that_comes_too_late_does_not_begin():
    class Slow(Workers):
        def in_thread(self, body, finish, delivery, cancel):
            cancel._parents[0].set()  # before the thread gets to run
            return super().in_thread(body, finish, delivery, cancel)

    ran: list[int] = []
    executor = Executor(Registry([body("do", lambda *_: ran.append(1))]))
    executor._bodies._workers = Slow()
    (result,) = executor.run_sync([call("do")], Invocation(cancel=Cancel()))
    assert result.error.message == "the call was cancelled before it began"
    wait_for(lambda: not executor._bodies._workers._alive)
    assert ran == []


def test_a_task_of_the_loop_that_comes_too_late_does_not_begin():
    ran: list[int] = []
    executor = Executor(Registry([body("do", lambda *_: ran.append(1), runs_in="loop")]))

    class Slow(Workers):
        def in_loop(self, body, finish, delivery, cancel):
            cancel.begin = lambda: False
            return super().in_loop(body, finish, delivery, cancel)

    executor._bodies._workers = Slow()
    assert asyncio.run(executor.run([call("do")], Invocation(deadline=time.monotonic() + 0.05)))[0].outcome == "timeout"
    assert ran == []


@pytest.mark.parametrize("when", ["running", "waiting", "asking"])
def test_who_cancels_the_task_leaves_no_claim_behind(when, release):
    ran: list[str] = []
    began = threading.Event()

    def slow(arguments, context):
        ran.append("slow")
        began.set()
        context.cancel.wait(20)

    async def approve(approval):
        if when == "asking" and not began.is_set():
            began.set()
            await asyncio.sleep(20)
        return True

    tools = [body("slow", slow, mode="write"), body("do", lambda *_: ran.append("do"), mode="write")]
    executor = Executor(Registry(tools), approve=approve)
    place = {"session": "s", "message": "m"}
    calls = [call("slow"), call("do", 1)]

    async def run() -> None:
        task = asyncio.ensure_future(executor.run(calls, **place))
        while not began.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        when_again = await executor.run(calls[1:], **place)
        assert when_again[0].ok
        if when != "asking":
            (first,) = await executor.run(calls[:1], **place)
            assert (first.outcome, first.replayed) == ("cancelled", True)
            assert first.error.hint == "it may still happen"

    asyncio.run(run())
    assert ran == (["do"] if when == "asking" else ["slow", "do"])


def test_a_write_that_ran_is_on_record_also_where_the_task_is_cancelled():
    records: list[Any] = []
    began = threading.Event()

    def writes(arguments, context):
        began.set()
        context.cancel.wait(5)

    executor = Executor(
        Registry([body("write", writes, mode="write", approval=False), returning(1)]), observers=[records.append]
    )

    async def run() -> None:
        task = asyncio.create_task(executor.run([call("write"), call("give", 1)]))
        while not began.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert [(record.tool, record.outcome) for record in records] == [("write", "cancelled"), ("give", "cancelled")]
    assert executor.stats()["write"].calls == 1


def test_cancelling_what_is_over_does_nothing():
    kept: list[Invocation] = []

    async def keep(arguments, context):
        kept.append(context)

    assert run_one(body("keep", keep)).ok
    wait_for(lambda: not any(thread.name == "callmark-tool" for thread in threading.enumerate()))
    kept[0].cancel.set()
    assert kept[0].cancelled


def test_an_object_with_too_many_keys_is_cut():
    data, truncated = rendered({f"key {n}": n for n in range(10**6)}, 100_000)
    assert truncated
    assert data.startswith('{"key 0": 0, ')
    assert data.endswith(' more]"}')


def test_signals_tell_each_listener_once():
    heard: list[str] = []
    parent = Cancel()
    child = Cancel(parent)
    child.listen(lambda: heard.append("child"))
    other = Cancel(parent)
    other.leave()
    assert child.wait(0) is False
    parent.set()
    parent.set()
    parent.listen(lambda: heard.append("late"))
    assert heard == ["child", "late"]
    assert (child.is_set(), other.is_set(), Cancel(parent).is_set()) == (True, False, True)
    parent.leave()


def test_what_was_given_up_and_has_time_limits_of_its_own_is_not_left_for_them(monkeypatch):
    monkeypatch.setattr(signals, "_LEAVING_SECONDS", 0.01)

    async def work() -> str:
        with suppress(asyncio.CancelledError):  # it goes on
            await asyncio.sleep(30)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(30)
        await asyncio.sleep(0.1)
        return "done"

    async def give_up() -> str:
        task = leavable_task(work(), lambda: True)
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(give_up()) == "done"


def test_what_ends_as_it_begins_leaves_no_coroutine_that_nobody_awaits():
    async def work() -> None:
        pytest.fail("it began")

    async def end_at_once(begin: Callable[[Any], Any], steps: int) -> None:
        working = work()
        task = begin(working)
        for _ in range(steps):
            await asyncio.sleep(0)
        all_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for each in all_tasks:  # as who ends a loop does
            each.cancel()
        await asyncio.wait(all_tasks)
        assert task.cancelled()
        assert inspect.getcoroutinestate(working) == inspect.CORO_CLOSED

    asyncio.run(end_at_once(lambda working: leavable_task(working, bool), 0))
    asyncio.run(end_at_once(lambda working: asyncio.ensure_future(unless(None, working)), 1))


def test_what_is_awaited_need_be_no_coroutine():
    async def wait() -> int | None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        future.set_result(7)
        return await unless(None, future)

    assert asyncio.run(wait()) == 7


def test_a_bell_rings_once_and_not_at_all_in_a_closed_loop():
    async def make() -> Bell:
        bell = Bell()
        assert await bell.wait(0.01) is False
        bell.ring()
        bell.ring()
        assert await bell.wait() is True
        await asyncio.sleep(0)
        return bell

    asyncio.run(make()).ring()


# Order, isolation, concurrency.


@given(st.lists(st.sampled_from(["good", "bad", "none"]), max_size=6), st.randoms())
def test_results_come_in_the_order_of_the_calls_and_are_as_if_alone(names, random):
    def good(arguments, context):
        time.sleep(arguments["wait"])
        return {"n": arguments["n"]}

    sync, _ = raising(ValueError())
    executor = Executor(Registry([body("good", good), body("bad", sync)]), breaker=lambda: Breaker(failures=99))
    calls = [call(name, n, f"id{n}", n=n, wait=random.choice([0, 0.002])) for n, name in enumerate(names)]
    results = executor.run_sync(calls)
    assert [(result.index, result.id, result.name) for result in results] == [
        (n, f"id{n}", name) for n, name in enumerate(names)
    ]
    for result, made in zip(results, calls, strict=True):
        (alone,) = executor.run_sync([made])
        strip = {"seconds": 0.0}
        assert msgspec.structs.replace(result, **strip) == msgspec.structs.replace(alone, **strip)


def test_reads_run_side_by_side_and_writes_one_after_another():
    gate = threading.Barrier(3)
    log: list[str] = []

    def read(arguments, context):
        gate.wait(5)  # three at once, or nobody gets through

    def write(arguments, context):
        log.append("in")
        time.sleep(0.01)
        log.append("out")

    executor = Executor(
        Registry([body("read", read), body("write", write, mode="write", approval=False)]), timeout_seconds=5
    )
    names = ["read", "read", "read", "write", "write", "read", "read", "read"]
    results = executor.run_sync([call(name, n) for n, name in enumerate(names)])
    assert all(result.ok for result in results)
    assert log == ["in", "out"] * 2


def test_writes_of_several_messages_wait_for_each_other_too():
    log: list[str] = []

    def write(arguments, context):
        log.append("in")
        time.sleep(0.02)
        log.append("out")

    executor = Executor(Registry([body("write", write, mode="write", approval=False)]))

    async def crowd() -> None:
        await asyncio.gather(*(executor.run([call("write")]) for _ in range(5)))

    asyncio.run(crowd())
    assert log == ["in", "out"] * 5


def test_nothing_runs_without_a_place_where_the_clock_is_behind_the_timer(release):
    """A timer may go off before the time has come: by 15 milliseconds on Windows. A write ran beside another then."""
    began = []
    holds = body("holds", lambda *_: began.append(RELEASE.wait(30)), mode="write", approval=False)
    executor = Executor(Registry([holds]))

    async def go() -> Result:
        first = asyncio.create_task(executor.run([call("holds")]))
        while executor.running == 0:
            await asyncio.sleep(0.001)
        second = await executor.run([call("holds")], Invocation(deadline=0.05, clock=lambda: 0.0))
        assert (executor.running, executor.waiting) == (1, 0)
        RELEASE.set()
        await first
        return second[0]

    assert asyncio.run(go()).outcome == "timeout"
    assert began == [True]


def test_a_full_bulkhead_refuses_and_a_deadline_ends_the_wait(release):
    tools = [body("hang", sleeps), returning(7)]
    executor = Executor(Registry(tools), bulkhead=Bulkhead(reads=1, waiting=1), timeout_seconds=0.5)

    async def run() -> list[list[Result]]:
        soon = Invocation(deadline=time.monotonic() + 0.1)
        first = asyncio.ensure_future(executor.run([call("hang")]))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(executor.run([call("give")], soon))
        await asyncio.sleep(0.01)
        third = await executor.run([call("give")])
        return [await first, await second, third]

    (hung,), (late,), (busy,) = asyncio.run(run())
    assert (hung.outcome, busy.outcome) == ("timeout", "busy")
    assert late.error.message == "there was no time left to begin the call"


def test_a_call_that_is_cancelled_while_it_waits_for_a_place_waits_no_longer(release):
    tools = [body("hang", sleeps, timeout_seconds=2.0), returning(7)]
    executor = Executor(Registry(tools), bulkhead=Bulkhead(reads=1))
    cancel = Cancel()

    async def run() -> Result:
        first = asyncio.create_task(executor.run([call("hang")]))
        second = asyncio.create_task(executor.run([call("give")], Invocation(cancel=cancel)))
        while not executor.waiting:
            await asyncio.sleep(0)
        cancel.set()
        (result,) = await second
        assert (first.done(), executor.running, executor.waiting) == (False, 1, 0)
        RELEASE.set()
        await first
        return result

    assert asyncio.run(run()).error.message == "the call was cancelled before it began"


def test_the_breaker_of_a_tool_opens_and_half_open_lets_one_body_run():
    clock = [0.0]
    ran: list[int] = []
    failing = [True]

    def flaky(arguments, context):
        ran.append(1)
        if failing[0]:
            raise OSError("down")
        time.sleep(0.05)

    def new_breaker() -> Breaker:
        return Breaker(failures=2, seconds=10, clock=lambda: clock[0])

    executor = Executor(Registry([body("flaky", flaky)]), breaker=new_breaker, bulkhead=Bulkhead(reads=50))
    outcomes = [executor.run_sync([call("flaky")])[0].outcome for _ in range(4)]
    assert outcomes == ["tool-error", "tool-error", "breaker-open", "breaker-open"]
    assert len(ran) == 2
    clock[0], failing[0] = 10.0, False

    async def crowd() -> list[list[Result]]:
        return await asyncio.gather(*(executor.run([call("flaky")]) for _ in range(50)))

    assert sorted(result.outcome for (result,) in asyncio.run(crowd())) == ["breaker-open"] * 49 + ["ok"]
    assert len(ran) == 3
    assert executor.stats()["flaky"].breaker == "closed"


def test_a_tool_that_says_no_is_not_broken():
    def fails(arguments, context):
        raise ToolError("no")

    executor = Executor(Registry([body("fail", fails)]), breaker=lambda: Breaker(failures=1))
    assert [executor.run_sync([call("fail")])[0].error.code for _ in range(3)] == ["no"] * 3


def test_the_loop_guard_answers_in_order_and_learns_results():
    guard = LoopGuard(calls=99, turn_calls=99, rounds=99, repeats=2, clock=lambda: 0.0)
    numbers = itertools.count()
    news = body("count", lambda *_: next(numbers))
    executor = Executor(Registry([returning(7), returning(8, "poll", polling=True), news]))
    outcomes = [executor.run_sync([call("give"), call("poll", 1)], guard=guard) for _ in range(3)]
    assert [[result.outcome for result in pair] for pair in outcomes] == [
        ["ok", "ok"],
        ["ok", "ok"],
        ["loop-guard", "ok"],
    ]
    unknown = [executor.run_sync([call("gve")], guard=guard)[0].outcome for _ in range(3)]
    assert unknown == ["unknown-tool", "unknown-tool", "loop-guard"]
    counted = [executor.run_sync([call("count")], guard=guard)[0].data for _ in range(4)]
    assert counted == [0, 1, 2, 3]  # what comes to something else each time is no loop


def test_what_changes_nothing_about_a_call_makes_no_new_one_for_the_loop_guard():
    guard = LoopGuard(calls=99, turn_calls=99, rounds=99, repeats=2, clock=lambda: 0.0)
    executor = Executor(Registry([returning(7, owner="x")]))
    calls = [call("give"), call("x:give", __n=1), call("give", userId="2")]  # the same tool, and reserved fields
    outcomes = [executor.run_sync([each], guard=guard)[0].outcome for each in calls]
    assert outcomes == ["ok", "ok", "loop-guard"]


# Consent.


MISUSED: list[tuple[Any, str, tuple[Any, ...]]] = [
    (lambda wrong: Executor(wrong), "Executor, registry", ([returning(1)], None)),
    *((partial(lambda name, wrong: Executor(Registry(), **{name: wrong}), name), f"Executor, {name}", wrong)
      for name, wrong in {
          "approve": (True,), "announce": ("print",), "timeout_seconds": ("3", None, True), "result_limit": (1e4,),
          "abandoned_limit": ("8", None), "ledger": ("x.db",), "breaker": (Breaker(), None), "bulkhead": (4,),
          "observers": (print, [3], None), "contents": ("x",), "review": (1,), "error_text": (None,), "clock": (3,),
      }.items()),
    *((partial(lambda name, wrong: Executor(Registry()).run_sync([], **{name: wrong}), name), f"run, {name}", wrong)
      for name, wrong in {
          "session": (5, None), "message": (7,), "guard": (True,), "offered": (["look"], Registry([returning(1)])),
          "context": ({"user": 1},),
      }.items()),
    (lambda wrong: Session(wrong), "Session, executor", ([returning(1)], None)),
    *((partial(lambda name, wrong: Session(Registry(), **{name: wrong}), name), f"Session, {name}", wrong)
      for name, wrong in {
          "settings": ({},), "wording": (3,), "system": (None,), "messages": ("hi", ["hi"]), "guard": (5,),
          "session_id": (5,), "context": ({},),
      }.items()),
    (lambda wrong: Session(Registry()).run(wrong), "run, model", (None, "gpt")),
    (lambda wrong: Session(Registry()).run(print, wrong), "run, text", (5, [])),
    *((partial(lambda name, wrong: Settings(**{name: wrong}), name), f"Settings, {name}", wrong)
      for name, wrong in {
          "mode": ("nativ", None), "result_role": ("system",), "only": ("look", (3,)), "retries": ("2", 1.5, True),
          "tools": ("no", 0), "parallel": (None,), "where": ("top",), "prompt": ([],), "nonce": (b"canary",),
          "tool_choice": (None,), "dialect": (5,), "language": (None,),
      }.items()),
    (lambda wrong: LoopGuard(calls=wrong), "LoopGuard, calls", (2.5, "5", True, None)),
    (lambda wrong: LoopGuard(seconds=wrong), "LoopGuard, seconds", ("5", True, None)),
    (lambda wrong: LoopGuard(clock=wrong), "LoopGuard, clock", (5, None)),
    (lambda wrong: Breaker(failures=wrong), "Breaker, failures", (1.5, "x")),
    (lambda wrong: Breaker(listener=wrong), "Breaker, listener", ("x",)),
    (lambda wrong: Bulkhead(reads=wrong), "Bulkhead, reads", (1.5, "x")),
    (lambda wrong: Registry(clock=wrong), "Registry, clock", (3,)),
    (lambda wrong: Registry(reserved=wrong), "Registry, reserved", (3, None)),
    (lambda wrong: Registry(engine=wrong), "Registry, engine", ("x", None)),
    (lambda wrong: SqliteLedger(wrong), "SqliteLedger, path", (5, None)),
    (lambda wrong: OpenAIModel(wrong, "m"), "OpenAIModel, url", (None,)),
    (lambda wrong: OpenAIModel("http://x", "m", key=wrong), "OpenAIModel, key", (None,)),
]  # fmt: skip


@pytest.mark.parametrize(("made", "place", "wrong"), MISUSED, ids=[place for _, place, _ in MISUSED])
def test_what_a_caller_hands_over_wrongly_is_told_where(made, place, wrong):
    for each in wrong:
        with pytest.raises(UsageError, match=f"^{place}: expected ") as raised:
            made(each)
        assert "canary" not in str(raised.value)


def test_calls_that_waited_while_the_breaker_opened_do_not_run():
    ran: list[int] = []

    def fails(arguments: Any, context: Any) -> None:
        ran.append(1)
        raise OSError

    executor = Executor(Registry([body("bad", fails)]), breaker=lambda: Breaker(failures=3), bulkhead=Bulkhead(reads=1))
    results = executor.run_sync([call("bad", index, n=index) for index in range(20)])
    assert [result.outcome for result in results] == ["tool-error"] * 3 + ["breaker-open"] * 17
    assert len(ran) == 3
    assert executor.running == executor.waiting == 0


def test_without_an_approver_nothing_is_written():
    ran: list[int] = []
    made = body("do", lambda *_: ran.append(1), mode="write")
    assert run_one(made).outcome == "denied"
    sync, later = raising(ValueError())
    for approve in (lambda approval: False, lambda approval: 1, sync, later, lambda approval: None):
        assert run_one(made, approve=approve).outcome == "denied"
    assert ran == []
    assert run_one(made, approve=lambda approval: True).ok
    assert ran == [1]


def test_what_was_approved_is_what_runs():
    seen: list[Any] = []
    said: list[str] = []

    def approve(approval):
        said.append(approval.message)
        approval.arguments["to"]["name"] = "Eve"
        source.arguments["to"]["name"] = "Eve"
        assert repr(approval) == "Approval(mail)"
        return True

    def message(arguments):
        arguments["to"]["name"] = "Eve"
        return "sending mail"

    made = body("mail", lambda arguments, context: seen.append(arguments), mode="write", format_message=message)
    source = call("mail", to={"name": "Mia"})
    Executor(Registry([made]), approve=approve).run_sync([source])
    assert seen == [{"to": {"name": "Mia"}}]
    sync, _ = raising(ValueError())
    silent = body("mail", lambda arguments, context: 1, mode="write", format_message=sync)
    Executor(Registry([silent]), approve=lambda approval: said.append(approval.message)).run_sync([call("mail", to=1)])
    assert said == ["sending mail", ""]


def test_under_review_no_write_runs_and_nobody_is_asked():
    ran: list[str] = []
    tools = [
        body("write", lambda *_: ran.append("write"), mode="write"),
        body("careful", lambda *_: ran.append("careful"), mode="write", simulate=lambda *_: "would"),
        body("read", lambda *_: "read"),
        body("secret", lambda *_: "secret", approval=True),
    ]
    executor = Executor(Registry(tools), review=True)
    results = executor.run_sync([call(name, n) for n, name in enumerate(["write", "careful", "read", "secret"])])
    assert [result.data for result in results] == [SIMULATED, "would", "read", None]
    assert results[3].outcome == "denied"
    assert ran == []


def test_who_says_whether_it_is_offered_for_a_request_under_review_is_under_review_too():
    ran: list[int] = []
    send = body("send", lambda *_: ran.append(1), mode="write", approval=False)
    asks = returning(1, "asks", should_register=lambda context: executor.run_sync([call("send")])[0].ok)
    executor = Executor(Registry([send, asks]))
    assert asks in asyncio.run(executor.offered(Invocation(review=True)))
    assert ran == []


WAYS = ["invoke", "invoke with a context", "a task", "a thread", "an executor", "a thread's executor", "a session"]


@pytest.mark.parametrize("inner", [*WAYS, "should_register"])
@pytest.mark.parametrize("where", ["thread", "loop"])
def test_under_review_no_write_runs_that_a_tool_calls(inner, where):
    """By whatever way it calls it, and with whatever it hands on; only a thread must hand on its context."""
    ran: list[int] = []
    send = body("send", lambda *_: ran.append(1) or "sent", mode="write", approval=False)
    registry = Registry([send])
    plain = Executor(registry)  # that knows of no review
    nested = [call("send")]

    async def session() -> Any:
        session = Session(plain, settings=Settings(only=("send",)))
        answers = iter(["[CALL: send()]", "Done."])
        (result,) = [each async for each in session.run(lambda _: next(answers), "Go") if isinstance(each, Result)]
        return result.data

    async def calls(arguments: Any, context: Invocation) -> Any:
        match inner:
            case "invoke":
                return await registry.invoke("send", {})
            case "invoke with a context":
                return await registry.invoke("send", {}, Invocation())
            case "a task":
                return await asyncio.create_task(registry.invoke("send", {}))
            case "a thread":
                with ThreadPoolExecutor() as pool:
                    return pool.submit(asyncio.run, registry.invoke("send", {}, context)).result()
            case "an executor":
                return (await plain.run(nested))[0].data
            case "a thread's executor":
                with ThreadPoolExecutor() as pool:
                    return pool.submit(plain.run_sync, nested, context).result()[0].data
            case "a session":
                return await session()
        return SIMULATED

    async def offers(context: Invocation) -> bool:
        return bool(await registry.invoke("send", {}))

    asked = offers if inner == "should_register" else None
    registry.register(body("outer", calls, runs_in=where, should_register=asked))

    async def run(executor: Executor) -> Any:
        offered = await executor.offered(Invocation())
        return (await executor.run([call("outer")], offered=offered))[0].data

    assert asyncio.run(run(Executor(registry, review=True))) == SIMULATED
    assert ran == []
    asyncio.run(run(plain))
    assert ran == [1]


def test_what_was_simulated_may_still_run():
    ran: list[int] = []
    registry, ledger = Registry([body("do", lambda *_: ran.append(1), mode="write", approval=False)]), Ledger()
    place = {"session": "s", "message": "m"}
    assert Executor(registry, ledger=ledger, review=True).run_sync([call("do")], **place)[0].data["simulated"]
    assert not Executor(registry, ledger=ledger).run_sync([call("do")], **place)[0].replayed
    assert ran == [1]


def test_what_a_guard_refused_runs_once_when_its_time_has_come():
    """The same message again: what ran is replayed, and a refusal, which was no outcome, is judged anew."""
    now, ran, healthy = [0.0], [], []

    def act(arguments: Any, context: Invocation) -> Any:
        ran.append(arguments["n"])
        assert healthy or arguments["n"] != 0
        return "done"

    executor = Executor(
        Registry([body("act", act, mode="write", approval=False)]),
        breaker=lambda: Breaker(failures=1, seconds=10.0, clock=lambda: now[0]),
    )
    guard = LoopGuard(calls=2, clock=lambda: now[0])
    message = [call("act", n, n=n) for n in range(3)]

    def outcomes() -> list[tuple[str, bool]]:
        results = executor.run_sync(message, session="s", message="m", guard=guard)
        return [(result.outcome, result.replayed) for result in results]

    failed, ok, again = ("tool-error", True), ("ok", False), ("ok", True)
    assert outcomes() == [("tool-error", False), ("breaker-open", False), ("loop-guard", False)]
    assert outcomes() == [failed, ("loop-guard", False), ("loop-guard", False)]
    healthy.append(1)
    now[0] = 30.0
    assert outcomes() == [failed, ok, ok]
    assert outcomes() == [failed, again, again]
    assert ran == [0, 1, 2]


def test_who_waits_for_a_call_that_a_guard_refuses_does_not_get_past_it():
    ran: list[int] = []
    executor = Executor(Registry([body("act", lambda *_: ran.append(1), mode="write", approval=False)]))
    guard = LoopGuard(calls=1)
    message = [call("act", n, n=n) for n in range(3)]

    async def crowd() -> list[list[Result]]:
        runs = (executor.run(message, session="s", message="m", guard=guard) for _ in range(50))
        return await asyncio.gather(*runs)

    assert {tuple(result.outcome for result in results) for results in asyncio.run(crowd())} == {
        ("ok", "loop-guard", "loop-guard")
    }
    assert ran == [1]


def test_what_is_waited_for_may_raise():
    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(signals.unless(None, fails()))


# What goes wrong before anything runs.


def test_calls_that_mean_nothing_are_results():
    registry = Registry([returning(7), returning(8, "x", owner="a"), returning(9, "x", owner="b")])
    calls = parse("[CALL: gve()] [CALL: x()] [CALL: give([1])]").calls
    results = Executor(registry).run_sync(calls)
    assert [result.outcome for result in results] == ["unknown-tool", "unknown-tool", "invalid-arguments"]
    assert results[0].error.hint == "did you mean 'give'?"
    assert results[0].for_model() == {
        "ok": False,
        "error": {"kind": "unknown-tool", "message": "there is no tool 'gve'", "hint": "did you mean 'give'?"},
    }
    assert "\\u" not in render_result("gve", results[0].for_model())  # its first key could be no tool
    registry.revoke("a")
    assert Executor(registry).run_sync([call("a:x")])[0].outcome == "denied"


def test_misuse_raises():
    executor = Executor(Registry())
    for calls in (call("a"), parse(""), (each for each in [call("a")]), "a"):
        with pytest.raises(UsageError, match="expected Calls, which only reading makes, in a list"):
            executor.run_sync(calls)
    with pytest.raises(UsageError, match=r"arguments: expected JSON values, found: .* set is not"):
        executor.run_sync([call("a", b={1})])
    with pytest.raises(UsageError, match="expected Calls"):
        executor.run_sync(["[CALL: give()]"])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="a Cancel, found Event"):
        executor.run_sync([], Invocation(cancel=threading.Event()))
    for options in ({"timeout_seconds": 0}, {"result_limit": 3}, {"abandoned_limit": 0}):
        ((name, value),) = options.items()
        with pytest.raises(UsageError, match=f"Executor, {name}: expected .*, found {value}"):
            Executor(Registry(), **options)

    async def inside() -> None:
        executor.run_sync([])

    with pytest.raises(UsageError, match="await `run` here"):
        asyncio.run(inside())


# At most once, in one process.


@pytest.mark.parametrize("value", [10**30, -(10**4000), 2**63, 1e300, "\u2028", {"a": [None, True]}])
def test_a_replayed_result_is_the_same(value):
    executor = Executor(Registry([returning(value)]))
    first, again = (executor.run_sync([call("give")], session="s", message="m")[0] for _ in range(2))
    assert again.replayed
    assert msgspec.structs.replace(again, replayed=False) == first


def test_fifty_attempts_at_one_call_run_it_once():
    ran: list[int] = []

    def slow(arguments, context):
        ran.append(1)
        time.sleep(0.05)
        return len(ran)

    executor = Executor(Registry([body("slow", slow, mode="write", approval=False)]), ledger=Ledger())
    place = {"session": "s", "message": "m"}
    gate = threading.Barrier(50)
    results: list[Result] = []

    def attempt() -> None:
        gate.wait(10)
        results.extend(executor.run_sync([call("slow")], **place))

    threads = [threading.Thread(target=attempt) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def crowd() -> list[list[Result]]:
        return await asyncio.gather(*(executor.run([call("slow")], **place) for _ in range(50)))

    results += [result for (result,) in asyncio.run(crowd())]
    assert len(results) == 100
    assert {result.data for result in results} == {1}
    assert sum(not result.replayed for result in results) == 1
    assert ran == [1]
    assert (executor.stats()["slow"].calls, executor.stats()["slow"].replayed) == (1, 99)


def test_fifty_tasks_at_once_run_it_once_whoever_is_cancelled():
    ran: list[int] = []

    def slow(arguments, context):
        ran.append(1)
        time.sleep(0.05)

    executor = Executor(Registry([body("slow", slow, mode="write", approval=False)]))

    async def crowd() -> list[Any]:
        tasks = [asyncio.ensure_future(executor.run([call("slow")], session="s", message="m")) for _ in range(50)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    outcomes = asyncio.run(crowd())
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert len(ran) <= 1
    assert len({outcome[0].outcome for outcome in outcomes[1:]}) == 1


def test_who_waits_for_another_attempt_stops_at_the_deadline(release):
    executor = Executor(Registry([body("hang", sleeps)]), timeout_seconds=0.4)
    place = {"session": "s", "message": "m"}

    async def run() -> tuple[Result, Result]:
        first = asyncio.ensure_future(executor.run([call("hang")], **place))
        await asyncio.sleep(0)
        (second,) = await executor.run([call("hang")], Invocation(deadline=time.monotonic() + 0.05), **place)
        return (await first)[0], second

    first, second = asyncio.run(run())
    assert (first.outcome, second.outcome) == ("timeout", "timeout")
    assert second.error.message == "there was no time left to begin the call"


def test_an_attempt_that_ends_while_another_one_asks_is_seen():
    class Quick(Ledger):
        def watch(self, key, listener):
            self.finish(key, msgspec.json.encode(Result(index=0, name="give", ok=True, data="theirs")))
            return super().watch(key, listener)

    ledger = Quick()
    executor = Executor(Registry([returning("ours")]), ledger=ledger)
    from callmark.running.ledger import call_key

    ledger.claim(call_key("s", "m", 0, "give", {}), "give")
    (result,) = executor.run_sync([call("give")], session="s", message="m")
    assert (result.data, result.replayed) == ("theirs", True)


def test_a_write_that_another_process_took_over_does_not_run():
    class Taken(Ledger):
        def start(self, key):
            return False

    ran: list[int] = []
    do = body("do", lambda *_: ran.append(1), mode="write", approval=False)
    assert run_one(do, ledger=Taken()).outcome == "outcome-unknown"
    assert ran == []


def test_a_ledger_that_fails_is_the_hosts_to_hear_of_and_keeps_nobody_waiting():
    class Broken(Ledger):
        failures = 1

        def finish(self, key, result):
            super().finish(key, result)
            self.failures -= 1
            if self.failures == 0:
                raise OSError("disk full")

    ran: list[int] = []
    executor = Executor(Registry([body("a", lambda *_: ran.append(1), mode="write", approval=False)]), ledger=Broken())
    calls = [call("a", number) for number in range(3)]
    with pytest.raises(OSError, match="disk full"):
        executor.run_sync(calls, session="s", message="m")
    again = executor.run_sync(calls, session="s", message="m")
    assert [(result.outcome, result.replayed) for result in again] == [("ok", True), ("ok", False), ("ok", False)]
    assert len(ran) == 3


def test_where_the_ledger_fails_at_every_call_each_is_given_back():
    class Broken(Ledger):
        def release(self, key):
            super().release(key)
            raise OSError("disk full")

    broken = Broken()
    calls = [call("a", number) for number in range(3)]
    cancel = Cancel()
    cancel.set()
    with pytest.raises(OSError, match="disk full"):
        Executor(Registry([returning(1, "a")]), ledger=broken).run_sync(calls, Invocation(cancel=cancel), message="m")
    assert [broken.claim(call_key("", "m", each.index, "a", {}), "a").state for each in calls] == ["mine"] * 3


def test_what_was_given_back_is_not_given_back_again_when_its_message_ends():
    """Another attempt has it by then, and a third one would run it beside that."""
    ledger = Ledger()
    place = {"session": "s", "message": "m"}

    async def run() -> None:
        began, ended = asyncio.Queue(), {"act": asyncio.Event(), "hold": asyncio.Event()}

        async def waits(name, arguments, context):
            began.put_nowait(name)
            await ended[name].wait()

        writes = {"mode": "write", "approval": False, "runs_in": "loop"}
        registry = Registry([body(name, partial(waits, name), **writes) for name in ended])
        refuses, runs = Executor(registry, ledger=ledger), Executor(registry, ledger=ledger)
        refuses.breaker("act").force("open")
        first = asyncio.create_task(refuses.run([call("act"), call("hold", 1)], **place))
        assert await began.get() == "hold"
        second = asyncio.create_task(runs.run([call("act")], **place))
        assert await began.get() == "act"
        ended["hold"].set()
        assert [result.outcome for result in await first] == ["breaker-open", "ok"]
        assert ledger.claim(call_key("s", "m", 0, "act", {}), "act").state == "running"
        ended["act"].set()
        assert (await second)[0].ok

    asyncio.run(run())


def test_what_a_message_may_call_is_settled_before_it_runs():
    registry = Registry()

    def installs(arguments, context):
        registry.register(returning("unoffered", "late"))
        registry.register(returning("another", "replaced", owner=""), allow_overwrite=True)
        registry.unregister("x:twice", owner="x")

    for made in (body("install", installs, mode="write", approval=False), returning(1, "replaced")):
        registry.register(made)
    for owner in "xy":
        registry.register(returning(owner, "twice", owner=owner))
    offered = [tool for tool in registry.list() if tool.owner != "y"]
    calls = [call(name, index) for index, name in enumerate(["install", "late", "replaced", "twice"])]
    results = Executor(registry).run_sync(calls, offered=offered)
    assert [result.outcome for result in results] == ["ok", *["unknown-tool"] * 3]
    later = Executor(registry).run_sync(calls[1:], offered=registry.list())
    assert [result.data for result in later] == ["unoffered", "another", "y"]


@pytest.mark.parametrize("change", ["revoke", "unregister_owner"])
@pytest.mark.parametrize("waits", ["approval", "bulkhead"])
def test_a_tool_that_goes_while_its_call_waits_does_not_run(change, waits):
    ran: list[str] = []
    goes = body("goes", lambda arguments, context: ran.append("goes"), mode="write", owner="ext")
    held = threading.Event()
    holds = body("holds", lambda arguments, context: held.wait(5), mode="write")
    registry = Registry([goes, holds])
    asked = asyncio.Event()

    async def approve(approval: Any) -> bool:
        if waits == "approval":
            await asked.wait()
        return True

    executor = Executor(registry, approve=approve)

    async def run() -> str:
        first = [asyncio.create_task(executor.run([call("holds")]))] if waits == "bulkhead" else []
        while executor.running < len(first):
            await asyncio.sleep(0.005)
        second = asyncio.create_task(executor.run([call("goes")]))
        while executor.waiting < len(first):
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        getattr(registry, change)("ext")
        asked.set()
        held.set()
        (result,) = await second
        await asyncio.gather(*first)
        return result.outcome

    assert asyncio.run(run()) == "unknown-tool"
    assert ran == []


def test_a_tool_that_changes_its_context_changes_no_others():
    def changes(arguments, context):
        context.caller["role"] = "admin"
        context.messages[0]["content"] = "forged"
        context.messages.clear()

    def shows(arguments, context):
        return [context.caller["role"], context.messages[0]["content"]]

    context = Invocation(caller={"role": "guest"}, messages=({"role": "user", "content": "said"},))
    executor = Executor(Registry([body("change", changes, mode="write", approval=False), body("show", shows)]))
    assert executor.run_sync([call("change"), call("show", 1)], context)[1].data == ["guest", "said"]
    assert (context.caller, context.messages[0]["content"]) == ({"role": "guest"}, "said")


def test_a_name_that_is_no_text_is_a_result_too(tmp_path):
    odd = Call(Span(0, 0), "", 0, "\ud800", {}, "", "openai", (), "\udc00")
    with closing(SqliteLedger(tmp_path / "ledger.db")) as on_disk:
        for ledger in (Ledger(), on_disk):
            (result,) = Executor(Registry([returning(1)]), ledger=ledger).run_sync([odd])
            assert (result.outcome, result.name, result.id) == ("unknown-tool", "\ufffd", "\ufffd")


def test_half_a_surrogate_pair_costs_no_record(tmp_path):
    """Wherever it stands: in an id, a session's name, or arguments that were not read but made by hand."""
    path = tmp_path / "audit.jsonl"
    echo = body("echo", lambda arguments, context: 1, parameters={"properties": {"\ud801": {}}})
    with AuditLog(path) as log:
        executor = Executor(Registry([echo]), observers=[log], contents=True)
        for _ in range(2):
            calls = [call("echo", own_id="\ud800", **{"\ud801": ["\ud802"]})]
            results = executor.run_sync(calls, session="\ud803", message="\ud804")
            assert msgspec.json.decode(msgspec.json.encode(results))[0]["id"] == "\N{REPLACEMENT CHARACTER}"
    first, again = read_audit_log(path)
    assert again["replayed"]
    for record in (first, again):
        assert {record[key] for key in ("id", "session", "message")} == {"\N{REPLACEMENT CHARACTER}"}
        assert record["arguments"] == {"\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}"]}


def test_a_refusal_is_no_longer_than_what_a_tool_may_say():
    made = body("take", lambda *_: 1, parameters={"type": "object", "additionalProperties": {"type": "integer"}})
    asked = Call(Span(0, 0), "", 0, "take", {"k" * 100_000: "no integer"}, "", "call", (), None)
    (result,) = Executor(Registry([made])).run_sync([asked])
    assert result.outcome == "invalid-arguments"
    assert len(result.error.message) <= 2048


# Any value.


class Evil:
    def __repr__(self):
        raise SystemExit(3)


class EvilMapping(dict):
    def items(self):
        raise KeyboardInterrupt


class Silent:
    pass


class Loud(str):
    def __len__(self):
        return 10**9

    def __getitem__(self, key):
        raise SystemExit


class Endless(list):
    def __len__(self):
        return 3

    def __iter__(self):
        return iter("xxx")


class Never(list):
    def __iter__(self):
        return itertools.repeat("x" * 100)


class Model:
    def model_dump(self):
        return {"a": 1}


class Kind(enum.Enum):
    A = "a"


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Box:
    inside: Any


class Struct(msgspec.Struct):
    inside: Any


circular: list[Any] = [1]
circular.append(circular)
deep: list[Any] = []
for _ in range(100_000):
    deep = [deep]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        ("text", "text"),
        (10**30, 10**30),
        (10**5000, "<integer of 16610 bits>"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (-float("inf"), "-Infinity"),
        (1.5, 1.5),
        (b"abc", "abc"),
        (b"\xff", {"base64": "/w=="}),
        (bytearray(b"a"), "a"),
        (memoryview(b"a"), "a"),
        (b"a" * 20_000, "<20000 bytes>"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ({1: 2, "1": 3, None: 4, Evil: 5}, {"1": 2, "1 (str)": 3, "None": 4, str(Evil): 5}),
        ({3, 1, 2}, [1, 2, 3]),
        (deque([(1,)]), [[1]]),
        (circular, [1, "<circular>"]),
        (Kind.A, "a"),
        (Level.LOW, 1),
        (Box(Struct(Box(1))), {"inside": {"inside": {"inside": 1}}}),
        (Model(), {"a": 1}),
        (Evil(), "<Evil>"),
        (Silent(), f"<{__name__}.Silent object>"),
        ((number for number in ()), []),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        ([ValueError("secret")], ["<ValueError>"]),
        (Loud("abc"), "abc"),
        (Endless(), ["x"] * 3),
        (Box, str(Box)),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (Path("a"), "a"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_becomes_json(value, expected):
    result = run_one(returning(value))
    assert result.data == expected
    assert json.loads(json.dumps(result.to_dict()).encode())["data"] == expected
    assert result.ok


def test_values_whose_methods_exit_are_failures():
    result = run_one(returning(EvilMapping()))
    assert result.outcome == "unserialisable"
    assert "KeyboardInterrupt" in result.error.message


def test_a_value_that_never_ends_is_cut():
    result = run_one(returning(Never()))
    assert result.truncated
    assert "characters cut" in result.data


def test_a_representation_that_hangs_is_bounded_too(release):
    class Slow:
        def __str__(self):
            RELEASE.wait(20)
            return ""

    assert run_one(returning(Slow()), timeout_seconds=0.05).outcome == "timeout"


def test_threads_that_are_shut_down_take_nothing():
    threads = Threads()
    assert threads.submit(int, "7").result(5) == 7
    threads.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        threads.submit(int, "7")


def test_who_cancels_an_async_tool_that_is_over_disturbs_nobody():
    """Its event loop is closed by then."""

    async def body() -> int:
        return 7

    cancel, delivery = Cancel(), Delivery(lambda: None)
    run_body(body, lambda outcome: outcome.value, delivery, cancel, Threads())
    cancel.set()
    assert delivery.content == 7


def test_what_an_object_says_is_cut_before_it_is_looked_through():
    """All of a hundred million characters would take longer than most tools have."""

    class Wordy:
        def __repr__(self) -> str:
            return "a" + " at 0x7f" * 10_000_000

    started = time.process_time()
    data, truncated = rendered([Wordy(), {Wordy(): 1}], 1000)
    assert truncated
    assert len(data[0]) < 1000
    assert data[0].startswith("a")
    assert time.process_time() - started < 1.0  # it took six seconds


def test_what_is_nested_too_deep_is_cut():
    result = run_one(returning(deep))
    assert result.truncated
    assert "<nested too deep>" in json.dumps(result.data)


HUGE = st.sampled_from(
    ["x" * 10**6, ["y" * 50] * 10**5, {str(n): n for n in range(10**5)}, '"\\\n' * 9999, "😀" * 9999]
)
NESTED = st.recursive(
    HUGE | st.text() | st.binary() | st.floats() | st.integers() | st.builds(Box, st.text()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=5,
)  # fmt: skip


@given(NESTED, st.sampled_from([256, 300, 1000, 16_384]))
def test_every_result_is_json_within_the_limit_and_says_what_was_cut(value, limit):
    data, truncated = rendered(value, limit)
    text = json.dumps(data, ensure_ascii=False)
    assert len(text) <= limit
    assert json.loads(text.encode()) == data
    assert (
        truncated is (not truncated or any(mark in text for mark in ("characters cut", "more]", "bytes>")))
        or not truncated
    )


@given(st.text(min_size=300), st.sampled_from([256, 260]))
def test_a_cut_text_keeps_its_beginning_and_end(text, limit):
    cut = cut_text(text, limit)
    assert len(json.dumps(cut, ensure_ascii=False)) <= limit
    begin, of, whole, end = re.fullmatch(r"(.*?) … \[(\d+) of (\d+) characters cut\] … (.*)", cut, re.DOTALL).groups()
    assert text.startswith(begin)
    assert text.endswith(end)
    assert len(begin) + int(of) + len(end) == int(whole) == len(text)
    assert cut_text("short", limit) == "short"
    assert cut_text("", limit) == ""


# Tools that call tools, and hosts and tools that keep others waiting.


def nested(inner, mode="write", timeout_seconds=5.0):
    """Return the result of a tool that runs `inner` by the executor that runs it, and the executor."""
    executor = None

    def outer(arguments, context):
        return [result.outcome for result in executor.run_sync([call("inner")])]

    tools = [body("outer", outer, mode=mode), body("inner", inner, mode=mode)]
    executor = Executor(Registry(tools), approve=lambda approval: True, timeout_seconds=timeout_seconds)
    return executor.run_sync([call("outer")])[0], executor


def test_what_a_tool_calls_takes_a_place_where_one_is_free_and_gives_it_back():
    bulkhead = Bulkhead(reads=2)
    seen: list[int] = []
    inner = body("inner", lambda *_: seen.append(bulkhead.running("read")))
    outer = body("outer", lambda *_: executor.run_sync([call("inner")])[0].outcome)
    executor = Executor(Registry([outer, inner]), bulkhead=bulkhead)
    assert executor.run_sync([call("outer")])[0].data == "ok"
    assert (seen, executor.running) == ([2], 0)


@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_tool_may_call_tools_and_does_not_wait_for_the_place_that_it_holds(mode):
    result, _ = nested(lambda *_: "in", mode)
    assert result.data == ["ok"]


def test_in_a_loop_of_its_own_too():
    async def outer(arguments, context):
        return [result.outcome for result in await executor.run([call("inner")])]

    tools = [body("outer", outer, mode="write"), body("inner", lambda *_: "in", mode="write")]
    executor = Executor(Registry(tools), approve=lambda approval: True)
    assert executor.run_sync([call("outer")])[0].data == ["ok"]


def test_a_thread_that_is_handed_its_context_belongs_to_its_tool_in_other_executors_too():
    """It would wait in the bulkhead that they share for the place which its own tool holds."""
    bulkhead = Bulkhead(writes=1)
    inner = Executor(
        Registry([body("inner", lambda *_: 1, mode="write", approval=False)]), bulkhead=bulkhead, timeout_seconds=2.0
    )

    def outer(arguments, context):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(inner.run_sync, [call("inner")], context).result()[0].outcome

    made = body("outer", outer, mode="write", approval=False, timeout_seconds=2.0)
    assert Executor(Registry([made]), bulkhead=bulkhead).run_sync([call("outer")])[0].data == "ok"


def test_a_thread_is_of_its_tool_only_where_it_is_handed_the_context():
    deadlines: list[float | None] = []
    inner = body("inner", lambda arguments, context: deadlines.append(context.deadline))

    async def twice(context):
        for each in (context, None):
            await executor.run([call("inner")], each)

    def outer(arguments, context):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, twice(context)).result()

    tools = [body("outer", outer, timeout_seconds=5.0), inner]
    executor = Executor(Registry(tools), timeout_seconds=9.0, clock=lambda: 0.0)
    assert executor.run_sync([call("outer")])[0].ok
    assert deadlines == [5.0, 9.0]


def test_tools_that_call_tools_never_wait_for_each_other_in_a_circle():
    """Reads that want to write wait for the write; it must not wait for their places to read."""
    both = threading.Barrier(2, timeout=5.0)

    def calling(name):
        def outer(arguments, context):
            both.wait()
            return executor.run_sync([call(name)])[0].outcome

        return outer

    tools = [
        *(body("reads", calling("write")), body("read", lambda *_: 1)),
        *(body("writes", calling("read"), mode="write"), body("write", lambda *_: 1, mode="write")),
    ]
    executor = Executor(
        Registry(tools), approve=lambda approval: True, timeout_seconds=2.0, bulkhead=Bulkhead(reads=1, writes=1)
    )
    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(executor.run_sync, [call(name)]) for name in ("reads", "writes")]
    assert [each.result()[0].data for each in found] == ["ok", "ok"]


@pytest.mark.parametrize("mode", ["read", "write"])
def test_what_waits_for_no_place_is_not_refused_because_others_wait(mode):
    executor = None
    tools = [
        body("outer", lambda *_: executor.run_sync([call("inner")])[0].outcome, mode=mode),
        body("inner", lambda *_: 1, mode=mode),
    ]
    executor = Executor(
        Registry(tools), approve=lambda approval: True, bulkhead=Bulkhead(reads=1, writes=1, waiting=0)
    )
    assert executor.run_sync([call("outer")])[0].data == "ok"


@pytest.mark.parametrize("mode", ["read", "write"])
@pytest.mark.parametrize("by_way_of", [None, "read"])
@pytest.mark.parametrize("inner", ["read", "write"])
def test_calls_that_a_tool_makes_have_as_many_places_as_others(mode, by_way_of, inner):
    """No more of them run at once, nor wait; and two writes never race, however deep below a write they stand."""
    together = threading.Barrier(2)

    def calling(name):
        async def several(arguments, context):
            found = await asyncio.gather(*(executor.run([call(name)]) for _ in range(3)))
            return [(result.data or result.outcome) for results in found for result in results]

        return several

    tools = [
        body("outer", calling("way" if by_way_of else "inner"), mode=mode),
        body("way", calling("inner")),
        body("inner", lambda *_: together.wait(LIMIT), mode=inner),
    ]
    bulkhead = Bulkhead(reads=2 if by_way_of and inner == "write" else 1, waiting=1)
    executor = Executor(Registry(tools), approve=lambda approval: True, bulkhead=bulkhead)
    found = str(executor.run_sync([call("outer")])[0].data)
    assert together.broken, found
    assert "busy" in found
    assert (executor.running, executor.waiting) == (0, 0)


def test_what_a_tool_calls_has_no_more_time_than_it_has_itself():
    deadlines = []

    def outer(arguments, context):
        deadlines.append(context.deadline)
        executor.run_sync([call("inner")])
        executor.run_sync([call("inner")], replace(context, deadline=context.deadline - 10.0))

    def inner(arguments, context):
        deadlines.append(context.deadline)

    tools = [body("outer", outer, timeout_seconds=20.0), body("inner", inner)]
    executor = Executor(Registry(tools), timeout_seconds=60.0)
    assert executor.run_sync([call("outer")])[0].ok
    own, same, earlier = deadlines
    assert same == pytest.approx(own, abs=2.0)  # as late as a busy machine is
    assert earlier == pytest.approx(own - 10.0, abs=2.0)


def test_what_a_tool_calls_ends_with_it(release):
    began, over = threading.Event(), threading.Event()

    def inner(arguments, context):
        began.set()
        context.cancel.wait(5)
        over.set()

    def outer(arguments, context):
        executor.run_sync([call("inner")])
        context.cancel.wait(5)  # which of the two is given up first, a busy machine decides

    tools = [body("outer", outer, mode="write", approval=False), body("inner", inner, mode="write", approval=False)]
    executor = Executor(Registry(tools), timeout_seconds=0.2)
    assert executor.run_sync([call("outer")])[0].outcome == "timeout"
    assert began.is_set()
    wait_for(over.is_set)
    wait_for(lambda: executor.abandoned == 0)


def test_a_tool_that_calls_itself_for_ever_is_stopped():
    depth: list[int] = []

    def again(arguments, context):
        depth.append(1)
        (result,) = executor.run_sync([call("again")])
        return result.outcome if len(depth) == 8 and result.error else result.data or result.outcome

    executor = Executor(Registry([body("again", again)]), timeout_seconds=10.0)
    result = executor.run_sync([call("again")])[0]
    assert (result.data, len(depth)) == ("loop-guard", 8)


def test_a_thread_of_a_tool_that_is_handed_its_context_belongs_to_it():
    registry = Registry([body("inner", lambda *_: 1, mode="write", approval=False)])
    executor = Executor(registry)

    def outer(arguments, context):
        handed.append(context.cancel)
        with ThreadPoolExecutor(1) as pool:  # whose threads know nothing of contextvars
            return [
                pool.submit(executor.run_sync, [call("inner")], given).result(5)[0].outcome
                for given in (context, Invocation(deadline=time.monotonic() + 0.05, clock=time.monotonic))
            ]

    handed = []
    registry.register(body("outer", outer, mode="write", approval=False))
    (result,) = executor.run_sync([call("outer")])
    assert result.data == ["ok", "timeout"]  # who hands on nothing waits for the place like anybody else
    assert [signal.body for signal in handed] == [None]  # whoever keeps it keeps nothing else


def test_a_thread_of_a_tool_under_review_that_is_handed_its_signal_alone_is_under_review_too():
    ran = []
    registry = Registry([body("inner", lambda *_: ran.append(1), mode="write", approval=False)])
    executor = Executor(registry)

    def outer(arguments, context):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(executor.run_sync, [call("inner")], Invocation(cancel=context.cancel)).result()[0].data

    registry.register(body("outer", outer))
    (result,) = executor.run_sync([call("outer")], Invocation(review=True))
    assert (result.data["simulated"], ran) == (True, [])


def test_calls_that_outlive_the_tool_that_makes_them_are_their_own():
    later: list[Any] = []
    executor = None

    async def outer(arguments, context):
        async def behind():
            await asyncio.sleep(0.05)
            later.extend(await executor.run([call("inner")]))

        later.append(asyncio.get_running_loop().create_task(behind()))
        return "begun"

    async def use():
        assert (await executor.run([call("outer")]))[0].data == "begun"
        await later[0]

    tools = [body("outer", outer, runs_in="loop", timeout_seconds=0.02), body("inner", lambda *_: "in")]
    executor = Executor(Registry(tools))
    asyncio.run(use())
    assert later[1].data == "in"


@pytest.mark.parametrize("way", ["cancelled", "timeout"])
def test_an_approver_that_does_not_answer_holds_nobody_up(way):
    async def never(approval):
        await asyncio.Event().wait()

    executor = Executor(Registry([body("save", lambda *_: 1, mode="write")]), approve=never)
    cancel = Cancel()
    clock = time.monotonic
    deadline = {"deadline": clock() + 0.05, "clock": clock} if way == "timeout" else {"cancel": cancel}

    async def use():
        asyncio.get_running_loop().call_later(0.05, cancel.set)
        return await executor.run([call("save")], Invocation(**deadline))

    assert asyncio.run(use())[0].outcome == way


@pytest.mark.parametrize("made", ["plain", "awaitable"])
def test_who_consents_may_take_their_time_and_is_asked_one_thing_at_a_time(made):
    """As at `input()`: the loop goes on meanwhile, and of reads that run side by side each has its question."""
    typed, asking, most = threading.Event(), [], []

    async def later():
        return True

    def asks(approval):
        asking.append(approval)
        most.append(len(asking))
        assert typed.wait(10)
        asking.pop()
        return True if made == "plain" else later()

    async def use():
        asyncio.get_running_loop().call_later(0.05, typed.set)  # what a loop that is held up would never do
        return await executor.run([call("look", at, at=at) for at in range(3)])

    executor = Executor(Registry([returning(1, "look", approval=True)]), approve=asks)
    assert [result.outcome for result in asyncio.run(use())] == ["ok"] * 3
    assert most == [1, 1, 1]


def test_who_never_answers_holds_up_no_later_question_and_is_counted(release):
    def asks(approval):
        return approval.arguments["at"] > 0 or RELEASE.wait(20)

    executor = Executor(Registry([returning(1, "look", approval=True)]), approve=asks)
    clock = time.monotonic
    soon = Invocation(deadline=clock() + LIMIT, clock=clock)
    assert asyncio.run(executor.run([call("look", at=0), call("look", 1, at=1)], soon))[0].outcome == "timeout"
    assert executor.abandoned == 1
    assert asyncio.run(executor.run([call("look", at=2)]))[0].outcome == "ok"
    for _ in range(7):
        cancel = Cancel()
        threading.Timer(0.02, cancel.set).start()
        assert executor.run_sync([call("look", at=0)], Invocation(cancel=cancel))[0].outcome == "cancelled"
    assert executor.run_sync([call("look", at=3)])[0].outcome == "denied"  # nobody is asked where so many hang
    RELEASE.set()
    wait_for(lambda: executor.abandoned == 0)
    assert executor.run_sync([call("look", at=3)])[0].outcome == "ok"


def test_async_approvers_are_asked_at_the_same_time():
    both = asyncio.Barrier(2)

    async def approve(approval):
        await both.wait()
        return True

    executor = Executor(Registry([returning(1, approval=True)]), approve=approve)

    async def run() -> list[list[Result]]:
        context = Invocation(deadline=time.monotonic() + 5.0)
        return await asyncio.gather(*(executor.run([call("give")], context) for _ in range(2)))

    assert [result.outcome for (result,) in asyncio.run(run())] == ["ok", "ok"]


def test_an_approver_that_runs_calls_itself_does_not_wait_for_its_own_answer():
    def asks(approval):
        return approval.tool.name == "ask" or executor.run_sync([call("ask")])[0].data == 1

    executor = Executor(Registry([returning(1, name, approval=True) for name in ("look", "ask")]), approve=asks)
    soon = Invocation(deadline=time.monotonic() + 10, clock=time.monotonic)
    assert asyncio.run(executor.run([call("look"), call("look", 1, at=1)], soon))[0].outcome == "ok"
    assert executor.run_sync([call("look")], soon)[0].outcome == "ok"


def test_more_questions_than_anybody_answers_are_a_no(monkeypatch):
    monkeypatch.setattr(bodies, "QUESTIONS_LIMIT", 1)
    gate = threading.Event()
    executor = Executor(Registry([returning(1, "look", approval=True)]), approve=lambda approval: gate.wait(10))

    async def use():
        asyncio.get_running_loop().call_later(0.05, gate.set)
        return await executor.run([call("look", at, at=at) for at in range(3)])

    assert [result.outcome for result in asyncio.run(use())] == ["ok", "ok", "denied"]


@pytest.mark.parametrize("way", ["swallows", "in a thread"])
def test_the_sync_front_waits_for_no_approver_that_will_not_be_cancelled(way, release):
    async def swallows(approval):
        while not RELEASE.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                pass

    approve = swallows if way == "swallows" else lambda approval: asyncio.to_thread(RELEASE.wait, 20)
    executor = Executor(Registry([body("do", lambda *_: 1, mode="write")]), approve=approve)
    with in_time(LIMIT):
        until = Invocation(deadline=time.monotonic() + LIMIT, clock=time.monotonic)
        (result,) = executor.run_sync([call("do")], until)
    assert result.outcome == "timeout"


def test_a_dialog_that_cancels_its_own_answer_is_a_no_and_not_the_end_of_the_turn():
    async def closed(approval):
        answer = asyncio.get_running_loop().create_future()
        answer.cancel()
        return await answer

    def exits(approval):
        raise SystemExit(3)

    for approve in (closed, exits):
        executor = Executor(Registry([body("save", lambda *_: 1, mode="write"), returning(7)]), approve=approve)
        assert [result.outcome for result in asyncio.run(executor.run([call("save"), call("give", 1)]))] == [
            *("denied", "ok")
        ]


@pytest.mark.parametrize("when", ["before", "while its message is made", "its time is over"])
def test_nobody_is_asked_about_a_call_that_will_not_run(when):
    asked: list[str] = []
    cancel = Cancel()

    def message(arguments):
        if when == "while its message is made":
            cancel.set()
        return "saving"

    async def approve(approval):
        asked.append(approval.message)
        return True

    save = body("save", lambda *_: 1, mode="write", format_message=message)
    context = Invocation(cancel=cancel, deadline=0.0 if when == "its time is over" else None)
    if when == "before":
        cancel.set()
    results = Executor(Registry([save]), approve=approve).run_sync([call("save"), call("save", 1)], context)
    assert {result.outcome for result in results} == {"timeout" if context.deadline == 0.0 else "cancelled"}
    assert asked == []
    unasked = Executor(Registry([save])).run_sync([call("save")], context)  # whatever the answer would have been
    assert unasked[0].outcome == results[0].outcome


@pytest.mark.parametrize("made", ["hangs", "raises", "no thread"])
def test_a_message_that_a_tool_does_not_make_is_none(made, release, monkeypatch):
    monkeypatch.setattr("callmark.running.bodies.MESSAGE_SECONDS", 0.05)
    said: list[str] = []

    def message(arguments):
        if made == "raises":
            raise ValueError("no")
        RELEASE.wait(5)

    def approve(approval):
        said.append(approval.message)
        return False

    executor = Executor(Registry([body("save", lambda *_: 1, mode="write", format_message=message)]), approve=approve)
    if made == "no thread":

        def none(*_):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(executor._bodies._asides, "in_thread", none)
    for hung in range(10):
        assert executor.run_sync([call("save")])[0].outcome == "denied"
        assert executor.abandoned == (min(hung + 1, 8) if made == "hangs" else 0)
    assert said == [""] * 10


def test_what_people_are_shown_while_a_tool_runs_comes_before_it_does():
    said: list[Any] = []
    reads = body("read", lambda *_: said.append("ran"), format_message=lambda arguments: f"reading {arguments['n']}")
    writes = body("save", lambda *_: said.append("saved"), mode="write", format_message=lambda arguments: "saving")
    plain = body("plain", lambda *_: said.append("plain"), format_message=lambda arguments: 3)

    def announce(starting):
        said.append((starting.tool.name, starting.message))
        starting.arguments.clear()
        raise ValueError("the host's own")

    calls = [call("read", n=1), call("save", 1), call("plain", 2), call("none", 3)]
    executor = Executor(Registry([reads, writes, plain]), announce=announce)
    assert [result.outcome for result in executor.run_sync(calls)] == ["ok", "denied", "ok", "unknown-tool"]
    assert said == [("read", "reading 1"), "ran", ("plain", ""), "plain"]
    silent = Executor(Registry([reads]))
    assert silent.run_sync(calls[:1])[0].ok
    assert said[4:] == ["ran"]


def test_a_message_that_nobody_would_be_shown_is_not_made():
    made: list[Any] = []
    tools = [body(mode, lambda *_: 1, mode=mode, format_message=made.append) for mode in ("read", "write")]
    Executor(Registry(tools)).run_sync([call("write")])
    Executor(Registry(tools), approve=lambda approval: True).run_sync([call("read")])
    assert made == []


def test_each_tool_has_one_breaker():
    made: list[Breaker] = []
    executor = Executor(Registry([returning(1)]), breaker=lambda: made.append(Breaker()) or made[-1])
    executor.run_sync([call("give"), call("give", 1)])
    assert made == [executor.breaker("give")]


def test_a_host_that_raises_at_progress_is_not_the_tools_failure():
    def report(arguments, context):
        context.report("half")
        return "whole"

    def broken(update):
        raise ValueError("the host's own")

    context = Invocation(progress=broken)
    assert Executor(Registry([body("do", report)])).run_sync([call("do")], context)[0].data == "whole"


def test_who_says_whether_it_is_offered_holds_no_cancel_up_and_cancels_nothing(release):
    def asked(context: Invocation) -> bool:
        context.cancel.listen(lambda: RELEASE.wait(20))
        return True

    def cancels(context: Invocation) -> bool:
        context.cancel.set()
        return True

    cancel = Cancel()
    tools = [body("a", lambda *_: 1, should_register=asked), body("b", lambda *_: 1, should_register=cancels)]
    offered = asyncio.run(Executor(Registry(tools)).offered(Invocation(cancel=cancel)))
    assert (len(offered), cancel.is_set()) == (2, False)
    began = time.monotonic()
    cancel.set()
    assert time.monotonic() - began < 5


def test_a_signal_of_the_hosts_own_keeps_nothing_of_a_call():
    """It may be there for as long as the program."""
    cancel = Cancel()
    context = Invocation(cancel=cancel)

    async def outer(arguments, own):
        await executor.run([call("inner")], context)

    tools = [body("outer", outer), returning(1, "inner", should_register=lambda context: True)]
    executor = Executor(Registry(tools))

    async def run() -> None:
        await executor.offered(context)
        runs = (executor.run([call("outer")], context, session="s", message="m") for _ in range(2))
        assert [result.replayed for (result,) in await asyncio.gather(*runs)] == [False, True]

    asyncio.run(run())
    assert cancel._listeners == {}


def test_a_listener_that_raises_keeps_cancel_from_nobody():
    cancel, heard = Cancel(), []
    cancel.listen(lambda: heard.append(1 / 0))
    cancel.listen(lambda: heard.append("cancelled"))
    cancel.set()
    assert heard == ["cancelled"]


def yields(arguments, context):
    yield 1
    yield from ("a", None)


async def yields_later(arguments, context):
    yield 1
    yield "a"


async def yields_for_ever(arguments, context):
    for number in itertools.count():
        yield number


def yields_an_error(arguments, context):
    yield 1
    raise ToolError("gone", "no more", "stop")


class GoneError(ToolError):
    pass


def raises(error):
    def yields_and_raises(arguments, context):
        yield 1
        raise error

    return yields_and_raises


@pytest.mark.parametrize("where", ["thread", "loop"])
def test_what_generators_yield_is_a_list(where):
    def of(function):
        async def use():
            executor = Executor(Registry([body("give", function, runs_in=where)]), result_limit=256)
            return (await executor.run([call("give")]))[0]

        return asyncio.run(use())

    assert of(yields).data == [1, "a", None]
    assert of(yields_later).data == [1, "a"]
    assert of(yields_for_ever).truncated
    for function in (yields_an_error, lambda *_: {"rows": yields_an_error(None, None)}):
        assert (of(function).outcome, of(function).error.code) == ("tool-error", "gone")
    for raised, code in ((GoneError("gone", "no more", "stop"), "gone"), (ValueError("boom"), "ValueError")):
        assert (of(raises(raised)).outcome, of(raises(raised)).error.code) == ("tool-error", code)


def test_arguments_that_nothing_could_walk_are_misuse():
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(UsageError, match="nested too deep"):
        Executor(Registry([returning(1)])).run_sync([call("give", a=value)])


# The same call is the same.


@given(
    st.dictionaries(
        st.text(max_size=3), st.integers(-9, 9) | st.text(max_size=3) | st.booleans() | st.none(), max_size=4
    ),
    st.randoms(),
)
def test_canonical_arguments_do_not_depend_on_how_they_were_written(value, random):
    keys = list(value)
    random.shuffle(keys)
    other = {key: float(value[key]) if type(value[key]) is int else value[key] for key in keys}
    assert canonical(value) == canonical(other)
    assert canonical(json.loads(json.dumps(value))) == canonical(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(({"a": 1}, {"a": "1"}), ({"a": 1}, {"a": True}), ([], {}), ([[]], [{}]), ("null", None)),
        *((["a", "b"], ["ab"]), (1, 1.5), ({"a": {}}, {"a": []}), ("é", "\\xe9"), ("é", "\\u00e9"), ('"', '\\"')),
    ],
)  # fmt: skip
def test_different_arguments_are_different(one, other):
    assert canonical(one) != canonical(other)


def test_keys_that_are_no_text_have_no_canonical_form():
    with pytest.raises(UsageError, match="keys that are texts"):
        canonical({1: 2})


FORK = """
import os, threading, time
from callmark import Breaker, Bulkhead, Executor, LoopGuard, Registry, Tool, parse

began, end, stop = threading.Event(), threading.Event(), threading.Event()

def body(arguments, context):
    began.set()
    end.wait(20)

executor = Executor(Registry([Tool(name="f", function=body)]), approve=lambda approval: True, timeout_seconds=30)
calls = parse("[CALL: f()]").calls
executor.breaker("f").force("half-open")
executor.breaker("f").release()
guard, first = LoopGuard(calls=10**9, turn_calls=10**9, rounds=10**9), executor._bulkhead.enter("read")

def admits():  # so that forks meet a guard in the middle of a step
    while not stop.is_set():
        guard.admit([])

threads = [threading.Thread(target=executor.run_sync, args=[calls]), threading.Thread(target=admits)]
[thread.start() for thread in threads]
began.wait()
children = []
for _ in range(12):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            guard.admit([])
            executor._bulkhead.leave(first)
            end.set()
            found = executor.running, executor.abandoned, len(executor._bodies._workers._alive)
            (result,) = executor.run_sync(calls)  # neither the place nor the probe is taken here
            code = 0 if (*found, result.outcome) == (0, 0, 0, "ok") else 2
        finally:
            os._exit(code)
    children.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
assert executor.running == 2 and executor.breaker("f").state == "half-open"
end.set(), stop.set()
[thread.join() for thread in threads]
executor._bulkhead.leave(first)
assert executor.running == 0 and executor.breaker("f").state == "closed"
assert codes == [0] * 12, codes
print("good")
"""


def test_after_a_fork_nothing_of_the_parent_runs_in_the_child():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("good\n", "")


def test_representations_show_no_contents():
    failure = Failure(kind="denied", message="secret")
    assert repr(failure) == "Failure(denied)"
    assert repr(Result(index=0, name="f", ok=False, error=failure)) == "Result(f, denied)"
    assert Result(index=0, name="f", ok=True, id="c1", data=1).for_model() == 1


def test_the_sync_front_runs_tools_of_the_loop_in_threads():
    @tool(mode="read", runs_in="loop")
    async def where() -> str:
        return threading.current_thread().name

    executor = Executor(Registry([where]))
    assert executor.run_sync([call("where")])[0].data == "callmark-tool"
    assert asyncio.run(executor.run([call("where")]))[0].data == "MainThread"


def test_keys_that_become_the_same_are_all_kept():
    class Key:
        def __init__(self, number: int) -> None:
            self.number = number

        def __str__(self) -> str:
            return "k"

    value = {"k": 0, "k (Key)": 1, "k (Key) 2": 2, **{Key(number): number for number in range(3, 500)}}
    data, truncated = rendered(value)
    assert sorted(data.values()) == list(range(500))
    assert not truncated
    assert rendered({1: "a", "1": "b"}).data == {"1": "a", "1 (str)": "b"}
    halves = {chr(number): number for number in range(0xD800, 0xD810)}  # none of them can be a key
    assert list(rendered(halves).data.values()) == list(range(0xD800, 0xD810))
