"""What all parts of the device share in an episode."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.devices.reference.clock import Clock
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import Timeline


@dataclass(frozen=True)
class Setting:
    """Problem, clock and timeline of an episode."""

    problem: Problem
    clock: Clock
    timeline: Timeline
