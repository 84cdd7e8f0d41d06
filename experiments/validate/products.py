"""Kernels that others measured on several GPUs, one by one, carried over from each to each.

The tables have a row a kernel and GPU (:data:`COLUMNS`; further columns are the shape). A pair is a shape for which two
GPUs ran a kernel of the same name and grid: what carrying over takes for granted. Where a GPU's library chose another
kernel the pair is counted apart: there the prediction is of the product, not of its kernel.

Beside the prediction (:mod:`gpusched_env.workload.carry_over`) stand three rivals that know the data sheets: times as
they are; the ratio of peaks, single precision by vector units; and a roofline of the product, peak against bandwidth.
*Skill* is the share of the error of unchanged times that is gone.

Nothing of the prediction was fitted to the errors that are judged. What boards sustain is the median rate of every
second shape (:func:`sustained_tflops`), and only the other shapes are judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from gpusched_env.display.table import Table
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, match_gpu
from gpusched_env.reading import read_bytes, table_rows, unzipped
from gpusched_env.workload.carry_over import carried_kernel
from gpusched_env.workload.kernel import Kernel, classify
from gpusched_env.workload.profile import profile_kernel

Floats = NDArray[np.float64]
Shape = tuple[str, ...]

LINEAR: Final = Path("gpusched_env/data/measurements/products/linear.csv.gz")
"""Fully connected layers, of a checkout."""
SHARE: Final = "{:.1%}"
LONG_OPERATIONS: Final = 2e11
"""Products of so many floating-point operations fill every GPU for milliseconds."""
REGISTERS: Final = 128
"""Registers a thread, which the tables do not have: what libraries' products of 128 x 64 elements and more use."""
APART: Final = {"Torch Version", "CUDNN Version", "CUDA Version", "Kernels", "Warps per SM", "Blocks per SM"}
"""Columns that say how was measured, or follow from others."""
Side = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class ProductRow(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel on a GPU, as a table has it."""

    device: Annotated[str, Meta(min_length=1)] = msgspec.field(name="Device")
    latency_ms: Annotated[float, Meta(gt=0, le=1e9)] = msgspec.field(name="Latency")
    name: str = msgspec.field(name="Kernel Name")
    grid_x: Side = msgspec.field(name="Grid x")
    grid_y: Side = msgspec.field(name="Grid y")
    grid_z: Side = msgspec.field(name="Grid z")
    block_x: Side = msgspec.field(name="Block x")
    block_y: Side = msgspec.field(name="Block y")
    block_z: Side = msgspec.field(name="Block z")

    @property
    def launch(self) -> tuple[str, int, int, int]:
        """What two GPUs must have in common for a kernel to be the same."""
        return self.name, self.grid_x, self.grid_y, self.grid_z

    def kernel(self) -> Kernel:
        """The kernel with its time alone."""
        time_us, grid = 1e3 * self.latency_ms, (self.grid_x, self.grid_y, self.grid_z)
        block = self.block_x, self.block_y, self.block_z
        threads = self.block_x * self.block_y * self.block_z
        return Kernel(
            name=self.name, grid=grid, block=block, registers=min(REGISTERS, 65_536 // threads), duration_us=time_us,
            kind=classify(self.name, grid[0] * grid[1] * grid[2], time_us), waves="even",
        )  # fmt: skip


COLUMNS: Final = tuple(field.encode_name for field in msgspec.structs.fields(ProductRow))
"""Names of the columns that a table must have; ``Latency`` is in milliseconds."""
Measured = dict[str, dict[Shape, ProductRow]]
"""Rows by GPU, as its driver calls it, and shape."""


def read_measured(path: Path) -> Measured:
    """The rows of a table (CSV with a line of names, ``.gz`` or not).

    Raises:
        InputError: the file cannot be read, a column is missing or a value is none; names file, line and column.
    """
    data = read_bytes(path)
    rows = table_rows(unzipped(data, str(path)) if path.suffix == ".gz" else data, str(path))
    _, heads = next(rows, (0, []))
    if missing := [name for name in COLUMNS if name not in heads]:
        raise InputError(f"{path}: has no column {', '.join(map(repr, missing))}; it needs {', '.join(COLUMNS)}")
    shaped = [place for place, name in enumerate(heads) if name not in {*COLUMNS, *APART}]
    found: Measured = defaultdict(dict)
    for line, values in rows:
        if len(values) != len(heads):
            raise InputError(f"{path}, line {line}: has {len(values)} values, {len(heads)} columns are named")
        try:
            row = msgspec.convert(dict(zip(heads, values, strict=True)), ProductRow, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"{path}, line {line}: {error}") from error
        found[row.device][tuple(f"{heads[place]}={values[place]}" for place in shaped)] = row
    return found


@dataclass(frozen=True, slots=True)
class Carried:
    """Products of one GPU on another: predicted over measured time there, by predictor."""

    recorded_on: str
    gpu: str
    same_kernel: bool
    """Whether both GPUs ran the same kernel."""
    ratios: dict[str, Floats]
    """By predictor, (products,)."""

    def error(self, predictor: str, quantile: float = 0.5) -> float:
        """A quantile of the absolute relative error."""
        return float(np.quantile(np.abs(self.ratios[predictor] - 1.0), quantile))

    @property
    def skill(self) -> float:
        """Share of the median error of unchanged times that is gone."""
        return 1.0 - self.error("carried over") / self.error("unchanged")


def shipped(measured: Measured) -> dict[str, GpuSpec]:
    """Specifications of the GPUs of a table, by the driver's name; those that are not shipped are left out."""
    found = {}
    for device in measured:
        try:
            spec = match_gpu(device, "the table")
        except InputError:
            continue
        if spec.matrix_rates is not None and spec.matrix_rates.vector is not None:
            found[device] = spec
    return found


def judged(measured: Measured) -> set[Shape]:
    """Every second shape: the others say what boards sustain."""
    return set(sorted({shape for rows in measured.values() for shape in rows})[1::2])


def sustained_tflops(measured: Measured, device: str) -> float:
    """What long products reach on a GPU, TFLOP/s: the median over the shapes that are not judged."""
    kept = judged(measured)
    rates = [
        operations / row.latency_ms * 1e-9
        for shape, row in measured[device].items()
        if shape not in kept and (operations := _sizes(shape)[0]) >= LONG_OPERATIONS
    ]
    return float(np.median(rates))


def pairs(measured: Measured, kept: set[Shape] | None = None) -> Iterator[Carried]:
    """Each GPU of a table that is shipped carried over to each other one.

    Args:
        measured: the table.
        kept: the shapes that count; without: all.
    """
    specs = shipped(measured)
    for first, second in permutations(specs, 2):
        both = [s for s in measured[first] if s in measured[second] and (kept is None or s in kept)]
        for same in (True, False):
            shapes = [s for s in both if (measured[first][s].launch == measured[second][s].launch) == same]
            if shapes:
                ratios = [
                    _ratios(measured[first][shape], measured[second][shape], shape, specs[first], specs[second])
                    for shape in shapes
                ]
                yield Carried(
                    recorded_on=specs[first].name,
                    gpu=specs[second].name,
                    same_kernel=same,
                    ratios={name: np.array([each[name] for each in ratios]) for name in ratios[0]},
                )


def _ratios(row: ProductRow, there: ProductRow, shape: Shape, first: GpuSpec, second: GpuSpec) -> dict[str, float]:
    kernel = row.kernel()
    carried_us = profile_kernel(carried_kernel(kernel, first, second), first, second).duration_us
    roofs = [_roof_us(shape, spec) for spec in (first, second)]
    factors = {
        "carried over": carried_us / kernel.duration_us,
        "unchanged": 1.0,
        "peaks": _peak(first) / _peak(second),
        "roofline": roofs[1] / roofs[0] if roofs[0] else 1.0,
    }
    return {name: factor * row.latency_ms / there.latency_ms for name, factor in factors.items()}


def _peak(gpu: GpuSpec) -> float:
    """Single precision by vector units, operations a microsecond."""
    assert gpu.matrix_rates is not None, "shipped() leaves others out"
    assert gpu.matrix_rates.vector is not None, "shipped() leaves others out"
    return gpu.sms * gpu.clock_mhz * gpu.matrix_rates.vector


def _sizes(shape: Shape) -> tuple[float, float]:
    """Floating-point operations and bytes of a product of ``B`` matrices, M x K and K x N; zeros for other shapes."""
    sizes = dict(part.split("=", 1) for part in shape)
    if not {"B", "M", "N", "K"} <= sizes.keys():
        return 0.0, 0.0
    b, m, n, k = (float(sizes[name]) for name in "BMNK")
    return 2.0 * b * m * n * k, 4.0 * b * (m * k + k * n + m * n)


def _roof_us(shape: Shape, gpu: GpuSpec) -> float:
    operations, moved = _sizes(shape)
    return max(operations / _peak(gpu), moved / gpu.dram_bytes_per_us)


def table(found: Sequence[Carried], *, same_kernel: bool) -> Table:
    """Errors by pair of GPUs, beside the rivals."""
    rows = [
        [
            f"{each.recorded_on} to {each.gpu}",
            str(len(each.ratios["unchanged"])),
            *(SHARE.format(each.error("carried over", quantile)) for quantile in (0.5, 0.9)),
            *(SHARE.format(each.error(rival)) for rival in ("unchanged", "peaks", "roofline")),
            f"{each.skill:.2f}",
        ]
        for each in found
        if each.same_kernel == same_kernel
    ]
    heads = ["from and to", "products", "error, median", "p90", "unchanged", "peaks", "roofline", "skill"]
    title = "The same kernel on both" if same_kernel else "Another kernel of the same product"
    note = "Medians of the absolute error. *Skill*: share of the error of unchanged times that is gone."
    return Table(title, heads, rows, note=note)


def sustained_table(measured: Measured) -> Table:
    """What boards sustain beside what their data sheets say."""
    rows = [
        [spec.name, f"{_peak(spec) / 1e6:.1f}", f"{sustained_tflops(measured, device):.1f}"]
        for device, spec in shipped(measured).items()
    ]
    return Table("What boards sustain", ["GPU", "data sheet, TFLOP/s", "long products, TFLOP/s"], rows)


def tables(measured: Measured) -> list[Table]:
    """What boards sustain, if the table has products, and the errors of kernels.

    Raises:
        InputError: no two GPUs of the table are shipped and have a shape in common.
    """
    found = list(pairs(measured, judged(measured)))
    if not found:
        raise InputError(f"the table has no shape of two GPUs that are known here; it has {', '.join(measured)}")
    kinds = [table(found, same_kernel=same) for same in (True, False) if any(o.same_kernel == same for o in found)]
    return [*([sustained_table(measured)] if has_products(measured) else []), *kinds]


def has_products(measured: Measured) -> bool:
    """Whether the shapes of a table are those of matrix products."""
    return any(_sizes(shape)[0] > 0.0 for shape in next(iter(measured.values()), ()))


def page_of(measured: Measured) -> dict[str, Any]:
    """What the page of carried times says of products."""
    found = list(pairs(measured, judged(measured)))
    same = [each for each in found if each.same_kernel]
    return {
        "tables": tables(measured),
        "skills": [f"{pick(each.skill for each in same):.2f}" for pick in (min, max)],
        "least": f"{min(each.skill for each in found):.2f}",
        "worst": SHARE.format(max(each.error("carried over") for each in found)),
        "beaten": [
            f"{each.recorded_on} to {each.gpu}" for each in found if each.error("peaks") <= each.error("carried over")
        ],
        "pairs": len(found),
    }
