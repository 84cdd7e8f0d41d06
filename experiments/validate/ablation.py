"""What each mechanism of the simulator contributes: the specification and replay with one switched off."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from gpusched_env.experiments.validate.replay import Mechanisms
from gpusched_env.experiments.validate.synthetic import with_mechanisms
from gpusched_env.hardware.specs import GpuSpec

ALL_ON = "everything on"
EVERY = {"sequences": 5}
"""Of these sets an ablation runs only every n-th scenario."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A simulator with a mechanism switched off."""

    gpu: GpuSpec
    mechanisms: Mechanisms = field(default_factory=Mechanisms)


def variants(gpu: GpuSpec) -> dict[str, Variant]:
    """By the name of what is off; the complete simulator is not among them."""
    fixed = msgspec.structs.replace(gpu, limits=msgspec.structs.replace(gpu.limits, carveouts=()))
    level = with_mechanisms(gpu, oldest_first=False)
    return {
        "sharing of issue slots": Variant(with_mechanisms(gpu, issue=False)),
        "older blocks first": Variant(level),
        "light warps wait longer": Variant(with_mechanisms(gpu, light_wait=False)),
        "limit of DRAM bandwidth": Variant(with_mechanisms(gpu, dram=False)),
        "shared-memory carve-out": Variant(fixed),
        "spread of durations": Variant(gpu, Mechanisms(spread=False)),
        "older first and spread": Variant(level, Mechanisms(spread=False)),
        "scale to solo duration": Variant(gpu, Mechanisms(calibrate=False)),
        "timer kernel on an SM": Variant(gpu, Mechanisms(timer=False)),
    }
