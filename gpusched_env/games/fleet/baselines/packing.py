"""What dispatchers have in common that place each job for good by a packing rule."""

from __future__ import annotations

from gpusched_env.games.fleet.dispatcher import WAIT, Command, FleetView, Place
from gpusched_env.games.fleet.problem import GpuKind
from gpusched_env.games.fleet.windows import PackingRule


class Packing:
    """Jobs go in order of arrival to where the rule says; where it has no GPU they wait, and later ones behind them."""

    control: str = "shared"
    rule: PackingRule = PackingRule()

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        """Nothing to remember."""

    def decide(self, view: FleetView) -> Command:
        """Place the job that has waited longest."""
        if len(view.waiting) == 0:
            return WAIT
        job = int(view.waiting[0])
        gpu = view.choose(job, self.rule)
        return WAIT if gpu < 0 else Place(job, gpu)
