"""What is said of a problem before anybody runs on it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from gpusched_env.data import read_recorded
from gpusched_env.episodes.cautions import cautions
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.carry_over import HOW_FAR_OFF, KERNEL_OFF, NETWORK_OFF, PRODUCT_OFF


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
    assert len(found) == 3
    assert all("durations on a100-sxm are estimates" in remark for remark in found[:2])
    assert found[2] == HOW_FAR_OFF
    assert HOW_FAR_OFF not in cautions(build_problem(load_scenario("InferenceBesideTraining")))


def test_how_far_estimates_are_off_is_what_was_checked() -> None:
    """On the page that compares recordings of two GPUs, and products of several."""
    page = (Path(__file__).parents[2] / "docs" / "carry-over.md").read_text(encoding="utf-8")
    found = re.search(
        r"Without the recording of the L2 .*: kernels are off by ([\d.]+)% and networks by ([\d.]+)%", page
    )
    product = re.search(r"In the worst of 36 pairs the median is ([\d.]+)% off", page)
    assert found is not None
    assert product is not None
    said = [float(off) for off in (*found.groups(), *product.groups())]
    assert said == pytest.approx([100.0 * KERNEL_OFF, 100.0 * NETWORK_OFF, 100.0 * PRODUCT_OFF])
