"""Generated kernel graphs: names, determinism, parameters, and how they compare with the recorded ones."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.catalogue import FAMILIES, generated_figures, recorded_figures
from gpusched_env.workload.generated_names import IrregularGraph, irregular_graph, is_irregular
from gpusched_env.workload.irregular_graphs import irregular
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.memory import SMALL_BLOCKS, graph_figures
from gpusched_env.workload.workload import Op, OpKind, Segment, Variant, Workload, decode_workload, encode_workload

FAMILY_NAMES = [family for families in FAMILIES.values() for family in families]


def kernels(workload: Workload, variant: int = 0) -> list[Op]:
    return [op for op in workload.variants[variant].ops if op.kind is OpKind.KERNEL]


def test_figures_of_a_graph_solved_by_hand() -> None:
    shapes = [
        Kernel(name=str(n), grid=(n, 1, 1), block=(32, 1, 1), registers=32, duration_us=1.0) for n in (10, 40, 41)
    ]

    def op(kernel: int, duration_us: float, reads: list[int], write: int) -> Op:
        touched = tuple(Segment(storage, 0, 4) for storage in reads)
        return Op(OpKind.KERNEL, 0.0, kernel, duration_us, reads=touched, writes=(Segment(write, 0, 4),))

    ops = (op(0, 1.0, [], 1), op(1, 2.0, [1], 2), op(2, 4.0, [1], 3), Op(OpKind.SYNC), op(2, 1.0, [2, 3], 4))
    workload = Workload(
        name="w", gpu="h100-sxm", source="", kernels=tuple(shapes), variants=(Variant(ops=ops),), iteration_us=(1.0,)
    )
    found = graph_figures(workload)
    assert (found.kernels, found.levels, found.depth) == (4, 3, 0.75)
    assert found.parallelism == pytest.approx(8.0 / 6.0)
    assert (found.small, found.blocks, found.duration_us, found.segments) == (0.5, 40.5, 1.5, 2.0)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("figure", ["depth", "parallelism", "small", "blocks", "duration_us", "long_us", "segments"])
def test_generated_graphs_cover_the_range_of_the_recorded_ones(kind: str, figure: str) -> None:
    recorded = [getattr(row, figure) for row in recorded_figures(kind)]
    generated = [getattr(row, figure) for family in FAMILIES[kind] for row in generated_figures(family)]
    assert min(generated) <= min(recorded)
    assert max(recorded) <= max(generated)


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_a_seed_is_one_workload_in_every_process(family: str) -> None:
    name = f"irregular(family={family},seed=5,kernels=40)"
    code = (
        "import hashlib, sys; from gpusched_env.workload.irregular_graphs import irregular\n"
        "from gpusched_env.workload.workload import encode_workload\n"
        "print(hashlib.sha256(encode_workload(irregular(sys.argv[1]))).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True)
    content = encode_workload(irregular(name))
    assert done.stdout.strip() == hashlib.sha256(content).hexdigest()
    assert decode_workload(content, "memory") == irregular(name)
    assert irregular(name.replace("seed=5", "seed=6")).variants != irregular(name).variants


@pytest.mark.parametrize("family", FAMILY_NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_generated_workloads_are_sound(family: str, seed: int) -> None:
    gpu = load_gpu("h100-sxm")
    workload = irregular(f"irregular(family={family},seed={seed},kernels=120)")
    for kernel in workload.kernels:
        assert footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes, kernel.name).blocks_per_sm >= 1
    for variant in range(len(workload.variants)):
        ops = kernels(workload, variant)
        assert len(ops) == 120
        for op in ops:
            assert op.reads is not None
            assert op.writes
            assert all(segment.first < segment.end for segment in (*op.reads, *op.writes))
            assert op.duration_us == pytest.approx(workload.kernels[op.index].duration_us, rel=0.2)
    assert workload.variants[0].ops[-1].kind is OpKind.SYNC


def test_parameters_do_what_they_say() -> None:
    few, many = (irregular(f"irregular(family=cells,seed=1,kernels={n})") for n in (50, 1900))
    assert (len(kernels(few)), len(kernels(many))) == (50, 1900)
    for share in (0.0, 1.0):
        workload = irregular(f"irregular(family=wired,seed=1,small={share})")
        assert {kernel.blocks <= SMALL_BLOCKS for kernel in workload.kernels} == {share == 1.0}
    for family in FAMILY_NAMES:

        def parallelism(width: int, family: str = family) -> float:
            names = (f"irregular(family={family},seed={seed},width={width},kernels=200)" for seed in range(6))
            return sum(graph_figures(irregular(name)).parallelism for name in names) / 6

        assert parallelism(8) > 1.2 * parallelism(1)


def test_inputs_of_dynamic_networks_take_other_branches() -> None:
    def touched(family: str) -> list[Any]:
        workload = irregular(f"irregular(family={family},seed=2,width=4)")
        return [[(op.index, op.reads, op.writes) for op in kernels(workload, v)] for v in range(3)]

    first, second, third = touched("dynamic")
    assert first != second != third
    for family in ("physics", "cells", "wired"):
        first, second, third = touched(family)
        assert first == second == third
    durations = [[op.duration_us for op in kernels(irregular("irregular(family=wired,seed=2)"), v)] for v in range(2)]
    assert durations[0] != durations[1]


def test_names() -> None:
    graph = IrregularGraph(family="cells", seed=7, small=0.5)
    assert irregular_graph(" irregular( family = cells, seed=7,small=0.5, )") == graph
    assert [is_irregular(name) for name in ("irregular(", "irregular", "irregular.json", "resnet50_infer_b1")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("irregular", r"workload 'irregular': expected irregular\(family=physics,seed=3\)"),
        ("irregular(seed=3", "expected irregular"),
        ("irregular(seed=3)", "missing required field `family`; required are family, seed"),
        ("irregular(family=phisics,seed=3)", r"family: Invalid enum value 'phisics'; did you mean 'physics'\?"),
        ("irregular(family=cells,seed=x)", "seed: Expected `int`, got `str`"),
        ("irregular(family=cells,seed=-1)", "seed: Expected `int` >= 0"),
        ("irregular(family=cells,seed=1,kernels=4)", "kernels: Expected `int` >= 8"),
        ("irregular(family=cells,seed=1,small=2)", "small: Expected `float` <= 1"),
        ("irregular(family=cells,seed=1,with=2)", r"unknown field `with`; did you mean 'width'\?"),
        ("irregular(family=cells,seed=1,seed=2)", "seed is given twice"),
        ("irregular(cells,seed=1)", "'cells' is no parameter; expected NAME=VALUE"),
    ],
)
def test_wrong_names_are_told_what_would_be_right(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        irregular(name)
