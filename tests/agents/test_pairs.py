"""The rule of pairs: what its weights make it do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.policies.pairs import (
    PREEMPT_FIRST,
    SHAPES,
    FormTerm,
    OrderRow,
    OrderTerm,
    PairReleaseTerm,
    PolicyRow,
    PolicyTerm,
    PreemptTerm,
    WaitTerm,
)
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.devices import make_device
from gpusched_env.envs.encoding import LOG_SCALE
from gpusched_env.envs.features import TABLES, PendingFeature, RunningFeature, TenantFeature
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scheduling.commands import ORDERS, PREEMPT
from gpusched_env.workload.kernel import MOST_FORMS
from tests.agents.made_up import made_up
from tests.refusals import refused

SCENARIO = load_scenario("DependentKernels")
SHARED = load_scenario(
    "DependentKernelsShared", commands=("launch", "preempt", "reshape", "synchronise"), preemption=("save",)
)
P, R, T = PendingFeature, RunningFeature, TenantFeature
ROWS = {"policy": PolicyRow, "order": OrderRow}
TERMS: dict[str, Any] = {
    "policy": PolicyTerm,
    "order": OrderTerm,
    "wait": WaitTerm,
    "release": PairReleaseTerm,
    "form": FormTerm,
    "preempt": PreemptTerm,
}
WAYS = 2 * len(ORDERS)
FIRST = 1 + (1 + MOST_FORMS) * SCENARIO.lookahead


def pairs(scenario: Scenario = SCENARIO, **weights: float) -> ExportedPolicy:
    """The rule with some weights by array, row and term: ``policy_TILE_WAITS=-1``, ``wait_ONE=1``."""
    arrays = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    for name, weight in weights.items():
        array, rest = name.split("_", 1)
        if array in ROWS:
            row = next(row for row in ROWS[array] if rest.startswith(row.name + "_"))
            arrays[array][row, TERMS[array][rest.removeprefix(row.name + "_")]] = weight
        else:
            arrays[array][TERMS[array][rest]] = weight
    return ExportedPolicy(made_up(scenario, "pairs").info, arrays)


def row(**columns: float) -> dict[PendingFeature, float]:
    """A pair of kernels of 500 us each, of two waves: what its row of observations holds."""
    duration = np.log1p(500.0) / LOG_SCALE
    default = {"SYNCHRONISABLE": 1.0, "PROFILED": duration, "PRODUCER_PROFILED": duration, "WAVES": 2 / 3, "WAITS": 0.5}
    return {P[name]: value for name, value in {**default, **columns}.items()}


def numbers(policy: ExportedPolicy, *rows: dict[PendingFeature, float]) -> list[float]:
    """One an action, where the pending slots hold some rows."""
    tables = {"pending": (4, len(P)), "running": (8, len(TABLES["running"])), "tenants": (1, len(TABLES["tenants"]))}
    observation = {name: np.zeros((1, *shape), np.float32) for name, shape in tables.items()}
    observation["device"] = np.zeros((1, len(TABLES["device"])), np.float32)
    for slot, values in enumerate(rows):
        for column, value in values.items():
            observation["pending"][0, slot, column] = value
    return [float(number) for number in policy.numbers(observation)[0]]


def nothing_shown() -> dict[str, NDArray[np.float32]]:
    """The observation of two tenants that have nothing."""
    tables = {"pending": 2 * SHARED.lookahead, "running": 8, "tenants": 2, "device": 1}
    shown = {name: np.zeros((1, rows, len(TABLES[name])), np.float32) for name, rows in tables.items()}
    return shown | {"device": shown["device"][:, 0]}


def way(slot: int, policy: PolicyRow, order: str = "native", *, wait_kernel: bool = False) -> int:
    """The action of a way to synchronise."""
    return FIRST + slot * len(PolicyRow) * WAYS + policy * WAYS + 2 * ORDERS.index(order) + wait_kernel


def best(policy: ExportedPolicy, *rows: dict[PendingFeature, float]) -> int:
    return int(np.argmax(numbers(policy, *rows)))


def test_without_weights_it_goes_by_predicted_gains() -> None:
    policy, first = pairs(), {P.LAUNCHABLE: 1.0}
    assert best(policy, first, row()) == 1, "nothing is gained: the oldest is launched"
    assert best(policy, first, row(GAIN_ROW=0.01)) == way(1, PolicyRow.ROW)
    assert best(policy, first, row(GAIN_ROW=0.01, GAIN_TILE=0.02)) == way(1, PolicyRow.TILE)
    grouped = row(GAIN_ROW=0.01, GAIN_STRIDED_GROUPED=0.02, LATE=1.0)
    assert best(policy, first, grouped) == way(1, PolicyRow.STRIDED, "grouped", wait_kernel=True)
    assert best(policy, first, row(GAIN_TILE_COLUMNS=0.1)) == way(1, PolicyRow.TILE, "column-major")
    both = numbers(policy, row(GAIN_ROW=0.01), row(GAIN_ROW=0.03))
    assert both[way(1, PolicyRow.ROW)] - both[way(0, PolicyRow.ROW)] == pytest.approx(2.0, rel=1e-3)


def test_weights_say_what_synchronising_costs_and_saves() -> None:
    gains = row(GAIN_ROW=0.01, GAIN_TILE=0.02)
    # A microsecond is 0.4 % of a block of 250 us, and a block waits eight times.
    dear = numbers(pairs(policy_TILE_WAITS=-0.3), gains)
    assert dear[way(0, PolicyRow.TILE)] - dear[way(0, PolicyRow.ROW)] == pytest.approx(1.0 - 0.3 * 3.2, rel=1e-2)
    assert best(pairs(policy_TILE_WAITS=-0.4), gains) == way(0, PolicyRow.ROW)
    assert best(pairs(policy_ROW_BLOCKS=-3.0, policy_TILE_BLOCKS=-6.0), gains) == 0
    # 10 us of both kernels' millisecond are 1 %.
    assert best(pairs(policy_ROW_LAUNCHES=0.5), row()) == way(0, PolicyRow.ROW)
    counter = row(GAIN_ROW=0.01, GAIN_ROW_COLUMNS=0.02)
    assert best(pairs(order_COLUMN_MAJOR_BLOCKS=-2.0), counter) == way(0, PolicyRow.ROW, "column-major")
    assert best(pairs(order_COLUMN_MAJOR_BLOCKS=-3.0), counter) == way(0, PolicyRow.ROW)
    assert best(pairs(wait_ONE=1.5), gains) == way(0, PolicyRow.TILE, wait_kernel=True)


def test_kernels_take_the_form_that_saves_most_before_anything_else() -> None:
    """A form of one slice and one wave of 250 us, and one of two slices; the kernel has two waves of 250 us."""
    first = 1 + SCENARIO.lookahead
    half = float(np.log1p(250.0) / LOG_SCALE)
    short = {"FORM1_PROFILED": half, "FORM1_WAVES": 0.5, "FORM1_SLICES": 0.2, "SLICES": 0.2}
    forms = row(**short, FORM2_PROFILED=half, FORM2_WAVES=0.5, FORM2_SLICES=1 / 3, FORM1_GAIN=0.1, FORM2_GAIN=0.2)
    assert best(pairs(), {P.LAUNCHABLE: 1.0}, forms | row(GAIN_ROW=0.5, **short) | forms) == first + MOST_FORMS + 1
    # Twice the slices are 6.9, and 10 % are saved.
    assert best(pairs(form_SLICES=-1.5), forms) == first
    assert best(pairs(form_ONE=-30.0), forms) == 0
    # 50 % less alone counts while a more urgent tenant has a job.
    urgent = {**forms, P.MORE_URGENT_ACTIVE: 1.0}
    assert (best(pairs(form_ACTIVE_DURATION=1.0), forms), best(pairs(form_ACTIVE_DURATION=1.0), urgent)) == (
        first + 1,
        0,
    )


def test_consumers_can_be_held_back_for_a_more_urgent_tenant() -> None:
    policy = pairs(release_CONSUMER=-1.0)
    consumer = {P.LAUNCHABLE: 1.0, P.POLICY: 0.5}
    assert best(policy, consumer) == 1
    assert best(policy, {**consumer, P.MORE_URGENT_ACTIVE: 1.0}) == 0
    assert best(policy, {P.LAUNCHABLE: 1.0, P.MORE_URGENT_ACTIVE: 1.0}) == 1
    long = {P.LAUNCHABLE: 1.0, P.MORE_URGENT_ACTIVE: 1.0, P.PROFILED: 0.5}
    assert (best(pairs(release_DURATION=-0.4), long), best(pairs(release_DURATION=-0.5), long)) == (1, 0)


def test_what_runs_is_preempted_for_a_more_urgent_tenant() -> None:
    """Two tenants of two pending slots each; actions to preempt follow 8 of launches."""
    first = 1 + 2 * SHARED.lookahead

    def number(policy: ExportedPolicy, jobs: float = 0.2, **columns: float) -> float:
        """Of preempting what stands in running slot 1."""
        shown = nothing_shown()
        shown["tenants"][0, :, T.URGENCY] = 0.5, 1.0
        shown["tenants"][0, :, T.JOBS] = 0.2, jobs
        for name, value in {"PRESENT": 1.0, "URGENCY": 0.5, "STARTED": 1.0, **columns}.items():
            shown["running"][0, 1, R[name]] = value
        return float(policy.numbers(shown)[0, first + 1])

    always = pairs(SHARED)
    assert number(always) == PREEMPT_FIRST + 1.0
    assert number(pairs(SHARED, preempt_ONE=-1.0)) == -1.0
    nothing = {"jobs": 0.0}, {"STARTED": 0.0}, {"PREEMPTING": 1.0}, {"URGENCY": 1.0}, {"PRESENT": 0.0}
    assert [number(always, **columns) for columns in nothing] == [-1.0] * len(nothing)
    long = pairs(SHARED, preempt_ONE=-2.0, preempt_LEFT=1.0, preempt_CONSUMER=0.5)
    assert number(long, LEFT=0.2) == -1.0
    assert number(long, LEFT=0.2, POLICY=0.5) == pytest.approx(PREEMPT_FIRST + 0.3, rel=1e-6)
    assert number(long, LEFT=0.5) == PREEMPT_FIRST + 1.0


def test_what_is_preempted_is_held_back_as_long_as_the_more_urgent_tenant_has_work() -> None:
    """Where kernels can be preempted. Of eight pending slots the first has a kernel."""

    def number(policy: ExportedPolicy, active: float) -> float:
        shown = nothing_shown()
        for column, value in ((P.LAUNCHABLE, 1.0), (P.MORE_URGENT_ACTIVE, active)):
            shown["pending"][0, 0, column] = value
        return float(policy.numbers(shown)[0, 1])

    assert (number(pairs(SHARED), 0.0), number(pairs(SHARED), 1.0)) == (1.0, -1.0)
    assert number(pairs(SHARED, release_ONE=1.5), 1.0) == 0.5


@pytest.mark.parametrize("shared", [False, True])
def test_it_decides_alike_in_environments_and_as_a_scheduler_on_both_devices(shared: bool) -> None:
    weights = {"policy_ROW_LAUNCHES": 0.6, "policy_TILE_LAUNCHES": 0.6, "policy_TILE_WAITS": -0.5}
    of = SHARED if shared else SCENARIO
    policy = pairs(of, **weights, order_GROUPED_ONE=-0.5)
    scenario = of if shared else load_scenario(of, tenants={"model": {"jobs": 4}})
    costs, commands = evaluate_costs(policy, scenario, 2).costs, set()
    for device in ("compiled", "reference"):
        for seed, cost in enumerate(costs):
            played = run_episode(
                LearnedScheduler(policy), build_problem(scenario), make_device(device), seed, record="kernels"
            )
            assert episode_metrics(played).cost == pytest.approx(cost, rel=1e-9)
            commands |= set(played.timeline.decisions.column("command").tolist())
    assert (PREEMPT in commands) == shared


def test_it_needs_tiles_to_synchronise() -> None:
    with refused(InputError, "synchronises"):
        made_up("Toy", "pairs")
