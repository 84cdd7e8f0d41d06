"""Hyper-parameters of each algorithm, with defaults for decisions that are some 20 us apart.

A job lasts milliseconds, that is hundreds of decisions, and what a launch costs shows only when what it delayed is
done. So the discount is close to 1, the entropy bonus small, and a rollout of one environment long. Names are those
of stable-baselines3, whose documentation says what they do; ``learning_rate_end`` is where the learning rate goes,
linearly, in the course of the training.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError, did_you_mean

Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]


class EvolutionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """CMA-ES (:mod:`gpusched_env.agents.training.evolution`)."""

    population: Annotated[int, Meta(ge=4)] = 16
    """Candidates of a generation."""
    episodes: Count = 1
    """That each candidate plays of every training variant, on the same seeds as the others. More take generations away
    from the search: worth it where costs differ more from seed to seed than between candidates."""
    sigma: Positive = 0.4
    """Standard deviation of the weights at first."""
    search: Annotated[list[Literal["launch", "share", "level"]], Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: ["launch", "share", "level"]
    )
    """Which weights are searched; the others stay 0."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all algorithms of stable-baselines3 have."""

    learning_rate: Positive = 3e-4
    learning_rate_end: NonNegative | None = None
    """``None``: constant."""
    gamma: Share = 0.999
    """Discount of one decision."""
    max_grad_norm: Positive = 0.5


class PpoSettings(Settings, frozen=True, kw_only=True):
    """PPO, MaskablePPO and RecurrentPPO."""

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
    """A2C."""

    learning_rate: Positive = 7e-4
    n_steps: Count = 32
    gae_lambda: Share = 0.97
    ent_coef: NonNegative = 0.002
    vf_coef: NonNegative = 0.5
    normalize_advantage: bool = True


class DqnSettings(Settings, frozen=True, kw_only=True):
    """DQN. It knows no action mask: an illegal action is a wait, and it has to learn that."""

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


SETTINGS: dict[str, type[Settings] | type[EvolutionSettings]] = {
    "maskable-ppo": PpoSettings,
    "ppo": PpoSettings,
    "recurrent-ppo": PpoSettings,
    "a2c": A2cSettings,
    "dqn": DqnSettings,
    "cma-es": EvolutionSettings,
}
"""By algorithm."""


def settings_of(algo: str, given: dict[str, Any]) -> Settings | EvolutionSettings:
    """The hyper-parameters of ``algo``: its defaults, and what was given.

    Raises:
        InputError: no such algorithm or hyper-parameter, or a value that it cannot have.
    """
    if algo not in SETTINGS:
        raise InputError(f"unknown algorithm {algo!r}; {did_you_mean(algo, SETTINGS)}")
    kind = SETTINGS[algo]
    for name in given:
        if name not in kind.__struct_fields__:
            raise InputError(f"{algo} has no setting {name!r}; {did_you_mean(name, kind.__struct_fields__)}")
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{algo}: {error}") from error
