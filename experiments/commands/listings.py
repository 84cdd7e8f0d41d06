"""``gpusched scenarios``, ``schedulers``, ``gpus``, ``workloads``: what there is, one line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer

from gpusched_env.experiments.lib.options import LISTS


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("scenarios", rich_help_panel=LISTS)(list_scenarios)
    app.command("schedulers", rich_help_panel=LISTS)(list_schedulers)
    app.command("gpus", rich_help_panel=LISTS)(list_gpus)
    app.command("workloads", rich_help_panel=LISTS)(list_workloads)


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
    A * marks those that are told the truth, which have to be named. Those that decide on child launches come last; they
    are for DynamicParallelism (rank, train).
    """
    from gpusched_env.agents.shipped import shipped_names
    from gpusched_env.baselines.dynamic_parallelism.registry import (
        CLAIRVOYANT,
        launch_scheduler_names,
        launch_scheduler_options,
    )
    from gpusched_env.baselines.dynamic_parallelism.registry import describe_launch_scheduler as describe_launches
    from gpusched_env.baselines.registry import default_options, describe, honest_names, means, scheduler_names
    from gpusched_env.experiments.lib.labels import LEGEND, labels
    from gpusched_env.experiments.lib.names import LEARNED

    def line(text: str, options: dict[str, Any]) -> str:
        given = ", ".join(f"{option}={value}" for option, value in options.items())
        return f"{text} ({given})" if given else text

    def about(name: str) -> str:
        reads, commands = means(name)
        knows = f"reads: {', '.join(reads) or 'nothing'}"
        may = f"; may: {', '.join(commands)}" if commands else ""
        return f"{line(describe(name), default_options(name))} [{knows}{may}]"

    def described(name: str) -> str:
        return line(describe_launches(name), launch_scheduler_options(name))

    shipped = f"The trained agent that is shipped for the scenario ({', '.join(shipped_names()) or 'none yet'})"
    learned = [(LEARNED, shipped), (f"{LEARNED}:PATH", "The trained agent of a file, see docs/policies.md")]
    bounds = set(scheduler_names()) - set(honest_names())
    _print([*((label, about(name)) for name, label in labels(scheduler_names(), bounds).items()), *learned])
    typer.echo(LEGEND)
    typer.echo("What the words behind 'reads' stand for: docs/comparing.md. Agents read all that they are shown.")
    typer.echo(
        "Misinformed: any of them is told wrong profiles with --set profiles.scatter=2 (docs/wrong-profiles.md)."
    )
    typer.echo("Of child launches (DynamicParallelism):")
    _print((label, described(name)) for name, label in labels(launch_scheduler_names(), CLAIRVOYANT).items())


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

    def about(name: str) -> str:
        workload = read_recorded(name)
        size = f"{len(workload.variants)} × {len(list(workload.variants[0].all_ops))} operations, {workload.gpu}"
        return f"{workload.summary} ({size})" if workload.summary else size

    generated = "irregular(family=physics,seed=0)", "a random kernel graph; parameters are in docs/scenarios.md"
    _print([*((name, about(name)) for name in recorded_names()), generated])


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
