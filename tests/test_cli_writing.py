"""The commands that write: prompt, render, convert and lint."""

from __future__ import annotations

import json
import re
import sys

import pytest

from callmark import export_grammar, protocol_prompt, render_call
from callmark.writing.lint import lint
from test_cli import run
from test_prompt import TOOLS


@pytest.fixture
def tools(tmp_path):
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS), encoding="utf-8-sig")  # as some editors write it
    return path


def test_prompt_prints_what_the_function_gives(tools):
    assert run("prompt", tools).stdout.decode() == protocol_prompt(TOOLS).text + "\n"
    options = (
        "--dialect",
        "hermes",
        "--style",
        "table",
        "--language",
        "zh-Hans",
        "--tool-choice",
        "translate",
        "--single",
    )
    expected = protocol_prompt(
        TOOLS, "hermes", style="table", language="zh-Hans", tool_choice="translate", parallel=False, reasoning=True,
        examples="inline",
    )  # fmt: skip
    printed = run("prompt", tools, *options, "--reasoning", "--examples", "inline")
    assert printed.stdout.decode() == expected.text + "\n"
    assert printed.returncode == 0
    assert "[CALL#7f3a: " in run("prompt", tools, "--nonce", "7f3a").stdout.decode()


def test_prompt_prints_messages_and_sizes(tools):
    lines = run("prompt", tools, "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == protocol_prompt(TOOLS).messages()
    prompt = protocol_prompt(TOOLS)
    characters = sum(len(message["content"]) for message in prompt.messages())
    assert run("prompt", tools, "--count").stdout.decode() == f"signature\t{characters}\t{prompt.tokens}\n"
    size = json.loads(run("prompt", tools, "--count", "--json").stdout)
    assert size == {"style": "signature", "characters": characters, "tokens": prompt.tokens}
    shorter = run("prompt", tools, "--count", "--budget", str(prompt.tokens - 1))
    assert shorter.stdout.decode().startswith("brief\t")


def test_prompt_takes_a_language_of_ones_own(tools, tmp_path, monkeypatch):
    from importlib.resources import files

    path = tmp_path / "own.toml"
    text = files("callmark.languages").joinpath("en.toml").read_text(encoding="utf-8")
    path.write_text(text.replace("# Tools", "# My tools"), encoding="utf-8")
    assert run("prompt", tools, "--language", path).stdout.startswith(b"# My tools\n")
    refused = run("prompt", tools, "--language", path.rename(tmp_path / "own")).stderr
    assert f"expected a language, or a file whose name ends with .toml, found the file '{tmp_path / 'own'}'" in refused
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zh-Hans").touch()
    assert run("prompt", tools, "--language", "zh-Hans").returncode == 0
    assert "language: expected one of en, zh-Hans, " in run("prompt", tools, "--language", "klingon").stderr


def test_prompt_counts_with_a_tokenizer(tools, tmp_path, monkeypatch):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))  # noqa: S106  # no password
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    words = sum(len(message["content"].split()) for message in protocol_prompt(TOOLS).messages())
    assert run("prompt", tools, "--count", "--tokenizer", path).stdout.decode().endswith(f"\t{words}\n")
    for other in ("{}", '["model"]', "7"):
        path.write_text(other, encoding="utf-8")
        assert "found JSON without a model" in run("prompt", tools, "--tokenizer", path).stderr
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert "pip install 'callmark[tokens]'" in run("prompt", tools, "--tokenizer", path).stderr


def test_prompt_says_what_is_wrong(tools, tmp_path):
    assert run("prompt", tools, "--style", "long").stderr.startswith("Error: style: expected one of schema")
    assert run("prompt", tmp_path / "none.json").returncode == 2
    broken = tmp_path / "broken.json"
    broken.write_text('[{"name": "f", "parameters": {"type": "nope"}}]', encoding="utf-8")
    assert "tool 'f': parameters.type" in run("prompt", broken).stderr


def test_render_takes_what_parse_prints(tools):
    text = 'Hi! [CALL: greet({"who": "Mia"})] [CALL: leave()]'
    calls = run("parse", text=text).stdout
    assert run("render", text=calls).stdout.decode() == '[CALL: greet({"who": "Mia"})]\n[CALL: leave({})]\n'
    assert b'"name": "leave"' in run("render", "--dialect", "hermes", text=calls).stdout
    own = run("render", "--nonce", "7f3a", "--tools", tools, text='\n{"name": "f", "arguments": {"a": 1}}\n')
    assert own.stdout == b'[CALL#7f3a: f({"a": 1})]\n'
    assert run("render", text="").stdout == b""
    assert run("render", text='{"name": "f"}\n \t\n{"name": "g"}\n').stdout == b"[CALL: f({})]\n[CALL: g({})]\n"
    for line, expected in (
        ("{", "line 1: expected a call as JSON"),
        ("7", "line 1: expected an object"),
        ("{}", "line 1: expected an object with a name"),
        ('{"name": "f"}\n["x"]', "line 2, call 1: expected an object with a name"),
        ('{"name": "f", "arguments": "x"}', "line 1: expected arguments as JSON"),
        ('{"name": "f", "parameters": {"a": 1}}', "line 1: expected arguments, found parameters"),
        ('{"name": "f", "params": {"a": 1}}', "line 1: expected arguments, found params"),
        ('{"name": "f", "args": {"a": 1}}', "line 1: expected arguments, found args"),
        ("[" * 5000, "line 1: expected a call as JSON"),
        ('{"name": "f"}\n\n{"name": "g h"}', "Error: line 3: dialect call cannot express this call of 'g h'"),
        ('{"name": "f"}\n{"name": "g", "arguments": [1]}', "Error: line 2: arguments: expected a JSON object"),
        ('{"name": "f"}\n[{"name": "g"},\t{"name": 7}]', "Error: line 2, call 2: name: expected a str"),
        ('[\n{"name": "f"},\n7]', "Error: line 1, call 2: expected an object with a name"),
    ):
        failed = run("render", text=line)
        assert failed.returncode == 2
        assert expected in failed.stderr
    for option in (("--dialect", "hermse"), ("--dialect", "hermes", "--nonce", "x")):  # which no line is to blame for
        assert "line" not in run("render", *option, text='{"name": "f"}').stderr


@pytest.mark.parametrize("char", ["\u2028", "\x85"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_render_cuts_at_line_breaks_alone(char, end):
    """Others stand in strings of JSON as they are, whatever Python's `splitlines` takes for the end of a line."""
    calls = [f'[CALL: f({{"a": "x{char}y"}})]', "[CALL: g({})]"]
    printed = run("parse", "--calls", text=" ".join(calls)).stdout.decode()
    assert char in printed
    text = printed.replace("\n", end)
    assert run("render", text=text).stdout.decode() == "\n".join([*calls, ""])


@pytest.mark.parametrize("command", [["convert", "--to", "hermes"], ["render"]], ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"name": "Z\xfcrich"}', "UTF-8, found 0xfc at byte 11: invalid start byte"),
        (b"x" * 65_535 + "日".encode()[:2] + b"y", "UTF-8, found 0xe697 at byte 65535: invalid continuation byte"),
        ("🌞".encode()[:3], "UTF-8, found 0xf09f8c at byte 0: unexpected end of data"),
        ("ab".encode("utf-16") + b"\x00\xdcc\x00", "UTF-16, found 0x00dc at byte 6: illegal encoding"),
    ],
)
def test_what_writes_a_text_again_refuses_bytes_that_are_none(command, data, expected, tmp_path):
    """What stood there would be lost without a word."""
    file = tmp_path / "latin.txt"
    file.write_bytes(data)
    for arguments, name in (([*command, file], str(file)), (command, "standard input")):
        failed = run(*arguments, text=data)
        assert (failed.stdout, failed.returncode) == (b"", 2)
        assert failed.stderr.startswith(f"Error: {name}: expected {expected}")


@pytest.mark.parametrize(
    "call",
    [
        {"name": "f", "arguments": '{"a": 1}'},
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
    ],
    ids=lambda call: call.get("type", "bare"),
)
def test_render_takes_the_calls_of_other_apis(call):
    for text in (json.dumps(call), json.dumps([call], indent=2)):
        assert run("render", text=text).stdout == b'[CALL: f({"a": 1})]\n'


def test_render_takes_what_stands_beside_arguments_for_something_else():
    for key in ("arguments", "input"):
        for aside in ("parameters", "params", "args"):
            call = json.dumps({"name": "f", key: {"a": 1}, aside: {"b": 2}})
            assert run("render", text=call).stdout == b'[CALL: f({"a": 1})]\n'


def test_render_takes_the_id_by_which_results_are_told():
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
    assert b'"id": "c1"' in run("render", "--dialect", "hermes", text=json.dumps(call)).stdout


def test_tools_and_text_may_not_both_come_from_standard_input():
    for command in (["convert", "--to", "hermes"], ["render"]):
        failed = run(*command, "--tools", "-", text="[]")
        assert (failed.returncode, failed.stdout) == (2, b"")
        assert "--tools - and FILE are both standard input" in failed.stderr


def test_tools_may_come_from_standard_input():
    assert run("prompt", "-", text=json.dumps(TOOLS)).stdout.decode() == protocol_prompt(TOOLS).text + "\n"
    assert run("lint", "-", text=json.dumps(TOOLS)).returncode == 1


def test_options_of_a_grammar_of_calls_want_tools():
    for option in (["--target", "gbnf"], ["--calls-only"], ["--single"], ["--nonce", "x"], ["--tool-choice", "none"],
                   ["--string-limit", "9"]):  # fmt: skip
        failed = run("grammar", "call", *option)
        assert (failed.returncode, failed.stdout) == (2, b"")
        assert "expected --tools" in failed.stderr
    failed = run("grammar", "tools.json", "--target", "gbnf")
    assert (failed.returncode, failed.stdout) == (2, b"")
    assert "expected a dialect, found 'tools.json': tools are given as --tools tools.json" in failed.stderr


def test_convert_writes_another_dialect(tools):
    text = "Hi! [CALL: get_weather(town=Oslo, days=2)] Bye."
    converted = run("convert", "--to", "mistral", "--tools", tools, text=text).stdout.decode()
    assert converted == 'Hi! [TOOL_CALLS]get_weather[ARGS]{"town": "Oslo", "days": 2} Bye.'
    assert run("convert", "--to", "call", "--dialect", "mistral", text=converted).stdout.decode() == (
        'Hi! [CALL: get_weather({"town": "Oslo", "days": 2})] Bye.'
    )
    assert run("convert", text=text).returncode == 2
    assert run("convert", "--to", "call", text=b"\xef\xbb\xbfHi!").stdout == b"Hi!"  # the mark is of the file


def test_grammar_is_for_tools_where_they_are_given(tools):
    printed = run("grammar", "--tools", tools, "--target", "gbnf", "--single")
    assert printed.stdout.decode() == export_grammar(TOOLS, target="gbnf", parallel=False).text
    assert printed.stderr == ""
    loose = run("grammar", "call", "--tools", "-", text="[]")
    assert loose.returncode == 2
    pattern = run(
        "grammar", "hermes", "--tools", tools, "--target", "regex", "--calls-only", "--tool-choice", "translate"
    ).stdout.decode()
    assert re.fullmatch(pattern.rstrip("\n"), render_call("translate", {"text": "x", "to": "en"}, "hermes"))
    assert b"%llguidance" in run("grammar", "call", "--tools", tools, "--nonce", "7f3a").stdout
    bounds = ["--string-limit", "9", "--items-limit", "3", "--depth-limit", "0"]
    bounded = export_grammar(TOOLS, string_limit=9, items_limit=3, depth_limit=0).text
    assert run("grammar", "--tools", tools, *bounds).stdout.decode() == bounded
    assert "string_limit: expected an integer from 1" in run("grammar", "--tools", tools, "--string-limit", "0").stderr


def test_grammar_says_what_it_does_not_enforce(tmp_path):
    path = tmp_path / "tools.json"
    path.write_text('{"f": {"properties": {"a": {"type": "string", "pattern": "x"}}}}', encoding="utf-8")
    assert run("grammar", "call", "--tools", path).stderr == "not enforced: f.a: pattern\n"


def test_lint_says_what_to_do(tools, tmp_path):
    assert run("lint", tools).stdout.decode().split("\t")[:2] == ["undescribed-parameter", "get_weather"]
    good = tmp_path / "good.json"
    good.write_text('[{"name": "look", "description": "Looks around and says what is there."}]', encoding="utf-8")
    clean = run("lint", good)
    assert (clean.stdout, clean.returncode) == (b"", 0)
    assert run("lint", tools).returncode == 1
    none = run("lint", "-", text="[]")
    assert (none.stdout, none.returncode) == (b"no-tools\t\texpected at least one tool, found none\n", 1)


def codes(schema, name="f", description="Does it."):
    return [found.code for found in lint([{"name": name, "description": description, "parameters": schema}])]


def test_lint_finds_what_costs_good_calls():
    described = {"type": "string", "description": "x"}
    assert codes({}) == []
    assert codes({}, name="a.b") == ["unportable-name"]
    assert codes({}, description="") == ["no-description"]
    assert codes({}, description="x" * 601) == ["long-description"]
    assert codes({"properties": {"a": {}}}) == ["undescribed-parameter", "untyped-parameter"]
    assert codes({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": described}}) == []
    assert (
        codes({"properties": {"a": {"$ref": "#/$defs/x", "description": "y"}}, "$defs": {"x": {"type": "null"}}}) == []
    )
    assert codes({"properties": {f"k{n}": described for n in range(13)}}) == ["too-many-parameters"]
    assert codes({"required": ["a"]}) == ["unknown-required"]
    unguessable = {**described, "pattern": r"^(\d+[a-z]?)*:[A-Z]{12}$"}
    assert codes({"required": ["a"], "properties": {"a": unguessable}}) == ["no-example"]
    assert codes({"properties": {"a": {**described, "minLength": 2, "maxLength": 1}}}) == ["contradiction"]
    deep = described
    for _ in range(3):
        deep = {"type": "object", "description": "x", "properties": {"a": deep}}
    assert codes({"properties": {"a": deep}}) == ["deep-nesting"]
    assert codes(deep) == []
    tree = {
        "description": "x",
        "type": "array",
        "items": {"anyOf": [{"type": "object", "properties": {"a": {"$ref": "#"}}}]},
    }
    assert codes({"properties": {"a": tree}}) == ["deep-nesting"]
    many = lint([f"f{n}" for n in range(21)])
    assert (many[0].code, many[0].tool) == ("too-many-tools", "")
