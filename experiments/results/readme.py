"""The README's tables of results: ``python -m gpusched_env.experiments.results.readme README.md``.

They are rows of the leaderboard, from the same files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from gpusched_env.agents.origin import origin
from gpusched_env.agents.shipped import FOLDER
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.games.registry import game_of
from gpusched_env.experiments.lib.trained import LEARNED
from gpusched_env.experiments.reference.leaderboard import committed
from gpusched_env.experiments.results.summary import HEADS, PRIORITIES, Summary, of_record

SCENARIO: Final = "InferenceBesideTraining"
PLAIN: Final = game_of(SCENARIO).plain_gpu
ROWS: Final = {
    PLAIN: "the GPU without a scheduler",
    "time-slicing": "two processes take turns",
    PRIORITIES: "requests in streams of high priority",
    "tally": "Tally (ASPLOS 2025)",
    "orion": "Orion (EuroSys 2024)",
    LEARNED: f"agent: a {origin(FOLDER / f'{SCENARIO}.npz')}",
}
ALONE: Final = "nobody ever waits for anybody: a bound"
SERVING: Final = tuple(f"Serving{name}" for name in ("Poisson", "Overload", "FleetSlice", "Burst", "BestEffort"))
MARKED: Final = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- /results -->)", re.DOTALL)
MARKED_SERVING: Final = re.compile(r"(?<=<!-- serving -->\n).*?(?=<!-- /serving -->)", re.DOTALL)


def table(own: Summary, held_out: Summary) -> str:
    """Some schedulers of one scenario, the costliest first, on its own workloads and on held-out ones, as Markdown."""
    costs, unseen = (_mean_costs(of) for of in (own, held_out))
    trade = own.ranking.trade(SCENARIO)
    rows = []
    for name in sorted(ROWS, key=lambda name: -costs[name]):
        p99, rest = (f"{trade[name][figure].mean:.2f}" for figure in ("urgent_p99", "best_effort"))
        changes = [NONE if name == PLAIN else f"{of[name] / of[PLAIN] - 1:+z.1%}" for of in (costs, unseen)]
        rows.append([name, ROWS[name], f"{costs[name]:.1f}", changes[0], f"{unseen[name]:.1f}", changes[1], p99, rest])
    bounds = [of.ranking.alone(SCENARIO) for of in (own, held_out)]
    alone = [NONE if bound is None else f"{float(np.mean(bound)):.1f}" for bound in bounds]
    rows.append([NONE, ALONE, alone[0], NONE, alone[1], NONE, NONE, NONE])
    heads = ["scheduler", "", "cost", "against none", "held-out", "against none", "p99", "training"]
    files = " and ".join(f"[{of.episodes}](docs/{of.file})" for of in (own, held_out))
    about = f"Scenario {SCENARIO}, its own workload and held-out ones, which nobody trained or tuned on: {files}."
    return f"{Table('', heads, rows).markdown()}\n{about}\n"


def serving_table(rows: Sequence[Summary]) -> str:
    """The rows of the scenarios of services at load, as Markdown."""
    return Table("", HEADS, [row.cells() for row in rows]).markdown()


def updated(text: str, docs: Path) -> str:
    """The README's text with the tables of the result files in ``docs`` between their markers."""
    found = of_record(committed(docs))
    own, held_out = (
        next(row for row in found if (row.scenario, row.ranking.workloads) == (SCENARIO, workloads))
        for workloads in ("own", "held_out")
    )
    served = [row for name in SERVING for row in found if row.scenario == name]
    text = MARKED.sub(lambda _: table(own, held_out), text)
    return MARKED_SERVING.sub(lambda _: serving_table(served), text)


def _mean_costs(row: Summary) -> dict[str, float]:
    costs = row.ranking.costs(SCENARIO, row.ranking.devices[0])
    return {name: float(np.mean(of)) for name, of in costs.items()}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gpusched_env.experiments.results.readme README.md")
    readme = Path(sys.argv[1])
    readme.write_text(updated(readme.read_text(encoding="utf-8"), readme.parent / "docs"), encoding="utf-8")
