"""A network that Python launches, kernel by kernel."""

from __future__ import annotations

import contextlib
import ctypes
import time
from importlib import import_module
from typing import Any, Final

import numpy as np

from gpusched_env.experiments.record.sharing import Spans, Task
from gpusched_env.experiments.record.steps import Step, answering_step, training_step

MOST: Final = 100_000
"""Iterations of a call, at most."""


class EagerTask:
    """One task on a stream."""

    def __init__(self, task: Task, model: Any, device: str, stream: Any) -> None:
        """
        Args:
            task: what it runs.
            model: the network as a module of PyTorch.
            device: ``cuda`` or ``cpu``.
            stream: of PyTorch; ``None`` on the CPU.
        """
        torch = import_module("torch")
        self._stream = stream
        self._on = contextlib.nullcontext if stream is None else lambda: torch.cuda.stream(stream)
        with self._on():
            images = torch.randn(task.batch, 3, task.pixels, task.pixels, device=device)
            model = model.to(device)
            self._step: Step | None = (training_step if task.trains else answering_step)(model, images)

    def repeat(self, stop: ctypes.c_int, seconds: float, most: int = MOST) -> Spans:
        """Iterations until ``stop`` is set, the time is over or there are so many; their starts and ends, s."""
        assert self._step is not None
        spans: list[tuple[float, float]] = []
        start_s = time.perf_counter()
        end_s = start_s + seconds
        with self._on():
            while len(spans) < most and start_s < end_s and not stop.value:
                self._step()
                if self._stream is not None:
                    self._stream.synchronize()
                now_s = time.perf_counter()
                spans.append((start_s, now_s))
                start_s = now_s
        return np.array(spans).reshape(-1, 2)

    def free(self) -> None:
        """Give its memory back."""
        self._step = None
