"""Dialects as data: the rows that come with callmark, those of installed plug-ins, and those of one's own TOML files.

The table is read-only; a dialect of one's own is handed to `parse(..., dialects=[...])` as a value, or is registered
by a distribution under the entry point group `callmark.dialects`, whose entries name a `Dialect` or a sequence of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import msgspec

from callmark.dialects import plugins
from callmark.dialects.checks import check
from callmark.dialects.model import DEFAULT, Body, Dialect, Form, Writing
from callmark.dialects.table import BUILTIN
from callmark.errors import DialectError, UnknownDialectError, nearest, refusal

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Body", "Dialect", "Form", "Writing", "dialects", "load_dialect", "select"]


@cache
def dialects() -> tuple[Dialect, ...]:
    """Return the registered dialects, in the order in which they are tried: callmark's, then those of plug-ins.

    Plug-ins are looked up once, at the first call. Raises DialectError where a plug-in cannot be imported, where its
    entry is no Dialect, and where it takes a name that is taken.
    """
    found = {dialect.name: dialect for dialect in BUILTIN}
    for entry in plugins.entry_points():
        for dialect in _given(entry):
            if not isinstance(dialect, Dialect):
                raise DialectError(f"entry point {entry.name}: expected a Dialect, found {type(dialect).__name__}")
            if dialect.name in found:
                raise DialectError(f"entry point {entry.name}: the dialect name {dialect.name!r} is taken")
            found[dialect.name] = dialect
    return tuple(found.values())


def _given(entry: EntryPoint) -> list[object]:
    """Return what an entry point names, one by one. Raises DialectError where the package does, whatever it raises."""
    try:
        loaded = entry.load()
        return [*loaded] if isinstance(loaded, Iterable) else [loaded]
    except (Exception, SystemExit) as error:  # code runs there that someone else wrote
        told = f"expected {entry.value} to be importable, found {type(error).__name__}: {error}"
        raise DialectError(f"entry point {entry.name}: {told}") from error


def load_dialect(path: str | os.PathLike[str]) -> Dialect:
    """Read a dialect from a TOML file: the fields of `Dialect`, and a table `[[forms]]` with the fields of `Form`.

    A relative `grammar` is looked up beside the file and must be there; a dialect without one is read all the same, but
    what is wrong with a marker is said less fully. Raises DialectError that names the file and the field; OSError where
    it cannot be read. What the scanner and the laws want of it is told when it is used, and by `check_dialect`.
    """
    import tomllib  # 20 ms, and only dialects of one's own need it
    from pathlib import Path

    path = Path(path)
    try:
        row = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors write a mark
        dialect = msgspec.convert(row, Dialect)
        check(dialect)
    except msgspec.ValidationError as error:
        hint = "`pydoc callmark.Dialect` and `pydoc callmark.Form` explain the fields"
        raise DialectError(f"{path}: {refusal(error, Dialect)}{_place_of(str(error))}; {hint}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, DialectError) as error:
        raise DialectError(f"{path}: {error}") from error
    if dialect.grammar:
        grammar = (path.parent / dialect.grammar).resolve()
        if not grammar.is_file():
            raise DialectError(f"{path}: grammar: expected a file beside this one, found none: {dialect.grammar!r}")
        dialect = msgspec.structs.replace(dialect, grammar=str(grammar))
    return dialect


def _place_of(error: str) -> str:
    """Say where in a file a field stands that is unknown where it was found, "" where it is unknown everywhere."""
    unknown = re.search("unknown field `([^`]*+)`", error)
    places = {"[[forms]]": Form, "[writing]": Writing, "the dialect, above its tables": Dialect}
    found = [place for place, kind in places.items() if unknown and unknown[1] in kind.__struct_fields__]
    return f"; it is one of {' and '.join(found)}" if found else ""


def named_dialect(name: str) -> str | Dialect:
    """Return a dialect by its name, or read it from a file: what an option of a command, or of the proxy, says.

    Raises what `load_dialect` does, and UnknownDialectError for a file that has another ending than `.toml`.
    """
    if name.endswith(".toml"):
        return load_dialect(name)
    if os.path.isfile(name) and name not in (DEFAULT, *(dialect.name for dialect in dialects())):
        raise UnknownDialectError(f"expected a dialect, or a file whose name ends with .toml, found the file {name!r}")
    return name


def select(wanted: Iterable[str | Dialect] | str | Dialect | None) -> tuple[Dialect, ...]:
    """Return the dialects to listen for: names or Dialects in the order of the table, then one's own.

    None and "default" mean every registered dialect, but only its explicit forms; a name beside "default" adds all of
    its own, and one behind a `-` is left out of what "default" means, which need not be named then. Raises
    UnknownDialectError, and DialectError for a row that is not callmark's own and is wrong, or has the name of another
    one among them.
    """
    if wanted is None:
        return _explicit()
    registered = {dialect.name: dialect for dialect in dialects()}
    if not isinstance(wanted, Iterable | Dialect):
        raise UnknownDialectError(f"dialects: expected names or Dialects, found {wanted!r:.80}")
    chosen: dict[str, Dialect] = {}
    left_out: set[str] = set()
    by_default = False
    for item in [wanted] if isinstance(wanted, str | Dialect) else wanted:
        if isinstance(item, Dialect):
            _choose(chosen, _sound(item))
        elif isinstance(item, str) and item in registered:
            _choose(chosen, _sound(registered[item]))
        elif isinstance(item, str) and item == DEFAULT:
            by_default = True
        elif isinstance(item, str) and item[:1] == "-" and item[1:] in registered:
            left_out.add(item[1:])
        else:
            raise _unknown(item, registered, DEFAULT)
    for dialect in _explicit() if by_default or (left_out and not chosen) else ():
        if dialect.name not in left_out:
            _choose(chosen, dialect)
    if not chosen:
        raise UnknownDialectError("expected at least one dialect, found none")
    order = list(registered)
    return tuple(sorted(chosen.values(), key=lambda d: order.index(d.name) if d.name in registered else len(order)))


def _unknown(found: object, registered: Iterable[str], *others: str) -> UnknownDialectError:
    """Return what is raised for what is none of the registered dialects, nor another word that may stand there."""
    known = ", ".join(registered)
    also = "".join(f', "{word}"' for word in others)
    near = nearest(found, [*registered, *others]) if isinstance(found, str) else ""
    told = f"found {found!r:.80}" + (f"; did you mean {near!r}?" if near else "")
    return UnknownDialectError(f"expected a registered dialect ({known}){also} or a Dialect, {told}")


def _choose(chosen: dict[str, Dialect], dialect: Dialect) -> None:
    """Add a dialect to those that are chosen: of two that are parts of one row, that with more forms."""
    other = chosen.get(dialect.name, dialect)
    if _is_part(other, dialect):
        chosen[dialect.name] = dialect
    elif not _is_part(dialect, other):
        expected = "expected one dialect of this name, or another name for yours"
        raise DialectError(f"dialect {dialect.name}: {expected}, found two that differ")


@cache
def _explicit() -> tuple[Dialect, ...]:
    return tuple(
        msgspec.structs.replace(
            dialect,
            forms=tuple(form for form in dialect.forms if form.explicit),
            variants=tuple(form for form in dialect.variants if form.explicit),
        )
        for dialect in map(_sound, dialects())
        if dialect.explicit
    )


def selected(dialect: str | Dialect) -> Dialect:
    """Return the dialect to write. Raises UnknownDialectError for anything but the name of one, or a Dialect."""
    if not isinstance(dialect, str | Dialect):
        raise UnknownDialectError(f"dialect: expected a name or a Dialect, found {dialect!r:.80}")
    if dialect == DEFAULT:
        raise UnknownDialectError(f"dialect: expected a single one, found {dialect!r}, which stands for many")
    registered = [row.name for row in dialects()]
    if isinstance(dialect, str) and dialect not in registered:
        raise _unknown(dialect, registered)
    return select(dialect)[0]


def is_ours(dialect: Dialect) -> bool:
    """Return whether it is a row of callmark's own, or some forms of one: such a row is sound, as its tests know."""
    return any(_is_part(dialect, row) for row in BUILTIN if row.name == dialect.name)


def unregistered(wanted: Iterable[str | Dialect] | str | Dialect | None) -> tuple[Dialect, ...]:
    """Return those of some dialects that are not registered, nor some forms of one that is. Raises as `select` does."""
    if wanted is None:
        return ()
    registered = {row.name: row for row in dialects()}
    return tuple(
        row for row in select(wanted) if row.name not in registered or not _is_part(row, registered[row.name])
    )


def _is_part(dialect: Dialect, row: Dialect) -> bool:
    """Return whether a dialect is some forms of a row, or all."""
    if dialect is row:
        return True
    if msgspec.structs.replace(row, forms=dialect.forms, variants=dialect.variants) != dialect:
        return False
    return {*dialect.forms, *dialect.variants} <= {*row.forms, *row.variants}


_OURS = frozenset(map(id, BUILTIN))  # rows live as long as the table


def _sound(dialect: Dialect) -> Dialect:
    """Return the dialect once its row was checked. Raises DialectError."""
    if id(dialect) not in _OURS:
        _check_once(dialect)
    return dialect


@lru_cache(maxsize=64)
def _check_once(dialect: Dialect) -> None:
    """Check a row, which takes milliseconds, when it is first used: callmark's own rows are checked by its tests."""
    if not is_ours(dialect):
        check(dialect)
