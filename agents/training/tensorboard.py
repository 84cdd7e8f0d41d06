"""What TensorBoard shows besides stable-baselines3's own figures.

Of training episodes: ``reward/TERM``, ``metrics/NAME`` (those of :mod:`gpusched_env.scheduling.metrics`, a tenant's as
``metrics/TENANT/NAME``), ``actions/...``. Of validations the same under ``validation/``, with ``validation/cost``,
``validation/best_cost`` and, where costs of baselines on the same episodes are known,
``validation/gap_to_best_baseline`` (relative: below 0 the model is better). ``validation/schedule`` is a picture of a
validation episode. The page of hyper-parameters has these results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import HParam, TensorBoardOutputFormat
from torch.utils.tensorboard import SummaryWriter

from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.envs.actions import ActionLayout

RESULTS = ("validation/cost", "validation/best_cost", "validation/gap_to_best_baseline")
"""Scalars that the table of hyper-parameters shows."""


class TensorBoard(TensorBoardOutputFormat):
    """Writes to a folder, and goes on in one: what an earlier run wrote from ``first_step`` on is dropped."""

    def __init__(self, folder: Path, first_step: int | None = None) -> None:
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=first_step)
        self._is_closed = False

    def scalars(self, figures: dict[str, float], step: int) -> None:
        """Write now, whatever the logger has gathered."""
        for name, value in figures.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def image(self, name: str, image: NDArray[np.uint8], step: int) -> None:
        """Write a picture, shape ``(height, width, 3)``."""
        self.writer.add_image(name, image, step, dataformats="HWC")
        self.writer.flush()

    def hyper_parameters(self, config: TrainingConfig, results: tuple[str, ...]) -> None:
        """Write a session of TensorBoard's HPARAMS page; the scalars ``results`` are its metrics."""
        values: dict[str, bool | str | float | int] = {}
        for name, value in _flat(config).items():
            values[name] = value if isinstance(value, (bool, str, float, int)) else str(value)
        self.write({"hparams": HParam(values, dict.fromkeys(results, 0.0))}, {"hparams": ()}, 0)


class EpisodeFigures(BaseCallback):
    """Gathers the figures of training episodes; the logger averages them until it writes."""

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


def _flat(config: TrainingConfig) -> dict[str, Any]:
    """The fields that trainings of one scenario differ in."""
    values = {
        name: getattr(config, name)
        for name in ("algo", "policy", "timesteps", "seed", "envs", "variants", "slots", "running_slots", "wait_us")
    }
    values |= {"scenario": config.scenario.name, **config.settings, **config.policy_kwargs}
    if config.imitation is not None:
        values["imitation"] = config.imitation.scheduler
    return {name: value for name, value in values.items() if value is not None}
