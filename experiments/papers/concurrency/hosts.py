"""How fast the paper's hosts were, and how threads of one process slow each other: what is known, and its sources.

The paper does not give the time of a request alone. Its training seconds bound it: under time slicing the training
beside 5,000 ResNet-50 requests took 90 s longer, which is at most the time of those requests.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from gpusched_env.experiments.lib.larger_batch import at_batch
from gpusched_env.experiments.lib.recorded import situation, tenant
from gpusched_env.scenarios.building import load_workload
from gpusched_env.workload.workload import Workload

REQUESTS, ADDED_S, SLICED = 5000, 90.0, 1.18
"""Requests one after the other; by how much longer ResNet-50's training took under time slicing, and their turnaround
over that alone (notes on the paper's text and slides)."""
BOUND_US = ADDED_S * 1e6 / (REQUESTS * SLICED)
"""A request alone took at least 15.3 ms: if the training stood still all the while. It is the host speed of the
judged setting, and not fitted."""
LEAST_ADDED_S = 50.0
"""Least that any of the notes says of time slicing, for some network: at least 8.5 ms."""
RECORDED = 0.0
"""In place of a time of a request alone: hosts as they were recorded."""
SWEPT_US = (RECORDED, LEAST_ADDED_S * 1e6 / (REQUESTS * SLICED), BOUND_US, 2.0 * BOUND_US, 4.0 * BOUND_US)
"""Times of a ResNet-50 request alone."""

AT_WORK, WAITING = 0.64, 0.32
"""Share by which the other thread's host lengthens host times, ResNet-50 beside ResNet-50 as threads of one process of
PyTorch on an H100 (``sharing_modes.jsonl``). At work: recorded, 1.64 times the turnaround beside a training that hardly
uses the GPU (*hosts only*). While it waits for the GPU: what gives the recorded 1.42 times at batch 256, where the
training's host mostly waits (simulated 1.15 without)."""
AT_WORK_MOST, WAITING_MOST = 0.95, 0.48
"""The largest recorded, DenseNet-201's 1.95; waiting taken to be half of it, as for ResNet-50."""


def with_host_times(workload: Workload, factor: float) -> Workload:
    """A workload whose host times are ``factor`` times as long; of one host thread."""
    variants = tuple(
        msgspec.structs.replace(
            variant, ops=tuple(msgspec.structs.replace(op, host_us=op.host_us * factor) for op in variant.ops)
        )
        for variant in workload.variants
    )
    return msgspec.structs.replace(workload, variants=variants)


@functools.cache
def host_factor(inference: str, gpu: str, alone_us: float) -> float:
    """The factor on host times with which a request of a recorded ``inference`` alone takes ``alone_us`` on ``gpu``."""
    if alone_us == RECORDED:
        return 1.0
    recorded, slower = (
        situation([tenant(inference, iteration_us=us)], gpu).programs[0].variants for us in (None, alone_us)
    )
    host_us, recorded_us = (sum(op.host_us for job in jobs for op in job) for jobs in (slower, recorded))
    return host_us / recorded_us


def workloads(inference: str, training: str, gpu: str, batch: int, alone_us: float) -> Mapping[str, Any]:
    """Both, the training at ``batch`` times the batch, with hosts of the speed that ``alone_us`` says."""
    factor = host_factor(inference, gpu, alone_us)
    found = {inference: load_workload(inference), training: at_batch(load_workload(training), batch)}
    return {name: with_host_times(workload, factor) for name, workload in found.items()}
