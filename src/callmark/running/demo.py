"""A conversation to watch: a scripted model, three tools, and a loop guard that has to say no."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from callmark.running.executor import Executor
from callmark.running.jobs import Approval
from callmark.running.loop_guard import LoopGuard
from callmark.running.models import Request
from callmark.running.session import Session
from callmark.tools.registry import Registry
from callmark.tools.tool import tool

QUESTION: Final = "Where is the weather better this weekend, in Oslo or in Bergen? Write to Mia that we meet there."

# What a small model writes, flaws included: an example in code that is no call, a bare word, brackets in a string, a
# call that is broken, and a loop.
SCRIPT: Final = (
    "I will ask for both, with `[CALL: weather(...)]`.\n"
    '[CALL: weather({"city": "Oslo"})] [CALL: weather(city=Bergen, days=2)]',
    'Oslo, then. I write to Mia. [CALL: send_postcard({"to" "Mia"})]',
    '[CALL: send_postcard({"to": "Mia", "text": "See you in Oslo (bring no umbrella :)]!"})]',
    "Has she answered? [CALL: letterbox()]",
    "And now? [CALL: letterbox()]",
    "And now? [CALL: letterbox()]",
    "Oslo: it is sunny there, and it rains in Bergen. The postcard to Mia is on its way; she has not answered yet.",
)
_CHUNK: Final = 4  # characters: some token's worth


@tool(mode="read")
def weather(city: str, days: int = 1) -> dict[str, Any]:
    """Tell the weather of a city.

    Args:
        city: where
        days: how many days to look ahead
    """
    return {"city": city, "days": days, "weather": "sun" if city == "Oslo" else "rain"}


@tool(format_message=lambda arguments: f"sending a postcard to {arguments['to']}")
def send_postcard(to: str, text: str) -> str:
    """Send a postcard."""
    return f"sent to {to}: {text}"


@tool(mode="read")
def letterbox() -> list[str]:
    """Look for letters."""
    return []


class ScriptedModel:
    """Answers with the script, chunk by chunk, whatever it is asked; `seconds` pass between chunks."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answers = iter(SCRIPT)

    async def __call__(self, request: Request) -> AsyncIterator[str]:
        """Return the chunks of the next answer."""
        return self._chunks(next(self._answers))

    async def _chunks(self, answer: str) -> AsyncIterator[str]:
        for start in range(0, len(answer), _CHUNK):
            await asyncio.sleep(self._seconds)
            yield answer[start : start + _CHUNK]


def demonstration(asked: Callable[[Approval], Any] = lambda approval: True) -> Session:
    """Return a session with the tools of the demonstration; `asked` consents to what they write."""
    executor = Executor(Registry([weather, send_postcard, letterbox]), approve=asked)
    return Session(executor, system="You help to plan a weekend.", guard=LoopGuard(calls=4, seconds=30.0))
