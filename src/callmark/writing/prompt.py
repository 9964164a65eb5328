"""Writes the prompt that teaches a model to call tools in a dialect.

What a prompt shows parses: every marker in it is a call of one of the given tools, written by `render_call`, with
arguments that satisfy the tool's schema, and what others wrote (names, descriptions) is neutralized. Where no tool has
an example, the form of a call is shown all the same, with `...` for values, and the prompt says so. The same tools and
options give the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from callmark.dialects import Dialect, Writing, selected
from callmark.dialects.notation import fill
from callmark.dialects.rendering import WrittenCall
from callmark.errors import UsageError, check_flags
from callmark.languages import Language, language_of
from callmark.toolshapes import declared_types
from callmark.writing.calls import render_calls
from callmark.writing.contexts import unopened
from callmark.writing.examples import example_arguments
from callmark.writing.neutral import neutralized_inside
from callmark.writing.results import header, render_result
from callmark.writing.signatures import STYLES, Style, described
from callmark.writing.toolset import ToolSpec, satisfiable, tool_specs

CHOICES: Final = ("auto", "none", "required")
Examples: TypeAlias = Literal["turns", "inline", "none"]
_LOOPS: Final = 2  # examples of the whole loop: the second says that there are other tools, a third brings little more
TEMPLATE: Final = "{title}\n\n{tools}\n\n{how}\n\n{rules}\n\n{examples}"
"""How the parts of a prompt stand together; a template of one's own has the same places, or some of them."""


class Prompt(NamedTuple):
    """What teaches the protocol.

    text      for the system message
    turns     example messages, to stand behind the system message: dicts with `role` and `content`
    reminder  a line or two for the end of a long conversation
    calls     the calls that text, turns and reminder show, in this order; `...` is the value of each argument where for
              no tool valid arguments were found
    style     the style that was taken, which a budget may have changed
    tokens    of text and turns, as the counter counts them
    """

    text: str
    turns: tuple[dict[str, str], ...]
    reminder: str
    calls: tuple[WrittenCall, ...]
    style: Style
    tokens: int

    def messages(self) -> list[dict[str, str]]:
        """Return the system message and the turns."""
        return [{"role": "system", "content": self.text}, *map(dict, self.turns)]


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: a fourth of its ASCII characters, and the others one by one.

    Within a quarter of what cl100k gives for prompts of this library; hand over a tokenizer's own count where it
    matters.
    """
    ascii_characters = sum(map(str.isascii, text))
    return -(-ascii_characters // 4) + len(text) - ascii_characters


def protocol_prompt(
    tools: Any,
    dialect: str | Dialect = "call",
    *,
    style: Style = "signature",
    tool_choice: str = "auto",
    parallel: bool = True,
    language: str | Language = "en",
    nonce: str | None = None,
    reasoning: bool = False,
    examples: Examples = "turns",
    budget: int | None = None,
    count: Callable[[str], int] = estimate_tokens,
    template: str | None = None,
) -> Prompt:
    """Return the prompt that teaches `tools` in a dialect.

    >>> weather = {"name": "get_weather", "description": "Weather of a town.",
    ...     "parameters": {"properties": {"town": {"type": "string"}}, "required": ["town"]}}
    >>> print(protocol_prompt([weather], parallel=False).text.partition(".")[0])
    # Tools
    <BLANKLINE>
    - get_weather({"town": string}): Weather of a town

    tools        in any usual shape: OpenAI, Anthropic, MCP, Gemini, a mapping of names to JSON Schemas
    style        how tools are described: "signature", "brief", "compact", "table" or "schema"
    tool_choice  "auto", "none", "required", or the name of the tool that must be called
    parallel     whether several calls may stand in one message
    language     "en", "zh-Hans", "zh-Hant", or what `load_language` gives
    nonce        a code that every call must carry (see `new_nonce`); only `call` and rows with a place for it
    reasoning    whether the model is to say first what it needs the call for
    examples     "turns": as messages, which work best; "inline": in the text, where a host allows no such messages;
                 "none"
    budget       most tokens that text and turns may have: where they have more, a shorter style is taken, the longest
                 that fits; where none does, the shortest without the second of the two examples, then without any
    count        counts the tokens of a text
    template     a layout of one's own, with the places {title}, {tools}, {how}, {rules} and {examples}

    Raises ToolsError for what is no tool, and UsageError for options out of range, a name or a required argument's key
    that the dialect cannot write, and a budget that the shortest style exceeds without examples.
    """
    row = selected(dialect)
    check_flags(parallel=parallel, reasoning=reasoning)
    if style not in STYLES:
        raise UsageError(f"style: expected one of {', '.join(STYLES)}, found {style!r:.80}")
    if examples not in get_args(Examples):
        raise UsageError(f"examples: expected turns, inline or none, found {examples!r:.80}")
    if not isinstance(budget, int | None) or isinstance(budget, bool):
        raise UsageError(f"budget: expected an integer, found {budget!r:.80}")
    if not callable(count):
        raise UsageError(f"count: expected a function that counts the tokens of a text, found {count!r:.80}")
    if not isinstance(template, str | None):
        raise UsageError(f"template: expected a text, found {type(template).__name__}")
    specs = satisfiable(tool_specs(tools))
    if not specs:
        raise UsageError("tools: expected at least one tool, found none")
    strange = sorted(set(re.findall(r"\{[A-Za-z_]+\}", template or "")) - set(re.findall(r"\{[a-z]+\}", TEMPLATE)))
    if strange:
        raise UsageError(
            f"template: expected the places {' '.join(re.findall(r'{[a-z]+}', TEMPLATE))}, found {strange[0]}"
        )
    names = [spec.name for spec in specs]
    if tool_choice not in CHOICES and tool_choice not in names:
        raise UsageError(f"tool_choice: expected {', '.join(CHOICES)} or the name of a tool, found {tool_choice!r:.80}")
    writer = _Writer(specs, row, tool_choice, parallel, language_of(language), nonce, reasoning, examples, template)
    ladder = ((way, _LOOPS) for way in STYLES[STYLES.index(style) :])
    for way, loops in (*ladder, *((STYLES[-1], fewer) for fewer in reversed(range(_LOOPS)))):
        prompt = writer.prompt(way, count, loops)
        if budget is None or prompt.tokens <= budget:
            return prompt
    raise UsageError(
        f"budget: expected at least the {prompt.tokens} tokens of the style {way} without examples, found {budget}"
    )


class _Writer:
    """Puts one prompt together, in any style."""

    def __init__(
        self,
        specs: tuple[ToolSpec, ...],
        dialect: Dialect,
        choice: str,
        parallel: bool,
        language: Language,
        nonce: str | None,
        reasoning: bool,
        examples: str,
        template: str | None,
    ) -> None:
        self._specs = specs
        self._dialect = dialect
        self._choice = choice
        self._parallel = parallel
        self._words = language
        self._nonce = nonce
        self._reasoning = reasoning
        self._examples = examples if choice != "none" else "none"
        self._template = TEMPLATE if template is None else template
        for spec in specs:  # a tool whose name or required arguments cannot be written could never be called
            required = spec.arguments.get("required", ())
            self._rendered(WrittenCall(spec.name, dict.fromkeys(required, "...")), tools=None)
        self._calls = self._example_calls()
        self._writing = dialect.writing or Writing(call="")
        self._form = None if self._calls or choice == "none" else self._placeholders()

    def _rendered(self, call: WrittenCall, tools: Any) -> str:
        return render_calls([call], self._dialect, nonce=self._nonce, tools=tools)

    def _example_calls(self) -> tuple[WrittenCall, ...]:
        """Return a call of the tool that is wanted, or of the first two for which one can be made and written."""
        found: list[WrittenCall] = []
        for spec in self._specs:
            writable = partial(self._is_writable, spec.name)
            arguments = example_arguments(spec, writable) if self._choice in (*CHOICES, spec.name) else None
            if arguments is None or not writable(arguments):
                continue
            found.append(WrittenCall(spec.name, arguments))
            if len(found) == _LOOPS:
                break
        return tuple(found)

    def _is_writable(self, name: str, arguments: dict[str, Any]) -> bool:
        try:
            self._rendered(WrittenCall(name, arguments), self._specs)
        except UsageError:
            return False
        return True

    def _placeholders(self) -> WrittenCall:
        """Return the form of a call where no tool has an example: of the wanted tool, or of the first."""
        spec = next(spec for spec in self._specs if self._choice in (*CHOICES, spec.name))
        required = spec.arguments.get("required", ())
        others = (key for key in spec.arguments.get("properties", ()) if self._is_writable(spec.name, {key: "..."}))
        return WrittenCall(spec.name, dict.fromkeys(required or islice(others, 1), "..."))

    def prompt(self, style: Style, count: Callable[[str], int], loops: int) -> Prompt:
        """Return the prompt with the tools described in a style, and at most so many examples of the whole loop."""
        words = self._words
        first = (self._form,) if self._form else self._calls[:1]
        marker = self._rendered(first[0], self._specs) if first else ""
        how = words.form if self._form and self._form.arguments else words.how
        default = "(= )" if self._writing.pairs else "="
        intro = {"schema": words.schemas, "compact": words.types}.get(
            style, words.optional.replace("{default}", default)
        )
        signs = f"{intro}\n" if style == "schema" or self._has_optional() else ""
        looped = self._calls[:loops]
        turns = self._turns(looped)
        wanted = bool(marker) and self._choice != "none"
        parts = {
            "title": words.title,
            "tools": signs + described(self._specs, style, words, self._dialect),
            "how": f"{how}\n{marker}" if wanted else "",
            "rules": "\n".join(f"- {rule}" for rule in self._rules(style)),
            "examples": self._inline(turns) if self._examples == "inline" else "",
        }
        # Blank lines are the template's: those that an argument of an example holds are its own.
        layout = fill(self._template, {place: "" for place, part in parts.items() if not part})
        text = fill(re.sub(r"\n{3,}", "\n\n", layout).strip("\n"), parts)
        shown = turns if self._examples == "turns" else ()
        reminder = f"{how if self._form else words.reminder}\n{marker}" if wanted else self._wanted()
        told = {"how": first, "examples": looped if self._examples == "inline" else ()}
        places = re.findall(r"\{(how|examples)\}", self._template)
        shown_calls = [call for place in places for call in told[place]]
        calls = (*shown_calls, *(looped if self._examples == "turns" else ()), *first) if wanted else ()
        counts = [count(content) for content in (text, *(turn["content"] for turn in shown))]
        odd = [tokens for tokens in counts if not isinstance(tokens, int)]
        if odd:
            raise UsageError(f"count: expected a function that gives an integer, found one that gives {odd[0]!r:.80}")
        tokens = sum(counts)
        return Prompt(text, shown, reminder, calls, style, tokens)

    def _rules(self, style: Style) -> list[str]:
        words = self._words
        if self._choice == "none":
            return [words.none]
        free, named = self._choice == "auto", self._choice not in CHOICES
        in_tags = bool(self._writing.parameter)
        rules = [
            "" if in_tags else words.marks,
            words.lists if in_tags and style != "compact" and self._has_lists() else "",
            words.missing if free else words.values,  # who must call cannot ask
            words.only.replace("{header}", self._header()),
            words.parallel if self._parallel and not named else words.single,
            self._wanted(),
            words.reasoning if self._reasoning else "",
            words.nonce.replace("{nonce}", self._nonce) if self._nonce else "",
        ]
        return [rule for rule in rules if rule]

    def _wanted(self) -> str:
        """Return the rule that says whether to call."""
        if self._choice in CHOICES:
            return str(getattr(self._words, self._choice))
        return self._shown(self._words.named.replace("{name}", self._choice))

    def _has_optional(self) -> bool:
        return any(key not in spec.arguments.get("required", ()) for spec, key, _ in self._arguments())

    def _has_lists(self) -> bool:
        """Whether a value may be none that stands between tags as it is, and the example shows no such."""
        kinds = (declared_types(inner, spec.schema) for spec, _, inner in self._arguments())
        shown = (value for call in self._calls[:1] for value in call.arguments.values())
        listed = any(kind & {"array", "object"} for kind in kinds)
        return listed and not any(isinstance(value, list | dict) for value in shown)

    def _arguments(self) -> Iterator[tuple[ToolSpec, str, Any]]:
        for spec in self._specs:
            for key, schema in spec.arguments.get("properties", {}).items():
                yield spec, key, schema

    def _header(self) -> str:
        name = (self._calls[0] if self._calls else self._form or self._specs[0]).name
        return self._shown(header(self._words, name, ""))

    def _shown(self, text: str) -> str:
        """Return a line with what others wrote in it such that it is no call, and hides none."""
        return unopened(neutralized_inside(text, dialects=self._dialect), self._dialect)

    def _turns(self, calls: tuple[WrittenCall, ...]) -> tuple[dict[str, str], ...]:
        """Return examples: words without a call, then the whole loop: a request, the call, its result, the answer.

        The loops stand last, and for two tools: of 20 answers of SmolLM2-135M 9 are calls then, 5 behind one loop, and
        none where the last thing that was said were words.
        """
        if not calls or self._examples == "none":
            return ()
        words = self._words
        free = self._choice == "auto"  # where a call is wanted, an exchange without one would say otherwise
        contents = [("user", words.greeting), ("assistant", words.greeted)] if free else []
        for call in calls:
            values = ", ".join(f"{key}: {_plain(value)}" for key, value in call.arguments.items())
            places = {"name": call.name, "values": f"{values}{words.stop}" if values else ""}
            thought = f"{self._shown(fill(words.thought, places))}\n" if self._reasoning else ""
            contents += [
                ("user", self._shown(" ".join(fill(words.request, places).split()))),
                ("assistant", thought + self._rendered(call, self._specs)),
                ("user", "\n".join(map(self._shown, render_result(call.name, words.done, language=words).split("\n")))),
                ("assistant", self._shown(fill(words.answer, places))),
            ]
        return tuple({"role": role, "content": content} for role, content in contents)

    def _inline(self, turns: tuple[dict[str, str], ...]) -> str:
        words = self._words
        lines = [f"{words.user if turn['role'] == 'user' else words.assistant}\n{turn['content']}" for turn in turns]
        return "\n\n".join([words.example, *lines]) if lines else ""


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
