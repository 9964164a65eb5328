"""The processes of the readers, seen from here: requests with a time limit, restarted after one that took too long."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import tempfile
from contextlib import suppress
from threading import Event
from time import monotonic
from typing import IO, Any

from benchmarks.environments import Launch
from benchmarks.measure import LONGEST_SECONDS, TooSlowError

STARTING_SECONDS = 60.0
_KEEPS = {"MALLOC_TOP_PAD_": str(4 << 20), "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
          "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}  # fmt: skip
"""What glibc keeps in bytes: else a text of 100 KB may take memory from the system and give it back each time, which
hangs on what else the heap holds, and costs as much as reading it. Whoever says how much more is to be taken at once
(the first) ends glibc's own rule, by which blocks of the size of one that was given back come from the heap: blocks of
more than 128 KB were mapped anew in each turn. So what that rule comes to in the end, its bounds, is said, too."""

_EVERYWHERE = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
_ONE_PLACE = _EVERYWHERE[1:2] or _EVERYWHERE  # the first serves most interrupts, the last may be a slow one

Answer = dict[str, Any]


class FailedError(Exception):
    """The reader raised, or its process ended; the text says what."""


class Worker:
    """One process that serves readers by the protocol of `peers/worker.py`. Started with the first request, or before.

    One that was ended for being slow is started again at once: what it imports must not be waited for. All answer on
    the same processor, where the system lets us say so: each is slow at times of its own, as other machines share it.
    """

    def __init__(self, name: str, launch: Launch, longest_seconds: float = LONGEST_SECONDS) -> None:
        self.name, self.launch, self.longest_seconds = name, launch, longest_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = Event()
        self.patience = 1.0  # times as long as said is waited
        self._places = _ONE_PLACE
        self._greeted = False  # whether it has imported what it needs
        self._complaints: IO[bytes] | None = None
        self.warm: set[str] = set()  # what its engine has compiled, by what it was made to read
        self._texts: dict[str, dict[str, Any]] = {}
        self._loaded: set[str] = set()
        self._rest = b""

    def load(self, key: str, **task: Any) -> None:
        """Keep a text for the reader; it is sent when it is first needed, and again after a restart."""
        self._texts[key] = task

    def forget(self) -> None:
        """Drop all texts, here and there."""
        self._texts.clear()
        if self._loaded:  # a process that was just started again holds none
            self._loaded.clear()
            self._ask({"op": "forget"}, self.longest_seconds)

    def ask(self, op: str, *, limit: float | None = None, **request: Any) -> Answer:
        """Return the answer to one request. Raises TooSlowError, the process being ended, or FailedError."""
        key = request.get("key")
        self.start()
        if not self._greeted:
            self._ask({"op": "hello"}, STARTING_SECONDS)  # what it imports is not part of any answer
            self._greeted = True
            self._place()  # not before: it may be started while others are timed
        if key is not None and key not in self._loaded:
            self._ask({"op": "load", "key": key, **self._texts[key]}, self.longest_seconds)
            self._loaded.add(key)
        answer = self._ask({"op": op, **request}, limit or self.longest_seconds)
        if not answer["ok"]:
            raise FailedError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # of what it was too late to read
                        pipe.close()
            self._process = None
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None
        self._loaded.clear()
        self.warm.clear()
        self._greeted = False
        self._rest = b""

    def stop(self) -> None:
        """End the process for good, in the middle of a request that another thread has made, which fails."""
        self._stopped.set()
        if (process := self._process) is not None:  # the other thread may close it meanwhile, or start one
            process.kill()

    def _last_words(self) -> str:
        """Return the last line that the process wrote to its standard error, of node, which tells more, the error."""
        assert self._complaints is not None
        self._complaints.seek(max(0, self._complaints.seek(0, os.SEEK_END) - 2000))
        lines = self._complaints.read().decode("utf-8", "replace").strip().splitlines()
        if lines and lines[-1].startswith("Node.js v"):
            lines = [line for line in lines if re.match(r"\w*Error\b", line)] or lines
        return lines[-1][:300] if lines else "without a word"

    def start(self) -> None:
        """Start the process if there is none; return without waiting for it. Raises FailedError where it cannot be."""
        if self._process is not None:
            return
        if self._stopped.is_set():
            raise RuntimeError(f"{self.name} was stopped")
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            self._process = subprocess.Popen(
                self.launch.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints,
                process_group=0,  # Ctrl-C is for us, who end it
                env={**{k: v for k, v in os.environ.items() if not k.startswith(("COVERAGE", "PYTHON"))},
                     "PYTHONHASHSEED": "0", "NODE_ENV": "production", **_KEEPS, **self.launch.environment},
            )  # fmt: skip
        except OSError as error:  # the interpreter of its environment is gone, say
            self.close()
            raise FailedError(f"not started: {error}") from error
        if self._stopped.is_set():
            self._process.kill()

    def share(self, patience: float) -> None:
        """Let it answer on any processor, and wait so many times as long: others answer at the same time."""
        self.patience, self._places = patience, _EVERYWHERE
        self._place()

    def alone(self) -> None:
        """Let it answer on the one processor again, and wait as long as said."""
        self.patience, self._places = 1.0, _ONE_PLACE
        self._place()

    def _place(self) -> None:
        if self._places and (process := self._process) is not None:  # the thread that asks may close it meanwhile
            with suppress(ProcessLookupError):
                os.sched_setaffinity(process.pid, self._places)

    def _ask(self, request: dict[str, Any], limit: float) -> Answer:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # its standard error says why; reading finds the end
        deadline = monotonic() + limit * self.patience
        pieces = [self._rest]
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in pieces[-1]:
                left = deadline - monotonic()
                if left <= 0 or not selector.select(left):
                    self.close()
                    self.start()
                    raise TooSlowError(f"longer than {limit:g} s")
                piece = os.read(process.stdout.fileno(), 1 << 20)
                if not piece:
                    words = self._last_words()
                    self.close()
                    raise FailedError(f"its process ended: {words}")
                pieces.append(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        answer: Answer = json.loads(line)
        return answer
