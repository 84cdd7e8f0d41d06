"""The episodes of a ranking: every scheduler on the same seeds of every scenario, on one or more devices."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from gpusched_env.episodes.metrics import Metrics
from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.lib.files import Figure
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.experiments.ranking.bound import ALONE, AloneProblems
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, override
from gpusched_env.scenarios.variants import scenario_variants

Workloads = Literal["own", "train", "held_out"]
"""The scenario as it is, or the variants of one of its workload sets."""


class RankedEpisode(msgspec.Struct, frozen=True):
    """One episode to run."""

    scenario: str
    """A shipped name or the path of a file."""
    variant: str
    """Name of a variant of it; the scenario's own name without one."""
    scheduler: str
    """The scheduler, or ``alone``: each tenant has the GPU alone (:mod:`gpusched_env.experiments.ranking.bound`)."""
    device: str
    seed: int


class EpisodeCost(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one episode cost, and its place in the plane of protection and throughput.

    These figures are those of :class:`~gpusched_env.episodes.metrics.Metrics`, ``None`` where an episode does not
    define them.
    """

    cell: RankedEpisode
    cost: Figure
    urgent_p99: Figure | None = None
    best_effort: Figure | None = None
    goodput_per_s: Figure | None = None
    jobs_rejected: int | None = None
    """Rejected jobs of all tenants; ``None`` in older files."""
    made: int = 0
    """Which of the result file's :class:`~gpusched_env.experiments.ranking.made.Fingerprints` it was played by."""
    again: int | None = None
    """Which of these fingerprints a replay gave the same by, to the last bit."""


def variants_of(scenario: Scenario, workloads: Workloads, gpu: str | None = None) -> list[Scenario]:
    """The scenarios that a ranking of ``scenario`` runs, each on ``gpu`` if one is given.

    Raises:
        InputError: it has no workload sets, or no such GPU is known.
    """
    found = [scenario] if workloads == "own" else scenario_variants(scenario, workloads)
    return found if gpu is None else [override(variant, gpu=gpu) for variant in found]


@dataclass(frozen=True)
class RunCell:
    """The task of worker processes."""

    scenarios: Shared[dict[tuple[str, str], Scenario]]
    """The scenarios by name and variant, as in :class:`RankedEpisode`."""

    def __call__(self, cell: RankedEpisode) -> EpisodeCost:
        scenario = self.scenarios.value[cell.scenario, cell.variant]
        if cell.scheduler == ALONE:
            return EpisodeCost(cell, self.scenarios.make(AloneProblems, scenario).cost(cell.device, cell.seed))
        problem = self.scenarios.make(build_problem, scenario)
        try:
            episode = play(cell.scheduler, problem, cell.seed, device=cell.device)
        except (IllegalCommand, DeadlockError) as error:
            raise type(error)(f"{cell.variant}, device {cell.device}: {error}") from error
        return _figures(cell, episode.metrics)


def _figures(cell: RankedEpisode, metrics: Metrics) -> EpisodeCost:
    return EpisodeCost(
        cell,
        metrics.cost,
        urgent_p99=_known(metrics.urgent_p99),
        best_effort=_known(metrics.best_effort),
        goodput_per_s=_known(metrics.goodput_per_s),
        jobs_rejected=sum(tenant.rejected for tenant in metrics.tenants),
    )


def _known(figure: float) -> float | None:
    return None if math.isnan(figure) else figure


def cells_of(
    scenarios: dict[tuple[str, str], Scenario],
    schedulers: Sequence[str],
    devices: Sequence[str],
    seeds: Sequence[int],
    bounded: Collection[str] = (),
) -> list[RankedEpisode]:
    """Every episode, problem by problem and within one seed by seed, so that an interrupt leaves equal footing.

    ``bounded``: scenarios whose cost with every tenant alone is wanted too, on the first device.
    """
    return [
        RankedEpisode(scenario, variant, scheduler, device, seed)
        for scenario, variant in scenarios
        for device in devices
        for seed in seeds
        for scheduler in [*schedulers, *([ALONE] if scenario in bounded and device == devices[0] else [])]
    ]
