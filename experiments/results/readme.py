"""The README's table of results: ``python -m gpusched_env.experiments.results.readme README.md``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

from gpusched_env.experiments.games.registry import game_of
from gpusched_env.experiments.ranking.result import Ranking, read_ranking

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
MARKED = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- /results -->)", re.DOTALL)


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


def updated(text: str, ranking: Ranking) -> str:
    """The README's text with the table of these results between its markers."""
    return MARKED.sub(lambda _: table(ranking), text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gpusched_env.experiments.results.readme README.md")
    readme = Path(sys.argv[1])
    readme.write_text(updated(readme.read_text(encoding="utf-8"), read_ranking(RESULTS)), encoding="utf-8")
