"""What a training tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpusched_env.agents.training.folder import CurveEntry


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far a training is."""

    timesteps: int
    """Decisions so far, those of a round or generation under way included."""
    validation: CurveEntry | None
    """The validation that has just been made, of the policy now or at the beginning; ``None``: none was."""
    best_cost: float | None
    validating: bool = False
    """Whether a validation begins."""


OnProgress = Callable[[TrainingProgress], bool | None]
"""Called while decisions are made, and as every validation begins and ends; ``False`` ends the training, at the end of
a round or generation."""
