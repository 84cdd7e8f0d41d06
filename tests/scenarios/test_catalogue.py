"""The page about scenarios."""

from __future__ import annotations

import msgspec

from gpusched_env.scenarios.catalogue import scenarios_page
from gpusched_env.scenarios.scenario import Reward, Scenario, load_scenario, scenario_names
from gpusched_env.scenarios.variants import scenario_variants
from gpusched_env.workload.tenant import Tenant


def test_every_field_with_its_default_and_every_variant_is_on_the_page() -> None:
    page = scenarios_page()
    for struct in (Scenario, Tenant, Reward):
        for field in msgspec.structs.fields(struct):
            assert f"\n| `{field.name}` |" in page
    assert "\n| `stream_priorities` | `[0, -1]` | Stream priorities that an agent can choose for a launch. |" in page
    assert "\n| `launch` | `eager` | " in page
    for name in scenario_names():
        scenario = load_scenario(name)
        if scenario.workload_sets is not None:
            assert all(f"| `{variant.name}` |" in page for variant in scenario_variants(scenario, "held_out"))
    assert (
        "| held_out | `InferenceBesideTraining-held_out-1` | training `bert_train_b16_s128` "
        "(jobs 8, weight 2.5, iteration_us 12000) |" in page
    )
