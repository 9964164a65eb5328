"""What a client in another language is written from: OpenRPC for stdio and WebSocket, OpenAPI for HTTP.

Both are made from the table of methods and from the types of their parameters and results, so that they cannot say
anything else than what is served.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

import msgspec

import callmark
from callmark.events import MALFORMED_CODES, NOTICE_CODES, REPAIR_CODES
from callmark.serving import connection
from callmark.serving.functions import Reading
from callmark.serving.methods import METHODS, Nothing, State, method
from callmark.serving.problems import HTTP_ONLY, KINDS, Problem
from callmark.serving.sessions import ASKED
from callmark.tools.results import ERROR_KINDS

Document = dict[str, Any]

_LOADED: Final = connection  # with the modules above, all that put methods into the table

_CODES: Final = {
    "Malformed": ("code", MALFORMED_CODES),
    "Notice": ("code", NOTICE_CODES),
    "Repair": ("code", REPAIR_CODES),
    "Failure": ("kind", ERROR_KINDS),
    "Problem": ("code", {code: f"{kind.meaning} ({kind.status})" for code, kind in KINDS.items()}),
}
_FIELDS: Final = re.compile(r"^(\w+(?:, \w+)*) {2,}(.+(?:\n +.+)*)", re.MULTILINE)
"""The rows of a docstring that say what fields are, once it is not indented: from Python 3.13 on none is."""
_STREAMING: Final = "text/event-stream", "application/x-ndjson"


class Failed(msgspec.Struct, frozen=True):
    """The body of every answer that is an error."""

    error: Problem


class Health(msgspec.Struct, frozen=True):
    """The server is there."""

    status: str
    callmark: str


def openrpc() -> Document:
    """Return the OpenRPC 1.3 document of the methods, and of what a server asks (`x-client-methods`)."""
    methods = list(METHODS.values())
    asked = [kind for asking in ASKED.values() for kind in (asking.params, asking.result) if kind is not None]
    refs, components = _schemas([*(each.params for each in methods), *(each.result for each in methods), *asked])
    described = []
    for each in methods:
        described.append(
            {
                "name": each.name,
                "summary": each.description.partition(". ")[0].rstrip("."),
                "description": each.description,
                "paramStructure": "by-name",
                "params": _params(each.params, components),
                "result": {"name": "result", "schema": refs[each.result]},
                "errors": _errors(),
            }
        )
    return {
        "openrpc": "1.3.2",
        "info": {"title": "callmark", "version": callmark.__version__, "description": _RPC},
        "methods": described,
        "x-client-methods": [
            {
                "name": name,
                "description": components[asking.params.__name__]["description"],
                "notification": asking.result is None,
                "paramStructure": "by-name",
                "params": _params(asking.params, components),
                **({} if asking.result is None else {"result": {"name": "result", "schema": refs[asking.result]}}),
            }
            for name, asking in ASKED.items()
        ],
        "components": {"schemas": components},
    }


def openapi() -> Document:
    """Return the OpenAPI 3.1 document of what `callmark serve` answers over HTTP."""
    methods = [each for each in METHODS.values() if each.anywhere]
    kinds = [*(each.params for each in methods), *(each.result for each in methods), Failed, Health, callmark.Event]
    refs, components = _schemas([*kinds, Reading])
    failed = {"description": "What went wrong.", "content": {"application/json": {"schema": refs[Failed]}}}
    paths: Document = {}
    for each in methods:
        operation: Document = {
            "operationId": each.name,
            "summary": each.description.partition(". ")[0].rstrip("."),
            "description": each.description,
            "responses": {
                "200": {"description": "The result.", "content": {"application/json": {"schema": refs[each.result]}}},
                "default": failed,
            },
        }
        if each.params is not Nothing:
            body = {"required": True, "content": {"application/json": {"schema": refs[each.params]}}}
            paths[f"/{each.name}"] = {"post": {**operation, "requestBody": body}}
        else:
            paths[f"/{each.name}"] = {"get": operation}
    event = refs[callmark.Event]
    paths["/parse/stream"] = {
        "post": {
            "operationId": "parseStream",
            "summary": "Read a text while it comes",
            "description": _PARSE_STREAM,
            "parameters": [
                {
                    "name": "options",
                    "in": "query",
                    "description": "The options of reading, where the body is plain text.",
                    "content": {"application/json": {"schema": refs[Reading]}},
                }
            ],
            "requestBody": {
                "required": True,
                "content": {
                    "text/plain": {"schema": {"type": "string"}},
                    "application/x-ndjson": {"schema": {"anyOf": [refs[Reading], {"type": "string"}]}},
                },
            },
            "responses": {
                "200": {
                    "description": "The events, each as soon as it is certain.",
                    "content": {media: {"schema": event} for media in _STREAMING},
                },
                "default": failed,
            },
        }
    }
    health = {"description": "It is.", "content": {"application/json": {"schema": refs[Health]}}}
    metrics = {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    document = {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}}
    for path, name, summary, answer in (
        ("/health", "health", "Whether the server is there", health),
        ("/metrics", "metrics", "Counts for Prometheus", metrics),
        ("/openapi.json", "openapi", "This document", document),
        ("/openrpc.json", "openrpc", "The document of the WebSocket `/ws`", document),
    ):
        paths[path] = {"get": {"operationId": name, "summary": summary, "responses": {"200": answer}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "callmark", "version": callmark.__version__, "description": _HTTP},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


_RPC: Final = """\
JSON-RPC 2.0 in UTF-8, one message a line over standard input and output, or one a message over the WebSocket `/ws`.
Parameters are given by name; batches are taken. A request is answered before the next one is read, but for
`session/run`, which is answered when its turn is over. Spans are half-open and count code points of the text, or UTF-16
units where `positions` says so. `x-client-methods` are what the server asks the client, or tells it, while a session
runs: messages with a `method`, whose ids are strings of the server's own and are answered as any request is. An error
has a `data.code`, one of those that are listed with each method."""

_HTTP: Final = """\
callmark's functions. Spans are half-open and count code points of the text, or UTF-16 units where `positions` says
so. Streams and sessions are there over the WebSocket `/ws`, which speaks JSON-RPC 2.0 as `/openrpc.json` describes.
Where a token is wanted, it goes into `Authorization: Bearer TOKEN`; a page, whose WebSocket can send no header, offers
the protocols `callmark` and `bearer.TOKEN`."""

_PARSE_STREAM: Final = """\
The body is a text in UTF-8 that may come in pieces, with `options` in the query; or JSON Lines, the first of them the
options and each further one a string, the next chunk. The answer is one event a line, or Server-Sent Events where the
client accepts them, which end with an event `end`. What goes wrong when the answer has begun comes as a line
`{"error": ...}`, or as an event `error`. Read the answer while you write the text."""


def _errors() -> list[Document]:
    return [
        {"code": kind.number, "message": kind.meaning, "data": {"code": code}}
        for code, kind in KINDS.items()
        if kind.number not in HTTP_ONLY
    ]


def _params(kind: type[msgspec.Struct], components: dict[str, Document]) -> list[Document]:
    """Return the parameters of a method, one by one, as OpenRPC has them."""
    schema = components[kind.__name__]
    required = schema.get("required", ())
    return [
        {"name": name, "required": name in required, "schema": described}
        for name, described in schema["properties"].items()
    ]


def _schemas(kinds: list[Any]) -> tuple[dict[Any, Document], dict[str, Document]]:
    """Return a reference to each type's schema, and the schemas, with nothing in them that only Python knows."""
    unique = list(dict.fromkeys(kinds))
    refs, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    for name, schema in components.items():
        words = inspect.cleandoc(schema["description"]).partition(">>>")[0]
        for names, said in _FIELDS.findall(words):
            for field in names.split(", "):
                schema["properties"][field]["description"] = _plain(said)
        schema["description"] = _plain(_FIELDS.sub("", words))
        key, codes = _CODES.get(name, ("", {}))
        if codes:
            meanings = "; ".join(f"{code}: {meaning}" for code, meaning in codes.items())
            schema["properties"][key] |= {"enum": list(codes), "description": meanings}
    return dict(zip(unique, refs, strict=True)), components


def _plain(words: str) -> str:
    words = re.sub(r"\s+", " ", words).strip()
    words = re.sub(r"`?[A-Z]+_(?:CODES|KINDS)`?", "its list", words)
    return re.sub(r"\bNone\b", "null", words)


@method("rpc.discover", Nothing, dict[str, Any])
def discover(state: State, params: Nothing) -> Document:
    """Return this document: OpenRPC's service discovery."""
    return openrpc()
