"""The command line: real files and descriptors, and real processes where pipes, terminals and signals matter."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import NamedTuple

import click
import msgspec
import pytest
from click.testing import CliRunner

import callmark
from callmark import Parser, export_grammar
from callmark.cli import main
from callmark.dialects import dialects
from callmark.events import MALFORMED_CODES, NOTICE_CODES, REPAIR_CODES, Event, Malformed, Text
from callmark.reading.codes import explained
from callmark.serving.bounds import Bounds
from callmark.serving.configuration import ModelSettings

SAMPLE = Path(str(files("callmark") / "samples" / "transcript.txt"))
COMMAND = [sys.executable, "-m", "callmark"]
DEADLINE_SECONDS = 60
GREETING = 'Hi! [CALL: greet({"who": "Mia"})] done\n'
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}

OWN_DIALECT = r"""
name = "arrow"
title = "=> f {...}"
models = "mine"
source = "me"

[[forms]]
head = '=> {name} (?=\{)'
body = "json"
begins = "="
"""


class Result(NamedTuple):
    stdout: bytes
    stderr: str
    returncode: int


def run(*arguments: str | Path, text: str | bytes = b"") -> Result:
    """Run a command in this process, with files in place of the descriptors that it reads and writes."""
    saved = os.dup(0), os.dup(1)
    with TemporaryFile() as given, TemporaryFile() as printed, redirect_stderr(io.StringIO()) as told:
        given.write(text.encode() if isinstance(text, str) else text)
        given.seek(0)
        os.dup2(given.fileno(), 0)
        os.dup2(printed.fileno(), 1)
        try:
            with pytest.raises(SystemExit) as left:
                main([str(argument) for argument in arguments], prog_name="callmark")
        finally:
            for descriptor, original in enumerate(saved):
                os.dup2(original, descriptor)
                os.close(original)
        printed.seek(0)
        assert isinstance(left.value.code, int)
        return Result(printed.read(), told.getvalue(), left.value.code)


def records(output: bytes) -> list[dict]:
    return [json.loads(line) for line in output.splitlines()]


def names(output: bytes) -> list[str]:
    return [record["name"] for record in records(output) if record["type"] == "call"]


def source_of(output: bytes) -> str:
    return "".join(record.get("text", record.get("raw", "")) for record in records(output))


def start(*arguments: str | Path, **streams: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *map(str, arguments)], bufsize=0, env=ENVIRONMENT, **streams)


def next_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([process.stdout], [], [], DEADLINE_SECONDS)[0], f"nothing came after {line!r}"
        byte = os.read(process.stdout.fileno(), 1)
        assert byte, f"the output ended after {line!r}"
        line += byte
    return line


def next_record(process: subprocess.Popen[bytes], wanted: str) -> dict:
    while True:
        record = json.loads(next_line(process))
        if record["type"] == wanted:
            return record


def run_on_terminal(*arguments: str | Path, columns: int = 100, **environment: str) -> tuple[int, str]:
    main_end, terminal_end = os.openpty()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=terminal_end,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT | {"TERM": "xterm-256color", "COLUMNS": str(columns)} | environment,
    )
    os.close(terminal_end)
    output = b""
    while True:
        try:
            piece = os.read(main_end, 65_536)
        except OSError:  # how Linux says that the other end was closed
            break
        if not piece:
            break
        output += piece
    os.close(main_end)
    assert process.stderr
    with process.stderr as errors:
        assert errors.read() == b""
    return process.wait(DEADLINE_SECONDS), output.decode().replace("\r\n", "\n")


def plain(output: str) -> str:
    """Return terminal output without colours, and without the blanks that fill a line."""
    return re.sub(r" +$", "", re.sub(r"\x1b\[[0-9;]*m", "", output), flags=re.MULTILINE)


# --- the wire form ---


def test_piped_output_is_the_wire_form_of_the_events() -> None:
    parser = Parser()
    events: list[Event] = [*parser.feed(GREETING), *parser.finish()]
    result = run("parse", "-", text=GREETING)
    assert result.stdout.splitlines() == [msgspec.json.encode(event) for event in events]
    assert result.stderr == ""
    assert result.returncode == 0


def test_the_sample_gives_its_calls_in_order() -> None:
    result = run("parse", SAMPLE)
    assert names(result.stdout) == [
        "get_weather",
        "get_weather",
        "add_item",
        "write_note",
        "查询车票",
        "book_hotel",
        "search_flights",
        "write_file",
        "convert_currency",
        "set_reminder",
        "opening_hours",
        "opening_hours",
        "find_restaurant",
        "book_table",
        "get_timetable",
        "get_timetable",
        "translate",
        "send_mail",
        "list_mail",
    ]
    calls = [record for record in records(result.stdout) if record["type"] == "call"]
    assert list(dict.fromkeys(call["dialect"] for call in calls)) == [
        *("call", "hermes", "qwen_xml", "glm", "mistral", "deepseek", "kimi_k2", "gemma4", "toolify")
    ]
    assert [call["name"] for call in calls if call["repairs"]] == []


def test_the_sample_keeps_what_stands_in_its_arguments() -> None:
    calls = [record for record in records(run("parse", "--calls", SAMPLE).stdout) if record["type"] == "call"]
    arguments = {call["name"]: call["arguments"] for call in calls}
    assert arguments["add_item"] == {
        "name": "Mia's jacket, the blue one",
        "count": 2,
        "postcode": "0150",
        "shop": "https://example.org/s?q=rain&size=m",
    }
    assert arguments["write_note"]["body"].endswith("(both)] and )] the rest\n```\nraw ```\n")
    assert arguments["查询车票"]["备注"] == "他说“要靠窗的，谢谢”"
    assert "</tool_call>" in arguments["search_flights"]["note"]
    assert "a literal </parameter> in" in arguments["write_file"]["content"]
    assert arguments["write_file"]["overwrite"] is True
    assert arguments["translate"]["text"] == 'Dagens fiskesuppe, {liten} eller "stor"'
    assert arguments["send_mail"]["body"] == "The form ends in </args_json></function_call>."


def test_the_sample_tells_its_problems() -> None:
    problems = [record for record in records(run("parse", SAMPLE).stdout) if record["type"] in ("malformed", "notice")]
    assert [problem["code"] for problem in problems if problem["type"] == "notice"] == [
        "marker-in-reasoning",
        "marker-in-quote",
        "marker-in-code",
        "marker-in-fence",
        "marker-in-fence",
    ]
    broken = [problem for problem in problems if problem["type"] == "malformed"]
    assert [problem["name"] for problem in broken] == ["book_hotel", "save_summary"]
    assert broken[-1]["code"] == "unclosed-marker"


def test_nothing_of_the_sample_is_lost() -> None:
    assert source_of(run("parse", SAMPLE).stdout) == SAMPLE.read_text(encoding="utf-8")


def test_calls_leaves_only_calls() -> None:
    assert [record["type"] for record in records(run("parse", "--calls", text=GREETING).stdout)] == ["call"]


def test_text_is_the_visible_text_as_it_is() -> None:
    result = run("parse", "--text", text="<think>hm</think>" + GREETING.replace("\n", "\r\n"))
    assert result.stdout == b"Hi!  done\r\n"


# --- exit codes ---


def test_exit_code_is_one_where_there_is_no_call() -> None:
    assert run("parse", "-", text="no call, only [1] prose\n").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["parse", "no-such-file"], "no-such-file: No such file or directory"),
        (["parse", "/"], "/: Is a directory"),
        (["parse", "--dialect", "klingon"], "call, hermes, qwen_xml"),
        (["parse", "--dialect", "no-such.toml"], "no-such.toml: No such file or directory"),
        (["parse", "--tools", "no-such.json"], "no-such.json: No such file or directory"),
        (["parse", "--json", "--text"], "--json prints events and --text prints text: expected one of them"),
        (["parse", "--calls", "--text"], "--calls prints calls and --text prints text: expected one of them"),
        (["parse", "--strict", "--salvage"], "--strict reads less and --salvage more: expected one of them"),
        (["explain", "--strict", "--salvage"], "expected one of them, found both"),
        (["parse", "--tools", "-"], "--tools - and FILE are both standard input: expected a file for one of them"),
        (["render", "--tools", "-"], "--tools - and FILE are both standard input"),
        (["convert", "--to", "hermes", "--tools", "-"], "--tools - and FILE are both standard input"),
        (["explain", "--code", "nested-marker", "--json"], "expected it without --json and FILE"),
        (["explain", "--code", "nested-marker", "answer.txt"], "expected it without --json and FILE"),
        (["parse", ""], "expected a file, found an empty name"),
        (["parse", "--follow"], "--follow wants a file"),
        (["parse", "--allow", "everything"], "everything"),
        (["grammar", "klingon"], "call, hermes, qwen_xml"),
        (["detect", "no-such-file"], "no-such-file: No such file or directory"),
        (["explain", "no-such-file"], "no-such-file: No such file or directory"),
        (["explain", "--dialect", "klingon"], "call, hermes, qwen_xml"),
        (["explain", "--code", "no-such-code"], "expected a code (unclosed-marker, "),
        (["pars"], "parse"),
    ],
)
def test_misuse_is_exit_code_two_and_a_message(arguments: list[str], told: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert told in result.stderr
    assert result.stdout == b""


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"{nonsense", "(byte 1)"),
        (b'"\xff"', "found: Invalid UTF-8"),
        (b"[" * 100_000, "found"),
        (b"", "found nothing"),
        (b'[{"name": "f",', "found that it ends too soon"),
        (b'["\\ud800"]', "found half of a surrogate pair in a string"),
        (b"42", "found"),
        (b"null", "found null"),
        (b'[{"nothing": 1}]', "found"),
    ],
)
def test_a_bad_tools_file_is_misuse(tmp_path: Path, content: bytes, found: str) -> None:
    tools = tmp_path / "tools.json"
    tools.write_bytes(content)
    result = run("parse", "--tools", tools)
    assert result.returncode == 2
    assert f"{tools}: " in result.stderr
    assert "expected" in result.stderr
    assert found in result.stderr


def test_a_bad_dialect_file_is_misuse(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("name = 1")
    result = run("parse", "--dialect", path)
    assert result.returncode == 2
    assert str(path) in result.stderr


def test_a_plugin_that_cannot_be_imported_is_a_failure_and_not_a_text_without_calls(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothere")
    installed = tmp_path / "broken-1.0.dist-info"
    installed.mkdir()
    (installed / "entry_points.txt").write_text("[callmark.dialects]\nacme = broken:ACME\n")
    result = subprocess.run(
        [*COMMAND, "parse"],
        input=GREETING.encode(),
        capture_output=True,
        env=ENVIRONMENT | {"PYTHONPATH": str(tmp_path)},
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.decode() == (
        "Error: entry point acme: expected broken:ACME to be importable, found ModuleNotFoundError: "
        "No module named 'nothere'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "closed", "told"),
    [
        (["parse"], 0, "standard input"),
        (["parse"], 1, "standard output"),
        (["--help"], 1, "standard output"),
        (["--version"], 1, "standard output"),
        (["parse", "--help"], 1, "standard output"),
    ],
)
def test_a_closed_stream_is_told(arguments: list[str], closed: int, told: str) -> None:
    result = subprocess.run(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=lambda: os.close(closed),
        timeout=DEADLINE_SECONDS,
        env=ENVIRONMENT,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.decode() == f"Error: {told}: Bad file descriptor\n"


@pytest.mark.parametrize("arguments", [("parse", SAMPLE), ("--help",), ("--version",), ("parse", "--help")])
def test_a_full_disk_is_told(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        process = start(*arguments, stdout=full.fileno(), stderr=subprocess.PIPE)
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 2
    assert errors == b"Error: input or output: No space left on device\n"


@pytest.mark.parametrize("arguments", [("parse", "no-such-file"), ("no-such-command",)])
def test_what_cannot_be_told_has_its_exit_code_all_the_same(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        process = start(*arguments, stdout=subprocess.PIPE, stderr=full.fileno())
        process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 2


# --- bytes ---


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x\xff\xfe [1] \xed\xa0\x80 \xc3", "x\ufffd\ufffd [1] \ufffd\ufffd\ufffd \ufffd"),
        (b"\xef\xbb\xbfHi", "Hi"),
        (b"\xef\xbb", "\ufffd"),
        (b"a\r\nb\rc\0", "a\r\nb\rc\0"),
        ("天气 🚆 ".encode(), "天气 🚆 "),
    ],
)
def test_bytes_that_are_no_text_never_raise(data: bytes, text: str) -> None:
    result = run("parse", text=data)
    assert (source_of(result.stdout), result.stderr, result.returncode) == (text, "", 1)
    assert run("parse", "--text", text=data).stdout.decode() == text


def test_a_bad_byte_in_an_argument_is_a_replacement_character() -> None:
    result = run("parse", "--calls", text=b'[CALL: f({"a": "\xff"})]')
    assert records(result.stdout)[0]["arguments"] == {"a": "\ufffd"}


# --- streams ---


def test_an_event_is_printed_before_the_input_ends() -> None:
    with start("parse", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        data = GREETING.replace("Mia", "天气").encode()
        middle = data.index("天".encode()) + 1
        process.stdin.write(data[:4])
        assert next_record(process, "text")["text"].startswith("Hi")
        process.stdin.write(data[4:middle])
        assert next_record(process, "call-start")["name"] == "greet"
        process.stdin.write(data[middle:])
        assert next_record(process, "call")["arguments"] == {"who": "天气"}
        process.stdin.close()
        assert process.stdout
        assert source_of(process.stdout.read()).endswith("done\n")
    assert process.returncode == 0


def test_text_is_printed_before_the_input_ends() -> None:
    with start("parse", "--text", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(b"Hi!\n")
        assert next_line(process) == b"Hi!\n"
        process.stdin.close()
    assert process.returncode == 1


def test_a_pipe_that_does_not_block_is_read_to_its_end() -> None:
    reading_end, writing_end = os.pipe()
    os.set_blocking(reading_end, False)
    with start("parse", "-", stdin=reading_end, stdout=subprocess.PIPE) as process:
        os.close(reading_end)
        for piece in ('[CALL: one({"a": 1})]', '[CALL: two({"a": 1})]'):
            os.write(writing_end, piece.encode())
            assert next_record(process, "call")["name"] == piece[7:10]
        os.close(writing_end)
    assert process.returncode == 0


def test_follow_reads_a_growing_file_until_it_is_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "growing.txt"
    path.write_text("")
    with start("parse", "--follow", path, stdout=subprocess.PIPE) as process, path.open("ab", buffering=0) as file:
        for piece in ('[CALL: one({"a": 1})]', '[CALL: two({"a": 1})]'):
            file.write(piece.encode())
            assert next_record(process, "call")["name"] == piece[7:10]
        file.write(b"and then [CA")
        assert next_record(process, "text")["text"].startswith("and")
        process.send_signal(signal.SIGINT)
        assert process.stdout
        assert source_of(process.stdout.read()).endswith("[CA")
    assert process.returncode == 0


def followed(monkeypatch: pytest.MonkeyPatch, path: Path, meanwhile: Callable[[], bool]) -> Iterator[str]:
    """Follow a file: where it waits for more, `meanwhile` runs, and False from there interrupts it."""

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if not meanwhile():
                self.set()
            return True

    module = importlib.import_module("callmark.cli.files")
    monkeypatch.setattr(module, "threading", SimpleNamespace(Event=Event))
    monkeypatch.setattr(module.signal, "signal", lambda *_: None)
    pieces: Iterator[str] = module.chunks(str(path), follow=True)
    return pieces


def test_a_file_that_does_not_grow_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "growing.txt"
    path.write_text("one")

    def meanwhile() -> bool:
        return path.read_text() == "one" and path.write_text("one two") > 0

    assert list(followed(monkeypatch, path, meanwhile)) == ["one", " two", ""]


def test_a_pipe_that_is_empty_for_now_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reading_end, writing_end = os.pipe()
    os.set_blocking(reading_end, False)

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            os.write(writing_end, b"one")
            os.close(writing_end)
            return True

    module = importlib.import_module("callmark.cli.files")
    monkeypatch.setattr(module, "threading", SimpleNamespace(Event=Event))
    monkeypatch.setattr(module, "open_named", lambda *_, **__: os.fdopen(reading_end, "rb", 0))
    assert list(module.chunks("-")) == ["one", ""]


def test_a_named_pipe_that_is_empty_for_now_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writing_end = os.open(path, os.O_RDWR)  # which waits for no reader
    os.write(writing_end, b"one")

    more = ["two"]
    pieces = followed(monkeypatch, path, lambda: bool(more) and path.write_text(more.pop()) > 0)
    assert next(pieces) == "one"
    os.close(writing_end)
    assert list(pieces) == ["two", ""]


def test_only_the_first_interrupt_ends_what_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "growing.txt"
    path.write_text("one")
    pieces = importlib.import_module("callmark.cli.files").chunks(str(path), follow=True)
    assert next(pieces) == "one"
    signal.raise_signal(signal.SIGINT)
    assert list(pieces) == [""]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_follow_fails_where_a_file_is_cut_short(tmp_path: Path) -> None:
    """Whatever was found until then: what the model wrote later is not read, as after any failure of an input."""
    path = tmp_path / "growing.txt"
    text = GREETING + "[CALL: f("
    path.write_text(text)
    with start("parse", "--follow", path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        next_record(process, "call")
        path.write_text("Hi")
        output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert records(output)[-1]["raw"] == "[CALL: f("
    assert errors.decode() == f"Error: {path}: was cut short while it was followed\n"
    assert process.returncode == 2


@pytest.mark.parametrize("behind", ["replace", "unlink"])
def test_follow_fails_where_another_file_takes_the_name(tmp_path: Path, behind: str) -> None:
    path, other = tmp_path / "growing.txt", tmp_path / "other.txt"
    path.write_text("Hello, this is text.\n")
    with start("parse", "--follow", path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        next_record(process, "text")
        if behind == "replace":
            other.write_text("Hello, this is text. And more.\n")
            other.replace(path)
        else:
            path.unlink()
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert errors.decode() == f"Error: {path}: was replaced or removed while it was followed\n"
    assert process.returncode == 2


@pytest.mark.parametrize(("command", "text"), [("parse", GREETING), ("explain", "[CALL: f({'a': 1})] x\n")])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, command: str, text: str) -> None:
    path = tmp_path / "long.txt"
    path.write_text(text * 20_000)
    with start(command, path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        next_line(process)
        assert process.stdout
        process.stdout.close()
        assert process.stderr
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_an_interrupt_is_quiet() -> None:
    with start("parse", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(b"Hello, this is text.\n")
        next_record(process, "text")
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 130
        assert process.stderr
        assert process.stderr.read() == b""


def test_plain_prose_needs_no_heavy_imports() -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "callmark", "parse", "--json"],
        input=b"Nothing but prose, `code` and (brackets).\n",
        capture_output=True,
        env=ENVIRONMENT,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.decode().splitlines()}
    assert result.returncode == 1
    assert "callmark.events" in imported
    assert imported.isdisjoint({"lark", "regex", "rich", "asyncio"})


# --- options ---


def test_dialect_names_what_to_listen_for() -> None:
    text = '[CALL: a({"i": 1})] <tool_call>{"name": "b", "arguments": {}}</tool_call>'
    assert names(run("parse", text=text).stdout) == ["a", "b"]
    assert names(run("parse", "--dialect", "hermes", text=text).stdout) == ["b"]
    assert names(run("parse", "--dialect", "hermes", "--dialect", "call", text=text).stdout) == ["a", "b"]
    assert names(run("parse", "--dialect", "-hermes", text=text).stdout) == ["a"]


def test_a_dialect_of_ones_own_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "arrow.toml"
    path.write_text(OWN_DIALECT)
    result = run("parse", "--calls", "--dialect", path, text='go => walk {"steps": 3}')
    assert [(record["name"], record["arguments"]) for record in records(result.stdout)] == [("walk", {"steps": 3})]
    other = path.rename(tmp_path / "arrow")
    for command in (["parse"], ["convert", "--to", "call"], ["grammar"], ["serve", "--upstream", "http://h/v1"]):
        given = [other] if command == ["grammar"] else ["--dialect", other]
        refused = run(*command, *given)
        assert (refused.stdout, refused.returncode) == (b"", 2)
        assert f"expected a dialect, or a file whose name ends with .toml, found the file '{other}'" in refused.stderr


def test_a_file_with_the_name_of_a_dialect_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("call", "default"):
        (tmp_path / name).write_text(OWN_DIALECT)
        assert names(run("parse", "--dialect", name, text=GREETING).stdout) == ["greet"]


def test_strict_reads_only_what_is_in_the_grammar() -> None:
    text = '[CALL: f({"a": 1,})]'
    assert names(run("parse", text=text).stdout) == ["f"]
    assert names(run("parse", "--strict", text=text).stdout) == []


def test_salvage_is_accepted() -> None:
    assert names(run("parse", "--salvage", text=GREETING).stdout) == ["greet"]


def test_tools_type_the_arguments(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"zip": {"type": "string"}}}
    tools.write_text(json.dumps([{"name": "f", "description": "", "parameters": schema}]))
    result = run("parse", "--calls", "--tools", tools, text="[CALL: f(zip=123)]")
    assert records(result.stdout)[0]["arguments"] == {"zip": "123"}


def test_allow_takes_calls_in_a_context() -> None:
    text = "> [CALL: q()]\n`[CALL: c()]`\n<think>[CALL: r()]</think>\n```\n[CALL: f()]\n```\n"
    assert names(run("parse", text=text).stdout) == []
    assert names(run("parse", "--allow", "quote", "--allow", "fence", text=text).stdout) == ["q", "f"]
    assert names(run("parse", "--allow", "code", "--allow", "reasoning", text=text).stdout) == ["c", "r"]


def test_allow_takes_calls_in_fences_that_hold_nothing_else() -> None:
    text = "```\n[CALL: f()]\n```\n\n```\nas in [CALL: g()]\n```\n"
    assert names(run("parse", "--allow", "sole-fence", text=text).stdout) == ["f"]
    assert names(run("parse", "--allow", "sole-fence", "--allow", "fence", text=text).stdout) == ["f", "g"]


def test_nonce_is_asked_for() -> None:
    assert names(run("parse", "--nonce", "7f3a", text="[CALL: a()] [CALL#7f3a: b()]").stdout) == ["b"]


def test_reasoning_may_have_begun_in_the_prompt() -> None:
    text = "plan [CALL: f()] </think> Hello [CALL: g()]"
    assert names(run("parse", "--starts-in-reasoning", text=text).stdout) == ["g"]


# --- the other commands ---


def test_detect_names_dialects() -> None:
    result = run("detect", text=GREETING)
    assert (result.stdout, result.returncode) == (b"call\n", 0)
    assert run("detect", SAMPLE).stdout.decode().split() == list(callmark.detect(SAMPLE.read_text(encoding="utf-8")))
    result = run("detect", text="prose")
    assert (result.stdout, result.returncode) == (b"", 1)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_file_in_an_encoding_that_its_mark_tells_is_read(tmp_path: Path, encoding: str) -> None:
    """A shell of Windows writes UTF-16 where output goes to a file."""
    text = "Grüße 👋 [CALL: greet(who=Mia)]"
    file = tmp_path / "answer.txt"
    file.write_bytes((b"\xfe\xff" if encoding == "utf-16-be" else b"") + text.encode(encoding))
    for result in (run("parse", file), run("parse", text=file.read_bytes())):
        first, *_, call = records(result.stdout)
        assert (first["text"], call["arguments"], call["span"]["start"]) == ("Grüße 👋 ", {"who": "Mia"}, 8)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_tools_in_an_encoding_that_their_mark_tells_are_read(tmp_path: Path, encoding: str) -> None:
    text = '[{"name": "grüße", "parameters": {}}]'
    file = tmp_path / "tools.json"
    file.write_bytes((b"\xfe\xff" if encoding == "utf-16-be" else b"") + text.encode(encoding))
    for result in (run("prompt", file), run("prompt", "-", text=file.read_bytes())):
        assert "- grüße({})" in result.stdout.decode()
    file.write_bytes(text[:20].encode("utf-16"))
    assert run("prompt", file).stderr == f"Error: {file}: expected tools as JSON, found that it ends too soon\n"


@pytest.mark.parametrize("data", [b"\xff", b"\xfe", b"\xff\xfex", b"\xffx"])
def test_half_a_mark_or_half_a_character_is_no_error(data: bytes) -> None:
    result = run("parse", "--text", text=data)
    assert (result.returncode, result.stderr) == (1, "")
    assert "\ufffd" in result.stdout.decode()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Grüße 👋".encode("utf-16"), "Grüße 👋"),
        ("\ufeffGrüße 👋".encode("utf-16-be"), "Grüße 👋"),
        ("\ufeffa\ufeffb".encode(), "a\ufeffb"),
        (b"\xff\xfe", ""),
        (b"\xffa", "\ufffda"),
        (b"\xff", "\ufffd"),
        (b"a\xc3", "a\ufffd"),
        (b"", ""),
    ],
)
def test_bytes_that_arrive_one_by_one_are_the_same_text(
    monkeypatch: pytest.MonkeyPatch, data: bytes, text: str
) -> None:
    module = importlib.import_module("callmark.cli.files")
    monkeypatch.setattr(module, "_arriving", lambda path, follow: (bytes([byte]) for byte in data))
    assert "".join(module.chunks("-")) == text


@pytest.mark.parametrize("dialect", dialects(), ids=lambda dialect: dialect.name)
def test_grammar_prints_a_grammar_that_stands_alone(dialect: callmark.dialects.Dialect) -> None:
    result = run("grammar", dialect.name)
    assert (result.returncode, result.stderr) == (0, "")
    assert b"%import" not in result.stdout
    assert result.stdout.endswith(b"\n")


@pytest.mark.parametrize(
    ("grammar", "told"),
    [
        ("marker: call\ncall: (\n", ": "),
        ('marker: call\ncall: "=>" thing\n', ": Rule 'thing' used but not defined"),
        ('marker: "=>"\n', ": expected the rules marker, call, found no call"),
    ],
)
def test_a_broken_grammar_of_ones_own_is_a_failure(tmp_path: Path, grammar: str, told: str) -> None:
    """It is printed all the same: where the error names a line, it is one of those."""
    path = tmp_path / "arrow.toml"
    path.write_text('grammar = "arrow.lark"\n' + OWN_DIALECT)
    path.with_suffix(".lark").write_text(grammar)
    result = run("grammar", path)
    assert (result.returncode, result.stdout.decode()) == (2, grammar)
    assert f"dialect arrow: grammar: {path.with_suffix('.lark')}{told}" in result.stderr


def test_dialects_are_listed_for_programs() -> None:
    columns = [line.split("\t") for line in run("dialects").stdout.decode().splitlines()]
    assert [row[0] for row in columns] == [dialect.name for dialect in dialects()]
    assert {row[1] for row in columns} == {"explicit", "by name"}
    rows = records(run("dialects", "--json").stdout)
    assert [(row["name"], row["explicit"]) for row in rows] == [(row.name, row.explicit) for row in dialects()]


def test_explain_shows_what_was_seen_expected_and_done(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    path.write_text("Sure.\n[CALL: f({'城' \"x\"})] [CALL: g({a: 1})]\n", encoding="utf-8")
    result = run("explain", path)
    shown = result.stdout.decode().replace(str(path), "answer.txt")
    assert (result.returncode, shown) == (
        0,
        "answer.txt:2:15  malformed unexpected-text f (call)\n"
        "  2 │ [CALL: f({'城' \"x\"})] [CALL: g({a: 1})]\n"
        "    │                ^\n"
        '  seen      "\n'
        '  expected  ":"\n'
        "  done      not read as a call; reading went on in line 2, behind 20 characters\n"
        "\n"
        "answer.txt:2:32  repair bare-key g (call)\n"
        "  2 │ [CALL: f({'城' \"x\"})] [CALL: g({a: 1})]\n"
        "    │                                 ^\n"
        "  seen      a\n"
        "  expected  a key in double quotes\n"
        "  done      read as a call: a key without quotes was read\n"
        "\n"
        "More: callmark explain --code bare-key, or unexpected-text\n",
    )


def test_explain_says_why_there_is_no_call() -> None:
    result = run("explain", text='Like so:\n[CALL: {"city": "Oslo"}]\n')
    assert result.returncode == 0
    assert result.stdout.decode().startswith(
        "standard input:2:8  near-miss (call)\n"
        '  2 │ [CALL: {"city": "Oslo"}]\n'
        "    │        ^\n"
        '  seen      {"city": "Oslo"}]\n'
        "  expected  a name\n"
        "  done      left as text; the dialect call looks like [CALL: name("
    )
    assert result.stdout.endswith(b")]\n\n")  # there is no code of which more could be told


def test_explain_says_where_there_is_nothing_to_say() -> None:
    result = run("explain", text=GREETING)
    assert (result.returncode, result.stdout.decode()) == (
        1,
        "Every call is well-formed, and nothing else looks like one.\n",
    )


def test_explain_says_where_there_is_no_call() -> None:
    result = run("explain", text="Hello.")
    assert (result.returncode, result.stdout.decode()) == (1, "There is no call, and nothing looks like one.\n")


def test_explain_takes_the_options_of_reading() -> None:
    text = "[CALL: f({'a': 1})] `[CALL: g()]`"
    assert [record["code"] for record in records(run("explain", "--json", text=text).stdout)] == [
        "single-quotes",
        "marker-in-code",
    ]
    found = records(run("explain", "--json", "--strict", "--allow", "code", text=text).stdout)
    assert [(record["kind"], record["code"], record["line"], record["column"]) for record in found] == [
        ("malformed", "unexpected-text", 1, 11)
    ]
    assert run("explain", "--json", "--dialect", "hermes", text="prose").stdout == b""


def test_explain_prints_utf8_whatever_the_locale(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text('[CALL: 天气({"a" 1})]', encoding="utf-8")
    process = subprocess.run(
        [*COMMAND, "explain", path],
        capture_output=True,
        env=ENVIRONMENT | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        timeout=DEADLINE_SECONDS,
        check=True,
    )
    assert "│ [CALL: 天气(" in process.stdout.decode()


def test_explain_never_lets_the_model_command_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "nasty.txt"
    nasty = "\x1b]0;x\x07\x9b31m\u202e\u200f\u2028"
    path.write_text(f'{nasty}[CALL: f({{"{nasty}" 1}})] [CALL: {nasty}')
    _, output = run_on_terminal("explain", path)
    bare = plain(output)
    assert "\x1b" not in bare
    assert not {"\x07", "\x9b", "\u202e", "\u200f", "\u2028"} & set(bare)
    assert "malformed unexpected-text f (call)" in bare or "malformed control-character" in bare


def test_every_code_is_explained_with_its_example() -> None:
    for name in (*MALFORMED_CODES, *NOTICE_CODES, *REPAIR_CODES):
        result = run("explain", "--code", name)
        assert (result.returncode, result.stderr) == (0, "")
        code = explained(name)
        assert result.stdout.decode().startswith(f"{name} ({code.kind})\n  {code.meaning}\n  {code.advice}\n\n  │ ")
    shown = run("explain", "--code", "single-quotes").stdout.decode().split("\n")
    assert shown[-3:] == ["  │ [CALL: look({'at': 1})]", '  read as a call of look with {"at": 1}', ""]
    shown = run("explain", "--code", "marker-in-quote").stdout.decode().split("\n")
    assert shown[-3:] == ["  │ > [CALL: look()]", "  marker-in-quote: a marker in a block quote is not a call", ""]


def test_version_and_help_are_printed() -> None:
    runner = CliRunner()
    assert version("callmark") in runner.invoke(main, ["--version"]).output
    for command in ("parse", "detect", "explain", "grammar", "dialects"):
        assert "Example: " in runner.invoke(main, [command, "-h"]).output
    assert "Example: " in runner.invoke(main, ["--help"]).output


def test_importing_the_main_module_runs_nothing() -> None:
    assert importlib.import_module("callmark.__main__").main is main


# --- terminals ---


def test_a_terminal_shows_calls_text_and_problems() -> None:
    code, output = run_on_terminal("parse", SAMPLE)
    shown = plain(output)
    assert code == 0
    assert "\x1b[2m" in output
    assert '▶ get_weather  call 7:1\n    city  "Oslo"\n    days  3\n' in shown
    assert "    content    def total(prices: list[float]) -> float:\n" in shown
    assert "▶ get_timetable  kimi_k2" in shown
    assert "functions.get_timetable:0" in shown
    assert "! marker-in-quote  26:3  " in shown
    assert '  26 │ > [CALL: book_train({"train": 601' in shown
    assert "     │   ^~~" in shown
    assert "✗ unclosed-marker  save_summary  " in shown
    assert shown.endswith("\n19 calls · 2 malformed · 5 notices\n")
    assert "\n\n\n" not in shown


def test_colours_can_be_declined() -> None:
    code, output = run_on_terminal("parse", SAMPLE, NO_COLOR="1")
    assert code == 0
    assert "▶ get_weather" in plain(output)
    assert "\x1b[1;32m" not in output
    assert "\x1b[33m" not in output


def test_a_terminal_gets_json_where_it_is_asked_for() -> None:
    code, output = run_on_terminal("parse", "--json", "--calls", SAMPLE)
    assert code == 0
    assert len(names(output.encode())) == 19


def test_a_terminal_shows_only_calls_where_it_is_asked_to() -> None:
    _, output = run_on_terminal("parse", "--calls", SAMPLE)
    assert plain(output).count("▶ ") == 19
    assert "Sure" not in output
    assert "malformed" not in output


def test_a_terminal_shows_only_text_where_it_is_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("<think>hm</think>\x1b[31m" + GREETING)
    assert run_on_terminal("parse", "--text", path) == (0, "␛[31mHi!  done\n")


def test_a_terminal_never_obeys_the_model(tmp_path: Path) -> None:
    path = tmp_path / "nasty.txt"
    nasty = "\x1b]0;x\x07 \x9b31m \u202e [red]x[/] :smile:"
    path.write_text(
        f"{nasty}\n[CALL: f({{'{nasty}': '{nasty}', 'k': ['\x9b']}})]\n> {nasty} [CALL: q()] {nasty}\n<think>{nasty}"
    )
    _, output = run_on_terminal("parse", path)
    bare = plain(output)
    assert "\x1b" not in bare
    assert not {"\x07", "\x9b", "\u202e", "\u200f", "\u2028"} & set(bare)
    assert "[red]x[/] :smile:" in bare


@pytest.mark.parametrize(
    "command", [["parse", "--json"], ["convert", "--to", "hermes"], ["render"], ["prompt"], ["lint"]]
)
def test_a_terminal_obeys_nothing_that_another_command_prints(tmp_path: Path, command: list[str]) -> None:
    nasty = "\x1b]0;x\x07\x9b31m\u202e\u200f\u2028\x7f"
    path = tmp_path / "nasty"
    path.write_text(
        json.dumps([{"name": "f", "arguments": {nasty: nasty}, "parameters": {"properties": {nasty: {}}}}])
        if command[0] in ("render", "prompt", "lint")
        else f"{nasty} [CALL: f({{'k': '{nasty}'}})]\n"
    )
    _, output = run_on_terminal(*command, path)
    assert not re.findall(r"[^\n\t -~\xa0-\u200d\u2010-\u2027\u202f-\u2065\u206a-\U0010ffff]", output)
    assert r"\u202e" in output
    if "--json" in command:
        assert source_of(output.encode()) == path.read_text()


def test_a_terminal_gets_the_lines_of_a_text_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("a\r\n[CALL: f()]\r\n", newline="")
    _, output = run_on_terminal("convert", "--to", "call", path)
    assert output == "a\n[CALL: f({})]\n"


def test_what_failed_is_told_without_what_a_terminal_obeys(tmp_path: Path) -> None:
    told = run("parse", tmp_path / "\x1b[31m\x9b").stderr
    assert told == f"Error: {tmp_path}/\\u001b[31m\\u009b: No such file or directory\n"
    path = tmp_path / "\x1b[31m"
    path.write_text('[CALL: f({"a" 1})]')
    assert run("explain", path).stdout.decode().startswith(f"{tmp_path}/␛[31m:1:15  malformed")
    properties = {"\x1b": {"type": "string", "format": "x"}}
    path.write_text(json.dumps([{"name": "f", "parameters": {"properties": properties}}]))
    assert run("grammar", "--tools", path).stderr == "not enforced: f.\\u001b: format\n"
    assert "extra argument (\\u001b[31m)" in run("parse", path, "\x1b[31m").stderr  # as `parse *` gives it
    assert "--host \\u001b[31m: expected a --token" in run("serve", "--host", "\x1b[31m").stderr


def test_values_are_shown_by_their_kind(tmp_path: Path) -> None:
    path = tmp_path / "values.txt"
    long = {"few": [1, 2], "numbers": list(range(40))}
    call = {
        "s": "天",
        "n": None,
        "b": True,
        "o": {"天": [1]},
        "long": long,
        "many": long["numbers"],
        "lines": "a\n\tb\r\n",
        "end": "one line\n",
    }
    path.write_text(
        f"[CALL: f({json.dumps(call)})][CALL: one()]\n"
        "<tool_call>{'name': 'fix', 'arguments': {'a': 1}}</tool_call>\nbye"
    )
    _, output = run_on_terminal("parse", path, columns=60)
    bare = plain(output)
    assert '    s      "天"\n    n      null\n    b      true\n    o      {"天": [1]}\n' in bare
    assert "    lines  a\n                   b\n    end" in bare
    assert '"few": [\n' in bare
    assert "many   [0, 1, 2, 3, " in bare
    assert '    end    "one line\\n"\n' in bare
    assert re.search(r"^▶ one  call 1:[0-9]+\n▶ fix  hermes 2:1\n    a  1\n    repaired: ", bare, re.MULTILINE)
    assert bare.endswith("\nbye\n\n3 calls · 1 repaired\n")


def test_a_long_key_is_cut_and_a_long_value_goes_on_in_the_next_row(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("[CALL: f({})]".format(json.dumps({"k" * 30: 1, "w": "x" * 50})))
    _, output = run_on_terminal("parse", path, columns=60)
    rows = plain(output).splitlines()
    assert rows[1:4] == [f"    {'k' * 19}…  1", f'    {"w":<20}  "{"x" * 33}', f'{"":<26}{"x" * 17}"']


def test_white_space_stays_between_texts_and_goes_around_calls(tmp_path: Path) -> None:
    path = tmp_path / "spaced.txt"
    path.write_text("Hello <think>hm</think> there.  \n\n\n[CALL: f()]\n\nBye.\n\n")
    _, output = run_on_terminal("parse", path)
    assert plain(output) == "Hello hm there.\n\n▶ f  call 4:1\n\nBye.\n\n1 call\n"


def test_repairs_are_told(tmp_path: Path) -> None:
    path = tmp_path / "repaired.txt"
    path.write_text("text\n[CALL: f({'a': 1,})]")
    _, output = run_on_terminal("parse", path)
    assert "    repaired: single-quotes 2:11, extra-comma 2:17\n" in plain(output)
    assert plain(output).endswith("1 call · 1 repaired\n")


def test_an_excerpt_is_cut_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("> " + "天" * 300 + "\t[CALL: q()] " + "x" * 300 + "\r\n\n> [CALL: r()]\n")
    code, output = run_on_terminal("parse", path, columns=50)
    lines = plain(output).splitlines()
    excerpt = next(index for index, line in enumerate(lines) if line.startswith("  1 │ …天"))
    assert "天 [CALL: q()] x" in lines[excerpt]
    assert lines[excerpt].endswith("…")
    before = lines[excerpt][: lines[excerpt].index("[")]
    assert lines[excerpt + 1].index("^") == len(before) + before.count("天")
    assert any("! marker-in-quote  3:3" in line for line in lines)
    assert code == 1


@pytest.mark.again
@pytest.mark.parametrize("columns", [100, 30])
@pytest.mark.parametrize(
    ("text", "line", "under"),
    [
        ("[CALL: f({'城' \"x\"})] bye", 1, '"x"'),
        ('Sure.\n[CALL: f(\n  {"a": 1,\n   "b" 2\n  })] done\n', 4, "2"),
        ('天气 [CALL: f({"' + "k" * 99 + '" 1})] ' + "x" * 99, 1, "1})]"),
        ('<tool_call>{"nme": "f"}</tool_call>', 1, "}</tool"),
        ('Hm.\r\n[CALL: f({"a": 1,\r\n"b": 2\r\n\r\n', 3, ""),
        ('[CALL: f({"a": 1,\n"b": "x\ny\n', 2, '"x'),
    ],
)
def test_the_caret_stands_where_the_message_says(
    tmp_path: Path, text: str, line: int, under: str, columns: int
) -> None:
    path = tmp_path / "broken.txt"
    path.write_bytes(text.encode())
    shown, explained = (plain(run_on_terminal(word, path, columns=columns)[1]) for word in ("parse", "explain"))
    rows = re.compile(rf"^  {line} │ (.*)\n    │ ( *)\^$", re.MULTILINE)
    found = rows.search(shown)
    assert found
    assert found[0] in explained
    before = len(found[2]) - found[1].count("城") - found[1].count("天") - found[1].count("气")
    assert found[1][before:].startswith(under)
    assert bool(under) == (before < len(found[1]))


def test_a_message_that_names_no_place_is_about_the_whole_marker(tmp_path: Path) -> None:
    path = tmp_path / "broken.txt"
    path.write_text("Hm. [CALL: f(a=1, a=2)] Yes.")
    _, output = run_on_terminal("parse", path)
    assert "  1 │ Hm. [CALL: f(a=1, a=2)] Yes.\n    │     ^~~~~~~~~~~~~~~~~~~\n" in plain(output)


def test_a_terminal_that_knows_no_unicode_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text('天 [CALL: f({"a": "天"})]')
    code, output = run_on_terminal("parse", path, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert code == 0
    assert "? f  call 1:3" in plain(output)


def test_the_dialects_are_a_table_on_a_terminal() -> None:
    code, output = run_on_terminal("dialects")
    assert code == 0
    assert re.match(r"name +listens +looks like and is written by\n", plain(output))
    assert re.search(r"^hermes +by default  <tool_call>\{", plain(output), re.MULTILINE)
    assert re.search(r"^react +by name ", plain(output), re.MULTILINE)
    assert [row["name"] for row in records(run_on_terminal("dialects", "--json")[1].encode())] == [
        dialect.name for dialect in dialects()
    ]


def test_every_problem_of_the_sample_has_its_line(tmp_path: Path) -> None:
    text = SAMPLE.read_text(encoding="utf-8")
    parser = Parser()
    events: list[Event] = [*parser.feed(text), *parser.finish()]
    _, output = run_on_terminal("parse", SAMPLE)
    broken = [event for event in events if isinstance(event, Malformed)]
    assert len(broken) == 2
    for event in broken:
        line = text.count("\n", 0, event.span.start) + 1
        column = event.span.start - (text.rfind("\n", 0, event.span.start) + 1) + 1
        assert f"✗ {event.code}  {event.name}  {line}:{column}  " in plain(output)
    assert any(isinstance(event, Text) and event.channel == "reasoning" for event in events)


def test_what_help_says_is_a_default_is_one():
    """What is not given is not handed on, so such defaults stand where they hold, and help says them once more."""
    held = {name: it.default for name, it in inspect.signature(export_grammar).parameters.items()}
    for settings in (Bounds(), ModelSettings()):
        held.update(msgspec.structs.asdict(settings))
    context = click.Context(main)
    commands = [main.get_command(context, name) for name in main.list_commands(context)]
    said = {
        (option.name, told[1])
        for command in commands
        for option in command.params
        if (told := re.search(r"\[default: (.*)\]", getattr(option, "help", None) or ""))
    }
    assert len(said) > 10
    for name, told in said:
        number = told.removesuffix(" MiB")
        assert held[name] == (int(number) * 2**20 if told != number else type(held[name])(told)), name
