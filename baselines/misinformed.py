"""A scheduler that was told wrong profiles: how much does it lose when the measurement stage was off?

The device goes on running the true kernels. What the scheduler learns at the reset (durations in
``Problem.kernels``, ``Problem.gaps_us``) and in every view (profiled durations and gaps) comes from a distorted
copy. Times of whole jobs (``JOB_LEFT_US``, ``ALONE_US``) stay: a service knows its own latency.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from gpusched_env.baselines.profiles import Profiles, given_profiles
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import scattered_factors
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.scheduler import Scheduler
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, Table, View

Distortion = Callable[[Profiles, np.random.Generator], Profiles]
"""Wrong profiles from the right ones."""


def scaled(profiles: Profiles, rng: np.random.Generator, duration: float = 1.0, gap: float = 1.0) -> Profiles:
    """All durations and gaps off by a factor each."""
    return Profiles(profiles.duration_us * duration, profiles.gap_us * gap)


def scattered(profiles: Profiles, rng: np.random.Generator, factor: float = 2.0) -> Profiles:
    """Every duration and gap off by a factor of its own, log-uniform from ``1 / factor`` to ``factor``."""
    off = scattered_factors(rng, factor, len(profiles.duration_us))
    return Profiles(profiles.duration_us * off[0], profiles.gap_us * off[1])


def forgotten(profiles: Profiles, rng: np.random.Generator, share: float) -> Profiles:
    """Each kernel was never measured with probability ``share``: its duration and gap are NaN."""
    known = np.where(rng.random(len(profiles.duration_us)) < share, math.nan, 1.0)
    return Profiles(profiles.duration_us * known, profiles.gap_us * known)


def distorted(
    profiles: Profiles,
    rng: np.random.Generator,
    durations: float = 1.0,
    gaps: float = 1.0,
    scatter: float = 1.0,
    forget: float = 0.0,
) -> Profiles:
    """Everything together: :func:`scaled`, then :func:`scattered`, then :func:`forgotten`."""
    told = scattered(scaled(profiles, rng, durations, gaps), rng, scatter)
    return forgotten(told, rng, forget) if forget else told


class Misinformed:
    """Another scheduler, told wrong profiles."""

    def __init__(self, scheduler: Scheduler, distortion: Distortion) -> None:
        """``scheduler`` decides; ``distortion`` makes what it is told."""
        self._scheduler = scheduler
        self._distortion = distortion
        for name in ("contexts", "commands", "interception_us"):
            if hasattr(scheduler, name):
                setattr(self, name, getattr(scheduler, name))

    def reset(self, problem: Problem, rng: np.random.Generator) -> None:
        """Distort the profiles anew."""
        self._told = told = self._distortion(given_profiles(problem), rng)
        kernels = tuple(
            dataclasses.replace(kernel, duration_us=float(duration_us))
            for kernel, duration_us in zip(problem.kernels, told.duration_us, strict=True)
        )
        self._scheduler.reset(dataclasses.replace(problem, kernels=kernels, gaps_us=told.gap_us), rng)

    def decide(self, view: View) -> Command:
        """What the other scheduler decides on a view with the profiles that it was told."""
        pending, running = view.pending.array.copy(), view.running.array.copy()
        waiting = pending[:, PendingColumn.IDENTITY].astype(int)
        pending[:, PendingColumn.PROFILED_US] = self._told.duration_us[waiting]
        pending[:, PendingColumn.PROFILED_GAP_US] = self._told.gap_us[waiting]
        launched = running[:, RunningColumn.IDENTITY].astype(int)
        running[:, RunningColumn.PROFILED_US] = self._told.duration_us[launched]
        names = [field.name for field in dataclasses.fields(View)]
        shown = {name: getattr(view, name) for name in names}
        shown |= {"pending": Table(pending, PendingColumn), "running": Table(running, RunningColumn)}
        return self._scheduler.decide(View(**shown))
