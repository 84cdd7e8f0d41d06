"""Shipped scenarios run on listed GPUs, or say in one line why not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import gpu_names, load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario, override, scenario_names
from tests.sampling import sampled_pairs


@pytest.mark.long
@pytest.mark.parametrize(("name", "gpu"), sampled_pairs(scenario_names(), gpu_names()))
def test_every_scenario_and_every_gpu_runs(name: str, gpu: str) -> None:
    scenario = override(load_scenario(name), gpu=gpu, horizon_us=5000.0, variation=False)
    there = [-level for level in range(load_gpu(gpu).priorities)]
    too_low = [priority for priority in scenario.stream_priorities if priority not in there]
    if too_low:
        message = (
            rf"{name}: stream_priorities has {too_low[0]}, {gpu} has {there[-1]} to 0; set .* {re.escape(str(there))}"
        )
        with pytest.raises(InputError, match=message):
            build_problem(scenario)
        scenario = override(scenario, stream_priorities=there)
    problem = build_problem(scenario)
    elsewhere = {program.workload.name for program in problem.programs if program.workload.gpu != gpu}
    assert {row.workload for row in problem.carried_over} == elsewhere
    assert all(kernel.footprint.blocks_per_sm >= 1 for kernel in problem.kernels)
    episode = run_episode(make_scheduler("pass-through"), problem, make_device("compiled"), seed=0)
    assert episode.costs.busy_sm_us > 0.0


def test_a_gpu_of_ones_own_is_named_by_its_path_wherever_a_name_is(tmp_path: Path) -> None:
    own: dict[str, Any] = msgspec.to_builtins(load_gpu("h100-sxm"))
    del own["sources"]["sms"]
    own |= {"name": "half-an-h100", "sms": 66, "sm_order": "linear"}
    path = tmp_path / "my gpu.yaml"
    path.write_text(yaml.safe_dump(own))
    problem = build_problem(load_scenario("InferenceBesideTraining", gpu=str(path)))
    assert (problem.gpu.name, problem.gpu.sms) == ("half-an-h100", 66)
    assert {row.split for row in problem.carried_over} == {0}, "its SMs hold what an H100's hold"
    whole = build_problem(load_scenario("InferenceBesideTraining"))
    training, halved = whole.programs[1].alone_us, problem.programs[1].alone_us
    assert 1.2 * training < halved < 2.0 * training
    assert whole.carried_over == ()
