"""Tokens of chat templates, of all families of models: what stands between messages, and what ends a turn."""

from __future__ import annotations

from typing import Final

from callmark.dialects.notation import expand

_WS: Final = expand("{ws}")
SPECIAL_TOKENS: Final = (
    r"<\|[^<>|\\\s\u200b]{1,64}\|?>",
    r"<[^<>|\\\s\u200b]{1,64}\|>",
    r"<｜[^<>｜\\\s\u200b]{1,64}｜>",
    r"</?s>",
    r"<(?:seed:)?(?:bos|eos|pad|unk|sop|eop)>",
    r"<(?:start|end)_of_turn>",
    r"<(?:SPECIAL|extra_id)_[0-9]{1,4}>",
    r"<</?SYS>>",
    r"\[/?(?:INST|AVAILABLE_TOOLS|TOOL_RESULTS|SYSTEM_PROMPT|MODEL_SETTINGS)\]",
    r"\[(?:TOOL_CALLS|TOOL_CONTENT|ARGS|CALL_ID|gMASK)\]",
    r"\[\|[^\[\]|\\\s\u200b]{1,64}\|\]",
    r"\[e~\[",
    r"\]~!?b[\[\]]",
)
"""What chat templates write between messages, in the families of models that are in use.

None holds what a token is broken by, or one that the end of a text cuts would be cut again behind its backslash.
"""

NO_WORD: Final = r"<(?:[|｜][a-z]|[a-z_]{1,32}+\|>|/(?:tool|function)_calls?>)"
"""How special tokens begin, and what closes calls: no word without quotes holds one."""

TURN_ENDS: Final = (
    rf"(?={_WS}(?:<\|(?:im_end|im_start|endoftext|end_of_text|eot_id|eom_id|end|return|stop|user)\|>|</s>"
    r"|<(?:end_of_turn|eos|start_function_response)>|<｜(?:end▁of▁sentence|tool▁outputs▁begin)｜>"
    r"|<\|END_OF_TURN_TOKEN\|>|<\|tool_response>))"
)
"""The end of a model's turn, as the token that says it, or begins results: hosts leave it in the text, and nothing of
the turn can follow it.
"""
