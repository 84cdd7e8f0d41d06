"""Pairs of kernels that were measured with semaphores on a GPU, predicted by the simulated one.

Known are the times of both kernels alone and the costs of a post, a wait and the wait kernel. Nothing else is, so
nothing of what is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.measure.tile_rows import AloneTime, Case, CostTime, PairTime, Predicted, TileRow
from gpusched_env.experiments.measure.tile_tables import POLICIES, STREAM
from gpusched_env.hardware.specs import GpuSpec, TileCosts
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.dependent import TiledKernel, dependent

PAIR = "pair"


def predictions(rows: Sequence[TileRow], gpu: GpuSpec, device: str = "compiled") -> Iterator[Predicted]:
    """Of every case whose kernels were measured alone, together in stream order, and by a policy.

    Args:
        rows: measured.
        gpu: that they were measured on; its SMs and what synchronising costs there are those of the rows.
        device: that simulates.
    """
    costs = {row.of: row.median_us for row in rows if isinstance(row, CostTime)}
    alone = {(row.case, row.role): row.median_us for row in rows if isinstance(row, AloneTime)}
    pairs = {(row.case, row.policy): row.median_us for row in rows if isinstance(row, PairTime)}
    priced = TileCosts(
        post_us=costs.get("post", 0.0), wait_us=costs.get("wait", 0.0), wait_kernel_us=costs.get("wait-kernel", 0.0)
    )
    for case in dict.fromkeys(case for case, _ in pairs):
        if (case, STREAM) in pairs and {(case, "producer"), (case, "consumer")} <= set(alone):
            kernels = kernels_of(case, alone[case, "producer"], alone[case, "consumer"])
            problem = problem_of(case, kernels, gpu, priced)
            for policy in (STREAM, *POLICIES):
                if (case, policy) in pairs:
                    yield Predicted(
                        case=case,
                        policy=policy,
                        measured_us=pairs[case, policy],
                        predicted_us=round(play(_scheduler(policy), problem, 0, device=device).end_us, 3),
                        stream_us=pairs[case, STREAM],
                        predicted_stream_us=round(play(_scheduler(STREAM), problem, 0, device=device).end_us, 3),
                        packed_us=round(packed_us(case, kernels), 3),
                    )


def kernels_of(case: Case, producer_us: float, consumer_us: float) -> list[TiledKernel]:
    """Both kernels, by their times alone."""
    return [
        TiledKernel(rows, columns, 1, us, case.per_sm)
        for (rows, columns), us in ((case.producer, producer_us), (case.consumer, consumer_us))
    ]


def packed_us(case: Case, kernels: Sequence[TiledKernel]) -> float:
    """What the kernels would take if no slot was ever idle: nothing is quicker."""
    slots = case.sms * case.per_sm
    return sum(kernel.duration_us / kernel.waves(case.sms) * kernel.blocks / slots for kernel in kernels)


def problem_of(case: Case, kernels: Sequence[TiledKernel], gpu: GpuSpec, costs: TileCosts) -> Problem:
    """Both kernels once, on a GPU whose launches cost nothing: they are in the kernels' times."""
    timing = msgspec.structs.replace(gpu.timing, launch_latency_us=0.0, stream_gap_us=0.0, event_latency_us=0.0)
    gpu = msgspec.structs.replace(gpu, sms=case.sms, sm_order="linear", timing=timing, tiles=costs)
    workload = dependent(PAIR, gpu, kernels)
    scenario = make_scenario(
        {
            "name": "tiles", "gpu": gpu.name, "horizon_us": 1e7, "variation": False, "lookahead": 2,
            "tenants": [{"name": "model", "workload": PAIR, "arrivals": {"kind": "backlog"}, "jobs": 1}],
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=gpu, workloads={PAIR: workload})


def _scheduler(policy: str) -> str:
    if policy == STREAM:
        return "pass-through"
    return f"cusync(policy={policy},order=native,wait_kernel=true,reorder=false)"


def whole_waves(case: Case) -> tuple[float, float, int]:
    """Waves of each kernel, and of both in stream order."""
    slots = case.sms * case.per_sm
    first, second = (rows * columns / slots for rows, columns in (case.producer, case.consumer))
    return first, second, math.ceil(first) + math.ceil(second)
