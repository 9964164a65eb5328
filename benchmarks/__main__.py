"""The command: `python -m benchmarks [--quick] [--part PART] [--seed N] [--out FILE]`."""

from __future__ import annotations

import argparse
import sys
from time import perf_counter

from benchmarks.parts import Parts, full, quick
from benchmarks.report import conditions, show, write_lines

PARTS = ("recovery", "whole", "stream", "growth", "attacks", "memory", "import", "stdio")


def main() -> int:
    """Run the parts that were asked for; return 1 where a call was lost or a workload read wrongly, else 0."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller texts, fewer rounds: under a minute")
    arguments.add_argument("--part", action="append", choices=PARTS, help="only this part (may be given several times)")
    arguments.add_argument("--seed", type=int, default=0, help="another seed, other texts (default 0)")
    arguments.add_argument("--characters", type=int, help="length of the whole texts and of streamed prose")
    arguments.add_argument("--out", metavar="FILE", help="also write the rows as JSON Lines, to results/ by default")
    given = arguments.parse_args()

    start = perf_counter()
    before = conditions(given.seed, given.quick)
    show("\n".join(f"{key:9} {value}" for key, value in before.items() if key != "part"))
    scale = (quick if given.quick else full)(given.seed)
    parts = Parts(scale._replace(characters=given.characters) if given.characters else scale)
    for name in PARTS:  # recovery first: no speed counts without it
        if not given.part or name in given.part:
            getattr(parts, {"import": "imports"}.get(name, name))()

    missed = sum(row.get("") == "MISS" for row in parts.rows)
    held = sum(row.get("") == "ok" for row in parts.rows)
    show(f"{held} targets met, {missed} missed, {len(parts.wrong)} wrong, in {perf_counter() - start:.0f} s")
    if parts.wrong:
        show("WRONG:\n" + "\n".join(f"  {line}" for line in parts.wrong))
    if given.out:
        rows = [{("verdict" if key == "" else key.strip()): value for key, value in row.items()} for row in parts.rows]
        show(f"rows written to {write_lines(given.out, [before, *rows])}")
    return 1 if parts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
