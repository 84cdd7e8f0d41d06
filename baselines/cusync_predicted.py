"""cuSync with a policy and an order for each pair, chosen by a prediction from grids and profiled durations.

The paper's users measure every policy that cuSyncGen emits (:mod:`.cusync_search`). Here a list schedule of the two
kernels' blocks says how long each would take (:mod:`gpusched_env.planning.tiles`), stream order included, and the
shortest is taken. It knows neither what else is on the GPU nor what reordered loads save. A pair whose producer is
itself behind another kernel, in stream order or for a wait kernel, has a wait kernel: otherwise the consumer would be
there first, and take its slots.
"""

from __future__ import annotations

import itertools
import math
from typing import ClassVar, get_args

import numpy as np

from gpusched_env.baselines.cusync import CuSync, Policy
from gpusched_env.baselines.pending import ID
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.hardware.tiles import KERNEL, NATIVE, Pair
from gpusched_env.planning.tiles import SCRATCH, blocks_of, charges_of, is_predictable, pair_us
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import ORDERS, POLICIES, PolicyKind, Synchronise, TileOrder, TilePolicy
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.synchronising import NEEDS
from gpusched_env.scheduling.view import PendingColumn, View

SURE = 0.99
"""A policy has to take less than this share of the time in stream order."""
Chosen = tuple[TilePolicy, TileOrder] | None


class CuSyncPredicted(CuSync):
    """Every pair by the policy and the order that a list schedule of its blocks finds shortest, or in stream order."""

    reads: Reads = ("profiles", "shapes", "dependencies")
    ranges: ClassVar[Ranges] = {"hold_us": Range(0.0, 50.0)}

    def __init__(self, hold_us: float = 10.0) -> None:
        """``hold_us``: how long a kernel waits for its consumer to be issued.

        Raises:
            InputError: ``hold_us`` is negative.
        """
        super().__init__(hold_us=hold_us)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Learn the grids and durations of kernels."""
        super().reset(knowledge, rng)
        self._knowledge = knowledge
        self._chosen: dict[tuple[int, ...], Chosen] = {}
        self._scratch = np.zeros(SCRATCH)

    def _synchronise(self, view: View, row: int) -> Synchronise | None:
        pending = view.pending
        before = int(np.flatnonzero(pending.id == pending.producer[row])[0])
        columns = (PendingColumn.IDENTITY, PendingColumn.NEEDS, PendingColumn.FOLD, PendingColumn.STEPS)
        key = (int(pending.identity[before]), *(int(pending.array[row, column]) for column in columns))
        if key not in self._chosen:
            self._chosen[key] = self._choose(*key)
        chosen = self._chosen[key]
        wait_kernel = bool(pending.upstream[before] > 0)
        return None if chosen is None else Synchronise(int(pending.array[row, ID]), *chosen, wait_kernel)

    def _choose(self, producer: int, consumer: int, needs: int, fold: int, steps: int) -> Chosen:
        """The shortest of all; ``None``: stream order, as where a kernel was never measured."""
        gpu, charges = self._knowledge.gpu, charges_of(self._knowledge.gpu.tiles)
        made, used = (self._knowledge.kernels[identity] for identity in (producer, consumer))
        if math.isnan(made.duration_us + used.duration_us):
            return None
        first, second = (blocks_of(k.blocks, gpu.sms * k.blocks_per_sm, k.duration_us) for k in (made, used))

        def numbers(policy: int, stride: int) -> Pair:
            rows, columns, slices = used.grid[1], used.grid[0], used.grid[2]
            return Pair(policy, stride, made.grid[1], made.grid[0], rows, columns, slices, needs, fold, 0.0)

        kinds: tuple[PolicyKind, ...] = ("share",) if NEEDS[needs] == "share" else get_args(Policy)
        in_order = numbers(KERNEL, 1)
        if not is_predictable(in_order, first, second):
            return None
        best, best_us = None, SURE * pair_us(in_order, first, second, charges, NATIVE, self._scratch)
        for kind, order in itertools.product(kinds, range(len(ORDERS))):
            policy = TilePolicy(kind, made.grid[0] // fold if kind == "strided" else 1, steps, reorder=True)
            pair = numbers(POLICIES.index(kind), policy.stride)
            took_us = pair_us(pair, first, second, charges, order, self._scratch)
            if took_us < best_us:
                best, best_us = (policy, ORDERS[order]), took_us
        return best
