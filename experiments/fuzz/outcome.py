"""The outcome of one case, and the features of cases."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.fuzz.case import Baseline, Case
from gpusched_env.experiments.fuzz.moves import Move
from gpusched_env.experiments.fuzz.sides import ShownStep
from gpusched_env.experiments.fuzz.stored import Difference
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scheduling.commands import COMMANDS, Wait
from gpusched_env.scheduling.timeline import Timeline
from gpusched_env.workload.workload import DEVICE_OPS, OpKind

DECISIONS = tuple(f"{command.NAME} commands" for command in COMMANDS if command is not Wait)
"""Features for the decisions in a timeline, by code."""


@dataclass
class Outcome:
    """One case on two devices."""

    difference: Difference | None = None
    moves: list[Move] = field(default_factory=list)
    """The moves that were played, refused ones included."""
    counts: Counter[str] = field(default_factory=Counter)
    """Numbers of commands, kernels and blocks."""
    features: set[str] = field(default_factory=set)
    """What the case contains and what happened in it."""


def case_features(case: Case, problem: Problem) -> set[str]:
    """What a case contains."""
    scenario, gpu, tenants, window = case.scenario, problem.gpu, case.scenario.tenants, problem.window
    programs = problem.programs
    variants = [variant for program in programs for variant in program.variants]
    ops = [op for variant in variants for op in variant]
    nodes = [node for op in ops for node in op.nodes]
    recorded = [op for w in case.workloads.values() for v in w.variants for op in v.all_ops]
    shared = scenario.contexts == "shared"
    twins = {(t.workload, t.arrivals) for t in tenants}
    most_streams = max(Counter(stream.tenant for stream in problem.streams if stream.tenant >= 0).values())
    present = {
        "environment": case.env is not None,
        f"scheduler {case.player.name}" if isinstance(case.player, Baseline) else "random moves": True,
        f"detail {case.record}": True,
        "modified GPU": case.gpu is not None,
        "recorded workload": any(t.workload not in case.workloads for t in tenants),
        "one context a tenant": not shared and len(tenants) > 1,
        "streams share a channel": (len(problem.streams) if shared else most_streams) > gpu.channels,
        "tenants with several streams": most_streams > 1,
        "stream priorities": any(stream.priority < 0 for stream in problem.streams),
        "streams of the scheduler's own": scenario.streams > 0,
        "streams with masks": any(stream.mask is not None for stream in problem.streams),
        "queues that take turns": shared
        and 0.0 < gpu.timing.queue_period_us < scenario.horizon_us
        and len(problem.streams) > gpu.channels,
        "several host threads": window is None and any(len(variant.threads) > 1 for variant in variants),
        "waits for events": any(op.kind in DEVICE_OPS and op.after for op in ops),
        "host waits for streams": any(op.kind is OpKind.SYNC_STREAM for op in ops),
        "host waits for events": any(op.kind is OpKind.SYNC_EVENT and op.after for op in ops),
        "graphs": any(op.kind is OpKind.GRAPH for op in recorded),
        "graphs with branches": any(node.branch > 0 for node in nodes),
        "copies in graphs": any(node.identity < 0 for node in nodes),
        "children": any(op.children for op in ops),
        "windows": window is not None,
        "windows of memory that is not known": window is not None
        and any(op.kind in DEVICE_OPS and None in (op.reads, op.writes) for op in ops),
        "windows that the application checks": window is not None and window.checked_by == "application",
        "hosts that only launch": any(t.host_us is not None for t in tenants),
        "programs captured into graphs": case.capture is not None,
        "persistent threads": case.task_us is not None,
        "tiles": any(op.tiles >= 0 for op in ops),
        "tiles of several slices": any(op.tiles >= 0 and problem.kernels[op.identity].kernel.grid[2] > 1 for op in ops),
        "kernels with forms": any(profile.forms for profile in problem.kernels),
        "SMs that hold fewer blocks than fit": any(
            p.block["residents"][0] < p.footprint.blocks_per_sm for p in problem.kernels
        ),
        "blocks with spread": any(case.spreads),
        "wrong profiles": scenario.profiles != ProfileError(),
        "more tenants than resident grids": shared and len(tenants) > gpu.resident_grids,
        "more than 8 tenants": len(tenants) > 8,
        "equal tenants": len(twins) < len(tenants),
        "tenants launched as graphs": any(t.launch == "graph" for t in tenants),
        "host copies": any(op.kind in (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST) for op in ops),
        "no host time": all(op.host_us == 0.0 for op in ops),
        "decision time": scenario.decision_us > 0.0,
        "cores": case.scenario.cores is not None,
        "hosts in one process": problem.host_contention > (0.0, 0.0) and len(tenants) > 1,
        "short launch queue": scenario.launch_depth <= 16,
        "look-ahead": scenario.lookahead > 1,
        "look-ahead above 4": scenario.lookahead > 4,
        "kernels that a cold L2 makes longer": problem.l2_matters,
        "programs that the L2 keeps": any(program.keeps for program in programs),
        "serving engines": any(program.engine is not None for program in programs),
        "variants": scenario.variation and any(len(p.variants) > 1 for p in programs),
        "after another episode": case.before > 0,
        "snapshot": case.snapshot is not None,
    }
    return _there(present)


def view_features(shown: ShownStep) -> set[str]:
    """What can be seen after a step."""
    pending, running, tenants = shown.view.pending, shown.view.running, shown.view.tenants
    resident = running.blocks_resident > 0
    return _there(
        {
            "kernels side by side": np.count_nonzero(resident) > 1,
            "several waves": (resident & (running.blocks_waiting > 0)).any(),
            "blocks that are being taken off": (resident & (running.preempting > 0)).any(),
            "preempted kernels pending": (pending.preempted > 0).any(),
            "pending launches wait for pending ones": (pending.launchable == 0).any(),
            "pending launches wait for unfinished ones": len(shown.view.dependencies) > 0,
            "pending children": (pending.parent >= 0).any(),
            "running children": (running.parent >= 0).any(),
            "running graphs": (running.nodes > 1).any() and resident.any(),
            "pending graphs": (pending.nodes > 1).any(),
            "partition set at this instant": not tenants.partitionable.all(),
            "illegal actions": shown.told.get("info", {}).get("illegal_actions", 0) > 0,
        }
    )


def timeline_features(timeline: Timeline, problem: Problem) -> tuple[set[str], Counter[str]]:
    """What happened, as far as the detail of ``timeline`` tells: features and counts."""
    kernels, ended_us = timeline.kernels.dict(), timeline.kernels.column("ended_us")
    blocks = [profile.kernel.blocks for profile in problem.kernels]
    decisions = Counter(DECISIONS[int(code)] for code in timeline.decisions.column("command"))
    counts = decisions + Counter(
        {
            "jobs completed": len(timeline.jobs),
            "jobs rejected": len(timeline.rejections),
            "copies finished": len(timeline.copies),
            "kernels finished": len(timeline.kernels),
            "blocks of finished kernels": sum(blocks[int(i)] for i in kernels["identity"]),
        }
    )
    own = [row for row, stream in enumerate(problem.streams) if stream.tenant < 0]
    windowed = problem.window is not None
    present = {
        "preempted kernels that finished": kernels["preemptions"].any(),
        "kernels in streams of the scheduler's own": not windowed and np.isin(kernels["stream"], own).any(),
        "nodes or children finished": (kernels["parent"] >= 0).any(),
        "rejected jobs": len(timeline.rejections) > 0,
        "kernels that overtake others in a window": windowed and _overtaking(timeline),
        "preempted kernels of a window that finished": windowed and kernels["preemptions"].any(),
        "rejected jobs with a window": windowed and len(timeline.rejections) > 0,
        "requests that lost their cache": len(timeline.requests) > 0 and timeline.requests.column("preemptions").any(),
        "several requests run": any(_overlapping(timeline, row) for row, p in enumerate(problem.programs) if p.engine),
        "urgent streams": (kernels["stream_priority"] < 0).any(),
        "kernels end at the same time": _ties(ended_us),
        "jobs arrive at the same time": _ties(timeline.jobs.column("arrived_us")),
        "kernels and copies end at the same time": _ties(ended_us, timeline.copies.column("ended_us")),
    }
    return _there(present) | set(decisions), counts


def _there(present: dict[str, Any]) -> set[str]:
    return {name for name, there in present.items() if there}


def _overtaking(timeline: Timeline) -> bool:
    """Whether a kernel of a tenant started before one that was issued earlier."""
    ids, tenants, started_us = (timeline.kernels.column(name) for name in ("id", "tenant", "started_us"))
    order = np.lexsort((ids, tenants))
    return bool(((np.diff(tenants[order]) == 0) & (np.diff(started_us[order]) < 0)).any())


def _overlapping(timeline: Timeline, tenant: int) -> bool:
    """Whether a job of a tenant was taken up before an earlier one had completed."""
    jobs = timeline.jobs.array[timeline.jobs.column("tenant") == tenant]
    jobs = jobs[np.argsort(jobs[:, 1])]
    return bool((jobs[1:, 3] < jobs[:-1, 4]).any())


def _ties(*times_us: NDArray[np.float64]) -> bool:
    times = np.concatenate(times_us)
    return len(np.unique(times)) < len(times)
