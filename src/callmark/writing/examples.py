"""Makes example arguments from a tool's own schema.

They are for prompts: an example must be valid, as jsonschema says, and a tool for which none is found is taught without
one. Each part of an example is tried by itself, and no schema, however hostile, makes more than so many tries.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from re import _constants as sre  # as in `infixes`
from typing import Any, Final

from callmark.dialects.parsed import REPEATS, one_character, tree
from callmark.writing.toolset import Schema, ToolSpec, branches, resolved

_DEPTHS: Final = (6, 24)  # a schema may hold itself: the first way out is taken
_WAYS: Final = 6  # values that are tried for one part of an example; the parts are tried one by one, not together
_TRIES: Final = 1000  # parts of one schema that are tried: what has no example by then is taught without
_REFERENCES: Final = 10_000  # followed for one schema: few lines of them may stand for millions
_LENGTH_LIMIT: Final = 160  # characters of a text that is tried against a pattern
_PATHS_LIMIT: Final = 30_000  # ways in which a pattern may match it: two repetitions of any length have fewer
_LONG_LIMIT: Final = 12  # characters where a pattern has more: it may take exponential time
_LIKELY: Final = "aA1 -_." + "".join(map(chr, range(33, 127)))  # characters that are tried for a set

_WITH_PATTERNS: Final = ("pattern", "patternProperties", "additionalProperties")

_OTHERS: Final = ("string", "integer", "boolean", "null")  # are tried where a schema says what a value is not

_FORMATS: Final = {
    "date": "2024-05-17", "time": "09:30:00Z", "date-time": "2024-05-17T09:30:00Z", "email": "anna@example.com",
    "uri": "https://example.com/", "url": "https://example.com/", "hostname": "example.com", "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1", "uuid": "123e4567-e89b-12d3-a456-426614174000", "duration": "PT15M",
    "decimal": "9.50", "base64": "aGVsbG8=",
}  # fmt: skip
_PATTERNED: Final = (
    "a", "A", "1", "ab", "abc", "ABC", "123", "12345", "a1", "A1", "AB-123", "2024-05-17", "09:30", "#a1b2c3",
    "anna@example.com", "https://example.com/", "+4712345678", "x_y", "x-y", "1.0.0", "en-US", "EUR", "P1D",
    "Passw0rd!",
)  # fmt: skip


def example_arguments(
    spec: ToolSpec, writable: Callable[[dict[str, Any]], bool] = lambda arguments: True
) -> dict[str, Any] | None:
    """Return arguments that satisfy the tool's schema: its required ones, or its first; None if none are found.

    writable  whether an argument can be written: one that cannot is passed over for another value of it
    """
    for depth in _DEPTHS:
        try:
            _, example = _Maker(spec.schema, writable).first(spec.schema, "", depth)
        except (RecursionError, _NoMoreTriesError):
            return None
        if isinstance(example, dict):
            return example
    return None


class _NoMoreTriesError(Exception):
    pass


class _UndecidedError(Exception):
    pass


class _Maker:
    """Makes values for the parts of one schema, until its tries are used up."""

    def __init__(self, root: Schema, writable: Callable[[dict[str, Any]], bool]) -> None:
        from jsonschema import Draft202012Validator  # 50 ms, and only examples need it
        from jsonschema.validators import extend
        from referencing.exceptions import Unresolvable
        from referencing.jsonschema import EMPTY_REGISTRY

        self._root = root
        self._writable = writable
        quick = {keyword: _quick(Draft202012Validator.VALIDATORS[keyword]) for keyword in _WITH_PATTERNS}
        quick["$ref"] = self._counted(Draft202012Validator.VALIDATORS["$ref"])
        kind = extend(Draft202012Validator, quick)  # type: ignore[no-untyped-call]  # which has no stub
        self._validator = kind(root, registry=EMPTY_REGISTRY)
        # A reference that only its draft knows leads nowhere, a pattern is none, a number has no multiples.
        self._undecided = (Unresolvable, re.error, ArithmeticError, _UndecidedError)
        self._tries = _TRIES
        self._references = _REFERENCES

    def _counted(self, check: Callable[..., Any]) -> Callable[..., Any]:
        """Return the check of references, which ends all when they were too many."""

        def checked(*given: Any) -> Any:
            self._references -= 1
            if self._references < 0:
                raise _NoMoreTriesError
            return check(*given)

        return checked

    def conforms(self, value: Any, schema: Any) -> bool:
        """Return whether a value satisfies a part of the schema."""
        try:
            return bool(self._validator.evolve(schema=schema).is_valid(value))
        except self._undecided:
            return False

    def first(self, schema: Any, key: str, depth: int, *, is_argument: bool = False) -> tuple[bool, Any]:
        """Return whether a value for a schema is found, and the first; for an argument, the first to be written."""
        for candidate in self._candidates(schema, key, depth):
            if self.conforms(candidate, schema) and (not is_argument or self._writable({key: candidate})):
                return True, candidate
        return False, None

    def _candidates(self, schema: Any, key: str, depth: int) -> Iterator[Any]:
        """Yield values that are likely to satisfy a schema, the best first."""
        self._tries -= 1
        if self._tries < 0:
            raise _NoMoreTriesError
        if depth < 0:
            return
        schema = resolved(schema, self._root)
        examples = schema.get("examples")
        yield from examples if isinstance(examples, list) else ()
        for given in ("example", "const", "default"):
            if given in schema:
                yield schema[given]
        yield from schema.get("enum", [])[:_WAYS]
        for way in branches(schema, self._root)[:_WAYS]:
            yield from self._candidates(way, key, depth - 1)
        untyped = _OTHERS if "not" in schema else "string"
        kinds = schema.get("type", "object" if "properties" in schema else untyped)
        for kind in (kinds,) if isinstance(kinds, str) else kinds:
            yield from self._of_kind(kind, schema, key, depth)

    def _of_kind(self, kind: str, schema: Schema, key: str, depth: int) -> Iterator[Any]:
        match kind:
            case "string":
                yield from _strings(schema, key)
            case "integer" | "number":
                yield from _numbers(schema)
            case "boolean":
                yield from (True, False)
            case "null":
                yield None
            case "array":
                yield from self._arrays(schema, key, depth)
            case _:
                yield from self._objects(schema, key, depth)

    def _arrays(self, schema: Schema, key: str, depth: int) -> Iterator[Any]:
        least = schema.get("minItems", 0)
        if least > 32:
            return
        head = []
        for inner in schema.get("prefixItems", []):
            found, value = self.first(inner, key, depth - 1)
            if not found:
                return
            head.append(value)
        items = schema.get("items", {})
        ways = [value for value in self._candidates(items, key, depth - 1) if self.conforms(value, items)]
        if "contains" in schema:
            ways += list(self._candidates(schema["contains"], key, depth - 1))[:1]
        unique = [value for number, value in enumerate(ways) if value not in ways[:number]]
        need = max(least - len(head), 0 if head else 1)
        if ways:
            yield head + [ways[number % len(ways)] for number in range(need)]
            yield head + unique[: max(need, len(unique) and 1)]
            yield head + [*unique, *range(need)][:need]
            yield head + ways[-1:]
        yield head
        yield []

    def _objects(self, schema: Schema, key: str, depth: int) -> Iterator[Any]:
        properties = schema.get("properties", {})
        values: dict[str, Any] = {}
        required = schema.get("required", ())
        others_needed = schema.get("dependentRequired", {})
        needed = [*required, *(other for first in required for other in others_needed.get(first, ()))]
        for name in needed:
            found, value = self.first(properties.get(name, {}), name, depth - 1, is_argument=not key)
            if not found:
                return
            values[name] = value
        places = {name: place for place, name in enumerate(properties)}

        def ordered(found: dict[str, Any]) -> dict[str, Any]:
            """In the schema's order, in which exported grammars want them."""
            return dict(sorted(found.items(), key=lambda item: places.get(item[0], len(places))))

        others = []
        some = properties or (_unnamed(schema) if "minProperties" in schema else {})
        for name, inner in [pair for pair in some.items() if pair[0] not in values][:_WAYS]:
            found, value = self.first(inner, name, depth - 1, is_argument=not key)
            if found:
                others.append((name, value))
        if not values and others:
            yield dict(others[:1])
        for count in range(len(others) + 1):
            yield ordered({**values, **dict(others[:count])})


def _strings(schema: Schema, key: str) -> Iterator[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", 256)
    if "pattern" in schema:
        yield from _PATTERNED
        yield from _matching(schema["pattern"], least)
    words = re.sub(r"[_\-.\s]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key)).strip().lower()
    kind = str(schema.get("format", schema.get("contentEncoding")))
    text = f"some {words or 'text'}"
    texts = [_FORMATS[kind]] if kind in _FORMATS else [text, *(f"{text} {number}" for number in range(2, _WAYS + 1))]
    for text in texts:
        yield text[: max(most, 0)].ljust(min(least, 4096), "x")


def _unnamed(schema: Schema) -> Schema:
    """Return properties such as an object may have that names none."""
    patterns = schema.get("patternProperties", {})
    named = {name: inner for pattern, inner in patterns.items() for name in list(_matching(pattern, 0))[:1]}
    return named or {"key": schema.get("additionalProperties", {})}


def _matching(pattern: str, length: int) -> Iterator[str]:
    """Yield texts that a pattern probably matches: its first choices that hold something, repeated no more than need
    be, or made longer.
    """
    parsed = _parsed(pattern)
    for more in (0, 1, length):
        text, _ = _first_choices(parsed, min(more, _LENGTH_LIMIT))
        if text and text.isprintable():
            yield text.ljust(min(length, _LENGTH_LIMIT), "x")


def _parsed(pattern: str) -> list[Any]:
    """Return a pattern as its parser gives it, nothing where it is none."""
    try:
        return list(tree(pattern))
    except (re.error, RecursionError, OverflowError):
        return []


def _quick(check: Callable[..., Any]) -> Callable[..., Any]:
    """Return a keyword's check that gives up where a pattern would be held to a text for long."""

    def checked(validator: Any, said: Any, instance: Any, schema: Schema) -> Any:
        texts = [instance] if isinstance(instance, str) else instance if isinstance(instance, dict) else []
        own = [schema["pattern"]] if "pattern" in schema else []
        patterns = own if isinstance(instance, str) else schema.get("patternProperties", ())
        if any(len(text) > _tried_length(pattern) for pattern in patterns for text in texts):
            raise _UndecidedError
        return check(validator, said, instance, schema)

    return checked


@lru_cache(maxsize=256)
def _tried_length(pattern: str) -> int:
    """Return how many characters a text may have that is tried against a pattern."""
    return _LENGTH_LIMIT if _first_choices(_parsed(pattern), 0)[1] <= _PATHS_LIMIT else _LONG_LIMIT


def _first_choices(items: Any, more: int) -> tuple[str, int]:
    """Return a text for a parsed pattern, and in how many ways it may match one: no fewer than it does.

    What may be repeated is so `more` times. What is none of characters, groups and repetitions is passed over.
    """
    text, paths = "", 1
    for op, value in items:
        source = one_character(op, value)
        if source is not None:
            members = [member for member in value if member[0] in (sre.LITERAL, sre.RANGE)] if op is sre.IN else []
            firsts = (code if isinstance(code, int) else code[0] for _, code in members)
            likely = (char for char in (*_LIKELY, *map(chr, firsts)) if re.fullmatch(source, char))
            text += chr(value) if op is sre.LITERAL else next(likely, "")
            continue
        if op in REPEATS:
            least, most = (min(bound, _LENGTH_LIMIT + 1) for bound in value[:2])
            inner, ways = _first_choices(value[2], more)
            piece = inner * max(least, min(more, most))
            ways = ways**most * (most - least + 1)
        elif op is sre.SUBPATTERN:
            piece, ways = _first_choices(value[3], more)
        elif op is sre.BRANCH:
            choices = [_first_choices(branch, more) for branch in value[1]]
            piece, ways = next((text for text, _ in choices if text), ""), sum(ways for _, ways in choices)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            piece, ways = "", _first_choices(value[1], more)[1]
        else:
            piece, ways = "", 1 if op is sre.AT else _PATHS_LIMIT + 1
        text = (text + piece)[: _LENGTH_LIMIT + 1]
        paths = min(paths * ways, _PATHS_LIMIT + 1)
    return text, paths


def _numbers(schema: Schema) -> Iterator[Any]:
    step = schema.get("multipleOf", 1)
    for bound in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        limit = schema.get(bound)
        if limit is not None:
            sign = -1 if "ax" in bound else 1
            yield limit
            if abs(limit) < 2**53:  # floats beyond are whole, and none is as large as 2**1024
                yield from (int(limit), limit + sign * 0.5)
            yield from _multiples(step, limit, sign)
    yield from (2, 1, 0, 10, step)


def _multiples(step: float, limit: float, sign: int) -> tuple[float, ...]:
    """Return the last multiple up to a limit, and the one before or behind it: exactly where the step is an integer."""
    try:
        count = (math.floor(limit) if isinstance(step, int) else limit) // step
        return count * step, (count + sign) * step
    except OverflowError:  # no float is as large as the limit
        return ()
