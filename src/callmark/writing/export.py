"""Writes grammars for engines that constrain what a model writes: calls of the given tools, with text around them.

A grammar guarantees the form, not the choice. What is accepted is what strict reading reads as calls of these tools,
with arguments that their schemas allow as far as a grammar can say; `unenforced` lists what is left to check.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from callmark.dialects import Dialect, Writing, derived, selected
from callmark.dialects.notation import fill
from callmark.dialects.rendering import WrittenCall
from callmark.dialects.values import (
    PYTHON_NAME,
    around_value,
    as_json,
    as_python,
    in_braces,
    in_cdata,
    in_parameters,
    in_tags,
    in_whole,
    keeps,
    whole_signs,
)
from callmark.errors import UsageError, check_flags
from callmark.toolshapes import Types, declared_types, type_of
from callmark.writing.automata import (
    Body,
    Chars,
    Free,
    Lit,
    Node,
    Opening,
    Ref,
    Rep,
    Seq,
    alt,
    maybe,
    opener_steps,
    seq,
    text_rules,
    times,
    token,
    weight,
    words_of,
)
from callmark.writing.calls import render_calls
from callmark.writing.printers import ebnf, gbnf, lark, regex
from callmark.writing.schema_rules import (
    BOUNDS,
    FREE_MEMBERS,
    KEY_LIMIT,
    Bounds,
    Values,
    given,
    members,
    possible_branches,
    writable,
)
from callmark.writing.toolset import ANNOTATIONS, Schema, ToolSpec, resolved, satisfiable, tool_specs

Target: TypeAlias = Literal["llguidance", "gbnf", "xgrammar", "structural-tag", "regex"]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)
CALLS_LIMIT: Final = 16  # calls in one message: more is a loop, not a plan
_WEIGHT: Final = 400_000  # characters of all values, written out: from 1,500,000 on llguidance refuses a grammar
_SETTABLE: Final = ((1, 65_536), (1, 4_096), (0, 4))  # least and most of each of the bounds
_ANY_KEY: Final = "any0key"  # stands for any key where one that the schema does not name is written
_LETTERS: Final = (("a", "z"), ("_", "_"))  # a first capital could make a word of Python's
_KEY: Final = token(Chars(_LETTERS), Rep(Chars((("0", "9"), ("A", "Z"), *_LETTERS)), 0, KEY_LIMIT - 1))
_KINDS: Final = ("string", "number", "boolean", "object", "array", "null")


class Grammar(NamedTuple):
    """A grammar as an engine takes it, and what it does not enforce: tool, path and keyword of each constraint."""

    text: str
    unenforced: tuple[str, ...]


def export_grammar(
    tools: Any,
    dialect: str | Dialect = "call",
    target: Target = "llguidance",
    *,
    free_text: bool = True,
    tool_choice: str = "auto",
    parallel: bool = True,
    nonce: str | None = None,
    string_limit: int = BOUNDS.string,
    items_limit: int = BOUNDS.items,
    depth_limit: int = BOUNDS.depth,
) -> Grammar:
    """Return the grammar of messages that may call `tools` in a dialect.

    >>> grammar = export_grammar({"look": {"properties": {"at": {"enum": ["it"]}}}}, target="regex", free_text=False)
    >>> import re
    >>> bool(re.fullmatch(grammar.text, '[CALL: look({"at": "it"})]'))
    True

    target       "llguidance" (its Lark), "gbnf" (llama.cpp), "xgrammar" (EBNF), "structural-tag" (XGrammar's JSON: free
                 text is kept from beginning as we write calls, not from other spellings of that, and the number of
                 calls is not bounded), "regex"
    free_text    whether text may stand around the calls; no plain regex can say that. It may open a code fence, a quote
                 or thoughts: a call in them is one only for a reader that allows these contexts
    tool_choice  "auto"; "none": text only; "required": at least one call; or the name of the one tool to call, once
    parallel     whether several calls may stand in one message, at most 16
    nonce        the code that every call carries; only `call` and rows with a place for it
    string_limit, items_limit, depth_limit
                 where a schema sets no bound: most characters of a string (1 to 65,536), items of a list (1 to 4,096),
                 and brackets around each other in a value of any type (0 to 4: each level makes the grammar three times
                 as long). Engines have limits of their own for what is repeated

    A string without escapes (between tags, in braces) may hold anything but what begins or ends a call of the dialect;
    where its schema gives it a greatest length, no `<`.

    Raises UsageError for options out of range, for what a target cannot say, and as `render_call` does for names.
    """
    row = selected(dialect)
    check_flags(parallel=parallel, free_text=free_text)
    if target not in TARGETS:
        raise UsageError(f"target: expected one of {', '.join(TARGETS)}, found {target!r:.80}")
    specs = satisfiable(tool_specs(tools))
    names = [spec.name for spec in specs]
    if tool_choice not in ("auto", "none", "required", *names):
        raise UsageError(f"tool_choice: expected auto, none, required or the name of a tool, found {tool_choice!r:.80}")
    if tool_choice == "none" and not free_text:
        raise UsageError("tool_choice: expected calls where free_text is False, found none")
    if not specs and tool_choice != "none":
        raise UsageError("tools: expected at least one tool, found none")
    chosen = [spec for spec in specs if tool_choice in ("auto", "required", spec.name)]
    bounds = Bounds(string_limit, items_limit, depth_limit)
    for what, value, (least, most) in zip(Bounds._fields, bounds, _SETTABLE, strict=True):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise UsageError(f"{what}_limit: expected an integer from {least} to {most}, found {value!r:.80}")
    export = _Export(row, chosen, nonce, bounds)
    single = not parallel or tool_choice in names
    if target == "structural-tag":
        return Grammar(export.structural_tag(free_text, tool_choice, single), export.unenforced())
    root = export.message(free_text, tool_choice, single)
    rules = export.rules
    if target == "regex":
        return Grammar(regex(root, rules), export.unenforced())
    if target == "llguidance":
        return Grammar(lark(root, rules, export.forbidden), export.unenforced())
    written = ebnf if target == "xgrammar" else gbnf
    return Grammar(written(root, export.all_rules(free_text)), export.unenforced())


class _Export:
    """The pieces of one grammar."""

    def __init__(self, row: Dialect, specs: list[ToolSpec], nonce: str | None, bounds: Bounds) -> None:
        self._row = row
        self._specs = specs
        self._openers = opener_steps(row)
        self.rules: dict[str, Node] = {}
        self._values: list[Values] = []
        self._bodies: dict[int, Node] = {}
        for spec in specs:  # raises where the dialect cannot write the name or carry the nonce
            render_calls([WrittenCall(spec.name, {})], row, nonce=nonce)
        if row.writing is None:
            raise UsageError(
                f"dialect {row.name}: expected templates (field `writing`), found a dialect for reading only"
            )
        self._writing: Writing = row.writing
        self._form = row.forms[self._writing.form]
        self._keyed = self._form.body == "parameters" and bool(row.writing.parameter)
        ends = (self._form.value_end, derived.breaks_values(self._form), self._form.unclosed)
        self._closers: tuple[str, ...] = ()  # what no raw value may hold
        if self._form.body == "parameters":
            first = min(words_of(ends[0]))[:1]
            closing = words_of(ends[0], first)
            after = re.split(r"\{[a-z_]+\}", row.writing.parameter.partition("{value}")[2])[0] if self._keyed else '"'
            words = closing.union(*(words_of(end, first, [after] if after else closing) for end in ends[1:] if end))
            if "" in words:
                raise UsageError(
                    f"dialect {row.name}: expected ends of values that have a character of few, found {ends!r:.80}"
                )
            words |= {"<![CDATA["} if self._form.encoding == "xml" else set()
            tolerated = derived.tolerated_end(self._form)
            if tolerated:  # with a blank in it: before its name, or behind
                ways = words_of(tolerated.replace(r"[ \t]{0,4}+", ""), first)
                tags = {"</", *(word.removesuffix(">") for word in words | ways if word.startswith("</"))}
                words |= {tag + end for tag in tags for end in (" \t" if tag == "</" else " \t>")}
            signs = () if self._keyed else whole_signs(self._form)  # which have an escape
            words = {*signs, *(word for word in words if word[0] not in signs)}
            self._closers = tuple(sorted(words))
        self._nonce = nonce
        self._bounds = bounds

    def unenforced(self) -> tuple[str, ...]:
        """Return what the grammar does not hold arguments to."""
        return tuple(dict.fromkeys(note for values in self._values for note in values.unenforced))

    @property
    def forbidden(self) -> str:
        """The regex of what free text must not hold."""
        ways = ("".join(regex(chars, {}) + "*" * repeated for chars, repeated in steps) for steps in self._openers)
        return "(?:" + "|".join(ways).replace("/", "\\/") + ")"

    def all_rules(self, free_text: bool) -> dict[str, Node]:
        """Return the rules for an engine that has only rules, for free text too."""
        return {**self.rules, **(text_rules(self._openers, "t") if free_text else {})}

    def message(self, free_text: bool, choice: str, single: bool) -> Node:
        """Return what a whole message looks like."""
        if choice == "none":
            return Free()
        most = 1 if single else CALLS_LIMIT
        if not free_text:
            group = self._group(most, "")
            return group if choice != "auto" else maybe(group)
        writing = self._writing
        until = writing.opener or re.split(r"\{[a-z_]+\}", writing.call)[0]
        # Blocks whose closer may be the beginning of what leads to the next call are one call each, with text between.
        apart = bool(writing.closer) and writing.separator.startswith(writing.closer)
        together = bool(writing.opener) and not apart
        group = self._group(most if together else 1, until)
        if self._form.line_start:
            first: Node = alt([seq(Opening(until), group), seq(Free("\n" + until), group)])
            more = seq(Free("\n" + until), group)
        else:
            first = more = seq(Free(until), group)
        some = seq(first, times(more, 0, most - 1), Free())
        return some if choice != "auto" else alt([Free(), some])

    def _group(self, most: int, until: str) -> Node:
        """Return calls that stand together, without `until`, with which the first of them begins."""
        writing = self._writing
        opener = writing.opener[len(until) :]
        skipped = max(len(until) - len(writing.opener), 0)
        first = alt(self._call(spec, number, opener, skipped) for number, spec in enumerate(self._specs))
        if most == 1:
            return seq(first, writing.closer)
        calls = (self._call(spec, number, writing.separator, 0) for number, spec in enumerate(self._specs))
        self.rules["next"] = alt(calls)
        return seq(first, Rep(Ref("next"), 0, most - 1), writing.closer)

    def _call(self, spec: ToolSpec, number: int, lead: str, skipped: int) -> Node:
        """Return one call without its first characters, and with `lead` before it: a lexer wants both at once."""
        begin, inner, end = self._pieces(spec, number, lead, skipped)
        return seq(begin, *inner, end)

    def _pieces(self, spec: ToolSpec, number: int, lead: str, skipped: int) -> tuple[str, list[Node | str], str]:
        """Return how such a call begins, what stands in it, and how it ends."""
        writing = self._writing
        places = {
            "name": spec.name,
            "quoted_name": json.dumps(spec.name, ensure_ascii=False),
            "nonce": fill(writing.nonce, {"nonce": self._nonce}) if self._nonce else "",
            "index": "\0",
            "number": "\0",
        }
        places["id"] = fill(writing.default_id, places)
        head, _, tail = writing.call.partition("{arguments}")
        index = Rep(Chars((("0", "9"),)), 1, 3)
        begin, *more = (lead + fill(head, places)[skipped:]).split("\0")
        if number not in self._bodies:
            self._bodies[number] = self._arguments(spec, number, fill(tail, places) + writing.closer)
        inner = [piece for part in more for piece in (index, part)]
        return begin, [*inner, self._bodies[number]], fill(tail, places)

    def _arguments(self, spec: ToolSpec, number: int, behind: str) -> Node:
        """Return the arguments of one tool; `behind` is what follows them."""
        node, rules = self._body(spec, behind, shared=False)
        known: dict[int, int] = {}
        if sum(weight(piece, known) for piece in (node, *rules.values())) > _WEIGHT // len(self._specs):
            node, rules = self._body(spec, behind, shared=True)
        self.rules |= {f"v{number}{name}": _renamed(rule, f"v{number}") for name, rule in rules.items()}
        return _renamed(node, f"v{number}")

    def _body(self, spec: ToolSpec, behind: str, *, shared: bool) -> tuple[Node, dict[str, Node]]:
        """Return the arguments of one tool, and the rules to which they refer."""
        form = self._form
        make = partial(Values, spec.name, spec.schema, bounds=self._bounds, shared=shared)
        entities = form.encoding == "xml"
        values = make(lambda value: in_tags(as_json(value), form), closers=self._closers, entities=entities)
        if self._writing.pairs:
            values = make(as_python)
        elif form.body == "braces":
            values = make(partial(in_braces, quote=form.quote), quote=form.quote)
        elif form.body == "parameters" and self._writing.in_cdata:
            values = make(in_cdata, closers=("]>",))
        elif form.body == "parameters" and not self._keyed:
            values = make(partial(in_whole, form=form), closers=self._closers)
        as_object = make(prefix="o")  # for what pairs cannot say
        self._values += [values, as_object]
        try:
            ways = values.ways(spec.arguments, "") or [spec.arguments]
            found = alt(self._way(values, as_object, way, behind) for way in ways)
            node = Body(found.items if isinstance(found, Seq) else (found,))
        except RecursionError:
            raise UsageError(
                f"tool {spec.name!r}: expected a schema that ends, or holds itself by a $ref alone, found another"
            ) from None
        return node, {**values.rules, **as_object.rules}

    def _way(self, values: Values, as_object: Values, schema: Schema, behind: str) -> Node:
        """Return arguments in one of the ways that a schema allows."""
        ordered = members(schema)
        others = schema.get("additionalProperties", False)
        if not ordered and others is not False and (self._keyed or self._writing.pairs):
            return self._unnamed(values, as_object, others, behind)
        if self._keyed:
            required = schema.get("required", ())
            items = ((key, alt(self._parameter(values, key, inner, behind))) for key, inner in ordered.items())
            return seq(*(item if key in required else maybe(item) for key, item in items))
        if self._writing.pairs:
            return self._pairs(values, as_object, ordered, schema)
        return values.object({"additionalProperties": False, **schema}, "")

    def _unnamed(self, values: Values, as_object: Values, schema: Any, behind: str) -> Node:
        """Return arguments of which the schema names none."""
        if self._keyed and "{key}" in self._writing.parameter.partition("{value}")[2]:
            values.tell("", ["additionalProperties (no grammar says a key twice)"])
            return Lit("")
        values.tell("", ["keys that differ"])
        if self._keyed:
            return Rep(alt(self._parameter(values, _ANY_KEY, schema, behind)), 0, FREE_MEMBERS)
        said = self._in_pairs(values, schema)
        ways = [as_object.object({"additionalProperties": schema}, "")] if said != schema else []
        pair = seq(_KEY, "=", values.value(said, ".*"))
        ways.append(seq(pair, Rep(seq(token(",", maybe(" ")), pair), 0, FREE_MEMBERS - 1)))
        return alt([Lit(""), *ways])

    @staticmethod
    def _in_pairs(values: Values, schema: Any) -> Any:
        """Return the schema of what pairs can say of a value: a word without quotes may be read as text.

        Something can always be said: where that may be read so, texts are allowed, and they have quotes.
        """
        types = declared_types(schema, values.root)
        kinds = _kinds(schema, values.root) if "string" in types else []
        if any(kind in ("number", "boolean") for kind, _ in kinds):
            return {"anyOf": _said(kinds, types)}
        return schema

    def _pairs(self, values: Values, as_object: Values, ordered: Schema, schema: Schema) -> Node:
        """Return pairs, and an object where a key is no name or where a word without quotes would be read as text."""
        said: Schema = {}
        for key, inner in ordered.items():
            inner = self._in_pairs(values, inner)
            if PYTHON_NAME.fullmatch(key):
                said[key] = inner
        ways = [values.members(said, schema, "", equals=True)] if said.keys() >= set(schema.get("required", ())) else []
        if said != ordered:
            ways.append(as_object.object({"additionalProperties": False, **schema}, ""))
        return alt(ways)

    def _parameter(self, values: Values, key: str, schema: Any, behind: str) -> list[Node | str]:
        """Return the ways to write a parameter: one for each kind of value that it may have and that is read so."""
        form, writing = self._form, self._writing
        types = declared_types(schema, values.root)
        as_text = not writing.typed and ("string" in types or not types)  # then all is that is no null

        def whole(value: Any) -> str:
            return in_parameters({key: value}, form, writing, behind, lambda _: types)

        values.ways(resolved(schema, values.root), f".{key}")
        found: list[Node | str] = []
        for kind, one in _kinds(schema, values.root):
            if listed := given(one):
                found += [_at(text, key) for text in writable(listed, whole)]
            elif kind == "string" or not as_text or kind == "null":
                before, _, after = around_value(form, writing, key, kind)
                text = self._raw(values, one, key) if kind == "string" else values.value(one, f".{key}")
                # A text without quotes ends where the lexer sees what is behind it; and all that is text begins alike.
                piece = token if kind == "string" or as_text else seq
                found.append(piece(_at(before, key), text, after))
            elif kind in ("array", "object") and "string" in types and one.keys() - ANNOTATIONS != {"type"}:
                values.tell(f".{key}", [f"{kind} (text that is one is read as it)"])
        if not found:
            values.tell(f".{key}", ["enum (the dialect reads text)"])
            before, _, after = around_value(form, writing, key, "string")
            found.append(token(_at(before, key), self._raw(values, {}, key), after))
        return found

    def _raw(self, values: Values, schema: Schema, key: str) -> Node:
        """Return text as it stands between tags."""
        values.ways(schema, f".{key}")
        closed = (("\r", "\r"),) if self._form.trim else ()
        return values.raw(self._closers, schema.get("minLength", 0), schema.get("maxLength"), closed)

    def structural_tag(self, free_text: bool, choice: str, single: bool) -> str:
        """Return XGrammar's structural tag: what leads to a call is literal, what stands in it is our EBNF.

        Its own way with JSON Schemas would bound no string, and pass over what it does not know without a word. Where
        a call begins a line, or nothing ends one, no trigger tells calls from text, and where none is wanted, a trigger
        knows one spelling alone: all is our EBNF then.
        """
        writing, form = self._writing, self._form
        if choice == "none" or form.line_start or (writing.opener and not writing.closer):
            root = self.message(free_text, choice, single)
            return _structural_tag({"type": "grammar", "grammar": ebnf(root, self.all_rules(free_text))})
        trigger = re.split(r"\{[a-z_]+\}", writing.opener or writing.call)[0]
        at_least_one = choice != "auto"
        tags = [self._tag(spec, number) for number, spec in enumerate(self._specs)]
        if writing.opener:
            calls = _tags_beside(tags, writing.separator, at_least_one=True, single=single)
            section: dict[str, Any] = {"type": "tag", "begin": writing.opener, "content": calls, "end": writing.closer}
            tags = [section]
            format_: dict[str, Any] = section if at_least_one else {"type": "optional", "content": section}
        else:
            format_ = _tags_beside(tags, writing.separator, at_least_one=at_least_one, single=single)
        if free_text:
            format_ = {
                "type": "triggered_tags", "triggers": [trigger], "tags": tags, "at_least_one": at_least_one,
                "stop_after_first": single,
            }  # fmt: skip
        return _structural_tag(format_)

    def _tag(self, spec: ToolSpec, number: int) -> dict[str, Any]:
        """Return the tag of one tool's calls: its literal beginning, its end, and what is between."""
        begin, inner, end = self._pieces(spec, number, "", 0)
        rules = {name: rule for name, rule in self.rules.items() if name.startswith(f"v{number}")}
        content = {"type": "grammar", "grammar": ebnf(seq(*inner), rules)}
        return {"type": "tag", "begin": begin, "content": content, "end": end}


def _at(text: str, key: str) -> Node:
    """Return what stands before a value, with any key in it where `key` stands for that."""
    before, found, behind = text.partition(_ANY_KEY) if key == _ANY_KEY else (text, "", "")
    return token(before, _KEY, behind) if found else Lit(before)


def _structural_tag(format_: dict[str, Any]) -> str:
    return json.dumps({"type": "structural_tag", "format": format_}, ensure_ascii=False)


def _tags_beside(tags: list[dict[str, Any]], separator: str, *, at_least_one: bool, single: bool) -> dict[str, Any]:
    return {
        "type": "tags_with_separator", "tags": tags, "separator": separator, "at_least_one": at_least_one,
        "stop_after_first": single,
    }  # fmt: skip


def _said(kinds: list[tuple[str, Any]], types: Types) -> list[Any]:
    """Return schemas of what words without quotes say, beside texts, as it is read."""
    said = []
    for kind, one in kinds:
        if kind in ("number", "boolean"):
            one = {"enum": [member for member in given(one) or () if keeps(member, types)]}
        if one != {"enum": []}:
            said.append(one)
    return said


def _kinds(schema: Any, root: Schema) -> list[tuple[str, Any]]:
    """Return a schema for each type of JSON that its values may have, with the type."""
    schema = resolved(schema, root)
    if ways := possible_branches(schema, root):
        return [pair for way in ways for pair in _kinds(way, root)]
    if listed := given(schema):
        kinds = [_kind(type_of(member)) for member in listed]
        told = schema.get("type", kinds)
        allowed = {_kind(name) for name in ([told] if isinstance(told, str) else told)}
        return [
            (kind, {"type": kind, "enum": [member for member, its in zip(listed, kinds, strict=True) if its == kind]})
            for kind in dict.fromkeys(kinds)
            if kind in allowed
        ]
    told = schema.get("type", _KINDS)
    return [(_kind(name), {**schema, "type": name}) for name in ([told] if isinstance(told, str) else told)]


def _kind(name: str) -> str:
    """Return a type of JSON Schema as tags say it: an integer is a number."""
    return "number" if name == "integer" else name


def _renamed(node: Node, prefix: str) -> Node:
    """Return a piece whose references have a prefix, so that the rules of several tools can stand together."""
    match node:
        case Ref(name):
            return Ref(prefix + name)
        case Rep(item, least, most):
            return Rep(_renamed(item, prefix), least, most)
        case Lit() | Chars() | Free() | Opening():
            return node
        case _:
            return type(node)(tuple(_renamed(item, prefix) for item in node.items))
