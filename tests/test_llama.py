"""Our GBNF in llama.cpp's own server: what a model without sense writes under it is read strictly while it streams."""

from __future__ import annotations

import platform
import sys

import jsonschema
import pytest

from callmark import Call, Malformed, Parser, export_grammar
from test_export import EVERYWHERE, NAMES, SCHEMAS, TOOLS

if (sys.platform, platform.machine()) != ("linux", "x86_64"):  # there `dev` holds it, and not having it is an error
    pytest.skip("NOT TRIED: llama.cpp comes as a wheel for Linux on x86-64 only", allow_module_level=True)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    from llama import Llama, make_model

    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    make_model(path)
    return Llama(path)


def read(llama, grammar, dialect, seed, most=300):
    """Return the calls that were read from a stream, None where it was cut off before its end, or in a character.

    The server writes U+FFFD for each byte of a character that its end cuts, so that lengths are not to be held to it.
    """
    parser = Parser(dialects=dialect, tools=TOOLS, tolerance="strict", contexts=EVERYWHERE)
    events = []
    ended = ""
    text = ""
    for piece, why in llama.stream(grammar, seed, most):
        text += piece
        events += parser.feed(piece)
        ended = why
    events += parser.finish()
    if ended != "eos" or "\ufffd" in text:
        return None
    assert [event for event in events if isinstance(event, Malformed)] == [], text
    return [event for event in events if isinstance(event, Call)]


@pytest.mark.parametrize("dialect", NAMES)
def test_what_llama_cpp_writes_under_our_grammar_is_read(llama, dialect):
    for parallel, seeds in ((False, 20), (True, 2)):
        grammar = export_grammar(
            TOOLS, dialect, "gbnf", tool_choice="required", free_text=False, parallel=parallel
        ).text
        streams = [read(llama, grammar, dialect, seed) for seed in range(seeds)]
        streams = [calls for calls in streams if calls is not None]
        assert parallel or len(streams) >= seeds // 4
        for calls in streams:
            assert len(calls) == 1 if not parallel else calls
            for call in calls:
                assert list(jsonschema.Draft202012Validator(SCHEMAS[call.name]).iter_errors(call.arguments)) == []


@pytest.mark.parametrize("dialect", NAMES)
def test_free_text_around_calls_holds_no_others(llama, dialect):
    for choice in ("auto", "none"):
        grammar = export_grammar(TOOLS, dialect, "gbnf", tool_choice=choice).text
        for seed in range(2):
            for call in read(llama, grammar, dialect, seed, most=150) or ():
                assert choice == "auto"
                assert call.name in SCHEMAS


def test_a_broken_grammar_is_refused(llama):
    with pytest.raises(AssertionError, match="failed to parse grammar"):
        list(llama.stream("root ::= nowhere", 0))
