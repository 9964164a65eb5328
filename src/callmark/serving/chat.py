"""Turns a request of OpenAI's chat API with tools into one without, and knows how its answer is to be read.

Pure: a request's body and the settings of its model give an `Exchange`. What a client or its user wrote, and what tools
returned, is neutralized on the way; the only text that is ever read for calls is the model's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from callmark.dialects import Dialect
from callmark.dialects.notation import fill
from callmark.errors import UsageError
from callmark.languages import language_of
from callmark.serving.configuration import ModelSettings
from callmark.serving.reply import ChoiceReader
from callmark.writing.export import export_grammar
from callmark.writing.history import render_history
from callmark.writing.messages import merge_into_messages
from callmark.writing.neutral import neutralized_inside
from callmark.writing.prompt import CHOICES, Prompt, protocol_prompt

Body: TypeAlias = dict[str, Any]

STOPS_LIMIT: Final = 8
"""Tools for which the header of their result becomes a stop string; servers take some sixteen strings at most."""
KEPT_BYTES: Final = 262_144
"""Of tools whose prompt is kept for the next request: some hundred tools, and 64 such prompts take some 40 MB."""
_OURS: Final = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")
_NO_BEGINNING: Final = frozenset("-0123456789")
_ROLES: Final = frozenset(("system", "developer", "user", "assistant", "tool", "function"))


class RequestError(UsageError):
    """A request that the proxy refuses with 400; `param` names the field."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class _Function(msgspec.Struct):
    name: str
    arguments: Any = None


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Part(msgspec.Struct):
    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None


class _Message(msgspec.Struct):
    """What is relied on where a message is written as text; whatever else it holds is passed on."""

    role: str
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    name: str | None = None


class Exchange(NamedTuple):
    """A request as the upstream gets it, and what is needed to read its answer.

    body       of the request
    tools      that the model may call
    names      of what may be called, None for any: a call of another stays text
    native     whether the upstream's server gets them, and not the model a text
    parallel   whether more than one may be called in a message
    settings, nonce   of the model
    streamed, usage   whether the client wants a stream, and in it a chunk with the usage
    old        whether the client asked by `functions`, and gets a `function_call`
    renamed    the client's own names of tools that have another one here, by that one
    """

    body: Body
    tools: tuple[Body, ...]
    names: frozenset[str] | None
    parallel: bool
    settings: ModelSettings
    nonce: str | None
    streamed: bool
    usage: bool
    old: bool
    native: bool = False
    renamed: Mapping[str, str] = MappingProxyType({})

    def reader(self, *, eager: bool = False) -> ChoiceReader:
        """Return a reader for one choice of the answer."""
        return ChoiceReader(
            self.settings,
            self.tools,
            self.names,
            parallel=self.parallel,
            nonce=self.nonce,
            eager=eager,
            native=self.native,
        )


def checked(body: Any) -> Body:
    """Return a body that is a request of a chat. Raises RequestError that says what was expected."""
    if not isinstance(body, dict):
        raise RequestError(f"body: expected a JSON object, found {type(body).__name__}")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages: expected a list with at least one message", "messages")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RequestError(f"messages[{number}]: expected an object with a role", f"messages[{number}].role")
    if not isinstance(body.get("model"), str | None):
        raise RequestError("model: expected a string", "model")
    if not isinstance(body.get("stream"), bool | None):
        raise RequestError("stream: expected true or false", "stream")
    return body


def concerns_tools(body: Body) -> bool:
    """Whether a request has anything that a model without tools would not understand."""
    return any(body.get(key) for key in _OURS) or any(
        message["role"] in ("tool", "function") or message.get("tool_calls") or message.get("function_call")
        for message in body["messages"]
    )


def handed(body: Body, settings: ModelSettings) -> Exchange:
    """Return what to send to a server that takes tools itself: the request, with the tools that the settings let
    through. Whether it is a good one is the server's business.
    """
    old = bool(body.get("functions"))
    key = "functions" if old else "tools"
    tools = body.get(key)
    tools = tools if isinstance(tools, list) else []
    offered = [tool for tool in tools if settings.offers(_name_of({"function": tool} if old else tool))]
    if len(offered) < len(tools):
        body = {**body, key: offered} if offered else {key: body[key] for key in body if key not in _OURS}
    stops = _list_of(body.get("stop"))
    if settings.stop and isinstance(stops, list):
        body = {**body, "stop": list(dict.fromkeys([*stops, *settings.stop]))}
    return Exchange(
        body=body,
        tools=tuple(offered),
        names=frozenset() if body.get("function_call" if old else "tool_choice") == "none" else None,
        parallel=not old and body.get("parallel_tool_calls") is not False,
        settings=settings,
        nonce=None,
        streamed=body.get("stream") is True,
        usage=_wants_usage(body),
        old=old,
        native=True,
    )


def taught(body: Body, settings: ModelSettings, nonce: str | None = None) -> Exchange:
    """Return what to send to a model that only writes text.

    Fields that are not about tools stay as they are. Raises RequestError for tools, a choice or messages that are
    none, and for calls in the history that the dialect cannot express.
    """
    old = bool(body.get("functions") or body.get("function_call"))
    if old:
        body = _renewed(body)
    for number, message in enumerate(body["messages"]):
        if message["role"] not in _ROLES:
            expected = f"messages[{number}].role: expected one of {', '.join(sorted(_ROLES))}"
            raise RequestError(expected, f"messages[{number}].role")
    offered = _offered(body, settings)
    taken = frozenset(offered)
    choice, offered = _chosen(body.get("tool_choice"), offered)
    choice = _name_here(choice, taken)
    renamed = {_name_here(name, taken): name for name in offered}
    offered = {here: _with_name(offered[name], here) for here, name in renamed.items()}
    parallel = body.get("parallel_tool_calls")
    if not isinstance(parallel, bool | None):
        raise RequestError("parallel_tool_calls: expected true or false", "parallel_tool_calls")
    parallel = parallel is not False
    nonce = nonce if settings.nonce else None
    tools = tuple(offered.values())
    try:
        prompt = _prompt(tools, choice, parallel, settings, nonce) if tools else None
        forced = _grammar(tools, choice, parallel, settings, nonce) if settings.grammar else ""
    except UsageError as error:
        raise RequestError(str(error), "tools") from error
    made = {key: value for key, value in body.items() if key not in _OURS}
    form = _form(body.get("response_format"), settings)
    if prompt is not None and form and choice != "none":  # a server that holds the model to it lets it call nothing
        del made["response_format"]
        prompt = prompt._replace(text=f"{prompt.text}\n\n{form}") if choice == "auto" else prompt
    made["messages"] = _messages(body["messages"], taken, tools, prompt, settings, nonce)
    if forced:
        made["grammar"] = forced
    if choice == "none":
        tools, offered = (), {}
    stops = _stops(body, tuple(offered), settings)
    if stops:
        made["stop"] = stops
    return Exchange(
        body=made,
        tools=tools,
        names=frozenset(offered),
        parallel=parallel,
        settings=settings,
        nonce=nonce,
        streamed=body.get("stream") is True,
        usage=_wants_usage(body),
        old=old,
        renamed=renamed,
    )


def _wants_usage(body: Body) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _renewed(body: Body) -> Body:
    """Return a request by `functions` as one by `tools`, which replaced them."""
    for key in ("functions", "function_call"):
        if body.get(key) and body.get("tools"):
            raise RequestError(f"{key}: expected it or `tools`, not both", key)
    functions = body.get("functions") or []
    if not isinstance(functions, list):
        raise RequestError("functions: expected a list of functions", "functions")
    choice = body.get("function_call")
    return {
        **body,
        "tools": [{"type": "function", "function": function} for function in functions],
        "tool_choice": {"type": "function", "function": choice} if isinstance(choice, dict) else choice,
        "parallel_tool_calls": False,  # there is room for one
    }


def _offered(body: Body, settings: ModelSettings) -> dict[str, Body]:
    """Return the tools that the settings let through, by their names."""
    tools = body.get("tools")
    if tools is None:
        return {}
    if not isinstance(tools, list):
        raise RequestError("tools: expected a list of tools", "tools")
    found: dict[str, Body] = {}
    for number, tool in enumerate(tools):
        place = f"tools[{number}]"
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type", "function") == "function" else 0
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or not name:
            raise RequestError(f"{place}: expected a tool of the type function, with a function that has a name", place)
        if name in found:
            raise RequestError(f"{place}.function.name: expected a name that no other tool has", place)
        found[name] = tool
    return {name: tool for name, tool in found.items() if settings.offers(name)}


def _chosen(choice: Any, offered: dict[str, Body]) -> tuple[str, dict[str, Body]]:
    """Return the choice as `protocol_prompt` has it, and the tools that it leaves."""
    if choice is None:
        return "auto", offered
    if choice in CHOICES:
        if choice == "required" and not offered:
            raise RequestError("tool_choice: expected tools for `required`, found none", "tool_choice")
        return str(choice), offered
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "function":
        name = _name_of(choice)
        if name not in offered:
            raise RequestError(f"tool_choice: expected the name of one of `tools`, found {name!r:.80}", "tool_choice")
        return "required" if name in CHOICES else name, {name: offered[name]}
    allowed = choice.get("allowed_tools") if kind == "allowed_tools" else None
    if isinstance(allowed, dict) and allowed.get("mode") in ("auto", "required"):
        listed = allowed.get("tools")
        names = [_name_of(tool) for tool in listed] if isinstance(listed, list) else []
        if names and all(name in offered for name in names):
            return str(allowed["mode"]), {name: offered[name] for name in dict.fromkeys(names)}
    raise RequestError(
        "tool_choice: expected auto, none, required, a function of `tools`, or allowed_tools", "tool_choice"
    )


def _name_of(choice: Any) -> str:
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def _name_here(name: str, taken: Collection[str]) -> str:
    """Return how a tool is called here: OpenAI lets names begin with a digit or a dash, and dialects do not.

    taken   the names of all tools
    """
    if name[:1] in _NO_BEGINNING:
        name = "_" + name
        while name in taken:
            name = "_" + name
    return name


def _with_name(tool: Body, name: str) -> Body:
    """Return a tool, or a call of one, under another name."""
    return {**tool, "function": {**tool["function"], "name": name}}


def _with_names_here(message: Body, taken: Collection[str]) -> Body:
    """Return a message in which tools are called as they are here."""
    message = dict(message)
    if message.get("tool_calls"):
        calls = message["tool_calls"]
        message["tool_calls"] = [_with_name(call, _name_here(call["function"]["name"], taken)) for call in calls]
    called = message.get("function_call")
    if isinstance(called, dict) and isinstance(called.get("name"), str):
        message["function_call"] = {**called, "name": _name_here(called["name"], taken)}
    if message["role"] in ("tool", "function") and isinstance(message.get("name"), str):
        message["name"] = _name_here(message["name"], taken)
    return message


def _prompt(tools: Sequence[Body], choice: str, parallel: bool, settings: ModelSettings, nonce: str | None) -> Prompt:
    written = msgspec.json.encode(tools)
    made = _cached_prompt if len(written) <= KEPT_BYTES else _cached_prompt.__wrapped__
    return made(written, choice, parallel, msgspec.json.encode(settings), nonce)


@lru_cache(maxsize=64)
def _cached_prompt(tools: bytes, choice: str, parallel: bool, settings: bytes, nonce: str | None) -> Prompt:
    """Return the prompt; the same tools come with each request of a conversation, and it takes some milliseconds."""
    of_model = msgspec.json.decode(settings, type=ModelSettings)
    return protocol_prompt(
        msgspec.json.decode(tools),
        of_model.row,
        style=of_model.style,
        tool_choice=choice,
        parallel=parallel,
        language=of_model.language,
        nonce=nonce,
        reasoning=of_model.reasoning,
        examples=of_model.examples,
        budget=of_model.budget,
    )


def _grammar(tools: Sequence[Body], choice: str, parallel: bool, settings: ModelSettings, nonce: str | None) -> str:
    """Return the grammar of what must be called, "" where nothing must."""
    if choice in ("auto", "none"):
        return ""
    options: dict[str, Any] = {"tool_choice": choice, "parallel": parallel, "nonce": nonce, "free_text": False}
    return export_grammar(tools, settings.row, "gbnf", **options).text


def _messages(
    messages: Sequence[Body],
    taken: Collection[str],
    tools: Sequence[Body],
    prompt: Prompt | None,
    settings: ModelSettings,
    nonce: str | None,
) -> list[Body]:
    try:
        msgspec.convert(messages, list[_Message])
        row = settings.row
        names = {_name_here(name, taken) for name in taken}
        told = (_harmless(_with_names_here(message, taken), row, names) for message in messages)
        made = render_history(told, row, nonce=nonce, tools=tools, language=settings.language)
        if prompt is not None:
            if settings.place in ("user", "both") and all(message["role"] != "user" for message in made):
                made.append({"role": "user", "content": ""})
            if all(message["role"] == "system" for message in made):  # else the last word would be an example's answer
                prompt = prompt._replace(turns=())
            made = merge_into_messages(made, prompt, settings.place, depth=settings.depth)
    except (UsageError, msgspec.ValidationError) as error:
        raise RequestError(f"messages: {error}", "messages") from error
    if not settings.system_role:
        made = [{**message, "role": "user"} if message["role"] == "system" else message for message in made]
    return render_history(made, merge_roles=True) if settings.merge_roles else made


def _harmless(message: Body, row: Dialect, names: Collection[str]) -> Body:
    """Return a message without what a model without tools does not know; what its user wrote cannot call.

    `names` are those of the tools.
    """
    kept = {key: value for key, value in message.items() if value is not None or key == "content"}
    refusal = kept.pop("refusal", "")
    if message["role"] == "developer":
        kept["role"] = "system"
    if kept.get("content") is None:
        kept["content"] = refusal if isinstance(refusal, str) else ""
    if message["role"] == "assistant" and isinstance(kept["content"], list):
        kept["content"] = [_said_part(part) for part in kept["content"]]
    if message["role"] in ("user", "tool", "function"):  # llama.cpp, for one, reads tokens of its template anywhere
        content = kept["content"]
        if isinstance(content, list):
            kept["content"] = [_harmless_part(part, row, names) for part in content]
        else:
            kept["content"] = neutralized_inside(content, dialects=row, special_tokens=True, names=names)
        if message["role"] == "user" and isinstance(kept.get("name"), str):  # which some templates write before it
            kept["name"] = neutralized_inside(kept["name"], dialects=row, special_tokens=True, names=names)
    return kept


def _said_part(part: Body) -> Body:
    return {"type": "text", "text": part["refusal"]} if isinstance(part.get("refusal"), str) else part


def _harmless_part(part: Body, row: Dialect, names: Collection[str]) -> Body:
    text = part.get("text")
    if not isinstance(text, str):
        return part
    return {**part, "text": neutralized_inside(text, dialects=row, special_tokens=True, names=names)}


def _form(given: Any, settings: ModelSettings) -> str:
    """Return in words what form `response_format` wants an answer to have, "" for any."""
    kind = given.get("type") if isinstance(given, dict) else None
    words = language_of(settings.language)
    if kind == "json_object":
        return words.json_answer
    inside = given.get("json_schema") if kind == "json_schema" else None
    schema = inside.get("schema") if isinstance(inside, dict) else None
    return fill(words.json_by_schema, {"schema": json.dumps(schema, ensure_ascii=False)}) if schema else ""


def _list_of(stop: Any) -> Any:
    """Return a request's `stop` as a list, where it is one text or none; else as it is."""
    return [] if stop is None else [stop] if isinstance(stop, str) else stop


def _stops(body: Body, names: Sequence[str], settings: ModelSettings) -> list[str]:
    """Return the client's stop strings, those of the settings, and the lines under which results stand.

    An answer to a result may quote its header, so there the last are not asked for; invented results are cut off all
    the same when the answer is read.
    """
    stops = _list_of(body.get("stop"))
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise RequestError("stop: expected a string or a list of strings", "stop")
    ours: list[str] = []
    if len(names) <= STOPS_LIMIT and body["messages"][-1]["role"] not in ("tool", "function"):
        header = language_of(settings.language).header.partition("{id}")[0]
        ours = ["\n" + header.replace("{name}", name) for name in names]
    return list(dict.fromkeys([*stops, *settings.stop, *ours]))
