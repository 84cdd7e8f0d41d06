"""What is the compiled device's own: its generators, its sets of SMs, its memory."""

from __future__ import annotations

import pickle
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from gpusched_env.devices.compiled import layout, members
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.devices.compiled.hosting import uniform
from gpusched_env.devices.compiled.memory import records
from gpusched_env.devices.compiled.seeding import SCRATCH, key_of, seed_generator
from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command, Wait
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, Script, launch_first, problem

random_at = records(layout.RANDOM)
SMS = 132
WORDS = members.words_for(SMS)


@njit
def draw(address, words, scratch, out):  # type: ignore[no-untyped-def]
    seed_generator(random_at(address, 0), words, scratch)
    for i in range(out.size):
        out[i] = uniform(random_at(address, 0))


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1, 2**32, 2**100 + 5, 2**200 - 1])
def test_draws_are_those_of_numpy(seed: int) -> None:
    state, drawn = np.zeros(1, layout.RANDOM), np.empty(10_000)
    draw(state.ctypes.data, key_of(seed, 1, 2), np.empty(SCRATCH, np.uint64), drawn)
    np.testing.assert_array_equal(drawn, np.random.default_rng([seed, 1, 2]).random(10_000))


@njit
def on_sets(at, start, count, most, rank):  # type: ignore[no-untyped-def]
    """Ring, its size and lowest rank, whether a rank is in it, and its first ranks."""
    members.ring(at, WORDS, start, count, SMS)
    size, first, inside = members.size(at, WORDS), members.first(at, WORDS), members.contains(at, rank)
    members.keep_first(at, WORDS, most)
    return size, first, inside


@settings(deadline=None)  # The first call compiles.
@given(start=st.integers(0, SMS - 1), count=st.integers(1, SMS), most=st.integers(0, SMS), rank=st.integers(0, SMS - 1))
def test_sets_of_sms(start: int, count: int, most: int, rank: int) -> None:
    ranks = sorted((start + i) % SMS for i in range(count))
    words = np.zeros(WORDS, layout.WORD)
    assert on_sets(words.ctypes.data, start, count, most, rank) == (count, ranks[0], rank in ranks)
    bits = sum(int(word) << (members.BITS * k) for k, word in enumerate(words["bits"]))
    assert [r for r in range(SMS) if bits >> r & 1] == ranks[:most]


def launch_late(view: View) -> Command:
    """Let kernels pile up for 500 us, then launch them."""
    return launch_first(view) if view.time_us >= 500.0 else Wait(500.0)


@pytest.mark.parametrize(
    "tenants",
    [
        pytest.param([{"ops": [K(2, 1.0)], "jobs": 100}], id="jobs that wait"),
        pytest.param([{"ops": [K(1, 1.0)] * 100, "launch": "graph"}, {"ops": [K(1, 1.0)]}], id="kernels that wait"),
    ],
)
def test_memory_grows_with_what_piles_up(tmp_path: Path, tenants: list[dict[str, Any]]) -> None:
    built = problem(tmp_path, *tenants)
    devices: list[Device] = [CompiledDevice(), ReferenceDevice()]
    tables = [run_episode(Script(launch_late), built, device, 0, record="blocks").timeline for device in devices]
    assert len(tables[0].kernels) >= 100
    np.testing.assert_allclose(tables[0].kernels.array, tables[1].kernels.array, atol=1e-9)


def play(device: CompiledDevice, view: View | None) -> list[tuple[float, ...]]:
    """To the end; when each kernel ended."""
    while view is not None:
        device.apply(launch_first(view))
        view = device.advance()
    return [tuple(row) for row in device.timeline.kernels.array.tolist()]


def test_a_snapshot_goes_to_another_device(tmp_path: Path) -> None:
    built: Problem = problem(tmp_path, {"ops": [K(9, 10.0)] * 30, "launch": "graph"}, {"ops": [K(3, 7.0)], "jobs": 9})
    device = CompiledDevice()
    view = device.reset(built, 3, record="kernels")
    for _ in range(6):
        assert view is not None
        device.apply(launch_first(view))
        view = device.advance()
    saved = pickle.dumps(device.snapshot())
    rest = play(device, view)
    other = CompiledDevice()
    other.reset(problem(tmp_path, {"ops": [K(1, 1.0)]}), 0)
    assert play(other, other.restore(pickle.loads(saved))) == rest
    assert play(device, device.restore(pickle.loads(saved))) == rest


def test_episodes_use_the_same_memory(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(9, 10.0)] * 30, "launch": "graph"})
    device = CompiledDevice()
    first = play(device, device.reset(built, 0, record="kernels"))
    address = device.arena.address
    assert play(device, device.reset(built, 0, record="kernels")) == first
    assert device.arena.address == address


def test_growth_frees_what_it_leaves(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(2, 1.0)] * 300})
    device = CompiledDevice()
    device.reset(built, 0, record="kernels")
    address, memory = device.arena.address, weakref.ref(device.arena.section("env").base)
    run_episode(Script(launch_late), built, device, 0)
    assert device.arena.address != address
    assert memory() is None


def test_devices_of_a_problem_share_its_start(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(9, 10.0)] * 30, "launch": "graph"}, {"ops": [K(3, 7.0)], "jobs": 9})
    devices = [CompiledDevice() for _ in range(2)]
    episodes = [play(device, device.reset(built, 0, record="kernels")) for _ in range(2) for device in devices]
    assert episodes == episodes[:1] * 4
