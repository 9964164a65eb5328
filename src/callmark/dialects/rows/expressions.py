"""Rows of calls that are written as in a program: `name(...)`, or `name{...}` with bare keys."""

from __future__ import annotations

from typing import Any

from callmark.dialects.idioms import (
    BARE,
    BARE_CALLS,
    BUILT_IN,
    ESCAPED_NAME,
    FURTHER_LISTED,
    IN_ANY_WORDS,
    MARKED_NAME,
    SOURCE,
    calls_of,
    list_of,
    objects_of,
    twice,
)
from callmark.dialects.model import Dialect, Form, Writing
from callmark.dialects.notation import ANY_NAME

_BEFORE_CALL = rf"(?={ANY_NAME}{{ws}}\()"  # as Python has it
_NONCE = r"(?:#(?P<nonce>[0-9A-Za-z_\-]{1,64}+))?{ws}"
_BEFORE_NAME = r"\[{ws}CALL" + _NONCE + ":{ws}"
CALL_WORD = r"{ws}(?:CALL|Call|call)" + _NONCE  # what begins a marker, in any spelling
CALL = Dialect(
    name="call",
    title='[CALL: name({"key": "value"})] or [CALL: name(key=value)]',
    models="any model that was taught it in the prompt",
    source="callmark, README",
    forms=(
        Form(
            head=_BEFORE_NAME + r"{name}{ws}(?:\(|(?P<empty>\]))",
            loose_heads=(
                r"\[{ws}(?:Call|call)" + _NONCE + r":{ws}{name}{ws}\(",
                r"\[" + CALL_WORD + ":{ws}" + MARKED_NAME + r"{ws}\(",
                _BEFORE_NAME + MARKED_NAME + r"{ws}(?P<empty>\])",
                _BEFORE_NAME + rf"(?P<name>{ESCAPED_NAME}){{ws}}(?P<empty>\\\])",
                r"\[{ws}[Cc]alling[ \t]{1,8}+tools?{ws}:{ws}{name}{ws}\(",  # as hosts show calls of the past
                *(sign + CALL_WORD + r"[:：]{ws}{name}{ws}(?P<wide>[(（])" for sign in (r"\[", "【", "［")),
                r"\[" + CALL_WORD + r":{ws}(?P<name>[^\W\d](?:[\w./\-]|:(?=[\w.:/\-])){0,127}+):?(?P<missing>)"
                r"{ws}(?=\{{ws}(?:[\"'}]|[^\W\d]\w{0,63}+{ws}:))",
            ),
            begins="[【［",
            body="arguments",
            tail=r"{ws}\]",
            loose_tail=(
                r"(?=[ \t]{0,64}+\r?\n{ws}[^\W\d_]|{ws}\[{ws}CALL(?:#[0-9A-Za-z_\-]{1,64}+)?{ws}:)|"
                r"(?P<more>{ws},{ws})" + _BEFORE_CALL + r"|{ws}(?P<wrong>[;.\\]{ws}\]|\[/(?i:call)\])"
            ),
        ),
    ),
    variants=(
        Form(
            begins="C",
            head=r"CALL{ws}:{ws}{name}{ws}\(",
            body="arguments",
            **BARE,
        ),
        Form(
            begins="[",
            head=r"\[" + CALL_WORD + ":{ws}" + IN_ANY_WORDS,
            body="envelope",
            tail=r"{ws}\]",
            loose_tail=FURTHER_LISTED,
            repairs=("neighbour-body",),
        ),
        *(
            Form(  # as some hosts show calls of the past
                begins="[",
                head=rf"\[[Cc]alling tool={quote}{{name}}{quote}(?=[ ][^\W\d][\w.\-]{{0,127}}+={quote}|[ ]?\])",
                body="parameters",
                parameter=rf"[ ](?P<key>[^\W\d][\w.\-]{{0,127}}+)=(?P<text>){quote}",
                value_end=quote,
                tail=r"[ ]?\]",
                repairs=("opener-spelling",),
            )
            for quote in ('"', "'")
        ),
    ),
    writing=Writing(call="[CALL{nonce}: {name}({arguments})]", nonce="#{nonce}"),
)


_FENCE = r"```tool_code[ \t]{0,16}+\r?\n{ws}"
_MODULE = rf"(?:default_api\.{_BEFORE_CALL})?+"  # that has the tools where Gemini runs code
_PRINT = rf"print{{ws}}\({{ws}}{_MODULE}" + _BEFORE_CALL


def _bare_calls(**more: Any) -> Form:
    """Return the form of a Python list of calls that nothing stands around."""
    return calls_of(BARE_CALLS, r"\]", begins="[", tail=r"{ws}(?=[,\]])", separator=r",{ws}", **more)


PYTHONIC = Dialect(
    name="pythonic",
    title="[f(a=1), g()] or <|tool_call_start|>[f(a=1)]<|tool_call_end|>",
    models="Llama 4 and ToolACE; LFM2, LFM2.5, Olmo 3, Gemma 3, and at times Llama 3 and 4, with a wrapper",
    source=SOURCE + ": pythonic, llama4_pythonic, lfm2, olmo3",
    forms=(
        calls_of(
            r"<\|(?:tool_call|python)_start\|>{ws}\[{ws}" + _BEFORE_CALL,
            r"{ws}\]{ws}<\|(?:tool_call|python)_end\|>",
            separator=r"{ws},{ws}",
        ),
        calls_of(r"<function_calls>{ws}" + _BEFORE_CALL, r"</function_calls>"),
        _bare_calls(explicit=False),
        Form(head=BUILT_IN, body="arguments"),
        *(
            Form(
                opener=_FENCE + bracket + _MODULE + _BEFORE_CALL,
                head=head + r"{name}{ws}\(",
                body="arguments",
                begins="`",
                tail=tail,
                separator=separator,
                closer=closer,
                alone=False,
                line_start=True,
                explicit=False,
            )
            for bracket, head, tail, separator, closer in (
                ("", _PRINT, r"{ws}\)", "{ws}" + _MODULE + _BEFORE_CALL, r"{ws}```"),
                ("", "", "", "{ws}" + _MODULE + _BEFORE_CALL, r"{ws}```"),
                (r"\[{ws}", "", "", r"{ws},{ws}" + _MODULE, r"{ws}\]{ws}```"),
            )
        ),
    ),
    variants=(
        _bare_calls(**BARE),
        list_of(
            r"<\|tool_call_start\|>{ws}\[{ws}(?=\{)", r"{ws}\]{ws}<\|tool_call_end\|>", repairs=("neighbour-body",)
        ),
        objects_of(r"<\|tool_call_start\|>{ws}(?=\{)", r"<\|tool_call_end\|>", repairs=("neighbour-body",)),
        calls_of(
            r"<\|(?:tool_call|python)_start\|>{ws}" + _BEFORE_CALL,
            r"<\|(?:tool_call|python)_end\|>",
            repairs=("neighbour-body",),
        ),
        *(
            calls_of(
                rf"<{tag}>{{ws}}{BARE_CALLS}",
                rf"{{ws}}\]{{ws}}</{tag}>",
                separator=r"{ws},{ws}",
                repairs=("neighbour-body",),
            )
            for tag in ("function_calls", "TOOLCALL")
        ),
    ),
    tags=(
        r"<\|tool_call_start\|>{ws}\[{ws}\]{ws}<\|tool_call_end\|>",
        twice(r"<\|tool_call_start\|>", r"\["),
        r"<\|thought_(?:start(?P<opens>)|end(?P<closes>))\|>",
    ),
    writing=Writing(
        opener="<|tool_call_start|>[",
        call="{name}({arguments})",
        separator=", ",
        closer="]<|tool_call_end|>",
        pairs=True,
    ),
)


def _gemma_tail(bracket: str) -> str:
    """Return the pattern of what Gemma 4 writes in place of its closer, behind arguments that begin with a bracket."""
    return (
        r"{ws}(?P<wrong></tool_call>|<\|tool_call\|>|<\|/tool_call>)|(?={ws}<(?:\|tool_call|turn\|)>)|"
        rf"(?P<more>{{ws}},?{{ws}}(?:call)?:)(?={ANY_NAME}{{ws}}{bracket})"
    )


_GEMMA_QUOTE = '<|"|>'
GEMMA4 = Dialect(
    name="gemma4",
    title='<|tool_call>call:f{key:<|"|>value<|"|>}<tool_call|>',
    models="Gemma 4",
    source=SOURCE + ": gemma4",
    forms=(
        Form(
            head=r"<\|tool_call>{ws}(?:call)?:{name}{ws}{object}",
            loose_heads=(
                r"<\|tool_call>{ws}(?:(?:call)?{ws}:{ws}|(?!call{ws}:)){name}{ws}(?=\{)",
                r"<\|tool_call>{ws}(?:call)?:{name}{ws}(?P<missing>)(?P<empty><tool_call\|>)",
            ),
            body="braces",
            quote=_GEMMA_QUOTE,
            tail=r"{ws}<tool_call\|>",
            loose_tail=_gemma_tail(r"\{"),
        ),
        *(
            Form(head=head, begins=head[0], body="braces", quote=_GEMMA_QUOTE, line_start=True, explicit=False)
            for head in (r"call:{name}{ws}(?=\{)", r":{name}(?=\{)")  # a blank there is CSS: `:root { ... }`
        ),
    ),
    variants=(
        Form(
            head=r"<\|tool_call>{ws}(?:call)?:{name}{ws}\(",
            body="arguments",
            quote=_GEMMA_QUOTE,
            tail=r"{ws}<tool_call\|>",
            loose_tail=_gemma_tail(r"\("),
            repairs=("neighbour-body",),
        ),
    ),
    tags=(
        r"<\|channel>thought(?P<opens>)",
        r"<channel\|>(?P<closes>)",
        r"<\|channel>(?:content|final|response)(?P<answers>)[ \t]{0,16}+\r?\n",
        twice(r"<\|channel>", "[a-z]"),
        twice(r"<\|tool_call>", "(?:call)?:" + ANY_NAME),
        r"<\|tool_call>{ws}<tool_call\|>",
    ),
    writing=Writing(call="<|tool_call>call:{name}{arguments}<tool_call|>", separator=""),
)


FUNCTIONGEMMA = Dialect(
    name="functiongemma",
    title="<start_function_call>call:f{key:<escape>value<escape>}<end_function_call>",
    models="FunctionGemma",
    source=SOURCE + ": functiongemma",
    results=(r"<(?:start|end)_function_response>",),
    forms=(
        Form(
            head=r"<start_function_call>{ws}call:{name}{ws}{object}",
            body="braces",
            quote="<escape>",
            tail=r"{ws}<end_function_call>",
        ),
    ),
    writing=Writing(call="<start_function_call>call:{name}{arguments}<end_function_call>", separator=""),
)
