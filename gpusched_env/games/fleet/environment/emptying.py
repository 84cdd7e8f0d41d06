"""What dispatchers have in common that place jobs, and empty a GPU now and then."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gpusched_env.games.fleet.dispatcher import WAIT, Command, FleetView, Move, Place
from gpusched_env.games.fleet.problem import GpuKind
from gpusched_env.games.fleet.state import WAITS, FleetState


class Emptying(ABC):
    """Every job that has a GPU is placed; then, once a report, the jobs of one GPU are moved, the last one first."""

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        """Nothing has been moved yet."""
        self._looked_us, self._old = -1, WAITS

    def decide(self, view: FleetView) -> Command:
        """The next command."""
        fleet = view.shown
        for job in view.waiting.tolist():
            gpu = self._gpu_for(fleet, job)
            if gpu != WAITS:
                return Place(job, gpu)
        if self._looked_us != view.now_us:
            self._looked_us, self._old = view.now_us, self._gpu_to_empty(fleet)
        old = self._old
        if old != WAITS and fleet.count[old] > 0:
            job = int(fleet.slots[old, fleet.count[old] - 1])
            gpu = self._beside(fleet, job, old)
            if gpu != WAITS:
                return Move(job, gpu)
        self._old = WAITS
        return WAIT

    @abstractmethod
    def _gpu_for(self, fleet: FleetState, job: int) -> int:
        """Where a job that waits goes, or ``WAITS``."""

    @abstractmethod
    def _gpu_to_empty(self, fleet: FleetState) -> int:
        """The GPU whose jobs are moved now, or ``WAITS``."""

    @abstractmethod
    def _beside(self, fleet: FleetState, job: int, but: int) -> int:
        """The GPU in use other than ``but`` that a job goes to, or ``WAITS``."""
