"""Keeps what others wrote from hiding the calls that stand behind it: in open code, or in open thoughts.

Reading takes no call from either. The tags around thoughts and the rules of fences are those that reading knows.
"""

from __future__ import annotations

import re
from functools import lru_cache

from callmark.dialects import Dialect, dialects
from callmark.dialects.fences import (
    BYTE_ORDER_MARK,
    FENCE,
    QUOTE,
    QUOTING_TAG,
    TOKEN,
    Fence,
    code_behind,
    fence_behind,
)
from callmark.dialects.notation import expand
from callmark.dialects.thoughts import (
    TAG_GROUPS,
    THOUGHT_TAGS,
    Thoughts,
    close_thought,
    kinds_of_thoughts,
    mention,
    open_thought,
)
from callmark.dialects.values import is_json

_RUN = re.compile("`+")
_QUOTING = re.compile(QUOTING_TAG)
_QUOTED = re.compile(r"[^`~<>\[]*+</(?i:pre|code)>")
"""What stands behind a tag of HTML that opens code, where it is certain that the code ends."""


def closed(text: str, row: Dialect) -> str:
    """Return a text with what closes its code fence or its thoughts, so that a call on the next line is read.

    Whoever listens for that dialect alone, or for all: tags that only others know are broken.
    """
    known = _tags((row,))
    tags = known.any
    text = _tags(dialects()).any.sub(lambda tag: tag[0] if tags.fullmatch(tag[0]) else _broken(tag), text)
    text = _QUOTING.sub(lambda tag: tag[0] if _ends(tag) else _broken(tag), text)
    lines = text.replace("\r", "\n")  # as reading takes it
    opened: Thoughts = {}
    mirrored: dict[str, list[str]] = {}  # by kind, the tags that opened them, as closers
    fence: Fence | None = None
    # `at` is where the current line begins, `looked` how far it was looked at, `done` how far the text is written.
    at = looked = int(text.startswith(BYTE_ORDER_MARK))
    code = 0  # the length of the run that has opened inline code on that line
    mentioned = 0  # tags in code that stands in a thought
    pieces = []
    done = 0
    for tag in tags.finditer(text):
        start, end = tag.span()
        line = lines.rfind("\n", looked, start) + 1
        if line:
            fence = _at_line(_behind(fence, lines[at : line - 1]), f"{lines[line:start]}.")
            at = looked = line
            code = 0
        for run in _RUN.findall(lines, looked, start):
            code = code_behind(code, len(run))
        looked = start
        ended = fence is not None and TOKEN.match(tag[0]) is not None and fence.ends_before_token(lines[at:start])
        if ended:
            fence, code = None, 0
        way, kind = known.way(tag)
        if fence or code or (not ended and _is_quoting(lines, at)):
            mentioned = mention(mentioned, way) if opened else 0
            if mentioned >= 0:  # there it is text, or would be if not for this backslash
                pieces += [text[done:start], tag[0] if fence and not opened else _broken(tag)]
                done = end
                continue
        if way == "answers" and opened:
            return closed(tags.sub(_broken, text), row)  # whether it ends the thought, the other kinds would tell
        if way == "closes":
            close_thought(opened, kind)
        elif way == "opens":
            mirrored.setdefault(kind, [])[opened.get(kind, 0) :] = [f"{tag[0][0]}/{tag[0][1:]}"]
            open_thought(opened, kind)
        fence, at, looked, code, mentioned = None, end, end, 0, 0  # behind a tag a new line begins
    closers = [closer for kind in reversed(opened) for closer in reversed(mirrored[kind][: opened[kind]])]
    if not all((found := tags.fullmatch(closer)) and known.way(found)[0] == "closes" for closer in closers):
        return closed(tags.sub(_broken, text), row)  # thoughts of a dialect that ends them in another way
    fence = _behind(fence, f"{lines[at:]}\n.")  # behind which a line that is not indented follows
    text = "".join([*pieces, text[done:]])
    if closers:
        return "\n".join([text, *closers])
    return f"{text}\n{fence.run}" if fence else text


def unopened(line: str, row: Dialect) -> str:
    """Return one line in which no fence and no thoughts begin or end: a backslash breaks what would do so, in JSON an
    escape.
    """
    broken = _escaped if is_json(line) else _broken
    line = _tags((*dialects(), row)).any.sub(broken, line)
    line = _QUOTING.sub(lambda tag: tag[0] if _ends(tag) else broken(tag), line)
    found = FENCE.match(line)
    return f"{line[: found.start('run') + 1]}\\{line[found.start('run') + 1 :]}" if found else line


def _is_quoting(lines: str, at: int) -> bool:
    """Whether the line that begins at index `at` is a block quote, or opens a fence of tildes: the whole of it does."""
    fence = FENCE.match(lines, at)
    return QUOTE.match(lines, at) is not None or (fence is not None and fence["run"][0] == "~")


def _broken(tag: re.Match[str]) -> str:
    sign = tag[0][0]
    return tag[0].replace(sign, f"{sign}\\")  # at each, as another tag may begin within


def _escaped(tag: re.Match[str]) -> str:
    sign = tag[0][0]
    return tag[0].replace(sign, f"\\u{ord(sign):04x}")


def _ends(tag: re.Match[str]) -> bool:
    """Whether a tag of HTML ends code, or opens what ends for certain."""
    return tag["closes"] is not None or _QUOTED.match(tag.string, tag.end()) is not None


class _Tags:
    """All tags of some rows, those with which a text begins, and those that all know."""

    def __init__(self, rows: tuple[Dialect, ...]) -> None:
        kinds = kinds_of_thoughts(rows)
        places = dict.fromkeys((*THOUGHT_TAGS, *(tag for row in rows for tag in row.tags)), "")
        places |= {lead: rf"\A{BYTE_ORDER_MARK}?" for row in rows for lead in row.leads}
        self._kinds = [kinds.get(pattern, "") for pattern in places]
        numbered = (
            place + re.sub(rf"\(\?P<({'|'.join(TAG_GROUPS)})>", rf"(?P<\g<1>{number}>", expand(pattern))
            for number, (pattern, place) in enumerate(places.items())
        )
        self.any = re.compile("|".join(numbered))

    def way(self, tag: re.Match[str]) -> tuple[str, str]:
        """Return what a tag does with thoughts, one of TAG_GROUPS, and of which kind; "" and "" for nothing."""
        for name, value in tag.groupdict().items():
            way = name.rstrip("0123456789")
            if value is not None and way in TAG_GROUPS:
                return way, self._kinds[int(name.removeprefix(way))]
        return "", ""


@lru_cache(maxsize=64)
def _tags(rows: tuple[Dialect, ...]) -> _Tags:
    return _Tags(rows)


def _behind(fence: Fence | None, lines: str) -> Fence | None:
    """Return the fence that is open behind whole lines, before which `fence` is; None for none."""
    for line in lines.split("\n"):
        fence = fence_behind(_at_line(fence, line), line, len(_RUN.findall(line)))
    return fence


def _at_line(fence: Fence | None, line: str) -> Fence | None:
    """Return the fence in which a line stands, of which the beginning will do."""
    return None if fence is not None and fence.ends_before(line) else fence
