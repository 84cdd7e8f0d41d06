"""Who disturbs whom: at which speeds jobs go on side by side, by what each asks of the GPU.

Two jobs run at 0.3 to 1 of their speed alone, depending on both. The logarithm of a speed is taken to be linear in what
the one asks, in what the other asks, and in products of any two of these
(:class:`~gpusched_env.scenarios.profiles.JobDemand`).
The weights were fitted to simulated pairs of networks (``gpusched lab interference``; ``docs/interference.md`` has the
errors, on networks that were not in the fit and on recorded ones).

Among more than two jobs, each is slowed by all that go before it as if each of those were its only company. One that is
behind it disturbs it the less, the less that one gets on itself (:func:`disturbance`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from importlib import resources
from typing import Annotated, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import law
from gpusched_env.reading import decoded
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.profiles import JobDemand

Floats = NDArray[np.float64]

SCHEMA: Final = "gpusched-interference/2"
UNKNOWN: Final[Floats] = np.ones((0, 0, 2))
"""What stands in place of a table of speeds that are not known."""
SLOWEST: Final = 0.05
"""The least speed that is predicted of a job beside another one."""
GRID: Final = 2.0**30
"""Speeds that are computed are multiples of one over this. Libraries give other last digits on other processors, and
these would decide between jobs that are worth the same."""


def features(demand: JobDemand) -> Floats:
    """What the model sees of a job, shape ``(6,)``: shares as they are, the latency of blocks as its logarithm."""
    shares = (demand.issue, demand.dram, demand.threads, demand.busy, demand.overfull)
    return np.array([*shares, math.log(demand.block_us)])


def products(before: Floats, behind: Floats) -> Floats:
    """Terms of the model, shape ``(91,)``, of standardised features of two jobs: 1, each one, each times each."""
    own = [np.outer(job, job)[np.triu_indices(len(job))] for job in (before, behind)]
    return np.concatenate([[1.0], before, behind, np.outer(before, behind).ravel(), *own])


class PairModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Weights of the model, and where they are from."""

    schema: str = SCHEMA
    fitted_to: str
    """Simulated pairs, in words."""
    mean: Annotated[list[float], msgspec.Meta(min_length=6, max_length=6)]
    scale: Annotated[list[float], msgspec.Meta(min_length=6, max_length=6)]
    """Mean and scale by which features are standardised."""
    weights: Annotated[list[list[float]], msgspec.Meta(min_length=2, max_length=2)]
    """Weights of :func:`products`, for the log of the speed of the job that goes before, and of the one behind it."""
    exponent: Annotated[float, msgspec.Meta(ge=0.0)]
    """Exponent of :func:`disturbance`."""

    def speeds(self, before: JobDemand, behind: JobDemand) -> tuple[float, float]:
        """Speeds of two jobs side by side, in multiples of their speeds alone: of the urgent one, of the other one."""
        mean, scale = np.array(self.mean), np.array(self.scale)
        terms = products((features(before) - mean) / scale, (features(behind) - mean) / scale)
        speeds = np.rint(np.exp(np.minimum(np.array(self.weights) @ terms, 0.0)) * GRID) / GRID
        first, second = np.clip(speeds, SLOWEST, 1.0).tolist()
        return first, second


@functools.cache
def shipped_model() -> PairModel:
    """The model that comes with the package."""
    file = resources.files("gpusched_env.data") / "calibration" / "interference.json"
    return decoded(file.read_bytes(), PairModel, "data/calibration/interference.json")


def pair_speeds(knowledge: Knowledge) -> Floats:
    """Speeds of jobs of two tenants side by side, of the shipped model: see :func:`speed_table`."""
    return speed_table([tenant.demand for tenant in knowledge.tenants], shipped_model())


def speed_table(demands: Sequence[JobDemand], model: PairModel) -> Floats:
    """Speeds of two jobs side by side, shape ``(jobs, jobs, 2)``.

    ``[a, b, 0]`` is the speed of job ``a`` that goes before ``b``; ``[a, b, 1]`` that of ``a`` behind ``b``. A tenant's
    own jobs come one after the other: 1 on the diagonal.
    """
    table = np.ones((len(demands), len(demands), 2))
    for a, before in enumerate(demands):
        for b, behind in enumerate(demands):
            if a != b:
                table[a, b, 0], table[b, a, 1] = model.speeds(before, behind)
    return table


@law
def disturbance(before: float, behind: float, speed: float, exponent: float) -> float:
    """Factor (0, 1] on the speed of a job by one behind it that others keep at ``speed``, a multiple of 1 /
    :data:`GRID`.

    Args:
        before, behind: speeds of both if they were the only ones, above 0.
        speed: of the one behind, at most ``behind``.
        exponent: how much less it disturbs where it gets on less (>= 0).
    """
    return math.floor(GRID * math.pow(before, math.pow(speed / behind, exponent)) + 0.5) / GRID


def speeds_in_order(order: Sequence[int], table: Floats, exponent: float) -> list[float]:
    """Speeds of several jobs side by side, by place, the most urgent first.

    Args:
        order: rows of ``table``, each at most once.
        table: of :func:`speed_table`.
        exponent: :attr:`PairModel.exponent`.
    """
    speeds: list[float] = []
    for place, job in enumerate(order):
        speed = math.prod([float(table[job, other, 1]) for other in order[:place]])
        for at, other in enumerate(order[:place]):
            speeds[at] *= disturbance(float(table[other, job, 0]), float(table[job, other, 1]), speed, exponent)
        speeds.append(speed)
    return speeds
