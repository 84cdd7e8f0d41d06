"""``gpusched compare`` and ``gpusched evaluate``."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import (
    USE,
    FirstSeed,
    Gpu,
    Json,
    OutFolder,
    Scenario,
    Schedulers,
    Seeds,
    Settings,
    Simulator,
    Trust,
    Workers,
    command_line,
)

HorizonUs = Annotated[float | None, typer.Option(help="Length of an episode at most, microseconds.")]
DecisionUs = Annotated[float | None, typer.Option(help="Host time of a decision, microseconds.")]
WindowUs = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="START END", help="Stretch of the first seed to show block by block. Default: where tenants meet."
    ),
]
Traces = Annotated[bool, typer.Option("--traces", help="Also write a Perfetto trace of each scheduler's first seed.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("compare", rich_help_panel=USE)(compare_command)
    app.command("evaluate", rich_help_panel=USE)(evaluate_command)


def compare_command(
    scenario: Scenario,
    schedulers: Schedulers = "",
    seeds: Seeds = 5,
    seed: FirstSeed = 0,
    simulator: Simulator = "compiled",
    json: Json = None,
    out: OutFolder = None,
    gpu: Gpu = None,
    horizon_us: HorizonUs = None,
    decision_us: DecisionUs = None,
    settings: Settings = None,
    window_us: WindowUs = None,
    traces: Traces = False,
    workers: Workers = None,
    trust: Trust = False,
) -> None:
    """Compare schedulers on a scenario.

    Runs them on the same seeds, prints tables, and writes report and data to results/SCENARIO (or --out).
    An interrupt (Ctrl-C) keeps the finished episodes and marks the result as interrupted.
    """
    from gpusched_env.baselines.spec import split_specs

    _compare(
        scenario,
        split_specs(schedulers),
        range(seed, seed + seeds),
        fields={"gpu": gpu, "horizon_us": horizon_us, "decision_us": decision_us},
        settings=settings or [],
        simulator=simulator,
        json=json,
        out=out,
        home=Path("results"),
        window_us=window_us,
        traces=traces,
        workers=workers,
        trust=trust,
    )


def evaluate_command(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Folder of a training, an exported .npz, a .zip, or learned (the shipped one)."
        ),
    ],
    scenario: Scenario,
    schedulers: Schedulers = "",
    seeds: Seeds = 5,
    seed: FirstSeed = 0,
    simulator: Simulator = "compiled",
    json: Json = None,
    out: OutFolder = None,
    gpu: Gpu = None,
    horizon_us: HorizonUs = None,
    decision_us: DecisionUs = None,
    settings: Settings = None,
    window_us: WindowUs = None,
    traces: Traces = False,
    workers: Workers = None,
    trust: Trust = False,
) -> None:
    """Compare a trained scheduler with the others.

    The same as compare with learned:MODEL as first scheduler: differences are taken against it. Writes to
    results/evaluate/SCENARIO (or --out).
    """
    from gpusched_env.agents.training.folder import policy_file
    from gpusched_env.baselines.registry import honest_names
    from gpusched_env.baselines.spec import split_specs
    from gpusched_env.experiments.lib.names import is_learned

    agent = str(model) if is_learned(str(model)) else f"learned:{policy_file(model)}"
    _compare(
        scenario,
        [agent, *(split_specs(schedulers) or honest_names())],
        range(seed, seed + seeds),
        fields={"gpu": gpu, "horizon_us": horizon_us, "decision_us": decision_us},
        settings=settings or [],
        simulator=simulator,
        json=json,
        out=out,
        home=Path("results") / "evaluate",
        window_us=window_us,
        traces=traces,
        workers=workers,
        trust=trust,
    )


def _compare(
    name: str,
    schedulers: Sequence[str],
    seeds: Sequence[int],
    *,
    fields: dict[str, str | float | None],
    settings: Sequence[str],
    simulator: str,
    json: Path | None,
    out: Path | None,
    home: Path,
    window_us: tuple[float, float] | None,
    traces: bool,
    workers: int | None,
    trust: bool,
) -> None:
    """Run the comparison, print the tables, write the files.

    ``fields`` of the scenario are replaced where they are given; ``home``: folder above the default one.
    """
    from rich.console import Console

    from gpusched_env.experiments.compare import compare
    from gpusched_env.experiments.lib.files import RESULT, ResultFolder, writing
    from gpusched_env.experiments.lib.names import default_schedulers, trusted
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.report.save import write_results
    from gpusched_env.experiments.settings import apply_settings
    from gpusched_env.scenarios.scenario import load_scenario

    changes = [f"{key}={value}" for key, value in fields.items() if value is not None]
    scenario = apply_settings(load_scenario(name), [*changes, *settings])
    chosen = schedulers or default_schedulers(scenario)
    chosen = trusted(chosen) if trust else chosen
    folder = out if out is not None else home / scenario.name
    with contextlib.ExitStack() as stack:
        results = stack.enter_context(ResultFolder(folder))
        write = stack.enter_context(writing(("--json", json)))
        with progress_bar(len(chosen) * len(seeds)) as on_progress:
            comparison = compare(
                scenario,
                chosen,
                seeds,
                device=simulator,
                record="blocks",
                window_us=window_us,
                workers=workers,
                on_progress=on_progress,
                command=command_line(),
            )
        if not comparison.runs:
            typer.secho("interrupted before the first episode had finished; nothing written", err=True)
            raise typer.Exit(130)
        output_console().print(comparison)
        with Console(stderr=True).status("Writing results"):
            files = write_results(comparison, results.staging, traces=traces)
            write("--json", (results.staging / RESULT).read_bytes())
            results.publish()
    typer.echo(f"Written to {folder}: {', '.join(files)}")
    if comparison.interrupted:
        typer.secho(f"{comparison.interruption}; the result is marked as interrupted", fg="yellow", err=True)
        raise typer.Exit(130)
