"""`callmark stdio` as a process: lines in, lines out, and clients in other languages."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import callmark
from callmark.serving.bounds import Bounds
from callmark.serving.stdio import serve
from serving import STDIO, WAIT_SECONDS, Process
from test_cases import CASES

CLIENTS = Path(__file__).parent / "clients"
COMPILERS = ("cc", "gcc", "clang")


@pytest.fixture
def process():
    started = Process()
    yield started
    if started.process.poll() is None:
        assert started.end() == (0, b"", b"")


def exchanged(data: bytes, **bounds: int) -> list[dict]:
    """Return the answers to some lines, in this process."""
    target = io.BytesIO()
    told: list[str] = []
    serve(io.BytesIO(data), target, bounds=Bounds(**bounds), log=told.append)
    assert told == []
    assert target.getvalue() == b"" or target.getvalue().endswith(b"\n")
    return [json.loads(line) for line in target.getvalue().splitlines()]


def request(number: int = 1, text: str = "") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "detect", "params": {"text": text}}).encode()


def test_a_message_is_a_line():
    answers = exchanged(b"\n \r\n" + request(1) + b"\r\n\n" + request(2))
    assert [answer["id"] for answer in answers] == [1, 2]
    assert exchanged(b"") == []
    assert "result" in exchanged(b"\xef\xbb\xbf" + request(1))[0]  # .NET's writers begin so


def test_a_line_that_is_too_long_is_passed_over():
    whole = request()
    assert len(exchanged(whole, message_bytes=len(whole))) == 1
    for tail in (b"\n", b"\r\n"):
        assert "result" in exchanged(whole + tail, message_bytes=len(whole))[0]
    answers = exchanged(b"x" * 200_000 + b"\n" + whole + b"\n" + b"x" * 1000, message_bytes=500)
    assert [answer.get("error", {}).get("data") for answer in answers] == [
        {"code": "too-large"},
        None,
        {"code": "too-large"},
    ]


def test_standard_output_has_answers_only(process):
    process.send([1])
    assert process.next()[0]["error"]["code"] == -32600
    process.send({"jsonrpc": "2.0", "method": "nothing"})
    process.send({"jsonrpc": "2.0", "id": "late", "result": 1})
    assert process.call("detect", text="[CALL: f()]") == {"dialects": ["call"]}
    code, rest, told = process.end()
    assert (code, rest) == (0, b"")
    assert len(told.splitlines()) == 2


def test_commands_load_only_what_they_serve():
    heavy = "{'asyncio', 'starlette', 'uvicorn', 'jsonschema', 'rich'}"
    for module, other in (("callmark.cli", "callmark.serving"), ("callmark.serving.stdio", "callmark.serving.hosting")):
        program = f"import sys, {module}; print(*sorted(({heavy} | {{{other!r}}}) & sys.modules.keys()))"
        plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=plain)
        assert done.stdout.strip() == ""


def test_a_session_ends_with_its_input(process):
    process.call("session/open", session="s")
    process.send({"jsonrpc": "2.0", "id": 7, "method": "session/run", "params": {"session": "s", "text": "Hi"}})
    while process.next()["method"] != "model/generate":
        pass
    code, _, told = process.end()
    assert (code, told) == (0, b"")


def test_a_session_that_ends_as_it_begins_says_nothing_about_it():
    turn = {"jsonrpc": "2.0", "id": 2, "method": "session/run", "params": {"session": "s", "text": "Hi"}}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "session/open", "params": {"session": "s"}}
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in (opening, turn))
    done = subprocess.run(STDIO, input=lines, capture_output=True, check=True, timeout=WAIT_SECONDS)
    assert done.stderr == b""


@pytest.mark.parametrize("in_a_turn", [False, True])
def test_a_reader_that_goes_away_ends_it_quietly(in_a_turn):
    started = Process()
    if in_a_turn:
        started.call("session/open", session="s")
        started.send({"jsonrpc": "2.0", "id": 7, "method": "session/run", "params": {"session": "s", "text": "Hi"}})
        while started.next()["method"] != "model/generate":
            pass
    started.process.stdout.close()
    started.send({"jsonrpc": "2.0", "id": 1, "method": "dialects"})
    assert started.process.wait(WAIT_SECONDS) == 141
    started.process.stdin.close()
    assert started.process.stderr.read() == b""
    started.process.stderr.close()


@pytest.mark.again
def test_cases_give_the_same_events(process):
    for key, case in CASES.items():
        events = process.call("parse", text=case["input"], **case["options"])["events"]
        expected = callmark.parse(case["input"], **case["options"]).events
        assert events == json.loads(json.dumps([event.to_dict() for event in expected])), key


def test_bounds_are_options():
    started = Process("--message-bytes", "100", "--streams", "1")
    started.call("stream/open", stream="a")
    started.send({"jsonrpc": "2.0", "id": 1, "method": "stream/open"})
    assert started.next()["error"]["data"] == {"code": "too-many"}
    started.send("x" * 100)
    assert started.next()["error"]["data"] == {"code": "too-large"}
    assert started.end()[0] == 0


@pytest.mark.parametrize("option", ["--message-bytes", "--streams"])
def test_a_bound_that_lets_nothing_through_is_refused_by_its_name(option):
    code, _, told = Process(option, "0").end()
    assert code == 2
    assert f"Invalid value for '{option}': 0 is not in the range x>=1." in told.decode()


# Clients in other languages.


def client(*command: object) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "NODE_OPTIONS"}
    done = subprocess.run(
        [str(word) for word in (*command, *STDIO)],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def program(*names: str) -> str:
    """Return the first of these programs that is there; a machine without any is an error, not a reason to skip."""
    found = next((path for path in map(shutil.which, names) if path), None)
    assert found, f"expected one of {', '.join(names)} on this machine: a client is tested with it"
    return found


def test_node():
    seen = json.loads(client(program("node"), CLIENTS / "client.mjs"))
    assert seen["versions"] == {"callmark": callmark.__version__, "protocol": 1}
    assert seen["same"]
    assert seen["agrees"]
    assert seen["wrong"] == "invalid-params"
    assert seen["turn"] == {"outcome": "answer", "answer": "It is green."}
    question, first, second, told = seen["seen"]
    assert (question, first, second) == ("How is the grass?", {"look": "grass", "colour": "green"}, "not-there")
    assert "green" in told
    assert "there is nothing" in told


def test_a_posix_shell():
    lines = [json.loads(line) for line in client(program("sh"), CLIENTS / "client.sh").splitlines()]
    assert lines[0]["result"] == {"dialects": ["hermes"]}
    types = [event["type"] for line in lines[1:5] for event in line["result"].get("events", ())]
    assert types == ["call-start", "arguments-delta", "call"]
    assert lines[5]["result"] == {"outcome": "answer", "answer": "It is Sunday."}


def test_c(tmp_path):
    source, compiled = CLIENTS / "client.c", tmp_path / "client"
    subprocess.run(
        [program(*COMPILERS), "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-o", str(compiled), str(source)],
        check=True,
        timeout=WAIT_SECONDS,
    )
    assert client(compiled).splitlines() == [
        "protocol 1",
        'call {"a":"]"}',
        'event "call-start"',
        *['event "arguments-delta"'] * 2,
        'event "call"',
        'error "unknown-method"',
        'invoke "add"',
        'answer "It is 42."',
    ]
