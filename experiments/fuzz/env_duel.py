"""A case played through the Gymnasium environment on two devices, compared after every action."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import numpy as np

from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.fuzz.case import Case, EnvOptions, RandomActions, Script
from gpusched_env.experiments.fuzz.compare import OBSERVATION, REWARD_RELATIVE
from gpusched_env.experiments.fuzz.duel import Duel, record
from gpusched_env.experiments.fuzz.players import ActionPlayer, action_of
from gpusched_env.hardware.specs import gpu_names, load_gpu
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.device import Device
from gpusched_env.workload.arrivals import ClosedLoop
from gpusched_env.workload.tenant import Tenant

REWARD_FLOOR = 1e-2
"""Rewards below this may differ by an absolute 1e-9."""
TIMES = ("time_us", "elapsed_us")

Start = tuple[dict[str, Any], dict[str, Any]]
"""Observation and info."""


class ProblemEnv(GpuSchedulingEnv):
    """The environment of a problem whose GPU or workloads have no name."""

    def __init__(self, problem: Problem, device: Device, case: Case, options: EnvOptions) -> None:
        batched = isinstance(device, CompiledDevice) and not options.views
        super().__init__(
            _stand_in(problem.scenario),
            device="compiled" if batched else device,
            slots=options.slots,
            running_slots=options.running_slots,
            wait_us=options.wait_us,
            record=case.record,
        )
        self.scenario = problem.scenario
        self.problem = problem


def _stand_in(scenario: Scenario) -> Scenario:
    """A scenario of shipped parts with the same actions and as many tenants: whatever shapes the spaces is kept."""
    gpu = max(gpu_names(), key=lambda name: load_gpu(name).priorities)
    tenants = tuple(Tenant(name=t.name, workload="toy_batch", arrivals=ClosedLoop()) for t in scenario.tenants)
    return msgspec.structs.replace(scenario, gpu=gpu, tenants=tenants)


class EnvDuel(Duel):
    """Takes the same actions, chosen by the mask on the trusted device, in two environments."""

    def run(self) -> None:
        """Play the case; raises ``Differs`` where the environments do."""
        case, options = self.case, self.case.env
        assert options is not None
        self._use(self.devices, options)
        self._actions: list[int] = []
        self._states: tuple[Any, Any] | None = None
        if case.before > 0:
            self._leave_unfinished()
        deadlock = False
        try:
            self._play()
        except DeadlockError:
            deadlock = True
            self.outcome.features.add("deadlock")
        self.compare_end()
        if self._states is not None:
            self._play_again(deadlock)

    def _use(self, devices: tuple[Device, Device], options: EnvOptions) -> None:
        """Make environments of two devices; an environment may bring a device of its own."""
        expected, found = (ProblemEnv(self.problem, device, self.case, options) for device in devices)
        self._envs = (expected, found)
        self.devices = (expected.device, found.device)

    def _player(self, player: RandomActions | Script) -> ActionPlayer:
        layout = self._envs[0].layout
        return ActionPlayer(player, layout.pending_slots * layout.choices("launch"))

    def _leave_unfinished(self) -> None:
        """Another episode, of which nothing may be left after a reset. Only errors count in it."""
        self.comparison.step = -1
        player = self._player(RandomActions(seed=self.case.seed))
        try:
            self.both("env.reset", lambda env: env.reset(seed=self.case.seed + 1), self._envs)
            for _ in range(self.case.before):
                mask = self._envs[0].action_masks()
                ours, _ = self._step(action_of(player.next(mask), mask))
                if ours[2] or ours[3]:
                    return
        except DeadlockError:
            return

    def _play(self) -> None:
        case, moves = self.case, self.outcome.moves
        assert isinstance(case.player, RandomActions | Script)
        player = self._player(case.player)
        self.comparison.step = 0
        self._look(self.both("env.reset", lambda env: env.reset(seed=case.seed), self._envs))
        over = False
        while not over:
            if len(moves) >= case.most_commands:
                self.outcome.features.add("left after the most commands")
                return
            if case.snapshot is not None and len(self._actions) == case.snapshot.step:
                self._states = self.both("env.save_state", lambda env: env.save_state(), self._envs)
            mask = self._envs[0].action_masks()
            act = player.next(mask)
            moves.append(act)
            over = self._act(action_of(act, mask))
        self.outcome.features.add("workload done" if self.devices[0].done else "horizon")

    def _act(self, action: int, *, again: bool = False) -> bool:
        """Take an action in both environments; whether the episode is over."""
        comparison = self.comparison
        comparison.step += 1
        if not again:
            self._actions.append(action)
        ours, theirs = self._step(action)
        self._look(((ours[0], ours[4]), (theirs[0], theirs[4])))
        comparison.close("reward", "reward", ours[1], theirs[1], REWARD_FLOOR, REWARD_RELATIVE)
        comparison.equal("end", "terminated, truncated", ours[2:4], theirs[2:4])
        if ours[4]["illegal_actions"]:
            self.outcome.features.add("illegal actions")
        return bool(ours[2] or ours[3])

    def _step(self, action: int) -> tuple[Any, Any]:
        try:
            return self.both(f"env.step({action})", lambda env: env.step(action), self._envs)
        except IllegalCommand as error:
            # An environment takes any action: its mask offers what no device accepts.
            self.comparison.differ("error IllegalCommand", f"env.step({action})", "no error", error)
            raise

    def _look(self, pair: tuple[Start, Start]) -> None:
        """Observations, infos, views and the devices' state."""
        (observation, info), (other, other_info) = pair
        comparison = self.comparison
        # The views first: what they differ in is closer to the cause.
        self.compare_state((self._envs[0].view, self._envs[1].view))
        comparison.equal("observation", "names of observations", sorted(observation), sorted(other))
        for name, values in observation.items():
            comparison.equal("observation", f"shape of observation.{name}", values.shape, other[name].shape)
            wrong = ~(np.abs(values - other[name]) <= OBSERVATION)
            if wrong.any():
                place = tuple(int(i) for i in np.argwhere(wrong)[0])
                comparison.differ("observation", f"observation.{name}{list(place)}", values[place], other[name][place])
        for name in TIMES:
            comparison.time("info", f"info.{name}", info[name], other_info[name])
        rest, other_rest = ({k: v for k, v in one.items() if k not in TIMES} for one in (info, other_info))
        comparison.plain("info", "info", rest, other_rest)

    def _play_again(self, deadlock: bool) -> None:
        """From the saved states on, the same actions lead to the same end."""
        plan, states = self.case.snapshot, self._states
        assert plan is not None
        assert states is not None
        self.outcome.features.add("back to a snapshot")
        kept = record(self.devices[0]), record(self.devices[1])
        if plan.fresh:
            assert self.case.env is not None
            self._use((self.makers[0](), self.makers[1]()), self.case.env)
            states = pickle.loads(pickle.dumps(states[0])), pickle.loads(pickle.dumps(states[1]))
        self.comparison.phase = "played again from a snapshot: "
        self.comparison.step = plan.step
        by_env = dict(zip(map(id, self._envs), states, strict=True))
        deadlock_again = False
        try:
            self._look(self.both("env.restore_state", lambda env: env.restore_state(by_env[id(env)]), self._envs))
            for action in self._actions[plan.step :]:
                self._act(action, again=True)
        except DeadlockError:
            deadlock_again = True
        self.comparison.equal("restore", "a deadlock", deadlock, deadlock_again)
        self.compare_with_record(kept)
