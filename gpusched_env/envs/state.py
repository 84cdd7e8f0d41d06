"""Where an environment's episode stands, and the saved form of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.observations import Shown
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.view import View


@dataclass(slots=True)
class Run:
    """The present episode. Arrays are replaced, never written to, so that shallow copies stay valid."""

    problem: Problem
    seed: int
    view: View
    """What the next action is decided on, or the final state."""
    shown: Shown
    mask: NDArray[np.bool_]
    deciding: bool
    """Whether the device waits for a command (otherwise it has reached the end)."""
    elapsed_us: float
    """Simulated time from the observation before this one, or from time 0."""
    over: bool = False
    """Whether the agent was told of the end."""
    cost: float = 0.0
    """Total cost that rewards have accounted for."""
    commands: int = 0
    illegal: int = 0

    def frozen(self) -> Run:
        """A copy whose view does not depend on the device any more."""
        return replace(self, view=View(**{field.name: getattr(self.view, field.name) for field in fields(View)}))


@dataclass(frozen=True, slots=True)
class EnvState:
    """A point of an episode that an environment can go back to; can be pickled if the device's snapshot can."""

    run: Run
    device: Any
    """The device's own snapshot."""
    rng: Mapping[str, Any]
    """State of the environment's ``np_random``."""
