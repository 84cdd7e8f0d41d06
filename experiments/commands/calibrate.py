"""``gpusched calibrate``: a GPU's constants from recordings of kernels alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import CHECK, Docs, Json


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
    docs: Docs = None,
) -> None:
    """Fit instruction costs, reachable DRAM bandwidth and gaps; exit status 1 if kernels alone miss by over 5 %."""
    from datetime import date

    import msgspec
    from rich.console import Console

    from gpusched_env.display.table import printed
    from gpusched_env.experiments.calibrate import report
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.hardware.specs import load_gpu

    spec = load_gpu(gpu)
    with writing(("--out", out), ("--json", json), ("--docs", docs)) as write:
        with Console(stderr=True).status("Fitting"):
            result = report.calibrate(folder, spec)
        write("--out", report.as_yaml(result, date.today()))
        write("--json", msgspec.to_builtins(result))
        write("--docs", report.markdown(result))
    console = output_console()
    console.print(printed(report.tables(result)))
    for note in report.notes(result):
        console.print(note, highlight=False)
    typer.echo(report.summary_line(result))
    raise typer.Exit(0 if result.holds else 1)
