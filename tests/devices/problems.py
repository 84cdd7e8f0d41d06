"""Small problems for device tests: hand-made workloads on the teaching GPU (4 SMs of one block, no latencies)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import JobProgram
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import OpKind


@dataclass(frozen=True)
class K:
    """A kernel operation: ``blocks`` blocks that take ``block_us`` each, issued after ``host_us``."""

    blocks: int
    block_us: float
    host_us: float = 0.0
    idempotent: bool = True


@dataclass(frozen=True)
class Copy:
    """A copy operation of ``us`` microseconds."""

    kind: OpKind
    us: float


SYNC = "sync"


def write_workload(folder: Path, name: str, ops: Sequence[K | Copy | str], sms: int = 4) -> str:
    """Write a workload file of the operations (a kernel alone runs in waves of ``sms`` blocks)."""
    kernels: list[dict[str, Any]] = []
    rows: list[list[Any]] = []
    for op in ops:
        if isinstance(op, K):
            alone = -(-op.blocks // sms) * op.block_us
            kernel = {
                "name": f"{name}_{len(kernels)}", "grid": [op.blocks, 1, 1], "block": [1024, 1, 1], "registers": 32,
                "duration_us": alone, "kind": "latency", "issue_fraction": 0.0, "dram_bytes": 0.0,
                "idempotent": op.idempotent,
            }  # fmt: skip
            rows.append([OpKind.KERNEL, op.host_us, len(kernels), alone, 0])
            kernels.append(kernel)
        elif isinstance(op, Copy):
            rows.append([op.kind, 0.0, -1, op.us, 1000])
        else:
            rows.append([OpKind.SYNC, 0.0, -1, 0.0, 0])
    data = {
        "format": "gpusched-workload/1", "name": name, "gpu": "toy-4sm", "source": "test", "kernels": kernels,
        "variants": [{"ops": rows}], "iteration_us": [100.0],
    }  # fmt: skip
    path = folder / f"{name}.workload.json"
    path.write_text(json.dumps(data))
    return str(path)


def problem(folder: Path, *tenants: dict[str, Any], gpu: dict[str, Any] | None = None, **fields: Any) -> Problem:
    """A problem on the teaching GPU. A tenant is its fields, with ``ops`` in place of the workload.

    ``gpu``: fields of the specification to replace (``timing`` fields go in as a mapping).
    """
    rows = []
    for i, given in enumerate(tenants):
        row = {"name": f"t{i}", "arrivals": {"kind": "backlog"}, "jobs": 1, **given}
        ops = row.pop("ops")
        rows.append({**row, "workload": write_workload(folder, row["name"], [*ops, SYNC])})
    scenario = make_scenario(
        {
            "name": "test", "summary": "test", "gpu": "toy-4sm", "tenants": rows, "horizon_us": 1e6,
            "variation": False, "stream_priorities": [0], **fields,
        }
    )  # fmt: skip
    built = build_problem(scenario)
    spec = load_gpu("toy-4sm")
    for key, value in (gpu or {}).items():
        if key == "timing":
            value = msgspec.structs.replace(spec.timing, **value)
        spec = msgspec.structs.replace(spec, **{key: value})
    return replace(built, gpu=spec, programs=tuple(_with_gaps(program, spec) for program in built.programs))


def _with_gaps(program: TenantProgram, spec: GpuSpec) -> TenantProgram:
    """A program whose operations have the stream gap of another GPU."""

    def job(variant: JobProgram) -> JobProgram:
        return replace(variant, ops=tuple(replace(op, gap_us=spec.timing.stream_gap_us) for op in variant.ops))

    return replace(program, variants=tuple(job(variant) for variant in program.variants))


class Script:
    """A scheduler that asks a function for each command; by default launches whatever it can."""

    def __init__(self, decide: Callable[[View], Command] | None = None, contexts: str | None = None) -> None:
        self._decide = decide
        if contexts is not None:
            self.set_up = SetUp(contexts=contexts)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        pass

    def decide(self, view: View) -> Command:
        return launch_first(view) if self._decide is None else self._decide(view)


def launch_first(view: View) -> Command:
    """Launch the first launchable kernel, or wait."""
    for id_, launchable in zip(view.pending.id, view.pending.launchable, strict=True):
        if launchable:
            return Launch(int(id_))
    return WAIT


DEVICE = "reference"
"""What :func:`new_device` makes; the fixture ``each_device`` runs a test with every simulated device."""


def new_device() -> Device:
    return make_device(DEVICE)


def run(
    built: Problem, decide: Callable[[View], Command] | None = None, seed: int = 0, record: Detail = "blocks"
) -> Episode:
    return run_episode(Script(decide), built, new_device(), seed, record=record)


def kernel_ends(episode: Episode) -> list[tuple[int, float, float]]:
    """(tenant, start, end) of each kernel, in order of completion, rounded to a nanosecond."""
    kernels = episode.timeline.kernels.dict()
    rows = zip(kernels["tenant"], kernels["started_us"], kernels["ended_us"], strict=True)
    return [(int(tenant), round(float(start), 3), round(float(end), 3)) for tenant, start, end in rows]
