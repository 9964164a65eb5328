"""langchain-openai."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from scenarios import ADDRESS, TOOLS, failure, made, report

model = ChatOpenAI(base_url=f"{ADDRESS}/v1", api_key="sk-test", model="m", max_retries=0, timeout=60)


def bound(request):
    options = {key: value for key, value in request.items() if key != "messages"}
    return model.bind_tools(TOOLS, **options), [message_of(message) for message in request["messages"]]


def message_of(message):
    if message["role"] == "tool":
        return ToolMessage(message["content"], tool_call_id=message["tool_call_id"])
    if message["role"] == "assistant":
        return AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}])
    return HumanMessage(message["content"])


def read(message):
    assert not message.invalid_tool_calls
    calls = [(call["name"], call["args"]) for call in message.tool_calls]
    assert all(call["id"] for call in message.tool_calls)
    return made(
        message.text if isinstance(message.text, str) else message.text(),
        calls,
        message.response_metadata["finish_reason"],
    )


def whole(request):
    chain, messages = bound(request)
    return read(chain.invoke(messages))


def streamed(request):
    chain, messages = bound(request)
    total = None
    for chunk in chain.stream(messages):
        total = chunk if total is None else total + chunk
    return read(total)


report(whole, streamed, failure)
for chunk in model.stream("endless"):
    if chunk.content:
        break
