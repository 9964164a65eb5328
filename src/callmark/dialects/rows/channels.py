"""Rows of models that write each call as a message of its own, whose header names the tool and the channel.

Both have their thoughts in a channel, and their answers in another: `_CHANNELS` tells them.
"""

from __future__ import annotations

from typing import Any

from callmark.dialects.idioms import SOURCE, attributed
from callmark.dialects.model import Dialect, Form, Writing
from callmark.dialects.notation import ANY_NAME

_ROLE = r"<\|start\|>[ ]?+assistant{ws}"  # LLM-jp writes a blank behind each token
_VIA = r"<\|channel\|>[ ]?+"
_ANSWER_HEADER = r"{ws}(?:<\|constrain\|>{ws}[A-Za-z]{1,16}+{ws})?<\|message\|>"
_TO_TOOL = rf"{_ROLE}to={ANY_NAME}{{ws}}"  # whose type is not said: no tool of the caller's
_AGAIN = rf"(?:{_VIA}(?:(?:analysis|commentary|final){{ws}}(?:to=assistant{{ws}})?)?)?"  # before the one that counts
_CHANNELS = (
    rf"(?:{_TO_TOOL}|(?:{_ROLE})?{_AGAIN}){_VIA}analysis(?P<opens>){{ws}}<\|message\|>",
    r"<\|end(?P<closes>)\|>",
    # Another message begins, so the thought is over. A remark is told from a quoted header by its role.
    rf"(?:{_ROLE}{_AGAIN}{_VIA}(?:commentary|final)|{_AGAIN}{_VIA}final)(?P<answers>){_ANSWER_HEADER}",
    rf"{_VIA}commentary{_ANSWER_HEADER}",
    rf"{_TO_TOOL}{_VIA}(?:commentary|final){{ws}}<\|message\|>",
    rf"{_ROLE}<\|message\|>",
)


_CHANNEL = r"(?:commentary|analysis)"
_HARMONY_HEADER = r"{ws}(?:<\|constrain\|>{ws})?(?:(?:json|code){ws})?<\|message\|>{ws}"
_HARMONY_MESSAGE = _HARMONY_HEADER + "{object}"
_NO_ARGUMENTS = _HARMONY_HEADER + r"(?P<missing>)(?P<empty>)(?=<\|(?:call|end)\|>)"
_LOOSE_HEADER = _HARMONY_HEADER.replace("json|code", "(?i:json|code)")
_JSON_HEADER = r"{ws}(?:<\|constrain\|>{ws})?(?i:json){ws}<\|message\|>{ws}(?=\{)"  # what is for a tool, and no answer
_NO_TOOL = r"(?!functions\.|(?:browser|container)\.|(?:all|assistant|developer|python|self|system|tool|user)[ \t\r\n<])"
_ANYONE = rf"to={_NO_TOOL}{ANY_NAME}"
_TO_FUNCTION: dict[str, Any] = {
    "head": rf"to=functions\.{{name}}{{ws}}{_VIA}{_CHANNEL}{_HARMONY_MESSAGE}",
    "loose_heads": (
        rf"to=functions\.{{name}}{{ws}}{_VIA}{_CHANNEL}{_LOOSE_HEADER}(?=\{{)",
        rf"to=functions\.{{name}}{{ws}}{_VIA}{_CHANNEL}{_NO_ARGUMENTS}",
        rf"to=functions\.{{name}}{_LOOSE_HEADER}(?=\{{)",  # without a channel
    ),
    "body": "json",
    "closer": r"<\|(?:call|end)\|>",
    "alone": False,
}
_TO_ANYONE: dict[str, Any] = {
    "body": "json", "closer": r"<\|(?:call|end)\|>", "alone": False, "repairs": ("opener-spelling",)
}  # fmt: skip
HARMONY = Dialect(
    name="harmony",
    title="<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}<|call|>",
    models="gpt-oss, LLM-jp 4.1",
    source=SOURCE + ": openai, gpt-oss",
    forms=(
        Form(
            opener=rf"(?:{_ROLE})?{_VIA}(?={_CHANNEL}{{ws}}to=functions\.)",
            loose_openers=(
                rf"(?:{_ROLE})?{_VIA}(?:{_CHANNEL}{{ws}}(?:to=assistant{{ws}})?)?{_VIA}(?={_CHANNEL}{{ws}}to=functions\.)",
            ),
            head=rf"{_CHANNEL}{{ws}}to=functions\.{{name}}{_HARMONY_MESSAGE}",
            loose_heads=(
                rf"{_CHANNEL}{{ws}}to=functions\.{{name}}(?:{{ws}}{_VIA}{_CHANNEL})?{{ws}}"
                r"(?:<\|constrain\|>{ws}(?:[A-Za-z]{1,16}+{ws})?|(?i:json|code){ws})?(?:<\|message\|>{ws})?(?=\{)",
                # With a word too many.
                rf"{_CHANNEL}{{ws}}to=functions\.{{name}}[ ]{{1,4}}+[a-z]{{1,16}}+{_HARMONY_HEADER}(?=\{{)",
                rf"{_CHANNEL}{{ws}}to=functions\.{{name}}{_NO_ARGUMENTS}",
            ),
            body="json",
            closer=r"<\|(?:call|end)\|>",
            alone=False,
        ),
        Form(opener=_ROLE + r"(?=to=functions\.)", **_TO_FUNCTION),
        Form(
            begins=" t",
            opener=rf"[ ]?(?=to=functions\.{ANY_NAME}{{ws}}{_VIA})",
            loose_openers=(rf"[ ]?(?=to=functions\.{ANY_NAME}{_LOOSE_HEADER}\{{)",),
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
            begins=" t",
            opener=rf"[ ]?(?={_ANYONE}{{ws}}{_VIA}{_CHANNEL}{_JSON_HEADER})",
            head=rf"to={_NO_TOOL}{{name}}{{ws}}{_VIA}{_CHANNEL}{_JSON_HEADER}",
            text_start=True,
            **_TO_ANYONE,
        ),
    ),
    tags=(
        *_CHANNELS,
        # Behind a thought that was left open a call begins: with all of its header, else it may be quoted.
        rf"{_ROLE}(?P<answers>)(?={_VIA}{_CHANNEL}{{ws}}to=functions\.{ANY_NAME}{_JSON_HEADER})",
        rf"{_ROLE}(?P<answers>)(?=to=functions\.{ANY_NAME}{{ws}}{_VIA}{_CHANNEL}{_JSON_HEADER})",
        r"<\|return\|>",
    ),
    leads=(r"<\|message\|>",),
    writing=Writing(
        opener="<|start|>assistant<|channel|>",
        call="commentary to=functions.{name} <|constrain|>json<|message|>{arguments}",
        separator="<|call|><|start|>assistant<|channel|>",
        closer="<|call|>",
    ),
)


_BEAM_HEADER = r"to={name}<\|channel\|>(?:analysis|commentary){ws}<\|constrain\|>xml{ws}<\|message\|>"
_BEAM_HEAD = r"<\|start\|>assistant{ws}" + _BEAM_HEADER
_BEAM: dict[str, Any] = {
    **attributed("rfl:", r"\|(?:call|end)\|>", r"\|start\|>assistant", "r|"),
    "trim": True,
    "tail": r"{ws}<\|(?:call|end)\|>",
}
BEAM = Dialect(
    name="beam",
    title='<|start|>assistant to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="k">…<|call|>',
    models="Beam",
    source=SOURCE + ": beam",
    forms=(Form(head=_BEAM_HEAD, **_BEAM),),
    variants=(
        Form(
            begins=" ", head="[ ]" + _BEAM_HEADER, nested=_BEAM_HEAD, text_start=True, repairs=("missing-opener",),
            **_BEAM,
        ),
    ),
    tags=_CHANNELS,
    leads=(r"<\|message\|>",),
    writing=Writing(
        call="<|start|>assistant to={name}<|channel|>analysis <|constrain|>xml<|message|>{arguments}<|call|>",
        parameter='<rfl:parameter name="{key}">\n{value}\n</rfl:parameter>',
        separator="",
    ),
)
