"""Kernels of 32-bit factors that use no tensor cores, to be carried over to another GPU as such.

:mod:`gpusched_env.workload.carry_over` takes all products of 32-bit factors for tensor cores' where there are any: on
an MI50, which has none, they then take 16 times as long as on an H100. By their names many are no TF32 kernels. For
those the ratio is that of single precision on the CUDA cores, 2.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from gpusched_env.workload.carry_over import SINGLE, stretched
from gpusched_env.workload.workload import Workload

TENSOR: Final = re.compile(r"tf32|tensorop|s1688|s16816|hmma|imma|wgmma|nvjet", re.IGNORECASE)
"""Names of kernels that use tensor cores (cuBLAS, cuDNN, CUTLASS)."""
VECTOR_RATES: Final = {"h100-sxm": 256.0}
"""Floating-point operations of an SM in a clock, single precision, no tensor cores, by the GPU of a recording (67
TFLOP/s: NVIDIA H100 data sheet)."""


def by_vector_units(workload: Workload) -> Workload:
    """``workload``, such that it is carried over to a GPU without tensor cores by the ratio of single precision.

    What is too much in the ratio of matrix rates is taken out of the recorded times. Only for that purpose: on the GPU
    of its recording it would be too short. Kernels that are too small to be bound by arithmetic, which are carried over
    with their times, are left alone.

    Raises:
        KeyError: the rate of the GPU of the recording is not known.
    """
    spec = workload.spec
    assert spec.matrix_rates is not None, "a GPU with tensor cores"
    over = VECTOR_RATES[workload.gpu] / spec.matrix_rates.single
    factors = [
        over if kernel.kind == "compute" and kernel.blocks >= spec.sms and uses_vector_units(kernel.name) else 1.0
        for kernel in workload.kernels
    ]
    kernels = [
        msgspec.structs.replace(kernel, duration_us=kernel.duration_us * factor)
        for kernel, factor in zip(workload.kernels, factors, strict=True)
    ]
    return msgspec.structs.replace(workload, kernels=tuple(kernels), **stretched(workload, factors))


def uses_vector_units(name: str) -> bool:
    """Whether a kernel's name says that it multiplies 32-bit factors without tensor cores."""
    return bool(SINGLE.search(name)) and not TENSOR.search(name)
