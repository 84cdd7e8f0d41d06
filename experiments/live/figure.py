"""The picture of predictions: slowdowns on a real GPU against those in simulation, a panel a scenario."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusched_env.display.palette import tenant as look_of_tenant
from gpusched_env.experiments.lib.drawing import drawing, label_log
from gpusched_env.experiments.live.result import Live, slowdown_of

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
