"""`Ledger`: what makes a call run at most once, however often its text is read; in memory, or in SQLite across crashes.

A call is known by session, message, position, name and arguments (`call_key`), never by an id that a model or a server
makes anew each time. Its row is *claimed* before anything else, *started* before the body runs, *finished* with the
result. A row belongs to its process while that lives; one that was started by a process that is gone was interrupted:
nobody knows how far it came.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple, TypeVar

from callmark.errors import CallmarkError, UsageError
from callmark.running.forks import Forking
from callmark.running.presence import Presence, lives
from callmark.tools.foreign import attempt
from callmark.tools.misuse import require
from callmark.tools.results import canonical

T = TypeVar("T")

SESSION_DIGITS: Final = 32  # with which the keys of all calls of a session begin

_WAIT_SECONDS = 5.0  # for another process to end its transaction, which takes it some milliseconds
_AT_ONCE_SECONDS = 0.2  # the same, where nobody can wait for long
_PAUSE_SECONDS = 0.005  # between two looks whether it has
_REASONS: Final = {  # by SQLite's primary result code
    sqlite3.SQLITE_BUSY: "expected others to be done in time, found the file locked",
    sqlite3.SQLITE_READONLY: "expected a file that can be written, found one that can only be read",
    sqlite3.SQLITE_FULL: "expected room for more, found the disk full",
    sqlite3.SQLITE_CANTOPEN: "expected a file that can be opened or made, found that it cannot",
    sqlite3.SQLITE_NOTADB: "expected an SQLite database, found a file that is none",
    sqlite3.SQLITE_CORRUPT: "expected an SQLite database, found one that is damaged",
}


class LedgerError(CallmarkError):
    """The file of a ledger cannot be used; the message names it and says why. No call runs that is not written down."""


def call_key(session: str, message: str, position: int, name: str, arguments: Any) -> str:
    """Return what identifies a call: 96 hexadecimal digits. The last 64 do so alone; the others are its session's."""
    return _of_session(session) + _digest([session, message, position, name, arguments])


def _of_session(session: str) -> str:
    """Return how the keys of all calls of a session begin, and those of no other."""
    return _digest(session)[:SESSION_DIGITS]


def _digest(value: Any) -> str:
    return sha256(canonical(value).encode()).hexdigest()


class Claim(NamedTuple):
    """What a ledger answers to an attempt.

    "mine"      go on: nobody did this before, or nobody got as far as starting it
    "running"   another attempt of this process is at it; `watch` tells when it is over
    "elsewhere" another process is at it, and lives; claim again in a while
    "finished"  it ran, and `result` is what it came to
    "unknown"   it was started and never finished
    """

    state: Literal["mine", "running", "elsewhere", "finished", "unknown"]
    result: bytes = b""

    def __repr__(self) -> str:
        return f"Claim({self.state})"


class Row(NamedTuple):
    """One call: its state, who works on it, its tool and its result."""

    state: str
    token: str
    name: str
    result: bytes = b""

    def __repr__(self) -> str:
        return f"Row({self.name}, {self.state})"


class _BusyError(Exception):
    """The file is locked, and who does the step tries it again later."""


class _Patience(NamedTuple):
    """Until when a locked file is waited for, by the clock of `time.monotonic`, and whether the thread sleeps."""

    until: float
    sleeps: bool


_patience: ContextVar[_Patience | None] = ContextVar("callmark_ledger_patience", default=None)


class Ledger(Forking):
    """A ledger in memory: it holds while the process lives. Threads and event loops may share it.

    >>> ledger = Ledger()
    >>> ledger.claim("key", "look").state, ledger.claim("key", "look").state
    ('mine', 'running')
    >>> ledger.start("key"), ledger.finish("key", b"seen")
    (True, None)
    >>> ledger.claim("key", "look").result
    b'seen'

    It grows with each call; `forget_session` drops what is kept of a conversation that is over.
    """

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        super().__init__()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._token = uuid.uuid4().hex  # tells this process's rows from those of another one
        self._watchers: dict[str, list[Callable[[], object]]] = {}  # of the calls that are worked on here

    def claim(self, key: str, name: str, *, repeatable: bool = False) -> Claim:
        """Ask for the right to run a call. `repeatable`: running it once more does no harm, so interruption is none."""
        with contextlib.ExitStack() as failed:
            with self._transaction():
                if key in self._watchers:
                    return Claim("running")
                row = self._load(key)
                if row is not None and row.state == "finished":
                    return Claim("finished", row.result)
                if row is not None and self._is_elsewhere(row):
                    return Claim("elsewhere")
                if row is not None and row.state == "started" and not repeatable:
                    return Claim("unknown")
                self._store(key, Row("claimed", self._token, name))
                self._watchers[key] = []
                failed.callback(self._over, key)
            failed.pop_all()  # only now does it stand in the file: a disk may be full at the commit
        return Claim("mine")

    def start(self, key: str) -> bool:
        """Say that the body is about to run; False: another process took the call over meanwhile, so it must not."""
        with self._transaction():
            row = self._load(key)
            if row is None or row.state != "claimed" or row.token != self._token:
                return False
            self._store(key, row._replace(state="started"))
            return True

    def finish(self, key: str, result: bytes) -> None:
        """Record what a call came to, and tell those who wait; them also where recording fails."""
        with self._last_step(key):
            row = self._load(key)
            if row is not None and row.token == self._token:
                self._store(key, row._replace(state="finished", result=result))

    def release(self, key: str) -> None:
        """Give a claim back: the body did not run, and the next attempt may run it."""
        with self._last_step(key):
            row = self._load(key)
            if row is not None and row.state != "finished" and row.token == self._token:
                self._delete(key)

    def watch(self, key: str, listener: Callable[[], object]) -> bool:
        """Call `listener` when the attempt that runs is over; False: it is over, so claim again."""
        with self._lock:
            if key in self._watchers:
                self._watchers[key].append(listener)
                return True
            return False

    def unfinished(self) -> list[tuple[str, str]]:
        """Return key and tool of the calls that were started, were not finished, and are not worked on."""
        with self._transaction():
            rows = [(key, row) for key, row in self._all() if row.state == "started" and key not in self._watchers]
            return [(key, row.name) for key, row in rows if not self._is_elsewhere(row)]

    def forget(self, key: str) -> None:
        """Drop a row, which `unfinished` names: the call may run once more."""
        with self._transaction():
            self._delete(key)

    def forget_session(self, session: str) -> None:
        """Drop the rows of a session, but for calls that are worked on: the others may run once more.

        `session` is what `Executor.run` was given, "" included; of a `Session` it is the `session_id`. In memory this
        looks at the rows of all sessions.
        """
        require("forget_session", str, "a text", session=session)
        with self._transaction():
            for key, row in self._all(_of_session(session)):
                if key not in self._watchers and (row.state == "finished" or not self._is_elsewhere(row)):
                    self._delete(key)

    async def soon(self, step: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Do a step, which is one of the methods above, and wait for other processes without holding up the loop.

        Who is cancelled while it waits has done nothing.
        """
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            token = _patience.set(_Patience(until, sleeps=False))
            try:
                return step(*arguments, **options)
            except _BusyError:
                pass
            finally:
                _patience.reset(token)
            await asyncio.sleep(_PAUSE_SECONDS)

    def at_once(self, step: Callable[..., T], *arguments: Any) -> T:
        """Do a step, and wait for other processes no longer than they usually take."""
        token = _patience.set(_Patience(time.monotonic() + _AT_ONCE_SECONDS, sleeps=True))
        try:
            return step(*arguments)
        finally:
            _patience.reset(token)

    @contextlib.contextmanager
    def _last_step(self, key: str) -> Iterator[None]:
        """The transaction that ends an attempt: who waits is told, also where it fails, unless it is tried again."""
        over = True
        try:
            with self._transaction():
                yield
        except _BusyError:
            over = False
            raise
        finally:
            if over:
                self._over(key)

    def _over(self, key: str) -> None:
        with self._lock:
            watchers = self._watchers.pop(key, [])
        for watcher in watchers:
            attempt(watcher)

    def __repr__(self) -> str:
        rows = attempt(self._all).value
        return f"{type(self).__name__}({'?' if rows is None else len(rows)} calls)"

    # How rows are kept.

    def _transaction(self) -> contextlib.AbstractContextManager[Any]:
        """Return what holds the lock, and whatever else a step needs to be done alone and whole."""
        return self._lock

    def _is_elsewhere(self, row: Row) -> bool:
        """Return whether a row that is not finished belongs to another process, which lives."""
        return False

    def _load(self, key: str) -> Row | None:
        return self._rows.get(key)

    def _store(self, key: str, row: Row) -> None:
        self._rows[key] = row

    def _delete(self, key: str) -> None:
        self._rows.pop(key, None)

    def _all(self, begins: str = "") -> list[tuple[str, Row]]:
        """Return the rows whose keys begin so; their results, which may be many, may be left out."""
        return [(key, row) for key, row in list(self._rows.items()) if key.startswith(begins)]


class SqliteLedger(Ledger):
    """A ledger in an SQLite file: it holds across crashes, and several processes may share it, forks included.

    Of these each locks a file of its own beside it, `...-live-...`, by which the others know that it lives. Where there
    are no such locks (Windows), a call of another process that is not over is taken for interrupted: what only reads
    may run in both.

    durable   False (default): survives the end of a process, `kill -9` included, at 0.1 ms a step; True: also the
              end of the machine, at the price of a flush of the disk for each step

    Results stand in the file as they are. Raises LedgerError where the file cannot be used: no call that runs once is
    begun then.
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = False) -> None:
        require("SqliteLedger", (str, os.PathLike), "the path of a file", path=path)
        if not os.fspath(path) or os.fspath(path) == ":memory:":
            raise UsageError("SqliteLedger: expected the path of a file; in memory, Ledger does the same")
        self._path = os.path.abspath(path)
        self._synchronous = "FULL" if durable else "NORMAL"
        self._closed = False
        self._base: sqlite3.Connection | None = None
        self._presence: Presence | None = None
        super().__init__()
        with self._lock, self._explained():
            self._open()

    def _begin(self) -> None:
        super()._begin()
        if self._presence is not None:
            self._presence.disown()
            self._presence = None

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(f"ledger {self._path}: expected one that is open, found that it was closed")
        if self._base is None:
            base = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            with contextlib.ExitStack() as failed:
                failed.callback(base.close)
                _write_ahead(base)
                base.execute(f"PRAGMA synchronous={self._synchronous}")
                base.execute(
                    "CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, state TEXT NOT NULL, "
                    "token TEXT NOT NULL, name TEXT NOT NULL, result BLOB NOT NULL)"
                )
                base.execute("SELECT key, state, token, name, result FROM calls LIMIT 0")  # is the table a ledger's?
                base.execute("PRAGMA busy_timeout=0")  # from now on it is waited for without the lock
                failed.pop_all()
            self._base = base
        return self._base

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            self._pause()
            if self._presence is not None:
                self._presence.leave()
                self._presence = None

    def _pause(self) -> None:
        # SQLite knows its locks by process: a connection that came through a fork would believe that it holds some.
        if self._base is not None:
            self._base.close()
            self._base = None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            reason = _REASONS.get(_code(error), f"expected a ledger, found: {error}")
            raise LedgerError(f"ledger {self._path}: {reason}") from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        patience = _patience.get() or _Patience(time.monotonic() + _WAIT_SECONDS, sleeps=True)
        while True:
            with self._explained(), self._lock:
                if self._begun(last=time.monotonic() >= patience.until):
                    with self._open():  # commits, or rolls back
                        yield
                    return
            if not patience.sleeps:
                raise _BusyError
            time.sleep(_PAUSE_SECONDS)  # without the lock, so that nobody here waits for another process but who must

    def _begun(self, last: bool) -> bool:
        """Begin a transaction; return whether the file was free. Raises where it is not at the last attempt."""
        try:
            # Immediate: it takes the right to write before it reads, so no other process comes between.
            self._open().execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if last or _code(error) != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def _is_elsewhere(self, row: Row) -> bool:
        return row.token != self._token and lives(self._path, row.token)

    def _load(self, key: str) -> Row | None:
        found = (
            self._open().execute("SELECT state, token, name, result FROM calls WHERE key = ?", (key,)).fetchone()
        )
        return None if found is None else Row(*found)

    def _store(self, key: str, row: Row) -> None:
        if self._presence is None:  # before anybody can see the row
            try:
                self._presence = Presence(self._path, self._token)
            except OSError as error:
                reason = f"expected to lock a file beside it, found: {error.strerror}"
                raise LedgerError(f"ledger {self._path}: {reason}") from error
        self._open().execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?)", (key, *row))

    def _delete(self, key: str) -> None:
        self._open().execute("DELETE FROM calls WHERE key = ?", (key,))

    def _all(self, begins: str = "") -> list[tuple[str, Row]]:
        query = "SELECT key, state, token, name FROM calls WHERE key GLOB ? ORDER BY rowid"
        with self._lock, self._explained():
            rows = self._open().execute(query, (f"{begins}*",))
            return [(key, Row(*rest)) for key, *rest in rows]


def _write_ahead(base: sqlite3.Connection) -> None:
    """Let readers and a writer work side by side, in a file that others may be making at the same time.

    Of those SQLite refuses all but one at once, however long it was told to wait.
    """
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            base.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
        time.sleep(_PAUSE_SECONDS)


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, 0 where the error is not its own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
