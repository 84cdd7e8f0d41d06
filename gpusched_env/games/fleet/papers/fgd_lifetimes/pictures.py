"""The picture of the page: GPUs waited for by load, for both rules of the queue, and GPUs fragmented by hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gpusched_env.experiments.lib.pages import drawing
from gpusched_env.games.fleet.papers.fgd.pictures import POLICY_COLOURS
from gpusched_env.games.fleet.papers.fgd.runs import NAMES

SIZE_IN: Final = (10.0, 3.4)
LEAST_PERCENT: Final = 0.1
"""Where the logarithmic axis of GPUs waited for becomes linear."""


def fragmentation_svg(
    loads: Sequence[float],
    waited: Mapping[tuple[str, str], Sequence[float]],
    by_hour: Mapping[str, Sequence[float]],
) -> bytes:
    """The picture as SVG; equal figures give equal bytes.

    Args:
        loads: in order.
        waited: per cent of the GPUs waited for, of each load, by rule of the queue and policy.
        by_hour: per cent of the GPUs that are fragmented, of each hour, by policy.

    Raises:
        InputError: matplotlib is not installed.
    """
    rules = list(dict.fromkeys(rule for rule, _ in waited))
    with drawing(SIZE_IN) as (figure, finished):
        axes = figure.subplots(1, len(rules) + 1, squeeze=False)[0]
        for (policy, name), colour in zip(NAMES.items(), POLICY_COLOURS, strict=True):
            for axis, rule in zip(axes, rules, strict=False):
                label = name if axis is axes[0] else None
                axis.plot(loads, waited[rule, policy], "o-", color=colour, linewidth=1.2, markersize=2.5, label=label)
            hours = range(1, len(by_hour[policy]) + 1)
            axes[-1].plot(hours, by_hour[policy], color=colour, linewidth=1.2)
        for axis, rule in zip(axes, rules, strict=False):
            axis.set_yscale("symlog", linthresh=LEAST_PERCENT)
            axis.set_title(rule, loc="left", fontsize=9.0)
            axis.set_xlabel("load")
        axes[0].set_ylabel("% of GPUs waited for")
        axes[-1].set_title("overtaking, load 0.9", loc="left", fontsize=9.0)
        axes[-1].set_xlabel("hour")
        axes[-1].set_ylabel("% of GPUs fragmented")
        figure.legend(frameon=False, ncols=len(NAMES), loc="outside upper center")
        return finished()
