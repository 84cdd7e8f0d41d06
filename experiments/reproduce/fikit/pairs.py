"""All runs together: what each pair of services gains, and what its networks are like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpusched_env.baselines.registry import default_options
from gpusched_env.experiments.reproduce.fikit.setting import (
    ALONE,
    DEFAULT,
    DEFAULT_NOW_AND_THEN,
    EXCLUSIVE,
    FIKIT,
    FIKIT_ALONE,
    FIKIT_NOW_AND_THEN,
    INTERCEPTED,
    MEASURED,
    UNDER_MPS,
    Cell,
    problem_of,
)
from gpusched_env.experiments.reproduce.fikit.simulate import Outcome
from gpusched_env.workload.workload import OpKind

DEFAULT_COST_US = float(default_options("fikit")["interception_us"])
ANSWER_WAITS = 3
"""Synchronisations with which a network that never waits in between hands over its answer."""
DENSE_GAP_SHARE = 0.1
"""A service with smaller gaps alone keeps the GPU busy."""


@dataclass(frozen=True, slots=True)
class Network:
    """A service by itself on one GPU."""

    name: str
    alone_us: float
    """Job completion time alone."""
    kernels: int
    """Of a job."""
    waits: int
    """Synchronisations of a job, with which the host waits for the device."""
    gap_share: float
    """Share of the time alone in which none of its kernels runs."""
    overhead: float
    """Of FIKIT's interception: relative growth of the completion time alone."""
    measuring: float
    """Completion time while it is measured, kernel by kernel, over that alone."""

    @property
    def waits_per_ms(self) -> float:
        return 1e3 * self.waits / self.alone_us

    @property
    def kernels_per_ms(self) -> float:
        """Launch density."""
        return 1e3 * self.kernels / self.alone_us


@dataclass(frozen=True, slots=True)
class Pair:
    """Two services that share a GPU."""

    high: Network
    low: Network
    default: Outcome
    fikit: Outcome
    under_mps: Outcome

    @property
    def speedup(self) -> float:
        """Of the high-priority service: completion time under default sharing over that under FIKIT."""
        return self.default.high_us / self.fikit.high_us

    @property
    def as_in_the_paper(self) -> bool:
        """The premise of filling gaps: the one service waits for the GPU in mid-network, the other keeps it busy."""
        return self.high.waits > ANSWER_WAITS and self.low.gap_share < DENSE_GAP_SHARE

    @property
    def slowdown(self) -> float:
        """Of the high-priority service under FIKIT: completion time over that alone."""
        return self.fikit.high_us / self.high.alone_us


class Runs:
    """Outcomes by run."""

    def __init__(self, outcomes: Mapping[Cell, Outcome]) -> None:
        self.outcomes = dict(outcomes)
        gpus = dict.fromkeys(cell.gpu for cell in self.outcomes)
        self._networks = {gpu: self._networks_on(gpu) for gpu in gpus}

    def networks(self, gpu: str) -> list[Network]:
        """The networks that ran by themselves on ``gpu``."""
        return list(self._networks[gpu].values())

    def pairs(self, gpu: str) -> list[Pair]:
        """The pairs that ran on ``gpu``."""
        networks = self._networks[gpu]
        found = []
        for cell, default in self.outcomes.items():
            if cell.gpu == gpu and cell.low is not None and cell.mode == DEFAULT and cell.slice_us is None:
                fikit, under_mps = (self.outcomes[Cell(gpu, cell.high, cell.low, m)] for m in (FIKIT, UNDER_MPS))
                found.append(Pair(networks[cell.high], networks[cell.low], default, fikit, under_mps))
        return found

    def exclusive(self, gpu: str) -> list[float]:
        """Of each pair: completion time of the high-priority service in exclusive mode over that under FIKIT."""
        return [
            outcome.high_us / self.outcomes[Cell(gpu, cell.high, cell.low, FIKIT)].high_us
            for cell, outcome in self.outcomes.items()
            if cell.gpu == gpu and cell.mode == EXCLUSIVE
        ]

    def low_ratios(self, gpu: str) -> dict[tuple[str, str], float]:
        """By pair, under preemptive sharing: the low-priority service's completion time under default sharing over that
        under FIKIT (below 1: FIKIT makes it wait longer)."""
        return {
            (cell.high, cell.low): self.outcomes[Cell(gpu, cell.high, cell.low, DEFAULT_NOW_AND_THEN)].low_us
            / outcome.low_us
            for cell, outcome in self.outcomes.items()
            if cell.gpu == gpu and cell.low is not None and cell.mode == FIKIT_NOW_AND_THEN
        }

    def overheads(self, gpu: str) -> dict[float, float]:
        """By cost of an interception (us): the largest relative growth of a completion time alone."""
        networks = self._networks[gpu].values()
        found = {DEFAULT_COST_US: max(network.overhead for network in networks)}
        for cost_us, mode in INTERCEPTED.items():
            found[cost_us] = max(
                self.outcomes[Cell(gpu, network.name, None, mode)].high_us / network.alone_us - 1.0
                for network in networks
            )
        return found

    def by_slice(self, gpu: str) -> dict[float, dict[tuple[str, str], float]]:
        """By time slice, for the pairs for which it was varied: speed-ups."""
        found: dict[float, dict[tuple[str, str], float]] = {}
        for cell, outcome in self.outcomes.items():
            if cell.gpu == gpu and cell.low is not None and cell.slice_us is not None:
                fikit_us = self.outcomes[Cell(gpu, cell.high, cell.low, FIKIT)].high_us
                found.setdefault(cell.slice_us, {})[cell.high, cell.low] = outcome.high_us / fikit_us
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Table records, one a run, NaN as ``None``."""
        records = [{**asdict(cell), **asdict(outcome)} for cell, outcome in self.outcomes.items()]
        return [{key: None if value != value else value for key, value in record.items()} for record in records]

    def _networks_on(self, gpu: str) -> dict[str, Network]:
        found = {}
        for cell, outcome in self.outcomes.items():
            if cell.gpu == gpu and cell.mode == ALONE:
                program = problem_of(cell).programs[0]
                kernels = [[op for op in ops if op.kind is OpKind.KERNEL] for ops in program.variants]
                busy_us = sum(op.device_us for ops in kernels for op in ops) / len(kernels)
                fikit, measured = (self.outcomes[Cell(gpu, cell.high, None, m)] for m in (FIKIT_ALONE, MEASURED))
                found[cell.high] = Network(
                    name=cell.high,
                    alone_us=outcome.high_us,
                    kernels=len(kernels[0]),
                    waits=sum(op.kind is OpKind.SYNC for op in program.variants[0]),
                    gap_share=1.0 - busy_us / outcome.high_us,
                    overhead=fikit.high_us / outcome.high_us - 1.0,
                    measuring=measured.high_us / outcome.high_us,
                )
        return found
