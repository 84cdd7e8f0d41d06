"""Problems adapted to a scheduler: how its launches are made, what they pass, and what it may do.

:class:`~gpusched_env.scenarios.problem.Problem` has a method for each; these make the problem, and those keep it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from gpusched_env.scenarios.capture import Capture, captured
from gpusched_env.scenarios.graph_profile import graph_duration_us, graph_profile
from gpusched_env.scenarios.persistent import as_tasks
from gpusched_env.scenarios.profile_error import Profiles, told_program
from gpusched_env.scenarios.program import branches, with_graphs_opened
from gpusched_env.scenarios.scenario import CommandName, Contexts
from gpusched_env.scenarios.stream import Stream
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.scenarios.windowed import check_plain, windowed
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import profile_kernel

if TYPE_CHECKING:
    from gpusched_env.scenarios.problem import Problem


def told(problem: Problem, profiles: Profiles) -> Problem:
    """With other profiles told."""
    true_us = problem.true_profiles.duration_us.tolist()
    programs = tuple(told_program(program, true_us, profiles.duration_us) for program in problem.programs)
    return replace(problem, profiles=profiles, programs=programs)


def offered(problem: Problem, contexts: Contexts, commands: tuple[CommandName, ...], decision_us: float) -> Problem:
    """With other contexts and commands, and decisions that take ``decision_us``."""
    changed = msgspec.structs.replace(problem.scenario, contexts=contexts, commands=commands, decision_us=decision_us)
    return replace(problem, scenario=changed)


def with_kernels(problem: Problem, kernels: Mapping[int, Kernel]) -> Problem:
    """With other kernels in place of some, by identity; the problem's GPU is that of their recording.

    Raises:
        InputError: a kernel does not fit on an SM.
    """
    if not kernels:
        return problem
    if problem.plain is not None:
        return with_kernels(problem.plain, kernels).with_window(problem.window)
    gpu = problem.gpu
    profiles = [
        profile_kernel(kernels[identity], gpu, gpu) if identity in kernels else profile
        for identity, profile in enumerate(problem.kernels)
    ]
    graphs = list(problem.graphs)
    for op in (op for program in problem.programs for job in program.variants for op in job if op.nodes):
        row = op.identity - len(profiles)
        graphs[row] = graph_profile(graphs[row].name, op.nodes, profiles, gpu)
    return replace(problem, kernels=tuple(profiles), graphs=tuple(graphs))


def own_processes(problem: Problem) -> Problem:
    """With hosts that do not slow each other."""
    return replace(
        problem, scenario=msgspec.structs.replace(problem.scenario, host_contention=0.0, waiting_contention=0.0)
    )


def in_real_time(problem: Problem) -> Problem:
    """With latencies and host times of decisions that are not simulated: a real GPU and host take theirs."""
    timing = msgspec.structs.replace(
        problem.gpu.timing,
        launch_latency_us=0.0,
        stream_gap_us=0.0,
        event_latency_us=0.0,
        sync_latency_us=0.0,
        partition_change_us=0.0,
        drain_ack_us=0.0,
    )
    window = problem.window and msgspec.structs.replace(problem.window, sync_us=0.0)
    changed = msgspec.structs.replace(problem.scenario, decision_us=0.0, window=window)
    return replace(problem, scenario=changed, gpu=msgspec.structs.replace(problem.gpu, timing=timing))


def with_slices_of(problem: Problem, slice_us: float) -> Problem:
    """With slices of ``slice_us`` where contexts take turns."""
    timing = msgspec.structs.replace(problem.gpu.timing, slice_us=slice_us)
    return replace(problem, gpu=msgspec.structs.replace(problem.gpu, timing=timing))


def masked_launches(problem: Problem) -> Problem:
    """With launches that carry their SMs, so that naming these takes no host time."""
    timing = msgspec.structs.replace(problem.gpu.timing, partition_change_us=0.0)
    return replace(problem, gpu=msgspec.structs.replace(problem.gpu, timing=timing))


def through_window(problem: Problem, window: KernelWindow) -> Problem:
    """With launches that pass a window, of a problem whose streams keep their order.

    Raises:
        InputError: a tenant's program has no place in a window.
    """
    programs = []
    for program in problem.programs:
        for job in program.variants:
            check_plain(job, f"tenant {program.tenant.name}: a window")
        variants = tuple(windowed(job, window) for job in program.variants)
        programs.append(replace(program, variants=variants))
    timing = msgspec.structs.replace(problem.gpu.timing, launch_latency_us=window.launch_us)
    streams = [replace(stream, windowed=True) for stream in problem.streams if stream.tenant >= 0]
    return replace(
        problem,
        scenario=msgspec.structs.replace(
            problem.scenario, window=window, lookahead=window.size, launch_depth=window.size, streams=window.streams
        ),
        gpu=msgspec.structs.replace(problem.gpu, timing=timing),
        streams=(*streams, *(Stream(-1, 0) for _ in range(window.streams))),
        programs=tuple(programs),
        plain=problem,
    )


def captured_graphs(problem: Problem, capture: Capture) -> Problem:
    """With what is launched between two synchronisations as one CUDA graph.

    Raises:
        InputError: a tenant's program cannot be captured.
    """
    graphs = list(problem.graphs)
    told_us: list[float] = []
    kernel_us = problem.told.duration_us.tolist()
    programs = []
    for program in problem.programs:
        variants = []
        for job in program.variants:
            check_plain(job, f"tenant {program.tenant.name}: capture into graphs")
            made = captured(job, capture, problem.gpu, len(problem.kernels) + len(graphs))
            for g, nodes in enumerate(op.nodes for op in made.ops if op.nodes):
                graphs.append(graph_profile(f"{program.workload.name} graph {g}", nodes, problem.kernels, problem.gpu))
                told_us.append(graph_duration_us(nodes, kernel_us, problem.gpu))
            variants.append(made)
        programs.append(replace(program, variants=tuple(variants)))
    told = problem.profiles and problem.profiles.followed_by(told_us)
    gaps_us = np.concatenate([problem.gaps_us, np.zeros(len(told_us))])
    return replace(problem, graphs=tuple(graphs), gaps_us=gaps_us, programs=tuple(programs), profiles=told)


def persistent_threads(problem: Problem, task_us: float) -> Problem:
    """With kernels whose blocks are tasks of one that stays on the GPU."""
    return replace(problem, kernels=as_tasks(problem.kernels, problem.gpu, task_us))


def opened_graphs(problem: Problem) -> Problem:
    """With the kernels of graphs as launches of their own."""
    own = [stream for stream in problem.streams if stream.tenant < 0]
    streams = [stream for stream in problem.streams if stream.tenant >= 0]
    programs = []
    for row, program in enumerate(problem.programs):
        spare = range(len(streams), len(streams) + max(branches(job) for job in program.variants) - 1)
        streams += [Stream(row, 0) for _ in spare]
        variants = tuple(with_graphs_opened(job, problem.gpu, spare) for job in program.variants)
        programs.append(replace(program, variants=variants))
    return replace(problem, streams=(*streams, *own), programs=tuple(programs))
