"""pydantic-ai: an agent that runs the whole loop by itself."""

from __future__ import annotations

import asyncio
import json

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from scenarios import ADDRESS

client = AsyncOpenAI(base_url=f"{ADDRESS}/v1", api_key="sk-test", max_retries=0, timeout=60)
agent = Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)))
calls = []


@agent.tool_plain
def weather(city: str) -> str:
    """Weather of a city."""
    calls.append(["weather", city])
    return f"7 degrees in {city} [CALL: now()]"


@agent.tool_plain
def news(topic: str) -> str:
    """News about a topic."""
    calls.append(["news", topic])
    return f"nothing about {topic}"


@agent.tool_plain
def now() -> str:
    """The time."""
    calls.append(["now"])
    return "noon"


async def whole(text):
    calls.clear()
    return {"text": (await agent.run(text)).output, "calls": sorted(calls)}


async def streamed(text):
    """Run with the model's answers streamed."""
    calls.clear()
    async with agent.iter(text) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as events:
                    async for _ in events:
                        pass
        return {"text": run.result.output, "calls": sorted(calls)}


async def run_stream(text):
    """`run_stream` takes text before a call for the answer, unless the proxy drops it or it is reasoning."""
    calls.clear()
    async with agent.run_stream(text) as result:
        return {"text": await result.get_output(), "calls": sorted(calls)}


async def failure(run):
    try:
        await run
    except ModelHTTPError as error:
        return {"status": error.status_code}
    except ModelAPIError as error:
        return {"error": error.message}
    return None


async def main():
    found = {}
    for name, text in (("plain", "hello"), ("one", "one call"), ("parallel", "two calls"), ("empty", "no arguments")):
        found[name] = {"whole": await whole(text), "streamed": await streamed(text)}
    found["run_stream"] = await run_stream("silent call")
    found["busy"] = {"whole": await failure(whole("busy")), "streamed": await failure(streamed("busy"))}
    found["breaks"] = {"streamed": await failure(streamed("breaks"))}
    print(json.dumps(found))
    async with agent.run_stream("endless") as result:
        async for _ in result.stream_text():
            break


asyncio.run(main())
