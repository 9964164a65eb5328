"""litellm."""

from __future__ import annotations

import json

import litellm
from scenarios import ADDRESS, TOOLS, made, report

litellm.suppress_debug_info = True
OPTIONS = {"model": "openai/m", "api_base": f"{ADDRESS}/v1", "api_key": "sk-test", "tools": TOOLS, "num_retries": 0}


def read(choice):
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or ()]
    assert all(call.id for call in choice.message.tool_calls or ())
    return made(choice.message.content, calls, choice.finish_reason)


def whole(request):
    return read(litellm.completion(**OPTIONS, **request, max_retries=0).choices[0])


def streamed(request):
    chunks = list(litellm.completion(**OPTIONS, **request, stream=True, max_retries=0))
    return read(litellm.stream_chunk_builder(chunks, messages=request["messages"]).choices[0])


def failure(run):
    try:
        run()
    except litellm.exceptions.MidStreamFallbackError as error:
        return {"error": str(error.original_exception)}
    except litellm.exceptions.APIError as error:
        return {"error": error.message}
    except litellm.exceptions.ServiceUnavailableError as error:
        return {"status": error.status_code}
    return None


report(whole, streamed, failure)
stream = litellm.completion(**{**OPTIONS, "messages": [{"role": "user", "content": "endless"}]}, stream=True)
for chunk in stream:
    if chunk.choices[0].delta.content:
        break
