"""The engines that constrain models, as functions: does a grammar accept a text, and what does it let a model write."""

from __future__ import annotations

from functools import cache
from random import Random

from llguidance import LLMatcher, LLTokenizer
from outlines_core import Guide, Index, Vocabulary

TOKENIZER = LLTokenizer("byte")  # a vocabulary of the 256 bytes


def matcher(lark: str) -> LLMatcher:
    made = LLMatcher(TOKENIZER, LLMatcher.grammar_from_lark(lark), log_level=0)
    assert not made.is_error(), made.get_error()
    return made


@cache
def _fresh(lark: str) -> LLMatcher:
    return matcher(lark)


def llguidance_accepts(lark: str, text: str) -> bool:
    """Whether llguidance takes the text as a whole."""
    made = _fresh(lark).deep_copy()
    tokens = TOKENIZER.tokenize_bytes(text.encode())
    return made.try_consume_tokens(tokens) == len(tokens) and made.is_accepting()


def llguidance_writes(lark: str, seed: int, most: int = 400) -> str | None:
    """Return what a model of no sense writes under the grammar; None where it is not done after `most` bytes.

    It prefers letters and brackets, and ends as soon as it may with one chance in four.
    """
    random = Random(seed)
    made = _fresh(lark).deep_copy()
    written = bytearray()
    while len(written) < most:
        if made.is_accepting() and random.random() < 0.25:
            return written.decode()
        mask = made.compute_logit_bias()
        allowed = [byte for byte in range(256) if mask[byte]]
        if not allowed:
            return written.decode()
        plain = [byte for byte in allowed if byte in b'ab1 ,:"}])>\n' or len(allowed) < 8]
        byte = random.choice(plain if plain and random.random() < 0.9 else allowed)
        assert made.consume_token(byte)
        written.append(byte)
    return None


def outlines_accepts(pattern: str, text: str) -> bool:
    """Whether outlines-core's automaton of a regex takes the text as a whole, byte by byte."""
    guide = Guide(_index(pattern))
    for byte in text.encode():
        if byte + 1 not in guide.get_tokens():
            return False
        guide.advance(byte + 1)
    return 0 in guide.get_tokens() or guide.is_finished()


@cache
def _index(pattern: str) -> Index:
    return Index(pattern, Vocabulary(0, {bytes([byte]): [byte + 1] for byte in range(128)}))
