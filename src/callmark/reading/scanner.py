"""Finds where a marker begins, for all dialects at once. It never decides what a call is.

A `Plan` is made once for a set of dialects. It holds the *entries*: every pattern with which a marker of some form may
begin (openers of sections, heads of calls), and the reasoning tags. Entries are tried in the order of the dialects; the
first that matches decides, which is how `<tool_call>` can belong to three dialects.

Speed: for each character with which an entry may begin there is one pattern that begins with that very literal, so that
`re` skips to it at memory speed (2 GB/s, where a character class or a leading alternation makes 0.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from callmark.dialects import Dialect, Form, select
from callmark.reading.patterns import HOLD_LIMIT, Pattern, Patterns, Section, anonymous, patterns, section

Search: TypeAlias = Callable[..., re.Match[str] | None]

_REASONING: Final = Dialect(
    name="reasoning",
    title="<think> and its like",
    models="reasoning models",
    source="DeepSeek-R1, Qwen3 and others",
    forms=(Form(head=r"<(?P<slash>/?)(?P<name>(?i:think|thinking|thought|reasoning))>", body="json"),),
)


class Entry(NamedTuple):
    """A pattern with which something begins: a section, a call, or reasoning."""

    kind: Literal["opener", "head", "loose", "tag"]
    pattern: Pattern
    dialect: Dialect
    form: Form
    patterns: Patterns
    section: Section | None = None  # of an opener


class Plan:
    """What to look for. `begins` finds any character with which an entry may begin."""

    def __init__(self, dialects: tuple[Dialect, ...], tolerant: bool) -> None:
        """Make the plan for `dialects`; a tolerant one takes loose heads too."""
        strict: list[Entry] = []
        loose: list[Entry] = []
        for dialect in dialects:
            openers: set[str] = set()
            for form in dialect.forms:
                compiled = patterns(form)
                if compiled.opener is not None and form.opener not in openers:
                    openers.add(form.opener)
                    shared = section(tuple(other for other in dialect.forms if other.opener == form.opener))
                    strict.append(Entry("opener", compiled.opener, dialect, form, compiled, shared))
                if form.alone:
                    strict.append(Entry("head", compiled.head, dialect, form, compiled))
                if tolerant:
                    loose += [Entry("loose", head, dialect, form, compiled) for head in compiled.loose]
        tag = patterns(_REASONING.forms[0])
        entries = [*strict, Entry("tag", tag.head, _REASONING, tag.form, tag), *loose]
        self.first = entries[0]
        self.entries: dict[str, list[Entry]] = {}
        for entry in entries:
            for char in _begins(entry):
                self.entries.setdefault(char, []).append(entry)
        self.any = re.compile("[" + "".join(re.escape(char) for char in self.entries) + "]").search
        self._union = "|".join(anonymous(entry.pattern.text) for entry in entries)
        self.union = Pattern(self._union)

    @cached_property
    def search(self) -> dict[str, Search]:
        """For each character that may begin an entry, what finds the next entry that begins with it."""
        return {
            char: re.compile("|".join(anonymous(entry.pattern.text) for entry in found)).search
            for char, found in self.entries.items()
        }

    @cached_property
    def suspicious(self) -> Search:
        """Finds the first place where an entry begins, or may with more text; for chunks, which are short."""
        begins = "".join(re.escape(char) for char in self.entries)
        unfinished = self.union.unfinished
        if unfinished is None:
            return self.any
        return re.compile(f"(?=[{begins}])(?:{self._union}|{unfinished})").search

    @cached_property
    def waiting(self) -> Search:
        """Matches a text that ends inside an entry which begins at its start."""
        return _never if self.union.unfinished is None else re.compile(self.union.unfinished).match

    def may_begin(self, buffer: str, at: int) -> int:
        """Return the first index from `at` where more text could make an entry match, -1 for none."""
        found = self.any(buffer, max(at, len(buffer) - HOLD_LIMIT))
        while found is not None:
            start = found.start()
            if self.union.may_match(buffer, start):
                return start
            found = self.any(buffer, start + 1)
        return -1


def _begins(entry: Entry) -> str:
    """Return the characters with which the entry's own pattern may begin."""
    text = entry.pattern.text
    for char in entry.form.begins:
        if text.startswith(re.escape(char)):
            return char
    return entry.form.begins


def _never(*_: object) -> None:
    return None


@lru_cache(maxsize=64)
def _plan(dialects: tuple[Dialect, ...], tolerant: bool) -> Plan:
    return Plan(dialects, tolerant)


@lru_cache(maxsize=2)
def _default_plan(tolerant: bool) -> Plan:
    return _plan(select(None), tolerant)


def plan(dialects: object, tolerant: bool) -> Plan:
    """Return the plan for an option `dialects`: None, a name, a Dialect, or several of them. Made once for each set."""
    if dialects is None:
        return _default_plan(tolerant)
    return _plan(select(dialects), tolerant)  # type: ignore[arg-type]  # select checks it
