"""Problems made from others: other profiles told, other kernels, another way of launching, Stream-K."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec
import numpy as np

from gpusched_env.hardware.occupancy import BlockFootprint, block_record, gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.launching import Capture, as_tasks, captured, check_plain, windowed
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError, Profiles, told_program
from gpusched_env.scenarios.profiles import graph_duration_us, graph_profile
from gpusched_env.scenarios.program import HostOp, JobProgram, branches, with_graphs_opened
from gpusched_env.scenarios.tenant_program import Mask, Stream
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile, profile_kernel


def with_window(problem: Problem, window: KernelWindow | None) -> Problem:
    """The problem with launches that pass ``window``, or with streams that keep their order.

    Raises:
        InputError: a tenant's program has no place in a window.
    """
    if window == problem.window:
        return problem
    in_order = problem.unwindowed or problem
    return in_order if window is None else in_order.once(_through_window, window)


def beneath_window(problem: Problem, change: Callable[[Problem], Problem]) -> Problem:
    """The problem with a change to what it is while streams keep their order: what windows do comes after it."""
    return with_window(change(problem.unwindowed or problem), problem.window)


def with_profiles(problem: Problem, profiles: Profiles) -> Problem:
    """The problem with other profiles told, those of a measurement stage for example."""
    return beneath_window(problem, lambda in_order: _told(in_order, profiles))


def with_profile_error(problem: Problem, error: ProfileError) -> Problem:
    """The problem with this error in the true profiles, as if the scenario said so."""

    def wrong(in_order: Problem) -> Problem:
        told = _told(in_order, in_order.true_profiles.distorted(error))
        return replace(told, scenario=msgspec.structs.replace(told.scenario, profiles=error))

    return beneath_window(problem, wrong)


def _told(problem: Problem, profiles: Profiles) -> Problem:
    true_us = problem.true_profiles.duration_us.tolist()
    programs = tuple(told_program(program, true_us, profiles.duration_us) for program in problem.programs)
    return replace(problem, profiles=profiles, programs=programs)


def with_kernels(problem: Problem, kernels: Mapping[int, Kernel]) -> Problem:
    """The problem with other kernels in place of some, by identity; the problem's GPU is that of their recording.

    Raises:
        InputError: a kernel does not fit on an SM.
    """
    return beneath_window(problem, lambda in_order: _with_kernels(in_order, kernels)) if kernels else problem


def _with_kernels(problem: Problem, kernels: Mapping[int, Kernel]) -> Problem:
    gpu = problem.gpu
    profiles = [
        profile_kernel(kernels[identity], gpu, gpu, physics=problem.scenario.physics)
        if identity in kernels
        else profile
        for identity, profile in enumerate(problem.kernels)
    ]
    graphs = list(problem.graphs)
    for op in (op for program in problem.programs for job in program.variants for op in job if op.nodes):
        row = op.identity - len(profiles)
        graphs[row] = graph_profile(graphs[row].name, op.nodes, profiles, gpu)
    return replace(problem, kernels=tuple(profiles), graphs=tuple(graphs))


def with_durations(problem: Problem, durations_us: Mapping[int, float]) -> Problem:
    """The problem with other true durations of some kernels alone on its GPU, by identity; what is told of them stays.

    Raises:
        InputError: a duration is too short for its kernel's blocks.
    """

    def change(in_order: Problem) -> Problem:
        kernels = {
            identity: msgspec.structs.replace(in_order.kernels[identity].kernel, duration_us=us)
            for identity, us in durations_us.items()
        }
        return replace(_with_kernels(in_order, kernels), profiles=in_order.told)

    return beneath_window(problem, change) if durations_us else problem


def in_real_time(problem: Problem) -> Problem:
    """The problem for a real GPU: nothing that this and the host's own work take is simulated. Always the same one."""
    return problem.once(_in_real_time)


def _in_real_time(problem: Problem) -> Problem:
    timing = msgspec.structs.replace(
        problem.gpu.timing,
        launch_latency_us=0.0,
        stream_gap_us=0.0,
        event_latency_us=0.0,
        sync_latency_us=0.0,
        queue_period_us=0.0,
        partition_change_us=0.0,
        drain_ack_us=0.0,
    )
    window = problem.window and msgspec.structs.replace(problem.window, sync_us=0.0)
    changed = msgspec.structs.replace(problem.scenario, decision_us=0.0, window=window)
    return replace(problem, scenario=changed, gpu=msgspec.structs.replace(problem.gpu, timing=timing))


def _through_window(problem: Problem, window: KernelWindow) -> Problem:
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
        unwindowed=problem,
    )


def masked_streams(problem: Problem, masks: tuple[Mask | None, ...]) -> Problem:
    """The problem with streams of the scheduler's own, one for each of these masks, instead of those that it has."""
    streams = [stream for stream in problem.streams if stream.tenant >= 0]
    streams += [Stream(-1, 0, mask=mask) for mask in masks]
    scenario = msgspec.structs.replace(problem.scenario, streams=len(masks))
    return replace(problem, scenario=scenario, streams=tuple(streams))


def captured_graphs(problem: Problem, capture: Capture) -> Problem:
    """The problem with what is launched between two synchronisations as one CUDA graph.

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
    """The problem with kernels whose blocks are tasks of one that stays on the GPU."""
    return replace(problem, kernels=as_tasks(problem.kernels, problem.gpu, task_us))


def opened_graphs(problem: Problem) -> Problem:
    """The problem with the kernels of graphs as launches of their own."""
    own = [stream for stream in problem.streams if stream.tenant < 0]
    streams = [stream for stream in problem.streams if stream.tenant >= 0]
    programs = []
    for row, program in enumerate(problem.programs):
        spare = range(len(streams), len(streams) + max(branches(job) for job in program.variants) - 1)
        streams += [Stream(row, 0) for _ in spare]
        variants = tuple(with_graphs_opened(job, problem.gpu, spare) for job in program.variants)
        programs.append(replace(program, variants=variants))
    return replace(problem, streams=(*streams, *own), programs=tuple(programs))


ACCUMULATOR_BYTES = 4


def stream_k(problem: Problem) -> Problem:
    """The problem with its matrix products divided evenly: kernels that need tiles or whose tiles are needed.

    Convolutions, whose steps are those of a filter, stay as they are. Nobody's tiles can be synchronised then.
    """
    jobs = [job for program in problem.programs for job in program.variants]
    products = {identity for job in jobs for identity in _products(job)}
    kernels = tuple(
        divided_evenly(profile, problem.gpu) if identity in products else profile
        for identity, profile in enumerate(problem.kernels)
    )
    programs = tuple(
        replace(program, variants=tuple(_in_order(job) for job in program.variants)) for program in problem.programs
    )
    return replace(problem, kernels=kernels, programs=programs)


def _products(job: JobProgram) -> set[int]:
    """Identities of the matrix products of a job."""
    marked = {op.mark: op for op in job if op.mark >= 0}
    pairs = [(marked[op.tiles], op) for op in job if op.tiles >= 0 and op.needs.steps == 1]
    return {op.identity for pair in pairs for op in pair}


def _in_order(job: JobProgram) -> JobProgram:
    """A job whose kernels wait for whole producers."""
    ops: list[HostOp] = [replace(op, tiles=-1) if op.tiles >= 0 else op for op in job]
    return replace(job, ops=tuple(ops))


def divided_evenly(profile: KernelProfile, gpu: GpuSpec) -> KernelProfile:
    """A kernel with a block a slot, each of which does an equal share of the work and one fix-up; itself, where its
    waves are whole."""
    print_, own, blocks = profile.footprint, profile.block[0], profile.kernel.blocks
    slots = gpu.sms * print_.blocks_per_sm
    if blocks % slots == 0:
        return profile
    share = blocks / slots
    latency_us = float(own["latency_us"]) * share + fix_up_us(print_, gpu)
    block = block_record(print_, latency_us, own["rho"], own["wait"], own["dram_bytes"] * share, own["spread"])
    duration_us = float(solo_duration_us(gpu_record(gpu)[0], block[0], slots, print_.blocks_per_sm))
    kernel = msgspec.structs.replace(profile.kernel, grid=(slots, 1, 1), duration_us=duration_us)
    sms = min(gpu.sms, slots)
    return replace(profile, kernel=kernel, block=block, duration_us=duration_us, sms=sms, forms=())


def fix_up_us(print_: BlockFootprint, gpu: GpuSpec) -> float:
    """What it takes to write a partial tile and to read one, when all slots do.

    A partial tile is as large as a block's registers, which hold its sums.
    """
    return 2.0 * ACCUMULATOR_BYTES * print_.registers * gpu.sms * print_.blocks_per_sm / gpu.dram_bytes_per_us
