"""Shows how a call is written in a dialect: the correct form, for messages to a model.

Not promised: that every call can be shown. What is shown has been read back as that very call, without repairs; where
a dialect cannot hold the arguments, a call of `name` stands in the form's place, and where it has no templates, its
title.
"""

from __future__ import annotations

import json

from callmark.dialects import Dialect
from callmark.dialects.notation import fill
from callmark.dialects.rendering import WrittenCall, written
from callmark.errors import UsageError
from callmark.events import JsonValue
from callmark.reading.whole import parse


def correct_form(dialect: Dialect, name: str | None, arguments: dict[str, JsonValue], nonce: str | None = None) -> str:
    """Return how a call of `name` with `arguments` is written in `dialect`; where that is not known, one of `name`.

    >>> from callmark.dialects import select
    >>> correct_form(select("pythonic")[0], "look", {"at": "sea", "far": True})
    '<|tool_call_start|>[look(at="sea", far=True)]<|tool_call_end|>'

    A title, which is for people, leaves things out and says others in English: it stands there where nothing can be
    written. With a nonce whatever is written carries it.
    """
    text = _written(dialect, name, arguments, nonce) if name is not None else None
    return text or _written(dialect, "name", {"key": "value"}, nonce) or dialect.title


def _written(dialect: Dialect, name: str, arguments: dict[str, JsonValue], nonce: str | None) -> str | None:
    """Return a call as text, None where it is not read back as that very call."""
    try:
        text = written([WrittenCall(name, arguments)], dialect, nonce)
    except UsageError:
        return None
    calls = parse(text, dialects=dialect, tolerance="strict", nonce=nonce).calls
    is_it = [(call.name, json.dumps(call.arguments)) for call in calls] == [(name, json.dumps(arguments))]
    return text if is_it else None


def ending(dialect: Dialect) -> str | None:
    """Return what closes a call of `dialect` behind arguments that are a JSON object, None where it is not known."""
    writing = dialect.writing
    if writing is None or writing.pairs or writing.parameter or dialect.forms[writing.form].body == "braces":
        return None
    return fill(writing.call.partition("{arguments}")[2], {"id": ""}) + writing.closer
