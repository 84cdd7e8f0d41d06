"""What controllers of a GPU settle at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.games.fleet.co_location import (
    GPUCOLO,
    GSLICE,
    LONGEST_SLEEP_US,
    SHARED,
    WORST,
    RateModel,
    capped_speed,
    settle_controller,
    share_of_speed,
)
from gpusched_env.games.fleet.problem import FleetProblem, FleetState, GpuKind, new_state
from gpusched_env.games.fleet.windows import place_job
from gpusched_env.games.fleet.workload.jobs import JOB

S = 1_000_000
RATES = RateModel(
    inference_by_inference=1.0, inference_by_training=1.0, exponent=1.0, training_by_others=1.0,
    cap_knee=1.0, cap_exponent=1.0, apart=0.0, noise=0.0,
)  # fmt: skip


def on_one_gpu(inference: Sequence[tuple[float, float]], training: Sequence[float]) -> FleetState:
    """Inference by utilisation and SLO over a batch alone, training by utilisation, on one GPU."""
    asked = [(0, 0, 1e9, used, 1.0, 50_000.0, 50_000.0 * slo) for used, slo in inference]
    trained = [(0, 1, 1e9, used, 1.0, 500_000.0, 0.0) for used in training]
    jobs = np.array([*asked, *trained], JOB)
    state = new_state(FleetProblem("one", jobs, (GpuKind("V100", 1, 32.0),), RATES, horizon_us=S))
    for job in range(len(jobs)):
        place_job(state, job, 0)
    return state


def test_the_share_falls_where_sleep_is_not_enough() -> None:
    """SLOs of 1.1: training may be active for 0.1 of the time, and with 1 s of sleep is for 0.9 / 3 = 0.3 of it."""
    state = on_one_gpu([(0.1, 1.1)], [0.9])
    settle_controller(state, 0, GPUCOLO, RATES, 10 * S, 60 * S)
    assert (state.sleep_us[0], state.share[0]) == (LONGEST_SLEEP_US, pytest.approx(1.0 / 3.0))
    assert state.ready_us.tolist() == [0, 10 * S], "training restarts with another share, inference does not"
    assert state.pace[0] == pytest.approx(1.0)


def test_a_mean_leaves_the_worst_off_late_and_the_worst_does_not() -> None:
    """The job of 0.1 has 0.5 of inference beside it, the one of 0.5 has 0.1; both may have 0.6 of others."""
    state = on_one_gpu([(0.1, 1.6), (0.5, 1.6)], [0.4])
    settle_controller(state, 0, GPUCOLO, RATES, 10 * S, 60 * S)
    assert (state.pace[:2] * 1.6).tolist() == pytest.approx([1.8, 1.4])
    assert state.pace[:2].mean() == pytest.approx(1.0)
    settle_controller(state, 0, WORST, RATES, 10 * S, 60 * S)
    assert (state.pace[:2] * 1.6).tolist() == pytest.approx([1.6, 1.2])
    state.served_us[:2], state.ratio_us[:2] = 100 * S, (111 * S, 90 * S)
    settle_controller(state, 0, GPUCOLO, RATES, 10 * S, 60 * S)
    assert state.sleep_us[0] == LONGEST_SLEEP_US, "a late job has half of its SLO as the reference"


def test_gslice_divides_all_sms_and_restarts() -> None:
    """Speed goes with the share: SLOs of 2 and 4 need a half and a quarter, a quarter is left."""
    state = on_one_gpu([(0.1, 2.0), (0.1, 4.0)], [0.5])
    settle_controller(state, 0, GSLICE, RATES, 10 * S, 60 * S)
    assert state.share[0] == pytest.approx(0.25)
    assert state.pace.tolist() == pytest.approx([1.0, 1.0, 1.0 / (0.5 + 0.5 / 0.25)])
    assert state.lost.tolist() == [0.0, 0.0, 0.0], "without noise nothing restarts"
    settle_controller(state, 0, GSLICE, RATES._replace(noise=0.01), 10 * S, 60 * S)
    missed = 0.31731  # of a normal distribution beyond one standard deviation
    assert state.lost.tolist() == pytest.approx(
        [0.4 * missed, 0.4 * missed, 0.4 * (1.0 - (1.0 - missed) ** 2)], rel=1e-3
    )


def test_gslice_slows_all_inference_alike_where_it_needs_more_than_there_is() -> None:
    state = on_one_gpu([(0.1, 1.25), (0.1, 1.25)], [0.5])
    settle_controller(state, 0, GSLICE, RATES, 10 * S, 60 * S)
    assert state.share[0] == pytest.approx(0.01), "training keeps the least share"
    assert state.pace[:2].tolist() == pytest.approx([1.6 / 0.99] * 2)


mixes = st.tuples(
    st.lists(st.tuples(st.floats(0.02, 0.4), st.floats(1.1, 3.0)), min_size=1, max_size=4),
    st.lists(st.floats(0.05, 0.9), min_size=1, max_size=4),
)


@settings(max_examples=200, deadline=None)
@given(mixes)
def test_gpucolo_is_at_its_slo_unless_there_is_nothing_to_do(
    mix: tuple[list[tuple[float, float]], list[float]],
) -> None:
    """Below it only with no sleep and all SMs; above it only if inference alone is, or training is at its least."""
    state = on_one_gpu(*mix)
    asked = slice(0, len(mix[0]))
    settle_controller(state, 0, SHARED, RATES, 0, S)
    free = state.pace.copy()
    settle_controller(state, 0, GPUCOLO, RATES, 0, S)
    error = state.pace[asked].mean() - 1.0
    assert (state.pace[asked] <= free[asked] + 1e-9).all()
    if error < -1e-6:
        assert state.sleep_us[0] == 0.0 or state.share[0] < 1.0
    if error > 0.02 + 1e-6:
        assert state.sleep_us[0] == LONGEST_SLEEP_US
        assert state.share[0] == pytest.approx(0.01)


@given(st.floats(0.01, 1.0), st.floats(0.3, 1.0), st.floats(0.3, 1.5))
def test_a_share_is_that_of_its_speed(share: float, knee: float, exponent: float) -> None:
    speed = capped_speed(share, knee, exponent)
    assert share_of_speed(speed, knee, exponent) == pytest.approx(min(share, knee))
