"""Nothing that a scheduler is given holds the truth of the episode."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.devices import make_device
from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import GpuschedError
from gpusched_env.hardware.occupancy import BLOCK_DTYPE
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.showing import LazyView
from gpusched_env.scheduling.view import View
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.tenant import Backlog, Bursts, ClosedLoop, Periodic, Poisson, Regimes, Tenant
from gpusched_env.workload.workload import Op, Variant, Workload
from tests.refusals import refused
from tests.scheduling.reach import reachable

SEED = 987_654_321
TRUTH = (
    Problem, Scenario, ProfileError, HostOp, TenantProgram, Tenant, Workload, Variant, Op, Kernel, KernelProfile,
    ClosedLoop, Poisson, Periodic, Bursts, Regimes, Backlog, ReferenceDevice, CompiledDevice, Arena,
)  # fmt: skip
WRONG = {"durations": 1.3, "gaps": 0.7, "scatter": 2.0, "forget": 0.2, "seed": 55_555_557}
# The horizon on the reference device, which takes its time, is just long enough for four arrivals.
CASES = [
    ("compiled", "InferenceBesideTraining", {}, 20_000.0),
    ("compiled", "InferenceBesideTraining", WRONG, 20_000.0),
    ("compiled", "MultiTenantBurst", {}, 20_000.0),
    ("compiled", "MultiTenantBurst", WRONG, 20_000.0),
    ("compiled", "ThreeTenants", WRONG, 20_000.0),
    ("reference", "MultiTenantBurst", WRONG, 5_000.0),
]


class Watcher(PassThrough):
    """Looks through what it is given; the numbers in it are kept with the time at which they were seen."""

    def __init__(self) -> None:
        self.told: dict[Any, str] = {}
        self.seen: list[tuple[float, dict[Any, str]]] = []
        self._decisions = 0

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        self.told = numbers_in(knowledge, "knowledge") | numbers_in(rng, "rng")

    def decide(self, view: View) -> Command:
        if self._decisions % 25 == 0:
            assert isinstance(view, LazyView)
            seen = numbers_in(view, "view") | numbers_in(view.complete(), "view")
            # Sums of durations on a grid of nanoseconds are likely to be durations too, and ratios of small whole
            # numbers (threads over threads, operations over operations) to be scales.
            np.testing.assert_allclose(view.tenants.launched_left_us, launched_left_us(view), atol=1e-6)
            for number in (*view.tenants.launched_left_us.tolist(), view.occupancy, *view.jobs.unfinished.tolist()):
                seen.pop(number, None)
            self.seen.append((view.time_us, seen))
        self._decisions += 1
        return super().decide(view)


def launched_left_us(view: View) -> list[float]:
    """By tenant, from the table of running kernels."""
    left = np.nan_to_num(np.maximum(0.0, view.running.profiled_us - view.running.elapsed_us))
    return [float(left[view.running.tenant == tenant].sum()) for tenant in range(len(view.tenants))]


def numbers_in(given: Any, name: str) -> dict[Any, str]:
    """Every number that can be reached, and where; there is nothing that would hold the truth."""
    found: dict[Any, str] = {}
    for path, value in reachable(given, name):
        assert not isinstance(value, TRUTH), f"{path} is a {type(value).__name__}"
        assert not (isinstance(value, np.ndarray) and value.dtype == BLOCK_DTYPE), f"{path} is a block"
        if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
            found[value] = path
    return found


def watched(device: str, name: str, wrong: dict[str, float], horizon_us: float) -> tuple[Watcher, Episode]:
    watcher = Watcher()
    problem = build_problem(load_scenario(name, profiles=wrong, horizon_us=horizon_us))
    return watcher, run_episode(watcher, problem, make_device(device), SEED)


def true_numbers(problem: Problem) -> set[float]:
    """Durations and scales of every operation, profiles and blocks behind them: whatever is nobody's knowledge."""
    ops = [op for program in problem.programs for ops in program.variants for op in ops if op.identity >= 0]
    found = {op.device_us for op in ops} | {op.scale for op in ops}
    found |= {spread for program in problem.programs for spread in program.host_spread}
    for kernel in problem.kernels:
        found |= {kernel.kernel.duration_us, kernel.duration_us}
        # Not rho: of a kernel of one warp it is the share of issue slots, which a profiler shows.
        found |= {float(kernel.block[0][field]) for field in ("latency_us", "dram_bytes")}
    found |= set(problem.gaps_us.tolist())
    # Where profiles are right, they are known, and sums of them. Round numbers are found everywhere.
    known = set(problem.knowledge.duration_us.tolist()) | set(problem.knowledge.gap_us.tolist())
    if problem.scenario.profiles == ProfileError():
        known |= {op.left_us for op in ops}
    return {number for number in found - known if round(number, 2) != number}


@pytest.mark.long
@pytest.mark.parametrize(("device", "name", "wrong", "horizon_us"), CASES)
def test_neither_true_numbers_nor_the_seed_nor_later_arrivals_are_given(
    device: str, name: str, wrong: dict[str, float], horizon_us: float
) -> None:
    watcher, episode = watched(device, name, wrong, horizon_us)
    truth = true_numbers(episode.problem)
    assert len(truth) > 100
    assert len(watcher.seen) > 10
    for given in (watcher.told, *(seen for _, seen in watcher.seen)):
        assert not {given[number]: number for number in truth & set(given)}
    for seed in (SEED, WRONG["seed"]):
        assert seed not in watcher.told
        assert not any(seed in seen for _, seen in watcher.seen)
    arrivals = np.unique(episode.timeline.jobs.column("arrived_us"))
    assert len(arrivals) > 3
    assert not {float(time) for time in arrivals if time > 0.0} & set(watcher.told)
    for now, seen in watcher.seen:
        assert not {float(time) for time in arrivals if time > now} & set(seen)


def test_the_walk_finds_what_is_hidden() -> None:
    problem = build_problem(load_scenario("Toy"))
    device = ReferenceDevice()
    for hidden in (
        [problem],
        {"a": (problem.kernels[0],)},
        functools.partial(print, problem.scenario),
        device.advance,
        lambda: problem,
        np.array([problem.programs[0]], object),
    ):
        with pytest.raises(AssertionError, match="is a"):
            numbers_in(hidden, "it")
    assert 3.25 in numbers_in(np.arange(14.0).reshape(2, 7)[:1] / 4.0 + 3.25, "array")
    assert 13.0 in numbers_in(np.arange(14.0)[:2], "array"), "an array shows what it is a part of"
    assert SEED in numbers_in(np.random.default_rng([1, SEED]), "rng")


def test_a_view_does_not_outlive_its_device() -> None:
    device = ReferenceDevice()
    view = device.reset(build_problem(load_scenario("Toy")), 0)
    assert view is not None
    assert len(view.pending) > 0
    del device
    import gc

    gc.collect()
    assert len(view.pending) > 0, "what was read stays"
    with refused(GpuschedError, "before"):
        view.running  # noqa: B018
