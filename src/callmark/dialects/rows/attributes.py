"""Rows of calls with a tag for each argument: names and keys stand in the tags, as attributes or as their names."""

from __future__ import annotations

from typing import Any

from callmark.dialects.idioms import (
    ANY_QUOTED_NAME,
    APART,
    IS,
    KEY,
    MARKED_NAME,
    NO_NAME,
    PARAMETER,
    QUOTED_KEY,
    SOURCE,
    TYPED,
    attributed,
    before_name,
    empty,
    forgotten,
    keyed_otherwise,
    named_otherwise,
    swapped,
    twice,
    unclosed,
    unclosed_line,
)
from callmark.dialects.model import Dialect, Form, Writing
from callmark.dialects.notation import ANY_NAME, anonymous, respelled

_LOOSE_NAME = r"[\"']?[ \t]{0,4}+{name}[ \t]{0,4}+[\"']?"
_WHOLE_NAME = r"(?P<name>[^\W\d][\w/\-]{0,63}+(?:[.:][\w/\-]{1,63}+){0,3}+)"  # a name that no sign ends
_NAMED = r"(?:[ \t]{1,16}+name)?[ \t]{0,4}+="  # of an attribute, or of a tag that has its value at once
_SIGN = "(?::[ ]?|[ ])"  # in the place of `=` between the word of a tag and a name
_LOOSELY = rf"{{ws}}<[ \t]{{0,4}}+{PARAMETER}{_NAMED}[ \t]{{0,4}}+{KEY}{TYPED}"


def _misspelt(name: str) -> str:
    """Return the pattern of a closing tag in any case, with something behind its name or not."""
    return rf"</[ \t]{{0,4}}+(?i:{name})(?:[ =][^<>\r\n]{{1,32}}+)?[ \t]{{0,4}}+>"


def _wrong_tail(tail: str, name: str, behind: str, *certain: str) -> str:
    """Return the pattern of what stands in place of a `tail`: it with blanks in it; a misspelt tag of the name, where
    what is `behind` shows that the call is over; or one of the tags that are `certain` wherever they stand.
    """
    ways = [respelled(tail), *certain, rf"{_misspelt(name)}(?={behind})"]
    return rf"{{ws}}(?P<wrong>{'|'.join(ways)})"


def _left_open(begin: str, parameter: str, closers: str, tail: str, behind: str, own: tuple[str, ...]) -> str:
    """Return what `unclosed_line` does for a `parameter` whose tag has some spelling of this word; `begin` is how the
    tag begins as the format has it. `closers` are those of the call and its section, in any spelling.

    A value's closer may be misspelt. Where it has the key in it, the next tag is on a line of its own, or both are
    spoken of.
    """
    with_key = rf"/parameter[ =][^<>\r\n]{{1,32}}+>\r?\n<(?:{begin}[^<>\r\n]{{1,128}}+>\r?\n|{tail})"
    structure = rf"[ \t]{{0,4}}+{PARAMETER}|/[ \t]{{0,4}}+{closers}|{with_key}"
    return unclosed_line(parameter, structure, r"/param[a-z]{0,6}+(?:>|(?=\r?\n))", tail, behind, own)


_OUTER = "(?:seed:|zyphra_)?tool_call"  # the name of the tags around calls: Seed-OSS and ZAYA1 have some of their own
_QWEN_NAMELESS = (
    rf"<(?i:function)(?:{_NAMED}|[=:])?[ \t]{{0,4}}+{NO_NAME}[ \t]{{0,4}}+>(?={{ws}}<parameter[ =])"
)
_QWEN_SECTION: dict[str, Any] = {
    "opener": rf"<{_OUTER}>{{ws}}(?=<function=|{anonymous(_QWEN_NAMELESS)})",
    "loose_openers": (
        rf"<(?:{_OUTER}|tool_calls|function_calls)>{{ws}}"
        rf"(?=<[ \t]{{0,4}}+function(?:{_NAMED}|{_SIGN}{ANY_NAME}>{{ws}}<parameter[ =:]))",
    ),
    "closer": rf"</{_OUTER}>",
}
_QWEN_KEY = (  # what looks like an attribute behind it is no part of it
    r"(?P<key>[^<>\"' \t\r\n][^<> \t\r\n]{0,255}+(?:[ \t]{1,8}+(?![\w\-]{1,32}+=[\"'])[^<> \t\r\n]{1,32}+){0,8}+)"
)
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
            parameter=rf"{{ws}}<parameter={_QWEN_KEY}>",
            loose_parameters=(
                rf"{{ws}}<parameter={_QWEN_KEY}(?={APART}){TYPED}",
                keyed_otherwise(PARAMETER),
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
            loose_value_end=r"\r?\n" + swapped(_misspelt(_FUNCTION), "</parameter>", _QWEN_BEHIND),
            nested=(  # each of these words costs an exported grammar a fifth of its size
                r"<tool_call>{ws}(?=<function=)|<seed:tool_call>{ws}(?=<function=)|"
                rf"\r?\n<function={ANY_NAME}>(?=\r?\n)"
            ),
            unclosed=_left_open(
                "parameter=",
                r"parameter=[^<>\r\n]{1,256}+>",
                rf"{_FUNCTION}|/(?:[\w.\-]{{1,64}}+>{{ws}}</)?{_OUTER}>",
                "/function>",
                f"/{_OUTER}>|function=",
                ("param", "/param", "/func", "/tool_", "/seed:", "/zyph"),
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


_INVOKE = "inv[oevk]{2,5}+s?"  # as models spell it in a closing tag
_INVOKES = "(?:function_calls|minimax:tool_call|dots_function_call)"
_OWN = "a(?:tem|ntml)"  # the prefix of Muse's tags, and of Claude's
_INVOKE_OVER = forgotten(f"</{_INVOKES}>", "<invoke name=")
_INVOKE_SECTION: dict[str, Any] = {
    "opener": rf"<{_INVOKES}>{{ws}}(?=<invoke(?:[ ]name=|>{{ws}}<parameter[ ]name=))",
    "loose_openers": (
        rf"<{_INVOKES}>{{ws}}(?=<[ \t]{{0,4}}+invoke{_NAMED}|{before_name('invoke')})",
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
            head=rf"<invoke name={ANY_QUOTED_NAME}>{{ws}}(?=\{{)",
            loose_heads=(rf"<invoke name=[\"']{MARKED_NAME}[\"']>{{ws}}(?=\{{)",),
            body="json",
            tail=r"{ws}</invoke>",
            loose_tail=_INVOKE_OVER,
        ),
        Form(
            **_INVOKE_SECTION,
            head=rf"<invoke name={ANY_QUOTED_NAME}>(?={{ws}}</?(?:parameter|invoke|{_INVOKES})[ >])",
            loose_heads=(
                rf"<[ \t]{{0,4}}+invoke{_NAMED}[ \t]{{0,4}}+{_LOOSE_NAME}[ \t]{{0,4}}+>"
                r"(?={ws}</?[ \t]{0,4}+(?:param(?:eter)?|invoke)[ =>])",
                named_otherwise("invoke") + "(?={ws}</?(?:param(?:eter)?|invoke)[ =>])",
                rf"<invoke name={ANY_QUOTED_NAME}(?={{ws}}(?:<parameter name=|</invoke>{{ws}}</{_INVOKES}>))",
                r"<invoke name=[\"']{name}[\"'][ \t]{0,4}+(?P<empty>/>)",
                rf"<invoke name=[\"']{MARKED_NAME}[\"']>(?={{ws}}</?(?:parameter|invoke)[ >])",
                rf"<invoke(?:[ ]name=)?{NO_NAME}>(?={{ws}}<parameter[ ]name=)",
            ),
            body="parameters",
            parameter=rf"{{ws}}<parameter name={KEY}>",
            loose_parameters=(
                keyed_otherwise(PARAMETER),
                _LOOSELY,
                f"{{ws}}<parameter name={QUOTED_KEY}>",
            ),
            value_end="</parameter>",
            loose_value_end=r"\r?\n" + swapped(
                _misspelt(_INVOKE), "</parameter>", rf"{{ws}}(?:</{_INVOKES}>|<invoke name=)"
            ),
            nested=rf"<{_INVOKES}>{{ws}}(?=<invoke name=)|\r?\n<invoke name={ANY_QUOTED_NAME}>(?=\r?\n)",
            unclosed=_left_open(
                "parameter name=",
                r"parameter name=[\"']?[^<>\"'\r\n]{1,256}+[\"']?>",
                f"{_INVOKE}|/{_INVOKES}>",
                "/invoke>",
                f"/{_INVOKES}>|invoke name=",
                ("param", "/param", "/inv", "/func", "/mini", "/dots"),
            ),
            tail=r"{ws}</invoke>",
            loose_tail=_INVOKE_OVER + "|"
            + _wrong_tail("</invoke>", _INVOKE, rf"{{ws}}(?:</{_INVOKES}>|<invoke name=)"),
        ),
        Form(
            opener=r"<｜tool_calls_begin｜>{ws}(?=<｜tool_call_begin｜>)",
            head=r"<｜tool_call_begin｜>{ws}function{ws}<｜tool_sep｜>{ws}<steptml:invoke name=\"{name}\">",
            loose_heads=(
                r"<｜tool_call_begin｜>{ws}<steptml:invoke name=\"{name}\">",
                rf"<｜tool_call_begin｜>{{ws}}function{{ws}}<｜tool_sep｜>{{ws}}{named_otherwise('steptml:invoke')}",
            ),
            **attributed(
                "steptml:", "/steptml:invoke>{ws}<｜tool_call_end｜>", "｜tool_call(?:s_end｜|_begin｜)>", "s"
            ),
            tail=r"{ws}</steptml:invoke>{ws}<｜tool_call_end｜>",
            closer="<｜tool_calls_end｜>",
        ),
        Form(
            opener=rf"<{_OWN}:function_calls>{{ws}}(?=<{_OWN}:invoke name=)",
            loose_openers=(rf"<{_OWN}:function_calls>{{ws}}(?={before_name(f'{_OWN}:invoke')})",),
            head=rf"<{_OWN}:invoke name=\"{{name}}\">",
            loose_heads=(named_otherwise(f"{_OWN}:invoke"),),
            **attributed(
                f"{_OWN}:", f"/{_OWN}:invoke>", f"/{_OWN}:function_calls>|{_OWN}:invoke name=", "a"
            ),
            tail=rf"{{ws}}</{_OWN}:invoke>",
            loose_tail=forgotten(f"</{_OWN}:function_calls>", f"<{_OWN}:invoke name="),
            closer=f"</{_OWN}:function_calls>",
        ),
    ),
    variants=(
        Form(
            head=named_otherwise("(?:tool|function)_call") + "(?={ws}<parameter[ ]name=)",
            **attributed("", "/(?:tool|function)_call>", "(?:tool|function)_call[ ]name=", "ptf"),
            tail="{ws}</(?:tool|function)_call>",
            repairs=("opener-spelling",),
        ),
    ),
    tags=(
        empty(_INVOKES),
        twice(f"<{_INVOKES}>", "<invoke name="),
        r"<\|start\|>assistant{ws}to=self(?P<opens>)<\|message\|>",
        r"<\|start\|>assistant{ws}to=[^<>|\r\n]{1,128}+(?P<answers>)<\|message\|>",
        r"<\|start\|>assistant{ws}<\|message\|>",
        rf"<\|message(?P<answers>)\|>(?=<{_OWN}:function_calls>{{ws}}<{_OWN}:invoke name=)",  # without its role
        # Behind the end of a message the header of the next one needs no token of its own, nor the role.
        r"<\|eo[mt]\|>(?:assistant)?{ws}to=self(?P<opens>)<\|message\|>",
        r"<\|eo[mt]\|>(?:assistant)?{ws}to=[^<>|\r\n]{1,128}+(?P<answers>)<\|message\|>",
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


_OF_CALLS = rf"(?:id|index|type(?={IS}[\"']?function))"  # as APIs say of calls: with other attributes it is other XML
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
                named_otherwise("function", others=_OF_CALLS) + "(?={ws}</?(?:param|function)[ >])",
                rf"<function name={NO_NAME}>(?={{ws}}<param name=[\"'])",
            ),
            parameter=r"{ws}<param name=[\"'](?P<key>[^<>\"'\r\n]{1,256}+)[\"']>",
            loose_parameters=(
                keyed_otherwise(PARAMETER),
                rf"{{ws}}<[ \t]{{0,4}}+{PARAMETER}{_GLUED}[ \t]{{0,4}}+{KEY}{TYPED}",
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
