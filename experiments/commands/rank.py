"""``gpusched rank`` and ``gpusched rank-page``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("rank")(rank)
    app.command("rank-page")(rank_page)


def rank(
    scenarios: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Names, or .yaml files.")],
    json: Annotated[Path, typer.Option(metavar="PATH", help="Result file; grows while episodes finish.")],
    schedulers: Annotated[
        str, typer.Option(metavar="A,B,...", help="As for gpusched compare. Default: those of gpusched compare.")
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Episodes of each scheduler and variant.")] = 10,
    seed: Annotated[int, typer.Option(min=0, metavar="FIRST", help="First seed.")] = 0,
    workloads: Annotated[
        str, typer.Option(metavar="SET", help="own, or the variants of a workload set: train, held_out.")
    ] = "own",
    gpu: Annotated[str | None, typer.Option(help="Another GPU (gpusched gpus).")] = None,
    devices: Annotated[str, typer.Option(metavar="A,B", help="The first decides, others must agree.")] = "compiled",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one a CPU core.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="As for gpusched compare, of every scenario; may be repeated."),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Keep the episodes that the result file has.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Run code in a .zip that no training of ours wrote.")] = False,
) -> None:
    """Rank schedulers by cost over seeds and workload variants, with intervals.

    Writes every episode's cost to the result file, from which gpusched rank-page makes a page.
    """
    from gpusched_env.baselines.spec import split_specs
    from gpusched_env.experiments.plugins import default_schedulers, trusted
    from gpusched_env.experiments.ranking.page import terminal
    from gpusched_env.experiments.ranking.run import run_ranking
    from gpusched_env.experiments.terminal import output_console, progress_bar
    from gpusched_env.scenarios.scenario import load_scenario

    common = [default_schedulers(load_scenario(scenario)) for scenario in scenarios]
    names = split_specs(schedulers) or [name for name in common[0] if all(name in names for names in common)]
    with progress_bar(1, "episodes") as on_progress:
        ranking = run_ranking(
            scenarios,
            trusted(names) if trust else names,
            range(seed, seed + seeds),
            json,
            workloads=workloads,
            gpu=gpu,
            devices=[device.strip() for device in devices.split(",")],
            workers=workers,
            settings=settings or (),
            resume=resume,
            on_progress=on_progress,
            command=shlex.join(["gpusched", *sys.argv[1:]]),
        )
    if not ranking.complete:
        typer.secho(f"interrupted; --resume goes on from {json}", fg=typer.colors.YELLOW, err=True)
        raise typer.Exit(130)
    output_console().print(terminal(ranking))


def rank_page(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files of gpusched rank.")],
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the Markdown page there.")],
    title: Annotated[str, typer.Option(help="Of the page.")] = "Rankings",
) -> None:
    """Write a page of rankings from their result files."""
    from gpusched_env.experiments.output import result_file
    from gpusched_env.experiments.ranking.page import markdown
    from gpusched_env.experiments.ranking.result import read_ranking

    page = markdown([read_ranking(file) for file in files], title)
    with result_file(docs, "--docs") as staging:
        staging.write_text(page, encoding="utf-8")
