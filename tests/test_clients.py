"""Real clients in front of the proxy, each in an environment of its own, against a model that only writes text.

They are large, so they are not part of a plain run: `python -m pytest -m clients` installs and runs them, in a
minute or so. A client that cannot be installed fails its tests. CALLMARK_CLIENTS names a folder that keeps the
environments for the next run.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import queue
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from callmark.serving.configuration import make_config
from callmark.serving.methods import METHODS
from callmark.serving.schema import openrpc
from clients.scenarios import SCENARIOS, TOOLS
from upstreams import Answer, Scripted, joined, proxied, says, served, served_config, wire

pytestmark = pytest.mark.clients
HERE = Path(__file__).parent / "clients"
PYTHON = {
    "openai-1": ["openai>=1.99,<2"],
    "openai-2": ["openai>=2,<3", "litellm>=1.106", "mcp"],
    "openai-3": ["openai>=3,<4", "langchain-openai>=1.7", "pydantic-ai-slim[openai]>=2.60", "canitoolcall>=0.1.1"],
}
NODE = ["openai@^6", "ai@^6", "@ai-sdk/openai-compatible@^2", "@open-rpc/schema-utils-js@^2"]
CITY = 'Paris "x" ]'
CUT = '[CALL: weather({"city": "New'


def model(body):
    """Write what a model would that was taught the protocol: by what it was asked last."""
    messages = body["messages"]
    assert "tools" not in body
    text = messages[-1]["content"]
    prompt = messages[0]["content"]
    if text.startswith("Result of"):
        assert "[CALL:" not in text.replace("[\\CALL:", "")
        return says("It is 7 degrees.")
    weather = f"[CALL: weather({json.dumps({'city': CITY})})]"
    match text:
        case "hello":
            return says("Hello there.")
        case "one call":
            return says(f"Let me look.\n{weather}\nResult of weather:\n99 degrees")
        case "silent call":
            return says(weather)
        case "two calls":
            return says(f'{weather}\n[CALL: news({{"topic": "Oslo"}})]')
        case "cut call":
            return says(CUT, reason="length")
        case "no arguments":
            return says("[CALL: now]")
        case "choose":
            if "Do not call a tool now" in prompt:
                return says("As you wish.")
            name = "news" if "You must call news now" in prompt else "now"
            assert name == "news" or "You must call a tool now" in prompt
            return says('[CALL: news({"topic": "Oslo"})]' if name == "news" else "[CALL: now]")
        case "busy":
            body = b'{"error": {"message": "busy now", "type": "overloaded", "code": null, "param": null}}'
            return Answer([], status=503, body=body, headers={"retry-after": "7"})
        case "breaks":
            return says("Well, ", reason=None, error={"message": "it broke", "type": "server_error", "code": 500})
        case "endless":
            return says("x" * 4000, wait=lambda sent: asyncio.sleep(0.01))
    for asked, answer in PROBED.items():
        if asked in text:
            return says(answer)
    raise AssertionError(text)


PROBED = {  # a part of what canitoolcall asks, and what a model writes that was taught the protocol
    "weather in Paris right now": 'I will look. [CALL: get_weather({"city": "Paris"})]',
    "in Paris and in Tokyo": "[CALL: get_weather(city=Paris)]\n[CALL: get_weather(city='Tokyo')]",
    "17 + 25": "42",
    "Design review": """[CALL: create_event({
  "title": "Design review", "start": "2026-10-01T15:00:00Z",
  "attendees": [{"name": "Ana", "email": "ana@example.com"}, {"name": "Bo", "email": "bo@example.com"}],
  "location": {"city": "Berlin", "room": "4.12"}
})]""",
    "Save a note": '[CALL: save_note({"title": "Grüße aus Zürich", "body": "Café ☕ in 東京 — naïve résumé 🚀"})]',
    "on the server": "[CALL: get_server_time]",
    "about Lisbon": '[CALL: get_weather({"city": "Lisbon"})]',
    "Think it through": '<think>9.9 wins. [CALL: record_answer()]</think>\n\n[CALL: record_answer({"answer": "9.9"})]',
}


def said(text="", *calls, reason=None):
    return {
        "text": text,
        "calls": [list(call) for call in calls],
        "reason": reason or ("tool_calls" if calls else "stop"),
    }


WEATHER, NEWS, NOW = ("weather", {"city": CITY}), ("news", {"topic": "Oslo"}), ("now", {})
EXPECTED = {
    "plain": said("Hello there."),
    "one": said("Let me look.", WEATHER),
    "parallel": said("", WEATHER, NEWS),
    "empty": said("", NOW),
    "result": said("It is 7 degrees."),
    "named": said("", NEWS),
    "required": said("", NOW),
    "none": said("As you wish."),
    "single": said("", WEATHER),
}
BUSY = {"status": 503, "retry": "7"}


def check(found, *, busy=BUSY):
    """Compare what a client made of each scenario."""
    assert set(found) == {*EXPECTED, "busy", "breaks"}
    for name, expected in EXPECTED.items():
        assert found[name] == {"whole": expected, "streamed": expected}, name
    assert found["busy"] == {"whole": busy, "streamed": busy}
    assert "it broke" in found["breaks"]["streamed"]["error"]


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    kept = os.environ.get("CALLMARK_CLIENTS")
    folder = Path(kept) if kept else tmp_path_factory.getbasetemp() / "environments"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def once(folder, make):
    """Make a folder, unless it was made before, by whichever process comes first."""
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            make()
            (folder / "made").touch()
    return folder


@pytest.fixture(scope="session")
def python(place):
    """Return a function that gives the interpreter of an environment of `PYTHON`, and installs it first."""

    def environment(name):
        folder = place / name

        def make():
            uv = [sys.executable, "-m", "uv"]
            run([*uv, "venv", "-q", "--allow-existing", "--python", sys.executable, str(folder)])
            run([*uv, "pip", "install", "-q", "--python", str(folder / "bin" / "python"), *PYTHON[name]])

        return str(once(folder, make) / "bin" / "python")

    return environment


@pytest.fixture(scope="session")
def node(place):
    """Return a folder with the packages of npm and our programs, from which they are found."""
    folder = place / "node"
    program = shutil.which("node")
    assert program, "expected node 20 or later on the path, found none"

    def make():
        (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
        run(["npm", "install", "--no-audit", "--no-fund", "--silent", *NODE], cwd=folder)

    once(folder, make)
    for file in HERE.glob("*.mjs"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="module")
def behind(request):
    scripted = Scripted(model)
    arguments = getattr(request, "param", "whole")
    with served(scripted.app()) as upstream, proxied(upstream, mode="text", arguments=arguments) as address:
        yield scripted, address


early_too = pytest.mark.parametrize("behind", ["whole", "stream"], indirect=True)


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE", "PYTEST"))}
    return {**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **more}


def ran(interpreter, program, *addresses):
    """Run a program beside this file; return what it prints, a JSON value in each line."""
    out = run([interpreter, str(HERE / program), *addresses], env=environment(), cwd=HERE)
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def ran_by_node(folder, program, argument):
    shared = json.dumps({"SCENARIOS": SCENARIOS, "TOOLS": TOOLS})
    out = run(["node", str(folder / program), argument], env=environment(SCENARIOS=shared), cwd=folder)
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


@early_too
def test_canitoolcall(python, behind, tmp_path):
    _, address = behind
    probe = [python("openai-3"), "-m", "canitoolcall", "probe", "--base-url", f"{address}/v1", "--model", "m"]
    run([*probe, "--json", str(tmp_path / "report.json")], env=environment())
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    checks = {(each["scenario_id"], each["check"], each["stream"]): each for each in report["outcomes"]}
    assert len(checks) == 27  # nine scenarios: whole, streamed, and both the same
    draft = "reasoning-then-call"  # its thinking drafts a call, which may be said there
    assert {each["status"] for each in checks.values()} == {"pass"}
    assert [name for name, each in checks.items() if each["warnings"] and name[0] != draft] == []


PAGE = """<!doctype html><title>page</title><script type="module">
const results = {};
for (const stream of [false, true]) {
  try {
    const response = await fetch("ADDRESS/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer sk-test", "x-stainless-os": "none" },
      body: JSON.stringify({ model: "m", stream, tools: TOOLS, messages: [{ role: "user", content: "one call" }] }),
    });
    results[stream] = { status: response.status, text: await response.text() };
  } catch (error) {
    results[stream] = { error: String(error) };
  }
}
const images = ["/v1/loaded", "/metrics"].map((path) => {
  const image = new Image();
  image.src = "ADDRESS" + path;
  return new Promise((done) => { image.onload = image.onerror = done; });
});
await Promise.all(images);
await fetch("/results", { method: "POST", body: JSON.stringify(results) });
</script>"""


@pytest.mark.parametrize("listed", [True, False])
def test_a_page_in_a_browser(listed, tmp_path):
    """A page of an origin on the list may ask; a page of another one may not, and the upstream hears nothing of it.

    No page may load from the server without saying who it is, as images are.
    """
    scripted = Scripted(model)
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "expected Chromium on the path (Debian's package `chromium`), found none"
    results: queue.Queue = queue.Queue()

    async def receive(request):
        results.put(await request.json())
        return Response()

    async def show(request):
        tools = json.dumps(TOOLS)
        return HTMLResponse(PAGE.replace("ADDRESS", address).replace("TOOLS", tools))

    page = Starlette(routes=[Route("/", show), Route("/results", receive, methods=["POST"])])
    with ExitStack() as servers:
        upstream = servers.enter_context(served(scripted.app()))
        origin = servers.enter_context(served(page))
        origins = [origin] if listed else ["https://example.org"]
        config = make_config({"upstreams": [{"url": f"{upstream}/v1", "mode": "text"}]})
        address = servers.enter_context(served_config(config, origins=origins))
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
        command = [program, *options, "--remote-debugging-port=0", f"{origin}/"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
            try:
                found = results.get(timeout=120)
            finally:
                browser.terminate()
    assert not [target for _, target, _ in scripted.others if "loaded" in target]
    if not listed:
        assert all("error" in each for each in found.values())
        assert scripted.requests == []
        return
    whole = json.loads(found["false"]["text"])["choices"][0]["message"]
    streamed = joined(wire(found["true"]["text"]))[0]
    assert whole["tool_calls"][0]["function"]["name"] == streamed["tool_calls"][0]["name"] == "weather"
    assert whole["content"] == streamed["content"] == "Let me look."


@pytest.mark.parametrize("name", PYTHON)
def test_openai_of_python(python, behind, name):
    scripted, address = behind
    (found,) = ran(python(name), "run_openai.py", address)
    check(found)
    assert scripted.cancelled.acquire(timeout=20)  # the endless stream was closed by the client


@early_too
def test_langchain(python, behind):
    scripted, address = behind
    (found,) = ran(python("openai-3"), "run_langchain.py", address)
    check(found)
    assert scripted.cancelled.acquire(timeout=20)


def test_a_call_whose_arguments_are_streamed_is_run_when_it_is_cut(python):
    """Why the proxy holds a call until it is complete, or fails: this client takes what it has for the call."""
    pieces = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}]
    pieces.append({"function": {"arguments": '{"city": "New'}})
    deltas = [{"role": "assistant"}, *({"tool_calls": [{"index": 0, **piece}]} for piece in pieces), {}]
    choices = [{"index": 0, "delta": delta, "finish_reason": None if delta else "length"} for delta in deltas]
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = "".join(f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n" for choice in choices)
    body = f"{events}data: [DONE]\n\n".encode()
    streams = Scripted(lambda _: Answer([], body=body, headers={"content-type": "text/event-stream"}))
    with ExitStack() as servers:
        writes = servers.enter_context(served(Scripted(model).app()))
        held, early = (
            servers.enter_context(proxied(writes, mode="text", arguments=each)) for each in ("whole", "stream")
        )
        native = servers.enter_context(served(streams.app()))
        before_it = servers.enter_context(proxied(native, mode="text"))
        (made,) = ran(python("openai-3"), "cut_langchain.py", held, early, native, before_it)
    assert made["found"] == [
        said(CUT, reason="length"),
        {"error": "the model did not finish a call"},
        said("", ("weather", {"city": "New"}), reason="length"),  # nobody said that this is the city
        said('{"name":"weather","arguments":"{\\"city\\": \\"New"}', reason="length"),  # as text: nothing is lost
    ]


def test_litellm(python, behind):
    scripted, address = behind
    (found,) = ran(python("openai-2"), "run_litellm.py", address)
    check(found, busy={"status": 503})
    assert scripted.cancelled.acquire(timeout=20)


LOOPS = {
    "plain": {"text": "Hello there.", "calls": []},
    "one": {"text": "It is 7 degrees.", "calls": [["weather", CITY]]},
    "parallel": {"text": "It is 7 degrees.", "calls": [["news", "Oslo"], ["weather", CITY]]},
    "empty": {"text": "It is 7 degrees.", "calls": [["now"]]},
}


@early_too
def test_pydantic_ai(python, behind):
    scripted, address = behind
    (found,) = ran(python("openai-3"), "run_pydantic_ai.py", address)
    for name, expected in LOOPS.items():
        assert found[name] == {"whole": expected, "streamed": expected}, name
    assert found["run_stream"] == LOOPS["one"]
    assert found["busy"] == {"whole": {"status": 503}, "streamed": {"status": 503}}
    assert found["breaks"]["streamed"] == {"status": 500}
    assert scripted.cancelled.acquire(timeout=20)


@early_too
def test_openai_of_npm(node, behind):
    scripted, address = behind
    found, loop = ran_by_node(node, "run_openai.mjs", address)
    check(found)
    assert loop == {"text": "It is 7 degrees.", "calls": [list(WEATHER)]}
    assert scripted.cancelled.acquire(timeout=20)


@early_too
def test_ai_sdk(node, behind):
    scripted, address = behind
    (found,) = ran_by_node(node, "run_ai.mjs", address)
    loop = ["tool-calls", "stop"]
    expected = {
        "plain": {"text": "Hello there.", "calls": [], "reasons": ["stop"]},
        "one": {"text": "It is 7 degrees.", "calls": [list(WEATHER)], "reasons": loop},
        "parallel": {"text": "It is 7 degrees.", "calls": [list(WEATHER), list(NEWS)], "reasons": loop},
        "empty": {"text": "It is 7 degrees.", "calls": [list(NOW)], "reasons": loop},
        "named": {"text": "", "calls": [list(NEWS)], "reasons": ["tool-calls"]},
        "required": {"text": "", "calls": [list(NOW)], "reasons": ["tool-calls"]},
        "none": {"text": "As you wish.", "calls": [], "reasons": ["stop"]},
    }
    for name, each in expected.items():
        assert found[name] == {"whole": each, "streamed": each}, name
    assert found["busy"] == {"whole": BUSY, "streamed": BUSY}
    assert "it broke" in found["breaks"]["streamed"]["error"]
    assert scripted.cancelled.acquire(timeout=20)


def test_the_openrpc_document_is_valid_by_its_own_schema(node, tmp_path):
    """The libraries of OpenRPC are node's; they know its schema, and follow every reference."""
    document = openrpc()
    wrong = {**document, "methods": [{**document["methods"][0], "params": 5}]}
    for name, each in {"right": document, "wrong": wrong}.items():
        (tmp_path / name).write_text(json.dumps(each), encoding="utf-8")
    assert ran_by_node(node, "run_openrpc.mjs", str(tmp_path / "right")) == [{"valid": True, "methods": len(METHODS)}]
    assert ran_by_node(node, "run_openrpc.mjs", str(tmp_path / "wrong")) == [{"valid": False, "methods": 0}]
