"""The words that a session says to a model, in one place: each is a function that a host may replace."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from callmark.events import Malformed
from callmark.tools.results import Result
from callmark.tools.tool import Tool

_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_OPENERS: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "[<`【［"})


def prompt(tools: Sequence[tuple[str, Tool]], choice: str) -> str:
    """Teach a model to call `tools`, each with the name that it is called by. `choice` is the settings' tool_choice."""
    lines = [
        "You can call tools. To call one, write [CALL: name({arguments as JSON})] and stop; its result comes next."
    ]
    for name, tool in tools:
        schema = json.dumps(tool.parameters.get("properties", {}), ensure_ascii=False)
        lines.append(f"- {name}({schema}): {tool.description}")
    if choice == "required":
        lines.append("Call a tool before you answer.")
    elif choice not in ("auto", "none"):
        lines.append(f"Call {choice} before you answer.")
    lines.append("Call only these tools, and write no results yourself. After a result, answer from it.")
    return "\n".join(lines)


def results(found: Sequence[Result]) -> str:
    """Tell results as JSON lines, with what could begin a marker escaped: the same values, and no call in them."""
    lines = [json.dumps(result.for_model(), ensure_ascii=False) for result in found]
    return "\n".join(_STRING.sub(lambda string: string[0].translate(_OPENERS), line) for line in lines)


def feedback(problems: Sequence[Malformed]) -> str:
    """Say what was wrong with markers, and how one is written."""
    lines = [f"A call could not be read: {problem.message}." for problem in problems]
    return "\n".join([*lines, 'Write it again as [CALL: name({"key": "value"})].'])


def missing(choice: str) -> str:
    """Say that a call is wanted."""
    return f"Call {'a tool' if choice == 'required' else choice} first, as [CALL: name({{...}})]."


def go_on() -> str:
    """Ask for the rest of a message that was cut off inside a call."""
    return "Your message was cut off. Continue exactly where it ends, and repeat nothing."


def no_tools() -> str:
    """Say that there are no tools any more in this turn."""
    return "Answer now, without calling tools."


@dataclass(frozen=True, kw_only=True)
class Wording:
    """What a session says; the functions of this module by default."""

    prompt: Callable[[Sequence[tuple[str, Tool]], str], str] = prompt
    results: Callable[[Sequence[Result]], str] = results
    feedback: Callable[[Sequence[Malformed]], str] = feedback
    missing: Callable[[str], str] = missing
    go_on: Callable[[], str] = go_on
    no_tools: Callable[[], str] = no_tools
