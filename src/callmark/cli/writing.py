"""The commands that write what goes to a model: prompts, and calls as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from callmark.cli.files import CommandError, decode_json, load_tools, named_language, standard_output, whole
from callmark.dialects import named_dialect

if TYPE_CHECKING:
    from callmark.dialects.rendering import WrittenCall

_TOOLS = click.argument("tools", metavar="TOOLS.json|-")
DIALECT = click.option(
    "--dialect", default="call", show_default=True, metavar="NAME|FILE.toml", help="The dialect to write."
)
LANGUAGE = click.option(
    "--language",
    default="en",
    show_default=True,
    metavar="NAME|FILE.toml",
    help="en, zh-Hans, zh-Hant or a file of your own.",
)


@click.command(short_help="Print the prompt that teaches tools to a model.")
@_TOOLS
@DIALECT
@click.option(
    "--style",
    default="signature",
    show_default=True,
    help="How tools are described: signature, brief, compact, table, schema.",
)
@LANGUAGE
@click.option("--tool-choice", default="auto", show_default=True, help="auto, none, required, or the name of a tool.")
@click.option("--single", is_flag=True, help="At most one call in a message.")
@click.option("--reasoning", is_flag=True, help="A sentence of reasoning before a call.")
@click.option("--nonce", help="The code that every call must carry.")
@click.option("--examples", default="turns", show_default=True, help="turns, inline or none.")
@click.option("--budget", type=int, help="Most tokens; a shorter style and fewer examples are taken.")
@click.option("--tokenizer", metavar="tokenizer.json", help="Count with it (pip install 'callmark[tokens]').")
@click.option("--count", "counted", is_flag=True, help="Print style, characters and tokens of the messages instead.")
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
        load_tools(tools),
        named_dialect(dialect),
        language=named_language(language),
        parallel=not single,
        count=estimate_tokens if tokenizer is None else counter(tokenizer),
        **options,
    )
    messages = written.messages()
    with standard_output() as output:
        if counted:
            characters = sum(len(message["content"]) for message in messages)
            size = {"style": written.style, "characters": characters, "tokens": written.tokens}
            output.write(
                (msgspec.json.encode(size) if as_json else "\t".join(map(str, size.values())).encode()) + b"\n"
            )
        elif as_json:
            output.writelines(msgspec.json.encode(message) + b"\n" for message in messages)
        else:
            output.write(written.text.encode() + b"\n")


@click.command(short_help="Write calls as the text of a dialect.")
@click.argument("file", default="-", metavar="[FILE|-]")
@DIALECT
@click.option("--nonce", help="The code that every call carries.")
@click.option("--tools", metavar="TOOLS.json", help="The tools, whose types decide how values are written.")
def render(file: str, dialect: str, nonce: str | None, tools: str | None) -> None:
    """Write the calls in FILE or standard input, JSON, as the text of a dialect.

    A call has a name, arguments and perhaps an id, as `callmark parse` prints it on a line; other events are passed
    over. Calls as OpenAI and Anthropic give them will do too, and so will a list of calls.

    \b
    Example: callmark parse answer.txt --calls | callmark render --dialect hermes
    """
    from callmark.writing.calls import render_placed

    known = None if tools is None else load_tools(tools, beside=file)
    text = whole(file)
    try:
        rows = [(1, msgspec.json.decode(text))]
    except (ValueError, RecursionError):
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        rows = [(number, decode_json(line.encode(), f"line {number}: expected a call as JSON"))
                for number, line in lines]  # fmt: skip

    def calls() -> Iterator[tuple[str, WrittenCall]]:
        for number, row in rows:
            for index, call in enumerate(row if isinstance(row, list) else [row], 1):
                place = f"line {number}, call {index}: " if isinstance(row, list) else f"line {number}: "
                if not isinstance(call, dict) or call.get("type", "call") in _CALLS:
                    yield place, _written_call(call, place)

    text = render_placed(calls(), named_dialect(dialect), nonce=nonce, tools=known)
    with standard_output() as output:
        output.write(text.encode() + b"\n" * bool(text))


_CALLS = ("call", "function", "function_call", "tool_use")  # how ours is told, and those of other APIs


def _written_call(call: Any, place: str) -> WrittenCall:
    """Return a call in one of the usual shapes. Raises CommandError, which begins with its place."""
    from callmark import WrittenCall

    inner = call.get("function", call) if isinstance(call, dict) else call
    if not isinstance(inner, dict) or "name" not in inner:
        raise CommandError(f"{place}expected an object with a name and arguments, found {call!r:.80}")
    other = next((key for key in ("parameters", "params", "args") if key in inner), None)
    if other is not None and not inner.keys() & {"arguments", "input"}:  # they would be lost
        raise CommandError(f"{place}expected arguments, found {other}")
    arguments = inner.get("arguments", inner.get("input", {}))
    if isinstance(arguments, str):
        arguments = decode_json(arguments.encode("utf-8", "replace"), f"{place}expected arguments as JSON")
    return WrittenCall(inner["name"], arguments, call.get("call_id", call.get("id")))


@click.command(short_help="Write the calls in a text in another dialect.")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--to", "target", required=True, metavar="NAME|FILE.toml", help="The dialect to write.")
@click.option("--dialect", "names", multiple=True, metavar="NAME|FILE.toml", help="Listen for this one. Repeatable.")
@click.option("--tools", metavar="TOOLS.json", help="The tools, whose types decide how values are read and written.")
def convert(file: str, target: str, names: tuple[str, ...], tools: str | None) -> None:
    """Print FILE or standard input with its calls in another dialect; all else stays as it is.

    Text that would be a call in that dialect, and was none, is an error, and so are bytes that are no UTF-8.

    \b
    Example: callmark convert answer.txt --to hermes
    """
    from callmark import convert as converted

    known = None if tools is None else load_tools(tools, beside=file)
    text = whole(file)
    heard = [named_dialect(name) for name in names] or None
    written = converted(text, named_dialect(target), dialects=heard, tools=known)
    with standard_output() as output:
        output.write(written.encode())


@click.command(short_help="Say what in a set of tools will cost good calls.")
@_TOOLS
@click.pass_context
def lint(ctx: click.Context, tools: str) -> None:
    """Print what is wrong with the tools in TOOLS.json: code, tool, and what to do.

    Exit code 0 means that nothing was found, 1 that something was, 2 that something failed.

    \b
    Example: callmark lint tools.json
    """
    from callmark.writing.lint import lint as findings_of

    findings = findings_of(load_tools(tools))
    with standard_output() as output:
        output.writelines(f"{found.code}\t{found.tool}\t{found.message}\n".encode() for found in findings)
    ctx.exit(1 if findings else 0)


def counter(path: str) -> Callable[[str], int]:
    """Return what counts tokens with a tokenizer of its own file."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise CommandError("--tokenizer wants the package `tokenizers`: pip install 'callmark[tokens]'") from error
    with open(path, "rb") as source:
        data = source.read()
    expected = f"{click.format_filename(path)}: expected a tokenizer.json"
    described = decode_json(data, expected)
    if not isinstance(described, dict) or "model" not in described:
        raise CommandError(f"{expected}, found JSON without a model")
    tokenizer = Tokenizer.from_buffer(data)
    return lambda text: len(tokenizer.encode(text).ids)
