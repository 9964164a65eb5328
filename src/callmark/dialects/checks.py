"""What a row of one's own is refused for: what could raise, hang, depend on how a text was cut, or mean nothing.

Every message names the dialect, the form, the field, what is expected and what was found.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from callmark.dialects.backtracking import has_many_ways
from callmark.dialects.derived import NAMELESS
from callmark.dialects.model import KEYS_ASIDE, Body, Dialect, Form
from callmark.dialects.notation import ABBREVIATIONS, OBJECT, compile_pattern, expand, is_alternatives
from callmark.dialects.parsed import ANCHORS, REFERENCES, least_held, looks_outside, may_hold, uses
from callmark.dialects.thoughts import TAG_GROUPS
from callmark.errors import DialectError, refusal
from callmark.events import REPAIR_CODES

_ASKED: Final = {
    "head": ("name", "id"), "loose_heads": ("name", "id", "missing", "nameless"),
    "parameter": ("key",), "loose_parameters": ("key", "missing", "unclosed"),
}  # fmt: skip
"""Groups of which reading takes what they hold, by field."""
_HALVES: Final = "".join(map(chr, range(0xD800, 0xE000)))
_BODIES: Final[dict[str, tuple[Body, ...]]] = {
    **dict.fromkeys(("parameter", "loose_parameters", "value_end", "loose_value_end", "nested"), ("parameters",)),
    **dict.fromkeys(("member", "item", "unclosed", "broken_by", "encoding", "key_encoding", "trim"), ("parameters",)),
    **dict.fromkeys(("name_keys", "arguments_keys"), ("envelope",)),
    "quote": ("braces", "arguments"),
}
"""The bodies that a field is for, where these are not all."""
_BESIDE_OTHERS: Final = frozenset({"head", "opener", "separator", "parameter", "value_end", "tail"})
"""Fields whose patterns stand beside others without brackets around them."""
_INDENT_LIMIT: Final = 64  # spaces before a marker: behind more, nothing looks like the beginning of a line


def check(dialect: Dialect) -> None:
    """Raise DialectError for a row that reading or writing could not use, or could only misunderstand."""
    where = f"dialect {dialect.name}"
    try:
        msgspec.convert(msgspec.to_builtins(dialect), Dialect)
    except msgspec.ValidationError as error:
        raise DialectError(f"{where}: {refusal(error, Dialect)}") from error
    for place, form in dialect.placed_forms():
        _check_form(form, place)
    _check_writing(dialect, where)
    for field, pattern in [("tags", tag) for tag in dialect.tags] + [("leads", tag) for tag in dialect.leads]:
        _check_place(f"{where}: {field}", pattern)
        _check_whole(f"{where}: {field}", pattern)
        others = [name for name in re.compile(expand(pattern)).groupindex if name not in TAG_GROUPS]
        if others:
            expected = f"expected no groups but {', '.join(TAG_GROUPS)}, found `{others[0]}`"
            raise DialectError(f"{where}: {field}: {expected}: {pattern!r:.80}")
    for pattern in dialect.results:
        _check_pattern(f"{where}: results", pattern)
        _check_whole(f"{where}: results", pattern)
        _check_matched(f"{where}: results", pattern)
    for pattern in dialect.lines:
        _check_place(f"{where}: lines", pattern)
        _check_whole(f"{where}: lines", pattern)
        _check_matched(f"{where}: lines", pattern)


def _check_form(form: Form, where: str) -> None:
    """Raise DialectError where fields do not go together, or one holds no pattern, or no repair, that can be used.

    `where` tells the form: the message names it, and the field.
    """
    _check_fields(form, where)
    _check_keys(form, where)
    _check_heads(form, where)
    unknown = [code for code in form.repairs if code not in REPAIR_CODES]
    if unknown:
        raise DialectError(f"{where}.repairs: expected codes of `events.REPAIR_CODES`, found {unknown[0]!r:.80}")
    for field in (
        "head", "tail", "opener", "separator", "closer", "parameter", "value_end", "nested", "unclosed", "member",
        "broken_by", "loose_heads", "loose_openers", "loose_parameters", "loose_tail", "loose_value_end",
        "behind",
    ):
        value = getattr(form, field)
        for pattern in [value] if isinstance(value, str) else value:
            _check_place(f"{where}.{field}", pattern)
            if field in _BESIDE_OTHERS:
                _check_whole(f"{where}.{field}", pattern)
            if pattern and field != "separator":  # between calls nothing need stand
                hint = "; a section is over as well where no closer stands" if field == "closer" else ""
                _check_matched(f"{where}.{field}", pattern, hint)
            for group in _ASKED.get(field, ()):
                if group != "name" or form.body != "envelope":  # which has its name in the body
                    _check_group(f"{where}.{field}", pattern, group)


def _check_fields(form: Form, where: str) -> None:
    """Raise DialectError where a field is missing that the others want, or has nothing to say beside them."""
    if not form.begins:
        raise DialectError(f"{where}.begins: expected the characters with which a marker may begin, found none")
    if not form.quote:
        raise DialectError(f"{where}.quote: expected the delimiter of strings, found none")
    for field in ("parameter", "value_end", "tail"):
        if form.body == "parameters" and not getattr(form, field):
            raise DialectError(f"{where}.{field}: expected a pattern, as the body is `parameters`, found none")
    plain = Form(head=form.head, body=form.body)
    if form.body == "arguments" and form.quote != plain.quote and not form.repairs:
        expected = "expected nothing, as the body `arguments` has other quotes in variants only"
        raise DialectError(f"{where}.quote: {expected}, found {form.quote!r:.80}")
    for field, bodies in _BODIES.items():
        found = getattr(form, field)
        if form.body not in bodies and found != getattr(plain, field):
            raise DialectError(f"{where}.{field}: {_not_of('the body', form.body, bodies)}, found {found!r:.80}")
    for field in ("separator", "closer", "loose_openers"):
        found = getattr(form, field)
        if found and not form.opener:
            raise DialectError(f"{where}.{field}: expected nothing, as there is no `opener`, found {found!r:.80}")
    if form.behind and (form.tail or not form.repairs):
        expected = "expected nothing, as the field is for variants without a tail"
        raise DialectError(f"{where}.behind: {expected}, found {form.behind!r:.80}")
    if not 0 <= form.indent <= _INDENT_LIMIT:
        raise DialectError(f"{where}.indent: expected 0 to {_INDENT_LIMIT} spaces, found {form.indent}")
    if form.indent and not form.line_start:
        raise DialectError(f"{where}.indent: expected 0, as `line_start` is false, found {form.indent}")
    keyed = all("{key}" in text or "(?P<key>" in text for text in form.loose_parameters)
    if not keyed and ("{key}" in form.parameter or "(?P<key>" in form.parameter):
        raise DialectError(f"{where}.loose_parameters: expected a group `key`, as `parameter` has, found none")
    if not form.alone and not form.opener:
        raise DialectError(f"{where}.opener: expected a pattern, as calls never stand alone (`alone`), found none")


def _check_keys(form: Form, where: str) -> None:
    """Raise DialectError where a key of an envelope is none, or means two things."""
    taken: set[str] = set()
    for field in ("name_keys", "arguments_keys"):
        keys = getattr(form, field)
        if form.body == "envelope" and not keys:
            raise DialectError(f"{where}.{field}: expected the keys of an envelope, found none")
        odd = [key for key in keys if not key or not key.isprintable() or {*key} & {*"\"'\\"}]
        if odd:
            expected = "expected keys without quotes, backslashes and control characters"
            raise DialectError(f"{where}.{field}: {expected}, found {odd[0]!r:.80}")
        twice = [key for key in keys if key in taken]
        if twice:
            raise DialectError(f"{where}.{field}: expected keys that mean nothing else, found {twice[0]!r:.80}")
        taken.update(keys, KEYS_ASIDE)  # these hold a name where the row says so, and no arguments


def _check_heads(form: Form, where: str) -> None:
    """Raise DialectError where a head has no group for the tool's name though its body holds none, or one though that
    does; where `nameless` cannot stand for it; or where it wants an object that the body does not begin with.
    """
    for field, heads in (("head", (form.head,)), ("loose_heads", form.loose_heads)):
        may_lack = field == "loose_heads" and not form.repairs  # a variant is read only where it is mended
        for head in heads:
            if NAMELESS in head and (not may_lack or "{name}" in head or "(?P<name>" in head):
                expected = "expected a group `nameless` only in `loose_heads` of `forms`, in the place of the name"
                raise DialectError(f"{where}.{field}: {expected}, found {head!r:.80}")
        named = [any(group in head for group in ("{name}", "(?P<name>", NAMELESS)) for head in heads]
        if form.body != "envelope" and not all(named):
            expected = "expected the abbreviation {name} or a group `name`, as it stands before the arguments"
            raise DialectError(f"{where}.{field}: {expected}, found neither")
        if form.body == "envelope" and any(named):
            expected = "expected no name, as an envelope holds it"
            raise DialectError(f"{where}.{field}: {expected}, found {heads[named.index(True)]!r:.80}")
        if form.body not in ("json", "braces") and any(OBJECT in head for head in heads):
            expected = f"expected {OBJECT} only with the body json or braces"
            raise DialectError(f"{where}.{field}: {expected}, found {form.body}")


def _check_writing(dialect: Dialect, where: str) -> None:
    """Raise DialectError where a template has nothing to say beside the form that it is of."""
    writing = dialect.writing
    if writing is None:
        return
    number = writing.form
    form = dialect.forms[number]
    bodies: dict[str, Body] = {"parameter": "parameters", "pairs": "arguments"}
    for field, body in bodies.items():
        found = getattr(writing, field)
        if found and form.body != body:
            told = _not_of(f"the body of forms[{number}]", form.body, (body,))
            raise DialectError(f"{where}: writing.{field}: {told}, found {found!r:.80}")
    template = writing.parameter
    if "(?P<key>" in expand(form.parameter) and not ("{key}" in template and "{value}" in template):
        expected = f"expected places for {{key}} and {{value}}, as `parameter` of forms[{number}] has a group `key`"
        raise DialectError(f"{where}: writing.parameter: {expected}, found {template!r:.80}")
    if writing.nonce and "(?P<nonce>" not in form.head:
        expected = f"expected nothing, as the head of forms[{number}] has no group `nonce`"
        raise DialectError(f"{where}: writing.nonce: {expected}, found {writing.nonce!r:.80}")
    if ("{nonce}" in writing.call + writing.default_id) != bool(writing.nonce):
        expected = "expected {nonce} where `writing.nonce` has a template for it, and nowhere else"
        raise DialectError(f"{where}: writing.call: {expected}, found {writing.call!r:.80}")
    if ("{id}" in writing.call) != bool(writing.id or writing.default_id):
        expected = "expected {id} where `writing.id` or `writing.default_id` has a template for it, and nowhere else"
        raise DialectError(f"{where}: writing.call: {expected}, found {writing.call!r:.80}")


def _check_pattern(field: str, pattern: str) -> None:
    """Raise DialectError, which names the field, where a pattern does not compile, can be no part of another one, or
    may take forever.
    """
    unknown = re.search(r"(?<!\\)\{[A-Za-z]+\}", expand(pattern))
    if unknown:
        raise DialectError(f"{field}: expected {', '.join(ABBREVIATIONS)}, found {unknown[0]}")
    if compile_pattern(field, expand(pattern)).flags & ~re.UNICODE:
        raise DialectError(f"{field}: expected flags of a part, as `(?i:tool)`, found others: {pattern!r:.80}")
    if uses(expand(pattern), REFERENCES):  # its groups lose their names and numbers where it is a part of another one
        raise DialectError(
            f"{field}: expected a pattern without back references and conditions, found {pattern!r:.80}; what has "
            "two kinds of quotes is two forms"
        )
    if has_many_ways(expand(pattern)):
        raise DialectError(
            f"{field}: expected a pattern whose repeats give nothing back, as `(?:[a-z]{{1,8}};?){{1,4}}+`, found one "
            f"that can match a text in so many ways that it may take forever: {pattern!r:.80}"
        )


def _check_whole(field: str, pattern: str) -> None:
    """Raise DialectError, which names the field, where a pattern is alternatives without brackets: a token, perhaps."""
    if is_alternatives(pattern):
        expected = "expected alternatives in brackets, as `(?:a|b)`, since other patterns stand beside it"
        raise DialectError(f"{field}: {expected}, found {pattern!r:.80}; `\\|` is the sign itself")


def _check_matched(field: str, pattern: str, hint: str = "") -> None:
    """Raise DialectError, which names the field, where a pattern matches where nothing is: it would so everywhere."""
    if re.match(expand(pattern), ""):
        expected = "expected a pattern that matches something, found one that matches where nothing is"
        raise DialectError(f"{field}: {expected}: {pattern!r:.80}{hint}")


def _check_place(field: str, pattern: str) -> None:
    """Raise DialectError, which names the field, where a pattern matches in some cuts of a text and not in others, or
    it cannot be told what goes on with it.
    """
    _check_pattern(field, pattern)
    if looks_outside(expand(pattern)):
        raise DialectError(
            f"{field}: expected a pattern that sees nothing before its beginning, nor the end of the text, found "
            f"{pattern!r:.80}; `line_start` is for what begins a line"
        )
    if uses(expand(pattern), ANCHORS):  # what goes on with a text that ends at one depends on that
        raise DialectError(
            f"{field}: expected a pattern without `\\b` and `\\B`, found {pattern!r:.80}; `(?=\\W)` says where a word "
            "ends"
        )


def _check_group(field: str, pattern: str, group: str) -> None:
    """Raise DialectError, which names the field, where a group of a pattern may take no part in a match, though reading
    wants its text, or where it may hold a name or an id that no Call can.
    """
    source = expand(pattern)
    least = least_held(source, group)
    wanted = ""
    if f"(?P<{group}>" in source and group != "id" and least < 0:
        wanted = "that takes part in every match"
    elif group == "name" and least == 0:
        wanted = "that is never empty"
    elif group in ("name", "id") and may_hold(source, group, _HALVES):
        wanted = r"without halves of surrogate pairs, which are no text, as `[^>\ud800-\udfff]`"
    if wanted:
        raise DialectError(f"{field}: expected a group `{group}` {wanted}, found {pattern!r:.80}")


def _not_of(what: str, body: Body, bodies: tuple[Body, ...]) -> str:
    """Say what is expected of a field that is for other bodies than the one that is there."""
    those = " and ".join(f"`{other}`" for other in bodies)
    return f"expected nothing, as {what} is `{body}`, and the field is for {those}"
