"""What differs from episode to episode."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.agents.training.config import Randomise, randomise_of
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario, override
from gpusched_env.scenarios.variants import variant_changes
from tests.refusals import refused


def test_the_text_form() -> None:
    text = "rates=0.7:1.4,gpus=h100-sxm+h200-sxm,profiles=2"
    assert randomise_of(text) == Randomise(rates=(0.7, 1.4), gpus=("h100-sxm", "h200-sxm"), profiles=2.0)
    assert randomise_of("profiles=1.5") == Randomise(profiles=1.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [("rate=1:2", "did you mean 'rates'"), ("rates=1", "expected such as"), ("profiles=0.5", "expected such as")],
)
def test_what_is_wrong_with_it_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        randomise_of(text)


def test_draws_stay_within_what_was_asked_for() -> None:
    from gpusched_env.agents.training.environments import sampler

    scenario = load_scenario("MultiTenantBurst")
    changes = variant_changes(scenario, "train")
    sample = sampler(scenario, changes, Randomise(rates=(0.5, 2.0), gpus=("h100-sxm", "h200-sxm"), profiles=3.0))
    assert sample is not None
    rng = np.random.default_rng(0)
    rates, gpus, seeds, workloads = [], set(), set(), set()
    for _ in range(200):
        fields = sample(0, rng)
        assert fields is not None
        drawn = override(scenario, **fields)
        # "answers" has 100 a second in the scenario, and 80 or 100 in variants that give arrivals of their own.
        rates.append(drawn.tenants[1].arrivals.rate_per_s / 100.0)  # type: ignore[union-attr]
        gpus.add(drawn.gpu)
        seeds.add(drawn.profiles.seed)
        workloads.add(drawn.tenants[0].workload)
        assert drawn.profiles.scatter == 3.0
    assert 0.5 <= min(rates) < 0.6
    assert 1.8 < max(rates) <= 2.0
    assert abs(np.mean([math.log(rate) for rate in rates])) < 0.1
    assert gpus == {"h100-sxm", "h200-sxm"}
    assert len(seeds) == 200
    assert workloads == {"dlrm_infer_b256", "alexnet_fp32_infer_b1"}


def test_a_closed_loop_thinks_shorter_at_a_higher_rate() -> None:
    from gpusched_env.agents.training.environments import sampler

    scenario = load_scenario("InferenceBesideTraining")
    sample = sampler(scenario, [{}], Randomise(rates=(2.0, 2.0)))
    assert sample is not None
    fields = sample(0, np.random.default_rng(0))
    assert fields is not None
    drawn = override(scenario, **fields)
    assert drawn.tenants[0].arrivals.think_us == pytest.approx(1500.0)  # type: ignore[union-attr]
    assert drawn.tenants[1].arrivals.think_us == 0.0  # type: ignore[union-attr]


def test_nothing_to_draw() -> None:
    from gpusched_env.agents.training.environments import sampler

    assert sampler(load_scenario("Toy"), [{}], Randomise()) is None


def test_a_gpu_that_a_variant_cannot_have_is_refused_at_once() -> None:
    from gpusched_env.agents.training.environments import sampler

    with refused(InputError, "GPU 'h1000'", "unknown"):
        sampler(load_scenario("Toy"), [{}], Randomise(gpus=("h1000",)))
