"""Stream-K: products without partial waves, by hand on four SMs of one block."""

from __future__ import annotations

import pytest

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.scenarios.adapting import divided_evenly, fix_up_us, stream_k
from gpusched_env.scenarios.problem import Problem
from gpusched_env.workload.workload import TileNeeds
from tests.devices.programs import chain

FIX_UP_US = 2 * 4 * 32 * 1024 * 4 / 1_000_000
"""Two times four bytes for each of a block's 32 registers of 1,024 threads, of four blocks, at 1 TB/s."""


def played(built: Problem, spec: str, device: str = "reference") -> Episode:
    return run_episode(make_scheduler(spec), built, make_device(device), 0, record="kernels")


def test_six_tiles_take_one_and_a_half_waves_and_a_fix_up() -> None:
    built = chain((2, 3, 1), (4, 3, 1))
    assert fix_up_us(built.kernels[0].footprint, built.gpu) == pytest.approx(FIX_UP_US)
    for device in ("reference", "compiled"):
        ended = played(built, "stream-k", device).timeline.kernels.column("ended_us").tolist()
        # The other one has three whole waves, and stays as it is.
        assert ended == pytest.approx([15.0 + FIX_UP_US, 45.0 + FIX_UP_US], abs=1e-5)
    assert played(built, "pass-through").end_us == 50.0


def test_fewer_tiles_than_slots_are_divided_too() -> None:
    divided = divided_evenly(chain((3, 1, 1), (3, 1, 1)).kernels[0], chain((3, 1, 1)).gpu)
    assert divided.kernel.grid == (4, 1, 1)
    assert divided.duration_us == pytest.approx(7.5 + FIX_UP_US)


def test_convolutions_and_kernels_without_consumers_stay_as_they_are() -> None:
    convolutions = chain((2, 3, 1), (2, 3, 1), needs=TileNeeds(steps=9))
    assert stream_k(convolutions).kernels == convolutions.kernels
    alone = chain((2, 3, 1))
    assert stream_k(alone).kernels == alone.kernels


def test_nothing_is_synchronised_then() -> None:
    built = stream_k(chain((2, 3, 1), (2, 3, 1)))
    assert all(op.tiles < 0 for program in built.programs for op in program.variants[0])
