"""The shipped recordings against the simulator: tenants alone, CUDA graphs side by side, time slicing.

* *Alone*: every shipped workload by itself takes its recorded (unprofiled) iteration time. The importer
  scales host times to it with a closed form; here hosts, streams and SMs have to arrive at the same.
* *Beside training*: ResNet-50 inference and training as CUDA graphs on two streams, of equal priority
  and with a more urgent foreground; slowdowns as recorded in ``data/measurements/h100/model_pairs.jsonl``.
* *Time slicing*: two eager processes without MPS; mean iteration times as recorded in
  ``data/measurements/h100/eager_time_slicing.jsonl`` (host times scaled to the processes' speed alone).
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from importlib import resources
from typing import Any

import numpy as np

from gpusched_env.data import recorded_names
from gpusched_env.experiments.reproduce.check import Check
from gpusched_env.experiments.validate.networks import (
    RECORDED_ON,
    SCHEDULERS,
    graph_turnarounds_us,
    tenant,
    turnarounds_us,
)
from gpusched_env.scenarios.problem import load_workload

ALONE_TOLERANCE = 0.03
SHARED_TOLERANCE = 0.15
FOREGROUND, BACKGROUND = "resnet50_infer_b1", "resnet50_train_b32"


def measurements(name: str) -> list[dict[str, Any]]:
    """Rows of a shipped H100 measurement file (JSON lines)."""
    text = (resources.files("gpusched_env.data") / "measurements" / "h100" / name).read_text()
    return [json.loads(line) for line in text.splitlines()]


def alone(jobs: int = 4) -> Iterator[Check]:
    """Every workload recorded on an H100 by itself, eager.

    Without the recorded variation of host times: some networks' iterations spread by a factor of three,
    and the median of a few draws would say more about the draw than about the simulator.
    """
    for name in recorded_names():
        workload = load_workload(name)
        if workload.gpu != RECORDED_ON:
            continue
        iterations = workload.iteration_us
        recorded = statistics.median(iterations)
        horizon_us = 10.0 * max(iterations) * jobs
        (took,) = turnarounds_us([tenant(name, jobs=jobs)], "pass-through", horizon_us, variation=False)
        yield Check("alone", name, "us", float(np.median(took)), recorded, ALONE_TOLERANCE)


def beside_training(horizon_us: float = 250_000.0) -> Iterator[Check]:
    """ResNet-50 inference and training as CUDA graphs on two streams."""
    pairs = {
        row["mode"]: row
        for row in measurements("model_pairs.jsonl")
        if row["what"] == "pair" and (row["fg"], row["bg"]) == (FOREGROUND, BACKGROUND)
    }
    networks = [FOREGROUND, BACKGROUND]
    solo = [graph_turnarounds_us([name], RECORDED_ON, "pass-through", horizon_us)[0] for name in networks]
    for mode, row in pairs.items():
        together = graph_turnarounds_us(networks, RECORDED_ON, SCHEDULERS[mode], horizon_us)
        for i, (side, key) in enumerate((("inference", "fg"), ("training", "bg"))):
            yield Check(
                f"ResNet-50 inference beside training, {mode}",
                f"slowdown of {side}",
                "x",
                together[i] / solo[i],
                row[f"{key}_p50_us"] / row[f"{key}_solo_us"],
                SHARED_TOLERANCE,
            )


def time_sliced(horizon_us: float = 500_000.0) -> Iterator[Check]:
    """Pairs of eager processes that take turns."""
    rows = measurements("eager_time_slicing.jsonl")
    alone_us = {row["tasks"][0]["model"]: row["tasks"][0]["mean_us"] for row in rows if row["what"] == "alone"}
    for row in rows:
        if row["what"] != "time_sliced":
            continue
        names = [task["model"] for task in row["tasks"]]
        tenants = [tenant(name, iteration_us=alone_us[name]) for name in names]
        together = turnarounds_us(tenants, "time-slicing", horizon_us)
        for task, took in zip(row["tasks"], together, strict=True):
            yield Check(
                f"time slicing, {' and '.join(names)}",
                f"mean iteration of {task['model']}",
                "us",
                float(np.mean(took)),
                task["mean_us"],
                SHARED_TOLERANCE,
            )


def all_checks() -> Iterator[Check]:
    """Everything above, in order."""
    yield from alone()
    yield from beside_training()
    yield from time_sliced()
