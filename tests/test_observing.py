"""What hosts see of calls: counts, records, an audit log, spans; and that no secret is in any of them unasked."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import callmark
from callmark import (
    ArgumentsDelta,
    AuditLog,
    Breaker,
    Call,
    CallStart,
    Cancel,
    Executor,
    Failure,
    Invocation,
    Ledger,
    LoopGuard,
    Malformed,
    Markup,
    Notice,
    Registry,
    Result,
    Session,
    Settings,
    Text,
    Tool,
    ToolError,
    UsageError,
    parse,
)
from callmark.running import observing
from callmark.running.jobs import Approval
from callmark.running.ledger import Claim, Row
from callmark.running.models import OpenAIModel, Request
from callmark.running.observing import Record, read_audit_log, spans
from callmark.running.session import Step

CANARY = "canary-7f3a91"
SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}}


def gives(arguments: dict[str, Any], context: Invocation) -> Any:
    return {"echo": arguments, "secret": CANARY}


def fails(arguments: dict[str, Any], context: Invocation) -> Any:
    raise ValueError(CANARY)


def refuses(arguments: dict[str, Any], context: Invocation) -> Any:
    raise ToolError("no", CANARY)


TOOLS = [
    Tool(name=function.__name__, function=function, parameters=SCHEMA, mode="read")
    for function in (gives, fails, refuses)
]
TEXT = " ".join(
    f'[CALL: {name}({{"key": "{CANARY}", "{CANARY}": 1}})]' for name in ("gives", "fails", "refuses", "unknown")
)
MORE = f"<think>[CALL: f({CANARY}=1)]</think> {CANARY} [CALL: f({CANARY}"


def record(**fields: Any) -> Record:
    base = {
        "tool": "f",
        "mode": "read",
        "session": "s",
        "message": "m",
        "index": 0,
        "outcome": "ok",
        "seconds": 0.5,
        "at": 9.0,
    }
    return Record(**{**base, **fields})


def test_no_secret_is_in_what_a_debugging_event_loop_says_of_slow_tools(monkeypatch, caplog):
    """It logs a task that held it up, with what the task came to, which is quoted up to some characters."""

    async def slow_value() -> str:
        time.sleep(0.15)
        return "pin-0471"

    async def slow_error() -> str:
        time.sleep(0.15)
        raise ValueError("pin-0471")

    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    caplog.set_level(logging.DEBUG)
    executor = Executor(Registry([callmark.tool(mode="read")(each) for each in (slow_value, slow_error)]))
    executor.run_sync(parse("[CALL: slow_value()] [CALL: slow_error()]").calls)
    assert caplog.text.count("attempt_task") == 2
    assert "0471" not in caplog.text


def test_no_secret_is_in_what_a_debugging_event_loop_says_of_slow_models(monkeypatch, caplog):
    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    caplog.set_level(logging.DEBUG)

    async def whole(_: Request) -> str:
        time.sleep(0.15)
        return "pin-0471"

    async def broken(_: Request) -> str:
        time.sleep(0.15)
        raise ValueError("pin-0471")

    async def chunks(_: Request) -> Any:
        time.sleep(0.15)
        yield "pin-0471"
        time.sleep(0.15)
        raise ValueError("pin-0471")

    async def turn(model: Any) -> list[Any]:
        return [event async for event in Session(Registry()).run(model, "Hi")]

    assert asyncio.run(turn(whole))[-1].text == "pin-0471"
    for model in (broken, chunks):
        with pytest.raises(ValueError, match="pin-0471"):
            asyncio.run(turn(model))
    assert len([line for line in caplog.messages if line.startswith("Executing")]) >= 4
    assert "0471" not in caplog.text


def test_no_secret_is_in_logs_representations_or_exceptions(tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "audit.jsonl"
    records: list[Record] = []
    context = Invocation(caller={"token": CANARY}, messages=[{"role": "user", "content": CANARY}])
    with AuditLog(path) as log:
        executor = Executor(Registry(TOOLS), observers=[log, records.append])
        results = executor.run_sync(parse(TEXT).calls, context)
        session = Session(executor, system=CANARY, context=context)
        events: list[Any] = []

        async def play() -> None:
            answers = [TEXT, CANARY]
            async for event in session.run(lambda request: answers.pop(0), CANARY):
                events.append(event)

        asyncio.run(play())
    assert [result.outcome for result in results] == ["ok", "tool-error", "tool-error", "unknown-tool"]
    assert CANARY in json.dumps(results[0].to_dict())  # the results themselves have it: it was there to be leaked
    shown = [
        *results, *records, executor, session, executor.registry, executor.ledger, context, log, session.settings,
        Claim("finished", CANARY.encode()), Row("finished", "t", "f", CANARY.encode()),
        Approval(TOOLS[0], {"key": CANARY}, CANARY, context), Step("answer", CANARY),
        Request(messages=[{"content": CANARY}]),
        OpenAIModel("http://127.0.0.1/v1", "m", key=CANARY, password=CANARY), Failure(kind="denied", message=CANARY),
        *events, *parse(MORE).events, session.stats, *TOOLS,
    ]  # fmt: skip
    assert {Text, CallStart, ArgumentsDelta, Call, Malformed, Markup, Notice, Step, Result} <= set(map(type, shown))
    assert len(shown) > 30
    assert [repr(value) for value in shown if CANARY in repr(value).replace(f"({CANARY}, unknown-tool)", "")] == []
    assert CANARY not in path.read_text()
    assert CANARY not in msgspec.json.encode(session.stats).decode()
    assert CANARY not in caplog.text
    assert CANARY not in "".join(capfd.readouterr())


def test_contents_are_recorded_when_asked():
    records: list[Record] = []
    Executor(Registry(TOOLS), observers=[records.append], contents=True).run_sync(parse(TEXT).calls[:2])
    found = {record.tool: record for record in records}  # whichever has ended first
    assert found["gives"].arguments == {"key": CANARY, CANARY: 1}
    assert found["gives"].result["secret"] == CANARY
    assert found["fails"].result["error"]["message"] == "the tool raised ValueError"


def test_records_have_names_sizes_and_outcomes():
    records: list[Record] = []
    executor = Executor(Registry(TOOLS), observers=[records.append])
    before = time.time()
    executor.run_sync(parse(TEXT).calls, session="s", message="m")
    executor.run_sync(parse(TEXT).calls[:1], session="s", message="m")
    by_tool = {each.tool: each for each in records[:4]}
    gave = by_tool["gives"]
    assert (gave.mode, gave.session, gave.message, gave.index, gave.outcome) == ("read", "s", "m", 0, "ok")
    assert (gave.argument_names, gave.other_arguments) == (("key",), 1)
    assert gave.argument_characters == len(json.dumps({"key": CANARY, CANARY: 1}))
    assert gave.result_characters > 30
    assert before <= gave.at <= time.time()
    assert (by_tool["refuses"].code, by_tool["?"].mode) == ("no", "")
    assert [each.replayed for each in records] == [False] * 4 + [True]
    assert repr(gave) == "Record(gives, ok)"


def test_arguments_that_are_no_object_are_only_counted():
    records: list[Record] = []
    call = msgspec.structs.replace(parse("[CALL: gives()]").calls[0], arguments=[CANARY])
    Executor(Registry(TOOLS), observers=[records.append]).run_sync([call])
    assert (records[0].outcome, records[0].argument_names) == ("invalid-arguments", ())


def test_an_observer_that_raises_changes_nothing():
    def broken(each: Record) -> None:
        raise SystemExit(CANARY)

    records: list[Record] = []
    executor = Executor(Registry(TOOLS), observers=[broken, records.append])
    assert executor.run_sync(parse(TEXT).calls[:1])[0].ok
    assert executor.broken_observers == 1
    assert len(records) == 1


def test_what_nobody_would_await_is_refused():
    """It would be called, and do nothing."""

    async def told(*_: object) -> None: ...

    for where, make in (
        ("Executor, observers", lambda: Executor(Registry(TOOLS), observers=[told])),
        ("Executor, announce", lambda: Executor(Registry(TOOLS), announce=told)),
        ("Breaker, listener", lambda: Breaker(listener=told)),
        ("Registry, listener", lambda: Registry(listener=told)),
    ):
        with pytest.raises(UsageError, match=f"{where}: expected a function that is not async, as nobody awaits it"):
            make()


def test_stats_add_up():
    executor = Executor(Registry(TOOLS), breaker=lambda: Breaker(failures=1))
    calls = parse("[CALL: fails()] [CALL: gives()] [CALL: gives()]").calls
    executor.run_sync(calls, session="s", message="m")
    executor.run_sync(calls[:1])
    executor.run_sync(calls, session="s", message="m")
    stats = executor.stats()
    assert stats["gives"].outcomes == {"ok": 2}
    assert (stats["gives"].calls, stats["gives"].replayed, stats["gives"].breaker) == (2, 2, "closed")
    assert stats["gives"].seconds >= stats["gives"].slowest_seconds > 0
    assert stats["fails"].outcomes == {"tool-error": 1, "breaker-open": 1}
    assert stats["fails"].recent_failures == ["tool-error ValueError", "breaker-open"]
    assert stats["fails"].breaker == "open"
    stats["gives"].calls = 99
    assert executor.stats()["gives"].calls == 2
    executor.breaker("new").force("open")
    assert executor.stats()["new"].breaker == "open"


def test_recent_failures_are_few():
    executor = Executor(Registry(TOOLS))
    for _ in range(30):
        executor.run_sync(parse("[CALL: nothing()]").calls)
    assert executor.stats()["?"].recent_failures == ["unknown-tool"] * 20


def test_the_audit_log_survives_a_torn_line(tmp_path):
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log(record(tool="a"))
    log.close()
    log = AuditLog(path)
    log(record(tool="b", code="x"))
    log.close()
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"tool": "torn')
    assert [(each["tool"], each.get("code")) for each in read_audit_log(path)] == [("a", None), ("b", "x")]
    assert path.stat().st_mode & 0o777 == 0o600
    log = AuditLog(path)  # what the next process writes is not part of the torn line
    log(record(tool="c"))
    log.close()
    assert [each["tool"] for each in read_audit_log(path)] == ["a", "b", "c"]


def test_a_full_disk_tears_one_line_of_the_audit_log_and_no_more(tmp_path, monkeypatch):
    path = tmp_path / "audit.jsonl"
    room = [10, 10_000]
    writing = {**vars(os), "write": lambda file, data: os.write(file, data[: room.pop(0)])}
    monkeypatch.setattr(observing, "os", SimpleNamespace(**writing))
    with AuditLog(path) as log:
        with pytest.raises(OSError, match="torn"):
            log(record(tool="a"))
        log(record(tool="b"))
    assert [each["tool"] for each in read_audit_log(path)] == ["b"]


def test_a_closed_audit_log_writes_into_nobody_elses_file(tmp_path):
    """Its number may be that of another file by then, or of a connection; a call that was given up ends late."""
    log = AuditLog(tmp_path / "audit.jsonl")
    log.close()
    with open(tmp_path / "other", "w+b", buffering=0) as other:
        with pytest.raises(OSError, match="closed"):
            log(record(tool="late"))
        log.close()
        assert (other.read(), other.closed) == (b"", False)
    assert list(read_audit_log(tmp_path / "audit.jsonl")) == []


def test_spans_follow_the_conventions():
    from opentelemetry.sdk import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    observe = spans(provider.get_tracer("test"))
    Executor(Registry(TOOLS), observers=[observe]).run_sync(parse(TEXT).calls[:2])
    observe(record(id="c1", arguments={"a": 1}, result={"b": 2}))
    ended = {span.name: span for span in exporter.get_finished_spans()}  # reads that run side by side, in any order
    gave, failed, full = (ended.pop(f"execute_tool {name}") for name in ("gives", "fails", "f"))
    assert ended == {}
    assert gave.attributes["gen_ai.operation.name"] == "execute_tool"
    assert gave.attributes["gen_ai.tool.name"] == "gives"
    assert "error.type" not in gave.attributes
    assert failed.attributes["error.type"] == "tool-error"
    assert not failed.status.is_ok
    assert full.attributes["gen_ai.tool.call.id"] == "c1"
    assert full.attributes["gen_ai.tool.call.arguments"] == '{"a":1}'
    assert (full.start_time, full.end_time) == (8_500_000_000, 9_000_000_000)
    assert all(CANARY not in span.to_json() for span in (gave, failed))
    assert spans() is not None  # with the global tracer, which does nothing by default


def test_without_opentelemetry_there_are_no_spans(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(UsageError, match="the extra `otel`"):
        spans()


def test_states_of_guards_are_in_the_stats_of_a_session():
    seen: list[Any] = []
    watch = Tool(name="watch", function=lambda *_: seen.append(session.stats), mode="read")
    registry = Registry([*TOOLS, watch])
    session = Session(Executor(registry, ledger=Ledger()), guard=LoopGuard(rounds=3), settings=Settings())

    async def play() -> None:
        answers = ["[CALL: gives()] [CALL: watch()]", "Done."]
        async for _ in session.run(lambda request: answers.pop(0), "Go", cancel=Cancel()):
            pass

    asyncio.run(play())
    assert (session.stats.rounds_left, session.stats.calls_left, session.stats.turns) == (2, 14, 1)
    assert session.stats.tools["gives"].breaker == "closed"
    assert seen[0].running >= 1
    assert (session.stats.running, session.stats.waiting, session.stats.abandoned) == (0, 0, 0)


def test_nothing_in_the_guards_reads_the_wall_clock():
    import callmark.running as running

    (folder,) = running.__path__
    for path in Path(folder).glob("*.py"):
        if path.name != "observing.py":
            assert not re.search(r"(?<!date)time\.time\b|datetime\.now", path.read_text(encoding="utf-8")), path
