"""The README's tables of results: ``python -m gpusched_env.experiments.results.readme README.md``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gpusched_env.experiments.games.registry import game_of
from gpusched_env.experiments.lib.statistics import standings
from gpusched_env.experiments.lib.trained import LEARNED
from gpusched_env.experiments.ranking.result import Ranking, read_rankings
from gpusched_env.experiments.reference.leaderboard import is_published

RESULTS = Path("docs/results/InferenceBesideTraining-own-all.json")
SCENARIO = "InferenceBesideTraining"
PLAIN = game_of(SCENARIO).plain_gpu
ROWS = {
    PLAIN: "the GPU without a scheduler",
    "time-slicing": "two processes take turns",
    "priority-streams": "requests in streams of high priority",
    "tally": "Tally (ASPLOS 2025)",
    "orion": "Orion (EuroSys 2024)",
    "learned": "agent: a rule whose weights were searched",
}
ALONE = "nobody ever waits for anybody: a bound"
SERVING = tuple(f"Serving{name}" for name in ("Poisson", "Overload", "FleetSlice", "Burst", "BestEffort"))
SERVED = Path("docs/results")
MARKED = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- /results -->)", re.DOTALL)
MARKED_SERVING = re.compile(r"(?<=<!-- serving -->\n).*?(?=<!-- /serving -->)", re.DOTALL)


def table(ranking: Ranking) -> str:
    """Some schedulers of a ranking, the costliest first, as Markdown."""
    costs = {name: float(np.mean(of)) for name, of in ranking.costs(SCENARIO, ranking.devices[0]).items()}
    plain, trade = costs[PLAIN], ranking.trade(SCENARIO)
    lines = ["| scheduler | | cost | against none | p99 | training |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for name in sorted(ROWS, key=lambda name: -costs[name]):
        p99, rest = (trade[name][figure].mean for figure in ("urgent_p99", "best_effort"))
        change = "" if name == PLAIN else f"{costs[name] / plain - 1:+z.1%}"
        lines.append(f"| {name} | {ROWS[name]} | {costs[name]:.1f} | {change} | {p99:.2f} | {rest:.2f} |")
    alone = ranking.alone(SCENARIO)
    if alone is not None:
        mean = float(np.mean(alone))
        lines.append(f"| – | {ALONE} | {mean:.1f} | {mean / plain - 1:+z.1%} | | |")
    seeds = len(ranking.seeds)
    source = f"[`{RESULTS.name}`]({RESULTS.as_posix()})"
    return "\n".join([*lines, "", f"Scenario {SCENARIO}, means over {seeds} seeds, from {source}.", ""])


def serving_files() -> dict[str, Path]:
    """By scenario of services at load the ranking of its own workloads that has most episodes."""
    return {name: SERVED / f"{name}-own.json" for name in SERVING}


def serving_table(rankings: Mapping[str, Ranking]) -> str:
    """The agents of the scenarios of services at load, beside the best system and the best rule, as Markdown.

    ``rankings``: by scenario.
    """
    lines = [
        "| scenario | best published | best rule | agent | against published | against rule |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, ranking in rankings.items():
        costs = ranking.costs(name, ranking.devices[0])
        best = {
            published: min(
                (other for other in costs if other != LEARNED and is_published(other) == published),
                key=lambda other: float(np.mean(costs[other])),
            )
            for published in (True, False)
        }
        cells = [f"{other.partition('(')[0]} {float(np.mean(costs[other])):.1f}" for other in best.values()]
        for reference in best.values():
            agent = next(of for of in standings(costs, reference) if of.scheduler == LEARNED)
            if len(cells) == len(best):
                cells.append(f"{agent.mean.mean:.1f}")
            cells.append(agent.against.text("{:+z.1%}"))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    seeds = min(len(ranking.seeds) for ranking in rankings.values())
    source = f"[{seeds} episodes each](docs/results.md)."
    return "\n".join([*lines, "", source, ""])


def updated(text: str, ranking: Ranking, serving: Mapping[str, Ranking]) -> str:
    """The README's text with the tables of these results between their markers."""
    text = MARKED.sub(lambda _: table(ranking), text)
    return MARKED_SERVING.sub(lambda _: serving_table(serving), text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gpusched_env.experiments.results.readme README.md")
    readme = Path(sys.argv[1])
    read = read_rankings([RESULTS, *serving_files().values()])
    served = {name: read[path] for name, path in serving_files().items()}
    readme.write_text(updated(readme.read_text(encoding="utf-8"), read[RESULTS], served), encoding="utf-8")
