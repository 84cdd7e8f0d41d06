"""``gpusched submit``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import Overwrite, Workers, command_line, with_fields


@dataclass(frozen=True, kw_only=True)
class SubmitOptions:
    """Options of a submission."""

    track: Annotated[str, typer.Option(help="tenants, tiles, graphs, child-launches, task-queues.")] = "tenants"
    name: Annotated[str | None, typer.Option(help="What the row is called. Default: the file's name.")] = None
    source: Annotated[
        str, typer.Option(metavar="TEXT", help="Who made it, and where it is described; stands in the row.")
    ] = ""
    into: Annotated[Path, typer.Option(metavar="DIR", help="Folder of rows, with a folder for each track.")] = Path(
        "docs/submissions"
    )
    secret: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Of the sealed seeds, when it has been said: they count, too.")
    ] = None
    workers: Workers = None
    overwrite: Overwrite = False


@with_fields
def submit_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="file.py, file.py:Name, a policy's .npz, a training's folder, or a shipped scheduler's name. A row's "
            ".json: whether it comes out again.",
        ),
    ],
    options: SubmitOptions,
) -> None:
    """Check a scheduler or policy by the board's protocol, score it, and write its row.

    Plays every problem of a track on the seeds of the protocol: two minutes on two cores. The row and a copy of the
    file are what is sent in; the leaderboard is made from such rows.

    Given a row, plays it again: exits with status 1 if a cost differs. With --overwrite the row is written anew.
    """
    from gpusched_env.experiments.submission.submit import replayed, submit

    path = Path(file)
    if path.suffix == ".json":
        same = replayed(
            path, secret=options.secret, workers=options.workers, overwrite=options.overwrite, tell=typer.echo
        )
        raise typer.Exit(0 if same else 1)
    written = submit(
        file,
        track=options.track,
        name=options.name,
        source=options.source,
        into=options.into,
        secret=options.secret,
        workers=options.workers,
        overwrite=options.overwrite,
        command=command_line(),
    )
    typer.echo(written)
