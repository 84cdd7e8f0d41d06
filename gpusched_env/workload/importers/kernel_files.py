"""Kernel files as Orion reads them: a network's operators with what bounds each, the SMs that it needs, and its time.

F. Strati, X. Ma, A. Klimovic, *Orion* (EuroSys 2024), ``PROFILE.md`` of its artefact. Comma-separated: ``Name``,
``Profile`` (1: compute, 0: memory, -1: neither), ``Memory_footprint``, ``SM_usage`` (SMs that its blocks fill, more
than there are where it has several waves), ``Duration`` (ns). Grids are not in it: an SM is taken to hold four blocks
of each operator.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.reading import read_bytes, table_rows, unzipped
from gpusched_env.workload.kernel import Kernel, KernelClass
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

COLUMNS: Final = ("Name", "Profile", "SM_usage", "Duration")
CLASSES: Final[dict[int, KernelClass]] = {1: "compute", 0: "memory", -1: "latency"}
BLOCKS_AN_SM: Final = 4
MOST_SMS: Final = 10**6
NS_A_US: Final = 1e3


def import_kernel_file(path: Path, gpu: str, host_us: float, input_bytes: int = 0, name: str | None = None) -> Workload:
    """The workload of a kernel file: launches one behind the other, and a synchronisation.

    Args:
        path: of the file, plain or gzipped.
        gpu: on which it was made.
        host_us: of each launch, which the file does not have (>= 0).
        input_bytes: copied to the device first (0: nothing).
        name: of the workload; ``None``: the file's.

    Raises:
        InputError: a line is not as above, or there is none; names file and line.
    """
    spec = load_gpu(gpu)
    limits = spec.limits
    threads = limits.threads // (BLOCKS_AN_SM * 32) * 32
    registers = min(limits.registers // (BLOCKS_AN_SM * threads), limits.registers_per_thread)
    rows: dict[tuple[str, int, int], list[float]] = {}
    order: list[tuple[tuple[str, int, int], float]] = []
    for kernel, profile, sms, us in _rows(path):
        rows.setdefault((kernel, profile, sms), []).append(us)
        order.append(((kernel, profile, sms), us))
    index = {key: row for row, key in enumerate(rows)}
    kernels = tuple(
        Kernel(
            name=kernel,
            grid=(BLOCKS_AN_SM * sms, 1, 1),
            block=(threads, 1, 1),
            registers=registers,
            duration_us=sum(times_us) / len(times_us),
            kind=CLASSES[profile],
            waves="even",
        )
        for (kernel, profile, sms), times_us in rows.items()
    )
    copies = [Op(OpKind.COPY_TO_DEVICE, host_us, bytes=input_bytes)] if input_bytes else []
    launches = [Op(OpKind.KERNEL, host_us, index[key], us) for key, us in order]
    alone_us = sum(us for _, us in order) + (len(order) - 1) * spec.timing.stream_gap_us
    return Workload(
        name=name or path.name.split(".")[0],
        gpu=gpu,
        source=f"kernel file {path.name}, in the format of Orion (EuroSys 2024)",
        kernels=kernels,
        variants=(Variant(ops=(*copies, *launches, Op(OpKind.SYNC))),),
        iteration_us=(alone_us,),
        profiled=True,
    )


def _rows(path: Path) -> list[tuple[str, int, int, float]]:
    """Name, profile, SMs and microseconds of each line."""
    lines = table_rows(unzipped(read_bytes(path), str(path)), str(path))
    columns = [name.strip() for name in next(lines, (0, []))[1]]
    if missing := [name for name in COLUMNS if name not in columns]:
        raise InputError(f"{path}: no column {missing[0]!r}; the first line must name {', '.join(COLUMNS)}")
    places = [columns.index(name) for name in COLUMNS]
    found = []
    for line, cells in lines:
        try:
            name, *numbers = (cells[place].strip() for place in places)
            profile, sms, ns = (int(number) for number in numbers)
            if profile not in CLASSES or not 1 <= sms <= MOST_SMS or not 1 <= ns <= 10**12:
                raise ValueError
        except (ValueError, IndexError):
            raise InputError(
                f"{path}: line {line} is {','.join(cells)[:80]!r}; must have {', '.join(COLUMNS)}: a name, 1, 0 or -1, "
                f"1 to {MOST_SMS} SMs and at least 1 ns"
            ) from None
        found.append((name or "operator", profile, sms, ns / NS_A_US))
    if not found:
        raise InputError(f"{path}: there is no operator in it")
    return found
