"""What a marker may begin with, as the patterns of a dialect's row say: its entries, alone and in a section.

Which of them stand where is for `scanner` to find; what a row says of its beginnings is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, Literal

from msgspec.structs import replace

from callmark.dialects import Dialect, Form
from callmark.dialects.derived import CLOSING_TAG, NAMELESS
from callmark.dialects.notation import BLANKS, anonymous, compile_pattern, expand, respelled
from callmark.dialects.prefixes import first_characters
from callmark.errors import DialectError
from callmark.events import Repair, Span
from callmark.reading.matching import Pattern, begins
from callmark.reading.patterns import Patterns, Section, patterns

_TAG_FOLLOWS: Final = f"{BLANKS}<[", r"{ws}(?:[<\[]|\Z)"
_BRACE_FOLLOWS: Final = f"{BLANKS}<[}}", r"\}|{ws}(?:[<\[]|\Z)"
_BRACKET_FOLLOWS: Final = ")", r"\)|\Z"


class Stray:
    """What may stand once too often behind a call: its `pattern`, with the group `stray`.

    begins      the characters with which that begins, or blanks before it
    may_follow  matches where it may stand, or the text ends: this is asked behind every call, and `pattern` is long
    """

    __slots__ = ("begins", "may_follow", "pattern")

    def __init__(self, pattern: str, begins: str, may_follow: str) -> None:
        self.pattern = Pattern(expand(pattern))
        self.begins = begins
        self.may_follow: Callable[..., re.Match[str] | None] = re.compile(expand(may_follow)).match


@lru_cache(maxsize=1024)
def stray(dialect: Dialect, form: Form) -> Stray | None:
    """Return what may stand once too often behind a call of `form`, or behind its section, None for nothing.

    That is a closing tag, the dialect's own or one that models confuse with it, and directly behind JSON that ends a
    marker a brace; in a dialect without tags both brackets of `name(...)]`, directly behind: one alone may be that of a
    text around the call.
    """
    ends = [end.removeprefix("{ws}") for one in dialect.forms for end in (one.tail, one.closer) if end]
    tags = [respelled(end) or end for end in dict.fromkeys(ends) if end.startswith("<") and "(?=" not in end]
    if not tags and all(one.body == "arguments" for one in dialect.forms):
        brackets = [rf"\){one.tail}" for one in dialect.forms if one.tail.endswith(r"\]")]
        return Stray(f"(?P<stray>{'|'.join(brackets)})", *_BRACKET_FOLLOWS) if brackets else None
    closing = "|".join(map(anonymous, [*tags, CLOSING_TAG]))
    if form.body in ("json", "envelope") and not form.tail and not form.closer:
        return Stray(rf"(?:(?=\}})|{{ws}}(?!\}}))(?P<stray>\}}|{closing})", *_BRACE_FOLLOWS)
    return Stray(f"{{ws}}(?P<stray>{closing})", *_TAG_FOLLOWS)


class Entry:
    """A pattern with which something begins, and which groups it has.

    kind      "opener" of a section; "head" of a call; "loose", a head that is a repair; "refused", one without a name,
              or behind which no arguments stand; "tag" of reasoning or markup; "quoting", a tag of HTML around code
    section   what an opener opens
    stray     what may stand once too often behind what it begins
    guess     of a head, the literal that most likely ends its marker, `closing` characters long; "" for none
    decoded   whether its arguments may be a JSON object, which a decoder reads up to the guess
    simple    whether between head and `guess` there may be a JSON object and nothing else
    anew      whether behind its call, which ends by itself, another may begin as at the beginning of a line
    lined     whether a line that begins so as the row's `lines` say is looked for in its arguments from the first on
    special   whether it is no marker, or one only where a line or the text begins, or with the name of a given tool
    """

    def __init__(
        self,
        kind: Literal["opener", "head", "loose", "refused", "tag", "quoting"],
        pattern: Pattern,
        dialect: Dialect,
        patterns: Patterns,
        section: Section | None = None,
    ) -> None:
        self.kind: Final = kind
        self.pattern: Final = pattern
        self.dialect: Final = dialect
        self.name: Final = dialect.name
        self.form: Final = patterns.form
        self.patterns: Final = patterns
        self.section: Final = section
        self.stray: Final = stray(dialect, patterns.form)
        text = pattern.text
        self.has_name: Final = "(?P<name>" in text
        self.lacks_name: Final = NAMELESS in text
        self.has_id: Final = "(?P<id>" in text
        self.has_nonce: Final = "(?P<nonce>" in text
        self.has_empty: Final = "(?P<empty>" in text
        self.guess: Final = patterns.guess if kind == "head" else ""
        self.decoded: Final = patterns.form.body != "parameters"
        self.simple: Final = patterns.form.body in ("json", "arguments") and bool(self.guess)
        self.closing: Final = len(self.guess)
        self.line_start: Final = patterns.form.line_start
        self.lined: Final = bool(dialect.lines and patterns.form.repairs) and self.line_start
        self.salvage: Final = patterns.form.salvage
        self.text_start: Final = patterns.form.text_start
        bare = self.line_start or not patterns.form.explicit  # the second leads from one bare call to the next
        self.anew: Final = bare and patterns.tail is None and patterns.form.alone
        self.special: Final = kind in ("tag", "quoting") or self.line_start or self.text_start or self.salvage

    def __deepcopy__(self, memo: object) -> Entry:
        """Entries never change, and are told apart by identity: a copied parser has those of its plan."""
        return self

    def repairs(self, found: re.Match[str], base: int) -> tuple[Repair, ...]:
        """Return what was repaired in a loose head, which was found in a buffer whose first position is `base`."""
        head = Span(base + found.start(), base + found.end())
        if self.form.repairs:
            before = Span(head.start, head.start)
            codes = [code for code in self.form.repairs if code != "missing-closer"]
            return tuple(Repair(code, before if code == "missing-opener" else head) for code in codes)
        groups = found.groupdict()
        if "told" in groups:
            return ()
        if "missing" in groups:
            place = base + found.start("missing")
            return (Repair("missing-opener", Span(place, place)),)
        if "null" in groups:
            place = base + found.start("empty")
            given = "[]" if found["empty"].startswith("[") else "null"
            return (Repair("null-arguments", Span(place, place + len(given))),)
        if "escaped" in groups:
            first = base + found.start("name")
            places = [first + at for at, char in enumerate(found["name"]) if char == "\\"]
            return tuple(Repair("markdown-escape", Span(place, place + 1)) for place in places)
        return (Repair("full-width-punctuation" if "wide" in groups else "opener-spelling", head),)

    def begins(self) -> str:
        """Return the characters with which its own pattern may begin."""
        text = self.pattern.text
        for char in self.form.begins:
            if text.startswith(re.escape(char)):
                return char
        return self.form.begins


@lru_cache(maxsize=64)
def section_heads(opener: Entry) -> tuple[Entry, ...]:
    """Return what a call may begin with in the section of `opener`, in the order in which it is tried."""
    heads = opener.section.heads if opener.section is not None else ()
    strict = [Entry("loose" if head.form.repairs else "head", head.head, opener.dialect, head) for head in heads]
    loose = [Entry("loose", other, opener.dialect, head) for head in heads for other in head.loose]
    refused = [Entry("refused", other, opener.dialect, head) for head in heads for other in head.refused]
    return (*strict, *loose, *refused)


@lru_cache(maxsize=64)
def further(entry: Entry) -> Entry:
    """Return what another call begins with in the marker of `entry`: its head from the name on, or its body."""
    _, named, rest = entry.form.head.partition("{name}")
    head = named + rest if named else r"(?=\{)"
    # What stands behind a call begins nothing elsewhere: a string may hold it.
    form = replace(entry.form, head=head, loose_heads=(), alone=False, repairs=("missing-opener",))
    compiled = patterns(form)
    return Entry("loose", compiled.head, entry.dialect, compiled)


def tag_form(text: str) -> Form:
    """Return a pattern of `Dialect.tags` as a form, of which only the head matters."""
    signs = "".join(sorted(char for char in begins(expand(text)) if not (char.isalnum() or char.isspace())))
    return Form(head=text, body="envelope", begins=signs or "<")


def lead_form(text: str) -> Form:
    """Return a pattern of `Dialect.leads` as a form: it is looked for at one place, so it may begin as it likes."""
    lead = Form(head=text, body="envelope", text_start=True)
    return replace(lead, begins="".join(sorted(beginnings(lead))))


def check_row(dialect: Dialect) -> None:
    """Raise DialectError where a pattern of a dialect begins with what is not looked for, or does not go with others.

    Each by itself is sound: `select` has looked at them. Cost: milliseconds, so that callmark's own rows are checked by
    its tests, and those of one's own when they are first read.
    """
    for text in dialect.tags:
        if not beginnings(tag_form(text)) <= set(tag_form(text).begins):
            expected = r"expected a pattern that begins with a sign, such as `<` or `\[`"
            raise DialectError(f"dialect {dialect.name}: tags: {expected}, found {text!r:.80}")
    sections: dict[str, tuple[str, Form]] = {}
    for where, form in dialect.placed_forms():
        place, first = sections.setdefault(form.opener, (where, form)) if form.opener else (where, form)
        for field in ("separator", "closer", "loose_openers"):
            wanted, other = getattr(first, field), getattr(form, field)
            if other and wanted != other:  # it would mean nothing
                raise DialectError(
                    f"{where}.{field}: expected {wanted!r:.80}, as {place} has it with this opener, found {other!r:.80}"
                )
        found = beginnings(form)
        if not found <= set(form.begins):
            raise DialectError(f"{where}.begins: expected {in_words(found)}, found {form.begins!r}")
        for part in patterns(form).parts().values():
            if isinstance(part, Pattern):
                compile_pattern(f"{where}, its patterns together", part.text)  # they may name a group twice


@lru_cache(maxsize=64)
def beginnings(form: Form) -> frozenset[str]:
    """Return the characters with which an opener, or a head that stands alone, may begin, loose ones included."""
    texts = [form.opener] * bool(form.opener) + [*form.loose_openers, *((form.head, *form.loose_heads) * form.alone)]
    return frozenset().union(*(all_begins(expand(text)) for text in texts))


def all_begins(text: str) -> frozenset[str]:
    """Return the characters with which a pattern may begin: where it is not plain, the basic plane is tried."""
    first = first_characters(text)
    if first is not None:
        return first
    pattern = Pattern(text)
    plane = map(chr, [*range(0xD800), *range(0xE000, 0x10000)])
    return frozenset(char for char in plane if pattern.match(char) or pattern.may_match(char, 0))


def in_words(characters: frozenset[str]) -> str:
    """Return some of what `beginnings` gives, in words for messages."""
    some = "".join(sorted(characters))
    more = f" and {len(some) - 20} more" if len(some) > 20 else ""
    return f"the characters {some[:20]!r}{more}, with which openers and heads begin"
