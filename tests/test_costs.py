"""What reading costs, counted and not timed: instructions where Linux counts them, else the steps of Python's bytecode.

Steps do not see what C does, which is most of what a good call takes: they tell growth, and no ratio to a good call.

Tolerance costs good texts nothing that is worth a word, and a call in which every other token must be mended at most 20
times what the same call costs in good spelling, whatever its size: law 7 counts characters, this what is done for them.
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from functools import cache, partial

import pytest
from benchmarks.instructions import counting
from benchmarks.parts import peak
from benchmarks.workloads import SPELLINGS, dense, huge, prose, sparse

from callmark import Call, Parser, parse, render_history
from callmark.dialects import dialects, select
from callmark.dialects.notation import expand
from callmark.dialects.prefixes import literals
from callmark.reading import arguments, closers, patterns
from callmark.reading.lookahead import lookahead
from callmark.reading.parser import _closing_fence
from callmark.running.native import Assembler

COUNT = counting()
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "on", "its", "way", "home"]


def opcodes(read):
    """Return how many steps of bytecode `read` takes."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    gc.disable()  # else what finalizers of other tests do may be counted
    sys._getframe().f_trace_opcodes = True  # Python 3.12 counts none else in the first turn of a process
    sys.settrace(trace)
    try:
        read()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def sees_c():
    """Return whether instructions are counted, and no tracer's own among them."""
    return COUNT is not None and sys.gettrace() is None


def cost(text, **options):
    """Return what reading `text` costs: the least of some turns, after one in which patterns are compiled."""
    read = partial(parse, text, **options)
    read()
    if not sees_c():
        return opcodes(read)
    found = []
    gc.disable()
    try:
        for _ in range(4):
            before = COUNT()
            read()
            found.append(COUNT() - before)
    finally:
        gc.enable()
    return min(found)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_tolerance_costs_good_texts_nothing(spelling):
    named = "pythonic" if spelling == "pythonic" else None
    for make in (sparse, dense):
        text = make(SPELLINGS[spelling], 20_000).text
        strict = cost(text, tolerance="strict", dialects=named)
        assert cost(text, dialects=named) <= 1.15 * strict


def test_tolerance_costs_prose_nothing():
    text = prose(20_000)
    assert cost(text) <= 1.15 * cost(text, tolerance="strict")


def test_a_parser_that_listens_for_named_dialects_is_made_as_soon_as_another():
    made = [partial(Parser, dialects=named) for named in (None, "hermes", ["call", "hermes"], ("call",))]
    _, *named = [make() and opcodes(make) for make in made]
    assert max(named) <= 1.2 * opcodes(made[0])


def of_words(count):
    """Return values of `count` words, each in good JSON and as a model writes it that must be mended at every word."""
    words = (WORDS * (count // len(WORDS) + 1))[:count]
    text = "so " + " ".join(f'"{word}"' if at % 2 else word for at, word in enumerate(words)) + " end"
    yield "inner quotes", json.dumps({"t": text}).replace('\\"', '"'), {"t": text}
    text = " ".join(f"{word}'s" for word in words)
    yield "apostrophes", f"{{'t': '{text}'}}", {"t": text}
    text = "\n".join(f'print("{word}", x["a"])' for word in words)
    yield "code", f'{{"t": "{text}"}}', {"t": text}
    for name, sign in (("line breaks", "\n"), ("control characters", "\x01"), ("backslashes", "\\d")):
        yield name, f'{{"t": "{sign.join(words)}"}}', {"t": sign.join(words)}
    keys = {f"k{at}": word for at, word in enumerate(words)}
    paths = {key: f"C:\\{word}\\users" for key, word in keys.items()}
    yield "paths", json.dumps(paths).replace("\\\\", "\\"), paths
    for name, before, sign, comma, mark in (
        ("single quotes", "'", ": ", ", ", "'"),
        ("curly quotes", "“", ": ", ", ", "”"),
        ("bare keys and values", "", ": ", ", ", ""),
        ("full-width signs", '"', "：", "，", '"'),
        ("commas missing", '"', ": ", "\n", '"'),
        ("two commas", '"', ": ", ",,", '"'),
        ("comments", '"', ": ", ", /* so */ ", '"'),
        ("comments of a line", '"', ": ", ", // so\n", '"'),
        ("equals signs", '"', " = ", ", ", '"'),
    ):
        members = comma.join(f"{before}{key}{mark}{sign}{before}{word}{mark}" for key, word in keys.items())
        yield name, f"{{{members}}}", keys
    yield "literals of Python", f"{{{', '.join(f'{key}: True' for key in keys)}}}", dict.fromkeys(keys, True)
    for name, items in (
        ("items in single quotes", ", ".join(f"'{word}'" for word in words)),
        ("bare items", ", ".join(words)),
        ("commas missing in a list", " ".join(f'"{word}"' for word in words)),
    ):
        yield name, f'{{"t": [{items}]}}', {"t": words}
    yield "commas at ends", '{"t": [' + ", ".join("[1,]" for _ in words) + "]}", {"t": [[1] for _ in words]}
    yield "tuples", '{"t": [' + ", ".join("(1, 2)" for _ in words) + "]}", {"t": [[1, 2] for _ in words]}
    objects = [{"a": word, "b": [1, None]} for word in words]
    yield "objects of Python", str({"t": objects}), {"t": objects}
    yield "a string", json.dumps(json.dumps(keys)), keys
    yield "escaped quotes", json.dumps(keys).replace('"', '\\"'), keys
    yield "entities", json.dumps(keys).replace('"', "&quot;"), keys
    text = "\n".join(words)
    yield "escaped quotes and line breaks", json.dumps(json.dumps({"t": text}))[1:-1], {"t": text}
    yield "an escaped brace", json.dumps(keys)[1:].join(["{{", "}"]), keys
    yield "a comma at the end", json.dumps(keys)[:-1] + ",}", keys


def marker(arguments):
    return f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>'


def of_pairs(count):
    """Return calls of `count` words, as they are mended and in good spelling, that are no envelopes."""
    words = (WORDS * (count // len(WORDS) + 1))[:count]
    for name, sign, quote, comma in (
        ("colons", ": ", '"', ", "),
        ("colons and words", ": ", "", ", "),
        ("full-width commas", "=", '"', "，"),
        ("commas of pairs", "=", '"', ",, "),
        ("triple quotes", "=", '"""', ", "),
    ):
        pairs = (comma.join(f"k{at}{sign}{quote}{word}{quote}" for at, word in enumerate(words)))
        good = ", ".join(f'k{at}="{word}"' for at, word in enumerate(words))
        yield name, f"[CALL: f({pairs})]", f"[CALL: f({good})]"
    tags = [f"<parameter=k{at}>\n{word}\n" for at, word in enumerate(words)]
    around = "<tool_call>\n<function=f>\n{}</function>\n</tool_call>"
    yield "tags", around.format("".join(tags)), around.format("</parameter>\n".join([*tags, ""]))
    keys = {f"k{at}": word for at, word in enumerate(words)}
    good = marker(json.dumps(keys))
    yield "another key", good.replace('"arguments"', '"params"'), good
    yield "a missing brace", good.replace("}}", "}"), good
    yield "doubled braces", good.replace('{"name"', '{{"name"').replace("}}", "}}}"), good


def shapes(count):
    found = {name: (marker(bad), marker(json.dumps(value))) for name, bad, value in of_words(count)}
    return found | {name: (bad, good) for name, bad, good in of_pairs(count)}


@cache
def words_for(name, size):
    """Return of how many words a good call of some `size` characters is."""
    few, some = (len(shapes(count)[name][1]) for count in (10, 20))
    return max(1, round(10 + (size - few) * 10 / (some - few)))


MOST = {"inner quotes": 25, "apostrophes": 55, "code": 45}
"""Where it is more than 20: a character of doubt at every word of a string, for which C takes next to nothing."""


@pytest.mark.parametrize("name", shapes(1))
def test_what_a_repair_costs(name):
    grown = []
    for size in (200, 1000, 4000, 16_000):
        bad, good = shapes(words_for(name, size))[name]
        (mended,), (call,) = parse(bad).calls, parse(good).calls
        assert mended.arguments == call.arguments
        assert mended.repairs
        grown.append(cost(bad))
        if sees_c():
            assert grown[-1] <= MOST.get(name, 20) * cost(good), size
    assert grown[3] <= 4.6 * grown[2], "four times as many repairs"


@pytest.mark.skipif(not sees_c(), reason="instructions are not counted here, and steps do not see what C does")
def test_a_long_call_with_one_repair_costs_no_more_than_20_good_ones():
    text = "\n".join(" ".join(WORDS) for _ in range(80))
    for bad, good in (
        (marker(f'{{"t": {json.dumps(text)},}}'), marker(json.dumps({"t": text}))),
        (marker(f"{{t: {json.dumps(text)}}}"), marker(json.dumps({"t": text}))),
        (marker(json.dumps({"t": text})).replace("}\n</", "\n</"), marker(json.dumps({"t": text}))),
        (f"[CALL: f(t: {json.dumps(text)})]", f"[CALL: f(t={json.dumps(text)})]"),
    ):
        assert parse(bad).calls[0].repairs
        assert cost(bad) <= 20 * cost(good)


def test_counting_bytecode_works_where_instructions_are_not_counted(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "COUNT", None)
    short, long = (cost("[CALL: f(a=1)] " * count) for count in (10, 100))
    assert 5 <= long / short <= 15
    assert Parser().steps == 0


def conversation(turns):
    """Return a conversation in which every turn has a call and its result."""
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "f0", "arguments": '{"a": 1}'}}
        yield {"role": "user", "content": "Well?"}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": f"c{number}", "content": "so"}


def test_a_turn_of_a_conversation_costs_the_same_however_many_there_are_and_however_many_tools():
    schema = {"type": "object", "properties": {key: {"type": "integer"} for key in "abcdefgh"}}
    few, many = ([{"name": f"f{at}", "parameters": schema} for at in range(count)] for count in (1, 20))
    for tools in (few, many):
        render_history(conversation(1), tools=tools)  # what is compiled for them is compiled
    cost = {
        (turns, len(tools)): opcodes(lambda: render_history(conversation(turns), tools=tools))  # noqa: B023
        for turns in (10, 100)
        for tools in (few, many)
    }
    assert cost[100, 1] <= 10.5 * cost[10, 1]
    assert cost[100, 20] - cost[100, 1] <= 1.1 * (cost[10, 20] - cost[10, 1])


@pytest.mark.parametrize("again", [True, False], ids=["name again", "name once"])
@pytest.mark.parametrize(
    ("own_index", "own_id"),
    [(True, "call {}"), (True, "the same"), (True, None), (False, "call {}"), (False, None)],
)
def test_each_of_many_calls_that_a_server_sends_costs_the_same(own_index, own_id, again):
    def steps(count):
        pieces = []
        for place in range(1000, 1000 + count):  # numbers of one length
            at = {"index": place if own_index else 0} | ({"id": own_id.format(place)} if own_id else {})
            pieces.append({**at, "function": {"name": "look", "arguments": '{"at":'}})
            pieces.append({**at, "function": ({"name": "look"} if again else {}) | {"arguments": f" {place}}}"}})
        events = []

        def assemble():
            assembler = Assembler()
            for piece in pieces:
                events.extend(assembler.feed({"choices": [{"delta": {"tool_calls": [piece]}}]}))
            events.extend(assembler.finish())

        taken = opcodes(assemble)
        read = [event.arguments["at"] for event in events if isinstance(event, Call)]
        assert read == [*range(1000, 1000 + count)]
        return taken

    steps(2)  # fills what is remembered
    assert steps(201) - steps(1) <= 10.2 * (steps(21) - steps(1))


@pytest.mark.parametrize("unit", ["<think>``</think>", "``<think>", "<think>`</think>` ", "` <think> ` </think>"])
def test_what_a_thought_says_of_its_tags_is_guarded_in_linear_time(unit):
    def guard(number):
        call = {"type": "function", "id": "c1", "function": {"name": "f", "arguments": "{}"}}
        render_history([{"role": "assistant", "content": f"<think>`{unit * number}", "tool_calls": [call]}])

    guard(1)  # what is compiled is compiled
    assert opcodes(partial(guard, 800)) <= 9 * opcodes(partial(guard, 100))


HEADS = {  # of a call whose value dies of its first characters, with what would end it
    "toolify": ("<function_call><tool>f</tool><args_json>", "</args_json></function_call>"),
    "toolify-more": ("<function_call><tool>f</tool><args_json>{} x", "</args_json></function_call>"),
    "qwen_xml": ("<function=f><parameter=a>\ud800", "</parameter></function>"),
    "invoke": ('<invoke name="f"><parameter name="a">\ud800', "</parameter></invoke>"),
}


@pytest.mark.parametrize("ended", [False, True], ids=["never-ended", "ended-far-away"])
@pytest.mark.parametrize("name", HEADS)
def test_a_value_that_dies_at_once_does_not_cost_the_rest_of_the_text(name, ended, monkeypatch):
    searched = 0
    search = patterns.Stop.search

    def counted(stop, buffer, at):
        nonlocal searched
        found = search(stop, buffer, at)
        searched += (len(buffer) if found is None else found.end()) - at
        return found

    monkeypatch.setattr(patterns.Stop, "search", counted)
    head, end = HEADS[name]
    found = []
    for heads in (400, 1600):
        searched = 0
        parse(head * heads + end * ended)
        found.append(searched)
    assert found[1] <= 4.8 * found[0]


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer takes memory of its own")
@pytest.mark.parametrize("length", [100, 1000])
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_long_call_takes_at_most_four_times_its_text_in_memory(spelling, length):
    text = huge(spelling, 200_000).text
    assert peak(text, length) <= 4 * sys.getsizeof(text)


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer takes memory of its own")
@pytest.mark.parametrize("length", [4, 16, 1000])
@pytest.mark.parametrize(
    "call",
    [
        ('<tool_call>{"arguments": {"a": [', ']}, "name": "f"}</tool_call>'),
        ('<tool_call>{"name": "f", "params": {"a": [', "]}}</tool_call>"),
        ('<tool_call>f<arg_key>arguments</arg_key><arg_value>{"a": [', "]}</arg_value></tool_call>"),
        ("<tool_call>f<arg_key>a</arg_key><arg_value>[", "]</arg_value></tool_call>"),
        ('<tool_call>{"id": "', '", "name": "f", "arguments": {}}</tool_call>'),
        ('<tool_call>{"name": "f", "arguments": {"a": 0.', "}}</tool_call>"),
    ],
    ids=["before the name", "under another key", "perhaps all arguments", "of an unknown type", "an id", "a number"],
)
def test_what_nobody_sees_yet_is_kept_in_few_pieces(call, length):
    begun, ended = call
    items = ("1234567" if begun[-1] in '."' else "[1,22,333],") * 9_000
    parser = Parser(tools={"f": {"properties": {"a": {}}}})
    for char in begun + items[:99]:  # what all parsers share is there, too
        parser.feed(char)
    tracemalloc.start()
    try:
        for start in range(99, len(items), length):
            parser.feed(items[start : start + length])
        assert tracemalloc.get_traced_memory()[0] <= 4 * len(items)
    finally:
        tracemalloc.stop()
    (found,) = (event for event in parser.feed("1" + ended) if isinstance(event, Call))
    assert found.name == "f"


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer takes memory of its own")
@pytest.mark.parametrize("length", [4, 64, 256, 1000])
@pytest.mark.parametrize("text", [prose(100_000), "`" + "x" * 25_000], ids=["prose", "a line without end"])
def test_prose_takes_some_kilobytes_of_memory(text, length):
    assert peak(text, length) <= 16 * 1024


def test_what_ends_a_value_begins_with_a_literal():
    """To which `re` skips: where a look-ahead comes first, a big value takes six times as long."""
    for form in (form for dialect in dialects() for form in (*dialect.forms, *dialect.variants)):
        for pattern in filter(None, (form.value_end, form.loose_value_end, form.unclosed, form.nested)):
            assert all(literals(expand(pattern))), pattern


def test_what_may_end_a_call_is_compiled_once_whatever_brackets_are_open():
    for number in range(3**5):
        opened = "".join(['[', '{"b":', '[{"c":'][number // 3**place % 3] for place in range(5))
        parse(f'[CALL: f({{"a":{opened}1 ]]]]]]]]] x')
    assert closers._tail.cache_info().currsize < 200


@pytest.mark.parametrize("run", ["```", "~~~~"])
def test_what_closes_a_fence_is_compiled_once(run):
    parser = Parser(contexts={"fence": "sole"})
    before = _closing_fence.cache_info()
    for char in f"{run}\n[CALL: f()]   \n   \n  x\n{run}\n" * 20:
        parser.feed(char)
    after = _closing_fence.cache_info()
    assert after.hits > before.hits
    assert after.misses <= before.misses + 1


BROKEN = '<tool_call>{"name": ;'


@pytest.mark.parametrize("broken", ["<tool_call>{", "[TOOL_CALLS]f{", "[CALL: f({"])
def test_what_may_only_begin_a_marker_is_held_behind_a_broken_one_as_in_text(broken):
    def held(before):
        parser = Parser()
        parser.feed(f"{before}<tool")
        return opcodes(partial(parser.feed, "_ca"))

    held("So: ")  # what short texts begin is remembered
    assert held(broken) == held("So: ")


@pytest.mark.parametrize("behind", ["<tool <b ", "<to[CA", " to=functions.f", "`<`[`"])
def test_what_may_begin_behind_a_broken_marker_is_asked_once(behind):
    """Some hundred characters are waited for there, in which the marker's end is looked for at each chunk."""

    def by_characters(text):
        parser = Parser(dialects=["hermes", "pythonic", "harmony"])
        for char in text:
            parser.feed(char)

    plain, signs = (BROKEN + (text * 500)[:500] for text in ("x", behind))
    by_characters(plain + signs)
    assert opcodes(partial(by_characters, signs)) <= 2 * opcodes(partial(by_characters, plain))


@pytest.mark.parametrize(
    ("item", "end"),
    [("x, ", "nan, ]})]"), ("True,", "nan,"), ('"x" ', ""), ('"x" ', "]})]"), ("'x', ", ""), ("'x', ", "nan")],
)
def test_items_that_are_spelled_alike_are_looked_at_together_once(monkeypatch, item, end):
    """Where they cannot be read together, nothing tries that again for the rest of them."""
    runs = lookahead(select("call")[0].forms[0], (), ()).runs
    alike, seen = runs.alike, []

    def counted(buffer, at):
        found = alike(buffer, at)
        seen.append(0 if found is None else found.end() - at)
        return found

    monkeypatch.setattr(runs, "alike", counted)
    text = '[CALL: f({"a": [' + item * 2000 + end
    parse(text, dialects="call")
    assert max(seen) > 1000  # they are tried
    assert sum(seen) < 2 * len(text)


def test_a_word_of_a_pair_is_looked_at_up_to_its_sign(monkeypatch):
    """And not up to where it ends if no sign comes: that may be far behind many other pairs."""
    run, seen = arguments._BARE_RUN, []

    class Counted:
        def match(self, buffer, at, *limit):
            found = run.match(buffer, at, *limit)
            seen.append(0 if found is None else found.end() - at)
            return found

    monkeypatch.setattr(arguments, "_BARE_RUN", Counted())
    for pair in (" b='y'", " b='", " b='yab='"):
        seen.clear()
        parse("[CALL: f(a='x'" + pair * 2000, dialects="call")
        assert len(seen) > 500
        assert max(seen) <= 256


@pytest.mark.parametrize("between", [", ", ",\u00a0 ", ", /**/ "])
def test_what_waits_behind_a_comma_is_not_taken_up_again_and_again(monkeypatch, between):
    """Blanks behind a comma come out when something follows: where only more of them do, they are many."""
    runs = lookahead(select("call")[0].forms[0], (), ()).runs
    read, seen = runs.read, []

    def counted(buffer, *others):
        seen.append(sum(len(one) for one in others if isinstance(one, str)))
        return read(buffer, *others)

    monkeypatch.setattr(runs, "read", counted)
    text = '[CALL: f({"a": 1' + between * 2000 + '"b": 2})]'
    (call,) = parse(text, dialects="call").calls
    assert call.arguments == {"a": 1, "b": 2}
    assert len(seen) >= 2000
    assert sum(seen) < len(text)
