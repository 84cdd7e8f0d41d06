"""Measurements of kernels that launch kernels: inputs and results as the CUDA sources read them, and the recording."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import msgspec
import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.measure.gpu import (
    LARGE_POOL,
    ApplicationTime,
    Burst,
    Input,
    LaunchCallTime,
    Measurements,
    MeasuringGpu,
    Overflow,
    Pool,
    SerialTime,
    read_recording,
    shipped_recording,
    struct,
)
from gpusched_env.games.child_launches.measure import child_launches as overflow
from gpusched_env.games.child_launches.measure import program
from gpusched_env.games.child_launches.measure.applications import (
    APPLICATIONS,
    NEVER,
    Application,
    ApplicationOnGpu,
    application,
    equal_threads,
    join,
    mandelbrot,
    search,
)
from gpusched_env.games.child_launches.measure.child_launches import LaunchPattern, most_at_once
from gpusched_env.games.child_launches.workload.planes import Window
from gpusched_env.games.child_launches.workload.suite import benchmark
from gpusched_env.workload.graphs import simple_graph
from tests.refusals import refused


def small_search() -> Application:
    """A path 0-1-2-3 with a leaf 4 at 1, from its end."""
    return search(simple_graph(5, np.array([0, 1, 2, 1]), np.array([1, 2, 3, 4])), 0, "path", 1)


def small_join() -> Application:
    return join(np.array([1, 0, 1, 3]), np.array([1, 1, 0, 2]), buckets=4, sampled=1, name="join", threshold=1)


def small_mandelbrot() -> Application:
    return mandelbrot(Window(-0.75 + 0.1j, 1.5), tiles=3, side=4, limit=40, name="set", threshold=100)


SMALL = (small_search, small_join, small_mandelbrot)


def test_a_search_has_its_levels_as_kernels() -> None:
    made = small_search()
    assert [order.tolist() for order in made.order] == [[0], [1], [2, 4], [3]]
    assert made.blank.tolist() == [0, -1, -1, -1, -1]
    assert made.expected.tolist() == [0, 1, 2, 3, 2]
    assert made.benchmark.child_launches(1) == 2


def test_a_join_writes_the_tuples_of_each_bucket_at_its_place() -> None:
    made = small_join()
    assert made.expected.tolist() == [0, 1, 2, 0, 1]
    assert {name: np.asarray(made.fields[name]).tolist() for name in ("first", "payload", "place")} == {
        "first": [0, 1, 3, 4, 4],
        "payload": [2, 0, 1, 3],
        "place": [0, 2, 3, 5],
    }


def run_items(made: Application) -> list[int]:
    """What the CUDA sources do, an item at a time, in Python."""
    fields, result = made.fields, made.blank.tolist()
    for own in (int(thread) for order in made.order for thread in order):
        if made.source == "search":
            first, neighbour = fields["first"], fields["neighbour"]
            for other in neighbour[first[own] : first[own + 1]]:
                if result[other] < 0:
                    result[other] = result[own] + 1
        elif made.source == "join":
            key = fields["probing"][own]
            bucket = key % fields["buckets"]
            begin, end = fields["first"][bucket : bucket + 2]
            for i in range(end - begin):
                if fields["key"][begin + i] == key:
                    result[fields["place"][own] + i] = fields["payload"][begin + i]
        else:
            side, tiles = fields["side"], fields["tiles"]
            for i in range(side**2):
                c = complex(
                    fields["real"][own % tiles * side + i % side], fields["imaginary"][own // tiles * side + i // side]
                )
                z, count = c, 1
                while count < fields["limit"] and abs(z) <= 2:
                    z, count = z * z + c, count + 1
                result[own * side**2 + i] = count
    return result


@pytest.mark.parametrize("small", SMALL)
def test_the_items_give_the_expected_result(small) -> None:
    made = small()
    assert run_items(made) == made.expected.tolist()


@pytest.mark.parametrize("small", SMALL)
def test_threads_have_the_work_of_the_benchmarks_kernels(small) -> None:
    made = small()
    for order, kernel in zip(made.order, made.benchmark.kernels, strict=True):
        assert made.work[order].tolist() == kernel.threads.work.tolist()


@pytest.mark.parametrize("small", SMALL)
def test_fields_are_those_of_the_cuda_struct(small) -> None:
    made = small()
    source = (resources.files("gpusched_env.games.child_launches.measure") / "applications.cu").read_text()
    body = re.search(rf"struct {made.source.capitalize()} {{(.*?)struct Thread", source, re.DOTALL)[1]
    declared = []
    for line in filter(None, map(str.strip, body.split(";"))):
        kind, names = re.fullmatch(r"(?:const )?(int|double)(\*? [\w, ]+)", line).groups()
        declared += [(name, f"{kind}*" if "*" in names else kind) for name in names.strip("* ").split(", ")]
    kinds = {"int32": "int*", "float64": "double*"}
    given = [(name, "int" if isinstance(v, int) else kinds[v.dtype.name]) for name, v in made.fields.items()]
    assert declared[:-2] == given
    assert [kind for _, kind in declared[-2:]] == ["int*", "int*"]
    assert declared[-1][0] == "order"


def test_a_struct_is_laid_out_as_in_c() -> None:
    class OnDevice:
        class data:
            ptr = 1 << 40

    packed = struct({"a": OnDevice, "count": 3, "b": OnDevice})
    assert packed.dtype.itemsize == 24
    assert packed.tolist() == (1 << 40, 3, 1 << 40)


def test_turns_are_those_of_the_longest_lane() -> None:
    made = small_search()
    assert made.turns(np.array([0, 1, 2], np.int32)) == 3
    assert made.turns(np.repeat(np.array([1, 0], np.int32), [1, 32])) == 4


def test_lanes_wait_for_the_longest_of_each_item() -> None:
    made = small_mandelbrot()
    tiles = np.array([0, 1, 3], np.int32)
    longest = made.expected.reshape(9, 16)[tiles].max(axis=0)
    assert made.turns(tiles) == longest.sum() > made.work[tiles].max()


def test_equal_threads_have_about_the_median_work() -> None:
    made = application("JOIN-uniform")
    drawn = made.work[equal_threads(made, 320)]
    assert len(drawn) == 320
    assert np.ptp(drawn) <= 4 < np.ptp(made.work)


def test_most_at_once() -> None:
    assert most_at_once(np.array([0, 1, 2, 5]), np.array([3, 4, 5, 9])) == 3
    assert most_at_once(np.array([], np.int64), np.array([], np.int64)) == 0


def test_there_are_kernels_for_some_benchmarks_only() -> None:
    with refused(InputError, "CUDA", "'AMR'"):
        application("AMR")


def test_inputs_are_the_benchmarks() -> None:
    """Not of JOIN-gaussian: the recorded one has no keys beyond the ends."""
    ours, theirs = application("JOIN-uniform").benchmark, benchmark("JOIN-uniform")
    assert ours.threshold == theirs.threshold
    assert ours.request_work.tolist() == theirs.request_work.tolist()


class TestShippedRecording:
    def test_it_has_every_application_flat_and_launching(self) -> None:
        recording = shipped_recording()
        assert recording.gpu == "NVIDIA H200"
        assert {row.application for row in recording.of(Input)} == set(APPLICATIONS)
        for name in APPLICATIONS:
            runs = [row for row in recording.of(ApplicationTime) if row.application == name]
            assert sum(row.threshold is None for row in runs) == 1
            assert {row.child_block for row in runs} == {None, 32, 64}
            assert {row.application for row in recording.of(SerialTime)} >= {name}
            assert all(0 < row.min_us <= row.median_us <= row.max_us for row in runs)

    @pytest.mark.parametrize("name", ["JOIN-uniform", "JOIN-gaussian"])
    def test_launches_are_those_of_the_input(self, name: str) -> None:
        made, recording = application(name), shipped_recording()
        (stated,) = [row for row in recording.of(Input) if row.application == name]
        assert (stated.work, stated.turns) == (made.benchmark.total_work, sum(map(made.turns, made.order)))
        launching = [
            row for row in recording.of(ApplicationTime) if row.application == name and row.threshold is not None
        ]
        assert [row.launches for row in launching] == [
            made.benchmark.child_launches(row.threshold) for row in launching
        ]

    def test_launches_that_find_no_room_are_refused(self) -> None:
        tries = shipped_recording().of(Overflow)
        assert all(row.outcome == "ended" and row.ran + sum(row.refused.values()) == row.requested for row in tries)
        assert {code for row in tries for code in row.refused} == {69}
        assert all(row.ran >= row.pool for row in tries)

    def test_at_most_128_children_run_at_once(self) -> None:
        bursts = shipped_recording().of(Burst)
        assert {row.resident for row in bursts if row.spin_us} == {128}
        assert max(row.resident for row in bursts) == 128

    def test_calls_by_lanes_are_complete(self) -> None:
        recording = shipped_recording()
        for pool in (2048, 1 << 16, LARGE_POOL):
            assert [row.lanes for row in recording.of(LaunchCallTime) if row.pool == pool] == list(range(1, 33))
        assert {row.pool for row in recording.of(Pool)} == {2048, 1 << 16, LARGE_POOL}

    def test_it_is_written_as_it_was_read(self) -> None:
        file = resources.files("gpusched_env.data") / "measurements" / "h200" / "dynamic_parallelism.json"
        assert shipped_recording().encoded() == file.read_bytes()


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"schema": "something"}')
    with refused(InputError, "measurement"):
        read_recording(path)


HUNG, FAILED = "import time; time.sleep(10_000)", "raise RuntimeError('no such launch')"


def outcomes(monkeypatch: pytest.MonkeyPatch, code: str) -> list[Overflow]:
    """Of one try whose process runs ``code``."""

    def started(pool: int, shape: LaunchPattern) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    monkeypatch.setattr(overflow, "_started", started)
    monkeypatch.setattr(overflow, "TRIES", ((2048, LaunchPattern(warps=65)),))
    return list(overflow.measured_overflow())


def test_a_try_that_hangs_is_killed_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow, "PATIENCE_S", 0.0)
    (row,) = outcomes(monkeypatch, HUNG)
    assert (row.outcome, row.requested, row.ran) == ("hung", 2080, 0)


def test_a_try_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow, "PATIENCE_S", 1e6)
    (row,) = outcomes(monkeypatch, FAILED)
    assert row.outcome == "RuntimeError: no such launch"


def test_a_try_that_ends_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow, "PATIENCE_S", 1e6)
    made = shipped_recording().of(Overflow)[3]
    assert outcomes(monkeypatch, f"print({msgspec.json.encode(made).decode()!r})") == [made]


def test_the_program_writes_what_it_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = shipped_recording()

    class Fake:
        def recording(self) -> Measurements:
            return msgspec.structs.replace(known, rows=[])

    def measured(gpu: Fake, part: str, seed: int) -> list[Pool]:
        return [Pool(pool=seed, set_us=1.0, bytes=len(part))]

    monkeypatch.setattr(program, "MeasuringGpu", Fake)
    monkeypatch.setattr(program, "_measured", measured)
    path = tmp_path / "measured.json"
    program.measure(path, seed=7)
    written = read_recording(path)
    assert written.gpu == known.gpu
    parts = (program.LAUNCHES, *APPLICATIONS, program.OVERFLOW)
    assert written.rows == [Pool(pool=7, set_us=1.0, bytes=len(part)) for part in parts]


def test_without_cupy_the_program_says_what_it_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with refused(SystemExit, "measuring", "[gpu]"):
        program.measure(tmp_path / "measured.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("small", SMALL)
def test_kernels_compute_the_expected_result(small) -> None:
    if not pytest.importorskip("cupy").is_available():
        pytest.skip("no GPU")
    there = ApplicationOnGpu(MeasuringGpu(), small())
    there.flat(2048)
    for threshold in (NEVER, 1, 0):
        assert there.launching(2048, threshold, 32).refused == 0
