"""The house is as its plan says: who imports whom, what is public, what is shipped, and that the README is true.

`python tests/test_house.py` writes the parts of pages anew that are made from the code.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import callmark
from callmark.dialects import Dialect, Form, Writing, dialects
from callmark.events import REPAIR_CODES
from callmark.tools.results import ERROR_KINDS
from test_cases import CASES

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "callmark"
README = ROOT / "README.md"
PAGES = (README, ROOT / "grammars" / "README.md")
"""The pages whose examples are run, one after the other."""

# Rooms from the ground up: each may import from the floors below it and from itself.
FLOORS = (
    ("events", "errors"),
    ("hints",),
    ("functions",),
    ("toolshapes",),
    ("dialects", "grammars", "languages"),
    ("reading", "writing"),
    ("tools", "conversion"),
    ("running", "nonces"),
    ("callmark",),  # the public surface
    ("display", "testing", "watching"),
    ("serving",),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
PURE = FLOOR["running"]  # the floors below know no time, no chance and no world
IMPURE = {
    *("asyncio", "concurrent", "ctypes", "datetime", "http", "logging", "multiprocessing", "queue", "random"),
    *("secrets", "select", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "tempfile", "threading"),
    *("time", "urllib", "uuid", "warnings"),
}
FILES = {  # rows, grammars and languages of one's own are files, and the languages that come along are data
    *(("dialects", "load_dialect"), ("reading", "_text"), ("languages", "_builtin"), ("languages", "load_language")),
    ("dialects", "_names_the_group"),  # what distributions register is in files
}
GUARDED = {
    "regex": {"reading", "writing", "tools"},
    "lark": {"reading", "writing", "testing"},
    "hypothesis": {"testing"},
    "jsonschema": {"tools", "writing"},
    "jsonschema_rs": {"tools"},
    "referencing": {"tools", "writing"},
    "opentelemetry": {"running"},
    "click": {"cli"},
    "rich": {"display"},
    "anyio": {"serving"},
    "httpx": {"serving"},
    "starlette": {"serving"},
    "uvicorn": {"serving"},
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "literal_eval", "breakpoint", "print", "input"}
CALLS_FOREIGN_CODE = {  # who may catch whatever is raised, as code runs there that someone else wrote
    str(Path("tools", "foreign.py")),  # whatever a host hands over: for all floors from tools up
    str(Path("testing.py")),  # that nothing is raised is what it checks
    str(Path("dialects", "__init__.py")),  # below those: a plug-in's package, which runs when it is imported
}
FORBIDDEN_IMPORTS = {"yaml", "pickle", "marshal", "shelve"}
PUBLIC = [
    *("Approval", "ArgumentsDelta", "AuditLog", "Breaker", "Bulkhead", "Call", "CallStart", "CallmarkError", "Cancel"),
    *("Dialect", "DialectError", "Event", "Executor", "Failure", "Form", "Grammar", "Invocation", "Language"),
    *("Ledger", "LedgerError", "Limits", "LoopGuard", "Malformed", "Markup", "ModelError"),
    *("NotPermittedError", "Notice", "OpenAIModel", "Parsed", "Parser"),
    *("Prompt", "Registry", "Repair", "Request", "Result", "Session", "Settings", "SnapshotFeeder", "Span"),
    *("SqliteLedger", "Step"),
    *("Text", "Tool", "ToolError", "ToolsError", "UnknownDialectError", "UsageError", "Wording", "Writing"),
    "WrittenCall",
    *("convert", "detect", "dialects", "export_grammar", "feedback", "load_dialect", "load_language"),
    *("merge_into_messages", "neutralize", "new_nonce", "parse", "protocol_prompt", "render_call", "render_calls"),
    *("render_history", "render_result", "restore_history", "tool"),
]


class Import(NamedTuple):
    """An import statement: of what, and whether it runs with its module, and not only for type checkers."""

    name: str
    at_once: bool
    line: int


class Module(NamedTuple):
    """A module of the package, read but not run."""

    path: Path
    room: str
    tree: ast.Module
    imports: tuple[Import, ...]

    def __str__(self) -> str:
        return str(self.path.relative_to(SOURCE))


def imports_of(tree: ast.Module) -> Iterator[Import]:
    def walk(node: ast.AST, at_once: bool) -> Iterator[Import]:
        match node:
            case ast.Import():
                for alias in node.names:
                    yield Import(alias.name, at_once, node.lineno)
            case ast.ImportFrom():
                assert not node.level, f"line {node.lineno}: imports are absolute here"
                for alias in node.names:
                    yield Import(f"{node.module}.{alias.name}", at_once, node.lineno)
            case ast.If() if ast.unparse(node.test) == "TYPE_CHECKING":
                at_once = False
        inside = at_once and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside)

    yield from walk(tree, True)


def modules() -> list[Module]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).with_suffix("").parts
        tree = ast.parse(path.read_text(encoding="utf-8"))
        room = "callmark" if place == ("__init__",) else place[0]
        found.append(Module(path, room, tree, tuple(imports_of(tree))))
    return found


MODULES = modules()
each_module = pytest.mark.parametrize("module", MODULES, ids=str)


def room_of(name: str) -> str | None:
    """Return the room that an import is from, None where it is none of ours."""
    first, *rest = name.split(".")
    if first != "callmark":
        return None
    return rest[0] if rest and rest[0] in FLOOR else "callmark"


# Floors.


def test_every_room_has_a_floor():
    assert {module.room for module in MODULES} <= FLOOR.keys()
    assert {"events", "dialects", "reading", "cli"} <= {module.room for module in MODULES}


def test_the_readme_lists_the_rooms_from_the_lowest_floor_up():
    listed = README.read_text(encoding="utf-8").partition("\n## The code\n")[2].partition("\n## ")[0]
    rooms = [room for line in re.findall(r"^- ([^:]+):", listed, re.MULTILINE) for room in re.findall("`(.+?)`", line)]
    assert {*rooms} == FLOOR.keys() - {"callmark", "__main__"}
    assert [FLOOR[room] for room in rooms] == sorted(FLOOR[room] for room in rooms)


@each_module
def test_nobody_imports_upward(module):
    for found in module.imports:
        room = room_of(found.name)
        assert room in (None, module.room) or FLOOR[room] < FLOOR[module.room], f"line {found.line}: {found.name}"


def test_an_import_upward_would_be_seen():
    tree = ast.parse("def f():\n    from callmark.reading.parser import Parser\nimport callmark")
    assert [(room_of(found.name), found.at_once) for found in imports_of(tree)] == [
        ("reading", False),
        ("callmark", True),
    ]
    assert room_of("callmark.Parser") == "callmark"
    assert room_of("callmarkup") is None


@each_module
def test_what_reads_and_writes_names_no_dialect(module):
    if module.room not in ("reading", "writing") or module.path.name == "codes.py":  # whose examples name some
        return
    known = {row.name for row in dialects()} - {"call", "tool_use"}  # the default, and a word of Anthropic's API
    words = {node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant)}
    assert known.isdisjoint(words)


@each_module
def test_lower_floors_are_pure(module):
    if FLOOR[module.room] >= PURE:
        return
    for found in module.imports:
        assert found.name.split(".")[0] not in IMPURE, f"line {found.line}: {found.name}"
    for function, name, line in calls_in(module.tree):
        touches = name in ("open", "read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "glob")
        assert not touches or (module.room, function) in FILES, f"line {line}: {name} in {function}"


def calls_in(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """Yield function around a call, name of what is called, line."""

    def walk(node: ast.AST, function: str) -> Iterator[tuple[str, str, int]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield function, name, node.lineno
        for child in ast.iter_child_nodes(node):
            yield from walk(child, function)

    yield from walk(tree, "")


@each_module
def test_heavy_imports_are_late_and_in_their_room(module):
    for found in module.imports:
        package = found.name.split(".")[0]
        assert package not in FORBIDDEN_IMPORTS
        if package in GUARDED:
            assert module.room in GUARDED[package], f"line {found.line}: {found.name}"
            late = package not in ("anyio", "click", "rich", "httpx", "starlette")
            assert not (late and found.at_once), f"line {found.line}: {found.name} is imported with the module"


def test_kinds_of_failure_are_a_closed_set():
    used = {
        keyword.value.value
        for module in MODULES
        if module.room in ("tools", "running")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Failure"
        for keyword in node.keywords
        if keyword.arg == "kind" and isinstance(keyword.value, ast.Constant)
    }
    raised = {"unknown-tool", "denied", "invalid-arguments"}  # a registry's codes, which become kinds
    assert used | raised == ERROR_KINDS.keys()


@each_module
def test_nothing_is_evaluated(module):
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            plain = node.func.id if isinstance(node.func, ast.Name) else ""
            attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            assert plain not in FORBIDDEN_CALLS, f"line {node.lineno}"
            assert attribute != "literal_eval", f"line {node.lineno}"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}"
            broad = re.search(r"\b(?:Base)?Exception\b", ast.unparse(node.type))  # also among others
            assert not broad or str(module) in CALLS_FOREIGN_CODE, f"line {node.lineno}"


# The public surface.


def test_the_public_surface_is_this():
    assert callmark.__all__ == PUBLIC
    assert all(hasattr(callmark, name) for name in PUBLIC)


def test_a_shell_can_complete_what_is_not_loaded_yet():
    program = "import callmark; print(*dir(callmark))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert {*PUBLIC, "__version__"} <= {*said.stdout.split()}


def test_what_is_not_public_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'callmark' has no attribute 'nothing'"):
        _ = callmark.nothing


def test_every_public_name_says_what_it_is():
    for name in PUBLIC:
        value = getattr(callmark, name)
        if name != "Event":  # a union of types
            assert value.__doc__
            assert value.__module__.startswith("callmark.")


def test_importing_callmark_and_parsing_prose_load_nothing_heavy():
    program = (
        "import sys, callmark; callmark.parse('Some prose, [1] and a < b.'); callmark.parse('[CALL: f(a=1)]'); "
        "heavy = {'lark', 'regex', 'click', 'rich', 'hypothesis', 'asyncio', 'logging', 'secrets', 'jsonschema'}"
        "; heavy |= {'sqlite3', 'callmark.writing', 'callmark.tools', 'callmark.running'}"
        "; print(*sorted(heavy & sys.modules.keys()))"
    )
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    assert run([sys.executable, "-c", program], env=unmeasured).strip() == ""  # coverage would load sqlite3 itself


def test_the_patterns_of_values_are_made_for_a_form_that_comes_up():
    program = (
        "import callmark; from callmark.reading import patterns; of, made = patterns.ValuePatterns, []; "
        "patterns.ValuePatterns = lambda form: made.append(form) or of(form); "
        "callmark.parse('Some prose, <b>1</b>.\\n[CALL: f(a=1)]'); print(len(made)); "
        "callmark.parse('<function=f>\\n<parameter=a>\\n1\\n</parameter>\\n</function>'); "
        "print(len(made) in range(1, 9))"
    )
    assert run([sys.executable, "-c", program]).split() == ["0", "True"]  # those of all forms take 50 ms


def all_modules() -> list[str]:
    found = pkgutil.walk_packages(callmark.__path__, "callmark.")
    return ["callmark", *(module.name for module in found if module.name != "callmark.__main__")]


@pytest.mark.parametrize("name", all_modules())
def test_examples_in_docstrings_hold(name):
    tests = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    for test in tests:
        check_example(test)


HAVE_EXAMPLES = (
    *("Parser", "SnapshotFeeder", "parse", "detect", "tool", "Registry", "Invocation", "LoopGuard", "Breaker"),
    *("Bulkhead", "Executor", "Ledger", "Session", "Cancel", "AuditLog", "Result"),
)


def test_public_classes_have_examples():
    finder = doctest.DocTestFinder(recurse=False)
    for name in HAVE_EXAMPLES:
        value = getattr(callmark, name)
        assert any(test.examples for test in finder.find(value))


def check_example(test: doctest.DocTest) -> None:
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


# The README.


class Block(NamedTuple):
    """A fenced block of a page: language, file name (where one stands behind the language), text, page, line."""

    language: str
    file: str
    text: str
    page: Path
    line: int


def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^( *)```(\w+)(?: (\S+))?\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(match[2], match[3] or "", textwrap.dedent(match[4]), page, line))
    return found


def run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def files_of_the_readme(tmp_path):
    """A folder with the files that the README shows, which is the current one."""
    for block in blocks():
        if block.file:
            path = tmp_path / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
    with contextlib.chdir(tmp_path):
        yield tmp_path


def test_python_in_the_readme_is_true(files_of_the_readme):
    names = {"Dialect": Dialect, "Form": Form, "Writing": Writing}
    examples = 0
    for block in blocks():
        if block.language != "python":
            continue
        test = doctest.DocTestParser().get_doctest(block.text, names, block.page.stem, str(block.page), block.line)
        if test.examples:
            check_example(test)
            names = test.globs
            examples += len(test.examples)
        else:  # the row of a dialect: what its TOML file says
            row = eval(compile(block.text, str(block.page), "eval"), names)  # noqa: S307  # our own page
            from_file = callmark.load_dialect(f"{row.name}.toml")
            fields = [field for field in Dialect.__struct_fields__ if field != "grammar"]
            assert [getattr(row, field) for field in fields] == [getattr(from_file, field) for field in fields]
    assert examples > 20


def test_cases_in_the_readme_are_true(files_of_the_readme):
    (path,) = files_of_the_readme.glob("tests/cases/*.toml")
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    own = callmark.load_dialect(f"{content['dialect']}.toml")
    for case in content["case"]:
        parsed = callmark.parse(case["input"], dialects=own, tolerance="strict")
        found = [(call.name, call.arguments) for call in parsed.calls]
        assert found == [(call["name"], json.loads(call["arguments"])) for call in case["calls"]]
        assert parsed.text == case["text"]


def test_commands_in_the_readme_are_true(files_of_the_readme):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    shown = 0
    for block in blocks():
        if block.language != "console":
            continue
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
            done = subprocess.run(
                ["bash", "-c", command],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                env=os.environ | {"PATH": path},
            )
            assert (done.stdout, done.stderr) == (expected, ""), command
            shown += 1
    assert shown >= 4


def test_two_commands_set_everything_up():
    """`.ci/run` takes them from the README by how they begin, and runs them word for word."""
    commands = re.findall(r"^python3 -m venv .*$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 2
    main_job, tests = commands
    assert main_job.endswith(".venv/bin/callmark parse src/callmark/samples/transcript.txt")
    assert tests.endswith(".venv/bin/python -m pytest -q")
    assert [block.text.strip() for block in blocks() if block.language == "sh"] == commands


def test_files_named_in_the_readme_exist():
    named = {
        path
        for page in PAGES
        for quoted, linked in re.findall(
            r"`((?:src|tests|grammars|benchmarks|\.ci)/[\w./]*)`|\]\(([\w./]+)\)", page.read_text(encoding="utf-8")
        )
        for path in [ROOT / quoted if quoted else page.parent / linked]
    }
    paths = named - {ROOT / block.file for block in blocks()}
    assert len(paths) > 5
    assert [path for path in sorted(paths) if path != ROOT / "grammars/acme.lark" and not path.exists()] == []


SHOWN = ("call", "hermes", "qwen_xml", "glm", "pythonic")
"""Dialects whose prompts the page of the benchmarks counts."""


def written_parts() -> dict[str, str]:
    """Return the parts of pages that are made from the code: what stands between `<!-- name` and its end."""
    from benchmarks.prompts import beside
    from benchmarks.prompts import shares as prompt_shares
    from benchmarks.prompts import table as prompt_sizes

    return {
        "number of dialects": str(len(dialects())),
        "number of cases": f"{len(CASES) // 50 * 50:,}",
        "dialects": "\n" + dialect_table() + "\n",
        "prompt sizes": f"\n{prompt_sizes(names=SHOWN)}\n\n{beside()}\n",
        "prompt shares": "\n" + prompt_shares() + "\n",
        "repairs": ", ".join(f"`{code}`" for code in repairs_made()),
    }


def dialect_table() -> str:
    rows = ["| dialect | looks like | written by | on by default |", "|---|---|---|---|"]
    for dialect in dialects():
        default = "yes" if all(form.explicit for form in dialect.forms) else "in part" if dialect.explicit else "no"
        rows.append(f"| `{dialect.name}` | {code_span(dialect.title)} | {dialect.models} | {default} |")
    return "\n".join(rows)


def code_span(text: str) -> str:
    """Return `text` as code in a cell of a Markdown table."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    ticks, blank = "`" * (longest + 1), " " if longest else ""
    return f"{ticks}{blank}{text.replace('|', chr(92) + '|')}{blank}{ticks}"


def repairs_made() -> list[str]:
    """Return the codes of repairs that reading can record, in the order of the table of codes."""
    strings = {
        node.value
        for module in MODULES
        if module.room in ("dialects", "reading") and module.path.name != "codes.py"  # it explains them all
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return [code for code in REPAIR_CODES if code in strings]


def pages_with_written_parts() -> dict[Path, str]:
    pages = {page: page.read_text(encoding="utf-8") for page in (README, ROOT / "benchmarks" / "README.md")}
    for name, part in written_parts().items():
        pattern = re.compile(rf"(<!-- {name}(?::[^>]*)? -->).*?(<!-- end of {name} -->)", re.DOTALL)
        times = 0
        for page, text in pages.items():
            pages[page], replaced = pattern.subn(lambda found, part=part: found[1] + part + found[2], text)
            times += replaced
        assert times == 1, name
    return pages


def test_what_the_pages_tell_and_count_is_what_the_code_does():
    for page, text in pages_with_written_parts().items():
        assert page.read_text(encoding="utf-8") == text, "run `python tests/test_house.py`, which writes these anew"


# What is shipped.


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source distribution, built from a copy, so that the checkout stays as it is."""
    copy = tmp_path_factory.mktemp("source")
    listed = ["README.md", "LICENSE", "MANIFEST.in", "pyproject.toml", "src", "grammars", "tests", "benchmarks"]
    for name in listed:
        for path in [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path):
                target = copy / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
    out = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)])
    (wheel,) = out.glob("*.whl")
    (source,) = out.glob("*.tar.gz")
    return wheel, source


def test_the_wheel_holds_what_is_needed_and_nothing_else(built):
    wheel, _ = built
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = {f"callmark/{path.relative_to(SOURCE)}" for path in SOURCE.rglob("*.py")}
    grammars = {f"callmark/grammars/{path.name}" for path in (ROOT / "grammars").glob("*.lark")}
    assert len(grammars) > 10
    others = {"callmark/py.typed", "callmark/samples/transcript.txt", "callmark/grammars/__init__.py"}
    others |= {f"callmark/{path.relative_to(SOURCE)}" for path in SOURCE.rglob("languages/*.toml")}
    assert len(others) >= 6
    assert names == sources | grammars | others


def test_the_source_distribution_holds_grammars_and_cases(built):
    _, source = built
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for pattern in ("grammars/*.lark", "tests/cases/*.toml", "tests/*.py", "benchmarks/*.py", "src/callmark/**/*.py"):
        expected = {str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)}
        assert expected
        assert expected <= names, pattern
    assert {"README.md", "grammars/README.md", "LICENSE", "tests/cases/README.md"} <= names
    assert "src/callmark/samples/transcript.txt" in names


def test_the_wheel_works_where_nothing_of_the_checkout_is(built, tmp_path):
    """A new environment sees what callmark depends on, but no callmark other than the one from the wheel."""
    wheel, _ = built
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=os.name != "nt")
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--no-warn-script-location", str(wheel)]
    run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), *install])
    places = run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
    others = [place for place in sys.path if Path(place).name == "site-packages"]
    assert others
    (Path(places) / "dependencies.pth").write_text("\n".join(others) + "\n", encoding="utf-8")

    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE_"))}
    program = (
        "import callmark; print(callmark.__file__); "
        "print(callmark.parse('[CALL: f(a=1)] [CALL: g({\\'b\\': 2,})] [CALL: h({\"c\": ]').calls[1].arguments)"
    )
    where, arguments = run([str(python), "-c", program], cwd=tmp_path, env=environment).splitlines()
    assert Path(where).is_relative_to(places)
    assert arguments == "{'b': 2}"
    command = str(python.with_name("callmark"))
    for name in ("call", "hermes"):
        printed = run([command, "grammar", name], cwd=tmp_path, env=environment)
        assert "\nmarker:" in printed
        assert "%import ." not in printed
    sample = Path(places) / "callmark" / "samples" / "transcript.txt"
    assert '"type":"call"' in run([command, "parse", str(sample)], cwd=tmp_path, env=environment)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for page, text in pages_with_written_parts().items():
        page.write_text(text, encoding="utf-8")
