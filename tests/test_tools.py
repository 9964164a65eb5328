"""Tools: what a function becomes, what a registry holds and refuses, and what others' shapes make of it."""

from __future__ import annotations

import asyncio
import datetime
import enum
import json
import re
import sys
import typing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NotRequired, Required, TypedDict, TypeVar, Unpack

import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import callmark
from callmark import Invocation, NotPermittedError, Registry, Tool, ToolError, ToolsError, UsageError, tool
from callmark.functions import read_docstring
from callmark.tools.checking import Checker
from callmark.tools.context import flat_content, is_reserved
from callmark.tools.registry import RegistryEvent
from callmark.tools.shapes import Aliases, gemini_schema, mcp_value, native, tools_from_mcp


def raised(function, *arguments: Any, **named: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        function(*arguments, **named)
    return caught.value


def nothing(arguments: dict[str, Any], context: Invocation) -> None:
    return None


def plain(name: str = "look", **fields: Any) -> Tool:
    return Tool(name=name, function=nothing, **fields)


# Signatures.


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float = 0.0


def test_a_signature_becomes_a_schema():
    @tool
    def draw(
        at: Point,
        colour: Colour,
        size: Annotated[int, msgspec.Meta(ge=1, description="in pixels")],
        style: Literal["dashed", "solid"] = "solid",
        label: Annotated[str, "what to write beside it"] = "",
        origin: Point = Point(0),  # noqa: B008
        marker: Any = object(),  # noqa: B008  # no JSON: no default in the schema
        *,
        context: Invocation,
        free=None,
    ) -> str:
        """Draw a point.

        On the canvas.

        Args:
            at: where
                exactly
            size: not taken, there is one
            free (object): anything

        Returns:
            nothing: much
        """
        return f"{at} {colour} {size} {context.request_id}"

    assert draw.name == "draw"
    assert draw.description == "Draw a point.\n\nOn the canvas."
    assert draw.parameters == {
        "type": "object",
        "properties": {
            "at": {"$ref": "#/$defs/Point", "description": "where exactly"},
            "colour": {"$ref": "#/$defs/Colour"},
            "size": {"type": "integer", "minimum": 1, "description": "in pixels"},
            "style": {"enum": ["dashed", "solid"], "default": "solid"},
            "label": {"type": "string", "description": "what to write beside it", "default": ""},
            "origin": {"$ref": "#/$defs/Point", "default": {"x": 0, "y": 0.0}},
            "marker": {},
            "free": {"description": "anything", "default": None},
        },
        "required": ["at", "colour", "size"],
        "additionalProperties": False,
        "$defs": {
            "Colour": {"title": "Colour", "enum": ["blue", "red"]},
            "Point": {
                "title": "Point",
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.0}},
                "required": ["x"],
            },
        },
    }
    registry = Registry([draw])
    arguments = {"at": {"x": 3.0}, "colour": "red", "size": 2}
    result = asyncio.run(registry.invoke("draw", arguments, Invocation(request_id="r1")))
    assert result == "Point(x=3, y=0.0) Colour.RED 2 r1"


class Mixed(enum.Enum):
    NOTHING = None
    HALF = 0.5
    ALL = "all"


class Level(enum.Enum):
    LOW = 1
    HIGH = "high"


Kind = TypeVar("Kind")
READ_ONLY: Any = getattr(typing, "ReadOnly", Required)  # it is of Python 3.13


class Pair(enum.Enum):
    BOTH = (1, 2)


class Box(TypedDict, total=False):
    b: list[int]


class Nothing(TypedDict):
    pass


def trips(**none: Unpack[Nothing]):
    return none


@dataclass
class Spot(Generic[Kind]):
    of: Kind


class Trip(TypedDict, Generic[Kind], total=False):
    trip: Kind
    to: Required[str]
    by: NotRequired[Annotated[Path, "a path"]]
    on: READ_ONLY[Required[str]]


class Parcel(pydantic.BaseModel):
    """What is sent."""

    weight: Annotated[int, pydantic.Field(gt=0)]
    parts: list[Parcel] = []
    sent: datetime.date | None = None


def test_what_takes_its_arguments_by_position_is_called_so():
    @tool
    def add(first: int, /, second: int = 10, *others: int, sign: str = "+", **more: float):
        """Add.

        Args:
            *others: what else there is
        """
        return first, second, others, sign, more

    assert add.parameters == {
        "type": "object",
        "properties": {
            "first": {"type": "integer"},
            "second": {"type": "integer", "default": 10},
            "others": {"type": "array", "items": {"type": "integer"}, "description": "what else there is"},
            "sign": {"type": "string", "default": "+"},
        },
        "required": ["first"],
        "additionalProperties": {"type": "number"},
    }
    registry = Registry([add])

    def called(arguments: dict[str, Any]) -> Any:
        return asyncio.run(registry.invoke("add", arguments, Invocation()))

    assert called({"first": 1}) == (1, 10, (), "+", {})
    assert called({"first": 1, "others": [2.0, 3]}) == (1, 10, (2, 3), "+", {})
    assert called({"first": 1, "second": 2, "others": [3], "sign": "-", "x": 4}) == (1, 2, (3,), "-", {"x": 4.0})
    assert raised(called, {"first": 1, "others": ["x"]}).code == "invalid-arguments"
    assert raised(called, {"first": 1, "x": "y"}).code == "invalid-arguments"

    @tool
    def keep(a, /, *, context: Invocation, **more: Unpack[Box]):
        return a, context.request_id, more

    assert keep.parameters == {
        "type": "object",
        "properties": {"a": {}, "b": {"type": "array", "items": {"type": "integer"}}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert keep.function({"a": 1, "b": [2], "context": 5}, Invocation(request_id="r1")) == (1, "r1", {"b": [2]})


def test_the_keys_of_an_unpacked_typed_dict_are_parameters():
    @tool
    def trip(of: str = "day", **trip: Unpack[Trip[int]]):
        """Plan.

        Args:
            of: what kind
            to: where
            trip: nights
        """
        return of, trip

    assert trip.parameters == {
        "type": "object",
        "properties": {
            "of": {"type": "string", "default": "day", "description": "what kind"},
            "trip": {"description": "nights"},
            "to": {"type": "string", "description": "where"},
            "by": {"type": "string", "format": "path", "description": "a path"},
            "on": {"type": "string"},
        },
        "required": ["to", "on"],
        "additionalProperties": False,
    }
    assert trip.function({"to": "Oslo", "by": "x", "on": "1", "trip": 2}, None) == (
        "day",
        {"to": "Oslo", "by": Path("x"), "on": "1", "trip": 2},
    )
    assert raised(asyncio.run, Registry([trip]).invoke("trip", {"trip": 2})).code == "invalid-arguments"
    assert tool(trips).parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_parameter_and_a_key_of_an_unpacked_typed_dict_have_two_names():
    """Python takes both where the first comes by position; in one object of arguments there is room for one."""

    def by_position(b, /, **more: Unpack[Box]):
        return b, more

    def several(*b, **more: Unpack[Box]):
        return b, more

    def told(*, b: Invocation, **more: Unpack[Box]):
        return b, more

    for function in (by_position, several, told):
        error = f"tool {function.__name__}, parameter 'b': expected a name that is no key of what is unpacked"
        with pytest.raises(ToolsError, match=re.escape(error)):
            tool(function)


def test_paths_enumerations_of_anything_and_pydantics_models_have_schemas():
    @tool(mode="read")
    def send(
        parcel: Parcel,
        to: str | Path,
        box: dict[str, Path | None],
        parts: list[Mixed],
        of: Mixed | int = Mixed.ALL,
        key: Annotated[bytes | str, "what opens it"] = "",
        by: Path = Path("post"),
        until: Annotated[datetime.date | datetime.time, pydantic.Field(description="when at last")] = datetime.date.max,
        spare: Parcel = Parcel(weight=1),  # noqa: B008
        times: int | None = None,
        since: datetime.datetime | None = None,
        daily: list[datetime.time] | None = None,
        level: Level = Level.LOW,
    ):
        """Send.

        Args:
            parcel: what goes
        """
        return parcel, to, box, parts, of, key, by, until

    mixed = {"title": "Mixed", "enum": [None, 0.5, "all"]}
    path = {"type": "string", "format": "path"}
    text = {"type": "string"}
    properties = send.parameters["properties"]
    assert properties == {
        "parcel": {"$ref": "#/$defs/Parcel", "description": "what goes"},
        "to": {"anyOf": [text, path]},
        "box": {"type": "object", "additionalProperties": {"anyOf": [path, {"type": "null"}]}},
        "parts": {"type": "array", "items": mixed},
        "of": {"anyOf": [mixed, {"type": "integer"}], "default": "all"},
        "key": {"anyOf": [text, {**text, "contentEncoding": "base64"}], "description": "what opens it", "default": ""},
        "by": {**path, "default": "post"},
        "until": {
            "anyOf": [{**text, "format": "date"}, {**text, "format": "time"}],
            "description": "when at last", "default": "9999-12-31",
        },
        "spare": {"$ref": "#/$defs/Parcel", "default": {"weight": 1, "parts": [], "sent": None}},
        "times": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "since": {"anyOf": [{**text, "format": "date-time"}, {"type": "null"}], "default": None},
        "daily": {
            "anyOf": [{"type": "array", "items": {**text, "format": "time"}}, {"type": "null"}], "default": None,
        },
        "level": {"title": "Level", "enum": [1, "high"], "default": 1},
    }  # fmt: skip
    assert send.parameters["$defs"].keys() == {"Parcel", "Parcel.Parcel"}
    jsonschema.Draft202012Validator.check_schema(send.parameters)
    arguments = {"parcel": {"weight": 2, "parts": [{"weight": 1, "sent": "2024-05-17"}]}, "to": "me",
                 "box": {"a": "x/y", "b": None}, "parts": [0.5, None], "of": 7, "key": "abcd", "by": "air",
                 "until": "09:30:00"}  # fmt: skip
    registry = Registry([send])

    def called(**changed: Any) -> Any:
        return asyncio.run(registry.invoke("send", {**arguments, **changed}, Invocation()))

    parcel, *others = called()
    assert (parcel.weight, parcel.parts[0].sent) == (2, datetime.date(2024, 5, 17))
    assert others == ["me", {"a": Path("x/y"), "b": None}, [Mixed.HALF, Mixed.NOTHING], 7, "abcd", Path("air"),
                      datetime.time(9, 30)]  # fmt: skip
    assert called(of="all")[4] is Mixed.ALL
    for wrong in ({"parts": ["none"]}, {"parcel": {"weight": 0}}, {"parcel": {"weight": 1, "sent": "x"}}, {"by": 5},
                  {"until": "x"}):  # fmt: skip
        assert raised(called, **wrong).code == "invalid-arguments", wrong


def test_types_of_one_name_have_definitions_of_their_own():
    ours = pydantic.create_model("Point", x=(int, ...))
    theirs = pydantic.create_model("Point", y=(int, ...))

    def draw(a, b, c, d): ...

    draw.__annotations__ = {"a": ours, "b": theirs, "c": Point, "d": ours}
    made = tool(draw).parameters
    where = [made["properties"][key]["$ref"].rpartition("/")[2] for key in "abcd"]
    assert where == ["Point_", "Point__", "Point", "Point_"]
    assert [[*made["$defs"][name]["properties"]] for name in where] == [["x"], ["y"], ["x", "y"], ["x"]]


def test_what_an_annotation_refuses_although_the_schema_allows_it_is_an_invalid_argument():
    @tool(parameters={"type": "object"}, mode="read")
    def look(at: int, **more: Any) -> Any:
        return at, more

    assert look.function({"at": 3.0, "deep": 1}, Invocation()) == (3, {"deep": 1})
    assert raised(look.function, {"at": "x"}, Invocation()).code == "invalid-arguments"


def test_a_generic_class_keeps_its_name_whatever_it_is_made_of():
    def look(at: Spot[datetime.datetime], then: list[Spot[datetime.time]]):
        return at, then

    parameters = tool(look).parameters
    assert parameters["properties"]["at"] == {"$ref": "#/$defs/Spot_datetime_"}
    assert {key: said["title"] for key, said in parameters["$defs"].items()} == {
        "Spot_datetime_": "Spot[datetime]", "Spot_time_": "Spot[time]",
    }  # fmt: skip


def test_docstrings_of_three_styles_say_the_same():
    google = "Look.\n\nArgs:\n    city: where to look\n    days: how far"
    numpy = "Look.\n\nParameters\n-----\ncity : str\n    where to look\ndays : int\n    how far\n\nReturns\n---\nit"
    sphinx = "Look.\n\n:param str city: where\n    to look\n:param days: how far\n:returns: it\n    all"
    for text in (google, numpy, sphinx):
        assert read_docstring(text) == ("Look.", {"city": "where to look", "days": "how far"}), text
    assert read_docstring("Note that it is slow.") == ("Note that it is slow.", {})
    assert read_docstring("Look.\n\nNote: slow.\n\nNotes:\n    Made of glass.") == ("Look.\n\nNote: slow.", {})


def test_docstrings_in_the_wild():
    one_two = {"a": "one", "b": "two"}
    for text in (
        'Args:\n    a (dict[str, tuple[int, int]]): one\n    b (Literal["(", ")"], optional): two',
        "Args:\n    a (list(int)): one\nKeyword Args:\n    b: two\nNote:\n    Slow.",
        "@param a: one\n@type a: int\n@param b: two\n@return: it",
        "Parameters\n---\na : int\n    one\n\nOther Parameters\n---\nb : {'x', 'y'}\n    two\n\nSee Also\n---\nc : d",
        "\tArgs:\r\n\t\ta: one\r\n\t\tb: two",
    ):
        assert read_docstring(f"Look.\n\n{text}") == ("Look.", one_two), text
    both = read_docstring("Parameters\n---\nx, *y : int\n    where")
    assert both == ("", {"x": "where", "y": "where"})


def test_a_default_that_json_cannot_hold_is_in_no_schema():
    ring: list[Any] = []
    ring.append(ring)
    apart, endless, numbers = memoryview(b"abcd")[::2], float("inf"), {1: 2}

    def look(a=apart, b: float = endless, c=ring, d=-endless, e: dict[int, int] = numbers):
        """Look."""

    properties = tool(look).parameters["properties"]
    assert {key: schema["default"] for key, schema in properties.items() if "default" in schema} == {"e": {"1": 2}}


def test_what_is_called_like_a_function_becomes_a_tool():
    class Looker:
        def __call__(self, city: str, days: int = 3) -> str:
            """Look."""
            return f"{city} {days}"

        def look(self, city: str) -> str:
            return city

    for function in (Looker(), partial(Looker(), days=7)):
        made = tool(function, name="look")
        assert made.description == "Look."
        assert made.parameters["properties"]["city"] == {"type": "string"}
        assert made.parameters["required"] == ["city"]
    assert made.function({"city": "Oslo"}, Invocation()) == "Oslo 7"
    assert tool(Looker().look).parameters["required"] == ["city"]
    with pytest.raises(ToolsError, match="tool look: expected a method of an object, found one that wants 'self'"):
        tool(Looker.look)


def test_a_class_that_becomes_a_tool_has_the_types_of_its_making():
    class Plain:
        def __init__(self, city: str, days: int = 3) -> None:
            self.told = f"{city} {days}"

    @dataclass
    class Held:
        city: str
        days: int = 3

    class Inheriting(Plain):
        pass

    class Empty:
        pass

    assert tool(Empty, name="look").parameters["properties"] == {}
    for each in (Plain, Held, Inheriting, partial(Plain)):
        properties = tool(each, name="look").parameters["properties"]
        assert properties == {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}}
    assert tool(Plain, name="look").function({"city": "Oslo"}, Invocation()).told == "Oslo 3"


def test_functions_that_cannot_be_tools_are_refused():
    def untypable(a: complex): ...
    def starred(*a: complex): ...
    def keyed(**a: complex): ...
    def deep(a: list[dict[str, complex]]): ...
    def one_of(a: complex | Mixed | str): ...
    def paired(a: Pair): ...
    def unreadable(a: Nowhere): ...  # type: ignore[name-defined]  # noqa: F821

    for function in (untypable, starred, keyed, deep, one_of, paired):
        where = f"tool {function.__name__}, parameter 'a'"
        with pytest.raises(ToolsError, match=f"{where}: expected a type that JSON can carry, found .*(complex|Pair)"):
            tool(function)
    with pytest.raises(ToolsError, match="tool unreadable: expected annotations that can be read"):
        tool(unreadable)
    with pytest.raises(ToolsError, match="expected a function, found int"):
        tool(3)  # type: ignore[call-overload]
    with pytest.raises(ToolsError, match="expected the fields of Tool, found colour"):
        tool(colour="red")(nothing)
    for tags in (5, "abc"):
        with pytest.raises(ToolsError, match="tags: expected several texts, found"):
            tool(nothing, tags=tags)  # type: ignore[arg-type]


def test_a_tool_says_what_is_wrong_with_it():
    for name in ("", "1st", "a:b", "a b", "x" * 129, 3, "."):
        with pytest.raises(ToolsError, match="tool name: expected a letter"):
            plain(name)
    with pytest.raises(ToolsError, match="tool owner"):
        plain(owner="not an owner")
    with pytest.raises(ToolsError, match="found 131 characters"):
        plain("x" * 65, owner="y" * 65)
    with pytest.raises(ToolsError, match="mode: expected read or write, found 'delete'"):
        plain(mode="delete")  # type: ignore[arg-type]
    with pytest.raises(ToolsError, match="runs_in"):
        plain(runs_in="space")  # type: ignore[arg-type]
    with pytest.raises(ToolsError, match="timeout_seconds: expected more than 0, found nan"):
        plain(timeout_seconds=float("nan"))
    with pytest.raises(ToolsError, match="expected a function, found str"):
        Tool(name="x", function="y")  # type: ignore[arg-type]
    with pytest.raises(ToolsError, match="expected a JSON Schema, found list"):
        plain(parameters=[])
    for field, value in (
        *(("simulate", 5), ("should_register", True), ("format_message", "x"), ("description", None)),
        *(("approval", ""), ("approval", 0), ("stealth", "false"), ("polling", 1), ("tags", "abc"), ("metadata", None)),
        ("timeout_seconds", "5"),
    ):
        with pytest.raises(ToolsError, match=f"tool look, {field}: expected .*, found {type(value).__name__}"):
            plain(**{field: value})
    assert plain(tags=["a", "b", "a"]).tags == frozenset("ab")
    assert plain("天气", owner="eyes").qualified_name == "eyes:天气"


def test_writing_needs_consent_unless_the_tool_says_otherwise():
    assert [
        plain(mode=mode, approval=said).needs_approval for mode in ("read", "write") for said in (None, True, False)
    ] == [
        *(False, True, False),
        *(True, True, False),
    ]


# The registry.


def test_registration_says_what_happened_and_overwrites_only_when_asked():
    times = iter([10.0, 11.0, 12.0, 13.0, 14.0])
    heard: list[RegistryEvent] = []
    registry = Registry(clock=lambda: next(times), listener=heard.append)
    assert registry.register(plain()) == ("look", False, 10.0)
    with pytest.raises(ToolsError, match="expected a new name, found one that exists"):
        registry.register(plain(description="other"))
    assert registry.get("look").description == ""
    assert registry.register(plain(description="new"), allow_overwrite=True) == ("look", True, 12.0)
    assert registry.register(plain("turn"), allow_overwrite=True) == ("turn", False, 13.0)
    assert [event.change for event in heard] == ["registered", "refused", "overwritten", "registered"]
    assert (len(registry), "look" in registry, repr(registry)) == (2, True, "Registry(2 tools)")
    assert registry.unregister("turn")
    assert heard[-1] == RegistryEvent("unregistered", "turn", "", 14.0)
    with pytest.raises(ToolsError, match="Registry: expected a list of tools, found Tool"):
        Registry(plain())  # type: ignore[arg-type]


def test_flags_are_true_or_false():
    """Who hands over a setting as text would overwrite, or trust, where the text says no."""
    registry = Registry([plain()])
    for flag, act in (
        ("allow_overwrite", lambda: registry.register(plain(description="new"), allow_overwrite="no")),
        ("force", lambda: registry.unregister("look", owner="b", force="no")),
        ("simulate", lambda: asyncio.run(registry.invoke("look", {}, simulate="no"))),
        ("trust_hints", lambda: tools_from_mcp([], print, trust_hints="no")),
    ):
        with pytest.raises(UsageError, match=f"{flag}: expected True or False, found 'no'"):
            act()
    assert registry.get("look").description == plain().description


def test_a_listener_that_raises_changes_nothing():
    def listener(event):
        raise SystemExit(3)

    registry = Registry([plain()], listener=listener)
    assert registry.get("look").name == "look"


def test_names_are_qualified_exact_or_unambiguous():
    registry = Registry([plain(), plain("turn", owner="a"), plain("turn", owner="b"), plain("look", owner="b")])
    assert registry.get("look").owner == ""  # exact
    assert registry.get("b:look").owner == "b"
    ambiguous = raised(registry.get, "turn")
    assert (ambiguous.code, ambiguous.hint) == ("ambiguous-tool", "write one of a:turn, b:turn")
    assert raised(registry.get, "lok").hint == "did you mean 'look'?"
    assert raised(registry.get, "Zzz").hint == "call only tools that are listed"
    assert [each.name for each in registry] == ["look", "a:turn", "b:turn", "b:look"]
    registry.unregister("a:turn", force=True)
    assert registry.get("turn").owner == "b"
    assert [each.name for each in registry] == ["look", "b:turn", "b:look", "turn"]
    assert not callmark.parse("[CALL: b:turn()] [CALL: turn()]", tools=registry).problems
    assert callmark.parse("[CALL: a:turn()]", tools=registry).problems[0].code == "unknown-tool"


def test_only_an_owner_removes_a_tool_and_all_go_when_it_stops():
    registry = Registry([plain(owner="a"), plain("turn", owner="a"), plain("stay", owner="b")])
    with pytest.raises(NotPermittedError, match="expected its owner 'a' or force, found 'b'"):
        registry.unregister("a:look", owner="b")
    assert registry.unregister("a:look", owner="a") is True
    assert registry.unregister("a:look", owner="a") is False
    registry.register(plain(), owner="a")
    assert registry.unregister_owner("a") == ("a:turn", "a:look")
    assert [each.name for each in registry.list()] == ["stay"]


def test_of_two_that_remove_a_tool_at_once_one_removes_it():
    class Entries(dict):
        def pop(self, *arguments):
            super().pop(*arguments)  # the other one was faster
            return super().pop(*arguments)

    registry = Registry([plain()])
    registry._entries = Entries(registry._entries)
    assert registry.unregister("look") is False


def test_a_revoked_owner_registers_nothing_and_its_tools_rest():
    heard: list[RegistryEvent] = []
    registry = Registry([plain(owner="a", mode="read")], listener=heard.append)
    registry.revoke("a")
    with pytest.raises(NotPermittedError, match="'a''s was revoked"):
        registry.register(plain("turn"), owner="a")
    assert heard[-1][:3] == ("refused", "a:turn", "a")
    assert raised(registry.prepared, "a:look", {}).code == "denied"
    assert asyncio.run(registry.offered()) == ()
    registry.grant("a")
    assert heard[-1].change == "granted"
    registry.register(plain("turn"), owner="a")
    assert len(asyncio.run(registry.offered())) == 2


def test_tools_are_listed_by_every_filter():
    registry = Registry(
        [
            plain("a", mode="read", tags=frozenset({"x", "y"})),
            plain("b", stealth=True, tags=frozenset({"x"})),
            plain("c", owner="o"),
        ]
    )

    def names(**filters: Any) -> list[str]:
        return [each.name for each in registry.list(**filters)]

    assert names() == ["a", "b", "c"]
    assert names(owner="o") == ["c"]
    assert names(owner="") == ["a", "b"]
    assert names(mode="read") == ["a"]
    assert names(tags=["x"]) == ["a", "b"]
    assert names(tags=["x", "y"]) == ["a"]
    assert names(stealth=True) == ["b"]
    assert names(names=["a", "o:c"]) == ["a", "c"]


def test_should_register_is_asked_for_each_request():
    async def later(context: Invocation) -> bool:
        return context.request_id == "yes"

    def broken(context: Invocation) -> bool:
        raise RuntimeError("secret")

    heard: list[RegistryEvent] = []
    asked = [
        plain("a", should_register=lambda context: context.request_id == "yes"),
        plain("b", should_register=later),
        plain("c", should_register=broken),
        plain("d"),
    ]
    registry = Registry(asked, listener=heard.append)
    yes = asyncio.run(registry.offered(Invocation(request_id="yes"), mode="write"))
    assert [each.name for each in yes] == ["a", "b", "d"]
    assert [each.name for each in asyncio.run(registry.offered())] == ["d"]
    assert heard[-1].change == "unanswered"
    assert heard[-1].reason == "should_register raised RuntimeError"


def test_reserved_fields_are_dropped_and_cannot_be_declared():
    seen: list[dict[str, Any]] = []
    registry = Registry([Tool(name="look", function=lambda arguments, context: seen.append(arguments), mode="read")])
    text = r'[CALL: look({"at": {"userId": 1}, "__user\u0049d": 1, "User_ID": 2, "__deadlineMs": 3, "USERID": 4})]'
    (call,) = callmark.parse(text).calls
    asyncio.run(registry.invoke(call.name, call.arguments))
    assert seen == [{"at": {"userId": 1}}]
    declared = {"type": "object", "properties": {"user_id": {"type": "string"}}}
    with pytest.raises(ToolsError, match="'user_id': expected a name not reserved"):
        registry.register(plain("mail", parameters=declared))
    own = Registry([plain("mail", parameters=declared)], reserved=lambda key: key.startswith("__"))
    assert own.prepared("mail", {"user_id": "7", "__x": 1})[1] == {"user_id": "7"}


@given(
    st.permutations(["user", "id"]).map(lambda words: words == ["user", "id"]),
    st.sampled_from(["", "_", "-", "__"]),
    st.lists(st.sampled_from("\u200b \u2060"), max_size=3).map("".join),
    st.sampled_from([str.lower, str.upper, str.title]),
)
def test_every_spelling_of_a_user_id_is_reserved(forward, between, hidden, case):
    key = case(f"user{between}{hidden}id") if forward else case(f"id{between}user")
    assert is_reserved(key) is forward
    assert is_reserved(hidden + "__" + key)
    assert is_reserved("ｕｓｅｒＩＤ")


def test_arguments_that_are_no_json_object_are_refused():
    assert Registry().unreserved(["__a"]) == ["__a"]  # they hold no fields
    registry = Registry([plain()])
    for arguments in ([1], None, "x", {1: 2}, {"a": {1, 2}}, {"a": [{2: 3}]}):
        assert raised(registry.prepared, "look", arguments).code == "invalid-arguments"
    given_ = {"a": [1, {"b": (2, None, True, 0.5)}]}
    _, frozen = registry.prepared("look", given_)
    assert frozen == {"a": [1, {"b": [2, None, True, 0.5]}]}
    given_["a"].append(2)
    assert frozen == {"a": [1, {"b": [2, None, True, 0.5]}]}


def test_parameters_that_are_no_schema_of_an_object_are_refused():
    registry = Registry()

    def deep(levels: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for _ in range(levels):
            made = {"not": made}
        return made

    for schema, reason in (
        ({"type": "array"}, "expected the type object, found 'array'"),
        ({"type": "object", "properties": 3}, "look, parameters.properties: expected a JSON Schema, found: 3 is"),
        (
            {"properties": {"a": {"anyOf": [{}, {"description": None}]}}},
            r"look, parameters.properties.a.anyOf\[1\].description: expected a JSON Schema, found: None is not of type",
        ),
        ({"properties": {"a": {"$ref": "https://example.org/a"}}}, "within the schema"),
        ({"properties": {"a": {"pattern": "["}}}, "a pattern that Python reads, found '\\['"),
        ({"patternProperties": {"\\p{L}": {}}}, "a pattern that Python reads"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {}}, "to what is in the schema"),
        ({"properties": {"a": {"$ref": "#/allOf/7"}}, "allOf": [{}]}, "to what is in the schema"),
        ({"properties": {"default": {"$ref": "https://example.org/a"}}}, "within the schema"),
        ({"properties": {"a": {"$ref": "#nowhere"}}}, "to what is in the schema"),
        ({"properties": {"a": {"$id": "http://x/", "not": {"$ref": "#/$defs/b"}}}, "$defs": {"b": {}}}, "what is in"),
        ({"properties": {"a": {"$id": "http://[", "not": {"$ref": "#/$defs/b"}}}, "$defs": {"b": {}}}, "what is in"),
        ({"properties": {"a": {"$ref": "#/x"}}, "x": {"type": 3}}, "parameters.#/x.type: expected a JSON Schema"),
        ({"$schema": 5}, "expected \\$schema to be a text"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "patternProperties": {"[": {}}}, "that Python reads"),
        ({"properties": {"a": {"default": object()}}}, "expected a JSON Schema, found: Encoding objects"),
        (deep(200), "nested too deep"),
        (deep(5000), "nested too deep"),
    ):
        with pytest.raises(ToolsError, match=reason):
            registry.register(plain(parameters=schema))
    good = {
        "properties": {"a": {"$ref": "#/allOf/0"}},
        "allOf": [{"const": {"$ref": "nowhere"}}, {"not": {"$ref": "#/$defs/x~1y"}}],
    }
    registry.register(plain(parameters={**good, "$defs": {"x/y": {}}}))
    registry.register(plain("empty", parameters={}))


def test_writes_are_only_simulated_under_review():
    ran: list[str] = []

    def body(name: str, result: Any) -> Any:
        def run(arguments: dict[str, Any], context: Invocation) -> Any:
            ran.append(name)
            return result

        return run

    registry = Registry(
        [
            Tool(name="read", function=body("read", 1), mode="read"),
            Tool(name="write", function=body("write", 2)),
            Tool(name="careful", function=body("careful", 3), simulate=body("simulated", 4)),
        ]
    )

    async def outer(arguments: dict[str, Any], context: Invocation) -> Any:
        return await registry.invoke("write", {}), context.review

    registry.register(Tool(name="outer", function=outer, mode="read"))

    async def results(simulate: bool) -> list[Any]:
        return [await registry.invoke(name, {}, simulate=simulate) for name in ("read", "write", "careful")]

    simulated = {"ok": None, "simulated": True, "unvalidated": True}
    assert asyncio.run(results(True)) == [1, simulated, 4]
    assert asyncio.run(registry.invoke("outer", {}, simulate=True)) == (simulated, True)
    assert asyncio.run(registry.invoke("outer", {}, Invocation(review=True))) == (simulated, True)
    assert ran == ["read", "simulated"]

    async def one_after_another() -> list[Any]:
        return [*await results(True), *await results(False)]

    assert asyncio.run(one_after_another()) == [1, simulated, 4, 1, 2, 3]
    assert asyncio.run(results(False)) == [1, 2, 3]


def test_a_simulation_of_a_decorated_tool_takes_the_same_arguments():
    @tool(simulate=lambda to: f"would mail {to}", name="mail", description="Send.", tags=["out"])
    async def send(to: str) -> str:
        return f"mailed {to}"

    registry = Registry([send])
    assert (send.name, send.description, send.tags) == ("mail", "Send.", {"out"})
    assert asyncio.run(registry.invoke("mail", {"to": "Mia"}, simulate=True)) == "would mail Mia"
    assert asyncio.run(registry.invoke("mail", {"to": "Mia"})) == "mailed Mia"


# The context.


def test_a_context_flattens_messages_and_counts_down():
    clock = iter([3.0, 9.0])
    heard: list[Any] = []
    parts = ["a", {"type": "text", "text": "b"}, {"type": "image_url", "image_url": {}}, {}]
    messages = [{"role": "user", "content": parts}, {"content": None}, {"role": "x", "content": {"text": "one"}}]
    context = Invocation(deadline=5.0, clock=lambda: next(clock), messages=messages, progress=heard.append)
    assert context.flat_messages() == [
        {"role": "user", "content": "a\nb\n[image_url]\n[part]"},
        {"role": "", "content": ""},
        {"role": "x", "content": "one"},
    ]
    assert [context.remaining_seconds(), context.remaining_seconds()] == [2.0, 0.0]
    context.report(1)
    assert heard == [1]
    assert not context.cancelled
    assert repr(context) == "Invocation(request_id='', 3 messages)"
    assert flat_content("text") == "text"
    bare = Invocation()
    bare.report(1)
    assert bare.remaining_seconds() is None
    assert Invocation(clock=lambda: 3.0).remaining_seconds() is None
    assert Invocation(deadline=5.0).remaining_seconds() is None


# Checking.


def problems_of(schema: dict[str, Any], value: Any) -> list[str]:
    return [str(problem) for problem in Checker(schema).problems(value)]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer"}, "3", 'a: expected an integer, found the text "3"'),
        ({"type": ["string", "null"]}, 3, "a: expected a string or null, found 3"),
        ({"enum": ["x", 1]}, "y", 'a: expected one of "x", 1, found the text "y"'),
        ({"const": 1}, 2, "a: expected exactly 1, found 2"),
        ({"minimum": 3}, 2, "a: expected at least 3, found 2"),
        ({"pattern": "^x"}, "y", 'a: expected a text that matches "^x", found the text "y"'),
        ({"maxLength": 3}, "y" * 99, f'a: expected a length of at most 3, found the text "{"y" * 59}…'),
        ({"items": {"type": "null"}}, [None, 1], "a[1]: expected null, found 1"),
        ({"required": ["b", "c"]}, {"c": 1}, "a: expected the key 'b', found only 'c'"),
        ({"required": ["b"]}, {}, "a: expected the key 'b', found no keys"),
        (
            {"additionalProperties": False, "properties": {"city": {}}},
            {"ctiy": 1, "city": 2},
            "a: expected only 'city', found 'ctiy' (did you mean 'city'?)",
        ),
        (
            {"additionalProperties": False, "patternProperties": {"^x": {}}},
            {"x1": 1, "y": 2},
            "a: expected only no keys, found 'y'",
        ),
        ({"additionalProperties": {"type": "null"}}, {"x": 1}, "a.x: expected null, found 1"),
        (
            {"additionalProperties": {"type": "null"}, "properties": {"x": {}, "z": True}},
            {"x": 1, "y": 2, "z": 3},
            "a.y: expected null, found 2",
        ),
        ({"anyOf": [{"type": "null"}, {"minimum": 5}]}, 3, "a: expected at least 5, found 3"),
        ({"anyOf": [{"type": "null"}, {"items": {"type": "null"}}]}, [3], "a[0]: expected null, found 3"),
        ({"oneOf": [{}, {}]}, 3, "a: expected what the schema's 'oneOf' allows, found 3"),
        ({"not": {}}, 3, "a: expected what the schema's 'not' allows, found 3"),
    ],
)
def test_problems_name_the_path_what_was_expected_and_what_was_found(schema, value, said):
    assert problems_of({"properties": {"a": schema}}, {"a": value}) == [said]


def test_problems_are_few_and_the_outermost_come_first():
    schema = {"properties": {"a": {"items": {"type": "null"}}}, "required": ["b"]}
    said = problems_of(schema, {"a": [1] * 9})
    assert len(said) == 5
    assert said[0] == "arguments: expected the key 'b', found only 'a'"


def test_drafts_are_honoured():
    old = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"minimum": 3, "exclusiveMinimum": True}},
    }
    for engine in ("jsonschema", "jsonschema-rs"):
        assert not Checker(old, engine=engine).is_valid({"a": 3})
        assert Checker(old, engine=engine).is_valid({"a": 4})
    older = {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"required": True}}}
    assert "'required'" in problems_of(older, {})[0]


def test_a_schema_is_never_fetched():
    assert Checker({"$schema": "https://example.org/meta", "properties": {"a": {"type": "null"}}}).is_valid({"a": None})


def test_invoking_with_wrong_arguments_says_what_is_wrong():
    registry = Registry([plain(parameters={"properties": {"a": {"type": "null"}}, "required": ["b"]})])
    error = raised(asyncio.run, registry.invoke("look", {"a": 1}))
    assert error.code == "invalid-arguments"
    assert error.message == "arguments: expected the key 'b', found only 'a'; a: expected null, found 1"
    assert error.hint == "call it again with arguments that fit its schema"


def test_a_schema_that_never_ends_is_a_problem_and_no_crash():
    endless = {"properties": {"a": {"$ref": "#/properties/a"}}}
    (problem,) = Checker(endless, engine="jsonschema").problems({"a": 1})
    assert problem.expected == "values that end"


def test_without_the_quick_engine_the_verdicts_stay(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert not Checker({"required": ["a"]}).is_valid({})
    with pytest.raises(ToolsError, match="expected jsonschema-rs to be installed"):
        Checker({}, engine="jsonschema-rs")


def test_what_the_quick_engine_cannot_read_or_hold_is_left_to_the_other():
    lookbehind = {"properties": {"a": {"pattern": "(?P<x>a)(?P=x)"}}}
    assert Checker(lookbehind).is_valid({"a": "aa"})
    assert not Checker(lookbehind).is_valid({"a": "ab"})
    huge = {"properties": {"a": {"type": "integer"}}}
    assert Checker(huge).is_valid({"a": 10**4000})
    assert Checker({"additionalProperties": {"type": "string"}}).is_valid({"\ud800": "\udc00"})
    assert not Checker({"additionalProperties": {"type": "integer"}}).is_valid({"\ud800": "\udc00"})


@pytest.mark.parametrize("engine", ["auto", "jsonschema"])
@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"multipleOf": 0.1}, 0.3, "expected a multiple of 0.1, found 0.3"),
        ({"multipleOf": 0.5}, 10**400, "expected numbers that can be compared, found one with too many digits"),
        ({"multipleOf": 10**400}, 1.5, "expected numbers that can be compared, found one with too many digits"),
        ({"pattern": "^[^\\d]$"}, "１", "expected a text that matches"),
        ({"pattern": "\\s"}, "\ufeff", "expected a text that matches"),
        ({"additionalProperties": False, "patternProperties": {"^\\w$": {"type": "null"}}}, {"é": 1}, "expected null"),
        (False, 1, "expected nothing, or another key, found 1"),
    ],
)
def test_where_the_engines_differ_one_decides(engine, schema, value, problem):
    (found,) = Checker({"properties": {"a": schema}}, engine=engine).problems({"a": value})
    assert problem in str(found)


ENDLESS = [
    {"properties": {"a": {"type": "string", "pattern": "^(a|a)*$"}}},
    {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {"anyOf": [{"pattern": "^(a|a)*$"}, False]}}}}},
    {"properties": {"a": {"$ref": "#"}}, "pattern": "^(a|a)*$", "$schema": "http://json-schema.org/draft-07/schema#"},
]
ENDLESS_KEYS = [
    {"patternProperties": {"^(a|a)*$": {"type": "string"}}},
    {"patternProperties": {"^(a|a)*$": True}, "additionalProperties": False},
    {"additionalProperties": {"type": "string"}, "patternProperties": {"^(a|a)*$": {}}},
    {"propertyNames": {"pattern": "^(a|a)*$"}},
]


@pytest.mark.parametrize("engine", ["jsonschema", "auto"])
def test_a_pattern_that_never_ends_holds_nobody_up(engine, monkeypatch):
    """With `re` each of these takes longer than anybody lives."""
    monkeypatch.setattr("callmark.tools.checking.MATCH_SECONDS", 0.01)
    endless = "a" * 64 + "!"
    for schema in ENDLESS:
        assert checked(schema, {"a": endless}, engine)[0].path == "arguments"
        assert checked(schema, {"a": "aaa"}, engine) == ()
    for schema in ENDLESS_KEYS:
        assert checked(schema, {endless: "b"}, engine) == (
            ("arguments", "texts that a pattern can be held to", "one that it takes too long with"),
        )
        assert checked(schema, {"aaa": "b"}, engine) == ()


NODE = {"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["c"]}
BRANCHING = {"$defs": {"n": {"anyOf": [NODE, {**NODE, "minProperties": 1}, {"type": "null"}]}}, "$ref": "#/$defs/n"}


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = {"c": value}
    return value


@pytest.mark.parametrize("engine", ["jsonschema", "auto"])
def test_a_schema_that_comes_back_to_itself_holds_nobody_up(engine, monkeypatch):
    """Each level of the value has two branches to try: with 64 of them nobody sees the end, in either engine."""
    monkeypatch.setattr("callmark.tools.checking.STEPS_LIMIT", 5000)
    assert checked(BRANCHING, nested(None, 3), engine) == ()
    assert checked(BRANCHING, nested("x", 3), engine)[0].path.startswith("c.c")
    late = (("arguments", "values that can be checked in time", "ones with too many ways to read them"),)
    assert checked(BRANCHING, nested("x", 64), engine) == late
    listed = {"properties": {"a": {"items": {"enum": [*map(str, range(250))]}}}, "uniqueItems": True}
    assert checked(listed, {"a": ["249"] * 10}, engine) == ()
    assert checked(listed, {"a": ["249"] * 100}, engine) == late  # where each item is compared with 250 texts


@pytest.mark.parametrize("engine", ["jsonschema", "auto"])
def test_many_items_without_an_order_are_compared_once(engine):
    """50,000 of them: where each is compared with each that takes hours."""
    schema = {"properties": {"a": {"uniqueItems": True}, "b": {"uniqueItems": False}}}
    mixed = [{"n": number} if number % 2 else [number] for number in range(50_000)]
    assert checked(schema, {"a": mixed, "b": [1, 1]}, engine) == ()
    (problem,) = checked(schema, {"a": [*mixed, {"n": 1.0}]}, engine)
    assert problem[:2] == ("a", "what the schema's 'uniqueItems' allows")
    assert checked(schema, {"a": "aa"}, engine) == ()
    for values, same in (
        ([1, True], False), ([0, -0.0], True), ([2**64, 2.0**64], True), ([[1], [True]], False),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], True),
    ):  # fmt: skip
        assert bool(checked(schema, {"a": values}, engine)) is same


def test_of_many_problems_few_are_looked_at(monkeypatch):
    guesses = []
    monkeypatch.setattr("callmark.tools.checking.nearest", lambda key, _: guesses.append(key) or "")
    schema = {"properties": {"city": {}}, "additionalProperties": False}
    assert len(checked(schema, {f"city {number}": 1 for number in range(1000)}, "auto")) == len(guesses) == 5


def test_what_has_no_keys_and_is_no_text_meets_no_pattern():
    schema = {
        "properties": {
            "a": {"pattern": "x"}, "b": {"patternProperties": {"x": False}, "additionalProperties": False},
        },
    }  # fmt: skip
    assert checked(schema, {"a": 1, "b": 2}, "jsonschema") == ()
    assert checked({**schema, "additionalProperties": True}, {"c": 1}, "jsonschema") == ()
    assert checked(schema, {"a": "y", "b": {"z": 1}}, "jsonschema") == (
        ("a", 'a text that matches "x"', 'the text "y"'), ("b", "only no keys", "'z'"),
    )  # fmt: skip


def checked(schema: Any, value: Any, engine: Any) -> Any:
    return Checker(schema, engine=engine).problems(value)


PATTERNS = [
    *("", "a", "^a+$", r"^\d{2,3}$", r"\bfoo\b", "[^a-z]", r"^[\w.+-]+@[\w-]+\.[\w.]+$", "(?i)ab", r"^\S*\s"),
    *("^(?!no).*$", "(?<=a)b", r"(a)\1", "é", "^.$", "a$", r"a\Z", "[[]a]", "^[a-zA-Z_]\\w*$", r"^\+?[1-9]\d{1,14}$"),
    *("a{2}", "a{,2}b"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")  # what Python says of `[[]a]`
@given(st.sampled_from(PATTERNS), st.text("aAbBoOfn 1١_.@-+é\n[]{}", max_size=8))
def test_patterns_mean_what_they_mean_to_python(pattern, text):
    found = re.search(pattern, text) is not None
    schema = {"properties": {"a": {"pattern": pattern}}}
    assert (checked(schema, {"a": text}, "jsonschema") == ()) is found
    for others in (False, {"type": "null"}):
        schema = {"patternProperties": {pattern: {"type": "string"}}, "additionalProperties": others}
        assert (checked(schema, {text: "x"}, "jsonschema") == ()) is found
        assert (checked(schema, {text: None}, "jsonschema") == ()) is (not found and bool(others))


def test_references_may_name_anchors_and_data_may_look_like_schemas():
    named = {"properties": {"a": {"$ref": "#n"}}, "$defs": {"some where": {"$anchor": "n", "type": "null"}}}
    assert not Checker(named).is_valid({"a": 1})
    encoded = {**named, "properties": {"a": {"$ref": "#/$defs/some%20where"}}}
    assert Checker(encoded).is_valid({"a": None})
    data = {"properties": {"a": {"default": {"$ref": "http://x/", "pattern": "["}}, "pattern": {"type": "null"}}}
    assert Checker(data).is_valid({"pattern": None})
    old = {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"type": [{"type": "string"}]}}}
    assert Checker(old).problems({"a": 1})[0].expected == "what the schema's 'type' allows"


NUMBER = (
    st.integers()
    | st.integers(0, 3)
    | st.sampled_from([2**53 + 1, 2**63, 2**64, 10**30, 10**400, -0.0, 0.3, 1e300, 1e-300])
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
SMALL = st.integers(0, 3)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(JSON, min_size=1, max_size=3),
            "minimum": NUMBER, "maximum": NUMBER, "exclusiveMinimum": NUMBER, "exclusiveMaximum": NUMBER,
            "multipleOf": st.integers(1, 3) | st.sampled_from([0.1, 0.01, 0.5]),
            "minLength": SMALL, "maxLength": SMALL, "pattern": st.sampled_from(["^a", "\\d+", "b$", "^\\S\\W?$", "."]),
            "minItems": SMALL, "maxItems": SMALL, "minProperties": SMALL, "maxProperties": SMALL,
            "uniqueItems": st.booleans(), "required": st.lists(st.sampled_from("abc"), unique=True),
            "const": JSON,
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "additionalProperties": st.booleans() | inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "\\w", "[bc]$"]), inner, max_size=2),
            "propertyNames": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner, "minContains": SMALL, "maxContains": SMALL,
            "dependentRequired": st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from("abc"), unique=True)),
            "dependentSchemas": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "if": inner, "then": inner, "else": inner,
            "unevaluatedProperties": st.booleans() | inner,
            "unevaluatedItems": st.booleans(),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        },
    ),
    max_leaves=4,
)  # fmt: skip


def test_a_tool_without_required_parameters_says_nothing_of_them():
    @tool
    def look(*, at: Annotated[str, 3, "where"] = "here") -> str:
        return at

    assert look.parameters["properties"]["at"]["description"] == "where"
    assert "required" not in look.parameters
    assert tool(lambda: 1, name="f").parameters == {"type": "object", "properties": {}, "additionalProperties": False}  # type: ignore[call-overload]


DRAFT_7 = "http://json-schema.org/draft-07/schema#"
LARGE = st.sampled_from([2**53, 2**63, 2**64, 10**22, 10**23, 10**30, 10**300]).flatmap(
    lambda number: st.sampled_from([number - 1, number, number + 1, float(number), -number, -float(number)])
)
BOUNDS = st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const"])


@given(BOUNDS, LARGE | NUMBER, LARGE | NUMBER)
@example("maximum", 10**30, 1e30)
def test_both_engines_give_the_same_verdict_of_large_numbers(keyword, bound, value):
    schemas = [{keyword: bound}, {"enum": [[bound]]}, {"uniqueItems": True}, {"type": "integer"}]
    for schema, found in zip(schemas, (value, [value], [bound, value], value), strict=True):
        slow, both = (Checker({"properties": {"a": schema}}, engine=each) for each in ("jsonschema", "auto"))
        assert both.problems({"a": found}) == slow.problems({"a": found})
        assert both._quick is None or both._quick.is_valid({"a": found}) is slow.is_valid({"a": found})


@given(SCHEMAS, JSON)
def test_both_engines_give_the_same_verdict(schema, value):
    slow, both = Checker(schema, engine="jsonschema"), Checker(schema)
    if both._quick is not None:
        assert slow.is_valid(value) is both._is_quickly_valid(value)
    assert both.problems(value) == slow.problems(value)
    for problem in slow.problems(value):
        assert problem.path
        assert problem.expected


@pytest.mark.parametrize("engine", ["auto", "jsonschema", "jsonschema-rs"])
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$schema": DRAFT_7, "properties": {"v": {"not": {"contentEncoding": "base64"}}}}, "aGk!"),
        ({"$schema": DRAFT_7, "properties": {"v": {"not": {"contentMediaType": "application/json"}}}}, "{"),
        ({"properties": {"v": {"not": {"dependencies": {"a": ["b"]}}}}}, {"a": 1}),
    ],
)
def test_both_engines_give_the_same_verdict_of_keywords_that_only_annotate(engine, schema, value):
    assert not Checker(schema, engine=engine).is_valid({"v": value})


@pytest.mark.parametrize("items", [True, False])
@pytest.mark.parametrize("engine", ["auto", "jsonschema"])
def test_items_that_are_yes_or_no_leave_no_additional_ones(engine, items):
    part = {"items": items, "additionalItems": {"type": "string"}}
    checker = Checker({"$schema": DRAFT_7, "properties": {"v": part, "w": {"type": "integer"}}}, engine=engine)
    assert checker.is_valid({"v": [1]}) is items
    assert [problem.path for problem in checker.problems({"v": [], "w": "x"})] == ["w"]
    listed = Checker({"$schema": DRAFT_7, "properties": {"v": {**part, "items": [items]}}}, engine=engine)
    assert (listed.is_valid({"v": [1, "a"]}), listed.is_valid({"v": [1, 2]})) == (items, False)


def test_a_schema_that_cannot_be_walked_is_refused():
    draft_3 = {"$schema": "http://json-schema.org/draft-03/schema#", "extends": {"type": "object"}}
    for schema in (draft_3, {"properties": {1: {}}}):
        with pytest.raises(ToolsError, match="expected"):
            Registry([Tool(name="f", function=lambda arguments, context: 1, parameters=schema)])


# Others' shapes.


def test_aliases_are_narrow_stable_and_reversible():
    names = ["look", "a:look", "a.look", "天气", "x" * 65, "x" * 66, "get-sum"]
    aliases = Aliases(names)
    made = [aliases.alias(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(
        len(alias) <= 64 and alias.replace("-", "_").isascii() and alias.isidentifier()
        for alias in (m.replace("-", "_") for m in made)
    )
    assert [aliases.name(alias) for alias in made] == names
    assert (made[0], made[-1]) == ("look", "get-sum")
    assert Aliases(["a:look"]).alias("a:look") == aliases.alias("a:look")
    assert aliases.name("unheard") == "unheard"
    with pytest.raises(ToolsError, match="expected one of the given names, found 'unheard'"):
        aliases.alias("unheard")
    rival = aliases.alias("a:look")  # an owner who knows the rule can take a name's alias, and gains nothing by it
    both = Aliases(["a:look", rival])
    assert both.alias(rival) == rival != both.alias("a:look")
    assert both.name(both.alias("a:look")) == "a:look"
    assert len(both.alias("a:look")) <= 64


def test_tools_are_exported_to_every_host():
    schema = {"$schema": "x", "type": "object", "properties": {"at": {"type": "string"}}}
    tools = [plain(parameters=schema, description="Look."), plain("turn", owner="a", parameters={})]
    alias = Aliases(["a:turn"]).alias("a:turn")
    clean = {"type": "object", "properties": {"at": {"type": "string"}}}
    empty = {"type": "object", "properties": {}}
    assert native(tools, "openai").tools == [
        {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": clean}},
        {"type": "function", "function": {"name": alias, "description": "", "parameters": empty}},
    ]
    assert native(tools, "openai-responses").tools[0] == {
        "type": "function", "name": "look", "description": "Look.", "parameters": clean,
    }  # fmt: skip
    assert native(tools, "anthropic").tools[0] == {"name": "look", "description": "Look.", "input_schema": clean}
    assert native(tools, "gemini").tools == [
        {
            "functionDeclarations": [
                {
                    "name": "look",
                    "description": "Look.",
                    "parameters": {"type": "OBJECT", "properties": {"at": {"type": "STRING"}}},
                },
                {"name": alias, "description": ""},
            ]
        }
    ]
    assert native([], "gemini").tools == []
    assert native(tools, "gemini").aliases.name(alias) == "a:turn"
    with pytest.raises(ToolsError, match="expected one of openai"):
        native(tools, "cohere")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "INTEGER", "nullable": True}),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]}),
        ({"type": "integer", "nullable": True}, {"type": "INTEGER", "nullable": True}),
        ({"const": 3}, {"type": "INTEGER"}),  # as an enum it would be a text, which comes back as one and does not fit
        ({"enum": [1, 2], "type": "integer"}, {"type": "INTEGER"}),
        ({"enum": [1, 2], "type": "number"}, {"type": "NUMBER"}),
        ({"enum": ["a", 1, None]}, {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]}),
        ({"const": {"a": 1}}, {"type": "OBJECT"}),
        ({"enum": ["a", "b"], "type": ["string", "null"]}, {"type": "STRING", "enum": ["a", "b"], "nullable": True}),
        ({"enum": [None]}, {}),
        ({"$ref": "#anchor"}, {"type": "OBJECT"}),
        ({"$ref": "#/no/where"}, {"type": "OBJECT"}),
        ({"$ref": "#/$defs/a~1b/0", "$defs": {"a/b": [{"type": "null"}, {}]}}, {"nullable": True}),
        ({"$ref": "#/$defs/a~1b/2", "$defs": {"a/b": [{}, {}]}}, {"type": "OBJECT"}),
        ({"$ref": "#n", "$defs": {"a": {"$anchor": "n", "type": "null"}}}, {"nullable": True}),
        ({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "null"}}}, {"nullable": True}),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"]}),
        ({"type": "array", "items": {"type": "number"}}, {"type": "ARRAY", "items": {"type": "NUMBER"}}),
        ({"minimum": 1, "additionalProperties": False, "title": "t"}, {"minimum": 1, "title": "t"}),
        ({"type": "array", "items": True}, {"type": "ARRAY"}),
    ],
)
def test_gemini_has_a_dialect_of_its_own(schema, expected):
    assert gemini_schema(schema) == expected


def test_gemini_schemas_have_no_references():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "any": True}}
    schema = {"properties": {"first": {"$ref": "#/$defs/node", "description": "d"}}, "$defs": {"node": node}}
    assert gemini_schema(schema) == {
        "properties": {
            "first": {"type": "OBJECT", "description": "d", "properties": {"next": {"type": "OBJECT"}, "any": {}}}
        }
    }


def test_gemini_schemas_are_bounded():
    doubling: dict[str, Any] = {"d0": {"type": "string"}}
    for level in range(1, 30):
        next_one = {"$ref": f"#/$defs/d{level - 1}"}
        doubling[f"d{level}"] = {"type": "object", "properties": {"a": next_one, "b": next_one}}
    made = gemini_schema({"properties": {"x": {"$ref": "#/$defs/d29"}}, "$defs": doubling})
    assert len(str(made)) < 100_000


class Object:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def test_tools_come_from_mcp_servers():
    called: list[Any] = []

    async def call(name: str, arguments: dict[str, Any]) -> Any:
        called.append((name, arguments))
        return {"content": [{"type": "text", "text": "3"}]}

    listing = {
        "tools": [
            {
                "name": "get-sum",
                "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True, "title": "Sum"},
            },
            {"name": "2 much:x", "description": "d", "title": "Much"},
            {"name": "-"},
        ]
    }
    tools = tools_from_mcp(listing, call, owner="maths")
    assert [(each.qualified_name, each.mode, each.display_name, each.runs_in) for each in tools] == [
        ("maths:get-sum", "write", "Sum", "loop"),
        ("maths:_2_much_x", "write", "Much", "loop"),
        ("maths:_-", "write", "", "loop"),
    ]
    assert [each.mode for each in tools_from_mcp(listing["tools"], call, trust_hints=True)] == [
        "read",
        "write",
        "write",
    ]
    assert asyncio.run(Registry(tools).invoke("_2_much_x", {"a": 1})) == "3"
    assert called == [("2 much:x", {"a": 1})]
    alike = ["a b", "a:b", "a_b", "1x", "_1x", "x" * 129, "x" * 128, "y" * 200]
    made = tools_from_mcp([{"name": name} for name in alike], call, owner="maths")
    assert len(Registry(made)) == len(alike)
    assert [each.metadata["mcp_name"] for each in made] == alike
    assert (made[2].name, made[4].name) == ("a_b", "_1x")  # what fits keeps its name
    objects = Object(tools=[Object(name="f", input_schema={"type": "object"}, annotations=Object(read_only_hint=True))])
    (made,) = tools_from_mcp(
        objects, lambda name, arguments: {"content": [], "structuredContent": {"n": 1}}, trust_hints=True
    )
    assert made.mode == "read"
    assert asyncio.run(Registry([made]).invoke("f", {})) == {"n": 1}
    with pytest.raises(ToolsError, match="expected tools with a name, found NoneType"):
        tools_from_mcp([{}], call)
    for wrong in (None, 5):
        with pytest.raises(ToolsError, match="expected a result of tools/list, found"):
            tools_from_mcp(wrong, call)


def test_mcp_results_become_text_and_errors_tool_errors():
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image", "mimeType": "image/png", "data": "..."},
        {"type": "resource", "resource": {"uri": "file:///x", "text": "inside"}},
        {"type": "resource_link", "uri": "file:///y"},
        {"type": "resource", "resource": {"uri": "file:///z", "blob": "..."}},
        Object(type="audio"),
    ]
    told = "a\n[image: image/png]\ninside\n[resource_link: file:///y]\n[resource: file:///z]\n[audio: ]"
    assert mcp_value({"content": parts}) == told
    error = raised(mcp_value, Object(content=[Object(type="text", text="no such city")], is_error=True))
    assert (error.code, error.message) == ("mcp-error", "no such city")
    reason: dict[str, Any] = {"content": [], "structuredContent": {"why": "quota"}, "isError": True}
    assert raised(mcp_value, reason).message == '{"why": "quota"}'
    assert raised(mcp_value, {**reason, "content": parts[:1]}).message == "a"
    assert raised(mcp_value, {"isError": True}).message == "mcp-error"


def test_an_async_should_register_may_be_cancelled():
    async def forever(context: Invocation) -> bool:
        await asyncio.sleep(60)
        return True

    async def ask() -> None:
        task = asyncio.ensure_future(Registry([plain(should_register=forever)]).offered())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ask())


def test_schemas_survive_as_json():
    for made in (native(Registry([plain()]).list(), host).tools for host in ("openai", "anthropic", "gemini")):
        assert json.loads(json.dumps(made)) == made


def test_unknown_names_of_the_package_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        callmark.Nothing  # noqa: B018


def test_engines_agree_on_what_is_left_unevaluated_in_a_branch():
    import jsonschema_rs  # noqa: F401  # "auto" would be the other engine without it, and nothing be compared

    branch = {"if": False, "else": {"unevaluatedProperties": {"items": {}}}}
    part = {"unevaluatedProperties": {"type": "integer"}, **branch}
    schema = {"$schema": "https://json-schema.org/draft/2019-09/schema", "properties": {"x": part}}
    verdicts = {Checker(schema, engine=engine).is_valid({"x": {"b": "text"}}) for engine in ("jsonschema", "auto")}
    assert len(verdicts) == 1
