"""GPU specifications: validated data, one YAML file a GPU in ``hardware/gpus/``."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated, Literal

import msgspec
import yaml
from msgspec import Meta

from gpusched_env.errors import InputError, did_you_mean

PositiveInt = Annotated[int, Meta(ge=1)]
NonNegativeInt = Annotated[int, Meta(ge=0)]
PositiveFloat = Annotated[float, Meta(gt=0)]
NonNegativeFloat = Annotated[float, Meta(ge=0)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one SM can hold (CUDA occupancy rules)."""

    threads: PositiveInt
    """Resident threads an SM."""
    warps: PositiveInt
    """Resident warps an SM (32 threads each; a wavefront of 64 counts as two)."""
    blocks: PositiveInt
    """Resident thread blocks an SM."""
    registers: PositiveInt
    """32-bit registers an SM."""
    register_unit: PositiveInt = 256
    """Registers are allocated per warp in multiples of this."""
    threads_per_block: PositiveInt = 1024
    """Largest block, threads."""
    registers_per_thread: PositiveInt = 255
    """Most registers of one thread."""
    shared_bytes: PositiveInt
    """Shared memory an SM, bytes, at the largest carve-out."""
    shared_bytes_per_block: PositiveInt
    """Largest (opt-in) shared memory of one block, bytes."""
    shared_unit: PositiveInt = 128
    """Shared memory is allocated in multiples of this, bytes."""
    shared_reserve: NonNegativeInt = 0
    """Bytes that the system takes from shared memory for every block (1 KB from CC 8.0)."""
    carveouts: tuple[int, ...] = ()
    """Shared-memory sizes, bytes, that an SM can be configured to, ascending; empty: one fixed size.

    The configuration of an SM changes only while the SM is idle.
    """
    sub_partitions: PositiveInt = 4
    """Warp schedulers an SM; warps of a block are dealt round-robin over them."""


class Timing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Latencies of launches, dependencies and context operations, in microseconds."""

    launch_latency_us: NonNegativeFloat
    """From the return of the host's launch call to the start on an idle stream."""
    stream_gap_us: NonNegativeFloat
    """From a kernel's last block to the first block of the next kernel already queued in its stream."""
    graph_gap_us: NonNegativeFloat
    """The same between two nodes of a CUDA graph."""
    graph_launch_us: NonNegativeFloat
    """Host time of a graph launch call."""
    event_latency_us: NonNegativeFloat
    """From a kernel's end to the start of a kernel of another stream that waits for it by an event."""
    sync_latency_us: NonNegativeFloat
    """From the end of the last kernel to the return of a host synchronisation."""
    slice_us: PositiveFloat
    """Time slice between contexts that do not share (processes without MPS)."""
    switch_us: NonNegativeFloat
    """Dead time of one switch between such contexts."""
    partition_change_us: NonNegativeFloat
    """Host time of a partition command after the first launch."""
    drain_ack_us: NonNegativeFloat = 1.0
    """From a drain request until the dispatcher stops handing out blocks of the kernel."""
    reset_us: NonNegativeFloat = 10.0
    """Dead time of killing a kernel's resident blocks."""
    child_launch_us: NonNegativeFloat = 6.0
    """From a kernel's launch of a child on the device until the child is issued (H100, launch.jsonl: 6 us from the call
    to the start of a single child)."""


class Copies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Copy engines between host and device."""

    engines: Annotated[int, Meta(ge=1, le=2)] = 2
    """1: both directions share an engine; 2: one engine a direction."""
    bytes_per_us: PositiveFloat
    """Bandwidth of one engine (bytes per microsecond = MB/s)."""
    latency_us: NonNegativeFloat = 1.0
    """Fixed cost of one copy on the engine."""


class Power(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A linear board-power model: idle + a share per busy SM + a share for DRAM traffic."""

    idle_w: PositiveFloat
    """Board power with no resident block."""
    sm_w: PositiveFloat
    """Added by each SM that holds at least one block."""
    dram_w: NonNegativeFloat
    """Added at full DRAM bandwidth, in proportion to the traffic below it."""


class Contention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Constants and switches of the sharing laws in :mod:`gpusched_env.hardware.contention`."""

    dram_efficiency: Annotated[float, Meta(gt=0, le=1)] = 0.94
    """Share of the nominal DRAM bandwidth that saturating kernels reach together."""
    dram_norm: Annotated[float, Meta(ge=1)] = 4.0
    """Exponent of the soft saturation of DRAM bandwidth."""
    issue: bool = True
    """Whether blocks on an SM share its issue slots (off: each as if alone)."""
    oldest_first: bool = True
    """Whether older blocks issue first where slots are short."""
    light_wait: bool = True
    """Whether light warps wait longer among heavier ones."""
    dram: bool = True
    """Whether DRAM bandwidth is limited."""


class Instructions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the instructions of the synthetic measurement kernels cost, in microseconds.

    A thread of such a kernel runs fused multiply-adds (FMA) and 16-byte streaming loads whose address
    takes a 64-bit modulo. Fitted by ``gpusched calibrate``.
    """

    fma_issue_us: PositiveFloat
    """Issue time of one FMA of a warp on its sub-partition."""
    fma_latency_us: PositiveFloat
    """Time of one FMA of a warp alone on its sub-partition."""
    load_issue_us: PositiveFloat
    """Issue time of one load of a warp, its address included."""
    load_latency_us: PositiveFloat
    """Time of one load of a warp alone, address and DRAM latency."""
    load_wait_us: PositiveFloat
    """Part of it that heavier co-residents can stretch (the address computation)."""
    block_us: NonNegativeFloat
    """Fixed part of a block's life."""


class GpuSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One GPU: everything the simulated devices know of the hardware.

    Constants carry their unit in the name; ``sources`` says where each group comes from
    (data sheet, paper and section, or recording).
    """

    name: str
    summary: str
    sources: dict[str, str]
    """Where the constants come from, by field or group."""
    sms: PositiveInt
    """Streaming multiprocessors (compute units)."""
    clock_mhz: PositiveFloat
    """Sustained SM clock."""
    sm_order: Literal["linear", "even-odd"] | tuple[int, ...] = "even-odd"
    """Tie order of most-room placement: ``linear`` (0, 1, 2, ...), ``even-odd`` (0, 2, ..., 1, 3, ...), or
    all SM ids in their order."""
    limits: Limits
    dram_bytes_per_us: PositiveFloat
    """Nominal DRAM bandwidth (bytes per microsecond = MB/s)."""
    l2_bytes: PositiveInt
    memory_bytes: PositiveInt
    channels: PositiveInt = 8
    """Hardware queues of a context; more streams than this alias (Bakita & Anderson, RTAS 2024, R2)."""
    resident_grids: PositiveInt = 128
    """Kernels with dispatched, unfinished blocks at one time."""
    priorities: PositiveInt = 3
    """Stream priority levels: 0 (default) down to ``-(priorities - 1)`` (most urgent)."""
    timing: Timing
    copies: Copies
    power: Power
    contention: Contention = Contention()
    instructions: Instructions | None = None
    """Costs of the synthetic measurement kernels' instructions, where they were measured."""

    def __post_init__(self) -> None:
        if not isinstance(self.sm_order, str) and sorted(self.sm_order) != list(range(self.sms)):
            raise ValueError(f"sm_order must name each of the SMs 0..{self.sms - 1} once")


def gpu_names() -> list[str]:
    """Names of the shipped specifications, sorted."""
    folder = resources.files("gpusched_env.hardware") / "gpus"
    return sorted(p.name.removesuffix(".yaml") for p in folder.iterdir() if p.name.endswith(".yaml"))


@functools.lru_cache(maxsize=64)
def load_gpu(name: str) -> GpuSpec:
    """The shipped specification called ``name`` (see :func:`gpu_names`).

    Raises:
        InputError: no such GPU, or its file does not validate.
    """
    if name not in gpu_names():
        raise InputError(f"unknown GPU {name!r}; {did_you_mean(name, gpu_names())}")
    text = (resources.files("gpusched_env.hardware") / "gpus" / f"{name}.yaml").read_text()
    try:
        return msgspec.convert(yaml.safe_load(text), GpuSpec)
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise InputError(f"hardware/gpus/{name}.yaml: {error}") from error
