"""The picture of learning curves: cost over decisions, each seed, their mean, and the best hand-written schedulers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusched_env.display.palette import COLOURS, PALE
from gpusched_env.display.words import counted
from gpusched_env.experiments.lib.drawing import drawing
from gpusched_env.experiments.results.curves import Curves

BASELINES = 3
"""Hand-written schedulers that are drawn at most: the best one, and others that are within the frame with it."""
SIZE_IN = (7.5, 3.8)
AGENT, SEED, BASELINE = COLOURS[0], PALE, COLOURS[1]
FITS = 0.8
"""Of all costs, the share that fits into the frame: an untrained agent can cost many times what matters later."""
WHOLE = 3.0
"""The frame holds all costs if it need not be higher than this many times."""


def curves_svg(curves: Curves) -> bytes:
    """The picture as SVG; equal curves give equal bytes.

    Raises:
        InputError: matplotlib is not installed.
    """
    with drawing(SIZE_IN) as (figure, finished):
        axes = figure.add_subplot()
        steps = np.array(curves.timesteps) / 1e6
        for number, curve in enumerate(curves.curves):
            label = counted(len(curves.curves), "seed") if number == 0 else None
            axes.plot(np.array(curve.timesteps) / 1e6, curve.costs, color=SEED, linewidth=0.8, label=label)
        means = curves.means()
        low, high = ([getattr(m, side) for m in means] for side in ("low", "high"))
        if None not in low:
            axes.fill_between(steps, low, high, color=AGENT, alpha=0.18, linewidth=0, label="95 % interval")
        axes.plot(steps, [m.mean for m in means], color=AGENT, linewidth=2.0, label="mean")
        bottom, top = limits(curves)
        best = [(name, cost) for name, cost in curves.best_baselines(BASELINES) if cost <= top]
        axes.set_ylim(bottom, top)
        axes.set_xlim(0.0, max(float(steps[-1]), 1e-9))
        heights = apart([cost for _, cost in best], 0.055 * (top - bottom))
        for number, ((name, cost), height) in enumerate(zip(best, heights, strict=True)):
            style = ("-", "--", ":")[number % 3]
            axes.axhline(cost, color=BASELINE, linewidth=1.2, linestyle=style)
            axes.annotate(
                f"{name} {cost:.4g}",
                (1.0, cost),
                xytext=(1.02, height),
                xycoords=axes.get_yaxis_transform(),
                textcoords=axes.get_yaxis_transform(),
                color=BASELINE,
                va="center",
                annotation_clip=False,
            )
        axes.set_xlabel("decisions in millions")
        axes.set_ylabel("cost in validation")
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
        return finished()


def limits(curves: Curves) -> tuple[float, float]:
    """Lowest and highest cost in the frame: the best scheduler, all that is low, and of what is high a part."""
    costs = [cost for curve in curves.curves for cost in curve.costs]
    best = [cost for _, cost in curves.best_baselines(1)]
    bottom = min(costs + best)
    top = max([float(np.quantile(costs, FITS)), *best])
    if max(costs) - bottom <= WHOLE * (top - bottom):
        top = max([*costs, *best])
    margin = 0.08 * (top - bottom) or 0.01 * abs(top) or 1.0
    return bottom - margin, top + margin


def apart(values: Sequence[float], gap: float) -> list[float]:
    """Ascending ``values`` moved as little upwards as puts at least ``gap`` between neighbours, then centred again."""
    moved: list[float] = []
    for value in values:
        moved.append(max(value, moved[-1] + gap) if moved else value)
    shift = sum(m - v for m, v in zip(moved, values, strict=True)) / max(1, len(moved))
    return [value - shift for value in moved]
