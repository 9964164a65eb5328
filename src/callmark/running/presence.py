"""`Presence`: how processes that share a file know which of them live. Each locks a file of its own beside it.

The lock ends with its process, `kill -9` included, so nobody keeps a clock and nobody waits for the dead. Where Python
has no such locks (Windows), nobody is known to live.
"""

from __future__ import annotations

import os
import sys
import weakref
from contextlib import suppress
from glob import escape, glob

if sys.platform != "win32":  # pragma: no branch
    import fcntl


class Presence:
    """The sign that who has `token` lives, until it is dropped, or `leave` is called. Raises OSError."""

    def __init__(self, path: str, token: str) -> None:
        for name in glob(_sign_of(escape(path), "[0-9a-f]" * 32)):
            if not _is_held(name):  # of a process that was killed
                with suppress(OSError):  # another one was first, or it is another user's
                    os.unlink(name)
        name = _sign_of(path, token)
        self._file = os.open(f"{name}.new", os.O_RDWR | os.O_CREAT, 0o644)
        if sys.platform != "win32":  # pragma: no branch
            fcntl.flock(self._file, fcntl.LOCK_EX)
        os.rename(f"{name}.new", name)  # it is never seen without its lock
        self._over = weakref.finalize(self, _leave, self._file, name)

    def leave(self) -> None:
        """Take the sign away."""
        self._over()

    def disown(self) -> None:
        """Let go of the sign in a child, which came by it through a fork: it stays that of the parent."""
        self._over.detach()
        os.close(self._file)


def lives(path: str, token: str) -> bool:
    """Return whether who has `token` is known to live."""
    return _is_held(_sign_of(path, token))


def _sign_of(path: str, token: str) -> str:
    return f"{path}-live-{token}"


def _leave(file: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name)
    os.close(file)


def _is_held(name: str) -> bool:
    if sys.platform == "win32":  # pragma: no cover
        return False
    try:
        file = os.open(name, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: who looks is not taken for its owner
    except OSError as error:  # any other one says that there are no locks
        return isinstance(error, BlockingIOError)
    finally:
        os.close(file)
    return False
