"""Models of stable-baselines3 and sb3-contrib: read from memory or a ``.zip``, and exported to files that decide
without it.

Needs PyTorch.
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
from stable_baselines3.common.torch_layers import CombinedExtractor
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize
from stable_baselines3.dqn.policies import DQNPolicy
from torch import Tensor, nn

from gpusched_env.agents.policies.new_columns import unseen
from gpusched_env.agents.policies.registry import OPENS_AS, policy_of
from gpusched_env.agents.policies.sizes import MlpSizes, Sizes
from gpusched_env.agents.policies.slots import SlotActor
from gpusched_env.agents.policy_file import PolicyInfo, Weights, current_columns, write_policy
from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.environments import training_layout
from gpusched_env.agents.training.folder import CONFIG, read_config
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.features import TenantFeature
from gpusched_env.envs.observations import Observation, ObservationEncoder
from gpusched_env.envs.setup import offered
from gpusched_env.errors import InputError
from gpusched_env.reading import check_unzipped, opened
from gpusched_env.scenarios.knowledge import Offer
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.versions import versions

ALGORITHMS: Final[dict[str, type[BaseAlgorithm]]] = {
    "maskable-ppo": MaskablePPO,
    "ppo": PPO,
    "recurrent-ppo": RecurrentPPO,
    "a2c": A2C,
    "dqn": DQN,
}
"""Classes of stable-baselines3, by the name that trainings have for an algorithm."""

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
    futures: bool = False
    """Whether it is told what is lost in sampled futures, where its decisions stand for an interval."""

    @property
    def rows(self) -> tuple[int, int]:
        """Rows of tenants and of launched kernels that it sees."""
        spaces: Any = self.policy.observation_space
        return spaces["tenants"].shape[0], spaces["running"].shape[0]

    @property
    def actions(self) -> int:
        """Number of actions in the policy's action space."""
        space: Any = self.policy.action_space
        return int(space.n)

    def layout_in(self, scenario: Offer) -> ActionLayout:
        """The model's actions in ``scenario``.

        A file of ``model.save`` does not say what its environments were: those that ``gym.make`` gives without asking
        for more than futures, or else of everything that ``scenario`` offers.
        """
        if self.scenario is None and isinstance(scenario, Scenario):
            usual = offered(scenario, {}, None)
            layout = ActionLayout.of(
                usual.scenario, *self.rows, usual.interval_us, rejects=usual.rejects, futures=self.futures
            )
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
                "policy, which is numbers only: gpusched_env.agents.model_file.export_policy(model, 'policy.npz')"
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
    futures = _tells_futures(data["_last_obs"])
    return TrainedModel(algorithm, policy, None, None, data["seed"], data["num_timesteps"], futures=futures)


def _tells_futures(last: Any) -> bool:
    """Whether the last observations of a training, if there are any, told what is lost in sampled futures."""
    tenants = last.get("tenants") if isinstance(last, dict) else None
    return tenants is not None and bool(np.any(tenants[..., TenantFeature.AHEAD : TenantFeature.AHEAD_ALONE + 1]))


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


EXPORTED = ("maskable-ppo", "ppo", "a2c", "dqn")
"""Algorithms whose policies can be exported."""


def export_policy(
    model: BaseAlgorithm | TrainedModel,
    path: str | Path,
    *,
    scenario: Scenario | None = None,
    wait_us: float | None = None,
    command: str = "",
) -> PolicyInfo:
    """Write the actor of ``model`` to a file that :class:`~gpusched_env.agents.exported.ExportedPolicy` reads.

    Args:
        model: of stable-baselines3, or what :func:`~gpusched_env.agents.model_file.read_model` found in a ``.zip``.
        path: of the file, by custom ``*.npz``.
        scenario: what the model was trained on; ``None``: the scenario of the model's environment.
        wait_us: longest wait of action 0 in training; ``None``: of the model's environment, 100 without one.
        command: the command that trained it, to be noted.

    Returns:
        what was written besides the weights.

    Raises:
        InputError: a model that cannot be exported, or that does not fit ``scenario``; nothing is written then.
    """
    info, weights = exported(model, scenario=scenario, wait_us=wait_us, command=command)
    write_policy(path, info, weights)
    return info


def exported(
    model: BaseAlgorithm | TrainedModel,
    *,
    scenario: Scenario | None = None,
    wait_us: float | None = None,
    command: str = "",
) -> tuple[PolicyInfo, Weights]:
    """What :func:`export_policy` writes."""
    trained = model if isinstance(model, TrainedModel) else model_in_memory(model)
    if trained.algorithm not in EXPORTED:
        raise InputError(f"a model of {trained.algorithm} cannot be exported: a recurrent policy keeps a state")
    scenario = trained.scenario if scenario is None else scenario
    if scenario is None:
        raise InputError("the model has no environment: say what it was trained on, export_policy(..., scenario=)")
    if wait_us is None:
        wait_us = 100.0 if trained.wait_us is None else trained.wait_us
    layout = trained.layout_in(scenario)
    if layout.n != trained.actions:
        raise InputError(
            f"the model has {trained.actions} actions, an environment of {scenario.name} {layout.n}: "
            "it was trained on another"
        )
    if unseen(layout):
        raise InputError(
            f"the model decides about {unseen(layout)} in {scenario.name}: policy files hold no network that sees "
            "their table; play its .zip"
        )
    network, tensors = _network(trained, layout)
    weights: Weights = {name: tensor.detach().cpu().numpy().astype(np.float32) for name, tensor in tensors.items()}
    info = PolicyInfo(
        network=network,
        columns=current_columns(),
        actions=layout,
        wait_us=wait_us,
        masked=trained.algorithm == "maskable-ppo",
        algorithm=trained.algorithm,
        scenario=scenario.name,
        command=command,
        seed=trained.seed,
        timesteps=trained.timesteps,
        versions=versions(),
    )
    return info, weights


def _network(model: TrainedModel, layout: ActionLayout) -> tuple[Sizes, dict[str, Tensor]]:
    """The actor's sizes and its weights by name."""
    policy: Any = model.policy
    if model.algorithm == "dqn":
        policy = policy.q_net
        layers = list(policy.q_net)
    elif hasattr(policy.mlp_extractor, "actor"):
        layers = [policy.mlp_extractor.actor]
    else:
        layers = [*policy.mlp_extractor.policy_net, policy.action_net]
    if isinstance(layers[0], SlotActor):
        actor = layers[0]
        weights = dict(actor.state_dict())
        return actor.sizes, {name: weights[name] for name in actor.sizes.shapes(layout)}
    extractor = policy.features_extractor
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    activations = {type(layer) for layer in layers if not isinstance(layer, nn.Linear)}
    if not isinstance(extractor, CombinedExtractor) or len(layers) != 2 * len(linear) - 1:
        raise InputError(f"a policy of {type(policy).__name__} with {type(extractor).__name__} cannot be exported")
    if activations - {nn.Tanh} and activations - {nn.ReLU}:
        names = ", ".join(sorted(kind.__name__ for kind in activations))
        raise InputError(f"a policy with the activations {names} cannot be exported; it can with Tanh or ReLU")
    tables: Any = extractor.extractors.keys()
    sizes = MlpSizes(
        inputs=tuple(tables),
        widths=tuple(layer.out_features for layer in linear[:-1]),
        activation="relu" if nn.ReLU in activations else "tanh",
    )
    found: dict[str, Tensor] = {}
    for number, layer in enumerate(linear):
        found |= {f"{number}.weight": layer.weight, f"{number}.bias": layer.bias}
    return sizes, found
