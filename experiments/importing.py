"""A profiler's recording becomes a workload file: what ``gpusched import trace`` and ``import_trace`` do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from gpusched_env.display.table import Table
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.lib.files import refuse_existing, write_file
from gpusched_env.experiments.lib.rows import read_lines
from gpusched_env.experiments.record.rows import CACHE
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.reading import decoded
from gpusched_env.workload.importers import WorkloadSummary, summarise
from gpusched_env.workload.importers import import_trace as read_trace
from gpusched_env.workload.importers.combining import CacheRow, with_cache, with_serial_times
from gpusched_env.workload.importers.recording import Selection
from gpusched_env.workload.workload import encode_workload

NOTED_PACE: Final = 0.03
"""From this share on that an iteration is longer or shorter than it was, the range over iterations is shown."""


@dataclass(frozen=True)
class Imported:
    """A workload file that was written, and what it holds; shows itself as a table."""

    file: Path
    """What a tenant of a scenario names as its ``workload``."""
    summary: WorkloadSummary

    def table(self) -> Table:
        """Kernels, idle gaps, residency, copies, streams; gaps up to those between queued kernels are no idle ones."""
        s = self.summary
        classes = ", ".join(f"{kind} {share:.0%}" for kind, share in s.class_shares.items() if share > 0)
        gaps = f"{s.gaps:.0f}, median {s.gap_median_us:.1f} µs, 95th percentile {s.gap_p95_us:.1f} µs"
        pace = f"{abs(s.pace):.1%} {'longer' if s.pace > 0.0 else 'shorter'} than that median"
        if max(map(abs, s.paces)) > NOTED_PACE:
            pace += f" (iterations: {s.paces[0]:+.1%} to {s.paces[1]:+.1%})"
        rows = {
            "workload": s.name,
            "GPU": s.gpu,
            "source": s.source,
            "iterations": f"{s.iterations}, median {s.wall_us / 1e3:.3f} ms",
            "replayed alone": f"{s.alone_us / 1e3:.3f} ms, {pace}; device idle {s.idle_share:.0%}",
            "kernels": f"{s.kernels:.0f} an iteration, {s.identities} distinct",
            "device time": f"{s.busy_us / 1e3:.3f} ms: {classes}",
            f"idle gaps over {s.queued_gap_us:g} µs": gaps,
            "residency": f"{s.sm_share:.0%} of SMs, {s.occupancy:.0%} of possible blocks",
            "copies": f"{s.copies:g} ({s.copy_bytes / 1e6:.3g} MB), memsets {s.memsets:g}",
            "synchronisations": f"{s.syncs:g}",
            "streams": f"{s.streams}, {s.event_waits:g} waits for events, {s.overlap:.0%} of busy time shared",
            "CUDA graphs": f"{s.graphs:g} launches",
            "host threads": f"{s.threads}",
        }
        return Table(str(self.file), ("", "of one iteration"), list(rows.items()), note=s.caution)

    def __repr__(self) -> str:
        return f"<{self.summary.name}: {self.summary.kernels:.0f} kernels an iteration, in {self.file}>"

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def import_trace(
    file: str | Path,
    out: str | Path | None = None,
    *,
    name: str | None = None,
    gpu: str | None = None,
    iteration: str | None = None,
    iteration_us: float | None = None,
    execution_trace: str | Path | None = None,
    device: int | None = None,
    process: int | None = None,
    serial: str | Path | None = None,
    cache: str | Path | None = None,
    overwrite: bool = False,
) -> Imported:
    """Turn a recording into a workload file.

    Args:
        file: of the PyTorch profiler (Kineto JSON, plain or gzipped) or of Nsight Systems (SQLite).
        out: the workload file; by default ``NAME.workload.json.gz`` here.
        name: of the workload; by default from the file's name.
        gpu: of the recording, a name or a ``.yaml`` file; by default as the recording says.
        iteration: annotation (``record_function``, NVTX range) around one iteration; by default ProfilerStep.
        iteration_us: time of an iteration without the profiler, microseconds: host times are scaled to it. By default
            as the recording says.
        execution_trace: of the same run of the PyTorch profiler: the memory that kernels read and write.
        device: the GPU, by its number in the file, of a recording with several.
        process: likewise the process, by its number.
        serial: a profiler's recording of the same program with ``CUDA_LAUNCH_BLOCKING=1`` in the environment: kernels
            take as long as there, where none runs beside another. For programs with several streams.
        cache: a recording of the L2 (``gpusched lab record DIR --sets cache``) with a row of the workload's name: by
            how much its kernels are longer where others have driven out what an iteration has left there.
        overwrite: replace a workload file that is there.

    Raises:
        InputError: the recording cannot be read or understood, or ``out`` is there or cannot be written.
    """
    if out is not None and not str(out).endswith((".json", ".json.gz")):
        raise InputError(f"--out {out}: the name must end in .json or .json.gz, so that scenarios can name the file")
    spec = load_gpu(gpu) if gpu is not None else None
    selection = Selection(device, process)
    workload = read_trace(Path(file), spec, iteration, iteration_us, execution_trace, selection)
    if serial is not None:
        alone = read_trace(Path(serial), spec, iteration, iteration_us, selection=Selection(device))
        workload = with_serial_times(workload, alone)
    if name is not None:
        workload = msgspec.structs.replace(workload, name=name)
    if cache is not None:
        workload = with_cache(workload, _cache_row(Path(cache), workload.name))
    target = Path(out) if out is not None else Path(f"{workload.name}.workload.json.gz")
    refuse_existing(target, "--out", overwrite=overwrite)
    summary = summarise(workload, spec)
    content = encode_workload(workload) if target.name.endswith(".gz") else msgspec.json.encode(workload)
    write_file(target, content, "--out")
    return Imported(target, summary)


def _cache_row(path: Path, name: str) -> CacheRow:
    """The row of a workload in a recording of the L2."""
    rows = [row for row in read_lines(path)[0] if row.get("what") == CACHE]
    for row in rows:
        if row.get("model") == name:
            return decoded(msgspec.json.encode(row), CacheRow, str(path))
    raise InputError(f"{path}: has no row of {name!r}; {did_you_mean(name, [str(row.get('model')) for row in rows])}")
