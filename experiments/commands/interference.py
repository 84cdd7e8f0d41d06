"""``gpusched interference``: who disturbs whom on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import CHECK, Docs, Json, Overwrite, Workers


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("interference", rich_help_panel=CHECK)(interference)


def interference(
    given: Annotated[
        Path | None, typer.Option("--from", metavar="PATH", help="A file of --json: its pairs instead of new ones.")
    ] = None,
    model: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the fitted model there, as JSON.")] = None,
    json: Json = None,
    overwrite: Overwrite = False,
    docs: Docs = None,
    workers: Workers = None,
) -> None:
    """Fit the model of who disturbs whom to simulated pairs, and judge it on recorded ones.

    Exit status 1 if it misses unseen networks by more than 8 % in the median, or recorded ones by more than 10 %. The
    simulations take an hour and a half of processor time.
    """
    import msgspec

    from gpusched_env.experiments.interference.pairs import SCHEMA, Simulated, simulate
    from gpusched_env.experiments.interference.result import Interference
    from gpusched_env.experiments.lib.files import read_struct, writing
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.ranking.made import check_together

    outputs = (("--model", model), ("--json", json), ("--docs", docs))
    with writing(*outputs, overwrite=overwrite) as write:
        with progress_bar(None) as on_progress:
            pairs = (
                simulate(workers=workers, on_progress=on_progress)
                if given is None
                else read_struct(
                    given, Simulated, SCHEMA, "no file of pairs", "gpusched interference --json writes one"
                )
            )
        if given is not None:
            check_together({str(given): pairs.made})
        result = Interference(pairs)
        write("--model", lambda: msgspec.to_builtins(result.model))
        write("--json", result.as_dict)
        write("--docs", result.markdown)
    output_console().print(result)
    typer.echo(result.summary_line())
    raise typer.Exit(0 if result.holds else 1)
