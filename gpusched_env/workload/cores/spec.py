"""CPU cores in scenario files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gpusched_env.errors import did_you_mean
from gpusched_env.reading import Label

MOST_EVENTS: Final = 163_840
"""Misses in a period that no core reaches: no regulation (10 GB/s at 64 bytes and 1 ms; BWLOCK-GPU, a4b5769)."""


class Process(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endless process on a core; all are equally nice."""

    name: Label
    misses_per_us: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    """Misses of the last-level cache while it runs; 0: it is bound by the CPU."""
    bytes_a_miss: Annotated[float, Meta(gt=0, le=1e6)] = 64.0
    """Memory traffic of a miss in bytes: a line; twice that where lines are written back as well."""
    counted: bool = True
    """Whether the core's counter sees these misses; off: no budget binds it (the TX2's Denver cores)."""


class Core(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One core of the CPU."""

    number: Annotated[int, Meta(ge=0, le=1023)]
    host: str | None = None
    """The tenant whose host runs here, with real-time priority."""
    processes: tuple[Process, ...] = ()
    phase_us: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    """First tick of its timer: those of several cores are not synchronised."""


class CpuCores(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cores that share the GPU's memory."""

    cores: Annotated[tuple[Core, ...], Meta(min_length=1, max_length=1024)]
    period_us: Annotated[float, Meta(ge=1, le=1e9)] = 1000.0
    """Time between two ticks of a core."""
    kappa: Annotated[float, Meta(ge=1, le=1e6)] = 1.0
    """Bytes of bandwidth that a byte of the cores' traffic costs (:mod:`gpusched_env.hardware.shared_memory`)."""
    saturation: Annotated[float, Meta(ge=1)] = 4.0
    """Exponent of the soft saturation of that cost towards the bandwidth: 4 as of the GPU's own traffic; 1: the memory
    serves cores and GPU in proportion to what they ask for."""
    rho: Annotated[float, Meta(ge=0, le=1e3)] = 0.0
    """Virtual runtime that a throttled process is charged, as a share of the time for which it was: 0 is CFS, 1 and 3
    are TFS-1 and TFS-3."""
    spins: bool = True
    """Whether a host that waits for the GPU spins on its core, as CUDA does by default; off: it sleeps, and its lock
    does not count meanwhile."""


def problem_with_cores(cores: CpuCores, tenants: Sequence[str]) -> str | None:
    """What is wrong with cores beside these tenants; ``None``: nothing."""
    numbers = [core.number for core in cores.cores]
    for number in numbers:
        if numbers.count(number) > 1:
            return f"cores.cores: core {number} is there twice; numbers must differ, got {numbers}"
    hosts = [core.host for core in cores.cores if core.host is not None]
    for host in hosts:
        if host not in tenants:
            return f"cores.cores: host is no tenant: {host!r}; {did_you_mean(host, tenants)}"
        if hosts.count(host) > 1:
            return f"cores.cores: the host of tenant {host} is on two cores; it runs on one"
    return None
