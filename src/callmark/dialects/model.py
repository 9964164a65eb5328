"""What a dialect is: a row of data. No code that reads or writes knows the name of any dialect.

A marker is read in three steps, and a `Form` gives the pattern of each: the *head* up to the arguments (with the
tool's name), the *body* (the arguments, in one of five body languages), the *tail* that closes the marker. Several
calls may stand in one *section* with an opener, separators and a closer of its own.

`notation` says how patterns are written, `derived` what follows from those of a form, and `checks` what is refused.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import msgspec

from callmark.dialects.notation import PLACE
from callmark.errors import DialectError

DEFAULT: Final = "default"
"""Stands among the names of dialects for those, and their forms, that are listened for where none is named; a name
behind a `-` leaves that one out of them."""

Body = Literal["json", "envelope", "arguments", "braces", "parameters"]

ID_KEYS: Final = frozenset(("id", "tool_call_id"))
"""Keys of an envelope under which the model's own id of a call stands; the second is that of Command R and A."""
KEYS_ASIDE: Final = ID_KEYS | {"type"}
"""Keys of what may stand beside the name and is no argument."""
KEYS_ASIDE_OF_OBJECT: Final = KEYS_ASIDE | {"index"}
"""Those beside an object of its own that holds name and arguments."""


def _check_types(where: str, row: msgspec.Struct) -> None:
    """Raise DialectError, which names the field, where one of a row has another type: a text would be taken for a tuple
    of its characters, and a list has no hash. Which words a field may have is left to `checks`.
    """
    types: dict[str, Any] = {"bool": bool, "int": int, "Writing | None": Writing | None}
    members = {"tuple[str, ...]": str, "tuple[str, str]": str, "tuple[Form, ...]": Form}
    for field, kind in type(row).__annotations__.items():
        found = getattr(row, field)
        wanted = tuple if kind in members else types.get(kind, str)
        named = wanted.__name__ if isinstance(wanted, type) else kind
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
    line_start  whether the form begins only at the beginning of a line, or behind a call without a tail, of such a form
                or of one that is not `explicit`, with a comma between or without
    indent      spaces that may stand before it there, at most, and three where the text begins; they stay text
    text_start  whether it begins only where the text begins, as the prompt has written what stands before it
    repairs     of a variant (see Dialect): what its calls are recorded with. `missing-closer` stands behind the marker,
                `missing-opener` before it, any other code for its head
    salvage     of a variant: whether only salvage takes it, and only with the name of a tool that was given, which is
                the group `tool` of the head where the body is an envelope, and of the opener of a section; a section
                with the opener of one of the forms is read only where that form is not listened for
    loose_heads patterns of heads that tolerant reading takes too, as a repair: `opener-spelling`; where a group `wide`
                is there, `full-width-punctuation`; where a group `missing` is there, `missing-opener` at its place;
                where a group `escaped`, `markdown-escape`: the name holds backslashes before underscores; where a
                group `null`, `null-arguments`, at the group `empty`; where a group `told`, none, as its body tells;
                where a group `nameless` stands in the place of the name, the call is wrong, and is read to its end;
                one of `parameters` with an opener only in its section
    loose_openers   patterns of openers that tolerant reading takes too; what is repaired is said of the calls behind it
    loose_tail  pattern of what tolerant reading takes where the tail is due: as a missing closer, or where a group
                `wrong` took part, as a wrong one. A look-ahead is a tail that was forgotten before something else;
                where a group `more` took part, what follows is another call in the same marker: its head from the
                name on, or its body; of `arguments`, salvage reads it where that tool was given; where a group `next`
                took part, that is the head of the next call, which tells it behind a value only. What
                `derived.tolerated_tail` knows by itself, the next marker first of all, is left out
    behind      of a variant without a tail: pattern of what shows, directly behind a marker, that it is no call: prose.
                Where a group `passes` took part, nothing is wrong; where a group `again`, an object follows, which must
                be empty or the same as the arguments
    begins      the characters with which an opener, a head or a loose head may begin: what the scanner looks for
    quote       the string delimiter of `braces`, of one character or several: what stands between two has no escapes;
                of a variant, a delimiter that stands in `arguments` beside those of JSON and Python
    parameter   pattern of what opens a value of `parameters`, with the group `key`; without that group the value is
                the whole of the arguments as JSON. Where it says of what kind the value is, a group `text` takes part
                for text, whatever it looks like, and a group `json` for what is JSON, whatever a schema says; a group
                `object` or `array` for one that holds elements: parameters of its own, or `member`s
    loose_parameters    patterns of the same that tolerant reading takes too, as a repair: `opener-spelling`; where a
                group `missing` is there, `missing-opener` at its place; where a group `unclosed`, `missing-closer`
    value_end   pattern of what ends such a value, where structure follows it (the next parameter or the tail); it may
                be a look-ahead alone. Where a parameter only begins behind it, the call is wrong (`derived.astray`)
    loose_value_end     pattern of what tolerant reading takes for it too: `wrong-closer`. It says itself what must
                stand behind it, and takes nothing that the grammar has for data; what
                `derived.misspelt_end` knows by itself is left out
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
    trim        whether one line break at each end of such a value belongs to the markup. Where a value does not begin
                with one, none of it is markup: what it ends with is its own
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
    behind: str = ""
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
            unknown = next((name for name in PLACE.findall(getattr(self, field)) if name not in places), None)
            if unknown is not None:
                raise DialectError(f"writing.{field}: expected {{{'}, {'.join(places)}}}, found {{{unknown}}}")

    @property
    def in_cdata(self) -> bool:
        """Whether the arguments stand in a CDATA section of XML."""
        return "<![CDATA[" in self.call.partition("{arguments}")[0].rpartition("]]>")[2]

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
    leads     as `tags`, but looked for only where the text begins, as the prompt has written what stands before that;
              they may begin with any character
    results   patterns of what begins a result in the templates of its models, at the beginning of a line and in any
              case: what such a model invents behind its own call is cut off there
    lines     patterns of what begins a line beside calls that begin lines, as a thought does: where one stands in an
              argument list, that lacks its end
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
    leads: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
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
