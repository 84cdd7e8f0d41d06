"""The contract of a fleet: what a dispatcher sees at a report, what it can say, and how it is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.fleet.problem import GpuKind
from gpusched_env.fleet.state import WAITS, FleetState
from gpusched_env.fleet.windows import PackingRule, choose
from gpusched_env.planning.co_location import NOW
from gpusched_env.workload.fleet.jobs import JOB


@dataclass(frozen=True, slots=True)
class Place:
    """Put a job that waits on a GPU. Legal where its memory has room and there are clients left."""

    job: int
    gpu: int


@dataclass(frozen=True, slots=True)
class Move:
    """Put a job that is on a GPU on another one, where it restarts: it does nothing for ``restart_us``."""

    job: int
    gpu: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Until the next report."""


Command = Place | Move | Wait
WAIT: Final = Wait()


KNOWN: Final = [name for name in JOB.names or () if name != "work_us"]  # Not for how long a job stays.
OF_JOBS: Final = FleetState._fields[: FleetState._fields.index("count")]
HIDDEN: Final = ("left_us", "ended_us")


class FleetView:
    """What a dispatcher sees at a report: arrivals so far, and what GPUs report. Its arrays cannot be written.

    * ``now_us``; ``waiting``: jobs that have arrived and are on no GPU, in order of arrival.
    * Of jobs that have arrived, (jobs,): ``jobs``, with the columns of :data:`KNOWN`, and ``gpu_of``: the GPU of each,
      :data:`~gpusched_env.fleet.state.WAITS` or ``FINISHED``.
    * Of GPUs, (GPUs,): ``count`` of jobs; ``load``, their utilisations over ``speed``; ``claimed_gb`` of ``size_gb``;
      ``sleep_us`` after an iteration; ``ratio``, the worst mean latency over SLO since the last report, 0 without any.
    """

    def __init__(self, state: FleetState, known: NDArray[np.void]) -> None:
        """``known``: of all jobs."""
        self._state, self.now_us = state, int(state.clock[NOW])
        arrived = int(np.searchsorted(state.arrival_us, self.now_us, side="right"))
        self.jobs, self.gpu_of = _read_only(known[:arrived]), _read_only(state.gpu_of[:arrived])
        self.waiting = np.flatnonzero(self.gpu_of == WAITS)
        self.count, self.load = _read_only(state.count), _read_only(state.load)
        self.claimed_gb, self.size_gb = _read_only(state.claimed_gb), _read_only(state.size_gb)
        self.speed, self.sleep_us, self.ratio = map(_read_only, (state.speed, state.sleep_us, state.ratio))

    @property
    def shown(self) -> FleetState:
        """All of this as flat arrays for compiled rules; what is not known (work left, ends, later jobs) is cut off."""
        ends = {name: len(self.jobs) for name in OF_JOBS} | dict.fromkeys(HIDDEN, 0)
        columns = zip(FleetState._fields, self._state, strict=True)
        return FleetState(*(_read_only(column[: ends.get(name)]) for name, column in columns))

    def choose(self, job: int, rule: PackingRule) -> int:
        """The GPU that a rule has for a job, or :data:`~gpusched_env.fleet.state.WAITS`."""
        return choose(self._state, job, rule)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


class Dispatcher(Protocol):
    """Decides at each report, until it says ``WAIT``, which job goes to which GPU.

    One whose decisions are a :class:`~gpusched_env.fleet.windows.PackingRule` has it as ``rule``, and is run compiled.
    """

    control: str
    """What runs on each GPU, of :data:`~gpusched_env.planning.co_location.CONTROLS`."""

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        """A fleet of these GPUs starts."""

    def decide(self, view: FleetView) -> Command:
        """The next command."""
