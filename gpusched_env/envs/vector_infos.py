"""Infos of a vector environment: arrays over the environments, with masks ``_key``, as Gymnasium's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.summary import episode_summary
from gpusched_env.scheduling.session import Episode

Rows = NDArray[np.bool_]


def batched_infos(batch: EnvBatch, illegal: NDArray[np.int64], rows: Rows | None) -> dict[str, Any]:
    """Infos of the environments ``rows``; zeros in the others.

    Args:
        batch: the environments.
        illegal: illegal actions of each one's episode.
        rows: shape ``(num_envs,)``; becomes part of the infos. ``None``: all.
    """
    infos: dict[str, Any] = {
        "action_mask": batch.masks.view(np.int8).copy(),
        "time_us": batch.times_us[:, 1].copy(),
        "elapsed_us": batch.times_us[:, 1] - batch.times_us[:, 0],
        "illegal_actions": illegal.copy(),
    }
    if rows is None:
        rows = np.ones(batch.count, np.bool_)
    elif not rows.all():
        for values in infos.values():
            values[~rows] = 0
    for name in tuple(infos):
        infos[f"_{name}"] = rows
    return infos


def add_seeds(infos: dict[str, Any], seeds: NDArray[np.int64], rows: Rows) -> dict[str, Any]:
    """``infos`` with the seeds of the environments ``rows``, whose episodes have just begun."""
    infos["seed"], infos["_seed"] = np.where(rows, seeds, 0), rows
    return infos


def last_info(batch: EnvBatch, e: int, illegal: int, episode: Episode) -> dict[str, Any]:
    """The info of the single environment at the end of an episode."""
    return {
        "action_mask": batch.masks[e].astype(np.int8),
        "time_us": float(batch.times_us[e, 1]),
        "elapsed_us": float(batch.times_us[e, 1] - batch.times_us[e, 0]),
        "illegal_actions": illegal,
        **episode_summary(episode),
    }
