"""``gpusched calibrate``: a GPU's constants from recordings of kernels alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import CHECK, Docs, Json, Overwrite


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("calibrate", rich_help_panel=CHECK)(calibrate)


def calibrate(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Recordings: waves, kernels and launch, .jsonl or .jsonl.gz.")
    ],
    gpu: Annotated[str, typer.Option(help="Specification to start from: a name (gpusched gpus), or a .yaml file.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Write the fitted values there.")] = None,
    json: Json = None,
    overwrite: Overwrite = False,
    docs: Docs = None,
) -> None:
    """Fit instruction costs, reachable DRAM bandwidth and gaps; exit status 1 if kernels alone miss by over 5 %."""
    from datetime import date

    from rich.console import Console

    from gpusched_env.experiments.calibrate import report
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.hardware.specs import load_gpu

    spec = load_gpu(gpu)
    with writing(("--out", out), ("--json", json), ("--docs", docs), overwrite=overwrite) as write:
        with Console(stderr=True).status("Fitting"):
            result = report.calibrate(folder, spec)
        write("--out", result.as_yaml(date.today()))
        write("--json", result.as_dict)
        write("--docs", result.markdown)
    console = output_console()
    console.print(result)
    for note in result.notes():
        console.print(note, highlight=False)
    typer.echo(result.summary_line())
    raise typer.Exit(0 if result.holds else 1)
