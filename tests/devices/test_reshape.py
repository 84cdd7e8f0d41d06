"""Kernels that do their work in another form: literal logs worked out by hand, and what is refused.

On the teaching GPU (4 SMs of one block) without latencies.
"""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scheduling.commands import Launch, Reshape, Synchronise, TilePolicy
from gpusched_env.scheduling.view import PendingColumn
from gpusched_env.workload.kernel import MOST_FORMS
from gpusched_env.workload.workload import GraphNode, Op, OpKind, TileNeeds
from tests.devices.problems import new_device
from tests.devices.programs import RECORD, SYNC, Grid, Kernels, build
from tests.devices.test_tiles import blocks, each_device, played, waves
from tests.devices.windows import kernel, workload
from tests.refusals import refused

KERNEL = OpKind.KERNEL


def product(*forms: tuple[Grid, float], consumer: Grid | None = None, **fields: object) -> Problem:
    """A kernel in its own grid and with other forms, by grid and time of a block; and a consumer of its tiles."""
    k, grids = Kernels(), [*forms, *([(consumer, 10.0)] if consumer else [])]
    for (columns, rows, slices), us in grids:
        index, _ = k.add(us, columns * rows * slices)
        k.table[index] = msgspec.structs.replace(k.table[index], grid=(columns, rows, slices))
    k.table[0] = msgspec.structs.replace(k.table[0], forms=tuple(range(1, len(forms))))
    ops = [Op(KERNEL, 0.0, 0, k.table[0].duration_us, stream=0), Op(RECORD, index=0, stream=0)]
    if consumer:
        last = len(k.table) - 1
        ops.append(Op(KERNEL, 0.0, last, k.table[last].duration_us, stream=1, tiles=0, needs=TileNeeds()))
    offered = {"commands": ["launch", "preempt", "synchronise", "reshape"], "timing": {}, **fields}
    return build(k, [*ops, SYNC], program_streams=2, **offered)  # type: ignore[arg-type]


ONE_AND_A_HALF = ((3, 2, 1), 10.0), ((4, 1, 1), 15.0), ((2, 2, 2), 6.0)
"""Six tiles in two waves of 10 us; four in one of 15; four of two slices, whose waves take 6 us."""


@each_device
def test_in_another_form_a_kernel_has_other_blocks() -> None:
    assert blocks(played(product(*ONE_AND_A_HALF), Launch(0))) == waves(0, (range(4), 0, 10), (range(2), 10, 20))
    in_one = played(product(*ONE_AND_A_HALF), Reshape(0, 0), Launch(0))
    assert blocks(in_one) == waves(0, (range(4), 0, 15))
    assert in_one.timeline.kernels.exact[:, 3].tolist() == [1]
    assert blocks(played(product(*ONE_AND_A_HALF), Reshape(0, 1), Launch(0))) == waves(
        0, (range(4), 0, 6), (range(4), 6, 12)
    )


@each_device
def test_a_form_is_synchronised_as_what_it_is() -> None:
    """The consumer's first row needs two of four tiles; in the form of two rows that is one wave of two blocks."""
    built = product(((2, 4, 1), 10.0), ((1, 2, 1), 25.0), consumer=(1, 2, 1))
    plain = played(built, Synchronise(1, TilePolicy("row")), Launch(0), Launch(1))
    # Eight tiles in two waves; its rows are the halves of them.
    assert blocks(plain) == waves(0, (range(4), 0, 10), (range(4), 10, 20)) + waves(1, (range(2), 20, 30))
    reshaped = played(built, Reshape(0, 0), Synchronise(1, TilePolicy("row")), Launch(0), Launch(1))
    assert blocks(reshaped) == waves(0, (range(2), 0, 25)) + waves(1, (range(2, 4), 0, 35))


@each_device
def test_views_show_the_forms_once() -> None:
    device = new_device()
    view = device.reset(product(*ONE_AND_A_HALF), 0)
    assert view is not None
    pending = view.pending
    assert (pending.forms.tolist(), pending.identity.tolist(), pending.blocks.tolist()) == ([2.0], [0.0], [6.0])
    shown = [[float(pending.array[0, first + k]) for k in range(5)] for first in _form_columns()]
    assert shown == [[15.0, 1.0, 4.0, 1.0, 1.0], [12.0, 2.0, 2.0, 2.0, 1.0], [0.0] * 5]
    device.apply(Reshape(0, 1))
    view = device.advance()
    assert view is not None
    assert (view.pending.forms.tolist(), view.pending.identity.tolist()) == ([0.0], [2.0])
    assert (view.pending.blocks.tolist(), view.pending.slices.tolist()) == ([8.0], [2.0])
    with refused(IllegalCommand, "launches"):
        device.apply(Reshape(0, 0))


def _form_columns() -> list[int]:
    return [PendingColumn[f"FORM{form}_US"] for form in range(1, MOST_FORMS + 1)]


@each_device
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (Reshape(0, 2), r"forms of launch 0 are 0\.\.1"),
        (Reshape(0, -1), r"forms of launch 0 are 0\.\.1"),
        (Reshape(7, 0), "launch 7 is not pending"),
        (Reshape(1, 0), r"its kernel has no other form; launches that may be given a form now: \[0\]"),
        (Reshape(0, 0.5), "form must be given in whole numbers"),  # type: ignore[arg-type]
    ],
)
def test_bad_forms_are_refused_and_change_nothing(command: Reshape, says: str) -> None:
    built = product(((2, 4, 1), 10.0), ((1, 2, 1), 25.0), ((2, 2, 1), 20.0), consumer=(1, 2, 1))
    device = new_device()
    device.reset(built, 0)
    before = device.view().pending.array.copy()
    with pytest.raises(IllegalCommand, match=says):
        device.apply(command)
    assert (device.view().pending.array == before).all()


@each_device
def test_a_kernel_whose_tiles_are_synchronised_keeps_its_form() -> None:
    built = product(((2, 4, 1), 10.0), ((1, 2, 1), 25.0), consumer=(1, 2, 1))
    device = new_device()
    device.reset(built, 0)
    device.apply(Synchronise(1, TilePolicy("row")))
    device.advance()
    with refused(IllegalCommand, "synchronised"):
        device.apply(Reshape(0, 0))


def test_forms_whose_tiles_do_not_match_are_refused() -> None:
    with refused(InputError, "multiple"):
        product(((2, 4, 1), 10.0), ((1, 3, 1), 25.0), consumer=(1, 2, 1))
    k = Kernels()
    op = k.op(10.0)
    k.table[0] = msgspec.structs.replace(k.table[0], forms=(1,))
    with refused(ValueError, "table's 1"):
        build(k, [op, SYNC])


@each_device
def test_where_no_form_is_offered_none_can_be_given() -> None:
    built = product(*ONE_AND_A_HALF, commands=["launch"])
    device = new_device()
    device.reset(built, 0)
    with refused(IllegalCommand, "offers"):
        device.apply(Reshape(0, 0))
    assert dataclasses.replace(built).knowledge.kernels[0].forms == (1, 2)


@each_device
def test_a_graph_of_one_kernel_has_no_other_form() -> None:
    """Its identity lies behind those of kernels."""
    graph = (GraphNode(KERNEL, 0, 1.0),)
    work = workload("w", [Op(OpKind.GRAPH, index=0), kernel(1.0)], graphs=[graph])
    tenant = {"name": "w", "workload": "w", "arrivals": {"kind": "backlog"}, "jobs": 1}
    scenario = make_scenario(
        {"name": "graph", "gpu": "toy-4sm", "horizon_us": 100.0, "tenants": [tenant], "commands": ["launch", "reshape"]}
    )
    device = new_device()
    device.reset(build_problem(scenario, workloads={"w": work}), 0)
    with refused(IllegalCommand, "kernel"):
        device.apply(Reshape(0, 0))
