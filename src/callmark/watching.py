"""Shows a session while it happens: what the model is told, what it writes, its calls and what they come to.

What models and tools say never reaches the terminal as it is: control characters, which a terminal obeys, and those
that reorder a line are shown as escapes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from callmark.events import Call, Malformed, Notice, Text
from callmark.reading.diagnosis import safe
from callmark.running.session import SessionEvent, Step
from callmark.tools.results import Result

Style = Callable[[str, str], str]  # a text and a colour's name; returns the text with what makes it that colour
_RAN: Final = ("timeout", "cancelled", "tool-error", "unserialisable", "outcome-unknown")  # the body, or it may have
_CUT: Final = 400  # characters of a result that are shown


class Watching:
    """Turns the events of a session into text for eyes. `style` colours it; what comes out is to be written at once.

    >>> watching = Watching(lambda text, colour: text)
    >>> watching.show(Step("generation", "Be kind."))
    'system    Be kind.\\n'
    """

    def __init__(self, style: Style) -> None:
        self._style = style
        self._writing = False  # whether the cursor stands behind text of the model
        self._system = ""

    def show(self, event: SessionEvent) -> str:
        """Return what one event looks like; "" where there is nothing to see."""
        match event:
            case Text(text=text) if not self._writing and not text.strip():
                return ""  # the line break between two calls, say
            case Text(text=text, channel=channel):
                label = "" if self._writing else self._label("model", "cyan")
                self._writing = True
                shown = safe(text)
                return label + (self._style(shown, "bright_black") if channel == "reasoning" else shown)
            case Call(name=name, arguments=arguments):
                return self._line("call", "green", f"{name}({json.dumps(arguments, ensure_ascii=False)})")
            case Malformed(code=code, message=message) | Notice(code=code, message=message):
                return self._line("notice", "yellow", f"{code}: {message}")
            case Result(name=name, ok=True, data=data):
                return self._line("result", "green", f"{name}: {json.dumps(data, ensure_ascii=False):.{_CUT}}")
            case Result(name=name, error=error) if error is not None:
                wait = "" if error.retry_after is None else f" (again in {error.retry_after:g} s)"
                label = "failed" if error.kind in _RAN else "refused"
                return self._line(label, "red", f"{name}: {error.kind}: {error.message}{wait}")
            case Step(kind="generation", text=text) if text and text != self._system:
                self._system = text
                return self._line("system", "bright_black", text)
            case Step(kind="retry" | "continuation" | "cut" | "no-tools" as kind, text=text):
                return self._line("go on" if kind == "continuation" else kind, "magenta", text)
            case Step(kind="answer" | "cancelled" as kind):
                return self._line("end", "cyan", kind)
        return ""

    def say(self, who: str, text: str) -> str:
        """Return a line that somebody else says."""
        return self._line(who, "blue", text)

    def _line(self, label: str, colour: str, text: str) -> str:
        before = "\n" if self._writing else ""
        self._writing = False
        indented = safe(text).replace("\n", "\n" + " " * 10)
        return f"{before}{self._label(label, colour)}{indented}\n"

    def _label(self, label: str, colour: str) -> str:
        return self._style(f"{label:<10}", colour)
