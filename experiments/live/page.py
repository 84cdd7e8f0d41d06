"""What a real GPU did beside what was predicted: tables, a page and its picture."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gpusched_env.display.palette import tenant as look_of_tenant
from gpusched_env.display.table import NONE, Table
from gpusched_env.display.words import counted
from gpusched_env.experiments.games.game import game_of
from gpusched_env.experiments.lib.figures import tables_csv
from gpusched_env.experiments.lib.pages import drawing, label_log, page
from gpusched_env.experiments.lib.renamed import now_called
from gpusched_env.experiments.lib.trained import is_learned, is_published, labels
from gpusched_env.experiments.live.result import Live, LiveEpisode, LiveFigures, errors_of, slowdown_of

SHARE, TAU = "{:.1%}", "{:.2f}"
SEPARATOR = " / "
"""Stands between what was measured and what was predicted."""


def summary(lives: Sequence[Live]) -> Table:
    """A row a scenario: how well order and times are predicted."""
    rows = []
    for live in lives:
        for scenario in live.tenants:
            episodes = [episode for episode in live.episodes if episode.scenario == scenario]
            turnaround = errors_of(episodes, lambda figures: figures.turnaround_us)
            makespan = errors_of(episodes, lambda figures: (figures.makespan_us,))
            fits = live.fits.get(scenario)
            rows.append(
                [
                    live.title(scenario),
                    live.gpu,
                    str(len(live.of(scenario))),
                    str(len(live.seeds)),
                    _shown(live.tau(scenario, lambda figures: figures.cost), TAU),
                    _in_order(live, scenario),
                    _shown(live.tau(scenario, lambda figures: figures.makespan_us), TAU),
                    _quantile(turnaround, 0.5),
                    _quantile(turnaround, 0.9),
                    _quantile(makespan, 0.5),
                    NONE if fits is None else f"{SHARE.format(fits.median)} / {SHARE.format(fits.p90)}",
                ]
            )
    heads = [
        "scenario", "GPU", "schedulers", "seeds", "tau of costs", "pairs in order", "tau of makespans",
        "error of turnaround, median", "p90", "error of makespan, median", "error of kernels alone, median / p90",
    ]  # fmt: skip
    return Table("Predicted and measured", heads, rows)


def _in_order(live: Live, scenario: str) -> str:
    right, pairs = live.in_order(scenario, lambda figures: figures.cost)
    return f"{right} of {pairs}" if pairs else NONE


def tables(live: Live) -> list[Table]:
    """One a scenario: every scheduler, by measured cost."""
    return [_table(live, scenario) for scenario in live.tenants]


def _table(live: Live, scenario: str) -> Table:
    of = live.of(scenario)
    named = labels(of)
    tenants = live.tenants[scenario]
    rows = []
    for scheduler in sorted(of, key=lambda name: _mean(of[name], True, lambda figures: figures.cost)):
        episodes = of[scheduler]
        rows.append(
            [
                named[scheduler],
                f"{np.mean([e.decision_us for e in episodes]):.0f}",
                _pair(episodes, lambda figures: figures.cost, "{:.4g}"),
                *(_pair(episodes, slowdown_of(row), "{:.3g}") for row in range(len(tenants))),
                _pair(episodes, lambda figures: _sum(figures.throughput_per_s), "{:.4g}"),
                _pair(episodes, lambda figures: figures.makespan_us / 1e3, "{:.4g}"),
                _quantile(errors_of(episodes, lambda figures: figures.turnaround_us), 0.5),
            ]
        )
    heads = [
        "scheduler",
        "us a decision",
        "cost",
        *(f"slowdown of {name}" for name in tenants),
        "jobs/s",
        "makespan ms",
    ]
    settings = f" With {', '.join(live.settings)}." if live.settings else ""
    seeds = counted(len(live.seeds), "seed")
    note = f"{live.product}. Measured / predicted, {seeds}.{settings}{_left_out(live, scenario)}"
    return Table(live.title(scenario), [*heads, "error of turnaround"], rows, note=note)


def _left_out(live: Live, scenario: str) -> str:
    """Schedulers that were left out, by reason."""
    reasons: dict[str, list[str]] = {}
    for scheduler, why in live.left_out.get(scenario, {}).items():
        reasons.setdefault(why.removeprefix(f"{scenario}: "), []).append(scheduler)
    return "".join(f" Left out ({', '.join(names)}): {why}." for why, names in reasons.items())


def _sum(values: Sequence[float | None]) -> float | None:
    return sum(value for value in values if value is not None) if any(values) else None


def _mean(episodes: Sequence[LiveEpisode], real: bool, figure: Callable[[LiveFigures], float | None]) -> float:
    """The mean over episodes that define the figure."""
    found = [figure(episode.real if real else episode.simulated) for episode in episodes]
    given = [value for value in found if value is not None]
    return float(np.mean(given)) if given else float("nan")


def _pair(episodes: Sequence[LiveEpisode], figure: Callable[[LiveFigures], float | None], form: str) -> str:
    measured, predicted = (_mean(episodes, real, figure) for real in (True, False))
    return f"{_shown(measured, form)}{SEPARATOR}{_shown(predicted, form)}"


def _shown(value: float, form: str) -> str:
    return NONE if np.isnan(value) else form.format(value)


def _quantile(errors: np.ndarray, share: float) -> str:
    return SHARE.format(np.quantile(errors, share)) if len(errors) else NONE


def agents(lives: Sequence[Live]) -> Table:
    """A row a scenario with a trained agent: its mean cost beside the best published system's and the best other's."""
    rows = []
    for live in lives:
        for scenario in live.tenants:
            means = {
                name: [_mean(episodes, real, lambda figures: figures.cost) for real in (True, False)]
                for name, episodes in live.of(scenario).items()
            }
            trained = [name for name in means if is_learned(name)]
            published = [name for name in means if is_published(name)]
            others = [name for name in means if name not in trained]
            if not (trained and published):
                continue
            agent = min(trained, key=lambda name: means[name][0])
            row = [live.title(scenario), live.gpu, f"{agent} {_costs(means[agent])}"]
            for group in (published, others):
                best = min(group, key=lambda name: means[name][0])
                row += [f"{best} {_costs(means[best])}", _difference(means[agent], means[best])]
            rows.append([*row, _worth(agent, game_of(scenario).plain_gpu, means)])
    heads = [
        "scenario", "GPU", "agent", "best published", "agent against it", "best other", "agent against it", "decisions",
    ]  # fmt: skip
    note = (
        "Mean costs and differences, measured / predicted; who is best, by what was measured. So few seeds rank no "
        "equals. Agents were trained where deciding takes no time. Where Python launches, in slow motion, it takes "
        "some 50 to 150 us: the less slow the motion, the more that costs, and those win that ask little of the host. "
        "With stretch=1 compiled code launched for those that decide for intervals; published systems decide about "
        "every launch in Python, and fall behind. Rows in slow motion were measured before there was that."
    )
    return Table("The trained agent beside the others", heads, rows, note=note)


def compiled_launches(lives: Sequence[Live]) -> Table:
    """A row a scenario in which compiled code launches for some schedulers: what a launch takes, and a decision."""
    rows = []
    for live in lives:
        for scenario in live.tenants:
            driven = {
                name: [episode for episode in episodes if episode.launch_us is not None]
                for name, episodes in live.of(scenario).items()
            }
            driven = {name: episodes for name, episodes in driven.items() if episodes}
            if not driven:
                continue
            episodes = [episode for of in driven.values() for episode in of]
            launch_us, p99_us = (
                float(np.median([us for us in taken if us is not None]))
                for taken in zip(*((e.launch_us, e.launch_p99_us) for e in episodes), strict=True)
            )
            # None of a scheduler's decisions may have come to stand before the end.
            decided = {name: [e.interval_us for e in of if e.interval_us is not None] for name, of in driven.items()}
            took_us = {name: float(np.mean(times)) for name, times in decided.items() if times}
            asked = sorted((us, name) for name, us in took_us.items())
            quick, slow = (f"{us:.0f} ({name})" for us, name in (asked[0], asked[-1])) if asked else (NONE, NONE)
            rows.append(
                [
                    live.title(scenario),
                    live.gpu,
                    str(len(driven)),
                    f"{launch_us:.1f} / {p99_us:.0f}",
                    quick,
                    slow,
                ]
            )
    heads = [
        "scenario", "GPU", "schedulers", "us a launch, median / p99", "us a decision, quickest", "slowest",
    ]  # fmt: skip
    note = (
        "A launch: from when the host is free, over hearing what the GPU has done and finding what is next, to when "
        "the driver has it. A decision for an interval: from the view to when it stands; launches go on meanwhile."
    )
    return Table("Launching in compiled code", heads, rows, note=note)


def _worth(agent: str, none: str, means: Mapping[str, Sequence[float]]) -> str:
    """Whether an agent's decisions were worth what they take, by what was measured: beside the GPU without any."""
    if none not in means:
        return NONE
    plain, own = means[none][0], means[agent][0]
    return f"cost more than they gain ({none} {plain:.4g})" if own > plain else "gain more than they cost"


def _costs(means: Sequence[float]) -> str:
    return " / ".join(f"{mean:.4g}" for mean in means)


def _difference(agent: Sequence[float], other: Sequence[float]) -> str:
    """Differences from another scheduler in per cent, measured and predicted."""
    return " / ".join(
        f"{100.0 * (mine / theirs - 1.0):+.0f} %" if theirs else NONE for mine, theirs in zip(agent, other, strict=True)
    )


def markdown(lives: Sequence[Live], picture: str, tables: str) -> str:
    """The page of several result files.

    Args:
        lives: at least one.
        picture: file of :func:`~gpusched_env.experiments.live.page.live_svg`, relative to the page.
        tables: file of :func:`all_tables`, likewise.
    """
    return page(
        "live.md.j2",
        picture=picture,
        tables=tables,
        summary=summary(lives),
        agents=agents(lives),
        compiled_launches=compiled_launches(lives),
        commands=[now_called(shlex.join(shlex.split(live.command))) for live in lives],
        products=sorted({live.product for live in lives}),
    )


def all_tables(lives: Sequence[Live]) -> str:
    """The tables of every scenario as CSV, measured and predicted figures in columns of their own."""
    return tables_csv(
        [
            ({"scenario": live.title(scenario), "gpu": live.gpu, "seeds": str(len(live.seeds))}, table)
            for live in lives
            for scenario in live.tenants
            for table in (_in_columns(_table(live, scenario)), _reasons(live, scenario))
        ]
    )


def _in_columns(table: Table) -> Table:
    """``table`` with two columns for each that has pairs."""
    paired = [SEPARATOR in str(cell) for cell in table.rows[0]]
    heads = [
        name
        for head, pair in zip(table.heads, paired, strict=True)
        for name in ((f"{head} measured", f"{head} predicted") if pair else (head,))
    ]
    rows = [
        [
            part
            for cell, pair in zip(row, paired, strict=True)
            for part in (str(cell).split(SEPARATOR) if pair else [str(cell)])
        ]
        for row in table.rows
    ]
    return Table(table.title, heads, rows)


def _reasons(live: Live, scenario: str) -> Table:
    """The table of schedulers that were left out, and why."""
    rows = [[name, why.removeprefix(f"{scenario}: ")] for name, why in live.left_out.get(scenario, {}).items()]
    return Table("", ["scheduler", "left out"], rows)


PANEL_IN = 3.4
COLUMNS = 4
NEAR = 0.1
"""Relative error up to which the band reaches."""


def live_svg(lives: Sequence[Live]) -> bytes:
    """A point for each scheduler and tenant, means over seeds; equal results give equal bytes.

    Raises:
        InputError: matplotlib is not installed.
    """
    panels = [(live, scenario) for live in lives for scenario in live.tenants]
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with drawing((PANEL_IN * columns, (PANEL_IN + 0.5) * rows)) as (figure, finished):
        for number, (live, scenario) in enumerate(panels):
            axes = figure.add_subplot(rows, columns, number + 1)
            everything: list[float] = []
            for row, tenant in enumerate(live.tenants[scenario]):
                means = live.means(scenario, slowdown_of(row))
                everything += means.ravel().tolist()
                colour = look_of_tenant(row).colour
                axes.plot(*means.T, color=colour, marker="o", markersize=5, alpha=0.75, linestyle="", label=tenant)
            low, high = 0.9 * min(everything), 1.1 * max(everything)
            line = np.array([low, high])
            axes.fill_between(line, line * (1 - NEAR), line * (1 + NEAR), color="#ececec", linewidth=0, zorder=0)
            axes.plot(line, line, color="#9a9a9a", linewidth=0.8, zorder=1)
            axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
            axes.set_title(live.title(scenario).replace(", ", "\n", 1), fontsize="medium")
            for axis in (axes.xaxis, axes.yaxis):
                label_log(axis, low, high)
            axes.set_xlabel("measured slowdown")
            if number % columns == 0:
                axes.set_ylabel("predicted slowdown")
            axes.legend(frameon=False, loc="upper left")
        return finished()
