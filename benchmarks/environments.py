"""The peers with their pinned versions, and how the environment of each is made, outside of the checkout.

An environment is a folder of the cache (`~/.cache/callmark-benchmarks`, or `$CALLMARK_BENCHMARKS_CACHE`), named after
the peer and its pins: a changed one makes a new folder. Pinned is what is named here; what that depends on is what the
registry gives when the folder is made, and stays so. An environment is made once, by `venv` and `pip` or
`npm`, and nothing of it is ever imported into our process. A peer that cannot be made says why, and its rows say so.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUILT = ("*.so", "*.pyd")  # modules that were compiled: Python imports them rather than the sources beside them


class UnavailableError(Exception):
    """A peer's environment cannot be made here; the text says why."""


class Peer(NamedTuple):
    """One peer: the module of `benchmarks.peers` that serves it, and what its environment holds."""

    name: str
    module: str
    pins: tuple[str, ...]
    alone: tuple[str, ...] = ()  # installed without their dependencies
    source: str = ""  # a package of which only the Python sources are taken, without building it
    python: tuple[int, int] = (3, 11)
    environment: tuple[tuple[str, str], ...] = ()
    npm: bool = False


# With what its extra `all` adds: its Python engine decodes with the one and repairs with the other.
_AGENT_TOOL_PARSER = ("agent-tool-parser==0.1.3", "orjson==3.13.0", "json-repair==0.64.6")

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "sglang",
            "sglang_engine",
            ("pydantic==2.14.4", "orjson==3.13.0", "partial-json-parser==0.2.1.1.post7", "openai==2.8.0",
             "msgspec==0.22.0", "regex==2026.11.19", "typing-extensions==4.16.0"),
            alone=("sglang==0.5.23",),
        ),
        Peer(
            "vllm",
            "vllm_engine",
            ("pydantic==2.14.4", "openai==3.57.0", "regex==2026.11.19", "partial-json-parser==0.2.1.1.post7",
             "ijson==3.6.0", "msgspec==0.22.0"),
            source="vllm==0.33.0",
        ),
        Peer("agent-tool-parser", "libraries", _AGENT_TOOL_PARSER),
        Peer("agent-tool-parser, Python engine", "libraries", _AGENT_TOOL_PARSER,
             environment=(("AGENT_TOOL_PARSER_NO_EXT", "1"),)),
        Peer("forge-guardrails", "libraries", ("forge-guardrails==0.10.0",), python=(3, 12)),
        Peer("json-repair", "libraries", ("json-repair==0.64.6",)),
        Peer("partial-json-parser", "libraries", ("partial-json-parser==0.2.1.1.post7",)),
        Peer("jiter", "libraries", ("jiter==0.19.0",)),
        Peer("ai-sdk", "ai_sdk", ("@ai-sdk-tool/parser@4.1.26",), npm=True),
    )
}  # fmt: skip


_MAKING: defaultdict[Path, Lock] = defaultdict(Lock)  # folders are made at the same time, one that two peers share once
_MADE_NOW: list[str] = []
_RUNNING: set[subprocess.Popen[str]] = set()
_FEW_RETRIES = {"PIP_RETRIES": "2", "npm_config_fetch_retries": "1", "npm_config_fetch_retry_mintimeout": "1000"}
_NO_CONNECTION = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeoutError|EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ENETUNREACH|ETIMEDOUT"
)


def in_python(name: str) -> bool:
    """Whether the readers of a process are Python: what runs under node cannot be sampled, nor its memory measured."""
    return name not in PEERS or not PEERS[name].npm


class Launch(NamedTuple):
    """How a peer's process is started."""

    command: tuple[str, ...]
    environment: dict[str, str]


def cache_folder() -> Path:
    """Return where environments are kept: outside of the checkout."""
    given = os.environ.get("CALLMARK_BENCHMARKS_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else home / "callmark-benchmarks"


def launch(peer: Peer, tell: Callable[[str], None] = lambda line: None) -> Launch:
    """Make the peer's environment if it is not there yet; return how its process is started.

    Raises UnavailableError where that is not possible.
    """
    if peer.npm:
        if not shutil.which("node") or not shutil.which("npm"):
            raise UnavailableError("needs node and npm")
        folder = _made(peer, "node", _install_npm, tell)
        script = ROOT / "benchmarks" / "peers" / f"{peer.module}.mjs"
        return Launch(("node", str(script), str(folder)), {})
    interpreter = _interpreter(peer.python)
    folder = _made(peer, interpreter[1], lambda made, one: _install_python(made, one, interpreter[0]), tell)
    environment = {"PYTHONPATH": str(ROOT), "PYTHONNOUSERSITE": "1", **dict(peer.environment)}
    return Launch((str(_python(folder)), "-m", "benchmarks.peers.worker", peer.module), environment)


def ours(source: str | None = None) -> Launch:
    """Return how the process that serves callmark itself is started; `source` is a folder with another callmark.

    Raises UnavailableError where the working tree holds compiled modules: they would be timed as its sources.
    """
    built = [] if source else sorted(path for what in BUILT for path in (ROOT / "src").rglob(what))
    if built:
        raise UnavailableError(
            f"{len(built)} compiled modules lie beside the sources ({built[0].relative_to(ROOT)}), and would run in "
            "their place: remove them"
        )
    path = os.pathsep.join(filter(None, (source, str(ROOT))))
    return Launch((sys.executable, "-m", "benchmarks.peers.worker", "ours"), {"PYTHONPATH": path})


def compiled(tell: Callable[[str], None] = lambda line: None) -> Launch:
    """Build the working tree with its engine compiled; return how the process that serves it is started.

    Raises UnavailableError where that is not possible: it takes a C compiler, a minute, and mypy from the registry.
    """
    sources = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "grammars").glob("*.lark"))
    told = hashlib.sha256(sys.version.encode())
    for path in (ROOT / "setup.py", *sources):
        told.update(path.read_bytes())
    folder = cache_folder() / f"compiled-{told.hexdigest()[:12]}"
    if not folder.exists():
        compiler = str(sysconfig.get_config_var("CC") or "").split()
        if compiler and not shutil.which(compiler[0]):  # pip would find that out half a minute later, at each run
            raise UnavailableError(f"needs a C compiler ({compiler[0]})")
        with (
            _told("callmark, compiled", tell),
            _aside(folder) as part,
            tempfile.TemporaryDirectory() as temporary,
        ):
            # setuptools builds in the folder that it is given
            copy = Path(temporary) / "callmark"
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "results", "build", *BUILT))
            _run([*_installer(), "--no-deps", "--target", str(part), str(copy)], CALLMARK_COMPILED="1")
    return ours(str(folder))


def _installer() -> list[str]:
    """Return the command that installs for this interpreter: its own pip, or uv, whose environments have none."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    if uv := shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))):
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    raise UnavailableError("needs pip or uv")


def _python(folder: Path) -> Path:
    return folder / ("Scripts" if os.name == "nt" else "bin") / ("python.exe" if os.name == "nt" else "python")


def _made(peer: Peer, runtime: str, install: Callable[[Path, Peer], None], tell: Callable[[str], None]) -> Path:
    decides = json.dumps([runtime, peer.pins, peer.alone, peer.source])
    folder = cache_folder() / f"{peer.module}-{hashlib.sha256(decides.encode()).hexdigest()[:12]}"
    with _MAKING[folder]:
        if not folder.exists():
            with _told(peer.name, tell), _aside(folder) as part:
                install(part, peer)
    return folder


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """Let a folder be made beside its place, which it takes when it is whole: another run may be making it, too."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary:
        part = Path(temporary, "made")
        part.mkdir()
        yield part
        try:
            part.rename(folder)
        except OSError as error:
            if not folder.exists():  # else the other run was first
                raise UnavailableError(f"could not be moved to its place: {error}") from error


@contextmanager
def _told(name: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Tell what is being made, whenever that changes."""
    _MADE_NOW.append(name)
    tell(f"making {'; '.join(_MADE_NOW)}")
    try:
        yield
    finally:
        _MADE_NOW.remove(name)
        if _MADE_NOW:
            tell(f"making {'; '.join(_MADE_NOW)}")


def _interpreter(least: tuple[int, int]) -> tuple[str, str]:
    """Return a Python that is new enough, with its version: this one, one on the path, uv's or pyenv's."""
    if sys.version_info[:2] >= least:
        return sys.executable, ".".join(map(str, sys.version_info[:2]))
    names = [f"python3.{minor}" for minor in range(least[1], least[1] + 4)]
    found = [path for name in names if (path := shutil.which(name))]
    if uv := shutil.which("uv"):
        done = subprocess.run([uv, "python", "find", f">={least[0]}.{least[1]}"], capture_output=True, text=True)
        found += done.stdout.split("\n")[:1]
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found += [str(path) for path in sorted(versions.glob("3.*/bin/python3"), reverse=True)]
    ask = "import sys; print(*sys.version_info[:2], sep='.')"
    for path in filter(None, found):
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if done.returncode == 0 and tuple(map(int, done.stdout.split("."))) >= least:
            return path, done.stdout.strip()
    raise UnavailableError(f"needs Python {least[0]}.{least[1]}")


def stop_making() -> None:
    """End the programs that make environments: who waits for them gets an UnavailableError, or starts the next."""
    for process in list(_RUNNING):
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """End a program with all that it has started: pip builds in a process of its own."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _run(command: list[str], **named: str) -> None:
    done = _done(command, **named)
    if done.returncode:
        tool = command[2] if command[1] == "-m" else Path(command[0]).name
        raise UnavailableError(f"{tool}: {_cause(done.stderr, done.stdout)}")


def _done(command: list[str], **named: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as temporary:  # what a program that is ended leaves in it is gone, too
        environment = _FEW_RETRIES | os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), temporary) | named
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              text=True, env=environment, process_group=0) as process:  # fmt: skip
            _RUNNING.add(process)
            try:
                output, errors = process.communicate(timeout=600)
            except BaseException:
                _end(process)
                raise
            finally:
                _RUNNING.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _cause(stderr: str, stdout: str) -> str:
    """Return the first error that a program told: the cause of others. Where it named none, all that it said.

    Without a network, pip says at the end that there is no such version: that is not the cause.
    """
    if _NO_CONNECTION.search(stderr):
        return "no connection to its registry"
    lines = [line.strip() for line in (stderr.strip() or stdout).splitlines()]
    errors = [line for line in lines if "error" in line.lower() and "subprocess-exited" not in line
              and not line.startswith("WARNING")]  # fmt: skip
    return (errors[0] if errors else " ".join(filter(None, lines)) or "failed without a word")[:200]


def _install_python(folder: Path, peer: Peer, interpreter: str) -> None:
    pip = [interpreter, "-m", "pip", "--python", str(_python(folder)), "--disable-pip-version-check", "--quiet"]
    if _done([interpreter, "-m", "pip", "--python", interpreter, "--version"]).returncode == 0:
        _run([interpreter, "-m", "venv", "--without-pip", str(folder)])  # one of its own would take seconds
    else:  # none there, or one older than its option
        _run([interpreter, "-m", "venv", str(folder)])
        pip[:5] = [str(_python(folder)), "-m", "pip"]
    few = ("install", "--no-compile")  # most of a serving engine is never imported
    _run([*pip, *few, *peer.pins])
    if peer.alone:
        _run([*pip, *few, "--no-deps", *peer.alone])
    if peer.source:
        _take_sources(folder, peer.source, pip)


def _take_sources(folder: Path, pin: str, pip: list[str]) -> None:
    """Unpack a source distribution without building it: its metadata alone would need torch.

    pip unpacks a source distribution before it asks it for metadata. That fails, as said; told not to clean up, it
    leaves the sources in the folder for temporary files, from which the Python package is taken.
    """
    name, _, number = pin.partition("==")
    with tempfile.TemporaryDirectory() as temporary:
        into = ["--no-deps", "--no-binary", name, "--no-build-isolation", "--no-clean", "--dest", temporary]
        _done([*pip, "download", *into, pin], TMPDIR=temporary, TEMP=temporary, TMP=temporary)
        found = [path.parent for path in Path(temporary).glob(f"*/*/{name}/__init__.py")]
        if not found:
            raise UnavailableError(f"pip download gave no sources of {pin}")
        asked = subprocess.run([str(_python(folder)), "-c", "import site; print(site.getsitepackages()[0])"],
                               capture_output=True, text=True, check=True)  # fmt: skip
        site = Path(asked.stdout.strip())
        shutil.copytree(
            found[0], site / name, ignore=lambda at, names: [n for n in names if n.endswith((".cu", ".so"))]
        )
        (site / f"{name}-version.txt").write_text(number, encoding="utf-8")


def _install_npm(folder: Path, peer: Peer) -> None:
    (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
    _run(
        [
            "npm",
            "install",
            "--loglevel=error",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
            str(folder),
            *peer.pins,
        ]
    )
