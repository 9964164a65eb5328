r"""Reads the strings of a value incrementally, and mends them: quotes inside, backslashes, raw control characters.

A string's content is handed on as it comes, as the inside of a JSON string. What cannot be told yet stays behind: a
part of an escape, a quote with what follows it (see `lookahead`), a beginning that may be that of a path (see `paths`).
What a string is for, and where its content goes, is the affair of `values`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import repeat
from json.encoder import encode_basestring as quoted  # C; non-ASCII characters stay as they are
from typing import Final

from callmark.dialects.notation import BLANKS, LONE
from callmark.events import Repair, Span
from callmark.reading.characters import short
from callmark.reading.lookahead import (
    ANOTHER,
    APART,
    ATTACHED,
    BLANK,
    GLUED,
    JOINED,
    JOINED_BY_SIGNS,
    UNPARTED,
    UNPARTED_BEHIND_MARK,
    Lookahead,
    follows,
)
from callmark.reading.matching import HOLD_LIMIT, Alarm, Pattern
from callmark.reading.paths import PATH_LIMIT, PATH_TEXT, begins_path, is_whole_path, literal_path, may_begin_path
from callmark.reading.status import DONE, OPEN, Fault, Mending

_X: Final = "[0-9a-fA-F]"
_PLAIN_UNIT: Final = rf"u(?:[0-9a-cefA-CEF]{_X}{{3}}|[dD][0-7]{_X}{{2}})"
_PAIR: Final = rf"u[dD][89abAB]{_X}{{2}}\\u[dD][c-fC-F]{_X}{{2}}"
_ESCAPED: Final = rf'(?:["\\/bfnrt]|{_PLAIN_UNIT}|{_PAIR})'
_ESCAPE: Final = rf"\\{_ESCAPED}"
RUN_DOUBLE: Final = Pattern(rf'(?:[^"\\\x00-\x1f\ud800-\udfff]++|{_ESCAPE})*+')
_QUOTE: Final = r'(?<=")(?<![^\\]\\")(?<!\A\\")'  # behind a quote, but not one that is escaped by what stands before it
_SIGNS_DOUBLE: Final = r'["\\\x00-\x1f\ud800-\udfff]'
SURE_DOUBLE: Final = r'["\x00-\x1f]'
STOPS_DOUBLE: Final = short(
    _SIGNS_DOUBLE, re.compile(rf'{_SIGNS_DOUBLE}(?:(?<![\\"])|(?<=\\)(?!{_ESCAPED})|{_QUOTE})').search,
    SURE_DOUBLE,
)  # fmt: skip
"""Finds in a chunk of a string what does not pass as it is. (Two backslashes and a quote are looked at closely.)"""
RUN_SINGLE: Final = Pattern(rf"(?:[^'\\\x00-\x1f\ud800-\udfff]++|{_ESCAPE}|\\')*+")
_RUN_PYTHON: Final = Pattern(rf"(?:[^'\\\x00-\x1f\ud800-\udfff]++|{_ESCAPE}|\\'|\\x{_X}{{2}})*+")
_RUN_CURLY: Final = Pattern(rf'(?:[^"“”„\\\x00-\x1f\ud800-\udfff]++|{_ESCAPE})*+')
_RUN_SINGLE_CURLY: Final = Pattern(rf"(?:[^‘’\\\x00-\x1f\ud800-\udfff]++|{_ESCAPE})*+")
_LOW_PREFIX: Final = rf"\\(?:u(?:[dD](?:[c-fC-F]{_X}?)?)?)?"
_ESCAPE_PREFIX: Final = Pattern(
    rf"\\(?:u(?:[0-9a-cefA-CEF]{_X}{{0,2}}|[dD](?:[0-7c-fC-F]{_X}?|[89abAB](?:{_X}(?:{_X}(?:{_LOW_PREFIX})?)?)?)?)?)?\Z"
)
_SURROGATE_ESCAPE: Final = Pattern(rf"\\u[dD][89a-fA-F]{_X}{{2}}")
_HEX_ESCAPE: Final = Pattern(rf"\\x({_X}{{2}})")
_HEX_PREFIX: Final = Pattern(rf"\\x{_X}?\Z")
_LONGEST_ESCAPE: Final = len(r"\ud83d\ud83d")
_NO_ESCAPE: Final = "an escape of JSON behind the backslash"
_NO_CHARACTER: Final = "\ufffd"
_BLANK_RUN: Final = Pattern(r"[ \t\r\n]++")
_CONTROL_ESCAPE: Final = Pattern(r"(?:[^\\]|\\[^bf])*+\\[bf]")
_ANY_CONTROL_ESCAPE: Final = Pattern(r"(?:[^\\]|\\[^bfnrt])*+\\[bfnrt]")
_MANY_INNER: Final = 3  # quotes in a string behind which more of them are likely: what passes them has to be compiled
_LITERAL: Final = r"[^\"'\\/bfnrtux\x00-\x1f\ud800-\udfff]"  # what makes a backslash before it a literal one
_MENDED_RUN: Final = {
    quote: re.compile(rf"""(?:[^{quote}\\\ud800-\udfff]++|\\(?:["'\\/nrt]|{_PLAIN_UNIT}|{_PAIR}|{_LITERAL}))*+""")
    for quote in "\"'"
}
"""Content of a string with everything that is mended by itself, whatever stands beside it."""
_RARE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SHORT_ESCAPE: Final = re.compile(r"\\([/bfnrtu])")
_BACKSLASH, _DOUBLE, _APOSTROPHE, _SHORT = map(chr, range(0xD800, 0xD804))  # written so for mypyc
_ASIDE: Final = ((_BACKSLASH * 2, "\\\\"), (_DOUBLE * 2, '\\"'), (_APOSTROPHE * 2, "'"), (_SHORT, "\\"))
_CONTROLS: Final = {char: quoted(char)[1:-1] for char in map(chr, range(32))}
_IN_ESCAPES: Final = frozenset("\"'\\/bfnrtux0123456789acdeABCDEF")
_COMMAS: Final = frozenset(",，")
_ENDS_TEXT: Final = frozenset(".!?…)]}。！？")
_LEADS: Final = frozenset(" \t\r\n([{<=:,\"'")  # behind them a quote opens a pair; a string may end in `/`, `%`, `;`
_RUNS: Final = {'"': RUN_DOUBLE, "'": RUN_SINGLE, "“": _RUN_CURLY, "‘": _RUN_SINGLE_CURLY}
_ENDS: Final = {'"': '"', "'": "'", "“": '"“”„', "‘": "‘’"}
CURLY: Final = {"“": "“", "”": "“", "„": "“", "‘": "‘", "’": "‘"}
"""Curly quotes that open a string, each with the kind of string that it is."""
TRIPLE: Final = ('"""', "'''")
_RAW: Final = {
    quote: Pattern(rf"(?:[^{quote[0]}\\{line}\ud800-\udfff]++|\\[^\ud800-\udfff]{short})*+")
    for quote, line, short in (
        *((quote, r"\r\n", "") for quote in "\"'"),
        *((quote, "", rf"|{quote[0]}{{1,2}}(?=[^{quote[0]}])") for quote in TRIPLE),
    )
}
"""Content of a raw string of Python: what stands behind a backslash does not end it."""
RAW_PREFIX: Final = "rR"
PREFIX: Final = "(?:[bBfF][rR]?|[rR][bBfF]?|[uU])"
"""What stands directly before the first quote of other strings of Python: raw ones, bytes, and those with expressions;
`PREFIXES` are its letters.
"""
PREFIXES: Final = "bBfFrRuU"


def lone_surrogate(text: str) -> re.Match[str] | None:
    """Return where half of a surrogate pair stands in `text`, if there is one."""
    return None if text.isascii() else LONE.search(text)


def halves_of_characters(text: str, place: int) -> list[Fault]:
    """Return a fault for each half of a surrogate pair in `text`, which begins at position `place`."""
    if lone_surrogate(text) is None:
        return []
    places = [place + lone.start() for lone in LONE.finditer(text)]
    return [Fault("lone-surrogate", "a character", Span(at, at + 1)) for at in places]


def without_halves(text: str) -> str:
    """Return `text` with another character for each half of a surrogate pair."""
    return LONE.sub(_NO_CHARACTER, text)


def _ends_word(char: str) -> bool:
    """Return whether a word may end with a character behind which a quote closes a string, and opens none of Python."""
    return char.isalpha() and char not in PREFIXES


def _may_be_mark(quote: str, before: str) -> bool:
    """Return whether a quote behind a character may be an apostrophe, or the mark of inches."""
    return before.isalnum() if quote in "'’" else before.isdigit()


def holds_escape_prefix(buffer: str, at: int) -> bool:
    """Return whether more text could make an escape of JSON of what stands at index `at`."""
    return _ESCAPE_PREFIX.match(buffer, at) is not None


def _without_escape(text: str) -> int:
    r"""Return the index behind `text` without what may be the beginning of an escape, or of two of one character.

    >>> [_without_escape(text) for text in ("a\\", "a\\\\", r"a\u00", r"a\\u00", r"\ud83d\ud", r"\ud83d\\")]
    [1, 3, 1, 6, 0, 8]
    """
    for at in range(max(0, len(text) - _LONGEST_ESCAPE), len(text)):
        if text[at] == "\\" and (_ESCAPE_PREFIX.match(text, at) or _HEX_PREFIX.match(text, at)):
            before = text[:at]
            if (at - len(before.rstrip("\\"))) % 2 == 0:
                return at
    return len(text)


def to_double(piece: str) -> str:
    r"""Rewrite a run of a single-quoted string for double quotes: `"` gains a backslash, `\'` loses it."""
    if "\\" not in piece:
        return piece.replace('"', '\\"')
    if '"' not in piece and "'" not in piece:
        return piece
    piece = piece.replace("\\\\", "\0")  # a control character is in no such run: what escapes a quote stands alone now
    piece = piece.replace('\\"', '"').replace('"', '\\"').replace("\\'", "'")
    return piece.replace("\0", "\\\\")


def mended(piece: str, quote: str, *, controls: bool = True) -> tuple[str, dict[str, list[int]]]:
    r"""Return a piece of a string with the delimiter `quote` as JSON, and the places of its repairs by their codes.

    `controls`: whether raw control characters are repairs. Escapes are put aside as halves of surrogate pairs, of which
    there are none in it: what is left is to be mended.

    >>> mended(r'"a\d" \\ \"', '"')
    ('\\"a\\\\d\\" \\\\ \\"', {'inner-quotes': [0, 4], 'literal-backslash': [2]})
    """
    aside = "\\" in piece
    if aside:
        piece = piece.replace("\\\\", _BACKSLASH * 2).replace('\\"', _DOUBLE * 2)
        if quote == "'":
            piece = piece.replace("\\'", _APOSTROPHE * 2)
        if _SHORT_ESCAPE.search(piece) is not None:
            piece = _SHORT_ESCAPE.sub(_SHORT + r"\g<1>", piece)
    places = {"inner-quotes": _places(piece, quote)} if quote in piece else {}
    signs = [sign for sign in "\n\t\r" if sign in piece]
    if _RARE.search(piece) is not None:
        signs += set(_RARE.findall(piece))
    if signs and controls:
        places["raw-control-character"] = [at for sign in signs for at in _places(piece, sign)]
    if "\\" in piece:
        places["literal-backslash"] = _places(piece, "\\")
        piece = piece.replace("\\'", "'").replace("\\", "\\\\")
    piece = piece.replace('"', '\\"')
    for sign in signs:
        piece = piece.replace(sign, _CONTROLS[sign])
    if aside:
        for sign, escape in _ASIDE:
            piece = piece.replace(sign, escape)
    return piece, places


def _places(piece: str, sign: str) -> list[int]:
    """Return where `sign` stands in a piece."""
    at = -1
    return [at := at + len(part) + 1 for part in piece.split(sign)[:-1]]


def goes_on(
    around: Lookahead, ends: Pattern, quote: str, before: str, buffer: str, at: int, *, first: bool, bare: bool
) -> bool | None:
    """Whether code goes on behind a quote, where `ends` says that it ends a string: it joins strings (see `JOINED`).

    The quote stands before index `at`, behind the character `before`; `first`: before it is none in the string; `bare`:
    the string's key has no quotes and a colon, so that the next key will look the same. None where more text must tell.
    """
    if (before not in _LEADS and before != "+") or (first and bare):
        return False
    by_grammar = first and ends in (around.pair, around.positional)
    return follows((JOINED if by_grammar else JOINED_BY_SIGNS)[quote], buffer, at)


class StringReader(Mending):
    """Reads one string after another: `begin` says what comes, `read` is called behind the opening quote.

    `status` is OPEN, DONE behind the closing quote, or DEAD. Then `code` and `expected` say why; no code where the
    string ended before `doubt`, the position behind the first quote that was taken for a character of it, and something
    wrong stands there; where there is a `comma`, that is behind it. `stops` finds in a chunk what does not pass as it
    is; None where all must be looked at.
    """

    __slots__ = (
        "_around", "_bare", "_before", "_bracket", "_carried", "_controls", "_delimited", "_direct", "_follows",
        "_fresh", "_inner", "_key", "_literal", "_literal_place", "_lone", "_marks", "_open", "_put", "_python",
        "_quote", "_raw", "_refuses", "_search", "_swallows", "_triple", "comma", "doubt", "stops",
    )  # fmt: skip

    def __init__(self, around: Lookahead | None, repairs: list[Repair], faults: list[Fault]) -> None:
        """Take what may stand around strings, None where nothing is mended, and the lists that are added to."""
        super().__init__(repairs, faults)
        self._around = around

    def begin(
        self, quote: str, put: Callable[[str], object], *, ends: Pattern | None, refuses: Pattern | None,
        python: bool, path: bool, key: bool, bare: bool, direct: bool, delimited: bool, opened: str,
    ) -> None:
        """A string with the delimiter `quote` begins: its content is given to `put`, which says whether to stop.

        ends      what stands behind a quote that ends it; None where every quote does
        refuses   what shows behind a quote that it ended the string, and that something is wrong
        python    whether escapes of Python are known; `path`: whether it may begin like a path of Windows
        key       whether it is a key, in which a backslash before an underscore is one of Markdown
        bare      whether it is a value whose key has no quotes and a colon behind it
        direct    whether chunks that need no look may be taken as they are
        delimited whether `quote` is a delimiter of the dialect's own, of any length: there are no escapes then
        opened    what was read of it already

        A prefix before the quote says that it is a raw string of Python: there are no escapes either.
        """
        self._put = put
        self._delimited = delimited
        self._raw = quote.lstrip(RAW_PREFIX) if quote[0] in RAW_PREFIX and not delimited else ""
        quote = self._raw or quote
        self._triple = quote in TRIPLE
        self._quote = quote if delimited else quote[0] if self._triple else CURLY.get(quote, quote)
        self._python = python
        self._key = key
        self._bare = bare
        self._follows = ends
        self._refuses = refuses
        self._fresh = opened if path and len(opened) <= 2 else None  # the beginning, while it may be that of a path
        self._direct = direct
        self.doubt = -1
        self.comma = False
        self._inner = 0  # quotes that were taken for characters
        self._marks = False  # whether the first of them may stand alone: an inch, an apostrophe
        self._lone = False  # whether it does, and the second opens a pair
        self._before = opened[-1:]  # the character before the place that was reached
        self._bracket = "[" in opened  # whether a bracket opens in it
        self._open = opened.count("(") - opened.count(")")  # how many of these do, and do not close
        self._carry_on(opened, len(opened))
        self._controls = _CONTROL_ESCAPE  # finds an escape that does not go together with one that is none
        self._literal = "control" if _CONTROL_ESCAPE.match(opened) else ""  # or "backslash", or "both"
        self._literal_place = -1  # of the first of them
        self.status = OPEN
        self.code = self.expected = ""
        self._pass_plain()

    def _carry_on(self, text: str, end: int) -> None:
        """Look for a marker that begins in `text` before index `end`: where it does, the string was perhaps not closed.

        What may be the beginning of one is looked at again with more text.
        """
        alarm = self._around.opener(text, 0, end) if self._around is not None else None
        self._swallows = alarm is not None and alarm.certain
        self._carried = text[alarm.at : end] if alarm is not None and not alarm.certain else ""

    def _pass_plain(self) -> None:
        """Let chunks that are nothing but content pass, where they need not be looked at."""
        passes = self._direct and self._quote == '"' and not (self._delimited or self._raw)
        passes = passes and self._fresh is None and self._controls is _CONTROL_ESCAPE
        self._search = STOPS_DOUBLE if self._around is None else self._around.stops
        self.stops = (self._search if self._around is None else self._passes) if passes else None

    def _passes(self, chunk: str) -> object:
        """What `stops` is where strings are mended: it keeps the last character in mind."""
        found = self._search(chunk)
        if found is None:
            self._before = chunk[-1]
        return found

    def _opens(self, piece: str) -> None:
        """Keep in mind which brackets open in a piece of the string."""
        self._bracket = self._bracket or "[" in piece
        self._open += piece.count("(") - piece.count(")")

    def read(self, buffer: str, at: int, base: int) -> int:
        """Read `buffer` from index `at`; `base` is the position of its first character. Returns the next index."""
        end = self._read(buffer, at, base)
        if end > at:
            self._before = buffer[end - 1]
        return end

    def _read(self, buffer: str, at: int, base: int) -> int:
        begin = at
        quote = self._quote
        if self._delimited:
            return self._read_delimited(buffer, at, base)
        if self._raw:
            return self._read_raw(buffer, at, base)
        size = len(buffer)
        if self._carried:
            self._carry_on(self._carried + buffer[at : at + HOLD_LIMIT], len(self._carried))
            if self._carried:
                return at
        if self._fresh is not None:
            stop = self._read_path(self._fresh, buffer, at, base)
            self._pass_plain()
            if stop < 0:
                return at
            at = stop
        run, ends, around = _RUNS[quote], _ENDS[quote], self._around
        while True:
            if quote in "\"'" and around is not None:
                at = self._pass_mended(around, buffer, at, base)
            end = run.match(buffer, at).end()  # type: ignore[union-attr]  # an empty run matches too
            look = end + buffer.startswith(("\\", "\n", "\r"), end)  # a marker may begin with one, or behind one
            alarm = self._alarm(around, buffer, at, look) if around is not None else None
            if alarm is not None:
                end = alarm.at
            if end > at:
                piece = buffer[at:end]
                control = self._controls.match(piece) if "\\" in piece and around is not None else None
                if control is not None and self._literal == "backslash":
                    end = at + control.end() - 2
                    piece = buffer[at:end]
                self._opens(piece)
                at = end
                if self._put(piece if quote == '"' else to_double(piece)):
                    return at
                if control is not None and self._note("control", base + end):
                    continue
            if alarm is not None and alarm.certain:
                return self._die("", "", at)
            if at == size or alarm is not None:
                return at
            char = buffer[at]
            if char in ends:
                stop = self._read_quote(char, buffer[at - 1] if at > begin else self._before, buffer, at, base)
            elif char == "\\":
                stop = self._read_backslash(buffer, at, base)
            elif char < " ":
                stop = self._read_control(char, at, base)
            else:
                stop = self._read_half("a character", at, at + 1, base)
            if stop == at or self.status != OPEN:
                return stop
            at = stop

    def _pass_mended(self, around: Lookahead, buffer: str, at: int, base: int) -> int:
        """Pass by what is in the string without any doubt, whatever must be mended in it; return the next index."""
        quote = self._quote
        if self._controls is not _CONTROL_ESCAPE or self._literal == "control" or self._key:
            return at
        inside = None
        if self._inner >= _MANY_INNER and not self._triple and self._follows is not None:
            inside = around.inside(quote, self._follows, self._refuses, odd=self._inner % 2 == 1)
        if inside is not None:
            end = inside(buffer, at).end()  # type: ignore[union-attr]  # nothing matches too
        elif buffer[at : at + 1] == "\\" or buffer[at : at + 1] < " ":
            end = _MENDED_RUN[quote].match(buffer, at).end()  # type: ignore[union-attr]
            alarm = self._alarm(around, buffer, at, end)
            end = end if alarm is None else alarm.at
        else:
            return at
        if end > at:
            self._opens(buffer[at:end])
            text, places = mended(buffer[at:end], quote, controls=not self._triple)
            self._inner += len(places.get("inner-quotes", ()))
            if "literal-backslash" in places:
                self._note("backslash", base + at + places["literal-backslash"][0])
            place = base + at
            for code, found in places.items():
                starts = [place + start for start in found]
                self.repairs += map(Repair, repeat(code), map(Span, starts, [start + 1 for start in starts]))
            self._put(text)
        return end

    def _alarm(self, around: Lookahead, buffer: str, at: int, end: int) -> Alarm | None:
        """Return where from index `at` to `end` something may stand that the string should not go beyond.

        That is before an escape in which it begins: no part of one is read without the other.
        """
        if self.doubt >= 0:
            alarm = around.alarm(buffer, at, end)
        elif self._follows is None or self._swallows:
            return None
        else:
            alarm = around.opener(buffer, at, end)
            if alarm is not None and alarm.certain:
                self._swallows = True
                return None
        if alarm is not None and buffer[alarm.at : alarm.at + 1] in _IN_ESCAPES:
            return alarm._replace(at=at + _without_escape(buffer[at : alarm.at]))
        return alarm

    def _read_quote(self, char: str, before: str, buffer: str, at: int, base: int) -> int:
        """Read a quote: the end of the string, or a character of it. Returns index `at` where more text must tell.

        Quotes inside a string come in pairs, and so does what is missing where there is one: it was never closed, or
        opened twice. Only the mark of inches behind a digit, and an apostrophe, stand alone.
        """
        if self._triple:
            if buffer.startswith(char * 3, at):
                self.status = DONE
                return at + 3
            if buffer[at:] in (char, char * 2):
                return at
            self._put('\\"' if char == '"' else char)
            return at + 1
        odd = (self._inner % 2 == 1 and not self._marks) or (self._inner == 2 and self._lone)
        closes = self._closes(before, buffer, at + 1, odd=odd)
        if closes is None:
            return at
        if closes:
            if odd:
                return self._die("", "", at)
            self.status = DONE
            return at + 1
        if not before and char in "\"'" and buffer.startswith(char * 2, at):  # the string has just begun
            odd_one = follows(self._around.odd, buffer, at + 2) if self._around is not None else False
            if odd_one is None:
                return at
            if odd_one:
                self.doubt = base + at + 1
                return self._die("", "", at)
            self._repair("triple-quotes", base + at - 1, base + at + 2)
            self._triple = True
            return at + 2
        refused = self._has_ended(char, before, buffer, at + 1)
        if refused is None:
            return at
        if self.doubt < 0:
            self._doubt(buffer, at + 1, base)
        if not self._inner:
            self._marks = _may_be_mark(char, before)
        elif self._inner == 1:
            self._lone = self._marks and before in BLANKS and buffer[at + 1 : at + 2].isalnum()
        if refused or (self._key and not self._marks):
            return self._die("", "", at)
        self._inner += 1
        self._repair("inner-quotes", base + at, base + at + 1)
        self._put('\\"' if char == '"' else char)
        return at + 1

    def _closes(self, before: str, buffer: str, at: int, *, odd: bool) -> bool | None:
        """Whether the string ends with the quote before index `at`, which stands behind the character `before`.

        A first quote ends it, too, before a key and a colon that lack their comma; but not where a quote leads into
        what follows, behind a blank or a bracket, say. There none ends it with a key and an equals sign attached, which
        is code: `f(code="print("n =", n)")`.

        Nor does one behind a blank, a bracket or a plus end it before what looks like a key without quotes, where the
        string of that goes on like code: `"log("a: " + a + ", b: " + b)"`. A first one does where the string's own key
        looks the same: `{a: "x ", b: "+ y"}`.

        Where a quote was taken for a character and a bracket is open in the value, one behind this quote may close it,
        and must be the call's: `f(code='print('a', 'b') # …')`. `odd`: that one has no second one, which this may be.
        """
        around, ends = self._around, self._follows
        closes = follows(ends, buffer, at) if ends is not None else True
        if around is None:
            return closes
        if closes is False and not self._inner and not self._bracket and around.shut is not None:
            closes = follows(around.shut, buffer, at)
        if closes is False and not self._inner and before not in _LEADS and ends in around.of_pairs:
            mark = _may_be_mark(buffer[at - 1], before)
            closes = follows(UNPARTED_BEHIND_MARK[self._quote] if mark else UNPARTED, buffer, at)
        if closes and before in _LEADS and ends in (around.pair, around.positional):
            closes = not follows(ATTACHED, buffer, at)  # never None: what has closed it tells whether this is a key
        if closes and ends is not None:
            first = not self._inner
            joined = goes_on(around, ends, self._quote, before, buffer, at, first=first, bare=self._bare)
            closes = None if joined is None else not joined
        over = around.over_pair if odd else around.over if self._inner and self._open > 0 else None
        if closes and over is not None and ends in (around.pair, around.positional):
            closes = follows(over, buffer, at)
        return closes

    def _has_ended(self, char: str, before: str, buffer: str, at: int) -> bool | None:
        """Whether what stands behind a quote, at index `at`, shows that it ended the string, and is wrong there.

        So does a blank where the quote is the first, and directly behind a word: one inside a string opens a pair. And
        so do words between that one and the next string.
        """
        ended = self._swallows or (self._refuses is not None and follows(self._refuses, buffer, at))
        if ended is False and not self._inner and char in ANOTHER:
            ended = follows(ANOTHER[char], buffer, at)
        if ended is False and not self._inner and (before in _ENDS_TEXT or (char not in "'’" and _ends_word(before))):
            ended = follows(BLANK, buffer, at)
        if ended is False and not (self._inner or self._key) and char in ANOTHER and before not in _LEADS:
            ended = follows(GLUED[char, _may_be_mark(char, before)], buffer, at)
        if ended is False and not self._inner % 2:
            ended = follows(APART[char], buffer, at)
        return ended

    def _doubt(self, buffer: str, at: int, base: int) -> None:
        """The first quote that may be a character stands before index `at`: keep in mind what is behind it."""
        blanks = _BLANK_RUN.match(buffer, at)
        behind = at if blanks is None else blanks.end()
        self.comma = buffer[behind : behind + 1] in _COMMAS
        if self.comma and self._around is not None and self._follows is not self._around.key:
            # What ends a value was asked for behind the comma too, so it is there; not what ends a key.
            blanks = _BLANK_RUN.match(buffer, behind + 1)
            behind = behind + 1 if blanks is None else blanks.end()
        self.doubt = base + behind
        self.stops = None

    def _read_backslash(self, buffer: str, at: int, base: int) -> int:
        """Read a backslash that begins no escape of JSON. Returns index `at` where more text must tell."""
        if _ESCAPE_PREFIX.match(buffer, at):
            return at
        half = _SURROGATE_ESCAPE.match(buffer, at)
        if half is not None:
            return self._read_half("both halves of a surrogate pair", at, half.end(), base)
        if self._around is None:
            return self._die("bad-escape", _NO_ESCAPE, at)
        if self._python and buffer.startswith("\\x", at):
            if _HEX_PREFIX.match(buffer, at):
                return at
            byte = _HEX_ESCAPE.match(buffer, at)
            if byte is not None:
                self._repair("python-literal", base + at, base + at + 4)
                self._put(f"\\u00{byte[1]}")
                return at + 4
        if self._key and buffer.startswith("\\_", at):
            self._repair("markdown-escape", base + at, base + at + 1)
            return at + 1
        self._note("backslash", base + at)
        self._repair("literal-backslash", base + at, base + at + 1)
        apostrophe = buffer.startswith("\\'", at)
        self._put("'" if apostrophe else "\\\\")
        return at + 1 + apostrophe

    def _read_delimited(self, buffer: str, at: int, base: int) -> int:
        """Read a string with a delimiter of the dialect's own: there are no escapes in it."""
        quote = self._quote
        end = stop = buffer.find(quote, at)
        if end < 0:
            stop = len(buffer)
            for keep in range(min(len(quote) - 1, stop - at), 0, -1):
                if buffer.endswith(quote[:keep]):
                    stop -= keep
                    break
        if stop > at:
            piece = buffer[at:stop]
            halves = halves_of_characters(piece, base + at)
            self.faults += halves
            self._put(quoted(without_halves(piece) if halves else piece)[1:-1])
        if end < 0:
            return stop
        self.status = DONE
        return end + len(quote)

    def _read_raw(self, buffer: str, at: int, base: int) -> int:
        """Read a raw string of Python, which there is only where what is wrong is mended."""
        while True:
            end = _RAW[self._raw].match(buffer, at).end()  # type: ignore[union-attr]  # nothing matches too
            if end > at:
                self._put(quoted(buffer[at:end])[1:-1])
            if buffer.startswith(self._raw, end):
                self.status = DONE
                return end + len(self._raw)
            rest = buffer[end : end + 3]
            if rest == "\\" or self._raw.startswith(rest):  # the first half of an escape, or of what closes it
                return end
            if rest[0] in "\r\n":
                return self._die("control-character", "the end of the string", end)
            lone = end + (rest[0] == "\\")
            at = self._read_half("a character", lone, lone + 1, base)

    def _read_path(self, opened: str, buffer: str, at: int, base: int) -> int:
        """Read a string that begins like a Windows path as a whole; return -1 where more text must tell.

        `opened` is what was read of it. Where one escape in it is none, every backslash is one.
        """
        head = opened + buffer[at : at + 3]
        if may_begin_path(head) and len(buffer) - at < 3:
            return -1
        self._fresh = None
        if not begins_path(head):
            return at
        body = PATH_TEXT[self._quote].match(buffer, at)
        end = body.end() if body is not None else at
        if end - at <= PATH_LIMIT and (end == len(buffer) or (end == len(buffer) - 1 and buffer[end] == "\\")):
            self._fresh = opened
            return -1
        piece = buffer[at:end]
        if end - at > PATH_LIMIT or not buffer.startswith(self._quote, end):
            self._controls = _ANY_CONTROL_ESCAPE
            return at
        if _RUNS[self._quote].fullmatch(piece) or not (opened or is_whole_path(piece)):
            return at
        if self._quote == "'" and "\\\\" in (opened + piece)[1:] and _RUN_PYTHON.fullmatch(piece):
            return at  # where a backslash is doubled, `\x41` is the escape of Python
        self._opens(piece)
        text, places = literal_path(piece, self._quote, whole=not opened)
        for place in places:
            self._repair("literal-backslash", base + at + place, base + at + place + 1)
        self._controls = _ANY_CONTROL_ESCAPE  # where its quote was none of the end, the path goes on
        self._note("backslash", base + at)
        self._put(text)
        return end

    def _note(self, kind: str, place: int) -> bool:
        """Note an escape of a control character or a backslash that begins none; return whether one refutes the other.

        Then the backslash is a fault, the first one of a string for all.
        """
        refutes = self._literal not in ("", kind, "both")
        if refutes:
            wrong = place if kind == "backslash" else self._literal_place
            self._fault("bad-escape", _NO_ESCAPE, wrong, wrong + 1)
        elif not self._literal:
            self._literal_place = place
        self._literal = "both" if refutes else self._literal or kind
        return refutes

    def _read_control(self, char: str, at: int, base: int) -> int:
        """Read a raw control character."""
        if self._around is None:
            return self._die("control-character", "an escape, such as \\n", at)
        if self._key and self.doubt >= 0:
            return self._die("", "", at)  # a key with a quote too many ends with its line: it was cut
        if not self._triple:
            self._repair("raw-control-character", base + at, base + at + 1)
        self._put(quoted(char)[1:-1])
        return at + 1

    def _read_half(self, expected: str, at: int, end: int, base: int) -> int:
        """Read half of a surrogate pair, between two indexes: a fault, or the end where nothing is mended."""
        if self._around is None:
            return self._die("lone-surrogate", expected, at)
        self._fault("lone-surrogate", expected, base + at, base + at + 1)
        self._put(_NO_CHARACTER)
        return end
