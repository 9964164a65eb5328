"""The commands that run tools: those of a scripted model, and those that a real one calls."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO, Literal

import click
import msgspec

from callmark.cli.files import CommandError, lone_output, named_language, standard_output
from callmark.cli.writing import DIALECT, LANGUAGE
from callmark.dialects import named_dialect

if TYPE_CHECKING:
    from callmark.running.jobs import Approval
    from callmark.running.models import Model
    from callmark.running.session import Session
    from callmark.tools.tool import Tool


@click.command(short_help="Watch a scripted model call tools.")
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON Lines.")
@click.option("--seconds", default=0.02, show_default=True, help="How long the model takes for a chunk.")
def demo(as_json: bool, seconds: float) -> None:
    """Watch a whole turn: the prompt, the streamed text, calls, their results, a guard that says no, and the answer.

    The model is a script; everything else is what a real one would meet.
    """
    from callmark.running.demo import QUESTION, ScriptedModel, demonstration

    def asked(approval: Approval) -> bool:
        click.echo(f"consent {approval.message}: yes", err=True)
        return True

    with standard_output(styled=not as_json) as output:
        _watch(demonstration(asked), ScriptedModel(seconds), QUESTION, output, as_json)


@click.command(short_help="Let a model behind a server call tools of yours.")
@click.argument("question")
@click.option("--model-url", required=True, metavar="URL", help="A server that speaks OpenAI's chat API: .../v1.")
@click.option("--model", default="default", show_default=True, help="The model, as the server calls it.")
@click.option("--tools", required=True, metavar="TOOLS.py", help="A Python file, which is run; its Tools are offered.")
@click.option(
    "--mode",
    type=click.Choice(["auto", "native", "text"]),
    default="text",
    show_default=True,
    help="How the model gets the tools.",
)
@DIALECT
@LANGUAGE
@click.option("--nonce", metavar="CODE|new", help="The code that every call must carry; `new` makes one.")
@click.option("--system", default="", help="A system message of your own.")
@click.option("--yes", is_flag=True, help="Consent to every call of a tool that writes, without being asked.")
@click.option("--audit", metavar="FILE", help="Append a record of each call to this file, as JSON Lines.")
@click.option("--api-key", envvar="CALLMARK_API_KEY", default="", help="The server's key. Or in CALLMARK_API_KEY.")
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON Lines.")
def run(
    question: str,
    model_url: str,
    model: str,
    tools: str,
    mode: Literal["auto", "native", "text"],
    dialect: str,
    language: str,
    nonce: str | None,
    system: str,
    yes: bool,
    audit: str | None,
    api_key: str,
    as_json: bool,
) -> None:
    """Ask a model a QUESTION, and run the tools that it calls until it answers.

    \b
    Example: callmark run "What is 17 * 23?" --tools tools.py \\
                 --model-url http://127.0.0.1:8080/v1
    """
    from callmark.nonces import new_nonce
    from callmark.reading.diagnosis import safe
    from callmark.running.executor import Executor
    from callmark.running.models import OpenAIModel
    from callmark.running.observing import AuditLog
    from callmark.running.rendering import clean
    from callmark.running.session import Session
    from callmark.running.settings import Settings
    from callmark.tools.registry import Registry

    settings = Settings(
        mode=mode,
        dialect=named_dialect(dialect),
        language=named_language(language),
        nonce=new_nonce() if nonce == "new" else nonce,
    )

    def asked(approval: Approval) -> bool:
        arguments = msgspec.json.encode(approval.arguments).decode()
        what = f"{approval.message or approval.tool.display_name or 'run'}: {approval.tool.qualified_name}({arguments})"
        return yes or _confirmed(safe(what))

    with ExitStack() as opened:
        output = opened.enter_context(lone_output() if as_json else standard_output(styled=True))
        observers = [] if audit is None else [opened.enter_context(AuditLog(audit))]
        executor = Executor(Registry(_tools_of(tools)), approve=asked, observers=observers)
        session = Session(executor, settings=settings, system=clean(system))  # a shell hands over any bytes
        server = OpenAIModel(model_url, model, key=api_key, native=True)  # of which the mode makes use, or not
        _watch(session, server, clean(question), output, as_json)


def _watch(session: Session, model: Model, question: str, output: BinaryIO, as_json: bool) -> None:
    """Do one turn of a session, and show what happens."""
    import asyncio

    from callmark.display import Screen
    from callmark.serving.texts import encoded
    from callmark.watching import Watching

    screen = Screen()  # knows the terminal, as for all else that is shown
    colours = os.isatty(1) and screen.color_system is not None and not screen.no_color
    watching = Watching(lambda text, colour: click.style(text, fg=colour) if colours else text)

    async def turn() -> None:
        output.write(b"" if as_json else watching.say("user", question).encode())
        async for event in session.run(model, question):
            if as_json:
                output.write(encoded(event) + b"\n")
            else:
                output.write(watching.show(event).encode(errors="replace"))
            output.flush()

    asyncio.run(turn())


def _confirmed(what: str) -> bool:
    """Ask whoever sits there; only `y` and `yes` are a yes.

    It is asked in a thread, which Ctrl-C leaves behind. So no lock of Python's may be held while it reads, as `input`
    does: Python could not end without it.
    """
    click.echo(f"{what}? [y/N]: ", nl=False, err=True)
    typed = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        typed += byte
    return typed.decode(errors="replace").strip().lower() in ("y", "yes")


def _tools_of(path: str) -> list[Tool]:
    """Run a Python file of the user's, which may import its neighbours, and return the tools that it defines."""
    import runpy
    import sys

    from callmark.tools.foreign import attempt
    from callmark.tools.tool import Tool

    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # as `python TOOLS.py` does
    name = os.path.splitext(os.path.basename(path))[0]  # by which processes of tools find it there
    taken = name in sys.modules or name in sys.stdlib_module_names
    ran = attempt(runpy.run_path, path, None, None if taken else name)
    if ran.error is not None:
        raise _not_run(path, ran.error)
    found = list(dict.fromkeys(value for value in ran.value.values() if isinstance(value, Tool)))  # by any names, once
    if not found:
        raise CommandError(f"{click.format_filename(path)}: expected tools (functions with @callmark.tool), found none")
    return found


def _not_run(path: str, error: BaseException) -> BaseException:
    """Return what to raise where a user's file raises; Ctrl-C, and a file that is not there, are said as they are."""
    import traceback

    missing = isinstance(error, OSError) and error.filename == os.path.abspath(path)  # as runpy opens it
    if missing or isinstance(error, KeyboardInterrupt):
        return error
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    place = f"{click.format_filename(path)}, line {lines[-1]}" if lines else click.format_filename(path)
    return CommandError(f"{place}: expected a file that runs, found {type(error).__name__}: {error}")
