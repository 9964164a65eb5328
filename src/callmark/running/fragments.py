"""A call that its server sends in fragments, and which of several one of the chat API belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from callmark.reading.decoder import Undecodable, decode
from callmark.reading.embedded import Embedded
from callmark.reading.options import Limits
from callmark.reading.status import Terms
from callmark.reading.values import JSON, ValueReader
from callmark.running.halves import Halves
from callmark.running.partial import PartialArguments


class Pending:
    """A call that has begun."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name = ""
        self.started = False  # told of: its name is all there
        self.closed = False  # said to be over, which servers also say of what is cut
        self.pieces: list[str] = []
        self.halves = Halves()
        self._size = 0  # of these
        self._full = False  # what was found when the last of them were read
        self._read = 0  # so many of them were read by:
        self._object = Embedded(ValueReader(JSON, 0, Terms(Limits().nesting), tolerant=False))
        self.null = ""  # or the beginning of it, before any other: how Python's servers write that there are none
        self.partial: PartialArguments | None = None  # what comes as values with paths, not as text

    def is_followed(self, name: Any, arguments: Any) -> bool:
        """Return whether a fragment of the same index, without an id, begins another call: Gemini's are all at 0.

        The same name may be told again with each fragment, and the same call at the end: that is none.
        """
        if not name or not self.name:
            return False
        if name != self.name:  # where this one has an id, it is more of the name
            return self.is_full() or not (self.pieces or self.id)
        text = text_of(arguments) if isinstance(arguments, Mapping) else str(arguments or "")
        return self.is_full() and text.lstrip().startswith("{") and text.strip() != "".join(self.pieces).strip()

    def is_called(self, name: str) -> bool:
        """Return whether a fragment with this name at another index is more of it: its arguments are not all there."""
        return self.name in ("", name) and not self.is_full()

    def is_told(self, arguments: str) -> bool:
        """Return whether arguments are those that it has, all of them: some servers tell them again at the end."""
        return len(arguments) == self._size and arguments == "".join(self.pieces) and self.is_full()

    def take(self, arguments: str) -> str:
        """Add a fragment, and return what of it is certain."""
        if not self.pieces:
            arguments, self.null = self.null + arguments, ""
            if "null".startswith(arguments.strip()):
                self.null = arguments
                return ""
        arguments = self.halves.whole(arguments)
        if arguments:
            self.pieces.append(arguments)
            self._size += len(arguments)
        return arguments

    def is_full(self) -> bool:
        """Return whether its arguments are an object already. Each is read once, however often this is asked."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        if self._read < len(self.pieces):
            for piece in self.pieces[self._read :]:
                self._object.take(piece, 0, [])
            self._read = len(self.pieces)
            self._full = self._object.whole and self._is_object()
        return self._full

    def _is_object(self) -> bool:
        try:
            return isinstance(decode("".join(self.pieces), Limits().nesting), dict)
        except Undecodable:
            return False


class Recent:
    """Which calls of the chat API the last fragments were of: with an index, with an id, with both."""

    def __init__(self, calls: Mapping[Any, Pending]) -> None:
        self._calls = calls  # those that are not over, by their keys
        self._of_index: dict[Any, Any] = {}
        self._of_id: dict[Any, Any] = {}
        self._of_both: dict[tuple[Any, Any], Any] = {}

    def find(self, slot: Any, own_id: Any, name: Any, arguments: Any) -> Any:
        """Return the key of the call that a fragment belongs to: that of its id, else of its index; None for a new one.

        `slot` is its index as the server has it, None where it has none; `own_id` is its id.

        Some servers give all calls one id: a name at another index begins another call where the last one is all there
        or has another name. Others give each fragment an id of its own: without a name it is more of the same call,
        unless that is all there. Where there is no index, a name begins another call. Without ids, see
        `Pending.is_followed`.
        """
        if own_id:
            key = self._of_both.get((own_id, slot))
            if key in self._calls:
                return key
            key = self._of_id.get(own_id)
            if key in self._calls and (not name or slot is None or self._calls[key].is_called(name)):
                return key
        key = self._of_index.get(slot)
        if key not in self._calls:
            return None
        call = self._calls[key]
        if own_id and call.id:
            another = name or call.is_full()
        else:
            another = name and call.name if slot is None else call.is_followed(name, arguments)
        return None if another else key

    def add(self, key: Any, slot: Any) -> None:
        """Say that a fragment with this index was of this call."""
        self._of_index[slot] = key
        own_id = self._calls[key].id
        if own_id:
            self._of_id[own_id] = self._of_both[own_id, slot] = key


def text_of(arguments: Any) -> str:
    """Return arguments as the text that they would have been; what JSON has no text for becomes no JSON."""
    try:
        return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return "{"
