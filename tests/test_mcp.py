"""Tools of a real MCP server, through its own client: listed, called, and what they answer told to a model."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from callmark import Executor, Registry, Session, parse
from callmark.tools.shapes import tools_from_mcp
from mcp_server import server

OVER_STDIO = StdioServerParameters(command=sys.executable, args=[str(Path(__file__).with_name("mcp_server.py"))])
CALLS = """[CALL: weather({"city": "Oslo", "days": 2})] [CALL: shout(text=hi)] [CALL: pick.one()] [CALL: fail()]
[CALL: weather(town=Oslo)]"""


@pytest.mark.parametrize("where", [server, OVER_STDIO], ids=["in memory", "over stdio"])
def test_tools_of_a_server_are_listed_called_and_answer(where):
    async def use():
        async with Client(where) as client:
            tools = tools_from_mcp(await client.list_tools(), client.call_tool, owner="there", trust_hints=True)
            executor = Executor(Registry(tools), approve=lambda approval: True)
            return tools, await executor.run(parse(CALLS).calls)

    tools, results = asyncio.run(use())
    assert [(each.qualified_name, each.mode, each.display_name) for each in tools] == [
        ("there:weather", "read", "The weather"), ("there:shout", "write", ""), ("there:pick.one", "write", ""),
        ("there:fail", "write", ""),
    ]  # fmt: skip
    assert tools[0].description == "Tell the weather of a city."
    assert tools[0].parameters["required"] == ["city"]
    assert [result.data for result in results[:3]] == [
        {"city": "Oslo", "celsius": 22.0}, {"result": "HI"}, "[CALL: shout({})]\n[image: image/png]\ninside",
    ]  # fmt: skip
    assert (results[3].error.kind, results[3].error.code) == ("tool-error", "mcp-error")
    assert "no such place" in results[3].error.message
    assert results[4].outcome == "invalid-arguments"


def test_a_session_calls_tools_of_a_server_and_takes_what_they_say_for_data():
    answers = iter(["[CALL: pick.one()]", "Picked."])

    async def use():
        async with Client(server) as client:
            tools = tools_from_mcp(await client.list_tools(), client.call_tool)
            session = Session(Executor(Registry(tools), approve=lambda approval: True))
            async for _ in session.run(lambda request: next(answers), "Pick!"):
                pass
            return session

    session = asyncio.run(use())
    told = session.messages[2]["content"]
    assert told.startswith("Result of pick.one:\n")
    assert parse(told).calls == ()
    assert session.messages[-1]["content"] == "Picked."


def test_a_server_that_goes_away_is_a_result():
    async def use():
        async with Client(server) as client:
            tools = tools_from_mcp(await client.list_tools(), client.call_tool)
        executor = Executor(Registry(tools), approve=lambda approval: True, timeout_seconds=5.0)
        (result,) = await executor.run(parse("[CALL: shout(text=hi)]").calls)
        return result

    assert asyncio.run(use()).outcome in ("tool-error", "timeout")


def test_a_call_that_is_not_async_holds_no_loop_up():
    release = threading.Event()
    seen: list[Any] = []

    def call(name: str, arguments: dict[str, Any]) -> Any:
        seen.append((threading.current_thread(), place.get("nowhere")))
        if name == "fails":
            raise OSError("closed")
        if name == "hangs":
            release.wait(20)
        return {"content": [{"type": "text", "text": name}]}

    place: ContextVar[str] = ContextVar("place")
    tools = tools_from_mcp([{"name": name} for name in ("quick", "fails", "hangs")], call, trust_hints=True)
    executor = Executor(Registry(tools), approve=lambda asked: True, timeout_seconds=0.5)

    async def use() -> list[str]:
        place.set("here")
        results = []
        for name in ("quick", "fails", "hangs"):
            results += await executor.run(parse(f"[CALL: {name}()]").calls)
        assert executor.abandoned == 1  # no thread can be ended, so it is counted
        return [result.outcome for result in results]

    assert asyncio.run(use()) == ["ok", "tool-error", "timeout"]  # and the loop does not wait for it
    assert threading.main_thread() not in [thread for thread, _ in seen]
    assert {said for _, said in seen} == {"here"}
    release.set()
    for thread, _ in seen:
        thread.join(5)

    async def later() -> tuple[str, int]:
        release.clear()
        await executor.run(parse("[CALL: hangs()]").calls)
        release.set()
        while executor.abandoned:
            await asyncio.sleep(0.01)
        (quick,) = await executor.run(parse("[CALL: quick()]").calls)
        return quick.outcome, executor.abandoned

    assert asyncio.run(later()) == ("ok", 0)


def test_what_a_call_returns_to_be_awaited_is_awaited_in_the_callers_loop():
    loops: list[Any] = []

    async def client(name: str, arguments: dict[str, Any]) -> Any:
        loops.append(asyncio.get_running_loop())
        return {"content": [{"type": "text", "text": name}]}

    class Client:
        async def __call__(self, name: str, arguments: dict[str, Any]) -> Any:
            return await client(name, arguments)

    async def use(call: Any) -> None:
        (made,) = tools_from_mcp([{"name": "f"}], call, trust_hints=True)
        executor = Executor(Registry([made]), approve=lambda asked: True)
        (result,) = await executor.run(parse("[CALL: f()]").calls)
        assert result.data == "f"
        assert loops.pop() is asyncio.get_running_loop()

    for call in (client, Client(), lambda name, arguments: client(name, arguments)):
        asyncio.run(use(call))
