"""Pictures for pages, with matplotlib: equal content gives equal bytes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gpusched_env.display.points import log_ticks
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    # Names of the file's elements are made of this and its content, so that equal pictures are equal files.
    "svg.hashsalt": "gpusched",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@contextlib.contextmanager
def drawing(size_in: tuple[float, float]) -> Iterator[tuple[Figure, Callable[[], bytes]]]:
    """An empty figure, and what makes SVG of it when it is drawn.

    Args:
        size_in: width and height, inches.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("pictures need matplotlib: pip install 'gpusched-env[experiments]'") from error
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size_in, layout="constrained")

        def finished() -> bytes:
            target = io.BytesIO()
            figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
            return b"\n".join(line.rstrip() for line in target.getvalue().splitlines()) + b"\n"

        yield figure, finished


def label_log(axis: Axis, low: float, high: float) -> None:
    """Plain numbers (1, 2, 5 times powers of ten) along a logarithmic axis that shows ``low`` to ``high``."""
    ticks = [tick for tick in log_ticks(low, high) if 0.8 * low <= tick <= 1.25 * high]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)
