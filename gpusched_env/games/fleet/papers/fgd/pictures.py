"""The picture of the page: GPUs in use and fragmented GPUs by what pods have asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpusched_env.display.palette import COLOURS
from gpusched_env.experiments.lib.pages import drawing
from gpusched_env.games.fleet.papers.fgd.runs import NAMES, AllocationCurves

SHOWN: Final = ("default", "cpu200", "gpushare40", "gpuspec25", "multigpu40")
"""A workload of each kind."""
POLICY_COLOURS: Final = (*COLOURS[: len(NAMES) - 1], COLOURS[-1])
SIZE_IN: Final = (10.0, 4.6)
STEPS, MARKED_STEP = (2, 5), 10
"""Per cents between points of our lines, in use and fragmented, and of published dots."""
FIRST: Final = (70, 0)
"""The first per cent: below 70, most curves in use lie on each other."""


def curves_svg(
    ours: Mapping[tuple[str, str], AllocationCurves], theirs: Mapping[tuple[str, str], AllocationCurves]
) -> bytes:
    """Our means as lines, the published ones as dots, as SVG; equal curves give equal bytes.

    Args:
        ours: curves by workload and policy.
        theirs: the published ones.

    Raises:
        InputError: matplotlib is not installed.
    """
    with drawing(SIZE_IN) as (figure, finished):
        axes = figure.subplots(2, len(SHOWN), sharex="row", sharey="row", squeeze=False)
        for column, workload in enumerate(SHOWN):
            for (policy, name), colour in zip(NAMES.items(), POLICY_COLOURS, strict=True):
                pairs = zip(ours[workload, policy], theirs[workload, policy], FIRST, STEPS, strict=True)
                for axis, (mine, other, first, step) in zip(axes[:, column], pairs, strict=True):
                    asked, dots = (np.arange(first, mine.shape[1], each) for each in (step, MARKED_STEP))
                    label = name if axis is axes[0, 0] else None
                    axis.plot(asked, mine.mean(axis=0)[asked], color=colour, linewidth=1.2, label=label)
                    axis.plot(dots, other.mean(axis=0)[dots], "o", color=colour, markersize=2.5)
            axes[0, column].set_title(workload, loc="left", fontsize=9.0)
            axes[1, column].set_xlabel("% of GPUs asked for")
        axes[0, 0].set_ylabel("% of GPUs in use")
        axes[1, 0].set_ylabel("% of GPUs fragmented")
        figure.legend(frameon=False, ncols=len(NAMES), loc="outside upper center", title="lines: ours; dots: published")
        return finished()
