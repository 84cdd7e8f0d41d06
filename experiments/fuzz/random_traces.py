"""Random traces of requests, whose times often coincide."""

from __future__ import annotations

import itertools

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.workload.arrivals import Trace


def random_trace(dice: Dice, gap_us: float) -> Trace:
    """Up to thirty recorded times, some at once, some ``gap_us`` apart."""
    gaps_us = [dice.pick((0.0, gap_us, gap_us * dice.number(0.1, 3.0))) for _ in range(dice.integer(1, 30))]
    times_us = tuple(itertools.accumulate(gaps_us))
    return Trace(
        times_us=times_us,
        from_us=0.0 if dice.chance(0.7) else times_us[-1] * 0.5,
        to_us=times_us[-1] + gap_us,
        speed=1.0 if dice.chance(0.5) else dice.number(0.5, 2.0),
        window=dice.pick(("first", "drawn")),
        at_end=dice.pick(("ends", "repeats")),
    )
