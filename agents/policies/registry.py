"""Policies by name, and the algorithms that train them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.agents.policies.sizes import (
    AnyRule,
    KnobSizes,
    PairSizes,
    ReleaseSizes,
    RuleSizes,
    ServeSizes,
    SlotSizes,
)
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from stable_baselines3.common.policies import BasePolicy

MLP = {
    "maskable-ppo": "MultiInputPolicy",
    "ppo": "MultiInputPolicy",
    "a2c": "MultiInputPolicy",
    "dqn": "MultiInputPolicy",
    "recurrent-ppo": "MultiInputLstmPolicy",
}
"""Names that the algorithms have for a policy on all columns, flattened."""
SLOTS = {"maskable-ppo": "MaskableSlotPolicy", "ppo": "SlotPolicy", "a2c": "SlotPolicy", "dqn": "SlotDqnPolicy"}
"""Classes of :mod:`gpusched_env.agents.policies.slots`."""
SEARCH = "cma-es"
ROLLOUTS = "rollouts"
"""Algorithms for rules; not of stable-baselines3."""
DISTILLATION = "distillation"
"""The algorithm by which a slot network learns what a search says; not of stable-baselines3."""
OPENS_AS = {DISTILLATION: "maskable-ppo"}
"""The algorithm of stable-baselines3 whose models another algorithm makes, by the name of the latter."""
RULES: dict[str, type[AnyRule]] = {
    "rule": RuleSizes,
    "release": ReleaseSizes,
    "serve": ServeSizes,
    "pairs": PairSizes,
    "knobs": KnobSizes,
}
"""Rules by name: for tenants that share a GPU (:mod:`gpusched_env.agents.policies.rule`), for launches that pass a
window (:mod:`gpusched_env.agents.policies.release`), for decisions that stand for an interval
(:mod:`gpusched_env.agents.policies.serve`), for kernels that need each other's tiles
(:mod:`gpusched_env.agents.policies.pairs`), and for pauses and SMs of training beside services
(:mod:`gpusched_env.agents.policies.knobs`)."""

WIDTHS = (64, 64)
"""Widths of the hidden layers of ``mlp``."""


def algorithms() -> list[str]:
    """Algorithms that policies are offered for."""
    return [*MLP, SEARCH, ROLLOUTS, DISTILLATION]


def policy_names(algo: str) -> list[str]:
    """Policies offered for an algorithm, the usual one first.

    Raises:
        InputError: no such algorithm.
    """
    if algo == SEARCH:
        return list(RULES)
    if algo == ROLLOUTS:
        return ["serve"]
    if algo == DISTILLATION:
        return ["slots"]
    if algo not in MLP:
        raise InputError(f"unknown algorithm {algo!r}; {did_you_mean(algo, algorithms())}")
    return ["mlp", "slots"] if algo in SLOTS else ["mlp"]


def policy_of(algo: str, name: str, layout: ActionLayout) -> tuple[type[BasePolicy] | str, dict[str, Any]]:
    """A policy as the constructor of an algorithm of stable-baselines3 takes it.

    ``mlp``: two hidden layers on all columns in a row; its slots cannot be more or fewer later. ``slots``: one
    token a pending slot (:mod:`gpusched_env.agents.policies.slots`), for any number of tenants.

    Args:
        algo: one of :data:`MLP`.
        name: one of :func:`policy_names`.
        layout: the environment's actions.

    Returns:
        policy and ``policy_kwargs``, plain data that a saved model can hold.

    Raises:
        InputError: no such algorithm, or no such policy for it.
    """
    known = policy_names(algo)
    if name not in known:
        raise InputError(f"algorithm {algo} has no policy {name!r}; it has {' and '.join(known)}")
    if name == "mlp":
        return MLP[algo], {"net_arch": list(WIDTHS)}
    from gpusched_env.agents.policies import slots

    return getattr(slots, SLOTS[algo]), {"sizes": SlotSizes.of(layout).as_dict()}
