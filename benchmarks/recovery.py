"""The recovery corpus: what may stand before a good call without hiding it. No speed counts unless all are found.

Each prefix, then an empty line, then one good call (`GOOD`) whose name and arguments are asserted: read whole and in
chunks of every length of `CHUNK_LENGTHS`, with every dialect listening and with its own alone.

Not in the corpus, because the good call would be a legitimate part of what was left open:

- a single-quoted or curly-quoted string, a comment, or a CDATA section left open: nothing in the good call ends it;
- a raw value (XML parameter, gemma's quotes) left open in another dialect than that of the good call: only the
  dialect's own opener proves that the value was never closed;
- a JSON string left open before a good call without quotes (the raw dialects);
- a fence or a thought left open: what follows stands in it.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from benchmarks.workloads import chunks

CHUNK_LENGTHS = (1, 2, 3, 4, 7, 64, 1000)


class Prefix(NamedTuple):
    """A text that must not hide the call behind it."""

    name: str
    text: str


class Good(NamedTuple):
    """The call at the end, and what it means."""

    marker: str
    name: str
    arguments: dict[str, Any]


_ARGUMENTS = {"city": "Oslo", "note": 'a ) ] } "b"', "days": [1, 2]}
_JSON = json.dumps(_ARGUMENTS)

GOOD: dict[str, Good] = {
    "call": Good(f"[CALL: get_weather({_JSON})]", "get_weather", _ARGUMENTS),
    "hermes": Good(
        f'<tool_call>\n{{"name": "get_weather", "arguments": {_JSON}}}\n</tool_call>', "get_weather", _ARGUMENTS
    ),
    "qwen_xml": Good(
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
        "<parameter=days>\n[1, 2]\n</parameter>\n</function>\n</tool_call>",
        "get_weather",
        {"city": "Oslo", "days": [1, 2]},
    ),
    "glm": Good(
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>[1, 2]</arg_value>\n</tool_call>",
        "get_weather",
        {"city": "Oslo", "days": [1, 2]},
    ),
}

# What people and models write without meaning any call, and what is hostile to every reader alike.
PROSE: tuple[Prefix, ...] = (
    Prefix("nothing", ""),
    Prefix("one line", "Let me look that up."),
    Prefix("eight mentions of <tool_call>", "A call begins with <tool_call> and so on. " * 8),
    Prefix("eight mentions of [CALL:", "A call begins with [CALL: and so on. " * 8),
    Prefix(
        "mentions of every opener",
        "<tool_call> [CALL: [TOOL_CALLS] <|tool_call> <function= <function_call> <|tool_call_begin|>",
    ),
    Prefix("a pair of tags in prose", "Wrap it in <tool_call> ... </tool_call>, never in <tool_call>...</tool_call>."),
    Prefix("citations", "As shown in [1], [2, 3] and [4](https://example.org/a_(b)?c=[d])."),
    Prefix("a bracket at the end", "It ends with ["),
    Prefix("half of each opener", "[CA <tool_ [TOOL <|tool <func"),
    Prefix("half an opener at the end", "it ends with <tool_cal"),
    Prefix("code", "x = arr[3]; y = {'a': [1, (2)]}; if a < b: print(\"[\" + '<')"),
    Prefix("an unpaired backtick", "it's 5' long ` or so\n"),
    Prefix("three backticks in a line", "say ``` and go on\n"),
    Prefix("a marker in inline code", 'write `[CALL: f({"a": "x"})]` or `<tool_call>{"name": "f"` for that'),
    Prefix(
        "a cut marker in inline code", 'write `[CALL: f({"a": "x` or `<tool_call>{"name": "f", "arguments": {"a": "`'
    ),
    Prefix("a reasoning tag in inline code", "the `<think>` tag opens a thought"),
    Prefix("a closed fence", '```\n[CALL: f({"a": 1})]\n<tool_call>{"name": "f", "arguments": {}}</tool_call>\n```'),
    Prefix(
        "a closed fence with cut markers",
        '```python\n[CALL: f({"a": "x\n<tool_call>{"name": "f", "arguments": {"a": "\n```',
    ),
    Prefix("a closed fence of tildes", "~~~\n```\n[CALL: f(\n~~~"),
    Prefix("a fence within a longer one", "````\n```\n[CALL: f(\n```\n<tool_call>{\n````"),
    Prefix("a closed thought", 'before<think>maybe [CALL: f({"a": 1})]</think>'),
    Prefix(
        "a closed thought with cut markers",
        '<think>[CALL: f({"a": "x <tool_call>{"name": "f", "arguments": {"a": "</think>',
    ),
    Prefix("a closed thought with a raw value", "<think><tool_call><function=f><parameter=a>x</think>"),
    Prefix("thoughts within thoughts", "<think>a<thinking>b</thinking>c</think>"),
    Prefix("a thought that was never opened", "maybe so</think>"),
    Prefix("a quote", '> [CALL: f({"a": "x\n> <tool_call>{"name": "f", "arguments": {'),
    Prefix("[ x 5000", "[" * 5000),
    Prefix("< x 5000", "<" * 5000),
    Prefix("` x 999 in a line", "so " + "`" * 999 + "\n"),
    Prefix("blanks x 4000", "[" + " " * 4000),
    Prefix("backslashes x 1001", "\\" * 1001),
    Prefix("quotes x 1001", '"' * 1001),
    Prefix("lone surrogates and NULs", "\ud83d\x00\udc00 [CALL\x00"),
    Prefix("full-width brackets", "【注意】这里没有（任何）调用：【1】"),
)

# Markers of the dialects with JSON or key=value bodies, broken in ways that a good call full of quotes makes plain.
BROKEN: tuple[Prefix, ...] = (
    Prefix("mistral: name only", "[TOOL_CALLS]f"),
    Prefix("mistral: cut before a value", '[TOOL_CALLS]f[ARGS]{"a": '),
    Prefix("mistral: cut in a string", '[TOOL_CALLS]f[ARGS]{"a": "x'),
    Prefix("mistral: cut in a section", '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "x'),
    Prefix("mistral: a section without closer", '[TOOL_CALLS] [{"name": "f", "arguments": {}}, '),
    Prefix("pythonic: a section without closer", "<|tool_call_start|>[f(a=1), "),
    Prefix("pythonic: cut in the arguments", '<|tool_call_start|>[f(a="x'),
    Prefix("deepseek: cut after the name", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"),
    Prefix("deepseek: without closer", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1}'),
    Prefix("kimi: cut in a string", '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": "x'),
    Prefix("kimi: a section without calls", "<|tool_calls_section_begin|>"),
    Prefix("gemma: cut at a key", "<|tool_call>call:f{"),
    Prefix("gemma: cut before a value", "<|tool_call>call:f{a:"),
    Prefix("toolify: cut after the name", "<function_calls><function_call><tool>f</tool>"),
    Prefix("toolify: cut in the name", "<function_calls>\n<function_call><tool>f"),
    Prefix("qwen_xml: cut in the head", "<tool_call><function="),
    Prefix("qwen_xml: cut after the head", "<tool_call><function=f>"),
    Prefix("qwen_xml: cut at a parameter", "<tool_call><function=f><parameter=a"),
    Prefix("glm: cut at a key", "<tool_call>f<arg_key>a"),
    Prefix("glm: cut before a value", "<tool_call>f<arg_key>a</arg_key>"),
    Prefix("one of each, cut", "[CALL: f( <tool_call>{ [TOOL_CALLS]f{ <|tool_call>call:f{ <tool_call><function=f>"),
)

CALL: tuple[Prefix, ...] = (
    Prefix("lone openers x 1000", "[CALL: " * 1000),
    Prefix("[CALL: f( x 1000", "[CALL: f(" * 1000),
    Prefix("[CALL: f( on 1000 lines", "[CALL: f(\n" * 1000),
    Prefix("string heads x 1000", '[CALL: f({"a": "' * 1000),
    Prefix("list heads x 300", "[CALL: f(a=[" * 300),
    Prefix("markers without closer x 20", 'so [CALL: f({"a": 1}) and ' * 20),
    Prefix("no call at all", "[CALL me] [CALL: me later] [call: me] CALL: f()"),
    Prefix("name only", "[CALL: f"),
    Prefix("a name too long", "[CALL: " + "n" * 500 + "()]"),
    Prefix("cut after (", "[CALL: f("),
    Prefix("cut after {", "[CALL: f({"),
    Prefix("cut in a key", '[CALL: f({"a'),
    Prefix("cut after a key", '[CALL: f({"a"'),
    Prefix("cut before a value", '[CALL: f({"a": '),
    Prefix("cut in a list", '[CALL: f({"a": [1, '),
    Prefix("cut in a list at the top", "[CALL: f([1, "),
    Prefix("cut in a string", '[CALL: f({"a": "x'),
    Prefix("cut in a string with an opener", '[CALL: f({"a": "x [CALL: g({'),
    Prefix("cut in a string with a closer", '[CALL: f({"a": "x)] })]'),
    Prefix("cut in a string at a backslash", '[CALL: f({"a": "x\\'),
    Prefix("cut in a literal", '[CALL: f({"a": tru'),
    Prefix("cut in a number", '[CALL: f({"a": 12'),
    Prefix("cut after a pair", "[CALL: f(a=1, "),
    Prefix("cut in a pair's key", "[CALL: f(a=1, b"),
    Prefix("cut in a pair's value", "[CALL: f(a=1, b="),
    Prefix("cut in a pair's word", "[CALL: f(a=it's"),
    Prefix("cut in a pair's string", '[CALL: f(a=1, b="x'),
    Prefix("cut in a pair's list", "[CALL: f(a=[1, (2, "),
    Prefix("cut in a pair's object", "[CALL: f(a={"),
    Prefix("cut after a positional", '[CALL: f("x", '),
    Prefix("a quote within quotes", "[CALL: f(a='it's ok')]"),
    Prefix("quotes within quotes", '[CALL: f({"a": "he said "no" then"})]'),
    Prefix("wrong closer: ]}", '[CALL: f({"a": [1}])]'),
    Prefix("wrong closer: }", '[CALL: f({"a": 1}}'),
    Prefix("wrong closer: ]", '[CALL: f({"a": 1}]'),
    Prefix("wrong closer: )", '[CALL: f({"a": 1)]'),
    Prefix("no ]", '[CALL: f({"a": 1})'),
    Prefix("no (", '[CALL: f{"a": 1}]'),
    Prefix("two closers", '[CALL: f({"a": 1})])]'),
    Prefix("a duplicate key", '[CALL: f({"a": 1, "a": 2})]'),
    Prefix("a number that is not finite", '[CALL: f({"a": 1e400})]'),
    Prefix("digits x 5000", "[CALL: f(a=" + "7" * 5000),
    Prefix("words instead of arguments", "[CALL: f(whatever you like, really)]"),
    Prefix("backslashes x 1000 in a string", '[CALL: f({"a": "' + "\\" * 1000),
    Prefix("backslashes x 1001 in a string", '[CALL: f({"a": "' + "\\" * 1001),
    Prefix("escaped quotes x 500 in a string", '[CALL: f({"a": "' + '\\"' * 500),
    Prefix("closers x 500 in a string", '[CALL: f({"a": "' + "})]" * 500),
    Prefix("lists within lists x 60", "[CALL: f(" + "[" * 60),
    Prefix("lists within lists x 5000", "[CALL: f(" + "[" * 5000),
    Prefix("lists within lists x 200, closed", "[CALL: f(" + "[" * 200 + "]" * 200 + ")]"),
    Prefix("objects within objects x 1000", "[CALL: f(" + '{"a":' * 1000),
    Prefix("tuples within tuples x 1000", "[CALL: f(a=" + "(" * 1000),
    Prefix("blanks x 4000 in a head", "[CALL:" + " " * 4000 + "f("),
    Prefix("blanks x 4000 in a body", "[CALL: f(" + " " * 4000),
    Prefix("blanks x 4000 before the closer", '[CALL: f({"a": 1})' + " " * 4000),
    Prefix("a cut marker in lower case", "[call: f("),
    Prefix("a cut marker in full width", "【CALL：f（"),
    Prefix("a cut tag", '<tool_call>{"name": "f", "arguments": {"a": "x'),
    Prefix("a cut tag before a value", '<tool_call>{"name": "f", "arguments": '),
    Prefix("<tool_call> x 1000", "<tool_call>" * 1000),
    Prefix("a call before", '[CALL: f({"a": 1})]'),
)

HERMES: tuple[Prefix, ...] = (
    Prefix("lone openers x 1000", "<tool_call>" * 1000),
    Prefix("lone openers on 1000 lines", "<tool_call>\n" * 1000),
    Prefix("lone closers x 1000", "</tool_call>" * 1000),
    Prefix("<tool_call>{ x 1000", "<tool_call>{" * 1000),
    Prefix("string heads x 1000", '<tool_call>{"name": "f", "arguments": {"a": "' * 1000),
    Prefix("name heads x 1000", '<tool_call>{"name": "' * 1000),
    Prefix("markers without closer x 20", 'so <tool_call>{"name": "f", "arguments": {}} and ' * 20),
    Prefix("[CALL: f( x 1000", "[CALL: f(" * 1000),
    Prefix("opener only", "<tool_call>"),
    Prefix("opener and blanks", "<tool_call>" + " " * 4000),
    Prefix("empty tags", "<tool_call></tool_call>"),
    Prefix("an empty object", "<tool_call>{}</tool_call>"),
    Prefix("a list", '<tool_call>[{"name": "f", "arguments": {}}]</tool_call>'),
    Prefix("a text", '<tool_call>"name"</tool_call>'),
    Prefix("other tags", '<tools>{"name": "f"}</tools><tool_response>{"a": 1}</tool_response><tool>'),
    Prefix("no name", '<tool_call>{"arguments": {"name": "f"}}</tool_call>'),
    Prefix("a name that is no text", '<tool_call>{"name": 1, "arguments": {}}</tool_call>'),
    Prefix("two names", '<tool_call>{"name": "f", "name": "g", "arguments": {}}</tool_call>'),
    Prefix("arguments that are a list", '<tool_call>{"name": "f", "arguments": [1]}</tool_call>'),
    Prefix("arguments in a string, cut", '<tool_call>{"name": "f", "arguments": "{\\"a\\": '),
    Prefix("a duplicate key", '<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>'),
    Prefix("single quotes", "<tool_call>{'name': 'f', 'arguments': {}}</tool_call>"),
    Prefix("bare keys", '<tool_call>{name: "f", arguments: {}}</tool_call>'),
    Prefix("cut after {", "<tool_call>{"),
    Prefix("cut in a key", '<tool_call>{"na'),
    Prefix("cut in the name", '<tool_call>{"name": "f'),
    Prefix("cut after the name", '<tool_call>{"name": "f", '),
    Prefix("cut before the arguments", '<tool_call>{"name": "f", "arguments": '),
    Prefix("cut in the arguments", '<tool_call>{"name": "f", "arguments": {'),
    Prefix("cut in a list", '<tool_call>{"name": "f", "arguments": {"a": [1, '),
    Prefix("cut in a string", '<tool_call>{"name": "f", "arguments": {"a": "x'),
    Prefix("cut in a string with an opener", '<tool_call>{"name": "f", "arguments": {"a": "x <tool_call>{"name'),
    Prefix("cut in a string with a closer", '<tool_call>{"name": "f", "arguments": {"a": "x </tool_call>'),
    Prefix("cut in a string at a backslash", '<tool_call>{"name": "f", "arguments": {"a": "x\\'),
    Prefix("cut in a literal", '<tool_call>{"name": "f", "arguments": {"a": nul'),
    Prefix("cut after the arguments", '<tool_call>{"name": "f", "arguments": {}'),
    Prefix("cut before the closer", '<tool_call>{"name": "f", "arguments": {}}'),
    Prefix("cut in the closer", '<tool_call>{"name": "f", "arguments": {}}</tool_'),
    Prefix("wrong closer: ]", '<tool_call>{"name": "f", "arguments": {"a": [1}}}</tool_call>'),
    Prefix("wrong closer: )]", '<tool_call>{"name": "f", "arguments": {}})]'),
    Prefix("wrong closer: </tool_calls>", '<tool_call>{"name": "f", "arguments": {}}</tool_calls>'),
    Prefix("wrong closer: an opener", '<tool_call>{"name": "f", "arguments": {}}<tool_call>'),
    Prefix("one } too few", '<tool_call>{"name": "f", "arguments": {"a": 1}</tool_call>'),
    Prefix("one } too many", '<tool_call>{"name": "f", "arguments": {"a": 1}}}</tool_call>'),
    Prefix("words in the tags", "<tool_call>I would call f here</tool_call>"),
    Prefix("words after the object", '<tool_call>{"name": "f", "arguments": {}} thanks</tool_call>'),
    Prefix("backslashes x 1000 in a string", '<tool_call>{"name": "f", "arguments": {"a": "' + "\\" * 1000),
    Prefix("backslashes x 1001 in a string", '<tool_call>{"name": "f", "arguments": {"a": "' + "\\" * 1001),
    Prefix("escaped quotes x 500 in a string", '<tool_call>{"name": "f", "arguments": {"a": "' + '\\"' * 500),
    Prefix("closers x 500 in a string", '<tool_call>{"name": "f", "arguments": {"a": "' + "</tool_call>" * 500),
    Prefix("lists within lists x 60", '<tool_call>{"name": "f", "arguments": {"a": ' + "[" * 60),
    Prefix("lists within lists x 5000", '<tool_call>{"name": "f", "arguments": {"a": ' + "[" * 5000),
    Prefix("objects within objects x 1000", "<tool_call>" + '{"a":' * 1000),
    Prefix("blanks x 4000 in a body", '<tool_call>{"name": ' + " " * 4000),
    Prefix("blanks x 4000 before the closer", '<tool_call>{"name": "f", "arguments": {}}' + " " * 4000),
    Prefix("a cut marker in brackets", "[CALL: f("),
    Prefix("a cut marker in brackets, in a string", '[CALL: f({"a": "x'),
    Prefix("a call before", '<tool_call>{"name": "f", "arguments": {}}</tool_call>'),
)

_CUT_HEADS = (
    Prefix("<tool_call> x 1000", "<tool_call>" * 1000),
    Prefix("[CALL: f( x 1000", "[CALL: f(" * 1000),
    Prefix("hermes: cut after {", "<tool_call>{"),
    Prefix("hermes: cut before the arguments", '<tool_call>{"name": "f", "arguments": '),
    Prefix("hermes: without closer", '<tool_call>{"name": "f", "arguments": {}}'),
    Prefix("call: cut after (", "[CALL: f("),
    Prefix("call: no ]", '[CALL: f({"a": 1})'),
    Prefix("qwen_xml: cut in the head", "<tool_call><function="),
    Prefix("qwen_xml: cut after the head", "<tool_call><function=f>"),
    Prefix("qwen_xml: cut at a parameter", "<tool_call><function=f><parameter=a"),
    Prefix("glm: cut after the name", "<tool_call>f"),
    Prefix("glm: cut at a key", "<tool_call>f<arg_key>a"),
    Prefix("glm: cut before a value", "<tool_call>f<arg_key>a</arg_key>"),
    Prefix("empty tags", "<tool_call></tool_call>"),
    Prefix("lone closers", "</parameter></function></arg_value></tool_call>" * 100),
)

QWEN_XML: tuple[Prefix, ...] = (
    *_CUT_HEADS,
    Prefix("heads of functions x 1000", "<function=" * 1000),
    Prefix("functions x 1000", "<tool_call><function=f>" * 1000),
    Prefix("values x 1000", "<tool_call><function=f><parameter=a>" * 1000),
    Prefix("cut in a value", "<tool_call><function=f><parameter=a>x"),
    Prefix("cut in a value, a marker alone", "<function=f><parameter=a>x"),
    Prefix("cut after a value", "<tool_call><function=f><parameter=a>x</parameter>"),
    Prefix("cut in a value after its end", "<tool_call><function=f><parameter=a>x</parameter> y"),
    Prefix("no </function>", "<tool_call><function=f><parameter=a>x</parameter></tool_call>"),
    Prefix("no </tool_call>", "<tool_call><function=f><parameter=a>x</parameter></function>"),
    Prefix("no </parameter>", "<tool_call><function=f><parameter=a>x</function></tool_call>"),
    Prefix("ends of a value x 500", "<tool_call><function=f><parameter=a>" + "</parameter>" * 500),
    Prefix("words in the tags", "<tool_call>I would call <function=f> here</tool_call>"),
    Prefix("a key twice", "<function=f><parameter=a>1</parameter><parameter=a>2</parameter></function>"),
)

GLM: tuple[Prefix, ...] = (
    *_CUT_HEADS,
    Prefix("keys x 1000", "<tool_call>f<arg_key>" * 1000),
    Prefix("values x 1000", "<tool_call>f<arg_key>a</arg_key><arg_value>" * 1000),
    Prefix("cut in a value", "<tool_call>f<arg_key>a</arg_key><arg_value>x"),
    Prefix("cut after a value", "<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value>"),
    Prefix("no </arg_value>", "<tool_call>f<arg_key>a</arg_key><arg_value>x</tool_call>"),
    Prefix("ends of a value x 500", "<tool_call>f<arg_key>a</arg_key><arg_value>" + "</arg_value>" * 500),
    Prefix("words in the tags", "<tool_call>I would call f here</tool_call>"),
    Prefix("a call without arguments", "<tool_call>f</tool_call>"),
    Prefix("a key twice", "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value>" * 2 + "</tool_call>"),
)

CORPUS: dict[str, tuple[Prefix, ...]] = {
    "call": (*PROSE, *BROKEN, *CALL),
    "hermes": (*PROSE, *BROKEN, *HERMES),
    "qwen_xml": (*PROSE, *QWEN_XML),
    "glm": (*PROSE, *GLM),
}


class Loss(NamedTuple):
    """A good call that was not found: with which dialects listening, in chunks of what length (0: whole)."""

    dialect: str
    prefix: str
    listening: str
    chunk_length: int


def losses(dialect: str, prefix: Prefix, chunk_lengths: tuple[int, ...] = CHUNK_LENGTHS) -> list[Loss]:
    """Read `prefix` and the good call of `dialect` in every way; return the ways in which the call was lost.

    The good call must be the last one; what the prefix itself becomes is not this corpus' question.
    """
    from callmark import Call, parse
    from callmark.testing import in_chunks

    good = GOOD[dialect]
    text = prefix.text + "\n\n" + good.marker
    lost: list[Loss] = []
    listened: tuple[tuple[str, dict[str, Any]], ...] = (("all", {}), ("one", {"dialects": [dialect]}))
    for listening, options in listened:
        for length in (0, *chunk_lengths):
            if length:
                events = in_chunks(chunks(text, length), **options)
                calls = [event for event in events if isinstance(event, Call)]
            else:
                calls = list(parse(text, **options).calls)
            if not calls or (calls[-1].name, calls[-1].arguments, calls[-1].dialect) != (*good[1:], dialect):
                lost.append(Loss(dialect, prefix.name, listening, length))
    return lost
