"""Strategies for texts of the dialects' grammars, nasty ones among them: what closes, opens and quotes elsewhere."""

from __future__ import annotations

import re
from functools import cache
from html import escape

from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark

from callmark.dialects import Dialect
from callmark.reading.grammar import flatten, load

NASTY = (
    ")]", "]", ")", "}", "{", "[", "(", ",", "=", ":", "[CALL: x()]", "[CALL: x]", "[CALL#7f3a: x(", "</tool_call>",
    "<tool_call>", '<tool_call>{"name": "x", "arguments": {}}</tool_call>', "<tool_call>x</tool_call>", "</parameter>",
    "<function=x>", "</function>", "<parameter=x>", "</arg_value>", "<arg_key>", "[TOOL_CALLS]", "[ARGS]",
    "<|tool_call_end|>", "<|tool_call_start|>", "<tool_call|>", '<|"|>', "<｜tool▁call▁end｜>", "</args_json>", "]]>",
    "<![CDATA[", "</function_call>", "<think>", "</think>", "```", "`", "~~~", "\n> ", '"', "'", "\\", "\\n", "\\u0041",
    "&lt;", "&", "#", "//", "/*", "，", "）", "】", "“", "”", "东京", "日本語", "é", "e\u0301",
    "\u00a0", "\u3000", "\ufeff", "😀", "👩‍👩‍👧", "\u2028", "\x7f", "\x85", "C:\\new",
    "it's", "a\nb", "\t", " ", "  ", "x", "Oslo", "7",
)  # fmt: skip
"""Pieces of text; most mean something to some dialect."""

_PLAIN = [piece for piece in NASTY if not re.search(r"[\"'\\\x00-\x1f\ud800-\udfff]", piece)]
_ESCAPES = ["\\n", '\\"', "\\\\", "\\/", "\\t", "\\u00e9", "\\u005d", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\u0000"]
_KEYS = ["city", "days", "a", "name", "id", "arguments", "parameters", "true", "ключ", "键", "a-b.c_1", "_", "é"]
_NAMES = ["get_weather", "f", "pack.skill", "extension:tool", "weather/get", "天气", "_x", "function", "functions.f"]


def _joined(pieces: list[str], size: int = 4) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=size).map("".join)


texts = _joined(list(NASTY), 6) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Any text that can be a value, nasty more often than not."""

_double = _joined([*_PLAIN, "'", *_ESCAPES]).map(lambda text: f'"{text}"')
_single = _joined([*_PLAIN, '"', *_ESCAPES, "\\'"]).map(lambda text: f"'{text}'")
_numbers = st.sampled_from(
    ["0", "-0", "1", "-1", "2.5", "-0.0", "1e3", "1E-2", "10000000000000000000000", "0.1", "1.0", "9007199254740993"]
) | st.integers().map(str)
_bare = st.sampled_from(
    ["007", "Oslo", "New York", "it's", "https://x/?p=1&q=2", "C:\\new\\table", "1e400", "NaN", "true", "True", "None",
     "null", "1", "2.5", "-1e3", "东京 都", "a:b", "<think>", "</tool_call>", "`x`", "+1", "#1", "a\tb", ".", "x'y'"]
) | _joined([piece for piece in NASTY if "\n" not in piece])  # fmt: skip

_STRATEGIES: dict[str, st.SearchStrategy[str]] = {
    "BARE": _bare,
    "ID": st.sampled_from(["VvvODy9mT", "call_1", "0", "a-b"]),
    "KEY": st.sampled_from([*_KEYS, "1", "a b", "'", '"', "]", "=", "x" * 128]),
    "NAME": st.sampled_from([*_NAMES, "x" * 128]),
    "NAME_IN_ID": st.sampled_from([name for name in _NAMES if name != "functions.f"]) | st.just("a:b:c:d"),
    "NUMBER": _numbers,
    "OTHER_KEY": _double | st.sampled_from(_KEYS).map(lambda key: f'"{key}"'),
    "PAIR_KEY": st.sampled_from([*_KEYS, "x" * 128]),
    "QUOTED": texts.map(lambda text: f'<|"|>{text}<|"|>'),
    "QUOTED_NAME": st.sampled_from([*_NAMES, "a b", "]", "</tool_call>", "x" * 128]).map(lambda text: f'"{text}"'),
    "QUOTED_PAIR_KEY": _double,
    "SINGLE_QUOTED": _single,
    "STRING": _double | st.sampled_from(_KEYS).map(lambda key: f'"{key}"'),
    "VALUE": texts | _numbers | st.sampled_from(["null", "true", '{"a": [1]}', '"x"', "\n", "\r\n", "\nx\n", " "]),
    "_BLANKS": st.sampled_from([" ", "\t", "  ", " " * 16]),
    "_FENCE_JSON": st.sampled_from(["```json\n", "```json \r\n"]),
    "_FENCE_TOOL": st.sampled_from(["```tool_call\n", "```tool_code \t\r\n"]),
    "_FUNCTION": st.sampled_from(["function<｜tool▁sep｜>", "function \n<｜tool▁sep｜> "]),
    "_FUNCTIONS": st.just("functions."),
    "_GAP": st.sampled_from([" ", "\n", "\t", "\r\n  ", " " * 64]),
    "_INDEX": st.sampled_from([":0", ":12", ":000000001"]),
    "_INPUT": st.sampled_from(["\nAction Input:", " \t\r\n  Action Input:"]),
    "_NONCE": st.sampled_from(["#7f3a", "#-", "#" + "x" * 64]),
    "_TRIGGER": st.sampled_from(["<Function_k3Xq_Start/>", "<Function_0_Start/>"]),
    "_WS": st.sampled_from([" ", "\n", "\t", "\r\n  ", " " * 70]),
}

_FOLLOWED = ("PAIR_KEY", "QUOTED_PAIR_KEY", "_FUNCTION", "_FUNCTIONS")  # patterns that look at what stands behind


def _xml(text: str) -> st.SearchStrategy[str]:
    """The ways in which XML can hold a text."""
    section = "<![CDATA[" + text.replace("]]>", "]]]]><![CDATA[>") + "]]>"
    half = len(text) // 2
    numbered = "".join(f"&#{ord(char)};" for char in text[:half]) + escape(text[half:])
    return st.sampled_from([section, escape(text), f"\n{section}\n", numbered])


@cache
def members(dialect: Dialect, start: str = "marker") -> st.SearchStrategy[str]:
    """Complete markers of the dialect: texts of its grammar."""
    lark = load(dialect).lark
    terminals = {terminal.name: terminal.pattern.to_regexp() for terminal in lark.grammar.compile([start], ())[0]}
    explicit = {name: strategy for name, strategy in _STRATEGIES.items() if name in terminals}
    if "value" in lark.options.start and start != "value":
        explicit["VALUE"] = members(dialect, "value").flatmap(_xml)
    for name, strategy in explicit.items():
        if name not in _FOLLOWED:
            explicit[name] = strategy.filter(re.compile(terminals[name]).fullmatch)
    if "BARE" in explicit:
        key = re.compile(terminals["PAIR_KEY"])
        explicit["BARE"] = explicit["BARE"].filter(lambda text: not key.match(text))
    grown = from_lark(lark, start=start, explicit=explicit)
    if start == "value":
        return grown
    foreign = [piece for piece in NASTY if len(piece) > 3 and piece not in flatten(dialect)]
    return grown | grown.filter(lambda text: any(piece in text for piece in foreign))  # most that grow are tame


def calls(dialect: Dialect) -> st.SearchStrategy[str]:
    """Single calls of the dialect, as `Call.raw` has them."""
    return members(dialect, "call")
