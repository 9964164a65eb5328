"""Rows of calls with a tag for each argument: names and keys stand between tags of their own, as values do."""

from __future__ import annotations

from typing import Any

from callmark.dialects.idioms import (
    JSON_TYPES,
    KEY,
    MARKED_NAME,
    NO_NAME,
    SOURCE,
    TEXT_TYPES,
    empty,
    fenced,
    forgotten,
    list_of,
    twice,
    unclosed,
)
from callmark.dialects.model import Dialect, Form, Writing
from callmark.dialects.notation import ANY_NAME, respelled


def _misspelt_tags(value_end: str, begin: str, end: str = "") -> tuple[str, str, str, str]:
    """Return the patterns of the two tags of a key and the two of its value, with letters typed wrong, or blanks in
    them; that of the value's end only where it is not `value_end` itself. `begin` and `end` are those of their names.

    A key may end with the tag that ends a value.
    """
    keys, values = "k[ey]{1,3}+s?|names?", "v[aelu]{2,6}+s?"
    another = f"</(?!{respelled(value_end).removeprefix('</')})"  # the literal comes first: `re` skips to it
    ways = (("<", keys), ("</", f"{keys}|{values}"), ("<", values), (another, values))
    key, key_end, value, other = (
        rf"{begun}[ \t]{{0,4}}+{begin}(?i:s?[ _\-]?(?:{name})){end}[ \t]{{0,4}}+>" for begun, name in ways
    )
    return key, key_end, value, other


def _keyed(prefix: str = "", argument: str = "arg") -> Form:
    """Return the form of GLM's tags: a name, then keys and values in tags of their own; `prefix` begins all names.

    What says `argument` in another way has a call without any from GLM's.
    """
    call, key, value = f"{prefix}tool_call>", f"{prefix}{argument}_key>", f"{prefix}{argument}_value>"
    named = r"[^<>\r\n]{1,256}+"
    loose_key, loose_key_end, loose_value, loose_value_end = _misspelt_tags(f"</{value}", f"(?i:{prefix}{argument})")
    bare = rf"|[\r\n]{{0,2}}+</{call}" if argument == "arg" else ""
    other_tail = "|<end_of_tool_call>" if bare and not prefix else ""  # Hunyuan's, whose opener is the same
    # The end of the call, and the next one.
    again = rf"/{call}{{ws}}<{call}{{ws}}{ANY_NAME}(?:{{ws}}<{key}|[\r\n]{{0,2}}+</{call})"
    follows = (
        rf"\r?\n(?=<{key}{named}</{key}{{ws}}<{value})|<(?={key}{named}</{key}{{ws}}<{value})|"
        rf"\r?\n(?=<{again})|<(?={again})"
    )
    return Form(
        head=rf"<{call}{{ws}}{{name}}(?={{ws}}<{key}{bare})",
        loose_heads=(
            # Behind a blank stand words about the format.
            rf"<{call}(?:\r?\n)?{NO_NAME}(?={{ws}}<{key}{named}</{key}{{ws}}<{value})",
            rf"<{call}{{ws}}{{name}}(?P<told>)(?={{ws}}{loose_key})",
            *([rf"<{call}{{ws}}{{name}}(?=[ \t]{{0,16}}+\r?\n{{ws}}</{call})"] if bare else []),
        ),
        body="parameters",
        parameter=rf"{{ws}}<{key}{{key}}</{key}{{ws}}<{value}",
        loose_parameters=(
            rf"{{ws}}{loose_key}{{ws}}{KEY}{{ws}}{loose_key_end}{{ws}}{loose_value}",
            # On one line, and without any opener in it: a call behind a key is no value.
            rf"{{ws}}<{key}{{key}}</{key}{{ws}}(?P<missing>)(?=[^<\[【［\r\n]{{1,232}}+</{value})",
            rf"{{ws}}<{key}(?P<key>{named})(?P<unclosed>){{ws}}<{value}",
        ),
        value_end=f"</{value}",
        loose_value_end=(
            rf"{loose_value_end}(?={{ws}}(?:<{key}|{loose_key}{{ws}}{KEY}{{ws}}{loose_key_end}{{ws}}{loose_value}|"
            rf"{respelled(f'</{call}')}{other_tail}))"
        ),
        unclosed=follows,
        # A call of Hunyuan's, too, whose opener is the same: its keys would be taken for those of this call.
        nested=rf"<{call}{{ws}}{ANY_NAME}(?={{ws}}<(?:{key}|tool_sep>)|[\r\n]{{0,2}}+</{call})",
        tail=rf"{{ws}}</{call}",
        loose_tail=rf"{{ws}}(?P<wrong>{respelled('</tool_call>')}{other_tail})" if other_tail else "",
    )


GLM = Dialect(
    name="glm",
    title="<tool_call>f<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>",
    models="GLM-4.5 to GLM-5, Ling-3; LongCat and Xing4.0 with tags of other names",
    source=SOURCE + ": glm45, glm47; ms-swift 4.6",
    forms=(
        _keyed(),
        _keyed("longcat_"),
        _keyed(argument="param"),
    ),
    variants=(
        Form(
            head=r"<tool_call>{ws}{name}{ws}(?=\{)",
            body="json",
            tail=r"{ws}</tool_call>",
            repairs=("neighbour-body",),
            salvage=True,
        ),
    ),
    tags=(
        r"<\|(?:begin|end)_of_box\|>",
        r"<\|role_end\|>",
        empty("tool_call"),
        twice("<tool_call>", ANY_NAME + r"(?:{ws}<(?:arg|param)_key>|[\r\n]{0,2}+</tool_call>)"),
    ),
    writing=Writing(
        call="<tool_call>{name}\n{arguments}</tool_call>",
        parameter="<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
    ),
)


_SFX = "(?::[0-9A-Za-z]{1,16}+)?"  # some models end the names of their tags with a code of their own
_VALUE_END = rf"</(?:ifm\|arg_value|arg_value){_SFX}>"
_LOOSE_KEY, _LOOSE_KEY_END, _LOOSE_VALUE, _LOOSE_VALUE_END = _misspelt_tags(_VALUE_END, r"(?:ifm\|)?(?i:arg)", _SFX)
_IFM = rf"(?:ifm\|tool_call|tool_call){_SFX}"
_HY_CALL = f"(?:iquest_tool_call|{_IFM})>"
_HY_SEP = f"<tool_sep{_SFX}>"
_HY_KEY = rf"(?:ifm\|)?arg_key{_SFX}>"
_HY_VALUE = rf"(?:ifm\|)?arg_value{_SFX}>"
_IFM_TYPE = rf"(?:(?P<text>string)|(?P<json>{JSON_TYPES})(?:\[[^<>\r\n]{{0,64}}+)?)"  # `array[string]`
_HY_CALLS_END = rf"</(?:ifm\|)?tool_calls{_SFX}>"
_HUNYUAN_SECTION: dict[str, Any] = {
    "opener": rf"<(?:ifm\|tool_calls|tool_calls){_SFX}>{{ws}}(?=<{_HY_CALL})",
    "closer": _HY_CALLS_END,
}
HUNYUAN = Dialect(
    name="hunyuan",
    title="<tool_calls><tool_call>f<tool_sep><arg_key>key</arg_key><arg_value>value</arg_value></tool_call></tool_calls>",
    models="Hunyuan HY3 and HY4; IQuest-Q1, K2-Horizon with tags of their own",
    source=SOURCE + ": hy_v3, hy_v4, iquest_q1, k2_horizon",
    forms=(
        list_of(
            rf"(?:<(?:ifm\|tool_calls|tool_calls){_SFX}>{{ws}})?<ifm\|tool_call>{{ws}}\[{{ws}}(?=\{{)",
            r"{ws}\]{ws}</ifm\|tool_call>(?:{ws}</ifm\|tool_calls>)?",
        ),
        Form(
            **_HUNYUAN_SECTION,
            head=rf"<{_HY_CALL}{{ws}}{{name}}(?:{{ws}}{_HY_SEP})?(?={{ws}}<{_HY_KEY}|[\r\n]{{0,2}}+</{_HY_CALL})",
            body="parameters",
            parameter=(
                rf"{{ws}}<{_HY_KEY}{{key}}</{_HY_KEY}{{ws}}"
                rf"(?:<ifm\|arg_type>{_IFM_TYPE}</ifm\|arg_type>{{ws}})?<{_HY_VALUE}"
            ),
            loose_parameters=(
                rf"{{ws}}<{_HY_KEY}{{key}}</{_HY_KEY}{{ws}}"
                rf"<ifm\|arg_type>(?:(?P<text>{TEXT_TYPES})|[^<>\r\n]{{0,64}}+)</ifm\|arg_type>{{ws}}<{_HY_VALUE}",
                rf"{{ws}}{_LOOSE_KEY}{{ws}}{KEY}{{ws}}{_LOOSE_KEY_END}{{ws}}{_LOOSE_VALUE}",
                # As GLM's: on one line, and without any opener in it.
                rf"{{ws}}<{_HY_KEY}{{key}}</{_HY_KEY}{{ws}}(?P<missing>)(?=[^<\[【［\r\n]{{1,180}}+</{_HY_VALUE})",
                rf"{{ws}}<{_HY_KEY}(?P<key>[^<>\r\n]{{1,256}}+)(?P<unclosed>){{ws}}<{_HY_VALUE}",
            ),
            value_end=_VALUE_END,
            loose_value_end=(
                rf"{_LOOSE_VALUE_END}(?={{ws}}(?:<(?:ifm\|)?arg_key[:>]|{_LOOSE_KEY}{{ws}}{KEY}{{ws}}{_LOOSE_KEY_END}{{ws}}"
                rf"{_LOOSE_VALUE}|{respelled(f'</{_HY_CALL}')}|<end_of_tool_call{_SFX}>|{_HY_CALLS_END}))"
            ),
            unclosed=unclosed(
                rf"(?:ifm\|arg_key|arg_key){_SFX}>[^<>\r\n]{{1,256}}+</{_HY_KEY}{{ws}}"
                rf"(?:<ifm\|arg_type>[^<>\r\n]{{0,16}}+</ifm\|arg_type>{{ws}})?<{_HY_VALUE}",
                rf"(?:ifm\|arg_key|arg_key){_SFX}>",
                f"/{_HY_VALUE}",
                f"/{_HY_CALL}",
                rf"/(?:ifm\|)?tool_calls{_SFX}>|{_HY_CALL}",
                "ait",
            ),
            nested=(
                rf"<{_HY_CALL}{{ws}}{ANY_NAME}(?:{{ws}}{_HY_SEP}|{{ws}}<{_HY_KEY})|"
                r"<ifm\|tool_call>{ws}\{{ws}\"name\"{ws}:|<ifm\|tool_call>{ws}\[{ws}\{{ws}\"name\"{ws}:"
            ),
            tail=rf"{{ws}}</{_HY_CALL}",
            loose_heads=(
                rf"<tool_call{_SFX}>{{ws}}{{name}}{{ws}}(?:{_HY_SEP}{{ws}})?(?P<told>)(?=<end_of_tool_call{_SFX}>)",
                rf"<{_HY_CALL}{{ws}}{{name}}(?:{{ws}}{_HY_SEP})?(?=[ \t]{{0,16}}+\r?\n{{ws}}</{_HY_CALL})",
                rf"<{_HY_CALL}{{ws}}{{name}}(?:{{ws}}{_HY_SEP})?(?P<told>)(?={{ws}}{_LOOSE_KEY})",
                rf"<{_HY_CALL}{{ws}}{NO_NAME}(?:{{ws}}{_HY_SEP})?(?={{ws}}<{_HY_KEY}"
                rf"[^<>\r\n]{{1,256}}+</{_HY_KEY}{{ws}}<(?:ifm\|)?arg_(?:value|type){_SFX}>)",
            ),
            loose_tail=rf"{{ws}}(?P<wrong><end_of_tool_call{_SFX}>)|(?={{ws}}{_HY_CALLS_END})",
        ),
        Form(
            **_HUNYUAN_SECTION,
            head=rf"<{_HY_CALL}{{ws}}{{name}}{{ws}}{_HY_SEP}{{ws}}{{object}}",
            body="json",
            tail=rf"{{ws}}<(?:/(?:iquest_tool_call|{_IFM})|end_of_tool_call{_SFX})>",
            loose_tail=rf"{{ws}}(?P<wrong></?arg_value{_SFX}>{{ws}}<end_of_tool_call{_SFX}>)",
        ),
        Form(
            **_HUNYUAN_SECTION,
            head=r"<ifm\|tool_call>{ws}(?=\{)",
            body="envelope",
            tail=r"{ws}</ifm\|tool_call>",
        ),
    ),
    variants=(
        fenced(r"<tool_call>{ws}{name}{ws}", "{ws}</tool_call>", salvage=True),  # as ms-swift asks for it
    ),
    tags=(
        r"<(?:(?P<closes>/)|(?P<opens>))ifm\|think(?:_[a-z]{1,16}+)?>",
        r"<(?:(?P<closes>/)|(?P<opens>))think:[0-9A-Za-z]{1,16}+>",
    ),
    writing=Writing(
        form=1,
        opener="<tool_calls>\n",
        call="<tool_call>{name}<tool_sep>\n{arguments}</tool_call>",
        parameter="<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
        closer="\n</tool_calls>",
    ),
)


SOLAR_OPEN2 = Dialect(
    name="solar_open2",
    title="<|tool_call:start|>f<|tool_arg:start|>key<|tool_arg:value|>value<|tool_arg:end|><|tool_call:end|>",
    models="Solar Open2",
    source=SOURCE + ": solar_open2",
    forms=(
        Form(
            head=r"<\|tool_call:start\|>{ws}{name}(?={ws}<\|tool_(?:arg:start|call:end)\|>)",
            body="parameters",
            parameter=r"{ws}<\|tool_arg:start\|>{key}<\|tool_arg:value\|>",
            loose_parameters=(rf"{{ws}}<\|tool_arg:start\|>{{ws}}{KEY}{{ws}}<\|tool_arg:value\|>",),
            value_end=r"<\|tool_arg:end\|>",
            unclosed=r"<\|tool_arg:start\|>[^<>\r\n]{1,256}+<\|tool_arg:value\|>",
            tail=r"{ws}<\|tool_call:end\|>",
        ),
    ),
    tags=(r"<\|think:(?:start(?P<opens>)|end(?P<closes>))\|>",),
    writing=Writing(
        call="<|tool_call:start|>{name}\n{arguments}<|tool_call:end|>",
        parameter="<|tool_arg:start|>{key}<|tool_arg:value|>{value}<|tool_arg:end|>",
        separator="",
    ),
)


_TOOLIFY_OPENER = r"<(?:Function_[0-9A-Za-z]{1,32}+_Start/>{ws}<)?function_calls>{ws}(?=<function_call>)"
_NUMBER = r"(?:[ ](?:id|index)=[\"'][\w.:\-]{1,64}+[\"'])?"
TOOLIFY = Dialect(
    name="toolify",
    title="<function_call><tool>f</tool><args_json><![CDATA[{...}]]></args_json></function_call>",
    models="any model that Toolify or Luker prompts",
    source="Toolify and Luker, behaviour only",
    forms=(
        Form(
            opener=_TOOLIFY_OPENER,
            loose_openers=(r"<function_calls>{ws}(?=<function_call[ ]i)",),
            head=r"<function_call>{ws}<tool>{ws}{name}{ws}</tool>",
            loose_heads=(
                rf"<function_call{_NUMBER}>{{ws}}<tool>{{ws}}<!\[CDATA\[{{ws}}{{name}}{{ws}}\]\]>{{ws}}</tool>",
                rf"<function_call{_NUMBER}>{{ws}}<tool>{{ws}}{{name}}{{ws}}</tool>",
                rf"<function_call>{{ws}}<tool>{{ws}}{MARKED_NAME}{{ws}}</tool>",
            ),
            body="parameters",
            parameter=r"{ws}<args_json>",
            value_end="</args_json>",
            nested=_TOOLIFY_OPENER,
            unclosed="</function_call>",
            encoding="xml",
            tail=r"{ws}</function_call>",
            loose_tail=forgotten("</function_calls>", "<function_call[ >]"),
            closer=r"</function_calls>",
        ),
    ),
    writing=Writing(
        opener="<function_calls>\n",
        call=(
            "<function_call>\n<tool>{name}</tool>\n<args_json><![CDATA[{arguments}]]></args_json>\n</function_call>"
        ),
        closer="\n</function_calls>",
    ),
)
