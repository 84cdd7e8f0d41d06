"""Problems as tables of plain numbers, for compiled code."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.layout import KERNEL, NUMBER, OP, PROBLEM, PROGRAM, REAL, VARIANT
from gpusched_env.hardware.placement import sm_order
from gpusched_env.hardware.records import BLOCK_DTYPE, GPU_DTYPE, gpu_record
from gpusched_env.hardware.timing import state_bytes
from gpusched_env.scenarios.knowledge import KernelKnowledge
from gpusched_env.scenarios.problem import HostOp, Problem, TenantProgram
from gpusched_env.workload.arrivals import ArrivalProcess, Backlog, Bursts, ClosedLoop, Periodic, Poisson
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.workload import OpKind

Record = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class ProblemTables:
    """A problem in numbers. The record ``problem`` holds the addresses of the other tables."""

    problem: Record
    programs: Record
    kernels: Record
    ops: Record
    variants: Record
    factors: Record
    sm_ids: Record


def tabulate(problem: Problem) -> ProblemTables:
    """The tables of a problem; made once, shared by all environments that run it."""
    tables = _KNOWN.get(id(problem))
    if tables is None:
        tables = _KNOWN[id(problem)] = _tabulate(problem)
        weakref.finalize(problem, _KNOWN.pop, id(problem), None)
    return tables


_KNOWN: dict[int, ProblemTables] = {}


def _tabulate(problem: Problem) -> ProblemTables:
    kernels = np.zeros(len(problem.kernels), KERNEL)
    for row, (profile, known) in enumerate(zip(problem.kernels, problem.knowledge.kernels, strict=True)):
        _fill_kernel(kernels[row], profile, known)
    programs = np.zeros(len(problem.programs), PROGRAM)
    ops: list[tuple[Any, ...]] = []
    variants: list[tuple[int, int, int]] = []
    factors: list[tuple[float]] = []
    for row, program in enumerate(problem.programs):
        _fill_program(programs[row], program, problem, len(variants), len(factors))
        factors += [(factor,) for factor in program.host_spread]
        for variant in program.variants:
            device_ops = sum(op.kind is not OpKind.SYNC for op in variant)
            variants.append((len(ops), len(variant), device_ops))
            ops += [_op(op) for op in variant]
    tables = {
        "programs": programs,
        "kernels": kernels,
        "ops": np.array(ops, OP),
        "variants": np.array(variants, VARIANT),
        "factors": np.array(factors, REAL),
        "sm_ids": np.array([(sm,) for sm in sm_order(problem.gpu).tolist()], NUMBER),
    }
    record = _problem(problem)
    for name, table in tables.items():
        record[f"{name}_at"] = table.ctypes.data
    return ProblemTables(problem=record, **tables)


def _problem(problem: Problem) -> Record:
    gpu, scenario = problem.gpu, problem.scenario
    timing = gpu.timing
    record = np.zeros(1, PROBLEM)
    row = record[0]
    for name in GPU_DTYPE.names or ():
        row[name] = gpu_record(gpu)[0][name]
    for name in (
        "launch_latency_us", "event_latency_us", "sync_latency_us", "slice_us", "switch_us", "partition_change_us",
        "drain_ack_us", "reset_us",
    ):  # fmt: skip
        row[name] = getattr(timing, name)
    row["tenants"] = len(problem.programs)
    row["channels"] = gpu.channels
    row["resident_grids"] = gpu.resident_grids
    row["copy_engines"] = gpu.copies.engines
    row["sliced"] = scenario.contexts == "per-tenant"
    row["preempts"] = "preempt" in scenario.commands
    row["partitions"] = "partition" in scenario.commands
    row["launch_depth"] = scenario.launch_depth
    row["nominal_bytes_per_us"] = gpu.dram_bytes_per_us
    row["idle_w"], row["sm_w"], row["dram_w"] = gpu.power.idle_w, gpu.power.sm_w, gpu.power.dram_w
    row["horizon_us"] = scenario.horizon_us
    row["decision_us"] = scenario.decision_us
    return record


def _fill_kernel(row: np.void, profile: KernelProfile, known: KernelKnowledge) -> None:
    block = profile.block[0]
    for name in BLOCK_DTYPE.names or ():
        row[name] = block[name]
    row["grid_blocks"] = profile.kernel.blocks
    row["block_threads"] = profile.kernel.threads
    row["blocks_per_sm"] = profile.footprint.blocks_per_sm
    row["uses_sms"] = profile.sms
    row["idempotent"] = profile.kernel.idempotent
    row["state_bytes"] = state_bytes(profile.footprint.registers, profile.footprint.shared_bytes, 1)
    row["log_idle"] = math.log1p(-float(block["rho"]))
    # 0 stands for a kernel that was never measured: these are summed.
    row["profiled_us"] = 0.0 if math.isnan(known.duration_us) else known.duration_us
    row["issue"] = profile.issue
    row["dram"] = profile.dram
    row["gap_us"] = known.gap_us


def _op(op: HostOp) -> tuple[Any, ...]:
    return (op.kind, op.identity, op.bytes, op.host_us, op.scale, op.device_us, op.left_us)


def _fill_program(row: np.void, program: TenantProgram, problem: Problem, variants: int, factors: int) -> None:
    tenant = program.tenant
    row["priority"] = tenant.priority
    row["jobs"] = -1 if tenant.jobs is None else tenant.jobs
    row["first_variant"], row["variants"] = variants, len(program.variants)
    row["first_factor"], row["factors"] = factors, len(program.host_spread)
    row["weight"] = tenant.weight
    row["slo_us"] = math.inf if tenant.slo_us is None else tenant.slo_us
    row["alone_us"] = program.alone_us
    row["gap_us"] = program.gap_us
    row["event_gap_us"] = max(program.gap_us, problem.gpu.timing.event_latency_us)
    _fill_arrivals(row, tenant.arrivals)


def _fill_arrivals(row: np.void, arrivals: ArrivalProcess) -> None:
    row["start_us"] = arrivals.start_us
    match arrivals:
        case ClosedLoop():
            row["arrivals"], row["think_us"] = layout.CLOSED_LOOP, arrivals.think_us
        case Poisson():
            row["arrivals"], row["rate_per_s"] = layout.POISSON, arrivals.rate_per_s
        case Periodic():
            row["arrivals"], row["period_us"] = layout.PERIODIC, arrivals.period_us
        case Bursts():
            row["arrivals"], row["rate_per_s"] = layout.BURSTS, arrivals.rate_per_s
            row["burst_go"] = 1.0 - 1.0 / arrivals.mean_size
        case Backlog():
            row["arrivals"] = layout.BACKLOG
