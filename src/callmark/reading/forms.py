"""Shows how a call is written in a dialect: the correct form, for messages to a model.

Not promised: that every call can be shown. What is shown has been read back as that very call, without repairs; where
a dialect cannot hold the arguments, or is one of the caller's own, its title stands in the form's place.
"""

from __future__ import annotations

import json
from string import Template
from typing import Final, NamedTuple

from callmark.dialects import Dialect
from callmark.events import JsonValue
from callmark.reading.whole import parse


class _Form(NamedTuple):
    """How a call is written: `$name`, `$arguments`, `$nonce`; and where the arguments are no JSON object, each.

    value   how a value is written: as JSON; as "raw" text, where a string stands for itself; in "braces"
    section what stands before calls that never stand alone, as some of the dialect's do
    """

    call: str
    argument: str = ""
    between: str = ""
    value: str = "json"
    section: str = ""


_FORMS: Final = {
    "call": _Form("[CALL$nonce: $name($arguments)]"),
    "hermes": _Form('<tool_call>\n{"name": "$name", "arguments": $arguments}\n</tool_call>'),
    "qwen_xml": _Form(
        "<tool_call>\n<function=$name>\n$arguments</function>\n</tool_call>",
        "<parameter=$key>\n$value\n</parameter>\n",
        value="raw",
    ),
    "glm": _Form(
        "<tool_call>$name\n$arguments</tool_call>",
        "<arg_key>$key</arg_key>\n<arg_value>$value</arg_value>\n",
        value="raw",
    ),
    "mistral": _Form("[TOOL_CALLS]$name[ARGS]$arguments", section="[TOOL_CALLS] ["),
    "pythonic": _Form("<|tool_call_start|>[$name($arguments)]<|tool_call_end|>", "$key=$value", ", ", section="["),
    "deepseek": _Form(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>$name<｜tool▁sep｜>$arguments<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "kimi_k2": _Form(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.$name:0<|tool_call_argument_begin|>"
        "$arguments<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "gemma4": _Form("<|tool_call>call:$name{$arguments}<tool_call|>", "$key:$value", ",", "braces"),
    "toolify": _Form(
        "<function_call>\n<tool>$name</tool>\n<args_json><![CDATA[$arguments]]></args_json>\n</function_call>"
    ),
    "fenced": _Form('```tool_call\n{"name": "$name", "arguments": $arguments}\n```'),
    "react": _Form("Action: $name\nAction Input: $arguments"),
}
_BRACES_QUOTE: Final = '<|"|>'


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


def _written(dialect: Dialect, name: str, arguments: dict[str, JsonValue], nonce: str | None) -> str | None:
    """Return a call as text, None where it is not read back as that very call."""
    form = _FORMS.get(dialect.name)
    if form is None:
        return None
    if form.argument:
        written = form.between.join(
            Template(form.argument).substitute(key=key, value=_value(value, form.value))
            for key, value in arguments.items()
        )
    else:
        written = _json(arguments).replace("]]>", "]]\\u003e")  # which ends a CDATA section
    shown = "" if nonce is None else f"#{nonce}"
    text = Template(form.call).substitute(name=name, arguments=written, nonce=shown)
    return text if _is(text, dialect, name, arguments, nonce) else None


def ending(dialect: Dialect) -> str | None:
    """Return what closes a call of `dialect` behind arguments that are a JSON object, None where it is not known."""
    form = _FORMS.get(dialect.name)
    return None if form is None or form.argument else form.call.partition("$arguments")[2]


def section_opening(dialect: Dialect) -> str:
    """Return what stands before a call of `dialect` that never stands alone, "" where all do or it is not known."""
    form = _FORMS.get(dialect.name)
    return "" if form is None else form.section


def _is(text: str, dialect: Dialect, name: str, arguments: dict[str, JsonValue], nonce: str | None) -> bool:
    calls = parse(text, dialects=dialect, tolerance="strict", nonce=nonce).calls
    return [(call.name, _json(call.arguments)) for call in calls] == [(name, _json(arguments))]


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _value(value: JsonValue, way: str) -> str:
    if way == "raw" and isinstance(value, str):
        return value
    if way != "braces":
        return _json(value)
    if isinstance(value, str):
        return _BRACES_QUOTE + value + _BRACES_QUOTE
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_value(item, way)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_value(item, way) for item in value) + "]"
    return _json(value)
