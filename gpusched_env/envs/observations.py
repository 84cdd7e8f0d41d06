"""What an agent sees: a Dict of fixed-shape float32 tables, built from a View by the compiled encoder.

Their memory is used again once nobody holds them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table, of_columns
from gpusched_env.envs.action_fields import ActionFields
from gpusched_env.envs.encoding import Floats, encode, gather_pending, gather_running
from gpusched_env.envs.extra_columns import encode_forms, encode_gains, encode_plan
from gpusched_env.envs.extra_tables import CORE_TABLE as CORES
from gpusched_env.envs.extra_tables import KNOB_TABLE as KNOBS
from gpusched_env.envs.extra_tables import CoreFeature, KnobFeature, encode_cores, encode_knobs
from gpusched_env.envs.features import TABLES, Feature
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.planning.lookahead import plan_ahead
from gpusched_env.planning.outlook import NOTHING_AHEAD, Outlook
from gpusched_env.planning.plans import plan_view
from gpusched_env.planning.tiles import SCRATCH
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, View

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


Observation = dict[str, NDArray[np.float32]]
"""An observation: tables by name, whose columns are the enums of :data:`COLUMNS`."""
COLUMNS: dict[str, type[Feature]] = {**TABLES, KNOBS: KnobFeature, CORES: CoreFeature}
"""Columns of all tables: those of every observation, the one where decisions for an interval are about knobs, and the
one where budgets of CPU cores can be set."""


class NamedTables(Observation):
    """The observations that environments return: a dictionary that shows itself with the names of its columns.

    Of one environment, a table has shape ``(rows, columns)`` and ``device`` ``(columns,)``; of several, the
    environments come first.
    """

    def to_frame(self, table: str = "pending") -> DataFrame:
        """A pandas frame of one table: its columns by name, a row a slot (of several environments: one after another).

        Raises:
            InputError: there is no such table, or pandas is not installed.
        """
        if table not in self:
            raise InputError(f"no table {table!r}; {did_you_mean(table, self)}")
        names = [column.name.lower() for column in COLUMNS[table]]
        return frame(dict(zip(names, self[table].reshape(-1, len(names)).T, strict=True)))

    def _tables(self) -> list[Table]:
        return [
            of_columns(f"{name} {array.shape}", [column.name for column in COLUMNS[name]], _rows(array))
            for name, array in self.items()
        ]

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self._tables()))

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self._tables())


def _rows(array: NDArray[np.float32]) -> NDArray[np.float32]:
    return array.reshape(-1, array.shape[-1])


RUNNING_SLOTS = 8
"""Rows for launched kernels, unless an environment is made with another number."""


@dataclass(frozen=True, slots=True)
class ShownLaunches:
    """The launches that the slots of observations and actions stand for: rows of a View's tables, copied.

    Column ``ID`` of an empty slot is -1.
    """

    pending: Floats
    """Launches by pending slot; shape ``(slots * lookahead, len(PendingColumn))``."""
    running: Floats
    """Launches by running slot, empty ones last; shape ``(running_slots, len(RunningColumn))``."""


def select(view: View, slots: int, running_slots: int, lookahead: int = 1) -> ShownLaunches:
    """What the slots show of ``view``; ``slots`` is at least the number of its tenants, each has ``lookahead``."""
    shown = ShownLaunches(
        np.empty((slots * lookahead, len(PendingColumn))), np.empty((running_slots, len(RunningColumn)))
    )
    gather_pending(view.pending.array, lookahead, shown.pending)
    gather_running(view.running.array, np.empty(slots, np.bool_), shown.running)
    return shown


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
    lookahead: int = 1
    """Rows for pending launches of each tenant."""
    plans: bool = False
    """Whether the columns of plans are filled: where decisions stand for an interval."""
    futures: bool = False
    """Whether the columns of sampled futures are filled, too."""
    gains: bool = False
    """Whether columns of predicted gains are filled: where tiles can be synchronised, or kernels given other forms."""
    knobs: bool = False
    """Whether there is a table of knobs besides: where decisions for an interval are about them."""
    cores: int = 0
    """Rows of a table of CPU cores besides; 0: there is none, as their budgets cannot be set."""
    predicted: Floats = field(default_factory=lambda: np.zeros(SCRATCH), repr=False, compare=False)
    """What gains are worked out in, and remembered."""

    @classmethod
    def of(cls, layout: ActionFields) -> ObservationEncoder:
        """The encoder for the slots of a layout's actions."""
        plans = layout.interval_us > 0.0
        return cls(
            layout.slots,
            layout.running_slots,
            layout.lookahead,
            plans,
            plans and layout.futures,
            layout.predicts,
            layout.knobs,
            layout.core_slots,
        )

    def space(self) -> spaces.Dict:
        """The observation space, bounded column by column."""
        rows = {"pending": self.slots * self.lookahead, "running": self.running_slots, "tenants": self.slots}
        tables: dict[str, Space[Any]] = {name: _box(features, rows.get(name)) for name, features in TABLES.items()}
        if self.knobs:
            tables[KNOBS] = _box(KnobFeature, self.slots)
        if self.cores:
            tables[CORES] = _box(CoreFeature, self.cores)
        return spaces.Dict(tables)

    def encode(self, view: View, shown: ShownLaunches | None = None, outlook: Outlook = NOTHING_AHEAD) -> Observation:
        """The observation of ``view``, in newly allocated arrays.

        Args:
            shown: what the slots show, if that is known.
            outlook: of the tenants; read where decisions stand for an interval.
        """
        shown = shown if shown is not None else select(view, self.slots, self.running_slots, self.lookahead)
        pending, running, tenants, device = TABLES.values()
        observation = NamedTables(
            {
                "pending": np.empty((self.slots * self.lookahead, len(pending)), np.float32),
                "running": np.empty((self.running_slots, len(running)), np.float32),
                "tenants": np.empty((self.slots, len(tenants)), np.float32),
                "device": np.empty(len(device), np.float32),
            }
        )
        now = scalars(view)
        encode(shown.pending, shown.running, view.tenants.array, now, *observation.values())
        if self.gains:
            encode_gains(shown.pending, view.sms, self.predicted, observation["pending"])
            encode_forms(shown.pending, view.sms, self.predicted, observation["pending"])
        if self.plans:
            plan = plan_ahead(view, outlook) if self.futures else plan_view(view, outlook)
            encode_plan(plan, view.tenants.array, view.time_us, observation["tenants"])
        if self.knobs:
            observation[KNOBS] = np.empty((self.slots, len(KnobFeature)), np.float32)
            encode_knobs(view.tenants.array, view.time_us, observation[KNOBS])
        if self.cores:
            observation[CORES] = np.empty((self.cores, len(CoreFeature)), np.float32)
            encode_cores(view.cores.array, view.time_us, observation[CORES])
        return observation


def _box(features: type[Feature], rows: int | None) -> spaces.Box:
    low = np.array([feature.low for feature in features], np.float32)
    high = np.array([feature.high for feature in features], np.float32)
    if rows is None:
        return spaces.Box(low, high, dtype=np.float32)
    return spaces.Box(np.tile(low, (rows, 1)), np.tile(high, (rows, 1)), dtype=np.float32)


KEPT = 4
"""Most sets of tables whose memory is kept: a loop holds the last observation while the next one is made."""
UNHELD = 3
"""References to memory that nobody outside holds: the list's, the loop's, and the counting function's."""


class Recycled:
    """Makes sets of float32 tables, each with memory that no table made before shares, as long as anyone holds it.

    A table, and every view of it, holds a reference to the memory behind it.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._parts: list[tuple[str, int, int, tuple[int, ...]]] = []
        self._size = 0
        for name, shape in shapes.items():
            first, self._size = self._size, self._size + math.prod(shape)
            self._parts.append((name, first, self._size, shape))
        self._kept: list[NDArray[np.float32]] = []

    def tables(self) -> Observation:
        """A set of tables, with anything in them."""
        memory = self._unheld()
        return NamedTables({name: memory[first:end].reshape(shape) for name, first, end, shape in self._parts})

    def _unheld(self) -> NDArray[np.float32]:
        for memory in self._kept:
            if sys.getrefcount(memory) <= UNHELD:
                return memory
        memory = np.empty(self._size, np.float32)
        if len(self._kept) < KEPT:
            self._kept.append(memory)
        return memory
