"""Dispatchers by name."""

from __future__ import annotations

from typing import Final

from gpusched_env.baselines.registered import Registered
from gpusched_env.games.fleet.baselines.gpucolo import FirstFit, GpuColo
from gpusched_env.games.fleet.baselines.gslice import Gslice
from gpusched_env.games.fleet.baselines.no_colocation import NoColocation
from gpusched_env.games.fleet.baselines.predicted_fit import PredictedFit
from gpusched_env.games.fleet.baselines.separate import Separate
from gpusched_env.games.fleet.dispatcher import Dispatcher

DISPATCHERS: Final = Registered[Dispatcher](
    "dispatcher",
    {
        "no-colocation": NoColocation,
        "separate": Separate,
        "first-fit": FirstFit,
        "gslice": Gslice,
        "gpucolo": GpuColo,
        "predicted-fit": PredictedFit,
    },
)
make_dispatcher: Final = DISPATCHERS.make
