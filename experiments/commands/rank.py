"""``gpusched rank``, ``gpusched rank-replay``, ``gpusched rank-page`` and ``gpusched headroom-page``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import (
    MAINTAIN,
    USE,
    FirstSeed,
    Gpu,
    Overwrite,
    Scenarios,
    Schedulers,
    Seeds,
    Settings,
    Trust,
    Workers,
    command_line,
    with_fields,
)


@dataclass(frozen=True, kw_only=True)
class RankingOptions:
    """Of a ranking."""

    schedulers: Schedulers = ""
    seeds: Seeds = 10
    seed: FirstSeed = 0
    workloads: Annotated[
        str, typer.Option(metavar="SET", help="own, or the variants of a workload set: train, held_out.")
    ] = "own"
    gpu: Gpu = None
    simulators: Annotated[
        str, typer.Option(metavar="A,B", help="compiled, reference: the first decides, others must agree.")
    ] = "compiled"
    workers: Workers = None
    settings: Settings = None
    resume: Annotated[bool, typer.Option(help="Keep the episodes that the result file has.")] = False
    overwrite: Overwrite = False
    trust: Trust = False


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("rank", rich_help_panel=USE)(with_fields(rank))
    app.command("rank-replay", rich_help_panel=MAINTAIN)(rank_replay)
    app.command("rank-page", rich_help_panel=MAINTAIN)(rank_page)
    app.command("headroom-page", rich_help_panel=MAINTAIN)(headroom_page)


def rank(
    scenarios: Scenarios,
    json: Annotated[Path, typer.Option(metavar="PATH", help="Result file; grows while episodes finish.")],
    options: RankingOptions,
) -> None:
    """Rank schedulers by cost over seeds and workload variants, with intervals.

    Writes every episode's cost to the result file, from which gpusched rank-page makes a page.
    """
    from gpusched_env.baselines.spec import split_specs
    from gpusched_env.experiments.lib.files import refuse_existing
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.lib.trained import trusted
    from gpusched_env.experiments.ranking.run import rank as rank_all

    refuse_existing(json, "--json", overwrite=options.overwrite or options.resume)
    given = split_specs(options.schedulers) or None
    with progress_bar(None) as on_progress:
        ranking = rank_all(
            scenarios,
            trusted(given) if options.trust and given else given,
            range(options.seed, options.seed + options.seeds),
            json,
            workloads=options.workloads,
            gpu=options.gpu,
            devices=[simulator.strip() for simulator in options.simulators.split(",")],
            workers=options.workers,
            settings=options.settings or (),
            resume=options.resume,
            on_progress=on_progress,
            command=command_line(),
        )
    if not ranking.complete:
        typer.secho(f"interrupted; --resume goes on from {json}", fg=typer.colors.YELLOW, err=True)
        raise typer.Exit(130)
    output_console().print(ranking)


def rank_replay(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files of gpusched rank.")],
    seeds: Annotated[int, typer.Option(metavar="N", help="How many of each file's seeds.", min=1)] = 1,
    workers: Workers = None,
) -> None:
    """Play episodes of result files again, and say what comes out otherwise.

    Exits with status 1 if a figure differs by more than a relative 1e-12: processors round sums in their own ways. Says
    how many are equal to the last bit.
    """
    from gpusched_env.experiments.ranking.replay import TOLERANCE, replay
    from gpusched_env.experiments.ranking.result import read_ranking

    played = differing = exact = close = 0
    interrupted = False
    for file in files:
        found = replay(read_ranking(file), seeds, workers)
        played += found.episodes
        exact, close = exact + found.exact, close + found.close
        differing += len({difference.episode for difference in found.differences})
        for difference in found.differences:
            typer.secho(f"{file}: {difference}", fg=typer.colors.RED)
        left_out = f"; another policy now: {', '.join(found.other_policies)}" if found.other_policies else ""
        typer.echo(f"{file}: {found.episodes} episodes{left_out}{'' if found.complete else '; interrupted'}")
        if interrupted := not found.complete:
            break
    typer.echo(f"{played} episodes of {len(files)} files, {differing} of them with another figure")
    typer.echo(f"figures equal to the last bit: {exact}; equal within a relative {TOLERANCE:g} only: {close}")
    raise typer.Exit(1 if differing else 130 if interrupted else 0)


def rank_page(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files of gpusched rank.")],
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the Markdown page there.")],
    title: Annotated[str, typer.Option(help="Of the page.")] = "Rankings",
) -> None:
    """Write a page of rankings from their result files, and beside it its figure and all tables as CSV."""
    from gpusched_env.experiments.lib.files import write_file
    from gpusched_env.experiments.ranking.lead import pages
    from gpusched_env.experiments.ranking.result import read_ranking

    for name, content in pages([read_ranking(file) for file in files], docs, title).items():
        write_file(docs.parent / name, content, "--docs")


def headroom_page(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files with a clairvoyant scheduler.")],
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the Markdown page there.")],
) -> None:
    """Write a page of what scenarios leave to be gained, and beside it its figure."""
    from gpusched_env.experiments.lib.files import write_file
    from gpusched_env.experiments.ranking.headroom import pages
    from gpusched_env.experiments.ranking.result import read_ranking

    for name, content in pages([read_ranking(file) for file in files], docs).items():
        write_file(docs.parent / name, content, "--docs")
