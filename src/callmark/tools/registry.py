"""`Registry`: the tools that exist, who owns them, who may add some, and what a name means."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args

from callmark.errors import NotPermittedError, ToolError, ToolsError, check_flags, nearest
from callmark.tools.checking import Checker, Engine
from callmark.tools.context import Invocation, in_review, is_reserved, reviewing
from callmark.tools.foreign import Outcome, attempt, attempt_async
from callmark.tools.misuse import require, require_plain
from callmark.tools.tool import Body, Mode, Tool, tool

Asked = Callable[[Invocation], Any]  # a tool's `should_register`
Change = Literal["registered", "overwritten", "unregistered", "refused", "granted", "revoked", "unanswered"]


class Registered(NamedTuple):
    """What a registration did: the name to look the tool up by, whether it replaced one, and when (see `Registry`)."""

    name: str
    overwritten: bool
    when: float


class RegistryEvent(NamedTuple):
    """What happened to a registry: a tool (`name`, qualified) or a permission (`owner`) changed, or was refused."""

    change: Change
    name: str
    owner: str
    when: float
    reason: str = ""


class Spelling(NamedTuple):
    """A name that a model may write, and what goes with it: what `parse(tools=registry)` reads."""

    name: str
    parameters: Mapping[str, Any]
    description: str = ""


class _Entry(NamedTuple):
    tool: Tool
    checker: Checker


class Registry:
    """Holds tools by their qualified names.

    >>> registry = Registry()
    >>> def look(at: str) -> str:
    ...     "Look at something."
    ...     return f"You see {at}."
    >>> registry.register(look, owner="eyes")
    Registered(name='eyes:look', overwritten=False, when=1.0)
    >>> registry.get("look")
    Tool(eyes:look, write)

    clock       gives `when` in events and registrations; without one, the changes of this registry are counted
    listener    called with each RegistryEvent; what it raises changes nothing
    reserved    says which names of arguments are the host's alone (default: `__*`, `userId` in any spelling): what a
                model writes there is dropped, and no tool may declare such a parameter; within an argument, keys are
                data
    engine      what checks arguments; see `callmark.tools.checking`

    An owner is permitted to register tools until `revoke`d. Changes are single steps of a dict, so threads may share a
    registry: of two that register the same name at once, one is told that it exists.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        clock: Callable[[], float] | None = None,
        listener: Callable[[RegistryEvent], Any] | None = None,
        reserved: Callable[[str], bool] = is_reserved,
        engine: Engine = "auto",
    ) -> None:
        require("Registry", (Callable, NoneType), "a function", clock=clock, listener=listener)
        require_plain("Registry", listener=listener)
        require("Registry", Callable, "a function", reserved=reserved)
        if engine not in get_args(Engine):
            raise ToolsError(f"Registry, engine: expected one of {', '.join(get_args(Engine))}, found {engine!r:.80}")
        self._entries: dict[str, _Entry] = {}
        self._revoked: dict[str, None] = {}
        self._clock = clock
        self._changes = 0
        self._listener = listener
        self._reserved = reserved
        self._engine: Engine = engine
        if not isinstance(tools, Iterable):
            raise ToolsError(f"Registry: expected a list of tools, found {type(tools).__name__}")
        for each in tools:
            self.register(each)

    # Changing it.

    def register(
        self, new: Tool | Callable[..., Any], *, owner: str | None = None, allow_overwrite: bool = False
    ) -> Registered:
        """Add a tool, or a function that becomes one, for `owner` (default: the tool's own).

        Raises ToolsError for a name that exists, unless `allow_overwrite`, and for what is no tool: a schema that is
        none, a parameter that is reserved. Raises NotPermittedError where the owner's permission was revoked.
        """
        check_flags(allow_overwrite=allow_overwrite)
        made = new if isinstance(new, Tool) else tool(new)
        if owner is not None and owner != made.owner:
            made = replace(made, owner=owner)
        name = made.qualified_name
        if made.owner in self._revoked:
            self._tell("refused", name, made.owner, "the owner's permission was revoked")
            raise NotPermittedError(f"register {name}: expected an owner with permission; {made.owner!r}'s was revoked")
        entry = _Entry(made, self._checker(made))
        overwritten = False
        if allow_overwrite:
            overwritten = name in self._entries
            self._entries[name] = entry
        elif self._entries.setdefault(name, entry) is not entry:
            self._tell("refused", name, made.owner, "the name exists")
            raise ToolsError(
                f"register {name}: expected a new name, found one that exists; allow_overwrite replaces it"
            )
        when = self._tell("overwritten" if overwritten else "registered", name, made.owner)
        return Registered(name, overwritten, when)

    def _checker(self, made: Tool) -> Checker:
        schema = dict(made.parameters) or {"type": "object"}
        if schema.get("type", "object") != "object":
            raise ToolsError(f"tool {made.name}, parameters: expected the type object, found {schema['type']!r}")
        properties = schema.get("properties")
        for key in properties if isinstance(properties, Mapping) else ():
            if not isinstance(key, str):
                raise ToolsError(f"tool {made.name}, parameters: expected names that are texts, found {key!r:.80}")
            if self._reserved(key):
                raise ToolsError(
                    f"tool {made.name}, parameter {key!r}: expected a name not reserved for the host; take it from "
                    "the Invocation, or say what is reserved with Registry(reserved=...)"
                )
        try:
            return Checker(schema, engine=self._engine)
        except ToolsError as error:
            raise ToolsError(f"tool {made.name}, {error}") from error

    def unregister(self, name: str, *, owner: str = "", force: bool = False) -> bool:
        """Remove a tool by its qualified name, for `owner`; return whether it existed.

        Raises NotPermittedError where it belongs to somebody else, unless `force`.
        """
        check_flags(force=force)
        entry = self._entries.get(name)
        if entry is None:
            return False
        if entry.tool.owner != owner and not force:
            raise NotPermittedError(
                f"unregister {name}: expected its owner {entry.tool.owner!r} or force, found {owner!r}"
            )
        if self._entries.pop(name, None) is None:  # another thread was first
            return False
        self._tell("unregistered", name, entry.tool.owner)
        return True

    def unregister_owner(self, owner: str) -> tuple[str, ...]:
        """Remove all tools of an owner, which stops; return their names."""
        names = [name for name, entry in list(self._entries.items()) if entry.tool.owner == owner]
        return tuple(name for name in names if self.unregister(name, owner=owner, force=True))

    def revoke(self, owner: str) -> None:
        """Take an owner's permission away: it can register nothing, and its tools are neither offered nor run."""
        self._revoked[owner] = None
        self._tell("revoked", "", owner)

    def grant(self, owner: str) -> None:
        """Give an owner its permission back."""
        self._revoked.pop(owner, None)
        self._tell("granted", "", owner)

    def permits(self, owner: str) -> bool:
        """Return whether an owner has its permission."""
        return owner not in self._revoked

    def _tell(self, change: Change, name: str, owner: str, reason: str = "") -> float:
        self._changes += 1
        when = float(self._changes) if self._clock is None else self._clock()
        if self._listener is not None:
            attempt(self._listener, RegistryEvent(change, name, owner, when, reason))
        return when

    # Looking things up.

    def get(self, name: str) -> Tool:
        """Return the tool of a qualified name, or of a bare one that only one tool has.

        Raises ToolError, which a model understands: `unknown-tool`, or `ambiguous-tool` with the names to choose from.
        """
        return self._entry(name).tool

    def _entry(self, name: str) -> _Entry:
        entries = dict(self._entries)
        exact = entries.get(name)
        if exact is not None:
            return exact
        found = [entry for entry in entries.values() if entry.tool.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(entry.tool.qualified_name for entry in found)
            raise ToolError("ambiguous-tool", f"several tools are called {name!r:.80}", f"write one of {names}")
        close = nearest(name, entries)
        hint = f"did you mean {close!r}?" if close else "call only tools that are listed"
        raise ToolError("unknown-tool", f"there is no tool {name!r:.80}", hint)

    def holds(self, tool: Tool) -> bool:
        """Return whether this very tool may run now: it was not removed or replaced, nor its owner's permission."""
        entry = self._entries.get(tool.qualified_name)
        return entry is not None and entry.tool is tool and self.permits(tool.owner)

    def list(
        self,
        *,
        owner: str | None = None,
        mode: Mode | None = None,
        tags: Iterable[str] = (),
        stealth: bool | None = None,
        names: Iterable[str] | None = None,
    ) -> tuple[Tool, ...]:
        """Return the tools that pass every filter that is given, in the order of registration.

        `tags`: all of them; `names`: bare or qualified ones.
        """
        wanted = frozenset(tags)
        chosen = None if names is None else frozenset(names)
        return tuple(
            found
            for found in (entry.tool for entry in tuple(self._entries.values()))
            if (owner is None or found.owner == owner)
            and (mode is None or found.mode == mode)
            and (stealth is None or found.stealth == stealth)
            and wanted <= found.tags
            and (chosen is None or found.name in chosen or found.qualified_name in chosen)
        )

    async def offered(
        self,
        context: Invocation | None = None,
        *,
        ask: Callable[[Sequence[Asked], Invocation], Awaitable[Sequence[Outcome]]] | None = None,
        **filters: Any,
    ) -> tuple[Tool, ...]:
        """Return the tools to offer for one request: those of `list` whose `should_register` agrees.

        A `should_register` that raises counts as no, and the listener hears of it. `ask` calls them (default: one after
        another) and gives what each came to, in their order; so it decides how long that may take.
        """
        candidates = [each for each in self.list(**filters) if self.permits(each.owner)]
        asked = [each.should_register for each in candidates if each.should_register is not None]
        outcomes = iter(await (ask or _in_turn)(asked, context or Invocation()))
        agreed = []
        for each in candidates:
            if each.should_register is not None:
                outcome = next(outcomes)
                if outcome.error is None:
                    outcome = attempt(bool, outcome.value)
                if outcome.error is not None:
                    reason = f"should_register raised {type(outcome.error).__name__}"
                    self._tell("unanswered", each.qualified_name, each.owner, reason)
                if not outcome.value:
                    continue
            agreed.append(each)
        return tuple(agreed)

    def spellings(self, tools: Iterable[Tool] | None = None) -> tuple[Spelling, ...]:
        """Return the names by which `tools` (default: all) can be called: qualified, and bare where that is clear."""
        chosen = self.list() if tools is None else tuple(tools)
        names = self.names_of(chosen)
        found = {each.qualified_name: each for each in chosen}
        for each in chosen:
            found.setdefault(names[each.qualified_name], each)
        return tuple(Spelling(name, each.parameters, each.description) for name, each in found.items())

    def names_of(self, tools: Iterable[Tool]) -> dict[str, str]:
        """Return how each of `tools` is called, by its qualified name: the bare name where no other tool has it."""
        counts = Counter(each.name for each in self.list())
        return {each.qualified_name: each.name if counts[each.name] == 1 else each.qualified_name for each in tools}

    def __iter__(self) -> Iterator[Spelling]:
        return iter(self.spellings())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __repr__(self) -> str:
        return f"Registry({len(self)} tools)"

    # Using it.

    def unreserved(self, arguments: Any) -> Any:
        """Return arguments without what the host alone may say; what is no mapping, as it is."""
        if not isinstance(arguments, Mapping):
            return arguments
        return {key: value for key, value in arguments.items() if not (isinstance(key, str) and self._reserved(key))}

    def prepared(self, name: str, arguments: Any) -> tuple[Tool, dict[str, Any]]:
        """Return the tool that a call means and the arguments that it gets: checked, and without reserved fields.

        The arguments are a copy that nobody else has. Raises ToolError: `unknown-tool`, `ambiguous-tool`, `denied` (the
        owner's permission was revoked) or `invalid-arguments`, with path, what was expected and what was found.
        """
        found, checker = self._entry(name)
        if not self.permits(found.owner):
            raise ToolError("denied", f"the tool {found.qualified_name} is switched off", "do without it")
        if not isinstance(arguments, Mapping):
            raise ToolError("invalid-arguments", f"expected an object of arguments, found {type(arguments).__name__}")
        frozen = copied(self.unreserved(arguments))
        problems = checker.problems(frozen)
        if problems:
            hint = "call it again with arguments that fit its schema"
            raise ToolError("invalid-arguments", "; ".join(map(str, problems)), hint)
        return found, frozen

    async def invoke(
        self, name: str, arguments: Any, context: Invocation | None = None, *, simulate: bool = False
    ) -> Any:
        """Check the arguments, run the tool, return what it returns. With `simulate`, the body of no write tool runs.

        Nor does one where a tool that is under review invokes another, whatever it says itself.

        Raises ToolError as `prepared` does, and whatever the tool raises. There is no timeout here and no guard: the
        Executor has them.
        """
        check_flags(simulate=simulate)
        found, frozen = self.prepared(name, arguments)
        own = context or Invocation()
        with reviewing(simulate or own.review):
            own = in_review(own)
            value = body_of(found, simulate=own.review)(frozen, own)
            return await value if inspect.isawaitable(value) else value


async def _in_turn(asked: Sequence[Asked], context: Invocation) -> list[Outcome]:
    return [await attempt_async(each, context) for each in asked]


def body_of(found: Tool, *, simulate: bool) -> Body:
    """Return what runs for a call of a tool: its function, or what stands in for it where writing is only simulated."""
    if not simulate or found.mode == "read":
        return found.function
    return found.simulate or _unvalidated


def _unvalidated(arguments: dict[str, Any], context: Invocation) -> dict[str, Any]:
    return {"ok": None, "simulated": True, "unvalidated": True}


def copied(value: Any) -> Any:
    """Return a deep copy of a JSON value. Raises ToolError for what is none, such as a key that is no text."""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ToolError("invalid-arguments", "expected keys that are texts")
        return {key: copied(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [copied(member) for member in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ToolError("invalid-arguments", f"expected JSON values, found {type(value).__name__}")
