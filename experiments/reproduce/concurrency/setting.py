"""The paper's experiments with the shipped recordings: which networks, GPUs, arrivals and mechanisms.

Gilman and Walls ran batch-1 inference beside training at the largest batch that fits, on an RTX 3090, for
5000 requests one after the other or 500 at random times. Their networks were recorded on an H100 here, two
of them in training. Training is carried to a full batch (4 times the recorded one in 24 GB, 12 times in 80 GB),
and both to the GPU at hand: tiles that do not fit are split, and matrix kernels that fill the GPU take longer by
the ratio of the tensor cores' rates. VGG-16 and ResNet-101 stand in for VGG-19 and ResNet-152.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.experiments.reproduce.concurrency.full_batch import at_batch
from gpusched_env.scenarios.problem import Problem, build_problem, load_workload
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scheduling.scheduler import Scheduler

Arrival = Literal["sequential", "poisson"]

GPUS = {"rtx-3090": 4, "h100-sxm": 12}
"""By how much a recorded training batch grows until memory is full (24 and 80 GB): ResNet-50 from 32 to 128 samples
on an RTX 3090, where it spends 59 % of its time in kernels of more than 1 ms (published: 57 %)."""
PAIRS: dict[str, tuple[str, str]] = {
    "ResNet-50": ("resnet50_fp32_infer_b1", "resnet50_train_b32"),
    "ResNet-101": ("resnet101_fp32_infer_b1", "resnet50_train_b32"),
    "VGG-16": ("vgg16_fp32_infer_b1", "resnet50_train_b32"),
    "AlexNet": ("alexnet_fp32_infer_b1", "resnet50_train_b32"),
    "BERT": ("bert_infer_b1_s128", "bert_train_b16_s128"),
}
"""Inference and training by the name of the inference network."""
PRIMARY = "ResNet-50"
"""The one pair that is both the paper's and recorded: its sign decides."""
ARRIVALS: tuple[Arrival, ...] = ("sequential", "poisson")
SERVER_LOAD = 0.5
"""Of random arrivals: requests a second times the time of a request alone."""
KEEP_OPEN_US = 40.0
"""Gaps shorter than the paper's estimate of a save are kept open."""

ALONE = ("inference alone", "training alone")
MECHANISMS: dict[str, tuple[str, dict[str, Any]]] = {
    "priority streams": ("priority-streams", {}),
    "time slicing": ("time-slicing", {}),
    "MPS": ("mps", {"share": 100.0}),
    "MPS, half of the SMs": ("mps", {"share": 50.0}),
    "exclusive": ("exclusive", {}),
    "preemptive": ("preemptive-priority", {}),
    "preemptive, room kept open": ("preemptive-priority", {"keep_open_us": KEEP_OPEN_US}),
    "preemptive, at block ends": ("preemptive-priority", {"mode": "drain"}),
}
"""Schedulers and their options by the paper's name of a mechanism."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One run."""

    gpu: str
    pair: str
    arrivals: Arrival
    mechanism: str
    """Of :data:`MECHANISMS` or :data:`ALONE`."""


def all_cells(gpus: tuple[str, ...] = tuple(GPUS), pairs: tuple[str, ...] = tuple(PAIRS)) -> list[Cell]:
    """Every run; training alone does not depend on the arrivals, and is among the sequential ones."""
    mechanisms = (*MECHANISMS, *ALONE)
    cells = itertools.starmap(Cell, itertools.product(gpus, pairs, ARRIVALS, mechanisms))
    return [cell for cell in cells if cell.mechanism != ALONE[1] or cell.arrivals == "sequential"]


def problem_of(cell: Cell, horizon_us: float) -> Problem:
    """The problem of a run; tenants are ``inference`` and ``training``, or one of them."""
    inference, training = PAIRS[cell.pair]
    full_batch = {training: at_batch(load_workload(training), GPUS[cell.gpu])}
    closed = {"kind": "closed-loop"}
    tenants = [
        {"name": "inference", "workload": inference, "arrivals": closed, "priority": 0},
        {"name": "training", "workload": training, "arrivals": closed, "priority": 1},
    ]
    if cell.mechanism in ALONE:
        tenants = [tenants[ALONE.index(cell.mechanism)]]

    def build() -> Problem:
        scenario = {"name": "concurrency", "summary": f"{cell.pair} on {cell.gpu}", "gpu": cell.gpu}
        named = make_scenario({**scenario, "tenants": tenants, "horizon_us": horizon_us})
        return build_problem(named, workloads=full_batch)

    problem = build()
    if cell.arrivals == "poisson" and cell.mechanism != ALONE[1]:
        rate = SERVER_LOAD * 1e6 / problem.programs[0].alone_us
        tenants[0] = {**tenants[0], "arrivals": {"kind": "poisson", "rate_per_s": rate}}
        problem = build()
    return problem


def scheduler_of(cell: Cell) -> Scheduler:
    """The scheduler that is the run's mechanism."""
    name, options = MECHANISMS.get(cell.mechanism, ("pass-through", {}))
    return make_scheduler(name, **options)
