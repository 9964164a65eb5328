"""Writes results as a model is shown them: data under a line that names the tool, never a call.

A plain header line works best with small models: behind `[RESULT: ...]` they go on calling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from callmark.dialects import Dialect, unregistered
from callmark.dialects.rendering import hidden
from callmark.errors import UsageError
from callmark.languages import Language, language_of
from callmark.toolshapes import tool_names
from callmark.writing.neutral import neutralized_inside, set_apart


def render_result(
    name: str,
    content: Any,
    *,
    id: str | None = None,  # noqa: A002  # the field of Call
    language: str | Language = "en",
    nonce: str | None = None,
    dialects: Iterable[str | Dialect] | str | Dialect | None = None,
    tools: Any = None,
) -> str:
    r"""Return the result of a call as text for a message of the user's role.

    >>> render_result("get_weather", {"degrees": 7}, id="c1")
    'Result of get_weather (c1):\n{"degrees": 7}'

    content     text, or a JSON value; it is neutralized: nothing in it is read as a call, and no line of it begins the
                result of another call. JSON keeps its value.
    nonce       the code that calls carry: asterisks stand for it wherever the result quotes it
    dialects    further dialects that are listened for, which are not registered, as `neutralize` has them
    tools       those that there are, in any usual shape, as `neutralize` has them

    Raises UsageError for what is neither text nor JSON.
    """
    known = tool_names(tools)
    return written_result(name, content, id=id, language=language, nonce=nonce, dialects=dialects, names=known)


def written_result(
    name: str,
    content: Any,
    *,
    id: str | None,  # noqa: A002  # as above
    language: str | Language,
    nonce: str | None,
    dialects: Iterable[str | Dialect] | str | Dialect | None,
    names: Collection[str] | None,
) -> str:
    """Do as `render_result` does, but with the names of the tools that there are, None for any: for many results."""
    words = language_of(language)
    for what, given in (("name", name), ("id", id or ""), ("nonce", nonce or "")):
        if not isinstance(given, str):
            raise UsageError(f"result, {what}: expected a text, found {given!r:.80}")
    if not isinstance(content, str):
        try:
            content = json.dumps(content, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                f"result of {name!r:.80}: expected text or a JSON value, found another: {error}"
            ) from error
    own = unregistered(dialects) or None  # once: they may come one by one
    inside = neutralized_inside(content, dialects=own, names=names)
    body = _like_header(words.header).sub(r"\g<blanks>\\\g<line>", inside)
    first = neutralized_inside(header(words, name, id or ""), dialects=own, names=names)
    return hidden(set_apart(f"{first}\n{body}", dialects=own), nonce)


def header(language: Language, name: str, id: str) -> str:  # noqa: A002
    """Return the line under which a result stands."""
    shown = f" ({_one_line(id)})" if id else ""
    return re.sub(r"\{(name|id)\}", lambda place: _one_line(name) if place[1] == "name" else shown, language.header)


def header_pattern(language: Language) -> re.Pattern[str]:
    """Return the pattern of a header line, with the groups `name` and `id`."""
    return _pattern_of(language.header)


@cache
def _pattern_of(header: str) -> re.Pattern[str]:
    pattern = re.escape(header).replace(r"\{name\}", r"(?P<name>\S[^\r\n]{0,255}?)")
    pattern = pattern.replace(r"\{id\}", r"(?:[ ]\((?P<id>[^()\r\n]{1,255})\))?")
    return re.compile(f"^{pattern}$", re.MULTILINE)


@cache
def _like_header(header: str) -> re.Pattern[str]:
    """Return the pattern of a line that a model may take for a header: with blanks around it, ended as it may be.

    Not by U+2028, which may stand in a string of JSON, where a backslash would be an escape.
    """
    line = _pattern_of(header).pattern.removeprefix("^").removesuffix("$")
    return re.compile(rf"(?:^|(?<=\r))(?P<blanks>[ \t]*)(?P<line>{line})(?=[ \t]*(?:$|\r))", re.MULTILINE)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:256]
