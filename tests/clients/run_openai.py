"""The openai package, of any major version in use."""

from __future__ import annotations

import json

import openai
from scenarios import ADDRESS, TOOLS, failure, made, report

client = openai.OpenAI(base_url=f"{ADDRESS}/v1", api_key="sk-test", max_retries=0, timeout=60)


def message_of(choice):
    message = choice.message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
    return made(message.content, calls, choice.finish_reason)


def whole(request):
    return message_of(client.chat.completions.create(model="m", tools=TOOLS, **request).choices[0])


def streamed(request):
    """With the package's own joining of deltas, and by hand: they must agree."""
    text, calls, reason, usage = "", {}, None, None
    options = {"include_usage": True}
    for chunk in client.chat.completions.create(model="m", tools=TOOLS, stream=True, stream_options=options, **request):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(piece.index, ["", ""])
                call[0] += piece.function.name or ""
                call[1] += piece.function.arguments or ""
    by_hand = made(text, [(name, json.loads(arguments)) for name, arguments in calls.values()], reason)
    assert usage is not None
    helpers = getattr(client.chat.completions, "stream", None) or client.beta.chat.completions.stream
    with helpers(model="m", tools=TOOLS, **request) as stream:
        for _ in stream:
            pass
        joined = message_of(stream.get_final_completion().choices[0])
    assert joined == by_hand, (joined, by_hand)
    return joined


report(whole, streamed, failure)
with client.chat.completions.create(
    model="m", tools=TOOLS, stream=True, messages=[{"role": "user", "content": "endless"}]
) as stream:
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
