"""What the proxy is told: its upstreams, and how each model of theirs is taught and read. From flags or a TOML file.

    [[upstreams]]
    url = "http://127.0.0.1:5001/v1"
    dialect = "hermes"              # any field of `ModelSettings`, for all models of this upstream

    [[upstreams.models]]
    name = "qwen*"                  # a shell pattern; the first that fits says what differs from the upstream's
    mode = "native"

Nothing here does I/O but `load_config`, and no key is shown by any `repr`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

import msgspec

from callmark.dialects import Dialect, named_dialect, selected
from callmark.errors import CallmarkError, UsageError, nearest, refusal
from callmark.languages import BuiltIn
from callmark.reading.options import Tolerance, checked_policies
from callmark.running.settings import Settings
from callmark.writing.messages import Place
from callmark.writing.prompt import Examples
from callmark.writing.signatures import Style

_T = TypeVar("_T", bound=msgspec.Struct)


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one model is used.

    mode           "text": tools are taught in the prompt and calls are read out of what the model writes; "native":
                   the server gets the tools, and its calls are brought into the one shape that all clients take;
                   "auto": native where the upstream's server says of itself that it takes tools for this model
                   (llama.cpp, Ollama, LM Studio), and text anywhere else
    dialect        in which calls are taught; a name, or the path of a TOML file with a dialect of one's own, which is
                   read once, and stands here then
    style, language, examples, budget, reasoning   as `protocol_prompt` has them
    tools          shell patterns of the names of tools that are offered, whatever a client sends; None: all
    place, depth   where the prompt goes: `where` and `depth` of `merge_into_messages`
    system_role    off: system messages become the user's, for templates that know no system
    merge_roles    whether neighbouring messages of one role become one, for templates that want roles to alternate
    nonce          whether calls must carry a code that is made when the proxy starts; in `call` only
    before_calls   what becomes of text before a call: "stream": content at once; "hold": content, when it is certain
                   whether a call follows; "drop": nothing; "reasoning": it goes into `reasoning_content`
    arguments      "whole": a call goes out when it is complete; "stream": as the model writes it, for clients that show
                   that. One that the model does not finish is text in the first case; in the second it is out, and an
                   error ends the stream, for clients run what they have of a call when the message ends otherwise
    thinking       what becomes of `<think>` in text: "reasoning": it goes into `reasoning_content`; "content": it stays
                   where it is, tags and all
    grammar        whether a call that must come (`tool_choice` "required", or a tool's name) is forced by a grammar
                   (GBNF, in the field `grammar`: llama.cpp and KoboldCpp take it)
    stop           further stop strings
    tolerance, contexts, starts_in_reasoning    as `Parser` has them
    """

    mode: Literal["auto", "native", "text"] = "auto"
    dialect: str | Dialect = "call"
    style: Style = "signature"
    language: BuiltIn = "en"
    examples: Examples = "turns"
    budget: int | None = None
    reasoning: bool = False
    tools: tuple[str, ...] | None = None
    place: Place = "merged"
    depth: int = 4
    system_role: bool = True
    merge_roles: bool = True
    nonce: bool = False
    before_calls: Literal["stream", "hold", "drop", "reasoning"] = "stream"
    arguments: Literal["whole", "stream"] = "whole"
    thinking: Literal["reasoning", "content"] = "reasoning"
    grammar: bool = False
    stop: tuple[str, ...] = ()
    tolerance: Tolerance = "lenient"
    contexts: dict[str, str] = msgspec.field(default_factory=dict)
    starts_in_reasoning: bool = False

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise UsageError(f"depth: expected 0 or more messages, found {self.depth}")
        checked_policies(self.contexts)
        if isinstance(self.dialect, str):
            msgspec.structs.force_setattr(self, "dialect", named_dialect(self.dialect))
        if self.row.writing is None:
            raise UsageError(f"dialect: expected one that can be written, found {self.dialect!r}")
        if self.nonce and "{nonce}" not in self.row.writing.call:
            raise UsageError(f"nonce: expected a dialect whose calls carry one, found {self.dialect!r}")

    @property
    def row(self) -> Dialect:
        """The dialect."""
        return selected(self.dialect)

    def offers(self, name: str) -> bool:
        """Whether a tool is among those that are offered."""
        return self.tools is None or any(fnmatchcase(name, pattern) for pattern in self.tools)

    def reading(self, nonce: str | None) -> dict[str, Any]:
        """Return what `Parser` takes, but for the tools: the models' own formats are read beside the dialect."""
        options = Settings(dialect=self.row, nonce=nonce if self.nonce else None).reading_options()
        return {
            **options,
            "tolerance": self.tolerance,
            "contexts": self.contexts,
            "starts_in_reasoning": self.starts_in_reasoning,
        }


_OF_MODELS: Final = frozenset(ModelSettings.__struct_fields__)


class Upstream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server with OpenAI's chat API.

    url                      with the path that comes before `/chat/completions`, `http://127.0.0.1:5001/v1`
    api_key                  sent instead of what clients send; default: their own is passed on
    api_key_env              name of an environment variable that holds it
    serves                   shell patterns of the names of models that it serves; requests go to the first that fits
    connect_timeout_seconds  5
    read_timeout_seconds     600: the longest silence; a prompt takes minutes on a slow machine
    keep_alive_seconds       15: after so much silence towards a client, a stream says that it is still there
    client_timeout_seconds   300: a client that takes nothing for so long is given up
    settings, models         what TOML has beside these: settings, and those that differ by a model's name
    """

    url: str
    api_key: str = ""
    api_key_env: str = ""
    serves: tuple[str, ...] = ("*",)
    connect_timeout_seconds: float = 5.0
    read_timeout_seconds: float = 600.0
    keep_alive_seconds: float = 15.0
    client_timeout_seconds: float = 300.0
    settings: ModelSettings = ModelSettings()
    models: tuple[tuple[str, ModelSettings], ...] = ()

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        found = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        if not (found and _is_plain(self.url)) or parts.query or parts.fragment:
            raise UsageError("url: expected http://host:port/v1 of an upstream, found something else")
        if parts.path.rstrip("/").endswith("/completions"):
            raise UsageError("url: expected what stands before /chat/completions, such as http://host:port/v1")
        if not _is_plain(self.api_key):
            raise UsageError("api_key: expected ASCII characters without blanks, found others")
        if self.api_key and self.api_key_env:
            raise UsageError("api_key_env: expected it or api_key, found both")
        if "@" in parts.netloc:
            raise UsageError("url: expected no user or password in it; api_key takes a key")
        times = ("connect_timeout_seconds", "read_timeout_seconds", "keep_alive_seconds", "client_timeout_seconds")
        for name in times:
            if not 0 < getattr(self, name) < 1e6:
                raise UsageError(f"{name}: expected seconds above 0, found {getattr(self, name)}")

    @property
    def key(self) -> str:
        """The key that is sent, "" for the client's own. Raises UsageError where the environment has none."""
        if not self.api_key_env:
            return self.api_key
        key = os.environ.get(self.api_key_env, "").strip()
        if not key or not _is_plain(key):
            raise UsageError(f"api_key_env: expected a key in the environment variable {self.api_key_env}, found none")
        return key

    def settings_for(self, model: str) -> ModelSettings:
        """Return the settings of the first pattern that fits, else those of the upstream."""
        return next((found for pattern, found in self.models if fnmatchcase(model, pattern)), self.settings)

    def __repr__(self) -> str:
        return f"Upstream({self.url!r})"


_OF_UPSTREAMS: Final = frozenset(Upstream.__struct_fields__)


def _is_plain(text: str) -> bool:
    """Whether a text can stand in a header and in a URL as it is."""
    return text.isascii() and text.isprintable() and " " not in text


class ProxyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that the proxy is told.

    upstreams            at least one
    pass_authorization   whether clients' own keys go to upstreams that have none of their own here; off where the
                         key is meant for this server
    """

    upstreams: tuple[Upstream, ...]
    pass_authorization: bool = True

    def __post_init__(self) -> None:
        if not self.upstreams:
            raise UsageError("upstreams: expected at least one, found none")

    def upstream_for(self, model: str) -> Upstream:
        """Return the first upstream that serves a model, else the first of all."""
        return next(
            (each for each in self.upstreams if any(fnmatchcase(model, name) for name in each.serves)),
            self.upstreams[0],
        )


def make_config(table: Mapping[str, Any], where: str = "config") -> ProxyConfig:
    """Return the configuration that a TOML file or flags say. Raises UsageError that names the place."""
    upstreams = table.get("upstreams")
    if not isinstance(upstreams, list | tuple) or not all(isinstance(each, Mapping) for each in upstreams):
        found = "[upstreams] in single brackets" if isinstance(upstreams, Mapping) else "none"
        raise UsageError(f"{where}: expected tables [[upstreams]], found {found}")
    made = [_upstream(each, f"{where}: upstreams[{number}]") for number, each in enumerate(upstreams)]
    return _converted({**table, "upstreams": made}, ProxyConfig, where)


def load_config(path: str | os.PathLike[str]) -> ProxyConfig:
    """Read the configuration from a TOML file. Raises UsageError that names the file and the place."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        found = error.strerror if isinstance(error, OSError) else error  # which would name the file again
        raise UsageError(f"{path}: {found}") from error
    return make_config(table, str(path))


def _upstream(table: Mapping[str, Any], where: str) -> Upstream:
    common = {key: value for key, value in table.items() if key in _OF_MODELS}
    rest = {key: value for key, value in table.items() if key not in _OF_MODELS and key != "models"}
    listed = table.get("models", ())
    if not isinstance(listed, list | tuple) or not all(
        isinstance(each, Mapping) and isinstance(each.get("name"), str) for each in listed
    ):
        raise UsageError(f"{where}.models: expected tables [[upstreams.models]] with a name, found something else")
    _known(table, (_OF_UPSTREAMS | _OF_MODELS) - {"settings"}, where)
    models = []
    for number, each in enumerate(listed):
        own = {key: value for key, value in each.items() if key != "name"}
        models.append((each["name"], _converted({**common, **own}, ModelSettings, f"{where}.models[{number}]")))
    made = {**rest, "settings": _converted(common, ModelSettings, where), "models": tuple(models)}
    return _converted(made, Upstream, where)


def _known(table: Mapping[str, Any], known: Collection[str], where: str) -> None:
    unknown = next((key for key in table if key not in known), None)
    if unknown is not None:
        near = nearest(unknown, known)
        hint = f"; did it mean {near!r}?" if near else ""
        raise UsageError(f"{where}: nothing here is called {unknown!r:.80}{hint}")


def _converted(table: Mapping[str, Any], kind: type[_T], where: str) -> _T:
    _known(table, kind.__struct_fields__, where)
    for field in msgspec.structs.fields(kind):
        words = get_args(field.type) if get_origin(field.type) is Literal else ()
        if words and (found := table.get(field.name, words[0])) not in words:
            expected = f"{', '.join(words[:-1])} or {words[-1]}"
            raise UsageError(f"{where}: {field.name}: expected {expected}, found {found!r:.80}")
    try:
        return msgspec.convert(dict(table), kind)
    except (msgspec.ValidationError, CallmarkError) as error:
        raise UsageError(f"{where}: {refusal(error, kind)}") from error
