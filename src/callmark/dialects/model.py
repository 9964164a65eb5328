"""What a dialect is: a row of data. No code that reads or writes knows the name of any dialect.

A marker is read in three steps, and a `Form` gives the pattern of each: the *head* up to the arguments (with the
tool's name), the *body* (the arguments, in one of five body languages), the *tail* that closes the marker. Several
calls may stand in one *section* with an opener, separators and a closer of its own.

Patterns are regular expressions that match a bounded stretch of text at a known place. These abbreviations stand for
what all dialects share, so that white space and names mean the same everywhere:

    {ws}     up to 64 blanks, tabs and line breaks
    {name}   a tool's name, the group `name`: a letter or `_`, then letters, digits, `_ - . / :`, at most 128
    {key}    a parameter's key, the group `key`: a word of up to 256 characters but `<`, `>` and blanks, which begins
             with no quote, and up to eight more of up to 32 characters
    {object} at the end of a head that no prose can be: an object must follow, which is the arguments. Where something
             else does, the marker is Malformed, not text; but `null` before a tail stands for no arguments
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from callmark.dialects.backtracking import has_many_ways
from callmark.dialects.sources import least_held, looks_outside, may_hold
from callmark.errors import DialectError
from callmark.events import REPAIR_CODES

DEFAULT: Final = "default"
"""Stands among the names of dialects for those, and their forms, that are listened for where none is named."""

Body = Literal["json", "envelope", "arguments", "braces", "parameters"]

_BRACE = r"(?=\{)"  # what stands behind the heads of many forms
_ABBREVIATIONS = {
    "{ws}": r"[ \t\r\n]{0,64}+",
    "{name}": r"(?P<name>[^\W\d][\w.:/\-]{0,127}+)",
    "{object}": _BRACE,
    "{key}": r"(?P<key>[^<>\"' \t\r\n][^<> \t\r\n]{0,255}+(?:[ \t]{1,8}+[^<> \t\r\n]{1,32}+){0,8}+)",
}

QUOTING_TAG: Final = r"<(?:(?P<closes>/)|(?P<opens>))(?P<tag>(?i:pre|code))(?:[ \t][^<>\r\n]{0,128}+)?>"
"""What opens and closes code in HTML, where markers are examples."""

TAG_GROUPS: Final = ("opens", "closes", "answers")
"""What a tag does with thoughts, as a group of its pattern."""

ID_KEYS: Final = frozenset(("id", "tool_call_id"))
"""Keys of an envelope under which the model's own id of a call stands; the second is that of Command R and A."""

_GROUP_NAME = re.compile(r"\(\?P<\w+>")
CLOSING_TAG = (  # of a name that models confuse with others, or in a spelling that nothing else has
    r"</[ \t]{0,4}+(?i:tools?|calls?|func(?:tion)?s?|invoke|(?:tool|function)[ _\-]?(?:calls?|use|response))"
    r"(?:=[\w.:/\-]{1,128}+)?[ \t]{0,4}+>"
    r"|<\\/(?i:tool_calls?)>|</?\|/?(?i:tool_calls?)\|>|\[/(?i:tool_calls?)\]|</(?i:tool_calls?)(?=[ \t]{0,64}+\r?\n)"
)
_VALUE_TAGS = "(?:param(?:eter)?s?|arg_(?:key|value)|value)"  # around a value, in one dialect or another
_VALUE_TAG = f"</{_VALUE_TAGS}>"
_STRAY = r"(?:</(?:arguments|parameters?|json)>|```|[;.])"  # what models write before a closing tag
_STRAY_FENCE = r"```(?=[ \t]{0,64}+\r?\n{ws}(?:[^\s<]|<[^/]))"  # as if the body had been fenced; text on the next lines
_ASKED: Final = {
    "head": ("name", "id"), "loose_heads": ("name", "id", "missing"),
    "parameter": ("key",), "loose_parameters": ("key", "missing", "unclosed"),
}  # fmt: skip
"""Groups of which reading takes what they hold, by field."""
_HALVES: Final = "".join(map(chr, range(0xD800, 0xE000)))
_BODIES: Final[dict[str, tuple[Body, ...]]] = {
    **dict.fromkeys(("parameter", "loose_parameters", "value_end", "loose_value_end", "nested"), ("parameters",)),
    **dict.fromkeys(("member", "item", "unclosed", "broken_by", "encoding", "key_encoding", "trim"), ("parameters",)),
    "quote": ("braces",),
    "name_keys": ("envelope",),
    "arguments_keys": ("envelope", "parameters"),  # a parameter of such a name may hold all arguments
}
"""The bodies of which a field says something, where these are not all."""
_INDENT_LIMIT: Final = 64  # spaces before a marker: behind more, nothing looks like the beginning of a line
_OBJECT = "{object}"
_NO_OBJECT = r"(?=[^ \t\r\n{｛])"  # the second brace is a repair of the first
_IN_STRING = r'(?P<told>)(?="{ws}\{)'
_IN_ANY_STRING = r'(?="(?:[ \t\r\n]|\\(?:[nrt]|u00(?:09|0[aAdD]|20))){0,64}+(?:["{]|\\u007[bB]))'  # or in an empty one


def expand(pattern: str) -> str:
    """Return `pattern` with the abbreviations written out."""
    for short, long in _ABBREVIATIONS.items():
        pattern = pattern.replace(short, long)
    return pattern


def anonymous(pattern: str) -> str:
    """Return `pattern` with the abbreviations written out and its groups without names, to put it into others."""
    return _GROUP_NAME.sub("(?:", expand(pattern))


def respelled(tag: str) -> str:
    """Return the pattern of a closing tag with blanks in it, "" where the pattern `tag` is of none, or of more."""
    name = re.fullmatch("</([^<>]+)>", tag)
    return rf"</[ \t]{{0,4}}+{name[1]}[ \t]{{0,4}}+>" if name else ""


def compile_pattern(where: str, pattern: str) -> re.Pattern[str]:
    """Return a pattern without abbreviations, compiled. Raises DialectError that says where and what is wrong."""
    try:
        return re.compile(pattern)
    except re.error as error:
        found = pattern[error.pos or 0 :]
        raise DialectError(f"{where}: no valid pattern: {error.msg}, in {found!r:.80}") from error


def _check(field: str, pattern: str) -> None:
    """Raise DialectError, which names the field, where a pattern does not compile."""
    unknown = re.search(r"(?<!\\)\{[A-Za-z]+\}", expand(pattern))
    if unknown:
        raise DialectError(f"{field}: expected {', '.join(_ABBREVIATIONS)}, found {unknown[0]}")
    if compile_pattern(field, expand(pattern)).flags & ~re.UNICODE:
        raise DialectError(f"{field}: expected flags of a part, as `(?i:tool)`, found others: {pattern!r:.80}")
    if has_many_ways(expand(pattern)):
        raise DialectError(
            f"{field}: expected a pattern whose repeats give nothing back, as `(?:[a-z]{{1,8}};?){{1,4}}+`, found one "
            f"that can match a text in so many ways that it may take forever: {pattern!r:.80}"
        )


def _check_place(field: str, pattern: str) -> None:
    """Raise DialectError, which names the field, where a pattern matches in some cuts of a text and not in others."""
    _check(field, pattern)
    if looks_outside(expand(pattern)):
        raise DialectError(
            f"{field}: expected a pattern that sees nothing before its beginning, nor the end of the text, found "
            f"{pattern!r:.80}; `line_start` is for what begins a line"
        )


def _check_group(field: str, pattern: str, group: str) -> None:
    """Raise DialectError, which names the field, where a pattern has a group that may not take part in a match, which
    reading asks for its text, or a name or id that a Call cannot hold.
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
    """Say what is expected of a field that says something of some bodies, and nothing of what has another one."""
    those = " and ".join(f"`{other}`" for other in bodies)
    return f"expected nothing, as {what} is `{body}`, of which it says nothing; it is for {those}"


def _check_types(where: str, row: msgspec.Struct) -> None:
    """Raise DialectError, which names the field, where one of a row has another type: a text would be taken for a tuple
    of its characters, and a list has no hash. Which words a field may have is left to `Dialect.check`.
    """
    types: dict[str, Any] = {"bool": bool, "int": int, "Writing | None": Writing | None}
    members = {"tuple[str, ...]": str, "tuple[str, str]": str, "tuple[Form, ...]": Form}
    for field, kind in type(row).__annotations__.items():
        found = getattr(row, field)
        wanted = tuple if kind in members else types.get(kind, str)
        named = getattr(wanted, "__name__", kind)
        if not isinstance(found, wanted):
            article = "an" if named == "int" else "a"
            raise DialectError(f"{where}{field}: expected {article} {named}, found {type(found).__name__}")
        for item in found if kind in members else ():
            if not isinstance(item, members[kind]):
                raise DialectError(
                    f"{where}{field}: expected a tuple of {members[kind].__name__}, found {type(item).__name__} in it"
                )


class Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way in which a dialect's markers look.

    head        pattern from the beginning of a call to its arguments, with the group `name` (a form whose body is an
                envelope has the name in the body), and optionally `id`, `nonce`, and `empty`, the last group: where it
                took part, the marker is complete and has no arguments. A pattern ends in something that must be there
                (a look-ahead will do), or its end would depend on how the text was cut
    body        the language of the arguments:
                json        one JSON object
                envelope    one JSON object that holds name and arguments under keys of their own
                arguments   `...)`: JSON, or `key=value` pairs with Python's or JSON's literals; the head ends in `(`
                braces      `{key:value,...}` with bare keys and the string delimiter `quote`
                parameters  tags: `parameter`, a value, `value_end`, and so on until `tail`
    tail        pattern of what closes the marker behind the arguments; "" where the arguments end it
    opener      pattern of what opens a section of calls; "" where calls stand alone
    separator   pattern of what must stand between two calls of a section; "" where white space is enough
    closer      pattern of what closes a section, whose end may be optional: `(?:...)?`. A section is over as well where
                neither a call nor a closer follows; tolerant reading takes the bracket of a list alone then. Forms with
                one opener share a section: a later one may leave out its separator, closer and `loose_openers`
    alone       whether a call may stand without its section: the opener is often forgotten
    explicit    whether the opener cannot be mistaken for prose; only such forms are listened for by default
    line_start  whether the form begins only at the beginning of a line
    indent      spaces that may stand before it there, at most; they stay text
    text_start  whether it begins only where the text begins, as the prompt has written what stands before it
    repairs     of a variant (see Dialect): what its calls are recorded with. `missing-closer` stands behind the marker,
                `missing-opener` before it, any other code for its head
    salvage     of a variant: whether only salvage takes it, and only with the name of a tool that was given, which is
                the group `tool` of the head where the body is an envelope, and of the opener of a section; a section
                with the opener of one of the forms is read only where that form is not listened for
    loose_heads patterns of heads that tolerant reading takes too, as a repair: `opener-spelling`; where a group `wide`
                is there, `full-width-punctuation`; where a group `missing` is there, `missing-opener` at its place;
                where a group `escaped`, `markdown-escape`: the name holds backslashes before underscores; where a
                group `null`, `null-arguments`, at the group `empty`; where a group `told`, none, as its body tells
    loose_openers   patterns of openers that tolerant reading takes too; what is repaired is said of the calls behind it
    loose_tail  pattern of what tolerant reading takes where the tail is due: as a missing closer, or where a group
                `wrong` took part, as a wrong one. A look-ahead is a tail that was forgotten before something else;
                where a group `more` took part, what follows is another call in the same marker: its head from the
                name on, or its body; of `arguments`, salvage reads it where that tool was given; where a group `next`
                took part, that is the head of the next call, which tells it behind a value only. What
                `tolerated_tail` knows by itself, the next marker first of all, is left out
    begins      the characters with which an opener, a head or a loose head may begin: what the scanner looks for
    quote       the string delimiter of `braces`, of one character or several: what stands between two has no escapes
    parameter   pattern of what opens a value of `parameters`, with the group `key`; without that group the value is
                the whole of the arguments as JSON. Where it says of what kind the value is, a group `text` takes part
                for text, whatever it looks like, and a group `json` for what is JSON, whatever a schema says; a group
                `object` or `array` for one that holds elements: parameters of its own, or `member`s
    loose_parameters    patterns of the same that tolerant reading takes too, as a repair: `opener-spelling`; where a
                group `missing` is there, `missing-opener` at its place; where a group `unclosed`, `missing-closer`
    value_end   pattern of what ends such a value, where structure follows it (the next parameter or the tail)
    loose_value_end     pattern of what tolerant reading takes for it too: `wrong-closer`. It says itself what must
                stand behind it, and takes nothing that the grammar has for data; what `misspelt_end` knows is left out
    nested      pattern that cannot stand in such a value: the value was never closed; default: the head; with
                an opener that, and the head where structure follows it
    member      pattern of what opens an element of a list, which has no key, where tags say what is one (`array`); with
                the same groups as in `parameter`
    item        the name of a list's elements, where a value may hold elements instead of text: parameters of its own,
                which `nested` matches as well. They make it an object; or a list, where a list is declared, or nothing
                is and the first element has this name
    unclosed    pattern that cannot stand there either, and that ends the value where reading is tolerant; a value that
                is the whole of the arguments must be complete JSON by then, or it is data
    broken_by   patterns of what cannot stand in such a value behind a `value_end` that was data: there the value had
                its end, and no structure followed it
    encoding    how such a value is written: raw, or xml (entities and CDATA)
    key_encoding    how its key is written: raw, or xml (entities)
    trim        whether one line break at each end of such a value belongs to the markup
    name_keys, arguments_keys   keys of an envelope, at its outermost level; beside them `id` (or `tool_call_id`) and
                `type` may stand, and where there are arguments anything else
    """

    head: str
    body: Body
    tail: str = ""
    opener: str = ""
    separator: str = ""
    closer: str = ""
    alone: bool = True
    explicit: bool = True
    line_start: bool = False
    indent: int = 0
    text_start: bool = False
    repairs: tuple[str, ...] = ()
    salvage: bool = False
    loose_heads: tuple[str, ...] = ()
    loose_openers: tuple[str, ...] = ()
    loose_tail: str = ""
    begins: str = "<"
    quote: str = '"'
    parameter: str = ""
    loose_parameters: tuple[str, ...] = ()
    value_end: str = ""
    loose_value_end: str = ""
    nested: str = ""
    member: str = ""
    item: str = ""
    unclosed: str = ""
    broken_by: tuple[str, ...] = ()
    encoding: Literal["raw", "xml"] = "raw"
    key_encoding: Literal["raw", "xml"] = "raw"
    trim: bool = False
    name_keys: tuple[str, ...] = ("name", "tool_name", "function")
    arguments_keys: tuple[str, ...] = ("arguments", "parameters", "args", "input")

    def __post_init__(self) -> None:
        _check_types("", self)

    @property
    def structure(self) -> str:
        """The pattern of what stands behind a value of `parameters`: elsewhere `value_end` is data."""
        return f"(?={'|'.join(map(anonymous, self.behind_values))})"

    @property
    def breaks_values(self) -> str:
        """The pattern of what shows that a value of `parameters` was never closed, as it cannot stand in one."""
        return self.nested or (f"{self.opener}|{self.head}{self.structure}" if self.opener else self.head)

    @property
    def behind_values(self) -> tuple[str, ...]:
        """The patterns of what may stand behind a value of `parameters`."""
        outer = (rf"{{ws}}{self.value_end}",) if self.item or self.member else ()
        return (self.parameter, *filter(None, [self.member]), self.tail, *outer)

    @property
    def tolerated_heads(self) -> tuple[str, ...]:
        """The patterns of all heads that tolerant reading takes beside `head`: the loose ones, and (group `told`) that
        of a body which was written as a JSON string as a whole, or (group `null`) of none where a tail follows: else
        any text behind it would complete a call.
        """
        begin = self.head.removesuffix(_OBJECT).removesuffix(_BRACE)
        ways = [*self.loose_heads]
        if self.body in ("json", "envelope") and begin != self.head and self.alone and not self.repairs:
            ways.append(begin + _IN_STRING)
        if self.head.endswith(_OBJECT) and self.tail:
            ways.append(f"{begin}(?P<null>)(?P<empty>null{anonymous(self.tail)})")
        return tuple(ways)

    @property
    def refused_heads(self) -> tuple[str, ...]:
        """The patterns of the heads with {object}, where something else follows: a call begins there, and is wrong."""
        return tuple(head + _NO_OBJECT for head in self._before_objects)

    @property
    def quoted_heads(self) -> tuple[str, ...]:
        """Those of the refused heads behind which a string stands that may hold the object: such a call is mended."""
        return tuple(head + _IN_ANY_STRING for head in self._before_objects)

    @property
    def _before_objects(self) -> list[str]:
        return [head.removesuffix(_OBJECT) for head in (self.head, *self.loose_heads) if head.endswith(_OBJECT)]

    @property
    def tolerated_end(self) -> str:
        """The pattern of `value_end` with blanks in its tag, or the name of a neighbour's; "" where it is no tag."""
        return respelled(_VALUE_TAG if re.fullmatch(_VALUE_TAG, self.value_end) else self.value_end)

    @property
    def misspelt_end(self) -> str:
        """The pattern of what was meant as `value_end`: with a name in its tag, a neighbour's tag where that has more
        to it or, on a line of its own, without its bracket or slash; before what shows that the value was never closed
        (`unclosed`). "" where it is no tag.
        """
        name = re.fullmatch("</([^<>]+)>", self.value_end)
        if name is None or not self.unclosed:
            return ""
        line = rf"\r?\n(?:</{name[1]}(?=\r?\n)|<{name[1]}>)"
        neighbour = "" if re.fullmatch(_VALUE_TAG, self.value_end) else f"|{_VALUE_TAG}"
        return rf"(?:</{name[1]}[ =][^<>\r\n]{{1,32}}+>|{line}{neighbour})(?={self.unclosed})"

    @property
    def foreign(self) -> str:
        """The pattern of an opener that a neighbour's closer may belong to: behind it, none ends a value of ours."""
        return rf"<{_VALUE_TAGS}(?:[ \t=][^<>\r\n]{{0,256}}+)?>" if re.fullmatch(_VALUE_TAG, self.value_end) else ""

    @property
    def tolerated_tail(self) -> str:
        """The pattern of what tolerant reading takes where the tail is due: what `loose_tail` says; another closing tag
        behind JSON, and the same with blanks in it behind values, where the tail is one; or `next_marker`. "" for none.
        """
        return "|".join(filter(None, [self.other_tail, self.next_marker]))

    @property
    def other_tail(self) -> str:
        """As `tolerated_tail`, without `next_marker`."""
        ways = [self.loose_tail]
        if self.body in ("json", "envelope") and self.tail.startswith("{ws}</"):
            ways.append(rf"{{ws}}(?P<wrong>{CLOSING_TAG}|{_STRAY_FENCE}|{_STRAY}{anonymous(self.tail)})")
        other = respelled(self.tail.removeprefix("{ws}")) if self.body == "parameters" else ""
        if other:
            ways.append("{ws}" + other if "(?P<wrong>" in self.loose_tail else f"{{ws}}(?P<wrong>{other})")
        return "|".join(filter(None, ways))

    @property
    def next_marker(self) -> str:
        """The pattern of a look-ahead to the next marker of this form, before which the tail was forgotten; "" where
        that is not certain. Behind a head it is not: two openers are mentioned, and nothing is called.
        """
        if self.body == "arguments" or self.line_start or self.tail[-1:] in ("", *")]}"):
            return ""
        nexts = [self.nested or self.opener or self.head] if self.body == "parameters" else [self.opener, self.head]
        literal = [begin for begin in nexts if begin.lstrip("\\").startswith(tuple(self.begins))]
        return "|".join(f"(?=(?:{{ws}})?(?:{anonymous(begin)}))" for begin in literal)

    def _check_fields(self, where: str) -> None:
        """Raise DialectError where a field is missing that the others want, or has nothing to say beside them."""
        if not self.begins:
            raise DialectError(f"{where}.begins: expected the characters with which a marker may begin, found none")
        if not self.quote:
            raise DialectError(f"{where}.quote: expected the delimiter of strings, found none")
        taken: set[str] = set()
        for field in ("name_keys", "arguments_keys"):
            keys = getattr(self, field)
            if self.body == "envelope" and not keys:
                raise DialectError(f"{where}.{field}: expected the keys of an envelope, found none")
            odd = [key for key in keys if not key or not key.isprintable() or {*key} & {*"\"'\\"}]
            if odd:
                expected = "expected keys without quotes, backslashes and control characters"
                raise DialectError(f"{where}.{field}: {expected}, found {odd[0]!r:.80}")
            twice = [key for key in keys if key in taken]
            if twice:
                raise DialectError(f"{where}.{field}: expected keys that mean nothing else, found {twice[0]!r:.80}")
            taken.update(keys, ID_KEYS, ("type",))  # these hold a name where the row says so, and no arguments
        for field in ("parameter", "value_end", "tail"):
            if self.body == "parameters" and not getattr(self, field):
                raise DialectError(f"{where}.{field}: expected a pattern, as the body is `parameters`, found none")
        for field, heads in (("head", (self.head,)), ("loose_heads", self.loose_heads)):
            if self.body != "envelope" and not all("{name}" in head or "(?P<name>" in head for head in heads):
                expected = "expected the abbreviation {name} or a group `name`"
                raise DialectError(f"{where}.{field}: {expected}, found neither")
            if self.body not in ("json", "braces") and any(_OBJECT in head for head in heads):
                expected = f"expected {_OBJECT} only with the body json or braces"
                raise DialectError(f"{where}.{field}: {expected}, found {self.body}")
        plain = Form(head=self.head, body=self.body)
        for field, bodies in _BODIES.items():
            found = getattr(self, field)
            if self.body not in bodies and found != getattr(plain, field):
                raise DialectError(f"{where}.{field}: {_not_of('the body', self.body, bodies)}, found {found!r:.80}")
        for field in ("separator", "closer", "loose_openers"):
            found = getattr(self, field)
            if found and not self.opener:
                raise DialectError(f"{where}.{field}: expected nothing, as there is no `opener`, found {found!r:.80}")
        if not 0 <= self.indent <= _INDENT_LIMIT:
            raise DialectError(f"{where}.indent: expected 0 to {_INDENT_LIMIT} spaces, found {self.indent}")
        if self.indent and not self.line_start:
            raise DialectError(f"{where}.indent: expected 0, as `line_start` is false, found {self.indent}")
        keyed = all("{key}" in text or "(?P<key>" in text for text in self.loose_parameters)
        if not keyed and ("{key}" in self.parameter or "(?P<key>" in self.parameter):
            raise DialectError(f"{where}.loose_parameters: expected a group `key`, as `parameter` has, found none")
        if not self.alone and not self.opener:
            raise DialectError(f"{where}.opener: expected a pattern, as calls never stand alone (`alone`), found none")

    def check(self, where: str) -> None:
        """Raise DialectError where fields do not go together, a pattern is none, or depends on how a text is cut, or a
        repair is none.

        It names the field, behind `where`, which tells the form.
        """
        self._check_fields(where)
        unknown = [code for code in self.repairs if code not in REPAIR_CODES]
        if unknown:
            raise DialectError(f"{where}.repairs: expected codes of `events.REPAIR_CODES`, found {unknown[0]!r:.80}")
        for field in (
            "head", "tail", "opener", "separator", "closer", "parameter", "value_end", "nested", "unclosed", "member",
            "broken_by", "loose_heads", "loose_openers", "loose_parameters", "loose_tail", "loose_value_end",
        ):
            value = getattr(self, field)
            for pattern in [value] if isinstance(value, str) else value:
                _check_place(f"{where}.{field}", pattern)
                for group in _ASKED.get(field, ()):
                    if group != "name" or self.body != "envelope":  # which has its name in the body
                        _check_group(f"{where}.{field}", pattern, group)


_PLACE: Final = re.compile(r"\{([a-z_]+)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its {places} filled in, in one pass: what is filled in is never filled in again."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), template)


_PLACES: Final = {
    "call": ("name", "quoted_name", "arguments", "index", "number", "id", "nonce"),
    "parameter": ("key", "value", "type", "is_text"),
    "id": ("id", "quoted_id"),
    "default_id": ("name", "quoted_name", "index", "number", "nonce"),
    "nonce": ("nonce",),
}


class Writing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the calls of a dialect are written, so that one of its forms reads them: templates.

    A message of calls is `opener`, the calls with `separator` between them, and `closer`; each call begins with the
    head of the form. In templates these names are filled in: {name} the tool's name, {quoted_name} as a JSON string,
    {arguments} in the form's body language, {index} the number of the call in its message counted from 0, {number} the
    same from 1, {id} and {nonce}.

    form         which of the dialect's forms it is, counted from 0
    call         template of one call
    parameter    template of one parameter, of {key} and {value}, where the body is `parameters` with keys; where a tag
                 says of what kind a value is, of {type}, which is that of JSON, or of {is_text}
    is_text      what is put for {is_text}: the word for text, and the one for JSON
    opener, separator, closer   what stands around and between calls, as it is
    id           template of what is put for {id} where an id is given, of {id} and {quoted_id}
    default_id   template of the id that a call gets which has none
    nonce        template of what is put for {nonce} where there is one
    pairs        whether the body `arguments` is written as `key=value` with Python's words, not as a JSON object
    """

    call: str
    form: int = 0
    parameter: str = ""
    is_text: tuple[str, str] = ("true", "false")
    opener: str = ""
    separator: str = "\n"
    closer: str = ""
    id: str = ""
    default_id: str = ""
    nonce: str = ""
    pairs: bool = False

    def __post_init__(self) -> None:
        _check_types("writing.", self)
        if len(self.is_text) != 2:
            raise DialectError(f"writing.is_text: expected two words (text, JSON), found {self.is_text!r:.80}")
        if "{arguments}" not in self.call:
            raise DialectError(f"writing.call: expected a place for {{arguments}}, found none in {self.call!r:.80}")
        for field, places in _PLACES.items():
            unknown = next((name for name in _PLACE.findall(getattr(self, field)) if name not in places), None)
            if unknown is not None:
                raise DialectError(f"writing.{field}: expected {{{'}, {'.join(places)}}}, found {{{unknown}}}")

    @property
    def typed(self) -> bool:
        """Whether the tag of a parameter says of what kind its value is."""
        return "{type}" in self.parameter or "{is_text}" in self.parameter


class Dialect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One dialect: its forms, the first match of which wins, and what people should know of it.

    name      how options, events and files call it
    title     what it looks like, in a line
    models    who writes it
    source    where the rules were read
    forms     the ways it is written
    variants  ways in which it is almost written, with `repairs`: no part of the grammar, and for tolerant reading alone
    tags      patterns, which begin with a sign, of markup around texts: behind one with a group `opens` the model
              reasons, up to one of the same row with a group `closes`; one without groups is nothing but markup. One
              with a group `answers` begins an answer: it ends all thoughts of its row, but none in code. Where one
              matches at the beginning of a marker in a thought, the thought ends before that marker
    results   patterns of what begins a result in the templates of its models, at the beginning of a line and in any
              case: what such a model invents behind its own call is cut off there
    grammar   the Lark grammar: a file of `callmark.grammars`, or a path for a dialect of one's own
    writing   how its calls are written; without it the dialect can be read only
    """

    name: str
    title: str
    models: str
    source: str
    forms: tuple[Form, ...]
    variants: tuple[Form, ...] = ()
    tags: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    grammar: str = ""
    writing: Writing | None = None

    def __post_init__(self) -> None:
        _check_types(f"dialect {self.name}: ", self)
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", self.name):
            raise DialectError(f"name {self.name!r}: expected a lower-case letter, then more of them, digits and `_`")
        if self.name == DEFAULT:
            raise DialectError(f"name {self.name!r}: expected another one, as it stands for the dialects that are read")
        for field, text in (("title", self.title), ("models", self.models)):  # each stands in the row of a table
            if not text.isprintable():
                raise DialectError(f"dialect {self.name}: {field}: expected one line of text, found {text!r:.80}")
        if not self.forms:
            raise DialectError(f"dialect {self.name}: expected at least one form, found none")
        if self.writing is not None and not 0 <= self.writing.form < len(self.forms):
            found = self.writing.form
            raise DialectError(f"dialect {self.name}: writing.form: expected the number of a form, found {found}")
        if not all(form.repairs for form in self.variants) or any(form.repairs for form in self.forms):
            raise DialectError(f"dialect {self.name}: expected `repairs` in each of `variants` and in none of `forms`")

    def check(self) -> None:
        """Raise DialectError, which names dialect, form and field, where a field has another type, a repair is none, or
        a pattern is none, or depends on how a text is cut.
        """
        where = f"dialect {self.name}"
        try:
            msgspec.convert(msgspec.to_builtins(self), Dialect)
        except msgspec.ValidationError as error:
            raise DialectError(f"{where}: {error}") from error
        for place, form in self.placed_forms():
            form.check(place)
        if self.writing is not None:
            number = self.writing.form
            bodies: dict[str, Body] = {"parameter": "parameters", "pairs": "arguments"}
            for field, body in bodies.items():
                found, other = getattr(self.writing, field), self.forms[number].body
                if found and other != body:
                    told = _not_of(f"the body of forms[{number}]", other, (body,))
                    raise DialectError(f"{where}: writing.{field}: {told}, found {found!r:.80}")
        for pattern in self.tags:
            _check_place(f"{where}: tags", pattern)
            others = [name for name in re.compile(expand(pattern)).groupindex if name not in TAG_GROUPS]
            if others:
                expected = f"expected no groups but {', '.join(TAG_GROUPS)}, found `{others[0]}`"
                raise DialectError(f"{where}: tags: {expected}: {pattern!r:.80}")
        for pattern in self.results:
            _check(f"{where}: results", pattern)
            if re.match(expand(pattern), ""):
                expected = "expected a pattern that matches something, found one that matches where nothing is"
                raise DialectError(f"{where}: results: {expected}: {pattern!r:.80}")

    def placed_forms(self) -> list[tuple[str, Form]]:
        """Return forms and variants, each with what messages call its place: `dialect acme: forms[0]`."""
        kinds = (("forms", self.forms), ("variants", self.variants))
        return [(f"dialect {self.name}: {kind}[{n}]", form) for kind, forms in kinds for n, form in enumerate(forms)]

    def __repr__(self) -> str:
        return f"<Dialect {self.name}>"  # its patterns are pages

    @property
    def explicit(self) -> bool:
        """Whether some form has an opener that cannot be mistaken for prose: such a dialect is on by default."""
        return any(form.explicit for form in self.forms)
