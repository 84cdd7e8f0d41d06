"""Profiles that are off: what everybody is told about kernels beforehand, while the device runs the true ones.

Profiled durations and gaps serve knowledge and views only; devices run blocks, whose times come from the recording.
Times of whole jobs (``ALONE_US``, and ``JOB_LEFT_US`` when a job begins) stay: a service knows its own latency. How
a job's time is spread over its kernels follows the profiles that are told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gpusched_env.scenarios.program import HostOp, JobProgram
    from gpusched_env.scenarios.tenant_program import TenantProgram


class ProfileError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the profiles that everybody is told are off; what the device runs is not."""

    durations: Annotated[float, Meta(gt=0)] = 1.0
    """Profiled durations of all kernels are this many times the true ones."""
    gaps: Annotated[float, Meta(ge=0)] = 1.0
    """Profiled gaps are this many times the true ones."""
    scatter: Annotated[float, Meta(ge=1)] = 1.0
    """Besides, each duration and each gap is off by a factor of its own, log-uniform from one over this to this."""
    forget: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Each kernel was never measured with this probability: its duration and gap are unknown (NaN)."""
    seed: Annotated[int, Meta(ge=0)] = 0
    """Seed that decides which factors are drawn and which kernels are forgotten."""


@dataclass(frozen=True, slots=True)
class Profiles:
    """Profiled means by identity (kernels and then graphs), microseconds; NaN for a kernel never measured."""

    duration_us: NDArray[np.float64]
    gap_us: NDArray[np.float64]
    """Time from a kernel's end to the start of its tenant's next kernel, alone on the GPU."""

    def distorted(self, error: ProfileError) -> Profiles:
        """These profiles with ``error`` made in them."""
        rng = np.random.default_rng(error.seed)
        count = len(self.duration_us)
        off = np.exp(rng.uniform(-math.log(error.scatter), math.log(error.scatter), (2, count)))
        known = np.where(rng.random(count) < error.forget, math.nan, 1.0)
        return Profiles(
            self.duration_us * error.durations * off[0] * known,
            self.gap_us * error.gaps * off[1] * known,
        )

    def followed_by(self, duration_us: Sequence[float]) -> Profiles:
        """These profiles and, behind them, some with nothing after them: no gap, or none that is known."""
        gap_us = np.where(np.isnan(duration_us), math.nan, 0.0)
        return Profiles(np.concatenate([self.duration_us, duration_us]), np.concatenate([self.gap_us, gap_us]))


def told_program(program: TenantProgram, true_us: Sequence[float], told_us: NDArray[np.float64]) -> TenantProgram:
    """``program`` with the time left of a job spread over its kernels as ``told_us`` says.

    Otherwise the difference of two kernels' ``left_us`` would be a true duration. The whole job's stays. A kernel that
    was never measured counts as the mean of the others of its iteration.

    Args:
        program: of a tenant.
        true_us: true profiled durations by kernel identity.
        told_us: those that are told.
    """
    return replace(program, variants=tuple(_told_job(job, true_us, told_us) for job in program.variants))


def _told_job(job: JobProgram, true_us: Sequence[float], told_us: NDArray[np.float64]) -> JobProgram:
    threads = [_told_ops(ops, true_us, told_us) for ops in job.by_thread()]
    return replace(job, ops=tuple(op for ops in threads for op in ops))


def _told_ops(ops: tuple[HostOp, ...], true_us: Sequence[float], told_us: NDArray[np.float64]) -> list[HostOp]:
    kernels = [op.identity for op in ops if op.identity >= 0]
    if not kernels:
        return list(ops)
    told = told_us[kernels]
    unknown = np.isnan(told)
    told[unknown] = 1.0 if unknown.all() else told[~unknown].mean()
    told *= sum(true_us[identity] for identity in kernels) / told.sum()
    # From each kernel on, and nothing behind the last.
    left_us = [*np.cumsum(told[::-1])[::-1].tolist(), 0.0]
    found = []
    kernel = 0
    for op in ops:
        found.append(replace(op, left_us=left_us[kernel]))
        kernel += op.identity >= 0
    return found
