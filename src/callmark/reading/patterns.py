"""What the patterns of a form are, compiled: those of its fields, and those that are made of them for its markers, the
values in these, and its sections.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Final

from callmark.dialects import Form, derived
from callmark.dialects.notation import BLANKS, BLANKS_LIMIT, anonymous, expand
from callmark.dialects.prefixes import behind_line_breaks, literals
from callmark.reading.characters import short
from callmark.reading.matching import Pattern, Watched, begins, literal
from callmark.reading.stops import Stop

_NO_CLOSER: Final = r"(?![ \t\r\n]{0,8}+[,:)}\]])"
"""What does not stand behind a bracket that ends a marker: that would be a bracket of its arguments."""
FENCE_RUN: Final = re.compile("`{3,}|~{3,}")
"""The run of a code fence, as a pattern of a row has it."""
LANGUAGE: Final = r"[ \t]{0,16}+[\w+#\-]{1,32}+[ \t]{0,16}+"
"""What a fence names its language with, behind the run that opens it and alone on its line."""
_BRACKET_MARGIN: Final = 9  # blanks, and what is none
_FENCE_MARGIN: Final = 65  # of a language, and what is none
_BODY_FENCE: Final = re.compile(r"(?:[ \t\r\n]|<[^<>]{1,64}+>){0,64}+(?:```|~~~)")
_OBJECT = Pattern(expand(r"{ws}(?=\{)"))
_ENVELOPE = Pattern(
    expand(
        r'{ws}\{{ws}"name"{ws}:{ws}"(?P<name>[^ "\\\x00-\x1f\ud800-\udfff]{1,128}+)"{ws},'
        r'{ws}"(?:arguments|parameters)"{ws}:{ws}(?=\{)'
    )
)
_ENVELOPE_KEYS: Final = frozenset({"name", "arguments", "parameters"})
ENTITY: Final = "&(?:lt|gt|amp|quot|apos|#[0-9]{1,7}+|#x[0-9a-fA-F]{1,6}+);"
"""What XML writes for a character."""
_XML: Final = (r"(?P<cdata><!\[CDATA\[)", f"(?P<entity>{ENTITY})")
_BEGIN: Final = {"json": _OBJECT, "arguments": _OBJECT, "envelope": _ENVELOPE}


def behind_blanks(buffer: str, at: int) -> int:
    """Return the index behind the blanks that stand at an index, BLANKS_LIMIT of them at most."""
    rest = buffer[at : at + BLANKS_LIMIT]
    return at + len(rest) - len(rest.lstrip(BLANKS))


def within_blanks(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return the indexes between which a part of `text` stands without the blanks around it: a long one is not copied.
    """
    while begin < end and text[begin] in BLANKS:
        begin += 1
    while begin < end and text[end - 1] in BLANKS:
        end -= 1
    return begin, end


class ValuePatterns:
    """The patterns of values between tags, of a form whose body is `parameters`.

    whole      whether one value is the whole of the arguments
    value_end  what ends a value, in words; `closing_tag`: literally, "" where it has several spellings
    spaced     whether blanks may stand behind a value
    stop       what in a value may be its end, or the sign that it has none; `stop_xml` also escapes
    meant      which tags behind which a value is over were meant as its closer: those with a group only where the value
               holds no other tag, and those with the group `word` only where that is its key
    stops      finds in a chunk of a value that comes out as a string what does not pass as it is
    between    what stands between two values: what opens the next one, or (group `tail`) the tail
    element    what opens an element in a value; None where values hold none
    inner      as `between`, for the elements of a value, where what ends the value is the tail; `members` the same for
               those of a list
    holds      whether tags may say that a value holds elements (groups `object` and `array`)
    loose_between   what tolerant reading takes between values too; `loose_first` before the first one
    simple     a value of one line (group `value`) in which nothing looks like a stop, up to what ends it, and the tail
               (group `last`) if it is the last one; nothing where a value is more than its text
    typed      whether tags may say what a value is (groups `text` and `json`), loose ones aside
    keyed      whether each value has a key, and that stands in its tag as it is
    """

    def __init__(self, form: Form) -> None:
        """Put the patterns of `form` together."""
        self.form = form
        tail = expand(form.tail)
        parameter = expand(form.parameter)
        nested = anonymous(derived.breaks_values(form))
        self.whole = "(?P<key>" not in parameter
        stop = anonymous(form.value_end)
        self.closing_tag = literal(form.value_end)
        self.value_end = f'"{self.closing_tag}"' if self.closing_tag else "the end of a value"
        self.spaced = form.tail.startswith("{ws}") or form.parameter.startswith("{ws}")
        self.between = Pattern(f"(?P<tail>(?={anonymous(tail)}))|{parameter}")
        self.element = Pattern(parameter) if form.item else None
        ended = f"(?P<tail>{expand('{ws}')}{stop})"
        self.inner = Pattern(f"{ended}|{parameter}")
        self.members = Pattern(f"{ended}|{expand(form.member)}") if form.member else self.inner
        self.holds = bool(form.member)
        ends = derived.value_ends(form)
        if form.loose_value_end:
            ends.append(f"(?P<wrong>{anonymous(form.loose_value_end)})")
        any_tag, meant = derived.misspelt_end(form) if not self.whole else ("", "")
        self.meant = Pattern(meant)
        if any_tag:
            ends.append(f"(?P<other>{anonymous(any_tag)})")
        rest = [f"(?P<nested>{nested})"]
        if form.unclosed:
            rest.append(f"(?P<unclosed>{anonymous(form.unclosed)})")
        inside = "|".join(map(anonymous, rest))
        if form.broken_by:
            rest.append(f"(?P<broken>{'|'.join(map(anonymous, form.broken_by))})")
        foreign = derived.foreign(form)
        astray = derived.astray(form)
        data = [f"(?P<astray>{astray})"] if astray else []
        data += [f"(?P<kept>{stop})", *([f"(?P<foreign>{foreign})"] if foreign else [])]
        rest.append("|".join(data))
        escapes = _XML if form.encoding == "xml" else ()
        signs = set[str]().union(*map(begins, (*ends, *escapes, *rest)))
        behind = [behind_line_breaks([text]) for text in (*ends, *rest[:-1])]
        plain = all(chars is not None and chars <= {*signs, "\n"} for chars in behind)  # a line holds none of them
        self._closed = closed = "".join(map(re.escape, sorted(signs)))
        looked_at = rf'[{closed}"\\\x00-\x1f\ud800-\udfff]'
        self.stops = short(looked_at, re.compile(looked_at).search, looked_at)
        following = derived.next_marker(form)
        tails = [f"(?P<tail>(?={expand(tail)}))" for tail in (derived.other_tail(form), following) if tail]
        parts = [Pattern(text) for text in (*map(expand, form.loose_parameters), *tails)]
        self.loose_first = parts[:-1] if following else parts
        self.loose_between = parts
        self.stop = Stop([*ends, *rest], closed)
        self.stop_xml = Stop([*ends, *_XML, *rest], closed)
        lines = (r"(?P<line>\r?\n)?+", rf"(?(line)(?:(?!{inside})\r?\n)?+)") if form.trim else ("", "")
        value = rf"(?P<value>[^{closed}\r\n]{{0,1024}}+)"
        simple = f"(?!{anonymous(tail)}){parameter}{lines[0]}{value}{lines[1]}{stop}(?P<last>{anonymous(tail)})?+"
        self.simple = Pattern(simple if plain and not (escapes or self.whole) else "(?!)")
        self.typed = re.search(r"\(\?P<(?:text|json)>", parameter + form.member) is not None
        self.keyed = not form.member and form.key_encoding == "raw"

    @cached_property
    def breaks(self) -> Callable[..., object]:
        """As `stops`, for a value that is held: a line break in it matters only where it may belong to its end."""
        followed = behind_line_breaks(self.stop.alternatives)
        ends = "" if followed is None else rf"(?=[\r\n{''.join(map(re.escape, sorted(followed)))}]|\Z)|(?<![\r\n])"
        looked_at = rf"[{self._closed}\r\n\ud800-\udfff]"
        return short(looked_at, re.compile(f"{looked_at}(?:{ends})").search, rf"(?![\r\n])[{self._closed}]")


class Patterns:
    """The patterns of one form. Those of its fields have the names of these: `head`, `tail`, `opener`, `loose_openers`.

    loose      the heads that tolerant reading takes beside `head`
    refused    heads without a name, or behind which something else stands than arguments: a call begins there, and is
               wrong; `refused_alone`: those of a call that stands in no section
    begin      what leads to arguments that are a JSON object (group `name`: that of an envelope); None where none does
    blanks     how many blanks may stand before the tail
    guess      the literal that most likely closes a marker, "" where none is fixed
    recovery   where a broken marker may end: the first of these that is found; of a bracket there are two, of which
               the first has a look at what follows; of a tail with a fence the second is its end, and where a fence
               with a language begins, it ends before that
    margin     how many characters behind such an end tell whether it is one
    other_fence   what opens another fence, with a language, where nothing but a fence's run ends the marker; else None
    closing    what closes a marker behind its arguments, the brackets of the body included; None for nothing; `closer`:
               the text that it is without blanks, "" where it is not one
    behind     what must not follow where nothing closes it; None for nothing
    tail_tags  where the tail is several texts with blanks before each, these texts; else none
    bracketed  whether it begins with such a bracket
    fenced     whether a code fence is a part of the marker
    """

    def __init__(self, form: Form) -> None:
        """Put the patterns of `form` together."""
        self.form = form
        head, tail = expand(form.head), expand(form.tail)
        self.head = Pattern(head)
        self.loose = tuple(Pattern(expand(text)) for text in derived.tolerated_heads(form))
        around = (form.head, form.tail, form.parameter, form.value_end, *form.loose_heads, *form.loose_parameters)
        self.fenced = any(map(FENCE_RUN.search, around))
        self.refused, self.refused_alone = (
            tuple(Pattern(expand(text)) for text in (*derived.refused_heads(form), *nameless))
            for nameless in (derived.nameless_heads(form, alone=False), derived.nameless_heads(form, alone=True))
        )
        self.loose_openers = tuple(Pattern(expand(text)) for text in form.loose_openers)
        self.tail = Pattern(tail) if tail else None
        self.behind = Pattern(expand(form.behind)) if form.behind else None
        first, *tags = form.tail.split("{ws}")
        words = tuple(map(literal, tags))
        last = words[-1:]
        apart = all(words) and not any(word.startswith(last) for word in words[:-1])  # what is the last is certain
        self.tail_tags = words if len(words) > 1 and not first and apart else ()
        recovery = [anonymous(tail)] if tail and "(?=" not in tail else []
        blanks = expand("{ws}")
        if self.tail_tags:  # of a broken marker, the last alone is its end
            recovery = ["".join(f"(?:{blanks}{tag})?" for tag in tags[:-1]) + blanks + tags[-1]]
        self.margin = 0
        self.other_fence: Pattern | None = None
        if recovery and re.search(r"\\[)}\]]\Z", tail):
            recovery.insert(0, recovery[0] + _NO_CLOSER)
            self.margin = _BRACKET_MARGIN
        fence = FENCE_RUN.search(tail)
        if recovery and fence is not None:  # one that is left open would hide what follows
            if tail == blanks + fence[0]:
                other = rf"{fence[0]}{LANGUAGE}[\r\n]"
                self.other_fence = Pattern(other)
                recovery[0] = f"(?={blanks}{other})|{recovery[0]}"
            recovery.append(blanks + rf"{fence[0]}(?=[ \t]{{0,16}}+\r?\n)")
            self.margin = _BRACKET_MARGIN if self.other_fence is None else _FENCE_MARGIN
        self.recovery = [Pattern(text) for text in recovery]
        self.opener = Pattern(expand(form.opener)) if form.opener else None
        plain_tail = form.tail.removeprefix("{ws}")
        self.blanks = BLANKS_LIMIT if form.tail != plain_tail else 0
        self.guess = literal(plain_tail)
        if form.body == "arguments" and (self.guess or not tail):
            self.guess = ")" + self.guess
        self.begin = _BEGIN.get(form.body)
        if form.body == "envelope" and not {*form.name_keys, *form.arguments_keys} >= _ENVELOPE_KEYS:
            self.begin = None
        bracket = {"arguments": ")", "envelope": "}"}.get(form.body, "")
        close = rf"[ \t\r\n]*+\{bracket}" if bracket else ""
        self.bracketed = bool(bracket)
        self.closing = Pattern(close + tail) if close or tail else None
        self.closer = bracket + literal(plain_tail) if not tail or literal(plain_tail) else ""

    @cached_property
    def values(self) -> ValuePatterns | None:
        """Those of values between tags; None where the body is another. Made late: all forms' cost 50 ms."""
        return ValuePatterns(self.form) if self.form.body == "parameters" else None

    @cached_property
    def tail_begins(self) -> bool:
        """Whether the tail, if it is more than a look-ahead, may be what the next marker begins with."""
        tail, head = expand(self.form.tail.removeprefix("{ws}")), self.head.text
        if not tail or tail.startswith("(?="):
            return False
        tails, heads = literals(tail), literals(head)
        return any(it.startswith(begin) or begin.startswith(it) for it in tails for begin in heads)

    @cached_property
    def other_end(self) -> Pattern | None:
        """What ends a broken marker in place of the tail, where it stands directly behind it: tags of the marker's own
        that stand before its last, a neighbour's closer that closes no section, or both; None for no such.
        """
        form, values = self.form, self.values
        if not form.tail.startswith("{ws}</") or not (values is None or values.whole):
            return None
        tags = [*self.tail_tags[:-1], *([values.closing_tag] if values is not None else [])]
        own = f"(?:{{ws}}(?:{'|'.join(map(re.escape, tags))})){{1,{len(tags)}}}+" if tags else "(?!)"
        other = f"{{ws}}{f'(?!{anonymous(form.closer)})' if form.closer else ''}(?:{derived.CLOSING_TAG})"
        return Pattern(expand(f"{own}(?:{other})?+|{other}"))

    def swallowed(self, raw: str) -> int:
        """Return the index in a broken marker without a closer behind which it may hold text that is none of its own:
        behind its head, unless what follows may be a fence of the marker's.
        """
        head = self._head_of(raw)
        raw_values = self.values is not None and not self.values.whole
        if head is None or self.fenced or not (raw_values or _BODY_FENCE.match(raw, head.end()) is None):
            return len(raw)
        return head.end()

    def open_fence(self, raw: str) -> str:
        """Return the run of the fence that is a part of a broken marker, begun in it and not closed; "" for none."""
        head = self._head_of(raw)
        if head is None or self.values is not None:
            return ""
        begun = FENCE_RUN.search(raw, 0, head.end()) or _BODY_FENCE.match(raw, head.end())
        if begun is None:
            return ""
        run = begun[0][-3:]
        closed = re.compile(rf"[\r\n}}\]][ \t]*+{run}").search(raw, begun.end())
        return run if closed is None else ""

    def _head_of(self, raw: str) -> re.Match[str] | None:
        return next((found for way in (self.head, *self.loose) if (found := way.match(raw)) is not None), None)

    def parts(self) -> dict[str, object]:
        """Return all of them by their names, those of values included."""
        late = {"other_end": self.other_end}  # not there before it is first used
        return vars(self) | late | (vars(self.values) if self.values is not None else {})


class Section:
    """What may stand in a section: the heads of the dialect's forms that share its opener, and what is between them.

    `next` matches what leads to the next call (group `next`) or ends the section (group `closer`); `loose` what
    tolerant reading takes besides: the next head in other spelling, closers or a separator too many (before the end
    it is the group `separator`), or (group `joined`) none, or another sign;
    `closes` whether anything closes it: else what may be a call that only a mended separator leads to may be text;
    `goes_on` whether a closer that is there may have more to it;
    `bracket` the bracket of a list whose closer has more to it, which does not follow, None where there is none;
    `between` what leads to the next call of a list, "" where they stand in none;
    `mended` what must stand behind a call whose end was mended: behind a bracket that closes the list nothing of it;
    `mended_last` the same where no more text comes;
    `resume` what leads from a broken call to the next where a separator stands between them, or to the end of a list
    that more than its bracket closes, or to the next list; None for no separator.
    `again` the head of a call behind a broken one, where it does not begin a line as it would have to if it stood
    alone, or never does; None where all may stand alone anywhere. `within` those that never do, behind which a tail is
    not that of the call before.
    `of_brackets`: that more is brackets, too, of which any number may stand before.
    """

    def __init__(self, forms: tuple[Form, ...]) -> None:
        """Compile the patterns of `forms`, which share opener, separator and closer."""
        first = forms[0]
        blanks = expand("{ws}")
        closer = expand(first.closer) or "(?!)"
        self.heads = tuple(patterns(form) for form in forms)
        self.separated = bool(first.separator)
        self.closes = bool(first.closer)
        listed = re.match(r"(?:\{ws\})?\\\](?!\Z|\(\?:)", first.closer)
        self.of_brackets = listed is not None and not first.closer.replace("{ws}", "").replace("\\", "").strip("])}")
        opens_end = closer.endswith(")?")
        self.goes_on = opens_end or self.of_brackets
        self.bracket = Pattern(rf"{blanks}\]") if listed else None
        between = expand(first.separator) if first.separator else blanks
        heads = "|".join(anonymous(head.head.text) for head in self.heads)
        refused = "".join(f"|{anonymous(other.text)}" for head in self.heads for other in head.refused)
        self.next = Pattern(f"(?P<closer>{blanks}(?:{closer}))|(?P<next>{between}(?={heads}{refused}))")
        others = "|".join(anonymous(loose.text) for head in self.heads for loose in head.loose)
        ways = [f"(?P<next>{between}(?={others}))"] if others else []
        ends_itself = not first.tail
        line = between if self.separated else rf"[ \t]{{0,16}}+\r?\n{blanks}"
        brackets = r"[)}\]]{1,8}"
        if self.separated or ends_itself:
            unlisted = f"|{blanks}(?:{expand(first.closer[listed.end() :])})" if listed else ""
            extra = f"(?:(?P<separator>{between})|{brackets})" if self.separated else brackets
            twice = between + between if self.separated else f"{blanks}[,;]{blanks}"
            other_list = rf"|{blanks}\]{blanks},?{blanks}\[{blanks}" if listed else ""
            ways += [
                f"(?P<closer>{extra}{blanks}(?:{closer}){unlisted})",
                *([f"(?P<joined>{blanks}(?:[;；，、]{blanks})?(?={heads}))"] if self.separated else []),
                f"(?P<doubled>{twice}(?={heads}))|(?P<closed>(?:{brackets}{line}{other_list})(?={heads}))",
            ]
        else:
            ways.append("(?P<closer>(?!))")
        self.loose = Pattern("|".join(ways))
        another = f"{between}(?={heads})"
        self.between = another if self.separated else ""
        members = r"[,:=)\]}，：＝）］】｝]"
        bracket = opens_end or first.closer.endswith(r"\]")
        no_more = rf"(?={blanks}(?!{members})(?s:.))" if bracket else ""  # or more blanks than are looked at
        self.mended = Pattern(f"{blanks}(?:{closer}){no_more}|{another}")
        no_more = rf"(?!{blanks}{members})" if bracket else ""
        self.mended_last = Pattern(f"{blanks}(?:{closer}){no_more}|{another}")
        gap = r"[ \t\r\n]{0,16}+"  # so that it is no longer than what leads to the next call of a list
        ends = rf"|{blanks}(?:{closer})|{gap}\]{gap},?{gap}\[{gap}(?:{heads})" if listed else ""
        self.resume = Pattern(f"{brackets}(?={line}(?:{heads}){ends})") if self.separated else None
        own = [] if self.separated else [form for form in forms if form.tail and not form.alone]
        inner = [anonymous(patterns(form).head.text) for form in own]
        lined = [anonymous(patterns(form).head.text) for form in forms if form.alone and form.line_start]
        self.within = Watched(Pattern("|".join(inner))) if inner else None
        self.again = Pattern(f"(?P<next>(?={'|'.join([*inner, *lined])}))") if inner or lined else None
        self._next_line = f"(?={line}(?:{heads}))" if ends_itself and not self.separated else ""
        self._behind: dict[int, Pattern] = {}

    def resume_behind(self, closers: int) -> Pattern | None:
        """Return what leads on to the next line of calls, behind so many closers at least; None for no such lines."""
        if not self._next_line or not closers:
            return None
        if closers not in self._behind:
            self._behind[closers] = Pattern(
                rf"[)}}\]](?:[ \t\r\n]{{0,8}}+[)}}\]]){{{closers - 1},7}}+{self._next_line}"
            )
        return self._behind[closers]


@lru_cache(maxsize=1024)
def section(forms: tuple[Form, ...]) -> Section:
    """Return the compiled patterns of a section; compiled once."""
    return Section(forms)


@lru_cache(maxsize=1024)
def patterns(form: Form) -> Patterns:
    """Return the compiled patterns of `form`; compiled once."""
    return Patterns(form)
