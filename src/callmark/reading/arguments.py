"""Reads an argument list incrementally: `key=value` pairs, positional values, or one value that is the arguments.

A word, or a short string, may turn out to be a key, so it is held until an equals sign, a comma or the closing
parenthesis stands behind it. A key ends the positional values; those before it are bound to the parameters of a
schema, in order. Without one, only a single value can stand there, and it is the arguments. A word that begins with
the name of a parameter and a colon, or an equals sign, is never bound: it was meant as a pair. Nor are two that begin
with such a name and a blank. Where such a name and an equals sign stand in a word, behind a blank or a sign in the
place of a comma, the comma is missing there. With colons in the place of equals signs that is in doubt, as texts hold
colons: then the call is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from json.encoder import encode_basestring as quoted
from typing import Final, Self

from callmark.dialects import Form
from callmark.dialects.tokens import NO_WORD
from callmark.events import RAW_KEY
from callmark.reading.lookahead import (
    CALL_BEGUN,
    COLON_AND_ANY_WORD,
    COLON_AND_WORD,
    COMMENT_AND_END,
    COMMENT_AND_MORE,
    KEY_PATTERN,
    MARKED_KEY,
    WIDE,
    WIDE_OPENING,
    follows,
)
from callmark.reading.matching import Pattern, Watched
from callmark.reading.plain import BETWEEN_PAIRS, pair_in_word
from callmark.reading.status import FIRST_KEY, VALUE, Terms
from callmark.reading.strings import CURLY, PREFIXES
from callmark.reading.values import KEY_LIMIT, ValueReader
from callmark.reading.words import scalar
from callmark.toolshapes import DIGITS_LIMIT, Types

BARE_LIMIT: Final = DIGITS_LIMIT + 1
"""Characters of a bare word, which is held until it ends: as many as an integer with its sign may have."""

_WORD_WINDOW: Final = 256  # characters of a word that are looked at in one: a sign may end it long before its run does

_KEY: Final = Pattern(KEY_PATTERN)
_MARKED_KEY: Final = Pattern(MARKED_KEY)
_BARE_RUN: Final = Pattern(r'[^,()\[\]{}"，（）\r\n\ud800-\udfff]++')
_NO_WORD: Final = Watched(Pattern(NO_WORD))
_NO_BARE_START: Final = frozenset(["=", *",)]}，（）", *CURLY])
_ELLIPSES: Final = frozenset(("...", "…", "*args", "**kwargs"))  # they stand for what a call would have
_OPTION: Final = re.compile(
    r"-{1,2}([^\W\d][\w\-]{0,127}+)(?![^ \t=])|([^\W\d](?:[\w.]|-(?!>)){0,127}+)[ \t]{0,8}+->"
    r"|<([^\W\d][\w.\-]{0,127}+)[>=]"
)
"""A word that begins with an option, as commands have them, with a key and an arrow, or with a tag."""
_ENCODED: Final = re.compile(r'"[ ]?\{(?:[ ]|\\[nrt]){0,16}+\\"([^"\\]{1,128}+)\\"[ ]{0,8}+:').match
"""The JSON of a string that begins as an object does; the group is its first key."""
_NULLS: Final = frozenset(("null", "None"))  # behind a key they are text where text is declared
_COLON_SIGN: Final = Pattern("[:：]")
_MAY_BE_PAIR: Final = re.compile(
    rf"(?:{BETWEEN_PAIRS}(?:[$@\-]|{KEY_PATTERN}[ \t]{{0,8}}+(?:[=:：][ \t]{{0,8}}+)?)?|[;；、]|[ \t][&|;；、])\Z"
)
_PAIR_HOLD: Final = 151  # characters that it matches, at most


class ArgumentsReader(ValueReader):
    """As ValueReader; the list ends behind its closing parenthesis, its span before it."""

    __slots__ = (
        "_begun", "_bind", "_bound", "_colons", "_encoded", "_given", "_held", "_held_kind", "_key", "_named", "_names",
        "_object", "_separator", "_single",
    )  # fmt: skip

    def __init__(self, form: Form, start: int, terms: Terms) -> None:
        super().__init__(form, start, terms)
        self._stack.append("R")
        self._state = FIRST_KEY
        self._begun = False  # whether anything of it has come out
        self._single = False  # it consists of one value, which is the arguments
        self._object = False  # ... and that is an object
        self._names = terms.parameters.names if terms.parameters is not None else ()
        self._bind = self._names  # those to which positional values are bound
        self._bound = 0  # how many positional values were bound
        self._named = False  # whether the last argument was one, and begins with a parameter's name and a blank
        self._held: list[str] | None = None  # an argument that may turn out to be a key
        self._held_kind = ""  # its delimiter, "" for a word
        self._encoded = -1  # position of a string that may be meant as all of the arguments
        self._key = ""  # of the value that is read; also of a held one, if it is bound
        self._colons = False  # whether a colon stands behind it
        self._given: set[str] = set()
        self._separator = -1  # position of the comma before an argument

    def _enter(self, name: str | None, inside: bool) -> None:
        self._single = self._object = self._begun = True
        self._outside = 1

    @classmethod
    def behind_key(
        cls, form: Form, start: int, terms: Terms, frames: Sequence[str], state: int, *, sound: int, quote: str,
        opened: str, keys: Sequence[str],
    ) -> Self:
        """Go on where a `pairs.PairsReader` has read an argument list so far: in the value of the last of `keys`.

        The rest as in `behind`, but `frames` are the open brackets of the value.
        """
        reader = cls(form, start, terms)
        reader._flavour = "python"
        reader._begun = True
        reader._bind = ()
        reader._key = keys[-1]
        reader._given.update(keys)
        reader._stack += frames
        reader._go_on(state, sound, quote, opened)
        return reader

    @property
    def inside(self) -> bool:
        """Whether more members of the arguments could follow."""
        return not (self._object and self._stack == ["R"])

    # What begins and what ends an argument.

    def _begin_key(self, buffer: str, at: int, base: int) -> int:
        """Begin an argument: a key, or a positional value; a word or a short string is held until that is clear."""
        if self._stack[-1] != "R":
            return super()._begin_key(buffer, at, base)
        char = buffer[at]
        first = self._state == FIRST_KEY
        self._separator = -1 if first else self.sound
        if char in "/#":
            remark = follows(COMMENT_AND_MORE, buffer, at)
            if not remark and not self._bind and self._begun and not self._bound:  # behind pairs no word can stand
                ends = follows(COMMENT_AND_END, buffer, at)
                remark = ends if ends or remark is False else None
            if remark is None:
                return at
            if remark:
                return self._skip_comment(buffer, at, base)
        if first:
            self.start = base + at
        if first and char in "｛［":
            wide = follows(WIDE_OPENING, buffer, at)
            if wide is None:
                return at
            if wide:
                self._repair("full-width-punctuation", base + at, base + at + 1)
                char = WIDE[char]
        if first and char == "{":
            self._enter(None, inside=True)
            return self._begin_container(char, "R", buffer, at, base)
        self._flavour = "python"
        if char in "[({":
            if not self._bind_next():
                return self._die("bad-arguments", 'a key and "="', at)
            return self._begin_container(char, "R", buffer, at, base)
        quote = self._opening_quote(buffer, at)
        if quote is None:
            return at
        if quote:
            self._held = []
            self._held_kind = quote
            return self._begin_string(quote, buffer, at, base, is_key=False)
        if char in _NO_BARE_START:
            return self._die("unexpected-text", 'a key, a value or ")"' if first else "a key or a value", at)
        self._held = []
        self._held_kind = ""
        if self._bound < len(self._bind):
            self._key = self._bind[self._bound]
        self._begin_word(at, base, is_key=False)
        return at

    def _begin_value(self, buffer: str, at: int, base: int) -> int:
        if self._stack[-1] != "R":
            return super()._begin_value(buffer, at, base)
        char = buffer[at]
        if char in "{[(":
            return self._begin_container(char, "R", buffer, at, base)
        quote = self._opening_quote(buffer, at)
        if quote is None:
            return at
        if quote:
            return self._begin_string(quote, buffer, at, base, is_key=False)
        if WIDE.get(char, char) in ",)":
            return self._pass_by(at, base)
        if char in _NO_BARE_START:
            return self._die("unexpected-text", "a value", at)
        self._begin_word(at, base, is_key=False)
        return at

    def _bind_next(self) -> bool:
        """A positional value begins: put the parameter's name before it, or take it as the whole, or say no."""
        begun, self._begun = self._begun, True
        if self._bound < len(self._bind):
            self._key = self._bind[self._bound]
            self._given.add(self._key)
            self._bound += 1
            self.out.append(("," if begun else "{") + quoted(self._key) + ":")
            return True
        self._single = not begun
        self._outside = int(self._single)
        return not begun

    def _settle(self, at: int, *, last: bool = False) -> bool:
        """A comma or (`last`) the closing parenthesis stands behind an argument: one that was held is positional."""
        if self._held is None:
            return True
        text = "".join(self._held)
        length = len(text)
        named = " " in text and text[: text.index(" ")] in self._names
        is_key = self._separator == self.sound  # as one follows, a comma was supplied before it
        if is_key or (named and self._named) or self._looks_like_a_pair(text):
            self._die("unexpected-text", '"="', at)
            return False
        self._named = named
        self._held = None
        self._check_object(text)
        bound = not self._is_no_value(text) and self._bind_next()
        if bound and not self._held_kind:
            text = scalar(text, None if self._single else self._declared())
            if self._single and text.startswith('"'):
                bound = last
                text = f'{{"{RAW_KEY}":{text}}}'
                if bound:
                    self._repair("raw-arguments", self.sound, self.sound + length)
        if not bound:
            self.error = self.sound  # where the argument begins
            alone = self._single or not self._begun  # else JSON would not do either
            self._die("bad-arguments", 'JSON, or a key and "="' if alone else 'a key and "=" before the value', at)
            return False
        self.out.append(text)
        return True

    def _looks_like_a_pair(self, word: str) -> bool:
        """Whether a word begins with a parameter's name, and goes on as a pair does; or with an option of that name."""
        option = _OPTION.match(word)
        key = "" if option is None else option[1] or option[2] or option[3]
        return key in self._names or key.replace("-", "_") in self._names or any(
            sign != "" and key.rstrip(" \t") in self._names and not f"{sign}{rest}".startswith("://")
            for key, sign, rest in (word.partition(":"), word.partition("="))
        )

    def _is_no_value(self, word: str) -> bool:
        """Whether a positional word stands for what a call would have, as the parameter's own name does, or for
        nothing, where no null is declared.
        """
        if word in _ELLIPSES or self._bound >= len(self._bind):
            return word in _ELLIPSES
        declared = self._declared()
        if declared is not None and word in declared.members:
            return False
        return word == self._key or (word in _NULLS and declared is not None and "null" not in declared)

    def _check_object(self, string: str) -> None:
        """A positional string of JSON is meant as all of the arguments where its first key is a parameter of theirs."""
        first = _ENCODED(string)
        if first is not None and first[1] in self._names:
            self._encoded = self.sound

    def _declared(self) -> Types | None:
        return self._parameters.declared(self._key) if self._parameters is not None else None

    def _comma(self, frame: str, at: int, base: int) -> int:
        if frame == "R":
            if not self._settle(at):
                return at
            if self._single:
                self._ended = self._object
                if self._object:
                    return self._die("unexpected-text", '")"', at)
                return self._die("bad-arguments", 'a key and "=" before each of several values', at)
        return super()._comma(frame, at, base)

    def _drop_comma(self, frame: str, buffer: str, at: int, base: int) -> int:
        if frame == "R" and self._bound:  # perhaps a value is missing between two commas
            return self._die("unexpected-text", "a key or a value", at)
        return super()._drop_comma(frame, buffer, at, base)

    def _mend(self, frame: str, char: str, buffer: str, at: int, base: int) -> int:
        if frame == "R":
            if self._held is not None and char in "=:":
                return self._end_key(char, at, base)
            if char == "(" and self._may_begin_call():
                begins = follows(CALL_BEGUN, buffer, at)
                if begins is None:
                    return at
                if begins:
                    self._held = None
                    return self._split(self._separator, at)
            if self._single:
                self._ended = True
                return self._die("unexpected-text", self._wanted(), at)
        return super()._mend(frame, char, buffer, at, base)

    def _may_begin_call(self) -> bool:
        """Whether a word before a parenthesis may be the next call of a list: behind pairs it is no value."""
        listed = bool(self._form.separator) and self._separator >= 0
        return listed and not self._bound and self._held is not None and not self._held_kind

    def _end_key(self, char: str, at: int, base: int) -> int:
        """What was held is followed by `=`: it is a key."""
        held = "".join(self._held or ())
        quote = self._held_kind
        is_key = quote[0] not in PREFIXES if quote else self._is_key_word(held)
        if not is_key:
            return self._die("unexpected-text", '"," or ")"', at)
        if quote == "'":
            self._repair("single-quotes", self.sound, self.sound + 1)
        self._colons = char == ":"
        if self._colons:
            self._repair("colon-for-equals", base + at, base + at + 1)
        self._held = None
        if not quote and "\\" in held:
            self._unmark(held)
            held = held.replace("\\", "")
        self._bare = self._colons and not quote
        self._key = held[1:-1] if quote else held
        self._given.add(self._key)
        self.out.append(("," if self._begun else "{") + (held if quote else quoted(held)) + ":")
        self._begun = True
        self._bind = ()  # a key ends the positional values
        self.sound = base + at
        self._state = VALUE
        return at + 1

    def _close(self, frame: str, at: int, base: int, *, written: bool = False) -> int:
        if frame == "R":
            if not self._settle(at, last=True):
                return at
            if self._encoded >= 0 and len(self._given) == 1:
                self._fault("bad-arguments", "an object, the arguments", self._encoded, self._encoded + 1)
            if not self._single:
                self.out.append("}" if self._begun else "{}")
        return super()._close(frame, at, base, written=written)

    # Strings and words, which may be held.

    def _choose_sink(self, at: int, base: int) -> bool:
        if self._held is None:
            return super()._choose_sink(at, base)
        self._sink = self._held
        self._held.append('"')
        return True

    def _closing(self, quote: str) -> tuple[Pattern | None, Pattern | None]:
        if self._stack[-1] != "R":
            return super()._closing(quote)
        around = self._around
        return around.pair if self._held is None else around.positional, around.no_python

    def _capture(self, sink: list[str], piece: str) -> None:
        self._size += len(piece)
        if self._size > KEY_LIMIT:  # no key is so long: a positional value, and it can come out
            self._held = None
            self._check_object("".join((*sink, piece)))
            if not self._bind_next():
                self._die("bad-arguments", 'a key and "="', 0)
                return
            self.out.extend(sink)
            sink = self._sink = self.out
        sink.append(piece)

    def _end_captured(self, sink: list[str], at: int, base: int) -> int:
        sink.append('"')
        return at

    def _read_word(self, buffer: str, at: int, base: int) -> int:
        if self._stack[-1] != "R":
            return super()._read_word(buffer, at, base)
        if not self._word:
            begins = self._begins_line(buffer, at, base)
            if begins is None:
                return at
            if begins:
                return self._die("unexpected-text", self._wanted(), at)
        limit = at + _WORD_WINDOW
        match = _BARE_RUN.match(buffer, at, limit)
        if match:
            end = match.end()
            token = _NO_WORD.find(buffer, at, end)
            if token is not None and token.certain:
                end = token.at
            if self._held is not None:
                sign, certain = self._sign(buffer, at, end)
                if not certain:
                    return self._lengthen(buffer, at, sign)
                end = sign
            if self._names:
                pair = pair_in_word(buffer, self._names, self._key, at, end, self._given)
                if self._colons:
                    until = end if pair < 0 else pair
                    doubt = pair_in_word(buffer, self._names, self._key, at, until, self._given, ":")
                    if doubt >= 0:  # or the word goes on with a name and a colon, as texts do
                        self._ended = True
                        return self._die("unexpected-text", '"," or ")"', doubt + (buffer[doubt] in " \t"))
                if pair >= 0:
                    end = pair
                elif end == len(buffer) or end == limit:
                    begun = _MAY_BE_PAIR.search(buffer, max(at, end - _PAIR_HOLD), end)
                    if begun is not None:
                        return self._lengthen(buffer, at, begun.start())
            if token is not None and token.at < end:  # it may become one
                return self._lengthen(buffer, at, token.at)
            self._word.append(buffer[at:end])
            excess = buffer[max(at, at + BARE_LIMIT - self._size) : end].lstrip(" \t")  # blanks at the end are no part
            self._size += end - at
            if excess:
                return self._die("bad-arguments", "a shorter word", end - len(excess))
            at = end
            if at == len(buffer) or at == limit:
                return at
        self._end_token()
        word = "".join(self._word).rstrip(" \t")
        if not word:
            return self._die("unexpected-text", "a value", at)
        if self._held is not None:
            self._held.append(word)
        else:
            self.out.append(scalar(word, self._declared()))
        self.sound = self._word_start
        return at

    def _lengthen(self, buffer: str, at: int, end: int) -> int:
        """Take what stands from index `at` to `end` as a part of the word, while what follows is still open."""
        self._word.append(buffer[at:end])
        self._size += end - at
        return end

    def _sign(self, buffer: str, at: int, end: int) -> tuple[int, bool]:
        """Return where before `end` the sign stands behind which a value begins, and whether that is certain."""
        for sign in "=＝":
            found = buffer.find(sign, at, end)
            if found < 0 or not self._is_key_up_to(buffer, at, found):
                continue
            if sign == "=" or self._bound >= len(self._bind) or self._names_one(buffer, at, found):
                end = found
        colon = _COLON_SIGN.search(buffer, at, end)
        if colon is not None and self._is_key_up_to(buffer, at, colon.start()):
            pairs = follows(self._around.colon_and_value, buffer, colon.start())
            named = self._names_one(buffer, at, colon.start())
            if not pairs and (named or self._bound >= len(self._bind)):
                word = COLON_AND_ANY_WORD if named else COLON_AND_WORD
                pairs = follows(word, buffer, colon.start()) if pairs is False else None
            if pairs is None:
                return colon.start(), False
            end = colon.start() if pairs else end
        return end, True

    def _is_key_word(self, word: str) -> bool:
        """Whether a word is a key: as Markdown escapes it only where it could be no positional value, or names one."""
        marked = self._bound >= len(self._bind) or word.replace("\\_", "_") in self._names
        return (_MARKED_KEY if marked else _KEY).fullmatch(word) is not None

    def _names_one(self, buffer: str, at: int, end: int) -> bool:
        """Whether what was read of the word, up to index `end`, is the name of a parameter."""
        return "".join([*self._word, buffer[at:end]]).rstrip(" \t").replace("\\_", "_") in self._names

    def _is_key_up_to(self, buffer: str, at: int, end: int) -> bool:
        """Whether what was read of the word, and what stands from index `at` to `end`, is a key."""
        return self._is_key_word("".join([*self._word, buffer[at:end]]).rstrip(" \t"))
