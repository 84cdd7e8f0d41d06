"""How fast the reference device is, beside a bare SimPy loop on the same machine in the same process.

What is timed of the device is its own work: CPU time inside ``reset``, ``apply`` and ``advance`` of one
episode of InferenceBesideTraining under pass-through. The scheduler's commands are recorded in a first
run and replayed without it, so that its time (reading views included) stays out; it is reported apart.
The bare loop is 100 processes that each wait for one timeout after the other.

``python -m gpusched_env.experiments.benchmarks.reference_speed`` prints the figures.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import simpy
from simpy.events import Event

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.devices.reference.sms import SmArray
from gpusched_env.hardware.records import BLOCK_DTYPE
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.problem import Problem, build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import Command, Launch
from gpusched_env.scheduling.session import begin

ROUNDS = 5
GRIDS = (10**3, 10**4, 10**5, 10**6)
"""Blocks of the kernels whose cost is compared."""


def bare_simpy_events_per_s(processes: int = 100, events: int = 200_000) -> float:
    """Events that SimPy alone processes in a second of CPU time, with ``processes`` that wait for timeouts."""

    def wait(env: simpy.Environment) -> Generator[Event, None, None]:
        while True:
            yield env.timeout(1.0)

    env = simpy.Environment()
    for _ in range(processes):
        env.process(wait(env))
    began = time.process_time()
    env.run(until=events / processes)
    return events / (time.process_time() - began)


@dataclass(frozen=True, slots=True)
class Episode:
    """One recorded episode: what a device is given to do."""

    problem: Problem
    seed: int
    commands: tuple[Command, ...]
    total_s: float
    """CPU time of the recording: device and scheduler."""

    @property
    def kernels(self) -> int:
        """Kernels launched."""
        return sum(isinstance(command, Launch) for command in self.commands)


def record_episode(problem: Problem, scheduler: str = "pass-through", seed: int = 0) -> Episode:
    """Run ``scheduler`` on a reference device and keep its commands."""
    chosen = make_scheduler(scheduler)
    begin(chosen, problem, seed)
    device = ReferenceDevice()
    commands: list[Command] = []
    began = time.process_time()
    view = device.reset(problem, seed)
    while view is not None:
        commands.append(chosen.decide(view))
        device.apply(commands[-1])
        view = device.advance()
    return Episode(problem, seed, tuple(commands), time.process_time() - began)


@dataclass(frozen=True, slots=True)
class DeviceRun:
    """What a device did for one episode."""

    events: int
    """SimPy events that it processed."""
    seconds: float
    """CPU time."""


def replay(episode: Episode) -> DeviceRun:
    """Give a new reference device the commands of ``episode``; nothing else happens meanwhile."""
    device = ReferenceDevice()
    apply, advance = device.apply, device.advance
    began = time.process_time()
    device.reset(episode.problem, episode.seed)
    for command in episode.commands:
        apply(command)
        advance()
    seconds = time.process_time() - began
    # SimPy numbers its events; those still in its queue were not processed.
    return DeviceRun(next(device.env._eid) - len(device.env._queue), seconds)


def device_events_per_s(episode: Episode) -> float:
    """SimPy events that the reference device processes in a second of CPU time."""
    run = replay(episode)
    return run.events / run.seconds


def kernel_cost_us(blocks: int, repetitions: int = 200) -> float:
    """CPU time to simulate one kernel of ``blocks`` equal blocks on an otherwise idle H100, microseconds."""
    gpu = load_gpu("h100-sxm")
    block = np.zeros(1, BLOCK_DTYPE)
    block[0] = (256, 8, 256 * 32, 1024, 8 * 1024, 20.0, 0.02, 0.1, 20_000.0, 0.0)
    sms = SmArray(gpu)
    now = 0.0
    samples = []
    for _ in range(repetitions):
        began = time.process_time()
        slot = sms.add(block, 1.0, blocks, 0, (0, gpu.sms))
        sms.step(now)
        while sms.next_us < math.inf:
            now = sms.next_us
            sms.step(now)
        sms.remove(slot)
        samples.append(time.process_time() - began)
    return statistics.median(samples) * 1e6


@dataclass(frozen=True, slots=True)
class Comparison:
    """Medians over rounds that alternate the two."""

    bare_events_per_s: float
    device_events_per_s: float
    ratio: float
    """Median of the rounds' ratios, device over bare."""


def compare(episode: Episode, rounds: int = ROUNDS) -> Comparison:
    """Measure bare SimPy and the device in turn; everything must have been compiled before."""
    bare, device = [], []
    for _ in range(rounds):
        bare.append(bare_simpy_events_per_s())
        device.append(device_events_per_s(episode))
    ratios = [d / b for d, b in zip(device, bare, strict=True)]
    return Comparison(statistics.median(bare), statistics.median(device), statistics.median(ratios))


def main() -> None:
    """Print the figures."""
    problem = build_problem(load_scenario("InferenceBesideTraining"))
    record_episode(problem)  # compiles
    episode = record_episode(problem)
    run = replay(episode)
    compared = compare(episode)
    kernels = episode.kernels
    device_us = run.events / compared.device_events_per_s / kernels * 1e6
    print(f"InferenceBesideTraining, pass-through: {kernels} kernels, {run.events / kernels:.1f} SimPy events a kernel")
    print(f"bare SimPy, 100 processes: {compared.bare_events_per_s / 1e3:8.0f} thousand events/s")
    print(f"reference device:          {compared.device_events_per_s / 1e3:8.0f} thousand events/s")
    print(f"ratio (median of {ROUNDS}):       {compared.ratio:8.3f}")
    print(f"device, a kernel:          {device_us:8.1f} us")
    print(f"scheduler and its views:   {(episode.total_s - run.seconds) / kernels * 1e6:8.1f} us a kernel")
    kernel_cost_us(GRIDS[-1], 5)
    costs = {blocks: kernel_cost_us(blocks) for blocks in GRIDS}
    print("cost of one kernel by its grid:")
    for blocks, cost in costs.items():
        print(f"{blocks:9d} blocks {cost:8.1f} us, {cost / costs[GRIDS[1]]:5.2f} of {GRIDS[1]} blocks'")


if __name__ == "__main__":
    main()
