"""DTBL: Wang, Rubin, Sidelnik, Yalamanchili, *Dynamic Thread Block Launch* (ISCA 2015), as SPAWN compares with it."""

from __future__ import annotations

from gpusched_env.games.child_launches.baselines.threshold import Threshold
from gpusched_env.games.child_launches.hardware.warp_machine import FREE


class Dtbl(Threshold):
    """DTBL: blocks of children join a running kernel: no launch, no hardware queue; what an SM holds stays a limit."""

    hardware = True
    launches = FREE
