"""Whose turn it was: stretches of a time-sliced tenant in parts."""

from __future__ import annotations

from gpusched_env.hardware.clock import to_ps
from gpusched_env.scheduling.timeline import Timeline


def sliced() -> Timeline:
    """Tenant 0 until 100 us, tenant 1 from 110 to 200 us, then tenant 0 again from 210 us."""
    timeline = Timeline("kernels")
    for time_us, context in ((100.0, -1), (110.0, 1), (200.0, -1), (210.0, 0)):
        timeline.turns.add(to_ps(time_us), context)
    return timeline


def test_a_stretch_is_split_where_the_gpu_changes_hands() -> None:
    assert sliced().parts(0, 50.0, 250.0) == [(50.0, 100.0, True), (100.0, 210.0, False), (210.0, 250.0, True)]
    assert sliced().parts(1, 50.0, 250.0) == [(50.0, 110.0, False), (110.0, 200.0, True), (200.0, 250.0, False)]
    assert sliced().parts(1, 120.0, 150.0) == [(120.0, 150.0, True)]


def test_without_time_slicing_it_is_whole() -> None:
    assert Timeline("kernels").parts(1, 5.0, 7.0) == [(5.0, 7.0, True)]
