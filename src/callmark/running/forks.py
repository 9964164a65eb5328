"""What has a lock and counts what goes on, when its process forks: whole in the parent, at rest in the child.

All of it is held while a process forks, so that nothing is copied in the middle of a step. These locks are the last
ones that anybody takes: who has one waits for no other.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager
from functools import cache
from typing import Any


class Forking:
    """A part of the executor that forks go through."""

    _lock: AbstractContextManager[object]

    def __init__(self) -> None:
        self._begin()
        _listen()
        with _forking:
            _all.add(self)

    def __getstate__(self) -> Any:
        """Refuse to be copied and pickled: a copy would share some of the counts, and what is at rest in a child."""
        raise TypeError(f"{type(self).__name__}: expected to be shared, not copied or pickled; make another one")

    def _begin(self) -> None:
        """Begin as a process of its own, in which nothing goes on: with a lock, and counts of nothing."""
        self._lock = threading.Lock()

    def _pause(self) -> None:
        """Let go, before a fork, of what must not get into another process."""


_forking = threading.Lock()
_all: weakref.WeakSet[Forking] = weakref.WeakSet()
_held: list[Forking] = []


@cache
def _listen() -> None:
    if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows has neither forks nor this
        os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def _before_fork() -> None:
    _forking.acquire()
    _held.extend(_all)
    for each in _held:
        each._lock.__enter__()
        each._pause()


def _after_fork() -> None:
    for each in _held:
        each._lock.__exit__(None, None, None)
    _held.clear()
    _forking.release()


def _after_fork_in_child() -> None:  # pragma: no cover  # tested, in children that leave without a word to coverage
    for each in _held:
        each._begin()
    _held.clear()
    _forking.release()
