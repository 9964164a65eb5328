"""Arguments of a call that come as values, each with the path of its place (RFC 9535), texts in several parts.

Gemini's `partialArgs`, as `google.genai.types.PartialArg` has them. A path that leads nowhere makes all of it no value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_STEP: Final = re.compile(
    r"""\.([^.\[\]'"\s]++)             # a name
    | \[(0|[1-9][0-9]{0,5}+)\]         # a place in an array
    | \['((?:[^'\\]|\\.)*+)'\]         # a name in quotes
    | \["((?:[^"\\]|\\.)*+)"\]         # in others
    """,
    re.VERBOSE | re.DOTALL,
)
_VALUES: Final = ("stringValue", "numberValue", "boolValue", "string_value", "number_value", "bool_value")
_NULLS: Final = ("nullValue", "null_value")
_NOTHING: Final = object()


class PartialArguments:
    """Puts values into an object, in the order in which they come.

    >>> arguments = PartialArguments()
    >>> arguments.add({"jsonPath": "$.cities[0]", "stringValue": "Os", "willContinue": True})
    >>> arguments.add({"jsonPath": "$.cities[0]", "stringValue": "lo"})
    >>> arguments.value
    {'cities': ['Oslo']}
    """

    def __init__(self) -> None:
        self._value: dict[str, Any] | None = {}
        self._open = ""  # the path of a text that goes on
        self._place: Any = None  # what holds that text, and where in it: it is joined once, however many pieces it has
        self._step: Any = None
        self._pieces: list[str] = []

    @property
    def value(self) -> dict[str, Any] | None:
        """The object, as far as it has come; None where some piece had no place, or no value."""
        self._join()
        return self._value

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take the next piece."""
        path = piece.get("jsonPath", piece.get("json_path"))
        steps = _steps(path) if isinstance(path, str) else []
        value = next((piece[name] for name in _VALUES if piece.get(name) is not None), _NOTHING)
        if value is _NOTHING and any(name in piece for name in _NULLS):
            value = None
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # the protocol has doubles only
        if not (steps and value is not _NOTHING and self._put(steps, value, path)):
            self._value = None
        self._open = path if isinstance(path, str) and (piece.get("willContinue") or piece.get("will_continue")) else ""

    def _put(self, steps: list[Any], value: Any, path: Any) -> bool:
        """Put a value at its place and return whether there is such a place."""
        inside: Any = self._value
        for at, step in enumerate(steps):
            kind: Any = list if isinstance(step, int) else dict
            if not isinstance(inside, kind):
                return False
            if isinstance(step, int) and step > len(inside):
                return False
            is_new = step == len(inside) if isinstance(step, int) else step not in inside
            if at < len(steps) - 1:
                new: Any = [] if isinstance(steps[at + 1], int) else {}
            elif not is_new and path == self._open and isinstance(inside[step], str) and isinstance(value, str):
                self._pieces.append(value)
                return True
            else:
                self._join()
                self._place, self._step, self._pieces = inside, step, [value]
                new = value
            if is_new and isinstance(step, int):
                inside.append(new)
            elif is_new or at == len(steps) - 1:
                inside[step] = new
            inside = inside[step]
        return True

    def _join(self) -> None:
        """Put a text into its place whose further pieces have come."""
        if len(self._pieces) > 1:
            self._place[self._step] = "".join(self._pieces)
            self._pieces = [self._place[self._step]]


def _steps(path: str) -> list[Any]:
    """Return the names and places of a path, none for one that cannot be read or is the root's."""
    steps: list[Any] = []
    at = 1
    while path.startswith("$") and at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return []
        name, place, *quoted = found.groups()
        steps.append(int(place) if place else name or re.sub(r"\\(.)", r"\1", quoted[0] or quoted[1] or ""))
        at = found.end()
    return steps
