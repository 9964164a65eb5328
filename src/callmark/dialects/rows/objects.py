"""Rows of calls that are JSON objects of arguments, behind the tool's name."""

from __future__ import annotations

from typing import Any

from callmark.dialects.fences import INDENT
from callmark.dialects.idioms import (
    MARKED_NAME,
    MEANT_IN_ANY_WORDS,
    NO_NAME,
    NO_NAME_BEGINS,
    SOURCE,
    fenced,
    list_of,
    twice,
    without_brackets,
)
from callmark.dialects.model import Dialect, Form, Writing
from callmark.dialects.notation import ANY_NAME
from callmark.dialects.thoughts import THOUGHT_TAGS

_OBJECT_OF_A_CALL = r"(?=\{{ws}\"(?:name|id|type|arguments|parameters)\"{ws}:)"
_MISTRAL_CALL = r"\[TOOL_CALLS\]{ws}{name}{ws}(?:\[CALL_ID\]{ws}(?P<id>[0-9A-Za-z_\-]{1,64}+){ws})?"
_MISTRAL_ARGS = _MISTRAL_CALL + r"\[ARGS\]{ws}"
MISTRAL = Dialect(
    name="mistral",
    title='[TOOL_CALLS]f[ARGS]{...} or [TOOL_CALLS] [{"name": "f", "arguments": {...}}]',
    models="Mistral 7B v0.3 to Mistral Small 3.1, Magistral, Devstral",
    source=SOURCE + ": mistral",
    forms=(
        list_of(r"\[TOOL_CALLS\]{ws}\[{ws}(?=\{)", r"{ws}\]", begins="["),
        Form(
            head=_MISTRAL_ARGS + "{object}",
            loose_heads=(
                # With parentheses that hold nothing before them.
                r"\[TOOL_CALLS\]{ws}{name}{ws}\({ws}\)(?:{ws}\[ARGS\]{ws}|[ \t]{0,8}+)(?=\{)",
                rf"\[TOOL_CALLS\]{{ws}}(?P<nameless>{NO_NAME_BEGINS}[^\[\]{{}}\r\n]{{0,63}}+)\[ARGS\]{{ws}}(?=\{{)",
            ),
            body="json",
            begins="[",
        ),
        Form(head=_MISTRAL_CALL + r"(?=\{)", body="json", begins="["),
    ),
    variants=(
        without_brackets(r"\[TOOL_CALLS\]{ws}", _OBJECT_OF_A_CALL, begins="["),
        Form(
            begins="[",
            head=r"\[TOOL_CALLS\]{ws}(?:\[ARGS\]{ws})?(?=\{{ws}\")",
            body="envelope",
            repairs=("missing-opener", "missing-closer"),
        ),
        fenced(_MISTRAL_ARGS, begins="["),
        Form(
            begins="[",
            head=r"\[TOOL_CALLS\]{name}\((?={ws}(?:[{)]|[^\W\d]\w{0,63}+{ws}=))",
            body="arguments",
            repairs=("neighbour-body",),
        ),
    ),
    tags=(
        r"\[TOOL_CALLS\]\[\]",
        twice(r"\[TOOL_CALLS\]", rf"(?:\[{{ws}}\{{|{ANY_NAME}{{ws}}(?:\[(?:ARGS|CALL_ID)\]|\{{))"),
    ),
    writing=Writing(form=1, call="[TOOL_CALLS]{name}{id}[ARGS]{arguments}", id="[CALL_ID]{id}", separator=""),
)


_DS = r"(?:▁|\\?_|[ ])"  # between the words of a token, as distilled models spell it
_DS_CALL = rf"<｜tool{_DS}call(?:s(?:{_DS}begin)?|{_DS}begin)｜>{{ws}}"  # the first stand for the section's opener too
_DS_SEP = rf"<｜tool{_DS}sep｜>{{ws}}"
_DS_NAMED = (
    rf"{_DS_CALL}(?={ANY_NAME}{{ws}}{_DS_SEP})(?:function{{ws}}{_DS_SEP})?{{name}}{{ws}}(?:{_DS_SEP})?"
)
_DS_SECTION: dict[str, Any] = {
    "opener": r"<｜tool▁calls▁begin｜>{ws}(?=<｜tool▁call▁begin｜>)", "closer": "<｜tool▁calls▁end｜>"
}  # fmt: skip
_DS_NEXT = rf"(?={{ws}}<｜tool{_DS}call(?:{_DS}begin|s{_DS}end)｜>)"
DEEPSEEK = Dialect(
    name="deepseek",
    title="<｜tool▁call▁begin｜>f<｜tool▁sep｜>{...}<｜tool▁call▁end｜>, V3 with a json fence",
    models="DeepSeek V3, R1 (fenced); V3.1, V3.2-Exp",
    source=SOURCE + ": deepseek_v3, deepseek_v31",
    forms=(
        Form(
            **_DS_SECTION,
            head=r"<｜tool▁call▁begin｜>{ws}function{ws}<｜tool▁sep｜>{ws}{name}{ws}```json{ws}{object}",
            loose_openers=(rf"<｜tool{_DS}calls{_DS}begin｜>{{ws}}(?={_DS_CALL})",),
            loose_heads=(
                _DS_NAMED + r"(?:```(?:json)?{ws})?(?=\{)",
                rf"{_DS_CALL}function{{ws}}{_DS_SEP}{{name}}{{ws}}{{object}}",  # whatever fence is there, or none
                rf"{_DS_NAMED}(?P<missing>)(?P<empty><｜tool{_DS}call{_DS}end｜>)",
            ),
            body="json",
            tail=r"{ws}```{ws}<｜tool▁call▁end｜>",
            loose_tail=(
                rf"{{ws}}(?:(?:```{{ws}})?<｜tool{_DS}call{_DS}end｜>|```{_DS_NEXT}"
                r"|```(?={ws}<｜(?:end▁of▁sentence|tool▁outputs▁begin)｜>)"
                rf"|```(?=[ \t]{{0,16}}+\r?\n{{ws}}[^ \t\r\n<]))|{_DS_NEXT}"
            ),
        ),
        Form(
            **_DS_SECTION,
            head=(
                r"<｜tool▁call▁begin｜>{ws}(?!function{ws}<｜tool▁sep｜>{ws}[^\W\d]){name}{ws}"
                r"<｜tool▁sep｜>{ws}{object}"
            ),
            loose_heads=(rf"{_DS_CALL}{NO_NAME}{_DS_SEP}(?=\{{)",),
            body="json",
            tail=r"{ws}<｜tool▁call▁end｜>",
            loose_tail=_DS_NEXT,
        ),
    ),
    tags=(rf"<｜tool{_DS.replace('▁|', '', 1)}calls{_DS}end｜>", "<｜tool▁calls▁begin｜>{ws}<｜tool▁calls▁end｜>"),
    writing=Writing(
        form=1,
        opener="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
        separator="",
        closer="<｜tool▁calls▁end｜>",
    ),
)


_K2_CALL = (
    r"<\|tool_call_begin\|>{ws}(?P<id>(?:functions\.)?"
    r"(?P<name>[^\W\d][\w./\-]{0,127}+(?::(?![0-9]{1,9}+{ws}<)[\w./\-]{1,127}+){0,3}+)"
    r"(?::[0-9]{1,9}+)?){ws}<\|tool_call_argument_begin\|>{ws}"
)
KIMI_K2 = Dialect(
    name="kimi_k2",
    title="<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{...}<|tool_call_end|>",
    models="Kimi K2 to K2.7",
    source=SOURCE + ": kimi_k2",
    results=(r"Return of functions\.",),
    forms=(
        Form(
            opener=r"<\|tool_calls?_section_begin\|>",
            head=_K2_CALL + "{object}",
            body="json",
            loose_heads=(
                _K2_CALL + r"(?P<missing>)(?P<empty><\|tool_call_end\|>)",
                r"<\|tool_call_begin\|>{ws}(?P<id>functions\.(?P<name>[^\W\d][\w./\-]{0,127}+):[0-9]{1,9}+){ws}(?P<missing>)(?=\{)",
                rf"<\|tool_call_begin\|>{{ws}}{NO_NAME}<\|tool_call_argument_begin\|>{{ws}}(?=\{{)",
            ),
            tail=r"{ws}<\|tool_call_end\|>",
            loose_tail=r"(?={ws}(?:<\|tool_call_begin\|>|<\|tool_calls?_section_end\|>))",
            closer=r"<\|tool_calls?_section_end\|>",
        ),
    ),
    tags=(
        "◁(?:(?P<closes>/)|(?P<opens>))think▷",
        THOUGHT_TAGS[0],  # `<think>`: what ends a thought of this row ends that one
        # K2 Thinking calls out of a thought that it leaves open.
        r"<\|tool_calls?_section_begin(?P<answers>)\|>"
        r"(?={ws}<\|tool_call_begin\|>{ws}[\w.:/\-]{1,160}+{ws}<\|tool_call_argument_begin\|>{ws}\{)",
    ),
    writing=Writing(
        opener="<|tool_calls_section_begin|>",
        call="<|tool_call_begin|>{id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
        separator="",
        closer="<|tool_calls_section_end|>",
        id="{id}",
        default_id="functions.{name}:{index}",
    ),
)


APERTUS = Dialect(
    name="apertus",
    title='<|tools_prefix|>[{"f": {...}}]<|tools_suffix|>',
    models="Apertus",
    source=SOURCE + ": apertus, apertus2509",
    forms=(
        Form(
            opener=r"<\|tools_prefix\|>{ws}\[{ws}(?=\{)",
            head=r"\{{ws}\"{name}\"{ws}:{ws}{object}",
            loose_heads=(r"\{{ws}'{name}'{ws}:{ws}(?=\{)",),  # as Python writes it
            body="json",
            separator=r"{ws},{ws}",
            tail=r"{ws}\}",
            loose_tail=rf"(?={{ws}}(?:\]{{ws}}<\|tools_suffix\|>|,{{ws}}\{{{{ws}}\"{ANY_NAME}\"{{ws}}:{{ws}}\{{))",
            closer=r"{ws}\]{ws}<\|tools_suffix\|>",
            alone=False,
        ),
    ),
    tags=(
        r"<\|inner_prefix(?P<opens>)\|>",
        r"<\|inner_suffix(?P<closes>)\|>",
        r"<\|tools_prefix\|>{ws}\[{ws}\]{ws}<\|tools_suffix\|>",
    ),
    writing=Writing(
        opener="<|tools_prefix|>[",
        call='{"{name}": {arguments}}',
        separator=", ",
        closer="]<|tools_suffix|>",
    ),
)


_SOLAR_CALL = (
    r"<\|tool_call:begin\|>{ws}(?:(?P<id>[\w.:/\-]{1,160}+){ws})?<\|tool_call:name\|>{ws}{name}{ws}"
    r"<\|tool_call:args\|>{ws}"
)
SOLAR_OPEN = Dialect(
    name="solar_open",
    title="<|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{...}<|tool_call:end|>",
    models="Solar Open 100B",
    source="its chat template",
    forms=(
        Form(
            opener=r"<\|tool_calls\|>{ws}(?=<\|tool_call:begin\|>)",
            head=_SOLAR_CALL + "{object}",
            body="json",
            loose_heads=(_SOLAR_CALL + r"(?P<missing>)(?P<empty><\|tool_call:end\|>)",),
            tail=r"{ws}<\|tool_call:end\|>",
            loose_tail=r"(?={ws}<\|calls\|>)",
            closer=r"<\|calls\|>",
        ),
    ),
    tags=(
        r"<\|begin\|>assistant{ws}(?:<\|think(?P<opens>)\|>|(?=<\|(?:content|tool_calls)\|>))",
        r"<\|think(?P<opens>)\|>",
        r"<\|end(?P<closes>)\|>",
        r"<\|content\|>",
    ),
    writing=Writing(
        opener="<|tool_calls|>",
        call="<|tool_call:begin|>{id}<|tool_call:name|>{name}<|tool_call:args|>{arguments}<|tool_call:end|>",
        separator="",
        closer="<|calls|>",
        id="{id}",
        default_id="{name}:{index}",
    ),
)


_TOOL_USE = r"<tool_use>{ws}<name>{ws}{name}{ws}</name>{ws}<arguments>{ws}"
TOOL_USE = Dialect(
    name="tool_use",
    title='<tool_use><name>f</name><arguments>{...}</arguments></tool_use>',
    models="any model that Cherry Studio prompts",
    source="the prompt of @cherrystudio/ai-core 2.0",
    results=(r"</?tool_use_result>",),
    forms=(
        Form(
            head=_TOOL_USE + "{object}",
            body="json",
            loose_heads=(
                _TOOL_USE + r"(?P<missing>)(?P<empty></arguments>{ws}</tool_use>)",
                _TOOL_USE.replace("{name}", MARKED_NAME) + r"(?=\{)",
            ),
            tail=r"{ws}</arguments>{ws}</tool_use>",
            loose_tail=r"{ws}</arguments>(?={ws}<tool_use>)",
        ),
    ),
    variants=(fenced(_TOOL_USE, r"{ws}</arguments>{ws}</tool_use>"),),
    writing=Writing(
        call="<tool_use>\n  <name>{name}</name>\n  <arguments>{arguments}</arguments>\n</tool_use>",
    ),
)


_QWEN_AGENT = r"✿FUNCTION✿{ws}:{ws}{name}{ws}✿ARGS✿{ws}:{ws}"
QWEN_AGENT = Dialect(
    name="qwen_agent",
    title="✿FUNCTION✿: f, and on the next line ✿ARGS✿: {...}",
    models="Qwen2 and Qwen2.5 with the prompts of Qwen-Agent or ms-swift",
    source="Qwen-Agent 0.0.34 and ms-swift 4.6, behaviour only",
    results=("✿RESULT✿",),
    forms=(
        Form(
            begins="✿",
            head=_QWEN_AGENT + "{object}",
            loose_heads=(
                r"✿FUNCTION✿{ws}(?P<wide>[:：]){ws}{name}{ws}✿ARGS✿{ws}[:：]{ws}(?=\{)",
                r"✿FUNCTION✿{ws}[:：]{ws}" + MARKED_NAME + r"{ws}✿ARGS✿{ws}[:：]{ws}(?=\{)",
            ),
            body="json",
        ),
    ),
    variants=(fenced(_QWEN_AGENT, begins="✿"),),
    tags=(r"✿RETURN✿{ws}[:：]",),
    writing=Writing(call="✿FUNCTION✿: {name}\n✿ARGS✿: {arguments}"),
)


_RECIPIENT = (
    r"(?:<\|from\|>assistant{ws})?<\|recipient\|>{ws}(?!(?:all|user)[ \t\r\n<])"  # these are no tools
    r"{name}{ws}<\|content\|>{ws}"
)
FUNCTIONARY = Dialect(
    name="functionary",
    title="<|recipient|>f, and on the next line <|content|>{...}",
    models="Functionary 2, and 3 without its tokens",
    source="the parsers `functionary` of vllm-mlx 0.6 and Rapid-MLX 0.16, and node-llama-cpp 3.22",
    forms=(
        Form(head=_RECIPIENT + "{object}", body="json"),
        Form(
            begins=">",
            head=r">>>(?!(?:all|user)[ \t\r\n]){name}\r?\n(?=\{)",
            body="json",
            line_start=True,
            explicit=False,
        ),
    ),
    variants=(fenced(_RECIPIENT),),
    tags=(r"(?:<\|from\|>assistant{ws})?<\|recipient\|>{ws}all{ws}<\|content\|>", r"<\|stop\|>"),
    writing=Writing(call="<|from|>assistant\n<|recipient|>{name}\n<|content|>{arguments}"),
)


_COLON = r"(?:[ ]?[0-9]{1,3}+)?[ \t]{0,4}+[:：]"  # steps may be numbered
_NEXT = r"(?:(?:[ \t]{0,16}+\r?\n){1,2}+[ \t]{0,16}+|[ \t]{1,16}+)"  # to the next part of a step
_MARK = r"(?:[`\"'\[\]]|\*\*)?"  # around a name: prompts list the tools in brackets
_STEP: dict[str, Any] = {"line_start": True, "indent": INDENT, "explicit": False}
_ACTION = r"Action:[ \t]{0,16}+{name}[ \t]{0,16}+\r?\n[ \t]{0,16}+Action Input:{ws}"
_WORDS = (
    ("A", "", "Action", _COLON),
    ("a", "", "action", _COLON),
    ("*", r"\*\*", "(?i:action)", rf"(?:{_COLON}\*\*|\*\*{_COLON})"),
)
_OTHER_STEPS = {
    begins: rf"{stars}{word}{colon}[ \t]{{0,16}}+(?:\r?\n)?+{_MARK}{{name}}(?:\(\))?{_MARK}{_NEXT}"
    rf"{stars}(?i:action(?:[ ][0-9]{{1,3}}+)? input){colon}{{ws}}"
    for begins, stars, word, colon in _WORDS
}
_PROSE = (
    rf"(?:(?P<again>{_NEXT}(?:\*\*)?(?i:action(?:[ ][0-9]{{1,3}}+)? input)(?:{_COLON}(?:\*\*)?|\*\*{_COLON}){{ws}}"
    r"(?:(?:```|~~~)[a-z]{0,8}+[ \t]{0,16}+\r?\n{ws}|`)?(?=\{))"
    r"|[ \t]{0,16}+(?:(?P<passes>(?i:observation|thought|action|final answer|pause))|[^\W\d]"
    r"|[,，][ \t]{0,16}+[^\W\d][\w.:\-]{0,63}+[ \t]{0,4}+[^ \t(])|[ \t]{1,16}+[(（])"
)
REACT = Dialect(
    name="react",
    title="Action: f, and on the next line Action Input: {...}",
    models="models with ReAct prompts",
    source="the ReAct prompt as LangChain and Qwen write it",
    results=(r"Observation[ ]?[:：]",),
    lines=(rf"(?:Thought|Action(?:[ ]Input)?|Observation|Final[ ]Answer){_COLON}",),
    forms=(
        Form(
            begins="Aa*",
            head=_ACTION + r"(?=\{)",
            loose_heads=(
                *(step + r"(?=\{)" for step in _OTHER_STEPS.values()),
                # For what is no object: a model that needs no tool may say so, or leave the line empty.
                r"Action:[ \t]{0,16}+(?!(?i:none|null|nothing|n/a)[ \t]{0,16}+\r?\n){name}[ \t]{0,16}+\r?\n"
                r"[ \t]{0,16}+Action Input:[ \t]{0,16}+{object}",
                _ACTION.replace("{name}", MARKED_NAME) + r"(?=\{)",
            ),
            body="json",
            **_STEP,
        ),
    ),
    variants=(
        *(fenced(step, begins=begins, **_STEP) for begins, step in _OTHER_STEPS.items()),
        *(
            Form(
                begins=begins,
                head=step + r"`(?=\{)",
                body="json",
                tail=r"{ws}`",
                repairs=("fenced-body",),
                **_STEP,
            )
            for begins, step in _OTHER_STEPS.items()
        ),
        *(
            Form(  # as a program has it, but not without arguments: these may stand on the next line
                begins=begins,
                head=rf"{stars}{word}{colon}[ \t]{{0,16}}+{{name}}\((?={{ws}}(?:[{{\"']|[^\W\d]\w{{0,63}}+{{ws}}=))",
                body="arguments",
                behind=_PROSE,
                repairs=("neighbour-body",),
                **_STEP,
            )
            for begins, stars, word, colon in _WORDS
        ),
        Form(  # as the agents of smolagents have it, and LangChain's in a fence
            begins="A",
            head=r"Action:{ws}" + MEANT_IN_ANY_WORDS,
            body="envelope",
            repairs=("neighbour-body",),
            **_STEP,
        ),
    ),
    tags=(r"<end_(?:code|action)>",),
    writing=Writing(call="Action: {name}\nAction Input: {arguments}"),
)
