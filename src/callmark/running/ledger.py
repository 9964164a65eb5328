"""`Ledger`: what makes a call run at most once, however often its text is read; in memory, or in SQLite across crashes.

A call is known by session, message, position, name and arguments (`call_key`), never by an id that a model or a server
makes anew each time. Its row is *claimed* before anything else, *started* before the body runs, *finished* with the
result. A row that was started and is not being worked on by this process was interrupted: nobody knows how far it came.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from hashlib import sha256
from os import PathLike
from typing import Any, Literal, NamedTuple

from callmark.tools.results import canonical

_WAIT_SECONDS = 5.0  # for another process to end its transaction, which takes it some milliseconds


def call_key(session: str, message: str, position: int, name: str, arguments: Any) -> str:
    """Return what identifies a call: 64 hexadecimal digits."""
    return sha256(canonical([session, message, position, name, arguments]).encode()).hexdigest()


class Claim(NamedTuple):
    """What a ledger answers to an attempt.

    "mine"      go on: nobody did this before, or nobody got as far as starting it
    "running"   another attempt of this process is at it; `watch` tells when it is over
    "finished"  it ran, and `result` is what it came to
    "unknown"   it was started and never finished
    """

    state: Literal["mine", "running", "finished", "unknown"]
    result: bytes = b""


class Row(NamedTuple):
    """One call: its state, who works on it, its tool and its result."""

    state: str
    token: str
    name: str
    result: bytes = b""


class Ledger:
    """A ledger in memory: it holds while the process lives. Threads and event loops may share it.

    >>> ledger = Ledger()
    >>> ledger.claim("key", "look").state, ledger.claim("key", "look").state
    ('mine', 'running')
    >>> ledger.start("key"), ledger.finish("key", b"seen")
    (True, None)
    >>> ledger.claim("key", "look")
    Claim(state='finished', result=b'seen')

    It grows with each call; `forget` drops rows.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._token = uuid.uuid4().hex  # tells this process's rows from those of another one
        self._watchers: dict[str, list[Callable[[], object]]] = {}  # of the calls that are worked on here
        self._rows: dict[str, Row] = {}

    def claim(self, key: str, name: str, *, repeatable: bool = False) -> Claim:
        """Ask for the right to run a call. `repeatable`: running it once more does no harm, so interruption is none."""
        with self._lock, self._transaction():
            if key in self._watchers:
                return Claim("running")
            row = self._load(key)
            if row is not None and row.state == "finished":
                return Claim("finished", row.result)
            if row is not None and row.state == "started" and not repeatable:
                return Claim("unknown")
            self._store(key, Row("claimed", self._token, name))
            self._watchers[key] = []
            return Claim("mine")

    def start(self, key: str) -> bool:
        """Say that the body is about to run; False: another process took the call over meanwhile, so it must not."""
        with self._lock, self._transaction():
            row = self._load(key)
            if row is None or row.state != "claimed" or row.token != self._token:
                return False
            self._store(key, row._replace(state="started"))
            return True

    def finish(self, key: str, result: bytes) -> None:
        """Record what a call came to, and tell those who wait; them also where recording fails."""
        try:
            with self._lock, self._transaction():
                row = self._load(key)
                if row is not None and row.token == self._token:
                    self._store(key, row._replace(state="finished", result=result))
        finally:
            self._over(key)

    def release(self, key: str) -> None:
        """Give a claim back: the body did not run, and the next attempt may run it."""
        try:
            with self._lock, self._transaction():
                row = self._load(key)
                if row is not None and row.state != "finished" and row.token == self._token:
                    self._delete(key)
        finally:
            self._over(key)

    def watch(self, key: str, listener: Callable[[], object]) -> bool:
        """Call `listener` when the attempt that runs is over; False: it is over, so claim again."""
        with self._lock:
            if key in self._watchers:
                self._watchers[key].append(listener)
                return True
            return False

    def unfinished(self) -> list[tuple[str, str]]:
        """Return key and tool of the calls that were started, were not finished, and are not worked on here."""
        with self._lock:
            return [(key, row.name) for key, row in self._all() if row.state == "started" and key not in self._watchers]

    def forget(self, key: str) -> None:
        """Drop a row: the call may run once more."""
        with self._lock, self._transaction():
            self._delete(key)

    def _over(self, key: str) -> None:
        with self._lock:
            watchers = self._watchers.pop(key, [])
        for watcher in watchers:
            watcher()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._all())} calls)"

    # How rows are kept.

    def _transaction(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def _load(self, key: str) -> Row | None:
        return self._rows.get(key)

    def _store(self, key: str, row: Row) -> None:
        self._rows[key] = row

    def _delete(self, key: str) -> None:
        self._rows.pop(key, None)

    def _all(self) -> list[tuple[str, Row]]:
        return list(self._rows.items())


class SqliteLedger(Ledger):
    """A ledger in an SQLite file: it holds across crashes, and several processes may share it.

    durable   False (default): survives the end of a process, `kill -9` included, at 0.1 ms a step; True: also the
              end of the machine, at the price of a flush of the disk for each step

    Results stand in the file as they are. Raises sqlite3.Error where the file cannot be used.
    """

    def __init__(self, path: str | PathLike[str], *, durable: bool = False) -> None:
        super().__init__()
        self._base = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        self._base.execute(
            "CREATE TABLE IF NOT EXISTS calls "
            "(key TEXT PRIMARY KEY, state TEXT NOT NULL, token TEXT NOT NULL, name TEXT NOT NULL, result BLOB NOT NULL)"
        )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._base.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        # Immediate: it takes the right to write before it reads, so no other process comes between.
        self._base.execute("BEGIN IMMEDIATE")
        with self._base:  # commits, or rolls back
            yield

    def _load(self, key: str) -> Row | None:
        found = self._base.execute("SELECT state, token, name, result FROM calls WHERE key = ?", (key,)).fetchone()
        return None if found is None else Row(*found)

    def _store(self, key: str, row: Row) -> None:
        self._base.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?)", (key, *row))

    def _delete(self, key: str) -> None:
        self._base.execute("DELETE FROM calls WHERE key = ?", (key,))

    def _all(self) -> list[tuple[str, Row]]:
        rows = self._base.execute("SELECT key, state, token, name, result FROM calls ORDER BY rowid")
        return [(key, Row(*rest)) for key, *rest in rows]
