"""What langchain-openai makes of a call that the limit cuts: behind the proxy, and where arguments are streamed."""

from __future__ import annotations

import json
import sys

from langchain_openai import ChatOpenAI
from scenarios import TOOLS, made

found = []
for address in sys.argv[1:]:
    model = ChatOpenAI(base_url=f"{address}/v1", api_key="sk-test", model="m", max_retries=0, timeout=60)
    total = None
    for chunk in model.bind_tools(TOOLS).stream("cut call"):
        total = chunk if total is None else total + chunk
    calls = [(call["name"], call["args"]) for call in total.tool_calls]
    found.append(made(total.content, calls, total.response_metadata["finish_reason"]))
print(json.dumps({"found": found}))
