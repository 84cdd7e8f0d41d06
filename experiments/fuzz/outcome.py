"""What came of one case."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from gpusched_env.experiments.fuzz.case import Baseline, Case, Difference
from gpusched_env.experiments.fuzz.moves import Move
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scheduling.timeline import Timeline
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import DEVICE_OPS, OpKind

DECISIONS = ("launch commands", "preempt commands", "partition commands", "reject commands")
"""By code in the timeline."""


@dataclass
class Outcome:
    """One case on two devices."""

    difference: Difference | None = None
    moves: list[Move] = field(default_factory=list)
    """What was played, refused ones included."""
    counts: Counter[str] = field(default_factory=Counter)
    """Commands, kernels, blocks."""
    features: set[str] = field(default_factory=set)
    """What the case contains and what happened in it."""


def case_features(case: Case, problem: Problem) -> set[str]:
    """What a case contains."""
    scenario, gpu, tenants = case.scenario, problem.gpu, case.scenario.tenants
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
        "several host threads": any(len(variant.threads) > 1 for variant in variants),
        "waits for events": any(op.kind in DEVICE_OPS and op.after for op in ops),
        "host waits for streams": any(op.kind is OpKind.SYNC_STREAM for op in ops),
        "host waits for events": any(op.kind is OpKind.SYNC_EVENT and op.after for op in ops),
        "graphs": any(op.kind is OpKind.GRAPH for op in recorded),
        "graphs with branches": any(node.branch > 0 for node in nodes),
        "copies in graphs": any(node.identity < 0 for node in nodes),
        "children": any(op.children for op in ops),
        "tiles": any(op.tiles >= 0 for op in ops),
        "blocks with spread": any(case.spreads),
        "wrong profiles": scenario.profiles != ProfileError(),
        "more tenants than resident grids": shared and len(tenants) > gpu.resident_grids,
        "more than 8 tenants": len(tenants) > 8,
        "equal tenants": len(twins) < len(tenants),
        "tenants launched as graphs": any(t.launch == "graph" for t in tenants),
        "host copies": any(op.kind in (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST) for op in ops),
        "no host time": all(op.host_us == 0.0 for op in ops),
        "decision time": scenario.decision_us > 0.0,
        "short launch queue": scenario.launch_depth <= 16,
        "look-ahead": scenario.lookahead > 1,
        "look-ahead above 4": scenario.lookahead > 4,
        "variants": scenario.variation and any(len(p.variants) > 1 for p in programs),
        "after another episode": case.before > 0,
        "snapshot": case.snapshot is not None,
    }
    return {name for name, there in present.items() if there}


def view_features(view: View, features: set[str]) -> None:
    """Add what a view shows to ``features``."""
    resident = view.running.blocks_resident > 0
    if np.count_nonzero(resident) > 1:
        features.add("kernels side by side")
    if (resident & (view.running.blocks_waiting > 0)).any():
        features.add("several waves")
    if (resident & (view.running.preempting > 0)).any():
        features.add("blocks that are being taken off")
    if (view.pending.preempted > 0).any():
        features.add("preempted kernels pending")
    if (view.pending.launchable == 0).any():
        features.add("pending launches wait for pending ones")
    if len(view.dependencies):
        features.add("pending launches wait for unfinished ones")
    if (view.pending.parent >= 0).any():
        features.add("pending children")
    if (view.running.parent >= 0).any():
        features.add("running children")
    if (view.running.nodes > 1).any() and resident.any():
        features.add("running graphs")
    if (view.pending.nodes > 1).any():
        features.add("pending graphs")
    if not view.tenants.partitionable.all():
        features.add("partition set at this instant")


def timeline_features(timeline: Timeline, problem: Problem) -> tuple[set[str], Counter[str]]:
    """What happened, as far as the detail of ``timeline`` tells: features and counts."""
    features: set[str] = set()
    counts: Counter[str] = Counter()
    kernels, jobs = timeline.kernels.dict(), timeline.jobs.dict()
    counts["jobs completed"] = len(timeline.jobs)
    counts["jobs rejected"] = len(timeline.rejections)
    counts["copies finished"] = len(timeline.copies)
    counts["kernels finished"] = len(timeline.kernels)
    blocks = [profile.kernel.blocks for profile in problem.kernels]
    counts["blocks of finished kernels"] = sum(blocks[int(i)] for i in kernels["identity"])
    for code, times in zip(*np.unique(timeline.decisions.column("command"), return_counts=True), strict=True):
        counts[DECISIONS[int(code)]] = int(times)
        features.add(DECISIONS[int(code)])
    if kernels["preemptions"].any():
        features.add("preempted kernels that finished")
    own = {row for row, stream in enumerate(problem.streams) if stream.tenant < 0}
    if own & set(kernels["stream"].astype(int).tolist()):
        features.add("kernels in streams of the scheduler's own")
    if (kernels["parent"] >= 0).any():
        features.add("nodes or children finished")
    if len(timeline.rejections):
        features.add("rejected jobs")
    if (kernels["stream_priority"] < 0).any():
        features.add("urgent streams")
    if _ties(kernels["ended_us"]):
        features.add("kernels end at the same time")
    if _ties(jobs["arrived_us"]):
        features.add("jobs arrive at the same time")
    if _ties(np.concatenate([kernels["ended_us"], timeline.copies.column("ended_us")])):
        features.add("kernels and copies end at the same time")
    return features, counts


def _ties(times_us: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bool:
    return len(np.unique(times_us)) < len(times_us)
