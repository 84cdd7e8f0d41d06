"""A picture of what the mechanisms add to the turnaround, by how fast the hosts are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gpusched_env.display import palette
from gpusched_env.experiments.lib.drawing import drawing

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

SIZE_IN: Final = (6.5, 3.4)
LINEAR_UP_TO: Final = 10.0
"""Percent; the axis is logarithmic above."""
COLOURS: Final = tuple(palette.COLOURS[number] for number in (3, 2, 0, 4, 1, 7))


def added_svg(swept: DataFrame, judged_ms: float, published: Mapping[str, float]) -> bytes:
    """As SVG: a line a mechanism, with the range over seeds; the published figures stand at the judged host speed.

    Args:
        swept: rows ``mechanism``, ``alone_ms`` (time of a request alone) and ``added`` (percent).
        judged_ms: of the judged setting.
        published: added percent by mechanism.

    Raises:
        InputError: matplotlib is not installed.
    """
    with drawing(SIZE_IN) as (figure, finished):
        axis = figure.subplots()
        axis.axvline(judged_ms, color="black", linewidth=0.6, linestyle=":")
        for (mechanism, of), colour in zip(swept.groupby("mechanism", sort=False), COLOURS, strict=False):
            by_host = of.groupby("host")
            alone_ms, added = by_host.alone_ms.mean(), by_host.added
            axis.plot(alone_ms, added.mean(), "o-", color=colour, markersize=3.0, label=mechanism)
            axis.fill_between(alone_ms, added.min(), added.max(), color=colour, alpha=0.25, linewidth=0.0)
            if mechanism in published:
                axis.plot([judged_ms], [published[mechanism]], "*", color=colour, markersize=11.0)
        axis.plot([], [], "*", color="black", markersize=9.0, label="published")
        axis.set_xscale("log")
        ticks = (4, 8, 15, 30, 60)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.set_yscale("symlog", linthresh=LINEAR_UP_TO)
        shown = (0, 5, 10, 20, 50, 100, 200, 400)
        axis.set_yticks(shown, [str(percent) for percent in shown])
        axis.set_ylim(bottom=0.0)
        axis.minorticks_off()
        axis.set_xlabel("a request alone, ms: how fast the host is")
        axis.set_ylabel("added to the turnaround, %")
        figure.legend(frameon=False, ncols=2, loc="outside upper center")
        return finished()
