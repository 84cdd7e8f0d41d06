"""``gpusched evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.commands.compare import compare_and_write


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("evaluate")(evaluate_command)


def evaluate_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a training, an exported .npz, or a .zip.")],
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Name (gpusched scenarios), or a .yaml file.")],
    schedulers: Annotated[
        str, typer.Option(metavar="A,B,...", help="What to compare with. Default: all that are registered.")
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Episodes of each scheduler.")] = 5,
    seed: Annotated[int, typer.Option(min=0, metavar="FIRST", help="First seed.")] = 0,
    device: Annotated[str, typer.Option(help="Device that runs the kernels.")] = "compiled",
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="Write result.json there too.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: results/<scenario>.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any field of the scenario, as in compare."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one a CPU core.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run code in a .zip that no training of ours wrote.")] = False,
) -> None:
    """Compare a trained scheduler with the others.

    The same as compare with learned:MODEL as first scheduler: differences are taken against it.
    """
    from gpusched_env.agents.training.results import policy_file
    from gpusched_env.baselines.registry import honest_names
    from gpusched_env.baselines.spec import split_specs
    from gpusched_env.experiments.plugins import trusted
    from gpusched_env.experiments.settings import apply_settings
    from gpusched_env.scenarios.scenario import load_scenario

    agent = [f"learned:{policy_file(model)}"]
    compare_and_write(
        apply_settings(load_scenario(scenario), settings or []),
        [*(trusted(agent) if trust else agent), *(split_specs(schedulers) or honest_names())],
        range(seed, seed + seeds),
        device=device,
        json=json,
        out=out,
        window_us=None,
        workers=workers,
    )
