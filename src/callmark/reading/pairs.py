"""Reads a plain argument list of `key=value` pairs while it comes in, a token at a time.

One pattern reads what leads from one value to the next: the closing quote, the comma, the next key and its equals sign.
So every token that comes out is certain, for strict and for tolerant reading alike, and no repair is ever needed. For
anything else (a positional value, an escape that is none, a tuple) the reader is STUCK in front of it, and
`arguments.ArgumentsReader` goes on from there, as behind `objects.ObjectReader`. In a container a comma is taken with
what begins behind it, as one too many is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from callmark.dialects.notation import BLANKS, expand
from callmark.events import Repair
from callmark.reading.ahead import (
    UNKNOWN,
    WAITS,
    begins_plainly,
    behind_colon,
    behind_comma,
    behind_item,
    behind_key,
    behind_run,
    behind_scalar,
    behind_value,
    behind_word,
)
from callmark.reading.characters import COMPILED, short
from callmark.reading.lookahead import KEY_PATTERN
from callmark.reading.matching import Pattern
from callmark.reading.paths import begins_path, may_begin_path
from callmark.reading.plain import BARE, pair_in_word
from callmark.reading.schemas import Parameters
from callmark.reading.status import DONE, FIRST_ITEM, FIRST_KEY, ITEM, KEY, NEXT, OPEN, STUCK, VALUE
from callmark.reading.stops import is_held
from callmark.reading.strings import RUN_DOUBLE, RUN_SINGLE, STOPS_DOUBLE, holds_escape_prefix, to_double
from callmark.reading.words import PYTHON_LITERALS, scalar

PAIR_HOLD: Final = 200  # characters that are waited for: a value and the next key

_WS: Final = expand("{ws}")
_NEXT: Final = rf"{KEY_PATTERN}{_WS}="
_END: Final = rf"{_WS}(?:,{_WS}{_NEXT}|\))"
_FIRST_KEY: Final = Pattern(_WS + _NEXT)
BARE_VALUE: Final = Pattern(f"({BARE}){_END}")
_BEHIND_VALUE: Final = Pattern(rf"[\"'\]}}]{_END}")
_LITERAL: Final = "|".join(("true", "false", "null", *PYTHON_LITERALS))
_SCALAR_BEFORE_SIGN: Final = (
    r"(?:-?(?:0|[1-9][0-9]{0,15}+)(?:\.[0-9]{1,15}+)?+(?:[eE][+\-]?[0-9]{1,2}+)?+"
    rf"|{_LITERAL})(?=[ \t\r\n,\]}}])"
)
_IN_CONTAINER: Final = Pattern(_SCALAR_BEFORE_SIGN)
_BEHIND_KEY: Final = Pattern(rf"[\"']{_WS}:")
_NEXT_MEMBER: Final = Pattern(rf",{_WS}(?=[\"'])")
_NEXT_LISTED: Final = Pattern(rf",{_WS}(?:(?=[\"'\[{{])|{_SCALAR_BEFORE_SIGN})")
_COMMA: Final = {"}": _NEXT_MEMBER, "]": _NEXT_LISTED}  # by the bracket that closes what it stands in
_BEHIND_MEMBER: Final = Pattern(rf"[\"'](?={_WS}(?:\}}|,{_WS}[\"']))")
_BEHIND_LISTED: Final = Pattern(rf"[\"'](?={_WS}(?:\]|,{_WS}(?:[\"'\[{{]|-?[0-9]|(?:{_LITERAL}){_WS}[,\]])))")
_BEHIND_ITEM: Final = {"}": _BEHIND_MEMBER, "]": _BEHIND_LISTED}
_AROUND_KEY: Final = BLANKS + ","
_FIRST: Final = {"{": ("}", FIRST_KEY), "[": ("]", FIRST_ITEM)}
_FRAMES: Final = {"}": "d", "]": "l"}


WORD_WAITS: Final = re.compile(
    rf"(?!(?s:.){{{PAIR_HOLD + 1}}}){BARE}{_WS}(?:,{_WS}(?:[$@\-]?+(?:[^\W\d][\w.\-]{{0,127}}+{_WS})?+)?+)?+\Z"
).match
"""What could become a match of `BARE_VALUE`: no answer is remembered, as values seldom come again."""

_PLAIN_STRING: Final = re.compile(r"""([\"'])(?!\1|\\|[A-Za-z](?::\\|:?\Z)|\Z)""").match  # neither quote nor path
_RUNS: Final = {'"': RUN_DOUBLE, "'": RUN_SINGLE}
_SIGNS_SINGLE: Final = r"['\"\\\x00-\x1f\ud800-\udfff]"
_STOPS: Final = {'"': STOPS_DOUBLE, "'": short(_SIGNS_SINGLE, re.compile(_SIGNS_SINGLE).search, _SIGNS_SINGLE)}


class PairsReader:
    """Incremental reader of an argument list; `status`, `out`, `sound`, `start` and `end` are as in ValueReader.

    Cost: each character once; what is held back (at most some hundred) once more for each chunk.
    """

    __slots__ = (
        "_closers", "_depth_limit", "_is_key", "_parameters", "_waits", "end", "id", "keys", "name", "opened", "out",
        "quote", "repairs", "sound", "start", "state", "status",
    )  # fmt: skip

    def __init__(self, start: int, depth_limit: int, parameters: Parameters | None) -> None:
        """Begin to read at position `start` of the stream, behind the parenthesis."""
        self.status = OPEN
        self.sound = self.start = self.end = start
        self.name = self.id = None
        self.out: list[str] = []
        self.repairs: tuple[Repair, ...] = ()
        self.keys: list[str] = []  # the last is that of the value that is read
        self.state = VALUE  # what is expected, in terms of `values`
        self.quote = ""  # of the string that is read, "" outside of one
        self._is_key = False  # whether that is a key, of an object in a value
        self.opened = start  # position of its first character
        self._closers: list[str] = []  # of the brackets of the value that are open
        self._depth_limit = depth_limit
        self._parameters = parameters
        self._waits: Callable[[str], object] | None = None

    @property
    def frames(self) -> list[str]:
        """The brackets of the value that are open, outermost first, in terms of `values`."""
        return [_FRAMES[closer] for closer in self._closers]

    @property
    def stops(self) -> Callable[[str], object] | None:
        """What finds in a chunk of a string what does not pass as it is; None outside of strings."""
        return _STOPS[self.quote] if self.quote else None

    def rewritten(self, chunk: str) -> str | None:
        """Return the JSON of a chunk of a string that does not pass as it is, None where it must be read closely."""
        if self.quote != "'":
            return None
        if "\\" not in chunk:  # a third of the time of a match
            if "'" in chunk:
                return None
            if chunk.isprintable():
                return to_double(chunk)
        return to_double(chunk) if RUN_SINGLE.fullmatch(chunk) is not None else None

    @property
    def waits(self) -> Callable[[str], object] | None:
        """What tells of the rest that is handed in again whether it is still too short to decide about; or None."""
        return self._waits if self._waits is None or self._waits is WORD_WAITS else self._still

    def _still(self, held: str) -> object:
        return None if self._waits is None or len(held) > PAIR_HOLD else self._waits(held)

    def feed(self, buffer: str, at: int, base: int) -> int:
        """Read `buffer` from index `at`, a position of the stream being `base` + index; return the next index.

        What lies behind it must be handed in again: with more text while OPEN, to another reader when STUCK.
        """
        size = len(buffer)
        out, closers = self.out, self._closers
        self._waits = None
        while at < size and self.status == OPEN:
            char = buffer[at]
            if self.quote:
                run = behind_run(buffer, at) if COMPILED else at
                if run < size and buffer[run] != self.quote:
                    run = _RUNS[self.quote].match(buffer, run).end()  # type: ignore[union-attr]  # an empty run matches
                if run > at:
                    out.append(buffer[at:run] if self.quote == '"' else to_double(buffer[at:run]))
                    at = run
                    if at == size:
                        return at
                    char = buffer[at]
                if char != self.quote:
                    self.status = OPEN if holds_escape_prefix(buffer, at) else STUCK
                    return at
                pattern = _BEHIND_KEY if self._is_key else _BEHIND_ITEM[closers[-1]] if closers else _BEHIND_VALUE
            elif not self.keys:
                pattern = _FIRST_KEY
            elif char in BLANKS:
                if closers:
                    out.append(char)
                at += 1
                continue
            elif self.state == NEXT:
                pattern = _COMMA[closers[-1]]
                if char == closers[-1]:
                    if len(closers) > 1:
                        out.append(closers.pop())
                        self.sound = base + at
                        at += 1
                        continue
                    pattern = _BEHIND_VALUE
            elif char in "\"'":
                if at + 1 == size:
                    return at
                if not (begins_plainly(buffer, at) if COMPILED else _PLAIN_STRING(buffer, at)):
                    head = buffer[at : at + 4]
                    if head[1:2] == char:
                        if len(head) < 3:
                            return at
                    elif len(head) < 4 and may_begin_path(head[1:]):
                        return at
                    if head[2:3] == char == head[1] or head[1] == "\\" or begins_path(head[1:]):  # or another escape
                        self.status = STUCK
                        return at
                out.append('"')
                self.quote = char
                self._is_key = self.state == KEY or self.state == FIRST_KEY
                self.sound = base + at
                at += 1
                self.opened = base + at
                continue
            elif char == "[" or char == "{":
                if self.state == FIRST_KEY or len(closers) + 1 >= self._depth_limit:
                    self.status = STUCK
                    return at
                closer, self.state = _FIRST[char]
                closers.append(closer)
                out.append(char)
                self.sound = base + at
                at += 1
                continue
            elif closers:
                if char == closers[-1] and self.state != VALUE:
                    self.state = NEXT
                    continue
                if self.state == FIRST_KEY:
                    self.status = STUCK
                    return at
                pattern = _IN_CONTAINER
            else:
                pattern = BARE_VALUE
            found = None
            end = looked(pattern, buffer, at) if COMPILED else UNKNOWN
            if end == UNKNOWN:
                found = pattern.match(buffer, at)
                if found is None:
                    if pattern is BARE_VALUE and WORD_WAITS(buffer, at) is not None:
                        self._waits = WORD_WAITS
                    elif pattern is not BARE_VALUE and size - at <= PAIR_HOLD and is_held(pattern, buffer, at):
                        self._waits = pattern.waits
                    else:
                        self.status = STUCK
                    return at
                end = found.end()
            elif end == WAITS:
                if size - at > PAIR_HOLD:
                    self.status = STUCK
                return at
            if self.quote:
                self.quote = ""
                char = '"'
            start, at = at, end
            if pattern is BARE_VALUE:
                word = buffer[start : behind_word(buffer, start)] if found is None else found[1]
                declared = None
                if self._parameters is not None:
                    if "=" in word and pair_in_word(word, self._parameters.names, self.keys[-1], 0, len(word)) >= 0:
                        self.status = STUCK
                        return start
                    declared = self._parameters.declared(self.keys[-1])
                out.append(scalar(word.rstrip(" \t"), declared))
                start += len(word)
            elif pattern is _BEHIND_VALUE:
                out.append(char)
                closers.clear()
                start += 1
            elif pattern is not _FIRST_KEY:
                self._go_on(pattern, char + buffer[start + 1 : at], base + at)
                continue
            if buffer[at - 1] == ")":
                out.append("}")
                self.end = base + at - 1
                self.status = DONE
                break
            key = buffer[start : at - 1].strip(_AROUND_KEY)
            out.append(f'{"," if self.keys else "{"}"{key}":')
            if not self.keys:
                self.start = base + buffer.index(key, start)
            self.keys.append(key)
            self.state = VALUE
            self.sound = base + at - 1
        return at

    def _go_on(self, pattern: Pattern, text: str, place: int) -> None:
        """Write what was found in a container, up to a position: a string's end, a comma with what follows, a word."""
        if pattern is _BEHIND_KEY:
            self.state = VALUE
            self.sound = place - 1
        elif text == '"':
            self.state = NEXT
        else:
            word = text.lstrip(_AROUND_KEY)
            self.state = NEXT if word else KEY if self._closers[-1] == "}" else ITEM
            self.sound = place - (len(word) or len(text))
            if word in PYTHON_LITERALS:
                text = text[: -len(word)] + PYTHON_LITERALS[word]
        self.out.append(text)


def looked(pattern: Pattern, text: str, at: int) -> int:
    """Return the index behind a match at index `at`, WAITS or UNKNOWN, as the characters say (see `ahead`)."""
    if pattern is BARE_VALUE:
        end = behind_word(text, at)
        return end if end == UNKNOWN else behind_value(text, end)
    if pattern is _BEHIND_VALUE:
        return behind_value(text, at + 1)
    if pattern is _FIRST_KEY:
        return behind_key(text, at)
    if pattern is _BEHIND_KEY:
        return behind_colon(text, at + 1)
    if pattern is _IN_CONTAINER:
        return behind_scalar(text, at)
    if pattern is _BEHIND_LISTED or pattern is _BEHIND_MEMBER:
        return behind_item(text, at + 1, in_list=pattern is _BEHIND_LISTED)
    if text[at] == ",":
        return behind_comma(text, at + 1, in_list=pattern is _NEXT_LISTED)
    return UNKNOWN
