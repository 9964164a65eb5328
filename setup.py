"""Compiles the engine of reading to C, with mypyc and from the same source, where `CALLMARK_COMPILED=1` asks for it.

Everything else about the package stands in pyproject.toml. What is left out: patterns and what is made of them, as `re`
does the work there, and what a person sees.
"""

import os
import tomllib
from pathlib import Path

from setuptools import setup

ENGINE = (
    "ahead", "arguments", "beside", "calls", "characters", "closers", "contexts", "decoder", "entries", "envelope",
    "fast", "objects", "pairs", "parameters", "parser", "pieces", "plain", "raw_values", "runs", "scanner", "sections",
    "status", "stops", "strings", "values", "words",
)  # fmt: skip


def engine() -> dict[str, object]:
    """Return what `setup` is told of the engine: how it is built, or first what must be installed to build it."""
    if os.environ.get("CALLMARK_COMPILED") != "1":
        return {}
    try:
        from mypyc.build import mypycify
    except ImportError:
        project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
        return {"setup_requires": ["mypy>=1.14", *project["dependencies"]]}
    paths = [f"src/callmark/reading/{module}.py" for module in ENGINE]
    # Stubs, and what is optional, are not there where it is installed: that the types hold is checked without mypyc.
    options = ["--config-file=", "--ignore-missing-imports"]
    # -O3 takes gcc a third longer for a percent or two; one file for all modules takes it a third longer for nothing.
    engine = mypycify([*options, *paths], opt_level="2", debug_level="0", group_name="callmark", multi_file=True)
    return {"ext_modules": engine}


setup(**engine())
