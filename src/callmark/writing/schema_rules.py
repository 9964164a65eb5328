"""JSON Schemas as pieces of grammars, in the body language of a dialect.

Properties come in the schema's order, and no others than it names. What a grammar cannot say, or not in reasonable
size, is not enforced, and told: check arguments after parsing all the same. Strings, lists, numbers and white space
are bounded, or a weak model goes on for ever.
"""

from __future__ import annotations

import json
from typing import Any, Final

from callmark.errors import UsageError
from callmark.toolshapes import pointed
from callmark.writing.automata import Alt, Chars, Lit, Node, Ref, Rep, alt, maybe, seq, times
from callmark.writing.toolset import ANNOTATIONS, Schema, branches, resolved

STRING_LIMIT: Final = 512  # characters of a string for which the schema gives no maxLength
ITEMS_LIMIT: Final = 32  # items of a list for which it gives no maxItems
_FREE_MEMBERS: Final = 8  # members of an object of which nothing is known
_ENUMERATED: Final = 64  # integers between bounds that are written out one by one
_ANY_DEPTH: Final = 2  # brackets in a value of which nothing is known

_HEX: Final = Chars((("0", "9"), ("a", "f"), ("A", "F")))
_DIGIT: Final = Chars((("0", "9"),))
_ESCAPED: Final = (
    seq("\\", Chars(tuple((char, char) for char in '"\\/bfnrt'))),
    seq("\\u", Chars((("0", "9"), ("a", "c"), ("e", "f"), ("A", "C"), ("E", "F"))), Rep(_HEX, 3, 3)),
)  # fmt: skip
_WHOLE: Final = alt(["0", seq(Chars((("1", "9"),)), Rep(_DIGIT, 0, 14))])
_FRACTION: Final = seq(
    maybe(seq(".", Rep(_DIGIT, 1, 15))),
    maybe(seq(Chars((("e", "e"), ("E", "E"))), maybe(Chars((("+", "+"), ("-", "-")))), Rep(_DIGIT, 1, 2))),
)
_ENFORCED: Final = {
    *ANNOTATIONS, "$anchor", "$defs", "$id", "additionalProperties", "anyOf", "const", "definitions", "enum", "id",
    "items", "maxItems", "maxLength", "minItems", "minLength", "nullable", "oneOf", "prefixItems", "properties",
    "required", "strict", "type",
}  # fmt: skip


def members(schema: Schema) -> Schema:
    """Return the properties of a schema in its order, and behind them those that are only required."""
    required, properties = schema.get("required", ()), schema.get("properties", {})
    possible = {name: inner for name, inner in properties.items() if inner is not False or name in required}
    return {**possible, **{name: {} for name in required if name not in properties}}


class Values:
    """Makes pieces of a grammar from schemas of one tool, in one body language.

    python    words and lists as Python writes them
    quote     the delimiter of strings where the language has no escapes, "" for JSON's strings
    closed    characters that no string may hold, beside those that JSON forbids
    """

    def __init__(self, tool: str, root: Schema, *, python: bool = False, quote: str = "", closed: str = "") -> None:
        self.unenforced: list[str] = []
        self.rules: dict[str, Node] = {}
        self._tool = tool
        self._root = root
        self._python = python
        self._quote = quote
        self._closed = closed
        self._named: dict[str, str] = {}

    def value(self, schema: Any, where: str) -> Node:
        """Return what a value that satisfies `schema` looks like."""
        if schema is True or schema == {}:
            return self._any(_ANY_DEPTH)
        if not isinstance(schema, dict):
            raise UsageError(
                f"tool {self._tool!r}: {where}: expected a schema that some value satisfies, found {schema!r}"
            )
        if "$ref" in schema:
            return self._reference(schema, where)
        schema = resolved(schema, self._root)
        ways = self.ways(schema, where)
        if ways:
            return alt(self.value(way, where) for way in ways)
        if "const" in schema:
            return Lit(self.literal(schema["const"]))
        if "enum" in schema:
            if not schema["enum"]:
                raise UsageError(f"tool {self._tool!r}: {where}.enum: expected at least one value, found none")
            return alt(self.literal(member) for member in schema["enum"])
        kinds = schema.get("type", "object" if "properties" in schema else None)
        if kinds is None:
            return self._any(_ANY_DEPTH)
        return alt(self._of_kind(kind, schema, where) for kind in ([kinds] if isinstance(kinds, str) else kinds))

    def literal(self, value: Any) -> str:
        """Return a value as the body language writes it."""
        if isinstance(value, str) and self._quote:
            return f"{self._quote}{value}{self._quote}"
        if isinstance(value, str):
            text = json.dumps(value, ensure_ascii=False)
            return "".join(f"\\u{ord(char):04x}" if char in self._closed else char for char in text)
        if isinstance(value, list):
            return "[" + ", ".join(map(self.literal, value)) + "]"
        if isinstance(value, dict):
            colon = ":" if self._quote else ": "
            return (
                "{" + ", ".join(f"{self.literal(key)}{colon}{self.literal(item)}" for key, item in value.items()) + "}"
            )
        return repr(value) if self._python and (value is None or isinstance(value, bool)) else json.dumps(value)

    def string(self, least: int = 0, most: int = STRING_LIMIT) -> Node:
        """Return a string of `least` to `most` characters."""
        if self._quote:
            first = self._quote[0]
            return seq(
                self._quote,
                times(Chars(((first, first), ("\ud800", "\udfff")), negated=True), least, most),
                self._quote,
            )
        closed = tuple((char, char) for char in self._closed)
        plain = Chars((("\x00", "\x1f"), ('"', '"'), ("\\", "\\"), *closed), negated=True)
        return seq('"', times(Alt((plain, *_ESCAPED)), least, most), '"')

    def _tell(self, where: str, keywords: list[str]) -> None:
        self.unenforced += [f"{self._tool}{where}: {keyword}" for keyword in keywords if not keyword.startswith("x-")]

    @staticmethod
    def _said_by_number(schema: Schema) -> set[str]:
        """Return the keywords on numbers that are enforced: a small range of integers, and a sign."""
        least, most = schema.get("minimum"), schema.get("maximum")
        if schema.get("type") == "integer" and isinstance(least, int) and isinstance(most, int):
            return {"minimum", "maximum"} if 0 <= most - least < _ENUMERATED else set()
        return {"minimum"} if least == 0 else set()

    def _reference(self, schema: Schema, where: str) -> Node:
        self._tell(where, sorted(schema.keys() - ANNOTATIONS - {"$ref"}))
        name = self._named.get(schema["$ref"])
        if name is None:
            name = self._named[schema["$ref"]] = f"r{len(self._named)}"
            self.rules[name] = Lit("")  # its place, before those of the rules that it needs
            self.rules[name] = self.value(pointed(schema["$ref"], self._root), where)
        return Ref(name)

    def ways(self, schema: Schema, where: str) -> list[Schema]:
        """Return the schemas of which a resolved one is a union, and note what of it no grammar says."""
        self._tell(where, sorted(schema.keys() - _ENFORCED - self._said_by_number(schema)))
        self._tell(where, ["oneOf (more than one may fit)"] * ("oneOf" in schema))
        return branches(schema, self._root)

    def _of_kind(self, kind: str, schema: Schema, where: str) -> Node:
        match kind:
            case "string":
                least, most = schema.get("minLength", 0), schema.get("maxLength", STRING_LIMIT)
                return self.string(least, max(most, least) if "maxLength" in schema else max(STRING_LIMIT, least))
            case "integer" | "number":
                return self._number(kind, schema)
            case "boolean":
                return alt([self.literal(True), self.literal(False)])
            case "null":
                return Lit(self.literal(None))
            case "array":
                return self._array(schema, where)
            case _:
                return self.object(schema, where)

    def _number(self, kind: str, schema: Schema) -> Node:
        least, most = schema.get("minimum"), schema.get("maximum")
        if kind == "integer" and {"minimum", "maximum"} <= self._said_by_number(schema) and least is not None:
            return alt(str(number) for number in range(least, most + 1))  # type: ignore[operator]  # both are integers
        sign = [] if least is not None and least >= 0 else [maybe("-")]
        return seq(*sign, _WHOLE, *([_FRACTION] if kind == "number" else []))

    def _array(self, schema: Schema, where: str) -> Node:
        head = [self.value(inner, f"{where}[{n}]") for n, inner in enumerate(schema.get("prefixItems", ()))]
        least = max(schema.get("minItems", 0) - len(head), 0)
        most = max(schema.get("maxItems", max(ITEMS_LIMIT, least)) - len(head), least)
        comma = seq(",", maybe(" "))
        inner = schema.get("items", {})
        if inner is False or most == 0:
            items: Node = Lit("")
        else:
            item = self.value(inner, f"{where}[]")
            if head:
                items = times(seq(comma, item), least, most)
            else:
                rest = seq(item, times(seq(comma, item), max(least - 1, 0), most - 1))
                items = rest if least else maybe(rest)
        first = [piece for number, node in enumerate(head) for piece in ([comma] * bool(number) + [node])]
        return seq("[", *first, items, "]")

    def object(self, schema: Schema, where: str) -> Node:
        """Return an object with the schema's properties, in its order."""
        ordered = members(schema)
        if not ordered and schema.get("additionalProperties", True) is not False:
            return self._free_object(schema, where)
        return seq("{", self.members(ordered, schema, where), "}")

    def members(self, ordered: Schema, schema: Schema, where: str, *, equals: bool = False) -> Node:
        """Return the properties one after the other, those that are required and maybe the others."""
        comma = seq(",", maybe(" "))
        between: list[Node | str] = ["="] if equals else [":", maybe(" ")]
        required = set(schema.get("required", ()))
        pairs = [
            (seq(name if equals else self._key(name), *between, self.value(inner, f"{where}.{name}")), name in required)
            for name, inner in ordered.items()
        ]
        starts: list[Node] = []
        for number, (pair, needed) in enumerate(pairs):
            rest = [seq(comma, after) if must else maybe(seq(comma, after)) for after, must in pairs[number + 1 :]]
            starts.append(seq(pair, *rest))
            if needed:
                break
        else:
            starts.append(Lit(""))
        return alt(starts)

    def _key(self, name: str) -> str:
        return name if self._quote and name.isidentifier() and name.isascii() else self.literal(name)

    def _free_object(self, schema: Schema, where: str) -> Node:
        self._tell(where, ["keys that differ"])
        inner = schema.get("additionalProperties", True)
        value = self._any(_ANY_DEPTH - 1) if inner in (True, {}) else self.value(inner, f"{where}.*")
        return self._free_members(value)

    def _free_members(self, value: Node) -> Node:
        pair = seq(self.string(1, 64), ":", maybe(" "), value)
        return seq("{", maybe(seq(pair, Rep(seq(",", maybe(" "), pair), 0, _FREE_MEMBERS - 1))), "}")

    def _any(self, depth: int) -> Node:
        """Return any value with at most `depth` brackets around each other."""
        ways = [self.string(), seq(maybe("-"), _WHOLE, _FRACTION), *map(self.literal, (True, False, None))]
        if depth:
            inner = self._any(depth - 1)
            listed = seq(inner, Rep(seq(",", maybe(" "), inner), 0, _FREE_MEMBERS - 1))
            one = seq(self.string(1, 64), ":", maybe(" "), inner)
            ways += [seq("[", maybe(listed), "]"), seq("{", maybe(one), "}")]
        return alt(ways)
