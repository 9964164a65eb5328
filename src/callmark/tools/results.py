"""What a call comes to: a `Result`, with a `Failure` of a closed set of kinds where it came to nothing."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from callmark.errors import UsageError
from callmark.events import JsonValue

ERROR_KINDS: Final[dict[str, str]] = {
    "unknown-tool": "no tool has this name, or several have it",
    "invalid-arguments": "the arguments are not what the tool's schema asks for",
    "denied": "nobody consented, or the tool is switched off",
    "loop-guard": "the calls came too fast, too often, or in circles",
    "breaker-open": "the tool failed again and again and is left alone for a while",
    "busy": "too many calls wait already",
    "saturated": "too many calls that were given up are still running",
    "timeout": "the tool took too long; what it does may still happen",
    "cancelled": "nobody waits for the result any more",
    "tool-error": "the tool said what went wrong, or raised an exception",
    "unserialisable": "the tool's value could not be turned into JSON",
    "outcome-unknown": "the call was begun before, and nobody knows how it ended",
}


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why there is no value: `kind` is one of ERROR_KINDS, `code` the tool's own where it raised a ToolError.

    `message` and `hint` are words for the model; `retry_after` is in seconds, None where waiting does not help.
    """

    kind: str
    message: str
    code: str = ""
    hint: str = ""
    retry_after: float | None = None

    def __repr__(self) -> str:
        return f"Failure({self.kind})"


class Result(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="result"):
    """The result of one call, in the order of the calls.

    index, id, name   as the call has them; `name` is what the model wrote
    ok                whether there is a value; `data` is that value, and `error` says why there is none
    data              a JSON value within the size limit
    truncated         whether something was cut out of it, which shows in `data` itself
    seconds           how long it took, waiting included
    replayed          whether the call ran before, and this is what it came to then
    stealth           whether the tool gives the model no reason to go on

    The representation shows no contents.

    >>> Result(index=0, name="look", ok=True, data={"secret": 1})
    Result(look, ok)
    """

    index: int
    name: str
    ok: bool
    id: str | None = None
    data: JsonValue = None
    error: Failure | None = None
    truncated: bool = False
    seconds: float = 0.0
    replayed: bool = False
    stealth: bool = False

    @property
    def outcome(self) -> str:
        """ "ok", or the kind of failure."""
        return "ok" if self.error is None else self.error.kind

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form as builtins."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made

    def for_model(self) -> JsonValue:
        """Return what the model is told under the call's name and id: the value, or `{"ok": false, "error": ...}`.

        `error` is not the first key: an object whose first key is a name, with an object behind it, may be a call, and
        `neutralize` would write the key with an escape.
        """
        return self.data if self.error is None else {"ok": False, "error": msgspec.to_builtins(self.error)}

    def __repr__(self) -> str:
        return f"Result({self.name}, {self.outcome})"


def canonical(value: Any) -> str:
    """Return one text for a JSON value however it was written: keys in order, 1.0 as 1, nothing but ASCII.

    >>> canonical({"b": 1.0, "a": "é"}) == canonical({"a": "\\u00e9", "b": 1})
    True

    Raises UsageError for keys that are no text, for what JSON has not, and for what is nested so deep that nothing here
    could walk it.
    """
    try:
        return json.dumps(normal(value), sort_keys=True)
    except RecursionError:
        raise UsageError("arguments: expected values that end, found some that are nested too deep") from None
    except TypeError as error:
        raise UsageError(f"arguments: expected JSON values, found: {error}") from error


def normal(value: Any) -> Any:
    """Return a JSON value whose numbers are written in one way, 1.0 as 1. Raises UsageError for keys that are none."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise UsageError("arguments: expected keys that are texts")
        return {key: normal(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [normal(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
