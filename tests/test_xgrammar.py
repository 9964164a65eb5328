"""Our EBNF and structural tags in XGrammar's real engine: what it accepts is what strict reading reads."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from callmark import WrittenCall, dialects, export_grammar, render_calls
from strategies import mutated
from test_export import (
    CALLS,
    NAMES,
    PROPERTIES,
    SCHEMAS,
    TOOLS,
    calls_in,
    check,
    check_property,
    prose,
    some_calls,
)

pytestmark = pytest.mark.parts
ROWS = {row.name: row for row in dialects()}
TAGGED = [name for name in NAMES if name not in ("fenced", "llama", "react")]  # of which a tag holds the same EBNF
each_target = pytest.mark.parametrize(
    ("dialect", "target"), [(name, "xgrammar") for name in NAMES] + [(name, "structural-tag") for name in TAGGED]
)


@pytest.fixture(scope="module")
def engine():
    import xgrammar_engine

    return xgrammar_engine


@each_target
def test_calls_of_ours_are_accepted(engine, dialect, target):
    begins_a_line = ROWS[dialect].forms[ROWS[dialect].writing.form].line_start

    @settings(max_examples=8)
    @given(calls=some_calls, before=prose, after=prose)
    def check_some(calls, before, after):
        if begins_a_line and before and not before.endswith("\n"):
            before += "\n"
        text = render_calls(calls, dialect)
        assert engine.accepts(export_grammar(TOOLS, dialect, target).text, before + text + "\n" + after)
        required = export_grammar(TOOLS, dialect, target, free_text=False, tool_choice="required").text
        assert engine.accepts(required, text)
        for wrong in ("x" + text, text[:-1], ""):
            assert not engine.accepts(required, wrong), wrong
        single = export_grammar(TOOLS, dialect, target, parallel=False).text
        assert engine.accepts(single, before + text) == (len(calls) == 1)
        optional = export_grammar(TOOLS, dialect, target, free_text=False).text
        assert engine.accepts(optional, "")
        assert engine.accepts(optional, text)
        none = export_grammar(TOOLS, dialect, target, tool_choice="none").text
        assert engine.accepts(none, before + "\n" + after)
        assert not engine.accepts(none, before + text + after)

    check_some()


@each_target
def test_what_strict_reading_rejects_is_refused(engine, dialect, target):
    @settings(max_examples=25)
    @given(text=mutated(some_calls.map(lambda calls: render_calls(calls, dialect)), most=2))
    def check_one(text):
        if re.search("[\ud800-\udfff]", text):
            return
        grammar = export_grammar(TOOLS, dialect, target, tool_choice="required", free_text=False).text
        if engine.accepts(grammar, text):
            check(calls_in(text, dialect), SCHEMAS, least=1)

    check_one()


@each_target
def test_what_the_engine_lets_a_model_write_is_read(engine, dialect, target):
    for choice in ("required", "get_weather"):
        grammar = export_grammar(TOOLS, dialect, target, tool_choice=choice, free_text=False).text
        written = [text for seed in range(10) for text in [engine.writes(grammar, seed)] if text is not None]
        assert len(written) > 2
        for text in written:
            calls = calls_in(text, dialect)
            check(calls, SCHEMAS, least=1, most=1 if choice == "get_weather" else 64)
            assert choice != "get_weather" or calls[0][0] == choice


@each_target
def test_schemas_that_hold_much(engine, dialect, target):
    for schema, good, bad in PROPERTIES:
        check_property(dialect, target, engine.accepts, schema, good, bad)


@each_target
def test_half_a_surrogate_pair_is_no_character(engine, dialect, target):
    """What a model writes byte by byte is UTF-8."""
    tools = {"f": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}
    grammar = export_grammar(tools, dialect, target, free_text=False, tool_choice="f").text
    free = export_grammar(tools, dialect, "xgrammar").text  # a structural tag's is the engine's own
    before, behind = render_calls([WrittenCall("f", {"a": "@@"})], dialect).encode().split(b"@@")
    for char in ("é", "\ud7ff", "\ue000", "😀"):
        assert engine.accepts(grammar, before + char.encode() + behind)
        assert engine.accepts(free, char.encode())
    for half in ("\ud800", "\udbff", "\udc00", "\udfff"):
        assert not engine.accepts(grammar, before + half.encode("utf-8", "surrogatepass") + behind)
        assert not engine.accepts(free, half.encode("utf-8", "surrogatepass"))


def test_a_nonce_is_wanted(engine):
    for target in ("xgrammar", "structural-tag"):
        grammar = export_grammar(TOOLS, target=target, nonce="7f3a").text
        assert engine.accepts(grammar, "x [CALL#7f3a: stop({})]")
        assert not engine.accepts(grammar, "x [CALL: stop({})]")


@pytest.mark.parametrize("target", ["xgrammar", "structural-tag"])
def test_free_text_does_not_go_on_with_a_call_that_nothing_closes(engine, target):
    shown = render_calls(CALLS[:1], "llama")
    grammar = export_grammar(TOOLS, "llama", target).text
    for behind in ('; {"parameters": {}, "name": "g"}', ";{}", "\n ;\n{"):
        assert not engine.accepts(grammar, shown + behind)
    for behind in (";", "; then {}", " {}", "\n"):
        assert engine.accepts(grammar, shown + behind)


def test_a_grammar_that_is_none_is_refused(engine):
    with pytest.raises(RuntimeError):
        engine.compiled("root ::= nowhere")
