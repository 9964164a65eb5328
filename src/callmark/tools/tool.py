"""`Tool`, and the decorator that makes one out of a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import NoneType
from typing import Any, Final, Literal, get_args, overload

from callmark.dialects.notation import expand
from callmark.errors import ToolsError
from callmark.functions import Signature, read_signature
from callmark.tools.context import Invocation

Mode = Literal["read", "write"]
Place = Literal["thread", "loop", "process"]
Body = Callable[[dict[str, Any], Invocation], Any]

_FIELDS: Final = (
    ("description", str, "a text"),
    ("display_name", str, "a text"),
    ("stealth", bool, "True or False"),
    ("polling", bool, "True or False"),
    ("approval", (bool, NoneType), "True, False or None"),  # "" would be a yes that nobody meant
    ("timeout_seconds", (int, float, NoneType), "seconds or None"),
    ("tags", (frozenset, set, list, tuple), "texts"),
    ("metadata", Mapping, "a mapping"),
)
_READABLE: Final = re.compile(expand("{name}"))  # what a marker can carry
NAME_LIMIT: Final = 128  # characters that a marker's name has, with its owner
NAME_RULE: Final = f"a letter or _, then letters, digits and _ - . /, at most {NAME_LIMIT} with its owner"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Tool:
    """One tool: what a model is told of it, and what runs.

    name, description   as models see them
    parameters          the JSON Schema of the arguments, which are an object
    function            called with the arguments (a dict) and the `Invocation`, sync or async; returns the result
    display_name        for people; the name where it is ""
    mode                "read": changes nothing; "write" (the default, since a wrong guess costs least): may do so
    simulate            stands in for `function` while write tools are under review; same shape
    should_register     asked for each request, sync or async, with the Invocation: is the tool offered?
    format_message      makes what people are shown while the tool runs, out of the arguments
    stealth             the result is no reason to let the model go on
    polling             asking again and again is its purpose: repetition is no loop
    approval            whether a call needs an approver's consent; None: where the mode is "write"
    timeout_seconds     None: as the executor has it
    runs_in             "thread": in a thread of its own, an async function in an event loop of its own, so that nothing
                        that it does holds up its host; "loop": in the caller's event loop, for an async function that
                        uses what belongs to that loop. There no timeout can end a function that blocks, and one that
                        refuses to be cancelled is left a second after the loop's end tells it so; "process": in
                        a process for each call, which is killed with its time. Code in C that keeps the interpreter's
                        lock for long (a pattern of `re` over a text that a model chose, a large sum or sort) needs
                        that: in a thread it stops the whole program, its timeouts too, which `late_seconds` in the
                        tool's stats shows. See `callmark.running.processes` for what it costs
    owner               the extension that the tool belongs to; "": the host
    tags, metadata      free
    """

    name: str
    function: Body
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    display_name: str = ""
    mode: Mode = "write"
    simulate: Body | None = None
    should_register: Callable[[Invocation], Any] | None = None
    format_message: Callable[[dict[str, Any]], str] | None = None
    stealth: bool = False
    polling: bool = False
    approval: bool | None = None
    timeout_seconds: float | None = None
    runs_in: Place = "thread"
    owner: str = ""
    tags: frozenset[str] = frozenset()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name, self.owner)
        if not callable(self.function):
            raise ToolsError(f"tool {self.name}: expected a function, found {type(self.function).__name__}")
        if not isinstance(self.parameters, Mapping):
            raise ToolsError(f"tool {self.name}: expected a JSON Schema, found {type(self.parameters).__name__}")
        for attribute, allowed in (("mode", ("read", "write")), ("runs_in", get_args(Place))):
            value = getattr(self, attribute)
            if value not in allowed:
                raise ToolsError(f"tool {self.name}, {attribute}: expected {' or '.join(allowed)}, found {value!r}")
        for attribute, kinds, expected in _FIELDS:
            value = getattr(self, attribute)
            if not isinstance(value, kinds):
                found = type(value).__name__
                raise ToolsError(f"tool {self.name}, {attribute}: expected {expected}, found {found}")
        for attribute in ("simulate", "should_register", "format_message"):
            value = getattr(self, attribute)
            if value is not None and not callable(value):
                found = type(value).__name__
                raise ToolsError(f"tool {self.name}, {attribute}: expected a function, found {found}")
        if self.runs_in == "process":
            place_of(self)
        object.__setattr__(self, "tags", frozenset(self.tags))
        if self.timeout_seconds is not None and not self.timeout_seconds > 0:
            raise ToolsError(f"tool {self.name}, timeout_seconds: expected more than 0, found {self.timeout_seconds}")

    @property
    def qualified_name(self) -> str:
        """`owner:name`; the name alone where the host owns the tool."""
        return f"{self.owner}:{self.name}" if self.owner else self.name

    @property
    def needs_approval(self) -> bool:
        """Whether somebody must consent to each call."""
        return self.mode == "write" if self.approval is None else self.approval

    def __repr__(self) -> str:
        return f"Tool({self.qualified_name}, {self.mode})"


def place_of(made: Tool) -> tuple[str, str, bool]:
    """Return the module and the name by which another process finds a tool's function, and whether `tool` took it.

    Raises ToolsError for a function that none could find.
    """
    body: Any = made.function
    decorated = isinstance(body, partial) and body.func is _call
    function = body.args[0] if decorated else body
    module, name = (getattr(function, attribute, "<") for attribute in ("__module__", "__qualname__"))
    if "<" in f"{module}{name}" or not isinstance(getattr(function, "__self__", None), type | NoneType):
        raise ToolsError(f"tool {made.name}: expected a function of a module, found one that is nowhere: {name}")
    return module, name, decorated


def check_name(name: str, owner: str = "") -> None:
    """Raise ToolsError where `owner:name` is nothing that a marker could carry and a registry could look up."""
    for what, part in (("name", name), ("owner", owner)):
        if part == "" and what == "owner":
            continue
        if not isinstance(part, str) or ":" in part or not _READABLE.fullmatch(part):
            raise ToolsError(f"tool {what}: expected {NAME_RULE}, found {part!r:.80}")
    if not _READABLE.fullmatch(f"{owner}:{name}" if owner else name):
        raise ToolsError(f"tool name: expected {NAME_RULE}, found {len(owner) + len(name) + 1} characters")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str = ...,
    description: str = ...,
    parameters: Mapping[str, Any] | None = ...,
    simulate: Callable[..., Any] | None = ...,
    tags: Iterable[str] = ...,
    **fields: Any,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    simulate: Callable[..., Any] | None = None,
    tags: Iterable[str] = (),
    **fields: Any,
) -> Any:
    """Make a `Tool` out of a function: name, description and schema come from its signature and docstring.

    What is given by keyword is taken instead; `fields` are those of `Tool`. The function, and `simulate`, are called
    with the arguments, converted to their annotations.

    >>> @tool(mode="read")
    ... def forecast(city: str, days: int = 3) -> str:
    ...     "Tell the weather."
    ...     return f"{days} days of sun in {city}"
    >>> forecast
    Tool(forecast, read)
    >>> forecast.parameters["properties"]
    {'city': {'type': 'string'}, 'days': {'type': 'integer', 'default': 3}}

    Raises ToolsError for a function that cannot be a tool.
    """
    make = partial(
        _make, name=name, description=description, parameters=parameters, simulate=simulate, tags=tags, fields=fields
    )
    return make if function is None else make(function)


def _make(
    function: Callable[..., Any],
    *,
    name: str,
    description: str,
    parameters: Mapping[str, Any] | None,
    simulate: Callable[..., Any] | None,
    tags: Iterable[str],
    fields: Mapping[str, Any],
) -> Tool:
    if not callable(function):
        raise ToolsError(f"tool: expected a function, found {type(function).__name__}")
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise ToolsError(f"tool, tags: expected several texts, found {tags!r:.80}")
    signature = read_signature(function)
    unknown = sorted(fields.keys() - Tool.__dataclass_fields__.keys())
    if unknown:
        raise ToolsError(f"tool: expected the fields of Tool, found {', '.join(unknown)}")
    return Tool(
        name=name or getattr(function, "__name__", ""),
        function=partial(_call, function, signature),
        description=description or signature.description,
        parameters=signature.parameters if parameters is None else parameters,
        simulate=None if simulate is None else partial(_call, simulate, read_signature(simulate)),
        tags=frozenset(tags),
        **fields,
    )


def _call(function: Callable[..., Any], signature: Signature, arguments: dict[str, Any], context: Invocation) -> Any:
    bound = signature.bind(arguments, context)
    return function(*bound.args, **bound.kwargs)
