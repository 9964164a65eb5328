"""Runs sessions for a client: its model and its tools are asked for over the connection.

Everything of a session happens in one event loop, that of the server or one in a thread of its own; what the client
says comes from outside and is handed into it. A client that is silent is given up in its time, and one that is gone
takes its sessions with it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import ExitStack, aclosing
from itertools import count
from typing import Any, Final, TypeVar, cast

import msgspec

from callmark.errors import ToolError
from callmark.events import Event
from callmark.running.executor import Executor
from callmark.running.jobs import Approval
from callmark.running.loop_guard import LoopGuard
from callmark.running.models import ModelError, Request
from callmark.running.session import Session, SessionEvent
from callmark.running.session import Step as SessionStep
from callmark.running.settings import Settings
from callmark.running.signals import Cancel
from callmark.serving import sessions as wire
from callmark.serving.methods import State, fields
from callmark.serving.problems import ServingError
from callmark.serving.rpc import Connection, RemoteError
from callmark.serving.texts import Tiles
from callmark.tools.context import Invocation, flat_content
from callmark.tools.registry import Registry
from callmark.tools.results import Result
from callmark.tools.tool import Tool

_TOOLS: Final = 1_000  # tools of one session: more than a model can be told
_WIND_UP_SECONDS: Final = 2.0  # for turns that are cancelled because the client is gone

_T = TypeVar("_T")


class ClientToolError(Exception):
    """The client's tool failed, and said nothing that is meant for the model."""


class Host:
    """The sessions of one connection, and the loop that they run in."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.connection: Connection = state.connection
        self._sessions: dict[str, Hosted] = {}
        self._names = map("session-{}".format, count(1))
        self._generations: dict[str, Generation] = {}
        self._own: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def open(self, params: wire.SessionOpen) -> str:
        """Open a session and return its name."""
        bounds = self.state.bounds
        if len(self._sessions) >= bounds.sessions:
            raise ServingError("too-many", f"session/open: at most {bounds.sessions} sessions are open at once")
        name = params.session
        if name is None:
            name = next(own for own in self._names if own not in self._sessions)
        if name in self._sessions:
            raise ServingError("invalid-params", f"session: expected a new name, found {name!r:.80}, which is open")
        self._sessions[name] = Hosted(self, name, params)
        return name

    def get(self, name: str) -> Hosted:
        """Return an open session."""
        try:
            return self._sessions[name]
        except KeyError:
            raise ServingError("unknown-session", f"no session {name!r:.80} is open") from None

    def drop(self, name: str) -> None:
        """Forget a session."""
        del self._sessions[name]

    def chunk(self, generation: str, text: str) -> None:
        """Hand a piece of a model's text on."""
        found = self._generations.get(generation)
        if found is None:
            raise ServingError("unknown-generation", f"no model is asked under the id {generation!r:.80} any more")
        found.take(text)

    def start(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Run a coroutine in the loop of the sessions."""
        loop = self.connection.loop
        if loop is None:
            if self._own is None:
                self._own = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=[self._own], name="callmark-sessions", daemon=True)
                self._thread.start()
            loop = self._own
        return asyncio.run_coroutine_threadsafe(work, loop)

    def close(self) -> None:
        """Cancel every turn: the client is gone."""
        turns = [each.turn for each in self._sessions.values() if each.turn is not None and not each.turn.done()]
        for each in list(self._sessions.values()):
            each.close()
        for turn in turns:
            turn.cancel()
        if self._own is None or self._thread is None:
            return
        loop = self._own
        asyncio.run_coroutine_threadsafe(_wind_up(), loop).add_done_callback(
            lambda _: loop.call_soon_threadsafe(loop.stop)
        )
        self._thread.join(2 * _WIND_UP_SECONDS)

    def ask(self, id: str, method: str, params: Any, answered: Callable[[Any, RemoteError | None], object]) -> None:  # noqa: A002
        """Ask the client; the answer comes in this loop."""
        loop = asyncio.get_running_loop()
        self.connection.ask(id, method, params, lambda *answer: loop.call_soon_threadsafe(answered, *answer))

    async def answer(self, method: str, params: Any, cancelled: str, cancel: Cancel) -> tuple[Any, RemoteError | None]:
        """Ask the client and wait for its answer, or for `cancel`.

        Where the waiting ends before the answer, the client is told by the notification `cancelled`.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[Any, RemoteError | None]] = loop.create_future()

        def answered(result: Any, error: RemoteError | None) -> None:
            if not future.done():
                future.set_result((result, error))

        id = self.connection.new_id(method)  # noqa: A001
        self.ask(id, method, params, answered)
        cancel.listen(lambda: loop.call_soon_threadsafe(answered, None, RemoteError("cancelled")), name=future)
        try:
            return await future
        finally:
            if self.connection.forget(id):
                self.connection.tell(cancelled, wire.Cancelled(id))

    def generation(self, id: str, generation: Generation | None) -> None:  # noqa: A002
        """Say where the chunks of a request go; None: nowhere any more."""
        if generation is None:
            self._generations.pop(id, None)
        else:
            self._generations[id] = generation


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


async def _wind_up() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_WIND_UP_SECONDS)


class Generation:
    """What a client's model writes to one request, on its way to the session."""

    def __init__(self, characters: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._characters = characters
        self.queue: asyncio.Queue[tuple[str, str | None, bool]] = asyncio.Queue()  # text, error, whether it is the last

    def take(self, text: str) -> None:
        """Take a chunk, from any thread."""
        self._characters -= len(text)
        if self._characters < 0:
            self._put("", "the client's model wrote more than a message may have", True)
        else:
            self._put(text, None, False)

    def end(self, result: Any, error: RemoteError | None) -> None:
        """Take the client's answer, which ends the text."""
        if error is not None:
            self._put("", f"the client's model failed: {error.message:.500}", True)
            return
        text = result.get("text", "") if isinstance(result, dict) else "" if result is None else None
        if not isinstance(text, str):
            self._put("", "the client's model: expected an object with a text, or null", True)
            return
        self.take(text)
        self._put("", None, True)

    def _put(self, text: str, error: str | None, last: bool) -> None:
        self._loop.call_soon_threadsafe(self.queue.put_nowait, (text, error, last))


class Hosted:
    """One session of a client."""

    def __init__(self, host: Host, name: str, opening: wire.SessionOpen) -> None:
        self._host = host
        self._name = name
        self._opening = opening
        self.registry = Registry()
        self.register(opening.tools, allow_overwrite=False)
        executor = Executor(
            self.registry,
            approve=self._approved,
            timeout_seconds=opening.timeout_seconds,
            error_text=opening.error_text,
        )
        self.session = Session(
            executor,
            settings=_settings(opening.settings),
            system=opening.system,
            messages=opening.messages,
            guard=LoopGuard(**msgspec.structs.asdict(opening.guard)),
            context=Invocation(caller=opening.caller),
        )
        self.turn: Future[wire.Turn] | None = None
        self._cancel = Cancel()
        self._closed = False
        self._tiles: Tiles | None = None

    def register(self, tools: Iterable[wire.ClientTool], *, allow_overwrite: bool) -> None:
        """Add tools that live in the client: all of them, or none where one is refused."""
        before = {each.qualified_name: each for each in self.registry.list()}
        with ExitStack() as refused:
            for row in tools:
                made = Tool(
                    **fields(row, "parameters"),
                    parameters=row.parameters or {"type": "object", "properties": {}},
                    function=self._body(row),
                    runs_in="loop",
                )
                name = made.qualified_name
                if len(self.registry) >= _TOOLS and name not in self.registry:
                    raise ServingError("too-many", f"session: at most {_TOOLS} tools, found more")
                self.registry.register(made, allow_overwrite=allow_overwrite)
                if name in before:
                    refused.callback(self.registry.register, before[name], allow_overwrite=True)
                else:
                    refused.callback(self.registry.unregister, name, force=True)
            refused.pop_all()

    # A turn.

    def run(self, text: str | None) -> Future[wire.Turn]:
        """Begin a turn. Raises ServingError where one is going on, or the conversation is too long."""
        if self.turn is not None and not self.turn.done():
            raise ServingError("busy", f"session {self._name!r}: expected the last turn to be over")
        limit = self._host.state.bounds.stream_characters
        said = sum(len(flat_content(message.get("content"))) for message in self.session.messages)
        if said + len(text or "") > limit:
            raise ServingError(
                "too-large", f"session {self._name!r}: the conversation has more than {limit} characters"
            )
        self._cancel = Cancel()
        self.turn = self._host.start(self._run(text, self._cancel))
        return self.turn

    async def _run(self, text: str | None, cancel: Cancel) -> wire.Turn:
        last: SessionEvent | None = None
        try:
            async with aclosing(self.session.run(self._model, text, cancel=cancel)) as events:
                async for event in events:
                    self._show(event)
                    last = event
        except ModelError as error:
            raise ServingError("model-error", str(error)) from error
        if isinstance(last, SessionStep) and last.kind == "answer":
            return wire.Turn("answer", last.text)
        return wire.Turn("cancelled", "")

    def cancel(self) -> None:
        """Cancel the turn that is going on."""
        self._cancel.set()

    def close(self) -> None:
        """Cancel, and forget the session: nothing is told of it any more, as its name is free."""
        self._closed = True
        self.cancel()
        self._host.drop(self._name)

    def _show(self, event: SessionEvent) -> None:
        if self._closed or not self._opening.events:
            return
        if isinstance(event, SessionStep | Result):
            rest = self._tiles.rest() if self._tiles is not None else []
            if isinstance(event, SessionStep) and event.kind == "generation":
                self._tiles = Tiles() if self._host.state.positions == "utf-16" else None
            told = wire.Step(event.kind, event.text) if isinstance(event, SessionStep) else event
            self._tell([*rest, told])
        else:
            self._tell([event] if self._tiles is None else self._tiles.events(event))

    def _tell(self, events: Iterable[Event | Result | wire.Step]) -> None:
        for event in events:
            self._host.connection.tell("session/event", wire.Happened(self._name, event))

    # What lives in the client.

    async def _model(self, request: Request) -> AsyncGenerator[str, None]:
        host = self._host
        generation = Generation(host.state.bounds.stream_characters)
        id = host.connection.new_id("model/generate")  # noqa: A001
        host.generation(id, generation)
        try:
            host.connection.ask(id, "model/generate", wire.Generate(self._name, request.messages), generation.end)
            last = False
            while not last:
                try:
                    async with asyncio.timeout(self._opening.model_timeout_seconds):
                        text, error, last = await generation.queue.get()
                except TimeoutError as silence:
                    seconds = self._opening.model_timeout_seconds
                    raise ModelError(f"the client's model was silent for {seconds:g} seconds") from silence
                if error is not None:
                    raise ModelError(error)
                if text:
                    yield text
        finally:
            host.generation(id, None)
            if host.connection.forget(id):
                host.connection.tell("model/cancel", wire.Cancelled(id))

    def _body(self, row: wire.ClientTool) -> Callable[[dict[str, Any], Invocation], Any]:
        async def invoke(arguments: dict[str, Any], context: Invocation) -> Any:
            told = wire.Invoked(
                session=self._name,
                request_id=context.request_id,
                idempotency_key=context.idempotency_key,
                caller=dict(context.caller),
            )
            asked = wire.Invoke(
                name=row.name,
                tool=f"{row.owner}:{row.name}" if row.owner else row.name,
                arguments=arguments,
                context=told,
                deadline_seconds=context.remaining_seconds() or 0.0,
            )
            result, error = await self._host.answer("tool/invoke", asked, "tool/cancel", cast(Cancel, context.cancel))
            if error is None:
                return result
            data = error.data if isinstance(error.data, dict) else {}
            if isinstance(data.get("code"), str):
                raise ToolError(data["code"], error.message, str(data.get("hint") or ""))
            raise ClientToolError(error.message)

        return invoke

    async def _approved(self, approval: Approval) -> bool:
        tool = approval.tool
        asked = wire.Approve(session=self._name, name=tool.name, tool=tool.qualified_name, arguments=approval.arguments)
        result, error = await self._host.answer(
            "tool/approve", asked, "tool/cancel", cast(Cancel, approval.context.cancel)
        )
        return error is None and result is True


def _settings(given: wire.SessionSettings) -> Settings:
    named = fields(given)
    for options in ("prompt", "reading"):
        named[options] = {key: value for key, value in fields(named[options]).items() if value is not None}
    named["only"] = None if given.only is None else tuple(given.only)
    return Settings(mode="text", **named)
