"""The launches that were predicted worst."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusched_env.experiments.validate.run import Validation
from gpusched_env.experiments.validate.scoring import Prediction

SHOWN = 10


@dataclass(frozen=True, slots=True)
class WorstLaunch:
    """A launch and its scenario."""

    set_name: str
    prediction: Prediction
    launch: int
    """Row of the scenario's launches."""

    @property
    def error(self) -> float:
        """Signed relative error of the end."""
        return float(self.prediction.errors[self.launch])


def worst_launches(validation: Validation, count: int = SHOWN) -> list[WorstLaunch]:
    """The reproducible launches with the largest errors, worst first, at most one a scenario."""
    worst = []
    for name, predictions in validation.sets.items():
        for prediction in predictions:
            size = np.where(prediction.reproducible, np.abs(prediction.errors), -1.0)
            launch = int(size.argmax())
            if size[launch] >= 0.0:
                worst.append(WorstLaunch(name, prediction, launch))
    return sorted(worst, key=lambda w: -abs(w.error))[:count]
