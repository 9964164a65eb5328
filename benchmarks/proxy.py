"""Load on the proxy: many streams at once, from an upstream that writes at a fixed rate. `python -m benchmarks.proxy`.

The proxy is `callmark serve` in a process of its own, held to one core where the system allows it; upstream and clients
share another process, on the other cores. Each chunk carries the time at which it was written, so its delay is measured
chunk by chunk; the first load goes from the clients to the upstream without a proxy, which is what the measuring itself
takes. All is on the loopback interface, and ends by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
from time import perf_counter
from typing import Any

from benchmarks.load import memory, processor, served
from benchmarks.report import conditions

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
ASK = {"model": "m", "stream": True, "tools": TOOLS, "messages": [{"role": "user", "content": "Tell me a lot."}]}
CALL = ('[CALL: weather({"ci', 'ty": "Oslo"', "})]")
STAMP = re.compile(rb"<([0-9]+\.[0-9]+)>")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def event(text: str, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": reason}
    return b"data: " + json.dumps({"id": "x", "model": "m", "choices": [choice]}).encode() + b"\n\n"


class Upstream(asyncio.Protocol):
    """Answers every request with a stream, which `tick` feeds."""

    streams: list[Upstream] = []  # noqa: RUF012  # those that are open

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.left = 0
        self.seen = b""

    def data_received(self, data: bytes) -> None:
        self.seen += data
        if b"\r\n\r\n" in self.seen and not self.left:
            path = self.seen.split(b" ", 2)[1]
            if path != b"/v1/chat/completions":
                self.transport.write(b"HTTP/1.1 404 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                self.transport.close()
                return
            self.left = Upstream.chunks
            self.transport.write(HEAD)
            Upstream.streams.append(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self in Upstream.streams:
            Upstream.streams.remove(self)

    chunks = 0

    @classmethod
    def tick(cls) -> None:
        """Write one chunk to every stream; the last ones are a call and the end."""
        piece = event(f"word <{perf_counter():.6f}> ")
        for stream in list(cls.streams):
            stream.left -= 1
            if stream.left > 0:
                stream.transport.write(piece)
            else:
                cls.streams.remove(stream)
                end = b"".join(map(event, CALL)) + event("", "stop") + b"data: [DONE]\n\n"
                stream.transport.write(end)
                stream.transport.close()


class Client(asyncio.Protocol):
    """Reads one stream to its end."""

    def __init__(self, over: asyncio.Future[None], delays: list[tuple[float, float]]) -> None:
        self.over = over
        self.delays = delays
        self.tail = b""
        self.chunks = 0

    def connection_made(self, transport: Any) -> None:
        body = json.dumps(ASK).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        transport.write(f"{head}Content-Type: application/json\r\nConnection: close\r\n\r\n".encode() + body)

    def data_received(self, data: bytes) -> None:
        now = perf_counter()
        for stamp in STAMP.findall(data):
            self.chunks += 1
            self.delays.append((now, now - float(stamp)))
        self.tail = (self.tail + data)[-1000:]

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    @property
    def complete(self) -> bool:
        reason = re.findall(rb'"finish_reason": ?"([a-z_]+)"', self.tail)
        return reason in ([b"tool_calls"], [b"stop"]) and b"data: [DONE]" in self.tail


async def load(name: str, streams: int, rate: int, seconds: int, port: int, pid: int) -> dict[str, Any]:
    """Run the streams against a port; return the figures. `pid` is the process whose time and memory are told."""
    chunks = rate * seconds
    loop = asyncio.get_running_loop()
    Upstream.chunks = chunks
    delays: list[tuple[float, float]] = []
    clients = []
    for _ in range(streams):
        client = Client(loop.create_future(), delays)
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)  # type: ignore[misc]
        clients.append(client)
    while len(Upstream.streams) < streams:
        await asyncio.sleep(0.01)
    begun, used, before = perf_counter(), processor(pid), memory(pid)
    halfway = before
    number = 0
    while Upstream.streams and perf_counter() - begun < seconds * 3:
        Upstream.tick()
        number += 1
        if number == chunks // 2:
            halfway = memory(pid)
        await asyncio.sleep(max(begun + number / rate - perf_counter(), 0))
    ran, used, after = perf_counter() - begun, processor(pid) - used, memory(pid)
    await asyncio.wait_for(asyncio.gather(*(client.over for client in clients)), 60)
    third = [
        [delay for at, delay in delays if begun + ran * part / 3 <= at < begun + ran * (part + 1) / 3]
        for part in range(3)
    ]
    quantiles = [statistics.quantiles(part, n=100) for part in (third[0], third[2])]
    return {
        "load": name,
        "streams": streams,
        "chunks a second, wanted": streams * rate,
        "chunks a second": round(sum(client.chunks for client in clients) / ran),
        "complete": f"{sum(client.complete for client in clients)} of {streams}",
        "chunks": f"{sum(client.chunks for client in clients)} of {streams * (chunks - 1)}",
        "delay ms p50, first third": round(quantiles[0][49] * 1000, 1),
        "delay ms p50, last third": round(quantiles[1][49] * 1000, 1),
        "delay ms p99, first third": round(quantiles[0][98] * 1000, 1),
        "delay ms p99, last third": round(quantiles[1][98] * 1000, 1),
        "core in use": f"{used / ran:.0%}",
        "memory MB, begin, half, end": f"{before:.0f}, {halfway:.0f}, {after:.0f}",
    }


async def measured(given: argparse.Namespace) -> list[dict[str, Any]]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", 0)
    upstream = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    command = [sys.executable, "-m", "callmark", "serve", "--port", "0", "--mode", "text", "--upstream", upstream]
    proxy = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert proxy.stderr is not None
    rows = []
    try:
        said = await asyncio.to_thread(proxy.stderr.readline)
        port = served(said)
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        if len(cores) > 1:
            for task in os.listdir(f"/proc/{proxy.pid}/task"):
                os.sched_setaffinity(int(task), {cores[0]})
            os.sched_setaffinity(0, set(cores[1:]))
        direct = server.sockets[0].getsockname()[1]
        loads = [("direct", max(given.streams), direct, os.getpid())]
        loads += [("proxy", streams, port, proxy.pid) for streams in given.streams]
        for name, streams, target, pid in loads:
            rows.append(await load(name, streams, given.rate, given.seconds, target, pid))
            print("\n".join(f"{key:28} {value}" for key, value in rows[-1].items()) + "\n", flush=True)
    finally:
        proxy.send_signal(signal.SIGINT)
        proxy.wait(20)
        server.close()
    return rows


def main() -> int:
    """Run the loads; return 1 where a stream was not complete."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=__doc__)
    arguments.add_argument("--streams", type=int, nargs="*", default=[1, 50, 200], help="at once (default 1 50 200)")
    arguments.add_argument("--rate", type=int, default=100, help="chunks a second in each (default 100)")
    arguments.add_argument("--seconds", type=int, default=10, help="of each load (default 10)")
    given = arguments.parse_args()
    print("\n".join(f"{key:9} {value}" for key, value in conditions().items() if key != "part") + "\n", flush=True)
    rows = asyncio.run(measured(given))
    return int(any(not row["complete"].startswith(f"{row['streams']} of") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
