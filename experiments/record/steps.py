"""Iterations in PyTorch: classification, single operators, articulated bodies, steps of a language model."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.language_models import DenseModel

Step = Callable[[], Any]
"""One iteration, on whatever stream is current; it may be captured as a CUDA graph."""


def answering_step(model: Any, images: Any) -> Step:
    """An inference in the precision of ``model``, whose answer is copied to the host."""
    torch = import_module("torch")
    model.eval()

    def step() -> Any:
        with torch.inference_mode():
            return model(images).cpu()

    return step


def training_step(model: Any, images: Any, precision: Callable[[], Any] = contextlib.nullcontext) -> Step:
    """A step of stochastic gradient descent with momentum of a network of 1000 classes.

    Args:
        model: on a device.
        images: on the same.
        precision: makes the context of the forward pass.
    """
    torch = import_module("torch")
    descent = torch.optim.SGD(model.train().parameters(), lr=0.001, momentum=0.9)
    labels = torch.randint(0, 1000, (len(images),), device=images.device)

    def step() -> None:
        descent.zero_grad()
        with precision():
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        descent.step()

    return step


TIMES: Final = 40
"""Times that an iteration runs the operator."""
Shape = tuple[int, ...]
Made = Callable[[Any, Callable[[Shape], Any]], Callable[[Any], Any]]
"""The operator, of PyTorch and of what makes an input."""


def _depthwise(channels: int, size: int) -> Made:
    return lambda torch, _: torch.nn.Conv2d(channels, channels, size, padding=size // 2, groups=channels).cuda().half()


def _convolution(channels: int, to: int, size: int) -> Made:
    return lambda torch, _: torch.nn.Conv2d(channels, to, size, padding=size // 2, bias=False).cuda().half()


OPERATORS: Final[Mapping[str, tuple[Shape, Made]]] = {
    "batchnorm_wide": ((32, 256, 56, 56), lambda torch, _: torch.nn.BatchNorm2d(256).eval().cuda().half()),
    "batchnorm_deep": ((16, 1536, 14, 14), lambda torch, _: torch.nn.BatchNorm2d(1536).eval().cuda().half()),
    "relu": ((32, 256, 28, 28), lambda torch, _: torch.nn.functional.relu),
    "silu": ((16, 1536, 14, 14), lambda torch, _: torch.nn.functional.silu),
    "scale": ((16, 1536, 14, 14), lambda torch, make: functools.partial(torch.mul, make((16, 1536, 1, 1)))),
    "mean": ((16, 1536, 14, 14), lambda torch, _: torch.nn.AdaptiveAvgPool2d(1)),
    "layernorm": ((25088, 96), lambda torch, _: torch.nn.LayerNorm(96).cuda().half()),
    "depthwise3": ((16, 1536, 14, 14), _depthwise(1536, 3)),
    "depthwise5": ((32, 480, 14, 14), _depthwise(480, 5)),
    "depthwise7": ((8, 96, 56, 56), _depthwise(96, 7)),
    "convolution1": ((16, 256, 14, 14), _convolution(256, 1536, 1)),
    "convolution3": ((32, 128, 28, 28), _convolution(128, 128, 3)),
    "linear": ((1024, 768), lambda torch, _: torch.nn.Linear(768, 3072).cuda().half()),
    "tiny": ((1, 128), lambda torch, _: torch.nn.functional.relu),
}


OPERATOR_NAMED: Final = re.compile(rf"(?P<operator>{'|'.join(OPERATORS)})_op")


def operator_step(name: str) -> Step:
    """An iteration of one of :data:`OPERATORS`."""
    torch: Any = import_module("torch")

    def make(shape: Shape) -> Any:
        return torch.randn(shape, device="cuda", dtype=torch.half)

    shape, made = OPERATORS[name]
    operator, given = made(torch, make), make(shape)

    def step() -> Any:
        with torch.inference_mode():
            for _ in range(TIMES - 1):
                operator(given)
            return operator(given)

    return step


SUBSTEPS: Final = 2
TIME_STEP: Final = 0.005
REST: Final = 1.0
"""Length of a joint at rest."""
DAMPING: Final = 0.99
STIFFNESS: Final = 100.0
"""Stiffness of the ground."""
LEAST: Final = 1e-6
"""Added to lengths, so that nothing is divided by zero."""


def bodies_step(bodies: int, batch: int) -> Callable[[], Any]:
    """A step of chains of bodies that springs hold together, above a ground; single precision.

    Args:
        bodies: of a chain (>= 2).
        batch: chains side by side.
    """
    torch = import_module("torch")
    shape = batch, bodies, 3
    start, speed = (torch.randn(shape, device="cuda") for _ in range(2))

    def pull(place: Any, joint: int) -> Any:
        """Force of a joint on the first of its two bodies."""
        apart = place[:, joint + 1] - place[:, joint]
        length = torch.linalg.vector_norm(apart, dim=-1, keepdim=True) + LEAST
        return (length - REST) * apart / length

    def step() -> Any:
        place, velocity = start, speed
        for _ in range(SUBSTEPS):
            pulls = [pull(place, joint) for joint in range(bodies - 1)]
            force = torch.zeros_like(place)
            for joint, one in enumerate(pulls):
                force[:, joint] += one
                force[:, joint + 1] -= one
            below = torch.clamp(0.0 - place[..., 2], min=0.0)
            force[..., 2] += below * STIFFNESS
            velocity = (velocity + force * TIME_STEP) * DAMPING
            place = place + velocity * TIME_STEP
        return place, velocity

    def without_gradients() -> Any:
        with torch.inference_mode():
            return step()

    return without_gradients


LLAMA_1B: Final = DenseModel(16, 2048, heads=32, shared_heads=8, head=64, inner=8192, vocabulary=128_256)
LANGUAGE_NAMED: Final = re.compile(
    r"llama_1b(?P<split>_split)?_(?:decode_b(?P<batch>[1-9]\d*)_c(?P<context>[1-9]\d*)|prefill_p(?P<prompt>[1-9]\d*))"
)
"""Names of steps: ``llama_1b_decode_b8_c1024`` (eight requests of 1024 tokens each), ``llama_1b_prefill_p512``;
``llama_1b_split_...``: this process's share of it."""


def language_step(name: str) -> Callable[[], Any]:
    """A step by its name (:data:`LANGUAGE_NAMED`), on the GPU at hand; it ends with the tokens on the host."""
    named = LANGUAGE_NAMED.fullmatch(name)
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
        raise InputError("llama_1b_split_*: is one of several processes; run `gpusched lab record` under torchrun")
    torch = import_module("torch")
    if not torch.distributed.is_initialized():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl")
    return count


@functools.cache
def _layers(model: DenseModel, split: int) -> _Layers:
    """One set of weights for all steps."""
    return _Layers(model, split)


class _Layers:
    """A share of the weights, and the steps that use them."""

    def __init__(self, model: DenseModel, split: int) -> None:
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
        """A step that reads a prompt."""
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
            """A tensor with rotary positions."""
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
