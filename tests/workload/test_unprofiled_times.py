"""Host times without the profiler: told, found in the file, or warned about."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers import import_trace, summarise
from tests.refusals import refused
from tests.workload.kineto_traces import call, kernel, mark, write


def trace(path: Path, device_us: float = 4.0, **entries: Any) -> Path:
    """Ten launches of 10 us each under the profiler: 103 us, of which the host determines 100."""
    events = [mark(0.0, 200.0)]
    for i in range(10):
        events += [call("cudaLaunchKernel", 10.0 * i + 5.0, 5.0, i)]
        events += [kernel(max(10.0 * i + 12.0, 12.0 + i * (device_us + 1.0)), device_us, i)]
    end = events[-1]["ts"] + device_us
    events.append(call("cudaDeviceSynchronize", 100.0, end + 3.0 - 100.0, 99))
    write(path, events)
    document = json.loads(path.read_text()) | entries
    path.write_text(json.dumps(document))
    return path


def host_us(workload: Any) -> float:
    return sum(op.host_us for op in workload.variants[0].ops)


def test_host_times_are_scaled_to_the_time_that_is_told(tmp_path: Path, gpu: GpuSpec) -> None:
    path = trace(tmp_path / "net.json")
    assert host_us(import_trace(path, gpu)) == pytest.approx(100.0, abs=3.0)
    for told in (60.0, 70.0, 250.0):
        workload = import_trace(path, gpu, iteration_us=told)
        assert summarise(workload, gpu).alone_us == pytest.approx(told, abs=0.1)
        assert (workload.iteration_us, workload.profiled) == ((told,), False)
        assert summarise(workload, gpu).caution == ""


def test_the_file_can_hold_an_unprofiled_measurement(tmp_path: Path, gpu: GpuSpec) -> None:
    for given, kept in (([72.0, 70.0, 71.0], (72.0, 70.0, 71.0)), (70.0, (70.0,))):
        workload = import_trace(trace(tmp_path / "net.json", gpusched_iteration_us=given), gpu)
        assert workload.iteration_us == kept
        assert summarise(workload, gpu).alone_us == pytest.approx(71.0, abs=1.1)
    told = import_trace(tmp_path / "net.json", gpu, iteration_us=80.0)
    assert told.iteration_us == (80.0,), "what is told counts"


def test_a_profiler_that_slows_the_host_by_more_than_two_is_believed(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = import_trace(trace(tmp_path / "net.json", device_us=1.0), gpu, iteration_us=35.0)
    assert summarise(workload, gpu).alone_us == pytest.approx(35.0, abs=0.1)
    assert host_us(workload) < 35.0


def test_where_the_device_decides_the_host_is_taken_to_be_twice_as_fast(tmp_path: Path, gpu: GpuSpec) -> None:
    path = trace(tmp_path / "net.json", device_us=30.0)
    alone_us = summarise(import_trace(path, gpu), gpu).alone_us
    workload = import_trace(path, gpu, iteration_us=0.98 * alone_us)
    assert host_us(workload) == pytest.approx(0.5 * host_us(import_trace(path, gpu)), rel=0.02)
    impossible = import_trace(path, gpu, iteration_us=100.0)
    assert "should take 0.1 ms without the profiler, but takes 0.3" in summarise(impossible, gpu).caution


def test_without_any_the_summary_warns_and_says_by_how_much(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = import_trace(trace(tmp_path / "net.json"), gpu)
    assert workload.profiled
    assert "host times as under the profiler" in workload.source
    caution = summarise(workload, gpu).caution
    # 0.5 and 0.77 of 100 us on the host, and 9 us from the last launch to the end of the synchronisation.
    assert "may take 0.059 to 0.086 ms rather than 0.109 ms" in caution
    assert "--iteration-us, or gpusched_iteration_us in the file" in caution


@pytest.mark.parametrize("given", ["soon", [1.0, -2.0], [True], [None], float("inf")])
def test_wrong_measurements_name_the_file_and_the_entry(tmp_path: Path, gpu: GpuSpec, given: Any) -> None:
    path = trace(tmp_path / "net.json")
    text = path.read_text().replace("{", f'{{"gpusched_iteration_us": {json.dumps(given)}, ', 1)
    path.write_text(text.replace("Infinity", "1e999"))  # refused as JSON
    with pytest.raises(InputError, match=r"net\.json: (gpusched_iteration_us has|Number out of range)"):
        import_trace(path, gpu)
    with refused(InputError, "iteration_us is -1"):
        import_trace(trace(path), gpu, iteration_us=-1.0)
