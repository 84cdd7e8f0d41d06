"""``gpusched import-trace``: a profiler's recording becomes a workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpusched_env.experiments.lib.options import USE

if TYPE_CHECKING:
    from gpusched_env.workload.importers import WorkloadSummary


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("import-trace", rich_help_panel=USE)(import_trace)


def import_trace(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="PyTorch profiler (Kineto) JSON, plain or gzipped, or Nsight Systems SQLite."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Workload file. Default: <name>.workload.json.gz here.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the workload. Default: from the file's name.")] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help="GPU of the recording (gpusched gpus, or a .yaml file). Default: as the recording says."),
    ] = None,
    iteration: Annotated[
        str | None,
        typer.Option(help="Annotation (record_function, NVTX range) around one iteration. Default: ProfilerStep."),
    ] = None,
    iteration_us: Annotated[
        float | None,
        typer.Option(
            help="Time of an iteration without the profiler, microseconds: host times are scaled to it. Default: as "
            "the recording says (docs/own-work.md)."
        ),
    ] = None,
) -> None:
    """Turn a recording into a workload file.

    Prints what the workload holds: kernels, idle gaps, residency, copies, streams. Warns if its host times are
    those of a profiled run.
    """
    import msgspec

    from gpusched_env.errors import InputError
    from gpusched_env.experiments.lib.files import result_file
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.hardware.specs import load_gpu
    from gpusched_env.workload.importers import import_trace as read_trace
    from gpusched_env.workload.importers import summarise
    from gpusched_env.workload.workload import encode_workload

    if out is not None and not out.name.endswith((".json", ".json.gz")):
        raise InputError(f"--out {out}: the name must end in .json or .json.gz, so that scenarios can name the file")
    spec = load_gpu(gpu) if gpu is not None else None
    workload = read_trace(file, gpu=spec, iteration=iteration, iteration_us=iteration_us)
    if name is not None:
        workload = msgspec.structs.replace(workload, name=name)
    target = out if out is not None else Path(f"{workload.name}.workload.json.gz")
    summary = summarise(workload, spec)
    with result_file(target, "--out") as staging:
        staging.write_bytes(encode_workload(workload) if target.name.endswith(".gz") else msgspec.json.encode(workload))
    output_console().print(_summary_table(summary))
    if summary.caution:
        typer.secho(f"warning: {summary.caution}", fg=typer.colors.YELLOW, err=True)
    typer.echo(f"Written to {target}; in a scenario: workload: {target}")


def _summary_table(summary: WorkloadSummary) -> object:
    from rich.table import Table
    from rich.text import Text

    classes = ", ".join(f"{kind} {share:.0%}" for kind, share in summary.class_shares.items() if share > 0)
    copies = f"{summary.copies:g} ({summary.copy_bytes / 1e6:.3g} MB), memsets {summary.memsets:g}"
    gaps = f"{summary.gaps:.0f}, median {summary.gap_median_us:.1f} us, 95th percentile {summary.gap_p95_us:.1f} us"
    streams = f"{summary.streams}, {summary.event_waits:g} waits for events, {summary.overlap:.0%} of busy time shared"
    rows = {
        "workload": summary.name,
        "GPU": summary.gpu,
        "source": summary.source,
        "iterations": f"{summary.iterations}, median {summary.wall_us / 1e3:.3f} ms",
        "replayed alone": f"{summary.alone_us / 1e3:.3f} ms, device idle {summary.idle_share:.0%}",
        "kernels": f"{summary.kernels:.0f} an iteration, {summary.identities} distinct",
        "device time": f"{summary.busy_us / 1e3:.3f} ms: {classes}",
        "idle gaps": gaps,
        "residency": f"{summary.sm_share:.0%} of SMs, {summary.occupancy:.0%} of possible blocks",
        "copies": copies,
        "synchronisations": f"{summary.syncs:g}",
        "streams": streams,
        "CUDA graphs": f"{summary.graphs:g} launches",
        "host threads": f"{summary.threads}",
    }
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for label, text in rows.items():
        table.add_row(label, Text(text))
    return table
