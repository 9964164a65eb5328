"""Runs tools where they can do no harm: each in a daemon thread of its own, an async one in an event loop of its own.

Python can end no thread. One that is given up goes on in the background and is counted until it ends; the executor
starts nothing new while too many of them are left.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from callmark.running.forks import Forking
from callmark.running.signals import Bell, Cancel, leavable_task
from callmark.running.threads import Threads
from callmark.tools.foreign import Outcome, attempt, attempt_task

T = TypeVar("T")

_WIND_UP_SECONDS = 1.0  # for what an async tool leaves running in its loop
_TURN_SECONDS = 0.0005  # that a thread may keep the interpreter for, while bodies run in threads

Finish = Callable[[Outcome], Any]


class Delivery:
    """What a worker hands over, once: the first of the worker and of who gave it up."""

    def __init__(self, ring: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._ring = ring
        self.closed = False
        self.content: Any = None

    def put(self, content: Any) -> None:
        """Hand something over; too late where it was given up."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self.content = content
        self._ring()

    def give_up(self) -> bool:
        """Take nothing any more; return whether nothing had come."""
        with self._lock:
            late, self.closed = not self.closed, True
            return late


class _Turns(Forking):
    """Shortens the turns of Python's threads while bodies run in some: who counts the seconds waits for one of each.

    A body that spins, and was given up, takes all of its turns for ever. Eight of them, at Python's own 5 milliseconds
    a turn, make a timeout late by a second.
    """

    _usual: float | None = None  # what the host has chosen, while it is shortened

    def _begin(self) -> None:
        super()._begin()
        self._bodies = 0
        self._restore()

    def add(self, bodies: int) -> None:
        """Say that so many bodies more, or fewer, run in threads."""
        with self._lock:
            self._bodies += bodies
            if not self._bodies:
                self._restore()
            elif self._usual is None:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, _TURN_SECONDS))

    def _restore(self) -> None:
        if self._usual is not None:
            sys.setswitchinterval(self._usual)
            self._usual = None


_turns = _Turns()


class Workers(Forking):
    """Starts workers and counts those that were given up and are still alive."""

    def _begin(self) -> None:
        super()._begin()
        self._alive: set[object] = set()
        self._abandoned: set[object] = set()

    @property
    def abandoned(self) -> int:
        """How many workers were given up and are still alive."""
        return len(self._abandoned)

    def in_thread(self, body: Callable[[], Any], finish: Finish, delivery: Delivery, cancel: Cancel) -> object:
        """Run `body` in a thread, `finish` of its outcome too, and deliver that. Returns the worker's name.

        `finish` must not raise.

        Raises RuntimeError where no thread can be started.
        """
        name = object()
        context = contextvars.copy_context()

        def work() -> None:
            if cancel.begin():
                threads = Threads()
                outcome = attempt(context.run, run_body, body, finish, delivery, cancel, threads)
                if outcome.error is not None:  # what an async tool's own tasks raised ended its loop
                    delivery.put(finish(outcome))
                if not threads.ended(_WIND_UP_SECONDS):  # the tool is over, and what it began in them hangs
                    self.abandon(name)
                    threads.ended()
            self._over(name)
            _turns.add(-1)

        self._alive.add(name)
        _turns.add(1)
        try:
            threading.Thread(target=work, name="callmark-tool", daemon=True).start()
        except RuntimeError:
            self._over(name)
            _turns.add(-1)
            raise
        return name

    def in_loop(self, body: Callable[[], Any], finish: Finish, delivery: Delivery, cancel: Cancel) -> object:
        """Do the same as a task of the running event loop."""

        async def work() -> None:
            if cancel.begin():
                delivery.put(finish(await attempt_task(body)))

        task = leavable_task(work(), cancel.is_set)
        self._alive.add(task)
        task.add_done_callback(self._over)
        cancel.listen(_canceller(task))
        return task

    async def aside(self, body: Callable[[], Any], finish: Finish, seconds: float | None, limit: int) -> Any:
        """Do the same in a thread, and wait so long for what is delivered; None where nothing came, or `limit` hang.

        It is for what hosts write beside bodies, which is quick and may hang all the same.
        """
        if self.abandoned >= limit:
            return None
        bell = Bell()
        delivery = Delivery(bell.ring)
        try:
            worker = self.in_thread(body, finish, delivery, Cancel())
        except RuntimeError:
            return None
        try:
            await bell.wait(seconds)
        finally:
            if delivery.give_up():
                self.abandon(worker)
        return delivery.content

    def abandon(self, name: object) -> None:
        """Say that nobody waits for a worker any more."""
        with self._lock:
            if name in self._alive:
                self._abandoned.add(name)

    def _over(self, name: object) -> None:
        with self._lock:
            self._alive.discard(name)
            self._abandoned.discard(name)


def run_body(body: Callable[[], Any], finish: Finish, delivery: Delivery, cancel: Cancel, threads: Threads) -> None:
    """Run `body`, in a loop of its own where it is async, and `finish` of its outcome, and deliver that.

    What such a loop hands to threads runs in `threads`, and may outlast it there.
    """
    outcome = attempt(body)
    value: Any = outcome.value
    if not attempt(_goes_on, value).value:  # what cannot be asked is a value
        delivery.put(finish(outcome))
        return
    complete(_whole(value, finish, delivery, cancel), _WIND_UP_SECONDS, threads)


def _goes_on(value: Any) -> bool:
    return inspect.isawaitable(value) or inspect.isasyncgen(value)


def complete(work: Coroutine[Any, Any, T], wind_up_seconds: float, threads: Threads | None = None) -> T:
    """Run a coroutine in an event loop of its own.

    What it leaves running is cancelled, async generators that it leaves open are closed, and all is forgotten after a
    while.
    """
    loop = asyncio.new_event_loop()
    loop.set_default_executor(threads or Threads())
    loop.set_exception_handler(lambda *_: None)  # it would log what a tool's tasks raise, secrets and all
    try:
        return loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        end = loop.create_task(_end_of(left))
        attempt(loop.run_until_complete, asyncio.wait((end,), timeout=wind_up_seconds))
        loop.close()


async def _end_of(left: set[asyncio.Task[Any]]) -> None:
    if left:
        await asyncio.wait(left)
    await asyncio.get_running_loop().shutdown_asyncgens()


async def off_loop(body: Callable[[], Any]) -> Any:
    """Run a body that may block in a thread, for the loop that runs; what it returns to be awaited is awaited here.

    Who is cancelled ends when the thread does, or when told so again: until then the work is under way, and counted.
    """
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        outcome = attempt(context.run, body)
        if attempt(loop.call_soon_threadsafe, deliver, outcome).error is not None:
            _forgotten(outcome)  # the loop is gone

    def deliver(outcome: Outcome) -> None:
        if over.done():
            _forgotten(outcome)
        else:
            over.set_result(outcome)

    threading.Thread(target=work, name="callmark-tool", daemon=True).start()
    try:
        value, error = await asyncio.shield(over)
    except asyncio.CancelledError:
        _forgotten(await over)
        raise
    if error is not None:
        raise error
    return await value if inspect.isawaitable(value) else value


def _forgotten(outcome: Outcome) -> None:
    """Close what nobody will await, which Python would remark."""
    if inspect.iscoroutine(outcome.value):
        outcome.value.close()


async def _whole(begun: Any, finish: Finish, delivery: Delivery, cancel: Cancel) -> None:
    task = asyncio.ensure_future(attempt_task(lambda: begun))
    cancel.listen(_canceller(task))
    delivery.put(finish(await task))


def _canceller(task: asyncio.Future[Any]) -> Callable[[], object]:
    loop = task.get_loop()

    def cancel() -> None:
        try:
            loop.call_soon_threadsafe(task.cancel)
        except RuntimeError:
            pass  # the loop is gone, and the task with it

    return cancel


async def side_by_side(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines side by side to their ends, whatever one of them raises; a cancellation reaches each."""
    for outcome in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
