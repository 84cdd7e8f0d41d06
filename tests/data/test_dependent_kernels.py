"""Kernels that cuSync's authors measured, as workloads."""

from __future__ import annotations

import pytest

from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import load_workload
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.workload import OpKind, TileNeeds


def test_an_mlp_has_the_grids_and_times_of_its_row() -> None:
    made = load_workload("mlp(model=gpt3_v100,tokens=512)")
    assert [(kernel.grid, kernel.duration_us) for kernel in made.kernels] == [
        ((24, 2, 2), 805.49),
        ((48, 2, 1), 758.55),
    ]
    assert made.gpu == "v100-sxm"
    producer, _, consumer, *_ = made.variants[0].ops
    assert (producer.tiles, consumer.tiles, consumer.needs.kind, consumer.needs.fold) == (-1, 0, "row", 1)
    # 96 blocks, one an SM: two waves of 379 us, of which 13 need nothing of the producer.
    assert consumer.needs.lead == pytest.approx(13.0 / (758.55 / 2))
    assert load_workload("mlp(model=llama_v100,tokens=1024)").variants[0].ops[2].needs.fold == 2


def test_convolutions_are_two_or_four_equal_ones_without_the_host_s_round_trips() -> None:
    made = load_workload("convolutions(network=resnet38_v100,channels=64,batch=4)")
    (first, second) = made.kernels
    assert (first.grid, second.grid) == ((1, 196, 2), (1, 196, 2))
    # 78.5 us for two, of which each takes 3.5 us to launch and 5 to be waited for.
    assert first.duration_us == second.duration_us == pytest.approx(78.5 / 2 - 8.5)
    vgg = load_workload("convolutions(network=vgg19_v100,channels=256,batch=8)").variants[0].ops
    assert [op.needs for op in vgg if op.kind is OpKind.KERNEL] == [TileNeeds(steps=9)] * 4


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mlp(model=gpt3_v100,tokens=513)", "513 was not measured; "),
        ("mlp(model=gpt4,tokens=512)", "gpt4"),
        ("mlp(tokens=512)", "model"),
        ("convolutions(network=vgg19_v100,channels=64,batch=8)", "64 was not measured"),
        ("convolutions", "expected convolutions"),
    ],
)
def test_rows_that_were_not_measured_are_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_workload(name)


def test_the_scenario_holds_out_every_row_with_equal_tiles_and_slices() -> None:
    sets = load_scenario("DependentKernels").workload_sets
    assert sets is not None
    held = [variant["model"].workload for variant in sets.held_out]
    assert len(held) == len(set(held)) == 62
    assert sum(name.startswith("mlp") for name in held) == 20
    assert all(variant["model"].workload.startswith("chain(") for variant in sets.train if variant)
