"""``gpusched lab fuzz`` and ``bench``: whether the devices agree, and how fast they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gpusched_env.experiments.lib.options import Docs, Json, Overwrite, with_fields

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.run import Fuzzing, FuzzTally


LAUNCHES: Final = "DynamicParallelism"
"""The game of ``--launches``."""
TASKS: Final = "TaskQueue"
"""The game of ``--tasks``."""
FLEETS: Final = "Fleet"
"""The game of ``--fleets``."""


@dataclass(frozen=True, kw_only=True)
class FuzzOptions:
    """Options of a run of the fuzzer."""

    episodes: Annotated[int, typer.Option(min=1, help="Random episodes.")] = 1000
    seed: Annotated[int, typer.Option(min=0, help="Of the fuzzer; an episode depends on it and its number only.")] = 0
    first: Annotated[int, typer.Option(min=0, metavar="N", help="Number of the first episode.")] = 0
    device: Annotated[
        str | None, typer.Option(help="Device under test. Default: compiled, or the counterexample's.")
    ] = None
    against: Annotated[
        str | None, typer.Option(help="Device that is trusted. Default: reference, or the counterexample's.")
    ] = None
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for counterexamples.")] = Path("results/fuzz")
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Play a stored counterexample again, nothing else.")
    ] = None
    trust: Annotated[
        bool, typer.Option("--trust", help="With --replay: run the code of a device that the file names.")
    ] = False
    shrink_s: Annotated[float, typer.Option(min=0, help="Time to simplify a counterexample, seconds.")] = 60.0
    launches: Annotated[
        bool, typer.Option("--launches", help="Applications whose threads launch kernels, on the devices for these.")
    ] = False
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Applications that take tasks from queues, on the devices for these.")
    ] = False
    fleets: Annotated[
        bool,
        typer.Option("--fleets", help="Small fleets of GPUs and what dispatchers say, compiled and as plain Python."),
    ] = False
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2


@with_fields
def fuzz_command(options: FuzzOptions) -> None:
    """Run random problems and commands on two devices and compare everything; exit status 1 at a difference.

    The first episode with each kind of difference is simplified and stored. An interrupt (Ctrl-C) keeps what
    was done.
    """
    from rich.console import Console

    from gpusched_env.errors import InputError
    from gpusched_env.experiments.fuzz.run import fuzz, write_counterexamples
    from gpusched_env.experiments.games.game import game_of
    from gpusched_env.experiments.lib.files import ResultFolder
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.scenarios.games import GAMES

    games = {LAUNCHES: options.launches, TASKS: options.tasks, FLEETS: options.fleets}
    named = [game for game, meant in games.items() if meant]
    if len(named) > 1:
        raise InputError("--launches, --tasks and --fleets are different games: each is fuzzed by itself")
    for game in named:
        if game not in GAMES:
            raise InputError(f"no game is called {game}; there are {', '.join(GAMES)}")
    fuzzing = game_of(named[0] if named else None).fuzzing
    if options.replay is not None:
        _replay(options.replay, options.device, options.against, fuzzing, trust=options.trust)
    files: list[str] = []
    with ResultFolder(options.out) as results:
        with progress_bar(options.episodes, last="the last episodes") as on_progress:
            tally = fuzz(
                options.device or "compiled",
                options.against or "reference",
                fuzzing=fuzzing,
                episodes=options.episodes,
                seed=options.seed,
                first=options.first,
                workers=options.workers,
                on_progress=on_progress,
            )
        output_console().print(tally)
        if tally.differences:
            seconds = 0.0 if tally.interrupted else options.shrink_s
            with Console(stderr=True).status("Simplifying counterexamples"):
                files = write_counterexamples(tally, results.staging, fuzzing=fuzzing, seconds=seconds)
            results.publish()
    game = "--launches " * options.launches + "--tasks " * options.tasks + "--fleets " * options.fleets
    _tell(tally, [f"{game}--replay {options.out / file}" for file in files])
    if tally.differences or tally.broken:
        raise typer.Exit(1)
    raise typer.Exit(130 if tally.interrupted else 0)


def _tell(tally: FuzzTally, replays: list[str]) -> None:
    """What came out, in words; ``replays``: options of ``gpusched lab fuzz`` that play counterexamples again."""
    typer.echo(tally.summary())
    for replay in replays:
        typer.echo(f"Play it again: gpusched lab fuzz {replay}")
    if tally.broken:
        typer.secho(f"error: {tally.broken}; episodes under way: {tally.under_way}", fg=typer.colors.RED, err=True)
    if tally.interrupted:
        typer.secho(f"interrupted; episodes under way: {tally.under_way}", fg=typer.colors.YELLOW, err=True)


def _replay(path: Path, device: str | None, against: str | None, fuzzing: Fuzzing, *, trust: bool) -> None:
    from gpusched_env.experiments.fuzz.run import replay
    from gpusched_env.experiments.fuzz.stored import read_counterexample

    example = read_counterexample(path, fuzzing.counterexample)
    if not trust:
        _refuse_foreign(path, example.device if device is None else None, "--device")
        _refuse_foreign(path, example.against if against is None else None, "--against")
    device, against = device or example.device, against or example.against
    difference = replay(example, device, against, fuzzing=fuzzing)
    if difference is None:
        typer.echo(f"{path}: no difference between {device} and {against}")
        raise typer.Exit(0)
    typer.echo(f"{path}: {difference}")
    raise typer.Exit(1)


def _refuse_foreign(path: Path, named: str | None, option: str) -> None:
    """Whoever wrote the file chose the device that it names; one from the command line is the user's own choice."""
    from gpusched_env.devices import device_names
    from gpusched_env.errors import InputError

    if named is not None and named not in device_names():
        raise InputError(
            f"{path}: names the device {named!r}, and playing it imports that file or module and runs its code. "
            f"Add --trust if you know where the counterexample comes from, or choose the device yourself with "
            f"{option} (shipped: {', '.join(device_names())})"
        )


def bench(
    json: Json = None,
    docs: Docs = None,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each measurement.")] = 5,
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Measure only the vector environment, with each of these numbers of threads, e.g. 1,2,4,8,16.",
        ),
    ] = None,
    copies: Annotated[int, typer.Option(min=1, help="Environments, with --threads.")] = 256,
    counts: Annotated[
        bool,
        typer.Option("--counts", help="Count events, calls, compilations and bytes instead, beside the last release."),
    ] = False,
    write_counts: Annotated[
        bool, typer.Option("--write", help="With --counts: make these the counts to hold others against.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Measure speed beside targets, CartPole, and an environment that does nothing; takes a few minutes.

    The exit status is 0 whether or not targets are met. With --counts it is 1 where a count is a tenth worse.
    """
    if counts or write_counts:
        _count(write_counts)
        return
    from gpusched_env.experiments.benchmarks import suite
    from gpusched_env.experiments.benchmarks import threads as by_threads
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar

    numbers = _numbers(threads) if threads is not None else []
    with writing(("--json", json), ("--docs", docs), overwrite=overwrite) as write:
        if numbers:
            turns = len(by_threads.SCENARIOS) * len(numbers) * rounds
            with progress_bar(turns, "turn", "the figures") as tell:
                speeds = by_threads.thread_speeds(
                    numbers, copies, rounds, on_progress=lambda done: tell(done, done / turns)
                )
            data = by_threads.results_dict(speeds, rounds)
            table, page = by_threads.table(data), by_threads.markdown(data)
        else:
            sizes = suite.BenchmarkSizes(rounds=rounds)
            with progress_bar(6, "measurement", "the figures") as tell:
                data = suite.results_dict(suite.measure(sizes, tell), sizes)
            table, page = suite.table(data), suite.markdown(data)
        output_console().print(table)
        write("--json", data)
        write("--docs", page)


def _count(write: bool) -> None:
    """Show all counts, and keep them or say what is worse."""
    from gpusched_env.experiments.benchmarks import counts
    from gpusched_env.experiments.lib.terminal import output_console

    found = counts.count(lambda name, cpu_s: typer.echo(f"{name}: {cpu_s:.1f} s of processor time", err=True))
    before = counts.known() if counts.FILE.is_file() else {}
    output_console().print(counts.table(found, before))
    if write:
        counts.write(found)
        typer.echo(f"Written to {counts.FILE}")
    elif said := counts.worse(found, before):
        typer.secho("\n".join(said), fg=typer.colors.RED, err=True)
        raise typer.Exit(1)


def _numbers(threads: str) -> list[int]:
    """Raises ``InputError`` for anything but numbers from 1."""
    from gpusched_env.errors import InputError

    numbers = [int(number) if number.strip().isdecimal() else 0 for number in threads.split(",")]
    if min(numbers) < 1:
        raise InputError(f"--threads is {threads!r}: give numbers from 1, separated by commas, such as 1,2,4,8")
    return numbers
