"""What the command line prints on, and results that show themselves."""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from gpusched_env.display.table import Table, printed
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
    """The columns of a progress bar: what is under way, how far, since when, how long still."""
    return (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )


@contextlib.contextmanager
def progress_bar(total: int | None, what: str = "episode", last: str = "the timeline") -> Iterator[OnProgress]:
    """Yields what ``compare(on_progress=...)`` takes; counts to ``total``, if it is known, and shows the time left.

    ``what`` is counted, one of it; ``last`` is what is under way when all are finished.
    A bar where the standard error is a terminal, elsewhere a line now and then.
    """
    console = Console(stderr=True)
    shown = console.is_terminal or console.is_jupyter
    remaining = Remaining()
    with Progress(*columns(), console=console, transient=True, disable=not shown) as bar:
        row = bar.add_task("", total=1.0, left="")
        lines = None if shown else _Lines()

        def update(finished: int, share: float) -> None:
            text = counted(finished, what) if total is None else f"{finished:,} of {counted(total, what)}"
            left = remaining.text(share)
            bar.update(row, completed=share, description=last if finished == total else text, left=left)
            if lines is not None and finished > 0:
                lines.tell(text, left, share)

        update(0, 0.0)
        yield update


class Remaining:
    """How long it still takes, by the speed since the first progress: what came before was preparation."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, float] | None = None

    def text(self, share: float) -> str:
        """``about 12 s left``, or nothing as long as there is nothing to tell by; ``share``: of all, 0 to 1."""
        if share <= 0.0:
            return ""
        if self._first is None:
            self._first = self._clock(), share
        since, begun = self._first
        if not begun < share < 1.0:
            return ""
        return f"about {math.ceil((self._clock() - since) / (share - begun) * (1.0 - share))} s left"


class _Lines:
    """Progress as lines of a log: at each tenth of the way, but not more often than every five seconds."""

    EVERY_S = 5.0

    def __init__(self) -> None:
        self._told_s, self._told_share = time.monotonic(), 0.0

    def tell(self, text: str, left: str, share: float) -> None:
        now = time.monotonic()
        if share - self._told_share >= 0.1 and now - self._told_s >= self.EVERY_S:
            self._told_s, self._told_share = now, share
            print(", ".join(filter(None, [text, left])), file=sys.stderr, flush=True)


class DisplayedResult:
    """A result that is shown by its headline and its tables."""

    __slots__ = ()

    def headline(self) -> str:
        """What the result is, in a line."""
        raise NotImplementedError

    def printed(self) -> Sequence[Table]:
        """The tables for the terminal; those without rows are left out."""
        raise NotImplementedError

    def in_notebook(self) -> Sequence[Table]:
        """The tables for a notebook."""
        return self.printed()

    def __repr__(self) -> str:
        return f"<{self.headline()}>"

    def __str__(self) -> str:
        return as_text(self)

    def __rich__(self) -> Any:
        return printed(self.printed())

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.in_notebook() if table.rows)
