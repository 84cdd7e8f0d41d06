"""What is said of a problem before anybody runs on it."""

from __future__ import annotations

import msgspec
import pytest

from gpusched_env.data import read_recorded
from gpusched_env.episodes.cautions import cautions
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario


def test_an_objective_that_is_out_of_reach() -> None:
    # The urgent tenant's job takes 210 us alone.
    assert cautions(build_problem(load_scenario("Toy", tenants={"urgent": {"slo_us": 210.0}}))) == []
    (remark,) = cautions(build_problem(load_scenario("Toy", tenants={"urgent": {"slo_us": 150.0}})))
    assert remark == (
        "urgent (toy_urgent) needs 0.21 ms on average for a job alone on the GPU, its SLO is 0.15 ms: "
        "no scheduler can keep it."
    )


@pytest.mark.parametrize(
    ("tenant", "said"),
    [({}, True), ({"iteration_us": 500.0}, False), ({"host_us": 2.0}, False), ({"launch": "graph"}, False)],
)
def test_host_times_under_a_profiler(tenant: dict[str, object], said: bool) -> None:
    workload = msgspec.structs.replace(read_recorded("resnet50_infer_b1"), profiled=True)
    fields = {"workload": workload.name, "iteration_us": None, **tenant}
    scenario = load_scenario("InferenceBesideTraining", tenants={"inference": fields})
    found = cautions(build_problem(scenario, workloads={workload.name: workload}))
    assert any("host times of a run under the profiler" in remark for remark in found) is said


def test_workloads_of_another_gpu() -> None:
    found = cautions(build_problem(load_scenario("InferenceBesideTraining", gpu="a100-sxm")))
    assert len(found) == 2
    assert all("durations on a100-sxm are estimates" in remark for remark in found)
