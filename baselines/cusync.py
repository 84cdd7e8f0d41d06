"""cuSync: dependent kernels run beside each other, and their thread blocks synchronise tile by tile.

Abhinav Jangda, Saeed Maleki, Maryam Mehri Dehnavi, Madan Musuvathi, Olli Saarikivi, *A Framework for Fine-Grained
Synchronization of Dependent GPU Kernels* (CGO 2024). Producer and consumer go to different streams; a block of the
consumer waits for semaphores that blocks of the producer post. The user picks the policy; the wait kernel can be left
out where both kernels need fewer than two waves (W), the order of blocks where all tiles fit in two waves (T), and a
block can load its other operand before it waits (R).

Here a pair is synchronised while both kernels are pending. A kernel that has had a consumer before is held back for up
to ``hold_us`` until its host has issued that; cuSync's users launch both with one call.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from typing import ClassVar, Literal, get_args

import numpy as np

from gpusched_env.baselines.pending import ID, launchable_rows
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import ORDERS, Command, Launch, Synchronise, TileOrder, TilePolicy, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.synchronising import NEEDS
from gpusched_env.scheduling.view import View

Policy = Literal["row", "tile", "strided", "matrix"]
LAST = 64
"""How many of the last launched kernels are remembered, whose tiles one that comes may need."""
NEEDS_SHARE = NEEDS.index("share")


class CuSync:
    """Every pair of kernels is synchronised by one policy; kernels are launched in order of issue."""

    reads: Reads = ("dependencies", "shapes")
    set_up: ClassVar[SetUp] = SetUp(commands=("synchronise",))
    ranges: ClassVar[Ranges] = {
        "policy": Choice(get_args(Policy)),
        "order": Choice(ORDERS),
        "wait_kernel": Choice((True, False)),
        "reorder": Choice((True, False)),
        "hold_us": Range(0.0, 50.0),
    }

    def __init__(
        self,
        policy: Policy = "row",
        order: TileOrder = "native",
        wait_kernel: bool = False,
        reorder: bool = True,
        hold_us: float = 10.0,
    ) -> None:
        """``policy``: a block waits once, for its whole ``row``, for each ``tile`` before it reads it, or (``strided``)
        for the tiles that it reads together, or (``matrix``) once for each matrix of a producer that has several, and
        otherwise for each tile.

        ``order``, ``wait_kernel``: as :class:`~gpusched_env.scheduling.commands.Synchronise` has them. ``reorder``:
        what needs nothing of the producer is done before the first wait. ``hold_us``: how long a kernel waits for its
        consumer to be issued.

        Raises:
            InputError: there is no such policy or order, or ``hold_us`` is negative.
        """
        if policy not in get_args(Policy) or order not in ORDERS or not hold_us >= 0.0:
            raise InputError(
                f"cusync: policy {policy!r}, order {order!r}, hold_us {hold_us!r}; policies are "
                f"{', '.join(get_args(Policy))}, orders {', '.join(ORDERS)}, hold_us is at least 0"
            )
        self._policy, self._order, self._wait_kernel, self._reorder = policy, order, wait_kernel, reorder
        self._hold_us = hold_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Learn the grids of kernels; nobody has a consumer yet."""
        self._columns = [kernel.grid[0] for kernel in knowledge.kernels]
        self._producers: set[int] = set()
        self._launched: deque[tuple[int, int]] = deque(maxlen=LAST)

    def decide(self, view: View) -> Command:
        """Synchronise the oldest pair that can be; launch the oldest kernel that is not held back for a consumer."""
        pending = view.pending
        for pair in np.flatnonzero((pending.synchronisable == 1.0) & np.isin(pending.producer, pending.id)):
            command = self._synchronise(view, int(pair))
            if command is not None:
                return command
        consumed = set(pending.producer.tolist())
        self._producers |= {identity for kernel, identity in self._launched if kernel in consumed}
        until_us = math.inf
        for row in sorted(launchable_rows(view), key=lambda row: float(pending.array[row, ID])):
            held_until_us = float(pending.issued_us[row]) + self._hold_us
            alone = pending.id[row] not in consumed and pending.identity[row] in self._producers
            if not alone or pending.preempted[row] or view.time_us >= held_until_us:
                kernel = int(pending.array[row, ID])
                self._launched.append((kernel, int(pending.identity[row])))
                return Launch(kernel)
            until_us = min(until_us, held_until_us)
        return Wait(until_us)

    def _synchronise(self, view: View, row: int) -> Synchronise | None:
        """The command for a pair, by the row of its consumer; ``None``: it stays in stream order."""
        pending = view.pending
        policy = TilePolicy(self._policy, steps=int(pending.steps[row]), reorder=self._reorder)
        if pending.needs[row] == NEEDS_SHARE:
            policy = TilePolicy("share", reorder=self._reorder)
        elif self._policy == "matrix" and pending.fold[row] == 1.0:
            policy = dataclasses.replace(policy, kind="tile")
        elif self._policy == "strided":
            producer = int(pending.identity[pending.id == pending.producer[row]][0])
            policy = TilePolicy("strided", self._columns[producer] // int(pending.fold[row]), reorder=self._reorder)
        return Synchronise(int(pending.array[row, ID]), policy, self._order, self._wait_kernel)
