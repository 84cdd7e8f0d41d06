"""What is fuzzed of a game: its devices, on cases of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gpusched_env.experiments.fuzz.case import KernelCounterexample
from gpusched_env.experiments.fuzz.draw import draw_case
from gpusched_env.experiments.fuzz.duel import play
from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.experiments.fuzz.shrink import Shrinker
from gpusched_env.experiments.lib.names import new_device


@dataclass(frozen=True)
class Fuzzing:
    """A kind of cases, and the kind of devices that they are played on."""

    new_device: Callable[[Any], Any]
    """From a name or factory."""
    draw: Callable[[int, int], Any]
    """The case of a seed and an episode."""
    play: Callable[[Any, Any, Any], Outcome]
    """A case, on what makes the device under test and what makes the trusted one."""
    shrinker: Callable[..., Any]
    counterexample: type[Any]
    """A :class:`~gpusched_env.experiments.fuzz.stored.Counterexample` with a case."""


KERNELS: Final = Fuzzing(new_device, draw_case, play, Shrinker, KernelCounterexample)
