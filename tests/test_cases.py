"""The cases of `cases/*.toml`, each run as `cases/README.md` says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from callmark import dialects
from callmark.events import MALFORMED_CODES, NOTICE_CODES, REPAIR_CODES, Call, Malformed, Notice, Text
from callmark.reading.grammar import load as grammar
from callmark.testing import check_nothing_is_lost, check_previews
from feeding import by_characters, every_single_cut, joined, random_cuts, whole

FOLDER = Path(__file__).parent / "cases"
CASE_KEYS = {
    *("name", "why", "input", "input_json", "options"),
    *("calls", "text", "text_json", "reasoning", "malformed", "notices"),
}
OPTION_KEYS = {"dialects", "tolerance", "contexts", "starts_in_reasoning", "nonce", "tools"}
CALL_KEYS = {"name", "arguments", "raw_arguments", "id", "dialect", "raw", "repairs"}
MALFORMED_KEYS = {"code", "name", "raw"}


def load() -> dict[str, dict[str, Any]]:
    """Return the cases by `file:name`, with `input`, `text` and `options` filled in."""
    cases = {}
    told: dict[str, str] = {}  # by what is read and how, the case that says what comes out
    for path in sorted(FOLDER.glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        assert content.keys() <= {"dialect", "case"}, path
        for case in content["case"]:
            key = f"{path.stem}:{case['name']}"
            assert key not in cases, f"{key}: a second case of this name"
            assert ("input" in case) != ("input_json" in case), key
            assert not ("text" in case and "text_json" in case), key
            if "input_json" in case:
                case["input"] = json.loads(case["input_json"])
            case["text"] = json.loads(case["text_json"]) if "text_json" in case else case.get("text", "")
            case.setdefault("options", {})
            if "dialect" in content:
                case["options"].setdefault("dialects", [content["dialect"]])
            read = json.dumps([case["input"], sorted(case["options"].items())])
            assert read not in told, f"{key}: has input and options of {told[read]}"
            told[read] = key
            cases[key] = case
    return cases


CASES = load()
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
GOOD = {
    key: case
    for key, case in CASES.items()
    if case.get("calls")
    and len(case["input"]) <= 300
    and not (case.get("malformed") or case.get("notices") or any(call.get("repairs") for call in case["calls"]))
}


class OtherTags(NamedTuple):
    """Tags in which other models write as a dialect's cases have it, or the same model at times."""

    dialect: str
    ours: str  # pattern of what they have in another way
    theirs: str
    repairs: tuple[str, ...] = ()  # what all their calls are recorded with
    not_theirs: tuple[str, ...] = ()  # names of cases with what they have no part in


_OF_GLM = (
    *("longcat-closer-without-its-prefix", "glm-cut-in-a-value-before-hunyuan", "glm-closing-tag-of-the-key"),
    "closed-as-hunyuan-does",
)
_THREE = "(?<!`)```(?!`)"
_OF_THREE = (
    *("four-backticks-and-three", "three-backticks-in-a-broken-call-in-four"),
    *("under-a-heading", "json-of-an-agent", "fence-of-an-agent-without-a-tag"),
    *("under-a-heading-with-crlf", "fence-of-an-agent-with-crlf"),
)
OTHER_TAGS = {
    "longcat": OtherTags(
        "glm", r"(?i)(?<=[</ ])(?=arg(?:[ _-]|key|value)|tool_call)", "longcat_",
        not_theirs=(
            *(*_OF_GLM, "the-tags-of-xing", "the-tags-of-xing-strict", "glm-json-body-salvaged"),
            *("a-cut-value-before-tags-of-another-dialect", "tags-with-nothing-in-them", "opener-twice"),
        ),
    ),
    "xing": OtherTags(
        "glm", r"(?i)(?<=[</ ])arg(?=[ _-]|key|value)", "param",
        not_theirs=_OF_GLM,
    ),
    "gigachat": OtherTags("dsml", "DSML(?=｜)", "GCML"),
    "dsml-in-ascii": OtherTags(
        "dsml", "｜DSML｜", "|DSML|", repairs=("opener-spelling",),
        not_theirs=(
            *("another-prefix", "no-calls", "head-with-more-blanks", "head-on-two-lines", "attributes-beside-a-name"),
            "what-is-no-name",  # only the forms of a row tell of it
        ),
    ),
    "seed": OtherTags("qwen_xml", r"(?<=[</])(?=tool_call[ >])", "seed:"),
    "zyphra": OtherTags(
        "qwen_xml", r"(?<=[</])(?=tool_call[ >])", "zyphra_",
        not_theirs=("fence-in-a-value-that-holds-a-call", "opener-inside-value", "qwen-unclosed-value-then-good"),
    ),
    "minimax": OtherTags("invoke", "(?<=[</])function_calls>", "minimax:tool_call>", not_theirs=("shared-opener",)),
    "dots": OtherTags("invoke", "(?<=[</])function_calls>", "dots_function_call>", not_theirs=("shared-opener",)),
    "codes-behind-names": OtherTags(
        "hunyuan", "(?<=[</])(tool_calls?|tool_sep|arg_key|arg_value|end_of_tool_call)>", r"\1:6124c78e>"
    ),
    "iquest": OtherTags(
        "hunyuan", "(?<=[</])tool_call>", "iquest_tool_call>", not_theirs=("no-arguments-with-the-closer-of-json",)
    ),
    "k2-horizon": OtherTags(
        "hunyuan", "(?<=[</])(tool_calls?|arg_key|arg_value)>", r"ifm|\1>",
        not_theirs=("no-arguments-with-the-closer-of-json", "json-and-a-stray-value-tag"),
    ),
    "nemotron": OtherTags("listed", "(?<=[</])tool_calls>", "TOOLCALL>"),
    "granite": OtherTags("wrapped", "<function_call>", "<|function_call|>"),
    "tildes": OtherTags(
        "fenced", _THREE, "~~~",
        not_theirs=(
            *(*_OF_THREE, "tildes-and-backticks", "cut-before-closer"),
            "run-before-a-bracket-in-a-broken-call",  # tildes open no inline code, and end nothing there
        ),
    ),
    "four-backticks": OtherTags("fenced", _THREE, "````", not_theirs=_OF_THREE),
}  # fmt: skip


def in_other_tags(tags: OtherTags) -> dict[str, dict[str, Any]]:
    """Return the cases of a dialect as they are in other tags."""

    def is_theirs(case: dict[str, Any]) -> bool:
        if case["name"] in tags.not_theirs or not re.search(tags.ours, case["input"]):
            return False
        dialects = case["options"].get("dialects")
        if tags.repairs and case["options"].get("tolerance") == "strict":
            return False
        return tags.dialect in dialects if dialects else case["name"].startswith(f"{tags.dialect}-")

    def rewritten(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {key: rewritten(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [rewritten(inner, key) for inner in value]
        return value if key in ("name", "code") else re.sub(tags.ours, tags.theirs, value)

    found = {}
    for key, case in CASES.items():
        if is_theirs(case):
            calls = [{**call, "repairs": [*tags.repairs, *call.get("repairs", [])]} for call in case.get("calls", [])]
            found[key] = {**rewritten({**case, "options": {}, "calls": calls}), "options": case["options"]}
    return found


IN_OTHER_TAGS = {
    f"{name}-{key}": case for name, tags in OTHER_TAGS.items() for key, case in in_other_tags(tags).items()
}


def same_json(value: Any) -> str:
    """Return a text that is equal for equal JSON values only: 1 and 1.0 differ, and so do two orders of keys."""
    return json.dumps(value)


def test_there_are_cases():
    assert len(CASES) >= 300
    assert len({key.partition(":")[0] for key in CASES}) >= 17
    assert len(GOOD) >= 900
    assert len(IN_OTHER_TAGS) >= 450
    for tags in OTHER_TAGS.values():
        assert {*tags.not_theirs} <= {case["name"] for case in CASES.values()}


@each_case
def test_case_is_well_formed(case):
    assert case.keys() <= CASE_KEYS
    assert case["options"].keys() <= OPTION_KEYS
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", case["name"])
    assert case["why"].endswith(".")
    assert set(case.get("notices", [])) <= NOTICE_CODES.keys()
    for call in case.get("calls", []):
        assert {"name", "arguments"} <= call.keys() <= CALL_KEYS
        assert set(call.get("repairs", [])) <= REPAIR_CODES.keys()
        json.loads(call["arguments"])
        assert call.get("raw", "") in case["input"]
    for malformed in case.get("malformed", []):
        assert {"code"} <= malformed.keys() <= MALFORMED_KEYS
        assert malformed["code"] in MALFORMED_CODES
        assert malformed.get("raw", "") in case["input"]


@pytest.mark.again
@each_case
def test_whole_text_gives_what_the_case_says(case):
    events = whole(case["input"], **case["options"])
    texts = [event for event in events if isinstance(event, Text)]
    expected_calls = case.get("calls", [])
    expected_malformed = case.get("malformed", [])
    calls = [event for event in events if isinstance(event, Call)]
    malformed = [event for event in events if isinstance(event, Malformed)]
    assert [call.name for call in calls] == [call["name"] for call in expected_calls]
    for call, expected in zip(calls, expected_calls, strict=True):
        assert same_json(call.arguments) == same_json(json.loads(expected["arguments"]))
        assert [repair.code for repair in call.repairs] == expected.get("repairs", [])
        assert call.id == expected.get("id")
        assert call.dialect == expected.get("dialect", call.dialect)
        assert call.raw == expected.get("raw", call.raw)
        assert call.raw_arguments == expected.get("raw_arguments", call.raw_arguments)
        assert call.raw_arguments in call.raw
        assert call.raw_arguments.strip() or not call.arguments
    assert [event.code for event in malformed] == [event["code"] for event in expected_malformed]
    for event, expected in zip(malformed, expected_malformed, strict=True):
        assert event.name == expected.get("name", event.name)
        assert event.raw == expected.get("raw", event.raw)
    assert "".join(event.text for event in texts if event.channel == "content") == case["text"]
    assert "".join(event.text for event in texts if event.channel == "reasoning") == case.get("reasoning", "")
    assert [event.code for event in events if isinstance(event, Notice)] == case.get("notices", [])


@pytest.mark.again
@pytest.mark.parametrize("case", IN_OTHER_TAGS.values(), ids=IN_OTHER_TAGS.keys())
def test_tags_of_other_models_are_read_alike(case):
    """A case says what comes out for all tags of its kind, so that none of them has cases of its own for that."""
    test_whole_text_gives_what_the_case_says(case)
    assert joined(by_characters(case["input"], **case["options"])) == joined(whole(case["input"], **case["options"]))


@pytest.mark.again
@each_case
def test_a_call_without_repairs_is_in_the_grammar(case):
    rows = {dialect.name: dialect for dialect in dialects()}
    for event in whole(case["input"], **case["options"]):
        if isinstance(event, Call) and not event.repairs:
            (said,) = grammar(rows[event.dialect]).read(event.raw, "call")
            assert (said.name, said.id or None) == (event.name, event.id or None)


@pytest.mark.again
@each_case
def test_chunking_is_invisible(case):
    text, options = case["input"], case["options"]
    expected = joined(whole(text, **options))
    assert joined(by_characters(text, **options)) == expected
    for seed in range(5):
        assert joined(random_cuts(text, seed, **options)) == expected, f"random cuts of seed {seed}"


@each_case
def test_every_single_cut_is_invisible(case):
    text, options = case["input"], case["options"]
    expected = joined(whole(text, **options))
    for cut, events in every_single_cut(text, **options):
        assert joined(events) == expected, f"cut at {cut}"


@pytest.mark.again
@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_what_is_cut_is_unclosed_or_text_but_never_wrong(case):
    text = case["input"]
    for end in range(1, len(text)):
        broken = [event for event in whole(text[:end], **case["options"]) if isinstance(event, Malformed)]
        assert {event.code for event in broken} <= {"unclosed-marker"}, text[:end]


@each_case
def test_nothing_is_lost(case):
    check_nothing_is_lost(case["input"], **case["options"])


@pytest.mark.again
@each_case
def test_previews_tell_the_truth(case):
    check_previews(case["input"], **case["options"])
