"""Import a few modules of a big package without the rest of it: what they name, but never use here, is stood in for.

Serving engines keep their parsers in packages that import torch, CUDA kernels and a web server first. The parsers
themselves need none of it. Only the modules that are listed as real are read from the package; every other one of it,
and every package that is named as missing, becomes a module whose attributes are empty classes.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any


class _Anything(type):
    """An empty class that can be subscripted, joined by `|`, called, and asked for any attribute."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __iter__(cls) -> Any:
        return iter(())


def _any_schema(cls: type, *rest: Any) -> Any:
    from pydantic_core import core_schema

    return core_schema.any_schema()


def _quiet(*positional: Any, **named: Any) -> None:
    """Do nothing: the method of a logger or a counter."""


def _stand_in(name: str) -> Any:
    return _Anything(
        name,
        (),
        {
            "__init__": lambda self, *positional, **named: None,
            "__call__": lambda self, *positional, **named: positional[0] if positional else None,  # a decorator
            "__getattr__": lambda self, attribute: _quiet,
            "__get_pydantic_core_schema__": classmethod(_any_schema),
        },
    )


class _StandInModule(types.ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _stand_in(name)
        setattr(self, name, made)
        return made


class _Finder(MetaPathFinder, Loader):
    def __init__(self, package: str, real: Sequence[str], missing: Iterable[str]) -> None:
        self.package, self.real, self.missing = package, real, frozenset(missing)

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        top = name.partition(".")[0]
        if top == self.package:
            if any(f"{name}.".startswith(f"{one}.") or one.startswith(f"{name}.") for one in self.real):
                return None
        elif top not in self.missing:
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: attributes are made when they are asked for."""


def only(folder: Path, real: Sequence[str], missing: Iterable[str], **instead: dict[str, Any]) -> None:
    """Let the package in `folder` be imported, of whose modules only those of `real` (and below them) are read.

    `missing` names the other packages that are stood in for. `instead` gives attributes of stood-in modules that must
    work, by the module's name with `__` for dots.
    """
    package = folder.name
    sys.meta_path.insert(0, _Finder(package, real, missing))
    parents = {".".join(name.split(".")[:depth]) for name in real for depth in range(1, name.count(".") + 1)}
    for name in sorted((parents | {package}) - set(real)):  # their __init__ would import the whole engine
        module = types.ModuleType(name)
        module.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module
        if "." in name:
            setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
    for path, attributes in instead.items():
        module = _StandInModule(path.replace("__", "."))
        for key, value in attributes.items():
            setattr(module, key, value)
        sys.modules[module.__name__] = module
