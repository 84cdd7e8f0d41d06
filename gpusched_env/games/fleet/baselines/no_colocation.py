"""No co-location: what GPUColo (Chen, Subramaniyan, Wang, ICDCS 2024) compares its fleet with first."""

from __future__ import annotations

from gpusched_env.games.fleet.baselines.packing import Packing
from gpusched_env.games.fleet.windows import PackingRule


class NoColocation(Packing):
    """No co-location: each job has a GPU of its own."""

    control = "shared"
    rule = PackingRule(most_jobs=1)
