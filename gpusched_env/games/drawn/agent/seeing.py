"""What the agent sees of an episode: columns that mean the same in each scenario, as one row of numbers.

They come from the view alone, so that the same policy decides in simulation and on a GPU: no cost is told, no rate of
arrivals, no future. What it has learned of a scenario so far stands in the tenants' slowdowns, and in what it chose.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.features import DeviceFeature, TenantFeature
from gpusched_env.envs.observations import ObservationEncoder
from gpusched_env.games.drawn.environment.env import SLOTS, OfferFeature, offer_of
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.view import View

Row = NDArray[np.float32]
REPERTOIRE: Final = (
    "wspt", "gpreempt", "plan(interference=true)", "gpucolo(first_share=40)", "triage", "clockwork", "sjf",
)  # fmt: skip
"""The rules that the agent chooses among. On 73 scenarios of the training split the best of these was within 1 % of the
best of all in the mean of logarithms, taken one after the other by what each one adds."""
TENANTS: Final = SLOTS * len(TenantFeature)
"""The first numbers of a row: the table of tenants, row by row."""
OTHERS: Final = len(DeviceFeature) + len(OfferFeature) + 2 * len(REPERTOIRE)
"""The others: the device, what is on offer, which rule decided last, and how often each did."""
WIDTH: Final = TENANTS + OTHERS
ENCODER: Final = ObservationEncoder(SLOTS, 8)


class SeenSoFar:
    """An episode so far, as the agent sees it."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._offer = offer_of(knowledge)
        self._last = np.zeros(len(REPERTOIRE), np.float32)
        self._used = np.zeros(len(REPERTOIRE), np.float32)

    def row(self, view: View) -> Row:
        """What is seen where a decision is due, shape ``(WIDTH,)``, within -1 to 1."""
        tables: dict[str, Any] = ENCODER.encode(view)
        used = self._used / (self._used + 4.0)
        return np.concatenate((tables["tenants"].ravel(), tables["device"], self._offer, self._last, used))

    def chose(self, choice: int) -> None:
        """A decision was made; ``choice``: a place in :data:`REPERTOIRE`."""
        self._last[:] = 0.0
        self._last[choice] = 1.0
        self._used[choice] += 1.0
