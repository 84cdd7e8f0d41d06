"""Perfetto traces, read back with the format's own classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.report import save as perfetto
from gpusched_env.experiments.report.save import write_trace


class Events:
    """A trace's events by the path of their track's names, interned texts resolved."""

    def __init__(self, path: Path) -> None:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

        trace = Trace()
        trace.ParseFromString(path.read_bytes())
        names: dict[int, str] = {}
        arguments: dict[int, str] = {}
        tracks: dict[int, str] = {}
        self.slices: dict[str, list[tuple[int, int, str, dict[str, Any]]]] = defaultdict(list)
        self.instants: list[tuple[int, str]] = []
        self.counters: dict[str, list[tuple[int, float]]] = defaultdict(list)
        open_slices: dict[int, list[Any]] = defaultdict(list)
        for packet in trace.packet:
            names |= {entry.iid: entry.name for entry in packet.interned_data.event_names}
            arguments |= {entry.iid: entry.name for entry in packet.interned_data.debug_annotation_names}
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                above = tracks[track.parent_uuid] + "/" if track.HasField("parent_uuid") else ""
                tracks[track.uuid] = above + track.name
                continue
            event = packet.track_event
            place = tracks[event.track_uuid]
            if event.type == TrackEvent.Type.TYPE_COUNTER:
                self.counters[place].append((packet.timestamp, event.double_counter_value))
            elif event.type == TrackEvent.Type.TYPE_INSTANT:
                self.instants.append((packet.timestamp, names[event.name_iid]))
            elif event.type == TrackEvent.Type.TYPE_SLICE_BEGIN:
                args = {
                    arguments[note.name_iid]: getattr(note, note.WhichOneof("value"))
                    for note in event.debug_annotations
                }
                open_slices[event.track_uuid].append((packet.timestamp, names[event.name_iid], args))
            else:
                start, name, args = open_slices[event.track_uuid].pop()
                assert not open_slices[event.track_uuid], "slices of one track overlap"
                self.slices[place].append((start, packet.timestamp, name, args))
        assert not any(open_slices.values()), "a slice without an end"
        self.root = next(iter(tracks.values()))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Comparison, str], Events]:
    def written(comparison: Comparison, scheduler: str) -> Events:
        run = comparison.recorded(scheduler)
        assert run is not None
        write_trace(comparison, run, tmp_path / "trace")
        return Events(tmp_path / "trace")

    return written


Write = Callable[[Comparison, str], Events]


def test_streams_jobs_and_sms(comparison: Comparison, write: Write) -> None:
    events = write(comparison, "eager")
    assert events.root == "Toy, eager, seed 0"
    kernel = comparison.problem.kernels[comparison.problem.programs[1].variants[0][0].identity].kernel
    start, end, name, args = events.slices[f"{events.root}/streams/urgent"][1]
    assert (start, end, name) == (110_000, 150_000, kernel.name)
    assert args["job"] == 1
    assert args["grid"] == "×".join(map(str, kernel.grid))
    assert args["stream_priority"] == -1
    assert (args["stream"], args["parent_launch_id"]) == (1, -1)
    assert [s[:3] for s in events.slices[f"{events.root}/jobs/batch: in service"]][:1] == [(10_000, 30_000, "job 0")]
    assert [s[:2] for s in events.slices[f"{events.root}/jobs/batch: waiting"]][:1] == [(0, 10_000)]
    sms = {place: slices for place, slices in events.slices.items() if "/SMs" in place}
    assert {place.rsplit("/", 1)[1] for place in sms} == {"SM 0", "SM 1"}
    # Both tenants share an SM at a time: two lanes of one name, 4 jobs each.
    assert all(len(slices) == 8 for slices in sms.values())


def test_counters_and_commands(comparison: Comparison, write: Write) -> None:
    events = write(comparison, "eager")
    busy = events.counters[f"{events.root}/busy SMs"]
    assert busy[:2] == [(10_000, 2.0), (30_000, 0.0)]
    assert [value for _, value in busy] == [2.0, 0.0] * 4
    assert events.counters[f"{events.root}/power"][0] == (10_000, 150.0)
    assert events.instants == [(0, "launch")]
    assert write(comparison, "patient").instants == []


def test_a_long_trace_is_cut_and_says_so(comparison: Comparison, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perfetto, "MAX_KERNELS", 4)
    events = write(comparison, "patient")
    # The fifth kernel starts at 210 us of 400.
    assert events.root == "Toy, patient, seed 0 (first 0.2 ms of 0.4 ms)"
    assert sum(len(s) for place, s in events.slices.items() if "/streams/" in place) == 4
    assert max(time for time, _ in events.counters[f"{events.root}/busy SMs"]) <= 210_000
