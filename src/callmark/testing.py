"""The laws of reading as functions, for tests of dialects: built-in ones, and those of one's own.

Each takes a text (or a dialect) and raises AssertionError that says which law is broken, where, and what the two sides
are. They need no test framework, know no randomness, and depend on nothing but the text and the options; a property
test hands them generated texts and cuts. Keyword arguments that are not named here are the options of `Parser`.

    check_all              all laws on one text
    check_chunking         1: chunking is invisible
    check_nothing_is_lost  2: the spans tile the text
    check_never_raises     3: model text never raises
    check_little_is_withheld  4: what is certain is emitted
    check_grammar          5: a member of the grammar is read as it says, and what is read without repairs is a member
    check_inverse          6: what is written is read back
    check_linear           7: time is linear, counted in steps
    check_previews         8: previews tell the truth
    check_neutral          9: written content cannot call
    check_dialect          what a dialect's row must be for the laws to hold at all
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from callmark.dialects import Dialect, dialects, select, selected, unregistered
from callmark.dialects.limits import PLAIN_LIMIT
from callmark.dialects.notation import BLANKS, expand
from callmark.dialects.values import is_json
from callmark.errors import DialectError, ToolsError, UsageError
from callmark.events import ArgumentsDelta, Call, CallStart, Event, JsonValue, Malformed, Markup, Span, Text
from callmark.reading.decoder import Undecodable
from callmark.reading.diagnosis import message_parts
from callmark.reading.grammar import GrammarCall, Mismatch, Place, Start, load
from callmark.reading.matching import HOLD_LIMIT, Pattern
from callmark.reading.options import EVERYWHERE, Limits
from callmark.reading.parser import Parser
from callmark.reading.raw_values import plain_value
from callmark.reading.row_checks import check_names, check_row_alone, sample_texts, section_text
from callmark.reading.sections import RECOVERY
from callmark.reading.whole import parse
from callmark.writing.calls import render_call
from callmark.writing.neutral import neutralize

__all__ = [
    "STEPS_PER_CHARACTER",
    "STEPS_PER_CHUNK",
    "check_all",
    "check_chunking",
    "check_dialect",
    "check_grammar",
    "check_inverse",
    "check_linear",
    "check_little_is_withheld",
    "check_neutral",
    "check_never_raises",
    "check_nothing_is_lost",
    "check_previews",
    "in_chunks",
    "joined",
]

STEPS_PER_CHARACTER: Final = 6
"""How often a character is looked at, at most: a token that is wrong is read again, once for each kind of quote."""

STEPS_PER_CHUNK: Final = HOLD_LIMIT
"""How many held characters a chunk makes the parser look at again, at most: a head's; behind an error fewer."""

_CUT_EVERYWHERE: Final = 300  # characters of a text that is cut at every place: the work grows with the square
_CHUNK_LENGTHS: Final = (1, 2, 3, 7, 64)
_DELTA_LIMIT: Final = 7 * PLAIN_LIMIT  # JSON characters: the longest stretch that is held, each character as \uXXXX
_DETOUR: Final = 2 * RECOVERY  # characters behind an error that are wanted before going on is decided
_ONCE: Final = 3 * PLAIN_LIMIT  # steps that a text takes once, however long it is: a word that goes beyond its limit
_ONCE_IN_CHUNKS: Final = 40 * PLAIN_LIMIT  # what is held behind that is looked at again some thirty times
_BRACKETS: Final = "[{("


# Reading in chunks, and making lists of events comparable.


def in_chunks(chunks: Iterable[str], **options: Any) -> list[Event]:
    """Return the events of the chunks, fed one after the other to one parser, those of `finish` included."""
    parser = Parser(**options)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    events.extend(parser.finish())
    return events


def joined(events: Iterable[Event]) -> list[Event]:
    """Return the events with neighbouring Text of one channel and neighbouring deltas of one call made one.

    Two readings of one text are the same if and only if these lists are equal.

    >>> joined([Text(Span(0, 1), "a"), Text(Span(1, 3), "bc")]) == [Text(Span(0, 3), "abc")]
    True
    """
    result: list[Event] = []
    texts: list[str] = []  # of the last event, so that joining many pieces costs no more than reading them
    for event in [*events, None]:
        last = result[-1] if result else None
        if isinstance(event, Text) and isinstance(last, Text) and event.channel == last.channel:
            result[-1] = Text(Span(last.span.start, event.span.end), "", last.channel)
            texts.append(event.text)
            continue
        if isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta) and event.index == last.index:
            texts.append(event.json)
            continue
        if isinstance(last, Text):
            result[-1] = Text(last.span, "".join(texts), last.channel)
        elif isinstance(last, ArgumentsDelta):
            result[-1] = ArgumentsDelta(last.index, "".join(texts))
        if event is not None:
            result.append(event)
            texts = [event.text if isinstance(event, Text) else event.json if isinstance(event, ArgumentsDelta) else ""]
    return result


def _cut(text: str, cuts: Iterable[int]) -> list[str]:
    """Return the text in pieces, cut at these places; a place that is given twice gives an empty piece."""
    places = [0, *sorted(min(max(cut, 0), len(text)) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def _of_length(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)] if length else [text]


def _ways(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield ways to cut a text, each with its name."""
    yield "in one chunk", [text]
    for length in _CHUNK_LENGTHS:
        yield f"in chunks of {length}", _of_length(text, length)
    if len(text) <= _CUT_EVERYWHERE:
        for cut in range(1, len(text)):
            yield f"cut at {cut}", [text[:cut], text[cut:]]


# The laws on one text.


def check_all(text: str, **options: Any) -> None:
    """Check every law that can be checked on one text: 1, 2, 3, 4, 8, and of 5 that what was read is in the grammar.

    >>> check_all('Sure! [CALL: get_weather(city=Oslo)] and [CALL: f(', dialects="call")

    Cost: the text is read some hundred times.
    """
    check_never_raises(text, **options)
    check_nothing_is_lost(text, **options)
    check_chunking(text, **options)
    check_previews(text, **options)
    check_little_is_withheld(text, **options)
    _check_members(text, options)


def check_chunking(text: str, cuts: Iterable[int] | None = None, **options: Any) -> None:
    """Check law 1: the events of `parse` and of `text` in chunks are equal once neighbouring pieces are joined.

    cuts    places at which to cut, 0 to the length; by default several ways are tried: one chunk, equal chunks of 1 to
            64 characters, and texts of up to 300 characters in two chunks cut at every place
    """
    whole = joined(parse(text, **options).events)
    ways = _ways(text) if cuts is None else [(f"cut at {(places := list(cuts))}", _cut(text, places))]
    for name, chunks in ways:
        pieces = joined(in_chunks(chunks, **options))
        if pieces != whole:
            raise AssertionError(_two_sides("law 1, chunking is invisible", text, "whole", whole, name, pieces))


def check_nothing_is_lost(text: str, **options: Any) -> None:
    """Check law 2: Text, Call, Malformed and Markup tile the text and hold it, whole and by characters."""
    for name, chunks in (("whole", [text]), ("by characters", list(text))):
        end = 0
        for event in in_chunks(chunks, **options):
            if isinstance(event, Text | Call | Malformed | Markup):
                piece = event.text if isinstance(event, Text) else event.raw
                expected = Span(end, end + len(piece))
                if not piece or event.span != expected or text[end : expected.end] != piece:
                    raise AssertionError(
                        f"law 2, nothing is lost: {name}, at {end}: expected {text[end : end + max(len(piece), 1)]!r} "
                        f"with {expected}, found {event.to_dict()}\ntext: {text!r}"
                    )
                end = expected.end
        if end != len(text):
            raise AssertionError(
                f"law 2, nothing is lost: {name}: expected events for {text[end:]!r}, which begins at {end}, found "
                f"none\ntext: {text!r}"
            )


def check_never_raises(text: str, **options: Any) -> None:
    """Check law 3: reading `text`, cut in any way, raises nothing. What is wrong with the options raises UsageError."""
    Parser(**options)
    for name, chunks in (("whole", None), *_ways(text)):
        try:
            parse(text, **options) if chunks is None else in_chunks(chunks, **options)
        except Exception as error:
            law = f"law 3, model text never raises: {name}"
            raise AssertionError(f"{law}: expected events, found {error!r}\ntext: {text!r}") from error


def check_little_is_withheld(text: str, *, bound: int = HOLD_LIMIT, **options: Any) -> None:
    """Check law 4 by feeding one character at a time.

    Text and markup are emitted before `bound` further characters have come. A call that has begun is previewed as it
    comes: no delta is longer than what may be held back for its type to be known (4,096 characters, as JSON). What is
    broken is emitted before `bound` and 512 further characters have come, behind what is wrong where it has no name.

    Not checked: a call that may not be alone in its fence (contexts fence="sole") waits for the fence's end, and
    arguments that stand before their tool's name wait for it, also where it does not come.
    """
    contexts = options.get("contexts") or {}
    alone = contexts.get("fence") == "sole"
    parser = Parser(**options)
    emitted = 0
    begun: int | None = None  # the call that is open
    pending: list[tuple[int, int]] = []  # where the text that is withheld begins, how much has come
    named: set[int] = set()  # how much had come where a name was known: arguments that stood before it come with it
    tiles: dict[int, Event] = {}
    for position, char in [*enumerate(text, 1), (len(text), "")]:
        for event in parser.feed(char) if char else parser.finish():
            if isinstance(event, CallStart):
                begun = event.index
                named.add(position)
            elif isinstance(event, ArgumentsDelta):
                if len(event.json) > _DELTA_LIMIT and position not in named:
                    raise AssertionError(
                        f"law 4, little is withheld: expected at most {_DELTA_LIMIT} characters of arguments at once, "
                        f"found {len(event.json)} of call {event.index} at {position}\ntext: {text!r}"
                    )
            elif isinstance(event, Text | Call | Malformed | Markup):
                tiles[event.span.start] = event
                emitted = event.span.end
                begun = None if isinstance(event, Call | Malformed) else begun
        if char and begun is None and position - emitted > bound:
            pending.append((emitted, position))
    starts = sorted(tiles)
    for start, position in pending:
        tile = tiles[max(place for place in starts if place <= start)]
        allowed = bound
        if isinstance(tile, Malformed):
            allowed += _DETOUR
            said = message_parts(tile.message) if tile.name is None else None
            start = start if said is None else max(start, tile.span.start + said.at)
        if isinstance(tile, Text | Markup | Malformed) and not alone and position - start > allowed:
            raise AssertionError(
                f"law 4, little is withheld: expected what stands at {start} before more than {allowed} further "
                f"characters had come, found it withheld at {position}\nwithheld: {text[start:position]!r}"
            )


def check_previews(text: str, **options: Any) -> None:
    """Check law 8: the deltas of a call joined are one JSON text, whose value is the call's arguments.

    Also: CallStart comes first and names the tool; calls are counted from 0, each number once; what was previewed of a
    call that broke is the beginning of a JSON text; and the arguments are what JSON in UTF-8 can hold.
    """
    law = "law 8, previews tell the truth"
    names: dict[int, str] = {}
    previews: dict[int, str] = {}
    over: set[int] = set()
    for event in joined(in_chunks([text], **options)):
        if not isinstance(event, CallStart | ArgumentsDelta | Call | Malformed) or event.index is None:
            continue
        index = event.index
        if isinstance(event, CallStart):
            if index != len(names):
                raise AssertionError(f"{law}: expected index {len(names)}, found {event.to_dict()}\ntext: {text!r}")
            names[index], previews[index] = event.name, ""
        elif index not in names or index in over:
            raise AssertionError(f"{law}: expected a CallStart before it, found {event.to_dict()}\ntext: {text!r}")
        elif isinstance(event, ArgumentsDelta):
            previews[index] += event.json
        else:
            over.add(index)
            _check_preview(law, text, event, names[index], previews[index])
    if over != names.keys():
        raise AssertionError(f"{law}: expected an end of calls {sorted(names.keys() - over)}, found none: {text!r}")


def _check_preview(law: str, text: str, event: Call | Malformed, name: str, preview: str) -> None:
    if isinstance(event, Malformed):
        if event.name != name or not _begins_json(preview):
            raise AssertionError(
                f"{law}: expected name {name!r} and the beginning of a JSON text, found {preview!r} before "
                f"{event.to_dict()}\ntext: {text!r}"
            )
    else:
        try:
            value = json.loads(preview, object_pairs_hook=_once, parse_constant=_refuse)
            exact = _exactly(event.arguments)
        except ValueError as error:  # of either side: no JSON, a key twice, what is not finite, half a surrogate pair
            raise AssertionError(f"{law}: {error}: {preview!r}, before {event.to_dict()}\ntext: {text!r}") from error
        if event.name != name or _exactly(value) != exact:
            raise AssertionError(f"{law}: expected {preview!r} of {name!r}, found {event.to_dict()}\ntext: {text!r}")


def _exactly(value: JsonValue) -> bytes:
    """Return a text that is equal for equal JSON values only: 1, 1.0 and True differ, and so does the order of keys.

    Raises ValueError for what is no JSON in UTF-8.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


def _refuse(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is no JSON")


def _begins_json(text: str) -> bool:
    """Return whether `text` can be completed to a JSON text."""
    closers = ""
    in_string = False
    for piece in re.finditer(r'\\.|["{}\[\]]', text, re.DOTALL):
        sign = piece[0]
        if sign == '"':
            in_string = not in_string
        elif not in_string and sign in "{[":
            closers = ("}" if sign == "{" else "]") + closers
        elif not in_string:
            closers = closers[1:]
    endings = ('"', '":0') if in_string else ("", "0", '"":0', ":0")
    return any(is_json(text + ending + closers) for ending in endings)


# A dialect's row and its grammar.


def check_dialect(dialect: str | Dialect) -> None:
    """Check what the laws want of a dialect's row and its grammar, without any text of it.

    - Its patterns compile, and end in something that must be there: where a pattern matches, more text behind it
      changes nothing. (Otherwise where a marker ends would depend on how the text was cut.) No part takes what the next
      one wants: what repeats possessively gives nothing back.
    - `begins` holds the characters with which an opener or a head that stands alone begins, loose ones too; no other.
    - Its grammar compiles and has the start rules `marker` and `call`, and the names that the parts of its body have.
    - No white space alone ends a marker or completes a head: it is what `neutralize` puts before texts.
    - What its templates write, if it has any, is read back: calls with values of every type, and with none.
    - The grammar describes markers that the row makes, and says of their calls what is read.

    Patterns are tried with texts made from them; what looks behind is not tried.

    >>> check_dialect("hermes")
    """
    try:
        row = selected(dialect)
    except DialectError as error:
        raise AssertionError(f"{error}") from error
    check_row_alone(row)
    check_names(row)
    grammar = load(row)
    for where, texts in sample_texts(row):
        for text in texts:
            try:
                check_grammar(row, text)
            except (AssertionError, DialectError) as error:
                raise AssertionError(f"{where} and its grammar do not agree: {error}") from error
        refused = [grammar.explain(text, "marker") for text in texts]
        if None not in refused:
            at = refused[0].position if refused[0] is not None else 0
            raise AssertionError(
                f"{where}: expected a grammar whose rule `marker` describes what the row does, found one in which "
                f"{texts[0]!r} is none: {refused[0]}, at {at}"
            )
    several = section_text(row)
    mismatch = grammar.explain(several, "marker") if several else None
    if mismatch is not None:
        raise AssertionError(
            f"dialect {row.name}: writing: expected a grammar whose rule `marker` describes two calls as the templates "
            f"write them, found one in which {several!r} is none: {mismatch}, at {mismatch.position}"
        )
    if several:
        check_grammar(row, several)


def check_grammar(dialect: str | Dialect, text: str) -> None:
    """Check law 5 on one text, in both directions, with no dialect but `dialect` listening and every context allowed.

    A member of the grammar is read, strictly, as the very calls that the grammar says: their texts, names, ids and
    arguments, without repairs, and with nothing Malformed or left as text. What no grammar can refuse is Malformed:
    positional values without a schema; and keys given twice or numbers without a value, which law 8 looks for.
    And a Call without repairs, read from any text in any tolerance, is a member and means what the grammar says.

    >>> check_grammar("call", "[CALL: get_weather(city='Oslo', days=2)]")
    """
    row = selected(dialect)
    options: dict[str, Any] = {"dialects": row, "contexts": EVERYWHERE}
    heads = [head for form in row.forms for head in [Pattern(expand(form.head)).match(text)] if head and form.alone]
    for head in heads[:1]:
        options["nonce"] = head["nonce"] if "nonce" in head.re.groupindex else None
    starts: tuple[Start, ...] = ("marker", "call")
    for start in starts:
        try:
            expected = load(row).read(text, start)
        except Mismatch:
            continue
        if start == "marker" or heads:
            _check_read(f"law 5, the grammar is obeyed: {row.name}, a {start}", text, expected, options)
    for tolerance in ("strict", "lenient"):
        _check_members(text, {**options, "tolerance": tolerance})


def _check_read(law: str, text: str, expected: Sequence[GrammarCall], options: dict[str, Any]) -> None:
    """Check that `text`, a member, is read as the grammar says."""
    nesting = sum(map(text.count, _BRACKETS))
    if nesting > Limits().nesting or len(text) > Limits().arguments:
        return  # it may be over a limit, of which the grammar knows nothing
    events = in_chunks([text], **options, tolerance="strict")
    calls = [event for event in events if isinstance(event, Call)]
    rest = [event for event in events if isinstance(event, Text | Malformed)]
    same = [call.raw for call in calls] == [call.raw for call in expected]
    refused = any(call.positional for call in expected)
    if refused and same:
        raise AssertionError(f"{law}: expected Malformed, found {calls!r}\ntext: {text!r}\ngrammar: {expected!r}")
    if refused or any(call.duplicate_keys or call.bad_numbers or _holds_refused(call) for call in expected):
        return
    if rest or not same:
        wanted = ", ".join([f"the call {call.raw!r}" for call in expected])
        told = ", ".join(filter(None, map(_said, events))) or "nothing"
        raise AssertionError(f"{law}: expected what the grammar says, {wanted}, found {told}\ntext: {text!r}")
    for found, said in zip(calls, expected, strict=True):
        _check_meaning(law, found, said, Limits().nesting)


def _said(event: Event) -> str:
    match event:
        case Call(raw=raw):
            return f"the call {raw!r}"
        case Malformed(raw=raw, message=message):
            return f"{raw!r}, which is none ({message})"
        case Text(text=text):
            return f"the text {text!r}"
        case _:
            return ""


def _holds_refused(said: GrammarCall) -> bool:
    """Whether a raw value, which is text to the grammar, is JSON that is refused: it has a key twice."""
    raw = _raw_values(said.arguments, ()) if said.untyped else ()
    for place, value in raw:
        try:
            plain_value("" if place in said.texts else value, None, Limits().nesting)
        except Undecodable:
            return True
    return False


def _raw_values(value: JsonValue, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield the raw values in arguments whose types are still open, each with its place."""
    if isinstance(value, str):
        yield place, value
        return
    for key, member in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _raw_values(member, (*place, key))


def _check_members(text: str, options: dict[str, Any]) -> None:
    """Check that calls without repairs are in their grammars and mean what these say."""
    law = "law 5, the grammar is obeyed"
    rows = _listening(options.get("dialects"))
    nesting = (options.get("limits") or Limits()).nesting
    for event in in_chunks([text], **options):
        if not isinstance(event, Call):
            continue
        if event.repairs and options.get("tolerance") == "strict":
            found = event.to_dict()
            raise AssertionError(f"{law}: expected no repairs in strict reading, found {found}\ntext: {text!r}")
        if event.repairs:
            continue
        try:
            (said,) = load(rows[event.dialect]).read(event.raw, "call")
        except Mismatch as mismatch:
            raise AssertionError(
                f"{law}: expected a member of the grammar of {event.dialect}, found {event.raw!r}, which is read as a "
                f"call: {mismatch} at {mismatch.position}\ntext: {text!r}"
            ) from None
        _check_meaning(law, event, said, nesting, typed=options.get("tools") is not None)


def _listening(wanted: Any) -> dict[str, Dialect]:
    own = select(wanted) if wanted is not None else ()
    return {dialect.name: dialect for dialect in (*dialects(), *own)}


def _check_meaning(law: str, call: Call, said: GrammarCall, nesting: int, *, typed: bool = False) -> None:
    """Check a call against what the grammar says of it; `typed`: schemas may have changed the types of values."""
    arguments: JsonValue = said.arguments
    if said.untyped:
        read = call.arguments
        arguments = {
            key: _typed(value, read.get(key), nesting - 1, said.texts, (key,)) for key, value in said.arguments.items()
        }
    same = call.name == said.name
    if call.id is not None or "\\" not in call.raw:  # an id that is empty, or written with escapes, may count as none
        same = same and call.id == (said.id or None)
    if not typed:
        same = same and not said.positional and _exactly(call.arguments) == _exactly(arguments)
        same = same and call.raw_arguments == said.raw_arguments.strip(BLANKS)
    if not same:
        raise AssertionError(f"{law}: expected {said!r}, found {call.to_dict()}")


def _typed(value: JsonValue, read: JsonValue, nesting: int, texts: Collection[Place], place: Place) -> JsonValue:
    """Return what a raw value, or one that holds elements, means where nothing is declared.

    `read` is what was made of it: the text, where it is too long to be held until it has shown to be something else.
    It stands at `place`, and at `texts` the marker says that a value is text.
    """
    if isinstance(value, dict):
        members = read if isinstance(read, dict) else {}
        return {
            key: _typed(member, members.get(key), nesting - 1, texts, (*place, key)) for key, member in value.items()
        }
    if isinstance(value, list):
        items = read if isinstance(read, list) and len(read) == len(value) else [None] * len(value)
        both = enumerate(zip(value, items, strict=True))
        return [_typed(item, other, nesting - 1, texts, (*place, at)) for at, (item, other) in both]
    if place in texts or (len(value) > PLAIN_LIMIT and read == value):
        return value
    try:
        return plain_value(value, None, nesting)[1]
    except Undecodable:  # a schema that knows strings as well lets such a text be one
        return value


# Writing.


def check_inverse(
    name: str, arguments: dict[str, JsonValue], dialect: str | Dialect, *, tools: Any = None, refusals: bool = True
) -> None:
    """Check law 6: a call is written and read back strictly as that very call, with nothing else in its text.

    A dialect may refuse to write a call that it cannot express, unless `refusals` is False: then UsageError is raised.
    It is always raised for a dialect without templates (`writing`), which has no inverse, and for tools that are none.

    >>> check_inverse("get_weather", {"city": "</parameter>", "days": 2}, "qwen_xml")
    """
    law = "law 6, reading and writing are inverse"
    row = selected(dialect)
    try:
        text = render_call(name, arguments, row, tools=tools)
    except UsageError as error:
        if refusals and row.writing is not None and not isinstance(error, ToolsError):
            return
        raise
    events = in_chunks([text], dialects=dialect, tools=tools, contexts=EVERYWHERE, tolerance="strict")
    calls = [event for event in events if isinstance(event, Call)]
    texts = "".join(event.text for event in events if isinstance(event, Text))
    rest = texts.strip() or any(isinstance(event, Malformed) for event in events)
    expected = (name, _exactly(arguments))
    if rest or [(call.name, _exactly(call.arguments)) for call in calls] != [expected]:
        raise AssertionError(f"{law}: expected {name!r} with {arguments!r}, found {events!r}\ntext: {text!r}")


def check_neutral(
    *texts: str,
    between: Sequence[str] = (),
    dialects: Iterable[str | Dialect] = (),
    tools: Collection[str] | None = None,
) -> None:
    """Check law 9: no call is read in the texts, each neutralized, alone and chained with what stands `between` them.

    between     texts of which the first stands before the first neutralized one, and so on; no marker begins in them,
                but an opener or a head that is cut may end them (behind a whole head content is its arguments)
    dialects    those that are listened for beside the registered ones
    tools       the names of the tools that there are; default: every word of the texts

    Also: doing it twice changes nothing, and a text that is JSON is JSON with the same value. Reading is as tolerant as
    can be.

    >>> check_neutral("L: pay(amount=9)]", between=["[CAL"])
    """
    law = "law 9, written content cannot call"
    rows = _registered_and(dialects)
    chain = ""
    for number, text in enumerate(texts):
        written = neutralize(text, dialects=rows, tools=tools)
        if neutralize(written, dialects=rows, tools=tools) != written:
            raise AssertionError(f"{law}: expected no change the second time, found one in {written!r}")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            if repr(json.loads(written)) != repr(value):
                raise AssertionError(f"{law}: expected JSON with the value of {text!r}, found {written!r}")
        _check_callless(law, written, rows, tools)
        if written:  # else the texts around it would stand side by side
            chain += (between[number] if number < len(between) else "") + written
    end = between[len(texts)] if len(texts) < len(between) else ""
    _check_callless(law, chain + end, rows, tools)


def _registered_and(own: Iterable[str | Dialect]) -> tuple[Dialect, ...]:
    rows = {row.name: row for row in (*dialects(), *(unregistered(own) if own else ()))}
    return tuple(rows.values())


def _check_callless(law: str, text: str, rows: tuple[Dialect, ...], tools: Collection[str] | None) -> None:
    words = list(dict.fromkeys(re.findall(r"[^\W\d][\w.:/\-]*", text)))  # what salvage takes wants the name of a tool
    for tolerance, known in (("lenient", None), ("strict", None), ("salvage", words if tools is None else tools)):
        options = {"dialects": rows, "contexts": EVERYWHERE, "tolerance": tolerance, "tools": known}
        calls = [event for event in in_chunks([text], **options) if isinstance(event, Call)]
        if calls:
            raise AssertionError(f"{law}: expected no call, found {calls!r}\ntext: {text!r}")


# Time.


def check_linear(make_text: Callable[[int], str], *, length: int = 4000, **options: Any) -> None:
    """Check law 7: steps grow with the text, whole and in chunks of 1, 4 and 64 characters.

    make_text   returns a text of about so many characters; it is asked for `length`, twice and four times that many

    A step is a character that was looked at (`Parser.steps`), so the check is exact and no clock is involved. There
    are at most STEPS_PER_CHARACTER a character and STEPS_PER_CHUNK a chunk, and four times the text takes at most 4.4
    times the steps, and what any text costs once; or where it costs more from some length on, as behind a limit, twice
    the text from there takes at most 2.2 times the steps.
    """
    law = "law 7, time is linear"
    for chunk_length in (0, 1, 4, 64):
        name = f"in chunks of {chunk_length}" if chunk_length else "whole"
        measured = []
        for times in (1, 2, 4):
            text = make_text(times * length)
            chunks = _of_length(text, chunk_length)
            steps = _steps(chunks, options)
            measured.append((len(text), steps))
            allowed = STEPS_PER_CHARACTER * len(text) + STEPS_PER_CHUNK * (len(chunks) + 1)
            if steps > allowed:
                raise AssertionError(
                    f"{law}: {name}: expected at most {allowed} steps for {len(text)} characters, found {steps}"
                    f"\ntext: {text[:200]!r}"
                )
        (_, one), (_, two), (_, four) = measured
        if four > 4.4 * one + (_ONCE_IN_CHUNKS if chunk_length else _ONCE) and four > 2.2 * two:
            raise AssertionError(
                f"{law}: {name}: expected at most 4.4 times the steps for four times the text, found (characters, "
                f"steps) {measured}\ntext: {make_text(length)[:200]!r}"
            )


def _steps(chunks: Iterable[str], options: dict[str, Any]) -> int:
    parser = Parser(**options)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    return parser.steps


# Messages.


def _two_sides(law: str, text: str, one: str, left: list[Event], other: str, right: list[Event]) -> str:
    """Return a message that shows where two lists of events differ."""
    at = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    sides = "".join(
        f"\n{name}: {'no more events' if at >= len(events) else events[at].to_dict()}"
        for name, events in ((one, left), (other, right))
    )
    return f"{law}: {other}: event {at} differs{sides}\ntext: {text!r}"
