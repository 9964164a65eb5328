"""Events for eyes: what `callmark parse` shows on a terminal, and what `callmark explain` says anywhere.

Text is dim and stands as the model wrote it, but for blank lines around calls; a call shows its name and arguments, one
to a row; a problem shows where its marker begins, and the line of the source in which a caret points at what is wrong.
The source is kept for that, so memory grows with the text, which the wire form's does not.

Model text never reaches the terminal as it is: control characters (a terminal would obey them) and characters that
reorder the line are shown as pictures or escapes. Colours follow NO_COLOR and the terminal.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as Line

from callmark.dialects import Dialect
from callmark.events import Call, Event, JsonValue, Malformed, Notice, Span, Text
from callmark.reading.diagnosis import REORDERING, place_said

if TYPE_CHECKING:
    from callmark.reading.codes import Code
    from callmark.reading.findings import Finding

_PICTURES = (
    {code: chr(0x2400 + code) for code in range(0x20)}
    | {0x7F: "\u2421"}
    | {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
    | {code: f"\\u{code:04x}" for code in REORDERING}
)
_IN_LINE = _PICTURES | {0x09: " "}
_IN_TEXT = {code: picture for code, picture in _PICTURES.items() if code not in (0x09, 0x0A, 0x0D)} | {0x0D: ""}
_PARAGRAPH_END = re.compile(r"\n\r?\n")


class Screen(Console):
    """Standard output, or an open file, as rich writes to it: as it is, and where nobody reads on, that is an error."""

    def __init__(self, file: IO[str] | None = None) -> None:
        super().__init__(file=file, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Raise it, where rich would end the process with 1."""
        raise


class Transcript:
    """Shows a stream of events on standard output. `shown` is None, "calls" or "text"."""

    def __init__(self, shown: str | None) -> None:
        encoding = None if os.isatty(1) else "utf-8"  # a terminal shows what it can; a pipe gets what was written
        file = open(1, "w", encoding=encoding, errors="replace", closefd=False)  # noqa: SIM115 -- open with the process
        self._console = Screen(file)
        self._shown = shown
        self._lines = [""]
        self._starts = [0]
        self._after = "nothing"  # what was printed last: nothing, text, block
        self._withheld = ""  # white space at the end of the text: dropped where a block follows
        self._notices: list[Notice] = []  # until the paragraph that they speak of has been printed
        self._counts: Counter[str] = Counter()

    def show(self, chunk: str, events: Iterable[Event]) -> None:
        """Print the events that `chunk`, the next piece of the source, gave."""
        self._remember(chunk)
        for event in events:
            match event:
                case Text() if self._shown == "text":
                    if event.channel == "content":
                        self._console.out(event.text.translate(_IN_TEXT), end="")
                case Call() if self._shown != "text":
                    self._call(event)
                case Text() if self._shown is None:
                    self._text(event)
                case Malformed() if self._shown is None:
                    self._counts["malformed"] += 1
                    self._begin_block()
                    self._problem(event, event.name, "bold red", "✗")
                case Notice() if self._shown is None:
                    self._notices.append(event)

    def close(self) -> None:
        """Print what is left, and a line that sums up."""
        if self._shown is None:
            parted = self._after == "nothing" or (self._after == "text" and not self._notices)
            self._begin_block()
            if not parted:
                self._console.line()
            self._print_summary()

    def _remember(self, chunk: str) -> None:
        first, *others = chunk.split("\n")
        self._lines[-1] += first
        for line in others:
            self._starts.append(self._starts[-1] + len(self._lines[-1]) + 1)
            self._lines.append(line)

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset) - 1
        return line, offset - self._starts[line]

    def _text(self, event: Text) -> None:
        done = 0
        while self._notices and (
            gap := _PARAGRAPH_END.search(event.text, max(self._notices[0].span.end - event.span.start, done))
        ):
            self._write(event.text[done : gap.start()], event.channel)
            self._begin_block()
            done = gap.start()
        self._write(event.text[done:], event.channel)

    def _write(self, text: str, channel: str) -> None:
        text = self._withheld + text.translate(_IN_TEXT)
        body = text.rstrip()
        self._withheld = text[len(body) :]
        if self._after != "text":
            body = body.lstrip("\n")
        if body:
            if self._after == "block":
                self._console.line()
            self._console.out(body, end="", style="dim italic" if channel == "reasoning" else "dim")
            self._after = "text"

    def _begin_block(self) -> None:
        """End the paragraph, and print the notices that have waited for that."""
        self._withheld = ""
        if self._after == "text":
            self._console.line(2)
        self._after = "block"
        notices, self._notices = self._notices, []
        for notice in notices:
            self._counts["notices"] += 1
            self._problem(notice, None, "yellow", "!")

    def _call(self, call: Call) -> None:
        self._begin_block()
        self._counts["calls"] += 1
        line, column = self._place(call.span.start)
        self._console.print(
            Line.assemble(
                ("▶ ", "bold green"),
                (call.name.translate(_IN_LINE), "bold cyan"),
                (f"  {call.dialect} {line + 1}:{column + 1}", "dim"),
                (f"  {call.id.translate(_IN_LINE)}" if call.id else "", "dim"),
            ),
            soft_wrap=True,
        )
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(self._console.width // 3, 8))
        table.add_column(overflow="fold")
        arguments = call.arguments if isinstance(call.arguments, dict) else {"": call.arguments}
        for key, value in arguments.items():
            table.add_row(Line(key.translate(_IN_LINE), "blue"), _value(value, self._console.width * 2 // 3))
        if arguments:
            self._console.print(Padding(table, (0, 0, 0, 4), expand=False))
        if call.repairs:
            self._counts["repaired"] += 1
            places = [(repair.code, *self._place(repair.span.start)) for repair in call.repairs]
            told = ", ".join(f"{code} {line + 1}:{column + 1}" for code, line, column in places)
            self._console.print(Padding(Line(f"repaired: {told}", "yellow"), (0, 0, 0, 4)))

    def _problem(self, event: Malformed | Notice, name: str | None, style: str, sign: str) -> None:
        line, column = self._place(event.span.start)
        self._console.print(
            Line.assemble(
                (f"{sign} {event.code}", style),
                (f"  {name.translate(_IN_LINE)}" if name else "", "cyan"),
                (f"  {line + 1}:{column + 1}  ", "dim"),
                event.message.translate(_IN_LINE),
            )
        )
        place = place_said(event) if isinstance(event, Malformed) else None
        for row in self._excerpt(event.span if place is None else Span(place, place + 1), style):
            self._console.print(row, no_wrap=True, overflow="ignore", crop=False)

    def say(self, words: str, style: str = "") -> None:
        """Print words of our own, or of the model's, on lines of their own; "" prints nothing."""
        if words:
            self._console.print(Line(words.translate(_IN_TEXT), style), soft_wrap=True)

    def explain(self, finding: Finding, source: str) -> None:
        """Print a finding: where, what, the line with a caret, what was seen, expected and done."""
        style = {"malformed": "bold red", "repair": "green"}.get(finding.kind, "yellow")
        parts = [finding.kind, finding.code, finding.name, f"({finding.dialect})" if finding.dialect else ""]
        self._console.print(
            Line.assemble(
                (f"{source.translate(_IN_LINE)}:{finding.line}:{finding.column}  ", "dim"),
                (" ".join(part for part in parts if part).translate(_IN_LINE), style),
            ),
            soft_wrap=True,
        )
        at = self._starts[finding.line - 1] + finding.column - 1
        end = finding.span.end if finding.kind == "repair" else at + 1
        for row in self._excerpt(Span(at, max(end, at + 1)), style):
            self._console.print(row, no_wrap=True, overflow="ignore", crop=False)
        for label in ("seen", "expected", "done"):
            words = getattr(finding, label).translate(_IN_LINE)
            self._console.print(Line.assemble((f"  {label:<9} ", "dim"), words), soft_wrap=True)
        self._console.line()

    def _excerpt(self, span: Span, style: str) -> Sequence[Line]:
        """Return the source line in which `span` begins, cut to the terminal, and a caret under the span."""
        line, column = self._place(span.start)
        number = f"  {line + 1} │ "
        width = max(self._console.width - len(number), 16)
        source = self._lines[line].removesuffix("\r")
        before = source[max(column - width, 0) : column].translate(_IN_LINE)
        if column > width or cell_len(before) > width // 2:
            while cell_len(before) >= width // 2:
                before = before[1:]
            before = "…" + before
        end = column + min(span.end - span.start, width)
        marked = source[column:end].translate(_IN_LINE)
        shown = Line(before + marked + source[end : end + width].translate(_IN_LINE))
        shown.truncate(width, overflow="ellipsis")
        room = width - cell_len(before)
        caret = "^" + "~" * (min(cell_len(marked), room) - 1)
        blank = " " * (len(number) - 2) + "│ "
        return (
            Line.assemble((number, "dim"), shown),
            Line.assemble((blank + " " * cell_len(before), "dim"), (caret, style)),
        )

    def _print_summary(self) -> None:
        counts = self._counts
        parts = [(_number(counts["calls"], "call"), "bold green" if counts["calls"] else "bold")]
        if counts["repaired"]:
            parts.append((f"{counts['repaired']} repaired", "yellow"))
        if counts["malformed"]:
            parts.append((f"{counts['malformed']} malformed", "bold red"))
        if counts["notices"]:
            parts.append((_number(counts["notices"], "notice"), "yellow"))
        summary = Line(" · ").join(Line(text, style) for text, style in parts)
        self._console.print(summary)


def show_dialects(dialects: Sequence[Dialect]) -> None:
    """Print the table of dialects on standard output, which is a terminal."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("name", style="bold cyan", no_wrap=True)
    table.add_column("listens", no_wrap=True)
    table.add_column("looks like and is written by", overflow="fold")
    for dialect in dialects:
        listens = Line("by default", "green") if dialect.explicit else Line("by name", "yellow")
        table.add_row(dialect.name, listens, Line.assemble(dialect.title, "\n", (dialect.models, "dim")))
    Screen().print(table)


def show_findings(text: str, findings: Sequence[Finding], source: str, *, calls: bool) -> None:
    """Print what there is to say about `text`, which came from `source`, on standard output; `calls`: it holds some."""
    transcript = Transcript(None)
    transcript.show(text, ())
    for finding in findings:
        transcript.explain(finding, source)
    codes = sorted({finding.code for finding in findings} - {""})
    if codes:
        others = f", or {', '.join(codes[1:])}" if codes[1:] else ""
        hint = f"More: callmark explain --code {codes[0]}{others}"
    else:
        nothing = "Every call is well-formed, and nothing else" if calls else "There is no call, and nothing"
        hint = "" if findings else f"{nothing} looks like one."
    transcript.say(hint)


def show_code(code: Code) -> None:
    """Print a code, explained, with its example and what reading says of that, on standard output."""
    transcript = Transcript(None)
    transcript.say(f"{code.code} ({code.kind})", "bold")
    transcript.say(f"  {code.meaning}\n  {code.advice}\n")
    for text in code.example:
        for row in text.split("\n"):
            transcript.say(f"  │ {row}", "dim")
    for event in code.read():
        match event:
            case Malformed() | Notice():
                transcript.say(f"  {event.code}: {event.message}")
            case Call():
                arguments = json.dumps(event.arguments, ensure_ascii=False)
                transcript.say(f"  read as a call of {event.name} with {arguments}")


def _value(value: JsonValue, width: int) -> Line:
    if isinstance(value, str):
        if "\n" in value.strip("\n"):
            return Line(value.removesuffix("\n").translate(_IN_TEXT), "green")
        return Line(json.dumps(value, ensure_ascii=False).translate(_IN_LINE), "green")
    text = json.dumps(value, ensure_ascii=False)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if cell_len(text) > width and any(isinstance(item, dict | list) for item in items):
        text = json.dumps(value, ensure_ascii=False, indent=2)
    return Line(text.translate(_IN_TEXT), "magenta")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
