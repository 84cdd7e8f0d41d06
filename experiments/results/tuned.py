"""What tuning changed for hand-written schedulers: on training workloads, and on those that it never saw."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.baselines.tuning import PREFIX, Tuning
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.games.game import Game
from gpusched_env.experiments.games.registry import game_of
from gpusched_env.experiments.lib.statistics import Interval, standings
from gpusched_env.experiments.ranking.page import DIFFERENCE
from gpusched_env.experiments.ranking.result import Ranking
from gpusched_env.experiments.tuning.table import tuning_table


def tuned_table(tuning: Tuning, rankings: Sequence[Ranking]) -> Table:
    """The table of a search, and the change on held-out workloads where a ranking has both.

    Args:
        tuning: of one scenario.
        rankings: all; those of its held-out workloads count, the one with most seeds first.
    """
    found = tuning_table(tuning)
    game = game_of(tuning.scenario)
    held_out = sorted(
        (r for r in rankings if tuning.scenario in r.variants and r.workloads == game.unseen and not r.gpu),
        key=lambda r: -len(r.seeds),
    )
    rows = []
    for row in found.rows:
        name, *cells, options = row
        changes = [held_out_change(ranking, tuning.scenario, str(name)) for ranking in held_out]
        known = next((change for change in changes if change is not None), None)
        rows.append(
            [name, *cells, NONE if known is None else known.text(DIFFERENCE), options, *_means(game, str(name))]
        )
    *heads, last = found.heads
    return Table(found.title, [*heads, "change, held-out", last, "reads", "may"], rows, found.note)


def _means(game: Game, scheduler: str) -> tuple[str, str]:
    """What it reads, and what it may do besides launching, if that is declared."""
    declared = game.means(scheduler) if scheduler in game.schedulers.names() else None
    if declared is None:
        return NONE, NONE
    reads, commands = declared
    return ", ".join(reads) or "nothing", ", ".join(commands) or "launch"


def held_out_change(ranking: Ranking, scenario: str, scheduler: str) -> Interval | None:
    """Relative change of the mean cost by tuning, on the same episodes; ``None`` if one of the two was not ranked."""
    tuned = f"{PREFIX}{scheduler}"
    if not {scheduler, tuned} <= set(ranking.schedulers):
        return None
    costs = ranking.costs(scenario, ranking.devices[0])
    both = {name: costs[name] for name in (scheduler, tuned)}
    return next(s.against for s in standings(both, scheduler) if s.scheduler == tuned)
