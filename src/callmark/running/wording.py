"""`Wording`: what a session says to a model. The sentences are those of the rooms that write and read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callmark.dialects import Dialect
from callmark.dialects.rendering import hidden
from callmark.events import Malformed
from callmark.languages import language_of
from callmark.reading.feedback import feedback, first_line
from callmark.running.settings import Settings
from callmark.tools.results import Result
from callmark.toolshapes import tool_names
from callmark.writing.neutral import neutralized_inside
from callmark.writing.prompt import Prompt, protocol_prompt
from callmark.writing.results import written_result

EXPLAINED: Final = 8
"""Broken calls of a message that are explained: more than models write side by side on purpose."""


class Wording:
    """The words of one session, made from its settings. A host that wants others overrides a method.

    >>> class Terse(Wording):
    ...     def no_tools(self) -> str:
    ...         return "Answer now."
    >>> Terse(Settings()).no_tools()
    'Answer now.'

    `Session(wording=Terse)` says so then. What it overrides must keep law 9: results hold no call.

    tools   that there are, in any usual shape, as `neutralize` has them; a session sets it
    """

    tools: Any = None

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._words = language_of(settings.language)
        self._own = {row.name: row for row in settings.own_rows()}

    def prompt(self, tools: Sequence[Mapping[str, Any]], choice: str) -> Prompt:
        """Teach a model to call `tools`: mappings with the name that is called, description and parameters."""
        settings = self.settings
        return protocol_prompt(
            tools,
            settings.dialect,
            language=settings.language,
            nonce=settings.nonce,
            tool_choice=choice,
            parallel=settings.parallel,
            **settings.prompt,
        )

    def results(self, found: Sequence[Result]) -> str:
        """Tell results in one message, each under its header."""
        names = tool_names(self.tools)
        return "\n\n".join(
            written_result(
                result.name,
                result.for_model(),
                id=result.id,
                language=self.settings.language,
                nonce=self.settings.nonce,
                dialects=self._own.values() or None,
                names=names,
            )
            for result in found
        )

    def content(self, result: Result) -> str:
        """Tell the result of a native call: its message has an id already, and begins as its server has it."""
        told = result.for_model()
        text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
        inside = neutralized_inside(text, dialects=self._own.values() or None, names=tool_names(self.tools))
        return hidden(inside, self.settings.nonce)

    def feedback(self, problems: Sequence[Malformed]) -> str:
        """Say what was wrong with calls, and for one that was cut off how to go on.

        Of many the first are explained, and nothing is said twice: a model that does not stop writes hundreds.
        """
        settings = self.settings
        told = [
            feedback(problem, self._form(problem), settings.language, nonce=settings.nonce)
            for problem in problems[:EXPLAINED]
        ]
        others = [hidden(first_line(problem, self._words.feedback), settings.nonce) for problem in problems[EXPLAINED:]]
        more = [line for line in others if not any(text.startswith(line) for text in told)]
        return "\n\n".join(dict.fromkeys([*told, *more]))

    def missing(self, choice: str, prompt: Prompt | None) -> str:
        """Say that a call is wanted; `prompt` is what taught the tools, if they were taught."""
        words = self._words
        wanted = words.required if choice == "required" else words.named.replace("{name}", choice)
        return wanted if prompt is None else f"{wanted}\n{prompt.reminder}"

    def no_tools(self) -> str:
        """Say that there are no tools any more in this turn."""
        return self._words.none

    def _form(self, problem: Malformed) -> str | Dialect:
        """Return the dialect to write in; that of the problem where `feedback` could not look it up by its name."""
        return self._own.get(problem.dialect, self.settings.dialect)
