"""Importing what a simulated profiler saw gives back a program that runs the same."""

import statistics

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.hardware.specs import GpuProduct, GpuSpec, load_gpu
from gpusched_env.workload.alone import AloneOp
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.importers.build import LEAST_FACTOR, build_workload
from gpusched_env.workload.importers.recording import DeviceEvent, HostCall, LaunchShape, OrderCall, Recording
from gpusched_env.workload.workload import OpKind, Variant

GPU = load_gpu("h100-sxm")
SHAPE = LaunchShape((64, 1, 1), (128, 1, 1), 32, 0)
Step = tuple[OpKind, float, float]

host_us = st.floats(0.1, 50.0)
device_us = st.floats(0.5, 80.0)
steps = st.one_of(
    st.tuples(
        st.sampled_from([OpKind.KERNEL, OpKind.KERNEL, OpKind.MEMSET, OpKind.COPY_TO_DEVICE]), host_us, device_us
    ),
    st.tuples(st.just(OpKind.SYNC), host_us, st.just(0.0)),
)
programs = st.lists(steps, max_size=40).map(
    lambda middle: [(OpKind.KERNEL, 5.0, 4.0), *middle, (OpKind.SYNC, 1.0, 0.0)]
)


def run_alone(program: list[Step], gpu: GpuSpec, host_scale: float = 1.0) -> tuple[float, list[float], list[float]]:
    """When the host is done, and start and end of each device operation."""
    ops = [AloneOp(*step, gap_us=gpu.timing.stream_gap_us) for step in program]
    played = IdleGpu(gpu).play([ops], host_scale)
    spans = [span for parts in played.spans[0] for span in parts]
    return played.host_us, [start for start, _ in spans], [end for _, end in spans]


def record(program: list[Step], unprofiled_us: tuple[float, ...] = (), gpu: GpuSpec = GPU) -> Recording:
    """What a profiler without overhead sees of ``program`` alone on ``gpu``."""
    latencies = gpu.timing
    _, starts, ends = run_alone(program, gpu)
    launches = iter(zip(starts, ends, strict=True))
    events, syncs = [], []
    clock, last_end = 1000.0, 0.0
    for kind, spent_us, _ in program:
        called = clock + 0.5 * spent_us
        clock += spent_us
        if kind is OpKind.SYNC:
            called = clock
            clock = max(clock, last_end + latencies.sync_latency_us)
            syncs.append(OrderCall(HostCall("cudaStreamSynchronize", called, clock - called), OpKind.SYNC_STREAM))
        else:
            start, end = (1000.0 + time for time in next(launches))
            last_end = end
            shape = SHAPE if kind is OpKind.KERNEL else None
            launch = HostCall("launch", called, clock - called)
            size = 0 if shape else 16
            events.append(DeviceEvent(kind, kind.name, start, end - start, 7, launch, shape=shape, bytes=size))
    return Recording(
        name="simulated",
        origin="simulated",
        recorder="test",
        gpu=GpuProduct(),
        events=tuple(events),
        orders=tuple(syncs),
        iterations=(HostCall("iteration", 1000.0, clock - 1000.0 + 1.0),),
        unprofiled_us=unprofiled_us,
    )


def replay(variant: Variant, gpu: GpuSpec = GPU) -> tuple[float, list[float], list[float]]:
    return run_alone([(op.kind, op.host_us, op.duration_us) for op in variant.ops], gpu)


@given(programs)
def test_a_recorded_program_replays_with_the_same_times(program: list[Step]) -> None:
    workload = build_workload(record(program), GPU)
    (variant,) = workload.variants
    assert [op.kind for op in variant.ops] == [kind for kind, _, _ in program]
    length, starts, ends = run_alone(program, GPU)
    again, starts_again, ends_again = replay(variant)
    # Every operation's times are rounded to 1 ns.
    rounding = 1e-3 * (len(program) + 1)
    assert again == pytest.approx(length, abs=rounding)
    assert starts_again == pytest.approx(starts, abs=rounding)
    assert ends_again == pytest.approx(ends, abs=rounding)
    assert workload.iteration_us[0] == pytest.approx(length, abs=rounding)


@given(programs, st.floats(LEAST_FACTOR, 2.0))
def test_host_times_are_scaled_to_the_wall_time_without_profiler(program: list[Step], factor: float) -> None:
    target = run_alone(program, GPU, factor)[0]
    workload = build_workload(record(program, (target - 3.0, target, target + 9.0)), GPU)
    assert statistics.median(workload.iteration_us) == pytest.approx(target, abs=1e-3)
    assert replay(workload.variants[0])[0] == pytest.approx(target, abs=1e-3 * (len(program) + 1))


def test_a_device_bound_iteration_keeps_a_plausible_host() -> None:
    program = [*[(OpKind.KERNEL, 10.0, 100.0)] * 20, (OpKind.SYNC, 1.0, 0.0)]
    workload = build_workload(record(program, (1500.0,)), GPU)
    # The kernels alone take 2 ms: no host is fast enough, and 1.5 ms says nothing of it.
    assert {op.host_us for op in workload.variants[0].ops[:-1]} == {10.0 * LEAST_FACTOR}


def test_waiting_uses_the_latency_of_the_gpu() -> None:
    slow = msgspec.structs.replace(GPU, timing=msgspec.structs.replace(GPU.timing, sync_latency_us=25.0))
    program = [(OpKind.KERNEL, 5.0, 40.0), (OpKind.SYNC, 2.0, 0.0), (OpKind.KERNEL, 7.0, 3.0), (OpKind.SYNC, 1.0, 0.0)]
    ops = build_workload(record(program, gpu=slow), slow).variants[0].ops
    assert [op.host_us for op in ops] == [5.0, 2.0, 7.0, 1.0]
    # Read with a shorter latency, the rest of the wait is the host's time before the next launch.
    ops = build_workload(record(program, gpu=slow), GPU).variants[0].ops
    assert [op.host_us for op in ops] == [5.0, 2.0, 7.0 + 25.0 - GPU.timing.sync_latency_us, 1.0]
