"""``gpusched list``: what there is, a line each; and slices of a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpusched_env.experiments.lib.options import Overwrite

if TYPE_CHECKING:
    from gpusched_env.experiments.games.game import Game


def list_scenarios() -> None:
    """List the shipped scenarios, and GPUs that lack what one asks for."""
    from gpusched_env.scenarios.scenario import load_scenario, scenario_names

    lacking = _lacking()

    def about(name: str) -> str:
        without = [gpu for gpu, scenario in lacking if scenario == name]
        return load_scenario(name).summary + (f" (not on {', '.join(without)})" if without else "")

    _print((name, about(name)) for name in scenario_names())


def list_schedulers() -> None:
    """List the registered schedulers, with their options and defaults, what they read, and what they may do.

    Options follow the name in parentheses: compare --schedulers "mps(share=50),fifo".
    A * marks those that are told the truth, which have to be named. Those of other games come last: child launches are
    for DynamicParallelism, task queues for TaskQueue, fleets for Fleet (rank, train).
    """
    from gpusched_env.agents.shipped import shipped_scenarios
    from gpusched_env.experiments.games.game import games
    from gpusched_env.experiments.lib.trained import LEARNED, LEGEND

    shipped = f"The trained agent that is shipped for the scenario ({', '.join(shipped_scenarios()) or 'none yet'})"
    learned = [(LEARNED, shipped), (f"{LEARNED}:PATH", "The trained agent of a file, see docs/policies.md")]
    of_scenarios, *others = games().items()
    _print([*_schedulers_of(of_scenarios[1]), *learned])
    typer.echo(LEGEND)
    typer.echo("What the words behind 'reads' stand for: docs/comparing.md. Agents read all that they are shown.")
    typer.echo("Misinformed: any of them is told wrong profiles with --set profiles.scatter=2 (docs/fikit.md).")
    for name, game in others:
        if not game.groups:
            continue
        typer.echo(f"Of {game.kind} ({name}):")
        _print(_schedulers_of(game))


def _schedulers_of(game: Game) -> list[tuple[str, str]]:
    """Labels, and a line about each."""
    from gpusched_env.experiments.lib.trained import labels

    names = game.schedulers.names()

    def about(name: str) -> str:
        given = ", ".join(f"{option}={value}" for option, value in game.schedulers.options(name).items())
        text = f"{game.schedulers.describe(name)} ({given})" if given else game.schedulers.describe(name)
        declared = game.means(name)
        if declared is None:
            return text
        reads, commands = declared
        may = f"; may: {', '.join(commands)}" if commands else ""
        return f"{text} [reads: {', '.join(reads) or 'nothing'}{may}]"

    bounds = {name for name in names if game.schedulers.is_clairvoyant(name)}
    return [(label, about(name)) for name, label in labels(names, bounds).items()]


def list_gpus() -> None:
    """List the GPU specifications, and scenarios that ask for more than one has.

    A file of your own goes wherever a name does: gpusched compare Toy --gpu my-gpu.yaml.
    """
    from gpusched_env.hardware.specs import gpu_names, load_gpu

    lacking = _lacking()

    def about(name: str) -> str:
        without = [scenario for gpu, scenario in lacking if gpu == name]
        return load_gpu(name).summary + (f" (too few stream priorities for {', '.join(without)})" if without else "")

    _print((name, about(name)) for name in gpu_names())


def mig_slice(
    gpu: Annotated[str, typer.Argument(metavar="GPU", help="A shipped GPU (gpusched list gpus).")],
    profile: Annotated[
        str | None, typer.Argument(metavar="PROFILE", help="Such as 3g.40gb. Default: list them.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Specification. Default: GPU-PROFILE.yaml here.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a slice of a GPU (MIG) as a specification, which goes wherever a GPU does.

    Programs in two slices do not disturb each other: they are two scenarios, a slice each (gpusched compare Toy --gpu
    h100-sxm-3g.40gb.yaml).
    """
    import msgspec

    from gpusched_env.experiments.lib.files import refuse_existing, write_file
    from gpusched_env.hardware.mig import mig_slice, slices_of
    from gpusched_env.hardware.specs import load_gpu

    whole = load_gpu(gpu)
    if profile is None:
        _print((name, f"{of.sms} SMs, {of.memory}/8 of the memory") for name, of in slices_of(whole).items())
        return
    spec = mig_slice(whole, profile)
    path = out or Path(f"{spec.name}.yaml")
    refuse_existing(path, "--out", overwrite=overwrite)
    write_file(path, msgspec.yaml.encode(spec), "--out")
    typer.echo(f"{path}: {spec.summary}")


def _lacking() -> list[tuple[str, str]]:
    """GPUs and scenarios that ask for what the GPU does not have."""
    from gpusched_env.errors import InputError
    from gpusched_env.hardware.specs import gpu_names, load_gpu
    from gpusched_env.scenarios.building import check_gpu
    from gpusched_env.scenarios.scenario import load_scenario, scenario_names

    found = []
    for scenario in map(load_scenario, scenario_names()):
        for gpu in gpu_names():
            try:
                check_gpu(scenario, load_gpu(gpu))
            except InputError:
                found.append((gpu, scenario.name))
    return found


def list_workloads() -> None:
    """List the shipped workloads, and how generated ones are named."""
    from gpusched_env.data import read_recorded, recorded_names
    from gpusched_env.data.dependent_kernels import KINDS

    def about(name: str) -> str:
        workload = read_recorded(name)
        size = f"{len(workload.variants)} × {len(list(workload.variants[0].all_ops))} operations, {workload.gpu}"
        return f"{workload.summary} ({size})" if workload.summary else size

    generated = (
        ("irregular(family=physics,seed=0)", "a random kernel graph; parameters are in docs/scenarios.md"),
        ("chain(seed=0)", "random matrix products that each need the tiles of the one before"),
        *((kind.EXAMPLE, f"{(kind.__doc__ or '').splitlines()[0]} (cuSync, measured)") for kind in KINDS.values()),
    )
    _print([*((name, about(name)) for name in recorded_names()), *generated])


def _print(rows: Iterable[tuple[str, str]]) -> None:
    """Names in a column; texts are cut at the width of a terminal, and left whole in a pipe."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    listed = list(rows)
    if not console.is_terminal:
        width = max(len(name) for name, _ in listed)
        typer.echo("\n".join(f"{name:{width}}  {text}".rstrip() for name, text in listed))
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, text in listed:
        table.add_row(Text(name), Text(text))
    console.print(table)
