"""The environments of a training: those that it learns in, and those that it is validated in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.agents.shaping import PlanShaping, ProgressShaping, Shaping
from gpusched_env.agents.training.config import Randomise, TrainingConfig
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.setup import lay_out
from gpusched_env.envs.single import SEED_LIMIT
from gpusched_env.envs.vector_arguments import SampleScenario
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario, override
from gpusched_env.scenarios.set_up import SetUp, set_up
from gpusched_env.scenarios.variants import faster_arrivals, scenario_variants, variant_changes

if TYPE_CHECKING:
    from gpusched_env.agents.training.trainer import GameTraining

TRAINING_SEED = 10_000_000
"""First seed of the first episodes of a training with seed 0; later episodes draw theirs."""
SEEDS_EACH = 10_000
"""Seeds from one training's first to the next one's."""
VALIDATION_SEED = 1_000_000_000
"""First seed of validations: apart from those of training, and from 0, 1, ... that comparisons take."""
DRAWN_SEEDS = (1_500_000_000, SEED_LIMIT)
"""Range of the seeds that a search draws for its generations."""

ALONE = 10.0
"""What an episode without interference costs after scaling. Discounted over the thousand decisions that a factor of
0.999 looks ahead, values are then about 1."""
SHAPED = 4.0
"""A factor besides, on shaped rewards: only what is lost to interference is left of the cost."""

PROFILE_SEEDS = 2**31


def training_layout(config: TrainingConfig) -> ActionLayout:
    """The actions of a training's environments."""
    return lay_out(config.scenario, **_spaces(config))


def env_arguments(config: TrainingConfig) -> dict[str, Any]:
    """What every environment of a training is given, besides its scenario: all that this offers."""
    used = training_layout(config).uses(config.scenario.commands)
    return {**_spaces(config), "wait_us": config.wait_us, "commands": used}


def _spaces(config: TrainingConfig) -> dict[str, Any]:
    return {
        "slots": config.slots,
        "running_slots": config.running_slots,
        "interval_us": config.interval_us,
        "futures": config.futures,
    }


def training_changes(config: TrainingConfig) -> list[dict[str, Any]]:
    """What makes each variant of the scenario that is trained on, and of those that are trained on besides; one without
    changes where there are none."""
    own = [{}] if not _has_variants(config, config.scenario) else variant_changes(config.scenario, "train")
    return [*own, *(_as_change(other) for other in _others(config))]


def training_scenarios(config: TrainingConfig) -> list[Scenario]:
    """The variants of the scenarios that are trained on, each as a scenario of its own."""
    return [*_variants(config, config.scenario), *_others(config)]


def _others(config: TrainingConfig) -> list[Scenario]:
    """Variants of the scenarios that are trained on besides.

    Raises:
        InputError: there is no such scenario, or its agents have other actions.
    """
    found: list[Scenario] = []
    mine = _actions(config, config.scenario)
    for name in config.also:
        scenario = load_scenario(name)
        theirs = _actions(config, scenario)
        for field in mine:
            if mine[field] != theirs[field]:
                raise InputError(
                    f"also: {field} of {name} is {theirs[field]}, of {config.name} {mine[field]}; one policy needs the "
                    "same actions"
                )
        found += _variants(config, scenario)
    return found


def _actions(config: TrainingConfig, scenario: Scenario) -> dict[str, Any]:
    """What decides the actions of a policy for ``scenario``, by field."""
    layout = ActionLayout.of(
        scenario, config.slots or 1, config.running_slots, config.interval_us, futures=config.futures
    )
    return asdict(layout)


def _variants(config: TrainingConfig, scenario: Scenario) -> list[Scenario]:
    return scenario_variants(scenario, "train") if _has_variants(config, scenario) else [scenario]


def _has_variants(config: TrainingConfig, scenario: Scenario) -> bool:
    return config.variants and scenario.workload_sets is not None


def _as_change(scenario: Scenario) -> dict[str, Any]:
    """What makes it out of any other scenario."""
    fields = msgspec.to_builtins(scenario)
    return {name: value for name, value in fields.items() if name not in ("name", "summary", "workload_sets")}


def scale_of(config: TrainingConfig) -> float:
    """The factor on rewards."""
    if config.reward_scale is not None:
        return config.reward_scale
    return reward_scale(build_problem(config.scenario)) * (SHAPED if config.shaping else 1.0)


def reward_scale(problem: Problem) -> float:
    """A constant factor on the rewards of a scenario: :data:`ALONE` over the cost of its jobs alone on the GPU.

    A constant, where a running normalisation would be a state of its own: the same reward means the same
    throughout the training, and in every variant of the scenario. Where jobs alone cost nothing (objectives are
    met), every objective counts as missed.
    """
    weights = problem.scenario.reward
    horizon_us = problem.scenario.horizon_us
    cost = missed = total_us = 0.0
    for program in problem.programs:
        tenant, alone_us = program.tenant, program.alone_us
        jobs = tenant.jobs if tenant.jobs is not None else math.ceil(horizon_us / alone_us)
        cost += jobs * tenant.weight * (weights.turnaround * alone_us / 1e3 + weights.slowdown)
        is_best_effort = tenant.slo_us is None and weights.lost_progress > 0.0
        missed += jobs * tenant.weight * (weights.lost_progress if is_best_effort else weights.slo_miss)
        total_us += jobs * alone_us
    total_us = min(total_us, horizon_us)
    cost += weights.makespan * total_us / 1e3 + weights.energy * problem.gpu.power.idle_w * total_us * 1e-6
    return ALONE / (cost or missed or 1.0)


def shaping_of(config: TrainingConfig) -> Shaping | None:
    """What is added to rewards."""
    if not config.shaping:
        return None
    reward = config.scenario.reward
    # Algorithms for rules do not discount.
    gamma = config.settings.get("gamma", 1.0)
    return PlanShaping(reward, gamma) if config.interval_us > 0.0 else ProgressShaping(reward)


def training_env(config: TrainingConfig) -> Sb3VecEnv:
    """The environments that are learned in, seeded; each episode draws a variant and what else is randomised."""
    env = Sb3VecEnv(
        GpuSchedulingVectorEnv(
            config.scenario,
            num_envs=config.envs,
            autoreset_mode="SAME_STEP",
            threads=config.threads,
            sample_scenario=sampler(config.scenario, training_changes(config), config.randomise),
            **env_arguments(config),
        ),
        scale_of(config),
        shaping_of(config),
    )
    env.seed(TRAINING_SEED + SEEDS_EACH * config.seed)
    return env


def sampler(scenario: Scenario, changes: Sequence[Mapping[str, Any]], randomise: Randomise) -> SampleScenario | None:
    """What a vector environment asks for the fields of its next episode; ``None`` if there is nothing to draw.

    Args:
        scenario: the environment's.
        changes: variants of it, one of which each episode has.
        randomise: what else is drawn.

    Raises:
        InputError: a variant does not run on one of the GPUs, or has tenants of its own whose rates are to be drawn.
    """
    if len(changes) == 1 and not changes[0] and randomise == Randomise():
        return None
    variants = [override(scenario, **change) for change in changes]
    if randomise.rates is not None and any(isinstance(change.get("tenants"), list) for change in changes):
        raise InputError("rates cannot be randomised where other scenarios are trained on besides (also)")
    for gpu in randomise.gpus:
        for variant in variants:
            build_problem(override(variant, gpu=gpu))

    def sample(number: int, rng: np.random.Generator) -> dict[str, Any]:
        chosen = int(rng.integers(len(changes)))
        fields = dict(changes[chosen])
        if randomise.rates is not None:
            fields["tenants"] = _with_rates(variants[chosen], fields.get("tenants", {}), randomise.rates, rng)
        if randomise.gpus:
            fields["gpu"] = randomise.gpus[int(rng.integers(len(randomise.gpus)))]
        if randomise.profiles > 1.0:
            fields["profiles"] = {"scatter": randomise.profiles, "seed": int(rng.integers(PROFILE_SEEDS))}
        return fields

    return sample


def variant_problems(config: TrainingConfig) -> list[Problem]:
    """The problem of each training variant, in the order of :func:`training_changes`."""
    return [_problem(config, change) for change in training_changes(config)]


def problem_source(config: TrainingConfig, each: int) -> Callable[[np.random.Generator], list[Problem]]:
    """What draws the problems of the episodes that are played together.

    Args:
        each: episodes of each training variant, in a row; where anything is randomised as many in all, drawn anew.
    """
    if config.randomise == Randomise():
        fixed = variant_problems(config)
        return lambda rng: [problem for problem in fixed for _ in range(each)]
    changes = training_changes(config)
    sample = sampler(config.scenario, changes, config.randomise)
    assert sample is not None, "something is drawn"
    count = each * len(changes)
    return lambda rng: [_problem(config, sample(k, rng) or {}) for k in range(count)]


def _problem(config: TrainingConfig, changed: Mapping[str, Any]) -> Problem:
    layout = training_layout(config)
    problem = build_problem(override(config.scenario, **changed))
    return set_up(problem, SetUp(uses=lambda scenario: layout.uses(scenario.commands)))


def _with_rates(
    variant: Scenario, changes: Mapping[str, Any], rates: tuple[float, float], rng: np.random.Generator
) -> dict[str, Any]:
    """``changes`` of tenants, with the arrivals that they have in ``variant`` faster or slower."""
    low, high = sorted(rates)
    found = {}
    for tenant in variant.tenants:
        factor = math.exp(rng.uniform(math.log(low), math.log(high)))
        arrivals = msgspec.to_builtins(faster_arrivals(tenant.arrivals, factor))
        found[tenant.name] = {**changes.get(tenant.name, {}), "arrivals": arrivals}
    return found


def validation_seeds(config: TrainingConfig | GameTraining) -> list[int]:
    """Seeds of a validation: of the episodes of each variant, or of a game's random problems."""
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
        **env_arguments(config),
    )
