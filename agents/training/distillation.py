"""A search made into a network: who goes first, as sampled futures would say, learned from observations without them.

The serve rule (:mod:`gpusched_env.agents.policies.serve`) tries each tenant's oldest job in sampled futures whenever it
is asked, which takes most of the time of a decision. Here a slot network learns what those futures say from the rest
of the observation (knowledge distillation: G. Hinton, O. Vinyals, J. Dean, 2015; of a search: A. Guez et al.,
*Learning to search with MCTSnets*, ICML 2018). A few futures are noise around the mean of all, and what the network
learns is the mean. Half of the environments are played by the search, the others by the network, so that it also sees
where its own mistakes lead (S. Ross, G. Gordon, D. Bagnell, AISTATS 2011).

The numbers of the network are what each action saves over going by the plan, in multiples of the mean weight; saved
they are :data:`SHARPNESS` times that, so that as logits they make actions about as likely that save about the same.
The network opens as a model of MaskablePPO, whose critic has learned what the search leads to, and can go on from
there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import Logger
from torch import Tensor
from torch.nn.functional import mse_loss, smooth_l1_loss
from torch.nn.utils import clip_grad_norm_

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.files import replacing
from gpusched_env.agents.model_file import Decide, exported
from gpusched_env.agents.policies.registry import DISTILLATION, OPENS_AS
from gpusched_env.agents.policies.serve import ALONE, BESIDE, MOST_LOST, Way
from gpusched_env.agents.policy_file import PolicyInfo, Weights, write_policy
from gpusched_env.agents.training.config import PpoSettings, TrainingConfig
from gpusched_env.agents.training.environments import training_env
from gpusched_env.agents.training.folder import BEST, BOARD, EXPORTED, FINAL
from gpusched_env.agents.training.learning import model_state, new_model, restore
from gpusched_env.agents.training.validation import PolicyDecider, TrainingRun
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.features import TenantFeature
from gpusched_env.envs.observations import Observation
from gpusched_env.envs.slices import OTHERS
from gpusched_env.planning.interval import Serve

Floats = NDArray[np.float32]

SHARPNESS = 8.0
"""Factor that makes logits of the network's numbers: a power of two, which rounds nothing."""
LEAST, MOST = -2.0, 3.0
"""The range of what an action saves: beyond, all is the same. Whatever the search does not try has the least."""
AT_FIRST = 0.2
"""The number of going by the plan before anything is learned; others are about 0."""
BETA = 0.3
"""Errors beyond this count linearly: what is saved has long tails."""
FUTURES = [TenantFeature.AHEAD, TenantFeature.AHEAD_ALONE]
"""Columns that the search goes by and the network does not see, by :class:`~gpusched_env.agents.policies.serve.Way`."""


def without_futures(observations: Observation) -> Observation:
    """The observations with empty columns of futures."""
    tenants = observations["tenants"].copy()
    tenants[..., FUTURES] = 0.0
    return {**observations, "tenants": tenants}


def savings(observations: Observation, layout: ActionLayout, margin: float) -> Floats:
    """What each action saves over going by the plan, in multiples of the mean weight, shape ``(n, actions)``.

    Of letting a tenant go first what its columns say, less the margin, twice that where nobody is served beside it.
    With more launches of others than by the plan it is next to nothing less.
    """
    found = np.full((len(observations["tenants"]), layout.n), LEAST, np.float32)
    found[:, 0] = 0.0
    first, serves = layout.first(Serve.NAME), layout.choices(Serve.NAME)
    ways = found[:, first : first + layout.slots * serves].reshape(len(found), layout.slots, serves)
    for way, choice, times in ((Way.BESIDE, BESIDE, 1.0), (Way.ALONE, ALONE, 2.0)):
        ahead = observations["tenants"][..., FUTURES[way]]
        lost = ahead / np.maximum(1.0 - np.abs(ahead), 1.0 / (1.0 + MOST_LOST))
        ways[..., choice] = np.clip(-lost - times * margin, LEAST, MOST)
    for choice in range(serves):
        if choice not in (BESIDE, ALONE) and OTHERS[choice] > 0:
            ways[..., choice] = ways[..., BESIDE] - 0.5 * margin
    found[:, first : first + layout.slots * serves] = ways.reshape(len(found), -1)
    return found


class Distillation:
    """One training by distillation."""

    def __init__(self, course: TrainingRun, config: TrainingConfig, state: dict[str, Any] | None) -> None:
        """``state``: of the checkpoint to go on from."""
        self._course, self._config, self._settings, self._state = course, config, config.settings, state
        as_ppo = msgspec.structs.replace(
            config,
            algo=OPENS_AS[DISTILLATION],
            settings=msgspec.structs.asdict(PpoSettings(gamma=config.settings["gamma"])),
            futures=True,
        )
        self._env = training_env(as_ppo)
        layout = self._env.env.layout
        model = new_model(as_ppo, self._env, layout)
        assert isinstance(model, MaskablePPO)
        model.set_logger(Logger(str(course.out / BOARD), [course.board]))
        self._model, self._layout = model, layout
        # At first it goes by the plan: it would reject whatever it can otherwise, at every event.
        networks: Any = model.policy.mlp_extractor
        torch.nn.init.constant_(networks.actor.wait.bias, AT_FIRST)
        self._kept: tuple[PolicyInfo, Weights] | None = None

    @property
    def timesteps(self) -> int:
        """Decisions so far."""
        return int(self._model.num_timesteps)

    def run(self) -> None:
        """Go on to the end."""
        model, course, state = self._model, self._course, self._state
        try:
            self._observations = self._env.reset()
            if state is not None:
                restore(model, state["model"])
                self._observations = self._env.restore_state(state["model"]["env"])
            while model.num_timesteps < self._config.timesteps and not course.stopped:
                course.boundary(self, model.num_timesteps)
                self._play_round()
            course.end(self, model.num_timesteps)
            self._save(FINAL)
        finally:
            self._env.close()

    def decider(self) -> Decide:
        """The exported policy, compiled, as the judge takes it; it is told nothing of futures."""
        with self._sharp():
            info, weights = exported(self._model, command=self._course.command)
        info = msgspec.structs.replace(info, algorithm=self._config.algo, actions=replace(info.actions, futures=False))
        self._kept = info, weights
        return PolicyDecider(ExportedPolicy(info, weights))

    def keep(self) -> None:
        """Save the model, and its exported policy."""
        self._save(BEST)
        assert self._kept is not None, "it was judged"
        write_policy(self._course.out / EXPORTED, *self._kept)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the training."""
        return {"model": model_state(self._model)}

    def _save(self, name: str) -> None:
        """Save the model as it is given away."""
        with self._sharp(), replacing(self._course.out / name) as partial:
            self._model.save(partial)

    @contextlib.contextmanager
    def _sharp(self) -> Iterator[None]:
        """The network's numbers are logits meanwhile."""
        self._scale(SHARPNESS)
        try:
            yield
        finally:
            self._scale(1.0 / SHARPNESS)

    def _scale(self, factor: float) -> None:
        policy: Any = self._model.policy
        with torch.no_grad():
            for head in policy.mlp_extractor.actor.heads():
                head.weight.mul_(factor)
                head.bias.mul_(factor)

    def _play_round(self) -> None:
        """Play some decisions in each environment, and learn what the search says of them."""
        env, model, steps = self._env, self._model, self._settings["n_steps"]
        searched = np.arange(env.num_envs) % 2 == 0
        seen: list[Observation] = []
        masks: list[NDArray[np.bool_]] = []
        targets: list[Floats] = []
        rewards: list[Floats] = []
        dones: list[NDArray[np.bool_]] = []
        for _ in range(steps):
            told = self._observations
            assert isinstance(told, dict)
            observation, mask = without_futures(told), env.env.action_masks()
            saved = savings(told, self._layout, self._settings["margin"])
            ours, _ = model.predict(observation, deterministic=True, action_masks=mask)
            theirs = np.where(mask, saved, -np.inf).argmax(axis=1)
            self._observations, reward, done, _ = env.step(np.where(searched, theirs, ours))
            seen.append(observation)
            masks.append(mask)
            targets.append(saved)
            rewards.append(reward)
            dones.append(done)
            self._course.tell(model.num_timesteps + len(dones) * env.num_envs)
        model.num_timesteps += steps * env.num_envs
        returns = self._returns(np.stack(rewards), np.stack(dones))
        lesson = {name: np.concatenate([each[name] for each in seen]) for name in seen[0]}
        self._learn(lesson, np.concatenate(masks), np.concatenate(targets), returns.reshape(-1))

    def _returns(self, rewards: Floats, dones: NDArray[np.bool_]) -> Floats:
        """Discounted returns, shape ``(steps, environments)``; behind the last step what the critic expects."""
        policy = self._model.policy
        assert isinstance(self._observations, dict)
        with torch.no_grad():
            present = policy.obs_to_tensor(without_futures(self._observations))[0]
            ahead = policy.predict_values(present).flatten().cpu().numpy()
        found = np.empty_like(rewards)
        for step in range(len(rewards) - 1, -1, -1):
            found[step] = ahead = rewards[step] + self._settings["gamma"] * np.where(dones[step], 0.0, ahead)
        return found

    def _learn(self, lesson: Observation, masks: NDArray[np.bool_], targets: Floats, returns: Floats) -> None:
        """Minimise the Huber error of what actions save, and the squared error of returns."""
        policy, settings, model = self._model.policy, self._settings, self._model
        done = min(1.0, model.num_timesteps / self._config.timesteps)
        for group in policy.optimizer.param_groups:
            group["lr"] = settings["learning_rate"] * max(0.02, 1.0 - done)
        rng = np.random.default_rng((self._config.seed, model.num_timesteps))
        policy.set_training_mode(True)
        errors: list[tuple[float, float]] = []
        for _ in range(settings["n_epochs"]):
            for rows in np.array_split(rng.permutation(len(returns)), max(1, len(returns) // settings["batch_size"])):
                observations: Any = policy.obs_to_tensor({name: table[rows] for name, table in lesson.items()})[0]
                saved, values = self._told(observations)
                legal = torch.as_tensor(masks[rows])
                wrong = smooth_l1_loss(saved, torch.as_tensor(targets[rows]), reduction="none", beta=BETA)
                searching = (wrong * legal).sum() / legal.sum()
                regression = mse_loss(values, torch.as_tensor(returns[rows]))
                policy.optimizer.zero_grad()
                (searching + settings["vf_coef"] * regression).backward()
                clip_grad_norm_(policy.parameters(), settings["max_grad_norm"])
                policy.optimizer.step()
                errors.append((searching.item(), regression.item()))
        policy.set_training_mode(False)
        self._report(lesson, masks, targets, np.mean(errors, axis=0).tolist())

    def _told(self, observations: Any) -> tuple[Tensor, Tensor]:
        """What the network says each action saves over going by the plan, and the value."""
        policy: Any = self._model.policy
        features = policy.extract_features(observations)
        actor, critic = policy.mlp_extractor(features)
        numbers = policy.action_net(actor)
        return numbers - numbers[:, :1], policy.value_net(critic).flatten()

    def _report(self, lesson: Observation, masks: NDArray[np.bool_], targets: Floats, errors: list[float]) -> None:
        """Tell TensorBoard about some of the round's decisions."""
        rows = np.arange(0, len(masks), max(1, len(masks) // 2048))
        policy: Any = self._model.policy
        with torch.no_grad():
            observations = policy.obs_to_tensor({name: table[rows] for name, table in lesson.items()})[0]
            saved = self._told(observations)[0].cpu().numpy()
        legal, wanted, each = masks[rows], targets[rows], np.arange(len(rows))
        ours, theirs = (np.where(legal, worth, -np.inf).argmax(axis=1) for worth in (saved, wanted))
        tried = legal & (wanted > LEAST) & (wanted != 0.0)
        spread = wanted[tried].var()
        figures = {
            "error": errors[0],
            "value_error": errors[1],
            "explained": 1.0 - float(((saved - wanted)[tried] ** 2).mean() / spread) if spread > 0.0 else 0.0,
            "agreement": float((ours == theirs).mean()),
            "departed": float((ours > 0).mean()),
            "regret": float((wanted[each, theirs] - wanted[each, ours]).mean()),
        }
        self._course.board.scalars(
            {f"distillation/{name}": value for name, value in figures.items()}, self._model.num_timesteps
        )
