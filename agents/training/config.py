"""What a training is: everything that its result depends on.

Hyper-parameters have stable-baselines3's names, whose documentation says what they do. Their defaults are for decisions
that are some 20 us apart: a job lasts milliseconds, that is hundreds of decisions, and what a launch costs shows only
when what it delayed is done. So the discount is close to 1, the entropy bonus small, and a rollout of one environment
long. For some scenarios ``defaults.yaml`` has better ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from gpusched_env.agents.policies.registry import DISTILLATION, policy_names
from gpusched_env.envs.observations import RUNNING_SLOTS
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scenarios.scenario import Scenario

Count = Annotated[int, Meta(ge=1)]
Seed = Annotated[int, Meta(ge=0, lt=2**31)]
Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]

DEFAULTS = Path(__file__).with_name("defaults.yaml")
"""The file with what a training of each scenario is unless told otherwise."""


class CheckedStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Named values that are checked."""


class EvolutionSettings(CheckedStruct, frozen=True, kw_only=True):
    """Settings of CMA-ES (:mod:`gpusched_env.agents.training.evolution`)."""

    population: Annotated[int, Meta(ge=4)] = 16
    """Candidates of a generation."""
    episodes: Count = 1
    """Episodes that each candidate plays of every training variant, on the same seeds as the others. More take
    generations away from the search: worth it where costs differ more from seed to seed than between candidates."""
    sigma: Positive = 0.4
    """Standard deviation of the weights at first."""
    search: Annotated[list[str], Meta(min_length=1)] | None = None
    """Which weights of the rule are searched: names of its arrays (``level``), or of ``serve`` a way and a term
    (``alone.spare``). The others stay as they are at first; ``None``: all."""


class RolloutSettings(CheckedStruct, frozen=True, kw_only=True):
    """Settings of rollouts (:mod:`gpusched_env.agents.training.rollouts`)."""

    episodes: Count = 2
    """Episodes of each training variant in a round."""
    states: Annotated[float, Meta(gt=0, le=1)] = 0.08
    """Share of the decisions between several tenants in which actions are tried."""
    tries: Count = 4
    """Actions that are tried in such a state, beside going by the plan."""
    hold: Count = 2
    """Decisions that a tried action stands for, as long as its tenant has a job."""
    horizon_us: Positive = 10000.0
    """Simulated time after which costs are compared, with what the plan of all jobs loses then."""
    explore: Share = 0.05
    """Share of the decisions in the episodes that are drawn at random."""
    penalty: Positive = 200.0
    """Penalty on the squares of fitted weights: so many pairs have to speak against 0."""
    margin: NonNegative = 0.02
    """What departing from the plan has to gain by the fit, in multiples of the mean weight."""


class DistillationSettings(CheckedStruct, frozen=True, kw_only=True):
    """Settings of distillation (:mod:`gpusched_env.agents.training.distillation`)."""

    learning_rate: Positive = 3e-3
    """Learning rate at first; it falls linearly, to a fiftieth."""
    n_steps: Count = 256
    """Decisions of each environment between two updates."""
    batch_size: Annotated[int, Meta(ge=2)] = 1024
    n_epochs: Count = 8
    gamma: Share = 0.98
    """Discount of one decision in the returns that the critic learns."""
    vf_coef: NonNegative = 0.1
    max_grad_norm: Positive = 0.5
    margin: NonNegative = 0.05
    """What departing from the plan has to save, in multiples of the mean weight; twice that to keep others off the
    GPU. Chosen on training workloads, of 0, 0.02, 0.05 and 0.1."""


class Settings(CheckedStruct, frozen=True, kw_only=True):
    """Settings that all algorithms of stable-baselines3 have."""

    learning_rate: Positive = 3e-4
    learning_rate_end: NonNegative | None = None
    """Where the learning rate goes, linearly, in the course of the training; ``None``: constant."""
    gamma: Share = 0.999
    """Discount of rewards from one decision to the next."""
    max_grad_norm: Positive = 0.5


class PpoSettings(Settings, frozen=True, kw_only=True):
    """Settings of PPO, MaskablePPO and RecurrentPPO."""

    n_steps: Count = 256
    """Decisions of each environment between two updates."""
    batch_size: Annotated[int, Meta(ge=2)] = 2048
    n_epochs: Count = 4
    gae_lambda: Share = 0.97
    clip_range: Positive = 0.2
    ent_coef: NonNegative = 0.002
    vf_coef: NonNegative = 0.5
    target_kl: Positive | None = 0.03


class A2cSettings(Settings, frozen=True, kw_only=True):
    """Settings of A2C."""

    learning_rate: Positive = 7e-4
    n_steps: Count = 32
    gae_lambda: Share = 0.97
    ent_coef: NonNegative = 0.002
    vf_coef: NonNegative = 0.5
    normalize_advantage: bool = True


class DqnSettings(Settings, frozen=True, kw_only=True):
    """Settings of DQN. It knows no action mask: an illegal action is a wait, and it has to learn that."""

    learning_rate: Positive = 1e-4
    max_grad_norm: Positive = 10.0
    buffer_size: Count = 100_000
    learning_starts: Annotated[int, Meta(ge=0)] = 5_000
    batch_size: Count = 256
    train_freq: Count = 4
    """Steps of all environments together between two updates."""
    gradient_steps: Annotated[int, Meta(ge=-1)] = 4
    target_update_interval: Count = 5_000
    tau: Share = 1.0
    exploration_fraction: Share = 0.2
    exploration_initial_eps: Share = 1.0
    exploration_final_eps: Share = 0.02


SETTINGS: dict[str, type[Settings] | type[EvolutionSettings] | type[RolloutSettings] | type[DistillationSettings]] = {
    "maskable-ppo": PpoSettings,
    "ppo": PpoSettings,
    "recurrent-ppo": PpoSettings,
    "a2c": A2cSettings,
    "dqn": DqnSettings,
    "cma-es": EvolutionSettings,
    "rollouts": RolloutSettings,
    "distillation": DistillationSettings,
}
"""Classes of settings, by algorithm."""


class Imitation(CheckedStruct, frozen=True, kw_only=True):
    """A warm start: first do as a hand-written scheduler does."""

    scheduler: str
    episodes: Count = 12
    """Recorded episodes of the teacher, over all training variants."""
    decisions: Count = 120_000
    """The most decisions of these episodes that are kept."""
    epochs: Count = 5
    """Passes over what was recorded."""
    batch_size: Count = 1024
    learning_rate: Positive = 1e-3


class Randomise(CheckedStruct, frozen=True, kw_only=True):
    """What is drawn anew for each episode."""

    rates: tuple[Positive, Positive] | None = None
    """A factor on every tenant's rate of arrivals, one each, log-uniform between these."""
    gpus: tuple[str, ...] = ()
    """GPUs of which each episode has one; empty: the scenario's."""
    profiles: Annotated[float, Meta(ge=1)] = 1.0
    """Profiled durations and gaps are off by up to this factor each (``scatter`` of the scenario's ``profiles``)."""


class Training(CheckedStruct, frozen=True, kw_only=True):
    """What all configurations have, whatever game they are for."""

    scenario: Scenario | str
    """What is trained on, or a game's name."""
    algo: str
    timesteps: Count
    """Decisions after which it ends, at the end of a rollout, generation or round."""
    seed: Seed = 0
    threads: Count = 1
    """Threads of the learner and of environments; of a game's rule: candidates that play at a time, on which the result
    does not depend."""
    settings: dict[str, Any] = {}
    """Hyper-parameters of the algorithm."""
    imitation: Imitation | None = None
    validate_every: Count
    """Decisions between two validations."""
    validation_seeds: Count
    """Episodes of each training variant in a validation, or its random problems."""
    checkpoint_every: Count
    """Decisions between two checkpoints."""

    @property
    def name(self) -> str:
        """Name of the scenario or game that is trained on."""
        return self.scenario if isinstance(self.scenario, str) else self.scenario.name

    def checked(self) -> Self:
        """This configuration with everything filled in.

        Raises:
            InputError: a value that it cannot have.
        """
        raise NotImplementedError


class TrainingConfig(Training, frozen=True, kw_only=True):
    """One training, from the first step to the last."""

    scenario: Scenario
    algo: str = "maskable-ppo"
    policy: str | None = None
    """Name of the policy; ``None``: the usual one of the algorithm."""
    timesteps: Count = 1_000_000
    """Decisions, of all environments together; the last rollout is completed."""
    envs: Count = 64
    threads: Count = 1
    """Threads of PyTorch and of the vector environment. A training is repeated exactly with one only."""
    policy_kwargs: dict[str, Any] = {}
    """Arguments of the policy in place of those that its name stands for, such as ``net_arch``."""
    also: tuple[str, ...] = ()
    """Other scenarios, with the same actions, that are trained on besides: one policy for all of them. Each brings its
    training variants; ``slots`` must be enough for the one with most tenants."""
    variants: bool = True
    """Draw one of the scenario's training variants for each episode, where it has them."""
    randomise: Randomise = Randomise()
    """What else each episode of the training draws; validations do not."""
    slots: Count | None = None
    """Tenant rows; ``None``: as many as the scenario has tenants."""
    running_slots: Count = RUNNING_SLOTS
    wait_us: Positive = 100.0
    """Longest simulated wait of action 0."""
    interval_us: NonNegative = 0.0
    """How long a decision stands while a dispatcher launches; 0: every launch is one."""
    futures: bool = False
    """Whether observations tell then what is lost in sampled futures, which takes most of the time of a decision; the
    policy ``serve``, which goes by that, is told in any case."""
    shaping: bool = True
    """Whether rewards are shaped by progress (:mod:`gpusched_env.agents.shaping`)."""
    reward_scale: Positive | None = None
    """Factor on rewards; ``None``: :func:`gpusched_env.agents.training.environments.reward_scale` of the scenario."""
    begin_with: str | None = None
    """A model (``.zip``) or an exported slot network (``.npz``) whose weights are the first ones."""
    critic_first: Annotated[int, Meta(ge=0)] = 0
    """Decisions for which only the critic learns; for slot networks."""
    validate_every: Count = 250_000
    validation_seeds: Count = 4
    checkpoint_every: Count = 100_000
    torch_device: str = "cpu"

    def checked(self) -> Self:
        try:
            valid = msgspec.convert(msgspec.to_builtins(self), type(self))
        except msgspec.ValidationError as error:
            raise InputError(f"training: {error}") from error
        policies = policy_names(valid.algo)
        policy = policies[0] if valid.policy is None else valid.policy
        if policy not in policies:
            raise InputError(f"algorithm {valid.algo} has no policy {policy!r}; it has {' and '.join(policies)}")
        try:
            settings = msgspec.to_builtins(msgspec.convert(valid.settings, SETTINGS[valid.algo]))
        except msgspec.ValidationError as error:
            raise InputError(f"{valid.algo}: {error}") from error
        futures = valid.futures or policy == "serve"
        valid = msgspec.structs.replace(valid, policy=policy, settings=settings, futures=futures)
        if valid.algo != DISTILLATION:
            return valid
        # What it learns is to do without futures, and who goes first for an interval.
        interval_us = valid.interval_us or valid.scenario.interval_us
        return msgspec.structs.replace(valid, futures=False, interval_us=interval_us)


def config_of(values: dict[str, Any]) -> TrainingConfig:
    """A configuration from plain values.

    Hyper-parameters of the algorithm may stand beside the other fields, by name; ``imitation.FIELD`` and
    ``policy_kwargs.FIELD`` reach into those.

    Raises:
        InputError: unknown name or invalid value.
    """
    plain: dict[str, Any] = {"settings": {}, "policy_kwargs": {}}
    algo = str(values.get("algo", "maskable-ppo"))
    policy_names(algo)
    for name, value in values.items():
        group, dot, field = name.partition(".")
        if dot and group in ("imitation", "policy_kwargs"):
            if group == "imitation" and not isinstance(plain.get(group), dict):
                raise InputError(f"{name}: there is no imitation; name its scheduler first (--imitate SCHEDULER)")
            plain[group][field] = value
        elif name in TrainingConfig.__struct_fields__:
            plain[name] = msgspec.to_builtins(value)
        elif name in (known := SETTINGS[algo].__struct_fields__):
            plain["settings"][name] = value
        else:
            names = [*TrainingConfig.__struct_fields__, *known]
            raise InputError(f"training with {algo} has no setting {name!r}; {did_you_mean(name, names)}")
    try:
        return msgspec.convert(plain, TrainingConfig).checked()
    except msgspec.ValidationError as error:
        raise InputError(f"training: {error}") from error


def defaults_for(scenario: str, algo: str | None = None) -> dict[str, Any]:
    """What :data:`DEFAULTS` says of a scenario, as :func:`config_of` takes it.

    Args:
        scenario: its name.
        algo: the algorithm that is wanted; another than that of the defaults may have its own (``NAME --algo ALGO``).
    """
    import yaml

    defaults: dict[str, dict[str, Any]] = yaml.safe_load(DEFAULTS.read_text())
    found = defaults.get(scenario, {})
    return found if algo in (None, found.get("algo")) else defaults.get(f"{scenario} --algo {algo}", {})


def randomise_of(text: str) -> Randomise:
    """What to draw at random, from the form of the command line: ``rates=0.7:1.4,gpus=h100-sxm+h200-sxm,profiles=2``.

    Raises:
        InputError: unknown name or invalid value.
    """
    given: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in Randomise.__struct_fields__:
            raise InputError(f"--randomise {part}: {did_you_mean(name, Randomise.__struct_fields__)}")
        separator = {"rates": ":", "gpus": "+"}.get(name)
        given[name] = value.split(separator) if separator else value
    try:
        return msgspec.convert(given, Randomise, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(
            f"--randomise {text}: {error}; expected such as rates=0.7:1.4,gpus=h100-sxm+h200-sxm,profiles=2"
        ) from error
