"""From an observation to the budget of each core: one small network, the same for all cores.

It sees what the frame has left and until when, how much of the memory the present kernel and the rest ask for, what all
hogs miss, and what the core itself did; and it gives a number, which stands for one of the budgets on offer. So it
serves any number of cores. A core whose processes never miss keeps the budget that it has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.action_fields import BUDGETS
from gpusched_env.envs.cores import CoreFeature
from gpusched_env.envs.features import RunningFeature, TenantFeature

Singles = NDArray[np.float32]
Tables = Mapping[str, Singles]

HIDDEN: Final = 8
INPUTS: Final = 14
SHAPES: Final[dict[str, tuple[int, ...]]] = {"first": (INPUTS, HIDDEN), "bias": (HIDDEN,), "last": (HIDDEN + 1,)}
"""Weights by name, one behind the other in a row."""
WEIGHTS: Final = sum(math.prod(shape) for shape in SHAPES.values())
LOG_OF_S: Final = math.log1p(1e6)
MS: Final = 1e-3
MOST: Final = 3.0
"""Inputs are cut there."""


def inputs(tables: Tables) -> Singles:
    """What the network sees of each core, shape ``(environments, cores, INPUTS)``.

    Args:
        tables: of an observation, with a first axis of environments.
    """
    tenants, running, cores = (tables[name] for name in ("tenants", "running", "cores"))
    frame = tenants[:, 0]
    launched = running[:, :, RunningFeature.PRESENT] > 0.0
    started = launched & (running[:, :, RunningFeature.STARTED] > 0.0)
    left_us = np.where(launched, _us(running[:, :, RunningFeature.LEFT]), 0.0)
    demand = running[:, :, RunningFeature.DRAM]
    all_left_us = left_us.sum(1)
    slo_us = _us(frame[:, TenantFeature.SLO])
    has_job = frame[:, TenantFeature.JOBS] > 0.0
    until_us = frame[:, TenantFeature.OLDEST_SLACK] * slo_us
    hogs = _ratio(cores[:, :, CoreFeature.MISS_RATE])
    spare_us = until_us - all_left_us
    of_frames = np.stack(
        [
            has_job,
            (demand * started).max(1),
            (left_us * started).sum(1) * MS / 5.0,
            (demand * left_us).sum(1) / np.maximum(all_left_us, 1.0),
            all_left_us * MS / 20.0,
            spare_us / np.maximum(all_left_us, 500.0),
            spare_us * MS / 10.0,
            until_us > 0.0,
            hogs.sum(1) / 4.0,
            (hogs > 0.0).sum(1) / 4.0,
        ],
        axis=1,
    )
    of_cores = np.stack(
        [
            hogs,
            cores[:, :, CoreFeature.TASKS] > 0.5,
            cores[:, :, CoreFeature.NEXT_TICK],
            cores[:, :, CoreFeature.BUDGET],
        ],
        axis=2,
    )
    shared = np.broadcast_to(of_frames[:, None, :], (*cores.shape[:2], of_frames.shape[1]))
    seen: Singles = np.clip(np.concatenate([shared, of_cores], axis=2), -MOST, MOST).astype(np.float32)
    return seen


def levels(weights: Singles, tables: Tables) -> NDArray[np.int64]:
    """Which of the budgets on offer each core is to have, shape ``(environments, cores)``; -1: the one that it has.

    Args:
        weights: shape ``(WEIGHTS,)``, or ``(environments, WEIGHTS)``: of each its own.
        tables: as for :func:`inputs`.
    """
    seen = inputs(tables)
    rows = np.broadcast_to(weights, (len(seen), WEIGHTS))
    first, bias, last = _split(rows)
    hidden = np.tanh(np.matmul(seen, first) + bias[:, None])
    number = np.matmul(hidden, last[:, :-1, None])[:, :, 0] + last[:, -1:]
    top = len(BUDGETS) - 1
    level = np.rint(top / (1.0 + np.exp(-np.clip(number, -30.0, 30.0)))).astype(np.int64)
    misses = tables["cores"][:, :, CoreFeature.MISS_RATE] > 0.0
    return np.where(misses, level, -1)


def actions(weights: Singles, tables: Tables, legal: NDArray[np.bool_], first: int) -> NDArray[np.int64]:
    """The next action of each environment: a budget that is to change, of the first such core, or 0.

    Args:
        weights, tables: as for :func:`levels`.
        legal: shape ``(environments, actions)``.
        first: the first action that sets a budget.
    """
    wanted = levels(weights, tables)
    numbers = first + np.arange(wanted.shape[1]) * len(BUDGETS) + wanted
    possible = (wanted >= 0) & np.take_along_axis(legal, np.where(wanted >= 0, numbers, 0), axis=1)
    best = possible.argmax(1)[:, None]
    return np.where(possible.any(1), np.take_along_axis(numbers, best, axis=1)[:, 0], 0)


def _split(rows: Singles) -> list[Any]:
    found, at = [], 0
    for shape in SHAPES.values():
        size = math.prod(shape)
        found.append(rows[:, at : at + size].reshape(len(rows), *shape))
        at += size
    return found


def _us(logarithm: Singles) -> NDArray[np.float64]:
    """From a column of durations to microseconds."""
    return np.expm1(logarithm.astype(np.float64) * LOG_OF_S)


def _ratio(column: Singles) -> NDArray[np.float64]:
    """From ``x / (1 + x)`` to ``x``."""
    return column / np.maximum(1.0 - column.astype(np.float64), 1e-6)
