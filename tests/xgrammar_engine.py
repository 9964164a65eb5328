"""XGrammar's real engine over a vocabulary of the 256 bytes.

Its package imports torch and transformers, half a gigabyte, for tensors on accelerators and for tokenizers. The
compiled engine wants neither: it is installed without dependencies (`tests/parts.txt`), and where those two are not
there, what only passes through their names stands in for them.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from random import Random
from types import ModuleType
from typing import Any

import numpy
import tvm_ffi  # noqa: F401  # first: it looks for torch itself

END = 256
_PLAIN = frozenset(b'ab1 ,:"}])>\n')


class _Absent:
    """Whatever is asked of a package that is not there: a base class, a type in an annotation, a value."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


def _of_absent(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent


_ABSENT = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
for _name in _ABSENT:
    sys.modules[_name] = ModuleType(_name)
    sys.modules[_name].__getattr__ = _of_absent  # type: ignore[method-assign]

import xgrammar  # noqa: E402  # while something stands in

for _name in _ABSENT:
    del sys.modules[_name]

_TOKENS = xgrammar.TokenizerInfo(
    [*(bytes([byte]) for byte in range(256)), b"<end>"], xgrammar.VocabType.RAW, stop_token_ids=[END]
)
_COMPILER = xgrammar.GrammarCompiler(_TOKENS, max_threads=1)


@cache
def compiled(grammar: str) -> Any:
    """Return a grammar (EBNF) or a structural tag (JSON) as the engine has it; raises where it refuses it."""
    if grammar.startswith("{"):
        return _COMPILER.compile_structural_tag(grammar)
    return _COMPILER.compile_grammar(grammar)


def accepts(grammar: str, text: str | bytes) -> bool:
    """Whether the engine takes the text as a whole, or bytes that are none."""
    matcher = xgrammar.GrammarMatcher(compiled(grammar))
    return bool(matcher.accept_string(text)) and bool(matcher.accept_token(END))


def writes(grammar: str, seed: int, most: int = 400) -> str | None:
    """Return what a model of no sense writes under the grammar; None where it is not done after `most` bytes."""
    random = Random(seed)
    matcher = xgrammar.GrammarMatcher(compiled(grammar))
    mask = numpy.zeros((1, -(-(END + 1) // 32)), dtype=numpy.int32)
    written = bytearray()
    while len(written) < most:
        mask[:] = -1
        matcher.fill_next_token_bitmask(mask)
        allowed = [token for token in range(END + 1) if mask[0, token // 32] >> (token % 32) & 1]
        plain = [token for token in allowed if token in _PLAIN or len(allowed) < 8]
        if END in allowed and (random.random() < 0.25 or len(allowed) == 1):
            return written.decode()
        choices = [token for token in (plain if plain and random.random() < 0.9 else allowed) if token != END]
        token = random.choice(choices)
        assert matcher.accept_token(token)
        written.append(token)
    return None
