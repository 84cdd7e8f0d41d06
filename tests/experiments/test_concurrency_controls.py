"""Claims of Gilman and Walls beside controls in which a mechanism is switched off."""

from __future__ import annotations

import pytest

from gpusched_env.experiments.papers.concurrency import Paper
from gpusched_env.experiments.papers.concurrency.claims import CLAIMS
from gpusched_env.experiments.papers.concurrency.controls import (
    BLOCKS,
    CONTROLS,
    DESCRIPTIONS,
    HOSTS,
    SHORT,
    claims_with,
    controls_table,
)
from gpusched_env.experiments.papers.concurrency.runs import (
    BOUND_US,
    MECHANISMS,
    PAPERS,
    SAVED,
    SWITCHED_OFF,
    UNCONTENDED,
    ConcurrencyRun,
)
from tests.experiments.test_concurrency import made_up, side

WAITS = "Priority streams: running blocks are not preempted, requests wait for them"
COMPOUNDS = "Priority streams: the delay compounds over a request's kernels, beyond that of a slice"
BELOW = "Fine-grained preemption: turnaround below all of them"
BOTH = "No mechanism gives both low turnaround and high utilisation"


def verdicts(paper: Paper, claim: str) -> dict[str, str]:
    """By what is switched off."""
    return {row.off: row.verdict for row in paper.controls if row.claim == claim}


def test_every_claim_that_is_judged_has_a_control_or_is_a_description() -> None:
    judged = {claim.text for claim in CLAIMS if claim.judge is not None}
    assert judged == set(CONTROLS) | set(DESCRIPTIONS) == set(SHORT)
    assert not set(CONTROLS) & set(DESCRIPTIONS)
    assert all(any(control.own for control in of) for of in CONTROLS.values())


def test_what_is_switched_off_is_the_mechanism_alone() -> None:
    """Hosts of one process slow each other as before; without contention the GPU differs in nothing else."""
    saved, streams = (ConcurrencyRun(*PAPERS, name, BOUND_US).problem() for name in (SAVED, "priority streams"))
    assert saved.host_contention == streams.host_contention
    plain, without = (ConcurrencyRun(*PAPERS, name, BOUND_US).problem() for name in ("MPS", UNCONTENDED))
    assert SWITCHED_OFF[UNCONTENDED] == MECHANISMS["MPS"]
    assert plain.gpu.contention.issue
    assert not without.gpu.contention.issue
    assert not without.gpu.contention.dram
    assert (plain.gpu.timing, plain.gpu.sms) == (without.gpu.timing, without.gpu.sms)
    assert [kernel.kernel for kernel in plain.kernels] == [kernel.kernel for kernel in without.kernels]


def test_claims_that_fail_without_their_mechanism_are_shown() -> None:
    paper = made_up()
    assert verdicts(paper, WAITS) == {BLOCKS.off: "shown", HOSTS.off: "rests on it"}
    assert verdicts(paper, BELOW) == {"preemption: priorities alone, hosts apart as under preemption": "shown"}
    assert verdicts(paper, BOTH) == {"": "description"}
    assert [row.holds for row in paper.controls if row.claim == BOTH] == [None]


def test_a_claim_that_comes_out_without_its_mechanism_is_not_shown() -> None:
    paper = made_up(**{"priority_streams,_hosts_apart": {"turnaround_us": 4500.0}})
    assert list(verdicts(paper, BELOW).values()) == ["not shown"]
    assert [row.holds for row in paper.controls if row.claim == BELOW] == [False]
    blocks = made_up(**{"priority_streams,_blocks_saved": {"turnaround_us": 7900.0, "waiting_us": 3.0}})
    assert verdicts(blocks, WAITS)[BLOCKS.off] == "not shown"
    assert verdicts(blocks, COMPOUNDS) == {BLOCKS.off: "not shown", HOSTS.off: "rests on it"}
    assert COMPOUNDS not in claims_with(blocks.controls, "shown")


def test_a_claim_that_does_not_come_out_is_off_whatever_the_control_says() -> None:
    paper = made_up(priority_streams={"waiting_us": 0.0})
    assert verdicts(paper, WAITS)[BLOCKS.off] == "off"


def test_a_comparison_with_what_stands_in_is_told_apart() -> None:
    (row,) = (row for row in made_up().controls if row.claim.startswith("Time slicing: the poorest"))
    assert (row.verdict, row.holds, row.without) == ("compared", True, False)


@pytest.mark.parametrize("mechanism", ["priority_streams", "priority_streams,_blocks_saved"])
def test_where_seeds_disagree_nothing_is_told(mechanism: str) -> None:
    """Slices take 5,000 us: priority streams are quicker, or their control is slower, from the third seed on."""
    turnaround_us = 4900.0 if mechanism == "priority_streams" else 8100.0
    paper = made_up(first=2, **{mechanism: {"turnaround_us": turnaround_us}})
    (row,) = (row for row in paper.controls if row.claim == COMPOUNDS and row.own)
    assert (row.verdict, row.holds) == ("undecided", None)


def test_the_page_begins_with_what_is_shown_and_what_is_not() -> None:
    paper = made_up(**{"priority_streams,_hosts_apart": {"turnaround_us": 4500.0}})
    paper.sides = [side(1.0, 1.0)]
    assert not paper.holds
    page = paper.markdown()
    assert "predictions come out; 7 claims fail without their mechanism;" in page
    assert "come out without it as well, which says nothing of it: priority streams less predictable" in page
    assert "Only where hosts of one process slow each other come out: delays compound; order of turnarounds." in page
    (claims,) = (table.rows for table in paper.below() if table.title == "Claims and controls")
    assert next(row[-1] for row in claims if row[0] == "O7" and row[1].startswith(BELOW)) == "not shown"
    table = controls_table(paper.controls)
    assert [one[-1] for one in table.rows if one[1] == BOTH] == ["description"]
