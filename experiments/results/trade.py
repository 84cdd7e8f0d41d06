"""The picture of protection against throughput: how the published systems are compared in their papers.

Urgent p99 over alone upwards, the others' progress to the right: the lower right corner is best. A line leads from a
scheduler with its published defaults to the same one tuned.
"""

from __future__ import annotations

from typing import Any

from gpusched_env.baselines.tuning import PREFIX
from gpusched_env.display.palette import COLOURS
from gpusched_env.display.points import log_ticks
from gpusched_env.experiments.lib.drawing import drawing, label_log
from gpusched_env.experiments.lib.figures import find_figure
from gpusched_env.experiments.lib.trained import is_learned
from gpusched_env.experiments.ranking.result import Ranking

WIDTH_IN, HEIGHT_IN, ENTRY_IN = 7.5, 4.6, 0.235
"""Of the picture, at least so high, and of an entry of its legend."""
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
