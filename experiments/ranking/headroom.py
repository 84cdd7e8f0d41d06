"""What a scenario leaves to be gained: a scheduler that was told the truth beside the strongest rule, as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpusched_env.display.palette import COLOURS
from gpusched_env.display.table import NONE, Table
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.drawing import drawing
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.lib.statistics import Interval, standings
from gpusched_env.experiments.lib.trained import is_learned
from gpusched_env.experiments.ranking.page import COST, DIFFERENCE, bound_standing, repeat, workloads_of
from gpusched_env.experiments.ranking.result import Ranking

ROW_IN, FRAME_IN, WIDTH_IN = 0.24, 1.1, 7.5
SURPASSED = 1e-9
"""Relative difference of means from which on one is lower than the other."""


@dataclass(frozen=True)
class Headroom:
    """One scenario of a ranking: the strongest rule, and what others cost against it on the same episodes."""

    title: str
    """Scenario, and workloads if they are not its own."""
    rule: str
    """The strongest hand-written scheduler that was not told the truth: its label."""
    cost: float
    """Its mean cost."""
    told: str
    """The cheapest scheduler that was told the truth: its label."""
    foresight: Interval
    """What that costs more than the rule, relative; below 0: less."""
    agent: Interval | None
    """What the cheapest trained agent costs more; ``None`` without one."""
    alone: float | None
    """What it would cost more if every tenant had the GPU to itself; ``None`` where that says nothing."""
    episodes: str

    @property
    def is_plan(self) -> bool:
        """Whether it is a schedule that was found and could be played, not a reference of another kind."""
        return self.told.startswith("hindsight")

    @property
    def is_bound(self) -> bool:
        """Whether nobody who was not told the truth costs less on average."""
        others = [0.0] if self.agent is None else [0.0, self.agent.mean]
        return self.foresight.mean <= min(others) + SURPASSED


def headroom(ranking: Ranking, scenario: str) -> Headroom:
    """What is known of one scenario.

    Raises:
        InputError: nobody was told the truth, or episodes are missing.
    """
    told_the_truth = [name for name in ranking.clairvoyant if name in ranking.schedulers]
    if not told_the_truth:
        raise InputError(
            f"{scenario}: none of {', '.join(ranking.schedulers)} was told the truth; rank hindsight with them"
        )
    costs = ranking.costs(scenario, ranking.devices[0])
    rule = ranking.cheapest(scenario)
    against = {standing.scheduler: standing.against for standing in standings(costs, rule)}
    told = min(told_the_truth, key=lambda name: against[name].mean)
    agents = [name for name in costs if is_learned(name)]
    alone = bound_standing(ranking, scenario, rule)
    variants = len(ranking.variants[scenario])
    return Headroom(
        title=scenario if ranking.workloads == "own" else f"{scenario}, {workloads_of(ranking)}",
        rule=ranking.label(rule),
        cost=float(costs[rule].mean()),
        told=ranking.label(told).rstrip("*"),
        foresight=against[told],
        agent=min((against[name] for name in agents), key=lambda interval: interval.mean, default=None),
        alone=None if alone is None else alone.against.mean,
        episodes=counted(len(ranking.seeds), "seed") + (f" of {variants} variants" if variants > 1 else ""),
    )


def headrooms(rankings: Sequence[Ranking]) -> list[Headroom]:
    """Of every scenario, the largest first.

    Raises:
        InputError: as for :func:`headroom`.
    """
    found = [headroom(ranking, scenario) for ranking in rankings for scenario in ranking.variants]
    return sorted(found, key=lambda one: one.foresight.mean)


def pages(rankings: Sequence[Ranking], docs: Path) -> dict[str, bytes]:
    """The page and its figure.

    Args:
        rankings: what was read.
        docs: where the page will be; the figure is beside it.

    Returns:
        contents by file name.

    Raises:
        InputError: as for :func:`headroom`, or matplotlib is not installed.
    """
    found, picture = headrooms(rankings), f"{docs.stem}.svg"
    text = page(
        "headroom.md.j2",
        table=table(found),
        beaten=[one for one in found if not one.is_bound],
        picture=picture,
        commands=[repeat(ranking) for ranking in rankings],
    )
    return {docs.name: text.encode(), picture: svg(found)}


def table(found: Sequence[Headroom]) -> Table:
    """A row a scenario."""
    heads = ["scenario", "strongest rule", "its cost", "told the truth", "costs against the rule", "trained agent"]
    rows = [
        [
            one.title,
            one.rule,
            COST.format(one.cost),
            one.told,
            one.foresight.text(DIFFERENCE) + ("" if one.is_bound else " (no bound)"),
            NONE if one.agent is None else one.agent.text(DIFFERENCE),
            NONE if one.alone is None else DIFFERENCE.format(one.alone),
            one.episodes,
        ]
        for one in found
    ]
    return Table("Headroom", [*heads, "everybody alone", "episodes"], rows)


def svg(found: Sequence[Headroom]) -> bytes:
    """Plans of the table as a picture: a bar a scenario, with its interval; a line where everybody alone would be.

    Raises:
        InputError: matplotlib is not installed.
    """
    bounds = [one for one in found if one.is_plan and one.is_bound][::-1]
    rows = range(len(bounds))
    with drawing((WIDTH_IN, FRAME_IN + ROW_IN * len(bounds))) as (figure, finished):
        axes = figure.add_subplot()
        gains = [-100.0 * one.foresight.mean for one in bounds]
        axes.barh(rows, gains, height=0.6, color=COLOURS[0], label="found with foresight")
        for row, one in zip(rows, bounds, strict=True):
            if one.foresight.low is not None and one.foresight.high is not None:
                ends = [-100.0 * one.foresight.high, -100.0 * one.foresight.low]
                axes.plot(ends, [row, row], color="black", linewidth=1.0)
        lines = [(row, -100.0 * one.alone) for row, one in zip(rows, bounds, strict=True) if one.alone is not None]
        if lines:
            up, across = zip(*lines, strict=True)
            axes.plot(across, up, "|", color=COLOURS[1], markersize=9, markeredgewidth=2, label="if nobody ever waited")
        axes.set_yticks(rows, [one.title for one in bounds])
        axes.set_xlabel("% less cost than the strongest rule without foresight")
        axes.set_xlim(left=0.0)
        axes.grid(axis="x", color="#ececec", linewidth=0.6)
        axes.set_axisbelow(True)
        figure.legend(loc="outside upper left", frameon=False, ncols=2)
        return finished()
