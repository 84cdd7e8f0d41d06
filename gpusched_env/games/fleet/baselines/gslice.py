"""GSLICE (Dhakal, Kulkarni, Ramakrishnan, SoCC 2020), as GPUColo (ICDCS 2024) extends it to training.

Jobs go to the first GPU with room, as with GPUColo; there, MPS percentages of all add up to 100 %, change every 25 s,
and each change restarts a job (:mod:`gpusched_env.games.fleet.co_location`). How the paper's GSLICE admits jobs is not
given.
"""

from __future__ import annotations

from gpusched_env.games.fleet.baselines.packing import Packing


class GsliceFleet(Packing):
    """GSLICE: first fit; shares of the SMs that add up to 100 %, inference first."""

    control = "gslice"
