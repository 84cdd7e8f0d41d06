"""What cuSync's user would pick who has measured everything: each policy, order and wait kernel, for all pairs alike.

cuSyncGen (Jangda et al., CGO 2024, section 4) emits a policy for each way in which the tiles that a consumer reads can
share semaphores, and an order that puts them one after the other; its user runs all of them and keeps the best. Here
the very episode that is played is simulated with each, and in stream order.
"""

from __future__ import annotations

import itertools
import math
from typing import get_args

import numpy as np

from gpusched_env.baselines.cusync import CuSync, Policy
from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import ORDERS, Command
from gpusched_env.scheduling.reads import EVERYTHING, TRUTH, Reads
from gpusched_env.scheduling.scheduler import Scheduler
from gpusched_env.scheduling.view import View


class CuSyncSearch:
    """Reference: cuSync by the policy, order and wait kernel that cost least in this very episode."""

    reads: Reads = (*EVERYTHING, TRUTH)
    clairvoyant = True
    set_up = SetUp(commands=("synchronise",))

    def __init__(self) -> None:
        self.chosen: Scheduler = PassThrough()
        """What is played."""
        self.cost = math.inf
        """What the episode will cost."""

    def see(self, truth: Problem, seed: int) -> None:
        """Try everything; of equal costs the first, and stream order before all."""
        # They bring in Numba, which a list of schedulers does not need.
        from gpusched_env.baselines.rehearsal import Rehearsal
        from gpusched_env.devices.compiled.device import CompiledDevice

        rehearsal = Rehearsal(truth, seed, CompiledDevice())
        choices = itertools.product(get_args(Policy), ORDERS, (False, True))
        self.chosen, self.cost = PassThrough(), rehearsal.cost_of(PassThrough(), math.inf)
        for policy, order, wait_kernel in choices:
            member = CuSync(policy, order, wait_kernel)
            cost = rehearsal.cost_of(member, self.cost)
            if cost < self.cost:
                self.chosen, self.cost = member, cost

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Begin what was chosen."""
        self.chosen.reset(knowledge, rng)

    def decide(self, view: View) -> Command:
        """As it was tried."""
        return self.chosen.decide(view)
