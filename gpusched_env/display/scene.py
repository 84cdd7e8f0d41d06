"""What pictures of an episode are drawn of: who waited, what ran where, and what was commanded, in plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class JobCounts(NamedTuple):
    """Jobs of one tenant at an instant."""

    waiting: int
    """Jobs that arrived, and that the tenant's host has not taken up."""
    running: int
    """Jobs that were taken up and not finished."""
    done: int
    rejected: int
    late: int
    """Jobs that were done after their deadline, or are still not done behind it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """An episode, or the latest part of one. Times are microseconds since its start, ``inf`` for what has not happened.

    What it holds beyond an instant is the future there: pictures of the instant leave it out.
    """

    title: str
    gpu: str
    sms: int
    tenants: Sequence[str]
    names: Sequence[str]
    """Names of kernels."""
    horizon_us: float
    jobs: Floats
    """Jobs, shape ``(jobs, 6)``: tenant, arrived, taken up, completed, rejected, deadline."""
    kernels: Floats
    """Launches, shape ``(launches, 6)``: tenant, place in ``names``, issued, launched, started, ended."""
    blocks: Floats
    """Residencies, shape ``(residencies, 5)``: SM, tenant, share of the SM's threads, started, ended."""
    states: Floats
    """Shape ``(changes, 3)``: since when, share of SMs that are busy, share of the DRAM bandwidth in use."""
    commands: Sequence[tuple[float, str]]
    """Commands of the scheduler in order: when, and what it said."""

    def counts(self, tenant: int, at_us: float) -> JobCounts:
        """How many jobs of a tenant wait, run, are done, were rejected, are late."""
        mine = self.jobs[(self.jobs[:, 0] == tenant) & (self.jobs[:, 1] <= at_us)]
        _, _, taken_up, completed, rejected, deadline = mine.T
        done, given_up = completed <= at_us, rejected <= at_us
        there = ~done & ~given_up
        late = (done & (completed > deadline)) | (there & (deadline < at_us))
        running = there & (taken_up <= at_us)
        return JobCounts(*(int(these.sum()) for these in (there & ~running, running, done, given_up, late)))

    def held(self, tenant: int, at_us: float) -> int:
        """Kernels of a tenant that were issued and that the scheduler has not launched."""
        of, _, issued, launched, _, _ = self.kernels.T
        return int(((of == tenant) & (issued <= at_us) & (launched > at_us)).sum())

    def state(self, at_us: float) -> tuple[float, float]:
        """Share of SMs that are busy, share of the DRAM bandwidth in use."""
        row = int(np.searchsorted(self.states[:, 0], at_us, side="right")) - 1
        return (float(self.states[row, 1]), float(self.states[row, 2])) if row >= 0 else (0.0, 0.0)

    def command(self, at_us: float) -> str:
        """The last command, empty before the first."""
        for when_us, words in reversed(self.commands):
            if when_us <= at_us:
                return words
        return ""

    def shares(self, at_us: float) -> Floats:
        """Share of each SM's threads that each tenant's blocks hold; shape ``(SMs, tenants)``."""
        sm, tenant, share = self.blocks[(self.blocks[:, 3] <= at_us) & (self.blocks[:, 4] > at_us), :3].T
        held = np.zeros((self.sms, len(self.tenants)))
        np.add.at(held, (sm.astype(np.int64), tenant.astype(np.int64)), share)
        return held
