"""A problem in plain numbers, under the names that the rules read: the reference device makes objects of them, the
compiled one rows of its tables."""

from __future__ import annotations

import math
from typing import Any

from gpusched_env.hardware.clock import to_ps
from gpusched_env.hardware.occupancy import gpu_record
from gpusched_env.hardware.power import board_power_w
from gpusched_env.hardware.queues import queue_count
from gpusched_env.scenarios.knowledge import KernelKnowledge, TenantKnowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.scheduling.legality import offered_bits
from gpusched_env.workload.host import arrival_numbers

TIMES = (
    "launch_latency", "event_latency", "sync_latency", "slice", "switch", "partition_change", "drain_ack", "reset",
    "child_launch", "graph_gap_beside", "queue_period",
)  # fmt: skip
"""Times of :class:`gpusched_env.hardware.specs.Timing` that devices keep in picoseconds."""


def problem_numbers(problem: Problem) -> dict[str, Any]:
    """A GPU and the rules of a scenario: the fields of :data:`gpusched_env.devices.compiled.layout.PROBLEM` that are
    not about its tables."""
    gpu, scenario, window = problem.gpu, problem.scenario, problem.window
    physics = gpu_record(gpu)
    numbers: dict[str, Any] = dict(zip(physics.dtype.names or (), physics[0].item(), strict=True))
    numbers |= {f"{name}_ps": to_ps(getattr(gpu.timing, f"{name}_us")) for name in TIMES}
    numbers |= {
        "tenants": len(problem.programs),
        "streams": len(problem.streams),
        "own_streams": sum(stream.tenant < 0 for stream in problem.streams),
        "kernels": len(problem.kernels),
        "tiled": any(op.tiles >= 0 for program in problem.programs for job in program.variants for op in job.ops),
        "priorities": gpu.priorities,
        "channels": queue_count(gpu, len(problem.streams)),
        "held_queues": gpu.channels,
        "resident_grids": gpu.resident_grids,
        "copy_engines": gpu.copies.engines,
        "l2_bytes": gpu.l2_bytes if problem.l2_matters else 0.0,
        "nominal_bytes_per_us": gpu.dram_bytes_per_us,
        "idle_w": gpu.power.idle_w,
        "sm_w": gpu.power.sm_w,
        "dram_w": gpu.power.dram_w,
        "peak_w": board_power_w(gpu, gpu.sms, gpu.dram_bytes_per_us),
        "wait_kernel_ps": to_ps(gpu.tiles.wait_kernel_us),
        "post_us": gpu.tiles.post_us,
        "wait_us": gpu.tiles.wait_us,
        "order_us": gpu.tiles.order_us,
        "window_depth": 1 if window is None else window.depth,
        "window_sync_ps": 0 if window is None else to_ps(window.sync_us),
        "lookahead": scenario.lookahead,
        "launch_depth": scenario.launch_depth,
        "sliced": scenario.contexts == "per-tenant",
        "throttle_ps": to_ps(scenario.throttle_us),
        "restart_ps": to_ps(scenario.restart_us),
        "decision_ps": to_ps(scenario.decision_us),
        "horizon_us": scenario.horizon_us,
        "horizon_ps": to_ps(scenario.horizon_us),
        "arrivals_until_ps": to_ps(scenario.sends_until_us),
        "host_contention": problem.host_contention[0],
        "waiting_contention": problem.host_contention[1],
        "offered": offered_bits(scenario.commands),
        "budgets": "budget" in scenario.commands,
    }
    cores = scenario.cores
    if cores is None:
        return numbers | {"cores": 0}
    return numbers | {
        "cores": len(cores.cores), "core_period_ps": to_ps(cores.period_us), "rho": cores.rho, "kappa": cores.kappa,
        "spins": cores.spins, "saturation": cores.saturation,
    }  # fmt: skip


def program_numbers(program: TenantProgram, known: TenantKnowledge) -> dict[str, float]:
    """A tenant: the fields of :data:`gpusched_env.devices.compiled.layout.PROGRAM` that are not about its tables."""
    tenant = program.tenant
    numbers: dict[str, float] = {
        "priority": tenant.priority,
        "weight": tenant.weight,
        "jobs": -1 if tenant.jobs is None else tenant.jobs,
        "slo_us": math.inf if tenant.slo_us is None else tenant.slo_us,
        "variants": len(program.variants),
        "factors": len(program.host_spread),
        "alone_us": program.alone_us,
        "answer_us": program.answer_us,
        "device_us": known.device_us,
        "jobs_a_us": known.jobs_a_us,
        "footprint_bytes": program.footprint_bytes,
        "brings": program.brings,
        "keeps": program.keeps,
    }
    return numbers | arrival_numbers(tenant.arrivals, program.replay) | program.engine_numbers


def kernel_numbers(known: KernelKnowledge) -> dict[str, float]:
    """What everybody is told of a kernel or graph; ``profiled_us`` is 0 where it was never measured, as such times are
    summed."""
    columns, rows, slices = (0, 0, 0) if known.graph else known.grid
    return {
        "grid_blocks": known.blocks,
        "columns": columns,
        "rows": rows,
        "slices": slices,
        "block_threads": known.threads,
        "blocks_per_sm": known.blocks_per_sm,
        "uses_sms": known.sms,
        "profiled_us": 0.0 if math.isnan(known.duration_us) else known.duration_us,
        "gap_us": known.gap_us,
        "issue": known.issue,
        "dram": known.dram,
        "idempotent": known.idempotent,
        "nodes": known.nodes,
    }
