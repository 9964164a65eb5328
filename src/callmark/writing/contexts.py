"""Keeps what others wrote from hiding the calls that stand behind it: in an open code fence, or in open thoughts.

Reading takes no call from either. The rules of fences are those of `reading.contexts`, and the tags around thoughts are
those of the dialects' rows and the usual ones; properties hold both sides together.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from callmark.dialects import Dialect, dialects, expand

_THOUGHTS: Final = (
    r"<(?:(?P<closes>/)|(?P<opens>))(?i:think|thinking|thought|reasoning)>",
    r"\[(?:(?P<closes>/)|(?P<opens>))THINK\]",
)
_ITEMS: Final = r"[ \t]{0,64}+(?:(?:[-+*]|[0-9]{1,9}+[.)])[ \t]{1,16}+){0,8}+"  # indented, behind marks of list items
_FENCE = re.compile(rf"({_ITEMS})(`{{3,}}+|~{{3,}}+)")
_QUOTE = re.compile(rf"{_ITEMS}>")
_INDENT: Final = 3  # columns: a fence that is indented by more ends with its list item
_LINE_LIMIT: Final = 256  # characters of a line that are looked at


def closed(text: str, row: Dialect) -> str:
    """Return a text with what closes its code fence or its thoughts, so that a call on the next line is read.

    Whoever listens for that dialect alone, or for all: tags that only others know are broken.
    """
    tags = _tags((row,))
    text = _tags(dialects()).sub(lambda tag: tag[0] if tags.fullmatch(tag[0]) else _broken(tag), text)
    opened: list[str] = []
    begun = 0  # where the contexts begin anew: behind the last tag
    pieces = []
    done = 0
    for tag in tags.finditer(text):
        if not opened:
            before, _, line = text[begun : tag.start()].rpartition("\n")
            if _open_fence(before):
                continue  # there it is a text
            if "`" in line or "~~~" in line or _QUOTE.match(line):  # there, too, or not: reading counts the backticks
                pieces += [text[done : tag.start()], _broken(tag)]
                done = tag.end()
                continue
        begun = tag.end()
        if _is(tag, "c"):
            opened = opened[:-1]
        elif _is(tag, "o"):
            opened.append(f"{tag[0][0]}/{tag[0][1:]}")
    if not all((found := tags.fullmatch(closer)) and _is(found, "c") for closer in opened):
        return closed(tags.sub(_broken, text), row)  # thoughts of a dialect that ends them in another way
    text, last = "".join([*pieces, text[done:]]), text[begun:]
    if opened:
        return "\n".join([text, *reversed(opened)])
    fence = _open_fence(last)
    return f"{text}\n{fence}" if fence else text


def unopened(line: str, row: Dialect) -> str:
    """Return one line in which no fence and no thoughts begin or end: a backslash breaks what would do so."""
    line = _tags((*dialects(), row)).sub(_broken, line)
    found = _FENCE.match(line)
    return f"{line[: found.start(2) + 1]}\\{line[found.start(2) + 1 :]}" if found else line


def _broken(tag: re.Match[str]) -> str:
    return f"{tag[0][0]}\\{tag[0][1:]}"


def _is(tag: re.Match[str], kind: str) -> bool:
    return any(value is not None and name.startswith(kind) for name, value in tag.groupdict().items())


@lru_cache(maxsize=4)
def _tags(rows: tuple[Dialect, ...]) -> re.Pattern[str]:
    """Return the pattern of all tags; what opens thoughts has a group `o` and a number, what closes them `c`."""
    patterns = dict.fromkeys([*_THOUGHTS, *(tag for row in rows for tag in row.tags)])
    numbered = (
        expand(pattern).replace("(?P<opens>", f"(?P<o{number}>").replace("(?P<closes>", f"(?P<c{number}>")
        for number, pattern in enumerate(patterns)
    )
    return re.compile("|".join(numbered))


def _open_fence(text: str) -> str:
    """Return the run of the fence in which a line behind `text` would stand, "" for none."""
    fence, indent = "", 0
    for line in text.split("\n"):
        inside = line.lstrip(" \t")
        if indent > _INDENT and inside.strip() and len(line[: len(line) - len(inside)].expandtabs(4)) <= _INDENT:
            fence, indent = "", 0
        shown = line[:_LINE_LIMIT].rstrip(" \t\r")
        found = _FENCE.match(shown)
        if found is None:
            continue
        before, run = found[1].expandtabs(4), found[2]
        if fence:
            whole = found.end() == len(shown) and run.startswith(fence)
            if whole and not before.strip() and len(before) <= indent + _INDENT:
                fence, indent = "", 0
        elif run[0] == "~" or len(re.findall("`+", line)) == 1:
            fence, indent = run, len(before)
    return fence if indent <= _INDENT else ""
