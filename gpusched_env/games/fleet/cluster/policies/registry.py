"""The policies by name."""

from __future__ import annotations

import enum
from typing import Final

from gpusched_env.errors import InputError, did_you_mean


class Policy(enum.IntEnum):
    """A policy, as compiled functions know it."""

    RANDOM = 0
    DOT_PRODUCT = enum.auto()
    CLUSTERING = enum.auto()
    PACKING = enum.auto()
    BEST_FIT = enum.auto()
    FGD = enum.auto()


POLICIES: Final = {
    "random": Policy.RANDOM,
    "dot-product": Policy.DOT_PRODUCT,
    "clustering": Policy.CLUSTERING,
    "packing": Policy.PACKING,
    "best-fit": Policy.BEST_FIT,
    "fgd": Policy.FGD,
}


def policy_named(name: str) -> Policy:
    """The policy of a name.

    Raises:
        InputError: there is none.
    """
    if name not in POLICIES:
        raise InputError(f"no policy is called {name!r}; {did_you_mean(name, POLICIES)}")
    return POLICIES[name]
