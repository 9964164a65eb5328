"""Exceptions: the caller's mistakes. What a model gets wrong is a value (`Malformed`, `Notice`), never an exception."""


class CallmarkError(Exception):
    """Base of everything that callmark raises on purpose."""


class UsageError(CallmarkError):
    """The API was misused: feeding after `finish`, a chunk that is no `str`, an option outside its range."""


class UnknownDialectError(UsageError):
    """A dialect was named that is not registered; the message lists those that are."""


class DialectError(CallmarkError):
    """A dialect's own row or grammar is wrong: a pattern that does not compile, a grammar without the rule `call`."""


class ToolsError(UsageError):
    """The `tools` option holds something that is no tool; the message names the position and what was expected."""
