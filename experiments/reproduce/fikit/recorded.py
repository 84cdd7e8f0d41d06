"""Default sharing as measured: pairs of torchvision networks that an H100 switched between.

The denominator of every speed-up is simulated; here it is held against
``data/measurements/h100/torchvision_time_slicing.jsonl``. Another host than that of the workloads ran them, so host
times are scaled to each network's time alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.experiments.lib.names import new_device
from gpusched_env.experiments.reproduce.fikit.setting import CONTINUOUS, DEFAULT, NETWORKS, RECORDED_ON
from gpusched_env.experiments.reproduce.fikit.simulate import SEED, outcome
from gpusched_env.experiments.reproduce.recordings import measurements
from gpusched_env.experiments.validate.networks import tenant
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scheduling.session import run_episode

FILE = "torchvision_time_slicing.jsonl"
LENGTH_US = 60_000.0
"""The first network runs as many requests as take this long alone."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """Two networks that take turns; slowdowns are times of a request over that alone, of the first and second."""

    networks: tuple[str, str]
    recorded: tuple[float, float]
    simulated: tuple[float, float]

    @property
    def errors(self) -> tuple[float, float]:
        """Relative, signed."""
        first, second = (s / r - 1.0 for s, r in zip(self.simulated, self.recorded, strict=True))
        return first, second


def recorded_pairs() -> list[dict[str, Any]]:
    """The recorded pairs, each with the networks' times alone as ``alone_us``."""
    rows = measurements(FILE)
    alone_us = {row["tasks"][0]["model"]: row["tasks"][0]["mean_us"] for row in rows if row["what"] == "alone"}
    return [
        {**row, "alone_us": [alone_us[task["model"]] for task in row["tasks"]]}
        for row in rows
        if row["what"] == "time_sliced"
    ]


@dataclass(frozen=True, slots=True)
class RunSliced:
    """The task of worker processes: one recorded pair."""

    device: str

    def __call__(self, row: dict[str, Any]) -> Sliced:
        models, alone_us = [task["model"] for task in row["tasks"]], row["alone_us"]
        tenants = [tenant(model, iteration_us=us) for model, us in zip(models, alone_us, strict=True)]
        tenants[0]["jobs"] = math.ceil(LENGTH_US / alone_us[0])
        scenario = {"name": "sliced", "summary": "a recorded pair", "gpu": RECORDED_ON, "tenants": tenants}
        problem = build_problem(make_scenario({**scenario, "horizon_us": math.inf}))
        scheduler, options = CONTINUOUS[DEFAULT]
        device = new_device(self.device)
        found = outcome(run_episode(make_scheduler(scheduler, **options), problem, device, SEED, record="kernels"))
        names = {workload: name for name, workload in NETWORKS.items()}
        return Sliced(
            networks=(names[models[0]], names[models[1]]),
            recorded=(row["tasks"][0]["mean_us"] / alone_us[0], row["tasks"][1]["mean_us"] / alone_us[1]),
            simulated=(found.high_us / alone_us[0], found.low_us / alone_us[1]),
        )
