"""Infos of a vector environment: arrays over the environments, with masks ``_key``, as Gymnasium's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.summary import episode_summary
from gpusched_env.envs.tally import copy_infos
from gpusched_env.episodes.session import Episode

Rows = NDArray[np.bool_]


def batched_infos(batch: EnvBatch, illegal: NDArray[np.int64], rows: Rows | None) -> dict[str, Any]:
    """Infos of the environments ``rows``; zeros in the others.

    Args:
        batch: the environments.
        illegal: illegal actions of each one's episode.
        rows: shape ``(num_envs,)``; becomes part of the infos. ``None``: all.
    """
    count = batch.count
    if rows is None:
        rows = np.empty(count, np.bool_)
        rows.fill(True)
    masks, times_us, elapsed_us = np.empty(batch.masks.shape, np.int8), np.empty(count), np.empty(count)
    illegal_actions = np.empty(count, np.int64)
    copy_infos(batch.masks.view(np.int8), batch.times_us, illegal, rows, masks, times_us, elapsed_us, illegal_actions)
    return {
        "action_mask": masks, "time_us": times_us, "elapsed_us": elapsed_us, "illegal_actions": illegal_actions,
        "_action_mask": rows, "_time_us": rows, "_elapsed_us": rows, "_illegal_actions": rows,
    }  # fmt: skip


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
