"""Splits: the scenarios to train on, and those to judge by, each by its name, frozen before anything was trained.

Names are ``draws-17``: the split, and a number. Drawing it again gives the same scenario; of the first
:data:`FROZEN` numbers a hash is kept, so that no change of the drawing, or of the physics that its rates follow from,
goes unnoticed.
"""

from __future__ import annotations

import functools
import hashlib
import zlib
from importlib import resources
from typing import Any, Final

import msgspec

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.drawn.problems import gpus, networks
from gpusched_env.games.drawn.problems.distribution import Distribution
from gpusched_env.games.drawn.problems.drawing import Drawn, draw

FROZEN: Final = 200
"""Scenarios of a split that are judged by; others may be drawn to train on."""
TRAIN: Final = "train"
TIERS: Final = {
    "tier-1": Distribution(tenants=(2, 2), varied=False, engines=False, arrivals=("poisson",), knowledge=("right",)),
    "tier-2": Distribution(tenants=(2, 4), varied=False, engines=False, knowledge=("right",)),
    "tier-3": Distribution(tenants=(2, 6), engines=False, knowledge=("right", "scattered")),
}
"""Easier ones to begin with: two tenants with right profiles; up to four, and all arrivals; up to six, varied GPUs and
scattered profiles. The fourth tier is ``train`` itself."""
SPLITS: Final = {
    TRAIN: Distribution(),
    "draws": Distribution(),
    "networks": Distribution(networks=networks.UNSEEN, engines=False),
    "gpu": Distribution(gpus=gpus.UNSEEN),
    "loads": Distribution(loads=((0.2, 0.4), (1.4, 2.0)), arrivals=("periodic", "recorded")),
    "combinations": Distribution(unusual=True),
    **{f"{TRAIN}-{tier}": of for tier, of in TIERS.items()},
    **TIERS,
}
"""What each split is drawn from. ``train`` is to be trained, tuned and fitted on; ``draws`` are other scenarios of the
same distribution, and each of the next four departs from it in one way. A tier has scenarios to train on, too."""
WHAT: Final = {
    "train": "to train on",
    "draws": "unseen draws of the same",
    "networks": "unseen networks",
    "gpu": "unseen generations of GPUs",
    "loads": "unseen loads and arrivals",
    "combinations": "unseen combinations",
    "tier-1": "two tenants, right profiles",
    "tier-2": "up to four tenants, all arrivals",
    "tier-3": "up to six tenants, varied GPUs, scattered profiles",
}
HASHES: Final = "splits.json"
JUDGED: Final = tuple(WHAT)
"""Splits whose first scenarios are frozen: all but those to train on for tiers."""


def names_of(split: str, count: int = FROZEN) -> list[str]:
    """Names of a split's first scenarios.

    Raises:
        InputError: no such split.
    """
    check_split(split)
    return [f"{split}-{number}" for number in range(count)]


def check_split(split: str) -> None:
    """Raises ``InputError`` if there is no split of this name."""
    if split not in SPLITS:
        raise InputError(f"no split of drawn scenarios is {split!r}; {did_you_mean(split, SPLITS)}")


def drawn(name: str) -> Drawn:
    """A scenario by its name.

    Raises:
        InputError: there is none, or it is no longer the one that was frozen.
    """
    split, _, number = name.rpartition("-")
    if split not in SPLITS or not number.isdecimal() or str(int(number)) != number:
        raise InputError(f"no drawn scenario is {name!r}: expected draws-17, or another of {', '.join(SPLITS)}")
    found = draw(name, (zlib.crc32(split.encode()), int(number)), SPLITS[split])
    kept = frozen().get(split, [])
    if int(number) < len(kept) and hash_of(found) != kept[int(number)].hash:
        raise InputError(
            f"{name} is no longer the scenario that was frozen: its drawing, a network, a GPU or the physics of "
            "kernels that run alone has changed"
        )
    return found


def hash_of(found: Drawn) -> str:
    """Eight hexadecimal digits of what a scenario is: its file, and its GPU."""
    parts: list[Any] = [msgspec.to_builtins(part) for part in (found.scenario, found.gpu)]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:8]


class FrozenScenario(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a scenario that was frozen."""

    hash: str
    floor: float
    """:attr:`Drawn.floor`."""


@functools.cache
def frozen() -> dict[str, list[FrozenScenario]]:
    """What is kept of the first scenarios of each split, in order."""
    file = resources.files("gpusched_env.games.drawn.problems") / HASHES
    return msgspec.json.decode(file.read_bytes(), type=dict[str, list[FrozenScenario]])
