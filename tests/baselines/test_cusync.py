"""cuSync on toy pairs: what each policy makes of them, and that only kernels with consumers are held back."""

from __future__ import annotations

from typing import get_args

import pytest

from gpusched_env.baselines.cusync import CuSync, Policy
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import TileCosts
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import SYNCHRONISE
from gpusched_env.workload.workload import Op, TileNeeds
from tests.devices.programs import RECORD, SYNC, Kernels, build, chain
from tests.refusals import refused


def played(built: Problem, spec: str) -> Episode:
    return run_episode(make_scheduler(spec), built, make_device("compiled"), 0, record="kernels")


@pytest.mark.parametrize("policy", ["row", "tile", "strided"])
def test_two_products_of_six_tiles_take_three_waves_on_four_sms_instead_of_four(policy: str) -> None:
    built = chain((2, 3, 1), (2, 3, 1))
    assert played(built, "pass-through").end_us == 40.0
    assert played(built, f"cusync(policy={policy})").end_us == 30.0


def test_it_knows_strides_steps_and_shares() -> None:
    def end_us(spec: str, needs: TileNeeds) -> float:
        return played(chain((4, 1, 1), (1, 1, 1), us=(10.0, 8.0), needs=needs), spec).end_us

    # All four tiles are there at 10.
    for needs in (TileNeeds(fold=2), TileNeeds(steps=9), TileNeeds("share"), TileNeeds(fold=4)):
        assert {end_us(f"cusync(policy={policy})", needs) for policy in ("row", "tile", "strided")} == {18.0}


def test_a_policy_by_matrix_waits_for_those_that_are_read_and_otherwise_for_tiles() -> None:
    """Queries and keys are there at 10, values at 20; then a row of six tiles, of which four are there at 10."""
    scores = chain((6, 1, 1), (1, 1, 1), us=(10.0, 8.0), needs=TileNeeds("product", fold=3))
    row = chain((6, 1, 1), (1, 1, 1), us=(10.0, 12.0))

    def ends_us(policy: str) -> list[float]:
        return [played(built, f"cusync(policy={policy})").end_us for built in (scores, row)]

    assert {policy: ends_us(policy) for policy in get_args(Policy)} == {
        "row": [28.0, 32.0], "tile": [20.0, 24.0], "strided": [28.0, 24.0], "matrix": [20.0, 24.0]
    }  # fmt: skip
    assert played(scores, "cusync-predicted").end_us == 20.0


def test_options_are_those_of_the_command() -> None:
    costs = TileCosts(order_us=2.0, wait_kernel_us=3.0)
    built = chain((2, 3, 1), (2, 3, 1), costs=costs)
    assert played(built, "cusync(order=row-major)").end_us == 36.0
    # The consumer comes when the first wave is running, and is there before it ends.
    assert played(built, "cusync(wait_kernel=true)").end_us == 30.0
    needs = TileNeeds(lead=0.5)
    beside = chain((2, 1, 1), (2, 1, 1), needs=needs)
    assert (played(beside, "cusync(reorder=true)").end_us, played(beside, "cusync(reorder=false)").end_us) == (
        15.0,
        20.0,
    )


def test_a_kernel_that_has_had_a_consumer_is_held_back_for_the_next_one() -> None:
    k = Kernels()
    first, second = k.op(10.0, 4), k.op(10.0, 2, host_us=5.0, stream=1, tiles=0)
    other = k.op(1.0, stream=2)
    jobs = {"tenant": {"jobs": 2, "arrivals": {"kind": "backlog"}}, "timing": {}, "commands": ["launch", "synchronise"]}
    built = build(k, [first, Op(RECORD, index=0), second, other, SYNC], program_streams=3, **jobs)
    starts = played(built, "cusync").timeline.kernels
    launched = dict(zip(starts.column("id").tolist(), starts.column("launched_us").tolist(), strict=True))
    # The first time nobody knows. The second job comes at 20, and its consumer 5 us later.
    assert [launched[kernel] for kernel in (0.0, 1.0, 3.0, 4.0)] == [0.0, 5.0, 25.0, 25.0]
    impatient = played(built, "cusync(hold_us=1)").timeline.kernels
    launched = dict(zip(impatient.column("id").tolist(), impatient.column("launched_us").tolist(), strict=True))
    assert launched[3.0] == 21.0


@pytest.mark.parametrize("spec", ["cusync(policy=strided)", "cusync-predicted"])
def test_a_consumer_that_comes_behind_a_launched_producer_stays_in_stream_order(spec: str) -> None:
    """The command would be legal: the launch is on its way for 10 us."""
    k = Kernels()
    first, second = k.op(10.0, 6), k.op(10.0, 6, host_us=5.0, stream=1, tiles=0)
    offered = {"timing": {"launch_latency_us": 10.0}, "commands": ["launch", "synchronise"]}
    built = build(k, [first, Op(RECORD, index=0), second, SYNC], program_streams=2, **offered)
    episode = played(built, spec)
    assert (len(episode.timeline.decisions), episode.end_us) == (2, 50.0)


def test_unknown_options_are_refused() -> None:
    with refused(InputError, "policies"):
        CuSync(policy="column")  # type: ignore[arg-type]


def test_the_predicted_one_leaves_pairs_in_stream_order_that_gain_nothing() -> None:
    """Whole waves; then waves that overlap."""
    whole = chain((4, 1, 1), (4, 1, 1))
    episode = played(whole, "cusync-predicted")
    assert len(episode.timeline.decisions) == 2
    overlapping = played(chain((2, 3, 1), (2, 3, 1)), "cusync-predicted")
    assert (len(overlapping.timeline.decisions), overlapping.end_us) == (3, 30.0)


def test_the_predicted_one_counts_what_synchronising_costs() -> None:
    """Three waves of 15 us for the consumer instead of four of 10."""
    dear = chain((2, 3, 1), (2, 3, 1), costs=TileCosts(post_us=5.0, wait_us=5.0))
    assert played(dear, "cusync(policy=tile)").end_us > 40.0
    assert played(dear, "cusync-predicted").end_us == 40.0


def test_the_predicted_one_picks_the_order_that_a_fused_product_needs() -> None:
    halves = chain((6, 1, 1), (1, 1, 1), us=(10.0, 3.0), needs=TileNeeds(fold=2))
    # By number, tiles 0 to 3 are there at 10: those of the first step only. Grouped, those of two.
    assert played(halves, "cusync(policy=tile)").end_us == 22.0
    assert played(halves, "cusync-predicted").end_us == 21.0


def test_the_predicted_one_keeps_back_a_consumer_whose_producer_comes_late() -> None:
    """The first pair gains nothing; the second one's consumer would otherwise be there before its producer."""
    built = chain((4, 1, 1), (2, 3, 1), (2, 3, 1), costs=TileCosts(wait_kernel_us=1.0))
    episode = played(built, "cusync-predicted")
    assert episode.timeline.decisions.column("command").tolist().count(SYNCHRONISE) == 1
    assert (episode.done, episode.end_us) == (True, 40.0)


def test_a_search_is_never_worse_than_what_it_tries() -> None:
    for grids in ([(2, 3, 1), (2, 3, 1)], [(4, 1, 1), (4, 1, 1)], [(6, 2, 2), (5, 2, 1), (3, 2, 1)]):
        built = chain(*grids, reward={"turnaround": 1.0})
        found = played(built, "cusync-search").metrics.cost
        tried = ("pass-through", "cusync", "cusync(policy=tile)", "cusync(policy=strided,order=column-major)")
        assert all(found <= played(built, spec).metrics.cost for spec in tried)
