"""The command line: read model output from a file or a pipe, write what goes to a model, and look things up.

Thin: each command calls one function of a room. What is done here is input, output and exit codes:

- Exit codes are those of grep: 0 where calls were found, 1 where none were, 2 for misuse and for what cannot be read or
  written. A reader that goes away (`| head -1`) ends the command quietly with 141, Ctrl-C with 130.
- Input is UTF-8 and is read as it arrives. A byte that is no UTF-8 becomes U+FFFD, so no input raises and every output
  can be encoded. A byte order mark at the start is a signature of the file and no text of the model: it is dropped
  (kept, it would hide a code fence on the first line). Line ends stay as they are. Offsets count what is left.
- Output is UTF-8, written and flushed after each piece of input. Into a pipe, or with `--json`, it is the wire form of
  the events, one JSON text on a line; on a terminal it is made for eyes (`callmark.display`).

What a command does not need is not imported: lark, regex and rich cost more than reading a page of text.
"""

from __future__ import annotations

import codecs
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

import click
import msgspec

from callmark.errors import CallmarkError
from callmark.events import Call, Event, Text

if TYPE_CHECKING:
    from callmark.dialects import Dialect
    from callmark.dialects.rendering import WrittenCall
    from callmark.languages import Language
    from callmark.running.jobs import Approval
    from callmark.running.models import Model
    from callmark.running.session import Session
    from callmark.serving.bounds import Bounds
    from callmark.serving.upstreams import ProxyConfig
    from callmark.tools.tool import Tool

_CHUNK_BYTES = 65_536  # what a pipe holds on Linux: one read takes all that has arrived
_POLL_SECONDS = 0.1  # how often a growing file is looked at: below what a reader notices
_READER_GONE = 141  # what a shell shows for a command that SIGPIPE ended
_INTERRUPTED = 130  # what a shell shows for a command that Ctrl-C ended

_Show = Callable[[str, Sequence[Event]], None]


class _Failure(click.ClickException):
    """Misuse, or an input or output that fails: the message goes to standard error."""

    exit_code = 2


class _Commands(click.Group):
    """Gives each way in which a command can end early its exit code; none of them shows a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            ctx.exit(_READER_GONE)
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)
        except OSError as error:
            place = click.format_filename(error.filename or "input or output")
            raise _Failure(f"{place}: {error.strerror}") from error
        except CallmarkError as error:
            raise _Failure(str(error)) from error


def _reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading, as the argument `options` of `callmark.parse`."""

    @wraps(command)
    def with_options(
        *arguments: Any,
        names: tuple[str, ...],
        tolerance: str | None,
        tools: str | None,
        allow: tuple[str, ...],
        nonce: str | None,
        starts_in_reasoning: bool,
        **others: Any,
    ) -> None:
        options = {
            "dialects": [_dialect(name) for name in names] or None,
            "tools": None if tools is None else _tools(tools),
            "tolerance": tolerance or "lenient",
            "contexts": dict.fromkeys(allow, "allow") or None,
            "nonce": nonce,
            "starts_in_reasoning": starts_in_reasoning,
        }
        command(*arguments, options=options, **others)

    for option in reversed(_OPTIONS):
        with_options = option(with_options)
    return with_options


_OPTIONS: tuple[Callable[[Callable[..., None]], Callable[..., None]], ...] = (
    click.option(
        "--dialect", "names", multiple=True, metavar="NAME|FILE.toml", help="Listen for this dialect. Repeatable."
    ),
    click.option("--strict", "tolerance", flag_value="strict", help="Read only what is in a dialect's grammar."),
    click.option(
        "--salvage", "tolerance", flag_value="salvage", help="Also read what is a call only by its tool's name."
    ),
    click.option("--tools", metavar="TOOLS.json", help="The tools that may be called, in any usual shape."),
    click.option(
        "--allow",
        multiple=True,
        type=click.Choice(["fence", "code", "quote", "reasoning"]),
        help="Take calls in code fences, inline code, block quotes or reasoning. Repeatable.",
    ),
    click.option("--nonce", help="Take only calls that carry this nonce: [CALL#nonce: ...]."),
    click.option("--starts-in-reasoning", is_flag=True, help="The prompt has opened the reasoning already."),
)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="callmark")
def main() -> None:
    """Read the tool calls that language models write as plain text.

    \b
    Example: callmark parse answer.txt
    """


@main.command(short_help="Print the calls and the text of model output.")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON Lines, also on a terminal.")
@click.option("--calls", "shown", flag_value="calls", help="Print only the calls.")
@click.option("--text", "shown", flag_value="text", help="Print only the visible text, without markers and reasoning.")
@click.option("--follow", is_flag=True, help="Go on reading as the file grows, until Ctrl-C.")
@_reading_options
@click.pass_context
def parse(
    ctx: click.Context,
    file: str,
    as_json: bool,
    shown: str | None,
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

    if as_json and shown == "text":
        raise click.UsageError("--json prints events and --text prints text: expected one of them, found both")
    if follow and file == "-":
        raise click.UsageError("--follow wants a file that grows; standard input is read to its end anyway")
    parser = Parser(**options)
    found = False
    with _output(as_json, shown) as show:
        for chunk in _chunks(file, follow=follow):
            events = parser.feed(chunk)
            found = found or any(isinstance(event, Call) for event in events)
            show(chunk, events)
        events = parser.finish()
        found = found or any(isinstance(event, Call) for event in events)
        show("", events)
    ctx.exit(0 if found else 1)


@main.command(short_help="Name the dialects that a text is written in.")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.pass_context
def detect(ctx: click.Context, file: str) -> None:
    """Print the names of the dialects whose markers are in FILE or standard input, the likeliest first.

    Exit code 0 means that there was one, 1 that there was none, 2 that something failed.

    \b
    Example: callmark parse answer.txt --dialect "$(callmark detect answer.txt | head -1)"
    """
    from callmark import detect as detect_dialects

    names = detect_dialects("".join(_chunks(file)))
    with _standard_output() as output:
        output.writelines(f"{name}\n".encode() for name in names)
    ctx.exit(0 if names else 1)


@main.command(short_help="Say what went wrong in model output, and why.")
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
        from callmark.display import show_code
        from callmark.reading.codes import explained

        show_code(explained(code))
        return
    from callmark.display import show_findings
    from callmark.reading.findings import findings

    text = "".join(_chunks(file))
    found = findings(text, **options)
    if as_json:
        with _standard_output() as output:
            output.writelines(msgspec.json.encode(finding) + b"\n" for finding in found)
    else:
        show_findings(text, found, "standard input" if file == "-" else click.format_filename(file))
    ctx.exit(0 if found else 1)


@main.command(short_help="Print the grammar of a dialect, or of the calls of one's tools.")
@click.argument("dialect", metavar="NAME|FILE.toml")
@click.option("--tools", metavar="TOOLS.json", help="Print a grammar of messages that may call these tools.")
@click.option("--target", help="llguidance (the default), gbnf, xgrammar, structural-tag or regex; wants --tools.")
@click.option("--calls-only", is_flag=True, help="Without text around the calls.")
@click.option("--tool-choice", default="auto", help="auto, none, required, or the name of a tool.")
@click.option("--single", is_flag=True, help="At most one call in a message.")
@click.option("--nonce", help="The code that every call carries.")
def grammar(
    dialect: str, tools: str | None, target: Any, calls_only: bool, tool_choice: str, single: bool, nonce: str | None
) -> None:
    """Print the Lark grammar of one marker of a dialect, with what it imports written out.

    With --tools: print a grammar for an engine that constrains a model, and on standard error what it does not enforce.

    \b
    Example: callmark grammar call --tools tools.json --target gbnf > calls.gbnf
    """
    if tools is None:
        if target or calls_only or single or nonce or tool_choice != "auto":
            raise click.UsageError("expected --tools with the options of a grammar of calls")
        from callmark.dialects import select
        from callmark.reading.grammar import flatten

        (chosen,) = select(_dialect(dialect))
        text = flatten(chosen).rstrip("\n")
    else:
        from callmark import export_grammar

        exported = export_grammar(
            _tools(tools),
            _dialect(dialect),
            target or "llguidance",
            free_text=not calls_only,
            tool_choice=tool_choice,
            parallel=not single,
            nonce=nonce,
        )
        for note in exported.unenforced:
            click.echo(f"not enforced: {note}", err=True)
        text = exported.text.rstrip("\n")
    with _standard_output() as output:
        output.write(text.encode() + b"\n")


@main.command(name="dialects", short_help="List the dialects.")
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
    with _standard_output() as output:
        for dialect in dialects():
            row = {field: getattr(dialect, field) for field in ("name", "explicit", "title", "models", "source")}
            columns = (dialect.name, "explicit" if dialect.explicit else "by name", dialect.title, dialect.models)
            output.write((msgspec.json.encode(row) if as_json else "\t".join(columns).encode()) + b"\n")


_TOOLS = click.argument("tools", metavar="TOOLS.json|-")
_DIALECT = click.option("--dialect", default="call", metavar="NAME|FILE.toml", help="The dialect to write.")


@main.command(short_help="Print the prompt that teaches tools to a model.")
@_TOOLS
@_DIALECT
@click.option("--style", default="signature", help="How tools are described: signature, brief, compact, table, schema.")
@click.option("--language", default="en", metavar="NAME|FILE.toml", help="en, zh-Hans, zh-Hant or a file of one's own.")
@click.option("--tool-choice", default="auto", help="auto, none, required, or the name of a tool.")
@click.option("--single", is_flag=True, help="One call in a message, not several.")
@click.option("--reasoning", is_flag=True, help="A sentence of reasoning before a call.")
@click.option("--nonce", help="The code that every call must carry.")
@click.option("--examples", default="turns", help="turns, inline or none.")
@click.option("--budget", type=int, help="Most tokens; a shorter style is taken where one is too long.")
@click.option("--tokenizer", metavar="tokenizer.json", help="Count with this tokenizer (pip install callmark[tokens]).")
@click.option("--count", "counted", is_flag=True, help="Print style, characters and tokens instead of the prompt.")
@click.option("--json", "as_json", is_flag=True, help="Print the messages, example turns included, as JSON Lines.")
def prompt(
    tools: str,
    dialect: str,
    language: str,
    single: bool,
    tokenizer: str | None,
    counted: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Print the prompt that teaches the tools in TOOLS.json (or standard input) to a model, without example turns.

    \b
    Example: callmark prompt tools.json --style table --language zh-Hans
    """
    from callmark import protocol_prompt
    from callmark.writing.prompt import estimate_tokens

    written = protocol_prompt(
        _tools(tools),
        _dialect(dialect),
        language=_language(language),
        parallel=not single,
        count=estimate_tokens if tokenizer is None else _counter(tokenizer),
        **options,
    )
    messages = written.messages()
    with _standard_output() as output:
        if counted:
            characters = sum(len(message["content"]) for message in messages)
            output.write(f"{written.style}\t{characters}\t{written.tokens}\n".encode())
        elif as_json:
            output.writelines(msgspec.json.encode(message) + b"\n" for message in messages)
        else:
            output.write(written.text.encode() + b"\n")


@main.command(short_help="Write calls as the text of a dialect.")
@click.argument("file", default="-", metavar="[FILE|-]")
@_DIALECT
@click.option("--nonce", help="The code that every call carries.")
@click.option("--tools", metavar="TOOLS.json", help="The tools, whose types decide how values are written.")
def render(file: str, dialect: str, nonce: str | None, tools: str | None) -> None:
    """Write the calls in FILE or standard input, JSON, as the text of a dialect.

    A call has a name, arguments and perhaps an id, as `callmark parse` prints it on a line; other events are passed
    over. Calls as OpenAI and Anthropic give them will do too, and so will a list of calls.

    \b
    Example: callmark parse answer.txt --calls | callmark render --dialect hermes
    """
    from callmark import render_calls

    text = "".join(_chunks(file))
    try:
        rows = [(1, msgspec.json.decode(text))]
    except (ValueError, RecursionError):
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        rows = [(number, _json(line.encode(), f"line {number}: expected a call as JSON")) for number, line in lines]
    calls = [
        _written_call(call, number)
        for number, row in rows
        for call in (row if isinstance(row, list) else [row])
        if not isinstance(call, dict) or call.get("type", "call") in _CALLS
    ]
    text = render_calls(calls, _dialect(dialect), nonce=nonce, tools=None if tools is None else _tools(tools))
    with _standard_output() as output:
        output.write(text.encode() + b"\n" * bool(text))


_CALLS = ("call", "function", "function_call", "tool_use")  # how ours is told, and those of other APIs


def _written_call(call: Any, number: int) -> WrittenCall:
    """Return a call in one of the usual shapes."""
    from callmark import WrittenCall

    inner = call.get("function", call) if isinstance(call, dict) else call
    if not isinstance(inner, dict) or "name" not in inner:
        raise _Failure(f"line {number}: expected an object with a name and arguments, found {call!r:.80}")
    arguments = inner.get("arguments", inner.get("input", {}))
    if isinstance(arguments, str):
        arguments = _json(arguments.encode("utf-8", "replace"), f"line {number}: expected arguments as JSON")
    return WrittenCall(inner["name"], arguments, call.get("call_id", call.get("id")))


@main.command(short_help="Write the calls in a text in another dialect.")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--to", "target", required=True, metavar="NAME|FILE.toml", help="The dialect to write.")
@click.option("--dialect", "names", multiple=True, metavar="NAME|FILE.toml", help="Listen for this one. Repeatable.")
@click.option("--tools", metavar="TOOLS.json", help="The tools, whose types decide how values are read and written.")
def convert(file: str, target: str, names: tuple[str, ...], tools: str | None) -> None:
    """Print FILE or standard input with its calls in another dialect; all else stays as it is.

    \b
    Example: callmark convert answer.txt --to hermes
    """
    from callmark import convert as converted

    text = "".join(_chunks(file))
    known = None if tools is None else _tools(tools)
    written = converted(text, _dialect(target), dialects=[_dialect(name) for name in names] or None, tools=known)
    with _standard_output() as output:
        output.write(written.encode())


@main.command(short_help="Say what in a set of tools will cost good calls.")
@_TOOLS
@click.pass_context
def lint(ctx: click.Context, tools: str) -> None:
    """Print what is wrong with the tools in TOOLS.json: code, tool, and what to do.

    Exit code 0 means that nothing was found, 1 that something was, 2 that something failed.

    \b
    Example: callmark lint tools.json
    """
    from callmark.writing.lint import lint as findings_of

    findings = findings_of(_tools(tools))
    with _standard_output() as output:
        output.writelines(f"{found.code}\t{found.tool}\t{found.message}\n".encode() for found in findings)
    ctx.exit(1 if findings else 0)


def _counter(path: str) -> Callable[[str], int]:
    """Return what counts tokens with a tokenizer of its own file."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _Failure("--tokenizer wants the package `tokenizers`: pip install callmark[tokens]") from error
    with open(path, "rb") as source:
        data = source.read()
    expected = f"{click.format_filename(path)}: expected a tokenizer.json"
    described = _json(data, expected)
    if not isinstance(described, dict) or "model" not in described:
        raise _Failure(f"{expected}, found JSON without a model")
    tokenizer = Tokenizer.from_buffer(data)
    return lambda text: len(tokenizer.encode(text).ids)


@main.command(short_help="Watch a scripted model call tools.")
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

    _watch(demonstration(asked), ScriptedModel(seconds), QUESTION, as_json)


@main.command(short_help="Let a model behind a server call tools of yours.")
@click.argument("question")
@click.option("--model-url", required=True, metavar="URL", help="A server that speaks OpenAI's chat API: .../v1.")
@click.option("--model", default="default", show_default=True, help="The model, as the server calls it.")
@click.option("--tools", required=True, metavar="TOOLS.py", help="A Python file, which is run; its Tools are offered.")
@click.option("--mode", type=click.Choice(["auto", "native", "text"]), default="text", show_default=True)
@_DIALECT
@click.option("--language", default="en", metavar="NAME|FILE.toml", help="en, zh-Hans, zh-Hant or a file of one's own.")
@click.option("--nonce", metavar="CODE|new", help="A code that every call must carry; `new` makes one.")
@click.option("--system", default="", help="A system message of your own.")
@click.option("--yes", is_flag=True, help="Consent to every call of a tool that writes, without being asked.")
@click.option("--audit", metavar="FILE", help="Append a record of each call to this file, as JSON Lines.")
@click.option("--api-key", envvar="CALLMARK_API_KEY", default="", help="For the server. Or in CALLMARK_API_KEY.")
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
    Example: callmark run "What is 17 * 23?" --model-url http://127.0.0.1:8080/v1 --tools tools.py
    """
    from callmark.nonces import new_nonce
    from callmark.running.executor import Executor
    from callmark.running.models import OpenAIModel
    from callmark.running.observing import AuditLog
    from callmark.running.session import Session
    from callmark.running.settings import Settings
    from callmark.tools.registry import Registry
    from callmark.watching import safe

    settings = Settings(
        mode=mode,
        dialect=_dialect(dialect),
        language=_language(language),
        nonce=new_nonce() if nonce == "new" else nonce,
    )

    def asked(approval: Approval) -> bool:
        arguments = msgspec.json.encode(approval.arguments).decode()
        what = f"{approval.message or 'run'}: {approval.tool.qualified_name}({arguments})"
        return yes or click.confirm(safe(what) + "?", err=True)

    with ExitStack() as opened:
        observers = [] if audit is None else [opened.enter_context(AuditLog(audit))]
        executor = Executor(Registry(_tools_of(tools)), approve=asked, observers=observers)
        session = Session(executor, settings=settings, system=system)
        native = mode != "text"
        _watch(session, OpenAIModel(model_url, model, key=api_key, native=native), question, as_json)


_SIZES = (
    click.option("--message-bytes", type=int, metavar="N", help="Most bytes of a message. [16 MiB]"),
    click.option("--streams", type=int, metavar="N", help="Most streams that are open at once. [1000]"),
)


def _sizes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that serves the options of `Bounds`, as the argument `bounds`."""

    @wraps(command)
    def with_bounds(*arguments: Any, message_bytes: int | None, streams: int | None, **others: Any) -> None:
        from callmark.serving.bounds import Bounds

        given = {"message_bytes": message_bytes, "streams": streams}
        bounds = Bounds(**{name: value for name, value in given.items() if value is not None})
        command(*arguments, bounds=bounds, **others)

    for option in reversed(_SIZES):
        with_bounds = option(with_bounds)
    return with_bounds


@main.command(short_help="Serve programs in other languages over standard input and output.")
@click.option("--schema", is_flag=True, help="Print the OpenRPC document, and serve nothing.")
@_sizes
def stdio(schema: bool, bounds: Bounds) -> None:
    """Answer JSON-RPC 2.0 on standard input, one message a line, until it ends.

    Standard output has answers only, one a line; remarks go to standard error. --schema says what there is.

    \b
    Example: echo '{"jsonrpc": "2.0", "id": 1, "method": "detect", "params": {"text": "[CALL: f()]"}}' | callmark stdio
    """
    if schema:
        from callmark.serving.schema import openrpc

        with _standard_output() as output:
            output.write(msgspec.json.format(msgspec.json.encode(openrpc())) + b"\n")
        return
    from callmark.serving.stdio import serve as answer

    with _open(0, "rb") as source, _standard_output() as output:
        answer(source, output, bounds=bounds, log=lambda line: click.echo(line, err=True))


_PROXYING: tuple[Callable[[Callable[..., None]], Callable[..., None]], ...] = (
    click.option("--upstream", metavar="URL", help="A server with OpenAI's chat API, .../v1: its models get tools."),
    click.option("--config", metavar="FILE.toml", help="Upstreams and how each model is taught, instead of options."),
    click.option("--upstream-key", envvar="CALLMARK_UPSTREAM_KEY", help="For it. Or in CALLMARK_UPSTREAM_KEY."),
    click.option("--mode", type=click.Choice(["auto", "native", "text"]), help="How tools get there. [auto]"),
    click.option("--dialect", metavar="NAME|FILE.toml", help="In which calls are taught. [call]"),
    click.option("--style", help="How tools are described: signature, brief, compact, table, schema. [signature]"),
    click.option("--language", type=click.Choice(["en", "zh-Hans", "zh-Hant"]), help="Of the prompt. [en]"),
    click.option("--tool", "tools", multiple=True, metavar="PATTERN", help="Offer only such tools. Repeatable."),
    click.option(
        "--place",
        type=click.Choice(["system", "merged", "user", "depth", "both"]),
        help="Where the prompt goes. [merged]",
    ),
    click.option("--no-system-role", is_flag=True, help="Its template knows no system messages."),
    click.option(
        "--before-calls",
        type=click.Choice(["stream", "hold", "drop", "reasoning"]),
        help="What becomes of text before a call. [stream]",
    ),
)


def _proxying(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the proxy, as the argument `proxied`: its configuration, None without one."""

    @wraps(command)
    def with_upstream(
        *arguments: Any,
        upstream: str | None,
        config: str | None,
        upstream_key: str | None,
        mode: str | None,
        dialect: str | None,
        style: str | None,
        language: str | None,
        tools: tuple[str, ...],
        place: str | None,
        no_system_role: bool,
        before_calls: str | None,
        **others: Any,
    ) -> None:
        given = {
            "mode": mode,
            "dialect": dialect,
            "style": style,
            "language": language,
            "tools": tools or None,
            "place": place,
            "system_role": False if no_system_role else None,
            "before_calls": before_calls,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if config is not None and (upstream is not None or given):
            raise click.UsageError("--config: expected it alone; the file says what the other options would")
        if upstream is None and given:
            raise click.UsageError("expected --upstream with the options of the proxy")
        others["proxied"] = None
        if upstream is not None or config is not None:
            from callmark.serving.upstreams import load_config, make_config

            key = {"api_key": upstream_key} if upstream_key else {}
            table = {"upstreams": [{"url": upstream, **key, **given}]}
            others["proxied"] = load_config(config) if config is not None else make_config(table, "--upstream")
        command(*arguments, **others)

    for option in reversed(_PROXYING):
        with_upstream = option(with_upstream)
    return with_upstream


@main.command(short_help="Serve programs in other languages over HTTP and WebSocket, and give models tools.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="0 is any that is free.")
@click.option(
    "--origin", "origins", multiple=True, metavar="ORIGIN", help="A web page that may ask. Repeatable."
)
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Another name of this server. Repeatable.")
@click.option("--token", envvar="CALLMARK_TOKEN", default="", help="Wanted from every client. Or in CALLMARK_TOKEN.")
@click.option("--schema", is_flag=True, help="Print the OpenAPI document, and serve nothing.")
@_sizes
@_proxying
def serve(
    host: str,
    port: int,
    origins: tuple[str, ...],
    hosts: tuple[str, ...],
    token: str,
    schema: bool,
    bounds: Bounds,
    proxied: ProxyConfig | None,
) -> None:
    """Serve the functions over HTTP, with streams and sessions over the WebSocket /ws, until Ctrl-C.

    With --upstream or --config, also as a proxy: /v1/chat/completions takes tools for models that only write text, and
    all other requests are passed on.

    Requests from web pages are refused but for those of --origin. An address other than the loopback's wants a --token.

    \b
    Example: callmark serve --upstream http://127.0.0.1:5001/v1
    """
    if schema:
        from callmark.serving.schema import openapi

        with _standard_output() as output:
            output.write(msgspec.json.format(msgspec.json.encode(openapi())) + b"\n")
        return
    try:
        from callmark.serving.gate import LOOPBACK, Gate
        from callmark.serving.http import Listening, app
    except ImportError as error:
        raise _Failure(f"serve wants the extra `server`: pip install callmark[server] ({error})") from error
    if host not in (*LOOPBACK, "::1") and not token:
        raise click.UsageError(f"--host {host}: expected a --token, for others can reach this address")
    gate = Gate(origins=origins, hosts=(host, *hosts), token=token, body_bytes=bounds.message_bytes)
    application = app(gate=gate, bounds=bounds, **_proxy(proxied, token))
    listening = Listening(application, host=host, port=port, message_bytes=bounds.message_bytes)
    click.echo(f"callmark serves on {listening.url}", err=True)
    listening.run()


def _proxy(config: ProxyConfig | None, token: str) -> dict[str, Any]:
    """Return what the proxy adds to the application. Where there is a token, clients' keys are for this server."""
    if config is None:
        return {}
    from callmark.serving.proxy import Proxy

    proxy = Proxy(msgspec.structs.replace(config, pass_authorization=config.pass_authorization and not token))
    return {"routes": proxy.routes(), "lifespan": proxy.lifespan}


def _watch(session: Session, model: Model, question: str, as_json: bool) -> None:
    """Do one turn of a session, and show what happens."""
    import asyncio

    from callmark.watching import Watching

    colours = os.isatty(1) and "NO_COLOR" not in os.environ
    watching = Watching(lambda text, colour: click.style(text, fg=colour) if colours else text)

    async def turn() -> None:
        with _standard_output() as output:
            output.write(b"" if as_json else watching.say("user", question).encode())
            async for event in session.run(model, question):
                if as_json:
                    output.write(msgspec.json.encode(event) + b"\n")
                else:
                    output.write(watching.show(event).encode(errors="replace"))
                output.flush()

    asyncio.run(turn())


def _tools_of(path: str) -> list[Tool]:
    """Run a Python file of the user's, which may import its neighbours, and return the tools that it defines."""
    import runpy
    import sys

    from callmark.tools.foreign import attempt
    from callmark.tools.tool import Tool

    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # as `python TOOLS.py` does
    ran = attempt(runpy.run_path, path)
    if ran.error is not None:
        raise _not_run(path, ran.error)
    found = list(dict.fromkeys(value for value in ran.value.values() if isinstance(value, Tool)))  # by any names, once
    if not found:
        raise _Failure(f"{click.format_filename(path)}: expected tools (functions with @callmark.tool), found none")
    return found


def _not_run(path: str, error: BaseException) -> BaseException:
    """Return what to raise where a user's file raises; Ctrl-C, and a file that is not there, are said as they are."""
    import traceback

    missing = isinstance(error, OSError) and error.filename in (path, os.path.abspath(path))
    if missing or isinstance(error, KeyboardInterrupt):
        return error
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    place = f"{click.format_filename(path)}, line {lines[-1]}" if lines else click.format_filename(path)
    return _Failure(f"{place}: expected a file that runs, found {type(error).__name__}: {error}")


def _language(name: str) -> str | Language:
    """Return a language by its name, or read it from a file."""
    from callmark import load_language

    return load_language(name) if name.endswith(".toml") else name


def _dialect(name: str) -> str | Dialect:
    if not name.endswith(".toml"):
        return name
    from callmark.dialects import load_dialect

    return load_dialect(name)


def _tools(path: str) -> Any:
    with _open(0 if path == "-" else path, "rb") as source:
        return _json(source.read(), f"{click.format_filename(path)}: expected tools as JSON")


def _json(data: bytes, expected: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        raise _Failure(f"{expected}, found: {error}") from error


def _chunks(path: str, *, follow: bool = False) -> Iterator[str]:
    """Yield the text of a file, or of standard input for `-`, as it arrives.

    While a file is followed, the first Ctrl-C ends the text; a second one interrupts the command as usual.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    mark = "\ufeff"
    stopped = threading.Event()

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stopped.set()

    with _open(0 if path == "-" else path, "rb", buffering=0) as source:
        if follow:
            signal.signal(signal.SIGINT, stop)
        while not stopped.is_set():
            data: bytes | None = source.read(_CHUNK_BYTES)
            if data:
                text = decoder.decode(data)
                yield text.removeprefix(mark)
                mark = "" if text else mark
            elif data is None:  # a pipe that does not block, as some parents leave it
                stopped.wait(_POLL_SECONDS)
            elif not follow:
                break
            elif source.seekable() and os.fstat(source.fileno()).st_size < source.tell():
                click.echo(f"{click.format_filename(path)}: was cut short while it was followed; stopped", err=True)
                break
            else:
                stopped.wait(_POLL_SECONDS)
    yield decoder.decode(b"", final=True)


def _standard_output() -> BinaryIO:
    """Open standard output for bytes: text that `sys.stdout` could not write would otherwise be its error, not ours."""
    return _open(1, "wb")


def _open(file: str | int, mode: str, buffering: int = -1) -> BinaryIO:
    """Open a file or a descriptor, which stays open; an error names it."""
    try:
        return cast(BinaryIO, open(file, mode, buffering, closefd=isinstance(file, str)))
    except OSError as error:
        if isinstance(file, int):
            error.filename = ("standard input", "standard output")[file]
        raise


@contextmanager
def _output(as_json: bool, shown: str | None) -> Iterator[_Show]:
    """Give what prints a piece of the text and its events: for eyes, as JSON Lines, or as plain text."""
    if os.isatty(1) and not as_json:
        from callmark.display import Transcript

        transcript = Transcript(shown)
        yield transcript.show
        transcript.close()
        return
    with _standard_output() as output:

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
