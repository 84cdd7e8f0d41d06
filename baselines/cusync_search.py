"""What cuSync's user would pick who has measured everything: each policy, order and wait kernel, for all pairs alike.

cuSyncGen (Jangda et al., CGO 2024, section 4) emits a policy for each way in which the tiles that a consumer reads can
share semaphores, and an order that puts them one after the other; its user runs all of them and keeps the best. Here
the very episode that is played is simulated with each, and in stream order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import get_args

import numpy as np

from gpusched_env.baselines.cusync import CuSync, Policy
from gpusched_env.baselines.cusync_in_forms import CuSyncInForms, PolicyOrNone
from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import ORDERS, Command
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.reads import EVERYTHING, TRUTH, Reads
from gpusched_env.scheduling.view import View

SHORTER = (0.0, 1.0)
"""How much the time of a block counts in the choice of a form: nothing, or as much as that of the kernel."""


class CuSyncSearch:
    """Reference: cuSync by the policy, order, wait kernel and forms that cost least in this very episode."""

    reads: Reads = (*EVERYTHING, TRUTH)
    clairvoyant = True
    set_up = SetUp(commands=("reshape", "synchronise"))

    def __init__(self) -> None:
        self.chosen: Scheduler = PassThrough()
        """The scheduler that is played."""
        self.cost = math.inf
        """What the episode will cost."""

    def see(self, truth: Problem, seed: int) -> None:
        """Try everything; of equal costs the first, and stream order before all."""
        # They bring in Numba, which a list of schedulers does not need.
        from gpusched_env.baselines.rehearsal import Rehearsal
        from gpusched_env.devices.compiled.device import CompiledDevice

        rehearsal = Rehearsal(truth, seed, CompiledDevice())
        self.chosen, self.cost = PassThrough(), rehearsal.cost_of(PassThrough(), math.inf)
        for member in self._members(any(kernel.forms for kernel in truth.knowledge.kernels)):
            cost = rehearsal.cost_of(member, self.cost)
            if cost < self.cost:
                self.chosen, self.cost = member, cost

    @staticmethod
    def _members(in_forms: bool) -> Iterator[Scheduler]:
        """What is tried beside stream order, in which an order of blocks or a wait kernel changes nothing."""
        ways = tuple(itertools.product(ORDERS, (False, True)))
        yield from (CuSync(policy, *way) for policy in get_args(Policy) for way in ways)
        if in_forms:
            for policy, shorter in itertools.product(get_args(PolicyOrNone), SHORTER):
                of_policy = ways[:1] if policy == "kernel" else ways
                yield from (CuSyncInForms(policy, *way, shorter=shorter) for way in of_policy)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Begin what was chosen."""
        self.chosen.reset(knowledge, rng)

    def decide(self, view: View) -> Command:
        """Decide as the way that was tried and chosen."""
        return self.chosen.decide(view)
