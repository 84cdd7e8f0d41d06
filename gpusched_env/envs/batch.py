"""Many environments on the compiled device, stepped together: what the single and the vector environment share."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.building import build_of
from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled import layout as compiled
from gpusched_env.devices.compiled.arena import Arena, Saved
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.devices.compiled.entry import compile_units
from gpusched_env.devices.compiled.memory import Kept
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch_state import NO_ACTION, BatchState, StepScratch, put_state, shared
from gpusched_env.envs.drivers import UNITS
from gpusched_env.envs.extra_tables import CORE_TABLE as CORES
from gpusched_env.envs.extra_tables import KNOB_TABLE as KNOBS
from gpusched_env.envs.observations import NamedTables, Observation
from gpusched_env.envs.stepping import step_range
from gpusched_env.envs.team import Team
from gpusched_env.planning.interval import levels_of
from gpusched_env.planning.outlook import outlook_of
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.reward import rates, reward_weights
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View

NEEDS_MEMORY = (layout.FLUSH, layout.GROW_JOBS, layout.GROW_LAUNCHES)
WORTH_A_TEAM = 8
"""Environments to go on from which the other threads are called: to wake them costs as much as to step a few."""


class EnvBatch:
    """``count`` environments with equal spaces, each with a problem of its own.

    The arrays are live: a step overwrites them. Their first axis is the environment.
    """

    def __init__(
        self,
        count: int,
        layout_: ActionLayout,
        *,
        wait_us: float,
        threads: int = 1,
        entry: threading.RLock | None = None,
    ) -> None:
        """Waits until the compiled code of environments is built.

        Args:
            threads: how many run a step together; see :class:`~gpusched_env.envs.team.Team`.
            entry: lock of what stands before the batch; none: a new one.
        """
        build_of(*UNITS).wait()
        self.count = count
        self.wait_us = wait_us
        self.devices = [CompiledDevice() for _ in range(count)]
        """The devices behind the environments, for views, timelines and snapshots."""
        self.entry = entry if entry is not None else threading.RLock()
        """Lock of all devices and of the environment in front of them."""
        for device in self.devices:
            device.arena.entry = self.entry
        self._layout = layout_
        self.state = BatchState.zeros(count, layout_, drive_at=compile_units()["drive"], wait_us=wait_us)
        self._kept = Kept(self.state, put_state)
        self.state_at = self._kept.address
        """Address of the state, for :func:`~gpusched_env.envs.stepping.step_range` as long as there is the batch."""
        progress = self.state.progress
        self.observations = NamedTables(self.state.observations._asdict())
        self._besides = {KNOBS: self.state.knobs} if layout_.knobs else {}
        if layout_.budgets:
            self._besides[CORES] = self.state.cores
        self.observations.update(self._besides)
        self.masks = self.state.legal
        self.times_us = progress.times_us
        """Simulated time of the observation before, and of the present one."""
        self.reasons = progress.reasons
        """Why each environment stopped: ``layout.DECIDE`` where a decision is open, else ``layout.OVER``."""
        self.costs = progress.costs
        """Total cost of each episode so far."""
        others = [self.state._replace(scratch=StepScratch.of(layout_)) for _ in range(min(threads, count) - 1)]
        self._team = Team([self._kept, *(Kept(state, put_state) for state in others)]) if others else None

    def arena(self, index: int) -> Arena:
        """The memory of an environment."""
        return self.devices[index].arena

    def illegal(self, index: int) -> int:
        """Illegal actions of an environment's episode so far."""
        return int(self.arena(index).env["illegal"])

    def begin(self, index: int, problem: Problem, seed: int, record: Detail = "jobs") -> None:
        """Set an environment to the start of an episode; :meth:`run` takes it to the first decision."""
        self.arena(index).reset(problem, seed, record)
        self._touch(index, problem, 0.0)

    def save(self, index: int) -> tuple[Saved, float]:
        """The state of an environment, to go back to with :meth:`load`; can be pickled."""
        return self.arena(index).save(), float(self.costs[index])

    def load(self, index: int, state: tuple[Saved, float]) -> None:
        """Go back to a state exactly, as soon as :meth:`run` is called."""
        saved, cost = state
        self.arena(index).load(saved)
        self._touch(index, saved.problem, cost)

    def _touch(self, index: int, problem: Problem, cost: float) -> None:
        episodes, progress = self.state.episodes, self.state.progress
        episodes.addresses[index] = self.arena(index).address
        episodes.own_streams[index] = self._layout.own_streams_from(problem.streams)
        episodes.levels[index] = levels_of(problem.scenario.stream_priorities, self._layout.slots)
        if self._layout.interval_us > 0.0:
            tenants = len(problem.programs)
            outlook = problem.once(outlook_of)
            episodes.prices[index], episodes.exponents[index] = outlook.price_a_us, outlook.exponent
            episodes.pairs[index, :tenants, :tenants], episodes.graphs[index, :tenants] = outlook.pairs, outlook.graphs
        episodes.tenant_rates[index, : len(problem.programs)] = problem.once(rates)
        episodes.reward_weights[index] = problem.once(reward_weights)
        progress.actions[index] = NO_ACTION
        progress.reasons[index] = layout.FLUSH
        progress.costs[index] = cost
        progress.times_us[index] = 0.0
        progress.until_ps[index] = 0

    def run(self) -> None:
        """Take the environments that :meth:`begin` or :meth:`load` has touched to their present decision."""
        self.go_on()

    def step(self, actions: int | Sequence[int] | NDArray[np.integer[Any]], into: Observation | None = None) -> None:
        """Carry out one action in each environment and run it to its next decision, or to the end.

        Args:
            actions: one an environment, or one for all.
            into: tables like :attr:`observations`, C-contiguous, that are to hold the same afterwards.

        Raises:
            DeadlockError: in one of them work is left but nothing can happen any more.
        """
        self.state.progress.actions[:] = actions
        if self._team is None:
            if step_range(0, self.count, True, self.state_at) or layout.DEADLOCK in self.reasons:
                self.go_on()
            if into is not None:
                for name, table in into.items():
                    np.copyto(table, self.observations[name])
        else:
            stopped = self._team.run(True, self.state.observations if into is None else shared(into))
            if into is not None:
                for name, table in self._besides.items():
                    np.copyto(into[name], table)
            if stopped:
                self.go_on(into)

    def go_on(self, into: Observation | None = None) -> None:
        """Serve environments that stopped on the way, until none does.

        Args:
            into: as for :meth:`step`; only rows of environments that were served are written.

        Raises:
            DeadlockError: as :meth:`step`.
        """
        while True:
            waiting = np.flatnonzero(np.isin(self.reasons, NEEDS_MEMORY))
            if not waiting.size:
                break
            for index in waiting.tolist():
                self.arena(index).serve(int(self.reasons[index]))
                self.state.episodes.addresses[index] = self.arena(index).address
            if self._team is None or waiting.size < WORTH_A_TEAM:
                step_range(0, self.count, False, self.state_at)
            else:
                self._team.run(False, self.state.observations)
            if into is not None:
                for name, table in into.items():
                    table[waiting] = self.observations[name][waiting]
        stuck = np.flatnonzero(self.reasons == layout.DEADLOCK)
        if stuck.size:
            raise self.devices[stuck[0]].deadlock()

    def close(self) -> None:
        """End the threads."""
        if self._team is not None:
            self._team.close()


class BatchDriver:
    """A :class:`~gpusched_env.envs.drivers.Driver`: a batch of one environment."""

    def __init__(self, layout: ActionLayout, wait_us: float, entry: threading.RLock | None = None) -> None:
        self._batch = EnvBatch(1, layout, wait_us=wait_us, entry=entry)
        self.device: Device = self._batch.devices[0]
        self.entry = self._batch.entry
        self.mask = self._batch.masks[0]

    @property
    def view(self) -> View:
        return self.device.view()

    @property
    def deciding(self) -> bool:
        return bool(self._batch.reasons[0] == compiled.DECIDE)

    @property
    def cost(self) -> float:
        return float(self._batch.costs[0])

    @property
    def time_us(self) -> float:
        return float(self._batch.times_us[0, 1])

    @property
    def illegal(self) -> int:
        return self._batch.illegal(0)

    def reset(self, problem: Problem, seed: int, record: Detail) -> None:
        self._batch.begin(0, problem, seed, record)
        self._batch.run()

    def step(self, action: int) -> None:
        self._batch.step(action)

    def observe(self) -> Observation:
        return NamedTables({name: table[0].copy() for name, table in self._batch.observations.items()})

    def save(self) -> Any:
        return self._batch.save(0)

    def restore(self, state: Any) -> None:
        self._batch.load(0, state)
        self._batch.run()
