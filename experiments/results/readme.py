"""The README's tables: ``python -m gpusched_env.experiments.results.readme README.md``.

Results are rows of the leaderboard, from the same files; other figures are those of the pages that they come from.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from gpusched_env.agents.shipped import FOLDER, origin
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.games.game import game_of
from gpusched_env.experiments.lib.trained import LEARNED
from gpusched_env.experiments.ranking.page import DIFFERENCE
from gpusched_env.experiments.reference.leaderboard import committed
from gpusched_env.experiments.results import quoted
from gpusched_env.experiments.results.summary import PRIORITIES, Kind, Summary, of_record

SCENARIO: Final = "InferenceBesideTraining"
PLAIN: Final = game_of(SCENARIO).plain_gpu
ROWS: Final = {
    PLAIN: "no scheduler",
    PRIORITIES: "streams of high priority",
    "tally": "Tally (ASPLOS 2025)",
    "orion": "Orion (EuroSys 2024)",
    LEARNED: f"agent: {origin(FOLDER / f'{SCENARIO}.npz')}",
}
ALONE: Final = "bound: nobody waits"
SHOWN: Final = (SCENARIO, *(f"Serving{name}" for name in ("Poisson", "Overload", "FleetSlice", "Burst", "BestEffort")))
"""Scenarios of the table of agents."""
OTHERS: Final[tuple[Kind, ...]] = ("published", "rule")
"""Kinds of schedulers that are written by hand."""
WORDS: Final = {"better": " better", "no difference shown": ""}
"""What stands behind a difference, by verdict; else that the agent is worse."""
MARKED: Final = r"(?<=<!-- {0} -->\n).*?(?=<!-- /{0} -->)"
"""Between what a table stands, by its name."""


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
    """Some scenarios with trained agents: on their own workloads and on held-out ones, whose rows follow each other."""
    heads = [f"{of}: {what}" for of in ("own", "held-out") for what in ("best other", "agent against it")]
    cells = [[own.scenario, *_cells(own), *_cells(held_out)] for own, held_out in list(pairwise(rows))[::2]]
    return Table("", ["scenario", *heads], cells).markdown()


def _cells(row: Summary) -> list[str]:
    """The cheapest that is written by hand, and how much more the agent costs."""
    others = [one for one in map(row.best, OTHERS) if one is not None]
    best, agent = min(others, key=lambda one: one.mean.mean), row.best("agent")
    assert agent is not None  # Scenarios that are shown have one.
    difference = agent.against.text(DIFFERENCE)
    return [row.cell(best), f"{difference}{WORDS.get(row.verdict, ' worse')}"]


def updated(text: str, docs: Path) -> str:
    """The README's text with the tables of the result files and pages in ``docs`` between their markers."""
    found = of_record(committed(docs))
    own = next(row for row in found if (row.scenario, row.ranking.workloads) == (SCENARIO, "own"))
    tables = {
        "results": table(own),
        "agents": agents_table([row for name in SHOWN for row in found if row.scenario == name]),
        "peers": quoted.peers(docs).markdown(),
        "accuracy": quoted.accuracy(docs).markdown(),
    }
    for name, rows in tables.items():
        text = re.sub(MARKED.format(name), rows.replace("\\", r"\\"), text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gpusched_env.experiments.results.readme README.md")
    readme = Path(sys.argv[1])
    readme.write_text(updated(readme.read_text(encoding="utf-8"), readme.parent / "docs"), encoding="utf-8")
