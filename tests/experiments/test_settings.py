"""``--set``: dotted paths into a scenario."""

from __future__ import annotations

import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.settings import apply_settings
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.tenant import ClosedLoop, Poisson

SCENARIO = load_scenario("InferenceBesideTrainingPoisson")


def test_a_deep_field_changes_and_its_neighbours_stay() -> None:
    changed = apply_settings(SCENARIO, ["tenants.inference.arrivals.rate_per_s=200"])
    inference, training = changed.tenants
    assert inference.arrivals == Poisson(rate_per_s=200.0)
    assert inference.jobs == SCENARIO.tenants[0].jobs
    assert training == SCENARIO.tenants[1]
    assert SCENARIO.tenants[0].arrivals != inference.arrivals


def test_settings_apply_in_order_to_plain_fields_lists_and_positions() -> None:
    changed = apply_settings(
        SCENARIO,
        ["horizon_us=1", "horizon_us=2e6", "commands=[launch, preempt]", "tenants.1.weight=4", "reward.energy=.5"],
    )
    assert changed.horizon_us == 2e6
    assert changed.commands == ("launch", "preempt")
    assert changed.tenants[1].weight == 4.0
    assert (changed.reward.energy, changed.reward.slowdown) == (0.5, SCENARIO.reward.slowdown)


def test_a_whole_arrival_process_or_its_kind_can_be_replaced() -> None:
    whole = apply_settings(SCENARIO, ["tenants.inference.arrivals={kind: closed-loop, think_us: 50}"])
    assert whole.tenants[0].arrivals == ClosedLoop(think_us=50.0)
    parts = apply_settings(
        SCENARIO, ["tenants.training.arrivals={kind: poisson}", "tenants.training.arrivals.rate_per_s=3"]
    )
    assert parts.tenants[1].arrivals == Poisson(rate_per_s=3.0)


def test_null_unsets_an_optional_field() -> None:
    assert apply_settings(SCENARIO, ["tenants.inference.slo_us=null"]).tenants[0].slo_us is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("horizon_us", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
        ("horizn_us=3", "did you mean 'horizon_us'"),
        ("tenants.inferense.weight=3", "did you mean 'inference'"),
        ("tenants.7.weight=3", "tenants has no '7'"),
        ("tenants.inference.wait=3", "did you mean 'weight'"),
        ("tenants.inference.arrivals.rate=3", "unknown field `rate`"),
        ("horizon_us.x=3", r"horizon_us is the value .* it has no 'x'"),
        ("horizon_us=-5", r"`float` > 0"),
        ("horizon_us=soon", "got `str`"),
        ("commands=[launch", "not valid YAML"),
    ],
)
def test_wrong_settings_name_what_is_wrong(setting: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        apply_settings(SCENARIO, [setting])
