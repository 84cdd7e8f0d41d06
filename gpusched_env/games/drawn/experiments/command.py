"""``gpusched lab drawn-tune`` and ``gpusched lab page drawn``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import GAMES, Workers


def register(lab: typer.Typer, page: typer.Typer) -> None:
    """Add the commands of drawn scenarios to ``gpusched lab`` and ``gpusched lab page``."""
    lab.command("drawn-tune", rich_help_panel=GAMES)(drawn_tune)
    page.command("drawn")(drawn_page)


def drawn_tune(
    json: Annotated[Path, typer.Option(metavar="PATH", help="What was played; grows, and is gone on with.")],
    workers: Workers = None,
) -> None:
    """Search the options of all published schedulers on drawn scenarios, by successive halving.

    Writes baselines/tuned/Drawn.json, from where tuned:NAME has them.
    """
    import msgspec

    from gpusched_env.baselines.tuning import FOLDER
    from gpusched_env.experiments.lib.files import write_file
    from gpusched_env.experiments.lib.terminal import progress_bar
    from gpusched_env.games.drawn.experiments.halving import tune_drawn
    from gpusched_env.games.drawn.experiments.opponents import NAME

    with progress_bar(None) as on_progress:
        found = tune_drawn(json, workers, on_progress)
    write_file(FOLDER / f"{NAME}.json", msgspec.json.format(msgspec.json.encode(found), indent=1), "--json")
    typer.echo(f"Changed: {', '.join(found.changed)}; chosen: {found.chosen}")


def drawn_page(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files of gpusched lab rank Drawn.")],
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the Markdown page there.")],
) -> None:
    """Write the page of drawn scenarios: how much there is to gain on each split, and how schedulers do."""
    from gpusched_env.experiments.lib.pages import write_page
    from gpusched_env.experiments.ranking.result import read_rankings
    from gpusched_env.games.drawn.experiments.page import drawn_pages

    write_page(docs, drawn_pages(list(read_rankings(files).values()), docs), files)
