"""PNG plots of a results file: throughput, streams, the next chunk, attacks, memory, correctness. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from benchmarks.contests import COMPILED, OWN
from benchmarks.correctness import MEASURES
from benchmarks.figures import of
from benchmarks.report import Row

_INK, _FAINT, _GRID = "#1f2933", "#7b8794", "#e4e7eb"
_COLOURS = {  # by the first word of a reader's name; Okabe's and Ito's, which are told apart by the colour-blind
    "callmark": "#d55e00", "floor": "#9aa5b1", "emit": "#9aa5b1", "sglang": "#0072b2", "vllm": "#e69f00",
    "agent-tool-parser": "#009e73", "forge-guardrails": "#cc79a7", "ai-sdk": "#56b4e9",
}  # fmt: skip
_MARKERS = "osD^vP*X"
_SPELLINGS = ("hermes", "qwen_xml", "glm", "pythonic")  # those that peers read
_STYLE: Any = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.edgecolor": _FAINT, "axes.labelcolor": _INK, "text.color": _INK,
    "xtick.color": _FAINT, "ytick.color": _INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": _GRID, "axes.axisbelow": True, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "figure.facecolor": "white", "savefig.dpi": 130, "legend.frameon": False,
}  # fmt: skip


def draw(rows: list[Row], stem: Path) -> list[Path]:
    """Draw what the rows hold; return the files, `<stem>-<plot>.png`. Older ones of that name, of other rows, go."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # matplotlib takes seconds to lay out a plot
        drawn = pool.map(partial(_draw_one, rows, stem), _PLOTS)
        return [path for path in drawn if path is not None]


def _draw_one(rows: list[Row], stem: Path, name: str) -> Path | None:
    path = stem.with_name(f"{stem.name}-{name}.png")
    with mpl.rc_context(_STYLE):
        figure = _PLOTS[name](rows)
        if figure is None:
            path.unlink(missing_ok=True)
            return None
        figure.savefig(path, bbox_inches="tight")
        plt.close(figure)
    return path


def _colour(reader: str) -> str:
    return _COLOURS.get(reader.split(",")[0].split(" ")[0], _FAINT)


def _short(reader: str) -> str:
    return reader.replace(", own dialect and tools", ", own dialect")


def _source(figure: Figure, rows: list[Row], note: str, y: float = -0.005) -> None:
    about = next((row for row in rows if row.get("part") == "conditions"), {})
    text = f"{note}\n{_taken(about)}"
    figure.text(0.005, y, text, fontsize=7.5, color=_FAINT, va="top")


def _taken(about: Row) -> str:
    """Say how the rows were taken: a quick run's figures, or those of another seed, are others."""
    words = [f"commit {about.get('commit')}", f"seed {about.get('seed')}", *(["--quick"] if about.get("quick") else [])]
    return ", ".join([*words, str(about.get("python")), str(about.get("machine"))])


def _bars(rows: list[Row], part: str, column: str, label: str, title: str, note: str) -> Any:
    """Draw one panel for each workload and spelling: bars on a log scale, hatched where a reader was wrong."""
    chosen = [row for row in rows if row.get("part") == part and row.get("spelling") in _SPELLINGS
              and row["reader"] != "empty" and row.get("chunk") in (None, "4")]  # fmt: skip
    if not any(column in row for row in chosen):
        return None
    workloads = list(dict.fromkeys(row["workload"] for row in chosen))
    columns = [one for one in _SPELLINGS if any(row["spelling"] == one for row in chosen)]
    counts = [
        max(len([r for r in chosen if (r["workload"], r["spelling"]) == (w, s)]) for s in columns) for w in workloads
    ]
    figure, grid = plt.subplots(
        len(workloads), len(columns), squeeze=False,
        figsize=(5.2 * len(columns), 0.7 + sum(0.5 + 0.24 * n for n in counts)),
        gridspec_kw={"height_ratios": [n + 1 for n in counts]}, sharex=True, layout="constrained",
    )  # fmt: skip
    figures = [row[column] for row in chosen if row.get(column)]
    for line, workload in zip(grid, workloads, strict=True):
        for axes, spelling in zip(line, columns, strict=True):
            mine = [row for row in chosen if (row["workload"], row["spelling"]) == (workload, spelling)]
            if not mine:
                axes.axis("off")
                continue
            axes.set_title(f"{workload}  ·  {spelling}")
            axes.set_xscale("log")
            axes.set_xlim(min(figures) / 2.5, max(figures) * 8)
            axes.grid(axis="y", visible=False)
            for place, row in enumerate(mine):
                _bar(axes, place, row, column, min(figures) / 2.5)
            axes.set_yticks(range(len(mine)), [_short(row["reader"]) for row in mine])
            axes.tick_params(axis="y", length=0)
            axes.set_ylim(len(mine) - 0.4, -0.6)  # the first above; rows without a bar have their place too
    for column_of_axes in grid.T:  # the last panel of each column has the ticks
        last = [axes for axes in column_of_axes if axes.axison][-1]
        last.set_xlabel(label)
        last.tick_params(labelbottom=True)
    figure.suptitle(title, x=0.005, ha="left", fontsize=13, fontweight="bold")
    wrong = Patch(facecolor="white", edgecolor=_FAINT, hatch="////", label="read wrongly: not counted")
    figure.legend(handles=[wrong], loc="upper right", fontsize=8)
    _source(figure, rows, note)
    return figure


def _bar(axes: Any, place: int, row: Row, column: str, left: float) -> None:
    figure, verdict, colour = row.get(column), str(row["verdict"]), _colour(row["reader"])
    if not figure:
        axes.annotate(verdict.split(":")[0], (left, place), xytext=(3, 0), textcoords="offset points", va="center",
                      fontsize=7.5, color=_FAINT, style="italic")  # fmt: skip
        return
    wrong = verdict.startswith(("wrong", "failed"))
    axes.barh(place, figure, height=0.72, color="white" if wrong else colour, edgecolor=colour if wrong else "none",
              hatch="////" if wrong else None, linewidth=0.6)  # fmt: skip
    words = f"{figure:,.0f}" if figure >= 10 else f"{figure:.2g}"
    axes.annotate(words, (figure, place), xytext=(3, 0), textcoords="offset points", va="center", fontsize=7.5,
                  color=_FAINT if wrong else _INK)  # fmt: skip


def whole(rows: list[Row]) -> Any:
    """Throughput of whole texts."""
    return _bars(rows, "whole", "MB/s", "MB/s (10⁶ characters a second, log scale): longer is faster", "Whole texts",
                 "floor: str.find for the opener, msgspec on the arguments; parts in C: that, and a look at each sign "
                 "of an opener or a fence, and events")  # fmt: skip


def stream(rows: list[Row]) -> Any:
    """Cost of a chunk."""
    return _bars(rows, "stream", "ns/chunk", "ns a chunk of 4 characters (log scale): shorter is faster", "Streams",
                 "emit: a feed that returns one event holding its chunk")  # fmt: skip


def _lines(axes: Any, rows: list[Row], all_rows: list[Row], x: str, y: str, scale: float = 1.0) -> None:
    """Draw a line for each reader of `rows`; it has the same marker in every panel of `all_rows`."""
    for place, reader in enumerate(dict.fromkeys(row["reader"] for row in all_rows)):
        mine = [row for row in rows if row["reader"] == reader and row.get(y)]
        if not mine:
            continue
        line_style = "--" if reader == OWN or reader.endswith(("qwen25", "(Python)")) else "-"
        axes.plot([row[x] for row in mine], [row[y] * scale for row in mine], color=_colour(reader), lw=1.8,
                  marker=_MARKERS[place % len(_MARKERS)], ms=4.5, ls=":" if reader == COMPILED else line_style,
                  label=_short(reader))  # fmt: skip
        for row in mine:
            if str(row.get("verdict", "")).startswith(("lost", "wrong")):
                axes.plot(row[x], row[y] * scale, marker="x", ms=9, mew=1.6, color=_INK)
    axes.set_xscale("log")
    axes.set_yscale("log")


def _legend(figure: Figure, grid: Any, wrong: str) -> float:
    """Say below all panels who is who, and what a cross on a point means; return where the next line may stand."""
    handles = {label: handle for axes in grid.flat
               for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}  # fmt: skip
    handles[wrong] = Line2D([], [], ls="", marker="x", color=_INK, ms=8)
    columns = max(1, int(figure.get_figwidth() / 2.2))
    figure.legend(handles.values(), handles.keys(), loc="upper center", bbox_to_anchor=(0.5, 0), ncols=columns,
                  fontsize=8)  # fmt: skip
    return -(0.25 + 0.18 * math.ceil(len(handles) / columns)) / float(figure.get_figheight())


def next_chunk(rows: list[Row]) -> Any:
    """What the next chunk costs: the plot that shows who is quadratic."""
    chosen = of(rows, "next")
    spellings = list(dict.fromkeys(row["spelling"] for row in chosen))
    if not chosen:
        return None
    figure, axes = plt.subplots(1, len(spellings), figsize=(4.6 * len(spellings), 4), sharey=True, squeeze=False,
                                layout="constrained")  # fmt: skip
    for one, spelling in zip(axes[0], spellings, strict=True):
        mine = [row for row in chosen if row["spelling"] == spelling]
        _lines(one, mine, chosen, "already", "us/chunk")
        one.set_title(spelling)
        one.set_xlabel("characters of the call that have come already")
    below = _legend(figure, axes, "read wrongly")
    axes[0][0].set_ylabel("µs for the next chunk of 4 characters")
    figure.suptitle("What the next chunk costs: flat is linear in all, rising is quadratic", x=0.005, ha="left",
                    fontsize=13, fontweight="bold")  # fmt: skip
    _source(figure, rows, "medians; the beginning is fed in tokens, the rest up to there in 20 big pieces; "
            "a line ends early where a reader needs too long for the next size", below)  # fmt: skip
    return figure


def hostile(rows: list[Row]) -> Any:
    """Time against size for texts made to be slow."""
    chosen = of(rows, "hostile")
    names = list(dict.fromkeys(row["workload"] for row in chosen))
    if not chosen:
        return None
    figure, grid = plt.subplots(2, len(names), figsize=(3.3 * len(names), 6.4), sharex=True, sharey=True, squeeze=False,
                                layout="constrained")  # fmt: skip
    ticks = sorted({1 << round(math.log2(row["characters"])) for row in chosen})
    for line, way in zip(grid, ("whole", "stream"), strict=True):
        for axes, name in zip(line, names, strict=True):
            mine = [row for row in chosen if (row["workload"], row["way"]) == (name, way)]
            _lines(axes, mine, chosen, "characters", "best seconds", 1000)
            axes.set_title(f"{name}  ·  {way}", fontsize=9)
            axes.set_xticks(ticks, [f"{tick // 1024}K" for tick in ticks])
            axes.minorticks_off()
        line[0].set_ylabel("ms")
    for axes in grid[-1]:
        axes.set_xlabel("characters")
    below = _legend(figure, grid, "the good call behind it is lost")
    figure.suptitle("Texts made to be slow", x=0.005, ha="left", fontsize=13, fontweight="bold")
    _source(figure, rows, "a line ends early where the next size would take too long or the reader failed", below)
    return figure


def memory(rows: list[Row]) -> Any:
    """Peak of what Python allocates, in multiples of the text."""
    chosen = [row for row in of(rows, "memory") if row.get("reader")]
    if not chosen:
        return None
    ways = list(dict.fromkeys(row["way"] for row in chosen))
    figure, grid = plt.subplots(1, len(ways), figsize=(5.4 * len(ways), 3.4), squeeze=False, layout="constrained")
    for axes, way in zip(grid[0], ways, strict=True):
        mine = [row for row in chosen if row["way"] == way]
        for place, row in enumerate(mine):
            _bar(axes, place, row, "x text", 0)
        axes.set_yticks(range(len(mine)), [_short(row["reader"]) for row in mine])
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.set_ylim(len(mine) - 0.4, -0.6)
        axes.margins(x=0.12)
        axes.set_title(f"one call of {mine[0]['characters'] / 1000:,.0f} KB, {way}")
        axes.set_xlabel("times the size of the text")
    figure.suptitle("Peak of memory", x=0.005, ha="left", fontsize=13, fontweight="bold")
    _source(figure, rows, "tracemalloc: what Python allocates, results included; memory of Rust and node is not seen; "
            "hatched, grey: read wrongly")  # fmt: skip
    return figure


def correctness(rows: list[Row]) -> Any:
    """Heat maps of formats and readers."""
    chosen = of(rows, "correctness")
    if not chosen:
        return None
    formats = list(dict.fromkeys(row["format"] for row in chosen))
    readers = list(dict.fromkeys(row["reader"] for row in chosen))
    asked = {name: max(_asked(row[measure]) for row in of(chosen, "correctness", format=name) for measure in MEASURES)
             for name in formats}  # fmt: skip
    panels = {"calls": "calls exactly right", "stream": "streams equal the whole", "splits": "streams equal each other",
              "clean": "no marker leaks"}  # fmt: skip
    # from brown to blue: a red and a green of one brightness are one colour to many
    shades = LinearSegmentedColormap.from_list("right", ["#b35806", "#f1a340", "#fbe3c0", "#a8c8e4", "#2166ac"])
    figure, grid = plt.subplots(1, 4, sharey=True,
                                figsize=(4 * (1.1 + 0.52 * len(readers)) + 1, 1.6 + 0.34 * len(formats)),
                                layout="constrained")  # fmt: skip
    for axes, (measure, title) in zip(grid, panels.items(), strict=True):
        axes.set_facecolor("#f5f7fa")
        for row in chosen:
            share = row[f"{measure} share"]
            if share is None:
                continue
            x, y = readers.index(row["reader"]), formats.index(row["format"])
            axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=shades(share**2), lw=0))
            of_them = _asked(row[measure])
            fewer = f"\nof {of_them}" if of_them != asked[row["format"]] else ""
            axes.text(x, y, f"{share:.0%}".rstrip("%") + fewer, ha="center", va="center", fontsize=6 if fewer else 7.5,
                      linespacing=0.9, color="white" if share < 0.35 or share > 0.93 else _INK)  # fmt: skip
        axes.set_xlim(-0.6, len(readers) - 0.4)
        axes.set_ylim(len(formats) - 0.4, -0.6)
        axes.set_xticks(range(len(readers)), readers, rotation=40, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(formats)), [f"{name}, n = {asked[name]}" for name in formats])
        axes.tick_params(length=0, colors=_INK)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.set_title(title)
    figure.suptitle("Recorded outputs of models, % of fixtures", x=0.005, ha="left", fontsize=13, fontweight="bold")
    _source(
        figure, rows, "n: so many fixtures, or the fewer that a field says (what broken outputs should give is "
        "not known); they and the last three checks are canitoolcall's; blank: no parser for it, or no streaming",
    )
    return figure


def _asked(counted: str) -> int:
    """Return of how many a share is: 5 of "4/5"."""
    return int(counted.partition("/")[2] or 0)


def sizes(rows: list[Row]) -> Any:
    """Throughput against the length of a chunk."""
    chosen = [row for row in of(rows, "sizes") if row["chunk"] != "tokens" and row.get("MB/s")]
    if not chosen:
        return None
    places = list(dict.fromkeys((row["spelling"], row["workload"]) for row in chosen))
    spellings, workloads = (list(dict.fromkeys(one[n] for one in places)) for n in (0, 1))
    figure, grid = plt.subplots(len(spellings), len(workloads), figsize=(3.6 * len(workloads), 2.9 * len(spellings)),
                                sharex=True, sharey=True, squeeze=False, layout="constrained")  # fmt: skip
    for line, spelling in zip(grid, spellings, strict=True):
        for axes, workload in zip(line, workloads, strict=True):
            mine = [{**row, "chunk": int(row["chunk"])} for row in chosen
                    if (row["spelling"], row["workload"]) == (spelling, workload)]  # fmt: skip
            _lines(axes, mine, chosen, "chunk", "MB/s")
            axes.set_title(f"{workload}  ·  {spelling}", fontsize=9)
            axes.set_xticks([1, 4, 16, 64], ["1", "4", "16", "64"])
            axes.minorticks_off()
        line[0].set_ylabel("MB/s")
    for axes in grid[-1]:
        axes.set_xlabel("characters in a chunk")
    below = _legend(figure, grid, "read wrongly")
    figure.suptitle("Throughput of streams against the length of a chunk", x=0.005, ha="left",
                    fontsize=13, fontweight="bold")  # fmt: skip
    _source(figure, rows, "a chunk of so many characters, cut anywhere", below)
    return figure


_PLOTS: dict[str, Callable[[list[Row]], Any]] = {
    "whole": whole,
    "stream": stream,
    "chunk-lengths": sizes,
    "next-chunk": next_chunk,
    "attacks": hostile,
    "memory": memory,
    "correctness": correctness,
}
