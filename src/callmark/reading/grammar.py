"""The grammars: what a dialect's Lark grammar says about a text.

A grammar defines one complete marker (start rule `marker`) and one call in it (`call`). This module compiles it, reads
a text by it, and says where and why a text is not in it. All grammars name their rules and terminals alike
(`grammars/json.lark` lists them), so one reading of the tree serves every dialect. It shares no code with the fast
paths: where the two differ, one of them is wrong.

Left to others: what no grammar can say (nesting and lengths over their limits; keys given twice and numbers out of
range are only reported), what a tool's schema must type, and repair. A text is never changed here.

Lark is loaded with the first grammar. Reading is iterative, so nesting costs no stack; it takes about 15 µs a token.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from callmark.dialects import Dialect, Form
from callmark.dialects.model import ID_KEYS
from callmark.dialects.notation import BLANKS
from callmark.dialects.prefixes import literals
from callmark.errors import DialectError
from callmark.events import JsonValue
from callmark.toolshapes import DIGITS_LIMIT

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Node: TypeAlias = Tree[Token]

__all__ = ["Grammar", "GrammarCall", "Mismatch", "flatten", "grammar_place", "load"]

Start: TypeAlias = Literal["marker", "call"]
Place: TypeAlias = tuple[str | int, ...]
"""Where in arguments something stands: the keys, and numbers in lists, that lead there."""

_IMPORT: Final = re.compile(r"^%import \.(\w+) \(([^)]*)\)[ \t]*$", re.MULTILINE)
_OVERRIDE: Final = re.compile(r"^%override ([?!]*(\w+)[.0-9]*[ \t]*:)", re.MULTILINE)
_HINTS: Final = {
    "defined more than once": "; what an imported file defines is defined anew by %override",
    r"zero-width.*\(\?x": r"; in a verbose pattern (/x) a line break stands in a class, [\n], and a blank too, [ ]",
    "Unexpected input": r"; in a pattern a slash is written \/",
}
"""What to do, by a pattern in Lark's words, which do not say so."""
_LINE: Final = re.compile(r"\bline ([0-9]++)")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?P<real>(?:\.[0-9]++)?+(?:[eE][+\-]?+[0-9]++)?+)")
_ESCAPE: Final = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([0-9a-fA-F]{4})"  # a surrogate pair
    r"|\\u([0-9a-fA-F]{4})|\\(.)"
)
_SHORT_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_XML: Final = re.compile(
    r"<!\[CDATA\[(?P<cdata>(?:[^\]]++|\](?!\]>))*+)\]\]>"  # verbatim
    r"|&(?:(?P<name>lt|gt|amp|quot|apos)|\#(?P<decimal>[0-9]{1,7}+)|\#x(?P<hex>[0-9a-fA-F]{1,6}+));"
    r"|[^<&]++|[<&]"
)
_ENTITIES: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}

# Terminals in words; those that are plain text show themselves, those of a dialect of one's own their names.
_WORDS: Final = {
    "$END": "the end of the text",
    "ASIDE_KEY": '"id" or "type"',
    "BARE": "a value",
    "ID": "an id",
    "KEY": "a key",
    "NAME": "a name",
    "NUMBER": "a number",
    "OTHER_KEY": "a string",
    "PAIR_KEY": "a key",
    "QUOTED": "a string",
    "QUOTED_NAME": "a name in quotes",
    "QUOTED_PAIR_KEY": "a key",
    "SINGLE_QUOTED": "a string",
    "STRING": "a string",
    "VALUE": "a value",
    "_BEGUN": '">" and a tag behind it',
    "_BEGUN_JSON": '">" and an object behind it',
    "_BLANKS": "white space",
    "_BREAK": "a line break",
    "_FENCE_JSON": '"```json" and a line break',
    "_FENCE_TOOL": '"```tool_call" and a line break',
    "_FUNCTION": '"function"',
    "_FUNCTIONS": '"functions."',
    "_GAP": "white space",
    "_INDEX": '":" and a number',
    "_INPUT": 'a line break and "Action Input:"',
    "_JSON_TYPE": '"object"',
    "_LONG_FENCE_JSON": '"````json" and a line break',
    "_LONG_FENCE_TOOL": '"````tool_call" and a line break',
    "_NONCE": '"#" and a nonce',
    "_QUOTE": "a quote",
    "_TILDES_JSON": '"~~~json" and a line break',
    "_TILDES_TOOL": '"~~~tool_call" and a line break',
    "_TRIGGER": "a trigger line",
    "_WS": "white space",
}

# How far a terminal goes where it does not match as a whole, and what is wanted there; with the group `key`, an equals
# sign.
_PLAIN: Final = r"\\\x00-\x1f\ud800-\udfff"
_LONG_ESCAPE: Final = (
    r"\\u(?:[0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}"
    r"|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_OPEN_STRING: Final = rf'"(?:[^"{_PLAIN}]++|\\["\\/bfnrt]|{_LONG_ESCAPE})*+'
_UNFINISHED: Final = {
    "STRING": (re.compile(_OPEN_STRING), '"'),
    "OTHER_KEY": (re.compile(_OPEN_STRING), '"'),
    "SINGLE_QUOTED": (re.compile(rf"'(?:[^'{_PLAIN}]++|\\['\"\\/bfnrt]|{_LONG_ESCAPE})*+"), "'"),
    "QUOTED_NAME": (re.compile(rf'"(?:[^"{_PLAIN}]|\\["\\/bfnrt]|{_LONG_ESCAPE}){{0,128}}+'), '"'),
    "PAIR_KEY": (re.compile(r"(?P<key>[$@\-]?+[^\W\d][\w.\-]{0,127}+[ \t\r\n]*+)"), ""),
    "QUOTED_PAIR_KEY": (re.compile(rf'{_OPEN_STRING}(?P<key>"[ \t\r\n]*+)?+'), '"'),
}


class Mismatch(Exception):  # noqa: N818  # a finding about a text, as often returned as raised
    """A text is not in the grammar: `position` in code points from its start, what was `expected` there, and `found`.

    `expected` are words and quoted literals, white space only where nothing else could stand; `found` is one character
    in quotes, or `the end of the text`.
    """

    def __init__(self, position: int, expected: tuple[str, ...], found: str) -> None:
        """Say that at `position` one of `expected` should stand instead of `found`."""
        *most, last = expected or ("something else",)
        super().__init__(f"expected {', '.join(most)}{' or ' if most else ''}{last}, found {found}")
        self.position = position
        self.expected = expected
        self.found = found


class GrammarCall(msgspec.Struct, frozen=True, kw_only=True):
    """What the grammar says about one call.

    name            of the tool
    id              the model's own, None where it gave none
    arguments       the JSON value; of an argument list its pairs, or the one JSON value that it is
    raw             the text of the call
    raw_arguments   the text of the arguments, without white space around it: the object; what stands between the
                    parentheses; all parameters with their tags; the value as it is written where it has no key
    positional      positional values that need a tool's schema to mean something, in order
    untyped         whether `arguments` maps keys to text whose types are still open (parameters with keys), or to
                    objects and lists of such, where they hold elements
    texts           the places among them where the marker calls a value text
    duplicate_keys  whether an object or argument list names a key twice; the last one is in `arguments`
    bad_numbers     whether a number is not finite or has too many digits; it is in `arguments` as its text
    """

    name: str
    id: str | None
    arguments: JsonValue
    raw: str
    raw_arguments: str
    positional: tuple[JsonValue, ...] = ()
    untyped: bool = False
    texts: frozenset[Place] = frozenset()
    duplicate_keys: bool = False
    bad_numbers: bool = False


class Grammar:
    """The compiled grammar of one dialect. `load` makes it; it is immutable, and threads may share it.

    >>> from callmark.dialects import select
    >>> grammar = load(*select("call"))
    >>> grammar.read("[CALL: get_time(zone='UTC')]")[0].arguments
    {'zone': 'UTC'}
    >>> grammar.explain("[CALL: get_time(zone='UTC'; days=2)]")
    Mismatch('expected ")" or ",", found ";"')
    """

    def __init__(self, dialect: Dialect, lark: Lark) -> None:
        """Join a dialect's row with its compiled grammar; the row says how values are quoted, trimmed and encoded."""
        self.dialect = dialect
        self.lark = lark

    def accepts(self, text: str, start: Start = "call") -> bool:
        """Return whether `text` as a whole is in the grammar."""
        return self.explain(text, start) is None

    def explain(self, text: str, start: Start = "call") -> Mismatch | None:
        """Return why `text` is not in the grammar, None where it is."""
        try:
            self.read(text, start)
        except Mismatch as mismatch:
            return mismatch
        return None

    def read(self, text: str, start: Start = "call") -> tuple[GrammarCall, ...]:
        """Return the calls in `text`, a whole marker or one call of it. Raises Mismatch.

        Raises DialectError where the grammar calls the parts of a call something else than all grammars do.
        """
        nodes = [self.parse(text, start)]
        calls = []
        while nodes:
            node = nodes.pop()
            if node.data == "call":
                calls.append(self._call(text, node))
            else:
                nodes.extend(child for child in reversed(node.children) if not isinstance(child, str))
        return tuple(calls)

    def _call(self, text: str, node: Node) -> GrammarCall:
        try:
            return _Reading(self, text, node).call()
        except (AssertionError, LookupError, StopIteration, TypeError, ValueError) as error:
            raise DialectError(
                f"{grammar_place(self.dialect)}: expected the body that the row has, in rules and terminals with "
                f"the names that json.lark of callmark.grammars lists, found others in {text!r:.80}"
            ) from error

    def parse(self, text: str, start: str) -> Node:
        """Return the tree of `text`. Raises Mismatch."""
        from lark.exceptions import UnexpectedInput  # Lark takes 60 ms, and the fast paths need none

        try:
            return self.lark.parse(text, start=start)
        except UnexpectedInput:
            raise self._mismatch(text, start) from None

    def _mismatch(self, text: str, start: str) -> Mismatch:
        from lark.exceptions import UnexpectedCharacters, UnexpectedToken

        parser = self.lark.parse_interactive(text, start=start)
        position = len(text)
        try:
            parser.exhaust_lexer()
        except UnexpectedCharacters as error:
            position = error.pos_in_stream or 0
        except UnexpectedToken as error:
            position = error.token.start_pos or 0
        furthest = position
        expected: set[str] = set()
        for terminal in parser.accepts():  # type: ignore[no-untyped-call]  # lark leaves it untyped
            reached, words = self._reach(terminal, text, position)
            if reached > furthest:
                furthest, expected = reached, set()
            if reached == furthest:
                expected.add(words)
        return Mismatch(furthest, tuple(sorted(expected - {"white space"} or expected)), _found(text, furthest))

    def _reach(self, terminal: str, text: str, position: int) -> tuple[int, str]:
        """Return how far `terminal` goes at `position`, where it does not match, and what it wants there, in words."""
        if terminal in _UNFINISHED or terminal == "QUOTED":
            unfinished, delimiter = _UNFINISHED.get(terminal) or self._own_string()
            match = unfinished.match(text, position)
            if match is not None and match.lastgroup:
                return match.end(), '"="'
            if match is None or text.startswith(delimiter, match.end()):  # whole, but not in its place
                return position, _WORDS[terminal]
            inside = match.end() < len(text) and terminal not in ("QUOTED", "QUOTED_NAME")
            return match.end(), "an escape" if inside else _quoted(delimiter)
        pattern = self.lark.get_terminal(terminal).pattern if terminal != "$END" else None
        if pattern is None or pattern.type != "str":
            words = _WORDS.get(terminal) or _WORDS.get(_kind(terminal)) or _begins(pattern.value if pattern else "")
            return position, words or terminal.strip("_").lower().replace("_", " ")
        begun = text[position : position + len(pattern.value)]
        cut_off = position + len(begun) == len(text) and pattern.value.startswith(begun)
        return position + len(begun) if cut_off else position, _quoted(pattern.value)

    def names(self) -> frozenset[str]:
        """Return the rules and terminals of which its markers may consist, with VALUE for VALUE_STEP."""
        rules = {str(rule.alias or rule.origin.name) for rule in self.lark.rules}
        return frozenset(rules | {_kind(terminal.name) for terminal in self.lark.terminals})

    def form(self, body: str) -> Form:
        """Return the first form with that body: all of a dialect's quote, trim and encode alike."""
        return next(form for form in self.dialect.forms if form.body == body)

    def _own_string(self) -> tuple[re.Pattern[str], str]:
        """Return how far a string in the dialect's own delimiter goes, and the delimiter."""
        quote = self.form("braces").quote
        first, rest = re.escape(quote[0]), re.escape(quote[1:])
        return re.compile(rf"{first}{rest}(?:[^{first}\ud800-\udfff]++|{first}(?!{rest}))*+"), quote


def _begins(pattern: str) -> str:
    """Return with what a match of `pattern` begins, the shortest way; "" where that is not known."""
    ways = literals(pattern)  # of those that are equally short a whole tag says more
    return _quoted(min(ways, key=lambda way: (len(way), not way.endswith(">")))) if all(ways) else ""


class _Reading:
    """One tree: the values of its nodes, bottom up, and what was found on the way."""

    def __init__(self, grammar: Grammar, text: str, tree: Node) -> None:
        self.grammar = grammar
        self.text = text
        self.tree = tree
        self.duplicate_keys = False
        self.bad_numbers = False
        self.texts: set[Place] = set()
        self.values: dict[int, Any] = {}
        for node in tree.iter_subtrees():
            children = [self.value(child) for child in node.children]
            self.values[id(node)] = self.mapping(children) if node.data == "object" else children

    def value(self, node: Node | Token) -> Any:
        """Return what a node means: a JSON value, or the list of its children's values."""
        if not isinstance(node, str):
            return self.values[id(node)]
        match node.type:
            case "STRING" | "OTHER_KEY" | "ASIDE_KEY" | "SINGLE_QUOTED" | "QUOTED_PAIR_KEY" | "QUOTED_NAME":
                return _ESCAPE.sub(_unescaped, node[1:-1])
            case "KIND_KEY" | "KIND":
                return str(node[1:-1])
            case "QUOTED":
                width = len(self.grammar.form("braces").quote)
                return str(node[width:-width])
            case "NUMBER":
                number = _number(node)
                self.bad_numbers |= number is None
                return str(node) if number is None else number
            case "BARE":
                number = _number(node)
                return _LITERALS.get(node, str(node)) if number is None else number
            case kind:
                literal = kind.removeprefix("PYTHON_") in ("TRUE", "FALSE", "NULL", "NONE")
                return _LITERALS[node] if literal else str(node)

    def mapping(self, members: list[Any]) -> dict[str, JsonValue]:
        """Return the object of these keys and values."""
        found = dict(members)
        self.duplicate_keys |= len(found) < len(members)
        return found

    def call(self) -> GrammarCall:
        """Return the call that the tree is."""
        name, identity = "", None
        arguments: JsonValue = {}
        positional: tuple[JsonValue, ...] = ()
        raw = ""
        untyped = False
        parameters: list[Node] = []
        for child in self.tree.children:
            if isinstance(child, str):
                name, identity = (name, str(child)) if child.type == "ID" else (str(child), identity)
                continue
            match child.data:
                case "id":  # a name, and what makes an id of it
                    name, identity = self.value(child)[0], self.source(child)
                case "object":
                    arguments, raw = self.value(child), self.source(child)
                case "envelope":
                    name, own, arguments, raw = self._envelope(child)
                    identity = own or identity  # the head may have one, too
                case "arguments":
                    arguments, positional, raw = *self._argument_list(child), self.source(child)
                case _:
                    parameters.append(child)
        if parameters and _kind(getattr(parameters[0].children[0], "type", "")) == "KEY":
            untyped = True
            arguments = self.mapping([self._parameter(node, ()) for node in parameters])
            raw = self.text[parameters[0].meta.start_pos : parameters[-1].meta.end_pos]
        elif parameters:
            arguments, raw = self._whole(parameters[0])
        return GrammarCall(
            name=name,
            id=identity,
            arguments=arguments,
            raw=self.source(self.tree),
            raw_arguments=raw.strip(BLANKS),
            positional=positional,
            untyped=untyped,
            texts=frozenset(self.texts),
            duplicate_keys=self.duplicate_keys,
            bad_numbers=self.bad_numbers,
        )

    def source(self, node: Node) -> str:
        """Return the text of a node."""
        return "" if node.meta.empty else self.text[node.meta.start_pos : node.meta.end_pos]

    def _envelope(self, node: Node) -> tuple[str, str | None, JsonValue, str]:
        name, identity, arguments, raw = "", None, {}, ""
        members = []
        for child in node.children:
            assert not isinstance(child, str)  # noqa: S101  # an envelope's rule has no terminals
            rule, value = child.data, self.value(child)
            if rule == "member":
                key, value = value
                identity = value if key in ID_KEYS and isinstance(value, str) else identity
            else:
                key, value = self.source(child).split('"')[1], value[0]
                if rule == "name":
                    name = value
                else:
                    arguments, raw = value, self.source(child)[self.source(child).index("{") :]
            members.append((key, value))
        self.mapping(members)
        return name, identity, arguments, raw

    def _argument_list(self, node: Node) -> tuple[JsonValue, tuple[JsonValue, ...]]:
        """Return what stands between parentheses: one JSON value, or pairs and the positional values before them."""
        pairs = [self.value(child) for child in node.children if _is_pair(child)]
        positional = [child for child in node.children if not _is_pair(child)]
        if len(positional) == 1 and not pairs and _is_value(positional[0]):
            return self.value(positional[0]), ()
        return self.mapping(pairs), tuple(self.value(child) for child in positional)

    def _parameter(self, node: Node, around: Place, number: int = 0) -> tuple[str, JsonValue]:
        """Return key and value of a parameter, or of an element in the value to which the keys `around` lead."""
        form = self.grammar.form("parameters")
        parts = {_kind(child.type): str(child) for child in node.children if isinstance(child, str)}
        key, value = parts.get("KEY", ""), parts.get("VALUE", "")
        if form.key_encoding == "xml":
            key = "".join(text for _, text in _decoded(key))
        place = (*around, key if "KEY" in parts else number)
        inside = [child for child in node.children if not isinstance(child, str)]
        elements = [self._parameter(child, place, at) for at, child in enumerate(inside)]
        if "TEXT" in parts:
            self.texts.add(place)
        if "ARRAY" in parts or (elements and elements[0][0] == form.item):
            return key, [element for _, element in elements]
        if "OBJECT" in parts or elements:
            return key, self.mapping(elements)
        if form.trim:
            value = re.sub(r"\A\r?\n(.*?)(?:\r?\n)?\Z", r"\1", value, flags=re.DOTALL)
        return key, "".join(text for _, text in _decoded(value)) if form.encoding == "xml" else value

    def _whole(self, node: Node) -> tuple[JsonValue, str]:
        """Return the arguments where they are one value, which is in the grammar's rule `value` once it is decoded."""
        raw = str(node.children[0])
        pieces = _decoded(raw) if self.grammar.form("parameters").encoding == "xml" else [(0, raw)]
        text = "".join(piece for _, piece in pieces)
        try:
            tree = self.grammar.parse(text, "value")
        except Mismatch as mismatch:
            places = [at + offset for at, piece in pieces for offset in range(len(piece))]
            start = getattr(node.children[0], "start_pos", 0)
            position = start + [*places, len(raw)][mismatch.position]
            raise Mismatch(position, mismatch.expected, mismatch.found) from None
        inner = _Reading(self.grammar, text, tree)
        self.duplicate_keys |= inner.duplicate_keys
        self.bad_numbers |= inner.bad_numbers
        return inner.value(tree)[0], raw


def load(dialect: Dialect) -> Grammar:
    """Return the dialect's grammar, compiled once (20 to 90 ms), and again where a file of one's own has changed.

    Raises DialectError where there is none, where it does not compile or is no LALR(1) grammar, and where it lacks one
    of the start rules `marker` and `call` (or `value`, for parameters without keys).
    """
    return _compiled(dialect, _edition(dialect.grammar))


def _edition(path: str) -> tuple[int, int]:
    """Return what tells a file from what it was before it was edited; of the package's own files nothing is asked."""
    try:
        found = os.stat(path) if os.path.isabs(path) else None
    except OSError:  # which is told by whoever reads it
        found = None
    return (found.st_mtime_ns, found.st_size) if found else (0, 0)


@cache
def _compiled(dialect: Dialect, _edition: tuple[int, int]) -> Grammar:
    from lark import Lark
    from lark.exceptions import LarkError

    text = flatten(dialect)
    keyless = any(form.body == "parameters" and "key" not in form.parameter for form in dialect.forms)
    start = ["marker", "call", "value"] if keyless else ["marker", "call"]
    for rule in start:
        if re.search(rf"^[?!]*{rule}\b", text, re.MULTILINE) is None:
            wanted = ", ".join(start)
            raise DialectError(f"{grammar_place(dialect)}: expected the rules {wanted}, found no {rule}")
    try:
        lark = Lark(
            text, parser="lalr", lexer="contextual", start=start, propagate_positions=True, maybe_placeholders=False
        )
    except (LarkError, OSError, RecursionError) as error:  # OSError: an import that lark knows no file for
        reason = f": {error.__context__}" if isinstance(error.__context__, re.error) else ""  # lark leaves it out
        hints = [hint for words, hint in _HINTS.items() if re.search(words, str(error), re.DOTALL)]
        hints.append(_other_file(dialect, str(error)))
        raise DialectError(f"{grammar_place(dialect)}: {str(error).strip()}{reason}{''.join(hints)}") from error
    return Grammar(dialect, lark)


def _other_file(dialect: Dialect, told: str) -> str:
    """Return in which file the line is that Lark tells of, where it is in none of the dialect's own; "" for its own.

    What a file ends with is read to the next rule, which is in the file that it imports.
    """
    found = _LINE.search(told)
    if found is None:
        return ""
    files, ends = [""], [0]
    for path, text in _texts(dialect)[0].items():
        files.append(path)
        ends.append(ends[-1] + text.count("\n") + 1)  # that which joins them, too
    at = min(bisect_left(ends, int(found[1])), len(files) - 1)
    if at < 2:
        return ""
    place = f"line {int(found[1]) - ends[at - 1]} of {files[at]}"
    return f"; line {found[1]} is {place}, before which the end of {files[at - 1]} is read"


def flatten(dialect: Dialect) -> str:
    """Return the dialect's grammar as one text that needs no other file, with the start rules `marker` and `call`.

    A file is imported as in `%import .json (object, _WS)`, from beside the file that imports it or from
    `callmark.grammars`. Names stay as they are, so no two files may define the same, but `%override` defines a rule or
    a terminal anew, of which all lines but the first are indented. Where parameters have no key, what is in a value is
    said by the rule `value`. Raises DialectError where a file is missing or an import looks different.
    """
    texts, wanted = _texts(dialect)
    flat = "\n".join(texts.values())
    for _, overridden in _OVERRIDE.findall(flat):
        definition = rf"^[?!]*{overridden}[.0-9]*[ \t]*:.*(?:\n[ \t]+\S.*)*"
        flat = re.sub(definition, _lines_of, flat, flags=re.MULTILINE)
    flat = _OVERRIDE.sub(r"\1", flat)
    if re.search(r"^%import \.", flat, re.MULTILINE):
        raise DialectError(f"{grammar_place(dialect)}: expected imports of the form `%import .json (object)`")
    for word, imported, path in wanted:
        if not re.search(rf"^[?!]*{re.escape(word)}(?:\.[0-9]+)?[ \t]*:", flat, re.MULTILINE):
            raise DialectError(
                f"{grammar_place(dialect, path)}: expected the name of what {imported}.lark defines, found {word!r}"
            )
    if re.search(r"^%ignore\b", flat, re.MULTILINE):
        raise DialectError(f"{grammar_place(dialect)}: expected white space as `_GAP?` of .heads, found %ignore")
    return flat


def _texts(dialect: Dialect) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """Return the texts of a grammar's files, their imports as empty lines; and what is imported by name: see below."""
    texts: dict[str, str] = {}
    todo = [_file(dialect)]
    wanted: list[tuple[str, str, str]] = []  # names, the files that they are imported from, and those that do so
    try:
        for path in todo:
            texts[path] = _text(path)
            for imported, names in _IMPORT.findall(texts[path]):
                beside = Path(path).with_name(f"{imported}.lark")
                found = str(beside) if beside.is_file() else beside.name
                todo += [found] * (found not in todo)
                wanted += [(word.strip(), imported, path) for word in names.split(",")]
    except FileNotFoundError as error:
        raise DialectError(
            f"dialect {dialect.name}: grammar: expected a path, or a file of callmark.grammars, found none: {path!r}"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DialectError(f"{grammar_place(dialect, path)}: {error}") from error
    return {path: _IMPORT.sub(_lines_of, text) for path, text in texts.items()}, wanted


def _lines_of(found: re.Match[str]) -> str:
    """Return what stands in the place of a text that is left out, so that no other line gets another number."""
    return "\n" * found[0].count("\n")


def _file(dialect: Dialect) -> str:
    """Return the file of a dialect's grammar: a path, or the name of one of `callmark.grammars`."""
    return dialect.grammar or f"{dialect.name}.lark"


def grammar_place(dialect: Dialect, path: str = "") -> str:
    """Return what messages begin with: the dialect, the field, and the file, or another one that it imports."""
    return f"dialect {dialect.name}: grammar: {path or _file(dialect)}"


def _text(path: str) -> str:
    """Return the text of a grammar: one of `callmark.grammars`, or a file of one's own."""
    packaged = files("callmark.grammars").joinpath(path)
    return (packaged if packaged.is_file() else Path(path)).read_text("utf-8-sig")  # some editors write a mark


def _kind(terminal: str) -> str:
    """Return what a terminal is: of a dialect whose forms differ in it, `VALUE_STEP` is a VALUE."""
    first, _, _ = terminal.partition("_")
    return first if first in ("KEY", "VALUE", "NAME", "TEXT") else terminal


def _is_pair(node: Node | Token) -> bool:
    return not isinstance(node, str) and node.data == "pair"


def _is_value(node: Node | Token) -> bool:
    """Return whether a sole positional argument is a value of itself: anything but a bare word that means nothing."""
    if isinstance(node, str) and node.type == "BARE":
        return node in ("true", "false", "null", "True", "False", "None") or _number(node) is not None
    return True


def _number(text: str) -> int | float | None:
    """Return the value of a JSON number, None where the text is none, or one that has no value."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    if match["real"]:
        value = float(text)
        return value if isfinite(value) else None
    return int(text) if len(text.removeprefix("-")) <= DIGITS_LIMIT else None


def _unescaped(escape: re.Match[str]) -> str:
    high, low, unit, short = escape.groups()
    if high:
        return chr(0x10000 + (int(high, 16) - 0xD800 << 10) + int(low, 16) - 0xDC00)
    return chr(int(unit, 16)) if unit else _SHORT_ESCAPES.get(short, short)


def _decoded(text: str) -> list[tuple[int, str]]:
    """Return the text of XML in pieces, each with where it comes from. A reference to no character stays as it is."""
    pieces = []
    for match in _XML.finditer(text):
        at, piece = match.start(), match[0]
        if match["cdata"] is not None:
            at, piece = match.start("cdata"), match["cdata"]
        elif match["name"]:
            piece = _ENTITIES[match["name"]]
        elif match["decimal"] or match["hex"]:
            code = int(match["decimal"]) if match["decimal"] else int(match["hex"], 16)
            piece = chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else piece
        pieces.append((at, piece))
    return pieces


def _quoted(literal: str) -> str:
    return f"'{literal}'" if '"' in literal else f'"{literal}"'


def _found(text: str, position: int) -> str:
    if position >= len(text):
        return "the end of the text"
    char = text[position]
    return "a line break" if char in "\r\n" else _quoted(char) if char.isprintable() else f"U+{ord(char):04X}"
