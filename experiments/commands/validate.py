"""``gpusched validate``: what the simulator predicts of recordings of a real GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import CHECK, Docs, Json, Workers


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("validate", rich_help_panel=CHECK)(validate)


def validate(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Holds kernels.jsonl and pairs, mixes, sequences or model_pairs.")
    ],
    gpu: Annotated[str, typer.Option(help="GPU of the recordings: a name (gpusched gpus), or a .yaml file.")],
    json: Json = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for validation.html.")] = Path("results/validation"),
    docs: Docs = None,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Also predict with each mechanism switched off (takes longer).")
    ] = False,
    workers: Workers = None,
) -> None:
    """Predict recordings of a real GPU and compare; exit status 1 if an error is beyond its limit.

    Measured times are read for the comparison only.
    """
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.validate import page
    from gpusched_env.experiments.validate.recordings import read_recordings
    from gpusched_env.experiments.validate.run import ValidationRun

    recordings = read_recordings(folder)
    for reason in recordings.skipped:
        typer.secho(f"skipped: {reason}", err=True)
    run = ValidationRun(recordings, gpu, ablation=ablation)
    with writing(("--out", out / "validation.html"), ("--json", json), ("--docs", docs)) as write:
        with progress_bar(len(run), "simulation", "the errors") as on_progress:
            validation = run.run(workers, on_progress)
        output_console().print(validation)
        write("--out", page.html(validation))
        write("--json", validation.as_dict)
        write("--docs", validation.markdown)
    typer.echo(f"Written to {out / 'validation.html'}")
    typer.echo(validation.summary_line())
    raise typer.Exit(0 if validation.holds else 1)
