"""Where a place in the text stands: in a code fence, in inline code, in a block quote, or nowhere special.

The rules are CommonMark's, without looking ahead, because what was read must not wait for what comes: those of fences
and quotes stand in `dialects.fences`; and a run of backticks opens inline code, which the next run of the same length
closes, or the end of the line: a stray backtick hides nothing on later lines. A CR ends a line as a LF does, and CRLF
so ends an empty one besides, which changes nothing: no CR need wait for the LF that may follow. Tags of HTML that make
code are found by who looks for markers, who hands them over.

The answer is wanted only where a marker may begin, so text is kept as it comes (some kilobytes at most) and read in
one go when somebody asks. Every character is read once.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from callmark.dialects.fences import (
    FENCE,
    FENCE_LINE,
    INDENT,
    LINE_LIMIT,
    QUOTE,
    Fence,
    code_behind,
    fence_behind,
)
from callmark.dialects.limits import BEHIND_CALL
from callmark.reading.characters import has_long_run
from callmark.reading.patterns import FENCE_RUN, LANGUAGE

Context = Literal["fence", "code", "quote"]

BATCH: Final = 1024
"""Characters that are kept before they are read: long enough to make the cost per chunk vanish."""

_LINE_BLANKS: Final = " \t\n"
_RUN: Final = re.compile(r"``*+")  # begins with a literal, to which `re` skips; "`++" would be tried everywhere
_CODE_REACH: Final = {"code": 256, "pre": 4096}
"""Characters that a tag of HTML makes code where it is never closed: a line in a sentence, a page of examples."""
# The fence that may follow a broken marker on its line, with a word behind the run, or it could be one that ends; and
# how it ends: with a run before what is left of the marker, or behind a bracket.
_OPENED: Final = re.compile(rf"[ \t]{{0,16}}+(?P<run>{FENCE_RUN.pattern}){LANGUAGE}\n?\Z")
_ENDED: Final = re.compile(r"[ \t]{0,64}+(?P<run>`{3,}+)(?:[)}\]<]|\Z)")
_CLOSED: Final = re.compile(r"[}\])][ \t]{0,16}+`{3,}+[ \t\n]{0,16}+\Z")
_ANEW: Final = "\n"  # as no line holds it, it stands for a call behind which another may begin as on a new line


class Contexts:
    """Tracks the context of the place that was reached: hand over what was read, and ask `here`.

    kept        text that was passed over and not read; who is in a hurry appends short pieces himself, and calls `read`
    code_tags   tags of code in HTML that are open, and `code_tags_end`, the position up to which they count
    """

    __slots__ = (
        "_code", "_fence", "_kept_size", "_line", "_owed", "_runs", "_sole", "_special", "_ticks", "code_tags",
        "code_tags_end", "kept",
    )  # fmt: skip

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.code_tags_end = 0
        self._owed: Fence | None = None  # that a broken marker has opened: until an empty line, it may be closed yet
        self.reset()

    def reset(self) -> None:
        """Forget all contexts: a new line begins, outside of every one."""
        self.kept.clear()
        self._kept_size = self.code_tags = 0
        self._special = bool(self._owed)  # whether the short way of `look` must not be taken
        self._fence: Fence | None = None  # in which we are
        self._sole = False  # nothing but white space stood in the fence so far; where none is open, it means nothing
        self._line = ""  # the beginning of the current line
        self._runs = 0  # runs of backticks on the current line
        self._code = 0  # length of the run that opened the inline code we are in
        self._ticks = 0  # length of a run of backticks that may go on

    def copy(self) -> Contexts:
        """Return another one at the same place."""
        self.read()
        other = Contexts()
        other._special, other._fence, other._sole = True, self._fence, self._sole
        other._line, other._runs, other._code, other._ticks = self._line, self._runs, self._code, self._ticks
        other._owed, other.code_tags, other.code_tags_end = self._owed, self.code_tags, self.code_tags_end
        return other

    def pass_text(self, text: str) -> None:
        """Take plain text that has been passed over."""
        self.kept.append(text)
        self._kept_size += len(text)
        if self._kept_size > BATCH:
            self.read()

    def look(self, text: str) -> Context | None:
        """Pass `text` and say where the place behind it is: `pass_text` and `here` in one, with a short way."""
        if self.kept:
            self.kept.append(text)
            text = "".join(self.kept)
            self.kept.clear()
            self._kept_size = 0
        if "\r" in text:
            text = text.replace("\r", "\n")
        last = text.rfind("\n") + 1
        if self._special or "~" in text or ("`" in text and (text.find("`", last) >= 0 or has_long_run(text))):
            self.pass_text(text)
            return self.here()
        line = text[last : last + LINE_LIMIT] if last else (self._line + text)[:LINE_LIMIT]
        self._line = line
        return "quote" if ">" in line and QUOTE.match(line) else None

    def pass_marker(self, raw: str, *, anew: bool = False) -> None:
        """Take a marker that has been passed over: what it holds opens and closes nothing, but each LF ends a line.

        `anew`: whether behind it another may begin as at the beginning of a line.
        """
        if self.kept:
            self.read()
        if self._ticks:
            self._end_run()
        self._sole = False
        if "\n" in raw:
            if self._special:
                self._end_line()
            self._line = ""
            if raw.endswith("\n"):
                return
        if anew:
            self._line = _ANEW
        elif len(self._line) < LINE_LIMIT:  # what begins a line has begun: behind it no fence or quote does
            self._line += "."

    def owe(self, run: str) -> None:
        """A fence that is a part of a broken marker, and not seen here, is open: the run that closes it opens none.

        "" for the one that the rest of this line may be: the marker broke where it begins.
        """
        self.read()  # what stands before that is no part of it
        if self._owed is None or run:
            self._owed = Fence(run, LINE_LIMIT if run else len(self._line))
        self._special = True  # until `here` looks

    def here(self) -> Context | None:
        """Return the context of the place behind everything that was passed over, where something begins."""
        self.read()
        if self._fence and not self._line.strip():
            self._leave_item(self._line + ".")
        self._special = bool(self._fence or self._runs or self._ticks or self._owed or "~" in self._line)
        if self._fence:
            return "fence"
        if ">" in self._line and QUOTE.match(self._line):
            return "quote"
        if "~" in self._line and not self._ticks:
            fence = FENCE.match(self._line)
            if fence is not None and fence["run"][0] == "~":
                return "fence"
        return "code" if self.in_code else None

    def end_fence(self) -> bool:
        """A special token stands here, in a fence: return whether all of its line before it has closed that."""
        ends = self._fence is not None and self._fence.ends_before_token(self._line)
        if ends:
            self._fence = None
            self._line = "."  # or tildes would open another one
        return ends

    @property
    def in_code(self) -> bool:
        """Whether the place is in inline code, also where that stands in a quote."""
        if self._ticks:
            return self._ticks != self._code and not self._ends_owed()
        return self._code > 0

    def at_line_start(self, indent: int, before: int) -> bool:
        """Whether the place is the beginning of a line, or nothing but `indent` spaces or fewer stands before it.

        Behind a call that ends by itself BEHIND_CALL may, and a comma before them; and INDENT where the text begins,
        `before` characters before.
        """
        self.read()
        line = self._line
        if line.startswith(_ANEW):
            line = line[1:].removeprefix(",")
            indent = max(indent, BEHIND_CALL)
        elif len(line) == before:
            indent = max(indent, INDENT)
        return len(line) <= indent and not line.strip(" ")

    def pass_code_tag(self, place: int, tag: str, *, opens: bool) -> None:
        """A tag of HTML before position `place` opens or closes code: what it opens has an end, as it may stay open."""
        if place >= self.code_tags_end:
            self.code_tags = self.code_tags_end = 0
        self.code_tags = max(0, self.code_tags + (1 if opens else -1))
        if opens:
            self.code_tags_end = max(self.code_tags_end, place + _CODE_REACH[tag.lower()])
        elif not self.code_tags:
            self.code_tags_end = 0

    @property
    def sole_fence(self) -> str:
        """The run that opened the fence we are in, if nothing but white space stood in it so far; else ""."""
        if self._fence is None or not self._sole or self._line.strip(_LINE_BLANKS):
            return ""
        return self._fence.run

    def read(self) -> None:
        """Read what was kept."""
        if not self.kept:
            return
        self._special = True  # until `here` looks
        text = self.kept[0] if len(self.kept) == 1 else "".join(self.kept)
        self.kept.clear()
        self._kept_size = 0
        if "\r" in text:
            text = text.replace("\r", "\n")
        if not (self._fence or self._ticks or self._owed or self._may_fence(text)):
            last = text.rfind("\n") + 1
            if last:
                self._line = ""
                text = text[last:]
            if "`" in text:
                self._read_line(text)
            elif len(self._line) < LINE_LIMIT:
                self._line += text[: LINE_LIMIT - len(self._line)]
            return
        first = text.find("\n") + 1
        if not first:
            self._read_line(text)
            return
        self._read_line(text[:first])
        last = text.rfind("\n") + 1
        if last > first:
            self._read_lines(text, first, last)
        if last < len(text):
            self._read_line(text[last:])

    @property
    def _by_lines(self) -> bool:
        """Whether each line matters, not only those that look like a fence."""
        return bool(self._owed) or (self._fence is not None and self._fence.in_item)

    def _may_fence(self, text: str) -> bool:
        """Whether a line that ends in `text` may be a fence: if not, only its last line matters."""
        if self._runs or "~" in self._line:
            return True
        return ("`" in text and has_long_run(text)) or ("~" in text and "~~~" in text)

    def _read_lines(self, text: str, at: int, end: int) -> None:
        """Read whole lines behind another: only those like a fence matter, but in a fence indented as in lists."""
        if text.find("```", at, end) >= 0 or text.find("~~~", at, end) >= 0:
            for found in FENCE_LINE.finditer(text, at - 1, end) if not self._by_lines else ():
                line = found["line"]
                self._line = line[:LINE_LIMIT]
                self._runs = len(_RUN.findall(line))
                self._end_line()
                at = found.end() + 1
                if self._by_lines:
                    break
        if self._by_lines:
            for rest in text[at:end].split("\n")[:-1]:
                self._read_line(f"{rest}\n")
        elif self._sole and text[at:end].strip(_LINE_BLANKS):
            self._sole = False

    def _read_line(self, line: str) -> None:
        """Read a piece of one line, its line break included where it has come."""
        room = LINE_LIMIT - len(self._line)
        if room > 0:
            self._line += line[:room]
        if self._sole and len(line) > room and line[max(room, 0) :].strip(_LINE_BLANKS):
            self._sole = False
        if self._fence:
            self._leave_item(self._line)
        if not self._fence:
            at = 0
            for run in _RUN.finditer(line):
                if run.start() > at:
                    self._end_run()
                self._ticks += run.end() - run.start()
                at = run.end()
            if at < len(line):
                self._end_run()
        if line.endswith("\n"):
            self._end_line()

    def _leave_item(self, line: str) -> None:
        """End a fence that is indented as in a list where the current line, which begins with `line`, is not."""
        if self._fence is not None and self._fence.ends_before(line):
            self._fence = None

    def _ends_owed(self) -> bool:
        """Whether the line begins with a run that closes what a broken marker has opened, and goes on with no word."""
        if self._owed is None or not self._owed.run:
            return False
        ended = _ENDED.match(self._line)
        return ended is not None and ended["run"].startswith(self._owed.run)

    def _end_run(self) -> None:
        if self._ticks and self._ends_owed():
            self._owed = None
            self._ticks = 0
            self._line = "."  # or it would open another one
        elif self._ticks:
            self._runs += 1
            self._code = code_behind(self._code, self._ticks)
            self._ticks = 0

    def _end_line(self) -> None:
        before, self._fence = self._fence, fence_behind(self._fence, self._line, self._runs)
        owed = self._owed
        if owed is not None and not owed.run:
            opened = _OPENED.match(self._line, owed.column) if not (before or self._fence or self._runs > 1) else None
            self._owed = Fence(opened["run"], LINE_LIMIT) if opened is not None else None
        elif owed is not None and before is None:
            if fence_behind(owed, self._line, self._runs) is None:
                self._fence = self._owed = None
            elif self._fence is not None or not self._line.strip(_LINE_BLANKS) or _CLOSED.search(self._line):
                self._owed = None
        if (self._fence is None) != (before is None):
            self._sole = before is None
        elif self._line.strip(_LINE_BLANKS):
            self._sole = False
        self._line = ""
        self._code = self._runs = 0
