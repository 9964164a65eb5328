"""The cases of `cases/*.toml`, each run as `cases/README.md` says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

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


def same_json(value: Any) -> str:
    """Return a text that is equal for equal JSON values only: 1 and 1.0 differ, and so do two orders of keys."""
    return json.dumps(value)


def test_there_are_cases():
    assert len(CASES) >= 300
    assert len({key.partition(":")[0] for key in CASES}) >= 17
    assert len(GOOD) >= 900


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
