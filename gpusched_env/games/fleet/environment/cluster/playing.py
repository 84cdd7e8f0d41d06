"""An episode, step by step and in compiled code: the next pod that fits, its candidates, and what a choice does."""

from __future__ import annotations

from typing import Any

from gpusched_env.compiling import native, procedure
from gpusched_env.games.fleet.cluster.placing import place_pod
from gpusched_env.games.fleet.environment.cluster.copies import At, Total, copy_of
from gpusched_env.games.fleet.environment.cluster.demand import note_holes, unfillable_milli
from gpusched_env.games.fleet.environment.cluster.encoding import encode
from gpusched_env.games.fleet.environment.cluster.shortlist import list_candidates


@procedure
def is_over(one: Any) -> bool:
    """Whether all pods have been placed or dropped."""
    return bool(one.at[At.POD] >= len(one.arrivals))


@procedure
def seek_pod(one: Any) -> None:
    """Go on to the next pod that fits somewhere, and list its candidates; what fits nowhere is dropped."""
    while not is_over(one):
        kind = one.arrivals[one.at[At.POD]]
        list_candidates(one.state, one.pods, one.typical, one.demand, one.kept, one.scores, one.shortlist, kind)
        if one.shortlist.count[0] > 0:
            return
        one.at[At.DROPPED] += 1
        one.at[At.POD] += 1


@procedure
def place_candidate(one: Any, place: int) -> float:
    """Place the pod on a candidate; gives the per cent of the cluster's GPUs that it takes.

    What is no candidate is counted, and stands for the first one.
    """
    if place >= one.shortlist.count[0]:
        one.at[At.ILLEGAL] += 1
        place = 0
    kind, node, mask = one.arrivals[one.at[At.POD]], one.shortlist.node[place], one.shortlist.mask[place]
    note_holes(one.state, one.demand, node, mask, -1)
    place_pod(one.state, one.pods, one.typical, one.kept, node, kind, mask)
    note_holes(one.state, one.demand, node, mask, 1)
    one.demand.unfillable[node] = unfillable_milli(one.state, one.pods, one.demand, node)
    asked = one.pods.gpus[kind] * one.pods.gpu_milli[kind]
    one.demand.model_used[one.state.model[node]] += asked
    one.totals[Total.CPU_LEFT] -= one.pods.cpu_milli[kind]
    one.totals[Total.MEMORY_LEFT] -= one.pods.memory_mib[kind]
    one.at[At.POD] += 1
    one.at[At.DECISIONS] += 1
    return float(100.0 * asked / one.totals[Total.GPU])


@procedure
def observe(one: Any, rows: Any) -> None:
    """Fill in the observation; zeros at the end."""
    if is_over(one):
        rows[:] = 0.0
        return
    pod = one.at[At.POD]
    encode(
        one.state, one.pods, one.typical, one.demand, one.scores, one.shortlist, one.totals, one.arrivals[pod],
        pod, len(one.arrivals), rows,
    )  # fmt: skip


@native()
def begin_copy(copies: Any, number: int, rows: Any) -> None:
    """Go to the first decision of a copy, and show it in ``rows``, (CANDIDATES, WIDTH)."""
    one = copy_of(copies, number)
    seek_pod(one)
    observe(one, rows)


@native()
def step_copies(copies: Any, actions: Any, rewards: Any, over: Any, rows: Any) -> None:
    """Take an action in each copy whose episode is not over.

    Args:
        actions: (copies,) places in the shortlists.
        rewards: (copies,) per cent of the GPUs, filled in.
        over: (copies,) filled in.
        rows: (copies, CANDIDATES, WIDTH) filled in.
    """
    for number in range(len(actions)):
        one = copy_of(copies, number)
        rewards[number] = 0.0
        if not is_over(one):
            rewards[number] = place_candidate(one, actions[number])
            seek_pod(one)
        observe(one, rows[number])
        over[number] = is_over(one)
