"""Exceptions: the caller's mistakes. What a model gets wrong is a value (`Malformed`, `Notice`), never an exception.

And what messages about a wrong name say of the others, whether a caller wrote it or a model.
"""

from collections.abc import Iterable
from itertools import islice


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
