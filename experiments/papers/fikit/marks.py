"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

RECORDED: Final = "Host times, gaps and synchronisations are recorded, and no speed-up was used for a constant."
IN_TABLE: Final = "switched off as its name says, in the table of claims"
MARKS: Final = (
    CriterionMark(
        "more than half of the cases above 3.4, rtx-3090, processes, 3 services, *",
        Kind.DEFINITIONAL,
        "Four contexts share time slices, so that a service that always has work takes four times its time alone, "
        "whatever FIKIT does; how many services the paper had is not known.",
        IN_TABLE,
    ),
    CriterionMark(
        "more than half of the cases above 3.4, rtx-3090, processes, 1 service, *", Kind.PREDICTED, RECORDED, IN_TABLE
    ),
    CriterionMark(
        "more than half of the cases above 3.4, rtx-3090, processes, 2 services, *", Kind.PREDICTED, RECORDED, IN_TABLE
    ),
    CriterionMark("more than half of the cases above 3.4, h100-sxm, *", Kind.PREDICTED, RECORDED, IN_TABLE),
    CriterionMark("speed-ups, *", Kind.PREDICTED, RECORDED, IN_TABLE),
    CriterionMark(
        "gaps are filled, rtx-3090, *",
        Kind.PREDICTED,
        "Gaps are recorded, and the threshold is the one that is remembered; the criterion is our own.",
        IN_TABLE,
    ),
    CriterionMark(
        "gaps are filled, h100-sxm, *",
        Kind.DEFINITIONAL,
        "The threshold of 3 us was put below most gaps so that they are filled, and the criterion is our own.",
        IN_TABLE,
    ),
    CriterionMark("low-priority ratio, *", Kind.PREDICTED, RECORDED, IN_TABLE),
    CriterionMark(
        "overhead, *",
        Kind.DEFINITIONAL,
        "The cost of an interception, 1 us, is an assumption.",
        IN_TABLE,
    ),
)
