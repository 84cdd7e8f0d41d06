"""``gpusched tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.baselines.tuning import FIRST_SEED
from gpusched_env.experiments.lib.options import USE, Overwrite, Scenario, Workers, command_line


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("tune", rich_help_panel=USE)(tune_command)


def tune_command(
    scenario: Scenario,
    json: Annotated[Path, typer.Option(metavar="PATH", help="Result file; grows round by round.")],
    schedulers: Annotated[
        str, typer.Option(metavar="A,B,...", help="Names. Default: all that know no more than a scheduler can.")
    ] = "",
    trials: Annotated[int, typer.Option(min=1, help="Of each scheduler that has options, the defaults included.")] = 16,
    seeds: Annotated[int, typer.Option(min=1, help="Episodes of each training workload, or random applications.")] = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="FIRST", help="First seed of the episodes.")] = FIRST_SEED,
    search_seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 0,
    workers: Workers = None,
    resume: Annotated[bool, typer.Option(help="Go on with the result file; more schedulers may be named.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Tune the options of hand-written schedulers, each with the same budget, on training workloads.

    Those of a scenario's workload set; for DynamicParallelism, random applications.

    Held-out workloads and the episodes of rankings are not touched. tuned:NAME then names what was found, where the
    result file comes with the package (baselines/tuned).
    """
    from gpusched_env.baselines.spec import split_specs
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.lib.files import refuse_existing
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.tuning.table import tuning_table

    try:
        from gpusched_env.experiments.tuning.search import tune
    except ModuleNotFoundError as error:
        raise InputError(f"gpusched tune needs {error.name}: pip install 'gpusched-env[sweep]'") from error
    refuse_existing(json, "--json", overwrite=overwrite or resume)
    try:
        with progress_bar(None) as on_progress:
            tuning = tune(
                scenario,
                split_specs(schedulers) or None,
                trials,
                seeds,
                json,
                first_seed=seed,
                seed=search_seed,
                workers=workers,
                resume=resume,
                on_progress=on_progress,
                on_resumed=lambda said: typer.echo(said, err=True),
                command=command_line(),
            )
    except KeyboardInterrupt:
        typer.secho(f"interrupted; --resume goes on from {json}", fg=typer.colors.YELLOW, err=True)
        raise typer.Exit(130) from None
    output_console().print(tuning_table(tuning))
