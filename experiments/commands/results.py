"""``gpusched curves``, ``gpusched results`` and ``gpusched ship``: what trained agents are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import MAINTAIN

Folders = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of gpusched train.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("curves", rich_help_panel=MAINTAIN)(curves_command)
    app.command("results", rich_help_panel=MAINTAIN)(results_command)
    app.command("ship", rich_help_panel=MAINTAIN)(ship_command)


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
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files of gpusched rank.")],
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the Markdown page there, and pictures beside it.")],
    curves: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Result file of gpusched curves; may be repeated.")
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
