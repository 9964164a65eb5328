"""Reads a JSON object, strictly, while it comes in: a table over characters.

Nine calls of ten hold a plain JSON object, and in a stream of tokens each chunk of it costs one pass of a loop over a
dictionary per character. Everything that is consumed *is* the preview, so the object's JSON text is its source. What
the table does not know (a repair, an error, a number of many digits) leaves it STUCK where it stands, and
`values.ValueReader` goes on from there: `frames`, `state` and `last_token` tell it what it must know.

The quote that ends a string, and a comma, are consumed only with what follows them: a tolerant reader may have to take
the quote for a character of the string, and drop the comma. A string that begins like a Windows path is left to it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from callmark.dialects.notation import BLANKS
from callmark.reading.status import COLON, DONE, FIRST_ITEM, FIRST_KEY, ITEM, KEY, NEXT, OPEN, STUCK, VALUE
from callmark.reading.strings import RUN_DOUBLE, STOPS_DOUBLE, holds_escape_prefix

_LOOP_LENGTH: Final = 48  # characters: up to here a loop over the characters is faster than one match per string
_TOKEN_HOLD: Final = 64  # characters of a comma with blanks, or of a word, that are handed in again

_ASCII: Final = [chr(code) for code in range(0x20, 0x80) if chr(code) not in '"\\']
_WORD_RUN: Final = re.compile(r"[0-9A-Za-z+\-._]++")
_SCALAR: Final = re.compile(  # an integer of up to _LOOP_LENGTH digits is read by either way, so both must know it
    rf"-?(?:0|[1-9][0-9]{{0,{_LOOP_LENGTH - 1}}})(?:\.[0-9]{{1,17}})?(?:[eE][+-]?[0-9]{{1,2}})?|true|false|null"
)
_STRINGS: Final = re.compile(r'(?:[^"]++|("(?:[^"\\]++|\\.)*+"))*+', re.DOTALL)
_WORD_END: Final = re.compile(r"[0-9A-Za-z+\-._]*+")


_Row: TypeAlias = dict[str, Any]
"""A state: the next one for each character that the table knows; under "" its meaning. (Any: the type is recursive.)"""

_IN_INTEGER: Final = -1


class _Meaning:
    """What a state of the table means.

    state    what is expected, in terms of `values`
    closes   the bracket that may come, "" for none
    value    whether a value may come
    comma    whether it stands behind a comma
    string   whether it is inside a string; `stops` finds in a chunk what does not pass as it is
    open     whether it is inside a token that is not known yet: an escape, an integer
    back     behind a backslash: the row of the string
    quoted   behind the quote that ends a string, which is not certain yet: the row of the string
    inside   at the beginning of a string: the row of the string; `paths`: what a path goes on with there
    """

    __slots__ = (
        "back", "closes", "comma", "inside", "open", "paths", "quoted", "state", "stops", "string", "value",
    )  # fmt: skip

    def __init__(
        self, state: int, *, closes: str = "", value: bool = False, comma: bool = False, string: bool = False,
        back: _Row | None = None, quoted: _Row | None = None, inside: _Row | None = None, paths: str = "",
    ) -> None:
        self.back: Final = back
        self.quoted: Final = quoted
        self.inside: Final = inside
        self.paths: Final = paths
        self.open: Final = back is not None or state == _IN_INTEGER
        self.state: Final = state
        self.closes: Final = closes
        self.value: Final = value
        self.comma: Final = comma
        self.string: Final = string
        self.stops: Final[Callable[[str], object] | None] = STOPS_DOUBLE if string and inside is None else None


def _row(meaning: _Meaning) -> _Row:
    row: _Row = {"": meaning}
    row.update(dict.fromkeys(BLANKS, row))
    return row


def _add_string(row: _Row, after: _Row) -> _Row:
    """Let a string begin in `row`, behind which comes what comes in `after`; return the row behind its comma."""
    state, behind = row[""].state, after[""]
    inside: _Row = {"": _Meaning(state, string=True)}
    inside.update(dict.fromkeys(_ASCII, inside))
    inside["\\"] = {"": _Meaning(NEXT, back=inside), **dict.fromkeys('"\\/bfnrt', inside)}
    closed: _Row = {**after, "": _Meaning(behind.state, closes=behind.closes, quoted=inside)}
    closed.update(dict.fromkeys(BLANKS, closed))
    comma: _Row = {}
    if "," in after:
        closed[","] = comma
        meaning = after[","][""]
        comma[""] = _Meaning(meaning.state, value=meaning.value, quoted=inside)
    inside['"'] = closed
    drive = {**inside, "": _Meaning(state, string=True, inside=inside, paths="\\")}
    letter = {**inside, "": _Meaning(state, string=True, inside=inside), ":": drive}
    begin = {**inside, "": _Meaning(state, string=True, inside=inside, paths="\\\\")}
    begin.update(dict.fromkeys(filter(str.isalpha, map(chr, range(128))), letter))
    del drive["\\"], begin["\\"]
    row['"'] = begin
    return comma


def _add_integer(row: _Row, after: _Row) -> None:
    zero: _Row = {**after, "": _INTEGER}
    digits: _Row = {**after, "": _INTEGER}
    digits.update(dict.fromkeys("0123456789", digits))
    row["0"] = zero
    row.update(dict.fromkeys("123456789", digits))


_INTEGER: Final = _Meaning(_IN_INTEGER)


def _rows() -> tuple[_Row, _Row, dict[str, _Row]]:
    """Make the table: the rows behind an opening brace and bracket, and behind a value in each."""
    first_key, key, colon = (
        _row(meaning) for meaning in (_Meaning(FIRST_KEY, closes="}"), _Meaning(KEY, comma=True), _Meaning(COLON))
    )
    value, member = _row(_Meaning(VALUE, value=True)), _row(_Meaning(NEXT, closes="}"))
    first_item = _row(_Meaning(FIRST_ITEM, closes="]", value=True))
    item = _row(_Meaning(ITEM, value=True, comma=True))
    element = _row(_Meaning(NEXT, closes="]"))
    colon[":"] = value
    member[","] = key
    element[","] = item
    commas: list[tuple[_Row, _Row]] = []
    for row, after in ((first_key, colon), (key, colon), (value, member), (first_item, element), (item, element)):
        comma = _add_string(row, after)
        if "," in after:
            commas.append((comma, after[","]))
    for row, after in ((value, member), (first_item, element), (item, element)):
        _add_integer(row, after)
    for comma, plain in commas:
        comma.update({char: row for char, row in plain.items() if char})
        comma.update(dict.fromkeys(BLANKS, comma))
    return first_key, first_item, {"{": member, "[": element}


_FIRST_KEY, _FIRST_ITEM, _AFTER = _rows()


class ObjectReader:
    """Reader of one JSON object, which begins with the brace at position `start` of the stream.

    `status` is OPEN, DONE or STUCK. Cost: each character once, some 40 nanoseconds, long strings 2; what is held back
    (at most _TOKEN_HOLD characters) once more for each chunk.
    """

    waits = None  # as of `pairs.PairsReader`
    __slots__ = ("_depth_limit", "_row", "_stack", "end", "start", "status")

    def __init__(self, start: int, depth_limit: int) -> None:
        self.status = OPEN
        self.start = start
        self.end = start  # position behind the object, once it is DONE
        self._depth_limit = depth_limit
        self._stack: list[str] = []
        self._row: _Row = _FIRST_KEY  # never used: a brace comes first

    @property
    def stops(self) -> Callable[[str], object] | None:
        """What finds in a chunk of a string what does not pass as it is; None outside of strings."""
        meaning: _Meaning = self._row[""]
        return meaning.stops

    def rewritten(self, chunk: str) -> str | None:
        """As of `pairs.PairsReader`: here all that does not pass as it is must be read closely."""
        return None  # said, as mypyc compiles a body without a statement to one that crashes

    def feed(self, buffer: str, at: int, base: int) -> int:
        """Read `buffer` from index `at`, a position of the stream being `base` + index; return the next index.

        What lies behind it must be handed in again: with more text while OPEN, to another reader when STUCK.
        """
        row = self._row
        if not at and len(buffer) <= _LOOP_LENGTH and self._stack:
            at = -1
            after: _Row | None = row
            for char in buffer:  # no exception where the table ends: compiled, one costs more than a whole chunk
                after = row.get(char)
                if after is None:
                    break
                row = after
                at += 1
            meaning: _Meaning = row[""]
            if after is None:
                if not (meaning.comma or meaning.open or meaning.quoted):
                    return self._by_place(row, buffer, at + 1, base)
                if meaning.back is not None:
                    return self._by_place(meaning.back, buffer, at, base)
            else:
                if not (meaning.comma or meaning.open or meaning.quoted):
                    self._row = row
                    return at + 1
                held = buffer.rfind('"' if meaning.quoted is not None else ",")
                if held >= 0 and meaning.quoted is not None:  # else it is too long ago
                    self._row = meaning.quoted
                    return held
                if meaning.back is not None:
                    self._row = meaning.back
                    return at
                if held >= 0 and meaning.comma:
                    self._row = _AFTER[self._stack[-1]]
                    return held
            at, row = 0, self._row  # a token is held back, so read it again
        return self._by_place(row, buffer, at, base)

    def _by_place(self, row: _Row, buffer: str, at: int, base: int) -> int:
        stack = self._stack
        size = len(buffer)
        held = comma = -1  # index of a closing quote, of a comma, behind which nothing has come that makes it certain
        held_row = row
        status = OPEN
        while at < size:
            meaning: _Meaning = row[""]
            char = buffer[at]
            after = row.get(char)
            if meaning.inside is not None and char != '"':
                if after is not None and not after[""].open:
                    row = after
                    at += 1
                    continue
                if char == meaning.paths[:1]:
                    if buffer.startswith(meaning.paths, at):
                        status = STUCK
                        break
                    if at + 1 == size:
                        break
                row = meaning.inside
                continue
            if meaning.string:
                if char != '"':
                    at = RUN_DOUBLE.match(buffer, at).end()  # type: ignore[union-attr]  # an empty run matches too
                    if at == size:
                        break
                    char = buffer[at]
                if char != '"':
                    if not holds_escape_prefix(buffer, at):
                        status = STUCK
                    break
                after = row[char]
            if after is not None and not after[""].open:
                if char == '"' and meaning.string:
                    held = at
                    held_row = after[""].quoted
                elif char == ",":
                    comma = at
                elif char not in BLANKS:
                    held = comma = -1
                elif comma >= 0 and at - comma >= _TOKEN_HOLD:  # too long to be handed in again, however it comes
                    at += 1
                    break
                row = after
                at += 1
                continue
            if char == meaning.closes:
                stack.pop()
                at += 1
                row = _AFTER[stack[-1] if stack else "{"]
                held = comma = -1
                if stack:
                    continue
                self._row = row
                self.status = DONE
                self.end = base + at
                return at
            if (char == "{" or char == "[") and (meaning.value or not stack):
                if len(stack) >= self._depth_limit:
                    status = STUCK
                    break
                stack.append(char)
                row = _FIRST_KEY if char == "{" else _FIRST_ITEM
                held = comma = -1
                at += 1
                continue
            word = _WORD_RUN.match(buffer, at) if meaning.value else None
            if word is None:
                status = STUCK
                break
            end = word.end()
            if end == size and size - at <= _TOKEN_HOLD:
                break
            if _SCALAR.fullmatch(word[0]) is None:
                status = STUCK
                break
            held = comma = -1
            row = _AFTER[stack[-1]]
            at = end
        if held >= 0 and at - held - 1 <= _TOKEN_HOLD:
            at = held  # a quote with more blanks behind it is certain: it ends the string, as in `values`
            row = held_row
        elif comma >= 0:
            status = STUCK if at - comma > _TOKEN_HOLD else status
            at = comma
            row = _AFTER[stack[-1]]
        self._row = row
        self.status = status
        return at

    @property
    def frames(self) -> list[str]:
        """The open brackets, outermost first."""
        return self._stack

    @property
    def state(self) -> tuple[int, bool]:
        """What is expected, in terms of `values`, and whether a string is open."""
        meaning: _Meaning = self._row[""]
        return meaning.state, meaning.string


def last_token(text: str) -> int:
    """Return the index at which the last token begins of a text that begins like a JSON object. Linear time."""
    found = _STRINGS.match(text)
    if found is None:
        raise AssertionError("the empty text matches")
    if found.end() < len(text):  # an open string
        return found.end()
    text = text.rstrip(BLANKS)
    if text.endswith('"'):
        return found.start(1)
    word = _WORD_END.match(text[: -_TOKEN_HOLD - 1 : -1])
    return len(text) - max(1, word.end() if word is not None else 0)
