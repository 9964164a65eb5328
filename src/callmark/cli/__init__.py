"""The command line: read model output from a file or a pipe, write what goes to a model, and look things up.

Thin: each command calls one function of a room, and the commands of a room are in a module of its name. What is done
here is input, output and exit codes. `parse`, `detect` and `explain` have those of grep: 0 where calls, dialects or
findings were found, 1 where none were; `lint`, which looks for what is wrong, the other two ways round; the others end
with 0 whatever they found. 2 is for misuse and for what cannot be read or written. A reader that goes away
(`| head -1`) ends the command quietly with 141, Ctrl-C with 130.

Output is written and flushed after each piece of input. Into a pipe, or with `--json`, it is the wire form of the
events, one JSON text on a line; on a terminal it is made for eyes (`callmark.display`).

What a command does not need is not imported: lark, regex and rich cost more than reading a page of text.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from callmark.cli import reading, running, serving, writing
from callmark.cli.files import CommandError, harmless
from callmark.errors import CallmarkError
from callmark.reading import parser

__all__ = ["main"]

_ENGINE = "" if parser.__file__.endswith(".py") else ", compiled"  # how reading was built: see setup.py
_READER_GONE = 141  # what a shell shows for a command that SIGPIPE ended
_INTERRUPTED = 130  # what a shell shows for a command that Ctrl-C ended


@contextmanager
def _ending() -> Iterator[None]:
    """Give each way in which a command can end early its exit code; none of them shows a traceback."""
    try:
        yield
    except BrokenPipeError:
        _drop_output()
        raise click.exceptions.Exit(_READER_GONE) from None
    except click.exceptions.Exit as ended:  # click tells its own words, as those of `--help`, to nobody where none is
        if ended.exit_code == 0 and sys.__stdout__ is None:
            raise CommandError(f"standard output: {os.strerror(errno.EBADF)}") from None
        raise
    except KeyboardInterrupt:
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except click.UsageError as error:  # click's own words hold what was given as it is: names of files, say
        told = error.format_message()
        if harmless(told) == told:
            raise
        raise click.UsageError(harmless(told), error.ctx) from error
    except OSError as error:
        if error.filename is None:
            _drop_output()
        place = click.format_filename(error.filename or "input or output")
        raise CommandError(f"{place}: {error.strerror}") from error
    except CallmarkError as error:
        raise CommandError(str(error)) from error


def _drop_output() -> None:
    """Drop what is still to be flushed to standard output, or Python tells of an error when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class _Commands(click.Group):
    """Runs the commands, and what click does itself, `--help` say: all of them end in the same ways."""

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            return super().main(*args, **options)
        except OSError:  # what went wrong could not be told
            sys.exit(CommandError.exit_code)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _ending():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _ending():
            return super().invoke(ctx)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="callmark", message=f"%(prog)s, version %(version)s{_ENGINE}")
def main() -> None:
    """Read the tool calls that language models write as plain text.

    \b
    Example: callmark parse answer.txt
    """


for _command in (
    *(reading.parse, reading.detect, reading.explain, reading.grammar, reading.list_dialects),
    *(writing.prompt, writing.render, writing.convert, writing.lint),
    *(running.demo, running.run),
    *(serving.stdio, serving.serve),
):
    main.add_command(_command)
