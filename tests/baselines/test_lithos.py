"""LithOS on instances worked out by hand: four SMs of one block are two TPCs, no latencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.baselines.lithos import LithOS, fewest_sms, longest_run
from gpusched_env.errors import InputError
from tests.baselines.instances import launches, spans, started
from tests.devices.problems import K, problem


def test_each_owner_keeps_to_its_quota_while_the_other_has_work(tmp_path: Path) -> None:
    """Four blocks of 20 us take two rounds on two SMs."""
    owner = {"ops": [K(4, 20.0), K(4, 20.0)]}
    built = problem(tmp_path, owner, {"ops": [K(2, 80.0)]})
    assert spans(LithOS(), built) == [(0, 0.0, 40.0, 0), (0, 40.0, 80.0, 0), (1, 0.0, 80.0, 0)]


def test_an_owner_without_work_lends_its_tpcs(tmp_path: Path) -> None:
    """The first owner has all SMs. When the other one comes its TPC is busy, until an atom ends."""
    built = problem(tmp_path, {"ops": [K(12, 20.0)]}, {"ops": [K(2, 15.0)], "arrivals": started(10.0)})
    # One atom: its blocks are less urgent than those of the owner, but follow them at once on the same SMs.
    assert spans(LithOS(), built) == [(0, 0.0, 75.0, 0), (1, 20.0, 35.0, 0)]
    # In atoms of 20 us: the second, while the other owner works, is on two SMs, the third on all four again.
    assert spans(LithOS(atom_us=20.0), built) == [(0, 0.0, 80.0, 3), (1, 20.0, 35.0, 0)]


def test_best_effort_kernels_get_what_an_owner_s_kernel_leaves(tmp_path: Path) -> None:
    """A kernel of two blocks leaves one TPC, on which four blocks take two rounds."""
    built = problem(tmp_path, {"ops": [K(2, 100.0)]}, {"ops": [K(4, 20.0)], "priority": 1})
    assert spans(LithOS(), built) == [(0, 0.0, 100.0, 0), (1, 0.0, 40.0, 0)]
    # What would need both TPCs waits for the owner's next kernel to have had its turn.
    built = problem(tmp_path, {"ops": [K(2, 100.0), K(4, 10.0)]}, {"ops": [K(4, 20.0)], "priority": 1})
    assert spans(LithOS(outstanding_us=0.0), built) == [(0, 0.0, 100.0, 0), (0, 100.0, 110.0, 0), (1, 110.0, 130.0, 0)]


def test_a_launch_carries_its_tpcs_at_no_cost(tmp_path: Path) -> None:
    """Where others pay 20 us of host time for launches on other SMs than their own."""
    gpu = {"timing": {"partition_change_us": 20.0}}
    built = problem(tmp_path, {"ops": [K(2, 100.0)]}, {"ops": [K(4, 20.0)], "priority": 1}, gpu=gpu)
    assert spans(LithOS(), built) == [(0, 0.0, 100.0, 0), (1, 0.0, 40.0, 0)]


def test_a_long_kernel_runs_in_atoms_and_leaves_when_one_ends(tmp_path: Path) -> None:
    """Rounds of 20 us: an atom of 60 is drained in its third. The request is over when the next atom may begin."""
    background = {"ops": [K(24, 20.0)], "priority": 1}
    built = problem(tmp_path, background, {"ops": [K(4, 30.0)], "arrivals": started(50.0)})
    assert spans(LithOS(atom_us=60.0), built) == [(0, 0.0, 150.0, 1), (1, 60.0, 90.0, 0)]


def test_little_work_of_a_tenant_is_in_flight(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 40.0)] * 5})
    assert launches(LithOS(), built, 0) == [0.0, 0.0, 0.0, 20.0, 60.0]
    assert launches(LithOS(outstanding_us=0.0), built, 0) == [0.0, 40.0, 80.0, 120.0, 160.0]


def test_a_slip_gives_a_kernel_fewer_tpcs_and_the_rest_to_others(tmp_path: Path) -> None:
    """Four blocks on one TPC take two rounds of 20 us instead of one; the other TPC is a best-effort kernel's."""
    tenants = {"ops": [K(4, 20.0)]}, {"ops": [K(2, 40.0)], "priority": 1}
    assert spans(LithOS(), problem(tmp_path, *tenants)) == [(0, 0.0, 20.0, 0), (1, 20.0, 60.0, 0)]
    assert spans(LithOS(slip=1.9), problem(tmp_path, *tenants)) == [(0, 0.0, 20.0, 0), (1, 20.0, 60.0, 0)]
    assert spans(LithOS(slip=2.0), problem(tmp_path, *tenants)) == [(0, 0.0, 40.0, 0), (1, 0.0, 40.0, 0)]


def test_a_last_round_that_is_not_full_is_saved_without_a_slip(tmp_path: Path) -> None:
    """Eight blocks take two rounds on six SMs, and on four: two of three TPCs. Otherwise they spread over all."""
    tenants = {"ops": [K(8, 40.0)]}, {"ops": [K(2, 30.0)], "priority": 1}
    gpu = {"sms": 6}
    assert spans(LithOS(), problem(tmp_path, *tenants, gpu=gpu)) == [(0, 0.0, 80.0, 0), (1, 40.0, 70.0, 0)]
    assert spans(LithOS(slip=1.0), problem(tmp_path, *tenants, gpu=gpu)) == [(0, 0.0, 80.0, 0), (1, 0.0, 30.0, 0)]


@given(st.integers(1, 3000), st.integers(1, 16), st.integers(1, 132), st.floats(1.0, 4.0))
def test_no_fewer_sms_keep_to_the_slip(blocks: int, per_sm: int, sms: int, slip: float) -> None:
    def rounds(on: int) -> int:
        return -(-blocks // (on * per_sm))

    right = [on for on in range(1, sms + 1) if rounds(on) <= slip * rounds(sms) + 1e-9]
    assert fewest_sms(blocks, per_sm, sms, slip) == right[0]


def test_the_longest_run_of_a_ring() -> None:
    assert longest_run([True, False, True, True]) == range(2, 5)
    assert longest_run([True, True, False, True, False]) == range(2)
    assert longest_run([True] * 3) == range(3)
    assert not longest_run([False] * 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quota": "half"}, "quota is 'half'"),
        ({"atom_us": 0.0}, "atom_us 0.0"),
        ({"outstanding_us": -1.0}, "-1.0"),
        ({"slip": 0.9}, "slip is 0.9"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"lithos: .*{message}"):
        LithOS(**options)
