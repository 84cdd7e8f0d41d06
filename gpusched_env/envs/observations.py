"""What an agent sees: a Dict of fixed-shape float32 tables, built from a View by the compiled encoder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpusched_env.envs.encoding import Floats, Rows, encode, select_pending, select_running
from gpusched_env.envs.features import TABLES, Feature
from gpusched_env.scheduling.view import View

Observation = dict[str, NDArray[np.float32]]
"""Tables by name; their columns are the enums of :data:`gpusched_env.envs.features.TABLES`."""

RUNNING_SLOTS = 8
"""Rows for launched kernels, unless an environment is made with another number."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows of a View's tables the slots of observations and actions stand for."""

    pending: Rows
    """Row of ``view.pending`` by tenant, -1 without one; shape ``(slots,)``."""
    running: Rows
    """Row of ``view.running`` by running slot, -1 behind the last; shape ``(running_slots,)``."""


def select(view: View, slots: int, running_slots: int) -> Selection:
    """What the slots stand for in ``view``; ``slots`` is at least the number of its tenants."""
    chosen = Selection(np.empty(slots, np.int64), np.empty(running_slots, np.int64))
    select_pending(view.pending.array, chosen.pending)
    select_running(view.running.array, chosen.running)
    return chosen


def scalars(view: View) -> Floats:
    """The scalars of ``view`` in the order of :class:`~gpusched_env.envs.features.Scalar`."""
    return np.array((view.time_us, view.horizon_us, view.sms, view.busy_sms, view.occupancy, view.dram), np.float64)


@dataclass(frozen=True, slots=True)
class ObservationEncoder:
    """Turns Views into observations.

    All values are finite and within the bounds of :meth:`space`, -1 to 1. Empty slots are rows of
    zeros; column ``PRESENT`` tells them from others.
    """

    slots: int
    """Tenant rows; at least the number of tenants."""
    running_slots: int
    """Rows for launched kernels."""

    def space(self) -> spaces.Dict:
        """The observation space, bounded column by column."""
        rows = {"pending": self.slots, "running": self.running_slots, "tenants": self.slots}
        return spaces.Dict({name: _box(features, rows.get(name)) for name, features in TABLES.items()})

    def encode(self, view: View, selection: Selection | None = None) -> Observation:
        """The observation of ``view``, in newly allocated arrays."""
        chosen = selection if selection is not None else select(view, self.slots, self.running_slots)
        pending, running, tenants, device = TABLES.values()
        observation: Observation = {
            "pending": np.empty((self.slots, len(pending)), np.float32),
            "running": np.empty((self.running_slots, len(running)), np.float32),
            "tenants": np.empty((self.slots, len(tenants)), np.float32),
            "device": np.empty(len(device), np.float32),
        }
        encode(
            view.pending.array,
            view.running.array,
            view.tenants.array,
            scalars(view),
            chosen.pending,
            chosen.running,
            *observation.values(),
        )
        return observation


def _box(features: type[Feature], rows: int | None) -> spaces.Box:
    low = np.array([feature.low for feature in features], np.float32)
    high = np.array([feature.high for feature in features], np.float32)
    if rows is None:
        return spaces.Box(low, high, dtype=np.float32)
    return spaces.Box(np.tile(low, (rows, 1)), np.tile(high, (rows, 1)), dtype=np.float32)
