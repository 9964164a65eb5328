"""Writes calls as the text of a dialect, by the templates of its row: the inverse of reading.

It stands below the rooms that read and write: one writes calls with it, the other shows the correct form. What is
written is checked before it is handed over: that the dialect's own patterns find the name where it stands, and that no
value ends early. A call that a dialect cannot express raises; a wrong text is never written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from callmark.dialects.limits import LENGTH_LIMIT, NESTING_LIMIT, check_nonce
from callmark.dialects.model import Dialect, Form, Writing
from callmark.dialects.notation import LONE, expand, fill
from callmark.dialects.values import (
    Declared,
    Unwritable,
    as_json,
    as_pairs,
    checked,
    in_braces,
    in_cdata,
    in_parameters,
    in_whole,
)
from callmark.errors import UsageError
from callmark.toolshapes import Types

DeclaredOf: TypeAlias = Callable[[str], Declared]
"""Gives what the tool of a name declares of its parameters."""

_SAFE_NAME: Final = re.compile(r"[A-Za-z_]{1,64}")  # a name that every head takes


class WrittenCall(NamedTuple):
    """A call that is to be written: name, arguments, and the id that a host gave it."""

    name: str
    arguments: Any
    id: str | None = None


def undeclared(_key: str) -> Types:
    """Say of each parameter that nothing is declared."""
    return Types()


def written(
    calls: Iterable[WrittenCall], row: Dialect, nonce: str | None = None, declared: DeclaredOf = lambda name: undeclared
) -> str:
    """Return several calls of one message as the text of a dialect. Raises UsageError where it cannot express one."""
    writing = row.writing
    if writing is None:
        raise UsageError(f"dialect {row.name}: expected templates (field `writing`), found a dialect for reading only")
    if nonce is not None:
        if not writing.nonce:
            raise UsageError(f"nonce: expected a dialect that can carry one, found {row.name}")
        check_nonce(nonce)
    if not isinstance(calls, Iterable):
        raise UsageError(f"calls: expected a sequence of them, found {type(calls).__name__}")
    texts = []
    for index, call in enumerate(calls):
        if not all(hasattr(call, field) for field in WrittenCall._fields):
            raise UsageError(f"calls: expected WrittenCalls or Calls, found {call!r:.80}")
        try:
            texts.append(_written(call, row, writing, index, nonce or "", declared))
        except Unwritable as error:
            raise UsageError(f"dialect {row.name} cannot express this call of {call.name!r:.80}: {error}") from None
    return writing.opener + writing.separator.join(texts) + writing.closer if texts else ""


def _written(
    call: WrittenCall, row: Dialect, writing: Writing, index: int, nonce: str, declared: DeclaredOf
) -> str:
    form = row.forms[writing.form]
    if not isinstance(call.arguments, Mapping):
        raise UsageError(f"arguments: expected a JSON object, found {type(call.arguments).__name__}")
    if not isinstance(call.name, str):
        raise UsageError(f"name: expected a str, found {type(call.name).__name__}")
    if not isinstance(call.id, str | None):
        raise UsageError(f"id: expected a str, found {type(call.id).__name__}")
    arguments: dict[str, Any] = checked(dict(call.arguments), NESTING_LIMIT)

    places = {
        "name": call.name,
        "quoted_name": as_json(call.name),
        "index": str(index),
        "number": str(index + 1),
        "nonce": fill(writing.nonce, {"nonce": nonce}) if nonce else "",
    }
    default = fill(writing.default_id, places)
    given = []
    if call.id and writing.id and not LONE.search(call.id):
        given.append(fill(writing.id, {"id": call.id, "quoted_id": as_json(call.id)}))
    for id_text in [*given, default]:  # an id that the dialect cannot carry is left out: it is no part of the call
        head, _, behind = writing.call.partition("{arguments}")
        before, after = (fill(part, {**places, "id": id_text}) for part in (head, behind))
        body = _body(arguments, form, writing, after + writing.closer, declared(call.name))
        if len(body) > LENGTH_LIMIT:
            raise Unwritable(f"expected arguments of at most {LENGTH_LIMIT} characters, found {len(body)}")
        held = call.id if id_text != default else None
        if _is_named(form, before, body + after, call.name, nonce, held):
            return before + body + after
    if nonce and _written(call, row, writing, index, "", declared):
        raise UsageError(f"nonce: expected one that the head of forms[{writing.form}] takes, found {nonce!r}")
    if form.body != "envelope" and _SAFE_NAME.fullmatch(call.name):
        found = _head(form).match(before + body)
        taken = body[: found.end() - len(before)] if found is not None and found.end() > len(before) else ""
        if taken:
            expected = r"expected a head that ends before the arguments, as in `(?=\{)`"
            raise Unwritable(f"{expected}, found one that takes {taken!r:.80}")
        shown = f"{before!r:.80} before {body + after!r:.40}"
        raise Unwritable(f"expected a template of calls that begins with the form's head, found {shown}")
    allowed = "a letter or `_`, then letters, digits and `_-./:`"
    if form.body == "envelope":
        allowed = "1 to 128 characters, with no spaces around them"
    raise Unwritable(f"expected a name that is read as it is ({allowed}), found one that is not")


def _is_named(form: Form, before: str, behind: str, name: str, nonce: str, call_id: str | None) -> bool:
    """Whether the form's head is read in `before`, the text up to the arguments, with this name, nonce and id."""
    found = _head(form).match(before + behind) if nonce or form.body != "envelope" else None
    if nonce and (found is None or found.groupdict().get("nonce") != nonce):
        return False
    if form.body == "envelope":
        return 1 <= len(name) <= 128 and name == name.strip(" ") and not LONE.search(name)
    if found is None or found["name"] != name:
        return False
    if call_id is not None and found.groupdict().get("id", call_id) != call_id:
        return False
    return form.body == "parameters" or found.end() == len(before)


@cache
def _head(form: Form) -> re.Pattern[str]:
    return re.compile(expand(form.head))


def _body(arguments: dict[str, Any], form: Form, writing: Writing, behind: str, declared: Declared) -> str:
    match form.body:
        case "arguments" if writing.pairs:
            return as_pairs(arguments, declared)
        case "braces":
            return in_braces(arguments, form.quote)
        case "parameters" if writing.parameter:
            return in_parameters(arguments, form, writing, behind, declared)
        case "parameters" if writing.in_cdata:
            return in_cdata(arguments)
        case "parameters":
            return in_whole(arguments, form, behind)
        case _:
            return as_json(arguments)


def hidden(text: str, nonce: str | None) -> str:
    """Return a text of the same length in which the nonce is nowhere: asterisks stand for it, which no nonce holds."""
    return text.replace(nonce, "*" * len(nonce)) if nonce else text
