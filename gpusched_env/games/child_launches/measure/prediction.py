"""Applications that were measured on a real GPU, predicted by the simulated one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.measure.gpu import ApplicationTime, SerialTime, shipped_recording
from gpusched_env.games.child_launches.baselines.registry import make_launch_scheduler
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.hardware.warp_machine import H200, LoopCosts
from gpusched_env.games.child_launches.measure.applications import application
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.scheduler import run_application


@dataclass(frozen=True, slots=True)
class PredictedApplication:
    """An application as it was measured, predicted: costs of its loop are those of serial loops there."""

    application: str
    threshold: int | None
    """Threshold that the program has; ``None``: flat."""

    def run(self, device: str) -> float:
        """The application's predicted time, microseconds."""
        spec = "flat" if self.threshold is None else f"baseline-dp(threshold={self.threshold})"
        run = run_application(make_launch_scheduler(spec), _problem(self.application), make_launch_device(device))
        return run.time_ps / 1e6


@functools.lru_cache(maxsize=8)
def _problem(name: str) -> LaunchProblem:
    """The application as a problem with room for all launches, as in the measurement."""
    machine = replace(H200, launches=replace(H200.launches, pool=None))
    return launch_problem(application(name).benchmark, machine).changed(measured=_loop(name))


def _loop(name: str) -> LoopCosts:
    """Latency of one warp, and what an SM full of warps takes an iteration."""
    rows = [row for row in shipped_recording().of(SerialTime) if row.application == name]
    alone, full = ((row.median_us - row.empty_us) / row.turns * H200.clock_mhz for row in (rows[0], rows[-1]))
    return LoopCosts(alone, full * H200.gpu.sms, 0.0, 0.0)


def _runs() -> list[ApplicationTime]:
    """The measured runs, with children of 32 threads a block."""
    return [run for run in shipped_recording().of(ApplicationTime) if run.child_block in (None, 32)]


def predicted() -> list[PredictedApplication]:
    """All that is predicted."""
    return list(dict.fromkeys(PredictedApplication(run.application, run.threshold) for run in _runs()))


def prediction_table(predictions: Mapping[PredictedApplication, float]) -> Table:
    """Predicted times and speed-ups beside the measured ones."""
    rows = []
    flat_us: dict[str, float] = {run.application: run.median_us for run in _runs() if run.threshold is None}
    for run in _runs() if predictions else ():
        name, ours = run.application, predictions[PredictedApplication(run.application, run.threshold)]
        gains = predictions[PredictedApplication(name, None)] / ours, flat_us[name] / run.median_us
        threshold = NONE if run.threshold is None else f"{run.threshold:,}"
        gain = "" if run.threshold is None else "{:.3g} / {:.3g}".format(*gains)
        rows.append((name, threshold, f"{run.launches:,}", f"{ours:,.0f} / {run.median_us:,.0f}", gain))
    note = (
        "Predictions know the launch costs, and of each loop what a warp alone and a full SM take for an iteration "
        "there. Speed-ups are over flat. A lane of Mandelbrot's parents waits for the longest of the warp pixel by "
        "pixel there, in the simulator once for all of its pixels."
    )
    heads = ("application", "threshold", "launches", "us", "speed-up")
    return Table("Predicted and measured on an H200", heads, rows, note)
