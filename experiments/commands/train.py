"""``gpusched train``, ``gpusched tune`` and ``gpusched lab search``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpusched_env.baselines.tuning import FIRST_SEED
from gpusched_env.experiments.lib.options import Gpu, Overwrite, Scenario, Workers, command_line, with_fields

if TYPE_CHECKING:
    from gpusched_env.agents.training.config import TrainingConfig
    from gpusched_env.experiments.sweep.local import SweepTrial


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Fields of a training's configuration, where they are given."""

    algo: Annotated[
        str | None,
        typer.Option(
            help="maskable-ppo, ppo, recurrent-ppo, a2c, dqn, cma-es, rollouts, distillation. "
            "Default: the scenario's, or the first."
        ),
    ] = None
    policy: Annotated[
        str | None,
        typer.Option(
            help="mlp (usual), slots (also for distillation); rule, release, serve (cma-es); serve (rollouts)."
        ),
    ] = None
    timesteps: Annotated[
        int | None,
        typer.Option(min=1, help="Decisions, of all environments together. Default: the scenario's, or 1,000,000."),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Of weights, episodes and everything else.")] = 0
    envs: Annotated[
        int | None,
        typer.Option(min=1, help="Environments that are stepped together. Default: the scenario's, or 64."),
    ] = None
    threads: Annotated[int, typer.Option(min=1, help="Of PyTorch and the environments; exact with 1 only.")] = 1
    learning_rate: Annotated[float | None, typer.Option("--lr", help="Learning rate.")] = None
    gamma: Annotated[float | None, typer.Option(help="Discount of one decision.")] = None
    batch_size: Annotated[int | None, typer.Option(min=2, help="Decisions in a gradient step.")] = None
    ent_coef: Annotated[float | None, typer.Option(help="Weight of the entropy bonus.")] = None
    variants: Annotated[
        bool, typer.Option("--variants/--no-variants", help="Draw the scenario's training variants, if it has any.")
    ] = True

    def given(self, randomise: str | None, imitate: str | None, imitate_episodes: int | None) -> dict[str, Any]:
        """All that is not left to the scenario, by the names of a training's configuration."""
        from gpusched_env.agents.training.config import randomise_of

        values = dataclasses.asdict(self) | {
            "randomise": None if randomise is None else randomise_of(randomise),
            "imitation": None if imitate is None else {"scheduler": imitate},
            "imitation.episodes": imitate_episodes,
        }
        return {name: value for name, value in values.items() if value is not None}


@with_fields
def train_command(
    scenario: Scenario,
    options: TrainingOptions,
    gpu: Gpu = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: results/train/<scenario>.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any other setting of the training, the algorithm (n_steps=512), the policy "
            "(policy_kwargs.net_arch=[64,64]) or the imitation (imitation.epochs=3); may be repeated.",
        ),
    ] = None,
    begin_with: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Go on from a trained policy: best.zip of a training, or an exported .npz."),
    ] = None,
    randomise: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Draw more for each episode: rates=0.7:1.4 (factor on arrivals), gpus=h100-sxm+h200-sxm, "
            "profiles=2 (profiles off by up to this factor); separated by commas.",
        ),
    ] = None,
    imitate: Annotated[
        str | None,
        typer.Option(metavar="SCHEDULER", help="First do as this scheduler does (gpusched list schedulers)."),
    ] = None,
    imitate_episodes: Annotated[int | None, typer.Option(min=1, help="Episodes to imitate.")] = None,
    baselines: Annotated[
        str,
        typer.Option(
            metavar="A,B,...", help="Schedulers to compare validations with; 'all' (default) or 'none' are possible."
        ),
    ] = "all",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was begun in DIR.")] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Resume also from a checkpoint of somebody else, running code in it.")
    ] = False,
) -> None:
    """Train a scheduler.

    With the scenario's own settings, where it has some (docs/training.md), which each option replaces.
    Writes the best and the last model, checkpoints, the learning curve and TensorBoard's files. The same command with
    --resume goes on after an interrupt or a kill, exactly as if there had been none.
    """
    from gpusched_env.experiments.games.game import game_of
    from gpusched_env.experiments.settings import parse_settings
    from gpusched_env.experiments.training import run_training

    given = options.given(randomise, imitate, imitate_episodes) | dict(parse_settings(settings or []))
    if begin_with is not None:
        given["begin_with"] = str(begin_with)
    config = game_of(scenario).configured(scenario, given, gpu)
    run_training(
        config,
        out if out is not None else Path("results") / "train" / config.name,
        baselines=baselines,
        resume=resume,
        trust=trust,
        command=command_line(),
    )


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of a search for hyper-parameters."""

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


@with_fields
def search_command(scenario: Scenario, options: SearchOptions) -> None:
    """Search for hyper-parameters of a training.

    Trials that fall behind the median are stopped early. The same command again goes on after an interrupt or a kill:
    what has ended stays, the trial that was cut short is replaced, and those after it draw other hyper-parameters than
    without the interrupt.
    """
    from gpusched_env.agents.files import writing_to
    from gpusched_env.agents.training.folder import write_json
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.experiments.settings import parse_settings
    from gpusched_env.experiments.sweep.local import OUTCOME, table

    fixed = dict(parse_settings(options.settings or []))
    config = _config(scenario, options, fixed)
    folder = options.out if options.out is not None else Path("results") / "sweep" / config.scenario.name
    tried = _tried(config, folder, options, frozenset(fixed))
    trials_by_number = sorted(tried, key=lambda trial: trial.number)
    with writing_to(folder):
        write_json({"command": command_line(), "trials": trials_by_number}, folder / OUTCOME)
    output_console().print(table(tried))
    typer.echo(f"Written to {folder}: {', '.join(sorted(found.name for found in folder.iterdir()))}")


def _config(scenario: str, options: SearchOptions, fixed: dict[str, Any]) -> TrainingConfig:
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
        raise InputError("a search is for what learning needs and cannot begin with an imitation")
    return config


def _tried(config: TrainingConfig, folder: Path, options: SearchOptions, fixed: frozenset[str]) -> list[SweepTrial]:
    """All trials, run on this machine or on a cluster."""
    from gpusched_env.agents.files import writing_to
    from gpusched_env.experiments.sweep import local

    if options.ray_address is None:
        return local.sweep(config, options.trials, folder, fixed=fixed, on_trial=_tell)
    from gpusched_env.experiments.sweep import cluster

    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return cluster.sweep(config, options.trials, folder, options.ray_address, fixed=fixed, trust=options.trust)


def _tell(trial: SweepTrial) -> None:
    cost = "" if trial.cost is None else f", validation cost {trial.cost:.4g}"
    typer.echo(f"trial {trial.number}: {trial.state}{cost}", err=True)


def tune_command(
    scenario: Scenario,
    json: Annotated[Path, typer.Option(metavar="PATH", help="Result file; grows round by round.")],
    schedulers: Annotated[
        str, typer.Option(metavar="A,B,...", help="Names. Default: all that know no more than a scheduler can.")
    ] = "",
    trials: Annotated[int, typer.Option(min=1, help="Of each scheduler that has options, the defaults included.")] = 16,
    seeds: Annotated[int, typer.Option(min=1, help="Episodes of each training workload, or random applications.")] = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="FIRST", help="First seed of the episodes.")] = FIRST_SEED,
    search_seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 0,
    workers: Workers = None,
    resume: Annotated[bool, typer.Option(help="Go on with the result file; more schedulers may be named.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Tune the options of hand-written schedulers, each with the same budget, on training workloads.

    Those of a scenario's workload set; for DynamicParallelism, random applications.

    Held-out workloads and the episodes of rankings are not touched. tuned:NAME then names what was found, where the
    result file comes with the package (baselines/tuned).
    """
    from gpusched_env.baselines.registered import split_specs
    from gpusched_env.experiments.lib.files import refuse_existing
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.tuning.search import tune
    from gpusched_env.experiments.tuning.table import tuning_table

    refuse_existing(json, "--json", overwrite=overwrite or resume)
    try:
        with progress_bar(None) as on_progress:
            tuning = tune(
                scenario,
                split_specs(schedulers) or None,
                trials,
                seeds,
                json,
                first_seed=seed,
                seed=search_seed,
                workers=workers,
                resume=resume,
                on_progress=on_progress,
                on_resumed=lambda said: typer.echo(said, err=True),
                command=command_line(),
            )
    except KeyboardInterrupt:
        typer.secho(f"interrupted; --resume goes on from {json}", fg=typer.colors.YELLOW, err=True)
        raise typer.Exit(130) from None
    output_console().print(tuning_table(tuning))
