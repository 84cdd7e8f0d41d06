"""What hand-written schedulers cost on the validation episodes of a training: played beside it, kept in its folder.

A process of low priority plays scheduler after scheduler while the training goes on, so that nobody waits for them
before the first step. ``baselines.json`` says of each cost what made it: sources, scenarios and seeds. What has changed
since is said, and played again.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import msgspec
import typer

from gpusched_env.agents.files import replacing, writing_to
from gpusched_env.agents.training.config import Training
from gpusched_env.baselines.registered import split_specs
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Game, GameValidation, game_of
from gpusched_env.experiments.lib.terminal import progress_bar
from gpusched_env.experiments.lib.workers import Progress, belong_to
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.sources import hash_of

STORED: Final = "baselines.json"
ALL, NONE = "all", "none"


class _Cost(msgspec.Struct, frozen=True):
    """One scheduler's."""

    cost: float
    """Mean over the validation episodes."""
    made: str
    """Hash of what they are made by."""


class BaselineCosts:
    """Mean costs by scheduler, over all validation episodes of all training variants."""

    def __init__(self, config: Training, schedulers: str, out: Path) -> None:
        """
        Args:
            config: says what is validated on: a scenario, its variants, the number of validation seeds.
            schedulers: names, separated by commas; ``all`` that are registered, run on a GPU of today and know no more
                than a scheduler can, or ``none``.
            out: folder of the training.

        Raises:
            InputError: unknown scheduler, or a clairvoyant one.
        """
        self._config, self._file = config, out / STORED
        game = game_of(config.scenario)
        self.names = _names(game, config, schedulers)
        bounds = [name for name in self.names if game.sees_truth(name)]
        if bounds:
            raise InputError(f"{', '.join(bounds)}: is told the truth, and no baseline for an agent that is not")
        self._process: BaseProcess | None = None
        self._read_ns = 0
        self.known: dict[str, float] = {}
        """Costs found so far; :meth:`look` brings it up to date."""
        self._check_stored(game.validation(config))

    def _check_stored(self, validation: GameValidation) -> None:
        """Take what is stored, but for what other sources, scenarios or seeds made."""
        stored = _read(self._file)
        if not stored:
            return
        now = _hashes(validation, [name for name in self.names if name in stored])
        stale = [name for name, made in now.items() if stored[name].made != made]
        if stale:
            typer.secho(
                f"{self._file}: {counted(len(stale), 'scheduler')} had other sources, scenarios or seeds then and "
                f"will be played again: {', '.join(stale)}",
                fg=typer.colors.YELLOW,
                err=True,
            )
            _write(self._file, {name: found for name, found in stored.items() if name not in stale})
        self.look()

    @property
    def missing(self) -> list[str]:
        """Schedulers whose costs are not known yet."""
        return [name for name in self.names if name not in self.known]

    def look(self) -> None:
        """Take what has been found meanwhile."""
        with contextlib.suppress(FileNotFoundError):
            written_ns = self._file.stat().st_mtime_ns
            if written_ns != self._read_ns:
                self._read_ns = written_ns
                stored = _read(self._file)
                self.known.update((name, stored[name].cost) for name in self.missing if name in stored)

    def play_beside(self) -> None:
        """Have what is missing played in another process, until :meth:`stop`."""
        if self._process is None and self.missing:
            arguments = (self._config, self.missing, self._file, os.getpid())
            self._process = multiprocessing.get_context("spawn").Process(
                target=_play_beside, args=arguments, daemon=True
            )
            self._process.start()

    def stop(self) -> None:
        """End the other process; what it was at is lost."""
        if self._process is not None:
            self._process.terminate()
            self._process.join()
            self._process = None

    def rest(self) -> dict[str, float]:
        """All costs; what is missing is played now, by as many processes as there are cores.

        Raises:
            KeyboardInterrupt: an interrupt cut it short.
        """
        self.look()
        if self.missing:
            validation = game_of(self._config.scenario).validation(self._config)
            with progress_bar(len(self.missing) * validation.episodes, "baseline episode", "baselines") as tell:
                _play(self._config, self.missing, self._file, tell, None)
            self.look()
        return {name: self.known[name] for name in self.names}


def _names(game: Game, config: Training, schedulers: str) -> list[str]:
    if schedulers == NONE:
        return []
    names = game.baselines(config) if schedulers == ALL else split_specs(schedulers)
    # The one that most is held against comes first.
    return sorted(names, key=lambda name: name != game.plain_gpu)


def _play_beside(config: Training, schedulers: list[str], file: Path, parent: int) -> None:
    belong_to(parent)
    if hasattr(os, "nice"):
        os.nice(19)
    _play(config, schedulers, file, lambda finished, share: None, 1)


def _play(config: Training, schedulers: list[str], file: Path, on_progress: Progress, workers: int | None) -> None:
    """Play one scheduler after the other, and keep what each costs."""
    game = game_of(config.scenario)
    validation = game.validation(config)
    for number, name in enumerate(schedulers):

        def tell(finished: int, share: float, number: int = number) -> None:
            on_progress(number * validation.episodes + finished, (number + share) / len(schedulers))

        costs = validation.costs([name], tell, workers)[name]
        found = _Cost(game.mean(costs), _hashes(validation, [name])[name])
        _write(file, _read(file) | {name: found})


def _hashes(validation: GameValidation, schedulers: list[str]) -> dict[str, str]:
    """Of sources, options, scenarios and seeds, by scheduler."""
    made = validation.made(schedulers)
    played = [made.physics, made.data, validation.problems, validation.seeds]

    def text(name: str) -> str:
        own = [{scenario: found.get(name) for scenario, found in of.items()} for of in (made.schedulers, made.weights)]
        return msgspec.json.encode([*played, *own], order="sorted").decode()

    return {name: hash_of((), text(name)) for name in schedulers}


def _read(file: Path) -> dict[str, _Cost]:
    if not file.is_file():
        return {}
    return decoded(read_bytes(file), dict[str, _Cost], f"{file}: not what a training wrote, remove it")


def _write(file: Path, costs: dict[str, _Cost]) -> None:
    with writing_to(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as partial:
            partial.write_bytes(msgspec.json.encode(costs))
