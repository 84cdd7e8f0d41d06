"""``gpusched sweep``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpusched_env.experiments.lib.options import USE, Scenario, command_line, with_fields

if TYPE_CHECKING:
    from gpusched_env.agents.training.config import TrainingConfig
    from gpusched_env.experiments.sweep.space import Tried


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Of a sweep."""

    trials: Annotated[int, typer.Option(min=1, help="Settings to try.")] = 20
    timesteps: Annotated[int, typer.Option(min=1, help="Decisions of each trial.")] = 300_000
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: results/sweep/<scenario>.")] = None
    algo: Annotated[str, typer.Option(help="maskable-ppo, ppo, recurrent-ppo, a2c, dqn or cma-es.")] = "maskable-ppo"
    policy: Annotated[str | None, typer.Option(help="mlp (usual), slots; rule for cma-es.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Of the search, and of every training.")] = 0
    envs: Annotated[int, typer.Option(min=1, help="Environments of a trial.")] = 64
    threads: Annotated[int, typer.Option(min=1, help="Of a trial.")] = 1
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any setting of gpusched train; it stays out of the search. Repeatable."
        ),
    ] = None
    variants: Annotated[
        bool, typer.Option("--variants/--no-variants", help="Draw the scenario's training variants, if it has any.")
    ] = True
    ray_address: Annotated[
        str | None,
        typer.Option(metavar="A", help="Run on this Ray cluster (HOST:PORT, auto, or local for one of its own)."),
    ] = None
    trust: Annotated[bool, typer.Option("--trust", help="Go on with Ray's files in DIR, running what is in them.")] = (
        False
    )


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("sweep", rich_help_panel=USE)(with_fields(sweep_command))


def sweep_command(scenario: Scenario, options: SweepOptions) -> None:
    """Search for hyper-parameters.

    Trials that fall behind the median are stopped early. The same command again goes on after an interrupt or a kill:
    what has ended stays, the trial that was cut short is replaced, and those after it draw other hyper-parameters than
    without the interrupt.
    """
    from gpusched_env.agents.files import writing_to
    from gpusched_env.agents.training.folder import write_json
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.experiments.settings import parsed

    try:
        from gpusched_env.experiments.sweep.space import OUTCOME, table
    except ModuleNotFoundError as error:
        raise InputError(f"gpusched sweep needs {error.name}: pip install 'gpusched-env[sweep]'") from error
    fixed = dict(parsed(options.settings or []))
    config = _config(scenario, options, fixed)
    folder = options.out if options.out is not None else Path("results") / "sweep" / config.scenario.name
    tried = _tried(config, folder, options, frozenset(fixed))
    trials_by_number = sorted(tried, key=lambda trial: trial.number)
    with writing_to(folder):
        write_json({"command": command_line(), "trials": trials_by_number}, folder / OUTCOME)
    output_console().print(table(tried))
    typer.echo(f"Written to {folder}: {', '.join(sorted(found.name for found in folder.iterdir()))}")


def _config(scenario: str, options: SweepOptions, fixed: dict[str, Any]) -> TrainingConfig:
    """What all trials have in common."""
    from gpusched_env.agents.training.config import config_of
    from gpusched_env.errors import InputError
    from gpusched_env.scenarios.scenario import load_scenario

    own = ("algo", "policy", "timesteps", "seed", "envs", "threads", "variants")
    values = {
        "scenario": load_scenario(scenario),
        **{name: getattr(options, name) for name in own},
        "validate_every": max(1, options.timesteps // 5),
        **fixed,
    }
    config = config_of({name: value for name, value in values.items() if value is not None})
    if config.imitation is not None:
        raise InputError("a sweep searches for what learning needs and cannot begin with an imitation")
    return config


def _tried(config: TrainingConfig, folder: Path, options: SweepOptions, fixed: frozenset[str]) -> list[Tried]:
    """All trials, run on this machine or on a cluster."""
    from gpusched_env.agents.files import writing_to
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.sweep import local

    if options.ray_address is None:
        return local.sweep(config, options.trials, folder, fixed=fixed, on_trial=_tell)
    try:
        from gpusched_env.experiments.sweep import cluster
    except ImportError as error:
        raise InputError(f"--ray-address needs Ray: pip install 'gpusched-env[ray]' ({error})") from error
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return cluster.sweep(config, options.trials, folder, options.ray_address, fixed=fixed, trust=options.trust)


def _tell(trial: Tried) -> None:
    cost = "" if trial.cost is None else f", validation cost {trial.cost:.4g}"
    typer.echo(f"trial {trial.number}: {trial.state}{cost}", err=True)
