"""What is simulated of GPUColo: inference beside training on one RTX 3090, and its motivating example."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpusched_env.baselines.colocated import Colocated, S
from gpusched_env.baselines.gpucolo import GpuColo
from gpusched_env.baselines.open_loop import OpenLoop
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.episodes.session import Episode
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant
from gpusched_env.scenarios.building import load_workload
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.variants import slowed_workload
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

GPU, US_PER_S = "rtx-3090", 1e6
RESTART_S: Final = 7.0
"""Time that training takes to restart with a new share (Fig. 4)."""
BATCH_MS, BATCH, BURST = 71.5, 105, 10
"""A batch of 105 alone: a little below the shortest that Fig. 6 has, 72.2 ms; and images that come on top (Fig. 8)."""
BURST_S = (90.0, 290.0)
STEP_MS: Final = 135.0
"""An iteration of training alone: beside inference it takes half a second, as published (0.4 to 0.8 s)."""
SHARES, PAUSES_S = (20.0, 50.0, 90.0), (0.0, 0.5, 1.0)
"""Shares and pauses of Fig. 6."""
SETTLED_S: Final = 2.0
"""What is left out in the beginning of a run at fixed knobs."""
RECORDED: Final = {"inference": ("resnet50_infer_b32", 16.219), "training": ("resnet50_train_b32", 57.922)}
"""Recorded on an H100, and how long an iteration takes on an RTX 3090, in milliseconds."""
KNOB_BATCH_MS, KNOB_STEP_MS, KNOB_BLOCK_US, KNOB_DRAM = 4.7, 200.0, 1500.0, 0.3
"""Values of Fig. 4: a batch alone, an iteration alone (published), and the generated training kernels: how long a block
takes, and the share of the bandwidth that they use. The first is set such that the row of MPS ends as published, the
third such that it begins so; no other row is looked at for that."""
FIG4: Final = {
    "MPS 80 -> 20 %": (15.1, 5.62, (0.0, 80.0, 80.0), (0.0, 20.0, 80.0)),
    "sleep 0.2 -> 0.8 s": (6.68, 5.52, (0.2, 100.0, 100.0), (0.8, 100.0, 100.0)),
    "sleep 0.2 -> 0.8 s, MPS 80 %": (7.95, 6.2, (0.2, 80.0, 80.0), (0.8, 80.0, 80.0)),
}
"""Milliseconds a batch before and after (text); then pause of training in seconds, share of training and inference."""


@dataclass(frozen=True, slots=True)
class Colocation:
    """What one run comes to; times in milliseconds, rates a second."""

    latency_ms: float
    """Mean time of a batch."""
    late_ms: float
    """The 95th percentile of a batch's time."""
    batches: float
    steps: float
    """Iterations of training a second."""
    periods: tuple[tuple[float, float, float, float], ...] = ()
    """The controller's periods: end in seconds, mean latency, then pause in seconds and share set anew."""


def networks() -> dict[str, Workload]:
    """ResNet-50 in inference and training, in slow motion until iterations take as long as published."""
    lengths = {"inference": BATCH_MS, "training": STEP_MS}
    found = {}
    for what, (name, recorded_ms) in RECORDED.items():
        found[name] = slowed_workload(load_workload(name), lengths[what] / recorded_ms)
    name, recorded_ms = RECORDED["inference"]
    found["burst"] = slowed_workload(load_workload(name), BATCH_MS / recorded_ms * BURST / BATCH)
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


def colocation_problem(
    workloads: Mapping[str, Workload], training: str, seconds: float, goal_ms: float, restart_s: float, burst: bool
) -> Problem:
    """Inference in a closed loop of batches, as CUDA graphs, beside training."""
    tenants = [
        tenant(RECORDED["inference"][0], name="inference", launch="graph", slo_us=goal_ms * 1e3),
        tenant(training, name="training", launch="graph", priority=1),
    ]
    if burst:
        # No batch grows in the middle of a run: what comes on top is a client of its own, at the pace of the objective.
        arrivals = {"kind": "periodic", "start_us": BURST_S[0] * US_PER_S, "period_us": goal_ms * 1e3}
        jobs = round((BURST_S[1] - BURST_S[0]) * 1e3 / goal_ms)
        tenants.append(tenant("burst", launch="graph", arrivals=arrivals, jobs=jobs))
    commands = ["launch", "partition", "throttle"]
    return situation(tenants, GPU, seconds * US_PER_S, workloads, commands=commands, restart_us=restart_s * US_PER_S)


def measured(episode: Episode, from_s: float, controller: Colocated | None = None) -> Colocation:
    """What a run comes to from a time on, and what its controller did."""
    jobs = episode.timeline.jobs.dict()
    took_ms = (jobs["completed_us"] - jobs["arrived_us"]) / 1e3
    ended_s, lasted_s = jobs["completed_us"] / US_PER_S, episode.end_us / US_PER_S - from_s
    batches, steps = ((jobs["tenant"] == row) & (ended_s >= from_s) for row in (0, 1))
    told = controller.periods if controller else []
    periods = tuple((at / US_PER_S, us / 1e3, pause / US_PER_S, share) for at, us, pause, share in told)
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
            training, batch = "synthetic", slowed_workload(load_workload(name), KNOB_BATCH_MS / recorded_ms)
            workloads = {name: batch, training: generated(KNOB_BLOCK_US, KNOB_DRAM)}
        problem = colocation_problem(workloads, training, self.seconds, BATCH_MS, 0.0, burst=False)
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
class ControllerRun:
    """A controller at work."""

    controller: str
    goal_ms: float
    seconds: float = 200.0
    burst: bool = False
    slope_factor: float = 1.0
    """The factor on the identified slope: 0.25 for that of a share four times smaller."""
    outer: int = 25
    restart_s: float = RESTART_S

    def run(self, device: str) -> Colocation:
        problem = colocation_problem(
            networks(), RECORDED["training"][0], self.seconds, self.goal_ms, self.restart_s, self.burst
        )
        options: dict[str, Any] = {}
        if self.controller == "gpucolo":
            options = {"slope_ms": self.slope_factor * identified(device), "outer": self.outer}
        controller = make_scheduler(self.controller, **options)
        assert isinstance(controller, Colocated)
        return measured(play(controller, problem, 0, device=device), 0.0, controller)


INFERENCE: Final = {"I1": (30.0, 56.0), "I2": (35.0, 61.0)}
"""Seconds alone, and the objective."""
TRAINING: Final = {"T1": 52.0, "T2": 52.0}
JOBS: Final = (*INFERENCE, *TRAINING)
PUBLISHED: Final = {
    "separate": (39.0, 46.0, 65.0, 65.0),
    "simple": (74.0, 84.0, 110.0, 112.0),
    "conservative": (50.0, 56.0, 208.0, 209.0),
    "slo-aware ideal": (56.0, 61.0, 96.0, 96.0),
    "gpucolo": (55.0, 60.0, 106.0, 106.0),
}
"""Seconds until each job ends; Separate has a GPU for inference and one for training, all others one in all."""
KERNELS: Final = 10
"""Kernels of a batch or an iteration."""
HORIZON_S: Final = 400.0
HALVINGS: Final = 6


class Equal(Colocated):
    """A controller whose clients all have one priority."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Reset the controller and give all clients one priority."""
        super().reset(knowledge, rng)
        self._priorities = [0] * len(knowledge.tenants)


class EqualOpenLoop(Equal, OpenLoop):
    """A controller whose knobs stand, with one priority."""


class EqualGpuColo(Equal, GpuColo):
    """GPUColo's controller with one priority."""


@dataclass(frozen=True, slots=True)
class Finish:
    """When each job ends, in seconds."""

    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A system of the example."""

    system: str

    def run(self, device: str) -> Finish:
        if self.system == "separate":
            parts = [_ends(EqualOpenLoop(), tuple(jobs), device) for jobs in (INFERENCE, TRAINING)]
            return Finish((*parts[0], *parts[1]))
        return Finish(_ends(_controller(self.system, device), JOBS, device))


def _controller(system: str, device: str) -> Colocated:
    if system == "conservative":
        alone_s, published_s = TRAINING["T1"], PUBLISHED[system][2]
        return EqualOpenLoop((published_s - alone_s) / _count(alone_s, STEP_MS))
    if system == "slo-aware ideal":
        return EqualOpenLoop(_least_pause_s(device))
    if system == "gpucolo":
        return EqualGpuColo(slope_ms=_slope_ms(device), first_share=100.0)
    return EqualOpenLoop()


def _least_pause_s(device: str) -> float:
    """The shortest standing pause, up to a second, with which all inference ends by its objective."""
    low_s, high_s = 0.0, 1.0
    for _ in range(HALVINGS):
        middle_s = (low_s + high_s) / 2.0
        ends = _ends(EqualOpenLoop(middle_s), JOBS, device)
        in_time = all(end_s <= goal_s for end_s, (_, goal_s) in zip(ends, INFERENCE.values(), strict=False))
        low_s, high_s = (low_s, middle_s) if in_time else (middle_s, high_s)
    return high_s


@functools.cache
def _slope_ms(device: str) -> float:
    """Milliseconds of latency a second of sleep and percent of share: of a profiling run at each end of the pause."""
    means = []
    for pause_s in (0.0, 1.0):
        jobs = play(EqualOpenLoop(pause_s), problem(JOBS), 0, device=device).timeline.jobs.dict()
        mine = jobs["tenant"] < len(INFERENCE)
        means.append(float((jobs["completed_us"] - jobs["arrived_us"])[mine].mean()) / 1e3)
    return (means[1] - means[0]) / 100.0


def _ends(controller: Colocated, names: tuple[str, ...], device: str) -> tuple[float, ...]:
    jobs = play(controller, problem(names), 0, device=device).timeline.jobs.dict()
    return tuple(float(jobs["completed_us"][jobs["tenant"] == row].max() / S) for row in range(len(names)))


def problem(names: tuple[str, ...]) -> Problem:
    """Some of the jobs on one GPU."""
    tenants = []
    for name in names:
        trains = name in TRAINING
        alone_s = TRAINING[name] if trains else INFERENCE[name][0]
        busy_ms = STEP_MS if trains else BATCH_MS
        count = _count(alone_s, busy_ms)
        arrivals = {"kind": "closed-loop", "think_us": 1e3 * busy_ms}
        fields = {"name": name, "launch": "graph", "jobs": count, "arrivals": arrivals, "priority": int(trains)}
        if not trains:
            fields["slo_us"] = INFERENCE[name][1] * S / count - 1e3 * busy_ms
        tenants.append(tenant("iteration" if trains else "batch", **fields))
    workloads = {"batch": filling("batch", BATCH_MS), "iteration": filling("iteration", STEP_MS)}
    return situation(tenants, GPU, HORIZON_S * S, workloads, commands=["launch", "partition", "throttle"])


def _count(alone_s: float, busy_ms: float) -> int:
    """Batches or iterations of a job: the host takes as long as the GPU."""
    return round(alone_s * 1e3 / (2.0 * busy_ms))


def filling(name: str, length_ms: float) -> Workload:
    """Equal kernels, one after the other, each of one wave that fills the GPU."""
    per_sm, sms, length_us = 6, 82, 1e3 * length_ms / KERNELS
    kernel = Kernel(
        name=name, grid=(per_sm * sms, 1, 1), block=(256, 1, 1), registers=40, duration_us=length_us, kind="mixed",
        issue_fraction=0.45, dram_bytes=0.3 * 936e3 * length_us,
    )  # fmt: skip
    ops = (Op(OpKind.KERNEL, 0.0, 0, length_us),) * KERNELS
    return Workload(
        format="gpusched-workload/1", name=name, gpu=GPU, source="generated", kernels=(kernel,),
        variants=(Variant(ops=(*ops, Op(OpKind.SYNC, 0.0, -1, 0.0))),), iteration_us=(1e3 * length_ms,),
    )  # fmt: skip
