"""Load on `callmark serve`: `python -m benchmarks.load [--over http|websocket] [--streams N] [--rate N] [--seconds N]`.

The server is a process on one processor; the clients are here, on another one where there is one. Each stream sends so
many chunks a second, on time whether or not the server keeps up, and the time from a chunk to the event that holds its
last character is its latency. Latency or memory that grow from the first half of the run to the second are what an
overloaded server shows. The exit code is 1 where an event was lost, else 0.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.report import conditions, table

CHUNKS = ("Some ", "words", " come", " and ", "go, ", "as a ", "model", " may ", "write", ". ")
CALL = ("[CALL", ": loo", 'k({"a', 't": "', 'it"})', "] and")
CALL_EVERY = 100  # chunks
SILENCE_SECONDS = 20  # after which what has not come is lost: a machine that is busy is late, and loses nothing
_END = re.compile(rb'"end":([0-9]+)')


class Stream(asyncio.Protocol):
    """One client: sends chunks as they are due, and looks how far the events have come."""

    def __init__(self, over: str, number: int) -> None:
        self._websocket = over == "websocket"
        self._chunks = deque(CHUNKS[number % len(CHUNKS) :])
        self._sent = 0
        self._id = 1
        self._tail = b""
        self._waiting: deque[tuple[int, float]] = deque()
        self.reached = 0
        self.latencies: list[tuple[float, float]] = []  # when, and how long it took
        self.chunks = 0
        self.lost = False
        self._over = False
        self.ready = asyncio.get_running_loop().create_future()

    @property
    def complete(self) -> bool:
        """Whether all has come, but for an end that may still become a marker."""
        return self.reached >= self._sent - 20

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if self._websocket:
            transport.write(
                b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
        else:
            transport.write(b"POST /parse/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
            if self._websocket:
                self._frame(b'{"jsonrpc":"2.0","id":0,"method":"stream/open","params":{"stream":"s"}}')
        ping = data.find(b"\x89\x04") if self._websocket else -1  # no text has such bytes
        if ping >= 0:
            self._transport.write(b"\x8a\x84\0\0\0\0" + data[ping + 2 : ping + 6])
        now = time.perf_counter()
        data = self._tail + data
        found = _END.findall(data)
        self._tail = data[-24:] if data[-1:] != b"\n" and not data.endswith(b"}}") else b""
        if not found:
            return
        self.reached = max(self.reached, *map(int, found))
        last = None
        while self._waiting and self._waiting[0][0] <= self.reached:
            last = self._waiting.popleft()
        if last is not None:
            self.latencies.append((now, now - last[1]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = self.lost or not self._over
        if not self.ready.done():
            self.ready.set_exception(ConnectionError("the server hung up"))

    def send(self, due: float) -> None:
        """Send the next chunk; its latency counts from when it was due."""
        if not self._chunks:
            self._chunks.extend(CALL if self.chunks % CALL_EVERY < len(CHUNKS) else CHUNKS)
        chunk = self._chunks.popleft().encode()
        self.chunks += 1
        self._sent += len(chunk)
        self._waiting.append((self._sent, due))
        if self._websocket:
            self._id += 1
            told = json.dumps(chunk.decode()).encode()
            self._frame(
                b'{"jsonrpc":"2.0","id":%d,"method":"stream/feed","params":{"stream":"s","text":%b}}' % (self._id, told)
            )
        else:
            self._transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))

    def close(self) -> None:
        self._over = True
        self._transport.abort()

    def _frame(self, payload: bytes) -> None:
        length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
        self._transport.write(b"\x81" + length + b"\0\0\0\0" + payload)


async def load(
    port: int, over: str, streams: int, rate: float, seconds: float, look: Callable[[], object]
) -> tuple[list[Stream], float]:
    """Run the streams; `look` is called in the middle. Returns them, and when the first chunk was due."""
    loop = asyncio.get_running_loop()
    clients = []
    for number in range(streams):
        _, client = await loop.create_connection(partial(Stream, over, number), "127.0.0.1", port)
        clients.append(client)
    await asyncio.gather(*(client.ready for client in clients))
    start = time.perf_counter()
    total = int(rate * seconds) * streams
    step = 1 / (rate * streams)
    sent = 0
    looked = False
    while sent < total:
        now = time.perf_counter()
        while sent < total and start + sent * step <= now:
            clients[sent % streams].send(start + sent * step)
            sent += 1
        if sent > total / 2 and not looked:
            looked = True
            look()
        await asyncio.sleep(0.001)
    reached, since = -1, time.perf_counter()
    while any(not client.complete for client in clients) and time.perf_counter() - since < SILENCE_SECONDS:
        if reached < sum(client.reached for client in clients):
            reached, since = sum(client.reached for client in clients), time.perf_counter()
        await asyncio.sleep(0.01)
    for client in clients:
        client.close()
    await asyncio.sleep(0.01)
    return clients, start


def memory(pid: int) -> float:
    """Return the resident memory of a process in MB, of 10^6 bytes."""
    found = re.search(r"VmRSS:\s*([0-9]+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    return int(found[1]) * 1024 / 1e6 if found else 0.0  # what Linux calls kB are 1024 bytes


def processor(pid: int) -> float:
    """Return the seconds of processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def served(said: str) -> int:
    """Return the port in the first line of `callmark serve`. One that says why there is none ends the program."""
    port = said.rpartition(":")[2].strip()
    if not port.isdigit():
        raise SystemExit(said.strip() or "callmark serve ended without a word")
    return int(port)


def measure(over: str, streams: int, rate: float, seconds: float) -> dict[str, Any]:
    """Return one row: what was asked of a server, and how it went."""
    processors = sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-m", "callmark", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port = served(process.stderr.readline())
            os.sched_setaffinity(process.pid, processors[:1])
            os.sched_setaffinity(0, processors[-1:])
            seen: list[float] = []
            worked = processor(process.pid)
            clients, start = asyncio.run(
                load(port, over, streams, rate, seconds, lambda: seen.append(memory(process.pid)))
            )
            worked = processor(process.pid) - worked
            seen.append(memory(process.pid))
        finally:
            process.terminate()
            os.sched_setaffinity(0, processors)
    halves: list[list[float]] = [[], []]
    for client in clients:
        for when, took in client.latencies:
            halves[when - start > seconds / 2].append(took * 1000)
    lost = sum(client.lost or not client.complete for client in clients)
    row: dict[str, Any] = {"over": over, "streams": streams, "chunks/s": round(streams * rate), "seconds": seconds}
    for half, name in zip(halves, ("1st", "2nd"), strict=True):
        cuts = statistics.quantiles(half, n=100) if len(half) > 1 else None
        row[f"p50 ms {name} half"] = cuts and round(cuts[49], 1)
        row[f"p99 ms {name} half"] = cuts and round(cuts[98], 1)
    row["us of processor a chunk"] = round(worked * 1e6 / sum(client.chunks for client in clients), 1)
    row |= {"MB at half": round(seen[0]), "MB at end": round(seen[1]), "lost": lost}
    return row


def main() -> int:
    """Print a row for each way; return 1 where a stream lost events."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    arguments.add_argument("--over", action="append", choices=("http", "websocket"), help="default: both")
    arguments.add_argument("--streams", type=int, default=200)
    arguments.add_argument("--rate", type=float, default=100, help="chunks a second of each stream")
    arguments.add_argument("--seconds", type=float, default=10)
    given = arguments.parse_args()
    before = conditions()
    print("\n".join(f"{key:9} {before[key]}" for key in ("commit", "machine", "load")), flush=True)
    rows = [measure(over, given.streams, given.rate, given.seconds) for over in given.over or ("http", "websocket")]
    print(table("load", list(rows[0]), rows), flush=True)
    return 1 if any(row["lost"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
