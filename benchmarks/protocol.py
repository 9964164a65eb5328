"""How well a model calls when our prompt teaches it: `python -m benchmarks.protocol --base-url URL [--model NAME]`.

Asks any server that speaks OpenAI's chat API twenty questions in each dialect, style of prompt and language, at
temperature 0, and counts the answers that are

    strict     a call that is in the dialect's grammar, of one of the tools
    lenient    the same with what can be repaired
    tool       of the lenient ones, those that call the tool that the question is for
    arguments  of these, those whose arguments satisfy the tool's schema

An answer counts once, by its first call, and not where a marker in it is malformed. `--grammar` holds the answers to
our GBNF besides, which llama.cpp's server takes: that guarantees the form, not the choice.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from callmark import Malformed, export_grammar, merge_into_messages, parse, protocol_prompt
from callmark.errors import CallmarkError
from callmark.languages import LANGUAGES
from callmark.running.models import OpenAIModel, Request
from callmark.running.native import Assembler
from callmark.tools.checking import Checker
from callmark.writing.signatures import STYLES

Answer = Callable[[list[dict[str, Any]], str], str]  # what a model says to messages, held to a grammar ("": to none)

_WORD = {"type": "string"}
TOOLS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "description": "Weather of a city, today and the next days.",
        "properties": {"city": _WORD, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
        "required": ["city"],
    },
    "translate": {
        "description": "Translates a text into another language.",
        "properties": {"text": _WORD, "to": {"type": "string", "enum": ["en", "zh", "fr", "de"]}},
        "required": ["text", "to"],
    },
    "search_web": {
        "description": "Searches the web and returns titles and extracts.",
        "properties": {"query": _WORD},
        "required": ["query"],
    },
    "set_timer": {
        "description": "Starts a timer that rings.",
        "properties": {"minutes": {"type": "number", "minimum": 0}, "label": _WORD},
        "required": ["minutes"],
    },
    "convert_currency": {
        "description": "Converts an amount of money.",
        "properties": {"amount": {"type": "number"}, "source": _WORD, "target": _WORD},
        "required": ["amount", "source", "target"],
    },
}
_SCHEMAS = {name: {"type": "object", **tool} for name, tool in TOOLS.items()}
_LISTED = [
    {"name": name, "description": schema["description"], "parameters": schema} for name, schema in _SCHEMAS.items()
]
_CHECKERS = {name: Checker(schema) for name, schema in _SCHEMAS.items()}

QUESTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "get_weather": ("What is the weather in Oslo?", "Will it rain in Paris in the next 3 days?",
                        "How warm is it in Tokyo today?", "Do I need an umbrella in London tomorrow?"),
        "translate": ('Translate "I love tea" into Chinese.', 'How do you say "good night" in French?',
                      'What is "thank you" in German?', 'Put "Where is the station?" into French.'),
        "search_web": ("Search the web for news about Mars.", "Find pages on how to bake bread.",
                       "Look up who won the last World Cup.", "Search for the opening hours of the Louvre."),
        "set_timer": ("Set a timer for 10 minutes.", "Wake me in half an hour.", "Start a 3 minute timer for the eggs.",
                      "Ring in 45 minutes, for the laundry."),
        "convert_currency": ("How much is 100 USD in EUR?", "Convert 50 pounds to yen.",
                             "What are 20 Swiss francs in dollars?", "Change 1000 NOK into SEK."),
    },
    "zh-Hans": {
        "get_weather": ("奥斯陆天气怎么样？", "巴黎未来三天会下雨吗？", "东京今天有多热？", "明天去伦敦要带伞吗？"),
        "translate": ("把“我爱喝茶”翻译成英文。", "“晚安”用法语怎么说？", "“谢谢”的德语是什么？",
                      "请把“车站在哪里？”译成法语。"),
        "search_web": ("上网搜索关于火星的新闻。", "找一些教做面包的网页。", "查一下上届世界杯冠军是谁。",
                       "搜索卢浮宫的开放时间。"),
        "set_timer": ("设一个10分钟的计时器。", "半小时后叫我。", "开始煮鸡蛋的3分钟计时。",
                      "45分钟后响铃，提醒我收衣服。"),
        "convert_currency": ("100美元是多少欧元？", "把50英镑换算成日元。", "20瑞士法郎等于多少美元？",
                             "1000挪威克朗换成瑞典克朗是多少？"),
    },
    "zh-Hant": {
        "get_weather": ("奧斯陸天氣怎麼樣？", "巴黎未來三天會下雨嗎？", "東京今天有多熱？", "明天去倫敦要帶傘嗎？"),
        "translate": ("把「我愛喝茶」翻譯成英文。", "「晚安」的法語怎麼說？", "「謝謝」的德語是什麼？",
                      "請把「車站在哪裡？」譯成法語。"),
        "search_web": ("上網搜尋關於火星的新聞。", "找一些教做麵包的網頁。", "查一下上屆世界盃冠軍是誰。",
                       "搜尋羅浮宮的開放時間。"),
        "set_timer": ("設一個10分鐘的計時器。", "半小時後叫我。", "開始煮雞蛋的3分鐘計時。",
                      "45分鐘後響鈴，提醒我收衣服。"),
        "convert_currency": ("100美元是多少歐元？", "把50英鎊換算成日圓。", "20瑞士法郎等於多少美元？",
                             "1000挪威克朗換成瑞典克朗是多少？"),
    },
}  # fmt: skip
COUNTED = ("strict", "lenient", "tool", "arguments")


class Row(NamedTuple):
    """The counts of one set-up."""

    dialect: str
    style: str
    language: str
    tokens: int
    asked: int
    strict: int
    lenient: int
    tool: int
    arguments: int


def judged(text: str, dialect: str, expected: str) -> tuple[bool, ...]:
    """Return what of `COUNTED` an answer is."""
    strict, call = _call(text, dialect, "strict"), _call(text, dialect, "lenient")
    right = call is not None and call.name == expected
    valid = right and _CHECKERS[expected].is_valid(call.arguments)
    return strict is not None, call is not None, right, valid


def _call(text: str, dialect: str, tolerance: Literal["strict", "lenient"]) -> Any:
    """Return the first call where every marker is well-formed and calls one of the tools."""
    parsed = parse(text, dialects=dialect, tools=_LISTED, tolerance=tolerance)
    broken = any(isinstance(problem, Malformed) for problem in parsed.problems)
    known = parsed.calls and all(call.name in TOOLS for call in parsed.calls)
    return parsed.calls[0] if known and not broken else None


def measured(answer: Answer, dialect: str, style: Any, language: str, *, number: int, grammar: bool) -> Row:
    """Ask the first `number` questions in one set-up, a tool at a time, and count."""
    prompt = protocol_prompt(_LISTED, dialect, style=style, language=language)
    held = export_grammar(_LISTED, dialect, "gbnf", tool_choice="required", parallel=False, free_text=False)
    counts = [0] * len(COUNTED)
    asked = _in_turn(QUESTIONS[language], number)
    for tool, question in asked:
        messages = merge_into_messages([{"role": "user", "content": question}], prompt)
        told = judged(answer(messages, held.text if grammar else ""), dialect, tool)
        counts = [count + is_so for count, is_so in zip(counts, told, strict=True)]
    return Row(dialect, style, language, prompt.tokens, len(asked), *counts)


def _in_turn(questions: dict[str, tuple[str, ...]], number: int) -> list[tuple[str, str]]:
    return [(tool, asked[n]) for n in range(4) for tool, asked in questions.items()][:number]


def table(rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table: of how many questions."""
    lines = ["| dialect | style | language | prompt tokens | asked | " + " | ".join(COUNTED) + " |"]
    lines.append("|---|---|---|" + "---:|" * (2 + len(COUNTED)))
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def plot(rows: list[Row], path: Path, title: str) -> None:
    """Draw the shares of strict and lenient answers: a row of bars for each set-up."""
    from matplotlib.figure import Figure  # without a window, whatever the machine has

    figure = Figure(figsize=(8, 1.5 + 0.4 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows))
    for count, colour, height in (("lenient", "#9ecae1", 0.7), ("strict", "#3182bd", 0.7), ("tool", "#31a354", 0.25)):
        shares = [100 * getattr(row, count) / row.asked for row in rows]
        label = {"tool": "right tool"}.get(count, f"well-formed, {count}")
        axes.barh(places, shares, height=height, color=colour, label=label)
    axes.set_yticks(places, [f"{row.dialect}, {row.style}, {row.language}" for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"of {rows[0].asked} answers, in percent")
    axes.set_title(title)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.6 / figure.get_figheight()), ncols=3)
    figure.savefig(path, dpi=120)


def behind_url(url: str, name: str, key: str, most: int) -> Answer:
    """Return what asks a server for answers of at most `most` tokens."""

    def answer(messages: list[dict[str, Any]], grammar: str) -> str:
        options: dict[str, Any] = {"temperature": 0, "max_tokens": most, **({"grammar": grammar} if grammar else {})}
        assembler = Assembler()
        events = OpenAIModel(url, name, key=key, **options)(Request(messages=messages))
        pieces = (piece for event in events if not isinstance(event, str) for piece in assembler.feed(event))
        return "".join(piece for piece in pieces if isinstance(piece, str))

    return answer


def main(given: list[str] | None = None) -> int:
    """Ask, print a row after each set-up, and write what was asked for."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.protocol", description=__doc__.splitlines()[0])
    options.add_argument("--base-url", required=True, help="of a server that speaks OpenAI's chat API: .../v1")
    options.add_argument("--model", default="default", help="as the server calls it")
    options.add_argument("--api-key", default="")
    options.add_argument("--dialects", default="call,hermes", help="names with commas (default call,hermes)")
    options.add_argument("--styles", default="signature,compact,schema", help=f"of {', '.join(STYLES)}")
    options.add_argument("--languages", default=",".join(LANGUAGES))
    options.add_argument("--questions", type=int, default=20, choices=range(1, 21), metavar="1-20")
    options.add_argument("--max-tokens", type=int, default=160, help="of an answer")
    options.add_argument("--grammar", action="store_true", help="hold answers to our GBNF too (llama.cpp's server)")
    options.add_argument("--plot", type=Path, metavar="FILE.png")
    options.add_argument("--out", type=Path, metavar="FILE.jsonl", help="the rows, a JSON object on a line")
    chosen = options.parse_args(given)
    answer = behind_url(chosen.base_url, chosen.model, chosen.api_key, chosen.max_tokens)
    held = ", held by a grammar" if chosen.grammar else ""
    title = f"{chosen.model}{held}: calls, taught by callmark {version('callmark')}"
    rows = []
    for dialect in chosen.dialects.split(","):
        for style in chosen.styles.split(","):
            for language in chosen.languages.split(","):
                number = chosen.questions
                try:
                    rows.append(measured(answer, dialect, style, language, number=number, grammar=chosen.grammar))
                except (CallmarkError, OSError) as error:  # an option that is none, or a server that does not answer
                    options.error(f"{dialect}, {style}, {language}, asking {chosen.base_url}: {error}")
                print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    print(f"{title}\n\n{table(rows)}")
    if chosen.plot:
        plot(rows, chosen.plot, title)
    if chosen.out:
        chosen.out.write_text("".join(json.dumps(row._asdict()) + "\n" for row in rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
