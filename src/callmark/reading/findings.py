"""Says what was seen in a text, what was expected and what was done: what `callmark explain` shows.

Each problem and each repair is a finding. Where a text holds no call, a finding says what looks most like one and what
it lacks. That is found with the grammars: of the dialects that are listened for, the one whose grammar goes along with
the text furthest. What has no opener at all is found by CLUES.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

import msgspec

from callmark.dialects import Dialect, dialects, select
from callmark.dialects.clues import AROUND, CLUES, Clue
from callmark.dialects.notation import expand
from callmark.errors import DialectError
from callmark.events import REPAIR_CODES, Notice, Span
from callmark.reading import grammar
from callmark.reading.codes import CODES
from callmark.reading.diagnosis import message_parts, place_said, said, string_begin
from callmark.reading.options import wanted_again
from callmark.reading.schemas import known_tools
from callmark.reading.whole import Parsed, parse

Kind = Literal["malformed", "notice", "repair", "near-miss"]

SHOWN: Final = 60
"""Characters of the text that a finding quotes: less than a line."""
_PROBED: Final = 512  # characters of a text behind an opener that the grammar is asked about
_PROBES: Final = 64  # places of a text where it is asked: a millisecond each
_ALONG: Final = 5  # characters that a grammar must go along with: `[CALL` and `<tool`, but no `[1]`


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a reader of a text may want to know.

    kind            malformed, notice, repair (of a call that was read), or near-miss (in a text without any call)
    code            one of the codes of `callmark.events`; a near-miss has none
    line, column    where the caret stands, from 1, in code points
    span            what the finding is about, in code points from the start
    dialect, name   of the call; "" where there is none
    seen            what stands there
    expected        what should stand there
    done            what was made of it
    """

    kind: Kind
    code: str
    line: int
    column: int
    span: Span
    dialect: str
    name: str
    seen: str
    expected: str
    done: str


_DONE: Final = {
    "unknown-tool": "read as a call",
    "stray-closer": "taken out of the text",
    "extra-separator": "taken out of the text",
}
"""What was done with what a notice tells of; what is not here was left as text."""
_TWICE = re.compile("expected each key once, found (.*) twice")
_behind_key: Final = re.compile(r"[\"'”’>]?[ \t\r\n]{0,64}[:=：＝>\n<]").match


class _Lines:
    """Turns offsets into lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def findings(text: str, **options: Any) -> tuple[Finding, ...]:
    """Return what there is to say about `text`, in its order; the options are those of `parse`.

    >>> (finding,) = findings("See: [CALL: 2 + 2]")
    >>> finding.dialect, finding.column, finding.expected
    ('call', 13, 'a name')

    Nothing for a text whose calls are all well-formed. Loads lark; some milliseconds, and for a text without calls up
    to a second.
    """
    options = wanted_again(options)
    parsed = parse(text, **options)
    lines = _Lines(text)
    found = [*_problems(text, parsed, lines, select(options.get("dialects"))), *_repairs(text, parsed, lines)]
    if not parsed.calls and not parsed.problems:
        found += _near_misses(text, lines, options)
    return tuple(sorted(found, key=lambda finding: finding.span.start))


def _problems(text: str, parsed: Parsed, lines: _Lines, listening: Sequence[Dialect]) -> Iterator[Finding]:
    for problem in parsed.problems:
        dialect = name = ""
        at, expected = problem.span.start, CODES[problem.code].wanted
        seen = _excerpt(text, problem.span)
        if isinstance(problem, Notice):
            done = f"{_DONE.get(problem.code, 'left as text')}: {problem.message}"
        else:
            dialect, name = problem.dialect, problem.name or ""
            parts = message_parts(problem.message)
            if parts is not None:
                seen, expected = parts.found, parts.expected
            at = place_said(problem) or at
            twice = _TWICE.fullmatch(problem.message)
            if twice is not None:
                key = json.loads(twice[1])
                seen = f"the key {key} a second time"
                at += _second(problem.raw, key, [row for row in listening if row.name == dialect])
            after, _ = lines.place(problem.span.end)
            done = f"not read as a call; reading went on in line {after}, behind {len(problem.raw)} characters"
            if problem.code == "unclosed-marker":
                done = "not read as a call: a marker that the end of the text cuts is never one"
                if string_begin(expected) is not None:
                    seen = _excerpt(text, Span(at, len(text)))
                    expected = "a quote that ends the string which begins here"
        line, column = lines.place(at)
        yield Finding(
            kind="notice" if isinstance(problem, Notice) else "malformed",
            code=problem.code,
            line=line,
            column=column,
            span=problem.span,
            dialect=dialect,
            name=name,
            seen=seen,
            expected=expected,
            done=done,
        )


def _second(raw: str, key: str, rows: Sequence[Dialect]) -> int:
    """Return the index of a marker of `rows` at which a key stands for the second time, 0 where that is not told: that
    of a value between tags, or one between the same brackets.
    """
    for form in (form for row in rows for form in row.forms if "key" in form.parameter):
        again = [found for found in re.finditer(expand(form.parameter), raw) if found["key"] == key][1:]
        if again:
            return again[0].start("key")
    within, seen, opened = [0], set(), 0
    string = r'"(?:[^"\\]++|\\(?s:.))*+(?:"|\\?\Z)'  # to its end: what it quotes is not looked at again
    string += "|" + r"(?<![\w.\-])'(?:[^'\\]++|\\(?s:.))*+(?:'|\\?\Z)"
    for token in re.finditer(rf"(?<![\w.\-]){re.escape(key)}|{string}|[\[{{(\])}}]", raw):
        text = token[0]
        if text in ("[", "{", "("):
            opened += 1
            within.append(opened)
        elif text in ("]", "}", ")"):
            if len(within) > 1:
                within.pop()
        elif text.strip("\"'") == key and _behind_key(raw, token.end()):
            if within[-1] in seen:
                return token.start() + (text[0] in "\"'")
            seen.add(within[-1])
    return 0


def _repairs(text: str, parsed: Parsed, lines: _Lines) -> Iterator[Finding]:
    for call in parsed.calls:
        for repair in call.repairs:
            line, column = lines.place(repair.span.start)
            yield Finding(
                kind="repair",
                code=repair.code,
                line=line,
                column=column,
                span=repair.span,
                dialect=call.dialect,
                name=call.name,
                seen=_excerpt(text, repair.span) or "nothing",
                expected=CODES[repair.code].wanted,
                done=f"read as a call: {REPAIR_CODES[repair.code]}",
            )


class _Miss(NamedTuple):
    """What looks like a call: where it starts, where it stops being one, of which dialect, and what is missing."""

    start: int
    at: int
    dialect: str
    expected: str


def _near_misses(text: str, lines: _Lines, options: dict[str, Any]) -> Iterator[Finding]:
    """Yield what looks most like a call: one finding, or none."""
    around, miss = _by_clues(text, AROUND), _of_another_dialect(text, options)
    if around is not None and (miss is None or around.start < miss.start):
        miss = around
    along = _along_a_grammar(text, options)
    if along is not None and (miss is None or along.start < miss.start < along.at):  # else it is but a part of that
        miss = along
    miss = miss or _by_clues(text, CLUES) or _by_name(text, options.get("tools"))
    if miss is None:
        return
    titles = {dialect.name: dialect.title for dialect in (*dialects(), *select(options.get("dialects")))}
    line, column = lines.place(miss.at)
    end = max(miss.at, miss.start + 1)
    yield Finding(
        kind="near-miss",
        code="",
        line=line,
        column=column,
        span=Span(miss.start, end),
        dialect=miss.dialect,
        name="",
        seen=_excerpt(text, Span(miss.at, len(text))) or "the end of the text",
        expected=miss.expected,
        done=f"left as text; the dialect {miss.dialect} looks like {titles[miss.dialect]}",
    )


def _of_another_dialect(text: str, options: dict[str, Any]) -> _Miss | None:
    """Return the first call of a dialect that was not listened for."""
    others = parse(text, **{**options, "dialects": dialects()}).calls
    if not others:
        return None
    start, name = others[0].span.start, others[0].dialect
    return _Miss(start, start, name, f"the dialect {name} among those listened for")


def _along_a_grammar(text: str, options: dict[str, Any]) -> _Miss | None:
    """Return the place from which a grammar of the dialects listened for goes along with the text furthest."""
    best: _Miss | None = None
    for dialect in select(options.get("dialects")):
        if not _has_grammar(dialect):
            continue
        begins = "".join({char for form in dialect.forms for char in form.begins})
        for place in islice(re.finditer(f"[{re.escape(begins)}]", text), _PROBES):
            start = place.start()
            stop = grammar.load(dialect).explain(text[start : start + _PROBED], "marker")
            if stop is not None and stop.position >= (_ALONG if best is None else best.at - best.start + 1):
                best = _Miss(start, start + stop.position, dialect.name, said(stop.expected))
    return best


def _has_grammar(dialect: Dialect) -> bool:
    try:
        grammar.load(dialect)
    except DialectError:  # of the caller's own, without one
        return False
    return True


def _by_clues(text: str, clues: tuple[Clue, ...]) -> _Miss | None:
    """Return the first clue to a call that has no opener."""
    for pattern, dialect, missing in clues:
        found = re.search(pattern, text, re.MULTILINE)
        if found is not None:
            start = found.end() - len(found[0].lstrip())
            return _Miss(start, start, dialect, missing)
    return None


def _by_name(text: str, tools: Any) -> _Miss | None:
    """Return the first place where the name of a tool that was given stands before a parenthesis or a brace."""
    for name in known_tools(tools) or ():
        found = re.search(rf"(?<!\w){re.escape(name)}`?\s{{0,64}}[({{]", text)
        if found is not None:
            return _Miss(found.start(), found.start(), "call", f"the marker around it: [CALL: {name}(...)]")
    return None


def _excerpt(text: str, span: Span) -> str:
    piece = text[span.start : min(span.end, span.start + SHOWN)]
    return piece.partition("\n")[0] or piece[:1]
