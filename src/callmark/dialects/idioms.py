"""What several dialects have in common: pieces of their patterns, and functions that make a form or a pattern of it.

For rows alone, whose patterns are put together from these; the abbreviations of `notation` stand for what any pattern
may hold. Only what rows of several modules use stands here: all else is beside the rows that use it.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from callmark.dialects.model import Form
from callmark.dialects.notation import ANY_NAME

SOURCE: Final = "dialects table of vLLM 0.33 and SGLang 0.5.23"
"""Where most rows were read; what stands behind it are names of their parsers."""

TOOL: Final = rf"\"(?P<tool>{ANY_NAME})\""
"""The name of a tool in an envelope."""

ESCAPED_NAME: Final = r"[^\W\d](?:[\w.:/\-]|\\(?=_)){0,127}+"
"""A name in JSON, also as Markdown escapes it: what reads the object drops the backslashes, and tells of them."""

ESCAPED_TOOL: Final = TOOL.replace(ANY_NAME, ESCAPED_NAME)
"""The same name in an envelope."""

FEW: Final = r"[ \t\r\n]{0,10}+"
"""Blanks around a colon, as of a column or a line break, or before a comma: with {ws} a head is too long to be held."""

META: Final = r"\"(?:id|type|index)\"{few}:{few}(?:\"[^\"\\\r\n]{0,64}+\"|[0-9]{1,4}+){few},{ws}".replace("{few}", FEW)
"""What may stand before the name in an envelope."""


def _in_any_words(before: str, blanks: str, input_key: str) -> str:
    return (
        rf"(?=\{{{{ws}}{before}\"(?:name|tool(?:_name)?|function(?:_name)?|action)\"{blanks}:{blanks}{ESCAPED_TOOL}{{ws}},{{ws}}"
        rf"\"(?:arguments|parameters|args|params|{input_key})\"{blanks}:{blanks}(?:\{{|\"{{ws}}\{{|null|\[{{ws}}\]))"
    )


IN_ANY_WORDS: Final = _in_any_words("", "{ws}", "(?:tool|action)_input")
"""What shows that an object is a call: the keys of one API or another, and what may be arguments."""

MEANT_IN_ANY_WORDS: Final = _in_any_words(f"(?:{META}){{0,2}}+", FEW, "(?:(?:tool|action)_)?input")
"""The same where it names a tool that was given, or stands behind `Action:`. Else what begins so may be a record."""

_ENVELOPE = r"(?=\{{ws}[\"'](?:(?:tool_)?name|tool|function|type|id|arguments|parameters)[\"'])"
FURTHER: Final = r"(?P<more>{ws}[,;，、；]?{ws})" + _ENVELOPE
"""Another envelope in the same wrapper, and not what should have stood in the first."""
FURTHER_LISTED: Final = r"(?P<more>{ws}[,;，、；]{ws})" + _ENVELOPE
"""The same behind a separator: where a bracket alone would end the wrapper, an object on the next line may be text."""

MARKED_NAME: Final = r"(?P<name>[^\W\d][\w.:/\-]{0,63}+\\_(?:[\w.:/\-]|\\(?=_)){0,127}+)(?P<escaped>)"
"""A name as Markdown escapes it."""

ANY_QUOTED_NAME: Final = r"[\"']?{name}[\"']?"
"""A name in any quotes, or in none."""

NO_NAME_BEGINS: Final = r"[\w$@*`]"
"""The first sign of what is no name, in the place of one: of words, a variable, or what is marked. Others are prose."""

NO_NAME: Final = rf"[\"']?(?P<nameless>(?:{NO_NAME_BEGINS}[^<>{{}}\"'\r\n]{{0,63}}+)?+)[\"']?"
"""Nothing, or what is no name, in the place of one. Braces are of a template of the format."""

KEY: Final = r"[\"']?(?P<key>[^<>\"' \t\r\n]{1,256}+(?:[ \t]{1,8}+[^<>\"' \t\r\n]{1,32}+){0,8}+)[\"']?"
"""A key in any quotes, or in none."""

QUOTED_KEY: Final = r"\"(?P<key>[^<>\"\r\n]{1,256}+)\""
"""A key as the value of an attribute."""

ANY_QUOTED_KEY: Final = r"\"[^<>\"\r\n]{1,256}+\""
"""The same without its group: that of another parameter."""

PARAMETER: Final = "(?i:par[a-ln-z]{0,2}+m[aeiort]{0,5}+)"
"""The name of a parameter's tag: in full or short, in any case, with letters typed wrong. Not `part` or `paramset`."""

APART: Final = r"[ \t\r\n]{1,8}+"
"""Blanks between the attributes of a tag."""

IS: Final = r"[ \t\r\n]{0,4}+=[ \t\r\n]{0,4}+"
"""What stands between the name of an attribute and its value, as models write it."""

JSON_TYPES: Final = "number|integer|boolean|object|array|null"
"""The words for values that are JSON."""

TEXT_TYPES: Final = "(?i:str(?:ing)?|text)"
"""The words for text, as models write them, too. Another word than these and those of JSON says nothing."""

COMMAND_TAGS: Final = (
    r"<\|(?:START(?P<opens>)|END(?P<closes>))_THINKING\|>",
    r"<\|(?:START(?P<answers>)|END)_(?:RESPONSE|TEXT)\|>",
)
"""The tags around thoughts and answers of Cohere's Command models, whose calls are of two rows."""

BARE: Final[dict[str, Any]] = {"line_start": True, "repairs": ("missing-opener", "missing-closer"), "salvage": True}
"""Fields of a variant around which nothing stands."""

BARE_CALLS: Final = rf"\[{{ws}}(?=(?P<tool>{ANY_NAME}){{ws}}\()"
"""What opens a list of calls as Python has them."""

BUILT_IN: Final = r"<\|python_tag\|>{ws}(?P<name>[^\W\d]\w{0,127}+)\.call\("
"""The head of a call of a tool that Llama 3 has been trained on."""


def as_python(pattern: str) -> str:
    """Return the pattern of JSON that a pattern describes, as Python writes it."""
    return pattern.replace(r"\"", "'").replace("null", "None")


def list_of(opener: str, closer: str, **more: Any) -> Form:
    """Return the form of a JSON list of calls between an opener and a closer."""
    return Form(
        opener=opener, head=r"(?=\{)", body="envelope", separator=r"{ws},{ws}", closer=closer, alone=False, **more
    )


def objects_of(opener: str, closer: str, **more: Any) -> Form:
    """Return the form of one JSON object after the other, each a call, between an opener and a closer."""
    return Form(opener=opener, head=r"(?=\{)", body="envelope", closer=closer, alone=False, **more)


def without_brackets(opener: str, head: str, **more: Any) -> Form:
    """Return the form of a JSON list of calls without its brackets: objects that `head` tells, with commas between."""
    return Form(
        opener=opener + head, head=head, body="envelope", separator=r"{ws},{ws}", alone=False,
        repairs=("missing-opener", "missing-closer"), **more,
    )  # fmt: skip


def calls_of(opener: str, closer: str, **more: Any) -> Form:
    """Return the form of calls as Python has them, between an opener and a closer."""
    return Form(opener=opener, head=r"{name}{ws}\(", body="arguments", closer=closer, alone=False, **more)


def fenced(head: str, behind: str = "", body: Literal["json", "envelope"] = "json", **more: Any) -> Form:
    """Return the form of an object in a code fence, where the dialect has none around it: models add it.

    It stands behind `head`, and `behind` the fence.
    """
    return Form(
        head=head + r"```(?:json)?[ \t]{0,16}+\r?\n{ws}(?=\{)", body=body, tail=r"{ws}```" + behind,
        repairs=("fenced-body",), **more,
    )  # fmt: skip


def attributed(prefix: str, tail: str, behind: str, own: str) -> dict[str, Any]:
    """Return the fields of a form with a tag for each parameter, which has the key as its attribute `name`.

    The names of its tags begin with `prefix`. `tail`, `behind` and `own` are those of `unclosed`: what ends the call,
    what shows that it does, and how tags begin.
    """
    tag = f"{prefix}parameter"
    return {
        "body": "parameters",
        "parameter": f"{{ws}}<{tag} name={QUOTED_KEY}>",
        "loose_parameters": (keyed_otherwise(f"(?:{prefix})?{PARAMETER}"),),
        "value_end": f"</{tag}>",
        "unclosed": unclosed(f"{tag} name={ANY_QUOTED_KEY}>", f"{tag} name=", f"/{tag}>", tail, behind, own),
    }


_ANY_ATTRIBUTE: Final = "[a-z_]{1,32}+"
_TAG_END: Final = r"[ \t\r\n]{0,4}+>"
_KEY: Final = (
    r"[\"']?(?P<key>[^<>\"'= \t\r\n]{1,256}+(?:[ \t]{1,8}+[^<>\"'= \t\r\n]{1,32}+(?![ \t]{0,4}+=)){0,4}+)[\"']?"
)
_KINDS: Final = f"(?:(?P<text>[Tt]rue|{TEXT_TYPES})|(?P<json>[Ff]alse|{JSON_TYPES}))"
_WORD: Final = r"[\w.:/\-]{0,32}+"  # no text in the head of a call: any text could go on with what is cut in it
_TEXT: Final = r"[^<>\"'\r\n]{0,32}+"


def before_name(tag: str, attribute: str = "name", others: str = _ANY_ATTRIBUTE) -> str:
    """Return the pattern of the tag of a call up to the value of its `attribute`, which is the name.

    Blanks are as models write them. Up to two attributes may stand before it; `others` is the pattern of their names.
    """
    return rf"<{tag}(?:{_attribute(f'(?!{attribute}{IS})', _WORD, others)}){{0,2}}+{APART}{attribute}{IS}"


def named_otherwise(
    tag: str, attribute: str = "name", *, behind: str = "", end: str = _TAG_END, others: str = _ANY_ATTRIBUTE
) -> str:
    """Return the pattern of the tag of a call, its name in any quotes, and attributes around it as in `before_name`.

    `behind` is the pattern of what stands directly behind the name, and `end` that of the tag's end.
    """
    before = before_name(tag, attribute, others)
    return rf"{before}{ANY_QUOTED_NAME}{behind}(?:{_attribute('', _WORD, others)}){{0,2}}+{end}"


def keyed_otherwise(tag: str, key: str = "name", kinds: str = _KINDS, end: str = _TAG_END) -> str:
    """Return the pattern of the tag of a parameter: its key and what says its type in any order, blanks and quotes, and
    other attributes around them.
    """
    before = rf"(?:{_attribute(f'(?!{key})', _TEXT)}){{0,2}}+"  # without what IS adds: each grammar's VALUE repeats it
    return rf"{{ws}}<{tag}{_of_kind(kinds, 3)}{before}{APART}{key}{IS}{_KEY}{_ATTRIBUTES}{end}"


def _of_kind(kinds: str, before: int) -> str:
    """Return a look-ahead to the attribute that says of what kind a value is; other words than `kinds` say nothing.

    Only so many attributes may stand `before` it, and nothing else: it waits for more text as long as it may match.
    """
    kind = f"(?:string|type){IS}"
    words = r"[^<>\"'= \t\r\n]{1,32}+(?:[ \t]{1,8}+[^<>\"'= \t\r\n]{1,32}+(?![ \t]{0,4}+=)){0,2}+"
    others = rf"(?:{APART}(?!{kind})[a-z_]{{1,32}}+{IS}(?:[\"'][^<>\"'\r\n]{{0,64}}+[\"']|{words})){{0,{before}}}+"
    return rf"(?:(?={others}{APART}{kind}[\"']?{kinds}(?=[\"' \t\r\n<>])))?"


def _attribute(unless: str, value: str, name: str = _ANY_ATTRIBUTE) -> str:
    """Return the pattern of an attribute: a `name`, which does not begin as `unless` says, and a `value` in quotes.

    Or a word without them, or with the first one alone.
    """
    return rf"{APART}{unless}{name}{IS}(?:[\"']{value}[\"']|[\"']?{_WORD})"


_ATTRIBUTES: Final = rf"(?:{_attribute('', _TEXT)}){{0,3}}+"
TYPED: Final = _of_kind(_KINDS, 1) + _ATTRIBUTES + _TAG_END
"""The rest of a parameter's tag behind its key: attributes, of which one may say its type."""

ATTRIBUTES: Final = rf"(?:{_attribute('', _WORD)}){{1,2}}+{_TAG_END}"
"""The rest of the tag of a call that has attributes, none of which says more than the call does."""


def unclosed(parameter: str, begin: str, end: str, tail: str, behind: str, own: str) -> str:
    """Return the pattern of what shows that a value was never closed; each part of it is without its first `<`.

    That is another parameter, whose value is long, or ends where structure follows (`begin` of a parameter, or the
    tail): elsewhere it is text about the format. Or it is the tail, where the next call or a section's end is `behind`.
    A `<` belongs to a value where no character of `own`, with which the tags of the dialect begin, is behind it.
    """
    found = _not_closed(parameter, begin, end, tail, behind, f"/?[^/{own}]")
    return rf"\r?\n(?=<{found})|<(?={found})"


def unclosed_line(parameter: str, begin: str, end: str, tail: str, behind: str, own: tuple[str, ...]) -> str:
    """As `unclosed`, for tags with plain words, of which values speak: what shows it stands at the beginning of a line.

    A `<` belongs to a value where none of the words `own` is behind it, with which the tags of the dialect begin.
    """
    return rf"\r?\n(?=<{_not_closed(parameter, begin, end, tail, behind, _none_of(own))})"


def _not_closed(parameter: str, begin: str, end: str, tail: str, behind: str, other: str) -> str:
    """Return what shows it, behind its `<`; `other` is the pattern of what no tag of the dialect has behind its own."""
    char = f"(?:[^<]|<(?={other}))"
    value = rf"(?:{char}{{300}}|{char}{{0,299}}+<(?:{end}{{ws}}<)?(?:{begin}|{tail}))"
    return rf"(?:{parameter}{value}|{tail}{{ws}}<(?:{behind}))"


def _none_of(words: tuple[str, ...]) -> str:
    """Return the pattern of the beginning of a text that begins with none of the words, none of which begins another.

    >>> _none_of(("ab", "/c"))
    '(?:[^a/]|a[^b]|/[^c])'
    """
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[0], []).append(word[1:])
    ways = [char + _none_of(tuple(rest)) for char, rest in rests.items() if rest != [""]]
    other = f"[^{''.join(rests)}]"
    return f"(?:{'|'.join((other, *ways))})" if ways else other


def forgotten(closer: str, begin: str) -> str:
    """Return the pattern of a tail that was forgotten before the section's `closer`, or what begins the next call."""
    return rf"(?={{ws}}(?:{closer}|(?P<next>{begin})))"


def swapped(tail: str, value_end: str, behind: str) -> str:
    """Return the pattern of a value's closer behind the call's, or twice, where what is `behind` shows that the call is
    over: neither belongs to the value, to which the last of them would be the end.
    """
    return rf"(?:{tail}|{value_end}){{ws}}{value_end}(?={behind})"


def empty(tag: str) -> str:
    """Return the pattern of tags of a name with nothing but a line break in them: on one line they are spoken of."""
    return rf"<{tag}>[ \t]{{0,16}}+\r?\n{{ws}}</{tag}>"


def twice(opener: str, begin: str) -> str:
    """Return the pattern of an opener that stands before the same again, behind which a call begins."""
    return rf"{opener}{{ws}}(?=(?:{opener}{{ws}}){{1,2}}+{begin})"
