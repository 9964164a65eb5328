"""Tools for tests/test_processes.py: what runs in a process of its own is found in a module, by its name."""

from __future__ import annotations

import asyncio
import os
import stat
import struct
import time

from callmark import Invocation, Registry, Tool, ToolError, tool


@tool(mode="read", runs_in="process")
def hold(seconds: float) -> int:
    """Keep the interpreter's lock, in one call of code in C."""
    return sum(range(int(seconds * 50_000_000)))


@tool(mode="read", name="other", runs_in="process")
async def later(number: int, context: Invocation) -> dict[str, object]:
    """Say who runs this, and what it is told."""
    await asyncio.sleep(0)
    told = [context.request_id, context.caller["name"], context.messages[0]["content"], len(context.idempotency_key)]
    left = context.remaining_seconds()
    return {"number": number, "told": told, "process": os.getpid(), "hurry": left is not None and left < 60}


@tool(mode="read", runs_in="process")
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


@tool(runs_in="process")
def send() -> str:
    """Write."""
    return "sent"


@tool(mode="read", runs_in="process")
async def sends() -> object:
    """Invoke what writes."""
    return await Registry([send]).invoke("send", {})


@tool(mode="read", runs_in="process")
def half() -> None:
    """Write the beginning of an answer, and hang: into each pipe, since it does not know its own."""
    for number in range(3, 32):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                os.write(number, struct.pack("!i", 1000) + b"[")
        except OSError:
            continue
    time.sleep(600)


def body(arguments: dict[str, object], context: Invocation) -> object:
    """Return the arguments."""
    return arguments


def square(number: int) -> int:
    """Square a number."""
    return number * number


plain = Tool(name="plain", function=body, mode="read", runs_in="process")
squared = tool(name="squared", mode="read", runs_in="process")(square)
