"""What langchain-openai makes of a call that the limit cuts: behind the proxy, and where arguments are streamed."""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain_openai import ChatOpenAI
from scenarios import TOOLS, failure, made


def asked(address: str) -> dict[str, Any]:
    model = ChatOpenAI(base_url=f"{address}/v1", api_key="sk-test", model="m", max_retries=0, timeout=60)
    total: Any = None
    for chunk in model.bind_tools(TOOLS).stream("cut call"):
        total = chunk if total is None else total + chunk
    calls = [(call["name"], call["args"]) for call in total.tool_calls]
    return made(total.content, calls, total.response_metadata["finish_reason"])


found: list[Any] = []
for address in sys.argv[1:]:
    failed = failure(lambda address=address: found.append(asked(address)))
    if failed is not None:
        found.append(failed)
print(json.dumps({"found": found}))
