"""How the requests of a tenant fared in an episode, and how much work it got done."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.episodes.session import Episode
from gpusched_env.experiments.lib.recorded import turnarounds_us

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFigures:
    """NaN where nothing was completed."""

    requests: int = 0
    """Completed ones, the first (cold) one left out."""
    turnaround_us: float = math.nan
    """Mean over them."""
    turnaround_p99_us: float = math.nan
    variation: float = math.nan
    """Standard deviation of the turnarounds over their mean."""
    waiting_us: float = math.nan
    """Per request: time that its kernels were next in their stream before their first block started."""
    lengthening_us: float = math.nan
    """Per request: time that its kernels ran longer than alone."""
    kernels: float = math.nan
    """Per request."""


def requests_of(episode: Episode, tenant: int) -> dict[str, Any]:
    """Figures of :class:`RequestFigures` for a tenant (its row); none if it completed nothing.

    The episode was recorded with detail ``kernels`` or more.
    """
    took = turnarounds_us(episode, skip=1)[tenant]
    if not len(took):
        return {}
    kernels = finished_kernels(episode, tenant)
    timing = episode.problem.gpu.timing
    reached_us = kernels.launched_us + timing.launch_latency_us
    after_us = kernels.ended_us.shift(fill_value=-math.inf) + timing.stream_gap_us
    waited_us = (kernels.started_us - np.maximum(reached_us, after_us)).clip(lower=0.0)
    longer_us = kernels.ended_us - kernels.started_us - kernels.profiled_us
    begun = kernels.job.nunique()
    return {
        "requests": len(took),
        "turnaround_us": float(took.mean()),
        "turnaround_p99_us": float(np.percentile(took, 99)),
        "variation": float(took.std() / took.mean()),
        "waiting_us": float(waited_us.sum() / begun),
        "lengthening_us": float(longer_us.sum() / begun),
        "kernels": len(kernels) / begun,
    }


def work_rate(episode: Episode, tenant: int) -> float:
    """Profiled device time of a tenant's finished kernels over the length of the episode."""
    return float(finished_kernels(episode, tenant).profiled_us.sum()) / episode.end_us


def finished_kernels(episode: Episode, tenant: int) -> DataFrame:
    """Finished kernels of a tenant (its row) in order of issue: columns of the timeline, and their profiled duration.

    The episode was recorded with detail ``kernels`` or more.
    """
    kernels = frame(episode.timeline.kernels.dict())
    kernels = kernels[kernels["tenant"] == tenant].sort_values("id", ignore_index=True)
    profiled_us = np.array([profile.duration_us for profile in episode.problem.kernels])
    return kernels.assign(profiled_us=profiled_us[kernels["identity"].astype(int)])
