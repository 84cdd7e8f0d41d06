"""The whole reproduction: runs, headline figures, what drives them; as data."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpusched_env import __version__
from gpusched_env.experiments.lib.workers import run_tasks
from gpusched_env.experiments.reproduce.fikit.drivers import drivers, outsiders
from gpusched_env.experiments.reproduce.fikit.headline import Target, distribution, targets
from gpusched_env.experiments.reproduce.fikit.pairs import Pair, Runs
from gpusched_env.experiments.reproduce.fikit.recorded import RunSliced, Sliced, recorded_pairs
from gpusched_env.experiments.reproduce.fikit.setting import GPU, RECORDED_ON, Cell, all_cells
from gpusched_env.experiments.reproduce.fikit.simulate import Simulate
from gpusched_env.experiments.reproduce.fikit.trials import TRIALS, Loss, RunTrial, Threshold, losses, thresholds

SCHEMA = "gpusched-fikit/1"
Progress = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What was found."""

    runs: Runs
    targets: list[Target]
    losses: list[Loss]
    thresholds: list[Threshold]
    sliced: list[Sliced]

    @property
    def holds(self) -> bool:
        """Every headline figure."""
        return all(target.holds for target in self.targets)

    @property
    def gpus(self) -> list[str]:
        """The paper's stand-in first."""
        return list(dict.fromkeys(cell.gpu for cell in self.runs.outcomes))

    @property
    def sliced_errors(self) -> tuple[float, float]:
        """Median and largest relative error of default sharing against an H100, both services of every pair."""
        errors = [abs(error) for pair in self.sliced for error in pair.errors]
        return statistics.median(errors), max(errors)

    def as_dict(self) -> dict[str, Any]:
        """Table values, for JSON."""
        return {
            "schema": SCHEMA,
            "version": __version__,
            "holds": self.holds,
            "targets": [{**asdict(t), "difference": t.difference, "holds": t.holds} for t in self.targets],
            "gpus": {gpu: self._of_gpu(self.runs.pairs(gpu)) for gpu in self.gpus},
            "by_slice_us": {
                f"{slice_us:g}": [{"high": h, "low": low, "speedup": s} for (h, low), s in found.items()]
                for slice_us, found in self.runs.by_slice(GPU).items()
            },
            "wrong_profiles": [asdict(loss) for loss in self.losses],
            "largest_overhead_by_cost_us": {
                gpu: {f"{cost_us:g}": overhead for cost_us, overhead in self.runs.overheads(gpu).items()}
                for gpu in self.gpus
            },
            "thresholds": [asdict(threshold) for threshold in self.thresholds],
            "recorded_time_slicing": [{**asdict(pair), "errors": pair.errors} for pair in self.sliced],
            "runs": self.runs.rows(),
        }

    def _of_gpu(self, pairs: list[Pair]) -> dict[str, Any]:
        return {
            "distribution": asdict(distribution([pair.speedup for pair in pairs])),
            "drivers": [asdict(driver) for driver in drivers(pairs)],
            "outside": [asdict(outsider) for outsider in outsiders(pairs)],
            "pairs": [
                {"high": p.high.name, "low": p.low.name, "speedup": p.speedup, "slowdown_under_fikit": p.slowdown}
                for p in pairs
            ],
        }

    def summary_line(self) -> str:
        """One line that sums up."""
        found = distribution([pair.speedup for pair in self.runs.pairs(GPU)])
        return (
            f"{'OK' if self.holds else 'FAILED'}: fikit: {sum(t.holds for t in self.targets)} of {len(self.targets)} "
            f"headline figures come out; speed-ups {found.smallest:.2f} to {found.largest:.2f}, median "
            f"{found.median:.2f}, {found.inside:.0%} of {found.pairs} pairs within the published range"
        )


def reproduce(
    workers: int,
    device: str = "compiled",
    on_progress: Progress | None = None,
    cells: Sequence[Cell] | None = None,
    *,
    extras: bool = True,
) -> Reproduction:
    """Run everything; ``on_progress`` is called with the number of finished runs and their share.

    ``extras``: also what does not need ``cells``, wrong profiles and the recorded pairs.
    """
    cells = all_cells() if cells is None else list(cells)
    jobs: list[tuple[Callable[[Any], Any], Sequence[Any]]] = [(Simulate(device), cells)]
    if extras:
        jobs += [(RunTrial(device), TRIALS), (RunSliced(device), recorded_pairs())]
    found = _run_all(jobs, workers, on_progress)
    runs = Runs(dict(zip(cells, found[0], strict=True)))
    tried = dict(zip(TRIALS, found[1], strict=True)) if extras else {}
    alone_us = {network.name: network.alone_us for network in runs.networks(RECORDED_ON)}
    return Reproduction(
        runs=runs,
        targets=targets(runs, GPU),
        losses=losses(tried) if extras else [],
        thresholds=thresholds(tried, alone_us) if extras else [],
        sliced=found[2] if extras else [],
    )


def run_count() -> int:
    """Runs of :func:`reproduce`."""
    return len(all_cells()) + len(TRIALS) + len(recorded_pairs())


def _run_all(
    jobs: Sequence[tuple[Callable[[Any], Any], Sequence[Any]]], workers: int, on_progress: Progress | None
) -> list[list[Any]]:
    """The results of every task on its arguments, in their order."""
    total = sum(len(arguments) for _, arguments in jobs)
    finished = 0
    results = []
    for task, arguments in jobs:
        found: dict[int, Any] = {}
        for index, result in run_tasks(task, arguments, workers):
            found[index] = result
            finished += 1
            if on_progress is not None:
                on_progress(finished, finished / total)
        results.append([found[index] for index in range(len(arguments))])
    return results
