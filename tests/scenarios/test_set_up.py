"""What schedulers ask of problems."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scenarios.set_up import PLAIN, SetUp, problem_for, set_up, set_up_of
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.scheduling.commands import WAIT, Command
from gpusched_env.scheduling.view import View
from tests.refusals import refused


class Waiting:
    """Asks for nothing."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None: ...

    def decide(self, view: View) -> Command:
        return WAIT


def test_who_asks_for_nothing_gets_the_problem_itself() -> None:
    built = build_problem(load_scenario("InferenceBesideTraining"))
    assert set_up_of(Waiting()) is PLAIN
    assert problem_for(Waiting(), built) is built
    assert set_up(built, SetUp(commands=("launch",), contexts="shared", graphs="opened")) is built


def test_a_field_that_there_is_not_names_the_right_one() -> None:
    with refused(InputError, "'context'", "contexts"):
        SetUp(context="per-tenant")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("attribute", "value", "right"),
    [
        ("contexts", "per-tenant", r"set_up = SetUp\(contexts="),
        ("slice_us", 100.0, r"set_up = SetUp\(slice_us="),
        ("setup", SetUp(masks=True), "call it set_up"),
        ("set_up", {"masks": True}, "must be a SetUp"),
    ],
)
def test_what_nobody_would_read_is_an_error(attribute: str, value: object, right: str) -> None:
    wrong = type("Wrong", (Waiting,), {attribute: value})
    with pytest.raises(InputError, match=right):
        problem_for(wrong(), build_problem(load_scenario("Toy")))


@pytest.mark.parametrize(
    "given",
    [
        {"contexts": "own"},
        {"graphs": "closed"},
        {"slice_us": 0.0},
        {"slice_us": float("nan")},
        {"interception_us": -1.0},
        {"interception_us": float("nan")},
        {"commands": ("preempt", "kill")},
    ],
)
def test_values_out_of_range_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(given)).removesuffix("s")):
        SetUp(**given)  # type: ignore[arg-type]


def test_everything_is_applied_to_the_scenario_and_its_gpu() -> None:
    offered = ("launch", "reject")
    built = build_problem(load_scenario("InferenceBesideTraining", host_contention=0.3, commands=offered))
    needs = SetUp(
        contexts="shared",
        slice_us=700.0,
        own_processes=True,
        commands=("preempt", "partition"),
        uses=lambda scenario: [command for command in scenario.commands if command not in ("partition", "reject")],
        interception_us=2.0,
        masks=True,
    )
    made = set_up(built, needs)
    assert made.gpu.timing.slice_us == 700.0
    assert made.gpu.timing.partition_change_us == 0.0
    assert made.host_contention == (0.0, 0.0)
    assert made.scenario.commands == ("launch", "preempt")
    assert made.scenario.decision_us == built.scenario.decision_us + 2.0
    assert built.gpu.timing.slice_us != 700.0, "the problem itself is as it was"


def test_a_set_up_is_sent_and_changed_like_any_record() -> None:
    needs = SetUp(commands=("preempt",), masks=True)
    assert pickle.loads(pickle.dumps(needs)) == needs
    assert replace(needs, masks=False) == SetUp(commands=("preempt",))


def two_masks(scenario: Scenario, gpu: GpuSpec) -> list[tuple[int, int] | None]:
    return [(0, gpu.sms // 2), None]


def test_streams_of_the_scheduler_s_own_replace_the_scenario_s() -> None:
    built = build_problem(load_scenario("Toy", streams=5))
    made = set_up(built, SetUp(streams=two_masks))
    assert [(stream.tenant, stream.mask) for stream in made.streams[-2:]] == [(-1, (0, 2)), (-1, None)]
    assert [stream.mask for stream in made.knowledge.streams[-2:]] == [(0, 2), None]
    assert made.knowledge.own_streams == made.scenario.own_streams == 2
    assert set_up(built, SetUp(streams=two_masks)) is made
    assert set_up(built, SetUp(streams=lambda scenario, gpu: [None] * 5)) is built


@pytest.mark.parametrize("mask", [(-1, 2), (4, 1), (0, 0), (0, 5)])
def test_masks_that_the_gpu_has_not_are_refused(mask: tuple[int, int]) -> None:
    with refused(InputError, "SM", "in 0..3", "1..4"):
        set_up(build_problem(load_scenario("Toy")), SetUp(streams=lambda scenario, gpu: [mask]))


def test_a_window_has_no_masked_streams() -> None:
    needs = SetUp(streams=two_masks, window=lambda offered, gpu: KernelWindow())
    with refused(InputError, "streams"):
        set_up(build_problem(load_scenario("KernelGraph")), needs)
