"""llama.cpp's own server, in this process, with a model of random weights that is made here: 256 bytes as tokens.

It has no sense at all, so what it writes under a grammar is whatever the grammar allows, byte by byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import gguf
import numpy
import xllamacpp

_WIDTH = 32


def _letters() -> list[str]:
    """Return the characters by which GPT-2's tokenizer shows bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) if byte in shown else chr(256 + hidden.index(byte)) for byte in range(256)]


def make_model(path: Path) -> None:
    """Write a model of one layer, some 110 KB."""
    letters = _letters()
    tokens = [*letters, "<|im_end|>", "<|bos|>"]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_WIDTH)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // 2)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3, 3])
    writer.add_token_merges([f"{letters[97]} {letters[98]}"])
    writer.add_eos_token_id(256)
    writer.add_bos_token_id(257)
    random = numpy.random.default_rng(0)
    shapes = {"token_embd": (len(tokens), _WIDTH), "output": (len(tokens), _WIDTH), "output_norm": (_WIDTH,)}
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        shapes[f"blk.0.{name}"] = (_WIDTH, _WIDTH)
    for name in ("attn_norm", "ffn_norm"):
        shapes[f"blk.0.{name}"] = (_WIDTH,)
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) * 0.5).astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Llama:
    """A running server."""

    def __init__(self, model: Path, context: int = 4096) -> None:
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(model)
        parameters.n_ctx = context
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        parameters.verbosity = -1
        parameters.warmup = False
        parameters.port = 0
        self._server = xllamacpp.Server(parameters)
        self.address = self._server.listening_address

    def stream(self, grammar: str, seed: int, most: int = 600) -> Iterator[tuple[str, str]]:
        """Yield pieces of what is written as they come, each with why it ended, "" where it has not."""
        body = {
            "prompt": "x", "grammar": grammar, "n_predict": most, "temperature": 1, "top_k": 0, "top_p": 1,
            "seed": seed, "stream": True,
        }  # fmt: skip
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self.address}/completion", json.dumps(body).encode(), headers)  # noqa: S310  # our own
        try:
            with urlopen(request, timeout=60) as lines:  # noqa: S310  # as above
                for line in lines:
                    if line.startswith(b"data: {"):
                        data = json.loads(line[6:])
                        yield data["content"], data["stop_type"] if data["stop"] else ""
        except HTTPError as error:
            with error:
                raise AssertionError(f"{error.read()!r}\n{grammar}") from error
