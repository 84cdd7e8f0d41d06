"""Profiles that are off: what everybody is told about kernels beforehand, while the device runs the true ones.

Profiled durations and gaps serve views and schedulers only; devices run blocks, whose times come from the recording.
Times of whole jobs (``JOB_LEFT_US``, ``ALONE_US``) stay: a service knows its own latency.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gpusched_env.scenarios.problem import Problem


def scattered_factors(rng: np.random.Generator, factor: float, count: int) -> NDArray[np.float64]:
    """Factors on durations and on gaps, shape ``(2, count)``: log-uniform from ``1 / factor`` to ``factor``."""
    return np.exp(rng.uniform(-math.log(factor), math.log(factor), (2, count)))


def with_profile_error(problem: Problem) -> Problem:
    """``problem`` with what its scenario's ``profile_error`` and ``profile_seed`` make of the true profiles."""
    scenario = problem.scenario
    if scenario.profile_error == 1.0:
        return problem
    off = scattered_factors(np.random.default_rng(scenario.profile_seed), scenario.profile_error, len(problem.kernels))
    kernels = tuple(
        replace(kernel, duration_us=kernel.duration_us * factor)
        for kernel, factor in zip(problem.kernels, off[0].tolist(), strict=True)
    )
    return replace(problem, kernels=kernels, gaps_us=problem.gaps_us * off[1])
