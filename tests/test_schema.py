"""The documents that clients are written from: what their standards say, and what is served."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError
from openapi_spec_validator import validate
from starlette.routing import Route

from callmark import Limits
from callmark.events import MALFORMED_CODES, NOTICE_CODES, REPAIR_CODES
from callmark.serving.http import app
from callmark.serving.methods import METHODS, Nothing
from callmark.serving.problems import KINDS
from callmark.serving.schema import openapi, openrpc
from callmark.serving.sessions import ASKED
from callmark.tools.results import ERROR_KINDS
from test_cases import CASES
from test_cli import run
from test_rpc import LOOK, PAY, TOOLS, WAIT_SECONDS, Client

OPENRPC = openrpc()
OVER_HTTP = (
    *("unauthorized", "forbidden-origin", "forbidden-host", "wrong-method", "wrong-media-type", "too-slow"),
    "stopping",
)


def checked(value: Any, schema: Any, document: Any = OPENRPC) -> None:
    """Raise where a value is not what a schema of a document says."""
    Draft202012Validator({**schema, "components": document["components"]}).validate(value)


def row(name: str) -> Any:
    every = [*OPENRPC["methods"], *OPENRPC["x-client-methods"]]
    (found,) = (each for each in every if each["name"] == name)
    return found


def test_openapi_is_valid_and_has_every_path():
    document = json.loads(json.dumps(openapi()))
    validate(document)
    paths = {(path, verb.upper()) for path, item in document["paths"].items() for verb in item}
    routes = [route for route in app().routes if isinstance(route, Route)]
    assert paths == {(route.path, verb) for route in routes for verb in (route.methods or ()) if verb != "HEAD"}
    ids = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(ids) == len(set(ids))


def test_openrpc_has_every_method_and_resolves():
    assert OPENRPC["openrpc"].startswith("1.")
    assert [each["name"] for each in OPENRPC["methods"]] == list(METHODS)
    assert [each["name"] for each in OPENRPC["x-client-methods"]] == list(ASKED)
    for each in OPENRPC["methods"]:
        assert each["paramStructure"] == "by-name"
        assert each["summary"]
        assert [param["name"] for param in each["params"]] == list(METHODS[each["name"]].params.__struct_fields__)
        told = {error["data"]["code"]: error["code"] for error in each["errors"]}
        assert told == {code: kind.number for code, kind in KINDS.items() if code not in OVER_HTTP}
    for schema in OPENRPC["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
        assert schema.get("description", "x")
    text = json.dumps(OPENRPC)
    for reference in {part.partition('"')[0] for part in text.split('"$ref": "')[1:]}:
        place: Any = OPENRPC
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


@pytest.mark.parametrize("key", list(CASES)[::7])
def test_events_are_what_the_schema_says(key):
    client = Client()
    result = client.call("parse", text=CASES[key]["input"], **CASES[key]["options"])
    checked(result, row("parse")["result"]["schema"])
    document = openapi()
    answer = document["paths"]["/parse"]["post"]["responses"]["200"]
    checked(result, answer["content"]["application/json"]["schema"], document)


def test_codes_are_listed():
    """Who writes a client from the documents alone sees no constant of Python's."""
    for document in (OPENRPC, openapi()):
        schemas = document["components"]["schemas"]
        assert schemas["Malformed"]["properties"]["code"]["enum"] == list(MALFORMED_CODES)
        assert schemas["Notice"]["properties"]["code"]["enum"] == list(NOTICE_CODES)
        assert schemas["Repair"]["properties"]["code"]["enum"] == list(REPAIR_CODES)
        words = " ".join(schema["description"] for schema in schemas.values())
        assert not re.search(r"[A-Z]+_[A-Z]+|>>>|\bNone\b", words)
    assert OPENRPC["components"]["schemas"]["Failure"]["properties"]["kind"]["enum"] == list(ERROR_KINDS)
    problem = openapi()["components"]["schemas"]["Problem"]["properties"]["code"]
    assert problem["enum"] == list(KINDS)
    assert "no stream of this name is open (404)" in problem["description"]


def test_what_a_docstring_says_of_a_field_is_said_of_the_property():
    for document in (OPENRPC, openapi()):
        limits = document["components"]["schemas"]["Limits"]
        assert limits["properties"]["calls"]["description"].startswith("64 per stream")
        assert limits["properties"]["arguments"]["description"].endswith("or else the parenthesis or tag behind them")
        assert limits["description"] == "Bounds on what a call may be; each can be set."
    result = OPENRPC["components"]["schemas"]["Result"]
    assert result["description"].startswith("The result of one call, in the order of the calls. The ")
    assert result["properties"]["id"]["description"] == result["properties"]["name"]["description"]


def test_docstrings_say_the_same_without_their_indent_as_from_python_3_13_on(monkeypatch):
    documents = openrpc(), openapi()
    monkeypatch.setattr(Limits, "__doc__", inspect.cleandoc(Limits.__doc__))
    assert (openrpc(), openapi()) == documents


def test_no_layout_of_a_docstring_is_left():
    described = [*OPENRPC["methods"], *OPENRPC["x-client-methods"], *OPENRPC["components"]["schemas"].values()]
    assert [each["description"] for each in described if re.search(r"\s\s|\n", each["description"])] == []


def words(schema):
    """Yield the keys of a schema, those of what it is one of included."""
    for key, part in schema.items():
        yield key
        if key == "anyOf":
            for each in part:
                yield from words(each)


def test_every_parameter_is_described_where_it_stands():
    """A client is written from the methods; who writes it has no docstring of ours."""
    given = [*OPENRPC["methods"], *OPENRPC["x-client-methods"]]
    found = {f"{each['name']}: {part['name']}": part["schema"] for each in given for part in each["params"]}
    for name in ("Contexts", "Limits", "ClientTool", "SessionSettings", "Guard", "CallToWrite", "Invoked"):
        found |= {f"{name}.{key}": part for key, part in OPENRPC["components"]["schemas"][name]["properties"].items()}
    assert len(found) > 100
    assert [name for name, schema in found.items() if not {"description", "$ref"} & set(words(schema))] == []


def test_a_wrong_answer_would_be_seen():
    with pytest.raises(Exception, match="is not valid"):
        checked({"events": [{"type": "call"}]}, row("parse")["result"]["schema"])


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("parse", {"text": "", "contexts": {"fences": "allow"}}),
        ("parse", {"text": "", "contexts": {"code": "sole"}}),
        ("convert", {"text": "", "to": "call", "contexts": {"": "text"}}),
        ("history", {"messages": [{}]}),
        ("prompt", {"tools": ["f"], "style": "loud"}),
        ("session/open", {"settings": {"reading": {"contexts": {"quote": "sole"}}}}),
    ],
)
def test_what_is_refused_is_refused_by_the_schema_too(name, params):
    assert Client().refused(name, **params) == "invalid-params"
    ((value, schema),) = (
        (params[param["name"]], param["schema"])
        for param in row(name)["params"]
        if param["name"] in params and param["name"] not in ("text", "to", "tools")
    )
    with pytest.raises(ValidationError):
        checked(value, schema)


WORDS = st.sampled_from(["f", "call", "hermes", "", "[CALL: f(a=1)] 😀", '[CALL: f({"a":', "\ud83d", "user"])
TOOLS_OF_ALL_SHAPES = st.sampled_from([["f"], {"f": {}}, [{"type": "function", "function": {"name": "f"}}], 5, []])
FIELDS = {
    "role": st.sampled_from(["user", "assistant", "tool", "system"]),
    "content": st.sampled_from(["x", None, 5, [{"type": "text", "text": "x"}], [5], {"a": 1}]),
    "tool_calls": st.sampled_from([None, 5, [5], [{"function": {"name": "f", "arguments": "{}"}}], {"a": 1}]),
    "tool_call_id": st.sampled_from([None, 5, "c"]),
}


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Return values that a schema of the document allows, as a client finds them that has nothing else."""
    if "$ref" in schema:
        return values(OPENRPC["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return st.one_of([values(each) for each in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    match schema.get("type"):
        case "object" if "properties" in schema:
            members = {key: values(each) for key, each in schema["properties"].items()}
            needed = {key: members.pop(key) for key in schema.get("required", ())}
            return st.fixed_dictionaries(needed, optional=members)
        case "object":
            needed = {key: FIELDS[key] for key in schema.get("required", ())}
            return st.fixed_dictionaries(needed, optional={key: FIELDS[key] for key in FIELDS if key not in needed})
        case "array" if "prefixItems" in schema:
            return st.tuples(*map(values, schema["prefixItems"])).map(list)
        case "array":
            return st.lists(values(schema["items"]), max_size=2)
        case "string":
            return WORDS.filter(lambda word: len(word) >= schema.get("minLength", 0))
        case "integer" | "number":
            return st.sampled_from([low, low + 1, 1_000_000])
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case None:
            return TOOLS_OF_ALL_SHAPES
    raise AssertionError(schema)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.later])
@settings(max_examples=20)
@given(data=st.data())
def test_whatever_the_schema_allows_is_answered_as_the_schema_says(name, data):
    method = row(name)
    needed = {param["name"]: values(param["schema"]) for param in method["params"] if param["required"]}
    others = {param["name"]: values(param["schema"]) for param in method["params"] if not param["required"]}
    client = Client()
    for opening in ("stream/open", "session/open"):
        client.call(opening, **{opening.partition("/")[0]: "f"})
    client.begin(name, **data.draw(st.fixed_dictionaries(needed, optional=others)))
    answer = client.inbox.get(timeout=WAIT_SECONDS)
    if "result" in answer:
        checked(answer["result"], method["result"]["schema"])
    else:
        codes = {error["data"]["code"] for error in method["errors"]} - {"internal-error"}
        assert answer["error"]["data"]["code"] in codes, answer
    client.connection.close()


def test_answers_are_what_the_schema_says():
    client = Client()
    problem = {"type": "notice", "span": {"start": 0, "end": 1}, "code": "unknown-tool", "message": "no tool 'f'"}
    for name, params in {
        "initialize": {},
        "detect": {"text": "[CALL: f()]"},
        "dialects": {},
        "feedback": {"problem": problem},
        "convert": {"text": "[CALL: f()]", "to": "hermes"},
        "prompt": {"tools": TOOLS, "messages": [{"role": "user", "content": "Hi"}]},
        "render": {"calls": [{"name": "f"}]},
        "result": {"name": "f", "content": None},
        "history": {"messages": []},
        "restore": {"messages": []},
        "neutralize": {"text": "[CALL: f()]"},
        "grammar": {"tools": TOOLS},
        "stream/open": {"stream": "s"},
        "stream/feed": {"stream": "s", "text": "x"},
        "stream/close": {"stream": "s"},
        "rpc.discover": {},
        "session/open": {"session": "s", "tools": [LOOK]},
        "session/state": {"session": "s"},
        "session/register": {"session": "s", "tools": [PAY]},
        "session/unregister": {"session": "s", "tools": []},
        "session/cancel": {"session": "s"},
        "session/close": {"session": "s"},
    }.items():
        known = {param["name"]: param for param in row(name)["params"]}
        assert {key for key, param in known.items() if param["required"]} <= params.keys() <= known.keys()
        for key, value in params.items():
            checked(value, known[key]["schema"])
        checked(client.call(name, **params), row(name)["result"]["schema"])


def test_what_a_client_is_asked_is_what_the_schema_says():
    client = Client()
    client.call("session/open", session="s", tools=[{**LOOK, "approval": True, "timeout_seconds": 0.2}])
    turn = client.begin("session/run", session="s", text="Look.")
    replies: dict[str, Any] = {"tool/approve": True, "tool/invoke": None}
    words = iter(["[CALL: look(at=x)] `[CALL: g()]`", "[CALL: look(at=y)] [CALL: nothing(]", "So it is."])
    seen = set()
    requests, keys = set(), []
    while True:
        message = client.inbox.get(timeout=30)
        if message.get("id") == turn:
            break
        described = row(message["method"])
        assert described["notification"] is ("id" not in message)
        assert message["params"].keys() == {param["name"] for param in described["params"]}
        for param in described["params"]:
            checked(message["params"][param["name"]], param["schema"])
        seen.add(message["method"])
        if message["method"] == "tool/invoke":
            requests.add(message["params"]["context"]["request_id"])
            keys.append(message["params"]["context"]["idempotency_key"])
        if message["method"] == "model/generate":
            client.answer(message, {"text": next(words)})
        elif message["method"] == "tool/invoke" and "tool/invoke" in replies:
            client.answer(message, replies.pop("tool/invoke"))  # the second one is given up
        elif message["method"] == "tool/approve":
            client.answer(message, True)
    checked(message["result"], row("session/run")["result"]["schema"])
    assert seen == ASKED.keys() - {"model/cancel"}
    assert (len(requests), len(keys), len(set(keys))) == (1, 2, 2)  # one turn, two calls
    client.connection.close()


def test_commands_print_the_documents():
    assert json.loads(run("stdio", "--schema").stdout) == json.loads(json.dumps(OPENRPC))
    assert json.loads(run("serve", "--schema").stdout) == json.loads(json.dumps(openapi()))
    assert METHODS["dialects"].params is Nothing
