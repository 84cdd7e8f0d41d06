"""Jobs of a fleet, as a table."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError

JOB: Final = np.dtype(
    [
        ("arrival_us", np.int64),
        ("training", np.int64),
        ("work_us", np.float64),
        ("utilisation", np.float64),
        ("memory_gb", np.float64),
        ("step_us", np.float64),
        ("slo_us", np.float64),
    ]
)
"""A job of the fleet.

* ``training``: 1, or 0: it is inference.
* ``work_us``: training: how long it takes alone on a GPU of speed 1. Inference: how long it stays and is asked.
* ``utilisation``: in (0, 1], the share of the time in which it has kernels on the GPU while it is alone there.
* ``memory_gb``: that it claims for as long as it is on a GPU.
* ``step_us``: an iteration of training, or a batch of inference, alone. So inference is asked for
  ``utilisation / step_us`` batches a microsecond.
* ``slo_us``: largest mean latency of its batches; 0 for training.
"""


MOST_US: Final = 10**13
"""Of times of fleets: four months."""


def check_jobs(jobs: NDArray[np.void], where: str, memory_gb: float) -> None:
    """Refuse what cannot be simulated.

    Raises:
        InputError: names the first such job, its field, and what would be right.
    """
    if jobs.dtype != JOB:
        raise InputError(f"{where}: jobs have the columns {jobs.dtype.names}, must be {JOB.names}")
    asked, slo_us = jobs["training"] == 0, jobs["slo_us"]
    rules: list[tuple[str, Any, str]] = [
        (
            "arrival_us",
            (jobs["arrival_us"] >= 0) & (jobs["arrival_us"] <= MOST_US),
            f"at least 0 and at most {MOST_US}",
        ),
        ("training", (jobs["training"] == 0) | (jobs["training"] == 1), "0 or 1"),
        ("work_us", (jobs["work_us"] > 0) & (jobs["work_us"] <= MOST_US), f"above 0 and at most {MOST_US}"),
        ("utilisation", (jobs["utilisation"] > 0) & (jobs["utilisation"] <= 1), "above 0 and at most 1"),
        ("memory_gb", (jobs["memory_gb"] > 0) & (jobs["memory_gb"] <= memory_gb), f"above 0 and at most {memory_gb:g}"),
        ("step_us", (jobs["step_us"] > 0) & (jobs["step_us"] <= MOST_US), f"above 0 and at most {MOST_US}"),
        ("slo_us", np.where(asked, slo_us > 0, slo_us == 0), "above 0 for inference and 0 for training"),
    ]
    for field, right, rule in rules:
        if not right.all():
            job = int(np.argmin(right))
            raise InputError(f"{where}: job {job}: {field} is {jobs[field][job]}, must be {rule}")
    if (np.diff(jobs["arrival_us"]) < 0).any():
        job = int(np.argmax(np.diff(jobs["arrival_us"]) < 0)) + 1
        raise InputError(f"{where}: job {job} arrives before job {job - 1}; jobs are in order of arrival")
