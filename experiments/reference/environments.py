"""The page of environments: data sheets, and on top a table of how much there is to gain on each, and who is best."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpusched_env.display.table import NONE, Table
from gpusched_env.envs import datasheet
from gpusched_env.envs.registration import OTHERWISE_FIRST, SECOND, env_id
from gpusched_env.experiments.reference.leaderboard import committed, foresight
from gpusched_env.experiments.results.summary import SHOWN, Summary, of_record
from gpusched_env.scenarios.scenario import scenario_names

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
HEADS: Final = ("environment", "headroom", *(f"best {kind}" for kind in SHOWN), "versions")
INTRODUCTION: Final = """\
The best of each kind on the scenario's own workloads, by mean cost ([leaderboard](leaderboard.md)). *Headroom*: what a
search that is told the episode costs less than the best of them ([headroom](headroom.md)).
"""
VERSIONS: Final = """\
A version is new where costs do not compare with those before; older ones play as ever. In v1, kernels that were
recorded on another GPU take other times.
"""


def document() -> str:
    """The table, and all data sheets behind it, as one Markdown document."""
    head, sheets = datasheet.environments_page().split("\n| id |", 1)
    return f"{head}\n{INTRODUCTION}\n{glance().markdown()}\n{VERSIONS}\n| id |{sheets}"


def glance() -> Table:
    """Each environment: its film, headroom, who is best, and what its versions are."""
    rankings = committed(DOCS)
    own = {row.scenario: row for row in of_record(rankings) if row.ranking.workloads == "own"}
    rows = []
    for name in (*scenario_names(), *datasheet.other_games()):
        film = "".join(datasheet.film(name)).strip()
        row = own.get(name)
        gain = NONE if row is None else foresight(row, rankings).partition(" ")[0]
        rows.append([f"[{name}](#{anchor(name)}) {film}", gain, *best(row), versions(name)])
    return Table("", HEADS, rows)


def anchor(name: str) -> str:
    """Of an environment's data sheet."""
    return env_id(name).lower().replace("/", "")


def best(row: Summary | None) -> list[str]:
    """The best of each kind, with its cost."""
    return [NONE] * len(SHOWN) if row is None else [row.cell(row.best(kind)) for kind in SHOWN]


def versions(name: str) -> str:
    """Ids that are registered, and whether the first is another problem besides."""
    also = ", another problem" if name in OTHERWISE_FIRST else ""
    return f"v1, v0{also}" if name in SECOND else "v0"
