"""Trainings whose decisions are about knobs: which policies see these."""

from __future__ import annotations

import pytest

from gpusched_env.agents.training.config import config_of
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

SCENARIO = load_scenario("ServingColocated", horizon_us=10_000.0)
KNOBS = {"scenario": SCENARIO, "interval_us": 5_000.0, "envs": 1, "variants": False}


@pytest.mark.parametrize(("algo", "policy"), [("maskable-ppo", "slots"), ("cma-es", "serve"), ("cma-es", "rule")])
def test_policies_that_do_not_see_knobs_are_refused(algo: str, policy: str) -> None:
    from gpusched_env.agents.training.kernels import TRAINER

    config = config_of({**KNOBS, "algo": algo, "policy": policy})
    with refused(InputError, policy, "policy"):
        TRAINER.check(config)


@pytest.mark.parametrize(("algo", "policy"), [("maskable-ppo", "slots"), ("cma-es", "rule")])
def test_policies_that_do_not_see_budgets_are_refused(algo: str, policy: str) -> None:
    from gpusched_env.agents.training.kernels import TRAINER

    config = config_of(
        {"scenario": load_scenario("SharedMemory"), "envs": 1, "variants": False, "algo": algo, "policy": policy}
    )
    with refused(InputError, policy, "budgets"):
        TRAINER.check(config)


def test_networks_on_all_columns_are_not_exported() -> None:
    """Policy files say nothing of that table; the model itself plays."""
    from gpusched_env.agents.model_file import TrainedModel, exported
    from gpusched_env.agents.training.environments import training_layout
    from gpusched_env.agents.training.kernels import TRAINER

    config = config_of({**KNOBS, "algo": "dqn"})
    TRAINER.check(config)
    layout = training_layout(config)
    assert layout.knobs

    class Model(TrainedModel):
        """With the actions of the scenario, whatever its policy."""

        rows = (layout.slots, layout.running_slots)
        actions = layout.n

    model = Model("dqn", None, SCENARIO, None, 0, 0, interval_us=5_000.0)  # type: ignore[arg-type]
    with refused(InputError, "ServingColocated", "play"):
        exported(model)
