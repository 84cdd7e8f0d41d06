"""The page of results: summary, tables, learning curves, trade-offs, tuning, and how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpusched_env.agents.manifest import Manifest
from gpusched_env.baselines.tuning import PREFIX, Tuning, tuning_for
from gpusched_env.display.palette import COLOURS, log_ticks
from gpusched_env.display.table import NONE, Table
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Game, game_of
from gpusched_env.experiments.lib.figures import find_figure
from gpusched_env.experiments.lib.pages import drawing, label_log
from gpusched_env.experiments.lib.pages import page as rendered
from gpusched_env.experiments.lib.statistics import Interval, standings
from gpusched_env.experiments.lib.trained import LEARNED, is_learned
from gpusched_env.experiments.ranking.page import (
    BOUND,
    COST,
    DIFFERENCE,
    EXPLANATION,
    PROBABILITY,
    all_episodes,
    all_tables,
    bound_standing,
    repeat,
)
from gpusched_env.experiments.ranking.result import Ranking
from gpusched_env.experiments.results.curves import Curves, curves_svg
from gpusched_env.experiments.results.summary import HEADS, ORDER, Summary, check_opponents, of_record
from gpusched_env.experiments.tuning.table import tuning_table

WIDTH_IN, HEIGHT_IN, ENTRY_IN = 7.5, 4.6, 0.235
"""Width of the picture, its least height, and the height of an entry of its legend, inches."""
ACROSS, UP = (find_figure(key, of_tenant=False) for key in ("best_effort", "urgent_p99"))
MARKERS = ("o", "s", "D", "^", "P", "v")


def has_trade(ranking: Ranking, scenario: str) -> bool:
    """Whether every scheduler has a point."""
    trade = ranking.trade(scenario)
    defined = [name for name, of in trade.items() if of["urgent_p99"].seeds and of["best_effort"].seeds]
    return set(defined) == set(ranking.schedulers)


def trade_svg(ranking: Ranking, scenario: str) -> bytes:
    """The picture as SVG; equal rankings give equal bytes.

    Raises:
        InputError: matplotlib is not installed.
    """
    points = {
        name: (of["best_effort"].mean, of["urgent_p99"].mean)
        for name, of in ranking.trade(scenario).items()
        if of["urgent_p99"].seeds and of["best_effort"].seeds
    }
    families = list(dict.fromkeys(name.removeprefix(PREFIX) for name in points))
    height_in = max(HEIGHT_IN, ENTRY_IN * (len(families) + 2))
    with drawing((WIDTH_IN, height_in)) as (figure, finished):
        axes = figure.add_subplot()
        for number, name in enumerate(families):
            look: dict[str, Any] = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKERS[number // len(COLOURS) % len(MARKERS)],
            }
            size = 7
            if is_learned(name):
                look, size = {"color": "black", "marker": "*"}, 13
            own = [points[known] for known in (name, f"{PREFIX}{name}") if known in points]
            across, up = zip(*own, strict=True)
            axes.plot(across, up, color=look["color"], linewidth=0.9, alpha=0.6)
            hollow = "none" if name in points and not is_learned(name) else "full"
            axes.plot(across[:1], up[:1], **look, fillstyle=hollow, linestyle="", markersize=size)
            axes.plot(across[1:], up[1:], **look, linestyle="", markersize=size)
            axes.plot([], [], **look, linestyle="", markersize=size, label=name)
        axes.set_yscale("log")
        heights = [up for _, up in points.values()]
        # The axis ends with a number, so that the topmost points lie between two.
        top = next(tick for tick in log_ticks(min(heights), max(heights)) if tick >= max(heights))
        label_log(axes.yaxis, min(heights), top)
        axes.set_xlabel(f"{ACROSS.label}, 1 is as alone: more is better")
        axes.set_ylabel(f"{UP.label}, times alone, logarithmic: less is better")
        axes.grid(which="both", color="#ececec", linewidth=0.6)
        axes.set_axisbelow(True)
        figure.legend(loc="outside right upper", frameon=False, title="hollow: default\nfilled: tuned")
        return finished()


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


def page(
    rankings: Mapping[str, Ranking],
    curves: Mapping[str, Curves],
    manifests: Sequence[Manifest],
    docs: Path,
) -> tuple[str, dict[str, bytes]]:
    """The page, and what belongs beside it: pictures, and all tables as CSV.

    Args:
        rankings, curves: by the names of their files, as the command is told them.
        manifests: of the shipped agents.
        docs: where the page will be.

    Returns:
        its Markdown, and by file name the others.

    Raises:
        InputError: no file has a trained agent; a file lacks episodes, is of another agent than the shipped one, or
            lacks the best hand-written scheduler.
    """
    check_policies(rankings, manifests)
    found = [row for row in of_record(rankings) if row.best("agent") is not None and len(row.everybody) > 1]
    check_opponents(found, list(rankings.values()))
    if not found:
        raise InputError(
            f"{', '.join(rankings)}: no trained agent beside a hand-written scheduler; gpusched lab rank --schedulers "
            f"{LEARNED},... ranks one"
        )
    pictures = {file: _picture(docs, curves, file) for file in curves}
    trades = _trades(rankings, docs)
    tables, ordered = f"{docs.stem}.csv", _ordered(list(rankings.values()))
    tunings = [tuning for name in scenarios_of(rankings) if (tuning := tuning_for(name)) is not None]
    text = rendered(
        "results.md.j2",
        summary=summary_table(found),
        bound=BOUND,
        trades={scenario: name for scenario, (name, _) in trades.items()},
        tuned=[tuned_table(tuning, list(rankings.values())) for tuning in tunings],
        tables=tables,
        explanation=EXPLANATION,
        episodes=all_episodes(ordered),
        curves={pictures[file]: drawn for file, drawn in curves.items()},
        cost=COST.format,
        manifests=manifests,
        commands=[*(tuning.command for tuning in tunings), *_commands(rankings, curves, docs)],
    )
    drawn = {pictures[file]: curves_svg(drawn) for file, drawn in curves.items()}
    drawn |= {name: trade_svg(ranking, scenario) for scenario, (name, ranking) in trades.items()}
    return text, {**drawn, tables: all_tables(ordered).encode()}


def check_policies(rankings: Mapping[str, Ranking], manifests: Sequence[Manifest]) -> None:
    """Refuse rankings of agents that were shipped once.

    Raises:
        InputError: names the file and the scenario.
    """
    own = {manifest.scenario for manifest in manifests}
    for file, ranking in rankings.items():
        for manifest in manifests:
            for scenario in (manifest.scenario, *(other for other in manifest.also if other not in own)):
                for ranked in {made.weights.get(scenario, {}).get(LEARNED) for made in ranking.made}:
                    if ranked not in (None, manifest.sha256):
                        raise InputError(
                            f"{file}: ranks another agent for {scenario} (SHA-256 {ranked[:12]}...) than the one that "
                            f"is shipped ({manifest.sha256[:12]}...); gpusched lab rank --resume renews its episodes"
                        )


def scenarios_of(rankings: Mapping[str, Ranking]) -> list[str]:
    """All scenarios of some rankings, each once."""
    return list(dict.fromkeys(scenario for ranking in rankings.values() for scenario in ranking.variants))


def _ordered(rankings: Sequence[Ranking]) -> list[Ranking]:
    """Scenario by scenario, the scenario's own GPU and workloads first, of a set of workloads most seeds first."""
    names = scenarios_of({str(number): ranking for number, ranking in enumerate(rankings)})
    return sorted(
        rankings,
        key=lambda r: (names.index(next(iter(r.variants))), r.gpu or "", ORDER.index(r.workloads), -len(r.seeds)),
    )


def _trades(rankings: Mapping[str, Ranking], docs: Path) -> dict[str, tuple[str, Ranking]]:
    """The name of each scenario's picture, and the ranking with most schedulers that it is drawn of, by scenario."""
    found: dict[str, tuple[str, Ranking]] = {}
    for scenario in scenarios_of(rankings):
        known = [r for r in rankings.values() if scenario in r.variants and r.gpu is None and has_trade(r, scenario)]
        if known:
            best = max(known, key=lambda r: (len(r.schedulers), r.workloads == "held_out"))
            found[scenario] = (f"{docs.stem}-{scenario}-trade.svg", best)
    return found


def summary_table(found: Sequence[Summary]) -> Table:
    """One row for each scenario and set of workloads that an agent was ranked on."""
    rows = []
    for row in found:
        agent, bound = row.best("agent"), bound_standing(row.ranking, row.scenario)
        assert agent is not None, "rows without one are not given"
        rows.append(
            (*row.cells(), agent.improvement.text(PROBABILITY), NONE if bound is None else COST.format(bound.mean.mean))
        )
    return Table("Summary", (*HEADS, "probability of improvement", BOUND), rows)


def _picture(docs: Path, curves: Mapping[str, Curves], file: str) -> str:
    """The name of a picture; numbered where a scenario has several."""
    scenario = curves[file].scenario
    same = [other for other in curves if curves[other].scenario == scenario]
    number = "" if same[0] == file else f"-{same.index(file) + 1}"
    return f"{docs.stem}-{scenario}{number}.svg"


def _commands(rankings: Mapping[str, Ranking], curves: Mapping[str, Curves], docs: Path) -> list[str]:
    lines = [repeat(ranking, file) for file, ranking in rankings.items()]
    for file, found in curves.items():
        folders = [_folder(curve.command, found.scenario) for curve in found.curves]
        lines += [curve.command for curve in found.curves]
        lines.append(shlex.join(["gpusched", "lab", "curves", *folders, "--json", file]))
    given = [part for file in curves for part in ("--curves", file)]
    return [*lines, shlex.join(["gpusched", "lab", "page", "results", *rankings, *given, "--docs", str(docs)])]


def _folder(command: str, scenario: str) -> str:
    """The folder that a training was written to, as its command says."""
    parts = shlex.split(command.replace("--out=", "--out "))
    return parts[parts.index("--out") + 1] if "--out" in parts[:-1] else f"results/train/{scenario}"
