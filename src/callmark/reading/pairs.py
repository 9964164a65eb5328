"""Reads a plain argument list of `key=value` pairs while it comes in, a token at a time.

One pattern reads what leads from one value to the next: the closing quote, the comma, the next key and its equals sign.
So every token that comes out is certain, for strict and for tolerant reading alike, and no repair is ever needed. For
anything else (a positional value, an escape that is none, a long container) the reader is STUCK in front of it, and
`values.ValueReader` goes on from there, as behind `objects.ObjectReader`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from callmark.events import Repair
from callmark.reading.decoder import Undecodable, decode
from callmark.reading.embedded import DONE, OPEN
from callmark.reading.lookahead import KEY_PATTERN
from callmark.reading.objects import STUCK
from callmark.reading.patterns import Pattern
from callmark.reading.plain import BARE, CONTAINER, PYTHON_CONTAINER, from_python
from callmark.reading.schemas import Parameters, scalar
from callmark.reading.strings import RUN_DOUBLE, RUN_SINGLE, STOPS_DOUBLE, holds_escape_prefix, to_double

_HOLD: Final = {"[": 32, "{": 32}
"""Characters of a container for which its end is waited for: a longer one is previewed as it comes. Words: _WORDS."""
_WORDS: Final = 200  # characters: a value and the next key

_BLANKS: Final = r"[ \t\r\n]{0,64}+"
_NEXT: Final = rf"(?P<key>{KEY_PATTERN}){_BLANKS}(?P<equals>=)"
_END: Final = rf"{_BLANKS}(?:,{_BLANKS}{_NEXT}|\))"
_FIRST_KEY: Final = Pattern(_BLANKS + _NEXT)
_BEHIND_STRING: Final = Pattern(f"[\"']{_END}")
_WORD: Final = Pattern(
    rf"(?:(?P<json>\"\"(?!\")|{CONTAINER})|(?P<python>''(?!')|{PYTHON_CONTAINER})|(?P<bare>{BARE})){_END}"
)
_RUNS: Final = {'"': RUN_DOUBLE, "'": RUN_SINGLE}
_STOPS: Final = {'"': STOPS_DOUBLE, "'": re.compile(r"['\"\\\x00-\x1f\ud800-\udfff]").search}


class PairsReader:
    """Incremental reader of an argument list; `status`, `out`, `sound`, `start` and `end` are as in ValueReader.

    Cost: each character once; what is held back (at most some hundred) once more for each chunk.
    """

    __slots__ = (
        "_depth_limit", "_parameters", "_room", "_waits", "end", "id", "key", "name", "opened", "out", "quote",
        "repairs", "sound", "start", "status",
    )  # fmt: skip

    def __init__(self, start: int, depth_limit: int, parameters: Parameters | None) -> None:
        """Begin to read at position `start` of the stream, behind the parenthesis."""
        self.status = OPEN
        self.sound = self.start = self.end = start
        self.name = self.id = None
        self.out: list[str] = []
        self.repairs: tuple[Repair, ...] = ()
        self.key: str | None = None  # of the value that is read; None before the first
        self.quote = ""  # of the string that is read, "" outside of one
        self.opened = start  # position of its first character
        self._depth_limit = depth_limit
        self._parameters = parameters
        self._waits: Pattern | None = None
        self._room = 0  # characters that are waited for

    @property
    def stops(self) -> Callable[[str], object] | None:
        """What finds in a chunk of a string what does not pass as it is; None outside of strings."""
        return _STOPS[self.quote] if self.quote else None

    @property
    def waits(self) -> Callable[[str], object] | None:
        """What tells of the rest that is handed in again whether it is still too short to decide about; or None."""
        return None if self._waits is None else self._still

    def _still(self, held: str) -> object:
        return None if self._waits is None or len(held) > self._room else self._waits.waits(held)

    def feed(self, buffer: str, at: int, base: int) -> int:
        """Read `buffer` from index `at`, a position of the stream being `base` + index; return the next index.

        What lies behind it must be handed in again: with more text while OPEN, to another reader when STUCK.
        """
        size = len(buffer)
        out = self.out
        self._waits = None
        while at < size and self.status == OPEN:
            if self.quote:
                run = _RUNS[self.quote].match(buffer, at).end()  # type: ignore[union-attr]  # an empty run matches too
                if run > at:
                    out.append(buffer[at:run] if self.quote == '"' else to_double(buffer[at:run]))
                    at = run
                    if at == size:
                        return at
                if buffer[at] != self.quote:
                    self.status = OPEN if holds_escape_prefix(buffer, at) else STUCK
                    return at
                pattern = _BEHIND_STRING
                found = pattern.match(buffer, at)
                if found is not None:
                    out.append('"')
                    self.quote = ""
            elif self.key is None:
                pattern = _FIRST_KEY
                found = pattern.match(buffer, at)
            else:
                if buffer[at] in " \t\r\n":
                    at += 1
                    continue
                if buffer[at] in "\"'":
                    head = buffer[at : at + 4]
                    if len(head) < 4 and head[1:2] != head[0]:
                        return at
                    if head[1] != head[0]:
                        if head[1] == "\\" or head[2:] == ":\\":  # perhaps a path: see `paths`
                            self.status = STUCK
                            return at
                        out.append('"')
                        self.quote = head[0]
                        self.sound = base + at
                        at += 1
                        self.opened = base + at
                        continue
                pattern = _WORD
                found = pattern.match(buffer, at)
                if found is not None and not self._take_word(found):
                    self.status = STUCK
                    return at
            if found is None:
                self._room = _HOLD.get(buffer[at], _WORDS)
                if size - at <= self._room and pattern.may_match(buffer, at):
                    self._waits = pattern
                else:
                    self.status = STUCK
                return at
            at = found.end()
            key = found["key"]
            if key is None:
                out.append("}")
                self.end = base + at - 1
                self.status = DONE
                break
            out.append(f'{"{" if self.key is None else ","}"{key}":')
            if self.key is None:
                self.start = base + found.start("key")
            self.key = key
            self.sound = base + found.start("equals")
        return at

    def _take_word(self, found: re.Match[str]) -> bool:
        """Write a value that is no string; return whether it is one."""
        json, python, bare = found["json"], found["python"], found["bare"]
        if bare is not None:
            declared = self._parameters.declared(self.key) if self._parameters is not None and self.key else None
            self.out.append(scalar(bare.rstrip(" \t"), declared))
            return True
        json = from_python(python) if json is None else json
        try:
            decode(json, self._depth_limit - 1)
        except Undecodable:
            return False
        self.out.append(json)
        return True
