"""The options of reading: what they may be, and what is said where one of them keeps a marker from being read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from callmark.dialects import Dialect
from callmark.dialects.limits import LENGTH_LIMIT, NESTING_LIMIT
from callmark.errors import UsageError, number
from callmark.events import NOTICE_CODES
from callmark.toolshapes import DIGITS_LIMIT

Tolerance: TypeAlias = Literal["strict", "lenient", "salvage"]
ContextPolicy: TypeAlias = Literal["text", "allow", "sole"]
Dialects: TypeAlias = Iterable[str | Dialect] | str | Dialect | None


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds on what a call may be; each can be set.

    nesting     64: arguments nested deeper are Malformed; every consumer of JSON handles 64, jsonschema fails at 131
    arguments   1,048,576 characters: what a call may hold in memory; a file of 20,000 lines. Counted from the end of
                the head up to what closes the arguments: an object's brace, or else the parenthesis or tag behind them
    calls       64 per stream: what a model can mean; later markers are left as text, and a Notice says so
    digits      4,300 of an integer: those that CPython converts without being asked, since that takes quadratic time; a
                call with a longer one is Malformed
    """

    nesting: int = NESTING_LIMIT
    arguments: int = LENGTH_LIMIT
    calls: int = 64
    digits: int = DIGITS_LIMIT

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            bound = getattr(self, field)
            if type(bound) is not int:
                raise UsageError(f"limits.{field}: expected an int, found {bound!r:.80}")
        if not 1 <= self.nesting <= 256:
            raise UsageError(f"limits.nesting: expected 1 to 256, found {number(self.nesting)}")
        if self.arguments < 1:
            raise UsageError(f"limits.arguments: expected at least 1, found {number(self.arguments)}")
        if self.calls < 0:
            raise UsageError(f"limits.calls: expected at least 0, found {number(self.calls)}")
        if not 1 <= self.digits <= DIGITS_LIMIT:
            raise UsageError(f"limits.digits: expected 1 to {DIGITS_LIMIT}, found {number(self.digits)}")


DEFAULT_LIMITS = Limits()
_POLICIES: Final = {
    "fence": ("text", "allow", "sole"),
    "code": ("text", "allow"),
    "quote": ("text", "allow"),
    "reasoning": ("text", "allow"),
}
EVERYWHERE: Final[Mapping[str, ContextPolicy]] = dict.fromkeys(_POLICIES, "allow")
"""The option `contexts` with which markers are read wherever they stand."""
Remark: TypeAlias = tuple[str, str] | tuple[()]
"""Code and message of a Notice, or () for none."""
NOTICES: Final = {context: (f"marker-in-{context}", NOTICE_CODES[f"marker-in-{context}"]) for context in _POLICIES}
"""The Remark on a marker that is left as text, for each context."""


def wanted_again(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options that can be handed over more than once: what can be read only once becomes a list."""
    return {name: [*value] if isinstance(value, Iterator) else value for name, value in options.items()}


def checked_limits(limits: object) -> Limits:
    """Return the option `limits` where it is one. Raises UsageError that says what was expected."""
    if not isinstance(limits, Limits):
        raise UsageError(f"limits: expected Limits, found {limits!r:.80}")
    return limits


def checked_policies(contexts: Mapping[str, str]) -> Mapping[str, str]:
    """Return the option `contexts` where it is one. Raises UsageError that says what was expected."""
    if not isinstance(contexts, Mapping):
        raise UsageError(f"contexts: expected a mapping of {', '.join(_POLICIES)}, found {contexts!r:.80}")
    for name, policy in contexts.items():
        if name not in _POLICIES:
            raise UsageError(f"contexts: expected one of {', '.join(_POLICIES)}, found {name!r:.80}")
        if policy not in _POLICIES[name]:
            raise UsageError(f"contexts.{name}: expected one of {', '.join(_POLICIES[name])}, found {policy!r:.80}")
    return dict(contexts)
