"""``gpusched demo``: what a first look shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

OUT = Path("results") / "demo"


def demo_command(
    seeds: Annotated[int, typer.Option(min=1, help="How many.")] = 3,
    out: Annotated[Path, typer.Option(help="Folder for the report and the data; an earlier demo's is replaced.")] = OUT,
) -> None:
    """Eight schedulers on one GPU, what is seen of them in a sentence each, and a report.

    Shows a problem that can be solved by hand first.
    """
    from gpusched_env.experiments.demo import show_example, show_story

    show_example()
    show_story(seeds, out)
