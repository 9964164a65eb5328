"""JSON-RPC without any pipe: what a connection answers to whatever comes, its streams, and its sessions."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callmark
from callmark.events import Call, Markup, Notice, Span, Text
from callmark.running.halves import Halves
from callmark.running.signals import Cancel
from callmark.serving import methods
from callmark.serving.bounds import Bounds
from callmark.serving.hosting import Host
from callmark.serving.problems import KINDS
from callmark.serving.rpc import Connection
from callmark.serving.texts import Tiles, Units

WAIT_SECONDS = 30


class Client:
    """A client in this process: it sends messages and reads what comes back."""

    def __init__(self, **options: Any) -> None:
        self.inbox: queue.Queue[Any] = queue.Queue()
        self.logged: list[str] = []
        self.events: list[Any] = []
        self.connection = Connection(
            lambda message: self.inbox.put(json.loads(message)), log=self.logged.append, **options
        )
        self._number = 0

    def send(self, message: Any) -> None:
        self.connection.receive(message if isinstance(message, bytes) else json.dumps(message).encode())

    def raw(self, message: Any) -> Any:
        """Return the answer to a message that is answered at once; None where there is none."""
        self.send(message)
        return None if self.inbox.empty() else self.inbox.get()

    def begin(self, method: str, **params: Any) -> int:
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def call(self, method: str, **params: Any) -> Any:
        number = self.begin(method, **params)
        answer = self.inbox.get(timeout=WAIT_SECONDS)
        assert answer["id"] == number
        return answer["result"]

    def refused(self, method: str, **params: Any) -> str:
        """Return the code of the error."""
        self.begin(method, **params)
        error = self.inbox.get(timeout=WAIT_SECONDS)["error"]
        assert error["code"] == KINDS[error["data"]["code"]].number
        return error["data"]["code"]

    def next(self, method: str | None = None) -> Any:
        """Return the next message; of events, only where they are asked for."""
        while True:
            message = self.inbox.get(timeout=WAIT_SECONDS)
            if isinstance(message, list):
                return message
            if message.get("method") == "session/event":
                self.events.append(message["params"]["event"])
                continue
            assert method is None or message.get("method") == method, message
            return message

    def answer(self, request: Any, result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def fail(self, request: Any, message: str, data: Any = None) -> None:
        error = {"code": -32000, "message": message, "data": data}
        self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})

    def says(self, text: str) -> Any:
        """Let the model say a text; return what it was asked."""
        request = self.next("model/generate")
        self.answer(request, {"text": text})
        return request


@pytest.fixture
def client():
    made = Client()
    yield made
    made.connection.close()


def test_a_cancellation_and_an_answer_that_come_at_once_are_one_answer():
    def at_once(id, method, params, answered):  # noqa: A002
        answered(7, None)

    asked = SimpleNamespace(new_id=str, ask=at_once, forget=lambda id: False)  # noqa: A006
    cancel = Cancel()
    cancel.set()
    host = Host(SimpleNamespace(connection=asked))
    assert asyncio.run(host.answer("tool/invoke", {}, "tool/cancelled", cancel)) == (7, None)


# Messages.

GARBAGE = {
    b"": "parse-error",
    b"{": "parse-error",
    b"[": "parse-error",
    b"\xff": "parse-error",
    b"NaN": "parse-error",
    b"{}{}": "parse-error",
    b"[" * 20_000: "parse-error",
    b'{"a":' * 20_000: "parse-error",
    b'{"jsonrpc":"2.0","id":1,"method":"detect","params":{"text":"\\ud83d",}}': "parse-error",
    b'{"jsonrpc":"2.0","id":1,"method":"detect","params":{"text":"\\ud83d","a":NaN}}': "parse-error",
    b'{"jsonrpc":"2.0","id":1,"method":"detect","params":{"text":"\\ud83d","a":1e999}}': "parse-error",
    b"null": "invalid-request",
    b"7": "invalid-request",
    b"[]": "invalid-request",
    b"{}": "invalid-request",
    b'"\\ud83d"': "invalid-request",
    b'{"id":1,"method":"detect"}': "invalid-request",
    b'{"jsonrpc":2.0,"id":1,"method":"detect"}': "invalid-request",
    b'{"jsonrpc":"1.0","id":1,"method":"detect"}': "invalid-request",
    b'{"jsonrpc":"2.0","id":1}': "invalid-request",
    b'{"jsonrpc":"2.0","id":1,"method":7}': "invalid-request",
    b'{"jsonrpc":"2.0","id":1,"method":null}': "invalid-request",
    b'{"jsonrpc":"2.0","id":{},"method":"detect"}': "invalid-request",
    b'{"jsonrpc":"2.0","id":true,"method":"detect"}': "invalid-request",
    b'{"jsonrpc":"2.0","id":1,"method":"nothing"}': "unknown-method",
    b'{"jsonrpc":"2.0","id":1,"method":"\\ud83d"}': "unknown-method",
    b'{"jsonrpc":"2.0","id":1,"method":"detect"}': "invalid-params",
    b'{"jsonrpc":"2.0","id":1,"method":"detect","params":null}': "invalid-params",
    b'{"jsonrpc":"2.0","id":1,"method":"detect","params":["x"]}': "invalid-params",
    b'{"jsonrpc":"2.0","id":1,"method":"detect","params":{"text":7}}': "invalid-params",
    b'{"jsonrpc":"2.0","id":1,"method":"detect","params":{"text":7,"b":"\\ud83d"}}': "invalid-params",
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"positions":"\\ud83d"}}': "invalid-params",
    b'{"jsonrpc":"2.0","id":1,"method":"render","params":{"calls":"\\ud83d"}}': "invalid-params",
    b'{"jsonrpc":"2.0","id":1,"method":"detect","params":{"text":"x","more":1}}': "invalid-params",
    b'{"jsonrpc":"2.0","id":1,"method":"parse","params":{"text":"\\ud83d","limits":{"nesting":1.5}}}': "invalid-params",
}


@pytest.mark.parametrize(("message", "code"), GARBAGE.items(), ids=[repr(message)[:60] for message in GARBAGE])
def test_garbage_is_answered_by_an_error(client, message, code):
    answer = client.raw(message)
    assert answer["jsonrpc"] == "2.0"
    assert answer["error"]["data"] == {"code": code}
    assert answer["error"]["code"] == KINDS[code].number
    known = code in ("unknown-method", "invalid-params") or (b'"id":1' in message and code != "parse-error")
    assert answer["id"] == (1 if known else None)
    assert client.call("detect", text="[CALL: f()]") == {"dialects": ["call"]}


@given(st.binary(max_size=60) | st.recursive(st.none() | st.booleans() | st.text(), st.lists).map(json.dumps))
def test_no_message_raises(message):
    client = Client()
    client.send(message.encode() if isinstance(message, str) else message)
    client.connection.close()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["call", "f", "user"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "role", "content", "parameters", "type", "tool_calls"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("name", [name for name in methods.METHODS if name != "session/run"])
@given(data=st.data())
def test_no_params_are_an_internal_error(name, data):
    """What is of the type, but is nonsense, is the client's mistake as well."""
    fields = methods.METHODS[name].params.__struct_fields__
    good: dict[str, Any] = {
        "text": "[CALL: f(a=1)]",
        "stream": "s",
        "session": "s",
        "dialect": "call",
        "to": "hermes",
        "name": "f",
        "tools": [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}],
        "messages": [{"role": "user", "content": "x"}],
        "calls": [{"name": "f", "arguments": {"a": 1}}],
        "problem": {"type": "notice", "span": {"start": 0, "end": 1}, "code": "unknown-tool", "message": "x"},
    }
    params = {}
    for field in fields:
        kind = data.draw(st.sampled_from(["left out", "good", "any"]), label=field)
        if kind == "any":
            params[field] = data.draw(VALUES, label=field)
        elif kind == "good" and field in good:
            params[field] = good[field]
    client = Client()
    answer = client.raw(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params}).replace("NaN", "1").encode()
    )
    client.connection.close()
    assert answer.get("error", {}).get("data", {}).get("code") != "internal-error", client.logged


@pytest.mark.parametrize("given_id", ["a", 7, 0, -1, 1.5, None, 10**30, "\ud83d"], ids=repr)
def test_ids_come_back_as_they_were(client, given_id):
    answer = client.raw({"jsonrpc": "2.0", "id": given_id, "method": "detect", "params": {"text": ""}})
    assert answer == {"jsonrpc": "2.0", "id": given_id, "result": {"dialects": []}}


@pytest.mark.parametrize("params", [b"null", b"[]", b"{}"])
def test_no_parameters_are_said_in_many_ways(client, params):
    answer = client.raw(b'{"jsonrpc":"2.0","id":1,"method":"dialects","params":%b}' % params)
    assert len(answer["result"]["dialects"]) > 10


def test_notifications_are_not_answered(client):
    assert client.raw({"jsonrpc": "2.0", "method": "detect", "params": {"text": ""}}) is None
    assert client.logged == []
    assert client.raw({"jsonrpc": "2.0", "method": "detect"}) is None
    assert client.raw({"jsonrpc": "2.0", "method": "nothing"}) is None
    assert [line.split(":")[0] for line in client.logged] == [
        "a notification of detect failed",
        "a notification of an unknown method failed",
    ]


def test_batches_are_answered_in_one(client):
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "stream/open", "params": {"stream": "s"}},
        {"jsonrpc": "2.0", "method": "stream/feed", "params": {"stream": "s", "text": "[CALL: "}},
        7,
        {"jsonrpc": "2.0", "id": 2, "method": "stream/feed", "params": {"stream": "s", "text": "f()]"}},
        {"jsonrpc": "2.0", "method": "nothing"},
        {"jsonrpc": "2.0", "error": "whose?"},
        {"jsonrpc": "2.0", "id": "nobody asked", "result": 1},
    ]
    answers = client.raw(batch)
    assert [answer["id"] for answer in answers] == [1, None, 2]
    assert [event["type"] for event in answers[2]["result"]["events"]] == ["call-start", "arguments-delta", "call"]
    assert client.raw([batch[-2]]) is None
    assert client.raw([batch[-1]]) is None
    halves = [{"jsonrpc": "2.0", "id": 1, "method": "detect", "params": {"text": "\ud83d"}}]
    assert client.raw(halves)[0]["result"] == {"dialects": []}


def test_what_is_too_large_is_told():
    client = Client(bounds=Bounds(message_bytes=200, batch=2, streams=2, stream_characters=10, sessions=1))
    assert client.raw(b" " * 201)["error"]["data"] == {"code": "too-large"}
    assert client.raw(b"[1,1,1]")["error"]["data"] == {"code": "too-large"}
    assert len(client.raw(b"[1,1]")) == 2
    client.call("stream/open", stream="a")
    client.call("stream/open")
    assert client.refused("stream/open") == "too-many"
    client.call("stream/feed", stream="a", text="0123456789")
    assert client.refused("stream/feed", stream="a", text="0") == "too-large"
    client.call("stream/close", stream="a")
    client.call("stream/open", stream="b")
    client.call("stream/snapshot", stream="b", text="0123456789")
    assert client.refused("stream/snapshot", stream="b", text="0123456789a") == "too-large"
    client.call("session/open", session="x")
    assert client.refused("session/open") == "too-many"
    assert client.refused("session/run", session="x", text="0123456789a") == "too-large"
    with pytest.raises(callmark.UsageError, match="at least 1"):
        Bounds(streams=0)


def test_params_that_are_too_deep_are_the_clients(client, monkeypatch):
    def too_deep(text):
        raise RecursionError

    monkeypatch.setattr(callmark, "detect", too_deep)
    assert client.refused("detect", text="") == "invalid-params"


def test_a_mistake_of_our_own_is_told_as_one(client, monkeypatch):
    def broken(text):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(callmark, "detect", broken)
    answer = client.raw({"jsonrpc": "2.0", "id": 1, "method": "detect", "params": {"text": "x"}})
    assert answer["error"]["code"] == -32603
    assert "secret" not in json.dumps(answer)
    assert "secret" in client.logged[0]

    def interrupted(text):
        raise KeyboardInterrupt

    monkeypatch.setattr(callmark, "detect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.begin("detect", text="x")


# The functions.


def test_initialize_tells_versions_dialects_and_methods(client):
    told = client.call("initialize", clientInfo={"name": "me"})
    assert told["versions"] == {"callmark": callmark.__version__, "protocol": 1}
    assert [row["name"] for row in told["dialects"]] == [row.name for row in callmark.dialects()]
    assert told["methods"] == list(methods.METHODS)
    assert told["positions"] == "code-points"
    assert told["bounds"]["streams"] == 1000
    assert client.call("initialize", positions="utf-16")["positions"] == "utf-16"
    assert client.refused("initialize", positions="bytes") == "invalid-params"


@pytest.mark.parametrize(
    ("method", "params", "told"),
    [
        ("parse", {"text": "", "tolerance": "mild"}, "tolerance: expected lenient, salvage or strict, found 'mild'"),
        ("parse", {"text": "\ud83d", "tolerance": "x"}, "tolerance: expected lenient, salvage or strict, found 'x'"),
        ("parse", {"text": "", "contexts": {"code": "sole"}}, "contexts.code: expected allow or text, found 'sole'"),
        ("initialize", {"positions": "bytes"}, "positions: expected code-points or utf-16, found 'bytes'"),
        ("feedback", {"problem": {"type": "call"}}, "problem.type: expected malformed or notice, found 'call'"),
        (
            "session/open",
            {"tools": [{"name": "f"}, {"name": "g", "mode": "' - at `$.tools"}]},
            "tools[1].mode: expected read or write, found \"' - at `$.tools\"",
        ),
        ("parse", {"text": "", "tolerance": 7}, "Expected `str`, got `int` - at `$.tolerance`"),
    ],
)
def test_a_wrong_word_is_told_with_those_that_may_stand_there(client, method, params, told):
    assert client.raw({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})["error"]["message"] == told


TOOLS = [{"name": "look", "description": "Look.", "parameters": {"properties": {"at": {"type": "string"}}}}]


def test_each_function_gives_what_the_library_gives(client):
    text = 'Hm. [CALL: look(at=it)] [CALL: look({"at" 1})]'
    parsed = callmark.parse(text, tools=TOOLS)
    events = client.call("parse", text=text, tools=TOOLS)["events"]
    assert events == json.loads(json.dumps([event.to_dict() for event in parsed.events]))
    (problem,) = parsed.problems
    for language in ("en", "zh-Hans"):
        told = client.call("feedback", problem=problem.to_dict(), language=language, dialect="hermes")
        assert told["text"] == callmark.feedback(problem, "hermes", language)
    assert client.call("convert", text=text, to="hermes")["text"] == callmark.convert(text, "hermes")
    prompt = callmark.protocol_prompt(TOOLS, style="table")
    messages = [{"role": "user", "content": "Hi"}]
    made = client.call("prompt", tools=TOOLS, style="table")
    assert (made["text"], made["turns"], made["tokens"]) == (prompt.text, list(prompt.turns), prompt.tokens)
    assert "messages" not in made
    made = client.call("prompt", tools=TOOLS, style="table", messages=messages, where="user")
    assert made["messages"] == callmark.merge_into_messages(messages, prompt, "user")
    calls = [{"name": "look", "arguments": {"at": "it"}}, {"name": "look"}]
    assert client.call("render", calls=calls)["text"] == '[CALL: look({"at": "it"})]\n[CALL: look({})]'
    assert client.call("result", name="f", content={"a": 1}, id="c")["text"] == 'Result of f (c):\n{"a": 1}'
    native = callmark.restore_history([{"role": "assistant", "content": "[CALL: look({})]"}])
    history = client.call("history", messages=native)["messages"]
    assert history == callmark.render_history(native)
    assert client.call("restore", messages=history)["messages"] == native
    assert client.call("neutralize", text=text)["text"] == callmark.neutralize(text)
    assert client.call("neutralize", text='{"f": {}}', tools=["g"])["text"].endswith('{"f": {}}')
    grammar = callmark.export_grammar(TOOLS, target="gbnf", free_text=False)
    made = client.call("grammar", tools=TOOLS, target="gbnf", free_text=False)
    assert made == {"text": grammar.text, "unenforced": list(grammar.unenforced)}
    assert len(client.call("dialects")["dialects"]) == len(callmark.dialects())
    assert client.call("rpc.discover")["openrpc"].startswith("1.")


def test_misuse_is_the_clients(client):
    for method, params in (
        ("parse", {"text": "", "dialects": "klingon"}),
        ("parse", {"text": "", "limits": {"nesting": 0}}),
        ("parse", {"text": "", "tools": [7]}),
        ("parse", {"text": "", "contexts": {"code": "sole"}}),
        ("feedback", {"problem": {"type": "notice", "span": {"start": 0, "end": 1}, "code": "x", "message": ""}}),
        ("render", {"calls": [{"name": "no name"}]}),
        ("prompt", {"tools": [], "language": "../../secret"}),
    ):
        assert client.refused(method, **params) == "invalid-params"


# Streams.


def test_many_streams_are_read_at_once(client):
    names = [client.call("stream/open")["stream"] for _ in range(3)]
    assert client.refused("stream/open", stream=names[0]) == "invalid-params"
    read: dict[str, list[Any]] = {name: [] for name in names}
    text = "Well. [CALL: f(a=1)] So."
    for start in range(0, len(text), 3):
        for name in names:
            read[name] += client.call("stream/feed", stream=name, text=text[start : start + 3])["events"]
    for name in names:
        read[name] += client.call("stream/close", stream=name)["events"]
        assert [event["name"] for event in read[name] if event["type"] == "call"] == ["f"]
        assert "".join(event["text"] for event in read[name] if event["type"] == "text") == "Well.  So."
        assert client.refused("stream/feed", stream=name, text="") == "unknown-stream"


@pytest.mark.parametrize("kind", ["stream", "session"])
def test_a_name_that_nobody_gave_is_one_that_is_free(client, kind):
    for given_name in (f"{kind}-1", f"{kind}-2"):
        client.call(f"{kind}/open", **{kind: given_name})
    assert client.call(f"{kind}/open") == {kind: f"{kind}-3"}
    client.call(f"{kind}/close", **{kind: f"{kind}-3"})
    assert client.call(f"{kind}/open") == {kind: f"{kind}-4"}  # a name is not used again


def test_snapshots_and_chunks_do_not_mix(client):
    client.call("stream/open", stream="a", positions="utf-16")
    types = [event["type"] for event in client.call("stream/snapshot", stream="a", text="😀 [CALL: f(")["events"]]
    assert types == ["text", "call-start"]
    events = client.call("stream/snapshot", stream="a", text="😀 [CALL: f()]")["events"]
    assert events[-1]["span"] == {"start": 3, "end": 14}
    replaced = client.call("stream/snapshot", stream="a", text="No. 😀 [CALL: f()]\ud83d")["events"]
    assert replaced[0]["code"] == "snapshot-replaced"
    assert replaced[-1] == {"type": "markup", "span": {"start": 7, "end": 18}, "raw": "[CALL: f()]"}
    assert client.refused("stream/feed", stream="a", text="x") == "invalid-params"
    assert client.call("stream/close", stream="a")["events"][-1]["text"] == "\ud83d"
    client.call("stream/open", stream="b")
    client.call("stream/feed", stream="b", text="x")
    assert client.refused("stream/snapshot", stream="b", text="xy") == "invalid-params"
    client.call("stream/open", stream="c")
    client.call("stream/snapshot", stream="c", text="x")
    assert client.call("stream/close", stream="c")["events"] == []


def test_a_character_may_be_cut_in_halves(client):
    client.call("stream/open", stream="s", positions="utf-16")
    read = []
    for piece in ("a\ud83d", "", "\ude00[CALL: f(a=\ud83d", "\ude00)]\ud83d"):
        read += client.call("stream/feed", stream="s", text=piece)["events"]
    read += client.call("stream/close", stream="s")["events"]
    (call,) = (event for event in read if event["type"] == "call")
    assert (call["arguments"], call["span"]) == ({"a": "😀"}, {"start": 3, "end": 18})
    assert "".join(event["text"] for event in read if event["type"] == "text") == "a😀\ud83d"


def test_positions_count_what_was_asked_for(client):
    text = "😀😀 [CALL: f({'a': '😀'})] `[CALL: g()]`"
    for positions, factor in (("code-points", 1), ("utf-16", 2)):
        events = client.call("parse", text=text, positions=positions)["events"]
        units = text if factor == 1 else text.encode("utf-16-le")
        for event in events:
            if "span" in event and "raw" in event:
                start, end = event["span"]["start"] * factor, event["span"]["end"] * factor
                found = units[start:end]
                assert (found if factor == 1 else found.decode("utf-16-le")) == event["raw"]
    (call,) = (event for event in events if event["type"] == "call")
    repair = call["repairs"][-1]["span"]
    assert text.encode("utf-16-le")[2 * repair["start"] : 2 * repair["end"]].decode("utf-16-le")[0] == "'"
    client.call("initialize", positions="utf-16")
    assert client.call("parse", text=text)["events"] == events
    assert client.call("parse", text="[CALL: f()]")["events"][-1]["span"] == {"start": 0, "end": 11}


def test_halves_and_units():
    halves = Halves()
    assert [halves.whole("\ud83d"), halves.whole("x"), halves.rest()] == ["", "\ud83dx", ""]
    assert [halves.whole("\ud83d"), halves.whole("\ud83d"), halves.rest()] == ["", "\ud83d", "\ud83d"]
    units = Units()
    units.see("a")
    assert units.events([Text(Span(0, 1), "a")]) == [Text(Span(0, 1), "a")]


def test_a_remark_waits_for_its_text():
    tiles = Tiles()
    notice = Notice(Span(1, 3), "marker-in-code", "")
    assert tiles.events(notice) == []
    assert tiles.events(Text(Span(0, 2), "😀a")) == []
    told = tiles.events(Markup(Span(2, 3), "b"))
    assert [event.span for event in told] == [Span(2, 4), Span(0, 3), Span(3, 4)]
    assert tiles.events(notice) == [Notice(Span(2, 4), "marker-in-code", "")]
    assert tiles.events(Notice(Span(9, 10), "marker-in-code", "")) == []
    assert [event.span for event in tiles.rest()] == [Span(10, 11)]
    assert Call  # the other tiles are read as Markup is


# Sessions.

LOOK = {
    "name": "look",
    "description": "Look at something.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
    "mode": "read",
}
PAY = {"name": "pay", "owner": "bank", "parameters": {"properties": {"amount": {"type": "integer"}}}}


def test_a_session_asks_the_client_for_model_and_tools(client):
    assert client.call("session/open", tools=[LOOK, PAY], system="Be kind.", caller={"who": "Mia"}) == {
        "session": "session-1"
    }
    turn = client.begin("session/run", session="session-1", text="How is it?")
    request = client.next("model/generate")
    assert request["params"]["session"] == "session-1"
    assert "look(" in request["params"]["messages"][0]["content"]
    assert request["params"]["messages"][-1] == {"role": "user", "content": "How is it?"}
    for piece in ("Let me see. \ud83d", "\ude00 [CALL: lo", "ok(at=grass)]"):
        chunk = {"generation": request["id"], "text": piece}
        client.send({"jsonrpc": "2.0", "method": "model/chunk", "params": chunk})
    client.answer(request, None)
    invoked = client.next("tool/invoke")
    params = invoked["params"]
    assert (params["name"], params["tool"], params["arguments"]) == ("look", "look", {"at": "grass"})
    assert 0 < params["deadline_seconds"] <= 30
    assert params["context"]["caller"] == {"who": "Mia"}
    assert params["context"]["session"] == "session-1"
    assert params["context"]["idempotency_key"]
    client.answer(invoked, {"colour": "green"})
    request = client.says("It is green.")
    assert request["params"]["messages"][-1]["content"] == 'Result of look:\n{"colour": "green"}'
    assert client.next() == {"jsonrpc": "2.0", "id": turn, "result": {"outcome": "answer", "answer": "It is green."}}
    types = [event["type"] for event in client.events]
    assert [kind for kind in types if kind in ("call", "result", "step")] == ["step", "call", "result", *["step"] * 3]
    (result,) = (event for event in client.events if event["type"] == "result")
    assert result["data"] == {"colour": "green"}
    state = client.call("session/state", session="session-1")
    assert state["messages"][1]["content"] == "Let me see. 😀 [CALL: look(at=grass)]"
    assert state["stats"]["calls"] == 1
    assert client.call("session/close", session="session-1") == {}
    assert client.refused("session/state", session="session-1") == "unknown-session"


def test_consent_is_the_clients(client):
    client.call("session/open", session="s", tools=[PAY])
    turn = client.begin("session/run", session="s", text="Pay.")
    for consent, expected in ((True, "paid"), ("yes", "denied"), (None, "denied")):
        client.says(f"[CALL: pay(amount={len(client.events)})]")
        asked = client.next("tool/approve")
        assert asked["params"]["tool"] == "bank:pay"
        if consent is None:
            client.fail(asked, "no such method")
        else:
            client.answer(asked, consent)
        if consent is True:
            client.answer(client.next("tool/invoke"), "paid")
        told = client.next("model/generate")
        assert expected in told["params"]["messages"][-1]["content"]
        client.inbox.put(told)
    client.says("Done.")
    assert client.next()["id"] == turn


@pytest.mark.parametrize("error_text", [False, True])
def test_errors_of_tools_are_told_to_the_model_as_they_are_meant(client, error_text):
    client.call("session/open", session="s", tools=[LOOK], error_text=error_text)
    client.begin("session/run", session="s", text="Look.")
    client.says("[CALL: look(at=a)]")
    client.fail(client.next("tool/invoke"), "no such thing", {"code": "nothing-there", "hint": "look at b"})
    said = client.says("[CALL: look(at=b)]")["params"]["messages"][-1]["content"]
    assert "nothing-there" in said
    assert "look at b" in said
    client.fail(client.next("tool/invoke"), "secret stack trace")
    said = client.says("[CALL: look(at=c)]")["params"]["messages"][-1]["content"]
    assert ("secret" in said) is error_text
    assert "ClientToolError" in said
    client.send({"jsonrpc": "2.0", "id": client.next("tool/invoke")["id"], "error": 7})
    assert "ClientToolError" in client.says("Never mind.")["params"]["messages"][-1]["content"]
    assert client.next()["result"]["answer"] == "Never mind."


def test_a_hint_that_is_null_is_none(client):
    client.call("session/open", session="s", tools=[LOOK])
    client.begin("session/run", session="s", text="Look.")
    client.says("[CALL: look(at=a)]")
    client.fail(client.next("tool/invoke"), "no such thing", {"code": "nothing-there", "hint": None})
    said = client.says("Never mind.")["params"]["messages"][-1]["content"]
    assert "nothing-there" in said
    assert "None" not in said
    assert client.next()["result"]["answer"] == "Never mind."


def test_an_answer_may_say_that_there_was_no_error(client):
    """As libraries write it that know JSON-RPC 1.0, Go's own among them."""
    client.call("session/open", session="s", tools=[LOOK])
    client.begin("session/run", session="s", text="Look.")
    for method, result in (("model/generate", {"text": "[CALL: look(at=a)]"}), ("tool/invoke", "green")):
        client.send({"jsonrpc": "2.0", "id": client.next(method)["id"], "result": result, "error": None})
    assert "green" in client.says("So it is.")["params"]["messages"][-1]["content"]
    assert client.next()["result"]["answer"] == "So it is."


@pytest.mark.parametrize("empty", [{}, {"error": None}])
def test_an_answer_with_nothing_in_it_is_one_that_cannot_be_read(client, empty):
    """As JavaScript writes a result that is undefined; nobody would answer again, so nothing waits for that."""
    client.call("session/open", session="s", tools=[LOOK])
    client.begin("session/run", session="s", text="Look.")
    client.says("[CALL: look(at=a)]")
    invoked = client.next("tool/invoke")
    client.send({"jsonrpc": "2.0", "id": invoked["id"], **empty})
    request = client.next("model/generate")
    assert "ClientToolError" in request["params"]["messages"][-1]["content"]
    assert client.logged == [f"an answer to '{invoked['id']}' has no result: null stands for none"]
    client.send({"jsonrpc": "2.0", "id": request["id"], **empty})
    assert "expected a result or an error, found neither" in client.next()["error"]["message"]


def test_a_late_answer_is_ignored(client):
    client.call("session/open", session="s", tools=[{**LOOK, "timeout_seconds": 0.05}])
    client.begin("session/run", session="s", text="Look.")
    client.says("[CALL: look(at=a)]")
    invoked = client.next("tool/invoke")
    assert client.next("tool/cancel")["params"] == {"id": invoked["id"]}
    assert "did not answer within" in client.says("Too bad.")["params"]["messages"][-1]["content"]
    assert client.next()["result"]["answer"] == "Too bad."
    client.answer(invoked, "green")
    client.send({"jsonrpc": "2.0", "id": 7, "result": 1})
    client.send({"jsonrpc": "2.0", "result": 1})
    assert [line.partition(" is ignored")[0] for line in client.logged] == [
        f"an answer to b'\"{invoked['id']}\"'",
        "an answer to b'7'",
        "an answer to b'null'",
    ]


def test_one_turn_at_a_time_and_tools_change_between(client):
    client.call("session/open", session="s", events=False)
    assert client.refused("session/open", session="s") == "invalid-params"
    client.begin("session/run", session="s", text="Look.")
    request = client.next("model/generate")
    assert client.refused("session/run", session="s") == "busy"
    assert client.call("session/register", session="s", tools=[LOOK, PAY]) == {"tools": ["look", "bank:pay"]}
    assert client.refused("session/register", session="s", tools=[LOOK]) == "invalid-params"
    client.call("session/register", session="s", tools=[LOOK], allow_overwrite=True)
    assert client.call("session/unregister", session="s", tools=["bank:pay", "x"]) == {"tools": ["look"]}
    client.answer(request, {"text": "Yes."})
    assert client.next()["result"]["answer"] == "Yes."
    assert client.events == []
    client.begin("session/run", session="s", text="Look.")
    assert "look(" in client.says("Yes.")["params"]["messages"][0]["content"]
    many = [{**LOOK, "name": f"look{number}"} for number in range(1000)]
    client.next()
    assert client.refused("session/register", session="s", tools=many) == "too-many"


@pytest.mark.parametrize("wrong", [{"name": "two words"}, {"name": "see", "parameters": {"type": "array"}}, LOOK])
def test_of_tools_of_which_one_is_wrong_none_is_added(client, wrong):
    client.call("session/open", session="s", tools=[LOOK])
    tools = [PAY, wrong]
    assert client.refused("session/register", session="s", tools=tools) == "invalid-params"
    assert client.call("session/register", session="s", tools=[]) == {"tools": ["look"]}


def test_of_tools_of_which_one_is_wrong_none_is_replaced(client):
    client.call("session/open", session="s", tools=[LOOK])
    tools = [{**LOOK, "description": "Another one."}, PAY, {"name": "two words"}]
    assert client.refused("session/register", session="s", tools=tools, allow_overwrite=True) == "invalid-params"
    client.begin("session/run", session="s", text="Look.")
    asked = client.says("Yes.")["params"]["messages"][0]["content"]
    assert "Look at something." in asked
    assert "Another one." not in asked
    assert "pay" not in asked


def test_at_the_limit_a_tool_may_still_be_replaced(client):
    many = [{**LOOK, "name": f"look{number}"} for number in range(1000)]
    client.call("session/open", session="s", tools=many)
    told = client.call("session/register", session="s", tools=many[:2], allow_overwrite=True)
    assert len(told["tools"]) == 1000
    assert client.refused("session/register", session="s", tools=[LOOK], allow_overwrite=True) == "too-many"


def test_a_turn_can_be_cancelled_whoever_is_asked(client):
    client.call("session/open", session="s", tools=[LOOK, PAY])
    for words, method, cancelled in (
        (None, "model/generate", "model/cancel"),
        ("[CALL: look(at=a)]", "tool/invoke", "tool/cancel"),
        ("[CALL: pay(amount=1)]", "tool/approve", "tool/cancel"),
    ):
        turn = client.begin("session/run", session="s", text="Go.")
        if words is not None:
            client.says(words)
        asked = client.next(method)
        client.begin("session/cancel", session="s")
        seen = [client.next() for _ in range(3)]
        assert {"id": asked["id"]} in [message.get("params") for message in seen if message.get("method") == cancelled]
        assert {"outcome": "cancelled", "answer": ""} in [
            message["result"] for message in seen if message.get("id") == turn
        ]


def test_nothing_is_told_of_a_session_that_was_closed(client):
    """Its name is free: another one may have it by now, and would seem to be cancelled."""
    client.call("session/open", session="s", tools=[LOOK])
    turn = client.begin("session/run", session="s", text="Look.")
    client.says("[CALL: look(at=it)]")
    client.next("tool/invoke")
    client.events.clear()
    asked = [client.begin("session/close", session="s"), client.begin("session/open", session="s")]
    answers = [client.next() for _ in range(4)]
    told = {"jsonrpc": "2.0", "id": turn, "result": {"outcome": "cancelled", "answer": ""}}
    assert [answer for answer in answers if answer.get("id") not in asked and "method" not in answer] == [told]
    assert [answer["method"] for answer in answers if "method" in answer] == ["tool/cancel"]
    assert client.events == []


def test_what_goes_wrong_with_a_model_ends_the_turn():
    client = Client(bounds=Bounds(stream_characters=500))
    client.call("session/open", session="s", model_timeout_seconds=0.05)
    for answer in (
        lambda request: client.fail(request, "out of memory"),
        lambda request: client.answer(request, 7),
        lambda request: client.answer(request, {"text": 7}),
        lambda request: client.answer(request, {"text": "x" * 501}),
        lambda request: None,
    ):
        turn = client.begin("session/run", session="s", text="Go.")
        request = client.next("model/generate")
        answer(request)
        message = client.next()
        if message.get("method") == "model/cancel":
            message = client.next()
        assert message["id"] == turn
        assert message["error"]["data"] == {"code": "model-error"}
        assert client.refused("model/chunk", generation=request["id"], text="x") == "unknown-generation"
    client.connection.close()


def test_positions_of_a_session_are_the_connections(client):
    client.call("initialize", positions="utf-16")
    client.call("session/open", session="s", tools=[LOOK])
    client.begin("session/run", session="s", text="Look.")
    client.says("😀 `[CALL: look(at=x)]` [CALL: look(at=a)]")
    client.answer(client.next("tool/invoke"), None)
    client.says("😀 `[CALL: look(at=x)]`")
    assert client.next()["result"]["outcome"] == "answer"
    (call,) = (event for event in client.events if event["type"] == "call")
    assert call["span"] == {"start": 24, "end": 42}
    notices = [event["span"] for event in client.events if event["type"] == "notice"]
    assert notices == [{"start": 4, "end": 16}, {"start": 4, "end": 16}]


def test_settings_are_the_librarys(client):
    settings = {
        "dialect": "hermes",
        "language": "zh-Hans",
        "retries": 0,
        "only": ["look"],
        "prompt": {"style": "brief"},
        "reading": {"contexts": {"code": "allow"}, "tolerance": "strict"},
    }
    client.call("session/open", session="s", tools=[LOOK, PAY], settings=settings, guard={"calls": 1})
    client.begin("session/run", session="s", text="看")
    asked = client.says('`<tool_call>{"name": "look", "arguments": {"at": "x"}}</tool_call>`')
    prompt = asked["params"]["messages"][0]["content"]
    assert "<tool_call>" in prompt
    assert "pay" not in prompt
    client.answer(client.next("tool/invoke"), "绿色")
    client.says("[CALL: look({'at': 'x'})]")
    client.next()
    client.call("session/open", session="t", tools=[LOOK], settings={"tool_choice": "nothing"})
    client.begin("session/run", session="t", text="Hi")
    assert client.next()["error"]["data"] == {"code": "invalid-params"}
    for bad in ({"mode": "native"}, {"dialect": "klingon"}, {"reading": {"tools": []}}, {"retries": -1}):
        assert client.refused("session/open", settings=bad) == "invalid-params"
    assert client.refused("session/open", tools=[{"name": "a:b"}]) == "invalid-params"
    assert client.refused("session/open", tools=[{"name": "a", "parameters": {"type": 7}}]) == "invalid-params"


def test_a_turn_in_a_batch_is_answered_with_the_batch(client):
    client.call("session/open", session="s")
    run = {"jsonrpc": "2.0", "method": "session/run", "params": {"session": "s", "text": "Hi"}}
    client.send([{**run, "id": 1}, {"jsonrpc": "2.0", "id": 2, "method": "detect", "params": {"text": ""}}])
    client.says("Hello.")
    answers = client.next()
    assert sorted(answer["id"] for answer in answers) == [1, 2]
    client.send([run])
    request = client.next("model/generate")
    client.send([run, {**run, "id": 3}])
    (refused,) = client.next()
    assert (refused["id"], refused["error"]["data"]) == (3, {"code": "busy"})
    client.answer(request, {"text": "Hello again."})


def test_a_turn_that_nobody_asked_the_end_of_is_not_answered():
    seen: queue.Queue[Any] = queue.Queue()
    client = Client(observe=lambda *told: seen.put(told))
    client.call("session/open", session="s", events=False)
    client.send({"jsonrpc": "2.0", "method": "session/run", "params": {"session": "s", "text": "Hi"}})
    client.send({"jsonrpc": "2.0", "id": client.next("model/generate")["id"], "result": {"text": "Ho"}})
    while seen.get(timeout=WAIT_SECONDS) != ("session/run", ""):
        pass
    client.connection.close()
    assert client.inbox.empty()


def test_who_is_gone_takes_sessions_along():
    client = Client()
    client.call("session/open", session="s", tools=[LOOK])
    client.begin("session/run", session="s", text="Look.")
    client.next("model/generate")
    assert "callmark-sessions" in [thread.name for thread in threading.enumerate()]
    client.connection.close()
    assert "callmark-sessions" not in [thread.name for thread in threading.enumerate()]
    while not client.inbox.empty():
        assert "id" not in client.next()
    client.connection.tell("session/event", {})
    assert client.inbox.empty()
    Client().connection.close()
