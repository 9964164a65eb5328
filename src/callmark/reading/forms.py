"""Shows how a call is written in a dialect: the correct form, for messages to a model.

What is shown is made from the row's own templates (`Dialect.writing`), in the plainest way there is; writing proper is
for `callmark.writing`. Not promised: that every call can be shown. What is shown has been read back as that very call,
without repairs; where a dialect cannot hold the arguments, or has no templates, its title stands in the form's place.
"""

from __future__ import annotations

import json
import re

from callmark.dialects import Dialect, Writing
from callmark.events import JsonValue
from callmark.reading.whole import parse
from callmark.toolshapes import type_of


def correct_form(
    dialect: Dialect, name: str | None, arguments: dict[str, JsonValue], nonce: str | None = None
) -> str:
    """Return how a call of `name` with `arguments` is written in `dialect`; where that is not known, its title.

    >>> from callmark.dialects import select
    >>> correct_form(select("pythonic")[0], "look", {"at": "sea", "far": True})
    '<|tool_call_start|>[look(at="sea", far=true)]<|tool_call_end|>'

    Where calls carry a nonce, what stands in the form's place does too: a title without it would teach to be ignored.
    """
    title = dialect.title if nonce is None else _written(dialect, "name", {"key": "value"}, nonce)
    text = _written(dialect, name, arguments, nonce) if name is not None else None
    return text or title or dialect.title


def ending(dialect: Dialect) -> str | None:
    """Return what closes a call of `dialect` behind arguments that are a JSON object, None where none are."""
    writing = dialect.writing
    if writing is None or writing.parameter or writing.pairs or dialect.forms[writing.form].body == "braces":
        return None
    return _filled(writing.call.partition("{arguments}")[2], id="") + writing.closer


def _written(dialect: Dialect, name: str, arguments: dict[str, JsonValue], nonce: str | None) -> str | None:
    """Return a call as text, None where it is not read back as that very call."""
    writing = dialect.writing
    if writing is None:
        return None
    form = dialect.forms[writing.form]
    if form.body == "braces":
        written = _in_braces(arguments, form.quote)
    elif writing.parameter:
        written = "".join(_parameter(writing, key, value) for key, value in arguments.items())
    elif writing.pairs:
        written = ", ".join(f"{key}={_json(value)}" for key, value in arguments.items())
    else:
        written = _json(arguments).replace("]]>", "]]\\u003e")  # which ends a CDATA section
    named = {"name": name, "quoted_name": _json(name), "index": "0", "number": "1"}
    shown = "" if nonce is None else _filled(writing.nonce, nonce=nonce)
    identity = _filled(writing.default_id, **named)
    call = _filled(writing.call, **named, arguments=written, nonce=shown, id=identity)
    text = writing.opener + call + writing.closer
    return text if _is(text, dialect, name, arguments, nonce) else None


def _filled(template: str, **places: str) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda place: places.get(place[1], place[0]), template)


def _parameter(writing: Writing, key: str, value: JsonValue) -> str:
    kind = type_of(value)
    shown = value if isinstance(value, str) else _json(value)
    is_text = "true" if kind == "string" else "false"
    return _filled(writing.parameter, key=key, value=shown, type=kind, is_text=is_text)


def _is(text: str, dialect: Dialect, name: str, arguments: dict[str, JsonValue], nonce: str | None) -> bool:
    calls = parse(text, dialects=dialect, tolerance="strict", nonce=nonce).calls
    return [(call.name, _json(call.arguments)) for call in calls] == [(name, _json(arguments))]


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _in_braces(value: JsonValue, quote: str) -> str:
    if isinstance(value, str):
        return quote + value + quote
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_in_braces(item, quote)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_in_braces(item, quote) for item in value) + "]"
    return _json(value)
