"""JSON Schemas as pieces of grammars, in the body language of a dialect.

Properties come in the schema's order, and no others than it names. What a grammar cannot say, or not in reasonable
size, is not enforced, and told: check arguments after parsing all the same. Strings, lists, numbers and white space
are bounded, or a weak model goes on for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from callmark.dialects.values import Unwritable, as_json, brace_key
from callmark.errors import UsageError
from callmark.toolshapes import pointed
from callmark.writing.automata import Chars, Lit, Node, Range, Ref, Rep, alt, maybe, seq, times, token, weight, without
from callmark.writing.toolset import ANNOTATIONS, Schema, branches, contradicted, is_false, is_of, resolved


class Bounds(NamedTuple):
    """What a grammar may write where a schema sets no bound: characters of a string, items of a list, and brackets
    around each other in a value of which nothing is known.
    """

    string: int = 512
    items: int = 32
    depth: int = 2


BOUNDS: Final = Bounds()
KEY_LIMIT: Final = 64  # characters of a key that the schema does not name
FREE_MEMBERS: Final = 8  # members of an object of which nothing is known
_ENUMERATED: Final = 64  # integers between bounds that are written out one by one

_SHARED: Final = 120  # characters from which on a value is a rule of its own, where all values together are too long

_HEX: Final = Chars((("0", "9"), ("a", "f"), ("A", "F")))
_DIGIT: Final = Chars((("0", "9"),))
_ESCAPED: Final[tuple[Node, ...]] = (
    seq("\\", Chars(tuple((char, char) for char in "\\/bfnrt"))),
    seq("\\u", Chars((("0", "9"), ("a", "c"), ("e", "f"), ("A", "C"), ("E", "F"))), Rep(_HEX, 3, 3)),
)  # fmt: skip  # but for the quote, which may be an entity
_ENTITY: Final = seq("&", alt(["amp;", "lt;", "gt;", "apos;", "#x27;"]))  # of what ends no string of JSON
_WHOLE: Final = alt(["0", seq(Chars((("1", "9"),)), Rep(_DIGIT, 0, 18))])  # 64 bits
_FRACTION: Final = seq(
    maybe(seq(".", Rep(_DIGIT, 1, 20))),  # 0.000 and 17 digits: what `repr` writes
    maybe(seq(Chars((("e", "e"), ("E", "E"))), maybe(Chars((("+", "+"), ("-", "-")))), Rep(_DIGIT, 1, 2))),
)
_ENFORCED: Final = {
    *ANNOTATIONS, "$anchor", "$defs", "$id", "additionalProperties", "anyOf", "const", "definitions", "enum", "id",
    "items", "maxItems", "maxLength", "minItems", "minLength", "nullable", "oneOf", "prefixItems", "properties",
    "required", "strict", "type",
}  # fmt: skip
_OF_KINDS: Final = (
    "additionalProperties", "items", "maxItems", "maxLength", "minItems", "minLength", "prefixItems", "required",
)  # fmt: skip  # what is enforced only where the schema says of which type the value is


def members(schema: Schema) -> Schema:
    """Return the properties of a schema in its order, and behind them those that are only required."""
    required, properties = schema.get("required", ()), schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    others = others if isinstance(others, dict) else {}
    possible = {name: inner for name, inner in properties.items() if inner is not False}
    return {**possible, **{name: others for name in required if name not in properties}}


def possible_branches(schema: Schema, root: Schema) -> list[Schema]:
    """Return the schemas of which a resolved one is a union, without those that nothing satisfies; [] for no union."""
    ways = (way for way in branches(schema, root) if not is_false(way, root))
    return [way for way in ways if _possible(resolved(way, root), root)]


def _possible(schema: Schema, root: Schema) -> bool:
    """Whether a resolved schema does not contradict itself, and lists no values or one that fits what else it says."""
    listed = _listed(schema)
    return not any(contradicted(schema, root)) and (not listed or any(_fits(member, schema) for member in listed))


def given(schema: Schema) -> list[Any]:
    """Return the values that a schema lists, without those of another type, length or size; none where it lists none.

    Where that leaves none, all: what contradicts itself is not told here.
    """
    listed = _listed(schema)
    return [member for member in listed if _fits(member, schema)] or listed


def _listed(schema: Schema) -> list[Any]:
    listed: list[Any] = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return listed


def _fits(value: Any, schema: Schema) -> bool:
    """Whether a value is of the type that a schema wants and, if a string or a number, of the length or size."""
    kinds = schema.get("type")
    if kinds is not None and not is_of(value, [kinds] if isinstance(kinds, str) else kinds):
        return False
    if isinstance(value, str):
        return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return not number or bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))


def writable(listed: list[Any], write: Callable[[Any], str]) -> list[str]:
    """Return the texts of values, without those that cannot be written."""
    texts = []
    for value in listed:
        with suppress(Unwritable):
            texts.append(write(value))
    return texts


def _span(schema: Schema) -> range:
    """Return the integers between small bounds, which are written out, none where a schema says something else."""
    least, most = schema.get("minimum"), schema.get("maximum")
    if schema.get("type") == "integer" and isinstance(least, int) and isinstance(most, int):
        return range(least, most + 1) if most - least < _ENUMERATED else range(0)
    return range(0)


def _bounded(
    closers: Iterable[str],
    closed: tuple[Range, ...],
    escapes: tuple[Node, ...],
    least: int,
    most: int | None,
    bound: int,
) -> Node:
    """Return a text without closers, of at most `bound` characters where `most` is None.

    Where the schema says how many characters there may be, a bracket of each closer cannot stand at all: a piece that
    could have become a closer would count as one character, however long it is.
    """
    if most is not None:
        closers = {next((char for char in "<>" if char in closer), closer[0]) for closer in closers}
    return without(closers, closed, escapes, least, max(bound if most is None else most, least))


def _some(pieces: list[Node], comma: Node) -> Node:
    """Return one or more of the pieces in their order, with commas between them.

    By halves: n pieces give a text of n log n, where one way for each piece to be the first would give n times n.
    """
    if len(pieces) == 1:
        return pieces[0]
    half = len(pieces) // 2
    behind = (maybe(seq(comma, piece)) for piece in pieces[half:])
    return alt([seq(_some(pieces[:half], comma), *behind), _some(pieces[half:], comma)])


def _begun(pieces: list[Node], comma: Node) -> Node:
    """Return one or more of the pieces from the first on, with commas between them: by halves, as above."""
    if len(pieces) == 1:
        return pieces[0]
    half = len(pieces) // 2
    behind = seq(comma, _begun(pieces[half:], comma))
    if half == 1:
        return seq(pieces[0], maybe(behind))
    return alt([seq(*_apart(pieces[:half], comma), behind), _begun(pieces[:half], comma)])


def _apart(pieces: list[Node], comma: Node) -> list[Node]:
    """Return the pieces with commas between them."""
    return [piece for number, node in enumerate(pieces) for piece in ([comma] * bool(number) + [node])]


class Values:
    """Makes pieces of a grammar from schemas of one tool, in one body language.

    root      the schema of the tool's arguments
    literal   writes a value in that language
    quote     the delimiter of strings where the language has no escapes, "" for JSON's strings
    closers   words that no string may hold
    entities  whether XML's entities are read, also in the strings of JSON: each of them counts as one character
    prefix    what the names of its rules begin with
    bounds    what holds where a schema sets no bound
    shared    whether values of more than a few characters are rules of their own, each of which is written once
    """

    def __init__(
        self,
        tool: str,
        root: Schema,
        literal: Callable[[Any], str] = as_json,
        *,
        quote: str = "",
        closers: tuple[str, ...] = (),
        entities: bool = False,
        prefix: str = "r",
        bounds: Bounds = BOUNDS,
        shared: bool = False,
    ) -> None:
        self.unenforced: list[str] = []
        self.rules: dict[str, Node] = {}
        self.root = root
        self.literal = literal
        self._tool = tool
        self._quote = quote
        self._closers = closers
        self._entities = entities
        self._prefix = prefix
        self._bounds = bounds
        self._named: dict[str, str] = {}
        self._shared: dict[Node, str] | None = {} if shared else None

    def value(self, schema: Any, where: str) -> Node:
        """Return what a value that satisfies `schema` looks like."""
        node = self._value(schema, where)
        if self._shared is None or weight(node, {}) <= _SHARED:
            return node
        name = self._shared.setdefault(node, f"{self._prefix}s{len(self._shared)}")
        self.rules[name] = node
        return Ref(name)

    def _value(self, schema: Any, where: str) -> Node:
        if schema is True or schema == {}:
            return self._any(self._bounds.depth)
        if not isinstance(schema, dict):
            raise UsageError(
                f"tool {self._tool!r}: {where}: expected a schema that some value satisfies, found {schema!r}"
            )
        if "$ref" in schema:
            return self._reference(schema, where)
        schema = resolved(schema, self.root)
        ways = self.ways(schema, where)
        if ways:
            return alt(self.value(way, where) for way in ways)
        if "const" in schema or "enum" in schema:
            return self.one_of(given(schema), where)
        kinds = schema.get("type", "object" if "properties" in schema else None)
        if kinds is None:
            return self._any(self._bounds.depth)
        return alt(self._of_kind(kind, schema, where) for kind in ([kinds] if isinstance(kinds, str) else kinds))

    def one_of(self, listed: list[Any], where: str) -> Node:
        """Return one of the values in a list; those that the language cannot write are left out."""
        texts = writable(listed, self.literal)
        if not texts:
            found = "none that the dialect can write" if listed else "none"
            raise UsageError(f"tool {self._tool!r}: {where}.enum: expected at least one value, found {found}")
        return alt(texts)

    def string(self, least: int = 0, most: int | None = None, *, known: bool = True) -> Node:
        """Return a string of `least` to `most` characters; without `most` it has a bound that is not the schema's.

        Where nothing is known of it, what a closer begins with is kept out: there are many such strings in a grammar,
        and each has all closers in it.
        """
        closers = (self._quote,) if self._quote else self._closers
        if not known:
            closers = tuple(sorted({closer[:2] for closer in closers}))
        if self._quote:
            return token(self._quote, self.raw(closers, least, most), self._quote)
        closed: tuple[Range, ...] = (("\x00", "\x1f"), ('"', '"'), ("\\", "\\"))
        empty = self.literal("")  # two quotes, which are entities in an attribute of XML
        quote = empty[: len(empty) // 2]
        escapes = (seq("\\", quote), *_ESCAPED)
        if self._entities:
            closed, escapes = (*closed, ("&", "&")), (*escapes, _ENTITY)
        return token(quote, _bounded(closers, closed, escapes, least, most, self._bounds.string), quote)

    def raw(
        self, closers: Iterable[str], least: int = 0, most: int | None = None, closed: tuple[Range, ...] = ()
    ) -> Node:
        """Return a text as it is, in which none of `closers` stands."""
        escapes: tuple[Node, ...] = ()
        if self._entities and (least > 1 or most is not None):
            closed, escapes = (*closed, ("&", "&")), (_ENTITY, Lit("&quot;"))
        return token(_bounded(closers, closed, escapes, least, most, self._bounds.string))

    def tell(self, where: str, keywords: list[str]) -> None:
        """Note what is not enforced at a place."""
        self.unenforced += [f"{self._tool}{where}: {keyword}" for keyword in keywords if not keyword.startswith("x-")]

    def _reference(self, schema: Schema, where: str) -> Node:
        self.tell(where, sorted(schema.keys() - ANNOTATIONS - {"$ref"}))
        name = self._named.get(schema["$ref"])
        if name is None:
            name = self._named[schema["$ref"]] = f"{self._prefix}{len(self._named)}"
            self.rules[name] = self.value(pointed(schema["$ref"], self.root), where)
        return Ref(name)

    def ways(self, schema: Schema, where: str) -> list[Schema]:
        """Return the schemas of which a resolved one is a union, and note what of it no grammar says."""
        bounds = {"minimum", "maximum"} if _span(schema) or _listed(schema) else set()
        if "type" in schema and schema.get("minimum") == 0:
            bounds = bounds | {"minimum"}
        self.tell(where, sorted(schema.keys() - _ENFORCED - bounds))
        self.tell(where, ["oneOf (more than one may fit)"] * ("oneOf" in schema))
        if not schema.keys() & {"type", "properties", "const", "enum", "anyOf", "oneOf"}:
            self.tell(where, [key for key in _OF_KINDS if key in schema])
        return possible_branches(schema, self.root)

    def _of_kind(self, kind: str, schema: Schema, where: str) -> Node:
        match kind:
            case "string":
                return self.string(schema.get("minLength", 0), schema.get("maxLength"))
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

    @staticmethod
    def _number(kind: str, schema: Schema) -> Node:
        if span := _span(schema):
            return alt(map(str, span))
        sign = [] if schema.get("minimum", -1) >= 0 else [maybe("-")]
        return token(*sign, _WHOLE, *([_FRACTION] if kind == "number" else []))

    def _array(self, schema: Schema, where: str) -> Node:
        wanted = schema.get("minItems", 0)
        first = schema.get("prefixItems", [])[: schema.get("maxItems")]
        end = next((number for number, inner in enumerate(first) if inner is False and number >= wanted), None)
        head = [self.value(inner, f"{where}[{n}]") for n, inner in enumerate(first[:end])]
        least = max(wanted - len(head), 0)
        most = max(schema.get("maxItems", self._bounds.items) - len(head), least)
        comma = token(",", maybe(" "))
        inner = schema.get("items", {}) if end is None else False
        if inner is False or most == 0:
            items: Node = Lit("")
        else:
            item = self.value(inner, f"{where}[]")
            if head:
                items = times(seq(comma, item), least, most)
            else:
                rest = seq(item, times(seq(comma, item), max(least - 1, 0), most - 1))
                items = rest if least else maybe(rest)
        if not head:
            return seq("[", items, "]")
        head[-1] = seq(head[-1], items)
        begun, free = _apart(head[:wanted], comma), head[wanted:]
        if free:
            begun.append(maybe(seq(comma, _begun(free, comma)) if begun else _begun(free, comma)))
        return seq("[", *begun, "]")

    def object(self, schema: Schema, where: str) -> Node:
        """Return an object with the schema's properties, in its order."""
        ordered = members(schema)
        if not ordered and (schema.get("additionalProperties", True) is not False or "patternProperties" in schema):
            return self._free_object(schema, where)
        return seq("{", self.members(ordered, schema, where), "}")

    def members(self, ordered: Schema, schema: Schema, where: str, *, equals: bool = False) -> Node:
        """Return the properties one after the other, those that are required and maybe the others."""
        comma = token(",", maybe(" "))
        between: list[Node | str] = ["="] if equals else [":", maybe(" ")]
        required = set(schema.get("required", ()))
        pairs = [
            (seq(name if equals else self._key(name), *between, self.value(inner, f"{where}.{name}")), name in required)
            for name, inner in ordered.items()
        ]
        first = next((number for number, (_, needed) in enumerate(pairs) if needed), None)
        if first is None:
            return alt(["", _some([pair for pair, _ in pairs], comma)]) if pairs else Lit("")
        before = (maybe(seq(pair, comma)) for pair, _ in pairs[:first])
        after = (seq(comma, pair) if needed else maybe(seq(comma, pair)) for pair, needed in pairs[first + 1 :])
        return seq(*before, pairs[first][0], *after)

    def _key(self, name: str) -> str:
        return brace_key(name, self._quote) if self._quote else self.literal(name)

    def _free_object(self, schema: Schema, where: str) -> Node:
        self.tell(where, ["keys that differ"])
        inner = schema.get("additionalProperties", True)
        if inner is False:
            inner = {"anyOf": [*schema["patternProperties"].values()]}
        value = self._any(max(self._bounds.depth - 1, 0)) if inner in (True, {}) else self.value(inner, f"{where}.*")
        return self._free_members(value)

    def _any_key(self) -> Node:
        quoted = self.string(1, KEY_LIMIT, known=False)
        if not self._quote:
            return quoted
        letters = (("A", "Z"), ("a", "z"), ("_", "_"))
        return alt([quoted, token(Chars(letters), Rep(Chars((("0", "9"), *letters)), 0, KEY_LIMIT - 1))])

    def _free_members(self, value: Node) -> Node:
        pair = seq(self._any_key(), ":", maybe(" "), value)
        return seq("{", maybe(seq(pair, Rep(seq(",", maybe(" "), pair), 0, FREE_MEMBERS - 1))), "}")

    def _any(self, depth: int) -> Node:
        """Return any value with at most `depth` brackets around each other."""
        ways = [self.string(known=False), token(maybe("-"), _WHOLE, _FRACTION), *map(self.literal, (True, False, None))]
        if depth:
            inner = self._any(depth - 1)
            listed = seq(inner, Rep(seq(",", maybe(" "), inner), 0, FREE_MEMBERS - 1))
            one = seq(self._any_key(), ":", maybe(" "), inner)
            ways += [seq("[", maybe(listed), "]"), seq("{", maybe(one), "}")]
        return alt(ways)
