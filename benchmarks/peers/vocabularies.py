"""Stand-ins for the tokenizers of models, whose vocabularies would have to be downloaded. Standard library only.

Each knows the marker tokens of one parser's models and no others: vLLM's parsers go by what the vocabulary holds
(`[ARGS]` there means that calls are not in a list), and those with a lexer look for every special token, to drop it.
What stands between markers in a chunk is taken for one token, whose id is given when it is first seen.
"""

from __future__ import annotations

import re
from typing import Any

_THINK = ("<think>", "</think>")
_HERMES = (*_THINK, "<tool_call>", "</tool_call>")
_GLM = (*_HERMES, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
_DEEPSEEK = (
    *_THINK, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
)  # fmt: skip
_KIMI = (
    *_THINK, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
)  # fmt: skip
_GEMMA = (
    "<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>", "<|tool_response>", "<tool_response|>",
)  # fmt: skip

# The markers that are tokens of their own, by the name of vLLM's parser; what stands behind a blank tells its models.
MARKERS: dict[str, tuple[str, ...]] = {
    "hermes": _HERMES,
    "qwen3_coder": _HERMES,
    "glm45": _GLM,
    "glm47": _GLM,
    "mistral": ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"),
    "mistral (before v11)": ("[TOOL_CALLS]",),
    "llama3_json": ("<|python_tag|>",),
    "llama4_pythonic": ("<|python_start|>", "<|python_end|>"),
    "pythonic": (),
    "lfm2": ("<|tool_call_start|>", "<|tool_call_end|>"),
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v31": _DEEPSEEK,
    "deepseek_v32": _THINK,
    "deepseek_v4": _THINK,
    "deepseek_v41": _THINK,
    "kimi_k2": _KIMI,
    "kimi_k3": _THINK,
    "gemma4": _GEMMA,
}
# The special tokens of Qwen's models: others have about as many.
_CONTROL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
_FIRST_MARKER = 100
_FIRST_OTHER = 10_000  # the first id of what is no marker


class Tokenizer:
    """As much of a tokenizer as the parsers ask for. Reasoning tags are tokens, but none that a reader skips."""

    is_fast = True
    vocab_size = 1000

    def __init__(self, markers: tuple[str, ...]) -> None:
        known = dict.fromkeys((*_CONTROL, *markers))
        self.ids = {token: _FIRST_MARKER + place for place, token in enumerate(known)}
        self.texts = {number: token for token, number in self.ids.items()}
        self.vocabulary = {"x": 1, **self.ids}
        self.all_special_tokens = [token for token in known if token not in _THINK]
        self.all_special_ids = [self.ids[token] for token in self.all_special_tokens]
        self.seen: dict[str, list[int]] = {}  # the ids of chunks
        self._at_tokens = re.compile("(" + "|".join(map(re.escape, sorted(known, key=len, reverse=True))) + ")")

    def get_vocab(self) -> dict[str, int]:
        return self.vocabulary

    def encode(self, text: str, **named: Any) -> list[int]:
        """Return the ids of a text."""
        return [self._id(piece) for piece in self.tokenize(text)]

    def _id(self, piece: str) -> int:
        number = self.ids.get(piece)
        if number is None:
            number = self.ids[piece] = _FIRST_OTHER + len(self.ids)
            self.texts[number] = piece
        return number

    def tokenize(self, text: str, **named: Any) -> list[str]:
        return [piece for piece in self._at_tokens.split(text) if piece]

    def convert_tokens_to_ids(self, token: str) -> int | None:
        return self.vocabulary.get(token)

    def decode(self, ids: Any, **named: Any) -> str:
        numbers = [ids] if isinstance(ids, int) else ids
        return "".join(self.texts.get(number, "") for number in numbers)
