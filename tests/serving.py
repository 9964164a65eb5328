"""Servers for the tests: `callmark stdio` in a process, and the HTTP application on a free port of the loopback."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from callmark.serving.gate import Gate
from callmark.serving.http import Listening, app

STDIO = [sys.executable, "-m", "callmark", "stdio"]
WAIT_SECONDS = 60


class Process:
    """A client of `callmark stdio`."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [*STDIO, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._number = 0

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def next(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        answer = self.next()
        assert answer["id"] == self._number, answer
        assert "result" in answer, answer
        return answer["result"]

    def end(self) -> tuple[int, bytes, bytes]:
        """Close its input; return the exit code and what it still wrote."""
        rest, told = self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode, rest, told


class Served(NamedTuple):
    """A running server."""

    url: str
    application: Any

    @property
    def port(self) -> int:
        return int(urlsplit(self.url).port or 0)


@contextmanager
def served(gate: Gate | None = None, **options: Any) -> Iterator[Served]:
    """Serve in a thread, and stop at the end."""
    application = app(gate=gate, **options)
    listening = Listening(application, host="127.0.0.1", port=0)
    thread = threading.Thread(target=listening.run)
    thread.start()
    try:
        yield Served(listening.url, application)
    finally:
        listening.stop()
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(server: Served, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Response:
    """Send one request; a body that is no bytes is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_SECONDS)
    sent = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return Response(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


async def turns_of_others(work: Awaitable[object]) -> int:
    """Return how often somebody else in the loop had a turn while some work was done."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    waiting = asyncio.create_task(others())
    await work
    waiting.cancel()
    return turns
