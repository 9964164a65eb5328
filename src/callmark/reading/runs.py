"""Passes by members and items that need mending where nothing is in doubt: one match for each, however it is spelled.

The fast path of tolerant reading, for JSON that is wrong at every other token. A run goes from one place where a key or
an item is due to a later one, or behind a value before the closer. In it stand words, and strings of which no character
can mean anything else, each followed by what shows that it is over; `values` reads these likewise, a token at a time,
and all others. So whether a run is passed by, and where a chunk ends, changes nothing (law 1 holds the two together).
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate, repeat
from json.encoder import encode_basestring as quoted
from typing import Final, NamedTuple

from callmark.events import Repair, Span
from callmark.reading.paths import PATH_LIMIT, literal_path
from callmark.reading.schemas import NUMBER, PYTHON_LITERALS, holdable, loose_number

OBJECT: Final = "O"  # frames, as in `values`
ARRAY: Final = "A"
TUPLE: Final = "t"
_FRAMES: Final = {"{": OBJECT, "[": ARRAY, "(": TUPLE}
_CLOSERS: Final = {OBJECT: "}", ARRAY: "]", TUPLE: ")"}

_NO_STRINGS: Final = frozenset(
    ["true", "tru", "false", "fals", "null", "nul", "none", "nil", "undefined", "nan", "inf", "infinity", "tool_calls"]
)
"""Words that are no strings, in lower case: values of other languages, what a typing error makes of them, and
[TOOL_CALLS], which opens a marker."""
_BARE_VALUE: Final = re.compile(  # `2d6` is a word, but not what may be meant as a number: `1e5x`, `0b12`, `10L`, `1O0`
    r"[^\W\d][\w\-]{0,127}+|(?!0[BOXbox])[0-9]{1,8}+[A-DF-HJKMNP-TV-Za-df-hjkmnp-tv-z][0-9A-Za-z]{1,31}+"
)


def is_bare_value(word: str) -> bool:
    """Return whether a word may be meant as a string: one word, and no value's name."""
    return _BARE_VALUE.fullmatch(word) is not None and word.lower() not in _NO_STRINGS


@lru_cache(maxsize=1024)
def loose_word(word: str) -> tuple[str, str]:
    """Return the JSON text of a word where a value is due, "" for none, and the code of the repair, "" for none.

    >>> [loose_word(word) for word in ("7", "None", "+7", "sea", "nan")]
    [('7', ''), ('null', 'python-literal'), ('7', 'python-literal'), ('"sea"', 'bare-value'), ('', '')]
    """
    if word in ("true", "false", "null") or NUMBER.fullmatch(word):
        return (word if word[-1] == "l" or word[-1] == "e" or holdable(word) else ""), ""
    text = PYTHON_LITERALS.get(word) or loose_number(word)
    if text:
        return text, "python-literal"
    return (quoted(word), "bare-value") if is_bare_value(word) else ("", "")


class Ran(NamedTuple):
    """Where a run ended: index `at`; `sound` is that of its last token.

    due      whether a key, an item or a closer is due there; else what stands behind a value
    first    whether nothing was read in the bracket that is open
    pending  a comma with the blanks around it, which has not come out
    equals   whether an equals sign stood behind a key
    """

    at: int
    sound: int
    due: bool
    first: bool
    pending: str
    equals: bool


class Runs:
    """The patterns of one form. Cost of a run: 2 to 4 microseconds for each member or item, whatever is mended."""

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
        separators = {
            OBJECT: rf"(?:{two}(?:(?={quote}|{key}{blanks}[:：])|(?=(\}})))|(?=(\}}))|(?=({quoted_key})))",
            ARRAY: rf"(?:{one}(?:(?=(\]))|(?={item}))|(?=(\]))|(?<=[ \t\r\n])(?=([\"{{\[])))",
            TUPLE: rf"(?:{one}(?:(?=(\)))|(?={item}))|(?=(\)))|((?!)))",
        }
        name = rf"(?:{string}|({key}))({blanks})([:：]|=(?![=>]))({blanks})"
        self._members = {}
        self._behind = {}
        for frame, separator in separators.items():
            text = string.replace(double, f"(?:{double}|{path})", 1)
            value = rf"(?:(?:{text}|([\w+\-.]{{1,64}}+))({blanks}){separator}|([\[{{(])({blanks}))"
            self._members[frame] = re.compile((name if frame == OBJECT else "") + value).match
            self._behind[frame] = re.compile(f"({blanks}){separator}").match
        items = rf"((?:'(?:[^\"'{signs}]++|\\')*+'{blanks},{blanks}){{2,}}+)(?={item})"
        self._items = re.compile(
            rf"{items}|((?:[^\W\d][\w\-]{{0,63}}+{blanks},{blanks}){{2,}}+)"
            rf"|((?:\"(?![A-Za-z]:\\|\\\\)[^\"{signs}]*+\"[ \t\r\n]{{1,64}}+){{2,}}+)(?=[\"{{\[])"
        ).match

    def read(
        self,
        buffer: str,
        at: int,
        base: int,
        frames: list[str],
        out: list[str],
        repairs: list[Repair],
        room: int,
        pending: str,
    ) -> Ran | None:
        """Read a run from index `at`, where a key or an item is due; return None where none begins there.

        `frames` are the open brackets, the innermost one last, of which the run may open `room` more and closes no
        others. What comes out is added to `out`, `pending` first, and what is mended to `repairs`.
        """
        depth, sound, first, equals = len(frames), -1, False, False
        while True:
            frame = frames[-1]
            many = self._items(buffer, at) if frame == ARRAY else None
            json = "" if many is None else _many(many, base + at, repairs)
            if many is not None and json:
                last = json.rindex(",")
                out.append(pending + json[:last])
                pending, at = json[last:], many.end()
                sound, first = at if many.lastindex == 3 else buffer.rindex(",", 0, at), False
            found = self._members[frame](buffer, at)
            if found is None:
                break
            known, place, groups = len(repairs), at, found.groups()
            key, sign, behind = "", "", 0
            if frame == OBJECT:
                k1, k2, k3, k4, word, before, sign, after = groups[:8]
                if word is None:
                    key = _string(k1, k2, k3, k4, base + at, repairs)
                else:
                    repairs.append(Repair("bare-key", Span(base + at, base + at + len(word))))
                    key = f'"{word}"'
                key += f"{before}:{after}"
                if sign != ":":
                    start = base + found.start(7)
                    code = "full-width-punctuation" if sign == "：" else "equals-for-colon"
                    repairs.append(Repair(code, Span(start, start + 1)))
                groups, behind, place = groups[8:], 8, found.end(8)
            v1, v2, v3, v4, word = groups[:5]
            separated, bracket, after = groups[5:15], groups[15], groups[16]
            if bracket is not None:
                if len(frames) - depth >= room:
                    del repairs[known:]
                    break
                if bracket == "(":
                    repairs.append(Repair("python-literal", Span(base + place, base + place + 1)))
                out.append(f"{pending}{key}{'[' if bracket == '(' else bracket}{after}")
                pending, first = "", True
                frames.append(_FRAMES[bracket])
            else:
                if v1 is not None and v1[2:4] == ":\\":
                    text = _path(v1, base + place, repairs)
                    if not text:
                        del repairs[known:]
                        break
                elif word is None:
                    text = _string(v1, v2, v3, v4, base + place, repairs)
                else:
                    text, code = loose_word(word)
                    if code == "bare-value" and (separated[9] is not None or (frame == TUPLE and separated[1] is None)):
                        text = ""  # not certain there
                    if not text:
                        del repairs[known:]
                        break
                    if code:
                        repairs.append(Repair(code, Span(base + place, base + place + len(word))))
                out.append(f"{pending}{key}{text}")
                first = False
            at, sound, equals = found.end(), place, equals or sign == "="
            if bracket is not None:
                if not buffer.startswith(_CLOSERS[frames[-1]], at):
                    continue
                separated = ("", None, None, None, None, None, None, None, "", None)
            behind += 6
            while True:
                blanks, comma, after, twice, inner, remark, rest, over, end, lacks = separated
                if blanks:
                    out.append(blanks)
                pending = ""
                closes = over is not None or end is not None
                pops = closes and len(frames) > depth
                if comma is not None:
                    sound = found.start(behind + 1)
                    if comma != ",":
                        repairs.append(Repair("full-width-punctuation", Span(base + sound, base + sound + 1)))
                    pending = "," + after
                    if twice:
                        repairs.append(Repair("extra-comma", Span(base + sound, base + sound + 1)))
                        sound = found.start(behind + 3)
                        pending += inner
                    if pops and frames[-1] != TUPLE:
                        repairs.append(Repair("extra-comma", Span(base + sound, base + sound + 1)))
                    if remark is not None:
                        start, stop = found.span(behind + 5)
                        repairs.append(Repair("comment", Span(base + start, base + stop)))
                        pending += rest
                elif lacks is not None:
                    sound = at
                    repairs.append(Repair("missing-comma", Span(base + at, base + at)))
                    pending = ","
                if not pops:
                    break
                sound, pending, first = at, "", False
                out.append("}" if frames.pop() == OBJECT else "]")
                at += 1
                found = self._behind[frames[-1]](buffer, at)
                if found is None:
                    return Ran(at, sound, False, False, "", equals)
                at, separated, behind = found.end(), found.groups(), 1
            if closes:
                return Ran(at, sound, end is None, False, pending, equals)
        return Ran(at, sound, True, first, pending, equals) if sound >= 0 else None


_SINGLE: Final = re.compile(r"'((?:[^'\\]++|\\')*+)'")
_ESCAPES: Final = re.compile(r'(?:[^\\]++|\\["\\/bfnrt])*+')
_UNICODE: Final = re.compile(r"\\u[0-9a-fA-F]{4}")
_DOUBLE: Final = re.compile(r'"[^"]*+"[ \t\r\n]++')
_SEPARATOR: Final = re.compile(r"[ \t\r\n]*+,[ \t\r\n]*+")
_WORD: Final = re.compile(r"[\w\-]++")


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
    read = {word: loose_word(word) for word in set(items[:-1] if alike else _WORD.findall(words))}
    codes = {code for _, code in read.values()}
    if alike and comma is not None and codes == {"bare-value"}:
        step = len(comma[0])
        starts = list(accumulate((len(item) + step for item in items), initial=place))[:-2]
        spans = map(Span, starts, [start + len(item) for start, item in zip(starts, items, strict=False)])
        repairs += map(Repair, repeat("bare-value"), spans)
        return '"' + f'"{comma[0]}"'.join(items[:-1]) + f'"{comma[0]}'
    if not all(text for text, _ in read.values()):
        return ""
    for word in _WORD.finditer(words):
        code = read[word[0]][1]
        if code:
            repairs.append(Repair(code, Span(place + word.start(), place + word.end())))
    return _WORD.sub(lambda word: read[word[0]][0], words)


def _path(source: str, place: int, repairs: list[Repair]) -> str:
    """Return the JSON of a string that begins like a path of Windows; "" where it must be looked at."""
    piece = source[1:-1]
    if _ESCAPES.fullmatch(piece) is not None:
        return source
    if len(piece) > PATH_LIMIT or _UNICODE.search(piece) is not None:
        return ""
    text, places = literal_path(piece, whole=True)
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
