"""When a tenant's jobs arrive. Each process yields the next arrival from the past alone.

All randomness is uniform draws (``Generator.random``), one a decision: exponential gaps come by inversion.
"""

from __future__ import annotations

import math
from typing import Annotated, Protocol

import msgspec
import numpy as np
from msgspec import Meta

Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]


class Arrivals(Protocol):
    """An arrival process."""

    def first_us(self, rng: np.random.Generator) -> float:
        """Time of the first arrival."""

    def next_us(self, rng: np.random.Generator, arrived_us: float, completed_us: float) -> float:
        """The arrival after the one at ``arrived_us``, whose job completed at ``completed_us``.

        Open processes ignore the completion and may return a time in the past of it.
        """


def exponential_us(rng: np.random.Generator, rate_per_s: float) -> float:
    """A random gap of mean ``1e6 / rate_per_s``: the quantile function at one uniform draw."""
    return -math.log1p(-rng.random()) * 1e6 / rate_per_s


class _Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    start_us: NonNegative = 0.0
    """Earliest first arrival."""

    @property
    def closed(self) -> bool:
        """Whether the next arrival waits for the completion of the previous job."""
        return False

    @property
    def needs_job_count(self) -> bool:
        """Whether the process only makes sense for a finite number of jobs."""
        return False


class ClosedLoop(_Base, frozen=True, kw_only=True, tag="closed-loop", tag_field="kind"):
    """The next job arrives ``think_us`` after the previous one completed."""

    think_us: NonNegative = 0.0

    @property
    def closed(self) -> bool:
        return True

    def first_us(self, rng: np.random.Generator) -> float:
        return self.start_us

    def next_us(self, rng: np.random.Generator, arrived_us: float, completed_us: float) -> float:
        return completed_us + self.think_us


class Poisson(_Base, frozen=True, kw_only=True, tag="poisson", tag_field="kind"):
    """Independent exponential gaps at ``rate_per_s`` jobs a second."""

    rate_per_s: Positive

    def first_us(self, rng: np.random.Generator) -> float:
        return self.start_us + exponential_us(rng, self.rate_per_s)

    def next_us(self, rng: np.random.Generator, arrived_us: float, completed_us: float) -> float:
        return arrived_us + exponential_us(rng, self.rate_per_s)


class Periodic(_Base, frozen=True, kw_only=True, tag="periodic", tag_field="kind"):
    """One job every ``period_us``."""

    period_us: Positive

    def first_us(self, rng: np.random.Generator) -> float:
        return self.start_us

    def next_us(self, rng: np.random.Generator, arrived_us: float, completed_us: float) -> float:
        return arrived_us + self.period_us


class Bursts(_Base, frozen=True, kw_only=True, tag="bursts", tag_field="kind"):
    """Poisson bursts at ``rate_per_s``, each of a geometric number of jobs (mean ``mean_size``) at once."""

    rate_per_s: Positive
    mean_size: Annotated[float, Meta(ge=1)]

    def first_us(self, rng: np.random.Generator) -> float:
        return self.start_us + exponential_us(rng, self.rate_per_s)

    def next_us(self, rng: np.random.Generator, arrived_us: float, completed_us: float) -> float:
        # A burst goes on with probability 1 - 1/mean: a geometric size without a counter to keep.
        if rng.random() < 1.0 - 1.0 / self.mean_size:
            return arrived_us
        return arrived_us + exponential_us(rng, self.rate_per_s)


class Backlog(_Base, frozen=True, kw_only=True, tag="backlog", tag_field="kind"):
    """All jobs are there at ``start_us`` (the tenant needs a finite number of jobs)."""

    @property
    def needs_job_count(self) -> bool:
        return True

    def first_us(self, rng: np.random.Generator) -> float:
        return self.start_us

    def next_us(self, rng: np.random.Generator, arrived_us: float, completed_us: float) -> float:
        return arrived_us


ArrivalProcess = ClosedLoop | Poisson | Periodic | Bursts | Backlog
