"""Rankings of one scenario at several loads: how much is answered in time as more is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpusched_env.display.palette import COLOURS
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.drawing import drawing
from gpusched_env.experiments.ranking.result import Ranking, check_alike

LOAD = "load="
"""The setting that a sweep changes."""
FEWEST = 3
"""Loads that make a line."""
SIZE_IN = (7.5, 4.2)
GOODPUT = "goodput_per_s"

Sweep = dict[float, Ranking]
"""By load, ascending."""


def sweeps(rankings: Sequence[Ranking]) -> dict[str, Sweep]:
    """By scenario, those of its own workloads and GPU that change nothing but the load, where there are enough.

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
