"""XSched's queues under policies that let one tenant run at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.baselines.xsched import Interrupt, XSched
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import TenantColumn, View

T = TenantColumn


class OneQueue(XSched, ABC):
    """Base class of policies that resume the queue of one tenant and suspend all others."""

    reads: Reads = ("weights", "requests", "profiles", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        **{name: XSched.ranges[name] for name in ("threshold", "level", "interrupt")},
        "slice_us": Range(100.0, 50_000.0, log=True),
    }

    def __init__(
        self,
        slice_us: float = 1000.0,
        threshold: int = 16,
        batch: int | None = None,
        level: int = 1,
        interrupt: Interrupt = "save",
    ) -> None:
        """``slice_us``: time after which who runs is chosen anew (above 0). All others: as of
        :class:`~gpusched_env.baselines.xsched.XSched`.

        Raises:
            InputError: a value is out of range.
        """
        super().__init__(threshold=threshold, batch=batch, level=level, interrupt=interrupt)
        if not slice_us > 0.0:
            raise InputError(f"{type(self).__name__}: slice_us is {slice_us}, must be above 0")
        self._slice_us = slice_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nobody runs; without any weight all count alike."""
        super().reset(knowledge, rng)
        self.waits_for = None
        weights = [tenant.weight for tenant in knowledge.tenants]
        self._weights = weights if sum(weights) > 0.0 else [1.0] * len(weights)
        self._urgent = [False] * len(weights)
        self._running: int | None = None
        """The tenant whose queue runs."""
        self._noted_us = 0.0
        """Up to when it is noted who ran."""

    def _resumed(self, view: View) -> tuple[set[int], float]:
        """The tenant whose turn it is, and when that may change by itself."""
        tenants = view.tenants.array
        ready = ((tenants[:, T.KERNELS_PENDING] > 0) | (tenants[:, T.KERNELS_LAUNCHED] > 0)).tolist()
        self._running, until_us = self._turn(view, ready, view.time_us - self._noted_us)
        self._noted_us = view.time_us
        return (set() if self._running is None else {self._running}), until_us

    @abstractmethod
    def _turn(self, view: View, ready: Sequence[bool], ran_us: float) -> tuple[int | None, float]:
        """Who runs from now on, and when that is to be asked again (``inf``: at the next event).

        Args:
            view: the present.
            ready: whether each tenant has something launched or to launch.
            ran_us: how long who ran has run since this was asked.
        """
