"""An exported policy plays in the environments of a batch, without Python between the decisions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.actor import Actor
from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.forward import act_batch
from gpusched_env.agents.network import Ints, Singles
from gpusched_env.compiling import cached
from gpusched_env.devices.compiled.layout import DEADLOCK, DECIDE, OVER
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.batch_state import state_at
from gpusched_env.envs.encoding import Bools
from gpusched_env.envs.stepping import step_range


class Player:
    """Decides and steps in a loop that is compiled as a whole; other Python threads run meanwhile."""

    def __init__(self, batch: EnvBatch, policy: ExportedPolicy) -> None:
        """
        Args:
            batch: its environments have the layout of ``policy``.
            policy: its weights can be replaced at each call.
        """
        assert policy.info.actions.running_slots == batch.observations["running"].shape[1]
        self.batch = batch
        self.asked: NDArray[np.int64] = np.zeros(batch.count, np.int64)
        """Decisions in each environment so far, waits included."""
        self.commands: NDArray[np.int64] = np.zeros(batch.count, np.int64)
        """Those that were not a wait."""
        self._actor = policy.actor(batch.observations["pending"].shape[1])
        self._counts = Counts(np.zeros(batch.count, np.bool_), self.asked, self.commands)
        self._numbers = np.zeros(batch.masks.shape, np.float32)

    def play(self, weights: NDArray[np.float32] | None = None, *, to_the_end: bool) -> None:
        """Play until all episodes under way are over, or one of them is.

        Args:
            weights: in place of the policy's.
            to_the_end: whether to go on until all are over.

        Raises:
            DeadlockError: in an episode work is left but nothing can happen any more.
        """
        actor = self._actor if weights is None else self._actor._replace(weights=weights)
        while _play(actor, to_the_end, self._numbers, self._counts, self.batch.state_at):
            self.batch.go_on()


class Counts(NamedTuple):
    """What is counted of each environment, ``(n,)``."""

    active: Bools
    """Whether a decision is open; written."""
    asked: Ints
    commands: Ints


@cached(nogil=True)
def _play(actor: Actor, to_the_end: bool, numbers: Singles, counts: Counts, address: int) -> bool:
    """Whether an environment has to be served, or is in a deadlock; then call again."""
    state = state_at(address)
    active, actions, reasons = counts.active, state.progress.actions, state.progress.reasons
    while True:
        count = 0
        for e in range(reasons.size):
            active[e] = reasons[e] == DECIDE
            count += active[e]
            actions[e] = 0
        if count == 0:
            return False
        act_batch(actor, active, state.observations, state.legal, numbers, actions)
        for e in range(reasons.size):
            counts.asked[e] += active[e]
            counts.commands[e] += actions[e] != 0
        if step_range(0, reasons.size, True, address) > 0:
            return True
        ended = 0
        for e in range(reasons.size):
            if reasons[e] == DEADLOCK:
                return True
            ended += active[e] and reasons[e] == OVER
        if ended > 0 and not to_the_end:
            return False
