"""A teacher in the environment does what it does on the device, and can be learned from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import Imitation, config_of
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.planning.interval import BY_PLAN
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from tests.refusals import refused

if TYPE_CHECKING:
    from gpusched_env.agents.training.imitation import Lesson

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def lesson(scenario: Scenario, teacher: str, decisions: int = 10**6, gamma: float = 1.0) -> Lesson:
    from gpusched_env.agents.training.imitation import record

    config = config_of({"scenario": scenario, "gamma": gamma, "reward_scale": 2.0, "shaping": False})
    return record(config, lambda: make_scheduler(teacher), [(scenario, 3), (scenario, 4)], decisions)


@pytest.mark.parametrize("teacher", ["priority-streams", "fikit(interception_us=0)", "orion", "sjf"])
def test_its_episode_costs_what_it_does_on_the_device(teacher: str) -> None:
    scenario = load_scenario("InferenceBesideTraining", horizon_us=8000.0)
    recorded = lesson(scenario, teacher)
    assert recorded.skipped == 0
    device = make_device("compiled")
    for seed, cost in zip([3, 4], recorded.costs, strict=True):
        episode = run_episode(make_scheduler(teacher), build_problem(scenario), device, seed)
        assert cost == pytest.approx(episode_metrics(episode).cost, rel=1e-9)
    # Undiscounted, the return of an episode's first decision is all that it costs, scaled.
    assert recorded.returns[0] == pytest.approx(-2.0 * recorded.costs[0], rel=1e-5)
    assert recorded.masks[np.arange(len(recorded.actions)), recorded.actions].all()


def test_the_toy_by_hand() -> None:
    recorded = lesson(load_scenario("Toy"), "priority-streams")
    # Its priority -1 is not on offer: all goes to the streams at once, as pass-through does (docs/toy.md).
    assert recorded.costs == pytest.approx([1.23, 1.23])
    assert np.bincount(recorded.actions, minlength=3)[1:].tolist() == [4, 4]
    assert recorded.observations["pending"].shape[0] == len(recorded.actions) == len(recorded.returns)


def test_commands_without_an_action_are_left_out() -> None:
    recorded = lesson(load_scenario("InferenceBesideTraining", horizon_us=8000.0), "preemptive-priority")
    assert recorded.skipped > 0
    assert len(recorded.actions) == len(recorded.masks) == len(recorded.returns)


def test_long_episodes_are_thinned() -> None:
    scenario = load_scenario("InferenceBesideTraining", horizon_us=2000.0)
    whole, part = lesson(scenario, "sjf"), lesson(scenario, "sjf", decisions=100)
    assert len(part.actions) == 100
    assert part.costs == whole.costs
    rows = {row.tobytes() for row in whole.observations["tenants"]}
    assert all(row.tobytes() in rows for row in part.observations["tenants"])


def test_a_teacher_of_processes_is_refused() -> None:
    with refused(InputError, "per-tenant"):
        lesson(load_scenario("Toy"), "time-slicing")


def test_discounting_by_hand() -> None:
    from gpusched_env.agents.training.imitation import discounted

    np.testing.assert_allclose(discounted([-1.0, 0.0, -4.0], 0.5, 2.0), [-4.0, -4.0, -8.0])


@pytest.mark.long
def test_the_policy_learns_what_the_teacher_does(tmp_path: Path) -> None:
    config = config_of(
        {
            "scenario": load_scenario("InferenceBesideTraining", horizon_us=4000.0),
            "policy": "slots",
            "variants": False,
            "timesteps": 1,
            "envs": 2,
            "n_steps": 2,
            "batch_size": 4,
            "validation_seeds": 2,
            "imitation": Imitation(scheduler="sjf", episodes=4, epochs=25, batch_size=128),
        }
    )
    trained = train(config, tmp_path, teacher=lambda: make_scheduler("sjf"))
    problem, device = build_problem(config.scenario), make_device("compiled")
    costs = [
        episode_metrics(run_episode(make_scheduler("sjf"), problem, device, 1_000_000_000 + k)).cost for k in (0, 1)
    ]
    assert trained.curve[0].costs == pytest.approx(costs, rel=0.02)
    other = episode_metrics(run_episode(make_scheduler("priority-streams"), problem, device, 1_000_000_000)).cost
    assert abs(other / costs[0] - 1) > 0.02, "another scheduler must not pass for the teacher"


def test_what_cannot_be_imitated_is_said_before_anything_is_written(tmp_path: Path) -> None:
    config = config_of({"scenario": load_scenario("Toy"), "algo": "dqn", "imitation": {"scheduler": "sjf"}})
    with refused(InputError, "imitation"):
        train(config, tmp_path / "out", teacher=lambda: make_scheduler("sjf"))
    assert not (tmp_path / "out").exists()


def test_for_an_interval_only_schedulers_that_rank_can_be_imitated() -> None:
    from gpusched_env.agents.training.imitation import record

    scenario = load_scenario("ServingPoisson", load=3.0, horizon_us=8000.0)
    config = config_of({"scenario": scenario, "interval_us": 100.0})
    with refused(InputError, "interval_us", "moore"):
        record(config, lambda: make_scheduler("fikit"), [(scenario, 3)], 1000)
    for name in ("edf", "llf", "moore", "srpt", "triage", "wspt"):
        recorded = record(config, lambda name=name: make_scheduler(name), [(scenario, 3)], 1000)  # type: ignore[misc]
        assert 0 < len(recorded.actions) <= 2 * 8000.0 / 100.0
        assert recorded.masks[np.arange(len(recorded.actions)), recorded.actions].all(), name


def test_for_an_interval_the_most_urgent_goes_first_unless_the_plan_says_so_anyhow() -> None:
    """Without rejections each action of edf lets a tenant go first, the one whose oldest job has the least time."""
    from gpusched_env.agents.training.environments import training_layout
    from gpusched_env.agents.training.imitation import record

    scenario = load_scenario("ServingPoisson", load=3.0, horizon_us=8000.0, commands=["launch"])
    config = config_of({"scenario": scenario, "interval_us": 100.0})
    recorded = record(config, lambda: make_scheduler("edf"), [(scenario, 3)], 1000)
    layout = training_layout(config)
    serves = [layout.serve(int(action)) for action in recorded.actions]
    assert {serve.others for serve in serves if serve is not None} == {BY_PLAN.others}
    assert BY_PLAN in serves
    assert len({serve.tenant for serve in serves if serve is not None}) > 2
