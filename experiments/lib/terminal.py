"""What the command line prints on: a console, and a progress bar for comparisons."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gpusched_env.display.words import counted
from gpusched_env.experiments.lib.workers import Progress as OnProgress

PIPE_COLUMNS = 120
"""Width of output that goes to a file or pipe."""


def output_console() -> Console:
    """A console on the standard output, as wide as the terminal (or ``COLUMNS``), else :data:`PIPE_COLUMNS`."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_COLUMNS
    return console


def as_text(shown: Any) -> str:
    """What :func:`output_console` would print of ``shown``, without colours: ``str()`` of results."""
    text = io.StringIO()
    Console(file=text, width=output_console().width, color_system=None, force_terminal=False).print(shown)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip("\n")


def columns() -> tuple[ProgressColumn, ...]:
    """Of a progress bar: what is under way, how far, since when, how long still."""
    return (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )


@contextlib.contextmanager
def progress_bar(total: int | None, what: str = "episode", last: str = "the timeline") -> Iterator[OnProgress]:
    """Yields what ``compare(on_progress=...)`` takes; counts to ``total``, if it is known, and shows the time left.

    ``what`` is counted, one of it; ``last`` is what is under way when all are finished.
    Shows nothing where the standard error is no terminal.
    """
    console = Console(stderr=True)
    shown = console.is_terminal or console.is_jupyter
    with Progress(*columns(), console=console, transient=True, disable=not shown) as bar:
        row = bar.add_task("", total=1.0)

        def update(finished: int, share: float) -> None:
            text = counted(finished, what) if total is None else f"{finished:,} of {counted(total, what)}"
            bar.update(row, completed=share, description=last if finished == total else text)

        update(0, 0.0)
        yield update
