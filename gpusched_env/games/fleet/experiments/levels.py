"""How the GPUs of a fleet are simulated: by rates, or block by block; and small fleets that both can run.

Programs are the five recorded ones that the rate model is fitted to: batches of inference as CUDA graphs with pauses,
and eager training. Their times alone are those of the simulated device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.names import new_device, new_scheduler
from gpusched_env.experiments.lib.recorded import RECORDED_ON
from gpusched_env.games.fleet.blocks import Blocks
from gpusched_env.games.fleet.experiments.cells import INFERENCE, TRAINING, alone_us, utilisation
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.rates import shipped_rates
from gpusched_env.games.fleet.workload.generated import SLO_STRETCH
from gpusched_env.games.fleet.workload.jobs import JOB
from gpusched_env.scheduling.device import OpenDevice
from gpusched_env.scheduling.scheduler import Scheduler

S: Final = 1_000_000
"""A second, in microseconds."""
SCHEDULERS: Final = {
    "shared": "mps",
    "gpucolo": "gpucolo(slope_ms=-0.6,period_s=0.25,outer=0,first_share=100,goal_of_served=true)",
}
"""What runs on each GPU for a control of the rate model. GPUColo's inner tier acts every quarter of a second, as jobs
stay for seconds; programs are some twenty times as short as the paper's. Its outer tier, every 100 s, does not act."""


@dataclass(frozen=True)
class BlockLevel:
    """Makes what simulates the GPUs of a fleet block by block; can be sent to other processes."""

    device: str = "compiled"
    seed: int = 0
    variation: bool = False
    scheduler: str = ""
    """On each GPU, whatever the control; else that of :data:`SCHEDULERS`."""

    def __call__(self, problem: FleetProblem) -> Blocks:
        """For one run.

        Raises:
            InputError: a job has no program that its GPUs can run.
        """
        return Blocks(problem, self._device, self._scheduler, self.seed, variation=self.variation)

    def _device(self) -> OpenDevice:
        return cast("OpenDevice", new_device(self.device))

    def _scheduler(self, control: str) -> Scheduler:
        if self.scheduler:
            return new_scheduler(self.scheduler)
        if control not in SCHEDULERS:
            raise InputError(
                f"block by block no scheduler stands for the control {control!r}; there are {', '.join(SCHEDULERS)}"
            )
        return new_scheduler(SCHEDULERS[control])


@dataclass(frozen=True)
class SmallFleet:
    """A fleet of seconds: the jobs of a seed."""

    gpus: int = 16
    jobs: int = 40
    seconds: float = 5.0
    report_us: int = S // 2
    restart_us: int = S // 2
    inference_to_training: float = 3.0
    device: str = "compiled"
    """Whose times alone jobs have."""
    rates: str = "block-level"
    """Of :func:`~gpusched_env.games.fleet.rates.shipped_rates`."""

    def problem(self, seed: int) -> FleetProblem:
        """Half of the jobs are there at the start; the others come within two thirds of the time."""
        rng = np.random.default_rng(seed)
        horizon_us = round(self.seconds * S)
        arrival_us = np.sort(np.where(np.arange(self.jobs) < self.jobs // 2, 0.0, rng.random(self.jobs)))
        rows, programs = [], []
        for at in arrival_us.tolist():
            asked = rng.random() < self.inference_to_training / (1.0 + self.inference_to_training)
            program = str(rng.choice(INFERENCE if asked else TRAINING))
            step_us = alone_us(program, self.device)
            activity = float(rng.uniform(0.1, 0.5)) if asked else utilisation(program, self.device)
            work_us = self.seconds * S * float(rng.uniform(0.1, 0.5))
            memory_gb = float(rng.uniform(2.0, 10.0) if asked else rng.uniform(10.0, 30.0))
            slo_us = step_us * SLO_STRETCH if asked else 0.0
            arrives_us = int(at * horizon_us * 2.0 / 3.0)
            rows.append((arrives_us, int(not asked), work_us, activity, memory_gb, step_us, slo_us))
            programs.append(program)
        kinds = (GpuKind("H100", self.gpus, 80.0, spec=RECORDED_ON),)
        times = {"report_us": self.report_us, "restart_us": self.restart_us}
        rates = shipped_rates(self.rates)
        return FleetProblem(
            f"{self.jobs} jobs, seed {seed}", np.array(rows, JOB), kinds, rates, horizon_us, programs=tuple(programs),
            **times,
        )  # fmt: skip
