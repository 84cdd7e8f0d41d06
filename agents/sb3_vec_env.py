"""The vector environment as stable-baselines3 wants it, with sb3-contrib's batched action masks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices, VecEnvObs, VecEnvStepReturn

from gpusched_env.agents.shaping import Shaping
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError


class Sb3VecEnv(VecEnv):
    """A :class:`GpuSchedulingVectorEnv` in ``SAME_STEP`` mode, for the algorithms of stable-baselines3.

    The info of an environment whose episode ended holds all that the single environment's last info does
    (``episode_metrics``, ``reward_terms``, ...), ``terminal_observation``, ``TimeLimit.truncated`` (always false: what
    is left undone at the horizon is charged in the last reward, so that nothing must be added for what would have
    come after it), and ``episode`` with return ``r``, length ``l`` and time ``t``, so that no monitor is needed.
    Other infos are empty, the same dictionaries in every step: :attr:`infos` has those of the whole batch as arrays.

    An ``env`` without a ``render_mode`` gets ``rgb_array``, which costs nothing until somebody looks, so that a
    ``VecVideoRecorder`` can always record.

    ``shaping`` adds to the rewards that algorithms see and ``reward_scale`` multiplies them, so that they learn from
    numbers of a convenient size that come soon; ``episode`` has the true return.

    ``set_options`` takes what ``reset`` of the single environment does: ``{"scenario": {...}}`` for all
    environments or, in a list, for each.
    """

    def __init__(self, env: GpuSchedulingVectorEnv, reward_scale: float = 1.0, shaping: Shaping | None = None) -> None:
        """Wrap the vector environment ``env``.

        Raises:
            InputError: ``env`` is not in ``SAME_STEP`` mode, or does not copy its observations: algorithms put those
                from before a step into their buffers after it.
        """
        if env.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise InputError(
                f"autoreset_mode is {env.autoreset_mode.name}, but stable-baselines3 needs SAME_STEP: "
                "GpuSchedulingVectorEnv(..., autoreset_mode='SAME_STEP')"
            )
        if not env.copy:
            raise InputError("env has copy=False, but algorithms look at observations again after the next step")
        self.env = env
        self.reward_scale = reward_scale
        self._shaping = shaping
        if env.render_mode is None:
            env.draw_in("rgb_array")
        self.infos: dict[str, Any] = {}
        """Infos of the last reset or step, as Gymnasium's vector environments give them."""
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.metadata["render_fps"] = env.metadata["render_fps"]
        self._began = time.time()
        self._actions: NDArray[np.int64] = np.zeros(env.num_envs, np.int64)
        self._returns = np.zeros(env.num_envs)
        self._blank: list[dict[str, Any]] = [{} for _ in range(env.num_envs)]
        self._lengths = np.zeros(env.num_envs, np.int64)

    def reset(self) -> VecEnvObs:
        """Begin all episodes, with the seeds and options set before."""
        options: dict[str, Any] | None = None
        if any(self._options):
            for given in self._options:
                if given.keys() - {"scenario"}:
                    raise InputError(f"the options of an environment are {given}; known: scenario")
            options = {"scenarios": [given.get("scenario", {}) for given in self._options]}
        observations, self.infos = self.env.reset(seed=self._seeds, options=options)
        self._reset_seeds()
        self._reset_options()
        self._returns[:] = 0.0
        self._lengths[:] = 0
        if self._shaping is not None:
            self._shaping.begin(observations)
        self.reset_infos = [info_row(self.infos, index) for index in range(self.num_envs)]
        return observations

    def step_async(self, actions: NDArray[np.int64]) -> None:
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, terminations, truncations, self.infos = self.env.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        dones = terminations | truncations
        infos = self._blank.copy()
        for index in np.flatnonzero(dones).tolist():
            infos[index] = self._ending(index)
            self.reset_infos[index] = info_row(self.infos, index)
        if self._shaping is not None:
            rewards = rewards + self._shaping.step(observations, dones)
        return observations, (rewards * self.reward_scale).astype(np.float32), dones, infos

    def _ending(self, index: int) -> dict[str, Any]:
        episode = {
            "r": float(self._returns[index]),
            "l": int(self._lengths[index]),
            "t": round(time.time() - self._began, 6),
        }
        self._returns[index] = 0.0
        self._lengths[index] = 0
        return {
            **info_row(self.infos["final_info"], index),
            "terminal_observation": self.infos["final_obs"][index],
            "TimeLimit.truncated": False,
            "episode": episode,
        }

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Pictures of all environments, for ``render`` and ``VecVideoRecorder``."""
        return self.env.render() or [None] * self.num_envs

    def close(self) -> None:
        self.env.close()

    def save_state(self) -> dict[str, Any]:
        """The full state, to go back to with :meth:`restore_state`; can be pickled."""
        state = {"env": self.env.save_state(), "returns": self._returns.copy(), "lengths": self._lengths.copy()}
        return state if self._shaping is None else {**state, "shaping": self._shaping.save_state()}

    def restore_state(self, state: dict[str, Any]) -> VecEnvObs:
        """Go back to ``state`` exactly.

        Returns:
            the observations that belong to it.

        Raises:
            InputError: the state is of another number of environments, or of another action space.
        """
        observations, self.infos = self.env.restore_state(state["env"])
        self._returns[:] = state["returns"]
        self._lengths[:] = state["lengths"]
        if self._shaping is not None:
            self._shaping.restore_state(state["shaping"])
        self.reset_infos = [info_row(self.infos, index) for index in range(self.num_envs)]
        return observations

    # ---- what algorithms ask of single environments ----------------------------------------------

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the vector environment once; its value's rows are the environments' (``action_masks``)."""
        rows = getattr(self.env, method_name)(*method_args, **method_kwargs)
        return list(rows) if indices is None else [rows[index] for index in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of the vector environment, which all environments share."""
        return [getattr(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the vector environment, which all environments share."""
        if indices is not None:
            raise InputError(f"{attr_name} cannot be set for some environments: they share one object")
        setattr(self.env, attr_name, value)

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Whether infos hold what ``wrapper_class`` adds: those of ``Monitor`` do."""
        return [issubclass(wrapper_class, Monitor)] * len(list(self._get_indices(indices)))


def info_row(infos: dict[str, Any], index: int) -> dict[str, Any]:
    """The info of one environment's present episode out of Gymnasium's batched infos, as Python values."""
    row = {}
    for key, values in infos.items():
        if not key.startswith(("_", "final_")) and infos[f"_{key}"][index]:
            row[key] = info_row(values, index) if isinstance(values, dict) else _value(values[index])
    return row


def _value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
