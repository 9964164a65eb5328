"""Rows of calls that are JSON objects, which hold the tool's name and the arguments."""

from __future__ import annotations

from typing import Any

from callmark.dialects.fences import INDENT
from callmark.dialects.idioms import (
    ATTRIBUTES,
    BARE,
    BARE_CALLS,
    BUILT_IN,
    COMMAND_TAGS,
    ESCAPED_NAME,
    ESCAPED_TOOL,
    FEW,
    FURTHER,
    IN_ANY_WORDS,
    MEANT_IN_ANY_WORDS,
    META,
    SOURCE,
    TOOL,
    as_python,
    calls_of,
    empty,
    fenced,
    list_of,
    named_otherwise,
    objects_of,
    twice,
    without_brackets,
)
from callmark.dialects.model import Dialect, Form, Writing
from callmark.dialects.notation import ANY_NAME

_NAMED_FIRST = r"(?=\{{ws}\"name\"{ws}:{ws}" + TOOL + r"{ws},{ws}\"(?:arguments|parameters)\"{ws}:)"
_SINGLE_QUOTED = as_python(_NAMED_FIRST)
_ESCAPED_FIRST = _NAMED_FIRST.replace(TOOL, ESCAPED_TOOL)  # as Markdown escapes it
_TYPED = r"\"type\"{ws}:{ws}\"function\"{ws},{ws}\"(?:name|function)"  # as Llama writes it
_TYPED_FIRST = _NAMED_FIRST.replace(r"\"name", _TYPED, 1)
_NAMED_CALL = _NAMED_FIRST.replace("?P<tool>", "?:")  # the same, whatever tools were given
_WRAPPED_FIRST = (  # as an API for native calls has them; behind `parameters` a definition has its schema
    r"(?=\{{ws}(?:" + META + r"){1,3}+\"function\"{few}:{few}\{{ws}\"name\"{few}:{few}"
    + ESCAPED_TOOL + r"{few},{few}\"arguments\"{few}:)"
).replace("{few}", FEW)  # fmt: skip

_BY_NAME = r"\{{ws}(?=" + TOOL + r"{ws}:{ws}\{)"
_NATIVE = (  # what an API for native calls would answer
    r"\{{ws}\"tool_calls\"{few}:{few}\[{ws}(?=\{{ws}"
    r"(?:" + META + r"){0,3}+(?:\"function\"{few}:{few}\{{ws})?\"name\"{few}:{few}" + ESCAPED_TOOL + r"{few},)"
).replace("{few}", FEW)
_IN_AN_OBJECT = r"\{{ws}\"(?:tool|function)_call\"{few}:{few}".replace("{few}", FEW) + _ESCAPED_FIRST


def _by_name(opener: str, closer: str, **more: Any) -> Form:
    """Return the form of arguments under the name of their tool, in an object between an opener and a closer."""
    return Form(
        opener=opener + _BY_NAME, head=r"\"{name}\"{ws}:{ws}(?=\{)", body="json",
        tail=r"{ws}(?=\}|,{ws}\"[^\"\\\r\n]{1,128}+\"{ws}:{ws}\{)", separator=r"{ws},{ws}", closer=r"\}" + closer,
        alone=False, **more,
    )  # fmt: skip


_IN_ANY_NAME = MEANT_IN_ANY_WORDS.replace(ESCAPED_NAME, r"(?:[^\"\\\r\n]|\\(?=_)){1,128}+")
_TAGS = r"(?:tools?|functions?|(?:tool-|function[\-_])calls|response|xml|(?i:json))"  # of templates that are not theirs
_IN_TAGS = r"(?=\{{ws}\"name\"{ws}:{ws}\"[^\"\\\r\n]{1,128}+\"{ws},{ws}\"arguments\"{ws}:{ws}\{)"
_LIST_IN_TAGS = (r"<tool_call>{ws}\[{ws}(?=\{)", r"{ws}\](?:{ws}</tool_call>)?")  # of `listed`, and `hermes` alone
HERMES = Dialect(
    name="hermes",
    title='<tool_call>{"name": "f", "arguments": {...}}</tool_call>',
    models="Hermes 2 and 3, Qwen2.5, QwQ, Qwen3",
    source=SOURCE + ": hermes, qwen25",
    forms=(
        Form(
            head=r"<tool_call>{ws}(?=\{)",
            body="envelope",
            loose_heads=(
                r"<[ \t]{0,4}+(?i:tool(?:\\?_|[\- ])?call|function-?call)[ \t]{0,4}+>{ws}(?=\{{ws}[\"']name[\"']{ws}:)",
                f"<tool_call{ATTRIBUTES}{{ws}}{_NAMED_CALL}",
            ),
            tail=r"{ws}</tool_call>",
            loose_tail=r"(?={ws}<tool_call>)|" + FURTHER,
        ),
    ),
    variants=(
        *(
            Form(begins="{", head=head, loose_heads=("(?P<told>)" + as_python(head),), body="envelope", **BARE)
            for head in (_IN_ANY_NAME, _WRAPPED_FIRST)
        ),
        Form(
            head=f"<{_TAGS}>{{ws}}{_IN_TAGS}",
            body="envelope",
            tail=f"{{ws}}</{_TAGS}>",
            loose_tail=FURTHER,
            repairs=("opener-spelling",),
        ),
        list_of(
            rf"<{_TAGS}>{{ws}}\[{{ws}}{_IN_TAGS}", rf"{{ws}}\](?:{{ws}}</{_TAGS}>)?", repairs=("opener-spelling",)
        ),
        Form(
            head=named_otherwise("(?:tool|function)_call", "(?:name|function|tool)") + r"{ws}(?=\{)",
            body="json",
            tail=r"{ws}</(?:tool|function)_call>",
            repairs=("opener-spelling",),
        ),
        Form(  # as LM Studio asks for it
            begins="[",
            head=r"\[TOOL_REQUEST\]{ws}" + _NAMED_CALL,
            body="envelope",
            tail=r"{ws}\[END_TOOL_REQUEST\]",
            loose_tail=r"{ws}(?P<wrong>\[/TOOL_REQUEST\])",
            repairs=("opener-spelling",),
        ),
        list_of(*_LIST_IN_TAGS, repairs=("neighbour-body",)),
        fenced("<(?:tool|function)_call>{ws}", "{ws}</(?:tool|function)_call>", "envelope"),
        Form(
            head=r"<tool_call>{ws}{name}\(",
            body="arguments",
            tail=r"{ws}</tool_call>",
            repairs=("neighbour-body",),
            salvage=True,
        ),
        _by_name("", "", begins="{", **BARE),
        _by_name(r"<tool_call>{ws}", "{ws}</tool_call>", repairs=("neighbour-body",), salvage=True),
        list_of(_NATIVE, r"{ws}\]{ws}\}", begins="{", **BARE),
        objects_of(_IN_AN_OBJECT, r"{ws}\}", begins="{", **BARE),
        calls_of(
            r"<tool_call>{ws}" + BARE_CALLS,
            r"{ws}\]{ws}</tool_call>",
            separator=r"{ws},{ws}",
            repairs=("neighbour-body",),
            salvage=True,
        ),
    ),
    tags=(empty("tool_call"), twice("<tool_call>", r"\{")),
    writing=Writing(
        call='<tool_call>\n{"name": {quoted_name}, "arguments": {arguments}{id}}\n</tool_call>',
        id=', "id": {quoted_id}',
    ),
)


_BARE_LIST = r"\[{ws}" + _NAMED_FIRST.replace(r"\"name", rf"(?:\"name|{_TYPED})", 1)
_LIST_OPENER = r"<(?:tool_calls|TOOLCALL|\|(?:START_ACTION|tool_call_start|FunctionCallBegin)\|)>{ws}"
_LIST_CLOSER = r"<(?:/tool_calls|/TOOLCALL|\|(?:END_ACTION|tool_call_end|FunctionCallEnd)\|)>"
LISTED = Dialect(
    name="listed",
    title='<tool_calls>[{"name": "f", "arguments": {...}}]</tool_calls>, with other tags by other models',
    models=(
        "Jamba, Hunyuan A13B, Llama-Nemotron, Command R and A, Pangu, Doubao 1.5; MiniMax M1; Granite 3; Phi 4; xLAM"
    ),
    source=SOURCE
    + ": jamba, hunyuan_a13b, nemotron_deci, cohere_command, granite, pangu, minimax_m1, phi4_mini_json, xlam",
    forms=(
        list_of(_LIST_OPENER + r"\[{ws}(?=\{)", r"{ws}\]{ws}" + _LIST_CLOSER),
        list_of(*_LIST_IN_TAGS),
        objects_of(_LIST_OPENER + r"(?=\{)", _LIST_CLOSER),
        list_of(r"\[unused11\]{ws}\[{ws}(?=\{)", r"{ws}\]{ws}\[unused12\]", begins="["),
        list_of(r"<\|tool_calls?\|>{ws}\[{ws}(?=\{)", r"{ws}\](?:{ws}<\|/tool_call\|>)?"),
        list_of(r"functools{ws}\[{ws}(?=\{)", r"{ws}\]", begins="f", explicit=False),
        list_of(
            _BARE_LIST,
            r"{ws}\]",
            begins="[",
            explicit=False,
            line_start=True,
            loose_openers=(r"\[{ws}" + _SINGLE_QUOTED, r"\[{ws}" + _ESCAPED_FIRST),
        ),
    ),
    variants=(
        without_brackets(r"<\|tool_calls?\|>{ws}", _NAMED_CALL),
        Form(
            head=r"<\|tool_calls?\|>{ws}(?=\{{ws}\"name\")",
            body="envelope",
            repairs=("missing-opener", "missing-closer"),
        ),
        *(
            list_of(
                r"\[{ws}" + first, r"{ws}\]", begins="[", loose_openers=(r"\[{ws}" + as_python(first),), **BARE
            )
            for first in (MEANT_IN_ANY_WORDS, _WRAPPED_FIRST)
        ),
    ),
    tags=(
        *COMMAND_TAGS,
        r"\[(?:BEGIN(?P<closes>)|END) FINAL RESPONSE\]",
        r"<\|(?:START_ACTION|FunctionCallBegin)\|>{ws}\[{ws}\]{ws}<\|(?:END_ACTION|FunctionCallEnd)\|>",
        r"<(?:tool_calls|TOOLCALL)>{ws}\[{ws}\]{ws}</(?:tool_calls|TOOLCALL)>",
    ),
    writing=Writing(
        opener="<tool_calls>[",
        call='{"name": {quoted_name}, "arguments": {arguments}{id}}',
        separator=", ",
        closer="]</tool_calls>",
        id=', "id": {quoted_id}',
    ),
)


_BY_ROLE = r"function call<\|role_sep\|>{ws}(?=\{)"
_OBJECTS_END = r"</function_call>|(?=<\|message_sep\|>)|</s>"  # that token begins the next call, too
WRAPPED = Dialect(
    name="wrapped",
    title='<|action_start|><|plugin|>{"name": "f", "arguments": {...}}<|action_end|>, other models with other tags',
    models=(
        "InternLM 2, Intern-S1, LongCat, GigaChat 3, Granite 20B, Inkling, dots.llm; PLaMo 3, CWM, Step-Audio 2, "
        "VibeThinker"
    ),
    source=SOURCE + ": internlm, longcat, gigachat3, granite-20b-fc, inkling, dots, plamo3, cwm, step_audio_2",
    forms=(
        Form(
            head=r"<\|action_start\|>{ws}<\|plugin\|>{ws}(?=\{)",
            body="envelope",
            tail=r"{ws}<\|action_end\|>",
        ),
        Form(
            head=r"<longcat_tool_call>{ws}(?=\{)",
            body="envelope",
            tail=r"{ws}</longcat_tool_call>",
            loose_tail=FURTHER,
        ),
        Form(
            head=r"<dots_function_call>{ws}(?=\{)",
            body="envelope",
            tail=r"{ws}</dots_function_call>",
            loose_tail=FURTHER,
        ),
        Form(
            head=r"(?:<\|message_model\|>[\w.:/\-]{0,128}+)?<\|content_invoke_tool_json\|>{ws}(?=\{)",
            body="envelope",
            tail=r"{ws}<\|end_message\|>",
            loose_tail=r"{ws}(?P<wrong><\|content_model_end_sampling\|>)",
        ),
        objects_of(r"<(?:function_call|\|function_call\|)>{ws}(?=\{)", _OBJECTS_END),
        objects_of(r"<\|message_sep\|>{ws}" + _BY_ROLE, _OBJECTS_END),
        objects_of(
            _BY_ROLE,
            _OBJECTS_END,
            begins="f",
            explicit=False,
            loose_openers=(r"function call{ws}(?=\{{ws}\"name\"{ws}:)",),
        ),
        Form(
            opener=r"<\|plamo:begin_tool_requests:plamo\|>",
            head=(
                r"<\|plamo:begin_tool_request:plamo\|>{ws}<\|plamo:begin_tool_name:plamo\|>{ws}{name}{ws}"
                r"<\|plamo:end_tool_name:plamo\|>{ws}<\|plamo:begin_tool_arguments:plamo\|>{ws}"
                r"(?:<\|plamo:constrain\|>json{ws}<\|plamo:msg\|>{ws})?{object}"
            ),
            body="json",
            tail=r"{ws}<\|plamo:end_tool_arguments:plamo\|>{ws}<\|plamo:end_tool_request:plamo\|>",
            closer=r"<\|plamo:end_tool_requests:plamo\|>",
        ),
        Form(head=r"<tool: function>{ws}{name}{ws}{object}", body="json", tail=r"{ws}</tool>"),
        Form(
            head=r"<function>{ws}<name>{ws}{name}{ws}</name>{ws}<arguments>{ws}{object}",
            body="json",
            tail=r"{ws}</arguments>{ws}</function>",
        ),
        Form(
            head=r"<tool_call>{ws}function[ \t]{0,16}+\r?\n{ws}{name}[ \t]{0,16}+\r?\n{ws}(?=\{)",
            body="json",
            tail=r"{ws}</tool_call>",
        ),
    ),
    variants=(
        list_of(
            r"<(?:(?:longcat_tool|dots_function|function)_call|\|function_call\||\|action_start\|>{ws}<\|plugin\|)>{ws}"
            r"\[{ws}(?=\{)",
            r"{ws}\]{ws}<(?:/(?:longcat_tool|dots_function|function)_call|\|action_end\|)>",
            repairs=("neighbour-body",),
        ),
    ),
    tags=(
        r"(?:<\|message_model\|>)?<\|content_thinking(?P<opens>)\|>",
        r"<\|end_message(?P<closes>)\|>",
        r"(?:<\|message_model\|>)?<\|content_(?:text|invoke_tool_text|tool_error)(?P<answers>)\|>",
        r"<\|content_model_end_sampling(?P<closes>)\|>",
        r"<(?:(?P<closes>/)|(?P<opens>))longcat_think>",
        r"<\|plamo:(?:begin(?P<opens>)|end(?P<closes>))_think:plamo\|>",
        r"<\|message_sep\|>",
    ),
    writing=Writing(
        call='<|action_start|><|plugin|>{"name": {quoted_name}, "arguments": {arguments}{id}}<|action_end|>',
        id=', "id": {quoted_id}',
    ),
)


LLAMA = Dialect(
    name="llama",
    title='<|python_tag|>{"name": "f", "parameters": {...}}',
    models="Llama 3.1, 3.2 and 3.3; mostly without the tag",
    source=SOURCE + ": llama3_json, llama3",
    forms=(
        Form(
            opener=r"<\|python_tag\|>{ws}(?=\{)",
            head=r"(?=\{)",
            body="envelope",
            separator=r"{ws};{ws}",
            alone=False,
        ),
        *(
            Form(
                begins=begins, head=head + first, loose_heads=tuple(head + "(?P<told>)" + loose for loose in otherwise),
                body="envelope", line_start=not head, explicit=False,
            )
            for begins, head in (("{", ""), (";", r";{ws}"))
            for first, otherwise in (
                (_NAMED_FIRST, (_SINGLE_QUOTED, _ESCAPED_FIRST)),
                (_TYPED_FIRST, (_WRAPPED_FIRST,)),
            )
        ),
    ),
    variants=(
        list_of(r"<\|python_tag\|>{ws}\[{ws}" + _NAMED_CALL, r"{ws}\]", repairs=("opener-spelling",)),
        Form(  # as Meta's page on tools of one's own has it; a form of `qwen_xml`
            head=r"(?:<\|python_tag\|>{ws})?<function={name}>{ws}(?=\{)",
            body="json",
            tail=r"{ws}</function>",
            repairs=("neighbour-body",),
        ),
        Form(head=BUILT_IN, body="arguments", repairs=("neighbour-body",)),
        Form(
            opener=r"<\|python_start\|>{ws}" + _NAMED_CALL,
            head=r"(?=\{)",
            body="envelope",
            separator=r"{ws};{ws}",
            closer=r"{ws}<\|python_end\|>",
            alone=False,
            repairs=("opener-spelling",),
        ),
    ),
    tags=(
        # Llama 4 may write what it says beside its calls between these: that begins with no bracket and no call.
        r"<\|python_start\|>(?={ws}(?:[^\w\[{ \t\r\n]|[0-9]|"
        rf"{ANY_NAME}(?:[ \t\r\n]{{1,64}}+[^( \t\r\n]|[^\w.:/\-( \t\r\n])))",
        r"<\|python_end\|>",
    ),
    writing=Writing(
        opener="<|python_tag|>",
        call='{"name": {quoted_name}, "parameters": {arguments}{id}}',
        separator="; ",
        id=', "id": {quoted_id}',
    ),
)


_FENCED_FIRST = _NAMED_FIRST.replace(r"\"name", rf"(?:\"(?:tool_)?name|{_TYPED})", 1)  # Command R writes the former so
_FENCED_ESCAPED = _FENCED_FIRST.replace(TOOL, ESCAPED_TOOL)
_FENCES = ("```", "````", "~~~")
_FENCED: dict[str, Any] = {"body": "envelope", "line_start": True, "indent": INDENT, "explicit": False}


def _fenced(fence: str) -> tuple[Form, ...]:
    """Return the forms of calls in a code fence, which as much of the same closes."""
    one: dict[str, Any] = {"begins": fence[0], "tail": rf"{{ws}}{fence}", **_FENCED}
    json = rf"{fence}json[ \t]{{0,16}}+\r?\n{{ws}}"
    return (
        Form(
            head=rf"{fence}(?:tool_call|tool_code)[ \t]{{0,16}}+\r?\n{{ws}}(?=\{{)",
            loose_heads=(_calls_otherwise(fence) + r"(?=\{)",),
            loose_tail=FURTHER,
            **one,
        ),
        Form(
            head=json + _FENCED_FIRST,
            loose_heads=(
                json + "(?P<told>)" + _WRAPPED_FIRST,
                json + as_python(_FENCED_FIRST),
                json + "(?P<told>)" + _FENCED_ESCAPED,
                _json_otherwise(fence) + _FENCED_FIRST,
                _json_otherwise(fence) + IN_ANY_WORDS,
            ),
            loose_tail=FURTHER,
            **one,
        ),
        _fenced_list(fence, json),
    )


def _json_otherwise(fence: str) -> str:
    """Return the pattern that opens a code fence of JSON in another spelling."""
    return rf"{fence}[ \t]{{0,4}}+(?i:json)[ \t]{{0,16}}+\r?\n{{ws}}"


def _calls_otherwise(fence: str) -> str:
    """Return the pattern that opens a code fence of calls in any spelling."""
    return rf"{fence}[ \t]{{0,4}}+(?i:tool_calls?|tool_code|function_calls?)[ \t]{{0,16}}+\r?\n{{ws}}"


def _fenced_list(fence: str, json: str, **more: Any) -> Form:
    """Return the form of a list of calls in a code fence that the pattern `json` opens."""
    opener = rf"(?:Action:[ \t]{{0,16}}+)?{json}\[{{ws}}"
    return Form(
        opener=opener + _FENCED_FIRST,
        loose_openers=(opener + _FENCED_ESCAPED,),
        head=r"(?=\{)",
        begins=f"A{fence[0]}",
        separator=r"{ws},{ws}",
        closer=rf"{{ws}}\]{{ws}}{fence}",
        alone=False,
        **_FENCED,
        **more,
    )


FENCED = Dialect(
    name="fenced",
    title='```tool_call or ```json, then {"name": "f", "arguments": {...}}',
    models="models that fence their calls; a fallback of many",
    source="recorded outputs of small models",
    forms=tuple(form for fence in _FENCES for form in _fenced(fence)),
    variants=(
        *(
            _fenced_list(fence, other, repairs=("opener-spelling",))
            for fence in _FENCES
            for other in (_json_otherwise(fence), _calls_otherwise(fence))
        ),
        Form(  # as LangChain's agents ask for it
            head=r"Action:[ \t]{0,16}+(?:\r?\n)?```(?:json)?[ \t]{0,16}+\r?\n{ws}" + MEANT_IN_ANY_WORDS,
            tail="{ws}```",
            begins="A",
            repairs=("opener-spelling",),
            **_FENCED,
        ),
    ),
    tags=(r"\*\*Tool Call:\*\*[ \t]{0,4}+\r?\n(?=```json[ \t]{0,4}+\r?\n\{\"name\":)",),  # as RWKV has it above them
    writing=Writing(
        call='```tool_call\n{"name": {quoted_name}, "arguments": {arguments}{id}}\n```',
        id=', "id": {quoted_id}',
    ),
)
