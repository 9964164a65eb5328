"""Strategies for what models write: members of the dialects' grammars, nasty ones among them; the same, broken; texts
made of what opens, closes, quotes and hides markers; and ways to read and to cut them.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from html import escape
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark

from callmark.dialects import Dialect, dialects
from callmark.reading.grammar import _kind, flatten, load
from callmark.reading.options import Limits
from callmark.reading.row_checks import sample_texts
from callmark.writing.calls import render_call

NASTY = (
    ")]", "]", ")", "}", "{", "[", "(", ",", "=", ":", "[CALL: x()]", "[CALL: x]", "[CALL#7f3a: x(", "</tool_call>",
    "<tool_call>", '<tool_call>{"name": "x", "arguments": {}}</tool_call>', "<tool_call>x</tool_call>", "</parameter>",
    "<function=x>", "</function>", "<parameter=x>", "</arg_value>", "<arg_key>", "[TOOL_CALLS]", "[ARGS]",
    "<|tool_call_end|>", "<|tool_call_start|>", "<tool_call|>", '<|"|>', "<｜tool▁call▁end｜>", "</args_json>", "]]>",
    "<![CDATA[", "</function_call>", "<think>", "</think>", "```", "`", "~~~", "\n> ", '"', "'", "\\", "\\n", "\\u0041",
    "\\t", "C:\\\\temp", "&lt;", "&", "#", "//", "/*", "，", "）", "】", "“", "”", "东京", "日本語", "é", "e\u0301",
    "\u00a0", "\u3000", "\ufeff", "😀", "👩‍👩‍👧", "\u2028", "\x7f", "\x85", "C:\\new",
    "<think>x</think>", "```json", "````", "it's", "a\nb", "\t", " ", "  ", "x", "Oslo", "7",
)  # fmt: skip
"""Pieces of text; most mean something to some dialect."""

_PLAIN = [piece for piece in NASTY if not re.search(r"[\"'\\\x00-\x1f\ud800-\udfff]", piece)]
_PLAIN += ["<think>", "</think>", "```", "~~~"] * 2  # laws want each kind in one string of a hundred
_ESCAPES = ["\\n", '\\"', "\\\\", "\\/", "\\t", "\\u00e9", "\\u005d", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\u0000"]
_ESCAPES += ["\\n", "\\\\"] * 3
_KEYS = ["city", "days", "a", "name", "id", "arguments", "parameters", "true", "ключ", "键", "a-b.c_1", "_", "é"]
_NAMES = ["get_weather", "f", "pack.skill", "extension:tool", "weather/get", "天气", "_x", "function", "functions.f"]


def _joined(pieces: list[str], size: int = 4) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=size).map("".join)


texts = _joined(list(NASTY), 6) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Any text that can be a value, nasty more often than not."""

_double = _joined([*_PLAIN, "'", *_ESCAPES * 3]).map(lambda text: f'"{text}"')
_single = _joined([*_PLAIN, '"', *_ESCAPES * 3, "\\'"]).map(lambda text: f"'{text}'")
_numbers = st.sampled_from(
    ["0", "-0", "1", "-1", "2.5", "-0.0", "1e3", "1E-2", "10000000000000000000000", "0.1", "1.0", "9007199254740993"]
) | st.integers().map(str)
_bare = st.sampled_from(
    ["007", "Oslo", "New York", "it's", "https://x/?p=1&q=2", "C:\\new\\table", "1e400", "NaN", "true", "True", "None",
     "null", "1", "2.5", "-1e3", "东京 都", "a:b", "<think>", "</tool_call>", "`x`", "+1", "#1", "a\tb", ".", "x'y'",
     "r", "R 'x'"]
) | _joined([piece for piece in NASTY if "\n" not in piece])  # fmt: skip

_STRATEGIES: dict[str, st.SearchStrategy[str]] = {
    "BARE": _bare,
    "ID": st.sampled_from(["VvvODy9mT", "call_1", "0", "a-b"]),
    "KEY": st.sampled_from([*_KEYS, "1", "a b", "'", '"', "]", "=", "x" * 128]),
    "NAME": st.sampled_from([*_NAMES, "x" * 128]),
    "NAME_IN_ID": st.sampled_from([name for name in _NAMES if name != "functions.f"]) | st.just("a:b:c:d"),
    "NUMBER": _numbers,
    "OTHER_KEY": _double | st.sampled_from(_KEYS).map(lambda key: f'"{key}"'),
    "PAIR_KEY": st.sampled_from([*_KEYS, "-n", "$top", "x" * 128]),
    "QUOTED": texts,
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

_LOOK_AHEAD = re.compile(r"\(\?[=!](?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)")
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
    explicit = {name: _STRATEGIES[kind] for name in terminals if (kind := _kind(name)) in _STRATEGIES}
    for name, pattern in terminals.items():
        if name not in explicit and "(?" in pattern:  # Hypothesis makes nothing that is looked ahead at
            explicit[name] = st.from_regex(_LOOK_AHEAD.sub("", pattern), fullmatch=True)
    if "QUOTED" in explicit:
        quote = next(form.quote for form in dialect.forms if form.body == "braces")
        explicit["QUOTED"] = texts.map(lambda text: f"{quote}{text}{quote}")
    if "value" in lark.options.start and start != "value":
        explicit["VALUE"] = members(dialect, "value").flatmap(_xml)
    for name, strategy in explicit.items():
        if _kind(name) in _STRATEGIES and name not in _FOLLOWED:
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


# Whole good markers, one or more of each form of each dialect.

MARKERS: dict[str, tuple[str, ...]] = {
    "call": (
        '[CALL: get_weather({"city": "Oslo", "note": "a ) ] } \\"b\\"", "days": [1, 2]})]',
        "[CALL: f(a=1, b='x y', c=[1, (2,)], d={\"k\": null}, e=New York)]",
        "[ CALL : 天气 ( ) ]",
        "[CALL: ping]",
        '[CALL: f(["a", {"b": []}])]',
        "[CALL#7f3a: f(a=1)]",
    ),
    "hermes": (
        '<tool_call>\n{"name": "f", "arguments": {"a": "</tool_call>", "b": [1]}}\n</tool_call>',
        '<tool_call>{"arguments": {"name": "x"}, "id": "c1", "more": [{}], "name": "f"}</tool_call>',
        '<tool_call> {"name": "f", "arguments": {"a": {"b": 1}}} </tool_call>',
    ),
    "qwen_xml": (
        "<tool_call>\n<function=f>\n<parameter=a>\nx </parameter> y\n</parameter>\n"
        "<parameter=b>\n[1, 2]\n</parameter>\n</function>\n</tool_call>",
        "<function=f></function>",
    ),
    "glm": (
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>b</arg_key>\n<arg_value>2</arg_value>\n"
        "</tool_call>",
        "<tool_call>f</tool_call>",
    ),
    "mistral": (
        '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "]"}, "id": "VvvODy9mT"}, {"name": "g", "arguments": {}}]',
        '[TOOL_CALLS]f[CALL_ID]c1[ARGS]{"a": {"b": "}"}}',
    ),
    "pythonic": (
        "[f(a=1, b='x'), g()]",
        '<|tool_call_start|>[f(a="x", b=[1, None]), g({"c": 2})]<|tool_call_end|>',
        '<|python_tag|>f.call(a="x)", b=2)',
        '```tool_code\nf(a=1)\nprint(g(b="```"))\n```',
    ),
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
        '```json\n{"a": "```"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>',
    ),
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        '{"a": 1}<|tool_call_end|><|tool_calls_section_end|>',
    ),
    "gemma4": (
        '<|tool_call>call:f{a:<|"|>x"}<|"|>,b:[1,{c:null}],<|"|>d<|"|>:2}<tool_call|>',
        'call:f{a:<|"|>x<|"|>}',
    ),
    "toolify": (
        "<Function_k3Xq_Start/>\n<function_calls><function_call><tool>f</tool><args_json>"
        '<![CDATA[{"a": "</args_json>"}]]>'
        "</args_json></function_call><function_call><tool>g</tool></function_call></function_calls>",
        "<function_call><tool>f</tool><args_json>{&quot;a&quot;: &#34;&lt;&#34;}</args_json></function_call>",
    ),
    "fenced": (
        '```tool_call\n{"name": "f", "arguments": {"a": "```"}}\n```',
        '```json\n{"name": "f", "parameters": {"a": 1}}\n```',
        '```tool_code\n{"name": "f", "arguments": {"a": 1}}\n```',
        '````json\n[{"name": "f", "arguments": {"a": 1}}]\n````',
        '~~~json\n{"name": "f", "arguments": {"a": 1}}\n~~~',
    ),
    "react": ('Action: f\nAction Input: {"a": [1, {"b": "x"}]}',),
}
_OTHERS = [row for row in dialects() if row.name not in MARKERS]
for _row in _OTHERS:  # of the others, the cases that are whole markers, or else some that their rows make
    _cases = tomllib.loads((Path(__file__).parent / "cases" / f"{_row.name}.toml").read_text("utf-8"))["case"]
    _texts = [text for case in _cases if (text := case.get("input"))]
    _samples = [text for _, texts in sample_texts(_row) for text in texts]
    _whole = [[text for text in some if load(_row).accepts(text, "marker")] for some in (_texts, _samples)]
    MARKERS[_row.name] = tuple(_whole[0] or _whole[1])
    assert MARKERS[_row.name], f"{_row.name}: expected cases that are whole markers, found none"

OPEN_STRINGS = (
    ("call", '[CALL: f({"a": "', '"})]'),
    ("call", '[CALL: f(a="', '")]'),
    ("call", "[CALL: f(a=['", "'])]"),
    ("call", '[CALL: f(a={"k": "', '"})]'),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "', '"}}</tool_call>'),
    ("qwen_xml", "<tool_call><function=f><parameter=a>", "</parameter></function></tool_call>"),
    ("glm", "<tool_call>f<arg_key>a</arg_key><arg_value>", "</arg_value></tool_call>"),
    ("mistral", '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "', '"}}]'),
    ("mistral", '[TOOL_CALLS]f[ARGS]{"a": "', '"}'),
    ("pythonic", '[f(a="', '")]'),
    ("deepseek", '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": "', '"}<｜tool▁call▁end｜>'),
    ("kimi_k2", '<|tool_call_begin|>f:0<|tool_call_argument_begin|>{"a": "', '"}<|tool_call_end|>'),
    ("gemma4", '<|tool_call>call:f{a:<|"|>', '<|"|>}<tool_call|>'),
    ("toolify", '<function_call><tool>f</tool><args_json><![CDATA[{"a": "', '"}]]></args_json></function_call>'),
    ("fenced", '```tool_call\n{"name": "f", "arguments": {"a": "', '"}}\n```'),
    ("react", 'Action: f\nAction Input: {"a": "', '"}'),
    *((row.name, *render_call("f", {"a": "@@"}, row).split("@@")) for row in _OTHERS if row.writing),
)
"""Of each dialect: a marker up to the inside of a string, and what closes it."""

SLOPPY = (
    "[call: f(a: 1, b='x',)]", "[CALL: f({'a': True, 'b': None,})]", "[CALL：f({a: 1})]", "[CALL: f({'b': [1,],})]",
    '[CALL: f({"a": "x\ny", "b": "C:\\new"})]', "<tool_call>{'name': 'f', 'arguments': {a: None}}</tool_call>",
    '<tool_call>{"name": "f", "arguments": null}</tool_call>', '<tool_call>{"name": "", "arguments": {}}</tool_call>',
    '<tool_call>{"arguments": {}}</tool_call>', '[CALL: f({"a": "\\x"})]', '[CALL: f({"a": "\\ud83d"})]',
    "<tool_call><function=f><parameter=a>x<tool_call><function=g></function></tool_call>", "[CALL: f(a=1, a=2)]",
    "[CALL: f(007)]", '[CALL: f({"a": 1, "a": 2})]', '[CALL: f({"a": 1e400})]',
    '[TOOL_CALLS] [{"name": "f", "arguments": {}},]', "<|tool_call_start|>[f(a=1),, g()]<|tool_call_end|>",
    '<function name="f"><param name="a">1<param name="b">2</param></function>',
    '<｜DSML｜invoke name="f"><｜DSML｜parameter name="a">1</｜DSML｜invoke><｜DSML｜invoke name="f"></｜DSML｜invoke>',
    "[CALL: f(" + "[" * 70 + "]" * 70 + ")]", '[CALL: f({"a": "' + "x" * 2000 + '"})]', "[CALL: f({1: 2})]",
    r'[CALL: f(a=r"\d", b=[r"x", R"\\", "y"])]', r"""[f(a=r'''x'\n''')]""",
)  # fmt: skip
"""Markers that are nearly good: what tolerant reading repairs, and one of each kind that nothing can."""

HOSTILE = (
    *NASTY, "\ud83d", "\udc00", "\ud83d\udc00", "\x00", "\x0b", "\r\n", "\r", "\n", "\n```\n", "\n```json\n",
    "\n```tool_call\n", "\n~~~\n", "``", "<thinking>", "</thought>", "<REASONING>", "[CA", "[CALL", "[CALL: f(",
    "[CALL: f({", "[CALL: f(a=", "【CALL：f（", "[call: f(", "<tool_", "<tool_call>{",
    '<tool_call>{"name": "f", "arguments": {', "<function=f>", "<function=f><parameter=a>",
    "<tool_call>f<arg_key>a</arg_key><arg_value>", "[TOOL_CALLS] [{", "[TOOL_CALLS]f[ARGS]{",
    "<|tool_call_start|>[f(", "[f(", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{",
    "<|tool_call_begin|>f:0<|tool_call_argument_begin|>{", "<|tool_call>call:f{", "\ncall:f{",
    "<function_calls><function_call>", "<function_call><tool>f</tool><args_json>", "\nAction: f\nAction Input: {",
    "</tool_", "<|tool_call_end|", "})]", "}}", "]]", "((", "\\u", "\\ud83d", "\\ude00", "\\'", '\\"', '"a":',
    '"a": 1', "a=", "a=1, ", "'b'", "null", "None", "-", "1e400", "NaN", "0" * 20, '"name": "g"', '"arguments": {}',
    '"id": "x"', "&#", "&#0;", "&#xD800;", "&#65;", "]]", "＝", "：", "“", 'r"', "a=r'", " " * 70, "[" * 70,
    '{"a":' * 9, "x" * 130,
)  # fmt: skip
"""Pieces that open, close, quote, hide and cut; the parts of a surrogate pair; and what is longer than some limit."""

_GOOD = [marker for markers in MARKERS.values() for marker in markers]
_AROUND = (
    *[("", "")] * 3, ("\n```\n", "\n```\n"), ("~~~x\n", "\n~~~\n"), ("`", "`"), ("\n> ", "\n"), ("<think>", "</think>"),
    ('{"a": "', '"}'),
)  # fmt: skip


def _broken(text: str, kind: str, start: int, end: int, piece: str) -> str:
    """Change a text at the places `start` and `end`, taken modulo its length."""
    start, end = sorted((start % (len(text) + 1), end % (len(text) + 1)))
    match kind:
        case "cut":
            return text[:start]
        case "delete":
            return text[:start] + text[end:]
        case "double":
            return text[:end] + text[start:]
        case "swap":
            return (
                text[:start] + text[end : end + 1] + text[start + 1 : end] + text[start : start + 1] + text[end + 1 :]
            )
        case "splice":
            return text[:start] + piece[end % (len(piece) + 1) :]
        case _:
            return text[:start] + piece + text[start:]


def mutated(members: st.SearchStrategy[str], most: int = 4) -> st.SearchStrategy[str]:
    """Members with up to `most` changes: cut, parts deleted, doubled, swapped, spliced with others, pieces put in."""
    places = st.integers(0, 400)
    kinds = st.sampled_from(["cut", "delete", "double", "swap", "splice", "insert", "insert"])
    changes = st.tuples(kinds, places, places, st.sampled_from(HOSTILE) | st.sampled_from(_GOOD))

    def change(text: str, made: list[tuple[str, int, int, str]]) -> str:
        for kind, start, end, piece in made:
            text = _broken(text, kind, start, end, piece)
        return text

    return st.builds(change, members, st.lists(changes, max_size=most))


good_markers = st.sampled_from(list(MARKERS.values())).flatmap(st.sampled_from)  # of each dialect as many
sloppy_markers = st.sampled_from(SLOPPY)
hostile_pieces = st.lists(st.sampled_from(HOSTILE), max_size=12).map("".join)
filled_markers = st.builds(
    lambda place, pieces, closed: place[1] + "".join(pieces) + place[2] * (closed > 0),
    st.sampled_from(OPEN_STRINGS),
    st.lists(st.sampled_from(HOSTILE), max_size=3),
    st.integers(0, 3),
)
_parts = st.one_of(
    filled_markers,
    hostile_pieces,
    st.sampled_from(HOSTILE),
    mutated(good_markers | sloppy_markers),
    good_markers,
    sloppy_markers,
    st.text(max_size=8),
    st.sampled_from(["a ", " b\n", "Sure! ", "\n\n"]),
)
_wrapped = st.builds(lambda around, part: around[0] + part + around[1], st.sampled_from(_AROUND), _parts)
hostile_texts = st.lists(_wrapped, min_size=1, max_size=5).map("".join)
"""What is meant to break a reader: good markers, broken ones, and pieces of all of them, in and out of contexts."""


def any_member(start: str = "marker") -> st.SearchStrategy[str]:
    """Members of all dialects."""
    return st.sampled_from(dialects()).flatmap(lambda dialect: members(dialect, start))


# Ways to read and to cut.

_TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
types = st.sampled_from(_TYPES) | st.lists(st.sampled_from(_TYPES), min_size=1, max_size=3, unique=True)
"""What a JSON Schema may say under `type`."""


def schemas(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """JSON Schemas of objects with some of these properties, in any order."""
    properties = st.dictionaries(st.sampled_from(keys), st.builds(lambda kind: {"type": kind}, types) | st.just({}))
    return st.builds(lambda found: {"type": "object", "properties": found}, properties)


_names = [dialect.name for dialect in dialects()]
_policies = st.fixed_dictionaries(
    {},
    optional={
        "fence": st.sampled_from(["text", "allow", "sole"]),
        "code": st.sampled_from(["text", "allow"]),
        "quote": st.sampled_from(["text", "allow"]),
        "reasoning": st.sampled_from(["text", "allow"]),
    },
)
_limits = st.builds(
    Limits,
    nesting=st.sampled_from([1, 2, 3, 64]),
    arguments=st.sampled_from([1, 5, 8, 20, 40, 1000]),
    calls=st.sampled_from([0, 1, 2, 64]),
    digits=st.sampled_from([1, 3, 4300]),
)
options: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "dialects": st.just(_names) | st.lists(st.sampled_from(_names), min_size=1, max_size=3, unique=True),
        "tolerance": st.sampled_from(["strict", "lenient", "salvage"]),
        "contexts": _policies,
        "starts_in_reasoning": st.sampled_from([False, False, True]),
        "tools": st.none() | st.dictionaries(st.sampled_from(["f", "get_weather", "g"]), schemas(["a", "b", "city"])),
        "nonce": st.sampled_from([None, None, None, "7f3a"]),
        "limits": st.none() | st.none() | _limits,
    },
)
"""Options of reading, any of them."""


# Values that the fast paths read, and their neighbours, which only look like them.

_VALUES = (
    "'a'", '"b"', r"'it\'s'", '"it\'s"', """'say "x"'""", r"'a\\'", r"'a\\\'b'", r"""'a\"b'""", r"'\x41'", "''", '""',
    "'''x'''", r'r"\d"', r"R'\'x'", r"""r'''a'b\'''""", 'r"', "r",
    "True", "None", "true", "null", "1", "-2.5", "1e400", "007", "foo", "2024-01-02", "tea", "x y", "",
    "[1, 2]", "[1\n,2]", "['a', None]", """{'k': 'v: w'}""", '{"k" : "v : w"}', '{"a":1,"a":2}', "{'a':1,'a':2}",
    "{1: 2}",
    """{"x": [1, {"y": 'z'}]}""", "[[[['a']]]]", '{"t":{"t":{"t":1}}}', "(1, 2)", "[True,]", "[1, foo]", "[1 2]",
    "{'a' 1}",
    r'"C:\new"', r"'C:\new'", r'"\\srv\x"', r'"\u00e9"', r'"\ud800"', '"a\nb"', '"open', "'open", "[", "{", "'", '"',
    "\\",
    "é", "\ud800", "<b>", "&amp;", "a=b", "a\nb", "\n", " x ", ",", "=", ")", "]", "“x”", r"“a\\'b”",
)  # fmt: skip
_value = st.sampled_from(_VALUES) | st.tuples(st.sampled_from(_VALUES), st.sampled_from(_VALUES)).map("".join)
_pairs = st.lists(st.tuples(st.sampled_from(["a", "b", "city", "k.1"]), _value), max_size=4)


def _list_of(pairs: list[tuple[str, str]], comma: str) -> str:
    return comma.join(f"{key}={value}" for key, value in pairs)


valued_markers: st.SearchStrategy[str] = st.one_of(
    st.builds(lambda pairs, comma: f"[CALL: f({_list_of(pairs, comma)})]", _pairs, st.sampled_from([",", ", "])),
    st.builds(
        lambda pairs, comma: f"<|tool_call_start|>[f({_list_of(pairs, comma)})]<|tool_call_end|>",
        _pairs, st.sampled_from([",", ", ", " ,\n"]),
    ),
    st.builds(
        lambda pairs, line: "<tool_call>\n<function=f>\n"
        + "".join(f"<parameter={key}>{line}{value}{line}</parameter>\n" for key, value in pairs)
        + "</function>\n</tool_call>",
        _pairs, st.sampled_from(["\n", "\n", "\r\n", "", "\n\n"]),
    ),
    st.builds(
        lambda pairs: "<tool_call>f\n"
        + "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in pairs)
        + "</tool_call>",
        _pairs,
    ),
)  # fmt: skip
"""Markers of key=value pairs and of tags, whose values are plain, or nearly so."""


class _Sloppy:
    """Writes JSON as bad models do: what must be mended stands beside what looks like it and must not be.

    Made from a number, as thousands of choices would be too many for Hypothesis: it cannot make such a text smaller.
    """

    _QUOTES = (*'"""', "'", "'", "'", "“", "‘")
    _WORDS = (
        *("a", "x-1", "true", "True", "tru", "None", "nan", "Oslo", "7", "-3", "+7", ".5", "1.", "0x1F", "1_000", "é"),
        *("C:\\x", "C:\\temp\\new", "//", "#", "don't", 'a"b', "\\n", '\\"', "\\'", "\\u00e9", "\\ud83d", "\\", " "),
        *("a b", ",", ", ", "}", "]", ")]", "</tool_call>", "[CALL:", "<tool_call>", "：", "，", "/*c*/", '"', '",'),
    )
    _AROUND = (
        *(("[CALL: f({", "})]"), ("[CALL: f(a=", ")]"), ("<|tool_call_start|>[f(a=", ")]<|tool_call_end|>")),
        ("<tool_call>{'name': 'f', \"arguments\": {", "}}</tool_call>"),
        ("<tool_call>{arguments: {", '}, "name": "f"}</tool_call>'),
        *(('[TOOL_CALLS][{"name":"f","arguments":{', "}}]"), ("<|tool_call>call:f{", "}<tool_call|>")),
    )

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._one = self._random.choice

    def marker(self) -> str:
        begin, end = self._one(self._AROUND)
        body = self._members(2) if begin[-1] == "{" else self._value(2)
        return begin + body + end + self._one(["", " ok", "\n[CALL: g()]"])

    def _string(self) -> str:
        quote = self._one(self._QUOTES)
        end = {"“": "”", "‘": "’"}.get(quote, quote) if self._random.random() < 0.9 else self._one("\"'”’")
        return quote + "".join(self._one(self._WORDS) for _ in range(self._one([0, 1, 1, 2, 3, 9]))) + end

    def _value(self, depth: int) -> str:
        kind = self._random.random()
        if depth and kind < 0.15:
            return "{" + self._blank() + self._members(depth - 1) + self._blank() + self._one("}}}}}}｝]")
        if depth and kind < 0.3:
            return self._one("[[[(") + self._items(depth - 1) + self._blank() + self._one("]]]]]])}")
        return self._string() if kind < 0.75 else self._one(self._WORDS)

    def _members(self, depth: int) -> str:
        text = ""
        for number in range(self._one([0, 1, 2, 3, 5])):
            key = self._one([f'"k{number}"', f'"k{number}"', f"k{number}", f"'k{number}'", self._string(), "a b"])
            sign = self._one([":"] * 9 + ["：", "=", "=>"])
            text += (self._separator() if number else "") + self._blank() + key + sign + self._value(depth)
        return text + self._one(["", "", "", ","])

    def _items(self, depth: int) -> str:
        some = self._one([lambda: self._one(self._WORDS), lambda: "'b c'", lambda: '"x"', lambda: self._value(depth)])
        separators = [self._separator()] if self._random.random() < 0.6 else [self._separator() for _ in range(5)]
        return "".join(some() + self._one(separators) for _ in range(self._one([0, 1, 2, 4, 9])))

    def _separator(self) -> str:
        return self._one([","] * 6 + [", "] * 5 + ["，", ",,", " ", "\n", ",/*c*/", ", # c\n", ",#\n", ";"])

    def _blank(self) -> str:
        return self._one(["", "", "", " ", "\n"])


sloppy_json: st.SearchStrategy[list[str]] = st.integers(0, 2**32).map(
    lambda seed: [_Sloppy(seed + number).marker() for number in range(5)]
)
"""Markers, five at a time, whose JSON is wrong at every other token."""


_TAGGED = [row.name for row in dialects() if row.writing and row.forms[row.writing.form].body == "parameters"]
_TOKEN = re.compile(r"\]?<[^<>\n]*>(?:\[<[^<>]*>)?|\s+|[^<\s]+")
_SLOPPY_VALUES = (
    *("x", "", "</parameter >", "['a', 'b']", "{'k': True,}", "[1,,2", "<b>hi</b>", "1 < 2", "line\n", "\nline"),
    *("</", "<", "<parameter", "]]>", "x</parameter>\n<para", "<![CDATA[z]]>", "&lt;", "&#x26;", "[CALL: g(a=1)]"),
    *("```", "<tool_call>", "</tool_call>", "</function >", '{"a": [1,', '"q"', "it's", "</arg_value>", "</param>"),
)
_SLOPPY_TAGS = (
    *("</parameter>", "</function>", "</tool_call>", "<tool_call>", "<function=g>", "</invoke>", "<parameter=z>"),
    *("<arg_key>z</arg_key>", "<arg_value>", "</arg_value>", '<param name="z">', "</param>", '<invoke name="g">'),
)


class _SloppyTags:
    """Writes messages of calls in a dialect of tags, about every fourth of which is damaged."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._one = self._random.choice

    def message(self) -> str:
        text = []
        dialect = self._one(_TAGGED)
        for _ in range(self._random.randrange(1, 4)):
            keys = self._random.sample("abcd", self._random.randrange(4))
            plain = render_call(self._one("fg"), dict.fromkeys(keys, "VALUE"), dialect)
            text += [self._value() if it == "VALUE" else self._damaged(it) for it in _TOKEN.findall(plain)]
            text.append(self._one(["", "\n", " and ", "\n\n"]))
        return "".join(text)

    def _value(self) -> str:
        return self._one(_SLOPPY_VALUES) + self._one(["", "", self._one(_SLOPPY_VALUES)])

    def _damaged(self, tag: str) -> str:
        if self._random.random() < 0.72:
            return tag
        ways = ["", tag + tag, tag.replace(">", " >"), tag.replace("</", "</ "), tag.replace("<", "< ", 1)]
        ways += [tag.replace("=", " = "), tag.replace('"', "'"), re.sub(r"=(\w+)", r'="\1"', tag)]
        ways += [tag[: self._random.randrange(len(tag) + 1)], tag + self._one(["\n", " ", "</", "<", "\r\n"])]
        return self._one([*ways, self._one(_SLOPPY_TAGS)])


sloppy_tags: st.SearchStrategy[list[str]] = st.integers(0, 2**32).map(
    lambda seed: [_SloppyTags(seed + number).message() for number in range(5)]
)
"""Messages, five at a time, of calls whose tags are damaged, or their values hold tags."""


_NEIGHBOURS = (  # tags that belong together, in one dialect or another
    *("<param>", "</param>", "<value>", "</value>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    *("<params x>", "</params>", "<parameter>", "</parameter>", "<parameter=q>", '<param name="q">', "</ parameter >"),
    *("<param></param>", "<value>1</value>", "<param=\n>", "</param >\n"),
)


def quoting(dialect: Dialect) -> st.SearchStrategy[list[str]]:
    """Markers of a dialect of tags, twenty at a time, in which its own tags and neighbours' stand, in any order.

    Made from a number: one order in a hundred is of any worth, and Hypothesis makes no more than a few in a second.
    """
    markers = [_TOKEN.findall(marker) for marker in MARKERS[dialect.name]]
    own = sorted({tag for tags in markers for tag in tags if "<" in tag})

    def marker(random: Random) -> str:
        tags = random.choice(markers)
        place = random.randrange(1, len(tags))
        pieces = random.choices([*own, *_NEIGHBOURS, "x", "\n", "<"], k=random.randrange(7))
        return "".join([*tags[:place], *pieces, *tags[place:]])

    return st.integers(0, 2**32).map(lambda seed: [marker(random) for random in [Random(seed)] for _ in range(20)])


def cuts(text: str) -> st.SearchStrategy[list[int]]:
    """Places at which to cut a text, twice at the same place too."""
    return st.lists(st.integers(0, len(text)), max_size=10)


def cut_texts(texts: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, list[int]]]:
    """Texts, each with places at which to cut it."""
    return texts.flatmap(lambda text: st.tuples(st.just(text), cuts(text)))


# Token soup: what a body may consist of, in any order. Short texts of it are members often enough to find what a
# grammar and a reader see differently.

SOUP: dict[str, tuple[str, tuple[str, ...], str]] = {
    "call": (
        "[CALL: f(",
        (
            *"(){}[],=:'\" \n\\/-.#，）é",
            *(
                '"a"',
                "a",
                "b",
                "1",
                "-1.5e3",
                "true",
                "True",
                "None",
                "null",
                "'x'",
                '"x\\n"',
                "a=",
                "b=",
                '{"a":',
                "007",
            ),
            *("a b", "\\'", "\\u0041", '"k"=', "1e400", "(1,)", "{'a': 1}", "{}", "[]", "x.y-z", "1a="),
        ),
        ")]",
    ),
    "hermes": (
        "<tool_call>",
        (
            *'{}[],: \n"',
            *(
                '"name"',
                '"arguments"',
                '"parameters"',
                '"f"',
                '"name":"f"',
                '"name": "g"',
                '"arguments":{',
                "1",
                "null",
            ),
            *(
                '"arguments":{}',
                '"arguments":{"a":1}',
                '"id":"x"',
                '"x":1',
                '"x":',
                '"x":{}',
                '"x":[{"name":"q"}]',
                ",",
            ),
        ),
        "</tool_call>",
    ),
    "qwen_xml": (
        "<function=f>",
        (
            *"\n\r x1<[",
            *(
                "<parameter=a>",
                "<parameter=b>",
                "</parameter>",
                "\r\n",
                "</function>",
                "<function=g>",
                "<tool_call>",
                "</",
            ),
            *(
                "<function=",
                '{"a":1}',
                "<tool_call>\n<function=q>",
                "<parameter=",
                '"s"',
                " 1 ",
                "null",
                "</tool_call>",
            ),
        ),
        "</function>",
    ),
    "glm": (
        "<tool_call>f",
        (
            *"ab\n x1<",
            *(
                "<arg_key>",
                "</arg_key>",
                "<arg_value>",
                "</arg_value>",
                "<tool_call>",
                "<tool_call>g",
                "</tool_call>",
                "{}",
            ),
            *(
                "<arg_key>a</arg_key><arg_value>",
                "<arg_key>b</arg_key>\n<arg_value>",
                "</arg_",
                "<tool_call>g<arg_key>",
            ),
        ),
        "</tool_call>",
    ),
    "mistral": (
        "[TOOL_CALLS]",
        (
            *" \n[],{}",
            *(
                "f",
                "[ARGS]",
                "[CALL_ID]",
                "abc",
                "{}",
                '{"a":1}',
                '{"name":"f"}',
                '{"name":"f","arguments":{}}',
                "f[ARGS]{}",
            ),
        ),
        "",
    ),
    "pythonic": (
        "[",
        (*",  \n\t[]{})", "f(", "g(", "a=1", "b=2", '"x"', "f()", "g(a=1)", "1", "a=[1,2]", "h (", "'y'", ")", ", "),
        "]",
    ),
    "deepseek": (
        "<｜tool▁call▁begin｜>",
        (*" \nfg", "function", "<｜tool▁sep｜>", "{}", '{"a":1}', "```json\n", "```json", "```", "json"),
        "<｜tool▁call▁end｜>",
    ),
    "kimi_k2": (
        "<|tool_call_begin|>",
        (
            *" \nfg:/-",
            "functions.",
            ":0",
            "12",
            "<|tool_call_argument_begin|>",
            "{}",
            '{"a":1}',
            "a.b",
            "x:y",
            ":0123456789",
        ),
        "<|tool_call_end|>",
    ),
    "gemma4": (
        "<|tool_call>call:f",
        (
            *'{}[],: \na1"-é',
            *(
                "true",
                "a:",
                "b:",
                '<|"|>',
                '<|"|>x<|"|>',
                "1.5",
                "null",
                "{a:1}",
                "[1]",
                "a.b",
                "<|",
                '<|"',
                "a :",
                "{}",
            ),
        ),
        "<tool_call|>",
    ),
    "toolify": (
        "<function_call><tool>f</tool>",
        (
            *'{}:1]& \n<",x',
            *(
                "<args_json>",
                "</args_json>",
                '"a"',
                "<![CDATA[",
                "]]>",
                "&quot;",
                "&lt;",
                '{"a":1}',
                "{}",
                "<function_calls>",
            ),
            *(
                "<function_call>",
                "<function_calls><function_call>",
                "</function_call>",
                "&#123;",
                "&#x7d;",
                "&#0;",
                "&#34;",
            ),
        ),
        "</function_call>",
    ),
    "fenced": (
        "```",
        (
            *" \n,{}:",
            *("json\n", "tool_call\n", "tool_code \r\n", '{"name":"f"', '"name" : "f"', '"arguments":{}', '"id":"x"'),
            *('"parameters": {"a":1}', '"x":[1]', '"name"', '"f"', '{"name":"f","arguments":{}}'),
        ),
        "```",
    ),
    "react": ("Action:", (*" \tfg\n{}", "\r\n", "Action Input:", "{}", '{"a":1}', "\nAction Input: {}"), ""),
}


def _soup(name: str) -> tuple[str, tuple[str, ...], str]:
    """What the soup of a dialect is made of, from an open string of it: tags, signs and values."""
    opener, closer = next(place[1:] for place in OPEN_STRINGS if place[0] == name)
    tokens = re.findall(r"<[^<>]*>|[^<>]", opener + closer)
    outer = opener.partition("f")[0] if tokens[0][:1] == "<" else opener
    return outer, (*dict.fromkeys(tokens), '"a"', "1", "{}", '{"a": 1}', "null", " ", "\n", "f"), closer


def soup(name: str) -> st.SearchStrategy[str]:
    """Texts of the pieces of a dialect, between what opens and closes its marker."""
    opener, pieces, closer = SOUP.get(name) or _soup(name)
    return st.lists(st.sampled_from(pieces), max_size=9).map(lambda found: opener + "".join(found) + closer)
