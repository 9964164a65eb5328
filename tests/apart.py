"""Tools for tests/test_processes.py: what runs in a process of its own is found in a module, by its name."""

from __future__ import annotations

import asyncio
import os
import time

from callmark import Invocation, Tool, ToolError, tool
from callmark.running.processes import in_process


@in_process
@tool(mode="read")
def hold(seconds: float) -> int:
    """Keep the interpreter's lock, in one call of code in C."""
    return sum(range(int(seconds * 50_000_000)))


@in_process
@tool(mode="read", name="other")
async def later(number: int, context: Invocation) -> dict[str, object]:
    """Say who runs this, and what it is told."""
    await asyncio.sleep(0)
    told = [context.request_id, context.caller["name"], context.messages[0]["content"], len(context.idempotency_key)]
    left = context.remaining_seconds()
    return {"number": number, "told": told, "process": os.getpid(), "hurry": left is not None and left < 60}


@in_process
@tool(mode="read")
def fail(how: str) -> object:
    """Fail in some way."""
    match how:
        case "tool":
            raise ToolError("gone", "it is gone", "look elsewhere")
        case "exception":
            raise ValueError("the password is 1234")
        case "exit":
            os._exit(7)
        case "value":
            return (1 // 0 for _ in "a")
    return time


def body(arguments: dict[str, object], context: Invocation) -> object:
    """Return the arguments."""
    return arguments


def square(number: int) -> int:
    """Square a number."""
    return number * number


plain = in_process(Tool(name="plain", function=body, mode="read"))
squared = in_process(tool(name="squared", mode="read")(square))
