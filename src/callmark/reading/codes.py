"""Explains the codes: the closed set of what reading says of a text, each with advice and an example.

The sentences of `callmark.events` say what each code means. Here stands what a person does about it, and a text that
gives exactly this code, which the tests read. `callmark explain --code` prints both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from callmark.errors import UsageError, nearest
from callmark.events import MALFORMED_CODES, NOTICE_CODES, REPAIR_CODES, Event
from callmark.reading.diagnosis import WANTED
from callmark.reading.options import Limits
from callmark.reading.whole import SnapshotFeeder, parse

Kind = Literal["malformed", "notice", "repair"]


class Code(NamedTuple):
    """A code, explained.

    code      kebab-case
    kind      "malformed": the marker was not read; "notice": a remark; "repair": the call was read, and this changed
    meaning   one sentence without a capital and a period
    wanted    what should stand in the place that it is about, where the message of a problem does not say it better
    advice    what to do about it: sentences
    example   a text that gives this code and no other; several: snapshots of one text, in order
    options   the options of `parse` with which it does
    """

    code: str
    kind: Kind
    meaning: str
    wanted: str
    advice: str
    example: tuple[str, ...]
    options: Mapping[str, Any]

    def read(self) -> list[Event]:
        """Read the example and return its events."""
        if len(self.example) == 1:
            return list(parse(self.example[0], **self.options).events)
        feeder = SnapshotFeeder(**self.options)
        return [event for snapshot in self.example for event in feeder.feed(snapshot)] + list(feeder.finish())


_STRICT: Final = {"tolerance": "strict"}
_IN_TEXT = "It is text for people. Where such calls are meant, allow it with the option `contexts`."
_WRITE = "Ask the model for the whole call again; `feedback` has the words."
_READ = "Nothing to do, unless it happens often: then show the model the correct form in its prompt."

_TOLD: Final[dict[str, tuple[str, str, str | tuple[str, ...], dict[str, Any]]]] = {
    # code: (wanted, advice, example, options), see Code
    # Malformed
    "unclosed-marker": (
        "the rest of the marker",
        "The model stopped, or ran out of tokens: let it go on. `feedback` says where.",
        '[CALL: save({"path": "a.txt", "body": "Once',
        {},
    ),
    "unexpected-text": (
        "what the dialect's grammar allows",
        f"The message says what was expected and where. {_WRITE}",
        '[CALL: get_weather({"city" "Oslo"})]',
        {},
    ),
    "bad-escape": (
        r"a backslash that is doubled: \\",
        r'Backslashes are doubled in JSON: "\\d". Tolerant reading keeps them, so this is seen when reading is strict.',
        r'[CALL: find({"pattern": "\d+"})]',
        _STRICT,
    ),
    "bad-number": (
        "a finite number of at most 4,300 digits",
        f"A larger number belongs in a string. {_WRITE}",
        '[CALL: pay({"amount": 1e400})]',
        {},
    ),
    "control-character": (
        r"an escape, such as \n",
        r"A line break is written \n in JSON. Tolerant reading keeps it, so this is seen when reading is strict.",
        '[CALL: say({"text": "one\ntwo"})]',
        _STRICT,
    ),
    "lone-surrogate": (
        "a character",
        f"Characters beyond U+FFFF are two escapes, or the character itself. {_WRITE}",
        r'[CALL: say({"text": "\ud83d"})]',
        {},
    ),
    "duplicate-key": (
        "each key once",
        f"Which of the two values was meant is never guessed. {_WRITE}",
        "[CALL: get_weather(city=Oslo, city=Bergen)]",
        {},
    ),
    "nested-marker": (
        "the end of the first call before the next one",
        "The outer call was never closed; the inner one is read.",
        "<tool_call><function=say><parameter=text>hello<tool_call><function=look></function></tool_call>",
        {},
    ),
    "missing-name": (
        "the name of a tool",
        f"An argument called `name` never names the tool. {_WRITE}",
        '<tool_call>{"arguments": {"city": "Oslo"}}</tool_call>',
        {},
    ),
    "bad-arguments": (
        "arguments that are a JSON object, or have names",
        "Give `tools` with schemas, which bind values without keys, or have the model name its arguments.",
        '[CALL: translate("good morning", "fr")]',
        {},
    ),
    "nesting-too-deep": (
        "fewer nested brackets",
        "Raise `limits.nesting` if such arguments are real; here it is 2.",
        '[CALL: draw({"points": [[1, 2]]})]',
        {"limits": Limits(nesting=2)},
    ),
    "arguments-too-long": (
        "shorter arguments",
        "Raise `limits.arguments` if such arguments are real; here it is 16 characters.",
        '[CALL: save({"body": "more than sixteen characters"})]',
        {"limits": Limits(arguments=16)},
    ),
    # Notices
    "marker-in-fence": ("a call that is meant, outside of code fences", _IN_TEXT, "```\n[CALL: look()]\n```", {}),
    "marker-in-code": ("a call that is meant, outside of code", _IN_TEXT, "The form is `[CALL: look()]`.", {}),
    "marker-in-quote": ("a call that is meant, outside of block quotes", _IN_TEXT, "> [CALL: look()]", {}),
    "marker-in-reasoning": (
        "a call that is meant, behind the reasoning",
        _IN_TEXT,
        "<think>I could [CALL: look()]</think>",
        {},
    ),
    "unknown-nonce": (
        "the nonce that was asked for",
        "Someone else wrote this marker, or the model forgot the nonce; here it is 7f3a.",
        "[CALL: look()]",
        {"nonce": "7f3a"},
    ),
    "too-many-calls": (
        "fewer calls",
        "Raise `limits.calls` if so many calls are real; here it is 1.",
        "[CALL: look()] [CALL: look()]",
        {"limits": Limits(calls=1)},
    ),
    "unknown-tool": (
        "the name of a tool that was given",
        "Do not run the call; tell the model which tools there are. The nearest name is a hint, nothing more.",
        "[CALL: forcast(city=Oslo)]",
        {"tools": ["forecast"]},
    ),
    "extra-separator": (
        "another call, or the end of the list",
        "Nothing to do: the calls before it are read as they stand.",
        '<tool_calls>[{"name": "look", "arguments": {}},]</tool_calls>',
        {},
    ),
    "stray-closer": (
        "text, or another call",
        "Nothing to do: the call before it is read as it stands.",
        '<tool_call>{"name": "look", "arguments": {}}</tool_call></tool_call>',
        {},
    ),
    "snapshot-replaced": (
        "a snapshot that begins with the last one",
        "Throw away what was shown so far. Calls that were reported before are not reported again.",
        ("Well, let me see", "Well: let me see"),
        {},
    ),
}

_REPAIRED: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    # code: (advice, example, options), see Code; what is wanted says `diagnosis`
    "opener-spelling": (_READ, "[Call: look()]", {}),
    "full-width-punctuation": (_READ, '[CALL: look({"at"： "sea"})]', {}),
    "curly-quotes": (_READ, "[CALL: look({“at”: 1})]", {}),
    "single-quotes": (_READ, "[CALL: look({'at': 1})]", {}),
    "python-literal": (_READ, '[CALL: look({"far": True})]', {}),
    "bare-key": (_READ, "[CALL: look({at: 1})]", {}),
    "bare-value": (_READ, '[CALL: look({"at": sea})]', {}),
    "colon-for-equals": (_READ, '[CALL: look("at": "sea")]', {}),
    "missing-comma": (_READ, '[TOOL_CALLS] [{"name": "look", "arguments": {}} {"name": "look", "arguments": {}}]', {}),
    "extra-comma": (_READ, '[CALL: look({"at": 1,})]', {}),
    "comment": (_READ, '[CALL: look({"at": 1 /* there */})]', {}),
    "odd-blank": (_READ, '[CALL: look({"at":\u00a01})]', {}),
    "raw-control-character": (_READ, '[CALL: say({"text": "one\ntwo"})]', {}),
    "literal-backslash": (
        r"Look whether the path or pattern is right: a model that forgets to double \d may have meant \n so too.",
        r'[CALL: find({"pattern": "\d+"})]',
        {},
    ),
    "markdown-escape": (_READ, r"[CALL: look\_around()]", {}),
    "inner-quotes": (_READ, """[CALL: measure({"size": "5" tall"})]""", {}),
    "missing-opener": (_READ, '[CALL: look{"at": 1})]', {}),
    "missing-closer": (_READ, "<tool_call>\n<function=say>\n<parameter=text>\nhello\n</function>\n</tool_call>", {}),
    "extra-closer": (_READ, '[CALL: look({"at": 1}})]', {}),
    "equals-for-colon": (_READ, '[CALL: look({"at"="sea"})]', {}),
    "wrong-closer": (_READ, '[CALL: look({"at": 1})}', {}),
    "string-arguments": (_READ, r'<tool_call>{"name": "look", "arguments": "{\"at\": 1}"}</tool_call>', {}),
    "null-arguments": (_READ, '<tool_call>{"name": "look", "arguments": null}</tool_call>', {}),
    "escaped-entities": (_READ, "[CALL: look({&quot;at&quot;: 1})]", {}),
    "fenced-body": (_READ, 'Action: look\nAction Input:\n```json\n{"at": 1}\n```', {"dialects": "react"}),
    "neighbour-body": (
        "The model mixes two formats: show it the correct form in its prompt.",
        '<tool_call>look\n{"at": 1}\n</tool_call>',
        {"tolerance": "salvage", "tools": ["look"]},
    ),
    "doubled-braces": (
        "Perhaps the prompt shows its example with doubled braces: templates want them, models copy them.",
        '<tool_call>{{"name": "look", "arguments": {"at": 1}}}</tool_call>',
        {},
    ),
    "key-spelling": (_READ, '<tool_call>{"name": "look", "params": {"at": 1}}</tool_call>', {}),
    "flattened-arguments": (
        f"It is read where a given tool of that name has just such parameters. {_READ}",
        '<tool_call>{"name": "look", "at": 1}</tool_call>',
        {"tools": {"look": {"type": "object", "properties": {"at": {"type": "integer"}}}}},
    ),
    "plain-quotes": (_READ, '<|tool_call>call:look{at:"sea"}<tool_call|>', {}),
    "triple-quotes": (_READ, '[CALL: say(text="""one "two" three""")]', {}),
    "raw-arguments": (
        "Give `tools` with a schema, which binds the text to a parameter.",
        "[CALL: look(over there)]",
        {},
    ),
}


def _codes() -> Iterator[Code]:
    kinds: tuple[tuple[Kind, dict[str, str]], ...] = (
        ("malformed", MALFORMED_CODES),
        ("notice", NOTICE_CODES),
        ("repair", REPAIR_CODES),
    )
    for kind, table in kinds:
        for name, meaning in table.items():
            wanted, advice, example, options = _TOLD[name] if kind != "repair" else (WANTED[name], *_REPAIRED[name])
            texts = (example,) if isinstance(example, str) else example
            yield Code(name, kind, meaning, wanted, advice, texts, options)


CODES: Final[Mapping[str, Code]] = MappingProxyType({code.code: code for code in _codes()})
"""Every code by its name, in the order of the tables in `callmark.events`."""


def explained(name: str) -> Code:
    """Return a code, explained. Raises UsageError that lists all codes.

    >>> explained("duplicate-key").meaning
    'an object or argument list names the same key twice'
    """
    if name not in CODES:
        near = nearest(name, CODES)
        told = f"found {name!r}" + (f"; did you mean {near!r}?" if near else "")
        raise UsageError(f"expected a code ({', '.join(CODES)}), {told}")
    return CODES[name]
