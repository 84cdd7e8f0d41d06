"""What ``result.plot`` of a result is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from gpusched_env.display.plots import Figure


class Kinds:
    """What ``result.plot`` is: ``plot.cdf()`` or ``plot("cdf")``; its methods are the kinds of charts."""

    _usual = "cost"
    """The kind that ``plot()`` draws."""

    def __call__(self, kind: str = "", **options: Any) -> Figure:
        """The chart of one ``kind``, or the usual one.

        Raises:
            InputError: there is no such kind.
        """
        kind = kind or self._usual
        kinds = [name for name in dir(self) if not name.startswith("_")]
        if kind not in kinds:
            raise InputError(f"no chart {kind!r}; there are {', '.join(kinds)}")
        make: Callable[..., Figure] = getattr(self, kind)
        return make(**options)
