"""The contract of a fleet: what a dispatcher sees at a report, what it can say, and how it is run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import IllegalCommand
from gpusched_env.games.fleet.co_location import NOW
from gpusched_env.games.fleet.problem import GpuKind
from gpusched_env.games.fleet.state import WAITS, FleetState
from gpusched_env.games.fleet.windows import PackingRule, choose
from gpusched_env.games.fleet.workload.jobs import JOB
from gpusched_env.scheduling.plain import whole
from gpusched_env.scheduling.sealed import frozen
from gpusched_env.scheduling.showing import Builders, read


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


def plain(command: Command) -> Command:
    """``command`` in Python's own numbers: what is checked is what is carried out.

    Raises:
        IllegalCommand: it is no command, or its numbers are not whole.
    """
    kind = type(command)
    if kind not in (Place, Move, Wait):
        raise IllegalCommand(f"{command!r} is no command of a fleet, which are Place, Move and Wait")
    return kind(**{name: whole(command, name, getattr(command, name)) for name in kind.__slots__})


KNOWN: Final = [name for name in JOB.names or () if name != "work_us"]  # Not for how long a job stays.
OF_JOBS: Final = FleetState._fields[: FleetState._fields.index("count")]
HIDDEN: Final = ("left_us", "ended_us")


class FleetView:
    """What a dispatcher sees at a report: arrivals so far, and what GPUs report. Its arrays are copies, each made when
    it is first read, which has to be before the next command.

    * ``now_us``; ``waiting``: jobs that have arrived and are on no GPU, in order of arrival.
    * Of jobs that have arrived, (jobs,): ``jobs``, with the columns of :data:`KNOWN`, and ``gpu_of``: the GPU of each,
      :data:`~gpusched_env.games.fleet.state.WAITS` or ``FINISHED``.
    * Of GPUs, (GPUs,): ``count`` of jobs; ``load``, their utilisations over ``speed``; ``claimed_gb`` of ``size_gb``;
      ``sleep_us`` after an iteration; ``ratio``, the worst mean latency over SLO since the last report, 0 without any.
    """

    def __init__(self, place: tuple[int, int], now_us: int) -> None:
        """``place``: of the fleet (:mod:`gpusched_env.scheduling.showing`)."""
        self._place, self.now_us = place, now_us

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name not in SHOWN:
            raise AttributeError(name)
        copy = self.__dict__[name] = frozen(read(self._place, name))
        return copy

    @cached_property
    def shown(self) -> FleetState:
        """All of this as flat arrays for compiled rules; what is not known (work left, ends, later jobs) is cut off."""
        return FleetState(*map(frozen, read(self._place, "state")))

    def choose(self, job: int, rule: PackingRule) -> int:
        """The GPU that a rule has for a job, or :data:`~gpusched_env.games.fleet.state.WAITS`."""
        return choose(self.shown, job, rule)


class Told(NamedTuple):
    """What views of a fleet are made of."""

    known: NDArray[np.void]
    """Of all jobs, later ones too."""
    state: FleetState

    @property
    def arrived(self) -> int:
        """Jobs that have."""
        return int(np.searchsorted(self.state.arrival_us, self.state.clock[NOW], side="right"))


def _cut_off(told: Told) -> FleetState:
    ends = dict.fromkeys(OF_JOBS, told.arrived) | dict.fromkeys(HIDDEN, 0)
    columns = zip(FleetState._fields, told.state, strict=True)
    return FleetState(*(column[: ends.get(name)] for name, column in columns))


SHOWN: Final[Builders[Told]] = {
    "waiting": lambda told: np.flatnonzero(told.state.gpu_of[: told.arrived] == WAITS),
    "jobs": lambda told: told.known[: told.arrived],
    "gpu_of": lambda told: told.state.gpu_of[: told.arrived],
    "count": lambda told: told.state.count,
    "load": lambda told: told.state.load,
    "claimed_gb": lambda told: told.state.claimed_gb,
    "size_gb": lambda told: told.state.size_gb,
    "speed": lambda told: told.state.speed,
    "sleep_us": lambda told: told.state.sleep_us,
    "ratio": lambda told: told.state.ratio,
}
"""Arrays of a view."""
BUILDERS: Final[Builders[Told]] = {**SHOWN, "state": _cut_off}


class Dispatcher(Protocol):
    """Decides at each report, until it says ``WAIT``, which job goes to which GPU.

    One whose decisions are a :class:`~gpusched_env.games.fleet.windows.PackingRule` has it as ``rule``, and is run
    compiled.
    """

    control: str
    """What runs on each GPU, of :data:`~gpusched_env.games.fleet.co_location.CONTROLS`."""

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        """A fleet of these GPUs starts."""

    def decide(self, view: FleetView) -> Command:
        """The next command."""
