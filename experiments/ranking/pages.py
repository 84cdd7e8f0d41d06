"""Pages of rankings: what they lead with, loads, and what a scenario leaves to be gained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpusched_env.display.palette import COLOURS
from gpusched_env.display.table import NONE, Table
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.pages import drawing, label_log, page
from gpusched_env.experiments.lib.statistics import Interval, standings
from gpusched_env.experiments.lib.trained import is_learned
from gpusched_env.experiments.ranking.page import (
    COST,
    DIFFERENCE,
    EXPLANATION,
    all_episodes,
    all_tables,
    bound_standing,
    repeat,
    workloads_of,
)
from gpusched_env.experiments.ranking.result import Ranking, check_alike

LOAD = "load="
"""The setting that a sweep changes."""
FEWEST = 3
"""Loads that make a line."""
SIZE_IN = (7.5, 4.2)
GOODPUT = "goodput_per_s"

Sweep = dict[float, Ranking]
"""Rankings by load, ascending."""


def sweeps(rankings: Sequence[Ranking]) -> dict[str, Sweep]:
    """Rankings of own workloads and GPU that change nothing but the load, by scenario, where there are enough.

    Raises:
        InputError: the same schedulers at several loads were made by different sources.
    """
    found: dict[str, Sweep] = {}
    for ranking in rankings:
        only_load = len(ranking.settings) == 1 and ranking.settings[0].startswith(LOAD)
        if only_load and ranking.workloads == "own" and ranking.gpu is None:
            for scenario in ranking.variants:
                found.setdefault(scenario, {})[float(ranking.settings[0].removeprefix(LOAD))] = ranking
    lines = {scenario: dict(sorted(of.items())) for scenario, of in found.items() if len(of) >= FEWEST}
    for scenario, of in lines.items():
        check_alike({f"{scenario} at load {load:g}": ranking for load, ranking in of.items()}, ("physics", "scheduler"))
    return lines


def goodput_table(scenario: str, sweep: Sweep) -> Table:
    """Requests answered in time a second: a row a scheduler, the best at the highest load first, a column a load."""
    goodputs = _goodputs(scenario, sweep)
    heads = ["scheduler", *(f"load {load:g}" for load in sweep)]
    rows = [[name, *(f"{of[load]:.0f}" if load in of else NONE for load in sweep)] for name, of in goodputs.items()]
    seeds = sorted({len(ranking.seeds) for ranking in sweep.values()})
    means = f"Means over {' or '.join(map(str, seeds))} seeds. All requests count alike here, the cost weighs them."
    return Table(f"{scenario}: requests answered in time a second", heads, rows, note=means)


def goodput_svg(scenario: str, sweep: Sweep) -> bytes:
    """The table as a picture: a line a scheduler, dashed and black for those that were told the truth.

    Raises:
        InputError: matplotlib is not installed.
    """
    told = {ranking.label(name) for ranking in sweep.values() for name in ranking.clairvoyant}
    with drawing(SIZE_IN) as (figure, finished):
        axes = figure.add_subplot()
        lines = 0
        for name, of in _goodputs(scenario, sweep).items():
            colour, line = COLOURS[lines % len(COLOURS)], "-" if lines < len(COLOURS) else ":"
            if name in told:
                colour, line = "black", "--"
            else:
                lines += 1
            axes.plot(list(of), list(of.values()), marker="o", markersize=4, label=name, color=colour, linestyle=line)
        axes.set_xlabel(f"load, as a multiple of {scenario}'s")
        axes.set_ylabel("requests answered in time a second")
        axes.set_ylim(bottom=0.0)
        axes.grid(color="#ececec", linewidth=0.6)
        axes.set_axisbelow(True)
        figure.legend(loc="outside right upper", frameon=False)
        return finished()


def _goodputs(scenario: str, sweep: Sweep) -> dict[str, dict[float, float]]:
    """Means by scheduler and load, the best at the highest load first."""
    found: dict[str, dict[float, float]] = {}
    for load, ranking in sweep.items():
        for name, figures in ranking.trade(scenario).items():
            if not math.isnan(figures[GOODPUT].mean):
                found.setdefault(ranking.label(name), {})[load] = figures[GOODPUT].mean
    return dict(sorted(found.items(), key=lambda item: -list(item[1].values())[-1]))


ROW_IN, FRAME_IN, WIDTH_IN = 0.21, 1.2, 7.5
Ratios = dict[str, dict[str, float]]
"""Mean costs over that of the reference rule, by scheduler, and by scenario and set of workloads."""


def ranking_pages(rankings: Sequence[Ranking], docs: Path, title: str = "Rankings") -> dict[str, bytes]:
    """A page of several result files, its figure, and all tables as CSV.

    Where there are files of one scenario at several loads (``--set load=...``), it leads with a figure of what is
    answered in time over the load.

    Args:
        rankings: what was read.
        docs: where the page will be; the others are beside it.
        title: of the page.

    Returns:
        contents by file name.
    """
    picture, tables = f"{docs.stem}.svg", f"{docs.stem}.csv"
    found = sweeps(rankings)
    swept = {id(ranking) for sweep in found.values() for ranking in sweep.values()}
    loads = {f"{docs.stem}-{scenario}.svg": (scenario, sweep) for scenario, sweep in found.items()}
    commands = [repeat(ranking) for ranking in rankings]
    rankings = [ranking for ranking in rankings if id(ranking) not in swept]
    text = page(
        "ranking.md.j2",
        title=title,
        lead=lead_table(rankings),
        picture=picture,
        tables=tables,
        explanation=EXPLANATION,
        episodes=all_episodes(rankings),
        loads={name: goodput_table(*of) for name, of in loads.items()},
        commands=commands,
    )
    return {
        docs.name: text.encode(),
        **{name: goodput_svg(*of) for name, of in loads.items()},
        picture: lead_svg(rankings),
        tables: all_tables(rankings).encode(),
    }


def lead_table(rankings: Sequence[Ranking]) -> Table:
    """Costs relative to the strongest rule's, the lowest mean first; a column a scenario and set of workloads."""
    ratios, columns = _ratios(rankings), _columns(rankings)
    rows = []
    for name, own in ratios.items():
        cells = []
        for title, (ranking, scenario) in columns.items():
            reference = ranking.cheapest(scenario)
            if title not in own:
                cells.append(NONE)
            elif name == ranking.label(reference):
                cells.append(COST.format(float(ranking.costs(scenario, ranking.devices[0])[reference].mean())))
            else:
                cells.append(DIFFERENCE.format(own[title] - 1.0))
        rows.append([name, *cells])
    return Table("Costs", ["scheduler", *columns], rows)


def lead_svg(rankings: Sequence[Ranking]) -> bytes:
    """The table as a picture: a row a scheduler, a dot a column, on a logarithmic axis.

    Raises:
        InputError: matplotlib is not installed.
    """
    ratios, columns = _ratios(rankings), _columns(rankings)
    names = list(ratios)[::-1]
    with drawing((WIDTH_IN, FRAME_IN + ROW_IN * len(names))) as (figure, finished):
        axes = figure.add_subplot()
        for number, title in enumerate(columns):
            places = [(ratios[name][title], row) for row, name in enumerate(names) if title in ratios[name]]
            across, up = zip(*places, strict=True)
            axes.plot(across, up, "o", color=COLOURS[number % len(COLOURS)], markersize=5, alpha=0.8, label=title)
        axes.axvline(1.0, color="black", linewidth=0.7)
        axes.set_xscale("log")
        all_ratios = [ratio for own in ratios.values() for ratio in own.values()]
        label_log(axes.xaxis, min(all_ratios), max(all_ratios))
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("cost over that of the strongest rule")
        axes.grid(axis="both", which="both", color="#ececec", linewidth=0.6)
        axes.set_axisbelow(True)
        figure.legend(loc="outside upper left", frameon=False, ncols=2)
        return finished()


def _columns(rankings: Sequence[Ranking]) -> dict[str, tuple[Ranking, str]]:
    """Rankings and scenarios by title: of several files about the same, the one with most schedulers, then seeds."""
    found: dict[str, tuple[Ranking, str]] = {}
    for ranking in sorted(rankings, key=lambda r: (-len(r.schedulers), -len(r.seeds))):
        for scenario in ranking.variants:
            found.setdefault(f"{scenario}, {workloads_of(ranking)}", (ranking, scenario))
    given = [f"{scenario}, {workloads_of(ranking)}" for ranking in rankings for scenario in ranking.variants]
    return {title: found[title] for title in dict.fromkeys(given)}


def _ratios(rankings: Sequence[Ranking]) -> Ratios:
    found: Ratios = {}
    for title, (ranking, scenario) in _columns(rankings).items():
        costs = ranking.costs(scenario, ranking.devices[0])
        reference = float(costs[ranking.cheapest(scenario)].mean())
        for name, own in costs.items():
            found.setdefault(ranking.label(name), {})[title] = float(own.mean()) / reference
    return dict(sorted(found.items(), key=lambda item: float(np.mean(np.log(list(item[1].values()))))))


HEADROOM_ROW_IN, HEADROOM_FRAME_IN, HEADROOM_WIDTH_IN = 0.24, 1.1, 7.5
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
    """The rule's mean cost."""
    told: str
    """The cheapest scheduler that was told the truth: its label."""
    foresight: Interval
    """Cost of the scheduler that was told the truth over the rule's, less one; below 0: less."""
    agent: Interval | None
    """Cost of the cheapest trained agent over the rule's, less one; ``None`` without one."""
    alone: float | None
    """Cost over the rule's, less one, if every tenant had the GPU to itself; ``None`` where that says nothing."""
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
    """The headroom of every scenario, the largest first.

    Raises:
        InputError: as for :func:`headroom`.
    """
    found = [headroom(ranking, scenario) for ranking in rankings for scenario in ranking.variants]
    return sorted(found, key=lambda one: one.foresight.mean)


def headroom_pages(rankings: Sequence[Ranking], docs: Path) -> dict[str, bytes]:
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
    with drawing((HEADROOM_WIDTH_IN, HEADROOM_FRAME_IN + HEADROOM_ROW_IN * len(bounds))) as (figure, finished):
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
