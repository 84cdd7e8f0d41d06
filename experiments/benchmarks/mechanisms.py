"""How fast the compiled device is: tiles and CPU cores, and how a decision grows with grids, SMs and tenants."""

from __future__ import annotations

import msgspec
import numpy as np

from gpusched_env.baselines.cusync import CuSync, Policy
from gpusched_env.devices.compiled.layout import OVER
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.observations import RUNNING_SLOTS
from gpusched_env.envs.setup import lay_out
from gpusched_env.episodes.session import begin
from gpusched_env.errors import InputError
from gpusched_env.experiments.benchmarks.timing import Elapsed, Measurement, Stopwatch, each, timed
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario, override
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.tenant import Backlog, Tenant
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

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


GPU = "h100-sxm"
SMS = 132
BLOCK_US = 20.0
"""About the time of a block alone on an SM."""
THREADS = (256, 128)
"""Threads of a block, of the first and of the second kernel."""
KERNELS_A_JOB = 20


def made_up_problem(*, blocks: int = 1000, sms: int = SMS, tenants: int = 2, kernels: int = 2000) -> Problem:
    """A problem with ``kernels`` launches of grids of ``blocks`` blocks in all."""
    gpu = load_gpu(GPU)
    more = sms / gpu.sms
    if sms != gpu.sms:
        gpu = msgspec.structs.replace(
            gpu,
            sms=sms,
            sm_order="linear",
            dram_bytes_per_us=gpu.dram_bytes_per_us * more,
            l2_bytes=int(gpu.l2_bytes * more),
        )
    shapes = [
        Kernel(
            name=f"threads_{threads}",
            grid=(blocks, 1, 1),
            block=(threads, 1, 1),
            registers=32,
            duration_us=BLOCK_US * -(-blocks * threads // (gpu.limits.threads * sms)),
            kind="mixed",
        )
        for threads in THREADS
    ]
    ops = [Op(OpKind.KERNEL, 1.0, i % 2, shapes[i % 2].duration_us) for i in range(KERNELS_A_JOB)]
    workload = Workload(
        name="made-up",
        gpu=GPU,
        source="made up",
        kernels=tuple(shapes),
        variants=(Variant(ops=(*ops, Op(OpKind.SYNC))),),
        iteration_us=(1e3,),
    )
    jobs = max(1, kernels // (KERNELS_A_JOB * tenants))
    scenario = Scenario(
        name="made-up",
        summary="scaling",
        gpu=GPU,
        tenants=tuple(
            Tenant(name=f"t{i}", workload=workload.name, arrivals=Backlog(), jobs=jobs) for i in range(tenants)
        ),
        horizon_us=1e12,
        stream_priorities=(0,),
        variation=False,
    )
    return build_problem(scenario, gpu=gpu, workloads={workload.name: workload})


def decisions(problem: Problem) -> Measurement:
    """A whole episode that launches whatever can be launched, and waits otherwise."""
    layout = ActionLayout.of(problem.scenario, len(problem.programs), 8)
    batch = EnvBatch(1, layout, wait_us=1e9)
    launches = batch.masks[0, 1:]

    def begin() -> None:
        batch.begin(0, problem, 0)
        batch.run()

    actions: list[int] = []
    begin()
    while not batch.devices[0].done:
        actions.append(1 + int(launches.argmax()) if launches.any() else 0)
        batch.step(actions[-1])
    chosen = np.array(actions)[:, np.newaxis]
    return timed(each(batch.step, chosen), len(chosen), begin)
