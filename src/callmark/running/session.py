"""`Session`: a conversation in which a model calls tools. It asks, reads, runs, tells results, and asks again.

Only what the model answers is read for calls: users' words, results and prompts go into messages, and there is no
way from a message to a parser. What is yielded is what is read (`callmark.events`), a `Result` for each call, and a
`Step` wherever the session does something on its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import NoneType
from typing import Any, Literal

import msgspec

from callmark.errors import ToolError, UsageError
from callmark.events import Call, Event
from callmark.running.executor import Executor
from callmark.running.generation import Generation
from callmark.running.loop_guard import LoopGuard
from callmark.running.models import Model, Request
from callmark.running.observing import ToolStats
from callmark.running.preparing import prepared
from callmark.running.rendering import clean
from callmark.running.settings import Settings
from callmark.running.signals import Cancel, unless
from callmark.running.wording import Wording
from callmark.tools.context import Invocation, apart
from callmark.tools.misuse import require
from callmark.tools.registry import Registry
from callmark.tools.results import Failure, Result
from callmark.tools.shapes import native
from callmark.tools.tool import Tool
from callmark.writing.messages import merge_into_messages
from callmark.writing.prompt import Prompt

_NO_MORE = ("loop-guard", "breaker-open", "busy", "saturated")  # a guard's no: the model goes on without any tools
_WRONG = ("unknown-tool", "invalid-arguments")  # the model's own mistakes: such a call is none that was wanted
_TOLD = (*_NO_MORE, *_WRONG, "denied")  # nothing ran, so a stealth tool's wish for no answer does not count


class Step(msgspec.Struct, frozen=True, tag_field="type", tag="step"):
    """Something that a session does on its own. `text` is what it says to the model, or the answer.

    "generation"    a model is asked; `text` are the system messages
    "continuation"  it is asked to go on with a message that was cut off inside a call
    "cut"           its server did not send all of the message; `text` is the reason in its word ("length", say), or
                    "cut" where the connection was lost. What came is taken as it is. "invented result" where the
                    session ended it: what follows a call there claims to be its result, or another's turn
    "results"       it is told results
    "retry"         it is told what was wrong
    "no-tools"      a guard said no (any: the loop guard, a tool's breaker, the bulkhead): it answers without tools
    "cancelled"     the turn was cancelled
    "answer"        the turn is over; `text` is what the model answered last
    """

    kind: Literal["generation", "continuation", "cut", "results", "retry", "no-tools", "cancelled", "answer"]
    text: str = ""

    def __repr__(self) -> str:
        return f"Step({self.kind}, {len(self.text)} characters)"


def _place(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return what tells the message that comes behind `messages` from others: a digest of what was said, and by whom.

    How many there are would not do, as hosts trim conversations. What a host says in system messages is left out: it
    may change (a date, say) while the conversation stays.
    """
    said = [message for message in messages if message.get("role") not in ("system", "developer")]
    text = json.dumps(said, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class _Turn:
    """A turn that was begun. Who leaves it by `break` leaves it to Python and the event loop, which close it soon."""

    events: weakref.ref[AsyncGenerator[SessionEvent, None]]

    def begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.over = asyncio.Event()

    async def left(self) -> None:
        """Wait until it is closed. Raises UsageError where somebody may go on with it."""
        if self.events() is not None:
            raise UsageError(
                "run: expected the last turn to be over, since a session does one at a time; go through its events to "
                "the end, or close them (`await events.aclose()`)"
            )
        if self._loop is asyncio.get_running_loop():
            await self.over.wait()


class SessionStats(msgspec.Struct, kw_only=True):
    """Counts of one session; `tools` and what follows are those of its executor, which sessions may share.

    `running` and `waiting` are calls inside and before the bulkhead; `abandoned` were given up and still run.
    """

    turns: int = 0
    generations: int = 0
    continuations: int = 0
    retries: int = 0
    calls: int = 0
    malformed: int = 0
    blocked_seconds: float = 0.0
    rounds_left: int = 0
    calls_left: int = 0
    tools: dict[str, ToolStats] = msgspec.field(default_factory=dict)
    running: int = 0
    waiting: int = 0
    abandoned: int = 0


SessionEvent = Event | Result | Step


class Session:
    """One conversation.

    executor     runs the calls; a Registry makes one with the defaults
    settings     of the connection
    wording      makes what is said to the model out of the settings: a subclass of Wording
    system       the host's own system message
    messages     what was said before; a host may change `session.messages` between turns. Where the user has said
                 something new there, the loop guard begins anew, as with `say` and `run(model, text)`
    guard        default: a LoopGuard with its defaults
    session_id   names the conversation in the ledger and to observers; the same one after a restart finds what ran. So
                 a conversation that is trimmed until it begins as an earlier one did wants another one: the same words
                 in the same place are taken for what was said then, and its calls come to what they came to
    context      what tools are told; messages, request and cancel are filled in for each turn

    >>> import asyncio
    >>> from callmark import tool
    >>> @tool(mode="read")
    ... def look(at: str) -> str:
    ...     return f"{at} is green"
    >>> def model(request):
    ...     told = request.messages[-1]["content"]
    ...     return "It is green." if told.startswith("Result") else 'Let me see. [CALL: look({"at": "grass"})]'
    >>> async def ask(question):
    ...     session = Session(Registry([look]))
    ...     return [event async for event in session.run(model, question)][-1].text
    >>> asyncio.run(ask("What colour is grass?"))
    'It is green.'

    A session does one turn at a time.
    """

    def __init__(
        self,
        executor: Executor | Registry,
        *,
        settings: Settings | None = None,
        wording: Callable[[Settings], Wording] = Wording,
        system: str = "",
        messages: Sequence[Mapping[str, Any]] = (),
        guard: LoopGuard | None = None,
        session_id: str = "",
        context: Invocation | None = None,
    ) -> None:
        require("Session", (Executor, Registry), "an Executor or a Registry", executor=executor)
        require("Session", (Settings, NoneType), "Settings", settings=settings)
        require("Session", Callable, "a subclass of Wording", wording=wording)
        require("Session", str, "a text", system=system, session_id=session_id)
        require("Session", (list, tuple), "a list of messages", messages=messages)
        for message in messages:
            require("Session", Mapping, "messages that are mappings", messages=message)
        require("Session", (LoopGuard, NoneType), "a LoopGuard", guard=guard)
        require("Session", (Invocation, NoneType), "an Invocation", context=context)
        self.executor = executor if isinstance(executor, Executor) else Executor(executor)
        self.settings = settings or Settings()
        self.wording = wording(self.settings)
        self.wording.tools = self.executor.registry
        self.system = system
        self.messages: list[dict[str, Any]] = [dict(message) for message in messages]
        self.guard = guard or LoopGuard()
        self.session_id = session_id or uuid.uuid4().hex
        self._context = context or Invocation()
        self._counts = SessionStats()
        self._own: set[str] = set()  # what the session itself said in the user's role
        self._heard = self._said()
        self._last: _Turn | None = None  # that is going on, or was left and is not closed yet

    @property
    def stats(self) -> SessionStats:
        """The counts so far, and the state of the guards."""
        rounds, calls = self.guard.budget_left()
        return msgspec.structs.replace(
            self._counts,
            blocked_seconds=self.guard.blocked_seconds(),
            rounds_left=rounds,
            calls_left=calls,
            tools=self.executor.stats(),
            running=self.executor.running,
            waiting=self.executor.waiting,
            abandoned=self.executor.abandoned,
        )

    def say(self, text: str) -> None:
        """Add what the user says. It begins a new turn: the loop guard begins anew."""
        self.messages.append({"role": "user", "content": text})
        self._heard = self._said()
        self.guard.new_turn()

    def _hear(self) -> None:
        """Begin a new turn where the user said something that a host put into the messages itself.

        Messages that are gone say nothing; what comes last is no news where it came last before.
        """
        before, self._heard = self._heard, self._said()
        if self._heard and (self._heard[-1:] != before[-1:] or len(self._heard) > len(before)):
            self.guard.new_turn()

    def _said(self) -> list[Any]:
        """Return the contents of the user's messages, without what the session itself said in that role."""
        contents = (message.get("content") for message in self.messages if message.get("role") == "user")
        return [each for each in contents if not (isinstance(each, str) and each in self._own)]

    def run(
        self, model: Model, text: str | None = None, *, cancel: Cancel | None = None
    ) -> AsyncGenerator[SessionEvent, None]:
        """Do one turn: ask the model, run what it calls, tell it the results, until it answers. Yields what happens.

        `text` is what the user says first. The turn ends with a Step: "answer", or "cancelled". What the model raises
        comes out of here, with the messages as they were after the last complete step. Raises UsageError where a turn
        is going on already; one that was left by `break` is over.
        """
        require("run", Callable, "a function of a Request", model=model)
        require("run", (str, NoneType), "a text", text=text)
        require("run", (Cancel, NoneType), "a Cancel", cancel=cancel)
        turn = _Turn()
        events = self._events(turn, model, text, cancel or Cancel())
        turn.events = weakref.ref(events)
        return events

    async def _events(
        self, turn: _Turn, model: Model, text: str | None, cancel: Cancel
    ) -> AsyncGenerator[SessionEvent, None]:
        turn.begin()
        while (last := self._last) is not None:
            await last.left()
            self._last = None if self._last is last else self._last
        self._last = turn
        try:
            if text is not None:
                self.say(text)
            self._hear()
            self._counts.turns += 1
            async with aclosing(self._turn(model, cancel, uuid.uuid4().hex)) as events:
                async for event in events:
                    yield event
        finally:
            self._last = None if self._last is turn else self._last
            turn.over.set()

    async def _turn(self, model: Model, cancel: Cancel, request_id: str) -> AsyncGenerator[SessionEvent, None]:
        settings, retries, tools_on = self.settings, self.settings.retries, self.settings.tools
        wanted = "" if settings.tool_choice in ("auto", "none") else settings.tool_choice
        while True:
            context = replace(self._context, request_id=request_id, messages=apart(self.messages), cancel=cancel)
            offered = await self._offered(context, cancel) if tools_on else ()
            natively = self._is_native(model)
            if offered and not natively:
                await prepared(self.settings.own_rows())
            if cancel.is_set():
                yield Step("cancelled")
                return
            if not offered:
                wanted = ""  # nothing could fulfil it
            place = _place(self.messages)
            answer = Generation(self.executor.registry, offered, settings, natively, place)
            prompt = None if answer.native or not offered else self._prompt(offered, wanted)
            request = Request(messages=self._asked(prompt), tools=self._tools(offered, answer, model))
            self._counts.generations += 1
            yield Step("generation", _system_text(request.messages))
            async with aclosing(answer.read(model, request, cancel)) as events:
                async for event in events:
                    yield event
            for _ in range(settings.continuations):
                cut = answer.cut()
                if cut is None or cancel.is_set():
                    break
                self._counts.continuations += 1
                go_on = self.wording.feedback([cut])
                yield Step("continuation", go_on)
                partial = [{"role": "assistant", "content": answer.text}, {"role": "user", "content": go_on}]
                longer = replace(request, messages=[*request.messages, *partial])
                async with aclosing(answer.read(model, longer, cancel)) as events:
                    async for event in events:
                        yield event
            for event in answer.finish():
                yield event
            if cancel.is_set():
                yield Step("cancelled")
                return
            if answer.cut_by:
                yield Step("cut", answer.cut_by)
            self._counts.calls += len(answer.calls)
            self._counts.malformed += len(answer.problems)
            if not tools_on or settings.tool_choice == "none":
                refused = [_refused(call) for call in answer.calls]
                self.messages.append(answer.message())
                self._tell_native(answer, refused)
                for result in refused:
                    yield result
                break
            if answer.calls:
                results, said = await self._results(answer, context, offered, cancel)
                for result in results:
                    yield result
                yield Step("results", said)
                outcomes = [(call.name, result.outcome) for call, result in zip(answer.calls, results, strict=True)]
                if any(self._fulfils(name, wanted) for name, outcome in outcomes if outcome not in _WRONG):
                    wanted = ""
                if cancel.is_set():
                    yield Step("cancelled")
                    return
                quiet = all(result.stealth and result.outcome not in _TOLD for result in results)
                if quiet and not wanted and not answer.problems:
                    break
                if any(result.outcome in _NO_MORE for result in results):
                    tools_on = False
                    yield Step("no-tools", self._say_to_model(self.wording.no_tools()))
                continue
            self.messages.append(answer.message())
            feedback = self.wording.feedback(answer.problems) if answer.problems else ""
            if not feedback and wanted:
                feedback = self.wording.missing(wanted, prompt)
            if not feedback or retries == 0:
                break
            retries -= 1
            self._counts.retries += 1
            yield Step("retry", self._say_to_model(feedback))
        yield Step("answer", answer.visible)

    # The parts of a turn.

    def _is_native(self, model: Model) -> bool:
        able = getattr(model, "native_tools", None) is not None
        if self.settings.mode == "native" and not able:
            raise UsageError('mode "native": expected a model with `native_tools`, which names the shape of its tools')
        return able and self.settings.mode != "text"

    async def _offered(self, context: Invocation, cancel: Cancel) -> tuple[Tool, ...]:
        return await unless(cancel, self.executor.offered(context, self.settings.only)) or ()

    def _prompt(self, offered: Sequence[Tool], wanted: str) -> Prompt:
        names = self.executor.registry.names_of(offered)
        tools = [
            {"name": names[each.qualified_name], "description": each.description, "parameters": each.parameters}
            for each in offered
        ]
        # What had to be called was called: who is told so again calls for ever.
        fulfilled = "none" if self.settings.tool_choice == "none" else "auto"
        return self.wording.prompt(tools, names.get(wanted, wanted) or fulfilled)

    def _fulfils(self, name: str, wanted: str) -> bool:
        if wanted in ("", "required"):
            return True
        found = self._tool(name)
        return found is not None and found is self._tool(wanted)

    def _tool(self, name: str) -> Tool | None:
        try:
            return self.executor.registry.get(name)
        except ToolError:
            return None

    def _asked(self, prompt: Prompt | None) -> list[dict[str, Any]]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        messages = [*system, *self.messages]
        return messages if prompt is None else merge_into_messages(messages, prompt, self.settings.where)

    def _tools(self, offered: Sequence[Tool], answer: Generation, model: Any) -> list[dict[str, Any]]:
        if not answer.native or not offered:
            return []
        made = native(offered, model.native_tools)
        answer.aliases = made.aliases
        return made.tools

    async def _results(
        self, answer: Generation, context: Invocation, offered: Sequence[Tool], cancel: Cancel
    ) -> tuple[list[Result], str]:
        """Run the calls of a message and put it and their results into the conversation; return also what is told.

        All of it is told, or nothing is kept: a call without a result makes a conversation that servers refuse. So who
        cancels the task that waits here cancels the calls, and what they came to is told before the task ends.
        """
        own = Cancel(cancel)
        running = self.executor.run(
            answer.calls,
            replace(context, cancel=own),
            session=self.session_id,
            message=answer.place,
            guard=self.guard,
            offered=offered,
        )
        work = asyncio.ensure_future(running)
        try:
            return self._told(answer, await asyncio.shield(work))
        except asyncio.CancelledError:
            own.set()
            self._told(answer, await work)
            raise
        finally:
            own.leave()

    def _told(self, answer: Generation, results: list[Result]) -> tuple[list[Result], str]:
        self.messages.append(answer.message())
        said = self._tell_native(answer, results)
        written = [result for result in results if answer.id_of(result.index) is None]
        words = [self.wording.results(written)] if written else []
        if answer.problems:  # what was wrong with other calls of the same message
            words.append(self.wording.feedback(answer.problems))
        if words:
            role = self.settings.result_role if written else "user"
            self._write(role, "\n\n".join(words))
        return results, "\n\n".join([said, *words] if said else words)

    def _tell_native(self, answer: Generation, results: Sequence[Result]) -> str:
        """Tell results to the server that sent their calls, each under its call's id."""
        said = []
        for result in results:
            own_id = answer.id_of(result.index)
            if own_id is not None:
                content = self.wording.content(result)
                said.append(content)
                self.messages.append({"role": "tool", "tool_call_id": own_id, "content": content})
        return "\n".join(said)

    def _say_to_model(self, text: str) -> str:
        self._write("user", text)
        return text

    def _write(self, role: str, text: str) -> None:
        self._own.add(text)
        self.messages.append({"role": role, "content": text})

    def __repr__(self) -> str:
        return f"Session({len(self.messages)} messages, {self._counts.turns} turns)"


def _refused(call: Call) -> Result:
    failure = Failure(kind="denied", message="there are no tools now")
    return Result(index=call.index, id=call.id, name=clean(call.name), ok=False, error=failure)


def _system_text(messages: Sequence[Mapping[str, Any]]) -> str:
    contents = (message.get("content") for message in messages if message.get("role") == "system")
    return "\n\n".join(content for content in contents if isinstance(content, str))
