"""What a page of rankings leads with: one table and one figure of every scheduler on every scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpusched_env.display.palette import COLOURS
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.drawing import drawing, label_log
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.ranking.load import goodput_svg, goodput_table, sweeps
from gpusched_env.experiments.ranking.page import (
    COST,
    DIFFERENCE,
    EXPLANATION,
    all_episodes,
    all_tables,
    repeat,
    workloads_of,
)
from gpusched_env.experiments.ranking.result import Ranking

ROW_IN, FRAME_IN, WIDTH_IN = 0.21, 1.2, 7.5
Ratios = dict[str, dict[str, float]]
"""By scheduler, and by scenario and set of workloads: mean cost over that of the reference rule."""


def pages(rankings: Sequence[Ranking], docs: Path, title: str = "Rankings") -> dict[str, bytes]:
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
    """By title: of several files about the same, the one with most schedulers, then seeds."""
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
