"""Rows of calls as those of `attributes`, in tags whose names begin with a sign of the model's own.

Nothing else is written in such tags, so no other names are taken for theirs.
"""

from __future__ import annotations

from typing import Any

from callmark.dialects.idioms import (
    ANY_QUOTED_KEY,
    ANY_QUOTED_NAME,
    COMMAND_TAGS,
    IS_TEXT,
    NO_NAME,
    PARAMETER,
    QUOTED_KEY,
    SOURCE,
    TYPE,
    empty,
    forgotten,
    swapped,
    unclosed,
)
from callmark.dialects.model import Dialect, Form, Writing

_APART = r"[ \t\r\n]{1,8}+"  # between the attributes of a tag
_IS = r"[ \t\r\n]{0,4}+=[ \t\r\n]{0,4}+"
_DSML = r"｜(?:DSML|GCML)｜(?:[ ]|r:)?"
_DSML_CALLS = "(?:function_calls|tool_calls|toolcalls|tool|calls)"
_WORDS = r"[\"']?(?P<key>[^<>\"'= \t\r\n]{1,256}+(?:[ \t]{1,8}+[^<>\"'= \t\r\n]{1,32}+(?![ \t]{0,4}+=)){0,4}+)[\"']?"
_OF_KIND = (
    rf"(?:string|type){_IS}[\"']?"
    r"(?:(?P<text>[Tt]rue|string)|(?P<json>[Ff]alse|number|integer|boolean|object|array|null))[\"']?"
)


def _otherwise(tag: str) -> tuple[str, str]:
    """Return the patterns of a parameter's tag: name and kind in any order, blanks and quotes, and more attributes."""
    begin, end = rf"{{ws}}<{tag}{_APART}", _more("") + r"[ \t\r\n]{0,4}+>"
    return (
        rf"{begin}name{_IS}{_WORDS}{_more('(?!string|type)')}(?:{_APART}{_OF_KIND})?{end}",
        rf"{begin}{_OF_KIND}{_APART}name{_IS}{_WORDS}{end}",
    )


def _more(unless: str) -> str:
    """Return the pattern of other attributes, which do not begin as `unless` says."""
    return rf"(?:{_APART}{unless}[a-z_]{{1,32}}+{_IS}[\"'][^<>\"'\r\n]{{0,32}}+[\"']){{0,2}}+"


def _dsml(sign: str, *, variant: bool = False) -> tuple[Form, ...]:
    """Return the forms of DeepSeek's tags, whose names begin with `sign`: arguments as one JSON object, or in tags."""
    invoke = f"{sign}(?i:invoke){_APART}"  # as models write it, too
    nameless = () if variant else (rf"<{invoke}name{_IS}{NO_NAME}>{{ws}}(?=\{{|<{sign}parameter name=)",)
    section: dict[str, Any] = {
        "opener": rf"<{sign}{_DSML_CALLS}>{{ws}}(?=<{sign}invoke name=)",
        "loose_openers": (rf"<{sign}{_DSML_CALLS}>{{ws}}(?=<{invoke}name{_IS})",),
        "tail": rf"{{ws}}</{sign}invoke>",
        "loose_tail": forgotten(f"</{sign}{_DSML_CALLS}>", f"<{sign}invoke name="),
        "closer": rf"</{sign}{_DSML_CALLS}>",
        "repairs": ("opener-spelling",) if variant else (),
    }
    return (
        Form(
            head=rf"<{sign}invoke name=\"{{name}}\">{{ws}}(?=\{{)",
            loose_heads=(rf"<{invoke}name{_IS}{ANY_QUOTED_NAME}[ \t\r\n]{{0,4}}+>{{ws}}(?=\{{)",),
            body="json",
            **section,
        ),
        Form(
            head=rf"<{sign}invoke name=\"{{name}}\"(?:>|{{ws}}(?P<empty>/>))",
            loose_heads=(rf"<{invoke}name{_IS}{ANY_QUOTED_NAME}[ \t\r\n]{{0,4}}+>", *nameless),
            body="parameters",
            parameter=rf"{{ws}}<{sign}parameter name={QUOTED_KEY}(?:[ ]{IS_TEXT})?>",
            loose_parameters=_otherwise(sign + PARAMETER),
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


_COFL = r"<cofl:tool_call(?:[ ]id=\"(?P<id>[\w.:/\-]{1,160}+)\")?[ ]name=\"{name}\">"
_COFL_OTHERWISE = r"<cofl:tool_call[ ]name=\"{name}\"[ ]id=\"(?P<id>[\w.:/\-]{1,160}+)\">"
_COFL_KEY = "[ ]name=" + QUOTED_KEY
_COFL_KINDS = "(?:(?P<text>raw)|(?P<json>json)|(?P<object>dict)|(?P<array>list))"
_COFL_TYPE = rf"[ ]type=\"{_COFL_KINDS}\">"
_COFL_CALLS: dict[str, Any] = {
    "opener": r"<cofl:tool_calls>{ws}(?=<cofl:tool_call[ ])",
    "key_encoding": "xml",
    "tail": r"{ws}</cofl:tool_call>",
    "loose_tail": forgotten("</cofl:tool_calls>", "<cofl:tool_call[ ]"),
    "closer": r"</cofl:tool_calls>",
}


def _cofl_otherwise(tag: str, attribute: str, kinds: str) -> tuple[str, str]:
    """Return the patterns of a value's tag: its attributes in any order, with other blanks and quotes."""
    key = rf"{_APART}name{_IS}[\"'](?P<key>[^<>\"'\r\n]{{1,256}}+)[\"']"
    kind = rf"{_APART}{attribute}{_IS}[\"']{kinds}[\"']"
    return rf"{{ws}}<cofl:{tag}{key}{kind}[ \t\r\n]{{0,4}}+>", rf"{{ws}}<cofl:{tag}{kind}{key}[ \t\r\n]{{0,4}}+>"


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
            loose_heads=(_COFL_OTHERWISE + r"(?={ws}<cofl:tool_param[ ])",),
            body="parameters",
            parameter=f"{{ws}}<cofl:tool_param{_COFL_KEY}[ ]{IS_TEXT}>",
            loose_parameters=_cofl_otherwise("tool_param", "string", "(?:(?P<text>true)|(?P<json>false))"),
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
            loose_heads=(_COFL_OTHERWISE,),
            body="parameters",
            parameter="{ws}<cofl:value" + _COFL_KEY + _COFL_TYPE,
            member="{ws}<cofl:value" + _COFL_TYPE,
            loose_parameters=_cofl_otherwise("value", "type", _COFL_KINDS),
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
            loose_heads=(r"<\|open\|>call index=\"[0-9]{1,9}+\"[ ]tool=\"{name}\"<\|sep\|>",),
            body="parameters",
            parameter=rf"{{ws}}<\|open\|>argument key={QUOTED_KEY}(?:[ ]type=\"{TYPE}\")?<\|sep\|>",
            loose_parameters=(rf"{{ws}}<\|open\|>argument[ ]type=\"{TYPE}\"[ ]key={QUOTED_KEY}<\|sep\|>",),
            value_end=r"<\|close\|>argument<\|sep\|>",
            unclosed=unclosed(
                rf"\|open\|>argument key={ANY_QUOTED_KEY}(?:[ ]type=\"[a-z]{{4,7}}+\")?<\|sep\|>",
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
