"""``gpusched compare`` and ``gpusched evaluate``."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import (
    USE,
    FirstSeed,
    Gpu,
    Json,
    OutFolder,
    Overwrite,
    Scenario,
    Schedulers,
    Seeds,
    Settings,
    Simulator,
    Trust,
    Workers,
    command_line,
    with_fields,
)


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """Options of a comparison."""

    schedulers: Schedulers = ""
    seeds: Seeds = 5
    seed: FirstSeed = 0
    simulator: Simulator = "compiled"
    json: Json = None
    out: OutFolder = None
    overwrite: Overwrite = False
    gpu: Gpu = None
    horizon_us: Annotated[float | None, typer.Option(help="Length of an episode at most, microseconds.")] = None
    decision_us: Annotated[float | None, typer.Option(help="Host time of a decision, microseconds.")] = None
    settings: Settings = None
    window_us: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="START END", help="Stretch of the first seed to show block by block. Default: where tenants meet."
        ),
    ] = None
    traces: Annotated[
        bool, typer.Option("--traces", help="Also write a Perfetto trace of each scheduler's first seed.")
    ] = False
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD=START:STOP:STEP",
            help="Repeat at every value of a field, such as load=0.6:1.5:0.1 or load=0.6,0.8,1.0: curves and capacity.",
        ),
    ] = None
    share: Annotated[
        float, typer.Option(help="Of a sweep: the share of jobs within the objective up to which it is kept.")
    ] = 0.95
    workers: Workers = None
    trust: Trust = False


def register_compare(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("compare", rich_help_panel=USE)(with_fields(compare_command))
    app.command("evaluate", rich_help_panel=USE)(with_fields(evaluate_command))


def compare_command(scenario: Scenario, options: ComparisonOptions) -> None:
    """Compare schedulers on a scenario.

    Runs them on the same seeds, prints tables, and writes report and data to results/SCENARIO, or if that is
    there to results/SCENARIO-2 and so on (or to --out).
    An interrupt (Ctrl-C) keeps the finished episodes and marks the result as interrupted.
    """
    from gpusched_env.baselines.registered import split_specs

    _compare(scenario, split_specs(options.schedulers), Path("results"), options)


def evaluate_command(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Folder of a training, an exported .npz, a .zip, or learned (the shipped one)."
        ),
    ],
    scenario: Scenario,
    options: ComparisonOptions,
) -> None:
    """Compare a trained scheduler with the others.

    The same as compare with learned:MODEL among the schedulers: differences are taken against pass-through, or
    where that is left out against the agent. Writes to results/evaluate/SCENARIO, or the next name that is free (or
    --out).
    """
    from gpusched_env.baselines.registered import split_specs
    from gpusched_env.experiments.compare import with_agent
    from gpusched_env.scenarios.scenario import load_scenario

    chosen = with_agent(model, load_scenario(scenario), split_specs(options.schedulers))
    _compare(scenario, chosen, Path("results") / "evaluate", options)


def _compare(name: str, schedulers: Sequence[str], home: Path, options: ComparisonOptions) -> None:
    """Run the comparison, print the tables, write the files; ``home``: folder above the default one."""
    from rich.console import Console

    from gpusched_env.experiments.compare import compare
    from gpusched_env.experiments.lib.files import RESULT, result_folder, writing
    from gpusched_env.experiments.lib.names import default_schedulers, expanded
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.lib.trained import trusted
    from gpusched_env.experiments.report.save import write_results
    from gpusched_env.experiments.settings import apply_settings
    from gpusched_env.scenarios.scenario import load_scenario

    fields = {name: getattr(options, name) for name in ("gpu", "horizon_us", "decision_us")}
    changes = [f"{key}={value}" for key, value in fields.items() if value is not None]
    scenario = apply_settings(load_scenario(name), [*changes, *(options.settings or [])])
    if options.sweep is not None:
        from gpusched_env.experiments.commands.load_curve import run_load_curve

        run_load_curve(scenario, schedulers, home, options)
        return
    chosen = expanded(schedulers, scenario) or default_schedulers(scenario)
    seeds = range(options.seed, options.seed + options.seeds)
    with contextlib.ExitStack() as stack:
        results = stack.enter_context(result_folder(options.out, home / scenario.name, overwrite=options.overwrite))
        write = stack.enter_context(writing(("--json", options.json), overwrite=options.overwrite))
        with progress_bar(len(chosen) * len(seeds)) as on_progress:
            comparison = compare(
                scenario,
                trusted(chosen) if options.trust else chosen,
                seeds,
                device=options.simulator,
                record="blocks",
                window_us=options.window_us,
                workers=options.workers,
                on_progress=on_progress,
                command=command_line(),
            )
        if not comparison.runs:
            typer.secho("interrupted before the first episode had finished; nothing written", err=True)
            raise typer.Exit(130)
        output_console().print(comparison)
        with Console(stderr=True).status("Writing results"):
            files = write_results(comparison, results.staging, traces=options.traces)
            write("--json", (results.staging / RESULT).read_bytes())
            results.publish()
    typer.echo(f"Written to {results.path}: {', '.join(files)}")
    if comparison.interrupted:
        typer.secho(f"{comparison.interruption}; the result is marked as interrupted", fg="yellow", err=True)
        raise typer.Exit(130)
