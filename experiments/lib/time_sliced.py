"""Processes that take turns on a GPU, as recorded and simulated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import recorded_turns, situation, tenant, turnarounds_us


@dataclass(frozen=True, slots=True)
class Turns:
    """Mean times of an iteration (us) of two processes."""

    recorded_us: tuple[float, ...]
    alone_us: tuple[float, ...]
    simulated_us: tuple[float, ...]

    @property
    def slowdowns(self) -> list[tuple[float, float]]:
        """Simulated and recorded time over that alone, of each."""
        together = zip(self.simulated_us, self.recorded_us, strict=True)
        return [(s / us, r / us) for (s, r), us in zip(together, self.alone_us, strict=True)]


@dataclass(frozen=True, slots=True)
class TimeSliced:
    """A recorded pair; host times are scaled to the processes' speed alone, as recorded on the same host."""

    recording: str
    """Name of a measurement file."""
    networks: tuple[str, ...]
    """Workloads of a pair in it."""
    horizon_us: float = math.inf
    first_us: float | None = None
    """It ends when the first network has run as many iterations as take this long alone."""
    skip: int = 0
    """So many first iterations do not count."""

    def run(self, device: str) -> Turns:
        recorded_us, alone_us = zip(*recorded_turns(self.recording)[self.networks], strict=True)
        tenants = [tenant(name, iteration_us=us) for name, us in zip(self.networks, alone_us, strict=True)]
        if self.first_us is not None:
            tenants[0]["jobs"] = math.ceil(self.first_us / alone_us[0])
        episode = play("time-slicing", situation(tenants, horizon_us=self.horizon_us), seed=0, device=device)
        took = turnarounds_us(episode, self.skip)
        return Turns(recorded_us, alone_us, tuple(float(each.mean()) for each in took))
