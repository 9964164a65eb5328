"""How patterns and templates of rows are written.

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
from typing import Final

from callmark.errors import DialectError

OBJECT: Final = "{object}"
BRACE: Final = r"(?=\{)"
"""What stands behind the heads of many forms."""

ANY_NAME: Final = r"[^\W\d][0-9A-Za-z_.:/\-\w]{0,127}+"
"""What {name} stands for, without its group: a name in a look-ahead, or that of another call. The ranges say nothing
that `\\w` does not: `re` tells sooner what is in them, and most names are."""

BLANKS: Final = " \t\r\n"
"""The white space of JSON, and of all dialects."""
BLANKS_LIMIT: Final = 64
"""Characters that {ws} matches, at most."""
LONE: Final = re.compile(r"[\ud800-\udfff]")
"""Half of a surrogate pair, which no UTF-8 can hold."""

ABBREVIATIONS: Final = {
    "{ws}": rf"[ \t\r\n]{{0,{BLANKS_LIMIT}}}+",
    "{name}": f"(?P<name>{ANY_NAME})",
    OBJECT: BRACE,
    "{key}": r"(?P<key>[^<>\"' \t\r\n][^<> \t\r\n]{0,255}+(?:[ \t]{1,8}+[^<> \t\r\n]{1,32}+){0,8}+)",
}
PLACE: Final = re.compile(r"\{([a-z_]+)\}")
"""What a template has in the place of a value."""

_GROUP_NAME = re.compile(r"\(\?P<\w+>")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*+\]|\\.", re.DOTALL)
_AS_RE_HAS_IT: Final = {"w": r"\p{L}\p{N}_", "s": r"\s\x1c-\x1f"}
_WITHOUT: Final = {"W": r"\n", "S": "x"}  # what is none of them, in their place


def expand(pattern: str) -> str:
    """Return `pattern` with the abbreviations written out."""
    for short, long in ABBREVIATIONS.items():
        pattern = pattern.replace(short, long)
    return pattern


def anonymous(pattern: str) -> str:
    """Return `pattern` with the abbreviations written out and its groups without names, to put it into others."""
    return _GROUP_NAME.sub("(?:", expand(pattern))


def is_alternatives(pattern: str) -> bool:
    r"""Return whether a `|` of a pattern stands outside of its brackets and sets.

    >>> is_alternatives(r"<(?:a|b)\|c>[|]"), is_alternatives("<(?:a|b)>|c")
    (False, True)
    """
    around = _CLASS.sub("", pattern)
    while "|" in around and "(" in around and around != (inner := re.sub(r"\([^()]*\)", "", around)):
        around = inner
    return "|" in around


def for_regex(pattern: str) -> str:
    r"""Return the pattern with which the module `regex` matches what `re` does with `pattern`.

    To `re` numbers like `½` are parts of words, to `regex` marks that are put on letters; and four separators are
    white space to `re` alone.

    >>> for_regex(r"[\w.]+(?=\W)")
    '[\\p{L}\\p{N}_.]+(?=(?:[\\n]|[^\\p{L}\\p{N}_]))'
    """
    return _CLASS.sub(lambda found: _for_regex(found[0]), pattern)


def _for_regex(found: str) -> str:
    """Do so for a set, or an escape."""
    if found[0] == "\\":
        return _for_regex(f"[{found}]") if found[1] in "wWsS" else found
    escapes = set(re.findall(r"\\(.)", found, re.DOTALL))
    members = re.sub(r"\\(.)", lambda it: {**_AS_RE_HAS_IT, **_WITHOUT}.get(it[1], it[0]), found, flags=re.DOTALL)
    others = [f"[^{_AS_RE_HAS_IT[letter.lower()]}]" for letter in sorted(escapes & _WITHOUT.keys())]
    if not others:
        return members
    either = "|".join(["[" + members.removeprefix("[").removeprefix("^"), *others])
    return f"(?:(?!{either})(?s:.))" if found[1] == "^" else f"(?:{either})"


def named_tool(groups: Mapping[str, str | None]) -> str | None:
    """Return the name of the tool in what only salvage takes, of which these are the groups."""
    name = groups.get("tool", groups.get("name"))
    return name and name.replace("\\_", "_")


def respelled(tag: str) -> str:
    """Return the pattern of a closing tag with blanks in it, "" where the pattern `tag` is of none, or of more."""
    name = re.fullmatch("</([^<>]+)>", tag)
    return rf"</[ \t]{{0,4}}+{name[1]}[ \t]{{0,4}}+>" if name else ""


def compile_pattern(where: str, pattern: str) -> re.Pattern[str]:
    """Return a pattern without abbreviations, compiled. Raises DialectError that says where and what is wrong."""
    try:
        return re.compile(pattern)
    except re.error as error:
        found = pattern[error.pos :]
        raise DialectError(f"{where}: no valid pattern: {error.msg}, in {found!r:.80}") from error


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its {places} filled in, in one pass: what is filled in is never filled in again."""
    return PLACE.sub(lambda place: values.get(place[1], place[0]), template)
