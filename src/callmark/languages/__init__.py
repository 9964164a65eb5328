"""The languages in which a model is told things: a data file each, with every sentence of prompts and of feedback.

`load_language` takes a file of one's own just as well. In the sentences these places are filled in: {name} a tool,
{header} how a result begins, {default} how a default is told, {id}, {nonce} and {values}; in feedback also {near},
{expected}, {found} and {excerpt}. Both rooms that speak to a model, the one that writes and the one that reads, take
their words from here.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from callmark.errors import UsageError

BuiltIn: TypeAlias = Literal["en", "zh-Hans", "zh-Hant"]
LANGUAGES: Final[tuple[str, ...]] = get_args(BuiltIn)
"""The languages that come with callmark."""


class Language(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sentences of one language; the data files of this package are the example to follow.

    `feedback` has a phrase for each key that English has; `expected` translates what messages name as expected.
    """

    name: str
    title: str
    schemas: str
    optional: str
    types: str
    how: str
    form: str
    marks: str
    lists: str
    values: str
    missing: str
    only: str
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
    example: str
    user: str
    assistant: str
    request: str
    done: str
    answer: str
    thought: str
    greeting: str
    greeted: str
    stop: str
    json_answer: str = ""  # what the proxy says, which takes the languages of this package alone
    json_by_schema: str = ""
    feedback: dict[str, str]
    expected: dict[str, str] = {}


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
    from importlib.resources import files  # 10 ms, and only prompts, results and feedback need it

    return _read(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"), name)


def load_language(path: str | os.PathLike[str]) -> Language:
    """Read a language from a TOML file of one's own. Raises UsageError that names the file and the field."""
    from pathlib import Path

    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {error}") from error
    language = _read(text, str(path))
    _check(language, _builtin("en"), str(path))
    return language


def _read(text: str, where: str) -> Language:
    import tomllib

    try:
        return msgspec.convert(tomllib.loads(text), Language)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{where}: {error}") from error


def _check(language: Language, english: Language, where: str) -> None:
    """Hold a language to the phrases of English and to the places in them."""
    if "{name}" not in language.header or "\n" in language.header:
        raise UsageError(f"{where}: header: expected one line with {{name}} in it, found {language.header!r}")
    for keys, found, what in (
        (english.feedback.keys() - language.feedback.keys(), "none", "a phrase"),
        (language.feedback.keys() - english.feedback.keys(), "one", "no phrase that English has not"),
    ):
        if keys:
            raise UsageError(f"{where}: feedback.{min(keys)}: expected {what}, found {found}")
    sentences = ((field, getattr(language, field), getattr(english, field)) for field in Language.__struct_fields__)
    phrases = ((f"feedback.{key}", phrase, english.feedback[key]) for key, phrase in language.feedback.items())
    for field, text, model in (*(each for each in sentences if isinstance(each[1], str)), *phrases):
        strange = _places(text) - _places(model)
        if strange or (field.startswith("feedback.") and _places(model) - _places(text)):
            listed = " ".join(sorted(_places(model))) or "no places in braces"
            raise UsageError(f"{where}: {field}: expected {listed}, found {text!r:.80}")


def _places(text: str) -> set[str]:
    return set(re.findall(r"\{[a-z]+\}", text))
