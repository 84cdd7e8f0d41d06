"""Running a scheduler on a device for one episode."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Wait
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.device import Device
from gpusched_env.scheduling.scheduler import Scheduler, is_clairvoyant
from gpusched_env.scheduling.timeline import Detail, Timeline

SCHEDULER_STREAM = 0x5C4ED
"""Spawn key that keeps a scheduler's random numbers apart from the workload's."""


@dataclass(frozen=True, slots=True)
class Episode:
    """What one run left behind."""

    problem: Problem
    seed: int
    timeline: Timeline
    costs: Costs
    end_us: float
    """Simulated time at the end."""
    done: bool
    """The workload was completed or rejected (otherwise the horizon or an interrupt ended the run)."""
    decisions: int
    """Commands other than ``Wait``."""
    wall_s: float


def problem_for(scheduler: Scheduler, problem: Problem) -> Problem:
    """``problem`` with the contexts, commands, host time and graphs that ``scheduler`` asks for; always the same one.

    Raises:
        InputError: it asks for graphs to be something else than opened, or for host time below 0.
    """
    graphs = getattr(scheduler, "graphs", "units")
    if graphs not in ("units", "opened"):
        raise InputError(f"{type(scheduler).__name__}.graphs is {graphs!r}, must be 'units' or 'opened'")
    if graphs == "opened":
        problem = problem.with_opened_graphs()
    contexts = getattr(scheduler, "contexts", None)
    if contexts is not None:
        problem = problem.with_contexts(contexts)
    problem = problem.with_commands(getattr(scheduler, "commands", ()))
    return problem.with_interception(getattr(scheduler, "interception_us", 0.0))


def begin(scheduler: Scheduler, problem: Problem, seed: int) -> None:
    """Tell ``scheduler`` what it may know of the next episode; the truth only if it asks for that."""
    if is_clairvoyant(scheduler):
        scheduler.see(problem, seed)
    scheduler.reset(problem.knowledge, scheduler_rng(seed))


def scheduler_rng(seed: int) -> np.random.Generator:
    """A scheduler's random numbers in the episode of ``seed``; nothing in the generator tells the seed."""
    sequence = np.random.SeedSequence([SCHEDULER_STREAM, seed])
    # A generator keeps what it was made of: not the seed, but numbers drawn from it.
    bits = np.random.PCG64(np.random.SeedSequence(sequence.generate_state(4).tolist()))
    bits.state = np.random.PCG64(sequence).state
    return np.random.Generator(bits)


def run_episode(
    scheduler: Scheduler,
    problem: Problem,
    device: Device,
    seed: int,
    *,
    record: Detail = "jobs",
    on_progress: Callable[[float], None] | None = None,
) -> Episode:
    """Run ``scheduler`` on ``device`` from reset to the end of the episode.

    The same seed gives the same arrivals and durations to every scheduler. ``on_progress`` is called
    now and then with the simulated time.

    Raises:
        IllegalCommand: the scheduler gave a command that is not legal.
        DeadlockError: work is left but nothing can happen any more.
    """
    began = time.perf_counter()
    problem = problem_for(scheduler, problem)
    begin(scheduler, problem, seed)
    view = device.reset(problem, seed, record=record)
    steps = decisions = 0
    while view is not None:
        command = scheduler.decide(view)
        device.apply(command)
        steps += 1
        decisions += not isinstance(command, Wait)
        if on_progress is not None and steps % 512 == 0:
            on_progress(view.time_us)
        view = device.advance()
    return Episode(
        problem=problem,
        seed=seed,
        timeline=device.timeline,
        costs=device.costs,
        end_us=device.time_us,
        done=device.done,
        decisions=decisions,
        wall_s=time.perf_counter() - began,
    )
