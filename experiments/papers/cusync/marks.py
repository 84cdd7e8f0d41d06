"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

BY_WAVES: Final = (
    "Blocks last as long as those of kernels in stream order, and costs come from Table V and were timed on an H100; "
    "no gain that is scored was used."
)
NO_GAIN: Final = "no gain anywhere: {}"
MARKS: Final = (
    CriterionMark("toy, us: *", Kind.DEFINITIONAL, "Six tiles on four SMs are solved by hand, and made for it."),
    CriterionMark("MLPs, RowSync: median error, points", Kind.PREDICTED, BY_WAVES, NO_GAIN.format("4.5")),
    CriterionMark(
        "MLPs, TileSync: median error, points",
        Kind.VACUOUS,
        "That nothing gains anywhere is off by 4.35 points in the median, and inside.",
        NO_GAIN.format("4.35, inside"),
    ),
    CriterionMark("MLPs, *: rank correlation", Kind.PREDICTED, BY_WAVES, NO_GAIN.format("none")),
    CriterionMark(
        "MLPs, RowSync: signs right",
        Kind.VACUOUS,
        "All nine rows that are clear are gains, so that a gain everywhere passes.",
        "a gain everywhere: 9, inside",
    ),
    CriterionMark(
        "MLPs, TileSync: signs right",
        Kind.PREDICTED,
        "One of nine clear rows is a loss, and none of them was used.",
        "a gain everywhere: 8",
    ),
    CriterionMark(
        "MLPs, *: 90th percentile on *, costs fitted on the other",
        Kind.PREDICTED,
        "Costs are fitted on the other model's rows only.",
        NO_GAIN.format("15.3 to 19.0"),
    ),
    CriterionMark(
        "convolutions, RowSync: median error, points",
        Kind.PREDICTED,
        "Costs are counted in operations that were timed elsewhere; what a block pays for its tile was set by Table V.",
        f"{NO_GAIN.format('8.5')}; the mean gain everywhere: 3.8",
    ),
    CriterionMark(
        "convolutions, RowSync: share of signs right",
        Kind.VACUOUS,
        "28 of 31 clear rows are gains, so that a gain everywhere passes.",
        "a gain everywhere: 0.90, inside",
    ),
    CriterionMark(
        "convolutions, RowSync: share of signs right, mean of that of gains and that of losses",
        Kind.PREDICTED,
        "Losses weigh as much as gains, so that a gain everywhere does not pass; costs are counted in operations that "
        "were timed elsewhere.",
        "a gain everywhere: 0.50",
    ),
    CriterionMark(
        "*, whole: sizes in the published range",
        Kind.VACUOUS,
        "One size of seven or nine is enough, and gains that change with the size pass a range of 4 to 17 points "
        "somewhere.",
        NO_GAIN.format("0"),
    ),
)
