"""Random cases: valid, reproducible, and with everything in them; moves and stored counterexamples."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.case import (
    Case,
    KernelCounterexample,
    RandomCommands,
)
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.draw import draw_case
from gpusched_env.experiments.fuzz.duel import play
from gpusched_env.experiments.fuzz.engines import engine_of_a_trace
from gpusched_env.experiments.fuzz.moves import Move, command_of, move_of
from gpusched_env.experiments.fuzz.moves.launch import LaunchMove
from gpusched_env.experiments.fuzz.moves.others import Act, BadWait, WaitMove
from gpusched_env.experiments.fuzz.moves.partition import PartitionMove
from gpusched_env.experiments.fuzz.moves.preempt import PreemptMove
from gpusched_env.experiments.fuzz.moves.reject import RejectMove
from gpusched_env.experiments.fuzz.outcome import case_features
from gpusched_env.experiments.fuzz.shrink import without_unused
from gpusched_env.experiments.fuzz.stored import (
    Difference,
    read_counterexample,
    simpler_numbers,
    tree_of,
    write_counterexample,
)
from gpusched_env.experiments.fuzz.workloads import kernels_of
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import (
    ORDERS,
    POLICIES,
    Command,
    Launch,
    Partition,
    Preempt,
    Reject,
    SetPartition,
    Wait,
)
from gpusched_env.scheduling.view import View
from gpusched_env.workload.serving import Batching, ListedLengths
from gpusched_env.workload.tenant import Backlog, Tenant
from gpusched_env.workload.workload import OpKind, Workload
from tests.refusals import refused

CASES = 200
OWN = [2, 3]
"""Rows of the scheduler's own streams."""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [draw_case(0, episode) for episode in range(CASES)]


def test_an_episode_depends_on_seed_and_number_only(cases: list[Case]) -> None:
    assert [draw_case(0, episode) for episode in (3, 17, 199)] == [cases[3], cases[17], cases[199]]
    assert draw_case(1, 3) != cases[3]


def test_cases_are_valid_and_keep_their_meaning_when_stored(cases: list[Case]) -> None:
    for case in cases[:80]:
        problem = case.problem()
        stored = msgspec.json.decode(msgspec.json.encode(case), type=Case)
        assert stored == case
        own = case.self_contained()
        assert set(own.workloads) == {tenant.workload for tenant in case.scenario.tenants}
        spelled_out = own.problem()
        assert [p.alone_us for p in spelled_out.programs] == [p.alone_us for p in problem.programs]
        assert [k.duration_us for k in spelled_out.kernels] == [k.duration_us for k in problem.kernels]


def test_cases_contain_everything(cases: list[Case]) -> None:
    features: Counter[str] = Counter()
    for case in cases:
        features.update(case_features(case, case.problem()))
        features.update(tenant.arrivals.__class__.__name__ for tenant in case.scenario.tenants)
    rare = {
        "recorded workload", "more than 8 tenants", "after another episode", "windows of memory that is not known",
        "windows that the application checks", "hosts that only launch", "programs captured into graphs",
        "streams with masks", "queues that take turns",
    }  # fmt: skip
    expected = {
        "random moves", "environment", "modified GPU", "one context a tenant", "streams share a channel",
        "equal tenants", "tenants launched as graphs", "host copies", "no host time", "decision time",
        "short launch queue", "tenants with several streams", "stream priorities", "streams of the scheduler's own",
        "several host threads", "hosts in one process",
        "waits for events", "host waits for streams", "graphs", "graphs with branches", "copies in graphs", "children",
        "tiles", "blocks with spread", "wrong profiles", "look-ahead", "look-ahead above 4", "variants", "snapshot",
        "windows", "persistent threads", "kernels that a cold L2 makes longer", "programs that the L2 keeps",
        "serving engines",
        "detail jobs", "detail kernels", "detail blocks", "Backlog", "Bursts", "ClosedLoop", "Periodic", "Poisson",
        "Regimes",
    }  # fmt: skip
    assert {name for name in expected if features[name] < CASES / 25} == set()
    assert {name for name in rare if features[name] < 3} == set()


def test_programs_of_tiles_are_mostly_played_by_who_synchronises_them(cases: list[Case]) -> None:
    """Every policy and order, wait kernels, and consumers that are preempted."""
    chosen = [case for case in cases if isinstance(case.player, RandomCommands) and case.player.oldest > 0.0]
    assert len(chosen) > CASES / 20
    happened = Counter(name for case in chosen for name in play(case, ReferenceDevice, ReferenceDevice).features)
    policies, orders = (f"policy {kind}" for kind in POLICIES[1:]), (f"order {order}" for order in ORDERS)
    names = (
        *policies,
        *orders,
        "wait kernels",
        "preempted consumers of tiles",
        "launched producers synchronised",
        "tiles of several slices",
    )
    assert {name: happened[name] for name in names if happened[name] < 3} == {}


def test_blocks_keep_their_spread_however_a_case_is_adapted(cases: list[Case]) -> None:
    adapted = [case for case in cases if any(case.spreads) and None not in (case.task_us, case.scenario.window)]
    assert adapted
    for case in adapted:
        problem = case.problem()
        assert problem.window == case.scenario.window
        assert problem.kernels[0].block["spread"].tolist() == [case.spreads[0]]
        assert len({kernel.footprint for kernel in problem.kernels}) == 1, "all need what the greediest one does"


def test_what_a_captured_case_launches_is_graphs(cases: list[Case]) -> None:
    captured = [case for case in cases if case.capture is not None]
    for case in captured:
        ops = [op for program in case.problem().programs for job in program.variants for op in job.ops]
        assert any(op.nodes for op in ops)
        assert not any(op.kind is OpKind.KERNEL for op in ops)


@pytest.fixture(scope="module")
def toy_view() -> View:
    """At 10 us: the first kernel of batch runs, the next one and that of urgent can be launched."""
    device = ReferenceDevice()
    device.reset(build_problem(load_scenario("Toy", commands=["launch", "preempt"], horizon_us=5000)), 0)
    device.apply(Launch(0))
    view = device.advance()
    device.apply(Wait(10.0))
    view = device.advance()
    assert view is not None
    return device.view()


def test_moves_name_kernels_by_their_place(toy_view: View) -> None:
    launchable = [int(i) for i in toy_view.pending.id[toy_view.pending.launchable == 1.0]]
    running = [int(i) for i in toy_view.running.id]
    assert (len(launchable), len(running)) == (2, 1)
    expected: list[tuple[Move, Command]] = [
        (LaunchMove(pick=5, priority=-1, partition=(1, 2)), Launch(launchable[1], -1, Partition(1, 2))),
        (LaunchMove(stream=5), Launch(launchable[0], stream=3)),
        (LaunchMove(stream=-1), Launch(launchable[0], stream=0)),
        (LaunchMove(), Launch(launchable[0])),
        (LaunchMove(among="none"), Launch(1_000_000)),
        (LaunchMove(among="running"), Launch(running[0])),
        (PreemptMove(mode="save"), Preempt(running[0], "save")),
        (PreemptMove(mode="save", partition=(3, 2)), Preempt(running[0], "save", Partition(3, 2))),
        (PreemptMove(among="pending", mode="drain"), Preempt(launchable[0], "drain")),
        (PartitionMove(tenant=1, partition=(0, 3)), SetPartition(1, Partition(0, 3))),
        (RejectMove(pick=3), Reject(1, 0)),
        (RejectMove(among="none", pick=1), Reject(1, 1_000_000)),
        (WaitMove(), Wait()),
        (WaitMove(until_us=25.0), Wait(25.0)),
        (WaitMove(until_us=5.0), Wait(toy_view.time_us)),
        (BadWait(past_us=1.0), Wait(toy_view.time_us - 1.0)),
    ]
    for move, command in expected:
        assert command_of(move, toy_view, OWN) == command
    nan = command_of(BadWait(), toy_view)
    assert isinstance(nan, Wait)
    assert math.isnan(nan.until_us)
    with refused(TypeError, "device"):
        command_of(Act(), toy_view)


def test_commands_have_moves(toy_view: View) -> None:
    launchable, running = int(toy_view.pending.id[0]), int(toy_view.running.id[0])
    for command in (
        Launch(launchable, -1, Partition(1, 2)),
        Launch(launchable, stream=3),
        Launch(launchable, stream=0),
        Reject(1, 0),
        Preempt(running, "reset"),
        Preempt(running, "save", Partition(3, 2)),
        SetPartition(0, None),
        Wait(),
        Wait(33.0),
    ):
        assert command_of(move_of(command, toy_view, OWN), toy_view, OWN) == command


def test_a_move_without_a_kernel_means_nothing(toy_view: View) -> None:
    device = ReferenceDevice()
    device.reset(build_problem(load_scenario("Toy")), 0)
    assert command_of(PreemptMove(), device.view()) is None


@pytest.mark.parametrize(
    ("value", "simpler"),
    [
        (12, [0, 1, 6, 9, 11]),
        (1, [0]),
        (0, []),
        (123.456, [0.0, 1.0, 100.0, 120.0, 123.0]),
        (5.0, []),
        (0.25, [0.0, 1.0, 0.2]),
    ],
)
def test_simpler_numbers_come_to_an_end(value: float, simpler: list[float]) -> None:
    assert simpler_numbers(value) == simpler


def test_kernels_and_workloads_that_nobody_uses_go(cases: list[Case]) -> None:
    case, name = next(
        (c, c.scenario.tenants[0].workload)
        for c in cases
        if len(c.workloads) > 1 and with_unused(c.self_contained().workloads[c.scenario.tenants[0].workload])
    )
    tree = tree_of(case)
    tree["scenario"]["tenants"] = tree["scenario"]["tenants"][:1]
    kept = msgspec.convert(without_unused(tree), Case)
    assert list(kept.workloads) == [name]
    before, after = msgspec.convert(tree, Case).workloads[name], kept.workloads[name]

    def launched(workload: Workload) -> list[str]:
        return [workload.kernels[row].name for row, _ in kernels_of(workload)]

    def formed(workload: Workload) -> dict[str, list[str]]:
        """Names of the forms of what is launched, and of the forms of these."""
        forms = {k.name: [workload.kernels[form].name for form in k.forms] for k in workload.kernels}
        found, left = {}, launched(workload)
        while left:
            name = left.pop()
            found[name] = forms[name]
            left += [name for names in found.values() for name in names if name not in found]
        return found

    assert launched(after) == launched(before)
    assert formed(after) == formed(before)
    assert {kernel.name for kernel in after.kernels} == set(formed(before)) < {k.name for k in before.kernels}
    assert len(after.graphs) < len(before.graphs)


def test_forms_of_kernels_stay_with_them() -> None:
    """Of five kernels the third one is launched, whose form is the fifth, which has the second for a form."""
    case = next(case for case in (draw_case(0, episode) for episode in range(100)) if case.workloads and not case.env)
    name = case.scenario.tenants[0].workload
    tree = tree_of(case)
    plain = {key: value for key, value in tree["workloads"][name]["kernels"][0].items() if key != "forms"}
    kernels = [plain | {"name": f"k{row}"} for row in range(5)]
    kernels[2]["forms"], kernels[4]["forms"] = [4], [1]
    op = [int(OpKind.KERNEL), 0.0, 2, 1.0]
    tree["workloads"] = {
        name: tree["workloads"][name] | {"kernels": kernels, "graphs": [], "variants": [{"ops": [op]}]}
    }
    tree["scenario"]["tenants"] = tree["scenario"]["tenants"][:1]
    kept = without_unused(tree)["workloads"][name]
    assert [(kernel["name"], kernel.get("forms", [])) for kernel in kept["kernels"]] == [
        ("k1", []),
        ("k2", [2]),
        ("k4", [0]),
    ]
    assert kept["variants"][0]["ops"][0][2] == 1


def test_memory_goes_with_what_it_matters_to(cases: list[Case]) -> None:
    def memory(tree: dict[str, Any]) -> list[Any]:
        works = msgspec.convert(without_unused(tree), Case).workloads.values()
        return [(op.reads, op.writes) for work in works for variant in work.variants for op in variant.ops]

    tree = tree_of(next(case for case in cases if case.scenario.window is not None))
    known = memory(tree)
    assert any(reads for reads, _ in known)
    tree["scenario"]["window"] = None
    assert memory(tree | {"capture": {}}) == known
    assert set(memory(tree)) == {(None, None)}


def with_unused(workload: Workload) -> bool:
    """Whether it has a graph that is not launched, and a kernel."""
    ops = [op for variant in workload.variants for op in variant.all_ops]
    launched = {op.index for op in ops if op.kind is OpKind.GRAPH}
    return len(launched) < len(workload.graphs) and len({row for row, _ in kernels_of(workload)}) < len(
        workload.kernels
    )


def example(case: Case) -> KernelCounterexample:
    difference = Difference(kind="view", where="view.x", step=3, time_us=1.5, expected="1", found="2")
    return KernelCounterexample(device="a", against="b", seed=0, episode=5, difference=difference, case=case)


def test_a_trace_has_a_request_that_its_engine_can_hold() -> None:
    """However small the cache is, and whatever the trace's window cuts off."""
    batching = Batching(
        max_batch=2, cache_tokens=1, prompt=ListedLengths(values=(9,)), answer=ListedLengths(values=(1,))
    )
    engine = Tenant(name="engine", workload="any", arrivals=Backlog())
    cut = 0
    for number in range(60):
        trace: Any = engine_of_a_trace(Dice(number), engine, batching, 10.0).arrivals
        kept = [place for place, time_us in enumerate(trace.times_us) if time_us >= trace.from_us]
        cut += kept[0] > 0
        assert min(trace.prompts[place] + trace.answers[place] for place in kept) == 2
    assert cut > 0


def test_counterexamples_are_stored(cases: list[Case], tmp_path: Path) -> None:
    for case in cases[:20]:
        write_counterexample(example(case.self_contained()), tmp_path / "case.json")
        assert read_counterexample(tmp_path / "case.json", KernelCounterexample) == example(case.self_contained())


def test_a_damaged_counterexample_is_named_with_its_field(cases: list[Case], tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    with refused(InputError, "case.json", "read"):
        read_counterexample(path, KernelCounterexample)
    write_counterexample(example(cases[0]), path)
    path.write_text(path.read_text().replace('"horizon_us": ', '"horizon_us": -'))
    with refused(InputError, "case.json", "horizon_us"):
        read_counterexample(path, KernelCounterexample)


def test_a_new_scheduler_changes_no_other_players_draw() -> None:
    """Known episodes stay as they are while the list of schedulers grows."""
    names = [f"scheduler-{i}" for i in range(20)]
    before = [Dice(0, episode).pick_by_name(names) for episode in range(1000)]
    after = [Dice(0, episode).pick_by_name(["new", *names]) for episode in range(1000)]
    assert all(b == a for b, a in zip(before, after, strict=True) if a != "new")
    assert 30 <= after.count("new") <= 70
    assert min(Counter(before).values()) >= 25
