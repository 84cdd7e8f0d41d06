"""A ranking as tables: for the terminal and as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from gpusched_env.experiments.bootstrap import Interval
from gpusched_env.experiments.marks import legend, marked
from gpusched_env.experiments.plugins import is_learned
from gpusched_env.experiments.ranking.bound import ALONE
from gpusched_env.experiments.ranking.result import Ranking, device_difference
from gpusched_env.experiments.ranking.statistics import Standing, standings
from gpusched_env.experiments.reproduce.terminal import plain_tables
from gpusched_env.experiments.validate.tables import Plain, markdown_table

NONE = "–"
BOUND = "alone (bound)"
COST, DIFFERENCE, PROBABILITY = "{:.4g}", "{:+.1%}", "{:.2f}"
SETS = {"own": "own workloads", "train": "training workloads", "held_out": "held-out workloads"}

EXPLANATION = """\
Every scheduler ran the same seeds of every variant. *Cost*: mean of the scenario's cost, lower is better. *IQM*: its
interquartile mean. *Rank*: by mean cost. *Against the best*: relative difference of the mean from that of the
best hand-written scheduler. *Better*: probability of a lower cost than that one's on an episode. Brackets are 95 %
intervals (bootstrap over seeds within variants, the same seeds for all). *Alone (bound)*: if every tenant had the GPU
to itself, with the same arrivals and durations. Nobody waits for anybody then, and a scheduler can hardly cost less.
"""


def reference_of(ranking: Ranking, scenario: str) -> str:
    """The hand-written scheduler of lowest mean cost, of those that were not told the truth if there is one."""
    costs = ranking.costs(scenario, ranking.devices[0])
    hand_written = [name for name in costs if not is_learned(name) and name not in ranking.clairvoyant]
    return min(hand_written or costs, key=lambda name: float(costs[name].mean()))


def scenario_standings(ranking: Ranking, scenario: str, device: str) -> list[Standing]:
    """The ranking of one scenario on one device."""
    return standings(ranking.costs(scenario, device), reference_of(ranking, scenario))


def table(ranking: Ranking, scenario: str) -> Plain:
    """All schedulers on one scenario, best first, above them the bound where there is one."""
    bound = bound_standing(ranking, scenario)
    rows = [] if bound is None else [(BOUND, *_costs(bound), NONE, number(bound.against, DIFFERENCE), NONE)]
    rows += [
        (
            marked(standing.scheduler, ranking.clairvoyant),
            *_costs(standing),
            number(standing.rank, "{:.0f}"),
            number(standing.against, DIFFERENCE),
            number(standing.improvement, PROBABILITY),
        )
        for standing in scenario_standings(ranking, scenario, ranking.devices[0])
    ]
    heads = ("scheduler", "cost", "IQM", "rank", "against the best", "better")
    return Plain(f"{scenario}, {workloads_of(ranking)}", heads, rows)


def workloads_of(ranking: Ranking) -> str:
    """Which workloads, and the GPU and fields that are not the scenario's own."""
    return ", ".join([SETS[ranking.workloads], *([ranking.gpu] if ranking.gpu else []), *ranking.settings])


def bound_standing(ranking: Ranking, scenario: str) -> Standing | None:
    """The cost with every tenant alone beside the best hand-written scheduler's; ``None`` if it was not run."""
    alone = ranking.alone(scenario)
    if alone is None:
        return None
    best = reference_of(ranking, scenario)
    costs = ranking.costs(scenario, ranking.devices[0])
    return next(s for s in standings({ALONE: alone, best: costs[best]}, best) if s.scheduler == ALONE)


def terminal(ranking: Ranking) -> Any:
    """What the command prints."""
    return plain_tables([table(ranking, scenario) for scenario in ranking.variants], {})


def markdown(rankings: Sequence[Ranking], title: str = "Rankings") -> str:
    """A page of several result files."""
    lines = [f"# {title}", "", "Written by `gpusched rank-page` from the files that `gpusched rank` wrote.", ""]
    lines += [EXPLANATION]
    for ranking in rankings:
        for scenario in ranking.variants:
            plain = table(ranking, scenario)
            lines += [f"## {plain.title}", "", episodes_of(ranking, scenario), "", markdown_table(plain)]
    lines += ["## How to repeat it", "", "```sh", *(repeat(ranking) for ranking in rankings), "```"]
    return "\n".join(lines).rstrip() + "\n"


def repeat(ranking: Ranking, file: str = "ranking.json") -> str:
    """The command that runs a ranking again, into ``file``."""
    parts = ["gpusched", "rank", *ranking.variants, "--schedulers", ",".join(ranking.schedulers)]
    parts += ["--seeds", str(len(ranking.seeds)), "--seed", str(min(ranking.seeds))]
    parts += ["--workloads", ranking.workloads, "--devices", ",".join(ranking.devices)]
    parts += ["--gpu", ranking.gpu] if ranking.gpu else []
    parts += [part for setting in ranking.settings for part in ("--set", setting)]
    return shlex.join([*parts, "--json", file])


def episodes_of(ranking: Ranking, scenario: str) -> str:
    """Which episodes a table is about, and how the devices compare."""
    variants = ranking.variants[scenario]
    of = "the scenario" if variants == [scenario] else f"{len(variants)} variants"
    about = f"{len(ranking.seeds)} seeds (from {min(ranking.seeds)}) of {of}. {_devices(ranking, scenario)}"
    return f"{about} {legend(ranking.schedulers, ranking.clairvoyant)}".rstrip()


def _devices(ranking: Ranking, scenario: str) -> str:
    if len(ranking.devices) == 1:
        return f"Device: {ranking.devices[0]}."
    orders = [[s.scheduler for s in scenario_standings(ranking, scenario, device)] for device in ranking.devices]
    same = "the same order" if all(order == orders[0] for order in orders) else "different orders"
    largest = device_difference(ranking, scenario)
    costs = f"differ by {largest:.1g} at most" if largest else "are equal"
    return f"Devices {' and '.join(ranking.devices)}: {same}, costs of every episode {costs}."


def _costs(standing: Standing) -> tuple[str, str]:
    return number(standing.mean, COST), number(standing.iqm, COST)


def number(interval: Interval, form: str) -> str:
    """A figure with its interval."""
    value = form.format(interval.mean)
    if interval.low is None or interval.high is None:
        return value
    return f"{value} [{form.format(interval.low)}, {form.format(interval.high)}]"
