"""What was recorded on an H100 with several programs at once, and problems to simulate the same."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.episodes.session import Episode
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.workload import Workload

RECORDED_ON = "h100-sxm"


def measurements(name: str, gpu: str = "h100") -> list[dict[str, Any]]:
    """Rows of a shipped measurement file (JSON lines); a header without the field ``what`` is left out.

    ``gpu``: the folder of those that were recorded on it.
    """
    text = (resources.files("gpusched_env.data") / "measurements" / gpu / name).read_text()
    return [row for row in map(json.loads, text.splitlines()) if "what" in row]


def recorded_turns(name: str) -> dict[tuple[str, ...], list[tuple[float, float]]]:
    """By pairs of workloads that ran as time-sliced processes: mean times of an iteration, each together and alone.

    ``name``: of a measurement file.
    """
    rows = measurements(name)
    alone_us = {row["tasks"][0]["model"]: row["tasks"][0]["mean_us"] for row in rows if row["what"] == "alone"}
    return {
        tuple(task["model"] for task in row["tasks"]): [(t["mean_us"], alone_us[t["model"]]) for t in row["tasks"]]
        for row in rows
        if row["what"] == "time_sliced"
    }


def tenant(workload: str, **fields: Any) -> dict[str, Any]:
    """A tenant that runs a recorded workload without a pause; ``fields`` replace others."""
    return {"name": workload, "workload": workload, "arrivals": {"kind": "closed-loop"}, **fields}


def situation(
    tenants: Sequence[Mapping[str, Any]],
    gpu: str = RECORDED_ON,
    horizon_us: float = math.inf,
    workloads: Mapping[str, Workload] | None = None,
    **fields: Any,
) -> Problem:
    """Tenants on a GPU.

    Args:
        tenants: fields of each, see :func:`tenant`.
        gpu: a name; workloads that were recorded on another one are carried over.
        horizon_us: when it ends; else when all jobs are done.
        workloads: that tenants may name besides the shipped ones.
        fields: further ones of the scenario.
    """
    scenario = make_scenario({"name": "situation", "gpu": gpu, "tenants": list(tenants), "horizon_us": 1.0, **fields})
    # Files must name a finite horizon, devices need none.
    return build_problem(msgspec.structs.replace(scenario, horizon_us=horizon_us), workloads=workloads)


def turnarounds_us(episode: Episode, skip: int = 0) -> list[NDArray[np.float64]]:
    """Turnarounds of each tenant's completed jobs, shape ``(jobs,)``, without its first ``skip`` (cold) ones."""
    jobs = episode.timeline.jobs.dict()
    took = jobs["completed_us"] - jobs["arrived_us"]
    return [took[(jobs["tenant"] == row) & (jobs["job"] >= skip)] for row in range(len(episode.problem.programs))]
