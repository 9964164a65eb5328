"""Checks a dialect's row: what the laws want of its patterns, before there is any text of it.

A pattern is tried with texts that are made from it: each of its parts in the shortest form and in some others. So what
is told is certain, and what is not told may still be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from re import _constants as sre  # as in `dialects.parsed`: the tree of a pattern has no public interface
from typing import Any, Final

from callmark.dialects import Dialect, Form, derived
from callmark.dialects.notation import BLANKS, BLANKS_LIMIT, BRACE, anonymous, expand
from callmark.dialects.parsed import REPEATS, inner, tree
from callmark.dialects.prefixes import first_characters, merged_ways
from callmark.dialects.rendering import WrittenCall, written
from callmark.errors import DialectError, UsageError
from callmark.events import Malformed
from callmark.reading.diagnosis import message_parts
from callmark.reading.entries import all_begins, beginnings, check_row, in_words
from callmark.reading.grammar import grammar_place, load
from callmark.reading.matching import HOLD_LIMIT, Pattern, begins
from callmark.reading.options import EVERYWHERE
from callmark.reading.patterns import patterns
from callmark.reading.stops import Stop
from callmark.reading.whole import parse

_OF_EVERY_TYPE: Final = {
    "text": "some words", "number": 2.5, "integer": 2, "boolean": True, "null": None, "array": [1], "object": {"a": 1},
}  # fmt: skip
_CALLS: Final = [WrittenCall("look", _OF_EVERY_TYPE, "c1"), WrittenCall("look", {})]
_NAMES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "head": {"id": ("terminal ID",)},
    "parameter": {
        "key": ("terminal KEY", "terminal VALUE"), "text": ("terminal TEXT",), "object": ("terminal OBJECT",),
        "array": ("terminal ARRAY",),
    },
}  # fmt: skip
"""What a grammar must have where patterns have groups: by these names its trees are read."""
_BODY_NAMES: Final = {"json": "object", "braces": "object", "envelope": "envelope", "arguments": "arguments"}
_PATIENT: Final = re.compile(r"(?<!\\)([*+?}])\+")  # what repeats possessively
_UP_TO: Final = re.compile(r"(?<!\\)\{([0-9]++),[0-9]++\}\+")  # the same, so many times at most

_WHITE_SPACE: Final = ["".join(some) for size in (1, 2, 3) for some in product("\n \r\t", repeat=size)]
_SET_APART: Final = ("\n", "\n\u200b", "\n" + " " * (BLANKS_LIMIT + 1), "\n" + " " * HOLD_LIMIT)
"""White space, and what `neutralize` puts before texts."""

_NOT_WAITED_FOR: Final = frozenset({"simple", "closing"})
"""Parts of `Patterns` for which nothing is held: where they do not match at once, another reads on."""


def check_row_alone(row: Dialect) -> None:
    """Check what `testing.check_dialect` says, but for whether the row and the grammar agree."""
    try:
        check_row(row)
        load(row)
    except DialectError as error:
        raise AssertionError(f"{error}") from error
    for where, form in row.placed_forms():
        for field, pattern in _patterns(form):
            _check_end(f"{where}.{field}", pattern, _behind(form, field, pattern))
            _check_length(f"{where}.{field}", pattern)
        for name, part in patterns(form).parts().items():
            for pattern in _parts(part) if name not in _NOT_WAITED_FOR else ():
                _check_length(f"{where}, its patterns together ({name})", pattern)
        _check_begins(where, form)
        _check_values(where, form)
        _check_parameter(where, form)
        _check_blanks(where, form)
        if form.opener and (first_characters(expand(form.head)) or set()) & set(BLANKS):
            raise AssertionError(
                f"{where}.head: expected a pattern that begins with no white space, which in a section the opener and "
                f"the separator take, found {form.head!r:.80}"
            )
    for field, pattern in [("tags", tag) for tag in row.tags] + [("leads", tag) for tag in row.leads]:
        _check_end(f"dialect {row.name}: {field}", expand(pattern))
        _check_length(f"dialect {row.name}: {field}", expand(pattern))
    if row.writing is not None:
        _check_writing(row, row.writing.form)


def _check_writing(row: Dialect, form: int) -> None:
    """Check that strict reading takes what the templates write; so it does where a value quotes that, or is refused."""
    try:
        text = _check_written(row, form, _CALLS[:1])
        _check_written(row, form, _CALLS)
    except UsageError as error:
        raise AssertionError(f"dialect {row.name}: writing: {error}") from None
    with suppress(UsageError):
        _check_written(row, form, [WrittenCall("look", {"text": f"{text} &amp; <![CDATA["})])


def _check_written(row: Dialect, form: int, calls: list[WrittenCall]) -> str:
    """Return some calls as the templates write them."""
    text = written(calls, row)
    parsed = parse(text, dialects=row, contexts=EVERYWHERE, tolerance="strict")
    problem = next((problem for problem in parsed.problems if isinstance(problem, Malformed)), None)
    found = ""
    if problem is not None:
        found = f"one that {_refused(row, form, text, problem)}"
    elif [(call.name, call.arguments) for call in parsed.calls] != [(call.name, call.arguments) for call in calls]:
        found = f"{len(parsed.calls)} of {len(calls)} calls, or others" if parsed.calls else "no call"
    elif parsed.text.strip():
        found = f"the text {parsed.text.strip()!r} beside the calls"
    if found:
        raise AssertionError(
            f"dialect {row.name}: writing: in {text!r}: expected calls that the forms read as they are, found {found}"
        )
    return text


def _refused(row: Dialect, form: int, text: str, problem: Malformed) -> str:
    """Say what is wrong with a call that the templates write, where what the grammar wants is there, too."""
    parts = message_parts(problem.message)
    at = problem.span.start + parts.at if parts is not None else 0
    if parts is None or not text.startswith(parts.expected.strip('"'), at):
        return f"is not: {problem.message}"
    theirs = row.forms[form].body == "arguments" and text[at - 1] == ")"
    hint = "; the `)` of `arguments` is read with them" if theirs else ""
    return f"the grammar describes, and forms[{form}] refuses at {text[at:]!r:.80}{hint}"


def check_names(row: Dialect) -> None:
    """Check that the grammar has the rules and terminals by which its trees are read, where the row has such parts."""
    found = load(row).names()
    found |= {"ID"} if "id" in found else set()  # a rule, of which the name is a part
    for number, form in enumerate(row.forms):
        wanted = [(f"rule {_BODY_NAMES[form.body]}", f"body is `{form.body}`")] if form.body in _BODY_NAMES else []
        for field, groups in _NAMES.items():
            held = re.compile(expand(getattr(form, field))).groupindex
            wanted += [(name, f"{field} has a group `{it}`") for it in groups if it in held for name in groups[it]]
        for name, reason in wanted:
            if name.split()[1] not in found:
                raise AssertionError(
                    f"{grammar_place(row)}: expected a {name}, as forms[{number}].{reason}, found none that is used"
                )


def sample_texts(row: Dialect) -> Iterator[tuple[str, list[str]]]:
    """Yield for each form, and for the templates, its place and markers that it makes: each part in several ways.

    Most of them are calls to the row, if it is sound: what the grammar says of them can be held against that.
    """
    for where, form in row.placed_forms()[: len(row.forms)]:
        parts = [_matches(form.opener), _matches(form.head), _bodies(form), _matches(form.tail), _matches(form.closer)]
        plain = [part[0] for part in parts]
        texts = [
            "".join([*plain[:number], variant, *plain[number + 1 :]])
            for number, part in enumerate(parts)
            for variant in part
        ]
        yield where, list(dict.fromkeys(texts))
    if row.writing is not None:
        yield f"dialect {row.name}: writing", [written([call], row) for call in _CALLS]


def section_text(row: Dialect) -> str:
    """Return the text of two calls that the templates write as one marker, "" where each of them is one."""
    writing = row.writing
    if writing is None or not writing.opener:
        return ""
    text, form = written(_CALLS, row), row.forms[writing.form]
    first, second = parse(text, dialects=row, contexts=EVERYWHERE, tolerance="strict").calls
    between = re.compile(expand(form.separator) or f"[{BLANKS}]*+").match(text, first.span.end)
    return text if form.opener and between is not None and between.end() == second.span.start else ""


def _matches(pattern: str) -> list[str]:
    """Return some texts that a pattern matches, "" where there is none."""
    compiled = re.compile(expand(pattern))
    found = [compiled.match(text) for text in _samples(tree(expand(pattern)))]
    return [*dict.fromkeys(match[0] for match in found if match is not None)] or [""]


def _bodies(form: Form) -> list[str]:
    """Return some arguments in the body language of a form."""
    match form.body:
        case "json":
            return ['{"a": 1}', "{}"]
        case "envelope":
            key, other = form.name_keys[0], form.arguments_keys[0]
            return [f'{{"{key}": "look", "{other}": {{"a": 1}}}}', f'{{"{other}": {{}}, "{key}": "look"}}']
        case "arguments":
            return ['{"a": 1})', "a=1)", ")"]
        case "braces":
            return [f"{{a:{form.quote}b{form.quote},c:1}}", "{}", f"{{{form.quote}a{form.quote}:1}}"]
        case _:
            return _parameters(form)


def _parameters(form: Form) -> list[str]:
    """Return some arguments of a form whose body is `parameters`: tags and values."""
    pattern = re.compile(expand(form.parameter))
    begins, ends = _matches(form.parameter), _matches(form.value_end)
    first = pattern.match(begins[0])
    if first is None or "key" not in pattern.groupindex:
        return [f"{begin}{{}}{ends[0]}" for begin in begins]
    other = begins[0][: first.start("key")] + "b" + begins[0][first.end("key") :]
    begun = _matches(derived.parameter_begun(form))[0]  # elsewhere an end may be data
    values = ["1", "", f"a < b {ends[0]} {{c}}", f"1{ends[0]}{begun}", "\n"]
    return [
        *(f"{begin}1{end}" for begin in begins for end in ends),
        *(f"{begin}{value}{ends[0]}" for begin in (begins[0], f"{begins[0]}1{ends[0]}{other}") for value in values),
        "",
    ]


def _parts(part: object) -> list[str]:
    """Return the patterns that a part of `Patterns` consists of, each of which may be waited for by itself."""
    match part:
        case Pattern():
            return [part.text]
        case Stop():
            return [*part.alternatives]
        case list():
            return [text for item in part for text in _parts(item)]
    return []


def _patterns(form: Form) -> Iterator[tuple[str, str]]:
    for field in ("head", "tail", "opener", "closer", "parameter", "loose_value_end", "loose_tail"):
        pattern = getattr(form, field)
        if field == "closer" and pattern.endswith(")?"):  # what is optional there is waited for: with it, and without
            yield field, merged_ways([list(tree(expand(pattern)))[:-1]])
            pattern = pattern.removesuffix("?")
        if pattern:
            yield field, expand(pattern)
    if form.separator:  # a call stands behind it
        yield "separator", expand(form.separator) + f"(?={anonymous(form.head)})"
    for field in ("loose_heads", "loose_openers", "loose_parameters"):
        for number, pattern in enumerate(getattr(form, field)):
            yield f"{field}[{number}]", expand(pattern)


def _check_end(where: str, pattern: str, behind: str = "") -> None:
    """Check that a pattern matches, and that no more text changes what it does; `behind` may be what follows it."""
    compiled = re.compile(pattern)
    samples = _samples(tree(pattern))
    endless = re.compile(_UP_TO.sub(r"{\1,}+", pattern))  # behind the most that a repeat may take, more is left by luck
    refused = not any(map(endless.match, samples))
    giving = re.compile(_PATIENT.sub(r"\1", pattern)) if refused else compiled
    for text in samples if refused else ():
        if giving.match(text):
            raise AssertionError(
                f"{where}: expected a pattern that matches, found one that refuses {text!r}, as what it repeats "
                f"without giving back takes what should stand behind it; {{name}} takes `.`, `/`, `:` and `-` too, "
                "{key} all but `<`, `>` and line breaks, a group of your own, as `(?P<key>[a-z_]{1,64}+)`, less"
            )
    found = _changed_by_more(pattern)
    if found is not None:
        sound = behind and _changed_by_more(pattern + expand(behind)) is None
        hint = f"`{behind}` at its end says" if sound else "leave out what may be missing, or let a look-ahead say"
        raise AssertionError(
            f"{where}: expected a pattern that ends in something that must be there, found one whose match in "
            f"{found}; {hint} what must follow"
        )


def _changed_by_more(pattern: str) -> str | None:
    """Return what a pattern matches in a text, and what once more has come, in words; None where that is the same."""
    compiled = re.compile(pattern)
    texts = [text for text in _samples(tree(pattern)) if compiled.match(text)]
    endings = sorted({char for text in [pattern, *texts] for char in text} | set(_ANY)) + texts
    for text in texts:
        for before, after in _growing(text, endings):
            first = compiled.match(before)
            then = compiled.match(after)
            if first is not None and (then is None or then.end() != first.end()):
                found = repr(then[0]) if then is not None else "none"
                return f"{before!r} is {first[0]!r} and in {after!r} is {found}"
    return None


def _behind(form: Form, field: str, pattern: str) -> str:
    """Return a look-ahead to what stands behind a head or an opener of a form, "" where that cannot be told."""
    if field.startswith(("opener", "loose_opener")):
        nexts = [form.head]
    elif not field.startswith(("head", "loose_head")) or form.body == "arguments":
        return ""
    elif form.body != "parameters":
        return BRACE
    else:
        nexts = [form.parameter, form.tail]
    blanks = "{ws}" if any(it.startswith("{ws}") for it in nexts) and not pattern.endswith(expand("{ws}")) else ""
    signs = [_first_signs(it.removeprefix("{ws}")) for it in nexts]
    return f"(?={blanks}[{''.join(sorted(set[str]().union(*signs)))}])" if all(signs) else ""


def _first_signs(pattern: str) -> set[str]:
    """Return the members of a set of what a pattern begins with, none where that cannot be told."""
    return {r"\w"} if pattern.startswith("{name}") else {*map(re.escape, first_characters(expand(pattern)) or ())}


def _check_length(where: str, pattern: str) -> None:
    longest = reach(pattern)
    if longest > HOLD_LIMIT:
        found = "any number; `{1,64}+` bounds a repeat" if longest >= sre.MAXREPEAT else longest
        raise AssertionError(
            f"{where}: expected a pattern that looks at {HOLD_LIMIT} characters at most, found one of {found}"
        )


def reach(pattern: str) -> int:
    """Return how many characters a pattern looks at, at most: those of its look-aheads too."""
    return _widths(tree(pattern))[1]


def _widths(items: Any) -> tuple[int, int]:
    """Return how many characters a parsed pattern matches at most, and how many it looks at."""
    width = looks = 0
    for op, value in items:
        inside = inner(op, value)
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            times = 0
        elif op in REPEATS:
            times = int(value[1])
        else:
            times = int(bool(inside) or op in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY))
        found = [_widths(way) for way in inside] or [(1, 1)]
        widest, furthest = max(one for one, _ in found), max(other for _, other in found)
        if inside:
            looks = max(looks, width + widest * max(times - 1, 0) + furthest)
        width = min(width + widest * times, sre.MAXREPEAT)
    return width, max(width, looks)


def _growing(text: str, endings: list[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of texts, the first of which the second begins with."""
    for size in range(len(text)):
        yield text[:size], text
    for ending in endings:
        yield text, text + ending


_ANY: Final = "aZ_09.-:/<>()[]{}\"'`=,#|& \t\r\n\\éß天（【：，▁｜"
"""Characters of which some are in each set that a pattern of a dialect may name."""


def _samples(items: Any) -> list[str]:
    """Return some texts that a parsed pattern may match: each part in its shortest form, and once in each other."""
    parts = [_variants(op, value) for op, value in items]
    first = [part[0] if part else "" for part in parts]
    texts = ["".join(first), "".join(part[-1] if part else "" for part in parts)]
    for number, part in enumerate(parts):
        texts += ["".join([*first[:number], variant, *first[number + 1 :]]) for variant in part[1:]]
    return texts


def _variants(op: Any, value: Any) -> list[str]:
    """Return some texts that one part of a pattern may match."""
    if op is sre.LITERAL:
        return [chr(value)]
    if op in (sre.IN, sre.NOT_LITERAL, sre.ANY):
        accepted = [char for char in _ANY + _named(op, value) if _accepts(op, value, char)]
        return accepted[:3] + accepted[-1:]
    if op in REPEATS:
        least, most, sub = value
        texts = _samples(sub)
        counts = dict.fromkeys([least, min(least + 1, most), min(least + 3, most), min(most, least + 200)])
        return [texts[0] * count for count in counts] + [text * max(least, 1) for text in texts[1:] if most]
    if op is sre.SUBPATTERN:
        return _samples(value[3])
    if op is sre.ATOMIC_GROUP:
        return _samples(value)
    if op is sre.BRANCH:
        return [text for branch in value[1] for text in _samples(branch)]
    if op is sre.ASSERT:
        return [*_samples(value[1]), ""]
    return [""]  # what must not follow, anchors; and what is not tried: see whether it matches all the same


def _named(op: Any, value: Any) -> str:
    """Return the characters that a set names."""
    if op is not sre.IN:
        return ""
    ranges = [code[0] for kind, code in value if kind is sre.RANGE]
    return "".join(map(chr, [code for kind, code in value if kind is sre.LITERAL] + ranges))


def _accepts(op: Any, value: Any, char: str) -> bool:
    if op is sre.ANY:
        return char != "\n"
    if op is sre.NOT_LITERAL:
        return char != chr(value)
    members = [member for member in value if member[0] is not sre.NEGATE]
    negated = len(members) < len(value)
    return negated != any(_is_member(kind, code, char) for kind, code in members)


def _is_member(kind: Any, code: Any, char: str) -> bool:
    if kind is sre.LITERAL:
        return char == chr(code)
    if kind is sre.RANGE:
        low, high = code
        return bool(low <= ord(char) <= high)
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(code).rpartition("_")[2]]
    return re.match("\\" + (letter.upper() if "_NOT_" in str(code) else letter), char) is not None


def _check_begins(where: str, form: Form) -> None:
    found = beginnings(form)
    if found != set(form.begins):
        raise AssertionError(f"{where}.begins: expected {in_words(found)}, found {form.begins!r}")


def _check_values(where: str, form: Form) -> None:
    """Check that what ends values, or breaks them, is found in any of them, and ends where it does however it comes."""
    if form.body != "parameters":
        return
    fields = ("value_end", "loose_value_end", "nested", "unclosed")
    ends = [(field, getattr(form, field)) for field in fields] + [("broken_by", text) for text in form.broken_by]
    for field, pattern in ends:
        more = all_begins(expand(pattern)) - begins(expand(pattern)) if pattern else None
        if more:
            raise AssertionError(
                f"{where}.{field}: expected a pattern that begins with characters which it names, found one that may "
                f"begin with {min(more)!r}: {pattern!r:.80}"
            )
    for pattern in derived.value_ends(form):
        _check_end(f"{where}.value_end, with what must follow it", anonymous(pattern))


def _check_parameter(where: str, form: Form) -> None:
    if form.body != "parameters":
        return
    tail, parameter = re.compile(expand(form.tail)), re.compile(expand(form.parameter))
    ambiguous = next(filter(tail.match, _matches(form.parameter)), None)
    if ambiguous is not None:
        raise AssertionError(
            f"{where}.parameter: expected what the tail does not match, as either would be read, found {ambiguous!r}"
        )
    for text in _matches(form.tail):
        begun = parameter.match(text)
        if begun is not None and begun.end() < len(text):
            raise AssertionError(
                f"{where}.tail: expected what begins with no parameter, which would be read before the rest has come, "
                f"found {text!r}"
            )


def _check_blanks(where: str, form: Form) -> None:
    """Check that no white space ends a marker: `neutralize` sets texts apart with some, and what was cut would call."""
    ending = "with which `neutralize` sets texts apart, so that a call which was cut there is one before any of them"
    for field in ("tail", "loose_tail"):
        pattern = getattr(form, field)
        ended = re.compile(expand(pattern)).match
        blank = next(filter(ended, (*_WHITE_SPACE, *_SET_APART)), None) if pattern else None
        if blank is not None:
            hint = "leave it out, as the arguments end by themselves"
            if form.body == "parameters":
                hint = "what its line's end alone closes has no row"
            raise AssertionError(
                f"{where}.{field}: expected a pattern that holds a sign, found one that matches {blank!r} alone, "
                f"{ending}; {hint}"
            )
    heads = [("head", form.head), *((f"loose_heads[{at}]", head) for at, head in enumerate(form.loose_heads))]
    for field, pattern in heads:
        compiled = re.compile(expand(pattern))
        begun = compiled.match
        if form.body == "parameters" and "empty" not in compiled.groupindex:
            continue  # so many blanks stand before no parameter
        for text in map(str.rstrip, _matches(pattern)):
            if not begun(text) and any(begun(text + blanks) for blanks in _SET_APART):
                raise AssertionError(
                    f"{where}.{field}: expected a pattern that no line break completes, found one that matches "
                    f"{text!r} before one, {ending}"
                )
