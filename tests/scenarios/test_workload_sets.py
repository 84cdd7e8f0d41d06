"""Workload sets: what a file may say, the variants it describes, and that training never sees what is held out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import gpusched_env
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario, make_scenario, override, scenario_names
from gpusched_env.scenarios.variants import scenario_variants, variant_changes
from gpusched_env.scenarios.workload_sets import SetName
from gpusched_env.workload.tenant import ArrivalProcess, Bursts, Poisson, Regimes
from tests.refusals import refused

FILES = Path(gpusched_env.__file__).parent / "scenarios"
WITH_SETS = [name for name in scenario_names() if "\nworkload_sets:" in (FILES / f"{name}.yaml").read_text()]
OPEN_ENDED = [name for name in WITH_SETS if name.startswith(("Serving", "MultiTenantSaturated"))]
"""Their tenants have work until the horizon."""
SETS: tuple[SetName, ...] = ("train", "held_out")


def scenario(**sets: Any) -> Scenario:
    """Two tenants, ``web`` and ``batch``, with these workload sets."""
    tenants = [
        {"name": "web", "workload": "resnet50_infer_b1", "arrivals": {"kind": "closed-loop"}, "slo_us": 9000},
        {"name": "batch", "workload": "bert_train_b16_s128", "arrivals": {"kind": "backlog"}, "jobs": 2},
    ]
    fields = {"name": "Pair", "summary": "a pair", "gpu": "h100-sxm", "horizon_us": 1e5}
    return make_scenario({**fields, "tenants": tenants, "workload_sets": sets or None})


LSTM, VGG = {"workload": "lstm_infer_b16_t50"}, {"workload": "vgg16_fp32_infer_b1", "slo_us": 2300, "jobs": 3}


def test_variants_replace_workloads_and_what_has_to_change_with_them() -> None:
    pair = scenario(train=[{}, {"web": LSTM}], held_out=[{"web": VGG}])
    same, lstm = scenario_variants(pair, "train")
    (vgg,) = scenario_variants(pair, "held_out")
    assert [t.workload for t in same.tenants] == ["resnet50_infer_b1", "bert_train_b16_s128"]
    assert [t.workload for t in lstm.tenants] == ["lstm_infer_b16_t50", "bert_train_b16_s128"]
    assert (lstm.tenants[0].slo_us, lstm.tenants[0].jobs) == (9000, None)
    assert (vgg.tenants[0].slo_us, vgg.tenants[0].jobs) == (2300, 3)
    assert vgg.tenants[1] == pair.tenants[1]
    assert [v.name for v in (same, lstm, vgg)] == ["Pair-train-0", "Pair-train-1", "Pair-held_out-0"]
    assert vgg.summary == "a pair; web: vgg16_fp32_infer_b1"
    assert vgg.workload_sets is None


def test_a_substitute_can_also_take_a_value_away() -> None:
    pair = scenario(train=[{}], held_out=[{"web": {**LSTM, "slo_us": None}}])
    assert scenario_variants(pair, "held_out")[0].tenants[0].slo_us is None


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"train": [], "held_out": [{"web": VGG}]}, "length >= 1"),
        ({"train": [{}]}, "held_out"),
        ({"train": [{"wbe": LSTM}], "held_out": [{"web": VGG}]}, r"train\[0\] names tenant 'wbe'; tenants are web"),
        ({"train": [{}], "held_out": [{"web": {"slo_us": 5}}]}, "workload"),
        ({"train": [{}], "held_out": [{"web": {**VGG, "priority": 1}}]}, "priority"),
        ({"train": [{}, {"web": LSTM}, {}], "held_out": [{"web": VGG}]}, r"train\[2\] is the same as .*train\[0\]"),
        ({"train": [{"web": VGG}], "held_out": [{"web": VGG}]}, r"held_out\[0\] has only workloads of the training"),
        (
            {"train": [{}], "held_out": [{"web": {"workload": "bert_train_b16_s128"}}]},
            r"held_out\[0\] has only workloads of the training",
        ),
    ],
)
def test_what_is_wrong_with_sets_is_said(sets: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenario(**sets)


def test_a_scenario_without_sets_and_an_unknown_set() -> None:
    with refused(InputError, "workload_sets", "Pair"):
        scenario_variants(scenario(), "train")
    with refused(InputError, "'test'", "known"):
        variant_changes(scenario(), "test")  # type: ignore[arg-type]


def test_an_override_of_workloads_drops_the_sets_and_others_keep_them() -> None:
    """A scenario made of a held-out workload must not count as training on it."""
    pair = scenario(train=[{}], held_out=[{"web": VGG}])
    assert override(pair, tenants={"web": {"jobs": 5}}).workload_sets == pair.workload_sets
    assert override(pair, horizon_us=5.0).workload_sets == pair.workload_sets
    assert override(pair, tenants={"web": VGG}).workload_sets is None
    assert override(pair, tenants=msgspec.to_builtins(pair.tenants[:1])).workload_sets is None


def test_an_environment_takes_a_variant_for_an_episode() -> None:
    env = GpuSchedulingEnv("InferenceBesideTraining", horizon_us=5000)
    for change in (*variant_changes(env.scenario, "train"), *variant_changes(env.scenario, "held_out")):
        observation, _ = env.reset(seed=0, options={"scenario": change})
        assert env.observation_space.contains(observation)
        wanted = {name: fields["workload"] for name, fields in change["tenants"].items()}
        running = {program.tenant.name: program.tenant.workload for program in env.episode().problem.programs}
        assert running == running | wanted


def test_which_scenarios_have_sets() -> None:
    assert len([name for name in WITH_SETS if name.startswith("InferenceBesideTraining")]) == 7
    assert "MultiTenantBurst" in WITH_SETS


@pytest.mark.parametrize("name", WITH_SETS)
def test_shipped_variants_keep_what_shapes_an_environment(name: str) -> None:
    base = load_scenario(name)
    for which in SETS:
        for variant in scenario_variants(base, which):
            assert [t.name for t in variant.tenants] == [t.name for t in base.tenants]
            assert [t.priority for t in variant.tenants] == [t.priority for t in base.tenants]
            assert (variant.commands, variant.stream_priorities) == (base.commands, base.stream_priorities)


def jobs_per_s(arrivals: ArrivalProcess) -> float:
    """Mean rate of an open process; 0 of a closed loop."""
    if isinstance(arrivals, Bursts):
        return arrivals.rate_per_s * arrivals.mean_size
    if isinstance(arrivals, Regimes):
        jobs = arrivals.rate_per_s * arrivals.calm_us + arrivals.busy_rate_per_s * arrivals.busy_us
        return jobs / (arrivals.calm_us + arrivals.busy_us)
    return arrivals.rate_per_s if isinstance(arrivals, Poisson) else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", OPEN_ENDED)
def test_shipped_services_offer_as_much_work_in_every_variant_and_can_be_in_time(name: str) -> None:
    """Within a quarter; objectives are three to eight and a half times the time alone. What an engine that batches is
    asked for is no sum of times alone."""
    loads = []
    for which in SETS:
        for variant in scenario_variants(load_scenario(name), which):
            programs = build_problem(variant).programs
            served = [program for program in programs if program.engine is None]
            loads.append(sum(jobs_per_s(program.tenant.arrivals) * program.alone_us for program in served) / 1e6)
            for program in programs:
                if program.tenant.slo_us is not None:
                    assert 2.9 < program.tenant.slo_us / program.answer_us < 8.5, (variant.name, program.tenant.name)
    assert all(load == pytest.approx(loads[0], rel=0.25) for load in loads)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WITH_SETS if name not in OPEN_ENDED])
def test_shipped_variants_are_balanced_like_their_scenario(name: str) -> None:
    """Every tenant keeps its share of the cost and its objective's reach; work ends well before the horizon."""
    base = load_scenario(name)
    alone_us = {program.tenant.name: program.alone_us for program in build_problem(base).programs}
    own = {tenant.name: tenant for tenant in base.tenants}
    for which in SETS:
        for variant in scenario_variants(base, which):
            for program in build_problem(variant).programs:
                tenant, before = program.tenant, own[program.tenant.name]
                assert tenant.jobs is not None
                assert before.jobs is not None
                assert tenant.weight * tenant.jobs == pytest.approx(before.weight * before.jobs, rel=0.02), variant.name
                assert tenant.jobs * program.alone_us < variant.horizon_us / 2
                if tenant.slo_us is not None and before.slo_us is not None:
                    reach = min(1.95, 0.97 * before.slo_us / alone_us[tenant.name])
                    assert tenant.slo_us > reach * program.alone_us, variant.name
