"""The command ``gpusched compare --sweep``."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpusched_env.experiments.lib.options import command_line

if TYPE_CHECKING:
    from gpusched_env.experiments.commands.compare import ComparisonOptions
    from gpusched_env.scenarios.scenario import Scenario


def run_load_curve(scenario: Scenario, schedulers: Sequence[str], home: Path, options: ComparisonOptions) -> None:
    """Run the comparison at every value, print tables, write the files; ``home``: folder above the default one."""
    from gpusched_env.experiments.compare import compare
    from gpusched_env.experiments.lib.files import RESULT, result_folder, writing
    from gpusched_env.experiments.lib.names import default_schedulers, expanded
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.lib.trained import trusted
    from gpusched_env.experiments.load_curve.curve import compare_over, write_curve
    from gpusched_env.experiments.load_curve.figures import parse_axis

    axis = parse_axis(options.sweep or "")
    chosen = expanded(schedulers, scenario) or default_schedulers(scenario)
    seeds = range(options.seed, options.seed + options.seeds)
    default = home / f"{scenario.name}-{axis.field}"
    with contextlib.ExitStack() as stack:
        results = stack.enter_context(result_folder(options.out, default, overwrite=options.overwrite))
        write = stack.enter_context(writing(("--json", options.json), overwrite=options.overwrite))
        with progress_bar(len(chosen) * len(seeds) * len(axis.values), last="done") as on_progress:
            curve = compare_over(
                compare,
                axis,
                scenario,
                share=options.share,
                schedulers=trusted(chosen) if options.trust else chosen,
                seeds=seeds,
                device=options.simulator,
                record="kernels" if options.traces else "jobs",
                window_us=options.window_us,
                workers=options.workers,
                on_progress=on_progress,
                command=command_line(),
            )
        output_console().print(curve)
        files = write_curve(curve, results.staging)
        write("--json", (results.staging / RESULT).read_bytes())
        results.publish()
    typer.echo(f"Written to {results.path}: {', '.join(files)}")
    if curve.interrupted:
        typer.secho(
            "interrupted: some episodes are missing; the result is marked as interrupted", fg="yellow", err=True
        )
        raise typer.Exit(130)
