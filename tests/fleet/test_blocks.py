"""A fleet block by block: worked by hand, and each of its GPUs is a plain device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.fleet.device import Fleet, run_fleet
from gpusched_env.fleet.dispatcher import Wait
from tests.fleet.block_fleets import LOG, MS, RATIOS, Moving, blocks, worked_by_hand


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_two_gpus_three_jobs_a_sleep_and_a_move(tmp_path: Path, device: str) -> None:
    problem = worked_by_hand(tmp_path)
    run = run_fleet(Moving(), problem, blocks=blocks(problem, device))
    assert run.log == LOG
    assert run.level == "blocks"
    assert run.used.tolist() == [1, 2, 2, 1]
    np.testing.assert_allclose(run.state.served_us, [250 * MS, 0, 0])
    latencies_ms = (17.5 * 100 + 15.0 * 100 + 19.0 * 50) / 12.0
    assert run.state.ratio_us[0] == pytest.approx(latencies_ms * MS)
    assert run.late_requests == 1.0
    assert run.training_stretch == pytest.approx((388 + 90) / (160 + 90))


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_what_it_reports(tmp_path: Path, device: str) -> None:
    problem = worked_by_hand(tmp_path)
    dispatcher, fleet = Moving(), Fleet(problem, advance=blocks(problem, device))
    dispatcher.reset(problem.kinds)
    view, seen, left = fleet.reset(), [], []
    while view is not None:
        while not isinstance(command := dispatcher.decide(view), Wait):
            view = fleet.apply(command)
        view = fleet.advance()
        seen.append(tuple(fleet.state.ratio.tolist()))
        left.append(fleet.state.left_us[1] / MS)
    np.testing.assert_allclose(seen, np.array(RATIOS) / 12.0)
    assert left == [100.0, 60.0, 40.0, 0.0]
