"""The words for a model: true of its text, in its language, with a form that reads as the call that was meant."""

from __future__ import annotations

import ast
import json
import re
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

import callmark
from callmark import Notice, UsageError, feedback, load_language, parse, reading
from callmark.dialects import Dialect, dialects
from callmark.events import MALFORMED_CODES, NOTICE_CODES, REPAIR_CODES, Malformed, Span
from callmark.languages import LANGUAGES, language_of
from callmark.reading import grammar
from callmark.reading.begun import begun
from callmark.reading.codes import CODES
from callmark.reading.corrections import correct_form, ending
from callmark.reading.diagnosis import CLOSER_BEHIND, explain, message_parts, refused, unknown_tool
from callmark.reading.feedback import AGAIN, TAIL, _translated
from callmark.reading.patterns import patterns
from callmark.reading.strings import _NO_ESCAPE
from callmark.reading.values import _WRONG_WORDS

PHRASES = {name: language_of(name).feedback for name in LANGUAGES}
each_language = pytest.mark.parametrize("language", PHRASES)
each_dialect = pytest.mark.parametrize("dialect", dialects(), ids=lambda dialect: dialect.name)
NAMED = {dialect.name: dialect for dialect in dialects()}


def problem(text, **options):
    (found,) = parse(text, **options).problems
    return found


def lines(text, dialect=None, language="en", **options):
    return feedback(problem(text, **options), dialect, language).split("\n")


# The words.


def test_every_language_has_every_phrase():
    assert set(PHRASES) == {"en", "zh-Hans", "zh-Hant"}
    for phrases in PHRASES.values():
        assert phrases.keys() == PHRASES["en"].keys()
        assert phrases.keys() >= MALFORMED_CODES.keys() | NOTICE_CODES.keys()
        for key, phrase in phrases.items():
            assert phrase or key in ("between", "unclosed-marker", "unknown-tool")


def test_places_in_phrases_are_the_same_in_every_language():
    for key, phrase in PHRASES["en"].items():
        for place in ("{name}", "{near}", "{expected}", "{found}", "{excerpt}"):
            assert {place in phrases[key] for phrases in PHRASES.values()} == {place in phrase}


def test_what_a_form_has_in_the_place_of_something_else_is_named():
    for phrases in PHRASES.values():
        assert all(f"`{word}`" in phrases["title"] for word in ("name", "key", "value"))
        assert all(f"`{word}`" in phrases["form"] for word in ("key", "value"))


def test_languages_are_not_mixed():
    assert all("个" not in phrase and "调用" not in phrase for phrase in PHRASES["zh-Hant"].values())
    assert all("個" not in phrase and "呼叫" not in phrase for phrase in PHRASES["zh-Hans"].values())
    assert all(phrase.isascii() or "⟦" in phrase for phrase in PHRASES["en"].values())


@each_language
@pytest.mark.parametrize("code", MALFORMED_CODES)
def test_every_broken_marker_has_its_words(code, language):
    (found,) = [event for event in CODES[code].read() if isinstance(event, Malformed)]
    told = feedback(found, language=language)
    assert PHRASES[language][code] in told
    assert PHRASES[language]["cut" if code == "unclosed-marker" else "broken"].format(name=found.name) in told or (
        code == "missing-name" and PHRASES[language]["broken-nameless"] in told
    )


@each_language
@pytest.mark.parametrize("code", NOTICE_CODES)
def test_every_notice_has_its_words(code, language):
    (found,) = [event for event in CODES[code].read() if isinstance(event, Notice)]
    assert PHRASES[language][code] in feedback(found, language=language)


# What they say.


def test_a_broken_call_is_told_where_it_breaks():
    assert lines('[CALL: look({"at": "sea", "far" 3})]') == [
        "Your call of `look` could not be read, so it was not run.",
        "Something stands where it is not allowed. "
        'Expected ":", found `3`, where ⟦ ⟧ stand: {"at": "sea", "far" ⟦3⟧})]',
        "The correct form, with the arguments that could be read:",
        '[CALL: look({"at": "sea"})]',
        "Write the whole call again, exactly in this form.",
    ]


def test_it_is_told_what_was_expected_behind_a_whole_call_too():
    told = 'Expected "</tool_call>", found `<`, where ⟦ ⟧ stand: rguments": {"a": 1}}⟦<⟧'
    assert lines('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_calll>')[1].endswith(told)
    told = 'found `a`, where ⟦ ⟧ stand: [CALL: f({"a": 1})⟦a⟧'
    assert lines('[CALL: f({"a": 1}) and then')[1].endswith(told)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('<|python_tag|>{"name": "f", "paramters": {"a": 1}}', "parameters"),
        ('<tool_call>{"name": "f", "argumens": {"a": 1}}</tool_call>', "arguments"),
    ],
)
def test_the_key_that_the_form_has_is_among_those_that_were_expected(text, key):
    told = lines(text)
    assert f'"{key}"' in told[1].partition(", found")[0]
    assert f'"name": "f", "{key}": {{' in "".join(told)
    assert '成员 "arguments" 或 "parameters"' in lines(text, language="zh-Hans")[1]


def test_it_is_told_in_chinese_too():
    assert lines('[CALL: look({"at": "sea" 3})]', language="zh-Hans") == [
        "你对 `look` 的调用无法读取，因此没有执行。",
        '有内容出现在不允许的位置。在 ⟦ ⟧ 处应为 "," 或 "}"，实际是 `3`：: look({"at": "sea" ⟦3⟧})]',
        "正确的格式（已填入能读出的参数）：",
        '[CALL: look({"at": "sea"})]',
        "请严格按照此格式重新写出完整的调用。",
    ]
    assert "一個值，實際是 `}`：" in lines('[CALL: look({"at": })]', language="zh-Hant")[1]


def test_a_cut_call_is_told_how_to_go_on():
    assert lines('[CALL: save({"path": "a.txt", "lines": ["Once') == [
        "Your message ended in the middle of a call of `save`, so it was not run.",
        "Go on exactly behind these last characters, and repeat nothing:",
        '[CALL: save({"path": "a.txt", "lines": ["Once',
        "If nothing is missing in the arguments, what closes the call is:",
        '"]})]',
        "The correct form, with the arguments that could be read:",
        '[CALL: save({"path": "a.txt"})]',
        "If you cannot go on, write the whole call again, exactly in the correct form.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[CALL: save({"path": "a.txt", "lines": ["Once',
        '<tool_call>\n{"name": "save", "arguments": {"a": {"b": "x',
        '[TOOL_CALLS]save[ARGS]{"a": [1, {"b": 2',
        '<｜tool▁call▁begin｜>save<｜tool▁sep｜>{"a": 1',
        '<|tool_call_begin|>functions.save:0<|tool_call_argument_begin|>{"a": "x\\"y',
    ],
)
def test_what_closes_a_cut_call_makes_a_call_of_it(text):
    told = lines(text)
    at = told.index("If nothing is missing in the arguments, what closes the call is:")
    end = told.index("If you cannot go on, write the whole call again, exactly in the correct form.")
    closing = "\n".join(told[at + 1 : end]).split("\nThe correct form")[0]
    (call,) = parse(text + closing).calls
    assert (call.name, call.repairs) == ("save", ())


@pytest.mark.parametrize(
    "text",
    [
        '[CALL: save({"path"',  # a key without a value
        "[CALL: save({'path': 'a",  # only a repair would read it
        "<function=save>\n<parameter=a>\nx",  # no JSON, so brackets close nothing
    ],
)
def test_what_would_not_close_a_call_is_not_shown(text):
    assert "If nothing is missing in the arguments, what closes the call is:" not in lines(text)


def test_only_the_end_of_a_long_call_is_quoted():
    text = '[CALL: save({"body": "' + "word " * 100
    assert lines(text)[2] == text[-60:]


def test_of_a_long_call_no_arguments_are_told_again():
    """The model has just written them: they would cost it as many tokens once more, and here seconds to find."""
    long = "x" * AGAIN
    told = lines(f'[CALL: save({{"path": "a.txt", "body": "{long}", "mode" 3}})]')
    assert told[2:4] == [PHRASES["en"]["form"], '[CALL: save({"key": "value"})]']
    told = lines(f'[CALL: save({{"path": "a.txt", "body": "{long}')
    assert told[3:7] == [PHRASES["en"]["close"], '"})]', PHRASES["en"]["form"], '[CALL: save({"key": "value"})]']


def test_a_call_without_a_name_is_told_the_form():
    assert lines('<tool_call>{"arguments": {"name": "Bob"}}</tool_call>') == [
        "You began a tool call that could not be read, so it was not run.",
        'The call does not say which tool it is for. Expected a member "name" with the name of the tool, found `}`, '
        'where ⟦ ⟧ stand: ts": {"name": "Bob"}⟦}⟧</tool_call>',
        PHRASES["en"]["title"],
        "<tool_call>",
        '{"name": "name", "arguments": {"key": "value"}}',
        "</tool_call>",
        "Write the whole call again, exactly in this form.",
    ]
    assert lines('<tool_call>{"na')[0] == "Your message ended in the middle of a tool call, so it was not run."


def test_a_name_that_was_perhaps_never_closed_is_not_told_as_one():
    told = lines('<tool_call>{"name": "save, "arguments": {"a": 1}}</tool_call>')
    assert told[0] == "You began a tool call that could not be read, so it was not run."
    assert told[2:5] == [PHRASES["en"]["title"], "<tool_call>", lines("<tool_call>{}</tool_call>")[4]]
    for text in ('{"name": "save"], "arguments" {"a": 1}}', '{"name": "save", "arguments": {"b": "save"x}}'):
        assert "call of `save`" in lines(f"<tool_call>{text}</tool_call>")[0]


@pytest.mark.parametrize(
    "text",
    [
        '[CALL: save(days=3, path="say hi, tags=["x", "y"])]',
        '<invoke name="save"><parameter name="days">3</parameter>\n<parameter name="path">hi</para\nmeter>\n'
        '<parameter name="deep">true</parameter></invoke>',
        '<!invoke name="save"><!parameter name="days" string="false">3</!parameter>\n<!parameter name="path" '
        'string="true">hi</|DSMLparameter>\n<!parameter name="deep" string="false">true</!parameter></!invoke>',
    ],
)
def test_a_value_that_strict_reading_finds_without_an_end_is_left_out_of_the_form(text):
    broken = problem(text.replace("!", "｜DSML｜"), tolerance="strict")
    told = feedback(broken).split("The correct form, with the arguments that could be read:\n")[1]
    (call,) = parse(told.rpartition("\n")[0]).calls
    assert (call.name, call.arguments) == ("save", {"days": 3})


@pytest.mark.parametrize(
    "text",
    [
        f"<function=save><parameter=days>3</parameter>\n<parameter=path>hi\n<parameter=deep>{'no ' * 100}</parameter>x"
        "</parameter></function>",
        "<tool_call>save<arg_key>days</arg_key><arg_value>3</arg_value><arg_key>path</arg_key><arg_value>hi\n"
        "<arg_key>deep</arg_key><arg_value>no</arg_value>x</arg_value></tool_call>",
    ],
)
def test_a_value_in_which_the_next_one_may_stand_is_left_out_of_the_form(text):
    """The model would write the half of it again that is shown, and be run with that."""
    broken = problem(text, dialects=["qwen_xml", "glm"])
    told = feedback(broken, "call")
    assert "hi⟦ ⟧<" in told
    assert '[CALL: save({"days": 3})]' in told


TOOLS = {"f": {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}}
"""A tool that requires nothing."""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[CALL: f({"type": "object", "properties": {"a": {}}})]', '⟦type⟧": "object"'),
        ('[CALL: f({"title": "f", "properties": {}, "type": "object"})]', '⟦title⟧": "f"'),
        (r'[CALL: f({"t\u0079pe": "object", "properties": {}})]', "⟦["),
    ],
)
def test_a_definition_is_not_shown_as_the_correct_form(text, told):
    said = lines(text, tools=TOOLS)
    assert "Expected arguments, not their definition, found" in said[1]
    assert told in said[1]
    assert "properties" not in "".join(said[2:])


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "f", "arguments": {"a": "b"}, "b": "x"}</tool_call>',
        '<tool_call>{"name": "f", "b": "x", "arguments": {"a": "b"}}</tool_call>',
        '<tool_call>{"name": "f", "b": "x", "arguments": {}, "c": "b"}</tool_call>',
        '<tool_call>{"func": "f", "b": "x", "c": "b", "arguments": {}}</tool_call>',
    ],
)
def test_a_parameter_beside_the_arguments_is_told(text):
    found = problem(text, tools=TOOLS)
    parts = message_parts(found.message)
    assert (parts.expected, parts.found) == ("all arguments in one object", "b")
    assert text[parts.at :].startswith('b": "x"')


def test_a_key_given_twice_is_left_out_of_the_form():
    assert '[CALL: f({"b": 3})]' in lines("[CALL: f(a=1, b=3, a=2)]")


def test_too_long_arguments_are_not_asked_for_again():
    text = '[CALL: save({"body": "more than sixteen characters"})]'
    told = lines(text, limits=callmark.Limits(arguments=16))
    assert told == [
        "Your call of `save` could not be read, so it was not run.",
        "The arguments are too long. Write less, or split it into several calls.",
    ]


def test_an_integer_that_is_too_long_is_not_asked_for_again():
    told = lines("[CALL: pay(to=Mia, sum=12345)]", limits=callmark.Limits(digits=4))
    assert told[1] == "A number is too large for JSON. Write it as a string."
    assert '[CALL: pay({"to": "Mia"})]' in told


def test_an_unknown_tool_is_told_with_the_nearest_name():
    assert lines("[CALL: forcast()]", tools=["forecast"]) == [
        "There is no tool `forcast`. Did you mean `forecast`? Use only the tools that you were given."
    ]
    assert lines("[CALL: xyz()]", tools=["forecast"]) == [
        "There is no tool `xyz`. Use only the tools that you were given."
    ]


def test_a_marker_left_as_text_is_told_why():
    assert lines("```\n[CALL: f()]\n```") == [
        "You wrote something that looks like a tool call, but it was not run.",
        "It stands in a code fence, where calls are examples.",
        "If you meant it, write it again as plain text, exactly in the correct form.",
    ]
    assert lines("```\n[CALL: f()]\n```", "call")[2:4] == [
        PHRASES["en"]["title"],
        '[CALL: name({"key": "value"})]',
    ]


@each_dialect
def test_a_form_for_no_certain_call_is_a_call_too(dialect):
    (call,) = parse(correct_form(dialect, None, {}), dialects=dialect, tolerance="strict").calls
    assert (call.name, call.arguments) == ("name", {"key": "value"})


def test_the_form_is_that_of_the_dialect_that_is_wanted():
    told = lines('[CALL: look({"at": "sea", "far" 3})]', "hermes")
    assert told[3:6] == ["<tool_call>", '{"name": "look", "arguments": {"at": "sea"}}', "</tool_call>"]


def test_a_problem_in_a_dialect_of_ones_own():
    hermes = NAMED["hermes"]
    own = Dialect(name="own", title="TITLE", models="m", source="s", forms=hermes.forms, grammar="hermes.lark")
    found = problem('<tool_call>{"name": "f", "arguments": {"a" 1}}</tool_call>', dialects=own)
    assert feedback(found, own).split("\n")[2:4] == [PHRASES["en"]["title"], "TITLE"]
    for other in (None, "call"):
        with pytest.raises(callmark.UnknownDialectError, match=f"expected the Dialect 'own', .*, found {other!r}$"):
            feedback(found, other)
    assert (own.forms[0].head, own.forms[0].tail) == (r"<tool_call>{ws}(?=\{)", r"{ws}</tool_call>")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((problem("[CALL: f("), None, "de"), "language: expected one of en, zh-Hans, zh-Hant, or what"),
        (("a text",), "problem: expected a Malformed or a Notice, found str"),
    ],
)
def test_misuse_raises(arguments, told):
    with pytest.raises(UsageError, match="^" + told.replace("|", r"\|")):
        feedback(*arguments)


def test_a_problem_that_names_no_dialect_is_of_the_one_that_is_wanted():
    """As one is that somebody else made, by the fields of the design."""
    text = '<tool_call>{"name": "f", "arguments": {"a" 1}}</tool_call>'
    found = problem(text)
    bare = Malformed(found.span, found.raw, found.code, found.message, found.index, found.name)
    assert bare.dialect == ""
    assert feedback(bare, "hermes") == feedback(found)
    assert "[CALL: " in feedback(bare)


def test_what_was_written_is_read_in_its_own_dialect_whatever_is_wanted():
    (cut,) = parse('<tool_call>{"name": "f", "arguments": {"a": [1', dialects="hermes").problems
    (call,) = (row for row in dialects() if row.name == "call")
    told = feedback(cut, call)
    assert told == feedback(cut, "call")
    assert "\n]}}" in told
    nameless = msgspec.structs.replace(cut, dialect="")
    assert feedback(nameless, "hermes") == feedback(cut, "hermes")


@pytest.mark.parametrize("code", ["extra-separator", "stray-closer", "too-many-calls", "snapshot-replaced"])
def test_where_the_same_again_is_no_help_no_form_is_shown(code):
    told = feedback(Notice(span=Span(0, 1), code=code, message="x"), "call")
    assert told == language_of("en").feedback[code]


def test_a_dialect_that_is_not_registered_raises():
    with pytest.raises(callmark.UnknownDialectError, match="found 'nope'"):
        feedback(problem("[CALL: f("), "nope")


def test_all_words_of_the_grammars_are_translated():
    simplified, traditional = language_of("zh-Hans").expected, language_of("zh-Hant").expected
    assert simplified.keys() == traditional.keys()
    assert all((*simplified.values(), *traditional.values()))
    words = {re.sub('"[^"]*"', "", phrase).strip() for phrase in grammar._WORDS.values()}
    assert len(words) > 10
    for phrase in words:
        assert not re.search("[a-z]", _translated(phrase, simplified)), phrase
    assert _translated("a value", language_of("en").expected) == "a value"


def phrases(node):
    """Return what an argument of a call says: each way of a condition, a text that is filled in without its values."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=one, orelse=other):
            return [*phrases(one), *phrases(other)]
        case ast.JoinedStr(values=parts):
            return ["".join(part.value if isinstance(part, ast.Constant) else "" for part in parts)]
    return []


def test_all_words_of_the_readers_are_translated():
    told = [*_WRONG_WORDS.values(), _NO_ESCAPE, CLOSER_BEHIND]
    for name, one in {
        "values": "a value behind the comma",
        "envelope": "one name and one member with arguments",
        "arguments": 'a key and "="',
        "strings": "both halves of a surrogate pair",
        "parameters": "a whole JSON value",
    }.items():
        assert one not in told
        tree = ast.parse(Path(reading.__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("_die", "_break", "_fault"):
                told += phrases(node.args[1])
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "_read_half":
                told += phrases(node.args[0])
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("wanted", "expected"):
                told += phrases(node.value)
        assert one in told
    assert len(told) > 50
    for phrase in told:
        plain = re.sub(r'"[^"]*"|JSON|\\n', "", _translated(phrase, language_of("zh-Hans").expected))
        assert not re.search("[a-z]", plain), phrase
    assert _translated("the end of the marker, as in", language_of("zh-Hant").expected) == "標記的結尾, 如"


def test_what_is_wanted_where_strict_reading_refuses_is_translated():
    words = language_of("zh-Hant").expected
    for phrase in {refused(code, found)[1] for code in REPAIR_CODES for found in "\\x"}:
        plain = re.sub(r'"[^"]*"|JSON|ASCII|true|false|null|\\n', "", _translated(phrase, words))
        assert not re.search("[a-z]", plain), phrase


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "it's", "a' was given; did it mean 'b", '"', "'\""])
def test_the_name_of_an_unknown_tool_is_said_as_it_is(name):
    text = f'<tool_call>{{"name": {json.dumps(name)}, "arguments": {{}}}}</tool_call>'
    assert unknown_tool(problem(text, tools=["cat"]).message) == (name, "")
    assert unknown_tool(problem(text, tools=[name + "s"]).message) in [(name, name + "s"), (name, "")]
    assert name in feedback(problem(text, tools=["cat"]), "hermes")


def test_what_nothing_could_read_is_not_shown_as_an_argument():
    told = lines("[CALL: f(Oslo)]", tolerance="strict")
    assert told[2:4] == [
        "The correct form, with your own arguments in the place of `key` and `value`:",
        '[CALL: f({"key": "value"})]',
    ]


def test_a_value_that_was_perhaps_never_closed_is_not_shown_as_one():
    told = feedback(problem('[CALL: f({"n": 1, "a": "x, "b": "y"})]'))
    assert '[CALL: f({"n": 1})]' in told
    told = feedback(problem('[CALL: f(a="x", n=1 "b")]'))
    assert '"a": "x"' in told


@pytest.mark.parametrize(
    "value",
    [
        *(r'"x\n" + "y"', '"x" % k', '"x" | upper', "[1] + [2]", '"x".join("y")', "1 + 2"),
        *('"one" or so', '"one" {two}', '"one", "two"', r'"\"a\" b"c"', r'"x\n"y'),
    ],
)
def test_a_value_that_may_go_on_is_not_shown_as_one(value):
    """The model would write its first part again, and that alone."""
    assert '[CALL: f({"n": 1})]' in lines(f'[CALL: f({{"n": 1, "a": {value}, "b": 2}})]')


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ('[CALL: f({"a": "x"] y})]', None),  # the quote may be one that stands in a string
        ('[CALL: f({"a": "x "] y})]', None),
        ('[CALL: f({"a": "é\\n"] y})]', None),
        ("[CALL: f(a='x\"y'] z)]", None),
        ("[CALL: f(a=“x”] z)]", {"a": "x"}),
        ('[CALL: f({"a": 1, "b")]', None),
        ('[CALL: f({"a": "b", "c": "d", "to: x"})]', {"a": "b"}),
        ("[CALL: f(a=1)a)]", None),
        ('[CALL: f({"a": 1}, 2)]', None),
        ("[CALL: f(a='x' | b='y')]", None),
        ('[CALL: f({"a": 1}<)]', {"a": 1}),
        ('[CALL: f({"a": 1}>)]', {"a": 1}),
        ('[CALL: f({"a": [1]], "b": 2})]', {"a": [1]}),
        ('[Calling tool="f" k="v" [Calling tool="g" k="w"]', {"k": "v"}),
    ],
)
def test_the_form_has_the_arguments_that_certainly_end(text, known):
    problem = parse(text, dialects=dialects()).problems[0]
    told = feedback(problem, "call").splitlines()
    assert f"[CALL: f({json.dumps(known or {'key': 'value'})})]" in told


def test_a_value_before_a_key_is_shown_whatever_stands_behind_the_key():
    assert '[CALL: f({"n": "1"})]' in lines('[CALL: f({"n": "1", "a" is 2})]')


def test_a_value_behind_which_the_text_ends_is_shown():
    assert '[CALL: f({"n": 1, "a": "x"})]' in lines('[CALL: f({"n": 1, "a": "x"')
    assert '[CALL: f({"n": 1, "a": "x"})]' in lines('[CALL: f(n=1, a="x"\n ', tolerance="strict")


def test_a_language_of_ones_own(tmp_path):
    source = files("callmark.languages").joinpath("en.toml").read_text(encoding="utf-8")
    path = tmp_path / "nb.toml"
    translated = source.replace("Write the whole call again", "Skriv hele kallet på nytt {med hell}")
    path.write_text(f'{translated}[expected]\n"or" = "eller"\n', encoding="utf-8")
    norwegian = load_language(path)
    told = feedback(problem('[CALL: f({"a": 1 x})]'), "call", norwegian)
    assert "Skriv hele kallet på nytt {med hell}" in told
    assert " eller " in told


def test_words_in_quotes_stand_for_themselves():
    assert _translated('a value or "a key"', language_of("zh-Hans").expected) == '一个值 或 "a key"'
    assert _translated("""'"' or a number""", language_of("zh-Hant").expected) == """'"' 或 一個數字"""
    assert _translated("a valued or", language_of("zh-Hans").expected) == "a valued 或"


# Forms, and what was begun.


@each_dialect
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"city": "Oslo", "days": 2},
        {"list": [1, {"a": True, "b": [None, "x"]}], "far": False, "none": None, "ratio": 1.5},
        {"text": 'it\'s "q" \\d ]] > & 你好'},
    ],
    ids=["none", "flat", "nested", "signs"],
)
def test_a_form_reads_as_the_call(dialect, arguments):
    form = correct_form(dialect, "look", arguments)
    assert form != dialect.title
    (call,) = parse(form, dialects=dialect, tolerance="strict").calls
    assert (call.name, call.arguments, call.repairs) == ("look", arguments, ())


def test_a_form_that_would_not_read_so_is_one_of_another_call():
    assert correct_form(NAMED["gemma4"], "f", {"a": '<|"|>'}) == correct_form(NAMED["gemma4"], None, {})
    assert '\n"1"\n' in correct_form(NAMED["qwen_xml"], "f", {"a": "1"})
    assert correct_form(NAMED["call"], "not a name", {}) == '[CALL: name({"key": "value"})]'
    hermes = NAMED["hermes"]
    own = Dialect(name="own", title="TITLE", models="m", source="s", forms=hermes.forms, grammar="hermes.lark")
    assert correct_form(own, "f", {}) == "TITLE"  # it has no templates


def test_the_end_of_a_cdata_section_is_escaped():
    form = correct_form(NAMED["toolify"], "f", {"a": "x]]>y"})
    assert parse(form).calls[0].arguments == {"a": "x]]>y"}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1, "b" 2}}]', '[TOOL_CALLS]f[ARGS]{"a": 1}'),
        ("<|tool_call_start|>[f(a=1, b=)]<|tool_call_end|>", "<|tool_call_start|>[f(a=1)]<|tool_call_end|>"),
        ('<|tools_prefix|>[{"f": {"a": 1, "b" 2}}]', '<|tools_prefix|>[{"f": {"a": 1}}]<|tools_suffix|>'),
    ],
)
def test_a_call_that_never_stands_alone_is_read_again_in_its_section(text, form):
    assert form in lines(text)


def test_endings():
    assert ending(NAMED["call"]) == ")]"
    assert ending(NAMED["react"]) == ""
    assert ending(NAMED["qwen_xml"]) is None
    assert ending(Dialect(name="own", title="t", models="m", source="s", forms=NAMED["call"].forms)) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("[CALL: f(", ("f", {}, "")),
        ('[CALL: f({"a": 1, "b": {"c": [2', ("f", {"a": 1}, "]}}")),
        ('[CALL: f({"a": "x\\"y", "b": "\\\\", "c', ("f", {"a": 'x"y', "b": "\\"}, '"}')),
        ('[CALL: f({"a": 1})', ("f", {"a": 1}, "")),
        ('[CALL: f({"a": {"b": "x"}', ("f", {"a": {"b": "x"}}, "}")),
        ('[CALL: f({"a": "x"', ("f", {"a": "x"}, "}")),
        ('[CALL: f({"a": ["x"', ("f", {}, "]}")),
        ('[CALL: f({"a": 12', ("f", {}, "}")),
        ('[CALL: f(["a", "b', ("f", {}, '"]')),
        ("[CALL: f(a=1, b=2, a=3, c=", ("f", {"b": 2}, "}")),
        ('<tool_call>{"arguments":', (None, {}, "")),
    ],
)
def test_what_was_begun(raw, expected):
    dialect = NAMED["hermes" if raw.startswith("<") else "call"]
    assert begun(raw, dialect) == expected


# Messages.


def test_the_parts_of_a_message_are_those_it_was_made_of():
    message = explain(NAMED["call"], "[CALL: f(])", 9, "unexpected-text", "a value", "]", with_grammar=False)
    assert message_parts(message) == ("a value", "]", 9, False)
    assert message_parts(MALFORMED_CODES["duplicate-key"]) is None


@pytest.mark.parametrize(
    ("name", "tool", "near"), [("forcast", "forecast", "forecast"), ("it's", "it's a", "it's a"), ("天气", "f", "")]
)
def test_the_names_in_the_message_of_an_unknown_tool(name, tool, near):
    (call, notice) = parse(f'<tool_call>{{"name": "{name}"}}</tool_call>', tools=[tool]).events[-2:]
    assert (call.name, notice.code) == (name, "unknown-tool")
    assert unknown_tool(notice.message) == (name, near)
    assert unknown_tool("something else") == ("", "")


def test_no_end_of_a_nonce_is_quoted_from_a_cut_call():
    for size in range(TAIL):
        text = f'[CALL#secret-7f3a: f({{"a": "{"x" * size}'
        told = feedback(parse(text, nonce="secret-7f3a").problems[0], nonce="secret-7f3a")
        assert "x" * size in told
        assert "f3a" not in told


@pytest.mark.parametrize("broken", ['[CALL#7f3a: save({"a" 1})]', '[CALL#7f3a: save({"a": "b', "[CALL: save()]"])
@each_language
def test_where_calls_carry_a_nonce_every_form_has_a_place_for_it(broken, language):
    told = feedback(problem(broken, nonce="7f3a"), "call", language, nonce="7f3a")
    if "7f3a" in broken:  # the marker itself tells it
        assert told == feedback(problem(broken, nonce="7f3a"), "call", language)
    assert "7f3a" not in told
    assert PHRASES[language]["code"].replace("{code}", "****") in told.split("\n")
    assert parse(told, nonce="7f3a").calls == ()
    assert len(parse(told.replace("****", "7f3a").replace(broken, ""), nonce="7f3a").calls) == 1
    assert ('\n"})]\n' in told) is broken.endswith('"b')


def test_a_nonce_is_quoted_nowhere_not_even_half():
    for broken in ('[CALL#7f3a: f({"7f3a" 1})]', '[CALL#7f3a: f({"a": "7f3a" 7f3a})]', "[CALL#7f3a: f({'a': '7f3a"):
        (found,) = parse(broken, nonce="7f3a").problems
        for nonce in ("7f3a", None):  # the marker itself tells it
            assert "7f3" not in feedback(found, nonce=nonce).replace("***", "")
        assert "Put the code that your calls carry in the place of `****`." in feedback(found)
    (other,) = parse('[CALL: f({"a": "#b" 1})]').problems
    assert '"#b"' in feedback(other)
    longer = "0123456789abcdef"
    (cut,) = parse(f'[CALL#{longer}: f({{"a" 1}})]', nonce=longer).problems
    assert not any(longer[n : n + 3] in feedback(cut, nonce=longer) for n in range(14))  # 20 characters are quoted


@each_language
def test_a_native_call_that_is_broken_is_told_without_a_form(language):
    broken = Malformed(Span(3, 3), "", "bad-arguments", "expected a tool call", 0, "save", "openai")
    phrases = PHRASES[language]
    told = [phrases["broken"].format(name="save"), phrases["bad-arguments"], phrases["anew"]]
    assert feedback(broken, "call", language).split("\n") == told


@pytest.mark.parametrize("language", ["zh-Hans", "zh-Hant"])
def test_what_readers_expect_is_said_in_chinese(language):
    for text in (
        '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
        '[CALL: f("x", "y")]',
        '[CALL: f({"a": x y})]',
    ):
        said = feedback(parse(text).problems[0], language=language)
        place = next(line for line in said.split("\n") if "⟦" in line).partition("：")[0]
        assert not re.search("[A-Za-z]{2}", re.sub("`[^`]*`|JSON", "", place)), place


def test_a_whole_word_is_marked():
    said = feedback(parse('[CALL: f({"a": sea side})]').problems[0])
    assert "found `sea`, where ⟦ ⟧ stand: " in said
    assert "⟦sea⟧ side" in said


def test_what_stands_in_the_place_of_a_name_is_told():
    (broken,) = parse("<tool_call><function=get weather><parameter=city>Oslo</parameter></function>").problems
    told = "found `get weather`, where ⟦ ⟧ stand: <function=⟦get weather⟧><parameter=city>Osl"
    assert told in feedback(broken)
    assert "⟧ 处应为工具名称，实际是 `get weather`" in feedback(broken, language="zh-Hans")
    told = lines('<tool_call>{"name": "f", "name": "g", "arguments": {}}</tool_call>')[1]
    assert "Expected one name and one member with arguments, found `:`, where ⟦ ⟧ stand: " in told


def test_what_is_found_is_the_text_of_the_model_where_it_has_the_words_of_a_message():
    assert "实际是 `and`" in lines('[CALL: f({"a": 1 and})]', language="zh-Hans")[1]
    assert 'found "`", where' in lines('[CALL: f({"a": `})]')[1]


def test_a_problem_whose_words_are_not_ours_is_told_without_a_place():
    """Clients hand problems back over the wire, and may have shortened them."""
    (problem,) = parse('[CALL: f({"a" 1})]').problems
    assert "⟦" in feedback(problem)
    for changed in ({"message": "oh"}, {"raw": "[CALL"}):
        assert "⟦" not in feedback(msgspec.structs.replace(problem, **changed))


@pytest.mark.parametrize("text", ['[CALL: f({"a": "\ud800y"})]', '[CALL: f({"b": "\udc00', "[CALL: f(\ud800)]"])
def test_what_is_told_can_be_sent(text):
    """Half of a character that the model's text holds is shown as an escape."""
    (problem,) = parse(text).problems
    assert "\\ud800" in feedback(problem) or "\\udc00" in feedback(problem)
    feedback(problem).encode()
    problem.message.encode()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[CALL: f({"a": 1})  and', "f({\"a\": 1}) … ⟦a⟧"),
        ('[CALL: f({"t": "never closed})] x [CALL: g()] and "so" on', "ever closed})] x … ⟦s⟧"),
        ('[CALL: f({"a": "x", "b": 007, "c": 1})]', ': "x", "b": ⟦007⟧, "c": 1})]'),
        ('[CALL: f({"a": "x", "b": , "c": 1})]', '({"a": "x", "b": ⟦,⟧ "c": 1})]'),
    ],
)
def test_what_is_wrong_is_shown_where_it_stands(text, told):
    """Behind the marker's end there may be more than is known here."""
    problem = parse(text).problems[0]
    assert told in feedback(problem)
    assert text[problem.span.start + message_parts(problem.message).at] == message_parts(problem.message).found[0]


@pytest.mark.parametrize("wrong", ["007", "nan", "1e999", ""])
def test_a_value_that_is_wrong_is_not_taught(wrong):
    """A preview shows it as something: that is no argument that could be read."""
    (problem,) = parse(f'[CALL: f({{"a": "x", "b": {wrong}, "c": "y"}})]').problems
    assert '[CALL: f({"a": "x"})]' in feedback(problem).splitlines()


def test_a_broken_call_of_a_list_that_begins_with_nothing_is_passed() -> None:
    """What could be read of one call of a list is looked for without the list, and that look comes to its end."""
    text = r'<tool_calls>[{\name\: \g", "arguments": {}}, {"name": "h"}]</tool_calls>'
    broken = callmark.parse(text).problems[0]
    assert "could not be read" in callmark.feedback(broken, "listed")


def test_a_name_in_any_script_makes_no_patterns_anew():
    made = []
    for letter in "abc主题名字":
        assert '<|tool_call_start|>[' in "\n".join(lines(f'<|tool_call_start|>[a(x=1), {letter}f(city="Oslo", b='))
        made.append(patterns.cache_info().misses)
    assert len(set(made[1:])) == 1
