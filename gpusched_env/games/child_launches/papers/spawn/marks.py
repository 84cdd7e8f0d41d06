"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

BY_CHILDREN: Final = (
    "What a warp takes before its loop was fitted to the cycles an extra child of four programs, and an earlier value, "
    "4,000 cycles as well, came from those that are bound by queues."
)
FOUR_BARS: Final = "Four of its bars are in what the prologue was fitted to."
BY_STRUCTURE: Final = "Inputs were chosen by launches and occupancies, never by a speed-up."
MARKS: Final = (
    CriterionMark("baseline-dp, geometric mean", Kind.FITTED, BY_CHILDREN, "the flat program: 1.00, inside"),
    CriterionMark("baseline-dp, mean error of the bars", Kind.FITTED, BY_CHILDREN),
    CriterionMark(
        "offline-search, geometric mean",
        Kind.PREDICTED,
        f"{BY_STRUCTURE} Errors of bars have both signs, and cancel. {FOUR_BARS}",
        "the flat program: 1.00",
    ),
    CriterionMark(
        "spawn, geometric mean",
        Kind.PREDICTED,
        f"{BY_STRUCTURE} Open choices are those that come nearest to the launches of Figure 18.",
        "the flat program: 1.00",
    ),
    CriterionMark(
        "spawn over offline-search, geometric means",
        Kind.PREDICTED,
        "It is the quotient of two other criteria, and says little beyond them.",
        "every child is launched: 0.68",
    ),
    CriterionMark(
        "spawn over baseline-dp, geometric means",
        Kind.FITTED,
        f"{BY_CHILDREN} It is the quotient of two other criteria.",
        "every child is launched: 1.00",
    ),
    CriterionMark(
        "SA-thaliana over flat, *",
        Kind.PREDICTED,
        f"{BY_STRUCTURE} The paper has three values, of which at most two can come out.",
        "the flat program: 1.00",
    ),
    CriterionMark(
        "BFS-graph500, million cycles, flat",
        Kind.FITTED,
        "That L1 keeps the list of edges, as the hits of L2 say, was decided with this figure in view: otherwise 15.3.",
    ),
    CriterionMark(
        "BFS-graph500, million cycles, baseline-dp", Kind.FITTED, BY_CHILDREN, "the flat program: 8.21, inside"
    ),
    CriterionMark(
        "BFS-graph500, million cycles, offline-search",
        Kind.PREDICTED,
        BY_STRUCTURE,
        "every child is launched: 5.89, inside",
    ),
    CriterionMark(
        "BFS-graph500, million cycles, spawn",
        Kind.VACUOUS,
        "It is within 18 % without SPAWN.",
        "every child is launched: 5.89, inside",
    ),
    CriterionMark("cycles an extra child, *", Kind.FITTED, BY_CHILDREN, "children that cost nothing: 0"),
    CriterionMark("offline-search, mean error of the bars", Kind.PREDICTED, f"{BY_STRUCTURE} {FOUR_BARS}"),
    CriterionMark("spawn, mean error of the bars", Kind.PREDICTED, BY_STRUCTURE),
    CriterionMark(
        "benchmarks whose best share is found", Kind.PREDICTED, f"{BY_STRUCTURE} Shares of the sweep are given."
    ),
    CriterionMark(
        "sizes of children: bars that move as published",
        Kind.PREDICTED,
        "No bar of Figure 7 was used.",
        "sizes that change nothing: 0",
    ),
    CriterionMark(
        "own queues: bars that move as published",
        Kind.PREDICTED,
        "Only how SSSP deals its threads was chosen with its bars of Figure 8 in view, which hardly move.",
        "queues that change nothing: 0",
    ),
    CriterionMark(
        "*, mean error of the occupancy on * benchmarks",
        Kind.PREDICTED,
        "Benchmarks whose inputs were chosen by these occupancies are left out.",
    ),
)
