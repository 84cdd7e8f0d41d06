"""``gpusched/Fleet-v0``: its return is minus the cost of the same dispatcher; its rows can be worked out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from gpusched_env.envs.registration import env_id
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.baselines.registry import make_dispatcher
from gpusched_env.games.fleet.co_location import RateModel
from gpusched_env.games.fleet.device import Fleet, Place, run_fleet
from gpusched_env.games.fleet.environment.encoding import (
    AGE_TOP,
    CANDIDATES,
    WIDTH,
    FleetFeature,
    encode,
    encode_compiled,
)
from gpusched_env.games.fleet.environment.env import NEW, QUEUE, FleetEnv
from gpusched_env.games.fleet.environment.problems import (
    DAYS,
    fleet_cost,
    fleet_day,
    fleet_problem,
    reports_without_sharing,
)
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.workload.jobs import JOB
from tests.refusals import refused

S = 1_000_000
RATES = RateModel(
    inference_by_inference=1.0, inference_by_training=1.0, exponent=1.0, training_by_others=2.0,
    cap_knee=1.0, cap_exponent=1.0, apart=0.0, noise=0.0,
)  # fmt: skip


@pytest.fixture
def short(tmp_path: Path) -> str:
    """A day of six hours."""
    path = tmp_path / "short.yaml"
    path.write_text("{name: short, days: 0.25, scale: 0.006}")
    return str(path)


def played(env: FleetEnv, seed: int, choose: Any) -> tuple[float, dict[str, Any]]:
    """The return of an episode, and its last info."""
    _, info = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        _, reward, over, _, info = env.step(choose(info["action_mask"]))
        total += reward
    return total, info


def test_it_is_an_environment(short: str) -> None:
    check_env(gymnasium.make(env_id("Fleet"), problem=short).unwrapped)
    check_env(gymnasium.make(env_id("Fleet"), problem=short, render_mode="rgb_array").unwrapped)


def test_the_return_is_minus_the_cost_of_the_same_dispatcher() -> None:
    """An empty GPU for each job is no co-location; the fullest GPU with room is best fit."""
    env = FleetEnv("small")
    for who, choose in (
        ("no-colocation", lambda mask: NEW if mask[NEW] else QUEUE),
        ("gpucolo(best=True, worst=True)", lambda mask: int(np.argmax(mask))),
    ):
        total, info = played(env, 3, choose)
        run = run_fleet(make_dispatcher(who), fleet_problem("small", 3))
        assert total == pytest.approx(-fleet_cost(run), rel=1e-12)
        assert info["episode_metrics"]["cost"] == pytest.approx(fleet_cost(run), rel=1e-12)
        assert info["episode_metrics"]["gpus"] == run.gpus
        assert info["illegal_actions"] == 0


def test_who_never_places_pays_for_each_job_that_waits(short: str) -> None:
    total, info = played(FleetEnv(short), 0, lambda mask: QUEUE)
    metrics = info["episode_metrics"]
    assert metrics["gpus"] == 0.0
    problem = fleet_problem(short, 0)
    assert -total == pytest.approx(metrics["waiting"] * 360 / reports_without_sharing(problem))
    assert -total >= 1.0, "a GPU for each job would cost no more"


def test_actions_that_are_masked_out_queue(short: str) -> None:
    wrong = FleetEnv(short)
    total, info = played(wrong, 0, lambda mask: int(np.argmin(mask)) if 0 in mask else QUEUE)
    assert total == played(FleetEnv(short), 0, lambda mask: QUEUE)[0]
    assert info["illegal_actions"] > 0


def by_hand() -> Fleet:
    """GPU 0 has inference of half a GPU and training of a quarter for a minute, GPU 1 is twice as fast and small."""
    rows = [
        (0, 0, 1e9, 0.5, 4.0, 50_000.0, 100_000.0),
        (0, 1, 1e9, 0.25, 2.0, 500_000.0, 0.0),
        (60 * S, 0, 1e9, 0.2, 1.0, 50_000.0, 80_000.0),
    ]
    kinds = (GpuKind("one", 1, 10.0), GpuKind("two", 1, 5.0, 2.0))
    fleet = Fleet(FleetProblem("by hand", np.array(rows, JOB), kinds, RATES, 1000 * S), "gpucolo")
    fleet.reset()
    fleet.apply(Place(0, 0))
    fleet.apply(Place(1, 0))
    fleet.advance()
    return fleet


@pytest.mark.parametrize("look", [encode, encode_compiled])
def test_rows_are_what_can_be_worked_out(look: Any) -> None:
    """With job 2, inference there is active for 0.7 of the time, training for 0.25, or 0.25 / 3 with a second of sleep.

    Job 0 takes 1 + 0.2 + 0.25 times as long, of an SLO of 2; job 2 1 + 0.5 + 0.25 times, of 1.6: it is the worst.
    """
    fleet, rows, gpus = by_hand(), np.zeros((CANDIDATES + 1, WIDTH), np.float32), np.zeros(CANDIDATES + 1, np.int64)
    look(fleet.state, RATES, 2, rows, gpus)
    assert gpus.tolist() == [0, *[-1] * (CANDIDATES - 1), 1]
    assert (rows[1:CANDIDATES] == 0.0).all()
    first = dict(zip(FleetFeature.__members__, rows[0].tolist(), strict=True))
    full, least = (1.5 + 0.25) / 1.6, (1.5 + 0.25 / 3.0) / 1.6
    age = math.log1p(1.0) / math.log1p(AGE_TOP)
    expected = {
        "PRESENT": 1.0, "TRAINING": 0.0, "UTILISATION": 0.2, "EMPTY": 0.0, "LOAD": 0.95, "INFERENCE_LOAD": 0.7,
        "CLAIMED": 0.7, "COUNT": 3 / 48, "TRAININGS": 1 / 48, "LEAST": least / (1 + least), "FULL": full / (1 + full),
        "DISTURBS": 0.0, "OLDEST": age, "YOUNGEST": age, "SLEEP": 0.0, "RATIO": (1.25 / 2) / (1 + 1.25 / 2),
    }  # fmt: skip
    assert first == pytest.approx(expected, rel=1e-6)
    alone = dict(zip(FleetFeature.__members__, rows[CANDIDATES].tolist(), strict=True))
    assert (alone["EMPTY"], alone["LOAD"], alone["CLAIMED"]) == pytest.approx((1.0, 0.1, 0.2))
    assert alone["LEAST"] == pytest.approx(0.5 / 1.6 / (1 + 0.5 / 1.6))


def test_what_is_shown_to_rules_ends_with_what_is_known() -> None:
    fleet = Fleet(by_hand().problem)
    shown = fleet.reset().shown
    assert len(shown.arrival_us) == 2
    assert len(shown.left_us) == len(shown.ended_us) == 0
    with refused(ValueError, "read-only"):
        shown.load[0] = 1.0


def test_devices_give_the_same(short: str) -> None:
    seen = []
    for device in ("compiled", "reference"):
        env, rng = FleetEnv(short, device=device), np.random.default_rng(0)
        observation, info = env.reset(seed=1)
        steps, over = [observation], False
        while not over and len(steps) < 60:
            observation, reward, over, _, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
            steps.append(np.append(observation, reward))
        seen.append(steps)
    for one, other in zip(*seen, strict=True):
        np.testing.assert_array_equal(one, other)


def test_seeds_repeat_days_and_draw_others() -> None:
    one, again, other = (fleet_problem("random", seed) for seed in (1, 1, 2))
    assert one.jobs.tobytes() == again.jobs.tobytes() != other.jobs.tobytes()
    assert one.gpus != other.gpus
    assert fleet_day("burst", 0).problem(0).gpus == 130
    for name in DAYS:
        run = run_fleet(make_dispatcher("no-colocation"), fleet_problem(name, 1))
        assert fleet_cost(run) == pytest.approx(1.0, abs=0.02)


def test_wrong_input_is_one_error(short: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("{name: x, scale: -1}")
    for make, error in (
        (lambda: FleetEnv("usul"), "no day of a fleet is 'usul'; did you mean 'usual'"),
        (lambda: FleetEnv(str(wrong)), "wrong.yaml"),
        (lambda: FleetEnv(device="referense"), "did you mean 'reference'"),
        (lambda: FleetEnv(render_mode="rgb"), "render_mode is 'rgb'"),  # type: ignore[arg-type]
        (lambda: FleetEnv(short, control="gpucolor").reset(), "no control 'gpucolor'"),
        (lambda: FleetEnv(short).reset(options={"day": 1}), "'day'"),
    ):
        with pytest.raises(InputError, match=error):
            make()
    env = FleetEnv(short)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    for action in (-1, QUEUE + 1, 0.5):
        with refused(InputError, "action"):
            env.step(action)  # type: ignore[arg-type]
    played(env, 0, lambda mask: NEW if mask[NEW] else QUEUE)
    with refused(ResetNeeded, "over"):
        env.step(0)


def test_it_is_drawn(short: str) -> None:
    env = FleetEnv(short, render_mode="ansi")
    env.reset(seed=0)
    assert "hour 0.00" in env.render()
    played(env, 0, lambda mask: int(np.argmax(mask)))
    assert "hour 6.00" in env.render()
    drawn = FleetEnv(short, render_mode="rgb_array")
    played(drawn, 0, lambda mask: int(np.argmax(mask)))
    colours = {tuple(colour) for colour in np.asarray(drawn.render()).reshape(-1, 3).tolist()}
    assert {(0, 114, 178), (200, 200, 200)} <= colours
