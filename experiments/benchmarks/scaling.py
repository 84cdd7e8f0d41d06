"""How the compiled device's cost of a decision grows with grids, SMs and tenants, on made-up problems.

Tenants launch two kernels in turn, whose blocks have different shapes, through a backlog of jobs; every decision is
a launch as soon as it is legal.
"""

from __future__ import annotations

import msgspec
import numpy as np

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.experiments.benchmarks.timing import Measurement, each, timed
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.workload.arrivals import Backlog
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

GPU = "h100-sxm"
SMS = 132
BLOCK_US = 20.0
"""About the time of a block alone on an SM."""
THREADS = (256, 128)
"""Of a block, of the two kernels."""
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
