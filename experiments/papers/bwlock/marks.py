"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

BY_CLOSED_FORM: Final = "The rule that is simulated has this share as its closed form, which is solved by hand."
CHARGED: Final = (
    "A process that is charged for the time that it stood still gives turns to others by the rule itself; the range "
    "asks for no more than that."
)
MARKS: Final = (
    CriterionMark(
        "histo, two Cortex hogs (fitted)",
        Kind.FITTED,
        "Kappa, what a byte of the cores costs, is set by this number.",
    ),
    CriterionMark(
        "histo, two Denver hogs (fitted)",
        Kind.FITTED,
        "The demand of a hog on a Denver core is set by this number.",
    ),
    CriterionMark(
        "kernel *, two Denver hogs",
        Kind.VACUOUS,
        "All five ranges contain 1.71, what the fitted sum alone gives to every kernel.",
        "every kernel slowed as the sum: 1.71",
    ),
    CriterionMark(
        "histo, three Cortex hogs",
        Kind.PREDICTED,
        "Kappa is set by two hogs, and the exponent by what spmv and lbm stay within, which ask for what is assumed.",
        "the exponent of the GPU's own traffic, 4: 5.21",
    ),
    CriterionMark(
        "histo and sad among the two that are slowed most",
        Kind.DEFINITIONAL,
        "Sad is assumed to ask for as much as histo, and all others for less.",
    ),
    CriterionMark(
        "histo, three hogs",
        Kind.FITTED,
        "The exponent is set by histo beside three hogs; two hogs are fitted to 2.36, and the range has no upper end.",
    ),
    CriterionMark(
        "sad, three hogs",
        Kind.DEFINITIONAL,
        "Sad is assumed to ask for as much as histo, because both exceed the axis that this criterion is read off.",
    ),
    *(
        CriterionMark(
            f"{name}, three hogs",
            Kind.PREDICTED,
            "What it asks for is assumed by its class, kappa and exponent come from histo; that it stays within the "
            "axis of the figure is a prediction, though no hogs at all would pass as well.",
            f"no hogs: 1.00, inside; exponent 4: {slower}",
        )
        for name, slower in (("bfs", "1.83, inside"), ("spmv", "4.17"), ("stencil", "2.98"), ("lbm", "4.17"))
    ),
    CriterionMark(
        "steps from threshold 16384 to 16 that slow no more than by 1 %",
        Kind.DEFINITIONAL,
        "A smaller budget lets hogs ask for less by the rule of budgets, and less asked cannot slow more.",
    ),
    CriterionMark(
        "unlocked over locked, Cortex",
        Kind.FITTED,
        "The published ratio is the number that kappa is set by.",
    ),
    CriterionMark(
        "unlocked over locked, Denver",
        Kind.DEFINITIONAL,
        "The counter of Denver cores is assumed to see none of their misses, so that a lock cannot do anything.",
    ),
    CriterionMark(
        "holder sleeps: locked over unlocked",
        Kind.DEFINITIONAL,
        "A lock counts while its holder runs by the rule itself.",
        "the holder spins: 0.43",
    ),
    CriterionMark(
        "largest slowdown locked, three hogs",
        Kind.PREDICTED,
        "Budgets are the published ones, and kappa and exponent come from hogs without any; the limit is our own.",
        "no lock: 3.08",
    ),
    CriterionMark("hog's share of periods, *", Kind.DEFINITIONAL, BY_CLOSED_FORM),
    CriterionMark(
        "throttled time, TFS-* over CFS",
        Kind.VACUOUS,
        "The range contains 1, which charging nothing gives.",
        "nothing is charged (CFS): 1.00",
    ),
    CriterionMark("busy processes: TFS-* over *", Kind.DEFINITIONAL, CHARGED),
)
