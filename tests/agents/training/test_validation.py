"""Validations: what they play is the same with Python between the decisions and without."""

from __future__ import annotations

from typing import Any

import pytest

from gpusched_env.agents.exported import untrained_policy
from gpusched_env.agents.training.config import config_of
from gpusched_env.agents.training.environments import training_changes, validation_env, validation_seeds
from gpusched_env.agents.training.validation import EpisodeJudge, PolicyDecider, mean_figures, play
from gpusched_env.scenarios.scenario import load_scenario

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize(
    ("scenario", "kind", "given"),
    [
        ("Toy", "slots", {}),
        ("InferenceBesideTraining", "rule", {"threads": 2}),
        ("ServingPoisson", "serve", {"interval_us": 250.0}),
    ],
)
def test_compiled_loops_play_the_episodes_of_the_environments(scenario: str, kind: Any, given: dict[str, Any]) -> None:
    short = load_scenario(scenario, horizon_us=5000.0)
    config = config_of({"scenario": short, "validation_seeds": 2, **given})
    decide = PolicyDecider(untrained_policy(short, kind, interval_us=config.interval_us))
    judge, env = EpisodeJudge(config), validation_env(config)
    try:
        found = judge.judge(decide)
        expected = play(decide, env, validation_seeds(config) * len(training_changes(config)))
    finally:
        judge.close()
        env.close()
    assert found.costs == [episode.metrics["cost"] for episode in expected]
    assert found.figures == mean_figures(expected)
