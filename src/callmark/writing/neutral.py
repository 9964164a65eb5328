"""Makes content harmless: text that is shown to a model and must not be read as a call, wherever it ends up (law 9).

A marker begins with an opener, and the openers are those of the dialects' rows, the very patterns that the scanner
looks for, however tolerant it is. Each that stands in a text is broken: behind its first character by a backslash in
prose, and by an escape of JSON in the strings of a JSON text, whose value stays as it is. So is one that the end of the
text cuts. And where the beginning of a text would go on with an opener that was cut in another one, it is set off from
it by blanks, which are nothing to JSON, or by what nobody sees.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from callmark.dialects import Dialect, derived, dialects, unregistered
from callmark.dialects.limits import BEHIND_CALL
from callmark.dialects.notation import BLANKS, BLANKS_LIMIT, BRACE, anonymous, expand, for_regex, named_tool
from callmark.dialects.parsed import last_characters
from callmark.dialects.prefixes import first_characters, openings
from callmark.dialects.thoughts import THOUGHT_TAGS
from callmark.dialects.tokens import SPECIAL_TOKENS
from callmark.dialects.values import is_json
from callmark.errors import UsageError, check_flags
from callmark.toolshapes import tool_names
from callmark.writing.infixes import Continuations

if TYPE_CHECKING:
    import regex

WINDOW: Final = 1024
"""Characters: no opener is longer, or reading would not hold it back."""

_BEFORE_LINES: Final = {">", r"\]", "\\\n"}  # with which tags end: behind each of them a line may begin, anyway
_UNSEEN: Final = "\u200b"  # no opener holds it, and nobody sees it
_MANY_BLANKS: Final = " " * (BLANKS_LIMIT + 1)
_APART: Final = ("", "\n", "\n" + _MANY_BLANKS, "\n" + " " * WINDOW)  # more blanks than an opener may hold are its end
_APART_IN_PROSE: Final = ("", "\n", _UNSEEN, "\n" + _UNSEEN, "\n" + " " * WINDOW)
_IN_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_STRUCTURE: Final = "[]{}:,"  # of JSON: blanks may stand behind it
_GAPS: Final = (" ", _MANY_BLANKS)
_TOLD_BY: Final = 3  # characters by which openers are told apart: few have them in common
_BEGINNINGS: Final = 1024  # of openers, and of what is none, of which is known which openers they may begin
_NONE: Final = "(?!)"
_CHARACTERS = re.compile(r'\\u[0-9a-fA-F]{4}|\\.|[^"\\]', re.DOTALL)


def neutralize(
    text: str,
    *,
    dialects: Iterable[str | Dialect] | str | Dialect | None = None,
    special_tokens: bool = False,
    tools: Any = None,
) -> str:
    r"""Return `text` such that no call is read in it, in any dialect, alone or joined with other texts.

    >>> neutralize("He wrote [CALL: pay(amount=9)] and left.")
    'He wrote [\\CALL: pay(amount=9)] and left.'
    >>> neutralize('["<tool_call>{}"]')
    '["\\u003ctool_call>{}"]'

    dialects        further dialects, which are not registered; all that are registered count always
    special_tokens  whether the tokens with which chat templates separate messages are broken too
    tools           in any usual shape: what is a call by the name of a tool alone, as salvage reads it, is broken where
                    it names one of them (`{"data": {}}` stays as it is); default: whatever it names

    A text that is JSON stays JSON with the same value. Text without anything like an opener stays as it is, but one
    that could be the middle of a marker that begins in the text before it is set off from that. Doing it twice changes
    nothing. No call is read in any chain of neutralized texts and of others in which no marker begins or has begun.
    Linear time. Raises UsageError for options out of range and for anything but a str, and ToolsError for tools without
    a name.
    """
    check_flags(special_tokens=special_tokens)
    own = unregistered(dialects) or None  # once: they may come one by one
    inside = neutralized_inside(text, dialects=own, special_tokens=special_tokens, names=tool_names(tools))
    return set_apart(inside, dialects=own, special_tokens=special_tokens)


def neutralized_inside(
    text: str,
    *,
    dialects: Iterable[str | Dialect] | str | Dialect | None = None,
    special_tokens: bool = False,
    names: Collection[str] | None = None,
) -> str:
    """Do as `neutralize` does, but leave the beginning of the text as it is: for what comes behind a text of ours.

    `names` are those of the tools that there are, None for any.
    """
    if not isinstance(text, str):
        raise UsageError(f"neutralize: expected a str, found {type(text).__name__}")
    openers = _openers_for(dialects, special_tokens)
    if is_json(text):
        escaped = openers.escaped(text, names)
        if escaped is not None:
            return escaped
    return openers.broken(text, names)


def set_apart(
    text: str, *, dialects: Iterable[str | Dialect] | str | Dialect | None = None, special_tokens: bool = False
) -> str:
    """Return a neutralized text that does not go on with an opener which was cut in the text before it."""
    if not text:
        return text
    openers = _openers_for(dialects, special_tokens)
    ways = _APART if is_json(text) else _APART_IN_PROSE
    if text.startswith(ways[-1]):  # no more can be done, and doing it twice changes nothing
        return text
    return next((w + text for w in ways if (w and openers.end_with(w)) or not openers.go_on(w + text)), ways[-1] + text)


class Opener(NamedTuple):
    """What is broken.

    begins   the characters that may come first
    pattern  what it looks like
    indent   how many spaces may stand before it, where only the start of a line counts
    named    whether it is one only with the name of a tool, which `named_tool` finds
    cut      whether it is one only where the end of the text cuts it
    """

    begins: str
    pattern: str
    indent: int | None = None
    named: bool = False
    cut: bool = False


class Openers:
    """What markers of some dialects begin with."""

    def __init__(self, openers: tuple[Opener, ...], starts: Sequence[tuple[str, ...]]) -> None:
        """Take what is broken, and `starts`, patterns of the same up to where a call has begun, with which a text must
        not go on: in groups, as several Openers have one in common, and share what is derived from it.
        """
        self._openers = openers
        self._begins = set[str]().union(*(opener.begins for opener in openers))
        chars: dict[int | None, set[str]] = {}
        for opener in openers:
            chars.setdefault(opener.indent, set()).update(opener.begins)
        candidates = [_any_of(chars.pop(None, set()))]
        for indent, some in chars.items():
            # Behind a tag a new line begins, and a bracket may be the end of one; so it does behind U+FEFF, with which
            # a text may begin. Behind a tag that ends otherwise such an opener is one with the tag.
            spaces = (indent or 0) + 1
            places = [rf"(?<=(?<![^\r\n>\]\ufeff])[ ]{{{size}}})" for size in range(spaces)]
            # A call may end where the text begins, and U+FEFF may stand there.
            places += [rf"(?<=(?<![^\ufeff])[ ]{{{size}}})" for size in range(spaces, BEHIND_CALL + 1)]
            candidates.append(f"(?={_any_of(some)})(?:{'|'.join(places)})(?s:.)")
        self._candidates = re.compile("|".join(candidates)).finditer
        self._beginnings: dict[str, list[tuple[str, Opener]]] = {}
        self._compiled: dict[tuple[Opener, ...], _Compiled] = {}
        self._beginning_with = lru_cache(_BEGINNINGS)(self._prepared)
        self._starts = starts
        self._apart: dict[str, bool] = {}

    @cached_property
    def _continuations(self) -> list[Continuations]:
        return [_continuations(starts) for starts in self._starts]

    def go_on(self, text: str) -> bool:
        """Whether `text` may go on with an opener that was cut before it."""
        return any(continuations.begin(text[: 2 * WINDOW]) for continuations in self._continuations)

    def end_with(self, blanks: str) -> bool:
        """Whether an opener that was cut before `blanks` ends with them, whatever follows."""
        if blanks not in self._apart:
            self._apart[blanks] = not self.go_on(blanks)
        return self._apart[blanks]

    def broken(self, text: str, names: Collection[str] | None = None) -> str:
        """Return the text with every opener broken behind its first character."""
        pieces = []
        done = 0
        end = ""
        for start in self._found(text, names):
            first = text[start]
            if first.isalpha() and len(text) - start <= WINDOW and not self._is_opener(text[start:] + _UNSEEN, names):
                end = _UNSEEN  # a word that could go on: what it is not is said behind it, and it stays a word
                continue
            behind = text[start + 1 : start + WINDOW]
            ways = (first + sign for sign in ("\\", _UNSEEN) if sign not in self._begins)
            way = next((way for way in ways if not self._is_opener(way + behind, names)), None)
            pieces += [text[done:start], way if way is not None else _wide(first)]
            done = start + 1
        return "".join([*pieces, text[done:], end])

    def escaped(self, text: str, names: Collection[str] | None = None) -> str | None:
        """Return JSON with an escape in or behind each opener, or where that does not break it, blanks between its
        brackets; None where one stands as it does for all that.
        """
        found = list(self._found(text, names))
        if not found:
            return text
        places = [
            string.start() + 1 + inner.start()
            for string in _IN_STRINGS.finditer(text)
            for inner in _CHARACTERS.finditer(string[0][1:-1])
            if len(inner[0]) == 1
        ]
        escapes = {place for start in found for place in places[bisect_left(places, start) :][:1]}
        written = _changed(text, {place: _escape(text[place]) for place in escapes})
        signs = {start: written[start] for start in self._found(written, names) if written[start] in _STRUCTURE}
        if signs:
            strings = [place for string in _IN_STRINGS.finditer(written) for place in string.span()]
            between = {start: sign for start, sign in signs.items() if bisect_right(strings, start) % 2 == 0}
            spaced = (_changed(written, {at: sign + gap for at, sign in between.items()}) for gap in _GAPS)
            written = next((way for way in spaced if next(self._found(way, names), None) is None), written)
        cut = next(self._found(written, names), -1)
        if cut >= len(written.rstrip(BLANKS)):  # blanks behind the value, with which an opener may begin
            written += "\n"
            cut = next(self._found(written, names), -1)
        return written if cut < 0 else None

    def _found(self, text: str, names: Collection[str] | None) -> Iterator[int]:
        """Yield where each opener begins, one that the end of the text cuts among them."""
        return (found.start() for found in self._candidates(text) if self._is_opener(text, names, found.start()))

    def _is_opener(self, text: str, names: Collection[str] | None, start: int = 0) -> bool:
        """Whether an opener stands at a place, or the beginning of one that the end of the text cuts."""
        compiled = self._beginning_with(text[start : start + _TOLD_BY])
        if compiled.whole(text, start) is not None:
            return True
        if len(text) - start <= WINDOW:
            cut = (pattern.match(text, start, partial=True) for pattern in compiled.cut)
            if any(found is not None and found.partial for found in cut):
                return True
        matches = (pattern.match(text, start, partial=True) for pattern in compiled.named)
        return any(
            found and (names is None or found.partial or named_tool(found.groupdict()) in names) for found in matches
        )

    def _prepared(self, begin: str) -> _Compiled:
        """Return the openers with which a text may go on that begins so, compiled."""
        first = begin[0]
        if first not in self._beginnings:
            some = [opener for opener in self._openers if first in opener.begins]
            self._beginnings[first] = [(text, it) for it in some for text in openings(it.pattern, _TOLD_BY)]
        texts = self._beginnings[first]
        openers = tuple(dict.fromkeys(it for text, it in texts if begin.startswith(text) or text.startswith(begin)))
        if openers not in self._compiled:
            self._compiled[openers] = _Compiled.of(openers)
        return self._compiled[openers]


class _Compiled(NamedTuple):
    whole: Callable[..., re.Match[str] | None]
    cut: list[regex.Pattern[str]]
    named: list[regex.Pattern[str]]

    @classmethod
    def of(cls, openers: Iterable[Opener]) -> _Compiled:
        """Compile openers. What none of them needs is not there."""
        whole = _together(opener.pattern for opener in openers if not opener.named and not opener.cut)
        cut = _together(opener.pattern for opener in openers if opener.cut)
        named = [_partial(opener.pattern) for opener in openers if opener.named]
        return cls(re.compile(whole).match, [_partial(it) for it in (whole, cut) if it != _NONE], named)


def _partial(pattern: str) -> regex.Pattern[str]:
    """Return a pattern of a row as the module `regex` has it, which tells whether a text may begin a match of it."""
    import regex  # 20 ms, and only who writes needs it

    return regex.compile(for_regex(pattern), regex.VERSION0)


def _together(patterns: Iterable[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns) or _NONE


def _changed(text: str, changes: Mapping[int, str]) -> str:
    """Return a text with other characters at some places."""
    pieces = []
    done = 0
    for place, change in sorted(changes.items()):
        pieces += [text[done:place], change]
        done = place + 1
    return "".join([*pieces, text[done:]])


def _escape(char: str) -> str:
    """Return a character as JSON has it escaped: two of them beyond the first plane."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _begins(tags: Sequence[str]) -> str:
    return "".join(sorted({char for tag in tags for char in first_characters(tag) or "<"}))


def _any_of(chars: set[str]) -> str:
    return "[" + "".join(map(re.escape, sorted(chars))) + "]" if chars else "(?!)"


def _wide(char: str) -> str:
    """Return the full-width form of a character: where it alone is an opener, nothing behind it can break it."""
    return chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else "\ufffd"


def _openers_for(extra: Iterable[str | Dialect] | str | Dialect | None, special_tokens: bool) -> Openers:
    own = unregistered(extra)
    return _openers((*dialects(), *own), special_tokens) if own else _registered_openers(special_tokens)


@lru_cache(maxsize=2)
def _registered_openers(special_tokens: bool) -> Openers:
    return _openers(dialects(), special_tokens)


@lru_cache(maxsize=16)
def _openers(rows: tuple[Dialect, ...], special_tokens: bool) -> Openers:
    broken: list[Opener] = []
    starts: list[str] = []
    lines: list[str] = []  # patterns of what stands at the start of a line, spaces included
    line_starts: list[str] = []  # the same up to where a call has begun
    for form in (form for row in rows for form in (*row.forms, *row.variants)):
        openers = [form.opener, *form.loose_openers] if form.opener else []
        heads = [form.head, *derived.tolerated_heads(form)]
        indent = form.indent if form.line_start or form.text_start else None
        refused = (*derived.refused_heads(form), *derived.nameless_heads(form, alone=True))
        found = [*openers, *((*heads, *refused) if form.alone else ())]
        begun = [*heads, *derived.quoted_heads(form)]
        if not form.alone:
            objects = [opener for opener in openers if opener.endswith(BRACE)]  # whatever object comes first
            begun = [*objects, *(opener + "{ws}" + head for opener in openers for head in begun)]
        written = expand if form.salvage else anonymous
        broken += [Opener(form.begins, written(pattern), indent, form.salvage) for pattern in found]
        starts += begun
        if indent is not None:
            lines += [rf"[ ]{{0,{indent}}}(?:{anonymous(pattern)})" for pattern in found]
            line_starts += [rf"[ ]{{0,{indent}}}(?:{anonymous(pattern)})" for pattern in begun]
    all_tags = list(map(anonymous, [*THOUGHT_TAGS, *(tag for row in rows for tag in row.tags)]))
    tags = [tag for tag in all_tags if not last_characters(tag) <= _BEFORE_LINES]
    broken.append(Opener(_begins(tags), f"(?:{'|'.join(tags)})(?:{'|'.join(lines)})"))
    # Behind the others a line begins, too, also where such a tag is cut and goes on in a text that nobody has checked.
    others = [tag for tag in all_tags if last_characters(tag) <= _BEFORE_LINES]
    broken.append(Opener(_begins(others), "|".join(others), cut=True))
    starts.append(f"(?:{'|'.join(tags)})(?:{'|'.join(line_starts)})")
    more = [SPECIAL_TOKENS] if special_tokens else []
    if special_tokens:
        # One that begins with a bracket's end is broken behind it: a text may well end in such a bracket.
        behind = r"\]"
        for token in SPECIAL_TOKENS:
            second = f"(?<={behind}){token.removeprefix(behind)}"
            broken.append(Opener("~", second) if token.startswith(behind) else Opener("<[", token))
    return Openers(tuple(dict.fromkeys(broken)), [tuple(dict.fromkeys(map(anonymous, starts))), *more])


@lru_cache(maxsize=16)
def _continuations(starts: tuple[str, ...]) -> Continuations:
    return Continuations(starts)
