"""The commands that serve programs in other languages, and models behind a proxy."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
import msgspec

from callmark.cli.files import CommandError, open_named, standard_output

if TYPE_CHECKING:
    from callmark.serving.bounds import Bounds
    from callmark.serving.configuration import ProxyConfig

_SIZES = (
    click.option(
        "--message-bytes", type=click.IntRange(1), metavar="N", help="Most bytes of a message. [default: 16 MiB]"
    ),
    click.option(
        "--streams", type=click.IntRange(1), metavar="N", help="Most streams that are open at once. [default: 1000]"
    ),
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


@click.command(short_help="Serve programs in other languages over standard input and output.")
@click.option("--schema", is_flag=True, help="Print the OpenRPC document, and serve nothing.")
@_sizes
def stdio(schema: bool, bounds: Bounds) -> None:
    """Answer JSON-RPC 2.0 on standard input, one message a line, until it ends.

    Standard output has answers only, one a line; remarks go to standard error. --schema says what there is.

    \b
    Example: callmark stdio <<END
    {"jsonrpc":"2.0","id":1,"method":"detect","params":{"text":"[CALL: f()]"}}
    END
    """
    if schema:
        from callmark.serving.schema import openrpc

        with standard_output() as output:
            output.write(msgspec.json.format(msgspec.json.encode(openrpc())) + b"\n")
        return
    from callmark.serving.stdio import serve as answer

    with open_named(0, "rb") as source, standard_output() as output:
        answer(source, output, bounds=bounds, log=lambda line: click.echo(line, err=True))


def _only(_: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> str | None:
    """Take an option that has a place once: of two, click takes the last and says nothing."""
    if len(given) > 1:
        raise click.UsageError(f"{parameter.opts[0]}: expected it once; several are told in a file, by --config")
    return given[0] if given else None


_PROXYING: tuple[Callable[[Callable[..., None]], Callable[..., None]], ...] = (
    click.option(
        "--upstream",
        multiple=True,
        callback=_only,
        metavar="URL",
        help="A server with OpenAI's chat API, .../v1: its models get tools.",
    ),
    click.option("--config", metavar="FILE.toml", help="Upstreams and how each model is taught, instead of options."),
    click.option("--upstream-key", envvar="CALLMARK_UPSTREAM_KEY", help="Its key. Or in CALLMARK_UPSTREAM_KEY."),
    click.option("--mode", type=click.Choice(["auto", "native", "text"]), help="How models get tools. [default: auto]"),
    click.option("--dialect", metavar="NAME|FILE.toml", help="The dialect to teach. [default: call]"),
    click.option(
        "--style", help="How tools are described: signature, brief, compact, table, schema. [default: signature]"
    ),
    click.option(
        "--language", type=click.Choice(["en", "zh-Hans", "zh-Hant"]), help="The language of the prompt. [default: en]"
    ),
    click.option("--tool", "tools", multiple=True, metavar="PATTERN", help="Offer only such tools. Repeatable."),
    click.option(
        "--place",
        type=click.Choice(["system", "merged", "user", "depth", "both"]),
        help="Where the prompt goes. [default: merged]",
    ),
    click.option("--no-system-role", is_flag=True, help="For a template without system messages."),
    click.option(
        "--before-calls",
        type=click.Choice(["stream", "hold", "drop", "reasoning"]),
        help="What becomes of text before a call. [default: stream]",
    ),
    click.option(
        "--arguments",
        type=click.Choice(["whole", "stream"]),
        help="How the arguments of a call go out. [default: whole]",
    ),
)


def _proxying(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the proxy, as the argument `proxied`: its configuration, None without one."""

    @wraps(command)
    def with_upstream(
        *positional: Any,
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
        arguments: str | None,
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
            "arguments": arguments,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if config is not None and (upstream is not None or given):
            raise click.UsageError("--config: expected it alone; the file says what the other options would")
        if upstream is None and given:
            raise click.UsageError("expected --upstream with the options of the proxy")
        others["proxied"] = None
        if upstream is not None or config is not None:
            from callmark.serving.configuration import load_config, make_config

            key = {"api_key": upstream_key} if upstream_key else {}
            table = {"upstreams": [{"url": upstream, **key, **given}]}
            others["proxied"] = load_config(config) if config is not None else make_config(table, "--upstream")
        command(*positional, **others)

    for option in reversed(_PROXYING):
        with_upstream = option(with_upstream)
    return with_upstream


@click.command(short_help="Serve programs in other languages over HTTP and WebSocket, and give models tools.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="0 is any that is free.")
@click.option("--origin", "origins", multiple=True, metavar="ORIGIN", help="A web page that may ask. Repeatable.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Another name of this server. Repeatable.")
@click.option("--token", envvar="CALLMARK_TOKEN", default="", help="What clients must send. Or in CALLMARK_TOKEN.")
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

        with standard_output() as output:
            output.write(msgspec.json.format(msgspec.json.encode(openapi())) + b"\n")
        return
    try:
        from callmark.serving.gate import LOOPBACK, Gate
        from callmark.serving.http import Listening, app
    except ImportError as error:
        raise CommandError(f"serve wants the extra `server`: pip install 'callmark[server]' ({error})") from error
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
