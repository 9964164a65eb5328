"""Prints pieces of grammars for the engines: GBNF, XGrammar's EBNF (nearly the same), llguidance's Lark, one regex."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from callmark.errors import UsageError
from callmark.writing.automata import Alt, Body, Chars, Free, Lit, Node, Opening, Ref, Rep, Seq, Token

_LONG: Final = 120
"""Characters from which on a piece becomes a rule of its own, so that what occurs often is written once."""

_SURROGATES: Final = ("\ud800", "\udfff")
"""Halves of pairs, which are no characters."""

_GBNF_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def gbnf(root: Node, rules: Mapping[str, Node]) -> str:
    """Return a grammar that llama.cpp reads: names without `_`, right recursion, one line a rule."""
    return _rules_of(_Gbnf(), root, rules)


def ebnf(root: Node, rules: Mapping[str, Node]) -> str:
    """Return a grammar that XGrammar reads."""
    return _rules_of(_Ebnf(), root, rules)


def _rules_of(printer: _Gbnf, root: Node, rules: Mapping[str, Node]) -> str:
    lines = {"root": printer.text(root)}
    for name, node in rules.items():
        lines[name] = printer.text(node)
    lines |= printer.rules
    return "".join(f"{name} ::= {text}\n" for name, text in lines.items())


class _Printer(ABC):
    """What GBNF and Lark write alike. `rules` are those that were made up for pieces, beginning with `_begin`."""

    _begin: str

    def __init__(self) -> None:
        self.rules: dict[str, str] = {}
        self._names: dict[str, str] = {}

    @abstractmethod
    def text(self, node: Node) -> str:
        """Return a piece as the right side of a rule."""

    @abstractmethod
    def _inner(self, node: Node) -> str:
        """Return a piece as a part of another one."""

    def _joined(self, node: Seq | Alt | Rep | Ref) -> str:
        match node:
            case Seq(items):
                return " ".join(self._inner(item) for item in items if item != Lit("")) or '""'
            case Alt(items):
                return " | ".join(map(self.text, items))
            case Rep(item, least, most):
                return _repeated(self._inner(item), least, most)
            case _:
                return node.name

    def _named(self, text: str, begin: str = "") -> str:
        if text not in self._names:
            self._names[text] = f"{begin or self._begin}{len(self._names)}"
            self.rules[self._names[text]] = text
        return self._names[text]


def _repeated(inner: str, least: int, most: int) -> str:
    return f"{inner}?" if (least, most) == (0, 1) else f"{inner}{{{least},{most}}}"


class _Gbnf(_Printer):
    _begin = "p"

    def text(self, node: Node) -> str:
        match node:
            case Lit(text) | Opening(text):
                return '"' + "".join(_GBNF_ESCAPES.get(char, _visible(char)) for char in text) + '"'
            case Chars():
                return self._chars(node)
            case Free(until):
                return f"t0 {self.text(Lit(until))}" if until else "t0"
            case Rep(item, least, most) if most > 1 and "(" in self.text(item):
                # llama.cpp refuses 2,000 rules: each group counts as one, as often as what it stands in is repeated.
                return _repeated(self._named(self.text(item)), least, most)
        return self._joined(node)

    def _chars(self, node: Chars) -> str:
        return _class(_characters(node.ranges), node.negated, _gbnf_in_class)

    def _inner(self, node: Node) -> str:
        text = self.text(node)
        if isinstance(node, Lit | Chars | Ref):
            return text
        if len(text) <= _LONG and not (isinstance(node, Rep) and node.most > 1):
            return f"({text})"  # a repetition is a rule of its own: llama.cpp refuses large ones inside of each other
        return self._named(text)


class _Ebnf(_Gbnf):
    """No class holds half a surrogate pair: XGrammar makes bytes of a class, and three of them are such a half.

    llama.cpp is not told so. It takes the first bytes of a character unless one that they may become is kept out, so a
    token of the byte that U+D7FF and all halves begin with would be refused.
    """

    def _chars(self, node: Chars) -> str:
        ranges = _characters(node.ranges)
        if node.negated:
            return _class((*ranges, _SURROGATES), True, _gbnf_in_class)
        halves = (half for low, high in ranges for half in ((low, min(high, "\ud7ff")), (max(low, "\ue000"), high)))
        return _class(tuple((low, high) for low, high in halves if low <= high), False, _gbnf_in_class)


def lark(root: Node, rules: Mapping[str, Node], forbidden: str) -> str:
    """Return a grammar in llguidance's Lark; `forbidden` is the regex of what `Free` text must not hold."""
    printer = _Lark(forbidden)
    lines = {"start": printer.text(root)}
    if printer.begin:
        lines["begin[lazy]"] = printer.begin
    for name, node in rules.items():
        lines[name] = printer.text(node) if name == "next" else printer.apart(node)
    lines |= printer.rules
    return "%llguidance {}\n" + "".join(f"{name}: {text}\n" for name, text in lines.items())


class _Lark(_Printer):
    """A piece without references is one terminal: the lexer takes it at once, where rules would go by characters.

    But the lexer takes the longest terminal that begins somewhere, and never goes back to a shorter one. So where
    arguments hold a reference, and are several terminals, all that is in them is, and so is what is referred to.
    """

    _begin = "P"

    def __init__(self, forbidden: str) -> None:
        super().__init__()
        self.begin = ""  # the terminal of an opener at the very start, which free text must not swallow
        self._apart = False  # whether pieces without references are terminals one by one
        self._free = f"/(?s:.*)/ & ~/(?s:.*){forbidden}(?s:.*)/"

    def text(self, node: Node) -> str:
        if isinstance(node, Lit) and not node.text:
            return '""'
        if isinstance(node, Free):
            return self._until(node.until)
        if isinstance(node, Opening):
            self.begin = f"/{_in_slashes(regex(Lit(node.text), {}))}/"
            return "begin"
        if isinstance(node, Lit | Chars) or self._is_terminal(node):
            return self._named(f"/{_in_slashes(regex(node, {}))}/")
        return self.apart(node) if isinstance(node, Body) else self._joined(node)

    def apart(self, node: Node) -> str:
        """Return a piece of which nothing is one terminal that could be several."""
        before, self._apart = self._apart, True
        text = self._joined(node) if isinstance(node, Body) else self.text(node)
        self._apart = before
        return text

    def _inner(self, node: Node) -> str:
        text = self.text(node)
        if not isinstance(node, Seq | Alt | Rep) or self._is_terminal(node):
            return text
        return f"({text})" if len(text) <= _LONG else self._named(text, "p")  # llguidance bounds how deep they nest

    def _is_terminal(self, node: Node) -> bool:
        is_one = isinstance(node, Token) or (isinstance(node, Rep) and isinstance(node.item, Lit))
        return is_one or (not self._apart and _is_regular(node))

    def _until(self, until: str) -> str:
        """Return the rule of free text: up to the first `until`, which the lexer must not read on from."""
        self.rules["FREE"] = self._free
        if not until:
            return "FREE"
        self.rules["head[lazy]"] = f"FREE /{_in_slashes(regex(Lit(until), {}))}/"
        return "head"


def _is_regular(node: Node) -> bool:
    match node:
        case Seq(items) | Alt(items):
            return all(map(_is_regular, items))
        case Rep(item, _, _):
            return _is_regular(item)
        case _:
            return isinstance(node, Lit | Chars)


def _in_slashes(pattern: str) -> str:
    return pattern.replace("/", "\\/")


def regex(node: Node, rules: Mapping[str, Node]) -> str:
    """Return one regex without look-around. Raises UsageError for a schema that holds itself, and for free text."""
    return _regex(node, rules, ())


def _regex(node: Node, rules: Mapping[str, Node], inside: tuple[str, ...]) -> str:
    match node:
        case Lit(text):
            return "".join(_in_pattern(char) for char in text)
        case Chars(ranges, negated):
            return _class(_characters(ranges), negated, _regex_in_class)
        case Seq(items):
            return "".join(_regex(item, rules, inside) for item in items)
        case Alt(items):
            return "(?:" + "|".join(_regex(item, rules, inside) for item in items) + ")"
        case Rep(item, least, most):
            inner = _regex(item, rules, inside)
            inner = inner if isinstance(item, Chars | Alt) else f"(?:{inner})"
            return _repeated(inner, least, most)
        case Ref(name):
            if name in inside:
                raise UsageError("target regex: expected schemas that do not hold themselves, found one that does")
            return _regex(rules[name], rules, (*inside, name))
        case _:
            raise UsageError("target regex: expected free_text=False (--calls-only), found free text, which none says")


def _class(ranges: tuple[tuple[str, str], ...], negated: bool, escape: dict[str, str]) -> str:
    inner = ""
    for low, high in ranges:
        first, last = (escape.get(char, _visible(char)) for char in (low, high))
        inner += first if low == high else f"{first}-{last}"
    return f"[{'^' * negated}{inner}]"


def _characters(ranges: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return ranges without those of surrogates only, of which most engines want to hear nothing."""
    return tuple((low, high) for low, high in ranges if not (low >= _SURROGATES[0] and high <= _SURROGATES[1]))


_gbnf_in_class: Final = {
    "\\": "\\\\",
    "]": "\\]",
    "[": "\\[",
    "^": "\\u005E",
    "-": "\\u002D",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    '"': '\\"',
}
_regex_in_class: Final = {
    "\\": "\\\\",
    "]": "\\]",
    "[": "\\[",
    "^": "\\^",
    "-": "\\-",
    "&": "\\&",
    "~": "\\~",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def _visible(char: str) -> str:
    """Return a character as it is, or as an escape where an editor would not show it.

    Never as `\\xHH`: XGrammar takes what follows for more digits of it.
    """
    code = ord(char)
    if 0x20 <= code < 0x7F or (code > 0xA0 and char.isprintable()):
        return char
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _in_pattern(char: str) -> str:
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    return re.escape(char) if char in "\\.^$*+?{}[]|()-&~#" else _visible(char)
