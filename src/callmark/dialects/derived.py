"""What follows from the patterns of a form: what reading looks for beside them, and writing must not write.

Functions of a form that return the source of a pattern, with the abbreviations of `notation`; "" stands for none.
"""

from __future__ import annotations

import re

from callmark.dialects.model import Form
from callmark.dialects.notation import BRACE, OBJECT, anonymous, expand, respelled
from callmark.dialects.prefixes import first_characters, literals

NAMELESS = "(?P<nameless>"  # where the name of the tool is missing in a head
CLOSING_TAG = (  # of a name that models confuse with others, or in a spelling that nothing else has
    r"</[ \t]{0,4}+(?i:tools?|calls?|func(?:tion)?s?|invoke|(?:tool|function)(?:\\?_|[ \-])?(?:calls?|use|response))"
    r"(?:=[\w.:/\-]{1,128}+)?[ \t]{0,4}+>"
    r"|<\\/(?i:tool_calls?)>|</?\|/?(?i:tool_calls?)\|>|\[/(?i:tool_calls?)\]|</(?i:tool_calls?)(?=[ \t]{0,64}+\r?\n)"
)
_VALUE_TAGS = "(?:param(?:eter)?s?|arg_(?:key|value)|value)"  # around a value, in one dialect or another
_VALUE_TAG = f"</{_VALUE_TAGS}>"
_ARGUMENT = "arg(?:ument)?s?"  # as models call what stands in such a tag
_WORD_BEHIND = re.compile(r"[a-z_]{4,}\Z")
_STRAY = r"(?:</(?:arguments|parameters?|json)>|```|[;.]|\)?>)"  # what models write before a closing tag
_STRAY_FENCE = r"```(?=[ \t]{0,64}+\r?\n{ws}(?:[^\s<]|<[^/]))"  # as if the body had been fenced; text on the next lines
_NO_OBJECT = r"(?=[^ \t\r\n{｛])"  # the second brace is a repair of the first
_IN_STRING = r'(?P<told>)(?="{ws}\{)'
_IN_ANY_STRING = r'(?="(?:[ \t\r\n]|\\(?:[nrt]|u00(?:09|0[aAdD]|20))){0,64}+(?:["{]|\\u007[bB]))'  # or in an empty one


def own_delimiter(form: Form) -> str:
    """Return the delimiter of strings without escapes in a body of `form`, "" where there is none but those of JSON and
    Python.
    """
    return form.quote if form.body == "braces" or form.quote != '"' else ""


def structure(form: Form) -> str:
    """Return the pattern of what stands behind a value of `parameters`: elsewhere `value_end` is data."""
    return f"(?={'|'.join(map(anonymous, behind_values(form)))})"


def breaks_values(form: Form) -> str:
    """Return the pattern of what shows that a value of `parameters` was never closed, as it cannot stand in one."""
    return form.nested or (f"{form.opener}|{form.head}{structure(form)}" if form.opener else form.head)


def behind_values(form: Form) -> tuple[str, ...]:
    """Return the patterns of what may stand behind a value of `parameters`."""
    outer = (rf"{{ws}}{form.value_end}",) if form.item or form.member else ()
    return (form.parameter, *filter(None, [form.member]), form.tail, *outer)


def parameter_begun(form: Form) -> str:
    """Return the pattern of what a parameter literally begins with; "" where that has no letter, as text begins so as
    well, or where elements of values end so.
    """
    parameter = form.parameter.removeprefix("{ws}")
    texts = dict.fromkeys(literals(expand(parameter)))
    if form.item or not all(any(map(str.isalpha, text)) for text in texts):
        return ""
    return f"{form.parameter.removesuffix(parameter)}(?:{'|'.join(map(re.escape, texts))})"


def astray(form: Form) -> str:
    """Return the pattern of the end of a value behind which a parameter begins, and goes on wrongly where it is none:
    the call is wrong then, though it is read to its end. "" where `parameter_begun` is.
    """
    begin = parameter_begun(form)
    stop = "|".join(map(anonymous, filter(None, (form.value_end, tolerated_end(form)))))
    return expand(f"(?:{stop})(?={begin})") if begin else ""


def value_ends(form: Form) -> list[str]:
    """Return the patterns of what ends a value of `parameters`: `value_end` where structure follows (group `end`), or
    what tolerant reading takes for that (group `ended`), and the end in another spelling (group `respelled`).
    """
    stop = anonymous(form.value_end)
    loose = [anonymous(text) for text in (*form.loose_parameters, tolerated_tail(form)) if text]
    ends = [f"(?P<end>{stop}{structure(form)})"]
    if loose:
        ends.append(f"(?P<ended>{stop}(?={'|'.join(loose)}))")
    tolerated = tolerated_end(form)
    if tolerated:
        behind = "|".join([*map(anonymous, behind_values(form)), *loose])
        other = f"</(?!{stop[2:]}){tolerated[2:]}"  # else one of the others; it begins with a literal
        ends.append(f"(?P<respelled>{other}(?={behind}))")
    return ends


def tolerated_heads(form: Form) -> tuple[str, ...]:
    """Return the patterns of all heads that tolerant reading takes beside `head`: the loose ones with a name, and
    (group `told`) that of a body which was written as a JSON string as a whole, if no refused head takes it, or (group
    `null`) of none where a tail follows: else any text behind it would complete a call.
    """
    ways = [head for head in form.loose_heads if NAMELESS not in head]
    if form.body in ("json", "envelope") and form.head.endswith(BRACE) and form.alone and not form.repairs:
        ways.append(form.head.removesuffix(BRACE) + _IN_STRING)
    if form.head.endswith(OBJECT) and form.tail:
        begin = form.head.removesuffix(OBJECT)
        ways.append(rf"{begin}(?P<null>)(?P<empty>(?:null|\[\]){anonymous(form.tail)})")
    return tuple(ways)


def refused_heads(form: Form) -> tuple[str, ...]:
    """Return those of the heads with {object}, where something else follows: a call begins there, and is wrong."""
    return tuple(head + _NO_OBJECT for head in _before_objects(form))


def nameless_heads(form: Form, *, alone: bool) -> tuple[str, ...]:
    """Return those of the loose heads that have no name: a call begins there, too, and is wrong.

    Where it stands `alone`, tags of a form that has sections are text: the value would take in what prose goes on with.
    """
    if alone and form.opener and form.body == "parameters":
        return ()
    return tuple(head for head in form.loose_heads if NAMELESS in head)


def quoted_heads(form: Form) -> tuple[str, ...]:
    """Return those of the refused heads behind which a string stands that may hold the object: it is mended."""
    return tuple(head + _IN_ANY_STRING for head in _before_objects(form))


def _before_objects(form: Form) -> list[str]:
    return [head.removesuffix(OBJECT) for head in (form.head, *form.loose_heads) if head.endswith(OBJECT)]


def tolerated_end(form: Form) -> str:
    """Return the pattern of `value_end` with blanks in its tag, with the word `parameter` in short, or a neighbour's.

    "" where it is no tag.
    """
    if re.fullmatch(_VALUE_TAG, form.value_end):
        return respelled(_VALUE_TAG)
    return respelled(re.sub(r"parameter>\Z", "param(?:eter)?s?>", form.value_end))


def misspelt_end(form: Form) -> tuple[str, str]:
    """Return two patterns, "" twice where `value_end` is no tag or nothing shows that a value was never closed.

    The first takes, before what shows that (`unclosed`), any closing tag but `value_end`, also without its bracket, and
    the tag of `value_end` without its slash. It is asked all the time, and as short as can be.

    The second says which of these were meant as `value_end`: with a name in its tag, with letters typed wrong, without
    its bracket or slash, with another word, or a neighbour's. Elements of values, too, have the names in the group
    `argument` (a word for arguments) and in the group `word` (it may be the key).
    """
    name = re.fullmatch("</([^<>]+)>", form.value_end)
    if name is None or not form.unclosed:
        return "", ""
    word = _WORD_BEHIND.search(name[1])
    prefix = name[1][: word.start()] if word is not None else ""
    first = first_characters(expand(form.unclosed))  # a line break alone: values speak of such tags within lines
    line = r"\r?\n" if first is not None and "<" not in first else r"(?:\r?\n)?"
    tags = rf"</(?!{name[1]}>)[^<>\r\n]{{1,64}}+>?|{line}<{name[1]}>"
    ways = [rf"(?:\r?\n)?</?{name[1]}(?:[ =][^<>]{{1,32}}+)?>?"]
    if word is not None:
        ways.append(f"</{prefix}{_typed(word[0])}>")
    if prefix:
        ways.append(f"</{prefix}{_ARGUMENT}>")
    if not re.fullmatch(_VALUE_TAG, form.value_end):
        ways.append(_VALUE_TAG)
    ways += [f"</(?P<argument>{_ARGUMENT})>", f"</(?:{prefix})?(?P<word>[^<>]{{1,64}}+)>"]
    return f"(?:{tags})(?={form.unclosed})", "|".join(ways)


def _typed(word: str) -> str:
    """Return the pattern of a word in any case with two letters behind its first one typed wrong; in a short word, to
    which others are near, one that is not the last. Its words may be apart, or it in the plural.
    """
    wrong = 1 if len(word) < 7 else 2
    places = range(1, len(word) - 1)
    ways = (rf"{word[:at]}[\w \-]{{0,{wrong + (at < places[-1])}}}{word[at + wrong :]}" for at in places)
    return f"(?!{word}>)(?i:{'|'.join(ways)})s?"  # as it comes with every value, the right word tries no place


def foreign(form: Form) -> str:
    """Return the pattern of an opener that a neighbour's closer may belong to: behind it, none ends a value of ours."""
    return rf"<{_VALUE_TAGS}(?:[ \t=][^<>\r\n]{{0,256}}+)?>" if re.fullmatch(_VALUE_TAG, form.value_end) else ""


def tolerated_tail(form: Form) -> str:
    """Return the pattern of what tolerant reading takes where the tail is due: what `loose_tail` says; another closing
    tag behind JSON, or the same without its slash, and with blanks in it behind values, where the tail is one; or
    `next_marker`.
    """
    return "|".join(filter(None, [other_tail(form), next_marker(form)]))


def other_tail(form: Form) -> str:
    """As `tolerated_tail`, without `next_marker`."""
    ways = [form.loose_tail]
    group = "?:" if "(?P<wrong>" in form.loose_tail else "?P<wrong>"  # a pattern has one group of a name
    tag = form.tail.removeprefix("{ws}")
    other = respelled(tag)
    if form.body in ("json", "envelope") and form.tail.startswith("{ws}</"):
        unslashed = f"|{tag.replace('/', '', 1)}" if other else ""  # it is none where a marker begins with it
        ways.append(rf"{{ws}}({group}{CLOSING_TAG}|{_STRAY_FENCE}|{_STRAY}{anonymous(form.tail)}{unslashed})")
    elif other and form.body == "parameters":
        ways.append(f"{{ws}}({group}{other})")
    return "|".join(filter(None, ways))


def next_marker(form: Form) -> str:
    """Return the pattern of a look-ahead to the next marker of this form, before which the tail was forgotten; "" where
    that is not certain. Behind a head it is not: two openers are mentioned, and nothing is called.
    """
    if form.body == "arguments" or form.line_start or form.tail[-1:] in ("", *")]}"):
        return ""
    nexts = [form.nested or form.opener or form.head] if form.body == "parameters" else [form.opener, form.head]
    literal = [begin for begin in nexts if begin.lstrip("\\").startswith(tuple(form.begins))]
    return "|".join(f"(?=(?:{{ws}})?(?:{anonymous(begin)}))" for begin in literal)
