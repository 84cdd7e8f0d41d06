"""The folder of a comparison: report, tables, Perfetto traces and ``result.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackDescriptor, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from gpusched_env.episodes.session import MEANINGS
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.frames import frame_of_jobs, frame_of_kernels
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.files import RESULT, TRACE_SUFFIX, encoded, file_name
from gpusched_env.experiments.report.page import report_html
from gpusched_env.experiments.report.result import kept_name, result_of, sha256
from gpusched_env.scheduling.commands import COMMANDS
from gpusched_env.scheduling.timeline import Columns

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


MAX_KERNELS = 50_000
"""A trace ends with this many kernels: some 10 MB, which viewers open at once."""
MAX_RESIDENCIES = 30_000
"""Slices on the SMs' tracks, likewise."""
_SEQUENCE = 1
_ROOT, _JOBS, _STREAMS, _SMS, _BUSY, _POWER, _DECISIONS = range(1, 8)
_FIRST_FREE = 100


def write_trace(comparison: Comparison, run: Run, path: Path) -> None:
    """Write the recorded episode ``run`` (with a timeline of detail ``kernels`` or more) to ``path``."""
    with path.open("wb") as file:
        _Writer(comparison, run, StreamingTraceProtoBuilder(file)).write()


class _Lanes:
    """Tracks of one name, which viewers show as one: slices that overlap without nesting need several."""

    def __init__(self, name: str, parent: int) -> None:
        self.name = name
        self.parent = parent
        self.until_us: dict[int, float] = {}

    def free_at(self, time_us: float) -> int | None:
        """A track whose last slice has ended."""
        return next((track for track, until in self.until_us.items() if until <= time_us), None)


class _Writer:
    """Turns one timeline into packets."""

    def __init__(self, comparison: Comparison, run: Run, builder: Any) -> None:
        assert run.timeline is not None
        self._comparison = comparison
        self._run = run
        self._timeline = run.timeline
        self._builder = builder
        self._next_track = _FIRST_FREE
        self._kernels = [profile.kernel for profile in comparison.problem.kernels]
        self._names: dict[str, int] = {}
        self._arguments: dict[str, int] = {}

    def write(self) -> None:
        kernels = self._timeline.kernels.array
        kernels = kernels[np.argsort(kernels[:, 6], kind="stable")]
        # A kernel that starts after the cut would overlap nothing that is shown: end every track there.
        self._until_us = float(kernels[MAX_KERNELS, 6]) if len(kernels) > MAX_KERNELS else np.inf
        scenario = self._comparison.problem.scenario.name
        title = f"{scenario}, {self._comparison.label(self._run.scheduler)}, seed {self._run.seed}"
        if np.isfinite(self._until_us):
            title += f" (first {self._until_us / 1e3:.1f} ms of {self._run.metrics.end_us / 1e3:.1f} ms)"
        start = self._descriptor(_ROOT, title, parent=0)
        start.trusted_packet_sequence_id = _SEQUENCE
        start.sequence_flags = TracePacket.SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED
        self._builder.write_packet(start)
        self._jobs()
        self._streams(kernels[:MAX_KERNELS])
        self._sms()
        self._counter(_BUSY, "busy SMs", "SMs", 1)
        self._counter(_POWER, "power", "W", 3)
        self._decisions()

    def _jobs(self) -> None:
        self._describe(_JOBS, "jobs", parent=_ROOT)
        for row, name in enumerate(self._comparison.tenants):
            mine = self._run.jobs[self._run.jobs[:, 0] == row]
            served, waiting = _Lanes(f"{name}: in service", _JOBS), _Lanes(f"{name}: waiting", _JOBS)
            for _, job, arrived, started, completed in mine[np.argsort(mine[:, 2], kind="stable")]:
                if arrived > self._until_us:
                    break
                args = {"job": int(job), "turnaround_us": round(completed - arrived, 3)}
                self._slice(served, f"job {int(job)}", started, completed, args)
                if started > arrived:
                    self._slice(waiting, f"job {int(job)}", arrived, started, args)

    def _streams(self, kernels: NDArray[np.float64]) -> None:
        self._describe(_STREAMS, "streams", parent=_ROOT)
        streams = [_Lanes(name, _STREAMS) for name in self._comparison.tenants]
        for row in kernels:
            id_, tenant, job, identity, issued, launched, started, ended, priority, preemptions, stream, parent = row
            kernel = self._kernels[int(identity)]
            args = {
                "grid": "×".join(map(str, kernel.grid)),
                "block": "×".join(map(str, kernel.block)),
                "job": int(job),
                "launch_id": int(id_),
                "issued_us": round(issued, 3),
                "launched_us": round(launched, 3),
                "stream_priority": int(priority),
                "preemptions": int(preemptions),
                "stream": int(stream),
                "parent_launch_id": int(parent),
            }
            self._slice(streams[int(tenant)], kernel.name, started, ended, args)

    def _sms(self) -> None:
        window, run = self._comparison.window_us, self._comparison.block_runs.get(self._run.scheduler)
        if window is None or run is None or run.timeline is None:
            return
        blocks = run.timeline.blocks.array
        blocks = blocks[np.argsort(blocks[:, 3], kind="stable")]
        end_us = float(blocks[MAX_RESIDENCIES, 3]) if len(blocks) > MAX_RESIDENCIES else window[1]
        blocks = blocks[:MAX_RESIDENCIES]
        self._describe(_SMS, f"SMs ({window[0] / 1e3:.2f} to {end_us / 1e3:.2f} ms only)", parent=_ROOT)
        launches = {row[0]: (int(row[1]), int(row[3])) for row in self._timeline.kernels.array}
        sms = [_Lanes(f"SM {sm}", _SMS) for sm in range(self._comparison.problem.gpu.sms)]
        for sm, launch, count, started, ended in blocks[np.lexsort((blocks[:, 3], blocks[:, 0]))]:
            if launch in launches:
                tenant, identity = launches[launch]
                args = {"blocks": int(count), "tenant": self._comparison.tenants[tenant], "launch_id": int(launch)}
                self._slice(sms[int(sm)], self._kernels[identity].name, started, ended, args)

    def _counter(self, track: int, name: str, unit: str, column: int) -> None:
        packet = self._descriptor(track, name, _ROOT)
        packet.track_descriptor.counter.unit_name = unit
        self._builder.write_packet(packet)
        last = None
        for row in self._timeline.sms.array:
            if row[0] > self._until_us:
                break
            if row[column] != last:
                last = row[column]
                packet = self._event(track, row[0], TrackEvent.Type.TYPE_COUNTER)
                packet.track_event.double_counter_value = last
                self._builder.write_packet(packet)

    def _decisions(self) -> None:
        self._describe(_DECISIONS, "scheduler's commands", parent=_ROOT)
        for time_us, command, kernel in self._timeline.decisions.array:
            if time_us > self._until_us:
                break
            packet = self._event(_DECISIONS, time_us, TrackEvent.Type.TYPE_INSTANT)
            self._name(packet, COMMANDS[int(command)].VERB)
            if kernel >= 0:
                self._annotate(packet, {"launch_id": int(kernel)})
            self._builder.write_packet(packet)

    def _describe(self, track: int, name: str, parent: int) -> None:
        self._builder.write_packet(self._descriptor(track, name, parent))

    def _descriptor(self, track: int, name: str, parent: int) -> TracePacket:
        packet = self._builder.create_packet()
        packet.track_descriptor.uuid = track
        packet.track_descriptor.name = name
        packet.track_descriptor.child_ordering = TrackDescriptor.ChildTracksOrdering.EXPLICIT
        packet.track_descriptor.sibling_order_rank = track
        if parent:
            packet.track_descriptor.parent_uuid = parent
        return packet

    def _slice(self, lanes: _Lanes, name: str, start_us: float, end_us: float, args: dict[str, Any]) -> None:
        """One begin and one end; slices of a lane must come in order of start."""
        track = lanes.free_at(start_us)
        if track is None:
            self._next_track += 1
            track = self._next_track
            self._describe(track, lanes.name, lanes.parent)
        lanes.until_us[track] = end_us
        packet = self._event(track, start_us, TrackEvent.Type.TYPE_SLICE_BEGIN)
        self._name(packet, name)
        self._annotate(packet, args)
        self._builder.write_packet(packet)
        self._builder.write_packet(self._event(track, end_us, TrackEvent.Type.TYPE_SLICE_END))

    def _event(self, track: int, time_us: float, kind: Any) -> TracePacket:
        packet = self._builder.create_packet()
        packet.timestamp = round(time_us * 1e3)
        packet.trusted_packet_sequence_id = _SEQUENCE
        # Without this flag readers drop packets that refer to texts written earlier.
        packet.sequence_flags = TracePacket.SequenceFlags.SEQ_NEEDS_INCREMENTAL_STATE
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        return packet

    def _name(self, packet: TracePacket, name: str) -> None:
        """Name an event; texts are written once, later events refer to them."""
        if name not in self._names:
            self._names[name] = len(self._names) + 1
            entry = packet.interned_data.event_names.add()
            entry.iid, entry.name = self._names[name], name
        packet.track_event.name_iid = self._names[name]

    def _annotate(self, packet: TracePacket, args: dict[str, Any]) -> None:
        for name, value in args.items():
            if name not in self._arguments:
                self._arguments[name] = len(self._arguments) + 1
                entry = packet.interned_data.debug_annotation_names.add()
                entry.iid, entry.name = self._arguments[name], name
            note = packet.track_event.debug_annotations.add()
            note.name_iid = self._arguments[name]
            if isinstance(value, int):
                note.int_value = value
            elif isinstance(value, float):
                note.double_value = value
            else:
                note.string_value = value


JOBS, KERNELS, TIMELINES = "jobs.parquet", "kernels.parquet", "timelines.npz"
"""The last holds timelines as they were recorded, for :func:`~gpusched_env.experiments.report.load.load_comparison`."""


def write_results(comparison: Comparison, folder: Path, *, traces: bool = False) -> list[str]:
    """Write everything into the existing ``folder``; returns the names of the files."""
    write_parquet(frame_of_jobs(comparison), folder / JOBS)
    recorded = [run for run in map(comparison.recorded, comparison.schedulers) if run is not None]
    if recorded:
        write_parquet(frame_of_kernels(comparison), folder / KERNELS)
        write_timelines(comparison, folder / TIMELINES)
    for name, data in comparison.own_workloads.items():
        (folder / kept_name(name, sha256(data))).write_bytes(data)
    for run in recorded if traces else ():
        write_trace(comparison, run, folder / f"{file_name(run.scheduler)}{TRACE_SUFFIX}")
    result = result_of(comparison)
    (folder / "report.html").write_text(report_html(comparison, result), encoding="utf-8")
    (folder / RESULT).write_bytes(encoded(result))
    return sorted(file.name for file in folder.iterdir())


def write_timelines(comparison: Comparison, path: Path) -> None:
    """Every table of the recorded timelines but the blocks: arrays named by scheduler's number, table and part."""
    arrays: dict[str, Any] = {}
    for number, run in enumerate(map(comparison.recorded, comparison.schedulers)):
        tables = {} if run is None else vars(run.timeline)
        for name, table in tables.items():
            if isinstance(table, Columns) and name != "blocks":
                arrays[f"{number}.{name}.whole"] = table.exact
                arrays[f"{number}.{name}.floats"] = table.array[:, table.whole :]
    np.savez_compressed(path, **arrays)


def write_parquet(table: DataFrame, path: Path, meanings: Mapping[str, str] = MEANINGS) -> None:
    """A frame of :mod:`gpusched_env.episodes.session`; fields say what they are and in which unit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pa.Table.from_pandas(table, preserve_index=False)
    fields = []
    for column in found.schema:
        unit = next(({"unit": unit} for unit in ("us", "bytes") if column.name.endswith(f"_{unit}")), {})
        fields.append(column.with_metadata({"description": meanings[column.name], **unit}))
    pq.write_table(found.cast(pa.schema(fields, found.schema.metadata)), path, compression="zstd")
