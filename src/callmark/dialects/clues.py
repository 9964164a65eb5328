"""What looks like a call and is none, for lack of an opener that some dialect has: for messages, never for reading."""

from __future__ import annotations

from typing import Final, TypeAlias

from callmark.dialects.notation import ANY_NAME

Clue: TypeAlias = tuple[str, str, str]
AROUND: Final[tuple[Clue, ...]] = (
    (
        r"&lt;(?:/?(?:tool_calls?|function_calls?|invoke)\b|function=)",
        "hermes",
        "the signs < and > in the tags, not their entities",
    ),
    (
        r"""(?i)<(?![/!?])[^<>\n]{1,64}>\s{0,64}\{\s{0,64}["'](?:name|tool_name|function)["']\s{0,64}:""",
        "hermes",
        "the tags <tool_call> and </tool_call> in place of these",
    ),
)
"""Clues to what is wrong around a body, which another dialect may read by itself."""
CLUES: Final[tuple[Clue, ...]] = (
    *AROUND,
    (
        rf"^[ \t]*[(<{{【〔「《〈〖［]?(?:CALL|Call|call)[ \t]*[:：][ \t]*{ANY_NAME}[ \t]*[(（]",
        "call",
        "the square brackets around it: [CALL: name(...)]",
    ),
    (
        rf"[\[【［][ \t]?[^\W\d][\w \-]{{0,32}}[:：][ \t]?{ANY_NAME}[ \t]?[(（]",
        "call",
        "the word CALL before the name: [CALL: name(...)]",
    ),
    (
        r"""(?i)\{\s{0,64}["'](?:name|tool|tool_name|function|function_name|action)["']\s{0,64}:\s{0,64}"""
        r"""["'][^"'\n]{1,128}["']\s{0,64},\s{0,64}["'](?:arguments|parameters|params|args|(?:(?:tool|action)_)?input)["']""",
        "hermes",
        "the tags around it: <tool_call> and </tool_call>",
    ),
    (r"</(?:tool_call|function_calls?|function|invoke)>", "hermes", "an opening tag with a body that belongs to it"),
    (rf"^[ \t]*{ANY_NAME}\(\s{{0,64}}\{{", "call", "the marker around it: [CALL: name({...})]"),
    (
        r"(?i)[<\[][ \t]?(?:tool|function)[ _-]?(?:calls?|use)\b",
        "hermes",
        "a dialect's own opener, such as <tool_call>, and a body that belongs to it",
    ),
    (
        r"^[ \t]*(?:```+|~~~+)[ \t]{0,16}(?:tool_call|tool_code)[ \t]{0,16}$",
        "fenced",
        'the dialect fenced among those listened for, and an object in the fence: {"name": ..., "arguments": {...}}',
    ),
    (
        rf"(?i)^[ \t]*\**action:?\**:?[ \t]*{ANY_NAME}[ \t]*(?:\(|$)",
        "react",
        'the dialect react among those listened for, and on the next line "Action Input:" and an object',
    ),
)
"""What looks like a call without an opener: pattern, the dialect that comes nearest, and what is missing."""
