"""What stands in an envelope beside its name and its arguments, and may be them.

What has a key of the arguments, or of the name, in another spelling is taken only when the envelope ends, because until
then the key that the grammar knows may follow, and then the other member means nothing. So are arguments that stand
beside the name, without a key of their own: whether they are its arguments is certain only where a tool of that name
was given, has a parameter for each, and wants no other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

from callmark.dialects.model import KEYS_ASIDE_OF_OBJECT
from callmark.events import Repair, Span
from callmark.reading.decoder import Undecodable, decode
from callmark.reading.schemas import Parameters


class OtherArguments(NamedTuple):
    """What may be the arguments, under another key: its JSON in pieces, its key, and where the two stand."""

    json: list[str]
    key: str
    key_place: Span
    place: Span
    repair: Repair | None = None  # what else it is recorded as; None for an object


class Beside:
    """Keeps the members of one envelope whose keys are none of its dialect's.

    keys        of those that may be arguments of a given tool, and where each stands first
    count       how many belong to arguments, or are them under an unknown key
    name        a name, its key in another spelling, and where that is
    arguments   what may be them; `candidates` is how many members may
    flat_place  where the first key of members stands that have none of their own for the arguments
    """

    __slots__ = (
        "_flat", "_flat_keys", "_mixed", "_own", "_tools", "_unread", "arguments", "candidates", "count", "flat_place",
        "keys", "name",
    )  # fmt: skip

    def __init__(self, tools: Mapping[str, Parameters]) -> None:
        self._tools = tools
        self._unread = 0  # how many are not the index that APIs write beside an object that holds the name
        self._mixed = False  # whether a member may be all of the arguments
        self._own: set[str] = set()  # keys of members that are no arguments
        self._flat: list[str] = []  # members beside the name, as JSON
        self._flat_keys: list[str] = []
        self.flat_place = Span(0, 0)
        self.keys: dict[str, Span] = {}
        self.count = 0
        self.name: tuple[str, str, Span] | None = None
        self.arguments: OtherArguments | None = None
        self.candidates = 0

    def begin(self, key: str, role: str, place: Span) -> None:
        """A member of the envelope begins, of a role as `EnvelopeReader` has them; its key has a place."""
        if role in ("beside", "other"):
            self.count += 1
            self._unread += key not in KEYS_ASIDE_OF_OBJECT
            if self._tools:
                self.keys.setdefault(key, place)
        if role != "beside":
            self._own.add(key)
        self._mixed = self._mixed or role == "other"

    def begin_flat(self, key: str, place: Span) -> list[str]:
        """A member begins that may be one of the arguments: return where its JSON goes."""
        if not self._flat_keys:
            self.flat_place = place
        self._flat += "," if self._flat_keys else "{", quoted(key), ":"
        self._flat_keys.append(key)
        return self._flat

    def take_no_name(self, key: str, place: Span) -> None:
        """What stands under another key of a name is none: the member may be an argument."""
        self.count += 1
        self._unread += 1
        self.keys.setdefault(key, place)

    def open_function(self) -> None:
        """The object that has begun holds name and arguments: what stands before it may be what APIs write there."""
        self.count = self._unread

    def take_string(self, text: str, key: str, key_place: Span, place: Span, depth_limit: int) -> None:
        """A string stands under a key that arguments may have: strict JSON in it may be them."""
        written = json.loads(f'"{text}"')
        try:
            is_object = isinstance(decode(written, depth_limit), dict)
        except Undecodable:
            return
        if is_object:
            self.candidates += 1
            repair = Repair("string-arguments", Span(place.start, place.start + 1))
            self.arguments = OtherArguments([written], key, key_place, place, repair)

    def take_null(self, key: str, key_place: Span, place: Span) -> None:
        """`null` stands under a key that arguments may have: it may say that there are none."""
        self.arguments = OtherArguments(["{}"], key, key_place, place, Repair("null-arguments", place))

    def meant(self, name: str) -> OtherArguments | None:
        """Return what are the arguments of the tool `name` under another key, as an object is: not a string or `null`
        that is one of the tool's parameters, nor `null` beside members that may be them.
        """
        other = self.arguments
        if other is None or self.candidates > 1:
            return None
        if other.repair is None:
            return other
        if other.repair.code == "null-arguments" and self.count > 1:
            return None
        parameters = self._tools.get(name)
        return other if parameters is None or other.key not in parameters.names else None

    def flattened(self, name: str) -> list[str]:
        """Return the JSON of what stands beside the name and is the arguments of that tool; nothing where it is not."""
        parameters = self._tools.get(name)
        if parameters is None or self._mixed or not self._flat_keys:
            return []
        return [*self._flat, "}"] if parameters.takes(self._flat_keys, without=self._own) else []
