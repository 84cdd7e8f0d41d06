"""Kernels' times from a recording with one launch at a time, for programs whose streams overlap."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpusched_env.errors import InputError
from gpusched_env.experiments.importing import import_trace
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers.combining import with_serial_times
from gpusched_env.workload.workload import OpKind, Workload, read_workload
from tests.refusals import refused
from tests.workload.kineto_traces import Event, call, imported, kernel, mark, write


def program(durations_us: tuple[float, float, float], starts_us: tuple[float, float, float]) -> list[Event]:
    """Two kernels on two streams, and a third behind the first; the first and the third are the same kernel."""
    events = [mark(0.0, 200.0)]
    for number, (stream, start, duration) in enumerate(zip((7, 13, 7), starts_us, durations_us, strict=True), start=1):
        events.append(call("cudaLaunchKernel", 3.0 * number, 2.0, number))
        grid = {"grid": [132, 1, 1]} if stream == 13 else {}
        events.append(kernel(start, duration, number, stream=stream, **grid))
    return [*events, call("cudaDeviceSynchronize", 14.0, 100.0, 9)]


BESIDE = program((30.0, 40.0, 10.0), (10.0, 11.0, 60.0))
"""The first two run side by side."""
SERIAL = program((20.0, 25.0, 12.0), (10.0, 40.0, 80.0))


def durations(workload: Workload) -> list[float]:
    (variant,) = workload.variants
    return [op.duration_us for op in variant.ops if op.kind is OpKind.KERNEL]


def test_kernels_take_as_long_as_one_at_a_time(tmp_path: Path, gpu: GpuSpec) -> None:
    workload, serial = imported(tmp_path, BESIDE, gpu), imported(tmp_path, SERIAL, gpu)
    assert durations(workload) == [30.0, 40.0, 10.0]
    found = with_serial_times(workload, serial)
    assert durations(found) == [20.0, 25.0, 12.0]
    assert [kernel.duration_us for kernel in found.kernels] == [16.0, 25.0], "means of a kernel's launches"
    hosts = [[op.host_us for op in each.variants[0].ops] for each in (found, workload)]
    assert hosts[0] == hosts[1]
    assert found.source.endswith("times of kernels from a recording with one launch at a time")


def test_a_time_is_the_median_over_iterations(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, BESIDE, gpu)
    times = [with_serial_times(workload, imported(tmp_path, program((us, us, us), (10.0, 90.0, 150.0)), gpu))
             for us in (1.0, 9.0, 2.0)]  # fmt: skip
    three = replace(times[0], variants=tuple(each.variants[0] for each in times))
    assert durations(with_serial_times(workload, three)) == [2.0, 2.0, 2.0]


def test_another_program_is_told(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, BESIDE, gpu)
    shorter = imported(tmp_path, [event for event in SERIAL if event.get("args", {}).get("correlation") != 3], gpu)
    message = r"variants\[0\]: its kernel 2 is .* of \(264, 1, 1\) blocks, in the recording one at a time it is none"
    with pytest.raises(InputError, match=message):
        with_serial_times(workload, shorter)
    swapped = replace(workload, kernels=(workload.kernels[1], workload.kernels[0]))
    with refused(InputError, "kernel 0", "CUDA_LAUNCH_BLOCKING=1"):
        with_serial_times(workload, swapped)


def test_the_command_takes_it(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.json", events) for name, events in (("beside", BESIDE), ("serial", SERIAL))]
    out = tmp_path / "mine.workload.json"
    import_trace(files[0], out, serial=files[1])
    assert durations(read_workload(out)) == [20.0, 25.0, 12.0]
