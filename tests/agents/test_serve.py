"""The serve rule: what its weights make it do."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy, untrained_policy
from gpusched_env.agents.policies.serve import ServeTerm, Way, shapes
from gpusched_env.agents.policies.sizes import ServeSizes
from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.devices.compiled.layout import DECIDE
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.features import TABLES, TenantFeature
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from tests.agents.made_up import made_up
from tests.refusals import refused

POISSON = load_scenario("ServingPoisson", horizon_us=20000.0)
BY_PLAN, FIRST_ALONE, FIRST_BESIDE, FIRST_WIDE, SECOND_BESIDE = 0, 1, 2, 3, 5
"""Actions of two tenants, each with three ways to go first and two rejections."""


def serve(**weights: float) -> ExportedPolicy:
    """The rule with some weights by way and term: ``ALONE_ONE=-1``."""
    value: Weights = {"value": np.zeros(shapes()["value"], np.float32)}
    for name, weight in weights.items():
        way, _, term = name.partition("_")
        value["value"][Way[way], ServeTerm[term]] = weight
    return ExportedPolicy(made_up(POISSON, "serve", interval_us=250.0).info, value)


def chosen(policy: ExportedPolicy, *tenants: dict[str, float]) -> int:
    """The action for tenants with these columns, all with a job."""
    table = np.zeros((1, len(tenants), len(TenantFeature)), np.float32)
    for row, columns in enumerate(tenants):
        for name, value in {"PRESENT": 1.0, "HAS_SLO": 1.0, "JOBS": 0.2, **columns}.items():
            table[0, row, TenantFeature[name]] = value / (1 + abs(value)) if name.startswith("AHEAD") else value
    rows = {"running": 8, "pending": len(tenants)}
    others = {name: np.zeros((1, rows.get(name, 1), len(columns)), np.float32) for name, columns in TABLES.items()}
    observation = {**others, "tenants": table, "device": others["device"][:, 0]}
    # Of each tenant three ways and two rejections.
    return int(policy.act(observation, np.ones((1, 1 + 5 * len(tenants)), np.bool_))[0])


def test_without_weights_it_departs_from_the_plan_where_that_saves_a_margin() -> None:
    policy = serve()
    assert chosen(policy, {"AHEAD": -0.19}, {}) == BY_PLAN
    assert chosen(policy, {"AHEAD": -0.21}, {}) == FIRST_BESIDE
    assert chosen(policy, {"AHEAD": -0.21}, {"AHEAD": -0.3}) == SECOND_BESIDE
    assert chosen(policy, {"AHEAD": -0.3, "AHEAD_ALONE": -0.45}, {}) == FIRST_BESIDE, "alone has to save 0.2 more"
    assert chosen(policy, {"AHEAD": -0.3, "AHEAD_ALONE": -0.55}, {}) == FIRST_ALONE


def test_savings_of_more_than_a_job_are_told_apart() -> None:
    assert chosen(serve(), {"AHEAD": -1.5}, {"AHEAD": -2.5}) == SECOND_BESIDE
    assert chosen(serve(), {"AHEAD": -2.5}, {"AHEAD": -1.5}) == FIRST_BESIDE
    assert chosen(serve(), {"AHEAD": 1e9}, {"AHEAD": 1e9}) == BY_PLAN


def test_weights_add_to_what_is_seen_ahead() -> None:
    assert chosen(serve(BESIDE_AHEAD=1.0), {"AHEAD": -0.9}, {}) == BY_PLAN, "what is seen ahead counts for nothing"
    assert chosen(serve(ALONE_ONE=0.5), {}, {"JOBS": 0.0}) == FIRST_ALONE
    assert chosen(serve(BESIDE_BEST_EFFORT=0.3), {}, {"HAS_SLO": 0.0}) == SECOND_BESIDE


def test_beside_many_has_the_value_of_beside_few_and_its_own_terms() -> None:
    policy = serve(WIDE_ONE=0.1, WIDE_KEPT=-0.3)
    assert chosen(policy, {"AHEAD": -0.21}, {}) == FIRST_WIDE
    assert chosen(policy, {"AHEAD": -0.21, "OLDEST_KEPT": 1.0}, {}) == FIRST_BESIDE
    assert chosen(policy, {"AHEAD": -0.05}, {}) == BY_PLAN
    assert chosen(policy, {"AHEAD": -0.3, "AHEAD_ALONE": -0.65}, {}) == FIRST_ALONE


def test_a_policy_of_two_ways_never_goes_beside_many() -> None:
    policy = serve(ALONE_ONE=0.1, BESIDE_KEPT=0.2)
    info = msgspec.structs.replace(policy.info, network=ServeSizes(ways=2))
    older = ExportedPolicy(info, {"value": np.array([[0.0] * len(ServeTerm)] * 2, np.float32)})
    assert chosen(older, {"AHEAD": -0.21}, {}) == FIRST_BESIDE
    assert chosen(older, {"AHEAD": -0.3, "AHEAD_ALONE": -0.55}, {}) == FIRST_ALONE
    assert msgspec.convert({"kind": "serve"}, ServeSizes).ways == 2, "as in files from before there were three"


def test_rivals_are_other_tenants_with_a_job() -> None:
    policy = serve(ALONE_RIVALS=1.0, ALONE_RIVALS_SPARE=-1.0, ALONE_ONE=0.4)
    assert chosen(policy, {}, {"OLDEST_KEPT": 1.0, "OLDEST_SPARE": 0.3}) == FIRST_ALONE, "2/5 are more than 0.3"
    assert chosen(policy, {}, {"OLDEST_KEPT": 1.0, "OLDEST_SPARE": 0.5}) == BY_PLAN, "and less than 0.5"
    assert chosen(policy, {}, {"JOBS": 0.0, "OLDEST_KEPT": 1.0, "OLDEST_SPARE": 0.3}) == BY_PLAN


def test_where_nobody_is_worth_it_every_decision_is_by_plan() -> None:
    never = serve(BESIDE_ONE=-9.0, ALONE_ONE=-9.0)
    batch = EnvBatch(2, never.layout_for(POISSON), wait_us=100.0)
    for e, seed in enumerate((3, 4)):
        batch.begin(e, build_problem(POISSON), seed)
    batch.run()
    while (batch.reasons == DECIDE).any():
        batch.step(BY_PLAN)
    assert evaluate_costs(never, POISSON, [3, 4]).costs.tolist() == batch.costs.tolist()


@pytest.mark.parametrize(("kind", "interval_us"), [("serve", 0.0), ("rule", 250.0), ("release", 250.0)])
def test_a_rule_is_for_launches_or_for_intervals(kind: str, interval_us: float) -> None:
    with refused(InputError, kind, "interval"):
        untrained_policy(POISSON, kind, interval_us=interval_us)  # type: ignore[arg-type]
