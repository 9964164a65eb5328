"""Checks arguments against a JSON Schema, and says what is wrong in words that a model can act on.

jsonschema decides; its validator objects are kept, which makes a check some fifty times cheaper. Where jsonschema-rs is
installed, it says yes to what is valid in a hundredth of the time, and jsonschema is asked only for the rest; not of
schemas with keywords or numbers that the two read differently. A property holds them to the same verdicts. Neither ever
fetches a schema from anywhere, and formats are not checked.

A model writes the values, so no value may hold its host up. Patterns are Python's, but `regex` looks for them, which
can be told to give up. A schema that comes back to itself takes time that doubles with each level of a value, so steps
are counted, and jsonschema-rs, which cannot be told to stop, is not asked. `uniqueItems` looks at each item once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

import msgspec

from callmark.errors import ToolsError, nearest
from callmark.tools.results import normal

Engine = Literal["auto", "jsonschema", "jsonschema-rs"]

PROBLEMS_LIMIT: Final = 5  # a model mends no more at once, and each costs tokens
STEPS_LIMIT: Final = 300_000  # keywords that are applied to a value or a part of it: one second or two
_ERROR_STEPS: Final = 10  # what an error costs, compared with a keyword that has none
MATCH_SECONDS: Final = 0.1  # of the processor's time, for one pattern in one text: a thousand times what good ones take
_ERRORS_LIMIT: Final = 1000  # that are collected to find the outermost; each takes some 30 microseconds
_FOUND_LIMIT: Final = 60  # characters of a value that are quoted
_ARTICLES: Final = {"integer": "an integer", "object": "an object", "array": "an array", "null": "null"}
_BOUNDS: Final = {
    "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of", "minLength": "a length of at least", "maxLength": "a length of at most",
    "minItems": "a number of items of at least", "maxItems": "a number of items of at most",
    "minProperties": "a number of keys of at least", "maxProperties": "a number of keys of at most",
    "pattern": "a text that matches", "const": "exactly",
}  # fmt: skip
_TOO_DEEP: Final = "parameters: expected a JSON Schema, found one that is nested too deep"
_NO_PATTERN: Final = "parameters: expected a pattern that Python reads, found {!r:.80}"
_UNLIKE: Final = {
    "pattern", "patternProperties",  # \d and $ mean other things in Rust
    "multipleOf",  # 0.3 is other
    "unevaluatedItems", "unevaluatedProperties",  # jsonschema overlooks some of what the branches of 2019-09 evaluate
    "contentEncoding", "contentMediaType", "dependencies",  # which some drafts only annotate with, or do not know
    "uniqueItems",  # 2 ** 64 and its float are two there
    "$dynamicRef", "$recursiveRef",  # which are there for schemas that come back to themselves
}  # fmt: skip
_EXACT_LIMIT: Final = 2**53  # numbers below are the same as floats; in Rust a float has none of its own beyond 64 bits
_left: ContextVar[list[int]] = ContextVar("callmark_steps_left")


class Problem(NamedTuple):
    """What is wrong with arguments: where (`items[2].name`; "arguments": all of them), what was expected and found."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}"


class _TooLongError(Exception):
    """A value was held to more keywords than there is time for."""


class Checker:
    """Holds arguments to one schema.

    >>> Checker({"properties": {"days": {"type": "integer"}}, "required": ["city"]}).problems({"days": "three"})[0]
    Problem(path='arguments', expected="the key 'city'", found="only 'days'")

    A schema without `$schema` is read as draft 2020-12. Raises ToolsError for one that is none, or refers elsewhere.
    """

    def __init__(self, schema: Mapping[str, Any], *, engine: Engine = "auto") -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import validator_for
        from referencing.jsonschema import EMPTY_REGISTRY

        try:
            self.schema: dict[str, Any] = msgspec.to_builtins(schema)
        except TypeError as error:
            raise ToolsError(f"parameters: expected a JSON Schema, found: {error}") from error
        except RecursionError as error:
            raise ToolsError(_TOO_DEEP) from error
        dialect = self.schema.get("$schema", "")
        if not isinstance(dialect, str):
            raise ToolsError(f"parameters: expected $schema to be a text, found {shown(dialect)}")
        kind = validator_for(self.schema, default=Draft202012Validator)
        try:
            _check(self.schema, kind, "parameters")
            keywords, returns = _keywords(self.schema, kind)
        except RecursionError as error:
            raise ToolsError(_TOO_DEEP) from error
        except AttributeError as error:  # `referencing` reads `extends` of draft 3 as a list only
            raise ToolsError("parameters: expected a JSON Schema, found one that cannot be walked through") from error
        own = {key: value for key, value in self.schema.items() if key != "$schema"}  # which would choose the kind
        # An empty registry, since the default one would fetch what it does not know.
        self._validator = _bounded(kind)(own, registry=EMPTY_REGISTRY)
        unlike = returns or _UNLIKE & keywords or _has_large_numbers(self.schema)
        self._quick = None if unlike else _quick_validator(self.schema, engine)

    def is_valid(self, arguments: Any) -> bool:
        """Return whether `arguments` satisfy the schema, for both engines alike."""
        return not self.problems(arguments)

    def problems(self, arguments: Any) -> tuple[Problem, ...]:
        """Return what is wrong, the outermost first, at most five problems; nothing where all is well."""
        if self._is_quickly_valid(arguments):
            return ()
        token = _left.set([STEPS_LIMIT])
        try:
            errors = list(islice(self._validator.iter_errors(arguments), _ERRORS_LIMIT))
        except RecursionError:
            return (Problem("arguments", "values that end", "a schema or a value that is nested too deep"),)
        except OverflowError:
            return (Problem("arguments", "numbers that can be compared", "one with too many digits"),)
        except TimeoutError:
            return (Problem("arguments", "texts that a pattern can be held to", "one that it takes too long with"),)
        except _TooLongError:
            return (Problem("arguments", "values that can be checked in time", "ones with too many ways to read them"),)
        finally:
            _left.reset(token)
        errors.sort(key=lambda error: len(error.absolute_path))
        return tuple(islice((problem for error in errors for problem in _problems(error)), PROBLEMS_LIMIT))

    def _is_quickly_valid(self, arguments: Any) -> bool:
        try:
            return self._quick is not None and bool(self._quick.is_valid(arguments))
        except ValueError:  # half a surrogate pair, say: no text in Rust
            return False


def _quick_validator(schema: dict[str, Any], engine: Engine) -> Any:
    if engine == "jsonschema":
        return None
    try:
        import jsonschema_rs
    except ImportError:
        if engine == "jsonschema-rs":
            raise ToolsError("engine: expected jsonschema-rs to be installed; found that it is not") from None
        return None
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=False, retriever=_refuse)
    except ValueError:
        return None  # it reads patterns in another dialect than Python's; jsonschema reads the schema alone then


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} lies outside of the schema")


def _check(schema: Any, kind: Any, *place: str) -> None:
    """Raise ToolsError for what is no schema by its draft, and say where."""
    from jsonschema.exceptions import SchemaError

    try:
        kind.check_schema(schema)
    except SchemaError as error:
        if error.validator == "format" and error.validator_value == "regex":
            raise ToolsError(_NO_PATTERN.format(error.instance)) from error
        where = _path((*place, *error.absolute_path))
        raise ToolsError(f"{where:.200}: expected a JSON Schema, found: {error.message:.200}") from error


def _keywords(schema: dict[str, Any], kind: Any) -> tuple[set[str], bool]:
    """Return the keywords of a schema and of the schemas in it, as its draft has them; and whether one is in itself.

    Raises ToolsError for what jsonschema would raise at when it meets it: a `$ref` that leads out of the schema or
    nowhere, or to what is no schema, a pattern that Python cannot read.
    """
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    specification = specification_with(kind.META_SCHEMA["$schema"])
    root = specification.create_resource(schema)
    waiting = [(root, Registry().resolver_with_root(root))]
    keywords: set[str] = set()
    inside: dict[int, list[int]] = {}  # the schemas that a schema leads to, by where they are in memory
    while waiting:
        resource, resolver = waiting.pop()
        part = resource.contents
        if not isinstance(part, Mapping) or id(part) in inside:
            continue
        keywords.update(part)
        _check_patterns(part)
        found = [(each, resolver.in_subresource(each)) for each in resource.subresources()]
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword not in part:
                continue
            if not part[keyword].startswith("#"):
                raise ToolsError(f"parameters: expected a $ref within the schema (#/...), found {part[keyword]!r:.80}")
            try:
                target = resolver.lookup(part[keyword])
            except (Unresolvable, ValueError) as error:
                message = f"parameters: expected a $ref to what is in the schema, found {part[keyword]!r:.80}"
                raise ToolsError(message) from error
            _check(target.contents, kind, "parameters", part[keyword])
            found.append((specification.create_resource(target.contents), target.resolver))
        inside[id(part)] = [id(each.contents) for each, _ in found]
        waiting += found
    try:
        TopologicalSorter(inside).prepare()
    except CycleError:
        return keywords, True
    return keywords, False


def _has_large_numbers(schema: Any) -> bool:
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, int | float) and abs(value) >= _EXACT_LIMIT:
            return True
    return False


def _check_patterns(part: Mapping[str, Any]) -> None:
    for pattern in (*part.get("patternProperties", ()), part.get("pattern", "")):
        try:
            re.compile(pattern)
        except re.error as error:
            raise ToolsError(_NO_PATTERN.format(pattern)) from error


def _matches(pattern: str, text: str) -> bool:
    """Return whether a pattern is found in a text. Raises TimeoutError where that takes more than MATCH_SECONDS."""
    import regex

    return regex.compile(pattern, regex.VERSION0).search(text, timeout=MATCH_SECONDS) is not None


def _found(patterns: Iterable[str], key: str) -> bool:
    return any(_matches(pattern, key) for pattern in patterns)


def _counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
    """Return a keyword's function that takes of the steps which are left."""

    def step(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        left = _left.get()
        left[0] -= 1 + len(value) // 4 if isinstance(value, list) else 1  # each member of an enum is compared
        for error in keyword(validator, value, instance, schema) or ():
            left[0] -= _ERROR_STEPS
            yield error
        if left[0] < 0:
            raise _TooLongError

    return step


@cache
def _bounded(kind: Any) -> Any:
    """Return a kind of validator whose keywords are counted, with some of its own where jsonschema's may never end:

    it calls `re`, which nothing can stop, and compares each item with each where they have no order.
    """
    from jsonschema import ValidationError
    from jsonschema.validators import extend

    def pattern(validator: Any, value: str, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not _matches(value, instance):
            yield ValidationError("")

    def pattern_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, dict):
            for each, part in value.items():
                for key in filter(lambda key: _matches(each, key), instance):
                    yield from validator.descend(instance[key], part, path=key, schema_path=each)

    def additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not isinstance(instance, dict):
            return
        known, patterns = schema.get("properties", ()), schema.get("patternProperties", ())
        others = [key for key in instance if key not in known and not _found(patterns, key)]
        if isinstance(value, dict):
            for key in others:
                yield from validator.descend(instance[key], value, path=key)
        elif value is False and others:
            yield ValidationError("")

    def additional_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(schema.get("items"), list):  # behind a schema for all items there are none
            yield from kind.VALIDATORS["additionalItems"](validator, value, instance, schema) or ()

    def unique_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        items = instance if value and isinstance(instance, list) else ()
        if len({json.dumps(normal(item), sort_keys=True) for item in items}) < len(items):
            yield ValidationError("")

    own = {"pattern": pattern, "patternProperties": pattern_properties, "additionalProperties": additional_properties,
           "uniqueItems": unique_items}  # fmt: skip
    if "additionalItems" in kind.VALIDATORS:
        own["additionalItems"] = additional_items
    keywords = {name: _counted(keyword) for name, keyword in {**kind.VALIDATORS, **own}.items()}
    return extend(kind, keywords)  # type: ignore[no-untyped-call]


def _problems(error: Any) -> Iterator[Problem]:
    path = _path(error.absolute_path)
    keyword, value = error.validator, error.validator_value
    match keyword:
        case "required" if isinstance(value, list):
            missing = next(key for key in value if error.message == f"{key!r} is a required property")
            keys = ", ".join(f"{key!r:.60}" for key in list(error.instance)[:8])
            yield Problem(path, f"the key {missing!r}", f"only {keys}" if keys else "no keys")
        case "additionalProperties" if value is False:
            known = list(error.schema.get("properties", {}))
            patterns = error.schema.get("patternProperties", {})
            for key in error.instance:
                if key not in known and not _found(patterns, key):
                    close = nearest(key, known)
                    guess = f" (did you mean {close!r}?)" if close else ""
                    listed = ", ".join(map(repr, known[:12])) or "no keys"
                    yield Problem(path, f"only {listed}", f"{key!r:.60}{guess}")
        case "type" if all(isinstance(name, str) for name in value):  # draft 3 has schemas among them
            types = [value] if isinstance(value, str) else value
            listed = " or ".join(_ARTICLES.get(name, f"a {name}") for name in types)
            yield Problem(path, listed, shown(error.instance))
        case "enum":
            listed = ", ".join(json.dumps(member, ensure_ascii=False) for member in value[:12])
            yield Problem(path, f"one of {listed}", shown(error.instance))
        case "anyOf" | "oneOf" if error.context:
            best = min(error.context, key=lambda inner: (-len(inner.absolute_path), inner.validator == "type"))
            yield from _problems(best)
        case _ if keyword in _BOUNDS:
            bound = json.dumps(value, ensure_ascii=False)
            yield Problem(path, f"{_BOUNDS[keyword]} {bound:.80}", shown(error.instance))
        case None:  # the schema `false`
            yield Problem(path, "nothing, or another key", shown(error.instance))
        case _:
            yield Problem(path, f"what the schema's {keyword!r} allows", shown(error.instance))


def _path(steps: Any) -> str:
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path.lstrip(".") or "arguments"


def shown(value: Any) -> str:
    """Return the beginning of a JSON value, with the name of its type where that does not show it."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > _FOUND_LIMIT:
        text = text[:_FOUND_LIMIT] + "…"
    return f"the text {text}" if isinstance(value, str) else text
