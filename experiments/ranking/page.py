"""A ranking as tables: for the terminal and as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from gpusched_env.experiments.bootstrap import Interval
from gpusched_env.experiments.ranking.result import Ranking, device_difference
from gpusched_env.experiments.ranking.statistics import Standing, standings
from gpusched_env.experiments.reproduce.terminal import plain_tables
from gpusched_env.experiments.validate.tables import Plain, markdown_table

LEARNED = "learned"
NONE = "–"
SETS = {"own": "own workloads", "train": "training workloads", "held_out": "held-out workloads"}

EXPLANATION = """\
Every scheduler ran the same seeds of every variant. *Cost*: mean of the scenario's cost, lower is better. *IQM*: its
interquartile mean. *Rank*: by mean cost. *Against the best*: relative difference of the mean from that of the
best hand-written scheduler. *Better*: probability of a lower cost than that one's on an episode. Brackets are 95 %
intervals (bootstrap over seeds within variants, the same seeds for all).
"""


def reference_of(ranking: Ranking, scenario: str) -> str:
    """The hand-written scheduler of lowest mean cost."""
    costs = ranking.costs(scenario, ranking.devices[0])
    hand_written = [name for name in costs if not is_learned(name)]
    return min(hand_written or costs, key=lambda name: float(costs[name].mean()))


def is_learned(name: str) -> bool:
    """Whether a scheduler's name is that of a trained agent."""
    return name == LEARNED or name.startswith(f"{LEARNED}:")


def scenario_standings(ranking: Ranking, scenario: str, device: str) -> list[Standing]:
    """The ranking of one scenario on one device."""
    return standings(ranking.costs(scenario, device), reference_of(ranking, scenario))


def table(ranking: Ranking, scenario: str) -> Plain:
    """All schedulers on one scenario, best first."""
    rows = [
        (
            standing.scheduler,
            _number(standing.mean, "{:.4g}"),
            _number(standing.iqm, "{:.4g}"),
            _number(standing.rank, "{:.0f}"),
            _number(standing.against, "{:+.1%}"),
            _number(standing.improvement, "{:.2f}"),
        )
        for standing in scenario_standings(ranking, scenario, ranking.devices[0])
    ]
    gpu = f", {ranking.gpu}" if ranking.gpu else ""
    title = f"{scenario}, {SETS[ranking.workloads]}{gpu}"
    heads = ("scheduler", "cost", "IQM", "rank", "against the best", "better")
    return Plain(title, heads, rows)


def terminal(ranking: Ranking) -> Any:
    """What the command prints."""
    return plain_tables([table(ranking, scenario) for scenario in ranking.variants], {})


def markdown(rankings: Sequence[Ranking], title: str = "Rankings") -> str:
    """A page of several result files."""
    lines = [f"# {title}", "", "Written by `gpusched rank-page` from the files that `gpusched rank` wrote.", ""]
    lines += [EXPLANATION]
    for ranking in rankings:
        for scenario, variants in ranking.variants.items():
            plain = table(ranking, scenario)
            episodes = f"{len(ranking.seeds)} seeds (from {min(ranking.seeds)}) of {_variants(scenario, variants)}"
            lines += [f"## {plain.title}", "", f"{episodes}. {_devices(ranking, scenario)}", "", markdown_table(plain)]
    lines += ["## How to repeat it", "", "```sh", *(repeat(ranking) for ranking in rankings), "```"]
    return "\n".join(lines).rstrip() + "\n"


def repeat(ranking: Ranking) -> str:
    """The command that runs a ranking again."""
    parts = ["gpusched", "rank", *ranking.variants, "--schedulers", ",".join(ranking.schedulers)]
    parts += ["--seeds", str(len(ranking.seeds)), "--seed", str(min(ranking.seeds))]
    parts += ["--workloads", ranking.workloads, "--devices", ",".join(ranking.devices)]
    parts += ["--gpu", ranking.gpu] if ranking.gpu else []
    return shlex.join([*parts, "--json", "ranking.json"])


def _variants(scenario: str, variants: list[str]) -> str:
    return "the scenario" if variants == [scenario] else f"{len(variants)} variants"


def _devices(ranking: Ranking, scenario: str) -> str:
    if len(ranking.devices) == 1:
        return f"Device: {ranking.devices[0]}."
    orders = [[s.scheduler for s in scenario_standings(ranking, scenario, device)] for device in ranking.devices]
    same = "the same order" if all(order == orders[0] for order in orders) else "different orders"
    largest = device_difference(ranking, scenario)
    costs = f"differ by {largest:.1g} at most" if largest else "are equal"
    return f"Devices {' and '.join(ranking.devices)}: {same}, costs of every episode {costs}."


def _number(interval: Interval, form: str) -> str:
    value = form.format(interval.mean)
    if interval.low is None or interval.high is None:
        return value
    return f"{value} [{form.format(interval.low)}, {form.format(interval.high)}]"
