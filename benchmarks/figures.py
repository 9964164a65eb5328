"""What a results file says in short: targets, callmark against the floors and against each peer; the README's block."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.contests import CALLMARK, COMPILED, FLOORS, PARTS_IN_C
from benchmarks.report import ROOT, Row, table

NOT_PYTHON = ("Rust", "node")
_ABOUT = re.compile(r"not run: about (\d+ s)")


def of(rows: list[Row], part: str, **wanted: object) -> list[Row]:
    """Return the rows of a part that have these values."""
    return [
        row for row in rows if row.get("part") == part and all(row.get(key) == value for key, value in wanted.items())
    ]


def _is_peer(row: Row) -> bool:
    return not str(row["reader"]).startswith((CALLMARK, *FLOORS))


def _counted(rows: list[Row]) -> list[Row]:
    """Return the rows without those that were read wrongly, and without all of a text that callmark read wrongly."""

    def text(row: Row) -> tuple[object, ...]:
        return row.get("part"), row.get("workload"), row.get("spelling")

    wrong = [row for row in rows if str(row.get("verdict", "")).startswith(("wrong", "failed"))]
    ours = {text(row) for row in wrong if row.get("reader") == CALLMARK}
    return [row for row in rows if row not in wrong and text(row) not in ours]


def fastest(rows: list[Row], *, python: bool) -> Row | None:
    """Return the fastest peer that is right, of those in Python or of all."""
    right = [row for row in rows if _is_peer(row) and row["verdict"] == "right" and row.get("x callmark")
             and not (python and any(word in row["reader"] for word in NOT_PYTHON))]  # fmt: skip
    return min(right, key=lambda row: float(row["x callmark"]), default=None)


def targets(rows: list[Row]) -> Iterator[Row]:
    """Yield each goal with what was measured: at most (`<=`) or at least (`>=`) so much."""
    rows = _counted(rows)

    def row(goal: str, figure: float | None, bound: float, *, least: bool = False, of_whom: str = "") -> Row:
        met = None if figure is None or math.isnan(figure) else figure >= bound if least else figure <= bound
        return {"goal": goal, "measured": figure, "asked": f"{'>=' if least else '<='} {bound:,g}", "against": of_whom,
                "": "" if met is None else "ok" if met else "MISS"}  # fmt: skip

    def against(part: str, peer: Row, goal: float) -> Iterator[Row]:
        workload, spelling = peer["workload"], peer["spelling"]
        compiled = of(rows, part, workload=workload, spelling=spelling, reader=COMPILED)
        theirs = peer.get("x callmark")
        for mark, share in (("", 1.0), *((", compiled", ours.get("x callmark")) for ours in compiled)):
            figure = None if theirs is None or share is None else theirs / share
            title = f"{part}{mark}, {workload}, {spelling}: times as fast"
            yield row(title, figure, goal, least=True, of_whom=peer["reader"])

    for reader, mark in ((CALLMARK, ""), (COMPILED, ", compiled")):
        for ours in of(rows, "whole", reader=reader):
            if "median seconds" not in ours:
                continue
            workload, spelling = ours["workload"], ours["spelling"]
            name = f"whole{mark}, {workload}, {spelling}"
            if workload in ("prose with calls", "words with calls", "one big call"):
                yield row(f"{name}: x floor", ours.get("x floor"), 2)
            elif workload == "dense":
                yield row(f"{name}: x floor", ours.get("x floor"), 3)
                if spelling == "key=value":
                    yield row(f"{name}: us a call", ours["median seconds"] / ours["calls"] * 1e6, 6)
            elif workload == "a message of 2 KB":
                yield row(f"{name}: us", ours["median seconds"] * 1e6, 5)
        for ours in of(rows, "stream", reader=reader):
            goal = 7.0 if ours["workload"] == "dense" else 4.0
            yield row(f"stream{mark}, {ours['workload']}, {ours['spelling']}: x emit", ours.get("x floor"), goal)
    for workload, spelling in dict.fromkeys((one["workload"], one["spelling"]) for one in of(rows, "whole")):
        peer = fastest(of(rows, "whole", workload=workload, spelling=spelling), python=True)
        if peer is not None:
            yield from against("whole", peer, 4)
    peer = fastest(of(rows, "stream", workload="prose"), python=True)
    if peer is not None:
        yield from against("stream", peer, 15)
    for workload, spelling, reader, goal in (
        ("argument of 1 KB", "hermes", "sglang hermes", 300.0),
        ("argument of 10 KB", "hermes", "sglang hermes", 3000.0),
        ("argument of 1 KB", "qwen_xml", "vllm qwen3_coder", 30.0),
        ("argument of 10 KB", "qwen_xml", "vllm qwen3_coder", 30.0),
    ):
        for peer in of(rows, "stream", workload=workload, spelling=spelling, reader=reader):
            yield from against("stream", peer, goal)
    stopped = [one for one in of(rows, "growth") if "stopped" in str(one.get("verdict", one.get("")))]
    for column, title in (("exponent", "the worst exponent"), ("last 16x", "the worst over the last factor of 16")):
        grown = [one for one in of(rows, "growth") if not math.isnan(one.get(column) or math.nan)]
        if grown or stopped:
            worst = max(grown, key=lambda one: float(one[column]), default=None)
            figure = None if worst is None else worst[column]
            whose = [] if worst is None else [f"{worst['workload']}, {worst['read']}"]
            made = row(f"growth: {title}", figure, 1.05, of_whom="; ".join(whose + _ends(stopped)))
            # of what was not measured up to the end nothing is known there
            yield made | ({"": "MISS: it was stopped"} if stopped and made[""] != "MISS" else {})
    found = of(rows, "recovery")
    if found:
        counted = [str(one["found"]).split("/") for one in found if "found" in one]
        share = sum(int(good) for good, _ in counted) / sum(int(all_) for _, all_ in counted)
        yield row("recovery: share found", share, 1, least=True)


def _ends(stopped: list[Row]) -> list[str]:
    """Say up to where rows were measured that were stopped before their last size: the shortest, and how many."""
    if not stopped:
        return []
    least = min(stopped, key=lambda one: int(one["to"] or 0))
    more = f", and {len(stopped) - 1} more" if len(stopped) > 1 else ""
    return [f"stopped at {least['to'] or 0:,}: {least['workload']}, {least['read']}{more}"]


def _of_text(rows: list[Row], part: str, workload: str, spelling: str, *readers: str) -> list[Row]:
    """Return what each of some readers did with a text, {} for one that was not there."""
    found = of(rows, part, workload=workload, spelling=spelling)
    return [next((row for row in found if row["reader"] == reader), {}) for reader in readers]


def summary(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """Yield the tables that end a run."""
    made = list(targets(rows))
    if made:
        met = sum(row[""] == "ok" for row in made)
        missed = sum(row[""].startswith("MISS") for row in made)
        yield f"Goals: {met} met, {missed} missed", table("", ("goal", "measured", "asked", "against", ""), made)


def _short(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def readme(rows: list[Row]) -> str:
    """Return the README's block of figures as Markdown."""
    about = next(row for row in rows if row.get("part") == "conditions")
    load = f", load {about['load'][0]:g} at the start" if about.get("load") else ""
    lines = [
        f"Taken by `{about.get('command', 'python -m benchmarks')}` at commit {about['commit']}, "
        f"{about['python']}, {about['machine']}{load}. Times drift on any machine; ratios are of turns in one run.",
    ]
    ours_of_all = [row for part in ("whole", "stream") for row in of(rows, part, reader=CALLMARK)]
    spreads = [row["spread"] for row in ours_of_all if "spread" in row]
    if spreads:
        lines[0] += (
            f" The quartiles of callmark's ratio to the floor are {statistics.median(spreads):.0%} of it apart in half "
            f"of the rows, and {max(spreads):.0%} at most."
        )
    places = dict.fromkeys((row["workload"], row["spelling"]) for row in ours_of_all)
    if places:
        lines += [
            "",
            "callmark with every dialect listening, against floors that build no calls: finding the opener and "
            "decoding the arguments (whole), one event a chunk of 4 characters (streamed). *compiled*: the same "
            "engine, built with `CALLMARK_COMPILED=1`. *parts*: what the floor takes with a look at each sign of an "
            "opener or a fence and with the events, where nothing is decided (`find_decode_and_tell` in "
            "`benchmarks/floors.py`); no bound, but what these parts cost.",
            "",
            "| text | spelling | whole, MB/s | x floor | parts | compiled "
            "| streamed, ns a chunk | x floor | compiled |",
            "|---|---|---:|---:|---:|---:|---:|---:|---:|",
        ]
    for workload, spelling in places:
        cells = []
        for part, speed in (("whole", "MB/s"), ("stream", "ns/chunk")):
            ours, alone, compiled = _of_text(rows, part, workload, spelling, CALLMARK, PARTS_IN_C, COMPILED)
            cells += [_figure(ours, speed), _figure(ours, "x floor")]
            cells += [_figure(alone, "x floor")] * (part == "whole") + [_figure(compiled, "x floor")]
        lines.append(f"| {workload} | `{spelling}` | {' | '.join(cells)} |")
    title = "How many times as long as callmark in Python a peer takes, and its own compiled engine, whole texts:"
    peers = [
        *_peer_table(rows, "whole", title),
        *_peer_table(rows, "stream", "The same, streamed in chunks of 4 characters:"),
    ]
    if peers:
        peers += [
            "",
            "*italic*: read wrongly (calls lost, arguments changed), so not counted as fast. †: the calls are right, "
            "but not all of the text around them is shown, or more than it. `> 20 s` and `≈ 13 s` are seconds: it took "
            "longer, or would take about so long as it grows, and was not run. A part of a peer's time "
            "goes into its result objects (pydantic models, JSON text of the arguments), a part of ours into spans and "
            "repairs.",
        ]
    lines += peers
    lines += _correct_table(rows)
    return "\n".join(lines)


def _peer_table(rows: list[Row], part: str, title: str) -> list[str]:
    chosen = [row for row in rows if row.get("part") == part and (_is_peer(row) or row["reader"] == COMPILED)]
    lines: list[str] = []
    for spelling in dict.fromkeys(row["spelling"] for row in chosen if _is_peer(row)):
        mine = sorted((row for row in chosen if row["spelling"] == spelling), key=lambda row: row["reader"] != COMPILED)
        workloads = list(dict.fromkeys(row["workload"] for row in mine))
        lines += ["", f"| `{spelling}` | " + " | ".join(workloads) + " |", "|---|" + "---:|" * len(workloads)]
        for reader in dict.fromkeys(row["reader"] for row in mine):
            cells = []
            for workload in workloads:
                row = next((one for one in mine if (one["workload"], one["reader"]) == (workload, reader)), None)
                cells.append("" if row is None else _cell(row))
            lines.append(f"| {reader} | " + " | ".join(cells) + " |")
    return ["", title, *lines] if lines else []


def _cell(row: Row) -> str:
    verdict = row["verdict"]
    if row.get("x callmark") is None:
        if about := _ABOUT.match(verdict):
            return f"≈ {about[1]}"
        return verdict if verdict.startswith(">") else "failed" if verdict.startswith("failed") else "-"
    shown = "" if row.get("text", 1) == 1 else "†"
    return _figure(row, "x callmark") + shown


def _figure(row: Row, column: str) -> str:
    figure = _short(row.get(column))
    return figure if not figure or row["verdict"] in ("right", "floor") else f"*{figure}*"


def _correct_table(rows: list[Row]) -> list[str]:
    made = of(rows, "correctness")
    if not made:
        return []
    readers = list(dict.fromkeys(row["reader"] for row in made))
    lines = [
        "",
        "Recorded outputs of `canitoolcall`: calls exactly right in whole texts · every stream equal to the whole:",
        "",
        "| format | " + " | ".join(readers) + " |",
        "|---|" + "---:|" * len(readers),
    ]
    for name in dict.fromkeys(row["format"] for row in made):
        cells = []
        for reader in readers:
            row = next(iter(of(rows, "correctness", format=name, reader=reader)), None)
            cells.append("" if row is None else " · ".join(filter(None, (row["calls"], row["stream"]))))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def write(text: str, path: Path = ROOT / "README.md") -> None:
    """Put the block between the marks `<!-- figures -->` and `<!-- end of figures -->`.

    Raises ValueError where the page does not have the marks exactly once.
    """
    page = path.read_text(encoding="utf-8")
    pattern = re.compile(r"(<!-- figures -->).*?(<!-- end of figures -->)", re.DOTALL)
    made, times = pattern.subn(lambda found: f"{found[1]}\n{text}\n{found[2]}", page)
    if times != 1:
        raise ValueError(f"{path.name} has {times} places for figures, expected one")
    path.write_text(made, encoding="utf-8")
