"""`Settings`: how a session uses the connection to a model, and how calls are written on it."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from callmark.dialects import Dialect, dialects, selected, unregistered
from callmark.errors import UsageError, refusal
from callmark.languages import Language
from callmark.tools.misuse import require_whole
from callmark.writing.messages import Place

_GIVEN: Final = {
    "reading": ("tools", "nonce"),
    "prompt": ("tools", "dialect", "language", "nonce", "tool_choice", "parallel"),
}
"""What the dicts of options must not hold, since it is said elsewhere."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a connection to a model is used; the words are made from it by `Wording`.

    mode           "text": tools are taught in the prompt and read out of text; "native": the server takes tools and
                   sends calls; "auto": native where the model has `native_tools`, and its text is read for calls too
    tools          off: none are offered, and what the model calls is not run
    only           names of the tools to offer; None: all
    tool_choice    "auto", "none" (tools are shown; what is called is not run), "required", or the name of a tool that
                   must be called before the model answers
    parallel       off: a message ends with its first call
    retries        how often, in one turn, the model is told what was wrong and asked again
    continuations  how often, in one message, it is asked to go on where it was cut off inside a call
    result_role    the role in which results are told where they are text; never "system": results have no authority
    dialect        in which calls are taught and shown
    language       in which the model is told everything: "en", "zh-Hans", "zh-Hant", or what `load_language` gives
    nonce          a code that every call must carry (see `new_nonce`); only `call` and rows with a place for it
    where          the place of the prompt, as `merge_into_messages` has it
    prompt         further options of `protocol_prompt`: style, examples, reasoning, budget and so on
    reading        further options of `Parser`: dialects, contexts, tolerance and so on. By default all dialects are
                   read that cannot be mistaken for prose; where `dialect` is none of these, it alone
    """

    mode: Literal["auto", "native", "text"] = "auto"
    tools: bool = True
    only: tuple[str, ...] | None = None
    tool_choice: str = "auto"
    parallel: bool = True
    retries: int = 2
    continuations: int = 2
    result_role: Literal["user", "tool"] = "user"
    dialect: str | Dialect = "call"
    language: str | Language = "en"
    nonce: str | None = None
    where: Place = "merged"
    prompt: dict[str, Any] = msgspec.field(default_factory=dict)
    reading: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            try:
                if not isinstance(value, Dialect | Language):
                    msgspec.convert(value, field.type)
            except msgspec.ValidationError as error:
                told = refusal(error, field.type)
                raise UsageError(f"Settings, {field.name}: {told[0].lower()}{told[1:]}") from None
        require_whole("Settings", 0, retries=self.retries, continuations=self.continuations)
        for options, given in _GIVEN.items():
            twice = [name for name in given if name in getattr(self, options)]
            if twice:
                raise UsageError(f"Settings.{options}: expected options that are said nowhere else, found {twice[0]}")

    def __repr__(self) -> str:
        given = {field: getattr(self, field) for field in self.__struct_fields__ if field != "nonce"}
        shown = ", ".join(f"{field}={value!r}" for field, value in given.items())
        return f"Settings({shown}{', nonce=...' if self.nonce else ''})"

    def reading_options(self) -> dict[str, Any]:
        """Return what `Parser` takes, but for the tools."""
        return {"dialects": None if self._is_read_by_default() else self.dialect, **self.reading, "nonce": self.nonce}

    def own_rows(self) -> tuple[Dialect, ...]:
        """Return the dialects, written or read, that are not registered."""
        listened = self.reading_options()["dialects"] or ()
        listened = (listened,) if isinstance(listened, str | Dialect) else listened
        return unregistered((*listened, self.dialect))

    def _is_read_by_default(self) -> bool:
        row = selected(self.dialect)
        return row in dialects() and (row.writing is None or row.forms[row.writing.form].explicit)
