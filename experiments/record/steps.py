"""Iterations of a classification network on whatever device it is on: an answer, and a step of training."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

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
