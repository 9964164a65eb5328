"""JSON inside another language: in a string of JSON, between tags, with its quotes escaped, in a fence."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Final

from callmark.dialects.notation import BLANKS, expand
from callmark.events import Repair, Span
from callmark.reading.decoder import Undecodable, decode_at
from callmark.reading.matching import Pattern
from callmark.reading.status import DEAD, DONE, OPEN

if TYPE_CHECKING:
    from callmark.reading.values import ValueReader

_X: Final = "[0-9a-fA-F]"
_FENCE_LINE: Final = Pattern(expand(r"{ws}(?P<fence>```(?:json)?[ \t]{0,16}+\r?\n)"))
_FENCE_END: Final = "```"
_BACKSLASHES: Final = (
    re.compile(r'[^\\"}]++|}'),  # a brace for itself: with it, the value may be over
    re.compile(rf'\\(?:["\\/bfnrt]|u[dD][89abAB]{_X}{{2}}\\u[dD][c-fC-F]{_X}{{2}}|u{_X}{{4}})'),
    re.compile(rf"\\(?:u(?:{_X}{{0,3}}|[dD][89abAB]{_X}{{2}}(?:\\(?:u{_X}{{0,3}})?)?)?)?\Z"),
)
_ENTITY: Final = "(?:quot|amp|lt|gt|apos|#0?(?:34|38|39|60|62)|#[xX](?:22|26|27|3[cC]|3[eE]));"
_ENTITIES: Final = (
    re.compile(r'[^&"}]++|}'),
    re.compile(rf"&(?:{_ENTITY})?"),
    re.compile(r"&#?[A-Za-z0-9]{0,4}\Z"),
)
_WHOLE: Final = {
    "\\": re.compile(rf'(?:[^\\"]++|{_BACKSLASHES[1].pattern})*+'),
    "&": re.compile(rf'(?:[^&"]++|&{_ENTITY})*+'),
}
_ESCAPE_SIZE: Final = 12  # characters of the longest escape
_FIRST_WINDOW: Final = 4096  # characters of escaped JSON that are decoded at first
_unescape = json.JSONDecoder(strict=False).decode
ESCAPED_QUOTE: Final = {"\\": '\\"', "&": "&quot;"}
"""With what JSON begins whose quotes are escaped, by the first character."""


class Embedded:
    """Feeds decoded text, which comes in pieces, to the reader of its JSON, and keeps what that wants to see again."""

    __slots__ = ("_fence", "_held", "begun", "reader")

    def __init__(self, reader: ValueReader, *, fenced: bool = False) -> None:
        """Take the reader of the JSON; `fenced`: a fence around it is dropped, which is a repair."""
        self.reader = reader
        self._fence = "perhaps" if fenced else ""  # or "open"
        self.begun = False  # whether anything but blanks has come
        self._held = ""

    @property
    def broken(self) -> bool:
        """Whether no more text can make it JSON."""
        return self.reader.status == DEAD

    @property
    def whole(self) -> bool:
        """Whether a JSON value has come to its end."""
        return self.reader.status == DONE and self._fence != "open"

    def take(self, piece: str, end: int, out: list[str]) -> int:
        """Read a piece, which ends at position `end`; write its JSON to `out`.

        Returns the position up to which it was read: where the reader died, or where something stands behind a whole
        value.
        """
        self.begun = self.begun or not piece.isspace()
        reader = self.reader
        text = self._held + piece
        base = end - len(text)
        if self._fence == "perhaps":
            fence = _FENCE_LINE.match(text)
            if fence is None and _FENCE_LINE.may_match(text, 0):
                self._held = text
                return end
            self._fence = ""
            if fence is not None:
                self._fence = "open"
                reader.repairs.append(Repair("fenced-body", Span(base + fence.start("fence"), base + fence.end())))
                base, text = base + fence.end(), text[fence.end() :]
        done = reader.feed(text, 0, base)  # nothing where the value is whole
        out.extend(reader.out)
        reader.out.clear()
        if reader.status == DEAD:
            return base + done
        rest = text[done:]
        if self._fence == "open" and reader.status == DONE:
            run = rest.lstrip(BLANKS)  # blanks are counted nowhere: else it would matter in which pieces they come
            if run.startswith(_FENCE_END):
                self._fence = ""
                rest = run[len(_FENCE_END) :]
            elif _FENCE_END.startswith(run):
                self._held = run
                return end
        self._held = rest if reader.status == OPEN else ""
        return end if reader.status == OPEN else end - len(rest.lstrip(BLANKS))


class Decoded:
    """A JSON object whose quotes are escaped, decoded: its `text`, and where its brackets stand."""

    __slots__ = ("_at", "_source", "text")

    def __init__(self, text: str, source: str, at: int) -> None:
        """Take `source`, of which the part behind the brace stands at position `at`."""
        self.text = text
        self._source = source
        self._at = at

    def place(self, index: int) -> int:
        """Return the position of the bracket `index` of the text: no bracket is escaped, so they can be counted."""
        bracket = self.text[index]
        before = self.text.count(bracket, 0, index) - (bracket == "{")
        if before < 0:
            return self._at - 1
        return self._at + len(self._source) - len(self._source.split(bracket, before + 1)[-1]) - 1


def decoded(buffer: str, at: int, base: int, sign: str, depth_limit: int) -> Decoded | None:
    """Return the object whose brace stands before index `at`, None where it does not end in `buffer`, or is none.

    So all of it is decoded at once, which costs what is looked at: a window that grows where only its end is missing.
    """
    window = _FIRST_WINDOW
    while True:
        found = _WHOLE[sign].match(buffer, at, at + window)
        source = found[0] if found is not None else ""
        text = "{" + (_unescape(f'"{source}"') if sign == "\\" else unescape(source))
        try:
            _, end = decode_at(text, 0, depth_limit)
        except Undecodable as error:
            if not error.cut or len(source) < window - _ESCAPE_SIZE or at + window >= len(buffer):
                return None
            window *= 16
        else:
            return None if "\\u007" in source else Decoded(text[:end], source, base + at)


class Escaped(Embedded):
    """JSON as it looks inside a string (`{\\"a\\": 1}`) or in XML (`{&quot;a&quot;: 1}`), and in neither."""

    __slots__ = ("_language", "died")

    def __init__(self, reader: ValueReader, sign: str) -> None:
        """Take the reader, which has read the opening brace, and a key of ESCAPED_QUOTE."""
        super().__init__(reader)
        self.died = -1  # position where the reader did, which may be in what it had held
        self._language = _BACKSLASHES if sign == "\\" else _ENTITIES

    def read(self, buffer: str, at: int, base: int, out: list[str]) -> int:
        """Read `buffer` from index `at`, up to where the value ends, or its reader breaks; return the next index.

        A quote that is not escaped breaks it: then it is written in two ways at once.
        """
        runs, escapes, cut = self._language
        while at < len(buffer) and self.reader.status == OPEN:
            if cut.match(buffer, at):
                break
            run = runs.match(buffer, at)
            found = run or escapes.match(buffer, at)
            if found is None:
                self.reader.status = DEAD
                self.reader.code, self.reader.expected = "unexpected-text", "an escaped quote"
                break
            piece = found[0]
            if run is None:
                piece = json.loads(f'"{piece}"') if piece[0] == "\\" else unescape(piece)
            stop = self.take(piece, base + found.end(), out) - base
            self.died = base + stop if run is not None and self.broken else -1
            at = max(at, stop) if run is not None else at if self.broken else found.end()
        return at
