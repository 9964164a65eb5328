"""The command: `python -m benchmarks [PARTS]`; `compare REV`, `profile`, `readme FILE` and `plot FILE` are others."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":  # first of all: what is imported below takes half a second, and may be ended, too
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else who started us wants it ignored
        signal.signal(signal.SIGINT, lambda *_: sys.exit("\nAborted!"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the readers' processes are ended then too

import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks import contests, figures
from benchmarks.contests import QUICK, Arena, Scale
from benchmarks.correctness import FORMATS, correctness
from benchmarks.environments import PEERS, UnavailableError, in_python
from benchmarks.parts import Parts, full, quick
from benchmarks.report import ROOT, Lines, Row, conditions, load_now, read_lines, table
from benchmarks.workloads import SPELLINGS

_SPEED = ("workload", "spelling", "reader", "MB/s", "ns/chunk", "x floor", "spread", "x callmark", "text", "verdict")
_STREAMED = (*_SPEED[:2], "chunk", *_SPEED[2:7], "x empty", *_SPEED[7:])

# Every part: its heading, the columns of its table, and about how many contests it has. Parts without columns are ours
# alone and print their own tables. In this order: no speed counts without recovery, and what is not timed comes first,
# as it may run beside other things.
PARTS: dict[str, tuple[str, tuple[str, ...], int]] = {
    "recovery": ("Good calls behind harmless and hostile prefixes", (), 1),
    "correctness": ("Recorded outputs, right of all",
                    ("format", "reader", "fixtures", "calls", "stream", "splits", "clean"), 17),
    "memory": ("Peak of memory", ("workload", "way", "reader", "characters", "peak KB", "x text", "verdict"), 1),
    "whole": ("Whole texts; x floor: find and decode", _SPEED, 33),
    "stream": ("Streams in chunks of 4 characters; x floor: one event a chunk", _STREAMED, 31),
    "sizes": ("Streams in chunks of other lengths", _STREAMED, 45),
    "next": ("The next chunk, when so much of a call has come", ("spelling", "reader", "already", "us/chunk",
             "x callmark", "verdict"), 12),
    "many": ("Many streams at once", ("workload", "reader", "streams", "ns/chunk", "x alone",
             "x callmark", "verdict"), 1),
    "batch": ("Many short texts", ("workload", "reader", "us/text", "MB/s", "x callmark", "verdict", "note"), 1),
    "arguments": ("Decoders, told where the JSON is, beside all of callmark",
                  ("workload", "way", "reader", "MB/s", "ns/chunk", "x callmark", "verdict"), 5),
    "hostile": ("Texts made to be slow, a good call behind",
                ("workload", "way", "reader", "characters", "best seconds", "exponent", "verdict"), 10),
    "growth": ("Growth", (), 1),
    "attacks": ("Attacks", (), 1),
    "writing": ("What a host calls beside reading", (), 1),
    "import": ("Import", (), 1),
    "stdio": ("Through a pipe from node", (), 1),
}  # fmt: skip
_ALONE = {"recovery", "growth", "attacks", "writing", "import", "stdio"}
_WITH_COMPILED = {"whole", "stream", "sizes"}
_HEEDED = {  # by which parts
    "--seed": {"whole", "stream", "sizes", "next", "many", "batch", "arguments", "memory", "growth", "writing"},
    "--characters": {"whole", "stream"},
    "--rounds": {"whole", "stream", "sizes", "many", "batch", "arguments"},
}


class _Parts(click.Group):
    """A group whose command is left out: `python -m benchmarks whole stream` runs these parts."""

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        return super().resolve_command(context, args if args and args[0] in self.commands else ["run", *args])

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        known = args and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(context, args if known else ["run", *args])


@click.group(cls=_Parts)
def main() -> None:
    """Benchmarks of callmark and its peers. Without a command: run all parts, or those that are named."""


@main.command()
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)))
@click.option("--quick", "is_quick", is_flag=True, help="Smaller texts, fewer rounds: about a minute.")
@click.option("--seed", default=0, show_default=True, help="Another seed, other texts.")
@click.option("--characters", type=click.IntRange(min=1), help="Length of whole texts, streamed prose, big arguments.")
@click.option("--rounds", type=click.IntRange(min=1), help="Turns of each reader in a contest.")
@click.option("--peer", "peers", multiple=True, help="Only this peer (a beginning of its name; may be repeated).")
@click.option("--no-peers", is_flag=True, help="callmark and the floors alone.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The results [default: results/run.jsonl; of PARTS parts.jsonl]."
)
@click.option("--plots/--no-plots", default=True, help="Draw PNG plots beside the results.")
def run(
    parts: tuple[str, ...],
    is_quick: bool,
    seed: int,
    characters: int | None,
    rounds: int | None,
    peers: tuple[str, ...],
    no_peers: bool,
    out: Path | None,
    plots: bool,
) -> None:
    """Run the PARTS (all by default). The exit code is 1 where callmark lost a call or read one wrongly."""
    start, load = perf_counter(), load_now()  # making environments is load, too
    console = Console(highlight=False, soft_wrap=True)
    scale = (QUICK if is_quick else Scale())._replace(seed=seed)
    if characters:
        scale = scale.of_length(characters)
    if rounds:
        scale = scale._replace(rounds=rounds)
    if peers and no_peers:
        raise click.UsageError("--peer and --no-peers contradict each other")
    for peer in peers:
        if not any(name.startswith(peer) for name in (*PEERS, contests.COMPILED)):
            raise click.BadParameter(f"{peer!r} begins none of {'; '.join(PEERS)}", param_hint="--peer")
    chosen = [name for name in PARTS if not parts or name in parts]
    for line in _without_effect(chosen, {"--seed": seed, "--characters": characters, "--rounds": rounds}, peers):
        click.echo(line, err=True)
    try:
        lines = Lines(out or ROOT / "results" / ("parts.jsonl" if parts else "run.jsonl"))
    except OSError as error:
        raise click.BadParameter(f"cannot be written: {error}", param_hint="--out") from None
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )

    def keep(made: Sequence[Row]) -> None:
        try:
            lines.add(made)
        except OSError as error:
            raise click.ClickException(f"{lines.path} cannot be written: {error}") from None

    rows: list[Row] = []
    with Progress(*columns, console=console, transient=True) as progress:

        def tell(text: str) -> None:
            progress.console.print(text + "\n", markup=False)

        def prepare(text: str) -> None:
            progress.update(task, description=text)
            if not console.is_terminal:  # a log shows no bar, and environments take minutes
                progress.console.print(text, markup=False)

        task = progress.add_task("peers", total=None)
        own = Parts((quick if is_quick else full)(seed), tell)
        arena = None
        try:
            own.begin(chosen)
            with _available():
                arena = Arena(scale, tell=prepare, wanted=_wanted(set(chosen), peers, no_peers))
            versions = arena.versions()
            heading = conditions(seed, is_quick, versions, arena.unavailable, load)
            heading["command"] = _command(parts, is_quick, seed, characters, rounds, peers, no_peers)
            rows += [heading, {"part": "time", "of": "set-up", "seconds": perf_counter() - start}]
            keep(rows)
            tell("\n".join(f"{key:11} {_said(value)}" for key, value in heading.items() if key != "part"))
            for name in chosen:
                if lacking := _lacking(name):
                    tell(f"left out: {name} {lacking}")
                    rows.append({"part": "time", "of": name, "seconds": 0.0, "left out": lacking})
                    keep(rows[-1:])
                    continue
                title, shown, steps = PARTS[name]
                progress.update(task, description=name, total=steps, completed=0)
                began = perf_counter()
                if name in _ALONE:
                    before = len(own.rows)
                    getattr(own, {"import": "imports"}.get(name, name))()
                    made = own.rows[before:]
                    keep(made)
                else:
                    made = []
                    for some in _contests(arena, name, is_quick):
                        named = [{"part": name, **row} for row in some]
                        keep(named)
                        made += named
                        progress.advance(task)
                    tell(table(title, shown, made))
                    if name == "memory":
                        before = len(own.rows)
                        own.memory()
                        keep(own.rows[before:])
                        made += own.rows[before:]
                spent = {"part": "time", "of": name, "seconds": perf_counter() - began}
                keep([spent])
                rows += [*made, spent]
        finally:
            own.close()
            if arena is not None:
                arena.close()
    wrong = own.wrong + [_complaint(row) for row in rows if _is_wrong(row)]
    for title, text in figures.summary(rows):
        console.print(f"{title}\n{text}\n", markup=False)
    if wrong:
        console.print("WRONG:\n" + "\n".join(f"  {line}" for line in wrong), markup=False)
    console.print(f"rows: {lines.path}", markup=False)
    for path in _draw(lines.path) if plots and lines.path.is_file() else []:
        console.print(f"plot: {path}", markup=False)
    parts_spent = ", ".join(f"{row['of']} {row['seconds']:.0f}" for row in rows if row.get("part") == "time")
    console.print(f"{perf_counter() - start:.0f} s ({parts_spent})", markup=False)
    sys.exit(1 if wrong else 0)


@contextmanager
def _available() -> Iterator[None]:
    """Tell in a line that callmark itself cannot be run as what it is called."""
    try:
        yield
    except UnavailableError as error:
        raise click.ClickException(str(error)) from None


def _command(
    parts: Sequence[str], is_quick: bool, seed: int, characters: int | None, rounds: int | None, peers: Sequence[str],
    no_peers: bool,
) -> str:  # fmt: skip
    """Return the command that makes the same rows again."""
    words = [*parts, *(["--quick"] if is_quick else []), *(["--no-peers"] if no_peers else [])]
    for option, value in (("--seed", seed), ("--characters", characters), ("--rounds", rounds)):
        words += [option, str(value)] if value else []
    for peer in peers:
        words += ["--peer", peer]
    return shlex.join(["python", "-m", "benchmarks", *words])


def _wanted(parts: set[str], peers: Sequence[str], no_peers: bool) -> list[str]:
    """Return the names of the processes that some parts take, beside our own; `peers` are beginnings of names."""
    if no_peers or parts <= _ALONE:
        return []
    names = (*([contests.COMPILED] if parts & _WITH_COMPILED else []), *PEERS)
    return [name for name in names if not peers or name.startswith(tuple(peers))]


def _read_in(part: str) -> set[str]:
    """Return the names of the processes, beside our own, whose readers a part asks."""
    if part in _ALONE:
        return set()
    if part == "arguments":
        return {entrant.peer for entrant in contests.DECODERS}
    if part == "correctness":
        return {entrant.peer for *_, entrants in FORMATS for entrant in entrants}
    hermes = {entrant.peer for entrant in contests.READ_BY["hermes"]}  # all who read another dialect read it, too
    if part == "memory":
        return set(filter(in_python, hermes))
    return hermes | ({contests.COMPILED} if part in _WITH_COMPILED else set())


def _without_effect(parts: Sequence[str], options: dict[str, int | None], peers: Sequence[str]) -> Iterator[str]:
    """Yield a line for each option that no part heeds. Raises UsageError where nobody of those asked for would run."""
    several = ", ".join(parts)
    for option, value in options.items():
        if value and not _HEEDED[option] & set(parts):
            yield f"{option} has no effect on {several}"
    asked = set().union(*map(_read_in, parts))
    idle = [peer for peer in peers if not any(name.startswith(peer) for name in asked)]
    if peers and len(idle) == len(peers):
        raise click.UsageError(f"none of --peer {', '.join(peers)} reads in {several}")
    for peer in idle:
        yield f"--peer {peer} has no effect on {several}"


def _lacking(part: str) -> str:
    """Return what a part needs and does not find here, if anything."""
    if part == "stdio" and not shutil.which("node"):
        return "needs node"
    if part == "correctness":
        try:
            import canitoolcall.fixtures  # type: ignore[import-untyped,unused-ignore]  # noqa: F401
        except ImportError:
            return "needs canitoolcall"
    return ""


def _contests(arena: Arena, name: str, is_quick: bool) -> Iterator[list[Row]]:
    if name == "correctness":
        return correctness(arena, 24 if is_quick else 1)
    made: Callable[[], Iterator[list[Row]]] = getattr(arena, name)
    return made()


def _said(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    return "; ".join(f"{key} ({', '.join(f'{k} {v}' for k, v in inner.items()) if isinstance(inner, dict) else inner})"
                     for key, inner in value.items()) or "none"  # fmt: skip


def _is_wrong(row: Row) -> bool:
    wrong = str(row.get("verdict", "")).startswith(("wrong", "lost", "failed", ">"))
    splits = any(row.get(share) not in (None, 1.0) for share in ("stream share", "splits share"))
    return str(row.get("reader", "")).startswith(contests.CALLMARK) and (wrong or splits)


def _complaint(row: Row) -> str:
    keys = ("part", "workload", "format", "spelling", "chunk", "reader", "verdict")
    told = ", ".join(str(row[key]) for key in keys if row.get(key))
    return f"{told}, streams equal the whole {row['stream']}" if row.get("stream") else told


def _draw(path: Path) -> list[Path]:
    try:
        from benchmarks.plots import draw
    except ImportError:
        Console(stderr=True).print("no plots: they need matplotlib (pip install -e '.\\[bench]')")
        return []
    rows = _read(path)
    try:
        return draw(rows, path.with_name(path.name.removesuffix(".jsonl")))  # of `run.1` all of it
    except OSError as error:
        raise click.ClickException(f"plots cannot be written: {error}") from None


def _read(path: Path) -> list[Row]:
    try:
        rows = read_lines(path)
    except ValueError as error:
        raise click.ClickException(f"{path} holds no results: {error}") from None
    if not any(row.get("part") == "conditions" for row in rows):
        raise click.ClickException(f"{path} holds no results: no row says how they were taken")
    return rows


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Tell in a line that a row lacks something, or holds what it cannot."""
    try:
        yield
    except (KeyError, TypeError) as error:
        raise click.ClickException(f"{path} is damaged: {type(error).__name__}: {error}") from None


@main.command()
@click.argument("path", metavar="RESULTS", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def plot(path: Path) -> None:
    """Draw the plots of a results file beside it. The exit code is 1 where there are none."""
    if find_spec("matplotlib") is None:
        raise click.ClickException("plots need matplotlib (pip install -e '.[bench]')")
    with _undamaged(path):
        drawn = _draw(path)
    if not drawn:
        raise click.ClickException(f"{path} holds nothing to draw")
    for one in drawn:
        click.echo(one)


@main.command()
@click.argument("path", metavar="RESULTS", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--write", is_flag=True, help="Put it into README.md, between its marks.")
def readme(path: Path, write: bool) -> None:
    """Print the figures of a results file as the README shows them."""
    with _undamaged(path):
        text = figures.readme(_read(path))
    if write:
        try:
            figures.write(text)
        except ValueError as error:
            raise click.ClickException(str(error)) from None
    else:
        click.echo(text)


@main.command()
@click.argument("revision", metavar="REV")
@click.option("--seed", default=0, show_default=True)
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(min=9))  # of fewer, quartiles tell noise
@click.option("--instructions/--no-instructions", default=True, help="Count instructions too (Linux or valgrind).")
def compare(revision: str, seed: int, rounds: int, instructions: bool) -> None:
    """Tell what the working tree costs against REV.

    Times are taken in turns; instructions are counted.
    """
    from benchmarks.compare import RevisionError
    from benchmarks.compare import compare as against

    try:
        for text in against(revision, seed, rounds, instructions):
            click.echo(text)
    except RevisionError as error:
        raise click.ClickException(str(error)) from None


@main.command()
@click.option("--spelling", type=click.Choice(list(SPELLINGS)), default="hermes", show_default=True)
@click.option("--way", type=click.Choice(["whole", "stream"]), help="[default: both]")
@click.option("--peer", help="This peer instead of callmark (a beginning of its name).")
@click.option("--seed", default=0, show_default=True)
@click.option("--characters", default=8000, show_default=True, type=click.IntRange(min=1))
@click.option("--seconds", default=2.0, show_default=True, type=click.FloatRange(min=0.01),
              help="So much reading of each text.")  # fmt: skip
def profile(spelling: str, way: str | None, peer: str | None, seed: int, characters: int, seconds: float) -> None:
    """Say where the time of reading goes, by function.

    It is that of callmark, or with --peer that of a peer.
    """
    from benchmarks.profiling import profile as sampled
    from benchmarks.profiling import readers

    sampled_peers = list(filter(in_python, PEERS))
    wanted = [name for name in sampled_peers if peer and name.startswith(peer)]
    if peer and not wanted:
        raise click.BadParameter(
            f"{peer!r} begins none of those in Python: {'; '.join(sampled_peers)}", param_hint="--peer"
        )
    with _available():
        arena = Arena(Scale(seed=seed), tell=lambda line: click.echo(line, err=True), wanted=wanted)
    try:
        arena.versions()
        for name, why in arena.unavailable.items():
            raise click.ClickException(f"{name}: {why}")
        who = readers(arena, spelling)
        if peer and who[0].peer not in wanted:
            raise click.BadParameter(f"{peer} does not read {spelling}", param_hint="--peer")
        for text in sampled(arena, who, spelling, [way] if way else ["whole", "stream"], characters, seconds):
            click.echo(text + "\n")
    finally:
        arena.close()


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
