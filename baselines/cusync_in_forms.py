"""cuSync's policies on kernels in the form that is quickest, or whose blocks are short enough to let others in.

cuSync's users compile each kernel with the tiles and the split-K that a search found quickest alone (Jangda et al., CGO
2024, section 5; the released code has a data base of them). Here the forms are there when a kernel is issued, and one
rule picks among them for all kernels: the least duration times the duration of a block to the power ``shorter``. With
0 that is the quickest form alone; the greater it is, the sooner a block's slot is free for somebody else.
"""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import numpy as np

from gpusched_env.baselines.cusync import CuSync, Policy
from gpusched_env.baselines.pending import ID
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import ORDERS, Command, Reshape, Synchronise, TileOrder
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View

PolicyOrNone = Literal["kernel", "row", "tile", "strided", "matrix"]


class CuSyncInForms(CuSync):
    """Every kernel in the form that a rule finds best, then every pair by one policy, or in stream order."""

    reads: Reads = ("profiles", "shapes", "dependencies")
    set_up: ClassVar[SetUp] = SetUp(commands=("reshape", "synchronise"))
    ranges: ClassVar[Ranges] = {
        "policy": Choice(get_args(PolicyOrNone)),
        "order": Choice(ORDERS),
        "wait_kernel": Choice((True, False)),
        "reorder": Choice((True, False)),
        "shorter": Range(0.0, 2.0),
        "hold_us": Range(0.0, 50.0),
    }

    def __init__(
        self,
        policy: PolicyOrNone = "row",
        order: TileOrder = "native",
        wait_kernel: bool = False,
        reorder: bool = True,
        shorter: float = 0.0,
        hold_us: float = 10.0,
    ) -> None:
        """``policy``: ``kernel`` is stream order, the others are those of ``cusync``, as are the other options.

        ``shorter``: how much the time of a block counts.

        Raises:
            InputError: there is no such policy or order, or ``shorter`` or ``hold_us`` is negative.
        """
        if policy not in get_args(PolicyOrNone) or not shorter >= 0.0:
            raise InputError(
                f"cusync-in-forms: policy {policy!r}, shorter {shorter!r}; policies are "
                f"{', '.join(get_args(PolicyOrNone))}, shorter is at least 0"
            )
        paired: Policy = "row" if policy == "kernel" else policy
        super().__init__(paired, order, wait_kernel, reorder, hold_us)
        self._in_order, self._shorter = policy == "kernel", shorter

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Find the form of each kernel."""
        super().reset(knowledge, rng)
        sms = knowledge.gpu.sms

        def score(identity: int) -> float:
            kernel = knowledge.kernels[identity]
            waves = -(-kernel.blocks // (sms * kernel.blocks_per_sm))
            # NaN, of what was never measured, is never the least.
            return float(kernel.duration_us * (kernel.duration_us / waves) ** self._shorter)

        self._form = []
        for identity, kernel in enumerate(knowledge.kernels):
            scores = [score(one) for one in (identity, *kernel.forms)]
            self._form.append(int(np.nanargmin(scores)) - 1 if scores[0] == scores[0] else -1)

    def decide(self, view: View) -> Command:
        """Give the oldest kernel that is to have another form that; then as ``cusync``."""
        pending = view.pending
        for row in np.flatnonzero(pending.forms > 0.0):
            form = self._form[int(pending.identity[row])]
            if form >= 0:
                return Reshape(int(pending.array[row, ID]), form)
        # What is given once cannot be given again; grids are those of the forms now.
        return super().decide(view)

    def _synchronise(self, view: View, row: int) -> Synchronise | None:
        return None if self._in_order else super()._synchronise(view, row)
