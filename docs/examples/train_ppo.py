"""Train a scheduler with maskable PPO: one file, to be copied and changed.

    python train_ppo.py --scenario ServingPoisson --timesteps 200000
    tensorboard --logdir runs

Needs the extras `train` and `experiments`; --wandb needs `pip install wandb` and a login. Writes into --out the curve
(learning.png), the model (model.zip), the policy as a scheduler (policy.npz), TensorBoard's files, and evaluation.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from gpusched_env import compare
from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.model_file import export_policy
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.scenarios.scenario import load_scenario

VALIDATION_SEEDS = range(10_000, 10_008)
"""Chosen by while it trains."""
EVALUATION_SEED = 20_000
"""First seed of the evaluation: apart from those of training and validation."""


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="ServingPoisson", help="a name, or a file of your own (.yaml)")
    parser.add_argument("--timesteps", type=int, default=200_000, help="decisions, of all environments together")
    parser.add_argument("--envs", type=int, default=32, help="environments that are stepped together")
    parser.add_argument("--steps", type=int, default=64, help="decisions of each environment between two updates")
    parser.add_argument("--batch", type=int, default=512, help="decisions in a gradient step")
    parser.add_argument("--lr", type=float, default=7e-4, help="learning rate, which falls to 0")
    parser.add_argument("--gamma", type=float, default=0.98, help="discount of one decision")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--validate-every", type=int, default=20_000, help="decisions between two validations")
    parser.add_argument("--evaluation-seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("runs/train_ppo"))
    parser.add_argument("--wandb", metavar="PROJECT", help="log to Weights & Biases as well")
    return parser.parse_args(given)


def environments(args: argparse.Namespace) -> Sb3VecEnv:
    """All environments, stepped in one compiled call. Keyword arguments replace fields of the scenario, too."""
    envs = GpuSchedulingVectorEnv(args.scenario, num_envs=args.envs, autoreset_mode="SAME_STEP")
    return Sb3VecEnv(envs)


class Validation(BaseCallback):
    """Plays the policy without chance on fixed seeds, keeps the best, and logs what episodes cost."""

    def __init__(self, scenario: str, every: int, best: Path) -> None:
        super().__init__()
        self.scenario, self.every, self.best = load_scenario(scenario), every, best
        self.curve: list[tuple[int, float]] = []
        self.training: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                # The return is minus the cost.
                self.training.append((self.num_timesteps, -info["episode"]["r"]))
                self.logger.record_mean("episode/cost", -info["episode"]["r"])
        return True

    def _on_rollout_end(self) -> None:
        if not self.curve or self.num_timesteps - self.curve[-1][0] >= self.every:
            self.validate()

    def _on_training_end(self) -> None:
        self.validate()

    def validate(self) -> None:
        latest = self.best.with_name("latest.npz")
        export_policy(self.model, latest)
        policy = ExportedPolicy.load(latest)
        cost = float(evaluate_costs(policy, self.scenario, list(VALIDATION_SEEDS)).costs.mean())
        if cost < min((before for _, before in self.curve), default=float("inf")):
            latest.replace(self.best)
            self.model.save(self.best.with_name("model"))
        self.curve.append((self.num_timesteps, cost))
        self.logger.record("validation/cost", cost)
        print(f"{self.num_timesteps:9,} decisions: validation cost {cost:.2f}", flush=True)


def means_by_step(training: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    """One mean cost a step: episodes of all environments often end at the same one."""
    steps, costs = np.array(training).T
    found, which = np.unique(steps, return_inverse=True)
    return found, np.bincount(which, costs) / np.bincount(which)


def draw(validation: Validation, reference: float, path: Path) -> None:
    """The curve: what training episodes and validations cost, against the plain GPU."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    if validation.training:
        label = "training, mean of episodes that end together"
        axes.plot(*means_by_step(validation.training), color="C0", alpha=0.4, label=label)
    axes.plot(*np.array(validation.curve).T, "o-", color="C0", label="validation")
    axes.axhline(reference, color="grey", linestyle="--", label="pass-through")
    axes.set(xlabel="decisions", ylabel="cost of an episode", ylim=(0, None), title=validation.scenario.name)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(given: list[str] | None = None) -> dict[str, float]:
    """Train, evaluate and draw; returns mean costs of the evaluation."""
    args = arguments(given)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.wandb:
        import wandb

        # Weights & Biases follows what is written for TensorBoard.
        wandb.init(project=args.wandb, config=vars(args), sync_tensorboard=True, dir=args.out)
    torch.set_num_threads(1)
    model = MaskablePPO(
        "MultiInputPolicy",
        environments(args),
        n_steps=args.steps,
        batch_size=args.batch,
        learning_rate=lambda left: args.lr * left,
        gamma=args.gamma,
        seed=args.seed,
        device="cpu",
        tensorboard_log=str(args.out),
    )
    validation = Validation(args.scenario, args.validate_every, args.out / "policy.npz")
    model.learn(args.timesteps, callback=validation)

    seeds = list(range(EVALUATION_SEED, EVALUATION_SEED + args.evaluation_seeds))
    result = compare(args.scenario, ["pass-through", f"learned:{args.out / 'policy.npz'}"], seeds)
    print(result)
    played: dict[str, list[float]] = {}
    for run in result.runs:
        played.setdefault("pass-through" if run.scheduler == "pass-through" else "agent", []).append(run.metrics.cost)
    costs = {name: statistics.fmean(values) for name, values in played.items()}
    (args.out / "evaluation.json").write_text(json.dumps(costs, indent=1))
    draw(validation, costs["pass-through"], args.out / "learning.png")
    if args.wandb:
        wandb.log({"learning": wandb.Image(str(args.out / "learning.png")), **costs})
        wandb.finish()
    return costs


if __name__ == "__main__":
    main()
