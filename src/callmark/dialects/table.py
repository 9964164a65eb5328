"""The dialects that come with callmark: one row each, in the order in which they are tried at an opener they share."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from callmark.dialects.fences import INDENT
from callmark.dialects.model import Dialect, Form, Writing
from callmark.dialects.notation import respelled
from callmark.dialects.thoughts import THOUGHT_TAGS

_CALL = r"{ws}(?:CALL|Call|call)(?:#(?P<nonce>[0-9A-Za-z_\-]{1,64}+))?{ws}"  # what begins a marker, in any spelling
_SOURCE = "dialects table of vLLM 0.33 and SGLang 0.5.23"

_TOOL = r"\"(?P<tool>[^\W\d][\w.:/\-]{0,127}+)\""
_NAMED_FIRST = r"(?=\{{ws}\"name\"{ws}:{ws}" + _TOOL + r"{ws},{ws}\"(?:arguments|parameters)\"{ws}:)"
_NAMED_CALL = _NAMED_FIRST.replace("?P<tool>", "?:")  # the same, whatever tools were given
_FENCED_FIRST = _NAMED_FIRST.replace("name", "(?:tool_)?name", 1)  # Command R writes it so
_TYPED_FIRST = _NAMED_FIRST.replace(r"\"name", r"\"type\"{ws}:{ws}\"function\"{ws},{ws}\"name", 1)
_FEW = r"[ \t\r\n]{0,4}+"  # around a colon, and before a comma: with {ws} there, a head is longer than what is held
_WRAPPED_FIRST = (  # as an API for native calls has them; behind `parameters` a definition has its schema
    r"(?P<told>)(?=\{{ws}\"type\"{few}:{few}\"function\"{few},{ws}\"function\"{few}:{few}\{{ws}\"name\"{few}:{few}"
    + _TOOL + r"{few},{ws}\"arguments\"{few}:)"
).replace("{few}", _FEW)  # fmt: skip
_BARE_LIST = r"\[{ws}" + _NAMED_FIRST
_BY_NAME = r"\{{ws}(?=" + _TOOL + r"{ws}:{ws}\{)"
_NATIVE = (  # what an API for native calls would answer
    r"\{{ws}\"tool_calls\"{few}:{few}\[{ws}(?=\{{ws}"
    r"(?:\"(?:id|type|index)\"{few}:{few}(?:\"[^\"\\\r\n]{0,64}+\"|[0-9]{1,4}+){few},{ws}){0,3}+"
    r"(?:\"function\"{few}:{few}\{{ws})?\"name\"{few}:{few}" + _TOOL + r"{few},)"
).replace("{few}", _FEW)
_BARE_CALLS = r"\[{ws}(?=(?P<tool>[^\W\d][\w.:/\-]{0,127}+){ws}\()"
_BARE: dict[str, Any] = {"line_start": True, "repairs": ("missing-opener", "missing-closer"), "salvage": True}
_DSML = r"｜(?:DSML|GCML)｜(?:[ ]|r:)?"
_DSML_CALLS = "(?:function_calls|tool_calls|toolcalls|tool|calls)"
_SFX = "(?::[0-9A-Za-z]{1,16}+)?"  # some models end the names of their tags with a code of their own
_IFM = rf"(?:ifm\|tool_call|tool_call){_SFX}"
_MM = r"<\]minimax\[>\["  # behind a bracket, with which no marker may begin: every list of JSON ends in it
_K2_CALL = (
    r"<\|tool_call_begin\|>{ws}(?P<id>(?:functions\.)?"
    r"(?P<name>[^\W\d][\w./\-]{0,127}+(?::(?![0-9]{1,9}+{ws}<)[\w./\-]{1,127}+){0,3}+)"
    r"(?::[0-9]{1,9}+)?){ws}<\|tool_call_argument_begin\|>{ws}"
)
_K3_CALL = r"<\|open\|>call tool=\"{name}\"(?:[ ]index=\"[0-9]{1,9}+\")?<\|sep\|>"
_KEY = r"[\"']?(?P<key>[^<>\"' \t\r\n]{1,256}+(?:[ \t]{1,8}+[^<>\"' \t\r\n]{1,32}+){0,8}+)[\"']?"  # in any quotes
_NAME = r"[\"']?{name}[\"']?"
_MARKED_NAME = r"(?P<name>[^\W\d][\w.:/\-]{0,32}+(?:\\_[\w.:/\-]{0,32}+){1,6}+)(?P<escaped>)"  # as Markdown escapes it
_LOOSE_NAME = r"[\"']?[ \t]{0,4}+{name}[ \t]{0,4}+[\"']?"
_NAMED = r"(?:[ \t]{1,16}+name)?[ \t]{0,4}+="  # of an attribute, or of a tag that has its value at once
_MORE = r"(?:[ \t]{1,4}+[a-z_]{1,32}+=[\"'][^<>\"'\r\n]{0,32}+[\"']){0,2}+[ \t\r\n]{0,4}+>"  # other attributes
_NUMBER = r"(?:[ ](?:id|index)=[\"'][\w.:\-]{1,64}+[\"'])?"
_GLUED = r"Ġ?[ \t]{0,16}+name[ \t]{0,4}+="  # as some decoders leave the blank of a token
_PARAMETER = rf"{{ws}}<[ \t]{{0,4}}+param(?:eter)?{_NAMED}[ \t]{{0,4}}+{_KEY}{_MORE}"
_BEFORE_NAME = (  # other attributes, or a line break
    r"(?:[ \t\r\n]{1,8}+(?!name=)[a-z_]{1,32}+=[\"'][^<>\"'\r\n]{0,32}+[\"']){0,2}+[ \t\r\n]{1,8}+name="
)
_TYPE = "(?:(?P<text>string)|(?P<json>number|integer|boolean|object|array|null))"  # as a tag says it
_KEY_BEHIND = _BEFORE_NAME + r"\"(?P<key>[^<>\"\r\n]{1,256}+)\"" + _MORE
_INVOKES = "(?:function_calls|minimax:tool_call|dots_function_call)"
_EMPTY = r"<tool_call>[ \t]{0,16}+\r?\n{ws}</tool_call>"  # nothing is in it; on one line it is spoken of
_QWEN_SECTION: dict[str, Any] = {
    "opener": r"<(?:seed:)?tool_call>{ws}(?=<function=)",
    "loose_openers": (rf"<(?:tool_calls?|function_calls)>{{ws}}(?=<[ \t]{{0,4}}+function{_NAMED})",),
    "closer": r"</(?:seed:)?tool_call>",
}
_FUNCTION = "func(?:tion)?s?"  # as models spell it in a closing tag
_QWEN_BEHIND = (  # a call whose own closer is missing
    r"(?:{ws}(?:</(?:seed:)?tool_call>|<tool_call>{ws}<function=)|\r?\n<function=[^\W\d][\w.:/\-]{0,127}+>\r?\n)"
)
_HUNYUAN_SECTION: dict[str, Any] = {
    "opener": rf"<(?:ifm\|tool_calls|tool_calls){_SFX}>{{ws}}(?=<(?:iquest_tool_call|{_IFM})>)",
    "closer": rf"</(?:ifm\|)?tool_calls{_SFX}>",
}
_COFL = r"<cofl:tool_call(?:[ ]id=\"(?P<id>[\w.:/\-]{1,160}+)\")?[ ]name=\"{name}\">"
_COFL_OTHERWISE = r"<cofl:tool_call[ ]name=\"{name}\"[ ]id=\"(?P<id>[\w.:/\-]{1,160}+)\">"
_COFL_KEY = r"[ ]name=\"(?P<key>[^<>\"\r\n]{1,256}+)\""
_COFL_TYPE = r"[ ]type=\"(?:(?P<text>raw)|(?P<json>json)|(?P<object>dict)|(?P<array>list))\">"
_COFL_CALLS: dict[str, Any] = {
    "opener": r"<cofl:tool_calls>{ws}(?=<cofl:tool_call[ ])",
    "key_encoding": "xml",
    "tail": r"{ws}</cofl:tool_call>",
    "loose_tail": r"(?={ws}(?:</cofl:tool_calls>|(?P<next><cofl:tool_call[ ])))",
    "closer": r"</cofl:tool_calls>",
}
_COFL_BEHIND = r"{ws}(?:</cofl:tool_calls>|<cofl:tool_call[ ])"
_DS = r"(?:▁|\\?_|[ ])"  # between the words of a token, as distilled models spell it
_DS_CALL = rf"<｜tool{_DS}call(?:s(?:{_DS}begin)?|{_DS}begin)｜>{{ws}}"  # the first stand for the section's opener too
_DS_SEP = rf"<｜tool{_DS}sep｜>{{ws}}"
_DS_NEXT = rf"(?={{ws}}<｜tool{_DS}call(?:{_DS}begin|s{_DS}end)｜>)"
_BY_ROLE = r"function call<\|role_sep\|>{ws}(?=\{)"
_OBJECTS_END = r"</function_call>|<\|message_sep\|>"
_FURTHER = (  # another call in the same wrapper, and not what should have stood in the first
    r"(?P<more>{ws},?{ws})(?=\{{ws}[\"'](?:(?:tool_)?name|tool|function|type|id|arguments|parameters)[\"'])"
)
_COLON = r"(?:[ ]?[0-9]{1,3}+)?[ \t]{0,4}+[:：]"  # steps may be numbered
_OBJECT_OF_A_CALL = r"(?=\{{ws}\"(?:name|id|type|arguments|parameters)\"{ws}:)"
_STEP: dict[str, Any] = {"line_start": True, "indent": INDENT, "explicit": False}
_PRINT = r"print{ws}\({ws}(?=[^\W\d][\w.:/\-]{0,127}+{ws}\()"
_CALL_ID = r"(?:\[CALL_ID\]{ws}(?P<id>[0-9A-Za-z_\-]{1,64}+){ws})?"
_CHANNEL = r"(?:commentary|analysis)"
_HARMONY_HEADER = r"{ws}(?:<\|constrain\|>{ws})?(?:(?:json|code){ws})?<\|message\|>{ws}"
_HARMONY_MESSAGE = _HARMONY_HEADER + "{object}"
_NO_ARGUMENTS = _HARMONY_HEADER + r"(?P<missing>)(?P<empty>)(?=<\|(?:call|end)\|>)"
_LOOSE_HEADER = _HARMONY_HEADER.replace("json|code", "(?i:json|code)")
_JSON_HEADER = r"{ws}(?:<\|constrain\|>{ws})?(?i:json){ws}<\|message\|>{ws}(?=\{)"  # what is for a tool, and no answer
_NO_TOOL = r"(?!functions\.|(?:browser|container)\.|(?:all|assistant|developer|python|self|system|tool|user)[ \t\r\n<])"
_ANY_NAME = r"[^\W\d][\w.:/\-]{0,127}+"
_ANYONE = rf"to={_NO_TOOL}{_ANY_NAME}"
_ROLE = r"<\|start\|>[ ]?+assistant{ws}"  # LLM-jp writes a blank behind each token
_VIA = r"<\|channel\|>[ ]?+"
_ANSWER_HEADER = r"{ws}(?:<\|constrain\|>{ws}[A-Za-z]{1,16}+{ws})?<\|message\|>"
_TO_TOOL = rf"{_ROLE}to={_ANY_NAME}{{ws}}"  # whose type is not said: no tool of the caller's
_AGAIN = rf"(?:{_VIA}(?:analysis|commentary|final){{ws}}(?:to=assistant{{ws}})?)?"  # before the channel that counts
_CHANNELS = (
    rf"(?:{_TO_TOOL}|(?:{_ROLE})?{_AGAIN}){_VIA}analysis(?P<opens>){{ws}}<\|message\|>",
    r"<\|end(?P<closes>)\|>",
    # Another message begins, so the thought is over. A remark is told from a quoted header by its role.
    rf"(?:{_ROLE}{_AGAIN}{_VIA}(?:commentary|final)|{_AGAIN}{_VIA}final)(?P<answers>){_ANSWER_HEADER}",
    rf"{_VIA}commentary{_ANSWER_HEADER}",
    rf"{_TO_TOOL}{_VIA}(?:commentary|final){{ws}}<\|message\|>",
)
_TO_FUNCTION: dict[str, Any] = {
    "head": rf"to=functions\.{{name}}{{ws}}{_VIA}{_CHANNEL}{_HARMONY_MESSAGE}",
    "loose_heads": (
        rf"to=functions\.{{name}}{{ws}}{_VIA}{_CHANNEL}{_LOOSE_HEADER}(?=\{{)",
        rf"to=functions\.{{name}}{{ws}}{_VIA}{_CHANNEL}{_NO_ARGUMENTS}",
    ),
    "body": "json",
    "closer": r"<\|(?:call|end)\|>",
    "alone": False,
}
_TO_ANYONE: dict[str, Any] = {
    "body": "json", "closer": r"<\|(?:call|end)\|>", "alone": False, "repairs": ("opener-spelling",)
}  # fmt: skip


def _list_of(opener: str, closer: str, **more: Any) -> Form:
    """Return the form of a JSON list of calls between an opener and a closer."""
    return Form(
        opener=opener, head=r"(?=\{)", body="envelope", separator=r"{ws},{ws}", closer=closer, alone=False, **more
    )


def _without_brackets(opener: str, head: str, **more: Any) -> Form:
    """Return the form of a JSON list of calls without its brackets: objects that `head` tells, with commas between."""
    return Form(
        opener=opener + head, head=head, body="envelope", separator=r"{ws},{ws}", alone=False,
        repairs=("missing-opener", "missing-closer"), **more,
    )  # fmt: skip


def _objects(opener: str, closer: str, **more: Any) -> Form:
    """Return the form of one JSON object after the other, each a call, between an opener and a closer."""
    return Form(opener=opener, head=r"(?=\{)", body="envelope", closer=closer, alone=False, **more)


def _calls_of(opener: str, closer: str, **more: Any) -> Form:
    """Return the form of calls as Python has them, between an opener and a closer."""
    return Form(opener=opener, head=r"{name}{ws}\(", body="arguments", closer=closer, alone=False, **more)


def _by_name(opener: str, closer: str, **more: Any) -> Form:
    """Return the form of arguments under the name of their tool, in an object between an opener and a closer."""
    return Form(
        opener=opener + _BY_NAME, head=r"\"{name}\"{ws}:{ws}(?=\{)", body="json",
        tail=r"{ws}(?=\}|,{ws}\"[^\"\\\r\n]{1,128}+\"{ws}:{ws}\{)", separator=r"{ws},{ws}", closer=r"\}" + closer,
        alone=False, **more,
    )  # fmt: skip


def _bare_calls(**more: Any) -> Form:
    """Return the form of a Python list of calls that nothing stands around."""
    return _calls_of(_BARE_CALLS, r"\]", begins="[", tail=r"{ws}(?=[,\]])", separator=r",{ws}", **more)


def _unclosed(parameter: str, begin: str, end: str, tail: str, behind: str) -> str:
    """Return the pattern of what shows that a value was never closed; each part of it is without its first `<`.

    That is another parameter, whose value is long, or ends where structure follows (`begin` of a parameter, or the
    tail): elsewhere it is text about the format. Or it is the tail, where the next call or a section's end is `behind`.
    """
    value = rf"(?:[^<]{{300}}|[^<]{{0,299}}+<(?:{end}{{ws}}<)?(?:{begin}|{tail}))"
    found = rf"(?:{parameter}{value}|{tail}{{ws}}<(?:{behind}))"
    return rf"\r?\n(?=<{found})|<(?={found})"


def _misspelt(name: str) -> str:
    """Return the pattern of a closing tag in any case, with something behind its name or not."""
    return rf"</[ \t]{{0,4}}+(?i:{name})(?:[ =][^<>\r\n]{{1,32}}+)?[ \t]{{0,4}}+>"


def _wrong_tail(tail: str, name: str, behind: str, *certain: str) -> str:
    """Return the pattern of what stands in place of a `tail`: it with blanks in it; a misspelt tag of the name, where
    what is `behind` shows that the call is over; or one of the tags that are `certain` wherever they stand.
    """
    ways = [respelled(tail), *certain, rf"{_misspelt(name)}(?={behind})"]
    return rf"{{ws}}(?P<wrong>{'|'.join(ways)})"


def _twice(opener: str, begin: str) -> str:
    """Return the pattern of an opener that stands before the same again, behind which a call begins."""
    return rf"{opener}{{ws}}(?={opener}{{ws}}{begin})"


def _swapped(tail: str, value_end: str, behind: str) -> str:
    """Return the pattern of a value's closer behind the call's, or twice, where what is `behind` shows that the call is
    over: neither belongs to the value, to which the last of them would be the end.
    """
    return rf"(?:{tail}|{value_end}){{ws}}{value_end}(?={behind})"


def _keyed(prefix: str = "", argument: str = "arg") -> Form:
    """Return the form of GLM's tags: a name, then keys and values in tags of their own; `prefix` begins all names.

    What says `argument` in another way has a call without any from GLM's.
    """
    call, key, value = f"{prefix}tool_call>", f"{prefix}{argument}_key>", f"{prefix}{argument}_value>"
    named = r"[^<>\r\n]{1,256}+"
    empty = rf"|[\r\n]{{0,2}}+</{call}" if argument == "arg" else ""
    again = (  # the end of the call, and the next one
        rf"/{call}{{ws}}<{call}{{ws}}[^\W\d][\w.:/\-]{{0,127}}+(?:{{ws}}<{key}|[\r\n]{{0,2}}+</{call})"
    )
    return Form(
        head=rf"<{call}{{ws}}{{name}}(?={{ws}}<{key}{empty})",
        body="parameters",
        parameter=rf"{{ws}}<{key}{{key}}</{key}{{ws}}<{value}",
        loose_parameters=(
            rf"{{ws}}<{key}{{ws}}{_KEY}{{ws}}</{key}{{ws}}<{value}",
            # On one line, and without any opener in it: a call behind a key is no value.
            rf"{{ws}}<{key}{{key}}</{key}{{ws}}(?P<missing>)(?=[^<\[【［\r\n]{{1,232}}+</{value})",
            rf"{{ws}}<{key}(?P<key>{named})(?P<unclosed>){{ws}}<{value}",
        ),
        value_end=f"</{value}",
        unclosed=(
            rf"\r?\n(?=<{key}{named}</{key}{{ws}}<{value})|<(?={key}{named}</{key}{{ws}}<{value})|"
            rf"\r?\n(?=<{again})|<(?={again})"
        ),
        # A call of Hunyuan's, too, whose opener is the same: its keys would be taken for those of this call.
        nested=rf"<{call}{{ws}}[^\W\d][\w.:/\-]{{0,127}}+(?={{ws}}<(?:{key}|tool_sep>)|[\r\n]{{0,2}}+</{call})",
        tail=rf"{{ws}}</{call}",
    )


def _dsml(sign: str, **more: Any) -> tuple[Form, ...]:
    """Return the forms of DeepSeek's tags, whose names begin with `sign`: arguments as one JSON object, or in tags."""
    section: dict[str, Any] = {
        "opener": rf"<{sign}{_DSML_CALLS}>{{ws}}(?=<{sign}invoke name=)",
        "tail": rf"{{ws}}</{sign}invoke>",
        "loose_tail": rf"(?={{ws}}(?:</{sign}{_DSML_CALLS}>|(?P<next><{sign}invoke name=)))",
        "closer": rf"</{sign}{_DSML_CALLS}>",
        **more,
    }
    return (
        Form(head=rf"<{sign}invoke name=\"{{name}}\">{{ws}}(?=\{{)", body="json", **section),
        Form(
            head=rf"<{sign}invoke name=\"{{name}}\"(?:>|{{ws}}(?P<empty>/>))",
            body="parameters",
            parameter=(
                rf"{{ws}}<{sign}parameter name=\"(?P<key>[^<>\"\r\n]{{1,256}}+)\""
                r"(?:[ ]string=\"(?:(?P<text>true)|(?P<json>false))\")?>"
            ),
            loose_parameters=(
                rf"{{ws}}<{sign}parameter string=\"(?:(?P<text>true)|(?P<json>false))\" "
                r"name=\"(?P<key>[^<>\"\r\n]{1,256}+)\">",
                rf"{{ws}}<{sign}parameter name=\"(?P<key>[^<>\"\r\n]{{1,256}}+)\""
                r"(?:[ ]string=\"(?:(?P<text>true)|(?P<json>false))\")?[ \t\r\n]{1,4}+>",
            ),
            value_end=rf"</{sign}parameter>",
            loose_value_end=_swapped(
                rf"</{sign}invoke>", rf"</{sign}parameter>", rf"{{ws}}<(?:/{sign}{_DSML_CALLS}>|{sign}invoke name=)"
            ),
            unclosed=_unclosed(
                rf"{sign}parameter name=\"[^<>\"\r\n]{{1,256}}+\"(?:[ ]string=\"(?:true|false)\")?>",
                rf"{sign}parameter name=",
                rf"/{sign}parameter>",
                rf"/{sign}invoke>",
                rf"/{sign}{_DSML_CALLS}>|{sign}invoke name=",
            ),
            **section,
        ),
    )


_BEAM_HEADER = r"to={name}<\|channel\|>(?:analysis|commentary){ws}<\|constrain\|>xml{ws}<\|message\|>"
_BEAM: dict[str, Any] = {
    "body": "parameters",
    "parameter": r"{ws}<rfl:parameter name=\"(?P<key>[^<>\"\r\n]{1,256}+)\">",
    "loose_parameters": ("{ws}<rfl:parameter" + _KEY_BEHIND,),
    "value_end": "</rfl:parameter>",
    "unclosed": _unclosed(
        r"rfl:parameter name=\"[^<>\"\r\n]{1,256}+\">",
        "rfl:parameter name=",
        "/rfl:parameter>",
        r"\|(?:call|end)\|>",
        r"\|start\|>assistant",
    ),
    "trim": True,
    "tail": r"{ws}<\|(?:call|end)\|>",
}

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
            loose_tail=_FURTHER,
            **one,
        ),
        Form(
            head=json + _FENCED_FIRST,
            loose_heads=(json + _WRAPPED_FIRST, _json_otherwise(fence) + _FENCED_FIRST),
            loose_tail=_FURTHER,
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
    return Form(
        opener=rf"(?:Action:[ \t]{{0,16}}+)?{json}\[{{ws}}{_FENCED_FIRST}",
        head=r"(?=\{)",
        begins=f"A{fence[0]}",
        separator=r"{ws},{ws}",
        closer=rf"{{ws}}\]{{ws}}{fence}",
        alone=False,
        **_FENCED,
        **more,
    )


_ROWS: tuple[Dialect, ...] = (
    Dialect(
        name="call",
        title='[CALL: name({"key": "value"})] or [CALL: name(key=value)]',
        models="any model that was taught it in the prompt",
        source="callmark, README",
        forms=(
            Form(
                head=r"\[{ws}CALL(?:#(?P<nonce>[0-9A-Za-z_\-]{1,64}+))?{ws}:{ws}{name}{ws}(?:\(|(?P<empty>\]))",
                loose_heads=(
                    r"\[{ws}(?:Call|call)(?:#(?P<nonce>[0-9A-Za-z_\-]{1,64}+))?{ws}:{ws}{name}{ws}\(",
                    r"\[{ws}CALL(?:#(?P<nonce>[0-9A-Za-z_\-]{1,64}+))?{ws}:{ws}" + _MARKED_NAME + r"{ws}\(",
                    r"\[{ws}[Cc]alling[ \t]{1,8}+tools?{ws}:{ws}{name}{ws}\(",  # as hosts show calls of the past
                    r"\[" + _CALL + r"[:：]{ws}{name}{ws}(?P<wide>[(（])",
                    "【" + _CALL + r"[:：]{ws}{name}{ws}(?P<wide>[(（])",
                    "［" + _CALL + r"[:：]{ws}{name}{ws}(?P<wide>[(（])",
                    r"\[" + _CALL + r":{ws}(?P<name>[^\W\d](?:[\w./\-]|:(?=[\w.:/\-])){0,127}+):?(?P<missing>)"
                    r"{ws}(?=\{{ws}(?:[\"'}]|[^\W\d]\w{0,63}+{ws}:))",
                ),
                begins="[【［",
                body="arguments",
                tail=r"{ws}\]",
                loose_tail=(
                    r"(?=[ \t]{0,64}+\r?\n{ws}[^\W\d_]|{ws}\[{ws}CALL(?:#[0-9A-Za-z_\-]{1,64}+)?{ws}:)|"
                    r"(?P<more>{ws},{ws})(?=[^\W\d][\w.:/\-]{0,127}+{ws}\()|{ws}(?P<wrong>[;.]{ws}\]|\[/(?i:call)\])"
                ),
            ),
        ),
        variants=(
            Form(
                begins="C",
                head=r"CALL{ws}:{ws}{name}{ws}\(",
                body="arguments",
                **_BARE,
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
    ),
    Dialect(
        name="hermes",
        title='<tool_call>{"name": "f", "arguments": {...}}</tool_call>',
        models="Hermes 2 and 3, Qwen2.5, QwQ, Qwen3",
        source=_SOURCE + ": hermes, qwen25",
        forms=(
            Form(
                head=r"<tool_call>{ws}(?=\{)",
                body="envelope",
                loose_heads=(
                    r"<[ \t]{0,4}+(?i:tool[_\- ]?call|function-?call)[ \t]{0,4}+>{ws}(?=\{{ws}[\"']name[\"']{ws}:)",
                ),
                tail=r"{ws}</tool_call>",
                loose_tail=r"(?={ws}<tool_call>)|" + _FURTHER,
            ),
        ),
        variants=(
            Form(
                begins="{",
                head=(
                    r"(?=\{{ws}\"name\"{ws}:{ws}\"(?P<tool>[^\"\\\r\n]{1,128}+)\"{ws},"
                    r"{ws}\"(?:arguments|parameters)\"{ws}:{ws}\{)"
                ),
                body="envelope",
                **_BARE,
            ),
            Form(begins="{", head=_WRAPPED_FIRST, body="envelope", **_BARE),
            Form(
                head=(
                    r"<(?:tools?|response|xml|(?i:json))>{ws}"
                    r"(?=\{{ws}\"name\"{ws}:{ws}\"[^\"\\\r\n]{1,128}+\"{ws},{ws}\"arguments\"{ws}:{ws}\{)"
                ),
                body="envelope",
                tail=r"{ws}</(?:tools?|response|xml|(?i:json))>",
                repairs=("opener-spelling",),
            ),
            Form(  # as LM Studio asks for it
                begins="[",
                head=r"\[TOOL_REQUEST\]{ws}" + _NAMED_CALL,
                body="envelope",
                tail=r"{ws}\[END_TOOL_REQUEST\]",
                repairs=("opener-spelling",),
            ),
            Form(
                head=r"<(?:tool|function)_call>{ws}```(?:json)?[ \t]{0,16}+\r?\n{ws}(?=\{)",
                body="envelope",
                tail=r"{ws}```{ws}</(?:tool|function)_call>",
                repairs=("fenced-body",),
            ),
            Form(
                head=r"<tool_call>{ws}{name}\(",
                body="arguments",
                tail=r"{ws}</tool_call>",
                repairs=("neighbour-body",),
                salvage=True,
            ),
            _by_name("", "", begins="{", **_BARE),
            _by_name(r"<tool_call>{ws}", "{ws}</tool_call>", repairs=("neighbour-body",), salvage=True),
            _list_of(_NATIVE, r"{ws}\]{ws}\}", begins="{", **_BARE),
            _calls_of(
                r"<tool_call>{ws}" + _BARE_CALLS,
                r"{ws}\]{ws}</tool_call>",
                separator=r"{ws},{ws}",
                repairs=("neighbour-body",),
                salvage=True,
            ),
        ),
        tags=(_EMPTY, _twice("<tool_call>", r"\{")),
        writing=Writing(
            call='<tool_call>\n{"name": {quoted_name}, "arguments": {arguments}{id}}\n</tool_call>',
            id=', "id": {quoted_id}',
        ),
    ),
    Dialect(
        name="qwen_xml",
        title="<tool_call><function=f><parameter=key>value</parameter></function></tool_call>",
        models="Qwen3-Coder, Qwen3.5, Step-3.5, Nemotron-3, Seed-OSS; Llama 3.1 with JSON for the parameters",
        source=_SOURCE + ": qwen3_coder, qwen3_xml, seed_oss",
        forms=(
            Form(
                **_QWEN_SECTION,
                head=r"<function={name}>{ws}(?=\{)",
                loose_heads=(rf"<function{_NAMED}{_LOOSE_NAME}>{{ws}}(?=\{{)",),
                body="json",
                tail=r"{ws}</function>",
                loose_tail=r"(?={ws}</(?:seed:)?tool_call>)",
            ),
            Form(
                **_QWEN_SECTION,
                head=r"<function={name}>",
                loose_heads=(
                    rf"<[ \t]{{0,4}}+function{_NAMED}[ \t]{{0,4}}+{_LOOSE_NAME}[ \t]{{0,4}}+>"
                    r"(?={ws}</?[ \t]{0,4}+(?:param|function))",
                    r"<function={name}(?=\r?\n{ws}<parameter=|{ws}</function>{ws}</(?:seed:)?tool_call>)",
                ),
                body="parameters",
                parameter=r"{ws}<parameter={key}>",
                loose_parameters=(
                    _PARAMETER,
                    # Without any opener in the value: a call behind a tag that was cut is no value.
                    r"{ws}<parameter=(?P<key>[^<>\"' \t\r\n]{1,128}+)(?P<unclosed>)"
                    r"(?=\r?\n[^<\[【［]{1,512}+</parameter>)",
                    r"{ws}<parameter=(?P<key>[^\W\d][\w.\-]{0,127}+)(?P<unclosed>)="  # as an attribute
                    r"(?=[^<>\[【［\r\n]{1,512}+</parameter>)",
                ),
                value_end="</parameter>",
                loose_value_end=r"\r?\n" + _swapped(_misspelt(_FUNCTION), "</parameter>", _QWEN_BEHIND),
                nested=r"<tool_call>{ws}(?=<function=)|\r?\n<function=[^\W\d][\w.:/\-]{0,127}+>(?=\r?\n)",
                unclosed=(
                    r"\r?\n(?=<parameter=[^<>\r\n]{1,256}+>(?:\r?\n|[^<\r\n]{1,256}+(?:</parameter>{ws}|\r?\n)"
                    r"(?:<parameter=|</function>))|</function>{ws}(?:</tool_call>|<function=))"
                ),
                trim=True,
                tail=r"{ws}</function>",
                loose_tail=(
                    r"(?={ws}</(?:seed:)?tool_call>)|"
                    + _wrong_tail("</function>", _FUNCTION, _QWEN_BEHIND, r"</function=[\w.:/\-]{1,128}+>")
                ),
            ),
        ),
        tags=(r"<(?:(?P<closes>/)|(?P<opens>))seed:think>", _EMPTY, _twice("<tool_call>", "<function=")),
        writing=Writing(
            form=1,
            opener="<tool_call>\n",
            call="<function={name}>\n{arguments}</function>",
            parameter="<parameter={key}>\n{value}\n</parameter>\n",
            separator="\n</tool_call>\n<tool_call>\n",
            closer="\n</tool_call>",
        ),
    ),
    Dialect(
        name="glm",
        title="<tool_call>f<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>",
        models="GLM-4.5 to GLM-5, Ling-3; LongCat and Xing4.0 with tags of other names",
        source=_SOURCE + ": glm45, glm47; ms-swift 4.6",
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
            _EMPTY,
            _twice("<tool_call>", r"[^\W\d][\w.:/\-]{0,127}+(?:{ws}<(?:arg|param)_key>|[\r\n]{0,2}+</tool_call>)"),
        ),
        writing=Writing(
            call="<tool_call>{name}\n{arguments}</tool_call>",
            parameter="<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
        ),
    ),
    Dialect(
        name="hunyuan",
        title="<tool_calls><tool_call>f<tool_sep><arg_key>key</arg_key><arg_value>value</arg_value></tool_call></tool_calls>",
        models="Hunyuan HY3 and HY4; IQuest-Q1, K2-Horizon with tags of their own",
        source=_SOURCE + ": hy_v3, hy_v4, iquest_q1, k2_horizon",
        forms=(
            _list_of(
                rf"(?:<(?:ifm\|tool_calls|tool_calls){_SFX}>{{ws}})?<ifm\|tool_call>{{ws}}\[{{ws}}(?=\{{)",
                r"{ws}\]{ws}</ifm\|tool_call>(?:{ws}</ifm\|tool_calls>)?",
            ),
            Form(
                **_HUNYUAN_SECTION,
                head=(
                    rf"<(?:iquest_tool_call|{_IFM})>{{ws}}{{name}}(?:{{ws}}<tool_sep{_SFX}>)?"
                    rf"(?={{ws}}<(?:ifm\|)?arg_key{_SFX}>|[\r\n]{{0,2}}+</(?:iquest_tool_call|{_IFM})>)"
                ),
                body="parameters",
                parameter=(
                    rf"{{ws}}<(?:ifm\|)?arg_key{_SFX}>{{key}}</(?:ifm\|)?arg_key{_SFX}>{{ws}}"
                    rf"(?:<ifm\|arg_type>{_TYPE}"
                    rf"</ifm\|arg_type>{{ws}})?<(?:ifm\|)?arg_value{_SFX}>"
                ),
                loose_parameters=(
                    rf"{{ws}}<(?:ifm\|)?arg_key{_SFX}>{{ws}}{_KEY}{{ws}}</(?:ifm\|)?arg_key{_SFX}>{{ws}}"
                    rf"<(?:ifm\|)?arg_value{_SFX}>",
                ),
                value_end=rf"</(?:ifm\|arg_value|arg_value){_SFX}>",
                unclosed=_unclosed(
                    rf"(?:ifm\|arg_key|arg_key){_SFX}>[^<>\r\n]{{1,256}}+</(?:ifm\|)?arg_key{_SFX}>{{ws}}"
                    rf"(?:<ifm\|arg_type>[a-z]{{4,7}}+</ifm\|arg_type>{{ws}})?<(?:ifm\|)?arg_value{_SFX}>",
                    rf"(?:ifm\|arg_key|arg_key){_SFX}>",
                    rf"/(?:ifm\|)?arg_value{_SFX}>",
                    rf"/(?:iquest_tool_call|{_IFM})>",
                    rf"/(?:ifm\|)?tool_calls{_SFX}>|(?:iquest_tool_call|{_IFM})>",
                ),
                nested=rf"<(?:iquest_tool_call|{_IFM})>{{ws}}[^\W\d][\w.:/\-]{{0,127}}+(?:{{ws}}<tool_sep{_SFX}>|{{ws}}<(?:ifm\|)?arg_key{_SFX}>)",
                tail=rf"{{ws}}</(?:iquest_tool_call|{_IFM})>",
                loose_heads=(
                    rf"<tool_call{_SFX}>{{ws}}{{name}}{{ws}}(?:<tool_sep{_SFX}>{{ws}})?(?P<told>)"
                    rf"(?=<end_of_tool_call{_SFX}>)",
                ),
                loose_tail=rf"{{ws}}(?P<wrong><end_of_tool_call{_SFX}>)",
            ),
            Form(
                **_HUNYUAN_SECTION,
                head=rf"<(?:iquest_tool_call|{_IFM})>{{ws}}{{name}}{{ws}}<tool_sep{_SFX}>{{ws}}{{object}}",
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
            Form(  # as ms-swift asks for it
                head=r"<tool_call>{ws}{name}{ws}```(?:json)?[ \t]{0,16}+\r?\n{ws}(?=\{)",
                body="json",
                tail=r"{ws}```{ws}</tool_call>",
                repairs=("fenced-body",),
                salvage=True,
            ),
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
    ),
    Dialect(
        name="mistral",
        title='[TOOL_CALLS]f[ARGS]{...} or [TOOL_CALLS] [{"name": "f", "arguments": {...}}]',
        models="Mistral 7B v0.3 to Mistral Small 3.1, Magistral, Devstral",
        source=_SOURCE + ": mistral",
        forms=(
            Form(
                begins="[",
                opener=r"\[TOOL_CALLS\]{ws}\[{ws}(?=\{)",
                head=r"(?=\{)",
                body="envelope",
                separator=r"{ws},{ws}",
                closer=r"{ws}\]",
                alone=False,
            ),
            Form(
                head=rf"\[TOOL_CALLS\]{{ws}}{{name}}{{ws}}{_CALL_ID}\[ARGS\]{{ws}}{{object}}", body="json", begins="["
            ),
            Form(head=rf"\[TOOL_CALLS\]{{ws}}{{name}}{{ws}}{_CALL_ID}(?=\{{)", body="json", begins="["),
        ),
        variants=(
            _without_brackets(r"\[TOOL_CALLS\]{ws}", _OBJECT_OF_A_CALL, begins="["),
            Form(
                begins="[",
                head=r"\[TOOL_CALLS\]{ws}(?:\[ARGS\]{ws})?(?=\{{ws}\")",
                body="envelope",
                repairs=("missing-opener", "missing-closer"),
            ),
            Form(
                begins="[",
                head=r"\[TOOL_CALLS\]{name}\((?={ws}(?:[{)]|[^\W\d]\w{0,63}+{ws}=))",
                body="arguments",
                repairs=("neighbour-body",),
            ),
        ),
        tags=(
            r"\[TOOL_CALLS\]\[\]",
            _twice(r"\[TOOL_CALLS\]", r"(?:\[{ws}\{|[^\W\d][\w.:/\-]{0,127}+{ws}(?:\[(?:ARGS|CALL_ID)\]|\{))"),
        ),
        writing=Writing(form=1, call="[TOOL_CALLS]{name}{id}[ARGS]{arguments}", id="[CALL_ID]{id}", separator=""),
    ),
    Dialect(
        name="pythonic",
        title="[f(a=1), g()] or <|tool_call_start|>[f(a=1)]<|tool_call_end|>",
        models="Llama 4 and ToolACE; LFM2, LFM2.5, Olmo 3, Gemma 3, and at times Llama 3 and 4, with a wrapper",
        source=_SOURCE + ": pythonic, llama4_pythonic, lfm2, olmo3",
        forms=(
            _calls_of(
                r"<\|(?:tool_call|python)_start\|>{ws}\[{ws}(?=[^\W\d][\w.:/\-]{0,127}+{ws}\()",
                r"{ws}\]{ws}<\|(?:tool_call|python)_end\|>",
                separator=r"{ws},{ws}",
            ),
            _calls_of(r"<function_calls>{ws}(?=[^\W\d][\w.:/\-]{0,127}+{ws}\()", r"</function_calls>"),
            _bare_calls(explicit=False),
            Form(head=r"<\|python_tag\|>{ws}(?P<name>[^\W\d]\w{0,127}+)\.call\(", body="arguments"),
            *(
                Form(
                    opener=r"```tool_code[ \t]{0,16}+\r?\n{ws}(?=[^\W\d][\w.:/\-]{0,127}+{ws}\()",
                    head=head + r"{name}{ws}\(",
                    body="arguments",
                    begins="`",
                    tail=tail,
                    closer=r"{ws}```",
                    alone=False,
                    line_start=True,
                    explicit=False,
                )
                for head, tail in ((_PRINT, r"{ws}\)"), (f"(?!{_PRINT})", ""))
            ),
        ),
        variants=(
            _bare_calls(**_BARE),
            _list_of(
                r"<\|tool_call_start\|>{ws}\[{ws}(?=\{)", r"{ws}\]{ws}<\|tool_call_end\|>", repairs=("neighbour-body",)
            ),
            _calls_of(
                r"<\|(?:tool_call|python)_start\|>{ws}(?=[^\W\d][\w.:/\-]{0,127}+{ws}\()",
                r"<\|(?:tool_call|python)_end\|>",
                repairs=("neighbour-body",),
            ),
            *(
                _calls_of(
                    rf"<{tag}>{{ws}}{_BARE_CALLS}",
                    rf"{{ws}}\]{{ws}}</{tag}>",
                    separator=r"{ws},{ws}",
                    repairs=("neighbour-body",),
                )
                for tag in ("function_calls", "TOOLCALL")
            ),
        ),
        tags=(
            r"<\|tool_call_start\|>{ws}\[{ws}\]{ws}<\|tool_call_end\|>",
            r"<\|thought_(?:start(?P<opens>)|end(?P<closes>))\|>",
        ),
        writing=Writing(
            opener="<|tool_call_start|>[",
            call="{name}({arguments})",
            separator=", ",
            closer="]<|tool_call_end|>",
            pairs=True,
        ),
    ),
    Dialect(
        name="deepseek",
        title="<｜tool▁call▁begin｜>f<｜tool▁sep｜>{...}<｜tool▁call▁end｜>, V3 with a json fence",
        models="DeepSeek V3, R1 (fenced); V3.1, V3.2-Exp",
        source=_SOURCE + ": deepseek_v3, deepseek_v31",
        forms=(
            Form(
                opener=r"<｜tool▁calls▁begin｜>{ws}(?=<｜tool▁call▁begin｜>)",
                head=r"<｜tool▁call▁begin｜>{ws}function{ws}<｜tool▁sep｜>{ws}{name}{ws}```json{ws}{object}",
                loose_openers=(rf"<｜tool{_DS}calls{_DS}begin｜>{{ws}}(?={_DS_CALL})",),
                loose_heads=(
                    rf"{_DS_CALL}(?=[^\W\d][\w.:/\-]{{0,127}}+{{ws}}{_DS_SEP})(?:function{{ws}}{_DS_SEP})?{{name}}{{ws}}(?:{_DS_SEP})?"
                    r"(?:```(?:json)?{ws})?(?=\{)",
                    rf"{_DS_CALL}function{{ws}}{_DS_SEP}{{name}}{{ws}}{{object}}",  # whatever fence is there, or none
                    rf"{_DS_CALL}(?:function{{ws}}{_DS_SEP})?{{name}}{{ws}}(?:{_DS_SEP})?"
                    rf"(?P<missing>)(?P<empty><｜tool{_DS}call{_DS}end｜>)",
                ),
                body="json",
                tail=r"{ws}```{ws}<｜tool▁call▁end｜>",
                loose_tail=(
                    rf"{{ws}}(?:(?:```{{ws}})?<｜tool{_DS}call{_DS}end｜>|```{_DS_NEXT}"
                    rf"|```(?=[ \t]{{0,16}}+\r?\n{{ws}}[^ \t\r\n<]))|{_DS_NEXT}"
                ),
                closer=r"<｜tool▁calls▁end｜>",
            ),
            Form(
                opener=r"<｜tool▁calls▁begin｜>{ws}(?=<｜tool▁call▁begin｜>)",
                head=(
                    r"<｜tool▁call▁begin｜>{ws}(?!function{ws}<｜tool▁sep｜>{ws}[^\W\d]){name}{ws}"
                    r"<｜tool▁sep｜>{ws}{object}"
                ),
                body="json",
                tail=r"{ws}<｜tool▁call▁end｜>",
                loose_tail=_DS_NEXT,
                closer=r"<｜tool▁calls▁end｜>",
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
    ),
    Dialect(
        name="kimi_k2",
        title="<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{...}<|tool_call_end|>",
        models="Kimi K2 to K2.7",
        source=_SOURCE + ": kimi_k2",
        results=(r"Return of functions\.",),
        forms=(
            Form(
                opener=r"<\|tool_calls?_section_begin\|>",
                head=_K2_CALL + "{object}",
                body="json",
                loose_heads=(
                    _K2_CALL + r"(?P<missing>)(?P<empty><\|tool_call_end\|>)",
                    r"<\|tool_call_begin\|>{ws}(?P<id>functions\.(?P<name>[^\W\d][\w./\-]{0,127}+):[0-9]{1,9}+){ws}(?P<missing>)(?=\{)",
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
    ),
    Dialect(
        name="dsml",
        title='<｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">…</｜DSML｜parameter></…>',
        models="DeepSeek V3.2, V4 and V4.1; GigaChat 3.5 with GCML for DSML",
        source=_SOURCE + ": deepseek_v32, deepseek_v4, deepseek_v41, gigachat35",
        results=(rf"</?{_DSML}(?:tool|function)_(?:result|output)s?>",),
        forms=_dsml(_DSML),
        variants=_dsml(r"\|DSML\|[ ]?", repairs=("opener-spelling",)),
        tags=(rf"<{_DSML}{_DSML_CALLS}>[ \t]{{0,16}}+\r?\n{{ws}}</{_DSML}{_DSML_CALLS}>",),
        writing=Writing(
            form=1,
            opener="<｜DSML｜tool_calls>\n",
            call='<｜DSML｜invoke name="{name}">\n{arguments}</｜DSML｜invoke>',
            parameter='<｜DSML｜parameter name="{key}" string="{is_text}">{value}</｜DSML｜parameter>\n',
            closer="\n</｜DSML｜tool_calls>",
        ),
    ),
    Dialect(
        name="invoke",
        title='<invoke name="f"><parameter name="key">value</parameter></invoke>',
        models="MiniMax M2, dots.llm; Step 3 and Muse with tags of their own; Claude and others with prompts in XML",
        source=_SOURCE + ": minimax_m2, dots, step3, muse",
        forms=(
            Form(
                opener=rf"<{_INVOKES}>{{ws}}(?=<invoke name=)",
                loose_openers=(
                    rf"<{_INVOKES}>{{ws}}(?=<[ \t]{{0,4}}+invoke{_NAMED})",
                    r"<tool_calls?>{ws}(?=<invoke name=)",  # DeepSeek's, without its sign
                ),
                head=rf"<invoke name={_NAME}>(?={{ws}}</?(?:parameter|invoke|{_INVOKES})[ >])",
                loose_heads=(
                    rf"<[ \t]{{0,4}}+invoke{_NAMED}[ \t]{{0,4}}+{_LOOSE_NAME}[ \t]{{0,4}}+>"
                    r"(?={ws}</?[ \t]{0,4}+(?:param(?:eter)?|invoke)[ =>])",
                    # A word as the value, no text: else any text could go on with what is cut in it.
                    r"<invoke(?:[ ](?!name=)[a-z_]{1,32}+=[\"'][\w.:/\-]{0,32}+[\"']){1,2}+"
                    rf"[ ]name={_NAME}>(?={{ws}}</?(?:param(?:eter)?|invoke)[ =>])",
                    rf"<invoke name={_NAME}(?={{ws}}(?:<parameter name=|</invoke>{{ws}}</{_INVOKES}>))",
                ),
                body="parameters",
                parameter=rf"{{ws}}<parameter name={_KEY}>",
                loose_parameters=(
                    rf"{{ws}}<parameter name={_KEY}[ ]string=\"(?:(?P<text>true)|(?P<json>false))\">",
                    _PARAMETER,
                    "{ws}<param(?:eter)?" + _KEY_BEHIND,
                ),
                value_end="</parameter>",
                loose_value_end=r"\r?\n" + _swapped(
                    _misspelt("invokes?"), "</parameter>", rf"{{ws}}(?:</{_INVOKES}>|<invoke name=)"
                ),
                nested=rf"<{_INVOKES}>{{ws}}(?=<invoke name=)|\r?\n<invoke name={_NAME}>(?=\r?\n)",
                unclosed=(
                    rf"\r?\n(?=</invoke>{{ws}}(?:</{_INVOKES}>|<invoke name=)"
                    r"|<parameter name=[\"']?[^<>\"'\r\n]{1,256}+[\"']?>[^<\r\n]{1,256}+(?:</parameter>{ws}|\r?\n)"
                    r"(?:<parameter name=|</invoke>))"
                ),
                tail=r"{ws}</invoke>",
                loose_tail=rf"(?={{ws}}(?:</{_INVOKES}>|(?P<next><invoke name=)))|"
                + _wrong_tail("</invoke>", "invokes?", rf"{{ws}}(?:</{_INVOKES}>|<invoke name=)"),
                closer=rf"</{_INVOKES}>",
            ),
            Form(
                opener=r"<｜tool_calls_begin｜>{ws}(?=<｜tool_call_begin｜>)",
                head=r"<｜tool_call_begin｜>{ws}function{ws}<｜tool_sep｜>{ws}<steptml:invoke name=\"{name}\">",
                loose_heads=(r"<｜tool_call_begin｜>{ws}<steptml:invoke name=\"{name}\">",),
                body="parameters",
                parameter=r"{ws}<steptml:parameter name=\"(?P<key>[^<>\"\r\n]{1,256}+)\">",
                loose_parameters=("{ws}<steptml:parameter" + _KEY_BEHIND,),
                value_end="</steptml:parameter>",
                unclosed=_unclosed(
                    r"steptml:parameter name=\"[^<>\"\r\n]{1,256}+\">",
                    "steptml:parameter name=",
                    "/steptml:parameter>",
                    "/steptml:invoke>{ws}<｜tool_call_end｜>",
                    "｜tool_call(?:s_end｜|_begin｜)>",
                ),
                tail=r"{ws}</steptml:invoke>{ws}<｜tool_call_end｜>",
                closer="<｜tool_calls_end｜>",
            ),
            Form(
                opener=r"<atem:function_calls>{ws}(?=<atem:invoke name=)",
                head=r"<atem:invoke name=\"{name}\">",
                body="parameters",
                parameter=r"{ws}<atem:parameter name=\"(?P<key>[^<>\"\r\n]{1,256}+)\">",
                loose_parameters=("{ws}<atem:parameter" + _KEY_BEHIND,),
                value_end="</atem:parameter>",
                unclosed=_unclosed(
                    r"atem:parameter name=\"[^<>\"\r\n]{1,256}+\">",
                    "atem:parameter name=",
                    "/atem:parameter>",
                    "/atem:invoke>",
                    "/atem:function_calls>|atem:invoke name=",
                ),
                tail=r"{ws}</atem:invoke>",
                loose_tail=r"(?={ws}(?:</atem:function_calls>|(?P<next><atem:invoke name=)))",
                closer="</atem:function_calls>",
            ),
        ),
        tags=(
            rf"<{_INVOKES}>[ \t]{{0,16}}+\r?\n{{ws}}</{_INVOKES}>",
            _twice(f"<{_INVOKES}>", "<invoke name="),
            r"<\|start\|>assistant{ws}to=self(?P<opens>)<\|message\|>",
            r"<\|start\|>assistant{ws}to=[^<>|\r\n]{1,128}+(?P<answers>)<\|message\|>",
            r"<\|message(?P<answers>)\|>(?=<atem:function_calls>{ws}<atem:invoke name=)",  # without its role
            # Behind the end of a message the header of the next one needs no token of its own.
            r"<\|eo[mt]\|>assistant{ws}to=self(?P<opens>)<\|message\|>",
            r"<\|eo[mt]\|>assistant{ws}to=[^<>|\r\n]{1,128}+(?P<answers>)<\|message\|>",
            r"<\|eo[mt](?P<closes>)\|>",
        ),
        leads=(
            r"[ ]?to=self(?P<opens>)<\|message\|>",
            r"[ ]?to=[^<>|\r\n]{1,128}+<\|message\|>",
        ),
        writing=Writing(
            opener="<function_calls>\n",
            call='<invoke name="{name}">\n{arguments}</invoke>',
            parameter='<parameter name="{key}">{value}</parameter>\n',
            closer="\n</function_calls>",
        ),
    ),
    Dialect(
        name="minimax_m3",
        title=']<]minimax[>[<invoke name="f">]<]minimax[>[<key>value]<]minimax[>[</key>]<]minimax[>[</invoke>',
        models="MiniMax M3",
        source=_SOURCE + ": minimax_m3",
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
    ),
    Dialect(
        name="minicpm5",
        title='<function name="f"><param name="key">value</param></function>',
        models="MiniCPM-4 and 5",
        source=_SOURCE + ": minicpm5",
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
                    rf"{{ws}}<[ \t]{{0,4}}+param{_GLUED}[ \t]{{0,4}}+{_KEY}{_MORE}",
                    "{ws}<param" + _KEY_BEHIND,
                ),
                value_end="</param>",
                unclosed=_unclosed(
                    r"param name=[\"'][^<>\"'\r\n]{1,256}+[\"']>",
                    r"param name=|!\[CDATA\[",
                    "/param>",
                    "/function>",
                    r"function name=[\"']",
                ),
                encoding="xml",
                tail=r"{ws}</function>",
            ),
        ),
        writing=Writing(
            call='<function name="{name}">{arguments}</function>',
            parameter='<param name="{key}">{value}</param>',
        ),
    ),
    Dialect(
        name="apertus",
        title='<|tools_prefix|>[{"f": {...}}]<|tools_suffix|>',
        models="Apertus",
        source=_SOURCE + ": apertus, apertus2509",
        forms=(
            Form(
                opener=r"<\|tools_prefix\|>{ws}\[{ws}(?=\{)",
                head=r"\{{ws}\"{name}\"{ws}:{ws}(?=\{)",
                loose_heads=(
                    r"\{{ws}'{name}'{ws}:{ws}(?=\{)",  # as Python writes it
                    r"\{{ws}\"{name}\"{ws}:{ws}(?P<told>)(?=\"{ws}\{)",  # the arguments as a string
                ),
                body="json",
                separator=r"{ws},{ws}",
                tail=r"{ws}\}",
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
    ),
    Dialect(
        name="listed",
        title='<tool_calls>[{"name": "f", "arguments": {...}}]</tool_calls>, with other tags by other models',
        models="Jamba, Hunyuan A13B, Llama-Nemotron, Command R and A, Pangu; MiniMax M1; Granite 3; Phi 4; xLAM",
        source=_SOURCE
        + ": jamba, hunyuan_a13b, nemotron_deci, cohere_command, granite, pangu, minimax_m1, phi4_mini_json, xlam",
        forms=(
            _list_of(
                r"<(?:tool_calls>|TOOLCALL>|\|START_ACTION\|>|\|tool_call_start\|>){ws}\[{ws}(?=\{)",
                r"{ws}\]{ws}<(?:/tool_calls>|/TOOLCALL>|\|END_ACTION\|>|\|tool_call_end\|>)",
            ),
            _list_of(r"<tool_call>{ws}\[{ws}(?=\{)", r"{ws}\](?:{ws}</tool_call>)?"),
            _objects(
                r"<(?:tool_calls>|TOOLCALL>|\|START_ACTION\|>|\|tool_call_start\|>){ws}(?=\{)",
                r"<(?:/tool_calls>|/TOOLCALL>|\|END_ACTION\|>|\|tool_call_end\|>)",
            ),
            _list_of(r"\[unused11\]{ws}\[{ws}(?=\{)", r"{ws}\]{ws}\[unused12\]", begins="["),
            _list_of(r"<\|tool_calls?\|>{ws}\[{ws}(?=\{)", r"{ws}\](?:{ws}<\|/tool_call\|>)?"),
            _list_of(r"functools{ws}\[{ws}(?=\{)", r"{ws}\]", begins="f", explicit=False),
            _list_of(_BARE_LIST, r"{ws}\]", begins="[", explicit=False, line_start=True),
        ),
        variants=(
            _without_brackets(r"<\|tool_calls?\|>{ws}", _NAMED_CALL),
            Form(
                head=r"<\|tool_calls?\|>{ws}(?=\{{ws}\"name\")",
                body="envelope",
                repairs=("missing-opener", "missing-closer"),
            ),
            _list_of(_BARE_LIST, r"{ws}\]", begins="[", **_BARE),
        ),
        tags=(
            r"<\|(?:START(?P<opens>)|END(?P<closes>))_THINKING\|>",
            r"<\|(?:START(?P<answers>)|END)_(?:RESPONSE|TEXT)\|>",
            r"\[(?:BEGIN(?P<closes>)|END) FINAL RESPONSE\]",
            r"<\|START_ACTION\|>{ws}\[{ws}\]{ws}<\|END_ACTION\|>",
            r"<(?:tool_calls|TOOLCALL)>{ws}\[{ws}\]{ws}</(?:tool_calls|TOOLCALL)>",
        ),
        writing=Writing(
            opener="<tool_calls>[",
            call='{"name": {quoted_name}, "arguments": {arguments}{id}}',
            separator=", ",
            closer="]</tool_calls>",
            id=', "id": {quoted_id}',
        ),
    ),
    Dialect(
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
                parameter="{ws}<cofl:tool_param" + _COFL_KEY + r"[ ]string=\"(?:(?P<text>true)|(?P<json>false))\">",
                value_end="</cofl:tool_param>",
                loose_value_end=_swapped("</cofl:tool_call>", "</cofl:tool_param>", _COFL_BEHIND),
                unclosed=_unclosed(
                    r"cofl:tool_param[ ]name=\"[^<>\"\r\n]{1,256}+\"[ ]string=\"(?:true|false)\">",
                    "cofl:tool_param[ ]",
                    "/cofl:tool_param>",
                    "/cofl:tool_call>",
                    "/cofl:tool_calls>|cofl:tool_call[ ]",
                ),
            ),
            Form(
                **_COFL_CALLS,
                head=_COFL,
                loose_heads=(_COFL_OTHERWISE,),
                body="parameters",
                parameter="{ws}<cofl:value" + _COFL_KEY + _COFL_TYPE,
                member="{ws}<cofl:value" + _COFL_TYPE,
                loose_parameters=(r"{ws}<cofl:value[ ]type=\"(?:(?P<text>raw)|(?P<json>json))\"" + _COFL_KEY + ">",),
                value_end="</cofl:value>",
                loose_value_end=_swapped("</cofl:tool_call>", "</cofl:value>", _COFL_BEHIND),
                unclosed=_unclosed(
                    r"cofl:value(?:[ ]name=\"[^<>\"\r\n]{1,256}+\")?[ ]type=\"(?:raw|json|dict|list)\">",
                    "cofl:value[ ]",
                    "/cofl:value>",
                    "/cofl:tool_call>",
                    "/cofl:tool_calls>|cofl:tool_call[ ]",
                ),
            ),
        ),
        tags=(
            r"<\|(?:START(?P<opens>)|END(?P<closes>))_THINKING\|>",
            r"<\|(?:START(?P<answers>)|END)_(?:RESPONSE|TEXT)\|>",
        ),
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
    ),
    Dialect(
        name="wrapped",
        title='<|action_start|><|plugin|>{"name": "f", "arguments": {...}}<|action_end|>, other models with other tags',
        models=(
            "InternLM 2, Intern-S1, LongCat, GigaChat 3, Granite 20B, Inkling, dots.llm; PLaMo 3, CWM, Step-Audio 2, "
            "VibeThinker"
        ),
        source=_SOURCE + ": internlm, longcat, gigachat3, granite-20b-fc, inkling, dots, plamo3, cwm, step_audio_2",
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
                loose_tail=_FURTHER,
            ),
            Form(
                head=r"<dots_function_call>{ws}(?=\{)",
                body="envelope",
                tail=r"{ws}</dots_function_call>",
                loose_tail=_FURTHER,
            ),
            Form(
                head=r"(?:<\|message_model\|>[\w.:/\-]{0,128}+)?<\|content_invoke_tool_json\|>{ws}(?=\{)",
                body="envelope",
                tail=r"{ws}<\|end_message\|>",
                loose_tail=r"{ws}(?P<wrong><\|content_model_end_sampling\|>)",
            ),
            _objects(r"<(?:function_call|\|function_call\|)>{ws}(?=\{)", _OBJECTS_END),
            _objects(r"<\|message_sep\|>{ws}" + _BY_ROLE, _OBJECTS_END),
            _objects(
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
            Form(head=r"<tool: function>{ws}{name}{ws}(?=\{)", body="json", tail=r"{ws}</tool>"),
            Form(
                head=r"<function>{ws}<name>{ws}{name}{ws}</name>{ws}<arguments>{ws}(?=\{)",
                body="json",
                tail=r"{ws}</arguments>{ws}</function>",
            ),
            Form(
                head=r"<tool_call>{ws}function[ \t]{0,16}+\r?\n{ws}{name}[ \t]{0,16}+\r?\n{ws}(?=\{)",
                body="json",
                tail=r"{ws}</tool_call>",
            ),
        ),
        tags=(
            r"(?:<\|message_model\|>)?<\|content_thinking(?P<opens>)\|>",
            r"<\|end_message(?P<closes>)\|>",
            r"(?:<\|message_model\|>)?<\|content_text(?P<answers>)\|>",
            r"<\|content_model_end_sampling(?P<closes>)\|>",
            r"<(?:(?P<closes>/)|(?P<opens>))longcat_think>",
            r"<\|plamo:(?:begin(?P<opens>)|end(?P<closes>))_think:plamo\|>",
        ),
        writing=Writing(
            call='<|action_start|><|plugin|>{"name": {quoted_name}, "arguments": {arguments}{id}}<|action_end|>',
            id=', "id": {quoted_id}',
        ),
    ),
    Dialect(
        name="kimi_k3",
        title='<|open|>call tool="f"<|sep|><|open|>argument key="k" type="string"<|sep|>…<|close|>call<|sep|>',
        models="Kimi K3",
        source=_SOURCE + ": kimi_k3",
        forms=(
            Form(
                opener=r"<\|open\|>tools<\|sep\|>",
                head=_K3_CALL + r"{ws}<\|open\|>json(?:[ ]type=\"object\")?<\|sep\|>{ws}(?=\{)",
                body="json",
                tail=r"{ws}<\|close\|>json<\|sep\|>{ws}<\|close\|>call<\|sep\|>",
                closer=r"<\|close\|>tools<\|sep\|>",
            ),
            Form(
                opener=r"<\|open\|>tools<\|sep\|>",
                head=_K3_CALL,
                loose_heads=(r"<\|open\|>call index=\"[0-9]{1,9}+\"[ ]tool=\"{name}\"<\|sep\|>",),
                body="parameters",
                parameter=(
                    r"{ws}<\|open\|>argument key=\"(?P<key>[^<>\"\r\n]{1,256}+)\""
                    rf"(?:[ ]type=\"{_TYPE}\")?<\|sep\|>"
                ),
                loose_parameters=(
                    rf"{{ws}}<\|open\|>argument[ ]type=\"{_TYPE}\""
                    r"[ ]key=\"(?P<key>[^<>\"\r\n]{1,256}+)\"<\|sep\|>",
                ),
                value_end=r"<\|close\|>argument<\|sep\|>",
                unclosed=_unclosed(
                    r"\|open\|>argument key=\"[^<>\"\r\n]{1,256}+\"(?:[ ]type=\"[a-z]{4,7}+\")?<\|sep\|>",
                    r"\|open\|>argument key=",
                    r"\|close\|>argument<\|sep\|>",
                    r"\|close\|>call<\|sep\|>",
                    r"\|close\|>tools<\|sep\|>|\|open\|>call tool=",
                ),
                nested=_K3_CALL,
                key_encoding="xml",
                tail=r"{ws}<\|close\|>call<\|sep\|>",
                loose_tail=r"(?={ws}(?:<\|close\|>tools<\|sep\|>|(?P<next><\|open\|>call tool=)))",
                closer=r"<\|close\|>tools<\|sep\|>",
            ),
        ),
        tags=(
            r"<\|open\|>think(?P<opens>)<\|sep\|>",
            r"<\|close\|>think(?P<closes>)<\|sep\|>",
            r"<\|open\|>response(?P<answers>)<\|sep\|>",
            r"<\|(?:open|close)\|>(?:response|message)<\|sep\|>",
        ),
        writing=Writing(
            form=1,
            opener="<|open|>tools<|sep|>",
            call='<|open|>call tool="{name}" index="{number}"<|sep|>{arguments}<|close|>call<|sep|>',
            parameter='<|open|>argument key="{key}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>',
            separator="",
            closer="<|close|>tools<|sep|>",
        ),
    ),
    Dialect(
        name="harmony",
        title="<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}<|call|>",
        models="gpt-oss, LLM-jp 4.1",
        source=_SOURCE + ": openai, gpt-oss",
        forms=(
            Form(
                opener=rf"(?:{_ROLE})?{_VIA}(?={_CHANNEL}{{ws}}to=functions\.)",
                loose_openers=(
                    rf"(?:{_ROLE})?{_VIA}{_CHANNEL}{{ws}}{_VIA}(?={_CHANNEL}{{ws}}to=functions\.)",
                ),
                head=rf"{_CHANNEL}{{ws}}to=functions\.{{name}}{_HARMONY_MESSAGE}",
                loose_heads=(
                    rf"{_CHANNEL}{{ws}}to=functions\.{{name}}(?:{{ws}}{_VIA}{_CHANNEL})?{{ws}}"
                    r"(?:<\|constrain\|>{ws})?(?:(?i:json|code){ws})?(?:<\|message\|>{ws})?(?=\{)",
                    rf"{_CHANNEL}{{ws}}to=functions\.{{name}}{_NO_ARGUMENTS}",
                ),
                body="json",
                closer=r"<\|(?:call|end)\|>",
                alone=False,
            ),
            Form(opener=_ROLE + r"(?=to=functions\.)", **_TO_FUNCTION),
            Form(
                begins=" ",
                opener=rf"[ ](?=to=functions\.[^\W\d][\w.:/\-]{{0,127}}+{{ws}}{_VIA})",
                text_start=True,
                **_TO_FUNCTION,
            ),
        ),
        variants=(
            Form(
                opener=rf"(?:{_ROLE})?{_VIA}(?={_CHANNEL}{{ws}}{_ANYONE}{_JSON_HEADER})",
                head=rf"{_CHANNEL}{{ws}}to={_NO_TOOL}{{name}}{_JSON_HEADER}",
                **_TO_ANYONE,
            ),
            Form(
                opener=rf"{_ROLE}(?={_ANYONE}{{ws}}{_VIA}{_CHANNEL}{_JSON_HEADER})",
                head=rf"to={_NO_TOOL}{{name}}{{ws}}{_VIA}{_CHANNEL}{_JSON_HEADER}",
                **_TO_ANYONE,
            ),
            Form(
                begins=" ",
                opener=rf"[ ](?={_ANYONE}{{ws}}{_VIA}{_CHANNEL}{_JSON_HEADER})",
                head=rf"to={_NO_TOOL}{{name}}{{ws}}{_VIA}{_CHANNEL}{_JSON_HEADER}",
                text_start=True,
                **_TO_ANYONE,
            ),
        ),
        tags=(
            *_CHANNELS,
            # Behind a thought that was left open a call begins: with all of its header, else it may be quoted.
            rf"{_ROLE}(?P<answers>)(?={_VIA}{_CHANNEL}{{ws}}to=functions\.{_ANY_NAME}{_JSON_HEADER})",
            rf"{_ROLE}(?P<answers>)(?=to=functions\.{_ANY_NAME}{{ws}}{_VIA}{_CHANNEL}{_JSON_HEADER})",
            rf"{_ROLE}<\|message\|>",
            r"<\|return\|>",
        ),
        writing=Writing(
            opener="<|start|>assistant<|channel|>",
            call="commentary to=functions.{name} <|constrain|>json<|message|>{arguments}",
            separator="<|call|><|start|>assistant<|channel|>",
            closer="<|call|>",
        ),
    ),
    Dialect(
        name="beam",
        title='<|start|>assistant to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="k">…<|call|>',
        models="Beam",
        source=_SOURCE + ": beam",
        forms=(Form(head=r"<\|start\|>assistant{ws}" + _BEAM_HEADER, **_BEAM),),
        variants=(
            Form(begins=" ", head="[ ]" + _BEAM_HEADER, text_start=True, repairs=("missing-opener",), **_BEAM),
        ),
        tags=_CHANNELS,
        writing=Writing(
            call="<|start|>assistant to={name}<|channel|>analysis <|constrain|>xml<|message|>{arguments}<|call|>",
            parameter='<rfl:parameter name="{key}">\n{value}\n</rfl:parameter>',
            separator="",
        ),
    ),
    Dialect(
        name="solar_open",
        title="<|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{...}<|tool_call:end|>",
        models="Solar Open 100B",
        source="its chat template",
        forms=(
            Form(
                opener=r"<\|tool_calls\|>{ws}(?=<\|tool_call:begin\|>)",
                head=(
                    r"<\|tool_call:begin\|>{ws}(?:(?P<id>[\w.:/\-]{1,160}+){ws})?<\|tool_call:name\|>{ws}{name}{ws}"
                    r"<\|tool_call:args\|>{ws}{object}"
                ),
                body="json",
                loose_heads=(
                    r"<\|tool_call:begin\|>{ws}(?:(?P<id>[\w.:/\-]{1,160}+){ws})?<\|tool_call:name\|>{ws}{name}{ws}"
                    r"<\|tool_call:args\|>{ws}(?P<missing>)(?P<empty><\|tool_call:end\|>)",
                ),
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
    ),
    Dialect(
        name="solar_open2",
        title="<|tool_call:start|>f<|tool_arg:start|>key<|tool_arg:value|>value<|tool_arg:end|><|tool_call:end|>",
        models="Solar Open2",
        source=_SOURCE + ": solar_open2",
        forms=(
            Form(
                head=r"<\|tool_call:start\|>{ws}{name}(?={ws}<\|tool_(?:arg:start|call:end)\|>)",
                body="parameters",
                parameter=r"{ws}<\|tool_arg:start\|>{key}<\|tool_arg:value\|>",
                loose_parameters=(rf"{{ws}}<\|tool_arg:start\|>{{ws}}{_KEY}{{ws}}<\|tool_arg:value\|>",),
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
    ),
    Dialect(
        name="llama",
        title='<|python_tag|>{"name": "f", "parameters": {...}}',
        models="Llama 3.1, 3.2 and 3.3; mostly without the tag",
        source=_SOURCE + ": llama3_json, llama3",
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
                    begins=begins, head=head + first, loose_heads=tuple(head + loose for loose in otherwise),
                    body="envelope", line_start=not head, explicit=False,
                )
                for begins, head in (("{", ""), (";", r";{ws}"))
                for first, otherwise in ((_NAMED_FIRST, ()), (_TYPED_FIRST, (_WRAPPED_FIRST,)))
            ),
        ),
        variants=(
            _list_of(r"<\|python_tag\|>{ws}\[{ws}" + _NAMED_CALL, r"{ws}\]", repairs=("opener-spelling",)),
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
            r"[^\W\d][\w.:/\-]{0,127}+(?:[ \t\r\n]{1,64}+[^( \t\r\n]|[^\w.:/\-( \t\r\n])))",
            r"<\|python_end\|>",
        ),
        writing=Writing(
            opener="<|python_tag|>",
            call='{"name": {quoted_name}, "parameters": {arguments}{id}}',
            separator="; ",
            id=', "id": {quoted_id}',
        ),
    ),
    Dialect(
        name="gemma4",
        title='<|tool_call>call:f{key:<|"|>value<|"|>}<tool_call|>',
        models="Gemma 4",
        source=_SOURCE + ": gemma4",
        forms=(
            Form(
                head=r"<\|tool_call>{ws}(?:call)?:{name}{ws}{object}",
                loose_heads=(
                    r"<\|tool_call>{ws}(?:(?:call)?{ws}:{ws})?{name}{ws}(?=\{)",
                    r"<\|tool_call>{ws}(?:call)?:{name}{ws}(?P<missing>)(?P<empty><tool_call\|>)",
                ),
                body="braces",
                quote='<|"|>',
                tail=r"{ws}<tool_call\|>",
                loose_tail=(
                    r"{ws}(?P<wrong></tool_call>|<\|tool_call\|>|<\|/tool_call>)|(?={ws}<(?:\|tool_call|turn\|)>)|"
                    r"(?P<more>{ws},?{ws}(?:call)?:)(?=[^\W\d][\w.:/\-]{0,127}+{ws}\{)"
                ),
            ),
            Form(
                head=r"(?:call)?:{name}{ws}(?=\{)",
                begins="c:",
                body="braces",
                quote='<|"|>',
                line_start=True,
                explicit=False,
            ),
        ),
        variants=(
            Form(
                head=r"<\|tool_call>{ws}(?:call)?:{name}{ws}\(",
                body="arguments",
                tail=r"{ws}<tool_call\|>",
                repairs=("neighbour-body",),
            ),
        ),
        tags=(
            r"<\|channel>thought(?P<opens>)",
            r"<channel\|>(?P<closes>)",
            r"<\|channel>(?:content|final|response)(?P<answers>)[ \t]{0,16}+\r?\n",
            _twice(r"<\|channel>", "[a-z]"),
            r"<\|tool_call>{ws}<tool_call\|>",
        ),
        writing=Writing(call="<|tool_call>call:{name}{arguments}<tool_call|>", separator=""),
    ),
    Dialect(
        name="functiongemma",
        title="<start_function_call>call:f{key:<escape>value<escape>}<end_function_call>",
        models="FunctionGemma",
        source=_SOURCE + ": functiongemma",
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
    ),
    Dialect(
        name="toolify",
        title="<function_call><tool>f</tool><args_json><![CDATA[{...}]]></args_json></function_call>",
        models="any model that Toolify or Luker prompts",
        source="Toolify and Luker, behaviour only",
        forms=(
            Form(
                opener=r"<(?:Function_[0-9A-Za-z]{1,32}+_Start/>{ws}<)?function_calls>{ws}(?=<function_call>)",
                loose_openers=(r"<function_calls>{ws}(?=<function_call[ ]i)",),
                head=r"<function_call>{ws}<tool>{ws}{name}{ws}</tool>",
                loose_heads=(
                    rf"<function_call{_NUMBER}>{{ws}}<tool>{{ws}}<!\[CDATA\[{{ws}}{{name}}{{ws}}\]\]>{{ws}}</tool>",
                    rf"<function_call{_NUMBER}>{{ws}}<tool>{{ws}}{{name}}{{ws}}</tool>",
                ),
                body="parameters",
                parameter=r"{ws}<args_json>",
                value_end="</args_json>",
                nested=r"<(?:Function_[0-9A-Za-z]{1,32}+_Start/>{ws}<)?function_calls>{ws}(?=<function_call>)",
                unclosed="</function_call>",
                encoding="xml",
                tail=r"{ws}</function_call>",
                loose_tail=r"(?={ws}(?:</function_calls>|(?P<next><function_call[ >])))",
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
    ),
    Dialect(
        name="tool_use",
        title='<tool_use><name>f</name><arguments>{...}</arguments></tool_use>',
        models="any model that Cherry Studio prompts",
        source="the prompt of @cherrystudio/ai-core 2.0",
        results=(r"</?tool_use_result>",),
        forms=(
            Form(
                head=r"<tool_use>{ws}<name>{ws}{name}{ws}</name>{ws}<arguments>{ws}(?=\{)",
                body="json",
                loose_heads=(
                    r"<tool_use>{ws}<name>{ws}{name}{ws}</name>{ws}<arguments>{ws}(?P<missing>)"
                    r"(?P<empty></arguments>{ws}</tool_use>)",
                ),
                tail=r"{ws}</arguments>{ws}</tool_use>",
            ),
        ),
        writing=Writing(
            call="<tool_use>\n  <name>{name}</name>\n  <arguments>{arguments}</arguments>\n</tool_use>",
        ),
    ),
    Dialect(
        name="fenced",
        title='```tool_call or ```json, then {"name": "f", "arguments": {...}}',
        models="models that fence their calls; a fallback of many",
        source="recorded outputs of small models",
        forms=tuple(form for fence in _FENCES for form in _fenced(fence)),
        variants=tuple(
            _fenced_list(fence, other, repairs=("opener-spelling",))
            for fence in _FENCES
            for other in (_json_otherwise(fence), _calls_otherwise(fence))
        ),
        writing=Writing(
            call='```tool_call\n{"name": {quoted_name}, "arguments": {arguments}{id}}\n```',
            id=', "id": {quoted_id}',
        ),
    ),
    Dialect(
        name="qwen_agent",
        title="✿FUNCTION✿: f, and on the next line ✿ARGS✿: {...}",
        models="Qwen2 and Qwen2.5 with the prompts of Qwen-Agent or ms-swift",
        source="Qwen-Agent 0.0.34 and ms-swift 4.6, behaviour only",
        results=("✿RESULT✿",),
        forms=(
            Form(
                begins="✿",
                head=r"✿FUNCTION✿{ws}:{ws}{name}{ws}✿ARGS✿{ws}:{ws}{object}",
                loose_heads=(
                    r"✿FUNCTION✿{ws}(?P<wide>[:：]){ws}{name}{ws}✿ARGS✿{ws}[:：]{ws}(?=\{)",
                    r"✿FUNCTION✿{ws}[:：]{ws}" + _MARKED_NAME + r"{ws}✿ARGS✿{ws}[:：]{ws}(?=\{)",
                ),
                body="json",
            ),
        ),
        variants=(
            Form(
                begins="✿",
                head=r"✿FUNCTION✿{ws}:{ws}{name}{ws}✿ARGS✿{ws}:{ws}```(?:json)?[ \t]{0,16}+\r?\n{ws}(?=\{)",
                body="json",
                tail=r"{ws}```",
                repairs=("fenced-body",),
            ),
        ),
        tags=(r"✿RETURN✿{ws}[:：]",),
        writing=Writing(call="✿FUNCTION✿: {name}\n✿ARGS✿: {arguments}"),
    ),
    Dialect(
        name="functionary",
        title="<|recipient|>f, and on the next line <|content|>{...}",
        models="Functionary 2, and 3 without its tokens",
        source="the parsers `functionary` of vllm-mlx 0.6 and Rapid-MLX 0.16, and node-llama-cpp 3.22",
        forms=(
            Form(
                head=(
                    r"(?:<\|from\|>assistant{ws})?<\|recipient\|>{ws}(?!(?:all|user)[ \t\r\n<])"  # these are no tools
                    r"{name}{ws}<\|content\|>{ws}{object}"
                ),
                body="json",
            ),
            Form(
                begins=">",
                head=r">>>(?!(?:all|user)[ \t\r\n]){name}\r?\n(?=\{)",
                body="json",
                line_start=True,
                explicit=False,
            ),
        ),
        tags=(r"(?:<\|from\|>assistant{ws})?<\|recipient\|>{ws}all{ws}<\|content\|>", r"<\|stop\|>"),
        writing=Writing(call="<|from|>assistant\n<|recipient|>{name}\n<|content|>{arguments}"),
    ),
    Dialect(
        name="react",
        title="Action: f, and on the next line Action Input: {...}",
        models="models with ReAct prompts",
        source="the ReAct prompt as LangChain and Qwen write it",
        results=(r"Observation[ ]?[:：]",),
        forms=(
            Form(
                begins="Aa*",
                head=r"Action:[ \t]{0,16}+{name}[ \t]{0,16}+\r?\n[ \t]{0,16}+Action Input:{ws}(?=\{)",
                loose_heads=(
                    *(
                        rf"{stars}{word}{colon}[ \t]{{0,16}}+`?{{name}}`?(?:[ \t]{{0,16}}+\r?\n){{1,2}}+"
                        rf"[ \t]{{0,16}}+{stars}(?i:action input){colon}{{ws}}(?=\{{)"
                        for stars, word, colon in (
                            ("", "Action", _COLON),
                            ("", "action", _COLON),
                            (r"\*\*", "(?i:action)", rf"(?:{_COLON}\*\*|\*\*{_COLON})"),
                        )
                    ),
                    # For what is no object: a model that needs no tool may say so, or leave the line empty.
                    r"Action:[ \t]{0,16}+(?!(?i:none|null|nothing|n/a)[ \t]{0,16}+\r?\n){name}[ \t]{0,16}+\r?\n"
                    r"[ \t]{0,16}+Action Input:[ \t]{0,16}+{object}",
                    r"Action:[ \t]{0,16}+" + _MARKED_NAME + r"[ \t]{0,16}+\r?\n[ \t]{0,16}+Action Input:{ws}(?=\{)",
                ),
                body="json",
                **_STEP,
            ),
        ),
        variants=tuple(
            Form(
                begins="A",
                head=(
                    r"Action:[ \t]{0,16}+{name}[ \t]{0,16}+\r?\n[ \t]{0,16}+Action Input:{ws}" + fence + r"(?=\{)"
                ),
                body="json",
                tail=rf"{{ws}}{closing}",
                repairs=("fenced-body",),
                **_STEP,
            )
            for fence, closing in ((r"```(?:json)?[ \t]{0,16}+\r?\n{ws}", "```"), ("`", "`"))
        ),
        writing=Writing(call="Action: {name}\nAction Input: {arguments}"),
    ),
)


def _beside_others(row: Dialect) -> Dialect:
    """Return the row, in which a marker of any dialect breaks a value that only quotes stand around."""
    return replace(row, forms=tuple(map(_quoted, row.forms)), variants=tuple(map(_quoted, row.variants)))


def _quoted(form: Form) -> Form:
    return replace(form, broken_by=_MARKERS) if form.value_end in ('"', "'") else form


_OTHERS = [form for row in _ROWS if row.name != "call" for form in row.forms]
_STANDING = [form for form in _OTHERS if form.explicit and not (form.line_start or form.text_start)]
_BEGINS = [begin for form in _STANDING for begin in (form.opener, form.head if form.alone else "") if begin]
_MARKERS = (rf"\[{_CALL}:{{ws}}{{name}}{{ws}}[(\]]", *dict.fromkeys(_BEGINS))
"""What begins a marker of a dialect that is listened for by default, wherever on a line; of `call` in any spelling."""

BUILTIN: tuple[Dialect, ...] = tuple(map(_beside_others, _ROWS))
