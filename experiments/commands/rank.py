"""``gpusched lab rank`` and what belongs to it, ``curves``, ``results`` and ``ship``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import (
    AllSchedulers,
    FirstSeed,
    Gpu,
    Overwrite,
    Scenarios,
    Seeds,
    Settings,
    Trust,
    Workers,
    command_line,
    with_fields,
)


@dataclass(frozen=True, kw_only=True)
class RankingOptions:
    """Options of a ranking."""

    schedulers: AllSchedulers = ""
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


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Options of a replay."""

    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many of each file's seeds. Default: 1, with --note all.", min=1),
    ] = None
    note: Annotated[bool, typer.Option("--note", help="Note in the files what comes out equal to the last bit.")] = (
        False
    )
    replace: Annotated[bool, typer.Option("--replace", help="Replace what comes out otherwise by what was played.")] = (
        False
    )
    stale: Annotated[
        bool, typer.Option("--stale", help="Play nothing: list what does not stand for the sources and data of now.")
    ] = False
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", help="Play so many episodes of all files together, mostly cheap ones.", min=1),
    ] = None
    draw: Annotated[str, typer.Option(metavar="TEXT", help="Which sample, such as a commit's hash.")] = ""
    workers: Workers = None


@with_fields
def rank(
    scenarios: Scenarios,
    json: Annotated[Path, typer.Option(metavar="PATH", help="Result file; grows while episodes finish.")],
    options: RankingOptions,
) -> None:
    """Rank schedulers by cost over seeds and workload variants, with intervals.

    Writes every episode's cost to the result file, from which gpusched lab page rankings makes a page.
    """
    from gpusched_env.baselines.registered import split_specs
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
            overwrite=options.overwrite,
            on_progress=on_progress,
            on_resumed=lambda said: typer.echo(said, err=True),
            command=command_line(),
        )
    if not ranking.complete:
        typer.secho(f"interrupted; --resume goes on from {json}", fg=typer.colors.YELLOW, err=True)
        raise typer.Exit(130)
    output_console().print(ranking)


@with_fields
def rank_replay(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files of gpusched lab rank.")],
    options: ReplayOptions,
) -> None:
    """Play episodes of result files again, and say what comes out otherwise.

    Exits with status 1 if a figure differs by more than a relative 1e-12: processors round sums in their own ways. Says
    how many are equal to the last bit.

    With --note, what comes out equal to the last bit is noted in the files: these episodes then stand for the sources
    and data of now. Episodes that do so already are not played, so that an interrupted run is gone on with, and files
    may be shared out among machines.
    """
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.ranking.replay import TOLERANCE, ReplayOfFiles

    if options.replace and not options.note:
        raise InputError("--replace goes with --note: what differs is replaced by what was played, the rest is noted")
    replaying = ReplayOfFiles(workers=options.workers, note=options.note, replace=options.replace, tell=typer.echo)
    if options.stale:
        raise typer.Exit(1 if replaying.list_stale(files) else 0)
    if options.sample is not None:
        replaying.sample(files, options.sample, options.draw)
    else:
        replaying.play(files, options.seeds)
    found = replaying.total
    typer.echo(f"{found.episodes} episodes of {len(files)} files, {replaying.differing} of them with another figure")
    typer.echo(
        f"figures equal to the last bit: {found.exact}; equal within a relative {TOLERANCE:g} only: {found.close}"
    )
    raise typer.Exit(1 if replaying.differing and not options.replace else 0 if found.complete else 130)


def rank_page(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files of gpusched lab rank.")],
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the Markdown page there.")],
    title: Annotated[str, typer.Option(help="Of the page.")] = "Rankings",
) -> None:
    """Write a page of rankings from their result files, and beside it its figure and all tables as CSV."""
    from gpusched_env.experiments.lib.pages import write_page
    from gpusched_env.experiments.ranking.pages import ranking_pages
    from gpusched_env.experiments.ranking.result import read_rankings

    write_page(docs, ranking_pages(list(read_rankings(files).values()), docs, title), files)


def headroom_page(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files with a clairvoyant scheduler.")],
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the Markdown page there.")],
) -> None:
    """Write a page of what scenarios leave to be gained, and beside it its figure."""
    from gpusched_env.experiments.lib.pages import write_page
    from gpusched_env.experiments.ranking.pages import headroom_pages
    from gpusched_env.experiments.ranking.result import read_rankings

    write_page(docs, headroom_pages(list(read_rankings(files).values()), docs), files)


Folders = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of gpusched train.")]


def curves_command(
    folders: Folders,
    json: Annotated[Path, typer.Option(metavar="PATH", help="Result file.")],
) -> None:
    """Put the learning curves of one training with several seeds into a file.

    The trainings must differ in their seed only.
    """
    from gpusched_env.display.words import counted
    from gpusched_env.experiments.lib.files import write_file
    from gpusched_env.experiments.results.curves import encode_curves, gather

    curves = gather(folders)
    write_file(json, encode_curves(curves), "--json")
    typer.echo(
        f"{curves.scenario}, {counted(len(curves.curves), 'seed')}, {counted(curves.timesteps[-1], 'decision')}: "
        f"mean cost {curves.means()[-1]} in the last validation"
    )


def results_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files of gpusched lab rank.")],
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the Markdown page there, and pictures beside it.")],
    curves: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Result file of gpusched lab curves; may be repeated.")
    ] = None,
) -> None:
    """Write the page of results of trained agents from result files.

    A summary beside the best hand-written schedulers, all tables, learning curves, and where shipped agents come from.
    """
    from gpusched_env.agents.manifest import check_agent
    from gpusched_env.agents.shipped import FOLDER, shipped_names
    from gpusched_env.experiments.lib.pages import write_page
    from gpusched_env.experiments.ranking.made import check_together
    from gpusched_env.experiments.ranking.result import read_rankings
    from gpusched_env.experiments.results.curves import read_curves
    from gpusched_env.experiments.results.page import page

    rankings = {str(file): ranking for file, ranking in read_rankings(files).items()}
    learned = {str(file): read_curves(file) for file in curves or []}
    for file, found in learned.items():
        check_together({f"{file}, seed {curve.seed}": curve.made for curve in found.curves})
    manifests = [check_agent(FOLDER, name) for name in shipped_names()]
    text, pictures = page(rankings, learned, manifests, docs)
    write_page(docs, {docs.name: text, **pictures}, [*files, *(curves or [])])


def ship_command(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Folders of gpusched train, in order; the last has the policy."),
    ],
    into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Default: agents/trained, where 'learned' finds it.")
    ] = None,
) -> None:
    """Let the best policy of a training come with the package, for the scenario that it was trained on.

    Writes <Scenario>.npz, and <Scenario>.json with commands, seeds, versions, the validation and the policy's hash.
    """
    from gpusched_env.agents.manifest import ship
    from gpusched_env.agents.shipped import FOLDER

    folder = FOLDER if into is None else into
    manifest = ship(folders, folder)
    typer.echo(f"Written: {folder / manifest.scenario}.npz and .json, validation cost {manifest.validation.cost:.4g}")
