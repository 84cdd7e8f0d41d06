"""Arrivals of a drawn service at the rate that its load asks for."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from gpusched_env.workload.tenant import ArrivalProcess, Bursts, ClosedLoop, Periodic, Poisson, Regimes, Trace

Kind = Literal["poisson", "bursts", "regimes", "closed-loop", "periodic", "recorded"]
RECORDED: Final = (
    10, 16, 3, 9, 8, 15, 4, 6, 5, 11, 5, 8, 8, 11, 7, 6, 9, 8, 7, 6, 4, 5, 10, 12, 10, 16, 5, 12, 10, 14, 9, 4, 9, 9, 9
)  # fmt: skip
"""Requests in each step of 3 s of a chat service: the first 300 of Mooncake's conversation trace (R. Qin et al., FAST
2025, https://github.com/kvcache-ai/Mooncake, Apache-2.0), counted."""
STEP_US: Final = 3e6


def draw_arrivals(rng: np.random.Generator, kind: Kind, rate_per_s: float, alone_us: float) -> ArrivalProcess:
    """An arrival process of about ``rate_per_s`` requests a second.

    Args:
        rng: draws what else there is to a kind.
        kind: of arrivals.
        rate_per_s: mean rate (> 0). Clients of a closed loop reach it where they are served as if alone.
        alone_us: time of a job alone.
    """
    gap_us = 1e6 / rate_per_s
    match kind:
        case "poisson":
            return Poisson(rate_per_s=rounded(rate_per_s))
        case "bursts":
            size = rounded(rng.uniform(2.0, 8.0))
            return Bursts(rate_per_s=rounded(rate_per_s / size), mean_size=size)
        case "regimes":
            times, share = rng.uniform(2.0, 6.0), rng.uniform(0.2, 0.5)
            calm = rate_per_s / (1.0 - share + share * times)
            period_us = gap_us * rng.uniform(15.0, 40.0)
            return Regimes(
                rate_per_s=rounded(calm),
                busy_rate_per_s=rounded(calm * times),
                calm_us=rounded(period_us * (1.0 - share)),
                busy_us=rounded(period_us * share),
            )
        case "closed-loop":
            return ClosedLoop(think_us=rounded(max(0.0, gap_us - alone_us)))
        case "periodic":
            return Periodic(period_us=rounded(gap_us), start_us=rounded(gap_us * rng.random()))
        case "recorded":
            times_us = tuple(step * STEP_US for step, count in enumerate(RECORDED) for _ in range(count))
            return Trace(times_us=times_us, mean_rate_per_s=rounded(rate_per_s), window="drawn", at_end="repeats")


def rounded(figure: float) -> float:
    """Three digits, so that the last bits of a processor's arithmetic change no scenario."""
    return float(f"{figure:.3g}")
