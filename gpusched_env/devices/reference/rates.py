"""How fast resident blocks progress: the laws of :mod:`gpusched_env.hardware.contention` applied to all SMs.

The order of sums is part of the rules, because the last bits of a sum hang on it: on an SM over cohorts in order of
age, over SMs by kinds of equal traffic in order of demand and weight, each times its number.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from gpusched_env.devices.reference.blocks import Sm
from gpusched_env.hardware.contention import (
    NEGLIGIBLE,
    block_stretch,
    fair_level,
    granted,
    mean_stretch,
    served_traffic,
    tilt,
)


class Rates:
    """Sets the rates of all blocks of a context."""

    def __init__(self, sms: list[Sm], physics: Any) -> None:
        """``physics``: the fields of :data:`~gpusched_env.hardware.records.GPU_DTYPE`."""
        self._sms = sms
        self._physics = physics
        self._times_us: list[list[float]] = [[] for _ in sms]
        """By SM, durations of its cohorts before memory throttling."""
        self.traffic = 0.0
        """DRAM traffic, bytes/us."""

    def update(self, now: int) -> None:
        """New rates, where something has changed."""
        for sm in self._sms:
            if sm.changed or any(block.need and block.rate == 0.0 and block.progresses for block in sm.blocks):
                self._times_us[sm.rank] = self._share_slots(sm)
        level = self._share_bandwidth()
        for sm in self._sms:
            slow = 1.0
            if level > 0.0 and sm.demand > 0.0:
                slow = float(granted(sm.demand, level * sm.loading)) / sm.demand
            for cohort, time_us in zip(sm.cohorts(), self._times_us[sm.rank], strict=True):
                rate = (slow if cohort[0].grid.dram_bytes > 0.0 else 1.0) / time_us
                for block in cohort:
                    block.change_rate(rate if block.progresses else 0.0, now)
            sm.changed = False

    def _share_slots(self, sm: Sm) -> list[float]:
        """Durations of an SM's cohorts that share its issue slots; sets the SM's traffic at that pace."""
        physics = self._physics
        cohorts = [(cohort[0].grid, len(cohort), cohort[0].progresses) for cohort in sm.cohorts()]
        demand = squared = log_idle = 0.0
        for grid, count, progresses in cohorts:
            if progresses:
                warps, rho = count * grid.needs.warps / physics.sub_partitions, grid.needs.rho
                demand += warps * rho
                squared += warps * rho * rho
                log_idle += warps * grid.log_idle
        mean = mean_stretch(demand, log_idle)
        leaning = tilt(demand) * physics.oldest_first
        before = log_idle_older = 0.0
        sm.demand = sm.loading = 0.0
        times_us = []
        for grid, count, progresses in cohorts:
            time_us = grid.latency_us
            warps, rho = count * grid.needs.warps / physics.sub_partitions, grid.needs.rho
            if physics.issue > 0.0 and demand > 0.0 and progresses:
                own, log_idle_own = warps * rho, warps * grid.log_idle
                time_us *= block_stretch(
                    rho,
                    grid.needs.wait if physics.light_wait > 0.0 else 0.0,
                    squared / demand,
                    mean,
                    leaning,
                    (before + 0.5 * own) / demand,
                    log_idle_older,
                    log_idle - log_idle_older - log_idle_own,
                )
                before += own
                log_idle_older += log_idle_own
            times_us.append(time_us)
            if progresses and grid.dram_bytes > 0.0:
                sm.demand += count * grid.dram_bytes / time_us
                sm.loading += warps
        return times_us

    def _share_bandwidth(self) -> float:
        """The fair level of DRAM traffic for a weight of 1 (bytes/us; 0: nobody is held up); sets the traffic."""
        kinds = Counter((sm.demand, sm.loading) for sm in self._sms if sm.demand > 0.0)
        total = 0.0
        for demand, loading in sorted(kinds):
            total += demand * kinds[demand, loading]
        self.traffic = total
        if total <= 0.0:
            return 0.0
        served = float(served_traffic(total, self._physics.dram_bytes_per_us, self._physics.dram_norm))
        if served >= NEGLIGIBLE * total:
            return 0.0
        self.traffic = served
        rows = np.array([(*kind, kinds[kind]) for kind in sorted(kinds)], np.float64)
        return float(fair_level(rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy(), len(rows), served))
