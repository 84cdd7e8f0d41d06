"""The fleet rule: without weights it is first fit, it empties GPUs, and plays compiled as it is asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusched_env.agents.policy_file import Weights, write_game_policy
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.agents.rule import (
    DISTURBANCE_PENALTY,
    READS,
    SHAPES,
    FleetPolicyInfo,
    LearnedFleet,
    MoveTerm,
    PlaceTerm,
    play_day,
    weights_in_a_row,
)
from gpusched_env.games.fleet.baselines.registry import make_dispatcher
from gpusched_env.games.fleet.device import FleetEvent, FleetRun, run_fleet
from gpusched_env.games.fleet.environment.encoding import FleetFeature
from gpusched_env.games.fleet.environment.problems import fleet_problem
from gpusched_env.games.fleet.experiments.game import run_day
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.workload.jobs import JOB

S = 1_000_000


def weights(seed: int | None = None) -> Weights:
    """All 0, or random ones."""
    rng = np.random.default_rng(seed)
    return {n: (np.zeros(s) if seed is None else rng.normal(0, 1, s)).astype(np.float32) for n, s in SHAPES.items()}


def stored(path: Path, chosen: Weights) -> Path:
    write_game_policy(path, FleetPolicyInfo(algorithm="none"), chosen)
    return path


def same(one: FleetRun, other: FleetRun) -> None:
    for name in ("used", "running", "waiting"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("gpu_of", "left_us", "ended_us", "late_us", "ratio_us"):
        np.testing.assert_array_equal(getattr(one.state, name), getattr(other.state, name), err_msg=name)


def careless() -> Weights:
    """Weights that make up for what a missed SLO takes off."""
    found = weights()
    found["place"][:, PlaceTerm.ONE] = DISTURBANCE_PENALTY
    return found


def test_without_weights_and_moves_it_is_first_fit_where_no_slo_is_missed() -> None:
    problem = fleet_problem("usual", 5)
    same(
        play_day(weights_in_a_row(weights()), problem, moves=False)[0],
        run_fleet(make_dispatcher("predicted-fit"), problem),
    )


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_it_plays_as_it_is_asked(seed: int | None, tmp_path: Path) -> None:
    dispatcher = LearnedFleet(stored(tmp_path / "rule.npz", weights(seed)))
    problem = fleet_problem("small", 2)
    asked = run_fleet(dispatcher, problem)
    same(play_day(dispatcher.weights, problem)[0], asked)
    assert any(event.what == "move" for event in asked.log) or seed is not None


def test_it_predicts_who_disturbs_whom() -> None:
    """What that takes keeps every SLO, with more GPUs."""
    problem = fleet_problem("usual", 2)
    free, kept = (play_day(weights_in_a_row(chosen), problem, moves=False)[0] for chosen in (careless(), weights()))
    assert free.violations > 0.002 > kept.violations == 0.0
    assert kept.used.mean() > free.used.mean()


@pytest.mark.parametrize("options", ["", "(best=True)", "(empty=0.5)", "(best=True, empty=0.9)"])
def test_a_rule_that_predicts_is_one_of_its_points(options: str) -> None:
    """Which is how it is run."""
    dispatcher = make_dispatcher(f"predicted-fit{options}")
    for seed in (1, 2):
        problem = fleet_problem("small", seed)
        same(run_day(dispatcher, problem), run_fleet(dispatcher, problem))


def two_gpus() -> FleetProblem:
    """Jobs 0 and 1 fill GPU 0; job 2 goes to GPU 1, and could be on GPU 0 from when job 1 has gone after 90 s."""
    rows = [
        (0, 1, 1000.0 * S, 0.4, 2.0, 500_000.0, 0.0),
        (0, 1, 70.0 * S, 0.5, 2.0, 500_000.0, 0.0),
        (0, 1, 1000.0 * S, 0.3, 2.0, 500_000.0, 0.0),
    ]
    rates = fleet_problem("small", 0).rates._replace(training_by_others=0.0)
    return FleetProblem("two", np.array(rows, JOB), (GpuKind("GPU", 2, 8.0),), rates, 600 * S)


def test_a_gpu_whose_jobs_fit_elsewhere_is_emptied(tmp_path: Path) -> None:
    dispatcher = LearnedFleet(stored(tmp_path / "rule.npz", weights()))
    run = run_fleet(dispatcher, two_gpus())
    assert run.log == [
        FleetEvent(0, "place", 0, 0),
        FleetEvent(0, "place", 1, 0),
        FleetEvent(0, "place", 2, 1),
        FleetEvent(70 * S, "finish", 1, 0),
        FleetEvent(120 * S, "move", 2, 0),
    ]
    assert run.used.tolist() == [2, 2, *[1] * 8]
    assert run_fleet(make_dispatcher("predicted-fit(empty=0.5)"), two_gpus()).log == run.log
    stays = LearnedFleet(dispatcher.file, moves=False)
    assert run_fleet(stays, two_gpus()).used.tolist() == [2] * 10


def test_weights_can_forbid_moves() -> None:
    still = weights()
    still["move"][MoveTerm.ONE] = -1.0
    assert play_day(weights_in_a_row(still), two_gpus())[0].used.tolist() == [2] * 10


def test_files_are_checked(tmp_path: Path) -> None:
    path = stored(tmp_path / "rule.npz", weights(3))
    info, found = FleetPolicyInfo.read(path)
    assert info.summary() == "none, a fleet rule of 18 terms, 0 decisions"
    np.testing.assert_array_equal(found["place"], weights(3)["place"])
    for changed, error in (
        ({"terms": ("ONE",)}, "other terms than there are now"),
        ({"reads": ("WISH",)}, "reads WISH, which observations do not have"),
    ):
        write_game_policy(path, FleetPolicyInfo(algorithm="none", **changed), weights())  # type: ignore[arg-type]
        with pytest.raises(InputError, match=error):
            FleetPolicyInfo.read(path)
    write_game_policy(path, FleetPolicyInfo(algorithm="none"), {"place": np.zeros((2, 3), np.float32)})
    with pytest.raises(InputError, match=str(path)):
        FleetPolicyInfo.read(path)


def test_what_it_reads_is_shown() -> None:
    assert set(READS) <= set(FleetFeature.__members__)
