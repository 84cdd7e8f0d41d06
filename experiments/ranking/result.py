"""The file of a ranking: its episodes, and what is needed to run them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.frame import frame
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.lib.files import encode_rows, read_struct
from gpusched_env.experiments.lib.statistics import Interval, RankStanding, mean_interval, standings
from gpusched_env.experiments.lib.terminal import DisplayedResult
from gpusched_env.experiments.lib.trained import is_learned, labels
from gpusched_env.experiments.ranking.bound import ALONE
from gpusched_env.experiments.ranking.episodes import EpisodeCost, Workloads
from gpusched_env.experiments.ranking.made import PARTS, Fingerprints, Hashes

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame
    from gpusched_env.display.table import Table
    from gpusched_env.experiments.ranking.page import RankingPlots

REJECTED = "jobs_rejected"
TRADE = ("urgent_p99", "best_effort", "goodput_per_s", REJECTED)
"""Figures of an episode besides its cost (:class:`EpisodeCost`)."""
SCHEMA = "gpusched-ranking/1"


class Ranking(DisplayedResult, msgspec.Struct, kw_only=True):
    """Episodes of several schedulers on the same problems and seeds.

    Shown as tables, best first, on a terminal and in a notebook. :meth:`to_frame` gives every episode's cost,
    :meth:`interval` a scheduler's mean cost with its confidence interval, :attr:`plot` the chart of costs.
    """

    schema: str = SCHEMA
    command: str
    versions: dict[str, str]
    workloads: Workloads
    gpu: str | None
    """Name of the GPU instead of the scenarios' own."""
    schedulers: list[str]
    devices: list[str]
    """Devices, of which the first decides; others are compared with it."""
    seeds: list[int]
    variants: dict[str, list[str]]
    """Names of the problems that were run, by scenario."""
    bounded: list[str] = []
    """Scenarios whose cost with every tenant alone is among the episodes, on the first device."""
    settings: list[str] = []
    """Fields of the scenarios that were replaced, as ``--set`` takes them."""
    remarks: dict[str, list[str]] = {}
    """What to know of each scenario's figures, a sentence each (:mod:`gpusched_env.episodes.cautions`)."""
    clairvoyant: list[str] = []
    """Schedulers that were told the truth."""
    made: list[Fingerprints] = []
    """What episodes were made by, see :attr:`EpisodeCost.made`; without any, it is not known."""
    episodes: list[EpisodeCost]

    @property
    def complete(self) -> bool:
        """Whether every episode has been run."""
        problems = sum(len(names) for names in self.variants.values())
        bounded = sum(len(self.variants[scenario]) for scenario in self.bounded)
        each = len(self.schedulers) * len(self.devices)
        return len(self.episodes) == (problems * each + bounded) * len(self.seeds)

    def hashes(self, episode: EpisodeCost) -> set[Hashes]:
        """What an episode stands for: what it was made by, and what a replay that gave the same was."""
        numbers = {episode.made, episode.made if episode.again is None else episode.again}
        return {(self.made[number] if self.made else Fingerprints()).of(episode.cell) for number in numbers}

    @property
    def plot(self) -> RankingPlots:
        """Charts, as Plotly figures: ``plot.cost()``."""
        from gpusched_env.experiments.ranking.page import RankingPlots

        return RankingPlots(self)

    def standings(self, scenario: str | None = None, device: str | None = None) -> list[RankStanding]:
        """Every scheduler on a scenario (by default the first), best first, against the best hand-written one.

        Raises:
            InputError: an unknown name, or episodes are missing.
        """
        scenario = next(iter(self.variants)) if scenario is None else scenario
        if scenario not in self.variants:
            raise InputError(f"scenario {scenario!r} was not ranked; {did_you_mean(scenario, self.variants)}")
        costs = self.costs(scenario, device or self.devices[0])
        return standings(costs, self.cheapest(scenario))

    def interval(self, scheduler: str, figure: str = "cost", scenario: str | None = None) -> Interval:
        """A scheduler's figure over all episodes of a scenario (by default the first), with its 95 % interval.

        Args:
            scheduler: one of :attr:`schedulers`.
            figure: ``cost``, ``iqm``, ``rank``, ``against`` or ``improvement``, see :class:`RankStanding`.
            scenario: one of :attr:`variants`.

        Raises:
            InputError: an unknown name, or episodes are missing.
        """
        if scheduler not in self.schedulers:
            raise InputError(f"scheduler {scheduler!r} was not ranked; {did_you_mean(scheduler, self.schedulers)}")
        names = {"cost": "mean", "iqm": "iqm", "rank": "rank", "against": "against", "improvement": "improvement"}
        if figure not in names:
            raise InputError(f"no figure {figure!r}; {did_you_mean(figure, names)}")
        standing = next(s for s in self.standings(scenario) if s.scheduler == scheduler)
        found: Interval = getattr(standing, names[figure])
        return found

    def label(self, scheduler: str) -> str:
        """A scheduler's name as it is shown: short, and marked if it was told the truth."""
        return labels(self.schedulers, self.clairvoyant)[scheduler]

    def cheapest(self, scenario: str) -> str:
        """The hand-written scheduler of lowest mean cost here; not one that was told the truth, if there are others."""
        costs = self.costs(scenario, self.devices[0])
        hand_written = [name for name in costs if not is_learned(name) and name not in self.clairvoyant]
        return min(hand_written or costs, key=lambda name: float(costs[name].mean()))

    def trade(self, scenario: str) -> dict[str, dict[str, Interval]]:
        """Means of the figures of :data:`TRADE` over all episodes of the first device, by scheduler.

        Empty if no episode has them.
        """
        found = {}
        for name in self.schedulers:
            own = [e for e in self.episodes if (e.cell.scenario, e.cell.scheduler) == (scenario, name)]
            values = {
                figure: [v for e in own if e.cell.device == self.devices[0] and (v := getattr(e, figure)) is not None]
                for figure in TRADE
            }
            if any(values.values()):
                found[name] = {figure: mean_interval(seen) for figure, seen in values.items()}
        return found

    def to_frame(self) -> DataFrame:
        """Every episode's figures, a row each."""
        figures = ("cost", *TRADE)
        return frame([{**msgspec.structs.asdict(e.cell), **{f: getattr(e, f) for f in figures}} for e in self.episodes])

    def headline(self) -> str:
        """Who is ranked, and on what."""
        what = f"{counted(len(self.schedulers), 'scheduler')} on {', '.join(self.variants)}"
        return f"Ranking of {what}, {counted(len(self.seeds), 'seed')}, {counted(len(self.episodes), 'episode')}"

    def printed(self) -> list[Table]:
        """The tables of the ranking, one a scenario."""
        from gpusched_env.experiments.ranking.page import tables

        return tables(self)

    def __str__(self) -> str:
        return super().__str__() if self.complete else repr(self)

    def costs(self, scenario: str, device: str) -> dict[str, NDArray[np.float64]]:
        """The costs by scheduler, shape ``(variants, seeds)``.

        Raises:
            InputError: episodes are missing.
        """
        return self._costs(scenario, device, self.schedulers)

    def alone(self, scenario: str) -> NDArray[np.float64] | None:
        """The costs with every tenant alone, shape ``(variants, seeds)``; ``None`` if it was not run.

        Raises:
            InputError: episodes are missing.
        """
        if scenario not in self.bounded:
            return None
        return self._costs(scenario, self.devices[0], [ALONE])[ALONE]

    def _costs(self, scenario: str, device: str, schedulers: list[str]) -> dict[str, NDArray[np.float64]]:
        found = {
            (e.cell.scheduler, e.cell.variant, e.cell.seed): e.cost
            for e in self.episodes
            if e.cell.scenario == scenario and e.cell.device == device
        }
        variants = self.variants[scenario]
        wanted = [(s, v, n) for s in schedulers for v in variants for n in self.seeds]
        missing = [key for key in wanted if key not in found]
        if missing:
            raise InputError(f"{scenario} on {device}: {len(missing)} of {counted(len(wanted), 'episode')} missing")
        return {s: np.array([[found[s, v, n] for n in self.seeds] for v in variants]) for s in schedulers}


def encode_ranking(ranking: Ranking) -> bytes:
    """JSON, a line an episode."""
    return encode_rows(msgspec.structs.replace(ranking, episodes=[]), ranking.episodes)


def read_ranking(path: Path) -> Ranking:
    """A file that ``gpusched lab rank`` wrote.

    Raises:
        InputError: it cannot be read, or is none; an episode is there twice, or of nothing that the file lists.
    """
    ranking = read_struct(path, Ranking, SCHEMA, "not a ranking", "gpusched lab rank --json writes one")
    seen = set()
    for episode in ranking.episodes:
        cell = episode.cell
        where = f"{path}: episode of {cell.variant}, {cell.scheduler}, device {cell.device}, seed {cell.seed}"
        if cell in seen:
            raise InputError(f"{where}: is there twice; delete one of its lines")
        seen.add(cell)
        for name in ("made", "again"):
            number = getattr(episode, name) or 0
            if not 0 <= number < max(1, len(ranking.made)):
                raise InputError(f"{where}: {name} is {number}, the file has {len(ranking.made)} of them")
    return ranking


def read_rankings(paths: Iterable[Path]) -> dict[Path, Ranking]:
    """Files whose schedulers are to be compared.

    Raises:
        InputError: as for :func:`read_ranking`; episodes of one comparison were made by different sources or data.
    """
    found = {path: read_ranking(path) for path in paths}
    for path, ranking in found.items():
        check_alike({str(path): ranking})
    return found


def check_alike(rankings: Mapping[str, Ranking], parts: Sequence[str] = PARTS) -> None:
    """Whether the same physics and data made all episodes of a scenario, and the same scheduler all of its own.

    Args:
        rankings: that are compared with each other, by what errors call them.
        parts: which must be the same.

    Raises:
        InputError: they are not; names the scheduler.
    """
    common: dict[tuple[str, ...], set[str | None]] = {}
    for where, ranking, episode in ((w, r, e) for w, r in rankings.items() for e in r.episodes):
        cell, stands_for = episode.cell, ranking.hashes(episode)
        shared = ((cell.scenario, cell.device), (cell.scenario, cell.scheduler), (cell.scenario, cell.variant))
        places = (*shared, (cell.scenario, cell.scheduler))
        for number, (part, place) in enumerate(zip(PARTS, places, strict=True)):
            own = {hashes[number] for hashes in stands_for}
            both = common.setdefault((part, *place), own) & own
            if part in parts and not both:
                raise InputError(
                    f"{where}: {cell.scheduler} on {cell.variant}, seed {cell.seed}: made by other {part} than others "
                    "that it is compared with; gpusched lab rank --resume or lab replay --note makes them alike"
                )
            common[part, *place] = both


def device_difference(ranking: Ranking, scenario: str) -> float:
    """Largest relative difference of an episode's cost between the first device and another; 0 with one device.

    Raises:
        InputError: episodes are missing.
    """
    first = ranking.costs(scenario, ranking.devices[0])
    others = [ranking.costs(scenario, device) for device in ranking.devices[1:]]
    return max((float(np.max(np.abs(other[s] / first[s] - 1.0))) for other in others for s in first), default=0.0)
