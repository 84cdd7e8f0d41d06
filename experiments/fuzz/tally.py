"""What a run of many episodes amounts to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table

from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.experiments.fuzz.stored import Difference
from gpusched_env.experiments.lib.names import DeviceSource


@dataclass
class FuzzTally:
    """Sums over episodes."""

    device: DeviceSource
    """Under test."""
    against: DeviceSource
    """Trusted."""
    seed: int
    episodes: int = 0
    """Finished."""
    counts: Counter[str] = field(default_factory=Counter)
    """Commands, kernels, blocks."""
    features: Counter[str] = field(default_factory=Counter)
    """Episodes with each feature."""
    differences: dict[int, Difference] = field(default_factory=dict)
    """By episode."""
    wall_s: float = 0.0
    interrupted: bool = False
    broken: str = ""
    """Why the run could not go on."""
    under_way: list[int] = field(default_factory=list)
    """Episodes that were running when the run was cut short."""

    def add(self, episode: int, outcome: Outcome) -> None:
        self.episodes += 1
        self.counts += outcome.counts
        self.features.update(outcome.features)
        if outcome.difference is not None:
            self.differences[episode] = outcome.difference

    def one_of_each_kind(self) -> list[int]:
        """The first episode with each kind of difference."""
        first: dict[str, int] = {}
        for episode, difference in sorted(self.differences.items()):
            first.setdefault(difference.kind, episode)
        return list(first.values())

    def summary(self) -> str:
        """One line."""
        verdict = f"{len(self.differences)} with a difference" if self.differences else "no difference"
        who = f"{name_of(self.device)} against {name_of(self.against)}, seed {self.seed}"
        return f"{who}: {self.episodes} episodes, {verdict}; {self.wall_s:.1f} s"

    def __rich__(self) -> RenderableType:
        return Group(_sums(self.counts), _shares(self.features, self.episodes), *_found(self.differences))


def name_of(source: DeviceSource) -> str:
    """What a device is called."""
    return source if isinstance(source, str) else getattr(source, "__name__", repr(source))


def _sums(counts: Counter[str]) -> Table:
    table = Table("In all episodes", "", title="What was simulated", title_justify="left")
    table.columns[1].justify = "right"
    for name, count in sorted(counts.items()):
        table.add_row(name, f"{count:,}")
    return table


def _shares(features: Counter[str], episodes: int) -> Table:
    table = Table("Episodes with", "%", "Episodes with", "%", title="What was in it", title_justify="left")
    rows = [(name, f"{100 * count / episodes:.1f}") for name, count in features.most_common()]
    half = -(-len(rows) // 2)
    for i in range(half):
        table.add_row(*rows[i], *(rows[half + i] if half + i < len(rows) else ("", "")))
    table.columns[1].justify = table.columns[3].justify = "right"
    return table


def _found(differences: dict[int, Difference]) -> Iterable[RenderableType]:
    if not differences:
        return
    table = Table("Episode", "Kind", "Difference", title="Differences", title_justify="left")
    for episode, difference in sorted(differences.items()):
        table.add_row(str(episode), difference.kind, str(difference))
    yield table
