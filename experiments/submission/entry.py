"""What is submitted: a file, a policy or a shipped scheduler, and whether the board takes it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from gpusched_env.agents.training.folder import policy_file
from gpusched_env.baselines.registered import parse_spec
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.kernels import KernelGrid
from gpusched_env.experiments.lib.files import file_name
from gpusched_env.experiments.lib.hiding import decisions
from gpusched_env.experiments.lib.names import load_file, new_scheduler
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.trained import LEARNED, is_learned, is_published, learned_file
from gpusched_env.experiments.submission.protocol import Track, protocol
from gpusched_env.experiments.submission.watching import limited, watching
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import override
from gpusched_env.scheduling.reads import PARTS, reads_of

Kind = Literal["published", "rule", "agent"]
POLICY: Final = ".npz"
PROBE_US: Final = 20_000.0
"""Simulated time of the episodes that find out what a scheduler reads."""
NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,39}")


@dataclass(frozen=True)
class Entry:
    """A scheduler that is submitted."""

    reference: str
    """As rankings take it, with the path of its file."""
    file: Path | None
    """``None``: it comes with the package."""

    @property
    def stored(self) -> str:
        """The reference with no more than the file's name."""
        return self.reference if self.file is None else self.reference.replace(str(self.file), self.file.name)

    @property
    def folder(self) -> Path | None:
        """The folder whose code is watched."""
        return self.file.parent if self.file is not None and self.file.suffix == ".py" else None

    @property
    def kind(self) -> Kind:
        """What sort of scheduler it is."""
        if is_learned(self.reference):
            return "agent"
        return "published" if self.file is None and is_published(self.reference) else "rule"

    @property
    def name(self) -> str:
        """What it is called, unless it is told."""
        plain = self.reference if self.file is None else self.file.stem
        return re.sub("-+", "-", re.sub(r"[^a-z0-9.]", "-", file_name(plain).lower())).strip("-.")


def entry_of(given: str) -> Entry:
    """What ``gpusched submit`` was given.

    Args:
        given: ``file.py``, ``file.py:Name``, a policy's ``.npz``, a training's folder, or a shipped scheduler's name.

    Raises:
        InputError: there is no such file, or no one scheduler in it.
    """
    path, colon, name = given.partition(".py:")
    if colon or given.endswith(".py"):
        file = Path(f"{path}.py" if colon else given)
        with watching(file.parent):
            module = load_file(file, given)
        return Entry(f"{file}:{name}" if colon else f"{file}:{_one_of(_schedulers(module), file)}", file)
    if is_learned(given):
        return Entry(given, learned_file(given))
    if Path(given).exists() or given.endswith(POLICY):
        file = policy_file(Path(given))
        if file.suffix != POLICY:
            raise InputError(
                f"{given}: expected file.py, a policy's {POLICY}, a training's folder or a shipped scheduler's name"
            )
        return Entry(f"{LEARNED}:{file}", file)
    parse_spec(given)
    return Entry(given, None)


def _schedulers(module: Any) -> list[str]:
    """The names of classes of a module that are schedulers."""
    return [
        name
        for name, made in vars(module).items()
        if inspect.isclass(made)
        and made.__module__ == module.__name__
        and all(callable(getattr(made, method, None)) for method in ("reset", "decide"))
    ]


def _one_of(names: list[str], file: Path) -> str:
    if not names:
        raise InputError(f"{file}: has no scheduler, a class with the methods reset(knowledge, rng) and decide(view)")
    if len(names) > 1:
        raise InputError(f"{file}: has {counted(len(names), 'scheduler')}; name one, as in {file}:{names[0]}")
    return names[0]


def check_name(name: str) -> None:
    """
    Raises:
        InputError: no row can be called so.
    """
    if not NAME.fullmatch(name):
        raise InputError(f"--name {name!r}: expected small letters, digits, dots and hyphens, 40 at most, as in my-edf")


def examined(entry: Entry, track: Track) -> list[str]:
    """What a scheduler reads, as words of :data:`~gpusched_env.scheduling.reads.PARTS`; those it declares, if it does.

    It plays short episodes: as it is, twice, and with one part of what is known hidden after the other.

    Raises:
        InputError: it cannot play, is told the truth, decides otherwise the second time, reads what it does not
            declare, or does what :mod:`~gpusched_env.experiments.submission.watching` refuses.
        GpuschedError: it failed; names its line.
    """
    with watching(entry.folder), limited(protocol().limit_s, entry.stored):
        grid = track.field(entry.reference, "own").grid
        if track.game.sees_truth(entry.reference):
            raise InputError(f"{entry.stored}: is told the truth (clairvoyant); the board takes who knows what one can")
        if not isinstance(grid, KernelGrid):
            return []
        scenario = next(iter(grid.problems.values()))
        problem = build_problem(override(scenario, horizon_us=min(scenario.horizon_us, PROBE_US)))
        seed = protocol().seeds[0]
        play(entry.reference, problem, seed)

        def decided(hidden: Collection[str] = ()) -> object:
            return decisions(new_scheduler(entry.reference, problem.scenario), problem, hidden, seed)

        plain = decided()
        if plain != decided():
            raise InputError(
                f"{entry.stored}: decides otherwise when the same episode is played again; reset must forget the last "
                "one, and random numbers must come from the generator that it is given"
            )
        found = [word for word in PARTS if decided((word,)) != plain]
    declared = reads_of(new_scheduler(entry.reference, problem.scenario))
    if declared is None:
        return found
    if hidden := [word for word in found if word not in declared]:
        raise InputError(f"{entry.stored}: its decisions depend on {hidden[0]!r}, which its reads does not declare")
    return list(declared)
