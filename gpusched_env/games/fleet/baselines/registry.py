"""Dispatchers by name."""

from __future__ import annotations

from typing import Final

from gpusched_env.baselines.registered import Registered
from gpusched_env.games.fleet.baselines.gpucolo import FirstFit, GpuColoFleet
from gpusched_env.games.fleet.baselines.gslice import GsliceFleet
from gpusched_env.games.fleet.baselines.packing import NoColocation, Separate
from gpusched_env.games.fleet.baselines.predicted_fit import PredictedFit
from gpusched_env.games.fleet.device import FleetDispatcher

DISPATCHERS: Final = Registered[FleetDispatcher](
    "dispatcher",
    {
        "no-colocation": NoColocation,
        "separate": Separate,
        "first-fit": FirstFit,
        "gslice": GsliceFleet,
        "gpucolo": GpuColoFleet,
        "predicted-fit": PredictedFit,
    },
)
make_dispatcher: Final = DISPATCHERS.make
