"""The ideal that knows what a sleep does: training sleeps just so long that inference meets its objective.

Chen, Subramaniyan and Wang (GPUColo, ICDCS 2024) show it in their motivating example: inference ends at its objective,
and training as early as that allows. Here the pause of training is searched by simulating the very episode, arrivals
and durations included: a reference, and no scheduler that there could be. Training has all SMs, and nothing restarts.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusched_env.baselines.colocated import S
from gpusched_env.baselines.open_loop import OpenLoop
from gpusched_env.baselines.ranges import Ranges
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.reads import TRUTH, Reads


class SloAwareIdeal(OpenLoop):
    """Reference: the shortest constant pause of training with which inference meets its objective on average."""

    reads: Reads = (*OpenLoop.reads, TRUTH)
    clairvoyant = True
    ranges: ClassVar[Ranges] = {}

    def __init__(self, most_s: float = 1.0, steps: int = 7) -> None:
        """
        Args:
            most_s: the longest pause that it considers, seconds (above 0 to 3600).
            steps: how often the range is halved, each time at the price of an episode (0 to 50).

        Raises:
            InputError: a value is out of range.
        """
        if not 0.0 < most_s <= 3600.0 or not 0 <= steps <= 50:
            raise InputError(f"slo-aware-ideal: most_s {most_s}, steps {steps}; must be above 0 to 3600, 0 to 50")
        super().__init__()
        self._most_s, self._steps = most_s, steps

    def see(self, truth: Problem, seed: int) -> None:
        """Find the shortest pause with which inference meets its objective."""
        low_s, high_s = 0.0, self._most_s
        pause_s = low_s
        if not _in_time(truth, seed, low_s):
            for _ in range(self._steps):
                middle_s = (low_s + high_s) / 2.0
                if _in_time(truth, seed, middle_s):
                    high_s = middle_s
                else:
                    low_s = middle_s
            pause_s = high_s
        self._knobs = pause_s * S, 100.0, 100.0


def _in_time(truth: Problem, seed: int, pause_s: float) -> bool:
    """Whether batches meet the mean of the objectives on average with a pause of training."""
    # It brings in Numba, which a list of schedulers does not need.
    from gpusched_env.devices.compiled.device import CompiledDevice

    goals = {
        row: program.tenant.slo_us for row, program in enumerate(truth.programs) if program.tenant.slo_us is not None
    }
    timeline = run_episode(OpenLoop(pause_s), truth, CompiledDevice(), seed).timeline
    took_us = np.concatenate([timeline.answer_us(row) for row in goals] or [np.empty(0)])
    return not len(took_us) or bool(took_us.mean() <= np.mean(list(goals.values())))
