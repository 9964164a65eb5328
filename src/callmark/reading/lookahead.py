r"""What must follow for a token to mean what it seems to mean: the bounded look-ahead of tolerant reading.

A quote ends a string only where structure follows it; elsewhere it is a character that the model forgot to escape. The
grammar's own texts are never in doubt, because in them structure always follows: each pattern here covers what the
grammar allows behind a string, and beyond that what other repairs read there.

Where a quote was taken for a character, the string may as well have ended, with something wrong behind it. So from
there on its text is watched for what can only be a marker's end or beginning: seeing one, the reader goes back to that
quote and says what was wrong there. A broken call so never swallows a good one.

All patterns are bounded: nothing waits for more than HOLD_LIMIT characters, most of them blanks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from typing import Final

from callmark.dialects import Dialect, Form, dialects
from callmark.dialects.model import KEYS_ASIDE_OF_OBJECT
from callmark.dialects.notation import anonymous, expand
from callmark.dialects.prefixes import literals, merged
from callmark.reading.characters import short
from callmark.reading.matching import HOLD_LIMIT, Alarm, Pattern, Watched
from callmark.reading.runs import Runs

ODD_BLANKS: Final = frozenset("\u00a0\u1680\u180e\u202f\u205f\u2060\u3000\ufeff").union(map(chr, range(0x2000, 0x200C)))
"""White space that JSON does not know, and what has no width: blanks between the parts of an object."""
_ANY_WS: Final = rf"[ \t\r\n{''.join(sorted(ODD_BLANKS))}]{{0,64}}+"
_MANY: Final = r"[ \t\r\n]{65}"  # so many blanks are not waited for: the quote before them ends its string
_FEW: Final = r"[ \t\r\n]{0,8}+"
_LINE: Final = r"[ \t\r\n]{0,24}+"  # a line break, and how far the next line may be indented
_ASIDE: Final = (
    rf"(?:{_LINE}[\"'](?:{'|'.join(sorted(KEYS_ASIDE_OF_OBJECT))})[\"']{_FEW}:{_FEW}"
    rf"(?:[\"'][^\"'\\\r\n]{{1,64}}+[\"']|[0-9]{{1,4}}+){_FEW},){{0,2}}+"
)
"""Members of a call that may stand before its name."""
_CURLY_QUOTES: Final = "“”„‘’"
_QUOTE: Final = f"[\"'{_CURLY_QUOTES}]"
KEY_PATTERN: Final = r"[$@\-]?+[^\W\d][0-9A-Za-z_.\-\w]{0,127}+"
"""What a key without quotes looks like. With a sign before it are those of OData and JSON-LD, and commands' options."""
MARKED_KEY: Final = rf"{KEY_PATTERN}(?:\\_[\w.\-]{{0,32}}+){{0,8}}+"
"""The same where tolerant reading takes it: backslashes before underscores are those of Markdown."""
_QUOTED: Final = (
    r"""(?:"(?:[^"\\\r\n(){}\[\]<]|\\[^\r\n]){0,128}+"|'[^'\\\r\n(){}\[\]<]{0,128}+'"""
    r"|[“”„][^“”„\"\r\n(){}\[\]<]{0,128}+[“”\"]|[‘’][^‘’'\r\n(){}\[\]<]{0,128}+[‘’'])"
)
_QUOTED_KEY: Final = f"{_QUOTED}{_ANY_WS}[:：=＝]"
_COMMENT: Final = r"(?:/[/*]|#)"
_LITERAL: Final = "(?:true|false|null|True|False|None)"
_ITEM: Final = (
    rf"(?:[bBfFrRuU]{{0,2}}+{_QUOTE}|[\[{{(］\]［｛]|-?[0-9]|{_LITERAL}(?:{_ANY_WS}[,\])]|{_MANY})|{MARKED_KEY}{_ANY_WS}[,\]])"
)

_A_SCALAR: Final = r"(?:-?[0-9][0-9.eE+\-]{0,32}+|true|false|null)"

_MEMBER: Final = rf"""[\w.\-]{{1,64}}+["']{_ANY_WS}[:：]{_ANY_WS}(?:["'\[{{0-9\-]|{_LITERAL})"""

WIDE: Final = {
    "：": ":", "，": ",", "｛": "{", "｝": "}", "［": "[", "］": "]", "（": "(", "）": ")", "＝": "=",
}  # fmt: skip
"""Full-width punctuation, and what it stands for between tokens."""
LISTING: Final = "、"
"""The comma of Japanese, and of enumerations in Chinese: also one of text, as between words in quotes."""

_QUICK: Final = (
    r"(?=[ ]{0,2}[0-9A-Za-z_][0-9A-Za-z_.\-]{0,31}+(?![\w.\-])"
    r"[ ]?[\"']?[ ]?[^ \t\r\n:：=＝,，}｝\])）\"'“”„‘’/#+;])|"
)
"""Behind a quote, words as they stand in prose: nothing that a pattern here knows, unless a tail begins with one."""

NEXT_MEMBER: Final = Pattern(rf"(?:{_QUOTED_KEY}|{MARKED_KEY}{_ANY_WS}[:：])")
NEXT_ITEM: Final = Pattern(rf"[\"{{\[0-9\-]|(?:true|false|null)(?:{_ANY_WS}[,\]]|[ \t]{{0,64}}+[\r\n])")
_COLON_AND_MORE: Final = rf"[:：](?:{_FEW}(?:{_QUOTE}|[\[{{(0-9\-]|{_LITERAL})|[ \t]{{1,8}}+\w)"
NEXT_PAIR: Final = Pattern(rf"{MARKED_KEY}{_ANY_WS}(?:=[^=]|{_COLON_AND_MORE})")
"""What begins behind a value where a comma is missing: in an object, an array, an argument list."""
UNPARTED: Final = Pattern(rf"[ \t\r\n]{{1,64}}+{MARKED_KEY}{_FEW}{_COLON_AND_MORE}")
"""The same behind a quote, where none was inside the string so far: it ends there, as a text seldom goes on so."""
_END_OR_KEY: Final = rf"{_FEW}(?:[)}}\]]|[,，]{_FEW}(?:{_QUOTED_KEY}|{MARKED_KEY}{_FEW}[:：=]))"
UNPARTED_BEHIND_MARK: Final = {
    quote: Pattern(
        rf"[ \t]{{0,64}}+[\r\n][ \t\r\n]{{0,64}}+{MARKED_KEY}{_FEW}{_COLON_AND_MORE}"
        rf"|[ \t]{{1,64}}+{MARKED_KEY}{_FEW}[:：]{_FEW}"
        rf"(?:[{quotes}]|[\[{{]{_FEW}[\"'“‘\[{{\]}}0-9\-]|{_A_SCALAR}{_END_OR_KEY})"
    )
    for quote, quotes in {'"': '"', "'": "'", "“": "“”", "‘": "‘’"}.items()
}
"""The same where the quote may be an apostrophe (`the dogs' owner: Bob`) or the mark of inches, by the string's quote:
only what hardly stands in a text: a line of its own, a string in the same quotes, a list, an object or all of a number.
"""
ATTACHED: Final = Pattern(rf"{MARKED_KEY}{_ANY_WS}=")
"""A key directly behind a quote: where the quote stands behind a blank or a bracket, it opens a string of code."""
BLANK: Final = Pattern(r"[ \t\r\n]")

COMMA_AND_MEMBER: Final = Pattern(rf"[,，]{_ANY_WS}(?:[,，}}｝]|{_COMMENT}|{_QUOTED_KEY}|{MARKED_KEY}{_ANY_WS}[:：])")
COMMA_AND_PAIR: Final = Pattern(rf"[,，]{_ANY_WS}{MARKED_KEY}{_ANY_WS}=[^=]")
_REMARK: Final = rf'(?://|#)[^\r\n,()\[\]{{}}"，（）]{{0,256}}+[\r\n]{_ANY_WS}'
COMMENT_AND_MORE: Final = Pattern(rf"{_REMARK}(?://|#|{MARKED_KEY}{_ANY_WS}[=＝])")
COMMENT_AND_END: Final = Pattern(rf"{_REMARK}[)）]")
"""A comment to the end of its line in an argument list, where a word could stand: what shows that it is none."""
CALL_BEGUN: Final = Pattern(rf"\({_ANY_WS}(?:\)|{MARKED_KEY}{_ANY_WS}=[^=])")
"""What stands behind the name of a call in a list of them."""

_VALUE_BEGUN: Final = rf"{_ANY_WS}(?:[=＝]|[:：]{_ANY_WS}(?:{_QUOTE}|[\[{{0-9\-]|{_LITERAL}))"
_LISTED_MEMBER: Final = f"{LISTING}{_ANY_WS}{_QUOTED}{_VALUE_BEGUN}"
_LISTED_PAIR: Final = f"{_LISTED_MEMBER}|{LISTING}{_ANY_WS}{MARKED_KEY}{_VALUE_BEGUN}"
_STRING_ENDED: Final = {
    quote: rf"{_ANY_WS}(?:(?:[;；、|]|[}}\])]{_ANY_WS},){_ANY_WS}{quote}"
    rf"|:{_ANY_WS}(?:[{quote}{{\[]|{_A_SCALAR}{_ANY_WS}[,}}\])]))"
    for quote in "\"'"
}
ANOTHER: Final = {
    '"': Pattern(r'[ \t\r\n]{1,64}+"|' + _STRING_ENDED['"']),
    "'": Pattern(_STRING_ENDED["'"]),
}
"""What shows behind a quote, where none was inside the string so far, that something is wrong: a string behind it, a
member in a list, or a closer of another kind. Python puts single-quoted strings together without a sign."""


def _glued(quote: str, *, mark: bool) -> Pattern:
    """Return what is behind a `quote` of `GLUED`; `mark`: it may stand alone there, as an apostrophe does."""
    word = rf"[^\"'{_CURLY_QUOTES},，\r\n()\[\]{{}}<`【［✿]"  # nothing that a marker may begin with, or end
    words = rf"(?:{word}{{1,24}}+(?:\({word}{{0,24}}+\))?+|\({word}{{0,24}}+\))"
    signs = rf"(?:[^\w\s\"'{_CURLY_QUOTES},，()\[\]{{}}]{{1,3}}+|(?!{quote}){_QUOTE})"
    comma = r"[ \t\r\n]{0,4}+[,，]"
    content = rf"[^\s\"'{_CURLY_QUOTES},，+;.&|)\]}}]"
    # One that stands directly behind a comma closes a pair, as in speech: `他说"好，"就走了`. So does one before what
    # Python puts together with it: `f"a, "f"b"`.
    word_begun = rf"(?:[^\WbBfFrRuU]|[bBfFrRuU]{{1,2}}+[^{quote}])"
    blanks = r"[ \t\r\n]{1,64}+"
    more = f"{signs}{blanks}{quote}{content}" + ("" if mark else f"|{words}{comma}{blanks}{quote}{word_begun}")
    key = rf"{_ANY_WS}{MARKED_KEY}{_FEW}[=:：＝]{_FEW}"
    return Pattern(rf"(?:(?:{words}|{signs}){comma}{key}|{signs}{comma}{_ANY_WS}){quote}{content}|{more}")


GLUED: Final = {(quote, mark): _glued(quote, mark=mark) for quote in "\"'" for mark in (False, True)}
"""What shows behind a quote that is directly behind a word, where none was inside the string so far, that it ended it:
words or signs, and the next string, which a quote directly before a word opens. By whether the quote may be a mark."""
QUOTE_AND_COLON: Final = Pattern(rf"[\"']{_ANY_WS}[:：]")
"""What stands behind a key without quotes that has the second of them."""
COLON_AND_WORD: Final = Pattern(r"[:：](?:[ \t]{1,64}+[^ \t\r\n,)]|[“„‘])")
COLON_AND_ANY_WORD: Final = Pattern(r"[:：](?:[ \t]{1,64}+[^ \t\r\n,)]|/[^/]|[^/ \t\r\n,)])")
"""What shows in an argument list that a colon stands for an equals sign: an opening quote, or a word behind a blank.
The same behind the name of a parameter, where only two slashes, as a URL has them, show that it is none."""
WIDE_OPENING: Final = Pattern(rf"[｛［]{_ANY_WS}(?:{_QUOTE}|[｝］}}\]])")
_NEXT_PAIR: Final = rf"[;；、.。&|+]{_ANY_WS}[^\W\d][\w.\-]{{0,63}}+{_FEW}[=＝:：]{_FEW}"
_CONTENT: Final = rf"[^\s\"'{_CURLY_QUOTES}+,;.&|)\]}}<>]"


def _apart(quote: str) -> Pattern:
    """Return what stands behind a `quote` that opens no string in a string: see `APART`."""
    operator = rf"[ \t]{{1,8}}+%{_FEW}{quote}|\.[a-z_]{{1,32}}+\("
    return Pattern(rf"{operator}|{_ANY_WS}(?:[,，]|{_NEXT_PAIR}{quote}{_CONTENT})")


APART: Final = {'"': _apart('"'), "'": _apart("'"), **dict.fromkeys(_CURLY_QUOTES, _apart(_QUOTE))}
"""What stands behind a quote that opens no string in a string: a comma, an operator and a string, a method of Python,
or a sign, as `;` is one, with the next key and its string behind it."""
BEHIND_BARE: Final = Pattern(rf"{_ANY_WS}[,}}\]，｝］]")

_CODE_BEHIND: Final = r"[ \t]{0,8}+(?:[+,]|<<|\|\||[.&]{1,2}+(?=[ \t$]))[ \t]{0,8}+(?:[^\W\d]|[$(])"
"""What stands behind the second quote of a string in code: an operator or a comma, and a name."""


def _joined(sign: str) -> dict[str, Pattern]:
    """Return, by quotes, what shows behind one that code goes on: a comma, a word, the `sign`, a quote before code."""
    return {
        quote: Pattern(rf"[,，]{_ANY_WS}{MARKED_KEY}{_ANY_WS}{sign}{_ANY_WS}[{quotes}]{_CODE_BEHIND}")
        for quote, quotes in {'"': '"', "'": "'", "“": "“”„", "‘": "‘’"}.items()
    }


JOINED: Final = _joined("[:：]")
"""What looks like a key without quotes, and its string, behind a quote in code: `log("a: " + a + ", b: " + b)`."""
JOINED_BY_SIGNS: Final = _joined("[:：=]")
"""The same with an equals sign, too: a grammar may have such keys."""

_PLAIN_KEY: Final = r"[^\W\d][\w.\-]{0,127}+[ ]{0,8}+"
_NEXT_KEY: Final = rf",{_ANY_WS}{_PLAIN_KEY}:"
_BRACES_MEMBER: Final = rf",{_ANY_WS}[^\x00-\x1f:,{{}}\[\]<>\"'\ud800-\udfff]{{1,128}}+:"
_URL: Final = r"https?://[^\x00- ,{}\[\]<>\"\ud800-\udfff]{1,256}+"


@lru_cache(maxsize=64)
def _bare_text(quote: str) -> Pattern:
    """Return the pattern of a value of several words without the row's quotes, up to the next key or the brace.

    Gemma's quotes are special tokens, which may be lost. No sign that may belong to a member is in it, nor a quote.
    """
    char = r"[^\x00- ,{}\[\]<>\":=：＝，；“”„‘’\ud800-\udfff]"
    if re.match(char, quote):
        char = f"(?!{re.escape(quote)}){char}"
    # That no key comes is said by what does, else more text could take it back.
    no_key = rf"(?:{_PLAIN_KEY}[^:]|(?![ \t\r\n,}}])[\W\d])"
    return Pattern(
        rf"(?![\w+\-.]{{1,256}}+{_ANY_WS}(?:(?:,{_ANY_WS})?[}}\]]|/[/*]|#|{_BRACES_MEMBER}))"  # one word
        rf"(?P<text>{_URL}|(?:{char}|[ ](?=[ ]{{0,7}}+[^ \t\r\n,}}])"
        rf"|,(?={_ANY_WS}{no_key})){{1,256}}+){_ANY_WS}(?=(?:,{_ANY_WS})?\}}|{_NEXT_KEY})"
    )


BEHIND_FAULT: Final = Pattern(rf"{_ANY_WS}[,}}\])，｝］）/#]|[ \t\r\n]{{1,64}}+[\"']")
"""What stands behind a word that is no value where it is alone in its place: also what is mended there."""

_GAP: Final = "\0"


@cache
def _signs() -> str:
    """Return what fences begin with, and the markers of registered dialects for which nobody has to ask by name."""
    forms = [form for row in dialects() for form in (*row.forms, *row.variants)]
    begins = (form.begins for form in forms if form.explicit and not (form.salvage or form.text_start))
    return "".join(dict.fromkeys("`" + "".join(begins)))


@cache
def openers() -> str:
    """Return the pattern of what begins the markers of the registered dialects: a sign, and the words behind it.

    Whether a marker follows is not asked, as it may be misspelt; of a form that has no words it is the whole beginning.
    Made when it is first wanted: it takes 50 ms.
    """
    signs = re.escape(_signs())
    found: set[str] = set()
    wordless = []
    for dialect in dialects():
        for form in (form for form in (*dialect.forms, *dialect.variants) if not form.salvage):
            patterns = [form.opener, *form.loose_openers, *([form.head, *form.loose_heads] if form.alone else ())]
            texts = [text for pattern in patterns for text in literals(expand(pattern), _GAP)]
            begun = [re.match(rf"[{signs}]{_GAP}?[^{_GAP}]*[^\W\d]{{3}}\w*", text) for text in texts]
            found.update(words[0] for words in begun if words is not None)
            if not any(begun) and form.explicit and not (form.repairs or form.text_start):
                wordless.append(expand(_begin(form)))
    least = sorted(text for text in found if not any(text != other and text.startswith(other) for other in found))
    return merged([*(re.escape(text).replace(re.escape(_GAP), _FEW) for text in least), *filter(None, wordless)])


def _begin(form: Form) -> str:
    """Return the pattern with which a marker of `form` begins if it is listened for, "" where another leads to it."""
    return form.opener or (form.head if form.alone else "")


def _shut(form: Form) -> str:
    """Return the pattern of what can only be the end of a marker of `form`."""
    brackets = rf"(?:[)}}\]]{_FEW}){{1,8}}"
    if not form.tail:
        line_end = r"(?:\}[ \t]{0,64}+){1,8}+[\r\n]"
        if not form.separator:
            return line_end
        next_call = f"{brackets}{expand(form.separator)}(?={anonymous(form.head)})"
        return f"{next_call}|{brackets}{anonymous(form.closer)}" if form.closer else f"{next_call}|{line_end}"
    tail = anonymous(form.tail)
    shut = brackets + tail
    return shut if form.body == "arguments" else f"{shut}|{tail.removeprefix(expand('{ws}'))}"


def follows(pattern: Pattern, buffer: str, at: int) -> bool | None:
    """Return whether `pattern` matches at index `at`; None where more text must tell."""
    if pattern.match(buffer, at) is not None:
        return True
    return None if pattern.may_match(buffer, at) else False


def envelope_begun(form: Form) -> str:
    """Return the pattern of what only a call begins with, and no object among the arguments: name and arguments."""
    return rf"\{{{_name_and_arguments(form)}"


def _envelope_begun_otherwise(form: Form) -> str:
    """Return the pattern of what a call may begin with besides: an id and the like, an object that holds name and
    arguments, or its arguments.
    """
    function = rf"[\"']function[\"']{_FEW}:{_FEW}\{{"
    first = rf"{_any_key(form.arguments_keys)}{_ANY_WS}\{{"
    return rf"\{{{_ASIDE}(?:{_LINE}(?:{function})?+{_name_and_arguments(form)}|{_ANY_WS}{first})"


def _name_and_arguments(form: Form) -> str:
    text = r"[\"'][^\"'\\\r\n]{1,128}+[\"']"
    return rf"{_ANY_WS}{_any_key(form.name_keys)}{_ANY_WS}{text}{_ANY_WS},{_ANY_WS}{_any_key(form.arguments_keys)}"


def _any_key(keys: tuple[str, ...]) -> str:
    """Return the pattern of one of some keys in quotes, with its colon."""
    return rf"[\"'](?:{'|'.join(map(re.escape, keys))})[\"']{_ANY_WS}:"


class Lookahead:
    """The patterns of one form, and of `others`: rows that are listened for beside it and not registered. Of all rows
    that are, `line_heads` are the patterns of markers that begin lines with a letter.

    key, member, equals, item, listed, pair, positional   what follows the quote that ends a key; a value in an object,
                                                  in one with equals signs, a JSON array, a list of Python; in an
                                                  argument list, a key's and a value that may be a key
    of_pairs the four of them that stand behind a value with a key
    colon_and_value   in an argument list, a colon in the place of an equals sign, as a value that is no word follows
    no_key, no_string, no_python   what shows behind such a quote that something is wrong, and no backslash missing:
             strings are put together (Python does it without a sign), or it begins another member
    shut     the bracket of a marker at the end of a line, with text on the next one: brackets before it were forgotten;
             of a list of calls the next one, where what closes the call before it was
    over     what stands behind the quote that ends the last value of a call, or another one than the last; None where
             a call ends with its bracket, whatever follows. `over_pair`: the same where that quote may be the second
             of a pair in the value, as in a list of strings: behind a comma the next key must stand
    odd      what shows behind three quotes that they begin no string: another member or pair, or the end of the marker
    doubled  two braces and the tail: one too many for an envelope
    another  the next call of a list of envelopes, None for other forms; `another_behind`: with more beginnings, where
             the arguments of this one have ended, and it cannot stand in them
    bare_text   a value of several words without quotes, in braces
    stops    finds in a chunk of a string what must be looked at: what may end it, or begin a marker
    plain    for each quote: a string behind it in which nothing must be looked at, the group 1, and what ends it
    """

    def __init__(self, form: Form, others: tuple[Dialect, ...], line_heads: tuple[str, ...]) -> None:
        """Put the patterns together."""
        tail = anonymous(form.tail)
        least = 1 if form.body == "arguments" and tail else 0
        # What must close a section ends a string as well, but not where that is a bracket alone.
        ending = tail or (anonymous(form.closer) if form.closer[-1:] not in ("", *")]}?") else "")
        end = rf"|(?:[)}}\]]{_FEW}){{{least},8}}{ending}" if ending else ""
        comment = rf"|{_COMMENT}"
        sign = rf"{_ANY_WS}(?:[:：＝]|=[^=])"
        remark = r"/\*[^*]{0,128}+\*/|(?://|#)[^\r\n\"]{0,128}+[\r\n]"
        self.key = Pattern(rf"{sign}|{_ANY_WS}(?:{remark}){sign}|{_MANY}")
        behind_comma = rf"{_ANY_WS}(?:[}},｝，]|{_QUOTE}|{_COMMENT}|{MARKED_KEY}{_ANY_WS}[:：])|{_MANY}"
        member = rf"[}}｝]|[,，](?:{behind_comma})|{_LISTED_MEMBER}|{_QUOTED_KEY}"
        another = envelope_begun(form)
        of_envelopes = form.body == "envelope" and "," in form.separator
        self.another = Pattern(another) if of_envelopes else None
        self.another_behind = Pattern(f"{another}|{_envelope_begun_otherwise(form)}") if of_envelopes else None
        if self.another is not None:
            member += rf"|[,，]{_ANY_WS}{another}"
        self.bare_text = _bare_text(form.quote)
        if form.body == "braces":
            member += rf"|[,，]{_ANY_WS}(?:{re.escape(form.quote)}|[^\x00-\x1f:,{{}}\[\]<>]{{1,128}}+:)"
        self.member = Pattern(rf"{_ANY_WS}(?:{member}{comment}{end})|{_MANY}")
        self.equals = Pattern(rf"{_ANY_WS}(?:{member}|[,，]{_ANY_WS}{MARKED_KEY}{_ANY_WS}={comment}{end})|{_MANY}")
        listed = rf"[\])］）]|[,，]{_ANY_WS}(?:{_ITEM}|[,，)]|{_COMMENT})|[,，]{_MANY}"
        self.listed = Pattern(rf"{_ANY_WS}(?:{listed}{comment}{end})|{_MANY}")
        begins = rf"[ \t\r\n]{{1,64}}+(?:[\"{{\[]|{_A_SCALAR}{_ANY_WS}[,\]])"
        begins += rf"|[ \t]{{0,64}}+[\r\n][ \t\r\n]{{0,64}}+{_A_SCALAR}[ \t]{{0,64}}+[\r\n]"
        self.item = Pattern(rf"{_ANY_WS}(?:{listed}{comment}{end})|{begins}|{_MANY}")
        more = rf"[,，]|{_LISTED_PAIR}|{MARKED_KEY}{_ANY_WS}={comment}"
        self.pair = Pattern(rf"{_ANY_WS}(?:[)）]|{more}{end})|{_MANY}")
        self.positional = Pattern(rf"{_ANY_WS}(?:[=:＝：)）]|{more}{end})|{_MANY}")
        self.of_pairs = self.member, self.equals, self.pair, self.positional
        self.colon_and_value = Pattern(rf"[:：]{_ANY_WS}(?:[\"'\[({{]|{re.escape(form.quote)})")
        self.no_key = Pattern(rf"{_ANY_WS}[^\w \t\r\n\\]|[ \t\r\n]{{1,64}}+{_A_SCALAR}{_ANY_WS}[,}}\]]|{MARKED_KEY}:")
        self.no_string = Pattern(
            rf"{_ANY_WS}\+{_ANY_WS}[\"']|{_ANY_WS}:{_ANY_WS}(?:[\"{{\[]|{_A_SCALAR}{_ANY_WS}[,}}\]])|{_MEMBER}"
        )
        self.no_python = Pattern(
            rf"{_ANY_WS}\+{_ANY_WS}[\"']|[ \t\r\n]{{1,64}}+[\"']|{_ANY_WS};{_ANY_WS}{MARKED_KEY}{_ANY_WS}="
        )
        bracketed = form.body == "arguments" and tail.endswith(r"\]")
        bracket = rf"{_ANY_WS}\][ \t]{{0,64}}+\r?\n{_ANY_WS}[^\s\"',:=)\]}}，：＝）］】｝]"
        call = rf"{_FEW}{anonymous('{name}')}{_FEW}\("
        next_call = rf"[ \t]{{0,16}}+(?:[\r\n]{call}|{call}{_FEW}{MARKED_KEY}{_FEW}=[^=])"
        in_list = form.body == "arguments" and form.opener and not form.tail
        self.shut = Pattern(bracket) if bracketed else Pattern(next_call) if in_list else None
        told = form.body == "arguments" and (form.tail or form.separator)
        shut = _shut(form) if form.tail else f"{_shut(form)}|{anonymous(form.closer)}"  # its own bracket may be missing
        self.over = Pattern(rf"{_ANY_WS}(?:）|{more}|{shut})") if told else None
        self.over_pair = Pattern(rf"{_ANY_WS}(?:{COMMA_AND_PAIR.text}|{shut})") if told else None
        another_one = rf"[,，]{_ANY_WS}(?:{_QUOTED_KEY}|{MARKED_KEY}{_ANY_WS}(?:=[^=]|[:：]))"
        last = rf"|(?:[)}}\]]{_FEW}){{1,8}}(?:{anonymous(form.closer)})" if form.closer and not form.tail else ""
        self.odd = Pattern(rf"{_ANY_WS}(?:{another_one}|{_shut(form)}{last})")
        self.doubled = Pattern(rf"\}}{_FEW}\}}{_FEW}(?={tail})") if tail and form.body == "envelope" else None
        own = {form: _begin(form)} | {other: _begin(other) for row in others for other in row.forms}
        listened = "".join(other.begins for other, begin in own.items() if begin)
        first = "".join(map(re.escape, dict.fromkeys(_signs() + listened)))
        signs = first + r"\\\x00-\x1f\ud800-\udfff"
        passed = [re.escape(char) for char in '"\\/nrt' if char not in listened and "\\" not in listened]
        escaped = rf"(?:(?<!\\)|(?![{''.join(passed)}]))" if passed else ""  # an escape passes if it begins no marker
        counted = "()" if told else ""
        quoting = f'["{signs}{counted}]'
        self.stops = short(quoting, re.compile(quoting + escaped).search)
        self.plain = {quote: Pattern(rf"""([^"'{signs}]*+){quote}""") for quote in "\"'"}
        self._signs = signs
        self._remarks = not any(char.isalnum() for char in form.begins)
        self._form = form
        self._others = others
        self._line_heads = line_heads
        self._own = [anonymous(begin) for begin in own.values() if begin]
        self._begins = re.compile(f"[{first}]").search
        letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-."
        ended = Pattern(tail or "(?!)")
        self._quick = "" if any(ended.match(char, 0) or ended.may_match(char, 0) for char in letters) else _QUICK
        self._inside: dict[tuple[str, Pattern, Pattern | None, bool], Callable[..., re.Match[str] | None] | None] = {}

    def inside(
        self, quote: str, ends: Pattern, refuses: Pattern | None, *, odd: bool
    ) -> Callable[..., re.Match[str] | None] | None:
        """Match what stands in a string without any doubt, once a `quote` in it was taken for a character.

        It passes by each further quote of which nothing that `ends` or `refuses` knows is there, or may be once more
        text has come: a string that is full of them costs one match. No quote opens a pair where `APART` follows;
        `odd`: one is open. None where that cannot be put into a pattern.
        """
        key = quote, ends, refuses, odd
        if key not in self._inside:
            asked = [ends, *([] if refuses is None else [refuses])]
            waits = [pattern.unfinished for pattern in (*asked, APART[quote], self._alarm.pattern)]
            behind = "|".join(anonymous(pattern.text) for pattern in asked)
            begins = self._alarm.begins
            escapes = "".join(re.escape(char) for char in "\"\\/nrt'" if re.escape(char) not in begins)
            far = rf"(?=(?s:.{{{HOLD_LIMIT + 1}}}))"  # the end of the text is too far away to be waited for
            content = (
                rf"(?:[^{quote}\\\ud800-\udfff{begins}]++"
                rf"|\\(?:[{escapes}]|[^\"'\\/bfnrtux\x00-\x1f\ud800-\udfff{begins}])"
                rf"|(?=[{begins}])(?!{self._alarm.pattern.text})(?:{far}|(?!{waits[-1]}))(?s:.))*+"
            )
            doubt = "|".join(map(str, waits[:-1]))
            closes = rf"{quote}(?:{self._quick}(?!{behind})(?:{far}|(?!{doubt}))){content}"
            opens = rf"{quote}(?!{APART[quote].text}){closes.removeprefix(quote)}"
            one, other = (closes, opens) if odd else (opens, closes)
            pattern = f"{content}(?:{one}{other})*+(?:{one})?+"
            begun = {quote, re.escape("\\")} & set(re.findall(r"\\.|[^\\]", begins))  # not looked at by what is above
            self._inside[key] = None if None in waits or begun else re.compile(pattern).match
        return self._inside[key]

    @cached_property
    def runs(self) -> Runs:
        """What passes by members and items where nothing is in doubt."""
        return Runs(
            self._signs, blanks=r"[ \t\r\n]{0,64}+", key=KEY_PATTERN, quoted_key=_QUOTED_KEY, item=_ITEM,
            remarks=self._remarks and bool(self._quick),
        )  # fmt: skip

    @cached_property
    def _row(self) -> Dialect | None:
        """The row of the form, where its calls begin lines."""
        rows = (row for row in (*self._others, *dialects()) if self._form in (*row.forms, *row.variants))
        return next(rows, None) if self._form.line_start and self._form.alone else None

    @cached_property
    def lines(self) -> Pattern | None:
        """What begins a line: another marker, or what stands beside calls that begin lines."""
        texts = [*(self._row.lines if self._row is not None else ()), *self._line_heads]
        return Pattern("|".join(map(anonymous, texts))) if texts else None

    @cached_property
    def next_line(self) -> Pattern | None:
        """What begins the next call or a result where calls begin lines: in an argument list it looks like a pair."""
        row = self._row
        if row is None:
            return None
        forms = [form for form in (*row.forms, *row.variants) if form.line_start and form.alone]
        heads = dict.fromkeys(head for form in forms for head in (form.opener + form.head, *form.loose_heads))
        return Pattern("|".join(map(anonymous, (*heads, *row.results))))

    @cached_property
    def _opener(self) -> Watched:
        return Watched(Pattern("|".join([openers(), *self._own])))

    @cached_property
    def _alarm(self) -> Watched:
        lined = rf"|[\r\n][ ]{{0,3}}(?:{'|'.join(map(anonymous, self._line_heads))})" if self._line_heads else ""
        return Watched(Pattern(f"{self._opener.pattern.text}|{_shut(self._form)}{lined}"))

    def opener(self, buffer: str, start: int, end: int) -> Alarm | None:
        """Return the first place from `start` up to `end` where a marker begins, or may begin."""
        return self._opener.find(buffer, start, end) if self._begins(buffer, start, end) else None

    def alarm(self, buffer: str, start: int, end: int) -> Alarm | None:
        """Return the first place from `start` up to `end` where a marker's end or beginning stands, or may stand."""
        return self._alarm.find(buffer, start, end)


@lru_cache(maxsize=1024)
def lookahead(form: Form, others: tuple[Dialect, ...] = (), line_heads: tuple[str, ...] = ()) -> Lookahead:
    """Return the look-ahead of `form` where `others`, and markers that begin lines, are listened for; compiled once."""
    return Lookahead(form, others, line_heads)
