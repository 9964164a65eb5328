"""The texts that are timed, each with its ground truth. Deterministic: the same seed gives the same text.

Six shapes (prose with a call per 2 KB, mere words with one, call after call, one big argument of code, one call of
many small arguments, calls in need of repair) in the spellings of `SPELLINGS`, and the attacks. Nothing here knows
callmark or its peers: the truth comes from the generator, so a reader that is wrong in the same way whole and streamed
is still found out. The tools whose calls are written are described in `TOOLS`, as a host would hand them to a reader.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

Arguments = dict[str, Any]

CHUNK = 4  # characters: about a token of the usual tokenizers
CALL_EVERY = 2048  # characters of prose between two calls of the workload `prose`
BIGGEST_MARKER = 1_000_000  # characters of the biggest marker that is timed; arguments end at 1 MiB (1,048,576)


class Spelling(NamedTuple):
    """One way to write a call. `write` returns the marker and where its arguments stand in it as JSON, if they do."""

    name: str
    dialect: str
    opener: str
    write: Callable[[str, Arguments], tuple[str, tuple[int, int] | None]]


class Workload(NamedTuple):
    """A text and what it holds: `calls` in order, `slices` of the text (or texts of their own) that are their JSON.

    `prose` is what stands outside of the markers, None where nothing is said of it.
    """

    name: str
    spelling: Spelling
    text: str
    calls: tuple[tuple[str, Arguments], ...]
    slices: tuple[tuple[int, int], ...] | None
    json_texts: tuple[str, ...]
    prose: str | None = None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _between(before: str, arguments: Arguments, after: str) -> tuple[str, tuple[int, int] | None]:
    body = _json(arguments)
    return before + body + after, (len(before), len(before) + len(body))


def _write_call(name: str, arguments: Arguments) -> tuple[str, tuple[int, int] | None]:
    return _between(f"[CALL: {name}(", arguments, ")]")


def _write_pairs(name: str, arguments: Arguments) -> tuple[str, tuple[int, int] | None]:
    # A text of letters only is written bare: that is what models do, and it means the same.
    pairs = ((k, v if isinstance(v, str) and v.isalpha() and v.isascii() else _json(v)) for k, v in arguments.items())
    return f"[CALL: {name}({', '.join(f'{key}={value}' for key, value in pairs)})]", None


def _write_hermes(name: str, arguments: Arguments) -> tuple[str, tuple[int, int] | None]:
    return _between(f'<tool_call>\n{{"name": "{name}", "arguments": ', arguments, "}\n</tool_call>")


def _write_qwen_xml(name: str, arguments: Arguments) -> tuple[str, tuple[int, int] | None]:
    values = ((key, value if isinstance(value, str) else _json(value)) for key, value in arguments.items())
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values)
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>", None


def _write_glm(name: str, arguments: Arguments) -> tuple[str, tuple[int, int] | None]:
    values = ((key, value if isinstance(value, str) else _json(value)) for key, value in arguments.items())
    pairs = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in values)
    return f"<tool_call>{name}\n{pairs}</tool_call>", None


def _write_pythonic(name: str, arguments: Arguments) -> tuple[str, tuple[int, int] | None]:
    pairs = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"<|tool_call_start|>[{name}({pairs})]<|tool_call_end|>", None


SPELLINGS: dict[str, Spelling] = {
    spelling.name: spelling
    for spelling in (
        Spelling("call", "call", "[CALL:", _write_call),
        Spelling("key=value", "call", "[CALL:", _write_pairs),
        Spelling("hermes", "hermes", "<tool_call>", _write_hermes),
        Spelling("qwen_xml", "qwen_xml", "<tool_call>", _write_qwen_xml),
        Spelling("glm", "glm", "<tool_call>", _write_glm),
        Spelling("pythonic", "pythonic", "<|tool_call_start|>", _write_pythonic),
    )
}

_PROVERB = (
    "the weather model reads every station before noon and writes one table per city which people then compare with "
    "what they saw themselves so a small error in row two is found by someone who lives there not by us because we "
    "only look at means and a mean hides what matters most when the wind turns and rain comes early"
)
_WORDS = _PROVERB.split()
_CRUMBS = (
    "see [the manual](https://example.org/docs/a_b?p=1&q=2#part-3)",
    "as in [1] and [2, 3]",
    "so arr[3] = rows[i][j]",
    "with `grid[0]` and `f(x)[1]`",
    "and `json.dumps({'a': [1, 2]})` too",
    "which is <b>bold</b> for once",
    'a crumb {"like": ["this", 1]} of JSON',
    "比如说，今天的天气很好（真的），我们去公园吧。",
    "東京 → 大阪, 3°C",
    "if a < b and c > d [sic]",
    'he said "no (never)", then left',
    "it's 5' long",
    "- [ ] a task, [x] done",
)
_CITIES = ("Oslo", "Lima", "Kyoto", "Abuja", "Quito", "Hanoi")
_PHRASES = ("see you at noon, not before", 'a "quoted" word', "brackets ) ] } inside", "C:/data/in.csv", "他说：你好")


def _line(rng: random.Random, crumbs: float) -> str:
    words: list[str] = []
    length = 0
    while length < 72:
        word = rng.choice(_CRUMBS) if rng.random() < crumbs else rng.choice(_WORDS)
        words.append(word)
        length += len(word) + 1
    return " ".join(words)


def _lines(rng: random.Random, crumbs: float = 0.06) -> Iterator[str]:
    # A line is drawn from a pool: 10 MB of text must not take 10 s to write.
    pool = [_line(rng, crumbs) for _ in range(400)]
    while True:
        yield rng.choice(pool) + ("\n\n" if rng.random() < 0.1 else "\n")


def prose(characters: int, seed: int = 0) -> str:
    """Return text without a call: lines of about 80 characters with links, citations, code, HTML, JSON and CJK."""
    pieces: list[str] = []
    length = 0
    for line in _lines(random.Random(seed)):
        pieces.append(line)
        length += len(line)
        if length >= characters:
            break
    return "".join(pieces)[:characters]


_Draw = Callable[[random.Random], Any]


def _some_words(rng: random.Random) -> str:
    return " ".join(rng.sample(_WORDS, 6))


# Each tool with its parameters, their JSON Schemas, and how an argument is drawn.
_TOOLS: dict[str, dict[str, tuple[dict[str, Any], _Draw]]] = {
    "get_weather": {
        "city": ({"type": "string"}, lambda rng: rng.choice(_CITIES)),
        "days": ({"type": "integer"}, lambda rng: rng.randint(1, 14)),
        "metric": ({"type": "boolean"}, lambda rng: rng.random() < 0.5),
        "reason": ({"type": "string"}, _some_words),
    },
    "search": {
        "query": ({"type": "string"}, _some_words),
        "limit": ({"type": "integer"}, lambda rng: rng.randint(1, 50)),
        "share": ({"type": "number"}, lambda rng: rng.randint(1, 99) / 4),
        "tags": ({"type": "array", "items": {"type": "string"}}, lambda rng: rng.sample(_WORDS, 2)),
        "safe": ({"type": "boolean"}, lambda rng: rng.random() < 0.5),
    },
    "read_file": {
        "path": ({"type": "string"}, lambda rng: f"src/part_{rng.randint(1, 99)}.py"),
        "lines": (
            {"type": "array", "items": {"type": "integer"}},
            lambda rng: [rng.randint(1, 40), rng.randint(41, 90)],
        ),
        "note": ({"type": "string"}, _some_words),
    },
    "send_message": {
        "to": ({"type": "string"}, lambda rng: rng.choice(_CITIES)),
        "text": ({"type": "string"}, lambda rng: rng.choice(_PHRASES)),
        "options": ({"type": "object"}, lambda rng: {"retry": 3, "wait": 0.25, "why": _some_words(rng)}),
    },
}
_FILE = {"path": {"type": "string"}, "content": {"type": "string"}}

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool {name}",
            "parameters": {"type": "object", "properties": properties, "required": list(properties)},
        },
    }
    for name, properties in (
        *((name, {key: schema for key, (schema, _) in tool.items()}) for name, tool in _TOOLS.items()),
        ("write_file", _FILE),
    )
]


def _some_call(rng: random.Random, names: Sequence[str] = tuple(_TOOLS)) -> tuple[str, Arguments]:
    name = rng.choice(names)
    return name, {key: draw(rng) for key, (_, draw) in _TOOLS[name].items()}


def _compose(name: str, spelling: Spelling, pieces: Iterator[str | tuple[str, Arguments]]) -> Workload:
    parts: list[str] = []
    prose: list[str] = []
    calls: list[tuple[str, Arguments]] = []
    slices: list[tuple[int, int]] = []
    position = 0
    for piece in pieces:
        if isinstance(piece, str):
            text = piece
            prose.append(piece)
        else:
            calls.append(piece)
            text, inner = spelling.write(*piece)
            if inner is not None:
                slices.append((position + inner[0], position + inner[1]))
        parts.append(text)
        position += len(text)
    whole = "".join(parts)
    json_texts = tuple(_json(arguments) for _, arguments in calls)
    return Workload(
        name, spelling, whole, tuple(calls), tuple(slices) if len(slices) == len(calls) else None, json_texts,
        "".join(prose),
    )  # fmt: skip


def sparse(spelling: Spelling, characters: int, seed: int = 0, *, plain: bool = False) -> Workload:
    """Prose with a call per 2 KB: the usual answer of a model; `plain`: words alone, without links, code and JSON."""

    def pieces() -> Iterator[str | tuple[str, Arguments]]:
        rng = random.Random(seed)
        lines = _lines(rng, 0) if plain else _lines(rng)
        total = since = 0
        while total < characters:
            line = next(lines)
            yield line
            since += len(line)
            total += len(line)
            if since >= CALL_EVERY:
                yield _some_call(rng)
                yield "\n"
                since = 0

    return _compose("words with calls" if plain else "prose with calls", spelling, pieces())


def dense(spelling: Spelling, characters: int, seed: int = 0) -> Workload:
    """Call after call, 10 to 50 characters of prose between them."""

    def pieces() -> Iterator[str | tuple[str, Arguments]]:
        rng = random.Random(seed)
        total = 0
        while total < characters:
            words = " ".join(rng.sample(_WORDS, rng.randint(2, 7)))[: rng.randint(8, 48)]
            call = _some_call(rng)
            total += len(words) + 2 + len(spelling.write(*call)[0])
            yield words + "\n"
            yield call
            yield "\n"

    return _compose("dense", spelling, pieces())


_CODE = (
    "def part_{n}(rows: list[dict[str, int]], *, limit: int = {n}) -> tuple[int, str]:",
    '    """Return the rows of `part_{n}` [see (1)], at most `limit`."""',
    "    found = [row[\"key\"] for row in rows if row.get('id') in ({n}, {m})]",
    '    text = f"{{found[0]}} of {{len(found)}}\\n" + "\\t".join(names[{n}:])',
    "    print(call(found[{n}])])  # )] and }})] and ]) close nothing",
    "    pattern = re.compile(r\"\\d+\\[([^\\]]*)\\]\\('\\\\w'\\)\")",
    "    if a < {n} and b > {m} or not (x[0] or y[-1]):",
    "        raise ValueError('it\\'s {n}, not \"{m}\"')",
    '    return {n}, """</b> and <p>{m}</p> are text"""',
    "",
)
_CLOSERS = (
    '    # </parameter> and </arg_value> and </tool_call> and "}})]" and <|tool_call_end|> in a comment of part_{n}'
)


def code(characters: int, seed: int = 0, *, closers: bool = False) -> str:
    """Return about so many characters of Python: quotes, brackets, escapes; with closers of markers, if asked for."""
    rng = random.Random(seed)
    lines: list[str] = []
    length = 0
    while length < characters:
        for template in (*_CODE, _CLOSERS) if closers else _CODE:
            line = template.format(n=rng.randint(1, 999), m=rng.randint(1, 999))
            lines.append(line)
            length += len(line) + 1
    return "\n".join(lines)[:characters]


def huge(spelling: Spelling, characters: int, seed: int = 0, *, closers: bool = False) -> Workload:
    """One call whose argument is code; the marker is `characters` long, give or take a line.

    With `closers`, the code has comments that quote the closers of all these spellings. The code ends with no blank: a
    seed is not to decide whether a reader that strips values is right.
    """
    source = code(characters, seed, closers=closers).rstrip()
    marker = spelling.write("write_file", {"path": "src/part.py", "content": source})[0]
    while len(marker) > characters and len(source) > 64:  # escapes have made it longer than asked for
        source = source[: max(64, len(source) * characters // len(marker) - 1)].rstrip()
        marker = spelling.write("write_file", {"path": "src/part.py", "content": source})[0]
    name = "one big call, closers in it" if closers else "one big call"
    return _compose(name, spelling, iter([("write_file", {"path": "src/part.py", "content": source})]))


def wide(spelling: Spelling, characters: int, seed: int = 0) -> Workload:
    """One call of many small arguments: structure instead of text."""
    rng = random.Random(seed)
    arguments: Arguments = {}
    length = 0
    while length < characters:
        key = f"key_{len(arguments)}"
        arguments[key] = rng.choice(
            (rng.randint(0, 10**6), True, None, rng.choice(_CITIES), rng.choice(_PHRASES), [1, 2])
        )
        length += len(spelling.write("f", {key: arguments[key]})[0]) - len(spelling.write("f", {})[0]) + 2
    return _compose("one wide call", spelling, iter([("update", arguments)]))


def _broken_line(arguments: Arguments) -> tuple[str, Arguments]:
    meant = {key: value.replace(" ", "\n", 1) if isinstance(value, str) else value for key, value in arguments.items()}
    return _json(meant).replace("\\n", "\n"), meant


# What is written instead of the JSON of arguments, and what it means.
_DEFECTS: dict[str, Callable[[Arguments], tuple[str, Arguments]]] = {
    "trailing comma": lambda meant: (_json(meant)[:-1] + ",}", meant),
    "single quotes": lambda meant: (_json(meant).replace('"', "'"), meant),
    "Python literals": lambda meant: (_json(meant).replace("true", "True").replace("false", "False"), meant),
    "bare keys": lambda meant: (re.sub(r'"([a-z]+)": ', r"\1: ", _json(meant)), meant),
    "line breaks in strings": _broken_line,
}


def repairs(characters: int, seed: int = 0) -> Workload:
    """Call after call in `hermes`, each with one defect of JSON whose meaning is plain."""
    rng = random.Random(seed)
    markers: list[str] = []
    calls: list[tuple[str, Arguments]] = []
    while sum(map(len, markers)) < characters:
        name, arguments = _some_call(rng, ("get_weather", "search", "read_file"))  # no quotes in their texts
        body, meant = rng.choice(list(_DEFECTS.values()))(arguments)
        markers.append(f'<tool_call>\n{{"name": "{name}", "arguments": {body}}}\n</tool_call>\n')
        calls.append((name, meant))
    json_texts = tuple(_json(arguments) for _, arguments in calls)
    return Workload("calls to repair", SPELLINGS["hermes"], "".join(markers), tuple(calls), None, json_texts, "")


def messages(spelling: Spelling, count: int, seed: int = 0) -> list[tuple[str, list[tuple[str, Arguments]]]]:
    """Return short answers with their calls, a third of them without one, as they come in a batch of model outputs."""
    rng = random.Random(seed)
    lines = _lines(rng)
    made = []
    for place in range(count):
        text = "".join(next(lines) for _ in range(rng.randint(1, 12)))
        calls = [_some_call(rng)] if place % 3 else []
        made.append((text + "".join(spelling.write(*call)[0] for call in calls), calls))
    return made


_MARKERS = re.compile(
    r"(</?(?:tool_call|arg_key|arg_value|think)>|<｜[^<>]{1,24}｜>|<\|[a-z_]{1,32}\|>|<\|[a-z_]{1,16}>|<[a-z_]{1,16}\|>"
    r"|\[/?(?:TOOL_CALLS|ARGS|CALL_ID|THINK)\])"
)
# Letters in groups of up to seven with the blank before them, digits by three, runs of one kind of punctuation, CJK
# singly: about what the tokenizers of current models do with English and code.
_TOKEN = re.compile(
    r" ?[A-Za-z]{1,7}|[0-9]{1,3}| ?[!-/:-@\[-`{-~]{1,3}|[ \t]+(?=\s)|\s+|[^\x00-\x7f]{1,2}|.",
    re.DOTALL,
)


def tokens(text: str) -> list[str]:
    """Cut `text` into pieces of the sizes of tokens (mean 3 to 4); marker tokens stay whole."""
    parts = enumerate(_MARKERS.split(text))
    return [piece for place, part in parts for piece in ([part] if place % 2 else _TOKEN.findall(part))]


def chunks(text: str, length: int = CHUNK, *, whole_markers: bool = False) -> list[str]:
    """Cut `text` into pieces of `length` characters; with `whole_markers`, marker tokens are pieces of their own."""
    parts = _MARKERS.split(text) if whole_markers else [text]
    return [
        piece
        for place, part in enumerate(parts)
        for piece in ([part] if place % 2 else [part[at : at + length] for at in range(0, len(part), length)])
    ]


class Attack(NamedTuple):
    """A text made to be slow: `head`, then `unit` again and again, then `tail`."""

    name: str
    unit: str
    head: str = ""
    tail: str = ""

    def text(self, characters: int) -> str:
        """Return the attack in about so many characters."""
        return self.head + self.unit * max(1, characters // len(self.unit)) + self.tail


_OPEN = '[CALL: f({"a": "'
_ENVELOPE = '<tool_call>{"name": "f", "arguments": {"a": "'
_XML = "<tool_call><function=f><parameter=a>"
_GLM = "<tool_call>f<arg_key>a</arg_key><arg_value>"
_ARGS = "<function_call><tool>f</tool><args_json>"
_GEMMA = '<|tool_call>call:f{a:<|"|>'

ATTACKS: tuple[Attack, ...] = (
    # openers that never become a marker, or become one and never end
    Attack("[ [ [", "["),
    Attack("[ and a blank", "[ "),
    Attack("[ and 60 blanks", "[" + " " * 60),
    Attack("openers", "[CALL: "),
    Attack("openers over lines", "[\n\nCALL\n:\n"),
    Attack("loose openers", "[call: f("),
    Attack("full-width openers", "【CALL：f（"),
    Attack("a name without end", "n", "[CALL: "),
    Attack("names of 129 letters", "[CALL: " + "n" * 129),
    Attack("heads", "[CALL: f("),
    Attack("heads of objects", '[CALL: f({"a":'),
    Attack("heads of lists", "[CALL: f(a=["),
    Attack("heads of strings", _OPEN),
    Attack("heads of single quotes", "[CALL: f(a='"),
    Attack("heads of strings, one closer", _OPEN, tail='"})]'),
    Attack("markers without closer", '[CALL: f({"a": 1}) '),
    Attack("markers with the wrong closer", '[CALL: f({"a": 1]} '),
    Attack("markers within strings", '[CALL: g({\\"b\\": 1})] ', _OPEN),
    # one marker whose body never ends
    Attack("an open string", "a ", _OPEN),
    Attack("an open single-quoted string", "a ", "[CALL: f(a='"),
    Attack("an open string of closers", "})] ", _OPEN),
    Attack("escaped quotes", '\\"', _OPEN),
    Attack("backslashes", "\\", _OPEN),
    Attack("unicode escapes", "\\u00e9", _OPEN),
    Attack("quotes", '"', '[CALL: f({"a": '),
    Attack("strings in a row", '"a" ', '[CALL: f({"a": '),
    Attack("blanks in a body", " ", "[CALL: f("),
    Attack("line breaks in a body", "\n", '[CALL: f({"a": '),
    Attack("digits", "7", '[CALL: f({"a": '),
    Attack("digits of a pair", "7", "[CALL: f(a="),
    Attack("a bare word", "x", "[CALL: f(a="),
    Attack("pairs of one key", "a=1, ", "[CALL: f("),
    Attack("commas", ",", "[CALL: f("),
    Attack("commas and blanks", ", ", '[CALL: f({"a": 1'),
    Attack("pairs without commas", " b='y'", "[CALL: f(a='x'"),
    Attack("words alike, none at last", "x, ", '[CALL: f({"a": [', tail="nan"),
    Attack("words that are no values", "nan, ", '[CALL: f({"a": ['),
    Attack("nested lists", "[", "[CALL: f("),
    Attack("nested tuples", "(", "[CALL: f(a="),
    Attack("nested objects", '{"a":', "[CALL: f("),
    Attack("closing brackets", "]", "[CALL: f(["),
    Attack("a list of lists", "[],", "[CALL: f(["),
    Attack("a tail of blanks", " ", '[CALL: f({"a": 1})'),
    # envelopes and tags
    Attack("<<<", "<"),
    Attack("half an opener", "<tool_cal"),
    Attack("mentions of an opener", "<tool_call> "),
    Attack("openers of tags", "<tool_call>"),
    Attack("openers of tags and 60 blanks", "<tool_call>" + " " * 60),
    Attack("empty tags", "<tool_call></tool_call>"),
    Attack("closers of tags", "</tool_call>"),
    Attack("heads of envelopes", "<tool_call>{"),
    Attack("heads of names", '<tool_call>{"name": "'),
    Attack("heads of arguments", _ENVELOPE),
    Attack("heads of envelopes, one closer", '<tool_call>{"name": "', tail="</tool_call>"),
    Attack("closers within a string", "</tool_call>", _ENVELOPE),
    Attack("members without end", '"a": 1, ', "<tool_call>{"),
    Attack("envelopes without closer", '<tool_call>{"name": "f", "arguments": {}} '),
    # raw values
    Attack("functions", "<tool_call><function=f>"),
    Attack("heads of functions", "<function="),
    Attack("heads of parameters", _XML),
    Attack("ends of a value", "</parameter>", _XML),
    Attack("ends of a value and 60 blanks", "</parameter>" + " " * 60, _XML),
    Attack("ends of a value, half a parameter", "</parameter>\n<parameter=", _XML),
    Attack("parameters without end", "</parameter><parameter=a>", _XML),
    Attack("tags within a value", "<tool_call>", _XML),
    Attack("heads of keys", "<tool_call>f<arg_key>"),
    Attack("heads of values", _GLM),
    Attack("ends of a keyed value", "</arg_value>", _GLM),
    # the other openers
    Attack("mistral openers", "[TOOL_CALLS]"),
    Attack("mistral heads", "[TOOL_CALLS]f{"),
    Attack("mistral sections", '[TOOL_CALLS] [{"name": "f"}, '),
    Attack("a section without end", '{"name": "f", "arguments": {}}, ', "[TOOL_CALLS] ["),
    Attack("python sections", "<|tool_call_start|>[f("),
    Attack("deepseek openers", "<｜tool▁call▁begin｜>"),
    Attack("kimi heads", "<|tool_call_begin|>functions.f:0"),
    Attack("gemma heads", _GEMMA),
    Attack("half a gemma quote", "<|", _GEMMA),
    Attack("words without end between braces", "<|tool_call>call:f{a:" + "b " * 250),
    Attack("values of words between braces", "a:b c,", "<|tool_call>call:f{"),
    Attack("openings of CDATA", "<![CDATA[", _ARGS),
    Attack("closings of CDATA", "]]>", _ARGS + "<![CDATA["),
    Attack("entities", "&amp;", _ARGS),
    Attack("ampersands", "&", _ARGS),
    # contexts
    Attack("backticks", "`"),
    Attack("backticks and blanks", "` "),
    Attack("runs of backticks", "`` ` ``` "),
    Attack("calls in inline code", "`[CALL: f()]` "),
    Attack("fences", "```\n"),
    Attack("calls in a fence", '[CALL: f({"a": 1})]\n', "```\n"),
    Attack("calls in quotes", "> [CALL: f()]\n"),
    Attack("thoughts that open", "<think>"),
    Attack("thoughts that close", "</think>"),
    Attack("empty thoughts", "<think></think>"),
    Attack("calls in a thought", "[CALL: f()] ", "<think>"),
    Attack("calls past the limit", "[CALL: f()] "),
    Attack("line breaks", "\n"),
    Attack("blanks", " "),
    Attack("lone surrogates", "\ud83d"),
)
