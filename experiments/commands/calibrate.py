"""``gpusched calibrate``: a GPU's constants from recordings of kernels alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import CHECK


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("calibrate", rich_help_panel=CHECK)(calibrate)


def calibrate(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Recordings: waves, kernels and launch, .jsonl or .jsonl.gz.")
    ],
    gpu: Annotated[str, typer.Option(metavar="NAME", help="Specification to start from, such as h100-sxm.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Write the fitted values there.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="Write all figures there.")] = None,
    docs: Annotated[Path | None, typer.Option(metavar="PATH", help="Write them as a Markdown page too.")] = None,
) -> None:
    """Fit instruction costs, reachable DRAM bandwidth and gaps; exit status 1 if kernels alone miss by over 5 %."""
    import contextlib
    from datetime import date

    from rich.console import Console

    from gpusched_env.experiments.calibrate import report, stored
    from gpusched_env.experiments.lib.files import result_file
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.hardware.specs import load_gpu

    spec = load_gpu(gpu)
    targets = [("--out", out), ("--json", json), ("--docs", docs)]
    with contextlib.ExitStack() as files:
        staging = {name: files.enter_context(result_file(path, name)) for name, path in targets if path is not None}
        with Console(stderr=True).status("Fitting"):
            result = report.calibrate(folder, spec)
        for name, file in staging.items():
            file.write_text(
                stored.as_yaml(result, date.today())
                if name == "--out"
                else stored.as_json(result)
                if name == "--json"
                else report.markdown(result)
            )
    output_console().print(report.tables(result))
    typer.echo(report.summary_line(result))
    raise typer.Exit(0 if result.holds else 1)
