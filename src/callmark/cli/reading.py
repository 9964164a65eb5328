"""The commands that read: what a model wrote, and what is known of dialects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click
import msgspec

from callmark.cli.files import LostFileError, chunks, harmless, load_tools, standard_output
from callmark.dialects import named_dialect
from callmark.events import Call, Event, Text

_Show = Callable[[str, Sequence[Event]], None]

_OPTIONS: tuple[Callable[[Callable[..., None]], Callable[..., None]], ...] = (
    click.option(
        "--dialect",
        "names",
        multiple=True,
        metavar="NAME|FILE.toml",
        help="Listen for this dialect; `default` stands for all that are on by default, -NAME leaves out one of these. "
        "Repeatable.",
    ),
    click.option("--strict", is_flag=True, help="Read only what is in a dialect's grammar."),
    click.option("--salvage", is_flag=True, help="Also read what is a call only by its tool's name."),
    click.option("--tools", metavar="TOOLS.json", help="The tools that may be called, in any usual shape."),
    click.option(
        "--allow",
        multiple=True,
        type=click.Choice(["fence", "sole-fence", "code", "quote", "reasoning"]),
        help="Take calls in code fences (sole-fence: that hold nothing else), other code, block quotes or reasoning. "
        "Repeatable.",
    ),
    click.option("--nonce", help="Take only calls that carry this nonce: [CALL#nonce: ...]."),
    click.option("--starts-in-reasoning", is_flag=True, help="The prompt has opened the reasoning already."),
)


def _contexts(allowed: Sequence[str]) -> dict[str, str]:
    """Return the option `contexts`: all fences are allowed where some are, too."""
    sole = {"fence": "sole"} if "sole-fence" in allowed else {}
    return sole | {name: "allow" for name in allowed if name != "sole-fence"}


def _reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading, as the argument `options` of `callmark.parse`."""

    @wraps(command)
    def with_options(
        *arguments: Any,
        names: tuple[str, ...],
        strict: bool,
        salvage: bool,
        tools: str | None,
        allow: tuple[str, ...],
        nonce: str | None,
        starts_in_reasoning: bool,
        **others: Any,
    ) -> None:
        if strict and salvage:
            raise click.UsageError("--strict reads less and --salvage more: expected one of them, found both")
        options = {
            "dialects": [named_dialect(name) for name in names] or None,
            "tools": None if tools is None else load_tools(tools, beside=others["file"]),
            "tolerance": "strict" if strict else "salvage" if salvage else "lenient",
            "contexts": _contexts(allow),
            "nonce": nonce,
            "starts_in_reasoning": starts_in_reasoning,
        }
        command(*arguments, options=options, **others)

    for option in reversed(_OPTIONS):
        with_options = option(with_options)
    return with_options


@click.command(short_help="Print the calls and the text of model output.")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON Lines, also on a terminal.")
@click.option("--calls", is_flag=True, help="Print only the calls.")
@click.option("--text", is_flag=True, help="Print only the visible text, without markers and reasoning.")
@click.option("--follow", is_flag=True, help="Go on reading as the file grows, until Ctrl-C.")
@_reading_options
@click.pass_context
def parse(
    ctx: click.Context,
    file: str,
    as_json: bool,
    calls: bool,
    text: bool,
    follow: bool,
    options: dict[str, Any],
) -> None:
    """Print the calls and the text of model output from FILE or standard input.

    On a terminal the output is made for reading. Into a pipe, and with --json, each event is one line of JSON, printed
    as soon as it is certain. Exit code 0 means that there was a call, 1 that there was none, 2 that something failed.

    \b
    Example: llm "what is the weather in Oslo?" | callmark parse --calls
    """
    from callmark import Parser

    if text and (as_json or calls):
        other = "--json prints events" if as_json else "--calls prints calls"
        raise click.UsageError(f"{other} and --text prints text: expected one of them, found both")
    if follow and file == "-":
        raise click.UsageError("--follow wants a file that grows; standard input is read to its end anyway")
    parser = Parser(**options)
    found = False
    lost: LostFileError | None = None
    with _output(as_json, "text" if text else "calls" if calls else None) as show:
        try:
            for chunk in chunks(file, follow=follow):
                events = parser.feed(chunk)
                found = found or any(isinstance(event, Call) for event in events)
                show(chunk, events)
        except LostFileError as error:  # told when all is shown that was read
            lost = error
        events = parser.finish()
        found = found or any(isinstance(event, Call) for event in events)
        show("", events)
    if lost is not None:
        raise lost
    ctx.exit(0 if found else 1)


@contextmanager
def _output(as_json: bool, shown: str | None) -> Iterator[_Show]:
    """Give what prints a piece of the text and its events: for eyes, as JSON Lines, or as plain text."""
    if os.isatty(1) and not as_json:
        from callmark.display import Transcript

        transcript = Transcript(shown)
        yield transcript.show
        transcript.close()
        return
    with standard_output() as output:

        def show_text(chunk: str, events: Sequence[Event]) -> None:
            for event in events:
                if isinstance(event, Text) and event.channel == "content":
                    output.write(event.text.encode())
            output.flush()

        def show_events(chunk: str, events: Sequence[Event]) -> None:
            for event in events:
                if shown is None or isinstance(event, Call):
                    output.write(msgspec.json.encode(event) + b"\n")
            output.flush()

        yield show_text if shown == "text" else show_events


@click.command(short_help="Name the dialects that a text is written in.")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.pass_context
def detect(ctx: click.Context, file: str) -> None:
    """Print the names of the dialects whose markers are in FILE or standard input, the likeliest first.

    Exit code 0 means that there was one, 1 that there was none, 2 that something failed.

    \b
    Example: callmark detect answer.txt | head -1
    """
    from callmark import detect as detect_dialects

    names = detect_dialects("".join(chunks(file)))
    with standard_output() as output:
        output.writelines(f"{name}\n".encode() for name in names)
    ctx.exit(0 if names else 1)


@click.command(short_help="Say what went wrong in model output, and why.")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--code", metavar="CODE", help="Explain this code, with an example, instead of reading a file.")
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON Lines.")
@_reading_options
@click.pass_context
def explain(ctx: click.Context, file: str, code: str | None, as_json: bool, options: dict[str, Any]) -> None:
    """Say what was seen in FILE or standard input, what was expected, and what was made of it.

    Each broken marker, each repair and each marker that was left as text is shown with its place; where there is no
    call at all, what looks most like one and what it lacks. Exit code 0 means that there was something to explain, 1
    that there was not, 2 that something failed.

    \b
    Example: callmark explain answer.txt
    Example: callmark explain --code unexpected-text
    """
    if code is not None:
        if as_json or file != "-":
            raise click.UsageError("--code explains a code to people: expected it without --json and FILE")
        from callmark.display import show_code
        from callmark.reading.codes import explained

        show_code(explained(code))
        return
    from callmark.display import show_findings
    from callmark.reading.findings import findings
    from callmark.reading.whole import parse

    text = "".join(chunks(file))
    found = findings(text, **options)
    if as_json:
        with standard_output() as output:
            output.writelines(msgspec.json.encode(finding) + b"\n" for finding in found)
    else:
        source = "standard input" if file == "-" else click.format_filename(file)
        show_findings(text, found, source, calls=bool(not found and parse(text, **options).calls))
    ctx.exit(0 if found else 1)


@click.command(short_help="Print the grammar of a dialect, or of the calls of one's tools.")
@click.argument("dialect", default="call", metavar="[NAME|FILE.toml]")
@click.option("--tools", metavar="TOOLS.json", help="Print a grammar of messages that may call these tools.")
@click.option("--target", help="For --tools: llguidance, gbnf, xgrammar, structural-tag, regex. [default: llguidance]")
@click.option("--calls-only", is_flag=True, help="Without text around the calls.")
@click.option("--tool-choice", default="auto", show_default=True, help="auto, none, required, or the name of a tool.")
@click.option("--single", is_flag=True, help="At most one call in a message.")
@click.option("--nonce", help="The code that every call must carry.")
@click.option("--string-limit", type=int, help="Most characters of a string without maxLength. [default: 512]")
@click.option("--items-limit", type=int, help="Most items of a list without maxItems. [default: 32]")
@click.option("--depth-limit", type=int, help="Most brackets in a value of any type. [default: 2]")
def grammar(
    dialect: str,
    tools: str | None,
    target: Any,
    calls_only: bool,
    tool_choice: str,
    single: bool,
    nonce: str | None,
    **limits: int | None,
) -> None:
    """Print the Lark grammar of one marker of a dialect (default: call), with what it imports written out.

    One that does not compile is printed too, and what is wrong with it on standard error; exit code 2 says so.

    With --tools: print a grammar for an engine that constrains a model, and on standard error what it does not enforce.

    \b
    Example: callmark grammar call --tools tools.json --target gbnf > calls.gbnf
    """
    bounds = {name: limit for name, limit in limits.items() if limit is not None}
    if tools is None:
        if dialect.endswith(".json"):
            raise click.UsageError(f"expected a dialect, found {dialect!r}: tools are given as --tools {dialect}")
        if target or calls_only or single or nonce or bounds or tool_choice != "auto":
            raise click.UsageError("expected --tools with the options of a grammar of calls")
        from callmark.dialects import selected
        from callmark.reading.grammar import flatten, load

        chosen = selected(named_dialect(dialect))
        _print(flatten(chosen))
        load(chosen)  # a broken one of one's own is printed too, as the error that this raises counts its lines
    else:
        from callmark import export_grammar

        exported = export_grammar(
            load_tools(tools),
            named_dialect(dialect),
            target or "llguidance",
            free_text=not calls_only,
            tool_choice=tool_choice,
            parallel=not single,
            nonce=nonce,
            **bounds,
        )
        for note in exported.unenforced:
            click.echo(harmless(f"not enforced: {note}"), err=True)
        _print(exported.text)


def _print(text: str) -> None:
    with standard_output() as output:
        output.write(text.rstrip("\n").encode() + b"\n")


@click.command(name="dialects", short_help="List the dialects.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines, also on a terminal.")
def list_dialects(as_json: bool) -> None:
    """List the dialects: name, whether it is listened for by default (explicit), what it looks like, who writes it.

    Into a pipe the columns are separated by tabs.

    \b
    Example: callmark dialects --json
    """
    from callmark.dialects import dialects

    if os.isatty(1) and not as_json:
        from callmark.display import show_dialects

        show_dialects(dialects())
        return
    with standard_output() as output:
        for dialect in dialects():
            row = {field: getattr(dialect, field) for field in ("name", "explicit", "title", "models", "source")}
            columns = (dialect.name, "explicit" if dialect.explicit else "by name", dialect.title, dialect.models)
            output.write((msgspec.json.encode(row) if as_json else "\t".join(columns).encode()) + b"\n")
