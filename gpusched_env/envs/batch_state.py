"""What the compiled step of a batch reads and writes, as named records of arrays.

Compiled functions take the records apart when they are compiled: a field costs what an argument would. The first axis
of an array is the environment, ``n`` of them, unless it says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from gpusched_env.compiling import native
from gpusched_env.devices.compiled.layout import OVER
from gpusched_env.devices.compiled.memory import LINE, lines, put_and_get
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.encoding import Bools, Features, Floats
from gpusched_env.envs.extra_tables import CoreFeature, KnobFeature
from gpusched_env.envs.features import TABLES, Scalar
from gpusched_env.envs.numbering import Ints, slice_layout_of
from gpusched_env.hardware.clock import to_ps
from gpusched_env.planning.interval import Knob
from gpusched_env.planning.lookahead import SCRATCH as FUTURE_SCRATCH
from gpusched_env.planning.plans import MOST_JOBS, PlanColumn
from gpusched_env.planning.plans import SCRATCH as PLAN_SCRATCH
from gpusched_env.planning.tiles import BATCH_SCRATCH as TILES_SCRATCH
from gpusched_env.scheduling.cores import CoreColumn
from gpusched_env.scheduling.reward import COST_TERMS, Rate, Sum
from gpusched_env.scheduling.view import JobColumn, PendingColumn, RunningColumn, TenantColumn

NO_ACTION = -1


class ObservationTables(NamedTuple):
    """Observations, float32; their columns are the enums of :data:`~gpusched_env.envs.features.TABLES`."""

    pending: Features
    running: Features
    tenants: Features
    device: Features

    @classmethod
    def zeros(cls, layout: ActionLayout, *first: int) -> ObservationTables:
        """Tables of zeros for the slots of ``layout``; ``first``: axes before those of a table."""
        rows = {"pending": (layout.pending_slots,), "running": (layout.running_slots,), "tenants": (layout.slots,)}
        return cls(
            **{
                name: np.zeros((*first, *rows.get(name, ()), len(features)), np.float32)
                for name, features in TABLES.items()
            }
        )


def shared(observation: Mapping[str, Features]) -> ObservationTables:
    """The tables that every observation has."""
    return ObservationTables(**{name: observation[name] for name in TABLES})


class Rules(NamedTuple):
    """What holds for all environments of a batch, as long as there is one."""

    drive_at: int
    """Address of ``drive`` of :func:`~gpusched_env.devices.compiled.entry.compile_units`."""
    wait_us: float
    """How long action 0 waits at most."""
    interval_ps: int
    """How long a decision stands while a dispatcher launches; 0: every launch is a decision."""
    futures: bool
    """Whether observations tell what is lost in sampled futures then."""
    predicts: bool
    """Whether tiles can be synchronised or kernels given other forms; observations then have predictions."""
    knobs: bool
    """Whether decisions for an interval are about knobs; there is a table of them then."""
    budgets: bool
    """Whether budgets of CPU cores can be set; there is a table of cores then."""
    lookahead: int
    """Pending slots of a tenant."""
    slices: Ints
    """``rows`` of a :class:`~gpusched_env.envs.numbering.PlanColumn`, which together with :attr:`choices` lays out the
    actions."""
    choices: Ints


class Episodes(NamedTuple):
    """What belongs to the episode that an environment is in; set when it begins."""

    addresses: Ints
    """Addresses of the environments, ``(n,)``; others where their memory has grown."""
    own_streams: Ints
    """Row of the first of the scheduler's own streams, ``(n,)``."""
    levels: Ints
    """Stream priorities, ``(n, slots)``, each of :func:`~gpusched_env.planning.interval.levels_of`."""
    prices: Floats
    pairs: Floats
    exponents: Floats
    graphs: Floats
    """``(n,)``, ``(n, slots, slots, 2)``, ``(n,)`` and ``(n, slots)``: each environment's
    :class:`~gpusched_env.planning.outlook.Outlook`, where decisions stand for an interval."""
    tenant_rates: Floats
    """Rates, ``(n, slots, len(Rate))``, of :func:`~gpusched_env.scheduling.reward.rates`."""
    reward_weights: Floats
    """Weights of the terms of the cost, ``(n, terms)``."""

    @classmethod
    def zeros(cls, count: int, slots: int) -> Episodes:
        """Episodes of environments that have not begun."""
        return cls(
            addresses=np.zeros(count, np.int64),
            own_streams=np.zeros(count, np.int64),
            levels=np.zeros((count, slots), np.int64),
            prices=np.zeros(count),
            pairs=np.ones((count, slots, slots, 2)),
            exponents=np.ones(count),
            graphs=np.zeros((count, slots)),
            tenant_rates=np.zeros((count, slots, len(Rate))),
            reward_weights=np.zeros((count, len(COST_TERMS))),
        )


class BatchProgress(NamedTuple):
    """How far each environment is, and what it is to do."""

    actions: Ints
    """Actions, ``(n,)``, of the action space that the rules lay out; :data:`NO_ACTION`: just run, after a reset."""
    reasons: Ints
    """Why each environment stopped, ``(n,)`` (:mod:`~gpusched_env.devices.compiled.layout`)."""
    costs: Floats
    """Total cost of each episode so far, ``(n,)``."""
    times_us: Floats
    """Simulated time of the observation before, and of this one, ``(n, 2)``."""
    until_ps: Ints
    """End of the present interval, or 0 between two, ``(n,)``."""
    standing: Ints
    """``(n, 4)``: the decision of the present interval, who goes first and launches in flight of the others, how many
    jobs had come or gone when its knobs were set, and who goes first by these."""
    plans: Floats
    """The latest plans, ``(n, slots, len(Plan))``."""
    knobs: Ints
    """Knobs of the present interval, ``(n, len(Knob), slots)``."""

    @classmethod
    def zeros(cls, count: int, slots: int) -> BatchProgress:
        """Progress of environments that have not begun."""
        return cls(
            actions=np.full(count, NO_ACTION),
            reasons=np.full(count, OVER),
            costs=np.zeros(count),
            times_us=np.zeros((count, 2)),
            until_ps=np.zeros(count, np.int64),
            standing=np.zeros((count, 4), np.int64),
            plans=np.zeros((count, slots, len(PlanColumn))),
            knobs=np.zeros((count, len(Knob), slots), np.int64),
        )


class StepScratch(NamedTuple):
    """What a thread needs to step environments, one after the other: tables that are written before they are read.

    No two of them lie in one cache line, nor in one of a pair that processors fetch together.
    """

    pending: Floats
    """What the pending slots show, as :func:`~gpusched_env.envs.encoding.gather_pending` writes it."""
    running: Floats
    """What the running slots show, as :func:`~gpusched_env.envs.encoding.gather_running` writes it."""
    tenants: Floats
    """A View's table of tenants; rows beyond the tenants are not used."""
    cores: Floats
    """A View's table of CPU cores; empty where no budgets can be set."""
    jobs: Floats
    """The first rows of a View's table of jobs."""
    plan: Floats
    """Working memory of :func:`~gpusched_env.planning.plans.plan_oldest`."""
    future: Floats
    """Working memory of :func:`~gpusched_env.planning.lookahead.look_ahead`."""
    tiles: Floats
    """Working memory of :func:`~gpusched_env.envs.extra_columns.encode_gains`; empty without tiles to synchronise."""
    sums: Floats
    """Sums of each tenant that costs are made of, ``(slots, len(Sum))``."""
    scalars: Floats
    """Scalars of a View, ``(len(Scalar),)``."""
    terms: Floats
    """Terms of the cost."""

    @classmethod
    def of(cls, layout: ActionLayout) -> StepScratch:
        """Working memory for environments of a layout."""
        return cls(
            pending=_apart(layout.pending_slots, len(PendingColumn)),
            running=_apart(layout.running_slots, len(RunningColumn)),
            tenants=_apart(layout.slots, len(TenantColumn)),
            cores=_apart(layout.core_slots, len(CoreColumn)),
            jobs=_apart(MOST_JOBS, len(JobColumn)),
            plan=_apart(*PLAN_SCRATCH),
            future=_apart(*FUTURE_SCRATCH),
            tiles=_apart(*(TILES_SCRATCH if layout.predicts else (0, 0))),
            sums=_apart(layout.slots, len(Sum)),
            scalars=_apart(len(Scalar)),
            terms=_apart(len(COST_TERMS)),
        )


def _apart(*shape: int) -> NDArray[np.float64]:
    """Zeros, with a line of nothing behind them."""
    size = math.prod(shape)
    return lines(8 * size + 2 * LINE).view(np.float64)[:size].reshape(shape)


class BatchState(NamedTuple):
    """All that one thread steps a batch with. Threads have :attr:`scratch` of their own and share the rest."""

    rules: Rules
    episodes: Episodes
    progress: BatchProgress
    observations: ObservationTables
    knobs: Features
    """The table of knobs, ``(n, slots, len(KnobFeature))``; without rows where there is none."""
    cores: Features
    """The table of CPU cores, ``(n, cores, len(CoreFeature))``; without rows where no budgets can be set."""
    legal: Bools
    """Legal actions, ``(n, actions)``: what may be done next, read and then written."""
    scratch: StepScratch

    @classmethod
    def zeros(cls, count: int, layout: ActionLayout, *, drive_at: int, wait_us: float) -> BatchState:
        """State of ``count`` environments that have not begun; arguments as in :class:`Rules`."""
        laid = slice_layout_of(layout)
        interval_ps = to_ps(layout.interval_us)
        return cls(
            rules=Rules(
                drive_at,
                float(wait_us),
                interval_ps,
                layout.futures,
                layout.predicts,
                layout.knobs,
                bool(layout.budgets),
                layout.lookahead,
                laid.rows,
                laid.choices,
            ),
            episodes=Episodes.zeros(count, layout.slots),
            progress=BatchProgress.zeros(count, layout.slots),
            observations=ObservationTables.zeros(layout, count),
            knobs=np.zeros((count, layout.slots if layout.knobs else 0, len(KnobFeature)), np.float32),
            cores=np.zeros((count, layout.core_slots, len(CoreFeature)), np.float32),
            legal=np.zeros((count, layout.n), np.bool_),
            scratch=StepScratch.of(layout),
        )


_EXAMPLE = BatchState.zeros(1, ActionLayout(slots=1, running_slots=1, stream_priorities=(0,)), drive_at=0, wait_us=1.0)
STATE: Final = typeof(_EXAMPLE)
_put, state_at = put_and_get(STATE)
"""``state_at``, in compiled code: the state at an address."""


@native()
def put_state(address: int, state: BatchState) -> None:
    """Put a state at an address, for :class:`~gpusched_env.devices.compiled.memory.Kept`."""
    _put(address, state)
