"""Steps of a serving engine of a Llama-like language model in PyTorch: random weights, half precision.

A *prefill* reads one prompt; a *decode* makes one token for each request of a batch, whose keys and values lie in a
cache that is as long as their context. Sizes are those of Llama 3.2 1B (its published configuration). Split over
several GPUs (one process each, ``torchrun``), each has its share of the heads and of the inner layer, as in Megatron-LM
(Shoeybi et al., arXiv 1909.08053), and the results of attention and of the inner layer are summed by all-reduces.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from gpusched_env.errors import InputError


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """Sizes of a model."""

    layers: int = 16
    width: int = 2048
    heads: int = 32
    shared_heads: int = 8
    """Heads of keys and values, each of which several heads of queries share."""
    inner: int = 8192
    vocabulary: int = 128_256

    @property
    def head(self) -> int:
        """Width of a head."""
        return self.width // self.heads


LLAMA_1B: Final = LanguageModel()
NAMED: Final = re.compile(
    r"llama_1b(?P<split>_split)?_(?:decode_b(?P<batch>[1-9]\d*)_c(?P<context>[1-9]\d*)|prefill_p(?P<prompt>[1-9]\d*))"
)
"""Names of steps: ``llama_1b_decode_b8_c1024`` (eight requests of 1024 tokens each), ``llama_1b_prefill_p512``;
``llama_1b_split_...``: this process's share of it."""
PREFILLS: Final = (128, 256, 512, 1024)
BATCHES: Final = (1, 2, 4, 8, 16, 32)
CONTEXTS: Final = (256, 512, 1024, 2048)
STEPS: Final = (
    *(f"llama_1b_prefill_p{prompt}" for prompt in PREFILLS),
    *(f"llama_1b_decode_b{batch}_c{context}" for batch in BATCHES for context in CONTEXTS),
)
"""What an engine needs: a prompt or a batch is rounded up to the next of these."""


def language_step(name: str) -> Callable[[], Any]:
    """A step by its name (:data:`NAMED`), on the GPU at hand; it ends with the tokens on the host."""
    named = NAMED.fullmatch(name)
    assert named is not None, name
    layers = _layers(LLAMA_1B, _processes() if named["split"] else 1)
    if named["prompt"]:
        return layers.prefill(int(named["prompt"]))
    return layers.decode(int(named["batch"]), int(named["context"]))


def _processes() -> int:
    """GPUs that the model is split over: one process each, which have found each other afterwards.

    Raises:
        InputError: this process is none of several.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count < 2:
        raise InputError("llama_1b_split_*: is one of several processes; run `gpusched record` under torchrun")
    torch = import_module("torch")
    if not torch.distributed.is_initialized():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl")
    return count


@functools.cache
def _layers(model: LanguageModel, split: int) -> _Layers:
    """One set of weights for all steps."""
    return _Layers(model, split)


class _Layers:
    """A share of the weights, and the steps that use them."""

    def __init__(self, model: LanguageModel, split: int) -> None:
        self._torch = torch = import_module("torch")
        self._model, self._split = model, split
        self._heads, self._shared = model.heads // split, model.shared_heads // split

        def weights(rows: int, columns: int) -> Any:
            return torch.randn(rows, columns, device="cuda", dtype=torch.half) * columns**-0.5

        width, inner = model.width, model.inner // split
        queries_keys_values = (self._heads + 2 * self._shared) * model.head
        self._weights = [
            (
                weights(queries_keys_values, width),
                weights(width, self._heads * model.head),
                weights(2 * inner, width),
                weights(width, inner),
            )
            for _ in range(model.layers)
        ]
        self._norm = torch.ones(width, device="cuda", dtype=torch.half)
        self._words = weights(model.vocabulary, width)
        self._answers = self._words[: model.vocabulary // split]

    def prefill(self, prompt: int) -> Callable[[], Any]:
        """Reads a prompt."""
        return self._step(1, prompt, 0)

    def decode(self, batch: int, context: int) -> Callable[[], Any]:
        """A token for each of a batch."""
        return self._step(batch, 1, context - 1)

    def _step(self, batch: int, new: int, before: int) -> Callable[[], Any]:
        """``new`` tokens each of ``batch`` requests behind ``before`` others."""
        torch, model = self._torch, self._model
        functional = torch.nn.functional
        context, head = before + new, model.head
        shape = batch, self._shared, context, head
        caches = [
            tuple(torch.randn(shape, device="cuda", dtype=torch.half) for _ in range(2)) for _ in range(model.layers)
        ]
        tokens = torch.randint(0, model.vocabulary, (batch, new), device="cuda")
        angles = torch.randn(new, head // 2, device="cuda")
        cosine, sine = (torch.cat([wave, wave], dim=-1).half() for wave in (torch.cos(angles), torch.sin(angles)))
        sizes = (self._heads, self._shared, self._shared)

        def turned(one: Any) -> Any:
            """Rotary positions."""
            first, second = one.chunk(2, dim=-1)
            return one * cosine + torch.cat([-second, first], dim=-1) * sine

        def attention(layer: int, given: Any) -> Any:
            into, out = self._weights[layer][:2]
            both = functional.linear(given, into).view(batch, new, -1, head).transpose(1, 2)
            queries, keys, values = both.split(sizes, dim=1)
            all_keys, all_values = caches[layer]
            all_keys[:, :, before:].copy_(turned(keys))
            all_values[:, :, before:].copy_(values)
            seen = functional.scaled_dot_product_attention(
                turned(queries), all_keys, all_values, is_causal=new > 1, enable_gqa=True
            )
            return self._summed(functional.linear(seen.transpose(1, 2).reshape(batch, new, -1), out))

        def inner(layer: int, given: Any) -> Any:
            into, out = self._weights[layer][2:]
            gate, up = functional.linear(given, into).chunk(2, dim=-1)
            return self._summed(functional.linear(functional.silu(gate) * up, out))

        def normal(given: Any) -> Any:
            return functional.rms_norm(given, (model.width,), self._norm)

        def step() -> Any:
            with torch.inference_mode():
                state = functional.embedding(tokens, self._words)
                for layer in range(model.layers):
                    state = state + attention(layer, normal(state))
                    state = state + inner(layer, normal(state))
                return functional.linear(normal(state[:, -1]), self._answers).argmax(dim=-1).cpu()

        return step

    def _summed(self, share: Any) -> Any:
        if self._split > 1:
            self._torch.distributed.all_reduce(share)
        return share
