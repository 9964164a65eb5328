"""Reads one value incrementally: finds where it ends, and writes it as JSON text while it comes in.

This is the reader of two of the five body languages (`json`, `braces`); two more are this one with something around
the arguments (`envelope`, `arguments`), and `parameters` uses it for values that are JSON. It is a push-down automaton
over chunks: `feed` takes a buffer and a place in it, consumes what it understands, and leaves a bounded rest (part of
an escape or of a string delimiter) to be handed in again. It reads every character once.

What is JSON already is copied as it stands, white space included, so a JSON body's preview *is* its source; everything
else (single quotes, bare words, `key=value`, other delimiters) is rewritten token by token. The pieces in `out`,
joined, are one JSON text, and the value of the call is the value of that text.

Invariants: nothing that was put into `out` is ever taken back; without `repairs`, the text read so far is a prefix of
a text in the body language's grammar; `sound` is the start of the last token, because a token is known to be
sound only when something legal follows it: after an error, reading resumes there (see `sections`).

What cannot be mended, but leaves no doubt about where it ends, is one of the `faults`: reading goes on behind it. A
call that holds one is refused where it ends, as a whole, so that what it quotes stays quoted (see `calls`). Strict
reading reads likewise, and refuses what was mended, too. Only the reader of JSON in a string, or of JSON whose quotes
are escaped, is not tolerant: it dies of a fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring as quoted  # C; non-ASCII characters stay as they are
from typing import Final, Self

from callmark.dialects import Form
from callmark.dialects.derived import own_delimiter
from callmark.dialects.notation import BLANKS
from callmark.reading.decoder import Undecodable, decode_at
from callmark.reading.embedded import ESCAPED_QUOTE, Embedded, Escaped, decoded
from callmark.reading.lookahead import (
    BEHIND_BARE,
    BEHIND_FAULT,
    COMMA_AND_MEMBER,
    COMMA_AND_PAIR,
    LISTING,
    NEXT_ITEM,
    NEXT_MEMBER,
    NEXT_PAIR,
    ODD_BLANKS,
    QUOTE_AND_COLON,
    WIDE,
    follows,
    lookahead,
)
from callmark.reading.matching import Pattern
from callmark.reading.pieces import fold
from callmark.reading.status import (
    COLON,
    DEAD,
    DONE,
    FIRST_ITEM,
    FIRST_KEY,
    HELD,
    ITEM,
    KEY,
    NEXT,
    OPEN,
    VALUE,
    BodyReader,
    Terms,
)
from callmark.reading.strings import CURLY, PREFIX, PREFIXES, RAW_PREFIX, TRIPLE, StringReader, goes_on
from callmark.reading.words import OPENING, meaning

_IN_STRUCTURE: Final = 0  # mode
_IN_STRING: Final = 1
_IN_WORD: Final = 2
_IN_ESCAPED: Final = 3

_PREFIXED: Final = Pattern(rf"{PREFIX}(?P<quote>[\"'])")
_OF_TEXT: Final = frozenset("rRuU")  # those prefixes of Python's strings behind which the value is what stands there

_WRONG_WORDS: Final = {"unexpected-text": "a value", "bad-number": "a finite number of at most 4,300 digits"}
"""What should stand in the place of a word that is no value, by the code of that."""
_UNSURE: Final = frozenset(("bare-value", "unexpected-text"))  # words that must stand alone, as they may be anything
KEY_LIMIT: Final = 256  # characters of a key in an argument list: a longer first string is a positional value

# Frames of the stack. JSON: O(bject), A(rray). Python: d(ict), l(ist), t(uple). B(races) with s(equence).
# E: an envelope's outermost object, F: an object around that (see `envelope`). R: the argument list (see `arguments`).
# D: the outer one of two braces where one is meant.
_CLOSER: Final = {
    "O": "}", "F": "}", "D": "}", "A": "]", "d": "}", "l": "]", "t": ")", "B": "}", "s": "]", "E": "}", "R": ")",
}  # fmt: skip
_KEYED: Final = frozenset("OdBEFR")
_RUN_FRAMES: Final = frozenset("OAt")  # those of `runs`; a list of Python is none of them
_DUE: Final = frozenset((KEY, FIRST_KEY, ITEM, FIRST_ITEM))
_BRACKETS: Final = {
    "json": {"{": "O", "[": "A"}, "python": {"{": "d", "[": "l", "(": "t"}, "braces": {"{": "B", "[": "s"},
}  # fmt: skip

_BLANK_RUN: Final = Pattern(r"[ \t\r\n]++")
_NO_WORD: Final = re.compile(r"[^0-9A-Za-z_]").search
_KEY_WORD: Final = Pattern(r"(?:[\w.\-$@]++|\\_)++")
_BRACES_KEY: Final = Pattern(r"[^\x00-\x1f:,{}\[\]<>\"'\ud800-\udfff]++")
_WORTH_IT: Final = 32  # characters of a container from which on an attempt to decode it at once is worth its cost
_COMMENT_LIMIT: Final = 1000  # characters: a comment is held until its end is there
_COMMENT_END: Final = Pattern(r"\*/")
_LINE_END: Final = Pattern(r"[\r\n]")
_VALUE_WORD: Final = Pattern(r"[\w+\-.]++")
JSON: Final = Form(head="{name}", body="json", alone=False)


class ValueReader(BodyReader):
    """Incremental reader of one body. Cost: each character once; memory: the nesting, and words that are not over."""

    waits = None  # as of `pairs.PairsReader`
    __slots__ = (
        "_any_container", "_around", "_bare", "_delimiter", "_ended", "_equals", "_escaped", "_flavour", "_form",
        "_gap", "_is_key", "_line", "_live", "_mode", "_nested", "_nested_wrong", "_no_json", "_outside", "_pending",
        "_sink", "_size", "_stack", "_state", "_strings", "_withheld", "_word", "_word_start", "dropped", "split",
        "stops",
    )  # fmt: skip

    def __init__(
        self, form: Form, start: int, terms: Terms, *, tolerant: bool = True, any_container: bool = False
    ) -> None:
        """Begin to read the body of `form` at position `start` of the stream; `any_container`: an array will do too.

        What is not `tolerant` mends nothing: it dies of what is wrong.
        """
        super().__init__(start, terms, tolerant)
        self._form = form
        self._around = lookahead(form, terms.others, terms.line_heads)
        self._delimiter = own_delimiter(form)
        self._flavour = "braces" if form.body == "braces" else "json"
        self._any_container = any_container
        self._stack: list[str] = []
        self._outside = 0  # how many frames of the stack are no brackets of the arguments
        self._state = VALUE
        self._mode = _IN_STRUCTURE
        self._live = True  # whether pieces go out
        self._withheld = False  # whether they may turn out to be no arguments
        self._pending: list[str] = []  # a comma and the white space behind it: dropped where it is one too many
        # A string or a word:
        self._strings: StringReader | None = None
        self._is_key = False
        self._bare = False  # whether the last key has no quotes and a colon behind it
        self.stops: Callable[[str], object] | None = None  # finds in a chunk of a string what does not pass as it is
        self._equals = False  # whether an equals sign stood behind a key of an object
        self._nested: Embedded | None = None  # reads arguments that are written as a string
        self._nested_wrong = False  # whether they are none
        self._escaped: Escaped | None = None  # reads an object whose quotes are escaped
        self._gap = False  # whether there are blanks behind the last value
        self._line = -1  # position behind the blanks that end a line, and those behind it
        self._sink: list[str] | None = None  # where a string's content goes: `out`, somewhere else, or nowhere
        self._word: list[str] = []
        self._size = 0
        self._word_start = start
        self._no_json = start  # position before which no container is decoded at once
        self._ended = False  # it is DEAD because no comma and no closer stands behind a value
        self.dropped = False  # whether a comma was dropped before the last bracket
        self.split = -1  # position of the comma behind that value, where it stands between two calls

    @classmethod
    def behind(
        cls, form: Form, start: int, terms: Terms, frames: Sequence[str], state: int, *, sound: int, quote: str,
        opened: str, name: str | None,
    ) -> Self:
        """Go on where an `objects.ObjectReader` has read the arguments, which begin at position `start`, so far.

        `frames` are the open brackets of the arguments, `state` is what is expected there, `sound` the position of the
        last token; in a string, `quote` began it, and `opened` is what was read of it; `name` is that of an envelope.
        """
        reader = cls(form, start, terms)
        reader._enter(name, bool(frames))
        reader._stack += ("O" if frame == "{" else "A" for frame in frames)
        reader._go_on(state, sound, quote, opened)
        reader.end = sound + 1  # where all of them are closed
        return reader

    def _go_on(self, state: int, sound: int, quote: str, opened: str) -> None:
        """Go on within the arguments, as `behind` has it."""
        self._state = state
        self.sound = sound
        if quote:
            self._mode = _IN_STRING
            self._is_key = state in (KEY, FIRST_KEY)
            self._sink = self.out
            self._watch(quote, *self._closing(quote), opened)

    def _enter(self, name: str | None, inside: bool) -> None:
        """Put what stands around the arguments on the stack; `inside`: they are not over."""

    def feed(self, buffer: str, at: int, base: int) -> int:
        """Read `buffer` from index `at`; `base` is the position of its first character. Returns the next index.

        What lies behind the returned index while `status` is OPEN must be handed in again with more text.
        """
        size = len(buffer)
        while at < size and self.status == OPEN:
            mode, state, before = self._mode, self._state, at
            if mode == _IN_STRING:
                at = self._read_string(buffer, at, base)
            elif mode == _IN_WORD:
                at = self._read_word(buffer, at, base)
            elif mode == _IN_ESCAPED:
                at = self._read_escaped(buffer, at, base)
            else:
                at = self._read_structure(buffer, at, base)
            if at == before and self._mode == mode and self._state == state:
                break
        return at

    def rewritten(self, chunk: str) -> str | None:
        """As of `pairs.PairsReader`: here all that does not pass as it is must be read closely."""
        return None  # said, as mypyc compiles a body without a statement to one that crashes

    # Structure: everything between strings and words.

    def _read_structure(self, buffer: str, at: int, base: int) -> int:
        size = len(buffer)
        stack = self._stack
        while at < size:
            char = buffer[at]
            if char in BLANKS:
                end = _BLANK_RUN.match(buffer, at).end()  # type: ignore[union-attr]  # one blank is there
                if self._live and stack and stack[-1] not in "RED":
                    (self._pending or self.out).append(buffer[at:end])
                if self._line == base + at or buffer.find("\n", at, end) >= 0 or buffer.find("\r", at, end) >= 0:
                    self._line = base + end
                at = end
                self._gap = True
                continue
            state = self._state
            frame = stack[-1] if stack else ""
            known = len(self.repairs)
            if self._tolerant:
                runs = self._live and self._flavour == "json" and not self.faults  # else one would begin at each fault
                if runs and state in _DUE and frame in _RUN_FRAMES:
                    stop = self._read_run(buffer, at, base)
                    if stop > at:
                        at = stop
                        continue
                in_key = frame == "B" and state in (KEY, FIRST_KEY)  # there, any character may be one of a key
                remark = char == "#" or (char == "/" and buffer[at + 1 : at + 2] in ("", "/", "*"))
                if remark and frame and (state == NEXT if frame == "R" else not in_key):
                    stop = self._skip_comment(buffer, at, base)
                    if stop == at:
                        return at
                    at = stop
                    continue
                if char in ODD_BLANKS and frame and not in_key and (frame != "R" or state != VALUE):
                    self._repair("odd-blank", base + at, base + at + 1)
                    at += 1
                    continue
                plain = "," if char == LISTING and state == NEXT else WIDE.get(char)
                if plain is not None and not in_key:
                    if state == NEXT:
                        counts = plain in ",=:" or plain == _CLOSER.get(frame)
                    else:
                        counts = frame != "R" or plain in ",)"
                    if counts:
                        self._repair("full-width-punctuation", base + at, base + at + 1)
                        char = plain
            stop = self._read_token(char, state, frame, buffer, at, base)
            if stop == at:  # a mode has begun, more text must tell, or it is DEAD
                if self.status == OPEN and self._mode == _IN_STRUCTURE and self._state == state:
                    del self.repairs[known:]
                return at
            at = stop
            if self.status != OPEN or self._mode != _IN_STRUCTURE:
                break
        return at

    def _read_run(self, buffer: str, at: int, base: int) -> int:
        """Read what is plain to see from index `at` on, where a key or an item is due; return the next index."""
        room = self._depth_limit - (len(self._stack) - self._outside)
        begin = len(self.out)
        ran = self._around.runs.read(buffer, at, base, self._stack, self.out, self.repairs, room)
        if ran is None:
            return at
        self.out[begin:begin] = self._pending
        if not ran.due:
            self._state = NEXT
        elif self._stack[-1] == "O":
            self._state = FIRST_KEY if ran.first else KEY
        else:
            self._state = FIRST_ITEM if ran.first else ITEM
        self._pending = [ran.pending] if ran.pending else []
        self._gap = False
        self._equals = self._equals or ran.equals
        self.sound = base + ran.sound
        return ran.at

    def _read_token(self, char: str, state: int, frame: str, buffer: str, at: int, base: int) -> int:
        """Read the token at index `at`, which begins with what counts as `char`; `at` where more text must tell."""
        if state == NEXT:
            if char == "," and frame != "D":
                return self._comma(frame, at, base)
            if char == _CLOSER[frame]:
                return self._read_closer(frame, buffer, at, base)
            return self._mend(frame, char, buffer, at, base)
        if state == COLON:
            if char == "=" and self._tolerant:
                if at + 1 == len(buffer):
                    return at
                if buffer[at + 1] != "=":
                    arrow = buffer[at + 1] == ">"  # of Ruby, PHP and Perl
                    self._repair("equals-for-colon", base + at, base + at + 1 + arrow)
                    self._equals = not arrow
                    char = ":"
                    at += arrow
            return self._colon(frame, at, base) if char == ":" else self._die("unexpected-text", '":"', at)
        is_key = state in (KEY, FIRST_KEY)
        if char == "," and self._tolerant and is_key:
            return self._drop_comma(frame, buffer, at, base)
        if char == '"' and frame != "R" and self._flavour == "json" and frame:
            return self._begin_string(char, buffer, at, base, is_key=is_key)
        if frame and char == _CLOSER[frame] and self._may_close(frame, state):
            return self._close(frame, at, base)
        if is_key:
            return self._begin_key(buffer, at, base)
        return self._begin_value(buffer, at, base)

    def _skip_comment(self, buffer: str, at: int, base: int) -> int:
        """Skip a comment that begins at index `at`; return that index where more text must tell, or none begins."""
        begin = buffer[at : at + 2]
        if begin == "/":
            return at
        in_line = begin != "/*"
        limit = at + _COMMENT_LIMIT
        inside = at + (1 if in_line else 2)  # `/*/` is no comment
        found = (_LINE_END if in_line else _COMMENT_END).search(buffer, inside, limit)
        end = -1 if found is None else found.start() if in_line else found.end()
        alarm = self._around.alarm(buffer, at + 1, limit if end < 0 else end)
        if alarm is not None and alarm.certain:
            end = -1
        elif alarm is not None if end >= 0 else len(buffer) < limit:
            return at
        if end < 0:
            return self._die("unexpected-text", self._wanted(), at)
        self._repair("comment", base + at, base + end)
        return end

    def _wanted(self) -> str:
        """Say what is expected here."""
        frame = self._stack[-1]
        if self._state == NEXT:
            return f'"," or "{_CLOSER[frame]}"'
        return '":"' if self._state == COLON else "a key" if self._state in (KEY, FIRST_KEY) else "a value"

    def _mend(self, frame: str, char: str, buffer: str, at: int, base: int) -> int:
        """Behind a value stands `char`, no comma and no closer: supply one where that is certain."""
        wanted = self._wanted()
        if not self._tolerant:
            return self._die("unexpected-text", wanted, at)
        pattern = NEXT_MEMBER if frame in "OdEF" else NEXT_PAIR if frame == "R" else NEXT_ITEM if frame == "A" else None
        if pattern is not None and (frame != "A" or self._gap):
            missing = follows(pattern, buffer, at)
            if missing and frame == "R":
                begins = self._begins_line(buffer, at, base)
                missing = None if begins is None else not begins
            if missing is None:
                return at
            if missing:
                self._repair("missing-comma", base + at, base + at)
                self._comma(frame, at, base)
                return at
        self._ended = True  # what is due may be closed otherwise: see `closers`
        return self._die("unexpected-text", wanted, at)

    def _begins_line(self, buffer: str, at: int, base: int) -> bool | None:
        """Whether something begins at index `at` that stands at the beginning of a line, and not in an argument list:
        the next call, a result, or what stands beside them. None where more text must tell.
        """
        around = self._around
        begins = follows(around.next_line, buffer, at) if around.next_line is not None else False
        if begins is False and around.lines is not None and self._line == base + at:
            begins = follows(around.lines, buffer, at)
        return begins

    def _drop_comma(self, frame: str, buffer: str, at: int, base: int) -> int:
        """Drop a comma where a key is expected: one of two in a row, or one before the first member."""
        first = self._state == FIRST_KEY
        if frame == "R" or first:
            more = follows(COMMA_AND_PAIR if frame == "R" else COMMA_AND_MEMBER, buffer, at)
            if more is None:
                return at
            if not more:
                return self._die("unexpected-text", "a key or a value" if frame == "R" else "a key", at)
        if first:
            self._repair("extra-comma", base + at, base + at + 1)
        else:
            self._repair("extra-comma", self.sound, self.sound + 1)
            self.sound = base + at
        return at + 1

    def _comma(self, frame: str, at: int, base: int) -> int:
        if self._live and frame not in "ER":
            self._pending.append(",")
        self.sound = base + at
        self._state = KEY if frame in _KEYED else ITEM
        return at + 1

    def _may_close(self, frame: str, state: int) -> bool:
        """Whether a closer may stand here: where nothing was read yet; behind a tuple's comma; else as a repair."""
        if state in (FIRST_KEY, FIRST_ITEM):
            return True
        if state == VALUE:
            return False
        if frame != "t":
            if not self._tolerant:
                return False
            self._repair("extra-comma", self.sound, self.sound + 1)
            self.dropped = len(self._stack) == 1
        self._pending.clear()
        return True

    def _colon(self, frame: str, at: int, base: int) -> int:
        if self._live and frame not in "EF":
            self.out.append(":")
        if self.sound != self._word_start:  # a key without quotes may be the beginning of something else
            self.sound = base + at
        self._state = VALUE
        return at + 1

    def _read_closer(self, frame: str, buffer: str, at: int, base: int) -> int:
        return self._close(frame, at, base)

    def _close(self, frame: str, at: int, base: int, *, written: bool = False) -> int:
        """The bracket `frame` is closed at index `at`; `written`: its closer has come out already."""
        if self._live and not written and frame not in "DEFR":
            self.out.append("]" if frame == "t" else _CLOSER[frame])
        self.sound = base + at
        self._stack.pop()
        if not self._stack:
            self.status = DONE
            self.end = base + at + (frame != "R")
        self._state = NEXT
        self._gap = False
        return at + 1

    @property
    def due(self) -> str | None:
        """The closers that are due, innermost first, where the reader died of what stands behind a value; or None."""
        return self.closers if self._ended else None

    @property
    def closers(self) -> str:
        """The closers of the brackets that are open, innermost first."""
        return "".join(_CLOSER[frame] for frame in reversed(self._stack))

    @property
    def in_string(self) -> bool:
        """Whether a string is read, which begins at `sound`."""
        return self._mode == _IN_STRING

    @property
    def died_in_string(self) -> bool:
        """Whether it is DEAD because of what stands in a string, or of where that ends; a key's tells nothing."""
        return self._strings is not None and self._strings.status == DEAD and not self._is_key

    @property
    def inside(self) -> bool:
        """Whether more members of the arguments could follow."""
        return self._live

    def _split(self, place: int, at: int) -> int:
        """At index `at` the next call of a list begins: the comma at position `place` stands behind this one."""
        self._state = NEXT
        self._ended = True
        self.split = place
        return self._die("unexpected-text", self._wanted(), at)

    def close(self, at: int, base: int, closed: tuple[int, ...]) -> None:
        """Take all brackets that are open as closed, innermost first: before the indexes `closed`, none before `at`."""
        for end in closed[: len(self._stack)]:
            self._close(self._stack[-1], max(at, end - 1), base)  # only the last of them can refuse it
            self.end = min(self.end, base + end)

    # Values.

    def _begin_value(self, buffer: str, at: int, base: int) -> int:
        char = buffer[at]
        frame = self._stack[-1] if self._stack else ""
        if self._tolerant:
            char = WIDE.get(char, char)
        if not frame and char != "{" and not (char == "[" and self._any_container):
            if char == '"' and self._tolerant and not self._any_container:
                return self._begin_embedded(at, base)
            return self._die("bad-arguments", "a JSON object", at)
        if char in "{[(":
            return self._begin_container(char, frame, buffer, at, base)
        quote = self._opening_quote(buffer, at)
        if quote is None:
            return at
        if quote:
            return self._begin_string(quote, buffer, at, base, is_key=False)
        if frame == "B" and self._tolerant:
            bare_text = self._around.bare_text
            found = bare_text.match(buffer, at)
            if found is not None:
                return self._read_bare_text(found["text"], at, base)
            if bare_text.may_match(buffer, at):
                return at
        if not self._words(is_key=False).match(char):
            if self._tolerant and char in (",", _CLOSER[frame]):
                return self._pass_by(at, base)
            return self._die("unexpected-text", "a value", at)
        self._begin_word(at, base, is_key=False)
        return at

    def _read_bare_text(self, text: str, at: int, base: int) -> int:
        """Take a value of several words, `text` at index `at`; return the index behind it."""
        self._repair("bare-value", base + at, base + at + len(text))
        self._take_literal("", quoted(text), at, base)
        self._state = NEXT
        return at + len(text)

    def _pass_by(self, at: int, base: int) -> int:
        """A value is due, and what ends one stands at index `at`: a fault, with null in the value's place."""
        self._fault("unexpected-text", "a value", base + at, base + at + 1)
        self._take_literal("", "null", at, base)
        self._state = NEXT
        return at

    def _begin_container(self, char: str, frame: str, buffer: str, at: int, base: int) -> int:
        new = _BRACKETS[self._flavour].get(char)
        if char == "(" and self._flavour == "json" and self._tolerant:
            new = "t"
            self._repair("python-literal", base + at, base + at + 1)
        if new is None:
            return self._die("unexpected-text", "a value", at)
        stop = self._open(new, char, frame, at, base)
        if new in "OA" and self._live and self.status == OPEN and base + at >= self._no_json:
            end = self._end_of_json(buffer, at, base)
            if end > at:
                self.out.append(buffer[stop : end - 1])
                return self._close(new, end - 1, base)
        return stop

    def _end_of_json(self, buffer: str, at: int, base: int) -> int:
        """Return the index behind the JSON that begins with the bracket at index `at`; that index where none ends here.

        Where it breaks, what begins before that place is not tried again: so all is looked at twice at most.
        """
        if len(buffer) - at < _WORTH_IT:
            return at
        try:
            return decode_at(buffer, at, self._depth_limit + 1 - (len(self._stack) - self._outside))[1]
        except Undecodable as error:
            self._no_json = base + (at + error.reached if error.reached else len(buffer))
            return at

    def _open(self, new: str, char: str, frame: str, at: int, base: int) -> int:
        """The bracket `new` is opened by what counts as `char`, inside of the bracket `frame`."""
        if len(self._stack) - self._outside >= self._depth_limit:
            return self._die("nesting-too-deep", f"at most {self._depth_limit} nested brackets", at)
        self.sound = base + at
        if self._live:
            self._flush()
            self.out.append("[" if char == "(" else char)
        self._stack.append(new)
        self._state = FIRST_KEY if new in _KEYED else FIRST_ITEM
        return at + 1

    def _flush(self) -> None:
        """A token stands behind the comma, so the comma can come out."""
        if self._pending:
            self.out.extend(self._pending)
            self._pending.clear()

    def _opening_quote(self, buffer: str, at: int) -> str | None:
        """Return the delimiter (with a prefix) that begins here, "" for none, None where more text must tell."""
        char = buffer[at]
        if self._delimiter:
            if buffer.startswith(self._delimiter, at):
                return self._delimiter
            if self._delimiter.startswith(buffer[at : at + len(self._delimiter)]):
                return None
        if self._flavour == "braces":
            return char if char in "\"'" and self._tolerant else ""
        if char in PREFIXES and self._tolerant:
            return self._perhaps_prefixed(buffer, at)
        if char == '"' or (char == "'" and self._tolerant):
            return self._perhaps_triple(char, buffer, at)
        return char if char in CURLY and self._tolerant else ""

    def _perhaps_triple(self, quote: str, buffer: str, at: int) -> str | None:
        """Return the delimiter that begins with `quote`: it, or three of it, as Python has them; None as above."""
        if self._flavour != "python" or not buffer.startswith(quote, at + 1):
            return None if self._flavour == "python" and len(buffer) == at + 1 else quote
        if not buffer.startswith(quote, at + 2):
            return None if len(buffer) == at + 2 else quote
        odd = follows(self._around.odd, buffer, at + 3)
        return None if odd is None else quote if odd else quote * 3

    def _perhaps_prefixed(self, buffer: str, at: int) -> str | None:
        """As `_perhaps_triple`, where the letter may be the prefix of a string: behind one, three quotes are three."""
        found = _PREFIXED.match(buffer, at)
        if found is None:
            return None if _PREFIXED.may_match(buffer, at) else ""
        triple = found["quote"] * 3
        if triple.startswith(buffer[found.end() - 1 : found.end() + 2]):
            return found[0] + triple[1:] if buffer.startswith(triple, found.end() - 1) else None
        return found[0]

    def _begin_key(self, buffer: str, at: int, base: int) -> int:
        quote = self._opening_quote(buffer, at)
        if quote is None:
            return at
        if quote:
            return self._begin_string(quote, buffer, at, base, is_key=True)
        sign = ESCAPED_QUOTE.get(buffer[at], "")
        if sign and self._tolerant and self._state == FIRST_KEY and self._stack[-1] in "OE":
            if buffer.startswith(sign, at):
                return self._begin_escaped(sign, buffer, at, base)
            if sign.startswith(buffer[at:]):
                return at
        if buffer[at] == "{" and self._tolerant and self._state == FIRST_KEY and self._stack[-2:-1] != ["D"]:
            self._repair("doubled-braces", base + at, base + at + 1)
            self._stack.insert(-1, "D")
            return at + 1
        if (self._tolerant or self._flavour == "braces") and self._words(is_key=True).match(buffer[at]):
            self._begin_word(at, base, is_key=True)
            return at
        closer = f' or "{_CLOSER[self._stack[-1]]}"' if self._state == FIRST_KEY else ""
        return self._die("unexpected-text", f"a key{closer}", at)

    def _begin_escaped(self, sign: str, buffer: str, at: int, base: int) -> int:
        """The first key of an object begins with an escaped quote: so is the whole object written."""
        self._repair("string-arguments" if sign[0] == "\\" else "escaped-entities", base + at, base + at + len(sign))
        self._mode = _IN_ESCAPED
        whole = decoded(buffer, at, base, sign[0], self._depth_limit + 1)
        if whole is not None:
            reader = self._escaped_reader(0)
            reader.feed(whole.text, 0, 0)
            if reader.status == DONE:
                begin, end = reader.start, reader.end
                reader.start = whole.place(begin)
                reader.end = whole.place(end - 1) + 1 if end > begin else reader.start  # an envelope may hold none
                self._escaped_sink().append("".join(reader.out)[self._live :])
                self._escaped = Escaped(reader, sign[0])
                return self._read_escaped(buffer, whole.place(len(whole.text) - 1) + 1 - base, base)
        reader = self._escaped_reader(self.sound)
        reader.feed("{", 0, self.sound)
        reader.out.clear()
        self._escaped = Escaped(reader, sign[0])
        return at

    def _escaped_reader(self, start: int) -> ValueReader:
        """Return the reader of an object whose quotes are escaped, and which begins at position `start`."""
        return ValueReader(JSON, start, Terms(self._depth_limit - (len(self._stack) - 1)), tolerant=False)

    def _escaped_sink(self) -> list[str]:
        """Return what takes the JSON of an escaped object: nothing of one beside the arguments comes out."""
        return self.out if self._live or self._stack[-1] == "E" else []

    def _read_escaped(self, buffer: str, at: int, base: int) -> int:
        escaped = self._escaped
        if escaped is None:
            raise AssertionError("an escaped object has begun")
        reader = escaped.reader
        at = escaped.read(buffer, at, base, self._escaped_sink())
        frame = self._stack[-1]
        self.name = self.name or reader.name
        if reader.status == DEAD:
            self.error = reader.error if reader.error >= 0 else escaped.died
            return self._die(reader.code, reader.expected, at)
        if reader.status == DONE:
            self._mode = _IN_STRUCTURE
            self._close(frame, at - 1, base, written=True)
        return at

    # Strings.

    def _begin_string(self, quote: str, buffer: str, at: int, base: int, *, is_key: bool) -> int:
        if self._is_delimiter(quote):
            pass  # as the dialect has it: there is nothing to mend
        elif self._flavour == "braces":
            self._repair("plain-quotes", base + at, base + at + 1)
        elif quote[0] in PREFIXES:
            prefix = quote.rstrip("\"'")
            if prefix in _OF_TEXT:
                self._repair("python-literal", base + at, base + at + 1)
            else:
                self._fault("unexpected-text", "a value", base + at, base + at + len(prefix))
            raw = any(letter in RAW_PREFIX for letter in prefix)
            at += len(prefix) - raw
            quote = "r" * raw + quote[len(prefix) :]
        elif quote in TRIPLE:
            self._repair("triple-quotes", base + at, base + at + 3)
        elif quote == "'" and self._flavour != "python":
            self._repair("single-quotes", base + at, base + at + 1)
        elif quote in CURLY:
            self._repair("curly-quotes", base + at, base + at + 1)
        self.sound = base + at
        self._is_key = is_key
        self._bare = self._bare and not is_key
        self._mode = _IN_STRING
        self._size = 0
        mended = self._choose_sink(at, base)
        if self.status == DEAD:
            return at
        ends, refuses = self._closing(quote) if mended else (None, None)
        if self._tolerant and self._nested is None and (quote == "'" or quote == '"'):
            plain = self._around.plain[quote].match(buffer, at + 1)
            if plain is not None and (ends is None or self._ends_plainly(ends, quote, plain[1], buffer, plain.end())):
                return at if self._put(plain[1]) else self._end_string(plain.end(), base)
        self._watch(quote, ends, refuses)
        return at + len(quote)

    def _ends_plainly(self, ends: Pattern, quote: str, content: str, buffer: str, at: int) -> bool:
        """Return whether a string ends with its first quote, before index `at`, beyond doubt."""
        if ends.match(buffer, at) is None:
            return False
        before = content[-1:]
        return goes_on(self._around, ends, quote, before, buffer, at, first=True, bare=self._bare) is False

    def _choose_sink(self, at: int, base: int) -> bool:
        """Say where the content of the string goes that begins at index `at`; return whether it is mended."""
        self._sink = self.out if self._live else None
        if self._live:
            self._flush()
            self.out.append('"')
        return True

    def _begin_embedded(self, at: int, base: int) -> int:
        """Begin a string that holds the whole body."""
        self._repair("string-arguments", base + at, base + at + 1)
        self._nested = Embedded(type(self)(self._form, 0, Terms(self._depth_limit), tolerant=False))
        self.sound = self.start = base + at
        self._mode = _IN_STRING
        self._watch('"', None, None)
        return at + 1

    def _is_delimiter(self, quote: str) -> bool:
        """Return whether strings between `quote` have no escapes: it is the dialect's own."""
        return quote == self._delimiter

    def _closing(self, quote: str) -> tuple[Pattern | None, Pattern | None]:
        """Return what stands behind a `quote` that ends the string which begins, and what shows that all is lost."""
        if not self._tolerant:
            return None, None
        around = self._around
        if self._is_key:
            return around.key, around.no_key
        frame = self._stack[-1]
        if frame in "lt":
            return around.listed, around.no_python
        if frame == "A":
            return around.item, around.no_string
        return around.listed if frame == "s" else around.equals if self._equals else around.member, around.no_string

    def _watch(self, quote: str, ends: Pattern | None, refuses: Pattern | None, opened: str = "") -> None:
        """A string with the delimiter `quote` begins, or goes on behind `opened`: say what its reader looks for."""
        if self._strings is None:
            self._strings = StringReader(self._around if self._tolerant else None, self.repairs, self.faults)
        self._strings.begin(
            quote,
            self._put,
            ends=ends,
            refuses=refuses,
            python=self._flavour == "python" or quote == "'",  # JSON has no such strings: Python's repr does
            path=self._tolerant and quote in "\"'" and not self._is_key,
            key=self._is_key,
            bare=self._bare,
            direct=self._sink is self.out and not self._withheld,
            delimited=self._is_delimiter(quote),
            opened=opened,
        )
        self.stops = self._strings.stops

    def _read_string(self, buffer: str, at: int, base: int) -> int:
        strings = self._strings
        if strings is None:
            raise AssertionError("a string has begun")
        at = strings.read(buffer, at, base)
        self.stops = strings.stops
        if self.status == DEAD:
            return self.sound - base
        if strings.status == DONE:
            return self._end_string(at, base)
        if strings.status == DEAD:
            if strings.code:
                return self._die(strings.code, strings.expected, at)
            self.error = strings.doubt
            self._state = COLON if self._is_key else NEXT
            wanted = self._wanted()
            if strings.comma:
                wanted = "a key behind the comma" if self._stack[-1] in _KEYED else "a value behind the comma"
            return self._die("unexpected-text", wanted, at)
        return at

    def _put(self, piece: str) -> bool:
        """Write a piece of a string's content to where it belongs; return whether that was its death."""
        sink = self._sink
        if self._nested is not None:
            if self._nested_wrong:
                return False
            text = json.loads(f'"{piece}"')
            if self._nested.take(text, len(text), self.out) < len(text) or self._nested.broken:
                self._refuse_nested()
            self.name = self.name or self._nested.reader.name
        elif sink is self.out:
            sink.append(piece)
        elif sink is not None:
            self._capture(sink, piece)
        return self.status == DEAD

    @property
    def holds_none(self) -> bool:
        """Whether a string stands in the place of the arguments that holds none."""
        return self._nested_wrong

    def _refuse_nested(self) -> None:
        """What stands in a string in the place of the arguments is none: that string has an end all the same."""
        self._nested_wrong = True
        self._fault("bad-arguments", "an object, the arguments", self.sound, self.sound + 1)

    def _capture(self, sink: list[str], piece: str) -> None:
        """Write a piece of a string to another place than `out`."""

    def _end_string(self, at: int, base: int) -> int:
        self._end_token()
        if self._nested is not None:
            if not (self._nested.begun or self._nested_wrong):
                self.out.append("{}")
            elif not (self._nested.whole or self._nested_wrong):
                self._refuse_nested()
            self._nested = None
            self._live = False
            self.end = base + at
            if not self._stack:
                self.status = DONE
            return at
        if self._sink is self.out:
            self.out.append('"')
        elif self._sink is not None:
            return self._end_captured(self._sink, at, base)
        return at

    def _end_captured(self, sink: list[str], at: int, base: int) -> int:
        """A string that was written elsewhere ends before index `at`."""
        raise AssertionError("only arguments are read here")

    def _end_token(self) -> None:
        """A string or a word is over: a colon is due if it is a key, else what stands behind a value."""
        self._mode = _IN_STRUCTURE
        self._state = COLON if self._is_key else NEXT
        self._gap = False
        self.stops = None

    # Words: numbers, literals, bare keys and values.

    def _begin_word(self, at: int, base: int, *, is_key: bool) -> None:
        self._mode = _IN_WORD
        self._is_key = is_key
        self._word = []
        self._size = 0
        self._word_start = base + at
        self.stops = self._hold

    def _hold(self, chunk: str) -> object:
        """Take a chunk that only makes the word longer."""
        if _NO_WORD(chunk) is not None or self._size + len(chunk) > 128:
            return chunk
        self._word.append(chunk)
        self._size += len(chunk)
        return HELD

    def _read_word(self, buffer: str, at: int, base: int) -> int:
        match = self._words(is_key=self._is_key).match(buffer, at)
        if match:
            end = match.end()
            self._word.append(buffer[at:end])
            fold(self._word)
            self._size += end - at
            excess = self._size - 128 if self._is_key else 0
            if excess > 0:
                return self._die("bad-arguments", "a shorter word", end - excess)
            at = end
            if at == len(buffer):
                return at
        return self._end_key_word(buffer, at, base) if self._is_key else self._end_value_word(buffer, at, base)

    def _words(self, *, is_key: bool) -> Pattern:
        """Return what a word consists of that is a key, which it is only where something mends, or a value."""
        if is_key:
            return _BRACES_KEY if self._flavour == "braces" else _KEY_WORD
        return _VALUE_WORD

    def _end_key_word(self, buffer: str, at: int, base: int) -> int:
        """End a word that is a key; return index `at` where more text must tell."""
        word = "".join(self._word)
        if self._flavour == "braces":
            self._end_token()
            plain = word.rstrip(" ")
            if self._tolerant and plain.endswith("=") and buffer[at] in (self._delimiter[0], '"', "'"):
                self._take_key(plain[:-1], at, base)
                sign = self._word_start + len(plain) - 1
                self._repair("equals-for-colon", sign, sign + 1)
                self.out.append(":")
                self._equals = True
                self._state = VALUE
            else:
                self._take_key(word, at, base)
        else:
            if buffer[at:] == "\\":
                return at
            if buffer[at] in "\"'":
                half_quoted = follows(QUOTE_AND_COLON, buffer, at)
                if half_quoted is None:
                    return at
                at += half_quoted
            self._end_token()
            self._take_key(word.replace("\\", ""), at, base)
            self._unmark(word)
        self.sound = self._word_start
        return at

    def _end_value_word(self, buffer: str, at: int, base: int) -> int:
        """End a word that is a value; return index `at` where more text must tell."""
        word = "".join(self._word)
        text, code = meaning(word, python=self._flavour == "python", tolerant=self._tolerant)
        if code in _UNSURE and self._tolerant:
            behind = BEHIND_BARE if code == "bare-value" else BEHIND_FAULT
            ends = word.lower() not in OPENING and (len(word) > KEY_LIMIT or follows(behind, buffer, at))
            if ends is None:
                return at
            if not ends:
                self.error = self._word_start
                return self._die("unexpected-text", "a value", at)
        self._end_token()
        wanted = _WRONG_WORDS.get(code, "")
        if wanted and not self._tolerant:
            self.error = self._word_start
            return self._die(code, wanted, at)
        if wanted:
            self._fault(code, wanted, self._word_start, base + at)
        elif code:
            self._repair(code, self._word_start, base + at)
        self._take_literal(word, text, at, base)
        self.sound = self._word_start
        return at

    def _unmark(self, word: str) -> None:
        """Record the backslashes in a word that begins at `_word_start`: Markdown wants them before underscores."""
        for n, char in enumerate(word):
            if char == "\\":
                self._repair("markdown-escape", self._word_start + n, self._word_start + n + 1)

    def _take_key(self, word: str, at: int, base: int) -> None:
        self._bare = True
        if self._flavour == "braces":
            word = word.rstrip(" ")
        else:
            self._repair("bare-key", self._word_start, base + at)
        if self._live:
            self._flush()
            self.out.append(quoted(word))

    def _take_literal(self, word: str, text: str, at: int, base: int) -> None:
        """A word ends before index `at`, whose JSON is `text`."""
        if self._live:
            self._flush()
            self.out.append(text)
