"""Tools in processes of their own: what holds the interpreter's lock ends with its time too."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import apart
from callmark import Breaker, Call, Cancel, Executor, Invocation, Registry, Span, Tool, ToolsError, tool
from callmark.running.processes import work

SIMULATED = {"ok": None, "simulated": True, "unvalidated": True}
SECONDS = 30.0  # for a process to start, on a loaded machine


def call(name: str, index: int = 0, **arguments: Any) -> Call:
    return Call(Span(0, 0), "", index, name, arguments, "", "call", (), None)


def left() -> list[str]:
    """Return our processes that run, or have ended and were not collected, where the system has a file for each."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            ours = int(file.read_text().rpartition(") ")[2].split()[1]) == os.getpid()
            if ours and b"resource_tracker" not in file.with_name("cmdline").read_bytes():
                found.append(file.parent.name)
    return found


def run(*calls: Call, context: Invocation | None = None, **options: Any) -> list[Any]:
    registry = Registry([apart.hold, apart.later, apart.fail, apart.plain, apart.squared])
    return Executor(registry, **{"timeout_seconds": SECONDS, **options}).run_sync(calls, context)


def test_what_holds_the_interpreters_lock_ends_with_its_time():
    """In a thread it would take minutes: nobody could count the seconds. What runs beside it is not held up."""
    began = time.monotonic()
    ticks: list[float] = []
    over = threading.Event()

    def tick() -> None:
        while not over.wait(0.01):
            ticks.append(time.monotonic())

    ticking = threading.Thread(target=tick)
    ticking.start()
    executor = Executor(Registry([apart.hold]), timeout_seconds=2.0)
    (result,) = executor.run_sync([call("hold", seconds=600)])
    over.set()
    ticking.join()
    assert result.outcome == "timeout"
    assert time.monotonic() - began < 60  # a bound for the worst machine: the body alone takes ten minutes
    assert len(ticks) > 10
    end = time.monotonic() + 10
    while executor.abandoned:  # it is gone, not only given up
        assert time.monotonic() < end
        time.sleep(0.01)


def test_no_limit_of_a_thread_ends_code_that_keeps_the_interpreters_lock():
    """So who cannot trust what is called in C (a pattern of `re`, say) asks for a process: nothing else helps."""
    executor = Executor(Registry([replace(apart.hold, runs_in="thread")]), timeout_seconds=0.2)
    executor.run_sync([call("hold", seconds=2)])
    assert executor.stats()["hold"].late_seconds > 0.25  # but it can be seen


def test_under_review_no_process_is_begun():
    made = replace(apart.hold, mode="write")
    (result,) = Executor(Registry([made]), review=True).run_sync([call("hold", seconds=600)])
    assert result.data == SIMULATED


def test_under_review_what_a_process_invokes_is_simulated_too():
    (result,) = Executor(Registry([apart.sends]), review=True, timeout_seconds=SECONDS).run_sync([call("sends")])
    assert result.data == SIMULATED


def test_a_process_is_told_what_a_thread_is_told_and_answers_as_one():
    context = Invocation(request_id="r", caller={"name": "Mia"}, messages=[{"role": "user", "content": "Hi"}])
    calls = [call("other", number=5), call("plain", 1, a=[1, None]), call("squared", 2, number=7)]
    later, plain, squared = run(*calls, context=context)
    assert later.data.pop("process") != os.getpid()
    assert later.data == {"number": 5, "told": ["r", "Mia", "Hi", 64], "hurry": True}
    assert (plain.data, squared.data) == ({"a": [1, None]}, 49)


def test_what_fails_there_fails_here_in_the_same_words():
    hows = ["tool", "exception", "exit", "value", "module"]
    told, raised, gone, broken, fine = (
        result.error or result.data for result in run(*(call("fail", at, how=how) for at, how in enumerate(hows)))
    )
    assert (told.kind, told.code, told.message, told.hint) == ("tool-error", "gone", "it is gone", "look elsewhere")
    assert (raised.kind, raised.code, raised.message) == ("tool-error", "ValueError", "the tool raised ValueError")
    assert (gone.code, gone.message) == ("process-ended", "the tool's process ended with 7")
    assert (broken.kind, broken.code) == ("tool-error", "ZeroDivisionError")
    assert fine == "<module 'time' (built-in)>"
    (said,) = run(call("fail", how="exception"), error_text=True)
    assert said.error.message == "the tool raised ValueError: the password is 1234"


def test_the_code_is_known_of_a_process_that_another_thread_collects(monkeypatch):
    real, misses = os.waitpid, iter(range(3))

    def waitpid(pid, flags):
        if flags != os.WNOHANG or next(misses, None) is not None:
            raise ChildProcessError  # as where the other thread was first, and has not noted it yet
        return real(pid, flags)

    monkeypatch.setattr(os, "waitpid", waitpid)
    (gone,) = run(call("fail", how="exit"))
    assert gone.error.message == "the tool's process ended with 7"


def test_processes_that_die_are_failures_to_a_breaker():
    executor = Executor(Registry([apart.fail]), timeout_seconds=SECONDS, breaker=lambda: Breaker(failures=2))
    for _ in range(2):
        (result,) = executor.run_sync([call("fail", how="exit")])
        assert result.error.code == "process-ended"
    assert executor.breaker("fail").state == "open"


def test_a_process_that_hangs_within_its_answer_ends_with_its_time():
    executor = Executor(Registry([apart.half]), timeout_seconds=3.0)
    (result,) = executor.run_sync([call("half")])
    assert result.outcome == "timeout"
    end = time.monotonic() + 10
    while executor.abandoned:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_who_cancels_a_process_ends_it():
    cancel = Cancel()
    threading.Timer(0.3, cancel.set).start()
    (result,) = run(call("hold", seconds=600), context=Invocation(cancel=cancel))
    assert result.outcome == "cancelled"
    end = time.monotonic() + 10
    while left():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_function_that_no_process_can_find_is_misuse():
    def local() -> None:
        """Stand nowhere."""

    functions = [lambda arguments, context: 1, Odd(), Odd().do, partial(print, apart.body)]
    for made in (tool(local), *(Tool(name="a", function=each) for each in functions)):
        with pytest.raises(ToolsError, match="expected a function of a module, found one that is nowhere"):
            replace(made, runs_in="process")


class Odd:
    """A function without a name, and one that no other process has the object of."""

    def do(self, arguments: Any, context: Any) -> None:
        """Do nothing."""

    def __call__(self, arguments: Any, context: Any) -> None:
        """Do nothing."""


class Wire:
    """The end of a pipe that a process writes to."""

    def send_bytes(self, data: bytes) -> None:
        self.answer = msgspec.json.decode(data)


@pytest.mark.parametrize(
    ("name", "decorated", "arguments", "answer"),
    [
        ("body", False, {"a": 1}, {"data": {"a": 1}, "failure": None, "raised": ""}),
        ("square", True, {"number": 3}, {"data": 9, "failure": None, "raised": ""}),
        ("squared", True, {"number": 3}, {"data": 9, "failure": None, "raised": ""}),
        ("sends", True, {}, {"data": "sent", "failure": None, "raised": ""}),
        ("nothing", False, {}, "module 'apart' has no attribute 'nothing'"),
    ],
)
def test_what_a_process_does(name, decorated, arguments, answer):
    """Here, where it can be looked at."""
    wire = Wire()
    work(wire, ("apart", name, decorated), arguments, {}, None)
    assert wire.answer == answer or wire.answer["raised"] == answer
