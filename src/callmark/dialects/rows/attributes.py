"""Rows of calls with a tag for each argument: names and keys stand in the tags, as attributes or as their names."""

from __future__ import annotations

from typing import Any

from callmark.dialects.idioms import (
    ANY_QUOTED_KEY,
    COMMAND_TAGS,
    KEY,
    KEY_BEHIND,
    MARKED_NAME,
    MORE,
    PARAMETER,
    QUOTED_KEY,
    SOURCE,
    TYPE,
    attributed,
    empty,
    twice,
    unclosed,
)
from callmark.dialects.model import Dialect, Form, Writing
from callmark.dialects.notation import ANY_NAME, anonymous, respelled

_LOOSE_NAME = r"[\"']?[ \t]{0,4}+{name}[ \t]{0,4}+[\"']?"
_WHOLE_NAME = r"(?P<name>[^\W\d][\w/\-]{0,63}+(?:[.:][\w/\-]{1,63}+){0,3}+)"  # a name that no sign ends
_NAMED = r"(?:[ \t]{1,16}+name)?[ \t]{0,4}+="  # of an attribute, or of a tag that has its value at once
_SIGN = "(?::[ ]?|[ ])"  # in the place of `=` between the word of a tag and a name
_LOOSELY = rf"{{ws}}<[ \t]{{0,4}}+{PARAMETER}{_NAMED}[ \t]{{0,4}}+{KEY}{MORE}"
_IS_TEXT = r"string=\"(?:(?P<text>true)|(?P<json>false))\""  # or JSON, as a tag says it


def _misspelt(name: str) -> str:
    """Return the pattern of a closing tag in any case, with something behind its name or not."""
    return rf"</[ \t]{{0,4}}+(?i:{name})(?:[ =][^<>\r\n]{{1,32}}+)?[ \t]{{0,4}}+>"


def _wrong_tail(tail: str, name: str, behind: str, *certain: str) -> str:
    """Return the pattern of what stands in place of a `tail`: it with blanks in it; a misspelt tag of the name, where
    what is `behind` shows that the call is over; or one of the tags that are `certain` wherever they stand.
    """
    ways = [respelled(tail), *certain, rf"{_misspelt(name)}(?={behind})"]
    return rf"{{ws}}(?P<wrong>{'|'.join(ways)})"


def _swapped(tail: str, value_end: str, behind: str) -> str:
    """Return the pattern of a value's closer behind the call's, or twice, where what is `behind` shows that the call is
    over: neither belongs to the value, to which the last of them would be the end.
    """
    return rf"(?:{tail}|{value_end}){{ws}}{value_end}(?={behind})"


_OUTER = "(?:seed:|zyphra_)?tool_call"  # the name of the tags around calls: Seed-OSS and ZAYA1 have some of their own
_QWEN_NAMELESS = (
    rf"<(?i:function)(?:{_NAMED}|:)?[ \t]{{0,4}}+(?:\"\"|'')?(?P<nameless>)[ \t]{{0,4}}+>(?={{ws}}<parameter[ =])"
)
_QWEN_SECTION: dict[str, Any] = {
    "opener": rf"<{_OUTER}>{{ws}}(?=<function=|{anonymous(_QWEN_NAMELESS)})",
    "loose_openers": (
        rf"<(?:{_OUTER}|tool_calls|function_calls)>{{ws}}"
        rf"(?=<[ \t]{{0,4}}+function(?:{_NAMED}|{_SIGN}{ANY_NAME}>{{ws}}<parameter[ =:]))",
    ),
    "closer": rf"</{_OUTER}>",
}
_FUNCTION = "func(?:tion)?s?"  # as models spell it in a closing tag
_QWEN_BEHIND = (  # a call whose own closer is missing
    rf"(?:{{ws}}(?:</{_OUTER}>|<{_OUTER}>{{ws}}<function=)|\r?\n<function={ANY_NAME}>\r?\n)"
)
QWEN_XML = Dialect(
    name="qwen_xml",
    title="<tool_call><function=f><parameter=key>value</parameter></function></tool_call>",
    models="Qwen3-Coder, Qwen3.5, Step-3.5, Nemotron-3, Seed-OSS, ZAYA1; Llama 3.1 with JSON for the parameters",
    source=SOURCE + ": qwen3_coder, qwen3_xml, seed_oss",
    forms=(
        Form(
            **_QWEN_SECTION,
            head=r"<function={name}>{ws}(?=\{)",
            loose_heads=(
                rf"<function{_NAMED}{_LOOSE_NAME}>{{ws}}(?=\{{)",
                rf"<function={_WHOLE_NAME}[ \t]{{0,4}}+[=:,(]?{{ws}}(?=\{{)",
                rf"<function={MARKED_NAME}>{{ws}}(?=\{{)",
                r"<function=(?P<nameless>)>{ws}(?=\{)",
            ),
            body="json",
            tail=r"{ws}</function>",
            loose_tail=rf"(?={{ws}}</{_OUTER}>)",
        ),
        Form(
            **_QWEN_SECTION,
            head=r"<function={name}>",
            loose_heads=(
                rf"<[ \t]{{0,4}}+function{_NAMED}[ \t]{{0,4}}+{_LOOSE_NAME}[ \t]{{0,4}}+>"
                r"(?={ws}</?[ \t]{0,4}+(?:param|function))",
                rf"<function={{name}}(?=\r?\n{{ws}}<parameter=|{{ws}}</function>{{ws}}</{_OUTER}>)",
                r"<function={name}\r?\n{ws}</parameter>(?={ws}</function>)",  # of no parameter
                rf"<function{_SIGN}{{name}}>(?={{ws}}<parameter[ =:])",  # other XML has such tags, too
                rf"<function={MARKED_NAME}>(?={{ws}}<(?:parameter=|/function>))",
                # Its word or tag is missing.
                r"<tool_call>{ws}<?(?!(?i:function):?[<> \t\r\n]){name}>?(?={ws}<parameter=)",
                _QWEN_NAMELESS,
            ),
            body="parameters",
            parameter=r"{ws}<parameter={key}>",
            loose_parameters=(
                _LOOSELY,
                # Without any opener in the value: a call behind a tag that was cut is no value.
                r"{ws}<parameter=(?P<key>[^<>\"' \t\r\n]{1,128}+)(?P<unclosed>)"
                r"(?=\r?\n[^<\[【［]{1,512}+</parameter>)",
                r"{ws}<parameter=(?P<key>[^\W\d][\w.\-]{0,127}+)(?P<unclosed>)="  # as an attribute
                r"(?=[^<>\[【［\r\n]{1,512}+</parameter>)",
                # Behind a bracket its value stands on the next line: `<parameter>a->b` is XML in a value.
                r"{ws}<parameter(?:[ \t]{0,4}+:[ \t]{0,4}+|>{ws}(?=[\w.\-]{1,128}+>\r?\n))"
                r"(?P<key>[^\W\d][\w.\-]{0,127}+)>",
            ),
            value_end="</parameter>",
            loose_value_end=r"\r?\n" + _swapped(_misspelt(_FUNCTION), "</parameter>", _QWEN_BEHIND),
            nested=(  # each of these words costs an exported grammar a fifth of its size
                r"<tool_call>{ws}(?=<function=)|<seed:tool_call>{ws}(?=<function=)|"
                rf"\r?\n<function={ANY_NAME}>(?=\r?\n)"
            ),
            unclosed=(
                r"\r?\n(?=<parameter=[^<>\r\n]{1,256}+>(?:\r?\n|[^<\r\n]{1,256}+(?:</parameter>{ws}|\r?\n)"
                rf"(?:<parameter=|</function>))|</function>{{ws}}(?:</{_OUTER}>|<function=))"
            ),
            trim=True,
            tail=r"{ws}</function>",
            loose_tail=(
                rf"(?={{ws}}(?:</{_OUTER}>|<zyphra_tool_call>{{ws}}<function=))|"
                + _wrong_tail(
                    "</function>", _FUNCTION, _QWEN_BEHIND, r"</function=[\w.:/\-]{1,128}+>",
                    rf"</(?!param|(?:invoke|arg(?:ument)?s|tool)>)[\w.\-]{{1,64}}+>(?={{ws}}</{_OUTER}>)",  # its name
                )
            ),
        ),
    ),
    variants=(
        Form(
            head=rf"<{_OUTER}>{{ws}}<function>{{ws}}(?=\{{)",
            body="envelope",
            tail=rf"{{ws}}</function>{{ws}}</{_OUTER}>",
            repairs=("neighbour-body",),
        ),
    ),
    tags=(
        r"<(?:(?P<closes>/)|(?P<opens>))seed:think>",
        empty(_OUTER),
        twice(f"<{_OUTER}>", "<function="),
    ),
    writing=Writing(
        form=1,
        opener="<tool_call>\n",
        call="<function={name}>\n{arguments}</function>",
        parameter="<parameter={key}>\n{value}\n</parameter>\n",
        separator="\n</tool_call>\n<tool_call>\n",
        closer="\n</tool_call>",
    ),
)


_NAME = r"[\"']?{name}[\"']?"
_DSML = r"｜(?:DSML|GCML)｜(?:[ ]|r:)?"
_DSML_CALLS = "(?:function_calls|tool_calls|toolcalls|tool|calls)"


_APART = r"[ \t\r\n]{1,8}+"  # between the attributes of a tag
_IS = r"[ \t\r\n]{0,4}+=[ \t\r\n]{0,4}+"
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


def _dsml(sign: str, **more: Any) -> tuple[Form, ...]:
    """Return the forms of DeepSeek's tags, whose names begin with `sign`: arguments as one JSON object, or in tags."""
    invoke = f"{sign}(?i:invoke){_APART}"  # as models write it, too
    section: dict[str, Any] = {
        "opener": rf"<{sign}{_DSML_CALLS}>{{ws}}(?=<{sign}invoke name=)",
        "loose_openers": (rf"<{sign}{_DSML_CALLS}>{{ws}}(?=<{invoke}name{_IS})",),
        "tail": rf"{{ws}}</{sign}invoke>",
        "loose_tail": rf"(?={{ws}}(?:</{sign}{_DSML_CALLS}>|(?P<next><{sign}invoke name=)))",
        "closer": rf"</{sign}{_DSML_CALLS}>",
        **more,
    }
    return (
        Form(
            head=rf"<{sign}invoke name=\"{{name}}\">{{ws}}(?=\{{)",
            loose_heads=(rf"<{invoke}name{_IS}{_NAME}[ \t\r\n]{{0,4}}+>{{ws}}(?=\{{)",),
            body="json",
            **section,
        ),
        Form(
            head=rf"<{sign}invoke name=\"{{name}}\"(?:>|{{ws}}(?P<empty>/>))",
            loose_heads=(rf"<{invoke}name{_IS}{_NAME}[ \t\r\n]{{0,4}}+>",),
            body="parameters",
            parameter=rf"{{ws}}<{sign}parameter name={QUOTED_KEY}(?:[ ]{_IS_TEXT})?>",
            loose_parameters=_otherwise(sign + PARAMETER),
            value_end=rf"</{sign}parameter>",
            loose_value_end=_swapped(
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
    variants=_dsml(r"\|DSML\|[ ]?", repairs=("opener-spelling",)),
    tags=(empty(_DSML + _DSML_CALLS),),
    writing=Writing(
        form=1,
        opener="<｜DSML｜tool_calls>\n",
        call='<｜DSML｜invoke name="{name}">\n{arguments}</｜DSML｜invoke>',
        parameter='<｜DSML｜parameter name="{key}" string="{is_text}">{value}</｜DSML｜parameter>\n',
        closer="\n</｜DSML｜tool_calls>",
    ),
)


_INVOKE = "inv[oevk]{2,5}+s?"  # as models spell it in a closing tag
_INVOKES = "(?:function_calls|minimax:tool_call|dots_function_call)"
_OWN = "a(?:tem|ntml)"  # the prefix of Muse's tags, and of Claude's
_INVOKE_OVER = rf"(?={{ws}}(?:</{_INVOKES}>|(?P<next><invoke name=)))"  # a call whose own closer is missing
_INVOKE_SECTION: dict[str, Any] = {
    "opener": rf"<{_INVOKES}>{{ws}}(?=<invoke(?:[ ]name=|>{{ws}}<parameter[ ]name=))",
    "loose_openers": (
        rf"<{_INVOKES}>{{ws}}(?=<[ \t]{{0,4}}+invoke{_NAMED})",
        r"<tool_calls?>{ws}(?=<invoke name=)",  # DeepSeek's, without its sign
    ),
    "closer": rf"</{_INVOKES}>",
}
INVOKE = Dialect(
    name="invoke",
    title='<invoke name="f"><parameter name="key">value</parameter></invoke>',
    models="MiniMax M2, dots.llm; Step 3, Muse and Claude with tags of their own; others with prompts in XML",
    source=SOURCE + ": minimax_m2, dots, step3, muse",
    forms=(
        Form(
            **_INVOKE_SECTION,
            head=rf"<invoke name={_NAME}>{{ws}}(?=\{{)",
            loose_heads=(rf"<invoke name=[\"']{MARKED_NAME}[\"']>{{ws}}(?=\{{)",),
            body="json",
            tail=r"{ws}</invoke>",
            loose_tail=_INVOKE_OVER,
        ),
        Form(
            **_INVOKE_SECTION,
            head=rf"<invoke name={_NAME}>(?={{ws}}</?(?:parameter|invoke|{_INVOKES})[ >])",
            loose_heads=(
                rf"<[ \t]{{0,4}}+invoke{_NAMED}[ \t]{{0,4}}+{_LOOSE_NAME}[ \t]{{0,4}}+>"
                r"(?={ws}</?[ \t]{0,4}+(?:param(?:eter)?|invoke)[ =>])",
                # A word as the value, no text: else any text could go on with what is cut in it.
                r"<invoke(?:[ ](?!name=)[a-z_]{1,32}+=[\"'][\w.:/\-]{0,32}+[\"']){1,2}+"
                rf"[ ]name={_NAME}>(?={{ws}}</?(?:param(?:eter)?|invoke)[ =>])",
                rf"<invoke name={_NAME}(?={{ws}}(?:<parameter name=|</invoke>{{ws}}</{_INVOKES}>))",
                r"<invoke name=[\"']{name}[\"'][ \t]{0,4}+(?P<empty>/>)",
                rf"<invoke name=[\"']{MARKED_NAME}[\"']>(?={{ws}}</?(?:parameter|invoke)[ >])",
                r"<invoke(?:[ ]name=(?:\"\"|'')?)?(?P<nameless>)>(?={ws}<parameter[ ]name=)",
            ),
            body="parameters",
            parameter=rf"{{ws}}<parameter name={KEY}>",
            loose_parameters=(
                rf"{{ws}}<parameter name={KEY}[ ]{_IS_TEXT}>",
                _LOOSELY,
                "{ws}<" + PARAMETER + KEY_BEHIND,
            ),
            value_end="</parameter>",
            loose_value_end=r"\r?\n" + _swapped(
                _misspelt(_INVOKE), "</parameter>", rf"{{ws}}(?:</{_INVOKES}>|<invoke name=)"
            ),
            nested=rf"<{_INVOKES}>{{ws}}(?=<invoke name=)|\r?\n<invoke name={_NAME}>(?=\r?\n)",
            unclosed=(
                rf"\r?\n(?=</invoke>{{ws}}(?:</{_INVOKES}>|<invoke name=)"
                r"|<parameter name=[\"']?[^<>\"'\r\n]{1,256}+[\"']?>[^<\r\n]{1,256}+(?:</parameter>{ws}|\r?\n)"
                r"(?:<parameter name=|</invoke>))"
            ),
            tail=r"{ws}</invoke>",
            loose_tail=_INVOKE_OVER + "|"
            + _wrong_tail("</invoke>", _INVOKE, rf"{{ws}}(?:</{_INVOKES}>|<invoke name=)"),
        ),
        Form(
            opener=r"<｜tool_calls_begin｜>{ws}(?=<｜tool_call_begin｜>)",
            head=r"<｜tool_call_begin｜>{ws}function{ws}<｜tool_sep｜>{ws}<steptml:invoke name=\"{name}\">",
            loose_heads=(r"<｜tool_call_begin｜>{ws}<steptml:invoke name=\"{name}\">",),
            **attributed(
                "steptml:parameter", "/steptml:invoke>{ws}<｜tool_call_end｜>", "｜tool_call(?:s_end｜|_begin｜)>", "s"
            ),
            tail=r"{ws}</steptml:invoke>{ws}<｜tool_call_end｜>",
            closer="<｜tool_calls_end｜>",
        ),
        Form(
            opener=rf"<{_OWN}:function_calls>{{ws}}(?=<{_OWN}:invoke name=)",
            head=rf"<{_OWN}:invoke name=\"{{name}}\">",
            **attributed(
                f"{_OWN}:parameter", f"/{_OWN}:invoke>", f"/{_OWN}:function_calls>|{_OWN}:invoke name=", "a"
            ),
            tail=rf"{{ws}}</{_OWN}:invoke>",
            loose_tail=rf"(?={{ws}}(?:</{_OWN}:function_calls>|(?P<next><{_OWN}:invoke name=)))",
            closer=f"</{_OWN}:function_calls>",
        ),
    ),
    tags=(
        empty(_INVOKES),
        twice(f"<{_INVOKES}>", "<invoke name="),
        r"<\|start\|>assistant{ws}to=self(?P<opens>)<\|message\|>",
        r"<\|start\|>assistant{ws}to=[^<>|\r\n]{1,128}+(?P<answers>)<\|message\|>",
        r"<\|start\|>assistant{ws}<\|message\|>",
        rf"<\|message(?P<answers>)\|>(?=<{_OWN}:function_calls>{{ws}}<{_OWN}:invoke name=)",  # without its role
        # Behind the end of a message the header of the next one needs no token of its own.
        r"<\|eo[mt]\|>assistant{ws}to=self(?P<opens>)<\|message\|>",
        r"<\|eo[mt]\|>assistant{ws}to=[^<>|\r\n]{1,128}+(?P<answers>)<\|message\|>",
        r"<\|eo[mt](?P<closes>)\|>",
    ),
    leads=(
        r"[ ]?to=self(?P<opens>)<\|message\|>",
        r"[ ]?to=(?!functions\.)[^<>| \t\r\n]{1,128}+<\|message\|>",  # those, and what has another word, are gpt-oss'
        r"<\|message\|>",
    ),
    writing=Writing(
        form=1,
        opener="<function_calls>\n",
        call='<invoke name="{name}">\n{arguments}</invoke>',
        parameter='<parameter name="{key}">{value}</parameter>\n',
        closer="\n</function_calls>",
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


_GLUED = r"Ġ?[ \t]{0,16}+name[ \t]{0,4}+="  # as some decoders leave the blank of a token
MINICPM5 = Dialect(
    name="minicpm5",
    title='<function name="f"><param name="key">value</param></function>',
    models="MiniCPM-4 and 5",
    source=SOURCE + ": minicpm5",
    forms=(
        Form(
            head=r"<function name=[\"']{name}[\"']>(?={ws}(?:<param name=[\"']|</function>))",
            body="parameters",
            loose_heads=(
                rf"<[ \t]{{0,4}}+function{_GLUED}[ \t]{{0,4}}+{_LOOSE_NAME}[ \t]{{0,4}}+>"
                rf"(?={{ws}}<(?:[ \t]{{0,4}}+param{_GLUED}|/[ \t]{{0,4}}+function[ \t]{{0,4}}+>))",
                r"<function name=[\"']{name}[\"']?(?={ws}<param name=[\"'])",
            ),
            parameter=r"{ws}<param name=[\"'](?P<key>[^<>\"'\r\n]{1,256}+)[\"']>",
            loose_parameters=(
                rf"{{ws}}<[ \t]{{0,4}}+{PARAMETER}{_GLUED}[ \t]{{0,4}}+{KEY}{MORE}",
                "{ws}<" + PARAMETER + KEY_BEHIND,
            ),
            value_end="</param>",
            unclosed=unclosed(
                r"param name=[\"'][^<>\"'\r\n]{1,256}+[\"']>",
                r"param name=|!\[CDATA\[",
                "/param>",
                "/function>",
                r"function name=[\"']",
                "pf!",
            ),
            encoding="xml",
            tail=r"{ws}</function>",
            loose_tail=r"{ws}(?P<wrong></[ \t]{0,4}+(?i:fun[ction]{3,7}+s?)[ \t]{0,4}+>)",
        ),
    ),
    writing=Writing(
        call='<function name="{name}">{arguments}</function>',
        parameter='<param name="{key}">{value}</param>',
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
    "loose_tail": r"(?={ws}(?:</cofl:tool_calls>|(?P<next><cofl:tool_call[ ])))",
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
            parameter=f"{{ws}}<cofl:tool_param{_COFL_KEY}[ ]{_IS_TEXT}>",
            loose_parameters=_cofl_otherwise("tool_param", "string", "(?:(?P<text>true)|(?P<json>false))"),
            value_end="</cofl:tool_param>",
            loose_value_end=_swapped("</cofl:tool_call>", "</cofl:tool_param>", _COFL_BEHIND),
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
            loose_value_end=_swapped("</cofl:tool_call>", "</cofl:value>", _COFL_BEHIND),
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


_K3_CALL = r"<\|open\|>call tool=\"{name}\"(?:[ ]index=\"[0-9]{1,9}+\")?<\|sep\|>"
KIMI_K3 = Dialect(
    name="kimi_k3",
    title='<|open|>call tool="f"<|sep|><|open|>argument key="k" type="string"<|sep|>…<|close|>call<|sep|>',
    models="Kimi K3",
    source=SOURCE + ": kimi_k3",
    forms=(
        Form(
            opener=r"<\|open\|>tools<\|sep\|>",
            head=_K3_CALL + r"{ws}<\|open\|>json(?:[ ]type=\"object\")?<\|sep\|>{ws}(?=\{)",
            body="json",
            tail=r"{ws}<\|close\|>json<\|sep\|>{ws}<\|close\|>call<\|sep\|>",
            loose_tail=(
                r"{ws}<\|close\|>call<\|sep\|>|(?:{ws}<\|close\|>json<\|sep\|>)?"
                r"(?={ws}(?:<\|close\|>tools<\|sep\|>|(?P<next><\|open\|>call tool=)))"
            ),
            closer=r"<\|close\|>tools<\|sep\|>",
        ),
        Form(
            opener=r"<\|open\|>tools<\|sep\|>",
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
            loose_tail=r"(?={ws}(?:<\|close\|>tools<\|sep\|>|(?P<next><\|open\|>call tool=)))",
            closer=r"<\|close\|>tools<\|sep\|>",
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
