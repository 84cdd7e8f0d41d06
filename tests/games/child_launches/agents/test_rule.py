"""The launch rule: what it is without weights, that compiled episodes are those of the scheduler, and its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusched_env.agents.policy_file import write_game_policy, write_members
from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.agents.rule import (
    CUTOFF_FACTOR,
    READS,
    LaunchPolicyInfo,
    LearnedLaunches,
    SpawnTerm,
    launch_number,
    play_launches,
)
from gpusched_env.games.child_launches.baselines.registry import make_launch_scheduler
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.devices.reference import ReferenceWarpDevice
from gpusched_env.games.child_launches.environment.requests import RANDOM, LaunchFeature, episode_problem
from gpusched_env.games.child_launches.hardware.warp_machine import SPAWN_KEPLER
from gpusched_env.games.child_launches.problem import Transformations
from gpusched_env.games.child_launches.scheduler import run_application
from tests.refusals import refused

SEEDS = (11, 14, 18, 27)
"""Of random applications with a few to thousands of requests; some of the last are nested."""
NOTHING = np.zeros(len(SpawnTerm), np.float32)


def made_up(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=len(SpawnTerm)).astype(np.float32)


def saved(path: Path, weights: np.ndarray) -> Path:
    write_game_policy(path, LaunchPolicyInfo(algorithm="cma-es"), {"value": weights})
    return path


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_without_weights_it_is_spawn(seed: int) -> None:
    problem, flat_ps = episode_problem(RANDOM, seed, SPAWN_KEPLER)
    run = run_application(make_launch_scheduler("spawn(capacity=1000000)"), problem, CompiledWarpDevice())
    played = play_launches(NOTHING, problem, flat_ps)
    assert (played.children, played.decisions) == (run.children, run.decisions)
    assert played.cost == run.time_ps / flat_ps


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_compiled_episodes_are_those_of_the_scheduler(seed: int, tmp_path: Path) -> None:
    weights = made_up(seed)
    problem, flat_ps = episode_problem(RANDOM, seed, SPAWN_KEPLER)
    scheduler = LearnedLaunches(saved(tmp_path / "rule.npz", weights))
    played = play_launches(weights, problem, flat_ps)
    assert 0 < played.children < played.decisions
    for device in (CompiledWarpDevice(), ReferenceWarpDevice()) if seed == SEEDS[0] else (CompiledWarpDevice(),):
        run = run_application(scheduler, problem, device)
        assert (run.time_ps / flat_ps, run.children, run.decisions) == (played.cost, played.children, played.decisions)


def test_a_policy_has_the_program_compiled_as_in_its_training(tmp_path: Path) -> None:
    program = Transformations(threshold=40, coarsening=4, aggregated=True)
    write_game_policy(
        tmp_path / "rule.npz", LaunchPolicyInfo(algorithm="cma-es", program=program), {"value": made_up(1)}
    )
    problem, flat_ps = episode_problem(RANDOM, SEEDS[1], SPAWN_KEPLER)
    run = run_application(LearnedLaunches(tmp_path / "rule.npz"), problem, CompiledWarpDevice())
    compiled = problem.with_threshold(40).with_coarsening(4).changed(aggregated=True)
    played = play_launches(made_up(1), compiled, flat_ps)
    assert (run.time_ps / flat_ps, run.children, run.decisions) == (played.cost, played.children, played.decisions)
    assert played.cost != play_launches(made_up(1), problem, flat_ps).cost
    assert (run.problem.threshold, run.problem.aggregated) == (40, True)


def test_hopeless_episodes_are_broken_off() -> None:
    problem, flat_ps = episode_problem(RANDOM, SEEDS[0], SPAWN_KEPLER)
    everything = NOTHING.copy()
    everything[SpawnTerm.ONE] = 1e6
    whole = play_launches(everything, problem, flat_ps)
    cut = play_launches(everything, problem, int(flat_ps * whole.cost / (2 * CUTOFF_FACTOR)))
    assert cut.decisions < whole.decisions
    assert cut.cost >= CUTOFF_FACTOR


def test_it_reads_what_it_says() -> None:
    """Another column makes no difference; each of these makes one, with some weights."""
    weights, rng = made_up(3), np.random.default_rng(4)
    for column in LaunchFeature:
        changes = 0
        for _ in range(20):
            columns = rng.uniform(0.2, 0.8, len(LaunchFeature)).astype(np.float32)
            columns[LaunchFeature.KNOWN] = 1.0
            before = launch_number(weights, columns)
            columns[column] = 0.0 if column in (LaunchFeature.KNOWN, LaunchFeature.SPAWNED) else rng.uniform(0.2, 0.8)
            changes += launch_number(weights, columns) != before
        assert (changes > 0) == (column.name in READS)


class TestFiles:
    def test_a_file_keeps_what_was_written(self, tmp_path: Path) -> None:
        info, weights = LaunchPolicyInfo.read(saved(tmp_path / "rule.npz", made_up(0)))
        np.testing.assert_array_equal(weights["value"], made_up(0))
        assert "launch rule of" in LearnedLaunches(tmp_path / "rule.npz").describe()
        assert info.terms[0] == "ONE"

    def test_others_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "other.npz"
        path.write_bytes(b"no archive")
        with refused(InputError, "exported"):
            LaunchPolicyInfo.read(path)
        write_members(path, b"{}", {"value": made_up(0)})
        with refused(InputError, "launch"):
            LaunchPolicyInfo.read(path)
        with refused(InputError, "(3,)", "float32"):
            LaunchPolicyInfo.read(saved(path, np.zeros(3, np.float32)))
        write_game_policy(path, LaunchPolicyInfo(algorithm="cma-es", terms=("TWO",)), {"value": made_up(0)})
        with refused(InputError, "terms"):
            LaunchPolicyInfo.read(path)
        write_game_policy(path, LaunchPolicyInfo(algorithm="cma-es", reads=("COLOUR",)), {"value": made_up(0)})
        with refused(InputError, "COLOUR", "reads"):
            LaunchPolicyInfo.read(path)
