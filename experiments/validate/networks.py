"""Networks as tenants that work back to back: alone, beside each other, as CUDA graphs on streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.lib.play import play
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import make_scenario

RECORDED_ON = "h100-sxm"
SCHEDULERS = {"streams": "pass-through", "priority": "priority-streams"}
"""Which baseline is a recorded mode of sharing."""


def tenant(workload: str, **fields: Any) -> dict[str, Any]:
    """A tenant of a scenario that begins a job of ``workload`` whenever it has finished one."""
    return {"name": workload, "workload": workload, "arrivals": {"kind": "closed-loop"}, **fields}


def turnarounds_us(
    tenants: list[dict[str, Any]], scheduler: str, horizon_us: float, *, variation: bool = True, gpu: str = RECORDED_ON
) -> list[NDArray[np.float64]]:
    """Turnarounds of each tenant's jobs, the first (cold) job left out.

    Args:
        tenants: as in a scenario's file.
        scheduler: name of a baseline.
        horizon_us: length of the episode.
        variation: whether host times and durations vary as recorded.
        gpu: name, or path of a specification.
    """
    scenario = make_scenario(
        {
            "name": "recording",
            "summary": "a recorded situation",
            "gpu": gpu,
            "tenants": tenants,
            "horizon_us": horizon_us,
            "stream_priorities": [0, -5],
            "variation": variation,
        }
    )
    jobs = play(scheduler, build_problem(scenario), seed=0).timeline.jobs.dict()
    took = jobs["completed_us"] - jobs["arrived_us"]
    return [took[(jobs["tenant"] == i) & (jobs["job"] > 0)] for i in range(len(tenants))]


def graph_turnarounds_us(networks: list[str], gpu: str, scheduler: str, horizon_us: float) -> list[float]:
    """Median turnarounds of networks that are replayed as CUDA graphs, each one back to back on its stream.

    Urgency falls along the list.
    """
    tenants = [{**tenant(name, launch="graph", priority=i), "name": f"{name} ({i})"} for i, name in enumerate(networks)]
    return [float(np.median(took)) for took in turnarounds_us(tenants, scheduler, horizon_us, gpu=gpu)]
