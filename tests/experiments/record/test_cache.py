"""Recordings of the L2 without a GPU: rows of networks alone, and what is emptied when."""

from __future__ import annotations

from typing import Any

import pytest

from gpusched_env.errors import GpuError
from gpusched_env.experiments.record.cache import MEBIBYTES, MISSED, KernelTime, cache_rows
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
    assert rows[1] == {"what": MISSED, "model": "varies", "error": "varies: other kernels"}
    assert rows[2]["model"] == "two"


def test_networks_that_are_recorded_are_not_recorded_again() -> None:
    there = [{"what": "cache", "model": "one"}, {"what": MISSED, "model": "varies"}]
    assert [row["model"] for row in cache_rows(Gpu(), ["one", "varies", "two"], there)] == ["two"]


def test_the_l2_is_emptied_before_each_operator_that_does_something(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    emptied: list[int] = []
    gpu: Any = TorchGpu.__new__(TorchGpu)
    monkeypatch.setattr(gpu, "_marked_read", lambda: emptied.append(1))

    def step() -> Any:
        given = torch.ones(4)
        return (given.view(2, 2) + given.reshape(2, 2)).sum()

    between, behind = gpu._reading_between(step), gpu._behind_read(step)
    assert between() == behind() == 8.0
    # Ones, a sum of two, a sum of all; views move nothing. Then one before a whole iteration.
    assert len(emptied) == 3 + 1
