"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

OWN_STREAMS: Final = "streams of their own, without masks: {}"
BUDGET_ALONE: Final = "the whole budget of 14 a worker: {}"
MARKS: Final = (
    CriterionMark(
        "mixes in which ECLIP serves more than baseline",
        Kind.VACUOUS,
        "Without any mask all seven mixes serve more than on the baseline's one stream.",
        OWN_STREAMS.format("7"),
    ),
    CriterionMark(
        "mixes in which baseline serves more than KW-Prealloc",
        Kind.PREDICTED,
        "It hangs on what a hop between queues costs, which is a guess that no published figure was used for.",
    ),
    CriterionMark(
        "mixes in which KW-Prealloc serves more than KW-IOCTL",
        Kind.PREDICTED,
        "What a call for a mask costs is published for one kernel, and what a hop costs is a guess; no order was used.",
    ),
    CriterionMark(
        "ECLIP: most switches of a worker's request",
        Kind.DEFINITIONAL,
        "The budget of 14 is a constraint of the programme that is solved.",
    ),
    *(
        CriterionMark(
            f"ECLIP: switches of mix {mix}",
            Kind.VACUOUS,
            "The range, half to twice the published count, contains the budget itself.",
            BUDGET_ALONE.format(budget),
        )
        for mix, budget in {1: 42, 2: 28, 3: 42, 6: 28, 7: 42}.items()
    ),
    *(
        CriterionMark(
            f"ECLIP: switches of mix {mix}",
            Kind.PREDICTED,
            "Kernels a request come from another row of the table, and the range lies below the budget.",
            BUDGET_ALONE.format(budget),
        )
        for mix, budget in {4: 42, 5: 28}.items()
    ),
    CriterionMark(
        "ECLIP: mean gain in throughput, %",
        Kind.PREDICTED,
        "Nothing is fitted to it; it hangs on a baseline that is taken literally.",
        OWN_STREAMS.format("+48"),
    ),
    CriterionMark(
        "ECLIP: mean gain in requests a joule, %",
        Kind.PREDICTED,
        "Idle power and a hop are guesses that no published figure was used for.",
        OWN_STREAMS.format("+12"),
    ),
    CriterionMark(
        "ECLIP: mean change of board power, %",
        Kind.PREDICTED,
        "The power of a busy unit is the rest of the board's, and its sign was open.",
        OWN_STREAMS.format("+33"),
    ),
    CriterionMark(
        "mixes in which ECLIP serves most of all",
        Kind.PREDICTED,
        "Which scheduler is best in a mix was open, streams without masks among them.",
        "chance: 1 of 7",
    ),
    CriterionMark(
        "ECLIP: gain in throughput of mix 7, %",
        Kind.PREDICTED,
        "Nothing is fitted to it; it hangs on a baseline that is taken literally.",
        "its mean over the mixes: judged apart",
    ),
    CriterionMark(
        "ECLIP: gain in requests a joule of mix 7, %",
        Kind.PREDICTED,
        "Idle power and a hop are guesses that no published figure was used for.",
        "its mean over the mixes: judged apart",
    ),
)
