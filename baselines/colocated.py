"""What controllers of co-location share: who is inference and who training, what a batch took, and the knobs.

Inference are the tenants with an objective, training those without whose jobs wait for each other; others are left
alone. What is measured is the mean turnaround of inference batches in a period, what is aimed at the mean of their
objectives (Chen, Subramaniyan and Wang, GPUColo, ICDCS 2024, section on the inner controller). Knobs are percentages of
the SMs, as MPS has them, and the pause of training hosts between iterations; between two changes of them kernels go
straight to their streams.

Where both have SMs in common, training is an MPS client of lower priority (NVIDIA, *Multi-Process Service*,
CUDA_MPS_CLIENT_PRIORITY). At equal priority the simulated GPU hands out blocks in the order in which kernels came, and
one of training that waits for room in its share would hold up all that come after it: the smaller the share, the later
inference, against what Fig. 4 and 6 measure. Whether real clients hold each other up so is not documented.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.mps import sm_cap
from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.pending import ID, TENANT, oldest_row
from gpusched_env.baselines.priority_streams import stream_priorities
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition, SetPartition, Throttle, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import TenantColumn, View

S = 1e6
"""A second, in microseconds."""
DONE, LAST_US = int(TenantColumn.JOBS_DONE), int(TenantColumn.LAST_TURNAROUND_US)
PAUSE_US, THROTTLABLE = int(TenantColumn.PAUSE_US), int(TenantColumn.THROTTLABLE)
FIRST_SM, SMS, PARTITIONABLE = (
    int(column) for column in (TenantColumn.PARTITION_FIRST, TenantColumn.PARTITION_SMS, TenantColumn.PARTITIONABLE)
)


def outermost(sms: int, share: float, training: bool) -> Partition | None:
    """The SMs of ``share`` percent: of inference from rank 0 on, of training from the other end, so that they overlap
    only where both together have more than the GPU; 100: not confined (``None``)."""
    cap = sm_cap(sms, share)
    return None if cap >= sms else Partition(sms - cap if training else 0, cap)


class Colocated(PassThrough, ABC):
    """Sets shares and pauses now and then, and launches whatever is pending."""

    reads: Reads = ("objectives", "requests", "rates")
    set_up = SetUp(commands=("partition", "throttle"), own_processes=True)

    period_us = math.inf
    """How long a period is, after which :meth:`control` is asked; :meth:`begin` is, once, before the first launch."""
    goal_of_served = False
    """Whether what is aimed at is the mean objective of those that had batches in the period, in place of everyone's:
    where tenants come and go."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Knobs as they are in the beginning."""
        tenants = list(enumerate(knowledge.tenants))
        self.inference = [row for row, tenant in tenants if tenant.slo_us < math.inf]
        self.training = [row for row, tenant in tenants if row not in self.inference and not tenant.jobs_a_us]
        self._sms = knowledge.gpu.sms
        below = [int(row in self.training) for row, _ in tenants]
        self._priorities = stream_priorities(below, knowledge.gpu.priorities)
        self._goals_us = [knowledge.tenants[row].slo_us for row in self.inference]
        self.goal_us = self._goal_us(np.ones(len(self.inference), bool))
        """Time that a batch should take (us)."""
        self.pause_us, self.training_share, self.inference_share = 0.0, 100.0, 100.0
        """The knobs: the pause of training (us), and shares of the SMs in percent."""
        self._reached: tuple[float, ...] = ()
        """Knobs at which all tenants are."""
        self._done = np.zeros(len(self.inference))
        self._took_us: list[float] = []
        """Times that batches took since the period began (us)."""
        self._served = np.zeros(len(self.inference), bool)
        """Whether each tenant's batches were among these."""
        self._due_us = self.period_us
        self.periods: list[tuple[float, float, float, float]] = []
        """End of each period, what a batch took, then the pause set anew (all us), and training's share (percent)."""
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Set the knobs for the beginning."""

    @abstractmethod
    def control(self, batch_us: float) -> None:
        """Set the knobs anew at the end of a period, in which batches took so long on average (NaN: there was none)."""

    def decide(self, view: View) -> Command:
        """What the knobs say first, then whatever is pending."""
        tenants = view.tenants.array
        done = tenants[self.inference, DONE]
        for place in np.flatnonzero(done > self._done).tolist():
            self._took_us.append(float(tenants[self.inference[place], LAST_US]))
            self._served[place] = True
        self._done = done
        while view.time_us >= self._due_us:
            batch_us = sum(self._took_us) / len(self._took_us) if self._took_us else math.nan
            if self.goal_of_served:
                self.goal_us = self._goal_us(self._served)
            self.control(batch_us)
            self.periods.append((self._due_us, batch_us, self.pause_us, self.training_share))
            self._due_us += self.period_us
            self._took_us = []
            self._served[:] = False
        command = self._next_knob(tenants)
        if command is not None:
            return command
        oldest = oldest_row(view)
        if oldest is not None:
            kernel = view.pending.array[oldest]
            return Launch(int(kernel[ID]), self._priorities[int(kernel[TENANT])])
        return Wait(self._due_us) if self._due_us < math.inf else WAIT

    def _goal_us(self, served: NDArray[np.bool_]) -> float:
        """Mean of the objectives of inference that was served; as it was, if none was."""
        goals = [goal_us for goal_us, there in zip(self._goals_us, served.tolist(), strict=True) if there]
        if not goals:
            return self.goal_us if self._goals_us else math.inf
        return sum(goals) / len(goals)

    def _next_knob(self, tenants: NDArray[np.float64]) -> Command | None:
        """What brings the next tenant to the knobs that is not there and may be."""
        knobs = (self.pause_us, self.training_share, self.inference_share)
        if knobs == self._reached:
            return None
        reached = True
        for row in (*self.inference, *self.training):
            state = tenants[row].tolist()
            command = self._knob(row, state)
            if command is not None:
                return command
            reached = reached and bool(state[PARTITIONABLE] and (row not in self.training or state[THROTTLABLE]))
        if reached:
            self._reached = knobs
        return None

    def _knob(self, row: int, state: list[float]) -> Command | None:
        """What brings a tenant to the knobs, if it is not there and may be."""
        trains = row in self.training
        place = outermost(self._sms, self.training_share if trains else self.inference_share, trains)
        first, sms = (0, self._sms) if place is None else (place.first, place.sms)
        if state[PARTITIONABLE] and (state[FIRST_SM], state[SMS]) != (first, sms):
            return SetPartition(row, place)
        # Pauses are whole picoseconds on a device.
        if trains and state[THROTTLABLE] and abs(state[PAUSE_US] - self.pause_us) > 1e-3:
            return Throttle(row, self.pause_us)
        return None
