"""Trainings from the command line: what is shown while they run, and what hand-written schedulers cost on the same
episodes.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress

from gpusched_env.agents.files import replacing, writing_to
from gpusched_env.agents.training import check_training, train
from gpusched_env.agents.training.config import Training
from gpusched_env.agents.training.folder import CONFIG, made_by
from gpusched_env.agents.training.validation import OnProgress
from gpusched_env.agents.training.validation import TrainingProgress as TrainingProgress
from gpusched_env.baselines.registered import split_specs
from gpusched_env.display.words import counted, duration
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import GameValidation, game_of
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.experiments.lib.terminal import Remaining, columns, progress_bar
from gpusched_env.experiments.ranking.made import Fingerprints, made_by_training
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.versions import versions

STORED = "baselines.json"


class _Stored(msgspec.Struct, kw_only=True):
    """``baselines.json``: costs by scheduler, and of which episodes."""

    seeds: list[int]
    scenarios: list[str]
    costs: dict[str, float]


def baseline_costs(config: Training, schedulers: str, out: Path) -> dict[str, float]:
    """Mean costs by scheduler, over all validation episodes of all training variants.

    They are kept in ``out``, so that a training that goes on does not simulate them again.

    Args:
        config: says what is validated on: a scenario, its variants, the number of validation seeds.
        schedulers: names, separated by commas; ``all`` that are registered, run on a GPU of today and know no more than
            a scheduler can, or ``none``.
        out: folder of the training.

    Raises:
        InputError: unknown scheduler, or a clairvoyant one.
    """
    if schedulers == "none":
        return {}
    game = game_of(config.scenario)
    names = game.baselines(config) if schedulers == "all" else split_specs(schedulers)
    bounds = [name for name in names if game.sees_truth(name)]
    if bounds:
        raise InputError(f"{', '.join(bounds)}: is told the truth, and no baseline for an agent that is not")
    validation = game.validation(config)
    known = _known(out, validation)
    missing = [name for name in names if name not in known]
    if missing:
        with progress_bar(len(missing) * validation.episodes, "baseline episode", "baselines") as tell:
            costs = validation.costs(missing, tell)
        known |= {name: game.mean(costs[name]) for name in missing}
        _store(out, validation, known)
    return {name: known[name] for name in names}


def _known(out: Path, validation: GameValidation) -> dict[str, float]:
    """What is stored of these episodes."""
    path = out / STORED
    if not path.is_file():
        return {}
    stored = decoded(read_bytes(path), _Stored, f"{path}: not what a training wrote, remove it")
    same = (stored.seeds, stored.scenarios) == (validation.seeds, validation.problems)
    return stored.costs if same else {}


def _store(out: Path, validation: GameValidation, costs: dict[str, float]) -> None:
    content = _Stored(seeds=validation.seeds, scenarios=validation.problems, costs=costs)
    with writing_to(out):
        out.mkdir(parents=True, exist_ok=True)
        with replacing(out / STORED) as partial:
            partial.write_bytes(msgspec.json.encode(content))


def run_training(config: Training, out: Path, *, baselines: str, resume: bool, trust: bool, command: str) -> None:
    """Train, with a progress bar, and say what came out.

    ``baselines``: schedulers to compare validations with, separated by commas; ``all`` or ``none``.
    """
    teacher = None
    if config.imitation is not None:
        teacher = functools.partial(new_scheduler, config.imitation.scheduler)
        teacher()
    check_training(config, out, resume=resume)
    made = _made(config, out)
    costs = baseline_costs(config, baselines, out)
    with watching(config) as watch:
        trained = train(
            config,
            out,
            teacher=teacher,
            baselines=costs,
            provenance={"command": command, "versions": versions(), "made": msgspec.to_builtins(made)},
            resume=resume,
            trust=trust,
            watch=watch,
        )
    if costs:
        best = min(costs, key=costs.__getitem__)
        typer.echo(f"Best baseline on the same episodes: {best}, {costs[best]:.4g}")
    typer.echo(
        f"Best validation cost {trained.best.cost:.4g} at {trained.best.timesteps:,} of "
        f"{counted(trained.timesteps, 'decision')}, after {duration(trained.train_s)}"
    )
    typer.echo(f"Written to {out}: {', '.join(sorted(found.name for found in out.iterdir()))}")


def _made(config: Training, out: Path) -> Fingerprints:
    """The fingerprints of a training that may go on: nothing is known of one that went on with other sources."""
    now = made_by_training(config)
    if not (out / CONFIG).is_file() or (before := made_by(out)) == msgspec.to_builtins(now):
        return now
    why = "on other sources than those of now" if before else "on sources that are not known"
    typer.secho(f"{out}: was trained {why}; its result will not say what made it", fg=typer.colors.YELLOW, err=True)
    return Fingerprints()


@contextlib.contextmanager
def watching(config: Training) -> Iterator[OnProgress]:
    """Shows the progress on the standard error: a bar on a terminal, else a line for each validation."""
    console = Console(stderr=True)
    began, first = time.perf_counter(), -1
    with Progress(*columns(), console=console, transient=True, disable=not console.is_terminal) as bar:
        row = bar.add_task("training", total=config.timesteps, left="")
        remaining = Remaining()

        def watch(now: TrainingProgress) -> None:
            nonlocal first
            if first < 0:
                first = now.timesteps
            rate = (now.timesteps - first) / max(1e-9, time.perf_counter() - began)
            best = "" if now.best_cost is None else f"  best cost {now.best_cost:.4g}"
            bar.update(
                row,
                completed=now.timesteps,
                description=f"{counted(now.timesteps, 'decision')}  {rate:,.0f}/s{best}",
                left=remaining.text(now.timesteps / config.timesteps),
            )
            if now.validation is not None:
                mark = " (best)" if now.validation.best else ""
                console.print(f"{now.timesteps:>12,}  {rate:>7,.0f}/s  validation cost {now.validation.cost:.4g}{mark}")

        yield watch
