"""Looks at single characters, for the compiled engine: that takes it a nanosecond or two, and `re` a call.

In Python `re` is faster, which reads on by itself: who searches takes the one or the other by `COMPILED`, and finds the
same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

COMPILED: Final = not __file__.endswith(".py")
_LONG_RUN: Final = re.compile("`(?=``)").search  # twice as fast as `in`, which looks for the last character first
_BACKTICK: Final = ord("`")
_SHORT: Final = 32  # characters: about where `re` is as fast
_UNKNOWN: Final = 0
_NEVER: Final = 1
_MAYBE: Final = 2
_ROWS: Final = 3  # and what is more
PATIENCE: Final = 262_144
"""Characters that are searched by `re` first: to learn what stands behind signs takes as long as some megabytes."""
LOOKED_AT: Final = 4
"""Characters that tell most places where no entry can begin, the sign among them."""
_REMEMBERED_ROWS: Final = 32  # texts of ASCII that entries begin with; behind any other one all may be one
_REMEMBERED: Final = 1024  # texts with other characters; any more may be one


def has_long_run(text: str) -> bool:
    """Return whether `text` holds three backticks side by side."""
    return _holds_long_run(text) if COMPILED else _LONG_RUN(text) is not None


def _holds_long_run(text: str) -> bool:
    last = len(text) - 2
    index = text.find("`")
    while 0 <= index < last:
        if ord(text[index + 1]) == _BACKTICK and ord(text[index + 2]) == _BACKTICK:
            return True
        index = text.find("`", index + 1)
    return False


def table(characters: str) -> bytes:
    """Return for each character of ASCII whether it matches the pattern `characters`."""
    return bytes(re.match(characters, chr(code)) is not None for code in range(128))


def behind(text: str, at: int, known: bytes, most: int) -> int:
    """Return the index behind the characters from index `at` that a table has, at most so many of them."""
    end = min(len(text), at + most)
    while at < end:
        code = ord(text[at])
        if code >= 128 or not known[code]:
            break
        at += 1
    return at


class Short:
    """A search by `re` that need not begin where a short text holds none of the characters with which a match begins.

    `signs` is the pattern of such a character, `sure` that of those behind which a match is certain, where they come
    first: for one the text is returned, not what the search would find.
    """

    __slots__ = ("_is_sign", "_is_sure", "_search")

    def __init__(self, signs: str, search: Callable[..., re.Match[str] | None], sure: str = "(?!)") -> None:
        self._search = search
        self._is_sign = table(signs)
        self._is_sure = table(sure)

    def search(self, text: str) -> object:
        """Return what the search finds, None for nothing."""
        size = len(text)
        if size > _SHORT:
            return self._search(text)
        is_sign = self._is_sign
        for at in range(size):
            code = ord(text[at])
            if code >= 128 or is_sign[code]:
                return text if code < 128 and self._is_sure[code] else self._search(text)
        return None

    def find(self, text: str, at: int) -> int:
        """Return where the search finds something from index `at` on, a sign alone; the text's length for nowhere."""
        is_sign = self._is_sign
        end = min(len(text), at + _SHORT)
        while at < end:
            code = ord(text[at])
            if code >= 128:
                break
            if is_sign[code]:
                return at
            at += 1
        found = self._search(text, at)
        return len(text) if found is None else found.start()


def short(
    signs: str, search: Callable[..., re.Match[str] | None], sure: str = "(?!)"
) -> Callable[[str], object]:
    """Return the search; in the compiled engine that of `Short`."""
    return Short(signs, search, sure).search if COMPILED else search


class Hops:
    """The places of one sign where an entry may begin: goes from sign to sign, and looks at what stands behind each.

    `may_begin` tells of a text whether an entry begins with it, or may with more text.
    """

    __slots__ = ("_begins", "_may_begin", "_patience", "_rows", "_sign")

    def __init__(self, sign: str, may_begin: Callable[[str], bool]) -> None:
        self._sign = sign
        self._may_begin = may_begin
        # For each text that has been met, the sign first: what each character of ASCII behind it makes of it, which is
        # one of the three above, or the number of the next text's row behind these.
        self._rows = [bytes(128)]
        self._begins: dict[str, bool] = {}  # the same for texts with other characters
        self._patience = PATIENCE

    def waits(self, characters: int) -> bool:
        """Return whether it is too early to learn, where so many characters are to be searched."""
        waits = self._patience > 0
        if waits:
            self._patience -= characters
        return waits

    def next(self, buffer: str, index: int, end: int) -> int:
        """Return the next such index before `end`, -1 for none. At `index` there is a sign, or it is -1."""
        sign = self._sign
        second = self._rows[0]
        last = len(buffer) - 1
        while index >= 0:
            if index < last:
                code = ord(buffer[index + 1])
                if code >= 128 or second[code] != _NEVER:  # most signs end here
                    if self._may_begin_at(buffer, index):
                        return index
                    second = self._rows[0]
            else:
                return index
            index = buffer.find(sign, index + 1, end)
        return index

    def _may_begin_at(self, buffer: str, index: int) -> bool:
        known = _ROWS
        for place in range(index + 1, min(index + LOOKED_AT, len(buffer))):
            code = ord(buffer[place])
            if code >= 128:
                return self._in_other(buffer[index : index + LOOKED_AT])
            row = known - _ROWS
            known = self._rows[row][code]
            if known == _UNKNOWN:
                known = self._learn(row, buffer[index : place + 1])
            if known < _ROWS:
                break
        return known != _NEVER

    def _learn(self, row: int, text: str) -> int:
        if not self._may_begin(text):
            known = _NEVER
        elif len(text) == LOOKED_AT or len(self._rows) == _REMEMBERED_ROWS:
            known = _MAYBE
        else:
            known = _ROWS + len(self._rows)
            self._rows.append(bytes(128))
        code = ord(text[-1])
        self._rows[row] = self._rows[row][:code] + bytes((known,)) + self._rows[row][code + 1 :]
        return known

    def _in_other(self, text: str) -> bool:
        begins = self._begins.get(text)
        if begins is None:
            if len(self._begins) >= _REMEMBERED:
                return True
            begins = self._may_begin(text)
            self._begins[text] = begins
        return begins
