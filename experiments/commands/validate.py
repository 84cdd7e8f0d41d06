"""``gpusched validate``: what the simulator predicts of recordings of a real GPU."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import CHECK


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("validate", rich_help_panel=CHECK)(validate)


def validate(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Holds kernels.jsonl and pairs, mixes, sequences or model_pairs.")
    ],
    gpu: Annotated[str, typer.Option(help="GPU of the recordings (gpusched gpus).")],
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the errors there.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for validation.html.")] = Path("results/validation"),
    docs: Annotated[Path | None, typer.Option(metavar="PATH", help="Write a Markdown page too.")] = None,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Also predict with each mechanism switched off (takes longer).")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
) -> None:
    """Predict recordings of a real GPU and compare; exit status 1 if an error is beyond its limit.

    Measured times are read for the comparison only.
    """
    from rich.console import Console

    from gpusched_env.experiments.lib.files import encoded, result_file
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.validate.markdown import markdown_page
    from gpusched_env.experiments.validate.page import html_page
    from gpusched_env.experiments.validate.results import results_dict, summary_line
    from gpusched_env.experiments.validate.run import ValidationRun, read_recordings
    from gpusched_env.experiments.validate.tables import tables

    recordings = read_recordings(folder)
    for reason in recordings.skipped:
        typer.secho(f"skipped: {reason}", err=True)
    run = ValidationRun(recordings, gpu, ablation=ablation)
    with contextlib.ExitStack() as stack:
        page = stack.enter_context(result_file(out / "validation.html", "--out"))
        data_file = stack.enter_context(result_file(json, "--json")) if json is not None else None
        docs_file = stack.enter_context(result_file(docs, "--docs")) if docs is not None else None
        with progress_bar(len(run), "simulations", "the errors") as on_progress:
            validation = run.run(workers, on_progress)
        data = results_dict(validation)
        output_console().print(tables(data))
        with Console(stderr=True).status("Writing results"):
            page.write_text(html_page(validation, data), encoding="utf-8")
            if data_file is not None:
                data_file.write_bytes(encoded(data))
            if docs_file is not None:
                docs_file.write_text(markdown_page(data), encoding="utf-8")
    typer.echo(f"Written to {out / 'validation.html'}")
    typer.echo(summary_line(data))
    raise typer.Exit(0 if data["holds"] else 1)
