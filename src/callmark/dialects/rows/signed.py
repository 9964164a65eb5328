"""Rows of calls as those of `attributes`, in tags whose names begin with a sign of the model's own.

Nothing else is written in such tags, so no other names are taken for theirs.
"""

from __future__ import annotations

from typing import Any

from callmark.dialects.idioms import (
    ANY_QUOTED_KEY,
    APART,
    COMMAND_TAGS,
    IS,
    JSON_TYPES,
    NO_NAME,
    PARAMETER,
    QUOTED_KEY,
    SOURCE,
    TEXT_TYPES,
    before_name,
    empty,
    forgotten,
    keyed_otherwise,
    named_otherwise,
    swapped,
    unclosed,
)
from callmark.dialects.model import Dialect, Form, Writing

_IS_TEXT = r"string=\"(?:(?P<text>true)|(?P<json>false))\""
_DSML = r"｜(?:DSML|GCML)｜(?:[ ]|r:)?"
_DSML_CALLS = "(?:function_calls|tool_calls|toolcalls|tool|calls)"


def _dsml(sign: str, *, variant: bool = False) -> tuple[Form, ...]:
    """Return the forms of DeepSeek's tags, whose names begin with `sign`: arguments as one JSON object, or in tags."""
    invoke = f"{sign}(?i:invoke)"  # as models write it, too
    otherwise_named = named_otherwise(invoke)
    nameless = () if variant else (rf"<{invoke}{APART}name{IS}{NO_NAME}>{{ws}}(?=\{{|<{sign}parameter name=)",)
    section: dict[str, Any] = {
        "opener": rf"<{sign}{_DSML_CALLS}>{{ws}}(?=<{sign}invoke name=)",
        "loose_openers": (rf"<{sign}{_DSML_CALLS}>{{ws}}(?={before_name(invoke)})",),
        "tail": rf"{{ws}}</{sign}invoke>",
        "loose_tail": forgotten(f"</{sign}{_DSML_CALLS}>", f"<{sign}invoke name="),
        "closer": rf"</{sign}{_DSML_CALLS}>",
        "repairs": ("opener-spelling",) if variant else (),
    }
    return (
        Form(
            head=rf"<{sign}invoke name=\"{{name}}\">{{ws}}(?=\{{)",
            loose_heads=(otherwise_named + r"{ws}(?=\{)",),
            body="json",
            **section,
        ),
        Form(
            head=rf"<{sign}invoke name=\"{{name}}\"(?:>|{{ws}}(?P<empty>/>))",
            loose_heads=(otherwise_named, *nameless),
            body="parameters",
            parameter=rf"{{ws}}<{sign}parameter name={QUOTED_KEY}(?:[ ]{_IS_TEXT})?>",
            loose_parameters=(keyed_otherwise(f"(?:{sign})?{PARAMETER}"),),
            value_end=rf"</{sign}parameter>",
            loose_value_end=swapped(
                rf"</{sign}invoke>", rf"</{sign}parameter>", rf"{{ws}}<(?:/{sign}{_DSML_CALLS}>|{sign}invoke name=)"
            ),
            unclosed=unclosed(
                rf"{sign}parameter name={ANY_QUOTED_KEY}(?:[ ]string=\"(?:true|false)\")?>",
                rf"{sign}parameter name=",
                rf"/{sign}parameter>",
                rf"/{sign}invoke>",
                rf"/{sign}{_DSML_CALLS}>|{sign}invoke name=",
                sign.lstrip("\\")[0],
            ),
            **section,
        ),
    )


DSML = Dialect(
    name="dsml",
    title='<｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">…</｜DSML｜parameter></…>',
    models="DeepSeek V3.2, V4 and V4.1; GigaChat 3.5 with GCML for DSML",
    source=SOURCE + ": deepseek_v32, deepseek_v4, deepseek_v41, gigachat35",
    results=(rf"</?{_DSML}(?:tool|function)_(?:result|output)s?>",),
    forms=_dsml(_DSML),
    variants=_dsml(r"\|DSML\|[ ]?", variant=True),
    tags=(empty(_DSML + _DSML_CALLS),),
    writing=Writing(
        form=1,
        opener="<｜DSML｜tool_calls>\n",
        call='<｜DSML｜invoke name="{name}">\n{arguments}</｜DSML｜invoke>',
        parameter='<｜DSML｜parameter name="{key}" string="{is_text}">{value}</｜DSML｜parameter>\n',
        closer="\n</｜DSML｜tool_calls>",
    ),
)


_MM = r"<\]minimax\[>\["  # behind a bracket, with which no marker may begin: every list of JSON ends in it
MINIMAX_M3 = Dialect(
    name="minimax_m3",
    title=']<]minimax[>[<invoke name="f">]<]minimax[>[<key>value]<]minimax[>[</key>]<]minimax[>[</invoke>',
    models="MiniMax M3",
    source=SOURCE + ": minimax_m3",
    results=(rf"\]?{_MM}</?(?:tool|function)_?(?:response|result)s?>",),
    forms=(
        Form(
            opener=rf"{_MM}<tool_call>{{ws}}](?={_MM}<invoke name=)",
            head=rf"{_MM}<invoke name=\"{{name}}\">",
            body="parameters",
            parameter=rf"{{ws}}]{_MM}<(?P<key>(?!invoke[ ])[^ \t\r\n<>/\"'][^<>/\"'\r\n]{{0,255}}+)>",
            value_end=rf"]{_MM}</(?!invoke>|tool_call>)[^<>/\r\n]{{1,256}}+>",
            nested=rf"]{_MM}<[^/]",
            item="item",
            tail=rf"{{ws}}]{_MM}</invoke>",
            loose_tail=rf"(?={{ws}}]{_MM}(?:</tool_call>|(?P<next><invoke name=)))",
            separator=r"{ws}]",
            closer=rf"{{ws}}]{_MM}</tool_call>",
        ),
    ),
    tags=(r"<(?:(?P<closes>/)|(?P<opens>))mm:think>",),
    writing=Writing(
        opener="<]minimax[>[<tool_call>\n]",
        call='<]minimax[>[<invoke name="{name}">{arguments}]<]minimax[>[</invoke>',
        parameter="]<]minimax[>[<{key}>{value}]<]minimax[>[</{key}>",
        separator="\n]",
        closer="\n]<]minimax[>[</tool_call>",
    ),
)


_COFL_ID = r"(?P<id>[\w.:/\-]{1,160}+)"
_COFL_ANY_ID = rf"{APART}id{IS}[\"']{_COFL_ID}[\"']"
_COFL = rf"<cofl:tool_call(?:[ ]id=\"{_COFL_ID}\")?[ ]name=\"{{name}}\">"
_COFL_OTHERWISE = (
    named_otherwise("cofl:tool_call", behind=_COFL_ANY_ID),
    named_otherwise(f"cofl:tool_call(?:{_COFL_ANY_ID})?"),
)
_COFL_KEY = "[ ]name=" + QUOTED_KEY
_COFL_KINDS = "(?:(?P<text>raw)|(?P<json>json)|(?P<object>dict)|(?P<array>list))"
_COFL_ANY_KIND = f"(?:(?P<text>raw|{TEXT_TYPES})|(?P<json>json|{JSON_TYPES})|(?P<object>dict)|(?P<array>list))"
_COFL_TYPE = rf"[ ]type=\"{_COFL_KINDS}\">"
_COFL_CALLS: dict[str, Any] = {
    "opener": r"<cofl:tool_calls>{ws}(?=<cofl:tool_call[ ])",
    "key_encoding": "xml",
    "tail": r"{ws}</cofl:tool_call>",
    "loose_tail": forgotten("</cofl:tool_calls>", "<cofl:tool_call[ ]"),
    "closer": r"</cofl:tool_calls>",
}
_COFL_BEHIND = r"{ws}(?:</cofl:tool_calls>|<cofl:tool_call[ ])"
COHERE = Dialect(
    name="cohere",
    title='<cofl:tool_calls><cofl:tool_call id="0" name="f"><cofl:value name="k" type="raw">…</cofl:value></…></…>',
    models="Cohere's Command 5",
    source="the parser and the template `cmd5` of cohere-melody 0.15.3",
    results=(r"<cofl:tool_results?[ >]",),
    forms=(
        Form(
            **_COFL_CALLS,
            head=_COFL + r"(?={ws}<cofl:tool_param[ ])",
            loose_heads=tuple(head + r"(?={ws}<cofl:tool_param[ ])" for head in _COFL_OTHERWISE),
            body="parameters",
            parameter=f"{{ws}}<cofl:tool_param{_COFL_KEY}[ ]{_IS_TEXT}>",
            loose_parameters=(keyed_otherwise("cofl:tool_param"),),
            value_end="</cofl:tool_param>",
            loose_value_end=swapped("</cofl:tool_call>", "</cofl:tool_param>", _COFL_BEHIND),
            unclosed=unclosed(
                rf"cofl:tool_param[ ]name={ANY_QUOTED_KEY}[ ]string=\"(?:true|false)\">",
                "cofl:tool_param[ ]",
                "/cofl:tool_param>",
                "/cofl:tool_call>",
                "/cofl:tool_calls>|cofl:tool_call[ ]",
                "c",
            ),
        ),
        Form(
            **_COFL_CALLS,
            head=_COFL,
            loose_heads=_COFL_OTHERWISE,
            body="parameters",
            parameter="{ws}<cofl:value" + _COFL_KEY + _COFL_TYPE,
            member="{ws}<cofl:value" + _COFL_TYPE,
            loose_parameters=(keyed_otherwise("cofl:value", kinds=_COFL_ANY_KIND),),
            value_end="</cofl:value>",
            loose_value_end=swapped("</cofl:tool_call>", "</cofl:value>", _COFL_BEHIND),
            unclosed=unclosed(
                rf"cofl:value(?:[ ]name={ANY_QUOTED_KEY})?[ ]type=\"(?:raw|json|dict|list)\">",
                "cofl:value[ ]",
                "/cofl:value>",
                "/cofl:tool_call>",
                "/cofl:tool_calls>|cofl:tool_call[ ]",
                "c",
            ),
        ),
    ),
    tags=COMMAND_TAGS,
    writing=Writing(
        form=1,
        opener="<cofl:tool_calls>",
        call='<cofl:tool_call id="{id}" name="{name}">{arguments}</cofl:tool_call>',
        parameter='<cofl:value name="{key}" type="{is_text}">{value}</cofl:value>',
        is_text=("raw", "json"),
        separator="",
        closer="</cofl:tool_calls>",
        id="{id}",
        default_id="{name}:{index}",
    ),
)


_K3_TYPE = f"(?:(?P<text>string)|(?P<json>{JSON_TYPES}))"
_K3_END = r"[ \t]{0,4}+<\|sep\|>"
_K3_CLOSER = r"<\|close\|>tools<\|sep\|>"
_K3_FORGOTTEN = forgotten(_K3_CLOSER, r"<\|open\|>call tool=")
_K3_SECTION: dict[str, Any] = {"opener": r"<\|open\|>tools<\|sep\|>", "closer": _K3_CLOSER}
_K3_CALL = r"<\|open\|>call tool=\"{name}\"(?:[ ]index=\"[0-9]{1,9}+\")?<\|sep\|>"
KIMI_K3 = Dialect(
    name="kimi_k3",
    title='<|open|>call tool="f"<|sep|><|open|>argument key="k" type="string"<|sep|>…<|close|>call<|sep|>',
    models="Kimi K3",
    source=SOURCE + ": kimi_k3",
    forms=(
        Form(
            **_K3_SECTION,
            head=_K3_CALL + r"{ws}<\|open\|>json(?:[ ]type=\"object\")?<\|sep\|>{ws}(?=\{)",
            body="json",
            tail=r"{ws}<\|close\|>json<\|sep\|>{ws}<\|close\|>call<\|sep\|>",
            loose_tail=r"{ws}<\|close\|>call<\|sep\|>|(?:{ws}<\|close\|>json<\|sep\|>)?" + _K3_FORGOTTEN,
        ),
        Form(
            **_K3_SECTION,
            head=_K3_CALL,
            loose_heads=(named_otherwise(r"\|open\|>call", "tool", end=_K3_END),),
            body="parameters",
            parameter=rf"{{ws}}<\|open\|>argument key={QUOTED_KEY}(?:[ ]type=\"{_K3_TYPE}\")?<\|sep\|>",
            loose_parameters=(keyed_otherwise(r"\|open\|>argument", "key", end=_K3_END),),
            value_end=r"<\|close\|>argument<\|sep\|>",
            unclosed=unclosed(
                rf"\|open\|>argument key={ANY_QUOTED_KEY}(?:[ ]type=\"[^<>\"'\r\n]{{0,32}}+\")?<\|sep\|>",
                r"\|open\|>argument key=",
                r"\|close\|>argument<\|sep\|>",
                r"\|close\|>call<\|sep\|>",
                r"\|close\|>tools<\|sep\|>|\|open\|>call tool=",
                "|",
            ),
            nested=_K3_CALL,
            key_encoding="xml",
            tail=r"{ws}<\|close\|>call<\|sep\|>",
            loose_tail=_K3_FORGOTTEN,
        ),
    ),
    tags=(
        # With blanks, as some decoders put them around special tokens.
        r"<\|open\|>[ ]?think(?P<opens>)[ ]?<\|sep\|>",
        r"<\|close\|>[ ]?think(?P<closes>)[ ]?<\|sep\|>",
        r"<\|open\|>[ ]?response(?P<answers>)[ ]?<\|sep\|>",
        r"<\|(?:open|close)\|>[ ]?(?:response|message)[ ]?<\|sep\|>",
    ),
    writing=Writing(
        form=1,
        opener="<|open|>tools<|sep|>",
        call='<|open|>call tool="{name}" index="{number}"<|sep|>{arguments}<|close|>call<|sep|>',
        parameter='<|open|>argument key="{key}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>',
        separator="",
        closer="<|close|>tools<|sep|>",
    ),
)
