"""Patterns in a text that goes on: whether one matches at a place, and whether it may once more text has come.

A match is decided by the stdlib's `re` (a few hundred nanoseconds). Where a chunk ends inside a possible match, the
question arises whether more text could complete it: a pattern derived from the first answers that (see `prefixes`), and
for patterns from which none can be derived (a user's look-behind, say) the `regex` module does, with `partial=True`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from callmark.dialects.notation import anonymous, for_regex, is_alternatives
from callmark.dialects.prefixes import (
    UnsupportedPatternError,
    any_of,
    first_characters,
    literals,
    merged,
    openings,
    unfinished,
)
from callmark.reading.characters import LOOKED_AT

if TYPE_CHECKING:
    import regex

HOLD_LIMIT: Final = 1024
"""Characters: the longest stretch in which a pattern may still become a match. The longest heads, with a name of 128
characters and blanks at all of their gaps, take some 900; what is longer is no marker."""

REMEMBERED_LENGTH: Final = 64
"""Characters of a text about which an answer is remembered."""
_REMEMBERED: Final = 1024  # answers; where there are so many, all are forgotten
_Answer = TypeVar("_Answer")


class Remembered(dict[str, _Answer]):
    """Answers about texts, by text, where short ones come again and again: what a chunk ends with, beginning at a sign.

    A model writes the same tags all the time. Whoever writes others has them asked about, as the memory is bounded.
    """

    def __init__(self, ask: Callable[[str], _Answer]) -> None:
        """Take what answers."""
        self.ask = ask

    def __missing__(self, text: str) -> _Answer:
        answer = self.ask(text)
        if len(text) <= REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[text] = answer
        return answer


class Pattern:
    """One pattern: `match` at a place, and `may_match` for a place near the end of a text that goes on.

    It is compiled when it is first used: most of the forms that are listened for never come up.
    """

    def __init__(self, text: str) -> None:
        """Take `text`, whose abbreviations are written out already."""
        self.text = text

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.text)

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        """Match at a place: `re.Pattern.match`."""
        return self._compiled.match

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        """Search from a place: `re.Pattern.search`."""
        return self._compiled.search

    @cached_property
    def fullmatch(self) -> Callable[..., re.Match[str] | None]:
        """Match a whole text: `re.Pattern.fullmatch`."""
        return self._compiled.fullmatch

    @cached_property
    def unfinished(self) -> str | None:
        """The pattern of what more text could make a match, None where none can be derived."""
        try:
            return unfinished(self.text)
        except UnsupportedPatternError:
            return None

    @cached_property
    def _unfinished(self) -> Callable[..., object] | None:
        return None if self.unfinished is None else re.compile(self.unfinished).match

    @cached_property
    def _partial(self) -> regex.Pattern[str]:
        import regex  # 20 ms, and only patterns of an unusual kind need it

        return regex.compile(for_regex(self.text), regex.VERSION0)

    @cached_property
    def waits(self) -> Callable[[str], object]:
        """Tells of a text whether the pattern does not match it, but may once more has come; None for no."""
        return waits(self, self)

    @cached_property
    def prefix(self) -> str:
        """The text with which every match begins, as far as it is plain to see."""
        return prefix(self.text)

    @cached_property
    def openings(self) -> list[str]:
        """Texts with one of which every match begins."""
        return [self.prefix] if len(self.prefix) > 1 else literals(self.text)

    def may_match(self, buffer: str, at: int) -> bool:
        """Return whether more text behind `buffer` could make the pattern match at index `at`."""
        size = len(buffer) - at
        if size > HOLD_LIMIT:
            return False
        prefix = self.prefix
        if prefix:
            if size < len(prefix):
                return prefix.startswith(buffer[at:])
            if not buffer.startswith(prefix, at):
                return False
        unfinished = self._unfinished
        if unfinished is not None:
            return unfinished(buffer, at) is not None
        found = self._partial.match(buffer, at, partial=True)
        return found is not None and found.partial


def waits(decided: Pattern, pattern: Pattern) -> Callable[[str], object]:
    """Return what tells of a text whether `decided` does not match it, but `pattern` may once more has come."""
    return Remembered(lambda text: (decided.match(text) is None and pattern.may_match(text, 0)) or None).__getitem__


def literal(pattern: str) -> str:
    r"""Return the text that the pattern stands for, "" where it stands for several, or that is not plain to see.

    >>> literal(r"\[/arg\]"), literal(r"\n</arg>")
    ('[/arg]', '')
    """
    several = re.search(r"\\\w|[{(\[*+?|.^$]", re.sub(r"\\\W", "", pattern))
    return "" if several else re.sub(r"\\(.)", r"\1", pattern)


def prefix(pattern: str) -> str:
    r"""Return a text with which every match of `pattern` begins, "" where that is not plain to see.

    >>> prefix(r"\[CALL: *\(x")
    '[CALL:'
    """
    seen = re.match(r"(?:\\[^\w\s]|[^\\.^$*+?{}\[\]|()])*+", pattern)
    plain = seen[0] if seen is not None else ""
    rest = pattern[len(plain) :]
    if rest[:1] in ("*", "?", "{", "|"):
        plain = re.sub(r"\\?.\Z", "", plain, flags=re.DOTALL)
    return "" if is_alternatives(rest) else re.sub(r"\\(.)", r"\1", plain, flags=re.DOTALL)


def begins(pattern: str) -> set[str]:
    r"""Return the characters with which a match of `pattern` may begin: of ASCII, and those that it names.

    >>> begins(r"\[/arg\]"), sorted(begins(r"\r?\n|;"))
    ({'['}, ['\n', '\r', ';'])
    """
    plain = prefix(pattern)
    if plain:
        return {plain[0]}
    first = first_characters(pattern)
    if first is not None:
        return {*first}
    tried = Pattern(pattern)
    chars = {*map(chr, range(128)), *pattern}
    return {char for char in chars if tried.match(char, 0) is not None or tried.may_match(char, 0)}


class AnyOf(Pattern):
    """The pattern that matches where any of the patterns `texts` does. They are put together when it is first used."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Take the patterns."""
        self._texts = texts

    @cached_property
    def text(self) -> str:  # type: ignore[override]  # made late
        """The pattern."""
        try:
            return merged(self._texts)
        except (UnsupportedPatternError, re.error):
            return "|".join(map(anonymous, self._texts))


class Begun(Pattern):
    """The pattern that matches where one of `patterns` may begin with a character, as the next few tell."""

    def __init__(self, char: str, patterns: Sequence[Pattern]) -> None:
        """Take the character and the patterns."""
        self._char = char
        self._patterns = patterns

    @cached_property
    def text(self) -> str:  # type: ignore[override]  # made late
        """The pattern."""
        begins: set[str] = set()
        for pattern in self._patterns:
            texts = pattern.openings
            begins.update(texts if min(map(len, texts)) >= LOOKED_AT else openings(pattern.text, LOOKED_AT))
        behind = {text[1:LOOKED_AT] for text in begins if text.startswith(self._char)}
        if "" in begins or "" in behind:
            return re.escape(self._char)
        seconds = "".join(map(re.escape, sorted({text[0] for text in behind})))
        return f"{re.escape(self._char)}(?=[{seconds}])(?={any_of(behind)})"


class Watched:
    """A pattern that is looked for in text that comes in chunks."""

    def __init__(self, pattern: Pattern) -> None:
        """Take a pattern that begins with a character of ASCII, or with one that it names."""
        self.pattern = pattern

    @cached_property
    def begins(self) -> str:
        """The characters with which it may begin, for a class of characters."""
        return "".join(map(re.escape, sorted(begins(self.pattern.text))))

    @cached_property
    def _begins(self) -> re.Pattern[str]:
        return re.compile(f"[{self.begins}]")

    def find(self, buffer: str, start: int, end: int) -> Alarm | None:
        """Return the first place from `start` up to `end` where the pattern matches, or may once more text is there."""
        found = self._begins.search(buffer, start, end)
        while found is not None:
            at = found.start()
            if self.pattern.match(buffer, at) is not None:
                return Alarm(at, certain=True)
            if len(buffer) - at < HOLD_LIMIT and self.pattern.may_match(buffer, at):
                return Alarm(at, certain=False)
            found = self._begins.search(buffer, at + 1, end)
        return None


class Alarm(NamedTuple):
    """An index, and whether a marker's end or beginning is whole there: more text must tell otherwise."""

    at: int
    certain: bool
