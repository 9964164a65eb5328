"""Reads an envelope incrementally: the object whose members are a tool's name, its arguments, and perhaps an id.

Only members at the outermost level count: an argument called `name` never picks the tool. Of the members only the
arguments come out; where they have another key than the grammar knows, or none, when the envelope ends (see `beside`).
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring as quoted
from typing import Final

from callmark.dialects import Form
from callmark.dialects.model import ID_KEYS, KEYS_ASIDE, KEYS_ASIDE_OF_OBJECT
from callmark.events import Repair, Span
from callmark.reading.beside import Beside, OtherArguments
from callmark.reading.embedded import Embedded
from callmark.reading.lookahead import follows
from callmark.reading.matching import Pattern
from callmark.reading.pieces import fold
from callmark.reading.schemas import ARGUMENTS_KEYS
from callmark.reading.status import KEY, NEXT, Terms
from callmark.reading.values import JSON, ValueReader

_OTHER_NAME_KEYS: Final = frozenset(
    (
        "tool", "toolname", "action", "function_name", "functionname", "func", "api", "method", "tool_call", "toolcall",
        "function_call", "functioncall",
    )
)  # fmt: skip
"""Keys, in lower case, under which a name stands that has none of the dialect's own, or an object that begins so."""
_FIRST_KEY: Final = re.compile(r"\{[ \t\r\n]*+[\"']([^\"']*+)")
_UNESCAPED: Final = Pattern(
    r"\"[ \t\r\n]{0,16}+\{[ \t\r\n]{0,16}+\"[\w$@][\w$@.\-]{0,127}+\"[ \t\r\n]{0,16}+:[ \t\r\n]{0,16}+[^ \t\r\n\\]"
)
"""What a string of arguments begins with whose quotes should have been escaped."""
_OUTER_QUOTE: Final = Pattern(r"\"[ \t\r\n]{0,16}+[}\]]")
"""The second quote around such arguments, where one of their own is due."""
_OBJECT: Final = Pattern(r"\{[ \t\r\n]{0,16}+(?:\}|\"[^\"\\\r\n]{1,128}+\"[ \t\r\n]{0,16}+:)")
"""An object where a key is due: arguments whose own key is missing, unless it begins as an envelope does."""
_NAMED: Final = Pattern(r"\{[ \t\r\n]{0,16}+\"name\"[ \t\r\n]{0,16}+:[ \t\r\n]{0,16}+\"")
"""What an object begins with that holds a name, and perhaps arguments."""
_EMPTY_LIST: Final = Pattern(r"\[[ \t\r\n]{0,16}+\]")
_BEHIND_ARGUMENTS: Final = (["E"], ["E", "O"], ["F"], ["F", "E"], ["F", "E", "O"])
"""The brackets that are open where the next call may follow one that has begun its arguments and lacks closers."""
_KEYS_NAMED: Final = 2  # of those of arguments: that which a dialect writes is one of the first
_CAPTURE_LIMIT: Final = 12 * 128  # characters of a name as it is written: 128, each perhaps as two escapes


class EnvelopeReader(ValueReader):
    """As ValueReader; `start` and `end` are the span of the member that holds the arguments.

    `final` says that no more text comes: a brace at its end is the envelope's, and not one too many. A name without
    quotes must be that of a tool that was given: another word (`{"name": invalid}`) need not be meant as the name of
    anything.
    """

    __slots__ = (
        "_arguments_keys", "_aside", "_in_quotes", "_key", "_key_span", "_name_keys", "_role", "_roles", "_tools",
        "_visible", "beside", "final",
    )  # fmt: skip

    def __init__(self, form: Form, start: int, terms: Terms, *, tolerant: bool = True) -> None:
        super().__init__(form, start, terms, tolerant=tolerant)
        self.final = False  # whether no more text comes
        self._in_quotes = False  # whether the arguments stand in quotes, though their own ones are not escaped
        self._tools = terms.tools or {}
        self._outside = 1
        self._live = False
        self._name_keys = form.name_keys
        self._arguments_keys = form.arguments_keys
        self._key = ""
        self._role = ""  # what the current member is: "name", "arguments", "id", "other" ...: see `_colon`
        self._roles: set[str] = set()
        self._key_span = Span(start, start)  # of the current member's key
        self.beside: Final = Beside(self._tools)
        self._aside: list[str] | None = None  # where the member goes that is read, and may turn out to be no arguments
        self._visible: list[str] = []  # `out`, while it is read

    @property
    def complete(self) -> bool:
        """Whether its name has been read, and its arguments have begun."""
        return self.name is not None and "arguments" in self._roles

    def _begin_key(self, buffer: str, at: int, base: int) -> int:
        """Begin a key; or end, where the next call of a list stands in its place: this one lacks its closers."""
        inside = self._stack[-1:] == ["O"]
        another = self._around.another if inside else self._around.another_behind
        behind = self._tolerant and self._state == KEY and self.complete and self._stack in _BEHIND_ARGUMENTS
        if another is not None and behind:
            begins = follows(another, buffer, at)
            if begins is None:
                return at
            if begins:
                return self._split(self.sound, at)
        if self._lacks_key():
            is_object = follows(_OBJECT, buffer, at)
            if is_object is None:
                return at
            first = _FIRST_KEY.match(buffer, at)
            if is_object and (first is None or not self._is_envelopes(first[1].lower())):
                self._repair("key-spelling", base + at, base + at)
                self._roles.add("arguments")
                self._live = True
                return self._begin_value(buffer, at, base)
        return super()._begin_key(buffer, at, base)

    def _lacks_key(self) -> bool:
        """Whether an object may be the arguments, though a key is due: the name has come, and nothing of arguments."""
        named = self._roles == {"name"} and self.name is not None and not self.beside.count
        return named and self._tolerant and self._stack[-1] == "E"

    def _is_envelopes(self, key: str) -> bool:
        """Whether a key in small letters is one of an envelope, as models spell it."""
        return self._may_name(key) or self._may_hold_arguments(key) or key in KEYS_ASIDE

    def _may_name(self, key: str) -> bool:
        return key in self._name_keys or key in _OTHER_NAME_KEYS

    def _may_hold_arguments(self, key: str) -> bool:
        return key in self._arguments_keys or key in ARGUMENTS_KEYS

    def _enter(self, name: str | None, inside: bool) -> None:
        self._stack.append("E")
        self.name = name
        self._roles = {"name", "arguments"}
        self._live = inside

    def feed(self, buffer: str, at: int, base: int) -> int:
        """Read `buffer` from index `at`; as in ValueReader."""
        if self._aside is not None:
            self.out = self._aside
        at = super().feed(buffer, at, base)
        if self.name is None or self._aside is not None:  # nobody takes what comes out
            fold(self.out)
        if self._aside is not None:
            self.out = self._visible
        return at

    def close(self, at: int, base: int, closed: tuple[int, ...]) -> None:
        """Take all brackets that are open as closed; as in ValueReader."""
        if self._aside is not None:
            self.out = self._aside
        super().close(at, base, closed)

    def lacks(self, buffer: str, at: int) -> bool:
        """Whether it has no arguments, and the object behind it, at index `at`, begins with them: they are its own."""
        first = _FIRST_KEY.match(buffer, at) if "arguments" not in self._roles else None
        return first is not None and first[1] in self._arguments_keys

    def _put_aside(self, sink: list[str]) -> None:
        """The value that comes now is written to `sink`: it may turn out to be no arguments."""
        self._live = self._withheld = True
        self._visible, self.out = self.out, sink
        self._aside = sink

    def _end_aside(self) -> None:
        """A value at the outermost level is over."""
        if self._aside is not None and self._stack[-1] == "E":
            self.out = self._visible
            self._aside = None
            self._live = self._withheld = False

    # Members: what a key says of its value.

    def _colon(self, frame: str, at: int, base: int) -> int:
        if frame == "E":
            key = self._key
            role = "name" if key in self._name_keys else "arguments" if key in self._arguments_keys else ""
            if role in self._roles:
                return self._die("duplicate-key", "one name and one member with arguments", at)
            size = len(key) + 2 * (self.sound != self._word_start)
            self._key_span = Span(self.sound, self.sound + size)
            if role:
                self._roles.add(role)
            elif self._tolerant and self.name is None and self.beside.name is None and self._may_name(key.lower()):
                role = "other name"
            elif key in KEYS_ASIDE:
                role = "id" if key in ID_KEYS else "type"
            else:
                role = "other" if self._tolerant and self._may_hold_arguments(key.lower()) else "beside"
            self._role = role
            self._live = role == "arguments"
            self.beside.begin(key, role, self._key_span)
            if role == "beside" and self._tools and "arguments" not in self._roles:
                self._put_aside(self.beside.begin_flat(key, self._key_span))
        elif frame == "F":
            if self._key not in KEYS_ASIDE_OF_OBJECT:
                return self._die("bad-arguments", "the arguments in the object that holds the name", at)
            self._role = "id" if self._key in ID_KEYS else self._key
        return super()._colon(frame, at, base)

    def _die_in_role(self, at: int) -> int:
        if self._role == "name":
            named = "a string of 1 to 128 characters, the name of the tool, with no spaces around it"
            return self._die("missing-name", named, at)
        return self._die("bad-arguments", "an object, the arguments", at)

    # Brackets.

    def _begin_value(self, buffer: str, at: int, base: int) -> int:
        """As in ValueReader; an empty list for the arguments, as PHP writes an empty object, is none.

        An object under another key of the name may hold name and arguments, as one under `function` does.
        """
        if self._stack[-1:] == ["E"] and self._role == "other name" and not self._roles and not self.beside.candidates:
            holds = follows(_NAMED, buffer, at)
            if holds is None:
                return at
            if holds:
                self._key = "function"
                self._role = "name"
                self._roles.add("name")
        if self._stack[-1:] == ["E"] and self._role == "arguments" and self._tolerant:
            is_empty = follows(_EMPTY_LIST, buffer, at)
            if is_empty is None:
                return at
            if is_empty:
                end = buffer.index("]", at) + 1
                self.sound = base + at
                self._take_no_arguments(base + at, base + end)
                self._state = NEXT
                return end
        return super()._begin_value(buffer, at, base)

    def _take_no_arguments(self, start: int, end: int) -> None:
        """What stands between two positions says that there are none."""
        self._repair("null-arguments", start, end)
        self.start, self.end = start, end
        self.out.append("{}")
        self._live = False

    def _open(self, new: str, char: str, frame: str, at: int, base: int) -> int:
        if frame != "E":
            return super()._open(new if frame else "E", char, frame, at, base)
        if self._role in ("name", "arguments") and not (char == "{" and self._live):
            holds = self._key == "function" and self._roles == {"name"} and not self.beside.candidates
            if char != "{" or not (holds and self._tolerant):
                return self._die_in_role(at)
            self.repairs.append(Repair("key-spelling", self._key_span))  # what it holds is the envelope
            self._stack[-1] = "F"
            self._roles.clear()
            self.beside.open_function()
            new = "E"
        if self._role == "other name":
            self.beside.take_no_name(self._key, self._key_span)
        elif self._role == "other":
            self.beside.candidates += 1
            if char == "{" and "arguments" not in self._roles:
                written: list[str] = []
                place = Span(base + at, base + at)
                self.beside.arguments = OtherArguments(written, self._key, self._key_span, place)
                self._put_aside(written)
        if self._live and not self._withheld:
            self.start = base + at
        return super()._open(new, char, frame, at, base)

    def _read_closer(self, frame: str, buffer: str, at: int, base: int) -> int:
        doubled = self._around.doubled
        if frame == "E" and self._tolerant and len(self._stack) == 1 and doubled is not None:
            one_more = follows(doubled, buffer, at)
            if one_more is None and not self.final:
                return at
            if one_more and self.beside.count:  # what stands beside the arguments was perhaps meant to stand in them
                return self._die("bad-arguments", "all arguments in one object", at)
            if one_more:
                self._repair("extra-closer", base + at, base + at + 1)
                return at + 1
        return super()._read_closer(frame, buffer, at, base)

    def _close(self, frame: str, at: int, base: int, *, written: bool = False) -> int:
        if frame == "E":
            self._take_others(base + at)
            if self.name is None:
                return self._die("missing-name", f'a member "{self._name_keys[0]}" with the name of the tool', at)
            if "arguments" not in self._roles:
                if not self.beside.count:
                    self.out.append("{}")
                elif not self._take_flat(base + at + 1):
                    keys = " or ".join(f'"{key}"' for key in self._arguments_keys[:_KEYS_NAMED])
                    return self._die("bad-arguments", f"a member {keys}", at)
        end = self.end
        stop = super()._close(frame, at, base, written=written)
        if not self._stack:  # the arguments ended before
            self.end = end
        elif self._live and self._stack[-1] == "E":
            if self._aside is None:
                self._live = False
                self.end = base + stop
            elif self._role == "other" and (other := self.beside.arguments) is not None:
                self.beside.arguments = other._replace(place=Span(other.place.start, base + stop))
            self._end_aside()
        return stop

    def _take_others(self, end: int) -> None:
        """The envelope ends at position `end`: what stood under other keys is its name and its arguments where nothing
        else is.
        """
        beside = self.beside
        if beside.name is not None:
            name, key, span = beside.name
            if self.name is None:
                self.repairs.append(Repair("key-spelling", span))
                self.name = name.strip(" ") or None
                if self.name != name:
                    self.repairs.append(Repair("odd-blank", span))
            else:
                beside.take_no_name(key, span)
        other = beside.meant(self.name or "") if "arguments" not in self._roles else None
        if other is not None:
            self.out += other.json
            self.start, self.end = other.place.start, min(other.place.end, end)  # its own closer may be missing
            self._roles.add("arguments")
            self.repairs.append(Repair("key-spelling", other.key_place))
            if other.repair is not None:
                self.repairs.append(other.repair)

    def _take_flat(self, end: int) -> bool:
        """The envelope ends at position `end`, and holds no arguments: return whether what stands beside it is them."""
        flat = self.beside.flattened(self.name or "")
        if flat:
            self.out += flat
            self.end = end
            self.repairs.append(Repair("flattened-arguments", self.beside.flat_place))
        return bool(flat)

    def _escaped_reader(self, start: int) -> ValueReader:
        if self._stack[-1] != "E":
            return super()._escaped_reader(start)
        self._roles |= {"name", "arguments"}
        return EnvelopeReader(self._form, start, Terms(self._depth_limit), tolerant=False)

    def _read_escaped(self, buffer: str, at: int, base: int) -> int:
        escaped, whole = self._escaped, self._stack[-1] == "E"
        at = super()._read_escaped(buffer, at, base)
        if whole and escaped is not None:
            self.start, self.end = escaped.reader.start, escaped.reader.end
        return at

    # Strings and words: names and ids, and arguments that are written as a string.

    def _choose_sink(self, at: int, base: int) -> bool:
        if self._stack[-1] not in "EF" or self._aside is not None:
            return super()._choose_sink(at, base)
        self._sink = None
        if self._is_key or self._role != "arguments":
            self._word = []
            self._sink = self._word if self._is_key or self._role in ("name", "id", "other name", "other") else None
            return self._is_key or self._role != "name"  # a tool's name is never mended
        if self._tolerant:
            self._repair("string-arguments", base + at, base + at + 1)
            self._nested = Embedded(ValueReader(JSON, 0, Terms(self._depth_limit), tolerant=False))
            self.start = base + at
        else:
            self._die_in_role(at)
        return True

    def _begin_string(self, quote: str, buffer: str, at: int, base: int, *, is_key: bool) -> int:
        """As in ValueReader; but the quotes around arguments whose own ones are not escaped are dropped."""
        if not is_key and self._role == "arguments" and self._stack[-1] == "E" and self._tolerant:
            unescaped = follows(_UNESCAPED, buffer, at)
            if unescaped is None:
                return at
            if unescaped:
                self._repair("string-arguments", base + at, base + at + 1)
                self._in_quotes = True
                return at + 1
        if self._in_quotes:  # before a closer it is the outer one, and something is missing before it
            is_outer = follows(_OUTER_QUOTE, buffer, at)
            if is_outer is None:
                return at
            if is_outer:
                return self._die("unexpected-text", self._wanted(), at)
        return super()._begin_string(quote, buffer, at, base, is_key=is_key)

    def _read_token(self, char: str, state: int, frame: str, buffer: str, at: int, base: int) -> int:
        """As in ValueReader; where the arguments stand in quotes, the second one ends them, and nothing else does."""
        if self._in_quotes and frame == "E" and state == NEXT:
            if char != '"':
                return self._die("unexpected-text", "the quote behind the arguments", at)
            self._in_quotes = False
            return at + 1
        return super()._read_token(char, state, frame, buffer, at, base)

    def _end_string(self, at: int, base: int) -> int:
        at = super()._end_string(at, base)
        self._end_aside()
        return at

    def _capture(self, sink: list[str], piece: str) -> None:
        self._size += len(piece)
        if self._captures():
            sink.append(piece)
            fold(sink)

    def _captures(self) -> bool:
        """Whether what is captured may still be a key or a name, or is of any length: an id, or perhaps arguments."""
        return self._size <= _CAPTURE_LIMIT or (self._role in ("id", "other") and not self._is_key)

    def _end_captured(self, sink: list[str], at: int, base: int) -> int:
        text = "".join(sink) if self._captures() else ""
        if self._is_key:
            self._key = text
            return at
        if self._role == "other":
            place = Span(self.sound, base + at)
            self.beside.take_string(text, self._key, self._key_span, place, self._depth_limit)
            return at
        if "\\" in text:
            text = self._unmarked(json.loads(f'"{text}"'))
        if self.faults and self.faults[-1].span.start > self.sound:
            return at  # so it has no name, or no id
        if self._role == "other name":
            if 0 < len(text) <= 128:
                self.beside.name = text, self._key, self._key_span
            else:
                self.beside.take_no_name(self._key, self._key_span)
        elif self._role == "id":
            self.id = text
        else:
            name = text.strip(" ")
            if name != text:
                self._repair("odd-blank", self.sound, base + at)
            if not 0 < len(name) <= 128 or (name != text and not self._tolerant):
                return self._die_in_role(at - 1)
            self.name = name
        return at

    def _unmarked(self, text: str) -> str:
        """Return the name that ends without the backslashes that Markdown wants before underscores; an id as it is.

        They are no escapes of JSON, and no tool's name holds any; one that is written as JSON wants it stays.
        """
        places = [n for n, repair in enumerate(self.repairs) if repair.span.start > self.sound]
        kept = {self.repairs[n].code for n in places} != {"literal-backslash"}
        if self._role == "id" or kept or not len(places) == text.count("\\") == text.count("\\_"):
            return text
        for n in places:
            self.repairs[n] = Repair("markdown-escape", self.repairs[n].span)
        return text.replace("\\", "")

    def _take_key(self, word: str, at: int, base: int) -> None:
        super()._take_key(word, at, base)
        self._key = word

    def _take_literal(self, word: str, text: str, at: int, base: int) -> None:
        if self._stack[-1] != "E" or self._role not in ("name", "arguments"):
            if self._role == "other name" and self._stack[-1] == "E":
                self.beside.take_no_name(self._key, self._key_span)
            elif self._role == "other" and self._stack[-1] == "E" and text == "null" and not self.beside.candidates:
                self.beside.take_null(self._key, self._key_span, Span(self._word_start, base + at))
            super()._take_literal(word, text, at, base)
            self._end_aside()
        elif self._role == "name" and text == quoted(word) and word in self._tools and len(word) <= 128:
            self.name = word
        elif self.faults:
            self._live = False  # it has no arguments, or no name
        elif text != "null" or self._role == "name" or not self._tolerant:
            self.error = self._word_start
            self._die_in_role(at)
        else:
            self._take_no_arguments(self._word_start, base + at)
