"""An exported policy plays in the environments of a batch, without Python between the decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.forward import act_batch
from gpusched_env.agents.network import Ints
from gpusched_env.compiling import cached
from gpusched_env.devices.compiled.layout import DEADLOCK, DECIDE, OVER
from gpusched_env.envs.batch import EnvBatch
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
        layout = policy.info.actions
        slots = batch.observations["pending"].shape[1]
        self.batch = batch
        self.asked: NDArray[np.int64] = np.zeros(batch.count, np.int64)
        """Decisions in each environment so far, waits included."""
        self.commands: NDArray[np.int64] = np.zeros(batch.count, np.int64)
        """Those that were not a wait."""
        self._weights = policy.weights
        self._fixed: tuple[Any, ...] = (
            policy.sizes,
            policy.info.masked,
            np.zeros(batch.count, np.bool_),
            (*batch.observations.values(), batch.masks),
            policy.scratch(slots),
            np.zeros(batch.masks.shape, np.float32),
            batch.actions,
            batch.reasons,
            self.asked,
            self.commands,
            batch.arguments(),
        )
        assert layout.running_slots == batch.observations["running"].shape[1]

    def play(self, weights: NDArray[np.float32] | None = None, *, to_the_end: bool) -> None:
        """Play until all episodes under way are over, or one of them is.

        Args:
            weights: in place of the policy's.
            to_the_end: whether to go on until all are over.

        Raises:
            DeadlockError: in an episode work is left but nothing can happen any more.
        """
        used = self._weights if weights is None else weights
        arguments: Any = (used, to_the_end, *self._fixed)
        while _play(*arguments):
            self.batch.go_on()


@cached(nogil=True)
def _play(
    weights: Any,
    to_the_end: bool,
    sizes: Ints,
    masked: bool,
    active: Bools,
    seen: Any,
    scratch: Any,
    numbers: Any,
    actions: Ints,
    reasons: Ints,
    asked: Ints,
    commands: Ints,
    arguments: Any,
) -> bool:
    """Whether an environment has to be served, or is in a deadlock; then call again."""
    while True:
        count = 0
        for e in range(reasons.size):
            active[e] = reasons[e] == DECIDE
            count += active[e]
            actions[e] = 0
        if count == 0:
            return False
        act_batch(sizes, weights, masked, active, *seen, scratch, numbers, actions)  # type: ignore[call-arg]
        for e in range(reasons.size):
            asked[e] += active[e]
            commands[e] += actions[e] != 0
        if step_range(0, reasons.size, True, *arguments) > 0:
            return True
        ended = 0
        for e in range(reasons.size):
            if reasons[e] == DEADLOCK:
                return True
            ended += active[e] and reasons[e] == OVER
        if ended > 0 and not to_the_end:
            return False
