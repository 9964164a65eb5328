"""Reads the body language `parameters` incrementally: tags around raw values, as XML-ish dialects write them.

A value is any text up to `value_end`, but only where structure follows it (the next parameter, or the marker's tail);
elsewhere `value_end` is data. The form's own opener inside a value means that the outer call was never closed: it ends
there as broken, so that it does not swallow the call that begins. A last value that no structure ends before the text
does was perhaps cut in the middle: it is no call, for salvage neither, as what was previewed of it stands.

Where a form names an `item`, or tags say so, a value may hold elements instead of text: what opens a value there, and
what ends one, stands for a bracket of JSON, in any depth within the limit.

A value whose declared type is a string is previewed as it comes. One that is not declared, or that may be an object or
an array as well, may turn out to be JSON, so it is held until it ends, but never longer than PLAIN_LIMIT characters:
what is longer is text. The invariants are those of `values`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json.encoder import encode_basestring as quoted
from typing import Final

from callmark.dialects.limits import PLAIN_LIMIT
from callmark.dialects.notation import BLANKS, BLANKS_LIMIT
from callmark.events import Repair, Span
from callmark.reading.closers import DEPTH
from callmark.reading.decoder import Undecodable
from callmark.reading.diagnosis import CLOSER_BEHIND
from callmark.reading.embedded import Embedded
from callmark.reading.matching import HOLD_LIMIT, Pattern
from callmark.reading.patterns import ValuePatterns, behind_blanks
from callmark.reading.pieces import fold
from callmark.reading.raw_values import (
    character,
    declared,
    elements_in,
    empty_container,
    encoded_twice,
    is_long_json,
    is_sloppy,
    key_of,
    plain_value,
)
from callmark.reading.schemas import Parameters
from callmark.reading.status import DEAD, DONE, HELD, OPEN, BodyReader, Fault, Terms
from callmark.reading.stops import DATA, is_held
from callmark.reading.strings import halves_of_characters, without_halves
from callmark.reading.values import JSON, ValueReader
from callmark.toolshapes import BRACKETS, Types

_BETWEEN: Final = 0  # states
_BEGIN: Final = 1
_VALUE: Final = 2
_CDATA: Final = 3
_SEARCH_WINDOW: Final = 4 * HOLD_LIMIT  # characters: in so many more is decided than held back
_LINE_BREAKS: Final = frozenset({"\n", "\r", "\r\n", ""})
_ONE_TOO_MANY: Final = {"}": "extra-closer", "]": "extra-closer", ",": "extra-comma"}
"""What may stand behind a value that is JSON, with the code of its repair."""
_WITH_STRINGS: Final = {"single-quotes", "curly-quotes", "inner-quotes"}


def _supply_closers(inside: Embedded, place: int, out: list[str]) -> bool:
    """Close the brackets that are open in JSON which ends at a position; return whether that is all it lacks."""
    reader = inside.reader
    closers = reader.closers
    if len(closers) > DEPTH:
        return False
    before = len(reader.repairs)
    inside.take(closers, place + len(closers), out)
    added = {repair.code for repair in reader.repairs[before:]}  # what stands before may be cut: a word, a comma
    reader.repairs += [Repair("missing-closer", Span(place, place))] * len(closers)
    return inside.whole and added <= _WITH_STRINGS


class ParametersReader(BodyReader):
    """Incremental reader of a `parameters` body."""

    __slots__ = (
        "_base", "_begun", "_between", "_breaks", "_declared", "_extra", "_foreign", "_halves", "_held", "_held_size",
        "_is_json", "_is_string", "_json", "_kept", "_key", "_left", "_open", "_patterns", "_spelt", "_state", "_stop",
        "_stray", "_tagged", "_tail", "_trim", "_trimmed", "_whole", "supplied",
    )  # fmt: skip

    def __init__(self, patterns: ValuePatterns, start: int, terms: Terms, *, tolerant: bool) -> None:
        """Begin to read the body of a form at position `start` of the stream.

        What is not `tolerant` takes values as they stand; tags, and arguments that are one JSON object, are mended all
        the same (see `calls`).
        """
        super().__init__(start, terms, tolerant)
        form = patterns.form
        self._patterns = patterns
        self._state = _BETWEEN
        self._stop = patterns.stop if form.encoding == "raw" else patterns.stop_xml
        self._between = patterns.between
        self._breaks = patterns.breaks
        self._trim = form.trim
        self._whole = patterns.whole
        self._begun = False  # whether there is a value in the arguments, or in the innermost value that holds elements
        self._spelt = False  # whether a tag was as the row has it: the next one will be, too
        self._open: list[tuple[str, Parameters | None]] = []  # of such values: the bracket, and what is declared around
        self._key = ""
        self._kept = False  # the value holds a literal `value_end` as data
        self._left: Fault | None = None  # a value before it was left open, by all that could be seen
        self._foreign = False  # it holds an opener of a neighbour's: to that belongs the neighbour's closer
        self._tagged = False  # it holds a `<`, perhaps of an element, whose closer may have the key or such a word
        self._declared: Types | None = None
        self._is_json = False  # the value is JSON, says its tag
        self._held: list[str] = []  # of a value whose type is open
        self._held_size = 0
        self._stray: Fault | None = None  # a parameter that went on wrongly: a fault if the call has an end
        self._halves: list[Fault] = []  # halves of characters in what is held: faults where it is no JSON
        self._is_string = False  # the value comes out as a string
        self._json: Embedded | None = None  # the value comes out as JSON
        self._extra = False  # a bracket too many stands behind it
        self.supplied = False  # whether brackets were supplied at the end of arguments that are one JSON object
        self._base = 0  # position of the buffer that is read
        self._trimmed = False  # whether the value began with a line break of the markup, so that it ends with one too
        self._tail = ""  # a line break that may belong to the markup

    @property
    def stops(self) -> Callable[[str], object] | None:
        """What finds in a chunk of a value what does not pass as it is, or says that it is HELD; None outside."""
        if self._state != _VALUE or self._tail or self._json is not None:
            return None
        return self._patterns.stops if self._is_string else self._hold

    def rewritten(self, chunk: str) -> str | None:
        """Return the JSON of a chunk of a value that does not pass as it is, None where it must be read closely."""
        return quoted(chunk)[1:-1] if self._is_string and self._breaks(chunk) is None else None

    @property
    def waits(self) -> Callable[[str], object] | None:
        """What tells of the rest that is handed in again whether it is still too short to decide about; or None."""
        if self._state in (_BEGIN, _VALUE):
            return self._stop.waits
        return self._between.waits if self._state == _BETWEEN else None

    def _hold(self, chunk: str) -> object:
        if self._breaks(chunk) is not None or self._held_size + len(chunk) > PLAIN_LIMIT:
            return chunk
        held = self._held
        held.append(chunk)
        self._held_size += len(chunk)
        fold(held)
        return HELD

    def feed(self, buffer: str, at: int, base: int) -> int:
        """Read `buffer` from index `at`; as in ValueReader.

        A long one is read in windows: a value may die of its first character, and then what follows would have been
        searched in vain, and again for each value that begins in it.
        """
        while len(buffer) - at > _SEARCH_WINDOW and self.status == OPEN:
            at += self.feed(buffer[at : at + _SEARCH_WINDOW], 0, base + at)
        if self.status != OPEN:
            return at
        size = len(buffer)
        if self._state == _VALUE and not at and self._json is None and self._breaks(buffer) is None:
            piece, self._tail = self._tail + buffer, ""  # most chunks of most values: nothing in it needs a closer look
            if self._is_string:
                self.out.append(quoted(piece)[1:-1])
                return size
            if self._hold(piece) is HELD:
                return size
            self._tail = piece[: len(piece) - size]
        self._base = base
        while at < size and self.status == OPEN:
            before, state = at, self._state
            if state == _VALUE:
                found, end = self._stop.next(buffer, at)
                if end > at:
                    at = self._take(buffer[at:end], at)
                if found is None:
                    break
                if self.status != OPEN:
                    break
                at = self._close(at, base, found) if isinstance(found, int) else self._read_stop(found, buffer, base)
            elif state == _BETWEEN:
                at = self._read_between(buffer, at, base)
            elif state == _BEGIN:
                at = self._skip_line_break(buffer, at)
            else:
                at = self._read_cdata(buffer, at)
            if at == before and state == self._state:
                break
        return at

    def _read_between(self, buffer: str, at: int, base: int) -> int:
        """Read the tag that opens a value, or what ends the elements of one, or the arguments."""
        between = self._between
        found = between.match(buffer, at)
        strict = found is not None
        if found is None:
            if is_held(between, buffer, at):
                return at
            loose = self._patterns.loose_between if self._begun else self._patterns.loose_first
            for pattern in loose if not self._open else ():
                found = pattern.match(buffer, at)
                if found is not None and (self._begun or found.groupdict().get("next") is None):
                    break
                if pattern.may_match(buffer, at):
                    return at
            else:
                spaced = self._patterns.spaced  # else not all blanks may be there
                self.error = base + (behind_blanks(buffer, at) if spaced else at)
                expected = "the end of the value" if self._open else "the end of the call"
                return self._die("unexpected-text", f"a parameter or {expected}", at)
        self.sound = base + at
        if found.lastgroup != "tail":
            return self._begin_value(found, base, strict=strict)
        if self._open:
            self._end_elements()
            return found.end()
        self._end_arguments(base + at)
        return at

    def _begin_value(self, found: re.Match[str], base: int, *, strict: bool) -> int:
        """A tag opens a value: it is text, or elements, or arguments that are one JSON object."""
        at, end = found.span()
        if self._whole:
            if self._begun:
                return self._die("unexpected-text", "the end of the call", at)
            self.start = base + end
            reader = ValueReader(JSON, self.start, Terms(self._depth_limit))
            reader.faults = self.faults
            self._json = Embedded(reader, fenced=True)
        else:
            if not strict:
                self._repair_tag(found, base)
            holds = elements_in(found) if self._patterns.holds else ""
            if holds and len(self._open) + 2 > self._depth_limit:
                return self._die("nesting-too-deep", f"at most {self._depth_limit} nested brackets", at)
            self._key = found["key"] if self._patterns.keyed else key_of(found, self._patterns.form)
            if "\\" in self._key and self._tolerant and self._parameters is not None:
                self._unmark(found, self._parameters, base)
            if strict:
                self._spelt = True
            elif self._spelt and self._parameters is not None and self._parameters.lacks(self._key):
                # Perhaps the tag and the closer before it stand in the value: XML has such tags, too.
                place = base + behind_blanks(found.string, at)
                self.faults.append(Fault("unexpected-text", "a parameter of the tool", Span(place, base + end)))
            told = not strict or self._parameters is not None or self._patterns.typed
            self._declared, self._is_json = declared(found, self._key, self._parameters) if told else (None, False)
            if self._open and self._open[-1][0] == "]":
                self.out.append("," if self._begun else "[")
            else:
                self.out.append(("," if self._begun else "{") + quoted(self._key) + ":")
            if holds:
                self._begin_elements(holds)
                return end
            self._held = []
            self._held_size = 0
            types = self._declared
            if types is not None and types.is_text:
                self._begin_string()
        self._begun = True
        self._kept = self._foreign = self._tagged = False
        self._trimmed = False
        self._state = _BEGIN if self._trim else _VALUE
        return end

    def _end_arguments(self, place: int) -> None:
        """All values are read, and the end of the call stands at a position."""
        if not self._whole:
            self.out.append("}" if self._begun else "{}")
            self.end = place
        elif not self._begun:
            self.out.append("{}")
        if self._stray is not None:
            self.faults.append(self._stray)
        self.status = DONE

    def _unmark(self, found: re.Match[str], parameters: Parameters, base: int) -> None:
        """The key has a backslash: drop those that Markdown wants before underscores, if the tool means that."""
        name = parameters.unmarked(self._key)
        if name != self._key and "\\_" in found["key"]:  # else an entity was one of the two
            self._key = name
            for place in re.finditer(r"\\(?=_)", found["key"]):
                start = base + found.start("key") + place.start()
                self._repair("markdown-escape", start, start + 1)

    def _repair_tag(self, found: re.Match[str], base: int) -> None:
        """Record what is other than it should be in what opens a value."""
        for group, code in (("missing", "missing-opener"), ("unclosed", "missing-closer")):
            if group in found.re.groupindex:
                place = base + found.start(group)
                self._repair(code, place, place)
                return
        start = base + found.end() - len(found[0].lstrip(BLANKS))
        self._repair("opener-spelling", start, base + found.end())

    def _skip_line_break(self, buffer: str, at: int) -> int:
        """Pass by the line break of the markup with which a value begins, unless it begins what ends the value."""
        begin = buffer[at : at + 2]
        if begin in _LINE_BREAKS and at + len(begin) == len(buffer):
            return at  # what follows tells whether a value is there
        if begin[0] in "\r\n":
            stop = self._stop
            stops = stop.may_begin(begin)
            found = stop.match(buffer, at) if stops else None
            if found is None or found.lastgroup in DATA:
                if stops and stop.may_match(buffer, at):
                    return at
                behind = at + (2 if begin == "\r\n" else begin[0] == "\n")
                self._trimmed = behind > at
                at = behind
        self._state = _VALUE
        return at

    def _read_stop(self, found: re.Match[str], buffer: str, base: int) -> int:
        """Read what stops the value's text: its end, or data after all. Returns the index where to go on."""
        end = found.start()
        kind = found.lastgroup
        data = self._whole and self._json is not None and not self._json.whole
        if kind == "astray":
            if self._stray is None and (not self._foreign or found[0] == self._patterns.closing_tag):
                place = base + behind_blanks(buffer, found.end())
                self._stray = Fault("unexpected-text", "a parameter or the end of the call", Span(place, place + 1))
            kind = "kept"
        if kind == "foreign" or (kind == "respelled" and self._foreign):
            self._foreign = True
            return self._take(found[0].partition("&")[0], end)  # an entity in it is read as elsewhere
        if kind == "broken" and not self._kept:
            return self._take(buffer[end : end + 1], end)
        if kind == "kept" and self._left is not None:  # the parameter behind what was left open may stand in that
            self.faults.append(self._left)
            self.sound = base + end
            return self._die(self._left.code, self._left.expected, behind_blanks(buffer, found.end()))
        if kind == "kept" or (kind == "unclosed" and data):
            self._kept = True
            text = found[0] or buffer[end : end + 1]  # of a look-ahead, what it sees first
            return self._take(text[: self._patterns.stop.again(text)], end)  # the end may begin in it: `;;;`
        if kind == "other" and not self._is_meant(found[0]):
            return self._take(found[0], end)
        if kind in ("unclosed", "wrong", "other") and self._kept and not self._whole:
            self.sound = base + end
            return self._die("unexpected-text", self._patterns.value_end, end)
        if kind == "unclosed":
            self._repair("missing-closer", base + end, base + end)
            self._end_value(end, base, closed=False)
            self._left = Fault("unexpected-text", self._patterns.value_end, Span(base + end, base + end + 1))
            self._state = _BETWEEN
            return end
        if kind == "nested" and self._may_hold_elements():
            element = self._patterns.element
            opened = element.match(buffer, end) if element is not None else None
            if opened is not None:
                self._open_elements(opened, end)
                return end
            if element is not None and element.may_match(buffer, end):
                return end
        if kind in ("nested", "broken"):
            self.sound = base + end
            return self._die("nested-marker", self._patterns.value_end, end)
        if kind in ("respelled", "wrong", "other"):
            self._repair("wrong-closer", base + end, base + found.end())
        if kind == "cdata":
            self._state = _CDATA
        elif kind == "entity":
            stopped = self._take(character(found["entity"]), end)
            if self.status == DEAD:
                return stopped
        else:
            self._close(end, base, found.end())
        return found.end()

    def _close(self, at: int, base: int, end: int) -> int:
        """The value is over, and what ends it stands between two indexes. Returns the second."""
        self._end_value(at, base)
        self._state = _BETWEEN
        self.sound = base + end
        return end

    def _is_meant(self, tag: str) -> bool:
        """Whether a tag behind which the value is over was meant as its closer: else it is the last of its text."""
        found = self._patterns.meant.fullmatch(tag)
        if found is None or (found.lastgroup is not None and self._tagged):
            return False
        return found["word"] in (None, self._key)

    def _may_hold_elements(self) -> bool:
        """Whether nothing but white space stands in the value so far."""
        held = self._json is None and not self._is_string and self._held_size <= BLANKS_LIMIT
        return held and not "".join(self._held).strip(BLANKS)

    def _open_elements(self, first: re.Match[str], at: int) -> None:
        """The value holds elements, the first of which is opened at index `at`."""
        if len(self._open) + 2 > self._depth_limit:
            self._die("nesting-too-deep", f"at most {self._depth_limit} nested brackets", at)
            return
        containers = (self._declared or frozenset()) & {"array", "object"}
        as_list = "array" in containers if len(containers) == 1 else first["key"] == self._patterns.form.item
        self._begin_elements("]" if as_list else "}")
        self._state = _BETWEEN

    def _begin_elements(self, bracket: str) -> None:
        """What comes are the elements of the value that has just begun, which `bracket` ends in JSON."""
        self._open.append((bracket, self._parameters))
        self._between = self._inside(bracket)
        if self._parameters is not None:
            self._parameters = self._parameters.within(self._key, as_list=bracket == "]")
        self._begun = False

    def _end_elements(self) -> None:
        """The elements of the innermost value that holds any have come to their end."""
        bracket, self._parameters = self._open.pop()
        self._between = self._patterns.between if not self._open else self._inside(self._open[-1][0])
        self.out.append(bracket if self._begun else {"]": "[]", "}": "{}"}[bracket])
        self._begun = True

    def _inside(self, bracket: str) -> Pattern:
        """Return what stands between the elements of a value."""
        return self._patterns.members if bracket == "]" else self._patterns.inner

    def _read_cdata(self, buffer: str, at: int) -> int:
        end = buffer.find("]]>", at)
        if end == at:
            self._state = _VALUE
            return end + 3
        if end < 0:
            end = len(buffer) - (2 if buffer.endswith("]]") else 1 if buffer.endswith("]") else 0)
        return self._take(buffer[at:end], at) if end > at else at

    def _take(self, piece: str, at: int) -> int:
        """Take a piece of the value's text, which stands at index `at`. Returns the index behind it, or of an error."""
        stop = at + len(piece)
        if "<" in piece:
            self._tagged = True
        if self._json is None:
            self._halves += halves_of_characters(piece, self._base + at)
        if self._trimmed:
            piece = self._tail + piece
            self._tail = "\r\n" if piece.endswith("\r\n") else piece[-1] if piece[-1] in "\r\n" else ""
            piece = piece[: len(piece) - len(self._tail)]
        end = self._write(piece, stop - len(self._tail))
        return end if self.status == DEAD else stop

    def _write(self, piece: str, stop: int) -> int:
        """Write a piece of the value, which ends at index `stop`, or hold it while the value's type is open."""
        if self._json is not None:
            return self._take_json(piece, stop)
        if self._is_string:
            self._write_string(piece)
            return stop
        self._held.append(piece)
        self._held_size += len(piece)
        if self._held_size > PLAIN_LIMIT:
            held = "".join(self._held)
            self._held = []
            if is_long_json(held, self._declared, self._is_json):
                self._json = self._container()
                self._json.reader.faults = self.faults
                self._halves = []  # it finds them itself
                return self._take_json(held, stop)
            self._begin_string()
            self._write_string(held)
        return stop

    def _write_string(self, text: str) -> None:
        """Write a part of a value that is a string; half of a character in it is a fault."""
        self.out.append(quoted(self._whole_characters(text))[1:-1])

    def _whole_characters(self, text: str) -> str:
        if not self._halves:
            return text
        self.faults += self._halves
        self._halves = []
        return without_halves(text)

    def _container(self, *, fenced: bool = False) -> Embedded:
        terms = Terms(self._depth_limit - 1 - len(self._open))
        return Embedded(ValueReader(JSON, 0, terms, any_container=True), fenced=fenced)

    def _mended(self, text: str, end: int, *, closed: bool) -> str:
        """Return the JSON of a short value, which ends at position `end`, if it was meant as JSON and can be mended.

        `closed`: as of `_end_value`; else nothing more is supplied.
        """
        if not self._tolerant or not is_sloppy(text, self._declared, self._is_json):
            return ""
        plain = text.strip(BLANKS)
        if plain[0] == '"' and self._declared is not None:
            json = encoded_twice(plain, self._declared, self._depth_limit - 1 - len(self._open))
            start = end - len(text.lstrip(BLANKS))
            if json:
                self._repair("string-arguments", start, start + len(plain))
            return json
        inside = self._container(fenced=True)
        out: list[str] = []
        read = inside.take(text, end, out)
        repairs = inside.reader.repairs
        if read < end:
            code = _ONE_TOO_MANY.get(text[read - end :].strip(BLANKS))
            if code is None or not inside.whole:
                return ""
            repairs.append(Repair(code, Span(read, read + 1)))
        elif not inside.whole and not (closed and len(plain) > 1 and _supply_closers(inside, end, out)):
            return ""
        json = "".join(out).strip(BLANKS)
        if inside.reader.faults or (self._declared is not None and BRACKETS[json[0]] not in self._declared):
            return ""
        self.repairs += repairs
        return json

    def _begin_string(self) -> None:
        self._is_string = True
        self.out.append('"')

    def _take_json(self, piece: str, stop: int) -> int:
        """Hand a piece of the value, which ends at index `stop`, on to the reader of JSON."""
        json = self._json
        if json is None:
            raise AssertionError("no reader of JSON")
        end = self._base + stop
        read = json.take(piece, end, self.out)
        reader = json.reader
        self.repairs += reader.repairs
        reader.repairs.clear()
        if json.broken:
            self.sound = max(self.sound, reader.sound)  # it may die of its first character
            self.error = reader.error
            return self._die(reader.code, reader.expected, read - self._base)
        if read < end:
            self.sound = read
            at = len(piece) + read - end  # below 0 where it is in what was held, which has no bracket
            if at >= 0 and piece[at] in "}]" and self._whole and not self._extra:
                self._extra = True
                self._repair("extra-closer", read, read + 1)
                return self._take_json(piece[at + 1 :], stop)
            expected = self._patterns.value_end
            if self._state == _CDATA:
                expected = '"]]>"'
            elif at >= 0 and self._patterns.closing_tag and piece.startswith(self._patterns.closing_tag, at):
                return self._die("unexpected-text", f"{CLOSER_BEHIND} {expected}", read - self._base)
            return self._die("bad-arguments", expected, read - self._base)
        return stop

    def _end_value(self, at: int, base: int, *, closed: bool = True) -> None:
        """The value is over: write what was held, and close what was begun; `closed`: by an end of its own."""
        tail, self._tail = self._tail, ""
        if tail == "\r":  # no line break, so it belongs to the value
            self._write(tail, at)
        if self._json is not None:
            if not self._json.begun:
                self._repair("null-arguments", base + at, base + at)
                self.out.append("{}")
            elif not self._json.whole:
                self.supplied = self._whole and _supply_closers(self._json, base + at, self.out)
                if not self.supplied:
                    self.error = base + at
                    self._die("bad-arguments", "a whole JSON value", at)
                self.repairs += self._json.reader.repairs
            self._json = None
            self.end = base + at
        elif self._is_string:
            self.out.append('"')
            self._is_string = False
        elif self._patterns.element is not None and (empty := empty_container("".join(self._held), self._declared)):
            self.out.append(empty)
        else:
            text = self._whole_characters("".join(self._held))
            try:
                json = plain_value(text, self._declared, self._depth_limit - 1 - len(self._open))[0]
                if json[0] == '"':
                    json = self._mended(text, base + at - len(tail), closed=closed) or json
                self.out.append(json)
            except Undecodable:  # a key is there twice: the call has an end all the same, and is refused there
                self.out.append(text)
