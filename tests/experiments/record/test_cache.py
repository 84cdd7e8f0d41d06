"""Recordings of the L2 without a GPU: rows of networks alone, and what is emptied when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpusched_env.errors import GpuError
from gpusched_env.experiments.record.rows import MEBIBYTES, SKIP_REASON, KernelTime, cache_rows
from gpusched_env.experiments.record.torch_gpu import TorchGpu


class Gpu:
    """Networks by name; one has other kernels every time."""

    def held_bytes(self, name: str) -> tuple[int, int]:
        return 1000, 200

    def kernel_times(self, name: str) -> list[KernelTime]:
        if name == "varies":
            raise GpuError(f"{name}: other kernels")
        return [KernelTime("a", 2.0, 3.0, 3.5), KernelTime("b", 4.0, 4.0, 5.0)]

    def behind_us(self, name: str, mebibytes: int) -> float:
        return 100.0 + mebibytes / 4


class Bare(TorchGpu):
    """Of a machine without a GPU."""

    def __init__(self, torch: Any = None) -> None:
        self.torch = torch
        self.emptied: list[int] = []

    def _marked_read(self) -> None:
        self.emptied.append(1)

    def readings(self, step: Any) -> tuple[Any, Any]:
        return self._reading_between(step), self._behind_read(step)

    def kernels(self, step: Any, times: int) -> Any:
        return self._kernels(step, times)


def test_a_row_has_what_the_l2_is_worth_and_what_cannot_be_told_is_said() -> None:
    rows = list(cache_rows(Gpu(), ["one", "varies", "two"], []))
    assert rows[0] == {
        "what": "cache",
        "model": "one",
        "weight_bytes": 1000,
        "other_bytes": 200,
        "behind_mib": [0, *MEBIBYTES],
        "behind_us": [100.0 + size / 4 for size in (0, *MEBIBYTES)],
        "warm_us": [2.0, 4.0],
        "cold_us": [3.0, 4.0],
        "bare_us": [3.5, 5.0],
    }
    assert rows[1] == {"what": SKIP_REASON, "model": "varies", "error": "varies: other kernels"}
    assert rows[2]["model"] == "two"


def test_networks_that_are_recorded_are_not_recorded_again() -> None:
    there = [{"what": "cache", "model": "one"}, {"what": SKIP_REASON, "model": "varies"}]
    assert [row["model"] for row in cache_rows(Gpu(), ["one", "varies", "two"], there)] == ["two"]


def test_the_l2_is_emptied_before_each_operator_that_does_something() -> None:
    import torch

    gpu = Bare()

    def step() -> Any:
        given = torch.ones(4)
        return (given.view(2, 2) + given.reshape(2, 2)).sum()

    between, behind = gpu.readings(step)
    assert between() == behind() == 8.0
    # Ones, a sum of two, a sum of all; views move nothing. Then one before a whole iteration.
    assert len(gpu.emptied) == 3 + 1


class Event:
    """A piece of work that the profiler saw."""

    def __init__(self, name: str, correlation: int, start_ns: int, duration_ns: int, kind: Any) -> None:
        self.name, self.device_type, self.correlation_id = (lambda: name), (lambda: kind), (lambda: correlation)
        self.start_ns, self.duration_ns = (lambda: start_ns), (lambda: duration_ns)


def test_kernels_are_in_order_of_their_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches that run side by side start in another order from one iteration to the next."""
    import torch

    on_gpu, on_host = torch.autograd.DeviceType.CUDA, torch.autograd.DeviceType.CPU
    seen = [
        Event("b", 2, 10, 4_000, on_gpu),
        Event("a", 1, 20, 2_000, on_gpu),
        Event("cudaLaunchKernel", 1, 1, 500, on_host),
        Event("a", 3, 110, 3_000, on_gpu),
        Event("b", 4, 120, 6_000, on_gpu),
    ]

    class Profile:
        profiler = SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: seen))

        def __init__(self, activities: Any) -> None: ...

        def __enter__(self) -> Profile:
            return self

        def __exit__(self, *of: Any) -> None: ...

    monkeypatch.setattr("torch.profiler.profile", Profile)
    gpu = Bare(SimpleNamespace(cuda=SimpleNamespace(synchronize=lambda: None), autograd=torch.autograd))
    assert gpu.kernels(lambda: None, 2) == [("a", 2.5), ("b", 5.0)]
