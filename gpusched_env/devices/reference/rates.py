"""How fast resident blocks progress: the laws of :mod:`gpusched_env.hardware.contention` applied to all SMs.

The order of sums is part of the rules, because the last bits of a sum hang on it: on an SM over cohorts in order of
age, over SMs by kinds of equal traffic in order of demand and weight, each times its number.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gpusched_env.devices.reference.blocks import Sm
from gpusched_env.hardware.contention import (
    NO_TRAFFIC,
    NO_WARPS,
    block_rate,
    share_bandwidth,
    share_slots,
    slot_stretch,
    throttle,
    warps_on,
    with_traffic,
    with_warps,
)


class Rates:
    """Sets the rates of all blocks of a context."""

    def __init__(self, sms: list[Sm], physics: Any) -> None:
        """``physics``: the fields of :data:`~gpusched_env.hardware.records.GPU_DTYPE`."""
        self._sms = sms
        self._physics = physics
        self._times_us: list[list[float]] = [[] for _ in sms]
        """By SM, durations of its cohorts before memory throttling."""
        self._asked = [NO_TRAFFIC for _ in sms]
        """By SM, what it asks of DRAM at that pace."""
        self.traffic = 0.0
        """DRAM traffic, bytes/us."""
        self.bandwidth = physics.dram_bytes_per_us
        """That there is for all of it; cores of the CPU may take some."""

    def update(self, now: int) -> None:
        """New rates, where something has changed."""
        for sm in self._sms:
            for block in sm.blocks:
                if block.held:
                    block.find_limit()
                    sm.changed |= not block.held
            if sm.changed:
                self._share_slots(sm)
        level = self._share_bandwidth()
        for sm in self._sms:
            throttled = throttle(*self._asked[sm.rank], level)
            for cohort, time_us in zip(sm.cohorts(), self._times_us[sm.rank], strict=True):
                rate = block_rate(time_us, cohort[0].grid.dram_bytes, throttled)
                for block in cohort:
                    block.change_rate(rate if block.progresses else 0.0, now)
            sm.changed = False

    def _share_slots(self, sm: Sm) -> None:
        """Durations of an SM's cohorts that share its issue slots, and its traffic at that pace."""
        physics = self._physics
        cohorts = [
            (cohort[0].grid, len(cohort), warps_on(len(cohort), cohort[0].grid.needs.warps, physics.sub_partitions))
            for cohort in sm.cohorts()
            if cohort[0].progresses
        ]
        running = NO_WARPS
        for grid, _, warps in cohorts:
            running = with_warps(running, warps, grid.needs.rho, grid.log_idle)
        sharing = share_slots(running, physics.issue, physics.oldest_first, physics.light_wait)
        older, asked = NO_WARPS, NO_TRAFFIC
        running_us = []
        for grid, count, warps in cohorts:
            rho, wait = grid.needs.rho, grid.needs.wait
            time_us = grid.latency_us * slot_stretch(sharing, older, warps, rho, wait, grid.log_idle)
            running_us.append(time_us)
            older = with_warps(older, warps, rho, grid.log_idle)
            asked = with_traffic(asked, count, warps, grid.dram_bytes, time_us)
        self._asked[sm.rank] = asked
        durations = iter(running_us)
        self._times_us[sm.rank] = [
            next(durations) if cohort[0].progresses else cohort[0].grid.latency_us for cohort in sm.cohorts()
        ]

    def _share_bandwidth(self) -> float:
        """The fair level of DRAM traffic for a weight of 1 (bytes/us; 0: nobody is held up); sets the traffic."""
        asking = Counter(asked for asked in self._asked if asked.demand > 0.0)
        kinds = sorted(asking)
        self.traffic, level = share_bandwidth(
            [kind.demand for kind in kinds],
            [kind.loading for kind in kinds],
            [float(asking[kind]) for kind in kinds],
            len(kinds),
            self.bandwidth,
            self._physics.dram_norm,
        )
        return level
