"""A picture of all speed-ups by the number of low-priority services, within the published range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from gpusched_env.display.palette import COLOURS
from gpusched_env.experiments.lib.drawing import drawing
from gpusched_env.experiments.papers.fikit.pairs import MOST_ABOVE, SPEEDUP

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

SIZE_IN: Final = (6.5, 3.2)
FAMILY_COLOUR, OTHER_COLOUR, RANGE_COLOUR = COLOURS[0], COLOURS[1], "#ececec"
WIDTH: Final = 0.32
"""Of a column of dots, on either side."""


def speedups_svg(by_number: Mapping[int, DataFrame]) -> bytes:
    """As SVG: a column a number of low-priority services, a dot a pair, a line the median; ``set_apart`` tells
    pairs apart.

    Raises:
        InputError: matplotlib is not installed.
    """
    with drawing(SIZE_IN) as (figure, finished):
        axis = figure.subplots()
        axis.axhspan(*SPEEDUP, color=RANGE_COLOUR, label="published range", zorder=0)
        axis.axhline(MOST_ABOVE, color="black", linewidth=0.8, linestyle="--", label=f"{MOST_ABOVE}: more than half")
        for place, pairs in enumerate(by_number.values()):
            for set_apart, colour, side, label in (
                (False, FAMILY_COLOUR, -1, "pairs of the paper's families"),
                (True, OTHER_COLOUR, 1, "pairs set apart"),
            ):
                values = np.sort(pairs.speedup[pairs.set_apart == set_apart].to_numpy())
                left = place + min(0.04 * side, side * (0.04 + WIDTH))
                across = np.linspace(left, left + WIDTH, len(values))
                axis.plot(across, values, "o", color=colour, markersize=2.5, label=None if place else label)
                if len(values):
                    axis.plot([left, left + WIDTH], [np.median(values)] * 2, color=colour, linewidth=1.5)
        axis.set_yscale("log")
        ticks = (1, 2, 3.4, 5, 10, 20, 50)
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.set_xticks(range(len(by_number)), [str(number) for number in by_number])
        axis.set_xlabel("low-priority services")
        axis.set_ylabel("speed-up of the high-priority one")
        figure.legend(frameon=False, ncols=2, loc="outside upper center")
        return finished()
