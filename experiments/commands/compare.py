"""``gpusched compare``."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gpusched_env.experiments.comparison import Comparison
    from gpusched_env.scenarios.scenario import Scenario


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("compare")(compare_command)


def compare_command(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Name (gpusched scenarios), or a .yaml file.")],
    schedulers: Annotated[
        str,
        typer.Option(
            metavar="A,B,...",
            help="Names (gpusched schedulers), package.module:Name, file.py:Name or learned:PATH of a trained agent; "
            "options may follow, as in 'mps(share=50),fifo'. Default: all that are registered, and the agent that is "
            "shipped for the scenario.",
        ),
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Episodes of each scheduler.")] = 5,
    seed: Annotated[int, typer.Option(min=0, metavar="FIRST", help="First seed.")] = 0,
    device: Annotated[str, typer.Option(help="Device that runs the kernels.")] = "compiled",
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="Write result.json there too.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: results/<scenario>.")] = None,
    gpu: Annotated[str | None, typer.Option(help="Another GPU (gpusched gpus).")] = None,
    horizon_us: Annotated[float | None, typer.Option(help="Length of an episode at most, microseconds.")] = None,
    decision_us: Annotated[float | None, typer.Option(help="Host time of a decision, microseconds.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any field of the scenario, such as tenants.inference.arrivals.rate_per_s=200; may be repeated.",
        ),
    ] = None,
    window_us: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="START END", help="Stretch of the first seed to show block by block. Default: where tenants meet."
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one a CPU core.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run code in a .zip that no training of ours wrote.")] = False,
) -> None:
    """Compare schedulers on a scenario.

    Runs them on the same seeds, prints a table, and writes a report, the data and traces.
    An interrupt (Ctrl-C) keeps the finished episodes and marks the result as interrupted.
    """
    from gpusched_env.baselines.spec import split_specs
    from gpusched_env.experiments.plugins import default_schedulers, trusted
    from gpusched_env.experiments.settings import apply_settings
    from gpusched_env.scenarios.scenario import load_scenario

    resolved = load_scenario(scenario)
    flags = {"gpu": gpu, "horizon_us": horizon_us, "decision_us": decision_us}
    changes = [f"{key}={value}" for key, value in flags.items() if value is not None]
    resolved = apply_settings(resolved, [*changes, *(settings or [])])
    names = split_specs(schedulers) or default_schedulers(resolved)
    compare_and_write(
        resolved,
        trusted(names) if trust else names,
        range(seed, seed + seeds),
        device=device,
        json=json,
        out=out,
        window_us=window_us,
        workers=workers,
    )


def compare_and_write(
    scenario: Scenario,
    schedulers: Sequence[str],
    seeds: Sequence[int],
    *,
    device: str,
    json: Path | None,
    out: Path | None,
    window_us: tuple[float, float] | None,
    workers: int | None,
) -> None:
    """Run the comparison, print the table, write the files; arguments as the command's options.

    Raises:
        InputError: as :func:`gpusched_env.experiments.compare.compare`, or a file that cannot be written.
        typer.Exit: it was interrupted.
    """
    from rich.console import Console

    from gpusched_env.experiments.compare import compare
    from gpusched_env.experiments.output import ResultFolder, result_file, write_results
    from gpusched_env.experiments.terminal import output_console, progress_bar

    folder = out if out is not None else Path("results") / scenario.name
    with contextlib.ExitStack() as stack:
        results = stack.enter_context(ResultFolder(folder))
        copy = stack.enter_context(result_file(json, "--json")) if json is not None else None
        with progress_bar(len(schedulers) * len(seeds)) as on_progress:
            comparison = compare(
                scenario,
                schedulers,
                seeds,
                device=device,
                record="blocks",
                window_us=window_us,
                workers=workers,
                on_progress=on_progress,
                command=shlex.join(["gpusched", *sys.argv[1:]]),
            )
        if not comparison.runs:
            typer.secho("interrupted before the first episode had finished; nothing written", err=True)
            raise typer.Exit(130)
        output_console().print(comparison)
        with Console(stderr=True).status("Writing results"):
            files = write_results(comparison, results.staging)
            if copy is not None:
                copy.write_bytes((results.staging / "result.json").read_bytes())
            results.publish()
    typer.echo(f"Written to {folder}: {', '.join(files)}")
    if comparison.interrupted:
        _tell_interrupted(comparison)
        raise typer.Exit(130)


def _tell_interrupted(comparison: Comparison) -> None:
    typer.secho(f"{comparison.interruption}; the result is marked as interrupted", fg=typer.colors.YELLOW, err=True)
