"""One side of a duel that is played through the Gymnasium environment: it is given actions."""

from __future__ import annotations

from typing import Any

import msgspec

from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.errors import DeadlockError
from gpusched_env.experiments.fuzz.case import Case
from gpusched_env.experiments.fuzz.moves import Move
from gpusched_env.experiments.fuzz.moves.others import Act
from gpusched_env.experiments.fuzz.players import ShownStep, action_of
from gpusched_env.experiments.fuzz.sides import Side
from gpusched_env.hardware.specs import gpu_names, load_gpu
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.device import Device
from gpusched_env.workload.arrivals import ClosedLoop
from gpusched_env.workload.tenant import Tenant


class EnvSide(Side):
    """An environment, which takes any action: its mask offers nothing that a device refuses."""

    may_raise: tuple[type[Exception], ...] = (DeadlockError,)

    def __init__(self, device: Device, problem: Problem, case: Case) -> None:
        options = case.env
        assert options is not None
        batched = isinstance(device, CompiledDevice) and not options.views
        self._env = GpuSchedulingEnv(
            _stand_in(problem.scenario),
            device="compiled" if batched else device,
            slots=options.slots,
            running_slots=options.running_slots,
            wait_us=options.wait_us,
            record=case.record,
            interval_us=0.0,
            commands=problem.scenario.commands,
        )
        # An environment is made of names; GPU and workloads of a case have none.
        self._env.scenario, self._env.problem = problem.scenario, problem
        super().__init__(self._env.device, problem, case)
        layout = self._env.layout
        self._launches = layout.pending_slots * layout.choices("launch")

    def reset(self, seed: int) -> ShownStep:
        return self._told(*self._env.reset(seed=seed))

    def meaning(self, move: Move, shown: ShownStep) -> int:
        assert isinstance(move, Act)
        assert shown.mask is not None
        return action_of(move, shown.mask)

    def step(self, action: Any) -> ShownStep:
        observation, reward, terminated, truncated, info = self._env.step(action)
        end = (terminated, truncated)
        return self._told(observation, info, over=any(end), reward=reward, end=end)

    def save(self) -> None:
        self.saved = self._env.save_state()

    def restore(self) -> ShownStep:
        return self._told(*self._env.restore_state(self.saved))

    def _told(self, observation: dict[str, Any], info: dict[str, Any], *, over: bool = False, **more: Any) -> ShownStep:
        told = {f"observation.{name}": values for name, values in observation.items()} | {"info": info} | more
        return ShownStep(self._env.view, over, told, info["action_mask"] == 1, self._launches)


def _stand_in(scenario: Scenario) -> Scenario:
    """A scenario of shipped parts with the same actions and as many tenants: whatever shapes the spaces is kept."""
    gpu = max(gpu_names(), key=lambda name: load_gpu(name).priorities)
    tenants = tuple(Tenant(name=t.name, workload="toy_batch", arrivals=ClosedLoop()) for t in scenario.tenants)
    return msgspec.structs.replace(scenario, gpu=gpu, tenants=tenants)
