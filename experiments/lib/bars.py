"""A picture of figures beside published ones: bars for each case, a panel for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpusched_env.display.palette import COLOURS
from gpusched_env.experiments.lib.drawing import drawing

OURS, THEIRS = COLOURS[0], "#c9c9c9"
PANEL_IN: Final = (7.5, 1.9)


def bars_svg(panels: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]], unit: str = "speed-up") -> bytes:
    """As SVG; equal figures give equal bytes.

    Args:
        panels: by title, our figures and the published ones, by case.
        unit: of all.

    Raises:
        InputError: matplotlib is not installed.
    """

    with drawing((PANEL_IN[0], PANEL_IN[1] * len(panels))) as (figure, finished):
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (title, (ours, theirs)) in zip(axes, panels.items(), strict=True):
            places = np.arange(len(theirs))
            for shift, values, colour, label in ((-0.2, theirs, THEIRS, "paper"), (0.2, ours, OURS, "ours")):
                axis.bar(places + shift, [values[case] for case in theirs], 0.4, color=colour, label=label)
            axis.axhline(1.0, color="black", linewidth=0.6)
            axis.set_title(title, loc="left", fontsize=9.0)
            axis.set_ylabel(unit)
            axis.set_xticks(places, list(theirs), rotation=35, ha="right")
        axes[0].legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))
        return finished()
