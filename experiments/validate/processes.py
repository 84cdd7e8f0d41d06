"""Programs that Python launches, two at a time, in processes that the GPU runs in turns and in threads of one: the rows
of ``processes.jsonl``, and what is predicted of them from traces of each alone.

A prediction sees each program's trace and its mean time alone, which scales the trace's host times: hosts of one day
are not those of another. How threads of one process slow each other's hosts is known from other recordings
(:data:`~gpusched_env.experiments.lib.recorded.AT_WORK`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import AT_WORK, PHYSICS, WAITING, situation, tenant, turnarounds_us
from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.experiments.validate.recordings import PROGRAM_SCHEDULERS, ProgramPair
from gpusched_env.workload.workload import Workload

HORIZON_US: Final = 600_000.0
NEAR: Final = 0.15
"""Errors up to this are near."""
MOST_FAR: Final = 1.0 / 6.0
"""Share of pairs that may have a side that is not near."""
EVERY_PROGRAM_PAIR: Final = "Every pair of programs"


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """Programs, each with a host of its own, simulated."""

    names: tuple[str, ...]
    alone_us: tuple[float, ...]
    """Recorded means alone."""
    mode: str
    gpu: str
    workloads: Shared[Mapping[str, Workload]] = field(repr=False)

    def run(self, device: str) -> list[float]:
        """Mean time of an iteration of each (us)."""
        tenants = [
            tenant(name, name=f"{name} ({row})", priority=row, iteration_us=us)
            for row, (name, us) in enumerate(zip(self.names, self.alone_us, strict=True))
        ]
        threads = len(tenants) > 1 and self.mode != "time slicing"
        problem = situation(
            tenants,
            self.gpu,
            HORIZON_US,
            self.workloads.value,
            stream_priorities=[0, -5],
            physics=PHYSICS,
            host_contention=AT_WORK if threads else 0.0,
            waiting_contention=WAITING if threads else 0.0,
        )
        episode = play(PROGRAM_SCHEDULERS[self.mode], problem, seed=0, device=device)
        return [float(np.mean(took_us)) for took_us in turnarounds_us(episode, skip=1)]


def program_cells(
    pair: ProgramPair, gpu: str, workloads: Shared[Mapping[str, Workload]]
) -> tuple[ProgramRun, ProgramRun, ProgramRun]:
    """Both together, the one in front alone, the one behind alone."""
    both = ProgramRun(pair.names, pair.alone_us, pair.row.what, gpu, workloads)
    front, behind = (
        ProgramRun((name,), (us,), "streams", gpu, workloads)
        for name, us in zip(pair.names, pair.alone_us, strict=True)
    )
    return both, front, behind


@dataclass(frozen=True)
class PredictedPrograms:
    """Pairs of programs with their predicted slowdowns."""

    pairs: Sequence[tuple[ProgramPair, tuple[float, float]]] = ()

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A row a pair: predicted and recorded slowdowns, and their relative errors."""
        found = []
        for pair, predicted in self.pairs:
            row: dict[str, Any] = {"mode": pair.row.what, "front": pair.names[0], "behind": pair.names[1]}
            for side, p, m in zip(("front", "behind"), predicted, pair.recorded, strict=True):
                row |= {f"{side}_predicted": p, f"{side}_recorded": m, f"{side}_error": p / m - 1.0}
            row["far"] = max(abs(row["front_error"]), abs(row["behind_error"])) > NEAR
            found.append(row)
        return found

    @property
    def far(self) -> float:
        """Share of pairs with a side that is further off than :data:`NEAR`."""
        return float(np.mean([row["far"] for row in self.rows]))

    def tables(self) -> list[Table]:
        """Errors by mode, and every pair."""
        if not self.rows:
            return []
        by_mode = []
        for mode in PROGRAM_SCHEDULERS:
            rows = [row for row in self.rows if row["mode"] == mode]
            if rows:
                front, behind = (np.array([row[f"{side}_error"] for row in rows]) for side in ("front", "behind"))
                faster = sum(row["front_recorded"] < 1.0 for row in rows)
                by_mode.append(
                    [mode, str(len(rows)), _spread(front), _spread(behind), f"{np.median(front):+.1%}",
                     str(sum(not row["far"] for row in rows)), str(faster)]
                )  # fmt: skip
        each = [
            [row["mode"], row["front"], row["behind"], *(f"{row[f'{s}_{w}']:.2f}" for s in ("front", "behind")
              for w in ("predicted", "recorded"))]
            for row in self.rows
        ]  # fmt: skip
        return [
            Table(
                "Programs that Python launches",
                ["mode", "pairs", "front: median, p90", "behind: median, p90", "front: bias", "near", "front faster"],
                by_mode,
                f"Errors of slowdowns, mean time together over that alone. *Near*: pairs both of whose sides are "
                f"within {NEAR:.0%}. *Front faster*: recorded pairs whose front was faster beside the other than "
                "alone, which no law of sharing gives: so much do hosts differ from one second to the next.",
            ),
            Table(
                EVERY_PROGRAM_PAIR,
                ["mode", "front", "behind", "front predicted", "recorded", "behind predicted", "recorded"],
                each,
            ),
        ]


def _spread(errors: np.ndarray[Any, Any]) -> str:
    median, p90 = np.percentile(np.abs(errors), (50, 90))
    return f"{median:.1%}, {p90:.1%}"
