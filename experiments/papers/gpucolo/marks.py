"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

SLOW_MOTION: Final = "How long a batch takes alone is set by the shortest of Figure 6; what training adds to it is not."
UNRESTRAINED: Final = "training unrestrained: 84.6 ms"
MARKS: Final = (
    CriterionMark(
        "Fig. 4: MPS, after over before (calibrated)",
        Kind.FITTED,
        "Both ends of this row set how long a batch takes alone and how long a block of training does.",
    ),
    CriterionMark(
        "Fig. 4: sleep *, latency falls by, %",
        Kind.PREDICTED,
        "Generated kernels are set by another row of the figure.",
        "no more sleep: 0",
    ),
    CriterionMark(
        "Fig. 4: knobs whose rank is the published one",
        Kind.PREDICTED,
        "One of three rows is calibrated, and the order of the other two is open.",
    ),
    CriterionMark(
        "Fig. 6: largest slope, ms/s",
        Kind.DEFINITIONAL,
        "Training only ever slows a batch here, and sleeps for a part of its time.",
    ),
    CriterionMark(
        "Fig. 6: shares with a steeper slope than the smaller one",
        Kind.FITTED,
        "The paper does not say which priority training has; the lower one was taken because Figure 6 fails with "
        "equal ones.",
        "equal priority: fails",
    ),
    CriterionMark("Fig. 9: pause at 75 ms, s (saturated)", Kind.PREDICTED, SLOW_MOTION),
    CriterionMark(
        "Fig. 9: latency at 80 ms",
        Kind.PREDICTED,
        f"{SLOW_MOTION} The loop has no error that stays, so it says that the objective can be reached.",
        UNRESTRAINED,
    ),
    CriterionMark(
        "Fig. 9: latency at 85 ms",
        Kind.VACUOUS,
        "Training that nobody holds back passes as well: the objective binds hardly anybody here.",
        f"{UNRESTRAINED}, inside",
    ),
    *(CriterionMark(f"Fig. 9: latency at {goal} ms", Kind.PREDICTED, SLOW_MOTION, UNRESTRAINED) for goal in (90, 95)),
    CriterionMark("Fig. 9: latency at 75 ms", Kind.PREDICTED, SLOW_MOTION, UNRESTRAINED),
    CriterionMark(
        "Fig. 6: latency at a share of *, ms",
        Kind.PREDICTED,
        f"{SLOW_MOTION} Which priority training has was chosen by how these fall with sleep, not by how long they are.",
        "equal priority: 116 to 195 ms without sleep",
    ),
    CriterionMark(
        "Fig. 9: GSLICE's latency at *",
        Kind.PREDICTED,
        "GSLICE's step is that of public code, and none of its latencies was used for a constant.",
        UNRESTRAINED,
    ),
    CriterionMark(
        "Fig. 9: inference at *, GSLICE over GPUColo",
        Kind.PREDICTED,
        "GSLICE's step is that of public code, and no throughput was used for a constant.",
        "the same controller twice: 1.00",
    ),
    CriterionMark(
        "Fig. 9: training at *, GSLICE over GPUColo",
        Kind.PREDICTED,
        "GSLICE's step is that of public code, and no throughput was used for a constant.",
        "the same controller twice: 1.00",
    ),
    CriterionMark(
        "Fig. 8: inner periods from a late one of the burst to within 2 % (80 ms)",
        Kind.DEFINITIONAL,
        "A loop whose slope was identified on the very model that it controls reaches its objective in a period.",
    ),
    CriterionMark(
        "Fig. 8: * over GSLICE, %",
        Kind.PREDICTED,
        "GSLICE's step is that of public code, and neither throughput was used for a constant.",
    ),
    CriterionMark(
        "slope four times too small: swing over that with the right one",
        Kind.DEFINITIONAL,
        "A loop with four times the right gain does not settle, by control theory; nothing is published.",
        "the right slope: 1.00",
    ),
    CriterionMark(
        "free restarts: training's gain over GSLICE, of that with restarts",
        Kind.PREDICTED,
        "Nothing is published; that restarts make more than half of the gain was open.",
        "restarts as they are: 1.00",
    ),
    CriterionMark(
        "motivating example: finish times within 10 %, of GPUColo",
        Kind.PREDICTED,
        "Inference ends at its objective, which is given; how long training takes beside it was not used.",
        "no control (simple): 0",
    ),
    CriterionMark(
        "motivating example: finish times within 10 %, of all systems",
        Kind.PREDICTED,
        "Of the twenty times only training's two of the conservative system were used, for its pause.",
    ),
)
