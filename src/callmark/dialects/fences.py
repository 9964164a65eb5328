"""Where code and block quotes begin and end: CommonMark's rules, said once for reading and for writing.

- A line that begins with `>` is a block quote.
- A line of three or more backticks or tildes opens a fence (behind backticks no other backtick may stand on that line),
  which a line of at least as many of the same, and nothing else, closes, unless it is indented by more than INDENT
  columns more than the fence: that one is quoted in it. A special token (TOKEN) that begins a marker, or is a tag, may
  stand directly behind such a run, as models write it without a line break, and so may any that begins as CLOSING do;
  but not where a line in the fence began with a run that closed nothing: that looks like an answer that is quoted, with
  a fence of its own.
- A line ends with LF, CR or CRLF. A mark of the byte order is no part of the first one.
- Both may stand behind the bullets or numbers of list items, and be indented as far as lists are. A fence that is
  indented by more than INDENT columns ends before the first line that is not: with its list item, or, where no list
  is, with the indented code that it is.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from callmark.dialects.notation import BLANKS

BYTE_ORDER_MARK: Final = "\ufeff"
"""What may stand before the first line of a text."""

INDENT: Final = 3
"""Columns by which a line may be indented, and a closing fence more than the one that it closes."""

LINE_LIMIT: Final = 256
"""Characters of a line that tell fences: an info string that is longer opens none."""

_ITEMS: Final = r"[ \t]{0,64}+(?:(?:[-+*]|[0-9]{1,9}+[.)])[ \t]{1,16}+){0,8}+"  # indented, behind marks of list items
FENCE = re.compile(rf"(?P<before>{_ITEMS})(?P<run>`{{3,}}+|~{{3,}}+)")
FENCE_LINE = re.compile(rf"\n(?P<line>{_ITEMS}(?:```|~~~).*+)")  # with the line break before it: `re` skips to that
QUOTE = re.compile(rf"{_ITEMS}>")

TOKEN: Final = re.compile(r"<[|｜]|\[[A-Z_]{4,32}+\]")
"""How special tokens begin. Other markers are quoted in fences, between three backticks too, and so end none."""

CLOSING: Final = ("<|", "<｜")
"""How tokens begin that close a call: they may be all that is left of one."""

QUOTING_TAG: Final = r"<(?:(?P<closes>/)|(?P<opens>))(?P<tag>(?i:pre|code))(?:[ \t][^<>\r\n]{0,128}+)?>"
"""What opens and closes code in HTML, where markers are examples."""


class Fence(NamedTuple):
    """A fence that is open: its run, the column at which that stands, and whether a line in it began with a run that
    closed nothing.
    """

    run: str
    column: int
    quotes_another: bool = False

    @property
    def in_item(self) -> bool:
        """Whether it is indented as in the item of a list, with which it ends."""
        return self.column > INDENT

    def ends_before(self, line: str) -> bool:
        """Return whether it ends before a line, of which the beginning will do, as its item does."""
        if not self.in_item:
            return False
        inside = line.lstrip(" \t")
        return bool(inside.strip()) and len(line[: len(line) - len(inside)].expandtabs(4)) <= INDENT

    def ends_before_token(self, line: str) -> bool:
        """Return whether it ends before a special token, of whose line all before it is `line`."""
        return not self.quotes_another and len(line) < LINE_LIMIT and fence_behind(self, line, 0) is None


def fence_behind(fence: Fence | None, line: str, runs: int) -> Fence | None:
    """Return the fence that is open behind a whole line, before which `fence` is; None for none.

    runs    how many runs of backticks stand on the line
    """
    shown = line[:LINE_LIMIT].rstrip(BLANKS)
    found = FENCE.match(shown)
    if found is None:
        return fence
    before, run = found["before"].expandtabs(4), found["run"]
    if fence is None:
        return Fence(run, len(before)) if runs == 1 or run[0] == "~" else None
    ends = found.end() == len(shown) or (shown.startswith(CLOSING, found.end()) and not fence.quotes_another)
    alone = ends and not before.strip()
    if alone and run.startswith(fence.run) and len(before) <= fence.column + INDENT:
        return None
    return fence._replace(quotes_another=True) if run[0] == fence.run[0] else fence


def code_behind(code: int, run: int) -> int:
    """Return the length of the run of backticks that has opened the inline code which is open behind another run.

    code, run   that length before it, 0 for no such code; the length of the other run, on the same line
    """
    return run if not code else 0 if run == code else code
