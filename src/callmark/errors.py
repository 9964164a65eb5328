"""Exceptions: the caller's mistakes. What a model gets wrong is a value (`Malformed`, `Notice`), never an exception.

And what messages about a wrong name say of the others, whether a caller wrote it or a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

_WRONG_WORD: Final = re.compile(r"Invalid (?:enum )?value (['\"].*['\"])(?: - at `\$\.?([\w.\[\]]++)`)?", re.DOTALL)
_STEP: Final = re.compile(r"\w++")


class CallmarkError(Exception):
    """Base of everything that callmark raises on purpose."""


class UsageError(CallmarkError):
    """The API was misused: feeding after `finish`, a chunk that is no `str`, an option outside its range."""


class UnknownDialectError(UsageError):
    """An option names no dialect, or one that is not registered: then the message lists those that are."""


class DialectError(CallmarkError):
    """A dialect's own row or grammar is wrong: a pattern that does not compile, a grammar without the rule `call`."""


class ToolsError(UsageError):
    """The `tools` option holds something that is no tool; the message says which, and what was expected."""


class NotPermittedError(UsageError):
    """An owner whose permission was revoked registers a tool, or removes one that is not its own."""


class ToolError(CallmarkError):
    """Raised *by a tool*: what went wrong, in words that are meant for the model.

    `code` is the tool's own short name for it, `message` says what happened, `hint` what to do instead. It becomes the
    result of the call, as data. Any other exception does too, but without its text.
    """

    def __init__(self, code: str, message: str = "", hint: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message or code
        self.hint = hint


def number(value: float) -> str:
    """Return a number for a message. Of more than 4,300 digits Python makes no text.

    >>> number(0.5), number(-10**5000)
    ('0.5', 'a number of thousands of digits')
    """
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"


def check_flags(**flags: object) -> None:
    """Raise UsageError, which names the option, where one is neither True nor False: `"false"` would count as true.

    >>> check_flags(parallel="false")
    Traceback (most recent call last):
        ...
    callmark.errors.UsageError: parallel: expected True or False, found 'false'
    """
    for name, value in flags.items():
        if type(value) is not bool:
            raise UsageError(f"{name}: expected True or False, found {value!r:.80}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return which of the known names is most like `name`, whatever the case of their letters; "" for none.

    What a model wrote may be long, and there may be many: only the first 128 characters and 512 names are compared.

    >>> nearest("Forcast", ["forecast", "search"])
    'forecast'
    """
    import difflib  # only a wrong name needs it

    folded = {other.casefold(): other for other in islice(known, 512)}
    near = difflib.get_close_matches(name[:128].casefold(), folded, n=1)
    return folded[near[0]] if near else ""


def refusal(error: Exception, kind: Any) -> str:
    """Return what an error says of a value that is not of a type: of a word that is none of a few also which these are,
    which msgspec does not say.

    >>> import msgspec
    >>> from callmark.serving.functions import Parse
    >>> try:
    ...     msgspec.convert({"text": "Hi", "contexts": {"fence": "no"}}, Parse)
    ... except msgspec.ValidationError as error:
    ...     refusal(error, Parse)
    "contexts.fence: expected allow, sole or text, found 'no'"
    """
    from msgspec.inspect import type_info  # only a wrong word needs it

    wrong = _WRONG_WORD.fullmatch(str(error))
    words = [*dict.fromkeys(_words(type_info(kind), _STEP.findall(wrong[2] or "")))] if wrong is not None else []
    if wrong is None or not words:
        return str(error)
    place = f"{wrong[2]}: " if wrong[2] else ""
    return f"{place}expected {' or '.join(filter(None, (', '.join(words[:-1]), words[-1])))}, found {wrong[1]:.80}"


def _words(kind: Any, steps: list[str]) -> list[str]:
    """Return the words that a value of a type, as msgspec tells it, may have at the end of some steps into it."""
    from msgspec.inspect import ListType, LiteralType, Metadata, StructType, UnionType, VarTupleType

    match kind:
        case Metadata():
            return _words(kind.type, steps)
        case UnionType():
            return [word for each in kind.types for word in _words(each, steps)]
        case ListType() | VarTupleType():
            return _words(kind.item_type, steps[1:])
        case StructType() if steps == [kind.tag_field]:
            return [str(kind.tag)]
        case StructType():
            below = (each.type for each in kind.fields if [each.encode_name] == steps[:1])
            return [word for each in below for word in _words(each, steps[1:])]
        case LiteralType():
            return [*map(str, kind.values)]
    return []
