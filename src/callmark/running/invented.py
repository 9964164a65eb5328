"""`Invented`: finds, behind a call in what a model writes, the result that it makes up instead of waiting for one.

Behind a call, text is taken line by line, so that such a result is seen before any of it is out. What tells it are the
headers under which results are told, and what begins one in the templates of models, at the beginning of a line; right
behind the call words are enough that prose may hold elsewhere. Whose text it is, and what it is for, is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from callmark.dialects import Dialect, dialects
from callmark.dialects.notation import anonymous
from callmark.dialects.tokens import SPECIAL_TOKENS
from callmark.languages import Language, language_of

HEADER_LIMIT: Final = 600
"""Characters of a line behind a call in which the beginning of a result is looked for: a name and an id fit."""
_BEGUN: Final = re.compile(r"[ \t]*+(?:```\w{0,16}+[ \t]*+(?:\n[\[{\s]*+)?|[\[{][\[{\s]*+)")
"""A line of nothing but what opens a block or an object: right behind a call, what it is shows in the next one."""


class Invented:
    """Gives text back, but for that from a result on which a model invents behind a call of its own.

    language   in which results are told
    tools      names of the tools; what is called counts too
    rows       dialects of one's own, whose results count too

    `behind` says that there was a call, `found` that there is such a result behind it: the message ends there. `open`
    says that there is text behind the last call, `held` how many characters wait for the rest of their line. What is
    given back depends on where calls and ends of lines are, and not on how the text is cut.

    >>> text = Invented("en", ["look"], ())
    >>> text.feed("Result of look: 1")
    'Result of look: 1'
    >>> text.call("look")
    >>> text.feed(" So."), text.feed(" Then.\\nResult of"), text.feed(" look: 2\\nThree."), text.found
    ('', ' So. Then.\\n', '', True)
    """

    def __init__(self, language: str | Language, tools: Iterable[str], rows: Iterable[Dialect]) -> None:
        self.behind = self.found = self.open = False
        self._language = language
        self._rows = tuple(rows)
        self._tools = frozenset(tools)
        self._others: frozenset[str] = frozenset()  # what was called and is none of them
        self._made: tuple[_Patterns, ...] = ()  # once they are asked for
        self._line = ""
        self._long = False  # whether the line is too long already to begin a result

    @property
    def held(self) -> int:
        """How many characters are not given back yet."""
        return len(self._line)

    def call(self, name: str) -> None:
        """Say that a call of `name` stands here; what was before it is at its `end`."""
        if name not in self._tools and name not in self._others:
            self._others |= {name}
            self._made = ()
        self.behind = True
        self.open = self._long = False

    def feed(self, text: str) -> str:
        """Take the next piece of text, and give back what is certain now."""
        if not self.behind or self.found:
            return "" if self.found else text
        *lines, rest = (self._line + text).split("\n")
        certain: list[str] = []
        begun = self._line = ""
        for line in lines:
            line, begun = begun + line, ""
            if not self._long and not self.open and len(line) <= HEADER_LIMIT and _BEGUN.fullmatch(line):
                begun = line + "\n"
                continue
            if not self._keeps(line):
                return "".join(certain)
            certain += (line, "\n")
            self._long = False
        if self._long:
            return "".join((*certain, rest))
        self._line = begun + rest
        if len(self._line) > HEADER_LIMIT:
            certain.append(self.end())
            self._long = not self.found
        return "".join(certain)

    def end(self) -> str:
        """Say that something else stands here, or that the text is over; give back what was held."""
        line, self._line = self._line, ""
        return line if self._keeps(line) else ""

    def _keeps(self, line: str) -> bool:
        if self.behind and line.strip():
            self.found = not self._long and self._begins_a_result(line[:HEADER_LIMIT])
            self.open = self.open or not self.found
        return not self.found

    def _begins_a_result(self, line: str) -> bool:
        if not self._made:
            own = frozenset(pattern for row in (*dialects(), *self._rows) for pattern in row.results)
            header = language_of(self._language).header
            self._made = tuple(_patterns(header, tools, own) for tools in (self._tools, self._others) if tools)
        return any((made.anywhere if self.open else made.at_once).match(line) is not None for made in self._made)


class _Patterns(NamedTuple):
    """How models begin a result that they invent, at the beginning of a line."""

    anywhere: re.Pattern[str]  # behind a call
    at_once: re.Pattern[str]  # right behind it, where words are enough that prose may hold elsewhere


@lru_cache(maxsize=64)
def _patterns(header: str, tools: frozenset[str], own: frozenset[str]) -> _Patterns:
    name = rf"""[`*_"']{{0,3}}(?:{"|".join(map(re.escape, sorted(tools)))})[`*_"']{{0,3}}"""
    own_id = r"(?:[ ]?\([^()\n]{1,255}\))?"
    colon = r"""[ `*_"']{0,4}[:：]"""
    header = re.escape(header.rstrip(":："))
    of = rf"(?:[ ](?:(?:of|for|from)[ ])?{name})?{own_id}"
    result = "(?:response|result|output)s?"
    keys = rf"(?:(?:tool_|function_)?(?:{result}|returns?)(?:_value)?|observation|status|success|error|data|content)"
    anywhere = (
        header.replace(r"\{name\}", name).replace(r"\{id\}", own_id) + "[ ]?[:：]",
        rf"\[/?(?:(?:tool|function|call)[ _])?results?{of}[ ]?[\]:=]",
        rf"</?\|?(?:tool|functions?|call)_?{result}\b",
        rf"(?<=```)(?:tool|function|call)_{result}\b",
        rf"(?:tool|function|call)[ _]?{result}{of}{colon}",
        rf"(?:工具|函[数數])(?:[调調]用)?[ ]?(?:{name})?[ ]?的?(?:[执執]行|返回)?[结結]果{own_id}{colon}",
        *SPECIAL_TOKENS,
        *map(anonymous, sorted(own)),
    )
    at_once = (
        *anywhere,
        rf"(?:{result}|return(?:ed|s)?(?:[ ]value)?|error|[结結]果|返回值?|[输輸]出){of}{colon}",
        rf"{name}(?:\([^()\n]{{0,255}}\))?[ ]?(?:[:：]|(?:[-=]>|→)|(?:returned|{result})[ :：])",
        r"(?:[-=]{1,2}>|→|⇒)[ ]",
        rf"</?(?:{result}|observation)>",
        rf"""(?:(?<=```)\w{{0,16}}[ \t]*\n)?[\s\[]{{0,64}}\{{\s{{0,64}}["'](?:{keys}|tool_call_id)["'][ ]?:""",
    )
    says = r"(?:(?:user|human|system|tool|function)[ ]?[:：][ \t*_]{0,4})?"  # as models that continue a chat write it

    def at_the_beginning(patterns: Iterable[str]) -> re.Pattern[str]:
        return re.compile(rf"""[ \t>*_#`(\["'+-]{{0,16}}{says}(?:{"|".join(patterns)})""", re.IGNORECASE)

    return _Patterns(at_the_beginning(anywhere), at_the_beginning(at_once))
