"""Episodes on a real GPU with what simulation predicted of them: the file, and what is made of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.episodes.metrics import Metrics
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import MOST, Figure, encode_rows, read_struct
from gpusched_env.experiments.ranking.made import Fingerprints
from gpusched_env.reading import Label

SCHEMA = "gpusched-live/1"
DISTINCT_COSTS = 0.02
"""Relative difference of two schedulers that is no chance of one measurement."""
Duration = Annotated[float, msgspec.Meta(gt=0.0, le=MOST)]
"""A time of a job, or its ratio to another one."""


class LiveFigures(msgspec.Struct, frozen=True):
    """The figures of one episode, real or simulated; ``None`` where it does not define one."""

    turnaround_us: tuple[Duration | None, ...]
    """Mean of each tenant's jobs."""
    slowdown: tuple[Duration | None, ...]
    throughput_per_s: tuple[Figure | None, ...]
    urgent_p99: Figure | None
    best_effort: Figure | None
    makespan_us: Figure
    cost: Figure
    done: bool

    def __post_init__(self) -> None:
        if not len(self.turnaround_us) == len(self.slowdown) == len(self.throughput_per_s):
            raise ValueError("turnaround_us, slowdown and throughput_per_s must have a value for each tenant")

    @property
    def tenants(self) -> int:
        return len(self.slowdown)


def figures_of(metrics: Metrics) -> LiveFigures:
    """What is compared of an episode."""
    return LiveFigures(
        turnaround_us=tuple(_given(t.turnaround_mean_us) for t in metrics.tenants),
        slowdown=tuple(_given(t.slowdown) for t in metrics.tenants),
        throughput_per_s=tuple(_given(t.throughput_per_s) for t in metrics.tenants),
        urgent_p99=_given(metrics.urgent_p99),
        best_effort=_given(metrics.best_effort),
        makespan_us=metrics.makespan_us,
        cost=metrics.cost,
        done=metrics.done,
    )


def slowdown_of(tenant: int) -> Callable[[LiveFigures], float | None]:
    """The figure of a tenant, a row of the scenario's."""
    return lambda figures: figures.slowdown[tenant]


def _given(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


class LiveEpisode(msgspec.Struct, frozen=True):
    """One scheduler on one seed."""

    scenario: Label
    scheduler: Label
    seed: int
    decisions: int
    """Commands and waits on the GPU."""
    decision_us: Figure
    """Mean real time of the host for each."""
    decision_p99_us: Figure
    real: LiveFigures
    simulated: LiveFigures
    launch_us: Figure | None = None
    """Median real time of a launch where compiled code launches between two decisions, from when the host was free to
    when the driver had it."""
    launch_p99_us: Figure | None = None
    interval_us: Figure | None = None
    """There: mean real time of a decision for an interval, from the view to when it stood; launches went on."""

    def __post_init__(self) -> None:
        if (self.launch_us is None) != (self.launch_p99_us is None):
            raise ValueError("launch_us and launch_p99_us go together: both must be given, or none")


class KernelFits(msgspec.Struct, frozen=True):
    """How well synthetic kernels stand for a scenario's recorded ones, alone on the GPU."""

    kernels: int
    median: float
    """The median of the relative errors of durations, absolute values."""
    p90: float
    within: float
    """Share of kernels with an error of at most 5 %."""
    time: float | None = None
    """Time of one job of every tenant's, in kernels alone, over the recorded one: whether errors cancel."""


class Live(msgspec.Struct, kw_only=True):
    """What was run, and how it compares."""

    schema: str = SCHEMA
    command: str
    versions: dict[str, str]
    product: str
    """Name of the GPU, as its driver says."""
    gpu: str
    """Name of the specification that simulation has of the GPU."""
    settings: list[str] = []
    seeds: list[int]
    tenants: dict[Label, list[Label]] = {}
    """Names of the tenants, by scenario."""
    fits: dict[str, KernelFits] = {}
    left_out: dict[str, dict[str, str]] = {}
    """Schedulers that ask for what a real GPU does not do here, or failed, and why, by scenario."""
    made: Fingerprints = Fingerprints()
    """Hashes of what the episodes were made by: the simulated ones' device, ``cuda`` for the real one, schedulers, and
    scenarios with their settings."""
    episodes: list[LiveEpisode] = []

    def __post_init__(self) -> None:
        for episode in self.episodes:
            tenants = len(self.tenants.get(episode.scenario, episode.real.slowdown))
            if not tenants == episode.real.tenants == episode.simulated.tenants:
                raise ValueError(f"an episode of {episode.scenario} has other tenants")

    def title(self, scenario: str) -> str:
        """A scenario with what was set for all of it, and whether a tenant's kernels were a library's."""
        whole = [setting for setting in self.settings if "." not in setting.partition("=")[0]]
        library = ["library kernels"] if any(setting.endswith(".kernels=library") for setting in self.settings) else []
        return ", ".join([scenario, *whole, *library])

    def of(self, scenario: str) -> dict[str, list[LiveEpisode]]:
        """Episodes of a scenario by scheduler."""
        found: dict[str, list[LiveEpisode]] = {}
        for episode in self.episodes:
            if episode.scenario == scenario:
                found.setdefault(episode.scheduler, []).append(episode)
        return found

    def tau(self, scenario: str, figure: Callable[[LiveFigures], float | None]) -> float:
        """Kendall's tau-b between measured and predicted order of the schedulers, by the mean of a figure; NaN with
        fewer than three of them."""
        from scipy.stats import kendalltau

        means = self.means(scenario, figure)
        return float(kendalltau(*means.T).statistic) if len(means) > 2 else float("nan")

    def in_order(self, scenario: str, figure: Callable[[LiveFigures], float | None]) -> tuple[int, int]:
        """How many pairs of schedulers are predicted in the measured order, and how many pairs there are.

        Pairs count whose measured means differ by more than :data:`DISTINCT_COSTS`.
        """
        pairs = [
            (one, other)
            for one, other in itertools.combinations(self.means(scenario, figure).tolist(), 2)
            if abs(one[0] - other[0]) > DISTINCT_COSTS * min(one[0], other[0])
        ]
        return sum((one[0] < other[0]) == (one[1] < other[1]) for one, other in pairs), len(pairs)

    def means(self, scenario: str, figure: Callable[[LiveFigures], float | None]) -> NDArray[np.float64]:
        """Measured and predicted mean of each scheduler whose episodes all define the figure: ``(schedulers, 2)``."""
        found = []
        for episodes in self.of(scenario).values():
            pairs = [(figure(episode.real), figure(episode.simulated)) for episode in episodes]
            known = [(measured, predicted) for measured, predicted in pairs if None not in (measured, predicted)]
            if len(known) == len(pairs):
                found.append(np.array(known, np.float64).mean(0))
        return np.array(found).reshape(-1, 2)


def errors_of(
    episodes: Iterable[LiveEpisode], figure: Callable[[LiveFigures], Sequence[float | None]]
) -> NDArray[np.float64]:
    """Relative errors of a prediction, absolute values, over episodes and what the figure has (tenants)."""
    pairs = (pair for e in episodes for pair in zip(figure(e.real), figure(e.simulated), strict=True))
    return np.array([abs(simulated / real - 1.0) for real, simulated in pairs if real and simulated is not None])


def encode_live(live: Live) -> bytes:
    """The file of a comparison, an episode a line."""
    return encode_rows(msgspec.structs.replace(live, episodes=[]), live.episodes)


def read_live(path: Path) -> Live:
    """The same, read.

    Raises:
        InputError: it cannot be read, or is none, or has a scenario of which there is nothing to see.
    """
    live = read_struct(path, Live, SCHEMA, "no comparison with a GPU", "gpusched lab validate --live --json writes one")
    played = {episode.scenario for episode in live.episodes}
    seen = {scenario for scenario, tenants in live.tenants.items() if tenants}
    if not played or played != seen or seen != set(live.tenants):
        raise InputError(
            f"{path}: tenants must name the tenants of the scenarios that episodes are of "
            f"({', '.join(sorted(played)) or 'there are none'}); it has {', '.join(live.tenants) or 'none'}"
        )
    return live
