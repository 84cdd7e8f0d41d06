"""Things a second of what the compiled devices do beside kernels: tiles and CPU cores.

Decisions are recorded or drawn beforehand, so what is measured is the device and the environment around it.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.cusync import CuSync, Policy
from gpusched_env.devices.compiled.layout import OVER
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.observations import RUNNING_SLOTS
from gpusched_env.envs.setup import lay_out
from gpusched_env.episodes.session import begin
from gpusched_env.errors import InputError
from gpusched_env.experiments.benchmarks.timing import Elapsed, Measurement, Stopwatch
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario, override

PAIRS = "mlp(model=gpt3_v100,tokens=1024)"
"""A pair of products; the workload whose grids cuSync's speed is stated for."""
WITH_CORES = "SharedMemory"
PERIOD_US = 1000.0
WAIT_US = 1e6


def pairs(policy: Policy, count: int, copies: int, threads: int) -> Measurement:
    """``count`` pairs of products in each of ``copies`` environments, one after the other, synchronised alike."""
    model = {"workload": PAIRS, "arrivals": {"kind": "backlog"}, "jobs": count}
    scenario = override(
        load_scenario("DependentKernels"), tenants={"model": model}, horizon_us=1e9, variation=False, workload_sets=None
    )
    env = GpuSchedulingEnv(scenario, commands=scenario.commands)
    env.reset(seed=0)
    scheduler, problem = CuSync(policy), env.problem
    begin(scheduler, problem, 0)
    actions: list[int] = []
    over = False
    while not over:
        view = env.view
        command = scheduler.decide(view)
        action = env.layout.action_of(command, view, streams=problem.streams)
        if action is None:
            raise InputError(f"{scenario.name} does not offer {command}")
        actions.append(action)
        _, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    batch = EnvBatch(copies, env.layout, wait_us=WAIT_US, threads=threads)

    def measure() -> Elapsed:
        _begin(batch, problem)
        with Stopwatch() as watch:
            for action in actions:
                batch.step(action)
        return watch.timing(count * copies)

    return measure


def periods_of_cores(copies: int, threads: int) -> Measurement:
    """Periods of a regulator: an episode of a GPU beside the scenario's cores, with random budgets."""
    scenario = load_scenario(WITH_CORES)
    problem = build_problem(scenario)
    layout = lay_out(scenario, slots=None, running_slots=RUNNING_SLOTS, interval_us=scenario.interval_us)
    batch = EnvBatch(copies, layout, wait_us=WAIT_US, threads=threads)

    def measure() -> Elapsed:
        _begin(batch, problem)
        rng, watch = np.random.default_rng(0), Stopwatch()
        while (batch.reasons != OVER).any():
            actions = (rng.random(batch.masks.shape) * batch.masks).argmax(axis=1)
            with watch:
                batch.step(actions)
        return watch.timing(round(copies * scenario.horizon_us / PERIOD_US))

    return measure


def _begin(batch: EnvBatch, problem: Problem) -> None:
    for e in range(batch.count):
        batch.begin(e, problem, 0)
    batch.run()
