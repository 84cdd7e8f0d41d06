"""The hand-solved problem of docs/toy.md: every figure there, and the optimum by exhaustive search."""

from __future__ import annotations

import pytest

from gpusched_env.baselines.registry import make_scheduler, scheduler_names
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import DeadlockError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Wait
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.reward import cost_terms, total_cost
from gpusched_env.scheduling.view import View

BATCH_SHORT, BATCH_LONG, URGENT_NARROW, URGENT_WIDE = range(4)
"""Launch ids: tenants issue all their kernels at time 0, in the scenario's order."""
OPTIMUM = 1.040
FIXED = {
    "pass-through": 1.230,
    "priority-streams": 1.230,
    # No kernel needs the tiles of another.
    **dict.fromkeys(("cusync", "cusync-in-forms", "cusync-predicted", "cusync-search", "stream-k"), 1.230),
    # One job a tenant, of which nothing is known before: all on one stream, one after the other.
    **dict.fromkeys(("default-stream", "model-wise", "eclip"), 1.830),
    # Each tenant's narrow kernels have half of the SMs, which they had anyway; the wide one goes where there is room.
    **dict.fromkeys(("kernel-wise", "kernel-wise-ioctl"), 1.230),
    # There are no cores of a CPU.
    **dict.fromkeys(("unlocked", "bwlock", "static-budgets"), 1.230),
    "mps": 1.230,
    # There is one priority. With half of the SMs the wide kernel takes two waves, on the two that it has anyway.
    **dict.fromkeys(("open-loop", "conservative", "gslice", "gpucolo", "slo-aware-ideal"), 1.230),
    "exclusive": 1.140,
    "sjf": 1.140,
    "sjf-clairvoyant": 1.140,
    "time-slicing": 1.830,
    "fifo": 1.830,
    # 400 us and 210 us: batch_long stops 0.1 us after the wide kernel has come, which has two of its SMs at once and
    # the others 0.262 us later, when they are saved. It may do what an agent may not.
    "preemptive-priority": 0.3999 + 3 * 0.210362144,
    # Its own plans say which job goes first, not which kernel waits; it finds that rule among those that it tries.
    "hindsight": 0.3999 + 3 * 0.210362144,
    **dict.fromkeys(("wspt", "srpt", "edf", "llf", "triage", "moore"), 1.230),
    "orion": 1.230,
    "reef": 1.040,
    "tally": 1.240,
    "xsched": 1.140,
    # Batch is there first, and done within a slice, as is noticed 20 us later. Under LAS a job that has run nothing
    # goes before one that has, when a kernel has ended; the long one is in flight by then, and the wide one waits.
    "xsched-partition": 0.300 + 3 * 0.530,
    **dict.fromkeys(("cfs", "mlfq"), 1.830),
    "las": 0.300 + 3 * 0.400,
    "lithos": 1.140,
    "fikit": 1.14,
    "wfq": 1.440,
    "clockwork": 1.140,
    # Neither tenant has an objective, and the older job goes first, as under clockwork.
    "nexus": 1.140,
    # Kernels that do not fit go at once, two of them, as on the GPU without a scheduler.
    "paella": 1.230,
    # The first period is longer than the episode: urgent jobs as if alone, the other one is never done.
    "tgs": 2.930,
    # Urgent jobs are there first; the other one is launched when the last of them is over.
    "gpreempt": 1.140,
    # Neither tenant has an objective: whoever earns more goes first, by itself.
    "plan": 1.140,
}

NEVER_DONE = {"tgs"}
"""Those under which a job is left at the horizon."""


@pytest.fixture(scope="module")
def problem() -> Problem:
    return build_problem(load_scenario("Toy"))


def replay(problem: Problem, plan: tuple[Command, ...]) -> tuple[Device, View | None]:
    """The device after ``plan``, from the start of an episode."""
    device = make_device("compiled")
    view = device.reset(problem, 0, record="kernels")
    for command in plan:
        assert view is not None, f"the episode ended before {command}"
        device.apply(command)
        view = device.advance()
    return device, view


def cost(problem: Problem, device: Device) -> float:
    return total_cost(problem, cost_terms(problem, device.costs))


def spans(device: Device) -> dict[int, tuple[float, float]]:
    """Start and end of each kernel by launch id."""
    kernels = device.timeline.kernels.dict()
    rows = zip(kernels["id"], kernels["started_us"], kernels["ended_us"], strict=True)
    return {int(i): (round(start, 6), round(end, 6)) for i, start, end in rows}


def test_profiles_are_the_hand_written_ones(problem: Problem) -> None:
    assert [(k.kernel.name, k.duration_us, k.sms) for k in problem.kernels] == [
        ("batch_short", 100.0, 2),
        ("batch_long", 200.0, 2),
        ("urgent_narrow", 110.0, 2),
        ("urgent_wide", 100.0, 4),
    ]
    assert [program.alone_us for program in problem.programs] == [300.0, 210.0]


def test_the_best_schedule_holds_the_long_kernel_back(problem: Problem) -> None:
    """Launch all but the long kernel at 0, wait for two completions (at 100 and 110 us), then launch it.

    With nothing left to decide the device runs to the end by itself.
    """
    plan = (Launch(BATCH_SHORT), Launch(URGENT_NARROW), Launch(URGENT_WIDE), WAIT, WAIT, Launch(BATCH_LONG))
    device, view = replay(problem, plan)
    assert view is None
    assert spans(device) == {
        BATCH_SHORT: (0.0, 100.0),
        URGENT_NARROW: (0.0, 110.0),
        URGENT_WIDE: (110.0, 210.0),
        BATCH_LONG: (210.0, 410.0),
    }
    assert device.done
    assert cost(problem, device) == pytest.approx(OPTIMUM, rel=1e-9)


def test_launching_at_once_makes_the_wide_kernel_wait(problem: Problem) -> None:
    device, view = replay(problem, (Launch(0), Launch(1), Launch(2), Launch(3)))
    assert view is None
    assert spans(device) == {
        BATCH_SHORT: (0.0, 100.0),
        URGENT_NARROW: (0.0, 110.0),
        BATCH_LONG: (100.0, 300.0),
        URGENT_WIDE: (110.0, 310.0),
    }
    assert cost(problem, device) == pytest.approx(1.230, rel=1e-9)


@pytest.mark.parametrize(("name", "expected"), [*FIXED.items(), ("mps(share=50)", 1.230)])
def test_fixed_rules_cost_what_the_hand_says(problem: Problem, name: str, expected: float) -> None:
    episode = run_episode(make_scheduler(name), problem, make_device("compiled"), 0)
    assert episode.done == (name not in NEVER_DONE)
    assert total_cost(episode.problem, cost_terms(episode.problem, episode.costs)) == pytest.approx(expected, rel=1e-9)


def test_every_deterministic_scheduler_is_in_the_table() -> None:
    assert set(FIXED) == set(scheduler_names(windowed=False)) - {"random"}


def test_exhaustive_search_finds_nothing_better(problem: Problem) -> None:
    """All sequences of launches and waits for an event, with a wait of 5 us at any one point."""
    costs: list[float] = []

    def search(plan: tuple[Command, ...]) -> None:
        try:
            device, view = replay(problem, plan)
        except DeadlockError:
            return
        if view is None:
            if device.done:
                costs.append(cost(problem, device))
            return
        heads = view.pending.id[view.pending.launchable > 0]
        for kernel in heads.tolist():
            search((*plan, Launch(int(kernel))))
        if len(view.running):
            search((*plan, WAIT))
            if not any(isinstance(c, Wait) and c != WAIT for c in plan):
                search((*plan, Wait(view.time_us + 5.0)))

    search(())
    assert len(costs) > 100
    assert min(costs) == pytest.approx(OPTIMUM, rel=1e-9)
    assert max(costs) > 1.8


@pytest.mark.parametrize("seed", range(20))
def test_random_never_beats_the_optimum_and_always_ends(problem: Problem, seed: int) -> None:
    episode = run_episode(make_scheduler("random"), problem, make_device("compiled"), seed)
    assert episode.done
    assert total_cost(problem, cost_terms(problem, episode.costs)) >= OPTIMUM * (1 - 1e-9)
