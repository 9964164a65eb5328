"""Input and output of every command, and the files that options name.

- Input is UTF-8, or UTF-16 where its mark says so (a shell of Windows writes that), and is read as it arrives. A byte
  that is neither becomes U+FFFD, so no input raises and every output can be encoded; for a command that writes the text
  again, which would lose it so, it is a failure. A byte order mark at the start is a signature of the file and no text
  of the model: it is dropped (kept, it would hide a code fence on the first line).
  Line ends stay as they are. Offsets count what is left.
- Output is UTF-8, for bytes: text that `sys.stdout` could not write would otherwise be its error, not ours.
- What models and files say never reaches a terminal as it is: what it would obey, and what reorders a line, is shown as
  escapes, which JSON has too. `callmark.display` shows such characters as pictures.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click
import msgspec

if TYPE_CHECKING:
    from callmark.languages import Language

_CHUNK_BYTES = 65_536  # what a pipe holds on Linux: one read takes all that has arrived
_MARK = "\ufeff"
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # neither begins a text in UTF-8
_HALF_MARKS = tuple(mark[:1] for mark in _UTF16_MARKS)
_POLL_SECONDS = 0.1  # how often a growing file is looked at: below what a reader notices


class CommandError(click.ClickException):
    """Misuse, or an input or output that fails: the message goes to standard error."""

    exit_code = 2

    def format_message(self) -> str:
        """Return the message for a terminal: names of files and tools may hold anything."""
        return harmless(super().format_message())


class LostFileError(CommandError):
    """A file that was followed cannot grow any more. What was read of it is a whole text."""


def whole(path: str) -> str:
    """Return the text of a file, or of standard input for `-`.

    For what writes the text again: U+FFFD would stand for bytes that are none, and what was there would be lost. So
    these raise CommandError, which says where they are.
    """
    data = b"".join(_arriving(path))
    try:
        return _decoder(data, "strict").decode(data, final=True).removeprefix(_MARK)
    except UnicodeDecodeError as error:
        name = "standard input" if path == "-" else click.format_filename(path)
        encoding = "UTF-16" if data.startswith(_UTF16_MARKS) else "UTF-8"
        found = f"0x{data[error.start : error.end].hex()} at byte {error.start}: {error.reason}"
        raise CommandError(f"{name}: expected {encoding}, found {found}") from error


def chunks(path: str, *, follow: bool = False) -> Iterator[str]:
    """Yield the text of a file, or of standard input for `-`, as it arrives.

    While a file is followed, the first Ctrl-C ends the text; a second one interrupts the command as usual. Raises
    LostFileError behind the text of a file that was cut short, replaced or removed meanwhile: what is there then is
    another text, whose offsets would not be those of any file.
    """
    decoder: codecs.IncrementalDecoder | None = None
    begin = b""  # until it tells the encoding
    mark = _MARK
    lost: LostFileError | None = None
    try:
        for data in _arriving(path, follow=follow):
            if decoder is None:
                begin += data
                if begin in _HALF_MARKS:
                    continue
                decoder = _decoder(begin)
                text = decoder.decode(begin)
            else:
                text = decoder.decode(data)
            yield text.removeprefix(mark)
            mark = "" if text else mark
    except LostFileError as error:
        lost = error
    yield _decoder(begin).decode(begin, final=True) if decoder is None else decoder.decode(b"", final=True)
    if lost is not None:
        raise lost


def _arriving(path: str, *, follow: bool = False) -> Iterator[bytes]:
    """Yield what a file has, or standard input, as it arrives; see `chunks`."""
    lost = ""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stopped.set()

    with open_named(0 if path == "-" else path, "rb", buffering=0) as source:
        if follow:
            signal.signal(signal.SIGINT, stop)
        while not stopped.is_set():
            data: bytes | None = source.read(_CHUNK_BYTES)
            if data:
                yield data
            elif data is None:  # a pipe that does not block, as some parents leave it
                stopped.wait(_POLL_SECONDS)
            elif not follow or (lost := _lost(source, path)):
                break
            else:
                stopped.wait(_POLL_SECONDS)
    if lost:
        raise LostFileError(f"{click.format_filename(path)}: was {lost} while it was followed")


def _decoder(begin: bytes, errors: str = "replace") -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-16" if begin.startswith(_UTF16_MARKS) else "utf-8")(errors)


def _lost(source: BinaryIO, path: str) -> str:
    """Return what became of a file that was read to its end, where it cannot grow any more; else ""."""
    status = os.fstat(source.fileno())
    if source.seekable() and status.st_size < source.tell():
        return "cut short"
    with suppress(OSError):
        return "" if os.path.samestat(status, os.stat(path)) else "replaced or removed"
    return "replaced or removed"


class _Terminal(io.BufferedWriter):
    """A terminal, to which whole characters are written at once."""

    def write(self, data: Any) -> int:
        """Write what is harmless of UTF-8, with escapes in the place of the rest."""
        super().write(harmless(data.decode()).encode())
        return len(data)


def harmless(text: str) -> str:
    """Return text for a terminal: line breaks as they are, and escapes for what it would obey."""
    from callmark.reading.diagnosis import safe

    return safe(text.replace("\r\n", "\n"))


def standard_output(*, styled: bool = False) -> BinaryIO:
    """Open standard output for bytes. Where they are `styled`, with colours, they are harmless already."""
    output = open_named(1, "wb")
    return output if styled else _for_people(output)


@contextmanager
def lone_output() -> Iterator[BinaryIO]:
    """Open standard output for one writer: what anybody else prints meanwhile, tools, say, goes to standard error."""
    with standard_output(styled=True) as output, _for_people(open(os.dup(output.fileno()), "wb")) as own:
        try:
            with suppress(OSError):  # where there is none, what they print stays with the rest
                os.dup2(2, output.fileno())
            yield own
        finally:
            sys.stdout.flush()
            os.dup2(own.fileno(), output.fileno())


def _for_people(output: BinaryIO) -> BinaryIO:
    return _Terminal(cast(io.BufferedWriter, output).detach()) if output.isatty() else output


def open_named(file: str | int, mode: str, buffering: int = -1) -> BinaryIO:
    """Open a file or a descriptor, which stays open; an error names it."""
    if file == "":
        raise CommandError("expected a file, found an empty name")
    try:
        return cast(BinaryIO, open(file, mode, buffering, closefd=isinstance(file, str)))
    except OSError as error:
        if isinstance(file, int):
            error.filename = ("standard input", "standard output")[file]
        raise


def named_language(name: str) -> str | Language:
    """Return a language by its name, or read it from a file."""
    from callmark.languages import LANGUAGES, load_language

    if name.endswith(".toml"):
        return load_language(name)
    if os.path.isfile(name) and name not in LANGUAGES:
        raise CommandError(f"expected a language, or a file whose name ends with .toml, found the file {name!r}")
    return name


def load_tools(path: str, *, beside: str = "") -> Any:
    """Return the tools that a file describes (`-`: standard input), as they are there; an error names the file.

    `beside` is the file that is read as well.
    """
    if path == beside == "-":
        raise click.UsageError("--tools - and FILE are both standard input: expected a file for one of them")
    from callmark.errors import ToolsError
    from callmark.reading.schemas import known_tools

    name = click.format_filename(path)
    with open_named(0 if path == "-" else path, "rb") as source:
        tools = decode_json(source.read(), f"{name}: expected tools as JSON")
    if tools is None:
        raise CommandError(f"{name}: expected tools as JSON, found null")
    try:
        known_tools(tools)
    except ToolsError as error:
        raise CommandError(f"{name}: {error}") from error
    return tools


def decode_json(data: bytes, expected: str) -> Any:
    """Return the value of JSON, in UTF-8 or in UTF-16 with its mark; a failure says what was expected."""
    if data.startswith(_UTF16_MARKS):
        data = _decoder(data).decode(data, final=True).encode()
    try:
        return msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8))  # which some editors write
    except (ValueError, RecursionError) as error:
        found = f": {error}"
        if "truncated" in found:  # msgspec says so of an empty text, too, and no place
            found = " that it ends too soon" if data.strip() else " nothing"
            with suppress(ValueError, RecursionError):  # and of half a pair at its end, which `json` reads
                json.loads(data)
                found = " half of a surrogate pair in a string"
        raise CommandError(expected + ", found" + found) from error
