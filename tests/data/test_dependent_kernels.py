"""Measured kernels by name: what a scenario's file may call them, with the grids and times that were measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env import compare
from gpusched_env.data.dependent_kernels import aligned, published
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem, load_workload
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.workload import OpKind
from tests.refusals import refused

SCENARIO = """
name: Pairs
gpu: v100-sxm
horizon_us: 1e6
commands: [launch, synchronise]
lookahead: 4
tenants:
- {name: model, workload: "%s", arrivals: {kind: backlog}, jobs: 2}
"""


def test_a_row_has_the_grids_and_times_that_were_measured() -> None:
    first, second = load_workload("mlp(model=gpt3_v100,tokens=1024)").kernels
    # Columns, rows, slices.
    assert (first.grid, second.grid) == ((24, 4, 1), (48, 4, 1))
    assert (first.duration_us, second.duration_us) == (1446.18, 1174.7)
    assert load_workload("mlp(model=gpt3_a100,tokens=1024)").gpu == "a100-sxm"
    four = load_workload("convolutions(network=vgg19_v100,channels=512,batch=8)")
    assert [kernel.grid for kernel in four.kernels] == [(4, 7, 4)] * 4
    # Without the round trips of a host that waits for each.
    assert sum(kernel.duration_us for kernel in four.kernels) == pytest.approx(284.78 - 4 * 8.5)


def test_attention_is_four_products_of_which_the_scores_need_two_matrices() -> None:
    made = load_workload("attention(model=gpt3_v100,tokens=2048)")
    assert [kernel.grid for kernel in made.kernels] == [(18, 8, 1), (16, 16, 1), (12, 16, 1), (48, 8, 1)]
    ops = [op for op in made.variants[0].ops if op.kind in (OpKind.KERNEL, OpKind.WAIT)]
    kernels = [op for op in ops if op.kind is OpKind.KERNEL]
    assert [(op.tiles, op.needs.kind, op.needs.fold) for op in kernels] == [
        (-1, "row", 1), (0, "product", 3), (1, "row", 1), (2, "row", 1)
    ]  # fmt: skip
    # The sums of values need all values, which the first product makes.
    (wait,) = (op for op in ops if op.kind is OpKind.WAIT)
    assert (wait.index, wait.stream) == (0, kernels[2].stream)
    # The four times and as many round trips are the measured total; the first two are measured.
    times_us = [kernel.duration_us for kernel in made.kernels]
    assert times_us[:2] == [1369.39 - 8.5, 258.11 - 8.5]
    assert sum(times_us) == pytest.approx(2372.72 - 4 * 8.5)


def measured_names() -> list[str]:
    """Names of all rows whose grids can be synchronised: those of each kernel are whole rows of the next one's."""
    mlps = [
        f"mlp(model={model},tokens={tokens})"
        for model, rows in published()["mlp"].items()
        if model.count("_") == 1
        for tokens, row in rows.items()
        if aligned(row)
    ]
    attention = [
        f"attention(model={model},tokens={tokens},keys={keys})"
        for model, by_keys in published()["attention"].items()
        for keys, rows in by_keys.items()
        for tokens in rows
    ]
    convolutions = [
        f"convolutions(network={network},channels={channels},batch={batch})"
        for network, by_channels in published()["conv"].items()
        for channels, rows in by_channels.items()
        for batch in rows
    ]
    return [*mlps, *attention, *convolutions]


def test_all_names_are_workloads_whose_kernels_can_be_synchronised() -> None:
    names = measured_names()
    assert len(names) == len(set(names)) == 130
    for name in names:
        assert [op.tiles for op in load_workload(name).variants[0].ops if op.duration_us][:2] == [-1, 0]


def test_a_scenario_s_file_names_them(tmp_path: Path) -> None:
    file = tmp_path / "pairs.yaml"
    file.write_text(SCENARIO % "mlp(model=llama_v100,tokens=2048)")
    costs = compare(str(file), ["pass-through", "cusync"], seeds=1)
    by_name = {name: costs.interval(name, "cost").mean for name in ("pass-through", "cusync")}
    assert by_name["cusync"] < by_name["pass-through"]
    assert [kernel.kernel.grid for kernel in build_problem(load_scenario(str(file))).kernels] == [
        (22, 8, 1),
        (32, 8, 1),
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mlp(model=gpt3_v100,tokens=1000)", "tokens is 1000; measured were 1, 2, 4, 8"),
        ("mlp(model=bert,tokens=1024)", "model"),
        ("convolutions(network=vgg19_v100,channels=64,batch=1)", "channels is 64; measured were 256, 512"),
        ("convolutions(network=resnet38_v100)", "missing"),
        ("attention(model=llama_v100,tokens=2048,keys=7)", "keys is 7; measured were 0, 1024, 2048"),
        ("attention(model=llama_v100,tokens=2048,keys=1024)", "tokens is 2048; measured were 1, 4"),
        ("mlp", r"expected mlp\(model=gpt3_v100,tokens=1024\)"),
    ],
)
def test_rows_that_were_not_measured_are_refused_with_their_place(name: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "pairs.yaml"
    file.write_text(SCENARIO % name)
    with pytest.raises(InputError, match=rf"pairs\.yaml: tenants\[0\].*{said}"):
        load_scenario(str(file))


def test_grids_of_which_one_s_rows_are_not_the_other_s_are_refused_where_they_are_used(tmp_path: Path) -> None:
    file = tmp_path / "pairs.yaml"
    file.write_text((SCENARIO % "mlp(model=gpt3_a100,tokens=1280)").replace("v100-sxm", "a100-sxm"))
    with refused(InputError, "5 x 96 tiles", "8 x", "x 48"):
        build_problem(load_scenario(str(file)))


def test_the_scenario_holds_out_every_row_with_equal_tiles_and_slices() -> None:
    sets = load_scenario("DependentKernels").workload_sets
    assert sets is not None
    held = [variant["model"].workload for variant in sets.held_out]
    assert len(held) == len(set(held)) == 62
    assert sum(name.startswith("mlp") for name in held) == 20
    drawn = ("chain(", "products(")
    assert all(variant["model"].workload.startswith(drawn) for variant in sets.train if variant)
