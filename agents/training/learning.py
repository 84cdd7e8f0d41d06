"""Training with an algorithm of stable-baselines3 or sb3-contrib, from random weights or those of a trained policy."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.files import replacing
from gpusched_env.agents.model_file import ALGORITHMS, Decide, exported, torch_decider
from gpusched_env.agents.model_file import EXPORTED as CAN_EXPORT
from gpusched_env.agents.policies.new_columns import unseen
from gpusched_env.agents.policies.registry import policy_of
from gpusched_env.agents.policies.slots import SlotActorCritic
from gpusched_env.agents.policy_file import read_members, write_policy
from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.environments import training_env, training_layout
from gpusched_env.agents.training.folder import BEST, BOARD, EXPORTED, FINAL
from gpusched_env.agents.training.imitation import imitate
from gpusched_env.agents.training.validation import PolicyDecider, TrainingRun
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.errors import InputError
from gpusched_env.reading import ARCHIVE_ERRORS, check_unzipped, opened
from gpusched_env.scheduling.contract import Scheduler


def begin_with(model: BaseAlgorithm, path: Path) -> None:
    """Give a newly made model the weights in a file; its optimiser stays untouched. Nothing is unpickled.

    Args:
        model: with the policy ``slots``, where ``path`` is an exported one.
        path: a ``.zip`` that a model of the same kind was saved in, or the ``.npz`` of an exported slot network, which
            has no critic.

    Raises:
        InputError: no such file, or one with other weights than the model's.
    """
    if path.suffix == ".npz":
        _take(_actor(model, path), {name: torch.as_tensor(array) for name, array in _arrays(path).items()}, path)
        return
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            check_unzipped(archive, path.stat().st_size, str(path))
        _, parameters, _ = load_from_zip_file(path, load_data=False, device="cpu")
    except ARCHIVE_ERRORS as error:
        raise InputError(f"{path}: no model of stable-baselines3 ({error})") from error
    weights: Any = parameters.get("policy", {})
    _take(model.policy, weights, path)


def _arrays(path: Path) -> dict[str, Any]:
    return {name: array for name, array in read_members(path).items() if name != "metadata"}


def _actor(model: BaseAlgorithm, path: Path) -> torch.nn.Module:
    networks = getattr(model.policy, "mlp_extractor", None)
    if not isinstance(networks, SlotActorCritic):
        raise InputError(f"{path}: an exported policy; only trainings with policy slots can begin with one")
    return networks.actor


def _take(module: torch.nn.Module, weights: dict[str, Any], path: Path) -> None:
    """Load all weights of a module.

    Raises:
        InputError: names the first one that is missing, has no place, or has another shape.
    """
    mine = module.state_dict()
    for name in [*mine, *weights]:
        if name not in weights or name not in mine:
            where = "is missing" if name not in weights else "has no place in this policy"
            raise InputError(f"{path}: {name} {where}: it was trained with another policy, or other actions")
        if mine[name].shape != weights[name].shape:
            raise InputError(
                f"{path}: {name} has shape {tuple(weights[name].shape)}, this policy's {tuple(mine[name].shape)}: "
                "it was trained with other actions or observations"
            )
    module.load_state_dict(weights)


LOGGED = ("name_to_value", "name_to_count", "name_to_excluded")
"""What the logger has gathered and not written yet."""
REPLAY_TABLES = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def learn(
    course: TrainingRun, config: TrainingConfig, teacher: Callable[[], Scheduler] | None, state: dict[str, Any] | None
) -> int:
    """Train until the configured number of decisions is reached, or the watcher ends it; returns their number.

    Args:
        course: of the training.
        config: what it is.
        teacher: makes the scheduler to imitate first, if the configuration names one.
        state: of the checkpoint to go on from.
    """
    env = training_env(config)
    try:
        model = new_model(config, env, env.env.layout)
        model.set_logger(Logger(str(course.out / BOARD), [course.board]))
        if config.begin_with is not None and state is None:
            begin_with(model, Path(config.begin_with))
        if state is not None:
            restore(model, state)
        elif config.imitation is not None and teacher is not None:
            figures = imitate(model, config, teacher)
            course.board.scalars({f"imitation/{name}": value for name, value in figures.items()}, 0)
        tenants = tuple(tenant.name for tenant in config.scenario.tenants)
        model.learn(
            config.timesteps - model.num_timesteps,
            callback=CallbackList(
                [EpisodeFigures(env.env.layout, tenants), Boundary(course), CriticFirst(config.critic_first)]
            ),
            reset_num_timesteps=state is None,
        )
        with replacing(course.out / FINAL) as partial:
            model.save(partial)
    finally:
        env.close()
    return int(model.num_timesteps)


def new_model(config: TrainingConfig, env: VecEnv, layout: ActionLayout) -> BaseAlgorithm:
    """An untrained model.

    Raises:
        InputError: the policy is not offered with the algorithm.
    """
    settings: dict[str, Any] = dict(config.settings)
    end = settings.pop("learning_rate_end")
    if end is not None:
        settings["learning_rate"] = LinearSchedule(settings["learning_rate"], end, 1.0)
    assert config.policy is not None, "a checked configuration"
    policy, arguments = policy_of(config.algo, config.policy, layout)
    return ALGORITHMS[config.algo](
        policy,
        env,
        policy_kwargs={**arguments, **config.policy_kwargs},
        seed=config.seed,
        device=config.torch_device,
        **settings,
    )


class Boundary(BaseCallback):
    """What happens between two rollouts: validations and checkpoints."""

    def __init__(self, course: TrainingRun) -> None:
        super().__init__()
        self._course = course
        self._exported: Any = None

    def _on_rollout_start(self) -> None:
        self._course.boundary(self, self.num_timesteps)

    def _on_step(self) -> bool:
        self._course.tell(self.num_timesteps)
        return not self._course.stopped

    def _on_training_end(self) -> None:
        self._course.end(self, self.num_timesteps)

    def decider(self) -> Decide:
        """The exported policy, compiled, where there is one; otherwise a copy of the model's own."""
        config = self._course.config
        assert isinstance(config, TrainingConfig), "of tenants that share a GPU"
        if config.algo not in CAN_EXPORT or unseen(training_layout(config)):
            return torch_decider(_copied(self.model.policy))
        self._exported = exported(self.model, command=self._course.command)
        return PolicyDecider(ExportedPolicy(*self._exported))

    def keep(self) -> None:
        """Save the model, and its exported policy."""
        with replacing(self._course.out / BEST) as partial:
            self.model.save(partial)
        if self._exported is not None:
            write_policy(self._course.out / EXPORTED, *self._exported)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the model."""
        return model_state(self.model)


def _copied(policy: BasePolicy) -> BasePolicy:
    """A policy of the same weights; what is drawn for it to begin with is not missed by the training."""
    kept: Any = io.BytesIO()
    policy.save(kept)
    kept.seek(0)
    with torch.random.fork_rng(devices=[]):
        return type(policy).load(kept, device=policy.device)


class CriticFirst(BaseCallback):
    """The actor stays as it is until so many decisions are through: the critic of a policy that comes without one, or
    from another scenario, would lead it astray at first."""

    def __init__(self, decisions: int) -> None:
        super().__init__()
        self._decisions = decisions

    def _on_rollout_end(self) -> None:
        networks = getattr(self.model.policy, "mlp_extractor", None)
        if self._decisions and isinstance(networks, SlotActorCritic):
            networks.actor.requires_grad_(self.num_timesteps > self._decisions)

    def _on_step(self) -> bool:
        return True


class EpisodeFigures(BaseCallback):
    """What TensorBoard shows of training episodes besides stable-baselines3's own figures.

    ``reward/TERM``, ``metrics/NAME`` (those of :mod:`gpusched_env.episodes.metrics`, a tenant's as
    ``metrics/TENANT/NAME``) and ``actions/...``, which the logger averages until it writes.
    """

    def __init__(self, layout: ActionLayout, tenants: tuple[str, ...]) -> None:
        super().__init__()
        self._labels, self._belongs = action_labels(layout, tenants)

    def _on_step(self) -> bool:
        env = self.training_env
        assert isinstance(env, Sb3VecEnv)
        record = self.logger.record_mean
        record("actions/legal", float(env.infos["action_mask"].sum(axis=1).mean()))
        shares = self._belongs[np.asarray(self.locals["actions"]).reshape(-1)].mean(axis=0)
        for label, share in zip(self._labels, shares.tolist(), strict=True):
            record(f"actions/{label}", share)
        for e in np.flatnonzero(self.locals["dones"]).tolist():
            info = self.locals["infos"][e]
            for name, value in info["episode_metrics"].items():
                record(f"metrics/{name}", value)
            for name, value in info["reward_terms"].items():
                record(f"reward/{name}", value)
            record("actions/illegal", info["illegal_actions"] / info["episode"]["l"])
        return True


def action_labels(layout: ActionLayout, tenants: tuple[str, ...]) -> tuple[list[str], NDArray[np.float64]]:
    """What actions are counted as: names, and which actions belong to each, shape ``(actions, names)``."""
    members: dict[str, list[int]] = {}
    for action in range(layout.n):
        for label in _labels(layout, tenants, action):
            members.setdefault(label, []).append(action)
    belongs = np.zeros((layout.n, len(members)))
    for column, actions in enumerate(members.values()):
        belongs[actions, column] = 1.0
    return list(members), belongs


def _labels(layout: ActionLayout, tenants: tuple[str, ...], action: int) -> list[str]:
    name, slot, choice = layout.split(action)
    if action == 0:
        return [name]
    tenant = layout.tenant_of(name, slot)
    of_tenant = [f"{name}/{tenants[tenant]}"] if tenant is not None and tenant < len(tenants) else []
    return [name, *of_tenant, f"{name}/{layout.labels(name)[choice]}"]


def model_state(model: BaseAlgorithm) -> dict[str, Any]:
    """All that the rest of a training depends on, at the start of a rollout."""
    env = model.get_env()
    assert isinstance(env, Sb3VecEnv)
    # Spaces and schedules are made anew from the configuration.
    left_out = {*model._excluded_save_params(), *(name.split(".")[0] for name in model._get_torch_save_params()[0])}
    left_out -= {"_last_lstm_states"}
    attributes = {
        name: value
        for name, value in vars(model).items()
        if name not in left_out and not callable(value) and not isinstance(value, gymnasium.Space)
    }
    return {
        "attributes": attributes,
        "parameters": model.get_parameters(),
        "env": env.save_state(),
        "replay": _replay(model),
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002  # stable-baselines3 draws from it
        "torch": torch.get_rng_state(),
        "actions": model.action_space.np_random.bit_generator.state,
        "logged": {name: dict(getattr(model.logger, name)) for name in LOGGED},
    }


def restore(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    """Bring a newly made ``model`` and its environments to the state that :func:`model_state` gave.

    ``model.learn(..., reset_num_timesteps=False)`` goes on from there.
    """
    env = model.get_env()
    assert isinstance(env, Sb3VecEnv)
    vars(model).update(state["attributes"])
    model.set_parameters(state["parameters"], exact_match=True, device=model.device)
    env.restore_state(state["env"])
    if state["replay"] is not None:
        _fill(model, state["replay"])
    for name, values in state["logged"].items():
        getattr(model.logger, name).update(values)
    model.action_space.np_random.bit_generator.state = state["actions"]
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    torch.set_rng_state(state["torch"])


def _replay(model: BaseAlgorithm) -> dict[str, Any] | None:
    """The filled part of the replay buffer; ``None`` without one."""
    if not isinstance(model, OffPolicyAlgorithm):
        return None
    buffer = model.replay_buffer
    assert buffer is not None
    rows = buffer.buffer_size if buffer.full else buffer.pos
    tables = {}
    for name in REPLAY_TABLES:
        table = getattr(buffer, name)
        tables[name] = {k: v[:rows] for k, v in table.items()} if isinstance(table, dict) else table[:rows]
    return {"pos": buffer.pos, "full": buffer.full, "rows": rows, "tables": tables}


def _fill(model: BaseAlgorithm, replay: dict[str, Any]) -> None:
    assert isinstance(model, OffPolicyAlgorithm)
    buffer, rows = model.replay_buffer, replay["rows"]
    assert buffer is not None
    buffer.pos, buffer.full = replay["pos"], replay["full"]
    for name, saved in replay["tables"].items():
        table = getattr(buffer, name)
        if isinstance(saved, dict):
            for key, values in saved.items():
                table[key][:rows] = values
        else:
            table[:rows] = saved
