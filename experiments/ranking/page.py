"""A ranking as tables: for the terminal and as Markdown."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpusched_env.display.plots import Estimate, Kinds, dots
from gpusched_env.display.table import NONE, Table
from gpusched_env.display.words import counted
from gpusched_env.experiments.lib.figures import find_figure, format_value, tables_csv
from gpusched_env.experiments.lib.statistics import FEW_SEEDS, Interval, RankStanding, standings
from gpusched_env.experiments.lib.trained import legend
from gpusched_env.experiments.ranking.bound import ALONE
from gpusched_env.experiments.ranking.result import REJECTED, TRADE, Ranking, device_difference

if TYPE_CHECKING:
    from gpusched_env.display.plots import Figure

BOUND = "alone (bound)"
COST, DIFFERENCE, PROBABILITY = "{:.4g}", "{:+z.1%}", "{:.2f}"
GIVEN_UP = "Rejected: jobs that were given up, of an episode."
SETS = {"own": "own workloads", "train": "training workloads", "held_out": "held-out workloads"}

EXPLANATION = """\
Every scheduler ran the same seeds of every variant. `cost`: mean of the scenario's cost, lower is better. `rank`: by
mean cost, where there are five seeds. `against`: the hand-written scheduler that was cheapest on these episodes, of
those that were not told the truth. `difference`: of the mean from that one's, relative. `better`: probability of a
lower cost than that one's on an episode. `urgent_p99`: turnaround over turnaround alone of the most urgent tenants.
`best_effort`: mean progress of the others, 1 if nothing disturbs them. `goodput_per_s`: jobs within their objective a
second. Names with `tuned:` have options that were searched on training workloads (`gpusched tune`), others their
published defaults. `low` and `high` are ends of 95 % intervals (bootstrap over problems where there are several, else
over seeds, the same for all; over fewer than five problems they are rough). `alone (bound)`: if every tenant had the
GPU to itself, with the same arrivals and durations. Nobody waits for anybody then, and a scheduler can hardly cost
less.
"""


def table(ranking: Ranking, scenario: str) -> Table:
    """All schedulers on one scenario, best first, above them the bound where there is one."""
    bound = bound_standing(ranking, scenario)
    trade = ranking.trade(scenario)
    shown = [figure for figure in TRADE if any(_tells(figure, of[figure]) for of in trade.values())]
    blank = [NONE] * (1 + len(shown))
    rows = [] if bound is None else [(BOUND, bound.mean.text(COST), NONE, bound.against.text(DIFFERENCE), *blank)]
    rows += [
        (
            ranking.label(standing.scheduler),
            standing.mean.text(COST),
            standing.rank.text("{:.0f}") if len(ranking.seeds) >= FEW_SEEDS else NONE,
            standing.against.text(DIFFERENCE),
            standing.improvement.text(PROBABILITY),
            *(_figure(trade, standing.scheduler, figure) for figure in shown),
        )
        for standing in ranking.standings(scenario)
    ]
    heads = ["scheduler", "cost", "rank", f"against {ranking.label(ranking.cheapest(scenario))}", "better"]
    heads += [find_figure(figure, of_tenant=False).label for figure in shown]
    title = f"{scenario}, {workloads_of(ranking)}"
    remarks = [*ranking.remarks.get(scenario, []), *([GIVEN_UP] if REJECTED in shown else [])]
    return Table(title, heads, rows, note=" ".join(remarks))


def workloads_of(ranking: Ranking) -> str:
    """Which workloads, and the GPU and fields that are not the scenario's own."""
    return ", ".join([SETS[ranking.workloads], *([ranking.gpu] if ranking.gpu else []), *ranking.settings])


def bound_standing(ranking: Ranking, scenario: str, best: str | None = None) -> RankStanding | None:
    """The cost with every tenant alone beside that of ``best`` (default: the cheapest); ``None`` if it was not run."""
    alone = ranking.alone(scenario)
    if alone is None:
        return None
    best = ranking.cheapest(scenario) if best is None else best
    costs = ranking.costs(scenario, ranking.devices[0])
    return next(s for s in standings({ALONE: alone, best: costs[best]}, best) if s.scheduler == ALONE)


def tables(ranking: Ranking) -> list[Table]:
    """The tables of a ranking, one a scenario."""
    return [table(ranking, scenario) for scenario in ranking.variants]


class RankingPlots(Kinds):
    """Charts of a ranking, as Plotly figures."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking

    def cost(self) -> Figure:
        """Mean cost with its interval, a panel a scenario, a row a scheduler; a faint dot a variant's mean."""
        panels = {}
        for scenario in self._ranking.variants:
            costs = self._ranking.costs(scenario, self._ranking.devices[0])
            panels[scenario] = {
                self._ranking.label(s.scheduler): Estimate(
                    s.mean.mean, s.mean.low, s.mean.high, costs[s.scheduler].mean(1).tolist()
                )
                for s in self._ranking.standings(scenario)
            }
        return dots("Mean cost", panels, "cost", "scheduler")


def all_tables(rankings: Sequence[Ranking]) -> str:
    """All tables of several result files as CSV, which a page of few figures points to and explains."""
    parts = []
    for ranking in rankings:
        said = {"workloads": workloads_of(ranking), "seeds": str(len(ranking.seeds))}
        parts += [({"scenario": name, **said}, table(ranking, name)) for name in ranking.variants]
    return tables_csv(parts)


def all_episodes(rankings: Sequence[Ranking]) -> list[str]:
    """Texts on which episodes each of the rankings' tables is about."""
    return [
        f"{name}, {workloads_of(ranking)}: {episodes_of(ranking, name)}"
        for ranking in rankings
        for name in ranking.variants
    ]


def repeat(ranking: Ranking, file: str = "ranking.json") -> str:
    """The command that runs a ranking again, into ``file``."""
    parts = ["gpusched", "lab", "rank", *ranking.variants, "--schedulers", ",".join(ranking.schedulers)]
    parts += ["--seeds", str(len(ranking.seeds)), "--seed", str(min(ranking.seeds))]
    parts += ["--workloads", ranking.workloads, "--simulators", ",".join(ranking.devices)]
    parts += ["--gpu", ranking.gpu] if ranking.gpu else []
    parts += [part for setting in ranking.settings for part in ("--set", setting)]
    return shlex.join([*parts, "--json", file])


def episodes_of(ranking: Ranking, scenario: str) -> str:
    """Which episodes a table is about, and how the devices compare."""
    variants = ranking.variants[scenario]
    of = "the scenario" if variants == [scenario] else counted(len(variants), "variant")
    about = f"{counted(len(ranking.seeds), 'seed')} (from {min(ranking.seeds)}) of {of}. {_devices(ranking, scenario)}"
    remarks = " ".join(ranking.remarks.get(scenario, []))
    return " ".join(filter(None, [about, legend(ranking.schedulers, ranking.clairvoyant), remarks]))


def _devices(ranking: Ranking, scenario: str) -> str:
    if len(ranking.devices) == 1:
        return f"Device: {ranking.devices[0]}."
    orders = [[s.scheduler for s in ranking.standings(scenario, device)] for device in ranking.devices]
    same = "the same order" if all(order == orders[0] for order in orders) else "different orders"
    largest = device_difference(ranking, scenario)
    costs = f"differ by {largest:.1g} at most" if largest else "are equal"
    return f"Devices {' and '.join(ranking.devices)}: {same}, costs of every episode {costs}."


def _tells(figure: str, value: Interval) -> bool:
    """Whether a scheduler's figure is a reason for its column: that nobody rejected anything is none."""
    return bool(value.seeds) and (figure != REJECTED or value.mean > 0.0)


def _figure(trade: Mapping[str, Mapping[str, Interval]], scheduler: str, figure: str) -> str:
    value = trade[scheduler][figure].mean if scheduler in trade else math.nan
    return format_value(value, find_figure(figure, of_tenant=False))
