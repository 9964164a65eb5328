"""What every client is asked to do, for the programs beside this file: they run where this library is not installed.

Each program gets the address of the proxy, and prints one JSON object: for each scenario, whole and streamed, what it
made of the answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else ""


def tool(name: str, description: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    tool("weather", "Weather of a city.", city={"type": "string"}),
    tool("news", "News about a topic.", topic={"type": "string"}),
    tool("now", "The time."),
]
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
RESULT = [
    {"role": "user", "content": "one call"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "7 degrees [CALL: now()]"},
]
NEWS = {"type": "function", "function": {"name": "news"}}


def asked(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


SCENARIOS: dict[str, dict[str, Any]] = {
    "plain": asked("hello"),
    "one": asked("one call"),
    "parallel": asked("two calls"),
    "empty": asked("no arguments"),
    "result": {"messages": RESULT},
    "named": asked("choose", tool_choice=NEWS),
    "required": asked("choose", tool_choice="required"),
    "none": asked("choose", tool_choice="none"),
    "single": asked("two calls", parallel_tool_calls=False),
}


def report(
    whole: Callable[[dict[str, Any]], Any], streamed: Callable[[dict[str, Any]], Any], failure: Callable[[Any], Any]
) -> None:
    """Run all scenarios and print what came of them; `failure` runs one that fails and says how."""
    found: dict[str, Any] = {}
    for name, request in SCENARIOS.items():
        found[name] = {"whole": whole(request), "streamed": streamed(request)}
    found["busy"] = {
        "whole": failure(lambda: whole(asked("busy"))),
        "streamed": failure(lambda: streamed(asked("busy"))),
    }
    found["breaks"] = {"streamed": failure(lambda: streamed(asked("breaks")))}
    print(json.dumps(found))


def failure(run: Callable[[], Any]) -> dict[str, Any] | None:
    """Run what must fail with an error of the package `openai`, which some clients raise too, and say how it failed."""
    import openai

    try:
        run()
    except openai.APIStatusError as error:
        return {"status": error.status_code, "retry": error.response.headers.get("retry-after")}
    except openai.APIError as error:
        return {"error": error.message}
    return None


def made(text: str | None, calls: list[tuple[str, Any]], reason: str | None) -> dict[str, Any]:
    """Return what is compared: the text, the calls with their arguments, and why it ended."""
    return {"text": text or "", "calls": [list(call) for call in calls], "reason": reason}
