"""The columns of an observation of ``gpusched/Fleet-v0``: a GPU that a job could go to, and what it would be there."""

from __future__ import annotations

from typing import Final

from gpusched_env.envs.features import FLAG, SHARE, Feature
from gpusched_env.envs.features import RATIO as SQUASHED

AGE: Final = "log minutes"
"""Unit of ages: ``log1p(minutes) / log1p(20160)``, 1 at the longest run time, two weeks."""
AGE_TOP: Final = 20_160.0
COLUMNS_NOTE: Final = """\
### Columns
Row `k` is candidate `k`; the row behind them is an empty GPU. All that is said of loads, memory and latencies is with
the job there. Latencies are predicted by the [rate model](fleet-rates.md). `log minutes`: log1p(minutes) /
log1p(20160), at most 1. Sources are fields of `gpusched_env.games.fleet.dispatcher.FleetView`.
"""


class FleetFeature(Feature):
    """A candidate GPU, with the job that is to be placed."""

    PRESENT = ("1 if the job can go there; otherwise the row is 0", FLAG, 0, 1, "load, claimed_gb, count")
    TRAINING = ("1: the job is training", FLAG, 0, 1, "jobs.training")
    UTILISATION = ("of the job", SHARE, 0, 1, "jobs.utilisation")
    EMPTY = ("1: nothing is there", FLAG, 0, 1, "count")
    LOAD = ("utilisations there", SHARE, 0, 1, "load")
    INFERENCE_LOAD = ("of these, those of inference", SHARE, 0, 1, "jobs.utilisation")
    CLAIMED = ("memory, of all", SHARE, 0, 1, "claimed_gb, size_gb")
    COUNT = ("jobs that are there, of 48", SHARE, 0, 1, "count")
    TRAININGS = ("of these, training, of 48", SHARE, 0, 1, "jobs.training")
    SLEEP = ("sleep of training after an iteration, of 1 s", SHARE, 0, 1, "sleep_us")
    RATIO = ("worst mean latency over SLO since the last report", SQUASHED, 0, 1, "ratio")
    LEAST = ("worst latency over SLO if training sleeps as much as it can", SQUASHED, 0, 1, "jobs, share")
    FULL = ("the same if it does not sleep", SQUASHED, 0, 1, "jobs, share")
    DISTURBS = ("1: no sleep of training holds every SLO there", FLAG, 0, 1, "jobs, share")
    OLDEST = ("time that the job there longest has been known", AGE, 0, 1, "jobs.arrival_us")
    YOUNGEST = ("the same of the newest job", AGE, 0, 1, "jobs.arrival_us")
