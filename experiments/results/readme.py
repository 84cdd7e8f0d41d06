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

from gpusched_env.agents.shipped import FOLDER, origin
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.games.game import game_of
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
SHOWN: Final = (SCENARIO, *(f"Serving{name}" for name in ("Poisson", "Overload", "FleetSlice", "Burst", "BestEffort")))
"""Scenarios of the table of agents."""
LEFT_OUT: Final = ("episodes", PRIORITIES)
"""Columns that the leaderboard has besides."""
MARKED: Final = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- /results -->)", re.DOTALL)
MARKED_AGENTS: Final = re.compile(r"(?<=<!-- agents -->\n).*?(?=<!-- /agents -->)", re.DOTALL)


def table(row: Summary) -> str:
    """Some schedulers of one scenario, the costliest first, as Markdown."""
    costs = {name: float(np.mean(of)) for name, of in row.ranking.costs(SCENARIO, row.ranking.devices[0]).items()}
    trade = row.ranking.trade(SCENARIO)
    rows = []
    for name in sorted(ROWS, key=lambda name: -costs[name]):
        p99, rest = (f"{trade[name][figure].mean:.2f}" for figure in ("urgent_p99", "best_effort"))
        change = NONE if name == PLAIN else f"{costs[name] / costs[PLAIN] - 1:+z.1%}"
        rows.append([name, ROWS[name], f"{costs[name]:.1f}", change, p99, rest])
    if (alone := row.ranking.alone(SCENARIO)) is not None:
        mean = float(np.mean(alone))
        rows.append([NONE, ALONE, f"{mean:.1f}", f"{mean / costs[PLAIN] - 1:+z.1%}", NONE, NONE])
    heads = ["scheduler", "", "cost", "against none", "p99", "training"]
    about = f"{SCENARIO}, means over [{row.episodes}](docs/{row.file})."
    return f"{Table('', heads, rows).markdown()}\n{about}\n"


def agents_table(rows: Sequence[Summary]) -> str:
    """The rows of some scenarios with trained agents, as Markdown."""
    kept = [number for number, head in enumerate(HEADS) if head not in LEFT_OUT]
    cells = [[row.cells()[number] for number in kept] for row in rows]
    return Table("", [HEADS[number] for number in kept], cells).markdown()


def updated(text: str, docs: Path) -> str:
    """The README's text with the tables of the result files in ``docs`` between their markers."""
    found = of_record(committed(docs))
    own = next(row for row in found if (row.scenario, row.ranking.workloads) == (SCENARIO, "own"))
    shown = [row for name in SHOWN for row in found if row.scenario == name]
    text = MARKED.sub(lambda _: table(own), text)
    return MARKED_AGENTS.sub(lambda _: agents_table(shown), text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gpusched_env.experiments.results.readme README.md")
    readme = Path(sys.argv[1])
    readme.write_text(updated(readme.read_text(encoding="utf-8"), readme.parent / "docs"), encoding="utf-8")
