"""``gpusched import-steps``: recordings of a serving engine's steps become a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import USE, Overwrite


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("import-steps", rich_help_panel=USE)(import_steps)


def import_steps(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder of traces, one a step, whose names end in _prefill_p<tokens> or _decode_b<requests>_c<tokens> "
            "(gpusched record DIR --sets traces --networks llama_1b_...).",
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
    from gpusched_env.workload.importers.steps import merge_steps
    from gpusched_env.workload.workload import encode_workload

    traces = sorted(folder.glob(f"*{TRACE_SUFFIX}"))
    if not traces:
        raise InputError(f"{folder}: has no files *{TRACE_SUFFIX}; name the folder of the recorded traces")
    target = out or Path(f"{name}.workload.json.gz")
    refuse_existing(target, "--out", overwrite=overwrite)
    workload = merge_steps(name, {trace.name.removesuffix(TRACE_SUFFIX): import_trace(trace) for trace in traces})
    write_file(target, encode_workload(workload), "--out")
    typer.echo(f"{len(workload.variants)} steps, {len(workload.kernels)} kernels: {target}")
