"""The knob rule: what its weights make it do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.policies.knobs import SHAPES, PauseTerm, SmShareTerm
from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.devices import make_device
from gpusched_env.envs.action_fields import PAUSES
from gpusched_env.envs.encoding import LOG_SCALE
from gpusched_env.envs.features import TABLES, TenantFeature
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from tests.agents.made_up import made_up
from tests.refusals import refused

SCENARIO = load_scenario("ServingColocated", horizon_us=60_000.0, restart_us=8_000.0)
INTERVAL_US = 5_000.0
TERMS = {"pause": PauseTerm, "share": SmShareTerm}


def knobs(**weights: float) -> ExportedPolicy:
    """The rule with some weights by array and term: ``pause_ONE=3``."""
    arrays: Weights = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    for name, weight in weights.items():
        array, _, term = name.partition("_")
        arrays[array][TERMS[array][term]] = weight
    return ExportedPolicy(made_up(SCENARIO, "knobs", interval_us=INTERVAL_US).info, arrays)


def log(microseconds: float) -> float:
    return math.log1p(microseconds) / LOG_SCALE


def chosen(policy: ExportedPolicy, latency: float = 1.0, quarters: int = 4, pause: int = 0) -> str:
    """What is done with a training of 10 ms, beside a service of 1 ms with an objective of 3 ms.

    Args:
        latency: mean turnaround in times of the objective.
        quarters, pause: as the knobs stand.
    """
    layout = policy.info.actions
    table = np.zeros((1, 2, len(TenantFeature)), np.float32)
    slowdown = 3.0 * latency
    service = {"HAS_SLO": 1.0, "SLO": log(3000.0), "ALONE": log(1000.0), "MEAN_SLOWDOWN": slowdown / (1.0 + slowdown)}
    training = {"ALONE": log(10_000.0), "PARTITION_SMS": quarters / 4, "EARNS": 0.4 / 1.4}
    for row, columns in enumerate((service, training)):
        for name, value in {"PRESENT": 1.0, **columns}.items():
            table[0, row, TenantFeature[name]] = value
    rows = {"running": layout.running_slots, "pending": layout.pending_slots}
    others = {name: np.zeros((1, rows.get(name, 1), len(columns)), np.float32) for name, columns in TABLES.items()}
    mask = np.ones((1, layout.n), np.bool_)
    partition = layout.first("partition") + layout.choices("partition")
    mask[0, partition + 2 + quarters] = False
    mask[0, layout.first("throttle") + layout.choices("throttle") + pause] = False
    observation = {**others, "tenants": table, "device": others["device"][:, 0]}
    return layout.describe(int(policy.act(observation, mask)[0]), ["answers", "tuning"])


def test_without_weights_nothing_is_held_back() -> None:
    assert chosen(knobs(), latency=5.0) == "wait"
    assert chosen(knobs(), pause=3) == "let tuning sleep before each job: 0 times its time alone"


def test_a_pause_is_the_one_next_to_what_the_terms_say() -> None:
    said = f"let tuning sleep before each job: {PAUSES[3] / 8:g} times its time alone"
    assert chosen(knobs(pause_ONE=2.6)) == said
    assert chosen(knobs(pause_ONE=3.4)) == said
    assert chosen(knobs(pause_ONE=3.4), pause=3) == "wait"
    assert chosen(knobs(pause_ONE=99.0)) == "let tuning sleep before each job: 16 times its time alone"
    # Latency at the objective has 0, at three times that 1.
    assert chosen(knobs(pause_LATENCY=3.0)) == "wait"
    assert chosen(knobs(pause_LATENCY=3.0), latency=3.0) == said


def test_a_share_changes_by_whole_quarters_and_before_the_pause() -> None:
    assert chosen(knobs(share_ONE=-0.4)) == "wait"
    assert chosen(knobs(share_ONE=-0.6, pause_ONE=3.0)) == "confine tuning: 3/4 of the SMs up to the last"
    assert chosen(knobs(share_ONE=-9.0)) == "confine tuning: 1/4 of the SMs up to the last"
    late = knobs(share_LATENCY=-0.6)
    assert chosen(late, latency=3.0) == "confine tuning: 3/4 of the SMs up to the last"
    assert chosen(late, latency=3.0, quarters=1) == "wait", "there is no less"
    assert chosen(late, latency=0.3, quarters=2) == "confine tuning: 3/4 of the SMs up to the last"


def test_prices_are_those_of_services() -> None:
    """Training earns 0.4 times as much a microsecond: 1 + ln 0.4 = 0.08; and takes 3.3 objectives: ln 3.3 - 1 = 0.2."""
    assert (
        chosen(knobs(pause_PRICE=30.0)) == f"let tuning sleep before each job: {PAUSES[3] / 8:g} times its time alone"
    )
    assert (
        chosen(knobs(pause_LENGTH=10.0)) == f"let tuning sleep before each job: {PAUSES[2] / 8:g} times its time alone"
    )


def test_it_plays_episodes_as_a_scheduler_does() -> None:
    policy = knobs(pause_ONE=2.0, pause_LATENCY=1.0, share_ONE=-0.3, share_LATENCY=-0.5)
    problem = build_problem(SCENARIO)
    costs = evaluate_costs(policy, SCENARIO, (5, 6)).costs
    for seed, cost in zip((5, 6), costs, strict=True):
        episode = run_episode(LearnedScheduler(policy), problem, make_device("compiled"), seed)
        assert episode_metrics(episode).cost == pytest.approx(cost, rel=1e-9)


def test_scenarios_without_knobs_are_refused() -> None:
    with refused(InputError, "tenants"):
        made_up("Toy", "knobs")
    with refused(InputError, "partition"):
        knobs().layout_for(load_scenario("ServingPoisson"))
