"""Where code and block quotes begin and end: CommonMark's rules, said once for reading and for writing.

- A line that begins with `>` is a block quote.
- A line of three or more backticks or tildes opens a fence (behind backticks no other backtick may stand on that line),
  which a line of at least as many of the same, and nothing else, closes, unless it is indented by more than INDENT
  columns more than the fence: that one is quoted in it. A special token (TOKEN) may stand directly behind such a run,
  as models write it without a line break; but not where a line in the fence began with a run that closed nothing: that
  looks like an answer that is quoted, with a fence of its own. No token is a language: such a run opens no fence.
- A line ends with LF, CR or CRLF. A mark of the byte order is no part of the first one.
- Both may stand behind the bullets or numbers of list items, and be indented as far as lists are. A fence that is
  indented by more than INDENT columns ends before the first line that is not: with its list item, or, where no list
  is, with the indented code that it is.
"""

from __future__ import annotations

import re
from typing import Final

BYTE_ORDER_MARK: Final = "\ufeff"
"""What may stand before the first line of a text."""

INDENT: Final = 3
"""Columns by which a line may be indented, and a closing fence more than the one that it closes."""

LINE_LIMIT: Final = 256
"""Characters of a line that tell fences: an info string that is longer opens none."""

_ITEMS: Final = r"[ \t]{0,64}+(?:(?:[-+*]|[0-9]{1,9}+[.)])[ \t]{1,16}+){0,8}+"  # indented, behind marks of list items
FENCE = re.compile(rf"(?P<before>{_ITEMS})(?P<run>`{{3,}}+|~{{3,}}+)")
FENCE_LINE = re.compile(rf"^{_ITEMS}(?:```|~~~).*+", re.MULTILINE)
QUOTE = re.compile(rf"{_ITEMS}>")

TOKEN: Final = re.compile(r"<[|｜]|\[[A-Z_]{4,32}+\]")
"""How special tokens begin. Other markers are quoted in fences, between three backticks too, and so end none."""

QUOTING_TAG: Final = r"<(?:(?P<closes>/)|(?P<opens>))(?P<tag>(?i:pre|code))(?:[ \t][^<>\r\n]{0,128}+)?>"
"""What opens and closes code in HTML, where markers are examples."""


def fence_behind(line: str, runs: int, run: str, column: int, *, nested: bool = False) -> tuple[str, int]:
    """Return the fence that is open behind a whole line: its run and the column of that; ("", 0) for none.

    runs         how many runs of backticks stand on the line
    run, column  the fence that is open before it
    nested       whether a line in that began with a run that closed nothing
    """
    shown = line[:LINE_LIMIT].rstrip(" \t\r\n")
    found = FENCE.match(shown)
    if found is None:
        return run, column
    before = found["before"].expandtabs(4)
    at_token = TOKEN.match(shown, found.end()) is not None
    if not run:
        opens = (runs == 1 or found["run"][0] == "~") and not at_token
        return (found["run"], len(before)) if opens else ("", 0)
    ends = found.end() == len(shown) or (at_token and not nested)
    closes = ends and found["run"].startswith(run) and not before.strip()
    return ("", 0) if closes and len(before) <= column + INDENT else (run, column)


def closes_before(line: str, run: str, column: int) -> bool:
    """Return whether a fence that is open ends before a special token, of whose line all before it is `line`."""
    return len(line) < LINE_LIMIT and not fence_behind(line, 0, run, column)[0]


def begins_run(line: str, run: str) -> bool:
    """Return whether a line begins as one does that opens or closes a fence of the sign of `run`."""
    found = FENCE.match(line)
    return found is not None and found["run"][0] == run[0]


def code_behind(code: int, run: int) -> int:
    """Return the length of the run of backticks that has opened the inline code which is open behind another run.

    code, run   that length before it, 0 for no such code; the length of the other run, on the same line
    """
    return run if not code else 0 if run == code else code


def leaves_item(line: str, column: int) -> bool:
    """Return whether a fence that stands at a column ends before a line, of which the beginning will do."""
    if column <= INDENT:
        return False
    inside = line.lstrip(" \t")
    return bool(inside.strip()) and len(line[: len(line) - len(inside)].expandtabs(4)) <= INDENT
