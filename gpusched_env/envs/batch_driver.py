"""What runs an environment's episode on the compiled device, without Python in between."""

from __future__ import annotations

from typing import Any

from gpusched_env.devices.compiled import layout as compiled
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.observations import NamedTables, Observation
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.device import Device
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View


class BatchDriver:
    """A :class:`~gpusched_env.envs.drivers.Driver`: a batch of one environment."""

    def __init__(self, layout: ActionLayout, wait_us: float) -> None:
        self._batch = EnvBatch(1, layout, wait_us=wait_us)
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
