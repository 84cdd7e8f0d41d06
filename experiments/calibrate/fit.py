"""What a calibration reads, and the least squares that fit the constants of a GPU to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from gpusched_env.errors import InputError
from gpusched_env.experiments.validate.recordings import Solo, SyntheticKernel, SyntheticWork, find_all, read_rows
from gpusched_env.experiments.validate.replay import block_of, profile_of, solo_us
from gpusched_env.hardware.occupancy import BlockFootprint, footprint, gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec, Instructions
from gpusched_env.reading import Duration

BACK_TO_BACK = "same_stream_back_to_back"
EVENT = "cross_stream_event_dependency_ns"
WAVES, KERNELS, LAUNCH = "waves", "kernels", "launch"
TIMER_STEP_US = 0.032
"""Resolution of ``%globaltimer``, with which the gaps were measured."""


class WaveRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel of a grid sweep alone; times in us."""

    spec: SyntheticWork
    start_us: float
    end_us: Duration
    block_us: Duration
    block_us_p95: Duration

    def __post_init__(self) -> None:
        if self.end_us <= self.start_us:
            raise ValueError(f"end_us {self.end_us} must be after start_us {self.start_us}")


class LaunchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of launch costs: which fields it has depends on ``what``."""

    what: str
    device_gap_ns: Annotated[float, msgspec.Meta(gt=0)] | None = None
    median: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One kernel alone, with its measured duration."""

    source: str
    """Set of the sample, :data:`WAVES` or :data:`KERNELS`."""
    family: str
    """Samples of one family are one kernel with different grids: their errors are not independent."""
    kernel: SyntheticKernel

    @property
    def kind(self) -> str:
        """``compute`` (no loads), ``memory`` (loads only) or ``mixed``."""
        if self.kernel.dram_bytes_per_block == 0.0:
            return "compute"
        return "memory" if self.kernel.flop_per_block == 0.0 else "mixed"

    @property
    def measured_us(self) -> float:
        return self.kernel.solo.duration_us


@dataclass(frozen=True, slots=True)
class Gap:
    """A latency read directly from recordings, us."""

    value_us: float
    error_us: float | None
    """Standard error of a median over several rows, at least that of the timer's steps; ``None`` for one row."""
    rows: int

    @classmethod
    def of(cls, values_us: Sequence[float]) -> Gap:
        """The median of rows."""
        error = None
        if len(values_us) > 1:
            from scipy.stats import median_abs_deviation

            deviation = median_abs_deviation(values_us, scale="normal")
            error = max(np.sqrt(np.pi / 2 / len(values_us)) * deviation, TIMER_STEP_US / np.sqrt(12.0))
        return cls(float(np.median(values_us)), None if error is None else float(error), len(values_us))


@dataclass(frozen=True, slots=True)
class CalibrationSamples:
    """Everything that a calibration uses of a folder."""

    samples: tuple[Sample, ...]
    block_gap: Gap
    """The time from a kernel's last block to the first block of the next in the same stream."""
    event_latency: Gap


def read_recordings(folder: Path) -> CalibrationSamples:
    """The recordings in ``folder``.

    Raises:
        InputError: the folder or one of ``waves``, ``kernels`` and ``launch`` (``.jsonl`` or ``.jsonl.gz``)
            is missing, or a row lacks a field; names file, line and field.
    """
    waves, kernels, launch = find_all(folder, WAVES, KERNELS, LAUNCH)
    samples = [_of_sweep(number, row) for number, row in enumerate(read_rows(waves, WaveRow), start=1)]
    samples += [Sample(KERNELS, kernel.id, kernel) for kernel in read_rows(kernels, SyntheticKernel)]
    for sample in samples:
        if not sample.kernel.flop_per_block + sample.kernel.dram_bytes_per_block:
            path = waves if sample.source == WAVES else kernels
            raise InputError(
                f"{path}: kernel {sample.kernel.id}: flop_per_block and dram_bytes_per_block are both 0; "
                "one must be positive"
            )
    rows = read_rows(launch, LaunchRow)
    return CalibrationSamples(
        tuple(samples),
        block_gap=_gap(launch, rows, BACK_TO_BACK, "device_gap_ns"),
        event_latency=_gap(launch, rows, EVENT, "median"),
    )


def _of_sweep(number: int, row: WaveRow) -> Sample:
    spec = row.spec
    family = f"{WAVES} {spec.block}x{spec.smem} {spec.flop_per_block:g} {spec.dram_bytes_per_block:g}"
    solo = Solo(duration_us=row.end_us - row.start_us, block_us=row.block_us, block_us_p95=row.block_us_p95)
    return Sample(WAVES, family, SyntheticKernel(id=f"sweep row {number}", solo=solo, **msgspec.structs.asdict(spec)))


def _gap(path: Path, rows: Sequence[LaunchRow], what: str, field: str) -> Gap:
    values = [getattr(row, field) for row in rows if row.what == what]
    if not values:
        raise InputError(f'{path}: has no row with "what": "{what}"')
    if any(value is None or value <= 0 for value in values):
        raise InputError(f"{path}: a row of {what} has no positive {field}")
    return Gap.of([value / 1e3 for value in values])


FloatArray = NDArray[np.float64]

INSTRUCTIONS = ("fma_issue_us", "fma_latency_us", "load_issue_us", "load_latency_us", "block_us")
EFFICIENCY = "dram_efficiency"
FITTED = (*INSTRUCTIONS, EFFICIENCY)
LOSS_SCALE = 0.03
"""Relative error beyond which a sample counts linearly instead of quadratically."""
WIDEST = 30.0
"""A fitted cost lies within this factor of its start."""
LEAST_EFFICIENCY = 0.2
LEAST_BLOCK_US = 0.05
"""Least start of ``block_us``, which may be 0 in a specification: 0 has no logarithm."""
ROUNDS = 6
SETTLED = 1e-3
"""Largest relative change of a constant at which the rounds end."""
STEP = 1e-3
"""Step of finite differences in a logarithm."""


@dataclass(frozen=True, slots=True)
class FittedConstants:
    """Constants before and after, and how well they predict."""

    gpu: GpuSpec
    """The specification with the fitted constants."""
    start: dict[str, float]
    value: dict[str, float]
    error: dict[str, float]
    """Standard errors, in the constants' units."""
    before: FloatArray
    """Logarithm of simulated over measured duration with the start, a sample each."""
    after: FloatArray
    bounded: tuple[str, ...]
    """Constants that ended at a bound: the samples do not determine them."""
    generic: bool
    """Whether the start is generic because the specification has no instruction costs."""


def starting_gpu(gpu: GpuSpec) -> GpuSpec:
    """``gpu`` with its instruction costs or, where it has none, generic ones in terms of its clock."""
    if gpu.instructions is not None:
        return gpu
    clock_us = 1.0 / gpu.clock_mhz
    generic = Instructions(
        fma_issue_us=clock_us,
        fma_latency_us=4.0 * clock_us,
        load_issue_us=15.0 * clock_us,
        load_latency_us=0.6,
        load_wait_us=150.0 * clock_us,
        block_us=0.5,
    )
    return msgspec.structs.replace(gpu, instructions=generic)


def constants(gpu: GpuSpec) -> dict[str, float]:
    """The fitted constants' values in ``gpu``, which has instruction costs."""
    assert gpu.instructions is not None
    return {name: getattr(gpu.instructions, name) for name in INSTRUCTIONS} | {
        EFFICIENCY: gpu.contention.dram_efficiency
    }


def with_constants(gpu: GpuSpec, values: Mapping[str, float]) -> GpuSpec:
    """``gpu``, which has instruction costs, with the constants replaced."""
    assert gpu.instructions is not None
    costs = {name: values[name] for name in INSTRUCTIONS}
    return msgspec.structs.replace(
        gpu,
        instructions=msgspec.structs.replace(gpu.instructions, **costs),
        contention=msgspec.structs.replace(gpu.contention, dram_efficiency=values[EFFICIENCY]),
    )


def closed_form_us(samples: Sequence[Sample], gpu: GpuSpec, shapes: Sequence[BlockFootprint]) -> FloatArray:
    """Durations alone if the blocks of a wave end together, shape ``(samples,)``."""
    record = gpu_record(gpu)[0]
    durations = []
    for sample, shape in zip(samples, shapes, strict=True):
        block = block_of(sample.kernel, gpu, shape, spread=False)[0]
        durations.append(solo_duration_us(record, block, sample.kernel.grid, shape.blocks_per_sm))
    return np.array(durations)


def simulated_us(samples: Sequence[Sample], gpu: GpuSpec) -> FloatArray:
    """Durations alone on the simulated GPU with the recorded spread between blocks, shape ``(samples,)``."""
    return np.array([solo_us(profile_of(sample.kernel, gpu), gpu) for sample in samples])


def footprints(samples: Sequence[Sample], gpu: GpuSpec) -> list[BlockFootprint]:
    """What a block of each sample occupies.

    Raises:
        InputError: a kernel does not fit on ``gpu``.
    """
    return [footprint(gpu, s.kernel.block, s.kernel.regs, s.kernel.smem, s.kernel.id) for s in samples]


def fit(samples: Sequence[Sample], gpu: GpuSpec, *, simulate: bool = True) -> FittedConstants:
    """Fit :data:`FITTED` to the samples' measured durations.

    Args:
        samples: kernels of all three kinds.
        gpu: where to start; ``load_wait_us`` keeps its value, as lone kernels do not show it.
        simulate: correct the closed form by the simulator (else it is the prediction itself).

    Raises:
        InputError: a kernel does not fit on ``gpu``, or a kind is missing.
    """
    _check_kinds(samples)
    begin = starting_gpu(gpu)
    shapes = footprints(samples, begin)
    measured = np.log([sample.measured_us for sample in samples])
    start = constants(begin)
    at, lower, upper = _start_and_bounds(start)
    correction = np.zeros(len(samples))

    def candidate(logs: FloatArray) -> GpuSpec:
        return with_constants(begin, dict(zip(FITTED, np.exp(logs).tolist(), strict=True)))

    def closed(logs: FloatArray) -> FloatArray:
        return np.log(closed_form_us(samples, candidate(logs), shapes))

    def predictions(which: GpuSpec) -> FloatArray:
        return np.log(simulated_us(samples, which) if simulate else closed_form_us(samples, which, shapes))

    def residuals(logs: FloatArray) -> FloatArray:
        errors: FloatArray = closed(logs) + correction - measured
        return errors

    fitted, predicted = begin, predictions(begin)
    before = predicted - measured
    bounded: tuple[str, ...] = ()
    for _ in range(ROUNDS if simulate else 1):
        if simulate:
            correction = predicted - np.log(closed_form_us(samples, fitted, shapes))
        solution = least_squares(
            residuals, at, bounds=(lower, upper), loss="soft_l1", f_scale=LOSS_SCALE, diff_step=STEP, x_scale=0.1
        )
        moved, at = float(np.abs(solution.x - at).max()), solution.x
        bounded = tuple(name for name, active in zip(FITTED, solution.active_mask, strict=True) if active)
        fitted = candidate(at)
        predicted = predictions(fitted)
        if moved < SETTLED:
            break
    value = constants(fitted)
    slopes = np.stack([(closed(at + step) - closed(at - step)) / (2.0 * STEP) for step in STEP * np.eye(len(at))], 1)
    errors = standard_errors(slopes, residuals(at), [sample.family for sample in samples])
    return FittedConstants(
        gpu=fitted,
        start=start,
        value=value,
        error={name: value[name] * error for name, error in zip(FITTED, errors.tolist(), strict=True)},
        before=before,
        after=predicted - measured,
        bounded=bounded,
        generic=gpu.instructions is None,
    )


def _check_kinds(samples: Sequence[Sample]) -> None:
    for kind in ("compute", "memory", "mixed"):
        if not any(sample.kind == kind for sample in samples):
            raise InputError(f"the recordings have no {kind} kernel; constants of each kind are fitted together")


def _start_and_bounds(start: Mapping[str, float]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Logarithms of the constants to start from, and the lowest and highest ones, shape ``(constants,)`` each."""
    origin = np.log([max(start[name], LEAST_BLOCK_US if name == "block_us" else 0.0) for name in FITTED])
    lower, upper = origin - np.log(WIDEST), origin + np.log(WIDEST)
    lower[-1], upper[-1] = np.log(LEAST_EFFICIENCY), 0.0
    # least_squares wants a start inside its bounds, and an efficiency of 1 lies on one.
    return np.clip(origin, lower + 1e-6, upper - 1e-6), lower, upper


def standard_errors(slopes: FloatArray, errors: FloatArray, families: Sequence[str]) -> FloatArray:
    """Standard errors of a soft-L1 fit, robust against errors that go together within a family (sandwich).

    Args:
        slopes: Jacobian at the solution, shape ``(samples, constants)``.
        errors: residuals at the solution, shape ``(samples,)``.
        families: the family of each sample.
    """
    ratio = 1.0 + (errors / LOSS_SCALE) ** 2
    curvature = slopes.T @ (slopes * (ratio**-1.5)[:, None])
    scores = slopes * (errors * ratio**-0.5)[:, None]
    _, member = np.unique(np.array(families), return_inverse=True)
    sums = np.zeros((int(member.max()) + 1, slopes.shape[1]))
    np.add.at(sums, member, scores)
    inverse = np.linalg.pinv(curvature)
    covariance = inverse @ (sums.T @ sums) @ inverse
    deviations: FloatArray = np.sqrt(np.diag(covariance))
    return deviations
