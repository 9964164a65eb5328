"""A session as a person watches it: the demonstration, `callmark run` with a server, and what each event looks like."""

from __future__ import annotations

import importlib
import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from callmark import Failure, Result, Span, Text, parse
from callmark.running.session import Step
from callmark.watching import Watching
from upstreams import Quiet, answered

COMMAND = [sys.executable, "-m", "callmark"]


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False, **{"input": "", **options}
    )


def test_the_demonstration_shows_the_whole_loop():
    done = command("demo", "--seconds", "0")
    assert done.returncode == 0
    assert done.stderr == "consent sending a postcard to Mia: yes\n"
    lines = done.stdout.splitlines()
    labels = [line[:10].strip() for line in lines if line[:10].strip()]
    assert labels == [
        *("user", "system", "model", "notice", "model", "call", "call", "result", "result"),
        *("model", "notice", "retry", "call", "result"),
        *("model", "call", "result", "model", "call", "result"),
        *("model", "call", "refused", "no-tools", "system", "model", "end"),
    ]
    assert 'call      weather({"city": "Bergen", "days": 2})' in lines
    assert any(line.startswith("refused   letterbox: loop-guard: 4 calls in 30 seconds") for line in lines)
    assert lines[-2].startswith("model     Oslo: it is sunny there")


def test_the_demonstration_is_events_for_programs():
    events = [json.loads(line) for line in command("demo", "--seconds", "0", "--json").stdout.splitlines()]
    assert events[0]["type"] == "step"
    assert [event["name"] for event in events if event["type"] == "result"][:2] == ["weather", "weather"]


@pytest.mark.parametrize(
    ("told", "coloured"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_the_demonstration_has_colours_on_terminals_that_know_them(told, coloured):
    parent, child = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"} | told
    process = subprocess.Popen([*COMMAND, "demo", "--seconds", "0"], stdout=child, stderr=child, env=environment)
    os.close(child)
    read = b""
    try:
        while piece := os.read(parent, 65_536):
            read += piece
    except OSError:
        pass  # how Linux says that the other end of a terminal was closed
    os.close(parent)
    assert process.wait(60) == 0
    assert (b"\x1b[32mcall" in read, b"\x1b" in read) == (coloured, coloured)


class Handler(Quiet):
    """A model's server: calls what it is told to call, then says what the result was."""

    call = ""
    asked: tuple[dict[str, Any], str | None] = ({}, None)  # the last request, and the key that came with it

    def reply(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Handler.asked = (body, self.headers["Authorization"])
        last = body["messages"][-1]["content"]
        text = f"I was told: {last}" if last.startswith("Result of ") else f"Hm. {self.call}"
        self.send_response(200)
        self.end_headers()
        event = json.dumps({"choices": [{"delta": {"content": text}}]})
        self.wfile.write(f"data: {event}\n\ndata: [DONE]\n\n".encode())


@pytest.fixture
def server():
    with answered(Handler) as address:
        yield address


TOOLS = """
from callmark import tool

@tool(mode="read", runs_in="process")
def apart() -> str:
    "Say where this runs."
    return __name__

@tool(mode="read")
def add(a: int, b: int) -> int:
    "Add two numbers."
    print("adding")
    return a + b

@tool(display_name="Save it")
def save(text: str) -> str:
    "Save a text."
    return "saved"

@tool
def wipe() -> str:
    "Delete all."
    return "saved nothing"

@tool(display_name="Pay", format_message=lambda arguments: f"paying {arguments['to']}")
def pay(to: str) -> str:
    "Pay somebody."
    return "saved less"
"""


@pytest.fixture
def tools(tmp_path):
    path = tmp_path / "tools.py"
    path.write_text(TOOLS)
    return path


def test_a_model_behind_a_server_calls_tools_of_a_file(server, tools, tmp_path):
    Handler.call = "[CALL: add(a=1, b=2)]"
    audit = tmp_path / "audit.jsonl"
    options = ["--model-url", server, "--tools", str(tools)]
    done = command("run", "1 + 2?", *options, "--audit", str(audit), "--system", "Be kind.")
    assert (done.returncode, done.stderr) == (0, "")
    assert "result    add: 3\n" in done.stdout
    assert "system    Be kind.\n" in done.stdout
    assert json.loads(audit.read_text())["outcome"] == "ok"
    native = command("run", "1 + 2?", *options, "--mode", "auto", "--json")
    assert "result" in [json.loads(line)["type"] for line in native.stdout.splitlines()]
    assert native.stderr == "adding\n"  # what tools print is no event
    Handler.call = "[CALL: apart()]"
    assert 'result    apart: "tools"\n' in command("run", "Where?", *options).stdout


def test_a_server_is_asked_for_the_model_with_the_key_and_gets_tools_as_the_mode_says(server, tools):
    Handler.call = ""
    options = ["--model-url", server, "--tools", str(tools)]
    environment = {name: value for name, value in os.environ.items() if name != "CALLMARK_API_KEY"}
    command("run", "Hi", *options, env=environment)
    body, key = Handler.asked
    assert (body["model"], "tools" in body, key) == ("default", False, None)
    command("run", "Hi", *options, "--mode", "native", "--model", "big", "--api-key", "k1", env=environment)
    body, key = Handler.asked
    assert (body["model"], key) == ("big", "Bearer k1")
    assert {each["function"]["name"] for each in body["tools"]} == {"apart", "add", "save", "wipe", "pay"}
    command("run", "Hi", *options, env={**environment, "CALLMARK_API_KEY": "k2"})
    assert Handler.asked[1] == "Bearer k2"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_what_happens_is_shown_before_the_model_answers(server, tools, options):
    read, waited = threading.Event(), []

    class Waiting(Handler):
        def reply(self) -> None:
            waited.append(read.wait(60))
            super().reply()

    with answered(Waiting) as address:
        words = [*COMMAND, "run", "Hi", "--model-url", address, "--tools", str(tools), *options]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline()
            read.set()
            process.stdout.read()
    assert waited == [True]


def test_what_is_no_text_is_asked_and_shown_all_the_same(server, tools):
    """A shell hands over any bytes, and a server half a character."""
    Handler.call = "[CALL: add(a=1, b=2)] \ud83d"
    for options in ((), ("--json",)):
        done = command("run", b"\xff", "--model-url", server, "--tools", str(tools), "--system", b"\xfe", *options)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False)


def test_a_file_of_tools_imports_its_neighbours_and_may_name_a_tool_twice(server, tools):
    Handler.call = "[CALL: add(a=1, b=2)]"
    path = tools.with_name("more.py")
    path.write_text("from tools import add\nplus = add\n")
    done = command("run", "1 + 2?", "--model-url", server, "--tools", str(path))
    assert "result    add: 3\n" in done.stdout


def test_a_run_speaks_the_dialect_and_language_that_are_asked_for(server, tools):
    Handler.call = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
    options = ["--model-url", server, "--tools", str(tools)]
    done = command("run", "1 + 2?", *options, "--dialect", "hermes", "--language", "zh-Hans")
    assert "result    add: 3\n" in done.stdout
    assert "这样调用：" in done.stdout
    assert "<tool_call>" in done.stdout.partition("这样调用：")[2]
    Handler.call = "[CALL: add(a=1, b=2)]"
    assert "add: 3" not in command("run", "1 + 2?", *options, "--nonce", "new").stdout
    Handler.call = "[CALL#7f3a: add(a=1, b=2)]"
    assert "result    add: 3\n" in command("run", "1 + 2?", *options, "--nonce", "7f3a").stdout
    done = command("run", "Hi", *options, "--dialect", "hermes", "--nonce", "x")
    assert (done.returncode, "expected a dialect that can carry one" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "answer", "outcome"),
    [([], "y\n", "saved"), ([], "n\n", "denied"), (["--yes"], "", "saved"), ([], "", "denied")],
)
def test_who_runs_it_is_asked_before_anything_is_written(server, tools, options, answer, outcome):
    Handler.call = '[CALL: save({"text": "\\u202e[31mx"})]'
    done = command("run", "Save it.", "--model-url", server, "--tools", str(tools), *options, input=answer)
    assert done.returncode == 0
    assert outcome in done.stdout
    asked = r'Save it: save({"text":"\u202e[31mx"})?'
    assert (asked in done.stderr) is (not options)


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        ("[CALL: wipe()]", "run: wipe({})? [y/N]: "),
        ('[CALL: pay(to="Mia")]', 'paying Mia: pay({"to":"Mia"})? [y/N]: '),
    ],
)
def test_the_question_says_what_a_call_is_about(server, tools, call, asked):
    """In the tool's own words for this call, by its name for people, or else plainly."""
    Handler.call = call
    done = command("run", "Do it.", "--model-url", server, "--tools", str(tools), input="y\n")
    assert done.stderr == asked
    assert "saved" in done.stdout


def test_who_interrupts_a_question_ends_it_all(server, tools):
    """At once and quietly: what still reads the terminal, in a thread, keeps nothing from ending."""
    Handler.call = '[CALL: save({"text": "x"})]'
    parent, child = pty.openpty()
    words = [*COMMAND, "run", "Save it.", "--model-url", server, "--tools", str(tools)]
    process = subprocess.Popen(words, stdin=child, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    os.close(child)
    asked = b""
    while b"[y/N]" not in asked:
        asked += os.read(process.stderr.fileno(), 1)
    process.send_signal(signal.SIGINT)
    assert b"Fatal" not in process.communicate(timeout=60)[1]
    os.close(parent)
    assert process.returncode == 130


def test_files_without_tools_and_servers_that_are_not_there_are_failures(tools, tmp_path):
    empty = tmp_path / "empty.py"
    empty.write_text("")
    there = ["--model-url", "http://127.0.0.1:9/v1"]
    done = command("run", "Hi", *there, "--tools", str(empty))
    assert (done.returncode, "expected tools" in done.stderr) == (2, True)
    done = command("run", "Hi", *there, "--tools", str(tools))
    assert done.returncode == 2
    assert "http://127.0.0.1:9/v1/chat/completions: expected a model's server that answers" in done.stderr
    assert "see that it runs" in done.stderr
    assert done.stderr.count("\n") == 1
    for missing in (str(Path(tmp_path, "missing.py")), "missing.py"):
        done = command("run", "Hi", *there, "--tools", missing, cwd=tmp_path)
        assert (done.returncode, "missing.py" in done.stderr, "that runs" in done.stderr) == (2, True, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nraise ValueError('boom')", "tools.py, line 2: expected a file that runs, found ValueError: boom"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("import nothere", "tools.py, line 1: expected a file that runs, found ModuleNotFoundError"),
        ("import sys\nsys.exit(3)", "tools.py, line 2: expected a file that runs, found SystemExit: 3"),
        ("\0", "expected a file that runs, found"),
        ("open('no-such-data')", "tools.py, line 1: expected a file that runs, found FileNotFoundError"),
        ("def f():\n    1 / 0\n\nf()", "tools.py, line 2: expected a file that runs, found ZeroDivisionError"),
    ],
)
def test_a_file_of_tools_that_does_not_run_is_a_failure_that_names_it(tmp_path, text, said):
    path = tmp_path / "tools.py"
    path.write_text(text)
    done = command("run", "Hi", "--model-url", "http://127.0.0.1:9/v1", "--tools", str(path))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert str(path) in done.stderr


def test_who_interrupts_a_file_of_tools_is_told_nothing(tmp_path):
    path = tmp_path / "tools.py"
    path.write_text("raise KeyboardInterrupt")
    done = command("run", "Hi", "--model-url", "http://127.0.0.1:9/v1", "--tools", str(path))
    assert (done.returncode, done.stderr.strip()) == (130, "")


def test_a_file_of_tools_may_have_the_name_of_a_module_that_it_needs(server, tools):
    Handler.call = "[CALL: add(a=1, b=2)]"
    path = tools.with_name("json.py")
    path.write_text(
        "import json\nfrom callmark import tool\n@tool(mode='read')\n"
        "def add(a: int, b: int) -> str:\n    'Add.'\n    return json.dumps(a + b)\n"
    )
    done = command("run", "1 + 2?", "--model-url", server, "--tools", str(path))
    assert 'result    add: "3"\n' in done.stdout


# What events look like.


def watched(*events: Any) -> str:
    watching = Watching(lambda text, colour: f"<{colour}>{text}" if colour == "bright_black" else text)
    return "".join(map(watching.show, events))


def test_each_event_has_its_line():
    reasoning = Text(Span(0, 1), "hm", "reasoning")
    assert watched(Text(Span(0, 1), "a"), Text(Span(1, 2), "b"), reasoning, *parse("[CALL: f()]").events) == (
        "model     ab<bright_black>hm\ncall      f({})\n"
    )
    assert watched(Text(Span(0, 1), "\n"), Step("results", "x"), Step("generation", "")) == ""
    denied = Result(index=0, name="f", ok=False, error=Failure(kind="denied", message="no", retry_after=1.5))
    assert watched(denied) == "refused   f: denied: no (again in 1.5 s)\n"
    system = Step("generation", "a\nb")
    assert watched(system, system) == f"<bright_black>{'system':<10}a\n{'':10}b\n"
    assert watched(Step("retry", "r"), Step("cancelled")) == "retry     r\nend       cancelled\n"
    assert watched(Step("continuation", "a\nb")) == f"{'go on':<10}a\n{'':10}b\n"


def test_nothing_that_a_model_or_a_tool_says_commands_the_terminal():
    rude = "\x1b[2J\x07\x9b\u202ea\tb"
    safe = "\\u001b[2J\\u0007\\u009b\\u202ea\tb"
    result = Result(index=0, name=rude, ok=False, error=Failure(kind="tool-error", message=rude))
    assert watched(Text(Span(0, 1), rude), Step("retry", rude), result) == (
        f"model     {safe}\nretry     {safe}\nfailed    {safe}: tool-error: {safe}\n"
    )


@pytest.mark.parametrize(
    ("typed", "agreed"),
    [
        *((b"y\n", True), (b"YES\n", True), (b" yes \r\n", True), (b"y", True)),
        *((b"\n", False), (b"", False), (b"yep\n", False), (b"n\ny\n", False), (b"\xff\n", False)),
    ],
)
def test_nothing_but_y_and_yes_is_a_yes(monkeypatch, typed, agreed):
    module = importlib.import_module("callmark.cli.running")
    given = io.BytesIO(typed)
    monkeypatch.setattr(module.os, "read", lambda _, size: given.read(size))
    assert module._confirmed("pay") == agreed
