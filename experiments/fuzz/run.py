"""Many episodes in parallel: what is fuzzed of a game, what they amount to, and counterexamples."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table

from gpusched_env.devices.either import await_compiled
from gpusched_env.errors import GpuschedError
from gpusched_env.experiments.fuzz.case import KernelCounterexample
from gpusched_env.experiments.fuzz.draw import draw_case
from gpusched_env.experiments.fuzz.duel import play
from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.experiments.fuzz.shrink import Shrinker
from gpusched_env.experiments.fuzz.stored import SECONDS, Difference, TreeShrinker, write_counterexample
from gpusched_env.experiments.lib.names import DeviceSource, device_from, new_device
from gpusched_env.experiments.lib.workers import run_tasks


@dataclass(frozen=True)
class Fuzzing:
    """A kind of cases, and the kind of devices that they are played on."""

    shipped: Callable[[str], Any]
    """Makes a device of the game from its name; raises InputError if there is none."""
    draw: Callable[[int, int], Any]
    """The case of a seed and an episode."""
    play: Callable[[Any, Any, Any], Outcome]
    """A case, on what makes the device under test and what makes the trusted one."""
    shrinker: type[TreeShrinker[Any]]
    counterexample: type[Any]
    """A :class:`~gpusched_env.experiments.fuzz.stored.Counterexample` with a case."""

    def new_device(self, source: DeviceSource) -> Any:
        """A device from its name or factory.

        Raises:
            InputError: no device of that name.
        """
        return device_from(source, self.shipped)


def built_device(source: DeviceSource) -> Any:
    """A device of which no other takes the place: the compiled one is waited for."""
    if source == "compiled":
        await_compiled()
    return new_device(source)


KERNELS: Final = Fuzzing(built_device, draw_case, play, Shrinker, KernelCounterexample)


@dataclass
class FuzzTally:
    """Sums over the episodes of a run."""

    device: DeviceSource
    """The device under test."""
    against: DeviceSource
    """The trusted device."""
    seed: int
    episodes: int = 0
    """Episodes that have finished."""
    counts: Counter[str] = field(default_factory=Counter)
    """Numbers of commands, kernels and blocks."""
    features: Counter[str] = field(default_factory=Counter)
    """Episodes with each feature."""
    differences: dict[int, Difference] = field(default_factory=dict)
    """The first difference of each episode that has one."""
    wall_s: float = 0.0
    interrupted: bool = False
    broken: str = ""
    """Why the run could not go on."""
    under_way: list[int] = field(default_factory=list)
    """Episodes that were running when the run was cut short."""

    def add(self, episode: int, outcome: Outcome) -> None:
        self.episodes += 1
        self.counts += outcome.counts
        self.features.update(outcome.features)
        if outcome.difference is not None:
            self.differences[episode] = outcome.difference

    def one_of_each_kind(self) -> list[int]:
        """The first episode with each kind of difference."""
        first: dict[str, int] = {}
        for episode, difference in sorted(self.differences.items()):
            first.setdefault(difference.kind, episode)
        return list(first.values())

    def summary(self) -> str:
        """The tally in one line."""
        verdict = f"{len(self.differences)} with a difference" if self.differences else "no difference"
        who = f"{name_of(self.device)} against {name_of(self.against)}, seed {self.seed}"
        return f"{who}: {self.episodes} episodes, {verdict}; {self.wall_s:.1f} s"

    def __rich__(self) -> RenderableType:
        return Group(_sums(self.counts), _shares(self.features, self.episodes), *_found(self.differences))


def name_of(source: DeviceSource) -> str:
    """What a device is called."""
    return source if isinstance(source, str) else getattr(source, "__name__", repr(source))


def _sums(counts: Counter[str]) -> Table:
    table = Table("In all episodes", "", title="What was simulated", title_justify="left")
    table.columns[1].justify = "right"
    for name, count in sorted(counts.items()):
        table.add_row(name, f"{count:,}")
    return table


def _shares(features: Counter[str], episodes: int) -> Table:
    table = Table("Episodes with", "%", "Episodes with", "%", title="What was in it", title_justify="left")
    rows = [(name, f"{100 * count / episodes:.1f}") for name, count in features.most_common()]
    half = -(-len(rows) // 2)
    for i in range(half):
        table.add_row(*rows[i], *(rows[half + i] if half + i < len(rows) else ("", "")))
    table.columns[1].justify = table.columns[3].justify = "right"
    return table


def _found(differences: dict[int, Difference]) -> Iterable[RenderableType]:
    if not differences:
        return
    table = Table("Episode", "Kind", "Difference", title="Differences", title_justify="left")
    for episode, difference in sorted(differences.items()):
        table.add_row(str(episode), difference.kind, str(difference))
    yield table


STOP_AFTER = 10
"""Episodes with a difference after which a run stops."""
LIMIT_S = 300.0
"""An episode that takes longer hangs, seconds (a cold compilation takes up to a minute or two)."""

Progress = Callable[[int, float], None]


def fuzz(
    device: DeviceSource,
    against: DeviceSource = "reference",
    *,
    fuzzing: Fuzzing = KERNELS,
    episodes: int,
    seed: int = 0,
    first: int = 0,
    enough: int = STOP_AFTER,
    workers: int = 1,
    limit_s: float = LIMIT_S,
    on_progress: Progress | None = None,
) -> FuzzTally:
    """Play ``episodes`` cases of ``seed``, from number ``first`` on, on two devices.

    Stops early after ``enough`` differences, at an interrupt (Ctrl-C), and when a worker process dies; what
    is finished by then is kept.

    Args:
        device: name or factory of the device under test.
        fuzzing: kind of cases and devices.
        against: the one that is trusted.
        workers: processes; with more than one, devices are given by name.
        limit_s: an episode that takes longer is taken for one that hangs: it prints where it is and, in a
            worker process, ends it.
        on_progress: called with the number of finished episodes and their share.

    Raises:
        InputError: unknown device.
    """
    fuzzing.new_device(device), fuzzing.new_device(against)
    tally = FuzzTally(device, against, seed)
    numbers = range(first, first + episodes)
    began = time.perf_counter()
    task = functools.partial(
        _episode, fuzzing=fuzzing, seed=seed, device=device, against=against, limit_s=limit_s, alone=workers == 1
    )
    finished: set[int] = set()
    try:
        with contextlib.closing(run_tasks(task, numbers, workers)) as running:
            for index, outcome in running:
                finished.add(numbers[index])
                tally.add(numbers[index], outcome)
                if on_progress is not None:
                    on_progress(len(finished), len(finished) / episodes)
                if len(tally.differences) >= enough:
                    break
    except KeyboardInterrupt:
        tally.interrupted = True
    except GpuschedError as error:
        # A device that brings its process down is what a fuzzer looks for: say where.
        tally.broken = str(error)
    if tally.interrupted or tally.broken:
        # Handed out in order.
        tally.under_way = [number for number in numbers if number not in finished][:workers]
    tally.wall_s = time.perf_counter() - began
    return tally


def _episode(
    number: int,
    *,
    fuzzing: Fuzzing,
    seed: int,
    device: DeviceSource,
    against: DeviceSource,
    limit_s: float,
    alone: bool,
) -> Outcome:
    # A thread of the interpreter's own: it works while compiled code does not come back.
    faulthandler.dump_traceback_later(limit_s, exit=not alone, file=sys.__stderr__)  # type: ignore[arg-type]
    try:
        outcome = fuzzing.play(fuzzing.draw(seed, number), *_makers(fuzzing, device, against))
    except Exception as error:
        error.add_note(f"in episode {number} of seed {seed}")
        raise
    finally:
        faulthandler.cancel_dump_traceback_later()
    outcome.moves = []
    return outcome


def counterexample(tally: FuzzTally, episode: int, *, fuzzing: Fuzzing = KERNELS, seconds: float = SECONDS) -> Any:
    """The case of an episode that showed a difference, simplified for up to ``seconds`` (0: as it is).

    An interrupt ends the simplification early.
    """
    makers = _makers(fuzzing, tally.device, tally.against)
    shrinker = fuzzing.shrinker(
        fuzzing.draw(tally.seed, episode), lambda case: fuzzing.play(case, *makers), seconds=seconds
    )
    with contextlib.suppress(KeyboardInterrupt):
        shrinker.run()
    return fuzzing.counterexample(
        device=name_of(tally.device),
        against=name_of(tally.against),
        seed=tally.seed,
        episode=episode,
        difference=shrinker.difference or tally.differences[episode],
        repeats=shrinker.difference is not None,
        case=shrinker.case.self_contained(),
    )


def write_counterexamples(
    tally: FuzzTally, folder: Path, *, fuzzing: Fuzzing = KERNELS, seconds: float = SECONDS
) -> list[str]:
    """Simplify and store the first episode with each kind of difference in ``folder``; returns the files' names."""
    names = []
    for episode in tally.one_of_each_kind():
        names.append(f"seed{tally.seed}-episode{episode}.json")
        write_counterexample(counterexample(tally, episode, fuzzing=fuzzing, seconds=seconds), folder / names[-1])
    return names


def replay(
    example: Any, device: DeviceSource, against: DeviceSource, *, fuzzing: Fuzzing = KERNELS
) -> Difference | None:
    """Play a stored case again; the difference that it shows."""
    return fuzzing.play(example.case, *_makers(fuzzing, device, against)).difference


def _makers(
    fuzzing: Fuzzing, device: DeviceSource, against: DeviceSource
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    return functools.partial(fuzzing.new_device, device), functools.partial(fuzzing.new_device, against)
