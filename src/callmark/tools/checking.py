"""Checks arguments against a JSON Schema, and says what is wrong in words that a model can act on.

jsonschema decides; its validator objects are kept, which makes a check some fifty times cheaper. Where jsonschema-rs is
installed, it says yes to what is valid in a hundredth of the time, and jsonschema is asked only for the rest. A
property holds the two to the same verdicts. Neither ever fetches a schema from anywhere, and formats are not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, NamedTuple

import msgspec

from callmark.errors import ToolsError

Engine = Literal["auto", "jsonschema", "jsonschema-rs"]

PROBLEMS_LIMIT: Final = 5  # a model mends no more at once, and each costs tokens
_FOUND_LIMIT: Final = 60  # characters of a value that are quoted
_ARTICLES: Final = {"integer": "an integer", "object": "an object", "array": "an array", "null": "null"}
_BOUNDS: Final = {
    "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of", "minLength": "a length of at least", "maxLength": "a length of at most",
    "minItems": "a number of items of at least", "maxItems": "a number of items of at most",
    "minProperties": "a number of keys of at least", "maxProperties": "a number of keys of at most",
    "pattern": "a text that matches", "const": "exactly",
}  # fmt: skip
_DATA: Final = ("enum", "const", "default", "examples", "example")


class Problem(NamedTuple):
    """What is wrong with arguments: where (`items[2].name`; "arguments": all of them), what was expected and found."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}"


class Checker:
    """Holds arguments to one schema.

    >>> Checker({"properties": {"days": {"type": "integer"}}, "required": ["city"]}).problems({"days": "three"})[0]
    Problem(path='arguments', expected="the key 'city'", found="only 'days'")

    A schema without `$schema` is read as draft 2020-12. Raises ToolsError for one that is none, or refers elsewhere.
    """

    def __init__(self, schema: Mapping[str, Any], *, engine: Engine = "auto") -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing.jsonschema import EMPTY_REGISTRY

        self.schema: dict[str, Any] = msgspec.to_builtins(schema)
        check_references(self.schema)
        check_patterns(self.schema)
        kind = validator_for(self.schema, default=Draft202012Validator)
        try:
            kind.check_schema(self.schema)
        except SchemaError as error:
            raise ToolsError(f"parameters: expected a JSON Schema, found: {error.message:.200}") from error
        # An empty registry, since the default one would fetch what it does not know.
        self._validator = kind(self.schema, registry=EMPTY_REGISTRY)
        self._quick = _quick_validator(self.schema, engine)

    def is_valid(self, arguments: Any) -> bool:
        """Return whether `arguments` satisfy the schema, for both engines alike."""
        return not self.problems(arguments)

    def problems(self, arguments: Any) -> tuple[Problem, ...]:
        """Return what is wrong, the outermost first, at most five problems; nothing where all is well."""
        if self._quick is not None and self._quick.is_valid(arguments):
            return ()
        try:
            errors = sorted(self._validator.iter_errors(arguments), key=lambda error: len(error.absolute_path))
        except RecursionError:
            return (Problem("arguments", "values that end", "a schema or a value that is nested too deep"),)
        return tuple(problem for error in errors for problem in _problems(error))[:PROBLEMS_LIMIT]


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


def check_references(schema: dict[str, Any]) -> None:
    """Raise ToolsError where a `$ref` leads out of the schema, or nowhere."""
    for reference in _references(schema):
        target: Any = schema
        if not reference.startswith("#"):
            raise ToolsError(f"parameters: expected a $ref within the schema (#/...), found {reference!r:.80}")
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and step.isdecimal() and int(step) < len(target):
                target = target[int(step)]
            elif isinstance(target, dict) and step in target:
                target = target[step]
            else:
                raise ToolsError(f"parameters: expected a $ref to what is in the schema, found {reference!r:.80}")


def check_patterns(schema: Any) -> None:
    """Raise ToolsError for a pattern that Python cannot read: jsonschema would raise when it meets it."""
    if isinstance(schema, dict):
        keyed = schema.get("patternProperties")
        for pattern in [schema.get("pattern"), *(keyed if isinstance(keyed, dict) else ())]:
            try:
                re.compile(pattern if isinstance(pattern, str) else "")
            except re.error as error:
                raise ToolsError(f"parameters: expected a pattern that Python reads, found {pattern!r:.80}") from error
    for member in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        check_patterns(member)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            elif key not in _DATA:
                yield from _references(value)
    elif isinstance(schema, list):
        for member in schema:
            yield from _references(member)


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
                if key not in known and not any(re.search(pattern, key) for pattern in patterns):
                    close = get_close_matches(key, known, 1)
                    guess = f" (did you mean {close[0]!r}?)" if close else ""
                    listed = ", ".join(map(repr, known[:12])) or "no keys"
                    yield Problem(path, f"only {listed}", f"{key!r:.60}{guess}")
        case "type":
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
