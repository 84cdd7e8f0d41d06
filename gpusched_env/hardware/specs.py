"""GPU specifications: validated data, one YAML file a GPU, and which of them a GPU has by what its driver says of
it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from gpusched_env.display.words import printable
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.reading import LONGEST_US, Duration, Time, checked, parse_yaml, read_text

PositiveInt = Annotated[int, Meta(ge=1, le=2**53)]
NonNegativeInt = Annotated[int, Meta(ge=0, le=2**53)]
Count = Annotated[int, Meta(ge=1, le=4096)]
"""A number of things that devices keep a table of."""
PositiveFloat = Annotated[float, Meta(gt=0, le=1e18)]
LEAST_SLICE_US = 1.0
"""The shortest time slice, in microseconds: shorter ones than any GPU has would take for ever to simulate."""
NonNegativeFloat = Annotated[float, Meta(ge=0, le=1e18)]


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
    sub_partitions: Count = 4
    """Warp schedulers an SM; warps of a block are dealt round-robin over them."""


class Timing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Latencies of launches, dependencies and context operations, in microseconds."""

    launch_latency_us: Time
    """Time from the return of the host's launch call to the start on an idle stream."""
    stream_gap_us: Time
    """Time from a kernel's last block to the first block of the next kernel already queued in its stream."""
    graph_gap_us: Time
    """Time from the last block of a node of a CUDA graph to the first block of the next node."""
    graph_gap_beside_us: Time = 0.0
    """Time added to ``graph_gap_us`` where kernels that are not the graph's are resident as the node before ends."""
    graph_launch_us: Time
    """Host time of a graph launch call."""
    event_latency_us: Time
    """Time from a kernel's end to the start of a kernel of another stream that waits for it by an event."""
    sync_latency_us: Time
    """Time from the end of the last kernel to the return of a host synchronisation."""
    slice_us: Annotated[float, Meta(ge=LEAST_SLICE_US, le=LONGEST_US)]
    """Time slice between contexts that do not share (processes without MPS)."""
    switch_us: Time
    """Dead time of one switch between such contexts."""
    partition_change_us: Time
    """Host time of a partition command after the first launch."""
    drain_ack_us: Time = 1.0
    """Time from a drain request until the dispatcher stops handing out blocks of the kernel."""
    reset_us: Time = 10.0
    """Dead time of killing a kernel's resident blocks."""
    queue_period_us: Time = 0.0
    """How long the hardware holds some of the queues of a context before it goes on to others, where more than
    ``channels`` are used (:mod:`gpusched_env.hardware.queues`); 0: streams beyond the channels alias."""
    child_launch_us: Time = 6.0
    """Time from a kernel's launch of a child on the device until the child is issued (H100, launch.jsonl: 6 us from the
    call to the start of a single child)."""


class TileCosts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What synchronising the tiles of dependent kernels costs (:mod:`gpusched_env.hardware.tiles`), in microseconds."""

    post_us: Time = 0.0
    """Time of a block that posts a semaphore: a barrier, a memory fence, an atomic operation."""
    wait_us: Time = 0.0
    """Time of a block for each wait, however long it waits: a barrier, reads of the semaphore."""
    order_us: Time = 0.0
    """Time of a block that takes its tile from a counter, and looks up which that is."""
    wait_kernel_us: Time = 0.0
    """Time from the start of a producer's first block to the end of the kernel that waits for it."""


class Copies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Copy engines between host and device."""

    engines: Annotated[int, Meta(ge=1, le=2)] = 2
    """Number of copy engines: 1, which both directions share, or 2, one a direction."""
    bytes_per_us: PositiveFloat
    """Bandwidth of one engine (bytes per microsecond = MB/s)."""
    latency_us: Time = 1.0
    """Fixed cost of one copy on the engine."""


class Power(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A linear board-power model: idle + a share per busy SM + a share for DRAM traffic."""

    idle_w: PositiveFloat
    """Board power with no resident block."""
    sm_w: PositiveFloat
    """Power that each SM adds that holds at least one block."""
    dram_w: NonNegativeFloat
    """Power that full DRAM bandwidth adds; less traffic adds in proportion."""


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
    takes a 64-bit modulo. Fitted by ``gpusched lab calibrate``.
    """

    fma_issue_us: Duration
    """Issue time of one FMA of a warp on its sub-partition."""
    fma_latency_us: Duration
    """Time of one FMA of a warp alone on its sub-partition."""
    load_issue_us: Duration
    """Issue time of one load of a warp, its address included."""
    load_latency_us: Duration
    """Time of one load of a warp alone, address and DRAM latency."""
    load_wait_us: Duration
    """Part of ``load_latency_us`` that heavier co-residents can stretch (the address computation)."""
    block_us: Time
    """Fixed part of a block's life."""


class MatrixRates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dense matrix arithmetic of one SM: floating-point operations in a clock (an FMA is two), summed in 32 bits.

    By tensor cores where there are any. They carry matrix kernels over from one GPU to another
    (:mod:`gpusched_env.workload.carry_over`).
    """

    half: PositiveFloat
    """Rate with 16-bit factors (bfloat16 or half precision)."""
    single: PositiveFloat
    """Rate with 32-bit factors: TF32 where the tensor cores have it, else single precision."""
    vector: PositiveFloat | None = None
    """Rate with 32-bit factors by the vector units alone, as libraries multiply where TF32 is not allowed; ``None``:
    unknown."""
    vector_tflops: PositiveFloat | None = None
    """What long such products reach on the whole board, as measured, TFLOP/s: a board with a low power limit lowers its
    clock for them, to half and less. ``None``: not measured."""


class GpuSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One GPU: everything the simulated devices know of the hardware.

    Constants carry their unit in the name; ``sources`` says where each group comes from
    (data sheet, paper and section, or recording).
    """

    name: str
    summary: str
    sources: dict[str, str]
    """Where the constants come from, by field or group."""
    sms: Count
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
    channels: Count = 8
    """Hardware queues of a context; more streams than this alias (Bakita & Anderson, RTAS 2024, R2), or take turns
    (``queue_period_us``)."""
    resident_grids: Count = 128
    """Kernels with dispatched, unfinished blocks at one time."""
    priorities: Count = 3
    """Stream priority levels: 0 (default) down to ``-(priorities - 1)`` (most urgent)."""
    timing: Timing
    tiles: TileCosts = TileCosts()
    """Costs of synchronising tiles; zero by default, where nobody has measured them."""
    copies: Copies
    power: Power
    matrix_rates: MatrixRates | None = None
    """Rates of matrix arithmetic; ``None``: unknown, matrix kernels from elsewhere take as many clocks as there."""
    contention: Contention = Contention()
    instructions: Instructions | None = None
    """Costs of the synthetic measurement kernels' instructions, where they were measured."""

    def __post_init__(self) -> None:
        if not isinstance(self.sm_order, str) and sorted(self.sm_order) != list(range(self.sms)):
            raise ValueError(
                f"sm_order has {len(self.sm_order)} numbers, and must name each of the SMs 0..{self.sms - 1} once; "
                "where sms is changed, give sm_order as well, such as 'linear' (0, 1, 2, ...)"
            )

    def __hash__(self) -> int:
        # Specifications are keys of caches; their sources are a mapping, which has no hash of its own.
        return hash((self.name, self.sms, self.clock_mhz))


def gpu_names() -> list[str]:
    """Names of the shipped specifications, sorted."""
    folder = resources.files("gpusched_env.hardware") / "gpus"
    return sorted(p.name.removesuffix(".yaml") for p in folder.iterdir() if p.name.endswith(".yaml"))


def load_gpu(name: str | Path) -> GpuSpec:
    """A shipped specification (see :func:`gpu_names`), or one from a file.

    Args:
        name: a name (``v100-sxm``, or its first part: ``v100``, which of several boards is the one with ``sxm``), or a
            path (it ends in ``.yaml`` or ``.yml``, or has a folder). Shipped specifications are read once, files anew
            each time.

    Raises:
        InputError: no such GPU, or its file does not validate; names the file and the field.
    """
    text = str(name)
    return _read(text) if is_gpu_path(text) else _shipped(text)


def is_gpu_path(name: str) -> bool:
    """Whether a GPU is named by the path of its file."""
    return name.endswith((".yaml", ".yml")) or os.sep in name


@functools.lru_cache(maxsize=64)
def _shipped(name: str) -> GpuSpec:
    if name not in gpu_names():
        boards = [known for known in gpu_names() if known.partition("-")[0] == name]
        if len(boards) == 1 or f"{name}-sxm" in boards:
            return _shipped(boards[0] if len(boards) == 1 else f"{name}-sxm")
        hint = did_you_mean(name, gpu_names())
        raise InputError(f"unknown GPU {name!r}; {hint} (gpusched gpus lists them; a file of your own ends in .yaml)")
    where = f"hardware/gpus/{name}.yaml"
    text = (resources.files("gpusched_env.hardware") / "gpus" / f"{name}.yaml").read_text(encoding="utf-8")
    return checked(parse_yaml(text, where), GpuSpec, where)


def _read(path: str) -> GpuSpec:
    spec = checked(parse_yaml(read_text(Path(path)), path), GpuSpec, path)
    if spec.name in gpu_names() and spec != _shipped(spec.name):
        raise InputError(f"{path}: name is {spec.name!r}, which is a shipped GPU's; give it one of its own")
    return spec


_MEMORY_SHARE: Final = 0.1
"""Share by which sizes of memory may differ: data sheets give GB for GiB (7 % more), and the driver keeps a part."""


class GpuProduct(NamedTuple):
    """What a driver says of a GPU."""

    name: str = ""
    """Name of the product; empty: unknown."""
    sms: int | None = None
    """Streaming multiprocessors (compute units); ``None``: unknown."""
    memory_bytes: int | None = None
    """Device memory; ``None``: unknown."""

    @classmethod
    def of(cls, name: object, sms: object, memory_bytes: object) -> GpuProduct:
        """A product by values of a file; what is no name or no size is unknown."""
        sizes = (size if isinstance(size, int) and 0 < size < 2**53 else None for size in (sms, memory_bytes))
        return cls(printable(name) if isinstance(name, str) else "", *sizes)

    def __str__(self) -> str:
        sizes = [f"{self.sms} SMs"] if self.sms is not None else []
        sizes += [f"{self.memory_bytes / 1e9:.3g} GB"] if self.memory_bytes is not None else []
        return (repr(self.name) if self.name else "unnamed") + (f" with {' and '.join(sizes)}" if sizes else "")

    def has_size_of(self, spec: GpuSpec) -> bool:
        """Whether SMs and memory, as far as they are known, are those of a specification."""
        least, most = (spec.memory_bytes * (1.0 + share) for share in (-_MEMORY_SHARE, _MEMORY_SHARE))
        return self.sms in (None, spec.sms) and (self.memory_bytes is None or least <= self.memory_bytes <= most)


def alike(products: Sequence[GpuProduct]) -> GpuProduct:
    """Any of some GPUs, if all are called alike; else an unknown one."""
    return products[0] if len({product.name for product in products}) == 1 else GpuProduct()


def match_gpu(device: GpuProduct | str, origin: str) -> GpuSpec:
    """The shipped specification of a GPU, or of what its driver calls so.

    Its summary has every word of the driver's name (``3070 Ti`` is no 3070, and ``PCIe`` no SXM), which has every part
    of the specification's name except ``sxm``, which drivers leave out. SMs and memory are the same.

    Raises:
        InputError: not exactly one fits; ``origin`` says whose GPU it is: a file's, or this machine's.
    """
    product = GpuProduct(device) if isinstance(device, str) else device
    specs = [load_gpu(name) for name in gpu_names()]
    named = [spec for spec in specs if _is_called(spec, _words(product.name))]
    fitting = [spec for spec in named if product.has_size_of(spec)]
    if len(fitting) != 1:
        seen = f"its GPU is {product}" if product.name else "it does not name its GPU"
        other = "".join(f" ({_sizes(spec)})" for spec in named)
        raise InputError(
            f"{origin}: {seen}{other}; say which specification fits (gpu=, --gpu): {', '.join(gpu_names())}, or a "
            ".yaml file"
        )
    return fitting[0]


def taken_for(product: GpuProduct, spec: GpuSpec) -> str:
    """A note for a recording whose GPU is said to be ``spec`` and has another size; empty if it has that size."""
    return "" if product.has_size_of(spec) else f"recorded on {product}; {_sizes(spec)}"


def _is_called(spec: GpuSpec, words: set[str]) -> bool:
    parts = set(spec.name.split("-")) - {"sxm"}
    return parts <= words <= _words(spec.summary)


def _words(text: str) -> set[str]:
    joined = re.sub(r"\b(\d+) gb\b", r"\1gb", text.lower())
    return set(re.findall(r"[a-z0-9]+", joined))


def _sizes(spec: GpuSpec) -> str:
    return f"{spec.name} has {spec.sms} SMs and {spec.memory_bytes / 1e9:.3g} GB"
