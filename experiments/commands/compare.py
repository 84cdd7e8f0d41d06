"""``gpusched compare`` and ``gpusched evaluate``."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpusched_env.experiments.lib.options import (
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

if TYPE_CHECKING:
    from gpusched_env.experiments.load_curve.figures import LoadCurve


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
    columns: Annotated[
        str,
        typer.Option(
            metavar="A,B,...", help="Figures to show instead of those that lead, such as cost,p99,stp; all: every one."
        ),
    ] = ""
    explain: Annotated[bool, typer.Option("--explain", help="Also say how the tables are read.")] = False
    workers: Workers = None
    trust: Trust = False


@with_fields
def compare_command(scenario: Scenario, options: ComparisonOptions) -> None:
    """Compare schedulers on a scenario.

    Runs them on the same seeds, prints tables, and writes report and data to results/SCENARIO, or if that is
    there to results/SCENARIO-2 and so on (or to --out).
    An interrupt (Ctrl-C) keeps the finished episodes and marks the result as interrupted.
    """
    from gpusched_env.baselines.registered import split_specs

    _compare(scenario, split_specs(options.schedulers), Path("results"), options)


@with_fields
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
    """Run the comparison, if asked at every value of a field, print the tables, write the files.

    ``home``: folder above the default one.
    """
    from rich.console import Console

    from gpusched_env.errors import InputError
    from gpusched_env.experiments.compare import compare
    from gpusched_env.experiments.comparison import Comparison
    from gpusched_env.experiments.lib.files import RESULT, result_folder, writing
    from gpusched_env.experiments.lib.names import default_schedulers, expanded
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.lib.trained import trusted
    from gpusched_env.experiments.load_curve.curve import compare_over, write_curve
    from gpusched_env.experiments.load_curve.figures import parse_axis
    from gpusched_env.experiments.report.save import write_results
    from gpusched_env.experiments.report.tables import asked_columns, comparison_tables
    from gpusched_env.experiments.settings import apply_settings
    from gpusched_env.scenarios.scenario import load_scenario

    fields = {name: getattr(options, name) for name in ("gpu", "horizon_us", "decision_us")}
    changes = [f"{key}={value}" for key, value in fields.items() if value is not None]
    scenario = apply_settings(load_scenario(name), [*changes, *(options.settings or [])])
    axis = None if options.sweep is None else parse_axis(options.sweep)
    columns = asked_columns(options.columns)
    if axis is not None and (columns or options.explain):
        raise InputError("--columns and --explain are of one comparison; leave them out, or --sweep")
    chosen = expanded(schedulers, scenario) or default_schedulers(scenario)
    seeds = range(options.seed, options.seed + options.seeds)
    given: dict[str, Any] = {
        "schedulers": trusted(chosen) if options.trust else chosen,
        "seeds": seeds,
        "device": options.simulator,
        "window_us": options.window_us,
        "workers": options.workers,
        "command": command_line(),
    }
    default = home / (scenario.name if axis is None else f"{scenario.name}-{axis.field}")
    episodes = len(chosen) * len(seeds) * (1 if axis is None else len(axis.values))
    with contextlib.ExitStack() as stack:
        results = stack.enter_context(result_folder(options.out, default, overwrite=options.overwrite))
        write = stack.enter_context(writing(("--json", options.json), overwrite=options.overwrite))
        with progress_bar(episodes, last="the timeline" if axis is None else "done") as on_progress:
            found: Comparison | LoadCurve
            if axis is None:
                found = compare(scenario, **given, record="blocks", on_progress=on_progress)
            else:
                given |= {"share": options.share, "record": "kernels" if options.traces else "jobs"}
                found = compare_over(compare, axis, scenario, on_progress=on_progress, **given)
        if isinstance(found, Comparison) and not found.runs:
            typer.secho("interrupted before the first episode had finished; nothing written", err=True)
            raise typer.Exit(130)
        shown = (
            comparison_tables(found, columns=columns, explain=options.explain)
            if isinstance(found, Comparison)
            else found
        )
        output_console().print(shown)
        with Console(stderr=True).status("Writing results"):
            if isinstance(found, Comparison):
                files = write_results(found, results.staging, traces=options.traces)
            else:
                files = write_curve(found, results.staging)
            write("--json", (results.staging / RESULT).read_bytes())
            results.publish()
    typer.echo(f"Written to {results.path}: {', '.join(files)}")
    if found.interrupted:
        typer.secho(f"{found.interruption}; the result is marked as interrupted", fg="yellow", err=True)
        raise typer.Exit(130)
