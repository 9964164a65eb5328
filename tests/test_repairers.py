"""Arguments with one known damage each: callmark reads what was meant or says that it cannot, and never anything else.

The same texts go to two tolerant readers of JSON: where those corrupt a value, callmark does not.
A damage is done to the tokens of a JSON text, so that the truth is known.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from random import Random
from typing import Any

import chompjs
import json_repair
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark import parse

WORDS = (
    *("on", "it's", 'he said "yes" loudly', "a, b", "x: y", "{1}", "[2]", "C:\\dir", "https://x.y/?q=1#z", "5' 10", ""),
    *("// no", "/* no */", "# no", "a\nb", "“你好，世界”", "true", "12", "x = 1; y = 2", "</tool_call>", ")]", "\t"),
)
KEYS = ("a", "b_1", "city", "max-days", "q", "名", 'with "quotes"', "name", "arguments", "x y", "it's")
AROUND = {
    "call": ("[CALL: f(", ")]"),
    "hermes": ('<tool_call>\n{"name": "f", "arguments": ', "}\n</tool_call>"),
    "mistral": ("[TOOL_CALLS]f[ARGS]", "\n"),
    "deepseek": ("<｜tool▁call▁begin｜>f<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
    "kimi_k2": ("<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>", "<|tool_call_end|>"),
}
CURLY = re.compile("[“”„‘’\"']")
WORD = re.compile('"[a-z]+"')
NO_WORDS = ("true", "false", "null", "none", "nil", "undefined", "nan", "inf", "infinity")


def tokens_of(value: Any) -> list[tuple[str, str]]:
    """Return the tokens of a JSON text, each with its kind: a bracket or sign, "key", "string", "number", "word"."""
    if isinstance(value, dict):
        found = [("{", "{")]
        for at, (key, item) in enumerate(value.items()):
            found += [(",", ", ")] * (at > 0)
            found += [("key", json.dumps(key, ensure_ascii=False)), (":", ": "), *tokens_of(item)]
        return [*found, ("}", "}")]
    if isinstance(value, list):
        found = [("[", "[")]
        for at, item in enumerate(value):
            found += [("comma in a list", ", ")] * (at > 0) + tokens_of(item)
        return [*found, ("]", "]")]
    kind = "string" if isinstance(value, str) else "word" if value is None or isinstance(value, bool) else "number"
    return [(kind, json.dumps(value, ensure_ascii=False))]


def single_quoted(text: str) -> str:
    return "'" + text[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def replaced(kind: str, change: Any, *, fits: Any = lambda text: True) -> Any:
    """Return a damage that changes one token of a kind."""

    def damage(tokens: list[tuple[str, str]], random: Random) -> list[str] | None:
        texts = [text for _, text in tokens]
        places = [at for at, (found, text) in enumerate(tokens) if found == kind and fits(text)]
        if not places:
            return None
        at = random.choice(places)
        texts[at] = change(texts[at])
        return texts

    return damage


def inserted(text: str, fits: Any) -> Any:
    """Return a damage that puts `text` before a token, where the kinds of its neighbours fit."""

    def damage(tokens: list[tuple[str, str]], random: Random) -> list[str] | None:
        places = [at for at in range(1, len(tokens)) if fits(tokens[at - 1][0], tokens[at][0])]
        if not places:
            return None
        at = random.choice(places)
        texts = [other for _, other in tokens]
        return [*texts[:at], text, *texts[at:]]

    return damage


def last_closer(tokens: list[tuple[str, str]], random: Random) -> list[str] | None:
    return [text for _, text in tokens[:-1]] if len(tokens) > 2 else None


def one_more(tokens: list[tuple[str, str]], random: Random) -> list[str] | None:
    return [text for _, text in tokens] + ["}"]


DAMAGES = {
    "comma before a closer": inserted(",", lambda before, after: after in "]}" and before not in "[{"),
    "two commas": inserted(", ", lambda before, after: before == ","),
    "comma left out": replaced(",", lambda text: " "),
    "comma left out in a list": replaced("comma in a list", lambda text: " "),
    "comment": inserted(" /* a, \"b\" */ ", lambda before, after: True),
    "comment to the line's end": inserted(" // it's\n", lambda before, after: True),
    "single quotes": replaced("string", single_quoted),
    "single quotes around a key": replaced("key", single_quoted),
    "curly quotes": replaced("string", lambda text: f"“{text[1:-1]}”", fits=lambda text: not CURLY.search(text[1:-1])),
    "bare key": replaced("key", lambda text: text[1:-1], fits=lambda text: re.fullmatch(r'"[a-z_][a-z_0-9]*"', text)),
    "bare value": replaced(
        "string", lambda text: text[1:-1], fits=lambda text: WORD.fullmatch(text) and text[1:-1] not in NO_WORDS
    ),
    "word of Python": replaced("word", lambda text: {"null": "None"}.get(text, text.capitalize())),
    "raw line break": replaced("string", lambda text: text.replace("\\n", "\n"), fits=lambda text: "\\n" in text),
    "full-width comma": replaced(",", lambda text: "，"),
    "full-width colon": replaced(":", lambda text: "："),
    "equals sign": replaced(":", lambda text: "="),
    "quotes in a string": replaced("string", lambda text: text.replace('\\"', '"'), fits=lambda text: '\\"' in text),
    "last closer left out": last_closer,
    "one closer more": one_more,
}  # fmt: skip

scalars = st.sampled_from(WORDS) | st.integers() | st.booleans() | st.none() | st.floats(-9, 9) | st.text(max_size=6)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, min_size=1, max_size=4)


def exactly(value: Any) -> str:
    return json.dumps(value)


def damaged(value: Any, kind: str, random: Random) -> str | None:
    """Return the JSON text of `value` with a damage, None where it has no place for it or stays JSON."""
    texts = DAMAGES[kind](tokens_of(value), random)
    if texts is None:
        return None
    text = "".join(texts)
    try:
        json.loads(text)
    except ValueError:
        return text
    return None


@given(objects, st.sampled_from(sorted(DAMAGES)), st.sampled_from(sorted(AROUND)), st.randoms(use_true_random=False))
def test_damaged_arguments_are_read_as_they_were_meant_or_not_at_all(value, kind, dialect, random):
    text = damaged(value, kind, random)
    if text is None:
        return
    opener, closer = AROUND[dialect]
    calls = parse(opener + text + closer, dialects=dialect).calls
    assert [exactly(call.arguments) for call in calls] in ([], [exactly(value)]), (kind, opener + text + closer)
    assert all(call.repairs for call in calls)


@given(objects, st.sampled_from(sorted(AROUND)), st.randoms(use_true_random=False))
def test_a_cut_is_no_damage_that_is_repaired(value, dialect, random):
    text = AROUND[dialect][0] + json.dumps(value)
    cut = random.randint(0, len(text) - 1)
    assert parse(text[:cut], dialects=dialect).calls == ()


def value_of(random: Random, depth: int = 0) -> Any:
    if depth < 3 and random.random() < 0.35:
        if random.random() < 0.5:
            return [value_of(random, depth + 1) for _ in range(random.randint(0, 3))]
        return {key: value_of(random, depth + 1) for key in random.sample(KEYS, random.randint(0, 3))}
    return random.choice([*WORDS, *WORDS, random.randint(-99, 99), 2.5, True, False, None])


READERS = {
    "callmark": lambda text: parse(f"[CALL: f({text})]", dialects="call").calls[0].arguments,
    "json_repair": json_repair.loads,
    "chompjs": chompjs.parse_js_object,
}


@pytest.fixture(scope="module")
def outcomes():
    """How three readers do on the same 4,000 damaged objects: counts by reader, kind of damage and outcome."""
    random = Random(5)
    counts: Counter[tuple[str, str, str]] = Counter()
    for _ in range(4000):
        value = {key: value_of(random) for key in random.sample(KEYS, random.randint(1, 4))}
        kind = random.choice(sorted(DAMAGES))
        text = damaged(value, kind, random)
        if text is None:
            continue
        for name, read in READERS.items():
            try:
                outcome = "right" if exactly(read(text)) == exactly(value) else "corrupted"
            except (IndexError, ValueError, KeyError):
                outcome = "refused"
            counts[name, kind, outcome] += 1
    return counts


def test_repairers_corrupt_what_callmark_does_not(outcomes):
    corrupted = Counter()
    for (name, _, outcome), count in outcomes.items():
        corrupted[name] += count * (outcome == "corrupted")
    assert corrupted["callmark"] == 0
    assert corrupted["json_repair"] >= 20
    assert corrupted["chompjs"] >= 20


@pytest.mark.parametrize("kind", sorted(DAMAGES))
def test_most_damage_of_every_kind_is_repaired(outcomes, kind):
    right, others = outcomes["callmark", kind, "right"], outcomes["callmark", kind, "refused"]
    assert right + others >= 10
    assert right >= 0.6 * (right + others), "for what is repaired less often there would be no need of this test"


def test_what_they_corrupt_is_of_these_kinds(outcomes):
    corrupted = {name: {kind for kind in DAMAGES if outcomes[name, kind, "corrupted"]} for name in READERS}
    assert corrupted["callmark"] == set()
    assert corrupted["json_repair"] >= {"comment", "comma left out in a list", "equals sign", "full-width colon"}
    assert corrupted["chompjs"] >= {"curly quotes", "word of Python"}


def test_a_sign_that_is_missing_is_seldom_mistaken():
    """A bracket, a comma, a colon or a quote is left out: at times the rest reads soundly, and nobody can know."""
    random = Random(14)
    wrong: Counter[str] = Counter()
    for _ in range(1000):
        value = {key: value_of(random) for key in random.sample(KEYS, random.randint(1, 4))}
        texts = [text for _, text in tokens_of(value)]
        at = random.choice([place for place, text in enumerate(texts) if text[0] in '{}[]:,"'])
        texts[at] = texts[at][1:] if random.random() < 0.5 else texts[at].strip()[:-1]
        for name in ("callmark", "json_repair"):
            try:
                wrong[name] += exactly(READERS[name]("".join(texts))) != exactly(value)
            except (IndexError, ValueError, KeyError):
                wrong[f"{name} refuses"] += 1
    assert wrong["callmark"] * 5 <= wrong["json_repair"], wrong
