"""Models of stable-baselines3 and sb3-contrib, as they are in memory or in a ``.zip``. Needs PyTorch.

A ``.zip`` holds weights, which PyTorch reads as numbers only, and the model's attributes, which are pickled: to
unpickle them is to run whatever code their author put there. So they are left alone where our own ``config.yaml`` lies
beside the file and says what the policy is, and otherwise unpickled for a caller only who trusts the file.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize
from stable_baselines3.dqn.policies import DQNPolicy
from torch import Tensor

from gpusched_env.agents.policies.registry import OPENS_AS, policy_of
from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.environments import training_layout
from gpusched_env.agents.training.folder import CONFIG, read_config
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.observations import Observation, ObservationEncoder
from gpusched_env.envs.setup import offered
from gpusched_env.errors import InputError
from gpusched_env.reading import check_unzipped, opened
from gpusched_env.scenarios.knowledge import Offer
from gpusched_env.scenarios.scenario import Scenario

ALGORITHMS: Final[dict[str, type[BaseAlgorithm]]] = {
    "maskable-ppo": MaskablePPO,
    "ppo": PPO,
    "recurrent-ppo": RecurrentPPO,
    "a2c": A2C,
    "dqn": DQN,
}
"""By the name that trainings have for them."""

Decide = Callable[[Observation, Any, NDArray[np.bool_], NDArray[np.bool_]], tuple[NDArray[np.int64], Any]]
"""The best actions and the next state of a recurrent policy, from observations with a first axis of ``n``, the present
state (``None`` at first), which of them begin an episode, shape ``(n,)``, and legal actions, shape ``(n, actions)``."""

_SCALED = (
    "the model sees observations that VecNormalize scales, and an exported policy or a saved model would decide "
    "without its statistics; train it with norm_obs=False"
)


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """The policy of a model, and what is known of its training."""

    algorithm: str
    """A name of :data:`ALGORITHMS`."""
    policy: BasePolicy
    scenario: Scenario | None
    wait_us: float | None
    """Longest wait of action 0 in training; ``None``, as the scenario: not known."""
    seed: int | None
    timesteps: int
    interval_us: float = 0.0
    """How long its decisions stand; 0: each launch is one, or it is not known."""
    rejects: bool = True
    """Whether it may reject jobs, where :attr:`scenario` offers that."""
    futures: bool = True
    """Whether it is told what is lost in sampled futures, where its decisions stand for an interval."""

    @property
    def rows(self) -> tuple[int, int]:
        """Rows of tenants and of launched kernels that it sees."""
        spaces: Any = self.policy.observation_space
        return spaces["tenants"].shape[0], spaces["running"].shape[0]

    @property
    def actions(self) -> int:
        """Size of its action space."""
        space: Any = self.policy.action_space
        return int(space.n)

    def layout_in(self, scenario: Offer) -> ActionLayout:
        """Its actions in ``scenario``.

        A file of ``model.save`` does not say what its environments were: those that ``gym.make`` gives without asking
        for more, or else of everything that ``scenario`` offers.
        """
        if self.scenario is None and isinstance(scenario, Scenario):
            usual = offered(scenario, {}, None)
            layout = ActionLayout.of(usual.scenario, *self.rows, usual.interval_us, rejects=usual.rejects)
            if layout.n == self.actions:
                return layout
        return ActionLayout.of(scenario, *self.rows, self.interval_us, rejects=self.rejects, futures=self.futures)


def model_in_memory(model: BaseAlgorithm) -> TrainedModel:
    """What is known of a model.

    Raises:
        InputError: it is of an algorithm that is not in :data:`ALGORITHMS`, or its environment is wrapped so that it
            sees or does something else than a scheduler.
    """
    names = [name for name, kind in ALGORITHMS.items() if type(model) is kind]
    if not names:
        raise InputError(f"a model of {type(model).__name__}: expected one of {', '.join(ALGORITHMS)}")
    known = _environment(model.get_env())
    scenario, wait_us = known.pop("scenario", None), known.pop("wait_us", None)
    return TrainedModel(names[0], model.policy, scenario, wait_us, model.seed, model.num_timesteps, **known)


def _environment(env: VecEnv | None) -> dict[str, Any]:
    """What a model's environments tell: fields of :class:`TrainedModel`."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, VecNormalize) and env.norm_obs:
            raise InputError(_SCALED)
        env = env.venv
    if env is None:
        return {}
    if not isinstance(env, Sb3VecEnv):
        for kind in (gymnasium.ObservationWrapper, gymnasium.ActionWrapper):
            if any(env.env_is_wrapped(kind)):
                raise InputError(f"the model's environment has an {kind.__name__}, which a scheduler would not have")
    try:
        layout = env.get_attr("layout")[0]
        told = {name: env.get_attr(name)[0] for name in ("scenario", "wait_us")}
    except AttributeError:
        return {}
    return {**told, "interval_us": layout.interval_us, "rejects": layout.rejects, "futures": layout.futures}


def read_model(path: str | Path, *, trust: bool = False) -> TrainedModel:
    """The model in a ``.zip``.

    With the ``config.yaml`` of a training beside it nothing is unpickled, whether it is trusted or not.

    Args:
        path: of a file that ``model.save`` wrote.
        trust: whether it may be unpickled, which runs whatever code is in it.

    Raises:
        InputError: no model; not trusted; trained behind ``VecNormalize``, whose statistics are not in the file.
    """
    path = Path(path)
    try:
        _check_size(path)
        if (path.parent / CONFIG).is_file():
            config = read_config(path.parent / CONFIG)
            if not isinstance(config, TrainingConfig):
                raise InputError(f"{path}: a training of {config.name} has no model of stable-baselines3")
            return _of_training(path, config)
        with zipfile.ZipFile(path) as archive:
            missing = {"data", "policy.pth"} - set(archive.namelist())
        if missing:
            raise InputError(f"{path}: not a model of stable-baselines3, it has no {' or '.join(sorted(missing))}")
        if not trust:
            raise InputError(
                f"{path}: a model that stable-baselines3 has saved is loaded by running whatever code is in it. "
                "If you trust its author, say so: --trust (in Python trust=True). Otherwise ask for the exported "
                "policy, which is numbers only: gpusched_env.agents.export.export_policy(model, 'policy.npz')"
            )
        return _unpickled(path)
    except InputError:
        raise
    except Exception as error:  # Whatever a damaged file leads to.
        raise InputError(f"{path}: not a model of stable-baselines3, or not one that fits ({error!r})") from error


def _check_size(path: Path) -> None:
    """Refuse what expands to far more than its size, in the archive or in those of PyTorch that are its members.

    Raises:
        InputError: as :func:`~gpusched_env.reading.opened` and :func:`~gpusched_env.reading.check_unzipped`.
    """
    with opened(path) as file, zipfile.ZipFile(file) as archive:
        check_unzipped(archive, path.stat().st_size, str(path))
        for member in archive.infolist():
            with archive.open(member) as inner:
                if zipfile.is_zipfile(inner):
                    check_unzipped(zipfile.ZipFile(inner), member.file_size, f"{path}: {member.filename}")


def _of_training(path: Path, config: TrainingConfig) -> TrainedModel:
    algorithm = OPENS_AS.get(config.algo, config.algo)
    if algorithm not in ALGORITHMS:
        raise InputError(f"{path}: a training with {config.algo} has no model of stable-baselines3")
    assert config.policy is not None, "a checked configuration"
    layout = training_layout(config)
    encoder = ObservationEncoder.of(layout)
    given, arguments = policy_of(algorithm, config.policy, layout)
    kind: Any = ALGORITHMS[algorithm].policy_aliases[given] if isinstance(given, str) else given
    _, parameters, _ = load_from_zip_file(path, load_data=False, device="cpu")
    with zipfile.ZipFile(path) as archive:
        timesteps = int(json.loads(archive.read("data"))["num_timesteps"])
    spaces = (encoder.space(), layout.space())
    policy = _built(kind, spaces, {**arguments, **config.policy_kwargs}, parameters)
    known: dict[str, Any] = {"interval_us": config.interval_us, "futures": config.futures}
    return TrainedModel(algorithm, policy, config.scenario, config.wait_us, config.seed, timesteps, **known)


def _unpickled(path: Path) -> TrainedModel:
    data, parameters, _ = load_from_zip_file(path, device="cpu")
    assert data is not None
    kind = data["policy_class"]
    if issubclass(kind, DQNPolicy):
        algorithm, scaled = "dqn", not _unscaled(data["_last_obs"])
    else:
        # Noted when a training begins behind a VecNormalize, and by no other on-policy training.
        scaled = data["_last_original_obs"] is not None
        if issubclass(kind, MaskableActorCriticPolicy):
            algorithm = "maskable-ppo"
        elif issubclass(kind, RecurrentActorCriticPolicy):
            algorithm = "recurrent-ppo"
        elif issubclass(kind, ActorCriticPolicy):
            algorithm = "ppo" if "clip_range" in data else "a2c"
        else:
            raise InputError(
                f"{path}: a model with the policy {kind.__name__}; expected one of {', '.join(ALGORITHMS)}"
            )
    if scaled:
        raise InputError(f"{path}: {_SCALED}")
    policy = _built(kind, (data["observation_space"], data["action_space"]), data["policy_kwargs"], parameters)
    return TrainedModel(algorithm, policy, None, None, data["seed"], data["num_timesteps"])


def _unscaled(observations: Any) -> bool:
    """Whether the columns that say which rows are in use hold zeros and ones, as they do where nothing scales them."""
    return observations is None or bool(np.isin(observations["tenants"][..., 0], (0.0, 1.0)).all())


def torch_decider(policy: BasePolicy) -> Decide:
    """Decide with the policy's best actions."""

    def decide(
        observations: Observation, state: Any, starts: NDArray[np.bool_], masks: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], Any]:
        given: dict[str, Any] = {"action_masks": masks} if isinstance(policy, MaskableActorCriticPolicy) else {}
        actions, state = policy.predict(observations, state, starts, deterministic=True, **given)
        return np.asarray(actions, np.int64), state

    return decide


def _built(kind: Any, spaces: tuple[Any, Any], arguments: dict[str, Any], parameters: dict[str, Any]) -> BasePolicy:
    policy: BasePolicy = kind(*spaces, lambda _: 0.0, **arguments)
    weights: dict[str, Tensor] = parameters["policy"]
    policy.load_state_dict(weights)
    policy.set_training_mode(False)
    return policy
