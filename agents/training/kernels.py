"""Trainings of schedulers of kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policies.new_columns import unseen
from gpusched_env.agents.policies.registry import DISTILLATION, MLP, ROLLOUTS, RULES, SEARCH
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.environments import training_env, training_layout
from gpusched_env.agents.training.trainer import RuleLearner, Trainer
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.contract import Scheduler

if TYPE_CHECKING:
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
    from gpusched_env.agents.training.validation import Judge, TrainingRun


class KernelTrainer:
    """Trains for scenarios, as a :class:`gpusched_env.agents.training.trainer.Trainer`."""

    config = TrainingConfig

    def check(self, config: TrainingConfig) -> None:
        env = training_env(config)
        try:
            if config.begin_with is not None:
                _check_first_weights(config, env)
        finally:
            env.close()
        if config.algo == DISTILLATION and config.interval_us == 0.0:
            raise InputError("distillation learns who goes first for an interval: give interval_us (such as 250)")
        layout = training_layout(config)
        seen_by = ("mlp", "knobs") if layout.knobs else ("mlp",)
        if unseen(layout) and config.policy not in seen_by:
            rule = "policy knobs (algorithm cma-es), " if layout.knobs else ""
            raise InputError(
                f"policy {config.policy} does not see the {unseen(layout)} that decisions of {config.name} are about "
                f"for an interval: give {rule}policy mlp, or interval_us 0"
            )
        if config.policy in RULES:
            shapes = RULES[config.policy].of(layout).shapes(layout)
            if config.algo == SEARCH:
                from gpusched_env.agents.training.evolution import searched_weights

                searched_weights(config, shapes)

    def judge(self, config: TrainingConfig) -> Judge:
        from gpusched_env.agents.training.validation import EpisodeJudge

        return EpisodeJudge(config)

    def learn(
        self,
        course: TrainingRun,
        config: TrainingConfig,
        teacher: Callable[[], Scheduler] | None,
        state: dict[str, Any] | None,
    ) -> int:
        # What compiled code the others need is not built, nor read, for one of them.
        learner: RuleLearner
        if config.algo == SEARCH:
            from gpusched_env.agents.training.evolution import RuleEvolution

            learner = RuleEvolution(course, config, state)
        elif config.algo == ROLLOUTS:
            from gpusched_env.agents.training.rollouts import Rollouts

            learner = Rollouts(course, config, state)
        elif config.algo == DISTILLATION:
            from gpusched_env.agents.training.distillation import Distillation

            learner = Distillation(course, config, state)
        else:
            from gpusched_env.agents.training.learning import learn

            return learn(course, config, teacher, state)
        learner.run()
        return learner.timesteps

    def check_policy(self, path: Path, name: str) -> None:
        ExportedPolicy.load(path).layout_for(load_scenario(name))


def _check_first_weights(config: TrainingConfig, env: Sb3VecEnv) -> None:
    """Find out whether a training can begin with the weights that it names.

    Raises:
        InputError: why not.
    """
    from gpusched_env.agents.training.learning import begin_with, new_model

    assert config.begin_with is not None, "asked before"
    if config.algo == SEARCH:
        from gpusched_env.agents.training.evolution import first_weights

        first_weights(config)
        return
    if config.algo not in MLP:
        raise InputError(f"{config.algo} cannot begin with a trained policy; {', '.join((*MLP, SEARCH))} can")
    begin_with(new_model(config, env, env.env.layout), Path(config.begin_with))


TRAINER: Final[Trainer[TrainingConfig]] = KernelTrainer()
