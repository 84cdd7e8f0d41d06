"""Slices of a GPU that are GPUs of their own (NVIDIA's multi-instance GPU, MIG).

A slice has SMs, a share of the memory with its channels and of the L2, and copy engines to itself. Programs in two
slices share the board's power and its link to the host alone, and neither is modelled: a slice is a specification like
any other, and what runs in two slices is two scenarios.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.hardware.specs import GpuSpec

EIGHTHS: Final = 8


class Slice(NamedTuple):
    """What a profile has of a GPU."""

    sms: int
    memory: int
    """Eighths of the memory, of its bandwidth, and of its channels."""
    l2: int
    """Eighths of the L2."""
    engines: int
    """Copy engines."""


def _profiles(sms: tuple[int, ...], gb: tuple[int, ...]) -> dict[str, Slice]:
    rows = ((1, 1, 1, 1), (1, 2, 1, 1), (2, 2, 2, 2), (3, 4, 4, 3), (4, 4, 4, 4), (7, 8, 8, 7))
    return {
        f"{slices}g.{gb[memory.bit_length() - 1]}gb": Slice(count, memory, l2, engines)
        for (slices, memory, l2, engines), count in zip(rows, sms, strict=True)
    }


AMPERE: Final = (14, 14, 28, 42, 56, 98)
HOPPER: Final = (16, 26, 32, 60, 64, 132)
PROFILES: Final = {
    "a100-pcie-40gb": _profiles(AMPERE, (5, 10, 20, 40)),
    "a100-pcie-80gb": _profiles(AMPERE, (10, 20, 40, 80)),
    "a100-sxm": _profiles(AMPERE, (10, 20, 40, 80)),
    "h100-sxm": _profiles(HOPPER, (10, 20, 40, 80)),
    "h200-sxm": _profiles(HOPPER, (18, 35, 71, 141)),
}
"""By GPU and profile: NVIDIA's MIG user guide, tables of supported profiles (shares and copy engines); SMs as
``nvidia-smi mig -lgip`` lists them on an A100 and an H100, whose chip an H200 has."""

SHARED: Final = ("sms", "sm_order", "dram_bytes_per_us", "l2_bytes", "memory_bytes", "copies", "power")
SOURCE: Final = "share of the whole GPU's by NVIDIA's MIG user guide; power and the order of SMs are guesses"


def slices_of(gpu: GpuSpec) -> dict[str, Slice]:
    """The slices of a GPU by profile.

    Raises:
        InputError: none are known.
    """
    if gpu.name not in PROFILES:
        raise InputError(f"{gpu.name}: no slices (MIG) of it are known; of {', '.join(PROFILES)} they are")
    return PROFILES[gpu.name]


def mig_slice(gpu: GpuSpec, profile: str) -> GpuSpec:
    """A slice of a GPU as a specification, ``h100-sxm-3g.40gb``.

    Power is shared by SMs, and idle power with it: nobody has measured a slice's.

    Raises:
        InputError: the GPU has no slices that are known, or none of that profile.
    """
    profiles = slices_of(gpu)
    if profile not in profiles:
        raise InputError(f"unknown profile {profile!r} of {gpu.name}; {did_you_mean(profile, profiles)}")
    found = profiles[profile]
    memory, of_sms, rates = found.memory / EIGHTHS, found.sms / gpu.sms, gpu.matrix_rates
    if rates is not None and rates.vector_tflops is not None:
        rates = msgspec.structs.replace(rates, vector_tflops=rates.vector_tflops * of_sms)
    power = msgspec.structs.replace(gpu.power, idle_w=gpu.power.idle_w * of_sms, dram_w=gpu.power.dram_w * memory)
    return msgspec.structs.replace(
        gpu,
        name=f"{gpu.name}-{profile}",
        summary=f"MIG slice {profile} of {gpu.name}, {found.sms} SMs",
        sources=gpu.sources | dict.fromkeys(SHARED, SOURCE),
        sms=found.sms,
        sm_order="even-odd",
        dram_bytes_per_us=gpu.dram_bytes_per_us * memory,
        l2_bytes=int(gpu.l2_bytes * found.l2 / EIGHTHS),
        memory_bytes=int(gpu.memory_bytes * memory),
        copies=msgspec.structs.replace(gpu.copies, engines=min(gpu.copies.engines, found.engines)),
        matrix_rates=rates,
        power=power,
    )
