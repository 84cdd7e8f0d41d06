"""Renamed memory: what no longer waits for what, and what still does."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

import msgspec
import pytest

from gpusched_env.scenarios.building import load_workload
from gpusched_env.workload.memory import dependencies, graph_figures, with_own_storage
from gpusched_env.workload.workload import Op, OpKind, Segment, Variant

PROGRAMS = resources.files("gpusched_env.data") / "measurements/h200/programs"


def kernel(reads: Sequence[int], writes: Sequence[int]) -> Op:
    return Op(
        OpKind.KERNEL,
        index=0,
        duration_us=1.0,
        reads=tuple(Segment(storage, 0, 64) for storage in reads),
        writes=tuple(Segment(storage, 0, 64) for storage in writes),
    )


def waits(*ops: Op) -> list[tuple[int, ...]]:
    """For each operation of the renamed workload, those that it waits for."""
    program = msgspec.structs.replace(load_workload("bodies6_step_b2048"), variants=(Variant(ops=ops),))
    return dependencies(with_own_storage(program).variants[0].ops)


def test_a_result_waits_for_no_reader_of_what_lay_there_before() -> None:
    # 1 = f(0); 2 = g(1); then 1 is allocated again: 1 = f(0), which only a recycled storage makes wait for g.
    ops = kernel([0], [1]), kernel([1], [2]), kernel([0], [1]), kernel([1], [3])
    assert dependencies(ops) == [(), (0,), (1,), (2,)]
    assert waits(*ops) == [(), (0,), (), (2,)]


def test_what_is_written_in_place_keeps_its_name() -> None:
    ops = kernel([0], [1]), kernel([1], [1]), kernel([1], [2]), kernel([1], [1])
    assert waits(*ops) == dependencies(ops) == [(), (0,), (1,), (2,)]


def test_kernels_of_one_operator_share_its_result() -> None:
    ops = kernel([0], [1]), kernel([0], [1]), kernel([1], [2])
    assert waits(*ops) == dependencies(ops) == [(), (0,), (1,)]


def test_unknown_memory_stays_unknown() -> None:
    unknown = Op(OpKind.KERNEL, index=0, duration_us=1.0)
    assert waits(kernel([0], [1]), unknown, kernel([0], [2])) == [(), (0,), (1,)]


@pytest.mark.parametrize(
    "name",
    [*(f"bodies{bodies}_step_b32768" for bodies in (6, 9, 11, 20)), "bert_infer_b1_s128", "mobilenetv3_infer_b1"],
)
def test_it_is_what_a_recording_has_in_which_nothing_is_freed(name: str) -> None:
    with resources.as_file(PROGRAMS) as folder:
        again, held = (load_workload(str(folder / f"{name}{end}.workload.json.gz")) for end in ("", "-held"))
    assert graph_figures(with_own_storage(again)).levels == graph_figures(held).levels
