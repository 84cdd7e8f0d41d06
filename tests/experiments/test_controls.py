"""What a mechanism is worth to pairs of networks: the tables of controls, by hand."""

from __future__ import annotations

from msgspec.structs import replace

from gpusched_env.experiments.lib.recorded import GraphPair
from gpusched_env.experiments.validate.tables import (
    CONTROLS,
    ENDS,
    L2,
    WAVES,
    control_tables,
    ending_together,
    in_full_waves,
    without_l2,
)
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

PAIR = GraphPair(mode="streams", fg="kept", bg="other", fg_p50_us=20.0, bg_p50_us=10.0, fg_solo_us=10.0, bg_solo_us=8.0)
"""Slowdowns of 2 and 1.25."""


def network(name: str, cold: float) -> Workload:
    kernel = Kernel(name="k", grid=(1, 1, 1), block=(32, 1, 1), registers=16, duration_us=2.0, waves="even")
    variant = Variant(ops=(Op(OpKind.KERNEL, 1.0, 0, 2.0, cold=cold),))
    return Workload(
        name=name, gpu="h200-sxm", source="test", kernels=(kernel,), iteration_us=(10.0,), variants=(variant,),
        footprint_bytes=1000,
    )  # fmt: skip


NETWORKS = {"kept": network("kept", 0.5), "other": network("other", 0.0)}


def test_errors_with_and_without_are_of_the_same_pairs() -> None:
    """With: 2.2 and 1.25 (10 and 0 % off). Without the L2: 1.6 and 1.25. Without even waves: 2.2 and 1.0."""
    complete = [(PAIR, (2.2, 1.25))]
    controls = {L2: [(PAIR, (1.6, 1.25))], WAVES: [(PAIR, (2.2, 1.0))], ENDS: [(PAIR, (2.4, 1.25))]}
    l2, waves, ends = control_tables(complete, controls, NETWORKS)
    assert (l2.title, waves.title, ends.title) == ("Without the L2", "Without even waves", "Without uneven ends")
    assert ends.rows[0] == ["foreground", "1", *["10.00%", "10.00%", "+10.00%"], *["20.00%", "20.00%", "+20.00%"]]
    right = ["0.00%", "0.00%", "+0.00%"]
    assert l2.rows[:2] == [
        ["kept", "1", "10.00%", "10.00%", "+10.00%", "20.00%", "20.00%", "-20.00%"],
        ["others", "1", *right, *right],
    ]
    assert waves.rows[:2] == [
        ["foreground", "1", *["10.00%", "10.00%", "+10.00%"] * 2],
        ["background", "1", *right, "20.00%", "20.00%", "-20.00%"],
    ]
    assert [row[:2] for row in (l2.rows[2], waves.rows[2])] == [["all", "2"]] * 2
    assert control_tables(complete, {}, NETWORKS) == []


def test_a_control_switches_its_mechanism_off_and_is_none_where_that_is_off_anyway() -> None:
    assert list(CONTROLS) == [L2, WAVES, ENDS]
    full = in_full_waves(NETWORKS)
    assert full is not None
    assert {kernel.waves for workload in full.values() for kernel in workload.kernels} == {"full"}
    assert full["kept"].variants == NETWORKS["kept"].variants
    assert in_full_waves(full) is None
    together = ending_together(NETWORKS)
    assert together is not None
    assert {kernel.waves for workload in together.values() for kernel in workload.kernels} == {"together"}
    assert ending_together(together) is None
    assert ending_together(full) is None
    assert in_full_waves(together) == full
    lost = without_l2(NETWORKS)
    assert lost is not None
    assert lost["kept"] == replace(network("kept", 0.0), footprint_bytes=0)
    assert without_l2(lost) is None
