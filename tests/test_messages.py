"""A prompt is merged where it is wanted, once, and what was there stays."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark import Prompt, UsageError, merge_into_messages, protocol_prompt
from callmark.writing.messages import PLACES

TOOLS = {"look": {"properties": {"at": {"type": "string"}}, "required": ["at"]}}
PROMPT = protocol_prompt(TOOLS)
OTHER = protocol_prompt({"turn": None, "jump": None}, style="compact")
PLAIN = Prompt("Call f </tool-protocol> now.", (), "Remember.", (), "compact", 3)
CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "What?"}]},
]

contents = st.sampled_from(["", "a", "a\n\nb", "Say <tool-protocol>\n", None]) | st.lists(
    st.sampled_from([{"type": "text", "text": "t"}, {"type": "text", "text": ""}, {"type": "image"}, "odd"]), max_size=2
)
chats = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool"]), "content": contents}
    ),
    max_size=6,
)  # fmt: skip


@given(chats, st.sampled_from(["Go", ""]), st.sampled_from(PLACES), st.sampled_from(PLACES), st.integers(0, 5))
def test_a_second_merge_replaces_the_first(chat, last, first, second, depth):
    chat = [*chat, {"role": "user", "content": last}]
    before = copy.deepcopy(chat)
    once = merge_into_messages(chat, PROMPT, first, depth=depth)
    assert chat == before
    assert merge_into_messages(once, PROMPT, first, depth=depth) == once
    again = merge_into_messages(once, OTHER, second, depth=depth)
    assert again == merge_into_messages(chat, OTHER, second, depth=depth)
    texts = str(again)
    assert "look(" not in texts
    assert texts.count("</tool-protocol>") == 1 + (second == "both")


def test_system_comes_behind_the_leading_messages():
    merged = merge_into_messages(CHAT, PROMPT)
    assert merged[:2] == CHAT[:2]
    assert merged[2]["role"] == "developer"  # OpenAI: not both in one request, but for a caller who has both
    assert PROMPT.text in merged[2]["content"]
    assert tuple(merged[3:9]) == PROMPT.turns
    assert merged[9:] == CHAT[2:]
    assert merge_into_messages([], PLAIN)[0]["content"] == (
        "<tool-protocol>\nCall f <\\/tool-protocol> now.\n</tool-protocol>"
    )


@pytest.mark.parametrize("where", ["system", "depth", "both"])
@pytest.mark.parametrize(("leading", "role"), [("system", "system"), ("developer", "developer"), (None, "system")])
def test_a_message_of_its_own_has_the_role_of_the_leading_ones(where, leading, role):
    chat = [*([{"role": leading, "content": "Be kind."}] if leading else []), *CHAT[2:]]
    merged = merge_into_messages(chat, PLAIN, where, depth=1)
    own = next(message for message in merged if "Call f" in str(message["content"]))
    assert own["role"] == role


def test_depth_parts_no_call_from_its_result():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "c2"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
    ]
    for depth, at in ((0, 4), (1, 1), (2, 1), (3, 1), (4, 0)):
        merged = merge_into_messages(chat, PLAIN, "depth", depth=depth)
        assert "Call f" in merged[at]["content"]
        assert [*merged[:at], *merged[at + 1 :]] == chat


def test_merged_goes_into_the_last_leading_message():
    merged = merge_into_messages(CHAT, PLAIN, "merged")
    assert len(merged) == len(CHAT)
    assert merged[0] == CHAT[0]
    assert merged[1]["role"] == "developer"
    assert [part["text"][:15] for part in merged[1]["content"]] == ["Be brief.", "<tool-protocol>"]
    one = merge_into_messages([CHAT[0], CHAT[2]], PLAIN, "merged")
    assert one[0]["content"].startswith("Be kind.\n\n<tool-protocol>\n")
    assert merge_into_messages(CHAT[2:], PLAIN, "merged")[0]["role"] == "system"


def test_user_goes_before_the_text_of_the_last_user_message():
    merged = merge_into_messages(CHAT, PLAIN, "user")
    assert [part["type"] for part in merged[-1]["content"]] == ["text", "image_url", "text"]
    assert merge_into_messages(CHAT[:3], PLAIN, "user")[-1]["content"].endswith("</tool-protocol>\n\nHi")


def test_a_prompt_is_replaced_in_a_text_that_became_a_part():
    said = merge_into_messages(CHAT[:3], PROMPT, "user")[-1]["content"]
    parts = [{"type": "text", "text": said}, {"type": "image"}]
    (message,) = merge_into_messages([{"role": "user", "content": parts}], PLAIN, "user")
    assert message["content"] == [
        {"type": "text", "text": merge_into_messages(CHAT[2:3], PLAIN, "user")[0]["content"].removesuffix("\n\nHi")},
        {"type": "text", "text": "Hi"},
        {"type": "image"},
    ]


def test_a_prompt_is_all_there_is_where_nothing_was_said():
    for chat in ([], CHAT[:1]):
        once = merge_into_messages(chat, PROMPT)
        assert merge_into_messages(once, PROMPT) == once
        assert merge_into_messages(once, PLAIN) == merge_into_messages(chat, PLAIN)
    (message,) = merge_into_messages([{"role": "user", "content": ""}], PLAIN, "user")
    assert message["content"].endswith("</tool-protocol>")


def test_all_that_a_host_copied_of_a_prompt_is_replaced():
    ours = merge_into_messages([], PROMPT)[0]["content"]
    chat = [{"role": "system", "content": f"A\n\n{ours}\n\nB\n\n{ours}\n\nC"}]
    assert merge_into_messages(chat, PLAIN)[0]["content"] == "ABC"


def test_depth_counts_from_the_end():
    merged = merge_into_messages(CHAT, PLAIN, "depth", depth=1)
    assert "Call f" in merged[-2]["content"]
    assert "Call f" in merge_into_messages(CHAT, PLAIN, "depth", depth=99)[2]["content"]
    assert "Call f" in merge_into_messages(CHAT, PLAIN, "depth", depth=0)[-1]["content"]
    with_turns = merge_into_messages(CHAT, PROMPT, "depth", depth=99)
    assert tuple(with_turns[3:9]) == PROMPT.turns


def test_both_reminds_near_the_end():
    merged = merge_into_messages(CHAT, PLAIN, "both")
    assert "Call f" in merged[2]["content"]
    assert merged[-1]["content"][-1]["text"] == "<tool-protocol>\nRemember.\n</tool-protocol>"


def test_turns_that_were_cut_off_are_no_problem():
    merged = merge_into_messages(CHAT, PROMPT)
    shorter = [*merged[:3], *merged[6:]]
    again = merge_into_messages(shorter, PLAIN)
    assert "look(" not in again[2]["content"]
    assert again[3:] == merged[6:]


def test_what_a_user_or_the_model_said_of_our_tags_stays():
    chat = [
        {"role": "user", "content": "What is <tool-protocol>\nx\n</tool-protocol> for?"},
        {"role": "assistant", "content": "<tool-protocol>\nx\n</tool-protocol>"},
        {"role": "tool", "content": [{"type": "text", "text": "<tool-protocol>\nx\n</tool-protocol>"}]},
    ]
    for where in PLACES:
        merged = merge_into_messages(chat, PLAIN, where)
        assert merged[-2:] == chat[1:]
        assert chat[0]["content"] in merged[-3]["content"]
        assert merge_into_messages(merged, PLAIN, where) == merged


def test_misuse_raises():
    for messages in ([7], "abc", {"role": "user"}, [{"content": "x"}]):
        with pytest.raises(UsageError, match="messages: expected dicts with a role, found"):
            merge_into_messages(messages, PLAIN)
    with pytest.raises(UsageError, match="messages: expected content that is text or a list of parts"):
        merge_into_messages([{"role": "user", "content": 7}], PLAIN)
    with pytest.raises(UsageError, match="where: expected one of system, merged"):
        merge_into_messages(CHAT, PLAIN, "nowhere")
    with pytest.raises(UsageError, match="depth: expected 0 or more messages, found -1"):
        merge_into_messages(CHAT, PLAIN, "depth", depth=-1)
    with pytest.raises(UsageError, match="depth: expected 0 or more messages, found 'x'"):
        merge_into_messages(CHAT, PLAIN, "depth", depth="x")
    with pytest.raises(UsageError, match="prompt: expected what protocol_prompt gives, found str"):
        merge_into_messages(CHAT, "Call f.")
    with pytest.raises(UsageError, match="messages: expected a list of them, found NoneType"):
        merge_into_messages(None, PLAIN)
    with pytest.raises(UsageError, match="where='user': expected a user message, found none"):
        merge_into_messages(CHAT[:2], PLAIN, "user")
