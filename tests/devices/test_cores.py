"""Cores of the CPU beside the GPU: budgets, throttling, charged virtual runtime, locks and the memory that is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.hardware.contention import served_traffic
from gpusched_env.hardware.shared_memory import left_for_gpu
from gpusched_env.scenarios.adapting import with_kernels
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command, Launch, SetBudget, Wait
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, new_device, problem
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("each_device")

HOG = {"name": "hog", "misses_per_us": 10.0}
BUSY = {"name": "busy"}
LATER = {"jobs": 2, "arrivals": {"kind": "periodic", "period_us": 1e3}}
"""A second job long after the first keeps the episode going."""


def cores(*rows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"period_us": 100.0, **fields, "cores": [{"number": i, **row} for i, row in enumerate(rows)]}


def built(folder: Path, cpu: dict[str, Any], ops: list[Any], **fields: Any) -> Problem:
    """A tenant ``t`` beside cores."""
    tenant = {"name": "t", "ops": ops, **fields.pop("tenant", {})}
    return problem(folder, tenant, cores=cpu, **{"commands": ["launch", "budget"], "horizon_us": 1e5, **fields})


def play(of: Problem, orders: list[tuple[float, Command]], until_us: float) -> tuple[Device, View]:
    """Launch everything at once, give each order at its time, look at a time."""
    device = new_device()
    view: View | None = device.reset(of, 0, record="kernels")
    left = list(orders)
    while view is not None and view.time_us < until_us:
        launchable = view.pending.id[view.pending.launchable == 1.0]
        if left and view.time_us >= left[0][0]:
            device.apply(left.pop(0)[1])
        elif len(launchable):
            device.apply(Launch(int(launchable[0])))
        else:
            device.apply(Wait(left[0][0] if left else until_us))
        view = device.advance()
    return device, device.view()


@pytest.mark.parametrize("rho", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("f", [0.1, 0.5])
def test_shares_of_a_memory_hog_and_a_busy_process(tmp_path: Path, rho: float, f: float) -> None:
    """The hog spends its budget in a share f of a period. Equal charged times give it 1/(1+f), 1/2 and 1/(4-2f) of the
    periods under CFS, TFS-1 and TFS-3, and it is throttled for 1 - f of each."""
    cpu = cores({"processes": [HOG, BUSY]}, rho=rho)
    of = built(tmp_path, cpu, [K(1, 10.0)], tenant={"jobs": 2, "arrivals": {"kind": "periodic", "period_us": 9e4}})
    periods = 800
    _, view = play(of, [(0.0, SetBudget(0, int(1000 * f), always=True))], 100.0 * (periods + 1))
    row = view.cores
    hog = (row.memory_us[0] + row.throttled_us[0]) / (100.0 * (periods + 1))
    share = {0.0: 1 / (1 + f), 1.0: 1 / 2, 3.0: 1 / (4 - 2 * f)}[rho]
    assert hog == pytest.approx(share, rel=0.02)
    assert row.throttled_us[0] == pytest.approx((1 - f) * share * 100.0 * periods, rel=0.02)


def test_a_core_is_throttled_from_its_spent_budget_to_its_own_next_tick(tmp_path: Path) -> None:
    """Ticks of core 0 at 100, 200, ... and of core 1 at 30, 130, ...; the budget of 400 misses lasts for 40 us. Set at
    0 it binds from the first tick on: by 250 us core 0 was throttled in 140 to 200 and 240 to 250, core 1 in 70 to 130
    and 170 to 230, and is in its fourth period."""
    cpu = cores({"processes": [HOG]}, {"processes": [HOG], "phase_us": 30.0})
    of = built(tmp_path, cpu, [K(4, 300.0)])
    orders: list[tuple[float, Command]] = [(0.0, SetBudget(row, 400, always=True)) for row in (0, 1)]
    view = play(of, orders, 250.0)[1].cores
    assert view.throttled_us.tolist() == [70.0, 120.0]
    assert view.memory_us.tolist() == [180.0, 130.0]
    assert view.throttled.tolist() == [1.0, 0.0]
    assert view.misses.tolist() == [400.0, pytest.approx(200.0)]
    assert view.last_misses.tolist() == [400.0, 400.0]
    assert view.next_tick_us.tolist() == [300.0, 330.0]


@pytest.mark.parametrize(("spins", "throttled_us"), [(True, 120.0), (False, 0.0)])
def test_the_lock_counts_while_its_holder_runs(tmp_path: Path, spins: bool, throttled_us: float) -> None:
    """A kernel runs from 50 to 250 us, its host waits for it on core 0. Where it spins the hog of core 1 has its budget
    in the periods from 100 and 200 us, and is throttled for 60 us of each; where it sleeps never."""
    cpu = cores({"host": "t"}, {"processes": [HOG]}, spins=spins)
    of = built(tmp_path, cpu, [K(4, 200.0, host_us=50.0)], tenant=LATER)
    _, view = play(of, [(0.0, SetBudget(1, 400))], 600.0)
    assert view.cores.throttled_us.tolist() == [0.0, throttled_us]
    assert view.cores.locked.tolist() == [0.0, 0.0]
    inside = play(of, [(0.0, SetBudget(1, 400))], 150.0)[1].cores
    assert inside.locked.tolist() == [float(spins), 0.0]
    assert inside.host.tolist() == [0.0, -1.0]


def test_a_host_has_precedence_over_the_processes_of_its_core(tmp_path: Path) -> None:
    """The host works for 50 us and spins for 200 on a kernel; then the processes have the core in turns."""
    cpu = cores({"host": "t", "processes": [HOG, BUSY]})
    of = built(tmp_path, cpu, [K(4, 200.0, host_us=50.0)], tenant=LATER)
    _, view = play(of, [], 500.0)
    assert (view.cores.memory_us[0], view.cores.compute_us[0]) == (150.0, 100.0)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"number": 3}, {"number": 3}], "core 3 is there twice"),
        ([{"host": "nobody"}], "host is no tenant: 'nobody'"),
        ([{"host": "t"}, {"host": "t"}], "host of tenant t is on two cores"),
    ],
)
def test_wrong_cores_are_refused(tmp_path: Path, rows: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        built(tmp_path, cores(*rows), [K(1, 1.0)])


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (SetBudget(2, 5), "cores are 0..1"),
        (SetBudget(0, 0), "events must be 1 to 163840"),
        (SetBudget(0, 163_841), "events must be 1 to 163840"),
        (SetBudget(0, 1.5), "must be given in whole numbers"),  # type: ignore[arg-type]
        (SetBudget(0, 163_840), "core 0 has this budget already"),
        (SetBudget(0, 5, always=2), "always must be True or False"),  # type: ignore[arg-type]
    ],
)
def test_wrong_budgets_are_refused_and_change_nothing(tmp_path: Path, command: SetBudget, says: str) -> None:
    of = built(tmp_path, cores({"processes": [HOG]}, {}), [K(1, 10.0)])
    device = new_device()
    device.reset(of, 0)
    before = device.view().cores.array
    with pytest.raises(IllegalCommand, match=says):
        device.apply(command)
    assert np.array_equal(device.view().cores.array, before)
    device.apply(SetBudget(0, 5))
    with refused(IllegalCommand, "instant"):
        device.apply(SetBudget(0, 6))


def test_kernels_share_what_cores_leave(tmp_path: Path) -> None:
    """A kernel on all SMs that alone asks for 0.9 of the memory, beside a hog whose traffic costs half of it, and one
    that is throttled for nine tenths of each period: slowed by what the law leaves, in the share of time that it runs.
    """
    alone = solo_of(tmp_path, None)
    half = {"name": "hog", "misses_per_us": 390.625, "bytes_a_miss": 640.0}
    beside = solo_of(tmp_path, cores({"processes": [half]}, kappa=2.0))
    reachable = 0.94e6
    asked = 0.9e6 / (1.0 - (0.9e6 / reachable) ** 4.0) ** 0.25
    left = left_for_gpu(reachable, 250_000.0, 2.0, 4.0)
    slowdown = 0.9e6 / served_traffic(asked, left, 4.0)
    assert beside / alone == pytest.approx(slowdown, rel=0.01)
    always: list[tuple[float, Command]] = [(0.0, SetBudget(0, 3906, always=True))]
    throttled = solo_of(tmp_path, cores({"processes": [half]}, kappa=2.0), always)
    assert throttled / alone == pytest.approx(1 / (0.9 + 0.1 / slowdown), rel=0.02)


def solo_of(folder: Path, cpu: dict[str, Any] | None, orders: Sequence[tuple[float, Command]] = ()) -> float:
    """How long a kernel of 400 waves takes that asks for 0.9 of the bandwidth of the teaching GPU."""
    fields: dict[str, Any] = {"cores": cpu} if cpu else {}
    commands = ["launch", "budget"]
    of = problem(folder, {"name": "t", "ops": [K(1600, 100.0)]}, commands=commands, horizon_us=1e6, **fields)
    kernel = msgspec.structs.replace(of.kernels[0].kernel, dram_bytes=0.9e6 * 40_000.0)
    return play(with_kernels(of, {0: kernel}), list(orders), 1e6)[0].time_us
