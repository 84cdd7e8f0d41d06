"""What one run of a scheduler on a device leaves behind, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.timeline import Timeline

if TYPE_CHECKING:
    from gpusched_env.scheduling.view import View


@dataclass(frozen=True)
class PlayedEpisode:
    """What figures, charts and films are made of; :class:`~gpusched_env.episodes.session.Episode` has these."""

    problem: Problem
    seed: int
    timeline: Timeline
    costs: Costs
    end_us: float
    """Simulated time at the end."""
    done: bool
    """The workload was completed or rejected (otherwise the horizon or an interrupt ended the run)."""
    decisions: int
    """Commands other than ``Wait``."""
    wall_s: float
    last: View | None = None
    """The state at the end, where pictures are drawn of it (detail ``kernels`` and ``blocks``)."""
