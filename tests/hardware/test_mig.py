"""Slices of a GPU (MIG): shares by the tables, and a specification that runs as any other."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import gpusched_env
from gpusched_env.errors import InputError
from gpusched_env.hardware.mig import PROFILES, mig_slice
from gpusched_env.hardware.specs import load_gpu
from tests.refusals import refused


def test_a_slice_has_its_shares() -> None:
    whole = load_gpu("h100-sxm")
    half = mig_slice(whole, "3g.40gb")
    assert (half.name, half.sms) == ("h100-sxm-3g.40gb", 60)
    assert half.dram_bytes_per_us == whole.dram_bytes_per_us / 2
    assert (half.memory_bytes, half.l2_bytes) == (whole.memory_bytes // 2, whole.l2_bytes // 2)
    least = mig_slice(whole, "1g.20gb")
    assert (least.sms, least.memory_bytes, least.l2_bytes) == (26, whole.memory_bytes // 4, whole.l2_bytes // 8)
    assert (half.copies.engines, least.copies.engines) == (2, 1)


@pytest.mark.parametrize("gpu", PROFILES)
def test_slices_fit_into_their_gpu(gpu: str) -> None:
    whole, (first, *_, last) = load_gpu(gpu), PROFILES[gpu]
    assert 7 * mig_slice(whole, first).sms <= whole.sms
    assert mig_slice(whole, last).memory_bytes == whole.memory_bytes
    for profile in PROFILES[gpu]:
        gigabytes = float(profile.partition(".")[2].removesuffix("gb"))
        assert mig_slice(whole, profile).memory_bytes == pytest.approx(gigabytes * 1e9, rel=0.03)


def test_a_slice_is_a_specification(tmp_path: Path) -> None:
    path = tmp_path / "slice.yaml"
    path.write_bytes(msgspec.yaml.encode(mig_slice(load_gpu("h100-sxm"), "2g.20gb")))
    assert load_gpu(path) == mig_slice(load_gpu("h100-sxm"), "2g.20gb")
    given = {"gpu": str(path), "horizon_us": 2_000}
    costs = [
        gpusched_env.run_episode("InferenceBesideTraining", "pass-through", device=device, **given).metrics.cost
        for device in ("reference", "compiled")
    ]
    assert costs[0] == costs[1]


def test_what_has_no_slices_is_refused() -> None:
    with refused(InputError, "t4: no slices", "h100-sxm"):
        mig_slice(load_gpu("t4"), "1g.5gb")
    with refused(InputError, "unknown profile '3g.20gb' of h100-sxm", "did you mean"):
        mig_slice(load_gpu("h100-sxm"), "3g.20gb")
