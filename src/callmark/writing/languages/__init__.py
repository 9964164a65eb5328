"""The languages in which the protocol is taught: a data file each, with every sentence that a prompt can hold.

`load_language` takes a file of one's own just as well. In the sentences these places are filled in: {name} a tool,
{header} how a result begins, {id}, {nonce}, {value} and {values}.
"""

from __future__ import annotations

import os
from functools import cache

import msgspec

from callmark.errors import UsageError

LANGUAGES = ("en", "zh-Hans", "zh-Hant")
"""The languages that come with callmark."""


class Language(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sentences of one language; the data files of this package are the example to follow."""

    name: str
    title: str
    tools: str
    schemas: str
    optional: str
    how: str
    json: str
    values: str
    only: str
    result: str
    parallel: str
    single: str
    auto: str
    none: str
    required: str
    named: str
    nonce: str
    reasoning: str
    reminder: str
    header: str
    tool_column: str
    arguments_column: str
    purpose_column: str
    default: str
    example: str
    user: str
    assistant: str
    request: str
    done: str
    answer: str
    thought: str
    thanks: str
    welcome: str
    stop: str


def language_of(language: str | Language) -> Language:
    """Return a language by its name, or as it is. Raises UsageError that lists those there are."""
    if isinstance(language, Language):
        return language
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise UsageError(f"language: expected one of {known}, or what load_language gives, found {language!r:.80}")
    return _builtin(language)


@cache
def _builtin(name: str) -> Language:
    from importlib.resources import files  # 10 ms, and only prompts and results need it

    return _language(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"), name)


def load_language(path: str | os.PathLike[str]) -> Language:
    """Read a language from a TOML file of one's own. Raises UsageError that names the file and the field."""
    from pathlib import Path

    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {error}") from error
    return _language(text, str(path))


def _language(text: str, where: str) -> Language:
    import tomllib

    try:
        language = msgspec.convert(tomllib.loads(text), Language)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{where}: {error}") from error
    if "{name}" not in language.header or "\n" in language.header:
        raise UsageError(f"{where}: header: expected one line with {{name}} in it, found {language.header!r}")
    return language
