"""SillyTavern in front of the proxy, with a model that only writes text: its server's endpoint, and its page.

Not part of a plain run, nor of CI: its package is large (460 MB). `python -m pytest -m sillytavern` installs and runs
it, in some minutes; CALLMARK_CLIENTS names a folder that keeps it, with a screenshot of the page that is to be looked
at. It wants node and Chromium.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time

import httpx
import pytest

from clients.scenarios import TOOLS
from test_clients import CITY, HERE, environment, model, once, place, run
from upstreams import Scripted, joined, proxied, served, wire

pytestmark = pytest.mark.sillytavern
__all__ = ["place"]  # a fixture


@pytest.fixture(scope="module")
def installed(place):
    folder = place / "sillytavern"

    def make():
        (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
        run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", "sillytavern@^1.19", "puppeteer-core@^24"],
            cwd=folder,
        )

    once(folder, make)
    shutil.copy(HERE / "run_sillytavern.mjs", folder)
    return folder


@pytest.fixture(scope="module")
def sillytavern(installed, tmp_path_factory):
    """Start its server and give its address; the first start takes a minute, for it puts its pages together."""
    data = tmp_path_factory.mktemp("data")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "port": port, "dataRoot": data, "configPath": data / "config.yaml", "disableCsrf": "true",
        "browserLaunchEnabled": "false", "listen": "false",
    }  # fmt: skip
    command = ["node", "server.js", *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
    folder = installed / "node_modules" / "sillytavern"
    with subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(600):
                try:
                    httpx.get(address, trust_env=False)
                    break
                except httpx.TransportError:
                    assert server.poll() is None
                    time.sleep(0.5)
            yield address
        finally:
            server.terminate()


@pytest.fixture
def behind():
    def speaks(body):
        """Leave out what its characters and settings put around what the user says."""
        said = [message for message in body["messages"] if "one call" in message["content"]]
        last = body["messages"][-1]["content"]
        words = last if last.startswith("Result of") else "one call" if said else "hello"
        return model({"messages": [body["messages"][0], {"role": "user", "content": words}]})

    scripted = Scripted(speaks)
    with served(scripted.app()) as upstream, proxied(upstream, mode="text") as address:
        yield scripted, address


def test_its_server_gets_native_calls(sillytavern, behind):
    _, address = behind
    ask = {
        "chat_completion_source": "custom",
        "custom_url": f"{address}/v1",
        "model": "text-only",
        "messages": [{"role": "user", "content": "one call"}],
        "tools": TOOLS,
        "tool_choice": "auto",
    }
    url = f"{sillytavern}/api/backends/chat-completions/generate"
    whole = httpx.post(url, json={**ask, "stream": False}, timeout=60, trust_env=False).json()
    function = whole["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("weather", {"city": CITY})
    streamed = joined(wire(httpx.post(url, json={**ask, "stream": True}, timeout=60, trust_env=False).text))[0]
    assert streamed["tool_calls"][0]["arguments"] == function["arguments"]


def test_its_page_runs_a_tool(sillytavern, behind, installed):
    scripted, address = behind
    chromium = shutil.which("chromium")
    assert chromium, "expected Chromium on the path (Debian's package `chromium`), found none"
    picture = installed / "screenshot.png"
    program = ["node", "run_sillytavern.mjs", address, sillytavern, chromium, str(picture)]
    found = json.loads(run(program, cwd=installed, env=environment()).splitlines()[-1])
    assert found["calls"] == [{"city": CITY}]
    assert found["chat"][-1]["text"] == "It is 7 degrees."
    (shown,) = [message["tools"] for message in found["chat"] if message.get("tools")]
    assert shown[0]["result"] == "7 degrees [CALL: weather()]"
    assert "Weather" in found["shown"]  # the tool's name, as people see it
    assert "It is 7 degrees." in found["shown"]
    assert not found["covered"]
    assert all("tools" not in body for body in scripted.requests)
    assert picture.stat().st_size > 10_000
