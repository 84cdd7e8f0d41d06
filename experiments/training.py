"""Trainings from the command line: what is shown while they run, and what hand-written schedulers cost beside them."""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress

from gpusched_env.agents.training import check_training, train
from gpusched_env.agents.training.config import Training
from gpusched_env.agents.training.folder import CONFIG, made_by, note_baselines
from gpusched_env.agents.training.progress import TrainingProgress
from gpusched_env.display.words import counted, duration
from gpusched_env.experiments.baseline_costs import BaselineCosts
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.experiments.lib.terminal import Remaining, columns
from gpusched_env.experiments.ranking.made import Fingerprints, made_by_training
from gpusched_env.versions import versions


def run_training(config: Training, out: Path, *, baselines: str, resume: bool, trust: bool, command: str) -> None:
    """Train, with a progress bar, and say what came out.

    ``baselines``: schedulers to compare validations with, separated by commas; ``all`` or ``none``.
    """
    # What the extra lacks is said before minutes of preparation.
    importlib.import_module("gpusched_env.agents.training.validation")
    teacher = None
    if config.imitation is not None:
        teacher = functools.partial(new_scheduler, config.imitation.scheduler)
        teacher()
    with watching(config) as shown:
        check_training(config, out, resume=resume)
        costs = BaselineCosts(config, baselines, out)
        made = _made(config, out)

        def watch(now: TrainingProgress) -> None:
            costs.play_beside()
            costs.look()
            shown.tell(now)

        try:
            trained = train(
                config,
                out,
                teacher=teacher,
                baselines=costs.known if costs.names else None,
                provenance={"command": command, "versions": versions(), "made": msgspec.to_builtins(made)},
                resume=resume,
                trust=trust,
                watch=watch,
            )
        finally:
            costs.stop()
    typer.echo(
        f"Best validation cost {trained.best.cost:.4g} at {trained.best.timesteps:,} of "
        f"{counted(trained.timesteps, 'decision')}, after {duration(trained.train_s)}"
    )
    _compare(costs, out)
    typer.echo(f"Written to {out}: {', '.join(sorted(found.name for found in out.iterdir()))}")


def _compare(costs: BaselineCosts, out: Path) -> None:
    """Say what the best baseline costs, as soon as all have been played."""
    if not costs.names:
        return
    if costs.missing:
        done = len(costs.names) - len(costs.missing)
        typer.echo(
            f"The training is complete; {done} of {counted(len(costs.names), 'baseline')} have been played. "
            "After an interrupt, the same command with --resume plays the others",
            err=True,
        )
    found = costs.rest()
    note_baselines(out, found)
    best = min(found, key=found.__getitem__)
    typer.echo(f"Best baseline on the same episodes: {best}, {found[best]:.4g}")


def _made(config: Training, out: Path) -> Fingerprints:
    """The fingerprints of a training that may go on: nothing is known of one that went on with other sources."""
    now = made_by_training(config)
    if not (out / CONFIG).is_file() or (before := made_by(out)) == msgspec.to_builtins(now):
        return now
    why = "on other sources than those of now" if before else "on sources that are not known"
    typer.secho(f"{out}: was trained {why}; its result will not say what made it", fg=typer.colors.YELLOW, err=True)
    return Fingerprints()


class Watcher:
    """Shows on the standard error how far a training is: a bar on a terminal; else a line for each validation, and
    until the first one a line every few seconds."""

    EVERY_S = 5.0

    def __init__(self, config: Training, console: Console, bar: Progress) -> None:
        self._config, self._console, self._bar = config, console, bar
        self._row = bar.add_task("preparing", total=config.timesteps, left="")
        self._remaining = Remaining()
        self._doing = "preparing"
        self._start: tuple[float, int] | None = None
        """When learning began, and after how many decisions."""
        self.validated = threading.Event()
        """Set as soon as there is a validation."""

    def tell(self, now: TrainingProgress) -> None:
        """Show it."""
        if self._start is None:
            self._start = time.perf_counter(), now.timesteps
        rate = ""
        if now.timesteps > self._start[1]:
            rate = f"{(now.timesteps - self._start[1]) / max(1e-9, time.perf_counter() - self._start[0]):,.0f}/s"
        best = "" if now.best_cost is None else f"  best cost {now.best_cost:.4g}"
        done = f"{counted(now.timesteps, 'decision')}  {rate}{best}"
        self._doing = "validating" if now.validating else done
        left = self._remaining.text(now.timesteps / self._config.timesteps)
        self._bar.update(self._row, completed=now.timesteps, description=self._doing, left=left)
        if now.validation is not None:
            self.validated.set()
            mark = " (best)" if now.validation.best else ""
            at = now.validation.timesteps
            self._console.print(f"{at:>12,}  {rate:>9}  validation cost {now.validation.cost:.4g}{mark}")

    def say_until_validated(self) -> None:
        """Say what is under way, every few seconds."""
        since = time.perf_counter()
        while not self.validated.wait(self.EVERY_S):
            self._console.print(f"{self._doing}, {time.perf_counter() - since:.0f} s")


@contextlib.contextmanager
def watching(config: Training) -> Iterator[Watcher]:
    """A watcher that says what is under way from here on."""
    console = Console(stderr=True)
    with Progress(*columns(), console=console, transient=True, disable=not console.is_terminal) as bar:
        watcher = Watcher(config, console, bar)
        if console.is_terminal:
            yield watcher
            return
        lines = threading.Thread(target=watcher.say_until_validated, daemon=True)
        lines.start()
        try:
            yield watcher
        finally:
            watcher.validated.set()
            lines.join()
