"""Compiles and loads what writing needs first beside an event loop, and not in it: a quarter of a second, once.

Nothing is compiled before somebody needs it, as requests of a server's first seconds would wait longer for that. Who
needs it waits here; all others have their turns meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Final

from callmark.dialects import Dialect
from callmark.writing.neutral import neutralize
from callmark.writing.prompt import protocol_prompt

_SAMPLE: Final = "<["  # with which most markers begin; each kind takes some milliseconds more, when a text has it

_begun: Final[dict[tuple[int, tuple[Dialect, ...], bool], Future[None]]] = {}


async def prepared(rows: tuple[Dialect, ...] = (), *, special_tokens: bool = False) -> None:
    """Wait until a text to be neutralized, or a prompt, costs what later ones do; one preparation is for all who wait.

    rows             dialects that are not registered, and count beside those that are
    special_tokens   whether texts will be neutralized with this option, too
    """
    key = os.getpid(), rows, special_tokens  # a fork has no threads of its parent's
    done = _begun.get(key)
    if done is None:
        done = _begun[key] = Future()  # at once: loops of other threads may ask
        done.set_running_or_notify_cancel()  # who waits may go, and the others wait on
        work = partial(_prepare, done, rows, special_tokens)
        try:
            Thread(target=work, name="callmark-prepare", daemon=True).start()
        except RuntimeError:  # there can be no more threads, or none at all
            work()
    if not done.done():
        await asyncio.wrap_future(done)


def _prepare(done: Future[None], rows: tuple[Dialect, ...], special_tokens: bool) -> None:
    try:
        for special in {False, special_tokens}:
            neutralize(_SAMPLE, dialects=rows or None, special_tokens=special)
        protocol_prompt(["f"])
    finally:
        done.set_result(None)  # what cannot be prepared cannot be neutralized either: that is told there
