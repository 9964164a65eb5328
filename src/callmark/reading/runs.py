"""Passes by members and items that need mending where nothing is in doubt: one match for each, however it is spelled.

The fast path of tolerant reading, for JSON that is wrong at every other token. A run goes from one place where a key or
an item is due to a later one, or behind a value before the closer. In it stand words, and strings of which no character
can mean anything else, each followed by what shows that it is over; `values` reads these likewise, a token at a time,
and all others. So whether a run is passed by, and where a chunk ends, changes nothing (law 1 holds the two together).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import accumulate, repeat
from typing import Any, Final

from callmark.events import Repair, Span
from callmark.reading.paths import PATH_LIMIT, literal_path
from callmark.reading.words import loose_word

Matcher = Callable[[str, int], re.Match[str] | None]
OBJECT: Final = "O"  # frames, as in `values`
ARRAY: Final = "A"
TUPLE: Final = "t"
_FRAMES: Final = {"{": OBJECT, "[": ARRAY, "(": TUPLE}
_CLOSERS: Final = {OBJECT: "}", ARRAY: "]", TUPLE: ")"}


class Runs:
    """The patterns of one form. Cost of a run: 2 to 4 microseconds for each member or item, whatever is mended.

    members  match, for each frame, a member or an item and what stands behind it
    behind   match what stands behind a value
    alike    matches several items of a list that are spelled alike
    """

    def __init__(self, signs: str, *, blanks: str, key: str, quoted_key: str, item: str, remarks: bool) -> None:
        """Take what must be looked at in a string, as members of a set of characters, and patterns of `lookahead`.

        These are: `blanks`, a bare `key`, a quoted one with its sign, and with what an `item` begins. `remarks`:
        whether a marker begins and ends with no letter, so that a comment of words holds none.
        """
        quote = "[\"'“”„‘’]"
        double = rf"""(?![A-Za-z]:\\|\\\\)(?:[^"{signs}]++|\\["\\/nrt])*+\""""
        path = rf"""(?=[A-Za-z]:\\)(?:[^"{signs}]|\\(?:[^{signs}]|["\\])){{0,{PATH_LIMIT}}}+\""""
        string = (
            rf"""("{double})|'((?:[^"'{signs}]++|\\')*+)'|[“”„]([^"“”„{signs}]*+)["“”„]|[‘’]([^"‘’{signs}]*+)[‘’]"""
        )
        remark = r"(?:/\*[\w ]{0,256}+\*/|(?://|#)[\w ]{0,256}+(?=[\r\n]))" if remarks else "(?!)"
        comma = rf"([,，])({blanks})"
        behind = rf"(?:({remark})({blanks}))?+"
        one = rf"{comma}(?:((?!))())?+{behind}"
        two = rf"{comma}(?:(,)({blanks}))?+{behind}"
        plain = rf"{key}{blanks}[:：]{blanks}(?:[^\s\"'“”„‘’]|{quote}[^ \t+,<|.&])"  # and not `strings.JOINED`
        separators = {
            OBJECT: rf"(?:{two}(?:(?={quote}|{plain})|(?=(\}})))|(?=(\}}))|(?=({quoted_key})))",
            ARRAY: rf"(?:{one}(?:(?=(\]))|(?={item}))|(?=(\]))|(?<=[ \t\r\n])(?=([\"{{\[])))",
            TUPLE: rf"(?:{one}(?:(?=(\)))|(?={item}))|(?=(\)))|((?!)))",
        }
        name = rf"(?:{string}|({key}))({blanks})([:：]|=(?![=>]))({blanks})"
        self.members: dict[str, Matcher] = {}
        self.behind: dict[str, Matcher] = {}
        for frame, separator in separators.items():
            text = string.replace(double, f"(?:{double}|{path})", 1)
            value = rf"(?:(?:{text}|([\w+\-.]{{1,64}}+))({blanks}){separator}|([\[{{(])({blanks}))"
            self.members[frame] = re.compile((name if frame == OBJECT else "") + value).match
            self.behind[frame] = re.compile(f"({blanks}){separator}").match
        self.alike = re.compile(
            rf"((?:'(?:[^\"'{signs}]++|\\')*+'{blanks},{blanks}){{2,}}+)"
            rf"|((?:[^\W\d][\w\-]{{0,63}}+{blanks},{blanks}){{2,}}+)"
            rf"|((?:\"(?![A-Za-z]:\\|\\\\)[^\"{signs}]*+\"[ \t\r\n]{{1,64}}+){{2,}}+)"
        ).match
        # What must stand behind each of its groups: asked for apart, so that where it does not the match tells how far.
        self._behind_alike = (re.compile(item).match, re.compile("").match, re.compile(r'["{\[]').match)

    def read(
        self,
        buffer: str,
        at: int,
        base: int,
        frames: list[str],
        out: list[str],
        repairs: list[Repair],
        room: int,
    ) -> Run | None:
        """Read a run from index `at`, where a key or an item is due; return None where none begins there.

        `frames` are the open brackets, the innermost one last, of which the run may open `room` more and closes no
        others. What comes out is added to `out`, and what is mended to `repairs`.
        """
        run = Run(buffer, at, base, frames, out, repairs)
        deepest = len(frames) + room
        unlike = 0  # index before which items are read one by one, as some of them are not known or none follows
        more = True
        while more:
            frame = frames[-1]
            alike = self.alike(buffer, run.at) if frame == ARRAY and run.at >= unlike else None
            if alike is not None:
                goes_on = self._behind_alike[(alike.lastindex or 1) - 1](buffer, alike.end()) is not None
                if not (goes_on and run.pass_alike(alike)):
                    unlike = alike.end()
            found = self.members[frame](buffer, run.at)
            if found is None or not run.read_member(found, opens=len(frames) < deepest):
                break
            more = run.read_behind(found, self.behind)
        return run if run.sound >= 0 else None


_KEYS: Final = 8
"""Groups of a key: of its string, by quotes; a word; blanks, the sign, blanks. Then come 5 of a value, likewise."""
_BEHIND: Final = 10
"""Groups of what stands behind a value. Behind them come a bracket that opens a value, and blanks."""
_CLOSED: Final = (*[None] * 8, "", None)
"""These where a closer is there, and nothing else."""


class Run:
    """A run as it is read, and what it came to: index `at`, where it ended; `sound` is that of its last token.

    due      whether a key, an item or a closer is due there; else what stands behind a value
    first    whether nothing was read in the bracket that is open
    pending  a comma with the blanks around it, which has not come out
    equals   whether an equals sign stood behind a key
    """

    def __init__(
        self, buffer: str, at: int, base: int, frames: list[str], out: list[str], repairs: list[Repair]
    ) -> None:
        self._buffer = buffer
        self._base = base
        self._frames = frames
        self._outside = len(frames)
        self._out = out
        self._repairs = repairs
        self.at = at
        self.sound = -1
        self.due = True
        self.first = self.equals = False
        self.pending = ""

    def _mend(self, code: str, start: int, end: int) -> None:
        """Record a repair of what stands between two indexes."""
        self._repairs.append(Repair(code, Span(self._base + start, self._base + end)))

    def pass_alike(self, found: re.Match[str]) -> bool:
        """Pass by items that are spelled alike, if all of them are known; return whether they are."""
        json = _many(found, self._base + self.at, self._repairs)
        if json:
            last = json.rindex(",")
            self._out.append(self.pending + json[:last])
            self.pending, self.at, self.first = json[last:], found.end(), False
            self.sound = self.at if found.lastindex == 3 else self._buffer.rindex(",", 0, self.at)
        return json != ""

    def read_member(self, found: re.Match[str], *, opens: bool) -> bool:
        """Read a member or an item without what stands behind it; return False, and take nothing, where in doubt.

        `opens`: whether it may open a bracket.
        """
        groups, place, known = found.groups(), self.at, len(self._repairs)
        bracket = groups[-2]
        if bracket is not None and not opens:
            return False
        key = sign = ""
        if self._frames[-1] == OBJECT:
            key, sign, place = self._key(found, groups), groups[6], found.end(_KEYS)
            groups = groups[_KEYS:]
        text = self._value(groups, place) if bracket is None else self._open(bracket, groups[-1], place)
        if not text:
            del self._repairs[known:]
            return False
        self._out.append(f"{self.pending}{key}{text}")
        self.pending, self.first = "", bracket is not None
        self.at, self.sound, self.equals = found.end(), place, self.equals or sign == "="
        return True

    def _key(self, found: re.Match[str], groups: tuple[str | Any, ...]) -> str:
        """Return the JSON of a key, with its sign."""
        double, single, curly, low, word, before, sign, after = groups[:_KEYS]
        if word is None:
            key = _string(double, single, curly, low, self._base + self.at, self._repairs)
        else:
            self._mend("bare-key", self.at, self.at + len(word))
            key = f'"{word}"'
        if sign != ":":
            place = found.start(7)
            self._mend("full-width-punctuation" if sign == "：" else "equals-for-colon", place, place + 1)
        return f"{key}{before}:{after}"

    def _value(self, groups: tuple[str | Any, ...], place: int) -> str:
        """Return the JSON of a string or a word at index `place`; "" where it must be looked at."""
        double, single, curly, low, word, _, comma = groups[:7]
        if word is None:
            if double is not None and double[2:4] == ":\\":
                return _path(double, self._base + place, self._repairs)
            return _string(double, single, curly, low, self._base + place, self._repairs)
        text, code = loose_word(word)
        lacks_comma = groups[-3] is not None
        if code == "bare-value" and (lacks_comma or (self._frames[-1] == TUPLE and comma is None)):
            return ""  # not certain there
        if code:
            self._mend(code, place, place + len(word))
        return text

    def _open(self, bracket: str, blanks: str, place: int) -> str:
        """Open a bracket; return it as JSON has it."""
        self._frames.append(_FRAMES[bracket])
        if bracket != "(":
            return bracket + blanks
        self._mend("python-literal", place, place + 1)
        return "[" + blanks

    def read_behind(self, found: re.Match[str], behind: Mapping[str, Matcher]) -> bool:
        """Read what stands behind what was read, with closers of the run's own brackets; return whether it goes on.

        `behind` matches, for each frame, what stands behind a value.
        """
        groups = found.groups()
        bracket = groups[-2]
        if bracket is not None and not self._buffer.startswith(_CLOSERS[self._frames[-1]], self.at):
            return True
        place = len(groups) - _BEHIND - 1
        groups = groups[-_BEHIND - 2 : -2] if bracket is None else _CLOSED
        while self._separate(found, groups, place):
            if len(self._frames) == self._outside:
                self.due = groups[8] is None  # a closer with no comma before it
                return False
            self._out.append("}" if self._frames.pop() == OBJECT else "]")
            self.sound, self.pending, self.first = self.at, "", False
            self.at += 1
            after = behind[self._frames[-1]](self._buffer, self.at)
            if after is None:
                self.due = False
                return False
            self.at, found, groups, place = after.end(), after, after.groups(), 1
        return True

    def _separate(self, found: re.Match[str], groups: tuple[str | Any, ...], place: int) -> bool:
        """Read blanks and a comma, of which the groups of `found` begin at `place`; return whether a closer follows."""
        blanks, comma, after, twice, inner, remark, rest, over, end, lacks = groups
        if blanks:
            self._out.append(blanks)
        self.pending = ""
        closes = over is not None or end is not None
        if comma is not None:
            self.sound = at = found.start(place + 1)
            if comma != ",":
                self._mend("full-width-punctuation", at, at + 1)
            self.pending = "," + after
            if twice:
                self._mend("extra-comma", at, at + 1)
                self.sound = at = found.start(place + 3)
                self.pending += inner
            if closes and self._frames[-1] != TUPLE and len(self._frames) > self._outside:
                self._mend("extra-comma", at, at + 1)
            if remark is not None:
                self._mend("comment", *found.span(place + 5))
                self.pending += rest
        elif lacks is not None:
            self.sound = self.at
            self._mend("missing-comma", self.at, self.at)
            self.pending = ","
        return closes


_SINGLE: Final = re.compile(r"'((?:[^'\\]++|\\')*+)'")
_ESCAPES: Final = re.compile(r'(?:[^\\]++|\\["\\/bfnrt])*+')
_UNICODE: Final = re.compile(r"\\u[0-9a-fA-F]{4}")
_DOUBLE: Final = re.compile(r'"[^"]*+"[ \t\r\n]++')
_SEPARATOR: Final = re.compile(r"[ \t\r\n]*+,[ \t\r\n]*+")
_BARE_WORD: Final = re.compile(r"[\w\-]++")


def _many(found: re.Match[str], place: int, repairs: list[Repair]) -> str:
    """Return the JSON of items that are spelled alike, and end with a comma; "" for none.

    Group 1 holds strings in single quotes, 2 words, and 3 strings without commas.
    """
    singles, words, parted = found.groups()
    if parted is not None:
        items = _DOUBLE.findall(parted)
        ends = accumulate(map(len, items), initial=place)
        repairs += [Repair("missing-comma", Span(at, at)) for at in list(ends)[1:]]
        return ",".join(items) + ","
    if singles is not None:
        repairs += [
            Repair("single-quotes", Span(at, at + 1))
            for at in [place + string.start() for string in _SINGLE.finditer(singles)]
        ]
        return str(singles.replace("\\'", "\0").replace("'", '"').replace("\0", "'"))
    comma = _SEPARATOR.search(words)
    items = words.split(comma[0]) if comma is not None else []
    alike = not items[-1]  # whether the same stands behind each of them
    read = {word: loose_word(word) for word in set(items[:-1] if alike else _BARE_WORD.findall(words))}
    codes = {code for _, code in read.values()}
    if alike and comma is not None and codes == {"bare-value"}:
        step = len(comma[0])
        starts = list(accumulate((len(item) + step for item in items), initial=place))[:-2]
        spans = map(Span, starts, [start + len(item) for start, item in zip(starts, items, strict=False)])
        repairs += map(Repair, repeat("bare-value"), spans)
        return '"' + f'"{comma[0]}"'.join(items[:-1]) + f'"{comma[0]}'
    if not all(text for text, _ in read.values()):
        return ""
    for word in _BARE_WORD.finditer(words):
        code = read[word[0]][1]
        if code:
            repairs.append(Repair(code, Span(place + word.start(), place + word.end())))
    return _BARE_WORD.sub(lambda word: read[word[0]][0], words)


def _path(source: str, place: int, repairs: list[Repair]) -> str:
    """Return the JSON of a string that begins like a path of Windows; "" where it must be looked at."""
    piece = source[1:-1]
    if _ESCAPES.fullmatch(piece) is not None:
        return source
    if len(piece) > PATH_LIMIT or _UNICODE.search(piece) is not None:
        return ""
    text, places = literal_path(piece, '"', whole=True)
    repairs += [Repair("literal-backslash", Span(place + 1 + at, place + 2 + at)) for at in places]
    return f'"{text}"'


def _string(
    double: str | None, single: str | None, curly: str | None, low: str | None, place: int, repairs: list[Repair]
) -> str:
    """Return the JSON of a string, of which the one is given that it is quoted with; record the quote at `place`."""
    if double is not None:
        return double
    if single is not None:
        repairs.append(Repair("single-quotes", Span(place, place + 1)))
        return '"' + single.replace("\\'", "'") + '"'
    repairs.append(Repair("curly-quotes", Span(place, place + 1)))
    return f'"{low if curly is None else curly}"'
