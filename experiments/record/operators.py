"""Loops of one PyTorch operator: backgrounds that show how a single kind of kernel is slowed down.

A network's slowdown is a mean over its kernels. These are ``<operator>_op``: the operator alone, in half precision,
as often as it takes to be as long as a network.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from gpusched_env.experiments.record.steps import Step

TIMES: Final = 40
"""That an iteration runs the operator."""
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


NAMED: Final = re.compile(rf"(?P<operator>{'|'.join(OPERATORS)})_op")


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
