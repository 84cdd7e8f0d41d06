"""``gpusched train``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gpusched_env.experiments.lib.options import USE, Gpu, Scenario, command_line, with_fields


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


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("train", rich_help_panel=USE)(with_fields(train_command))


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

    With the scenario's own settings, where it has some (docs/training.md), which each option replaces.
    Writes the best and the last model, checkpoints, the learning curve and TensorBoard's files. The same command with
    --resume goes on after an interrupt or a kill, exactly as if there had been none.
    """
    from gpusched_env.experiments.games.registry import game_of
    from gpusched_env.experiments.settings import parsed
    from gpusched_env.experiments.training import run_training

    given = options.given(randomise, imitate, imitate_episodes) | dict(parsed(settings or []))
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
