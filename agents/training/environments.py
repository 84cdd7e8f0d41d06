"""The environments of a training: those that it learns in, and those that it is validated in."""

from __future__ import annotations

from typing import Any

from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.agents.shaping import ProgressShaping
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.randomise import sampler
from gpusched_env.agents.training.scale import SHAPED, reward_scale
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.env import SEED_LIMIT
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.variants import scenario_variants, variant_changes

TRAINING_SEED = 10_000_000
"""First seed of the first episodes of a training with seed 0; later episodes draw theirs."""
SEEDS_EACH = 10_000
"""Seeds from one training's first to the next one's."""
VALIDATION_SEED = 1_000_000_000
"""First seed of validations: apart from those of training, and from 0, 1, ... that comparisons take."""


DRAWN_SEEDS = (1_500_000_000, SEED_LIMIT)
"""Range of the seeds that a search draws for its generations."""


def training_layout(config: TrainingConfig) -> ActionLayout:
    """The actions of a training's environments."""
    slots = config.slots if config.slots is not None else len(config.scenario.tenants)
    return ActionLayout.of(config.scenario, slots, config.running_slots)


def training_changes(config: TrainingConfig) -> list[dict[str, Any]]:
    """What makes each variant of the scenario that is trained on; one without changes where there are none."""
    if not config.variants or config.scenario.workload_sets is None:
        return [{}]
    return variant_changes(config.scenario, "train")


def training_scenarios(config: TrainingConfig) -> list[Scenario]:
    """The variants of the scenario that are trained on, each as a scenario of its own."""
    if not config.variants or config.scenario.workload_sets is None:
        return [config.scenario]
    return scenario_variants(config.scenario, "train")


def scale_of(config: TrainingConfig) -> float:
    """The factor on rewards."""
    if config.reward_scale is not None:
        return config.reward_scale
    return reward_scale(build_problem(config.scenario)) * (SHAPED if config.shaping else 1.0)


def shaping_of(config: TrainingConfig) -> ProgressShaping | None:
    """What is added to rewards."""
    return ProgressShaping(config.scenario.reward) if config.shaping else None


def training_env(config: TrainingConfig) -> Sb3VecEnv:
    """The environments that are learned in, seeded; each episode draws a variant and what else is randomised."""
    env = Sb3VecEnv(
        GpuSchedulingVectorEnv(
            config.scenario,
            num_envs=config.envs,
            autoreset_mode="SAME_STEP",
            threads=config.threads,
            sample_scenario=sampler(config.scenario, training_changes(config), config.randomise),
            slots=config.slots,
            running_slots=config.running_slots,
            wait_us=config.wait_us,
        ),
        scale_of(config),
        shaping_of(config),
    )
    env.seed(TRAINING_SEED + SEEDS_EACH * config.seed)
    return env


def validation_seeds(config: TrainingConfig) -> list[int]:
    """Seeds of the episodes of a validation, of each variant."""
    return [VALIDATION_SEED + k for k in range(config.validation_seeds)]


def validation_env(config: TrainingConfig) -> GpuSchedulingVectorEnv:
    """One environment for each training variant and validation seed, in this order."""
    changes = training_changes(config)
    return GpuSchedulingVectorEnv(
        config.scenario,
        num_envs=len(changes) * config.validation_seeds,
        autoreset_mode="SAME_STEP",
        threads=config.threads,
        scenarios=[change for change in changes for _ in range(config.validation_seeds)],
        slots=config.slots,
        running_slots=config.running_slots,
        wait_us=config.wait_us,
    )
