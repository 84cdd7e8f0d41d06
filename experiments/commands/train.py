"""``gpusched train``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("train")(train_command)


def train_command(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Name (gpusched scenarios), or a .yaml file.")],
    algo: Annotated[str, typer.Option(help="maskable-ppo, ppo, recurrent-ppo, a2c, dqn or cma-es.")] = "maskable-ppo",
    gpu: Annotated[str | None, typer.Option(help="Another GPU: a name (gpusched gpus) or a .yaml file.")] = None,
    policy: Annotated[str | None, typer.Option(help="mlp (usual), slots; rule for cma-es.")] = None,
    timesteps: Annotated[int, typer.Option(min=1, help="Decisions, of all environments together.")] = 1_000_000,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: results/train/<scenario>.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of weights, episodes and everything else.")] = 0,
    envs: Annotated[int, typer.Option(min=1, help="Environments that are stepped together.")] = 64,
    threads: Annotated[int, typer.Option(min=1, help="Of PyTorch and the environments; exact with 1 only.")] = 1,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    gamma: Annotated[float | None, typer.Option(help="Discount of one decision.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=2, help="Decisions in a gradient step.")] = None,
    ent_coef: Annotated[float | None, typer.Option(help="Weight of the entropy bonus.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any other setting of the training, the algorithm (n_steps=512), the policy "
            "(policy_kwargs.net_arch=[64,64]) or the imitation (imitation.epochs=3); may be repeated.",
        ),
    ] = None,
    variants: Annotated[
        bool, typer.Option("--variants/--no-variants", help="Draw the scenario's training variants, if it has any.")
    ] = True,
    randomise: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Draw more for each episode: rates=0.7:1.4 (factor on arrivals), gpus=h100-sxm+h200-sxm, "
            "profiles=2 (profiles off by up to this factor); separated by commas.",
        ),
    ] = None,
    imitate: Annotated[
        str | None, typer.Option(metavar="SCHEDULER", help="First do as this scheduler does (gpusched schedulers).")
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

    Writes the best and the last model, checkpoints, the learning curve and TensorBoard's files. The same command with
    --resume goes on after an interrupt or a kill, exactly as if there had been none.
    """
    from gpusched_env.agents.training.randomise import randomise_of
    from gpusched_env.experiments.training import configure, run_training

    values: dict[str, Any] = {
        "algo": algo,
        "policy": policy,
        "timesteps": timesteps,
        "seed": seed,
        "envs": envs,
        "threads": threads,
        "variants": variants,
        "learning_rate": lr,
        "gamma": gamma,
        "batch_size": batch_size,
        "ent_coef": ent_coef,
        "randomise": None if randomise is None else randomise_of(randomise),
        "imitation": None if imitate is None else {"scheduler": imitate},
        "imitation.episodes": imitate_episodes,
    }
    config = configure(
        scenario, {name: value for name, value in values.items() if value is not None}, settings or [], gpu
    )
    folder = out if out is not None else Path("results") / "train" / config.scenario.name
    command = shlex.join(["gpusched", *sys.argv[1:]])
    run_training(config, folder, baselines=baselines, resume=resume, trust=trust, command=command)
