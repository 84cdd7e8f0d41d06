"""``gpusched fuzz``: two devices run the same random episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gpusched_env.experiments.lib.options import MAINTAIN

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.fuzzing import Fuzzing

LAUNCHES: Final = "DynamicParallelism"
"""The game of ``--launches``."""


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("fuzz", rich_help_panel=MAINTAIN)(fuzz_command)


def fuzz_command(
    episodes: Annotated[int, typer.Option(min=1, help="Random episodes.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the fuzzer; an episode depends on it and its number only.")] = 0,
    first: Annotated[int, typer.Option(min=0, metavar="N", help="Number of the first episode.")] = 0,
    device: Annotated[
        str | None, typer.Option(help="Device under test. Default: compiled, or the counterexample's.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Device that is trusted. Default: reference, or the counterexample's.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for counterexamples.")] = Path("results/fuzz"),
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Play a stored counterexample again, nothing else.")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="With --replay: run the code of a device that the file names.")
    ] = False,
    shrink_s: Annotated[float, typer.Option(min=0, help="Time to simplify a counterexample, seconds.")] = 60.0,
    launches: Annotated[
        bool, typer.Option("--launches", help="Applications whose threads launch kernels, on the devices for these.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
) -> None:
    """Run random problems and commands on two devices and compare everything; exit status 1 at a difference.

    The first episode with each kind of difference is simplified and stored. An interrupt (Ctrl-C) keeps what
    was done.
    """
    from rich.console import Console

    from gpusched_env.experiments.fuzz.run import fuzz, write_counterexamples
    from gpusched_env.experiments.games.registry import game_of
    from gpusched_env.experiments.lib.files import ResultFolder
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar

    fuzzing = game_of(LAUNCHES if launches else None).fuzzing
    if replay is not None:
        _replay(replay, device, against, fuzzing, trust=trust)
    device, against = device or "compiled", against or "reference"
    files: list[str] = []
    with ResultFolder(out) as results:
        with progress_bar(episodes, last="the last episodes") as on_progress:
            tally = fuzz(
                device,
                against,
                fuzzing=fuzzing,
                episodes=episodes,
                seed=seed,
                first=first,
                workers=workers,
                on_progress=on_progress,
            )
        output_console().print(tally)
        if tally.differences:
            seconds = 0.0 if tally.interrupted else shrink_s
            with Console(stderr=True).status("Simplifying counterexamples"):
                files = write_counterexamples(tally, results.staging, fuzzing=fuzzing, seconds=seconds)
            results.publish()
    typer.echo(tally.summary())
    for file in files:
        typer.echo(f"Play it again: gpusched fuzz {'--launches ' * launches}--replay {out / file}")
    if tally.broken:
        typer.secho(f"error: {tally.broken}; episodes under way: {tally.under_way}", fg=typer.colors.RED, err=True)
    if tally.interrupted:
        typer.secho(f"interrupted; episodes under way: {tally.under_way}", fg=typer.colors.YELLOW, err=True)
    if tally.differences or tally.broken:
        raise typer.Exit(1)
    raise typer.Exit(130 if tally.interrupted else 0)


def _replay(path: Path, device: str | None, against: str | None, fuzzing: Fuzzing, *, trust: bool) -> None:
    from gpusched_env.experiments.fuzz.run import replay

    example = fuzzing.read(path)
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
