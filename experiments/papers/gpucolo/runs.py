"""What is simulated of GPUColo: batches of inference beside training on one RTX 3090, with knobs that stand or move."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpusched_env.baselines.colocated import Colocated
from gpusched_env.baselines.open_loop import OpenLoop
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.episodes.session import Episode
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant
from gpusched_env.scenarios.building import load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.stretch import slowed
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

GPU, S = "rtx-3090", 1e6
RESTART_S: Final = 7.0
"""Of training with a new share (Fig. 4)."""
BATCH_MS, BATCH, BURST = 71.5, 105, 10
"""A batch of 105 alone: a little below the shortest that Fig. 6 has, 72.2 ms; and images that come on top (Fig. 8)."""
BURST_S = (90.0, 290.0)
STEP_MS: Final = 135.0
"""An iteration of training alone: beside inference it takes half a second, as published (0.4 to 0.8 s)."""
SHARES, PAUSES_S = (20.0, 50.0, 90.0), (0.0, 0.5, 1.0)
"""Of Fig. 6."""
SETTLED_S: Final = 2.0
"""What is left out in the beginning of a run at fixed knobs."""
RECORDED: Final = {"inference": ("resnet50_infer_b32", 16.219), "training": ("resnet50_train_b32", 57.922)}
"""Recorded on an H100, and how long an iteration takes on an RTX 3090, in milliseconds."""
KNOB_BATCH_MS, KNOB_STEP_MS, KNOB_BLOCK_US, KNOB_DRAM = 4.7, 200.0, 1500.0, 0.3
"""Of Fig. 4: a batch alone, an iteration alone (published), and the generated training kernels: how long a block takes,
and the share of the bandwidth that they use. The first is set such that the row of MPS ends as published, the third
such that it begins so; no other row is looked at for that."""
FIG4: Final = {
    "MPS 80 -> 20 %": (15.1, 5.62, (0.0, 80.0, 80.0), (0.0, 20.0, 80.0)),
    "sleep 0.2 -> 0.8 s": (6.68, 5.52, (0.2, 100.0, 100.0), (0.8, 100.0, 100.0)),
    "sleep 0.2 -> 0.8 s, MPS 80 %": (7.95, 6.2, (0.2, 80.0, 80.0), (0.8, 80.0, 80.0)),
}
"""Milliseconds a batch before and after (text); then pause of training in seconds, share of training and inference."""


@dataclass(frozen=True, slots=True)
class Colocation:
    """Of one run; times in milliseconds, rates a second."""

    latency_ms: float
    """Mean of a batch."""
    late_ms: float
    """Its 95th percentile."""
    batches: float
    steps: float
    """Iterations of training."""
    periods: tuple[tuple[float, float, float, float], ...] = ()
    """Of each of the controller's: its end in seconds, mean latency, then pause in seconds and share set anew."""


def networks() -> dict[str, Workload]:
    """ResNet-50 in inference and training, in slow motion until iterations take as long as published."""
    lengths = {"inference": BATCH_MS, "training": STEP_MS}
    found = {}
    for what, (name, recorded_ms) in RECORDED.items():
        found[name] = slowed(load_workload(name), lengths[what] / recorded_ms)
    name, recorded_ms = RECORDED["inference"]
    found["burst"] = slowed(load_workload(name), BATCH_MS / recorded_ms * BURST / BATCH)
    return found


def generated(block_us: float, dram: float) -> Workload:
    """A training iteration of equal kernels whose blocks fill all SMs for ten waves, one after the other."""
    waves, per_sm, sms = 10, 6, 82
    length_us = waves * block_us
    kernel = Kernel(
        name="synthetic", grid=(waves * per_sm * sms, 1, 1), block=(256, 1, 1), registers=40, duration_us=length_us,
        kind="mixed", issue_fraction=0.45, dram_bytes=dram * 936e3 * length_us,
    )  # fmt: skip
    launch = Op(OpKind.KERNEL, 0.0, 0, length_us)
    ops = (launch,) * round(KNOB_STEP_MS * 1e3 / length_us)
    return Workload(
        format="gpusched-workload/1", name="synthetic", gpu=GPU, source="generated", kernels=(kernel,),
        variants=(Variant(ops=(*ops, Op(OpKind.SYNC, 0.0, -1, 0.0))),), iteration_us=(KNOB_STEP_MS * 1e3,),
    )  # fmt: skip


def together(
    workloads: Mapping[str, Workload], training: str, seconds: float, goal_ms: float, restart_s: float, burst: bool
) -> Problem:
    """Inference in a closed loop of batches, as CUDA graphs, beside training."""
    tenants = [
        tenant(RECORDED["inference"][0], name="inference", launch="graph", slo_us=goal_ms * 1e3),
        tenant(training, name="training", launch="graph", priority=1),
    ]
    if burst:
        # No batch grows in the middle of a run: what comes on top is a client of its own, at the pace of the objective.
        arrivals = {"kind": "periodic", "start_us": BURST_S[0] * S, "period_us": goal_ms * 1e3}
        jobs = round((BURST_S[1] - BURST_S[0]) * 1e3 / goal_ms)
        tenants.append(tenant("burst", launch="graph", arrivals=arrivals, jobs=jobs))
    commands = ["launch", "partition", "throttle"]
    return situation(tenants, GPU, seconds * S, workloads, commands=commands, restart_us=restart_s * S)


def measured(episode: Episode, from_s: float, controller: Colocated | None = None) -> Colocation:
    """What a run comes to from a time on, and what its controller did."""
    jobs = episode.timeline.jobs.dict()
    took_ms = (jobs["completed_us"] - jobs["arrived_us"]) / 1e3
    ended_s, lasted_s = jobs["completed_us"] / S, episode.end_us / S - from_s
    batches, steps = ((jobs["tenant"] == row) & (ended_s >= from_s) for row in (0, 1))
    told = controller.periods if controller else []
    periods = tuple((at / S, us / 1e3, pause / S, share) for at, us, pause, share in told)
    mean, late = took_ms[batches].mean(), np.percentile(took_ms[batches], 95)
    return Colocation(float(mean), float(late), float(batches.sum() / lasted_s), float(steps.sum() / lasted_s), periods)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Knobs that stand: a point of Fig. 6, or of Fig. 4 with its generated kernels."""

    pause_s: float
    training_share: float
    inference_share: float = 100.0
    synthetic: bool = False
    seconds: float = 22.0

    def run(self, device: str) -> Colocation:
        training, workloads = RECORDED["training"][0], networks()
        if self.synthetic:
            name, recorded_ms = RECORDED["inference"]
            training, batch = "synthetic", slowed(load_workload(name), KNOB_BATCH_MS / recorded_ms)
            workloads = {name: batch, training: generated(KNOB_BLOCK_US, KNOB_DRAM)}
        problem = together(workloads, training, self.seconds, BATCH_MS, 0.0, burst=False)
        knobs = OpenLoop(self.pause_s, self.training_share, self.inference_share)
        return measured(play(knobs, problem, 0, device=device), SETTLED_S)


def slope_ms(points: Mapping[Fixed, Colocation]) -> float:
    """Milliseconds of latency a second of sleep and percent of training's share: least squares over runs at fixed
    knobs, with a level of its own for each share."""
    above = below = 0.0
    for share in {point.training_share for point in points}:
        mine = [(point.pause_s, found.latency_ms) for point, found in points.items() if point.training_share == share]
        pauses, latencies = np.array(mine).T
        centred = share * (pauses - pauses.mean())
        above += float(centred @ (latencies - latencies.mean()))
        below += float(centred @ centred)
    return above / below


@functools.cache
def identified(device: str) -> float:
    """The model's slope from a profiling run at each end of the pause, for each share."""
    points = [Fixed(pause_s, share) for share in SHARES for pause_s in (PAUSES_S[0], PAUSES_S[-1])]
    return slope_ms({point: point.run(device) for point in points})


@dataclass(frozen=True, slots=True)
class Controlled:
    """A controller at work."""

    controller: str
    goal_ms: float
    seconds: float = 200.0
    burst: bool = False
    slope_factor: float = 1.0
    """On the identified slope: 0.25 for that of a share four times smaller."""
    outer: int = 25
    restart_s: float = RESTART_S

    def run(self, device: str) -> Colocation:
        problem = together(networks(), RECORDED["training"][0], self.seconds, self.goal_ms, self.restart_s, self.burst)
        options: dict[str, Any] = {}
        if self.controller == "gpucolo":
            options = {"slope_ms": self.slope_factor * identified(device), "outer": self.outer}
        controller = make_scheduler(self.controller, **options)
        assert isinstance(controller, Colocated)
        return measured(play(controller, problem, 0, device=device), 0.0, controller)
