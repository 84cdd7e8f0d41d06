"""``gpusched import trace``, ``steps`` and ``kernels``: recordings become workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import Overwrite


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
        typer.Option(
            help="GPU of the recording (gpusched list gpus, or a .yaml file). Default: as the recording says."
        ),
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
    execution_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="PyTorch execution trace of the same run, JSON, plain or gzipped: what memory kernels read and write.",
        ),
    ] = None,
    device: Annotated[
        int | None, typer.Option(help="Number of the GPU, of a recording with several. Default: the only one.")
    ] = None,
    process: Annotated[
        int | None, typer.Option(help="Number of the process, of a recording with several. Default: the only one.")
    ] = None,
    serial: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Recording of the same program with CUDA_LAUNCH_BLOCKING=1: how long its kernels take alone, if it "
            "has several streams.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Recording of the L2 (gpusched lab record DIR --sets cache) with this network."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Turn a recording into a workload file.

    Prints what the workload holds: kernels, idle gaps, residency, copies, streams. Warns if its host times are
    those of a profiled run.
    """
    import dataclasses

    from gpusched_env.experiments.importing import import_trace as imported
    from gpusched_env.experiments.lib.terminal import output_console

    found = imported(
        file,
        out,
        name=name,
        gpu=gpu,
        iteration=iteration,
        iteration_us=iteration_us,
        execution_trace=execution_trace,
        device=device,
        process=process,
        serial=serial,
        cache=cache,
        overwrite=overwrite,
    )
    output_console().print(dataclasses.replace(found.table(), note=""))
    if found.summary.caution:
        typer.secho(f"warning: {found.summary.caution}", fg=typer.colors.YELLOW, err=True)
    typer.echo(f"Written to {found.file}; in a scenario: workload: {found.file}")


def import_steps(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder of traces, one a step, whose names end in _prefill_p<tokens> or _decode_b<requests>_c<tokens> "
            "(gpusched lab record DIR --sets traces --networks llama_1b_...).",
        ),
    ],
    name: Annotated[str, typer.Option(help="Name of the workload.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Workload file. Default: <name>.workload.json.gz here.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Turn recordings of single steps into a workload for a tenant that batches continuously."""
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.lib.files import refuse_existing, write_file
    from gpusched_env.experiments.validate.recordings import TRACE_SUFFIX
    from gpusched_env.workload.importers import import_trace
    from gpusched_env.workload.importers.combining import merge_steps
    from gpusched_env.workload.workload import encode_workload

    traces = sorted(folder.glob(f"*{TRACE_SUFFIX}"))
    if not traces:
        raise InputError(f"{folder}: has no files *{TRACE_SUFFIX}; name the folder of the recorded traces")
    target = out or Path(f"{name}.workload.json.gz")
    refuse_existing(target, "--out", overwrite=overwrite)
    workload = merge_steps(name, {trace.name.removesuffix(TRACE_SUFFIX): import_trace(trace) for trace in traces})
    write_file(target, encode_workload(workload), "--out")
    typer.echo(f"{len(workload.variants)} steps, {len(workload.kernels)} kernels: {target}")


def import_kernels(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Kernel file of Orion: Name, Profile, SM_usage, Duration in ns.")
    ],
    gpu: Annotated[str, typer.Option(help="GPU on which it was made (gpusched list gpus, or a .yaml file).")],
    host_us: Annotated[float, typer.Option(min=0.0, help="Host time of a launch, microseconds.")] = 6.0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Workload file. Default: <name>.workload.json.gz here.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Turn a list of operators with what bounds them, the SMs that they need and their times into a workload."""
    from gpusched_env.experiments.lib.files import refuse_existing, write_file
    from gpusched_env.workload.importers.kernel_files import import_kernel_file
    from gpusched_env.workload.workload import encode_workload

    workload = import_kernel_file(file, gpu, host_us)
    target = out or Path(f"{workload.name}.workload.json.gz")
    refuse_existing(target, "--out", overwrite=overwrite)
    write_file(target, encode_workload(workload), "--out")
    launches = len(workload.variants[0].ops) - 1
    typer.echo(f"{launches} launches, {workload.iteration_us[0] / 1e3:.4g} ms: {target}")
